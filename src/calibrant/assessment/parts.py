"""The small values that an assessment is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calibrant.curves.curve import ReliabilityDiagram
from calibrant.evidence import Array
from calibrant.inference.result import Estimate


@dataclass(frozen=True)
class Balance:
    """Mean score against frequency.

    Attributes
    ----------
    score, frequency : float
        Mean score, and share of outcomes.
    low, high : float
        Interval of their difference, score minus frequency.
    """

    score: float
    frequency: float
    low: float
    high: float

    @property
    def gap(self) -> float:
        """Mean score minus frequency: what is too high on average."""
        return self.score - self.frequency


@dataclass(frozen=True, eq=False)
class Odds:
    """Scores for an axis of log odds, which keeps those near 0 and 1 apart.

    Attributes
    ----------
    edges, counts : arrays
        Histogram over cells of equal log odds; the edges are scores.
    diagram : ReliabilityDiagram
        Bins of equal mass.
    """

    edges: Array
    counts: Array
    diagram: ReliabilityDiagram


@dataclass(frozen=True)
class Row:
    """One class or group among several.

    Attributes
    ----------
    name : str
    rows : float
        Rows of the group, or of the class.
    score, frequency : float
        Mean score, and share of outcomes.
    estimate : Estimate
        Its interval has a level such that all rows' intervals hold together.
    p_adjusted : float
        Its p-value, adjusted for the share of false alarms among all rows (Benjamini and Hochberg).
    """

    name: str
    rows: float
    score: float
    frequency: float
    estimate: Estimate
    p_adjusted: float

    def off(self, level: float) -> bool:
        """Whether it is off beyond chance, allowing for how many were looked at.

        Simulations cannot show a p-value below .001, which adjusted for many rows is no longer small:
        there the adjusted interval decides, by whether it excludes 0.
        """
        least = self.estimate.p_value <= 0.001 + 1e-12 and self.estimate.low > 0
        return self.p_adjusted < 1 - level or least

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text."""
        found = {key: getattr(self, key) for key in ("name", "rows", "score", "frequency", "p_adjusted")}
        return found | {"estimate": self.estimate.to_dict()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Row:
        """What `to_dict` wrote."""
        return cls(**{**values, "estimate": Estimate.from_dict(values["estimate"])})

"""What an assessment holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from calibrant.assessment.decomposition import Score
from calibrant.assessment.parts import Balance, Odds, Row
from calibrant.curves.curve import ByClass, ReliabilityCurve, ReliabilityDiagram
from calibrant.inference.result import Estimate


@dataclass(frozen=True, eq=False)
class Findings:
    """The numbers of an assessment.

    Attributes
    ----------
    notion : str
        The notion of the headline; `estimate`, `curve` and `diagram` are its.
    estimates, curves, diagrams : mappings
        By notion.
    odds : Odds
        The headline's scores (class-wise, those of the worst class) for an axis of log odds.
    rulers : mapping
        The headline's error by `auto` and by the paper's five estimators.
    by_class, by_group : tuples of Row
        The worst first; intervals and p-values allow for looking at many.
    balance : Balance or None
        Mean score against frequency; for the confidence notion mean confidence against accuracy, and for
        the class-wise one too, if it is known.
    accuracy : Balance or None
        Mean confidence against the share of right predictions; None where a sketch does not know it.
    scores : tuple of Score
        Brier score and log loss with their parts.
    warnings : tuple of str
        What a reader should know about the data.
    rows, n : int, float
        Rows, and their effective number under weights.
    classes : tuple of str
        Names to show, in the order of the columns.
    asked : str or None
        The class that the notion `class` asks about.
    level, seed, created, digest, name, command, version
        Level of all intervals, seed of the simulations, date, SHA-256 of the data, name of the data,
        the command that made it, version of calibrant.
    """

    notion: str
    estimates: Mapping[str, Estimate]
    curves: Mapping[str, ReliabilityCurve | ByClass[ReliabilityCurve]]
    diagrams: Mapping[str, ReliabilityDiagram | ByClass[ReliabilityDiagram]]
    odds: Odds
    rulers: Mapping[str, Estimate]
    by_class: tuple[Row, ...]
    by_group: tuple[Row, ...]
    balance: Balance | None
    accuracy: Balance | None
    scores: tuple[Score, ...]
    warnings: tuple[str, ...]
    rows: int
    n: float
    classes: tuple[str, ...]
    asked: str | None
    level: float
    seed: int
    created: str
    digest: str
    version: str
    name: str | None = None
    command: str | None = None

    @property
    def estimate(self) -> Estimate:
        """The headline's estimate."""
        return self.estimates[self.notion]

    @property
    def curve(self) -> ReliabilityCurve | ByClass[ReliabilityCurve]:
        """The headline's reliability curve; of the class-wise notion, one for each class."""
        return self.curves[self.notion]

    @property
    def diagram(self) -> ReliabilityDiagram | ByClass[ReliabilityDiagram]:
        """The headline's reliability diagram; of the class-wise notion, one for each class."""
        return self.diagrams[self.notion]

"""What an estimator is: a frozen value of choices that fits evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from calibrant.evidence import Array, Evidence, Moments
from calibrant.inputs import check_choice

Norm = Literal["l1", "l2", "max"]
NORMS: tuple[Norm, ...] = ("l1", "l2", "max")


class Fit(Protocol):
    """An estimator after it has seen evidence."""

    def error(self, norm: Norm = "l1") -> Array:
        """Calibration error of each batch entry."""
        ...


@runtime_checkable
class Estimator(Protocol):
    """A frozen value of choices."""

    def fit(self, evidence: Evidence) -> Fit:
        """Look at the evidence once; the fit answers for every norm."""
        ...


def check_norm(norm: str, supported: tuple[Norm, ...] = NORMS, who: str = "this estimator") -> None:
    """Refuse a norm that does not exist or that an estimator does not define."""
    check_choice("norm", norm, NORMS)
    if norm not in supported:
        raise ValueError(f"{who} defines norm {', '.join(map(repr, supported))}, got {norm!r}")


def average(gap: Array, weight: Array, norm: Norm) -> Array:
    """Mean (l1), root mean square (l2) or largest (max) gap over the last axis; without weight none counts.

    >>> average(np.array([0.3, -0.1]), np.array([1.0, 3.0]), "l1").round(6)
    np.float64(0.15)
    """
    gap = np.where(weight > 0, np.abs(gap), 0.0)
    if norm == "max":
        return gap.max(axis=-1)
    share = weight / weight.sum(axis=-1, keepdims=True)
    return (share * gap).sum(axis=-1) if norm == "l1" else np.sqrt((share * gap**2).sum(axis=-1))


def positions(atoms: Moments) -> Array:
    """Mean score of each atom; where an atom holds nothing, its origin."""
    offset = np.divide(atoms.ws, atoms.w, out=np.zeros(atoms.w.shape), where=atoms.w > 0)
    return np.clip(atoms.origin + offset, 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class SeveralFits:
    """A batch whose entries cannot be fitted together, for they need different grids or cells.

    Parameters
    ----------
    batch : tuple of int
    parts : sequence of (mask, fit)
        Which entries a fit is for.
    """

    batch: tuple[int, ...]
    parts: Sequence[tuple[Array, Fit]]

    def error(self, norm: Norm = "l1") -> Array:
        """Error of every entry, each from its own fit."""
        value = np.empty(self.batch)
        for mask, fit in self.parts:
            value[mask] = np.ravel(fit.error(norm))
        return value

"""What an estimator is: a frozen value of choices that fits evidence."""

from __future__ import annotations

from typing import Literal, Protocol, runtime_checkable

from calibrant._check import check_choice
from calibrant.evidence import Array, Evidence

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

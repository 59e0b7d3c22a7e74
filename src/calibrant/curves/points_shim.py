"""Stand in for what the posterior will say of its points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.evidence import Array, Residuals
from calibrant.posterior.gap import Posterior, chance


@dataclass(frozen=True, eq=False)
class Points:
    """What the posterior knows of one problem."""

    score: Array
    mass: Array
    rows: Array
    gap: Array
    sd: Array


def points(posterior: Posterior, k: int, n: float, shared: bool) -> Points:
    """Return the cells of one problem."""
    odds = posterior.evidence(len(posterior.z)) if shared else posterior.evidence()[k : k + 1]
    some = float(chance(odds)[0])
    mass = posterior.mass[k]
    held = np.flatnonzero(mass > 0)
    held = held[np.argsort(posterior.score[k][held], kind="stable")]
    gap, sd = (part[k][held] / mass[held] for part in (posterior.gap, posterior.sd))
    return Points(
        posterior.score[k][held],
        mass[held],
        mass[held] * n,
        some * gap,
        np.sqrt(some * sd**2 + some * (1 - some) * gap**2),
    )


def discrete(residuals: Residuals) -> bool:
    """Tell whether scores repeat."""
    held = np.count_nonzero(residuals.mass)
    return bool(held <= 20 and residuals.n >= 5 * held)

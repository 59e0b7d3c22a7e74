"""What an estimator may look at: rows or cells, behind one protocol.

Both kinds hold one or many one-dimensional problems (a score in [0, 1] and an outcome in {0, 1}):
leading axes of every answer are the batch, the last one runs over groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol, Self

import numpy as np

from calibrant.evidence.cells import FINE_UP_TO, Cells, layout_for
from calibrant.evidence.layout import COARSE, FINE, Layout
from calibrant.evidence.moments import Array, Bins, Moments, OneHot
from calibrant.evidence.residuals import Residuals, across_clusters
from calibrant.evidence.sample import Sample

__all__ = [
    "COARSE",
    "FINE",
    "FINE_UP_TO",
    "Array",
    "Bins",
    "Cells",
    "Evidence",
    "Layout",
    "Moments",
    "OneHot",
    "Residuals",
    "Sample",
    "across_clusters",
    "layout_for",
]


class Evidence(Protocol):
    """What `Sample` and `Cells` both answer."""

    @property
    def support(self) -> tuple[float, float]:
        """Where scores can lie; smoothing reflects at its ends."""
        ...

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch; empty for a single problem."""
        ...

    @property
    def n(self) -> Array:
        """Effective number of rows of each batch entry."""
        ...

    def bins(self, cuts: Array) -> Bins:
        """Sum mass, score and outcome between the cuts."""
        ...

    def moments(self, cuts: Array, origin: Array, *, squares: bool = True) -> Moments:
        """Return all five sums between the cuts, scores measured from each group's origin.

        Without `squares` the sum of squared scores may be missing (NaN).
        """
        ...

    def ranked(self, rank: Array) -> Array:
        """Return the order statistics by expanded rank."""
        ...

    def variance(self) -> Array:
        """Return the variance of the scores."""
        ...

    def squared(self) -> Self:
        """Return the same evidence with squared weights, for effective sizes; counts stay as they are."""
        ...

    def __getitem__(self, entry: Any) -> Self:
        """Return one problem of a batch, or some of them."""
        ...

    def rows(self) -> Iterator[tuple[Array, Array, Array]]:
        """Yield scores, outcomes and weights of each batch entry."""
        ...

    def atoms(self) -> Moments:
        """Return the moments of tie groups or cells, in score order."""
        ...

    def resample(self, rng: np.random.Generator, size: int) -> Self:
        """Draw bootstrap samples of a single problem: the same scores with new weights."""
        ...

    def redraw(self, probability: Callable[[Array], Array], rng: np.random.Generator, size: int) -> Self:
        """Draw samples of a single problem: the same scores, outcomes drawn from `probability(score)`."""
        ...

"""The paper's binning estimators: sum over bins of |sum_i W_ij (outcome - score)| / N."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Self

import numpy as np

from calibrant.estimators.base import Entry, Estimator, Fit, Norm
from calibrant.estimators.bins import (
    MAPPINGS,
    Adaptive,
    Size,
    Uniform,
    check_size,
    how_many,
    mapped,
    parse_size,
)
from calibrant.evidence import Array, Bins, Evidence
from calibrant.inputs import check_choice

BINNINGS: dict[str, type[Uniform | Adaptive]] = {"uniform": Uniform, "adaptive": Adaptive}
# Short name and summary of each binning and mapping of the paper.
NAMED = {
    ("uniform", "one"): ("l", "bins of equal width (legacy ECE)"),
    ("adaptive", "one"): ("a", "bins of equal mass"),
    ("uniform", "convex"): ("c", "equal width, linear binning"),
    ("adaptive", "convex"): ("ac", "equal mass, linear binning"),
}


@dataclass(frozen=True, eq=False)
class BinnedFit(Fit):
    """Sums per bin, and the errors they give."""

    edges: Array
    bins: Bins
    n: Array

    def _error(self, norm: Norm) -> Array:
        """Return the mean (l1), root mean square (l2) or largest (max) gap; bins weigh by their mass."""
        bins, total = self.bins, self.bins.w.sum(axis=-1)
        if norm == "l1":
            return np.abs(bins.residual).sum(axis=-1) / total
        gap = np.nan_to_num(np.abs(bins.gap))
        if norm == "l2":
            return np.sqrt((bins.w * gap**2).sum(axis=-1) / total)
        return gap.max(axis=-1)


@dataclass(frozen=True)
class Binned(Estimator):
    """A binning and a mapping: the paper's ECE_l, ECE_a, ECE_c and ECE_ac.

    Parameters
    ----------
    binning : {"uniform", "adaptive"}
        Bins of equal width, or of equal mass.
    n_bins : int or "sqrt"
        Their number; "sqrt" is the floor of the root of the number of rows.
    mapping : {"one", "convex", "published"}
        A row counts in one bin, or is shared between the two nearest centres; "published" shares
        with the two weights exchanged, as the paper prints them.

    Examples
    --------
    >>> from calibrant.evidence import Sample
    >>> sample = Sample(np.array([0.2, 0.4, 0.9]), np.array([False, True, True]))
    >>> Binned("uniform", 2).fit(sample).error().round(6)
    np.float64(0.166667)
    """

    binning: Literal["uniform", "adaptive"] = "uniform"
    n_bins: Size = "sqrt"
    mapping: Literal["one", "convex", "published"] = "one"

    parameter = "bins"

    def __post_init__(self) -> None:
        check_choice("binning", self.binning, tuple(BINNINGS))
        check_choice("mapping", self.mapping, MAPPINGS)
        check_size(self.n_bins)

    @classmethod
    def entries(cls) -> tuple[Entry, ...]:
        """Return an entry for each binning and mapping of the paper."""
        return tuple(
            Entry(
                _name(binning, mapping),
                short,
                cls.parameter,
                summary,
                partial(cls.parse, binning=binning, mapping=mapping),
            )
            for (binning, mapping), (short, summary) in NAMED.items()
        )

    @classmethod
    def parse(cls, parameter: str | None, binning: Any = "uniform", mapping: Any = "one") -> Self:
        """Read the number of bins."""
        return cls(binning, "sqrt" if parameter is None else parse_size(parameter), mapping)

    def n_bins_at(self, n: Array) -> int:
        """Return the number of bins at n rows."""
        return how_many(self.n_bins, n)

    def __str__(self) -> str:
        return f"{_name(self.binning, self.mapping)}:{self.n_bins}"

    def fit(self, evidence: Evidence) -> BinnedFit:
        """Place the bins and sum."""
        edges = BINNINGS[self.binning](self.n_bins).edges(evidence)
        return BinnedFit(self, edges, mapped(evidence, edges, self.mapping), evidence.n)


def _name(binning: str, mapping: str) -> str:
    return binning if mapping == "one" else f"{binning}-{mapping}"

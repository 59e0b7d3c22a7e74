"""The paper's binning estimators: sum over bins of |sum_i W_ij (outcome - score)| / N."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from calibrant.estimators.base import Norm, check_norm
from calibrant.estimators.bins import MAPPINGS, Adaptive, Size, Uniform, check_size, mapped
from calibrant.evidence import Array, Bins, Evidence
from calibrant.inputs import check_choice

BINNINGS: dict[str, type[Uniform | Adaptive]] = {"uniform": Uniform, "adaptive": Adaptive}


@dataclass(frozen=True, eq=False)
class BinnedFit:
    """Sums per bin, and the errors they give."""

    edges: Array
    bins: Bins
    n: Array

    def error(self, norm: Norm = "l1") -> Array:
        """Mean (l1), root mean square (l2) or largest (max) gap, weighted by the mass of the bins."""
        check_norm(norm)
        bins, total = self.bins, self.bins.w.sum(axis=-1)
        if norm == "l1":
            return np.abs(bins.residual).sum(axis=-1) / total
        gap = np.nan_to_num(np.abs(bins.gap))
        if norm == "l2":
            return np.sqrt((bins.w * gap**2).sum(axis=-1) / total)
        return gap.max(axis=-1)


@dataclass(frozen=True)
class Binned:
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

    def __post_init__(self) -> None:
        check_choice("binning", self.binning, tuple(BINNINGS))
        check_choice("mapping", self.mapping, MAPPINGS)
        check_size(self.n_bins)

    def __str__(self) -> str:
        suffix = "" if self.mapping == "one" else f"-{self.mapping}"
        return f"{self.binning}{suffix}:{self.n_bins}"

    def fit(self, evidence: Evidence) -> BinnedFit:
        """Place the bins and sum."""
        edges = BINNINGS[self.binning](self.n_bins).edges(evidence)
        return BinnedFit(edges, mapped(evidence, edges, self.mapping), evidence.n)

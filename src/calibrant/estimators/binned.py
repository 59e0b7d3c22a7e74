"""The paper's binned estimators: sum over bins of |sum_i W_ij (outcome - score)| / N.

A binning (uniform or adaptive) defines the edges of the bins, and a mapping the weights W_ij of the rows in
the bins. The convex mapping is linear binning: a row is divided between the two nearest bin centres, with
shares that fall linearly with the distance.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Self

import numpy as np

from calibrant.estimators.base import Entry, Estimator, Fit, Norm
from calibrant.inputs import InputError, check_choice
from calibrant.score_data import Array, Bins, ScoreData

Size = int | Literal["sqrt"]
MOST = 10_000_000
MAPPINGS = ("one", "convex", "published")
# Short name and summary of each binning and mapping of the paper.
NAMED = {
    ("uniform", "one"): ("l", "bins of equal width (legacy ECE)"),
    ("adaptive", "one"): ("a", "bins of equal mass"),
    ("uniform", "convex"): ("c", "equal width, linear binning"),
    ("adaptive", "convex"): ("ac", "equal mass, linear binning"),
}


def check_size(n_bins: Size) -> None:
    """Raise an error for a number of bins that is neither a positive integer nor "sqrt"."""
    integer = isinstance(n_bins, int | np.integer) and not isinstance(n_bins, bool)
    if n_bins != "sqrt" and not (integer and 1 <= n_bins <= MOST):
        raise InputError("n_bins", f'be an integer from 1 to {MOST} or "sqrt"', n_bins)


def parse_size(text: str) -> Size:
    """Read a number of bins, or "sqrt".

    >>> parse_size("15"), parse_size("sqrt")
    (15, 'sqrt')
    """
    if text == "sqrt":
        return "sqrt"
    if not text.isdecimal():
        raise InputError("the number of bins", 'be an integer or "sqrt"', text)
    return int(text)


def resolved_n_bins(n_bins: Size, n: Array) -> int:
    """Return the number of bins for n rows; "sqrt" is the square root of n, rounded down.

    >>> resolved_n_bins("sqrt", np.array(99.0))
    9
    """
    if n_bins != "sqrt":
        return int(n_bins)
    if np.ptp(n) > 1e-9 * np.max(n):
        got = f'"sqrt" for {np.min(n):g} to {np.max(n):g} rows'
        raise InputError("n_bins", "be a number for problems of different sizes", n_bins, got=got)
    # The slack undoes rounding in the effective size of equal importance weights.
    root = max(1, int(np.sqrt(np.max(n) * (1 + 1e-12))))
    if root > MOST:
        got = f'"sqrt", which asks for {root} bins at n={np.max(n):g}'
        raise InputError("n_bins", f"be at most {MOST}", n_bins, got=got)
    return root


def equal_edges(b: int) -> Array:
    """Return the edges of b equal bins.

    >>> equal_edges(4)
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    return np.arange(b + 1) / b


def adaptive_edges(data: ScoreData, b: int, *, larger_first: bool = False) -> Array:
    """Return the edges of b bins of equal mass, for each batch entry.

    A cut lies after floor(i n / b) rows, halfway between the two neighbouring scores. If it falls between
    equal scores, all of them are in the bin to its right. With `larger_first` all bins have floor(n / b) rows
    and the first n mod b of them one more.

    >>> from calibrant.score_data import Sample
    >>> adaptive_edges(Sample(np.array([0.1, 0.2, 0.4, 0.9]), np.zeros(4, bool)), 2)
    array([0. , 0.3, 1. ])
    """
    size = data.n[..., None]
    # Equal importance weights may give an effective size just short of a whole number.
    slack = np.where(size == np.rint(size), 0.0, 1e-12)
    place = np.arange(1, b)
    cut = np.floor(place * size / b * (1 + slack))
    if larger_first:
        each = np.floor(size / b * (1 + slack))
        more = np.floor((size - each * b) * (1 + slack) + slack * size)
        # With fewer rows than bins there is nothing to be larger.
        cut = np.where(each > 0, place * each + np.minimum(place, more), cut)
    rank = np.concatenate([np.maximum(cut - 1, 0), cut], axis=-1)
    below, above = np.split(data.score_at_rank(rank), 2, axis=-1)
    middle = (below + above) / 2
    # Between neighbouring floats the midpoint rounds to one of them; the upper one still divides.
    inner = np.where(cut > 0, np.where(middle > below, middle, above), 0.0)
    ends = np.broadcast_to([0.0, 1.0], (*inner.shape[:-1], 2))
    return np.concatenate([ends[..., :1], inner, ends[..., 1:]], axis=-1)


def convex(data: ScoreData, edges: Array, *, swapped: bool = False) -> Bins:
    """Divide every row between the two nearest bin centres; equal centres are one bin.

    With `swapped` the nearer centre gets the smaller share, as printed in the paper.
    """
    centres = (edges[..., :-1] + edges[..., 1:]) / 2
    bins = spread(data, centres, swapped=swapped)
    # A score on a centre leaves rounding, not mass, at the next one.
    occupied = bins.w > 1e-12 * bins.w.sum(axis=-1, keepdims=True)
    bins = Bins(*(np.where(occupied, moment, 0.0) for moment in (bins.w, bins.ws, bins.wy)))
    if np.all(centres[..., 1:] > centres[..., :-1]):
        return bins
    place = np.broadcast_to(np.arange(centres.shape[-1]), centres.shape).copy()
    place[..., :-1][centres[..., 1:] <= centres[..., :-1]] = centres.shape[-1]
    last_of_run = np.minimum.accumulate(place[..., ::-1], axis=-1)[..., ::-1]
    return bins.pooled(last_of_run, centres.shape[-1])


def spread(data: ScoreData, nodes: Array, *, swapped: bool = False) -> Bins:
    """Bin linearly: return sums at nodes, with each row divided between the two neighbouring nodes.

    Between nodes c and d the share of d is (s - c)/(d - c), so five sums per interval are enough. Rows beyond
    the first or last node are assigned to that node.
    """
    # The exchanged shares jump at a node; a score on it counts as left of it.
    cuts = np.nextafter(nodes, 2.0) if swapped else nodes
    m = data.moments(cuts, np.concatenate([nodes[..., :1], nodes], axis=-1))
    gap = np.diff(nodes, axis=-1)
    gap = np.where(gap > 0, gap, 1.0)
    score = m.ws + m.origin * m.w
    return Bins(
        shared(m.w, m.ws, gap, swapped=swapped),
        shared(score, m.wss + m.origin * m.ws, gap, swapped=swapped),
        shared(m.wy, m.wsy, gap, swapped=swapped),
    )


def shared(mass: Array, moment: Array, gap: Array | float, *, swapped: bool = False) -> Array:
    """Return sums at nodes from sums between them.

    `mass` are the sums between nodes, and `moment` those of the values times the distance from the left node.
    """
    right = moment[..., 1:-1] / gap
    left = mass[..., 1:-1] - right
    if swapped:
        left, right = right, left
    total = np.concatenate([mass[..., :1], right], axis=-1)
    total[..., :-1] += left
    total[..., -1] += mass[..., -1]
    return total


def mapped(data: ScoreData, edges: Array, mapping: str) -> Bins:
    """Return the sums of each bin under a mapping; bins are closed on the left."""
    if mapping == "one":
        return data.bins(edges[..., 1:-1])
    return convex(data, edges, swapped=mapping == "published")


@dataclass(frozen=True, eq=False)
class BinnedFit(Fit):
    """Sums of each bin, and errors computed from them."""

    edges: Array
    bins: Bins

    def _error(self, norm: Norm) -> Array:
        """Return the mean (l1), root mean square (l2) or largest (max) gap; bins are weighted by mass."""
        bins, total = self.bins, self.bins.w.sum(axis=-1)
        if norm == "l1":
            return np.abs(bins.residual).sum(axis=-1) / total
        gap = np.nan_to_num(np.abs(bins.gap))
        if norm == "l2":
            return np.sqrt((bins.w * gap**2).sum(axis=-1) / total)
        return gap.max(axis=-1)


@dataclass(frozen=True)
class Binned(Estimator):
    """Binned calibration error: the paper's ECE_l, ECE_a, ECE_c and ECE_ac.

    Parameters
    ----------
    binning : {"uniform", "adaptive"}
        Bins of equal width, or of equal mass.
    n_bins : int or "sqrt"
        Number of bins; "sqrt" is the square root of the number of rows, rounded down.
    mapping : {"one", "convex", "published"}
        "one" assigns a row to one bin, "convex" divides it between the two nearest bin centres, and
        "published" does so with the two weights exchanged, as printed in the paper.

    See Also
    --------
    Debiased : Quantile bins with a correction of the bias.
    Sweep : Largest number of bins with increasing frequencies.
    estimator_names : Names of all estimators.
    ece : Calibration error by any estimator.

    Examples
    --------
    >>> from calibrant.score_data import Sample
    >>> sample = Sample(np.array([0.2, 0.4, 0.9]), np.array([False, True, True]))
    >>> Binned("uniform", 2).fit(sample).error().round(6)
    np.float64(0.166667)
    """

    binning: Literal["uniform", "adaptive"] = "uniform"
    n_bins: Size = "sqrt"
    mapping: Literal["one", "convex", "published"] = "one"

    parameter = "bins"

    def __post_init__(self) -> None:
        check_choice("binning", self.binning, ("uniform", "adaptive"))
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
        return resolved_n_bins(self.n_bins, n)

    def __str__(self) -> str:
        return f"{_name(self.binning, self.mapping)}:{self.n_bins}"

    def fit(self, data: ScoreData) -> BinnedFit:
        """Place the bins and sum."""
        b = self.n_bins_at(data.n)
        edges = equal_edges(b) if self.binning == "uniform" else adaptive_edges(data, b)
        return BinnedFit(self, edges, mapped(data, edges, self.mapping))


def _name(binning: str, mapping: str) -> str:
    return binning if mapping == "one" else f"{binning}-{mapping}"

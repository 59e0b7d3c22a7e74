"""An e-process for calibration on sums per score cell; the formulas are in docs/methods/monitoring.md.

H0: given the past and the scores, the probability of every outcome lies in [low, high]. A *tilt* is a change
of the log-odds by score cell. The evidence of a batch for a tilt is the logarithm of an e-value: its
expectation is at most 1 under H0. A mixture over tilts and over the batch at which a change begins is a
nonnegative supermartingale that starts at 1 and reaches 1 / alpha with probability at most alpha.
"""

from __future__ import annotations

from copy import copy
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit, logsumexp, rel_entr

from calibrant.score_data import Array

# Score cells, equally wide in log-odds.
EDGES = expit(np.arange(-64, 65) / 8)
CELLS = EDGES.size + 1
MIDDLE = expit((np.arange(-65, 65) + 0.5) / 8)
# Log-odds of a cell are limited, and standardised ones, in the shapes of slope and curvature.
MAX_LOG_ODDS, STEEPEST = 7.0, 3.0
# Sizes of a tilt: a change of the largest one is expected to be clear after a batch, and those of the others,
# each smaller by RATIO, after RATIO squared times as many; no change of log-odds is larger than MOST.
N_SIZES, RATIO, MOST = 5, 2.0, 3.0
# The log evidence at which a change is clear, which is what a size is chosen for.
CLEAR = 8.0
# Scores are divided by rank into this many ranges, and at these ranks from either end.
RANGES, ENDS = (2, 4, 8, 16), (0.05, 0.01)
# Share of alpha for the band of the reference period, and ranges of scores that its frequencies are taken of.
REFERENCE_SHARE, REFERENCE_RANGES = 0.2, 64


class CellSums(NamedTuple):
    """CellSums of the rows of each score cell, the last axis: rows, scores and outcomes."""

    n: Array
    score: Array
    outcome: Array

    def __add__(self, other: CellSums) -> CellSums:  # type: ignore[override]
        """Return the sums of both."""
        return CellSums(*(a + b for a, b in zip(self, other, strict=True)))

    @property
    def mean(self) -> Array:
        """Mean score of each cell; the middle of a cell without rows."""
        return np.divide(
            self.score, self.n, out=np.broadcast_to(MIDDLE, self.n.shape).copy(), where=self.n > 0
        )

    @classmethod
    def of(cls, score: Array, outcome: Array, weight: Array) -> CellSums:
        """Sum rows of one problem, whose outcomes and scores lie in [0, 1] and whose weights are at most 1.

        >>> sums = CellSums.of(np.array([0.2, 0.2, 0.7]), np.array([0.0, 1.0, 1.0]), np.ones(3))
        >>> sums.n[sums.n > 0], sums.outcome[sums.n > 0]
        (array([2., 1.]), array([1., 1.]))
        """
        cell = np.searchsorted(EDGES, score, side="right")
        parts = (weight, weight * score, weight * outcome)
        return cls(*(np.bincount(cell, masses, CELLS) for masses in parts))


_RANGES = [(k / size, (k + 1) / size) for size in RANGES for k in range(size)]
_ENDS = [pair for end in ENDS for pair in ((0.0, end), (1 - end, 1.0))]
#: Kind and range of ranks of each shape of a tilt.
SHAPES = (
    *((kind, 0.0, 1.0) for kind in ("shift", "slope", "curvature")),
    *(("range", *r) for r in _RANGES + _ENDS),
)
N_TILTS = len(SHAPES) * N_SIZES * 2
# Prior probability of the most common shapes, in their order; the others share the rest equally.
COMMON = (0.4, 0.15)
_BY_SHAPE = [*COMMON, *[(1 - sum(COMMON)) / (len(SHAPES) - 2)] * (len(SHAPES) - 2)]
#: Prior probability of each tilt.
PRIOR = np.repeat(_BY_SHAPE, 2 * N_SIZES) / (2 * N_SIZES)
# Prior probability that a change begins within the horizon, equally likely at each batch of it.
UNIFORM = 0.9


def shapes(count: Array) -> Array:
    """Return the value of each shape in each cell, given how many rows each cell has had."""
    share = count / max(count.sum(), 1e-300)
    x = np.clip(logit(MIDDLE), -MAX_LOG_ODDS, MAX_LOG_ODDS)
    mean = share @ x
    z = (x - mean) / max(float(np.sqrt(share @ (x - mean) ** 2)), 1e-3)
    rank = np.cumsum(share) - share / 2
    smooth = [np.ones(CELLS), np.clip(z, -STEEPEST, STEEPEST), np.clip(z**2 - 1, -1, STEEPEST)]
    ranges = [(rank >= a) & ((rank < b) | (b >= 1)) for kind, a, b in SHAPES if kind == "range"]
    return np.array([*smooth, *ranges], dtype=np.float64)


def tilts(count: Array, score: Array, batches: float) -> Array:
    """Return the change of log-odds of each tilt in each cell.

    It may depend on all scores up to the present batch, and on outcomes before it only.
    """
    shape = shapes(count)
    mean = np.divide(score, count, out=MIDDLE.copy(), where=count > 0)
    information = (shape**2) @ (count * mean * (1 - mean)) / batches
    largest = np.sqrt(2 * CLEAR / np.maximum(information, 1e-9))
    size = np.minimum(largest[:, None] * RATIO ** -np.arange(N_SIZES), MOST)
    signed = np.concatenate([size, -size], axis=1)
    return np.clip(signed[:, :, None] * shape[:, None, :], -MOST, MOST).reshape(N_TILTS, CELLS)


def evidence(sums: CellSums, tilt: Array, low: Array, high: Array) -> Array:
    """Return the log e-value of a batch for each tilt.

    `low` and `high` bound the mean probability of the rows of each cell. Because the log moment generating
    function of an outcome in [0, 1] is concave in its mean, the mean of a cell bounds the sum over its rows.
    """
    used = sums.n > 0
    tilt = tilt[:, used]
    bound = np.where(tilt > 0, high[used], low[used])
    return np.asarray(tilt @ sums.outcome[used] - np.log1p(bound * np.expm1(tilt)) @ sums.n[used])


def shifted(probability: Array, log_odds: float) -> Array:
    """Return probabilities whose log-odds are changed by a number.

    >>> shifted(np.array([0.0, 0.5, 1.0]), 1.0).round(3)
    array([0.   , 0.731, 1.   ])
    """
    return probability / (probability + (1 - probability) * np.exp(-log_odds))


def restart_weight(batch: int, horizon: int) -> float:
    """Return the prior weight of a change that begins at a batch, numbered from 1; the sum over all is 1."""
    return UNIFORM * (batch <= horizon) / horizon + (1 - UNIFORM) / (batch * (batch + 1))


def later_weight(batch: int, horizon: int) -> float:
    """Return the prior weight of all later batches.

    >>> round(later_weight(3, 365) + sum(restart_weight(k, 365) for k in (1, 2, 3)), 12)
    1.0
    """
    return UNIFORM * max(0.0, 1 - batch / horizon) + (1 - UNIFORM) / (batch + 1)


def advance(log_r: Array, log_e: Array, batch: int, horizon: int) -> tuple[Array, Array]:
    """Return the log evidence for a change up to now, by tilt, and the log of the e-process.

    The last axis runs over tilts, and others over independent streams.
    """
    log_r = log_e + np.logaddexp(log_r, np.log(restart_weight(batch, horizon)))
    later = np.log(later_weight(batch, horizon))
    return log_r, np.logaddexp(logsumexp(log_r + np.log(PRIOR), axis=-1), later)


class Stream:
    """The e-process of one group and one class."""

    def __init__(self, tolerance: float, horizon: int, started: int = 0) -> None:
        self.tolerance, self.horizon = tolerance, horizon
        self.total = self.reference = CellSums(*np.zeros((3, CELLS)))
        self.batches = 0  # in which there were rows
        self.log_e = [np.zeros(N_TILTS)] * started  # by batch since the reference period
        # A change before the first rows begins with them.
        weight = 1 - later_weight(started, horizon) if started else 0.0
        self.log_r = np.full(N_TILTS, np.log(weight) if weight else -np.inf)
        self.log_m = 0.0
        self.band: tuple[Array, Array] | None = None

    def copy(self) -> Stream:
        """Return a stream that goes on by itself; arrays are never changed in place."""
        copied = copy(self)
        copied.log_e = self.log_e.copy()
        return copied

    def add_batch(self, sums: CellSums, *, reference: bool) -> None:
        """Take the scores of a batch, and the outcomes if it belongs to the reference period."""
        self.total, self.batches = self.total + sums, self.batches + 1
        if reference:
            self.reference = self.reference + sums

    def add(self, sums: CellSums | None) -> None:
        """Add the evidence of a batch, or that of a batch in which the stream has no rows."""
        log_e = np.zeros(N_TILTS)
        if sums is not None:
            low, high = self.band or (sums.mean, sums.mean)
            bounds = shifted(low, -self.tolerance), shifted(high, self.tolerance)
            log_e = evidence(sums, tilts(self.total.n, self.total.score, self.batches), *bounds)
        self.log_e.append(log_e)
        self.log_r, log_m = advance(self.log_r, log_e, len(self.log_e), self.horizon)
        self.log_m = float(log_m)


class Change(NamedTuple):
    """Where and how a stream changed, by the posterior given that it did."""

    onset: int  # numbers of batches, from 0
    low: int
    high: int
    shape: int
    higher: bool  # whether the log-odds of the outcome rose


def change_of(log_e: Array, level: float = 0.9) -> Change:
    """Return the onset with its interval, and the shape, from the log e-values by batch and tilt."""
    before = np.cumsum(log_e, axis=0) - log_e
    posterior = np.log(PRIOR) + log_e.sum(axis=0) - before
    posterior = np.exp(posterior - posterior.max())
    onset = np.cumsum(posterior.sum(axis=1)) / posterior.sum()
    low, middle, high = (int(np.searchsorted(onset, q)) for q in ((1 - level) / 2, 0.5, (1 + level) / 2))
    by_shape = posterior.sum(axis=0).reshape(len(SHAPES), 2, N_SIZES).sum(axis=2)
    shape, falls = divmod(int(by_shape.argmax()), 2)
    return Change(middle, low, min(high, len(log_e) - 1), shape, falls == 0)


def words_of(change: Change, scores: str, count: Array) -> str:
    """Return in words how outcomes differ from `scores`, of which each cell has had so many rows."""
    kind, first, last = SHAPES[change.shape]
    low, high = ("low", "high") if change.higher else ("high", "low")
    words = {
        "shift": f"too {low}",
        "slope": "not extreme enough" if change.higher else "too extreme",
        "curvature": f"too {low} at both ends and too {high} in between",
    }
    if kind in words:
        return f"{scores} are {words[kind]}"
    cells = np.flatnonzero((count > 0) & (shapes(count)[change.shape] > 0))
    ends = np.concatenate([[0.0], EDGES, [1.0]])
    left, right = (ends[cells[0]], ends[cells[-1] + 1]) if cells.size else (first, last)
    between = f"below {right:.2g}" if first <= 0 else f"from {left:.2g} to {right:.2g}"
    between = f"above {left:.2g}" if last >= 1 else between
    return f"{scores} {between} are too {low}"


def reference_band(sums: CellSums, alpha: float) -> tuple[Array, Array]:
    """Return bounds of the frequency in each cell that hold together with probability 1 - alpha.

    They assume that frequencies do not fall as scores rise, so that the mean frequency of scores that are
    higher bounds that of a cell from above, and of lower ones from below. Means over ranges of scores are
    bounded by the inequality of Chernoff, for any independent outcomes in [0, 1]. Where the frequencies
    contradict the assumption, `low` exceeds `high`.
    """
    rank = (np.cumsum(sums.n) - sums.n / 2) / max(sums.n.sum(), 1e-300)
    ranges = np.minimum(rank * REFERENCE_RANGES, REFERENCE_RANGES - 1).astype(int)
    n, outcome = (np.bincount(ranges, masses, REFERENCE_RANGES) for masses in (sums.n, sums.outcome))
    sizes = 2 ** np.arange(REFERENCE_RANGES.bit_length())
    windows = [(a, a + size) for size in sizes for a in range(REFERENCE_RANGES - size + 1)]
    limit = np.log(2 * len(windows) / alpha)
    low, high = np.zeros(CELLS), np.ones(CELLS)
    for a, b in windows:
        if (rows := float(n[a:b].sum())) > 0:
            left, right = _chernoff(float(outcome[a:b].sum()) / rows, limit / rows)
            high = np.where(ranges < a, np.minimum(high, right), high)
            low = np.where(ranges >= b, np.maximum(low, left), low)
    return low, high


def _chernoff(mean: float, limit: float) -> tuple[float, float]:
    """Return the means on both sides whose divergence from an observed mean is `limit`."""

    def excess(other: float) -> float:
        return float(rel_entr(mean, other) + rel_entr(1 - mean, 1 - other)) - limit

    mean, least = min(max(mean, 0.0), 1.0), 1e-16
    low = brentq(excess, least, mean) if excess(least) > 0 and mean > least else 0.0
    high = brentq(excess, mean, 1 - least) if excess(1 - least) > 0 and mean < 1 - least else 1.0
    return low, high

"""What a calibrated model would show: the evidence and the error of data simulated from the scores.

Under the hypothesis the variance of every outcome is known, so the clock is fixed, the coefficients
are linear in the outcomes, and a thousand simulated data sets cost one matrix product.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from calibrant.estimators.base import Norm
from calibrant.evidence import Array, Residuals
from calibrant.posterior.clock import CELLS, LEAST, halfway, n_cells, running
from calibrant.posterior.gap import Posterior, Terms, judged

# Steps that outcomes are drawn for; more are joined, which changes nothing one could see.
STEPS = 2048
# Where a step's residual has at least this variance it is as good as normal.
NORMAL = 30.0
# The test for rough gaps: cells along the score hold at least so many rows, and are at most so many;
# and how close to 0 or 1 a score is taken to be at most.
ROWS, FINEST, STEEPEST = 8, 1024, 1e-6
# Shares of the level that the Bayes factors of smooth and of other gaps, the range, a shift and a slope of
# the log odds, and the test for rough gaps have. Few scores are likely to have gaps of their own.
SHARES, FEW_SHARES = (0.3, 0.15, 0.2, 0.15, 0.1, 0.1), (0.1, 0.5, 0.15, 0.1, 0.1, 0.05)
# Simulated sets whose error is read.
READ = 300
# Numbers in the largest table of simulated outcomes.
TABLE = 1 << 22


def error(terms: Terms, norm: Norm, cells: int | None = None) -> Array:
    """Return the error of each problem; with the number of cells the combined one of each model.

    The terms of a model's classes lie along the last axis.
    """
    if cells is None:
        value = terms.own
    else:
        classes = terms.own.shape[-1]
        sums = Terms(*(term.sum(axis=terms.own.ndim - 1) for term in terms))
        value = judged(sums, cells, classes).mixed(sums.smooth / classes, sums.own / classes)
    return np.minimum(value if norm == "l1" else np.sqrt(value), 1.0)


def together(terms: Terms, cells: int) -> Array:
    """Return the log of the Bayes factor for some gap of a model, whose classes lie along the last axis."""
    sums = Terms(*(term.sum(axis=terms.own.ndim - 1) for term in terms))
    return judged(sums, cells, terms.own.shape[-1]).evidence


def by_class(posterior: Posterior, z: Array, norm: Norm) -> Terms:
    """Return the terms of other coefficients (sets, classes, cells) on the same scores."""
    each = [posterior[k : k + 1].again(z[:, k]).terms(norm) for k in range(z.shape[1])]
    return Terms(*(np.stack(terms, axis=1) for terms in zip(*each, strict=True)))


@dataclass(frozen=True, eq=False)
class Simulated:
    """Evidence against calibration, and error, of simulated calibrated data; and the observed evidence."""

    evidence: Array
    error: Array
    observed: float

    @property
    def p_value(self) -> float:
        """Share of simulated data with at least the observed evidence, the data themselves included."""
        more = np.count_nonzero(self.evidence >= self.observed - 1e-12 * abs(self.observed))
        return (1 + int(more)) / (1 + self.evidence.size)


def single(residuals: Residuals, norm: Norm, rng: np.random.Generator, size: int) -> Simulated:
    """Simulate one problem.

    The evidence joins statistics by the least of their ranks: the Bayes factor of smooth gaps, and that of
    gaps that live in one place or at few scores; the range of the cumulated residuals (ECCE-R), which is
    best at gaps of one sign; those of a shift and of a slope in the log odds, which are best at rare
    outcomes; and the largest part of the variance in any stretch of frequencies along the score, which
    finds gaps too rough for all.
    """
    steps = residuals.coarser(STEPS)
    cells = min(int(n_cells(residuals.flat.n)[0]), STEPS // 2)
    return ranked(steps, drawn(steps, rng, size), norm, cells)[0]


def ranked(
    steps: Residuals, residual: Array, norm: Norm, cells: int, finest: int = FINEST
) -> tuple[Simulated, Posterior, Posterior]:
    """Rank the evidence of a problem among that of simulated residuals; return both posteriors too.

    Parameters
    ----------
    residual : array (sets, steps)
        Simulated residuals at each step of the problem.
    cells, finest : int
        Cells of equal variance, and cells along the score for rough gaps at most.
    """
    from scipy.fft import dct

    observed = Posterior.of_residuals(steps.flat, cells, plain=True)
    # Single precision is plenty among simulated sets, and halves what is read and written.
    everyone = np.concatenate([residual, steps.residual[None]], dtype=np.float32, casting="same_kind")
    total, edges = running(everyone), Edges.of(steps, cells)
    cells_of = edges.sums(total[:-1])
    sums = (cells_of / edges.unit).astype(np.float32, copy=False)
    at_values = None
    if observed.few is not None:
        n = observed.n[0]
        whole = observed.discrete(0)
        at_values = residual / (n * observed.few.unit) if whole else observed.few.from_cells(cells_of / n)
    null = observed.again(dct(sums, norm="ortho"), at_values)
    pairs = (null.process, observed.process), (null, observed)
    smooth = np.concatenate([each.evidence for each in pairs[0]])
    local = np.concatenate([each.local for each in pairs[1]])
    ranks = [rank(smooth), rank(local), rank(np.ptp(total, axis=1))]
    ranks += [np.minimum(1.0, 2 * np.minimum(rank(way), rank(-way))) for way in _logistic(steps, everyone)]
    rough = _rough(steps, everyone, finest)
    if rough is not None:
        ranks.append(rank(rough))
    shares = FEW_SHARES if observed.discrete(0) else SHARES
    joined = -np.min([each / share for each, share in zip(ranks, shares, strict=False)], axis=0)
    some = null.again(null.z[:READ], None if at_values is None else at_values[:READ])
    return Simulated(joined[:-1], error(some.terms(norm), norm), float(joined[-1])), observed, null


def drawn(steps: Residuals, rng: np.random.Generator, size: int) -> Array:
    """Draw `size` sets of outcomes from the scores, and return their residuals at each step."""
    variance = steps.spread * steps.score * (1 - steps.score)
    large = variance >= NORMAL
    if not large.any():
        return steps.redraw(steps.score, rng, size)
    residual = np.empty((size, variance.size), dtype=np.float32)
    normal = rng.standard_normal((size, np.count_nonzero(large)), dtype=np.float32)
    residual[:, large] = np.sqrt(variance[large]).astype(np.float32) * normal
    if not large.all():
        rest = steps[~large]
        residual[:, ~large] = rest.redraw(rest.score, rng, size)
    return residual


def _logistic(steps: Residuals, residual: Array) -> Array:
    """Return the score statistics of a shift and of a slope in the log odds, (2, sets).

    They are the strongest against what a wrong prior or temperature does. Where outcomes are rare they lean,
    so that each side has to be ranked by itself.
    """
    p = np.clip(steps.score, STEEPEST, 1 - STEEPEST)
    logit = np.log(p) - np.log1p(-p)
    variance = steps.spread * steps.score * (1 - steps.score)
    total = variance.sum()
    middle = variance @ logit / total if total > 0 else 0.0
    ways = np.stack([np.ones(logit.shape), logit - middle])
    width = np.sqrt((ways * ways) @ variance)
    ways = np.divide(ways, width[:, None], out=np.zeros(ways.shape), where=width[:, None] > 1e-9)
    return np.asarray(ways.astype(residual.dtype) @ residual.T)


def _rough(steps: Residuals, residual: Array, finest: int) -> Array | None:
    """Return the largest share of variance in a stretch of frequencies along the score; None for few rows.

    Stretches of one to 256 frequencies are compared on the scale of a normal variable (Wilson and
    Hilferty's cube root), which need not be exact, since the data are ranked among simulated ones.
    """
    from scipy.fft import dct

    score, n = steps.score, steps.n
    low, high = score[0], score[-1]
    count = min(finest, 2 ** int(np.log2(n / ROWS))) if n >= ROWS else 0
    if count < CELLS or not high > low:
        return None
    cell = np.minimum((score - low) / (high - low) * count, count - 1).astype(np.intp)
    start = np.flatnonzero(np.diff(cell, prepend=-1))
    variance = np.add.reduceat(steps.spread * (score * (1 - score) + LEAST / np.sqrt(n)), start)
    white = np.zeros((len(residual), count), dtype=residual.dtype)
    white[:, cell[start]] = np.add.reduceat(residual, start, axis=1) / np.sqrt(variance)
    total = running(dct(white, norm="ortho")[:, 1:] ** 2)
    largest = np.full(len(residual), -np.inf)
    # Empty cells hold no noise: the others' share of all is the mean of a coefficient's square.
    share = start.size / count
    width = 1
    while width <= min(256, count // 2):
        step = max(1, width // 2)
        # The cube root grows with the mean: that of the largest is the largest.
        most = (total[:, width::step] - total[:, :-width:step]).max(axis=1) / (width * share)
        normal = (np.cbrt(most) - (1 - 2 / (9 * width))) / np.sqrt(2 / (9 * width))
        largest = np.maximum(largest, normal)
        width *= 4
    return largest


def rank(statistic: Array) -> Array:
    """Return the share of all values that are at least as large as each; ties share the larger rank.

    Values that differ by rounding alone, in single precision, are tied: sets with the same outcomes have the
    same statistic.
    """
    step = 1e-5 * max(1.0, float(np.median(np.abs(statistic))))
    statistic = np.round(statistic / step)
    order = np.sort(statistic)
    return (statistic.size - np.searchsorted(order, statistic, side="left")) / statistic.size


@dataclass(frozen=True, eq=False)
class Edges:
    """Where the edges of cells of equal variance lie among the steps: at which step, how far into it.

    A step that reaches over an edge is shared between both cells in proportion.
    """

    step: Array
    share: Array
    unit: float

    @classmethod
    def of(cls, steps: Residuals, cells: int) -> Edges:
        """Return the edges between this many cells."""
        flat = steps.flat
        clock = running(flat.spread * halfway(flat))[0]
        time = clock * (cells / clock[-1])
        edge = np.arange(1, cells)
        step = np.clip(np.searchsorted(time, edge, side="right") - 1, 0, time.size - 2)
        width = time[step + 1] - time[step]
        share = np.divide(edge - time[step], width, out=np.zeros(width.shape), where=width > 0)
        return cls(step, np.clip(share, 0.0, 1.0), float(np.sqrt(clock[-1] / cells)))

    def met(self, steps: int) -> tuple[Array, Edges]:
        """Return the steps before and after the edges, and the edges among these alone."""
        ends = np.unique(np.concatenate([[0], self.step, self.step + 1, [steps]]))
        return ends, Edges(np.searchsorted(ends, self.step), self.share, self.unit)

    def sums(self, total: Array) -> Array:
        """Return sums over the cells, from running sums over the steps that begin with 0."""
        low, high = total[:, self.step], total[:, self.step + 1]
        return np.diff(low + self.share * (high - low), axis=1, prepend=0.0, append=total[:, -1:])


def joint(
    problems: list[Residuals],
    rows: Callable[[Array], tuple[Array, Array | None]],
    n_rows: int,
    norm: Norm,
    rng: np.random.Generator,
    size: int,
) -> Simulated:
    """Simulate all classes of a model together: one label is drawn for each row.

    Parameters
    ----------
    problems : list of Residuals
        One for each class.
    rows : callable
        Scores (rows, classes) and weights of the rows asked for by number.
    n_rows : int
        How many rows there are. Some of them stand for all when they are many: the joint
        distribution of the standardised coefficients is the same.
    """
    classes = len(problems)
    observed = _observed(problems)
    cells = observed.z.shape[-1]
    few = max(4 * cells, TABLE // (2 * classes) // 4)
    some = np.arange(n_rows) if n_rows <= few else np.sort(rng.choice(n_rows, few, replace=False))
    score, weight = rows(some)
    label = _labels(score, rng, size)
    drawn = np.empty((size, classes, cells))
    for k in range(classes):
        drawn[:, k] = _class_coefficients(score[:, k], weight, label == k, cells)
    null = by_class(observed, drawn, norm)
    seen = Terms(*(term[None] for term in observed.terms(norm)))
    return Simulated(together(null, cells), error(null, norm, cells), float(together(seen, cells)[0]))


def _observed(problems: list[Residuals]) -> Posterior:
    """Return the posterior of all classes, with the variances that the scores say."""
    flats = [residuals.flat for residuals in problems]
    each = [Posterior.of_residuals(flat, int(n_cells(flat.n)[0]), plain=True) for flat in flats]
    return replace(Posterior.joined(each), few=None, at_values=None)


def _labels(score: Array, rng: np.random.Generator, size: int) -> Array:
    """Draw labels (rows, size) from the probabilities of each row."""
    edge = np.cumsum(score, axis=1)
    edge /= edge[:, -1:]
    bounds = np.ascontiguousarray(edge[:, :-1].T)
    labels = np.zeros((len(score), size), dtype=np.min_scalar_type(score.shape[1]))
    for i in range(size):
        uniform, label = rng.random(len(score)), np.zeros(len(score), dtype=labels.dtype)
        for bound in bounds:
            label += uniform >= bound
        labels[:, i] = label
    return labels


def _class_coefficients(score: Array, weight: Array | None, outcome: Array, cells: int) -> Array:
    """Return the coefficients of a class, (size, cells), for outcomes (rows, size) on these scores."""
    from scipy.fft import dct

    order = np.argsort(score, kind="stable")
    s = score[order].astype(np.float64)
    w = np.ones(s.size) if weight is None else weight[order] * (s.size / weight.sum())
    start = np.flatnonzero(np.diff(s, prepend=-1.0))
    mass, scored, spread = (np.add.reduceat(array, start) for array in (w, w * s, w * w))
    step = Residuals(mass, scored / mass, np.zeros(mass.size), spread)
    edges = Edges.of(step, cells)
    # Only the sums up to the edges matter: the steps between them are counted as one.
    ends, inner = edges.met(mass.size)
    first = start[ends[:-1]]
    if weight is None:
        count = np.add.reduceat(outcome[order], first, axis=0, dtype=np.int64).astype(np.float64)
    else:
        few = max(1, TABLE // s.size)
        blocks = (outcome[order, a : a + few] * w[:, None] for a in range(0, outcome.shape[1], few))
        count = np.concatenate([np.add.reduceat(block, first, axis=0) for block in blocks], axis=1)
    total = running(count.T) - running((mass * step.score)[None])[:, ends]
    return np.asarray(dct(inner.sums(total) / edges.unit, norm="ortho"))


def any_of(chances: list[float]) -> float:
    """Return a p-value for several hypotheses at once that holds however they depend on each other."""
    return min(1.0, len(chances) * min(chances))

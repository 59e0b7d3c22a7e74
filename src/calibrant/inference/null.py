"""What a calibrated model would show: the evidence and the error of data simulated from the scores.

Under the hypothesis the variance of every outcome is known, so the clock is fixed, the coefficients
are linear in the outcomes, and a thousand simulated data sets cost one matrix product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from calibrant.compiled import once
from calibrant.estimators.base import Norm
from calibrant.evidence import Array, Residuals
from calibrant.evidence.draws import Outcomes
from calibrant.inference.joint_labels import draw_labels
from calibrant.inference.walks import show
from calibrant.posterior.clock import n_cells
from calibrant.posterior.gap import Posterior, Terms, judged

# Steps that outcomes are drawn for; more are joined, which changes nothing one could see.
STEPS = 2048
# Cells along the score in the test for rough gaps, at most.
FINEST = 1024
# Shares of the level that the Bayes factors of smooth and of other gaps, the range, a shift and a slope of
# the log odds, and the test for rough gaps have. Scores that rows share are likely to have gaps of their own.
SHARES, SHARED_SCORES = (0.3, 0.15, 0.2, 0.15, 0.1, 0.1), (0.1, 0.5, 0.15, 0.1, 0.1, 0.05)
# Simulated sets whose error is read.
READ = 300
# Numbers in the largest table of simulated outcomes, and simulated sets that are held at once.
TABLE, AT_ONCE = 1 << 22, 1000


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


def by_class(posterior: Posterior, z: Array, norm: Norm, read: int | None = None) -> Terms:
    """Return the terms of other coefficients (sets, classes, cells) on the same scores.

    Errors are those of the first `read` sets, and zero in the others.
    """
    read = len(z) if read is None else min(read, len(z))
    each = []
    for k in range(z.shape[1]):
        frame = posterior[k : k + 1]
        parts = [frame.again(z[:read, k]).terms(norm)] if read else []
        if read < len(z):
            parts.append(frame.again(z[read:, k]).terms(None))
        each.append(Terms(*(np.concatenate(part) for part in zip(*parts, strict=True))))
    return Terms(*(np.stack(terms, axis=1) for terms in zip(*each, strict=True)))


@dataclass(frozen=True, eq=False)
class Simulated:
    """Evidence against calibration, and error, of simulated calibrated data; and the observed evidence.

    `exhaustive` says that the simulated data are all that there can be, and not a sample of them.
    """

    evidence: Array
    error: Array
    observed: float
    exhaustive: bool = False

    @property
    def p_value(self) -> float:
        """Share of simulated data with at least the observed evidence, the data themselves included."""
        more = np.count_nonzero(self.evidence >= self.observed - 1e-12 * abs(self.observed))
        return (1 + int(more)) / (1 + self.evidence.size)

    @property
    def p_floor(self) -> float:
        """Smallest p-value that can be found."""
        # Where all signs are turned the data are as they were.
        return (1 + self.exhaustive) / (1 + self.evidence.size)


class Ranked(NamedTuple):
    """Simulated data of a problem, the posterior that they are held against, and what they say.

    Attributes
    ----------
    simulated : Simulated
    observed : Posterior
    read : Posterior
        Of the first `READ` sets.
    z : list of arrays (sets, cells)
        Coefficients of all sets, where they are asked for.
    """

    simulated: Simulated
    observed: Posterior
    read: Posterior
    z: list[Array]


def later(residuals: Residuals, norm: Norm, rng: np.random.Generator, size: int) -> Callable[[], Simulated]:
    """Return what simulates one problem when it is first called; it holds no more than some steps.

    The evidence joins statistics by the least of their ranks: the Bayes factor of smooth gaps, and that of
    gaps that live in one place or at few scores; the range of the cumulated residuals (ECCE-R), which is
    best at gaps of one sign; those of a shift and of a slope in the log odds, which are best at rare
    outcomes; and the largest part of the variance in any stretch of frequencies along the score, which
    finds gaps too rough for all.
    """
    steps = residuals.coarser(STEPS)
    cells = min(int(n_cells(residuals.flat.n)[0]), STEPS // 2)
    return once(lambda: ranked(steps, Outcomes.of(steps).blocks(rng, size), norm, cells).simulated)


def ranked(
    steps: Residuals,
    blocks: Iterable[Array],
    norm: Norm,
    cells: int,
    finest: int = FINEST,
    *,
    keep: bool = False,
) -> Ranked:
    """Rank the evidence of a problem among that of simulated residuals.

    Parameters
    ----------
    blocks : iterable of arrays (sets, steps)
        Simulated residuals at each step of the problem.
    cells, finest : int
        Cells of equal variance, and cells along the score for rough gaps at most.
    keep : bool
        Whether the coefficients of all sets are wanted.
    """
    observed = Posterior.of_residuals(steps.flat, cells, plain=True)
    read, shown, z = None, [], []
    smooth, local = [], []
    for chunk in _chunks(blocks):
        seen = show(steps, chunk, cells, finest)
        residual = _at_shared_scores(observed, chunk)
        # The error is read of the first sets alone.
        ends = (0, len(seen.z)) if read is not None else (0, min(READ, len(seen.z)), len(seen.z))
        for first, last in pairwise(ends):
            if first == last:
                continue
            part = observed.again(seen.z[first:last], tuple(each[first:last] for each in residual))
            read = part if read is None else read
            smooth.append(part.evidence_of_process)
            local.append(part.local)
        shown.append(seen)
        z += [seen.z] if keep else []
    assert read is not None
    shown.append(show(steps, [steps.residual[None]], cells, finest))
    smooth.append(observed.evidence_of_process)
    local.append(observed.local)
    ranks = [rank(np.concatenate(each)) for each in (smooth, local, [seen.reach for seen in shown])]
    for way in np.concatenate([seen.ways for seen in shown], axis=1):
        ranks.append(np.minimum(1.0, 2 * np.minimum(rank(way), rank(-way))))
    rough = [seen.rough for seen in shown if seen.rough is not None]
    if rough:
        ranks.append(rank(np.concatenate(rough)))
    effects = observed.effects[0] if observed.effects else None
    shares = SHARED_SCORES if effects is not None and effects.ties.dense else SHARES
    joined = -np.min([each / share for each, share in zip(ranks, shares, strict=False)], axis=0)
    errors = error(read.terms(norm), norm)
    return Ranked(Simulated(joined[:-1], errors, float(joined[-1])), observed, read, z)


def _chunks(blocks: Iterable[Array]) -> Iterator[list[Array]]:
    """Gather blocks of sets, so that enough of them are looked at together and not too many are held."""
    held: list[Array] = []
    for block in blocks:
        held.append(block)
        if sum(map(len, held)) >= AT_ONCE:
            yield held
            held = []
    if held:
        yield held


def _at_shared_scores(observed: Posterior, residuals: list[Array]) -> tuple[Array, ...]:
    """Return the residuals of simulated sets at scores that rows share, as shares of all rows."""
    if not observed.effects or (effects := observed.effects[0]) is None:
        return ()
    return (effects.ties.residual_of(np.concatenate(residuals)) / effects.ties.n,)


def drawn(steps: Residuals, rng: np.random.Generator, size: int) -> Array:
    """Draw `size` sets of outcomes from the scores, and return their residuals at each step."""
    return np.concatenate(list(Outcomes.of(steps).blocks(rng, size)))


def rank(statistic: Array) -> Array:
    """Return the share of all values that are at least as large as each; ties share the larger rank.

    Values that differ by rounding alone, in single precision, are tied: sets with the same outcomes have the
    same statistic.
    """
    step = 1e-5 * max(1.0, float(np.median(np.abs(statistic))))
    statistic = np.round(statistic / step)
    order = np.sort(statistic)
    return (statistic.size - np.searchsorted(order, statistic, side="left")) / statistic.size


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
    evidence: list[Array] = []
    for first in range(0, size, AT_ONCE):
        drawn = draw_labels(score, weight, cells, rng, min(AT_ONCE, size - first))
        null = by_class(observed, drawn, norm, 0 if first else READ)
        if not first:
            errors = error(Terms(*(term[:READ] for term in null)), norm, cells)
        evidence.append(together(null, cells))
    seen = Terms(*(term[None] for term in observed.terms(norm)))
    return Simulated(np.concatenate(evidence), errors, float(together(seen, cells)[0]))


def _observed(problems: list[Residuals]) -> Posterior:
    """Return the posterior of all classes, with the variances that the scores say."""
    flats = [residuals.flat for residuals in problems]
    each = [Posterior.of_residuals(flat, int(n_cells(flat.n)[0]), plain=True) for flat in flats]
    return Posterior.joined(each).smooth_alone


def any_of(chances: list[float]) -> float:
    """Return a p-value for several hypotheses at once that holds however they depend on each other."""
    return min(1.0, len(chances) * min(chances))

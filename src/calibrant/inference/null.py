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
from calibrant.inference.cumulative_statistics import cumulative_statistics
from calibrant.posterior.gap import Posterior, Terms
from calibrant.posterior.variance_time import n_cells
from calibrant.score_data import Array, Residuals
from calibrant.score_data.draws import Outcomes

# Steps that outcomes are drawn for; more are joined, which changes nothing one could see.
STEPS = 2048
# Cells along the score in the test for rough gaps, at most.
FINEST = 1024
# Shares of the level that the Bayes factors of smooth and of other gaps, the range, a shift and a slope of
# the log odds, and the test for rough gaps have. Scores that rows share are likely to have gaps of their own.
SHARES, SHARED_SCORES = (0.3, 0.15, 0.2, 0.15, 0.1, 0.1), (0.1, 0.5, 0.15, 0.1, 0.1, 0.05)
# Simulated sets whose error is read.
READ = 300
# Simulated sets that are held at once.
AT_ONCE = 1000


def error(terms: Terms, norm: Norm) -> Array:
    """Return the error of each problem."""
    return np.minimum(terms.own if norm == "l1" else np.sqrt(terms.own), 1.0)


@dataclass(frozen=True, eq=False)
class SimulatedNull:
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

    simulated: SimulatedNull
    observed: Posterior
    read: Posterior
    z: list[Array]


def later(
    residuals: Residuals, norm: Norm, rng: np.random.Generator, size: int
) -> Callable[[], SimulatedNull]:
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
        seen = cumulative_statistics(steps, chunk, cells, finest)
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
    shown.append(cumulative_statistics(steps, [steps.residual[None]], cells, finest))
    smooth.append(observed.evidence_of_process)
    local.append(observed.local)
    ranks = [rank(np.concatenate(each)) for each in (smooth, local, [seen.reach for seen in shown])]
    for way in np.concatenate([seen.score_directions for seen in shown], axis=1):
        ranks.append(np.minimum(1.0, 2 * np.minimum(rank(way), rank(-way))))
    rough = [seen.rough for seen in shown if seen.rough is not None]
    if rough:
        ranks.append(rank(np.concatenate(rough)))
    effects = observed.effects[0] if observed.effects else None
    shares = SHARED_SCORES if effects is not None and effects.ties.dense else SHARES
    joined = -np.min([each / share for each, share in zip(ranks, shares, strict=False)], axis=0)
    errors = error(read.terms(norm), norm)
    return Ranked(SimulatedNull(joined[:-1], errors, float(joined[-1])), observed, read, z)


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


def any_of(chances: list[float]) -> float:
    """Return a p-value for several hypotheses at once that holds however they depend on each other."""
    return min(1.0, len(chances) * min(chances))

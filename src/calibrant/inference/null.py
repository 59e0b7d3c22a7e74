"""The calibration test of one problem, and the null distribution of its estimate, by simulation.

H0: the model is calibrated. Outcomes are simulated from the scores. Six statistics are computed from the
observed residuals and from those of each simulated data set. Each statistic is replaced by its rank among all
data sets, divided by its share of the level; the minimum over the statistics is the combined statistic. The
p-value is (1 + number of simulated data sets with at least the observed statistic) / (1 + number of simulated
data sets).

Under H0 the variance of every outcome is known. The variance time is therefore the same for all data sets,
and their cosine coefficients are linear in the outcomes.

The test is described in docs/methods/calibration-test.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from calibrant.estimators.base import Norm
from calibrant.inference.cumulative_statistics import cumulative_statistics
from calibrant.parallel import compute_once
from calibrant.posterior.gap import Posterior, Terms
from calibrant.posterior.variance_time import n_cells
from calibrant.score_data import Array, Residuals
from calibrant.score_data.draws import Outcomes
from calibrant.settings import TEST

# Largest number of steps (distinct scores) that outcomes are drawn for, which bounds the cost; neighbouring
# scores are merged.
STEPS = 2048
# Number of simulated data sets held in memory at once.
AT_ONCE = 1000


def error(terms: Terms, norm: Norm) -> Array:
    """Return the error of each problem."""
    return np.minimum(terms.own if norm == "l1" else np.sqrt(terms.own), 1.0)


@dataclass(frozen=True, eq=False)
class SimulatedNull:
    """Test statistics and estimates of data sets simulated under H0, and the observed test statistic.

    Attributes
    ----------
    test_statistic : array (data sets,)
        Combined statistic of each simulated data set; large values are evidence against calibration.
    error : array
        Estimates of the calibration error from simulated data sets: their null distribution.
    observed : float
        Combined statistic of the data.
    exhaustive : bool
        Whether all possible data sets are enumerated, as with the sign flips of few clusters.
    """

    test_statistic: Array
    error: Array
    observed: float
    exhaustive: bool = False

    @property
    def p_value(self) -> float:
        """Share of the data sets, the observed one included, with at least the observed statistic."""
        exceeding = np.count_nonzero(self.test_statistic >= self.observed - 1e-12 * abs(self.observed))
        return (1 + int(exceeding)) / (1 + self.test_statistic.size)

    @property
    def p_floor(self) -> float:
        """Smallest possible p-value."""
        # Flipping the signs of all clusters gives the observed statistic once more.
        return (1 + self.exhaustive) / (1 + self.test_statistic.size)


class Ranked(NamedTuple):
    """The test of one problem, and the posteriors that it was computed from.

    Attributes
    ----------
    simulated : SimulatedNull
        The test.
    observed : Posterior
        Posterior of the observed residuals, with the variance under H0.
    first : Posterior
        Posteriors of the first `TEST.null_data_sets` simulated data sets.
    z : list of arrays (data sets, cells)
        Cosine coefficients of all simulated data sets, if they were asked for.
    """

    simulated: SimulatedNull
    observed: Posterior
    first: Posterior
    z: list[Array]


def later(
    residuals: Residuals, norm: Norm, rng: np.random.Generator, size: int
) -> Callable[[], SimulatedNull]:
    """Return a function that tests one problem when it is first called; only merged residuals are held.

    The statistics are

    - the Bayes factor of smooth gaps; - the Bayes factor of local gaps and of score effects; - the range of
    the cumulative residuals (Kuiper, ECCE-R), most powerful against gaps of one sign; - the score statistics
    of a shift and of a slope in the log-odds, most powerful for rare outcomes; - the largest normalised band
    of the periodogram along the score, for gaps that oscillate too rapidly for the
      others.
    """
    steps = residuals.coarser(STEPS)
    cells = min(int(n_cells(residuals.flat.n)[0]), STEPS // 2)
    return compute_once(lambda: ranked(steps, Outcomes.of(steps).blocks(rng, size), norm, cells).simulated)


def ranked(
    steps: Residuals,
    blocks: Iterable[Array],
    norm: Norm,
    cells: int,
    finest: int | None = None,
    *,
    keep: bool = False,
) -> Ranked:
    """Test one problem against simulated residuals.

    Parameters
    ----------
    steps : Residuals
        The observed residuals of the problem at its distinct scores.
    blocks : iterable of arrays (data sets, steps)
        Residuals simulated under H0.
    norm : str
        Norm of the estimates under H0.
    cells, finest : int
        Number of cells of equal variance, and largest number of cells of equal width for the periodogram (by
        default `TEST.periodogram_max_cells`).
    keep : bool
        Whether to return the cosine coefficients of all data sets.
    """
    finest = TEST.periodogram_max_cells if finest is None else finest
    observed = Posterior.of_residuals(steps.flat, cells, plain=True)
    first_sets, errors, statistics, z = None, np.empty(0), [], []
    smooth, local = [], []
    for chunk in _chunks(blocks):
        chunk_statistics = cumulative_statistics(steps, chunk, cells, finest)
        residual = _at_repeated_scores(observed, chunk)
        # Estimates are computed from the first data sets only.
        ends = (
            (0, len(chunk_statistics.z))
            if first_sets is not None
            else (0, min(TEST.null_data_sets, len(chunk_statistics.z)), len(chunk_statistics.z))
        )
        for start, stop in pairwise(ends):
            if start == stop:
                continue
            posterior = observed.again(
                chunk_statistics.z[start:stop], tuple(each[start:stop] for each in residual)
            )
            if first_sets is None:
                # The Bayes factors below are a part of what the estimates are computed from.
                first_sets, errors = posterior, error(posterior.terms(norm), norm)
            smooth.append(posterior.evidence_of_process)
            local.append(posterior.local)
        statistics.append(chunk_statistics)
        z += [chunk_statistics.z] if keep else []
    assert first_sets is not None
    statistics.append(cumulative_statistics(steps, [steps.residual[None]], cells, finest))
    smooth.append(observed.evidence_of_process)
    local.append(observed.local)
    ranks = [
        rank(np.concatenate(each))
        for each in (smooth, local, [chunk_statistics.kuiper_range for chunk_statistics in statistics])
    ]
    for direction in np.concatenate(
        [chunk_statistics.score_directions for chunk_statistics in statistics], axis=1
    ):
        ranks.append(np.minimum(1.0, 2 * np.minimum(rank(direction), rank(-direction))))
    periodogram = [
        chunk_statistics.periodogram
        for chunk_statistics in statistics
        if chunk_statistics.periodogram is not None
    ]
    if periodogram:
        ranks.append(rank(np.concatenate(periodogram)))
    effects = observed.effects[0] if observed.effects else None
    repeated = effects is not None and effects.ties.dense
    shares = TEST.level_shares_repeated if repeated else TEST.level_shares
    combined = -np.min([each / share for each, share in zip(ranks, shares, strict=False)], axis=0)
    return Ranked(SimulatedNull(combined[:-1], errors, float(combined[-1])), observed, first_sets, z)


def _chunks(blocks: Iterable[Array]) -> Iterator[list[Array]]:
    """Join blocks of data sets until `AT_ONCE` are held."""
    held: list[Array] = []
    for block in blocks:
        held.append(block)
        if sum(map(len, held)) >= AT_ONCE:
            yield held
            held = []
    if held:
        yield held


def _at_repeated_scores(observed: Posterior, residuals: list[Array]) -> tuple[Array, ...]:
    """Return the residuals of simulated data sets at repeated scores, as shares of all rows."""
    if not observed.effects or (effects := observed.effects[0]) is None:
        return ()
    return (effects.ties.residual_of(np.concatenate(residuals)) / effects.ties.n,)


def drawn(steps: Residuals, rng: np.random.Generator, size: int) -> Array:
    """Simulate `size` data sets from the scores, and return their residuals (data sets, steps)."""
    return np.concatenate(list(Outcomes.of(steps).blocks(rng, size)))


def rank(statistic: Array) -> Array:
    """Return the share of the values that are at least as large as each value; ties share the larger rank.

    Values that differ by rounding in single precision are tied, because data sets with the same outcomes have
    the same statistic.
    """
    step = 1e-5 * max(1.0, float(np.median(np.abs(statistic))))
    statistic = np.round(statistic / step)
    ordered = np.sort(statistic)
    return (statistic.size - np.searchsorted(ordered, statistic, side="left")) / statistic.size


def bonferroni(p_values: list[float]) -> float:
    """Return the p-value of the intersection of hypotheses under any dependence (Bonferroni)."""
    return min(1.0, len(p_values) * min(p_values))

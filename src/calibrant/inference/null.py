"""The calibration test of one problem, and the null distribution of its estimate, by simulation.

H0: the model is calibrated. Outcomes are simulated from the scores. Six statistics (five without the
periodogram, which needs 512 rows) are computed from the observed residuals and from those of each simulated
data set. Each statistic is replaced by its rank among all data sets, divided by its share of the level; the
combined statistic is minus the minimum over the statistics. The
p-value is (1 + number of simulated data sets with at least the observed statistic) / (1 + number of simulated
data sets).

Range, shift, slope and periodogram come from cumulative sums of residuals; so do the coefficients behind the
two Bayes factors. All are computed in one pass over blocks of simulated data sets, so that the residuals of
all data sets are never held at once.

Under H0 the variance of every outcome is known. The variance time is therefore the same for all data sets,
and their cosine coefficients are linear in the outcomes.

The test is described in docs/methods/calibration-test.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, pairwise
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from calibrant import compiled
from calibrant.estimators.base import Norm
from calibrant.inference.result import Null
from calibrant.parallel import compute_once
from calibrant.posterior.gap import Posterior, Terms, twiddle_factors
from calibrant.posterior.variance_time import CELLS, cumulative_sums, n_cells, pilot_variance
from calibrant.score_data import Array, Residuals
from calibrant.score_data.draws import Outcomes
from calibrant.settings import PRIOR, TEST

# Largest number of steps (distinct scores) that outcomes are drawn for, which bounds the cost; neighbouring
# scores are merged.
STEPS = 2048
# Number of simulated data sets held in memory at once.
AT_ONCE = 1000
# Periodogram: largest number of cells, least mean number of rows of a cell, and widths of the bands in
# frequencies.
MAX_BAND_CELLS, MIN_BAND_CELL_ROWS, BAND_WIDTHS = 1024, 8, (1, 4, 16, 64, 256)
# Distance from 0 and 1 that scores are moved to, so that their log-odds are finite.
MIN_SCORE_DISTANCE = 1e-6
# Data sets simulated under H0.
DATA_SETS = 999
# Those of them that the null distribution of the estimate is computed from.
NULL_DATA_SETS = 300
# Levels of the quantiles of a null distribution that are returned.
QUANTILE_LEVELS = (0.5, 0.95)


def error(terms: Terms, norm: Norm) -> Array:
    """Return the error of each problem."""
    return np.minimum(terms.unpooled if norm == "l1" else np.sqrt(terms.unpooled), 1.0)


def null_distribution(estimates: Array) -> Null:
    """Return the null distribution of an estimate from simulated data sets."""
    quantiles = np.quantile(estimates, QUANTILE_LEVELS).tolist()
    by_level = MappingProxyType(dict(zip(QUANTILE_LEVELS, quantiles, strict=True)))
    return Null(float(np.mean(estimates)), by_level)


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


class ProblemTest(NamedTuple):
    """The test of one problem, and the posteriors that it was computed from.

    Attributes
    ----------
    simulated : SimulatedNull
        The test.
    observed : Posterior
        Posterior of the observed residuals, with the variance under H0.
    first : Posterior
        Posteriors of the first `NULL_DATA_SETS` simulated data sets.
    z : list of arrays (data sets, cells)
        Cosine coefficients of all simulated data sets, if they were asked for.
    """

    simulated: SimulatedNull
    observed: Posterior
    first: Posterior
    z: list[Array]


def lazy_test(
    residuals: Residuals, norm: Norm, rng: np.random.Generator, size: int
) -> Callable[[], SimulatedNull]:
    """Return a function that tests one problem when it is first called; only merged residuals are held.

    The statistics are

    - the Bayes factor of smooth gaps;
    - the Bayes factor of local gaps and of score effects;
    - the range of the cumulative residuals (Kuiper, ECCE-R), most powerful against gaps of one sign;
    - the score statistic of a shift in the log-odds, and that of a slope, most powerful for rare outcomes;
    - the largest normalised band of the periodogram along the score, for gaps that oscillate too rapidly for
      the others; left out with fewer than 512 rows, or if all scores are equal.
    """
    steps = residuals.coarser(STEPS)
    cells = min(int(n_cells(residuals.flat.n)[0]), STEPS // 2)
    return compute_once(
        lambda: simulate_test(steps, Outcomes.of(steps).blocks(rng, size), norm, cells).simulated
    )


def simulate_test(
    steps: Residuals,
    blocks: Iterable[Array],
    norm: Norm,
    cells: int,
    finest: int | None = None,
    *,
    keep: bool = False,
) -> ProblemTest:
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
        default `MAX_BAND_CELLS`).
    keep : bool
        Whether to return the cosine coefficients of all data sets.
    """
    finest = MAX_BAND_CELLS if finest is None else finest
    observed = Posterior.of_residuals(steps.flat, cells, plain=True)
    first_sets, errors, statistics, z = None, np.empty(0), [], []
    smooth, local = [observed.process_log_bayes_factor], [observed.local]
    for chunk in _chunks(chain([steps.residual[None]], blocks)):
        chunk_statistics = cumulative_statistics(steps, chunk, cells, finest)
        residual = _at_repeated_scores(observed, chunk)
        ends = [0, len(chunk_statistics.z)]
        if first_sets is None:
            # The observed residuals are the first. Estimates are computed from the first data sets only.
            ends = [1, min(1 + NULL_DATA_SETS, ends[1]), ends[1]]
        z += [chunk_statistics.z[ends[0] :]] if keep else []
        for start, stop in pairwise(ends):
            if start == stop:
                continue
            posterior = observed.with_data(
                chunk_statistics.z[start:stop], tuple(each[start:stop] for each in residual)
            )
            if first_sets is None:
                # The Bayes factors below are a part of what the estimates are computed from.
                first_sets, errors = posterior, error(posterior.terms(norm), norm)
            smooth.append(posterior.process_log_bayes_factor)
            local.append(posterior.local)
        statistics.append(chunk_statistics)
    assert first_sets is not None
    directions = np.concatenate([each.score_directions for each in statistics], axis=1)
    columns = [np.concatenate(each) for each in (smooth, local, [each.kuiper_range for each in statistics])]
    columns += [*directions, *-directions]
    if periodogram := [each.periodogram for each in statistics if each.periodogram is not None]:
        columns.append(np.concatenate(periodogram))
    ranks = rank(np.stack(columns))
    two_sided = np.minimum(1.0, 2 * np.minimum(ranks[3:5], ranks[5:7]))
    ranks = np.concatenate([ranks[:3], two_sided, ranks[7:]])
    effects = observed.effects[0] if observed.effects else None
    repeated = effects is not None and effects.ties.dense
    shares = np.array(TEST.level_shares_repeated if repeated else TEST.level_shares)[: len(ranks)]
    combined = -(ranks / shares[:, None]).min(axis=0)
    return ProblemTest(SimulatedNull(combined[1:], errors, float(combined[0])), observed, first_sets, z)


def _chunks(blocks: Iterable[Array]) -> Iterator[list[Array]]:
    """Join blocks of data sets until `AT_ONCE` are held."""
    blocks_so_far: list[Array] = []
    for block in blocks:
        blocks_so_far.append(block)
        if sum(map(len, blocks_so_far)) >= AT_ONCE:
            yield blocks_so_far
            blocks_so_far = []
    if blocks_so_far:
        yield blocks_so_far


def _at_repeated_scores(observed: Posterior, residuals: list[Array]) -> tuple[Array, ...]:
    """Return the residuals of simulated data sets at repeated scores, as shares of all rows."""
    if not observed.effects or (effects := observed.effects[0]) is None:
        return ()
    return (effects.ties.residual_of(np.concatenate(residuals)) / effects.ties.n,)


def simulated_residuals(steps: Residuals, rng: np.random.Generator, size: int) -> Array:
    """Simulate `size` data sets from the scores, and return their residuals (data sets, steps)."""
    return np.concatenate(list(Outcomes.of(steps).blocks(rng, size)))


def rank(statistic: Array) -> Array:
    """Return the share of the values that are at least as large as each value; ties share the larger rank.

    Statistics are ranked along the last axis. Values that differ by rounding in single precision are tied,
    because data sets with the same outcomes have the same statistic.
    """
    size = statistic.shape[-1]
    step = 1e-5 * np.maximum(1.0, np.median(np.abs(statistic), axis=-1, keepdims=True))
    rows = np.round(statistic / step).reshape(-1, size)
    below = [np.searchsorted(ordered, row) for ordered, row in zip(np.sort(rows), rows, strict=True)]
    return np.asarray((size - np.reshape(below, statistic.shape)) / size)


# -- cumulative statistics -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Edges:
    """Positions of the edges of cells of equal variance among the steps.

    A step on both sides of an edge is divided between the cells in proportion to its variance.

    Attributes
    ----------
    step : array of int (cells - 1,)
        Step that each edge falls into.
    share : array (cells - 1,)
        Share of the variance of this step that lies below the edge.
    unit : float
        Standard deviation of the sum of residuals in a cell.
    """

    step: Array
    share: Array
    unit: float

    @classmethod
    def of(cls, steps: Residuals, cells: int) -> Edges:
        """Return the edges between this many cells."""
        flat = steps.flat
        cumulative_variance = cumulative_sums(flat.spread * pilot_variance(flat))[0]
        time = cumulative_variance * (cells / cumulative_variance[-1])
        edge = np.arange(1, cells)
        step = np.clip(np.searchsorted(time, edge, side="right") - 1, 0, time.size - 2)
        width = time[step + 1] - time[step]
        share = np.divide(edge - time[step], width, out=np.zeros(width.shape), where=width > 0)
        return cls(step, np.clip(share, 0.0, 1.0), float(np.sqrt(cumulative_variance[-1] / cells)))

    def merge_steps(self, steps: int) -> tuple[Array, Edges]:
        """Merge the steps between edges: return the boundaries of merged steps, and the edges among them."""
        ends = np.unique(np.concatenate([[0], self.step, self.step + 1, [steps]]))
        return ends, Edges(np.searchsorted(ends, self.step), self.share, self.unit)

    def sums(self, total: Array) -> Array:
        """Return sums over the cells, from cumulative sums over the steps that begin with 0."""
        low, high = total[:, self.step], total[:, self.step + 1]
        return np.diff(low + self.share * (high - low), axis=1, prepend=0.0, append=total[:, -1:])


class CumulativeStatistics(NamedTuple):
    """Statistics of data sets of residuals.

    Attributes
    ----------
    z : array (data sets, cells)
        Cosine coefficients over cells of equal variance.
    kuiper_range : array (data sets,)
        Range of the cumulative residuals.
    score_directions : array (2, data sets)
        Score statistics of a shift and of a slope in the log-odds.
    periodogram : array (data sets,) or None
        Largest normalised band of the periodogram along the score; None for few rows.
    """

    z: Array
    kuiper_range: Array
    score_directions: Array
    periodogram: Array | None


class _ScoreCells(NamedTuple):
    """Cells of equal width along the score, for the periodogram.

    Attributes
    ----------
    cells : int
        Number of cells; 0 if there are too few rows.
    first, last : arrays of int
        First step, and one after the last step, of each cell with rows.
    cell : array of int
        Number of each cell with rows.
    weight : array
        One over the standard deviation of the sum of residuals in each cell with rows.
    """

    cells: int
    first: Array
    last: Array
    cell: Array
    weight: Array

    @classmethod
    def none(cls) -> _ScoreCells:
        """Return no cells."""
        empty: Array = np.zeros(0, dtype=np.int64)
        return cls(0, empty, empty, empty, np.zeros(0))

    @classmethod
    def of(cls, steps: Residuals, finest: int) -> _ScoreCells:
        score, n = steps.score, float(steps.n)
        low, high = score[0], score[-1]
        min_rows = MIN_BAND_CELL_ROWS
        count = 2 ** int(np.log2(min(finest, n / min_rows))) if n >= min_rows else 0
        if count < CELLS or not high > low:
            return cls.none()
        cell = np.minimum((score - low) / (high - low) * count, count - 1).astype(np.int64)
        first = np.flatnonzero(np.diff(cell, prepend=-1))
        variance = np.add.reduceat(
            steps.spread * (score * (1 - score) + PRIOR.smallest_outcome_variance / np.sqrt(n)), first
        )
        return cls(count, first, np.append(first[1:], score.size), cell[first], 1 / np.sqrt(variance))

    @property
    def widths(self) -> list[int]:
        """Widths of the bands, in frequencies."""
        return [width for width in BAND_WIDTHS if width <= self.cells // 2]

    def normal(self, largest: Array) -> Array:
        """Normalise the largest band of each width (data sets, widths), and return their maximum.

        The normal approximation of chi-square by Wilson and Hilferty need not be exact, because the observed
        statistic is ranked among simulated ones.
        """
        # Empty cells have no noise, so the mean of a squared coefficient is the share of the other cells.
        width, share = np.array(self.widths), self.cell.size / self.cells
        root = np.cbrt(largest / (width * share))
        return np.asarray(((root - (1 - 2 / (9 * width))) / np.sqrt(2 / (9 * width))).max(axis=1))


def cumulative_statistics(
    steps: Residuals, blocks: Iterable[Array], cells: int, finest: int
) -> CumulativeStatistics:
    """Compute the statistics of residuals (data sets, steps), block by block.

    Parameters
    ----------
    steps : Residuals
        Residuals of a single problem at its distinct scores.
    blocks : iterable of arrays (data sets, steps)
        Residuals of the data sets.
    cells, finest : int
        Number of cells of equal variance, and largest number of cells of equal width for the periodogram.
    """
    edges, score_cells, score_directions = (
        Edges.of(steps, cells),
        _ScoreCells.of(steps, finest),
        _score_directions(steps),
    )
    compute = _implementation(cells)
    z, statistics = zip(
        *(compute(block, edges, score_cells, score_directions, cells) for block in blocks), strict=True
    )
    z_cells, table = np.concatenate(z), np.concatenate(statistics)
    z_cells /= edges.unit
    periodogram = score_cells.normal(table[:, 3:]) if score_cells.cells else None
    return CumulativeStatistics(z_cells, table[:, 0], table[:, 1:3].T, periodogram)


def coefficients(residual: Array, edges: Edges) -> Array:
    """Return only the cosine coefficients over cells of equal variance of residuals (data sets, steps)."""
    cells = edges.step.size + 1
    z, _ = _implementation(cells)(
        residual, edges, _ScoreCells.none(), np.zeros((2, residual.shape[1])), cells
    )
    z /= edges.unit
    return z


def _implementation(cells: int) -> Callable[[Array, Edges, _ScoreCells, Array, int], tuple[Array, Array]]:
    """Return the function that computes the statistics: compiled if the number of cells is a power of two."""
    return _compiled if hasattr(compiled.loops, "walks") and cells & (cells - 1) == 0 else _plain


def _compiled(
    residual: Array, edges: Edges, score_cells: _ScoreCells, score_directions: Array, cells: int
) -> tuple[Array, Array]:
    z, statistics = np.empty((len(residual), cells)), np.empty((len(residual), 3 + len(score_cells.widths)))
    compiled.loops.walks(  # type: ignore[union-attr]
        np.ascontiguousarray(residual, np.float64), edges.step.astype(np.int64), edges.share,
        score_directions, *(array.astype(np.int64) for array in score_cells[1:4]), score_cells.weight,
        np.array(score_cells.widths, np.int64),
        twiddle_factors(max(cells, score_cells.cells, 2)), z, statistics, score_cells.cells,
    )  # fmt: skip
    return z, statistics


def _plain(
    residual: Array, edges: Edges, score_cells: _ScoreCells, score_directions: Array, cells: int
) -> tuple[Array, Array]:
    from scipy.fft import dct

    residual = residual.astype(np.float64, copy=False)
    total = cumulative_sums(residual)
    statistics = np.empty((len(residual), 3 + len(score_cells.widths)))
    statistics[:, 0], statistics[:, 1:3] = np.ptp(total, axis=1), residual @ score_directions.T
    if score_cells.cells:
        standardised = np.zeros((len(residual), score_cells.cells))
        standardised[:, score_cells.cell] = (
            total[:, score_cells.last] - total[:, score_cells.first]
        ) * score_cells.weight
        cumulative_power = cumulative_sums(dct(standardised, norm="ortho")[:, 1:] ** 2)
        for i, width in enumerate(score_cells.widths, 3):
            stride = max(1, width // 2)
            statistics[:, i] = (cumulative_power[:, width::stride] - cumulative_power[:, :-width:stride]).max(
                axis=1
            )
    return dct(edges.sums(total), norm="ortho"), statistics


def _score_directions(steps: Residuals) -> Array:
    """Return the weights (2, steps) of the score statistics of a shift and of a slope in the log-odds.

    These tests are locally most powerful against a wrong prevalence and a wrong temperature. For rare
    outcomes the statistics are skewed, so each side is ranked separately.
    """
    p = np.clip(steps.score, MIN_SCORE_DISTANCE, 1 - MIN_SCORE_DISTANCE)
    logit = np.log(p) - np.log1p(-p)
    variance = steps.spread * steps.score * (1 - steps.score)
    total = variance.sum()
    mean_logit = variance @ logit / total if total > 0 else 0.0
    score_directions = np.stack([np.ones(logit.shape), logit - mean_logit])
    sd = np.sqrt((score_directions * score_directions) @ variance)
    return np.divide(
        score_directions, sd[:, None], out=np.zeros(score_directions.shape), where=sd[:, None] > 1e-9
    )

"""Statistics of the calibration test that are computed from cumulative sums of residuals.

These are the cosine coefficients over cells of equal variance, the range of the cumulative residuals (Kuiper,
ECCE-R), the score statistics of a shift and of a slope in the log-odds, and the largest band of the
periodogram. They are computed in one pass over blocks of simulated data sets, so that the residuals of all
data sets are never held at once.

The test is described in docs/methods/calibration-test.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from calibrant import compiled
from calibrant.posterior.gap import turns_of
from calibrant.posterior.variance_time import CELLS, pilot_variance, running
from calibrant.score_data import Array, Residuals
from calibrant.settings import PRIOR, TEST


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
        cumulative_variance = running(flat.spread * pilot_variance(flat))[0]
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
        score, n = steps.score, steps.n
        low, high = score[0], score[-1]
        min_rows = TEST.periodogram_min_rows
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
        return [width for width in TEST.periodogram_bands if width <= self.cells // 2]

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
        turns_of(max(cells, score_cells.cells, 2)), z, statistics, score_cells.cells,
    )  # fmt: skip
    return z, statistics


def _plain(
    residual: Array, edges: Edges, score_cells: _ScoreCells, score_directions: Array, cells: int
) -> tuple[Array, Array]:
    from scipy.fft import dct

    residual = residual.astype(np.float64, copy=False)
    total = running(residual)
    statistics = np.empty((len(residual), 3 + len(score_cells.widths)))
    statistics[:, 0], statistics[:, 1:3] = np.ptp(total, axis=1), residual @ score_directions.T
    if score_cells.cells:
        standardised = np.zeros((len(residual), score_cells.cells))
        standardised[:, score_cells.cell] = (
            total[:, score_cells.last] - total[:, score_cells.first]
        ) * score_cells.weight
        cumulative_power = running(dct(standardised, norm="ortho")[:, 1:] ** 2)
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
    p = np.clip(steps.score, TEST.min_score_distance, 1 - TEST.min_score_distance)
    logit = np.log(p) - np.log1p(-p)
    variance = steps.spread * steps.score * (1 - steps.score)
    total = variance.sum()
    mean_logit = variance @ logit / total if total > 0 else 0.0
    score_directions = np.stack([np.ones(logit.shape), logit - mean_logit])
    sd = np.sqrt((score_directions * score_directions) @ variance)
    return np.divide(
        score_directions, sd[:, None], out=np.zeros(score_directions.shape), where=sd[:, None] > 1e-9
    )

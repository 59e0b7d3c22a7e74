"""What the running sums of simulated residuals show: coefficients over cells, and statistics of their own.

The sums of a set are looked at once, while they are at hand; a table of all sets and steps is never held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from calibrant import compiled
from calibrant.posterior.marginal_likelihoods import turns_of
from calibrant.posterior.variance_time import CELLS, LEAST, pilot_variance, running
from calibrant.score_data import Array, Residuals

# The test for rough gaps: cells along the score hold at least so many rows, and stretches have so many
# frequencies; and how close to 0 or 1 a score is taken to be at most.
ROWS, WIDEST, STEEPEST = 8, 256, 1e-6


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
        clock = running(flat.spread * pilot_variance(flat))[0]
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


class CumulativeStatistics(NamedTuple):
    """What sets of residuals show.

    Attributes
    ----------
    z : array (sets, cells)
        Cosine coefficients over cells of equal variance.
    reach : array (sets,)
        Range of the running sums.
    ways : array (2, sets)
        Score statistics of a shift and of a slope in the log odds.
    rough : array (sets,) or None
        Largest share of variance in a stretch of frequencies along the score; None for few rows.
    """

    z: Array
    reach: Array
    score_directions: Array
    rough: Array | None


class _Fine(NamedTuple):
    """Cells along the score: their number, the steps of those that hold any, and one over their noise."""

    cells: int
    first: Array
    last: Array
    cell: Array
    weight: Array

    @classmethod
    def none(cls) -> _Fine:
        """Return no cells."""
        empty: Array = np.zeros(0, dtype=np.int64)
        return cls(0, empty, empty, empty, np.zeros(0))

    @classmethod
    def of(cls, steps: Residuals, finest: int) -> _Fine:
        score, n = steps.score, steps.n
        low, high = score[0], score[-1]
        count = min(finest, 2 ** int(np.log2(n / ROWS))) if n >= ROWS else 0
        if count < CELLS or not high > low:
            return cls.none()
        cell = np.minimum((score - low) / (high - low) * count, count - 1).astype(np.int64)
        first = np.flatnonzero(np.diff(cell, prepend=-1))
        variance = np.add.reduceat(steps.spread * (score * (1 - score) + LEAST / np.sqrt(n)), first)
        return cls(count, first, np.append(first[1:], score.size), cell[first], 1 / np.sqrt(variance))

    @property
    def widths(self) -> list[int]:
        """Numbers of frequencies of the stretches."""
        return [width for width in (1, 4, 16, 64, WIDEST) if width <= self.cells // 2]

    def normal(self, most: Array) -> Array:
        """Return the largest of (sets, widths) on the scale of a normal variable.

        Wilson and Hilferty's cube root need not be exact, since the data are ranked among simulated ones.
        """
        # Empty cells hold no noise: the others' share of all is the mean of a coefficient's square.
        width, share = np.array(self.widths), self.cell.size / self.cells
        root = np.cbrt(most / (width * share))
        return np.asarray(((root - (1 - 2 / (9 * width))) / np.sqrt(2 / (9 * width))).max(axis=1))


def cumulative_statistics(
    steps: Residuals, blocks: Iterable[Array], cells: int, finest: int
) -> CumulativeStatistics:
    """Look at residuals (sets, steps), block after block.

    Parameters
    ----------
    steps : Residuals
        A single problem.
    cells, finest : int
        Cells of equal variance, and cells along the score for rough gaps at most.
    """
    edges, fine, score_directions = Edges.of(steps, cells), _Fine.of(steps, finest), _score_directions(steps)
    look = _looks(cells)
    z, shown = zip(*(look(block, edges, fine, score_directions, cells) for block in blocks), strict=True)
    over_cells, table = np.concatenate(z), np.concatenate(shown)
    over_cells /= edges.unit
    rough = fine.normal(table[:, 3:]) if fine.cells else None
    return CumulativeStatistics(over_cells, table[:, 0], table[:, 1:3].T, rough)


def coefficients(residual: Array, edges: Edges) -> Array:
    """Return the cosine coefficients over cells of equal variance of residuals (sets, steps) alone."""
    cells = edges.step.size + 1
    z, _ = _looks(cells)(residual, edges, _Fine.none(), np.zeros((2, residual.shape[1])), cells)
    z /= edges.unit
    return z


def _looks(cells: int) -> Callable[[Array, Edges, _Fine, Array, int], tuple[Array, Array]]:
    """Return what looks at residuals over so many cells."""
    return _compiled if hasattr(compiled.loops, "walks") and cells & (cells - 1) == 0 else _plain


def _compiled(
    residual: Array, edges: Edges, fine: _Fine, score_directions: Array, cells: int
) -> tuple[Array, Array]:
    z, shown = np.empty((len(residual), cells)), np.empty((len(residual), 3 + len(fine.widths)))
    compiled.loops.walks(  # type: ignore[union-attr]
        np.ascontiguousarray(residual, np.float64), edges.step.astype(np.int64), edges.share,
        score_directions, *(array.astype(np.int64) for array in fine[1:4]), fine.weight,
        np.array(fine.widths, np.int64),
        turns_of(max(cells, fine.cells, 2)), z, shown, fine.cells,
    )  # fmt: skip
    return z, shown


def _plain(
    residual: Array, edges: Edges, fine: _Fine, score_directions: Array, cells: int
) -> tuple[Array, Array]:
    from scipy.fft import dct

    residual = residual.astype(np.float64, copy=False)
    total = running(residual)
    shown = np.empty((len(residual), 3 + len(fine.widths)))
    shown[:, 0], shown[:, 1:3] = np.ptp(total, axis=1), residual @ score_directions.T
    if fine.cells:
        white = np.zeros((len(residual), fine.cells))
        white[:, fine.cell] = (total[:, fine.last] - total[:, fine.first]) * fine.weight
        upto = running(dct(white, norm="ortho")[:, 1:] ** 2)
        for i, width in enumerate(fine.widths, 3):
            step = max(1, width // 2)
            shown[:, i] = (upto[:, width::step] - upto[:, :-width:step]).max(axis=1)
    return dct(edges.sums(total), norm="ortho"), shown


def _score_directions(steps: Residuals) -> Array:
    """Return the weights of the score statistics of a shift and of a slope in the log odds, (2, steps).

    They are the strongest against what a wrong prior or temperature does. Where outcomes are rare they lean,
    so that each side has to be ranked by itself.
    """
    p = np.clip(steps.score, STEEPEST, 1 - STEEPEST)
    logit = np.log(p) - np.log1p(-p)
    variance = steps.spread * steps.score * (1 - steps.score)
    total = variance.sum()
    middle = variance @ logit / total if total > 0 else 0.0
    score_directions = np.stack([np.ones(logit.shape), logit - middle])
    width = np.sqrt((score_directions * score_directions) @ variance)
    return np.divide(
        score_directions, width[:, None], out=np.zeros(score_directions.shape), where=width[:, None] > 1e-9
    )

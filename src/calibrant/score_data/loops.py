"""Sums over rows by the compiled loop, divided among threads."""

from __future__ import annotations

from math import prod

import numpy as np

from calibrant import compiled
from calibrant.parallel import parallel_map, threads
from calibrant.score_data.layout import Layout
from calibrant.score_data.moments import Array, OneHot

# Rows of a problem that a thread sums at a time; the sums of the pieces are added in order.
PIECE = 1 << 19
# Adjacent problems that are summed together; the share of a thread is a multiple of this.
TILE = 64


def sums_of(
    score: Array,
    outcome: Array | OneHot,
    weight: Array | None,
    cuts: Array,
    origin: Array | None,
    powers: int,
    *,
    layout: Layout | None = None,
    squares: bool = False,
) -> Array | None:
    """Sum rows by outcome and group, as `calibrant.score_data.tally` describes it.

    Parameters
    ----------
    score, outcome, weight : arrays
        The rows.
    cuts, origin : arrays
        Shared by all problems, or one row for each.
    powers : int
    layout : Layout, optional
        If given, groups are its cells, and the cuts are the edges of its equal parts.
    squares : bool

    Returns
    -------
    array, shape (powers + 1 + squares, 2, *batch, groups)
        None if there is no compiled loop for these types.
    """
    loops = compiled.loops
    if loops is None or score.dtype.char not in "dfe" or not _plain(score):
        return None
    score = score.astype(np.float32) if score.dtype == np.float16 else score
    size = cuts.shape[-1] + 1 if layout is None else layout.size
    boundary_cells = (0, 0, 0, 0) if layout is None else layout.boundary_cells
    cuts, origin = np.ascontiguousarray(cuts), None if origin is None else np.ascontiguousarray(origin)
    weight = _typed(weight)
    side_by_side = isinstance(outcome, OneHot) and _side_by_side(score, weight, cuts, origin, layout)
    if isinstance(outcome, OneHot) and side_by_side:
        batch: tuple[int, ...] = (outcome.size,)
        first, code = outcome.first, outcome.code
    else:
        first, code = 0, np.asarray(outcome)
        batch = _batch(score, code, weight)
    problems, n = prod(batch), score.shape[-1]
    rows = [_lines(piece, batch, n) for piece in (score, code, weight)]
    groups = [_lines(cuts, batch if layout is None else (), cuts.shape[-1]), _lines(origin, batch, size)]
    shape = powers + 1 + squares, 2, problems, size

    def of_rows(piece: slice) -> Array:
        sums = np.zeros(shape)
        block_rows = rows if n <= PIECE else [None if line is None else line[:, piece] for line in rows]
        loops.add_sums(*block_rows, *groups, sums, powers, squares, *boundary_cells, first)
        return sums

    def of_problems(block: slice) -> None:
        block_rows = [line if line is None or len(line) == 1 else line[block] for line in (*rows, *groups)]
        loops.add_sums(*block_rows, sums[:, :, block], powers, squares, *boundary_cells, first + block.start)

    if problems == 1 and n <= PIECE:
        sums = of_rows(slice(None))
    elif problems == 1:
        sums, *others = parallel_map(of_rows, [slice(a, a + PIECE) for a in range(0, n, PIECE)])
        for other in others:
            sums += other
    else:
        sums = np.zeros(shape)
        share = problems if problems * n < PIECE else -(-problems // threads())
        step = max(1, -(-share // TILE) * TILE if side_by_side else share)
        for _ in parallel_map(of_problems, [slice(a, a + step) for a in range(0, problems, step)]):
            pass
    return sums.reshape(-1, 2, *batch, size)


def sums_in_occupied_cells(
    score: Array, outcome: Array | OneHot, weight: Array | None, layout: Layout
) -> tuple[Array, Array] | None:
    """Sum the rows of several adjacent problems in the non-empty cells of a layout.

    With many classes most cells are empty: a table of all cells would be slower to process than the rows.

    Returns
    -------
    held, sums : arrays (cells,) and (3, problems, cells)
        Indices of these cells; and for each problem the number of rows, the sum of scores relative to the
        lower end of the cell, and the number of positive outcomes. None if there is no compiled loop for such
        rows.
    """
    loops = compiled.loops
    if loops is None or weight is not None or not isinstance(outcome, OneHot) or score.dtype.char not in "df":
        return None
    if not _plain(score) or not _side_by_side(score, None, layout.parts, None, layout):
        return None
    # Most of this memory is never touched, and therefore not allocated by the system.
    place, sums = np.empty(layout.size, np.int32), np.zeros((layout.size, len(score), 3))
    loops.sum_held(
        score, outcome.code, layout.parts, layout.low, place, sums, *layout.boundary_cells, outcome.first
    )
    occupied = np.flatnonzero(place >= 0)
    return occupied, np.ascontiguousarray(sums[place[occupied]].transpose(2, 1, 0))


def _side_by_side(
    score: Array, weight: Array | None, cuts: Array, origin: Array | None, layout: Layout | None
) -> bool:
    """Return whether the scores of a row are adjacent in memory, and problems share all other inputs."""
    common = (cuts.ndim == 1 or layout is not None) and (origin is None or origin.ndim == 1)
    return (
        score.ndim == 2
        and score.strides[0] == score.itemsize
        and common
        and (weight is None or weight.ndim == 1)
    )


def _batch(score: Array, outcome: Array, weight: Array | None) -> tuple[int, ...]:
    """Return the shape of the batch."""
    present = [score, outcome] if weight is None else [score, outcome, weight]
    return np.broadcast_shapes(*(piece.shape for piece in present))[:-1]


def _lines(values: Array | None, batch: tuple[int, ...], size: int) -> Array | None:
    """Return an array with one row per problem; problems that share values share memory."""
    if values is None:
        return None
    if values.ndim == 1:
        return np.broadcast_to(values, (prod(batch), size)) if batch else values[None]
    return np.broadcast_to(values, (*batch, size)).reshape(prod(batch), size)


def _typed(weight: Array | None) -> Array | None:
    """Return weights in one of the two types supported by the loop."""
    if weight is None or (weight.dtype.char in "dl" and _plain(weight)):
        return weight
    return weight.astype(np.int64 if weight.dtype.kind in "iub" else np.float64)


def _plain(values: Array) -> bool:
    """Return whether an array is aligned and in native byte order."""
    return values.flags.aligned and values.dtype.isnative

"""The tally by the compiled loop: from arrays to sums, in pieces that threads share."""

from __future__ import annotations

from math import prod

import numpy as np

from calibrant import compiled
from calibrant.evidence.layout import Layout
from calibrant.evidence.moments import Array
from calibrant.evidence.outcomes import OneHot

# Rows of one problem that a thread sums at a time; the sums of pieces are added in their order.
PIECE = 1 << 20
# Problems side by side that are summed together: what a thread gets is made of these.
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
    """Sum rows by outcome and group, as `calibrant.evidence.tally` describes it.

    Parameters
    ----------
    score, outcome, weight : arrays
        The rows.
    cuts, origin : arrays
        Shared by all problems, or with a line for each.
    powers : int
    layout : Layout, optional
        Groups are its cells, and the cuts the edges of its equal parts.
    squares : bool

    Returns
    -------
    array, shape (powers + 1 + squares, 2, *batch, groups)
        None where there is no compiled loop, or none for arrays of such a type.
    """
    loops = compiled.loops
    if loops is None or score.dtype.char not in "df" or not _plain(score):
        return None
    size = cuts.shape[-1] + 1 if layout is None else layout.size
    options = powers, squares, None if layout is None else layout.walls
    cuts, origin = np.ascontiguousarray(cuts), None if origin is None else np.ascontiguousarray(origin)
    if isinstance(outcome, OneHot) and _side_by_side(score, weight, cuts, origin, layout):
        batch: tuple[int, ...] = (outcome.size,)
        lines, first = [score, outcome.code, _typed(weight)], outcome.first
    else:
        batch, lines = _lines(score, _outcomes(outcome), weight)
        first = None
        if batch:
            cuts = cuts if layout is not None else _for_each(cuts, batch)
            origin = None if origin is None else _for_each(origin, batch)

    def of_rows(rows: slice) -> Array:
        sums = np.zeros((powers + 1 + squares, 2, 1, size))
        own = lines if n <= PIECE else [line if line is None else line[rows] for line in lines]
        loops.add_sums(*own, cuts, origin, sums, *options, None)
        return sums

    def of_problems(some: slice) -> None:
        own = [line if line is None or line.ndim == 1 else line[some] for line in (*lines, cuts, origin)]
        loops.add_sums(*own, sums[:, :, some], *options, None if first is None else first + some.start)

    n = score.shape[-1]
    if not batch and n <= PIECE:
        sums = of_rows(slice(None))
    elif not batch:
        sums, *others = compiled.shared(of_rows, [slice(a, a + PIECE) for a in range(0, n, PIECE)])
        for other in others:
            sums += other
    else:
        sums, problems = np.zeros((powers + 1 + squares, 2, prod(batch), size)), prod(batch)
        share = problems if problems * n < PIECE else -(-problems // compiled.threads())
        step = max(1, share if first is None else -(-share // TILE) * TILE)
        for _ in compiled.shared(of_problems, [slice(a, a + step) for a in range(0, problems, step)]):
            pass
    return sums.reshape(-1, 2, *batch, size)


def sums_where_held(
    score: Array, outcome: Array | OneHot, weight: Array | None, layout: Layout
) -> tuple[Array, Array] | None:
    """Sum the rows of several problems side by side in the cells of a layout that hold any of all of them.

    Most cells of many classes hold none: a table of all would take longer to fill and to read than the rows.

    Returns
    -------
    held, sums : arrays (cells,) and (3, problems, cells)
        The numbers of these cells; and of each problem rows, scores above the least of the cell, and positive
        outcomes. None where there is no compiled loop for such rows.
    """
    loops = compiled.loops
    if loops is None or weight is not None or not isinstance(outcome, OneHot) or score.dtype.char not in "df":
        return None
    if not _plain(score) or not _side_by_side(score, None, layout.parts, None, layout):
        return None
    # Memory that no cell is placed in is never touched.
    place, sums = np.empty(layout.size, np.int32), np.zeros((layout.size, len(score), 3))
    count = loops.sum_held(
        score, outcome.code, layout.parts, layout.low, place, sums, layout.walls, outcome.first
    )
    held = np.flatnonzero(place >= 0)
    assert held.size == count
    return held, np.ascontiguousarray(sums[place[held]].transpose(2, 1, 0))


def totals_of(
    score: Array, code: Array, weight: Array | None
) -> tuple[float, float, float, float, float] | None:
    """Sum what whole rows tell, as `calibrant.evidence.tally.row_totals` describes it, all but their number.

    None where there is no compiled loop, or none for arrays of such a type.
    """
    loops = compiled.loops
    if loops is None or score.dtype.char not in "df" or not _plain(score) or not len(code):
        return None
    code = code.astype(bool if score.ndim == 1 else np.int64, order="C", copy=not _plain(code))
    weight, step = _typed(weight), max(1, PIECE // max(1, score[:1].size))

    def of_rows(rows: slice) -> tuple[float, ...]:
        own = None if weight is None else weight[rows]
        summed: tuple[float, ...] = loops.row_totals(score[rows], code[rows], own)
        return summed

    pieces = compiled.shared(of_rows, [slice(a, a + step) for a in range(0, len(code), step)])
    mass, right, log_loss, impossible, brier = (sum(part) for part in zip(*pieces, strict=True))
    return mass, right, log_loss, impossible, brier


def _side_by_side(
    score: Array, weight: Array | None, cuts: Array, origin: Array | None, layout: Layout | None
) -> bool:
    """Tell whether the scores of a row lie side by side, and all problems share what there is besides."""
    common = (cuts.ndim == 1 or layout is not None) and (origin is None or origin.ndim == 1)
    return (
        score.ndim == 2
        and score.strides[0] == score.itemsize
        and common
        and (weight is None or weight.ndim == 1)
    )


def _lines(score: Array, outcome: Array, weight: Array | None) -> tuple[tuple[int, ...], list[Array | None]]:
    """Return the shape of the batch, and scores, outcomes and weights with one line for each problem."""
    weight = _typed(weight)
    if score.ndim == 1 and outcome.shape == score.shape and (weight is None or weight.shape == score.shape):
        return (), [score, outcome, weight]
    present = [score, outcome] if weight is None else [score, outcome, weight]
    shape = np.broadcast_shapes(*(line.shape for line in present))
    flat = (prod(shape[:-1]), shape[-1]) if shape[:-1] else shape
    lines = [np.broadcast_to(line, shape).reshape(flat) for line in present]
    return shape[:-1], [*lines, *[None][: 3 - len(lines)]]


def _outcomes(outcome: Array | OneHot) -> Array:
    """Return outcomes as an array in which those of a problem lie side by side."""
    if not isinstance(outcome, OneHot):
        return outcome
    last = outcome.first + outcome.size
    code = outcome.code.astype(np.min_scalar_type(last), copy=False)
    array: Array = code == np.arange(outcome.first, last, dtype=code.dtype)[:, None]
    return array


def _typed(weight: Array | None) -> Array | None:
    """Return weights in one of the two types of the loop."""
    if weight is None or (weight.dtype.char in "dl" and _plain(weight)):
        return weight
    return weight.astype(np.int64 if weight.dtype.kind in "iub" else np.float64)


def _plain(values: Array) -> bool:
    """Tell whether numbers lie in memory as the machine reads them."""
    return values.flags.aligned and values.dtype.isnative


def _for_each(values: Array, batch: tuple[int, ...]) -> Array:
    """Return one line for each problem, or the line that all of them share."""
    if values.ndim == 1:
        return values
    return np.ascontiguousarray(np.broadcast_to(values, (*batch, values.shape[-1])).reshape(prod(batch), -1))

"""The one loop over rows: every sum over rows that the library takes is taken here.

Rows come as plain arrays that broadcast against each other: scores in [0, 1] of any floating dtype,
outcomes (bool) and weights (none, counts or importance weights). The last axis runs over the rows, and
every leading axis is a batch of problems. Which group a row belongs to is decided exactly, by `locate`
and by `Layout`.

The sums by group are arrays of shape (powers + 1, 2, *batch, groups): the sums of w, w x, ...,
w x^powers by outcome and group, where w is a row's weight and x its score less the group's origin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from math import prod
from typing import Literal

import numpy as np

from calibrant import compiled
from calibrant.evidence.layout import Layout
from calibrant.evidence.locate import TABLE_FROM, Locator, positions
from calibrant.evidence.loops import sums_of
from calibrant.evidence.moments import Array
from calibrant.evidence.outcomes import OneHot

# Rows summed at a time: the temporaries stay in the cache.
CHUNK = 1 << 17
# Rows of a vector of scores whose totals are summed at a time.
LONG_CHUNK = 1 << 18
# Scores of whole rows of a matrix looked at together.
MATRIX_CHUNK = 1 << 15
# The product of eight numbers above this is far from the least one there is.
SAFE = 1e-30

Where = Callable[[int, Array], Array]


def sums_between(
    score: Array,
    outcome: Array | OneHot,
    weight: Array | None,
    cuts: Array,
    origin: Array | None = None,
    powers: int = 1,
    *,
    ordered: bool = False,
) -> Array:
    """Sum rows between cuts: group k holds cuts[k-1] <= s < cuts[k].

    Parameters
    ----------
    score, outcome, weight : arrays
        The rows.
    cuts : array
        Shared by all problems, or with the axes of the batch before the last one.
    origin : array, optional
        What the scores of each group are measured from, shared or for each problem; zero by default.
    powers : int
        Largest power of the scores that is summed.
    ordered : bool
        Whether rows are in the order of their scores, which is cheaper where each of many short problems
        has cuts of its own.

    Returns
    -------
    array, shape (powers + 1, 2, *batch, groups)

    Examples
    --------
    >>> sums_between(np.array([0.2, 0.7, 0.9]), np.array([False, True, True]), None, np.array([0.5]))
    array([[[1. , 0. ],
            [0. , 2. ]],
           [[0.2, 0. ],
            [0. , 1.6]]])
    """
    if (summed := sums_of(score, outcome, weight, cuts, origin, powers)) is not None:
        return summed
    batch, columns = _aligned(score, np.asarray(outcome), weight)
    (rows, n), size = columns[0].shape, cuts.shape[-1] + 1
    sums = np.zeros((powers + 1, 2, rows, size))
    if origin is not None and (origin.ndim > 1 or ordered):
        origin = np.broadcast_to(origin, (*batch, size)).reshape(rows, size)
    if cuts.ndim == 1:
        shared = Locator(cuts, many=rows * n >= TABLE_FROM)
        _add_pieces(sums, columns, lambda _, part: shared(part), origin)
        return sums.reshape(powers + 1, 2, *batch, size)
    cuts = np.broadcast_to(cuts, (*batch, size - 1)).reshape(rows, size - 1)
    if ordered:
        # Groups are runs, and one pass serves the whole batch.
        ends = np.concatenate([positions(columns[0], cuts), np.full((rows, 1), n)], axis=1)
        group = np.repeat(np.arange(rows * size), np.diff(ends, axis=1, prepend=0).ravel())
        x, *others = (column.ravel() for column in columns)
        x = x.astype(np.float64, copy=False)
        _add(sums, group, x if origin is None else x - origin.ravel()[group], *others)
    else:
        own = [Locator(line, many=n >= TABLE_FROM) for line in cuts]
        _add_pieces(sums, columns, lambda problem, part: own[problem](part), origin, several=False)
    return sums.reshape(powers + 1, 2, *batch, size)


def sums_in_cells(
    score: Array,
    outcome: Array | OneHot,
    weight: Array | None,
    layout: Layout,
    powers: int = 2,
    *,
    squares: bool = False,
) -> Array:
    """Sum rows into the cells of a layout, scores measured from the least one of each cell.

    Parameters
    ----------
    score, outcome, weight : arrays
        The rows.
    layout : Layout
    powers : int
        Largest power of the scores that is summed.
    squares : bool
        Whether the squares of the weights are summed too, which come last.

    Returns
    -------
    array, shape (powers + 1, 2, *batch, layout.size); with `squares` one more along the first axis

    Examples
    --------
    >>> layout = Layout(720)
    >>> sums = sums_in_cells(np.array([0.2, 0.7, 0.7]), np.array([False, True, True]), None, layout)
    >>> sums[0, 1, layout.locate(np.array([0.2, 0.7]))]
    array([0., 2.])
    """
    sources, parts = (score, outcome, weight), layout.parts
    if (summed := sums_of(*sources, parts, layout.low, powers, layout=layout, squares=squares)) is not None:
        return summed
    batch, columns = _aligned(score, np.asarray(outcome), weight)
    sums = np.zeros((powers + 1 + squares, 2, len(columns[0]), layout.size))
    _add_pieces(sums, columns, lambda _, part: layout.locate(part), layout.low, squares=squares)
    return sums.reshape(-1, 2, *batch, layout.size)


def cells_and_sums(score: Array, weight: Array | None, layout: Layout) -> tuple[Array, Array]:
    """Return the cell of each row of a problem, and sums of weight, weighted score and squared weight there.

    The sums are those of all cells, (3, cells); without weights (2, cells).

    >>> cell, sums = cells_and_sums(np.array([0.2, 0.7, 0.7]), None, Layout(720))
    >>> sums[:, cell[-1]]
    array([2. , 1.4])
    """
    if compiled.loops is not None and score.dtype.char in "df":
        cell, sums = np.empty(score.size, np.int32), np.zeros((layout.size, 2 if weight is None else 3))
        own = (None if each is None else np.ascontiguousarray(each) for each in (score, weight))
        compiled.loops.cell_sums(*own, layout.parts, cell, sums, *layout.walls)
        return cell, sums.T
    cell, score = layout.locate(score).astype(np.int32), score.astype(np.float64)
    parts = [None, score] if weight is None else [weight, weight * score, weight * weight]
    return cell, np.array([np.bincount(cell, part, minlength=layout.size) for part in parts])


def sums_in_runs(run: Array, *columns: Array) -> list[Array]:
    """Sum columns over runs of neighbours that are equal in `run`, problem by problem.

    The sum of a run stands at its first row and zeros at the others, so a batch stays rectangular.

    >>> sums_in_runs(np.array([[0.2, 0.2, 0.9], [0.1, 0.2, 0.2]]), np.array([[1.0, 2, 4], [1, 2, 4]]))
    [array([[3., 0., 4.],
           [1., 6., 0.]])]
    """
    fresh = np.ones(run.shape, dtype=bool)
    np.not_equal(run[..., 1:], run[..., :-1], out=fresh[..., 1:])
    if fresh.all():
        return list(columns)
    start = np.flatnonzero(fresh)
    sums = np.zeros((len(columns), *run.shape))
    for total, column in zip(sums.reshape(len(columns), -1), columns, strict=True):
        total[start] = np.add.reduceat(column.ravel(), start)
    return list(sums)


def weight_sums(weight: Array, *, counts: bool) -> tuple[Array, Array]:
    """Sum the weights and their squares; counts stand for rows of weight one, and so for their squares.

    >>> weight_sums(np.array([1.0, 3.0]), counts=False), weight_sums(np.array([1, 3]), counts=True)
    ((np.float64(4.0), np.float64(10.0)), (np.float64(4.0), np.float64(4.0)))
    """
    total = weight.sum(axis=-1, dtype=np.float64)
    return total, total if counts else np.square(weight, dtype=np.float64).sum(axis=-1)


def mean_square(score: Array, weight: Array | None) -> Array:
    """Return the weighted mean of the squared distances of scores from their mean.

    >>> mean_square(np.array([0.25, 0.75]), None)
    np.float64(0.0625)
    """
    if weight is None and score.ndim > 1:
        return score.var(axis=-1, dtype=np.float64)
    if weight is None:
        mean = score.mean(dtype=np.float64)
        total = np.float64(0.0)
        for a in range(0, score.size, CHUNK):  # squares that stay in the cache
            total += np.square(np.subtract(score[a : a + CHUNK], mean, dtype=np.float64)).sum()
        return np.asarray(total / score.size)[()]
    share = weight / weight.sum(axis=-1, dtype=np.float64, keepdims=True)
    mean = (score * share).sum(axis=-1, keepdims=True)
    return (np.square(score - mean) * share).sum(axis=-1)


def occurrences(drawn: Array, size: int) -> Array:
    """Count how often each of the numbers below `size` was drawn, sample by sample.

    >>> occurrences(np.array([[0, 2, 2], [1, 1, 1]]), 3)
    array([[1, 0, 2],
           [0, 3, 0]])
    """
    samples = len(drawn)
    index = drawn + size * np.arange(samples)[:, None]
    return np.bincount(index.ravel(), minlength=samples * size).reshape(samples, size)


def order_statistics(score: Array, rank: Array) -> Array:
    """Return the scores at given ranks of a long array without sorting it.

    Scores are counted by cell, and only the cells that hold a rank are sorted.

    >>> order_statistics(np.array([0.5, 0.1, 0.9]), np.array([0, 2]))
    array([0.1, 0.9])
    """
    cells = 1 << 14  # an index of 16 bits
    count, index = np.zeros(cells + 1, dtype=np.int64), np.empty(score.shape, dtype=np.int16)
    for a in range(0, score.size, CHUNK):
        piece = (score[a : a + CHUNK] * cells).astype(np.intp)
        index[a : a + CHUNK] = piece
        count += np.bincount(piece, minlength=cells + 1)
    wanted = np.searchsorted(np.cumsum(count), rank, side="right")
    held = np.zeros(cells + 1, dtype=bool)
    held[wanted] = True
    kept = score[held[index]].astype(np.float64, copy=False)
    kept.sort()
    skipped = np.cumsum(np.where(held, 0, count))
    return kept[rank - skipped[wanted]]


def row_totals(
    score: Array, code: Array, weight: Array | None
) -> tuple[int, float, float, float, float, float]:
    """Sum what whole rows tell: how often the label was predicted, its log loss and its Brier score.

    Parameters
    ----------
    score : array
        The score of every class, shape (n, C), or that of the positive one, shape (n,).
    code : array
        The column of each row's label; whether it is positive where there is one score.
    weight : array, optional

    Returns
    -------
    rows : int
    weight, right, log_loss, impossible, brier : float
        As `calibrant.sketch.totals.Totals` describes them.

    Examples
    --------
    >>> row_totals(np.array([0.5, 0.75, 0.0]), np.array([0, 1, 1]), None)
    (3, 3.0, 2.0, 0.98..., 1.0, 2.625)
    """
    vector = score.ndim == 1
    step = LONG_CHUNK if vector else max(1, MATRIX_CHUNK // max(1, score[:1].size))
    totals = np.zeros(5)
    for a in range(0, len(code), step):
        part = slice(a, a + step)
        own, right, square = (_vector_rows if vector else _matrix_rows)(score[part], code[part])
        factor = None if weight is None else weight[part].astype(np.float64)
        mass = float(len(own)) if factor is None else factor.sum()
        totals += mass, _total(factor, right), *_log_losses(factor, own), _total(factor, square)
    mass, hits, log_loss, impossible, brier = totals.tolist()
    return len(code), mass, hits, log_loss, impossible, brier


def _aligned(*columns: Array | None) -> tuple[tuple[int, ...], list[Array]]:
    """Return the shape of the batch, and the columns that are there with one line for each problem."""
    present = [column for column in columns if column is not None]
    shape = np.broadcast_shapes(*(column.shape for column in present))
    lines = (prod(shape[:-1]), shape[-1])
    return shape[:-1], [
        (column if column.shape == shape else np.broadcast_to(column, shape)).reshape(lines)
        for column in present
    ]


def _add_pieces(
    sums: Array,
    columns: list[Array],
    where: Where,
    origin: Array | None,
    *,
    several: bool = True,
    squares: bool = False,
) -> None:
    """Add rows to sums[power, outcome], a piece at a time; with `several` a piece may hold some problems.

    `where(problem, scores)` tells the group of scores, `problem` being the first one of the piece.
    """
    size = sums.shape[-1]
    order, pieces = _pieces(columns[0], size, several=several)
    for problems, part in pieces:
        piece = [column[problems, part] for column in columns]
        shape = piece[0].shape
        score, outcome, *weight = ((values.T if order == "F" else values).reshape(-1) for values in piece)
        group = where(problems.start, score)
        x = score.astype(np.float64, copy=False)
        if origin is not None and origin.ndim == 1:
            x = x - origin[group]
        if shape[0] > 1:
            group = group + _first_groups(shape, size, order)
        if origin is not None and origin.ndim > 1:
            x = x - origin[problems].ravel()[group]
        _add(sums[:, :, problems], group, x, outcome, *weight, squares=squares)


def _pieces(
    score: Array, size: int, *, several: bool
) -> tuple[Literal["C", "F"], Iterator[tuple[slice, slice]]]:
    """Return slices of (problems, rows) that fit the cache, and the order in which their scores lie."""
    rows, n = score.shape
    across = several and abs(score.strides[0]) < abs(score.strides[1]) and 4 * rows * size <= CHUNK
    if across:
        high, wide = rows, max(1, CHUNK // rows)
    else:
        high, wide = max(1, CHUNK // max(1, n)) if several else 1, CHUNK
    return "F" if across else "C", (
        (slice(r, r + high), slice(a, a + wide)) for r in range(0, rows, high) for a in range(0, n, wide)
    )


@lru_cache(maxsize=4)
def _first_groups(shape: tuple[int, int], size: int, order: Literal["C", "F"]) -> Array:
    """Return the first group of each row's problem; pieces of one shape follow each other."""
    first = size * np.arange(shape[0])
    return np.repeat(first, shape[1]) if order == "C" else np.tile(first, shape[1])


def _add(
    sums: Array,
    group: Array,
    x: Array,
    outcome: Array,
    weight: Array | None = None,
    *,
    squares: bool = False,
) -> None:
    """Add rows to sums[power, outcome] by group, the last being of squared weights with `squares`.

    The array of groups is used up.
    """
    shape, size, factor = sums.shape[2:], sums[0, 0].size, weight
    # Where few outcomes are positive, summing these apart is cheaper.
    positive = np.flatnonzero(outcome) if 8 * np.count_nonzero(outcome) < outcome.size else None
    if positive is None:
        group <<= 1
        group += outcome
    group = group.astype(np.intp, copy=False)
    for power, part in enumerate(sums):
        if squares and power == len(sums) - 1:
            factor = None if weight is None else np.square(weight, dtype=np.float64)
        elif power:
            factor = x if factor is None else factor * x
        if positive is None:
            both = np.bincount(group, factor, minlength=2 * size)
            part += both.reshape(*shape, 2).transpose(2, 0, 1)
        else:
            ones = np.bincount(group[positive], None if factor is None else factor[positive], minlength=size)
            part[1] += ones.reshape(shape)
            part[0] += (np.bincount(group, factor, minlength=size) - ones).reshape(shape)


def _vector_rows(score: Array, code: Array) -> tuple[Array, Array, Array]:
    """Return the label's score, whether the label was predicted, and the squared differences."""
    p = score.astype(np.float64, copy=False)
    # p or 1 - p, without choosing row by row; and in place, since each array costs as much as what is in it.
    y = code.astype(np.float64)
    own = 1.0 - y
    own -= p
    np.abs(own, out=own)
    y -= p
    np.square(y, out=y)
    y += y
    return own, (p > 0.5) == code, y


def _matrix_rows(score: Array, code: Array) -> tuple[Array, Array, Array]:
    """Return the same of rows that have a score for every class."""
    off, row = score.astype(np.float64), np.arange(len(code))
    # Numpy checks indices before it uses them: those of a copy cannot change in between.
    code = code.copy()
    own, right = off[row, code], off.argmax(axis=1) == code
    off[row, code] -= 1
    return own, right, np.einsum("ij,ij->i", off, off)


def _log_losses(weight: Array | None, own: Array) -> tuple[float, float]:
    """Sum the log losses of labels with a score, and the weight of the others; the scores are used up."""
    impossible, least = 0.0, own.min()
    if not least > 0:
        impossible = _total(weight, own <= 0)
        own = np.where(own > 0, own, 1.0)
    if weight is None and least > SAFE:
        # Products of up to eight scores each have the same sum of logarithms.
        for _ in range(3):
            half = len(own) // 2
            pairs = own[:half] * own[half : 2 * half]
            own = np.append(pairs, own[-1:]) if len(own) % 2 else pairs
    return max(0.0, -_total(weight, np.log(own, out=own))), impossible


def _total(weight: Array | None, values: Array) -> float:
    if weight is None:
        return float(np.count_nonzero(values) if values.dtype == bool else values.sum())
    # Not by a matrix product, whose last bits depend on the number of its threads.
    return float((weight * values).sum())

"""Sums over rows: every loop over rows of the library is in this module.

Rows are arrays that broadcast against each other: scores in [0, 1] of any floating dtype,
outcomes (bool) and weights (none, counts or importance weights). The last axis runs over the rows, and
every leading axis is a batch of problems. Which group a row belongs to is decided exactly, by comparison
with the cuts and by `Layout`.

The sums by group are arrays of shape (powers + 1, 2, *batch, groups): the sums of w, w x, ...,
w x^powers by outcome and group, where w is a row's weight and x its score less the group's origin.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calibrant.score_data.layout import Layout
from calibrant.score_data.loops import sums_of
from calibrant.score_data.moments import Array, OneHot

# Rows summed at a time, so that temporary arrays stay in the cache.
CHUNK = 1 << 17
# Rows of a score vector whose totals are summed at a time.
LONG_CHUNK = 1 << 18
# Entries of a score matrix whose totals are summed at a time.
MATRIX_CHUNK = 1 << 15
# The product of eight numbers above this does not underflow.
SAFE = 1e-30


def sums_between(
    score: Array,
    outcome: Array | OneHot,
    weight: Array | None,
    cuts: Array,
    origin: Array | None = None,
    powers: int = 1,
) -> Array:
    """Sum rows between cuts: group k contains cuts[k-1] <= s < cuts[k].

    Parameters
    ----------
    score, outcome, weight : arrays
        The rows.
    cuts : array
        Shared by all problems, or with the axes of the batch before the last one.
    origin : array, optional
        Origin of the scores of each group, shared or for each problem; zero by default.
    powers : int
        Largest power of the scores that is summed.

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

    def locate(scores: Array, own_cuts: Array) -> Array:
        return np.searchsorted(own_cuts, scores, side="right")

    origin = np.zeros(cuts.shape[-1] + 1) if origin is None else origin
    return _plain_sums(score, outcome, weight, locate, cuts, origin, powers)


def sums_in_cells(
    score: Array,
    outcome: Array | OneHot,
    weight: Array | None,
    layout: Layout,
    powers: int = 2,
    *,
    squares: bool = False,
) -> Array:
    """Sum rows into the cells of a layout, with scores relative to the lower end of each cell.

    Parameters
    ----------
    score, outcome, weight : arrays
        The rows.
    layout : Layout
    powers : int
        Largest power of the scores that is summed.
    squares : bool
        Whether to sum the squared weights too, as the last entry.

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
    rows, parts = (score, outcome, weight), layout.parts
    if (summed := sums_of(*rows, parts, layout.low, powers, layout=layout, squares=squares)) is not None:
        return summed

    def locate(scores: Array, _: Array) -> Array:
        return layout.locate(scores)

    return _plain_sums(*rows, locate, parts, layout.low, powers, squares=squares)


def cells_and_sums(score: Array, weight: Array | None, layout: Layout) -> tuple[Array, Array]:
    """Return the cell of each row of a problem, and sums of weight, weighted score and squared weight there.

    The sums are those of all cells, (3, cells); without weights (2, cells).

    >>> cell, sums = cells_and_sums(np.array([0.2, 0.7, 0.7]), None, Layout(720))
    >>> sums[:, cell[-1]]
    array([2. , 1.4])
    """
    cell, score = layout.locate(score).astype(np.int32), score.astype(np.float64)
    parts = [None, score] if weight is None else [weight, weight * score, weight * weight]
    return cell, np.array([np.bincount(cell, chunk, minlength=layout.size) for chunk in parts])


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

    Scores are counted by cell, and only the cells that contain a requested rank are sorted.

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
    is_wanted = np.zeros(cells + 1, dtype=bool)
    is_wanted[wanted] = True
    kept = score[is_wanted[index]].astype(np.float64, copy=False)
    kept.sort()
    skipped = np.cumsum(np.where(is_wanted, 0, count))
    return kept[rank - skipped[wanted]]


def row_totals(
    score: Array, code: Array, weight: Array | None
) -> tuple[int, float, float, float, float, float]:
    """Sum accuracy, log loss and Brier score over rows.

    Parameters
    ----------
    score : array
        The score of every class, shape (n, C), or of the positive class, shape (n,).
    code : array
        The column of the label of each row; for a score vector, whether the label is positive.
    weight : array, optional

    Returns
    -------
    rows : int
    weight, right, log_loss, impossible, brier : float
        As described in `calibrant.sketch.totals.Totals`.

    Examples
    --------
    >>> row_totals(np.array([0.5, 0.75, 0.0]), np.array([0, 1, 1]), None)
    (3, 3.0, 2.0, 0.98..., 1.0, 2.625)
    """
    vector = score.ndim == 1
    step = LONG_CHUNK if vector else max(1, MATRIX_CHUNK // max(1, score[:1].size))
    totals = np.zeros(5)
    for a in range(0, len(code), step):
        chunk = slice(a, a + step)
        label_score, right, square = (_vector_rows if vector else _matrix_rows)(score[chunk], code[chunk])
        factor = None if weight is None else weight[chunk].astype(np.float64)
        mass = float(len(label_score)) if factor is None else factor.sum()
        totals += mass, _total(factor, right), *_log_losses(factor, label_score), _total(factor, square)
    mass, hits, log_loss, impossible, brier = totals.tolist()
    return len(code), mass, hits, log_loss, impossible, brier


def _plain_sums(
    score: Array,
    outcome: Array | OneHot,
    weight: Array | None,
    locate: Callable[[Array, Array], Array],
    cuts: Array,
    origin: Array,
    powers: int,
    *,
    squares: bool = False,
) -> Array:
    """Sum rows by outcome and group, problem by problem; `locate(scores, cuts)` returns the groups."""
    columns = [score, np.asarray(outcome)] + ([] if weight is None else [weight])
    shape, size = np.broadcast_shapes(*(column.shape for column in columns)), origin.shape[-1]
    batch = shape[:-1]
    sums = np.zeros((*batch, powers + 1 + squares, 2, size))
    columns = [np.broadcast_to(column, shape) for column in columns]
    cuts, origin = (np.broadcast_to(line, (*batch, line.shape[-1])) for line in (cuts, origin))
    for entry in np.ndindex(batch):
        for first in range(0, shape[-1], CHUNK):
            x, y, *w = (column[entry][first : first + CHUNK] for column in columns)
            x, factor = x.astype(np.float64), w[0].astype(np.float64) if w else np.ones(x.size)
            group = locate(x, cuts[entry])
            offset = x - origin[entry][group]
            factors = [factor * offset**power for power in range(powers + 1)] + [factor**2] * squares
            for total, each in zip(sums[entry], factors, strict=True):
                total += np.bincount(2 * group + y, each, minlength=2 * size).reshape(size, 2).T
    return np.moveaxis(sums, (-3, -2), (0, 1))


def _vector_rows(score: Array, code: Array) -> tuple[Array, Array, Array]:
    """Return the score of the label, whether the label was predicted, and the Brier score of each row."""
    p = score.astype(np.float64, copy=False)
    # |1 - y - p| is p or 1 - p without a branch. Operations are in place because memory traffic dominates.
    y = code.astype(np.float64)
    label_score = 1.0 - y
    label_score -= p
    np.abs(label_score, out=label_score)
    y -= p
    np.square(y, out=y)
    y += y
    return label_score, (p > 0.5) == code, y


def _matrix_rows(score: Array, code: Array) -> tuple[Array, Array, Array]:
    """Return the same for rows with a score for every class."""
    off, row = score.astype(np.float64), np.arange(len(code))
    # Copy the indices: numpy checks them before use, and a caller could change them in between.
    code = code.copy()
    label_score, right = off[row, code], off.argmax(axis=1) == code
    off[row, code] -= 1
    return label_score, right, np.einsum("ij,ij->i", off, off)


def _log_losses(weight: Array | None, label_score: Array) -> tuple[float, float]:
    """Sum the log losses of positive scores, and the weight of the others; overwrites `label_score`."""
    impossible, least = 0.0, label_score.min()
    if not least > 0:
        impossible = _total(weight, label_score <= 0)
        label_score = np.where(label_score > 0, label_score, 1.0)
    if weight is None and least > SAFE:
        # Take logarithms of products of up to eight scores, which is faster.
        for _ in range(3):
            half = len(label_score) // 2
            pairs = label_score[:half] * label_score[half : 2 * half]
            label_score = np.append(pairs, label_score[-1:]) if len(label_score) % 2 else pairs
    return max(0.0, -_total(weight, np.log(label_score, out=label_score))), impossible


def _total(weight: Array | None, values: Array) -> float:
    if weight is None:
        return float(np.count_nonzero(values) if values.dtype == bool else values.sum())
    # No matrix product, because its last bits depend on the number of threads.
    return float((weight * values).sum())

"""Labels of whole rows drawn from their scores: what they say about few classes, and about many.

Of many classes only the rows that hit one are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import NamedTuple

import numpy as np

from calibrant import compiled
from calibrant.inference.cumulative_statistics import Edges, coefficients
from calibrant.score_data import FINE, Array, Residuals
from calibrant.score_data.draws import random_words
from calibrant.score_data.residuals import tied_with_last
from calibrant.score_data.tally import cells_and_sums

# Labels drawn at most, those sorted at once, and scores read at once.
MOST, SORTED, READ = 12_000_000, 1 << 21, 1 << 21
# Numbers in the largest table of scores, and sets of labels whose coefficients are held at once.
TABLE, AT_ONCE = 1 << 22, 1000
# Sets of labels drawn together, and classes read together.
TOGETHER, SIDE = 32, 16


class _Sums(NamedTuple):
    """What the coefficients of a class need: sums of its rows between the edges of cells.

    Attributes
    ----------
    cell : array of int (rows,)
        The fine cell of each row.
    group : array of int (fine cells,)
        Where the rows of a cell are counted.
    weight : array (rows,)
        On the scale on which they sum to the effective number of rows.
    expected : array (groups,)
        What calibrated rows have.
    edges : Edges
        Among the groups.
    """

    cell: Array
    group: Array
    weight: Array
    expected: Array
    edges: Edges

    @classmethod
    def of(cls, score: Array, weight: Array | None, cells: int) -> _Sums:
        """Look at the scores of a class."""
        w = None if weight is None else weight * (weight.sum() / np.square(weight).sum())
        cell, sums = cells_and_sums(score, w, FINE)
        size, held = sums.shape[-1], np.flatnonzero(sums[0])
        sums = sums[:, held]
        fresh = ~tied_with_last(sums[1] / sums[0])
        sums = np.add.reduceat(sums, np.flatnonzero(fresh), axis=1)
        mass, scored, spread = *sums[:2], sums[-1 if w is not None else 0]
        step = Residuals(mass, scored / mass, np.zeros(mass.size), spread, np.zeros(mass.size, dtype=bool))
        # Only the sums up to the edges matter: the steps between them are counted as one.
        ends, edges = Edges.of(step, cells).merge_steps(mass.size)
        group = np.zeros(size, dtype=np.int64)
        group[held] = np.searchsorted(ends, np.cumsum(fresh) - 1, side="right") - 1
        own = np.ones(cell.size) if w is None else w
        return cls(cell, group, own, np.add.reduceat(scored, ends[:-1]), edges)

    @property
    def size(self) -> int:
        """Number of groups."""
        return self.expected.size

    def coefficients(self, count: Array) -> Array:
        """Return cosine coefficients (sets, cells) of sums (sets, groups)."""
        return coefficients(count - self.expected, self.edges)


def draw_labels(score: Array, weight: Array | None, cells: int, rng: np.random.Generator, size: int) -> Array:
    """Draw labels for rows of scores (rows, classes), and return the coefficients (sets, classes, cells)."""
    rows, classes = score.shape
    each = [_Sums.of(np.ascontiguousarray(score[:, k]), weight, cells) for k in range(classes)]
    first = np.concatenate([[0], np.cumsum([one.size for one in each])])
    places = [one.group[one.cell] + start for one, start in zip(each, first[:-1], strict=True)]
    place = np.stack(places, axis=1).astype(np.int32, order="C")
    bounds, z = _bounds(score), np.empty((size, classes, cells))
    for a in range(0, size, TOGETHER):
        some = slice(a, min(a + TOGETHER, size))
        words = random_words(rng, (rows, some.stop - a))
        count = _counted(words, bounds, place, each[0].weight, int(first[-1]))
        for k, one in enumerate(each):
            z[some, k] = one.coefficients(count[:, first[k] : first[k + 1]])
    return z


def label_sets(
    rows: Callable[[Array], tuple[Array, Array | None]],
    n_rows: int,
    classes: int,
    cells: int,
    rng: np.random.Generator,
    size: int,
) -> Iterator[tuple[int, Callable[[int], Array]]]:
    """Draw labels for whole rows in parts: yield how many sets there are, and the coefficients by class.

    Parameters
    ----------
    rows : callable
        Scores (rows, classes) and weights of the rows asked for by number.
    n_rows : int
        How many rows there are. Some of them stand for all when they are many: the joint
        distribution of the standardised coefficients is the same.
    """
    few = max(4 * cells, TABLE // (8 * classes))
    some = np.arange(n_rows) if n_rows <= few else np.sort(rng.choice(n_rows, few, replace=False))
    score, weight = rows(some)
    for first in range(0, size, AT_ONCE):
        z = draw_labels(score, weight, cells, rng, min(AT_ONCE, size - first))
        yield len(z), z.swapaxes(0, 1).__getitem__


def _bounds(score: Array) -> Array:
    """Return the odd words of 32 bits up to which a label is at most 0, 1, ...: (rows, classes - 1)."""
    edge = np.cumsum(score, axis=1, dtype=np.float64)
    edge /= edge[:, -1:]
    # An odd word lies above the bound of 0 and never above the last.
    return np.clip(np.rint(edge[:, :-1] * 2.0**32) - 1, 0, 2**32 - 1).astype(np.uint32, order="C")


def _labelled(score: Array, words: Array, columns: Array) -> Array:
    """Return a label for each row and word, drawn with chances in proportion to the scores.

    Labels are 0, 1, ... in the order of these columns.
    """
    label = np.empty(words.shape, dtype=np.int32)
    if compiled.loops is not None:
        kind = np.float32 if score.dtype == np.float32 else np.float64
        compiled.loops.label(np.ascontiguousarray(score, kind), words, columns.astype(np.int64), label)
        return label
    total = np.cumsum(score[:, columns], axis=1, dtype=np.float64)
    points = (words + 0.5) * 2.0**-32 * total[:, -1:]
    for i, (ends, at) in enumerate(zip(total[:, :-1], points, strict=True)):
        label[i] = np.searchsorted(ends, at, side="right")
    return label


def _counted(words: Array, bounds: Array, place: Array, weight: Array, groups: int) -> Array:
    """Return the sums (sets, groups) of the weights of rows, each where its label has its place."""
    rows, sets = words.shape
    count = np.zeros((sets, groups))
    if compiled.loops is not None:
        compiled.loops.labels(words, bounds, place, weight, count)
        return count
    odd, label = words | np.uint32(1), np.zeros((rows, sets), dtype=np.intp)
    for bound in bounds.T:
        label += odd > bound[:, None]
    at = np.take_along_axis(place, label, axis=1) + groups * np.arange(sets)
    return np.bincount(at.ravel(), np.repeat(weight, sets), minlength=count.size).reshape(sets, groups)


def _add_hits(order: Array, cell: Array, group: Array, weight: Array, count: Array) -> None:
    """Add the weights of rows to sums (sets, groups); `order` has row times number of sets plus set."""
    if compiled.loops is not None:
        compiled.loops.hits(order, cell, group, weight, count)
        return
    sets, groups = count.shape
    row, at = np.divmod(order, sets)
    index = at * np.uint32(groups) + group[cell[row]]
    count += np.bincount(index, weight[row], minlength=count.size).reshape(count.shape)


def columns_of(blocks: list[Array], rows: Array) -> Callable[[int], Array]:
    """Return how to get the scores of a class, by number, in these rows.

    Blocks of scores are (classes, all rows). Those of a row lie side by side in memory, so that a few classes
    are read at once.

    >>> columns_of([np.array([[0.1, 0.2], [0.3, 0.4]]), np.array([[0.5, 0.6]])], np.array([1, 0]))(2)
    array([0.6, 0.5])
    """
    place = [(block, k) for block, score in enumerate(blocks) for k in range(len(score))]
    some = slice(None) if np.array_equal(rows, np.arange(blocks[0].shape[1])) else rows
    lock = Lock()

    @lru_cache(maxsize=4)
    def read(block: int, first: int) -> Array:
        return np.ascontiguousarray(blocks[block].T[some, first : first + SIDE].T)

    def column(k: int) -> Array:
        block, own = place[k]
        with lock:  # so that no two threads read the same
            return np.asarray(read(block, own // SIDE * SIDE)[own % SIDE])

    return column


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels of `sets` calibrated data sets, sorted by class.

    Attributes
    ----------
    rows : array
        Numbers of the rows that were drawn for, rising; some stand for all where they are many.
    weight : array or None
        Their weights.
    parts : list of (first set, number of sets, order, starts)
        For some of the sets, row times number of sets plus set of every label, class after class, and
        where each class starts.
    """

    rows: Array
    weight: Array | None
    sets: int
    parts: list[tuple[int, int, Array, Array]]

    @classmethod
    def draw(
        cls,
        take: Callable[[Array], tuple[Array, Array | None]],
        n_rows: int,
        classes: int,
        rng: np.random.Generator,
        sets: int,
        number: Callable[[Array], Array] = np.asarray,
        columns: Array | None = None,
    ) -> Labels:
        """Draw one label for each row and set.

        Parameters
        ----------
        take : callable
            Scores (rows, classes) and weights of the rows asked for by place.
        number : callable
            The numbers of rows asked for by place, if they differ: labels are held in the order of these.
        columns : array of int, optional
            The column of each class, if they have another order.
        """
        columns = np.arange(classes) if columns is None else columns
        few = max(1, MOST // sets)
        some = np.arange(n_rows) if n_rows <= few else np.sort(rng.choice(n_rows, few, replace=False))
        rows = number(some)
        order = np.argsort(rows, kind="stable")
        to = np.argsort(order)
        label = np.empty((len(some), sets), dtype=np.min_scalar_type(classes))
        step, weights = max(1, READ // classes), []
        for a in range(0, len(some), step):
            score, weight = take(some[a : a + step])
            label[to[a : a + step]] = _labelled(score, random_words(rng, (len(score), sets)), columns)
            weights.append(weight)
        parts, width = [], max(1, SORTED // len(some))
        for first in range(0, sets, width):
            flat = label[:, first : first + width].ravel()
            by_class = np.argsort(flat, kind="stable").astype(np.uint32, order="C")
            start = np.concatenate([[0], np.cumsum(np.bincount(flat, minlength=classes))])
            parts.append((first, len(flat) // len(some), by_class, start))
        whole = None if weights[0] is None else np.concatenate([w for w in weights if w is not None])[order]
        return cls(rows[order], whole, sets, parts)

    def coefficients(self, score: Array, k: int, cells: int) -> Array:
        """Return cosine coefficients of class k in every set, (sets, cells), from its scores in the rows."""
        sums = _Sums.of(score, self.weight, cells)
        count = np.zeros((self.sets, sums.size))
        for first, width, order, start in self.parts:
            hits = order[start[k] : start[k + 1]]
            _add_hits(hits, sums.cell, sums.group, sums.weight, count[first : first + width])
        return sums.coefficients(count)

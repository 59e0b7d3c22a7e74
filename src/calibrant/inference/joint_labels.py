"""Labels simulated under H0 from the score vectors of rows, and the cosine coefficients of each class.

With few classes the sums of all classes are computed together. With many classes only the rows whose label is
a class are visited for it.

The test is described in docs/methods/calibration-test.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import NamedTuple

import numpy as np

from calibrant import compiled
from calibrant.inference.null import Edges, coefficients
from calibrant.posterior import posterior_of
from calibrant.score_data import FINE, Array, Residuals
from calibrant.score_data.draws import random_words
from calibrant.score_data.residuals import tied_with_previous
from calibrant.score_data.simplex import tied_ranks
from calibrant.score_data.tally import cells_and_sums
from calibrant.tasks import CalibrationTask, ScoreVectors, cached_on_task

# Many classes: largest number of labels drawn, labels sorted at once, and scores read at once.
MOST, SORTED_AT_ONCE, SCORES_AT_ONCE = 12_000_000, 1 << 21, 1 << 21
# Few classes: size of the largest table of scores in bytes, and data sets whose coefficients are held at
# once.
TABLE_BYTES, AT_ONCE = 1 << 22, 1000
# Data sets whose labels are drawn together, and classes whose scores are read together.
SETS_TOGETHER, CLASSES_TOGETHER = 32, 16


class _ClassGroups(NamedTuple):
    """Groups of rows from whose sums the cosine coefficients of a class are computed.

    Attributes
    ----------
    cell : array of int (rows,)
        The fine cell of the score of each row.
    group : array of int (fine cells,)
        Group of each fine cell.
    weight : array (rows,)
        Weights of the rows, scaled to sum to the effective sample size.
    expected : array (groups,)
        Expected sums under H0.
    edges : Edges
        Edges of the cells of equal variance among the groups.
    """

    cell: Array
    group: Array
    weight: Array
    expected: Array
    edges: Edges

    @classmethod
    def of(cls, score: Array, weight: Array | None, cells: int) -> _ClassGroups:
        """Return the groups of a class from its scores."""
        w = None if weight is None else weight * (weight.sum() / np.square(weight).sum())
        cell, sums = cells_and_sums(score, w, FINE)
        size, occupied = sums.shape[-1], np.flatnonzero(sums[0])
        sums = sums[:, occupied]
        is_new = ~tied_with_previous(sums[1] / sums[0])
        sums = np.add.reduceat(sums, np.flatnonzero(is_new), axis=1)
        mass, scored, spread = *sums[:2], sums[-1 if w is not None else 0]
        step = Residuals(mass, scored / mass, np.zeros(mass.size), spread, np.zeros(mass.size, dtype=bool))
        # Only cumulative sums at the edges matter, so the steps between them are merged to one group.
        ends, edges = Edges.of(step, cells).merge_steps(mass.size)
        group = np.zeros(size, dtype=np.int64)
        group[occupied] = np.searchsorted(ends, np.cumsum(is_new) - 1, side="right") - 1
        row_weight = np.ones(cell.size) if w is None else w
        return cls(cell, group, row_weight, np.add.reduceat(scored, ends[:-1]), edges)

    @property
    def size(self) -> int:
        """Number of groups."""
        return self.expected.size

    def coefficients(self, count: Array) -> Array:
        """Return cosine coefficients (data sets, cells) from sums (data sets, groups)."""
        return coefficients(count - self.expected, self.edges)


def draw_labels(score: Array, weight: Array | None, cells: int, rng: np.random.Generator, size: int) -> Array:
    """Simulate labels from scores (rows, classes); return the coefficients (data sets, classes, cells)."""
    rows, classes = score.shape
    by_class = [_ClassGroups.of(np.ascontiguousarray(score[:, k]), weight, cells) for k in range(classes)]
    first = np.concatenate([[0], np.cumsum([groups.size for groups in by_class])])
    places = [groups.group[groups.cell] + start for groups, start in zip(by_class, first[:-1], strict=True)]
    place = np.stack(places, axis=1).astype(np.int32, order="C")
    bounds, z = _bounds(score), np.empty((size, classes, cells))
    for a in range(0, size, SETS_TOGETHER):
        chunk = slice(a, min(a + SETS_TOGETHER, size))
        words = random_words(rng, (rows, chunk.stop - a))
        count = _counted(words, bounds, place, by_class[0].weight, int(first[-1]))
        for k, groups in enumerate(by_class):
            z[chunk, k] = groups.coefficients(count[:, first[k] : first[k + 1]])
    return z


def label_sets(
    rows: Callable[[Array], tuple[Array, Array | None]],
    n_rows: int,
    classes: int,
    cells: int,
    rng: np.random.Generator,
    size: int,
) -> Iterator[tuple[int, Callable[[int], Array]]]:
    """Simulate labels of rows in parts: yield the number of data sets, and the coefficients by class.

    Parameters
    ----------
    rows : callable
        Returns scores (rows, classes) and weights of rows with given numbers.
    n_rows : int
        Number of rows. Above a limit a random sample of rows is used, because the joint distribution of the
        standardised coefficients is the same.
    classes, cells : int
        Number of classes, and of cells of equal variance.
    rng : Generator
        Generator of the labels.
    size : int
        Number of simulated data sets.
    """
    max_rows = max(4 * cells, TABLE_BYTES // (8 * classes))
    score, weight = rows(_some_rows(n_rows, max_rows, rng))
    for first in range(0, size, AT_ONCE):
        z = draw_labels(score, weight, cells, rng, min(AT_ONCE, size - first))
        yield len(z), z.swapaxes(0, 1).__getitem__


def _some_rows(n_rows: int, most: int, rng: np.random.Generator) -> Array:
    """Return the numbers of all rows, or of a random subset of at most `most` rows, in order."""
    return np.arange(n_rows) if n_rows <= most else np.sort(rng.choice(n_rows, most, replace=False))


def _bounds(score: Array) -> Array:
    """Return bounds (rows, classes - 1) of odd 32-bit words: a word up to bound k has a label up to k."""
    edge = np.cumsum(score, axis=1, dtype=np.float64)
    edge /= edge[:, -1:]
    # An odd word is above the bound of probability 0, and never above the last bound.
    return np.clip(np.rint(edge[:, :-1] * 2.0**32) - 1, 0, 2**32 - 1).astype(np.uint32, order="C")


def _labelled(score: Array, words: Array, columns: Array) -> Array:
    """Return a label for each row and random word, with probabilities proportional to the scores.

    Labels are 0, 1, ... in the order of `columns`.
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
    """Return sums (data sets, groups) of row weights, each in the group of its label and score."""
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
    """Add row weights to sums (data sets, groups); `order` is row * number of data sets + data set."""
    if compiled.loops is not None:
        compiled.loops.hits(order, cell, group, weight, count)
        return
    sets, groups = count.shape
    row, at = np.divmod(order, sets)
    index = at * np.uint32(groups) + group[cell[row]]
    count += np.bincount(index, weight[row], minlength=count.size).reshape(count.shape)


def columns_of(blocks: list[Array], rows: Array) -> Callable[[int], Array]:
    """Return a function that gives the scores of a class, by number, in these rows.

    Blocks of scores are (classes, all rows). The scores of a row are adjacent in memory, so a few classes are
    read at once.

    >>> columns_of([np.array([[0.1, 0.2], [0.3, 0.4]]), np.array([[0.5, 0.6]])], np.array([1, 0]))(2)
    array([0.6, 0.5])
    """
    position = [(block, k) for block, score in enumerate(blocks) for k in range(len(score))]
    selected = slice(None) if np.array_equal(rows, np.arange(blocks[0].shape[1])) else rows
    lock = Lock()

    @lru_cache(maxsize=4)
    def read(block: int, first: int) -> Array:
        return np.ascontiguousarray(blocks[block].T[selected, first : first + CLASSES_TOGETHER].T)

    def column(k: int) -> Array:
        block, k_in_block = position[k]
        with lock:  # avoids that two threads read the same block
            return np.asarray(
                read(block, k_in_block // CLASSES_TOGETHER * CLASSES_TOGETHER)[k_in_block % CLASSES_TOGETHER]
            )

    return column


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels of `sets` data sets simulated under H0, sorted by class.

    Attributes
    ----------
    rows : array
        Numbers of the rows with labels, ascending; a random sample if there are many rows.
    weight : array or None
        Weights of these rows.
    sets : int
        Number of simulated data sets.
    parts : list of (first data set, number of data sets, order, starts)
        For a part of the data sets, row * number of data sets + data set of every label, sorted by class, and
        the position at which each class starts.
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
        """Draw one label for each row and data set.

        Parameters
        ----------
        take : callable
            Returns scores (rows, classes) and weights of rows at given positions.
        n_rows, classes : int
            Number of rows and of classes.
        rng : Generator
            Generator of the labels.
        sets : int
            Number of simulated data sets.
        number : callable
            Returns the numbers of rows at given positions, if these differ. Labels are sorted by number.
        columns : array of int, optional
            Column of each class, if the classes are in another order.
        """
        columns = np.arange(classes) if columns is None else columns
        sample = _some_rows(n_rows, max(1, MOST // sets), rng)
        rows = number(sample)
        order = np.argsort(rows, kind="stable")
        rank = np.argsort(order)
        label = np.empty((len(sample), sets), dtype=np.min_scalar_type(classes))
        step, weights = max(1, SCORES_AT_ONCE // classes), []
        for a in range(0, len(sample), step):
            score, weight = take(sample[a : a + step])
            label[rank[a : a + step]] = _labelled(score, random_words(rng, (len(score), sets)), columns)
            weights.append(weight)
        parts, width = [], max(1, SORTED_AT_ONCE // len(sample))
        for first in range(0, sets, width):
            flat = label[:, first : first + width].ravel()
            by_class = np.argsort(flat, kind="stable").astype(np.uint32, order="C")
            start = np.concatenate([[0], np.cumsum(np.bincount(flat, minlength=classes))])
            parts.append((first, len(flat) // len(sample), by_class, start))
        all_weights = (
            None if weights[0] is None else np.concatenate([w for w in weights if w is not None])[order]
        )
        return cls(rows[order], all_weights, sets, parts)

    def coefficients(self, score: Array, k: int, cells: int) -> Array:
        """Return cosine coefficients (data sets, cells) of class k, from its scores in the rows."""
        sums = _ClassGroups.of(score, self.weight, cells)
        count = np.zeros((self.sets, sums.size))
        for first, width, order, start in self.parts:
            hits = order[start[k] : start[k + 1]]
            _add_hits(hits, sums.cell, sums.group, sums.weight, count[first : first + width])
        return sums.coefficients(count)


@cached_on_task
def problem_order(task: CalibrationTask) -> Array:
    """Return the problems sorted by mean score and mean residual.

    Random numbers follow this order, so that neither the names of the classes nor the order of the columns
    change a result.
    """
    posterior = posterior_of(task)
    mean_score = (posterior.mass * posterior.score).sum(axis=-1)
    mean_residual = posterior.z[:, 0] * posterior.scale
    return np.lexsort((tied_ranks(mean_residual), tied_ranks(mean_score)))


def in_canonical_order(
    rows: ScoreVectors, columns: Array, counts: Array | None = None
) -> tuple[ScoreVectors, Callable[[Array], Array]]:
    """Sort rows by content: return sorted rows, and a function that gives original row numbers.

    Columns are taken in the order of `columns`. Rows are sorted by a random linear combination of their
    scores and their log relative weight; ties by rounding are broken by the bits of the scores. Rows with
    counts are repeated, and each copy has its own label.
    """
    factors = np.random.default_rng(0).random(len(columns) + 1)
    keys, weights, step = np.empty(rows.n), np.ones(rows.n), max(1, SCORES_AT_ONCE // len(columns))
    blocks = [np.arange(first, min(first + step, rows.n)) for first in range(0, rows.n, step)]
    for index in blocks:
        score, _, weight = rows.take(index)
        keys[index] = np.einsum("ij,j->i", np.take(score, columns, axis=1, mode="clip"), factors[1:])
        if weight is not None and counts is None:
            weights[index] = weight
    # The scale of weights is arbitrary, and rounding of relative weights must not change the order.
    keys += factors[0] * np.round(np.log(weights / weights.max()), 9)
    order = np.argsort(keys, kind="stable")
    if not np.diff(keys[order]).all():
        bits = np.concatenate([_bits(rows.take(index)[0][:, columns]) for index in blocks])
        order = np.lexsort((bits, keys))
    position = np.argsort(columns)
    cumulative_counts = None if counts is None else np.cumsum(counts[order])

    def row(index: Array) -> Array:
        return np.asarray(
            order[
                index
                if cumulative_counts is None
                else np.searchsorted(cumulative_counts, index, side="right")
            ]
        )

    def take(index: Array) -> tuple[Array, Array, Array | None]:
        score, label, weight = rows.take(row(index))
        return score[:, columns], position[label], weight if cumulative_counts is None else None

    return (
        ScoreVectors(rows.n if cumulative_counts is None else int(cumulative_counts[-1]), take),
        row,
    )


def _bits(score: Array) -> Array:
    """Return a hash of the bits of the scores of each row."""
    factors = np.random.default_rng(1).integers(1, 2**63, score.shape[1], dtype=np.uint64) * 2 + 1
    # Adding 0 turns -0 into 0.
    return np.asarray(np.einsum("ij,j->i", (score.astype(np.float64) + 0.0).view(np.uint64), factors))

"""Labels of whole rows drawn from their scores, for many classes: only the rows that hit a class are kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibrant.evidence import FINE, Array, Residuals
from calibrant.inference.null import Edges
from calibrant.posterior.clock import running

# Labels drawn at most, those sorted at once, and scores read at once.
MOST, SORTED, READ = 12_000_000, 1 << 21, 1 << 21


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels of `sets` calibrated data sets, sorted by class.

    Attributes
    ----------
    rows : array
        Numbers of the rows that were drawn for; some stand for all where they are many.
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
    ) -> Labels:
        """Draw one label for each row and set.

        Parameters
        ----------
        take : callable
            Scores (rows, classes) and weights of the rows asked for by number.
        """
        few = max(1, MOST // sets)
        some = np.arange(n_rows) if n_rows <= few else np.sort(rng.choice(n_rows, few, replace=False))
        label = np.empty((len(some), sets), dtype=np.min_scalar_type(classes))
        step, weights = max(1, READ // classes), []
        for a in range(0, len(some), step):
            score, weight = take(some[a : a + step])
            edge = np.cumsum(score, axis=1)
            edge /= edge[:, -1:]
            at = rng.random((len(edge), sets))
            for i, (ends, points) in enumerate(zip(edge[:, :-1], at, strict=True), a):
                label[i] = np.searchsorted(ends, points, side="right")
            weights.append(weight)
        parts, width = [], max(1, SORTED // len(some))
        for first in range(0, sets, width):
            flat = label[:, first : first + width].ravel()
            order = np.argsort(flat, kind="stable").astype(np.uint32)
            start = np.concatenate([[0], np.cumsum(np.bincount(flat, minlength=classes))])
            parts.append((first, len(flat) // len(some), order, start))
        whole = None if weights[0] is None else np.concatenate([w for w in weights if w is not None])
        return cls(some, whole, sets, parts)

    def coefficients(self, take: Callable[[Array], Array], k: int, cells: int) -> Array:
        """Return cosine coefficients of class k in every set, (sets, cells).

        `take` gives its scores in the rows asked for by number.
        """
        from scipy.fft import dct

        score = take(self.rows).astype(np.float64)
        cell = FINE.locate(score)
        w = np.ones(score.size)
        if self.weight is not None:  # on the scale on which they sum to the effective number of rows
            w = self.weight * (self.weight.sum() / np.square(self.weight).sum())
        mass, scored, spread = (np.bincount(cell, array) for array in (w, w * score, w * w))
        held = np.flatnonzero(mass)
        step = Residuals(mass[held], scored[held] / mass[held], np.zeros(held.size), spread[held])
        edges = Edges.of(step, cells)
        # Only the sums up to the edges matter: the steps between them are counted as one.
        ends, inner = edges.met(held.size)
        group = np.zeros(mass.size, dtype=np.intp)
        group[held] = np.searchsorted(ends, np.arange(held.size), side="right") - 1
        count = np.zeros((self.sets, ends.size - 1))
        for first, width, order, start in self.parts:
            row, at = np.divmod(order[start[k] : start[k + 1]], width)
            index = at * np.uint32(ends.size - 1) + group[cell[row]]
            sums = np.bincount(index, w[row], minlength=width * (ends.size - 1))
            count[first : first + width] = sums.reshape(width, -1)
        total = running(count) - running(scored[held][None])[:, ends]
        return np.asarray(dct(inner.sums(total) / edges.unit, norm="ortho"))

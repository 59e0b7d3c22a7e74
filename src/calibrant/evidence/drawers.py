"""Rows of one long problem by equal cells of their scores, few of which need to be looked into."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from calibrant import compiled
from calibrant.evidence.loops import PIECE, sums_of
from calibrant.evidence.moments import Array

# Bits that tell a cell: few enough for the cache, and so many that few rows share one with a rank.
FEWEST, MOST = 11, 17
# Rows that numpy sorts in less time.
FEW = 1 << 12
# Most rows whose number an integer of 32 bits holds.
COUNTED = 1 << 30


class Drawers:
    """Numbers of rows by cell, with outcomes their sums too; the rows themselves where a cell was opened.

    Most cells lie between two ranks, or two cuts, and what they hold counts as a whole.

    Parameters
    ----------
    loops : module
        The compiled loops.
    score, outcome : arrays
        Scores that lie side by side; outcomes may be left out.
    bits : int
        There are 2^bits cells, or the nearest number that suits the machine.

    Examples
    --------
    >>> score, outcome = np.array([0.5, 0.1, 0.9]), np.array([True, False, True])
    >>> if compiled.loops:
    ...     drawers = Drawers(compiled.loops, score, outcome, 11)
    ...     assert drawers.ranked(np.array([0, 2])).tolist() == [0.1, 0.9]
    ...     assert drawers.sums_between(np.array([0.9]))[0].tolist() == [[1, 0], [1, 1]]
    """

    def __init__(self, loops: ModuleType, score: Array, outcome: Array | None, bits: int) -> None:
        self._loops, self._score, self._outcome = loops, score, outcome
        self._cells = 1 << min(max(bits, FEWEST), MOST)
        self._sums = None if outcome is None else self._summed(outcome)
        sums = self._sums
        self._count = self._counted() if sums is None else (sums[:, 0, 0] + sums[:, 1, 0]).astype(np.int64)
        self._open = np.zeros(self._cells + 1, dtype=bool)
        self._key = np.zeros(0, dtype=np.int64)

    def ranked(self, rank: Array) -> Array:
        """Return the scores at ranks from 0 on: cells that hold one are opened, and sorted."""
        cell = np.searchsorted(np.cumsum(self._count), rank, side="right")
        if not self._open[cell].all():
            self._open[cell] = True
            self._key = self._picked()
            if self._sums is not None:
                self._sums[cell] = 0.0  # from now on they are summed row by row
        skipped = np.cumsum(np.where(self._open, 0, self._count))
        return (self._key[rank - skipped[cell]] >> 1).view(np.float64)

    def sums_between(self, cuts: Array) -> Array | None:
        """Sum rows between cuts, as `calibrant.evidence.tally.sums_between` describes it.

        None without outcomes, and where a cut goes through rows of a cell that was never opened.
        """
        place = np.clip(cuts * self._cells, 0, self._cells + 1)  # exact: there are 2^m cells
        cell = np.minimum(place.astype(np.intp), self._cells)
        through = cell[(place > cell) & (cell < self._cells)]  # the last cell holds the score 1 alone
        if self._sums is None or (self._count[through] * ~self._open[through]).any():
            return None
        score, outcome = (self._key >> 1).view(np.float64), (self._key & 1).astype(bool)
        if (sums := sums_of(score, outcome, None, cuts, None, 1)) is None:
            return None
        # Every cut at or below the first score that a cell can hold is left of all its rows.
        left = np.bincount(np.ceil(place).astype(np.intp), minlength=self._cells + 2)
        group = np.cumsum(left)[:-1]
        for power, outcomes in enumerate(sums):
            for y, total in enumerate(outcomes):
                total += np.bincount(group, self._sums[:, y, power], minlength=total.size)
        return sums

    def _summed(self, outcome: Array) -> Array:
        """Sum the rows of all cells by outcome: shape (cells + 1, outcomes, sums)."""

        def of_rows(rows: slice) -> Array:
            sums = np.zeros((self._cells + 1, 2, 2))
            self._loops.sum_cells(self._score[rows], outcome[rows], sums)
            return sums

        # Two parts, whatever the number of threads: sums of others would differ in their last bits.
        n = self._score.size
        half = n if n < 4 * PIECE else n // 2
        sums, *others = compiled.shared(of_rows, [slice(a, a + half) for a in range(0, n, half)])
        for other in others:
            sums += other
        return sums

    def _counted(self) -> Array:
        """Count the rows of all cells."""

        def of_rows(rows: slice) -> Array:
            count = np.zeros(self._cells + 1, dtype=np.int32)
            self._loops.count_cells(self._score[rows], None, count)
            return count

        first, *others = compiled.shared(of_rows, self._parts())
        return sum(others, first.astype(np.int64))

    def _picked(self) -> Array:
        """Return the keys of the rows in open cells, in order: the bits of the score, then the outcome."""
        size = int(self._count[self._open].sum())

        def of_rows(rows: slice) -> Array:
            key = np.empty(size, dtype=np.int64)
            outcome = None if self._outcome is None else self._outcome[rows]
            found = self._loops.pick_cells(self._score[rows], outcome, self._open, key)
            return key[:found]

        parts = list(compiled.shared(of_rows, self._parts()))
        key = parts[0] if len(parts) == 1 else np.concatenate(parts)
        if key.size < FEW:
            key.sort()
        else:
            self._loops.sort_keys(key)
        return key

    def _parts(self) -> list[slice]:
        """Share the rows among threads; no result depends on how."""
        n = self._score.size
        step = n if n <= PIECE else min(max(PIECE, -(-n // compiled.threads())), COUNTED)
        return [slice(a, a + step) for a in range(0, n, step)]

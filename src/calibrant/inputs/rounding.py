"""Rows of scores whose sum differs from 1 by no more than the rounding of the scores explains.

The rule looks at one row at a time, so that it depends neither on the order of the rows nor on how they are
divided into chunks. A row of K scores may differ from 1

- by K / 2 units of the last decimal, where its scores have at most 9 decimals (fewer than 3 count as 3);
- by as much as an array of float32, float16 or bfloat16 may, where its scores are numbers of that type;

and never by more than `LARGEST`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.floating[Any]]
#: How far a row may sum from 1, by bytes per score: the rounding error of a softmax, with a margin.
TOLERANCE, TOLERANCE_BFLOAT16 = {8: 1e-6, 4: 1e-4, 2: 2e-3}, 2e-2
# Largest deviation that rounding may explain: beyond it renormalised scores would be other scores.
LARGEST = 0.01
# Decimals that are recognised. Fewer explain almost any sum, and a double holds many more.
FEWEST, MOST = 3, 9
# Summation error, so that a deviation of exactly the tolerance is accepted.
SLACK = 1e-12


def row_sums(score: FloatArray) -> NDArray[np.float64]:
    """Return the sum of each row, added from left to right: the same bits for any memory layout."""
    sums: NDArray[np.float64] = np.cumsum(score, axis=1, dtype=np.float64)[:, -1]
    return sums


def slack(score: FloatArray) -> float:
    """Return how far a sum is off by the precision of the scores alone."""
    return max(SLACK, float(np.finfo(score.dtype).eps) / 2)


def explained(score: FloatArray, deviation: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Tell for each row whether rounding of its scores explains how far its sum is from 1.

    >>> rows = np.array([[0.3333, 0.3333, 0.3333], [0.5, 0.3, 0.1], [0.4, 0.35, 0.25 - 2e-5 / 3]])
    >>> explained(rows, row_sums(rows) - 1)
    array([ True, False, False])
    """
    far = np.maximum(np.abs(deviation) - slack(score), 1e-300)
    # The most decimals whose rounding explains the deviation: multiples of coarser units are multiples of it.
    decimals = np.floor(np.log10(0.5 * score.shape[1] / far))
    unit = 10.0 ** np.clip(decimals, FEWEST, MOST)[:, None]
    wide = score.astype(np.float64, copy=False)
    # One spacing is allowed, because percentages are divided by 100.
    written = np.abs(np.rint(wide * unit) / unit - wide) <= np.spacing(score)
    fits = (decimals >= FEWEST) & written.all(axis=1)
    for tolerance, rounded in _narrower(score):
        fits |= (far <= tolerance) & (rounded == score).all(axis=1)
    return np.asarray(fits & (far <= LARGEST))


def _narrower(score: FloatArray) -> list[tuple[float, FloatArray]]:
    """Return the scores rounded to each narrower type, with the tolerance of that type."""
    if score.itemsize < 4:
        return []
    single = score.astype(np.float32)
    brain = (single.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    narrowed: list[tuple[float, FloatArray]] = [
        (TOLERANCE[2], score.astype(np.float16)),
        (TOLERANCE_BFLOAT16, brain),
    ]
    return narrowed if score.itemsize == 4 else [(TOLERANCE[4], single), *narrowed]


def caution(count: int, rows: int, largest: float | None = None) -> str:
    """Return the sentence about rows that were divided by their sums.

    >>> caution(12, 2000, 4e-6)
    '12 of 2,000 rows did not sum to 1 because of rounding (largest deviation 4e-06) and were renormalised.'
    """
    by = "" if largest is None else f" (largest deviation {largest:.2g})"
    were = "was" if count == 1 else "were"
    return f"{count:,} of {rows:,} rows did not sum to 1 because of rounding{by} and {were} renormalised."

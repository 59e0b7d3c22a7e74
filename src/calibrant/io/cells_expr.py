"""The cell of a score, told next to the data.

`Layout.locate` once more, as columns that an engine computes, and to the last bit the same. Every step
is exact in binary floating point or decided by comparison, so no engine's rounding can move a score:
products with powers of two, differences of neighbours, floors, and one division that IEEE 754 defines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from calibrant.evidence import Array, Layout

# Distances to the wall in units of 2^-53: whole or exact, and 8 of them are the nearest edge, 2^-50.
UNIT = 2.0**53
# Octaves of a distance from 2^-50 up to 1/720: six strides of six, and the rest of a seventh.
STRIDE, STRIDES = 6, 7

col, lit = nw.col, nw.lit


def choose(condition: Any, yes: Any, no: Any) -> Any:
    """One of two values a row."""
    return nw.when(condition).then(yes).otherwise(no)


def number(condition: Any) -> Any:
    """A condition as 0.0 or 1.0."""
    return condition.cast(nw.Float64)


def located(frame: Any, layout: Layout) -> Any:
    """The frame with the number of the cell of each score `s` and the distance `x` from its origin.

    Scores must be float64 in [0, 1] and none missing. A middle cell has its number k, the cells next to
    0 have 0, -1, -2, ... and those next to 1 have K, K + 1, ..., outwards from the wall. `unpacked`
    tells what that is in the layout.

    Parameters
    ----------
    frame : narwhals frame
        With the scores in a column `s`.
    layout : Layout
        The cells.

    Returns
    -------
    narwhals frame
        With the columns `cell` and `x` besides those it had.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = nw.from_native(pd.DataFrame({"s": [0.0, 0.29, 0.5, 1.0]}))
    >>> located(frame, Layout(720))["cell"].to_list()
    [0, 208, 360, 720]
    """
    if isinstance(frame, nw.DataFrame):  # in memory already, where the layout itself can look
        score = frame["s"].to_numpy()
        cell = _packed(layout.locate(score), layout)
        return with_arrays(frame, cell=cell, x=score - unpacked(cell, layout)[1])
    s, k, full = col("s"), col("k_"), float(layout.uniform)
    kept = frame.collect_schema().names()
    polars = frame.implementation.is_polars()
    # A column, not a number: polars divides by a number by multiplying with its reciprocal, which puts 92 of
    # the 14400 edges elsewhere.
    edge = s * 0.0 + full if polars else lit(full)
    frame = frame.with_columns(near_=(s * full + 0.5).floor().cast(nw.Float64))
    # The nearest edge is at most half a cell away, so only the cell left of it can be meant instead.
    frame = frame.with_columns(k_=col("near_") - number(s < col("near_") / edge))
    frame = frame.with_columns(end_=(k < 1.0) | (k >= full - 1.0))
    first = s < 0.5
    frame = frame.with_columns(far_=_if_end(choose(first, s, 1.0 - s) * UNIT, 0.0))
    far = col("far_")
    # What is nearer than 8 units is one cell: a step of 8 puts it at 0.
    eighth = _octaves(far, [[8.0] * (i == 0) + _powers(i) for i in range(STRIDES)])
    before = _octaves(far, [[0.0] * (i == 0) + _numbers(i) for i in range(STRIDES)])
    frame = frame.with_columns(eighth_=_if_end(eighth, 1.0), before_=_if_end(before, 0.0))
    step = (far / col("eighth_")).floor().cast(nw.Float64)
    start, count = step * col("eighth_") / UNIT, col("before_") + step
    return frame.select(
        *kept,
        cell=choose(col("end_"), choose(first, 0.0 - count, full + count), k),
        x=s - choose(col("end_"), choose(first, start, 1.0 - start), k / edge),
    )


def _if_end(yes: Any, no: float) -> Any:
    """What only the rows of the first and the last cell need; most engines do not look at the others."""
    return choose(col("end_"), yes, lit(no))


def _powers(stride: int) -> list[float]:
    return [2.0 ** (STRIDE * stride + i) for i in range(STRIDE)]


def _numbers(stride: int) -> list[float]:
    return [8.0 * (STRIDE * stride + i) - 7.0 for i in range(STRIDE)]


def _octaves(far: Any, results: Sequence[Sequence[float]]) -> Any:
    """The result for the octave that a distance lies in, found in two strides."""
    found: Any = None
    for i, own in reversed(list(enumerate(results))):
        bounds = [8.0] * (i == 0) + [16 * power for power in _powers(i)]
        inner = _steps(far, bounds[: len(own) - 1], own)
        found = inner if found is None else choose(far < bounds[-1], inner, found)
    return found


def _steps(value: Any, bounds: Sequence[float], results: Sequence[float]) -> Any:
    """The first result whose bound lies above the value, or the last one."""
    found: Any = lit(results[-1])
    for bound, result in zip(reversed(bounds), reversed(results[:-1]), strict=True):
        found = choose(value < bound, lit(result), found)
    return found


def logarithm(frame: Any) -> Any:
    """The frame with `log`, the natural logarithm of `own`, and some number where that is 0."""
    if frame.implementation.is_duckdb():  # without the checks that narwhals puts around it
        return nw.from_native(frame.to_native().project("*, ln(greatest(own, 5e-324::double)) as log"))
    own = col("own")
    return frame.with_columns(log=choose(own > 0.0, own, lit(1.0)).log())


def unpacked(cell: Array, layout: Layout) -> tuple[Array, Array]:
    """The place of cells in a layout, and the origin that distances were measured from.

    >>> place, origin = unpacked(np.array([0, 208, 720]), Layout(720))
    >>> bool(place[2] == Layout(720).size - 1), origin.round(4).tolist()
    (True, [0.0, 0.2889, 1.0])
    """
    k = layout.uniform
    before = int(layout.locate(np.array([1 / k]))[0]) - 1
    place = np.where(cell <= 0, -cell, np.where(cell < k, before + cell, layout.size - 1 - (cell - k)))
    place = place.astype(np.intp)
    return place, np.where(cell < k, layout.low[place], layout.high[place])


def _packed(place: Array, layout: Layout) -> Array:
    """Cells by their place in a layout; `unpacked` turned round."""
    k = layout.uniform
    before, last = layout.locate(np.array([1 / k, (k - 1) / k])) - np.array([1, 0])
    cell = np.where(place <= before, -place, place - before)
    return np.where(place >= last, k + layout.size - 1 - place, cell)


def with_arrays(frame: Any, **arrays: Array) -> Any:
    """A frame in memory with more columns."""
    backend = frame.implementation
    return frame.with_columns(
        *(nw.new_series(name, array, backend=backend) for name, array in arrays.items())
    )

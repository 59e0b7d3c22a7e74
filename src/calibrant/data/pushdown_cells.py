"""The cell of a score, computed by the engine that has the score.

`Layout.locate` once more, as columns of a query, and to the last bit the same. Every step
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
    """Return one of two values for each row."""
    return nw.when(condition).then(yes).otherwise(no)


def number(condition: Any) -> Any:
    """Return a condition as 0.0 or 1.0."""
    return condition.cast(nw.Float64)


def located(frame: Any, layout: Layout) -> Any:
    """Return the frame with the number of the cell of each score `s` and the distance `x` from its origin.

    Scores must be float64 in [0, 1] and none missing. A middle cell has its number k, the cells next to
    0 have 0, -1, -2, ... and those next to 1 have K, K + 1, ..., outwards from the wall. `unpacked`
    says what that is in the layout.

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
    [0.0, 208.0, 360.0, 720.0]
    """
    kept = frame.collect_schema().names()
    if is_spark(frame):
        return _in_spark(frame, kept, layout.uniform)
    s, k, full = col("s"), col("k_"), float(layout.uniform)
    # A column, not a number: polars divides by a number by multiplying with its reciprocal, which puts 92 of
    # the 14400 edges elsewhere.
    frame = frame.with_columns(near_=(s * full + 0.5).floor().cast(nw.Float64), full_=s * 0.0 + full)
    # The nearest edge is at most half a cell away, so only the cell left of it can be meant instead.
    below = number(s < col("near_") / col("full_"))
    frame = frame.with_columns(k_=col("near_") - below - number(s >= 1.0))
    frame = frame.with_columns(first_=number(k == 0.0), last_=number(k == full - 1.0))
    first, last = col("first_"), col("last_")
    frame = frame.with_columns(far_=(s * first + (1.0 - s) * last) * UNIT, edge_=k + last, side_=first - last)
    return _nested(frame).select(
        *kept,
        cell=col("edge_") - col("side_") * col("eighth_"),
        x=s - (col("edge_") / col("full_") + col("side_") * (col("start_") / UNIT)),
    )


def is_spark(frame: Any) -> bool:
    """Whether Spark has the rows."""
    return frame.implementation.is_pyspark() or frame.implementation.is_pyspark_connect()


def _in_spark(frame: Any, kept: Sequence[str], full: int) -> Any:
    """Locate scores in the SQL of Spark, where the distance has bits: their number is the octave.

    Only rows of the first and the last cell are asked for them, which keeps the query as fast as without.
    """
    names = [f"`{name}`" for name in kept]
    outer = f"s < {1 / full!r}D or s >= {(full - 1) / full!r}D"
    near = f"cast(floor(s * {full}D + 0.5D) as double)"
    native = frame.to_native().selectExpr(*names, f"{outer} as end_", f"{near} as near_")
    units = f"cast(if(s < 0.5D, s, 1D - s) * {UNIT!r}D as bigint)"
    native = native.selectExpr(
        *names,
        "end_",
        f"if(end_, 0D, near_ - if(s < near_ / {full}D, 1D, 0D)) as k_",
        f"if(end_, {units}, 0L) as far_",
    )
    native = native.selectExpr(
        *names, "end_", "k_", "far_", "if(far_ < 8, 0, length(bin(far_)) - 4) as shift_"
    )
    native = native.selectExpr(
        *names, "end_", "k_", "shift_", "if(far_ < 8, 0L, shiftright(far_, shift_)) as top_"
    )
    number, start = "if(top_ = 0, 0, 8 * shift_ + top_ - 7)", f"shiftleft(top_, shift_) / {UNIT!r}D"
    cell = (
        f"if(end_, if(s < 0.5D, cast(-({number}) as double), cast({full} + {number} as double)), k_) as cell"
    )
    x = f"s - if(end_, if(s < 0.5D, {start}, 1D - {start}), k_ / {full}D) as x"
    return nw.from_native(native.selectExpr(*names, cell, x))


def _nested(frame: Any) -> Any:
    """Add the eighth of an octave that a distance `far_` lies in: its number and where it starts."""
    # The octave is found in two strides. The nearest comes first: rows of the middle cells have distance 0,
    # and engines that stop at the first match are done with them.
    strides = [2.0 ** (STRIDE * i) for i in range(STRIDES)]
    far, bounds = col("far_"), [8 * stride for stride in strides[1:]]
    frame = frame.with_columns(
        stride_=_steps(far, bounds, strides),
        eighth_=_steps(far, bounds, [8.0 * STRIDE * i for i in range(STRIDES)]),
    )
    frame = frame.with_columns(near_=far / col("stride_"))
    near, octaves = col("near_"), [2.0**i for i in range(STRIDE)]
    bounds = [8.0, *(8 * octave for octave in octaves[1:])]
    # What is nearer than 8 units is one cell: eight times as wide a step puts it at 0.
    frame = frame.with_columns(
        octave_=_steps(near, bounds, [8.0, *octaves]),
        more_=_steps(near, bounds, [0.0, *(8.0 * i - 7.0 for i in range(STRIDE))]),
    )
    frame = frame.with_columns(step_=(near / col("octave_")).floor().cast(nw.Float64))
    return frame.with_columns(
        eighth_=col("eighth_") + col("more_") + col("step_"),
        start_=col("step_") * col("octave_") * col("stride_"),
    )


def _steps(value: Any, bounds: Sequence[float], results: Sequence[float]) -> Any:
    """Return the first result whose bound lies above the value, or the last one."""
    chosen: Any = lit(results[-1])
    for bound, result in zip(reversed(bounds), reversed(results[:-1]), strict=True):
        chosen = choose(value < bound, lit(result), chosen)
    return chosen


def logarithm(frame: Any) -> Any:
    """Return the frame with `log`, the natural logarithm of `own`, and some number where that is 0."""
    if is_spark(frame):  # without the checks that narwhals puts around it
        return nw.from_native(frame.to_native().selectExpr("*", "ln(greatest(own, 4.9e-324D)) as log"))
    own = col("own")
    return frame.with_columns(log=choose(own > 0.0, own, lit(1.0)).log())


def unpacked(cell: Array, layout: Layout) -> tuple[Array, Array]:
    """Return the position of cells in a layout, and the origin that distances were measured from.

    >>> position, origin = unpacked(np.array([0, 208, 720]), Layout(720))
    >>> bool(position[2] == Layout(720).size - 1), origin.round(4).tolist()
    (True, [0.0, 0.2889, 1.0])
    """
    k = layout.uniform
    before = int(layout.locate(np.array([1 / k]))[0]) - 1
    position = np.where(cell <= 0, -cell, np.where(cell < k, before + cell, layout.size - 1 - (cell - k)))
    position = position.astype(np.intp)
    return position, np.where(cell < k, layout.low[position], layout.high[position])

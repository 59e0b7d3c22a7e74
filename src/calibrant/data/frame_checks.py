"""Why a frame cannot be used: the culprit is sought only after a failure, by small queries.

Every engine answers alike. Rows have no order there, so the example is the least or the largest value
that breaks the rule, beside the number of rows that do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NoReturn

import narwhals.stable.v2 as nw
import numpy as np

from calibrant import inputs
from calibrant.data.cells_expr import choose, col, lit, number
from calibrant.data.engines import batches, fetched, in_memory, mapped, stacked
from calibrant.data.frame_columns import Columns
from calibrant.data.frame_rows import (
    USUAL,
    Ask,
    added,
    codes,
    in_unit,
    joined,
    long,
    missing,
    weight_is_fine,
)
from calibrant.inputs import show as quoted
from calibrant.sketch.sums import HEAVIEST

USUAL_LABELS = "hold 0 and 1, -1 and 1 or booleans"


def explain(rows: Any, ask: Ask, given: Columns, names: tuple[str, ...], total: int) -> NoReturn:
    """Say what is wrong with rows of which some cannot be used.

    Parameters
    ----------
    rows : narwhals frame
        With its columns under plain names.
    ask, given : Ask, Columns
        What is asked, and what the caller calls the columns.
    names : tuple of str
        Columns of scores, as the caller calls them.
    total : int
        Number of rows.
    """
    _scores(rows, ask, names, total)
    if ask.names is not None:
        _entries(rows, ask, given, total)
    elif not ask.vector:
        _row_sums(rows.select(total=added([col(name) for name in ask.columns])), ask, total)
    _labels(rows, ask, given, total)
    if ask.counts is not None:
        _weights(rows, ask, given, total)
    _refuse_missing(rows, "g", given.group, total)
    raise ValueError(f"frame must hold the same rows in every pass, got {total} rows that changed")


def refuse_both(rows: Any, given: Columns, total: int) -> None:
    """Refuse 0 where -1 stands for the other class."""
    if zeros := _breaking(rows, partial(_equal, value=0))[0]:
        many = f"{zeros} of {total} rows have a 0"
        raise ValueError(f"column {quoted(given.label)} must {USUAL_LABELS}, got -1 and 0; {many}")


def _equal(part: Any, value: Any) -> Any:
    return part.select(bad=(col("y") == value).fill_null(False), v=col("y"))


def _breaking(rows: Any, test: Any) -> tuple[int, Any, Any]:
    """How many rows break a rule, and the least and the largest of their values."""
    frame = mapped(rows, test).filter(col("bad"))
    found = fetched(
        frame.select(col("v").count().alias("n"), col("v").min().alias("a"), col("v").max().alias("b"))
    )
    n, least, most = (found[name].tolist()[0] for name in ("n", "a", "b"))
    return int(n), _plain(least), _plain(most)


def _plain(value: Any) -> Any:
    """Whole floats as integers: a column with gaps is one of floats in some engines."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _refuse(name: Any, rule: str, value: Any, count: int, total: int, hint: str = "") -> NoReturn:
    many = f"{count} of {total} rows are like that" if count > 1 else f"1 of {total} rows is like that"
    raise ValueError(f"column {quoted(name)} must {rule}, got {inputs.show(value)}; {many}{hint}")


def _refuse_missing(rows: Any, column: str, name: Any, total: int) -> None:
    if name is not None and (count := _breaking(rows, partial(_gone, column=column))[0]):
        _refuse_count(name, count, total)


def _refuse_count(name: Any, count: int, total: int) -> NoReturn:
    # Null and NaN are one in pandas, so they are one everywhere.
    raise ValueError(f"column {quoted(name)} must have no missing values, got {count} in {total} rows")


def _gone(part: Any, column: str) -> Any:
    return part.select(bad=missing(part, column), v=missing(part, column).cast(nw.Int64))


def _scores(rows: Any, ask: Ask, names: tuple[str, ...], total: int) -> None:
    """Refuse scores that are missing or outside of [0, 1], by the first column that has any."""
    columns = ["s"] if ask.names is not None else ask.columns
    some = [[name] for name in columns] if in_memory(rows) else batches(rows, columns)
    parts = [fetched(_by_column(mapped(rows, partial(_faults, columns=part)))) for part in some]
    at = np.argsort(np.concatenate([part["c"] for part in parts]).astype(np.intp))
    gone, off, low, high = (
        np.concatenate([part[name] for part in parts])[at].tolist() for name in ("gone", "off", "low", "high")
    )
    for name, count in zip(names, gone, strict=True):
        if count:
            _refuse_count(name, int(count), total)
    least, most, hint = min(low), max(high), ""
    if least >= 0 and 2 < most <= 100:
        hint = "; these look like percentages: divide by 100 first"
    elif least < -1e-3 or most > 100:
        hint = f"; these look like logits: apply {'sigmoid' if ask.vector else 'softmax'} first"
    for k, (name, count) in enumerate(zip(names, off, strict=True)):
        if count:
            value = high[k] if high[k] > 1 else low[k]
            if math.isinf(value):
                _refuse(name, "be finite", value, int(count), total)
            _refuse(name, "lie in [0, 1]", value, int(count), total, hint)


def _faults(part: Any, columns: Sequence[str]) -> Any:
    """Each score, whether it is missing or off, and what it is if it is off."""
    part = part.select(c=lit(0), s=col("s")) if columns == ["s"] else stacked(part, columns, [])
    part = part.with_columns(lost=missing(part, "s"), unit=in_unit(col("s")))
    kept = col("lost") | col("unit")
    return part.select(
        "c", gone=number(col("lost")), off=1.0 - number(kept), v=choose(kept, lit(0.5), col("s"))
    )


def _by_column(frame: Any) -> Any:
    low, high = col("v").min().alias("low"), col("v").max().alias("high")
    return frame.group_by("c").agg(col("gone").sum(), col("off").sum(), low, high)


def _entries(rows: Any, ask: Ask, given: Columns, total: int) -> None:
    """Refuse rows in long form that do not have every class once, or do not sum to 1."""
    _refuse_missing(rows, "r", given.row, total)
    _refuse_missing(rows, "c", given.classes, total)
    names = ask.names or ()
    count, least, _ = _breaking(rows, partial(_unknown, column="c", values=names))
    if count:
        _refuse(given.classes, f"hold only the classes {inputs.show(*names)}", least, count, total)
    whole = joined(mapped(rows, partial(long, ask=ask)), ask)
    count, least, most = _breaking(whole, partial(_not, column="entries", value=ask.size))
    if count:
        value = least if least < ask.size else most
        rule = f"have an entry for each of {ask.size} classes in every row, with one label and weight"
        _refuse(given.row, rule, value, count, total)
    _row_sums(whole, ask, total)


def _not(part: Any, column: str, value: Any) -> Any:
    return part.select(bad=col(column) != value, v=col(column))


def _row_sums(frame: Any, ask: Ask, total: int) -> None:
    count, least, most = _breaking(frame, partial(_far, tolerance=ask.tolerance))
    if not count:
        return
    worst = max(least, most, key=lambda value: abs(value - 1))
    hint = "if these are logits or one sigmoid per class, apply softmax first"
    if abs(worst - 1) <= 0.05:
        hint = "if these are rounded, divide each row by its sum"
    many = f"{count} of {total} rows are like that" if count > 1 else f"1 of {total} rows is like that"
    rule = f"scores must sum to 1 within {ask.tolerance:g} in every row"
    raise ValueError(f"{rule}, got {worst:.9g}; {many}; {hint}")


def _far(part: Any, tolerance: float) -> Any:
    return part.select(bad=(col("total") - 1.0).abs() > tolerance + 1e-12, v=col("total"))


def _labels(rows: Any, ask: Ask, given: Columns, total: int) -> None:
    _refuse_missing(rows, "y", given.label, total)
    if ask.values is None:
        return
    count, least, _ = _breaking(rows, partial(_unknown, column="y", values=ask.values))
    if count and ask.values == USUAL:
        rule, hint = USUAL_LABELS, "; pass pos_label="
    else:
        rule = f"hold only the labels {inputs.show(*ask.values)}"
        hint = "" if ask.vector else "; pass labels= with the class of each column"
    if count:
        _refuse(given.label, rule, least, count, total, hint)


def _unknown(part: Any, column: str, values: tuple[Any, ...]) -> Any:
    return part.select(bad=codes(part, column, values) < 0.0, v=col(column))


def _weights(rows: Any, ask: Ask, given: Columns, total: int) -> None:
    _refuse_missing(rows, "w", given.weight, total)
    count, least, most = _breaking(rows, partial(_unfit, counts=bool(ask.counts)))
    if not count:
        return
    if least < 0 or most == np.inf:
        count, value = (count, most) if least >= 0 else (count, least)
        _refuse(given.weight, "be finite and at least 0", value, count, total)
    rule = "be below 2^63" if ask.counts else f"be 0 or lie between {1 / HEAVIEST:g} and {HEAVIEST:g}"
    _refuse(given.weight, rule, least, count, total)


def _unfit(part: Any, counts: bool) -> Any:
    return part.select(bad=~weight_is_fine(col("w"), counts), v=col("w"))

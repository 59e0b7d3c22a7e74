"""Why the rows of a frame cannot be used: sought only after a failure, by small queries.

Every engine answers alike. Rows have no order in many of them, so the example is the least or the largest
value that breaks the rule, beside the number of rows that do.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple, NoReturn

import narwhals.stable.v2 as nw
import numpy as np

from calibrant.data.pushdown import (
    Query,
    Request,
    added,
    entry,
    fetched,
    in_unit,
    is_whole,
    joined,
    mapped,
    missing,
    weight_is_fine,
)
from calibrant.data.pushdown_cells import col, number
from calibrant.inputs import InputError, hint_about_range, hint_about_sum
from calibrant.sketch.sums import HEAVIEST


class Broken(NamedTuple):
    """How many rows break a rule, of how many, and the least and the largest of their values."""

    rows: int
    total: int
    least: Any
    most: Any


def explain(rows: Any, request: Request, *, sums: bool) -> None:
    """Raise what is wrong with rows of which some cannot be used.

    Parameters
    ----------
    rows : narwhals frame
        With its columns under plain names.
    request : Request
        What is asked of it.
    sums : bool
        Whether rows that do not sum to 1 are refused.
    """
    _check_scores(rows, request)
    if request.entries is not None:
        _check_entries(rows, request)
    elif sums and not request.vector:
        _check_sums(rows.select(total=added([col(name) for name in request.scores])), request)
    if request.counts is not None:
        _check_weights(rows, request)
    if "g" in request.roles:
        _check_missing(rows, "g", request)


def like_that(count: int, total: int) -> str:
    """Say how many rows break a rule."""
    return f"{count} of {total} rows {'are' if count > 1 else 'is'} like that"


def refuse_missing(column: str, count: int, total: int) -> NoReturn:
    """Refuse missing values; null and NaN are one in pandas, so they are one everywhere."""
    raise InputError(column, "have no missing values", count, got=f"{count} in {total} rows")


def _broken(rows: Any, test: Query) -> Broken:
    """Ask which rows break a rule: `test` makes the columns `bad` and `v`, the value."""
    frame = mapped(rows, partial(_tested, test=test))
    sums = [nw.len().alias("total"), col("bad").sum(), col("least").min(), col("most").max()]
    totals = fetched(frame.select(*sums))
    total, count, least, most = (totals[name].tolist()[0] for name in ("total", "bad", "least", "most"))
    return Broken(int(count or 0), int(total), _whole(least), _whole(most))


def _tested(frame: Any, test: Query) -> Any:
    frame = test(frame)
    value = nw.when(col("bad")).then(col("v"))
    return frame.select(bad=number(col("bad")), least=value, most=value)


def _whole(value: Any) -> Any:
    """Return whole floats as integers: a column with gaps is one of floats in some engines."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _refuse(
    column: str, rule: str, value: Any, broken: Broken, hint: str = "", got: str | None = None
) -> NoReturn:
    hints = [like_that(broken.rows, broken.total), hint]
    raise InputError(column, rule, value, got=got, hint="; ".join(filter(None, hints)))


def _check_missing(rows: Any, name: str, request: Request) -> None:
    broken = _broken(rows, partial(_missing, name=name))
    if broken.rows:
        refuse_missing(request.called(name), broken.rows, broken.total)


def _missing(frame: Any, name: str) -> Any:
    gone = missing(frame, name)
    return frame.select(bad=gone, v=number(gone))


def _check_scores(rows: Any, request: Request) -> None:
    """Refuse scores that are missing or outside of [0, 1], by the first column that has any."""
    frame = mapped(rows, partial(_unfit_scores, names=request.scores))
    counts = fetched(frame.select(*(col(name).sum() for name in request.scores)))
    for name in request.scores:
        if not counts[name][0]:
            continue
        _check_missing(rows, name, request)
        broken = _broken(rows, partial(_outside, name=name))
        least, most = broken.least, broken.most
        value = most if most > 1 else least
        if math.isinf(value):
            _refuse(request.called(name), "be finite", value, broken)
        hint = hint_about_range(least, most, vector=request.vector)
        hint += ", or pass percent=True" * ("percentages" in hint)
        _refuse(request.called(name), "lie in [0, 1]", float(value), broken, hint)


def _unfit_scores(frame: Any, names: list[str]) -> Any:
    return frame.select(**{name: 1.0 - number(in_unit(col(name))) for name in names})


def _outside(frame: Any, name: str) -> Any:
    return frame.select(bad=~in_unit(col(name)), v=col(name))


def _check_entries(rows: Any, request: Request) -> None:
    """Refuse rows in long form that do not have every class once, or do not sum to 1."""
    _check_missing(rows, "r", request)
    whole = joined(mapped(rows, partial(entry, request=request)), request)
    broken = _broken(whole, partial(_incomplete, request=request))
    if broken.rows:
        value = broken.least if broken.least < request.size else broken.most
        rule = f"have an entry for each of {request.size} classes in every row, with one label and weight"
        got = "a class twice" if value == request.size else None
        _refuse(request.called("r"), rule, value, broken, got=got)
    _check_sums(whole, request)


def _incomplete(frame: Any, request: Request) -> Any:
    return frame.select(bad=~is_whole(request), v=col("entries").cast(nw.Float64))


def _check_sums(frame: Any, request: Request) -> None:
    broken = _broken(frame, partial(_far, tolerance=request.tolerance))
    if not broken.rows:
        return
    worst = max(broken.least, broken.most, key=lambda value: abs(value - 1))
    rule = f"sum to 1 within {request.tolerance:g} in every row"
    _refuse("scores", rule, worst, broken, hint_about_sum(worst), got=f"{worst:.9g}")


def _far(frame: Any, tolerance: float) -> Any:
    return frame.select(bad=(col("total") - 1.0).abs() > tolerance + 1e-12, v=col("total"))


def _check_weights(rows: Any, request: Request) -> None:
    _check_missing(rows, "w", request)
    broken = _broken(rows, partial(_unfit_weights, counts=bool(request.counts)))
    if not broken.rows:
        return
    if broken.least < 0 or broken.most == np.inf:
        value = broken.least if broken.least < 0 else broken.most
        _refuse(request.called("w"), "be finite and at least 0", value, broken)
    limits = f"be 0 or lie between {1 / HEAVIEST:g} and {HEAVIEST:g}"
    _refuse(request.called("w"), "be below 2^63" if request.counts else limits, broken.least, broken)


def _unfit_weights(frame: Any, counts: bool) -> Any:
    return frame.select(bad=~weight_is_fine(col("w"), counts), v=col("w"))

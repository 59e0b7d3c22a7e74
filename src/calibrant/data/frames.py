"""Frames of any engine become sketches.

A frame is opened, and its columns and classes are settled by their names and by the labels that occur. Then
`frame_sums` adds up its rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.exceptions import DuplicateError

from calibrant import inputs
from calibrant.data.columns import ColumnHeader, ColumnRequest, ColumnRoles, roles_of
from calibrant.data.frame_sums import (
    GroupSums,
    Request,
    is_text,
    label_of,
    like_that,
    missing,
    pieces_of,
    refuse_faults,
    refuse_missing,
    renamed,
    sums_of,
)
from calibrant.inputs import InputError, InputTypeError, Words, show
from calibrant.inputs.columns import advice_on_labels, class_of_name
from calibrant.inputs.predictions import explicit_column
from calibrant.sketch.sketch import Sketch
from calibrant.tasks import notions

# More classes than any table has: a column of identifiers was taken for them.
MOST_CLASSES = 20_000


def open_frame(frame: Any) -> Any:
    """Return a frame of any engine as narwhals sees it.

    Raises
    ------
    TypeError
        If it is no frame.
    ValueError
        If several of its columns have one name.
    """
    try:
        frame = nw.from_native(nw.to_native(frame, pass_through=True))
    except TypeError:
        hint = "open a file as a frame first, such as polars.scan_parquet(path)" * isinstance(frame, str)
        rule = "be a pandas, polars, pyarrow, DuckDB, Dask, Ibis or PySpark frame"
        raise InputTypeError("frame", rule, frame, got=type(frame).__name__, hint=hint) from None
    except DuplicateError as error:
        text = " ".join(str(error).split())
        raise InputError("columns of the frame", "have different names", got=text) from None
    return frame.lazy() if frame.implementation.is_polars() else frame


def from_frame(frame: Any, *, scores: Any, n_classes: int | None, **others: Any) -> dict[Any, Sketch]:
    """Return the sketch of each group of a frame; without groups that of None.

    Other arguments are those of `ColumnRequest`.
    """
    if not isinstance(scores, Sequence) or not scores:
        raise InputTypeError("scores", "be a column, columns or a pattern", scores)
    requested = ColumnRequest(scores=(scores,) if isinstance(scores, str) else tuple(scores), **others)
    notions.refuse_without_rows(requested.notion)
    notions.refuse_matrices(requested.notion)
    frame = open_frame(frame)
    try:
        # In the order of their classes, also where `labels` names these.
        roles = roles_of(
            ColumnHeader(tuple(frame.collect_schema()), of="frame"), replace(requested, labels=None)
        )
        seen, request = _request(frame, roles, requested, n_classes)
        groups = _groups(frame, request, roles, seen)
    except UnicodeEncodeError as error:  # by pandas, whose objects may be what its engine cannot hold
        raise InputError("text in the frame", "have no halves of characters", error.object) from None
    if request.percent:
        scores = [nw.col(name).max() for name in request.scores]
        most = _collected(renamed(frame, request.roles).select(*scores))
        inputs.check_percent(max(float(most[name][0]) for name in request.scores) / 100)
    groups = {value: group for value, group in groups.items() if group.rows}
    for value, group in groups.items():
        if group.sketch.n == 0:
            where = f" in group {show(value)}" * ("g" in request.roles)
            got = f"{group.rows} weights of 0{where}"
            raise InputError(request.called("w"), "have a positive sum", 0, got=got)
    return {value: groups[value].sketch for value in _ordered(groups)}


def _groups(frame: Any, request: Request, roles: ColumnRoles, rows: int) -> dict[Any, GroupSums]:
    """Return the sums of each group of a frame that had so many rows before."""
    try:
        sums = sums_of(frame, request)
        if sums.error is not None:
            refuse_faults(sums, request)
            raise sums.error
    except InputError as error:
        raise _in_words(error, roles) from None
    if sums.rows != rows:
        got = f"{rows} rows and then {sums.rows}"
        raise InputError("frame", "hold the same rows in every pass", sums.rows, got=got)
    return sums.groups


def _ordered(groups: Iterable[Any]) -> list[Any]:
    """Return groups in their order, where they have one."""
    values = list(groups)
    with suppress(TypeError):  # of values that have no order
        values.sort()
    return values


def _in_words(error: InputError, roles: ColumnRoles) -> InputError:
    """Return an error about arrays as one about columns of the frame."""
    names = {"y_true": f"column {show(roles.label)}", "y_prob": "scores"}
    names |= dict.fromkeys(("sample_weight", "counts"), f"column {show(roles.weight)}")
    error.argument, error.row = Words(names).called(error.argument), None
    return _of_frame(error)


def _of_frame(error: InputError) -> InputError:
    """Leave out advice that is about arrays."""
    error.advice = "" if error.advice == "ignored" else error.advice
    return error


# Which columns, and which class each of them is of


def _request(
    frame: Any, roles: ColumnRoles, requested: ColumnRequest, n_classes: int | None
) -> tuple[int, Request]:
    """Return the number of rows of a frame, and what is asked of it."""
    names, label = roles.scores.names, str(roles.label)
    plain = {"y": label, "w": roles.weight, "g": roles.groups}
    columns = {key: name for key, name in plain.items() if name is not None}
    columns |= {str(k): name for k, name in enumerate(names)}
    _check_types(frame.collect_schema(), columns)
    vector, pos_label = len(names) == 1, label_of(requested.pos_label)
    explicit = (
        None if requested.labels is None else tuple(map(label_of, inputs.class_labels(requested.labels)))
    )
    seen, rows = _rows_by_value(frame, label, drop=roles.drop)
    try:
        if vector:
            classes, pos_label = _single(names[0], seen, explicit, pos_label, requested.notion)
        else:
            column_classes = inputs.classes_of_columns(names, seen, len(names), explicit, "scores")
            order = None if explicit is None else inputs.column_order(names, explicit)
            names = names if order is None else tuple(names[k] for k in order)
            columns |= {str(k): name for k, name in enumerate(names)}
            classes = tuple(map(label_of, column_classes))
    except InputError as error:
        raise _in_words(error, roles) from None
    codes = _codes(classes) if vector else {each: k for k, each in enumerate(classes)}
    _check_known(label, seen, codes, advice="" if explicit or vector else "labels")
    if n_classes is not None and inputs.positive_int("n_classes", n_classes, 2) != len(classes):
        raise InputError("n_classes", f"be the number of classes, {len(classes)}", n_classes)
    positive = inputs.positive_column(classes, pos_label)
    notion = notions.default_notion(requested.notion, vector=vector)
    is_given = vector or pos_label is not None or explicit is not None
    column = explicit_column(classes, positive, is_given=is_given)
    notion.check(vector=vector, labels=classes, positive=column)
    counts = roles.counts is not None
    return rows, Request(notion, columns, classes, codes, positive, counts, roles.percent, roles.drop)


def _check_types(schema: Mapping[str, Any], columns: dict[str, str]) -> None:
    """Refuse columns of types that labels, scores and weights cannot have."""
    for key, name in columns.items():
        dtype, label = schema[name], key == "y"
        if key == "g" or dtype.is_numeric() or dtype == nw.Boolean or (label and is_text(dtype)):
            continue
        rule = "hold numbers, booleans or text" if label else "hold numbers"
        hint = "frame.convert_dtypes() finds the type of its values" * (dtype == nw.Object)
        raise InputTypeError(f"column {show(name)}", rule, dtype, got=f"the type {dtype}", hint=hint)


def _single(
    name: str, seen: dict[Any, int], explicit: tuple[Any, ...] | None, pos_label: Any, notion: str | None
) -> tuple[tuple[Any, ...], Any]:
    """Return the negative and the positive label of a single score, and the latter alone.

    That is `pos_label`, or what the column is named after, or 1.
    """
    known = tuple(seen) if explicit is None else explicit
    if pos_label is None and (notion is None or not notions.get_notion(notion).correctness_pairs):
        pos_label = class_of_name(name, known)
    half = np.full(len(known), 0.5)
    classes = inputs.predictions(list(known), half, labels=explicit, pos_label=pos_label).labels
    return classes, classes[1]


def _codes(classes: tuple[Any, ...]) -> dict[Any, int]:
    """Return 1 for the positive label of a single score and 0 for the others: none, one, or a tuple."""
    others, positive = classes
    negative = others if isinstance(others, tuple) else () if others is None else (others,)
    return dict.fromkeys(negative, 0) | {positive: 1}


def _rows_by_value(frame: Any, column: str, *, drop: bool) -> tuple[dict[Any, int], int]:
    """Return the values of a column in their order, whole floats as integers, and how many rows have each.

    Beside them is the number of all rows. With `drop`, some may have no value.
    """
    label_frame = renamed(frame, {"y": column})
    counts: dict[Any, int] = {}
    rows = gone = 0
    for piece in pieces_of(label_frame) if isinstance(label_frame, nw.DataFrame) else [label_frame]:
        table = _collected(piece.group_by("y").agg(nw.len().alias("n")).head(MOST_CLASSES + 1))
        rows += int(table["n"].sum())
        for value, count, lost in zip(table["y"].to_list(), table["n"], missing(table["y"]), strict=True):
            if lost:
                gone += count
            else:
                counts[label_of(value)] = counts.get(label_of(value), 0) + count
        if len(counts) > MOST_CLASSES:
            got = f"more than {MOST_CLASSES} of them"
            raise InputError(f"column {show(column)}", "hold classes", len(counts), got=got)
    if not rows:
        raise InputError("frame", "not be empty", 0, got="0 rows")
    if gone and not drop:
        refuse_missing(f"column {show(column)}", gone, rows, advice="missing")
    if not counts:
        inputs.refuse_unlabelled(f"column {show(column)}", rows)
    return {value: counts[value] for value in inputs.in_order(tuple(counts))}, rows


def _collected(frame: Any) -> Any:
    """Return a small frame in memory."""
    if isinstance(frame, nw.DataFrame):
        return frame
    return frame.collect(**({"engine": "streaming"} if frame.implementation.is_polars() else {}))


def _check_known(column: str, seen: dict[Any, int], known: dict[Any, int], advice: str) -> None:
    """Refuse labels that are none of those that are known."""
    others = [value for value in seen if value not in known]
    if others:
        many = like_that(sum(seen[value] for value in others), sum(seen.values()))
        rule = f"hold only the labels {show(*known)}"
        hint, advice = advice_on_labels(others, advice)
        hint = "; ".join(filter(None, [many, hint]))
        raise _of_frame(InputError(f"column {show(column)}", rule, others[0], hint=hint, advice=advice))

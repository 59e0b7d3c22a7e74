"""Which columns of a frame are meant, and which class each of them is of.

Decided by names and types alone, never by the labels that happen to occur: a table and a part of it
ask the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from calibrant import inputs
from calibrant.data.cells_expr import col
from calibrant.data.columns import member, ordered, whole
from calibrant.data.engines import mapped, summed
from calibrant.data.frame_rows import USUAL, Ask
from calibrant.inputs import show as quoted
from calibrant.questions import notions

# More classes than any long table has: a column of identifiers was taken for the classes.
MOST_CLASSES = 20_000
_BOOLEANS = {"true": 1, "false": 0}


@dataclass(frozen=True)
class Columns:
    """The columns as the caller names them."""

    label: str
    scores: str | Sequence[str]
    weight: str | None
    group: str | None
    row: str | None
    classes: str | None


@dataclass(frozen=True)
class Found:
    """Columns of scores, and the texts that name their classes."""

    names: tuple[str, ...]
    texts: tuple[str, ...] | None


def asked(
    frame: Any, given: Columns, *, notion: str | None, labels: Any, pos_label: Any, n_classes: Any
) -> tuple[dict[str, str], Ask, tuple[Any, ...], tuple[str, ...]]:
    """The columns by their plain names, what is asked of them, the classes, and the columns of scores."""
    schema = dict(frame.collect_schema())
    if (given.row is None) != (given.classes is None):
        raise TypeError("row and classes go together: both name columns of a frame in long form")
    for role in ("label", "weight", "group", "row", "classes"):
        _check_name(schema, role, getattr(given, role))
    found = _scores(schema, given)
    long, size = given.row is not None, len(found.names)
    if long and size > 1:
        raise ValueError(f"scores must be one column of a frame in long form, got {quoted(*found.names)}")
    named = {"y": given.label, "w": given.weight, "g": given.group, "r": given.row, "c": given.classes}
    roles = {key: name for key, name in named.items() if name is not None}
    roles |= zip(["s"] if long else map(str, range(size)), found.names, strict=False)
    classes = None if labels is None else tuple(map(_bare, inputs.class_labels(labels)))
    pos_label = _bare(pos_label)
    text = _is_text(schema[given.label])
    values: tuple[Any, ...] | None
    known: tuple[Any, ...]
    if long:
        own = classes if classes is not None else _distinct(frame, "c", given.classes)
        size = len(own)
        values = known = own if text == _is_text(schema[given.classes]) else _as_labels(own, text)
    elif size > 1:
        own, values = None, _classes(found, classes, text)
        known = values
    else:
        own, (values, known, pos_label) = None, _single(frame, given, classes, pos_label, text)
    if n_classes is not None and inputs.positive_int("n_classes", n_classes, 2) != max(size, 2):
        raise ValueError(f"n_classes must be the number of classes, {max(size, 2)}, got {n_classes}")
    vector = size == 1
    name = notions.named(notion).name if notion is not None else "class" if vector else "confidence"
    positive = pos_label if vector else _positive(name, known, pos_label)
    counts = None if given.weight is None else not _is_real(schema[given.weight])
    tolerance = _tolerance([schema[name] for name in found.names])
    ask = Ask(name, values, own, size, positive, tolerance, counts, given.group is not None)
    return roles, ask, known, found.names


def renamed(frame: Any, roles: dict[str, str]) -> Any:
    """The columns that are used, under plain names and of plain types."""
    schema = frame.collect_schema()
    kinds = {"y": _label, "c": _label, "g": _any, "r": _any}
    return frame.select(**{key: kinds.get(key, _numeric)(schema[name], name) for key, name in roles.items()})


def _check_name(schema: dict[str, Any], role: str, name: Any) -> None:
    if name is None and role != "label":
        return
    if not isinstance(name, str):
        raise TypeError(f"{role} must be the name of a column, got {inputs.show(name)}")
    if name not in schema:
        near = inputs.show_near(name, schema)
        raise ValueError(f"{role} must be a column of the frame, got {near}; columns: {quoted(*schema)}")


def _scores(schema: dict[str, Any], given: Columns) -> Found:
    """The columns of scores: names, or patterns whose star stands for the class."""
    specs = [given.scores] if isinstance(given.scores, str) else given.scores
    if not isinstance(specs, Sequence) or not specs or not all(isinstance(spec, str) for spec in specs):
        raise TypeError(f"scores must be a column, columns or a pattern, got {inputs.show(given.scores)}")
    taken = {given.label, given.weight, given.group, given.row, given.classes}
    pairs: list[tuple[str, str]] = []
    named = True
    for spec in specs:
        if spec in schema or "*" not in spec:
            _check_name(schema, "scores", spec)
            if spec in taken:
                raise ValueError(
                    f"scores must be other columns than the label and the weight, got {quoted(spec)}"
                )
            found = member(spec)
            pairs.append((spec, found[1] if found else spec))
            continue
        pattern = re.compile("(.*)".join(map(re.escape, spec.split("*"))), re.DOTALL)
        matches = [match for name in schema if name not in taken and (match := pattern.fullmatch(name))]
        if len(matches) < 2:
            some = quoted(matches[0].string) if matches else "none"
            raise ValueError(f"scores={spec!r} must match columns, got {some} of {quoted(*schema)}")
        named = named and spec.count("*") == 1
        many = [(match.string, match[1]) for match in matches]
        pairs += ordered(many) if named else [(name, name) for name, _ in many]
    names, texts = zip(*pairs, strict=True)
    for texts_or_names in (names, texts) if named and len(names) > 1 else (names,):
        if len(set(texts_or_names)) < len(names):
            twice = next(v for v in texts_or_names if texts_or_names.count(v) > 1)
            raise ValueError(f"scores must be columns of distinct classes, got {quoted(twice)} twice")
    return Found(names, texts if named else None)


def _classes(found: Found, given: tuple[Any, ...] | None, text: bool) -> tuple[Any, ...]:
    """The label that each of several columns of scores is of."""
    size = len(found.names)
    if given is not None:
        if len(given) != size:
            raise ValueError(
                f"labels must name {size} columns of scores, got {len(given)}: {inputs.show(*given)}"
            )
        own = (found.texts if text else _numbers(found.texts)) or ()
        return own if set(own) == set(given) else given
    if text and found.texts is None:
        raise ValueError(
            f"scores={found.names[0]!r}, ... do not name classes; pass labels= with the class of each column"
        )
    if text:
        return found.texts or ()
    return _numbers(found.texts) or tuple(range(size))


def _numbers(texts: Sequence[Any] | None) -> tuple[Any, ...] | None:
    """Texts as whole numbers or booleans; None where some are neither."""
    read = [_BOOLEANS.get(str(v).lower(), whole(str(v))) for v in texts or ()]
    return None if not read or None in read else tuple(read)


def _as_labels(classes: tuple[Any, ...], text: bool) -> tuple[Any, ...]:
    """Classes in the terms of a label column of the other type."""
    return tuple(map(str, classes)) if text else _numbers(classes) or classes


def _positive(notion: str, classes: tuple[Any, ...], pos_label: Any) -> int | None:
    if pos_label is not None and pos_label not in classes:
        raise ValueError(f"pos_label must be one of {inputs.show(*classes)}, got {inputs.show(pos_label)}")
    positive = classes.index(pos_label) if pos_label is not None else 1 if len(classes) == 2 else None
    if notion == "class":  # refuses where no class is asked about
        empty = np.empty((0, len(classes)))
        next(notions.named(notion).problems(inputs.Predictions(empty, empty[:, 0], None, classes, positive)))
    return positive


def _single(
    frame: Any, columns: Columns, given: tuple[Any, ...] | None, pos_label: Any, text: bool
) -> tuple[tuple[Any, ...] | None, tuple[Any, ...], Any]:
    """Labels that may go with a single score, (negative, positive), and the positive one."""
    if given is None and pos_label is None and not text:
        return USUAL, (0, 1), 1
    seen = given if given is not None else _distinct(frame, "y", columns.label)
    try:
        known = inputs.predictions(seen, np.full(len(seen), 0.5), labels=given, pos_label=pos_label).labels
    except (ValueError, TypeError) as error:
        raise type(error)(str(error).replace("y_true", f"column {quoted(columns.label)}")) from None
    return given, known, known[1]


def _distinct(frame: Any, name: str, called: Any) -> tuple[Any, ...]:
    """The values of a column, sorted; a small pass of its own."""
    rows = mapped(frame, partial(renamed, roles={name: called}))
    found = summed(rows, lambda part: part.group_by(name).agg(nw.len().alias("n")), [name])
    values = {v for v in found[name].tolist() if v is not None and v == v}
    if not values or len(values) > MOST_CLASSES:
        many = f"{len(values)} of them" if values else "none"
        raise ValueError(f"column {quoted(called)} must hold classes, got {many}")
    return tuple(sorted(int(v) if isinstance(v, float) and v.is_integer() else v for v in values))


def _is_text(dtype: Any) -> bool:
    return dtype in (nw.String, nw.Categorical) or isinstance(dtype, nw.Enum)


def _is_real(dtype: Any) -> bool:
    return not (dtype.is_integer() or dtype == nw.Boolean)


def _bare(value: Any) -> Any:
    """A numpy scalar as what Python has for it: not every engine knows numpy."""
    return value.item() if isinstance(value, np.generic) else value


def _any(dtype: Any, name: str) -> Any:
    return col(name)


def _label(dtype: Any, name: str) -> Any:
    """A column of labels, as numbers or text."""
    if dtype == nw.Boolean:
        return col(name).cast(nw.Int64)
    if dtype.is_integer():
        return col(name)
    if dtype.is_numeric():
        return col(name).cast(nw.Float64)
    if _is_text(dtype):
        return col(name).cast(nw.String)
    hint = "; frame.convert_dtypes() finds the type of its values" * (dtype == nw.Object)
    raise TypeError(f"column {quoted(name)} must hold numbers, booleans or text, got the type {dtype}{hint}")


def _numeric(dtype: Any, name: str) -> Any:
    if not (dtype.is_numeric() or dtype == nw.Boolean):
        raise TypeError(f"column {quoted(name)} must hold numbers, got the type {dtype}")
    whole_first = col(name).cast(nw.Int64) if dtype == nw.Boolean else col(name)
    return whole_first.cast(nw.Float64)


def _tolerance(dtypes: Sequence[Any]) -> float:
    """How far a row may sum from 1, by the precision that all of its scores share."""
    kinds = {nw.Float16: np.float16, nw.Float32: np.float32}
    common = np.result_type(*(next((v for k, v in kinds.items() if d == k), np.float64) for d in dtypes))
    return inputs.TOLERANCE[common.itemsize]

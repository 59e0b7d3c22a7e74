"""Frames of any engine become sketches.

A frame is opened, and its columns and classes are settled by their names and by the labels that occur. Then
it takes one of two roads. Rows that this process or a worker of Dask holds are cut into pieces, each of which
becomes `Predictions` and is added to a `Sketch`. Rows of Spark and Ibis stay where they are, and so do
entries of a frame in long form, which the engine has to join: `pushdown` adds them up there.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.exceptions import DuplicateError

from calibrant import inputs
from calibrant.data.columns import one_column
from calibrant.data.pushdown import (
    Group,
    Request,
    are_positions,
    check_notion,
    coded,
    fetched,
    in_memory,
    is_text,
    missing,
    of_engine,
    plain,
    summed,
)
from calibrant.data.pushdown_cells import number
from calibrant.data.pushdown_checks import explain, like_that, refuse_missing
from calibrant.inputs import InputError, InputTypeError, Words, show
from calibrant.inputs.groups import check_group_count
from calibrant.questions import notions
from calibrant.sketch.sketch import Sketch

# More classes than any table has: a column of identifiers was taken for them.
MOST_CLASSES = 20_000
# Numbers of a piece.
BLOCK = 1 << 20
# Pieces summed at the same time; and the columns from which on the sums are as large as a piece.
THREADS, WIDE = 4, 20
# Sums of partitions that are added at a time.
JOINED = 8


@dataclass(frozen=True)
class Columns:
    """The columns of a frame, as the caller names them.

    Attributes
    ----------
    label : str
        The labels.
    scores : str or sequence of str
        A column, several, or a pattern such as "p_*", where the star stands for the class.
    sample_weight, counts, groups : str, optional
        Importance weights, or numbers of equal rows; and the groups.
    row, classes : str, optional
        Which row and which class an entry is of; frames in long form only.
    percent : bool
        Whether scores are percentages, from 0 to 100.
    """

    label: str
    scores: str | Sequence[str]
    sample_weight: str | None = None
    groups: str | None = None
    row: str | None = None
    classes: str | None = None
    percent: bool = False
    counts: str | None = None

    @property
    def weight(self) -> str | None:
        """The column of importance weights or of counts."""
        return self.sample_weight if self.counts is None else self.counts


def from_frame(
    frame: Any,
    columns: Columns,
    *,
    notion: str | None = None,
    labels: Any = None,
    pos_label: Any = None,
    n_classes: int | None = None,
) -> Sketch:
    """Sum up a frame as a whole, whatever its groups; see `Sketch.from_frame`."""
    asked = {"notion": notion, "labels": labels, "pos_label": pos_label, "n_classes": n_classes}
    return _sketches(frame, replace(columns, groups=None), **asked)[None]


def from_frame_by_group(
    frame: Any,
    columns: Columns,
    *,
    notion: str | None = None,
    labels: Any = None,
    pos_label: Any = None,
    n_classes: int | None = None,
) -> dict[Any, Sketch]:
    """Sum up each group of a frame; see `Sketch.from_frame_by_group`."""
    if columns.groups is None:
        raise InputTypeError("groups", "be the name of a column", None)
    asked = {"notion": notion, "labels": labels, "pos_label": pos_label, "n_classes": n_classes}
    return _sketches(frame, columns, **asked)


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


def _without_categories(frame: Any, label: Any) -> Any:
    """Return a frame whose labels are numbers where these are kept as categories, which read as text."""
    native = nw.to_native(frame)
    if frame.implementation.is_pandas() and label in native:
        categories = getattr(native[label].dtype, "categories", None)
        if categories is not None and categories.dtype.kind in "biuf" and not native[label].isna().any():
            return nw.from_native(native.assign(**{label: native[label].astype(categories.dtype)}))
    if frame.implementation.is_pyarrow() and label in native.column_names:
        values = getattr(native.schema.field(label).type, "value_type", None)
        if values is not None and not str(values).endswith("string"):
            at = native.column_names.index(label)
            return nw.from_native(native.set_column(at, label, native[label].cast(values)))
    return frame


def _sketches(frame: Any, columns: Columns, **asked: Any) -> dict[Any, Sketch]:
    """Return the sketch of each group; without groups that of None."""
    notions.refuse_whole(asked["notion"])
    frame = _without_categories(open_frame(frame), columns.label)
    try:
        request = _request(frame, columns, **asked)
        groups = _groups(frame, request, columns)
    except UnicodeEncodeError as error:  # by pandas, whose objects may be what its engine cannot hold
        raise InputError("text in the frame", "have no halves of characters", error.object) from None
    if request.percent:
        rows = plain(frame, request.roles, percent=True)
        most = fetched(rows.select(*(nw.col(name).max() for name in request.scores)))
        inputs.check_percent(max(float(each[0]) for each in most.values()))
    check_group_count(len(groups))
    for value, group in groups.items():
        if group.sketch.n == 0:
            where = f" in group {show(value)}" * ("g" in request.roles)
            got = f"{group.rows} weights of 0{where}"
            raise InputError(request.called("w"), "have a positive sum", 0, got=got)
    return {value: groups[value].sketch for value in _ordered(groups)}


def _groups(frame: Any, request: Request, columns: Columns) -> dict[Any, Group]:
    """Return the sums of each group, by one of the two roads; what is wrong is sought after a failure."""
    here = request.entries is None and _holds_rows(frame)
    if not here:
        check_notion(request.notion)
        if columns.counts is not None:
            _check_integers(dict(frame.collect_schema()), columns.counts)
    try:
        groups = _in_pieces(frame, request) if here else of_engine(frame, request)
    except ValueError as error:
        failure = error
    else:
        rows = sum(group.rows for group in groups.values())
        if not here or rows == request.rows:
            return groups
        got = f"{request.rows} rows and then {rows}"
        raise InputError("frame", "hold the same rows in every pass", rows, got=got)
    # Rows summed here may differ from 1 by what rounding explains, and still fail for another reason.
    sums = not here or (isinstance(failure, InputError) and failure.rule.startswith("sum to 1"))
    explain(plain(frame, request.roles, percent=request.percent), request, sums=sums)
    raise _in_words(failure, columns) if isinstance(failure, InputError) else failure


def _ordered(groups: Iterable[Any]) -> list[Any]:
    """Return groups in their order, where they have one."""
    values = list(groups)
    with suppress(TypeError):  # of values that have no order
        values.sort()
    return values


def _in_words(error: InputError, columns: Columns) -> InputError:
    """Return an error about arrays as one about columns of the frame."""
    names = {"y_true": f"column {show(columns.label)}", "y_prob": "scores"}
    names |= dict.fromkeys(("sample_weight", "counts"), f"column {show(columns.weight)}")
    error.argument, error.row = Words(names).called(error.argument), None
    return _of_frame(error)


def _of_frame(error: InputError) -> InputError:
    """Leave out advice that is about arrays."""
    error.advice = "" if error.advice == "ignored" else error.advice
    return error


# Which columns, and which class each of them is of


def _request(
    frame: Any, columns: Columns, *, notion: str | None, labels: Any, pos_label: Any, n_classes: int | None
) -> Request:
    """Settle what is asked of a frame."""
    schema = dict(frame.collect_schema())
    names = _score_columns(schema, columns)
    roles = _roles(columns, names)
    _check_types(schema, roles)
    vector, pos_label = len(names) == 1 and columns.row is None, _label(pos_label)
    explicit = None if labels is None else tuple(map(_label, inputs.class_labels(labels)))
    seen = _rows_by_value(frame, columns.label)
    entries = None
    try:
        if columns.row is not None:
            entries, classes = _entries(frame, columns, schema, explicit, seen)
        elif vector:
            classes, pos_label = _single(names[0], seen, explicit, pos_label, notion)
        else:
            classes = tuple(
                map(_label, inputs.classes_of_columns(names, seen, len(names), explicit, "scores"))
            )
    except InputError as error:
        raise _in_words(error, columns) from None
    codes = _codes(classes) if vector else {label: k for k, label in enumerate(classes)}
    _check_known(columns.label, seen, codes, "labels", advice="" if explicit or vector else "labels")
    if n_classes is not None and inputs.positive_int("n_classes", n_classes, 2) != len(classes):
        raise InputError("n_classes", f"be the number of classes, {len(classes)}", n_classes)
    positive = inputs.positive_column(classes, pos_label)
    asked = notions.usual(notion, vector=vector)
    told = vector or pos_label is not None or explicit is not None
    asked.check(vector=vector, labels=classes, positive=inputs.told_column(classes, positive, told=told))
    counts = None if columns.weight is None else columns.counts is not None
    tolerance, rows = _tolerance([schema[name] for name in names]), sum(seen.values())
    about = asked, roles, classes, codes, entries, positive, tolerance, counts, rows
    return Request(*about, percent=columns.percent)


def _score_columns(schema: dict[str, Any], columns: Columns) -> tuple[str, ...]:
    """Return the columns of scores, after a check of all names."""
    if (columns.row is None) != (columns.classes is None):
        hint = "both name columns of a frame in long form"
        raise InputTypeError("row and classes", "be given together", hint=hint)
    inputs.row_weights(columns.sample_weight, columns.counts)
    roles = ("label", "sample_weight", "counts", "groups", "row", "classes")
    others = {role: getattr(columns, role) for role in roles}
    for role, name in others.items():
        if name is not None or role == "label":
            _check_name(schema, role, name)
    specs = [columns.scores] if isinstance(columns.scores, str) else columns.scores
    if not isinstance(specs, Sequence) or not specs or not all(isinstance(spec, str) for spec in specs):
        raise InputTypeError("scores", "be a column, columns or a pattern", columns.scores)
    taken, names = set(others.values()), list[str]()
    for spec in specs:
        if spec in schema or "*" not in spec:
            _check_name(schema, "scores", spec)
            names.append(spec)
        else:
            names += _matches(spec, [name for name in schema if name not in taken])
    for k, name in enumerate(names):
        if name in taken:
            raise InputError("scores", "be other columns than the label and the weight", name)
        if name in names[:k]:
            raise InputError("scores", "be different columns", name, got=f"{show(name)} twice")
    if columns.row is not None and len(names) > 1:
        raise InputError("scores", "be one column of a frame in long form", names, got=show(*names))
    return tuple(names)


def _roles(columns: Columns, names: Sequence[str]) -> dict[str, str]:
    """Return the columns that are used by their plain names, as `pushdown` says them."""
    roles = {"y": columns.label, "w": columns.weight, "g": columns.groups}
    roles |= {"r": columns.row, "c": columns.classes}
    scores = {str(k): name for k, name in enumerate(names)} if columns.row is None else {"s": names[0]}
    return {key: name for key, name in roles.items() if name is not None} | scores


def _check_types(schema: dict[str, Any], roles: dict[str, str]) -> None:
    """Refuse columns of types that labels, scores and weights cannot have."""
    for key, name in roles.items():
        dtype, label = schema[name], key in ("y", "c")
        if key in ("g", "r") or dtype.is_numeric() or dtype == nw.Boolean or (label and is_text(dtype)):
            continue
        rule = "hold numbers, booleans or text" if label else "hold numbers"
        hint = "frame.convert_dtypes() finds the type of its values" * (dtype == nw.Object)
        raise InputTypeError(f"column {show(name)}", rule, dtype, got=f"the type {dtype}", hint=hint)


def _check_integers(schema: dict[str, Any], name: str) -> None:
    """Refuse counts of another type where an engine adds up: it cannot tell whether they are whole."""
    if not schema[name].is_integer() and schema[name] != nw.Boolean:
        rule, got = "be of an integer type in Spark, Ibis and long form", f"the type {schema[name]}"
        raise InputError(f"column {show(name)}", rule, schema[name], got=got)


def _check_name(schema: dict[str, Any], role: str, name: Any) -> None:
    if not isinstance(name, str):
        raise InputTypeError(role, "be the name of a column", name, hint=one_column(role, name))
    if name not in schema:
        got, hint = inputs.show_near(name, schema), f"columns: {show(*schema)}"
        raise InputError(role, "be a column of the frame", name, got=got, hint=hint)


def _matches(spec: str, names: Sequence[str]) -> list[str]:
    """Return the columns that match a pattern, in the order of numbers where the star stands for them."""
    pattern = re.compile("(.*)".join(map(re.escape, spec.split("*"))), re.DOTALL)
    stars = {name: match[1] for name in names if (match := pattern.fullmatch(name))}
    if len(stars) < 2:
        rule, got = f"match several columns by {show(spec)}", show(*stars) or "none"
        raise InputError("scores", rule, spec, got=got, hint=f"columns: {show(*names)}")
    if all(re.fullmatch("-?[0-9]+", star) for star in stars.values()):
        return sorted(stars, key=lambda name: int(stars[name]))
    return list(stars)


def _single(
    name: str, seen: dict[Any, int], explicit: tuple[Any, ...] | None, pos_label: Any, notion: str | None
) -> tuple[tuple[Any, ...], Any]:
    """Return the negative and the positive label of a single score, and the latter alone.

    That is `pos_label`, or what the column is named after, or 1.
    """
    known = tuple(seen) if explicit is None else explicit
    if pos_label is None and (notion is None or not notions.named(notion).of_pairs):
        pos_label = inputs.class_of_name(name, known)
    half = np.full(len(known), 0.5)
    classes = inputs.predictions(list(known), half, labels=explicit, pos_label=pos_label).labels
    return classes, classes[1]


def _codes(classes: tuple[Any, ...]) -> dict[Any, int]:
    """Return 1 for the positive label of a single score and 0 for the others: none, one, or a tuple."""
    others, positive = classes
    negative = others if isinstance(others, tuple) else () if others is None else (others,)
    return dict.fromkeys(negative, 0) | {positive: 1}


def _entries(
    frame: Any,
    columns: Columns,
    schema: dict[str, Any],
    explicit: tuple[Any, ...] | None,
    seen: dict[Any, int],
) -> tuple[dict[Any, int], tuple[Any, ...]]:
    """Return the position of each value of the class column, and the class that it is in terms of labels."""
    column = str(columns.classes)
    values = _rows_by_value(frame, column)
    own = tuple(values) if explicit is None else explicit
    entries = {value: k for k, value in enumerate(own)}
    _check_known(column, values, entries, "classes")
    if is_text(schema[column]) == is_text(schema[columns.label]):
        return entries, own
    return entries, inputs.classes_of_columns(own, seen, len(own), None, f"column {show(column)}")


def _rows_by_value(frame: Any, column: str) -> dict[Any, int]:
    """Return the values of a column in their order, whole floats as integers, and how many rows have each."""
    table = summed(plain(frame, {"y": column}), _counted, ["y"])
    gone, rows = table["gone"] > 0, table["n"].astype(np.int64)
    if not len(rows):
        raise InputError("frame", "not be empty", 0, got="0 rows")
    if gone.any():
        refuse_missing(f"column {show(column)}", int(rows[gone].sum()), int(rows.sum()))
    counts: dict[Any, int] = {}
    for value, count in zip(table["y"].tolist(), rows.tolist(), strict=True):
        whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**63
        value = int(value) if whole else value
        counts[value] = counts.get(value, 0) + count
    if len(counts) > MOST_CLASSES:
        got = f"more than {MOST_CLASSES} of them"
        raise InputError(f"column {show(column)}", "hold classes", len(counts), got=got)
    return {value: counts[value] for value in inputs.in_order(tuple(counts))}


def _counted(frame: Any) -> Any:
    frame = frame.with_columns(gone=number(missing(frame, "y")))
    return frame.group_by("y").agg(nw.len().alias("n"), nw.col("gone").sum()).head(MOST_CLASSES + 1)


def _check_known(
    column: str, seen: dict[Any, int], known: dict[Any, int], what: str, advice: str = ""
) -> None:
    """Refuse values that are none of those that are known."""
    others = [value for value in seen if value not in known]
    if others:
        many = like_that(sum(seen[value] for value in others), sum(seen.values()))
        rule = f"hold only the {what} {show(*known)}"
        hint, advice = inputs.advice_on_labels(others, advice)
        hint = "; ".join(filter(None, [many, hint]))
        raise _of_frame(InputError(f"column {show(column)}", rule, others[0], hint=hint, advice=advice))


def _bare(value: Any) -> Any:
    """Return a numpy scalar as what Python has for it: not every engine knows numpy."""
    return value.item() if isinstance(value, np.generic) else value


def _label(value: Any) -> Any:
    """Return a label as the column has it: booleans become integers there."""
    value = _bare(value)
    return int(value) if isinstance(value, bool) else value


def _tolerance(dtypes: Sequence[Any]) -> float:
    """Return how far a row may sum from 1, by the precision that all of its scores share."""
    kinds = {nw.Float16: np.float16, nw.Float32: np.float32}
    common = np.result_type(*(next((v for k, v in kinds.items() if d == k), np.float64) for d in dtypes))
    return inputs.TOLERANCE[common.itemsize]


# Rows that this process holds, piece by piece


def _holds_rows(frame: Any) -> bool:
    """Whether rows are summed up here: by this process, in which DuckDB runs too, or by Dask's workers."""
    engine = frame.implementation
    return in_memory(frame) or engine.is_polars() or engine.is_duckdb() or engine.is_dask()


def _in_pieces(frame: Any, request: Request) -> dict[Any, Group]:
    """Return the sums of each group of a frame with a column a class or a single score.

    Columns get their plain names piece by piece: polars holds many more rows where it renames them.
    """
    frame = frame.select(*dict.fromkeys(request.roles.values()))
    if not frame.implementation.is_dask():
        return _summed(frame, request)
    from dask.delayed import delayed

    of_partition = delayed(partial(_of_partition, request=request), pure=False)
    sums = [of_partition(partition) for partition in frame.to_native().to_delayed()]
    while len(sums) > 1:
        some = [sums[a : a + JOINED] for a in range(0, len(sums), JOINED)]
        sums = [delayed(_joined, pure=False)(few) for few in some]
    groups: dict[Any, Group] = sums[0].compute()
    return groups


def _of_partition(partition: Any, request: Request) -> dict[Any, Group]:
    return _summed(nw.from_native(partition), request)


def _joined(parts: Sequence[dict[Any, Group]]) -> dict[Any, Group]:
    # Into a new one: what a worker holds may be asked for again.
    return reduce(_add, parts, {})


def _add(groups: dict[Any, Group], more: dict[Any, Group]) -> dict[Any, Group]:
    for value, (rows, sketch) in more.items():
        before = groups.get(value)
        groups[value] = Group(before.rows + rows, before.sketch + sketch) if before else Group(rows, sketch)
    check_group_count(len(groups))
    return groups


def _summed(frame: Any, request: Request) -> dict[Any, Group]:
    """Sum up pieces side by side, and add them in their order."""
    groups: dict[Any, Group] = {}
    with closing(_pieces(frame)) as pieces:
        if request.size > WIDE:
            for piece in pieces:
                _take(piece, request, groups)
            return groups
        threads = min(THREADS, os.cpu_count() or 1)
        pending: deque[Future[dict[Any, Group]]] = deque()
        with ThreadPoolExecutor(threads) as pool:
            for piece in pieces:
                pending.append(pool.submit(_take, piece, request, {}))
                if len(pending) > threads:
                    _add(groups, pending.popleft().result())
            for job in pending:
                _add(groups, job.result())
    return groups


def _pieces(frame: Any) -> Generator[Any]:
    step = max(1, BLOCK // len(frame.collect_schema()))
    if in_memory(frame):
        yield from (frame[a : a + step] for a in range(0, len(frame), step))
    elif frame.implementation.is_duckdb():
        yield from _arrow_pieces(frame.to_native(), step)
    else:
        batches: Iterable[Any] = frame.to_native().collect_batches(chunk_size=step)
        yield from (nw.from_native(batch) for batch in batches)


def _arrow_pieces(relation: Any, step: int) -> Iterator[Any]:
    import pyarrow as pa

    read = getattr(relation, "to_arrow_reader", None) or relation.fetch_record_batch
    with read(step) as batches:
        yield from (nw.from_native(pa.Table.from_batches([batch])) for batch in batches)


def _take(piece: Any, request: Request, groups: dict[Any, Group]) -> dict[Any, Group]:
    """Add the rows of a piece to the sums of their groups."""
    piece = plain(piece, request.roles, floats=False)
    if "g" not in request.roles:
        _take_group(None, piece, request, groups)
        return groups
    if piece.select(gone=missing(piece, "g"))["gone"].any():
        raise InputError(request.called("g"), "have no missing values", None)
    check_group_count(piece["g"].n_unique())
    for (value,), rows in piece.group_by("g"):
        _take_group(_bare(value), rows, request, groups)
    return groups


def _take_group(value: Any, rows: Any, request: Request, groups: dict[Any, Group]) -> None:
    if not len(rows):
        return
    before, sketch = groups.get(value, Group(0, Sketch(request.notion.name)))
    data = _predictions(rows, request)
    groups[value] = Group(before + len(rows), sketch if data is None else sketch._take(data))


def _predictions(rows: Any, request: Request) -> inputs.Predictions | None:
    """Return checked rows; None if they have no weight."""
    scores = [rows[name].to_numpy() for name in request.scores]
    weight = rows["w"].to_numpy() if "w" in request.roles else None
    weightless = weight is not None and not weight.any()
    if are_positions(request.codes) and rows.schema["y"].is_integer():
        code = rows["y"].to_numpy()
    else:
        code = rows.select(y=coded(rows, "y", request.codes))["y"].to_numpy().astype(np.intp)
    weights: dict[str, Any] = {
        "counts" if request.counts else "sample_weight": None if weightless else weight
    }
    data = inputs.predictions(
        code,
        scores[0] if request.vector else np.column_stack(scores),
        labels=range(request.size),
        percent=request.percent,
        **weights,
    )
    return None if weightless else replace(data, labels=request.labels, positive=request.positive)

"""Rows of a frame become sums, piece by piece: the same loops wherever the rows lie.

Executors of Spark and workers of Dask sum up the rows that they hold, and only sums travel. This process
reads the rows of all other engines, some at a time. Columns of a piece have plain names: the label `y`,
scores `0`, `1`, ..., the weight `w` and the group `g`.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple, NoReturn

import narwhals.stable.v2 as nw
import numpy as np

from calibrant import inputs
from calibrant.data.pipeline import side_by_side
from calibrant.inputs import Array, InputError, InputTypeError, show
from calibrant.inputs.clusters import check_group_count
from calibrant.inputs.predictions import hint_about_range, hint_about_sum, shares, total_count
from calibrant.inputs.rounding import SLACK, TOLERANCE, row_sums
from calibrant.parallel import cores
from calibrant.sketch.cell_sums import HEAVIEST
from calibrant.sketch.sketch import Sketch
from calibrant.tasks.notions import Notion

# Numbers of a piece.
BLOCK = 1 << 20
# Pieces summed at the same time; and the columns from which on the sums are as large as a piece.
THREADS, WIDE = 4, 20
# Sums of partitions that are added at a time.
JOINED = 8


@dataclass(frozen=True)
class Request:
    """What is asked of a frame."""

    notion: Notion  # what is compared
    roles: dict[str, str]  # the columns of the frame that are used, by their plain names
    # The class of each column of scores; for a single score the negative and the positive one.
    labels: tuple[Any, ...]
    # The column of each label; for a single score 1 for the positive label and 0 for the others.
    codes: dict[Any, int]
    positive: int | None  # column of the positive class
    counts: bool  # whether weights are counts
    percent: bool  # whether scores are percentages, from 0 to 100
    drop: bool = False  # whether rows without a label are left out

    @property
    def scores(self) -> list[str]:
        """Plain names of the columns of scores."""
        return [name for name in self.roles if name.isdecimal()]

    @property
    def vector(self) -> bool:
        """Whether there is a single score a row."""
        return len(self.scores) == 1

    def called(self, name: str) -> str:
        """Return what messages call a column, by its plain name."""
        return f"column {show(self.roles[name])}"


class GroupSums(NamedTuple):
    """Number of rows of a group, those without weight too, and their sums."""

    rows: int
    sketch: Sketch


class Fault(NamedTuple):
    """How many rows break a rule, and the least and the largest of their values."""

    rows: int
    least: float
    most: float

    def __add__(self, other: tuple[Any, ...]) -> Fault:
        rows, least, most = other
        return Fault(self.rows + rows, min(self.least, least), max(self.most, most))


@dataclass
class Sums:
    """The sums of some rows by group, and what is wrong with these rows."""

    rows: int = 0  # number of rows
    # The sums of each group; without groups that of None.
    groups: dict[Any, GroupSums] = field(default_factory=dict)
    # What is wrong with rows, by the plain name of a column and a word for the rule.
    faults: dict[tuple[str, str], Fault] = field(default_factory=dict)
    error: ValueError | None = None  # what was raised first

    def take(self, piece: Any, request: Request) -> Sums:
        """Add the rows of a piece. What is wrong is sought after a failure, and counted in all pieces."""
        piece = _plain(piece, request.roles)
        self.rows += len(piece)
        try:
            if request.drop and (gone := missing(piece["y"])).any():
                for value, count in _dropped(piece.filter(gone.tolist()), request).items():
                    before, sketch = self.groups.get(value, GroupSums(0, Sketch(request.notion.name)))
                    self.groups[value] = GroupSums(before, sketch._add_dropped(count))
                piece = piece.filter((~gone).tolist())
            for value, rows in _by_group(piece, request):
                before, sketch = self.groups.get(value, GroupSums(0, Sketch(request.notion.name)))
                data = _predictions(rows, request)
                self.groups[value] = GroupSums(
                    before + len(rows), sketch if data is None else sketch._take(data)
                )
            check_group_count(len(self.groups))
        except ValueError as error:
            self.add(Sums(0, {}, _faults(piece, request, error), error))
        return self

    def add(self, more: Sums) -> Sums:
        """Add the sums of other rows."""
        self.rows += more.rows
        self.error = self.error or more.error
        for key, fault in more.faults.items():
            self.faults[key] = self.faults[key] + fault if key in self.faults else fault
        for value, (rows, sketch) in more.groups.items():
            before = self.groups.get(value)
            self.groups[value] = (
                GroupSums(before.rows + rows, before.sketch + sketch) if before else GroupSums(rows, sketch)
            )
        check_group_count(len(self.groups))
        return self


def sums_of(frame: Any, request: Request) -> Sums:
    """Return the sums of a frame, added up where its rows lie.

    Columns get their plain names piece by piece: polars holds many more rows where it renames them.
    """
    if _is_spark(frame):
        plain = replace(request, roles={key: key for key in request.roles})
        return _in_spark(renamed(frame, request.roles).to_native(), plain)
    names = list(dict.fromkeys(request.roles.values()))
    frame = frame.select(*names)
    if frame.implementation.is_dask():
        return _in_dask(frame.to_native(), request)
    return _summed(pieces_of(frame), request, 1 if len(names) > WIDE else min(THREADS, cores()))


# Engines


def _is_spark(frame: Any) -> bool:
    return bool(frame.implementation.is_pyspark() or frame.implementation.is_pyspark_connect())


def renamed(frame: Any, roles: dict[str, str]) -> Any:
    """Return the columns that are used, under their plain names."""
    if _is_spark(frame):  # where a dot in a name is one of a field, unless it is quoted
        quoted = {key: "`" + name.replace("`", "``") + "`" for key, name in roles.items()}
        native = frame.to_native().selectExpr(*(f"{name} as `{key}`" for key, name in quoted.items()))
        return nw.from_native(native)
    return frame.select(**{key: nw.col(name) for key, name in roles.items()})


def pieces_of(frame: Any) -> Generator[Any]:
    """Yield the rows of a frame that this process reads, some at a time."""
    step = max(1, BLOCK // len(frame.collect_schema()))
    engine, native = frame.implementation, frame.to_native()
    if isinstance(frame, nw.DataFrame):
        yield from (frame[a : a + step] for a in range(0, len(frame), step))
    elif engine.is_polars():
        yield from map(nw.from_native, native.collect_batches(chunk_size=step))
    elif engine.is_duckdb() or engine.is_ibis():
        with _arrow_reader(native, step) if engine.is_duckdb() else _ibis_reader(native, step) as batches:
            yield from _tables(batches, step)
    else:
        rule = "be of pandas, polars, pyarrow, DuckDB, Dask, Ibis or Spark"
        raise InputTypeError("frame", rule, native, got=f"a table of {engine}")


def _arrow_reader(relation: Any, step: int) -> Any:
    """Return a reader of the rows of a relation of DuckDB."""
    return (getattr(relation, "to_arrow_reader", None) or relation.fetch_record_batch)(step)


def _ibis_reader(table: Any, step: int) -> Any:
    """Return a reader of the rows of a table of Ibis."""
    import ibis

    try:
        backend = table.get_backend()
    except ibis.IbisError:  # of a table in memory alone, which the default one runs
        backend = ibis.get_backend()
    if backend.name != "duckdb":
        return backend.to_pyarrow_batches(table, chunk_size=step)
    # Ibis itself asks DuckDB by a method that newer versions lack. Any query makes tables in memory known.
    table.limit(0).to_pyarrow()
    return _arrow_reader(backend.con.sql(backend.compile(table)), step)


def _tables(batches: Iterable[Any], step: int) -> Generator[Any]:
    """Join batches of Arrow to tables of at least so many rows."""
    import pyarrow as pa

    pending: list[Any] = []
    for batch in batches:
        pending.append(batch)
        if sum(each.num_rows for each in pending) >= step:
            yield nw.from_native(pa.Table.from_batches(pending))
            pending = []
    if pending:
        yield nw.from_native(pa.Table.from_batches(pending))


def _in_dask(frame: Any, request: Request) -> Sums:
    from dask.delayed import delayed

    of_partition = delayed(partial(of_rows, request=request), pure=False)
    sums = [of_partition(partition) for partition in frame.to_delayed()]
    while len(sums) > 1:
        bundles = [sums[a : a + JOINED] for a in range(0, len(sums), JOINED)]
        sums = [delayed(_joined, pure=False)(bundle) for bundle in bundles]
    joined: Sums = sums[0].compute()
    return joined


def of_rows(partition: Any, request: Request) -> Sums:
    """Return the sums of rows in memory."""
    return _summed(pieces_of(nw.from_native(partition)), request)


def _in_spark(frame: Any, request: Request) -> Sums:
    of_batches = _packed_by(partial(_of_batches, request=request))
    of_partitions = frame.mapInArrow(of_batches, "sums binary")
    # Added by executors too: there may be thousands of partitions.
    joined = of_partitions.repartition("sums").mapInArrow(_packed_by(_of_packed), "sums binary")
    return _joined(pickle.loads(row[0]) for row in joined.collect())


def _packed_by(function: Callable[[Iterable[Any]], Sums]) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return what Spark runs for each partition: batches become one, of the sums as bytes."""

    def packed(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        yield pa.RecordBatch.from_pydict({"sums": [pickle.dumps(function(batches))]})

    return packed


def _of_batches(batches: Iterable[Any], request: Request) -> Sums:
    return _summed(_tables(batches, max(1, BLOCK // len(request.roles))), request)


def _of_packed(batches: Iterable[Any]) -> Sums:
    return _joined(pickle.loads(sums) for batch in batches for sums in batch.column(0).to_pylist())


def _joined(parts: Iterable[Sums]) -> Sums:
    # Into a new one: what a worker of Dask holds may be asked for again.
    total = Sums()
    for piece_sums in parts:
        total.add(piece_sums)
    return total


def _summed(pieces: Generator[Any], request: Request, threads: int = 1) -> Sums:
    """Sum up pieces, several side by side, and add them in their order."""
    total = Sums()
    with closing(pieces):
        if threads == 1:
            for piece in pieces:
                total.take(piece, request)
            return total
        for piece_sums in side_by_side(lambda piece: Sums().take(piece, request), pieces, threads):
            total.add(piece_sums)
    return total


# Rows of a piece


def is_text(dtype: Any) -> bool:
    """Whether a column holds text."""
    return dtype in (nw.String, nw.Categorical) or isinstance(dtype, nw.Enum)


def missing(column: Any) -> Array:
    """Return whether each value of a column is missing; NaN is."""
    gone = column.is_null()
    if column.dtype.is_float():
        gone = gone | column.is_nan().fill_null(True)
    return np.asarray(gone.to_numpy(), dtype=bool)


def _plain(piece: Any, roles: dict[str, str]) -> Any:
    """Return the columns that are used, under plain names and of types that numpy has too."""
    piece = renamed(piece, roles)
    return piece.select(*(_typed(key, dtype) for key, dtype in piece.schema.items()))


def _typed(key: str, dtype: Any) -> Any:
    column = nw.col(key)
    return column if key in "yg" or dtype.is_integer() or dtype.is_float() else column.cast(nw.Float64)


def _by_group(piece: Any, request: Request) -> Iterator[tuple[Any, Any]]:
    """Yield the rows of each group of a piece; without groups there is one, None."""
    if "g" not in request.roles:
        if len(piece):
            yield None, piece
        return
    if missing(piece["g"]).any():
        raise InputError(request.called("g"), "have no missing values")
    check_group_count(piece["g"].n_unique())
    for (value,), rows in piece.group_by("g"):
        yield _bare(value), rows


def _dropped(piece: Any, request: Request) -> dict[Any, int]:
    """Return how many rows without a label are of each group, but for those without a group."""
    groups: Iterable[tuple[Any, Any]] = [((None,), piece)]
    if "g" in request.roles:
        groups = piece.filter((~missing(piece["g"])).tolist()).group_by("g")
    return {
        _bare(value): total_count(rows["w"].to_numpy()) if request.counts else len(rows)
        for (value,), rows in groups
    }


def _bare(value: Any) -> Any:
    """Return a numpy scalar as what Python has for it: not every engine knows numpy."""
    return value.item() if isinstance(value, np.generic) else value


def label_of(value: Any) -> Any:
    """Return a label as a number or a text: booleans and whole floats are integers."""
    value = _bare(value)
    value = float(value) if isinstance(value, Decimal) else value
    is_integer = isinstance(value, float) and value.is_integer() and abs(value) < 2**63
    return int(value) if is_integer or isinstance(value, bool) else value


def _predictions(rows: Any, request: Request) -> inputs.Predictions | None:
    """Return checked rows; None if they have no weight."""
    scores = [rows[name].to_numpy() for name in request.scores]
    weight = rows["w"].to_numpy() if "w" in request.roles else None
    weightless = weight is not None and not weight.any()
    weights: dict[str, Any] = {
        "counts" if request.counts else "sample_weight": None if weightless else weight
    }
    data = inputs.predictions(
        _coded(rows["y"], request.codes),
        scores[0] if request.vector else np.column_stack(scores),
        labels=range(len(request.labels)),
        percent=request.percent,
        **weights,
    )
    return None if weightless else replace(data, labels=request.labels, positive=request.positive)


def _coded(label: Any, codes: dict[Any, int]) -> Array:
    """Return the code of each label."""
    dtype = label.dtype
    if dtype.is_integer() and list(codes.items()) == [(k, k) for k in range(len(codes))]:
        return np.asarray(label.to_numpy())
    if not (dtype == nw.String or dtype.is_integer() or dtype.is_float()):  # booleans, decimals, categories
        return np.array([codes.get(label_of(value), -1) for value in label.to_list()])
    values = label.unique().to_list()
    known = [codes.get(label_of(value), -1) for value in values]
    return np.asarray(label.replace_strict(values, known, return_dtype=nw.Int64).to_numpy())


# What is wrong with rows


def _faults(piece: Any, request: Request, error: ValueError) -> dict[tuple[str, str], Fault]:
    """Count the rows of a piece that break a rule, after an error.

    Sums of rows are looked at only if the error is about them: rounding may explain how far they are from 1.
    """
    fault_counts: dict[tuple[str, str], Fault] = {}

    def note(name: str, rule: str, bad: Array, value: Array) -> None:
        if bad.any():
            fault_counts[name, rule] = Fault(int(bad.sum()), float(value[bad].min()), float(value[bad].max()))

    columns = [piece[name].to_numpy() for name in request.scores]
    scores = [shares(column) if request.percent else column for column in columns]
    for name, score in zip(request.scores, scores, strict=True):
        note(name, "outside", ~_within(score, 0, 1), score)
    if isinstance(error, InputError) and error.rule.startswith("sum to 1"):
        matrix = np.column_stack(scores)
        total, tolerance = row_sums(matrix), TOLERANCE[matrix.itemsize]
        note(f"{tolerance:g}", "sum", np.abs(total - 1) > tolerance + SLACK, total)
    if "w" in request.roles:
        weight = piece["w"].to_numpy()
        least, most = (0, np.nextafter(2.0**63, 0)) if request.counts else (1 / HEAVIEST, HEAVIEST)
        note("w", "outside", ~_within(weight, least, most) & (weight != 0), weight)
    for name in piece.columns:
        gone = missing(piece[name])
        note(name, "missing", gone, gone)
    return fault_counts


def _within(value: Array, least: float, most: float) -> Array:
    """Whether values lie within bounds or are missing, which is another fault."""
    return ((value >= least) & (value <= most)) | np.isnan(value)


def refuse_faults(sums: Sums, request: Request) -> None:
    """Raise what is wrong with rows, in the same words for every engine.

    Rows have no order in many of them, so the example is the least or the largest value that breaks the rule,
    beside the number of rows that do.
    """
    for (name, rule), fault in sorted(sums.faults.items(), key=lambda item: _order(request, *item[0])):
        if rule == "missing":
            refuse_missing(request.called(name), fault.rows, sums.rows)
        elif rule == "sum":
            worst = max(fault.least, fault.most, key=lambda value: abs(value - 1))
            rule, hint = f"sum to 1 within {name} in every row", hint_about_sum(worst)
            _refuse("scores", rule, worst, fault, sums, hint, got=f"{worst:.9g}")
        elif name == "w":
            _refuse_weights(fault, sums, request)
        else:
            _refuse_scores(name, fault, sums, request)


def _order(request: Request, name: str, rule: str) -> tuple[int, bool]:
    """Return which fault is told first: of scores, their sums, weights or groups; missing values first."""
    names = [*request.scores, "sum", "w", "g", "y"]
    return names.index("sum" if rule == "sum" else name), rule != "missing"


def _refuse_scores(name: str, fault: Fault, sums: Sums, request: Request) -> NoReturn:
    value = fault.most if fault.most > 1 else fault.least
    if math.isinf(value):
        _refuse(request.called(name), "be finite", value, fault, sums)
    negative = (sums.faults.get((each, "outside")) for each in request.scores)
    log = all(each is not None and each.rows == sums.rows and each.most < 0 for each in negative)
    hint, advice = hint_about_range(fault.least, fault.most, vector=request.vector, log=log)
    hint += ", or pass percent=True" * (advice == "percent")
    _refuse(request.called(name), "lie in [0, 1]", value, fault, sums, hint, advice="exp" if log else "")


def _refuse_weights(fault: Fault, sums: Sums, request: Request) -> NoReturn:
    if fault.least < 0 or fault.most == np.inf:
        value = fault.least if fault.least < 0 else fault.most
        shown = int(value) if value.is_integer() else value
        _refuse(request.called("w"), "be finite and at least 0", shown, fault, sums)
    limits = f"be 0 or lie between {1 / HEAVIEST:g} and {HEAVIEST:g}"
    _refuse(request.called("w"), "be below 2^63" if request.counts else limits, fault.least, fault, sums)


def _refuse(
    column: str, rule: str, value: float, fault: Fault, sums: Sums, hint: str = "", got: str | None = None,
    advice: str = "",
) -> NoReturn:  # fmt: skip
    hints = [like_that(fault.rows, sums.rows), hint]
    raise InputError(column, rule, value, got=got, hint="; ".join(filter(None, hints)), advice=advice)


def like_that(count: int, total: int) -> str:
    """Say how many rows break a rule."""
    return f"{count} of {total} rows {'are' if count > 1 else 'is'} like that"


def refuse_missing(column: str, count: int, total: int, advice: str = "") -> NoReturn:
    """Refuse missing values; null and NaN are one in pandas, so they are one everywhere."""
    got = f"{count} in {total} rows"
    raise InputError(column, "have no missing values", count, got=got, advice=advice)

"""Files of any size through a calibration map: all columns stay, and the probabilities come beside them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import PurePath
from typing import Any, BinaryIO

import numpy as np

from calibrant import inputs
from calibrant.atomic import atomic_file, csv_text
from calibrant.data.batch import _placed, matrix_of, typed
from calibrant.data.columns import CALIBRATED, ColumnRequest, ColumnRoles
from calibrant.data.files import SUFFIXES, expanded, naming, pyarrow_of
from calibrant.data.pipeline import FILES, in_words, roles_in_all, rows_of_batch
from calibrant.data.readers import DataFile, all_batches, described
from calibrant.inputs import Array, InputError
from calibrant.inputs.columns import class_of_name
from calibrant.maps import Calibrator
from calibrant.tasks import get_notion

#: Formats that are written, by the suffix of the output.
WRITTEN = ("csv", "tsv", "parquet", "arrow")


@in_words(FILES)
def map_files(
    calibrator: Calibrator,
    paths: Any,
    out: str | os.PathLike[str],
    *,
    scores: Sequence[str] = (),
    percent: bool = False,
    name: str = CALIBRATED,
    level: float | None = None,
    format: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    batch_rows: int | None = None,
) -> int:
    """Write the rows of files with calibrated probabilities beside them; returns how many there are.

    The files must have the same columns. Scores are by default the columns that the calibrator was fitted to,
    or where a file does not have them those with usual names. New columns are called `name`, of several
    classes `name` and the class; with a level those of an interval end in `_low` and `_high`.
    """
    kind = format_of(out)
    sources = [described(file, format) for file in expanded(paths, format)]
    fitted = () if scores else calibrator.columns_ or ()
    absent = [each for each in fitted if sources[0].header.times[each] != 1]
    fitted = () if absent else fitted
    requested = ColumnRequest(scores=fitted or tuple(scores), labelled=False, percent=percent)
    with _naming_absent(absent):
        roles = roles_in_all(sources, requested)
        with naming(sources[0].path):
            order = None if fitted else order_of(calibrator, roles)
    with naming(sources[0].path):
        new = names_of(calibrator, name, level)
        _check_names(sources, new)
    count = 0

    def tables() -> Iterator[Any]:
        nonlocal count
        total, every = sum(source.size for source in sources), sources[0].header.names
        rows = batch_rows or rows_of_batch(sources, len(every) + len(new))
        for source, first, batch, done, *_ in all_batches(sources, every, (), rows):
            with naming(source.path):
                score = matrix_of(typed(batch, roles, {}, first), roles)
                with _placed(first, roles.scores.names):
                    probabilities = mapped(calibrator, score if order is None else score[:, order], level)
                table = _with(batch, every, dict(zip(new, probabilities, strict=True)))
            count += table.num_rows
            yield table
            if progress is not None:
                progress(done, total)

    with atomic_file(out) as file:
        _write(file, tables(), kind, sources[0].delimiter or ",")
    return count


@contextmanager
def _naming_absent(columns: Sequence[str]) -> Iterator[None]:
    """Say where no columns of scores are found which ones the map was fitted to."""
    try:
        yield
    except InputError as error:
        if columns:
            fitted = f"the map was fitted to {inputs.show(*columns)}, which the file does not have"
            error.hint = "; ".join(filter(None, [fitted, error.hint]))
        raise


def format_of(out: str | os.PathLike[str]) -> str:
    """Return the format that a file is written in, by its suffix."""
    kind = SUFFIXES.get(PurePath(out).suffix.lower(), "")
    if kind not in WRITTEN:
        raise InputError("out", "end in .csv, .tsv, .parquet or .arrow", PurePath(out).name)
    return kind


def order_of(calibrator: Calibrator, roles: ColumnRoles) -> list[int] | None:
    """Return the columns in the order of the classes; None for a single column, or if they are in place."""
    names, classes = roles.scores.names, calibrator.classes_
    if calibrator.is_vector:
        if len(names) != 1:
            raise InputError("scores", "name the one column that the map is of", got=inputs.show(*names))
        if get_notion(calibrator.notion_).label(classes, 1) is None:
            return None
        others = classes[0] if isinstance(classes[0], tuple) else classes[:1]
        named_class = class_of_name(names[0], [each for each in (*others, classes[1]) if each is not None])
        if named_class is not None and named_class != classes[1]:
            raise InputError("scores", f"be of the class {classes[1]!r}, as the map is", names[0])
        return None
    if len(names) != len(classes):
        rule = f"name the {len(classes)} columns that the map is of, those of {inputs.show(*classes)}"
        raise InputError("scores", rule, got=inputs.show(*names))
    return calibrator._column_order(None if roles.scores.array else names)


def names_of(calibrator: Calibrator, name: str, level: float | None) -> list[str]:
    """Return the names of the new columns: probabilities, then lower and upper ends."""
    plain = [name] if calibrator.is_vector else [f"{name}_{each}" for each in calibrator.classes_]
    ends = ("",) if level is None else ("", "_low", "_high")
    return [f"{each}{end}" for end in ends for each in plain]


def mapped(calibrator: Calibrator, score: Array, level: float | None) -> list[Array]:
    """Return the new columns: probabilities, then lower and upper ends."""
    parts = [calibrator.predict_proba(score)]
    if level is not None:
        parts += calibrator.predict_interval(score, level)
    return [column for array in parts for column in (array.T if array.ndim == 2 else [array])]


def _check_names(sources: Sequence[DataFile], new: Sequence[str]) -> None:
    """Refuse columns that are there already, have no name of their own, or differ between files."""
    first = sources[0].header
    twice = [name for name, times in first.times.items() if times > 1]
    if twice:
        raise InputError("columns", "have names of their own", twice[0], got=f"{twice[0]!r} twice")
    there = [name for name in new if name in first.times]
    if there:
        raise InputError("name", "be new", there[0], got=f"the column {there[0]!r}, which is there already")
    for source in sources[1:]:
        if set(source.header.names) != set(first.names):
            with naming(source.path):
                differing = sorted(set(source.header.names) ^ set(first.names))
                raise InputError("columns", "be the same in all files", got=inputs.show(*differing))


def _with(batch: Any, names: Sequence[str], new: dict[str, Array]) -> Any:
    """Return a batch as a table, with new columns."""
    pa = pyarrow_of()
    table = batch.select(list(names)) if hasattr(batch, "select") else pa.table({n: batch[n] for n in names})
    for name, column in new.items():
        table = table.append_column(name, pa.array(np.ascontiguousarray(column)))
    return table


def _write(file: BinaryIO, tables: Iterator[Any], kind: str, delimiter: str) -> None:
    """Write tables to a file of a kind."""
    first = next(tables, None)
    if first is None:
        raise ValueError("there are no rows")
    tables = chain([first], tables)
    if kind in ("csv", "tsv"):
        _write_csv(file, tables, first.column_names, "\t" if kind == "tsv" else delimiter)
        return
    pa, schema = pyarrow_of(), first.schema
    from pyarrow import parquet

    opened = parquet.ParquetWriter if kind == "parquet" else pa.ipc.RecordBatchFileWriter
    with opened(file, schema) as writer:
        for table in tables:
            writer.write_table(table.select(schema.names).cast(schema))


def _write_csv(file: BinaryIO, tables: Iterator[Any], names: Sequence[str], delimiter: str) -> None:
    """Write lines; text stays as it was, and a number is written so that it is read as the same number."""
    file.write(csv_text([names], delimiter).encode())
    for table in tables:
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        file.write(csv_text(rows, delimiter).encode())

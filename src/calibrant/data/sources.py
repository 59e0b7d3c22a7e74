"""Files that are read in pieces: what they hold, and their rows, some at a time.

A piece has as many rows as asked for, the last one of a file fewer, whatever the file was written in: so
pieces are the same in every run, and a run can go on where another one stopped.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from calibrant.data import row_groups
from calibrant.data.binary import pyarrow_of, readable
from calibrant.data.files import naming, recognised
from calibrant.data.paths import PIECEWISE, told
from calibrant.data.table import Array, Stream, Table, check_width
from calibrant.data.text import check_quotes, csv_header

NEEDS = "reading files in pieces needs"
# Bytes of CSV parsed together.
BLOCK = 1 << 22


@dataclass(frozen=True)
class Source:
    """A file to be read in pieces.

    Attributes
    ----------
    path : str
    format : {"csv", "tsv", "parquet", "arrow"}
    size, changed : int
        Bytes, and when it was last changed, in nanoseconds.
    names : tuple of str
        Names of the columns.
    types : tuple
        Their Arrow types; those of CSV are all text.
    rows : int, optional
        Number of rows, where the file says so.
    raw, delimiter : tuple of str, str
        Names as a CSV file writes them, and its delimiter.
    told : mapping
        Columns that the names of its folders tell, and their value; they come last in `names`.
    """

    path: str
    format: str
    size: int
    changed: int
    names: tuple[str, ...]
    types: tuple[Any, ...]
    rows: int | None = None
    raw: tuple[str, ...] = ()
    delimiter: str = ""
    told: Mapping[str, str] = field(default_factory=dict)

    @property
    def table(self) -> Table:
        """Its columns, to find those that are meant."""
        return Table(self.names, _unread, told=tuple(self.told))

    def type_of(self, name: str) -> Any:
        """The Arrow type of a column."""
        return self.types[self.names.index(name)]


def _unread(*_: object) -> dict[str, Array]:
    raise TypeError("a source is read in pieces")


def described(path: str, format: str | None = None) -> Source:
    """What a file says of itself before its rows are read, and what its folders say of it."""
    source = _described(path, format)
    more = {name: value for name, value in told(path).items() if name not in source.names}
    text = pyarrow_of(NEEDS).string()
    types = (*source.types, *(text for _ in more))
    return replace(source, names=(*source.names, *more), types=types, told=more)


def _described(path: str, format: str | None) -> Source:
    with naming(path), open(path, "rb") as file:
        found, data = recognised(file, path, format)
        if found not in PIECEWISE:
            raise ValueError(f"is {found}, which is not read in pieces; write it as CSV, Parquet or Arrow")
        pa = pyarrow_of(NEEDS)
        about = os.fstat(file.fileno())
        given = (path, found, about.st_size, about.st_mtime_ns)
        with readable(pa):
            if found in ("csv", "tsv"):
                _, raw, delimiter = csv_header(Stream(data, file), "\t" if found == "tsv" else None)
                names = tuple(name.strip() for name in raw)
                return Source(*given, names, (pa.string(),) * len(names), None, tuple(raw), delimiter)
            if data is not file:
                raise ValueError(f"is {found} within gzip; unpack it first")
            if found == "parquet":
                from pyarrow import parquet

                about_rows = parquet.ParquetFile(file)
                schema, rows = about_rows.schema_arrow, about_rows.metadata.num_rows
            else:
                schema, rows = _open_ipc(pa, file).schema, None
            check_width(len(schema.names))
            return Source(*given, tuple(schema.names), tuple(schema.types), rows)


def pieces(
    source: Source, numbers: Sequence[str], values: Sequence[str], rows: int, skip: int = 0
) -> Iterator[tuple[int, Any, float]]:
    """The columns of a file, `rows` rows at a time.

    Parameters
    ----------
    source : Source
    numbers, values : sequences of str
        Columns that hold numbers, and those that repeat few values.
    rows : int
        Rows of a piece.
    skip : int
        Rows that are not read, a multiple of `rows`.

    Yields
    ------
    first, table, share : int, pyarrow.Table, float
        The number of rows before the piece, the piece, and how much of the file is read after it.
    """
    with naming(source.path):
        for first, read, share in deferred(source, numbers, values, rows, skip):
            yield first, read(), share


def deferred(
    source: Source, numbers: Sequence[str], values: Sequence[str], rows: int, skip: int = 0
) -> Iterator[tuple[int, Callable[[], Any], float]]:
    """The pieces as functions that give them: whoever sums a piece reads it too, where the file allows it."""
    pa = pyarrow_of(NEEDS)
    every = list(dict.fromkeys((*numbers, *values)))
    wanted = [name for name in every if name not in source.told]
    if more := {name: source.told[name] for name in every if name in source.told}:
        own = replace(source, told={})
        for first, read, share in deferred(own, wanted, [n for n in values if n in wanted], rows, skip):
            yield first, partial(_with, pa, read, more), share
        return
    with readable(pa):
        texts = [name for name in values if pa.types.is_string(source.type_of(name))]
        if source.format == "parquet" and (
            parts := row_groups.apart(
                pa, source.path, wanted, texts, rows, skip, partial(_check_unchanged, source)
            )
        ):
            yield from parts
            return
        batches: Iterable[tuple[Any, float]]
        if source.format == "parquet":
            batches = row_groups.in_order(pa, source.path, wanted, texts, rows, skip)
        else:
            batches = (_arrow if source.format == "arrow" else _csv)(pa, source, wanted, skip)
        first = skip
        for held, share in _regrouped(batches, rows):
            table = pa.concat_tables(held).combine_chunks()
            yield first, partial(_itself, table), share
            first += table.num_rows
        _check_unchanged(source)


def _with(pa: Any, read: Callable[[], Any], more: Mapping[str, str]) -> Any:
    """A piece with columns of one value."""
    table = read()
    for name, value in more.items():
        code = pa.array(np.zeros(table.num_rows, dtype=np.int32))
        column = pa.DictionaryArray.from_arrays(code, pa.array([value or None], pa.string()))
        table = table.append_column(name, column)
    return table


def _itself(table: Any) -> Any:
    return table


def _check_unchanged(source: Source) -> None:
    about = os.stat(source.path)
    if (about.st_size, about.st_mtime_ns) != (source.size, source.changed):
        raise ValueError("has changed while it was read")


def _regrouped(batches: Iterable[tuple[Any, float]], rows: int) -> Iterator[tuple[list[Any], float]]:
    """Batches cut and joined so that each holds as many rows; what a batch has in full is not copied."""
    held: list[Any] = []
    count, share = 0, 1.0
    for batch, share in batches:
        while batch.num_rows:
            part = batch.slice(0, rows - count)
            batch = batch.slice(part.num_rows)
            held.append(part)
            count += part.num_rows
            if count == rows:
                yield held, share
                held, count = [], 0
    if held:
        yield held, 1.0


def _left_out(pa: Any, batches: Iterable[tuple[Any, float]], rows: int) -> Iterator[tuple[Any, float]]:
    """Batches as tables, without the first rows."""
    for batch, share in batches:
        yield pa.Table.from_batches([batch.slice(min(rows, batch.num_rows))]), share
        rows -= min(rows, batch.num_rows)


def _open_ipc(pa: Any, file: Any) -> Any:
    """A reader of an Arrow file or of an Arrow stream, which has no magic number."""
    head = file.read(6)
    file.seek(0)
    return pa.ipc.open_file(file) if head == b"ARROW1" else pa.ipc.open_stream(file)


def _arrow(pa: Any, source: Source, wanted: list[str], skip: int) -> Iterator[tuple[Any, float]]:
    fields = sorted(source.names.index(name) for name in wanted)
    options = pa.ipc.IpcReadOptions(included_fields=fields)

    def read() -> Iterator[tuple[Any, float]]:
        # Mapped, so that a batch of any size is looked at piece by piece.
        with pa.memory_map(source.path) as file:
            if file.read(6) == b"ARROW1":
                reader = pa.ipc.open_file(file, options=options)
                for k in range(reader.num_record_batches):
                    yield reader.get_batch(k), (k + 1) / reader.num_record_batches
                return
            file.seek(0)
            for batch in pa.ipc.open_stream(file, options=options):
                yield batch, file.tell() / source.size

    for batch, share in _left_out(pa, read(), skip):
        # Offsets that point outside of the data are found here, and not by a crash.
        batch.validate(full=True)
        yield batch, share


class _Bytes:
    """A file that Arrow reads, which remembers how far it is and how many quotes it saw."""

    def __init__(self, file: Any, data: Any) -> None:
        self.file, self.data, self.quotes = file, data, 0
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        part = bytes(self.data.read(size))
        self.quotes += part.count(b'"')
        return part

    def close(self) -> None:
        """Nothing: whoever opened the file closes it."""
        self.closed = True


def _csv(pa: Any, source: Source, wanted: list[str], skip: int) -> Iterator[tuple[Any, float]]:
    from pyarrow import csv

    raw = [source.raw[source.names.index(name)] for name in wanted]
    bad: list[Any] = []

    def refuse(row: Any) -> str:
        bad.append(row)
        return "error"

    with open(source.path, "rb") as file:
        data = _Bytes(file, recognised(file, source.path, source.format)[1])
        try:
            reader = csv.open_csv(
                pa.PythonFile(data, mode="r"),
                # With several threads it would not know the number of a bad row.
                read_options=csv.ReadOptions(block_size=BLOCK, use_threads=False),
                parse_options=csv.ParseOptions(
                    delimiter=source.delimiter, newlines_in_values=True, invalid_row_handler=refuse
                ),
                convert_options=csv.ConvertOptions(
                    include_columns=raw,
                    column_types=dict.fromkeys(raw, pa.string()),
                    null_values=[""],
                    strings_can_be_null=True,
                ),
            )
            batches = ((batch, file.tell() / source.size) for batch in reader)
            for table, share in _left_out(pa, batches, skip):
                yield table.rename_columns(wanted), share
        except pa.ArrowInvalid as error:
            if bad:
                row, (got, due) = bad[0].number, (bad[0].actual_columns, bad[0].expected_columns)
                fields = "field" if got == 1 else "fields"
                raise ValueError(f"row {row - 1} has {got} {fields} where the header has {due}") from None
            if "Empty CSV" not in str(error):
                raise
    if data.quotes % 2:  # Arrow takes the rest of the file for one value
        with open(source.path, "rb") as file:
            check_quotes(Stream(recognised(file, source.path, source.format)[1], file), source.delimiter)

"""Files that are read in pieces: what they hold, and their rows, some at a time.

A piece has as many rows as asked for, the last one of a file fewer, whatever the file was written in: so
pieces are the same in every run, and a run can go on where another one stopped.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from calibrant.io.binary import pyarrow_of, readable
from calibrant.io.files import naming, recognised
from calibrant.io.paths import PIECEWISE
from calibrant.io.table import Array, Stream, Table, check_width
from calibrant.io.text import check_quotes, csv_header

NEEDS = "reading files in pieces needs"
# Bytes of CSV parsed together, and of the buffers of all columns of a Parquet file.
BLOCK, BUFFERS = 1 << 22, 1 << 26
# A row group of more pieces than this is read in batches.
LARGE = 4


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

    @property
    def table(self) -> Table:
        """Its columns, to find those that are meant."""
        return Table(self.names, _unread)

    def type_of(self, name: str) -> Any:
        """The Arrow type of a column."""
        return self.types[self.names.index(name)]


def _unread(*_: object) -> dict[str, Array]:
    raise NotImplementedError("a source is read in pieces")


def described(path: str, format: str | None = None) -> Source:
    """What a file says of itself before its rows are read."""
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
    pa = pyarrow_of(NEEDS)
    reader = {"parquet": _parquet, "arrow": _arrow}.get(source.format, _csv)
    wanted = list(dict.fromkeys((*numbers, *values)))
    with naming(source.path), readable(pa):
        first = skip
        for held, share in _regrouped(reader(pa, source, wanted, values, rows, skip), rows):
            table = pa.concat_tables(held).combine_chunks()
            yield first, table, share
            first += table.num_rows
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


def _parquet(
    pa: Any, source: Source, wanted: list[str], values: Sequence[str], rows: int, skip: int
) -> Iterator[tuple[Any, float]]:
    from pyarrow import parquet

    # Without buffers of a given size all of a row group would be in memory at once.
    size = max(1 << 14, min(1 << 20, BUFFERS // len(wanted)))
    texts = [name for name in values if pa.types.is_string(source.type_of(name))]
    with parquet.ParquetFile(source.path, buffer_size=size, read_dictionary=texts) as file:
        held = [file.metadata.row_group(k).num_rows for k in range(file.metadata.num_row_groups)]
        first = done = 0
        while first < len(held) and done + held[first] <= skip:
            done += held[first]
            first += 1
        skip -= done
        for span in _spans(held, first, rows):
            count = sum(held[k] for k in span)
            # Row groups as they are take less memory than batches of them, unless they are large.
            if count <= LARGE * rows:
                tables: Iterable[Any] = [file.read_row_groups(span, columns=wanted)]
            else:
                batches = file.iter_batches(rows, row_groups=span, columns=wanted)
                tables = (pa.Table.from_batches([batch]) for batch in batches)
            for table in tables:
                done += table.num_rows
                yield table.slice(min(skip, table.num_rows)), done / max(1, sum(held))
                skip -= min(skip, table.num_rows)


def _spans(held: list[int], first: int, rows: int) -> Iterator[list[int]]:
    """Row groups in order, as many at a time as make up so many rows, but one at least.

    >>> list(_spans([4, 4, 4, 20, 4], 1, 10))
    [[1, 2], [3], [4]]
    """
    span: list[int] = []
    for k in range(first, len(held)):
        if span and sum(held[j] for j in span) + held[k] > rows:
            yield span
            span = []
        span.append(k)
    if span:
        yield span


def _open_ipc(pa: Any, file: Any) -> Any:
    """A reader of an Arrow file or of an Arrow stream, which has no magic number."""
    head = file.read(6)
    file.seek(0)
    return pa.ipc.open_file(file) if head == b"ARROW1" else pa.ipc.open_stream(file)


def _arrow(
    pa: Any, source: Source, wanted: list[str], values: Sequence[str], rows: int, skip: int
) -> Iterator[tuple[Any, float]]:
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


def _csv(
    pa: Any, source: Source, wanted: list[str], values: Sequence[str], rows: int, skip: int
) -> Iterator[tuple[Any, float]]:
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

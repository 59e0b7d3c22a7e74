"""Files as batches of columns: what each format holds, and its rows, some at a time.

A batch has as many rows as asked for, the last one of a file fewer, whatever the file was written in: so
batches are the same in every run, and a run can go on where another one stopped. Parsing is left to pyarrow
and, for NPZ, to numpy; what a forged file could do is bounded by sizes that are looked at before.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, BinaryIO

import numpy as np

from calibrant.data import npz
from calibrant.data.batch import Batch
from calibrant.data.columns import Header
from calibrant.data.files import MOST_COLUMNS, check_width, content_of, in_folders, naming, recognised, tidy
from calibrant.data.row_groups import RowGroups

EXTRA = "pip install 'calibrant[files]'"
DELIMITERS = (",", ";", "\t", "|")
# Bytes of text parsed together, and of the longest header and of a JSON list, which is read whole.
BLOCK, LONGEST, LIST = 1 << 22, 1 << 25, 1 << 28
# Levels of lists and objects within a JSON record: a parser of many more overflows its stack.
DEEPEST = 200
_QUOTED = re.compile(rb'"(?:[^"\\]|\\.)*"')


@dataclass(frozen=True)
class Source:
    """A file, and what it says of itself before its rows are read.

    Attributes
    ----------
    path : str
        "-" for standard input.
    format : str
    size, changed : int
        Bytes, and when it was last changed, in nanoseconds.
    header : Header
        The names of its columns.
    types : mapping
        The types of its columns, of Arrow or of numpy; those of CSV are all text.
    rows : int, optional
        Number of rows, where the file says so.
    content : bytes, optional
        All of it, where it can be read only once.
    raw, delimiter : tuple of str, str
        Names as a CSV file writes them, and its delimiter.
    in_folders : mapping
        Columns that the names of its folders tell, and their values; they come last.
    """

    path: str
    format: str
    size: int
    changed: int
    header: Header
    types: Mapping[str, Any]
    rows: int | None = None
    content: bytes | None = field(default=None, repr=False)
    raw: tuple[str, ...] = ()
    delimiter: str = ""
    in_folders: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_text(self) -> bool:
        """Whether rows are parsed from text, which takes more memory."""
        return self.format not in ("parquet", "arrow", "npz")

    def open(self) -> Any:
        """Open it to read its bytes."""
        return open(self.path, "rb") if self.content is None else io.BytesIO(self.content)

    def check_unchanged(self) -> None:
        """Refuse a file that another process has changed."""
        if self.content is None:
            about = os.stat(self.path)
            if (about.st_size, about.st_mtime_ns) != (self.size, self.changed):
                raise ValueError("has changed while it was read")


def pyarrow_of() -> Any:
    """Return the library that reads files, or name the extra that brings it."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.ipc
    except ImportError:
        raise ImportError(f"reading files needs pyarrow: {EXTRA}") from None
    return pyarrow


def described(path: str, format: str | None = None, stdin: BinaryIO | None = None) -> Source:
    """Return what a file says of itself before its rows are read, and what its folders say of it."""
    with naming(path), _readable():
        content = content_of(path, stdin)
        with open(path, "rb") if content is None else io.BytesIO(content) as file:
            size, changed = len(content or b""), 0
            if content is None:
                about = os.fstat(file.fileno())
                size, changed = about.st_size, about.st_mtime_ns
            own, data = recognised(file, path, format)
            source = Source(path, own, size, changed, Header(()), {}, content=content)
            describe = {"npz": _about_npz, "parquet": _about_parquet, "arrow": _about_arrow}
            describe |= {"jsonl": _about_json, "json": _about_json}
            source = describe.get(own, _about_csv)(source, data)
        check_width(len(source.header.names))
        names = source.header.names
        more = {name: value for name, value in in_folders(path).items() if name not in names}
        if not more:
            return source
        header = replace(source.header, names=(*names, *more), in_folders=tuple(more))
        types = {**source.types, **{name: np.dtype("U") for name in more}}
        return replace(source, header=header, types=types, in_folders=more)


def batches(
    source: Source, numbers: Sequence[str], values: Sequence[str], rows: int, skip: int = 0
) -> Iterator[tuple[int, Callable[[], Batch], float]]:
    """Yield the columns of a file, `rows` rows at a time.

    Parameters
    ----------
    source : Source
    numbers, values : sequences of str
        Columns that hold numbers, and those that repeat few values.
    rows : int
        Rows of a batch.
    skip : int
        Rows that are not read, a multiple of `rows`.

    Yields
    ------
    first, read, share : int, callable, float
        The number of rows before the batch, a function that gives it (whoever sums a batch reads it too,
        where the file allows it), and how much of the file is read after it.
    """
    every = list(dict.fromkeys((*numbers, *values)))
    wanted = [name for name in every if name not in source.in_folders]
    more = {name: source.in_folders[name] for name in every if name in source.in_folders}
    with naming(source.path), _readable():
        if source.format == "npz":
            pieces: Iterable[tuple[int, Callable[[], Any], float]] = _npz(source, wanted, rows, skip)
        elif source.format == "parquet":
            pieces = _parquet(source, wanted, [name for name in values if name in wanted], rows, skip)
        else:
            tables = {"arrow": _arrow, "jsonl": _json, "json": _json}.get(source.format, _csv)
            pieces = _regrouped(tables(source, wanted, skip), rows, skip)
        for first, read, share in pieces:
            yield first, partial(_read, source, read, more), share
        source.check_unchanged()


def _read(source: Source, read: Callable[[], Any], more: Mapping[str, str]) -> Batch:
    """Return a batch with the columns that folders tell."""
    with _readable():
        batch = read()
        if source.format == "parquet":  # which is read here and now
            source.check_unchanged()
        if not more:
            return batch
        if not isinstance(batch, dict):
            batch = dict(zip(batch.column_names, batch.columns, strict=True))
        rows = len(next(iter(batch.values())))
        return batch | {name: np.full(rows, value) for name, value in more.items()}


@contextmanager
def _readable() -> Iterator[None]:
    """Raise what pyarrow raises as a ValueError of one line."""
    try:
        yield
    except Exception as error:
        if type(error).__module__ != "pyarrow.lib":
            raise
        raise ValueError(f"cannot be read: {tidy(' '.join(str(error).split()))}") from None


def _given(table: Any) -> Any:
    return table


def _regrouped(
    tables: Iterable[tuple[Any, float]], rows: int, skip: int
) -> Iterator[tuple[int, Callable[[], Any], float]]:
    """Cut and join tables so that each holds as many rows; what a table has in full is not copied."""
    import pyarrow as pa

    held: list[Any] = []
    count, first = 0, skip
    for table, share in tables:
        while table.num_rows:
            part = table.slice(0, rows - count)
            table = table.slice(part.num_rows)
            held.append(part)
            count += part.num_rows
            if count == rows:
                yield first, partial(_given, _joined(pa, held)), share
                first, held, count = first + rows, [], 0
    if held:
        yield first, partial(_given, _joined(pa, held)), 1.0


def _joined(pa: Any, tables: list[Any]) -> Any:
    # The parser of JSON gives a column of whole numbers and one of others different types.
    same = all(table.schema.equals(tables[0].schema) for table in tables)
    return pa.concat_tables(tables, **({} if same else {"promote_options": "permissive"})).combine_chunks()


def _without_first(tables: Iterable[tuple[Any, float]], skip: int) -> Iterator[tuple[Any, float]]:
    """Leave out the first rows of tables."""
    for table, share in tables:
        yield table.slice(min(skip, table.num_rows)), share
        skip -= min(skip, table.num_rows)


# NPZ, by numpy


def _about_npz(source: Source, data: Any) -> Source:
    members = npz.members_of(data)
    header = npz.header_of(members)
    return replace(source, header=header, types=npz.types_of(members, header))


def _npz(
    source: Source, wanted: list[str], rows: int, skip: int
) -> Iterator[tuple[int, Callable[[], Any], float]]:
    with source.open() as file:
        columns = npz.columns_of(file, wanted)
    total = len(next(iter(columns.values())))
    for first in range(skip, total, rows):
        part = {name: column[first : first + rows] for name, column in columns.items()}
        yield first, partial(_given, part), min(first + rows, total) / total


# Parquet and Arrow


def _about_parquet(source: Source, data: Any) -> Source:
    pyarrow_of()
    from pyarrow import parquet

    file = parquet.ParquetFile(data)
    return _with_schema(replace(source, rows=file.metadata.num_rows), file.schema_arrow)


def _with_schema(source: Source, schema: Any) -> Source:
    types = dict(zip(schema.names, schema.types, strict=True))
    return replace(source, header=Header(tuple(schema.names)), types=types)


def _parquet(
    source: Source, wanted: list[str], values: list[str], rows: int, skip: int
) -> Iterable[tuple[int, Callable[[], Any], float]]:
    import pyarrow as pa

    texts = [name for name in values if pa.types.is_string(source.types[name])]
    # A path is opened by pyarrow itself, which reads without asking Python.
    groups = RowGroups(source.open if source.content is not None else lambda: source.path, wanted, texts)
    return groups.apart(rows, skip) or _regrouped(groups.in_order(rows, skip), rows, skip)


def _about_arrow(source: Source, data: Any) -> Source:
    pa = pyarrow_of()
    head = data.read(6)
    data.seek(0)
    reader = pa.ipc.open_file(data) if head == b"ARROW1" else pa.ipc.open_stream(data)
    return _with_schema(source, reader.schema)


def _arrow(source: Source, wanted: list[str], skip: int) -> Iterator[tuple[Any, float]]:
    import pyarrow as pa

    place = {name: k for k, name in enumerate(source.header.names)}
    fields = sorted(place[name] for name in wanted)
    options = pa.ipc.IpcReadOptions(included_fields=fields)

    def read() -> Iterator[tuple[Any, float]]:
        # Mapped, so that a batch of any size is looked at piece by piece.
        opened = pa.memory_map(source.path) if source.content is None else pa.BufferReader(source.content)
        with opened as file:
            if file.read(6) == b"ARROW1":
                reader = pa.ipc.open_file(file, options=options)
                for k in range(reader.num_record_batches):
                    yield pa.Table.from_batches([reader.get_batch(k)]), (k + 1) / reader.num_record_batches
                return
            file.seek(0)
            for batch in pa.ipc.open_stream(file, options=options):
                yield pa.Table.from_batches([batch]), file.tell() / source.size

    for table, share in _without_first(read(), skip):
        # Offsets that point outside of the data are found here, and not by a crash.
        table.validate(full=True)
        yield table, share


# Text


class _Text:
    """Bytes of a text file, held to be UTF-8 while they are read; it counts the quotes among them."""

    def __init__(self, source: Source, data: Any, file: Any) -> None:
        self.source, self.data, self.file = source, data, file
        self.decoder = codecs.getincrementaldecoder("utf-8")()
        self.quotes = 0
        self.closed = False

    @property
    def share(self) -> float:
        """How much of the file is read."""
        return min(1.0, self.file.tell() / self.source.size)

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        part = bytes(self.data.read(size))
        try:
            self.decoder.decode(part, final=not part)
        except UnicodeDecodeError as error:
            wide = error.object[:2] in (b"\xff\xfe", b"\xfe\xff")
            hint = "; it looks like UTF-16: save it as UTF-8" if wide else ""
            byte = f"0x{error.object[error.start]:02x}"
            raise ValueError(f"is not UTF-8 text: it has the byte {byte}{hint}") from None
        if b"\0" in part:
            raise ValueError("holds NUL bytes, so it is no text")
        self.quotes += part.count(b'"')
        return part

    def restart(self) -> None:
        """Go back to the start."""
        self.decoder.reset()
        self.data.seek(0)

    def close(self) -> None:
        """Do nothing: whoever opened the file closes it."""
        self.closed = True


@contextmanager
def _opened(source: Source) -> Iterator[_Text]:
    with source.open() as file:
        yield _Text(source, recognised(file, source.path, source.format)[1], file)


def _about_csv(source: Source, data: Any) -> Source:
    """Find the header of a CSV file; its delimiter is the commonest in it."""
    pa = pyarrow_of()
    from pyarrow import csv as arrow_csv

    text = _Text(source, data, data)
    head = text.read(BLOCK)
    header = _first_record(head)
    if header is None and len(head) == BLOCK:
        raise ValueError(f"has a first line of more than {BLOCK >> 20} MiB")
    header = (head if header is None else header).strip(b"\r\n")
    if not header.strip():
        raise ValueError("is empty; a header and rows are needed")
    plain = re.sub(rb'"[^"]*"', b"", header).decode()
    delimiter = "\t" if source.format == "tsv" else max(DELIMITERS, key=plain.count)
    check_width(1 + plain.count(delimiter))
    options = arrow_csv.ReadOptions(block_size=len(header) + 2)
    parse = arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    raw = arrow_csv.read_csv(io.BytesIO(header + b"\n"), options, parse).column_names
    names = tuple(name.strip() for name in raw)
    types = dict.fromkeys(names, pa.string())
    return replace(source, header=Header(names), types=types, raw=tuple(raw), delimiter=delimiter)


def _first_record(head: bytes) -> bytes | None:
    """Return the first line that is not blank, with those that its quotes go on in; None if it may go on."""
    start = len(head) - len(head.removeprefix(codecs.BOM_UTF8).lstrip(b"\r\n"))
    for end in re.finditer(rb"[\r\n]", head[start:]):
        record = head[start : start + end.start()]
        if record.count(b'"') % 2 == 0:
            return record
    return None


def _csv(source: Source, wanted: list[str], skip: int) -> Iterator[tuple[Any, float]]:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    written = dict(zip(source.header.names, source.raw, strict=False))
    raw = [written[name] for name in wanted]
    ragged: list[Any] = []

    def refuse(row: Any) -> str:
        ragged.append(row)
        return "error"

    with _opened(source) as text:
        try:
            reader = arrow_csv.open_csv(
                pa.PythonFile(text, mode="r"),
                # With several threads it would not know the number of a bad row.
                read_options=arrow_csv.ReadOptions(block_size=BLOCK, use_threads=False),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=source.delimiter, newlines_in_values=True, invalid_row_handler=refuse
                ),
                convert_options=arrow_csv.ConvertOptions(
                    include_columns=raw,
                    column_types=dict.fromkeys(raw, pa.string()),
                    null_values=[""],
                    strings_can_be_null=True,
                ),
            )
            tables = ((pa.Table.from_batches([batch]), text.share) for batch in reader)
            for table, share in _without_first(tables, skip):
                yield table.rename_columns(wanted), share
        except pa.ArrowInvalid as error:
            if text.quotes % 2:
                _check_quotes(source)
            if ragged:
                row, got, due = ragged[0].number, ragged[0].actual_columns, ragged[0].expected_columns
                fields = "field" if got == 1 else "fields"
                raise ValueError(f"row {row - 1} has {got} {fields} where the header has {due}") from None
            if "Empty CSV" not in str(error):
                raise
    if text.quotes % 2:  # Arrow takes the rest of the file for one value
        _check_quotes(source)


def _check_quotes(source: Source) -> None:
    """Refuse a CSV file that leaves a quote open, in memory that does not grow; a single one may be text."""
    with _opened(source) as text:
        lines = io.TextIOWrapper(text.data, "utf-8-sig", newline="")
        reader = csv.reader(lines, delimiter=source.delimiter, strict=True)
        try:
            for _ in reader:
                pass
        except csv.Error as error:
            hint = "is a quote left open?"
            raise ValueError(f"is no CSV up to line {reader.line_num}: {tidy(error)}; {hint}") from None


def _about_json(source: Source, data: Any) -> Source:
    """Find the columns of JSON by its first records."""
    pa = pyarrow_of()
    text = _Text(source, data, data)
    if source.format == "json" and (records := _listed(text)) is not None:
        names = tuple(records[0])
    else:
        table = next((table for table, _ in _parsed_lines(text, [])), None)
        if table is None:
            raise ValueError("holds no records")
        names = tuple(table.schema.names)
    # The first records settle no type: 1 may be followed by 1.5.
    return replace(source, header=Header(names), types=dict.fromkeys(names, pa.null()))


def _json(source: Source, wanted: list[str], skip: int) -> Iterator[tuple[Any, float]]:
    import pyarrow as pa

    with _opened(source) as text:
        if source.format == "json" and (records := _listed(text)) is not None:
            tables: Iterable[tuple[Any, float]] = [(pa.table(_columns_of(records, wanted)), 1.0)]
        else:
            tables = _parsed_lines(text, wanted)
        yield from _without_first(tables, skip)


def _listed(text: _Text) -> list[dict[str, Any]] | None:
    """Return the records of a JSON list; None for lines of records."""
    content = text.read(LIST + 1)
    if not content.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"["):
        text.restart()
        return None
    if len(content) > LIST:
        raise ValueError(f"holds a JSON list of more than {LIST >> 20} MiB; write a record a line (jsonl)")
    try:
        records = json.loads(content.decode("utf-8-sig"))
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"is no JSON: {error.msg} at line {error.lineno}, character {error.colno}") from None
    if not records:
        raise ValueError("holds no records")
    for row, record in enumerate(records, 1):
        if not isinstance(record, dict):
            raise ValueError(f"row {row} must be an object of names and values, got {tidy(repr(record), 80)}")
    return records


def _columns_of(records: list[dict[str, Any]], names: Sequence[str]) -> dict[str, Any]:
    import pyarrow as pa

    columns = {}
    for name in names:
        values = [record.get(name) for record in records]
        # Lists and objects are of no use, and may be nested deeper than Arrow can bear.
        nested = any(isinstance(value, list | dict) for value in values)
        columns[name] = pa.array([[]] * len(values) if nested else values)
    return columns


def _parsed_lines(text: _Text, wanted: Sequence[str]) -> Iterator[tuple[Any, float]]:
    """Yield tables of JSON lines, with the columns that are wanted or, without any, with all of them."""
    import pyarrow as pa
    from pyarrow import json as arrow_json

    rows = 0
    for block in _line_blocks(text):
        options = arrow_json.ReadOptions(use_threads=False, block_size=len(block) + 1)
        try:
            table = arrow_json.read_json(io.BytesIO(block), options)
            # Texts that look like times stay texts.
            if times := [field.name for field in table.schema if pa.types.is_timestamp(field.type)]:
                texts = pa.schema([(name, pa.string()) for name in times])
                table = arrow_json.read_json(
                    io.BytesIO(block), options, arrow_json.ParseOptions(explicit_schema=texts)
                )
        except pa.ArrowInvalid as error:
            after = f" after row {rows}" if rows else ""
            raise ValueError(f"cannot be read{after}: {tidy(error)}") from None
        for name in wanted:
            if name not in table.schema.names:
                table = table.append_column(name, pa.nulls(table.num_rows))
        rows += table.num_rows
        yield table.select(list(wanted)) if wanted else table, text.share


def _line_blocks(text: _Text) -> Iterator[bytes]:
    """Yield lines, many at a time."""
    rest = b""
    while part := text.read(BLOCK):
        part = rest + part
        end = max(part.rfind(b"\n"), part.rfind(b"\r")) + 1
        block, rest = part[:end], part[end:]
        if len(rest) > LONGEST:
            raise ValueError(f"has a line of more than {LONGEST >> 20} MiB")
        if block.strip():
            _check_shape(block)
            yield block
    if rest.strip():
        _check_shape(rest)
        yield rest


def _check_shape(block: bytes) -> None:
    """Refuse records that are nested deeper, or have more columns, than the parser can bear."""
    for line in block.splitlines():
        if line.count(b"[") + line.count(b"{") > DEEPEST or line.count(b":") > MOST_COLUMNS:
            plain = np.frombuffer(_QUOTED.sub(b"", line), dtype=np.uint8)
            check_width(int(np.count_nonzero(plain == ord(":"))))
            opens, closes = np.isin(plain, (0x5B, 0x7B)), np.isin(plain, (0x5D, 0x7D))
            if np.max(np.cumsum(opens.astype(int) - closes), initial=0) > DEEPEST:
                raise ValueError("is nested too deeply")

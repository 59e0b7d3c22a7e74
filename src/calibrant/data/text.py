"""Tables of text, parsed by pyarrow: CSV and its kin, JSON lines, and a JSON list of records."""

from __future__ import annotations

import codecs
import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.data.columns import ColumnHeader
from calibrant.data.files import MOST_COLUMNS, check_width, pyarrow_of, recognised, tidy
from calibrant.inputs import parsed_json, show
from calibrant.inputs.codec import NamedTwiceError

if TYPE_CHECKING:
    from calibrant.data.readers import DataFile

DELIMITERS = (",", ";", "\t", "|")
# Bytes of text parsed together, of the longest row and of a JSON list, which is read whole.
BLOCK, LONGEST, LIST = 1 << 22, 1 << 25, 1 << 28
# What the parser of CSV says of a row with more or fewer fields than the header.
_RAGGED = re.compile(r"Row #([0-9]+): Expected ([0-9]+) columns, got ([0-9]+): ")
# Levels of lists and objects within a JSON record: a parser of many more overflows its stack.
DEEPEST = 200
# What the parser of JSON lines says of a record with a name twice.
_TWICE = re.compile(r"Column\(/(.*)\) was specified twice in row ([0-9]+)")
_QUOTED = re.compile(rb'"(?:[^"\\]|\\.)*"')


class _Text:
    """Bytes of a text file, held to be UTF-8 while they are read."""

    def __init__(self, source: DataFile, data: Any, file: Any) -> None:
        self.source, self.data, self.file = source, data, file
        self.decoder = codecs.getincrementaldecoder("utf-8")()

    @property
    def share(self) -> float:
        """How much of the file is read."""
        return min(1.0, self.file.tell() / self.source.size)

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        chunk = bytes(self.data.read(size))
        try:
            self.decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            wide = error.object[:2] in (b"\xff\xfe", b"\xfe\xff")
            hint = "; it looks like UTF-16: save it as UTF-8" if wide else ""
            byte = f"0x{error.object[error.start]:02x}"
            raise ValueError(f"is not UTF-8 text: it has the byte {byte}{hint}") from None
        if b"\0" in chunk:
            raise ValueError("holds NUL bytes, so it is no text")
        return chunk

    def restart(self) -> None:
        """Go back to the start."""
        self.decoder.reset()
        self.data.seek(0)


@contextmanager
def _opened(source: DataFile) -> Iterator[_Text]:
    with source.open() as file:
        yield _Text(source, recognised(file, source.path, source.format)[1], file)


def about_csv(source: DataFile, data: Any) -> DataFile:
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
    raw = arrow_csv.read_csv(pa.BufferReader(header + b"\n"), options, parse).column_names
    names = tuple(name.strip() for name in raw)
    types = dict.fromkeys(names, pa.string())
    return replace(source, header=ColumnHeader(names), types=types, raw=tuple(raw), delimiter=delimiter)


def _first_record(head: bytes) -> bytes | None:
    """Return the first line that is not blank, with those that its quotes go on in; None if it may go on."""
    start = len(head) - len(head.removeprefix(codecs.BOM_UTF8).lstrip(b"\r\n"))
    for end in re.finditer(rb"[\r\n]", head[start:]):
        record = head[start : start + end.start()]
        if record.count(b'"') % 2 == 0:
            return record
    return None


def csv_tables(source: DataFile, wanted: list[str]) -> Iterator[tuple[Any, float]]:
    """Yield a table of texts for each block of rows of a CSV file, and how much is read.

    Each block is parsed in memory. The streaming reader of Arrow drops the line feed of a carriage return and
    line feed that two blocks share, even within quotes. It also reads ahead in a thread of its own, and where
    it reads a Python object, that thread and the end of the process wait for each other.
    """
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    written = dict(zip(source.header.names, source.raw, strict=False))
    convert = arrow_csv.ConvertOptions(
        include_columns=[written[name] for name in wanted],
        column_types=dict.fromkeys(source.raw, pa.string()),
        null_values=[""],
        strings_can_be_null=True,
    )
    parse = arrow_csv.ParseOptions(delimiter=source.delimiter, newlines_in_values=True)
    rows, names = 0, None
    with _opened(source) as text:
        for block, complete in _blocks(text, partial(_end_of_rows, delimiter=source.delimiter)):
            if not complete:
                longest = f"row {rows + 1} has no end, or is longer than {LONGEST >> 20} MiB"
                raise ValueError(f"{longest}: is a quote left open?")
            # In one thread the parser knows the number of a row that it refuses.
            read = arrow_csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=names)
            try:
                table = arrow_csv.read_csv(pa.BufferReader(block), read, parse, convert)
            except pa.ArrowInvalid as error:
                if names is None and "Empty CSV" in str(error):  # a header without the end of its line
                    return
                raise ValueError(_in_words(str(error), rows - (names is None))) from None
            rows, names = rows + table.num_rows, source.raw
            yield table.rename_columns(wanted), text.share


def _in_words(error: str, before: int) -> str:
    """Return what is wrong with CSV by the message of Arrow, which counts rows after those before."""
    if ragged := _RAGGED.search(error):
        row, due, got = (int(number) for number in ragged.groups())
        hint = "; is a quote left open?" * ('"' in error[ragged.end() :])
        fields = "field" if got == 1 else "fields"
        return f"row {before + row} has {got} {fields} where the header has {due}{hint}"
    return f"cannot be read: {tidy(' '.join(error.split()))}"


def _blocks(text: _Text, end_of: Callable[[bytes], int]) -> Iterator[tuple[bytes, bool]]:
    """Yield blocks of complete rows; an unterminated last row is yielded at the end, marked as such."""
    rest, start = b"", codecs.BOM_UTF8
    while chunk := text.read(BLOCK):
        chunk, start = rest + (chunk.removeprefix(start) if start else chunk), b""
        end = end_of(chunk)
        block, rest = chunk[:end], chunk[end:]
        if block.strip(b"\r\n"):
            yield block, True
        if len(rest) > LONGEST:
            yield rest, False
    if rest.strip(b"\r\n"):
        yield rest, end_of(rest + b"\n") > len(rest)


def _end_of_rows(block: bytes, delimiter: str) -> int:
    """Return where the last row of a block that ends in it ends.

    As Arrow reads it: a quote at the start of a value begins a quoted one, which may hold ends of lines, and
    two quotes in that are one of its characters; a quote elsewhere is a character like others.

    >>> _end_of_rows(b'1,"a\\nb"\\n2,"c\\n', ",")
    8
    """
    # What follows a carriage return at the end of the block may belong to it.
    if b'"' not in block:
        return max(block.rfind(b"\n"), block.rfind(b"\r", 0, -1)) + 1
    before = re.escape(delimiter).encode() + rb"\r\n"
    quoted = rb'(?<![^%b])"[^"]*+(?:""[^"]*+)*+"' % before
    value = rb'(?:[^"\r\n]++|%b|(?<=[^%b])")*+' % (quoted, before)
    rows = re.compile(rb"(?:%b(?:\n|\r(?!\Z)))*+" % value).match(block)
    return 0 if rows is None else rows.end()


def about_json(source: DataFile, data: Any) -> DataFile:
    """Find the columns of JSON by its first records."""
    pa = pyarrow_of()
    first = next(_parsed_lines(_in_lines(_Text(source, data, data)), []), None)
    if first is None:
        raise ValueError("holds no records")
    names = tuple(first[0].schema.names)
    # The first records settle no type: 1 may be followed by 1.5.
    return replace(source, header=ColumnHeader(names), types=dict.fromkeys(names, pa.null()))


def json_tables(source: DataFile, wanted: list[str]) -> Iterator[tuple[Any, float]]:
    """Yield tables of JSON lines, or of a JSON list, and how much is read."""
    with _opened(source) as text:
        yield from _parsed_lines(_in_lines(text), wanted)


def _in_lines(text: _Text) -> _Text:
    """Return JSON with a record a line; a list of records is read whole and written so."""
    if text.source.format != "json":
        return text
    content = text.read(LIST + 1)
    if not content.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"["):
        text.restart()
        return text
    if len(content) > LIST:
        raise ValueError(f"holds a JSON list of more than {LIST >> 20} MiB; write a record a line (jsonl)")
    try:
        records = parsed_json(content.decode("utf-8-sig"))
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    except NamedTwiceError as error:
        raise ValueError(f"cannot be read: {error}") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"is no JSON: {error.msg} at line {error.lineno}, character {error.colno}") from None
    for row, record in enumerate(records, 1):
        if not isinstance(record, dict):
            raise ValueError(f"row {row} must be an object of names and values, got {tidy(repr(record), 80)}")
    lines = "".join(f"{json.dumps(record)}\n" for record in records)
    return _Text(text.source, io.BytesIO(lines.encode()), text.file)


def _parsed_lines(text: _Text, wanted: Sequence[str]) -> Iterator[tuple[Any, float]]:
    """Yield tables of JSON lines, with the columns that are wanted or, without any, with all of them."""
    import pyarrow as pa
    from pyarrow import json as arrow_json

    rows = 0
    for block, complete in _blocks(text, _end_of_lines):
        if not complete:
            raise ValueError(f"has a line of more than {LONGEST >> 20} MiB")
        if not block.strip():
            continue
        _check_shape(block)
        # A null before any record is one that the parser does not survive.
        if block.lstrip().startswith(b"null"):
            raise ValueError(f"row {rows + 1} must be an object of names and values, got null")
        options = arrow_json.ReadOptions(use_threads=False, block_size=len(block) + 1)
        try:
            table = arrow_json.read_json(pa.BufferReader(block), options)
            # Texts that look like times stay texts.
            if times := [field.name for field in table.schema if pa.types.is_timestamp(field.type)]:
                texts = pa.schema([(name, pa.string()) for name in times])
                table = arrow_json.read_json(
                    pa.BufferReader(block), options, arrow_json.ParseOptions(explicit_schema=texts)
                )
        except pa.ArrowInvalid as error:
            if twice := _TWICE.search(str(error)):
                name, row = twice[1], rows + int(twice[2]) + 1
                message = f"the name {show(name)} stands twice in one object at row {row}"
                raise ValueError(f"cannot be read: {message}") from None
            after = f" after row {rows}" if rows else ""
            raise ValueError(f"cannot be read{after}: {tidy(error)}") from None
        for name in wanted:
            if name not in table.schema.names:
                table = table.append_column(name, pa.nulls(table.num_rows))
        rows += table.num_rows
        yield table.select(list(wanted)) if wanted else table, text.share


def _end_of_lines(block: bytes) -> int:
    """Return where the last line of a block that ends in it ends."""
    return max(block.rfind(b"\n"), block.rfind(b"\r")) + 1


def _check_shape(block: bytes) -> None:
    """Refuse records that are nested deeper, or have more columns, than the parser can bear."""
    for line in block.splitlines():
        if line.count(b"[") + line.count(b"{") > DEEPEST or line.count(b":") > MOST_COLUMNS:
            plain = np.frombuffer(_QUOTED.sub(b"", line), dtype=np.uint8)
            check_width(int(np.count_nonzero(plain == ord(":"))))
            opens, closes = np.isin(plain, (0x5B, 0x7B)), np.isin(plain, (0x5D, 0x7D))
            if np.max(np.cumsum(opens.astype(int) - closes), initial=0) > DEEPEST:
                raise ValueError("is nested too deeply")

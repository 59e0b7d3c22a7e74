"""Tables in text: CSV and its kin, JSON lines, and a JSON list of records."""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any

from calibrant.data.table import (
    MOST_BYTES,
    Array,
    Numbers,
    Progress,
    Stream,
    Table,
    Values,
    check_width,
    quoted,
    tidy,
)

DELIMITERS = (",", ";", "\t", "|")
# Bytes read together, and characters of the longest line and of a JSON list, which is read whole.
BLOCK, LONGEST, LIST = 1 << 20, 1 << 25, 1 << 28
# Cells converted together.
CELLS = 1 << 18


def csv_table(stream: Stream, delimiter: str | None = None) -> Table:
    """The table of a CSV file; the delimiter is the commonest in its header."""
    reader, header, _ = csv_header(stream, delimiter)
    names = tuple(name.strip() for name in header)
    return Table(names, partial(_read_csv, stream, reader, names))


def csv_header(stream: Stream, delimiter: str | None = None) -> tuple[Any, list[str], str]:
    """A reader of the rows of a CSV file, its header as it is written, and its delimiter."""
    lines = chain.from_iterable(_lines(_blocks(stream)))
    first = next((line for line in lines if line.strip()), None)
    if first is None:
        raise ValueError("is empty; a header and rows are needed")
    delimiter = delimiter or _delimiter(first)
    reader = csv.reader(chain([first], lines), delimiter=delimiter, strict=True)
    with _Csv(reader):
        header = next(reader)
    check_width(len(header))
    return reader, header, delimiter


def check_quotes(stream: Stream, delimiter: str) -> None:
    """Raise for a CSV file that leaves a quote open, in memory that does not grow."""
    reader, _, _ = csv_header(stream, delimiter)
    with _Csv(reader):
        for _ in reader:
            pass


def lines_table(stream: Stream) -> Table:
    """The table of JSON lines; the first record names the columns."""
    return _records_table(stream, _records(_blocks(stream)))


def json_table(stream: Stream) -> Table:
    """The table of a JSON file: a list of records, or lines of them."""
    blocks = _blocks(stream)
    first = next((block for block in blocks if not block.isspace()), "")
    if not first.lstrip().startswith("["):
        return _records_table(stream, _records(chain([first], blocks)))
    parts, size = [], 0
    for block in chain([first], blocks):
        parts.append(block)
        size += len(block)
        if size > LIST:
            raise ValueError(
                f"holds a JSON list of more than {LIST >> 20} MiB; write a record a line (jsonl)"
            )
    return _records_table(stream, iter(_parsed("".join(parts), "")))


def _blocks(stream: Stream) -> Iterator[str]:
    """The text in blocks, with line breaks that are all alike."""
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8-sig")(), translate=True)
    size, last = 0, False
    while not last:
        part = stream.data.read(BLOCK)
        last = not part
        try:
            block = decoder.decode(part, final=last)
        except UnicodeDecodeError as error:
            wide = error.object[:2] in (b"\xff\xfe", b"\xfe\xff")
            hint = "; it looks like UTF-16: save it as UTF-8" if wide else ""
            byte = f"0x{error.object[error.start]:02x}"
            raise ValueError(f"is not UTF-8 text: it has the byte {byte}{hint}") from None
        if "\0" in block:
            raise ValueError("holds NUL bytes, so it is no text")
        size += len(block)
        if stream.packed and size > MOST_BYTES:
            raise ValueError(f"unpacks to more than {MOST_BYTES >> 30} GiB")
        if block:
            yield block


def _lines(blocks: Iterable[str]) -> Iterator[list[str]]:
    """The lines of each block, with their line breaks; a line belongs to the block that ends it."""
    rest: list[str] = []
    size = 0
    for block in blocks:
        if "\n" not in block:
            rest.append(block)
            size += len(block)
            if size > LONGEST:
                raise ValueError(f"has a line of more than {LONGEST >> 20} million characters")
            continue
        lines = list(io.StringIO("".join(rest) + block, newline="\n"))
        rest = [] if lines[-1].endswith("\n") else [lines.pop()]
        size = sum(map(len, rest))
        yield lines
    if rest:
        yield ["".join(rest)]


def _delimiter(header: str) -> str:
    plain = re.sub(r'"[^"]*"', "", header)
    return max(DELIMITERS, key=plain.count)


class _Csv:
    """Errors of the reader in words, with the line."""

    def __init__(self, reader: Any) -> None:
        self.reader = reader

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, csv.Error):
            quote = "unexpected end" in str(error) or "field limit" in str(error)
            hint = "; is a quote left open?" if quote else ""
            raise ValueError(f"is no CSV up to line {self.reader.line_num}: {tidy(error)}{hint}") from None


def _read_csv(
    stream: Stream,
    reader: Any,
    names: tuple[str, ...],
    numbers: Sequence[str],
    values: Sequence[str],
    progress: Progress | None,
) -> dict[str, Array]:
    made = _columns(numbers, values)
    where = {name: place for place, name in enumerate(names)}
    places = [(where[name], column) for name, column in made.items()]
    width, rows, step = len(names), 0, max(1, CELLS // len(names))
    while True:
        with _Csv(reader):
            chunk = list(islice(reader, step))
        if not chunk:
            break
        lengths = set(map(len, chunk))
        if 0 in lengths:  # blank lines
            chunk = [row for row in chunk if row]
        if lengths - {0, width}:
            _refuse_ragged(chunk, width, rows)
        for place, column in places if chunk else ():
            column.add([row[place] for row in chunk])
        rows += len(chunk)
        stream.tell(progress)
    if not rows:
        raise ValueError("has a header and no rows")
    return {name: column.array() for name, column in made.items()}


def _refuse_ragged(chunk: list[list[str]], width: int, rows: int) -> None:
    for row, cells in enumerate(chunk, rows + 1):
        if len(cells) != width:
            fields = "field" if len(cells) == 1 else "fields"
            raise ValueError(f"row {row} has {len(cells)} {fields} where the header has {width}")


def _columns(numbers: Sequence[str], values: Sequence[str]) -> dict[str, Numbers | Values]:
    made: dict[str, Numbers | Values] = {name: Values(name) for name in values}
    return made | {name: Numbers(name) for name in numbers}


def _records(blocks: Iterable[str]) -> Iterator[Any]:
    lines = (line.strip() for line in chain.from_iterable(_lines(blocks)))
    for row, line in enumerate(filter(None, lines), 1):
        yield _parsed(line, f"row {row} ")


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError(f"{where}is nested too deeply") from None
    except json.JSONDecodeError as error:
        at = f"line {error.lineno}, " if error.lineno > 1 else ""
        raise ValueError(f"{where}is no JSON: {error.msg} at {at}character {error.colno}") from None
    except ValueError:  # Python refuses to read integers of thousands of digits
        raise ValueError(f"{where}is no JSON: a number has too many digits") from None


def _records_table(stream: Stream, records: Iterator[Any]) -> Table:
    try:
        first = _record(next(records), 1)
    except StopIteration:
        raise ValueError("holds no records") from None
    check_width(len(first))
    names = tuple(first)
    return Table(names, partial(_read_records, stream, chain([first], records), len(names)))


def _record(value: Any, row: int) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"row {row} must be an object of names and values, got {quoted(value)}")
    return value


def _read_records(
    stream: Stream,
    records: Iterator[Any],
    width: int,
    numbers: Sequence[str],
    values: Sequence[str],
    progress: Progress | None,
) -> dict[str, Array]:
    made, rows = _columns(numbers, values), 0
    while chunk := list(islice(records, max(1, CELLS // max(width, 1)))):
        found = [_record(value, row) for row, value in enumerate(chunk, rows + 1)]
        for name, column in made.items():
            column.add([record.get(name) for record in found])
        rows += len(chunk)
        stream.tell(progress)
    return {name: column.array() for name, column in made.items()}

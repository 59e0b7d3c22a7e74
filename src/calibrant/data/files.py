"""Files of any format as a table: which format it is, and what to say when it cannot be read."""

from __future__ import annotations

import gzip
import io
import os
import struct
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import PurePath
from typing import Any, BinaryIO

from calibrant.data.binary import arrow_table, npz_table
from calibrant.data.table import MOST_BYTES, Stream, Table, tidy
from calibrant.data.text import csv_table, json_table, lines_table

FORMATS = ("csv", "tsv", "jsonl", "json", "parquet", "arrow", "npz")
SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".npz": "npz",
    ".npy": "npz",
}
BINARY = ("parquet", "arrow", "npz")
_GZIP = b"\x1f\x8b"
_MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow", b"PK\x03\x04": "npz", b"\x93NUMPY": "npz"}
_BOM = b"\xef\xbb\xbf"
# What readers raise for a damaged file, besides ValueError and OSError.
_DAMAGED = (EOFError, RuntimeError, zipfile.BadZipFile, zlib.error, struct.error, OverflowError)


@contextmanager
def opened(path: str, format: str | None = None, stdin: BinaryIO | None = None) -> Iterator[Table]:
    """The table of a file, whose columns can be read until the context ends.

    Parameters
    ----------
    path : str
        The file; "-" is standard input.
    format : {"csv", "tsv", "jsonl", "json", "parquet", "arrow", "npz"}, optional
        By default what the suffix says, or else the first bytes.
    stdin : binary file, optional
        What "-" stands for.

    Raises
    ------
    ValueError, OSError, ImportError
        One line with the name of the file; errors of the body of the context get it too.
    """
    with naming(path), ExitStack() as stack:
        if path != "-":
            file: Any = stack.enter_context(open(path, "rb"))
        elif stdin is None and sys.stdin is None:
            raise ValueError("is closed")
        else:
            file = stdin or sys.stdin.buffer
        yield _table(file, path, format)


@contextmanager
def naming(path: str) -> Iterator[None]:
    """What goes wrong with a file, in one line that names it."""
    name = called(path)
    try:
        yield
    except OSError as error:
        reason = " ".join(str(error.strerror or error).split())
        raise type(error)(f"cannot read {name}: {tidy(reason)}") from None
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    except _DAMAGED as error:
        raise ValueError(f"{name}: cannot be read: {tidy(error)}") from None
    except MemoryError:
        raise ValueError(f"{name}: does not fit into memory") from None


def called(path: str) -> str:
    """How messages call a file."""
    return "standard input" if path == "-" else tidy(path)


def _table(file: Any, path: str, given: str | None) -> Table:
    file = file if hasattr(file, "peek") else io.BufferedReader(file)
    format, data = recognised(file, path, given)
    stream = Stream(data, file, _size(file))
    if format not in BINARY:
        return _text(stream, format)
    if stream.packed:
        raise ValueError(f"is {format} within gzip; unpack it first")
    data = file if file.seekable() else io.BytesIO(_whole(file))
    return npz_table(data) if format == "npz" else arrow_table(data, format)


def recognised(file: Any, path: str, given: str | None) -> tuple[str, Any]:
    """The format of an open file, and its bytes, unpacked where they are gzipped."""
    suffixes = [suffix.lower() for suffix in PurePath(path).suffixes[-2:]]
    data = file
    if _head(file).startswith(_GZIP):
        data = gzip.GzipFile(fileobj=file)
        suffixes = [suffix for suffix in suffixes if suffix != ".gz"]
    elif suffixes[-1:] == [".gz"]:
        raise ValueError("is called .gz and is not gzipped")
    head = _head(data)
    if not head:
        raise ValueError("is empty")
    found, format = sniffed(head), given or SUFFIXES.get(suffixes[-1] if suffixes else "")
    format = format or found
    if format not in BINARY and found in BINARY:
        raise ValueError(f"looks like {found}, not like {format}; give --format {found}")
    return format, data


def _text(stream: Stream, format: str) -> Table:
    if format == "jsonl":
        return lines_table(stream)
    return json_table(stream) if format == "json" else csv_table(stream, "\t" if format == "tsv" else None)


def sniffed(head: bytes) -> str:
    """The format that the first bytes of a file show.

    >>> [sniffed(head) for head in (b"PAR1", b"PK\\x03\\x04", b'{"y": 1}', b"y,p")]
    ['parquet', 'npz', 'jsonl', 'csv']
    """
    for magic, format in _MAGIC.items():
        if head.startswith(magic):
            return format
    start = head.removeprefix(_BOM).lstrip()[:1]
    return {b"{": "jsonl", b"[": "json"}.get(start, "csv")


def _head(file: Any) -> bytes:
    return bytes(file.peek(64)[:64])


def _size(file: Any) -> int | None:
    """Bytes of a file on disk; a pipe has no size."""
    try:
        return os.fstat(file.fileno()).st_size or None
    except OSError:
        return None


def _whole(file: Any) -> bytes:
    """All of a stream that cannot be searched."""
    parts: list[bytes] = []
    size = 0
    while part := file.read(1 << 20):
        parts.append(part)
        size += len(part)
        if size > MOST_BYTES:
            raise ValueError(f"holds more than {MOST_BYTES >> 30} GiB")
    return b"".join(parts)

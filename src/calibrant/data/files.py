"""Which files a path means, which format each has, and what to say when one cannot be read."""

from __future__ import annotations

import glob
import gzip
import io
import os
import struct
import sys
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import PurePath
from typing import Any, BinaryIO
from urllib.parse import unquote

from calibrant.inputs import InputError, InputTypeError, check_choice
from calibrant.sketch import file as sketch_file

EXTRA = "pip install 'calibrant[files]'"
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
#: Formats of the files that a folder means; others lie beside data more often than they are some.
IN_FOLDERS = ("csv", "tsv", "parquet", "arrow")
#: Columns that a file may have, and bytes that what is read of it may unpack to.
MOST_COLUMNS, MOST_BYTES = 20_000, 8 << 30
# What a folder is called whose rows have no value.
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
# Characters of a message that come from a file or a library.
SHOWN = 240
_GZIP = b"\x1f\x8b"
_MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow", b"PK\x03\x04": "npz", b"\x93NUMPY": "npz"}
_BOM = b"\xef\xbb\xbf"
# What readers raise for a damaged file, besides ValueError and OSError.
_DAMAGED = (EOFError, RuntimeError, zipfile.BadZipFile, zlib.error, struct.error, OverflowError)


def expanded(paths: Any, format: str | None = None) -> list[str]:
    """Return the files that a path, a folder, a pattern or several of these mean, in order of their names.

    Of a folder, and the folders in it, these are the files in a format of `IN_FOLDERS`; names that begin
    with a dot or an underscore are left out, as those of temporary files do. "-" is standard input.
    """
    given = [paths] if isinstance(paths, str | os.PathLike) or not isinstance(paths, Iterable) else [*paths]
    for path in given:
        if not isinstance(path, str | os.PathLike):
            raise InputTypeError("paths", "be a path, a pattern or several of these", path)
    if not given:
        raise InputError("paths", "name at least one file", given, got="none")
    if format is not None:
        check_choice("format", format, FORMATS)
    files = [file for path in given for file in _files(os.fspath(path), format)]
    known: set[str] = set()
    for file in files:
        if (real := os.path.realpath(file)) in known:
            raise ValueError(f"{called(file)} is meant twice, and its rows would count twice")
        known.add(real)
    return sorted(files)


def _files(path: str, format: str | None) -> list[str]:
    if path == "-":
        return [path]
    if os.path.isdir(path):
        return _in_folder(path, format)
    if os.path.exists(path) or not glob.has_magic(path):
        return [path]
    matches = sorted(glob.glob(path, recursive=True))
    if not matches:
        raise FileNotFoundError(f"cannot read {called(path)}: no file matches")
    return [
        file for match in matches for file in (_in_folder(match, format) if os.path.isdir(match) else [match])
    ]


def _in_folder(path: str, format: str | None) -> list[str]:
    by_format: dict[str, list[str]] = {}
    for folder, folders, files in os.walk(path):
        folders[:] = [name for name in folders if name[0] not in "._"]
        for name in files:
            suffix = PurePath(name.lower().removesuffix(".gz")).suffix
            file_format = SUFFIXES.get(suffix, "") if format is None else format
            if name[0] not in "._" and file_format in (IN_FOLDERS if format is None else (format,)):
                by_format.setdefault(file_format, []).append(os.path.join(folder, name))
    if not by_format:
        raise ValueError(f"{called(path)}: holds no CSV, Parquet or Arrow files")
    if len(by_format) > 1:
        formats = ", ".join(sorted(by_format))
        raise ValueError(f"{called(path)}: holds files of several formats, {formats}; give one by a pattern")
    return next(iter(by_format.values()))


def in_folders(path: str) -> dict[str, str]:
    """Return the columns that the folders of a file name, as Spark writes them, and their values.

    >>> in_folders("sales/day=2026-05-04/shop=north%2Fwest/chunk-0.parquet")
    {'day': '2026-05-04', 'shop': 'north/west'}
    """
    pairs = [unquote(folder).partition("=") for folder in PurePath(path).parts[:-1] if "=" in folder]
    return {name: "" if value == NO_VALUE else value for name, _, value in pairs if name}


def content_of(path: str, stdin: BinaryIO | None = None) -> bytes | None:
    """Return what standard input or a pipe holds, which can be read only once; None for a file."""
    if path != "-":
        if not os.path.exists(path) or os.path.isfile(path):
            return None
        with open(path, "rb") as file:
            return _read_all(file)
    if stdin is None and sys.stdin is None:
        raise ValueError("is closed")
    return _read_all(stdin or sys.stdin.buffer)


def _read_all(file: Any) -> bytes:
    parts: list[bytes] = []
    size = 0
    while chunk := file.read(1 << 20):
        parts.append(chunk)
        size += len(chunk)
        if size > MOST_BYTES:
            raise ValueError(f"holds more than {MOST_BYTES >> 30} GiB")
    return b"".join(parts)


def recognised(file: Any, path: str, format: str | None) -> tuple[str, Any]:
    """Return the format of an open file, and its bytes, unpacked where they are gzipped."""
    suffixes = [suffix.lower() for suffix in PurePath(path).suffixes[-2:]]
    file = file if hasattr(file, "peek") else io.BufferedReader(file)
    data = file
    if _head(file).startswith(_GZIP):
        data = gzip.GzipFile(fileobj=file)
        suffixes = [suffix for suffix in suffixes if suffix != ".gz"]
    elif suffixes[-1:] == [".gz"]:
        raise ValueError("is called .gz and is not gzipped")
    head = _head(data)
    if not head:
        raise ValueError("is empty")
    if sketch_file.is_sketch(head):
        raise InputError("data", "be rows", got="a sketch, which holds sums", advice="sketch")
    by_bytes, file_format = sniffed(head), format or SUFFIXES.get(suffixes[-1] if suffixes else "")
    file_format = file_format or by_bytes
    if file_format not in BINARY and by_bytes in BINARY:
        raise InputError("format", f"be {by_bytes}, as its first bytes are", file_format)
    if file_format in BINARY and data is not file:
        raise ValueError(f"is {file_format} within gzip; unpack it first")
    return file_format, data


def sniffed(head: bytes) -> str:
    """Return the format that the first bytes of a file show.

    >>> [sniffed(head) for head in (b"PAR1", b"PK\\x03\\x04", b'{"y": 1}', b"y,p")]
    ['parquet', 'npz', 'jsonl', 'csv']
    """
    for magic, format in _MAGIC.items():
        if head.startswith(magic):
            return format
    start = head.removeprefix(_BOM).lstrip()[:1]
    return {b"{": "jsonl", b"[": "json"}.get(start, "csv")


def is_sketch(path: str) -> bool:
    """Return whether a path is a file that `Sketch.save` wrote, by its first bytes."""
    try:
        if not os.path.isfile(path):
            return False
        with open(path, "rb") as file:
            return sketch_file.is_sketch(file.read(64))
    except OSError:
        return False  # what is wrong with it is said when it is read


def _head(file: Any) -> bytes:
    return bytes(file.peek(64)[:64])


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Put the name of a file in front of what goes wrong with it, in one line."""
    try:
        yield
    except InputError as error:
        error.about = error.about or called(path)
        raise
    except OSError as error:
        reason = " ".join(str(error.strerror or error).split())
        raise type(error)(f"cannot read {called(path)}: {tidy(reason)}") from None
    except ValueError as error:
        raise ValueError(f"{called(path)}: {error}") from None
    except _DAMAGED as error:
        raise ValueError(f"{called(path)}: cannot be read: {tidy(error)}") from None
    except MemoryError:
        raise ValueError(f"{called(path)}: does not fit into memory") from None


def called(path: str) -> str:
    """Return what messages call a file."""
    return "standard input" if path == "-" else tidy(path)


def tidy(text: Any, most: int = SHOWN) -> str:
    """Return a text with every character that a terminal would obey made visible.

    >>> tidy("\\x1b[31mred")
    '\\\\x1b[31mred'
    """
    text = str(text)
    text = text if len(text) <= most else text[: most - 3] + "..."
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def check_width(columns: int) -> None:
    """Refuse more columns than any table of scores has."""
    if columns > MOST_COLUMNS:
        raise ValueError(f"has {columns} columns, more than the {MOST_COLUMNS} that are read")


def check_bytes(size: int) -> None:
    """Refuse what would fill the memory."""
    if size > MOST_BYTES:
        raise ValueError(
            f"would unpack to {size / 2**30:.3g} GiB, more than the {MOST_BYTES >> 30} that are read"
        )


def pyarrow_of() -> Any:
    """Return the library that reads files, or name the extra that brings it."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.ipc
    except ImportError:
        raise ImportError(f"reading files needs pyarrow: {EXTRA}") from None
    return pyarrow

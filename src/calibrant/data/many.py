"""Several files as one table, whose columns fit into memory."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import PurePath
from typing import BinaryIO

import numpy as np

from calibrant.data.files import SUFFIXES, called, naming, opened
from calibrant.data.paths import expanded, told
from calibrant.data.sources import described
from calibrant.data.table import Array, Numbers, Progress, Table, Values, quoted

#: Beyond so many rows, or bytes of a file of any kind or of text, files are read in pieces.
MANY_ROWS, MANY_BYTES, MANY_TEXT = 5_000_000, 1 << 30, 1 << 28
_KINDS = {"O": "text", "b": "booleans"}


def is_many(path: str) -> bool:
    """Whether a path is a folder or a pattern."""
    return path != "-" and (os.path.isdir(path) or (not os.path.exists(path) and glob.has_magic(path)))


def is_large(path: str, format: str | None = None) -> tuple[bool, str]:
    """Whether a path holds more than is read into memory, and how much that is.

    Only sizes are looked at, and rows where a file says how many it has. What cannot be looked at, or not
    be read in pieces, is not large: it is left to the reader of rows.
    """
    try:
        files = expanded(path, format)
        size = sum(os.path.getsize(file) for file in files)
        kinds = {format or SUFFIXES.get(PurePath(file).suffix.lower()) for file in files}
        # Only Parquet holds many rows in few bytes.
        if size <= MANY_TEXT and "parquet" not in kinds:
            return False, ""
        sources = [described(file, format) for file in files]
    except (OSError, ValueError, ImportError):
        return False, ""
    texts = sum(source.size for source in sources if source.format in ("csv", "tsv"))
    if any(source.rows is None for source in sources):
        return texts > MANY_TEXT or size > MANY_BYTES, f"{size / 1e6:,.0f} MB"
    rows = sum(source.rows or 0 for source in sources)
    return rows > MANY_ROWS or size > MANY_BYTES, f"{rows:,} rows"


@contextmanager
def opened_all(
    path: str, format: str | None = None, stdin: BinaryIO | None = None
) -> Iterator[tuple[Table, list[tuple[str, int]]]]:
    """The table of a file, a folder or a pattern, and the rows of each file once it is read."""
    parts: list[tuple[str, int]] = []
    if not is_many(path):
        with opened(path, format, stdin) as table:
            yield table, parts
        return
    files = expanded(path, format)
    with opened(files[0], format) as first:
        more = [name for name in told(files[0]) if name not in first.times]
        read = partial(_read, files, format, parts)
        table = Table((*first.names, *more), read, first.blocks, first.pair, tuple(more))
    try:
        with naming(files[0]):
            yield table, parts
    except _Named as error:
        raise error.error from None


class _Named(Exception):
    """An error that names its file already."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def _read(
    files: Sequence[str],
    format: str | None,
    parts: list[tuple[str, int]],
    numbers: Sequence[str],
    values: Sequence[str],
    progress: Progress | None,
) -> dict[str, Array]:
    """The columns of all files, one after the other."""
    found: dict[str, list[Array]] = {name: [] for name in (*numbers, *values)}
    for k, file in enumerate(files):
        try:
            with opened(file, format) as table:
                more = {name: value for name, value in told(file).items() if name not in table.times}
                for name in found:
                    if table.times[name] != 1 and name not in more:
                        raise ValueError(
                            f"has no column {quoted(name)}, or several, unlike {called(files[0])}"
                        )
                try:
                    in_file = [[name for name in some if name not in more] for some in (numbers, values)]
                    own = table.read(in_file[0], in_file[1], None)
                    rows = len(next(iter(own.values())))
                    for name in (*numbers, *values):
                        if name in more:
                            column = Numbers(name) if name in numbers else Values(name)
                            column.add([more[name]] * rows)
                            own[name] = column.array()
                except ValueError as error:
                    # One among many may be empty.
                    if str(error) not in ("has no rows", "has a header and no rows"):
                        raise
                    own = {}
                for name, array in own.items():
                    found[name].append(array)
                    _check_kind(name, found[name][0], array, called(files[0]))
        except (ValueError, OSError) as error:
            raise _Named(error) from None
        parts.append((file, len(next(iter(own.values()))) if own else 0))
        if progress is not None:
            progress(k + 1, len(files))
    if not any(rows for _, rows in parts):
        raise ValueError("has no rows, and the other files have none")
    return {name: np.concatenate(arrays) for name, arrays in found.items()}


def _check_kind(name: str, first: Array, array: Array, where: str) -> None:
    """Raise for a column that is text in one file and numbers in another."""
    due, got = (_KINDS.get(one.dtype.kind, "numbers") for one in (first, array))
    if due != got:
        raise ValueError(f"column {quoted(name)} must hold {due} as in {where}, got {got}")

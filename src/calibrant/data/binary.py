"""Tables in binary: Parquet and Arrow through pyarrow, NPZ through numpy."""

from __future__ import annotations

import math
import os
import tokenize
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, BinaryIO

import numpy as np

from calibrant.data.table import (
    Array,
    Numbers,
    Progress,
    Table,
    Values,
    check_bytes,
    check_width,
    of_array,
    quoted,
    refuse_missing,
    tidy,
)

EXTRA = "pip install 'calibrant[files]'"
# What deflate can gain at most, and bytes of a member that say nothing about its contents.
DEFLATE, SLACK = 1032, 1 << 10


def arrow_table(data: BinaryIO, kind: str) -> Table:
    """The table of a Parquet file, or of an Arrow IPC (Feather) file or stream."""
    pa = pyarrow_of()
    with readable(pa):
        if kind == "parquet":
            from pyarrow import parquet

            file = parquet.ParquetFile(data)
            names, rows = tuple(file.schema_arrow.names), file.metadata.num_rows
        else:
            head = data.read(6)
            data.seek(0)
            schema = (pa.ipc.open_file if head == b"ARROW1" else pa.ipc.open_stream)(data).schema
            file, names, rows = (data, head == b"ARROW1"), tuple(schema.names), None
    check_width(len(names))
    return Table(names, partial(_read_arrow, pa, file, names, rows))


def pyarrow_of(what: str = "Parquet and Arrow files need") -> Any:
    """The library that reads Parquet and Arrow, or the extra that brings it."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.ipc
    except ImportError:
        raise ImportError(f"{what} pyarrow: {EXTRA}") from None
    return pyarrow


@contextmanager
def readable(pa: Any) -> Iterator[None]:
    """What pyarrow raises, as a ValueError of one line."""
    try:
        yield
    except pa.ArrowException as error:
        raise ValueError(f"cannot be read: {tidy(' '.join(str(error).split()))}") from None


def _read_arrow(
    pa: Any,
    file: Any,
    names: tuple[str, ...],
    rows: int | None,
    numbers: Sequence[str],
    values: Sequence[str],
    progress: Progress | None,
) -> dict[str, Array]:
    wanted = list(dict.fromkeys((*numbers, *values)))
    with readable(pa):
        if rows is None:
            data, seekable = file
            data.seek(0)
            where = {name: place for place, name in enumerate(names)}
            options = pa.ipc.IpcReadOptions(included_fields=sorted(where[name] for name in wanted))
            open_it = pa.ipc.open_file if seekable else pa.ipc.open_stream
            table = open_it(data, options=options).read_all()
        else:
            check_bytes(8 * rows * len(wanted))
            table = file.read(columns=wanted)
        if not table.num_rows:
            raise ValueError("has no rows")
        # Offsets that point outside of the data are found here, and not by a crash.
        table.validate(full=True)
        must = set(numbers)
        return {name: _arrow_column(pa, name, table.column(name), name in must) for name in wanted}


def _arrow_column(pa: Any, name: str, column: Any, numbers: bool) -> Array:
    types = pa.types
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if column.null_count:
        first = pa.compute.index(pa.compute.is_null(column), True).as_py()
        refuse_missing(name, column.null_count, first + 1)
    if types.is_decimal(kind):
        column = column.cast(pa.float64())
    elif types.is_temporal(kind) and not numbers:
        column = column.cast(pa.string())
    kind = column.type
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        made: Numbers | Values = Numbers(name) if numbers else Values(name)
        made.add(column.to_pylist())
        return made.array()
    if not (types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind)):
        rule = "numbers" if numbers else "numbers or text"
        raise ValueError(f"column {quoted(name)} must hold {rule}, got the type {tidy(kind)}")
    return of_array(name, column.to_numpy(), numbers=numbers)


@dataclass(frozen=True)
class _Member:
    """An array of an archive, as its header declares it."""

    info: zipfile.ZipInfo
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


def npz_table(data: BinaryIO) -> Table:
    """The table of an NPZ archive: a column for each vector, several for each matrix."""
    if data.read(6) == b"\x93NUMPY":
        raise ValueError("is a single array; write both by np.savez(file, y_true=..., y_prob=...)")
    size = data.seek(0, os.SEEK_END)
    archive = zipfile.ZipFile(data)
    members = {}
    for info in archive.infolist():
        if info.filename.endswith(".npy"):
            member = _member(archive, info, size)
            if len(member.shape) in (1, 2):
                members[info.filename.removesuffix(".npy")] = member
    if not members:
        sheet = any(name.startswith("xl/") for name in archive.namelist())
        raise ValueError("is a workbook; save it as CSV" if sheet else "holds no vector and no matrix")
    blocks = {name: one.shape[1] for name, one in members.items() if len(one.shape) == 2}
    check_width(len(members) + sum(blocks.values()))
    columns = {name: tuple(f"{name}_{k}" for k in range(width)) for name, width in blocks.items()}
    names = tuple(column for name in members for column in columns.get(name, (name,)))
    return Table(
        names, partial(_read_npz, archive, members, columns), MappingProxyType(columns), _pair(members)
    )


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, size: int) -> _Member:
    """The declared shape and type, held against the bytes that there can be."""
    name = quoted(info.filename)
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"has the member {name} in a compression that numpy does not write")
    if info.compress_size > size or info.file_size > DEFLATE * info.compress_size + SLACK:
        raise ValueError(f"has the member {name}, which claims {info.file_size} bytes and cannot hold them")
    with archive.open(info) as file:
        shape, dtype = _header(file, name)
        there = info.file_size - file.tell()
    least = math.prod(shape) * max(dtype.itemsize, 1)
    if not dtype.hasobject and (min(shape, default=0) < 0 or least > there):
        raise ValueError(
            f"has the array {name}, which declares the shape {tidy(shape)} and holds {there} bytes"
        )
    return _Member(info, shape, dtype)


def _header(file: Any, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            version = np.lib.format.read_magic(file)
            shape, _, dtype = read[version](file)
    except (ValueError, KeyError, TypeError, SyntaxError, tokenize.TokenError, OverflowError, AttributeError):
        raise ValueError(f"has the member {name}, which is no array that can be read") from None
    return shape, dtype


def _pair(members: dict[str, _Member]) -> tuple[str, str] | None:
    """Labels and scores, where there are two arrays that can be nothing else."""
    if len(members) != 2 or len({one.shape[0] for one in members.values()}) > 1:
        return None
    scores = [name for name, one in members.items() if one.dtype.kind == "f"]
    labels = [name for name, one in members.items() if one.dtype.kind in "biuUS" and len(one.shape) == 1]
    return (labels[0], scores[0]) if len(labels) == len(scores) == 1 else None


def _read_npz(
    archive: zipfile.ZipFile,
    members: dict[str, _Member],
    columns: dict[str, tuple[str, ...]],
    numbers: Sequence[str],
    values: Sequence[str],
    progress: Progress | None,
) -> dict[str, Array]:
    home = {column: (name, k) for name, own in columns.items() for k, column in enumerate(own)}
    wanted = list(dict.fromkeys((*numbers, *values)))
    used = list(dict.fromkeys(home.get(name, (name, 0))[0] for name in wanted))
    lengths = {name: members[name].shape[0] for name in used}
    if len(set(lengths.values())) > 1:
        rows = ", ".join(f"{quoted(name)} {length}" for name, length in lengths.items())
        raise ValueError(f"must hold arrays of one length, got {rows}")
    if not all(lengths.values()):
        raise ValueError("has no rows")
    check_bytes(sum(members[name].info.file_size for name in used))
    arrays = {name: _array(archive, name, members[name]) for name in used}
    must, found = set(numbers), {}
    for name in wanted:
        own, k = home.get(name, (name, 0))
        array = arrays[own] if arrays[own].ndim == 1 else arrays[own][:, k]
        found[name] = of_array(name, array, numbers=name in must)
    return found


def _array(archive: zipfile.ZipFile, name: str, member: _Member) -> Array:
    if member.dtype.hasobject:
        raise ValueError(f"has pickled objects in the array {quoted(name)}, which could run code: not read")
    with archive.open(member.info) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(np.lib.format.read_array(file, allow_pickle=False))

"""Files as batches of columns: what each format holds, and its rows, some at a time.

A batch has as many rows as asked for, the last one of a file fewer, whatever the file was written in: so
batches are the same in every run. Parsing is left to pyarrow,
and of NPZ to numpy; what a forged file could do is bounded by sizes that are looked at before.
"""

from __future__ import annotations

import io
import math
import os
import tokenize
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from calibrant.data.batch import Batch
from calibrant.data.columns import ColumnHeader, ColumnRoles
from calibrant.data.files import (
    check_bytes,
    check_width,
    content_of,
    in_folders,
    naming,
    pyarrow_of,
    recognised,
    tidy,
)
from calibrant.data.text import about_csv, about_json, csv_tables, json_tables
from calibrant.data.values import select_values, without_value
from calibrant.inputs import Array, show

# Bytes of the buffers of all columns of a Parquet file.
BUFFERS = 1 << 26
# What deflate can gain at most, and bytes of a member that say nothing about its contents.
DEFLATE, SLACK = 1032, 1 << 10
# Bytes of all arrays per byte of their archive, and on top of that: scores are hardly ever so repetitive.
MOST_RATIO, UNPACKED_SLACK = 100, 1 << 26


@dataclass(frozen=True)
class DataFile:
    """A file, and what it says of itself before its rows are read."""

    path: str  # "-" for standard input
    format: str
    # size, changed: bytes, and when it was last changed, in nanoseconds.
    size: int
    changed: int
    header: ColumnHeader  # the names of its columns
    types: Mapping[str, Any]  # the types of its columns, of Arrow or of numpy; those of CSV are all text
    rows: int | None = None  # number of rows, where the file says so
    content: bytes | None = field(default=None, repr=False)  # all of it, where it can be read only once
    # raw, delimiter: names as a CSV file writes them, and its delimiter.
    raw: tuple[str, ...] = ()
    delimiter: str = ""

    @property
    def is_text(self) -> bool:
        """Whether rows are parsed from text, which takes more memory."""
        return self.format not in ("parquet", "arrow", "npz")

    def open(self) -> Any:
        """Open it to read its bytes."""
        return open(self.path, "rb") if self.content is None else io.BytesIO(self.content)

    def native(self) -> Any:
        """Open it for pyarrow, whose threads then read without asking Python."""
        import pyarrow as pa

        return pa.OSFile(os.fsencode(self.path)) if self.content is None else pa.BufferReader(self.content)

    def check_unchanged(self) -> None:
        """Refuse a file that another process has changed."""
        if self.content is None:
            about = os.stat(self.path)
            if (about.st_size, about.st_mtime_ns) != (self.size, self.changed):
                raise ValueError("has changed while it was read")


def described(path: str, format: str | None = None, stdin: BinaryIO | None = None) -> DataFile:
    """Return what a file says of itself before its rows are read, and what its folders say of it."""
    with naming(path), _readable():
        content = content_of(path, stdin)
        with open(path, "rb") if content is None else io.BytesIO(content) as file:
            size, changed = len(content or b""), 0
            if content is None:
                about = os.fstat(file.fileno())
                size, changed = about.st_size, about.st_mtime_ns
            file_format, data = recognised(file, path, format)
            source = DataFile(path, file_format, size, changed, ColumnHeader(()), {}, content=content)
            describe = {"npz": _about_npz, "parquet": _about_parquet, "arrow": _about_arrow}
            describe |= {"jsonl": about_json, "json": about_json}
            source = describe.get(file_format, about_csv)(source, data)
        check_width(len(source.header.names))
        names = source.header.names
        more = {name: value for name, value in in_folders(path).items() if name not in names}
        if not more:
            return source
        header = replace(source.header, names=(*names, *more), in_folders=more)
        types = {**source.types, **{name: np.dtype("U") for name in more}}
        return replace(source, header=header, types=types)


def batches(
    source: DataFile,
    numbers: Sequence[str],
    values: Sequence[str],
    rows: int,
) -> Iterator[tuple[int, Batch, float]]:
    """Yield the number of rows before a batch, the batch, and how much of the file is read after it.

    `numbers` are columns that hold numbers, and `values` those that repeat few values.
    """
    every = list(dict.fromkeys((*numbers, *values)))
    folders = source.header.in_folders
    wanted = [name for name in every if name not in folders]
    more = {name: folders[name] for name in every if name in folders}
    with naming(source.path), _readable():
        if source.format == "npz":
            pieces: Iterable[tuple[int, Any, float]] = _npz(source, wanted, rows)
        else:
            if source.format == "parquet":
                tables = _parquet(source, wanted, [name for name in values if name in wanted], rows)
            elif source.format == "arrow":
                tables = _arrow(source, wanted)
            elif source.format in ("jsonl", "json"):
                tables = json_tables(source, wanted)
            else:
                tables = csv_tables(source, wanted)
            pieces = _regrouped(tables, rows)
        for first, batch, share in pieces:
            yield first, _with_folders(batch, more), share
        source.check_unchanged()


class FileBatch(NamedTuple):
    """A batch of a file, the number of rows before it there, and the bytes of all files read after it.

    Where rows without a label are left out, `kept` is whether each row has one, and `others` are columns of
    the other rows.
    """

    source: DataFile
    first: int
    batch: Batch
    done: int
    kept: Array | None = None
    others: Batch = MappingProxyType({})

    @property
    def is_labelled(self) -> bool:
        """Whether any row may have a label."""
        return self.kept is None or bool(self.kept.any())


def labelled_batches(sources: Sequence[DataFile], roles: ColumnRoles, rows: int) -> Iterator[FileBatch]:
    """Yield the batches of files with the columns that are used, without rows that are to be left out."""
    for piece in all_batches(sources, roles.numbers, roles.values, rows):
        gone = without_value(piece.batch[roles.label]) if roles.drop and roles.label is not None else None
        if gone is None or not gone.any():
            yield piece
            continue
        names = dict.fromkeys((*roles.numbers, *roles.values))
        batch = {name: select_values(piece.batch[name], ~gone) for name in names}
        counted = (name for name in (roles.counts, roles.groups) if name is not None)
        others = {name: select_values(piece.batch[name], gone) for name in counted}
        yield piece._replace(batch=batch, kept=~gone, others=others)


def all_batches(
    sources: Sequence[DataFile], numbers: Sequence[str], values: Sequence[str], rows: int
) -> Iterator[FileBatch]:
    """Yield the batches of files, one file after the other; see `batches`."""
    done = 0
    for source in sources:
        for first, batch, share in batches(source, numbers, values, rows):
            yield FileBatch(source, first, batch, done + int(share * source.size))
        done += source.size


def _with_folders(batch: Any, more: Mapping[str, str]) -> Batch:
    """Return a batch with the columns that folders tell."""
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
        # pyarrow raises an OSError without a number for contents that it cannot decode.
        if type(error).__module__ != "pyarrow.lib" and getattr(error, "errno", 0) is not None:
            raise
        raise ValueError(f"cannot be read: {tidy(' '.join(str(error).split()))}") from None


def _regrouped(tables: Iterable[tuple[Any, float]], rows: int) -> Iterator[tuple[int, Any, float]]:
    """Cut and join tables so that each holds as many rows; what a table has in full is not copied."""
    import pyarrow as pa

    pending: list[Any] = []
    count = first = 0
    for table, share in tables:
        while table.num_rows:
            chunk = table.slice(0, rows - count)
            table = table.slice(chunk.num_rows)
            pending.append(chunk)
            count += chunk.num_rows
            if count == rows:
                yield first, _joined(pa, pending), share
                first, pending, count = first + rows, [], 0
    if pending:
        yield first, _joined(pa, pending), 1.0


def _joined(pa: Any, tables: list[Any]) -> Any:
    # The parser of JSON gives a column of whole numbers and one of others different types.
    return pa.concat_tables(tables, promote_options="permissive").combine_chunks()


# Parquet and Arrow


def _about_parquet(source: DataFile, data: Any) -> DataFile:
    pyarrow_of()
    from pyarrow import parquet

    with source.native() as opened:
        file = parquet.ParquetFile(opened)
        return _with_schema(replace(source, rows=file.metadata.num_rows), file.schema_arrow)


def _with_schema(source: DataFile, schema: Any) -> DataFile:
    types = dict(zip(schema.names, schema.types, strict=True))
    return replace(source, header=ColumnHeader(tuple(schema.names)), types=types)


def _parquet(
    source: DataFile, wanted: list[str], values: list[str], rows: int
) -> Iterator[tuple[Any, float]]:
    import pyarrow as pa
    from pyarrow import parquet

    texts = [name for name in values if pa.types.is_string(source.types[name])]
    # Without buffers of a given size all of a row group would be in memory at once.
    size = max(1 << 14, min(1 << 20, BUFFERS // len(wanted)))
    done, total = 0, source.rows or 1
    with source.native() as opened:
        file = parquet.ParquetFile(opened, buffer_size=size, read_dictionary=texts)
        for batch in file.iter_batches(rows, columns=wanted):
            done += batch.num_rows
            yield pa.Table.from_batches([batch]), done / total


def _about_arrow(source: DataFile, data: Any) -> DataFile:
    pa = pyarrow_of()
    with source.native() as opened:
        head = opened.read(6)
        opened.seek(0)
        reader = pa.ipc.open_file(opened) if head == b"ARROW1" else pa.ipc.open_stream(opened)
        return _with_schema(source, reader.schema)


def _arrow(source: DataFile, wanted: list[str]) -> Iterator[tuple[Any, float]]:
    import pyarrow as pa

    place = {name: k for k, name in enumerate(source.header.names)}
    options = pa.ipc.IpcReadOptions(included_fields=sorted(place[name] for name in wanted))
    # Mapped, so that a batch of any size is looked at piece by piece.
    content, path = source.content, os.fsencode(source.path)
    with pa.memory_map(path) if content is None else pa.BufferReader(content) as file:
        for batch, share in _arrow_batches(pa, file, options, source.size):
            # Offsets that point outside of the data are found here, and not by a crash.
            batch.validate(full=True)
            yield pa.Table.from_batches([batch]), share


def _arrow_batches(pa: Any, file: Any, options: Any, size: int) -> Iterator[tuple[Any, float]]:
    if file.read(6) == b"ARROW1":
        reader = pa.ipc.open_file(file, options=options)
        for k in range(reader.num_record_batches):
            yield reader.get_batch(k), (k + 1) / reader.num_record_batches
        return
    file.seek(0)
    for batch in pa.ipc.open_stream(file, options=options):
        yield batch, file.tell() / size


# NPZ, by numpy: the sizes that an archive declares are checked against its bytes before any array is read


def _about_npz(source: DataFile, data: Any) -> DataFile:
    entries = _members_of(data)
    header = _header_of(entries)
    columns = {name: header.blocks.get(name, (name,)) for name in entries}
    types = {column: member.dtype for name, member in entries.items() for column in columns[name]}
    return replace(source, header=header, types=types)


def _npz(source: DataFile, wanted: list[str], rows: int) -> Iterator[tuple[int, Any, float]]:
    with source.open() as file:
        columns = _columns_of(file, wanted)
    total = len(next(iter(columns.values())))
    for first in range(0, total, rows):
        chunk = {name: column[first : first + rows] for name, column in columns.items()}
        yield first, chunk, min(first + rows, total) / total


@dataclass(frozen=True)
class _Member:
    """An array of an archive, as its header declares it."""

    info: zipfile.ZipInfo
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


def _members_of(data: BinaryIO) -> dict[str, _Member]:
    """Return the vectors and matrices of an archive, by name."""
    if data.read(6) == b"\x93NUMPY":
        raise ValueError("is a single array; write both by np.savez(file, y_true=..., y_prob=...)")
    size = data.seek(0, os.SEEK_END)
    archive = zipfile.ZipFile(data)
    entries = {}
    for info in archive.infolist():
        if info.filename.endswith(".npy"):
            member = _member(archive, info, size)
            if len(member.shape) in (1, 2):
                entries[info.filename.removesuffix(".npy")] = member
    if not entries:
        sheet = any(name.startswith("xl/") for name in archive.namelist())
        raise ValueError("is a workbook; save it as CSV" if sheet else "holds no vector and no matrix")
    return entries


def _header_of(entries: dict[str, _Member]) -> ColumnHeader:
    """Return the columns of an archive: one for each vector, several for each matrix."""
    widths = {name: member.shape[1] for name, member in entries.items() if len(member.shape) == 2}
    check_width(len(entries) + sum(widths.values()))
    blocks = {name: tuple(f"{name}_{k}" for k in range(width)) for name, width in widths.items()}
    names = tuple(column for name in entries for column in blocks.get(name, (name,)))
    return ColumnHeader(names, blocks, _pair(entries))


def _columns_of(data: BinaryIO, wanted: Sequence[str]) -> dict[str, Array]:
    """Return columns of an archive."""
    entries = _members_of(data)
    blocks = _header_of(entries).blocks
    home = {column: (name, k) for name, names in blocks.items() for k, column in enumerate(names)}
    used = list(dict.fromkeys(home.get(name, (name, 0))[0] for name in wanted))
    lengths = {name: entries[name].shape[0] for name in used}
    if len(set(lengths.values())) > 1:
        rows = ", ".join(f"{show(name)} {length}" for name, length in lengths.items())
        raise ValueError(f"must hold arrays of one length, got {rows}")
    unpacked, packed = sum(entries[name].info.file_size for name in used), data.seek(0, os.SEEK_END)
    check_bytes(unpacked)
    if unpacked > MOST_RATIO * packed + UNPACKED_SLACK:
        sizes = f"from {packed / 2**20:.3g} MiB to {unpacked / 2**20:.4g} MiB"
        hint = "write it without compression, by np.savez"
        raise ValueError(f"would unpack {sizes}, more than {MOST_RATIO} times its size; {hint}")
    archive = zipfile.ZipFile(data)
    arrays = {name: _array(archive, name, entries[name]) for name in used}
    columns = {}
    for column in wanted:
        name, k = home.get(column, (column, 0))
        columns[column] = arrays[name] if arrays[name].ndim == 1 else arrays[name][:, k]
    return columns


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, size: int) -> _Member:
    """The declared shape and type, checked against the bytes that there can be."""
    name = show(info.filename)
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


def _pair(entries: dict[str, _Member]) -> tuple[str, str] | None:
    """Labels and scores, where there are two arrays that can be nothing else."""
    if len(entries) != 2 or len({member.shape[0] for member in entries.values()}) > 1:
        return None
    scores = [name for name, member in entries.items() if member.dtype.kind == "f"]
    labels = [
        name for name, member in entries.items() if member.dtype.kind in "biuUS" and len(member.shape) == 1
    ]
    return (labels[0], scores[0]) if len(labels) == len(scores) == 1 else None


def _array(archive: zipfile.ZipFile, name: str, member: _Member) -> Array:
    if member.dtype.hasobject:
        raise ValueError(f"has pickled objects in the array {show(name)}, which could run code: not read")
    with archive.open(member.info) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(np.lib.format.read_array(file, allow_pickle=False))

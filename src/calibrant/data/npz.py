"""Arrays of an NPZ archive, whose declared sizes are held against its bytes before any is read."""

from __future__ import annotations

import math
import os
import tokenize
import warnings
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from calibrant.data.columns import Header
from calibrant.data.files import check_bytes, check_width, tidy
from calibrant.inputs import Array, show

# What deflate can gain at most, and bytes of a member that say nothing about its contents.
DEFLATE, SLACK = 1032, 1 << 10


@dataclass(frozen=True)
class Member:
    """An array of an archive, as its header declares it."""

    info: zipfile.ZipInfo
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


def members_of(data: BinaryIO) -> dict[str, Member]:
    """Return the vectors and matrices of an archive, by name."""
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
    return members


def header_of(members: dict[str, Member]) -> Header:
    """Return the columns of an archive: one for each vector, several for each matrix."""
    widths = {name: member.shape[1] for name, member in members.items() if len(member.shape) == 2}
    check_width(len(members) + sum(widths.values()))
    blocks = {name: tuple(f"{name}_{k}" for k in range(width)) for name, width in widths.items()}
    names = tuple(column for name in members for column in blocks.get(name, (name,)))
    return Header(names, blocks, _pair(members))


def types_of(members: dict[str, Member], header: Header) -> dict[str, np.dtype[Any]]:
    """Return the type of each column."""
    return {
        column: member.dtype
        for name, member in members.items()
        for column in header.blocks.get(name, (name,))
    }


def columns_of(data: BinaryIO, wanted: Sequence[str]) -> dict[str, Array]:
    """Return columns of an archive."""
    members = members_of(data)
    blocks = header_of(members).blocks
    home = {column: (name, k) for name, own in blocks.items() for k, column in enumerate(own)}
    used = list(dict.fromkeys(home.get(name, (name, 0))[0] for name in wanted))
    lengths = {name: members[name].shape[0] for name in used}
    if len(set(lengths.values())) > 1:
        rows = ", ".join(f"{show(name)} {length}" for name, length in lengths.items())
        raise ValueError(f"must hold arrays of one length, got {rows}")
    check_bytes(sum(members[name].info.file_size for name in used))
    archive = zipfile.ZipFile(data)
    arrays = {name: _array(archive, name, members[name]) for name in used}
    columns = {}
    for column in wanted:
        name, k = home.get(column, (column, 0))
        columns[column] = arrays[name] if arrays[name].ndim == 1 else arrays[name][:, k]
    return columns


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, size: int) -> Member:
    """The declared shape and type, held against the bytes that there can be."""
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
    return Member(info, shape, dtype)


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


def _pair(members: dict[str, Member]) -> tuple[str, str] | None:
    """Labels and scores, where there are two arrays that can be nothing else."""
    if len(members) != 2 or len({member.shape[0] for member in members.values()}) > 1:
        return None
    scores = [name for name, member in members.items() if member.dtype.kind == "f"]
    labels = [
        name for name, member in members.items() if member.dtype.kind in "biuUS" and len(member.shape) == 1
    ]
    return (labels[0], scores[0]) if len(labels) == len(scores) == 1 else None


def _array(archive: zipfile.ZipFile, name: str, member: Member) -> Array:
    if member.dtype.hasobject:
        raise ValueError(f"has pickled objects in the array {show(name)}, which could run code: not read")
    with archive.open(member.info) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(np.lib.format.read_array(file, allow_pickle=False))

"""Sketches as files: an NPZ archive of numbers with a JSON header, checked when it is read.

The members of the archive are:

    calibrant_sketch.json   notion, classes, what was given, and totals (`SketchHeader`)
    held.npy                a bit for each cell of each class: whether it holds rows
    sums.npy                for each cell that holds rows, its sums of w, ws, wy, wsy and wss, and of squared
                            weights where these are importance weights: a row for each kind of sum
    squares.npy             the sum of squared weights of each class

A sketch of no rows has a header alone. Nothing in a file is unpickled. The size of each member is compared
with what the header implies before the member is read, so that a small file cannot take much memory.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import math
import os
import struct
import zipfile
import zlib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, BinaryIO, ClassVar, Literal, TypeVar

import numpy as np

from calibrant.atomic import write_atomic
from calibrant.inputs import InputError, Serializable, within
from calibrant.inputs.codec import Bounds
from calibrant.score_data import Array, Layout
from calibrant.sketch.cell_sums import empty_cells, layout_of
from calibrant.sketch.sketch import Sketch
from calibrant.sketch.totals import ROUNDING, Totals
from calibrant.tasks import ClassRelation, get_notion
from calibrant.tasks.notions import refuse_without_rows

HEADER = "calibrant_sketch.json"
# Bytes of the header, and of all sums in memory, that a file may have.
MOST_HEADER, MOST_SUMS = 1 << 24, 1 << 32
# Bytes of a member per compressed byte, and on top of that: sums of rows are never so repetitive.
MOST_RATIO, SLACK = 50, 1 << 24
# Bytes of the directory at the end of an archive, which zipfile reads at once.
MOST_DIRECTORY = 1 << 12
_ZIP, _END, _ZIP64 = b"PK\x03\x04", struct.Struct("<4s4H2LH"), b"PK\x06\x07"
_NPY = b"\x93NUMPY\x01\x00"
# The number of bits of each byte.
_ONES = np.array([byte.bit_count() for byte in range(256)], dtype=np.uint8)
# Rounding allowed within a cell, and what products of tiny scores may lose.
NEAR, TINY = 1e-9, 1e-300
# What a damaged archive raises in zipfile, zlib and json.
_DAMAGED = (
    *(ValueError, LookupError, ArithmeticError, RuntimeError, EOFError),
    *(struct.error, zipfile.BadZipFile, zlib.error),
)

Kind = TypeVar("Kind", bound=Sketch)


@dataclass(frozen=True)
class SketchContent:
    """What the header says of the rows of a sketch."""

    labels: tuple[Hashable, ...]
    positive: Annotated[int, Bounds(0)] | None
    vector: bool
    weighted: bool  # whether rows had importance weights
    cells: int  # number of cells of equal width
    totals: Totals


@dataclass(frozen=True)
class SketchHeader(Serializable):
    """The header of a file."""

    _has_schema: ClassVar[bool] = False
    format: Literal[1]
    notion: str | None  # None if no update has decided it yet
    n_classes: Annotated[int, Bounds(2)] | None
    # given_labels, given_pos_label: the arguments of the sketch.
    given_labels: tuple[Hashable, ...] | None
    given_pos_label: Hashable
    # given_class_names, given_named_labels: names of the classes, and the labels that they belong to
    # where they were given by label.
    given_class_names: tuple[str, ...] | None
    given_named_labels: tuple[Hashable, ...] | None
    rows: SketchContent | None  # None for a sketch of no rows
    dropped: Annotated[int, Bounds(0, 2**63)] = 0  # rows without a label, of a sketch of no other rows

    @classmethod
    def of(cls, sketch: Sketch) -> SketchHeader:
        """Return the header of a sketch."""
        rows = None
        if sketch._cells is not None:
            about = sketch.labels, sketch.positive, sketch.is_vector, sketch.weighted
            rows = SketchContent(*about, sketch._layout.uniform, sketch.totals)
        given, names = sketch._given, sketch._class_names
        return cls(
            format=1,
            notion=sketch.notion,
            n_classes=sketch._n_classes,
            given_labels=given["labels"],
            given_pos_label=given["pos_label"],
            given_class_names=tuple(names.values()) if isinstance(names, Mapping) else names,
            given_named_labels=tuple(names) if isinstance(names, Mapping) else None,
            rows=rows,
            dropped=sketch.totals.dropped if rows is None else 0,
        )

    @property
    def class_names(self) -> tuple[str, ...] | dict[Any, str] | None:
        """The names of the classes, as they were given."""
        if self.given_class_names is None or self.given_named_labels is None:
            return self.given_class_names
        return dict(zip(self.given_named_labels, self.given_class_names, strict=True))

    def _check_fields(self) -> None:
        """Refuse values that do not go together."""
        refuse_without_rows(self.notion)
        rows, classes, names = self.rows, self.n_classes, self.given_class_names
        if self.given_named_labels is not None and len(self.given_named_labels) != len(names or ()):
            raise InputError("given_named_labels", "be as many as given_class_names", self.given_named_labels)
        if rows is None:
            return
        if self.notion is None:
            raise InputError("notion", "be known where there are rows", None)
        if classes is None or len(rows.labels) != classes or len(set(rows.labels)) != classes:
            raise InputError("rows.labels", f"be {classes} distinct classes", got=f"{len(rows.labels)}")
        if rows.positive is not None and rows.positive >= classes:
            raise InputError("rows.positive", f"be below {classes}, the number of classes", rows.positive)
        if get_notion(self.notion).is_binary and rows.positive is None:
            raise InputError("rows.positive", "name the class of the scores", None)
        if rows.vector and (classes, rows.positive) != (2, 1):
            raise InputError("rows.vector", "be false unless scores are of the second of two classes", True)
        if rows.cells != self.layout.uniform:
            raise InputError("rows.cells", f"be {self.layout.uniform}", rows.cells)
        if (size := 8 * self.n_sums * self.problems * self.layout.size) > MOST_SUMS:
            rule = f"have sums of at most {MOST_SUMS} bytes in a file"
            raise InputError("n_classes", rule, classes, got=f"{size} bytes for {classes} classes")

    @property
    def problems(self) -> int:
        """The number of classes with sums of their own."""
        return get_notion(self.notion).size(self.n_classes or 2)

    @property
    def layout(self) -> Layout:
        """The cells of each class."""
        return layout_of(get_notion(self.notion), self.n_classes or 2)

    @property
    def n_sums(self) -> int:
        """The number of sums of a cell."""
        return 6 if self.rows is not None and self.rows.weighted else 5


def save(sketch: Sketch, path: str | os.PathLike[str]) -> None:
    """Write a sketch to a file, whole or not at all; what could not be read again is not written."""
    with sketch._lock:
        arrays, header = _arrays(sketch), SketchHeader.of(sketch)
    values = header.to_dict()
    SketchHeader.from_dict(values)  # labels that JSON does not hold
    text = _json(values)
    if len(text) > MOST_HEADER:
        raise InputError("labels", f"take at most {MOST_HEADER} bytes in a file", got=f"{len(text)}")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open(HEADER, "w") as member:
            member.write(text)
        for name, array in arrays.items():  # which may exceed 2 GiB
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
    _content(buffer)
    write_atomic(path, [buffer.getvalue()])


def load(kind: type[Kind], path: str | os.PathLike[str]) -> Kind:
    """Read the sketch that `save` wrote.

    Raises
    ------
    InputError
        If the file is anything else, with the file and the rule that it breaks.
    """
    name = os.fsdecode(path).encode("utf-8", "backslashreplace").decode()
    with open(path, "rb") as file, within(name):
        try:
            return _read(kind, file)
        except InputError:
            raise
        except (*_DAMAGED, OSError) as error:
            # A place before the file's beginning, which a damaged directory names, is an invalid argument.
            if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
                raise
            reason = " ".join(str(error).split())
            raise InputError("sketch", "be a whole file", got=f"a damaged one: {reason}") from None


def digest(sketch: Sketch) -> str:
    """Return the SHA-256 of notion, classes and sums: equal for equal content."""
    with sketch._lock:
        arrays, about = _arrays(sketch), SketchHeader.of(sketch).to_dict()
    total = hashlib.sha256(_json({key: value for key, value in about.items() if "given" not in key}))
    for array in arrays.values():
        total.update(array.tobytes())
    return total.hexdigest()


def is_sketch(head: bytes) -> bool:
    """Return whether a file that begins with these bytes, 64 at least, is a sketch."""
    # The name of the first member follows 30 bytes that are about it.
    return head.startswith(_ZIP) and head[30:].startswith(HEADER.encode())


def _json(values: dict[str, Any]) -> bytes:
    """Return JSON that is the same for equal values."""
    return json.dumps(values, allow_nan=False, sort_keys=True, separators=(",", ":")).encode("ascii")


def _arrays(sketch: Sketch) -> dict[str, Array]:
    """Return the arrays of a file: none for a sketch of no rows."""
    if sketch._cells is None:
        return {}
    cells = sketch._current_cells
    occupied = cells.sums.w.reshape(-1) > 0
    sums = np.stack([array.reshape(-1)[occupied] for array in cells.arrays])
    squares = np.reshape(cells.squares, -1)
    return {"held": np.packbits(occupied), "sums": sums.astype("<f8"), "squares": squares.astype("<f8")}


def _read(kind: type[Kind], file: BinaryIO) -> Kind:
    """Read a sketch from an open file; refuse anything else."""
    header, content = _content(file)
    sketch = kind(header.notion, n_classes=header.n_classes)
    sketch._given = {"labels": header.given_labels, "pos_label": header.given_pos_label}
    sketch._class_names = header.class_names
    sketch._add_dropped(header.dropped)
    if header.rows is not None and content is not None:
        _fill(sketch, header, header.rows, *content)
    return sketch


def _content(file: BinaryIO) -> tuple[SketchHeader, tuple[Array, Array, Array] | None]:
    """Return what a file holds, checked: the header, the occupied cells, and their sums and squares."""
    file.seek(0)
    if not is_sketch(file.read(64)):
        raise InputError("sketch", "be a file that Sketch.save wrote", got="a file of another kind")
    _check_directory(file)
    with zipfile.ZipFile(file) as archive:
        header = _header(archive)
        return header, None if header.rows is None else _sums(header, header.rows, archive)


def _check_directory(file: BinaryIO) -> None:
    """Refuse a directory of members, at the end of a file, that is larger than that of any sketch."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - 42, 0))
    tail = file.read()
    mark, *_, length, _, _ = _END.unpack(tail[-_END.size :])
    if mark != b"PK\x05\x06" or tail.startswith(_ZIP64) or length > MOST_DIRECTORY:
        raise InputError("sketch", "be a whole file", got="one that is cut short or changed")


def _header(archive: zipfile.ZipFile) -> SketchHeader:
    """Return the header of a file, with every value checked."""
    size = archive.getinfo(HEADER).file_size
    if size > MOST_HEADER:
        raise InputError("header", f"take at most {MOST_HEADER} bytes", got=f"{size}")
    return SketchHeader.from_json(_bytes(archive, HEADER, size))


def _bytes(archive: zipfile.ZipFile, name: str, size: int) -> bytes:
    """Return a member of so many bytes, none of which is read before its size is checked."""
    info = archive.getinfo(name)
    if info.file_size != size or info.compress_type != zipfile.ZIP_DEFLATED:
        raise InputError(name, f"take {size} bytes, compressed by deflate", got=f"{info.file_size}")
    if size > MOST_RATIO * info.compress_size + SLACK:
        rule = f"unpack to at most {MOST_RATIO} times its size"
        raise InputError(name, rule, got=f"{size} bytes from {info.compress_size}")
    with archive.open(info) as member:
        return member.read(size)


def _array(archive: zipfile.ZipFile, name: str, kind: str, shape: tuple[int, ...]) -> Array:
    """Return an array of a known type and shape; nothing that the file says about it is trusted."""
    member, count = f"{name}.npy", math.prod(shape)
    size = np.dtype(kind).itemsize * count
    start = archive.getinfo(member).file_size - size
    if not len(_NPY) < start <= MOST_DIRECTORY:
        raise InputError(member, f"hold an array of {size} bytes", got=f"{start + size} bytes")
    data = _bytes(archive, member, start + size)
    about = f"{{'descr': {kind!r}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    if not data.startswith(_NPY) or data[len(_NPY) + 2 : start].rstrip() != about:
        raise InputError(member, f"be an array of type {kind!r} and shape {shape}")
    return np.frombuffer(data, kind, count, start).reshape(shape)


def _sums(header: SketchHeader, rows: SketchContent, archive: zipfile.ZipFile) -> tuple[Array, Array, Array]:
    """Return the places of occupied cells among those of all classes, their sums, and the squares."""
    size = header.problems * header.layout.size
    occupied = _array(archive, "held", "|u1", (-(-size // 8),))
    sums = _array(archive, "sums", "<f8", (header.n_sums, int(_ONES[occupied].sum(dtype=np.int64))))
    squares = _array(archive, "squares", "<f8", (header.problems,))
    at = np.flatnonzero(np.unpackbits(occupied, count=size))
    _require(at.size == sums.shape[1], "held", "have no bits beyond the last cell")
    _check_sums(sums, squares, at, header, rows.totals)
    return at, sums, squares


def _fill(
    sketch: Sketch, header: SketchHeader, rows: SketchContent, at: Array, sums: Array, squares: Array
) -> None:
    """Put the sums of a file into a sketch that holds nothing."""
    cells = empty_cells(get_notion(header.notion), header.n_classes or 2, weighted=rows.weighted)
    for array, values in zip(cells.arrays, sums, strict=True):
        array.reshape(-1)[at] = values
    cells.squares[...] = squares.reshape(cells.batch)
    sketch.labels, sketch.positive, sketch._vector = rows.labels, rows.positive, rows.vector
    sketch._cells, sketch.totals = cells, rows.totals


def _require(holds: Any, name: str, rule: str) -> None:
    """Refuse numbers for which a rule does not hold."""
    if not np.all(holds):
        raise InputError(name, rule)


@np.errstate(all="ignore")
def _check_sums(sums: Array, squares: Array, at: Array, header: SketchHeader, totals: Totals) -> None:
    """Refuse sums that no rows have; `at` is the place of each cell among those of all classes."""
    notion, layout = get_notion(header.notion), header.layout
    width = (layout.high - layout.low)[at % layout.size]
    w, ws, wy, wsy, wss = sums[:5]
    _require(np.isfinite(sums), "sums", "be finite")
    _require((sums >= 0) & (w > 0), "sums", "not be negative, and those of weights be above 0")
    _require(wy <= w * (1 + NEAR), "sums", "hold no more outcomes than rows in a cell")
    _require(ws <= w * width * (1 + NEAR), "sums", "be of scores that lie in their cells")
    slack, rest = w * width * NEAR + TINY, np.maximum(w - wy, 0)
    is_consistent = (
        (wsy <= wy * width + slack) & (ws - wsy <= rest * width + slack) & (wsy <= ws * (1 + NEAR) + TINY)
    )
    _require(is_consistent, "sums", "be of scores that lie in their cells with and without the outcome")
    mean = ws / w
    spread = (mean * mean <= wss / w * (1 + NEAR) + TINY / w) & (wss <= ws * width * (1 + NEAR) + TINY)
    _require(spread, "sums", "have squared scores that fit the scores")

    def by_class(values: Array) -> Array:
        return np.bincount(at // layout.size, values, header.problems)

    total, most = by_class(w), (totals.rows + totals.weight) * (1 + ROUNDING)
    near = np.abs(total - totals.weight) <= ROUNDING * totals.weight
    _require(near, "sums", "hold the weight of all rows for each class")
    fits = (total * total <= most * squares) & (squares <= total * total * (1 + ROUNDING))
    _require(fits, "squares", "fit the weights")
    if header.n_sums == 5:  # counts of rows, each of which has a weight of one
        _require(np.abs(squares - total) <= ROUNDING * total, "squares", "be the weights of counted rows")
    else:
        _require(sums[5] > 0, "sums", "have squared weights above 0")
        near = np.abs(by_class(sums[5]) - squares) <= ROUNDING * squares
        _require(near, "squares", "be the sums of those of the cells")
        _require(by_class(w / sums[5] * w) <= most, "sums", "have squared weights that fit in every cell")
    if (notion.classwise and notion.classes is ClassRelation.EXCLUSIVE) or notion.top == 1:
        known = totals.weight if notion.classwise else totals.right
        near = np.abs(wy.sum() - known) <= ROUNDING * totals.weight
        _require(near, "sums", "hold as many outcomes as the totals say")

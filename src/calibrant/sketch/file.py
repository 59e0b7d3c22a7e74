"""Sketches as files: numbers and labels only, written whole, and checked to the last byte when read.

A file is, with all numbers little-endian:

    16 bytes    "calibrant sketch"
    4, 4, 8     format (2), length of the header, length of the body
    header      JSON: notion, classes, what was given, cells of equal width, sums of a cell (5 or 6), totals
                (with the number of renormalised rows where there are any)
    body        compressed by zlib; for each problem
                    the number of cells that hold rows (4 bytes) and the sum of squared weights (8)
                    the distance of each such cell from the one before, the first from -1 (4 each)
                    their sums of w, ws, wy, wsy and wss, and of squared weights where these are
                    importance weights (8 each), one after the other
    32 bytes    SHA-256 of all of the above

Within one array first come all first bytes, then all second ones and so on, which compresses better.

The number of sums says which kind of weights there are: five for rows and counts of rows, six for importance
weights.

Format 1 had five sums, whatever the weights: it is read, and what it knows of the squares of importance
weights, their total, is shared out over the cells by weight. Its number of rows did not include counts.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from itertools import chain
from typing import Any, BinaryIO, TypeVar

import numpy as np

from calibrant.atomic import write_whole
from calibrant.evidence import Array
from calibrant.questions import Notion, named
from calibrant.sketch.file_checks import Header, Unfit, check_outcomes, check_squares, check_sums, due, plain
from calibrant.sketch.sketch import Sketch
from calibrant.sketch.sums import empty_cells, layout_of

MAGIC, FORMAT = b"calibrant sketch", 2
# No file makes a reader take more memory: for its header, and for the sums of all classes.
MOST_HEADER, MOST_SUMS = 1 << 24, 1 << 32
_START, _PROBLEM = struct.Struct("<16sIIQ"), struct.Struct("<Id")
# Bytes read at a time, of the hash, and of a class with a single cell.
_PIECE, _HASH, _LEAST = 1 << 20, 32, 56

Kind = TypeVar("Kind", bound=Sketch)


def save(sketch: Sketch, path: str | os.PathLike[str]) -> None:
    """Write a sketch to a file, whole or not at all."""
    sums = _sums(sketch)
    if sketch._cells is not None and size_of(sketch._notion, sketch._n_classes or 2, sums) > MOST_SUMS:
        raise ValueError(f"a sketch of {sketch._n_classes} classes is too large for a file")
    header, squeeze = _json(_about(sketch) | {"sums": sums}), zlib.compressobj()
    if len(header) > MOST_HEADER:
        raise ValueError(f"labels must take at most {MOST_HEADER} bytes in a file, got {len(header)}")
    body = [*map(squeeze.compress, _problems(sketch)), squeeze.flush()]
    parts = [_START.pack(MAGIC, FORMAT, len(header), sum(map(len, body))), header, *body]
    write_whole(path, [*parts, _hash(parts).digest()])


def load(kind: type[Kind], path: str | os.PathLike[str]) -> Kind:
    """Read the sketch that `save` wrote.

    Raises
    ------
    ValueError
        If the file is anything else, with the reason.
    """
    with open(path, "rb") as file:
        try:
            return _read(kind, file)
        except Unfit as error:
            name = os.fsdecode(path).encode("utf-8", "backslashreplace").decode()
            raise ValueError(f"{name} cannot be read as a sketch: {error}") from None


def digest(sketch: Sketch) -> str:
    """Return the SHA-256 of notion, classes and sums: equal for equal content, whatever zlib makes of it."""
    about = {key: value for key, value in _about(sketch).items() if key != "given"}
    return _hash(chain([_json(about)], _problems(sketch))).hexdigest()


def _hash(pieces: Iterable[bytes]) -> Any:
    """Return the SHA-256 of pieces, one after the other."""
    total = hashlib.sha256()
    for piece in pieces:
        total.update(piece)
    return total


def _about(sketch: Sketch) -> dict[str, Any]:
    """Return the values of the header that any file of the same content has."""
    return {
        "notion": sketch.notion,
        "labels": [plain(label) for label in sketch.labels],
        "positive": sketch.positive,
        "vector": sketch._vector,
        "n_classes": sketch._n_classes,
        "given": {key: plain(value) for key, value in sketch._given.items()},
        "cells": None if sketch._cells is None else sketch._layout.uniform,
        "totals": {
            key: value for key, value in asdict(sketch.totals).items() if value or key != "renormalised"
        },
    }


def _json(values: dict[str, Any]) -> bytes:
    """Return JSON that is the same for equal values."""
    return json.dumps(values, allow_nan=False, sort_keys=True, separators=(",", ":")).encode("ascii")


def _problems(sketch: Sketch) -> Iterator[bytes]:
    """Yield the cells that hold rows, problem by problem."""
    for block in [] if sketch._cells is None else sketch._blocks():
        for k in range(block.batch[0] if block.batch else 1):
            problem = block[k] if block.batch else block
            held = np.flatnonzero(problem.sums.w)
            gaps = np.diff(held, prepend=-1).astype("<u4")
            sums = np.stack([array[held] for array in problem.arrays]).astype("<f8")
            yield b"".join([_PROBLEM.pack(held.size, float(problem.squares)), _planes(gaps), _planes(sums)])


def _sums(sketch: Sketch) -> int:
    """Return the number of sums of a cell."""
    return 5 if sketch._cells is None else len(sketch._cells.arrays)


def size_of(notion: Notion, n_classes: int, sums: int) -> int:
    """Return the bytes that the sums of a sketch take in memory."""
    return notion.size(n_classes) * layout_of(notion, n_classes).size * sums * 8


def _planes(array: Array) -> bytes:
    """Return all first bytes, all second ones and so on."""
    return array.reshape(-1).view(np.uint8).reshape(array.size, -1).T.tobytes()


def _joined(planes: bytes, kind: str) -> Array:
    """Return the array that `_planes` took apart."""
    size = np.dtype(kind).itemsize
    return np.ascontiguousarray(np.frombuffer(planes, np.uint8).reshape(size, -1).T).view(kind).reshape(-1)


def _read(kind: type[Kind], file: BinaryIO) -> Kind:
    """Read a sketch from an open file; refuse anything else."""
    size, start = os.fstat(file.fileno()).st_size, file.read(_START.size)
    if not start:
        raise Unfit("it is empty")
    if not start.startswith(MAGIC[: len(start)]):
        raise Unfit("it is a file of another kind")
    if len(start) < _START.size:
        raise Unfit(f"it is cut short, after {len(start)} bytes")
    _, version, header, body = _START.unpack(start)
    if not 1 <= version <= FORMAT:
        hint = "; a later calibrant wrote it" if version > FORMAT else ""
        raise Unfit(f"it has format {version}, and this calibrant reads formats 1 to {FORMAT}{hint}")
    whole = _START.size + header + body + _HASH
    if size != whole:
        raise Unfit(f"it is cut short or goes on after its end: {size} bytes where {whole} are due")
    if header > MOST_HEADER:
        raise Unfit(f"its header must take at most {MOST_HEADER} bytes, got {header}")
    lengths = (min(_PIECE, whole - _HASH - a) for a in range(_START.size, whole - _HASH, _PIECE))
    if _hash(chain([start], map(file.read, lengths))).digest() != file.read(_HASH):
        raise Unfit("its checksum does not match, so it has been damaged or changed")
    file.seek(_START.size)
    values, stream = Header.read(file.read(header), version), _Inflated(file, body)
    sketch = _sketch(kind, values, stream, body, version)
    stream.end()
    return sketch


class _Inflated:
    """What zlib compressed, a bounded piece at a time."""

    def __init__(self, file: BinaryIO, length: int) -> None:
        self._file, self._left, self._held = file, length, b""
        self._stream = zlib.decompressobj()

    def take(self, size: int) -> bytes:
        """Return the next `size` bytes."""
        pieces = []
        while size:
            if not self._held:
                self._held = self._file.read(min(_PIECE, self._left))
                self._left = self._left - len(self._held) if self._held else 0
            piece = self._some(self._held, size)
            ended = not piece and (self._stream.eof or not self._left)
            self._held = self._stream.unconsumed_tail
            if ended and not self._held:
                raise Unfit("its body ends too soon")
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def end(self) -> None:
        """Refuse a body that goes on."""
        # What is left holds no more than the mark of its end.
        due(self._left <= _PIECE, "its body goes on after its end")
        more = self._some(self._held + self._file.read(self._left), 1)
        ended = self._stream.eof and not more and not self._stream.unused_data
        due(ended, "its body goes on after its end, or does not end")

    def _some(self, squeezed: bytes, most: int) -> bytes:
        """Decompress to at most this many bytes."""
        try:
            return self._stream.decompress(squeezed, most)
        except zlib.error as error:
            raise Unfit(f"its body is damaged: {error}") from None


def _sketch(kind: type[Kind], header: Header, stream: _Inflated, body: int, version: int) -> Kind:
    """Return the sketch of a header and the sums that follow it."""
    sketch = kind(header.notion, n_classes=header.n_classes)
    sketch._given = header.given
    if header.n_classes is None or header.cells is None:
        return sketch
    notion = named(header.notion)
    layout, problems = layout_of(notion, header.n_classes), notion.size(header.n_classes)
    # Every class has a cell at least, and zlib makes nothing smaller than a thousandth.
    due(problems * _LEAST <= 1100 * body, f"{problems} classes do not fit into its body")
    due(
        size_of(notion, header.n_classes, header.sums) <= MOST_SUMS,
        f"{problems} classes take too much memory",
    )
    batch, support = (problems,) if notion.several else (), notion.support(header.n_classes)
    cells = empty_cells(batch, layout, support, weighted=header.sums == 6)
    for k in range(problems):
        count, squares = _PROBLEM.unpack(stream.take(_PROBLEM.size))
        due(1 <= count <= layout.size, f"a class must have 1 to {layout.size} cells, got {count}")
        gaps = _joined(stream.take(4 * count), "<u4").astype(np.int64)
        due(bool(gaps.all()) and gaps.sum() <= layout.size, "its cells must be in order, each of them once")
        values = _joined(stream.take(8 * header.sums * count), "<f8")
        at, sums = np.cumsum(gaps) - 1, values.reshape(header.sums, count)
        check_sums(sums[:5], layout.high[at] - layout.low[at], squares, header.totals)
        check_squares(sums, squares, header, version)
        own = k if notion.several else ...
        for array, values in zip(cells.arrays, sums, strict=True):
            array[own][at] = values
        cells.squares[own] = squares
    check_outcomes(header, float(cells.sums.wy.sum()))
    sketch.labels, sketch.positive, sketch._vector = header.labels, header.positive, header.vector
    totals = header.totals
    if version == 1 and cells.counts:
        totals = replace(totals, rows=round(totals.weight))
    elif version == 1:
        cells = replace(cells, spread=cells.own_squares)
    sketch._cells, sketch.totals = cells, totals
    return sketch

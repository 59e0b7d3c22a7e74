"""What the readers of files share: a table, the types of its columns, and how messages quote a file.

Text that reads as a number is a number, in every format. Rows are counted from 1; a header is none.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, BinaryIO, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Progress: TypeAlias = Callable[[int, int], None]

#: Columns a file may have, and bytes that what is read of it may unpack to.
MOST_COLUMNS, MOST_BYTES = 20_000, 8 << 30
# Characters of a value, and values of a list, that a message shows.
SHOWN, LISTED = 60, 20
_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")


@dataclass(frozen=True)
class Table:
    """The columns of a file, named and not yet read.

    Attributes
    ----------
    names : tuple of str
        Names of the columns, in the order of the file.
    read : callable
        Called as read(numbers, values, progress) with the columns that must hold numbers and those
        that may hold text too; returns an array for each. The others are never converted.
    blocks : mapping
        The columns of each two-dimensional array, by its name.
    pair : tuple of str, optional
        Labels and scores by their shape and type, where the file holds nothing else.
    told : sequence of str
        Those of the names that folders tell: taken where they are asked for, never found.
    """

    names: tuple[str, ...]
    read: Callable[[Sequence[str], Sequence[str], Progress | None], dict[str, Array]]
    blocks: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    pair: tuple[str, str] | None = None
    told: Sequence[str] = ()

    @property
    def own(self) -> tuple[str, ...]:
        """Names of the columns that the file itself has."""
        return tuple(name for name in self.names if name not in self.told) if self.told else self.names

    @cached_property
    def times(self) -> Counter[str]:
        """How many columns have each name."""
        return Counter(self.names)


@dataclass(frozen=True)
class Stream:
    """Bytes, and how far along the file they come from is.

    Attributes
    ----------
    data : binary file
        What to read.
    file : binary file
        The file itself, where `data` unpacks it.
    size : int, optional
        Bytes of the file, where that is known.
    """

    data: BinaryIO
    file: BinaryIO
    size: int | None = None

    @property
    def packed(self) -> bool:
        """Whether the data unpack to more than the file."""
        return self.data is not self.file

    def tell(self, progress: Progress | None) -> None:
        """Report how much of the file is read."""
        if progress is not None and self.size:
            progress(min(self.file.tell(), self.size), self.size)


class Numbers:
    """A column of numbers, from chunks of texts or other values."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.parts: list[Array] = []
        self.missing, self.first, self.rows = 0, 0, 0

    def add(self, values: Sequence[Any]) -> None:
        """Take a chunk."""
        try:
            part = _parsed(values)
        except (ValueError, TypeError, OverflowError):
            part = None
        # The culprit is sought only after a failure.
        if part is None or not np.isfinite(part).all():
            part = np.array([self._one(value, row) for row, value in enumerate(values, self.rows + 1)])
        self.parts.append(part)
        self.rows += len(values)

    def array(self) -> Array:
        """All of them: integers where every one is whole and has no dot."""
        if self.missing:
            refuse_missing(self.name, self.missing, self.first)
        return np.concatenate(self.parts)

    def _one(self, value: Any, row: int) -> float:
        if value is None or (isinstance(value, str) and not value.strip()):
            self.missing += 1
            self.first = self.first or row
            return 0.0
        found = number(value)
        if found is None:
            refuse_number(self.name, value, row)
        return found


class Values:
    """A column of text, numbers or booleans, from chunks."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.codes: list[Array] = []
        # Few values are distinct, and only these are looked at.
        self.known: dict[tuple[type, Any], int] = {}
        self.rows = 0

    def add(self, values: Sequence[Any]) -> None:
        """Take a chunk."""
        known = self.known
        try:
            keys = zip(map(type, values), values, strict=True)
            codes = np.fromiter((known.setdefault(key, len(known)) for key in keys), np.intp, len(values))
        except TypeError:  # no key of a dictionary: a list or an object
            row = next(k for k, value in enumerate(values) if isinstance(value, list | dict))
            kind = "a list" if isinstance(values[row], list) else "an object"
            raise ValueError(
                f"column {quoted(self.name)} must hold numbers or text, "
                f"got {kind} at row {self.rows + row + 1}"
            ) from None
        self.codes.append(codes)
        self.rows += len(values)

    def array(self) -> Array:
        """All of them, of one type."""
        codes = np.concatenate(self.codes)
        words = [value.strip() if isinstance(value, str) else value for _, value in self.known]
        empty = [k for k, word in enumerate(words) if word is None or word == "" or word != word]
        if empty:
            bad = np.isin(codes, empty)
            refuse_missing(self.name, int(bad.sum()), int(bad.argmax()) + 1)
        kinds = [float if type(word) is int else type(word) for word in words]
        if len(set(kinds)) > 1:
            other = next(k for k, kind in enumerate(kinds) if kind is not kinds[0])
            raise ValueError(
                f"column {quoted(self.name)} must hold one type, got {quoted(words[0])} at row 1 "
                f"and {quoted(words[other])} at row {int((codes == other).argmax()) + 1}"
            )
        return _typed(words)[codes]


def of_array(name: str, array: Array, *, numbers: bool) -> Array:
    """A column that has a type already."""
    if array.dtype.kind in "biuf" and not (numbers and array.dtype.kind == "b"):
        if array.dtype.kind == "f" and not (finite := np.isfinite(array)).all():
            if (gone := np.isnan(array)).any():
                refuse_missing(name, int(gone.sum()), int(gone.argmax()) + 1)
            row = int(np.argmin(finite))
            refuse_number(name, float(array[row]), row + 1)
        return array
    if array.dtype.kind not in "US":
        rule = "numbers" if numbers else "numbers or text"
        raise ValueError(f"column {quoted(name)} must hold {rule}, got the type {array.dtype}")
    column: Numbers | Values = Numbers(name) if numbers else Values(name)
    texts = np.char.decode(array, "utf-8") if array.dtype.kind == "S" else array
    column.add(texts.tolist())
    return column.array()


def number(value: Any) -> float | None:
    """The finite number that a value is or reads as, if it is one."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    if isinstance(value, str) and "_" in value:  # Python takes it for a separator of digits
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def whole(text: str) -> int | None:
    """The integer of 64 bits that a text is, if it is one."""
    if not _WHOLE.fullmatch(text) or not -(2**63) <= int(text) < 2**63:
        return None
    return int(text)


def quoted(value: Any) -> str:
    """A value as a message shows it: short, and without characters that a terminal obeys."""
    if not isinstance(value, str):
        return tidy(value)
    return repr(value if len(value) <= SHOWN else value[: SHOWN - 3] + "...")


def listed(values: Iterable[Any]) -> str:
    """Values as a message shows them, the first few."""
    values = list(values)
    texts = ", ".join(map(quoted, values[:LISTED]))
    return texts + (f" ... and {len(values) - LISTED} more" if len(values) > LISTED else "")


def tidy(text: Any, most: int = SHOWN * 4) -> str:
    """A text with every character that a terminal would obey made visible.

    >>> tidy("\\x1b[31mred")
    '\\\\x1b[31mred'
    """
    text = str(text)
    text = text if len(text) <= most else text[: most - 3] + "..."
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def placed(text: str, first: int, names: Sequence[str] = ()) -> str:
    """A message with its row counted from `first`, and with the name of its column.

    >>> placed("must lie in [0, 1], got 2 at row 3, column 1", 1, ("p_a", "p_b"))
    "must lie in [0, 1], got 2 at row 4, column 'p_b'"
    """

    def place(match: re.Match[str]) -> str:
        row, column = f" at row {int(match[1]) + first}", match[2]
        if column is None:
            return row
        known = int(column) < len(names)
        return f"{row}, column " + (repr(names[int(column)]) if known else str(int(column) + 1))

    return re.sub(r" at row (\d+)(?:, column (\d+))?", place, text)


def check_width(columns: int) -> None:
    """Raise for more columns than any table of scores has."""
    if columns > MOST_COLUMNS:
        raise ValueError(f"has {columns} columns, more than the {MOST_COLUMNS} that are read")


def check_bytes(size: int) -> None:
    """Raise for what would fill the memory."""
    if size > MOST_BYTES:
        raise ValueError(
            f"would unpack to {size / 2**30:.3g} GiB, more than the {MOST_BYTES >> 30} that are read"
        )


def refuse_missing(name: str, count: int, row: int) -> NoReturn:
    """Say how many values are missing."""
    values = "value" if count == 1 else "values"
    raise ValueError(f"column {quoted(name)} has {count} missing {values}, the first at row {row}")


def refuse_number(name: str, value: Any, row: int) -> NoReturn:
    """Say what is no number."""
    comma = isinstance(value, str) and value.count(",") == 1 and number(value.replace(",", ".")) is not None
    hint = "; write decimals with a point" if comma else ""
    raise ValueError(
        f"column {quoted(name)} must hold finite numbers, got {quoted(value)} at row {row}{hint}"
    )


def _parsed(values: Sequence[Any]) -> Array:
    """Numbers, read fast; an error for anything odd."""
    kinds = set(map(type, values))
    if kinds == {str}:
        if "_" in "".join(values):
            raise ValueError
        try:
            return np.fromiter(map(int, values), np.int64, len(values))
        except (ValueError, OverflowError):
            return np.fromiter(map(float, values), np.float64, len(values))
    if not kinds <= {int, float}:
        raise ValueError
    return np.array(values, dtype=np.int64 if kinds == {int} else np.float64)


def _typed(words: Sequence[Any]) -> Array:
    """Distinct values as booleans, integers, floats or, where any is no number, text."""
    kinds = {type(word) for word in words}
    if kinds == {bool}:
        return np.array(words)
    if kinds <= {str, int} and None not in (integers := [whole(str(word)) for word in words]):
        return np.array(integers, dtype=np.int64)
    if None not in (numbers := [number(word) for word in words]):
        return np.array(numbers, dtype=np.float64)
    found = np.empty(len(words), dtype=object)
    found[:] = [word if isinstance(word, str) else str(word) for word in words]
    return found

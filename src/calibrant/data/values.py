"""Columns of Arrow or numpy as arrays of a kind, without missing values.

Text that reads as numbers is numbers.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, TypeAlias

import numpy as np

from calibrant.data.columns import parse_integer
from calibrant.data.files import tidy
from calibrant.inputs import Array, InputError, show
from calibrant.inputs.predictions import exact

Kind: TypeAlias = Literal["booleans", "numbers", "text"]
BOOLEANS = {"true": True, "false": False}
# From here on a number in floating point stands for several integers.
INEXACT = 2.0**53


@dataclass(frozen=True, eq=False)
class Coded:
    """Values that repeat: which one each row has, and the values.

    >>> Coded(np.array([0, 1, 0]), ("a", "b")).array()
    array(['a', 'b', 'a'], dtype=object)
    """

    code: Array
    values: tuple[Any, ...]
    texts: tuple[str, ...] = ()  # which the values were read from, where that matters

    @classmethod
    def of(cls, values: Array) -> Coded:
        """Return the distinct numbers or booleans of an array; whole numbers are integers."""
        plain = values.dtype.isnative and values.itemsize <= 8 and values.dtype != np.float16
        if plain and sys.modules.get("pyarrow"):  # which does not sort them
            encoded = arrow_of(values).dictionary_encode()
            code, numbers = _array_of(encoded.indices), encoded.dictionary.to_pylist()
        else:
            distinct, code = np.unique(values, return_inverse=True)
            numbers = distinct.tolist()
        if values.dtype.kind == "f":
            numbers = [int(v) if v == int(v) else v for v in numbers]
        return cls(code, tuple(numbers))

    @classmethod
    def of_texts(cls, texts: Sequence[Any]) -> Coded:
        """Return the distinct texts of a list."""
        known: dict[Any, int] = {}
        code = np.fromiter((known.setdefault(text, len(known)) for text in texts), np.intp, len(texts))
        return cls(code, tuple(known))

    def array(self) -> Array:
        """Return the value of each row, in the narrowest type that holds all values."""
        types = {type(value) for value in self.values}
        if types == {bool}:
            return np.array(self.values)[self.code]
        if types == {int} and all(-(2**63) <= value < 2**63 for value in self.values):
            return np.array(self.values, dtype=np.int64)[self.code]
        # A float would make one value of two large integers.
        if types and types <= {int, float} and all(float(value) == value for value in self.values):
            return np.array(self.values, dtype=np.float64)[self.code]
        values = np.empty(len(self.values), dtype=object)
        values[:] = self.values
        return values[self.code]

    def take(self, answers: Sequence[Any]) -> Array:
        """Return what is answered for the value of each row."""
        return np.array(answers).take(self.code)

    def first(self, k: int) -> int:
        """Return the first row that has a value."""
        return int((self.code == k).argmax())

    @property
    def counts(self) -> Array:
        """How many rows have each value."""
        return np.bincount(self.code, minlength=len(self.values))

    def rows(self) -> list[Array]:
        """Return the rows that have each value, in their order.

        >>> Coded(np.array([0, 1, 0]), ("a", "b")).rows()
        [array([0, 2]), array([1])]
        """
        small = self.code.astype(np.min_scalar_type(len(self.values)), copy=False)
        return np.split(np.argsort(small, kind="stable"), np.cumsum(self.counts)[:-1])

    def _used(self) -> Coded:
        """Return the same without values that no row has."""
        used = self.counts > 0
        if used.all():
            return self
        values = tuple(value for value, there in zip(self.values, used, strict=True) if there)
        return Coded((np.cumsum(used) - 1)[self.code], values)


def kind_of(name: str, type: Any, *, numbers: bool = False) -> Kind | None:
    """Return the kind of a type of Arrow or numpy; None for text, whose values decide."""
    if isinstance(type, np.dtype):
        if type.kind in "USO":
            return None
        if type.kind in "iuf" or (type.kind == "b" and not numbers):
            return "booleans" if type.kind == "b" else "numbers"
    else:
        import pyarrow as pa

        types = pa.types
        if types.is_dictionary(type):
            type = type.value_type
        if types.is_boolean(type) and not numbers:
            return "booleans"
        if types.is_integer(type) or types.is_floating(type) or types.is_decimal(type):
            return "numbers"
        if types.is_temporal(type) and not numbers:
            return "text"
        # A column without any value has the type null, and is told to have missing ones.
        texts = (types.is_string, types.is_large_string, types.is_string_view, types.is_null)
        if any(is_kind(type) for is_kind in texts):
            return None
    rule = "hold numbers" if numbers else "hold numbers or text"
    raise InputError(_column(name), rule, got=f"the type {tidy(type)}")


def without_value(column: Any) -> Array:
    """Return whether each value of a column is missing: null, NaN or empty text."""
    if isinstance(column, np.ndarray):
        if column.dtype.kind in "USO":
            return np.array([text is None or not text.strip() for text in _texts(column)], dtype=bool)
        return np.isnan(column) if column.dtype.kind == "f" else np.zeros(len(column), dtype=bool)
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    gone = column.is_null(nan_is_null=True)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        empty = pa.compute.equal(pa.compute.utf8_trim_whitespace(column), "")
        gone = pa.compute.or_(gone, empty.fill_null(True))
    return _array_of(gone.combine_chunks() if hasattr(gone, "num_chunks") else gone)


def select_values(column: Any, kept: Array) -> Any:
    """Return the values of some rows of a column."""
    return column[kept] if isinstance(column, np.ndarray) else column.filter(arrow_of(kept))


def numbers_of(name: str, column: Any) -> Array:
    """Return a column that must hold numbers."""
    column = _plain(name, column)
    if kind_of(name, _type(column), numbers=True) is not None:
        array: Array = column if isinstance(column, np.ndarray) else _array_of(column)
        return array
    if not isinstance(column, np.ndarray):
        import pyarrow as pa

        for trim in (lambda texts: texts, pa.compute.utf8_trim_whitespace):
            with suppress(pa.ArrowInvalid):
                return _array_of(trim(column).cast(pa.float64()))
    # Python reads a little more, and says what is wrong.
    return _parsed(name, _texts(column))


def arrow_of(values: Array) -> Any:
    """Return an array of numbers or booleans as one of Arrow, numbers where they lie; see `_array_of`."""
    import pyarrow as pa

    data = np.packbits(values, bitorder="little") if values.dtype == bool else np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(data)])


def _array_of(column: Any) -> Array:
    """Return numbers or booleans of Arrow, none of them missing, numbers where they lie.

    `to_numpy` does the same, but loads pandas first where that is installed.
    """
    import pyarrow as pa

    if not len(column):  # it may have no data, of which earlier versions make no array
        return np.empty(0, column.type.to_pandas_dtype())
    if pa.types.is_boolean(column.type):  # which are bits
        return np.from_dlpack(column.cast(pa.uint8())).view(bool)
    return np.from_dlpack(column)


def values_of(
    name: str,
    column: Any,
    kind: Kind | None = None,
    *,
    distinguish_texts: bool = False,
    optional: bool = False,
) -> Array | Coded:
    """Return a column of numbers, booleans or text, of a kind; without one, of that which its values have.

    With `distinguish_texts`, texts that would be one number, as 1 and 01 would, stay text. In an `optional`
    column values may be missing: NaN, or None in a dictionary.
    """
    column = _plain(name, column, dictionary=True, optional=optional)
    if kind_of(name, _type(column)) is not None:
        column = column if isinstance(column, np.ndarray) else _array_of(column)
        if column.dtype.kind == "f" and not (finite := np.isfinite(column)).all():
            if (missing := np.isnan(column)).any() and not optional:
                _refuse_missing(name, missing)
            if (finite := finite | missing).all():
                return column
            row = int(np.argmin(finite))
            _refuse_number(name, float(column[row]), row)
        found_kind = kind_of_values(exact(_column(name), column))
        if kind is not None and found_kind != kind:
            refuse_kind(name, kind, found_kind)
        return column
    if isinstance(column, np.ndarray):
        coded = Coded.of_texts(_texts(column))
    else:
        column = column if hasattr(column, "dictionary") else column.dictionary_encode()
        # A dictionary may list what no row has.
        coded = Coded(_array_of(column.indices), tuple(column.dictionary.to_pylist()))._used()
    words = ["" if word is None else word.strip() for word in coded.values]
    if not all(words) and not optional:
        _refuse_missing(name, coded.take([not word for word in words]))
    if kind is None:
        numbers = {_exact(word) for word in words if word}
        merged = distinguish_texts and len(numbers) < len(set(words))
        kind = "text" if None in numbers or merged else "numbers"
    values = _as_kind(name, words, coded, kind)
    # Several texts may be one value, as 1 and 1.0 are.
    place = {value: k for k, value in enumerate(dict.fromkeys(values))}
    texts: dict[Any, str] = {}
    if distinguish_texts:
        check_texts(name, texts, values, words)
    code = coded.code if len(place) == len(values) else coded.take([place[value] for value in values])
    return Coded(code, tuple(place), tuple(texts.values()))


def check_texts(name: str, known: dict[Any, str], values: Sequence[Any], texts: Sequence[str]) -> None:
    """Refuse two texts that would be one value, as 1 and 01 are, and add the new ones to those known."""
    for value, text in zip(values, texts, strict=True):
        if known.setdefault(value, text) != text:
            rule = "write each label in one way, as in the first rows"
            raise InputError(_column(name), rule, got=f"{show(known[value])} and {show(text)}")


def _as_kind(name: str, words: Sequence[str], coded: Coded, kind: Kind) -> list[Any]:
    """Return texts as values of a kind, None for blank ones; the first row with one that is none is named."""
    if kind == "text":
        return [word or None for word in words]
    values: list[Any] = []
    for k, word in enumerate(words):
        if not word:
            values.append(None)
            continue
        value = BOOLEANS.get(word.lower()) if kind == "booleans" else _exact(word)
        if value is None:
            refuse_kind(name, kind, show(word), row=coded.first(k))
        values.append(value)
    return values


def _plain(name: str, column: Any, *, dictionary: bool = False, optional: bool = False) -> Any:
    """Return a column in one chunk without missing values; a dictionary only of text, if it may be one."""
    if isinstance(column, np.ndarray):
        return column
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        text = kind_of(name, column.type) is None
        column = column if dictionary and text else column.cast(column.type.value_type)
    if pa.types.is_string_view(column.type):  # which few functions of Arrow take
        column = column.cast(pa.string())
    if column.null_count and optional:
        if not pa.types.is_boolean(column.type) and kind_of(name, column.type) is not None:
            return column.cast(pa.float64()).to_numpy(zero_copy_only=False)
        column = column.cast(pa.string()).fill_null("")
    elif column.null_count:
        _refuse_missing(name, column.is_null().to_numpy(zero_copy_only=False))
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    elif pa.types.is_temporal(column.type):
        column = column.cast(pa.string())
    if not hasattr(column, "num_chunks"):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.unify_dictionaries().chunks)


def _type(column: Any) -> Any:
    return column.dtype if isinstance(column, np.ndarray) else column.type


def _texts(column: Any) -> list[str]:
    if isinstance(column, np.ndarray) and column.dtype.kind == "S":
        column = np.char.decode(column, "utf-8")
    return column.tolist() if isinstance(column, np.ndarray) else column.to_pylist()


def is_text(name: str, column: Any) -> bool:
    """Return whether a column is of text by its type, whatever the texts say."""
    return kind_of(name, _type(column)) is None


def kind_of_values(column: Array | Coded) -> Kind:
    """Return the kind of values that are read."""
    if isinstance(column, np.ndarray):
        return "booleans" if column.dtype.kind == "b" else "numbers"
    return "text" if any(isinstance(value, str) for value in column.values) else "numbers"


def _exact(text: str) -> int | float | None:
    """Return the number that a text is, and no other text that means something else; None if it is none."""
    value = parse_integer(text)
    if value is not None:
        return value
    number = _number(text)
    if number is None or abs(number) >= INEXACT:
        return None
    return int(number) if number == int(number) else number


def _number(text: str) -> float | None:
    """Return the finite number that a text is; None if it is none."""
    if "_" in text:  # Python takes it for a separator of digits
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _parsed(name: str, texts: Sequence[str]) -> Array:
    """Return texts as numbers."""
    missing = np.array([not text.strip() for text in texts])
    if missing.any():
        _refuse_missing(name, missing)
    values = [_number(text) for text in texts]
    if None in values:
        row = values.index(None)
        _refuse_number(name, texts[row], row)
    return np.array(values, dtype=np.float64)


def _column(name: str) -> str:
    return f"column {show(name)}"


def _refuse_missing(name: str, missing: Array) -> NoReturn:
    count, row = int(missing.sum()), int(missing.argmax())
    raise InputError(_column(name), "have no missing values", got=f"{count}, the first", row=row)


def _refuse_number(name: str, value: Any, row: int) -> NoReturn:
    comma = isinstance(value, str) and value.count(",") == 1 and _number(value.replace(",", ".")) is not None
    hint = "write decimals with a point" if comma else ""
    raise InputError(_column(name), "hold finite numbers", value, row=row, hint=hint)


def refuse_kind(
    name: str, kind: Kind, got: str, *, row: int | None = None, where: str = "the first rows"
) -> NoReturn:
    """Refuse a column that is of another kind than before."""
    raise InputError(_column(name), f"hold {kind} as in {where}", got=got, row=row)

"""Columns of pieces as arrays, of one kind from the first piece to the last.

Text that reads as a number is a number, as in the readers of whole files; there all rows decide that,
and here the first piece does. Rows are counted from 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, TypeAlias

import numpy as np

from calibrant.data.table import (
    Array,
    Numbers,
    number,
    of_array,
    quoted,
    refuse_missing,
    tidy,
    whole,
)

Kind: TypeAlias = Literal["booleans", "whole numbers", "numbers", "text"]
BOOLEANS = {"true": True, "false": False}


@dataclass(frozen=True, eq=False)
class Coded:
    """Values that repeat: which one each row has, and the values.

    >>> Coded(np.array([0, 1, 0]), ("a", "b")).array()
    array(['a', 'b', 'a'], dtype=object)
    """

    code: Array
    values: tuple[Any, ...]

    @classmethod
    def of(cls, pa: Any, array: Array) -> Coded:
        """The values of an array of numbers or booleans; whole numbers are integers."""
        found = pa.array(array).dictionary_encode()
        values = found.dictionary.to_pylist()
        if array.dtype.kind == "f":
            values = [int(v) if v == int(v) else v for v in values]
        return cls(found.indices.to_numpy(), tuple(values))

    def array(self) -> Array:
        """The value of each row."""
        table = np.empty(len(self.values), dtype=object)
        table[:] = self.values
        return table[self.code]

    def take(self, answers: Sequence[Any]) -> Array:
        """What is answered for the value of each row."""
        return np.array(answers).take(self.code)


def kind_of(pa: Any, name: str, type: Any, *, numbers: bool = False) -> Kind | None:
    """The kind of an Arrow type; None for text, whose values decide."""
    types, rule = pa.types, "numbers" if numbers else "numbers or text"
    if types.is_dictionary(type):
        type = type.value_type
    if types.is_boolean(type) and not numbers:
        return "booleans"
    if types.is_integer(type):
        return "whole numbers"
    if types.is_floating(type) or types.is_decimal(type):
        return "numbers"
    if types.is_temporal(type) and not numbers:
        return "text"
    if types.is_string(type) or types.is_large_string(type) or types.is_string_view(type):
        return None
    # A column without any value has this type, and is told to have missing ones.
    if types.is_null(type):
        return None
    raise ValueError(f"column {quoted(name)} must hold {rule}, got the type {tidy(type)}")


def refuse_kind(name: str, kind: Kind, got: str, first: str = "the first rows") -> NoReturn:
    """Say that a column is of another kind than before."""
    raise ValueError(f"column {quoted(name)} must hold {kind} as in {first}, got {got}")


def numbers_of(pa: Any, name: str, column: Any, kind: Kind | None = None) -> Array:
    """A column that must hold numbers; one of text is read as whole numbers where these are due."""
    column = _plain(pa, name, column)
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    if kind_of(pa, name, column.type, numbers=True) is not None:
        return column.to_numpy(zero_copy_only=False)
    for plain in (lambda text: text, pa.compute.utf8_trim_whitespace):
        with suppress(pa.ArrowInvalid):
            found = plain(column).cast(pa.int64() if kind == "whole numbers" else pa.float64())
            return found.to_numpy(zero_copy_only=False)
    # Python reads a little more, and says what is wrong.
    made = Numbers(name)
    made.add(column.to_pylist())
    array = made.array()
    if kind == "whole numbers" and array.dtype.kind == "f":
        row = int(np.argmax(array != np.rint(array)))
        refuse_kind(name, kind, f"{array[row]:g} at row {row + 1}")
    return array


def whole_numbers(pa: Any, column: Any) -> bool:
    """Whether every text of a column is a whole number."""
    found = pa.compute.match_substring_regex(column.cast(pa.string()), r"^\s*[+-]?[0-9]{1,18}\s*$")
    return bool(pa.compute.all(found, skip_nulls=True).as_py())


def values_of(pa: Any, name: str, column: Any, kind: Kind | None = None) -> Array | Coded:
    """A column of numbers, booleans or text, of a kind; without one, of that which its values have."""
    column = _plain(pa, name, column, dictionary=True)
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    elif pa.types.is_temporal(column.type):
        column = column.cast(pa.string())
    if kind_of(pa, name, column.type) is not None:
        return of_array(name, column.to_numpy(zero_copy_only=False), numbers=False)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    code = column.indices.to_numpy()
    words = [None if word is None else word.strip() for word in column.dictionary.to_pylist()]
    # A dictionary may list what no row has.
    held = np.bincount(code, minlength=len(words)) > 0
    if not held.all():
        code = (np.cumsum(held) - 1)[code]
        words = [word for word, there in zip(words, held, strict=True) if there]
    if not all(words):
        bad = np.isin(code, [k for k, word in enumerate(words) if not word])
        refuse_missing(name, int(bad.sum()), int(bad.argmax()) + 1)
    texts = [str(word) for word in words]
    return _joined(code, _read(name, texts, code, text_kind(texts) if kind is None else kind))


def _joined(code: Array, values: tuple[Any, ...]) -> Coded:
    """Codes of distinct values: texts may be one value, as 1 and 1.0 are."""
    place = {value: k for k, value in enumerate(dict.fromkeys(values))}
    if len(place) == len(values):
        return Coded(code, values)
    return Coded(np.array([place[value] for value in values])[code], tuple(place))


def text_kind(texts: Sequence[str]) -> Kind:
    """The kind of texts: numbers where all of them are."""
    return "numbers" if all(number(text) is not None for text in texts) else "text"


def _read(name: str, texts: Sequence[str], code: Array, kind: Kind) -> tuple[Any, ...]:
    """Texts as values of a kind; the first row with one that is none is named."""
    if kind == "text":
        return tuple(texts)
    found: list[Any] = []
    for k, text in enumerate(texts):
        value = BOOLEANS.get(text.lower()) if kind == "booleans" else number(text)
        if value is None:
            refuse_kind(name, kind, f"{quoted(text)} at row {int((code == k).argmax()) + 1}")
        if kind == "numbers":
            exact = whole(text)
            value = exact if exact is not None else int(value) if value == int(value) else value
        found.append(value)
    return tuple(found)


def _plain(pa: Any, name: str, column: Any, *, dictionary: bool = False) -> Any:
    """A column in one chunk without missing values; a dictionary only of text, and if it may be one."""
    if pa.types.is_dictionary(column.type):
        text = kind_of(pa, name, column.type) is None
        column = column if dictionary and text else column.cast(column.type.value_type)
    if pa.types.is_string_view(column.type):  # which few functions of Arrow take
        column = column.cast(pa.string())
    if column.null_count:
        first = pa.compute.index(pa.compute.is_null(column), True).as_py()
        refuse_missing(name, column.null_count, first + 1)
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.unify_dictionaries().chunks)

"""Frozen dataclasses as JSON: written by their fields, read back with a check of every field.

The annotation of a field says what it holds: `float`, `int`, `bool`, `str`, a `Literal`, `Hashable` (a class
label), an array of floats, a dataclass, a tuple of any of these, or a union of them with None. Dataclasses
that stand in one union have a class variable `kind`, which is written beside their fields. Rules of a single
field are part of its annotation, such as ``Annotated[float, Bounds(0, 1)]``; all numbers are finite.

A rule across fields is a method `check_fields` that raises an `InputError` about one of them. All errors name
the field by its path, such as ``maps[1].slope``.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from math import inf, isfinite
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from calibrant.inputs.arguments import is_finite, is_number
from calibrant.inputs.errors import InputError, InputTypeError, show, show_near
from calibrant.inputs.predictions import Array
from calibrant.inputs.stored import from_text

Value = TypeVar("Value")


@dataclass(frozen=True)
class Bounds:
    """The range of a number, or of every entry of an array.

    Attributes
    ----------
    low, high : float
    above : bool
        Whether `low` itself is excluded.
    """

    low: float = -inf
    high: float = inf
    above: bool = False

    def check(self, path: str, value: Any) -> None:
        """Refuse a number outside of the range."""
        array = np.asarray(value)
        outside = (array < self.low) | (array > self.high) | (self.above & (array == self.low))
        if outside.any():
            place = np.unravel_index(int(np.argmax(outside)), outside.shape)
            raise InputError(_entry(path, *place), str(self), array.item(*place))

    def __str__(self) -> str:
        if isfinite(self.high) and isfinite(self.low):
            return f"lie in {'(' if self.above else '['}{self.low:g}, {self.high:g}]"
        return f"be {'above' if self.above else 'at least'} {self.low:g}"


@dataclass(frozen=True)
class Shape:
    """The shape of an array.

    Attributes
    ----------
    sizes : tuple of int or None
        The length of each axis; None where it is free.
    empty : bool
        Whether a free axis may have length 0.
    """

    sizes: tuple[int | None, ...]
    empty: bool = False

    def check(self, path: str, value: Array) -> None:
        """Refuse other lengths."""
        for size, length in zip(self.sizes, value.shape, strict=True):
            if (length != size) if size is not None else (length == 0 and not self.empty):
                wanted = ", ".join("n" if each is None else str(each) for each in self.sizes)
                raise InputError(path, f"have shape ({wanted})", got=f"shape {value.shape}")


@dataclass(frozen=True)
class Ascending:
    """The entries of an array do not descend; of a matrix, those of each row."""

    def check(self, path: str, value: Array) -> None:
        """Refuse an array that descends."""
        down = np.diff(value) < 0
        if down.any():
            *row, k = np.unravel_index(int(np.argmax(down)), down.shape)
            left, right = value[(*row, k)], value[(*row, k + 1)]
            raise InputError(
                _entry(path, *row, k + 1), "not be below the entry before it", got=f"{right} after {left}"
            )


#: Numbers of which products of a few are finite.
FAR_FROM_OVERFLOW = Bounds(-1e50, 1e50)
Real: TypeAlias = Annotated[float, FAR_FROM_OVERFLOW]
Share: TypeAlias = Annotated[float, Bounds(0, 1)]


def to_dict(value: Any) -> dict[str, Any]:
    """Return a dataclass as plain numbers, text and lists, by its fields.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Line:
    ...     slope: Annotated[float, Bounds(0, above=True)]
    ...     at: Array
    >>> to_dict(Line(2.0, np.array([0.0, 1.0])))
    {'slope': 2.0, 'at': [0.0, 1.0]}
    """
    written: dict[str, Any] = _plain("", value)
    return written


def to_json(value: Any) -> str:
    """Return a dataclass as JSON that `from_json` reads."""
    return json.dumps(to_dict(value), allow_nan=False)


def from_dict(kind: type[Value], values: Any, name: str) -> Value:
    """Return the dataclass that `to_dict` wrote, with every field checked.

    Parameters
    ----------
    kind : type
        The dataclass.
    values : mapping
    name : str
        What errors call the object itself; those about a field give the path of the field.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Line:
    ...     slope: Annotated[float, Bounds(0, above=True)]
    ...     at: Array
    >>> from_dict(Line, {"slope": -1, "at": [0.0, 1.0]}, "line")
    Traceback (most recent call last):
        ...
    calibrant.inputs.errors.InputError: slope must be above 0, got -1.0
    """
    made = _dataclass("", kind, values, name)
    assert isinstance(made, kind)
    return made


def from_json(kind: type[Value], text: str | bytes, name: str) -> Value:
    """Return the dataclass that `to_json` wrote, with every field checked."""
    return from_dict(kind, from_text(text, name, finite=False), name)


def _plain(path: str, value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kind = _kind(type(value))
        own = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
        plain = {name: _plain(_field(path, name), each) for name, each in own.items()}
        return plain if kind is None else {"kind": kind, **plain}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, tuple | list):
        return [_plain(_entry(path, k), each) for k, each in enumerate(value)]
    if value is not None and not isinstance(value, str | int | float):
        raise InputTypeError(path, "be something that JSON holds: text, a number, a boolean or None", value)
    return value


def _decoded(path: str, hint: Any, value: Any, rules: Sequence[Any] = ()) -> Any:
    """Return a value of an annotation, checked."""
    origin = get_origin(hint)
    if origin is Annotated:
        base, *more = get_args(hint)
        return _decoded(path, base, value, (*rules, *more))
    if origin in (Union, UnionType):
        return _option(path, get_args(hint), value, rules)
    if origin is np.ndarray:
        made: Any = _array(path, value, rules)
    elif origin is Literal:
        made = _choice(path, value, get_args(hint))
    elif origin is tuple:
        made = tuple(_decoded(_entry(path, k), get_args(hint)[0], each) for k, each in _each(path, value))
    elif dataclasses.is_dataclass(hint) and isinstance(hint, type):
        made = _dataclass(path, hint, value, path)
    elif hint is Hashable:
        made = _label(path, value)
    else:
        made = _scalar(path, hint, value)
    for rule in rules:
        rule.check(path, made)
    return made


def _option(path: str, options: Sequence[Any], value: Any, rules: Sequence[Any]) -> Any:
    """Return a value of one of several annotations: None, or the dataclass of its kind."""
    some = [option for option in options if option is not NoneType]
    if value is None and len(some) < len(options):
        return None
    if len(some) == 1:
        return _decoded(path, some[0], value, rules)
    kinds = {_kind(option): option for option in some}
    kind = _mapping(path, value).get("kind")
    _choice(_field(path, "kind"), kind, list(kinds))
    return _decoded(path, kinds[kind], value, rules)


def _dataclass(path: str, kind: Any, value: Any, name: str) -> Any:
    values = dict(_mapping(name, value))
    if (own := _kind(kind)) is not None:
        _choice(_field(path, "kind"), values.pop("kind", None), [own])
    hints = _hints(kind)
    for key in hints:
        if key not in values:
            raise InputError(_field(path, key), "be given")
    for key in values:
        if key not in hints:
            raise InputError(_field(path, key), "be a known field", got=show_near(key, hints))
    made = kind(**{key: _decoded(_field(path, key), hint, values[key]) for key, hint in hints.items()})
    if hasattr(made, "check_fields"):
        with _within(path):
            made.check_fields()
    return made


@cache
def _hints(kind: Any) -> dict[str, Any]:
    """Return the annotations of the fields of a dataclass."""
    hints = get_type_hints(kind, include_extras=True)
    return {each.name: hints[each.name] for each in dataclasses.fields(kind)}


def _kind(kind: Any) -> str | None:
    """Return what tells a dataclass from others in a union."""
    own: str | None = None if "kind" in _hints(kind) else getattr(kind, "kind", None)
    return own


def _mapping(path: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InputTypeError(path, "be a mapping of fields", value)
    return value


def _each(path: str, value: Any) -> Iterator[tuple[int, Any]]:
    if not isinstance(value, list | tuple):
        raise InputTypeError(path, "be a list", value)
    return enumerate(value)


def _choice(path: str, value: Any, options: Sequence[Any]) -> Any:
    if not any(type(value) is type(option) and value == option for option in options):
        rule = f"be one of {show(*options)}" if len(options) > 1 else f"be {show(*options)}"
        raise InputError(path, rule, got=show_near(value, options))
    return value


def _scalar(path: str, hint: Any, value: Any) -> Any:
    if hint is float:
        return _number(path, value)
    names = {bool: "true or false", int: "a whole number", str: "a text"}
    if hint not in names:
        raise TypeError(f"{path}: the codec has no rule for {hint}")
    if type(value) is not hint:
        raise InputTypeError(path, f"be {names[hint]}", value)
    return value


def _number(path: str, value: Any) -> float:
    if not is_number(value):
        raise InputTypeError(path, "be a number", value)
    if not is_finite(value):
        raise InputError(path, "be finite", value)
    return float(value)


def _label(path: str, value: Any) -> Hashable:
    """Return a class label; lists are tuples of labels."""
    if isinstance(value, list | tuple):
        return tuple(_label(_entry(path, k), each) for k, each in _each(path, value))
    if value is not None and not isinstance(value, str | bool | int):
        return _number(path, value)
    return value


def _array(path: str, value: Any, rules: Sequence[Any]) -> Array:
    """Return lists of numbers as an array, of one axis unless a shape says otherwise."""
    shape = next((rule for rule in rules if isinstance(rule, Shape)), Shape((None,), empty=True))
    return _nested(path, value, len(shape.sizes))


def _nested(path: str, value: Any, axes: int) -> Array:
    entries = [each for _, each in _each(path, value)]
    if axes == 1:
        if all(type(each) is float and isfinite(each) for each in entries):
            return np.array(entries, float)
        return np.array([_number(_entry(path, k), each) for k, each in enumerate(entries)], float)
    rows = [_nested(_entry(path, k), each, axes - 1) for k, each in enumerate(entries)]
    for k, row in enumerate(rows):
        if row.shape != rows[0].shape:
            raise InputError(_entry(path, k), f"have {len(rows[0])} entries", got=str(len(row)))
    return np.stack(rows) if rows else np.empty((0,) * axes)


@contextmanager
def _within(path: str) -> Iterator[None]:
    """Put the path of an object before the field that an error is about."""
    try:
        yield
    except InputError as error:
        error.argument = _field(path, error.argument)
        raise


def _field(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _entry(path: str, *places: Any) -> str:
    return path + "".join(f"[{int(k)}]" for k in places)

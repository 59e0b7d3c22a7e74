"""Results that were stored as plain numbers and text: read back as carefully as any input."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral
from typing import Any, TypeVar

import numpy as np

from calibrant.inputs.arguments import is_finite, is_number
from calibrant.inputs.errors import InputError, InputTypeError, show_near
from calibrant.inputs.parsing import NamedTwiceError, parsed_json
from calibrant.inputs.predictions import Array

Value = TypeVar("Value")
# How far rounding may take a number beyond its bounds, or two numbers out of their order.
ROUNDING = 1e-9


def from_text(text: str | bytes, name: str, *, finite: bool = True) -> Any:
    """Return what JSON says; keys that occur twice are refused, and so are NaN and infinities if `finite`.

    >>> from_text('{"value": 0.1, "value": 0.2}', "estimate")
    Traceback (most recent call last):
        ...
    calibrant.inputs.errors.InputError: estimate must have each key once, got 'value' twice
    """

    def refuse(constant: str) -> None:
        raise InputError(name, "hold finite numbers", constant, got=constant)

    try:
        return parsed_json(text, refuse if finite else float)
    except NamedTwiceError as error:
        rule = "have each key once"
        raise InputError(name, rule, error.name, got=f"{error.name!r} twice") from None
    except InputError:
        raise
    except (ValueError, RecursionError) as error:  # no JSON, no text, too many digits, nested too deeply
        raise InputError(name, "be JSON", text, got=f"an error: {error}") from None


@dataclass(frozen=True)
class Record:
    """A mapping that was stored, whose fields are checked as they are taken.

    Parameters
    ----------
    values : mapping
    name : str
        What errors call it.

    Examples
    --------
    >>> record = Record({"value": 5}, "estimate")
    >>> record.number("value", 0, 1)
    Traceback (most recent call last):
        ...
    calibrant.inputs.errors.InputError: estimate.value must lie in [0, 1], got 5
    """

    values: Mapping[str, Any]
    name: str

    def __post_init__(self) -> None:
        if not isinstance(self.values, Mapping):
            raise InputTypeError(self.name, "be a mapping of fields", self.values)

    def only(self, needed: Iterable[str], optional: Iterable[str] = ()) -> Record:
        """Refuse fields that are missing, and fields that are not known; return the record."""
        needed = tuple(needed)
        known = {*needed, *optional}
        if missing := [key for key in needed if key not in self.values]:
            raise InputError(self.name, f"have the field {missing[0]!r}", got="none")
        if unknown := [key for key in self.values if key not in known]:
            rule = "have no fields that are not known"
            raise InputError(self.name, rule, unknown[0], got=show_near(unknown[0], known))
        return self

    def called(self, key: str) -> str:
        """Return what errors call a field."""
        return f"{self.name}.{key}"

    @contextmanager
    def naming(self, key: str) -> Iterator[None]:
        """Let errors about an argument name the field that holds it."""
        try:
            yield
        except InputError as error:
            error.argument = self.called(key)
            raise

    def number(self, key: str, low: float = -np.inf, high: float = np.inf) -> Any:
        """Return a finite number within bounds."""
        value = self.values[key]
        if not is_number(value):
            raise InputTypeError(self.called(key), "be a number", value)
        if not (is_finite(value) and low - ROUNDING <= value <= high + ROUNDING):
            raise InputError(self.called(key), _within(low, high), value)
        return value

    def share(self, key: str) -> Any:
        """Return a number in [0, 1]."""
        return self.number(key, 0, 1)

    def level(self) -> Any:
        """Return the confidence level."""
        if not 0 < self.number("level") < 1:
            raise InputError(self.called("level"), "lie strictly between 0 and 1", self.values["level"])
        return self.values["level"]

    def size(self, key: str) -> Any:
        """Return a number above 0."""
        if self.number(key) <= 0:
            raise InputError(self.called(key), "be above 0", self.values[key])
        return self.values[key]

    def whole(self, key: str, least: int = 0) -> int:
        """Return a whole number of at least so much."""
        value = self.values[key]
        if not isinstance(value, Integral) or isinstance(value, bool):
            raise InputTypeError(self.called(key), "be a whole number", value)
        if value < least:
            raise InputError(self.called(key), f"be at least {least}", value)
        return int(value)

    def text(self, key: str) -> str:
        """Return a text."""
        return _text(self.called(key), self.values[key])

    def flag(self, key: str) -> bool:
        """Return what is true or false."""
        value = self.values[key]
        if not isinstance(value, bool | np.bool_):
            raise InputTypeError(self.called(key), "be true or false", value)
        return bool(value)

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts."""
        return tuple(_text(name, value) for name, value in self._each(key))

    def label(self, key: str = "label") -> Any:
        """Return a label as `plain` leaves it."""
        return _label(self.called(key), self.values.get(key))

    def labels(self, key: str = "labels") -> tuple[Any, ...]:
        """Return a list of labels."""
        return tuple(_label(name, value) for name, value in self._each(key))

    def maybe(self, key: str, read: Callable[[str], Value]) -> Value | None:
        """Return nothing where there is nothing, and otherwise what is read."""
        return None if self.values.get(key) is None else read(key)

    def record(self, key: str) -> Record:
        """Return a mapping within."""
        return Record(self.values[key], self.called(key))

    def records(self, key: str) -> list[Record]:
        """Return a list of mappings within."""
        return [Record(value, name) for name, value in self._each(key)]

    def by_name(self, key: str) -> dict[str, Record]:
        """Return mappings within, by their names."""
        inner = self.record(key)
        return {name: Record(value, f"{inner.name}[{name!r}]") for name, value in inner.values.items()}

    def array(self, key: str, low: float = -np.inf, high: float = np.inf, *, gaps: bool = False) -> Array:
        """Return a list of numbers within bounds as an array; with gaps, NaN for None."""
        entries = [entry for _, entry in self._each(key)]
        for k, value in enumerate(entries):
            if not (type(value) is float or is_number(value) or (gaps and value is None)):
                raise InputTypeError(f"{self.called(key)}[{k}]", "be a number", value)
        numbers = (value if value is not None and is_finite(value) else np.nan for value in entries)
        values = np.array(list(numbers), dtype=np.float64)
        missing = np.array([value is None for value in entries], dtype=bool)
        fine = missing | (np.isfinite(values) & (values >= low - ROUNDING) & (values <= high + ROUNDING))
        if not fine.all():
            k = int(np.argmin(fine))
            raise InputError(f"{self.called(key)}[{k}]", _within(low, high), entries[k])
        return values

    def matrix(self, key: str, columns: int, low: float = -np.inf, high: float = np.inf) -> Array:
        """Return a list of equally long lists of numbers within bounds as a matrix."""
        rows = [np.empty((0, columns))]
        for k, (_, row) in enumerate(self._each(key)):
            inner = Record({(name := f"{key}[{k}]"): row}, self.name)
            values = inner.array(name, low, high)
            inner.lengths(columns, name)
            rows.append(values[None, :])
        return np.concatenate(rows)

    def pair(self, key: str) -> tuple[Any, Any]:
        """Return the two entries of a list."""
        entries = [value for _, value in self._each(key)]
        if len(entries) != 2:
            raise InputError(self.called(key), "have two entries", got=f"{len(entries)}")
        return entries[0], entries[1]

    def ordered(self, *keys: str) -> None:
        """Refuse fields that do not ascend, whether numbers or arrays; NaN is in no order."""
        for one, other in pairwise(keys):
            low, high = (np.asarray(self.values[key], dtype=np.float64) for key in (one, other))
            if np.shape(low) != np.shape(high):
                got = f"{np.size(low)} and {np.size(high)}"
                raise InputError(self.called(one), f"be as many as {other}", got=got)
            if np.any(low > high + ROUNDING):
                at = np.unravel_index(int(np.argmax(low > high + ROUNDING)), low.shape)
                got = f"{low[at]:g} above {high[at]:g}"
                raise InputError(self.called(one), f"not be above {other}", got=got)

    def lengths(self, size: int, *keys: str) -> None:
        """Refuse lists of other lengths."""
        for key in keys:
            if (values := self.values[key]) is not None and len(values) != size:
                raise InputError(self.called(key), f"have {size} entries", got=f"{len(values)}")

    def ascending(self, key: str) -> None:
        """Refuse a list of numbers that does not ascend."""
        if np.any(np.diff(np.asarray(self.values[key], dtype=np.float64)) < 0):
            raise InputError(self.called(key), "ascend")

    def _each(self, key: str) -> Iterator[tuple[str, Any]]:
        """Yield the entries of a list, with their names."""
        entries = self.values[key]
        if not isinstance(entries, list | tuple):
            raise InputTypeError(self.called(key), "be a list", entries)
        yield from ((f"{self.called(key)}[{k}]", entry) for k, entry in enumerate(entries))


def _text(name: str, value: Any) -> str:
    """Return a text."""
    if not isinstance(value, str):
        raise InputTypeError(name, "be a text", value)
    return value


def _label(name: str, value: Any) -> Any:
    """Return a label, or nothing."""
    if value is not None and not isinstance(value, str | int | float | bool):
        raise InputTypeError(name, "be a label: a text, a number or nothing", value)
    return value


def _within(low: float, high: float) -> str:
    """Return the rule that a number must obey."""
    if np.isinf(high):
        return "be finite" if np.isinf(low) else f"be finite and at least {low:g}"
    return f"lie in [{low:g}, {high:g}]"

"""Frozen dataclasses as JSON: written by their fields, read back with a check of every field.

The annotation of a field says what it holds: `float`, `int`, `bool`, `str`, a `Literal`, an array of floats,
a class label (`Hashable`, or `Any` where labels that JSON cannot hold are written as text), a dataclass or
named tuple, a tuple or a mapping of any of these, or a union of them with None. Mappings by label are written
as a list of their values, which have a field `label`. Rules of a single field are part of its annotation,
such as ``Annotated[float, Bounds(0, 1)]``. Numbers are finite unless the annotation has `Allow.NAN`, written
as null, or `Allow.INFINITY`, written as text.

Some class variables are written beside the fields: `kind`, which tells dataclasses of one union apart;
`_constants`, such as the version of a format; and the names of properties, `_computed` and `_worded`. A
computed property must be what the fields say; words may be those of another version.

A rule across fields is a method `_check_fields` that raises an `InputError` about one of them. All errors
name the field by its path, such as ``calibrator.maps[1].slope``.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import cache
from itertools import pairwise
from math import inf, isfinite, nan
from types import MappingProxyType, NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    Self,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
from numpy.typing import NDArray

from calibrant.inputs.arguments import is_finite, is_number
from calibrant.inputs.errors import InputError, InputTypeError, show, show_near
from calibrant.inputs.predictions import Array

# The version of what `to_dict` writes; fields of another version may mean something else.
SCHEMA = 1
# How far rounding may take a number beyond its bounds, or two numbers out of their order.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Bounds:
    """The range of a number, or of every entry of an array."""

    low: float = -inf
    high: float = inf
    # above, below: whether `low` itself is excluded, and whether `high` is.
    above: bool = False
    below: bool = False
    slack: float = 0.0  # how far beyond the range a number may lie

    def check(self, path: str, value: Any) -> None:
        """Refuse a number outside of the range."""
        array = np.asarray(value)
        outside = (array < self.low - self.slack) | (array > self.high + self.slack)
        outside = outside | (self.above & (array == self.low)) | (self.below & (array == self.high))
        if outside.any():
            place = np.unravel_index(int(np.argmax(outside)), outside.shape)
            raise InputError(_entry(path, *place), str(self), array.item(*place))

    def __str__(self) -> str:
        if isfinite(self.high) and isfinite(self.low):
            if self.above and self.below:
                return f"lie strictly between {self.low:g} and {self.high:g}"
            return f"lie in {'(' if self.above else '['}{self.low:g}, {self.high:g}]"
        return f"be {'above' if self.above else 'at least'} {self.low:g}"


@dataclass(frozen=True)
class Shape:
    """The shape of an array."""

    # The length of each axis; None where it is free. Without them the array may have any shape, and be a
    # single number.
    sizes: tuple[int | None, ...] | None
    empty: bool = False  # whether a free axis may have length 0

    def check(self, path: str, value: Array) -> None:
        """Refuse other lengths."""
        for size, length in zip(self.sizes or (), value.shape, strict=self.sizes is not None):
            if (length != size) if size is not None else (length == 0 and not self.empty):
                wanted = ", ".join("n" if each is None else str(each) for each in self.sizes or ())
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


class Allow(Enum):
    """Numbers that are not finite, and allowed in a field."""

    NAN = "nan"
    INFINITY = "infinity"

    def check(self, path: str, value: Any) -> None:
        """Do nothing: whether a number may be read is decided where it is read."""


#: Numbers of which products of a few are finite.
FAR_FROM_OVERFLOW = Bounds(-1e50, 1e50)
Real: TypeAlias = Annotated[float, FAR_FROM_OVERFLOW]
Share: TypeAlias = Annotated[float, Bounds(0, 1)]
#: Numbers of results, which rounding may take out of their bounds.
UNIT = Bounds(0, 1, slack=ROUNDING)
NOT_NEGATIVE = Bounds(0, slack=ROUNDING)
Probability: TypeAlias = Annotated[float, UNIT]
Amount: TypeAlias = Annotated[float, NOT_NEGATIVE]
Size: TypeAlias = Annotated[float, Bounds(0, above=True)]
Level: TypeAlias = Annotated[float, Bounds(0, 1, above=True, below=True)]
Count: TypeAlias = Annotated[int, Bounds(0)]
Number: TypeAlias = Annotated[int, Bounds(1)]


class Serializable:
    """Base of frozen dataclasses that are written as JSON, and read back with a check of every field.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Line(Serializable):
    ...     slope: Annotated[float, Bounds(0, above=True)]
    ...     at: tuple[float, ...]
    >>> line = Line(2.0, (0.0, 1.0))
    >>> line.to_json()
    '{"schema": 1, "slope": 2.0, "at": [0.0, 1.0]}'
    >>> Line.from_json(line.to_json()) == line
    True
    >>> Line.from_dict({"schema": 1, "slope": -1, "at": [0.0, 1.0]})
    Traceback (most recent call last):
        ...
    calibrant.InputError: line.slope must be above 0, got -1.0
    """

    #: Whether the schema number is written; files that have a version of their own do without.
    _has_schema: ClassVar[bool] = True
    _constants: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    _computed: ClassVar[tuple[str, ...]] = ()
    _worded: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, text, lists and dictionaries by field, after the number of the schema."""
        schema = {"schema": SCHEMA} if self._has_schema else {}
        return schema | _plain_record("", type(self), self)

    def to_json(self) -> str:
        """Return JSON that `from_json` reads."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @classmethod
    def from_dict(cls, values: Any) -> Self:
        """Return what `to_dict` wrote, with every field checked; another schema is refused.

        Parameters
        ----------
        values : mapping
            What `to_dict` returned.
        """
        root = cls._root()
        if cls._has_schema:
            values = dict(_object(root, values))
            given = values.pop("schema", None)
            if type(given) is not int or given != SCHEMA:
                hint = "it was written by another version of calibrant"
                raise InputError(f"{root}.schema", f"be {SCHEMA}", given, hint=hint)
        made: Self = _record(root, cls, values)
        return made

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Return what `to_json` wrote, with every field checked.

        Parameters
        ----------
        text : str or bytes
            What `to_json` returned.
        """
        return cls.from_dict(from_text(text, cls._root()))

    @classmethod
    def _root(cls) -> str:
        """Return what errors call an object: the name of its class, as ``best_threshold``."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()

    def __getstate__(self) -> dict[str, Any]:
        # Views of mappings, and mappings that compute their values, cannot be pickled.
        return {
            name: dict(value) if isinstance(value, Mapping) else value for name, value in vars(self).items()
        }


class NamedTwiceError(ValueError):
    """An object has two values of one name, and nobody can know which is meant."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"the name {show(self.name)} stands twice in one object"


def parsed_json(text: str | bytes) -> Any:
    """Return what a JSON text holds; an object that has a name twice is refused.

    >>> parsed_json('{"p": 0.1, "p": 0.9}')
    Traceback (most recent call last):
        ...
    calibrant.inputs.codec.NamedTwiceError: the name 'p' stands twice in one object
    """
    return json.loads(text, object_pairs_hook=_unique_names)


def from_text(text: str | bytes, name: str) -> Any:
    """Return what a JSON text holds; one that is no JSON is refused by its name.

    >>> from_text('{"value": 0.1, "value": 0.2}', "estimate")
    Traceback (most recent call last):
        ...
    calibrant.InputError: estimate must have each key once, got 'value' twice
    """
    try:
        return parsed_json(text)
    except NamedTwiceError as error:
        rule = "have each key once"
        raise InputError(name, rule, error.name, got=f"{error.name!r} twice") from None
    except (ValueError, RecursionError) as error:  # no JSON, no text, too many digits, nested too deeply
        raise InputError(name, "be JSON", text, got=f"an error: {error}") from None


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        name = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise NamedTwiceError(name)
    return values


def check_order(result: Any, *names: str) -> None:
    """Refuse fields that do not ascend in this order, whether numbers or arrays; NaN is in any order."""
    for lower, upper in pairwise(names):
        low, high = (np.asarray(getattr(result, name)) for name in (lower, upper))
        above = low > high + ROUNDING
        if above.any():
            place = np.unravel_index(int(np.argmax(above)), above.shape)
            got = f"{low[place]} above {high[place]}"
            raise InputError(_entry(lower, *place), f"not be above {upper}", got=got)


def check_lengths(result: Any, size: int, *names: str) -> None:
    """Refuse arrays and tuples of other lengths; None is of any."""
    for name in names:
        if (values := getattr(result, name)) is not None:
            _check_count(name, values, size)


def _plain(path: str, annotation: Any, value: Any) -> Any:
    """Return a value of an annotation as JSON holds it."""
    if value is None:
        return None
    hint, origin, rules = _unwrap_annotation(annotation)
    if origin in (Union, UnionType):
        options = [option for option in get_args(hint) if option is not NoneType]
        if len(options) > 1:
            options = [option for option in options if isinstance(value, _origin(option) or option)]
        return _plain(path, options[0], value)
    if origin is np.ndarray or hint is float:
        return _plain_numbers(path, value, rules)
    if origin is tuple:
        parts = zip(_parts(hint, len(value)), value, strict=True)
        return [_plain(_entry(path, k), element, each) for k, (element, each) in enumerate(parts)]
    if _is_mapping(hint):
        key, inner = _mapping_hints(hint)
        entries = {label: _plain(_key(path, label), inner, each) for label, each in value.items()}
        return list(entries.values()) if key is Any else {str(name): each for name, each in entries.items()}
    if _is_record(hint):
        return _plain_record(path, hint, value)
    return _plain_scalar(path, value, lenient=hint is Any)


def _plain_record(path: str, kind: Any, value: Any) -> dict[str, Any]:
    hints = _hints(kind) | _property_hints(kind)
    plain = {name: _plain(_field(path, name), hint, getattr(value, name)) for name, hint in hints.items()}
    return {**_constants(kind), **plain}


def _plain_numbers(path: str, value: Any, rules: Sequence[Any]) -> Any:
    """Return a number or nested lists of them; NaN and infinities where they are allowed."""
    if not isinstance(value, np.ndarray) and not is_number(value):
        raise InputTypeError(path, "be a number", value)
    array = np.asarray(value, dtype=np.float64)
    if np.isfinite(array).all():
        return array.tolist()
    refused = np.isnan(array) & (Allow.NAN not in rules) | np.isinf(array) & (Allow.INFINITY not in rules)
    if refused.any():
        raise InputError(path, "be finite", array[refused][0])
    plain = array.astype(object)
    plain[np.isnan(array)] = None
    plain[array == inf], plain[array == -inf] = "inf", "-inf"
    return plain.tolist()


def _plain_scalar(path: str, value: Any, *, lenient: bool) -> Any:
    """Return text, a whole number, a boolean or a label."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, tuple):
        return [_plain_scalar(_entry(path, k), each, lenient=lenient) for k, each in enumerate(value)]
    if value is not None and not isinstance(value, str | int | float):
        if lenient:
            return str(value)
        raise InputTypeError(path, "be something that JSON holds: text, a number, a boolean or None", value)
    return value


def _decoded(path: str, annotation: Any, value: Any) -> Any:
    """Return a value of an annotation, checked."""
    hint, origin, rules = _unwrap_annotation(annotation)
    if origin in (Union, UnionType):
        made: Any = _option(path, get_args(hint), value)
    elif origin is np.ndarray:
        made = _array(path, value, rules)
    elif origin is Literal:
        made = _choice(path, value, get_args(hint))
    elif origin is tuple:
        parts = _parts(hint, len(_listed(path, value)))
        _check_count(path, value, len(parts))
        made = tuple(_decoded(_entry(path, k), element, value[k]) for k, element in enumerate(parts))
    elif _is_mapping(hint):
        made = _by_key(path, hint, value)
    elif _is_record(hint):
        made = _record(path, hint, value)
    elif hint in (Any, Hashable):
        made = _label(path, value)
    elif hint is float:
        made = _number(path, value, rules)
    else:
        made = _scalar(path, hint, value)
    for rule in rules:
        rule.check(path, made)
    return made


def _option(path: str, options: Sequence[Any], value: Any) -> Any:
    """Return a value of one of several annotations: None, a list by label, or the dataclass of its kind."""
    candidates = [option for option in options if option is not NoneType]
    if value is None and len(candidates) < len(options):
        return None
    if len(candidates) > 1:
        mappings = [option for option in candidates if _is_mapping(option)]
        candidates = (
            mappings if mappings and isinstance(value, list) else [x for x in candidates if x not in mappings]
        )
    if len(candidates) == 1:
        return _decoded(path, candidates[0], value)
    kinds = {_constants(option)["kind"]: option for option in candidates}
    kind = _object(path, value).get("kind")
    _choice(_field(path, "kind"), kind, list(kinds))
    return _decoded(path, kinds[kind], value)


def _record(path: str, kind: Any, value: Any) -> Any:
    """Return a dataclass or named tuple, every field and the rules across them checked."""
    values = dict(_object(path, value))
    for key, constant in _constants(kind).items():
        given = values.pop(key, None)
        if type(given) is not type(constant) or given != constant:
            hint = "it was saved by another version" if key == "format" else ""
            raise InputError(_field(path, key), f"be {constant!r}", given, hint=hint)
    hints, properties = _hints(kind), _property_hints(kind)
    known = {**hints, **properties}
    for key in known:
        if key not in values:
            raise InputError(_field(path, key), "be given")
    for key in values:
        if key not in known:
            raise InputError(_field(path, key), "be a known field", got=show_near(key, known))
    made = kind(**{key: _decoded(_field(path, key), hint, values[key]) for key, hint in hints.items()})
    if hasattr(made, "_check_fields"):
        with within_field(path):
            made._check_fields()
    for key, hint in properties.items():
        given = _decoded(_field(path, key), hint, values[key])
        if key in kind._computed and given != (expected := getattr(made, key)):
            raise InputError(_field(path, key), f"be {show(expected)}, as other fields say", given)
    return made


def _origin(hint: Any) -> Any:
    """Return the class of a generic type; since numpy 2.5 that of arrays is hidden by an alias."""
    origin = get_origin(hint)
    return np.ndarray if origin is NDArray else origin


@cache
def _unwrap_annotation(annotation: Any) -> tuple[Any, Any, tuple[Any, ...]]:
    """Return the type of an annotation, what that is an alias of, and the rules."""
    hint, *rules = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
    return hint, _origin(hint), tuple(rules)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    """Return the annotations of the fields of a dataclass or named tuple."""
    hints = get_type_hints(kind, include_extras=True)
    names = getattr(kind, "_fields", None) or [each.name for each in dataclasses.fields(kind)]
    return {name: hints[name] for name in names}


@cache
def _property_hints(kind: Any) -> dict[str, Any]:
    """Return the annotations of the properties that are written beside the fields."""
    names = (*getattr(kind, "_computed", ()), *getattr(kind, "_worded", ()))
    return {name: get_type_hints(getattr(kind, name).fget, include_extras=True)["return"] for name in names}


@cache
def _constants(kind: Any) -> Mapping[str, Any]:
    """Return what is written before the fields of a dataclass, the same for all of its kind."""
    kind_name = getattr(kind, "kind", None) if "kind" not in _hints(kind) else None
    return {**({} if kind_name is None else {"kind": kind_name}), **getattr(kind, "_constants", {})}


def _is_record(hint: Any) -> bool:
    return isinstance(hint, type) and (dataclasses.is_dataclass(hint) or hasattr(hint, "_fields"))


def _is_mapping(hint: Any) -> bool:
    origin = get_origin(hint)
    return isinstance(origin, type) and issubclass(origin, Mapping)


def _mapping_hints(hint: Any) -> tuple[Any, Any]:
    """Return the annotations of the keys and of the values; subclasses that have one are by label."""
    key, inner = (Any, *get_args(hint))[-2:]
    return key, inner


def _parts(hint: Any, size: int) -> Sequence[Any]:
    """Return the annotation of each entry of a tuple."""
    parts = get_args(hint)
    return parts[:1] * size if parts[-1] is ... else parts


def _by_key(path: str, hint: Any, value: Any) -> Mapping[Any, Any]:
    """Return a mapping: by name, by number, or a list of results by their labels."""
    key, inner = _mapping_hints(hint)
    if key is Any:
        results = [_decoded(_entry(path, k), inner, each) for k, each in enumerate(_listed(path, value))]
        made = {result.label: result for result in results}
        if not len(made) == len(results) > 0:
            raise InputError(path, "hold different classes")
    else:
        names = {name: name if key is str else _number_of(path, name) for name in _object(path, value)}
        made = {names[name]: _decoded(_key(path, name), inner, each) for name, each in value.items()}
    wrap: Any = get_origin(hint)
    return MappingProxyType(made) if wrap is Mapping else wrap(made)


def _number_of(path: str, name: str) -> float:
    """Return the number that the name of an entry is."""
    try:
        return float(name)
    except ValueError:
        raise InputError(path, "have numbers as names", name) from None


def _object(path: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InputTypeError(path, "be a mapping of fields", value)
    return value


def _listed(path: str, value: Any) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise InputTypeError(path, "be a list", value)
    return value


def _choice(path: str, value: Any, options: Sequence[Any]) -> Any:
    if not any(type(value) is type(option) and value == option for option in options):
        rule = f"be one of {show(*options)}" if len(options) > 1 else f"be {show(*options)}"
        raise InputError(path, rule, got=show_near(value, options))
    return value


def _scalar(path: str, hint: Any, value: Any) -> Any:
    names = {bool: "true or false", int: "a whole number", str: "a text"}
    if hint not in names:
        raise TypeError(f"{path}: the codec has no rule for {hint}")
    if type(value) is not hint:
        raise InputTypeError(path, f"be {names[hint]}", value)
    return value


def _number(path: str, value: Any, rules: Sequence[Any] = ()) -> float:
    if value is None and Allow.NAN in rules:
        return nan
    if value in ("inf", "-inf") and Allow.INFINITY in rules:
        return float(value)
    if not is_number(value):
        raise InputTypeError(path, "be a number", value)
    if not is_finite(value):
        raise InputError(path, "be finite", value)
    return float(value)


def _label(path: str, value: Any) -> Hashable:
    """Return a class label; lists are tuples of labels."""
    if isinstance(value, list | tuple):
        return tuple(_label(_entry(path, k), each) for k, each in enumerate(value))
    if value is None or isinstance(value, str | bool | int):
        return value
    if not is_number(value):
        raise InputTypeError(path, "be a label: text, a number, a boolean, None or a list of these", value)
    return _number(path, value)


def _array(path: str, value: Any, rules: Sequence[Any]) -> Any:
    """Return lists of numbers as an array, of one axis unless a shape says otherwise."""
    shape = next((rule for rule in rules if isinstance(rule, Shape)), Shape((None,), empty=True))
    axes = _axes(value) if shape.sizes is None else len(shape.sizes)
    return _nested(path, value, axes, rules) if axes else np.float64(_number(path, value, rules))


def _axes(value: Any) -> int:
    """Return how deep lists are nested."""
    if not isinstance(value, list | tuple):
        return 0
    return 1 + (_axes(value[0]) if value else 0)


def _nested(path: str, value: Any, axes: int, rules: Sequence[Any]) -> Array:
    entries = _listed(path, value)
    if axes == 1:
        gaps = Allow.NAN in rules
        if all((type(each) is float and isfinite(each)) or (gaps and each is None) for each in entries):
            return np.array(entries, float)
        return np.array([_number(_entry(path, k), each, rules) for k, each in enumerate(entries)], float)
    rows = [_nested(_entry(path, k), each, axes - 1, rules) for k, each in enumerate(entries)]
    for k, row in enumerate(rows):
        _check_count(_entry(path, k), row, len(rows[0]))
    return np.stack(rows) if rows else np.empty((0,) * axes)


def _check_count(path: str, value: Any, size: int) -> None:
    """Refuse a list of another length."""
    if len(value) != size:
        raise InputError(path, f"have {size} entries", got=str(len(value)))


@contextmanager
def within_field(path: str) -> Iterator[None]:
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


def _key(path: str, key: Any) -> str:
    return f"{path}[{key!r}]"

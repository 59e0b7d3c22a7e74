"""Batches of columns as checked predictions: the one place where values of files and frames are read.

A batch maps names to columns of Arrow or of numpy. Text that reads as numbers is numbers. The first batch
settles the kind of each column, and the labels that occur settle the classes; later batches are held to both.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, NoReturn, TypeAlias

import numpy as np

from calibrant import inputs
from calibrant.data.columns import Asked, Roles, whole
from calibrant.data.files import MOST_COLUMNS, tidy
from calibrant.inputs import Array, InputError, check_group_count, show
from calibrant.questions import notions

Batch: TypeAlias = Mapping[str, Any]
Kind: TypeAlias = Literal["booleans", "whole numbers", "numbers", "text"]
BOOLEANS = {"true": True, "false": False}
# Labels that speak for themselves with a single column of scores.
USUAL = ((0, 1), (-1, 1))


@dataclass(frozen=True, eq=False)
class Coded:
    """Values that repeat: which one each row has, and the values.

    >>> Coded(np.array([0, 1, 0]), ("a", "b")).array()
    array(['a', 'b', 'a'], dtype=object)
    """

    code: Array
    values: tuple[Any, ...]

    @classmethod
    def of(cls, values: Array) -> Coded:
        """Return the distinct numbers or booleans of an array; whole numbers are integers."""
        if pa := sys.modules.get("pyarrow"):  # which does not sort them
            encoded = pa.array(values).dictionary_encode()
            code, numbers = encoded.indices.to_numpy(), encoded.dictionary.to_pylist()
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
        if types <= {int, float} and types:
            small = types == {int} and all(-(2**63) <= value < 2**63 for value in self.values)
            return np.array(self.values, dtype=np.int64 if small else np.float64)[self.code]
        values = np.empty(len(self.values), dtype=object)
        values[:] = self.values
        return values[self.code]

    def take(self, answers: Sequence[Any]) -> Array:
        """Return what is answered for the value of each row."""
        return np.array(answers).take(self.code)

    def first(self, k: int) -> int:
        """Return the first row that has a value."""
        return int((self.code == k).argmax())

    def _used(self) -> Coded:
        """Return the same without values that no row has."""
        used = np.bincount(self.code, minlength=len(self.values)) > 0
        if used.all():
            return self
        values = tuple(value for value, there in zip(self.values, used, strict=True) if there)
        return Coded((np.cumsum(used) - 1)[self.code], values)


@dataclass(frozen=True, eq=False)
class Meaning:
    """How batches are read, the same for every one.

    Attributes
    ----------
    roles : Roles
    kinds : mapping
        The kinds of the columns of label, weight and groups.
    notion : Notion
    classes : tuple, optional
        The class of each column of a matrix; None for a single column.
    positive : int, optional
        The column of the class asked about.
    pos_label : object
        The class that a single column of scores is of; None for 1.
    given : tuple, optional
        The classes that the caller gave with a single column.
    """

    roles: Roles
    kinds: Mapping[str, Kind]
    notion: notions.Notion
    classes: tuple[Any, ...] | None
    positive: int | None
    pos_label: Any = None
    given: tuple[Any, ...] | None = None

    def pair(self, seen: Iterable[Any], *, more: bool = False) -> tuple[Any, Any]:
        """Return the classes of a single column of scores, negative and positive, by the labels seen."""
        labels = inputs.in_order(tuple(seen)) if self.given is None else self.given
        return inputs.binary_classes(labels, self.pos_label, more=more)


@dataclass(frozen=True, eq=False)
class Rows:
    """The columns of a batch, each of its kind."""

    numbers: Mapping[str, Array]
    label: Array | Coded | None
    groups: Coded | None

    @property
    def seen(self) -> tuple[Any, ...]:
        """The labels that occur."""
        if self.label is None:
            return ()
        return (Coded.of(self.label) if isinstance(self.label, np.ndarray) else self.label).values

    def __len__(self) -> int:
        return len(next(iter(self.numbers.values())))


@dataclass(frozen=True, eq=False)
class Piece:
    """The checked rows of a batch.

    Attributes
    ----------
    data : Predictions or None
        None if no row has a weight.
    rows : int
        Number of rows, those without weight too.
    seen : tuple
        Labels that occur, where these have to be known.
    groups : Coded, optional
        The group of each row with a weight.
    """

    data: inputs.Predictions | None
    rows: int
    seen: tuple[Any, ...]
    groups: Coded | None

    def by_group(self) -> Iterator[tuple[Any, inputs.Predictions]]:
        """Yield the rows of each group; without groups there is one, None."""
        data, groups = self.data, self.groups
        if data is None:
            return
        if groups is None:
            yield None, data
            return
        # One sort for all groups; rows of a group stay in order.
        small = groups.code.astype(np.min_scalar_type(len(groups.values)), copy=False)
        order = np.argsort(small, kind="stable")
        ends = np.searchsorted(small[order], np.arange(len(groups.values)), side="right")
        for value, rows in zip(groups.values, np.split(order, ends[:-1]), strict=True):
            if rows.size:
                weight = None if data.weight is None else data.weight[rows]
                yield value, replace(data, score=data.score[rows], code=data.code[rows], weight=weight)


def kinds_of(batch: Batch, roles: Sequence[Roles]) -> dict[str, Kind]:
    """Settle the kinds of the columns of labels, weights and groups by a first batch.

    `roles` are those of several models, which share these columns.
    """
    first = roles[0]
    kinds: dict[str, Kind] = {}
    for name in first.values:
        column = values_of(name, batch[name])
        kinds[name] = _kind(column)
        single = any(len(own.scores.names) == 1 for own in roles)
        if name == first.label and single and isinstance(column, Coded) and _are_booleans(column.values):
            kinds[name] = "booleans"
    if (weight := first.sample_weight) is not None:
        kinds[weight] = "whole numbers" if _all_whole(weight, batch[weight]) else "numbers"
    return kinds


def settled(asked: Asked, roles: Roles, kinds: Mapping[str, Kind], seen: Iterable[Any] | None) -> Meaning:
    """Settle what columns mean by the labels that occur; None where there are no labels."""
    names, kinds = roles.scores.names, MappingProxyType(dict(kinds))
    vector = len(names) == 1
    notion = notions.usual(asked.notion, vector=vector)
    given = None if asked.labels is None else inputs.class_labels(asked.labels)
    labels = () if seen is None else inputs.in_order(tuple(seen))
    if len(labels) > MOST_COLUMNS:
        raise InputError("y_true", f"hold at most {MOST_COLUMNS} labels", labels, got=f"{len(labels)}")
    pos_label = asked.pos_label
    if vector:
        known = given if given is not None else next((u for u in USUAL if set(labels) <= set(u)), labels)
        if asked.positive is not None:
            # Booleans are booleans; the usual numbers may lack one of the two.
            pos_label = inputs.like(asked.positive, labels)
        elif pos_label is None and given is None:
            pos_label = inputs.class_of_name(names[0], known)
        meaning = Meaning(roles, kinds, notion, None, 1, pos_label, given)
        if seen is not None:
            meaning.pair(labels, more=True)
        return meaning
    if seen is None and given is None:
        classes = roles.scores.classes
    else:
        own = None if roles.scores.array else names
        classes = inputs.classes_of_columns(own, labels, len(names), given, "scores")
    if asked.positive is not None:
        pos_label = inputs.like(asked.positive, classes or ())
    positive = None if classes is None else inputs.positive_column(classes, pos_label)
    if seen is not None:
        notion.check(vector=False, labels=classes or (), positive=positive)
    return Meaning(roles, kinds, notion, classes, positive, pos_label, given)


def typed(batch: Batch, roles: Roles, kinds: Mapping[str, Kind], first_row: int = 0) -> Rows:
    """Return the columns of a batch, each of its kind; `first_row` rows come before it."""
    with _placed(first_row):
        numbers = {name: numbers_of(name, batch[name], kinds.get(name)) for name in roles.numbers}
        label = groups = None
        if roles.label is not None:
            label = values_of(roles.label, batch[roles.label], kinds[roles.label])
        if roles.groups is not None:
            column = values_of(roles.groups, batch[roles.groups], kinds[roles.groups])
            groups = Coded.of(column) if isinstance(column, np.ndarray) else column
        return Rows(numbers, label, groups)


def checked(batch: Batch, meaning: Meaning, first_row: int = 0) -> Piece:
    """Check the rows of a batch as rows in memory are checked; `first_row` rows come before it."""
    rows = typed(batch, meaning.roles, meaning.kinds, first_row)
    return checked_rows(rows, meaning, first_row)


def checked_rows(rows: Rows, meaning: Meaning, first_row: int = 0) -> Piece:
    """Check rows whose columns have their kinds."""
    roles, groups = meaning.roles, rows.groups
    weight = None if roles.sample_weight is None else rows.numbers[roles.sample_weight]
    score = matrix_of(rows, roles, by_class=meaning.notion.several)
    with _placed(first_row, roles.scores.names):
        if groups is not None:
            check_group_count(len(groups.values))
        # Where there are no labels, scores and weights are checked as if all had one.
        truth, seen = (np.zeros(len(rows), int), ()) if rows.label is None else _codes(meaning, rows.label)
        # A batch may have no weight at all, as long as the others have some.
        weightless = weight is not None and not weight.any()
        data = inputs.predictions(truth, score, sample_weight=None if weightless else weight)
    classes = (None, 1 if meaning.pos_label is None else meaning.pos_label)
    data = replace(data, labels=meaning.classes or classes, positive=meaning.positive)
    if groups is not None and weight is not None:
        groups = Coded(groups.code[weight != 0], groups.values)
    return Piece(None if weightless else data, len(truth), seen, groups)


def matrix_of(rows: Rows, roles: Roles, *, by_class: bool = False) -> Array:
    """Return the scores as a vector, or as a matrix that lies in memory by row or by class."""
    columns = [rows.numbers[name] for name in roles.scores.names]
    if len(columns) == 1:
        return columns[0]
    if not by_class:
        return np.column_stack(columns)
    matrix = np.empty((len(columns), len(columns[0])), dtype=np.result_type(*columns))
    return np.stack(columns, out=matrix).T


def check_types(types: Mapping[str, Any], roles: Roles, kinds: Mapping[str, Kind], first: str) -> None:
    """Refuse a file whose columns have other types than those of the file that is called `first`."""
    for name, kind in kinds.items():
        own = kind_of(name, types[name])
        if own == "whole numbers" and name != roles.sample_weight:
            own = "numbers"  # only of weights it matters
        if own not in (None, kind):
            _refuse_kind(name, kind, f"the type {types[name]}", where=first)
    for name in roles.numbers:
        kind_of(name, types[name], numbers=True)


def kind_of(name: str, type: Any, *, numbers: bool = False) -> Kind | None:
    """Return the kind of a type of Arrow or numpy; None for text, whose values decide."""
    if isinstance(type, np.dtype):
        if type.kind in "USO":
            return None
        if type.kind in "iuf" or (type.kind == "b" and not numbers):
            return "booleans" if type.kind == "b" else "numbers" if type.kind == "f" else "whole numbers"
    else:
        import pyarrow as pa

        types = pa.types
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
        # A column without any value has the type null, and is told to have missing ones.
        texts = (types.is_string, types.is_large_string, types.is_string_view, types.is_null)
        if any(is_kind(type) for is_kind in texts):
            return None
    rule = "hold numbers" if numbers else "hold numbers or text"
    raise InputError(_column(name), rule, got=f"the type {tidy(type)}")


def numbers_of(name: str, column: Any, kind: Kind | None = None) -> Array:
    """Return a column that must hold numbers; one of text is read as whole numbers where these are due."""
    column = _plain(name, column)
    own = kind_of(name, _type(column), numbers=True)
    if own is not None:
        array: Array = column if isinstance(column, np.ndarray) else column.to_numpy(zero_copy_only=False)
        if kind == "whole numbers" and own != kind:
            _refuse_fraction(name, array)
        return array if kind in (None, own) else array.astype(np.int64 if own == "numbers" else np.float64)
    if not isinstance(column, np.ndarray):
        import pyarrow as pa

        for trim in (lambda texts: texts, pa.compute.utf8_trim_whitespace):
            with suppress(pa.ArrowInvalid):
                numbers = trim(column).cast(pa.int64() if kind == "whole numbers" else pa.float64())
                return numbers.to_numpy(zero_copy_only=False)
    # Python reads a little more, and says what is wrong.
    return _parsed(name, _texts(column), kind)


def values_of(name: str, column: Any, kind: Kind | None = None) -> Array | Coded:
    """Return a column of numbers, booleans or text, of a kind; without one, of that which its values have."""
    column = _plain(name, column, dictionary=True)
    if kind_of(name, _type(column)) is not None:
        column = column if isinstance(column, np.ndarray) else column.to_numpy(zero_copy_only=False)
        if column.dtype.kind == "f" and not (finite := np.isfinite(column)).all():
            if (missing := np.isnan(column)).any():
                _refuse_missing(name, missing)
            row = int(np.argmin(finite))
            _refuse_number(name, float(column[row]), row)
        own = _kind(column)
        if kind is not None and own != kind:
            _refuse_kind(name, kind, own)
        return column
    if isinstance(column, np.ndarray):
        coded = Coded.of_texts(_texts(column))
    else:
        column = column if hasattr(column, "dictionary") else column.dictionary_encode()
        # A dictionary may list what no row has.
        coded = Coded(column.indices.to_numpy(), tuple(column.dictionary.to_pylist()))._used()
    words = ["" if word is None else word.strip() for word in coded.values]
    if not all(words):
        _refuse_missing(name, coded.take([not word for word in words]))
    if kind is None:
        kind = "numbers" if all(_number(word) is not None for word in words) else "text"
    values = _as_kind(name, words, coded, kind)
    # Several texts may be one value, as 1 and 1.0 are.
    place = {value: k for k, value in enumerate(dict.fromkeys(values))}
    return Coded(coded.take([place[value] for value in values]), tuple(place))


def _as_kind(name: str, words: Sequence[str], coded: Coded, kind: Kind) -> list[Any]:
    """Return texts as values of a kind; the first row with one that is none is named."""
    if kind == "text":
        return list(words)
    values: list[Any] = []
    for k, word in enumerate(words):
        value = BOOLEANS.get(word.lower()) if kind == "booleans" else _number(word)
        if value is None:
            _refuse_kind(name, kind, show(word), row=coded.first(k))
        if kind != "booleans":
            exact = whole(word)
            value = exact if exact is not None else int(value) if value == int(value) else value
        values.append(value)
    return values


def _codes(meaning: Meaning, label: Array | Coded) -> tuple[Array, tuple[Any, ...]]:
    """Return the column of each label, or whether it is positive; and the labels where these matter."""
    classes = meaning.classes
    if isinstance(label, np.ndarray):
        integers = label.dtype.kind in "biu"
        if classes is not None and integers and classes == tuple(range(len(classes))):
            if label.min() >= 0 and label.max() < len(classes):
                return label, ()
        elif classes is None and meaning.pos_label in (None, 1) and meaning.given is None and integers:
            low, high = label.min(), label.max()
            if low >= 0 and high <= 1:
                return label, tuple({low.item(), high.item()})
    coded = Coded.of(label) if isinstance(label, np.ndarray) else label
    if classes is None:
        if meaning.given is not None:
            _check_known(coded, meaning.given)
        else:
            meaning.pair(coded.values, more=True)
        positive = 1 if meaning.pos_label is None else meaning.pos_label
        return coded.take([value == positive for value in coded.values]), coded.values
    _check_known(coded, classes)
    columns = {value: k for k, value in enumerate(classes)}
    return coded.take([columns[value] for value in coded.values]), ()


def _check_known(coded: Coded, classes: tuple[Any, ...]) -> None:
    """Refuse a label that is no class."""
    for row, k in sorted((coded.first(k), k) for k, value in enumerate(coded.values) if value not in classes):
        rule = f"hold only the labels {show(*classes)}"
        raise InputError("y_true", rule, coded.values[k], row=row)


def _plain(name: str, column: Any, *, dictionary: bool = False) -> Any:
    """Return a column in one chunk without missing values; a dictionary only of text, if it may be one."""
    if isinstance(column, np.ndarray):
        return column
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        text = kind_of(name, column.type) is None
        column = column if dictionary and text else column.cast(column.type.value_type)
    if pa.types.is_string_view(column.type):  # which few functions of Arrow take
        column = column.cast(pa.string())
    if column.null_count:
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


def _kind(column: Array | Coded) -> Kind:
    if isinstance(column, np.ndarray):
        return "booleans" if column.dtype.kind == "b" else "numbers"
    return "text" if any(isinstance(value, str) for value in column.values) else "numbers"


def _are_booleans(values: Sequence[Any]) -> bool:
    return all(isinstance(value, str) and value.lower() in BOOLEANS for value in values)


def _all_whole(name: str, column: Any) -> bool:
    """Return whether a column of weights holds whole numbers alone, by its type or by its texts."""
    kind = kind_of(name, _type(column), numbers=True)
    if kind is not None:
        return kind == "whole numbers"
    if isinstance(column, np.ndarray):
        return all(whole(text.strip()) is not None for text in _texts(column))
    import pyarrow as pa

    matches = pa.compute.match_substring_regex(column.cast(pa.string()), r"^\s*[+-]?[0-9]{1,18}\s*$")
    return bool(pa.compute.all(matches, skip_nulls=True).as_py())


def _number(text: str) -> float | None:
    """Return the finite number that a text is; None if it is none."""
    if "_" in text:  # Python takes it for a separator of digits
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _parsed(name: str, texts: Sequence[str], kind: Kind | None) -> Array:
    """Return texts as numbers."""
    missing = np.array([not text.strip() for text in texts])
    if missing.any():
        _refuse_missing(name, missing)
    values = [_number(text) for text in texts]
    if None in values:
        row = values.index(None)
        _refuse_number(name, texts[row], row)
    array = np.array(values, dtype=np.float64)
    if kind != "whole numbers":
        return array
    _refuse_fraction(name, array)
    return array.astype(np.int64)


def _column(name: str) -> str:
    return f"column {show(name)}"


def _refuse_missing(name: str, missing: Array) -> NoReturn:
    count, row = int(missing.sum()), int(missing.argmax())
    raise InputError(_column(name), "have no missing values", got=f"{count}, the first", row=row)


def _refuse_number(name: str, value: Any, row: int) -> NoReturn:
    comma = isinstance(value, str) and value.count(",") == 1 and _number(value.replace(",", ".")) is not None
    hint = "write decimals with a point" if comma else ""
    raise InputError(_column(name), "hold finite numbers", value, row=row, hint=hint)


def _refuse_kind(
    name: str, kind: Kind, got: str, *, row: int | None = None, where: str = "the first rows"
) -> NoReturn:
    raise InputError(_column(name), f"hold {kind} as in {where}", got=got, row=row)


def _refuse_fraction(name: str, array: Array) -> None:
    """Refuse numbers where whole ones are due."""
    if (fraction := array != np.rint(array)).any():
        row = int(np.argmax(fraction))
        _refuse_kind(name, "whole numbers", f"{array[row]:g}", row=row)


@contextmanager
def _placed(first_row: int, names: Sequence[str] = ()) -> Iterator[None]:
    """Count rows as the file does, and call columns of scores by their names."""
    try:
        yield
    except InputError as error:
        if error.row is not None and error.axis == "row":
            error.row += first_row
        if isinstance(error.column, int) and error.column < len(names):
            error.column = names[error.column]
        raise

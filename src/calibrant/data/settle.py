"""What the columns of files mean, settled by the first rows: kinds, classes, and the class asked about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from calibrant import inputs
from calibrant.data.columns import alike, classes_of, positive_of
from calibrant.data.files import called, naming
from calibrant.data.names import Columns, Scores, find_label, find_named, find_scores
from calibrant.data.sources import Source
from calibrant.data.table import MOST_COLUMNS, Array, listed, placed, quoted
from calibrant.data.typed import (
    BOOLEANS,
    Coded,
    Kind,
    kind_of,
    numbers_of,
    refuse_kind,
    values_of,
    whole_numbers,
)
from calibrant.inputs import MOST_GROUPS
from calibrant.questions import notions


@dataclass(frozen=True)
class Asked:
    """What a caller asks of files: columns, notion and classes; None means: find it."""

    columns: Columns = field(default_factory=Columns)
    notion: str | None = None
    labels: tuple[Any, ...] | None = None
    pos_label: Any = None


@dataclass(frozen=True)
class Roles:
    """The columns that are used, by their names."""

    label: str
    scores: Scores
    weight: str | None
    group: str | None

    @property
    def numbers(self) -> tuple[str, ...]:
        """Columns that must hold numbers."""
        return self.scores.names + (() if self.weight is None else (self.weight,))

    @property
    def values(self) -> tuple[str, ...]:
        """Columns of which the values are told apart."""
        return (self.label,) + (() if self.group is None else (self.group,))

    def by_name(self) -> dict[str, tuple[str, ...]]:
        """The columns, by what they are for."""
        one = {"label": self.label, "weight": self.weight, "group": self.group}
        return {role: (name,) for role, name in one.items() if name is not None} | {
            "scores": self.scores.names
        }


def roles_of(sources: list[Source], ask: Columns) -> Roles:
    """The columns that are meant, which must be the same in all files."""
    first, *others = sources
    found = _roles(first, ask)
    for source in others:
        if source.names == first.names:
            continue
        own = _roles(source, ask)
        for role, names in found.by_name().items():
            other = own.by_name().get(role, ())
            if set(other) != set(names):
                raise ValueError(
                    f"{called(source.path)}: has the {role} in {listed(other)}, "
                    f"and {called(first.path)} in {listed(names)}"
                )
    return found


def _roles(source: Source, ask: Columns) -> Roles:
    with naming(source.path):
        label = find_label(source.table, ask)
        assert label is not None
        weight, group = (find_named(source.table, role, getattr(ask, role)) for role in ("weight", "group"))
        taken = {name for name in (label, weight, group) if name is not None}
        return Roles(label, find_scores(source.table, ask.scores, taken), weight, group)


@dataclass(frozen=True, eq=False)
class Meaning:
    """How a piece is read, the same for every piece.

    Attributes
    ----------
    roles : Roles
    kinds : mapping
        The kinds of the columns of label, weight and group.
    notion : str
    classes : tuple, optional
        The class of each column of a matrix.
    column : int, optional
        That of the class asked about.
    pos_label : object
        The class that a single column of scores is of; None for 1.
    given : tuple, optional
        The classes that the caller gave.
    """

    roles: Roles
    kinds: Mapping[str, Kind]
    notion: str
    classes: tuple[Any, ...] | None
    column: int | None
    pos_label: Any
    given: tuple[Any, ...] | None

    def named(self, seen: list[Any]) -> tuple[Any, ...]:
        """The classes of a single column of scores, negative and positive, when these labels were seen."""
        half = np.full(len(seen), 0.5)
        return inputs.predictions(_objects(seen), half, labels=self.given, pos_label=self.pos_label).labels


@dataclass(frozen=True, eq=False)
class Piece:
    """The checked rows of a piece; `data` is None if none of them has a weight."""

    data: inputs.Predictions | None
    rows: int
    seen: tuple[Any, ...]
    group: Coded | None


def settled(pa: Any, asked: Asked, roles: Roles, table: Any) -> Meaning:
    """What columns mean, by the first piece."""
    single = len(roles.scores.names) == 1
    with _rows(0):
        label = values_of(pa, roles.label, table[roles.label])
    kinds: dict[str, Kind] = {roles.label: _kind(label)}
    words = {v.lower() for v in label.values} if kinds[roles.label] == "text" else set()  # type: ignore[union-attr]
    if single and words and words <= set(BOOLEANS):
        kinds[roles.label] = "booleans"
        label = values_of(pa, roles.label, table[roles.label], "booleans")
    if roles.group is not None:
        kinds[roles.group] = _kind(values_of(pa, roles.group, table[roles.group]))
    if roles.weight is not None:
        column = table[roles.weight]
        text = kind_of(pa, roles.weight, column.type) is None
        whole = whole_numbers(pa, column) if text else pa.types.is_integer(column.type)
        kinds[roles.weight] = "whole numbers" if whole else "numbers"
    seen = _distinct(pa, label)
    notion = notions.named(asked.notion or ("class" if single else "confidence")).name
    classes = None if asked.labels is None else _by_name(roles.scores, inputs.class_labels(asked.labels))
    if not single and classes is None:
        classes = classes_of(roles.scores, roles.label, seen)
    positive = asked.pos_label
    if asked.columns.positive is not None:
        positive = alike(asked.columns.positive, classes or seen)
    if single:
        if positive is None and classes is None:
            positive = positive_of(roles.scores, roles.label, seen)
        return Meaning(roles, MappingProxyType(kinds), notion, None, 1, positive, classes)
    width = len(roles.scores.names)
    flat = np.full((len(seen), width), 1 / width)
    found = inputs.predictions(_objects(seen), flat, labels=classes, pos_label=positive)
    if notion == "class":
        next(iter(notions.named(notion).problems(found)))  # asks for the class where it is not clear
    return Meaning(roles, MappingProxyType(kinds), notion, found.labels, found.positive, positive, classes)


def _by_name(scores: Scores, classes: tuple[Any, ...]) -> tuple[Any, ...]:
    """Classes in the order of the columns where these are named after all of them."""
    named = {str(value): value for value in classes}
    own = tuple(named[text] for text in scores.classes or () if text in named)
    return own if len(set(own)) == len(classes) else classes


def check_kinds(pa: Any, source: Source, meaning: Meaning, first: str) -> None:
    """Raise unless the types of a file are of the kinds that the first one has."""
    with naming(source.path):
        for name, kind in meaning.kinds.items():
            own = kind_of(pa, name, source.type_of(name))
            if own == "whole numbers" and name != meaning.roles.weight:
                own = "numbers"  # only of weights it matters
            if own not in (None, kind):
                refuse_kind(name, kind, f"the type {source.type_of(name)}", called(first))
        for name in meaning.roles.numbers:
            kind_of(pa, name, source.type_of(name), numbers=True)


def checked(pa: Any, meaning: Meaning, first: int, table: Any) -> Piece:
    """The rows of a piece, with every check that rows in memory pass; `first` rows come before it."""
    roles, kinds = meaning.roles, meaning.kinds
    with _rows(first):
        label = values_of(pa, roles.label, table[roles.label], kinds[roles.label])
        columns = [numbers_of(pa, name, table[name]) for name in roles.scores.names]
        group = weight = None
        if roles.weight is not None:
            weight = numbers_of(pa, roles.weight, table[roles.weight], kinds[roles.weight])
        if roles.group is not None:
            found = values_of(pa, roles.group, table[roles.group], kinds[roles.group])
            group = found if isinstance(found, Coded) else Coded.of(pa, found)
            check_groups(group.values)
    score = columns[0] if len(columns) == 1 else _matrix(columns, by_class=meaning.notion == "classwise")
    with _rows(first + 1, roles.scores.names):
        truth, seen = _truth(pa, meaning, label, score)
        # A piece may have no weight at all, as long as the others have some.
        weightless = weight is not None and not weight.any()
        data = inputs.predictions(truth, score, sample_weight=None if weightless else weight)
    classes = (None, 1 if meaning.pos_label is None else meaning.pos_label)
    data = replace(data, labels=meaning.classes or classes, positive=meaning.column)
    if group is not None and weight is not None:
        group = Coded(group.code[weight != 0], group.values)
    return Piece(None if weightless else data, len(truth), seen, group)


def check_groups(values: Any) -> None:
    """Refuse more groups than there can be."""
    if len(values) > MOST_GROUPS:
        raise ValueError(
            f"groups must have at most {MOST_GROUPS} distinct values, got {len(values)}; "
            "is it a column of ids?"
        )


def by_group(piece: Piece) -> Iterator[tuple[Any, inputs.Predictions]]:
    """The rows of each group."""
    data, group = piece.data, piece.group
    if data is None or group is None:
        return
    # One sort for all groups; rows of a group stay in order.
    small = group.code.astype(np.min_scalar_type(len(group.values)), copy=False)
    order = np.argsort(small, kind="stable")
    ends = np.searchsorted(small[order], np.arange(len(group.values)), side="right")
    for value, rows in zip(group.values, np.split(order, ends[:-1]), strict=True):
        if rows.size:
            weight = None if data.weight is None else data.weight[rows]
            yield value, replace(data, score=data.score[rows], code=data.code[rows], weight=weight)


def _truth(pa: Any, meaning: Meaning, label: Array | Coded, score: Array) -> tuple[Array, tuple[Any, ...]]:
    """What the checks are given for labels, and the labels that occur where these have to be known."""
    classes = meaning.classes
    if isinstance(label, np.ndarray):
        whole = label.dtype.kind in "biu"
        if classes is not None and whole and classes == tuple(range(len(classes))):
            return label, ()
        if classes is None and meaning.pos_label in (None, 1) and meaning.given is None and whole:
            low, high = label.min(), label.max()
            if low >= 0 and high <= 1:
                return label, tuple({low.item(), high.item()})
    coded = Coded.of(pa, label) if isinstance(label, np.ndarray) else label
    if len(coded.values) > MOST_COLUMNS:
        raise ValueError(f"column {quoted(meaning.roles.label)} holds more than {MOST_COLUMNS} labels")
    if classes is None:
        positive = 1 if meaning.pos_label is None else meaning.pos_label
        if meaning.pos_label is None or meaning.given is not None:
            usual = any(set(coded.values) <= pair for pair in ({0, 1}, {-1, 1}))
            if meaning.given is not None or not usual:
                meaning.named(list(coded.values))
        return coded.take([value == positive for value in coded.values]), coded.values
    table = {value: k for k, value in enumerate(classes)}
    codes = [table.get(value, -1) for value in coded.values]
    if min(codes) < 0 and (coded.take(codes) < 0).any():  # says which, and where
        inputs.predictions(coded.array(), score, labels=meaning.given or classes)
    return coded.take(codes), ()


def _matrix(columns: list[Array], *, by_class: bool) -> Array:
    """Columns as a matrix that lies in memory as it is looked at: by class, or by row."""
    if not by_class:
        return np.column_stack(columns)
    made = np.empty((len(columns), len(columns[0])), dtype=np.result_type(*columns))
    return np.stack(columns, out=made).T


def _distinct(pa: Any, label: Array | Coded) -> list[Any]:
    coded = Coded.of(pa, label) if isinstance(label, np.ndarray) else label
    if len(coded.values) > MOST_COLUMNS:
        raise ValueError(f"has more than {MOST_COLUMNS} different labels")
    return sorted(set(coded.values))


def _kind(found: Array | Coded) -> Kind:
    if isinstance(found, np.ndarray):
        return "booleans" if found.dtype.kind == "b" else "numbers"
    return "text" if any(isinstance(value, str) for value in found.values) else "numbers"


def _objects(values: list[Any]) -> Array:
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made


@contextmanager
def _rows(first: int, names: tuple[str, ...] = ()) -> Iterator[None]:
    """Messages with their rows as the file counts them."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise type(error)(placed(str(error), first, names)) from None

"""Batches of columns as checked predictions: the one place where values of files and frames are read.

A batch maps names to columns of Arrow or of numpy. Text that reads as numbers is numbers. The first batch
settles the kind of each column, and the labels that occur settle the classes; later batches are held to both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NoReturn, TypeAlias

import numpy as np

from calibrant import inputs
from calibrant.data.columns import ColumnRequest, ColumnRoles
from calibrant.data.files import MOST_COLUMNS
from calibrant.data.values import (
    BOOLEANS,
    INEXACT,
    Coded,
    Kind,
    check_texts,
    is_text,
    kind_of,
    kind_of_values,
    numbers_of,
    refuse_kind,
    select_values,
    values_of,
    without_value,
)
from calibrant.inputs import Array, InputError, show
from calibrant.inputs.clusters import check_group_count
from calibrant.inputs.columns import advice_on_labels, class_of_name, like
from calibrant.inputs.missing import rows_of
from calibrant.inputs.predictions import USUAL, binary_classes, explicit_column, shares, total_count
from calibrant.tasks import notions

Batch: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class ResolvedSchema:
    """How batches are read, the same for every one."""

    roles: ColumnRoles
    kinds: Mapping[str, Kind]  # the kinds of the columns of label, groups and cluster
    notion: notions.Notion
    classes: tuple[Any, ...] | None  # the class of each column of a matrix; None for a single column
    positive: int | None  # the column of the selected class
    pos_label: Any = None  # the class that a single column of scores is of; None for 1
    given: tuple[Any, ...] | None = None  # the classes that the caller gave with a single column

    def pair(self, seen: Iterable[Any], *, more: bool = False) -> tuple[Any, Any]:
        """Return the classes of a single column of scores, negative and positive, by the labels seen."""
        labels = inputs.in_order(tuple(seen)) if self.given is None else self.given
        _check_exact(labels)
        if len(labels) > MOST_COLUMNS:
            rule = f"hold at most {MOST_COLUMNS} labels"
            raise InputError("y_true", rule, got=f"{len(labels)}", hint="is it a column of ids?")
        return binary_classes(labels, self.pos_label, more=more)


@dataclass(frozen=True, eq=False)
class BatchRows:
    """The columns of a batch, each of its kind."""

    numbers: Mapping[str, Array]
    label: Array | Coded | None
    groups: Coded | None
    cluster: Array | Coded | None = None
    by: tuple[Array | Coded, ...] = ()
    kept: Array | None = None  # whether each row of the file has a label; None if all have

    @property
    def seen(self) -> tuple[Any, ...]:
        """The labels that occur."""
        if self.label is None:
            return ()
        return (Coded.of(self.label) if isinstance(self.label, np.ndarray) else self.label).values

    def __len__(self) -> int:
        return len(next(iter(self.numbers.values())))


@dataclass(frozen=True, eq=False)
class CheckedBatch:
    """The checked rows of a batch."""

    data: inputs.Predictions | None  # None if no row has a weight
    rows: int  # number of rows, those without weight too
    seen: tuple[Any, ...]  # labels that occur, where these have to be known
    groups: Coded | None  # the group of each row with a weight
    label: Array | Coded | None = None  # the labels as they were read

    def by_group(self) -> Iterator[tuple[Any, inputs.Predictions]]:
        """Yield the rows of each group; without groups there is one, None."""
        data, groups = self.data, self.groups
        if data is None:
            return
        if groups is None:
            yield None, data
            return
        for value, rows in zip(groups.values, groups.rows(), strict=True):
            if rows.size:
                yield value, inputs.select_rows(data, rows)


def kinds_of(batch: Batch, roles: Sequence[ColumnRoles]) -> dict[str, Kind]:
    """Settle the kinds of the columns of labels, groups and clusters by a first batch.

    `roles` are those of several models, which share these columns.
    """
    first = roles[0]
    kinds: dict[str, Kind] = {}
    for name in first.values:
        if name == first.cluster and name not in (first.label, first.groups, *first.by):
            # Identifiers may begin as numbers and go on as text.
            kinds[name] = (
                "text" if is_text(name, batch[name]) else kind_of_values(values_of(name, batch[name]))
            )
            continue
        optional = name in first.by and name not in (first.label, first.groups, first.cluster)
        column = values_of(name, batch[name], distinguish_texts=name == first.label, optional=optional)
        kinds[name] = kind_of_values(column)
        few = any(len(model_roles.scores.names) <= 2 for model_roles in roles)
        if name == first.label and few and isinstance(column, Coded) and _are_booleans(column.values):
            kinds[name] = "booleans"
    return kinds


def resolve_schema(
    requested: ColumnRequest, roles: ColumnRoles, kinds: Mapping[str, Kind], seen: Iterable[Any] | None
) -> ResolvedSchema:
    """Settle what columns mean by the labels that occur; None where there are no labels."""
    names, kinds = roles.scores.names, MappingProxyType(dict(kinds))
    vector = len(names) == 1
    notion = notions.default_notion(requested.notion, vector=vector, pairs=roles.are_pairs)
    labels = () if seen is None else inputs.in_order(tuple(seen))
    given = None if requested.labels is None else inputs.class_labels(requested.labels)
    # Text in a file may be a number or a boolean, and so may text that names a label of it.
    given = None if given is None else tuple(_as_in_file(label, labels) for label in given)
    pos_label = _as_in_file(requested.pos_label, labels)
    if vector:
        known = given if given is not None else next((u for u in USUAL if set(labels) <= set(u)), labels)
        if requested.positive is not None:
            # Booleans are booleans; the usual numbers may lack one of the two.
            pos_label = like(requested.positive, labels)
        elif pos_label is None and given is None and not notion.correctness_pairs:
            pos_label = class_of_name(names[0], known)
        schema = ResolvedSchema(roles, kinds, notion, None, 1, pos_label, given)
        if seen is not None:
            schema.pair(labels, more=True)
        return schema
    _check_exact(labels)
    if seen is None and given is None:
        classes = roles.scores.classes
    else:
        column_names = None if roles.scores.array else names
        classes = inputs.classes_of_columns(column_names, labels, len(names), given, "scores")
        roles = roles if given is None else roles.in_order(inputs.column_order(column_names, given))
    if requested.positive is not None:
        pos_label = like(requested.positive, classes or ())
    positive = None if classes is None else inputs.positive_column(classes, pos_label)
    if seen is not None or classes is not None:
        is_given = pos_label is not None or given is not None
        column = explicit_column(classes or (), positive, is_given=is_given)
        notion.check(vector=False, labels=classes or (), positive=column)
    return ResolvedSchema(roles, kinds, notion, classes, positive, pos_label, given)


def _as_in_file(label: Any, labels: Sequence[Any]) -> Any:
    """Return a label that is given as text as the file's labels are read."""
    return like(label, labels) if isinstance(label, str) and labels else label


def typed(
    batch: Batch,
    roles: ColumnRoles,
    kinds: Mapping[str, Kind],
    first_row: int = 0,
    kept: Array | None = None,
) -> BatchRows:
    """Return the columns of a batch, each of its kind; `first_row` rows come before it.

    The batch has those rows of the file that are `kept`.
    """
    if kept is not None and not kept.any():
        nothing = Coded(np.empty(0, dtype=np.intp), ())
        numbers = {name: np.empty(0) for name in roles.numbers}
        return BatchRows(numbers, nothing, nothing, nothing, kept=kept)
    with _placed(first_row, kept=kept):
        numbers = {name: numbers_of(name, batch[name]) for name in roles.numbers}
        label = groups = cluster = None
        if roles.label is not None:
            distinguish_texts = kinds[roles.label] == "numbers"
            label = values_of(
                roles.label, batch[roles.label], kinds[roles.label], distinguish_texts=distinguish_texts
            )
        if roles.groups is not None:
            column = values_of(roles.groups, batch[roles.groups], kinds[roles.groups])
            groups = Coded.of(column) if isinstance(column, np.ndarray) else column
        if roles.cluster is not None:
            cluster = values_of(roles.cluster, batch[roles.cluster], kinds[roles.cluster])
        by = tuple(values_of(name, batch[name], kinds[name], optional=True) for name in roles.by)
        return BatchRows(numbers, label, groups, cluster, by, kept)


def dropped_by_group(
    others: Batch, rows: int, roles: ColumnRoles, kinds: Mapping[str, Kind]
) -> dict[Any, int]:
    """Return how many of so many rows without a label are of each group; without groups there is one, None.

    A row without a group, too, is of none.
    """
    counts = np.ones(rows) if roles.counts is None else numbers_of(roles.counts, others[roles.counts])
    if roles.groups is None:
        return {None: total_count(counts)}
    known = ~without_value(others[roles.groups])
    if not known.any():
        return {}
    counts = counts[known]
    column = values_of(roles.groups, select_values(others[roles.groups], known), kinds[roles.groups])
    groups = Coded.of(column) if isinstance(column, np.ndarray) else column
    return {value: total_count(counts[at]) for value, at in zip(groups.values, groups.rows(), strict=True)}


def checked(rows: BatchRows, schema: ResolvedSchema, first_row: int = 0) -> CheckedBatch:
    """Check the rows of a batch as rows in memory are checked; `first_row` rows come before it."""
    roles, groups = schema.roles, rows.groups
    if not len(rows):
        return CheckedBatch(None, 0, (), groups, rows.label)
    weight = None if roles.weight is None else rows.numbers[roles.weight]
    score = matrix_of(rows, roles)
    with _placed(first_row, roles.scores.names, rows.kept):
        if groups is not None:
            check_group_count(len(groups.values))
        # Where there are no labels, scores and weights are checked as if all had one.
        truth, seen = (np.zeros(len(rows), int), ()) if rows.label is None else _codes(schema, rows.label)
        # A batch may have no weight at all, as long as the others have some.
        weightless = weight is not None and not weight.any()
        kind, given = "sample_weight" if roles.counts is None else "counts", None if weightless else weight
        weights: dict[str, Any] = {kind: given}
        data = inputs.predictions(truth, score, **weights)
    classes = (None, 1 if schema.pos_label is None else schema.pos_label)
    data = replace(data, labels=schema.classes or classes, positive=schema.positive)
    if groups is not None and weight is not None:
        groups = Coded(groups.code[weight != 0], groups.values)
    return CheckedBatch(None if weightless else data, len(truth), seen, groups, rows.label)


def check_label(name: str | None, known: dict[Any, str], label: Array | Coded | None) -> None:
    """Refuse a label that batches write in several ways; `known` is what they wrote so far."""
    if name is not None and isinstance(label, Coded) and label.texts:
        check_texts(name, known, label.values, label.texts)


def matrix_of(rows: BatchRows, roles: ColumnRoles) -> Array:
    """Return the scores as a vector or as a matrix."""
    columns = [rows.numbers[name] for name in roles.scores.names]
    if roles.percent:
        columns = [shares(column) for column in columns]
    scores = columns[0] if len(columns) == 1 else np.column_stack(columns)
    return inputs.probabilities(scores) if roles.from_logits else scores


@contextmanager
def suggesting_labels(roles: ColumnRoles) -> Iterator[None]:
    """Say of scores that are refused that they may be predicted labels, where their name leaves that open.

    Of labels that are missing it says how to leave them out.
    """
    try:
        yield
    except InputError as error:
        if error.argument == f"column {show(roles.label)}" and error.rule == "have no missing values":
            error.advice = "missing"
        if roles.scores.doubtful and error.argument in ("y_prob", f"column {show(*roles.scores.names)}"):
            error.advice = error.advice or "scores"
        raise


def refuse_labels(roles: ColumnRoles) -> NoReturn:
    """Refuse a column that holds nothing but 0 and 1 and by its name may hold predicted labels."""
    name = show(*roles.scores.names)
    raise InputError(f"column {name}", "hold scores", got="0 and 1 alone", advice="scores")


def check_types(types: Mapping[str, Any], roles: ColumnRoles, kinds: Mapping[str, Kind], first: str) -> None:
    """Refuse a file whose columns have other types than those of the file that is called `first`."""
    for name, kind in kinds.items():
        if kind_of(name, types[name]) not in (None, kind):
            refuse_kind(name, kind, f"the type {types[name]}", where=first)
    for name in roles.numbers:
        kind_of(name, types[name], numbers=True)


def _codes(schema: ResolvedSchema, label: Array | Coded) -> tuple[Array, tuple[Any, ...]]:
    """Return the column of each label, or whether it is positive; and the labels where these matter."""
    classes = schema.classes
    coded = Coded.of(label) if isinstance(label, np.ndarray) else label
    if classes is None:
        if schema.given is not None:
            _check_known(coded, schema.given)
        else:
            schema.pair(coded.values, more=True)
        positive = 1 if schema.pos_label is None else schema.pos_label
        return coded.take([value == positive for value in coded.values]), coded.values
    _check_known(coded, classes)
    columns = {value: k for k, value in enumerate(classes)}
    return coded.take([columns[value] for value in coded.values]), ()


def _check_known(coded: Coded, classes: tuple[Any, ...]) -> None:
    """Refuse a label that is no class."""
    known = set(classes)
    if not known.issuperset(coded.values):
        row = int(np.argmax(coded.take([value not in known for value in coded.values])))
        rule, value = f"hold only the labels {show(*classes)}", coded.values[coded.code[row]]
        hint, advice = advice_on_labels([value], "")
        raise InputError("y_true", rule, value, row=row, hint=hint, advice=advice)


def _check_exact(labels: Iterable[Any]) -> None:
    """Refuse integers that floating point cannot tell apart beside labels that are not whole."""
    numbers = [label for label in labels if isinstance(label, int | float)]
    large = [label for label in numbers if abs(label) >= INEXACT]
    if large and any(isinstance(label, float) for label in numbers):
        rule = "be below 2^53 beside labels that are not whole"
        raise InputError("y_true", rule, large[0], hint="integers above share one number there")


def _are_booleans(values: Sequence[Any]) -> bool:
    return all(isinstance(value, str) and value.lower() in BOOLEANS for value in values)


@contextmanager
def _placed(first_row: int, names: Sequence[str] = (), kept: Array | None = None) -> Iterator[None]:
    """Count rows as the file does, and call columns of scores by their names."""
    try:
        with rows_of(kept):
            yield
    except InputError as error:
        if error.row is not None and error.axis == "row":
            error.row += first_row
        if isinstance(error.column, int) and error.column < len(names):
            error.column = names[error.column]
        raise

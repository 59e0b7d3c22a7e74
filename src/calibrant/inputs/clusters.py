"""Rows that belong together: groups that are looked at apart, and clusters (patients, users, questions)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from calibrant.inputs.arguments import same_rows
from calibrant.inputs.errors import InputError, show
from calibrant.inputs.missing import rows_of
from calibrant.inputs.predictions import Array, Predictions, exact, objects, read

#: Groups at most: more are probably identifiers.
MOST_GROUPS = 10_000


def groups_of_rows(groups: Any, data: Predictions, name: str = "groups") -> tuple[list[Any], Array]:
    """Return the distinct groups in order, and the number of each row's, for rows that are not left out.

    Dates of numpy are groups as text, such as "2026-05-04".
    """
    values, n = read(name, groups)[0], data.n_passed
    if values.ndim != 1 or len(values) != n:
        got = f"shape {values.shape}" if values.ndim else show(groups)
        advice = "pass several columns by name" if name == "by" else "join several columns into one"
        hint = advice * (values.ndim == 2)
        raise InputError(name, f"hold one value for each of {n} rows", values.shape, got=got, hint=hint)
    if values.dtype.kind == "M":
        missing = np.isnat(values)
        values = np.where(missing, None, np.datetime_as_string(values, unit="auto").astype(object))  # type: ignore[call-overload]
    values = values if data.kept is None else values[data.kept]
    with rows_of(data.kept, "position"):
        values = objects(name, exact(name, values), Hashable, "hold one group per row")
    distinct = list(dict.fromkeys(values.tolist()))
    check_group_count(len(distinct), name)
    try:
        distinct.sort()
    except TypeError:
        distinct.sort(key=str)
    numbers = {value: k for k, value in enumerate(distinct)}
    return distinct, np.array([numbers[value] for value in values.tolist()])


def check_group_count(count: int, name: str = "groups") -> None:
    """Refuse more groups than there can be."""
    if count > MOST_GROUPS:
        rule = f"have at most {MOST_GROUPS} distinct values"
        raise InputError(name, rule, count, hint="is it a column of ids?")


def cells_of_rows(
    by: Any, y_true: Any, data: Predictions
) -> tuple[tuple[str, ...], list[tuple[Any, ...]], Array]:
    """Return the names of columns, the combinations of their values that occur, and that of each row.

    >>> from calibrant.inputs import predictions
    >>> data = predictions([0, 1, 1], [0.1, 0.7, 0.9])
    >>> cells_of_rows({"model": ["b", "a", "b"], "year": [1, 1, 2]}, [0, 1, 1], data)
    (('model', 'year'), [('a', 1), ('b', 1), ('b', 2)], array([1, 0, 2]))
    """
    columns = columns_of(by, y_true, "by")
    grouped = [
        groups_of_rows(values, data, "by" if len(columns) == 1 else f"by[{name!r}]")
        for name, values in columns.items()
    ]
    code = np.zeros(len(grouped[0][1]), dtype=np.int64)
    for distinct, each in grouped:
        # Numbered anew after each column, so that the numbers stay small.
        code = np.unique(code * len(distinct) + each, return_inverse=True)[1]
    first = np.unique(code, return_index=True)[1]
    check_group_count(len(first), "by")
    keys = [tuple(distinct[each[row]] for distinct, each in grouped) for row in first]
    return tuple(columns), keys, code


def columns_of(by: Any, y_true: Any, name: str) -> dict[str, Any]:
    """Return columns of groups by name: those of a frame or a mapping, or a single one."""
    if isinstance(by, Mapping) or hasattr(by, "columns"):
        columns = {key: by[key] for key in (by if isinstance(by, Mapping) else by.columns)}
    else:
        key = getattr(by, "name", None)
        columns = {key if isinstance(key, str) else "group": by}
    if not columns or not all(isinstance(key, str) for key in columns):
        raise InputError(name, "name at least one column, each by a text", got=show(*columns))
    same_rows(y_true=y_true, **columns)
    return columns


def in_clusters(data: Predictions, cluster: Any) -> Predictions:
    """Return predictions that know which rows belong together; `cluster` is that of all rows passed."""
    values = cluster_ids(cluster, data.kept, data.n_passed)
    code = _numbered(values)
    if code.max() == 0:
        got, hint = f"{show(values[0])} in every row", "leave it out to treat the rows as independent"
        raise InputError("cluster", "hold at least two clusters", 1, got=got, hint=hint)
    return replace(data, cluster=_numbered_by_content(code, data))


def cluster_ids(cluster: Any, kept: Array | None, n: int) -> Array:
    """Return the cluster id of each row that is kept, of n rows."""
    values = read("cluster", cluster)[0]
    if len(values) != n:
        got = f"{len(values)} clusters for {n} labels"
        raise InputError("cluster", "be as long as y_true", len(values), got=got)
    values = values if kept is None else values[kept]
    if values.dtype.kind not in "biu":
        with rows_of(kept):
            values = objects("cluster", exact("cluster", values), Hashable, "hold one cluster per row")
    return values


def matched_clusters(ids: Mapping[str, Array]) -> dict[str, Array]:
    """Return a number for each cluster id, the same for equal ids of several models.

    >>> matched_clusters({"a": np.array([7, 7, 9]), "b": np.array([9, 8])})
    {'a': array([0, 0, 1]), 'b': array([1, 2])}
    """
    # Ids that are numbers for one model, and text for another, are matched as text.
    numeric = {values.dtype.kind in "biuf" for values in ids.values()}
    together = [values.astype(object if len(numeric) == 1 else str) for values in ids.values()]
    numbers = _numbered(np.concatenate(together))
    ends = np.cumsum([len(values) for values in together])[:-1]
    return dict(zip(ids, np.split(numbers, ends), strict=True))


def select_rows(data: Predictions, which: Array) -> Predictions:
    """Return some rows of predictions, with their clusters numbered as if there were no others."""
    weight = None if data.weight is None else data.weight[which]
    deviation = None if data.deviation is None else data.deviation[which]
    score, code = data.score[which], data.code[which]
    selected = replace(
        data, score=score, code=code, weight=weight, cluster=None, deviation=deviation, kept=None, dropped=0
    )
    if data.cluster is None:
        return selected
    return replace(
        selected,
        cluster=_numbered_by_content(np.unique(data.cluster[which], return_inverse=True)[1], selected),
    )


def _numbered(values: Array) -> Array:
    """Return a number for each distinct value."""
    if values.dtype.kind != "O":
        return np.unique(values, return_inverse=True)[1]
    known: dict[Any, int] = {}
    numbers = (known.setdefault(value, len(known)) for value in values.tolist())
    return np.fromiter(numbers, np.intp, len(values))


def _numbered_by_content(code: Array, data: Predictions) -> Array:
    """Number clusters by the rows that they hold, so that neither names nor the order of rows matter."""
    score, true, weight = data.score, data.code, data.weight
    if score.ndim == 2:
        score, true = np.take_along_axis(score, true[:, None], axis=1)[:, 0], np.zeros(len(true))
    keys = (true, score) if weight is None or data.counts else (weight, true, score)
    order = np.lexsort(keys)
    new = np.zeros(len(order), dtype=bool)
    for key in keys:
        new[1:] |= key[order][1:] != key[order][:-1]
    rank = np.empty(len(order), dtype=np.uint64)
    rank[order] = np.cumsum(new).astype(np.uint64)
    count = int(code.max()) + 1
    # Whole numbers that wrap around: their sums are exact in any order.
    parts = [np.ones_like(rank), rank, rank * rank, rank * rank * rank]
    if data.score.ndim == 2:
        # Rows that agree about their own class may differ in what they say about the others.
        parts.insert(0, _scrambled(rank + _row_hashes(data)))
    if weight is not None and data.counts:
        parts = [addend * weight.astype(np.uint64) for addend in parts]
    sums = [np.zeros(count, dtype=np.uint64) for _ in parts]
    for total, addend in zip(sums, parts, strict=True):
        np.add.at(total, code, addend)
    place = np.empty(count, dtype=np.intp)
    place[np.lexsort(sums)] = np.arange(count)
    return place[code]


def _row_hashes(data: Predictions) -> Array:
    """Return a number for scores and class of each row; order and names of the classes do not matter."""
    total = np.zeros(len(data.score), dtype=np.uint64)
    times = data.weight.astype(np.uint64) if data.weight is not None and data.counts else np.uint64(1)
    for column in range(data.score.shape[1]):
        # Zero may have a sign.
        bits = np.abs(data.score[:, column]).astype(np.float64).view(np.uint64)
        number = _scrambled(bits) + (data.code == column).astype(np.uint64)
        total += _scrambled(number + (_scrambled(number) * times).sum(dtype=np.uint64))
    return total


def _scrambled(number: Array) -> Array:
    """Return whole numbers that look random, always the same for the same ones (Steele et al. 2014)."""
    number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(number ^ (number >> np.uint64(31)))

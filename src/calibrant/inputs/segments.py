"""Overlapping segments of rows: the values of columns, and combinations of the values of several columns."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import numpy as np

from calibrant.inputs.arguments import positive_int
from calibrant.inputs.clusters import columns_of, groups_of_rows
from calibrant.inputs.errors import InputError
from calibrant.inputs.missing import is_missing
from calibrant.inputs.predictions import Array, Predictions, read

#: Segments at most.
MOST_SEGMENTS = 5000
#: The value of rows that have none.
MISSING = "missing"
# Intervals that numbers are divided into, and different numbers up to which each is a value of its own.
INTERVALS, MOST_NUMBERS = 5, 10


class SegmentTable(NamedTuple):
    """Segments that do not overlap: combinations of the values of some columns."""

    columns: tuple[str, ...]
    values: list[tuple[str, ...]]  # of the columns in each segment
    code: Array  # segment of each row, as int16; `len(values)` for rows that are in none
    rows: Array  # number of rows of each segment


def segments_of_rows(
    segments: Any, y_true: Any, data: Predictions, depth: int, min_rows: int
) -> tuple[tuple[str, ...], list[SegmentTable], int]:
    """Return the names of columns, tables of segments, and how many combinations have too few rows.

    A combination with the same rows as one of fewer columns, or with all rows, is left out.

    >>> from calibrant.inputs import predictions
    >>> data = predictions([0, 1, 1, 0], [0.1, 0.7, 0.9, 0.2])
    >>> columns = {"a": ["x", "x", "y", "y"], "b": [1, 2, 1, None], "c": ["u", "u", "v", "v"]}
    >>> names, tables, few = segments_of_rows(columns, [0, 1, 1, 0], data, 2, 1)
    >>> [(table.columns, table.values) for table in tables[:2]]
    [(('a',), [('x',), ('y',)]), (('b',), [('1',), ('2',), ('missing',)])]
    >>> [(table.columns, table.values) for table in tables[3:]]
    [(('a', 'b'), [('x', '1'), ('y', '1')]), (('b', 'c'), [('1', 'u'), ('1', 'v')])]
    """
    columns = columns_of(segments, y_true, "segments")
    depth, min_rows = positive_int("depth", depth), positive_int("min_rows", min_rows)
    weight = data.weight if data.counts else None
    tables: dict[tuple[str, ...], SegmentTable] = {}
    known: dict[tuple[tuple[str, str], ...], int] = {(): data.n_rows}
    few = 0
    for size in range(1, min(depth, len(columns)) + 1):
        for names in combinations(columns, size):
            if size == 1:
                texts, code = _values(columns[names[0]], data, f"segments[{names[0]!r}]")
                first: list[tuple[str, ...]] = [()]
                last: list[tuple[str, ...]] = [(text,) for text in texts]
            elif names[:-1] in tables and names[-1:] in tables:
                (_, first, before, _), (_, last, code, _) = tables[names[:-1]], tables[names[-1:]]
                inside = (before < len(first)) & (code < len(last))
                code = np.where(inside, before.astype(np.int32) * len(last) + code, len(first) * len(last))
            else:
                continue
            size_all = len(first) * len(last)
            rows = np.bincount(code, weight, size_all + 1)[:size_all]
            few += int(np.count_nonzero((rows > 0) & (rows < min_rows)))
            kept, values = [], []
            for k in np.flatnonzero(rows >= min_rows).tolist():
                value = (*first[k // len(last)], *last[k % len(last)])
                key = tuple(zip(names, value, strict=True))
                if all(known.get(key[:j] + key[j + 1 :]) != rows[k] for j in range(size)):
                    kept.append(k)
                    values.append(value)
                    known[key] = int(rows[k])
            if len(known) > MOST_SEGMENTS:
                rule = f"have at most {MOST_SEGMENTS:,} segments of {min_rows} rows or more"
                hint = "lower depth, raise min_rows or leave out columns"
                raise InputError("segments", rule, got=f"more with depth={depth}", hint=hint)
            if kept:
                number = np.full(rows.size + 1, len(kept), dtype=np.int16)
                number[kept] = np.arange(len(kept))
                tables[names] = SegmentTable(names, values, number[code], rows[kept])
    if not tables:
        got = f"none in {', '.join(columns)}"
        raise InputError("segments", f"have a segment of {min_rows} rows or more, but not of all", got=got)
    return tuple(columns), list(tables.values()), few


def _values(values: Any, data: Predictions, name: str) -> tuple[list[str], Array]:
    """Return the values of a column as text, and which of them each row has; many numbers as intervals."""
    array = read(name, values)[0]
    if array.shape != (data.n_passed,):
        rule = f"hold one value for each of {data.n_passed} rows"
        raise InputError(name, rule, array.shape, got=f"shape {array.shape}")
    array = array if data.kept is None else array[data.kept]
    if array.dtype.kind == "O" and not set(map(type, array.tolist())) <= {str}:
        lost = np.fromiter(map(is_missing, array.tolist()), bool, len(array))
        kinds = set(map(type, array[~lost].tolist()))
        if kinds and all(issubclass(kind, int | float | np.number) and kind is not bool for kind in kinds):
            array = np.where(lost, np.nan, array).astype(np.float64)
    else:
        lost = np.isnan(array) if array.dtype.kind == "f" else np.zeros(len(array), dtype=bool)
    if array.dtype.kind == "M":
        lost, array = np.isnat(array), np.datetime_as_string(array, unit="auto").astype(object)
    if array.dtype.kind not in "iuf":
        array = np.where(lost, MISSING, array.astype(object)) if lost.any() else array
        distinct, code = groups_of_rows(array, replace(data, kept=None), name)
        return list(map(str, distinct)), code
    known, code = np.unique(array[~lost], return_inverse=True)
    texts = [_text(value) for value in known]
    if known.size > MOST_NUMBERS:
        cuts = _cuts(array[~lost])
        texts = [_text(cut) for cut in cuts]
        between = (f"{low} to < {high}" for low, high in pairwise(texts))
        texts = [f"< {texts[0]}", *between, f">= {texts[-1]}"] if texts else ["all"]
        code = np.searchsorted(cuts, array[~lost], side="right")
    numbers = np.full(len(array), len(texts))
    numbers[~lost] = code
    return [*texts, MISSING], numbers


def _cuts(values: Array) -> Array:
    """Return quantiles of numbers, rounded as far as they stay apart.

    >>> _cuts(np.arange(1000) / 7)
    array([ 28.6,  57.1,  85.7, 114. ])
    """
    cuts = np.unique(np.quantile(values, np.arange(1, INTERVALS) / INTERVALS, method="higher"))
    if values.dtype.kind == "f":
        rounded = (np.unique([float(f"{cut:.{digits}g}") for cut in cuts]) for digits in (3, 6, 17))
        cuts = next(each for each in rounded if len(each) == len(cuts))
    return np.asarray(cuts[cuts > values.min()])


def _text(value: Any) -> str:
    return str(value) if value.dtype.kind != "f" else np.format_float_positional(value, trim="-")

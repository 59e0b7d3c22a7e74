"""Clusters of rows: patients, users, questions asked several times."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import numpy as np

from calibrant.inputs.errors import InputError, show
from calibrant.inputs.predictions import Array, Predictions, exact, objects, read


def in_clusters(data: Predictions, cluster: Any, y_true: Any, sample_weight: Any) -> Predictions:
    """Return predictions that know which rows belong together; rows without weight are left out."""
    values, n = read("cluster", cluster)[0], len(read("y_true", y_true)[0])
    if len(values) != n:
        got = f"{len(values)} clusters for {n} labels"
        raise InputError("cluster", "be as long as y_true", len(values), got=got)
    if values.dtype.kind not in "biu":
        values = objects("cluster", exact("cluster", values), Hashable, "hold one cluster per row")
    if sample_weight is not None:
        values = values[read("sample_weight", sample_weight)[0] != 0]
    code = _numbered(values)
    if code.max() == 0:
        raise InputError("cluster", "hold at least two clusters", 1, got=f"{show(values[0])} in every row")
    return replace(data, cluster=_in_own_order(code, data.score, data.code, data.weight))


def some_rows(data: Predictions, which: Array) -> Predictions:
    """Return some rows of predictions, with the clusters that are left."""
    weight = None if data.weight is None else data.weight[which]
    cluster = None if data.cluster is None else np.unique(data.cluster[which], return_inverse=True)[1]
    return replace(data, score=data.score[which], code=data.code[which], weight=weight, cluster=cluster)


def _numbered(values: Array) -> Array:
    """Return a number for each distinct value."""
    if values.dtype.kind != "O":
        return np.unique(values, return_inverse=True)[1]
    known: dict[Any, int] = {}
    numbers = (known.setdefault(value, len(known)) for value in values.tolist())
    return np.fromiter(numbers, np.intp, len(values))


def _in_own_order(code: Array, score: Array, true: Array, weight: Array | None) -> Array:
    """Number clusters by the rows that they hold, so that neither names nor the order of rows matter.

    Parameters
    ----------
    code : array
        A number for the cluster of each row.
    score, true, weight : arrays
        Of `Predictions`.
    """
    if score.ndim == 2:
        score, true = np.take_along_axis(score, true[:, None], axis=1)[:, 0], np.zeros(len(true))
    keys = (true, score) if weight is None else (weight, true, score)
    order = np.lexsort(keys)
    new = np.zeros(len(order), dtype=bool)
    for key in keys:
        new[1:] |= key[order][1:] != key[order][:-1]
    rank = np.empty(len(order), dtype=np.uint64)
    rank[order] = np.cumsum(new).astype(np.uint64)
    count = int(code.max()) + 1
    # Whole numbers that wrap around: their sums are exact in any order.
    parts = [np.ones_like(rank), rank, rank * rank, rank * rank * rank]
    sums = [np.zeros(count, dtype=np.uint64) for _ in parts]
    for total, part in zip(sums, parts, strict=True):
        np.add.at(total, code, part)
    place = np.empty(count, dtype=np.intp)
    place[np.lexsort(sums)] = np.arange(count)
    return place[code]

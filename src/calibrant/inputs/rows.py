"""Whether arguments are about the same rows in the same order, as far as pandas knows."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np

from calibrant.inputs.errors import InputError

# What has no index, and need not be asked.
_WITHOUT_INDEX = frozenset((np.ndarray, list, tuple, type(None)))


def same_rows(**arguments: Any) -> None:
    """Refuse arguments of pandas whose indices have the same labels in another order.

    Rows are taken by position. Indices of different labels say nothing about that: a series made of an array
    counts from 0, and one that a split has made keeps the labels of its rows, in the same order.

    >>> import pandas as pd
    >>> y = pd.Series([0, 1, 1], index=["a", "b", "c"])
    >>> same_rows(y_true=y, y_prob=[0.2, 0.7, 0.9], sample_weight=None)
    >>> same_rows(y_true=y, y_prob=pd.Series([0.9, 0.7, 0.2], index=["c", "b", "a"]))
    Traceback (most recent call last):
        ...
    calibrant.InputError: y_true and y_prob must have the same index, got the same labels in
    another order, 'a' and 'c' at row 0; align one: .reindex(other.index), or pass .to_numpy() where rows
    match by position
    """
    if _WITHOUT_INDEX.issuperset(map(type, arguments.values())):
        return
    indices = {name: index for name, values in arguments.items() if (index := _index(values)) is not None}
    for (name, index), (other, its) in combinations(indices.items(), 2):
        if index is its or len(index) != len(its) or index.equals(its) or not _same_labels(index, its):
            continue
        row = next(k for k, (a, b) in enumerate(zip(index, its, strict=True)) if a != b)
        raise InputError(
            f"{name} and {other}",
            "have the same index",
            (index[row], its[row]),
            got=f"the same labels in another order, {index[row]!r} and {its[row]!r}",
            row=row,
            hint="align one: .reindex(other.index), or pass .to_numpy() where rows match by position",
        )


def _index(values: Any) -> Any:
    """Return the index of a series or frame of pandas; None of anything else."""
    index = getattr(values, "index", None)
    return index if type(index).__module__.split(".")[0] == "pandas" else None


def _same_labels(index: Any, other: Any) -> bool:
    """Tell whether two indices have the same labels, each as often."""
    one, two = np.asarray(index), np.asarray(other)
    if one.dtype.kind in "biuf" and two.dtype.kind in "biuf":
        return np.array_equal(np.sort(one), np.sort(two))
    return Counter(one.tolist()) == Counter(two.tolist())

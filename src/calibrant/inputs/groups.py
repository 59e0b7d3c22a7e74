"""Groups of rows."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from calibrant.inputs.errors import InputError
from calibrant.inputs.predictions import Array, exact, objects, read

#: Groups at most: more are probably identifiers.
MOST_GROUPS = 200


def groups_of_rows(groups: Any, y_true: Any, weight: Any) -> tuple[list[Any], Array]:
    """Return the distinct groups in order, and the number of each row's; rows without weight are left out."""
    values, n = read("groups", groups)[0], len(read("y_true", y_true)[0])
    if values.ndim != 1 or len(values) != n:
        got = f"shape {values.shape}"
        hint = "join several columns into one" * (values.ndim == 2)
        raise InputError("groups", f"hold one value for each of {n} rows", values.shape, got=got, hint=hint)
    values = objects("groups", exact("groups", values), Hashable, "hold one group per row")
    if weight is not None:
        values = values[read("sample_weight", weight)[0] != 0]
    distinct = list(dict.fromkeys(values.tolist()))
    check_group_count(len(distinct))
    try:
        distinct.sort()
    except TypeError:
        distinct.sort(key=str)
    numbers = {value: k for k, value in enumerate(distinct)}
    return distinct, np.array([numbers[value] for value in values.tolist()])


def check_group_count(count: int) -> None:
    """Refuse more groups than there can be."""
    if count > MOST_GROUPS:
        rule = f"have at most {MOST_GROUPS} distinct values"
        raise InputError("groups", rule, count, hint="is it a column of ids?")

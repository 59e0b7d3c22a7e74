"""What is given beside labels and scores: groups and names; and what identifies the data."""

from __future__ import annotations

import datetime
import hashlib
import os
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from calibrant import inputs
from calibrant.evidence import Array

# Groups at most: more are probably identifiers.
MOST_GROUPS = 200


def groups_of(groups: Any, y_true: Any, sample_weight: Any) -> tuple[list[Any], Array]:
    """The distinct groups in order, and the number of each row's; rows without weight are left out."""
    values, n = inputs.read("groups", groups)[0], len(inputs.read("y_true", y_true)[0])
    if values.ndim != 1 or len(values) != n:
        raise ValueError(f"groups must hold one value for each of {n} rows, got shape {values.shape}")
    values = inputs.objects("groups", values, Hashable, "hold one group per row")
    if sample_weight is not None:
        values = values[inputs.read("sample_weight", sample_weight)[0] != 0]
    distinct = list(dict.fromkeys(values.tolist()))
    if len(distinct) > MOST_GROUPS:
        raise ValueError(
            f"groups must have at most {MOST_GROUPS} distinct values, got {len(distinct)}; "
            "is it a column of ids?"
        )
    try:
        distinct.sort()
    except TypeError:
        distinct.sort(key=str)
    table = {value: k for k, value in enumerate(distinct)}
    return distinct, np.array([table[value] for value in values.tolist()])


def names_of(labels: tuple[Any, ...], class_names: Any, *, vector: bool) -> tuple[str, ...]:
    """What each class is called; the class against all others has a name even if they have none."""
    if isinstance(class_names, Mapping):
        unknown = [label for label in class_names if label not in labels]
        if unknown:
            raise ValueError(f"class_names must name classes of {list(labels)}, got {unknown[0]!r}")
        return tuple(str(class_names.get(label, label)) for label in labels)
    if class_names is not None:
        given = tuple(str(one) for one in class_names)
        if isinstance(class_names, str) or len(given) != len(labels):
            raise ValueError(f"class_names must name {len(labels)} classes, got {class_names!r}"[:300])
        return given
    if vector and not isinstance(labels[0], str | int | float | bool):
        return f"not {labels[1]}", str(labels[1])
    return tuple(str(label) for label in labels)


def digest(data: inputs.Predictions) -> str:
    """SHA-256 of scores, labels and weights in double precision."""
    found = hashlib.sha256(repr((data.score.shape, [str(v) for v in data.labels])).encode())
    step = max(1, (1 << 20) // max(1, data.score[:1].size))
    for part in (data.score, data.code, data.weight):
        for a in range(0, 0 if part is None else len(part), step):
            found.update(np.ascontiguousarray(part[a : a + step], dtype="<f8").tobytes())  # type: ignore[index]
    return found.hexdigest()


def today() -> str:
    """The date; that of SOURCE_DATE_EPOCH where builds must be reproducible."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    if epoch.isdigit():
        return datetime.datetime.fromtimestamp(int(epoch), datetime.UTC).date().isoformat()
    return datetime.date.today().isoformat()

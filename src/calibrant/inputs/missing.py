"""Rows without a label: refused, or left out with everything that belongs to them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.inputs.errors import InputError
from calibrant.inputs.wording import share_of

#: What is done about rows without a label.
MISSING = ("raise", "drop")


def is_missing(value: Any) -> bool:
    """Tell whether a value is None, NaN, NaT or NA."""
    number = isinstance(value, float | np.floating | Decimal)
    return bool(value != value) if number else value is None or type(value).__name__ in ("NAType", "NaTType")


def rows_with_label(labels: NDArray[Any]) -> NDArray[np.bool_] | None:
    """Return whether each row has a label; None if all have. A mask of NumPy hides labels.

    >>> rows_with_label(np.array([0.0, np.nan])), rows_with_label(np.array([0.0, 1.0]))
    (array([ True, False]), None)
    """
    known, values = ~np.ma.getmaskarray(labels), np.asarray(labels)
    if values.dtype.kind == "f":
        known &= ~np.isnan(values)
    elif values.dtype.kind == "O":
        known &= np.fromiter((not is_missing(value) for value in values), bool, len(values))
    return None if known.all() else known


def refuse_unlabelled(argument: str, rows: int) -> None:
    """Refuse rows none of which has a label."""
    raise InputError(argument, "not all be missing", None, got=f"{rows:,} rows without a label")


@contextmanager
def rows_of(kept: NDArray[np.bool_] | None, axis: str = "row") -> Iterator[None]:
    """Count the row of an error among all rows, where only those that are kept were checked."""
    try:
        yield
    except InputError as error:
        if kept is not None and error.row is not None and error.axis == axis:
            error.row = int(np.flatnonzero(kept)[error.row])
        raise


def dropped_caution(dropped: int, rows: int) -> str:
    """Return the sentence about rows that have no label; `rows` are the others.

    >>> dropped_caution(1240, 8760), dropped_caution(1, 999)
    ('1,240 of 10,000 rows (12 %) have no label and were left out.', '1 of 1,000 rows (0.1 %) has no label
    and was left out.')
    """
    total = rows + dropped
    have, were = ("has", "was") if dropped == 1 else ("have", "were")
    share = share_of(dropped, total)
    return f"{dropped:,} of {total:,} rows ({share}) {have} no label and {were} left out."

"""How curves, diagrams and histograms print: in one line for `repr`, as a table for `str`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from calibrant.inputs.wording import sample_size
from calibrant.questions import named


def subject(notion: str, label: Any) -> str:
    """Name what was asked.

    >>> subject("class", "dog"), subject("confidence", None), subject("classwise", "dog")
    ("class 'dog'", 'confidence', "class 'dog'")
    """
    if label is None:
        return notion
    return f"{'class' if named(notion).several else notion} {label!r}"


def headline(result: Any) -> str:
    """Say what was asked, of how many rows, and the error."""
    return f"{subject(result.notion, result.label)}, {sample_size(result.n, '=')}, ECE {result.error:.4f}"


def table(columns: Mapping[str, str], rows: Iterable[Sequence[float]]) -> str:
    """Write numbers in columns, each in its format; missing ones as a dash.

    >>> print(table({"score": ".2f", "rows": ".0f"}, [(0.25, 12.0), (0.75, np.nan)]))
    score  rows
     0.25    12
     0.75     -
    """
    cells = [list(columns)]
    for row in rows:
        formats = zip(row, columns.values(), strict=True)
        cells.append(["-" if np.isnan(value) else format(value, spec) for value, spec in formats])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = (zip(row, widths, strict=True) for row in cells)
    return "\n".join("  ".join(cell.rjust(width) for cell, width in line) for line in lines)

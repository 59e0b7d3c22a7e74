"""The sums of a sketch: which cells it has, and how more rows are added to them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from calibrant.inputs import InputError
from calibrant.score_data import Array, Cells, Layout, Moments, layout_for
from calibrant.tasks import Notion

#: Importance weights lie between this and its inverse: their squares must neither overflow nor vanish.
HEAVIEST = 1e100


def layout_of(notion: Notion, n_classes: int) -> Layout:
    """Return the cells of a sketch: fine ones where there are few problems."""
    return layout_for(notion.size(n_classes))


def empty_cells(notion: Notion, n_classes: int, *, weighted: bool) -> Cells:
    """Return cells that hold nothing yet, and with `weighted` are to hold squared weights too."""
    layout, batch = layout_of(notion, n_classes), (n_classes,) if notion.classwise else ()
    w, ws, wy, wsy, wss = (np.zeros((*batch, layout.size)) for _ in range(5))
    sums = Moments(w, ws, wy, wsy, wss, layout.low)
    spread = np.zeros((*batch, layout.size)) if weighted else None
    return Cells(sums, layout.low, layout.high, np.zeros(batch), notion.support(n_classes), spread)


def copy_cells(cells: Cells) -> Cells:
    """Return cells with arrays of their own."""
    w, ws, wy, wsy, wss = (np.array(part, dtype=np.float64) for part in cells.sums.parts)
    sums = Moments(w, ws, wy, wsy, wss, cells.sums.origin)
    spread = None if cells.spread is None else np.array(cells.spread)
    return replace(cells, sums=sums, squares=np.array(cells.squares, dtype=np.float64), spread=spread)


def add_in_place(total_cells: Cells, at: Any, new_cells: Cells) -> None:
    """Add to the arrays themselves: sums of many classes are large, and two copies of them too many."""
    for total, more in zip(total_cells.sums.parts, new_cells.sums.parts, strict=True):
        total[at] += more
    total_cells.squares[at] += new_cells.squares
    if total_cells.spread is not None:
        total_cells.spread[at] += new_cells.squared_weights


def check_scale(weight: Array) -> None:
    """Refuse importance weights whose squares a sum cannot hold: a sketch must keep their scale."""
    for value in (weight.max(), weight[weight > 0].min()):
        if not 1 / HEAVIEST <= value <= HEAVIEST:
            rule = f"lie between {1 / HEAVIEST:g} and {HEAVIEST:g} in a sketch"
            raise InputError("sample_weight", rule, value, got=f"{value:g}")

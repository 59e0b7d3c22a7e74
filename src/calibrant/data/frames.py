"""A sketch of a frame, made next to its data: of many rows only the sums of the cells travel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NoReturn

import numpy as np

from calibrant.data.cells_expr import unpacked
from calibrant.data.engines import mapped, opened, summed
from calibrant.data.frame_checks import explain, refuse_both
from calibrant.data.frame_columns import Columns, asked, renamed
from calibrant.data.frame_pieces import holds_rows, in_pieces
from calibrant.data.frame_rows import (
    BAD,
    MINUS,
    NONE,
    OUTCOME,
    RIGHT,
    Ask,
    joined,
    long,
    of_classes,
    of_entries,
    of_joined,
    of_vector,
    unkeyed,
    wide,
)
from calibrant.evidence import Array, Cells, Moments
from calibrant.inputs import check_group_count
from calibrant.sketch import Sketch
from calibrant.sketch.totals import Totals

__all__ = ["Columns", "from_frame"]

Sums = dict[str, Any]


def from_frame(
    frame: Any, given: Columns, *, notion: str | None, labels: Any, pos_label: Any, n_classes: int | None
) -> Sketch | dict[Any, Sketch]:
    """Sketch of a frame, or one for each group; see `Sketch.from_frame`."""
    frame = opened(frame)
    roles, ask, known, names = asked(
        frame, given, notion=notion, labels=labels, pos_label=pos_label, n_classes=n_classes
    )
    if not ask.names and holds_rows(frame):
        return _in_pieces(frame, roles, ask, known, given, names)
    rows = _plain(frame, roles)
    of_rows = _of_rows(rows, ask)
    kind = unkeyed(of_rows["key"])[2]
    total = int(of_rows["n"].sum())
    _check_rows(total)
    if (kind & BAD).any():
        explain(rows, ask, given, names, total)
    if (kind & MINUS).any():
        refuse_both(rows, given, total)
        known = (-1, 1)
    of_classes = _of_classes(rows, ask) if ask.notion == "classwise" else None
    if not ask.grouped:
        return _sketch(ask, known, of_rows, of_classes, "")
    check_group_count(len(set(of_rows["g"])))
    parts = _by_group(of_rows)
    more = {} if of_classes is None else _by_group(of_classes)
    return {
        value: _sketch(ask, known, part, more.get(value), f" in group {value!r}")
        for value, part in parts.items()
    }


def _plain(frame: Any, roles: dict[str, str]) -> Any:
    return mapped(frame, partial(renamed, roles=roles))


def _in_pieces(
    frame: Any,
    roles: dict[str, str],
    ask: Ask,
    known: tuple[Any, ...],
    given: Columns,
    names: tuple[str, ...],
) -> Sketch | dict[Any, Sketch]:
    found = in_pieces(frame, roles, ask, known)
    total = sum(found.rows.values())
    _check_rows(total)
    if found.bad:
        explain(_plain(frame, roles), ask, given, names, total)
    if found.minus:
        refuse_both(_plain(frame, roles), given, total)
    for value, n in found.rows.items():
        if value not in found.sketches:
            _refuse_weightless(n, f" in group {value!r}" * ask.grouped)
        if found.minus:
            found.sketches[value].labels = (-1, 1)
    if not ask.grouped:
        return found.sketches[None]
    return {value: found.sketches[value] for value in _ordered(found.sketches)}


def _check_rows(total: int) -> None:
    if not total:
        raise ValueError("frame must not be empty, got 0 rows")


def _refuse_weightless(rows: int, where: str) -> NoReturn:
    raise ValueError(f"weight must have a positive sum, got {rows} weights of 0{where}")


def _ordered(groups: Iterable[Any]) -> list[Any]:
    """Groups in their order, where they have one."""
    found = list(dict.fromkeys(groups))
    with suppress(TypeError):  # of values that have no order
        found.sort()
    return found


def _of_rows(rows: Any, ask: Ask) -> Sums:
    """Sums over rows by what they are compared for; one pass."""
    if ask.names is None:
        found = summed(rows, partial(wide, ask=ask), ask.keys)
        return found | {"key": of_vector(found["key"], ask)} if ask.vector else found
    entries = mapped(rows, partial(long, ask=ask))
    return summed(joined(entries, ask), partial(of_joined, ask=ask), ask.keys)


def _of_classes(rows: Any, ask: Ask) -> Sums:
    """Sums over rows for each class, whatever the label; one pass."""
    if ask.names is not None:
        return summed(rows, partial(of_entries, ask=ask), ask.keys)
    columns = ["0", "1"] if ask.vector else ask.columns
    return summed(rows, partial(of_classes, ask=ask, columns=columns), ask.keys)


def _by_group(sums: Sums) -> dict[Any, Sums]:
    """The sums of each group, in the order of the groups where they have one."""
    groups = _ordered(sums["g"])
    place = {value: k for k, value in enumerate(groups)}
    at = np.array([place[value] for value in sums["g"]], dtype=np.intp)
    order = np.argsort(at, kind="stable")
    ends = np.cumsum(np.bincount(at, minlength=len(groups)))[:-1]
    parts = {name: np.split(values[order], ends) for name, values in sums.items() if name != "g"}
    return {value: {name: part[k] for name, part in parts.items()} for k, value in enumerate(groups)}


def _sketch(ask: Ask, known: tuple[Any, ...], rows: Sums, classes: Sums | None, where: str) -> Sketch:
    weight = rows["n"].astype(np.float64) if ask.counts is None else rows["w"]
    if not weight.sum() > 0:
        _refuse_weightless(rows["n"].sum(), where)
    _, cell, kind = unkeyed(rows["key"])
    squares = (rows["ww"] if ask.counts is False else weight).sum()
    totals = Totals(
        int((rows["n"] if ask.counts is None else rows["held"]).sum()),
        float(weight.sum()),
        float(weight[(kind & RIGHT) > 0].sum()),
        max(0.0, -float(rows["log"][(kind & NONE) == 0].sum())),
        float(weight[(kind & NONE) > 0].sum()),
        float((_squares(ask, weight, rows, cell, kind) if ask.vector else rows["sq"]).sum()),
    )
    size = 2 if ask.vector else ask.size
    return Sketch._of_sums(
        ask.notion,
        labels=known,
        positive=1 if ask.vector else ask.positive,
        vector=ask.vector,
        n_classes=size,
        cells=_cells(ask, size, weight, rows, classes, float(squares)),
        totals=totals,
    )


def _squares(ask: Ask, weight: Array, rows: Sums, cell: Array, kind: Array) -> Array:
    """Squared differences of both scores of a row and what they should be, from the sums of its cell."""
    away = unpacked(cell, ask.layout)[1] - (kind & OUTCOME)
    return 2 * (rows["xx"] + 2 * away * rows["x"] + away**2 * weight)


def _cells(ask: Ask, size: int, weight: Array, rows: Sums, classes: Sums | None, squares: float) -> Cells:
    of, cell, kind = unkeyed(rows["key"])
    hit = (kind & OUTCOME).astype(np.float64)
    parts = [weight, rows["x"], weight * hit, rows["x"] * hit, rows["xx"]]
    if classes is None:
        sums = _moments(ask, np.zeros_like(cell), cell, parts, 1)[0]
        support = (1 / size, 1.0) if ask.notion == "confidence" else (0.0, 1.0)
        return Cells(sums, ask.layout.low, ask.layout.high, np.asarray(squares), support)
    _, _, wy, wsy, _ = _moments(ask, of, cell, parts, size).parts
    of, cell, _ = unkeyed(classes["key"])
    zero = np.zeros(len(cell))
    parts = [classes["n"].astype(np.float64), classes["x"], zero, zero, classes["xx"]]
    w, ws, _, _, wss = _moments(ask, of, cell, parts, size).parts
    sums = Moments(w, ws, wy, wsy, wss, ask.layout.low)
    return Cells(sums, ask.layout.low, ask.layout.high, np.full(size, squares))


def _moments(ask: Ask, of: Array, cell: Array, parts: Sequence[Array], size: int) -> Moments:
    """Sums of each class and cell, scores measured from the cell's least score."""
    layout = ask.layout
    place, origin = unpacked(cell, layout)
    w, ws, wy, wsy, wss = parts
    moved = Moments(w, ws, wy, wsy, wss, origin).about(layout.low[place])
    at = of * layout.size + place
    w, ws, wy, wsy, wss = (
        np.bincount(at, part, size * layout.size).reshape(size, -1) for part in moved.parts
    )
    return Moments(w, ws, wy, wsy, wss, layout.low)

"""What the numbers of a sketch must satisfy, whoever wrote them."""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields
from typing import Any

import numpy as np

from calibrant.evidence import Array
from calibrant.inputs import parsed_json
from calibrant.questions import Notion, named
from calibrant.questions.notions import refuse_whole
from calibrant.sketch.sums import layout_of
from calibrant.sketch.totals import Totals

# Rounding allowed within a cell, and between sums over different cells.
NEAR, FAR = 1e-9, 1e-6
# What products of tiny scores may lose.
TINY = 1e-300
# Minus the logarithm of the least score above 0, and the Brier score of a row, are below.
MOST_LOG, MOST_BRIER = 750.0, 2.1
# Tuples of labels in one another.
DEEPEST = 4


class Unfit(Exception):
    """Why a file is no sketch."""


def due(holds: bool, rule: str) -> None:
    """Refuse a file for which a rule does not hold."""
    if not holds:
        raise Unfit(rule)


def plain(label: Any) -> Any:
    """Return a label as JSON keeps it, tuples as lists; refuse any that it could not give back.

    >>> plain((np.int64(3), "b", None))
    [3, 'b', None]
    """
    if isinstance(label, tuple):
        return [plain(entry) for entry in label]
    value = label.item() if isinstance(label, np.generic) else label
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise ValueError(f"labels in a file must be integers below 2^64, got {hex(value):.80}")
    if isinstance(value, float) and not np.isfinite(value):
        raise ValueError(f"labels in a file must be finite, got {label!r}")
    if value is None or isinstance(value, str | int | float):
        return value
    raise ValueError(f"labels in a file must be text, numbers or booleans, got {type(label).__name__}")


def _label(value: Any, depth: int = 0) -> Any:
    """Return the label that `plain` wrote."""
    if isinstance(value, list):
        due(depth < DEEPEST, "its labels are nested too deep")
        return tuple(_label(entry, depth + 1) for entry in value)
    fine = value is None or isinstance(value, str | bool)
    fine = fine or (type(value) is int and -(2**63) <= value < 2**64)
    due(fine or (type(value) is float and np.isfinite(value)), "its labels must be text, numbers or booleans")
    return value


@dataclass(frozen=True)
class Header:
    """The header of a file: notion, classes, what was given, cells of equal width, sums of a cell, totals."""

    notion: str
    labels: tuple[Any, ...]
    positive: int | None
    vector: bool
    n_classes: int | None
    given: dict[str, Any]
    cells: int | None
    sums: int
    totals: Totals

    @classmethod
    def read(cls, text: bytes, version: int) -> Header:
        """Read the header of a file of some format from JSON, and check every value of it."""
        try:
            values = parsed_json(text.decode("ascii"))
        except (ValueError, RecursionError):
            raise Unfit("its header is no JSON") from None
        keys = [field.name for field in fields(cls) if version > 1 or field.name != "sums"]
        due(isinstance(values, dict) and set(values) == set(keys), f"its header must hold {', '.join(keys)}")
        due(isinstance(values["labels"], list), "its labels must be a list")
        given = values["given"]
        due(
            isinstance(given, dict) and set(given) == {"labels", "pos_label"},
            "its header lacks what was given",
        )
        due(given["labels"] is None or isinstance(given["labels"], list), "given labels must be a list")
        values["given"] = {key: _label(value) for key, value in given.items()}
        values["labels"], values["totals"] = _label(values["labels"]), _totals(values["totals"])
        header = cls(**({"sums": 5} | values))
        header._check()
        return header

    def _check(self) -> None:
        """Refuse values that do not go together."""
        classes, positive = self.n_classes, self.positive
        notion = self._notion()
        due(type(self.vector) is bool, "its header must say whether scores are a vector")
        due(classes is None or (type(classes) is int and classes >= 2), "it must have 2 classes at least")
        due(type(self.sums) is int and self.sums in (5, 6), "its cells must have 5 or 6 sums")
        if self.cells is None:
            due(self.totals == Totals.zero() and not self.labels, "it must hold cells where it holds rows")
            due(positive is None and not self.vector, "it cannot know its classes without rows")
            return
        if classes is None or len(self.labels) != classes or len(set(self.labels)) != classes:
            raise Unfit("its labels must be as many as its classes, and distinct")
        due(
            type(self.cells) is int and self.cells == layout_of(notion, classes).uniform,
            "its cells differ",
        )
        due(positive is None or (type(positive) is int and 0 <= positive < classes), "it asks about no class")
        due(not notion.one_class or positive is not None, "it must say which class it asks about")
        due(not self.vector or (classes == 2 and positive == 1), "a vector of scores is about two classes")
        _check_totals(self.totals)

    def _notion(self) -> Notion:
        """Return the notion; refuse a name that none has, and what no sums tell."""
        try:
            refuse_whole(self.notion)
            return named(self.notion)
        except ValueError as error:
            raise Unfit(f"its {error}") from None


def _totals(values: Any) -> Totals:
    """Read the totals, each a finite number; the renormalised rows are left out where there are none."""
    values = {"renormalised": 0} | values if isinstance(values, dict) else values
    names = [field.name for field in fields(Totals)]
    due(isinstance(values, dict) and set(values) == set(names), f"its totals must be {', '.join(names)}")
    for name in ("rows", "renormalised"):
        due(type(values[name]) is int and 0 <= values[name] < 2**63, f"its {name} must be counted")
    for name in names[1:-1]:
        due(type(values[name]) is float and np.isfinite(values[name]), f"its total {name} must be finite")
    return Totals(**values)


def _check_totals(totals: Totals) -> None:
    """Refuse totals that no rows have."""
    rows, weight, right, log_loss, impossible, brier, renormalised = astuple(totals)
    due(rows >= 1 and weight > 0, "it must hold a row at least")
    due(renormalised <= rows, "its renormalised rows must be at most its rows")
    most = {"right": (right, 1 + FAR), "impossible": (impossible, 1 + FAR)}
    most |= {"log_loss": (log_loss, MOST_LOG), "brier": (brier, MOST_BRIER)}
    for name, (value, times) in most.items():
        due(
            0 <= value <= times * weight,
            f"its total {name} must lie between 0 and {times:g} times the weight",
        )


def check_sums(sums: Array, width: Array, squares: float, totals: Totals) -> None:
    """Refuse sums that no rows in cells of these widths have."""
    due(bool(np.isfinite(sums).all()) and np.isfinite(squares), "its sums must be finite")
    w, ws, wy, wsy, wss = sums
    due(bool((sums[1:] >= 0).all() and (w > 0).all()), "its sums must not be negative")
    due(bool((wy <= w * (1 + NEAR)).all()), "a cell must not hold more outcomes than rows")
    due(bool((ws <= w * width * (1 + NEAR)).all()), "its scores must lie in their cells")
    room, rest = w * width * NEAR + TINY, np.maximum(w - wy, 0)
    apart = (wsy <= wy * width + room) & (ws - wsy <= rest * width + room) & (wsy <= ws * (1 + NEAR) + TINY)
    due(bool(apart.all()), "its scores must lie in their cells with and without the outcome")
    mean, square = ws / w, wss / w
    spread = (mean * mean <= square * (1 + NEAR) + TINY / w) & (wss <= ws * width * (1 + NEAR) + TINY)
    due(bool(spread.all()), "its squared scores must fit its scores")
    total = float(w.sum())
    due(abs(total - totals.weight) <= FAR * totals.weight, "its cells must hold the weight of all rows")
    fewest = total * total / ((totals.rows + totals.weight) * (1 + FAR))
    due(fewest <= squares <= total * total * (1 + FAR), "its squared weights must fit its weights")


def check_squares(sums: Array, squares: float, header: Header, version: int) -> None:
    """Refuse squared weights of cells that do not add up, or that more rows would have than there are."""
    total, w = float(sums[0].sum()), sums[0]
    if header.sums == 5:
        # Counts, whose rows have a weight of one; format 1 had no more to say of other weights either.
        due(version == 1 or abs(squares - total) <= FAR * total, "its squared weights must fit its weights")
        return
    spread = sums[5]
    due(bool(np.isfinite(spread).all() and (spread > 0).all()), "its squared weights must be above 0")
    due(abs(float(spread.sum()) - squares) <= FAR * squares, "its squared weights must add up")
    with np.errstate(over="ignore"):
        rows = float((w / spread * w).sum())
    due(
        rows <= (header.totals.rows + header.totals.weight) * (1 + FAR),
        "its squared weights must fit its weights in every cell",
    )


def check_outcomes(header: Header, outcomes: float) -> None:
    """Refuse outcomes of all problems together that are not those that the totals know."""
    notion = named(header.notion)
    known = header.totals.weight if notion.several else header.totals.right
    if notion.several or notion.top == 1:
        near = abs(outcomes - known) <= FAR * header.totals.weight
        due(near, "its outcomes must be as many as its totals say")

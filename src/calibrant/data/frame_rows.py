"""What is summed of each row of a frame: its score and outcome, its loss, and whether it can be used.

A frame comes here with columns of known names: the label `y`, scores `0`, `1`, ... (or, in long form, the
row `r`, the class `c` and the score `s`), the weight `w` and the group `g`. Steps are columns of their
own, because some engines take nothing but plain sums and names in a group-by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from calibrant.data.cells_expr import choose, col, lit, located, logarithm, number
from calibrant.data.engines import stacked
from calibrant.evidence import Array, Layout
from calibrant.sketch.sums import HEAVIEST, layout_of

# A key holds the class, the cell and what is known of the row: 2^14 cells of any layout, moved above 0.
CELLS, MOVED, KINDS = 1 << 14, 512, 32
OUTCOME, MINUS, BAD, RIGHT, NONE = 1, 2, 4, 8, 16
# What is known of a row of a single score: its label, whether it is tied or impossible, and on which side.
HIT, NEGATIVE, USELESS, SPECIAL, UPPER = 1, 2, 3, 4, 8
# The labels of a single score: 0 or -1, and 1.
USUAL = (0, 1, -1)


@dataclass(frozen=True)
class Ask:
    """What is asked of a frame whose columns have their plain names.

    Attributes
    ----------
    notion : str
        "class", "classwise" or "confidence".
    values : tuple, optional
        The label of each column of scores, in the terms of the label column. For a single score, the
        labels it may have; None allows any.
    names : tuple, optional
        The same in the terms of the class column; long form only.
    size : int
        Number of columns of scores; 1 for a single score.
    positive : object
        Column of the positive class; for a single score its label.
    tolerance : float
        How far a row may sum from 1.
    counts : bool, optional
        Whether weights are counts; None without weights.
    grouped : bool
        Whether there are groups.
    """

    notion: str
    values: tuple[Any, ...] | None
    names: tuple[Any, ...] | None
    size: int
    positive: Any
    tolerance: float
    counts: bool | None
    grouped: bool

    @property
    def vector(self) -> bool:
        """Whether there is a single score a row."""
        return self.size == 1

    @property
    def layout(self) -> Layout:
        """The cells that a sketch of this has."""
        return layout_of(self.notion, self.size)

    @property
    def columns(self) -> list[str]:
        """Names of the columns of scores."""
        return [str(k) for k in range(self.size)]

    @property
    def beside(self) -> list[str]:
        """Names of the columns of weights and groups."""
        return ["w"] * (self.counts is not None) + ["g"] * self.grouped

    @property
    def keys(self) -> list[str]:
        """Names of the columns that are no sums."""
        return ["key"] + ["g"] * self.grouped


def codes(frame: Any, name: str, values: Sequence[Any]) -> Any:
    """The place of each value of a column among known ones, -1 for others, as an expression."""
    column, dtype = col(name), frame.collect_schema()[name]
    text = dtype == nw.String
    known = {value: float(k) for k, value in enumerate(values) if isinstance(value, str) == text}
    if not known:
        return column.is_null().cast(nw.Float64) * 0.0 - 1.0
    if dtype.is_integer() and tuple(known) == USUAL:
        known_one = ((column >= -1) & (column <= 1)).fill_null(False)
        return choose(known_one, column.cast(nw.Float64) + number(column < 0) * 3.0, lit(-1.0))
    if dtype.is_integer() and list(known) == list(range(len(values))):
        known_one = ((column >= 0) & (column < len(values))).fill_null(False)
        return choose(known_one, column, lit(-1)).cast(nw.Float64)
    if frame.implementation.is_polars() or frame.implementation.is_pandas_like():
        return column.replace_strict(list(known), list(known.values()), default=-1.0, return_dtype=nw.Float64)
    found = [nw.when(column == value).then(lit(code)) for value, code in known.items()]
    return nw.coalesce(*found, lit(-1.0))


def wide(frame: Any, ask: Ask) -> Any:
    """The sums of each cell of a frame with a column a class, or a single score."""
    frame = frame.with_columns(yc=label_code(frame, ask))
    return _grouped(_of_vector(frame, ask) if ask.vector else _of_matrix(frame, ask), ask)


def long(frame: Any, ask: Ask) -> Any:
    """What is known of each entry of a frame in long form, to be added up for each row."""
    frame = frame.with_columns(yc=codes(frame, "y", ask.values or ()), cc=codes(frame, "c", ask.names or ()))
    fine = in_unit(col("s")) & (col("cc") >= 0.0)
    frame = frame.with_columns(off=1.0 - number(fine), s=choose(fine, col("s"), lit(0.0)))
    frame = frame.with_columns(owns=number(col("cc") == col("yc")))
    return frame.select(
        "r", "yc", "off", "owns", "s", *ask.beside,
        own=col("s") * col("owns"),
        pos=col("s") * number(col("cc") == lit(float(-1 if ask.positive is None else ask.positive))),
        before=choose(col("cc") < col("yc"), col("s"), lit(-1.0)),
        sq=(col("s") - col("owns")) * (col("s") - col("owns")),
    )  # fmt: skip


def joined(frame: Any, ask: Ask) -> Any:
    """One row for the entries of each row in long form."""
    sums = [col(name).sum() for name in ("off", "owns", "own", "pos", "sq")]
    most = [col("before").max(), col("s").max().alias("top"), col("s").sum().alias("total")]
    return frame.group_by("r", "yc", *ask.beside).agg(nw.len().alias("entries"), *sums, *most)


def of_joined(frame: Any, ask: Ask) -> Any:
    """The sums of each cell of rows that were joined."""
    whole = (col("entries") == ask.size) & (col("owns") == 1.0) & (col("off") == 0.0)
    fine = whole & _close(col("total"), ask) & (col("yc") >= 0.0)
    frame = _guarded(frame, fine, ask, own=0.5, top=1.0, pos=0.5, before=-1.0, sq=0.0, yc=0.0)
    right = (col("own") == col("top")) & (col("before") < col("top"))
    return _grouped(_scored(frame.with_columns(right=number(right)), ask), ask)


def of_classes(frame: Any, ask: Ask, columns: Sequence[str]) -> Any:
    """The sums of each cell of some classes, whatever the labels are."""
    if ask.vector:
        frame = frame.with_columns(**{"0": 1.0 - col("0"), "1": col("0")})
    return _of_stack(stacked(frame, columns, ask.beside), ask)


def of_entries(frame: Any, ask: Ask) -> Any:
    """The same for a frame in long form."""
    return _of_stack(frame.select("s", *ask.beside, c=codes(frame, "c", ask.names or ())), ask)


def unkeyed(key: Array) -> tuple[Array, Array, Array]:
    """Class, cell and kind of a key."""
    key = key.astype(np.int64)
    return key // (CELLS * KINDS), key // KINDS % CELLS - MOVED, key % KINDS


def _of_stack(frame: Any, ask: Ask) -> Any:
    frame = located(frame, ask.layout)
    frame = frame.with_columns(key=_key(col("c").cast(nw.Float64)), xx=col("x") * col("x"))
    frame = _weighed(frame, ask, ["x", "xx"])
    total = nw.len() if ask.counts is None else col("w").sum()
    return frame.group_by(*ask.keys).agg(total.alias("n"), col("x").sum(), col("xx").sum())


def _key(of: Any, kind: Any = 0.0) -> Any:
    # Whole numbers are the keys that engines group by fastest.
    return ((of * float(CELLS) + (col("cell") + MOVED)) * float(KINDS) + kind).cast(nw.Int64)


def label_code(frame: Any, ask: Ask) -> Any:
    """The class of each label, -1 for one that cannot be used, as an expression."""
    if ask.values is not None:
        return codes(frame, "y", ask.values)
    there = ~col("y").is_null()
    if frame.collect_schema()["y"].is_float():
        there = there & ~col("y").is_nan().fill_null(True)
    same = codes(frame, "y", (ask.positive,)) == 0.0
    return number(same) + number(there) - 1.0


def positive_code(ask: Ask) -> int:
    """What `label_code` makes of the positive label of a single score."""
    return 1 if ask.values is None else ask.values.index(ask.positive)


def _of_vector(frame: Any, ask: Ask) -> Any:
    """A single score: what `of_vector` needs of a row, and no more."""
    fine = in_unit(col("0")) & (col("yc") >= 0.0)
    code = col("yc") if ask.values == USUAL else number(col("yc") == float(positive_code(ask)))
    frame = frame.with_columns(p=col("0"), code=code)
    frame = _guarded(frame, fine, ask, p=0.5, code=float(USELESS))
    p, own = col("p"), (1.0 - number(col("code") == float(HIT)) - col("p")).abs()
    if ask.notion == "class":
        frame = frame.with_columns(own=own, s=p)
    elif ask.notion == "classwise":
        frame = frame.with_columns(own=own).with_columns(s=col("own"))
    else:
        frame = frame.with_columns(own=own, s=choose(p > 0.5, p, 1.0 - p))
    kind = col("code") + number((p == 0.5) | (col("own") <= 0.0)) * float(SPECIAL)
    if ask.notion == "confidence":
        kind = kind + number(p > 0.5) * float(UPPER)
    return frame.with_columns(kind=kind)


def of_vector(key: Array, ask: Ask) -> Array:
    """The keys of a single score with the bits that all keys have."""
    _, cell, kind = unkeyed(key)
    code, special, half = kind % 4, (kind & SPECIAL) > 0, ask.layout.uniform // 2
    hit = code == HIT
    tie = special & (cell == half)
    upper = (kind & UPPER) > 0
    if ask.notion == "class":
        upper = (cell >= half) & ~tie
    elif ask.notion == "classwise":  # the cell is that of the label's score
        upper = np.where(hit, (cell >= half) & ~tie, cell < half)
    right = upper == hit
    out = {"class": hit, "confidence": right, "classwise": np.ones_like(hit)}[ask.notion]
    bits = {OUTCOME: out, MINUS: code == NEGATIVE, BAD: code == USELESS, RIGHT: right, NONE: special & ~tie}
    of = hit if ask.notion == "classwise" else np.zeros_like(hit)
    found = (of * CELLS + cell + MOVED) * KINDS
    return found + sum(bit * held for bit, held in bits.items())


def _of_matrix(frame: Any, ask: Ask) -> Any:
    frame = _compared(frame, ask)
    frame = _guarded(frame, col("fine"), ask, top=1.0, yc=0.0, pos=0.5, own=0.5, sq=0.0)
    return _scored(frame.with_columns(right=number(col("best") == col("yc"))), ask)


def _compared(frame: Any, ask: Ask) -> Any:
    """Largest score, that of the label, the class of the largest, and squares, by comparing columns."""
    scores = [col(name) for name in ask.columns]
    frame = frame.with_columns(
        top=nw.max_horizontal(*scores), low=nw.min_horizontal(*scores), total=added(scores)
    )
    fine = (col("low") >= 0.0) & (col("top") <= 1.0) & _close(col("total"), ask) & (col("yc") >= 0.0)
    own = [nw.when(col("yc") == float(k)).then(score) for k, score in enumerate(scores)]
    best = [nw.when(score == col("top")).then(lit(float(k))) for k, score in enumerate(scores)]
    squares = [(score - number(col("yc") == float(k))) for k, score in enumerate(scores)]
    return frame.select(
        "top", "yc", *ask.beside,
        fine=fine.fill_null(False),
        pos=scores[ask.positive or 0],
        own=nw.coalesce(*own, lit(0.5)),
        best=nw.coalesce(*best, lit(-1.0)),
        sq=added([square * square for square in squares]),
    )  # fmt: skip


def _scored(frame: Any, ask: Ask) -> Any:
    """The score and the outcome that a notion compares, of a row of many scores."""
    s, out, of = {
        "class": (col("pos"), number(col("yc") == float(ask.positive or 0)), lit(0.0)),
        "confidence": (col("top"), col("right"), lit(0.0)),
        "classwise": (col("own"), lit(1.0), col("yc")),
    }[ask.notion]
    return frame.with_columns(s=s, out=out, of=of)


def _grouped(frame: Any, ask: Ask) -> Any:
    """Keys and sums of rows with their scores."""
    frame = located(logarithm(frame), ask.layout)
    if ask.vector:
        key = ((col("cell") + MOVED) * float(KINDS) + col("kind")).cast(nw.Int64)
    else:
        frame = frame.with_columns(bad=1.0 - number(col("fine")), none=number(col("own") <= 0.0))
        bits = {"out": OUTCOME, "bad": BAD, "right": RIGHT, "none": NONE}
        key = _key(col("of"), added([col(name) * float(bit) for name, bit in bits.items()]))
    frame = frame.with_columns(key=key, xx=col("x") * col("x"))
    # The squares of a single score are told by its cells.
    sums = ["x", "xx", "log"] + ["sq"] * (not ask.vector)
    frame = _weighed(frame, ask, sums)
    found = [nw.len().alias("n"), *(col(name).sum() for name in sums)]
    if ask.counts is not None:
        frame = frame.with_columns(held=number(col("w") > 0.0), ww=col("w") * col("w"))
        found += [col(name).sum() for name in ("held", "w", "ww")]
    return frame.group_by(*ask.keys).agg(*found)


def _weighed(frame: Any, ask: Ask, names: Sequence[str]) -> Any:
    if ask.counts is None:
        return frame
    return frame.with_columns(**{name: col(name) * col("w") for name in names})


def _guarded(frame: Any, fine: Any, ask: Ask, **instead: float) -> Any:
    """The frame with rows that cannot be used marked, and harmless numbers in them."""
    if ask.counts is not None:
        fine = fine & weight_is_fine(col("w"), ask.counts)
        instead["w"] = 0.0
    if ask.grouped:
        fine = fine & ~missing(frame, "g")
    frame = frame.with_columns(fine=fine.fill_null(False))
    return frame.with_columns(
        **{name: choose(col("fine"), col(name), lit(value)) for name, value in instead.items()},
    )


def missing(frame: Any, name: str) -> Any:
    """Whether a value is missing, as an expression."""
    gone = col(name).is_null()
    if frame.collect_schema()[name].is_float():
        return gone | col(name).is_nan().fill_null(True)
    return gone


def weight_is_fine(weight: Any, counts: bool) -> Any:
    """Whether a weight can be used, as an expression; infinities and NaN lie above every bound."""
    if counts:
        return (weight >= 0.0) & (weight < 2.0**63)
    return (weight == 0.0) | ((weight >= 1 / HEAVIEST) & (weight <= HEAVIEST))


def in_unit(score: Any) -> Any:
    """Whether a score lies in [0, 1]; NaN lies above every bound, or compares as false."""
    return ((score >= 0.0) & (score <= 1.0)).fill_null(False)


def _close(total: Any, ask: Ask) -> Any:
    return ((total - 1.0).abs() <= ask.tolerance + 1e-12).fill_null(False)


def added(terms: Sequence[Any]) -> Any:
    """A sum as a shallow tree: a thousand terms in a row are too deep for most engines."""
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    return added(terms[:half]) + added(terms[half:])

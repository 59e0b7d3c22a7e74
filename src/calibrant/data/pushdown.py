"""Frames that their engine sums up: rows of Spark and Ibis, and entries of a frame in long form.

The engine finds the cell of every score and adds up what falls into it, and only these sums travel. Columns
have plain names here: the label `y`, scores `0`, `1`, ... (or, in long form, the row `r`, the class `c` and
the score `s`), the weight `w` and the group `g`. Steps are columns of their own, because some engines take
nothing but plain sums and names in a group-by.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import narwhals.stable.v2 as nw
import numpy as np

from calibrant.data.pushdown_cells import choose, col, is_spark, lit, located, logarithm, number, unpacked
from calibrant.evidence import Array, Cells, Layout, Moments
from calibrant.inputs import InputError, check_counts, show
from calibrant.questions.notions import Notion
from calibrant.sketch.sketch import Sketch
from calibrant.sketch.sums import HEAVIEST, layout_of
from calibrant.sketch.totals import Totals

Query: TypeAlias = Callable[[Any], Any]
Sums: TypeAlias = dict[str, Any]

# Numbers of a frame in memory looked at together: the temporaries stay small.
BLOCK = 1 << 20
# Tables of sums of a Dask dataframe that are joined at a time.
JOINED = 8
# A key holds the class, the cell and what is known of the row: 2^14 cells of any layout, moved above 0.
CELLS, MOVED, KINDS = 1 << 14, 512, 16
# Bits of what is known of a row: the outcome; that it cannot be used; that its label has the largest score;
# that its label has a score of 0.
OUTCOME, BAD, RIGHT, NONE = 1, 2, 4, 8


@dataclass(frozen=True)
class Request:
    """What is asked of a frame.

    Attributes
    ----------
    notion : Notion
        What is compared.
    roles : dict
        The columns of the frame that are used, by their plain names.
    labels : tuple
        The class of each column of scores; for a single score the negative and the positive one.
    codes : dict
        The column of each label; for a single score 1 for the positive label and 0 for the others.
    entries : dict, optional
        The column of each value of the class column; long form only.
    positive : int, optional
        Column of the positive class.
    tolerance : float
        How far a row may sum from 1.
    counts : bool, optional
        Whether weights are counts; None without weights.
    rows : int
        Number of rows, or of entries in long form.
    percent : bool
        Whether scores are percentages, from 0 to 100.
    """

    notion: Notion
    roles: dict[str, str]
    labels: tuple[Any, ...]
    codes: dict[Any, int]
    entries: dict[Any, int] | None
    positive: int | None
    tolerance: float
    counts: bool | None
    rows: int
    percent: bool = False

    @property
    def scores(self) -> list[str]:
        """Plain names of the columns of scores."""
        return [name for name in self.roles if is_score(name)]

    @property
    def vector(self) -> bool:
        """Whether there is a single score a row."""
        return self.entries is None and len(self.scores) == 1

    @property
    def size(self) -> int:
        """Number of classes."""
        return len(self.labels)

    @property
    def layout(self) -> Layout:
        """The cells of the sketch."""
        return layout_of(self.notion, self.size)

    @property
    def beside(self) -> list[str]:
        """Plain names of the columns of weights and groups."""
        return [name for name in ("w", "g") if name in self.roles]

    @property
    def keys(self) -> list[str]:
        """Names of the columns that are no sums."""
        return ["key"] + ["g"] * ("g" in self.roles)

    def called(self, name: str) -> str:
        """Return what messages call a column, by its plain name."""
        return f"column {show(self.roles[name])}"


class Group(NamedTuple):
    """Number of rows of a group, those without weight too, and their sums."""

    rows: int
    sketch: Sketch


def of_engine(frame: Any, request: Request) -> dict[Any, Group]:
    """Return the sums of each group, added up by the engine; without groups that of None."""
    rows = plain(frame, request.roles, percent=request.percent)
    of_rows = _of_rows(rows, request)
    if (_unkeyed(of_rows["key"])[2] & BAD).any():
        raise InputError("frame", "hold the same rows in every pass", got="others")
    of_classes = _of_classes(rows, request) if request.notion.several else None
    by_group = _by_group(of_rows)
    more = {} if of_classes is None else _by_group(of_classes)
    return {value: _group(request, sums, more.get(value)) for value, sums in by_group.items()}


def check_notion(notion: Notion) -> None:
    """Refuse a notion that no query here computes."""
    if notion.top > 1:
        raise InputError(
            "notion",
            "be about classes or the largest score where an engine adds up: Spark, Ibis, long form",
            notion.name,
            hint='convert to pandas or Arrow with a column for each class, or ask for notion="confidence"',
        )


# How an engine runs a query


def is_score(name: str) -> bool:
    """Whether a plain name is that of a column of scores."""
    return name == "s" or name.isdecimal()


def mapped(frame: Any, function: Query) -> Any:
    """Return a frame that a function makes of another one, row by row."""
    if not frame.implementation.is_dask():
        return function(frame)
    native, of_partition = frame.to_native(), partial(_native, function)
    return nw.from_native(native.map_partitions(of_partition, meta=of_partition(native._meta)))


def _native(function: Query, partition: Any) -> Any:
    return nw.to_native(function(nw.from_native(partition)))


def in_memory(frame: Any) -> bool:
    """Whether the rows lie in this process, to be cut into pieces; polars cuts for itself."""
    return isinstance(frame, nw.DataFrame)


def summed(frame: Any, query: Query, keys: Sequence[str]) -> Sums:
    """Return what a query finds that groups rows by the keys and adds up.

    Parameters
    ----------
    frame : narwhals frame
        The rows.
    query : callable
        Makes a frame of the keys and sums out of a frame of rows, or of a piece of it.
    keys : sequence of str
        The columns that are no sums.

    Returns
    -------
    dict
        An array for each column, a list for the column `g`. A key may occur several times.
    """
    if in_memory(frame):
        step = max(1, BLOCK // len(frame.columns))
        pieces = [query(frame[a : a + step]) for a in range(0, max(1, len(frame)), step)]
        return fetched(nw.concat(pieces) if len(pieces) > 1 else pieces[0])
    if frame.implementation.is_dask():
        # Dask's own expressions cannot hold a number without moving rows, so pandas does each partition.
        native = mapped(frame, query).to_native()
        total = native.groupby(list(keys), sort=False, dropna=False).sum(split_every=JOINED)
        return fetched(nw.from_native(total.reset_index()))
    return fetched(query(frame))


def fetched(frame: Any) -> Sums:
    """Return all of a small frame: an array for each column, a list for the column `g`."""
    if not in_memory(frame):
        options: dict[str, Any] = {"engine": "streaming"} if frame.implementation.is_polars() else {}
        frame = frame.collect(**options)
    return {
        name: frame[name].to_list() if name == "g" else np.asarray(frame[name].to_numpy())
        for name in frame.columns
    }


# Columns under plain names and of plain types


def plain(frame: Any, roles: dict[str, str], *, floats: bool = True, percent: bool = False) -> Any:
    """Return the columns that are used, under plain names and of types that numpy has too.

    With `floats`, scores and weights are of double precision, whatever they were; with `percent`, scores are
    shares of 100.
    """
    return mapped(frame, partial(_plain, roles=roles, floats=floats, percent=percent))


def _plain(frame: Any, roles: dict[str, str], floats: bool, percent: bool) -> Any:
    if is_spark(frame):  # where a dot in a name is one of a field, unless it is quoted
        quoted = {key: "`" + name.replace("`", "``") + "`" for key, name in roles.items()}
        names = [f"{name} as `{key}`" for key, name in quoted.items()]
        frame = nw.from_native(frame.to_native().selectExpr(*names))
    else:
        frame = frame.select(**{key: col(name) for key, name in roles.items()})
    frame = frame.select(*(_typed(key, dtype, floats) for key, dtype in frame.collect_schema().items()))
    if not percent:
        return frame
    return frame.with_columns(*(_share(col(key).cast(nw.Float64)) for key in roles if is_score(key)))


def _share(column: Any) -> Any:
    """Return a hundredth of a column; by a number polars does not divide, but multiplies by its inverse."""
    return column / (column.clip(0, 1) * 0 + 100)


def _typed(name: str, dtype: Any, floats: bool) -> Any:
    column, label = col(name), name in ("y", "c")
    if name in ("g", "r"):
        return column
    if is_text(dtype):
        return column.cast(nw.String)
    if dtype == nw.Boolean:
        return column.cast(nw.Int64 if label else nw.Float64)
    if dtype.is_integer():
        # A cast by pyarrow refuses integers above 2^53; a division rounds them, as other engines do.
        return (column / 1).cast(nw.Float64) if floats and not label else column
    return column if dtype.is_float() and not floats and not label else column.cast(nw.Float64)


def is_text(dtype: Any) -> bool:
    """Whether a column holds text."""
    return dtype in (nw.String, nw.Categorical) or isinstance(dtype, nw.Enum)


def coded(frame: Any, name: str, codes: dict[Any, int]) -> Any:
    """Return the code of each value of a column, -1 for others, as an expression."""
    column, dtype = col(name), frame.collect_schema()[name]
    known = {
        value: float(code) for value, code in codes.items() if isinstance(value, str) == (dtype == nw.String)
    }
    if dtype.is_integer():  # some engines cannot compare them with what their type cannot hold
        ends = np.iinfo(str(dtype).lower())
        known = {value: code for value, code in known.items() if ends.min <= value <= ends.max}
    if dtype.is_float():  # of which some engines take no list with integers among them
        known = {float(value): code for value, code in known.items()}
    if not known:
        return column.is_null().cast(nw.Float64) * 0.0 - 1.0
    if dtype.is_integer() and are_positions(codes):
        inside = ((column >= 0) & (column < len(codes))).fill_null(False)
        return choose(inside, column, lit(-1)).cast(nw.Float64)
    if frame.implementation.is_polars() or frame.implementation.is_pandas_like():
        return column.replace_strict(list(known), list(known.values()), default=-1.0, return_dtype=nw.Float64)
    matches = [nw.when(column == value).then(lit(code)) for value, code in known.items()]
    return nw.coalesce(*matches, lit(-1.0))


def are_positions(codes: dict[Any, int]) -> bool:
    """Whether every label is its own code: 0, 1, ..."""
    return list(codes.items()) == [(k, k) for k in range(len(codes))]


# Which rows can be used


def missing(frame: Any, name: str) -> Any:
    """Return whether a value is missing, as an expression."""
    gone = col(name).is_null()
    if frame.collect_schema()[name].is_float():
        return gone | col(name).is_nan().fill_null(True)
    return gone


def weight_is_fine(weight: Any, counts: bool) -> Any:
    """Return whether a weight can be used, as an expression; infinities and NaN lie above every bound."""
    if counts:
        return (weight >= 0.0) & (weight < 2.0**63)
    return (weight == 0.0) | ((weight >= 1 / HEAVIEST) & (weight <= HEAVIEST))


def in_unit(score: Any) -> Any:
    """Return whether a score lies in [0, 1]; NaN lies above every bound, or compares as false."""
    return ((score >= 0.0) & (score <= 1.0)).fill_null(False)


def added(terms: Sequence[Any]) -> Any:
    """Return a sum as a shallow tree: a thousand terms in a row are too deep for most engines."""
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    return added(terms[:half]) + added(terms[half:])


def _close(total: Any, request: Request) -> Any:
    return ((total - 1.0).abs() <= request.tolerance + 1e-12).fill_null(False)


def _guarded(frame: Any, fine: Any, request: Request, **instead: float) -> Any:
    """Mark rows that cannot be used, and put harmless numbers in them."""
    if request.counts is not None:
        fine = fine & weight_is_fine(col("w"), request.counts)
        instead["w"] = 0.0
    if "g" in request.roles:
        fine = fine & ~missing(frame, "g")
    frame = frame.with_columns(fine=fine.fill_null(False))
    return frame.with_columns(
        **{name: choose(col("fine"), col(name), lit(value)) for name, value in instead.items()},
    )


# What is summed of each row: the code of the label `yc`, the score of the label `own`, of the positive class
# `pos` and the largest `top`, whether the label has that `right`, and the squared differences `sq`


def _of_rows(rows: Any, request: Request) -> Sums:
    """Return sums over rows by cell and outcome; one pass."""
    if request.entries is None:
        return summed(rows, partial(_wide, request=request), request.keys)
    entries = joined(mapped(rows, partial(entry, request=request)), request)
    return summed(entries, partial(_of_joined, request=request), request.keys)


def _wide(frame: Any, request: Request) -> Any:
    """Sum up each cell of a frame with a column a class, or a single score."""
    frame = frame.with_columns(yc=coded(frame, "y", request.codes))
    frame = _of_single(frame, request) if request.vector else _of_columns(frame, request)
    return _summed_by_cell(frame, request)


def _of_single(frame: Any, request: Request) -> Any:
    """Return what is summed of a single score, which stands for the two scores 1 - p and p."""
    fine = in_unit(col("0")) & (col("yc") >= 0.0)
    frame = _guarded(frame.with_columns(pos=col("0")), fine, request, pos=0.5, yc=0.0)
    p, hit = col("pos"), col("yc")
    frame = frame.with_columns(upper=number(p > 0.5), off=hit - p, own=(1.0 - hit - p).abs())
    return frame.with_columns(
        top=choose(p > 0.5, p, 1.0 - p),
        right=number(col("upper") == hit),
        sq=col("off") * col("off") * 2.0,
    )


def _of_columns(frame: Any, request: Request) -> Any:
    """Return what is summed of a score a class, by comparing columns."""
    scores = [col(name) for name in request.scores]
    frame = frame.with_columns(
        top=nw.max_horizontal(*scores), low=nw.min_horizontal(*scores), total=added(scores)
    )
    fine = (col("low") >= 0.0) & (col("top") <= 1.0) & _close(col("total"), request) & (col("yc") >= 0.0)
    own = [nw.when(col("yc") == float(k)).then(score) for k, score in enumerate(scores)]
    best = [nw.when(score == col("top")).then(lit(float(k))) for k, score in enumerate(scores)]
    away = [score - number(col("yc") == float(k)) for k, score in enumerate(scores)]
    frame = frame.select(
        "top", "yc", *request.beside,
        fine=fine.fill_null(False),
        pos=scores[request.positive or 0],
        own=nw.coalesce(*own, lit(0.5)),
        best=nw.coalesce(*best, lit(-1.0)),
        sq=added([distance * distance for distance in away]),
    )  # fmt: skip
    frame = _guarded(frame, col("fine"), request, top=1.0, yc=0.0, pos=0.5, own=0.5, sq=0.0)
    return frame.with_columns(right=number(col("best") == col("yc")))


def entry(frame: Any, request: Request) -> Any:
    """Return what is known of each entry of a frame in long form, to be added up for each row."""
    codes = {"yc": coded(frame, "y", request.codes), "cc": coded(frame, "c", request.entries or {})}
    frame = frame.with_columns(**codes)
    fine = in_unit(col("s")) & (col("cc") >= 0.0)
    frame = frame.with_columns(off=1.0 - number(fine), s=choose(fine, col("s"), lit(0.0)))
    frame = frame.with_columns(owns=number(col("cc") == col("yc")))
    positive = float(-1 if request.positive is None else request.positive)
    return frame.select(
        "r", "yc", "cc", "off", "owns", "s", *request.beside,
        square=col("cc") * col("cc"),
        own=col("s") * col("owns"),
        pos=col("s") * number(col("cc") == lit(positive)),
        before=choose(col("cc") < col("yc"), col("s"), lit(-1.0)),
        sq=(col("s") - col("owns")) * (col("s") - col("owns")),
    )  # fmt: skip


def joined(entries: Any, request: Request) -> Any:
    """Return one row for the entries of each row in long form."""
    sums = [col(name).sum() for name in ("cc", "square", "off", "owns", "own", "pos", "sq")]
    most = [col("before").max(), col("s").max().alias("top"), col("s").sum().alias("total")]
    return entries.group_by("r", "yc", *request.beside).agg(nw.len().alias("entries"), *sums, *most)


def is_whole(request: Request) -> Any:
    """Return whether a row that was joined has every class once, as an expression.

    By the number of its entries, the sum of their classes and that of the squares: what every engine has. Up
    to six classes no others have the same three, and of more hardly any.
    """
    last = request.size - 1
    numbers, squares = last * (last + 1) / 2, last * (last + 1) * (2 * last + 1) / 6
    return (col("entries") == request.size) & (col("cc") == numbers) & (col("square") == squares)


def _of_joined(frame: Any, request: Request) -> Any:
    """Sum up each cell of rows that were joined."""
    fine = is_whole(request) & (col("owns") == 1.0) & (col("off") == 0.0)
    fine = fine & _close(col("total"), request) & (col("yc") >= 0.0)
    frame = _guarded(frame, fine, request, own=0.5, top=1.0, pos=0.5, before=-1.0, sq=0.0, yc=0.0)
    right = (col("own") == col("top")) & (col("before") < col("top"))
    return _summed_by_cell(frame.with_columns(right=number(right)), request)


def _summed_by_cell(frame: Any, request: Request) -> Any:
    """Choose the score and the outcome that the notion compares, and add up by cell."""
    if request.notion.several:  # the label's score here, and those of all classes in `_of_classes`
        frame = frame.with_columns(s=col("own"), out=lit(1.0), of=col("yc"))
    elif request.notion.top:
        frame = frame.with_columns(s=col("top"), out=col("right"), of=lit(0.0))
    else:
        hit = number(col("yc") == float(request.positive or 0))
        frame = frame.with_columns(s=col("pos"), out=hit, of=lit(0.0))
    frame = located(logarithm(frame), request.layout)
    frame = frame.with_columns(bad=1.0 - number(col("fine")), none=number(col("own") <= 0.0))
    bits = {"out": OUTCOME, "bad": BAD, "right": RIGHT, "none": NONE}
    kind = added([col(name) * float(bit) for name, bit in bits.items()])
    frame = frame.with_columns(key=_key(col("of"), kind), xx=col("x") * col("x"))
    names = ["x", "xx", "log", "sq"]
    frame = _weighed(frame, request, names)
    sums = [nw.len().alias("n"), *(col(name).sum() for name in names)]
    if request.counts is not None:
        frame = frame.with_columns(held=number(col("w") > 0.0))
        sums += [col(name).sum() for name in ("held", "w")]
    frame, squares = _squared(frame, request)
    return frame.group_by(*request.keys).agg(*sums, *squares)


def _of_classes(rows: Any, request: Request) -> Sums:
    """Return sums over rows for each class, whatever the label; one pass."""
    return summed(rows, partial(_by_class, request=request), request.keys)


def _by_class(frame: Any, request: Request) -> Any:
    columns = [str(k) for k in range(request.size)]
    if request.entries is not None:
        frame = frame.select("s", *request.beside, c=coded(frame, "c", request.entries))
    else:
        if request.vector:
            frame = frame.with_columns(**{"0": 1.0 - col("0"), "1": col("0")})
        frame = frame.select(*request.beside, *columns)
        frame = frame.unpivot(on=columns, index=request.beside, variable_name="c", value_name="s")
    frame = located(frame, request.layout)
    frame = frame.with_columns(key=_key(col("c").cast(nw.Float64)), xx=col("x") * col("x"))
    frame = _weighed(frame, request, ["x", "xx"])
    total = nw.len() if request.counts is None else col("w").sum()
    frame, squares = _squared(frame, request)
    return frame.group_by(*request.keys).agg(total.alias("n"), col("x").sum(), col("xx").sum(), *squares)


def _weighed(frame: Any, request: Request, names: Sequence[str]) -> Any:
    if request.counts is None:
        return frame
    return frame.with_columns(**{name: col(name) * col("w") for name in names})


def _squared(frame: Any, request: Request) -> tuple[Any, list[Any]]:
    """Add the squares of importance weights, and return what sums them; counts need none."""
    if request.counts is not False:
        return frame, []
    return frame.with_columns(ww=col("w") * col("w")), [col("ww").sum()]


def _key(of: Any, kind: Any = 0.0) -> Any:
    # Whole numbers are the keys that engines group by fastest.
    return ((of * float(CELLS) + (col("cell") + MOVED)) * float(KINDS) + kind).cast(nw.Int64)


# From sums to sketches


def _unkeyed(key: Array) -> tuple[Array, Array, Array]:
    """Return class, cell and kind of keys."""
    key = key.astype(np.int64)
    return key // (CELLS * KINDS), key // KINDS % CELLS - MOVED, key % KINDS


def _by_group(sums: Sums) -> dict[Any, Sums]:
    """Return the sums of each group."""
    if "g" not in sums:
        return {None: sums}
    position = {value: k for k, value in enumerate(dict.fromkeys(sums["g"]))}
    at = np.array([position[value] for value in sums["g"]], dtype=np.intp)
    order = np.argsort(at, kind="stable")
    ends = np.cumsum(np.bincount(at, minlength=len(position)))[:-1]
    split = {name: np.split(values[order], ends) for name, values in sums.items() if name != "g"}
    return {value: {name: arrays[k] for name, arrays in split.items()} for value, k in position.items()}


def _group(request: Request, rows: Sums, classes: Sums | None) -> Group:
    n = int(rows["n"].sum())
    weight = rows["n"].astype(np.float64) if request.counts is None else rows["w"]
    if not weight.sum() > 0:
        return Group(n, Sketch(request.notion.name))
    if request.counts:
        check_counts(float(weight.sum()), request.called("w"))
    kind = _unkeyed(rows["key"])[2]
    totals = Totals(
        n if request.counts is None else int((weight if request.counts else rows["held"]).sum()),
        float(weight.sum()),
        float(weight[(kind & RIGHT) > 0].sum()),
        max(0.0, -float(rows["log"][(kind & NONE) == 0].sum())),
        float(weight[(kind & NONE) > 0].sum()),
        float(rows["sq"].sum()),
    )
    sketch = Sketch._of_sums(
        request.notion.name,
        labels=request.labels,
        positive=request.positive,
        vector=request.vector,
        n_classes=request.size,
        cells=_cells(request, weight, rows, classes),
        totals=totals,
    )
    return Group(n, sketch)


def _cells(request: Request, weight: Array, rows: Sums, classes: Sums | None) -> Cells:
    """Return cells from the sums of rows, and of classes where each has a problem of its own."""
    layout, support = request.layout, request.notion.support(request.size)
    squares = float(rows.get("ww", weight).sum())
    of, cell, kind = _unkeyed(rows["key"])
    hit = (kind & OUTCOME).astype(np.float64)
    parts = [weight, rows["x"], weight * hit, rows["x"] * hit, rows["xx"]]
    if classes is None:
        sums = _moments(request, of, cell, parts, 1)[0]
        spread = _spread(request, rows, 1)
        total, spread = np.asarray(squares), None if spread is None else spread[0]
        return Cells(sums, layout.low, layout.high, total, support, spread)
    _, _, wy, wsy, _ = _moments(request, of, cell, parts, request.size).parts
    of, cell, _ = _unkeyed(classes["key"])
    zero = np.zeros(len(cell))
    parts = [classes["n"].astype(np.float64), classes["x"], zero, zero, classes["xx"]]
    w, ws, _, _, wss = _moments(request, of, cell, parts, request.size).parts
    sums = Moments(w, ws, wy, wsy, wss, layout.low)
    total, spread = np.full(request.size, squares), _spread(request, classes, request.size)
    return Cells(sums, layout.low, layout.high, total, support, spread)


def _spread(request: Request, sums: Sums, size: int) -> Array | None:
    """Return the squared weights of each class and cell; None where weights are counts."""
    if "ww" not in sums:
        return None
    of, cell, _ = _unkeyed(sums["key"])
    at = of * request.layout.size + unpacked(cell, request.layout)[0]
    return np.bincount(at, sums["ww"], size * request.layout.size).reshape(size, -1)


def _moments(request: Request, of: Array, cell: Array, parts: Sequence[Array], size: int) -> Moments:
    """Return sums of each class and cell, scores measured from the cell's least score."""
    layout = request.layout
    position, origin = unpacked(cell, layout)
    w, ws, wy, wsy, wss = parts
    moved = Moments(w, ws, wy, wsy, wss, origin).about(layout.low[position])
    at = of * layout.size + position
    w, ws, wy, wsy, wss = (
        np.bincount(at, values, size * layout.size).reshape(size, -1) for values in moved.parts
    )
    return Moments(w, ws, wy, wsy, wss, layout.low)

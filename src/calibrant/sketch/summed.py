"""What a sketch is: sums of predictions that arrive in pieces, and which classes they speak of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np

from calibrant import inputs
from calibrant.evidence import COARSE, FINE, Cells, Layout, Moments, Sample
from calibrant.questions import notions
from calibrant.sketch.totals import Totals

# Up to this many problems the fine cells are affordable.
FINE_UP_TO = 20
# Problems summed and answered for together: what is made on the way stays small beside the sketch.
TOGETHER = 32
# Sums of squared importance weights must neither overflow nor vanish.
HEAVIEST = 1e100


class Summed:
    """Sums of predictions, without the questions that `Sketch` answers from them.

    Attributes
    ----------
    labels : tuple
        The class of each column; for a vector of scores the negative and the positive one.
    positive : int or None
        Column of the class asked about.
    totals : Totals
        Sums over whole rows, for accuracy, Brier score and log loss.
    """

    def __init__(
        self,
        notion: str = "class",
        *,
        n_classes: int | None = None,
        labels: Any = None,
        pos_label: Any = None,
    ) -> None:
        self._notion = notions.named(notion)
        self._n_classes = None if n_classes is None else inputs.positive_int("n_classes", n_classes, 2)
        # Kept for every later update, so what can be read only once is read now.
        labels = None if labels is None else inputs.class_labels(labels)
        self._given = {"labels": labels, "pos_label": pos_label}
        self._cells: Cells | None = None
        # Whether someone else may look at the arrays, and whether an update stopped halfway.
        self._lent = self._torn = False
        self.totals = Totals.zero()
        self.labels: tuple[Any, ...] = ()
        self.positive: int | None = None
        self._vector = False

    @classmethod
    def _of_sums(
        cls,
        notion: str,
        *,
        labels: tuple[Any, ...],
        positive: int | None,
        vector: bool,
        n_classes: int,
        cells: Cells,
        totals: Totals,
    ) -> Self:
        """A sketch of sums that were made elsewhere."""
        made = cls(notion, n_classes=n_classes)
        made.labels, made.positive, made._vector = tuple(labels), positive, vector
        made._cells, made._lent, made.totals = cells, True, totals
        return made

    @property
    def notion(self) -> str:
        """The notion asked about."""
        return self._notion.name

    @property
    def n(self) -> float:
        """Effective number of rows seen."""
        return 0.0 if self._cells is None else float(np.max(self._cells.n))

    @property
    def evidence(self) -> Cells:
        """The sums, as evidence that any estimator can read; later updates leave it as it is."""
        cells = self._held
        self._lent = True
        return cells

    @property
    def _held(self) -> Cells:
        if self._torn:
            raise ValueError("an update was interrupted, and the sketch holds a part of its rows: start anew")
        if self._cells is None:
            raise ValueError("the sketch is empty: call update(y_true, y_prob) first")
        return self._cells

    def _blocks(self) -> Iterator[Cells]:
        cells = self._held
        if not cells.batch:
            yield cells
            return
        for first in range(0, cells.batch[0], TOGETHER):
            yield cells[first : first + TOGETHER]

    @property
    def _layout(self) -> Layout:
        return layout_of(self.notion, self._n_classes or 2)

    def update(self, y_true: Any, y_prob: Any, *, sample_weight: Any = None) -> Self:
        """Add predictions; returns the sketch itself. Rows that are refused leave it as it was."""
        told = self._told(y_prob)
        more = self._cells is not None
        data = inputs.predictions(y_true, y_prob, sample_weight=sample_weight, more=more, **told)
        return self._take(data if self._cells is None else _reordered(data, self.labels))

    def _take(self, data: inputs.Predictions) -> Self:
        """Add predictions that are checked."""
        if data.weight is not None and data.weight.dtype.kind == "f":
            _check_scale(data.weight)
        new = type(self)(self.notion, n_classes=2 if data.score.ndim == 1 else data.score.shape[1])
        new.labels, new.positive, new._vector = data.labels, data.positive, data.score.ndim == 1
        settled, totals = self._settled(new, holding=True), self.totals + Totals.of(data)
        whole = None if self._cells is None else _copied(self._held) if self._lent else self._held
        for at, part in self._parts(data, settled._layout):
            if whole is None:
                batch = (settled._n_classes,) if part.batch else ()
                whole = empty_cells(batch, settled._layout, part.support)  # type: ignore[arg-type]
            # Sums that were there before cannot be had again if this stops between two blocks.
            self._torn = whole is self._cells
            _gather(whole, at, part)
        assert whole is not None
        # A new value, since one remembers what it has computed.
        settled._cells, settled.totals, settled._given = replace(whole), totals, self._given
        self.__dict__.update(settled.__dict__)
        return self

    def _told(self, y_prob: Any) -> dict[str, Any]:
        """What is known of the classes before an update: given at first, or settled by what came."""
        told = dict(self._given)
        if self._cells is None:
            return told
        shape = getattr(y_prob, "shape", None)
        if not self._vector and len(np.shape(y_prob) if shape is None else shape) == 2:
            # Columns that are named after the classes may come in another order than at first.
            names = inputs.column_names(y_prob) if self._given["labels"] is None else None
            told["labels"] = (
                self.labels
                if names is None
                else inputs.classes_of_columns(names, self.labels, len(self.labels))
            )
        # A vector of scores is about the class 1 without being told.
        if told["pos_label"] is None and self.positive is not None and self.labels[self.positive] != 1:
            told["pos_label"] = self.labels[self.positive]
        return told

    def _parts(self, data: inputs.Predictions, layout: Layout) -> Iterator[tuple[Any, Cells]]:
        """The sums of the new rows, a few problems at a time, and where they belong."""
        first = 0
        for score, outcome, support in self._notion.problems(data):
            if score.ndim == 1:
                yield ..., Cells.of(Sample(score, outcome, data.weight, support), layout)
                continue
            for a in range(0, len(score), TOGETHER):
                block = slice(a, a + TOGETHER)
                part = Cells.of(Sample(score[block], outcome[block], data.weight, support), layout)
                yield slice(first + a, first + a + len(part.sums.w)), part
            first += len(score)

    def __add__(self, other: Self) -> Self:
        """A sketch of the rows of both, which stay as they are."""
        if not isinstance(other, Summed):
            return NotImplemented
        mine, theirs = (None if one._cells is None else one._held for one in (self, other))
        if mine is not None and theirs is not None:
            total = self._settled(other, holding=True)
            cells = mine + theirs
            total._cells = replace(cells, squares=np.asarray(cells.squares))
        else:
            total = self._settled(other, holding=False)
            total._cells = mine if mine is not None else theirs
            # Copied by whichever is updated first.
            self._lent = other._lent = total._lent = True
        total.totals = self.totals + other.totals
        return total

    def __radd__(self, other: Any) -> Self:
        """Lets `sum(sketches)` begin with 0."""
        return self + type(self)(self.notion) if isinstance(other, int) and other == 0 else NotImplemented

    def __copy__(self) -> Self:
        return self + type(self)(self.notion)

    def _settled(self, other: Self, *, holding: bool) -> Self:
        """An empty sketch for the rows of both; raises if they ask different questions."""
        if self.notion != other.notion:
            raise ValueError(f"sketches must ask the same: got notions {self.notion!r} and {other.notion!r}")
        if None not in (self._n_classes, other._n_classes) and self._n_classes != other._n_classes:
            raise ValueError(
                f"sketches must have the same classes, got {self._n_classes} and {other._n_classes} of them"
            )
        total = type(self)(self.notion, n_classes=self._n_classes or other._n_classes)
        total._given = self._given if any(v is not None for v in self._given.values()) else other._given
        base, more = (self, other) if self._cells is not None else (other, self)
        if holding and self._cells is not None and base._asked != more._asked:
            raise ValueError(
                f"sketches must ask about the same classes, got {base._asked!r} and {more._asked!r}"
            )
        total.labels, total.positive, total._vector = base.labels, base.positive, base._vector
        if more.labels and base._vector != more._vector:
            matrix = more if base._vector else base
            total.labels, total.positive, total._vector = matrix.labels, matrix.positive, False
        elif more.labels and base._vector:
            total.labels = (_others(base.labels[0], more.labels[0]), base.labels[1])
        return total

    @property
    def _asked(self) -> Any:
        """The class that is asked about, or all; a vector of scores speaks of one class."""
        if self.notion == "confidence" and not self._vector:
            return tuple(sorted(self.labels, key=str))
        column = self.positive if self._vector or self.notion == "class" else None
        return self.labels if column is None else self.labels[column]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(notion={self.notion!r}, n={self.n:.15g})"


def layout_of(notion: str, n_classes: int) -> Layout:
    """The cells of a sketch: fine ones where there are few problems."""
    return FINE if notion != "classwise" or n_classes <= FINE_UP_TO else COARSE


def empty_cells(batch: tuple[int, ...], layout: Layout, support: tuple[float, float]) -> Cells:
    """Cells that hold nothing yet."""
    w, ws, wy, wsy, wss = (np.zeros((*batch, layout.size)) for _ in range(5))
    sums = Moments(w, ws, wy, wsy, wss, layout.low)
    return Cells(sums, layout.low, layout.high, np.zeros(batch), support)


def _copied(cells: Cells) -> Cells:
    w, ws, wy, wsy, wss = (np.array(part, dtype=np.float64) for part in cells.sums.parts)
    return replace(
        cells,
        sums=Moments(w, ws, wy, wsy, wss, cells.sums.origin),
        squares=np.array(cells.squares, dtype=np.float64),
    )


def _reordered(data: inputs.Predictions, labels: tuple[Any, ...]) -> inputs.Predictions:
    """The same rows with their columns in the order of the labels, where these are the same classes."""
    if data.score.ndim == 1 or data.labels == labels or set(data.labels) != set(labels):
        return data
    at = [data.labels.index(label) for label in labels]
    code = np.argsort(at).astype(data.code.dtype)[data.code]
    positive = None if data.positive is None else at.index(data.positive)
    return replace(data, score=data.score[:, at], code=code, labels=labels, positive=positive)


def _gather(whole: Cells, at: Any, part: Cells) -> None:
    """Add to the arrays themselves: sums of many classes are large, and two copies of them too many."""
    for total, more in zip(whole.sums.parts, part.sums.parts, strict=True):
        total[at] += more
    whole.squares[at] += part.squares


def _others(one: Any, other: Any) -> Any:
    """The negative labels of two vectors of scores, in whichever order: none, one, or a tuple of many."""
    if one is None or other is None or one == other:
        return other if one is None else one
    found = {v for some in (one, other) for v in (some if isinstance(some, tuple) else (some,))}
    return tuple(sorted(found, key=lambda label: (type(label).__name__, label)))


def _check_scale(weight: Any) -> None:
    """Refuse importance weights whose squares a sum cannot hold: a sketch must keep their scale."""
    for value in (weight.max(), weight[weight > 0].min()):
        if not 1 / HEAVIEST <= value <= HEAVIEST:
            raise ValueError(
                f"sample_weight in a sketch must lie between {1 / HEAVIEST:g} and {HEAVIEST:g}, got {value:g}"
            )

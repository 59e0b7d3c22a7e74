"""Calibration maps held against leaving the scores alone, on rows that they have not learned from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from calibrant import inputs
from calibrant.curves import Progress
from calibrant.evidence import Array
from calibrant.inference.comparison import compare_questions
from calibrant.inference.estimate import count_steps
from calibrant.inputs import InputError, Predictions, Record, Seed, from_text
from calibrant.maps.folds import cross_fitted, in_folds, methods_for
from calibrant.questions import Notion, Question, named

# What all maps are held against.
ALONE = "identity"


@dataclass(frozen=True)
class Measured:
    """A number with its interval.

    Attributes
    ----------
    value, low, high : float
        A log loss may be infinite, and has no interval then.
    """

    value: float
    low: float
    high: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers; infinities as text, which JSON has no numbers for."""
        return {key: written(getattr(self, key)) for key in ("value", "low", "high")}

    @classmethod
    def of_record(cls, record: Record) -> Measured:
        """Return what a stored record holds."""
        record.only(("value", "low", "high"))
        return cls(*(read(record, key) for key in ("value", "low", "high")))


@dataclass(frozen=True)
class Figure(Measured):
    """A loss or an error of a map; lower is better.

    Attributes
    ----------
    value, low, high : float
    difference : Measured
        From leaving the scores alone, paired by row; negative where the map is better.
    """

    difference: Measured

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers; infinities as text."""
        return super().to_dict() | {"difference": self.difference.to_dict()}

    @classmethod
    def of_record(cls, record: Record) -> Figure:
        """Return what a stored record holds."""
        record.only(("value", "low", "high", "difference"))
        numbers = {key: read(record, key) for key in ("value", "low", "high")}
        return cls(**numbers, difference=Measured.of_record(record.record("difference")))


@dataclass(frozen=True)
class MapFigures:
    """What a map achieves on rows that it has not seen.

    Attributes
    ----------
    method : str
    log_loss, brier, ece : Figure
    """

    method: str
    log_loss: Figure
    brier: Figure
    ece: Figure

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and text."""
        figures = {key: getattr(self, key).to_dict() for key in ("log_loss", "brier", "ece")}
        return {"method": self.method, **figures}

    @classmethod
    def of_record(cls, record: Record) -> MapFigures:
        """Return what a stored record holds."""
        record.only(cls.__dataclass_fields__)
        figures = {key: Figure.of_record(record.record(key)) for key in ("log_loss", "brier", "ece")}
        return cls(record.text("method"), **figures)


@dataclass(frozen=True)
class MapComparison:
    """Calibration maps, cross-validated; see `calibrant.compare_calibrators`.

    Attributes
    ----------
    table : tuple of MapFigures
        The least log loss first.
    notion : str
        What the calibration error is about.
    rows, folds : int
    level : float
        Level of all intervals.
    seed : int
        The same call with `rng=seed` gives the same comparison.
    """

    table: tuple[MapFigures, ...]
    notion: str
    rows: int
    folds: int
    level: float
    seed: int

    @property
    def best(self) -> str:
        """The map of the least log loss."""
        return self.table[0].method

    def __getitem__(self, method: str) -> MapFigures:
        inputs.check_choice("method", method, [row.method for row in self.table])
        return next(row for row in self.table if row.method == method)

    def __iter__(self) -> Iterator[MapFigures]:
        return iter(self.table)

    def __str__(self) -> str:
        lines = [_conclusion(self)]
        for title, name in (("log loss", "log_loss"), ("Brier score", "brier"), ("ECE", "ece")):
            cells = [("map", title, "difference from the scores as they are")]
            for row in self.table:
                figure: Figure = getattr(row, name)
                change = "" if row.method == ALONE else _span(figure.difference, "+")
                cells.append((row.method, _span(figure), change))
            wide = [max(map(len, column)) for column in zip(*cells, strict=True)]
            lines += [
                "",
                *("  ".join(map(str.ljust, line, wide)).rstrip() for line in cells),
            ]
        return "\n".join(
            [
                *lines,
                "",
                f"{self.folds} folds of {self.rows} rows, ECE by {self.notion}; {100 * self.level:g} % "
                f"intervals, those of differences paired by row; seed {self.seed}",
            ]
        )

    def __repr__(self) -> str:
        return f"MapComparison(best {self.best} of {len(self.table)}, {self.rows} rows)"

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and text; infinities as text."""
        plain = {key: getattr(self, key) for key in self.__dataclass_fields__}
        return plain | {"best": self.best, "table": [row.to_dict() for row in self.table]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> MapComparison:
        """Return the comparison that `to_dict` wrote; numbers that no comparison can have are refused."""
        record = Record(values, "comparison").only((*cls.__dataclass_fields__, "best"))
        table = tuple(MapFigures.of_record(row) for row in record.records("table"))
        if not table or record.text("best") != table[0].method:
            raise InputError(record.called("best"), "be the first of the table", values["best"])
        return cls(
            table,
            named(record.text("notion")).name,
            rows=record.whole("rows", 2),
            folds=record.whole("folds", 2),
            level=record.level(),
            seed=record.whole("seed"),
        )

    def to_json(self) -> str:
        """Return JSON that `from_json` reads."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> MapComparison:
        """Return the comparison that `to_json` wrote."""
        return cls.from_dict(from_text(text, "comparison"))


def compare_maps(
    data: Predictions,
    notion: Notion,
    *,
    methods: Sequence[str] | None = None,
    cv: int = 5,
    level: float = 0.95,
    rng: Seed = None,
    progress: Progress | None = None,
) -> MapComparison:
    """Compare maps by cross-validation; see `calibrant.compare_calibrators`."""
    level, cv, seed = inputs.level(level), inputs.positive_int("cv", cv, 2), inputs.seeded(rng)
    names = _names(data, methods)
    data, fold = in_folds(data, cv, np.random.default_rng(seed))
    done, total = 0, len(names) * (1 + count_steps(Question.of(data, notion)))

    def step() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)

    mapped = {}
    for name in names:
        mapped[name] = data if name == ALONE else cross_fitted(data, name, fold)
        step()
    questions = {name: Question.of(own, notion) for name, own in mapped.items()}
    errors = compare_questions(questions, ALONE, level=level, rng=seed, step=step)
    table = []
    for name, own in mapped.items():
        log_loss, brier = (
            _figure(data, loss(own), loss(data), level) for loss in (log_loss_of_rows, brier_score_of_rows)
        )
        estimate, apart = errors.estimates[name], errors.differences.get(name)
        change = Measured(0.0, 0.0, 0.0) if apart is None else Measured(apart.value, apart.low, apart.high)
        error = Figure(estimate.value, estimate.low, estimate.high, change)
        table.append(MapFigures(name, log_loss, brier, error))
    table.sort(key=lambda row: row.log_loss.value)
    return MapComparison(tuple(table), notion.name, data.n_rows, int(fold.max()) + 1, level, seed)


def log_loss_of_rows(data: Predictions) -> Array:
    """Return the log loss of each row."""
    own = data.code.astype(np.intp)
    score = data.score.astype(np.float64, copy=False)
    chance = np.where(own, score, 1 - score) if score.ndim == 1 else score[np.arange(len(own)), own]
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log(chance))


def brier_score_of_rows(data: Predictions) -> Array:
    """Return the Brier score of each row: of the positive class, and of more than two summed over all."""
    own = data.code.astype(np.intp)
    score = data.score.astype(np.float64, copy=False)
    if score.ndim == 1:
        return np.asarray((score - own) ** 2)
    square = (score**2).sum(axis=1) - 2 * score[np.arange(len(own)), own] + 1
    return np.asarray(square / 2 if score.shape[1] == 2 else square)


def mean_of_rows(data: Predictions, values: Array, level: float) -> Measured:
    """Return the mean over rows, or clusters of them, with its interval.

    >>> data = inputs.predictions([0, 1, 1, 0], [0.2, 0.7, 0.8, 0.1])
    >>> mean_of_rows(data, np.array([1.0, 2.0, 3.0, 2.0]), 0.95)
    Measured(value=2.0, low=0.7007..., high=3.2992...)
    """
    from scipy.special import stdtrit

    weight = np.ones(len(values)) if data.weight is None else data.weight.astype(np.float64)
    weight = weight / weight.max()
    total, counts = weight.sum(), data.weight is not None and data.counts
    mean = float(weight @ values / total)
    if not np.isfinite(mean):
        return Measured(mean, mean, mean)
    off = weight * (values - mean)
    if data.cluster is not None:
        off = np.bincount(data.cluster, off)
        units: float = off.size
        square = off @ off
    elif counts:
        assert data.weight is not None
        units = float(data.weight.sum())
        square = off @ (values - mean) / data.weight.max()
    else:
        units = float(total**2 / (weight @ weight))
        square = off @ off
    if units < 2:
        return Measured(mean, -inf, inf)
    reach = float(stdtrit(units - 1, (1 + level) / 2) * np.sqrt(square * units / (units - 1)) / total)
    return Measured(mean, mean - reach, mean + reach)


def _figure(data: Predictions, own: Array, alone: Array, level: float) -> Figure:
    value = mean_of_rows(data, own, level)
    # Where both are infinite neither is better.
    apart = np.subtract(own, alone, out=np.zeros(len(own)), where=own != alone)
    return Figure(value.value, value.low, value.high, mean_of_rows(data, apart, level))


def _names(data: Predictions, methods: Sequence[str] | None) -> list[str]:
    """Return the maps asked for, and the scores as they are."""
    known = methods_for(data)
    if methods is None:
        return known
    if isinstance(methods, str) or not list(methods):
        raise InputError("methods", "be names of maps", methods)
    for name in methods:
        inputs.check_choice("methods", name, known)
    return list(dict.fromkeys([ALONE, *methods]))


def _conclusion(comparison: MapComparison) -> str:
    if comparison.best == ALONE:
        return "no map is better than leaving the scores alone"
    if comparison.table[0].log_loss.difference.high < 0:
        return f"best: {comparison.best}, better than leaving the scores alone"
    return f"best: {comparison.best}, within noise of leaving the scores alone"


def _span(number: Measured, sign: str = "") -> str:
    value, low, high = (f"{each:{sign}.4f}" for each in (number.value, number.low, number.high))
    return f"{value} [{low}, {high}]" if np.isfinite(number.value) else value


def written(number: float | None) -> float | str | None:
    """Return a number as JSON takes it: infinities as text."""
    return number if number is None or np.isfinite(number) else str(float(number))


def read(record: Record, key: str) -> float:
    """Return a number that `written` wrote."""
    value = record.values[key]
    return float(value) if value in ("inf", "-inf") else float(record.number(key))

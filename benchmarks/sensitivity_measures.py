"""Data sets and measures of `sensitivity.py`: the families and pipelines of the other benchmarks, in small.

A measure gets a cell and a number of data sets, and returns figures of each data set by name. The seed of a
data set depends on its cell and number only, so that runs with different settings are paired.
"""

from __future__ import annotations

import dataclasses
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from importlib import util
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import calibrant
from calibrant import settings
from calibrant.experiment.distributions import rng_of
from calibrant.experiment.families import FAMILIES
from calibrant.inputs import predictions
from calibrant.score_data import Array
from calibrant.tasks import CalibrationTask, get_notion


def _sibling(name: str) -> Any:
    spec = util.spec_from_file_location(f"benchmark_{name}", Path(__file__).with_name(f"{name}.py"))
    module = util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


curve_band, decisions, maps, pipelines = map(_sibling, ("curve_band", "decisions", "maps", "pipelines"))
canonical, Dirichlet = decisions.canonical, _sibling("dirichlet_family").Dirichlet
# The truth of a cell does not depend on settings.
canonical.truths = cache(canonical.truths)
decisions.true_regret_of_rows = cache(decisions.true_regret_of_rows)

Figures = dict[str, Array]
# Changes of these are shown as differences, changes of the other measures as percentages.
RATES = ("coverage", "rejection")


class Cell(NamedTuple):
    family: str
    n: int
    factor: float = 1.0
    notion: str = "binary"

    def __str__(self) -> str:
        gap = "" if self.factor == 1 else ", calibrated" if self.factor == 0 else f", gap x {self.factor:g}"
        return f"{self.family}{gap}{'' if self.notion == 'binary' else f', {self.notion}'} ({self.n} rows)"


@cache
def source(cell: Cell) -> tuple[Callable[..., tuple[Array, Array]], float]:
    """Return what draws scores and outcomes, and the true error."""
    if cell.family.startswith("dirichlet-"):
        vectors = Dirichlet(int(cell.family[10:]), 0.3).shrunk(cell.factor)
        # The sum over classes has no closed form with a gap.
        return vectors.draw, 0.0 if cell.notion == "canonical" else vectors.truth(cell.notion)
    if cell.family in FAMILIES:
        family = FAMILIES[cell.family].shrunk(cell.factor)
        return family.draw, family.truth
    population = pipelines.population(cell.family, None, 0.1)
    return population.draw, population.truth


def data_sets(cell: Cell, count: int) -> Iterator[tuple[Array, Array, dict[str, Any]]]:
    """Yield labels, scores and the arguments that go with them."""
    draw, _ = source(cell)
    for k in range(count):
        score, outcome = draw(rng_of("sensitivity", *cell, k), cell.n)
        labels = range(2 if score.ndim == 1 else score.shape[1])
        yield outcome.astype(int), score, {"notion": cell.notion, "labels": labels}


def of_truth(name: str, truth: float) -> str:
    return name if truth else f"{name} (calibrated)"


def error(cell: Cell, count: int) -> Figures:
    truth = source(cell)[1]
    values = [calibrant.ece(label, score, **how) for label, score, how in data_sets(cell, count)]
    return {of_truth("MAE", truth): np.abs(np.array(values) - truth)}


def interval(cell: Cell, count: int) -> Figures:
    truth = source(cell)[1]
    found = [calibrant.estimate(y, s, rng=k, **how) for k, (y, s, how) in enumerate(data_sets(cell, count))]
    low, high, p = np.array([(each.low, each.high, each.p_value) for each in found]).T
    held = {"coverage": (low <= truth) & (truth <= high), of_truth("width", truth): high - low}
    held |= {of_truth("p-value", truth): p} | ({} if truth else {"rejection": p <= 0.05})
    return {f"canonical {name}" if cell.notion == "canonical" else name: held[name] for name in held}


def clusters(cell: Cell, count: int) -> Figures:
    """Measure intervals of clusters of four rows, half of which repeat the first one of their cluster."""
    truth, found = source(cell)[1], []
    for k, (label, score, how) in enumerate(data_sets(cell, count)):
        cluster = np.arange(cell.n) // 4
        rows = np.where(np.arange(cell.n) % 4 < 2, np.arange(cell.n), 4 * cluster)
        estimate = calibrant.estimate(label[rows], score[rows], cluster=cluster, rng=k, **how)
        found.append((estimate.low, estimate.high))
    low, high = np.array(found).T
    return {"coverage": (low <= truth) & (truth <= high), of_truth("width", truth): high - low}


def curve(cell: Cell, count: int) -> Figures:
    family, found = curve_band.by_name(cell.family), []
    truth = family.frequency(family.at)
    for k in range(count):
        score, outcome = family.draw(cell.n, rng_of("sensitivity", *cell, k))
        fitted = calibrant.reliability_curve(outcome.astype(int), score, rng=k, labels=(0, 1)).at(family.at)
        low, high = np.nan_to_num(fitted.low, nan=0.0), np.nan_to_num(fitted.high, nan=1.0)
        held = (low <= truth + 1e-12) & (truth - 1e-12 <= high)
        found.append((held.mean(), (high - low).mean()))
    return dict(zip(("band coverage", "band width"), np.array(found).T, strict=True))


def binary_map(cell: Cell, count: int) -> Figures:
    family, found, some = maps.FAMILIES[cell.family], [], slice(2, None, 40)
    score, truth = family.truth()
    for k in range(count):
        fitted = calibrant.Calibrator().fit(*family.draw(cell.n, rng_of("sensitivity", *cell, k)))
        low, high = fitted.predict_interval(score[some])
        held = (low - 1e-9 <= truth[some]) & (truth[some] <= high + 1e-9)
        found.append((maps.excess(truth, fitted.predict_proba(score))[0], held.mean()))
    loss = "excess log loss" + " (calibrated)" * cell.family.startswith("right")
    return dict(zip((loss, "map coverage"), np.array(found).T, strict=True))


def multiclass_map(cell: Cell, count: int) -> Figures:
    scores, chance = maps.CLASSES[cell.family]
    new, found = scores(2000, 4, rng_of("sensitivity", *cell)), []
    truth = chance(new)
    for k in range(count):
        rng = rng_of("sensitivity", *cell, k)
        rows = scores(cell.n, 4, rng)
        method = "auto" if cell.notion == "binary" else cell.notion
        fitted = calibrant.Calibrator(method, labels=range(4)).fit(
            rows, canonical.families.labels(chance(rows), rng)
        )
        ratio = np.maximum(truth, 1e-300) / np.maximum(fitted.predict_proba(new), maps.LEAST)
        found.append((truth * np.log(ratio)).sum(axis=1).mean())
    return {"excess log loss" + " (calibrated)" * cell.family.startswith("right"): np.array(found)}


def regret(cell: Cell, count: int) -> Figures:
    family, found = decisions.family_of(cell.family), []
    truth, lines = true_regret(cell.family), decisions.CostLines.of_thresholds(decisions.AT)
    for k in range(count):
        score, outcome = family.draw(rng_of("sensitivity", *cell, k), cell.n)
        task = CalibrationTask.of(predictions(outcome.astype(int), score), get_notion("binary"))
        known = decisions.BinaryDecisions.of(task, decisions.AT)
        _, low, high, *_ = decisions.regret_intervals(known, lines, 0.95)
        held = (low <= truth + 1e-9) & (truth <= high + 1e-9)
        found.append((held.mean(), (high - low).mean()))
    return dict(zip(("regret coverage", "regret width"), np.array(found).T, strict=True))


def regret_test(cell: Cell, count: int) -> Figures:
    found = [calibrant.regret(y, s, 0.3, rng=k) for k, (y, s, _) in enumerate(data_sets(cell, count))]
    low, high, p = np.array([(each.low, each.high, each.p_value) for each in found]).T
    return {"regret coverage": low <= 0, "regret width": high - low, "regret rejection": p <= 0.05}


@cache
def true_regret(family: str) -> Array:
    return decisions.true_regret(decisions.family_of(family), decisions.AT, 200_000)


def matrix_regret(cell: Cell, count: int) -> Figures:
    truth, found = decisions.one_cell_of_rows(decisions.Several(cell.family, 3, cell.n, count))
    held = (found[:, 1] <= truth + 1e-9) & (truth <= found[:, 2] + 1e-9)
    return {"regret coverage": held, "regret width": found[:, 2] - found[:, 1]}


def canonical_error(cell: Cell, count: int) -> Figures:
    task = (*canonical.FAMILIES[cell.family], 3, cell.n, count, "sensitivity")
    found, (truth, *_), _ = canonical.one_cell(task)
    value, low, high = found[0].T
    held = (low <= truth + 1e-12) & (truth <= high)
    off, width = of_truth("canonical MAE", truth), of_truth("canonical width", truth)
    return {off: np.abs(value - truth), "canonical coverage": held, width: high - low}


_BOTH = (
    Cell("square", 200), Cell("step", 1000), Cell("rare", 2000), Cell("twenty", 500), Cell("tree", 1000),
    Cell("two-way-lookup", 500), Cell("dirichlet-5", 300, 1.0, "classwise"), Cell("square", 500, 0.0),
    Cell("power", 1000, 0.0), Cell("rare", 2000, 0.0), Cell("calibrated-lookup", 1000),
)  # fmt: skip
_ERROR = (
    Cell("flat", 1000, 0.3), Cell("top", 2000), Cell("rounded", 1000), Cell("twenty", 500, 0.0),
    Cell("dirichlet-5", 300, 0.0, "classwise"),
)  # fmt: skip
_CURVE = (
    ("steep", 50), ("power", 500), ("glm", 2000), ("steep", 200), ("even", 500), ("step", 2000),
    ("prior-43", 1000),
)  # fmt: skip
_MAP = (
    ("right", 200),
    ("too sure", 50),
    ("too sure", 500),
    ("shifted", 200),
    ("beta", 1000),
    ("rare", 2000),
    ("step", 2000),
)
_CLASSES = ("right", 500), ("too sure", 300), ("each class its own", 1000), ("across", 500)
_REGRET = (
    ("square", 300),
    ("flat", 1000),
    ("step", 1000),
    ("rare", 1000),
    ("twenty", 300),
    ("calibrated", 300),
)
_CANONICAL = ("right", 300), ("pull", 300), ("too sure", 1000), ("vector", 300), ("local", 1000)


class Battery(NamedTuple):
    title: str
    measure: Callable[[Cell, int], Figures]
    cells: tuple[Cell, ...]
    count: int  # data sets of a cell in the coarse stage
    intervals: bool = True  # whether its data sets have intervals


def _cells(*pairs: tuple[str, int]) -> tuple[Cell, ...]:
    return tuple(Cell(*pair) for pair in pairs)


BATTERIES = {
    "error": Battery("`ece` (`exact.py`, `pipelines.py`)", error, (*_BOTH, *_ERROR), 15, False),
    "interval": Battery("`estimate` (`coverage.py`, `pipelines.py`)", interval, _BOTH, 2),
    "canonical test": Battery(
        "`estimate(notion=\"canonical\")`", interval, (Cell("dirichlet-3", 200, 0.0, "canonical"),), 2
    ),
    "curve": Battery("`reliability_curve` (`curve_band.py`)", curve, _cells(*_CURVE, ("twenty", 500)), 5),
    "map": Battery("`Calibrator`, binary (`maps.py`)", binary_map, _cells(*_MAP, ("seven values", 500)), 6),
    "multiclass map": Battery(
        "`Calibrator`, four classes (`maps.py`)", multiclass_map, _cells(*_CLASSES), 5, False
    ),
    "vector map": Battery(
        "`Calibrator`, vector and matrix scaling (`maps.py`)", multiclass_map,
        (Cell("each class its own", 1000, 1.0, "vector"), Cell("across", 500, 1.0, "matrix")), 5, False,
    ),
    "clusters": Battery(
        "`estimate(cluster=...)`", clusters,
        (Cell("square", 400), Cell("step", 1000), Cell("power", 400, 0.0)), 4,
    ),
    "regret": Battery("decision regret at thresholds (`decisions.py`)", regret, _cells(*_REGRET), 3),
    "matrix regret": Battery(
        "decision regret with a cost matrix (`decisions.py`)", matrix_regret,
        _cells(("right", 300), ("too sure", 300), ("vector", 300)), 3,
    ),
    "regret test": Battery("`regret`", regret_test, (Cell("flat", 300, 0.0),), 2),
    "canonical": Battery("canonical calibration (`canonical.py`)", canonical_error, _cells(*_CANONICAL), 5),
}  # fmt: skip
# Measured for the fields of each settings class; those of other classes are not measured.
MEASURED = {
    "PriorSettings": ("error", "interval"),
    "IntervalSettings": ("interval", "canonical test"),
    "TestSettings": ("interval", "canonical test"),
    "LogOddsSettings": ("curve", "map"),
    "CurveSettings": ("curve",),
    "MapSettings": ("vector map",),
    "ClusterSettings": ("clusters",),
    "SoftmaxSettings": ("canonical", "canonical test", "multiclass map"),
    "DecisionSettings": ("regret", "matrix regret", "regret test"),
}


def figures(batteries: tuple[str, ...], times: float) -> dict[str, list[Figures]]:
    """Return the figures of each cell of some batteries, with so many times the data sets."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            name: [BATTERIES[name].measure(cell, max(2, round(times * BATTERIES[name].count)))
                   for cell in BATTERIES[name].cells]
            for name in batteries
        }  # fmt: skip


def instances() -> dict[str, Any]:
    """Return the instances of settings classes by their names in the module."""
    return {name: each for name, each in vars(settings).items()
            if dataclasses.is_dataclass(each) and not isinstance(each, type)}  # fmt: skip

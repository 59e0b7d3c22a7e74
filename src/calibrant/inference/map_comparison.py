"""Cross-validated comparison of calibration maps with the identity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Annotated, Any, ClassVar

import numpy as np

from calibrant import inputs
from calibrant.curves import Progress
from calibrant.inference.comparison import compare_tasks
from calibrant.inference.estimate import count_steps
from calibrant.inference.interval_estimate import IntervalEstimate
from calibrant.inference.multiplicity import each_level
from calibrant.inputs import ROUNDING, InputError, Predictions, Seed, Serializable
from calibrant.inputs.codec import Bounds, Count, Level, Number
from calibrant.inputs.printed import Block, Printed, Table
from calibrant.inputs.wording import about, counted, percent, with_ends
from calibrant.maps.folds import cross_fitted, methods_for, rows_in_folds
from calibrant.maps.methods import canonical_name
from calibrant.parallel import one_blas_thread
from calibrant.score_data import Array
from calibrant.tasks import CalibrationTask, Notion, get_notion

# Name of the map that leaves the scores unchanged, the baseline of all comparisons.
IDENTITY = "identity"


@dataclass(frozen=True)
class HeldOutLoss(IntervalEstimate):
    """A loss or an error of a map; lower is better.

    Attributes
    ----------
    value, low, high : float
    difference : IntervalEstimate or None
        Difference from the identity, paired by row or cluster; negative if the map is better. None if one of
        the two is infinite. The intervals of the log loss are simultaneous for all methods (Bonferroni).
    """

    difference: IntervalEstimate | None


@dataclass(frozen=True)
class MapLosses(Serializable):
    """Losses of a map on held-out rows.

    Attributes
    ----------
    method : str
    log_loss, brier, ece : HeldOutLoss
    infinite_rows : int
        Rows with infinite log loss: the map gave probability 0 to the observed class.
    from_best : IntervalEstimate or None
        Log loss minus the lowest log loss of all methods, paired by row or cluster; None if it is infinite.
        The intervals are simultaneous for all methods (Bonferroni).
    """

    method: str
    log_loss: HeldOutLoss
    brier: HeldOutLoss
    ece: HeldOutLoss
    infinite_rows: Count
    from_best: IntervalEstimate | None


@dataclass(frozen=True)
class MapComparison(Printed, Serializable):
    """Cross-validated comparison of calibration maps; see `calibrant.compare_calibrators`.

    Attributes
    ----------
    table : tuple of MapLosses
        One entry for each method, sorted by log loss.
    notion : str
        Notion of the calibration error.
    label : object
        The class that the calibration error is about; None for notions of no single class.
    rows, folds : int
    level : float
        Level of all intervals.
    seed : int
        The same call with `rng=seed` gives the same comparison, in any order of the rows.
    clusters : int or None
        Number of clusters, if cluster ids were given.

    See Also
    --------
    compare_calibrators : Returns this result.

    Examples
    --------
    >>> import calibrant
    >>> score, outcome = [0.2, 0.4, 0.7, 0.9] * 30, [0, 0, 1, 1] * 30
    >>> comparison = calibrant.compare_calibrators(score, outcome, methods=["sigmoid"])
    >>> [row.method for row in comparison]
    ['sigmoid', 'identity']
    """

    _computed: ClassVar[tuple[str, ...]] = ("best", "best_group")
    table: tuple[MapLosses, ...]
    notion: str
    label: Any
    rows: Annotated[int, Bounds(2)]
    folds: Annotated[int, Bounds(2)]
    level: Level
    seed: Count
    clusters: Number | None = None

    @property
    def best(self) -> str | None:
        """The method whose log loss is significantly lower than that of all others; None without one."""
        return self.best_group[0] if len(self.best_group) == 1 else None

    @property
    def best_group(self) -> tuple[str, ...]:
        """The method of the lowest log loss, and those whose log loss is not significantly higher.

        The identity is left out if any method is significantly better. The group is empty if the log loss of
        every method is infinite.
        """
        near = [row for row in self.table if row.from_best is not None and row.from_best.low <= ROUNDING]
        return tuple(row.method for row in near if row.method != IDENTITY or not self.better)

    @property
    def better(self) -> tuple[str, ...]:
        """The methods whose log loss is significantly lower than that of the identity."""
        differences = {row.method: row.log_loss.difference for row in self.table if row.method != IDENTITY}
        return tuple(name for name, each in differences.items() if each is not None and each.high < 0)

    def __getitem__(self, method: str) -> MapLosses:
        method = canonical_name(method)
        inputs.check_choice("method", method, [row.method for row in self.table])
        return next(row for row in self.table if row.method == method)

    def __iter__(self) -> Iterator[MapLosses]:
        return iter(self.table)

    def _printed(self) -> Iterator[Block]:
        yield from _conclusion(self)
        interval = f"{percent(self.level)} interval"
        for title, name in (("log loss", "log_loss"), ("Brier score", "brier"), ("ECE", "ece")):
            change, differences = "minus identity", self._differences(name)
            if name == "log_loss" and self.best_group and self[IDENTITY].infinite_rows:
                change, differences = f"minus {self.best_group[0]}", [row.from_best for row in self.table]
                differences[0] = None
            rows = []
            for row, difference in zip(self.table, differences, strict=True):
                figure: HeldOutLoss = getattr(row, name)
                value = _cells(figure)
                if not np.isfinite(figure.value):
                    value = ["infinite", f"({counted(row.infinite_rows, 'row')})"]
                rows.append(
                    [row.method, *value, *(["", ""] if difference is None else _cells(difference, "+"))]
                )
            yield Table(["method", title, interval, change, interval], rows, names=1)
        yield "identity", "the scores as they are"
        unit = "row" if self.clusters is None else "cluster"
        yield "differences", f"paired by {unit}; those of log loss are simultaneous over all methods"
        yield "notion of the ECE", about(self.notion, self.label)
        size = counted(self.rows, "row")
        if self.clusters is not None:
            size += f" of {counted(self.clusters, 'cluster')}"
        yield "data", f"{size} in {self.folds} folds, seed {self.seed}"

    def _differences(self, name: str) -> list[IntervalEstimate | None]:
        """Return the differences of a loss from the identity; None for the identity itself."""
        return [None if row.method == IDENTITY else getattr(row, name).difference for row in self.table]

    def __repr__(self) -> str:
        return f"MapComparison(best {' or '.join(self.best_group)} of {len(self.table)}, {self.rows} rows)"

    def _check_fields(self) -> None:
        """Raise an error for an empty table or an unknown notion."""
        get_notion(self.notion)
        if not self.table:
            raise InputError("table", "not be empty")


@one_blas_thread()
def compare_maps(
    data: Predictions,
    notion: Notion,
    *,
    methods: Sequence[str] | None = None,
    cv: int = 5,
    level: float = 0.95,
    rng: Seed = 0,
    progress: Progress | None = None,
) -> MapComparison:
    """Compare maps by cross-validation; see `calibrant.compare_calibrators`."""
    level, cv, seed = inputs.level(level), inputs.positive_int("cv", cv, 2), inputs.seeded(rng)
    names = _names(data, methods)
    data, fold = rows_in_folds(data, cv, np.random.default_rng(seed))
    done, total = 0, len(names) * (1 + count_steps(CalibrationTask.of(data, notion)))

    def step() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)

    mapped = {}
    for name in names:
        mapped[name] = data if name == IDENTITY else cross_fitted(data, name, fold)
        step()
    tasks = {name: CalibrationTask.of(mapped_data, notion) for name, mapped_data in mapped.items()}
    errors = compare_tasks(tasks, IDENTITY, level=level, rng=seed, step=step)
    losses = {name: log_loss_of_rows(mapped_data) for name, mapped_data in mapped.items()}
    means = {name: mean_of_rows(data, loss, level) for name, loss in losses.items()}
    lowest = min(means, key=lambda name: means[name].value)
    simultaneous_level = each_level(level, len(names) - 1)
    table = []
    for name, mapped_data in mapped.items():
        log_loss = _held_out_loss(
            means[name], _paired(data, losses[name], losses[IDENTITY], simultaneous_level)
        )
        score, identity_score = brier_score_of_rows(mapped_data), brier_score_of_rows(data)
        brier = _held_out_loss(mean_of_rows(data, score, level), _paired(data, score, identity_score, level))
        estimate, ece_difference = errors.estimates[name], errors.differences.get(name)
        change = (
            IntervalEstimate(0.0, 0.0, 0.0)
            if ece_difference is None
            else IntervalEstimate(ece_difference.value, ece_difference.low, ece_difference.high)
        )
        error = HeldOutLoss(estimate.value, estimate.low, estimate.high, change)
        infinite = _count_rows(data, np.isinf(losses[name]))
        from_best = _paired(data, losses[name], losses[lowest], simultaneous_level)
        table.append(MapLosses(name, log_loss, brier, error, infinite, from_best))
    table.sort(key=lambda row: (row.log_loss.value, row.infinite_rows))
    label, folds = tasks[IDENTITY].label, int(fold.max()) + 1
    clusters = tasks[IDENTITY].clusters
    return MapComparison(tuple(table), notion.name, label, data.n_rows, folds, level, seed, clusters)


def _count_rows(data: Predictions, which: Array) -> int:
    """Return the number of these rows, with counts."""
    counted = data.weight is not None and data.counts
    return int(data.weight[which].sum()) if counted else int(np.count_nonzero(which))  # type: ignore[index]


def log_loss_of_rows(data: Predictions) -> Array:
    """Return the log loss of each row."""
    label = data.code.astype(np.intp)
    score = data.score.astype(np.float64, copy=False)
    probability = (
        np.where(label, score, 1 - score) if score.ndim == 1 else score[np.arange(len(label)), label]
    )
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log(probability))


def brier_score_of_rows(data: Predictions) -> Array:
    """Return the Brier score of each row: of the positive class, or summed over more than two classes."""
    label = data.code.astype(np.intp)
    score = data.score.astype(np.float64, copy=False)
    if score.ndim == 1:
        return np.asarray((score - label) ** 2)
    square = (score**2).sum(axis=1) - 2 * score[np.arange(len(label)), label] + 1
    return np.asarray(square / 2 if score.shape[1] == 2 else square)


def mean_of_rows(data: Predictions, values: Array, level: float) -> IntervalEstimate:
    """Return the mean over rows with its t interval; residuals are summed by cluster if there are any.

    >>> data = inputs.predictions([0, 1, 1, 0], [0.2, 0.7, 0.8, 0.1])
    >>> mean_of_rows(data, np.array([1.0, 2.0, 3.0, 2.0]), 0.95)
    IntervalEstimate(value=2.0, low=0.7007..., high=3.2992...)
    """
    from scipy.special import stdtrit

    weight = np.ones(len(values)) if data.weight is None else data.weight.astype(np.float64)
    weight = weight / weight.max()
    total, counts = weight.sum(), data.weight is not None and data.counts
    mean = float(weight @ values / total)
    if not np.isfinite(mean):
        return IntervalEstimate(mean, mean, mean)
    deviation = weight * (values - mean)
    if data.cluster is not None:
        deviation = np.bincount(data.cluster, deviation)
        n_units: float = deviation.size
        square = deviation @ deviation
    elif counts:
        assert data.weight is not None
        n_units = float(data.weight.sum())
        square = deviation @ (values - mean) / data.weight.max()
    else:
        n_units = float(total**2 / (weight @ weight))
        square = deviation @ deviation
    if n_units < 2:
        return IntervalEstimate(mean, -inf, inf)
    margin = float(stdtrit(n_units - 1, (1 + level) / 2) * np.sqrt(square * n_units / (n_units - 1)) / total)
    return IntervalEstimate(mean, mean - margin, mean + margin)


def _held_out_loss(value: IntervalEstimate, difference: IntervalEstimate | None) -> HeldOutLoss:
    return HeldOutLoss(value.value, value.low, value.high, difference)


def _paired(data: Predictions, loss: Array, reference: Array, level: float) -> IntervalEstimate | None:
    """Return the mean difference of two losses, by row or cluster; None if one of them is infinite."""
    if not (np.isfinite(loss).all() and np.isfinite(reference).all()):
        return None
    return mean_of_rows(data, loss - reference, level)


def _names(data: Predictions, methods: Sequence[str] | None) -> list[str]:
    """Return the methods, with the identity first."""
    known = methods_for(data)
    if methods is None:
        return known
    if isinstance(methods, str) or not list(methods):
        raise InputError("methods", "be names of maps", methods)
    methods = [canonical_name(name) for name in methods]
    for name in methods:
        inputs.check_choice("methods", name, known)
    return list(dict.fromkeys([IDENTITY, *methods]))


def _conclusion(comparison: MapComparison) -> list[str]:
    """Return lines about the best methods, and about those with infinite log loss."""
    group, rows = comparison.best_group, comparison.table
    if not group:
        lines = ["no best method: the log loss of every method is infinite"]
    elif IDENTITY in group:
        lines = ["no method has a significantly lower log loss than the scores as they are"]
        if len(group) == 1 < len(rows):
            lines = ["best: identity, the scores as they are; all others have a higher log loss"]
    elif comparison.best is not None:
        lines = [f"best: {comparison.best}, with a significantly lower log loss than all others"]
    else:
        lines = [f"no single best method: {len(group)} do not differ significantly in log loss"]
        if comparison.better:
            lines += [f"lower log loss than the scores as they are: {', '.join(comparison.better)}"]
    if len(group) > 1:
        lines += [f"best group: {', '.join(group)}"]
    infinite = [f"{row.method} ({counted(row.infinite_rows, 'row')})" for row in rows if row.infinite_rows]
    if infinite and group:
        lines += [f"log loss is infinite, as a class of probability 0 occurred: {', '.join(infinite)}"]
    return lines


def _cells(number: IntervalEstimate, sign: str = "") -> list[str]:
    value, low, high = with_ends(number.value, number.low, number.high, sign)
    return [value, f"{low} to {high}"]

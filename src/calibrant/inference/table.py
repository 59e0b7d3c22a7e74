"""Estimates of many cells of rows (groups, or models crossed with benchmarks) and their macro average."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from calibrant import inputs
from calibrant.curves.shown import Drawn
from calibrant.inference.clusters import by_cluster
from calibrant.inference.comparison import contributions
from calibrant.inference.estimate import estimate
from calibrant.inference.interval_estimate import IntervalBounds, IntervalEstimate, interval_deviate
from calibrant.inference.multiplicity import each_level, false_discovery, refine_tests
from calibrant.inference.null import DATA_SETS
from calibrant.inference.result import NAMES, Estimate, p_text
from calibrant.inputs import InputError, Predictions, Serializable
from calibrant.inputs.codec import Level, Probability, check_lengths
from calibrant.inputs.printed import Block, Table, data_frame
from calibrant.inputs.wording import about, count, few_of, number, percent, size_name, with_ends
from calibrant.parallel import one_blas_thread, parallel_map
from calibrant.score_data import Array
from calibrant.settings import REPORT
from calibrant.tasks import CalibrationTask, Notion, get_notion

# Cells that are printed; more are in `to_frame`.
LISTED = 40
MACRO = "macro average"
# Columns of `to_frame` beside those of the keys.
NUMBERS = ("value", "low", "high", "expected", "p_value", "p_adjusted", "n", "clusters")
_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_LATEX |= {character: "\\" + character for character in "&%$#_{}"}


@dataclass(frozen=True)
class EstimateTable(Drawn, Serializable):
    """Calibration errors of cells of rows, such as models crossed with benchmarks.

    Attributes
    ----------
    columns : tuple of str
        Names of the columns that define the cells.
    keys : tuple of tuples
        Values of the columns in each cell, in order. Values that JSON cannot hold are saved as text.
    estimates : tuple of Estimate
        Estimate of each cell.
    p_adjusted : tuple of float
        p-values adjusted for the false discovery rate among all cells (Benjamini and Hochberg).
    macro : IntervalEstimate
        Unweighted mean of the errors of all cells. Its interval is at `level` by itself.
    level : float
        Confidence level.
    simultaneous : bool
        Whether `level` is the level at which the intervals of all cells hold together (Bonferroni).
    cautions : tuple of str
        Warnings about the data, one sentence each.

    See Also
    --------
    estimate_by : Returns this result.

    Examples
    --------
    >>> import calibrant
    >>> country = ["no", "no", "se", "se"] * 30
    >>> table = calibrant.estimate_by([0, 1] * 60, [0.2, 0.7] * 60, by={"country": country})
    >>> table.columns
    ('country',)
    >>> table.keys
    (('no',), ('se',))
    """

    columns: tuple[str, ...]
    keys: tuple[tuple[Any, ...], ...]
    estimates: tuple[Estimate, ...]
    p_adjusted: tuple[Probability, ...]
    macro: IntervalEstimate
    level: Level
    simultaneous: bool = False
    cautions: tuple[str, ...] = ()
    _drawn_by = "groups"

    @property
    def cells(self) -> Mapping[tuple[Any, ...], Estimate]:
        """The estimate of each cell by its key, a tuple with a value for each column."""
        return MappingProxyType(dict(zip(self.keys, self.estimates, strict=True)))

    @property
    def names(self) -> tuple[str, ...]:
        """The key of each cell as text."""
        return tuple(", ".join(map(str, key)) for key in self.keys)

    def to_frame(self) -> Any:
        """Return a data frame with a row for each cell, of polars or, if that is not installed, of pandas."""
        rows = [
            (*key, each.value, each.low, each.high, each.null.mean, each.p_value, p, each.n, each.clusters)
            for key, each, p in zip(self.keys, self.estimates, self.p_adjusted, strict=True)
        ]
        data = {name: [row[k] for row in rows] for k, name in enumerate((*self.columns, *NUMBERS))}
        return data_frame(data)

    def to_latex(self) -> str:
        """Return a LaTeX table in the style of the package booktabs."""
        head, *rows = ([_latex(cell) for cell in row] for row in (self._head, *self._rows()))
        *body, macro = (f"{' & '.join(row)} \\\\" for row in rows)
        alignment = "l" * len(self.columns) + "r" * (len(head) - len(self.columns))
        lines = [f"\\begin{{tabular}}{{{alignment}}}", r"\toprule", f"{' & '.join(head)} \\\\", r"\midrule"]
        return "\n".join([*lines, *body, r"\midrule", macro, r"\bottomrule", r"\end{tabular}", ""])

    def to_markdown(self) -> str:
        """Return a Markdown table."""
        return markdown_of(self._head, self._rows(), len(self.columns))

    def __repr__(self) -> str:
        value, low, high = with_ends(self.macro.value, self.macro.low, self.macro.high)
        cells = f"{len(self.keys)} cells by {', '.join(self.columns)}"
        return f"EstimateTable({cells}; macro {value} [{low}, {high}])"

    @property
    def _head(self) -> list[str]:
        norm = NAMES[self.estimates[0].norm].replace("calibration error", "ECE")
        unweighted = all(size_name(each.n) == "rows" for each in self.estimates)
        size = "n" if unweighted else "effective n"
        return [*self.columns, size, norm, f"{percent(self.level)} interval", "expected", "p", "adjusted p"]

    def _rows(self, selected: Sequence[int] | None = None) -> Iterator[list[str]]:
        """Yield the text of some cells, by default of all, and of the macro average."""
        for k in range(len(self.keys)) if selected is None else selected:
            each = self.estimates[k]
            value, low, high = with_ends(each.value, each.low, each.high)
            p = p_text(each).removeprefix("p ").removeprefix("= "), f"{self.p_adjusted[k]:.2g}"
            texts = count(round(each.n)), value, f"{low} to {high}", number(each.null.mean), *p
            yield [*map(str, self.keys[k]), *texts]
        value, low, high = with_ends(self.macro.value, self.macro.low, self.macro.high)
        yield [MACRO, *[""] * len(self.columns), value, f"{low} to {high}", "", "", ""]

    def _printed(self) -> Iterator[Block]:
        first, shown = self.estimates[0], list(range(len(self.keys)))
        if len(shown) > LISTED:
            shown = sorted(sorted(shown, key=lambda k: -self.estimates[k].value)[:LISTED])
        yield Table(self._head, list(self._rows(shown)), names=len(self.columns))
        if left_out := len(self.keys) - len(shown):
            yield f"{left_out:,} cells with smaller errors are not shown; to_frame() has all."
        yield "intervals", "simultaneous for all cells" if self.simultaneous else "of each cell by itself"
        yield "expected", "error expected if calibrated"
        yield "test", "H0: the model is calibrated; adjusted p for the false discovery rate"
        yield "notion", about(first.notion, first.label)
        yield "estimator", first.estimator
        yield from self.cautions

    def _check_fields(self) -> None:
        """Raise an error unless every cell has a key of its own and an estimate."""
        check_lengths(self, len(self.keys), "estimates", "p_adjusted")
        same_lengths = all(len(key) == len(self.columns) for key in self.keys)
        if not self.keys or len(set(self.keys)) < len(self.keys) or not same_lengths:
            rule = f"hold different cells, at least one, of {len(self.columns)} values each"
            raise InputError("keys", rule, self.keys)
        first = self.estimates[0]
        IntervalBounds(0, get_notion(first.notion).max_error(first.norm)).check("macro", self.macro)


def markdown_of(head: Sequence[str], rows: Iterable[Sequence[str]], names: int) -> str:
    """Return a Markdown table whose first columns hold names."""
    alignment = [":---"] * names + ["---:"] * (len(head) - names)
    first, *lines = (f"| {' | '.join(map(_markdown, row))} |" for row in (head, *rows))
    return "\n".join([first, f"| {' | '.join(alignment)} |", *lines, ""])


def _latex(text: str) -> str:
    escaped = "".join(_LATEX.get(character, character) for character in text)
    return escaped.replace("<=", r"$\le$")


def _markdown(text: str) -> str:
    for character, written in (("<=", "≤"), ("\\", "\\\\"), ("|", "\\|"), ("<", "&lt;")):
        text = text.replace(character, written)
    return " ".join(text.split())


class _Cell(NamedTuple):
    """What is kept of a cell after its estimate."""

    estimate: Estimate
    cautions: tuple[str, ...]
    one_class: bool
    clusters: Array  # numbers of the clusters among those of all rows
    direction: Array  # centred contributions by cluster, with sum of squares 1; empty if they do not vary


@one_blas_thread()
def estimate_table(
    data: Predictions,
    notion: Notion,
    cells: tuple[tuple[str, ...], list[tuple[Any, ...]], Array],
    *,
    level: float,
    rng: Any,
    n_resamples: int | None,
    simultaneous: bool,
    step: Callable[[], object] = lambda: None,
    **options: Any,
) -> EstimateTable:
    """Estimate the error of every cell; see `calibrant.estimate_by`.

    Parameters
    ----------
    data, notion
        All rows, and the notion.
    cells : tuple
        Names of the columns, the keys of the cells and the number of the cell of each row.
    """
    columns, keys, code = cells
    level, seed = inputs.level(level), inputs.seeded(rng)
    options |= {"level": each_level(level, len(keys)) if simultaneous else level, "rng": seed}
    rows_of_cell = rows_by_code(code, len(keys))
    cluster = data.cluster if data.cluster is not None and _linked(data.cluster, code) else None

    def cell(k: int, size: int | None = n_resamples, cluster: Array | None = cluster) -> _Cell:
        task = CalibrationTask.of(inputs.select_rows(data, rows_of_cell[k]), notion)
        with inputs.within(f"cell {', '.join(map(str, keys[k]))}"):
            result = estimate(task, n_resamples=size, **options)
        cautions = tuple(caution for caution in result.cautions if caution not in task.cautions)
        clusters, direction = (
            (_NONE, _NONE) if cluster is None else _direction(task, cluster[rows_of_cell[k]])
        )
        step()
        return _Cell(result, cautions, _one_class(task), clusters, direction)

    # Tasks are not kept: the posteriors of thousands of cells would fill the memory.
    results = list(parallel_map(cell, range(len(keys))))
    estimates = [each.estimate for each in results]
    if n_resamples is None:
        estimates = refined(estimates, lambda k, size: cell(k, size, None).estimate, level)
    ratio = interval_deviate(level) / interval_deviate(options["level"])
    directions = [(each.clusters, each.direction) for each in results]
    adjusted = tuple(false_discovery([each.p_value for each in estimates]))
    macro, sizes = macro_average(estimates, directions, ratio), [len(rows) for rows in rows_of_cell]
    table = EstimateTable(columns, tuple(keys), tuple(estimates), adjusted, macro, level, simultaneous)
    return replace(table, cautions=tuple(_cautions(data, results, sizes, table.names)))


_NONE = np.empty(0)


def rows_by_code(code: Array, count: int) -> list[Array]:
    """Return the rows of each code from 0 on, in their order.

    >>> [rows.tolist() for rows in rows_by_code(np.array([1, 0, 1]), 2)]
    [[1], [0, 2]]
    """
    order = np.argsort(code, kind="stable")
    return np.split(order, np.cumsum(np.bincount(code, minlength=count))[:-1])


def refined(
    estimates: Sequence[Estimate], with_draws: Callable[[int, int], Estimate], level: float
) -> list[Estimate]:
    """Repeat tests of several estimates with more data sets where these decide after the adjustment.

    `with_draws` repeats the estimate with this number, with so many data sets.
    """
    # The signs of few clusters have all been flipped already.
    simulated = {k: each for k, each in enumerate(estimates) if each.n_resamples is not None}
    if len(estimates) < 2 or not simulated:
        return list(estimates)
    tests: dict[str, Any] = {"tests": len(estimates), "alpha": 1 - level, "size": DATA_SETS}
    more = refine_tests(simulated, lambda each: each.p_value, with_draws, **tests)
    return [more.get(k, each) for k, each in enumerate(estimates)]


def macro_average(
    estimates: Sequence[Estimate], directions: Sequence[tuple[Array, Array]], ratio: float = 1.0
) -> IntervalEstimate:
    """Return the mean of several errors with its interval.

    The random parts of the margins add up as standard deviations do (MOVER, Zou and Donner), with the
    correlation of cells that share clusters. Biases add up linearly: that of a small error, which cannot be
    estimated to be below zero, and that of an estimate that is not in the middle of its interval.

    Parameters
    ----------
    estimates : sequence of Estimate
    directions : sequence of pairs of arrays
        Clusters of each cell, and its contributions by cluster with sum of squares 1; both empty for a cell
        that is independent of the others.
    ratio : float
        Normal quantile at the level of the result over that at the level of the estimates.
    """
    value, low, high, expected = np.array([(e.value, e.low, e.high, e.null.mean) for e in estimates]).T
    # A calibrated cell has this error on average; the bias falls as the true error grows.
    bias = np.hypot(low, expected) - low
    bias = np.where(low > 0, np.minimum(bias, value - low), bias)
    raised = np.maximum(low + high, 2 * value) / 2
    # An interval that starts at 0 says nothing about how much lower the estimate could have been.
    lower = np.where(low > 0, value - low - bias, high - value)
    upper = high - raised
    margins = [ratio * _norm(arm / len(estimates), directions) for arm in (lower, upper)]
    shift = max(0.0, float(np.mean((low + high) / 2 - value)))
    middle = float(value.mean())
    return IntervalEstimate(
        middle,
        # The mean of lower ends would not do: none is negative, so those above zero do not cancel out.
        min(middle, max(middle - float(bias.mean()) - margins[0], float(low[0]) if low.size == 1 else 0.0)),
        max(middle, min(middle + shift + margins[1], float(high.mean()))),
    )


def _norm(arms: Array, directions: Sequence[tuple[Array, Array]]) -> float:
    """Return the length of the sum of vectors of these lengths, at the angles that the correlations say."""
    size = max((int(clusters.max()) + 1 for clusters, _ in directions if clusters.size), default=0)
    total, alone = np.zeros(size), 0.0
    for arm, (clusters, direction) in zip(arms.tolist(), directions, strict=True):
        if clusters.size:
            total[clusters] += arm * direction
        else:
            alone += arm * arm
    return float(np.sqrt(total @ total + alone))


def _linked(cluster: Array, code: Array) -> bool:
    """Return whether a cluster has rows in several cells."""
    pairs = np.unique(np.stack([cluster, code]), axis=1)
    return pairs.shape[1] > int(cluster.max()) + 1


def _direction(task: CalibrationTask, cluster: Array) -> tuple[Array, Array]:
    """Return the clusters of a cell and its contributions by cluster, with sum of squares 1."""
    clusters, position = np.unique(cluster, return_inverse=True)
    weight = None if task.weight is None else task.weight.astype(np.float64)
    sums = by_cluster(contributions(task), position, weight)
    length = float(np.sqrt(sums @ sums))
    return (clusters, sums / length) if length > 0 else (_NONE, _NONE)


def _one_class(task: CalibrationTask) -> bool:
    """Return whether all rows have the outcome, or none has."""
    if task.notion.canonical or task.notion.classwise:
        return False
    frequency = float(task.problems[0].bins(np.empty(0)).frequency[0])
    return min(frequency, 1 - frequency) <= 0


def _cautions(
    data: Predictions, results: Sequence[_Cell], sizes: Sequence[int], names: Sequence[str]
) -> Iterator[str]:
    """Yield cautions about the data, and about cells by name."""
    yield from data.cautions
    sentences: dict[str, list[str]] = {}
    few, single = f"Fewer than {REPORT.few_group_rows} rows", "All rows have the same outcome"
    for name, each, size in zip(names, results, sizes, strict=True):
        about_cell = ((few,) if size < REPORT.few_group_rows else ()) + ((single,) if each.one_class else ())
        for caution in (*about_cell, *each.cautions):
            sentences.setdefault(caution, []).append(name)
    for sentence, cells in sentences.items():
        yield f"{sentence.removesuffix('.')}: {few_of(cells)}."

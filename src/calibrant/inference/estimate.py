"""Estimate the calibration error of a calibration task, with interval, null distribution and test.

This module combines the parts: the interval (docs/methods/confidence-intervals.md), the test
(docs/methods/calibration-test.md) and the adjustment for clusters (docs/methods/clusters.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from calibrant import inputs
from calibrant.curves import ByClass
from calibrant.estimators import Estimator, Norm, resolve
from calibrant.estimators.base import errors_of
from calibrant.inference import classes
from calibrant.inference import interval as intervals
from calibrant.inference import null as nulls
from calibrant.inference.canonical import estimate_canonical, estimate_two_classes, with_named_estimator
from calibrant.inference.clusters import (
    ClusteredNull,
    CorrelatedRows,
    by_cluster,
    flipped_rows,
)
from calibrant.inference.interval import ClusterAdjustment
from calibrant.inference.joint_labels import Labels, columns_of, in_canonical_order, label_sets, problem_order
from calibrant.inference.null import DATA_SETS
from calibrant.inference.result import Estimate
from calibrant.parallel import compute_once, one_blas_thread
from calibrant.posterior import Posterior, posterior_of
from calibrant.posterior.gap import cells_of
from calibrant.score_data import Array
from calibrant.score_data.draws import Outcomes
from calibrant.tasks import CalibrationTask, ClassRelation, ScoreVectors, cached_on_task
from calibrant.tasks.notions import combined

SINGLE_CLUSTER = (
    "All rows belong to a single cluster; they are treated as independent, so the interval does not include "
    "variation between clusters."
)
THIN_REPLICATION = (
    "Most scores that repeat are shared by 2 to 10 rows, and outcomes vary more between these scores than "
    "chance explains. Repeated measurements of the same case look like this too: if there are any, pass "
    "the ids of the cases as cluster (on the command line --cluster), or the error is overestimated."
)
# Smallest number of simulated data sets that a caller may ask for.
MIN_DATA_SETS = 99
# With more classes than this, fewer cells and data sets are simulated, which bounds the cost; see
# `calibrant.inference.classes`.
MANY = 20
# Scores that the dependence between classes is estimated from, which bounds the cost.
MAX_DEPENDENCE_SCORES = 1 << 22
# Data sets simulated over the first grid of true errors of one class of several.
CLASS_DATA_SETS = 800
# Smallest ratio of the deviation of a mean over classes to that of independent classes.
MIN_DEPENDENCE = 0.5


@one_blas_thread()
def estimate(
    task: CalibrationTask,
    *,
    estimator: Any = "auto",
    norm: Norm = "l1",
    level: float = 0.95,
    rng: Any = 0,
    each_level: float | None = None,
    step: Callable[[], object] | None = None,
    n_resamples: int | None = None,
) -> Estimate:
    """Estimate the calibration error of a calibration task.

    If only sums by class are available, as with a sketch, interval and p-value of the classwise notion are
    valid under any dependence between the classes.

    Parameters
    ----------
    task : CalibrationTask
        Data and notion.
    estimator, norm, level, rng, n_resamples
        As for `calibrant.estimate`.
    each_level : float, optional
        Confidence level of the intervals of single classes; by default `level`.
    step : callable, optional
        Called after each of more than `MANY` classes.
    """
    inputs.check_choice("norm", norm, task.notion.norms)
    level, seed = inputs.level(level), inputs.seeded(rng)
    each_level = level if each_level is None else inputs.level(each_level)
    if n_resamples is not None:
        n_resamples = inputs.positive_int("n_resamples", n_resamples, MIN_DATA_SETS)
    chosen = resolve(estimator, shared=task.notion.classwise, vectors=task.notion.canonical)
    if not chosen.measures_ece:
        rule = "estimate the ECE"
        raise inputs.InputError("estimator", rule, chosen, got=f"{chosen}, a different measure", advice="ece")
    plan = _Plan(chosen, norm, level, each_level, seed, step or (lambda: None), n_resamples)
    if task.notion.canonical:
        result = _estimate_canonical(task, plan)
    else:
        result = _estimate_classwise(task, plan) if task.notion.classwise else _estimate_single(task, plan)
    cautions = task.cautions
    if task.clusters == 1:
        cautions += (SINGLE_CLUSTER,)
    if not task.notion.canonical and task.clusters is None and posterior_of(task).thinly_repeated:
        cautions += (THIN_REPLICATION,)
    return replace(result, cautions=cautions)


def count_steps(task: CalibrationTask) -> int:
    """Return the number of progress steps: two for each of many classes, and one at the end."""
    size = task.notion.size(len(task.labels))
    return 1 + (2 * size if size > MANY else 0)


class ClassEstimates(ByClass[Estimate]):
    """Estimates of all classes; errors and p-values are available without intervals, which take longest.

    Attributes
    ----------
    errors : array
        The calibration error of each class.
    """

    def __init__(
        self, results: Mapping[Any, Any], errors: Array, tests: list[Callable[[], nulls.SimulatedNull]]
    ) -> None:
        super().__init__(results)
        self.errors, self._tests = errors, tests

    @property
    def p_values(self) -> list[float]:
        """The p-value of each class; the tests are computed at the first access."""
        return [test().p_value for test in self._tests]

    @property
    def worst_first(self) -> list[int]:
        """The positions of the classes, those with the largest errors first."""
        return [int(k) for k in np.argsort(-self.errors, kind="stable")]


@dataclass(frozen=True, eq=False)
class _Plan:
    """The validated arguments of `estimate`."""

    estimator: Estimator
    norm: Norm
    level: float
    each_level: float
    seed: int
    step: Callable[[], object]
    n_resamples: int | None

    @property
    def size(self) -> int:
        """Number of data sets simulated under H0."""
        return DATA_SETS if self.n_resamples is None else self.n_resamples


def _estimate_canonical(task: CalibrationTask, plan: _Plan) -> Estimate:
    """Estimate the error on the simplex."""
    options: dict[str, Any] = {
        "level": plan.level, "each_level": plan.each_level, "n_resamples": plan.n_resamples,
    }  # fmt: skip
    if len(task.labels) > 2:
        result = estimate_canonical(task, norm=plan.norm, seed=plan.seed, **options)
    else:
        options |= {"rng": plan.seed, "step": plan.step}
        result = estimate_two_classes(task, plan.norm, partial(estimate, **options))
    return with_named_estimator(task, result, plan.estimator, plan.seed)


def _estimate_single(task: CalibrationTask, plan: _Plan) -> Estimate:
    """Estimate the error of a single problem."""
    posterior = posterior_of(task)
    value = float(errors_of(task, plan.estimator, plan.norm, posterior)[0])
    null = _tests_by_problem(task, plan)[0]()
    interval = _interval_of_posterior if plan.estimator.from_posterior else _interval_of_problem
    ends, named_errors = interval(task, plan.estimator, plan.norm, plan.level, value)
    about = {"notion": task.notion.name, "label": task.label, "clusters": task.clusters}
    return _result(plan, task.n, value, ends, null, named_errors, posterior, **about)


def _interval_of_problem(
    task: CalibrationTask, estimator: Estimator, norm: Norm, level: float, value: float
) -> tuple[tuple[float, float], Array | None]:
    """Return the interval of a single problem and, for a named estimator, its estimates under H0."""
    posterior, (adjustment,) = posterior_of(task), ClusterAdjustment.of(task)
    (low, high), named_errors = _interval(estimator, norm, level, adjustment, posterior, value)
    # The posterior has the overall design effect, and the mean gap one of its own.
    widening = float(np.sqrt(adjustment.of_mean(level) / adjustment.design.effect))
    limit = intervals.mean_residual_limit(posterior, level, widening) if widening > 1 else 0.0
    return (low, min(max(high, limit), 1.0)), named_errors


# It depends neither on the seed nor on the number of data sets simulated for the test.
_interval_of_posterior = cached_on_task(_interval_of_problem)
_many_classes = cached_on_task(classes.Classes.of)


def _estimate_classwise(task: CalibrationTask, plan: _Plan) -> Estimate:
    """Estimate the error over all classes, and that of each class."""
    if len(task.labels) <= MANY:
        posterior = class_posterior = posterior_of(task)
        coarse, null = posterior.coarser(intervals.MAX_CELLS), _tests_of_few(task, plan)
    elif task.designs is None:
        many = _many_classes(task)
        posterior, coarse, class_posterior = many.posterior, many.coarse, many.coarse
        null = _tests_of_many(task, plan, many)
    else:
        rule = f"go with at most {MANY} classes for class-wise calibration"
        hint = "use confidence or binary"
        raise inputs.InputError("cluster", rule, got=f"{len(task.labels)} classes", hint=hint)
    adjustments = ClusterAdjustment.of(task)
    order = problem_order(task).tolist()
    errors = errors_of(task, plan.estimator, plan.norm, posterior)
    value = task.notion.combine(errors, plan.norm, task.shares)
    by_class = _by_class(plan, task, errors, adjustments, class_posterior, null.single_class)
    inflation = float(np.mean([each.tail_inflation(plan.level, plan.estimator) for each in adjustments]))
    spread = inflation * _dependence(task, posterior)
    options: dict[str, Any] = {"norm": plan.norm, "level": plan.level, "spread": spread}
    named_errors = None
    if plan.estimator.from_posterior:
        n = task.n / (float(np.mean([each.design.effect for each in adjustments])) * inflation**2)
        weighted = coarse.weighted(task.shares)
        ends = classes.interval(weighted, n, order, shared=plan.estimator.shared, **options)
        ends = min(ends[0], value), max(ends[1], value)
    else:
        problems = [adjustment.problem for adjustment in adjustments]
        ends, named_errors = intervals.interval_of_named(
            plan.estimator, problems, coarse, value, order=order, share=task.shares, **options
        )
    separate = task.notion.classes is ClassRelation.SEPARATE
    return _result(
        plan, task.n, value, ends, null.all_classes, named_errors, posterior, p_value=null.p_value,
        p_floor=null.p_floor, notion=task.notion.name, by_class=by_class,
        conservative=task.rows is None and not separate, clusters=task.clusters, share=task.shares,
    )  # fmt: skip


def _dependence(task: CalibrationTask, posterior: Posterior) -> float:
    """Return the ratio of the standard deviation of the mean over classes to that of independent classes."""
    if task.notion.classes is ClassRelation.SEPARATE:
        return 1.0
    free, clustered = task.notion.classes is ClassRelation.FREE, task.designs is not None
    most = float(np.sqrt(len(task.labels))) if free or clustered else classes.MAX_DEPENDENCE
    if task.rows is None:
        return most
    return min(
        most, class_dependence(posterior, task.rows, task.cluster if clustered else None, _counts(task))
    )


def _tests_of_few(task: CalibrationTask, plan: _Plan) -> classes.Nulls:
    """Test all classes together; single classes are tested when they are asked for."""
    single_class, rows = _tests_by_problem(task, plan), task.rows
    if rows is None:
        tests = [each() for each in single_class]
        errors = combined(np.stack([null.error for null in tests], axis=-1), plan.norm)
        # Bonferroni: valid under any dependence between the classes.
        p_value, p_floor = (
            min(1.0, len(tests) * min(getattr(null, name) for null in tests))
            for name in ("p_value", "p_floor")
        )
        return classes.Nulls(
            single_class, nulls.SimulatedNull(tests[0].test_statistic, errors, np.nan), p_value, p_floor
        )
    if task.designs is not None:
        all_classes = _clustered_test(task, plan.norm, plan.seed, plan.size).all_classes
    else:
        all_classes = _joint_test(task, plan.norm, plan.seed, plan.size)
    return classes.Nulls(single_class, all_classes, all_classes.p_value, all_classes.p_floor)


def _tests_of_many(task: CalibrationTask, plan: _Plan, class_posteriors: classes.Classes) -> classes.Nulls:
    """Test many classes: fewer data sets, and more for classes with small p-values."""
    rngs = [inputs.stream(plan.seed, rank) for rank in np.argsort(problem_order(task)).tolist()]
    parts = class_posteriors.coarse, class_posteriors.steps, class_posteriors.shares
    single_class = classes.SingleClassTests(*parts, plan.norm, rngs, 1 - plan.level, plan.n_resamples)
    if task.rows is None or task.notion.classes is not ClassRelation.EXCLUSIVE:
        dependence = _dependence(task, class_posteriors.posterior)
        return classes.independent(single_class, plan.norm, plan.step, dependence)
    labels = _simulated_coefficients(task, task.rows, class_posteriors, plan.seed)
    all_classes = classes.joint(
        class_posteriors.plain, [(classes.MANY_CLASS_DATA_SETS, labels)], plan.norm, plan.step
    )
    return classes.Nulls(single_class.each, all_classes, all_classes.p_value, all_classes.p_floor)


def _tests_by_problem(task: CalibrationTask, plan: _Plan) -> list[Callable[[], nulls.SimulatedNull]]:
    """Return functions that test each problem by itself; the test does not depend on the estimator."""
    if task.designs is not None:
        tests = _clustered_test(task, plan.norm, plan.seed, plan.size).single_class
        return [compute_once(lambda each=each: each) for each in tests]  # type: ignore[misc]
    return _independent_tests(task, plan.norm, plan.seed, plan.size)


@cached_on_task
def _independent_tests(
    task: CalibrationTask, norm: Norm, seed: int, size: int
) -> list[Callable[[], nulls.SimulatedNull]]:
    """Return functions that test each problem of independent rows."""
    names = np.argsort(problem_order(task)).tolist() if task.notion.classwise else ["alone"]
    return [
        nulls.lazy_test(each, norm, inputs.stream(seed, "null", name), size)
        for each, name in zip(task.residuals, names, strict=True)
    ]


@cached_on_task
def _joint_test(task: CalibrationTask, norm: Norm, seed: int, size: int) -> nulls.SimulatedNull:
    """Test all classes together, with one simulated label for each row."""
    rows, kind = task.rows, task.notion.classes
    assert rows is not None
    columns = problem_order(task)
    flats = [task.residuals[k].flat for k in columns]
    cells = cells_of(task, [flat.n for flat in flats])
    joined = Posterior.joined([Posterior.of_residuals(flat, cells, plain=True) for flat in flats])
    share = None if task.shares is None else task.shares[columns]
    plain = replace(joined.without_score_effects, classes=kind).weighted(share)
    rng = inputs.stream(seed, "together")
    if kind is not ClassRelation.EXCLUSIVE:
        problems = [task.problems[k] for k in columns]
        if kind is ClassRelation.FREE:
            residuals = flipped_rows(problems, rng, size)
        else:
            steps = [flat.coarser(nulls.STEPS) for flat in flats]
            residuals = [(each, Outcomes.of(each).blocks(rng, size)) for each in steps]
        z = [
            np.concatenate(nulls.simulate_test(each, blocks, norm, cells, keep=True).z)
            for each, blocks in residuals
        ]
        return classes.joint(plain, [(size, lambda k: z[k])], norm)
    sorted_rows, _ = in_canonical_order(rows, columns, _counts(task))
    labels = label_sets(
        lambda index: sorted_rows.take(index)[::2], sorted_rows.n, len(flats), cells, rng, size
    )
    return classes.joint(plain, labels, norm)


def _counts(task: CalibrationTask) -> Array | None:
    """Return the counts of the rows, or None if weights are not counts."""
    return task.weight if task.counts else None


@cached_on_task
def _clustered_test(task: CalibrationTask, norm: Norm, seed: int, size: int) -> ClusteredNull:
    """Test clustered data; the test does not depend on the estimator."""
    return ClusteredNull.of(task, norm, inputs.stream(seed, "clustered"), size)


def _by_class(
    plan: _Plan,
    task: CalibrationTask,
    errors: Array,
    adjustments: Iterable[ClusterAdjustment],
    posterior: Posterior,
    single_class: list[Callable[[], nulls.SimulatedNull]],
) -> ClassEstimates:
    """Return the estimate of each class; the default estimator computes it when it is asked for."""
    plan, step = replace(plan, level=plan.each_level, step=lambda: None), plan.step
    estimates: dict[Any, Estimate | Callable[[], Estimate]] = {}
    for k, (label, adjustment) in enumerate(zip(task.labels, adjustments, strict=True)):
        n = task.n if task.shares is None else adjustment.n
        class_estimate = partial(
            _single_class, plan, float(errors[k]), posterior=posterior[k : k + 1], null=single_class[k],
            n=n, label=label, clusters=task.clusters,
        )  # fmt: skip
        if plan.estimator.from_posterior:
            # A deferred estimate must not keep the rows of its class in memory.
            estimates[label] = partial(class_estimate, replace(adjustment, problem=None))
        else:
            estimates[label] = class_estimate(adjustment)
        if len(task.labels) > MANY:
            step()
    return ClassEstimates(estimates, errors, single_class)


@one_blas_thread()
def _single_class(
    plan: _Plan,
    value: float,
    adjustment: ClusterAdjustment,
    *,
    posterior: Posterior,
    null: Callable[[], nulls.SimulatedNull],
    n: float,
    label: Any,
    clusters: int | None,
) -> Estimate:
    """Return the estimate of one class of several: its pooled value, with its own interval and test."""
    estimator, unpooled = plan.estimator, value
    if estimator.from_posterior:
        estimator = estimator.for_single_class()
        unpooled = float(nulls.error(posterior.terms(plan.norm), plan.norm)[0])
    ends, named_errors = _interval(
        estimator, plan.norm, plan.level, adjustment, posterior, unpooled, CLASS_DATA_SETS
    )
    ends = min(ends[0], value), max(ends[1], value)
    about = {"notion": "binary", "label": label, "clusters": clusters}
    return _result(plan, n, value, ends, null(), named_errors, posterior, **about)


def _simulated_coefficients(
    task: CalibrationTask, rows: ScoreVectors, class_posteriors: classes.Classes, seed: int
) -> Callable[[int], Array]:
    """Simulate labels of all rows; return a function that gives the cosine coefficients of a class."""
    count, cells = class_posteriors.coarse.z.shape
    columns = problem_order(task)
    sorted_rows, row = in_canonical_order(rows, columns, _counts(task))
    rng, position = inputs.stream(seed, "together"), np.argsort(columns)
    weighted = _counts(task) is None

    def take(index: Array) -> tuple[Array, Array | None]:
        score, _, weight = rows.take(row(index))
        return score, weight if weighted else None

    labels = Labels.draw(take, sorted_rows.n, count, rng, classes.MANY_CLASS_DATA_SETS, row, columns)
    scores_of_class = columns_of([block.score for block in task.blocks], labels.rows)
    return lambda k: labels.coefficients(scores_of_class(k), int(position[k]), cells)


def _interval(
    estimator: Estimator,
    norm: Norm,
    level: float,
    adjustment: ClusterAdjustment,
    posterior: Posterior,
    value: float,
    drawn: int | None = None,
) -> tuple[tuple[float, float], Array | None]:
    """Return the interval of one problem and, for a named estimator, its estimates under H0.

    The random numbers do not depend on the seed: the same data have the same interval.
    """
    problem, spread = adjustment.problem, adjustment.tail_inflation(level, estimator)
    options: dict[str, Any] = {"norm": norm, "level": level, "spread": spread}
    if estimator.from_posterior:
        return intervals.interval(posterior, adjustment.n, value, drawn=drawn, **options), None
    assert problem is not None
    ends, named_errors = intervals.interval_of_named(estimator, [problem], posterior, value, **options)
    if not isinstance(problem, CorrelatedRows):
        low, high = estimator.native_interval(problem, norm, level) or ends
        ends = min(low, value), max(high, value)
    return ends, named_errors


def _result(
    plan: _Plan,
    n: float,
    value: float,
    ends: tuple[float, float],
    null: nulls.SimulatedNull,
    named_errors: Array | None,
    posterior: Posterior,
    *,
    p_value: float | None = None,
    p_floor: float | None = None,
    share: Array | None = None,
    **about: Any,
) -> Estimate:
    """Build the result; `named_errors` are the estimates of a named estimator under H0."""
    errors = null.error if named_errors is None else named_errors
    over, under = (float(np.average(side, weights=share)) for side in posterior.over_under)
    part_over = over / (over + under) if over + under > 0 else 0.5
    largest = float(combined(posterior.largest_error(plan.norm), plan.norm, share))
    return Estimate(
        value=value,
        low=min(ends[0], value),
        high=max(min(ends[1], largest), value),
        level=plan.level,
        null=nulls.null_distribution(errors),
        p_value=null.p_value if p_value is None else p_value,
        p_floor=null.p_floor if p_floor is None else p_floor,
        n_resamples=None if null.exhaustive else int(null.test_statistic.size),
        over=value * part_over,
        under=value - value * part_over,
        n=n,
        estimator=str(plan.estimator),
        norm=plan.norm,
        seed=plan.seed,
        **about,
    )


def influence(posterior: Posterior, rows: ScoreVectors, index: Array) -> Array:
    """Return the contribution of each row to the error of each class: residual times sign of the gap."""
    score, label, _ = rows.take(index)
    contribution = np.empty(score.shape)
    for k in range(score.shape[1]):
        outcome = label[:, k] if label.ndim == 2 else label == k
        contribution[:, k] = signs(posterior, k, score[:, k]) * (outcome - score[:, k])
    return contribution


def signs(posterior: Posterior, k: int, score: Array) -> Array:
    """Return the posterior mean sign of the gap of a problem at these scores; near 0 if it is uncertain."""
    from scipy.special import erf

    points = posterior.points(k)
    sign_by_point = erf(points.gap / (np.sqrt(2) * np.maximum(points.sd, 1e-300)))
    knots, sign = intervals.means_by_score(points, sign_by_point)
    # Scale the largest sign to 1: even uncertain signs say in which direction a residual moves the error.
    return np.asarray(np.interp(score, knots, sign / max(np.abs(sign).max(), 1e-12)))


def class_dependence(
    posterior: Posterior, rows: ScoreVectors, cluster: Array | None = None, counts: Array | None = None
) -> float:
    """Return the ratio of the standard deviation of the mean over classes to that of independent classes."""
    n_classes = len(posterior.z)
    max_rows = max(1000, MAX_DEPENDENCE_SCORES // n_classes)
    cumulative_counts = None if counts is None else np.cumsum(counts)
    n = rows.n if cumulative_counts is None else int(cumulative_counts[-1])
    index = np.arange(n) if n <= max_rows else np.linspace(0, n - 1, max_rows).astype(np.intp)
    if cluster is not None:
        index = np.flatnonzero(cluster % -(-n // max_rows) == 0)
    elif cumulative_counts is not None:
        index = np.searchsorted(cumulative_counts, index, side="right")
    contribution = influence(posterior, rows, index)
    if cluster is not None:
        weight = None if counts is None else counts[index].astype(np.float64)
        contribution = by_cluster(contribution, np.unique(cluster[index], return_inverse=True)[1], weight)
    independent = np.sqrt(contribution.var(axis=0).sum()) / n_classes
    if not independent > 0:
        return 1.0
    return float(np.clip(contribution.mean(axis=1).std() / independent, MIN_DEPENDENCE, np.sqrt(n_classes)))

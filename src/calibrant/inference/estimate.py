"""From a question to an estimate with interval, null and test."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from calibrant import inputs
from calibrant.compiled.blas import one_blas_thread
from calibrant.curves import ByClass
from calibrant.estimators import Estimator, Norm, resolve
from calibrant.inference import classes
from calibrant.inference import interval as intervals
from calibrant.inference import null as nulls
from calibrant.inference.canonical import by_name, estimate_rows, of_two_classes
from calibrant.inference.clusters import ClusterAdjustment, ClusteredNull, Correlated, by_cluster
from calibrant.inference.joint_labels import Labels, columns_of, label_sets
from calibrant.inference.measure import errors_of
from calibrant.inference.random_streams import in_own_order, key_of, stream
from calibrant.inference.result import Estimate, Null
from calibrant.posterior import Posterior, posterior_of
from calibrant.posterior.variance_time import n_cells
from calibrant.score_data import Array, ScoreData
from calibrant.tasks import CalibrationTask, Rows
from calibrant.tasks.notions import combined

# Simulated calibrated data sets, and the quantiles of their errors that are kept.
SIMULATED, KEPT = 999, (0.5, 0.95)
SINGLE_CLUSTER = (
    "All rows belong to a single cluster; they are treated as independent, so the interval does not include "
    "variation between clusters."
)
THIN_REPLICATION = (
    "Most scores that repeat are shared by 2 to 10 rows, and outcomes vary more between these scores than "
    "chance explains. Repeated measurements of the same case look like this too: if there are any, pass "
    "cluster=, or the error is overestimated."
)
# Data sets at least that the test may be asked to simulate.
FEWEST = 99
# Data sets simulated for the interval of one class among several; more classes than MANY are simulated
# over fewer cells (see `calibrant.inference.classes`).
BY_CLASS, MANY = 800, 20
# Scores looked at for how much the classes vary together.
LOOKED_AT = 1 << 22


@one_blas_thread()
def estimate(
    task: CalibrationTask,
    *,
    estimator: Any = "auto",
    norm: Norm = "l1",
    level: float = 0.95,
    rng: Any = None,
    each_level: float | None = None,
    step: Callable[[], object] = lambda: None,
    n_resamples: int | None = None,
) -> Estimate:
    """Estimate the calibration error that a question asks for.

    Without whole rows the classes of the class-wise notion may depend on each other in any way, and
    interval and p-value allow for that.

    Parameters
    ----------
    question : Question
    estimator, norm, level, rng, n_resamples
        As for `calibrant.estimate`.
    each_level : float, optional
        Level of the intervals of single classes.
    step : callable
        Called after each of more than `MANY` classes.
    """
    inputs.check_choice("norm", norm, task.notion.norms)
    level, seed = inputs.level(level), inputs.seeded(rng)
    each_level = level if each_level is None else inputs.level(each_level)
    if n_resamples is not None:
        n_resamples = inputs.positive_int("n_resamples", n_resamples, FEWEST)
    found = _answer(task, estimator, norm, level, each_level, seed, step, n_resamples)
    cautions = task.cautions
    if task.clusters == 1:
        cautions += (SINGLE_CLUSTER,)
    if not task.notion.canonical and task.cluster is None and posterior_of(task).thinly_repeated:
        cautions += (THIN_REPLICATION,)
    return replace(found, cautions=cautions)


def _answer(
    task: CalibrationTask,
    estimator: Any,
    norm: Norm,
    level: float,
    each_level: float,
    seed: int,
    step: Callable[[], object],
    n_resamples: int | None,
) -> Estimate:
    """Estimate what a question asks for, with arguments that are checked."""
    chosen = resolve(estimator, shared=task.notion.classwise, vectors=task.notion.canonical)
    if not chosen.measures_ece:
        rule = "estimate the ECE, which the interval is for"
        raise inputs.InputError(
            "estimator", rule, chosen, got=f"{chosen}, a measure of its own", advice="ece"
        )
    if task.notion.canonical:
        options: dict[str, Any] = {"level": level, "each_level": each_level, "n_resamples": n_resamples}
        if len(task.labels) > 2:
            found = estimate_rows(task, norm=norm, seed=seed, **options)
        else:
            found = of_two_classes(
                task, norm, lambda one, norm: estimate(one, norm=norm, rng=seed, step=step, **options)
            )
        return by_name(task, found, chosen, seed)
    plan = _Plan(chosen, norm, level, each_level, seed, step, n_resamples)
    if not task.notion.classwise:
        return _one_problem(task, plan)
    if task.designs is not None and len(task.labels) > MANY:
        rule = f"go with at most {MANY} classes where each of them is asked about"
        hint = "the confidence, or one class, can be asked about"
        raise inputs.InputError("cluster", rule, got=f"{len(task.labels)} classes", hint=hint)
    return _several_classes(task, plan)


def count_steps(task: CalibrationTask) -> int:
    """Return how often an estimate reports: twice for each of many classes, and at its end."""
    size = task.notion.size(len(task.labels))
    return 1 + (2 * size if size > MANY else 0)


@dataclass(frozen=True, eq=False)
class _Plan:
    """How a question is answered: the arguments of `estimate`, checked."""

    estimator: Estimator
    norm: Norm
    level: float
    each_level: float
    seed: int
    step: Callable[[], object]
    n_resamples: int | None

    @property
    def size(self) -> int:
        """How many calibrated data sets are simulated for the test."""
        return SIMULATED if self.n_resamples is None else self.n_resamples


def _one_problem(task: CalibrationTask, plan: _Plan) -> Estimate:
    """Estimate the error of a single problem."""
    posterior, (view,) = posterior_of(task), ClusterAdjustment.of(task)
    value = float(_errors(task, plan, posterior)[0])
    null = _drawn_alone(task, plan)[0]()
    reach = view.reach(plan.level, plan.estimator)

    def interval() -> tuple[tuple[float, float], Array | None]:
        return _interval(plan, view.n, view.problem, posterior, value, spread=reach)

    # It does not depend on the seed or on the number of resamples.
    key = "interval", str(plan.estimator), plan.norm, plan.level
    ends, other = task.once(key, interval) if plan.estimator.from_posterior else interval()
    about = {"notion": task.notion.name, "label": task.label, "clusters": task.clusters}
    return _assembled(plan, task.n, value, ends, null, other, posterior, **about)


def _several_classes(task: CalibrationTask, plan: _Plan) -> Estimate:
    """Estimate the error over classes, and of each of them."""
    many = None
    if len(task.labels) > MANY:
        many = task.once("many classes", lambda: classes.Classes.of(task))
    posterior = posterior_of(task) if many is None else many.posterior
    coarse = posterior.coarser(intervals.MAX_CELLS) if many is None else many.coarse
    rows, views, keys = task.rows, ClusterAdjustment.of(task), [key_of(label) for label in task.labels]
    errors = _errors(task, plan, posterior)
    value = task.notion.combine(errors, plan.norm)
    null = _null_of_few(task, plan) if many is None else _null_of_many(task, plan, many)
    each = posterior if many is None else coarse
    by_class = _by_class(plan, task, errors, views, each, null.alone)
    clustered, spread = task.designs is not None, classes.WIDEST
    if rows is not None:
        spread = together(posterior, rows, task.cluster if clustered else None, _counts(task))
        spread = spread if clustered else min(spread, classes.WIDEST)
    effect = float(np.mean([view.effect for view in views]))
    reach = float(np.mean([view.reach(plan.level, plan.estimator) for view in views]))
    options: dict[str, Any] = {"norm": plan.norm, "level": plan.level, "spread": reach * spread}
    other = None
    if plan.estimator.from_posterior:
        n = task.n / (effect * reach**2)
        ends = classes.interval(coarse, n, keys, shared=plan.estimator.shared, **options)
        ends = min(ends[0], value), max(ends[1], value)
    else:
        problems = [view.problem for view in views]
        ends, other = intervals.interval_of_named(plan.estimator, problems, coarse, value, keys=keys, **options)
    return _assembled(
        plan, task.n, value, ends, null.whole, other, posterior, p_value=null.p_value,
        p_floor=null.p_floor, notion=task.notion.name, by_class=by_class, conservative=rows is None,
        clusters=task.clusters,
    )  # fmt: skip


def _null_of_few(task: CalibrationTask, plan: _Plan) -> classes.Nulls:
    """Simulate calibrated data for all classes together, and for each by itself when it is asked for."""
    alone, rows = _drawn_alone(task, plan), task.rows
    if rows is None:
        drawn = [each() for each in alone]
        simulated = combined(np.stack([null.error for null in drawn], axis=-1), plan.norm)
        p_value, p_floor = (
            nulls.any_of([getattr(null, name) for null in drawn]) for name in ("p_value", "p_floor")
        )
        return classes.Nulls(
            alone, nulls.SimulatedNull(drawn[0].evidence, simulated, np.nan), p_value, p_floor
        )
    if task.designs is not None:
        whole = _clustered(task, plan).whole
    else:
        key = "together", plan.norm, plan.seed, plan.size
        whole = task.once(key, lambda: _drawn_jointly(task, rows, plan))
    return classes.Nulls(alone, whole, whole.p_value, whole.p_floor)


def _null_of_many(task: CalibrationTask, plan: _Plan, many: classes.Classes) -> classes.Nulls:
    """Simulate the same for many classes, with fewer sets, and more for classes that stand out."""
    rngs = [np.random.default_rng([plan.seed, key_of(label)]) for label in task.labels]
    alone = classes.Alone(many, plan.norm, rngs, 1 - plan.level, plan.n_resamples)
    if task.rows is None:
        return classes.independent(alone, plan.norm, plan.step)
    labels = _drawn_together(task, task.rows, many, plan.seed)
    whole = classes.joint(many.plain, [(classes.SETS, labels)], plan.norm, plan.step)
    return classes.Nulls(alone.each, whole, whole.p_value, whole.p_floor)


def _errors(task: CalibrationTask, plan: _Plan, posterior: Posterior) -> Array:
    """Return the errors of all problems; the default takes them from the posterior of the question."""
    if not plan.estimator.from_posterior:
        return errors_of(task, plan.estimator, plan.norm)
    batch = (len(posterior.z),) if task.notion.classwise else ()
    return np.ravel(plan.estimator.fit_posterior(batch, posterior).error(plan.norm))


def _drawn_alone(task: CalibrationTask, plan: _Plan) -> list[Callable[[], nulls.SimulatedNull]]:
    """Return what simulates calibrated data for each problem by itself, the same for every estimator."""
    if task.designs is not None:
        return [partial(_same, each) for each in _clustered(task, plan).alone]
    labels = task.labels if task.notion.classwise else ("alone",)
    return task.once(
        ("alone", plan.norm, plan.seed, plan.size),
        lambda: [
            nulls.later(each, plan.norm, stream(plan.seed, "null", label), plan.size)
            for each, label in zip(task.residuals, labels, strict=True)
        ],
    )


def _same(drawn: nulls.SimulatedNull) -> nulls.SimulatedNull:
    return drawn


def _drawn_jointly(task: CalibrationTask, rows: Rows, plan: _Plan) -> nulls.SimulatedNull:
    """Simulate calibrated data for all classes, one label for each row."""
    own, _, columns = in_own_order(rows, task.labels, _counts(task))
    flats = [task.residuals[k].flat for k in columns]
    each = [Posterior.of_residuals(flat, int(n_cells(flat.n)[0]), plain=True) for flat in flats]
    plain = Posterior.joined(each).smooth_alone
    rng, cells = stream(plan.seed, "together"), plain.z.shape[-1]
    sets = label_sets(lambda some: own.take(some)[::2], own.n, len(flats), cells, rng, plan.size)
    return classes.joint(plain, sets, plan.norm)


def _counts(task: CalibrationTask) -> Array | None:
    """Return how often each row counts, where weights are counts."""
    return task.weight if task.counts else None


def _clustered(task: CalibrationTask, plan: _Plan) -> ClusteredNull:
    """Simulate calibrated data in the same clusters; they are the same for every estimator."""
    rng = stream(plan.seed, "clustered")
    return task.once(
        ("clustered", plan.norm, plan.seed, plan.size),
        lambda: ClusteredNull.of(task, plan.norm, rng, plan.size),
    )


def _by_class(
    plan: _Plan,
    task: CalibrationTask,
    errors: Array,
    views: Iterable[ClusterAdjustment],
    posterior: Posterior,
    alone: list[Callable[[], nulls.SimulatedNull]],
) -> Mapping[Any, Estimate]:
    """Return the estimate of each class; from the posterior it is computed when it is asked for."""
    plan, step = replace(plan, level=plan.each_level, step=lambda: None), plan.step
    own: dict[Any, Estimate | Callable[[], Estimate]] = {}
    for k, (label, view) in enumerate(zip(task.labels, views, strict=True)):
        one = partial(
            _single_class, plan, float(errors[k]), view.n, view.reach(plan.level, plan.estimator),
            posterior[k : k + 1], alone[k], n=task.n, label=label, clusters=task.clusters,
        )  # fmt: skip
        # The rows of a class are not held for as long as somebody may ask.
        own[label] = one if plan.estimator.from_posterior else one(problem=view.problem)
        if len(task.labels) > MANY:
            step()
    return ByClass(own)


@one_blas_thread()
def _single_class(
    plan: _Plan,
    value: float,
    rows: float,
    reach: float,
    posterior: Posterior,
    null: Callable[[], nulls.SimulatedNull],
    *,
    n: float,
    label: Any,
    clusters: int | None,
    problem: ScoreData | None = None,
) -> Estimate:
    """Estimate one class among several: by itself, with the value that it has among them."""
    alone, centre = plan, value
    if plan.estimator.from_posterior:
        alone = replace(plan, estimator=plan.estimator.for_one_class())
        centre = float(nulls.error(posterior.terms(plan.norm), plan.norm)[0])
    ends, other = _interval(
        alone, rows, problem, posterior, centre, spread=reach, drawn=BY_CLASS, label=label
    )
    ends = min(ends[0], value), max(ends[1], value)
    about = {"notion": "class", "label": label, "clusters": clusters}
    return _assembled(plan, n, value, ends, null(), other, posterior, **about)


def _drawn_together(
    task: CalibrationTask, rows: Rows, many: classes.Classes, seed: int
) -> Callable[[int], Array]:
    """Draw sets of labels for whole rows, and return how to get the coefficients of a class in them."""
    count, cells = many.coarse.z.shape
    own, row, columns = in_own_order(rows, task.labels, _counts(task))
    rng, place = stream(seed, "together"), np.argsort(columns)
    weighted = _counts(task) is None

    def take(some: Array) -> tuple[Array, Array | None]:
        score, _, weight = rows.take(row(some))
        return score, weight if weighted else None

    labels = Labels.draw(take, own.n, count, rng, classes.SETS, row, columns)
    column = columns_of([block.score for block in task.blocks], labels.rows)
    return lambda k: labels.coefficients(column(k), int(place[k]), cells)


def _interval(
    plan: _Plan,
    n: float,
    problem: ScoreData | None,
    posterior: Posterior,
    value: float,
    *,
    spread: float,
    drawn: int = intervals.N_DATA_SETS,
    label: Any = "alone",
) -> tuple[tuple[float, float], Array | None]:
    """Return the interval of one problem, and for an estimator other than the default its null.

    The numbers drawn for it belong to the class, not to the seed: the same data have the same interval.
    """
    estimator, key = plan.estimator, key_of(label)
    options: dict[str, Any] = {"norm": plan.norm, "level": plan.level, "spread": spread}
    if estimator.from_posterior:
        return intervals.interval(posterior, n, value, key=key, drawn=drawn, **options), None
    assert problem is not None
    ends, other = intervals.interval_of_named(estimator, [problem], posterior, value, keys=[key], **options)
    own = None
    if not isinstance(problem, Correlated):
        own = estimator.own_interval(problem, plan.norm, plan.level)
    if own is not None:
        ends = min(own[0], value), max(own[1], value)
    return ends, other


def _assembled(
    plan: _Plan,
    n: float,
    value: float,
    ends: tuple[float, float],
    null: nulls.SimulatedNull,
    other: Array | None,
    posterior: Posterior,
    *,
    p_value: float | None = None,
    p_floor: float | None = None,
    **about: Any,
) -> Estimate:
    """Put an estimate together; `other` are the errors of calibrated data by an estimator of its own."""
    errors = null.error if other is None else other
    over, under = (float(np.mean(side)) for side in posterior.over_under)
    share = over / (over + under) if over + under > 0 else 0.5
    quantiles = dict(zip(KEPT, np.quantile(errors, KEPT).tolist(), strict=True))
    return Estimate(
        value=value,
        low=ends[0],
        high=ends[1],
        level=plan.level,
        null=Null(float(np.mean(errors)), MappingProxyType(quantiles)),
        p_value=null.p_value if p_value is None else p_value,
        p_floor=null.p_floor if p_floor is None else p_floor,
        n_resamples=None if null.exhaustive else int(null.evidence.size),
        over=value * share,
        under=value - value * share,
        n=n,
        estimator=str(plan.estimator),
        norm=plan.norm,
        seed=plan.seed,
        **about,
    )


def influence(posterior: Posterior, rows: Rows, some: Array) -> Array:
    """Return what each row adds to the error of each class: the residual, signed by the gap at its score."""
    score, label, _ = rows.take(some)
    added = np.empty(score.shape)
    for k in range(score.shape[1]):
        added[:, k] = signs(posterior, k, score[:, k]) * ((label == k) - score[:, k])
    return added


def signs(posterior: Posterior, k: int, score: Array) -> Array:
    """Return the expected sign of the gap of a problem at these scores: near 0 where there may be none."""
    from scipy.special import erf

    at = posterior.points(k)
    each = erf(at.gap / (np.sqrt(2) * np.maximum(at.sd, 1e-300)))
    # One sign for each score, where rounding must not choose among cells.
    first = intervals.first_of_each(at.score)
    mass = np.add.reduceat(at.mass, first)
    knots, sign = (np.add.reduceat(at.mass * part, first) / mass for part in (at.score, each))
    # A sign that is nowhere certain still says which way a residual moves the error.
    return np.asarray(np.interp(score, knots, sign / max(np.abs(sign).max(), 1e-12)))


def together(
    posterior: Posterior, rows: Rows, cluster: Array | None = None, counts: Array | None = None
) -> float:
    """Return how much wider the mean over classes spreads than if the classes were independent."""
    count = len(posterior.z)
    few, ends = max(1000, LOOKED_AT // count), None if counts is None else np.cumsum(counts)
    n = rows.n if ends is None else int(ends[-1])
    some = np.arange(n) if n <= few else np.linspace(0, n - 1, few).astype(np.intp)
    if cluster is not None:
        some = np.flatnonzero(cluster % -(-n // few) == 0)
    elif ends is not None:
        some = np.searchsorted(ends, some, side="right")
    added = influence(posterior, rows, some)
    if cluster is not None:
        weight = None if counts is None else counts[some].astype(np.float64)
        added = by_cluster(added, np.unique(cluster[some], return_inverse=True)[1], weight)
    independent = np.sqrt(added.var(axis=0).sum()) / count
    if not independent > 0:
        return 1.0
    return float(np.clip(added.mean(axis=1).std() / independent, 0.5, np.sqrt(count)))

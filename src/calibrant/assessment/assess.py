"""Everything about one model's scores: from questions, of rows or of a sketch, to an assessment."""

from __future__ import annotations

import datetime
import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant import inputs
from calibrant.assessment import decomposition
from calibrant.assessment.assessment import (
    N_CLASSES,
    N_CURVES,
    Assessment,
    Balance,
    Odds,
    OtherClasses,
    SubgroupResult,
)
from calibrant.assessment.cautions import DataFacts, cautions, facts_from_rows, facts_from_sums
from calibrant.assessment.probability_transfer import probability_transfer_of
from calibrant.assessment.recalibration import CrossFit, RecalibrationGain, recalibration_gain
from calibrant.assessment.verdict import default_tolerance
from calibrant.curves import ByClass, Progress, curve_of, diagram_of, each_problem, rename_classes
from calibrant.decisions import Cost, Decision, auc_of, clinical_of, deciding, oe_ratio_of
from calibrant.estimators.binned import Binned
from calibrant.inference.estimate import MANY, ClassEstimates, count_steps, estimate
from calibrant.inference.interval import ClusterAdjustment
from calibrant.inference.interval_estimate import MeanGap, interval_deviate
from calibrant.inference.multiplicity import each_level, false_discovery
from calibrant.inference.result import Estimate
from calibrant.inference.segments import audited_segments
from calibrant.inference.table import refined, rows_by_code
from calibrant.inputs import Predictions, SegmentTable
from calibrant.maps.multiclass import SoftmaxMap, fit_temperature
from calibrant.parallel import background, one_blas_thread, parallel_map
from calibrant.posterior import posterior_of
from calibrant.score_data import Array, Sample, ScoreData
from calibrant.score_data.simplex import Simplex
from calibrant.settings import REPORT
from calibrant.tasks import CalibrationTask, Notion, get_notion
from calibrant.tasks.notions import curve_notion, reported_notions

if TYPE_CHECKING:
    from calibrant.sketch import Sketch

#: The paper's five estimators with its heuristics, by which the headline is measured too.
REFERENCE_ESTIMATORS = ("uniform", "adaptive", "uniform-convex", "adaptive-convex", "density")
BINS = Binned("uniform", 15)
# For the axis of log odds: its bins, and the log odds between the cells of its histogram.
BY_MASS = Binned("adaptive", 15)
LOG_ODDS = np.arange(-20.0, 20.25, 0.25)

# Simulated data sets for the joint intervals of what a recalibration leaves of the gaps of groups.
BEYOND_DATA_SETS = 2000

# The interval and the test of a class take as long as so many of the steps that an estimate reports.
STEPS_OF_CLASS, STEPS_OF_TEST = 6, 2

#: Proper scores, and the temperature map that the score of all classes was decomposed by.
Scores = tuple[tuple[decomposition.Score, ...], SoftmaxMap | None]
#: Something to do, by its kind and what it is about.
Job = tuple[str, Any]


@dataclass(frozen=True, eq=False)
class AssessedGroup:
    """A group of rows: its name, how many it has, the headline's question about it and the pictured one."""

    name: str
    rows: int
    task: CalibrationTask
    curve_notion: CalibrationTask


@dataclass(frozen=True, eq=False)
class AssessmentInputs:
    """What an assessment is made of."""

    tasks: Sequence[CalibrationTask]  # that of the headline first
    # The canonical notion has no curve: another notion's stands for it, with all that goes with a curve.
    curve_task: CalibrationTask
    names: tuple[str, ...]  # what the classes are called
    by_estimator: Sequence[str]  # estimators that measure the headline beside the default
    groups: Sequence[AssessedGroup]
    scores: Callable[[], Scores]
    rows: int
    digest: str  # identifies the rows
    seen: DataFacts
    accuracy: Balance | None = None  # mean confidence against accuracy, where sums know it and no task does
    data: Predictions | None = None  # the rows, where they are at hand
    decision: tuple[CalibrationTask, Cost] | None = None  # what acting on the scores is asked to cost
    # What a common recalibration leaves of the mean gaps of groups, from a seed.
    differences: Callable[[int], Mapping[str, MeanGap]] | None = None


@one_blas_thread()
def assess_predictions(
    data: Predictions,
    headline: Notion,
    *,
    pos_label: Any,
    groups: tuple[list[Any], Array] | None,
    class_names: Any,
    cost: Any,
    labels: Any,
    level: float,
    **options: Any,
) -> Assessment:
    """Assess rows by every notion that applies, the headline first; see `calibrant.assess`."""
    level = inputs.level(level)
    renamed = inputs.class_names(data.labels, class_names)
    names = names_of(data.labels, renamed, vector=data.score.ndim == 1)
    notions = reported_notions(headline, n_classes=len(names), binary_requested=pos_label is not None)
    tasks = [CalibrationTask.of(data, notion) for notion in notions]
    drawn = curve_notion(headline, n_classes=len(names))
    curve_task = next(task for task in tasks if task.notion == drawn)
    material = AssessmentInputs(
        tasks=tasks,
        curve_task=curve_task,
        names=names,
        by_estimator=reference_estimators_for(drawn, len(names)),
        groups=() if groups is None else _groups_of(data, headline, drawn, *groups),
        scores=partial(_scores, tasks, names, data),
        rows=data.n_rows,
        digest=_digest(data),
        seen=facts_from_rows(data, names, headline),
        data=data,
        decision=None if cost is None else deciding(data, cost, labels=labels),
        differences=None if groups is None else partial(_differences, data, curve_task, *groups, level),
    )
    return rename_classes(_assemble(material, level, **options), renamed)


@one_blas_thread()
def assess_sketch(
    sketch: Sketch,
    *,
    groups: Mapping[Any, Sketch] | None,
    class_names: Any,
    cost: Any,
    level: float,
    **options: Any,
) -> Assessment:
    """Assess a sketch by its one notion, as far as its sums allow; see `calibrant.assess`."""
    sketch = copy(sketch)  # which another thread may update meanwhile
    groups = {key: copy(selected) for key, selected in (groups or {}).items()}
    level, task = inputs.level(level), sketch._task
    given = sketch._class_names if class_names is None else class_names
    renamed = inputs.class_names(sketch.labels, given)
    names = names_of(sketch.labels, renamed, vector=sketch.is_vector)
    usual = reference_estimators_for(task.notion, len(names))
    by_estimator = [estimator_name for estimator_name in usual if sketch._has_cells_for(estimator_name)]
    left_out = [estimator_name for estimator_name in usual if estimator_name not in by_estimator]
    material = AssessmentInputs(
        tasks=[task],
        curve_task=task,
        names=names,
        by_estimator=by_estimator,
        groups=[
            AssessedGroup(str(key), selected.totals.rows, selected._task, selected._task)
            for key, selected in groups.items()
        ],
        scores=lambda: (_scores_of_sums(sketch, names), None),
        rows=sketch.totals.rows,
        digest=sketch.digest,
        seen=facts_from_sums(sketch, names, left_out),
        accuracy=_accuracy_of_sums(sketch, task, level),
        decision=None if cost is None else sketch._decision_task(cost),
    )
    return rename_classes(_assemble(material, level, **options), renamed)


def _assemble(
    material: AssessmentInputs,
    level: float,
    *,
    rng: Any,
    progress: Progress | None,
    n_resamples: int | None,
    tolerance: float | None,
    name: str | None,
    command: str | None,
    grouped_by: str | None = None,
) -> Assessment:
    """Answer all questions, and put together what follows."""
    seed, names = inputs.seeded(rng), material.names
    headline, curve_task = material.tasks[0], material.curve_task
    by_curve = curve_task.notion.name
    by_class = next((q for q in material.tasks if q.notion.classwise), None)
    class_task = next((q for q in material.tasks if q.label is not None), None)
    estimates: dict[str, Estimate] = {}
    with background() as begin:
        options: dict[str, Any] = {"level": level, "rng": seed, "n_resamples": n_resamples}
        scores = begin(material.scores)
        jobs = _jobs(material, estimates, scores, options, begin)
        n_tests = len(names) * STEPS_OF_TEST if by_class is not None and len(names) > MANY else 0
        total = len(material.tasks) + max(map(count_steps, material.tasks)) + n_tests
        steps = inputs.Steps(progress, total + sum(map(_n_steps, jobs)))
        for task in material.tasks:
            each = each_level(level, len(names))
            estimated = estimate(task, each_level=each, step=steps, **options)
            estimates[task.notion.name] = estimated
            if task.notion.classwise and n_tests:
                _ = _class_estimates(estimated).p_values  # computed in all threads, before these have jobs
                steps(steps.done + n_tests)
            steps()
        before, finished = steps.done, list[Job]()

        def finish(job: Job) -> Any:
            result = jobs[job]()
            finished.append(job)
            return result

        begun = {job: begin(partial(finish, job)) for job in jobs}
        # From the end: what is there has not been begun, and is done here; others finish meanwhile.
        for job in reversed(begun):
            begun[job]()
            steps(before + sum(map(_n_steps, tuple(finished))))
        done = {job: result() for job, result in begun.items()}

    accuracy = material.accuracy
    for task in material.tasks:
        if task.notion.tells_accuracy:
            accuracy = balance_of(task, estimates[task.notion.name], level)

    balance = accuracy if curve_task.notion.classwise else balance_of(curve_task, estimates[by_curve], level)
    rows, others = _rows_of_classes(estimates, by_class, material, level)
    worst = [row.estimate.label for row in rows[:N_CURVES]]
    for (kind, _), result in done.items():
        if kind in ("curve", "diagram") and isinstance(result, ByClass):
            list(parallel_map(result.__getitem__, worst))

    def all_of(kind: str) -> dict[Any, Any]:
        return {name: result for (of, name), result in done.items() if of == kind}

    auc = None if material.data is None or class_task is None else auc_of(class_task, level=level)
    assessment = Assessment(
        notion=headline.notion.name, estimates=MappingProxyType(estimates),
        curves=MappingProxyType(all_of("curve")), diagrams=MappingProxyType(all_of("diagram")),
        log_odds=_odds(curve_task, _worst(estimates[by_curve]), level),
        by_estimator=MappingProxyType({"auto": estimates[by_curve]} | all_of("estimator")), by_class=rows,
        other_classes=others,
        by_group=_rows_of_groups(
            material.groups, _refined(material.groups, all_of("group"), options), level,
            done.get(("differences", None), {}),
        ),
        balance=balance, accuracy=accuracy, scores=scores()[0], cautions=(), rows=material.rows,
        n=estimates[headline.notion.name].n, classes=names,
        pos_label=None if class_task is None or class_task.positive is None else names[class_task.positive],
        tolerance=default_tolerance(headline.notion, balance, len(names)) if tolerance is None else tolerance,
        level=level, seed=seed, created=today(), digest=material.digest, version=version("calibrant"),
        name=None if name is None else str(name), command=None if command is None else str(command),
        recalibration=done.get(("recalibration", None)),
        probability_transfer=done["probability_transfer", None], clinical=done.get(("clinical", None)),
        decision=done.get(("decision", None)), auc=None if auc is None else auc.value,
        hard_labels=material.seen.decided, grouped_by=grouped_by,
    )  # fmt: skip
    steps.end()
    return replace(assessment, cautions=tuple(cautions(assessment, material.seen)))


def _jobs(
    material: AssessmentInputs,
    estimates: Mapping[str, Estimate],
    scores: Callable[[], Scores],
    options: dict[str, Any],
    begin: Callable[[Callable[[], Any]], Callable[[], Any]],
) -> dict[Job, Callable[[], Any]]:
    """Return what is left to do where the estimates are known, none of which needs another.

    `estimates` is filled before the first job is done, and `scores` waits for what `material.scores` returns.
    `begin` begins beside all else what needs no estimate and shares nothing with one.
    """
    level, seed, curve_task = options["level"], options["rng"], material.curve_task
    jobs: dict[Job, Callable[[], Any]] = {}
    for estimator_name in material.by_estimator:
        jobs["estimator", estimator_name] = partial(estimate, curve_task, estimator=estimator_name, **options)
    if (
        material.data is not None
        and (trial := CrossFit.of(material.data, seed, lambda: scores()[1])) is not None
    ):
        fitted = trial.fit(begin, curve_task.notion)

        def recalibration() -> RecalibrationGain:
            before = estimates[curve_task.notion.name]
            about: dict[str, Any] = {"before": before, "worst": _worst(before)}
            return recalibration_gain(trial, fitted, curve_task.notion, scores()[0], level=level, **about)

        jobs["recalibration", None] = recalibration
    for task in material.tasks:
        name = task.notion.name
        if not task.notion.canonical:
            lazy: dict[str, Any] = {"level": level, "lazy": True}
            jobs["curve", name] = partial(curve_of, task, **lazy)
            jobs["diagram", name] = partial(each_problem, task, diagram_of, binning=BINS, **lazy)
        if task.notion.classwise:
            for rank in range(min(len(task.labels), N_CLASSES)):
                jobs["class", rank] = partial(_of_class, estimates, name, rank)
        if task.notion.is_binary:
            jobs["clinical", None] = partial(clinical_of, task, level=level, seed=seed)
    for k, group in enumerate(material.groups):
        jobs["group", k] = partial(_of_group, group, len(material.groups), options)
    if material.differences is not None:
        jobs["differences", None] = partial(material.differences, seed)
    jobs["probability_transfer", None] = partial(probability_transfer_of, material.tasks[0])
    if material.decision is not None:
        jobs["decision", None] = partial(Decision.of, *material.decision, level=level, seed=seed)
    return jobs


def _n_steps(job: Job) -> int:
    """Return the steps of progress of a job, by how long it takes beside a step of an estimate."""
    return STEPS_OF_CLASS if job[0] == "class" else 1


def _of_group(group: AssessedGroup, count: int, options: dict[str, Any]) -> Estimate:
    """Return the estimate of one group among so many."""
    # A copy of the task keeps its posterior: those of thousands of groups would fill the memory.
    task = replace(group.task, _cache={})
    return estimate(task, **options | {"level": each_level(options["level"], count)})


def _refined(
    groups: Sequence[AssessedGroup], estimated: Mapping[int, Estimate], options: dict[str, Any]
) -> list[Estimate]:
    """Return the estimates of groups, with more resamples where these decide after multiplicity control."""
    results = [estimated[k] for k in range(len(groups))]
    if options["n_resamples"] is not None:
        return results

    def with_draws(k: int, size: int) -> Estimate:
        return _of_group(groups[k], len(groups), options | {"n_resamples": size})

    return refined(results, with_draws, options["level"])


def _class_estimates(result: Estimate) -> ClassEstimates:
    """Return the estimates of all classes."""
    assert isinstance(result.by_class, ClassEstimates)
    return result.by_class


def _of_class(estimates: Mapping[str, Estimate], name: str, rank: int) -> Estimate:
    """Return the estimate of a class, 0 for that with the largest error; it is computed once."""
    by_class = _class_estimates(estimates[name])
    return by_class[list(by_class)[by_class.worst_first[rank]]]


def reference_estimators_for(notion: Notion, n_classes: int) -> tuple[str, ...]:
    """Return the estimators of the literature that are shown; of many classes the default alone."""
    return REFERENCE_ESTIMATORS if notion.size(n_classes) <= MANY else ()


def _groups_of(
    data: Predictions, headline: Notion, drawn: Notion, values: list[Any], codes: Array
) -> list[AssessedGroup]:
    """Return the groups of rows, with the questions about each."""
    groups = []
    for value, positions in zip(values, rows_by_code(codes, len(values)), strict=True):
        rows = inputs.select_rows(data, positions)
        task = CalibrationTask.of(rows, headline)
        curve_task = task if drawn == headline else CalibrationTask.of(rows, drawn)
        groups.append(AssessedGroup(str(value), rows.n_rows, task, curve_task))
    return groups


def _rows_of_groups(
    groups: Sequence[AssessedGroup], estimates: Sequence[Estimate], level: float,
    differences: Mapping[str, MeanGap],
) -> tuple[SubgroupResult, ...]:  # fmt: skip
    """Return the groups, each by itself, the worst first; the worst have curves."""
    adjusted = false_discovery([result.p_value for result in estimates])
    order = sorted(range(len(groups)), key=lambda k: -estimates[k].value)
    drawn = [k for k in order[:N_CURVES] if not groups[k].curve_notion.notion.classwise]
    computed = parallel_map(lambda k: curve_of(groups[k].curve_notion, level=level), drawn)
    curves = dict(zip(drawn, computed, strict=True))
    rows = []
    for k in order:
        task, result = groups[k].curve_notion, estimates[k]
        gap = ratio = None
        if not task.notion.classwise:
            gap = _mean_gap(task.problems[0], ClusterAdjustment.of(task)[0], result)
            ratio = oe_ratio_of(task, level=result.level, conditional=True)
        counts, curve = _counts(task.each(), result.n), curves.get(k)
        assert not isinstance(curve, ByClass)
        row = groups[k].name, float(groups[k].rows), *counts, result, adjusted[k], gap, curve
        rows.append(SubgroupResult(*row, difference=differences.get(groups[k].name), ratio=ratio))
    return tuple(rows)


def _differences(
    data: Predictions, task: CalibrationTask, values: list[Any], codes: Array, level: float, seed: int
) -> dict[str, MeanGap]:
    """Return what one recalibration of all rows leaves of the mean gaps of groups that are not too small."""
    count = np.bincount(codes, minlength=len(values))
    kept = np.flatnonzero((count >= REPORT.few_group_rows) & (count < data.n_rows))
    problem = task.problems[0]
    if len(task.problems) > 1 or not isinstance(problem, Sample) or not kept.size:
        return {}
    names: list[tuple[str, ...]] = [(str(values[k]),) for k in kept]
    places = np.full(len(values), len(kept))
    places[kept] = np.arange(len(kept))
    table = SegmentTable(("group",), names, places[codes], count[kept])
    segments, _ = audited_segments(
        problem, [table], data.cluster, level, BEYOND_DATA_SETS, np.random.default_rng(seed)
    )
    return {segment.values[0]: segment.difference for segment in segments}


def _mean_gap(problem: ScoreData, adjustment: ClusterAdjustment, result: Estimate) -> MeanGap:
    """Return frequency minus score of a problem, as posterior mean, and its range if calibrated."""
    sums = problem.tie_groups()
    sums = sums.about(np.zeros(np.shape(sums.origin)))
    w, ws, wy, wss, wsy = (float(np.sum(each)) for each in (sums.w, sums.ws, sums.wy, sums.wss, sums.wsy))
    effective = float(problem.n) / adjustment.of_mean(result.level)
    gap = (wy - ws) / w
    # The spread of a residual is at least that of an outcome at the frequency seen.
    variance = max((wss - 2 * wsy + wy) / w - gap * gap, 0.25 / effective)
    margin, expected = (
        interval_deviate(result.level) * float(np.sqrt(max(spread, 0.0) / effective))
        for spread in (variance, (ws - wss) / w)
    )
    value = gap if result.mean_difference is None else -result.mean_difference
    low, high = max(min(gap - margin, value), -1.0), min(max(gap + margin, value), 1.0)
    return MeanGap(value, low, high, min(expected, 1.0))


def _rows_of_classes(
    estimates: Mapping[str, Estimate], task: CalibrationTask | None, material: AssessmentInputs, level: float
) -> tuple[tuple[SubgroupResult, ...], OtherClasses | None]:
    """Return the worst classes and the others; rows are counted by labels, in a sketch by frequencies."""
    if task is None:
        return (), None
    by_class, problems = _class_estimates(estimates[task.notion.name]), list(task.each())
    data, names, adjustments = material.data, material.names, ClusterAdjustment.of(task)
    order, adjusted = by_class.worst_first, false_discovery(by_class.p_values)
    labels = None
    if task.shares is not None and data is not None:
        labels = task.shares * data.n_rows
        names = tuple(names[data.labels.index(label)] for label in task.labels)
    elif data is not None:
        labels = np.bincount(data.code.astype(np.intp), data.weight if data.counts else None, len(names))
    rows, others = [], order[N_CLASSES:]
    for k in order[:N_CLASSES]:
        result = by_class[task.labels[k]]
        observed, expected = _counts([problems[k]], result.n)
        size = round(observed, 6) if labels is None else float(labels[k])
        gap = _mean_gap(problems[k], adjustments[k], result)
        rows.append(SubgroupResult(names[k], size, observed, expected, result, adjusted[k], gap))
    if not others:
        return tuple(rows), None
    rejected = sum(adjusted[k] < 1 - level for k in others)
    return tuple(rows), OtherClasses(len(others), rejected, float(by_class.errors[others[0]]))


def _counts(problems: Iterable[ScoreData], n: float) -> tuple[float, float]:
    """Return how many of n rows have the outcome, and the sum of their scores, averaged over the problems."""
    bins = [problem.bins(np.empty(0)) for problem in problems]
    observed = n * float(np.mean([each.frequency[0] for each in bins]))
    return observed, n * float(np.mean([each.score[0] for each in bins]))


def _worst(result: Estimate) -> int:
    """Return which problem has the largest error."""
    return 0 if result.by_class is None else _class_estimates(result).worst_first[0]


def _odds(task: CalibrationTask, worst: int, level: float) -> Odds:
    """Return a histogram and bins of a problem for an axis of log odds."""
    problem = next(problem for k, problem in enumerate(task.each()) if k == worst)
    effect = float(np.broadcast_to(task.design_effects, len(task.labels))[worst])
    cuts = 1 / (1 + np.exp(-LOG_ODDS))
    w = problem.bins(cuts).w
    edges, counts = np.concatenate([[0.0], cuts, [1.0]]), np.asarray(w * (problem.n / w.sum()))
    return Odds(
        edges,
        counts,
        diagram_of(problem, binning=BY_MASS, level=level, notion=get_notion("binary"), effect=effect),
    )


def balance_of(task: CalibrationTask, estimated: Estimate, level: float) -> Balance:
    """Return mean score against frequency of a question's one problem; the difference is its estimate's."""
    problem, noise = task.problems[0], ClusterAdjustment.of(task)[0].of_mean(level)
    tie_groups = problem.tie_groups()
    tie_groups = tie_groups.about(np.zeros(np.shape(tie_groups.origin)))
    square = float((tie_groups.wss - 2 * tie_groups.wsy + tie_groups.wy).sum() / tie_groups.w.sum())
    counts, difference = _counts([problem], estimated.n), estimated.mean_difference
    assert difference is not None
    return _balance(estimated.n, counts, difference, square, float(problem.n) / noise, level)


def _balance(
    n: float, counts: tuple[float, float], difference: float, square: float, effective: float, level: float
) -> Balance:
    """Return mean score against frequency, from the mean square of their differences.

    The interval is that of the raw difference, and holds the posterior mean.
    """
    raw = (counts[1] - counts[0]) / n
    # The spread of a residual is at least that of an outcome at the frequency seen.
    spread = float(np.sqrt(max(square - raw * raw, 0.25 / effective) / effective))
    margin = interval_deviate(level) * spread
    return Balance(n, *counts, difference, min(raw - margin, difference), max(raw + margin, difference))


def _accuracy_of_sums(sketch: Sketch, task: CalibrationTask, level: float) -> Balance | None:
    """Return mean confidence against accuracy from the sums of a single score p.

    Its confidence is the larger of p and 1 - p.
    """
    totals = sketch.totals
    if task.notion.tells_accuracy or not sketch.is_vector:
        return None
    # A cell lies on one side of 0.5.
    problem = task.problems[-1]
    halves = problem.bins(np.array([0.5]))
    confidence = float(halves.w[0] - halves.ws[0] + halves.ws[1]) / totals.weight
    square, n = totals.brier / 2 / totals.weight, float(problem.n)
    posterior = posterior_of(task)
    # Below 0.5 the confidence is 1 - p: a score that is too low is a confidence that is too high.
    difference = float(np.where(posterior.score[-1] < 0.5, 1, -1) @ posterior.gap[-1])
    counts = n * totals.right / totals.weight, n * confidence
    return _balance(n, counts, difference, square, n, level)


def _scores(tasks: Sequence[CalibrationTask], names: tuple[str, ...], data: Predictions) -> Scores:
    """Return proper scores: of the selected class, of all classes, of the prediction."""
    scores: list[decomposition.Score] = []
    tempered = None
    classwise = CalibrationTask.of(data, get_notion("classwise"))
    single = [classwise if task.shares is not None else task for task in tasks if not task.notion.canonical]
    for task in sorted(single, key=lambda q: (not q.notion.is_binary, not q.notion.classwise)):
        if not task.notion.classwise:
            top = task.notion.top
            exact = decomposition.log_loss_of_largest(data, task.notion) if top else None
            scores += decomposition.of_event(task.problems[0], _event(task, names), exact)
        elif len(names) > 2:
            rows = Simplex.of(data.score, data.code, data.weight, counts=data.counts)
            tempered = fit_temperature(rows)
            log_loss = decomposition.log_loss_of_classes(rows, tempered, data.cluster)
            scores += decomposition.brier_of_classes(task.blocks), log_loss
    return tuple(scores), tempered


def _scores_of_sums(sketch: Sketch, names: tuple[str, ...]) -> tuple[decomposition.Score, ...]:
    """Return the proper scores that sums allow."""
    task, totals = sketch._task, sketch.totals
    if task.notion.classwise:
        # The log loss over all classes is recalibrated by rows, of which none are left.
        return (decomposition.brier_of_classes(task.blocks),)
    exact = None
    if len(names) == 2:  # what happened has the chance of the label
        exact = np.inf if totals.impossible else totals.log_loss / totals.weight
    return decomposition.of_event(task.problems[0], _event(task, names), exact)


def _event(task: CalibrationTask, names: tuple[str, ...]) -> str:
    """Return what the outcome of a question is called."""
    return task.notion.reading.event or names[task.positive or 0]


def names_of(labels: tuple[Any, ...], names: Mapping[Any, str], *, vector: bool) -> tuple[str, ...]:
    """Return what each class is called; all others have a name even if they have no label."""
    if names:
        return tuple(names.values())
    if vector and not isinstance(labels[0], str | int | float | bool):
        return f"not {labels[1]}", str(labels[1])
    return tuple(str(label) for label in labels)


def _digest(data: Predictions) -> str:
    """Return the SHA-256 of scores, labels, weights and clusters in double precision."""
    total = hashlib.sha256(repr((data.score.shape, [str(v) for v in data.labels])).encode())
    step = max(1, (1 << 20) // max(1, data.score[:1].size))
    for array in (data.score, data.code, data.weight, data.cluster):
        for a in range(0, 0 if array is None else len(array), step):
            total.update(np.ascontiguousarray(array[a : a + step], dtype="<f8").tobytes())  # type: ignore[index]
    return total.hexdigest()


def today() -> str:
    """Return the date; that of SOURCE_DATE_EPOCH where builds must be reproducible."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    if epoch.isdigit():
        return datetime.datetime.fromtimestamp(int(epoch), datetime.UTC).date().isoformat()
    return datetime.date.today().isoformat()

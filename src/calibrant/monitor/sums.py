"""One batch as sums per score cell: of rows, of clusters of rows, or of sketches."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

import numpy as np

from calibrant import inputs
from calibrant.inference.estimate import estimate
from calibrant.inputs import InputError, Predictions
from calibrant.monitor.history import Batch, MonitorSettings, StreamSums, Subject
from calibrant.monitor.process import CellSums
from calibrant.score_data import Array
from calibrant.sketch import Sketch
from calibrant.sketch.cell_sums import empty_cells
from calibrant.sketch.sketch import _reordered
from calibrant.tasks import CalibrationTask, get_notion


def of_sketches(at: Any, sketches: Mapping[Any, Sketch], subject: Subject | None) -> tuple[Subject, Batch]:
    """Return the sums of sketches by group, all of which must ask what `subject` says."""
    copies = {group: copy(sketch) for group, sketch in sketches.items()}  # another thread may update them
    known = {group: sketch for group, sketch in copies.items() if sketch.totals.rows}
    if not known:
        raise InputError("sketch", "hold rows", got="none")
    first, *others = known.values()
    subject = subject or Subject.of(first)
    for other in map(Subject.of, known.values()):
        expected, got = ((each.notion, each.classes) for each in (subject, other))
        if expected != got:
            rule = f"have the notion and the classes of the first batch, {expected[0]} of {expected[1]}"
            raise InputError("sketch", rule, got=f"{got}")
    total = sum(others, start=first)
    sums = {group: _of_sketch(sketch) for group, sketch in known.items()}
    return subject, _batch(at, sums, total._task, total.totals.dropped)


def of_rows(
    at: Any, y_true: Any, y_prob: Any, subject: Subject | None, settings: MonitorSettings, *,
    groups: Any = None, cluster: Any = None, **options: Any,
) -> tuple[Subject, Batch]:  # fmt: skip
    """Return the sums of rows by group; with `cluster`, a cluster is one row with the means of its rows."""
    inputs.same_rows(y_true=y_true, y_prob=y_prob, cluster=cluster, groups=groups)
    if subject is None:
        template = Sketch(settings.notion, labels=settings.labels, pos_label=settings.pos_label)
        subject = Subject.of(template.update(y_true, y_prob, **options))
    weighted, notion = options.get("sample_weight") is not None, get_notion(subject.notion)
    known = _empty(subject, weighted=weighted)
    known._given = {"labels": settings.labels, "pos_label": settings.pos_label}
    classes = known._known_classes(y_prob) | options
    # A class may be missing from a batch, and the columns of a matrix may come in another order.
    by_name = not notion.correctness_pairs
    data = inputs.predictions(y_true, y_prob, more=True, by_name=by_name, **classes)
    if (columns := 2 if data.score.ndim == 1 else data.score.shape[1]) != len(subject.labels):
        rule = f"be of {len(subject.labels)} classes, as in the first batch"
        raise InputError("y_prob", rule, columns)
    data = _reordered(data, subject.labels)
    data = data if cluster is None else inputs.in_clusters(data, cluster)
    values, codes = ([None], None) if groups is None else inputs.groups_of_rows(groups, data)
    largest = float(data.weight.max()) if data.weight is not None and weighted else 1.0
    sums = {}
    for k, value in enumerate(values):
        selected = data if codes is None else inputs.select_rows(data, codes == k)
        if cluster is None:
            sums[value] = _of_sketch(_empty(subject, weighted=weighted)._take(selected), largest)
        else:
            sums[value] = _of_clusters(selected, subject, largest)
    task = CalibrationTask.of(data, notion)
    return subject, _batch(at, sums, task, data.dropped)


def _batch(at: Any, sums: Mapping[Any, list[CellSums]], task: CalibrationTask, dropped: int) -> Batch:
    """Return a batch with its calibration error."""
    e = estimate(task)
    expected = e.null.quantiles.get(0.95, e.null.mean)
    streams = [
        StreamSums.of(group, k, each)
        for group in inputs.in_order(tuple(sums))
        for k, each in enumerate(sums[group])
    ]
    return Batch(at, float(e.n), e.value, e.low, e.high, float(expected), dropped, tuple(streams))


def _empty(subject: Subject, *, weighted: bool) -> Sketch:
    """Return a sketch of no rows for the same classes."""
    size = len(subject.labels)
    made = Sketch(subject.notion, n_classes=size)
    made.labels, made.positive, made._vector = subject.labels, subject.positive, subject.vector
    made._cells = empty_cells(get_notion(subject.notion), size, weighted=weighted)
    return made


def _of_sketch(sketch: Sketch, largest: float | None = None) -> list[CellSums]:
    """Return the sums of each problem; importance weights are divided by the `largest`.

    A sketch does not say which weight is the largest. It is at most the root of the largest sum of squared
    weights of a cell, and any larger divisor is valid too.
    """
    cells = sketch._score_data
    if largest is None:
        largest = float(np.sqrt(np.max(cells.squared_weights))) if sketch.weighted else 1.0
    sums = []
    for each in [cells[k] for k in range(cells.batch[0])] if cells.batch else [cells]:
        at = each.sums.w > 0
        w = each.sums.w[at]
        sums.append(CellSums.of(each.score[at], each.sums.wy[at] / w, w / largest))
    return sums


def _of_clusters(data: Predictions, subject: Subject, largest: float) -> list[CellSums]:
    """Return sums in which a cluster is one row: the means of its scores and of its outcomes.

    Its weight is the mean importance weight of its rows.
    """
    cluster = np.asarray(data.cluster)
    weight = np.ones(len(cluster)) if data.weight is None else data.weight.astype(np.float64)
    size = int(cluster.max()) + 1

    def total(values: Array) -> Array:
        return np.bincount(cluster, values, size)

    of_weights = total(weight)
    rows = np.ones(size) if data.counts else of_weights / np.bincount(cluster) / largest
    sums = []
    for problem in get_notion(subject.notion).problems(data):
        scores, outcomes = map(np.atleast_2d, (problem.score, np.asarray(problem.outcome)))
        for pair in zip(scores, outcomes, strict=True):
            score, outcome = (np.clip(total(weight * numbers) / of_weights, 0, 1) for numbers in pair)
            sums.append(CellSums.of(score, outcome, rows))
    return sums

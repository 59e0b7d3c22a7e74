"""What decisions on scores lose, how to take them, and how right those are that one keeps."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np  # noqa: F401 - the examples use it
from numpy.typing import ArrayLike

from calibrant import inputs
from calibrant.curves import rename_classes
from calibrant.decisions import (
    BestThreshold,
    Regret,
    RegretCurve,
    RiskCoverage,
    best_threshold_of,
    check_thresholds,
    cost_of,
    deciding,
    regret_curve_of,
    regret_of,
    risk_coverage_of,
)
from calibrant.inputs import Seed
from calibrant.sketch import Sketch
from calibrant.tasks import CalibrationTask, get_notion
from calibrant.tasks.notions import refuse_canonical
from calibrant.tasks.task import alone, build_task, class_names_of, read


@inputs.helpful
def regret(
    y_true: ArrayLike | Sketch,
    y_prob: ArrayLike | None = None,
    cost: Any = None,
    *,
    actions: Sequence[str] | None = None,
    labels: Sequence[Hashable] | None = None,
    pos_label: Hashable = None,
    class_names: Sequence[str] | Mapping[Any, str] | None = None,
    sample_weight: ArrayLike | None = None,
    counts: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    level: float = 0.95,
    rng: Seed = 0,
    percent: bool = False,
) -> Regret:
    """Measure the decision regret: the extra cost of acting on the scores instead of on calibrated ones.

    Parameters
    ----------
    y_true : array of shape (N,) or Sketch
        True classes; or a sketch of the scores of one class, in place of arguments about rows and classes.
    y_prob : array of shape (N,) or (N, C), optional
        Scores of the positive class, or one column for each class; left out for a sketch.
    cost : float, pair, str or matrix
        A threshold t (act if the score is t or more; a false alarm costs t and a miss 1 - t); a pair (cost
        of a false alarm, cost of a miss), which means the threshold c_fp / (c_fp + c_fn); one of these as
        text, such as "0.2" or "1:9"; or a matrix with
        a row for each true class, in the order of `labels` (by default that of the columns of scores; of a
        single one, the other class first), and a column for each action, in any unit.
        Negative entries are gains. A frame names its actions, and so does a mapping from actions to columns.
    actions : sequence of str, optional
        Names of the columns of a matrix; an action may be to abstain. Of equally good actions the first is
        taken.
    labels : sequence, optional
        The class of each column.
    pos_label : label, optional
        The class that a threshold or a pair is about.
    sample_weight : array of shape (N,), optional
        Importance of each row, on any scale: multiplying all weights by a constant changes nothing. The
        effective sample size is (sum w)^2 / sum w^2. Integers and floats mean the same.
    counts : array of shape (N,), optional
        How many equal rows each row stands for, as in an aggregated table: whole numbers of at least 0,
        and the same result as repeating the rows. Not together with `sample_weight`.
    cluster : array of shape (N,), optional
        Who or what each row is of, where rows of one depend on each other.
    level : float
        Of the interval.
    rng : int, numpy.random.Generator or None, default=0
        Seed of the simulated calibrated data behind `null`; nothing else depends on it. None draws a new one.
    percent : bool
        Whether scores are percentages, from 0 to 100. Thresholds and costs are not.
    class_names : sequence or mapping, optional
        Names of the classes in the result: in the order of the columns (1-D scores: negative, positive), or
        by label.

    Returns
    -------
    Regret
        In the unit of the costs, per row. Beyond 12 classes it is a lower bound.

    Examples
    --------
    A test that costs 1 where it is not needed, and an illness missed that costs 9:

    >>> import calibrant
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(2000)
    >>> answer = calibrant.regret(rng.random(2000) < score**2, score, (1, 9), rng=0)
    >>> answer
    Regret(0.103 [0.057, 0.190] per row, n=2000)

    Three actions, one of them to ask somebody:

    >>> costs = {"no": [0, 5], "yes": [1, 0], "ask": [0.3, 0.3]}
    >>> calibrant.regret(rng.random(2000) < score**2, score, costs, rng=0).actions
    ('no', 'yes', 'ask')
    """
    seed = inputs.seeded(rng)
    rows = y_prob, None, sample_weight, labels, pos_label, cluster
    if isinstance(y_true, Sketch):
        sketch = alone(y_true, *rows, counts=counts, percent=percent)
        task, costs = sketch._decision_task(cost, actions)
    else:
        data = read(y_true, *rows, counts=counts, percent=percent)
        task, costs = deciding(data, cost, actions, labels)
    names = class_names_of(y_true, task.labels, class_names)
    return rename_classes(regret_of(task, costs, level=level, seed=seed), names)


@inputs.helpful
def regret_curve(
    y_true: ArrayLike | Sketch,
    y_prob: ArrayLike | None = None,
    *,
    thresholds: ArrayLike | None = None,
    other: ArrayLike | None = None,
    labels: Sequence[Hashable] | None = None,
    pos_label: Hashable = None,
    class_names: Sequence[str] | Mapping[Any, str] | None = None,
    sample_weight: ArrayLike | None = None,
    counts: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    level: float = 0.95,
    rng: Seed = 0,
    percent: bool = False,
) -> RegretCurve:
    """Measure the regret at every threshold, with a band over all of them, beside the decision curves.

    Parameters
    ----------
    y_true, y_prob, labels, pos_label, sample_weight, counts, cluster, percent : as in `regret`
    thresholds : array, optional
        Strictly between 0 and 1; .01, .02, ..., .99 by default.
    other : array, optional
        Scores of another model for the same rows: `difference` is the net benefit of `y_prob` less its.
    level : float
        Of the band.
    rng : int, numpy.random.Generator or None, default=0
        Accepted as in `regret`; the result depends on the data alone.
    class_names : sequence or mapping, optional
        Names of the classes in the result: in the order of the columns (1-D scores: negative, positive), or
        by label.

    Returns
    -------
    RegretCurve
        With `worst`, the decision at which most is lost.

    Examples
    --------
    >>> import calibrant
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(2000)
    >>> curve = calibrant.regret_curve(rng.random(2000) < score**2, score)
    >>> bool((curve.low <= curve.value).all() and (curve.value <= curve.high).all())
    True
    """
    at = check_thresholds(thresholds)
    inputs.seeded(rng)
    rows = None, sample_weight, labels, pos_label, cluster
    task = _about_one(y_true, y_prob, *rows, counts=counts, percent=percent)
    names, compared = class_names_of(y_true, task.labels, class_names), None
    if other is not None:
        if isinstance(y_true, Sketch):
            raise inputs.InputError("other", "be left out for a sketch, which has no rows to pair")
        with inputs.within("other"):
            compared = _about_one(y_true, other, *rows, counts=counts, percent=percent)
    return rename_classes(regret_curve_of(task, at, level=level, other=compared), names)


@inputs.helpful
def best_threshold(
    y_true: ArrayLike | Sketch,
    y_prob: ArrayLike | None = None,
    cost: Any = None,
    *,
    labels: Sequence[Hashable] | None = None,
    pos_label: Hashable = None,
    class_names: Sequence[str] | Mapping[Any, str] | None = None,
    sample_weight: ArrayLike | None = None,
    counts: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    level: float = 0.95,
    rng: Seed = 0,
    percent: bool = False,
) -> BestThreshold:
    """Choose the threshold of least expected cost, where the scores themselves cannot be changed.

    It is chosen by the calibration map of all rows. What it costs is estimated from thresholds that were
    chosen on other rows.

    Parameters
    ----------
    y_true, y_prob, labels, pos_label, sample_weight, counts, cluster, percent : as in `regret`
    cost : float, pair or str
        A threshold, or the costs of a false alarm and of a miss, such as (1, 9) or "1:9".
    level : float
        Of the intervals.
    rng : int, numpy.random.Generator or None, default=0
        Accepted as in `regret`; the result depends on the data alone.
    class_names : sequence or mapping, optional
        Names of the classes in the result: in the order of the columns (1-D scores: negative, positive), or
        by label.

    Returns
    -------
    BestThreshold

    Examples
    --------
    >>> import calibrant
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(5000)
    >>> calibrant.best_threshold(rng.random(5000) < score**2, score, (1, 9), rng=0)
    BestThreshold(0.318, cost 0.445 per row, n=5000)
    """
    inputs.seeded(rng)
    rows = None, sample_weight, labels, pos_label, cluster
    task = _about_one(y_true, y_prob, *rows, counts=counts, percent=percent)
    costs = (
        y_true._decision_task(cost)[1] if isinstance(y_true, Sketch) else cost_of(task, cost, labels=labels)
    )
    names = class_names_of(y_true, task.labels, class_names)
    return rename_classes(best_threshold_of(task, costs.as_threshold(), level=level), names)


@inputs.helpful
def risk_coverage(
    y_true: ArrayLike | Sketch,
    y_prob: ArrayLike | None = None,
    *,
    notion: str | None = None,
    sample_weight: ArrayLike | None = None,
    counts: ArrayLike | None = None,
    labels: Sequence[Hashable] | None = None,
    pos_label: Hashable = None,
    cluster: ArrayLike | None = None,
    level: float = 0.95,
    rng: Seed = 0,
    percent: bool = False,
) -> RiskCoverage:
    """Compute the risk-coverage curve: accuracy of the most confident predictions at each coverage.

    Rows are selected in decreasing order of confidence. Rows of equal confidence are selected together, so
    the order of the rows does not matter. Intervals are for the accuracy at a coverage, and include the
    uncertainty of the threshold.

    Parameters
    ----------
    y_true : array of shape (N,) or Sketch
        Labels; of pairs, whether the answer was right; or a sketch, in place of all arguments about rows,
        classes and notion.
    y_prob : array of shape (N,) or (N, C), optional
        Scores of every class, or of the positive one; left out for a sketch.
    notion : str, optional
        `"confidence"`, the default: how sure a row is, is its largest score, and of a vector of scores s of
        the positive class the larger of s and 1 - s. `"correctness"` for pairs, was it right and how sure was
        it. `"top:k"` asks whether the label is among the k largest scores.
    sample_weight : array of shape (N,), optional
        Importance of each row, on any scale: multiplying all weights by a constant changes nothing. The
        effective sample size is (sum w)^2 / sum w^2. Integers and floats mean the same.
    counts : array of shape (N,), optional
        How many equal rows each row stands for, as in an aggregated table: whole numbers of at least 0,
        and the same result as repeating the rows. Not together with `sample_weight`.
    labels, pos_label, percent
        As for `ece`.
    cluster : array of shape (N,), optional
        Who or what each row is of; rows of one cluster may depend on each other in any way.
    level : float
        Level of all intervals, and of the band.
    rng : int, numpy.random.Generator or None, default=0
        Seed of the draws from which the band takes its width; None draws a new one.

    Returns
    -------
    RiskCoverage

    Examples
    --------
    >>> import calibrant
    >>> rng = np.random.default_rng(0)
    >>> score = rng.beta(0.5, 0.5, 1000)
    >>> found = calibrant.risk_coverage(rng.random(1000) < score, score, rng=0)
    >>> found
    RiskCoverage(confidence, n=1000, AURC 0.0...)
    >>> found.accuracy_at(0.5).value > found.accuracy_at(1).value
    True
    """
    refuse_canonical(notion)
    if notion is None and not isinstance(y_true, Sketch):
        notion = "confidence"
    rows = y_true, y_prob, notion, sample_weight, labels, pos_label, cluster
    return risk_coverage_of(build_task(*rows, counts=counts, percent=percent), level=level, rng=rng)


def _about_one(y_true: Any, *rows: Any, **more: Any) -> CalibrationTask:
    """Ask about one class, which has to be named where there are more than two."""
    if isinstance(y_true, Sketch):
        return alone(y_true, *rows, **more)._about_one_class
    data = read(y_true, *rows, **more)
    if data.positive is None:
        rule = f"name one of {list(data.labels)}, the class that the decision is about"
        raise inputs.InputError("pos_label", rule, None)
    return CalibrationTask.of(data, get_notion("binary"))

"""Public functions about decisions: decision regret, thresholds and selective prediction."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal

import numpy as np  # noqa: F401 - the examples use it
from numpy.typing import ArrayLike

from calibrant import inputs
from calibrant.curves import rename_classes
from calibrant.decisions import (
    BestThreshold,
    NetBenefit,
    Regret,
    RegretCurve,
    RiskCoverage,
    best_threshold_of,
    check_thresholds,
    cost_of,
    deciding,
    net_benefits_of,
    regret_curve_of,
    regret_of,
    risk_coverage_of,
)
from calibrant.inputs import Seed
from calibrant.sketch import Sketch
from calibrant.tasks import CalibrationTask, get_notion
from calibrant.tasks.notions import refuse_related
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
    missing: Literal["raise", "drop"] = "raise",
) -> Regret:
    """Measure the decision regret: the extra cost of acting on the scores instead of on calibrated ones.

    Parameters
    ----------
    y_true : array of shape (N,) or Sketch
        Labels; or a sketch of the scores of one class, which replaces all arguments about rows and classes.
    y_prob : array of shape (N,) or (N, C), optional
        Scores of the positive class, or one column for each class; omitted for a sketch.
    cost : float, pair, str or matrix
        One of

        - a threshold t: act if the score is at least t; a false positive costs t and a false negative 1 - t;
        - a pair (cost of a false positive, cost of a false negative), with the threshold
          c_fp / (c_fp + c_fn);
        - one of these as text, such as "0.2" or "1:9";
        - a matrix with a row for each true class and a column for each action, in any unit. Rows are in the
          order of `labels`, by default that of the score columns (1-D scores: negative, positive). Negative
          entries are gains. The columns of a data frame, or the keys of a mapping from action to column, are
          the names of the actions.
    actions : sequence of str, optional
        Names of the columns of a matrix; an action may be to abstain. The first of equally good actions is
        chosen.
    labels : sequence, optional
        Class of each column, as for `calibrant.ece`. They are also the rows of a cost matrix.
    pos_label : label, optional
        The positive class of a threshold or a pair.
    sample_weight : array of shape (N,), optional
        Importance weight of each row, on any scale: multiplying all weights by a constant changes nothing.
        The effective sample size is (sum w)^2 / sum w^2. Integers are treated like floats.
    counts : array of shape (N,), optional
        Number of identical rows that each row represents, as in an aggregated table: integers of at least 0.
        The result is the same as for repeated rows. Cannot be combined with `sample_weight`.
    cluster : array of shape (N,), optional
        Cluster id of each row, if rows of a cluster depend on each other.
    level : float
        Confidence level of the interval.
    rng : int, numpy.random.Generator or None, default=0
        Seed of the calibrated data sets simulated for `null`; nothing else depends on it. None draws a new
        seed.
    percent : bool
        Whether scores are percentages, from 0 to 100. Thresholds and costs are not percentages.
    missing : {"raise", "drop"}
        Rows whose label is missing (None, NaN, NaT, NA or masked) are refused, or left out with all that
        belongs to them. The result says in a caution how many were left out.
    class_names : sequence or mapping, optional
        Names of the classes in the result: in the order of the columns (1-D scores: negative, positive), or
        by label.

    Returns
    -------
    Regret
        Regret per row, in the unit of the costs. Above 12 classes it is a lower bound.

    See Also
    --------
    regret_curve : Regret at every threshold.
    best_threshold : Threshold of least expected cost.

    Examples
    --------
    An unnecessary test costs 1, and a missed illness costs 9:

    >>> import calibrant
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(2000)
    >>> answer = calibrant.regret(rng.random(2000) < score**2, score, (1, 9), rng=0)
    >>> answer
    Regret(0.104 [0.053, 0.190] per row, n=2000)

    Three actions, one of which is to ask an expert:

    >>> costs = {"no": [0, 5], "yes": [1, 0], "ask": [0.3, 0.3]}
    >>> calibrant.regret(rng.random(2000) < score**2, score, costs, rng=0).actions
    ('no', 'yes', 'ask')
    """
    seed = inputs.seeded(rng)
    rows = y_prob, None, sample_weight, labels, pos_label, cluster
    if isinstance(y_true, Sketch):
        sketch = alone(y_true, *rows, counts=counts, percent=percent, missing=missing)
        task, costs = sketch._decision_task(cost, actions)
    else:
        data = read(y_true, *rows, counts=counts, percent=percent, missing=missing)
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
    missing: Literal["raise", "drop"] = "raise",
) -> RegretCurve:
    """Compute net benefit and decision regret by threshold, with a simultaneous band of the regret.

    Parameters
    ----------
    y_true, y_prob, labels, pos_label, sample_weight, counts, cluster, percent, missing
        As for `regret`.
    thresholds : array, optional
        Thresholds strictly between 0 and 1; by default .01, .02, ..., .99.
    other : array, optional
        Scores of another model for the same rows. `difference` is the net benefit of `y_prob` minus that of
        the other model.
    level : float
        Level of the band.
    rng : int, numpy.random.Generator or None, default=0
        Has no effect: the result depends on the data alone.
    class_names : sequence or mapping, optional
        Names of the classes in the result: in the order of the columns (1-D scores: negative, positive), or
        by label.

    Returns
    -------
    RegretCurve
        The curves; `worst` is the threshold with the largest regret.

    See Also
    --------
    net_benefit : Net benefit with intervals at given thresholds.
    regret : Regret of one decision.

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
    task = _about_one(y_true, y_prob, *rows, counts=counts, percent=percent, missing=missing)
    names, compared = class_names_of(y_true, task.labels, class_names), None
    if other is not None:
        if isinstance(y_true, Sketch):
            raise inputs.InputError("other", "be left out for a sketch, which has no rows to pair")
        with inputs.within("other"):
            compared = _about_one(y_true, other, *rows, counts=counts, percent=percent, missing=missing)
    return rename_classes(regret_curve_of(task, at, level=level, other=compared), names)


@inputs.helpful
def net_benefit(
    y_true: ArrayLike | Sketch,
    y_prob: ArrayLike | None = None,
    thresholds: ArrayLike | None = None,
    *,
    simultaneous: bool = False,
    labels: Sequence[Hashable] | None = None,
    pos_label: Hashable = None,
    class_names: Sequence[str] | Mapping[Any, str] | None = None,
    sample_weight: ArrayLike | None = None,
    counts: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    level: float = 0.95,
    percent: bool = False,
    missing: Literal["raise", "drop"] = "raise",
) -> NetBenefit:
    """Compute the net benefit of a model, of treating all and of treating none, with intervals.

    Net benefit is the share of true positives minus t / (1 - t) times that of false positives, where rows
    with a score of at least t are treated (decision curve analysis).

    Parameters
    ----------
    y_true, y_prob, labels, pos_label, class_names, sample_weight, counts, cluster, percent, missing
        As for `regret`.
    thresholds : array, optional
        Thresholds strictly between 0 and 1; by default .01, .02, ..., .99.
    simultaneous : bool
        Whether the intervals of all thresholds hold together at `level`, instead of each by itself.
    level : float
        Level of the intervals.

    Returns
    -------
    NetBenefit
        Net benefits, and the differences between the model and treating all or none.

    See Also
    --------
    regret_curve : Net benefit and decision regret over all thresholds, and two models compared.

    Examples
    --------
    >>> import calibrant
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(2000)
    >>> result = calibrant.net_benefit(rng.random(2000) < score**2, score, [0.2, 0.5])
    >>> result.model.value.round(3), result.minus_all.low.round(3)
    (array([0.212, 0.078]), array([0.043, 0.392]))
    """
    at = check_thresholds(thresholds)
    rows = y_prob, None, sample_weight, labels, pos_label, cluster
    task = _about_one(y_true, *rows, counts=counts, percent=percent, missing=missing)
    names = class_names_of(y_true, task.labels, class_names)
    return rename_classes(net_benefits_of(task, at, level=level, simultaneous=simultaneous), names)


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
    missing: Literal["raise", "drop"] = "raise",
) -> BestThreshold:
    """Choose the threshold of least expected cost, for models whose scores are not recalibrated.

    The threshold is computed from a calibration map fitted to all rows. Its cost is estimated by
    cross-fitting: from thresholds chosen on other rows.

    Parameters
    ----------
    y_true, y_prob, labels, pos_label, sample_weight, counts, cluster, percent, missing
        As for `regret`.
    cost : float, pair or str
        A threshold, or the costs of a false positive and of a false negative, such as (1, 9) or "1:9".
    level : float
        Confidence level of the intervals.
    rng : int, numpy.random.Generator or None, default=0
        Has no effect: the result depends on the data alone.
    class_names : sequence or mapping, optional
        Names of the classes in the result: in the order of the columns (1-D scores: negative, positive), or
        by label.

    Returns
    -------
    BestThreshold
        The threshold, and its cost compared with that of the threshold implied by the costs.

    See Also
    --------
    regret : Cost of acting on the scores as they are.

    Examples
    --------
    >>> import calibrant
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(5000)
    >>> calibrant.best_threshold(rng.random(5000) < score**2, score, (1, 9), rng=0)
    BestThreshold(0.318, cost 0.447 per row, n=5000)
    """
    inputs.seeded(rng)
    rows = None, sample_weight, labels, pos_label, cluster
    task = _about_one(y_true, y_prob, *rows, counts=counts, percent=percent, missing=missing)
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
    missing: Literal["raise", "drop"] = "raise",
) -> RiskCoverage:
    """Compute the risk-coverage curve: accuracy of the most confident predictions at each coverage.

    Rows are selected in decreasing order of confidence. Rows of equal confidence are selected together, so
    the order of the rows does not matter. Intervals are for the accuracy at a coverage, and include the
    uncertainty of the threshold.

    Parameters
    ----------
    y_true : array of shape (N,) or Sketch
        Labels; for `"correctness"`, whether each prediction was correct; or a sketch, which replaces all
        arguments about rows, classes and notion.
    y_prob : array of shape (N,) or (N, C), optional
        Scores of every class, or of the positive class; omitted for a sketch.
    notion : str, optional
        Definition of confidence and of a correct prediction. `"confidence"`, the default: the confidence of a
        row is its largest score (1-D scores s: the larger of s and 1 - s). `"correctness"`: `y_prob` is the
        confidence, and `y_true` whether the prediction was correct. Here any finite ranking of the rows is
        accepted, such as log-probabilities or ratings from 0 to 10. `"top:k"`: a row is correct if its label
        is among the k largest scores.
    sample_weight : array of shape (N,), optional
        Importance weight of each row, on any scale: multiplying all weights by a constant changes nothing.
        The effective sample size is (sum w)^2 / sum w^2. Integers are treated like floats.
    counts : array of shape (N,), optional
        Number of identical rows that each row represents, as in an aggregated table: integers of at least 0.
        The result is the same as for repeated rows. Cannot be combined with `sample_weight`.
    labels, pos_label, percent, missing
        As for `ece`.
    cluster : array of shape (N,), optional
        Cluster id of each row; rows of a cluster may depend on each other in any way.
    level : float
        Confidence level of all intervals and of the band.
    rng : int, numpy.random.Generator or None, default=0
        Seed of the simulation of the band; None draws a new seed.

    Returns
    -------
    RiskCoverage
        Accuracy at each coverage, AURC and E-AURC.

    See Also
    --------
    ece : Calibration error of the confidence.

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

    Any ranking of answers, here their log-probability:

    >>> found = calibrant.risk_coverage([1, 1, 0, 0], [-0.1, -0.4, -2.5, -1.2], notion="correctness")
    >>> found.confidence
    array([-0.1, -0.4, -1.2, -2.5])
    """
    refuse_related(notion)
    if notion is None and not isinstance(y_true, Sketch):
        notion = "confidence"
    values = None
    if y_prob is not None and notion is not None and get_notion(notion).correctness_pairs and not percent:
        y_prob, values = inputs.ranking(y_prob)
    rows = y_true, y_prob, notion, sample_weight, labels, pos_label, cluster
    task = build_task(*rows, counts=counts, percent=percent, missing=missing)
    found = risk_coverage_of(task, level=level, rng=rng)
    return found if values is None else found._on_scale(values)


def _about_one(y_true: Any, *rows: Any, **more: Any) -> CalibrationTask:
    """Return the task of the positive class, which must be given if there are more than two classes."""
    if isinstance(y_true, Sketch):
        return alone(y_true, *rows, **more)._about_one_class
    data = read(y_true, *rows, **more)
    if data.positive is None:
        rule = f"name one of {list(data.labels)}, the class that the decision is about"
        raise inputs.InputError("pos_label", rule, None)
    return CalibrationTask.of(data, get_notion("binary"))

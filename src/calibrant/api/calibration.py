"""Public functions that measure calibration, from labels and scores or from a sketch.

Each function validates its input, builds a calibration task and passes it to the package that computes the
result. That package is imported when it is first needed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np  # noqa: F401 - the examples use it
from numpy.typing import ArrayLike

from calibrant import inputs
from calibrant.estimators.base import chosen_bins, measure
from calibrant.inputs import Array, Seed
from calibrant.tasks import default_notion
from calibrant.tasks.notions import check_canonical_options, refuse_canonical, refuse_related
from calibrant.tasks.task import alone, build_task, class_names_of, is_sketch, read

if TYPE_CHECKING:
    from typing import TypeAlias, TypedDict, Unpack

    from calibrant.assessment.assessment import Assessment
    from calibrant.curves import (
        Band,
        ByClass,
        Method,
        Progress,
        ReliabilityCurve,
        ReliabilityDiagram,
        ScoreHistogram,
    )
    from calibrant.estimators import EstimatorLike, Norm
    from calibrant.estimators.binned import Binned
    from calibrant.inference.recommendation import Recommendation
    from calibrant.inference.result import Estimate
    from calibrant.sketch import Sketch

    # Types of calibration with one result, and with one for each class.
    OneScore: TypeAlias = Literal["binary", "class", "confidence", "correctness"]
    EachClass: TypeAlias = Literal["classwise", "top-label", "multilabel"]

    class RowOptions(TypedDict, total=False):
        """Keyword arguments about rows and classes."""

        sample_weight: ArrayLike | None
        counts: ArrayLike | None
        labels: Sequence[Hashable] | None
        pos_label: Hashable
        class_names: Sequence[str] | Mapping[Any, str] | None
        percent: bool
        missing: Literal["raise", "drop"]

    class HistogramOptions(RowOptions, total=False):
        """Keyword arguments of `score_histogram` besides the notion."""

        bins: int

    class DiagramOptions(RowOptions, total=False):
        """Keyword arguments of `reliability_diagram` besides the notion."""

        binning: str | Binned
        n_bins: int | Literal["sqrt"] | None
        strategy: Literal["uniform", "quantile"] | None
        mapping: Literal["one", "convex", "published"] | None
        interval: str
        level: float
        cluster: ArrayLike | None

    class CurveOptions(RowOptions, total=False):
        """Keyword arguments of `reliability_curve` besides the notion."""

        method: Method
        kernel: str | None
        bandwidth: str | float | None
        n_boot: int | None
        level: float
        band: Band | None
        rng: Seed
        progress: Progress | bool | None
        cluster: ArrayLike | None


@inputs.helpful
def ece(
    y_true: ArrayLike | Sketch,
    y_prob: ArrayLike | None = None,
    *,
    notion: str | None = None,
    estimator: EstimatorLike = "auto",
    n_bins: int | Literal["sqrt"] | None = None,
    strategy: Literal["uniform", "quantile"] | None = None,
    norm: Norm = "l1",
    sample_weight: ArrayLike | None = None,
    counts: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    labels: Sequence[Hashable] | None = None,
    pos_label: Hashable = None,
    percent: bool = False,
    missing: Literal["raise", "drop"] = "raise",
    from_logits: bool = False,
) -> float:
    """Estimate the calibration error: of one class for 1-D scores, of confidence for a matrix.

    The default is not the binned ECE but the posterior mean of the calibration error. The binned ECE with 15
    bins is `estimator="uniform:15"`. A matrix with two columns measures confidence; its second column alone
    measures the calibration of the positive class, so the two give different numbers.

    Parameters
    ----------
    y_true : array of shape (N,) or Sketch
        Labels; or a sketch, which replaces all arguments about rows, classes and notion.
    y_prob : array of shape (N,) or (N, C), optional
        Scores of the positive class, or of every class; omitted for a sketch. Columns of a data frame are
        matched to the classes if their names identify these. Names that contradict the labels raise an
        error.
    notion : {"binary", "classwise", "confidence", "top-label", "multilabel", ...}, optional
        Type of calibration. By default "binary" for 1-D scores and "confidence" for a matrix.

        - "binary" (or "class"): score of one class against its frequency.
        - "classwise": mean over the classes of the binary error of each class.
        - "confidence": largest score against accuracy.
        - "top-label": largest score against accuracy for each predicted class (Gupta and Ramdas 2022),
          averaged over these by their frequency.
        - "multilabel": mean over the columns of the binary error of each, where a row can have any number of
          labels: `y_true` is a matrix with 1 where a row has the label, and rows of `y_prob` have any sum.
        - "top:k": sum of the k largest scores against the frequency of the label among them.
        - "correctness": pairs of confidence and whether the prediction was correct.
        - "canonical" (or "multiclass"): scores of all classes jointly against their frequencies.
    estimator : str, estimator or function
        A name such as "uniform:15", "adaptive", "c:sqrt" or "d:0.033" (see `estimator_names`), a
        value such as `Binned("adaptive", 10)`, a function f(scores, outcomes, weights), or "auto".
        The canonical notion has other estimators: "softmax" (the default), "dirichlet", "variational:<map>"
        and "skce".
    n_bins, strategy : int or "sqrt", {"uniform", "quantile"}, optional
        Bins of a binned estimator as in scikit-learn, instead of `estimator`: `n_bins=10,
        strategy="quantile"` is "adaptive:10". If only one is given, the other is 15 or "uniform".
    norm : {"l1", "l2", "max", "mul"}
        Mean, root mean square or maximum of the absolute gap. For the canonical notion, with eta the
        frequencies of the classes given the scores s: "l1" is the mean of ``sum_k |eta_k - s_k|``, "l2" the
        root of the mean of ``sum_k (eta_k - s_k)^2``, and "mul" (from the paper) the mean of
        ``sum_k eta_k |eta_k - s_k|``. These sums are not divided by the number of classes, so "l1" can be 2.
    sample_weight : array of shape (N,), optional
        Importance weight of each row, on any scale: multiplying all weights by a constant changes nothing.
        The effective sample size is (sum w)^2 / sum w^2. Integers are treated like floats.
    counts : array of shape (N,), optional
        Number of identical rows that each row represents, as in an aggregated table: integers of at least 0.
        The result is the same as for repeated rows. Cannot be combined with `sample_weight`.
    cluster : array of shape (N,), optional
        Cluster id of each row, if rows of a cluster depend on each other: patient, user or question. The
        default estimator then uses the effective sample size. The value of a named estimator does not depend
        on clusters; the interval of `estimate` does.
    labels : sequence, optional
        Class of each column. Columns of a frame that are named after the same classes in another order are
        matched by name.
    pos_label : label, optional
        The positive class.
    percent : bool
        Whether scores are percentages, from 0 to 100.
    missing : {"raise", "drop"}
        Rows whose label is missing (None, NaN, NaT, NA or masked) are refused, or left out with all that
        belongs to them. The result says in a caution how many were left out.
    from_logits : bool
        Whether scores are log-odds (1-D, or each column with `notion="multilabel"`) or logits of the classes
        (2-D). A warning tells if they look like probabilities.

    Returns
    -------
    float
        The calibration error.

    See Also
    --------
    estimate : The same with a confidence interval and a test.
    reliability_curve : Frequency of the outcome as a function of the score.

    Examples
    --------
    >>> import calibrant
    >>> y_true = [0, 0, 1, 1, 0, 1]
    >>> y_prob = [0.1, 0.4, 0.35, 0.8, 0.45, 0.9]
    >>> round(calibrant.ece(y_true, y_prob, estimator="uniform:2"), 4)
    0.1
    >>> sketch = calibrant.Sketch().update(y_true, y_prob)
    >>> round(calibrant.ece(sketch, estimator="uniform:2"), 4)
    0.1
    """
    estimator = chosen_bins(estimator, n_bins, strategy)
    check_canonical_options(notion, clustered=cluster is not None, norm=norm)
    rows = y_true, y_prob, notion, sample_weight, labels, pos_label, cluster
    task = build_task(
        *rows,
        counts=counts,
        percent=percent,
        missing=missing,
        from_logits=from_logits,
        estimator=estimator,
    )
    return measure(task, estimator, norm)


@inputs.helpful
def mce(
    y_true: ArrayLike | Sketch,
    y_prob: ArrayLike | None = None,
    *,
    notion: str | None = None,
    estimator: EstimatorLike = "auto",
    n_bins: int | Literal["sqrt"] | None = None,
    strategy: Literal["uniform", "quantile"] | None = None,
    sample_weight: ArrayLike | None = None,
    counts: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    labels: Sequence[Hashable] | None = None,
    pos_label: Hashable = None,
    percent: bool = False,
    missing: Literal["raise", "drop"] = "raise",
    from_logits: bool = False,
) -> float:
    """Estimate the maximum calibration error: `ece` with `norm="max"`.

    Parameters
    ----------
    y_true, y_prob, notion, estimator, n_bins, strategy, sample_weight, counts, cluster, labels, pos_label
        As for `ece`.
    percent, missing, from_logits
        As for `ece`.

    Returns
    -------
    float
        The largest absolute calibration gap.

    See Also
    --------
    ece : Other norms.

    Examples
    --------
    >>> import calibrant
    >>> y_true = [0, 0, 1, 1, 0, 1]
    >>> y_prob = [0.1, 0.4, 0.35, 0.8, 0.45, 0.9]
    >>> round(calibrant.mce(y_true, y_prob, estimator="uniform:2"), 4)
    0.15
    """
    estimator = chosen_bins(estimator, n_bins, strategy)
    check_canonical_options(notion, norm="max")
    rows = y_true, y_prob, notion, sample_weight, labels, pos_label, cluster
    task = build_task(
        *rows,
        counts=counts,
        percent=percent,
        missing=missing,
        from_logits=from_logits,
        estimator=estimator,
    )
    return measure(task, estimator, "max")


@inputs.helpful
def estimate(
    y_true: ArrayLike | Sketch,
    y_prob: ArrayLike | None = None,
    *,
    notion: str | None = None,
    estimator: EstimatorLike = "auto",
    n_bins: int | Literal["sqrt"] | None = None,
    strategy: Literal["uniform", "quantile"] | None = None,
    norm: Norm = "l1",
    level: float = 0.95,
    rng: Seed = 0,
    n_resamples: int | None = None,
    sample_weight: ArrayLike | None = None,
    counts: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    labels: Sequence[Hashable] | None = None,
    pos_label: Hashable = None,
    class_names: Sequence[str] | Mapping[Any, str] | None = None,
    progress: Progress | bool | None = None,
    percent: bool = False,
    missing: Literal["raise", "drop"] = "raise",
    from_logits: bool = False,
) -> Estimate:
    """Estimate the calibration error with a confidence interval and a test; for a matrix, of confidence.

    Parameters
    ----------
    y_true, y_prob, notion, estimator, n_bins, strategy, sample_weight, counts, labels, pos_label, percent
        As for `ece`.
    missing, from_logits
        As for `ece`.
    cluster : array of shape (N,), optional
        Cluster id of each row. Rows of a cluster may depend on each other in any way; clusters are
        independent. Value, interval, null distribution and test account for clusters. The classwise notion
        then allows up to 20 classes.
    norm : {"l1", "l2", "mul"}
        Mean or root mean square of the absolute gap; for the canonical notion, as for `ece`.
    level : float
        Confidence level of the interval for the true error.
    rng : int, numpy.random.Generator or None, default=0
        Seed of the null distribution and of the test, which the estimate records. None draws a new seed at
        each call. The interval does not depend on it, and neither does the null distribution of a named
        estimator (except for the canonical notion): both use a fixed seed.
    n_resamples : int, optional
        Number of calibrated data sets simulated for the test, 999 by default. The p-value is at least
        1 / (1 + n_resamples). With more than 20 classes it is the number for each class with a small
        p-value; the joint test of all classes uses 199.
    progress : bool or callable, optional
        For many classes: True shows the progress on standard error; a callable is called as
        progress(done, total).
    class_names : sequence or mapping, optional
        Names of the classes in the result: in the order of the columns (1-D scores: negative, positive), or
        by label.

    Returns
    -------
    Estimate
        The value, its interval, the value expected if calibrated, the p-value (H0: the model is calibrated),
        the parts due to scores that are too high and too low, and `by_class` for the classwise notion. The
        canonical notion has no such parts. It has a lower confidence limit that holds for any shape of the
        gap (`at_least`); `lower_bound` tells whether only a part of the error can be estimated, because there
        are many classes.

    See Also
    --------
    ece : The value alone.
    compare : Several models on the same labels.
    assess : All results about one model.

    Examples
    --------
    >>> import calibrant
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(1000)
    >>> result = calibrant.estimate(rng.random(1000) < score**2, score, rng=0)
    >>> result.low < 1 / 6 < result.high, result.p_value, result.over > result.under
    (True, 0.001, True)
    """
    from calibrant.curves import rename_classes
    from calibrant.inference import estimate as inference

    estimator = chosen_bins(estimator, n_bins, strategy)
    check_canonical_options(notion, clustered=cluster is not None, norm=norm)
    rows = y_true, y_prob, notion, sample_weight, labels, pos_label, cluster
    task = build_task(
        *rows,
        counts=counts,
        percent=percent,
        missing=missing,
        from_logits=from_logits,
        estimator=estimator,
    )
    names = class_names_of(y_true, task.labels, class_names)
    steps = inputs.Steps(inputs.progress(progress), inference.count_steps(task)) if progress else None
    options: dict[str, Any] = {"estimator": estimator, "norm": norm, "level": level, "rng": rng}
    result = inference.estimate(task, step=steps, n_resamples=n_resamples, **options)
    if steps is not None:
        steps.end()
    return rename_classes(result, names) if names else result


@overload
def reliability_curve(
    y_true: ArrayLike, y_prob: ArrayLike, *, notion: OneScore | None = None, **options: Unpack[CurveOptions]
) -> ReliabilityCurve: ...
@overload
def reliability_curve(
    y_true: ArrayLike, y_prob: ArrayLike, *, notion: EachClass, **options: Unpack[CurveOptions]
) -> ByClass[ReliabilityCurve]: ...
@overload
def reliability_curve(
    y_true: ArrayLike | Sketch,
    y_prob: ArrayLike | None = None,
    *,
    notion: str | None = None,
    **options: Unpack[CurveOptions],
) -> ReliabilityCurve | ByClass[ReliabilityCurve]: ...
@inputs.helpful
def reliability_curve(
    y_true: ArrayLike | Sketch,
    y_prob: ArrayLike | None = None,
    *,
    notion: str | None = None,
    method: Method = "bayes",
    kernel: str | None = None,
    bandwidth: str | float | None = None,
    n_boot: int | None = None,
    level: float = 0.95,
    band: Band | None = "pointwise",
    rng: Seed = 0,
    sample_weight: ArrayLike | None = None,
    counts: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    labels: Sequence[Hashable] | None = None,
    pos_label: Hashable = None,
    class_names: Sequence[str] | Mapping[Any, str] | None = None,
    progress: Progress | bool | None = None,
    percent: bool = False,
    missing: Literal["raise", "drop"] = "raise",
) -> ReliabilityCurve | ByClass[ReliabilityCurve]:
    """Estimate the frequency of the outcome at every score, with a band; for a matrix, the accuracy.

    Parameters
    ----------
    y_true, y_prob, notion, sample_weight, counts, labels, pos_label, percent, missing
        As for `ece`. With `notion="classwise"` the result is a mapping from class to curve;
        `"canonical"` has no curve and raises an error.
    cluster : array of shape (N,), optional
        Cluster id of each row, as for `estimate`. The curve and its band are those of the effective sample
        size; with `method="density"` the curve is the same and whole clusters are resampled.
    method : {"bayes", "density"}
        "bayes" is a Bayesian model average on the log-odds. It is not the model of `ece`, so the mean of
        ``|curve - score|`` differs from the value of `ece`. "density" is the paper's curve, a ratio of kernel
        densities.
    kernel : {"triweight", "gaussian", "epanechnikov", "cosine", "beta", "beta2"}, optional
        With `method="density"`: the kernel, by default "triweight". The beta kernels are those of Chen.
    bandwidth : {"silverman", "scott", "isj"} or float, optional
        With `method="density"`: standard deviation of the kernel (for beta kernels, Chen's b), or the rule
        that chooses it, by default "silverman" (for beta kernels "scott").
    n_boot : int, optional
        With `method="density"`: number of bootstrap resamples, by default 200. The curve is their median;
        with 0 it is the curve of the sample.
    level : float
        Level of the band.
    band : {"pointwise", "simultaneous", "corrected", "bootstrap"} or None
        "pointwise" covers the true frequency at each single score with probability `level`, "simultaneous"
        the whole curve. With `method="density"`, "pointwise" means "corrected", which accounts for the bias
        of smoothing and needs no resamples; "bootstrap" is the paper's band, which shows the noise alone and
        needs `n_boot`. None omits the band.
    rng : int, numpy.random.Generator or None, default=0
        Seed of the bootstrap; `method="bayes"` needs none. None draws a new seed.
    progress : bool or callable, optional
        True shows the progress of the bootstrap on standard error; a callable is called as
        progress(done, n_boot).
    class_names : sequence or mapping, optional
        Names of the classes in the result: in the order of the columns (1-D scores: negative, positive), or
        by label.

    Returns
    -------
    ReliabilityCurve
        The curve at scores that have rows nearby. If there are few distinct scores that repeat (`discrete`),
        it is defined at these scores only.

    See Also
    --------
    reliability_diagram : The same with bins.
    lce : Calibration gap at given scores.

    Examples
    --------
    >>> import calibrant
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(1000)
    >>> curve = calibrant.reliability_curve(rng.random(1000) < score**2, score)
    >>> point = curve.at(0.5)
    >>> bool(point.low < 0.25 < point.high)
    True
    """
    from calibrant.curves import curve_of, rename_classes

    refuse_canonical(notion)
    rows = y_true, y_prob, notion, sample_weight, labels, pos_label, cluster
    task = build_task(*rows, counts=counts, percent=percent, missing=missing)
    names = class_names_of(y_true, task.labels, class_names)
    curve = curve_of(
        task,
        method=method,
        kernel=kernel,
        bandwidth=bandwidth,
        n_boot=n_boot,
        level=level,
        band=band,
        rng=rng,
        progress=inputs.progress(progress),
    )
    return rename_classes(curve, names)


@overload
def reliability_diagram(
    y_true: ArrayLike, y_prob: ArrayLike, *, notion: OneScore | None = None, **options: Unpack[DiagramOptions]
) -> ReliabilityDiagram: ...
@overload
def reliability_diagram(
    y_true: ArrayLike, y_prob: ArrayLike, *, notion: EachClass, **options: Unpack[DiagramOptions]
) -> ByClass[ReliabilityDiagram]: ...
@overload
def reliability_diagram(
    y_true: ArrayLike | Sketch,
    y_prob: ArrayLike | None = None,
    *,
    notion: str | None = None,
    **options: Unpack[DiagramOptions],
) -> ReliabilityDiagram | ByClass[ReliabilityDiagram]: ...
@inputs.helpful
def reliability_diagram(
    y_true: ArrayLike | Sketch,
    y_prob: ArrayLike | None = None,
    *,
    notion: str | None = None,
    binning: str | Binned = "uniform:15",
    n_bins: int | Literal["sqrt"] | None = None,
    strategy: Literal["uniform", "quantile"] | None = None,
    mapping: Literal["one", "convex", "published"] | None = None,
    interval: str = "wilson",
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    counts: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    labels: Sequence[Hashable] | None = None,
    pos_label: Hashable = None,
    class_names: Sequence[str] | Mapping[Any, str] | None = None,
    percent: bool = False,
    missing: Literal["raise", "drop"] = "raise",
) -> ReliabilityDiagram | ByClass[ReliabilityDiagram]:
    """Compute mean score and frequency in each bin, with intervals; for a matrix, accuracy by confidence.

    Parameters
    ----------
    y_true, y_prob, notion, sample_weight, counts, labels, pos_label, percent, missing
        As for `ece`. With `notion="classwise"` the result is a mapping from class to diagram.
    cluster : array of shape (N,), optional
        Cluster id of each row, as for `estimate`. Bins are the same; intervals are as wide as those of the
        effective sample size.
    binning : str or Binned
        Name of a binned estimator, for instance "uniform:15" or "adaptive:10", or a `Binned` object.
    n_bins, strategy : optional
        As for `ece`, instead of `binning`.
    mapping : {"one", "convex", "published"}, optional
        How rows are assigned to bins (see `Binned`); by default that of `binning`.
    interval : {"wilson", "clopper-pearson"}
        Type of the confidence interval of each frequency.
    level : float
        Confidence level of these intervals.
    class_names : sequence or mapping, optional
        Names of the classes in the result: in the order of the columns (1-D scores: negative, positive), or
        by label.

    Returns
    -------
    ReliabilityDiagram
        Mean score, frequency, interval and number of rows of each bin.

    See Also
    --------
    reliability_curve : The same without bins.

    Examples
    --------
    >>> import calibrant
    >>> diagram = calibrant.reliability_diagram([0, 1, 1, 1], [0.1, 0.3, 0.8, 0.9], binning="uniform:2")
    >>> diagram.frequency
    array([0.5, 1. ])
    """
    from calibrant.curves import bins_of, diagram_of, each_problem, rename_classes

    binning = chosen_bins(binning, n_bins, strategy)
    refuse_canonical(notion)
    bins = bins_of(binning, mapping)
    options: dict[str, Any] = {"counts": counts, "percent": percent, "missing": missing, "estimator": bins}
    rows = y_true, y_prob, notion, sample_weight, labels, pos_label, cluster
    task = build_task(*rows, **options)
    names = class_names_of(y_true, task.labels, class_names)
    diagram = each_problem(task, diagram_of, binning=bins, interval=interval, level=level)
    return rename_classes(diagram, names)


@overload
def score_histogram(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    notion: OneScore | None = None,
    **options: Unpack[HistogramOptions],
) -> ScoreHistogram: ...
@overload
def score_histogram(
    y_true: ArrayLike, y_prob: ArrayLike, *, notion: EachClass, **options: Unpack[HistogramOptions]
) -> ByClass[ScoreHistogram]: ...
@overload
def score_histogram(
    y_true: ArrayLike | Sketch,
    y_prob: ArrayLike | None = None,
    *,
    notion: str | None = None,
    **options: Unpack[HistogramOptions],
) -> ScoreHistogram | ByClass[ScoreHistogram]: ...
@inputs.helpful
def score_histogram(
    y_true: ArrayLike | Sketch,
    y_prob: ArrayLike | None = None,
    *,
    notion: str | None = None,
    bins: int = 50,
    sample_weight: ArrayLike | None = None,
    counts: ArrayLike | None = None,
    labels: Sequence[Hashable] | None = None,
    pos_label: Hashable = None,
    class_names: Sequence[str] | Mapping[Any, str] | None = None,
    percent: bool = False,
    missing: Literal["raise", "drop"] = "raise",
) -> ScoreHistogram | ByClass[ScoreHistogram]:
    """Count scores with and without the outcome; for a matrix, confidences of correct and wrong predictions.

    Parameters
    ----------
    y_true, y_prob, notion, sample_weight, counts, labels, pos_label, percent, missing
        As for `ece`. With `notion="classwise"` the result is a mapping from class to histogram.
    bins : int
        Number of bins of equal width.
    class_names : sequence or mapping, optional
        Names of the classes in the result: in the order of the columns (1-D scores: negative, positive), or
        by label.

    Returns
    -------
    ScoreHistogram
        Rows with and without the outcome in each bin.

    See Also
    --------
    reliability_diagram : Frequency of the outcome in each bin.

    Examples
    --------
    >>> import calibrant
    >>> counts = calibrant.score_histogram([0, 1, 1, 1], [0.1, 0.3, 0.8, 0.9], bins=2)
    >>> counts.positive, counts.negative
    (array([1., 2.]), array([1., 0.]))
    """
    from calibrant.curves import each_problem, histogram_of, rename_classes

    refuse_canonical(notion)
    rows = y_true, y_prob, notion, sample_weight, labels, pos_label
    task = build_task(*rows, counts=counts, percent=percent, missing=missing)
    names = class_names_of(y_true, task.labels, class_names)
    return rename_classes(each_problem(task, histogram_of, bins=bins), names)


@inputs.helpful
def lce(
    y_true: ArrayLike | Sketch,
    y_prob: ArrayLike | None = None,
    at: ArrayLike | None = None,
    *,
    notion: str | None = None,
    method: Method = "bayes",
    kernel: str | None = None,
    bandwidth: str | float | None = None,
    sample_weight: ArrayLike | None = None,
    counts: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    labels: Sequence[Hashable] | None = None,
    pos_label: Hashable = None,
    percent: bool = False,
    missing: Literal["raise", "drop"] = "raise",
) -> Array:
    """Estimate the local calibration error, frequency minus score, at given scores.

    Parameters
    ----------
    at : float or array
        Scores in [0, 1], also if `y_prob` holds percentages.
    y_true, y_prob, notion, method, kernel, bandwidth, sample_weight, counts, cluster, labels, pos_label
        As for `reliability_curve`.
    percent, missing
        As for `reliability_curve`.

    Returns
    -------
    array
        Calibration gaps, of the shape of `at`; NaN at scores without data. With `notion="classwise"` the
        first axis is that of the classes.

    See Also
    --------
    reliability_curve : The curve itself, with a band.

    Examples
    --------
    >>> import calibrant
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(4000)
    >>> error = calibrant.lce(rng.random(4000) < score**2, score, at=0.5)
    >>> bool(abs(error + 0.25) < 0.05)
    True
    """
    from calibrant.curves import curve_of, local_error

    refuse_canonical(notion)
    scores = inputs.scores("at", at)
    rows = y_true, y_prob, notion, sample_weight, labels, pos_label, cluster
    task = build_task(*rows, counts=counts, percent=percent, missing=missing)
    options: dict[str, Any] = {"method": method, "kernel": kernel, "bandwidth": bandwidth}
    return local_error(curve_of(task, n_boot=0, band=None, **options), scores)


@inputs.helpful
def assess(
    y_true: ArrayLike | Sketch,
    y_prob: ArrayLike | None = None,
    *,
    notion: str | None = None,
    groups: ArrayLike | Mapping[Any, Sketch] | None = None,
    class_names: Sequence[str] | Mapping[Any, str] | None = None,
    name: str | None = None,
    level: float = 0.95,
    rng: Seed = 0,
    n_resamples: int | None = None,
    sample_weight: ArrayLike | None = None,
    counts: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    labels: Sequence[Hashable] | None = None,
    pos_label: Hashable = None,
    command: str | None = None,
    cost: Any = None,
    tolerance: float | None = None,
    progress: Progress | bool | None = None,
    percent: bool = False,
    missing: Literal["raise", "drop"] = "raise",
    from_logits: bool = False,
) -> Assessment:
    """Assess the calibration of a model by every notion that applies; for a matrix, mainly of confidence.

    A model with two classes is assessed by the binary notion and by confidence, as the gaps of its classes
    differ only in sign. With more classes the notions are confidence and classwise, and also binary if
    `pos_label` is given. A sketch is assessed by its own notion.

    Parameters
    ----------
    y_true, y_prob, sample_weight, counts, labels, pos_label, percent, missing, from_logits
        As for `ece`.
    cluster : array of shape (N,), optional
        Cluster id of each row; as for `estimate`. Estimates, mean differences, curves and bins account for
        clusters.
    notion : {"binary", "classwise", "confidence", "top-label", "canonical"}, optional
        Notion of the main result; by default that of `ece`. Figures of top-label show confidence.
        The canonical notion has no curve: figures then
        show confidence (with two classes, the second class), and `probability_transfer` tells between which
        classes the scores misplace probability.
    groups : array of shape (N,) or mapping, optional
        Subgroup of each row; each subgroup is assessed by itself. For a sketch, a mapping from group name to
        sketch.
    class_names : sequence or mapping, optional
        Names of the classes in the result: in the order of the columns (1-D scores: negative, positive), or
        by label.
    name, command : str, optional
        Name of the data, and the command that computed the result, for the report.
    level : float
        Confidence level. The intervals of all classes, and those of all groups, are simultaneous.
    rng : int, numpy.random.Generator or None, default=0
        Seed of the simulations, which the assessment records; None draws a new seed.
    n_resamples : int, optional
        Number of calibrated data sets simulated for each test. By default 999, and more for a group (or one
        of more than 20 classes) with a small p-value, so that it can be rejected after the adjustment for
        multiple tests. Each estimate records its number.
    cost : float, pair, str or matrix, optional
        Costs of decisions, as for `regret`; the result is in `decision`.
    tolerance : float, optional
        The calibration error up to which the verdict trusts the scores, between 0 and 1. By default
        0.02, or half of the base rate where outcomes are rarer than 4 %: the frequency of the class for
        the notion `binary`, one over the number of classes for `classwise`.
    progress : bool or callable, optional
        True shows the progress on standard error; a callable is called as progress(done, total).

    Returns
    -------
    Assessment
        Estimates, tests, curves, effect of recalibration, scoring rules and cautions.

    See Also
    --------
    estimate : The estimate alone.

    Examples
    --------
    >>> import calibrant
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(1000)
    >>> result = calibrant.assess(rng.random(1000) < score**2, score, rng=0)
    >>> result.verdict.state
    'do not trust'
    >>> print(result.verdict.trust)
    No: of rows scored ..., an estimated ... in 100 were class 1 (... to ...).
    """
    from calibrant.assessment.assess import assess_predictions, assess_sketch

    check_canonical_options(notion, clustered=cluster is not None)
    rows = y_prob, notion, sample_weight, labels, pos_label, cluster
    options: dict[str, Any] = {
        "class_names": class_names,
        "name": name,
        "level": level,
        "rng": rng,
        "n_resamples": n_resamples,
        "command": command,
        "cost": cost,
        "tolerance": None if tolerance is None else inputs.level(tolerance, "tolerance"),
        "progress": inputs.progress(progress),
    }
    more: dict[str, Any] = {"percent": percent, "missing": missing, "from_logits": from_logits}
    if is_sketch(y_true):
        sketch = alone(y_true, *rows, counts=counts, **more)
        if not (groups is None or isinstance(groups, Mapping)):
            raise inputs.InputTypeError("groups", "map the names of groups to sketches", groups)
        return assess_sketch(sketch, groups=groups, **options)
    data = read(y_true, *rows, groups, counts=counts, **more)
    return assess_predictions(
        data,
        default_notion(notion, vector=data.score.ndim == 1),
        pos_label=pos_label,
        groups=None if groups is None else inputs.groups_of_rows(groups, data),
        labels=labels,
        grouped_by=column if isinstance(column := getattr(groups, "name", None), str) else None,
        **options,
    )


@inputs.helpful
def recommend(
    y_prob: ArrayLike,
    *,
    n: int | None = None,
    notion: str | None = None,
    estimators: Iterable[EstimatorLike] | Mapping[str, EstimatorLike] | None = None,
    sample_weight: ArrayLike | None = None,
    counts: ArrayLike | None = None,
    labels: Sequence[Hashable] | None = None,
    pos_label: Hashable = None,
    class_names: Sequence[str] | Mapping[Any, str] | None = None,
    repetitions: int | None = None,
    rng: Seed = 0,
    progress: Progress | bool | None = None,
    percent: bool = False,
) -> Recommendation:
    """Rank estimators by simulation on given scores, without labels; for a matrix, on its confidence.

    Outcomes are simulated from calibration curves with a known true error, and every estimator is applied to
    the same data sets. The curves are a calibrated one, and overconfident, underconfident, shifted, wavy,
    local (a tenth of the rows) and tail (the top tenth) ones; with few distinct scores also alternating ones.
    Their true errors are .02, .05 and .1 (times 2 / classes for the classwise notion) where these are
    attainable.

    Estimators are ranked by their loss: the 95th percentile of ``|estimate - true error|`` relative to that
    of the best estimator on the same curve, as the geometric mean over the curves. Percentiles below a tenth
    of the standard error of the mean residual are set to that tenth.

    Parameters
    ----------
    y_prob : array of shape (N,) or (N, C)
        Scores of the positive class, or of every class.
    n : int, optional
        Number of rows of each data set; by default that of `y_prob`. Smaller data sets are drawn without
        replacement, larger ones with replacement.
    notion, labels, pos_label, percent
        As for `ece`.
    estimators : sequence or mapping, optional
        Names, estimators or functions f(scores, outcomes, weights), or a mapping from your own names to
        these.
    sample_weight : array of shape (N,), optional
        Importance weight of each row, on any scale: multiplying all weights by a constant changes nothing.
        The effective sample size is (sum w)^2 / sum w^2. Integers are treated like floats.
    counts : array of shape (N,), optional
        Number of identical rows that each row represents, as in an aggregated table: integers of at least 0.
        The result is the same as for repeated rows. Cannot be combined with `sample_weight`.
    repetitions : int, optional
        Data sets simulated for each curve; by default 200, and fewer, down to 30, for many rows.
    rng : int, numpy.random.Generator or None, default=0
        Seed of the simulations, which the recommendation records; None draws a new seed.
    progress : bool or callable, optional
        True shows the progress on standard error; a callable is called as progress(done, total).
    class_names : sequence or mapping, optional
        Names of the classes in the result: in the order of the columns (1-D scores: negative, positive), or
        by label.

    Returns
    -------
    Recommendation
        Ranking of the estimators, and their accuracy on each curve.

    See Also
    --------
    estimator_names : Names of all estimators.

    Examples
    --------
    >>> import calibrant
    >>> score = np.random.default_rng(0).beta(0.5, 0.5, 300)
    >>> result = calibrant.recommend(score, estimators=["auto", "l:15"], repetitions=50, rng=0)
    >>> result.best
    'auto'
    >>> biased = [row for row in result.table if row.estimator == "l:15" and row.curve == "calibrated"]
    >>> bool(biased[0].bias > 0.03)
    True
    """
    from calibrant.curves import rename_classes
    from calibrant.inference.recommendation import rank_estimators

    refuse_related(notion)
    weights = {"sample_weight": sample_weight, "counts": counts}
    data = inputs.unlabelled(y_prob, labels=labels, pos_label=pos_label, percent=percent, **weights)
    if percent:
        inputs.check_percent(float(data.score.max()))
    names = inputs.class_names(data.labels, class_names)
    recommendation = rank_estimators(
        data,
        default_notion(notion, vector=data.score.ndim == 1),
        n=n,
        estimators=estimators,
        repetitions=repetitions,
        rng=rng,
        progress=inputs.progress(progress),
    )
    return rename_classes(recommendation, names)

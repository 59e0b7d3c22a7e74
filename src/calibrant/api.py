"""The functions a caller meets: from labels and scores to a number, a curve or a diagram."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from calibrant import inputs
from calibrant.curves.answers import binned, curves, diagrams, local_error, measure, smoothing
from calibrant.curves.curve import ByClass, Progress, ReliabilityCurve, ReliabilityDiagram
from calibrant.curves.histogram import ScoreHistogram, histograms
from calibrant.estimators import Binned, Norm
from calibrant.evidence import Sample
from calibrant.questions import notions
from calibrant.questions.notions import Notion


def samples(notion: Notion, data: inputs.Predictions) -> Iterator[Sample]:
    """The one-dimensional problems of a notion, as evidence."""
    weight = data.weight
    if weight is not None and weight.dtype.kind == "f":
        # Importance weights have no scale; a power of two is taken out exactly, so that squares stay finite.
        weight = np.ldexp(weight, -int(np.frexp(weight.max())[1]))
    for problem in notion.problems(data):
        yield Sample(problem.score, problem.outcome, weight, problem.support)


@inputs.helpful
def ece(
    y_true: Any,
    y_prob: Any,
    *,
    notion: str | None = None,
    estimator: Any = "auto",
    norm: Norm = "l1",
    sample_weight: Any = None,
    labels: Any = None,
    pos_label: Any = None,
) -> float:
    """Expected calibration error; an (N, 2) matrix asks about confidence, its second column about the class.

    Parameters
    ----------
    y_true : array of shape (N,)
        Labels.
    y_prob : array of shape (N,) or (N, C)
        Scores of the positive class, or of every class.
    notion : {"class", "classwise", "confidence"}, optional
        What is compared: the score of one class with its frequency, that of every class in turn,
        or the largest score with the accuracy. Without it, `class` for 1-D scores and
        `confidence` for a matrix.
    estimator : str, estimator or function
        A name such as "uniform:15", "adaptive", "c:sqrt" or "d:0.033" (see `estimators`), a value
        such as `Binned("adaptive", 10)`, a function f(scores, outcomes, weights), or "auto".
    norm : {"l1", "l2", "max"}
        Mean, root mean square or maximum of the gap.
    sample_weight : array of shape (N,), optional
        Integers are counts and mean repetition; floats are importance weights.
    labels : sequence, optional
        The class of each column.
    pos_label : label, optional
        The class asked about.

    Returns
    -------
    float

    Examples
    --------
    >>> import calibrant
    >>> y_true = [0, 0, 1, 1, 0, 1]
    >>> y_prob = [0.1, 0.4, 0.35, 0.8, 0.45, 0.9]
    >>> round(calibrant.ece(y_true, y_prob, estimator="uniform:2"), 4)
    0.1
    """
    data = inputs.predictions(y_true, y_prob, sample_weight=sample_weight, labels=labels, pos_label=pos_label)
    which = notions.usual(notion, vector=data.score.ndim == 1)
    return measure(which, samples(which, data), estimator, norm)


@inputs.helpful
def mce(
    y_true: Any,
    y_prob: Any,
    *,
    notion: str | None = None,
    estimator: Any = "auto",
    sample_weight: Any = None,
    labels: Any = None,
    pos_label: Any = None,
) -> float:
    """Maximum calibration error: `ece` with `norm="max"`.

    Examples
    --------
    >>> import calibrant
    >>> y_true = [0, 0, 1, 1, 0, 1]
    >>> y_prob = [0.1, 0.4, 0.35, 0.8, 0.45, 0.9]
    >>> round(calibrant.mce(y_true, y_prob, estimator="uniform:2"), 4)
    0.15
    """
    return ece(
        y_true,
        y_prob,
        notion=notion,
        estimator=estimator,
        norm="max",
        sample_weight=sample_weight,
        labels=labels,
        pos_label=pos_label,
    )


@inputs.helpful
def reliability_curve(
    y_true: Any,
    y_prob: Any,
    *,
    notion: str | None = None,
    kernel: Any = "triweight",
    bandwidth: Any = "silverman",
    n_boot: int = 200,
    level: float = 0.95,
    band: str | None = "corrected",
    rng: Any = None,
    sample_weight: Any = None,
    labels: Any = None,
    pos_label: Any = None,
    progress: Progress | None = None,
) -> ReliabilityCurve | ByClass[ReliabilityCurve]:
    """Frequency of the outcome at every score, with a band; for a matrix, accuracy by confidence.

    Parameters
    ----------
    y_true, y_prob, notion, sample_weight, labels, pos_label
        As for `ece`. With `notion="classwise"` the answer is a mapping from class to curve.
    kernel : {"triweight", "gaussian", "epanechnikov", "cosine"}
    bandwidth : {"silverman", "scott", "isj", "ranks"} or float
        Standard deviation of the kernel, or the rule that finds it. With "ranks" the gap is smoothed
        over neighbouring rows instead of neighbouring scores: the choice for scores that crowd at 0
        or 1, and what `assess` shows. It has a kernel of its own and needs no resamples.
    n_boot : int
        Number of bootstrap resamples, whose median is the curve; 0 for the curve of the sample.
    level : float
        Level of the pointwise band.
    band : {"corrected", "bootstrap"} or None
        The band that accounts for the bias of smoothing and needs no resamples; the paper's, which
        shows the noise alone and needs `n_boot`; or none.
    rng : int or numpy.random.Generator, optional
        Seed of the bootstrap.
    progress : callable, optional
        Called as progress(done, n_boot) while the bootstrap runs.

    Examples
    --------
    >>> import calibrant
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(1000)
    >>> curve = calibrant.reliability_curve(rng.random(1000) < score**2, score, rng=0)
    >>> point = curve.at(0.5)
    >>> bool(point.low < 0.25 < point.high)
    True
    """
    estimator = smoothing(bandwidth, kernel)
    data = inputs.predictions(y_true, y_prob, sample_weight=sample_weight, labels=labels, pos_label=pos_label)
    which = notions.usual(notion, vector=data.score.ndim == 1)
    return curves(
        which,
        samples(which, data),
        data,
        estimator,
        n_boot=n_boot,
        level=level,
        band=band,
        rng=rng,
        progress=progress,
    )


@inputs.helpful
def reliability_diagram(
    y_true: Any,
    y_prob: Any,
    *,
    notion: str | None = None,
    binning: str | Binned = "uniform:15",
    mapping: str | None = None,
    interval: str = "wilson",
    level: float = 0.95,
    sample_weight: Any = None,
    labels: Any = None,
    pos_label: Any = None,
) -> ReliabilityDiagram | ByClass[ReliabilityDiagram]:
    """Mean score and frequency in each bin, with bars; for a matrix, accuracy by confidence.

    Parameters
    ----------
    y_true, y_prob, notion, sample_weight, labels, pos_label
        As for `ece`. With `notion="classwise"` the answer is a mapping from class to diagram.
    binning : str or Binned
        The bins by estimator name, "uniform:15" or "adaptive:10" for instance, or as a value.
    mapping : {"one", "convex", "published"}, optional
        How a row counts in the bins; by default what `binning` says.
    interval : {"wilson", "clopper-pearson"}
        Interval of each frequency.
    level : float
        Its level.

    Examples
    --------
    >>> import calibrant
    >>> diagram = calibrant.reliability_diagram([0, 1, 1, 1], [0.1, 0.3, 0.8, 0.9], binning="uniform:2")
    >>> diagram.frequency
    array([0.5, 1. ])
    """
    estimator = binned(binning, mapping)
    data = inputs.predictions(y_true, y_prob, sample_weight=sample_weight, labels=labels, pos_label=pos_label)
    which = notions.usual(notion, vector=data.score.ndim == 1)
    return diagrams(which, samples(which, data), data, estimator, interval=interval, level=level)


@inputs.helpful
def score_histogram(
    y_true: Any,
    y_prob: Any,
    *,
    notion: str | None = None,
    bins: int = 50,
    sample_weight: Any = None,
    labels: Any = None,
    pos_label: Any = None,
) -> ScoreHistogram | ByClass[ScoreHistogram]:
    """Count the scores by outcome: of the class or of another; for a matrix, confidences right or wrong.

    Parameters
    ----------
    y_true, y_prob, notion, sample_weight, labels, pos_label
        As for `ece`. With `notion="classwise"` the answer is a mapping from class to histogram.
    bins : int
        Number of cells of equal width.

    Examples
    --------
    >>> import calibrant
    >>> found = calibrant.score_histogram([0, 1, 1, 1], [0.1, 0.3, 0.8, 0.9], bins=2)
    >>> found.positive, found.negative
    (array([1., 2.]), array([1., 0.]))
    """
    data = inputs.predictions(y_true, y_prob, sample_weight=sample_weight, labels=labels, pos_label=pos_label)
    which = notions.usual(notion, vector=data.score.ndim == 1)
    return histograms(which, samples(which, data), data, bins)


@inputs.helpful
def lce(
    y_true: Any,
    y_prob: Any,
    at: Any,
    *,
    notion: str | None = None,
    kernel: Any = "triweight",
    bandwidth: Any = "silverman",
    sample_weight: Any = None,
    labels: Any = None,
    pos_label: Any = None,
) -> Any:
    """Local calibration error, frequency minus score, at given scores; for a matrix, that of confidence.

    Parameters
    ----------
    at : float or array
        Scores; NaN comes back where there is no data.
    y_true, y_prob, notion, kernel, bandwidth, sample_weight, labels, pos_label
        As for `reliability_curve`.

    Returns
    -------
    float or array
        Of the shape of `at`; with `notion="classwise"` a dict from class to that.

    Examples
    --------
    >>> import calibrant
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(4000)
    >>> error = calibrant.lce(rng.random(4000) < score**2, score, at=0.5)
    >>> bool(abs(error + 0.25) < 0.05)
    True
    """
    place = inputs.scores("at", at)
    curve = reliability_curve(
        y_true,
        y_prob,
        notion=notion,
        kernel=kernel,
        bandwidth=bandwidth,
        n_boot=0,
        band=None,
        sample_weight=sample_weight,
        labels=labels,
        pos_label=pos_label,
    )
    return local_error(place, curve)

"""Selective decisions: how right the rows are that one keeps."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np  # noqa: F401 - the examples use it
from numpy.typing import ArrayLike

from calibrant import inputs
from calibrant.api.asked import ask
from calibrant.decisions.selective import RiskCoverage, risk_coverage_of
from calibrant.inputs import Seed
from calibrant.questions.notions import refuse_whole
from calibrant.sketch import Sketch


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
    rng: Seed = None,
    percent: bool = False,
) -> RiskCoverage:
    """Say how right the predictions are that are kept, if the least sure are left to somebody else.

    Rows are kept from the surest on, and those that are equally sure enter together, so that the order of the
    rows does not matter. Intervals are for the accuracy at a coverage, and the threshold is an estimate too.

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
    rng : int or numpy.random.Generator, optional
        Seed of the draws from which the band takes its width.

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
    refuse_whole(notion)
    if notion is None and not isinstance(y_true, Sketch):
        notion = "confidence"
    rows = y_true, y_prob, notion, sample_weight, labels, pos_label, cluster
    return risk_coverage_of(ask(*rows, counts=counts, percent=percent), level=level, rng=rng)

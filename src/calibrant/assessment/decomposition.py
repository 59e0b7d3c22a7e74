"""Proper scores, and how much of each is calibration.

A score of forecasts p is taken apart by two others: that of the best recalibration q of p, and that of
the constant forecast c, the base rate:

    S(p) = [S(p) - S(q)] - [S(c) - S(q)] + S(c) = calibration - resolution + uncertainty.

Where the question is one event, q is the isotonic curve (CORP, Dimitriadis, Gneiting and Jordan 2021).
For the log loss over many classes, q is a temperature that is fitted to all rows, followed by a shift of each
class where shifts that were fitted to one half of the rows lower the loss of the other half. Both families
hold p itself, and c is tried too, so neither part is ever negative.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Annotated, Any

import numpy as np

from calibrant.estimators.base import pieces, positions
from calibrant.estimators.isotonic import isotonic
from calibrant.inference.interval_estimate import Extended
from calibrant.inference.map_comparison import log_loss_of_rows
from calibrant.inputs import Predictions, Serializable
from calibrant.inputs.codec import NOT_NEGATIVE, Amount
from calibrant.maps.multiclass import SoftmaxMap, log_in_place
from calibrant.parallel import parallel_map
from calibrant.score_data import Array, Sample, ScoreData
from calibrant.score_data.simplex import Simplex
from calibrant.tasks import Notion

# Folds that class shifts are cross-fitted in, up to so many scores; of more scores two folds. A fit takes at
# most so many of the scores.
FOLDS, FEW, FITTED = 5, 1 << 21, 1 << 25


@dataclass(frozen=True)
class Score(Serializable):
    """A proper score (lower is better) and its parts.

    Attributes
    ----------
    name : str
        "Brier score" or "log loss".
    about : str
        The event or the classes that it scores.
    value, calibration, resolution, uncertainty : float
        The score is calibration - resolution + uncertainty. A log loss is infinite, with its
        calibration part, where what happened had probability 0.
    """

    name: str
    about: str
    value: Annotated[Extended, NOT_NEGATIVE]
    calibration: Annotated[Extended, NOT_NEGATIVE]
    resolution: Amount
    uncertainty: Amount

    @property
    def refinement(self) -> float:
        """What recalibration cannot take away: uncertainty less resolution."""
        return self.uncertainty - self.resolution


def of_event(score_data: ScoreData, about: str, log_loss: float | None = None) -> tuple[Score, Score]:
    """Return Brier score and log loss of a problem; a log loss that is known better replaces its own.

    >>> from calibrant.score_data import Sample
    >>> sample = Sample(np.array([0.2, 0.2, 0.9, 0.9]), np.array([False, True, True, True]))
    >>> brier, log = of_event(sample, "rain")
    >>> [round(v, 4) for v in (brier.value, brier.calibration, brier.resolution, brier.uncertainty)]
    [0.175, 0.05, 0.0625, 0.1875]
    """
    tied = w, s, y, *_ = _tied(score_data)
    q, c = isotonic(y, w), float(w @ y / w.sum())
    best, base = (_log_loss(w, p, y) for p in (q, np.full(w.size, c)))
    value = _log_loss(w, s, y) if log_loss is None else log_loss
    return _brier_score(tied, about, q), _decompose("log loss", about, value, best, base)


def brier_of_classes(blocks: Sequence[ScoreData]) -> Score:
    """Return the Brier score over all classes: the sum over their problems."""

    def scores_of(block: ScoreData) -> list[Score]:
        if isinstance(block, Sample):  # the scores of a row are adjacent: read a few classes at once
            block = replace(block, score=np.ascontiguousarray(block.score))
        problems = [block[k] for k in range(block.batch[0])] if block.batch else [block]
        return [_brier_score(_tied(problem, pooled=isinstance(problem, Sample))) for problem in problems]

    parts = [piece for block in blocks for piece in pieces(block)]
    scores = list(chain.from_iterable(parallel_map(scores_of, parts)))
    sums = [
        float(sum(getattr(score, name) for score in scores))
        for name in ("value", "calibration", "resolution", "uncertainty")
    ]
    return Score("Brier score", "all classes", *sums)


def _brier_score(tied: tuple[Array, ...], about: str = "", q: Array | None = None) -> Score:
    """Return the Brier score of a problem from the sums of its groups, and its isotonic curve."""
    w, _, y, wss, wsy = tied
    q = isotonic(y, w) if q is None else q
    c, squared = float(w @ y / w.sum()), float((wss - 2 * wsy + w * y).sum() / w.sum())
    return _decompose("Brier score", about, squared, _brier(w, q, y), c * (1 - c))


def _tied(data: ScoreData, *, pooled: bool = False) -> tuple[Array, ...]:
    """Return mass, score and frequency of each distinct score, and sums of score^2 and score x outcome.

    With `pooled` they are those of groups of rows on which the isotonic curve is constant: it does not rise
    from a positive outcome up to the next larger score of one. Rows need not be sorted for that.
    """
    if pooled:
        cuts = np.unique(data.score[np.asarray(data.outcome)]).astype(np.float64)  # type: ignore[union-attr]
        groups = data.moments(cuts, np.zeros(cuts.size + 1))
    else:
        groups = data.tie_groups()
    groups = groups.about(np.zeros(np.shape(groups.origin)))[groups.w > 0]
    return groups.w, positions(groups), groups.wy / groups.w, groups.wss, groups.wsy


def _brier(w: Array, p: Array, y: Array) -> float:
    """Return the Brier score of forecasts p of frequencies y."""
    return float((w * (y * (1 - p) ** 2 + (1 - y) * p**2)).sum() / w.sum())


def _log_loss(w: Array, p: Array, y: Array) -> float:
    """Return the log loss of the same; that of 1 - p is computed from p because 1 - p may be rounded to 1."""
    from scipy.special import xlog1py, xlogy

    return float(-(w * (xlogy(y, p) + xlog1py(1 - y, -p))).sum() / w.sum())


def log_loss_of_largest(data: Predictions, notion: Notion) -> float:
    """Return the log loss of "the label is among the largest scores", from the smaller side.

    A largest score that rounds to 1 leaves 1 - 1 = 0 to the others, whose own scores say what they have.

    >>> from calibrant.inputs import predictions
    >>> from calibrant.tasks import get_notion
    >>> log_loss_of_largest(predictions([1, 0], [1e-20, 0.5]), get_notion("confidence")) * 2
    46.7448490...
    """
    if data.score.ndim == 1:  # the chance of what happened is that of the label
        return float(np.average(log_loss_of_rows(data), weights=data.weight))
    problem = next(iter(notion.problems(data)))
    score = problem.score.astype(np.float64)
    is_label = np.asarray(problem.outcome)
    label_probability = np.where(is_label, score, 1 - score)
    small = ~is_label & (score > 0.5)
    others = data.score.shape[1] - notion.top
    least = np.partition(data.score[small].astype(np.float64), others - 1, axis=1)[:, :others]
    label_probability[small] = least.sum(axis=1)
    with np.errstate(divide="ignore"):
        return float(-np.average(np.log(label_probability), weights=data.weight))


def _decompose(name: str, about: str, value: float, best: float, base: float) -> Score:
    """Return a score with its parts, from those of the best recalibration and of the base rate."""
    best = min(best, value, base)  # equal but for rounding where nothing can be gained
    return Score(name, about, value, value - best, base - best, base)


def log_loss_of_classes(rows: Simplex, tempered: SoftmaxMap, cluster: Array | None = None) -> Score:
    """Return the log loss over all classes; the temperature map is fitted to all rows."""
    from scipy.special import xlogy

    weight = rows.weight / rows.n
    with np.errstate(divide="ignore"):
        value = float(weight @ -np.log(rows.score[np.arange(len(rows.code)), rows.code]))
    share = np.bincount(rows.code, weight, rows.n_classes)
    best = min(_loss(rows, rows.weight, tempered), _cross_fitted(rows, tempered, cluster)) / rows.n
    return _decompose("log loss", "all classes", value, best, float(-xlogy(share, share).sum()))


def _cross_fitted(rows: Simplex, tempered: SoftmaxMap, cluster: Array | None) -> float:
    """Return the sum of the log losses with class shifts that were fitted to the rows of other folds."""
    total = 0.0
    for held_out in _folds(rows, cluster, FOLDS if rows.score.size <= FEW else 2):
        learned = rows.weight - held_out
        fitted = _fit_shifts(rows, learned, tempered) if learned.any() else None
        total += _loss(rows, held_out, *(fitted or (tempered,)))
    return total


def _folds(rows: Simplex, cluster: Array | None, count: int) -> Array:
    """Return the weight of each row in each random fold; clusters and weighted rows stay whole."""
    rng, weight = np.random.default_rng(0), rows.weight
    if cluster is None and np.array_equal(rows.square, weight):  # numbers of repetitions
        return rng.multinomial(weight.astype(np.int64), np.full(count, 1 / count)).T.astype(np.float64)
    if cluster is None:
        return np.asarray(weight * (rng.integers(0, count, len(weight)) == np.arange(count)[:, None]))
    fold = (rng.permutation(int(cluster.max()) + 1) % count)[cluster]
    shares = np.stack([np.bincount(rows.place, fold == k, len(weight)) for k in range(count)])
    return np.asarray(weight * shares / np.maximum(shares.sum(axis=0), 1))


def _fit_shifts(rows: Simplex, weight: Array, start: SoftmaxMap) -> tuple[SoftmaxMap, Array] | None:
    """Return the temperature map and the class shifts that fit best, beginning with a temperature map.

    The shifts are penalised as if drawn from a normal distribution, whose variance is estimated from how much
    more the frequencies of the classes differ from the expected ones than by chance. None if they do not.
    """
    from scipy.optimize import minimize

    weighted_rows = np.flatnonzero(weight)[: max(1, FITTED // rows.n_classes)]
    score, code, weight = (each[weighted_rows] for each in (rows.score, rows.code, weight))
    log_in_place(score, start.least)
    parts = list(start.parts(len(code)))

    def terms(slope: float, shift: Any) -> Iterator[tuple[slice, Array, Array]]:
        for chunk in parts:
            logits = slope * score[chunk]
            logits += shift
            yield chunk, *_probabilities(logits, code[chunk])

    expected, squared = np.zeros(rows.n_classes), np.zeros(rows.n_classes)
    for chunk, _, p in terms(start.slope, 0.0):
        expected += weight[chunk] @ p
        squared += weight[chunk] @ (p * p)
    observed, variance = np.bincount(code, weight, rows.n_classes), np.maximum(expected - squared, 0.0)
    excess = float(((observed - expected) ** 2 - variance).sum())
    # Shifts do not change scores of 0 and 1, which have no variance.
    if excess <= 0 or variance.max() < len(code) * np.finfo(float).eps:
        return None
    penalty = float(variance @ variance) / excess
    # All parameters are scaled such that the curvature is about the same.
    scale = np.sqrt(np.concatenate([[weight.sum() / start.slope**2], variance + penalty]))

    def loss(x: Array) -> tuple[float, Array]:
        slope, shift = x[0] / scale[0], x[1:] / scale[1:]
        total, gradient = 0.5 * penalty * float(shift @ shift), np.concatenate([[0.0], penalty * shift])
        for chunk, label_log_probability, p in terms(slope, shift):
            total -= float(weight[chunk] @ label_log_probability)
            gradient[1:] += weight[chunk] @ p
            p[np.arange(len(p)), code[chunk]] -= 1
            gradient[0] += weight[chunk] @ np.einsum("ij,ij->i", p, score[chunk])
        gradient[1:] -= observed
        return total, gradient / scale

    begin = np.zeros(1 + rows.n_classes)
    begin[0] = start.slope * scale[0]
    options = {"maxiter": 50, "ftol": 1e-6}
    fit: Any = minimize(loss, begin, jac=True, method="L-BFGS-B", options=options)
    return replace(start, slope=float(fit.x[0] / scale[0])), fit.x[1:] / scale[1:]


def _loss(rows: Simplex, weight: Array, tempered: SoftmaxMap, shift: Any = 0.0) -> float:
    """Return the weighted sum of the log losses after a temperature and a shift of each class."""
    weighted_rows, total = np.flatnonzero(weight), 0.0
    for chunk in tempered.parts(len(weighted_rows)):
        chunk_weights = weighted_rows[chunk]
        logits = log_in_place(rows.score[chunk_weights], tempered.least)
        logits *= tempered.slope
        logits += shift
        total -= float(weight[chunk_weights] @ _probabilities(logits, rows.code[chunk_weights])[0])
    return total


def _probabilities(logits: Array, code: Array) -> tuple[Array, Array]:
    """Return the log probability of what happened, and the probabilities of all classes, in place."""
    logits -= logits.max(axis=1, keepdims=True)
    label_log_probability = logits[np.arange(len(code)), code]
    np.exp(logits, out=logits)
    total = logits.sum(axis=1)
    logits /= total[:, None]
    return label_log_probability - np.log(total), logits

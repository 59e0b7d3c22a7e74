"""Proper scores, and how much of each is calibration.

A score of forecasts p is taken apart by two others: that of the best recalibration q of p, and that of
the constant forecast c, the base rate:

    S(p) = [S(p) - S(q)] - [S(c) - S(q)] + S(c) = calibration - resolution + uncertainty.

Where the question is one event, q is the isotonic curve (CORP, Dimitriadis, Gneiting and Jordan 2021).
For the log loss over many classes, q scales the log probabilities and shifts each class. Both families
hold p itself and c, so neither part is ever negative.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from calibrant.estimators.curve import positions
from calibrant.estimators.isotonic import isotonic
from calibrant.evidence import Array, Evidence
from calibrant.inputs import Predictions, Record
from calibrant.questions import Notion

# Numbers that the recalibration of many classes is fitted to; it is judged on all of them.
FITTED = 1 << 21
# Probabilities below have no finite logarithm worth fitting.
TINY = 1e-9


@dataclass(frozen=True)
class Score:
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
    value: float
    calibration: float
    resolution: float
    uncertainty: float

    @property
    def refinement(self) -> float:
        """What recalibration cannot take away: uncertainty less resolution."""
        return self.uncertainty - self.resolution

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers; None stands for infinity."""
        return {k: None if v == np.inf else v for k, v in asdict(self).items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Score:
        """Return what `to_dict` wrote; numbers that no score can have are refused."""
        return cls.of_record(Record(values, "score"))

    @classmethod
    def of_record(cls, record: Record) -> Score:
        """Return the score that a stored record holds."""
        record.only(cls.__dataclass_fields__)
        numbers: dict[str, Any] = {key: record.number(key, 0) for key in ("resolution", "uncertainty")}
        for key in ("value", "calibration"):
            number = record.maybe(key, lambda key: record.number(key, 0))
            numbers[key] = np.inf if number is None else number
        return cls(record.text("name"), record.text("about"), **numbers)


def of_event(evidence: Evidence, about: str, log_loss: float | None = None) -> tuple[Score, Score]:
    """Return Brier score and log loss of a problem; a log loss that is known better replaces its own.

    >>> from calibrant.evidence import Sample
    >>> sample = Sample(np.array([0.2, 0.2, 0.9, 0.9]), np.array([False, True, True, True]))
    >>> brier, log = of_event(sample, "rain")
    >>> [round(v, 4) for v in (brier.value, brier.calibration, brier.resolution, brier.uncertainty)]
    [0.175, 0.05, 0.0625, 0.1875]
    """
    w, s, y, wss, wsy = _tied(evidence)
    q, c = isotonic(y, w), float(w @ y / w.sum())
    squared = float((wss - 2 * wsy + w * y).sum() / w.sum())
    brier = _taken_apart("Brier score", about, squared, _brier(w, q, y), c * (1 - c))
    best, base = (_log_loss(w, p, y) for p in (q, np.full(w.size, c)))
    value = _log_loss(w, s, y) if log_loss is None else log_loss
    return brier, _taken_apart("log loss", about, value, best, base)


def of_classes(data: Predictions, blocks: Sequence[Evidence]) -> tuple[Score, Score]:
    """Return Brier score and log loss over all classes of a matrix of scores, whose problems are `blocks`."""
    return brier_of_classes(blocks), _log_loss_of_classes(data)


def brier_of_classes(blocks: Sequence[Evidence]) -> Score:
    """Return the Brier score over all classes: the sum over their problems."""
    scores = [
        of_event(problem, "")[0]
        for block in blocks
        for problem in ([block[k] for k in range(block.batch[0])] if block.batch else [block])
    ]
    sums = [
        float(sum(getattr(score, name) for score in scores))
        for name in ("value", "calibration", "resolution", "uncertainty")
    ]
    return Score("Brier score", "all classes", *sums)


def _tied(evidence: Evidence) -> tuple[Array, ...]:
    """Return mass, score and frequency of each distinct score, and sums of score^2 and score x outcome."""
    atoms = evidence.atoms()
    atoms = atoms.about(np.zeros(np.shape(atoms.origin)))
    held = atoms.w > 0
    w, wy = atoms.w[held], atoms.wy[held]
    return w, positions(atoms)[held], wy / w, atoms.wss[held], atoms.wsy[held]


def _brier(w: Array, p: Array, y: Array) -> float:
    """Return the Brier score of forecasts p of frequencies y."""
    return float((w * (y * (1 - p) ** 2 + (1 - y) * p**2)).sum() / w.sum())


def _log_loss(w: Array, p: Array, y: Array) -> float:
    """Return the log loss of the same; that of 1 - p is taken from p, for 1 - p may be rounded to 1."""
    from scipy.special import xlog1py, xlogy

    return float(-(w * (xlogy(y, p) + xlog1py(1 - y, -p))).sum() / w.sum())


def log_loss_of_largest(data: Predictions, notion: Notion) -> float:
    """Return the log loss of "the label is among the largest scores", from the smaller side.

    A largest score that rounds to 1 leaves 1 - 1 = 0 to the others, whose own scores say what they have.

    >>> from calibrant.inputs import predictions
    >>> from calibrant.questions import named
    >>> log_loss_of_largest(predictions([1, 0], [1e-20, 0.5]), named("confidence")) * 2
    46.7448490...
    """
    weight = np.ones(len(data.code)) if data.weight is None else data.weight.astype(np.float64)
    with np.errstate(divide="ignore"):
        if data.score.ndim == 1:  # the chance of what happened is that of the label
            score = data.score.astype(np.float64)
            each = np.where(data.code, np.log(score), np.log1p(-score))
        else:
            problem = next(iter(notion.problems(data)))
            score = problem.score.astype(np.float64)
            held = np.asarray(problem.outcome)
            chance = np.where(held, score, 1 - score)
            small = ~held & (score > 0.5)
            others = data.score.shape[1] - notion.top
            least = np.partition(data.score[small].astype(np.float64), others - 1, axis=1)[:, :others]
            chance[small] = least.sum(axis=1)
            each = np.log(chance)
    return float(-(weight @ each) / weight.sum())


def _taken_apart(name: str, about: str, value: float, best: float, base: float) -> Score:
    """Return a score with its parts, from those of the best recalibration and of the base rate."""
    best = min(best, value, base)  # equal but for rounding where nothing can be gained
    return Score(name, about, value, value - best, base - best, base)


def _log_loss_of_classes(data: Predictions) -> Score:
    """Return the log loss over all classes of a matrix of scores."""
    from scipy.special import xlogy

    score, code, n = data.score, data.code.astype(np.intp), len(data.code)
    weight = np.ones(n) if data.weight is None else data.weight.astype(np.float64)
    weight = weight / weight.sum()
    with np.errstate(divide="ignore"):
        each = -np.log(np.take_along_axis(score, code[:, None], axis=1)[:, 0].astype(np.float64))
    share = np.bincount(code, weight, score.shape[1])
    few = max(1000, FITTED // score.shape[1])
    some = np.arange(n) if n <= few else np.linspace(0, n - 1, few).astype(np.intp)
    value, base = float(weight @ each), float(-xlogy(share, share).sum())
    best = _recalibrated(score, code, weight, some, few)
    return _taken_apart("log loss", "all classes", value, best, base)


def _recalibrated(score: Array, code: Array, weight: Array, some: Array, step: int) -> float:
    """Return the log loss after the best scale of the log probabilities and the best shift of each class."""
    from scipy.optimize import minimize

    def logs(rows: Any) -> Array:
        return np.log(np.maximum(score[rows].astype(np.float64), TINY))

    def loss(p: Array, x: Array, y: Array, w: Array) -> tuple[float, Array]:
        """Return the loss under scale and shifts p, and its gradient."""
        z = p[0] * x + p[1:]
        z -= z.max(axis=1, keepdims=True)
        e = np.exp(z)
        total = e.sum(axis=1)
        own = np.take_along_axis(z, y[:, None], axis=1)[:, 0]
        g = e * (w / total)[:, None]
        g[np.arange(len(y)), y] -= w
        return float(w @ (np.log(total) - own)), np.concatenate([[(g * x).sum()], g.sum(axis=0)])

    x, y, w = logs(some), code[some], weight[some] / weight[some].sum()
    start = np.zeros(1 + x.shape[1])
    start[0] = 1.0
    options: Any = {"jac": True, "method": "L-BFGS-B", "options": {"maxiter": 200}}
    fit: Any = minimize(loss, start, (x, y, w), **options)
    total = 0.0
    for a in range(0, len(code), step):
        rows = slice(a, a + step)
        total += loss(fit.x, logs(rows), code[rows], weight[rows])[0]
    return total

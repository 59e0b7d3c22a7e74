"""How sure one can be: `estimate` for one model, `compare` for several on the same labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import numpy as np

from calibrant import inputs
from calibrant.api import samples
from calibrant.estimators import Norm
from calibrant.evidence import Array
from calibrant.inference import Estimate, Rows, infer
from calibrant.inference.comparison import Comparison, contributions, difference
from calibrant.inference.estimate import seeded
from calibrant.questions import notions
from calibrant.questions.notions import Notion


@inputs.helpful
def estimate(
    y_true: Any,
    y_prob: Any,
    *,
    notion: str | None = None,
    estimator: Any = "auto",
    norm: Norm = "l1",
    level: float = 0.95,
    rng: Any = None,
    sample_weight: Any = None,
    labels: Any = None,
    pos_label: Any = None,
) -> Estimate:
    """Calibration error with interval, null and test; for a matrix, that of confidence.

    Parameters
    ----------
    y_true, y_prob, notion, estimator, sample_weight, labels, pos_label
        As for `ece`.
    norm : {"l1", "l2"}
        Mean or root mean square of the gap.
    level : float
        Level of the interval for the true error.
    rng : int or numpy.random.Generator, optional
        Seed of the simulations; the estimate records the one it used.

    Returns
    -------
    Estimate
        The value, its interval, what a calibrated model would show at this size, the p-value of
        calibration, the parts of over- and underconfidence, and `by_class` for the class-wise notion.

    Examples
    --------
    >>> import calibrant
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(1000)
    >>> found = calibrant.estimate(rng.random(1000) < score**2, score, rng=0)
    >>> found.low < 1 / 6 < found.high, found.p_value, found.over > found.under
    (True, 0.001, True)
    """
    data = inputs.predictions(y_true, y_prob, sample_weight=sample_weight, labels=labels, pos_label=pos_label)
    return _estimated(notions.usual(notion, vector=data.score.ndim == 1), data, estimator, norm, level, rng)


def _estimated(
    which: Notion, data: inputs.Predictions, estimator: Any, norm: Norm, level: float, rng: Any
) -> Estimate:
    column = data.positive if which.name == "class" else None
    return infer(
        which,
        list(samples(which, data)),
        estimator=estimator,
        norm=norm,
        level=level,
        rng=rng,
        labels=data.labels,
        label=None if column is None else data.labels[column],
        rows=rows_of(data),
    )


def rows_of(data: inputs.Predictions) -> Rows:
    """Rows of checked predictions, for what the classes have in common."""

    def take(some: Array) -> tuple[Array, Array, Array | None]:
        score, code = data.score[some].astype(np.float64), data.code[some]
        if score.ndim == 1:
            score = np.stack([1 - score, score], axis=1)
        weight = None if data.weight is None else data.weight[some].astype(np.float64)
        return score, code.astype(np.intp), weight

    return Rows(len(data.score), take)


@inputs.helpful
def compare(
    y_true: Any,
    models: Mapping[str, Any],
    *,
    baseline: str | None = None,
    notion: str | None = None,
    estimator: Any = "auto",
    norm: Norm = "l1",
    level: float = 0.95,
    rng: Any = None,
    sample_weight: Any = None,
    labels: Any = None,
    pos_label: Any = None,
) -> Comparison:
    """Calibration errors of several models on the same labels, and their paired differences.

    Parameters
    ----------
    y_true : array of shape (N,)
        Labels.
    models : mapping from name to scores
        Scores of each model, as `y_prob` of `ece`.
    baseline : str, optional
        The model that the others are compared with; the first by default.
    notion, estimator, norm, level, rng, sample_weight, labels, pos_label
        As for `estimate`.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import calibrant
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(2000)
    >>> outcome = rng.random(2000) < score
    >>> found = calibrant.compare(outcome, {"sharp": score**2, "plain": score}, baseline="plain", rng=0)
    >>> found.differences["sharp"].low > 0
    True
    """
    if not isinstance(models, Mapping) or len(models) < 2:
        got = f"{len(models)} of them" if isinstance(models, Mapping) else type(models).__name__
        raise ValueError(f"models must map at least two names to scores, got {got}")
    names = [str(name) for name in models]
    if baseline is not None:
        inputs.check_choice("baseline", baseline, tuple(names))
    first = names[0] if baseline is None else baseline
    seed = seeded(rng)
    given = {"sample_weight": sample_weight, "labels": labels, "pos_label": pos_label}
    asked = {}
    for name, scores in zip(names, models.values(), strict=True):
        with _named(name):
            data = inputs.predictions(y_true, scores, **given)
            asked[name] = notions.usual(notion, vector=data.score.ndim == 1), data
    if len({which.name for which, _ in asked.values()}) > 1:
        kinds = {name: which.name for name, (which, _) in asked.items()}
        raise ValueError(
            f"models must be asked the same; vectors and matrices differ: give notion=, got {kinds}"
        )
    estimates, added = {}, {}
    for name, (which, data) in asked.items():
        with _named(name):
            estimates[name] = _estimated(which, data, estimator, norm, level, seed)
        added[name] = contributions(which, list(samples(which, data)), rows_of(data))
    weight = None if data.weight is None else data.weight.astype(np.float64)
    differences = {
        name: difference((name, first), (one, estimates[first]), (added[name], added[first]), weight)
        for name, one in estimates.items()
        if name != first
    }
    return Comparison(MappingProxyType(estimates), MappingProxyType(differences), first)


@contextmanager
def _named(model: str) -> Iterator[None]:
    """Errors say which model they are about."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise type(error)(f"model {model!r}: {error}") from None

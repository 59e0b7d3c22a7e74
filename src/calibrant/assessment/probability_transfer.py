"""Probability transfer between classes: which class takes from which, and at which predictions."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from calibrant.estimators.canonical.softmax import canonical_error
from calibrant.inference.measured import interval_deviate
from calibrant.inference.multiplicity import each_level
from calibrant.posterior.softmax.probability_transfer import ProbabilityTransfer
from calibrant.tasks import CalibrationTask


class Pair(NamedTuple):
    """What one class takes from another, in probability per row, with its interval.

    Attributes
    ----------
    taker, giver : int
        The columns of the two classes.
    value, low, high : float
        Net: the scores of the first are too high where those of the second are too low.
    """

    taker: int
    giver: int
    value: float
    low: float
    high: float


class Predicted(NamedTuple):
    """The rows that one class is predicted for.

    Attributes
    ----------
    column : int
        The class.
    share : float
        Share of the rows.
    gap, low, high : float
        Mean of sum_k |frequency_k - score_k| in them, and its interval.
    """

    column: int
    share: float
    gap: float
    low: float
    high: float


def probability_transfer_of(task: CalibrationTask) -> ProbabilityTransfer | None:
    """Return the probability transfer of a canonical task; None with two classes, or with too many.

    The gaps at predictions of each class are scaled so that they add up to the estimate.
    """
    if not task.notion.canonical or len(task.labels) == 2:
        return None
    error = canonical_error(task)
    if (found := ProbabilityTransfer.of(error)) is None:
        return None
    total = float(found.share @ found.gap)
    scale = error.value("l1") / total if total > 0 else 0.0
    gap, spread = np.minimum(scale * found.gap, 2.0), np.minimum(scale * found.gap_spread, 2.0)
    return replace(found, gap=gap, gap_spread=spread).ordered(np.argsort(task.columns))


def pairs(where: ProbabilityTransfer, level: float) -> list[Pair]:
    """Return all pairs of classes, who takes first, by how much; their intervals hold together."""
    first, second = np.triu_indices(len(where.share), 1)
    reach = interval_deviate(each_level(level, len(first)))
    every = []
    for i, j in zip(first, second, strict=True):
        a, b = (int(i), int(j)) if where.taken[i, j] >= 0 else (int(j), int(i))
        value, far = float(where.taken[a, b]), reach * float(where.spread[a, b])
        every.append(Pair(a, b, value, value - far, value + far))
    return sorted(every, key=lambda pair: -pair.value)


def predicted(where: ProbabilityTransfer, level: float) -> list[Predicted]:
    """Return the rows of each predicted class, the largest gap first; their intervals hold together."""
    reach = interval_deviate(each_level(level, len(where.share)))
    every = []
    for k in np.flatnonzero(where.share > 0).tolist():
        gap, far = float(where.gap[k]), reach * float(where.gap_spread[k])
        every.append(Predicted(k, float(where.share[k]), gap, max(gap - far, 0.0), min(gap + far, 2.0)))
    return sorted(every, key=lambda row: -row.gap)

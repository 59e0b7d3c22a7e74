"""Probability transfer between classes, over all rows and by predicted class."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from calibrant.estimators.canonical.softmax import canonical_error
from calibrant.inference.interval_estimate import interval_deviate
from calibrant.inference.multiplicity import each_level
from calibrant.posterior.softmax.probability_transfer import ProbabilityTransfer
from calibrant.tasks import CalibrationTask


class ClassTransfer(NamedTuple):
    """Probability per row that one class receives from another, with its interval."""

    # taker, giver: the columns of the two classes.
    taker: int
    giver: int
    # value, low, high: net: the scores of the first are too high where those of the second are too low.
    value: float
    low: float
    high: float


class PredictedClassGap(NamedTuple):
    """The rows that one class is predicted for."""

    column: int  # the class
    share: float  # share of the rows
    # gap, low, high: mean of sum_k |frequency_k - score_k| in them, and its interval.
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
    if (transfer := ProbabilityTransfer.of(error)) is None:
        return None
    total = float(transfer.share @ transfer.gap)
    scale = error.value("l1") / total if total > 0 else 0.0
    gap, spread = np.minimum(scale * transfer.gap, 2.0), np.minimum(scale * transfer.gap_spread, 2.0)
    return replace(transfer, gap=gap, gap_spread=spread).ordered(np.argsort(task.columns))


def pairs(transfer: ProbabilityTransfer, level: float) -> list[ClassTransfer]:
    """Return all pairs of classes, who takes first, by how much; their intervals hold together."""
    first, second = np.triu_indices(len(transfer.share), 1)
    deviate = interval_deviate(each_level(level, len(first)))
    every = []
    for i, j in zip(first, second, strict=True):
        a, b = (int(i), int(j)) if transfer.net[i, j] >= 0 else (int(j), int(i))
        value, margin = float(transfer.net[a, b]), deviate * float(transfer.spread[a, b])
        every.append(ClassTransfer(a, b, value, value - margin, value + margin))
    return sorted(every, key=lambda pair: -pair.value)


def predicted(transfer: ProbabilityTransfer, level: float) -> list[PredictedClassGap]:
    """Return the rows of each predicted class, the largest gap first; their intervals hold together."""
    deviate = interval_deviate(each_level(level, len(transfer.share)))
    every = []
    for k in np.flatnonzero(transfer.share > 0).tolist():
        share, gap = float(transfer.share[k]), float(transfer.gap[k])
        margin = deviate * float(transfer.gap_spread[k])
        every.append(PredictedClassGap(k, share, gap, max(gap - margin, 0.0), min(gap + margin, 2.0)))
    return sorted(every, key=lambda row: -row.gap)

"""Looking at many classes or groups at once without being fooled by the unluckiest."""

from __future__ import annotations

from collections.abc import Sequence


def each_level(level: float, count: int) -> float:
    """Return the level at which each of several intervals must hold for all to hold at `level` (Bonferroni).

    >>> round(each_level(0.95, 10), 6)
    0.995
    """
    return 1 - (1 - level) / max(count, 1)


def false_discovery(p_values: Sequence[float]) -> list[float]:
    """Return p-values that hold the share of false alarms among all alarms (Benjamini and Hochberg).

    >>> false_discovery([0.01, 0.04, 0.9])
    [0.03, 0.06, 0.9]
    """
    count = len(p_values)
    order = sorted(range(count), key=p_values.__getitem__, reverse=True)
    adjusted, least = [1.0] * count, 1.0
    for rank, i in zip(range(count, 0, -1), order, strict=True):
        least = min(least, p_values[i] * count / rank)
        adjusted[i] = least
    return adjusted

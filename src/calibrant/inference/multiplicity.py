"""Adjustments for multiple classes or groups: Bonferroni, false discovery rate, and adaptive simulation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil
from typing import TypeVar

import numpy as np

from calibrant.parallel import parallel_map

Key = TypeVar("Key")
Result = TypeVar("Result")
# Share of the level of a statistic that the number of data sets is chosen for, and its largest value.
ASSUMED_LEVEL_SHARE, MAX_DATA_SETS = 0.1, 199_999
# Largest p-value at which the test of a class or group is repeated.
SUSPECT_P_VALUE = 0.02


def each_level(level: float, count: int) -> float:
    """Return the level of each interval at which `count` intervals have joint level `level` (Bonferroni).

    >>> round(each_level(0.95, 10), 6)
    0.995
    """
    return 1 - (1 - level) / max(count, 1)


def false_discovery(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for the false discovery rate (Benjamini and Hochberg).

    >>> false_discovery([0.01, 0.04, 0.9])
    [0.03, 0.06, 0.9]
    """
    # Importing scipy.stats for this takes a third of a second.
    order = np.argsort(-np.asarray(p_values), kind="stable")
    p, adjusted, ranks = np.asarray(p_values)[order], np.empty(order.size), np.arange(order.size, 0, -1)
    adjusted[order] = np.minimum.accumulate(np.minimum(p * order.size / ranks, 1.0))
    return adjusted.tolist()


def resamples_for(tests: int, suspects: int, alpha: float) -> int:
    """Return the number of simulated data sets with which all suspects can be rejected together.

    With M data sets, a gap that only one statistic detects has a p-value of about 1 / (share M). The adjusted
    p-value is tests / suspects times as large, and should be alpha / 2.

    >>> resamples_for(90, 1, 0.05), resamples_for(90, 30, 0.05)
    (35999, 1199)
    """
    needed = ceil(2 * tests / (max(suspects, 1) * alpha * ASSUMED_LEVEL_SHARE) - 1e-9) - 1
    return min(needed, MAX_DATA_SETS)


def refine_tests(
    results: Mapping[Key, Result],
    p_value: Callable[[Result], float],
    simulate: Callable[[Key, int], Result],
    *,
    tests: int,
    alpha: float,
    size: int,
    least: int = 0,
) -> dict[Key, Result]:
    """Repeat tests with more simulated data sets while their p-values are near the smallest possible.

    The limit for repeating is fixed for each number of data sets and falls from one number to the next. This
    keeps every p-value valid: a small final p-value must have been small at each number before.

    Parameters
    ----------
    results : mapping
        Results of the tests with the first number of data sets.
    p_value : callable
        Returns the p-value of a result.
    simulate : callable
        Repeats a test with a number of data sets.
    tests : int
        Total number of tests.
    alpha : float
        Level of the test with adjusted p-values.
    size, least : int
        First number of data sets, and the smallest number for a repeated test.
    """
    refined_results, suspects = dict(results), list(results)
    while True:
        limit = min(SUSPECT_P_VALUE, 2 / (ASSUMED_LEVEL_SHARE * (1 + size)))
        suspects = [key for key in suspects if p_value(refined_results[key]) <= limit]
        needed = max(least, resamples_for(tests, len(suspects), alpha))
        # `resamples_for` contains a margin of two, so a smaller increase is not worth a repetition.
        if not suspects or needed < 2 * size:
            return refined_results
        size = needed
        repeated = parallel_map(lambda repeat: simulate(*repeat), [(key, size) for key in suspects])
        refined_results.update(zip(suspects, repeated, strict=True))

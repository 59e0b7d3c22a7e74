"""Looking at many classes or groups at once without being fooled by the unluckiest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil
from typing import TypeVar

# A p-value up to which a test is simulated again with more data sets, and how many these are at most.
SUSPECT, MOST_RESAMPLES = 0.02, 199_999
# The tests join several statistics, each of which has at least this share of the level.
LEAST_SHARE = 0.1

Key = TypeVar("Key")
Result = TypeVar("Result")


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
    from scipy.stats import false_discovery_control

    return [float(p) for p in false_discovery_control(p_values)]


def resamples_for(tests: int, suspects: int, alpha: float) -> int:
    """Return how many data sets to simulate for each suspect so that all of them can be rejected together.

    With M data sets a gap that one statistic alone sees has a p-value of about 1 / (share M). The adjusted
    one is tests / suspects times as large, and should be alpha / 2.

    >>> resamples_for(90, 1, 0.05), resamples_for(90, 30, 0.05)
    (35999, 1199)
    """
    needed = ceil(2 * tests / (max(suspects, 1) * alpha * LEAST_SHARE) - 1e-9) - 1
    return min(needed, MOST_RESAMPLES)


def refined(
    results: Mapping[Key, Result],
    p_value: Callable[[Result], float],
    simulate: Callable[[Key, int], Result],
    *,
    tests: int,
    alpha: float,
    size: int,
    least: int = 0,
) -> dict[Key, Result]:
    """Return results of tests, simulated again with more data sets where these can still decide.

    A test goes on while its p-value is near the smallest that its number of data sets can show. The limit is
    fixed for each number and falls from one to the next, which keeps every p-value valid: to be small in the
    end it must have been small at each number before.

    Parameters
    ----------
    results : mapping
        Of the tests with their first number of data sets.
    p_value : callable
        The p-value of a result.
    simulate : callable
        Repeats a test with a number of data sets.
    tests : int
        How many tests there are in all.
    alpha : float
        The level that adjusted p-values are held against.
    size, least : int
        The first number of data sets, and the smallest one to repeat a test with.
    """
    found, suspects = dict(results), list(results)
    while True:
        limit = min(SUSPECT, 2 / (LEAST_SHARE * (1 + size)))
        suspects = [key for key in suspects if p_value(found[key]) <= limit]
        needed = max(least, resamples_for(tests, len(suspects), alpha))
        # What is needed leaves a margin of two.
        if not suspects or needed < 2 * size:
            return found
        size = needed
        for key in suspects:
            found[key] = simulate(key, size)

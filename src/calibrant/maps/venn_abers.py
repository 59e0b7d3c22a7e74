"""Venn-Abers predictors: isotonic regression with a new row of either outcome, for all scores at once.

The algorithms are those of Vovk, Petej and Fedorova (2015): the greatest convex minorant of the cumulative
outcomes is updated from score to score, as a stack. Fitting is a single pass over the scores, and a
prediction is a binary search.
"""

from __future__ import annotations

import numpy as np

from calibrant.score_data import Array

# Tolerance for equal slopes, because sums of rows have rounding errors.
ROUNDING = 1e-9


def venn_abers(mass: Array, positive: Array) -> tuple[Array, Array]:
    """Return the isotonic frequency at each score with a new row of outcome 0 there, and of outcome 1.

    Parameters
    ----------
    mass, positive : array
        Mass and positive mass at each score, in increasing order of scores.

    Examples
    --------
    >>> low, high = venn_abers(np.array([1.0, 1.0]), np.array([0.0, 1.0]))
    >>> low.round(2), high.round(2)
    (array([0. , 0.5]), array([0.5, 1. ]))
    """
    high = _with_a_positive(mass.tolist(), positive.tolist())
    # Reverse outcomes and the order of the scores, so that a new 0 becomes a new 1.
    low = _with_a_positive(mass[::-1].tolist(), (mass - positive)[::-1].tolist())
    return 1 - np.array(low[::-1]), np.array(high)


def _with_a_positive(mass: list[float], positive: list[float]) -> list[float]:
    """Return the isotonic frequency at each score with one more positive row there."""
    k = len(mass)
    # Cumulative rows and positives, preceded by one positive row. Entry i + 1 is the point P_i.
    x, y = [-1.0, 0.0], [-1.0, 0.0]
    for m, p in zip(mass, positive, strict=True):
        x.append(x[-1] + m)
        y.append(y[-1] + p)

    def turns_left(a: int, b: int, c: int) -> bool:
        first_step, both_steps = x[b] - x[a], x[c] - x[a]
        return first_step * (y[c] - y[a]) - (y[b] - y[a]) * both_steps > ROUNDING * first_step * both_steps

    # Corners of the convex minorant of all points, with the first corner on top of the stack.
    stack: list[int] = []
    for i in range(k + 1, -1, -1):
        while len(stack) > 1 and not turns_left(i, stack[-1], stack[-2]):
            stack.pop()
        stack.append(i)
    frequency = []
    for i in range(2, k + 2):
        top, after = stack[-1], stack[-2]
        frequency.append((y[after] - y[top]) / (x[after] - x[top]))
        # Move the new row behind score i: the point between them is reached by the rows of score i alone.
        x[i - 1], y[i - 1] = x[i - 2] + x[i] - x[i - 1], y[i - 2] + y[i] - y[i - 1]
        if not turns_left(top, i - 1, after):
            continue
        stack.pop()
        while len(stack) > 1 and not turns_left(i - 1, stack[-1], stack[-2]):
            stack.pop()
        stack.append(i - 1)
    return frequency

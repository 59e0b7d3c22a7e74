"""The interval of the rows near a score, row by row, by weighted least squares."""

import numpy as np
from scipy import stats


def odds(s, wall):
    return np.log((s + wall) / (1 - s + wall))


def interval(score, outcome, at, frequency, *, window, far, wall, level):
    """Return the effective number of rows, and ends of the interval, for distinct scores and equal weights.

    `frequency` determines the variance of a row.
    """
    n = len(score)
    order = np.argsort(score)
    score, outcome, frequency = score[order], outcome[order], np.asarray(frequency)[order]
    at = min(max(at, score[0]), score[-1])
    rank = (np.arange(n) + 0.5) / n
    middle = (np.sum(score < at) + np.sum(score <= at)) / (2 * n)
    half = window * n ** (-1 / 3)
    half += max(half - min(middle, 1 - middle), 0)
    weight = np.zeros(n)
    for i in range(n):
        u = max(abs(rank[i] - middle) - 0.5 / n, 0) / half
        v = (odds(score[i], wall) - odds(at, wall)) / (far * n ** (-1 / 7))
        weight[i] = max(1 - u * u, 0) * max(1 - v * v, 0)
    x = odds(score, 1 / n) - odds(at, 1 / n)
    design = np.stack([np.ones(n), x], axis=1)
    gram = design.T @ (weight[:, None] * design)
    gram[1, 1] *= 1 + 1e-4
    coefficients = np.linalg.solve(gram, design.T * weight)[0]
    rows = 1 / np.sum(coefficients**2)
    centre = float(np.clip(at + coefficients @ (outcome - score), 0, 1))
    tail = (1 - level) / 2
    hits = centre * rows
    low = stats.beta.ppf(tail, hits, rows - hits + 1) if hits > 0 else 0.0
    high = stats.beta.ppf(1 - tail, hits + 1, rows - hits) if hits < rows else 1.0
    spread = stats.norm.ppf(1 - tail) * np.sqrt(np.sum(coefficients**2 * frequency * (1 - frequency)))
    return rows, max(min(low, centre - spread), 0.0), min(max(high, centre + spread), 1.0)

"""Audits of segments, row by row: gaps, their null variances, and null distributions by simulated rows."""

from itertools import combinations

import numpy as np
from scipy import stats


def members(columns, depth, min_rows):
    """The rows of each segment, by its columns and values; those that repeat other rows are left out."""
    n = len(next(iter(columns.values())))
    found = {}
    for size in range(1, depth + 1):
        for names in combinations(columns, size):
            for row in range(n):
                key = tuple((name, str(columns[name][row])) for name in names)
                found.setdefault(key, set()).add(row)
    return {
        key: sorted(rows)
        for key, rows in found.items()
        if len(rows) >= min_rows
        and len(rows) < n
        and all(found[key[:k] + key[k + 1 :]] != rows for k in range(len(key)) if len(key) > 1)
    }


def sums(rows, outcome, score, weight, counts=False):
    """Mean outcome, mean score, sum of residuals, its variance and its third cumulant if calibrated."""
    total = [0.0] * 6
    for i in rows:
        w, p = weight[i], score[i]
        square, cube = (w, w) if counts else (w**2, w**3)
        parts = w, w * outcome[i], w * p, w * (outcome[i] - p), square * p * (1 - p)
        for k, part in enumerate((*parts, cube * p * (1 - p) * (1 - 2 * p))):
            total[k] += part
    return total[1] / total[0], total[2] / total[0], *total[3:]


def beyond(rows, outcome, curve, bins, weight):
    """Sum of residuals about a curve that is corrected in bins, its null variance and third cumulant."""
    inside, spread = set(rows), [w * w * q * (1 - q) for w, q in zip(weight, curve, strict=True)]
    share = {}
    for b in set(bins):
        of_bin = [i for i in range(len(bins)) if bins[i] == b]
        share[b] = sum(spread[i] for i in of_bin if i in inside) / sum(spread[i] for i in of_bin)
    total = [0.0, 0.0, 0.0]
    for i, (q, w) in enumerate(zip(curve, weight, strict=True)):
        contrast = (i in inside) - share[bins[i]]
        total[0] += contrast * w * (outcome[i] - q)
        total[1] += contrast**2 * spread[i]
        total[2] += contrast**3 * spread[i] * w * (1 - 2 * q)
    return tuple(total)


def normal_score(residual, variance, third):
    """Normal scores of sums by the posterior of an equivalent binomial count, with Jeffreys' prior."""
    rate = (1 - third / variance) / 2
    rows = variance / (rate * (1 - rate))
    count = np.clip(rows * rate + residual, 0, rows)
    posterior = stats.beta(count + 0.5, rows - count + 0.5)
    low, high = stats.norm.ppf(posterior.sf(rate)), -stats.norm.ppf(posterior.cdf(rate))
    return np.where(count > rows * rate, high, low)


def largest_scores(segments, score, sets, rng):
    """The largest absolute normal scores of all segments in data sets with simulated outcomes, in order."""
    residual, largest = (rng.random((sets, len(score))) < score) - score, np.zeros(sets)
    for rows in segments:
        _, _, _, variance, third = sums(rows, score, score, np.ones(len(score)))
        z = normal_score(residual[:, rows].sum(axis=1), variance, third)
        largest = np.maximum(largest, abs(z))
    return np.sort(largest)

"""The corrected band at one score, row by row: local lines by least squares, their variance by the rows.

Rows with equal scores take up a block of ranks. `ranks` and `scores` are half the windows.
"""

from math import sqrt
from statistics import NormalDist

import numpy as np

RIDGE = 1e-4


def coefficients(scores, weights, at, *, ranks, reach):
    """What each row's residual counts in the value of the line at a score."""
    distinct = sorted(set(scores))
    total = sum(weights)
    below, mass = {}, {}
    for s in distinct:
        below[s] = sum(w for t, w in zip(scores, weights, strict=True) if t < s) / total
        mass[s] = sum(w for t, w in zip(scores, weights, strict=True) if t == s) / total
    middle = {s: below[s] + mass[s] / 2 for s in distinct}
    place = np.interp(at, distinct, [middle[s] for s in distinct])
    width = ranks + max(ranks - min(place, 1 - place), 0)
    kernel, tilt = [], []
    for s, w in zip(scores, weights, strict=True):
        distance = max(below[s] - place, place - below[s] - mass[s], 0) / width
        away = abs(s - at) / reach
        kernel.append(w * max(1 - distance**2, 0) * max(1 - away**2, 0))
        tilt.append((middle[s] - place) / width)
    kernel, tilt = np.array(kernel), np.array(tilt)
    if kernel.sum() == 0:
        return np.zeros(len(scores))
    root = np.sqrt(kernel)
    design = np.column_stack([root, root * tilt])
    design = np.vstack([design, [0, sqrt(RIDGE * kernel.sum())]])
    value = np.linalg.pinv(design)[0]
    return value[:-1] * root


def interval(scores, outcomes, at, *, ranks, reach, level=0.95, weights=None, counts=False, most=np.inf):
    """Centre and ends of the interval at one score."""
    weights = np.ones(len(scores)) if weights is None else np.asarray(weights, dtype=float)
    if counts:
        rows = np.repeat(np.arange(len(scores)), weights.astype(int))
        scores, outcomes, weights = scores[rows], outcomes[rows], np.ones(rows.size)
    residual = outcomes - scores
    own = {
        s: coefficients(scores, weights, s, ranks=ranks, reach=reach) @ residual for s in sorted(set(scores))
    }
    line = coefficients(scores, weights, at, ranks=ranks, reach=reach)
    centre = min(max(at + line @ residual, 0), 1)
    noise = np.sum(line**2)
    if noise == 0:
        return centre, 0.0, 1.0
    size = min(1 / noise, most)
    variance = 0.0
    for s, c in zip(scores, line, strict=True):
        p = min(max(s + own[s], 0), 1)
        variance += c**2 * p * (1 - p)
    z = NormalDist().inv_cdf((1 + level) / 2)
    half = z * sqrt(variance / noise / size)
    # Wilson: the frequencies p with (centre - p)^2 <= z^2 p (1 - p) / size.
    ends = np.roots([1 + z**2 / size, -2 * centre - z**2 / size, centre**2]).real
    return centre, max(min(ends.min(), centre - half), 0), min(max(ends.max(), centre + half), 1)

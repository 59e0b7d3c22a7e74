"""Sums over rows by plain loops in exact arithmetic.

Scores, weights, cuts and origins are floats taken at their exact value; sums are fractions, rounded once at
the end. Every function sums the rows of a single problem.
"""

from fractions import Fraction
from math import log

import numpy as np


def rows(score, outcome, weight=None):
    """Rows (score, outcome, weight) as exact numbers; without weights each row counts once."""
    weight = np.ones(len(score), dtype=int) if weight is None else weight
    return [
        (Fraction(float(s)), int(y), Fraction(float(w)))
        for s, y, w in zip(score, outcome, weight, strict=True)
    ]


def sums_between(score, outcome, weight, cuts, origin=None, powers=1):
    """Sums of w x^power by power, outcome and group: group k holds cuts[k-1] <= s < cuts[k]."""
    cuts = [Fraction(float(cut)) for cut in cuts]
    origin = [Fraction(0)] * (len(cuts) + 1) if origin is None else [Fraction(float(o)) for o in origin]
    sums = [[[Fraction(0)] * len(origin) for _ in range(2)] for _ in range(powers + 1)]
    for s, y, w in rows(score, outcome, weight):
        group = sum(cut <= s for cut in cuts)
        for power in range(powers + 1):
            sums[power][y][group] += w * (s - origin[group]) ** power
    return np.array(sums, dtype=float)


def sums_in_cells(score, outcome, weight, low, high, powers=2):
    """The same by cell, given the least and the largest score of each; a cell's origin is its least score."""
    sums = np.zeros((powers + 1, 2, len(low)))
    cells = [
        next(k for k in range(len(low)) if low[k] <= s <= high[k])
        for s in np.abs(score).astype(float).tolist()
    ]
    for cell in set(cells):
        own = [(s, y, w) for s, y, w, k in zip(score, outcome, weight, cells, strict=True) if k == cell]
        sums[:, :, cell] = sums_between(*zip(*own, strict=True), [], [low[cell]], powers)[:, :, 0]
    return sums


def sums_in_runs(run, column):
    """Sums over neighbours that are equal in `run`, at the first of them; zeros at the others."""
    sums = [Fraction(0)] * len(run)
    first = 0
    for i, value in enumerate(column):
        if run[i] != run[first]:
            first = i
        sums[first] += Fraction(float(value))
    return np.array(sums, dtype=float)


def weight_sums(weight):
    """The sum of the weights and that of their squares; a count stands for so many weights of one."""
    counts = np.asarray(weight).dtype.kind == "i"
    exact = [Fraction(float(w)) for w in weight]
    return float(sum(exact)), float(sum(w if counts else w * w for w in exact))


def mean_square(score, weight=None):
    """The weighted mean of the squared distances of the scores from their mean."""
    exact = rows(score, [0] * len(score), weight)
    total = sum(w for _, _, w in exact)
    mean = sum(w * s for s, _, w in exact) / total
    return float(sum(w * (s - mean) ** 2 for s, _, w in exact) / total)


def row_totals(score, code, weight=None):
    """Number, weight, weight of the right ones, log loss, weight of the impossible ones, and Brier score."""
    totals = [0] + [0.0] * 5
    for i, label in enumerate(np.asarray(code).tolist()):
        values = np.asarray(score[i], dtype=float).tolist()
        p = values if np.ndim(score) == 2 else [1 - values, values]
        w = 1.0 if weight is None else float(weight[i])
        best = max(range(len(p)), key=lambda c: (p[c], -c))
        totals[0] += 1
        totals[1] += w
        totals[2] += w * (best == label)
        totals[3] -= w * log(p[label]) if p[label] > 0 else 0.0
        totals[4] += w * (p[label] == 0)
        totals[5] += w * sum((v - (c == label)) ** 2 for c, v in enumerate(p))
    return totals

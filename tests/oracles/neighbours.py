"""Frequencies by neighbours, pair by pair, and errors of a Dirichlet variable by adding up its density."""

from __future__ import annotations

from math import lgamma

import numpy as np


def places(rows):
    """Log ratios of scores, whitened by the inverse of their covariance on the plane that they lie in."""
    positive = rows.score[rows.score > 0]
    least = min(max(positive.min() / 2, 1e-12), 1e-3)
    log = [[np.log(max(p, least)) for p in row] for row in rows.score]
    log = np.array([[each - sum(row) / len(row) for each in row] for row in log])
    log -= np.average(log, axis=0, weights=rows.weight)
    inverse = np.linalg.pinv(np.cov(log.T, aweights=rows.weight, bias=True), rcond=1e-6, hermitian=True)
    rank = int(np.round(np.trace(inverse @ np.cov(log.T, aweights=rows.weight, bias=True))))
    return log, inverse / rank


def updated(rows, x, folds, width, weight):
    """Means and counts of every row, by a loop over the rows of other folds."""
    log, inverse = places(rows)
    fold = np.concatenate([np.full(part.stop - part.start, j) for j, part in enumerate(rows.folds(folds))])
    means, counts = np.empty(x.shape), np.empty(len(x))
    for i in range(len(x)):
        total, move = weight, np.zeros(x.shape[1])
        for j in range(len(x)):
            if fold[j] != fold[i]:
                away = log[i] - log[j]
                near = rows.weight[j] * np.exp(-0.5 * (away @ inverse @ away) / width**2)
                total += near
                move += near * (np.eye(x.shape[1])[rows.code[j]] - x[j])
        mean = np.maximum(x[i] + move / total, 0)
        means[i], counts[i] = mean / mean.sum(), total
    return means, counts


def errors(mean, count, score):
    """E |B - s|, E (B - s)^2 and E B |B - s| of a beta variable, as sums over small steps of its density."""
    a, b = mean * count, (1 - mean) * count
    at = (np.arange(20_000) + 0.5) / 20_000
    log = (a - 1) * np.log(at) + (b - 1) * np.log1p(-at) + lgamma(a + b) - lgamma(a) - lgamma(b)
    mass, gap = np.exp(log) / 20_000, np.abs(at - score)
    return np.array([mass @ gap, mass @ gap**2, mass @ (at * gap)])

"""Slow loops for shifted class frequencies and top-label calibration."""

import numpy as np


def em(probability, train, steps=20000):
    """Return the class frequencies of Saerens, Latinne and Decaestecker (2002), row by row."""
    prior = np.array(train, dtype=float)
    for _ in range(steps):
        total = np.zeros(len(prior))
        for row in probability:
            adjusted = row * prior / train
            total += adjusted / adjusted.sum()
        moved = total / len(probability)
        if np.abs(moved - prior).max() < 1e-12:
            return moved
        prior = moved
    return prior


def top_label(label, matrix, bins):
    """Return the top-label error with bins of equal width: the binned error of each predicted class."""
    error = 0.0
    for k in range(matrix.shape[1]):
        rows = [i for i in range(len(label)) if int(np.argmax(matrix[i])) == k]
        for b in range(bins):
            inside = [i for i in rows if min(int(matrix[i, k] * bins), bins - 1) == b]
            if inside:
                gap = sum(float(label[i] == k) - matrix[i, k] for i in inside)
                error += abs(gap) / len(label)
    return error

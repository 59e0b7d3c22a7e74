"""Coverage and false alarms of `calibrant.estimate` for top-label and multi-label calibration.

    python benchmarks/notions.py             # 400 samples a cell, about 40 minutes on one core
    python benchmarks/notions.py --size 40   # a tenth of them
    python benchmarks/notions.py --only multilabel

`top-label`: three classes are predicted with frequencies .5, .3 and .2, and a confidence that is uniform on
[.4, 1]; the accuracy is confidence^g with g = 1.6, 1 and .6 for the three classes. `multilabel`: four
columns, scores uniform on [0, 1], and frequencies score^g with g = 1.6, 1, .6 and 1; scores and outcomes of a
row depend on each other by a normal copula of correlation .6. In `calibrated` cells all g are 1. Printed:
the share of samples whose 95 % interval holds the true error, the share of p-values of at most 5 % (false
alarms in the calibrated cells, power in the others), the mean width, and the mean estimate beside the truth.
"""

from __future__ import annotations

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from itertools import product

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from scipy.special import ndtr

import calibrant

ROWS, NOTIONS, SAMPLES = (300, 1000, 3000), ("top-label", "multilabel"), 400
SHARES, LEAST, CORRELATION = np.array([0.5, 0.3, 0.2]), 0.4, 0.6
POWERS = {"top-label": np.array([1.6, 1.0, 0.6]), "multilabel": np.array([1.6, 1.0, 0.6, 1.0])}


def cells():
    """Return notion, kind and rows of each cell."""
    return list(product(NOTIONS, ("calibrated", "miscalibrated"), ROWS))


def powers_of(notion, kind):
    """Return the exponent of each class."""
    return POWERS[notion] if kind == "miscalibrated" else np.ones(len(POWERS[notion]))


def truth(notion, kind):
    """Return the true calibration error: gaps of s^g have one sign."""
    g, low = powers_of(notion, kind), LEAST if notion == "top-label" else 0.0
    gap = np.abs((1 - low ** (g + 1)) / (g + 1) - (1 - low**2) / 2) / (1 - low)
    return float(gap @ SHARES if notion == "top-label" else gap.mean())


def draw(rng, notion, kind, n):
    """Return labels and scores."""
    g = powers_of(notion, kind)
    if notion == "top-label":
        best, score = rng.choice(3, n, p=SHARES), rng.uniform(LEAST, 1, n)
        right = rng.random(n) < score ** g[best]
        label = np.where(right, best, (best + rng.integers(1, 3, n)) % 3)
        matrix = np.repeat((1 - score)[:, None] / 2, 3, axis=1)
        matrix[np.arange(n), best] = score
        return label, matrix
    score, uniform = (
        ndtr(
            np.sqrt(CORRELATION) * rng.normal(size=(n, 1))
            + np.sqrt(1 - CORRELATION) * rng.normal(size=(n, 4))
        )
        for _ in range(2)
    )
    return uniform < score**g, score


def sample(notion, kind, n, seed):
    """Return whether the interval holds the truth, whether the test rejects, the width and the value."""
    found = calibrant.estimate(*draw(np.random.default_rng([seed, n]), notion, kind, n), notion=notion)
    held = found.low <= truth(notion, kind) <= found.high
    return held, found.p_value <= 0.05, found.high - found.low, found.value


def one_cell(arguments):
    """Return the means over the samples of a cell."""
    cell, size = arguments
    return np.mean([sample(*cell, seed) for seed in range(size)], axis=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--size", type=int, default=SAMPLES, help="samples of each cell")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--only", nargs="+", choices=NOTIONS)
    options = parser.parse_args()
    chosen = [cell for cell in cells() if options.only is None or cell[0] in options.only]
    print("| notion | scores | rows | coverage | p <= .05 | width | mean estimate | truth |")
    print("|---|---|---|---|---|---|---|---|")
    with ProcessPoolExecutor(options.workers) as pool:
        arguments = [(cell, options.size) for cell in chosen]
        for cell, found in zip(chosen, pool.map(one_cell, arguments), strict=True):
            notion, kind, n = cell
            held, rejected, width, value = found
            row = f"| {notion} | {kind} | {n} | {held:.3f} | {rejected:.3f} | {width:.3f} | {value:.3f} "
            print(f"{row}| {truth(notion, kind):.3f} |", flush=True)


if __name__ == "__main__":
    main()

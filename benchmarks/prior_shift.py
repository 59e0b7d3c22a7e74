"""Coverage of the interval of class frequencies that `calibrant.PriorShift` estimates from unlabelled scores.

    python benchmarks/prior_shift.py             # 400 samples a cell, about 30 minutes on one core
    python benchmarks/prior_shift.py --size 40   # a tenth of them
    python benchmarks/prior_shift.py --only classes

Scores are normal with equal variances, so that the true probabilities and frequencies are known. In `known`
the scores are calibrated in the training population. In `source` they are not (slope 1.7 and intercept 0.5),
and `fit` gets 500 labelled rows of the training population; in `calibrator` it gets a `Calibrator` that was
fitted to 500 such rows. `classes` has three classes and calibrated scores. Printed for each number of
unlabelled rows: the share of samples whose 95 % interval holds the true target frequency (of three classes
the smallest of their shares), the mean width, and the mean absolute error of the estimate.
"""

from __future__ import annotations

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from itertools import product

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import calibrant

ROWS, TARGETS, LABELLED, SAMPLES = (300, 1000, 3000), (0.05, 0.3), 500, 400
MEANS = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])


def cells():
    """Return kind, distance of the class means, target frequency and rows of each cell."""
    known = [("known", *cell) for cell in product((1.0, 2.0), TARGETS, ROWS)]
    others = product(("source", "calibrator"), (1.5,), TARGETS, ROWS)
    return [*known, *others, *(("classes", 2.0, target, n) for target, n in product(TARGETS, ROWS))]


def draw(rng, n, share, distance, *, calibrated=True):
    """Return scores that refer to equal frequencies, and labels with a given share of positives."""
    label = rng.random(n) < share
    odds = distance * (rng.normal(size=n) + distance * label - distance / 2)
    return 1 / (1 + np.exp(-odds if calibrated else -(1.7 * odds + 0.5))), label


def draw_classes(rng, n, share):
    """Return scores of three classes that refer to equal frequencies."""
    label = rng.choice(3, n, p=share)
    x = rng.normal(size=(n, 2)) + MEANS[label]
    log = x @ MEANS.T - (MEANS**2).sum(axis=1) / 2
    return np.exp(log) / np.exp(log).sum(axis=1, keepdims=True)


def sample(kind, distance, target, n, seed):
    """Return whether the interval holds the truth, its width, and the absolute error: of every class."""
    rng = np.random.default_rng([seed, n])
    truth, options = np.array([target]), {}
    shift = calibrant.PriorShift(train=0.5)
    if kind == "classes":
        truth = np.array([target, 0.6 * (1 - target), 0.4 * (1 - target)])
        score, shift = draw_classes(rng, n, truth), calibrant.PriorShift(train=[1, 1, 1])
    else:
        score, _ = draw(rng, n, target, distance, calibrated=kind == "known")
    if kind in ("source", "calibrator"):
        rows = draw(rng, LABELLED, 0.5, distance, calibrated=False)
        options = {"source": rows} if kind == "source" else {}
        calibrator = calibrant.Calibrator().fit(*rows) if kind == "calibrator" else None
        shift = calibrant.PriorShift(train=None if options else 0.5, calibrator=calibrator)
    shift.fit(score, **options)
    low, high, value = (np.atleast_1d(each) for each in (shift.low, shift.high, shift.target))
    return (low <= truth) & (truth <= high), high - low, np.abs(value - truth)


def one_cell(arguments):
    """Return coverage, mean width and mean absolute error of a cell."""
    cell, first, size = arguments
    samples = [sample(*cell, seed) for seed in range(first, first + size)]
    held, width, error = (np.stack(each) for each in zip(*samples, strict=True))
    return float(held.mean(axis=0).min()), float(width.mean()), float(error.mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--size", type=int, default=SAMPLES, help="samples of each cell")
    parser.add_argument("--first", type=int, default=0, help="seed of the first sample")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--only", nargs="+", choices=("known", "source", "calibrator", "classes"))
    options = parser.parse_args()
    chosen = [cell for cell in cells() if options.only is None or cell[0] in options.only]
    print("| scores | distance | target | rows | coverage | width | error |")
    print("|---|---|---|---|---|---|---|")
    with ProcessPoolExecutor(options.workers) as pool:
        arguments = [(cell, options.first, options.size) for cell in chosen]
        for cell, found in zip(chosen, pool.map(one_cell, arguments), strict=True):
            kind, distance, target, n = cell
            coverage, width, error = found
            row = f"| {kind} | {distance:g} | {target:g} | {n} | {coverage:.3f} | {width:.3f} | {error:.3f} |"
            print(row, flush=True)


if __name__ == "__main__":
    main()

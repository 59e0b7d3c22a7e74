"""Do kernels on the simplex suffer less from dimension than bins? Errors of both where the truth is known.

    python benchmarks/dirichlet.py               # 40 repetitions
    python benchmarks/dirichlet.py --share 0.25  # a quarter of them

Mean absolute errors of the canonical l1 error over ten families (flat scores and those of a network,
five maps each, one of them none), for 3, 5 and 7 classes. Bins: the product of five for each class; cells of
equal mass, the simplex being cut at the median of its widest score again and again; and cells of k-means.
Dirichlet kernels with the bandwidth of largest likelihood, and with the best of five fixed ones at each
number of classes and rows, which one could not know. Beside them the default.
"""

from __future__ import annotations

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor
from importlib import util
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from calibrant.estimators import resolve
from calibrant.experiment.distributions import rng_of
from calibrant.score_data.simplex import Simplex

_spec = util.spec_from_file_location("canonical_test", Path(__file__).with_name("canonical_test.py"))
families = util.module_from_spec(_spec)
_spec.loader.exec_module(families)

CLASSES, SIZES, REPETITIONS = (3, 5, 7), (1000, 5000), 40
# Number of rows that determine the true value.
LARGE = 200_000
MAPS = ("none", "pull", "temp", "vector", "pairs")
FIXED = (0.01, 0.03, 0.1, 0.3, 1.0)
BINNED = {
    "5 bins a class": lambda p: grid(p, 5),
    "16 equal cells": lambda p: halves(p, 4),
    "64 equal cells": lambda p: halves(p, 6),
    "256 equal cells": lambda p: halves(p, 8),
    "64 k-means cells": lambda p: means(p, 64),
}


def grid(p, count):
    """The cell of each row in a product of bins."""
    at = np.minimum((p * count).astype(int), count - 1)
    return np.unique(at, axis=0, return_inverse=True)[1].ravel()


def halves(p, depth):
    """Cells of equal mass: cut each at the median of the score that varies most."""
    cell = np.zeros(len(p), dtype=int)
    for _ in range(depth):
        new = np.empty_like(cell)
        for k in np.unique(cell):
            own = np.flatnonzero(cell == k)
            widest = int(np.argmax(p[own].var(axis=0)))
            order = own[np.argsort(p[own, widest], kind="stable")]
            new[order] = 2 * k + (np.arange(len(own)) >= len(own) / 2)
        cell = new
    return cell


def means(p, count):
    from scipy.cluster.vq import kmeans2

    return kmeans2(p, count, minit="++", seed=np.random.default_rng(0), iter=10)[1]


def binned(p, y, cell):
    """The l1 error of cells: share times distance between mean score and frequency."""
    rest = np.eye(p.shape[1])[y] - p
    total = np.stack([np.bincount(cell, column) for column in rest.T])
    return float(np.abs(total).sum() / len(p))


def one_cell(task):
    """Errors of each estimator (families, estimators) in one number of classes and rows."""
    k, n, repetitions = task
    out = []
    for kind in ("flat", "net"):
        for name in MAPS:
            rng = rng_of("dirichlet", kind, name, *task)
            large = families.scores(kind, k, LARGE, rng)
            truth = 0.0 if name == "none" else np.abs(families.mapped(name, large) - large).sum(axis=1).mean()
            for _ in range(repetitions):
                p = families.scores(kind, k, n, rng)
                y = families.labels(p if name == "none" else families.mapped(name, p), rng)
                rows = Simplex.of(p, y)
                found = [binned(p, y, cells(p)) for cells in BINNED.values()]
                names = ("dirichlet", *(f"dirichlet:{h}" for h in FIXED), "auto")
                found += [resolve(each, vectors=True).fit(rows).error("l1") for each in names]
                out.append(np.array(found) - truth)
    return np.array(out)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--share", type=float, default=1.0, help="of the repetitions")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    repetitions, started = max(2, round(REPETITIONS * arguments.share)), time.perf_counter()
    tasks = [(k, n, repetitions) for n in SIZES for k in CLASSES]
    with ProcessPoolExecutor(arguments.workers) as pool:
        results = dict(zip(tasks, pool.map(one_cell, tasks), strict=True))
    lines = {name: [] for name in (*BINNED, "`dirichlet`", "`dirichlet`, best h", "`auto`")}
    for each in results.values():
        off, size = each.mean(axis=0), np.abs(each).mean(axis=0)
        fixed = len(BINNED) + 1 + int(np.argmin(size[len(BINNED) + 1 : -1]))
        for name, j in zip(lines, [*range(len(BINNED) + 1), fixed, -1], strict=True):
            lines[name].append(f"{size[j]:.3f} ({off[j]:+.3f})")
    print("| | " + " | ".join(f"K = {k}, n = {n}" for k, n, _ in tasks) + " |")
    print("|---" * (1 + len(tasks)) + "|")
    for name, cells in lines.items():
        print(f"| {name} | " + " | ".join(cells) + " |")
    print(f"{repetitions} repetitions, {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()

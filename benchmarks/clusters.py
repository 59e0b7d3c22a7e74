"""How well `calibrant.estimate` with `cluster=` holds what it promises where rows depend on each other.

    python benchmarks/clusters.py              # 400 repetitions a cell, some hours on two cores
    python benchmarks/clusters.py --share 0.1  # a tenth of them
    python benchmarks/clusters.py --size       # the size of the test alone, 2000 repetitions a cell

Clusters have 5 to 20 rows; `alone` is clusters of one row. Scores are each row's own, near those of
the cluster, or one for the cluster. Outcomes keep their exact probability given the score and
have the given correlation within a cluster: beta-binomial where the score is shared, otherwise by a
normal copula (of that correlation where the probability is one half, less elsewhere). Printed: coverage
of the interval with `cluster=` and without, the share of p-values of at most 5 % with and without (the
size of the test where the gap is 0), mean absolute error with and without, and the mean width.

The last lines are `calibrant.compare` on two models of the same error: false alarms with and without.
"""

from __future__ import annotations

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import product

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from scipy.special import ndtr

import calibrant
from calibrant.experiment.distributions import rng_of
from calibrant.experiment.families import EXACT
from calibrant.inference.clusters import ClusteredNull
from calibrant.inputs import in_clusters, predictions
from calibrant.tasks import CalibrationTask, get_notion

REPETITIONS = 400
CLUSTERS, CORRELATIONS, SCORES, GAPS = (
    (20, 100, 1000),
    (0.1, 0.3, 0.5),
    ("own", "near", "shared"),
    (0, 0.3, 1),
)
FAMILIES = ("square", "flat")
# What happens without clusters is looked at in one of so many repetitions.
FEWER = 4
# Simulated sets where the size alone is measured.
SETS = 199


def cells():
    """Return family, gap, clusters, correlation and scores of each cell; none twice for no gap."""
    found = [
        (name, gap, clusters, correlation, scores)
        for clusters, correlation, scores, gap, name in product(
            CLUSTERS, CORRELATIONS, SCORES, GAPS, FAMILIES
        )
        if gap or name == FAMILIES[0] or correlation == CORRELATIONS[-1]
    ]
    return found + [(name, gap, 1000, 0.0, "alone") for name, gap in product(FAMILIES, (0, 1))]


def draw(rng, name, gap, clusters, correlation, scores):
    """Return scores, outcomes and clusters."""
    family = EXACT[name].shrunk(gap)
    rows = np.ones(clusters, int) if scores == "alone" else rng.integers(5, 21, clusters)
    cluster = np.repeat(np.arange(clusters), rows)
    like = {"own": 0.0, "alone": 0.0, "near": 0.7, "shared": 1.0}[scores]
    score, chance = family.pairs(np.clip(family.quantile(_uniform(rng, cluster, like)), 1e-9, 1 - 1e-9))
    if scores == "shared":
        own = np.clip(chance[np.cumsum(rows) - 1], 1e-9, 1 - 1e-9)
        size = 1 / correlation - 1
        return score, rng.random(len(score)) < rng.beta(size * own, size * (1 - own))[cluster], cluster
    # The correlation of two signs of normal variables is that of their arc sine.
    return score, _uniform(rng, cluster, np.sin(np.pi * correlation / 2)) < chance, cluster


def _uniform(rng, cluster, correlation):
    """Return uniform numbers whose normal scores correlate within a cluster."""
    shared, own = rng.standard_normal(cluster.max() + 1)[cluster], rng.standard_normal(len(cluster))
    return ndtr(np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * own)


def one_cell(task):
    """Return what is printed of a cell: with clusters, and without."""
    *cell, repetitions, estimator = task
    rng, truth = rng_of("clusters", *task), EXACT[cell[0]].shrunk(cell[1]).truth
    ours, plain = [], []
    for k in range(repetitions):
        score, outcome, cluster = draw(rng, *cell)
        seed = int(rng.integers(2**32))
        for known, found in ((cluster, ours), (None, plain)):
            if k % FEWER and known is None:
                continue
            e = calibrant.estimate(outcome, score, cluster=known, estimator=estimator, rng=seed)
            found.append((e.low <= truth <= e.high, e.p_value <= 0.05, abs(e.value - truth), e.high - e.low))
    return np.mean(ours, axis=0), np.mean(plain, axis=0)


def size_cell(task):
    """Return how often a calibrated model is taken for one that is not, at 5 %."""
    clusters, correlation, scores, repetitions = task
    rng, found = rng_of("size of clusters", *task), []
    for _ in range(repetitions):
        score, outcome, cluster = draw(rng, FAMILIES[0], 0, clusters, correlation, scores)
        data = in_clusters(predictions(outcome, score), cluster)
        null = ClusteredNull.of(CalibrationTask.of(data, get_notion("binary")), "l1", rng, SETS)
        found.append(null.all_classes.p_value <= 0.05)
    return np.mean(found)


def paired_cell(task):
    """Return how often two models of the same error are told apart, with clusters and without."""
    clusters, correlation, repetitions = task
    rng, found = rng_of("paired clusters", *task), []
    for _ in range(repetitions):
        cluster = np.repeat(np.arange(clusters), rng.integers(5, 21, clusters))
        chance = rng.random(len(cluster))
        outcome = _uniform(rng, cluster, np.sin(np.pi * correlation / 2)) < chance
        models = {
            "low": 0.7 * chance + 0.3 * chance**2,
            "high": 1 - 0.7 * (1 - chance) - 0.3 * (1 - chance) ** 2,
        }
        seed = int(rng.integers(2**32))
        for known in (cluster, None):
            difference = calibrant.compare(outcome, models, cluster=known, rng=seed).differences["high"]
            found.append(difference.p_value <= 0.05)
    return np.reshape(found, (-1, 2)).mean(axis=0)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--share", type=float, default=1.0, help="of the repetitions")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--clusters", nargs="*", type=int, help="numbers of clusters")
    parser.add_argument("--correlation", nargs="*", type=float)
    parser.add_argument("--family", nargs="*", choices=FAMILIES)
    parser.add_argument("--estimator", default="auto")
    parser.add_argument("--size", action="store_true", help="of the test alone")
    arguments = parser.parse_args()
    repetitions = max(5, round(REPETITIONS * arguments.share))
    tasks = [
        (*cell, repetitions, arguments.estimator)
        for cell in cells()
        if cell[2] in (arguments.clusters or CLUSTERS)
        and (arguments.correlation is None or cell[3] in arguments.correlation)
        and cell[0] in (arguments.family or FAMILIES)
    ]
    started = time.perf_counter()
    if arguments.size:
        cells_of_size = [
            (*cell, 5 * repetitions)
            for cell in product(arguments.clusters or CLUSTERS, arguments.correlation or CORRELATIONS, SCORES)
        ]
        with ProcessPoolExecutor(arguments.jobs) as pool:
            for task, size in zip(cells_of_size, pool.map(size_cell, cells_of_size), strict=True):
                print(f"{task[0]:4} clusters, {task[1]}, {task[2]:6}: size {size:.4f}", flush=True)
        return
    head = "coverage (without)  p <= .05 (without)  mean error (without)  width"
    print(f"{'family':8} {'gap':>4} {'clusters':>8} {'icc':>4} {'scores':7} {head}")
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for task, (ours, plain) in zip(tasks, pool.map(one_cell, tasks), strict=True):
            name, gap, clusters, correlation, scores, *_ = task
            print(
                f"{name:8} {gap:4} {clusters:8} {correlation:4} {scores:7} "
                f"{ours[0]:8.3f}  ({plain[0]:.3f})   {ours[1]:8.3f}  ({plain[1]:.3f})   "
                f"{ours[2]:10.4f} ({plain[2]:.4f})  {ours[3]:.3f}",
                flush=True,
            )
        pairs = [(*cell, repetitions) for cell in product(arguments.clusters or CLUSTERS, CORRELATIONS)]
        pairs = [pair for pair in pairs if arguments.correlation is None or pair[1] in arguments.correlation]
        for (clusters, correlation, _), (ours, plain) in zip(
            pairs, pool.map(paired_cell, pairs), strict=True
        ):
            print(
                f"compare: {clusters:4} clusters, {correlation}: false alarms {ours:.3f} ({plain:.3f})",
                flush=True,
            )
    print(f"{repetitions} repetitions, {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()

"""Accuracy and coverage of the multiclass calibration error where the truth is known.

    python benchmarks/canonical.py                  # 200, 60, 20 repetitions at 300, 1000 and 10 000 rows
    python benchmarks/canonical.py --share 0.1      # a tenth of them
    python benchmarks/canonical.py --parts many     # 100 and 1000 classes: the bound that always holds
    python benchmarks/canonical.py --parts where    # which classes take probability from which
    python benchmarks/canonical.py --parts published paper speed

Families: flat and network-like scores, forests with exact zeros, scores near the corners; maps that pull to
equal chances, raise or lower the temperature, scale and shift each class, mix classes by a matrix, between
neighbours, from first to second choice, in one place, and none. The efficiency bound of a cell is .798
sd(psi(eta) + c) / sqrt n at the true eta, the mean absolute error of an estimator that knew the signs of all
gaps. Published: scores Dir(1/2) with four maps of single classes (Berta et al., "Evaluating Lp calibration
errors", the best of their estimators at each size). Paper: models of the paper's experiment on its mixtures
in two dimensions. Five or more scores tell the features, so that the exact posterior is the frequency at the
scores; of three they do not where a model folds the plane, and the frequency is the mean posterior over the
nearest scores.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from importlib import util
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from scipy.spatial import cKDTree

from calibrant.estimators import resolve
from calibrant.estimators.canonical.softmax import cross_fitted_probabilities
from calibrant.estimators.canonical.variational import lower_bound
from calibrant.experiment import models
from calibrant.experiment.distributions import Mixture, rng_of
from calibrant.posterior.softmax import NORMS, CanonicalError, SoftmaxPosterior
from calibrant.posterior.softmax.probability_transfer import ProbabilityTransfer
from calibrant.score_data.simplex import Simplex

_spec = util.spec_from_file_location("canonical_test", Path(__file__).with_name("canonical_test.py"))
families = util.module_from_spec(_spec)
_spec.loader.exec_module(families)

# Repetitions by number of rows.
SIZES = {300: 200, 1000: 60, 10_000: 20}
CLASSES = (3, 5, 10)
WHERE_SIZES = {300: 40, 1000: 20, 10_000: 5}
# Number of rows that determine the true value.
LARGE = 200_000
# Scores and map of each family.
FAMILIES = {
    "right, flat": ("flat", "none"),
    "right": ("net", "none"),
    "pull": ("flat", "pull"),
    "too sure": ("net", "temp"),
    "too modest": ("net", "cold"),
    "vector": ("net", "vector"),
    "matrix": ("net", "matrix"),
    "neighbours": ("net", "pairs"),
    "first two": ("net", "top"),
    "local": ("flat", "local"),
    "slightly too sure": ("net", "small"),
    "forest": ("forest", "roots"),
    "dense matrix": ("half", "dense"),
    "to the next": ("half", "next"),
}
# Beyond what the blocks were made for.
HARD = ("dense matrix", "to the next")
PUBLISHED = {
    "none": ("half", "none"),
    "T = 2": ("half", "t2"),
    "T = .3": ("half", "t.3"),
    "sine": ("half", "sine"),
}
PUBLISHED_BEST = {3: (0.0589, 0.0308, 0.0102), 10: (0.0884, 0.0541, 0.0170)}
PUBLISHED_SIZES = {200: 60, 1069: 30, 10_000: 8}
# Of the paper's experiment: rows to learn from, and rows to measure with.
TRAINED_ON, MEASURED_ON = 300, {100: 10, 500: 10, 2000: 5, 10_000: 5}
# The default first; the others are slow on many rows.
NAMED, MANY = ("softmax", "variational", "variational:temperature", "dirichlet"), 2000
# Rows whose true error is taken, and nearest scores, where features with the same scores differ.
TRUTHS, NEAREST = 20_000, 64


def scores(kind, k, n, rng):
    """The families of the test, votes of 50 trees, and scores near the corners."""
    if kind == "forest":
        p = rng.dirichlet(np.full(k, 0.35), n)
        return rng.multinomial(50, p) / 50
    return rng.dirichlet(np.full(k, 0.5), n) if kind == "half" else families.scores(kind, k, n, rng)


def mapped(name, p):
    """Probabilities that a map makes of scores."""
    k = p.shape[1]
    log = np.log(np.maximum(p, 1e-300))
    if name == "none":
        return p
    if name in ("cold", "small", "t2", "t.3"):
        return families.softmax(log / {"cold": 1 / 1.3, "small": 1.06, "t2": 2, "t.3": 0.3}[name])
    if name == "top":
        order = np.argsort(-p, axis=1, kind="stable")
        first, second = order[:, :1], order[:, 1:2]
        given = 0.6 * np.take_along_axis(p, second, 1) * np.sin(4 * np.pi * np.take_along_axis(p, first, 1))
        eta = p.copy()
        np.put_along_axis(eta, first, np.take_along_axis(p, first, 1) + given, 1)
        np.put_along_axis(eta, second, np.take_along_axis(p, second, 1) - given, 1)
        return eta
    if name == "roots":
        root = np.sqrt(p)
        return 0.8 * p + 0.2 * root / root.sum(axis=1, keepdims=True)
    if name == "dense":
        matrix = np.eye(k) + 0.25 * np.random.default_rng(70 + k).standard_normal((k, k)) / np.sqrt(k)
        return families.softmax(np.maximum(log, np.log(1e-12)) @ matrix.T)
    if name == "next":
        return 0.85 * p + 0.15 * np.roll(p, 1, axis=1)
    if name == "sine":
        return families.softmax(log + 0.5 * np.sin(5 * log))
    return families.mapped(name, p)


def truths(kind, name, k):
    """The three errors (l2 squared), and the standard deviation of the best estimator of each for one row."""
    rng = rng_of("canonical truth", kind, name, k)
    p = scores(kind, k, min(LARGE, 20_000_000 // k), rng)
    eta = mapped(name, p)
    d = eta - p
    size, sign = np.abs(d), np.sign(d)
    found, spread = [], []
    for plug, slope in ((size, sign), (d * d, 2 * d), (eta * size, size + eta * sign)):
        each = plug.sum(axis=1)
        middle = (slope * eta).sum(axis=1)
        noise = (slope * slope * eta).sum(axis=1) - middle**2
        found.append(each.mean())
        spread.append(np.sqrt(max(each.var() + noise.mean(), 0.0)))
    return np.array(found), np.array(spread)


def one_cell(task):
    """Return values, ends of intervals (norms, repetitions, 3), truths and bounds."""
    kind, name, k, n, repetitions, seed = task
    rng = rng_of("canonical", kind, name, k, n, seed)
    truth, spread = truths(kind, name, k)
    found = np.empty((3, repetitions, 3))
    for r in range(repetitions):
        p = scores(kind, k, n, rng)
        error = CanonicalError.of(SoftmaxPosterior.of(Simplex.of(p, families.labels(mapped(name, p), rng))))
        for j, norm in enumerate(NORMS):
            low, high = error.interval(norm, 0.95)
            # The squares are compared: the root has no bound at 0.
            found[j, r] = np.array([error.value(norm), low, high]) ** (2 if norm == "l2" else 1)
    return found, truth, 0.798 * spread / np.sqrt(n)


def accuracy(pool, share, seed) -> None:
    """Print a table for each number of classes and rows, and one of all."""
    summary = []
    for k in CLASSES:
        for n, repetitions in SIZES.items():
            count = max(2, round(repetitions * share))
            tasks = [(*family, k, n, count, seed) for family in FAMILIES.values()]
            print(f"\n{k} classes, {n} rows, {count} samples; of l2 squared and mul error over bound\n")
            print("| family | truth | bound | MAE l1 | coverage | width | l2 | coverage | mul | coverage |")
            print("|---" * 10 + "|")
            rows = []
            for family, (found, truth, bound) in zip(FAMILIES, pool.map(one_cell, tasks), strict=True):
                off = np.abs(found[:, :, 0] - truth[:, None]).mean(axis=1)
                held = (found[:, :, 1] <= truth[:, None] + 1e-12) & (truth[:, None] <= found[:, :, 2])
                width = (found[:, :, 2] - found[:, :, 1]).mean(axis=1)
                rows.append((off, bound, held.mean(axis=1), width))
                over = ["-" if b == 0 else f"{o / b:.2f}" for o, b in zip(off, bound, strict=True)]
                cover = [f"{c:.3f}" for c in held.mean(axis=1)]
                print(
                    f"| {family} | {truth[0]:.4f} | {bound[0]:.4f} | {off[0]:.4f} | {cover[0]} "
                    f"| {width[0]:.4f} | {over[1]} | {cover[1]} | {over[2]} | {cover[2]} |",
                    flush=True,
                )
            summary.append((k, n, rows))
    print("\nMeans over families, and l1, l2 squared and mul over the bound, a mean of those with a gap\n")
    print("| classes | rows | bound | MAE | l1 | l2 | mul | calibrated reads | least coverage | width |")
    print("|---" * 10 + "|")
    for k, n, rows in summary:
        easy = [row for family, row in zip(FAMILIES, rows, strict=True) if family not in HARD]
        off, bound = (
            np.array([row[0] for row in easy]),
            np.array([row[1] for row in easy]),
        )
        gap = bound[:, 0] > 0
        ratio = off.mean(axis=0) / bound[gap].mean(axis=0)
        cover = min(float(row[2][0]) for row in rows)
        width = np.mean([row[3][0] for row in easy])
        print(
            f"| {k} | {n} | {bound[gap, 0].mean():.4f} | {off[:, 0].mean():.4f} | {ratio[0]:.2f} "
            f"| {ratio[1]:.2f} | {ratio[2]:.2f} | {off[~gap, 0].mean():.4f} | {cover:.3f} | {width:.4f} |",
            flush=True,
        )


def published(pool, share) -> None:
    """Print the errors on the published setting."""
    print("\nScores Dir(1/2), four maps: mean absolute error of l1\n")
    print("| classes | rows | ours | best published |\n|---|---|---|---|")
    for k, best in PUBLISHED_BEST.items():
        for (n, repetitions), other in zip(PUBLISHED_SIZES.items(), best, strict=True):
            tasks = [(*f, k, n, max(2, round(repetitions * share)), "published") for f in PUBLISHED.values()]
            off = [np.abs(found[0, :, 0] - truth[0]).mean() for found, truth, _ in pool.map(one_cell, tasks)]
            print(f"| {k} | {n} | {np.mean(off):.4f} | {other:.4f} |", flush=True)


def frequencies(p, posterior):
    """The frequencies of the classes at the first scores: mean posteriors over the nearest ones."""
    log = np.log(np.maximum(p, 1e-9))
    log = log[:, :-1] - log[:, -1:]
    # Whitened, so that scores of little spread along one direction are told apart along it too.
    at = np.linalg.solve(np.linalg.cholesky(np.cov(log.T)), log.T).T
    near = cKDTree(at).query(at[:TRUTHS], NEAREST)[1]
    return posterior[near].mean(axis=1)


def paper_cell(task):
    """Return the true l1 error, by how much the estimators miss it, and how often the interval holds it."""
    k, seed, family, share = task
    mixture = Mixture(k, 2, seed)
    rng = rng_of("canonical paper", *task)
    model = models.fit(models.FAMILIES[family], *mixture.sample(TRAINED_ON, rng), seed=seed)
    features, labels = mixture.sample(LARGE, rng)
    p = models.scores(model, features, k)
    eta = mixture.posterior(features)
    if k == 3 and family != "logistic":
        eta = frequencies(p, eta)
    truth = np.abs(eta - p[: len(eta)]).sum(axis=1).mean()
    off, held = np.zeros((len(MEASURED_ON), len(NAMED))), np.zeros((len(MEASURED_ON), 2))
    off[[n > MANY for n in MEASURED_ON], 1:] = np.nan
    for i, (n, repetitions) in enumerate(MEASURED_ON.items()):
        count = max(1, round(repetitions * share))
        for _ in range(count):
            some = rng.integers(0, LARGE, n)
            rows = Simplex.of(p[some], labels[some])
            fits = [resolve(name, vectors=True).fit(rows) for name in (NAMED if n <= MANY else NAMED[:1])]
            off[i, : len(fits)] += np.abs(np.array([fit.error("l1") for fit in fits]) - truth) / count
            low, high = fits[0].canonical.interval("l1", 0.95)
            held[i] += np.array([low <= truth <= high, high - low]) / count
    return truth, off, held


def paper(pool, share) -> None:
    """Print the errors on the paper's mixtures."""
    print("\nThe paper's mixtures in two dimensions: mean absolute error of l1\n")
    print(f"| classes | rows | {' | '.join(NAMED)} | mean truth | coverage | width |")
    print("|---" * (5 + len(NAMED)) + "|")
    for k in (3, 5, 7):
        tasks = [(k, seed, f, share) for seed in range(3) for f in ("logistic", "naive-bayes", "svc")]
        truth, off, held = zip(*pool.map(paper_cell, tasks), strict=True)
        means = (np.mean(each, axis=0) for each in (off, held))
        for n, row, (hit, width) in zip(MEASURED_ON, *means, strict=True):
            numbers = " | ".join("-" if np.isnan(value) else f"{value:.3f}" for value in row)
            print(f"| {k} | {n} | {numbers} | {np.mean(truth):.3f} | {hit:.2f} | {width:.3f} |", flush=True)


def true_where(kind, name, k):
    """Who truly takes how much from whom, and the true gap where each class is predicted."""
    p = scores(kind, k, LARGE, rng_of("canonical truth", kind, name, k))
    d = mapped(name, p) - p
    lost, won, size = np.maximum(-d, 0), np.maximum(d, 0), np.abs(d).sum(axis=1)
    taken = (lost / np.maximum(size / 2, 1e-300)[:, None]).T @ won / len(p)
    first = p.argmax(axis=1)
    gap = np.bincount(first, size, minlength=k) / np.maximum(np.bincount(first, minlength=k), 1)
    return taken - taken.T, gap


def where_cell(task):
    """Return errors and standard deviations of what each pair takes (repetitions, pairs), and of gaps."""
    kind, name, k, n, repetitions, seed = task
    rng = rng_of("canonical where", kind, name, k, n, seed)
    taken, gap = true_where(kind, name, k)
    above = np.triu_indices(k, 1)
    pairs, gaps = np.empty((3, repetitions, above[0].size)), np.empty((2, repetitions, k))
    for r in range(repetitions):
        p = scores(kind, k, n, rng)
        error = CanonicalError.of(SoftmaxPosterior.of(Simplex.of(p, families.labels(mapped(name, p), rng))))
        found = ProbabilityTransfer.of(error)
        pairs[:, r] = found.net[above], found.spread[above], taken[above]
        gaps[:, r] = found.gap - gap, found.gap_spread
    return pairs, gaps


def where(pool, share, seed) -> None:
    """Print how well it is told which classes take probability from which, and where the gap is."""
    print(
        "\nProbability transfer, and the gap where each class is predicted: 1.96 standard deviations each\n"
    )
    print("| classes | rows | family | MAE of pairs | coverage | told | of these right | coverage of gaps |")
    print("|---" * 8 + "|")
    for k in CLASSES:
        for n, repetitions in WHERE_SIZES.items():
            tasks = [
                (*family, k, n, max(1, round(repetitions * share)), seed) for family in FAMILIES.values()
            ]
            for family, (pairs, gaps) in zip(FAMILIES, pool.map(where_cell, tasks), strict=True):
                found, spread, truth = pairs
                held = np.abs(found - truth) <= 1.96 * spread + 1e-12
                told = np.abs(found) > 1.96 * spread
                right = f"{(found * truth > 0)[told].mean():.2f}" if told.any() else "-"
                gap = np.abs(gaps[0]) <= 1.96 * gaps[1] + 1e-12
                print(
                    f"| {k} | {n} | {family} | {np.abs(found - truth).mean():.4f} | {held.mean():.3f} "
                    f"| {told.mean():.2f} | {right} | {gap.mean():.3f} |",
                    flush=True,
                )


def many_cell(task):
    """Return the lower bounds of some samples, and the truth."""
    kind, name, k, n, repetitions = task
    rng = rng_of("canonical many", kind, name, k, n)
    truth = truths(kind, name, k)[0][0]
    found = []
    for _ in range(repetitions):
        p = scores(kind, k, n, rng)
        rows = Simplex.of(p, families.labels(mapped(name, p), rng))
        found.append(lower_bound(rows, cross_fitted_probabilities(rows), "l1", 0.95))
    return np.array(found), truth


def many(pool, share) -> None:
    """Print how the bound that always holds does with many classes."""
    print(
        "\nOne-sided 95 % lower bound of l1\n\n"
        "| classes | rows | family | truth | bound | valid |\n|---|---|---|---|---|---|"
    )
    for k, n, repetitions in ((100, 10_000, 10), (1000, 10_000, 2)):
        some = ("right", "pull", "too sure", "vector")
        tasks = [(*FAMILIES[family], k, n, max(1, round(repetitions * share))) for family in some]
        for family, (found, truth) in zip(some, pool.map(many_cell, tasks), strict=True):
            valid = np.mean(found <= truth + 1e-12)
            print(f"| {k} | {n} | {family} | {truth:.4f} | {found.mean():.4f} | {valid:.2f} |", flush=True)


def speed(share) -> None:
    """Print seconds and memory of one estimate at each size."""
    print("\n| classes | rows | seconds | lower bound | peak MB |\n|---|---|---|---|---|")
    for k, n in ((10, 10_000), (10, 100_000), (10, 1_000_000), (100, 10_000), (1000, 50_000)):
        if share < 1 and k * n > 1e5:
            continue
        rng = rng_of("canonical speed", k, n)
        p = scores("net", k, n, rng).astype(np.float32 if k > 100 else np.float64)
        y = families.labels(mapped("temp", p.astype(np.float64)), rng)
        start = time.perf_counter()
        rows = Simplex.of(p, y)
        CanonicalError.of(SoftmaxPosterior.of(rows))
        middle = time.perf_counter()
        cross_fitted_probabilities(rows)
        end, peak = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"| {k} | {n} | {middle - start:.2f} | {end - middle:.2f} | {peak:.0f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--share", type=float, default=1.0, help="of the repetitions")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", default="confirm", help="any name; the constants were set at 'develop'")
    parser.add_argument("--parts", nargs="+", default=["accuracy", "published", "paper", "many"])
    asked = parser.parse_args()
    started = time.perf_counter()
    with ProcessPoolExecutor(asked.workers) as pool:
        if "accuracy" in asked.parts:
            accuracy(pool, asked.share, asked.seed)
        if "published" in asked.parts:
            published(pool, asked.share)
        if "paper" in asked.parts:
            paper(pool, asked.share)
        if "where" in asked.parts:
            where(pool, asked.share, asked.seed)
        if "many" in asked.parts:
            many(pool, asked.share)
    if "speed" in asked.parts:
        speed(asked.share)
    print(f"\n{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()

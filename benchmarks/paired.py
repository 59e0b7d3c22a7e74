"""How often `calibrant.compare` sees a difference where there is none.

    python benchmarks/paired.py               # 2000 repetitions a cell, some 40 minutes on two cores
    python benchmarks/paired.py --share 0.05
    python benchmarks/paired.py --mode unpaired own-outcomes sketches --share 0.1

Both models of a pair have the same true calibration error, except in the pair "unequal"; in some, the gap of
one is spread over all scores and that of the other lives in one place. Printed: the share of p-values below
5 %, of intervals that hold the true difference, and the correlation of the estimates, with standard errors.

The modes: "rows" scores both models on the same labels. "unpaired" draws a sample for each, of different
sizes, and "sketches" compares their sums. In "own-outcomes" both models answer the same questions, and
whether they are right depends on the question: models of one question are correlated. With "clusters", a
question has 1 to 10 answers of each model, half of which repeat the scores of another one.
"""

from __future__ import annotations

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from unittest.mock import patch

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from scipy.special import ndtr

import calibrant
from calibrant.experiment.distributions import rng_of
from calibrant.experiment.families import LOCAL
from calibrant.settings import TEST

SIZES = (200, 1000, 5000)
OTHER_SIZES = (300, 1000, 5000)
# Share of the variance of what makes an answer right that is due to the question.
SHARED = 0.5
LOCAL_SIZES = (300, 2000)


def bent(chance, size):
    """Scores too low on average, and too high, by the same amount."""
    return (1 - size) * chance + size * chance**2, (1 - size) * chance + size * np.sqrt(chance)


def opposite(rng, n):
    """Two maps of one probability, with gaps of opposite sign."""
    chance = rng.random(n)
    return chance, *bent(chance, 0.3)


def alike(rng, n):
    """Two models that see the same signal, each with a noise of its own, both too high."""
    chance = rng.random(n)
    flip = rng.random((2, n)) < 0.1
    other = rng.random((2, n))
    seen = np.where(flip, other, chance)
    # With one row in ten replaced by noise, the probability given the score is .9 c + .1 / 2.
    true = 0.9 * seen + 0.05
    return chance, *(true + 0.05 * np.sin(np.pi * true))


def calibrated(rng, n):
    """Two calibrated models that see different parts of the signal."""
    u, v = rng.random((2, n))
    return (u + v) / 2, (u + 0.5) / 2, (v + 0.5) / 2


def apart(rng, n):
    """A calibrated model beside a slightly better informed calibrated one."""
    u, v = rng.random((2, n))
    return 0.8 * u + 0.2 * v, 0.8 * u + 0.1, 0.8 * u + 0.2 * v


def unequal(rng, n):
    """A model with a calibration error of .05 beside a calibrated one."""
    chance = rng.random(n)
    return chance, bent(chance, 0.3)[0], chance


@cache
def spread(name):
    """Slope k with which scores c + k c (1 - c) have, over probabilities c, the error of a local family."""
    family = LOCAL[name]
    _, chance = family.pairs(family.quantile((np.arange(200_000) + 0.5) / 200_000))
    return family.truth / np.mean(chance * (1 - chance))


def beside_spread(name):
    """Make pairs of a model with a gap at all scores and a model with local miscalibration."""

    def pair(rng, n):
        score, chance = LOCAL[name].sample(rng, n)
        return chance, chance + spread(name) * chance * (1 - chance), score

    return pair


@cache
def leaves():
    """Return frequency and true rate of seventy leaves, their scores, and how far a smooth model must go."""
    rng = rng_of("paired", "leaves")
    mass = rng.gamma(0.8, 1.0, 70)
    mass, effect = mass / mass.sum(), rng.normal(0, 1.2, 70)
    node, weight = np.polynomial.hermite_e.hermegauss(60)
    chance = 1 / (1 + np.exp(-effect[:, None] - node))
    by_leaf, by_signal = chance @ (weight / weight.sum()), mass @ chance
    score = np.clip(by_leaf + rng.normal(0, 0.08, 70), 0.01, 0.99)
    error = mass @ np.abs(by_leaf - score)
    # The other model is off by k q (1 - q) at its true rate q.
    return mass, effect, score, error / ((weight / weight.sum()) @ (by_signal * (1 - by_signal)))


def leaf(rng, n):
    """A tree of seventy leaves, each with a gap of its own, beside a smooth gap of the same error."""
    mass, effect, score, slope = leaves()
    which, signal = rng.choice(mass.size, n, p=mass), rng.standard_normal(n)
    rate = (mass / (1 + np.exp(-effect - signal[:, None]))).sum(axis=1)
    return 1 / (1 + np.exp(-effect[which] - signal)), rate + slope * rate * (1 - rate), score[which]


PAIRS = {f.__name__: f for f in (opposite, alike, calibrated, apart)}
LOCAL_PAIRS = {f"spread, {name}": beside_spread(name) for name in ("step", "top", "certain")}
LEAF_PAIRS, LEAF_SIZES = {"spread, leaves": leaf}, (300, 1000, 3000, 10_000)


# Pairs of the modes other than "rows", and the true error of the second model minus that of the first.
OTHER_PAIRS = {"opposite": 0.0, "calibrated": 0.0, "unequal": -0.05, "spread, step": 0.0, "spread, top": 0.0}
OTHER_MODES = ("unpaired", "unpaired clusters", "sketches", "own-outcomes", "own-outcomes clusters")
EVERY_PAIR = PAIRS | LOCAL_PAIRS | LEAF_PAIRS | {"unequal": unequal}


def answers(rng, name, n, mode):
    """Yield label, score and question of each row of each model of a pair."""
    own, clusters = mode.startswith("own"), mode.endswith("clusters")
    for model, rows in enumerate((n, n) if own else (n, 2 * n // 3)):
        count = round(rows / 5.5) if clusters else rows
        if not (own and model):  # models with outcomes of their own answer the same questions
            by_question, signal = np.array(EVERY_PAIR[name](rng, count)), rng.standard_normal(count)
        question = np.repeat(np.arange(count), rng.integers(1, 11, count)) if clusters else np.arange(count)
        by_row = by_question[:, question]
        if clusters:
            differs = np.flatnonzero(rng.random(len(question)) < 0.5)
            by_row[:, differs] = np.array(EVERY_PAIR[name](rng, len(differs)))
        noise = np.sqrt(SHARED) * signal[question] + np.sqrt(1 - SHARED) * rng.standard_normal(len(question))
        yield (ndtr(noise) < by_row[0]).astype(int), np.clip(by_row[1 + model], 0, 1), question


def compared(rng, name, n, mode):
    """Compare a pair once; return the difference."""
    options = {"rng": int(rng.integers(2**32)), "labels": (0, 1)}
    if mode == "rows":
        chance, *scores = EVERY_PAIR[name](rng, n)
        outcome = (rng.random(n) < chance).astype(int)
        models = {model: np.clip(score, 0, 1) for model, score in zip("ab", scores, strict=True)}
        return calibrant.compare(outcome, models, **options).differences["b"]
    outcome, models, cluster = (
        dict(zip("ab", each, strict=True)) for each in zip(*answers(rng, name, n, mode), strict=True)
    )
    if mode == "sketches":
        sums = {k: calibrant.Sketch(labels=(0, 1)).update(outcome[k], models[k]) for k in outcome}
        return calibrant.compare(sums, rng=options["rng"]).differences["b"]
    if mode.endswith("clusters"):
        options |= {"cluster": cluster, "paired": mode.startswith("own")}
    return calibrant.compare(outcome, models, **options).differences["b"]


# Calibrated data, which nothing here looks at, are simulated as little as can be.
@patch.dict(vars(TEST), data_sets=2)
def one_cell(task):
    name, n, repetitions, mode = (*task, "rows")[:4]
    rng, truth = rng_of("paired", *task), OTHER_PAIRS.get(name, 0.0)
    alarms, held, rho = [], [], []
    for _ in range(repetitions):
        found = compared(rng, name, n, mode)
        alarms.append(found.p_value < 0.05)
        held.append(found.low <= truth <= found.high)
        rho.append(found.correlation)
    return np.mean(alarms), np.mean(held), np.mean(rho)


def tasks_of(modes, share):
    """Return pair, number of rows, repetitions and mode of each cell."""
    count, tasks = max(20, round(2000 * share)), []
    if "rows" in modes:
        tasks += [(name, n, count) for name in PAIRS for n in SIZES]
        tasks += [(name, n, count) for name in LOCAL_PAIRS for n in LOCAL_SIZES]
        tasks += [(name, n, count) for name in LEAF_PAIRS for n in LEAF_SIZES]
    others = [mode for mode in OTHER_MODES if mode.split()[0] in modes]
    # Half as many of the largest samples, which take the longest.
    return tasks + [
        (name, n, count // (1 + (n == max(OTHER_SIZES))), mode)
        for n in OTHER_SIZES
        for mode in others
        for name in OTHER_PAIRS
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--share", type=float, default=1.0, help="of the repetitions")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="pairs whose name holds this")
    parser.add_argument("--sizes", type=int, nargs="*", help="only these numbers of rows")
    kinds = ["rows", *dict.fromkeys(mode.split()[0] for mode in OTHER_MODES)]
    parser.add_argument("--mode", nargs="+", choices=kinds, default=["rows"])
    arguments = parser.parse_args()
    started = time.perf_counter()
    tasks = [task for task in tasks_of(arguments.mode, arguments.share) if arguments.only in task[0]]
    tasks = [task for task in tasks if not arguments.sizes or task[1] in arguments.sizes]
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for task, (alarms, held, rho) in zip(tasks, pool.map(one_cell, tasks), strict=True):
            name, n, count, mode = (*task, "rows")[:4]
            errors = [np.sqrt(max(p * (1 - p), 0.01 / count) / count) for p in (alarms, held)]
            print(
                f"{mode:21} {name:15} n {n:5}  alarms {alarms:.3f} ({errors[0]:.3f})  "
                f"covers {held:.3f} ({errors[1]:.3f})  correlation {rho:+.2f}",
                flush=True,
            )
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()

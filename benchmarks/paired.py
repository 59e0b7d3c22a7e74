"""How often `calibrant.compare` sees a difference where there is none.

    python benchmarks/paired.py               # 2000 repetitions a cell, some 40 minutes on two cores
    python benchmarks/paired.py --share 0.05

Both models of a pair have the same true calibration error and are scored on the same labels; in some, the
gap of one is spread over all scores and that of the other lives in one place. Printed: the share of p-values
below 5 %, of intervals that hold zero, and the correlation of the estimates.
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

import calibrant
from calibrant.experiment.distributions import rng_of
from calibrant.experiment.families import LOCAL
from calibrant.settings import TEST

SIZES = (200, 1000, 5000)
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


# Calibrated data, which nothing here looks at, are simulated as little as can be.
@patch.dict(vars(TEST), data_sets=2)
def one_cell(task):
    name, n, repetitions = task
    rng = rng_of("paired", *task)
    alarms, held, rho = [], [], []
    for _ in range(repetitions):
        chance, *scores = (PAIRS | LOCAL_PAIRS | LEAF_PAIRS)[name](rng, n)
        outcome = (rng.random(n) < chance).astype(int)
        models = {model: np.clip(score, 0, 1) for model, score in zip("ab", scores, strict=True)}
        answer = calibrant.compare(outcome, models, rng=int(rng.integers(2**32)), labels=(0, 1))
        found = answer.differences["b"]
        alarms.append(found.p_value < 0.05)
        held.append(found.low <= 0 <= found.high)
        rho.append(found.correlation)
    return np.mean(alarms), np.mean(held), np.mean(rho)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--share", type=float, default=1.0, help="of the repetitions")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="pairs whose name holds this")
    arguments = parser.parse_args()
    started = time.perf_counter()
    count = max(20, round(2000 * arguments.share))
    tasks = [(name, n, count) for name in PAIRS for n in SIZES]
    tasks += [(name, n, count) for name in LOCAL_PAIRS for n in LOCAL_SIZES]
    tasks += [(name, n, count) for name in LEAF_PAIRS for n in LEAF_SIZES]
    tasks = [task for task in tasks if arguments.only in task[0]]
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for task, (alarms, held, rho) in zip(tasks, pool.map(one_cell, tasks), strict=True):
            error = np.sqrt(max(alarms * (1 - alarms), 0.01 / count) / count)
            print(
                f"{task[0]:15} n {task[1]:5}  alarms {alarms:.3f} ({error:.3f})  holds zero {held:.3f}  "
                f"correlation {rho:+.2f}",
                flush=True,
            )
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()

"""How often `calibrant.compare` sees a difference where there is none.

    python benchmarks/paired.py               # 1000 repetitions a cell, some 10 minutes on two cores
    python benchmarks/paired.py --share 0.05

Both models of a pair have the same true calibration error and are scored on the same labels. Printed:
the share of p-values below 5 %, of intervals that hold zero, and the correlation of the estimates.
"""

from __future__ import annotations

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from calibrant.estimators import Bayes
from calibrant.evidence import Sample
from calibrant.experiment.distributions import rng_of
from calibrant.inference import Estimate, Null, interval, null
from calibrant.inference import comparison as paired
from calibrant.inputs import predictions
from calibrant.questions import Question, named

BLANK = Estimate(0, 0, 0, 0.95, Null(0), 1, 0, 0, 0, "class", "bayes")


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


PAIRS = {f.__name__: f for f in (opposite, alike, calibrated, apart)}


def one_cell(task):
    name, n, repetitions = task
    rng = rng_of("paired", *task)
    alarms, held, rho = [], [], []
    for _ in range(repetitions):
        chance, *scores = PAIRS[name](rng, n)
        outcome = rng.random(n) < chance
        estimates, added = [], []
        for score in scores:
            sample = Sample(np.clip(score, 0, 1), outcome)
            posterior = Bayes().fit(sample).posterior
            value = float(null.error(posterior, "l1")[0])
            low, high = interval.interval(posterior, n, value, norm="l1", level=0.95, rng=rng)
            estimates.append(replace(BLANK, value=value, low=low, high=high))
            data = predictions(outcome, np.clip(score, 0, 1))
            added.append(paired.contributions(Question.of(data, named("class"))))
        found = paired.difference(("a", "b"), tuple(estimates), tuple(added), None)
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
    arguments = parser.parse_args()
    started = time.perf_counter()
    count = max(20, round(1000 * arguments.share))
    tasks = [(name, n, count) for name in PAIRS for n in (200, 1000, 5000)]
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for task, (alarms, held, rho) in zip(tasks, pool.map(one_cell, tasks), strict=True):
            error = np.sqrt(max(alarms * (1 - alarms), 0.01 / count) / count)
            print(
                f"{task[0]:11} n {task[1]:5}  alarms {alarms:.3f} ({error:.3f})  holds zero {held:.3f}  "
                f"correlation {rho:+.2f}",
                flush=True,
            )
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()

"""Size and power of the test of canonical calibration, beside the squared kernel calibration error.

    python benchmarks/canonical_test.py               # size: 4000 repetitions; power: 400
    python benchmarks/canonical_test.py --share 0.05  # a twentieth of them

Size: calibrated models, flat scores and those of a network, few and many classes, counts, weights and few
distinct vectors, and sets that are put together of simulated parts. Power: labels that follow some of the
way (the strength, times `--strength`) from the scores to another map of them. Beside ours a test by the
kernel error of all pairs of rows (Widmann et al. 2019), whose time grows with the square of the rows. Both
have 199 simulated sets of labels.
"""

from __future__ import annotations

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from calibrant.experiment.distributions import rng_of
from calibrant.inference import score_test
from calibrant.posterior.softmax.blocks import Blocks
from calibrant.score_data.simplex import Simplex

SIMS = 199
SIZES = [
    *(("net", k, n) for k, n in ((3, 300), (10, 300), (10, 1000), (30, 500))),
    *(("flat", k, n) for k, n in ((3, 300), (10, 1000))),
    *(("counts", 3, 300), ("weights", 3, 300), ("few", 3, 300), ("zeros", 5, 300), ("parts", 10, 1000)),
]
# Scores and how far the labels follow the map.
STRENGTHS = {
    "temp": ("net", 0.3),
    "vector": ("net", 0.3),
    "matrix": ("net", 0.3),
    "pairs": ("net", 0.3),
    "pull": ("flat", 0.4),
    "local": ("flat", 0.3),
}
POWERS = [(name, k, n) for k, n in ((10, 1000), (3, 300)) for name in STRENGTHS]


def softmax(z):
    z = np.exp(z - z.max(axis=1, keepdims=True))
    return z / z.sum(axis=1, keepdims=True)


def scores(kind, k, n, rng):
    """Flat on the simplex; of a network, most rows near a corner; in tenths; of 20 trees."""
    if kind == "flat":
        return rng.dirichlet(np.ones(k), n)
    z = 1.5 * rng.standard_normal((n, k))
    z[np.arange(n), rng.integers(0, k, n)] += 4 * np.sqrt(rng.random(n))
    p = softmax(z)
    if kind == "few":
        return p[rng.integers(0, 20, n)]
    return rng.multinomial(20, p) / 20 if kind == "zeros" else p


def mapped(name, p):
    """Probabilities that a map makes of scores."""
    n, k = p.shape
    log, rng = np.log(np.maximum(p, 1e-300)), np.random.default_rng(7 + k)
    slope, shift = rng.uniform(0.6, 1.2, k), rng.normal(0, 0.4, k)
    matrix = 0.85 * np.eye(k) + rng.normal(0, 0.25 / np.sqrt(k), (k, k))
    if name == "temp":
        return softmax(log / 1.6)
    if name == "vector":
        return softmax(log * slope + shift)
    if name == "matrix":
        return softmax((log - log.mean(axis=1, keepdims=True)) @ matrix.T + rng.normal(0, 0.2, k))
    if name == "pairs":
        even = k - k % 2
        eta = p.copy()
        eta[:, :even] = 0.75 * p[:, :even] + 0.25 * p[:, :even].reshape(n, -1, 2)[:, :, ::-1].reshape(n, -1)
        return eta
    if name == "pull":
        return 0.7 * p + 0.3 / k
    if name == "local":
        given = 0.5 * p * np.sin(2 * np.pi * p) ** 2 * (np.arange(k) % 2 == 0)
        return p - given + np.roll(given, 1, axis=1)
    raise KeyError(name)


def labels(eta, rng):
    return (rng.random((len(eta), 1)) >= eta.cumsum(axis=1)[:, :-1]).sum(axis=1)


def all_pairs(p, y, rng, sims):
    """p-value by the kernel error of all pairs of rows."""
    apart = np.sqrt(np.maximum((p**2).sum(axis=1)[:, None] + (p**2).sum(axis=1) - 2 * p @ p.T, 0))
    near = np.exp(-apart / np.median(apart[apart > 0])).astype(np.float32)
    np.fill_diagonal(near, 0)
    found = []
    for each in [y, *(labels(p, rng) for _ in range(sims))]:
        rest = -p.astype(np.float32)
        rest[np.arange(len(p)), each] += 1
        found.append(float((rest * (near @ rest)).sum()))
    return (1 + np.count_nonzero(np.array(found[1:]) >= found[0])) / (1 + sims)


def p_values(p, y, rng, weight=None):
    rows = Simplex.of(p, y, weight, counts=weight is None)
    found = score_test.p_value(rows, Blocks.of(rows), rng, SIMS)
    return found.p_value, found.by_class[0]


def size_cell(task):
    """Return the size of ours, and of the first class by itself."""
    kind, k, n, repetitions = task
    rng, default_notion, found = (
        rng_of("canonical size", *task),
        (score_test.SIMULATED, score_test.MIN_BLOCK),
        [],
    )
    if kind == "parts":
        # A quarter of the simulations, in as many parts as ten thousand rows have.
        score_test.SIMULATED, score_test.MIN_BLOCK = n * k * SIMS // 4, 8
    for _ in range(repetitions):
        p, weight = scores(kind, k, n, rng), None
        if kind == "weights":
            weight = rng.lognormal(0, 1, n)
        y = labels(p, rng)
        if kind == "counts":
            # Each repetition has a label of its own.
            p, y, weight = np.repeat(p, 3, axis=0), labels(np.repeat(p, 3, axis=0), rng), np.ones(3 * n, int)
        found.append(p_values(p, y, rng, weight))
    score_test.SIMULATED, score_test.MIN_BLOCK = default_notion
    return np.mean(np.array(found) <= 0.05, axis=0)


def power_cell(task):
    """Return the power of ours, and of the kernel error of all pairs, and the l1 error."""
    name, k, n, times, repetitions = task
    kind, strength = STRENGTHS[name]
    strength *= times
    rng = rng_of("canonical power", *task)
    found, error = [], []
    for _ in range(repetitions):
        p = scores(kind, k, n, rng)
        eta = (1 - strength) * p + strength * mapped(name, p)
        y = labels(eta, rng)
        error.append(np.abs(eta - p).sum(axis=1).mean())
        found.append((p_values(p, y, rng)[0], all_pairs(p, y, rng, SIMS)))
    return *np.mean(np.array(found) <= 0.05, axis=0), np.mean(error)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--share", type=float, default=1.0, help="of the repetitions")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--strength", type=float, default=0.65, help="of the gaps, as a factor")
    parser.add_argument("--no-size", action="store_true", help="power only")
    arguments = parser.parse_args()
    sized, powered = (max(10, round(count * arguments.share)) for count in (4000, 400))
    started = time.perf_counter()
    with ProcessPoolExecutor(arguments.workers) as pool:
        tasks = [] if arguments.no_size else [(*cell, sized) for cell in SIZES]
        for task, (ours, first) in zip(tasks, pool.map(size_cell, tasks), strict=True):
            off = np.sqrt(ours * (1 - ours) / sized)
            print(
                f"size   {task[0]:8} K {task[1]:3} n {task[2]:5}  ours {ours:.4f} ({off:.4f})  "
                f"first class {first:.4f}",
                flush=True,
            )
        tasks = [(*cell, arguments.strength, powered) for cell in POWERS]
        for task, (ours, pairs, error) in zip(tasks, pool.map(power_cell, tasks), strict=True):
            off = np.sqrt(max(ours * (1 - ours), 0.25 / powered) / powered)
            print(
                f"power  {task[0]:8} K {task[1]:3} n {task[2]:5}  l1 {error:.3f}  "
                f"ours {ours:.3f} ({off:.3f})  SKCE of all pairs {pairs:.3f}"
                f"{'  BEHIND' if ours < pairs else ''}",
                flush=True,
            )
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()

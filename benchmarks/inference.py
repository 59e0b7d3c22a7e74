"""What the default estimate and its interval, null and test cost.

    python benchmarks/inference.py
    python benchmarks/inference.py --classes 1000

The estimate is compared with one sort of the scores in the same run (at most three times that is asked
for, at a million rows); `estimate` against a second at 1e5 rows and ten at 1e7. With `--classes` the
class-wise notion is asked of that many, from a sketch and from rows: seconds of one core, and what each
adds to the largest memory of the process.
"""

from __future__ import annotations

import argparse
import os
import resource
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import calibrant


def timed(function, rounds):
    function()
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        function()
        taken.append(time.perf_counter() - start)
    return float(np.median(taken))


def measured(function):
    """Seconds of one core, and how many MiB the largest memory of the process grew by."""
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    function()
    taken = time.process_time() - start
    return taken, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**10


def network(n, classes, temperature, rng):
    """Labels, and the scores of a network that is overconfident by a temperature, in single precision."""
    score = np.empty((n, classes), dtype=np.float32)
    label = np.empty(n, dtype=np.intp)
    often = rng.standard_normal(classes)
    for first in range(0, n, 500):
        part = slice(first, min(first + 500, n))
        logit = 3 * rng.standard_normal((part.stop - first, classes)) + often
        logit -= logit.max(axis=1, keepdims=True)
        edge = np.cumsum(np.exp(logit), axis=1)
        label[part] = (rng.random((len(edge), 1)) * edge[:, -1:] >= edge[:, :-1]).sum(axis=1)
        sharp = np.exp(temperature * logit)
        score[part] = sharp / sharp.sum(axis=1, keepdims=True)
    return label, score


def many(n, classes) -> None:
    for temperature in (1.0, 1.3):
        label, score = network(n, classes, temperature, np.random.default_rng(0))
        held = f"{n:,} x {classes} scores ({score.nbytes / 2**20:.0f} MiB), temperature {temperature:g}"
        sketch = calibrant.Sketch("classwise", labels=range(classes)).update(label, score)
        steps = {
            "estimate of a sketch": lambda sketch=sketch: sketch.estimate(rng=0),
            "assess and page of a sketch": lambda sketch=sketch: sketch.assess(rng=0).html(),
            "estimate of rows": lambda label=label, score=score: calibrant.estimate(
                label, score, notion="classwise", rng=0, labels=range(classes)
            ),
        }
        for name, step in steps.items():
            taken, most = measured(step)
            print(f"{held}: {name} {taken:.0f} s of one core, {most:.0f} MiB more", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--classes", type=int, help="ask the class-wise notion of so many")
    parser.add_argument("--rows", type=int, default=50_000)
    given = parser.parse_args()
    if given.classes is not None:
        many(given.rows, given.classes)
        return
    rng = np.random.default_rng(0)
    for n, rounds in ((10**4, 9), (10**5, 9), (10**6, 7), (10**7, 3)):
        score = rng.random(n)
        outcome = rng.random(n) < score**1.05
        sort = timed(lambda score=score: np.sort(score), rounds)
        auto = timed(lambda score=score, outcome=outcome: calibrant.ece(outcome, score), rounds)
        whole = timed(
            lambda score=score, outcome=outcome: calibrant.estimate(outcome, score, rng=0), min(rounds, 3)
        )
        print(
            f"n {n:9,}: sort {1e3 * sort:8.1f} ms, auto {1e3 * auto:7.1f} ms ({auto / sort:.2f} sorts), "
            f"estimate with interval, null and test {whole:.3f} s",
            flush=True,
        )
    n, classes = 10**4, 10
    score = rng.dirichlet(np.ones(classes), n)
    label = (score.cumsum(axis=1)[:, :-1] < rng.random((n, 1))).sum(axis=1)
    groups = rng.integers(0, 3, n)
    whole = timed(lambda: calibrant.estimate(label, score, notion="classwise", rng=0), 3)
    page = timed(lambda: calibrant.assess(label, score, groups=groups, rng=0).html(), 1)
    print(f"{n:,} x {classes}: class-wise estimate {whole:.2f} s, assess with groups and page {page:.2f} s")


if __name__ == "__main__":
    main()

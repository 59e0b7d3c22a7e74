"""What the default estimate and its interval, null and test cost.

    python benchmarks/inference.py

The estimate is held against one sort of the scores in the same run (at most three times that is asked
for, at a million rows); `estimate` against a second at 1e5 rows and ten at 1e7.
"""

from __future__ import annotations

import os
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


def main() -> None:
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
            f"estimate with interval, null and test {whole:.2f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()

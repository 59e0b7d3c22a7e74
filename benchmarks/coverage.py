"""How often the interval of `calibrant.estimate` holds the true error.

    python benchmarks/coverage.py               # every cell, some 45 minutes on two cores
    python benchmarks/coverage.py --share 0.05  # a twentieth of the repetitions

A cell is a family whose true error is known exactly (calibrant.experiment.families), the size of its
gap (full, three tenths, none), a number of rows and a notion. Printed for each: coverage with its
standard error, misses on each side, mean width and mean estimate.
"""

from __future__ import annotations

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from calibrant.estimators import Bayes
from calibrant.evidence import Sample
from calibrant.experiment.distributions import rng_of
from calibrant.experiment.families import EXACT, Dirichlet
from calibrant.inference import estimate as inference
from calibrant.inference import interval, null
from calibrant.inputs import predictions
from calibrant.posterior import posterior_of
from calibrant.questions import Question, named

LEVEL = 0.95
SIZES = {100: 2000, 500: 2000, 2000: 2000, 10_000: 1000}
LOW, HIGH = 0.93, 0.985
CALIBRATED = ("power", "flat", "square")  # one for each distribution of the scores


def cells() -> list[tuple[str, str, float, int, int]]:
    found = []
    for n, repetitions in SIZES.items():
        for name in EXACT:
            factors = (1.0, 0.3, 0.0) if name in CALIBRATED else (1.0, 0.3)
            found += [(name, "class", factor, n, repetitions) for factor in factors]
        for notion in ("confidence", "classwise"):
            less = repetitions if notion == "confidence" else repetitions // 2  # five problems each
            found += [("dirichlet-5", notion, factor, n, less) for factor in (1.0, 0.3, 0.0)]
    return found


def one_cell(task: tuple[str, str, float, int, int]) -> dict[str, float]:
    name, notion, factor, n, repetitions = task
    rng = rng_of("coverage", *task)
    if name in EXACT:
        family = EXACT[name].shrunk(factor)
        truth, found = family.truth, binary(family, n, repetitions, rng)
    else:
        family = Dirichlet(5, 0.3).shrunk(factor)
        truth, found = family.truth(notion), multiclass(family, notion, n, repetitions, rng)
    value, low, high = np.array(list(found)).T
    assert np.all((low >= 0) & (low <= value) & (value <= high) & (high <= 1))
    covered = (low <= truth) & (truth <= high)
    return {
        "truth": truth,
        "value": value.mean(),
        "coverage": covered.mean(),
        "above": (low > truth).mean(),
        "below": (high < truth).mean(),
        "width": (high - low).mean(),
    }


def binary(family, n, repetitions, rng):
    for _ in range(repetitions):
        yield one_problem(Sample(*family.draw(rng, n)), n, rng)


def one_problem(sample, n, rng):
    posterior = Bayes().fit(sample).posterior
    value = float(null.error(posterior, "l1")[0])
    return value, *interval.interval(posterior, n, value, norm="l1", level=LEVEL, rng=rng)


def multiclass(family, notion, n, repetitions, rng):
    for _ in range(repetitions):
        score, label = family.draw(rng, n)
        if notion == "confidence":
            best = score.argmax(axis=1)
            sample = Sample(score.max(axis=1), best == label, None, (1 / score.shape[1], 1.0))
            yield one_problem(sample, n, rng)
            continue
        question = Question.of(predictions(label, score), named("classwise"))
        posterior = posterior_of(question)
        value = float(null.error(posterior, "l1", score.shape[1])[0])
        spread = inference.together(posterior, question.rows)
        ends = interval.interval(
            posterior, n, value, norm="l1", level=LEVEL, rng=rng, shared=True, spread=spread
        )
        yield value, *ends


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--share", type=float, default=1.0, help="of the repetitions")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="*", help="families")
    parser.add_argument("--sizes", nargs="*", type=int, help="numbers of rows")
    arguments = parser.parse_args()
    tasks = [
        task
        for task in cells()
        if (not arguments.only or task[0] in arguments.only)
        and (not arguments.sizes or task[3] in arguments.sizes)
    ]
    tasks = [(*task[:-1], max(20, round(task[-1] * arguments.share))) for task in tasks]
    started = time.perf_counter()
    coverage, bad = [], 0
    print(f"{'family':12} {'notion':10} {'gap':>4} {'n':>6} {'truth':>6} {'value':>6}  coverage (se)   "
          "above  below  width")  # fmt: skip
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for task, found in zip(tasks, pool.map(one_cell, tasks), strict=True):
            name, notion, factor, n, repetitions = task
            c = found["coverage"]
            error = np.sqrt(max(c * (1 - c), 0.01 / repetitions) / repetitions)
            edge = [np.sqrt(limit * (1 - limit) / repetitions) for limit in (LOW, HIGH)]
            out = c < LOW - 3 * edge[0] or c > HIGH + 3 * edge[1]
            bad += out
            coverage.append(c)
            print(
                f"{name:12} {notion:10} {factor:4} {n:6} {found['truth']:6.4f} {found['value']:6.4f}  "
                f"{c:.4f} ({error:.4f})  {found['above']:.3f}  {found['below']:.3f}  {found['width']:.3f}"
                f"{'  OUT' if out else ''}",
                flush=True,
            )
    print(
        f"mean {np.mean(coverage):.4f}, least {min(coverage):.4f}, most {max(coverage):.4f}; "
        f"{bad} of {len(coverage)} cells more than three standard errors outside [{LOW}, {HIGH}]; "
        f"{time.perf_counter() - started:.0f} s"
    )


if __name__ == "__main__":
    main()

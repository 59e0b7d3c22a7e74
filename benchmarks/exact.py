"""Mean absolute error of estimators over the efficiency bound, where the true error is known exactly.

    python benchmarks/exact.py [ESTIMATOR ...] [--reps 400] [--sizes 200 1000 10000]

Families are those of calibrant.experiment.families. The bound is the least mean absolute error that a regular
estimator can have for large n: .798 sqrt((Brier - ECE^2) / n); class-wise, Brier - ECE^2 gives way to the
variance of what one row adds to the mean over the classes. A calibrated model has no such bound (an estimator
may lean towards 0), so for those the error itself is printed. With no names it is `auto` alone.
"""

from __future__ import annotations

import argparse
import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from calibrant.estimators import resolve
from calibrant.evidence import Array, Sample
from calibrant.experiment.distributions import rng_of
from calibrant.experiment.families import EXACT, Dirichlet
from calibrant.experiment.leaderboard import exact_families
from calibrant.experiment.procedure import one_dimensional
from calibrant.questions.notions import named

# One family for each distribution of the scores.
CALIBRATED = {"power": "Beta(1.1, .1)", "flat": "Beta(.5, .5)", "square": "uniform"}
AT = 1000
TOGETHER = 1 << 16


def binary(names: list[str], repetitions: dict[int, int]) -> None:
    found = exact_families(names, repetitions)
    for k, name in enumerate(names):
        print(f"\n{name}: mean absolute error over the bound (standard error)")
        print(f"{'family':12}" + "".join(f"{f'n={n}':>16}" for n in repetitions))
        for i, family in enumerate(found.families):
            cells = (f"{r:.3f} ({e:.3f})" for r, e in zip(found.ratio[k, i], found.error[k, i], strict=True))
            print(f"{family:12}" + "".join(f"{cell:>16}" for cell in cells))
        print(f"{'mean':12}" + "".join(f"{value:>16.3f}" for value in found.ratio[k].mean(axis=0)))
        worst, family, n = found.worst(k)
        error = np.sqrt(np.square(found.error[k]).sum()) / found.error[k].size
        largest = (found.error[k] / found.ratio[k]).max()
        print(
            f"mean over cells {found.mean[k]:.3f} ({error:.3f}), worst {worst:.3f} ({family}, n={n}); "
            f"largest relative standard error {100 * largest:.1f} %"
        )


def calibrated(names: list[str], times: int) -> None:
    families = [EXACT[name].shrunk(0.0) for name in CALIBRATED]
    found = exact_families(names, {AT: times}, families=families)
    bound = np.array([family.bound(AT) for family in families])
    print(f"\ncalibrated models, n={AT}: mean absolute error (standard error)")
    print(f"{'estimator':16}" + "".join(f"{title:>18}" for title in CALIBRATED.values()))
    for k, name in enumerate(names):
        pairs = zip(found.ratio[k, :, 0] * bound, found.error[k, :, 0] * bound, strict=True)
        print(f"{name:16}" + "".join(f"{f'{value:.4f} ({error:.4f})':>18}" for value, error in pairs))


def multiclass(names: list[str], repetitions: dict[int, int]) -> None:
    print("\nprobability vectors uniform on the simplex, true ones pulled to equal chances by a factor:")
    print("mean absolute error (standard error), and over the bound where there is one")
    print(
        f"{'notion':11} {'K':>2} {'factor':>6} {'n':>6} {'truth':>7}  " + "".join(f"{n:>30}" for n in names)
    )
    for notion in ("confidence", "classwise"):
        for family in (Dirichlet(k, factor) for k in (5, 10) for factor in (0.3, 0.0)):
            truth, bound = family.truth(notion), deviation(family, notion)
            for n, times in repetitions.items():
                off = np.abs(estimates(names, family, notion, n, times) - truth)
                cells = ""
                for value, error in zip(off.mean(axis=1), off.std(axis=1, ddof=1) / times**0.5, strict=True):
                    least = np.sqrt(2 / np.pi / n) * bound
                    ratio = f", {value / least:.3f} ({error / least:.3f})" if family.factor else ""
                    cells += f"{f'{value:.5f} ({error:.5f}){ratio}':>30}"
                print(f"{notion:11} {family.n_classes:2} {family.factor:6} {n:6} {truth:7.4f}  {cells}")


def problems(
    family: Dirichlet, notion: str, n: int, times: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Scores and outcomes of many samples: (sample, n), class-wise (sample, class, n)."""
    scores, labels = family.draw(rng, n * times)
    return one_dimensional(notion, scores.reshape(times, n, -1), labels.reshape(times, n))


def estimates(names: list[str], family: Dirichlet, notion: str, n: int, times: int) -> Array:
    rng = rng_of("exact", family.name, family.factor, notion, n)
    support = (1 / family.n_classes if notion == "confidence" else 0.0, 1.0)
    step, parts = max(1, TOGETHER // (n * family.n_classes)), []
    for a in range(0, times, step):
        sample = Sample(*problems(family, notion, n, min(step, times - a), rng), None, support)
        values = np.stack([resolve(name, shared=named(notion).several).fit(sample).error() for name in names])
        parts.append(values if notion == "confidence" else values.mean(axis=-1))
    return np.concatenate(parts, axis=1)


def deviation(family: Dirichlet, notion: str, rows: int = 1_000_000) -> float:
    """Standard deviation of what one row adds to the error when the sign of every gap is known."""
    score, outcome = problems(
        family, notion, rows, 1, rng_of("deviation", family.name, family.factor, notion)
    )
    # Scores above 1/K are too high, those below too low.
    sign = np.sign(score - 1 / family.n_classes)
    added = sign * (score - outcome)
    return float((added if notion == "confidence" else added.mean(axis=1)).std())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("estimators", nargs="*", default=["auto"], help="names of the registry")
    parser.add_argument("--reps", type=int, default=400, help="samples of each cell")
    parser.add_argument("--sizes", type=int, nargs="+", default=[200, 1000, 10_000])
    asked = parser.parse_args()
    start, repetitions = time.perf_counter(), dict.fromkeys(asked.sizes, asked.reps)
    print(f"{asked.reps} samples of each cell")
    binary(asked.estimators, repetitions)
    calibrated(asked.estimators, asked.reps)
    multiclass(asked.estimators, repetitions)
    print(f"\n{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()

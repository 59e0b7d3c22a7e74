"""Mean absolute error of estimators over the efficiency bound, where the true error is known exactly.

    python benchmarks/exact.py [ESTIMATOR ...] [--reps 400] [--sizes 200 1000 10000]
    python benchmarks/exact.py --parts local --real DIR  # with the models whose scores lie in a folder

Families are those of calibrant.experiment.families. The bound is the least mean absolute error that a regular
estimator can have for large n: .798 sqrt((Brier - ECE^2) / n); class-wise, Brier - ECE^2 gives way to the
variance of what one row adds to the mean over the classes. A calibrated model has no such bound (an estimator
may lean towards 0), so for those the error itself is printed. For local miscalibration, few distinct scores
and rare outcomes the bound says little: there the error is divided by that of the best of six other
estimators in each cell. Without names, only `auto` is measured.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from importlib import util
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from calibrant.estimators import resolve
from calibrant.experiment.distributions import rng_of
from calibrant.experiment.families import FAMILIES, FEW, LOCAL, SHIFTED, Family
from calibrant.experiment.leaderboard import exact_families
from calibrant.experiment.procedure import one_dimensional
from calibrant.score_data import Array, Sample
from calibrant.tasks.notions import get_notion


def _sibling(name: str) -> Any:
    spec = util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


real_scores, Dirichlet = _sibling("real_scores"), _sibling("dirichlet_family").Dirichlet

# One family for each distribution of the scores.
CALIBRATED = {
    "power": "Beta(1.1, .1)",
    "flat": "Beta(.5, .5)",
    "square": "uniform",
    "certain": "six tenths 1",
    "seven": "seven scores",
    "rare": "about .01",
}
AT = (1000, 10_000)
TOGETHER = 1 << 16
# Reference estimators where no bound helps.
SIX = ("debiased", "c:10", "ac:10", "d:silverman", "sweep", "isotonic")
LOCAL_ONES = (*LOCAL.values(), LOCAL["top"].shrunk(0.3), *FEW.values(), *SHIFTED.values())
PARTS = ("regular", "local", "calibrated", "canonical")


def binary(names: list[str], repetitions: dict[int, int]) -> None:
    found = exact_families(names, repetitions)
    for k, name in enumerate(names):
        print(f"\n{name}: mean absolute error over the bound (standard error)")
        print(f"{'family':12}" + "".join(f"{f'n={n}':>16}" for n in repetitions))
        for i, family in enumerate(found.families):
            cells = (f"{r:.3f} ({e:.3f})" for r, e in zip(found.ratio[k, i], found.error[k, i], strict=True))
            print(f"{family:12}" + "".join(f"{cell:>16}" for cell in cells))
        print(f"{'mean':12}" + "".join(f"{value:>16.3f}" for value in found.ratio[k].mean(axis=0)))
        worst, family, n = found.worst(found.ratio[k])
        error = np.sqrt(np.square(found.error[k]).sum()) / found.error[k].size
        largest = (found.error[k] / found.ratio[k]).max()
        print(
            f"mean over cells {found.mean[k]:.3f} ({error:.3f}), worst {worst:.3f} ({family}, n={n}); "
            f"largest relative standard error {100 * largest:.1f} %"
        )


def against_six(
    names: list[str], repetitions: dict[int, int], families: Sequence[Family] = LOCAL_ONES
) -> dict[str, Array]:
    """Print errors over the best of six in each cell, and return them: (family, size) by name."""
    found = exact_families([*names, *SIX], repetitions, families=families)
    six = found.ratio[len(names) :]
    least, which = six.min(axis=0), six.argmin(axis=0)
    bound = np.array([[family.bound(n) for n in repetitions] for family in families])
    ratios = {}
    for k, name in enumerate(names):
        error, ratio = 1e4 * bound * found.ratio[k], found.ratio[k] / least
        ratios[name] = ratio
        print(f"\n{name}: mean absolute error x 10^4, over the best of {', '.join(SIX)} (which)")
        wide = max(12, *(len(family) for family in found.families))
        print(f"{'family':{wide}}" + "".join(f"{f'n={n}':>29}" for n in repetitions))
        for i, family in enumerate(found.families):
            cells = (
                f"{e:.1f}, {r:.3f} ({SIX[w]})" for e, r, w in zip(error[i], ratio[i], which[i], strict=True)
            )
            print(f"{family:{wide}}" + "".join(f"{cell:>29}" for cell in cells))
        i, j = np.unravel_index(np.argmax(ratio), ratio.shape)
        print(
            f"geometric mean {np.exp(np.log(ratio).mean()):.3f}, worst {ratio.max():.3f} "
            f"({found.families[i]}, n={tuple(repetitions)[j]}); {np.sum(ratio > 1.15)} above 1.15"
        )
    return ratios


def calibrated(names: list[str], times: int) -> None:
    families = [FAMILIES[name].shrunk(0.0) for name in CALIBRATED]
    for n in AT:
        found = exact_families(names, {n: times}, families=families)
        bound = np.array([family.bound(n) for family in families])
        print(f"\ncalibrated models, n={n}: mean absolute error (standard error)")
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
            truth, bound = family.truth(notion), family.deviation(notion)
            for n, times in repetitions.items():
                off = np.abs(estimates(names, family, notion, n, times) - truth)
                cells = ""
                for value, error in zip(off.mean(axis=1), off.std(axis=1, ddof=1) / times**0.5, strict=True):
                    least = np.sqrt(2 / np.pi / n) * bound
                    ratio = f", {value / least:.3f} ({error / least:.3f})" if family.factor else ""
                    cells += f"{f'{value:.5f} ({error:.5f}){ratio}':>30}"
                print(f"{notion:11} {family.n_classes:2} {family.factor:6} {n:6} {truth:7.4f}  {cells}")


def problems(family: Any, notion: str, n: int, times: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Scores and outcomes of many samples: (sample, n), class-wise (sample, class, n)."""
    scores, labels = family.draw(rng, n * times)
    return one_dimensional(notion, scores.reshape(times, n, -1), labels.reshape(times, n))


def estimates(names: list[str], family: Any, notion: str, n: int, times: int) -> Array:
    rng = rng_of("exact", family.name, family.factor, notion, n)
    support = (1 / family.n_classes if notion == "confidence" else 0.0, 1.0)
    step, parts = max(1, TOGETHER // (n * family.n_classes)), []
    for a in range(0, times, step):
        sample = Sample(*problems(family, notion, n, min(step, times - a), rng), None, support)
        values = np.stack(
            [resolve(name, shared=get_notion(notion).classwise).fit(sample).error() for name in names]
        )
        parts.append(values if notion == "confidence" else values.mean(axis=-1))
    return np.concatenate(parts, axis=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("estimators", nargs="*", default=["auto"], help="names of the registry")
    parser.add_argument("--reps", type=int, default=400, help="samples of each cell")
    parser.add_argument("--sizes", type=int, nargs="+", default=[200, 1000, 10_000])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--real", metavar="DIR", help="folder of scores of real models")
    asked = parser.parse_args()
    start, repetitions = time.perf_counter(), dict.fromkeys(asked.sizes, asked.reps)
    print(f"{asked.reps} samples of each cell")
    if "regular" in asked.parts:
        binary(asked.estimators, repetitions)
    if "local" in asked.parts:
        against_six(asked.estimators, repetitions)
    if asked.real:
        against_six(asked.estimators, repetitions, tuple(real_scores.real_families(asked.real).values()))
    if "calibrated" in asked.parts:
        calibrated(asked.estimators, asked.reps)
    if "canonical" in asked.parts:
        multiclass(asked.estimators, repetitions)
    print(f"\n{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()

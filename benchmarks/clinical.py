"""Coverage of the intervals of clinical measures: intercept, slope, O:E ratio, E50 and E90.

    python benchmarks/clinical.py               # every family, some 10 minutes on one core
    python benchmarks/clinical.py --share 0.1   # a tenth of the repetitions

A cell is a family whose frequencies are known (calibrant.experiment.families), the size of its gap and a
number of rows. The true intercept and slope are those of the line that is nearest to the true frequencies.
Cells in which fewer than ten cases, or as few others, are to be expected are left out, and so is the slope of
the family in which scores of 1 are taken for as near to it as the sample says.
"""

from __future__ import annotations

import argparse
import os
from typing import NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from scipy.optimize import brentq, root
from scipy.special import expit, logit

from calibrant.decisions import clinical_of
from calibrant.experiment.distributions import rng_of
from calibrant.experiment.families import FAMILIES, Family
from calibrant.inputs import predictions
from calibrant.score_data import Array
from calibrant.tasks import CalibrationTask, get_notion

READ = ("intercept", "slope", "ratio", "e50", "e90")
SIZES, FACTORS, REPETITIONS = (100, 500, 2000, 10_000), (1.0, 0.3, 0.0), 400
CALIBRATED = ("power", "flat", "square", "rare", "seven")  # one for each distribution of the scores
GRID = 200_000


class Cell(NamedTuple):
    name: str
    factor: float
    n: int


def cells() -> list[Cell]:
    """Return the cells of all families."""
    return [
        Cell(name, factor, n)
        for name in FAMILIES
        for factor in FACTORS
        if factor or name in CALIBRATED
        for n in SIZES
    ]


def truth_of(family: Family) -> Array:
    """Return what is read of the whole population."""
    score, chance = family.pairs(family.quantile((np.arange(GRID) + 0.5) / GRID))
    x = logit(np.clip(score, 1e-15, 1 - 1e-15))
    intercept = brentq(lambda a: np.mean(chance - expit(a + x)), -30, 30, xtol=1e-10)

    def gradient(line: Array) -> Array:
        rest = chance - expit(line[0] + line[1] * x)
        return np.array([rest.mean(), (rest * x).mean()])

    slope = root(gradient, [0.0, 1.0], tol=1e-10).x[1]
    slope = np.nan if np.any(score == 1) else slope
    gap = np.quantile(np.abs(chance - score), [0.5, 0.9])
    return np.array([intercept, slope, chance.mean() / score.mean(), *gap, chance.mean()])


def one_cell(cell: Cell, repetitions: int) -> tuple[Array, Array] | None:
    """Return coverage and mean width of each interval."""
    family = FAMILIES[cell.name].shrunk(cell.factor)
    *truth, cases = truth_of(family)
    if cell.n * min(cases, 1 - cases) < 10:
        return None
    truth, rng = np.array(truth), rng_of("clinical", *cell)
    held, width = [], []
    for _ in range(repetitions):
        score, outcome = family.draw(rng, cell.n)
        task = CalibrationTask.of(
            predictions(outcome.astype(int), score, labels=[0, 1]), get_notion("binary")
        )
        found = clinical_of(task)
        ends = [
            (np.nan, np.nan) if (one := getattr(found, key)) is None else (one.low, one.high) for key in READ
        ]
        low, high = np.array(ends).T
        known = np.isfinite(low) & np.isfinite(truth)
        held.append(np.where(known, (low <= truth + 1e-9) & (truth <= high + 1e-9), np.nan))
        width.append(np.where(known, high - low, np.nan))
    with np.errstate(invalid="ignore"):
        count = np.isfinite(held).sum(axis=0)
        return np.nansum(held, axis=0) / count, np.nansum(width, axis=0) / count


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--share", type=float, default=1.0, help="of the repetitions")
    parser.add_argument("--only", nargs="*", help="families")
    parser.add_argument("--sizes", nargs="*", type=int, help="numbers of rows")
    arguments = parser.parse_args()
    repetitions, kept = max(10, round(REPETITIONS * arguments.share)), {}
    print(f"{'family':10} {'gap':>4} {'n':>6}  {'  '.join(f'{key:>9}' for key in READ)}   (coverage)")
    for cell in cells():
        if (arguments.only and cell.name not in arguments.only) or (
            arguments.sizes and cell.n not in arguments.sizes
        ):
            continue
        found = one_cell(cell, repetitions)
        if found is not None:
            kept[cell] = found[0]
            numbers = "  ".join(f"{value:9.3f}" for value in found[0])
            print(f"{cell.name:10} {cell.factor:4} {cell.n:6}  {numbers}", flush=True)
    for n in sorted({cell.n for cell in kept}):
        some = np.array([value for cell, value in kept.items() if cell.n == n])
        told = ", ".join(
            f"{key} {mean:.3f} (least {least:.3f})"
            for key, mean, least in zip(READ, np.nanmean(some, axis=0), np.nanmin(some, axis=0), strict=True)
        )
        print(f"n = {n}: {told}")


if __name__ == "__main__":
    main()

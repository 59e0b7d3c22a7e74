"""How often intervals and bands of `calibrant.risk_coverage` hold the truth.

    python benchmarks/selective.py               # every cell, some 20 minutes on one core
    python benchmarks/selective.py --share 0.1   # a tenth of the repetitions

A cell is a family of pairs, confidence and chance to be right (calibrant.experiment.families), and a number
of rows, or rows in clusters of five whose outcomes correlate. Printed for each: coverage of the intervals at
several shares kept and of `coverage_at`, coverage of the band at all shares together (from ten rows on), and
that of AURC and of its excess.
"""

from __future__ import annotations

import argparse
import os
from typing import NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import calibrant
from calibrant.experiment.distributions import rng_of
from calibrant.experiment.families import FAMILIES, Family
from calibrant.score_data import Array

SHARES, LEAST, SIZES, REPETITIONS = (0.1, 0.3, 0.5, 0.8, 1.0), 10, (100, 500, 2000), 300
NAMES = ("power", "logistic", "flat", "wavy", "square", "stairs", "top", "certain", "saturated", "seven",
         "twenty", "prior-5")  # fmt: skip
GRID, TOGETHER = 200_000, 5
COLUMNS = (*(f"at {share:g}" for share in SHARES), "reach", "band", "aurc", "excess")


class Cell(NamedTuple):
    name: str
    n: int
    clustered: bool = False


class Truth:
    """Accuracy of what is kept, in the whole population."""

    def __init__(self, family: Family) -> None:
        score, chance = family.pairs(family.quantile((np.arange(GRID) + 0.5) / GRID))
        order = np.argsort(-score, kind="stable")
        self.score, chance = score[order], chance[order]
        self.share = (np.arange(GRID) + 1) / GRID
        self.accuracy = np.cumsum(chance) / np.arange(1, GRID + 1)
        wrong = 1 - chance.mean()
        self.aurc = float(np.mean(1 - self.accuracy))
        self.excess = self.aurc - (wrong + (1 - wrong) * np.log(1 - wrong))
        # Scores that many rows share have a threshold of their own.
        values, counts = np.unique(score, return_counts=True)
        self.tied = values[counts > GRID / 100]

    def at(self, confidence: Array, share: Array) -> Array:
        """Return the accuracy at a share, or at the threshold of tied scores."""
        by_share = np.interp(share, self.share, self.accuracy)
        by_score = self.accuracy[np.searchsorted(-self.score, -np.asarray(confidence), side="right") - 1]
        return np.where(np.isin(confidence, self.tied), by_score, by_share)

    def reach(self, accuracy: float) -> float:
        """Return the largest share that is as right as asked, among thresholds that there are."""
        ends = self.share if not self.tied.size else self.share[np.append(np.diff(self.score) < 0, True)]
        enough = np.interp(ends, self.share, self.accuracy) >= accuracy
        return float(ends[enough].max(initial=0.0))


def one_cell(cell: Cell, repetitions: int) -> Array:
    """Return the share of samples in which each interval, and the band, hold the truth."""
    family = FAMILIES[cell.name]
    truth, rng = Truth(family), rng_of("selective", *cell)
    asked = float((truth.accuracy[-1] + np.interp(0.2, truth.share, truth.accuracy)) / 2) + 1e-3
    reach, held = truth.reach(asked), []
    for k in range(repetitions):
        score, chance = family.sample(rng, cell.n)
        cluster = np.arange(cell.n) // TOGETHER
        shared = rng.random(cell.n // TOGETHER + 1)[cluster]
        number = rng.random(cell.n)
        number = np.where(rng.random(cell.n) < 0.7, shared, number) if cell.clustered else number
        found = calibrant.risk_coverage(
            number < chance, score, notion="correctness", labels=[0, 1], rng=k,
            cluster=cluster if cell.clustered else None,
        )  # fmt: skip
        row = []
        for share in SHARES:
            one = found.accuracy_at(share)
            row.append(one.low - 1e-9 <= truth.at(one.confidence, one.coverage) <= one.high + 1e-9)
        one = found.coverage_at(asked)
        row.append(one.low - 1e-9 <= reach <= one.high + 1e-9)
        some = found.coverage * found.n >= LEAST
        true = truth.at(found.confidence, found.coverage)
        row.append(np.all(((found.band_low <= true + 1e-9) & (true <= found.band_high + 1e-9))[some]))
        for one, value in ((found.aurc, truth.aurc), (found.e_aurc, truth.excess)):
            row.append(one.low <= value <= one.high)
        held.append(row)
    return np.mean(held, axis=0)


def cells() -> list[Cell]:
    """Return all cells."""
    return [Cell(name, n, clustered) for clustered in (False, True) for name in NAMES for n in SIZES]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--share", type=float, default=1.0, help="of the repetitions")
    parser.add_argument("--only", nargs="*", help="families")
    parser.add_argument("--sizes", nargs="*", type=int, help="numbers of rows")
    arguments = parser.parse_args()
    repetitions, kept = max(5, round(REPETITIONS * arguments.share)), {}
    print(f"{'family':10} {'rows':9} {'n':>6}  {'  '.join(f'{name:>6}' for name in COLUMNS)}")
    for cell in cells():
        if (arguments.only and cell.name not in arguments.only) or (
            arguments.sizes and cell.n not in arguments.sizes
        ):
            continue
        kept[cell] = one_cell(cell, repetitions)
        numbers = "  ".join(f"{value:6.3f}" for value in kept[cell])
        print(
            f"{cell.name:10} {'clustered' if cell.clustered else 'alone':9} {cell.n:6}  {numbers}", flush=True
        )
    for key in sorted({(cell.clustered, cell.n) for cell in kept}):
        some = np.array([value for cell, value in kept.items() if (cell.clustered, cell.n) == key])
        told = ", ".join(
            f"{name} {mean:.3f} ({least:.3f})"
            for name, mean, least in zip(COLUMNS, some.mean(axis=0), some.min(axis=0), strict=True)
        )
        print(f"{'clusters of five' if key[0] else 'rows'}, n = {key[1]}: {told}")


if __name__ == "__main__":
    main()

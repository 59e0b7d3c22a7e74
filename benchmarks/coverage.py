"""How often the interval of `calibrant.estimate` holds the true error.

    python benchmarks/coverage.py                           # every cell, some 90 minutes on two cores
    python benchmarks/coverage.py --share 0.05              # a twentieth of the repetitions
    python benchmarks/coverage.py --kinds local --real DIR  # with the models whose scores lie in a folder

A cell is a family whose true error is known exactly (calibrant.experiment.families), the size of its
gap (full, three tenths, none), a number of rows and a notion. Printed for each: coverage with its
standard error, misses on each side, mean width, its ratio to 3.92 sqrt((Brier - ECE^2) / n) (class-wise,
to the same of what a row adds to the mean over classes) and mean estimate.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from importlib import util
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import calibrant
from calibrant.experiment.distributions import rng_of
from calibrant.experiment.families import EXACT, FAMILIES, FEW, LOCAL, SHIFTED
from calibrant.score_data import Array
from calibrant.settings import TEST


def _sibling(name: str) -> Any:
    spec = util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


real_scores, Dirichlet = _sibling("real_scores"), _sibling("dirichlet_family").Dirichlet

LEVEL = 0.95
SIZES = {100: 2000, 500: 2000, 2000: 2000, 10_000: 1000}
# Gaps in one place, few scores and rare outcomes need some rows to be seen at all.
LOCAL_SIZES = {500: 1000, 2000: 1000, 10_000: 1000}
LOW, HIGH, LEAST, WIDEST = 0.93, 0.985, 0.92, 1.5
CALIBRATED = ("power", "flat", "square")  # one for each distribution of the scores
KINDS = ("regular", "local")


class Cell(NamedTuple):
    name: str
    notion: str
    factor: float
    n: int
    repetitions: int


def with_repetitions(sizes: Sequence[int] | None, known: dict[int, int]) -> dict[int, int]:
    """Return the repetitions by number of rows: all known ones, or those that are asked for."""
    return known if sizes is None else {n: known.get(n, max(100, min(1000, 10_000_000 // n))) for n in sizes}


def cells(sizes: Sequence[int] | None = None) -> list[Cell]:
    """Return the cells of regular families."""
    found = []
    for n, repetitions in with_repetitions(sizes, SIZES).items():
        for name in EXACT:
            factors = (1.0, 0.3, 0.0) if name in CALIBRATED else (1.0, 0.3)
            found += [Cell(name, "binary", factor, n, repetitions) for factor in factors]
        for notion in ("confidence", "classwise"):
            less = repetitions if notion == "confidence" else repetitions // 2  # five problems each
            found += [Cell("dirichlet-5", notion, factor, n, less) for factor in (1.0, 0.3, 0.0)]
    return found


def local_cells(chosen: Sequence[int] | None = None) -> list[Cell]:
    """Return those of gaps in one place, few scores and rare outcomes."""
    sizes = [(name, (1.0, 0.3)) for name in (*LOCAL, *SHIFTED)]
    sizes += [(name, (1.0, 0.3, 0.0)) for name in FEW]
    sizes += [(name, (0.0,)) for name in ("saturated", "certain", "prior-43", "rare")]
    return [
        Cell(name, "binary", factor, n, repetitions)
        for n, repetitions in with_repetitions(chosen, LOCAL_SIZES).items()
        for name, factors in sizes
        for factor in factors
    ]


def real_cells(folder: str, sizes: Sequence[int] | None = None) -> list[Cell]:
    """Return those of the models whose scores lie in a folder."""
    return [
        Cell(f"{folder}::{name}", "binary", 1.0, n, repetitions)
        for n, repetitions in with_repetitions(sizes, LOCAL_SIZES).items()
        for name in real(folder)
    ]


real = cache(real_scores.real_families)


def one_cell(cell: Cell) -> dict[str, float]:
    name, notion, factor, n, repetitions = cell
    folder, _, name = name.rpartition("::")
    rng = rng_of("coverage", name, *cell[1:])
    if name.startswith("dirichlet"):
        family = Dirichlet(5, 0.3).shrunk(factor)
        truth, deviation = family.truth(notion), family.deviation(notion, rows=200_000)
    else:
        family = (real(folder) if folder else FAMILIES)[name].shrunk(factor)
        truth, deviation = family.truth, family.deviation(rows=200_000)
    value, low, high = intervals(family, notion, n, repetitions, rng)
    assert np.all((low >= 0) & (low <= value) & (value <= high) & (high <= 1))
    covered = (low <= truth) & (truth <= high)
    return {
        "truth": truth,
        "value": value.mean(),
        "coverage": covered.mean(),
        "above": (low > truth).mean(),
        "below": (high < truth).mean(),
        "width": (high - low).mean(),
        "ratio": (high - low).mean() / (3.92 * deviation / n**0.5),
    }


# Calibrated data and single classes, which nothing here looks at, are simulated as little as can be.
@patch("calibrant.inference.estimate.CLASS_DATA_SETS", 2)
@patch.dict(vars(TEST), data_sets=2)
def intervals(family, notion, n: int, repetitions: int, rng: np.random.Generator) -> Array:
    """Return values and both ends of `calibrant.estimate`, for so many samples."""
    found = []
    for _ in range(repetitions):
        score, label = family.draw(rng, n)
        answer = calibrant.estimate(
            label.astype(int), score, notion=notion, level=LEVEL, rng=int(rng.integers(2**32)),
            labels=range(2 if score.ndim == 1 else score.shape[1]),
        )  # fmt: skip
        found.append((answer.value, answer.low, answer.high))
    return np.array(found).T


def kind_of(cell: Cell) -> str:
    """Return the kind of family that a cell is about."""
    kinds = {"regular": EXACT, "local gap": LOCAL, "few scores": FEW, "rare outcomes": SHIFTED}
    if "::" in cell.name:
        return "real scores"
    return next((kind for kind, names in kinds.items() if cell.name in names), "regular")


def summary(
    tasks: Sequence[Cell], coverage: Sequence[float], widths: Sequence[float], ratios: Sequence[float]
) -> list[str]:
    """Return a table over kinds, sizes and gaps, as docs/research/coverage.md has it."""
    groups: dict[tuple[str, int, float], list[int]] = {}
    for k, cell in enumerate(tasks):
        groups.setdefault((kind_of(cell), cell.n, cell.factor), []).append(k)
    rows = ["| kind | n | gap | cells | mean | least | most | mean width | relative |", "|---" * 9 + "|"]
    gaps = {1.0: "full", 0.3: "three tenths", 0.0: "none"}
    for (kind, n, factor), members in groups.items():
        c, w, r = (np.array(values)[members] for values in (coverage, widths, ratios))
        rows.append(
            f"| {kind} | {n} | {gaps[factor]} | {c.size} | {c.mean():.3f} | {c.min():.3f} | {c.max():.3f} "
            f"| {w.mean():.3f} | {r.mean():.2f} |"
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--share", type=float, default=1.0, help="of the repetitions")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="*", help="families")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--real", metavar="DIR", help="folder of scores of real models")
    parser.add_argument("--sizes", nargs="*", type=int, help="numbers of rows, also others than those above")
    arguments = parser.parse_args()
    chosen = []
    if "regular" in arguments.kinds:
        chosen += cells(arguments.sizes)
    if "local" in arguments.kinds:
        chosen += local_cells(arguments.sizes)
    if arguments.real:
        chosen += real_cells(arguments.real, arguments.sizes)
    tasks = [
        cell._replace(repetitions=max(20, round(cell.repetitions * arguments.share)))
        for cell in chosen
        if not arguments.only or cell.name.rpartition("::")[2] in arguments.only
    ]
    started = time.perf_counter()
    coverage, ratios, widths, bad = [], [], [], 0
    wide = max((len(task.name.rpartition("::")[2]) for task in tasks), default=12)
    print(f"{'family':{wide}} {'notion':10} {'gap':>4} {'n':>6} {'truth':>6} {'value':>6}  coverage (se)   "
          "above  below  width  ratio")  # fmt: skip
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for task, found in zip(tasks, pool.map(one_cell, tasks), strict=True):
            name, notion, factor, n, repetitions = task
            c, r = found["coverage"], found["ratio"]
            error = np.sqrt(max(c * (1 - c), 0.01 / repetitions) / repetitions)
            edge = [np.sqrt(limit * (1 - limit) / repetitions) for limit in (LOW, HIGH)]
            out = c < LOW - 3 * edge[0] or c > HIGH + 3 * edge[1]
            bad += out
            coverage.append(c)
            ratios.append(r)
            widths.append(found["width"])
            marks = {"  OUT": out, "  SHORT": c < LEAST, "  WIDE": r > WIDEST}
            print(
                f"{name.rpartition('::')[2]:{wide}} {notion:10} {factor:4} {n:6} {found['truth']:6.4f} "
                f"{found['value']:6.4f}  {c:.4f} ({error:.4f})  {found['above']:.3f}  {found['below']:.3f}  "
                f"{found['width']:.3f}  {r:5.2f}{''.join(mark for mark in marks if marks[mark])}",
                flush=True,
            )
    print("", *summary(tasks, coverage, widths, ratios), "", sep="\n")
    print(
        f"mean {np.mean(coverage):.4f}, least {min(coverage):.4f}, most {max(coverage):.4f}; "
        f"{bad} of {len(coverage)} cells more than three standard errors outside [{LOW}, {HIGH}]; "
        f"{np.sum(np.array(coverage) < LEAST)} below {LEAST}; width ratio {np.mean(ratios):.2f}, "
        f"at most {max(ratios):.2f}, {np.sum(np.array(ratios) > WIDEST)} above {WIDEST}; "
        f"{time.perf_counter() - started:.0f} s"
    )


if __name__ == "__main__":
    main()

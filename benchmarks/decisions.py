"""How far regrets are from the truth, and how often their intervals hold it.

    python benchmarks/decisions.py                  # all parts, some 55 minutes on two cores
    python benchmarks/decisions.py --share 0.1      # a tenth of the repetitions
    python benchmarks/decisions.py --parts speed

Parts: `binary` are thresholds from .05 to .95 on exact families (regular, local, rare, few scores, and a
calibrated one), single intervals and the band over 99 thresholds, beside the recipe of which ours is a
development (quantiles of posterior draws with Bayesian-bootstrap weights, united with the cross-fitted gain
and 1.96 floored standard errors); `benefit` intervals of net benefits on these families; `matrix` three
classes with four actions, one of them to abstain, and ten with ten at random costs, on the families of
`canonical.py`; `speed` a curve of 99 thresholds with its band for a million rows, and a regret of each
kind.
"""

from __future__ import annotations

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor
from importlib import util
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from calibrant.decisions.binary import BinaryDecisions, CostLines
from calibrant.decisions.canonical import CanonicalDecisions
from calibrant.decisions.interval import regret_intervals
from calibrant.experiment.distributions import rng_of
from calibrant.experiment.families import FAMILIES, Family
from calibrant.inputs import predictions
from calibrant.posterior.softmax import CanonicalError, SoftmaxPosterior
from calibrant.score_data import Array
from calibrant.score_data.simplex import Simplex
from calibrant.tasks import CalibrationTask, get_notion

_spec = util.spec_from_file_location("canonical", Path(__file__).with_name("canonical.py"))
canonical = util.module_from_spec(_spec)
_spec.loader.exec_module(canonical)

AT = np.array([0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95])
CURVE = np.arange(1, 100) / 100
SIZES = {300: 400, 1000: 400, 10_000: 200}
REGULAR = ("square", "logistic", "flat", "steep", "shift", "wavy", "beta2", "power")
LOCAL = ("step", "top", "middle", "zigzag", "certain")
OTHERS = ("prior-43", "rare", "seven", "twenty")
# Every so many repetitions a band is made too, which takes longer than all the rest.
LEVEL, BANDS = 0.95, 4
# Of several classes: repetitions by number of classes and of rows, and number of rows for the true value.
ROWS = {3: {300: 300, 1000: 150, 10_000: 40}, 10: {300: 120, 1000: 80, 10_000: 20}}
LARGE = 400_000


class Cell(NamedTuple):
    family: str
    n: int
    repetitions: int


def family_of(name: str) -> Family:
    """Return a family by name; `calibrated` has the scores of `flat`."""
    return FAMILIES["flat"].shrunk(0.0) if name == "calibrated" else FAMILIES[name]


def true_regret(family: Family, thresholds: Array, rows: int = 2_000_000) -> Array:
    """Return the regret at each threshold, averaged over evenly spaced quantiles of the scores."""
    score, chance = family.pairs(family.quantile((np.arange(rows) + 0.5) / rows))
    return np.array([np.mean((chance - t) * ((chance > t) * 1.0 - (score >= t))) for t in thresholds])


def one_cell(cell: Cell) -> dict[str, Array]:
    family = family_of(cell.family)
    truth, whole = true_regret(family, AT), true_regret(family, CURVE)
    rng = rng_of("decisions", cell.family, cell.n)
    lines, curve = CostLines.of_thresholds(AT), CostLines.of_thresholds(CURVE)
    found: dict[str, list[Array]] = {
        "value": [],
        "held": [],
        "width": [],
        "before": [],
        "wide": [],
        "band": [],
    }
    for k in range(cell.repetitions):
        score, outcome = family.draw(rng, cell.n)
        task = CalibrationTask.of(predictions(outcome.astype(int), score), get_notion("binary"))
        known = BinaryDecisions.of(task, np.union1d(AT, CURVE))
        value, low, high, gain, *_ = regret_intervals(known, lines, LEVEL)
        found["value"].append(value)
        found["held"].append((low <= truth + 1e-9) & (truth <= high + 1e-9))
        found["width"].append(high - low)
        least, most = np.quantile(known.regret_draws(lines), [0.025, 0.975], axis=1)
        least = np.clip(np.minimum(least, gain.mean - 1.96 * gain.error), 0, None)
        most = np.maximum(most, gain.mean + 1.96 * gain.error)
        found["before"].append((least <= truth + 1e-9) & (truth <= most + 1e-9))
        found["wide"].append(most - least)
        if k % BANDS:
            continue
        _, low, high, *_ = regret_intervals(known, curve, LEVEL, simultaneous=True)
        found["band"].append(np.all((low <= whole + 1e-9) & (whole <= high + 1e-9)))
    return {"truth": truth, **{name: np.array(values) for name, values in found.items()}}


def binary(share: float, jobs: int, sizes: list[int] | None) -> None:
    """Print coverage, width and error at each threshold."""
    names = (*REGULAR, *LOCAL, *OTHERS, "calibrated")
    cells = [
        Cell(name, n, max(20, round(times * share)))
        for n, times in SIZES.items()
        if not sizes or n in sizes
        for name in names
    ]
    print(f"{'family':10} {'n':>6} {'MAE':>7}  coverage at " + " ".join(f"{t:5.2f}" for t in AT)
          + "   band   width, before")  # fmt: skip
    every: dict[int, list[tuple[str, dict[str, Array]]]] = {}
    with ProcessPoolExecutor(jobs) as pool:
        for cell, found in zip(cells, pool.map(one_cell, cells), strict=True):
            every.setdefault(cell.n, []).append((cell.family, found))
            error = np.abs(found["value"] - found["truth"]).mean()
            print(f"{cell.family:10} {cell.n:6} {error:7.5f}              "
                  + " ".join(f"{held:5.3f}" for held in found["held"].mean(axis=0))
                  + f"  {found['band'].mean():.3f}  {found['width'].mean():.5f} {found['wide'].mean():.5f}",
                  flush=True)  # fmt: skip
    print("\n| n | MAE x 1000 | at .1 .3 .5 .9, regular and calibrated | calibrated reads | coverage "
          "| least | "
          "cells below .92 | band, least | width | of the recipe before | its least coverage |\n" + "|---" *
          11 + "|")  # fmt: skip
    for n, cells_of in every.items():
        errors = np.array([np.abs(f["value"] - f["truth"]).mean(axis=0) for _, f in cells_of])
        older = [k for k, (name, _) in enumerate(cells_of) if name in (*REGULAR, "calibrated")]
        some = errors[np.ix_(older, [1, 2, 3, 5])].mean()
        reads = max(f["value"].mean(axis=0).max() for name, f in cells_of if name == "calibrated")
        held, before = (np.array([f[key].mean(axis=0) for _, f in cells_of]) for key in ("held", "before"))
        bands = np.array([f["band"].mean() for _, f in cells_of])
        width, wide = (np.mean([f[key].mean() for _, f in cells_of]) for key in ("width", "wide"))
        print(f"| {n} | {1e3 * errors.mean():.2f} | {1e3 * some:.2f} | {reads:.1e} | {held.mean():.3f} "
              f"| {held.min():.3f} "
              f"| {(held < 0.92).sum()} of {held.size} | {bands.mean():.3f}, {bands.min():.3f} | {width:.5f} "
              f"| {width / wide:.2f} | {before.min():.3f} |")  # fmt: skip


def true_net_benefits(family: Family, thresholds: Array, rows: int = 2_000_000) -> Array:
    """Return the net benefits of the model and of treating all, and their difference, at each threshold."""
    score, chance = family.pairs(family.quantile((np.arange(rows) + 0.5) / rows))
    worth = [chance - (1 - chance) * t / (1 - t) for t in thresholds]
    model = [np.mean((score >= t) * each) for t, each in zip(thresholds, worth, strict=True)]
    everyone = [np.mean(each) for each in worth]
    return np.array([model, everyone, np.subtract(model, everyone)])


def benefit(share: float, sizes: list[int] | None) -> None:
    """Print the coverage of net benefits: mean and least over families and thresholds, and of all at once."""
    import calibrant

    names = ("model", "treat all", "difference")
    head = ["n", *(part for name in names for part in (name, "least", "all thresholds, least"))]
    print("\n| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
    names = (*REGULAR, *LOCAL, *OTHERS, "calibrated")
    truths = {name: true_net_benefits(family_of(name), AT) for name in names}
    for n, times in SIZES.items():
        if sizes and n not in sizes:
            continue
        alone, together = [], []
        for name, truth in truths.items():
            family, rng, held = family_of(name), rng_of("net benefits", name, n), []
            for _ in range(max(2, round(times * share))):
                score, outcome = family.draw(rng, n)
                for simultaneous in (False, True):
                    found = calibrant.net_benefit(
                        outcome.astype(int), score, AT, simultaneous=simultaneous, level=LEVEL
                    )
                    parts = (found.model, found.treat_all, found.minus_all)
                    low, high = (np.array([getattr(part, end) for part in parts]) for end in ("low", "high"))
                    held.append((low <= truth + 1e-9) & (truth <= high + 1e-9))
            alone.append(np.mean(held[::2], axis=0))
            together.append(np.mean(np.all(held[1::2], axis=2), axis=0))
        each, least = np.mean(alone, axis=(0, 2)), np.min(alone, axis=(0, 2))
        numbers = np.stack([each, least, np.min(together, axis=0)], axis=1).ravel()
        print(f"| {n} | " + " | ".join(f"{number:.3f}" for number in numbers) + " |", flush=True)


def costs_of(classes: int) -> Array:
    """Return costs of three classes with four actions, one of them to abstain, or random ones."""
    if classes == 3:
        return np.array([[0, 1, 1, 0.3], [3, 0, 1, 0.3], [1, 0.5, 0, 0.3]])
    costs = np.random.default_rng(17).exponential(size=(classes, classes))
    np.fill_diagonal(costs, 0.0)
    return costs


def true_regret_of_rows(family: str, classes: int, rows: int) -> float:
    """Return the regret of a family, by many scores and their true probabilities."""
    kind, name = canonical.FAMILIES[family]
    p = canonical.scores(kind, classes, rows, rng_of("decisions truth", family, classes))
    costs = costs_of(classes)
    expected, taken = canonical.mapped(name, p) @ costs, np.argmin(p @ costs, axis=1)
    return float((expected[np.arange(rows), taken] - expected.min(axis=1)).mean())


class Several(NamedTuple):
    family: str
    classes: int
    n: int
    repetitions: int


def one_cell_of_rows(cell: Several) -> tuple[float, Array]:
    """Return the truth, and (repetitions, 5) of value, ends, and ends of the recipe before."""
    kind, name = canonical.FAMILIES[cell.family]
    truth = true_regret_of_rows(cell.family, cell.classes, LARGE)
    rng, costs, found = rng_of("decisions rows", *cell[:3]), costs_of(cell.classes), []
    for _ in range(cell.repetitions):
        p = canonical.scores(kind, cell.classes, cell.n, rng)
        rows = Simplex.of(p, canonical.families.labels(canonical.mapped(name, p), rng))
        error = CanonicalError.of(SoftmaxPosterior.of(rows))
        known = CanonicalDecisions(rows, error.posterior, error.held_out, costs)
        least, most = np.quantile(known.regret_draws, [0.025, 0.975])
        (mean,), (apart,), _ = known.gain
        before = max(min(least, mean - 1.96 * apart), 0.0), max(most, mean + 1.96 * apart)
        found.append((known.value, *known.ends(1.96, LEVEL), *before))
    return truth, np.array(found)


def matrix(share: float, jobs: int, sizes: list[int] | None) -> None:
    """Print error, coverage and width for each number of classes and rows."""
    names = ("classes", "actions", "n", "mean truth", "MAE x 1000", "calibrated reads", "coverage", "least")
    names += ("width", "over that before", "coverage before", "its least")
    print("\n| " + " | ".join(names) + " |\n" + "|---" * len(names) + "|")
    families = tuple(canonical.FAMILIES)
    with ProcessPoolExecutor(jobs) as pool:
        for classes, times in ROWS.items():
            for n in (n for n in times if not sizes or n in sizes):
                count = max(4, round(times[n] * share))
                cells = [Several(family, classes, n, count) for family in families]
                truth, found = (
                    np.array(part) for part in zip(*pool.map(one_cell_of_rows, cells), strict=True)
                )
                value, low, high, least, most = np.moveaxis(found, 2, 0)
                at = truth[:, None]
                held, before = ((a <= at + 1e-9) & (at <= b + 1e-9) for a, b in ((low, high), (least, most)))
                worst, worst_before = (int(part.mean(axis=1).argmin()) for part in (held, before))
                width = (high - low).mean()
                reads = value[truth == 0].mean(axis=1).max()
                shown = [classes, costs_of(classes).shape[1], n, f"{truth.mean():.4f}"]
                shown += [f"{1e3 * np.abs(value - at).mean():.2f}", f"{reads:.1e}", f"{held.mean():.3f}"]
                shown += [f"{held[worst].mean():.3f} {families[worst]}", f"{width:.5f}"]
                shown += [f"{width / (most - least).mean():.2f}", f"{before.mean():.3f}"]
                shown += [f"{before[worst_before].mean():.3f} {families[worst_before]}"]
                print("| " + " | ".join(map(str, shown)) + " |", flush=True)


def speed() -> None:
    """Print seconds for a million rows."""
    import calibrant

    score, outcome = FAMILIES["flat"].draw(np.random.default_rng(0), 1_000_000)
    label = outcome.astype(int)
    jobs = {
        "curve of 99 thresholds, with its band": lambda: calibrant.regret_curve(label, score),
        "regret at one threshold": lambda: calibrant.regret(label, score, 0.2),
        "best threshold": lambda: calibrant.best_threshold(label, score, (1, 9)),
        "sum of the bytes": lambda: score.sum() + label.sum(),
    }
    for name, job in jobs.items():
        times = []
        for _ in range(5):
            started = time.perf_counter()
            job()
            times.append(time.perf_counter() - started)
        print(f"{name:40} {min(times):.4f} s")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--share", type=float, default=1.0, help="of the repetitions")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--sizes", nargs="*", type=int)
    parts = ("binary", "benefit", "matrix", "speed")
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    arguments = parser.parse_args()
    if "binary" in arguments.parts:
        binary(arguments.share, arguments.jobs, arguments.sizes)
    if "benefit" in arguments.parts:
        benefit(arguments.share, arguments.sizes)
    if "matrix" in arguments.parts:
        matrix(arguments.share, arguments.jobs, arguments.sizes)
    if "speed" in arguments.parts:
        speed()


if __name__ == "__main__":
    main()

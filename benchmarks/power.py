"""Size and power of the test of calibration in `calibrant.estimate`, beside three others.

    python benchmarks/power.py               # size: 4000 repetitions; power: 400
    python benchmarks/power.py --share 0.05  # a twentieth of them

Size: calibrated models, smooth, saturated and discrete scores; and 1000 rows with weights that are strongly
spread (log-normal, 1.5), as rows and as a sketch of them. Power: the oscillating bumps of Lee et
al. (T-Cal; uniform scores, smoothness .6, 10 000 rows), with 71 of them on the middle half, an L2 error of
.054, and with 125, which is .054 by the paper's formula and .038 over all scores; and smooth
alternatives, rare outcomes with too low scores, and gaps that alternate over few distinct scores. Beside it
a test by the ECE of 15 equal bins, one by ECCE-R, the range of the cumulated residuals over its standard
deviation, and one by the debiased L2 error of 15 bins of equal mass, all with simulated critical values.
"""

from __future__ import annotations

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from calibrant.estimators import Binned, Cumulative, Debiased
from calibrant.experiment.distributions import rng_of
from calibrant.experiment.families import FAMILIES
from calibrant.inference import null
from calibrant.score_data import Cells, Residuals, Sample

SIZES = (100, 500, 2000, 10_000)
# Calibrated scores: three kinds drawn here, and those of three families.
KINDS = ("uniform", "saturated", "discrete", "rare", "certain", "seven")
# Size of the gap and numbers of rows, by family.
RARE_AND_FEW = {
    "rare": (1.0, (2000, 5000)),
    "rare-high": (1.0, (2000, 5000)),
    "prior-5": (0.1, (500, 2000)),
    "seven": (1.0, (200, 500)),
    "twenty": (1.0, (500, 2000)),
    "zigzag": (0.5, (2000,)),
    "step": (1.0, (500, 2000)),
    "top": (0.5, (500, 2000)),
    "certain": (0.5, (500, 2000)),
}


def bumps(score, count):
    """Outcome probabilities with so many bumps of alternating sign on the middle half."""
    place = 2 * count * (score - 0.25)
    inner = np.clip(place - np.floor(place), 1e-9, 1 - 1e-9)
    gap = 100 * count**-0.6 * np.exp(-1 / (inner * (1 - inner))) * (-1) ** np.floor(place)
    return score + np.where((score >= 0.25) & (score <= 0.75), gap, 0.0)


def scores_of(kind, rng, n):
    if kind == "uniform":
        return rng.random(n)
    if kind == "saturated":
        return rng.beta(1.1, 0.1, n)
    if kind == "discrete":
        return rng.integers(0, 11, n) / 10
    return FAMILIES[kind].sample(rng, n)[0]


def p_values(score, outcome, rng, size):
    """Ours, 15 bins, ECCE-R, debiased L2: each by simulation from the scores."""
    ours = null.lazy_test(Residuals.of(Sample(score, outcome)), "l1", rng, null.DATA_SETS)().p_value
    drawn = rng.random((size, score.size)) < score
    found = [ours]
    for estimator, norm in (
        (Binned("uniform", 15), "l1"),
        (Cumulative("kuiper"), "l1"),
        (Debiased(15), "l2"),
    ):
        seen = estimator.fit(Sample(score, outcome)).error(norm)
        simulated = estimator.fit(Sample(np.broadcast_to(score, drawn.shape), drawn)).error(norm)
        found.append((1 + np.count_nonzero(simulated >= seen - 1e-12)) / (1 + size))
    return found


def size_cell(task):
    kind, n, repetitions = task
    rng = rng_of("size", *task)
    found = []
    for _ in range(repetitions):
        score = scores_of(kind, rng, n)
        sample = Sample(score, rng.random(n) < score)
        found.append(null.lazy_test(Residuals.of(sample), "l1", rng, 199)().p_value)
    return np.mean(np.array(found) <= 0.05)


def weighted_cell(task):
    """Size on weighted rows, and on the sums of the same rows."""
    n, repetitions = task
    rng = rng_of("weighted", *task)
    found = []
    for _ in range(repetitions):
        score, seed = rng.random(n), int(rng.integers(2**63))
        rows = Sample(score, rng.random(n) < score, rng.lognormal(0, 1.5, n), counts=False)
        p = [
            null.lazy_test(Residuals.of(evidence), "l1", np.random.default_rng(seed), 199)().p_value
            for evidence in (rows, Cells.of(rows))
        ]
        found.append(p)
    return np.mean(np.array(found) <= 0.05, axis=0)


def power_cell(task):
    name, factor, n, repetitions = task
    rng = rng_of("power", *task)
    found = []
    for _ in range(repetitions):
        if name == "bumps":
            score = rng.random(n)
            outcome = rng.random(n) < bumps(score, factor)
        else:
            score, outcome = FAMILIES[name].shrunk(factor).draw(rng, n)
        found.append(p_values(score, outcome, rng, 199))
    return np.mean(np.array(found) <= 0.05, axis=0)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--share", type=float, default=1.0, help="of the repetitions")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--no-size", action="store_true", help="power only")
    arguments = parser.parse_args()
    sized, powered = (max(10, round(count * arguments.share)) for count in (4000, 400))
    started = time.perf_counter()
    sizes = [(kind, n, sized) for kind in KINDS for n in SIZES]
    weighted = [(1000, sized)]
    if arguments.no_size:
        sizes, weighted = [], []
    smooth = [
        ("square", 0.3),
        ("sqrt", 0.3),
        ("flat", 0.3),
        ("steep", 0.3),
        ("logistic", 0.2),
        ("power", 0.5),
        ("shift", 1.0),
    ]
    powers = [("bumps", count, 10_000, powered) for count in (71, 125)]
    powers += [(name, factor, n, powered) for name, factor in smooth for n in (200, 1000)]
    powers += [(name, factor, n, powered) for name, (factor, many) in RARE_AND_FEW.items() for n in many]
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for task, found in zip(sizes, pool.map(size_cell, sizes), strict=True):
            error = np.sqrt(found * (1 - found) / task[2])
            print(f"size   {task[0]:10} n {task[1]:6}  {found:.4f} ({error:.4f})", flush=True)
        for task, found in zip(weighted, pool.map(weighted_cell, weighted), strict=True):
            error = np.sqrt(found * (1 - found) / task[1])
            for name, size, off in zip(("rows", "sketch"), found, error, strict=True):
                print(f"size   weighted {name:6} n {task[0]:6}  {size:.4f} ({off:.4f})", flush=True)
        for task, found in zip(powers, pool.map(power_cell, powers), strict=True):
            error = np.sqrt(np.maximum(found * (1 - found), 0.25 / task[3]) / task[3])
            ours, bins, range_, debiased = found
            print(
                f"power  {task[0]:9} x {task[1]:3} n {task[2]:6}  ours {ours:.3f} ({error[0]:.3f})  "
                f"15 bins {bins:.3f}  ECCE-R {range_:.3f}  debiased {debiased:.3f}"
                f"{'  BEHIND' if ours < max(range_, debiased) - 0.05 else ''}",
                flush=True,
            )
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()

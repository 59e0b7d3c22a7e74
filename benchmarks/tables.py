"""Coverage and time of `calibrant.estimate_by`.

    python benchmarks/tables.py                # 200 tables of each kind, some 20 minutes on two cores
    python benchmarks/tables.py --share 0.1
    python benchmarks/tables.py --time         # 1e5 rows in 1,000 cells and 1e6 rows in 10,000 cells

The true error of every cell is known. Printed for each kind of table: the share of intervals of cells that
hold the true error, of macro averages that do, of tables in which all simultaneous intervals do, and the
share of p-values of calibrated cells below 5 %. The peer of `--time` is a loop over `calibrant.estimate` for
the first cells, scaled to all of them; the cells must be equal to those of the table.
"""

from __future__ import annotations

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor
from functools import cache

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from scipy.special import ndtr

import calibrant
from calibrant.experiment.distributions import rng_of

SIZES = (300, 300, 1000, 1000, 5000, 5000)
# The gap, frequency minus score, up to its scale.
SHAPES = {
    "high": lambda s: -s * (1 - s),
    "low": lambda s: s * (1 - s),
    "crossing": lambda s: s * (1 - s) * (1 - 2 * s),
    "local": lambda s: np.where((s > 0.7) & (s < 0.9), -1.0, 0.0),
    "wavy": lambda s: s * (1 - s) * np.sin(6 * np.pi * s),
    "top": lambda s: np.where(s > 0.9, -1.0, 0.0),
}
ALL = tuple(SHAPES)
# Sizes and true errors of the cells, and the largest number of rows of a cluster, which all cells share.
KINDS = {
    "calibrated": (SIZES, (0.0,) * 6, 0),
    "equal errors": (SIZES, (0.05,) * 6, 0),
    "half calibrated": (SIZES, (0.0, 0.05) * 3, 0),
    "small errors": (SIZES, (0.01,) * 6, 0),
    "20 cells, calibrated": ((300,) * 20, (0.0,) * 20, 0),
    "20 cells, half": ((300,) * 20, (0.0, 0.05) * 10, 0),
    "clusters, calibrated": ((300, 1000) * 3, (0.0,) * 6, 10),
    "clusters, equal errors": ((300, 1000) * 3, (0.05,) * 6, 10),
    "shared questions": ((1000,) * 6, (0.05,) * 6, 1),
}


@cache
def scale(shape):
    """Return the factor that gives a shape a mean absolute gap of one over uniform scores."""
    grid = (np.arange(200_000) + 0.5) / 200_000
    return 1 / np.abs(SHAPES[shape](grid)).mean()


def rows(rng, sizes, errors, largest):
    """Return outcomes, scores, cells and clusters of a table; without clusters None."""
    cell = np.repeat(np.arange(len(sizes)), sizes)
    score = rng.random(cell.size)
    chance = score.copy()
    for k, error in enumerate(errors):
        shape = ALL[k % len(ALL)]
        chance[cell == k] += error * scale(shape) * SHAPES[shape](score[cell == k])
    assert chance.min() >= 0 <= 1 - chance.max() + 1e-12
    if not largest:
        return rng.random(cell.size) < chance, score, cell, None
    members = np.repeat(np.arange(max(sizes)), rng.integers(1, largest + 1, max(sizes)))
    cluster = np.concatenate([members[:n] for n in sizes])
    # Rows of a cluster, in all cells, share three tenths of the variance of a normal variable.
    common = rng.standard_normal(max(sizes))[cluster]
    latent = np.sqrt(0.3) * common + np.sqrt(0.7) * rng.standard_normal(cell.size)
    return ndtr(latent) < chance, score, cell, cluster


def one_kind(task):
    """Return shares over repetitions: cells covered, the least of a cell, macro, all at once, alarms."""
    kind, repetitions, simultaneous = task
    sizes, errors, largest = KINDS[kind]
    truth, covered, macro, alarms, width = np.array(errors), [], [], [], []
    rng = rng_of("tables", kind)
    for _ in range(repetitions):
        y, score, cell, cluster = rows(rng, sizes, errors, largest)
        table = calibrant.estimate_by(
            y, score, cell, cluster=cluster, n_resamples=99, simultaneous=simultaneous, labels=(False, True)
        )
        low, high, p = np.array([(each.low, each.high, each.p_value) for each in table.estimates]).T
        covered.append((low <= truth + 1e-9) & (truth <= high + 1e-9))
        macro.append(table.macro.low <= truth.mean() + 1e-9 and truth.mean() <= table.macro.high + 1e-9)
        alarms.append(p[truth == 0] <= 0.05)
        width.append(table.macro.high - table.macro.low)
    covered = np.array(covered)
    false_alarms = np.mean(alarms) if (truth == 0).any() else np.nan
    by_cell = covered.mean(axis=0)
    return (
        covered.mean(),
        by_cell.min(),
        np.mean(macro),
        covered.all(axis=1).mean(),
        false_alarms,
        np.mean(width),
    )


def timed(n_rows, n_cells, looped=100):
    """Print how long a table takes, and a loop over its cells."""
    rng = np.random.default_rng(0)
    score, cell = rng.random(n_rows), rng.integers(0, n_cells, n_rows)
    y = rng.random(n_rows) < np.where(cell % 2, score, score**1.3)
    calibrant.estimate(y[:100], score[:100])
    started, used = time.perf_counter(), time.process_time()
    table = calibrant.estimate_by(y, score, cell)
    table_time, table_used = time.perf_counter() - started, time.process_time() - used
    started, used = time.perf_counter(), time.process_time()
    for k, (_, expected) in zip(range(looped), table.cells.items(), strict=False):
        mine = cell == k
        found = calibrant.estimate(y[mine], score[mine], labels=(False, True))
        same = (found.value, found.low, found.high) == (expected.value, expected.low, expected.high)
        assert same, k
    factor = n_cells / looped
    loop_time, loop_used = (
        factor * (now - then) for now, then in ((time.perf_counter(), started), (time.process_time(), used))
    )
    print(
        f"{n_rows:,} rows, {n_cells:,} cells: estimate_by {table_time:.1f} s "
        f"({table_used:.1f} s of processor time), "
        f"loop {loop_time:.1f} s ({loop_used:.1f} s)",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--share", type=float, default=1.0, help="of the repetitions")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="kinds whose name holds this")
    parser.add_argument("--time", action="store_true", help="measure the time instead of the coverage")
    arguments = parser.parse_args()
    if arguments.time:
        timed(100_000, 1_000)
        timed(1_000_000, 10_000)
        return
    count = max(5, round(200 * arguments.share))
    kinds = [kind for kind in KINDS if arguments.only in kind]
    tasks = [(kind, count, simultaneous) for kind in kinds for simultaneous in (False, True)]
    print(f"{count} tables of each kind")
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for (kind, _, simultaneous), found in zip(tasks, pool.map(one_kind, tasks), strict=True):
            cells, least, macro, together, alarms, width = found
            print(
                f"{kind:24} {'simultaneous' if simultaneous else 'plain':13} "
                f"cells {cells:.3f} (least {least:.3f})  "
                f"all {together:.3f}  macro {macro:.3f} (width {width:.3f})  alarms {alarms:.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()

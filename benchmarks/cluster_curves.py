"""How often bands and intervals with `cluster=` hold the true frequency where rows depend on each other.

    python benchmarks/cluster_curves.py                                # 400 samples a cell
    python benchmarks/cluster_curves.py --more                         # all columns, twice the time
    python benchmarks/cluster_curves.py --scores own --family seven    # other scores
    python benchmarks/cluster_curves.py --share 0.1 --rows 300         # a tenth of the samples

A sample has clusters of equal size whose outcomes have the given correlation. Scores are one for the cluster
(`shared`: a question and its answers), near each other, or each row's own. In the family `square` scores are
uniform; `seven` has seven scores that repeat. With gap 0 the model is calibrated. A cell of the study is
family, gap, rows in a cluster, correlation, scores and rows.

Columns: coverage of the pointwise 95 % band of `reliability_curve`, averaged over the scores of the rows;
the lowest of its coverages at the 5, 25, 50, 75 and 95 % quantiles; coverage of the whole curve by the
simultaneous band; that of the intervals of `reliability_diagram` with ten bins of equal mass, over bins; that
of `Calibrator.predict_interval`, over rows; and the band and the bins without `cluster=`. With `--more` the
simultaneous band, the calibrator and what happens without clusters are looked at in one of four samples.
"""

from __future__ import annotations

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import calibrant
from calibrant.experiment.distributions import rng_of
from calibrant.experiment.families import EXACT, FEW

SAMPLES, FEWER = 400, 4
SIZES, CORRELATIONS, ROWS, GAPS = (10, 3, 1), (0.0, 0.2, 0.5), (300, 1000, 5000), (0.0, 1.0)
QUANTILES = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
LIKE = {"own": 0.0, "near": 0.7, "shared": 1.0}
COLUMNS = ("band", "lowest", "whole", "bins", "map", "band alone", "bins alone")


def cells(families=("square",), gaps=GAPS, scores=("shared",), sizes=SIZES, rows=ROWS):
    """Return family, gap, rows in a cluster, correlation, scores and rows of each cell."""
    return [
        cell
        for cell in product(families, sorted(gaps, reverse=True), sizes, CORRELATIONS[::-1], scores, rows)
        if cell[2] > 1 or (cell[3] == 0 and cell[4] == scores[0])
    ]


def uniform(rng, cluster, correlation):
    """Return uniform numbers whose normal scores correlate within a cluster."""
    from scipy.special import ndtr

    shared, own = rng.standard_normal(cluster.max() + 1)[cluster], rng.standard_normal(len(cluster))
    return ndtr(np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * own)


def draw(rng, name, gap, size, correlation, scores, rows):
    """Return scores, true frequencies, outcomes and clusters."""
    family = (EXACT | FEW)[name].shrunk(gap)
    cluster = np.repeat(np.arange(rows // size), size)
    score, chance = family.pairs(
        family.quantile(np.clip(uniform(rng, cluster, LIKE[scores]), 1e-9, 1 - 1e-9))
    )
    if scores == "shared" and correlation > 0:
        mean, spread = np.clip(chance[::size], 1e-9, 1 - 1e-9), 1 / correlation - 1
        return (
            score,
            chance,
            rng.random(len(score)) < rng.beta(spread * mean, spread * (1 - mean))[cluster],
            cluster,
        )
    # The correlation of two signs of normal variables is that of their arc sine.
    return score, chance, uniform(rng, cluster, np.sin(np.pi * correlation / 2)) < chance, cluster


def held(low, high, truth):
    """Return whether intervals hold the truth; one that is not known holds it."""
    return (np.nan_to_num(low, nan=0.0) <= truth + 1e-12) & (truth - 1e-12 <= np.nan_to_num(high, nan=1.0))


def of_bins(diagram, score, chance):
    """Return whether the interval of each bin holds the mean frequency of its rows."""
    index = np.searchsorted(diagram.edges[1:-1], score, side="right")
    count = np.bincount(index, minlength=len(diagram.count))
    truth = np.bincount(index, chance, len(count)) / np.maximum(count, 1)
    return held(diagram.low, diagram.high, truth)[count > 0]


def one_cell(task):
    """Return the columns of a cell."""
    *cell, samples, more = task
    rng, found = rng_of("curves of clusters", *cell), []
    for k in range(samples):
        score, chance, outcome, cluster = draw(rng, *cell)
        at = np.argsort(score, kind="stable")[(QUANTILES * (len(score) - 1)).astype(int)]
        rows = outcome.astype(int), score
        row = [np.nan] * 11
        band = calibrant.reliability_curve(*rows, cluster=cluster, labels=(0, 1)).at(score)
        inside = held(band.low, band.high, chance)
        row[0], row[1:6] = inside.mean(), inside[at]
        bins = {"binning": "adaptive:10", "labels": (0, 1)}
        row[7] = of_bins(calibrant.reliability_diagram(*rows, cluster=cluster, **bins), score, chance).mean()
        if more and k % FEWER == 0:
            wide = calibrant.reliability_curve(*rows, cluster=cluster, band="simultaneous", labels=(0, 1)).at(
                score
            )
            row[6] = held(wide.low, wide.high, chance).all()
            ends = (
                calibrant.Calibrator(labels=(0, 1))
                .fit(score, rows[0], cluster=cluster)
                .predict_interval(score)
            )
            row[8] = held(*ends, chance).mean()
            alone = calibrant.reliability_curve(*rows, labels=(0, 1)).at(score)
            row[9] = held(alone.low, alone.high, chance).mean()
            row[10] = of_bins(calibrant.reliability_diagram(*rows, **bins), score, chance).mean()
        found.append(row)
    mean = np.mean([row for row in found if not np.isnan(row[6])] or found, axis=0)
    mean[[0, 1, 2, 3, 4, 5, 7]] = np.mean(found, axis=0)[[0, 1, 2, 3, 4, 5, 7]]
    return mean[0], mean[1:6].min(), *mean[6:]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--share", type=float, default=1.0, help="of the samples")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--family", nargs="+", default=["square"])
    parser.add_argument("--gap", nargs="+", type=float, choices=GAPS, default=GAPS)
    parser.add_argument("--scores", nargs="+", choices=tuple(LIKE), default=["shared"])
    parser.add_argument("--size", nargs="+", type=int, default=SIZES, help="rows in a cluster")
    parser.add_argument("--rows", nargs="+", type=int, default=ROWS)
    parser.add_argument("--more", action="store_true", help="the columns that are of one sample in four")
    parser.add_argument("--out", type=Path, help="append the lines to a file too")
    options = parser.parse_args()
    samples = max(4, round(SAMPLES * options.share))
    tasks = [
        (*cell, samples, options.more)
        for cell in cells(options.family, options.gap, tuple(options.scores), options.size, options.rows)
    ]
    started = time.perf_counter()
    print("family  gap size icc  scores   rows  " + "  ".join(COLUMNS))
    with ProcessPoolExecutor(options.jobs) as pool:
        for task, row in zip(tasks, pool.map(one_cell, tasks), strict=True):
            name, gap, size, correlation, scores, rows, *_ = task
            line = f"{name:7} {gap:3g} {size:4} {correlation:3} {scores:7} {rows:5}  "
            line += "  ".join(f"{each:{len(name)}.3f}" for each, name in zip(row, COLUMNS, strict=True))
            print(line, flush=True)
            if options.out is not None:
                with options.out.open("a") as file:
                    file.write(line + "\n")
    print(f"{samples} samples, {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()

"""A month of predictions in daily Parquet files, with labels that come late and one broken day.

    python thirty_days.py month

The folder gets `day=2026-05-01/part.parquet` and so on, made with a seed, and a sketch for each day. The same
month is then read twice: from Python, and by the commands that a scheduler would run. The error of the month
is small, and hides the broken day: limits for each day find it.
"""

import sys
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import calibrant
from calibrant.cli import main

FIRST, DAYS, ROWS = date(2026, 5, 1), 30, 2000
BROKEN = date(2026, 5, 17)  # a deployment that squares the scores
LATE = {25: 0.2, 26: 0.4, 27: 0.6, 28: 0.8, 29: 0.95}  # share of labels that have not come, by day
LIMIT = 0.1


def write(folder, seed=0):
    """Write a partition for each day; a label that has not come is null."""
    for k, rng in enumerate(np.random.default_rng(seed).spawn(DAYS)):
        day = FIRST + timedelta(days=k)
        probability = rng.beta(1.2, 1.2, ROWS)
        label = rng.random(ROWS) < probability
        late = rng.random(ROWS) < LATE.get(k, 0)
        score = probability**2 if day == BROKEN else probability
        path = Path(folder, f"day={day}", "part.parquet")
        path.parent.mkdir(parents=True)
        parquet.write_table(pa.table({"label": pa.array(label, mask=late), "score": score}), path)


def from_python(folder):
    """Return the sketch of each day, the estimates, and the broken day compared with the day before."""
    sketches = {
        path.name.removeprefix("day="): calibrant.Sketch.from_files(path, missing="drop")
        for path in sorted(Path(folder).glob("day=*"))
    }
    estimates = {day: sketch.estimate(n_resamples=99) for day, sketch in sketches.items()}
    for day, result in estimates.items():
        totals = sketches[day].totals
        print(
            f"{day}  {totals.rows:5} rows  {totals.dropped:5} without label  "
            f"{result.value:.3f} ({result.low:.3f} to {result.high:.3f})" + "  broken" * (result.low > LIMIT)
        )
    month = sum(sketches.values())
    print(month.estimate())
    days = [str(BROKEN - timedelta(days=1)), str(BROKEN)]
    comparison = calibrant.compare({day: sketches[day] for day in days})
    print(comparison)
    return sketches, estimates, comparison


def run(*words):
    """Run a command and return its exit code."""
    print("$ calibrant", *(word if len(words) < 9 else Path(word).name for word in map(str, words)))
    try:
        main([str(word) for word in words], standalone_mode=False)
    except SystemExit as stop:
        return stop.code
    return 0


def from_commands(folder):
    """Make a sketch for each day, measure them, and compare the month and each day with limits."""
    folder, paths = Path(folder), []
    for day in sorted(folder.glob("day=*")):
        paths.append(folder / f"{day.name.removeprefix('day=')}.sketch")
        run("sketch", "make", day, "--drop-missing", "--quiet", "-o", paths[-1])
    run("sketch", "show", *paths)
    month, broken = folder / "month.sketch", folder / f"{BROKEN}.sketch"
    before = folder / f"{BROKEN - timedelta(days=1)}.sketch"
    run("sketch", "merge", *paths, "-o", month)
    each_day = [folder / "day=*", "--groups", "day", "--drop-missing", "--quiet", "--max-ece", LIMIT]
    return {
        "month": run("check", month, "--max-ece", LIMIT),
        "each day": run("check", *each_day, "--markdown", folder / "days.md"),
        "change": run("check", broken, "--baseline", before, "--max-worse", 0.05),
        "compare": run("compare", before, broken, "--max-worse", 0.05, "-o", folder / "change.html"),
    }


if __name__ == "__main__":
    write(sys.argv[1])
    from_python(sys.argv[1])
    print(from_commands(sys.argv[1]))

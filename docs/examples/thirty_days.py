"""A month of predictions in daily Parquet files, with labels that come late and one broken day.

    python thirty_days.py month

The folder gets `day=2026-05-01/part.parquet` and so on, made with a seed, and a sketch for each day. The same
month is then read twice: from Python, and by the commands that a scheduler would run.
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
LIMIT = 0.05


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
    """Return the sketch of each day, and the estimates; print a line for each day."""
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
    return sketches, estimates


def run(*words):
    """Run a command and return its exit code."""
    print("$ calibrant", *words)
    try:
        main([str(word) for word in words], standalone_mode=False)
    except SystemExit as stop:
        return stop.code
    return 0


def from_commands(folder):
    """Make a sketch for each day, look at them, add them up, and gate the month and the broken day."""
    paths = []
    for day in sorted(Path(folder).glob("day=*")):
        paths.append(Path(folder, f"{day.name.removeprefix('day=')}.sketch"))
        run("sketch", "make", day, "--drop-missing", "--quiet", "-o", paths[-1])
    run("sketch", "show", *paths)
    run("sketch", "merge", *paths, "-o", Path(folder, "month.sketch"))
    checks = {
        "month": [Path(folder, "month.sketch")],
        "days": paths,
        "broken": [Path(folder, f"{BROKEN}.sketch")],
    }
    return {name: run("check", *files, "--max-ece", LIMIT) for name, files in checks.items()}


if __name__ == "__main__":
    write(sys.argv[1])
    from_python(sys.argv[1])
    print(from_commands(sys.argv[1]))

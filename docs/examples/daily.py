"""The calibration of a service: a sketch for each model and day, answered for any range of days.

    python daily.py add models churn 2026-05-04 batch.csv      # a header, then label,score
    python daily.py ask models churn 2026-05-01 2026-05-31

The folder holds `models/churn/2026-05-04.sketch` and so on, some 300 kB each however many rows there were.
"""

import argparse
from datetime import date, timedelta
from pathlib import Path

import numpy as np

import calibrant


def path_of(folder, model, day):
    return Path(folder) / model / f"{date.fromisoformat(str(day))}.sketch"


def read(path):
    return calibrant.Sketch.load(path) if path.exists() else calibrant.Sketch(notion="binary")


def rows(folder, model, day):
    """Rows that are safely kept: where to go on after a crash."""
    return read(path_of(folder, model, day)).totals.rows


def add(folder, model, day, y_true, y_prob):
    """Add a batch. It is kept whole or not at all, whenever the process or the machine stops.

    One process at a time may add to a day.
    """
    path = path_of(folder, model, day)
    path.parent.mkdir(parents=True, exist_ok=True)
    sketch = read(path).update(y_true, y_prob)
    sketch.save(path)
    return sketch.totals.rows


def between(folder, model, first, last):
    """One sketch of all days from the first to the last, those without any data included."""
    first, last = (date.fromisoformat(str(day)) for day in (first, last))
    days = (first + timedelta(days=k) for k in range((last - first).days + 1))
    return sum((read(path_of(folder, model, day)) for day in days), calibrant.Sketch(notion="binary"))


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    adding, asking = commands.add_parser("add"), commands.add_parser("ask")
    for command, more in ((adding, ("day", "batch")), (asking, ("first", "last"))):
        for name in ("folder", "model", *more):
            command.add_argument(name)
    given = parser.parse_args(arguments)
    if given.command == "add":
        label, score = np.loadtxt(given.batch, delimiter=",", skiprows=1, unpack=True, ndmin=2)
        kept = add(given.folder, given.model, given.day, label, score)
        print(f"{given.model} {given.day}: {kept} rows")
    else:
        found = between(given.folder, given.model, given.first, given.last)
        print(found.estimate(rng=0) if found.n else f"{given.model}: no rows in these days")


if __name__ == "__main__":
    main()

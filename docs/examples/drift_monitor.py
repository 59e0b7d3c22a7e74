"""Thirty days of predictions of a model that drifts, watched day by day.

    python drift_monitor.py month

From day 19 on the model is overconfident in its largest scores. The folder gets `dt=2026-05-01/part.parquet`
and so on, made with a seed, and `monitor.html`. The same days are then watched twice: from Python, and by
the command that a scheduler would run every night.
"""

import sys
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import calibrant
from calibrant.cli import main

FIRST, DAYS, ROWS, ONSET = date(2026, 5, 1), 30, 2000, 18
DELAY = 7  # days after which all labels are known


def days(seed=0):
    """Yield the date, the labels and the scores of each day."""
    for k, rng in enumerate(np.random.default_rng(seed).spawn(DAYS)):
        score = rng.beta(0.8, 2.4, ROWS)
        drifted = np.where(score > 0.6, score - 0.12, score)
        label = rng.random(ROWS) < (drifted if k >= ONSET else score)
        yield FIRST + timedelta(days=k), label, score


def write(folder):
    """Write a partition for each day."""
    for day, label, score in days():
        path = Path(folder, f"dt={day}", "part.parquet")
        path.parent.mkdir(parents=True)
        parquet.write_table(pa.table({"label": label.astype(int), "score": score}), path)


def from_python(folder):
    """Return the monitor after the last day, and write its page."""
    monitor = calibrant.Monitor(alpha=0.05)
    for day, label, score in days():
        monitor.update(label, score, at=day)
    print(monitor)
    monitor.to_html(Path(folder, "monitor.html"))
    return monitor


def from_command(folder):
    """Run the nightly command as on three days; return its exit codes: 0 no alarm, 1 alarm."""
    codes = []
    for today in (15, 26, 37):
        now = FIRST + timedelta(days=today)
        words = ["monitor", folder, "--delay", f"{DELAY}", "--now", f"{now}"]
        words += ["--state", Path(folder, "state.json"), "-o", Path(folder, "command.html")]
        print(f"$ calibrant {' '.join(map(str, words))}")
        try:
            main([str(word) for word in words], standalone_mode=False)
        except SystemExit as stop:
            codes.append(stop.code)
    return codes


if __name__ == "__main__":
    write(sys.argv[1])
    from_python(sys.argv[1])
    print(from_command(sys.argv[1]))

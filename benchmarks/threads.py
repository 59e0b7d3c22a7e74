"""Rows that threads lose when they update one object, and what the lock of a sketch costs.

    python benchmarks/threads.py               # rows lost, states that can be loaded, time of small updates

Threads update one sketch and one monitor at the same time, and take turns every 10 microseconds. Printed are
the rows that the object has afterwards, of those that were added, and the errors. The time of an update is
the smallest of several repetitions, with the time of taking and giving back a lock beside it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

import calibrant

ROWS = 20


def together(update, threads, times):
    """Call `update(rng)` so many times in each thread; return the errors."""
    errors = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(times):
            try:
                update(rng)
            except ValueError as error:
                errors.append(str(error))

    each = [threading.Thread(target=work, args=(seed,)) for seed in range(threads)]
    for thread in each:
        thread.start()
    for thread in each:
        thread.join()
    return errors


def binary(rng, rows=ROWS):
    """Return outcomes and scores."""
    score = rng.random(rows)
    return (rng.random(rows) < score).astype(int), score


def lost(threads=2, times=400):
    """Yield for each object its name, the rows it has, those that were added, and the number of errors."""
    sketch = calibrant.Sketch()
    errors = together(lambda rng: sketch.update(*binary(rng)), threads, times)
    yield "sketch", sketch.totals.rows, threads * times * ROWS, len(errors)
    classes = calibrant.Sketch("classwise", labels=range(30))
    rows = threads * times * ROWS
    errors = together(
        lambda rng: classes.update(rng.integers(0, 30, ROWS), rng.dirichlet([1] * 30, ROWS)), threads, times
    )
    yield "sketch of 30 classes", classes.totals.rows, rows, len(errors)
    monitor, times = calibrant.Monitor(), max(times // 10, 1)
    errors = together(lambda rng: monitor.update(*binary(rng)), threads, times)
    with tempfile.TemporaryDirectory() as folder:
        try:
            monitor.save(Path(folder, "monitor.json"))
            calibrant.Monitor.load(Path(folder, "monitor.json"))
        except ValueError as error:
            errors.append(str(error))
    yield "monitor", round(sum(each.n for each in monitor.history)), threads * times * ROWS, len(errors)


def clock(rows, times=300, repetitions=7):
    """Return the microseconds of an update of so many rows."""
    sketch, batch = calibrant.Sketch(), binary(np.random.default_rng(0), rows)
    sketch.update([0, 1], [0.2, 0.3])
    return best(lambda: sketch.update(*batch), times, repetitions)


def best(call, times, repetitions):
    """Return the smallest mean time of a call, in microseconds."""
    means = []
    for _ in range(repetitions):
        start = time.perf_counter()
        for _ in range(times):
            call()
        means.append((time.perf_counter() - start) / times * 1e6)
    return min(means)


def lock():
    """Take a lock and give it back."""
    with LOCK:
        pass


LOCK = threading.RLock()


def main(arguments=None):
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--times", type=int, default=400, help="updates of each thread")
    given = parser.parse_args(arguments)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for name, rows, added, errors in lost(given.threads, given.times):
            print(f"{name}: {rows:,} of {added:,} rows, {errors} errors")
    finally:
        sys.setswitchinterval(before)
    for rows in (1, 20, 1000):
        print(f"update of {rows:,} rows: {clock(rows, given.times):.1f} microseconds")
    print(f"lock: {best(lock, 10_000, 7):.2f} microseconds")


if __name__ == "__main__":
    main()

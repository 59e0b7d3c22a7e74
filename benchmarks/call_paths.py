"""Count the source files that a call visits, and how often it crosses from one package to another.

    python benchmarks/call_paths.py [--files]

A file counts as visited if one of its functions is called in the main thread after all modules were imported.
Long paths make code hard to follow.
"""

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

import calibrant

ROOT = Path(calibrant.__file__).parent


def visited(call):
    """Return the files of the package that a call visits, and the number of changes between packages."""
    files, changes, last = Counter(), 0, None

    def profile(frame, event, _):
        nonlocal changes, last
        if event != "call" or not frame.f_code.co_filename.startswith(str(ROOT)):
            return
        path = Path(frame.f_code.co_filename).relative_to(ROOT)
        files[str(path)] += 1
        changes += last is not None and path.parts[0] != last
        last = path.parts[0]

    call()  # imports and caches
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return files, changes


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", action="store_true", help="list the files of each call")
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    score = rng.random(1000)
    outcome = (rng.random(1000) < score**2).astype(int)
    calls = {
        "ece": lambda: calibrant.ece(outcome, score),
        "ece uniform:15": lambda: calibrant.ece(outcome, score, estimator="uniform:15"),
        "estimate": lambda: calibrant.estimate(outcome, score, rng=0),
        "assess": lambda: calibrant.assess(outcome, score, rng=0),
        "Sketch.from_files": lambda: calibrant.Sketch.from_files(table, label="y", scores="p", labels=[0, 1]),
    }
    print(f"{'call':<18}{'files':>6}{'changes of package':>20}")
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "scores.csv"
        np.savetxt(table, np.column_stack([outcome, score]), "%.0f,%.17g", header="y,p", comments="")
        for name, call in calls.items():
            files, changes = visited(call)
            print(f"{name:<18}{len(files):>6}{changes:>20}")
            if args.files:
                for path, count in sorted(files.items()):
                    print(f"    {path:<40}{count:>6}")


if __name__ == "__main__":
    main()

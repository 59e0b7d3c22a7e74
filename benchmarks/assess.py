"""What an assessment and its HTML report cost with default settings.

    python benchmarks/assess.py
    python benchmarks/assess.py --only 10000x100 --json assess.json

For each size: seconds of wall time and of processor time (all threads) of `calibrant.assess` and of its
report, the time for the curve of one more class, and the largest memory of the process. Each size runs in a
process of its own. The target is 5 s of wall time for 10,000 rows of 100 classes and 15 s for 50,000 rows of
1000 classes, on two quiet cores; on a loaded machine compare processor times.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

# Rows, classes and groups.
CASES = {
    "10000x2": (10_000, 2, 0),
    "5000x10": (5000, 10, 0),
    "5000x10 in 8 groups": (5000, 10, 8),
    "10000x100": (10_000, 100, 0),
    "50000x1000": (50_000, 1000, 0),
}


def overconfident(n, classes):
    """Labels, and the scores of a network whose logits are too large by a factor of 1.4."""
    rng = np.random.default_rng(0)
    logits = 1.5 * rng.standard_normal((n, classes))
    logits[np.arange(n), rng.integers(classes, size=n)] += 6
    logits -= logits.max(axis=1, keepdims=True)
    true, score = (np.exp(factor * logits) for factor in (1 / 1.4, 1.0))
    edges = np.cumsum(true, axis=1)
    label = (rng.random((n, 1)) * edges[:, -1:] >= edges[:, :-1]).sum(axis=1)
    score /= score.sum(axis=1, keepdims=True)
    return label, score[:, 1] if classes == 2 else score


def timed(function):
    """The result, seconds of wall time and seconds of processor time."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = function()
    return result, time.perf_counter() - wall, time.process_time() - cpu


def measure(case):
    import calibrant

    n, classes, groups = CASES[case]
    label, score = overconfident(n, classes)
    given = {"groups": np.arange(n) % groups} if groups else {}
    found, wall, cpu = timed(lambda: calibrant.assess(label, score, rng=0, **given))
    html, html_wall, html_cpu = timed(found.html)
    one_more = 0.0
    if len(found.by_class) > 12:
        _, one_more, _ = timed(lambda: found.curves["classwise"][found.by_class[-1].estimate.label])
    return {
        "assess_s": wall,
        "assess_cpu_s": cpu,
        "html_s": html_wall,
        "html_cpu_s": html_cpu,
        "html_kb": len(html) / 1e3,
        "curve_s": one_more,
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", default=list(CASES), choices=list(CASES), metavar="CASE")
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.case:
        print(json.dumps(measure(given.case)))
        return
    figures = {}
    print(f"{'rows x classes':<22}{'assess':>9}{'(cpu)':>9}{'html':>8}{'(cpu)':>8}{'curve':>8}{'MB':>8}")
    for case in given.only:
        command = [sys.executable, __file__, "--case", case]
        ran = subprocess.run(command, capture_output=True, text=True, check=True)
        each = figures[case] = json.loads(ran.stdout)
        times = f"{each['assess_s']:>8.2f}s{each['assess_cpu_s']:>8.2f}s{each['html_s']:>7.2f}s"
        print(
            f"{case:<22}{times}{each['html_cpu_s']:>7.2f}s{each['curve_s']:>7.3f}s{each['memory_mb']:>8.0f}"
        )
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()

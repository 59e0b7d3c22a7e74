"""How time and memory grow with the number of rows and of classes: a table and a picture.

    python benchmarks/growth.py
    python benchmarks/growth.py --most 1e8 --write docs/performance.md --picture docs/images/growth.png

Each case runs in a process of its own, on one thread: the least of some rounds in seconds, beside reading
every byte once (`np.sum` of scores and labels) in the same process, and how far the resident memory rises
above the data themselves. The line for plain numpy is the same call with CALIBRANT_PLAIN=1.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from io import BytesIO
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = os.environ["CALIBRANT_THREADS"] = "1"

import numpy as np
from memory_probe import labels_of, peak_bytes, reset_peak, softmax_matrix

# What is asked: the call, its options, and the number of rows or scores up to which it is measured.
CASES = {
    "uniform bins": ("ece", {"estimator": "uniform:15"}, 1e8),
    "adaptive": ("ece", {"estimator": "adaptive"}, 1e8),
    "density": ("ece", {"estimator": "density"}, 1e8),
    "auto": ("ece", {}, 1e8),
    "estimate": ("estimate", {"rng": 0}, 1e7),
    "sketch": ("sketch", {}, 1e8),
    "confidence": ("ece", {"notion": "confidence", "estimator": "uniform:15"}, 5e7),
    "class-wise bins": ("ece", {"notion": "classwise", "estimator": "uniform:15"}, 5e7),
    "class-wise auto": ("ece", {"notion": "classwise"}, 5e7),
}
OF_ONE_SCORE = ("uniform bins", "adaptive", "density", "auto", "estimate", "sketch")
CLASSES = (3, 10, 100, 1000)
SCORES = 10_000_000  # in a matrix, whatever the number of its columns
SECONDS = 1.0  # of rounds, the first one included


def data_of(rows: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(rows + classes)
    if classes == 1:
        p = rng.random(rows)
        return rng.random(rows) < p**1.2, p
    return labels_of(rng, rows, classes), softmax_matrix(rng, rows, classes)


def least(call) -> float:
    taken, start = [], time.perf_counter()
    while not taken or (time.perf_counter() - start < SECONDS and len(taken) < 200):
        before = time.perf_counter()
        call()
        taken.append(time.perf_counter() - before)
    return min(taken)


def measure(case: str, rows: int, classes: int) -> dict[str, float]:
    """Run one case in this process."""
    import calibrant

    function, options, _ = CASES[case]
    y, p = data_of(rows, classes)

    def call(y=y, p=p):
        if function == "sketch":
            return calibrant.Sketch().update(y, p)
        return getattr(calibrant, function)(y, p, **options)

    call(y[:100], p[:100])  # imports and caches belong to no input
    reset_peak()
    before = peak_bytes()
    call()
    memory = max(0, peak_bytes() - before)
    return {"seconds": least(call), "reading": least(lambda: (np.sum(p), np.sum(y))), "bytes": memory}


def in_a_process(case: str, rows: int, classes: int, *, plain: bool = False) -> dict[str, float]:
    command = [sys.executable, __file__, "--one", case, str(rows), str(classes)]
    environment = os.environ | ({"CALIBRANT_PLAIN": "1"} if plain else {})
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        sys.exit(f"{case}, {rows} x {classes}: {done.stderr.strip().splitlines()[-1]}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def shown(seconds: float) -> str:
    """Milliseconds with two digits or more."""
    value = 1e3 * seconds
    return f"{value:.2g}" if value < 10 else f"{value:,.0f}".replace(",", " ")


def heading(first: str, others) -> list[str]:
    cells = [first, *map(str, others), "MB above the data, at the last"]
    return ["| " + " | ".join(cells) + " |", "|---" * len(cells) + "|"]


def by_rows(most: float) -> tuple[list[str], dict[str, list[tuple[float, float]]]]:
    sizes = [10**k for k in range(3, 9) if 10**k <= most]
    lines = [
        "| milliseconds, rows | "
        + " | ".join(f"1e{len(str(n)) - 1}" for n in sizes)
        + " | MB beyond the data, last size |"
    ]
    lines.append("|---" * (len(sizes) + 2) + "|")
    curves: dict[str, list[tuple[float, float]]] = {"reading the bytes": []}
    for case in (*OF_ONE_SCORE, "uniform bins, plain numpy"):
        name, plain = case.split(",")[0], "plain" in case
        found = [in_a_process(name, n, 1, plain=plain) for n in sizes if n <= CASES[name][2]]
        cells = [shown(one["seconds"]) for one in found] + [""] * (len(sizes) - len(found))
        lines.append(f"| {case} | " + " | ".join(cells) + f" | {found[-1]['bytes'] / 1e6:.0f} |")
        curves[case] = [(n, one["seconds"]) for n, one in zip(sizes, found, strict=False)]
        if case == "uniform bins":
            curves["reading the bytes"] = [(n, one["reading"]) for n, one in zip(sizes, found, strict=True)]
    reading = [shown(seconds) for _, seconds in curves["reading the bytes"]]
    lines.append("| reading the bytes | " + " | ".join(reading) + " | |")
    return lines, curves


def by_classes() -> tuple[list[str], dict[str, list[tuple[float, float]]]]:
    lines = [
        "| milliseconds, 10 million scores, by columns | "
        + " | ".join(map(str, CLASSES))
        + " | MB beyond the data, last size |"
    ]
    lines.append("|---" * (len(CLASSES) + 2) + "|")
    curves: dict[str, list[tuple[float, float]]] = {}
    for case in ("confidence", "class-wise bins", "class-wise auto"):
        found = [in_a_process(case, SCORES // c, c) for c in CLASSES]
        cells = " | ".join(shown(one["seconds"]) for one in found)
        lines.append(f"| {case} | {cells} | {found[-1]['bytes'] / 1e6:.0f} |")
        curves[case] = [(c, one["seconds"]) for c, one in zip(CLASSES, found, strict=True)]
        if case == "confidence":
            curves["reading the bytes"] = [(c, one["reading"]) for c, one in zip(CLASSES, found, strict=True)]
    lines.append(
        "| reading the bytes | " + " | ".join(shown(s) for _, s in curves["reading the bytes"]) + " | |"
    )
    return lines, curves


def draw(rows: dict, classes: dict, path: Path) -> None:
    import matplotlib as mpl
    from PIL import Image

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9.5, 4.8), layout="constrained")
    for ax, curves, label in zip(axes, (rows, classes), ("rows", "classes (10 million scores)"), strict=True):
        for name, points in curves.items():
            dashed = name == "reading the bytes"
            style = {"color": "0.5", "linestyle": "--"} if dashed else {"marker": "o", "markersize": 3}
            ax.loglog(*zip(*points, strict=True), label=name, linewidth=1.4, **style)
        ax.set_xlabel(label)
        ax.set_ylabel("seconds, one thread")
        ax.grid(alpha=0.25)
        ax.legend(frameon=False, fontsize=8, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.13))
    with BytesIO() as drawn:
        figure.savefig(drawn, dpi=110)
        Image.open(drawn).convert("RGB").quantize(64).save(path, optimize=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=float, default=1e7, metavar="ROWS", help="the largest number of rows")
    parser.add_argument(
        "--write", type=Path, metavar="FILE", help="put the tables between the marks of a page"
    )
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw them")
    parser.add_argument("--one", nargs=3, metavar=("CASE", "ROWS", "CLASSES"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        case, rows, classes = options.one
        print(json.dumps(measure(case, int(rows), int(classes))))
        return
    lines, rows = by_rows(options.most)
    more, classes = by_classes()
    text = "\n".join([*lines, "", *more])
    print(text)
    if options.write:
        page = options.write.read_text(encoding="utf-8")
        start, end = "<!-- growth -->", "<!-- end of growth -->"
        before, rest = page.split(start)
        options.write.write_text(f"{before}{start}\n{text}\n{end}{rest.split(end)[1]}", encoding="utf-8")
    if options.picture:
        draw(rows, classes, options.picture)


if __name__ == "__main__":
    main()

"""Timings of calibrant against bare numpy and against its peers, side by side in one run, as ratios.

    python benchmarks/peers.py [--only NAME] [--json FILE]

Everything runs on one thread. Within a case the contenders take turns (ours, first peer, second peer, ours,
...), so that a busy machine slows all of them alike; a figure is the median over the rounds. calibrant is
called through its public functions with all their validation; the peers get their input ready-made (tensors
for torch) and are asked for the same quantity in the cheapest honest way. Where it is the same quantity, the
values are compared too.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"
os.environ["CALIBRANT_THREADS"] = "1"

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import contenders as by
import numpy as np
from memory_probe import labels_of, softmax_matrix
from race import Call, Data, Peer, Row, compete, faster, prepare, race, table, within

UNWANTED = ("matplotlib", "sklearn", "pandas", "scipy.stats")


def binary(n: int) -> Data:
    rng = np.random.default_rng(n)
    p = rng.random(n)
    return (rng.random(n) < p**1.3).astype(np.int64), p


def uniform_large() -> list[Row]:
    peers = [
        Peer("bare floor + 3 bincounts", by.run_bare(by.bare_ece), within(1.5), tolerance=1e-9),
        Peer("bare, 1 bincount", by.run_bare(by.lean_ece), within(1.5), tolerance=1e-9),
        Peer("scikit-learn", by.run_sklearn, faster(8), tolerance=1e-6),
        Peer("torchmetrics", by.run_torchmetrics, faster(8), tolerance=1e-6),
        Peer("netcal", by.run_netcal, faster(8), tolerance=1e-6),
    ]
    return compete("uniform, N=1e6", binary(1_000_000), by.our_ece(estimator=f"uniform:{by.BINS}"), peers)


def uniform_sizes() -> list[Row]:
    """From a thousand rows to a hundred million, beside the leanest peer and beside reading the bytes."""
    rows = []
    for power in (3, 4, 5, 6, 7, 8):
        peers = [Peer("relplot binned", by.run_relplot_binned, faster(1), tolerance=1e-6)]
        if power >= 5:
            peers.append(Peer("np.sum of scores and labels", by.run_reading, within(3)))
        ours = by.our_ece(estimator=f"uniform:{by.BINS}")
        rows += compete(f"uniform, N=1e{power}", binary(10**power), ours, peers)
    return rows


def default() -> list[Row]:
    """The estimators that need no choice of bins, at ten million rows, beside reading the bytes."""
    data, rows = binary(10**7), []
    for name, bound in (("adaptive", 7.7), ("density", 6.4), ("auto", 6.4)):
        peers = [Peer("np.sum of scores and labels", by.run_reading, within(bound))]
        rows += compete(f"{name}, N=1e7", data, by.our_ece(estimator=name), peers)
    return rows


def confidence() -> list[Row]:
    """The largest score of each row: what most people ask of a matrix."""
    rng, rows = np.random.default_rng(1), []
    for n, classes, dtype, bound in ((50_000, 1000, np.float32, 1.8), (10**6, 10, np.float64, 3.9)):
        p = softmax_matrix(rng, n, classes).astype(dtype)
        data = labels_of(rng, n, classes), p / p.sum(axis=1, keepdims=True)
        peers = [Peer("np.sum of scores and labels", by.run_reading, within(bound))]
        ours = by.our_ece(notion="confidence", estimator=f"uniform:{by.BINS}")
        rows += compete(f"confidence, {n} x {classes}", data, ours, peers)
    return rows


def uniform_small() -> list[Row]:
    peers = [
        Peer("scikit-learn", by.run_sklearn, faster(1), tolerance=1e-6),
        Peer("torchmetrics", by.run_torchmetrics, faster(1), tolerance=1e-6),
        Peer("netcal", by.run_netcal, faster(1), tolerance=1e-6),
    ]
    return compete("uniform, N=1e3", binary(1000), by.our_ece(estimator=f"uniform:{by.BINS}"), peers)


def adaptive() -> list[Row]:
    def quantile(data):
        return by.run_sklearn(data, by.sklearn_quantile_ece)

    peers = [Peer("scikit-learn quantile", quantile, faster(1.5), tolerance=1e-4)]
    return compete("adaptive, N=1e6", binary(1_000_000), by.our_ece(estimator=f"adaptive:{by.BINS}"), peers)


def density() -> list[Row]:
    peers = [
        Peer("bare floor + 3 bincounts", by.run_bare(by.bare_ece), within(4)),
        Peer("relplot smECE", by.run_relplot_smooth, faster(10)),
    ]
    return compete("density, N=1e6", binary(1_000_000), by.our_ece(estimator="density"), peers)


def classwise() -> list[Row]:
    rng = np.random.default_rng(0)
    p, y = softmax_matrix(rng), labels_of(rng)
    scale, note = p.shape[1] / by.SUBSET, f"{by.SUBSET} of {p.shape[1]} classes, scaled"
    peers = [
        Peer("np.sum of scores and labels", by.run_reading, within(6.7)),
        Peer("relplot binned", by.per_class_relplot, faster(1), tolerance=1e-6),
        Peer("scikit-learn", by.per_class_sklearn, faster(5), scale, note=note),
        Peer("torchmetrics", by.per_class_torchmetrics, faster(5), scale, note=note),
        Peer("scikit-learn, plain call", by.per_class_plain_sklearn, faster(5), scale, note=note),
        Peer("torchmetrics, plain call", by.per_class_plain_torchmetrics, faster(5), scale, note=note),
        Peer("netcal", by.per_class_netcal, faster(5), scale, note=note),
    ]
    ours = by.our_ece(notion="classwise", estimator=f"uniform:{by.BINS}")
    return compete("class-wise, 50 000 x 1000 float32", (y, p), ours, peers)


def python(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)


def last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no output"])[-1][:90]


def classwise_memory() -> list[Row]:
    """Shown in MB; the second column is the input."""
    done = python(str(Path(__file__).with_name("memory_probe.py")))
    rows = []
    for kind, words in [("traced", "numpy"), ("resident", "process")]:
        row = Row(f"class-wise memory in MB | input ({words})", target="<= 30 % more")
        if done.returncode:
            row.note = "ours: " + last_line(done.stderr)
        else:
            found = json.loads(done.stdout)
            row.ours, row.peer = found[kind] / 1e9, found["input"] / 1e9  # the table multiplies by 1000
            row.ratio = row.ours / row.peer
            row.ratio_words, row.met = f"{100 * row.ratio:.3g} % more", row.ratio <= 0.30
        rows.append(row)
    return rows


def curve() -> list[Row]:
    def ready(data):
        import calibrant

        return lambda: calibrant.reliability_curve(*data, method="density", n_boot=500, rng=0).score[0]

    row = Row("curve, N=1000, 500 resamples", target="< 500 ms")
    call, row.note = prepare(ready, binary(1000))
    if call is None:
        row.note = f"ours: {row.note}"
    else:
        row.ours = race({"ours": call})[0]["ours"]
        row.met = row.ours < 0.5
    return [row]


def importing() -> list[Row]:
    """Start of an interpreter with the import, less a start without it; numpy's own beside it."""
    time_row = Row("import calibrant | import numpy", target="< 400 ms")
    lazy_row = Row("import leaves out " + ", ".join(UNWANTED), target="all of them")
    check = python(
        "-c", f"import calibrant, sys; calibrant.ece; print(*(m for m in {UNWANTED!r} if m in sys.modules))"
    )
    statements = {"nothing": "pass", "peer": "import numpy"}
    if check.returncode:
        time_row.note = lazy_row.note = "ours: " + last_line(check.stderr)
    else:
        statements["ours"] = "import calibrant"
        lazy_row.met = not check.stdout.strip()
        lazy_row.note = "" if lazy_row.met else "loaded: " + check.stdout.strip()

    def start(statement: str) -> Call:
        return lambda: python("-c", statement).returncode

    times, _ = race({name: start(statement) for name, statement in statements.items()})
    time_row.peer = times["peer"] - times["nothing"]
    if "ours" in times:
        time_row.ours = times["ours"] - times["nothing"]
        time_row.met = time_row.ours < 0.4
        time_row.ratio = time_row.ours / time_row.peer
        time_row.ratio_words = f"{time_row.ratio:.3g}x time"
    return [time_row, lazy_row]


# The cases with an absolute target come first: `compete` changes the allocator for the rest of the run.
CASES: dict[str, Callable[[], list[Row]]] = {
    "import": importing,
    "curve": curve,
    "memory": classwise_memory,
    "uniform-1e6": uniform_large,
    "uniform-1e3": uniform_small,
    "sizes": uniform_sizes,
    "default": default,
    "confidence": confidence,
    "adaptive": adaptive,
    "density": density,
    "classwise": classwise,
}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="NAME", help="cases whose name holds NAME: " + ", ".join(CASES))
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the rows there too (seconds, GB)")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    chosen = {name: case for name, case in CASES.items() if not options.only or options.only in name}
    if not chosen:
        sys.exit(f"no case holds {options.only!r}; there are: {', '.join(CASES)}")
    rows: list[Row] = []
    for name, case in chosen.items():
        print(f"running {name} ...", file=sys.stderr, flush=True)
        rows += case()
    print(table(rows))
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()

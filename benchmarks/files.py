"""Files into a sketch, against polars reading and summing the same columns, side by side in one run.

    python benchmarks/files.py [--rows 2e7] [--single] [--cold] [--csv 2e6] [--wide 1e5] [--classes 1000]
                               [--folder DIR]

The files are made once, chunk by chunk, and kept in the folder: `--rows 1e9` needs 9 GB of disk and no more
memory than 2e7. Every measurement is a process of its own, which reads a small file first, so that imports
belong to nobody; contenders take turns, and a figure is the best of the rounds, to which other work on the
machine has added least. `pyarrow` reads the same columns, two row groups at a time, and does nothing with
them. The peak is that of the whole process, the libraries included. `calibrant ece` is the command as it is
typed, with its start, its interval and its test.

Files that fit into memory are in the system's cache from the first round on, and then the times are those of
the processors. With `--cold` the system is told to forget the files before every measurement, so that all
come from the disk.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from memory_probe import peak_bytes

HERE = Path(__file__).parent
# Rows of a file and of a row group, and scores of a group of many columns.
FILE, GROUP, SCORES = 10_000_000, 1 << 20, 1 << 24


def make(folder, rows, kind):
    """Labels and scores of a binary model that is not quite calibrated."""
    import pyarrow as pa

    schema = pa.schema([("label", pa.int8()), ("p", pa.float32() if kind == "single" else pa.float64())])

    def chunk(rng, n):
        score = rng.random(n)
        label = (rng.random(n) < score**1.3).astype(np.int8)
        return pa.table([label, score.astype(np.float32) if kind == "single" else score], schema=schema)

    return _files(folder / f"{kind}-{rows}", rows, FILE, GROUP, schema, chunk)


def make_csv(folder, rows):
    """The same as text, in one file."""
    from pyarrow import csv, parquet

    path = folder / f"text-{rows}" / "part-0000.csv"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        source = make(folder, rows, "double")
        csv.write_csv(parquet.read_table(source), path.with_suffix(".new"))
        path.with_suffix(".new").rename(path)
    return path.parent


def make_wide(folder, rows, classes):
    """A softmax over many classes in single precision."""
    import pyarrow as pa

    columns = [(f"p_{k}", pa.float32()) for k in range(classes)]
    schema = pa.schema([("label", pa.int32()), *columns])
    group = max(1, SCORES // classes)

    def chunk(rng, n):
        score = 2 * rng.standard_normal((n, classes), dtype=np.float32)
        score -= score.max(axis=1, keepdims=True)
        np.exp(score, out=score)
        score /= score.sum(axis=1, keepdims=True)
        label = (score.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=classes - 1)
        return pa.table([label.astype(np.int32), *np.ascontiguousarray(score.T)], schema=schema)

    return _files(folder / f"wide-{rows}x{classes}", rows, 10 * group, group, schema, chunk)


def _files(folder, rows, most, group, schema, chunk):
    """Files of at most so many rows, made where they are not there yet."""
    from pyarrow import parquet

    folder.mkdir(parents=True, exist_ok=True)
    for k, first in enumerate(range(0, rows, most)):
        path, rng = folder / f"part-{k:04}.parquet", np.random.default_rng(k)
        if path.exists():
            continue
        with parquet.ParquetWriter(path.with_suffix(".new"), schema) as file:
            for a in range(first, min(first + most, rows), group):
                file.write_table(chunk(rng, min(group, min(first + most, rows) - a)))
        path.with_suffix(".new").rename(path)
    return folder


def is_text(folder):
    return any(folder.glob("*.csv"))


def sketch(folder, notion):
    from calibrant import Sketch

    return Sketch.from_files(str(folder), notion=notion).n


def pyarrow(folder, notion):
    """The rows of all files, read and forgotten."""
    from concurrent.futures import ThreadPoolExecutor

    import pyarrow as pa
    from pyarrow import csv, parquet

    if is_text(folder):
        return sum(batch.num_rows for path in folder.glob("*.csv") for batch in csv.open_csv(path))

    def read(piece):
        path, about, k = piece
        file = parquet.ParquetFile(pa.OSFile(str(path)), metadata=about, buffer_size=1 << 20)
        return file.read_row_group(k, use_threads=False).num_rows

    files = [(path, parquet.read_metadata(path)) for path in sorted(folder.glob("*.parquet"))]
    pieces = [(path, about, k) for path, about in files for k in range(about.num_row_groups)]
    with ThreadPoolExecutor(2) as pool:
        return sum(pool.map(read, pieces))


def polars(folder, notion):
    import polars as pl

    text = is_text(folder)
    frame = pl.scan_csv(str(folder / "*.csv")) if text else pl.scan_parquet(str(folder / "*.parquet"))
    sums = [pl.col(name).cast(pl.Float64).sum() for name in frame.collect_schema().names()]
    return frame.select(*sums).collect(engine="streaming").row(0)[0]


def measured(call, small, folder, notion):
    """Seconds, processor seconds and peak bytes of a call, as JSON."""
    call(small, notion)
    start, cpu = time.perf_counter(), time.process_time()
    call(folder, notion)
    took = {"seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu}
    print(json.dumps(took | {"peak": peak_bytes()}))


def command(small, folder, notion):
    """The same of the command line."""
    start = time.perf_counter()
    call = [sys.executable, "-m", "calibrant", "ece", str(folder), "--notion", notion, "--quiet"]
    subprocess.run(call, check=True, stdout=subprocess.DEVNULL)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = {"seconds": time.perf_counter() - start, "cpu": used.ru_utime + used.ru_stime}
    print(json.dumps(took | {"peak": used.ru_maxrss * 1024}))


def forget(folder):
    """Have the system drop the files from its cache."""
    for path in folder.iterdir():
        file = os.open(path, os.O_RDONLY)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)


def run(contender, small, folder, notion):
    call = [sys.executable, __file__, "--measure", contender, str(small), str(folder), notion]
    done = subprocess.run(call, capture_output=True, text=True, check=True, cwd=HERE)
    return json.loads(done.stdout)


def compare(title, rows, small, folder, notions, rounds, cold, commands=()):
    cases = [("polars", "binary"), ("pyarrow", "binary"), *(("sketch", notion) for notion in notions)]
    cases += [("command", notion) for notion in commands]
    found = {case: [] for case in cases}
    for _ in range(rounds):
        for case in cases:
            if cold:
                forget(folder)
            found[case].append(run(case[0], small, folder, case[1]))
    size = sum(path.stat().st_size for path in folder.iterdir())
    print(f"\n{title}: {rows:,} rows, {size / 1e6:,.0f} MB, {'from the disk' if cold else 'from memory'}")
    best = {case: {k: min(one[k] for one in own) for k in own[0]} for case, own in found.items()}
    base = best["polars", "binary"]
    for (contender, notion), own in best.items():
        name = {
            "polars": "polars, sums of the columns",
            "pyarrow": "pyarrow, bare reading",
            "sketch": f"Sketch.from_files, {notion}",
            "command": f"calibrant ece --notion {notion}",
        }[contender]
        print(
            f"{name:32} {own['seconds']:8.2f} s {own['seconds'] / base['seconds']:6.1f} x   "
            f"{own['cpu']:8.2f} s of processors {own['cpu'] / base['cpu']:6.1f} x   "
            f"{rows / own['seconds']:13,.0f} rows/s   peak {own['peak'] / 1e6:6,.0f} MB"
        )


def number(text):
    return int(float(text))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=number, default=20_000_000)
    parser.add_argument("--single", action="store_true", help="scores in single precision")
    parser.add_argument("--cold", action="store_true", help="from the disk, not from the system's cache")
    parser.add_argument("--csv", type=number, default=2_000_000, help="rows of text; 0 for none")
    parser.add_argument("--wide", type=number, default=100_000, help="rows of many columns; 0 for none")
    parser.add_argument("--classes", type=number, default=1000)
    parser.add_argument("--rounds", type=number, default=5)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "calibrant-files")
    parser.add_argument("--measure", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        contender, small, folder, notion = given.measure
        if contender == "command":
            command(Path(small), Path(folder), notion)
        else:
            call = {"sketch": sketch, "polars": polars, "pyarrow": pyarrow}[contender]
            measured(call, Path(small), Path(folder), notion)
        return
    if given.rows:
        kind = "single" if given.single else "double"
        small, folder = make(given.folder, 1000, kind), make(given.folder, given.rows, kind)
        compare(
            f"one column, {kind} precision",
            given.rows,
            small,
            folder,
            ["binary"],
            given.rounds,
            given.cold,
            ["binary"],
        )
    if given.csv:
        small, folder = make_csv(given.folder, 1000), make_csv(given.folder, given.csv)
        compare("CSV", given.csv, small, folder, ["binary"], given.rounds, given.cold)
    if given.wide:
        small = make_wide(given.folder, 100, given.classes)
        folder = make_wide(given.folder, given.wide, given.classes)
        notions = ["confidence", "classwise"]
        compare(f"{given.classes} columns", given.wide, small, folder, notions, given.rounds, given.cold)


if __name__ == "__main__":
    main()

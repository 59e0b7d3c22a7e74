"""A frame into a sketch, against a plain group-by of the same cells in the same engine, side by side.

    python benchmarks/engines.py [--rows 5e7] [--engines polars duckdb pyspark dask] [--rounds 3]
                                 [--notion binary] [--folder DIR]

The plain query is what one writes by hand: it groups the rows of the Parquet files by `floor(p * 14400)` and
the label y, and takes the count and the sums of p, y, p * y and p * p. It checks nothing, puts scores next to
an edge into the wrong cell, lumps together what lies near 0 and 1, and knows no log loss. Each engine has its
own: an expression in polars, SQL in DuckDB and Spark, an aggregation in Dask.

Polars and DuckDB run in the process that asks, Spark as `local[2]` in its own, Dask as a cluster of two
processes with a thread each; the driver is the process that asks. Every measurement starts anew and reads
five million rows first, so that imports and compilers belong to nobody; contenders take turns, and a figure
is the best of the rounds. Processor seconds are those of the driver and of all its children (Linux only).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path

from files import HERE, make, number
from memory_probe import peak_bytes, reset_peak

CELLS = 14400
# Rows read first: enough for Java to compile what it runs often.
WARM = 5_000_000
PLAIN = """
    select cast(floor(p * {cells}) as int) as cell, label as y, count(*) as n, sum(p) as sum_p,
           sum(label) as sum_y, sum(p * label) as py, sum(p * p) as pp
    from {rows} group by 1, 2
"""


def polars_frame(folder, _):
    import polars as pl

    return pl.scan_parquet(str(folder / "*.parquet"))


def polars_plain(frame):
    import polars as pl

    p, y = pl.col("p"), pl.col("label")
    keys = {"cell": (p * CELLS).floor().cast(pl.Int32), "y": y}
    sums = {"sum_p": p.sum(), "sum_y": y.sum(), "py": (p * y).sum(), "pp": (p * p).sum()}
    return len(frame.group_by(**keys).agg(n=pl.len(), **sums).collect(engine="streaming"))


def duckdb_frame(folder, _):
    import duckdb

    return duckdb.read_parquet(str(folder / "*.parquet"))


def duckdb_plain(frame):
    return len(frame.query("rows", PLAIN.format(cells=CELLS, rows="rows")).fetchall())


@contextmanager
def spark_session():
    from pyspark.sql import SparkSession

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").appName("engines")
    for name in ("spark.ui.enabled", "spark.ui.showConsoleProgress"):
        builder = builder.config(name, "false")
    session = builder.config("spark.sql.shuffle.partitions", 2).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def spark_frame(folder, session):
    return session.read.parquet(str(folder))


def spark_plain(frame):
    frame.createOrReplaceTempView("rows")
    return len(frame.sparkSession.sql(PLAIN.format(cells=CELLS, rows="rows")).collect())


@contextmanager
def dask_cluster():
    from distributed import Client, LocalCluster

    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": "CRITICAL"}
    with LocalCluster(**options) as cluster, Client(cluster):
        yield


def dask_frame(folder, _):
    import dask.dataframe as dd

    return dd.read_parquet(str(folder))


def dask_plain(frame):
    p, y = frame["p"], frame["label"]
    frame = frame.assign(cell=(p * CELLS).astype("int32"), y=y, py=p * y, pp=p * p)
    sums = {"n": ("p", "size"), "sum_p": ("p", "sum"), "sum_y": ("label", "sum")}
    sums |= {name: (name, "sum") for name in ("py", "pp")}
    return len(frame.groupby(["cell", "y"], sort=False).agg(**sums).compute())


ENGINES = {
    "polars": (nullcontext, polars_frame, polars_plain),
    "duckdb": (nullcontext, duckdb_frame, duckdb_plain),
    "pyspark": (spark_session, spark_frame, spark_plain),
    "dask": (dask_cluster, dask_frame, dask_plain),
}


def children():
    """Processes that this one has started, and those that they have."""
    parent = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        parent[int(path.parent.name)] = int(fields[1])
    found = {os.getpid()}
    while more := {pid for pid, own in parent.items() if own in found} - found:
        found |= more
    return found - {os.getpid()}


def processor_seconds():
    ticks = 0
    for pid in children():
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def largest_child():
    """Most memory that any of the children had at any time."""
    texts = [Path(f"/proc/{pid}/status").read_text() for pid in children()]
    lines = [line for text in texts for line in text.splitlines() if line.startswith("VmHWM")]
    return max((int(line.split()[1]) * 1024 for line in lines), default=0)


def sketch(frame, notion):
    from calibrant import Sketch

    return int(Sketch.from_frame(frame, label="label", scores="p", notion=notion).n)


def measured(engine, contender, small, folder, notion):
    """Seconds, processor seconds and memory of a query, as JSON."""
    session, opened, plain = ENGINES[engine]
    with session() as cumulative_sums:
        for where in (small, folder):
            reset_peak()
            frame = opened(where, cumulative_sums)
            start, cpu = time.perf_counter(), processor_seconds()
            found = sketch(frame, notion) if contender == "sketch" else plain(frame)
            took = {"seconds": time.perf_counter() - start, "cpu": processor_seconds() - cpu}
        print(json.dumps(took | {"driver": peak_bytes(), "child": largest_child(), "found": found}))


def run(*case):
    command = [sys.executable, __file__, "--measure", *map(str, case)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=HERE)
    return json.loads(done.stdout.splitlines()[-1])


def compare(engine, rows, small, folder, notion, rounds):
    best = {}
    for _ in range(rounds):
        for contender in ("plain", "sketch"):
            took = run(engine, contender, small, folder, notion)
            best[contender] = {k: min(v, best.get(contender, took)[k]) for k, v in took.items()}
    if best["sketch"]["found"] != rows:
        raise SystemExit(f"{engine}: a sketch of {best['sketch']['found']} rows instead of {rows}")
    plain = best["plain"]
    for contender, own in best.items():
        child = f"   largest child {own['child'] / 1e6:6,.0f} MB" * bool(own["child"])
        print(
            f"{engine + ', ' + contender:16} {own['seconds']:7.2f} s "
            f"{own['seconds'] / plain['seconds']:5.2f} x"
            f"   {own['cpu']:7.2f} s of processors {own['cpu'] / plain['cpu']:5.2f} x"
            f"   driver {own['driver'] / 1e6:5,.0f} MB{child}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=number, default=50_000_000)
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--rounds", type=number, default=3)
    parser.add_argument("--notion", default="binary", choices=["binary", "classwise", "confidence"])
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "calibrant-files")
    parser.add_argument("--measure", nargs=5, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        engine, contender, small, folder, notion = given.measure
        measured(engine, contender, Path(small), Path(folder), notion)
        return
    small, folder = (
        make(given.folder, min(WARM, given.rows), "double"),
        make(given.folder, given.rows, "double"),
    )
    print(f"{given.rows:,} rows, notion {given.notion}", flush=True)
    for engine in given.engines:
        compare(engine, given.rows, small, folder, given.notion, given.rounds)


if __name__ == "__main__":
    main()

"""Every estimator by every way of giving it the same rows, against arrays; fails where a promise is broken.

    python benchmarks/equality.py [--rows 20000] [--seed 0] [--ways NAME ...] [--write docs/data.md]

Two data sets, a single score and five classes, hold scores of two decimals, 0, 1 and 1/5 among others. For
each way the table has the largest absolute difference over the estimators of a family, their norms, and the
notions class, classwise and confidence. What a sketch promises (docs/how-to/sketches.md):

- uniform: bins whose number divides that of the cells, 1e-12;
- density: 1e-6;
- other bins: twice the mean residual of the rows in cells that hold a cut, in the L1 norm; the largest share
  of that bound is in parentheses;
- within cells: nothing for `debiased`, `sweep`, `isotonic` and `variational`, which tell the scores of a cell
  apart; more than 1e-2 in the L1 norm is taken for a mistake, and other norms are left out;
- the rest: `auto`, `bayes`, `beta`, `beta-kernel` and `smooth`, 1e-5; `ks` and `kuiper`, the residuals of the
  rows of one cell over all rows, once and twice;
- sums: every sum of every cell against those of `Sketch.update`, 1e-12 of what the cell can hold.
"""

import argparse
import re
import sys
import tempfile
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv, feather, parquet

import calibrant
from calibrant import Sketch
from calibrant.estimators import resolve
from calibrant.score_data import FINE

NOTIONS = ("binary", "classwise", "confidence")
FAMILIES = {
    "uniform": ("l:1", "l:10", "l:15", "l:30", "c:10", "c:15", "c:30"),
    "density": ("d:0.033", "d:0.1", "d:silverman", "d:scott"),
    "other bins": (
        "l:sqrt",
        "c:sqrt",
        "a:10",
        "a:15",
        "a:30",
        "a:sqrt",
        "ac:10",
        "ac:15",
        "ac:30",
        "ac:sqrt",
    ),
    "within cells": ("db:15", "db:sqrt", "sw", "sw:debiased", "iso", "v"),
    "the rest": ("auto", "b", "b:shared", "bc", "bk", "sm", "ks", "ku"),
}
TOLERANCE = {"uniform": 1e-12, "density": 1e-6, "within cells": 1e-2, "the rest": 1e-5, "sums": 1e-12}
# A few rows that change their bin can change other norms by anything.
L1_ONLY = ("other bins", "within cells")


def binary(n, seed):
    rng = np.random.default_rng(seed)
    p = rng.beta(0.5, 0.8, n)
    p[: n // 4] = np.round(p[: n // 4], 2)
    p[n // 4 : n // 4 + 60] = np.repeat([0, 1, 0.2, 0.5, 1e-15, 1 - 1e-15], 10)
    return (rng.random(n) < p**1.3).astype(int), p


def five(n, seed):
    rng = np.random.default_rng(seed + 1)
    score = rng.dirichlet(np.full(5, 0.4), n)
    score[: n // 4] = rng.multinomial(100, np.full(5, 0.2), n // 4) / 100
    score[n // 4 : n // 4 + 50] = np.tile(np.eye(5), (10, 1))
    score[n // 4 + 50 : n // 4 + 80] = 0.2
    sharp = score**1.4
    label = (rng.random((n, 1)) > np.cumsum(sharp / sharp.sum(axis=1, keepdims=True), axis=1)).sum(axis=1)
    return label.clip(max=4), score


class Rows:
    """Rows of one data set, as arrays, as a table and as files."""

    def __init__(self, name, label, score, folder):
        self.name, self.label, self.score = name, label, score
        self.scores = ["p"] if score.ndim == 1 else [f"p_{k}" for k in range(score.shape[1])]
        columns = dict(zip(self.scores, np.atleast_2d(score.T), strict=True))
        self.table = pa.table({"y": label, **columns})
        self.folder = folder / name
        self.folder.mkdir()
        self.parts = np.array_split(np.random.default_rng(2).permutation(len(label)), 7)

    def asked(self, notion):
        return {"pos_label": 2} if notion == "binary" and self.score.ndim == 2 else {}

    def columns(self, frame, select):
        return frame["y"], frame["p"] if self.score.ndim == 1 else select(frame, self.scores)

    def from_frame(self, frame, notion):
        scores = self.scores[0] if self.score.ndim == 1 else self.scores
        return Sketch.from_frame(frame, label="y", scores=scores, notion=notion, **self.asked(notion))


def in_arrays(rows, notion):
    return rows.label, rows.score


def in_pandas(rows, notion):
    return rows.columns(rows.table.to_pandas(), lambda frame, names: frame[names])


def in_polars(rows, notion):
    import polars as pl

    return rows.columns(pl.from_arrow(rows.table), lambda frame, names: frame.select(names))


def in_pyarrow(rows, notion):
    return rows.columns(rows.table, lambda frame, names: frame.select(names))


def updated(rows, notion):
    return Sketch(notion, **rows.asked(notion)).update(rows.label, rows.score)


def merged(rows, notion):
    parts = [updated_part(rows, notion, part) for part in rows.parts]
    return sum(parts[k] for k in np.random.default_rng(3).permutation(len(parts)))


def updated_part(rows, notion, part):
    return Sketch(notion, **rows.asked(notion)).update(rows.label[part], rows.score[part])


def loaded(rows, notion):
    updated(rows, notion).save(path := rows.folder / "kept.sketch")
    return Sketch.load(path)


def from_parquet(rows, notion):
    folder = rows.folder / "parquet"
    folder.mkdir(exist_ok=True)
    for k, part in enumerate(rows.parts):
        parquet.write_table(rows.table.take(pa.array(part)), folder / f"{k}.parquet")
    return from_files(rows, notion, folder)


def from_csv(rows, notion):
    csv.write_csv(rows.table, path := rows.folder / "rows.csv")
    return from_files(rows, notion, path)


def from_arrow(rows, notion):
    feather.write_feather(rows.table, path := rows.folder / "rows.arrow")
    return from_files(rows, notion, path)


def from_files(rows, notion, path):
    return Sketch.from_files(path, label="y", scores=rows.scores, notion=notion, **rows.asked(notion))


def of_polars(rows, notion):
    import polars as pl

    return rows.from_frame(pl.from_arrow(rows.table).lazy(), notion)


def of_pandas(rows, notion):
    return rows.from_frame(rows.table.to_pandas(), notion)


def of_pyarrow(rows, notion):
    return rows.from_frame(rows.table, notion)


def of_duckdb(rows, notion):
    import duckdb

    return rows.from_frame(duckdb.from_arrow(rows.table), notion)


def of_dask(rows, notion):
    import dask.dataframe as dd

    return rows.from_frame(dd.from_pandas(rows.table.to_pandas(), npartitions=5), notion)


def of_ibis(rows, notion):
    import ibis

    return rows.from_frame(ibis.memtable(rows.table), notion)


def of_spark(rows, notion):
    parquet.write_table(rows.table, path := rows.folder / "spark.parquet")
    return rows.from_frame(session().read.parquet(str(path)), notion)


@cache
def session():
    from engines import spark_session

    return STACK.enter_context(spark_session())


STACK = ExitStack()
ROWS = {
    "arrays": in_arrays, "pandas columns": in_pandas, "polars columns": in_polars,
    "pyarrow columns": in_pyarrow,
}  # fmt: skip
SKETCHES = {
    "Sketch.update": updated, "merged": merged, "saved and loaded": loaded,
    "files: Parquet folder": from_parquet, "files: CSV": from_csv, "files: Arrow": from_arrow,
    "frame: polars lazy": of_polars, "frame: pandas": of_pandas, "frame: pyarrow": of_pyarrow,
    "frame: DuckDB": of_duckdb, "frame: Dask": of_dask, "frame: Ibis": of_ibis, "frame: PySpark": of_spark,
}  # fmt: skip


def norms(spec):
    return resolve(spec).norms


def cases(families=FAMILIES):
    for family, specs in families.items():
        for spec in specs:
            for norm in ("l1",) if family in L1_ONLY else norms(spec):
                yield family, spec, norm


def problems(rows, notion):
    """Scores and outcomes that a notion compares."""
    score, label = rows.score, rows.label
    positive = 1 if score.ndim == 1 else 2
    score = np.column_stack([1 - score, score]) if score.ndim == 1 else score
    if notion == "confidence":
        return [(score.max(axis=1), score.argmax(axis=1) == label)]
    columns = [positive] if notion == "binary" else range(score.shape[1])
    return [(score[:, k], label == k) for k in columns]


def bound(rows, notion, spec):
    """Twice the mean residual of the rows in cells that hold a cut, as the notion joins problems."""
    kind, _, bins = spec.partition(":")
    n = len(rows.label)
    bins = round(n**0.5) if bins == "sqrt" else int(bins)
    found = []
    for score, outcome in problems(rows, notion):
        cell, near = FINE.locate(score), []
        for count in (bins - 1, bins, bins + 1):  # the root may be rounded either way
            if kind in ("l", "c"):
                near.append(FINE.locate(np.arange(1, 2 * count) / (2 * count)))
            else:
                cut = np.floor(np.arange(1, count) * n / count).astype(int)
                near.append(FINE.locate(np.sort(score)[np.concatenate([cut - 1, cut])]))
        held = np.isin(cell, np.concatenate(near if spec.endswith("sqrt") else [near[1]]))
        found.append(2 * np.abs(outcome - score)[held].sum() / n)
    return float(np.mean(found))


def steepest(rows, notion, spec):
    """How far a running sum of residuals can get within one cell, for each of its two ends."""
    found = []
    for score, outcome in problems(rows, notion):
        found.append(np.bincount(FINE.locate(score), np.abs(outcome - score)).max() / len(score))
    return float(np.mean(found)) * (2 if spec == "ku" else 1)


def sums_apart(one, other):
    """Largest difference of any sum of any cell, in terms of what the cell can hold."""
    width = other._score_data.high - other._score_data.low
    units = {"w": 1.0, "ws": width, "wy": 1.0, "wsy": width, "wss": width**2}
    apart = 0.0
    for name, unit in units.items():
        a, b = getattr(one._score_data.sums, name), getattr(other._score_data.sums, name)
        scale = unit * np.maximum(other._score_data.sums.w, 1) + 1e-300
        apart = max(apart, float(np.max(np.abs(a - b) / scale)))
    return apart


def answers(way, rows, notion):
    """The error by every estimator and norm, and the sketch if it is one."""
    if way in ROWS:
        label, score = ROWS[way](rows, notion)
        options = {"notion": notion} | rows.asked(notion)
        found = {
            (f, e, norm): calibrant.ece(label, score, estimator=e, norm=norm, **options)
            for f, e, norm in cases()
        }
        return found, None
    sketch = SKETCHES[way](rows, notion)
    return {case: sketch.ece(estimator=case[1], norm=case[2]) for case in cases()}, sketch


def compare(ways, sets):
    """For each way and family the largest difference, its share of what is allowed, and where."""
    table = {way: {} for way in ways}
    for rows in sets:
        for notion in NOTIONS:
            wanted, _ = answers("arrays", rows, notion)
            bounds = {spec: bound(rows, notion, spec) for spec in FAMILIES["other bins"]}
            bounds |= {spec: steepest(rows, notion, spec) for spec in ("ks", "ku")}
            base = updated(rows, notion)
            for way in ways:
                found, sketch = answers(way, rows, notion)
                for (family, spec, norm), value in found.items():
                    apart = abs(value - wanted[family, spec, norm])
                    allowed = bounds[spec] + 1e-12 if spec in bounds else TOLERANCE[family]
                    note(table[way], family, apart, apart / allowed, f"{spec} {norm} {notion} {rows.name}")
                if sketch is not None:
                    apart = sums_apart(sketch, base)
                    note(table[way], "sums", apart, apart / TOLERANCE["sums"], f"{notion} {rows.name}")
    return table


def note(row, family, apart, share, where):
    most, worst, place = row.get(family, (0.0, 0.0, where))
    row[family] = (max(most, apart), max(worst, share), where if share > worst else place)


def shown(table):
    families = [*FAMILIES, "sums"]
    lines = ["| input | " + " | ".join(families) + " |", "|---|" + "---:|" * len(families)]
    for way, row in table.items():
        texts = []
        for family in families:
            apart, share, _ = row.get(family, (-1.0, 0.0, ""))
            text = f"{apart:.0e}" if apart > 0 else "0" if apart == 0 else ""
            texts.append(text + f" ({share:.2f})" * (family == "other bins"))
        lines.append(f"| {way} | " + " | ".join(texts) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    ways = [way for way in (*ROWS, *SKETCHES) if way != "arrays"]
    parser.add_argument("--ways", nargs="+", choices=ways, default=ways, metavar="NAME")
    parser.add_argument("--write", type=Path, help="page that holds the table between its marks")
    given = parser.parse_args()
    with STACK, tempfile.TemporaryDirectory() as folder:
        sets = [Rows(made.__name__, *made(given.rows, given.seed), Path(folder)) for made in (binary, five)]
        table = compare(given.ways, sets)
    print(text := shown(table))
    if given.write:
        page, marks = given.write.read_text(), "<!-- equality:{} -->"
        pattern = re.escape(marks.format("begin")) + ".*" + re.escape(marks.format("end"))
        new = f"{marks.format('begin')}\n\n{text}\n\n{marks.format('end')}"
        given.write.write_text(re.sub(pattern, lambda _: new, page, flags=re.DOTALL))
    broken = [(way, family, *own) for way, row in table.items() for family, own in row.items() if own[1] > 1]
    for way, family, apart, share, where in broken:
        print(f"{way}, {family}: {apart:.3g} is {share:.3g} of what is allowed ({where})", file=sys.stderr)
    sys.stdout.flush()
    sys.exit(bool(broken))


if __name__ == "__main__":
    main()

"""Files with hostile contents: every code path reads the same numbers, or all refuse.

    python benchmarks/attacks/files.py [--cases 2000] [--seed 0] [--formats csv json ...]

Small random files of each format are read at once, in pieces, by the command line, and as frames of
pandas, polars, pyarrow and DuckDB that hold what was read. Some are clean, and hold what was written;
most are spoilt: quotes, blanks, nulls, NaN, infinities, large integers, booleans, text, names twice, byte
order marks, ends of lines, ragged rows, other types, bytes that are changed or missing.

A code path may raise only a ValueError or an OSError with a one-line message. The command line exits
with 0 or 2. If a file can be read at once, all other code paths must read it too: a column of scores in one
piece to the last bit, pieces and frames to 1e-12 of each sum. Only reading in pieces may refuse
a column whose first rows have another type than later ones, or lack a label; the message says so.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import gzip
import io
import json
import math
import sys
import tempfile
import warnings
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from click.testing import CliRunner
from pyarrow import feather, ipc, parquet

import calibrant
from calibrant import Sketch
from calibrant.cli import main as command_line
from calibrant.data import ColumnRequest, load_models

FORMATS = ("csv", "tsv", "jsonl", "json", "parquet", "arrow", "npz")
TEXT = ("csv", "tsv", "jsonl", "json")
# Messages allowed when a file is read in pieces although it can be read at once.
SETTLED = ("as in the first rows", "one for each column", "hold 0 and 1, -1 and 1", "hold only the labels")
LABELS = (
    (0, 1),
    (-1, 1),
    (False, True),
    ("a", "b", "c"),
    ("no", "yes"),
    (0, 1, 2),
    ("1", "0"),
    ("é", "ß", "漢"),
)
NUMBERS = (
    *(math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.0000000001, 1 + 2**-52, -1e-9, 1e-20, 1 - 2**-53, 97.0),
    *(2**53 + 1, 2**63, 2**64, -(2**63), 10**400, 1e308, True, None, "x", "", " ", "NaN", "0,5", "1_0"),
    *(" 0.25 ", "+.5", "1e-3", "0x1p-1", "٠.٥", "1e400", "true", "null", "'0.5'", '"0.5"', [0.5], {"a": 1}),
)
VALUES = (
    *(
        None,
        "",
        " ",
        "a ",
        " a",
        "A",
        "1",
        "01",
        "1.0",
        "+1",
        "true",
        "True",
        "nan",
        "NA",
        "null",
        "x\ty",
        '"',
    ),
    *('a"b', "a,b", "a;b", "line\nbreak", "\r", "\ufeff", "\u00a0", "\x1e", "\\", "\U0001f40d", "=1+1"),
    *(2**53 + 1, 2**53, 2**63, 2**64, 1.5, 1e300, math.nan, math.inf, True, [1], {"a": 1}, -1, 0.0, -0.0),
)
NAMES = (
    "y",
    "label",
    "p",
    "p_a",
    "w",
    "",
    " ",
    "p ",
    "P",
    "correct",
    "confidence",
    "y_pred",
    'q"',
    "a,b",
    "é",
)


class Table:
    """Columns of a file, and how they are asked for."""

    def __init__(self, rng):
        self.rng = rng
        rows = int(rng.choice((0, 1, 2, 3, 7, 25), p=(0.03, 0.07, 0.15, 0.15, 0.3, 0.3)))
        classes = LABELS[rng.integers(len(LABELS))]
        matrix = len(classes) > 2 or rng.random() < 0.4
        digits = int(rng.choice((2, 17)))
        label = [classes[k] for k in rng.integers(len(classes), size=rows)]
        self.columns = {"y": label}
        if matrix:
            scores = rng.dirichlet(np.ones(len(classes)), rows).round(6)
            scores[:, -1] = 1 - scores[:, :-1].sum(axis=1)
            scores = np.clip(scores, 0, 1)
            names = [f"p_{name if isinstance(name, str) else int(name)}" for name in classes]
            self.columns |= {name: scores[:, k].tolist() for k, name in enumerate(names)}
            self.scores = names
        else:
            scores = rng.random(rows).round(digits)
            scores[rng.random(rows) < 0.1] = rng.integers(2)
            self.columns["p"] = scores.tolist()
            self.scores = ["p"]
        self.weight = self.groups = None
        if rng.random() < 0.4:
            self.weight = "w"
            whole = rng.random() < 0.5
            weights = rng.integers(0, 5, rows) if whole else rng.random(rows).round(3) + 0.001
            self.columns["w"] = weights.tolist()
        if rng.random() < 0.2:
            self.groups = "g"
            names = [("x", "y"), (1, 2, 3), ("1", "b")][rng.integers(3)]
            self.columns["g"] = [names[k] for k in rng.integers(len(names), size=rows)]
        if rng.random() < 0.3:
            self.columns["note"] = [VALUES[k] for k in rng.integers(20, size=rows)]
        self.pos_label = None
        if not matrix and not set(classes) <= {0, 1, -1}:
            self.pos_label = classes[-1]
        self.clean = rows > 0
        self.notion = str(rng.choice(("confidence", "classwise"))) if matrix else "binary"

    @property
    def rows(self):
        return len(next(iter(self.columns.values())))

    def spoil(self, format):
        """Put something into a column that may not belong there, or change names."""
        self.clean = False
        rng = self.rng
        kind = rng.integers(10)
        names = list(self.columns)
        if kind < 5 and self.rows:  # a value
            name = names[rng.integers(len(names))]
            pool = NUMBERS if name not in ("y", "g", "note") or rng.random() < 0.2 else VALUES
            value = pool[rng.integers(len(pool))]
            column = list(self.columns[name])
            where = rng.integers(self.rows, size=int(rng.choice((1, 1, 2, self.rows))))
            for row in where[where < len(column)]:  # an earlier change may have cut the column short
                column[row] = value
            self.columns[name] = column
        elif kind < 7 and self.rows:  # all values of a column as something else
            name = names[rng.integers(len(names))]
            change = (str, lambda v: f" {v} ", bool, lambda v: None, lambda v: [v], lambda v: f'"{v}"')
            use = change[rng.integers(len(change))]
            self.columns[name] = [use(value) for value in self.columns[name]]
        elif kind == 7:  # a name
            name, new = names[rng.integers(len(names))], NAMES[rng.integers(len(NAMES))]
            self.columns = {new if own == name else own: v for own, v in self.columns.items() if own != new}
        elif kind == 8:
            del self.columns[names[rng.integers(len(names))]]
            self.columns = self.columns or {"y": []}
        elif self.rows:  # one column that is too short, where a format can have that
            name = names[rng.integers(len(names))]
            if format == "npz":
                self.columns[name] = self.columns[name][:-1]


def csv_bytes(table, format):
    """Write a table as CSV, with some of what others write too."""
    rng = table.rng
    delimiter = "\t" if format == "tsv" else str(rng.choice([",", ",", ";", "|", "\t"]))
    end = str(rng.choice(["\n", "\n", "\r\n", "\r"]))
    out = io.StringIO()
    quoting = csv.QUOTE_ALL if rng.random() < 0.3 else csv.QUOTE_MINIMAL
    writer = csv.writer(out, delimiter=delimiter, lineterminator=end, quoting=quoting)
    writer.writerow(table.columns)
    writer.writerows(zip(*map(shown, table.columns.values()), strict=True))
    text = out.getvalue()
    if not table.clean:
        lines = text.split(end)
        kind, row = rng.integers(9), int(rng.integers(len(lines)))
        if kind == 0:
            lines[row] += delimiter + "more"
        elif kind == 1:
            lines.insert(row, str(rng.choice(["", " ", delimiter, '""', "\t"])))
        elif kind == 2:
            lines[row] = lines[row].replace('"' + delimiter, '" ' + delimiter)
        elif kind == 3:
            at = int(rng.integers(len(lines[row]) + 1))
            lines[row] = lines[row][:at] + str(rng.choice(['"', '""', " ", "'", "\\", "#"])) + lines[row][at:]
        elif kind == 4:
            lines[row] = lines[row].replace(delimiter, delimiter + " ")
        elif kind == 5:
            lines[0] += delimiter + str(rng.choice(list(table.columns)))
            lines[1:] = [line + delimiter + "1" if line else line for line in lines[1:]]
        text = end.join(lines)
    elif rng.random() < 0.2:
        text = text.removesuffix(end)
    return (b"\xef\xbb\xbf" if rng.random() < 0.1 else b"") + text.encode("utf-8", "surrogatepass")


def shown(column):
    """Values as a CSV file shows them."""
    return ["" if value is None else value for value in column]


def json_bytes(table, format):
    """Write a table as JSON lines or as a list."""
    rng = table.rng
    rows = [dict(zip(table.columns, row, strict=True)) for row in zip(*table.columns.values(), strict=True)]
    texts = [json.dumps(row, ensure_ascii=bool(rng.random() < 0.5)) for row in rows]
    if not table.clean and texts:
        kind, row = rng.integers(7), int(rng.integers(len(texts)))
        twice = json.dumps({str(rng.choice(list(table.columns))): 0.5})[1:-1]
        if kind == 0:
            texts[row] = texts[row][:-1] + ", " + twice + "}"
        elif kind == 1:
            texts[row] = str(
                rng.choice(["[1]", "null", "{}", '""', "1", '{"z": 1}', "{,}", '{"y": "\\ud800"}'])
            )
        elif kind == 2:
            texts[row] = json.dumps({k: v for k, v in rows[row].items() if k != rng.choice(list(rows[row]))})
        elif kind == 3:
            texts[row] = texts[row].replace(": ", ":  ", 1).replace("{", "{ \t", 1)
        elif kind == 4:
            texts[row] = json.dumps(dict(reversed(rows[row].items())))
    mark = b"\xef\xbb\xbf" if rng.random() < 0.1 else b""
    if format == "json" and rng.random() < 0.9:
        return mark + f"[{', '.join(texts)}]".encode()
    end = str(rng.choice(["\n", "\r\n", "\n\n"]))
    return mark + (end.join(texts) + (end if rng.random() < 0.8 else "")).encode()


def arrow_table(table):
    """Return a table of Arrow, of one of the types that hold its values."""
    rng = table.rng
    arrays = {}
    for name, column in table.columns.items():
        try:
            array = pa.array(column)
        except (pa.ArrowException, UnicodeEncodeError, OverflowError, TypeError):
            array = pa.array([None if value is None else str(value) for value in column])
        types = [array.type, array.type]
        if pa.types.is_integer(array.type):
            types += [pa.int8(), pa.uint8(), pa.int32(), pa.uint64(), pa.float64(), pa.decimal128(20, 2)]
            types += [pa.string(), pa.dictionary(pa.int32(), pa.int64())]
        elif pa.types.is_floating(array.type):
            types += [pa.float64()] * 4 + [pa.string()] * (not table.clean)
            if not table.clean or name == "w":
                types += [pa.float32()]
        elif pa.types.is_string(array.type):
            types += [pa.large_string(), pa.dictionary(pa.int8(), pa.string()), pa.string_view()]
            types += [pa.binary()] * (not table.clean)
        elif pa.types.is_boolean(array.type):
            types += [pa.int8()] + [pa.string()] * (not table.clean)
        with contextlib.suppress(pa.ArrowException, NotImplementedError):
            array = array.cast(types[rng.integers(len(types))])
        arrays[name] = array
    return pa.table(arrays)


def binary_bytes(table, format):
    """Write a table as Parquet or Arrow."""
    rng, out, made = table.rng, io.BytesIO(), arrow_table(table)
    if not table.clean and rng.random() < 0.1 and made.num_columns:
        made = made.append_column(str(rng.choice(made.column_names)), made.columns[0])
    if format == "parquet":
        for k, field in enumerate(made.schema):
            if pa.types.is_string_view(field.type):
                made = made.set_column(k, field.name, made.column(k).cast(pa.string()))
        size = int(rng.choice((1, 3, 1000)))
        parquet.write_table(made, out, row_group_size=size, compression=str(rng.choice(["none", "zstd"])))
    elif rng.random() < 0.3:
        made = made.cast(pa.schema([(f.name, f.type) for f in made.schema]))
        feather.write_feather(made, out, compression="uncompressed")
    else:
        write = ipc.new_file if rng.random() < 0.6 else ipc.new_stream
        with write(out, made.schema) as writer:
            writer.write_table(made, max_chunksize=int(rng.choice((1, 4, 1000))))
    return out.getvalue()


def npz_bytes(table):
    """Write a table as arrays, the scores as a matrix now and then."""
    rng, arrays = table.rng, {}
    for name, column in table.columns.items():
        try:
            array = np.array(column)
        except (ValueError, OverflowError):
            array = np.array([str(value) for value in column])
        if array.dtype.kind == "O" and rng.random() < 0.7:
            array = np.array([str(value) for value in column])
        kinds = {"f": [">f8", "f8", "g"], "i": ["i2", ">i8", "u1", "f8"], "U": ["U9"], "b": ["i1", "?"]}
        if rng.random() < 0.4 and array.dtype.kind in kinds and array.size:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                cast = array.astype(str(rng.choice(kinds[array.dtype.kind])))
            array = cast if np.array_equal(cast, array) or not table.clean else array
        if not table.clean and rng.random() < 0.05:
            array = array.reshape(-1, 1) if rng.random() < 0.5 else np.char.encode(array.astype("U"))
        arrays[name.replace("/", "") or "empty"] = array
    if table.clean and len(table.scores) > 1 and rng.random() < 0.5 and set(table.columns["y"]) <= {0, 1, 2}:
        order = str(rng.choice(["C", "F"]))
        block = np.array([arrays.pop(name) for name in table.scores], dtype=float).T
        arrays["probs"] = np.array(block, order=order)
        table.scores = ["probs"]
    out = io.BytesIO()
    (np.savez_compressed if rng.random() < 0.5 else np.savez)(out, **arrays)
    return out.getvalue()


def content_of(table, format):
    """Return the bytes of a file, some of them damaged."""
    if format in ("csv", "tsv"):
        content = csv_bytes(table, format)
    elif format in ("json", "jsonl"):
        content = json_bytes(table, format)
    else:
        content = npz_bytes(table) if format == "npz" else binary_bytes(table, format)
    rng = table.rng
    if not table.clean and content and rng.random() < 0.15:
        content = bytearray(content)
        if rng.random() < 0.5:
            content = content[: int(rng.integers(len(content)))]
        else:
            for at in rng.integers(len(content), size=int(rng.integers(1, 4))):
                content[at] = int(rng.integers(256))
        content = bytes(content)
    if format in TEXT and rng.random() < 0.05:
        content = gzip.compress(content)
    return content


class Refusal:
    """The error message of a code path."""

    def __init__(self, error):
        self.error = error
        self.text = str(error)

    def __repr__(self):
        return f"{type(self.error).__name__}: {ascii(self.text)[:200]}"


def tried(read):
    """Return the result of a code path, or its refusal; other errors pass."""
    try:
        return read()
    except (ValueError, OSError) as error:
        return Refusal(error)


def unfit(refusal):
    """Return whether a refusal is none that a person can read."""
    raw = isinstance(refusal.error, UnicodeError | json.JSONDecodeError | pa.ArrowException)
    return raw or "\n" in refusal.text or not refusal.text or not refusal.text.isprintable()


def differ(one, other, exact=False):
    """Return how two sketches differ, or an empty text."""
    if (one.notion, one.totals.rows) != (other.notion, other.totals.rows):
        return f"{one!r} with {one.totals.rows} rows, {other!r} with {other.totals.rows}"
    if one.labels != other.labels or one.positive != other.positive:
        return f"classes {one.labels!r} and {other.labels!r}"
    if one._score_data.counts != other._score_data.counts:
        return "counts and importance weights"
    pairs = [(one.totals.weight, other.totals.weight), (one.totals.brier, other.totals.brier)]
    pairs += zip(one._score_data.arrays, other._score_data.arrays, strict=True)
    for mine, theirs in pairs:
        if exact and not np.array_equal(mine, theirs):
            return "other bits"
        if not np.allclose(mine, theirs, rtol=1e-12, atol=1e-12 * float(np.max(np.abs(mine), initial=0))):
            return "other sums"
    values = [sketch.ece(estimator="uniform:10") for sketch in (one, other)]
    return "" if abs(values[0] - values[1]) <= 1e-9 else f"the values {values[0]!r} and {values[1]!r}"


def frames_of(data):
    """Yield a frame of each engine that holds what was read."""
    scores = data.y_prob if data.y_prob.ndim == 2 else data.y_prob[:, None]
    truth = data.y_true.tolist() if data.y_true.dtype == object else data.y_true
    columns = {"y": truth} | {score_name(k): scores[:, k] for k in range(scores.shape[1])}
    if data.sample_weight is not None:
        columns["w"] = data.sample_weight
    try:
        columns = {name: pa.array(native(column)) for name, column in columns.items()}
    except OverflowError:  # integers that no engine has
        return
    table = pa.table(columns)
    yield "pyarrow", table
    yield "pandas", pd.DataFrame({name: column.to_pandas() for name, column in columns.items()})
    yield "polars", pl.from_arrow(table)
    yield "duckdb", duckdb.from_arrow(table)


def native(column):
    """Return a column as Arrow takes it, which has neither other byte orders nor longer floats."""
    if isinstance(column, list):
        return column
    long = column.dtype.kind == "f" and column.itemsize > 8
    return column.astype("f8" if long else column.dtype.newbyteorder("="))


def score_name(k):
    """Return the name of a column of scores, which tells no class: labels are given by position."""
    return f"score {chr(ord('a') + k)}"


def of_frame(frame, data):
    """Sum up a frame as the rows are."""
    size = 1 if data.y_prob.ndim == 1 else data.y_prob.shape[1]
    return Sketch.from_frame(
        frame,
        label="y",
        scores=[score_name(k) for k in range(size)],
        sample_weight=None if data.sample_weight is None else "w",
        labels=data.labels,
        pos_label=data.pos_label,
        notion=data.notion,
    )


def of_rows(data):
    """Sum up rows, as arrays."""
    sketch = Sketch(data.notion, labels=data.labels, pos_label=data.pos_label)
    return sketch.update(data.y_true, data.y_prob, sample_weight=data.sample_weight)


def asked_of(table):
    """Return what is asked of a file: the names that are there, or nothing."""
    guessed = table.rng.random() < 0.3
    return {
        "label": None if guessed else "y",
        "scores": () if guessed else tuple(table.scores),
        "sample_weight": table.weight,
        "notion": table.notion,
        "pos_label": table.pos_label,
    }


def failures_of(path, table):
    """Yield the disagreements between code paths."""
    asked, rng = asked_of(table), table.rng
    if table.clean:
        # What a clean file holds is known; its labels as a file has them.
        texts = {str(value) for value in table.columns["y"]}
    data = tried(lambda: load_models(str(path), ColumnRequest(**asked))[""])
    whole = data
    if not isinstance(data, Refusal):
        whole = tried(lambda: of_rows(data))
    elif unfit(data):
        yield f"an error that is none of ours: {data}"
    if table.clean and isinstance(data, Refusal) and not weightless(table):
        binary = "hold 0 and 1" in data.text or "'0'" in data.text or "pos_label" in data.text
        if not (binary and len(texts) < 3):
            yield f"a clean file is refused: {data}"
    if table.clean and not isinstance(data, Refusal):
        scores = np.atleast_2d(data.y_prob.T)
        held = [table.columns[name] for name in data.columns["scores"] if name in table.columns]
        if held and not np.array_equal(scores, np.array(held, dtype=scores.dtype)):
            yield "a clean file reads other scores"
    options = asked | {"scores": list(asked["scores"]) or None}
    steps = {"one piece": None, "pieces": int(rng.choice((1, 2, 5)))}
    for code_path, rows in steps.items():
        found = tried(lambda rows=rows: Sketch.from_files(path, batch_rows=rows, **options))
        if isinstance(found, Refusal):
            if unfit(found):
                yield f"{code_path}: an error that is none of ours: {found}"
            settled = rows is not None and any(text in found.text for text in SETTLED)
            if not isinstance(whole, Refusal) and not settled:
                yield f"{code_path}: refused, and rows are read: {found}"
        elif isinstance(whole, Refusal):
            yield f"{code_path}: read, and rows are refused: {whole}"
        elif difference := differ(whole, found, exact=rows is None and data.y_prob.ndim == 1):
            yield f"{code_path}: {difference}"
    if table.groups is not None:
        yield from grouped(path, table, options, asked, whole)
    yield from commanded(path, asked, data)
    if not isinstance(whole, Refusal):
        for engine, frame in frames_of(data):
            found = tried(lambda frame=frame: of_frame(frame, data))
            if isinstance(found, Refusal):
                yield f"{engine}: refused, and rows are read: {found}"
            elif difference := differ(whole, found):
                yield f"{engine}: {difference}"


def weightless(table):
    """Return whether no row of a table has a weight."""
    return table.weight is not None and not any(table.columns["w"])


def grouped(path, table, options, asked, whole):
    """Yield how groups read in pieces differ from those read at once."""
    found = tried(lambda: Sketch.from_files_by_group(path, groups="g", **options))
    data = tried(lambda: load_models(str(path), ColumnRequest(**asked, groups="g"))[""])
    if isinstance(whole, Refusal) and not isinstance(data, Refusal):
        data = whole
    if isinstance(found, Refusal) != isinstance(data, Refusal):
        yield f"groups: {found!r}, and by rows {data!r}"
    elif isinstance(found, Refusal):
        if unfit(found) or unfit(data):
            yield f"groups: an error that is none of ours: {found} or {data}"
    else:
        held = data.sample_weight != 0 if data.sample_weight is not None else np.ones(len(data.groups), bool)
        if set(found) != set(np.asarray(data.groups)[held].tolist()):
            yield f"groups: {list(found)}, and by rows {set(data.groups.tolist())}"
        elif difference := differ(whole, sum(found.values())):
            yield f"groups: {difference}"


def commanded(path, asked, data):
    """Yield what is wrong with what the command line says of a file."""
    words = ["ece", str(path), "--norm", "max", "--estimator", "uniform:10", "--json", "--quiet"]
    words += ["--notion", asked["notion"]]
    names = {
        "label": asked["label"],
        "sample-weight": asked["sample_weight"],
        "pos-label": asked["pos_label"],
    }
    words += [
        word for name, value in names.items() if value is not None for word in (f"--{name}", str(value))
    ]
    words += [word for name in asked["scores"] for word in ("--scores", name)]
    if asked["pos_label"] is not None and asked["notion"] != "binary":
        return
    due = data if isinstance(data, Refusal) else tried(lambda: largest(data))
    done = CliRunner().invoke(command_line, words)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        yield f"command line: {done.exception!r}"
    elif done.exit_code not in (0, 2) or "Traceback" in done.output:
        yield f"command line: exit code {done.exit_code}: {ascii(done.output)[:200]}"
    elif (done.exit_code == 2) != isinstance(due, Refusal):
        yield f"command line: exit code {done.exit_code}, and rows give {due!r}: {ascii(done.output)[:200]}"
    elif done.exit_code == 0:
        if json.loads(done.stdout)["value"] != due:
            yield f"command line: {json.loads(done.stdout)['value']!r}, and rows give {due!r}"
    elif done.stderr.count("\n") != 1 or not done.stderr.rstrip("\n").isprintable():
        yield f"command line: an error that is no line: {ascii(done.stderr)[:200]}"


def largest(data):
    """Return the largest gap in ten bins, as arrays have it."""
    options = {"sample_weight": data.sample_weight, "labels": data.labels, "pos_label": data.pos_label}
    return calibrant.mce(data.y_true, data.y_prob, notion=data.notion, estimator="uniform:10", **options)


def cases_of(cases, seed, formats):
    """Yield files of each format: the format, the number, the file and what is known of it."""
    with tempfile.TemporaryDirectory() as folder:
        for k, format in enumerate(FORMATS):
            for case in range(cases if format in formats else 0):
                table = Table(np.random.default_rng([seed, k, case]))
                if table.rng.random() < 0.6:
                    for _ in range(int(table.rng.integers(1, 3))):
                        table.spoil(format)
                path = Path(folder, f"case.{format}")
                path.write_bytes(content_of(table, format))
                yield format, case, path, table


def run(cases: int, seed: int, formats=FORMATS) -> list[str]:
    """Return what went wrong with so many files of each format; nothing where all held."""
    failures = []
    for format, case, path, table in cases_of(cases, seed, formats):
        try:
            failures += [f"{format} {case}: {text}" for text in failures_of(path, table)]
        except Exception as error:
            failures.append(f"{format} {case}: {type(error).__name__}: {ascii(str(error))[:300]}")
    return failures


def share_read(cases: int, seed: int) -> float:
    """Return the share of files that are read: with too few, nothing is compared."""
    read = [
        not isinstance(tried(partial(load_models, str(path), ColumnRequest(**asked_of(table)))), Refusal)
        for _, _, path, table in cases_of(cases, seed, FORMATS)
    ]
    return sum(read) / len(read)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=FORMATS)
    given = parser.parse_args()
    failures = run(given.cases, given.seed, given.formats)
    print("\n".join(failures) or f"{given.cases} files of each of {', '.join(given.formats)}: all held")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()

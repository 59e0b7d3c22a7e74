"""Files that the program refuses, each in a process of its own, which must end with code 2 within a limit.

    python benchmarks/attacks/refusals.py [--cases 200] [--seed 0]

A file has a fault early on and several blocks of sound rows after it, so that a reader that reads ahead is at
work when the fault is found. It is given to the commands as a path or as standard input, plain or gzipped.
"""

import argparse
import gzip
import io
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import ipc, parquet

from calibrant import Calibrator

#: Seconds in which a process must have ended; processes at the same time.
LIMIT, AT_ONCE = 60, 4
#: Rows with a fault: of CSV as text, of other formats as a label and a score.
CSV_FAULTS = (b"1,0.5,7\n", b"1\n", b"1,abc\n", b"1,2.5\n", b"1,\n", b'1,"0.5\n', b"1,\xe9\n", b"1,0\x005\n")
FAULTS = (2.5, -1.0, float("inf"), None)
COMMANDS = ("ece", "check", "apply")


@cache
def sound_rows(rows):
    """Return labels and scores that nobody refuses."""
    rng = np.random.default_rng(0)
    score = rng.random(rows)
    return (rng.random(rows) < score).astype(int).tolist(), score.tolist()


@cache
def sound_lines(rows, format):
    """Return sound rows as lines of CSV or of JSON."""
    pairs = zip(*sound_rows(rows), strict=True)
    if format == "csv":
        return "".join(f"{y},{p!r}\n" for y, p in pairs).encode()
    return "".join(json.dumps({"y": y, "p": p}) + "\n" for y, p in pairs).encode()


def content_of(rng):
    """Return the suffix and the bytes of a file with a fault."""
    format = str(rng.choice(["csv", "csv", "csv", "jsonl", "parquet", "arrow"]))
    before, after = int(rng.choice([1, 1000, 300_000])), int(rng.choice([0, 1000, 600_000]))
    packed = format in ("csv", "jsonl") and rng.random() < 0.2
    fault = FAULTS[rng.integers(len(FAULTS))]
    if format in ("csv", "jsonl"):
        bad = CSV_FAULTS[rng.integers(len(CSV_FAULTS))]
        if format == "jsonl":
            bad = json.dumps({"y": 1, "p": fault}).encode() + b"\n"
        head = b"y,p\n" if format == "csv" else b""
        content = head + sound_lines(before, format) + bad + sound_lines(after, format)
        return format + ".gz" * packed, gzip.compress(content, 1) if packed else content
    (label, score), out = sound_rows(before), io.BytesIO()
    (more, others) = sound_rows(after)
    table = pa.table({"y": [*label, 1, *more], "p": [*score, fault, *others]})
    if format == "parquet":
        parquet.write_table(table, out, row_group_size=int(rng.choice([1000, 100_000, 1 << 20])))
    else:
        with ipc.new_file(out, table.schema) as writer:
            writer.write_table(table, max_chunksize=100_000)
    return format, out.getvalue()


def failure(seed, case, folder):
    """Return what is wrong with how a process ends; nothing where it ends as it should."""
    rng = np.random.default_rng([seed, case])
    suffix, content = content_of(rng)
    path = folder / f"{case}.{suffix}"
    path.write_bytes(content)
    command = str(rng.choice(COMMANDS))
    given = "-" if command != "apply" and rng.random() < 0.3 else str(path)
    words = {
        "ece": ["ece", given],
        "check": ["check", given, "--max-ece", "0.9"],
        "apply": ["calibrate", "apply", "map.json", given, "-o", f"{case}.out.csv"],
    }[command]
    words += [] if command == "apply" else ["--label", "y"]
    line = [sys.executable, "-m", "calibrant", *words, "--scores", "p", "--quiet"]
    about = f"case {case} ({' '.join(words)}, {suffix}, {len(content)} bytes)"
    try:
        with open(path, "rb") as file:
            done = subprocess.run(
                line, cwd=folder, stdin=file, capture_output=True, timeout=LIMIT, check=False
            )
    except subprocess.TimeoutExpired as error:
        return f"{about}: has not ended after {LIMIT} s, having said {ascii(error.stderr or b'')[:200]}"
    finally:
        path.unlink()
    if done.returncode != 2 or done.stderr.count(b"\n") != 1:
        return f"{about}: exit code {done.returncode}, having said {ascii(done.stderr)[:200]}"
    return ""


def run(cases: int, seed: int) -> list[str]:
    """Return what went wrong with so many files; nothing where every process ended with its code."""
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(AT_ONCE) as pool:
        folder = Path(name)
        label, score = sound_rows(1000)
        Calibrator("sigmoid").fit(score, label).save(folder / "map.json")
        return [text for text in pool.map(lambda case: failure(seed, case, folder), range(cases)) if text]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    failures = run(given.cases, given.seed)
    print("\n".join(failures) or f"{given.cases} refused files: every process ended")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()

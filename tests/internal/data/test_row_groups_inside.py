"""Parquet files give the same sums, whatever their row groups, pages and codecs."""

import re
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from calibrant import Sketch
from reading import load


def forged(path, old, new, **options):
    """Write four rows as Parquet, and replace bytes that occur in it for every column or for the last."""
    table = pa.table({"y": [0, 1, 1, 0], "p": [0.1, 0.2, 0.9, 0.4]})
    parquet.write_table(table, path, use_dictionary=False, write_statistics=False, **options)
    content = path.read_bytes()
    assert content.count(old) in (1, 2)
    head, tail = content.rsplit(old, 1)
    path.write_bytes(head + new + tail)
    return path


def test_a_codec_that_nobody_knows_is_refused(tmp_path):
    # The codec in the footer, after the path of its column: 6 is Zstandard, and 60 is none.
    path = forged(tmp_path / "x.parquet", b"\x18\x01p\x15\x0c", b"\x18\x01p\x15\x78", compression="zstd")
    command = [sys.executable, "-m", "calibrant", "ece", str(path), "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    # pyarrow 16 does not look at the codec, and finds that the page is too short.
    words = r"x.parquet: cannot be read: (Unsupported compression codec value: 60|.*invalid number of bytes)"
    assert re.search(words, done.stderr)
    with pytest.raises(ValueError, match=words):
        load(str(path))


def test_rows_that_are_missing_are_found_whatever_the_page_header_counts(tmp_path):
    # Definition levels after the header of the page: a run of four ones, and the same without the third.
    path = forged(
        tmp_path / "x.parquet",
        b"\x00\x08\x01" + np.float64(0.1).tobytes(),
        b"\x00\x03\x0b" + np.float64(0.1).tobytes(),
        compression="none",
        data_page_version="2.0",
    )
    message = "column 'p' must have no missing values, got 1, the first at row 3"
    for read in (load, Sketch.from_files):
        with pytest.raises(ValueError, match=message):
            read(str(path))

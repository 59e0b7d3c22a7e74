"""Parquet files give the same sums, whatever their row groups, pages and codecs."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from calibrant import Sketch


def write(path, size):
    rng = np.random.default_rng(0)
    score, text = rng.random(100), rng.choice(["fr", "nl", "de"], 100)
    table = pa.table({"y": (rng.random(100) < score).astype(np.int8), "p": score, "g": text})
    parquet.write_table(table, path, row_group_size=size)
    return path


@pytest.mark.parametrize("size", [10, 7, 3, 25, 100])
def test_sums_are_the_same_whatever_the_row_groups(tmp_path, size):
    path, even = write(tmp_path / "odd.parquet", size), write(tmp_path / "even.parquet", 25)
    found = Sketch.from_files_by_group(path, groups="g", batch_rows=25)
    expected = Sketch.from_files_by_group(even, groups="g", batch_rows=25)
    assert {key: one.digest for key, one in found.items()} == {
        key: one.digest for key, one in expected.items()
    }


@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd", "lz4", "brotli"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_every_codec_and_version_of_pages_gives_the_same_sums(tmp_path, compression, version):
    rng = np.random.default_rng(0)
    score = rng.random(3000)
    table = pa.table({"y": (rng.random(3000) < score), "p": score})
    options = {"compression": compression, "data_page_version": version, "data_page_size": 900}
    parquet.write_table(table, tmp_path / "x.parquet", row_group_size=700, **options)
    digest = Sketch("binary").update(table["y"].to_numpy(), score).digest
    assert Sketch.from_files(tmp_path / "x.parquet").digest == digest

"""Maps from the command line: fitted, applied to new files, compared."""

import csv

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from calibrant import Calibrator
from calibrant.data import map_files

RNG = np.random.default_rng(11)
N = 600
SCORE = RNG.random(N)
OUTCOME = (RNG.random(N) < SCORE**2).astype(int)
NAMES = ("cat", "dog", "eel")
MATRIX = RNG.dirichlet([1, 1, 1], N)
LABEL = [NAMES[k] for k in (RNG.random((N, 1)) > (0.5 * MATRIX + 1 / 6).cumsum(axis=1)).sum(axis=1)]


def write_csv(path, columns):
    with open(path, "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(columns)
        rows.writerows(zip(*columns.values(), strict=True))


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_csv("one.csv", {"y": OUTCOME, "score": SCORE, "note": ['a "b", c'] * N, "empty": [""] * N})
    write_csv("many.csv", {"label": LABEL} | {f"p_{n}": MATRIX[:, k] for k, n in enumerate(NAMES)})
    table = {"y": OUTCOME, "p": SCORE, "when": np.arange(N).astype("M8[D]"), "tags": [["a", "b"]] * N}
    pq.write_table(pa.table(table), "one.parquet", row_group_size=100)
    return tmp_path


def test_pieces_are_mapped_as_the_whole(here):
    calibrator = Calibrator("isotonic").fit(SCORE, OUTCOME)
    seen = []
    progress = lambda done, total: seen.append(done / total)  # noqa: E731
    options = {"batch_rows": 70, "progress": progress}
    for file in ("one.csv", "one.parquet"):
        assert map_files(calibrator, file, "out.parquet", **options) == N
        mapped = pq.read_table("out.parquet")["calibrated"].to_numpy()
        np.testing.assert_array_equal(mapped, calibrator.predict_proba(SCORE))
        assert seen[-1] == 1
        assert len(seen) > 5
        seen.clear()

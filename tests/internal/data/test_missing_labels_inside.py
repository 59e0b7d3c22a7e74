"""Rows without a label in files: left out and counted, the same in every format and however files are cut."""

import json
import shlex
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from calibrant import InputError, Sketch
from calibrant.cli import main
from calibrant.data import rows as loading

RNG = np.random.default_rng(0)
N = 240
P = RNG.random(N).round(6)
LOST = RNG.random(N) < 0.4
LOST[:60] = True
Y = (RNG.random(N) < P).astype(int)
TABLE = pa.table(
    {
        "label": pa.array(Y, mask=LOST),
        "score": pa.array(np.where(LOST, 0.5, P)),
        "n": RNG.integers(1, 4, N),
        "day": np.where(np.arange(N) < 60, "late", np.where(np.arange(N) % 2, "odd", "even")),
    }
)
KNOWN = TABLE.filter(pa.array(~LOST))


def run(*words):
    done = CliRunner().invoke(main, [*map(str, words)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def written(table, path):
    frame = table.to_pandas()
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=50)
    elif path.suffix == ".arrow":
        with pa.ipc.new_file(path, table.schema) as file:
            file.write_table(table)
    elif path.suffix == ".csv":
        frame.to_csv(path, index=False)
    elif path.suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        np.savez(path, y=frame["label"].to_numpy(), p=frame["score"].to_numpy())
    return path


@pytest.fixture(params=["parquet", "arrow", "csv", "jsonl", "npz"])
def paths(request, tmp_path):
    return written(TABLE, tmp_path / f"all.{request.param}"), written(
        KNOWN, tmp_path / f"known.{request.param}"
    )


@pytest.mark.parametrize("batch_rows", [None, 1, 7, 100])
def test_files_of_any_format_give_the_sums_of_the_labelled_rows(paths, batch_rows):
    every, known = paths
    found = Sketch.from_files(every, missing="drop", batch_rows=batch_rows)
    wanted = Sketch.from_files(known)
    assert (found.totals.rows, found.totals.dropped) == ((~LOST).sum(), LOST.sum())
    for mine, theirs in zip(found._score_data.arrays, wanted._score_data.arrays, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-15)
    with pytest.raises(InputError, match=r'missing values, got \d+, the first at row 1; pass missing="drop"'):
        Sketch.from_files(every)


COMMANDS = [
    "ece {}",
    "curve {} --at 0.5",
    "regret {} --cost 1:9",
    "check {} --max-ece 0.5",
    "check {} --max-ece 0.9 --groups day --inconclusive pass",
    "estimate {} --by day",
    "calibrate compare {} --method beta",
    "report {} -o page.html --json page.json",
    "calibrate fit {} --method beta -o map.json",
    "sketch make {} -o made.sketch",
]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("sums", [False, True])
def test_every_command_leaves_out_rows_and_says_so(
    tmp_path, monkeypatch, command, sums, without_reference_estimators
):
    monkeypatch.chdir(tmp_path)
    written(TABLE, Path("all.parquet"))
    written(KNOWN, Path("known.parquet"))
    if sums:
        monkeypatch.setattr(loading, "MANY_ROWS", 10)
    words = shlex.split(command.format("all.parquet"))
    refused = run(*words)
    assert (refused.exit_code, "give --drop-missing to leave out rows" in refused.stderr) == (2, True)
    done = run(*words, "--drop-missing")
    assert done.exit_code == 0, done.output
    sentence = f"{LOST.sum()} of {N} rows ({100 * LOST.mean():.0f} %) have no label and were left out."
    assert f"caution: {sentence}" in done.stderr
    if words[0] in ("ece", "regret", "curve") or words[2:] == ["--max-ece", "0.5"]:
        found, wanted = (
            json.loads(run(*words[:1], name, *words[2:], *more, "--json").stdout)
            for name, more in (("all.parquet", ["--drop-missing"]), ("known.parquet", []))
        )
        assert found["value"] == wanted["value"]
        assert (found["rows"], found["dropped"], wanted["dropped"]) == (sum(~LOST), sum(LOST), 0)
    elif words[0] == "report":
        page = Path("page.html").read_text().replace("\N{NO-BREAK SPACE}", " ")
        assert sentence in page
        assert sentence in json.loads(Path("page.json").read_text())["cautions"]
        assert "--drop-missing" in page

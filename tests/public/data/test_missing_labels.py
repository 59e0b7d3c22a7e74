"""Rows without a label in files: left out and counted, the same in every format and however files are cut."""

import json
import runpy
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from calibrant import Calibrator, InputError, Sketch
from calibrant.cli import main

ROOT = Path(__file__).parents[3]
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


def test_text_labels_and_counts_and_groups(tmp_path):
    words = pa.array([None if lost else ("cat", "dog")[y] for lost, y in zip(LOST, Y, strict=True)])
    wide = pa.table({"y": words, "p_cat": 1 - P, "p_dog": P, "n": TABLE["n"], "day": TABLE["day"]})
    for path in (written(wide, tmp_path / "a.parquet"), written(wide, tmp_path / "a.csv")):
        found = Sketch.from_files(path, missing="drop", counts="n", batch_rows=50)
        counts = TABLE["n"].to_numpy()
        assert (found.totals.rows, found.totals.dropped) == (counts[~LOST].sum(), counts[LOST].sum())
        assert set(found.labels) == {"cat", "dog"}
        groups = Sketch.from_files_by_group(path, groups="day", missing="drop", batch_rows=50)
        assert {day: (each.totals.rows, each.totals.dropped) for day, each in groups.items()} == {
            day: (sum(~LOST & here), sum(LOST & here))
            for day in ("even", "odd")
            for here in [TABLE["day"].to_numpy() == day]
        }


def test_a_file_whose_column_of_labels_holds_nothing_at_all(tmp_path):
    written(KNOWN.select(["label", "score"]), tmp_path / "b.parquet")
    late = pa.table({"label": pa.nulls(3), "score": [0.1, 0.2, 0.3]})
    written(late, tmp_path / "a.parquet")
    found = Sketch.from_files(tmp_path, missing="drop")
    assert (found.totals.rows, found.totals.dropped) == (KNOWN.num_rows, 3)
    rows = run("ece", tmp_path, "--drop-missing", "--json")
    assert json.loads(rows.stdout)["dropped"] == 3
    with pytest.raises(InputError, match="label must not all be missing, got 3 rows without a label"):
        Sketch.from_files(tmp_path / "a.parquet", missing="drop")
    done = run("ece", tmp_path / "a.parquet", "--drop-missing")
    assert (done.exit_code, "labels must not all be missing" in done.stderr) == (2, True)


def test_errors_count_the_rows_of_the_file(tmp_path):
    frame = TABLE.to_pandas()
    row = int(np.flatnonzero(~LOST)[40])
    frame.loc[row, "score"] = 1.5
    frame.to_csv(tmp_path / "a.csv", index=False)
    for batch_rows in (None, 50):
        with pytest.raises(InputError, match=f"got 1.5 at row {row + 1}"):
            Sketch.from_files(tmp_path / "a.csv", missing="drop", batch_rows=batch_rows)
    assert f"at row {row + 1}" in run("ece", tmp_path / "a.csv", "--drop-missing").stderr


def test_models_are_compared_on_the_rows_that_have_a_label(tmp_path):
    paths = [written(TABLE, tmp_path / f"{name}.csv") for name in "ab"]
    known = [written(KNOWN, tmp_path / f"{name}.csv") for name in "cd"]
    done = run("compare", *paths, "--drop-missing", "--json")
    assert "have no label" in done.stderr
    found, wanted = json.loads(done.stdout), json.loads(run("compare", *known, "--json").stdout)
    assert found["value"] == wanted["value"]
    assert (found["rows"], found["dropped"]) == (sum(~LOST), sum(LOST))


# Sketches on the command line


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for k, part in enumerate((TABLE.slice(0, 150), TABLE.slice(150))):
        written(part, Path(f"{k}.parquet"))
    return tmp_path


def test_sketches_are_made_added_up_and_shown(folder):
    for k in range(2):
        assert run("sketch", "make", f"{k}.parquet", "--drop-missing", "-o", f"{k}.sketch").exit_code == 0
        assert Sketch.load(f"{k}.sketch").digest == Sketch.from_files(f"{k}.parquet", missing="drop").digest
    done = run("sketch", "merge", "0.sketch", "1.sketch", "-o", "all.sketch")
    assert f"binary, {sum(~LOST)} rows of 0.sketch and 1 more" in done.stdout
    total = Sketch.load("all.sketch")
    assert total.digest == (Sketch.load("0.sketch") + Sketch.load("1.sketch")).digest
    shown = json.loads(run("sketch", "show", "all.sketch", "--json").stdout)
    y, p = Y[~LOST], P[~LOST]
    assert (shown["notion"], shown["labels"]) == ("binary", [0, 1])
    assert (shown["rows"], shown["dropped"]) == (sum(~LOST), sum(LOST))
    assert shown["mean_score"] == pytest.approx(p.mean())
    assert shown["frequency"] == pytest.approx(y.mean())
    assert shown["accuracy"] == pytest.approx(np.mean((p > 0.5) == y))
    assert shown["ece"] == total.ece()
    both = json.loads(run("sketch", "show", "?.sketch", "--json").stdout)["sketches"]
    assert sum(each["rows"] for each in both) == sum(~LOST)
    text = run("sketch", "show", "0.sketch", "1.sketch").stdout.splitlines()
    assert [line.split()[0] for line in text] == ["sketch", "0", "1"]


def test_accuracy_of_classes_is_known_and_mean_score_is_that_of_one_class():
    p = RNG.dirichlet(np.ones(3), 50)
    y = RNG.integers(0, 3, 50)
    right = np.mean(p.argmax(axis=1) == y)
    for notion in ("confidence", "classwise"):
        held = Sketch(notion).update(y, p).to_dict()
        assert held["accuracy"] == pytest.approx(right)
        score = None if notion == "classwise" else pytest.approx(p.max(axis=1).mean())
        assert held["mean_score"] == score


@pytest.mark.full
@pytest.mark.parametrize("named", [["0.sketch", "1.sketch"], ["[01].sketch"]])
@pytest.mark.parametrize(
    "command",
    [
        "ece",
        "check --max-ece 0.5",
        "curve --at 0.5",
        "regret --cost 0.3",
        "calibrate fit -o m.json",
        "report",
    ],
)
def test_several_sketches_are_one_to_every_command(folder, named, command, without_reference_estimators):
    for k in range(2):
        Sketch.from_files(f"{k}.parquet", missing="drop").save(f"{k}.sketch")
    (Sketch.load("0.sketch") + Sketch.load("1.sketch")).save("sum.sketch")
    words = shlex.split(command)
    where = 2 if words[0] == "calibrate" else 1
    done, wanted = (run(*words[:where], *names, *words[where:]) for names in (named, ["sum.sketch"]))
    assert done.exit_code == wanted.exit_code == 0, done.output
    if words[0] not in ("calibrate", "report"):
        assert done.stdout == wanted.stdout


def test_sketches_that_do_not_go_together_are_refused_by_their_names(folder):
    Sketch("binary").update(Y, P).save("a.sketch")
    Sketch("confidence").update(Y, P).save("b.sketch")
    Sketch("binary", pos_label="dog").update(["cat", "dog"], [0.2, 0.7]).save("c.sketch")
    refusals = {
        ("ece", "a.sketch", "b.sketch"): "a.sketch and b.sketch: sketches must have the same notion",
        ("sketch", "merge", "a.sketch", "c.sketch", "-o", "m.sketch"): "a.sketch and c.sketch: ",
        ("ece", "a.sketch", "0.parquet"): "0.parquet: is no sketch",
        ("ece", "0.parquet", "1.parquet"): "a pattern in quotes",
        ("ece", "*"): "is no sketch",
        ("ece", "a.sketch", "a.sketch"): "is meant twice",
        ("sketch", "show", "0.parquet"): "0.parquet: sketch must be a file that Sketch.save wrote",
        ("sketch", "merge", "a.sketch", "-o", "a.sketch"): "it is an input",
        ("ece", "a.sketch", "--drop-missing"): "leave out --drop-missing",
        ("sketch", "make", "0.parquet", "-o", "m.sketch"): "give --drop-missing",
        ("sketch", "make", "0.parquet", "-o", "0.parquet"): "it is an input",
        ("sketch", "show", "no.sketch"): "no.sketch",
    }
    for words, text in refusals.items():
        done = run(*words)
        assert (done.exit_code, text in done.stderr) == (2, True), (words, done.stderr)
    assert not Path("m.sketch").exists()


def test_a_map_is_applied_to_the_columns_it_was_fitted_to(folder):
    frame = KNOWN.to_pandas()
    frame.rename(columns={"score": "p_ill"}).to_csv("old.csv", index=False)
    assert run("calibrate", "fit", "old.csv", "--pos-label", "1", "-o", "map.json").exit_code == 0
    new = pd.DataFrame(
        {"score": [0.1, 0.9], "p_ill": [0.3, 0.6]}
    )  # by their names alone, either might be meant
    new.to_csv("new.csv", index=False)
    assert run("calibrate", "apply", "map.json", "new.csv", "-o", "out.csv").exit_code == 0
    wanted = Calibrator.load("map.json").predict_proba(new["p_ill"].to_numpy())
    np.testing.assert_allclose(pd.read_csv("out.csv")["calibrated"], wanted)
    pd.DataFrame({"risk": [0.1]}).to_csv("bad.csv", index=False)
    done = run("calibrate", "apply", "map.json", "bad.csv", "-o", "out2.csv")
    assert done.exit_code == 2
    assert "the map was fitted to 'p_ill', which the file does not have" in done.stderr


@pytest.mark.full
def test_the_example_of_thirty_days(tmp_path, monkeypatch, capsys):
    month = runpy.run_path(str(ROOT / "docs/examples/thirty_days.py"))
    month["write"](tmp_path)
    sketches, estimates, comparison = month["from_python"](tmp_path)
    assert comparison.differences[str(month["BROKEN"])].low > 0.1
    assert len(sketches) == 30
    assert [day for day, each in estimates.items() if each.low > month["LIMIT"]] == [str(month["BROKEN"])]
    late = [sketches[str(month["FIRST"].replace(day=k + 1))].totals.dropped for k in month["LATE"]]
    assert late == sorted(late)
    assert sum(each.totals.dropped for each in sketches.values()) == sum(late) > 0
    assert month["from_commands"](tmp_path) == {"month": 0, "each day": 1, "change": 1, "compare": 1}
    failed = [line for line in (tmp_path / "days.md").read_text().splitlines() if line.endswith("| fail |")]
    assert [line.split()[1] for line in failed] == [str(month["BROKEN"])]
    assert (tmp_path / "change.html").read_text(encoding="utf-8") == comparison.to_html()
    total = sum(sketches.values())
    assert Sketch.load(tmp_path / "month.sketch").digest == total.digest
    assert f"{sum(late):,} of 60,000 rows" in capsys.readouterr().out

"""The command that audits segments: the same numbers as Python, and exit codes that follow the intervals."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import calibrant
from calibrant.cli import main


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    score = rng.beta(1, 4, 900).round(4)
    device = np.array(["app", "web", None])[rng.integers(0, 3, 900)]
    age = np.where(rng.random(900) < 0.1, np.nan, rng.integers(18, 80, 900))
    outcome = rng.random(900) < np.where(device == "app", np.minimum(3 * score, 1), score)
    return pd.DataFrame({"y": outcome.astype(int), "score": score, "device": device, "age": age})


@pytest.fixture(scope="module")
def file(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("audit") / "rows.csv"
    rows.to_csv(path, index=False)
    return str(path)


@pytest.fixture(scope="module")
def audit(rows):
    return calibrant.audit(rows["y"], rows["score"], rows[["device", "age"]], rng=3, n_resamples=499)


def told(*words, code=0):
    result = CliRunner().invoke(main, ["audit", *words])
    assert result.exit_code == code, result.output
    return result.stdout


COMMON = ("--segments", "device,age", "--seed", "3", "--n-resamples", "499", "-q")


def test_an_audit_is_that_of_python_also_where_values_are_missing(file, rows, audit, tmp_path):
    names = {each.name for each in audit.segments}
    assert {"device = missing", "age = missing"} <= names
    assert told(file, *COMMON) == f"{audit}\n"
    assert told(file, *COMMON, "--markdown") == audit.to_markdown()
    values = json.loads(told(file, *COMMON, "--json"))
    about = {name: values.pop(name) for name in ("source", "read", "dropped")}
    assert about == {"source": "rows.csv", "read": "rows", "dropped": 0}
    assert calibrant.SegmentAudit.from_dict(values) == audit
    parquet = str(tmp_path / "rows.parquet")
    rows.to_parquet(parquet)
    assert told(parquet, *COMMON) == f"{audit}\n"
    few = told(file, *COMMON, "--depth", "1", "--min-rows", "200", "--level", "0.9", "--json")
    assert {len(each["columns"]) for each in json.loads(few)["segments"]} == {1}
    assert min(each["rows"] for each in json.loads(few)["segments"]) >= 200


@pytest.mark.parametrize(
    ("limit", "code", "word"), [("0.02", 1, "FAIL"), ("0.4", 3, "INCONC"), ("1", 0, "PASS")]
)
def test_exit_codes_follow_the_intervals(file, audit, limit, code, word):
    status, sentence = audit.verdict(float(limit))
    assert status.upper().startswith(word)
    assert told(file, *COMMON, "--max-gap", limit, code=code).startswith(f"{status.upper()}: {sentence[:20]}")
    values = json.loads(told(file, *COMMON, "--max-gap", limit, "--json", code=code))
    assert (values["status"], values["exit_code"], values["limit"]) == (status, code, float(limit))


def test_pages_and_pictures_are_written(file, audit, tmp_path):
    told(file, *COMMON, "-o", str(tmp_path / "page.html"))
    assert (tmp_path / "page.html").read_text() == audit.to_html()
    told(file, *COMMON, "-o", str(tmp_path / "forest.svg"))
    assert (tmp_path / "forest.svg").read_bytes()[:5] == b"<?xml"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "Missing option '--segments'"),
        (("--segments", "colour"), "colour"),
        (("--segments", "device", "--depth", "0"), "--depth"),
        (
            ("--segments", "device", "--min-rows", "5000"),
            "have a segment of 5000 rows",
        ),
        (("--segments", "device", "--json", "--markdown"), "give one of them"),
        (("--segments", "device", "-o", "page.txt"), "page.txt ends in none of .html"),
        (("--segments", "device", "--notion", "classwise"), "notion"),
        (("--segments", "device,device"), "different columns"),
    ],
)
def test_bad_usage_is_told_in_one_line(file, words, message):
    result = CliRunner().invoke(main, ["audit", file, *words])
    assert result.exit_code == 2
    assert message in result.output
    assert result.output.count("\n") == 1


def test_a_table_by_group_refuses_missing_values(file):
    result = CliRunner().invoke(main, ["estimate", file, "--by", "device"])
    assert result.exit_code == 2
    assert "must have no missing values" in result.output

"""Gates: several limits, groups, a baseline, and what a build shows of them."""

import json
import math
import xml.etree.ElementTree as ET
from statistics import NormalDist

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import calibrant
from calibrant.cli import main
from oracles.comparison import least_difference
from shortcuts import read_as_sums

RNG = np.random.default_rng(0)
N = 1200
P = RNG.beta(1.5, 1.5, N).round(6)
Y = (RNG.random(N) < P).astype(int)
REGION = np.where(np.arange(N) < 12, "a|b<i>", np.where(np.arange(N) % 2, "north", "south"))


def run(*words):
    done = CliRunner().invoke(main, [*map(str, words)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def checked(*words):
    """The exit code and the JSON of a check."""
    done = run("check", *words, "--json", "-q")
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    assert done.exit_code == found["exit_code"]
    return found


def refused(*words):
    done = run("check", *words)
    assert (done.exit_code, done.stdout) == (2, "")
    return done.stderr


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"y": Y, "p": P, "region": REGION})
    frame.to_csv("new.csv", index=False)
    frame.assign(p=(P**1.5).round(6)).to_csv("worse.csv", index=False)
    frame[:1000].to_csv("short.csv", index=False)
    frame.assign(p=Y.mean()).to_csv("constant.csv", index=False)
    calibrant.Sketch().update(Y, P).save("new.sketch")
    return tmp_path


# Each measurement, computed in another way


def test_the_oe_ratio_has_an_interval_on_the_log_scale(here):
    found = checked("worse.csv", "--max-oe", "1.1")
    score = (P**1.5).round(6)
    ratio = Y.sum() / score.sum()
    residual = sum((float(y) - ratio * float(s)) ** 2 for y, s in zip(Y, score, strict=True))
    arm = NormalDist().inv_cdf(0.975) * math.sqrt(residual) / Y.sum()
    assert found["value"] == pytest.approx(ratio)
    assert found["ratio"]["low"] == pytest.approx(ratio * math.exp(-arm))
    assert found["ratio"]["high"] == pytest.approx(ratio * math.exp(arm))
    assert found["status"] == "fail"
    # In the other direction: too few outcomes.
    pd.DataFrame({"y": Y, "p": np.sqrt(P)}).to_csv("high.csv", index=False)
    found = checked("high.csv", "--max-oe", "1.1")
    assert found["ratio"]["high"] < 1 / 1.1
    assert found["status"] == "fail"


# Baselines


def test_equal_labels_are_paired_and_others_are_independent(here):
    paired = checked("worse.csv", "--baseline", "new.csv", "--max-worse", "0.005")
    wanted = calibrant.compare(Y, {"old": P, "new": (P**1.5).round(6)}, rng=0).differences["new"]
    assert paired["difference"]["low"] == wanted.low
    assert paired["difference"]["high"] == wanted.high
    assert paired["difference"]["paired"]
    assert paired["status"] == "fail"
    other = checked("short.csv", "--baseline", "worse.csv", "--max-worse", "0.005")
    a, b = (calibrant.estimate(y, p, rng=0) for y, p in ((Y[:1000], P[:1000]), (Y, (P**1.5).round(6))))
    value = a.value - b.value
    assert other["value"] == pytest.approx(value)
    assert other["difference"]["low"] == pytest.approx(least_difference(a, b, 0.0), abs=1e-7)
    assert other["difference"]["high"] == pytest.approx(-least_difference(b, a, 0.0), abs=1e-7)
    assert not other["difference"]["paired"]
    assert other["status"] == "pass"
    said = run("check", "short.csv", "--baseline", "worse.csv", "--max-worse", "0.005").stdout
    assert "1,000 rows, independent of 1,200 rows of worse.csv" in said
    said = run("check", "worse.csv", "--baseline", "new.csv", "--max-worse", "0.005").stdout
    assert "1,200 rows, paired by row with those of new.csv" in said


@pytest.mark.parametrize(("path", "old"), [("worse.csv", "new.sketch"), ("new.sketch", "worse.csv")])
def test_a_baseline_may_be_a_sketch_and_so_may_the_data(here, path, old):
    found = checked(path, "--baseline", old, "--max-worse", "0.005")
    sketches = {
        "new": calibrant.Sketch().update(Y, (P**1.5).round(6)),
        "old": calibrant.Sketch().update(Y, P),
    }
    wanted = calibrant.compare(sketches, baseline="old", rng=0).differences["new"]
    sign = 1 if path == "worse.csv" else -1
    assert found["value"] == pytest.approx(sign * wanted.value, abs=1e-4)
    assert found["status"] == ("fail" if sign > 0 else "pass")
    assert not found["difference"]["paired"]


def test_a_baseline_about_something_else_is_refused(here):
    pd.DataFrame({"y": Y, "p_0": 1 - P, "p_1": P}).to_csv("matrix.csv", index=False)
    limit = "--max-worse", "0.1"
    assert "have the same notion binary of 1, got notion confidence" in refused(
        "new.csv", "--baseline", "matrix.csv", *limit
    )
    assert "is a sketch, which has no groups" in refused(
        "new.csv", "--baseline", "new.sketch", "--groups", "region", *limit
    )
    assert "go together" in refused("new.csv", *limit)
    assert "go together" in refused("new.csv", "--baseline", "short.csv", "--max-ece", "0.1")


# Several limits and groups


def test_the_worst_of_several_limits_decides_and_each_is_listed(here):
    limits = ("--max-ece", "0.11", "--max-oe", "1.05", "--max-excess-log-loss", "0.5")
    found = checked("worse.csv", *limits)
    assert [each["check"] for each in found["verdicts"]] == ["max_ece", "max_oe", "max_excess_log_loss"]
    statuses = [each["status"] for each in found["verdicts"]]
    assert statuses == ["inconclusive", "fail", "pass"]
    assert (found["check"], found["exit_code"]) == ("max_oe", 1)
    text = " ".join(run("check", "worse.csv", *limits).stdout.split())
    assert text.startswith(
        "FAIL: 3 limits, 1 failed, 1 inconclusive, 1 passed INCONCLUSIVE: calibration error"
    )
    assert " FAIL: O:E ratio (class 1) " in text
    assert " is outside of 0.9524 to 1.05; 1,200 rows " in text
    assert " PASS: excess log loss " in text
    counted = checked("worse.csv", *limits[:2], "--inconclusive", "pass")
    assert (counted["status"], counted["exit_code"]) == ("inconclusive", 0)


def test_groups_have_the_family_wise_level_and_one_that_fails_decides(here):
    found = checked("worse.csv", "--groups", "region", "--max-ece", "0.03")
    for each in found["verdicts"]:
        rows = each["group"] == REGION
        wanted = calibrant.estimate(Y[rows], (P**1.5).round(6)[rows], rng=0, level=1 - 0.05 / 3)
        assert each["estimate"]["low"] == pytest.approx(wanted.low)
        assert each["estimate"]["high"] == pytest.approx(wanted.high)
    status = {each["group"]: each["status"] for each in found["verdicts"]}
    assert status == {"a|b<i>": "inconclusive", "north": "fail", "south": "fail"}
    assert found["exit_code"] == 1


def test_groups_of_too_few_rows_are_named_with_the_verdict_without_them(here):
    words = ("new.csv", "--groups", "region", "--max-ece", "0.15")
    found = checked(*words)
    assert found["status"] == "inconclusive"
    (caution,) = found["cautions"]
    assert caution == "Too few rows to decide (fewer than 30): group a|b<i> (12 rows). Without it: PASS."
    text = run("check", *words, "--inconclusive", "fail")
    assert text.exit_code == 1
    assert "3 groups, 1 inconclusive, 2 passed" in text.stdout
    assert "; counted as fail\n" in text.stdout
    assert "98.33 % interval" in text.stdout
    assert " ".join(caution.split()) in " ".join(text.stdout.split())


def test_groups_are_compared_with_those_of_the_baseline(here):
    pd.read_csv("worse.csv").query("region != 'south'").to_csv("two.csv", index=False)
    found = checked("new.csv", "--groups", "region", "--baseline", "two.csv", "--max-worse", "0.05")
    by_group = {each["group"]: each for each in found["verdicts"]}
    assert by_group["north"]["status"] == "pass"
    assert by_group["north"]["difference"]["paired"]
    assert (by_group["south"]["status"], by_group["south"]["value"]) == ("inconclusive", None)
    text = run(
        "check", "new.csv", "--groups", "region", "--baseline", "two.csv", "--max-worse", "0.05"
    ).stdout
    assert "unknown" in text


def test_groups_of_sums_are_those_of_rows(here, monkeypatch):
    words = ("new.csv", "--groups", "region", "--max-ece", "0.15", "--max-oe", "1.3")
    rows = checked(*words)
    read_as_sums(monkeypatch)
    sums = checked(*words)
    assert (rows["read"], sums["read"]) == ("rows", "sums")
    assert [each["group"] for each in rows["verdicts"]] == [each["group"] for each in sums["verdicts"]]
    for a, b in zip(rows["verdicts"], sums["verdicts"], strict=True):
        assert a["status"] == b["status"]
        assert a["value"] == pytest.approx(b["value"], abs=2e-3)
    # What is cross-validated needs rows.
    assert checked("new.csv", "--max-excess-log-loss", "0.5")["read"] == "rows"
    assert "cross-validated on rows" in refused("new.sketch", "--max-excess-log-loss", "0.5")


def test_more_groups_than_are_printed_are_counted(here):
    pd.DataFrame({"y": Y, "p": P, "region": np.arange(N) // 50}).to_csv("many.csv", index=False)
    text = run("check", "many.csv", "--groups", "region", "--max-oe", "5").stdout
    assert "24 groups, " in text
    assert "4 more are pass or better." in text


# Scores that say nothing


def test_a_constant_score_passes_with_a_caution_everywhere(here):
    found = checked("constant.csv", "--max-ece", "0.1")
    assert found["exit_code"] == 0
    (caution,) = found["cautions"]
    assert caution.startswith("All scores are equal")
    done = run("check", "constant.csv", "--max-ece", "0.1", "--junit", "a.xml", "--markdown", "a.md")
    assert done.exit_code == 0
    assert done.stdout.startswith("PASS: ")
    assert "All scores are equal" in done.stdout
    assert caution in (here / "a.md").read_text()
    assert caution in ET.parse("a.xml").getroot().find("system-out").text


@pytest.mark.full
def test_a_limit_that_a_constant_would_pass_has_a_caution_everywhere(here):
    rng = np.random.default_rng(5)
    p = rng.beta(1, 24, 6000).round(6)
    frame = pd.DataFrame({"y": (rng.random(6000) < p).astype(int), "p": p, "region": np.arange(6000) % 2})
    frame.to_csv("rare.csv", index=False)
    frame.assign(p=0.0).to_csv("zero.csv", index=False)
    frame.assign(y=1 - frame.y, p=1 - frame.p).to_csv("usual.csv", index=False)
    calibrant.Sketch().update(frame.y, frame.p).save("rare.sketch")
    rate = f"{frame.y.mean():.4f}"
    text = (
        "A model that always predicts the more frequent outcome would pass: the limit 0.06 is not below the "
        f"base rate of the rarer outcome, {rate}. Choose a lower limit, such as half of the base rate, or "
        "add --max-oe."
    )
    for file in ("rare.csv", "zero.csv", "usual.csv", "rare.sketch"):
        found = checked(file, "--max-ece", "0.06", "--markdown", "a.md", "--junit", "a.xml")
        assert found["status"] == "pass"
        assert text in found["cautions"]
        assert "more frequent outcome" in (here / "a.md").read_text()
        assert text in ET.parse("a.xml").getroot().find("system-out").text
    assert text in " ".join(run("check", "rare.csv", "--max-ece", "0.06").stdout.split())
    for words in (["--max-ece", "0.02"], ["--max-ece", "0.06", "--max-oe", "2"], ["--max-oe", "2"]):
        assert not any("more frequent" in each for each in checked("rare.csv", *words)["cautions"])
    assert checked("zero.csv", "--max-ece", "0.06", "--max-oe", "2")["status"] == "inconclusive"
    assert not any("frequent" in each for each in checked("new.csv", "--max-ece", "0.3")["cautions"])
    (caution,) = checked("rare.csv", "--max-ece", "0.06", "--groups", "region")["cautions"]
    rates = [f"{k} ({frame.y[frame.region == k].mean():.4f})" for k in (0, 1)]
    assert f"base rate of the rarer outcome in {' and '.join(rates)}. Choose" in caution


def test_models_of_different_accuracy_are_told(here):
    rng = np.random.default_rng(6)
    confidence = rng.uniform(0.9, 1, 2000).round(6)
    right = rng.random(2000) < confidence
    pd.DataFrame({"correct": right, "confidence": confidence}).to_csv("good.csv", index=False)
    low = (confidence - 0.4).round(6)
    pd.DataFrame({"correct": rng.random(2000) < low, "confidence": low}).to_csv("bad.csv", index=False)
    found = checked("bad.csv", "--baseline", "good.csv", "--max-worse", "0.05")
    assert found["status"] == "pass"
    caution = next(each for each in found["cautions"] if "different accuracy" in each)
    assert caution.startswith("The accuracies of 'this' and 'baseline' are 0.5")
    assert caution.endswith("errors of models with different accuracy are not directly comparable.")
    done = run("check", "bad.csv", "--baseline", "good.csv", "--max-worse", "0.05")
    assert caution in " ".join(done.stdout.split())
    assert checked("good.csv", "--baseline", "good.csv", "--max-worse", "0.05")["cautions"] == []
    for name in ("good", "bad"):
        pd.read_csv(f"{name}.csv").assign(part="x").to_csv(f"{name}-part.csv", index=False)
    words = ["--baseline", "good-part.csv", "--max-worse", "0.05", "--groups", "part"]
    assert f"x: {caution}" in checked("bad-part.csv", *words)["cautions"]


# What a build shows


def test_junit_has_a_test_for_each_group_and_limit(here):
    run(
        "check", "worse.csv", "--groups", "region", "--max-ece", "0.03", "--max-oe", "1.5", "--junit", "a.xml"
    )
    suite = ET.parse("a.xml").getroot()
    cases = suite.findall("testcase")
    assert (suite.attrib["tests"], len(cases)) == ("6", 6)
    assert int(suite.attrib["failures"]) == len(suite.findall("testcase/failure"))
    names = [case.attrib["name"] for case in cases]
    assert "north: calibration error (class 1) at most 0.03" in names
    assert "a|b<i>: O:E ratio (class 1) 0.6667 to 1.5" in names
    assert len({*names}) == 6


def test_the_summary_is_a_table_that_nothing_can_break(here):
    done = run("check", "worse.csv", "--groups", "region", "--max-ece", "0.03", "--markdown", "a.md")
    title, _, sentence, _, head, rule, *rows = (here / "a.md").read_text().splitlines()
    assert title == "## FAIL: calibration of worse.csv"
    assert "2 failed" in sentence
    assert head.count("|") == rule.count("|") == 8
    assert [row.replace(r"\|", "").count("|") for row in rows[:3]] == [8, 8, 8]
    assert r"a\|b\<i\>" in rows[2]
    assert any("calibrant report" in row for row in rows)
    assert done.exit_code == 1


@pytest.mark.parametrize("name", ["gone.csv", "gone?.csv", "bad.csv"])
def test_bad_input_is_an_error_that_a_build_shows(here, name):
    (here / "bad.csv").write_text("label,score\n1,<high>|\n")
    for report in ("a.xml", "a.md"):
        (here / report).write_text("the result of an earlier run")
    message = refused(name, "--max-ece", "0.1", "--junit", "a.xml", "--markdown", "a.md")
    suite = ET.parse("a.xml").getroot()
    assert (suite.attrib["errors"], suite.attrib["failures"], suite.attrib["tests"]) == ("1", "0", "1")
    assert f"Error: {suite.find('testcase/error').attrib['message']}\n" == message
    assert (here / "a.md").read_text().startswith(f"## ERROR: calibration of {name}\n")
    assert "<high>" not in (here / "a.md").read_text()


def test_an_input_that_is_not_there_does_not_let_another_be_written_over(here):
    before = (here / "new.csv").read_bytes()
    message = refused("gone.csv", "--baseline", "new.csv", "--max-worse", "0.1", "--junit", "new.csv")
    assert "is an input" in message
    assert (here / "new.csv").read_bytes() == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--max-oe", "0.8"), "0.8 is not above 1; write 1.25, which allows from 0.8"),
        (("--max-oe", "inf"), "is not above 1"),
        (("--max-excess-log-loss", "0"), "0 is not above 0"),
        (("--max-worse", "-0.1", "--baseline", "x"), "-0.1 does not lie in [0, 1]"),
        (("--max-worse", "2", "--baseline", "x"), "write 0.02"),
        (("--max-oe", "2", "--notion", "canonical"), "go with one score of each row"),
        ((), "give a limit: --max-ece, "),
        (("--max-oe", "2", "--estimator", "uniform:15"), "--estimator goes with --max-ece"),
    ],
)
def test_limits_that_cannot_be_are_refused(here, words, message):
    path = "three.csv" if "canonical" in words else "new.csv"
    rng = np.random.default_rng(0)
    three = dict(zip(("p_a", "p_b", "p_c"), rng.dirichlet([1, 1, 1], 60).T, strict=True))
    pd.DataFrame({"y": rng.choice([*"abc"], 60)} | three).to_csv("three.csv", index=False)
    assert message in refused(path, *words)

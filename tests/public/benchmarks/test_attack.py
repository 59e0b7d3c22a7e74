"""A small version of the attack, and what its one command does with what it finds."""

import sys
from importlib import util
from pathlib import Path

import numpy as np
import pytest

import calibrant
from calibrant import estimator_names

pytestmark = [pytest.mark.full, pytest.mark.no_cover]

FOLDER = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture
def attack(monkeypatch):
    spec = util.spec_from_file_location("attack_of_all", FOLDER / "attack.py")
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    return module


def test_the_same_thing_said_in_another_way_has_the_same_answer(attack):
    assert attack.attack("metamorphic", 60, 1) == []


@pytest.fixture
def metamorphic(attack):
    from attacks import metamorphic

    return metamorphic


#: Cases of a seed.
BROKEN = {12: (779, 1819, 2189, 2359, 3279, 3399, 3779), 15: (739, 3006, 4859), 23: (399,)}


@pytest.mark.parametrize(
    ("seed", "number"), [(seed, number) for seed, numbers in BROKEN.items() for number in numbers]
)
def test_what_an_attack_once_broke_stays_whole(metamorphic, seed, number):
    """Names of clusters, a complement, rows of no weight, the scale of weights, and scores a bit apart."""
    assert metamorphic.case(seed, number) == ""


def test_p_values_that_differ_over_all_seeds_are_no_noise(metamorphic, monkeypatch):
    """The p-value of one wording is larger by less than twice its own noise, always."""
    case = metamorphic.drawn_case(12, 3379)
    noise = np.random.default_rng(0)

    def asked(data, notion, spec, norm, seed=0):
        return {"p_value": noise.normal(0.5, 0.05) + lean * (data is case.one)}

    monkeypatch.setattr(metamorphic, "estimated", asked)
    lean = 0.0
    assert case.alike_over_seeds("p_value")
    lean = 0.09
    assert not case.alike_over_seeds("p_value")


def test_every_estimator_notion_norm_and_relation_is_attacked(metamorphic):
    drawn = [metamorphic.drawn_case(0, number) for number in range(1500)]
    maps = [case for case in drawn if isinstance(case, metamorphic.MapCase)]
    assert {case.relation for case in maps} == {
        "order of rows",
        "order of classes",
        "complement",
        "saved and loaded",
    }
    cases = [case for case in drawn if isinstance(case, metamorphic.Case) and case.notion != "canonical"]
    assert {case.spec for case in cases} == set(metamorphic.ALL)
    assert {case.relation for case in cases} == set(metamorphic.RELATIONS)
    assert {case.notion for case in cases} == {*metamorphic.VECTOR, *metamorphic.MATRIX}
    assert {case.norm for case in cases} == {"l1", "l2", "max"}
    assert {case.way for case in cases} == {"ece", "estimate", "sketch", "group"}
    of_estimates = {case.relation for case in cases if case.way == "estimate"}
    assert of_estimates == set(metamorphic.RELATIONS) - {"merge", "group alone"}


@pytest.mark.parametrize("relation", ["order of rows", "counts", "no weight", "complement"])
def test_the_attack_sees_an_estimator_that_keeps_no_promise(metamorphic, monkeypatch, relation):
    true = calibrant.ece

    def careless(y_true, y_prob, **options):
        return true(y_true, y_prob, **options) + 1e-6 * float(np.ravel(y_prob)[0]) + 1e-6 * len(y_true)

    monkeypatch.setattr(calibrant, "ece", careless)
    drawn = {k: metamorphic.drawn_case(0, k) for k in range(600)}
    asked = {k: case for k, case in drawn.items() if isinstance(case, metamorphic.Case) and case.way == "ece"}
    found = [k for k, case in asked.items() if case.relation == relation][:20]
    assert any(metamorphic.case(0, k).startswith(f"case(0, {k}), {relation}") for k in found)


def test_an_error_is_a_failure_of_its_case(metamorphic, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("no rows")

    monkeypatch.setattr(calibrant, "ece", broken)
    assert "ZeroDivisionError: no rows" in metamorphic.case(0, 0)


def test_every_family_of_the_registry_is_attacked_in_an_unchanged_order(metamorphic):
    # The order decides which estimator the case of a seed and a number asks.
    assert list(metamorphic.SPECS) == list(estimator_names())
    assert metamorphic.SPECS["uniform"] == ("l:1", "l:10", "l:15", "l:sqrt")
    assert metamorphic.SPECS["kuiper"] == ("ku",)


def test_one_command_runs_a_share_of_the_attacks_and_writes_the_table(attack, monkeypatch, tmp_path, capsys):
    asked = []
    monkeypatch.setattr(attack, "attack", lambda *case: asked.append(case) or [])
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- attack:begin -->\nold\n<!-- attack:end -->\nafter\n")
    assert attack.main(["--share", "0.01", "--seed", "7", "--write", str(page)]) == 0
    assert asked == [
        ("metamorphic", 50, 7),
        ("files", 20, 7),
        ("refusals", 2, 7),
        ("kills", 2, 7),
        ("writers", 1, 7),
        ("pages", 1, 7),
    ]
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert "| kills | 2 | processes killed at work | 0 | 0 |" in text
    assert "| kills | 2 |" in capsys.readouterr().out


def test_what_breaks_is_printed_and_fails_the_command(attack, monkeypatch, capsys):
    monkeypatch.setattr(attack, "attack", lambda name, cases, seed: ["case 3: 1 and 2"])
    assert attack.main(["--only", "files"]) == 1
    printed = capsys.readouterr()
    assert "files: case 3: 1 and 2" in printed.err
    assert "| files | 2000 | fuzzed files of each format | 1 |" in printed.out


def test_a_page_without_marks_is_refused(attack, monkeypatch, tmp_path):
    monkeypatch.setattr(attack, "attack", lambda *_: [])
    page = tmp_path / "page.md"
    page.write_text("no marks")
    with pytest.raises(SystemExit, match="has no <!-- attack:begin -->"):
        attack.main(["--only", "pages", "--write", str(page)])
    assert page.read_text() == "no marks"


def test_the_page_on_reliability_has_the_marks_and_every_attack(attack):
    text = (FOLDER.parent / "docs" / "reliability.md").read_text()
    table = text[text.index("<!-- attack:begin -->") : text.index("<!-- attack:end -->")]
    for name in attack.ATTACKS:
        assert f"| {name} | " in table

"""A small version of the attack by hostile files; the full one is run by hand."""

import sys
from dataclasses import replace
from importlib import util
from pathlib import Path

import numpy as np
import pytest

pytestmark = [pytest.mark.full, pytest.mark.no_cover]

FILE = Path(__file__).parents[3] / "benchmarks" / "attacks" / "files.py"


@pytest.fixture(scope="module")
def attack():
    spec = util.spec_from_file_location("attack_files", FILE)
    module = util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("format", ["csv", "tsv", "jsonl", "json", "parquet", "arrow", "npz"])
def test_every_road_reads_the_same_or_all_refuse(attack, format):
    assert attack.run(20, 1, [format]) == []


def test_the_attack_sees_a_road_that_reads_other_numbers(attack, monkeypatch):
    honest = attack.of_rows

    def forged(data):
        scores = np.where(data.y_prob == data.y_prob.flat[0], data.y_prob / 2, data.y_prob)
        return honest(replace(data, y_prob=scores))

    monkeypatch.setattr(attack, "of_rows", forged)
    assert any("other" in text for text in attack.run(10, 1, ["csv"]))


def test_the_attack_sees_a_road_that_refuses_what_others_read(attack, monkeypatch):
    def refused(*_):
        raise ValueError("no")

    monkeypatch.setattr(attack, "of_frame", refused)
    assert any("polars: refused" in text for text in attack.run(10, 1, ["jsonl"]))


def test_the_attack_sees_errors_that_are_none_of_ours(attack, monkeypatch):
    def broken(*_, **__):
        raise KeyError("p")

    monkeypatch.setattr(attack, "load_models", broken)
    assert all("KeyError" in text for text in attack.run(2, 1, ["npz"]))
    assert len(attack.run(2, 1, ["npz"])) == 2


def test_half_of_the_files_are_read(attack):
    """With too few that are, nothing would be compared."""
    assert attack.share_read(20, 1) > 0.4

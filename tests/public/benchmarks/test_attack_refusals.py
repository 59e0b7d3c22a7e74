"""A small version of the attack by files that are refused; the full one is run by hand."""

import sys
from importlib import util
from pathlib import Path

import pytest

pytestmark = [pytest.mark.full, pytest.mark.no_cover]

FILE = Path(__file__).parents[3] / "benchmarks" / "attacks" / "refusals.py"


@pytest.fixture(scope="module")
def attack():
    spec = util.spec_from_file_location("attack_refusals", FILE)
    module = util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_a_process_that_refuses_a_file_ends(attack):
    assert attack.run(20, 0) == []


def test_the_attack_sees_a_process_that_does_not_end(attack, monkeypatch):
    monkeypatch.setattr(attack, "LIMIT", 0.01)
    assert "has not ended after 0.01 s" in attack.run(1, 0)[0]


def test_the_attack_sees_another_code(attack, monkeypatch):
    monkeypatch.setattr(attack, "content_of", lambda rng: ("csv", b"y,p\n" + b"1,0.5\n0,0.5\n" * 20))
    assert "exit code 0" in attack.run(1, 0)[0]

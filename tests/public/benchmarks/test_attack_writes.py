"""A small version of the attacks on what is written: kills, and several writers at once."""

import os
from importlib import import_module
from pathlib import Path

import pytest

pytestmark = [pytest.mark.full, pytest.mark.no_cover]

FOLDER = Path(__file__).parents[3] / "benchmarks"


@pytest.mark.skipif(os.name != "posix", reason="forks, and signals as POSIX has them")
@pytest.mark.parametrize(("name", "cases"), [("kills", 12), ("writers", 6)])
def test_an_attack_finds_nothing(monkeypatch, name, cases):
    monkeypatch.syspath_prepend(str(FOLDER))
    attack = import_module(f"attacks.{name}")
    assert Path(attack.__file__).parent.parent == FOLDER
    assert attack.run(cases, seed=0) == []

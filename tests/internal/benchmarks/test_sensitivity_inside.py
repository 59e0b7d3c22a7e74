"""What benchmarks/sensitivity.py measures and writes."""

import dataclasses
import functools
import json
import sys
from concurrent.futures import Future
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from calibrant import settings
from calibrant.inference import estimate as package_module

FOLDER = Path(__file__).parents[3] / "benchmarks"
sys.path.append(str(FOLDER))
sensitivity, sensitivity_measures, sensitivity_page = map(
    import_module, ("sensitivity", "sensitivity_measures", "sensitivity_page")
)
sys.path.remove(str(FOLDER))


@dataclasses.dataclass(frozen=True)
class FakeSettings:
    """Settings of this test."""

    weight: float = settings.setting(0.5, "A weight.", "convention")
    count: int = settings.setting(1, "A | count.", "convention")
    flag: bool = settings.setting(True, "A switch.", "convention")
    broken: float = settings.setting(2.0, "Fails above its value.", "convention")


def measured(cell, count):
    fake = settings.FAKE
    if fake.broken > 2:
        raise ValueError("too large")
    noise = np.random.default_rng(cell.n).random(count)
    return {"MAE": 1 + noise * fake.weight / 0.5 + (fake.weight - 0.5), "coverage": noise < 0.95}


class Inline:
    """An executor without processes."""

    def __init__(self, *_, **__):
        self.map = map

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def submit(self, function, *arguments):
        future = Future()
        future.set_result(function(*arguments))
        return future


@pytest.fixture
def fake(monkeypatch):
    for name in sensitivity_measures.instances():
        monkeypatch.delattr(settings, name)
    monkeypatch.setattr(settings, "FAKE", FakeSettings(), raising=False)
    monkeypatch.setitem(sensitivity_measures.MEASURED, "FakeSettings", ("fake",))
    cells = tuple(sensitivity_measures.Cell("fake", n) for n in (1, 2))
    battery = sensitivity_measures.Battery("`fake`", measured, cells, 20)
    monkeypatch.setitem(sensitivity_measures.BATTERIES, "fake", battery)
    monkeypatch.setattr(sensitivity, "ProcessPoolExecutor", Inline)


def command(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["sensitivity.py", *map(str, arguments)])
    sensitivity.main()


def test_a_changed_setting_is_restored_and_caches_are_cleared(fake, monkeypatch):
    kept = functools.cache(lambda: settings.FAKE.weight)
    monkeypatch.setattr(package_module, "kept", kept, raising=False)
    assert kept() == 0.5
    with sensitivity.setting_changed(settings.FAKE, "weight", 0.25):
        assert kept() == 0.25
    assert kept() == settings.FAKE.weight == 0.5


def test_both_stages_and_the_page(fake, monkeypatch, tmp_path, capsys):
    out = tmp_path / "results.jsonl"
    monkeypatch.setattr(sensitivity, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(sensitivity, "KEPT", tmp_path / "kept.jsonl")
    command(monkeypatch, "--stage", "coarse", "--out", out)
    assert len(out.read_text().splitlines()) == 5  # the count cannot be less than 1
    before = out.read_text()
    command(monkeypatch, "--stage", "coarse", "--out", out)
    assert out.read_text() == before
    command(monkeypatch, "--stage", "full", "--fields", 1, "--out", out)
    full = [record for record in sensitivity.read(out) if record["stage"] == "full"]
    assert {(record["setting"], record["data_sets"]) for record in full} == {("FAKE.weight", 480)}
    command(monkeypatch, "--table", "--out", out)
    page = (tmp_path / "page.md").read_text()
    assert "has measured 1 field with 12 times as many data sets." in page
    weight, count, flag, broken = (line for line in page.splitlines() if line.startswith("| `"))
    assert weight.startswith("| `weight` | `0.5` | A weight. | convention | MAE -")
    assert weight.endswith("| 480 | 480 |")
    assert count == "| `count` | `1` | A / count. | convention | - | no change | 40 | 40 |"
    assert flag.endswith("| - | - | - | - |")
    assert "fails (ValueError: too large)" in broken
    assert "fails" in capsys.readouterr().err


def test_results_of_another_value_do_not_count(fake, monkeypatch, tmp_path):
    out = tmp_path / "results.jsonl"
    record = {"stage": "coarse", "setting": "FAKE.weight", "factor": 0.75, "effects": {}, "data_sets": 0}
    lines = [record | {"from": 0.4}, record | {"setting": "GONE.field", "from": 1}]
    out.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert sensitivity.read(out) == []
    with pytest.raises(SystemExit):
        command(monkeypatch, "--table", "--out", out)


def test_the_check_lists_fields_without_any_effect(fake, monkeypatch, tmp_path, capsys):
    command(monkeypatch, "--check", "--out", tmp_path / "results.jsonl")
    assert capsys.readouterr().out.splitlines()[1:] == ["  FAKE.count"]


def test_a_change_that_takes_too_long_is_recorded(fake, monkeypatch, tmp_path):
    changes = sensitivity.changes((0.75,), ["FAKE.weight"])
    assert [change.setting for change in changes] == ["FAKE.weight"]
    monkeypatch.setattr(sensitivity, "figures", lambda *_: sensitivity._too_long())
    assert sensitivity.changed_figures(changes[0], 1, 1).startswith("TimeoutError")

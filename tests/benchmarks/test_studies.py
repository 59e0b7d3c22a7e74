"""A smoke version of every study in benchmarks/; the full ones are run by hand."""

import sys
from importlib import util
from pathlib import Path

import numpy as np
import pytest

import calibrant
from calibrant.experiment.families import EXACT

FOLDER = Path(__file__).parents[2] / "benchmarks"


def study(name):
    spec = util.spec_from_file_location(f"study_{name}", FOLDER / f"{name}.py")
    module = util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "cell",
    [
        ("flat", "class", 0.3, 100, 20),
        ("dirichlet-5", "confidence", 1.0, 100, 20),
        ("dirichlet-5", "classwise", 0.0, 100, 10),
    ],
)
def test_the_study_of_coverage(cell):
    found = study("coverage").one_cell(cell)
    assert found["coverage"] >= 0.7
    assert found["coverage"] + found["above"] + found["below"] == pytest.approx(1)


def test_the_coverage_study_has_every_cell_that_is_asked_for():
    cells = study("coverage").cells()
    assert {cell[3] for cell in cells} == {100, 500, 2000, 10_000}
    assert {cell[1] for cell in cells} == {"class", "confidence", "classwise"}
    assert {cell[2] for cell in cells} == {0.0, 0.3, 1.0}
    assert set(EXACT) < {cell[0] for cell in cells}


def test_the_study_of_the_test():
    power = study("power")
    assert power.size_cell(("discrete", 100, 30)) <= 0.2
    assert power.power_cell(("square", 1.0, 200, 5)).shape == (3,)
    score = np.linspace(0, 1, 100_001)
    assert np.sqrt(np.mean((power.bumps(score, 71) - score) ** 2)) == pytest.approx(0.054, abs=0.001)


@pytest.mark.parametrize("pair", ["opposite", "alike", "calibrated", "apart"])
def test_the_study_of_comparisons(pair):
    paired = study("paired")
    assert paired.one_cell((pair, 200, 5))[0] <= 0.6
    # Both models of a pair have the same error.
    chance, *scores = paired.PAIRS[pair](np.random.default_rng(0), 400_000)
    outcome = np.random.default_rng(1).random(chance.size) < chance
    one, other = (calibrant.ece(outcome, np.clip(score, 0, 1)) for score in scores)
    assert one == pytest.approx(other, abs=0.003)

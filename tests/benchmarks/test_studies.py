"""A smoke version of every study in benchmarks/; the full ones are run by hand."""

import sys
from dataclasses import replace
from importlib import util
from pathlib import Path

import numpy as np
import pytest

import calibrant
from calibrant.experiment.families import EXACT, Dirichlet

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


@pytest.mark.parametrize("name", list(EXACT))
@pytest.mark.parametrize("factor", [1.0, 0.3])
def test_the_true_error_of_a_family_is_what_it_says(name, factor):
    family = EXACT[name].shrunk(factor)
    # Midpoints of the quantiles of a beta distribution integrate to more digits than a sample.
    from scipy.stats import beta

    drawn = np.clip(beta(*family.beta).ppf((np.arange(200_000) + 0.5) / 200_000), 1e-300, 1 - 1e-16)
    gap = np.abs(family.factor * (family.curve(drawn) - drawn))
    assert gap.mean() == pytest.approx(family.truth, abs=2e-5)


@pytest.mark.parametrize("notion", ["confidence", "classwise"])
def test_the_true_error_of_the_dirichlet_family_is_what_it_says(notion):
    family = Dirichlet(5, 0.3)
    scores, labels = family.draw(np.random.default_rng(0), 400_000)
    gap = 0.3 * (0.2 - scores)
    errors = np.abs(gap) if notion == "classwise" else np.abs(gap[np.arange(len(gap)), scores.argmax(axis=1)])
    assert errors.mean() == pytest.approx(family.truth(notion), abs=3e-4)
    assert calibrant.ece(labels, scores, notion=notion) == pytest.approx(family.truth(notion), abs=0.004)


def test_the_confirmation_divides_both_errors_of_both_notions(tmp_path, monkeypatch, capsys):
    from calibrant.estimators import FIFTEEN
    from calibrant.experiment import PRESETS, Result, Store, Truth
    from calibrant.experiment.procedure import STATISTICS

    settings = replace(PRESETS["smoke"], sizes=(30, 100), readings=("corrected",))
    store = Store.create(tmp_path / "run", settings)
    rng = np.random.default_rng(0)
    values = rng.uniform(0.5, 2, (len(settings.tasks()), *settings.shape))
    for task, statistics in zip(settings.tasks(), values, strict=True):
        store.save(Result(task, dict.fromkeys(settings.notions, Truth(0.1, 0.1, 0.0)), statistics))
    confirm = study("confirm")
    monkeypatch.setattr(confirm, "RESAMPLES", 20)
    monkeypatch.setattr(sys, "argv", ["confirm", str(tmp_path / "run")])
    confirm.main()
    lines = capsys.readouterr().out.splitlines()
    for j, notion in enumerate(settings.notions):
        for statistic, word in (("p95", "p95"), ("mean", "MAE")):
            for rival, members in (("the best of the fifteen", FIFTEEN), ("ac:10", ["ac:10"])):
                shown = lines[lines.index(f"{notion}, {word} over {rival}") + 2].split()[1:]
                for i, ratio in enumerate(shown):
                    at = values[:, 0, j, :, i, STATISTICS.index(statistic)]
                    middle = {name: np.median(at[:, k]) for k, name in enumerate(settings.estimators)}
                    least = min(middle[name] for name in members)
                    assert float(ratio) == pytest.approx(middle["auto"] / least, abs=0.0006)

"""A smoke version of every study in benchmarks/; the full ones are run by hand."""

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import util
from pathlib import Path

import numpy as np
import pytest

import calibrant
from calibrant.experiment.distributions import rng_of
from calibrant.experiment.families import EXACT, FAMILIES, FEW, LOCAL
from calibrant.inference.null import DATA_SETS
from oracles import decisions as oracle

pytestmark = pytest.mark.no_cover

FOLDER = Path(__file__).parents[3] / "benchmarks"


def study(name):
    spec = util.spec_from_file_location(f"study_{name}", FOLDER / f"{name}.py")
    module = util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "cell",
    [
        ("flat", "binary", 0.3, 100, 20),
        ("dirichlet-5", "confidence", 1.0, 100, 20),
        ("dirichlet-5", "classwise", 0.0, 100, 10),
        ("certain", "binary", 0.0, 100, 10),
        ("seven", "binary", 1.0, 100, 10),
    ],
)
def test_the_study_of_coverage(cell):
    coverage = study("coverage")
    found = coverage.one_cell(coverage.Cell(*cell))
    assert found["coverage"] >= 0.7
    assert found["coverage"] + found["above"] + found["below"] == pytest.approx(1)
    assert 0.3 < found["ratio"] < 4
    # The simulations are back to what they were.
    assert DATA_SETS == 999


@pytest.fixture(scope="module")
def real_scores(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("scores"), np.random.default_rng(0)
    score = rng.beta(0.5, 0.5, 2000)
    np.savez(folder / "model.npz", prob=score, y=rng.random(2000) < score**2)
    return str(folder)


def test_the_coverage_study_has_every_cell_that_is_asked_for():
    cells = study("coverage").cells()
    assert {cell[3] for cell in cells} == {100, 500, 2000, 10_000}
    assert {cell[1] for cell in cells} == {"binary", "confidence", "classwise"}
    assert {cell[2] for cell in cells} == {0.0, 0.3, 1.0}
    assert set(EXACT) < {cell[0] for cell in cells}


def test_the_coverage_study_has_local_gaps_few_scores_and_real_models(real_scores):
    coverage = study("coverage")
    cells = coverage.local_cells()
    assert len(cells) == len(set(cells)) >= 40
    assert {cell.n for cell in cells} == {500, 2000, 10_000}
    assert min(cell.repetitions for cell in cells) >= 1000
    assert {cell.name for cell in cells} == set(FAMILIES) - set(EXACT)
    table = coverage.summary(cells, [0.9, 1.0] * (len(cells) // 2), [0.1] * len(cells), [1.2] * len(cells))
    assert "| few scores | 500 | none | 2 | 0.950 | 0.900 | 1.000 | 0.100 | 1.20 |" in table
    own = coverage.real_cells(real_scores)
    assert {coverage.kind_of(cell) for cell in own} == {"real scores"}
    assert len(own) == 6
    found = coverage.one_cell(own[0]._replace(n=100, repetitions=5))
    assert found["truth"] == pytest.approx(1 / 8, abs=0.02)  # E[p - p^2]
    assert found["coverage"] >= 0.6


def test_the_study_of_errors_against_six_others(real_scores, capsys):
    exact = study("exact")
    real = exact.real_scores.real_families(real_scores)
    families = (LOCAL["top"].shrunk(0.3), FEW["seven"], *real.values())
    ratio = exact.against_six(["auto", "isotonic"], {100: 4, 200: 3}, families)
    assert ratio["isotonic"].shape == (4, 2)
    assert ratio["isotonic"].min() >= 1  # it is one of the six
    # A cell again, from its own samples.
    score, outcome = FEW["seven"].draw(rng_of("leaderboard", 0, "seven", 1.0, 200), 3, 200)
    error = {
        name: np.mean(
            [abs(calibrant.ece(y, s, estimator=name) - 0.0575) for s, y in zip(score, outcome, strict=True)]
        )
        for name in ("auto", *exact.SIX)
    }
    least = min(exact.SIX, key=error.get)
    assert ratio["auto"][1, 1] == pytest.approx(error["auto"] / error[least], rel=1e-6)
    printed = capsys.readouterr().out
    assert f"{1e4 * error['auto']:.1f}, {ratio['auto'][1, 1]:.3f} ({least})" in printed
    assert "top x 0.3" in printed
    assert f"geometric mean {np.exp(np.log(ratio['auto']).mean()):.3f}, worst" in printed


def test_the_study_of_the_test():
    power = study("power")
    assert power.size_cell(("discrete", 100, 30)) <= 0.2
    rows, sums = power.weighted_cell((200, 30))
    assert rows == sums <= 0.2
    assert power.size_cell(("rare", 100, 20)) <= 0.25
    assert power.power_cell(("square", 1.0, 200, 5)).shape == (4,)
    ours, bins, *_ = power.power_cell(("seven", 1.0, 3000, 5))
    assert min(ours, bins) >= 0.8
    assert {*power.KINDS[3:], *power.RARE_AND_FEW} <= set(FAMILIES)
    score = np.linspace(0, 1, 100_001)
    assert np.sqrt(np.mean((power.bumps(score, 71) - score) ** 2)) == pytest.approx(0.054, abs=0.001)


def test_the_confirmation_divides_both_errors_of_both_notions(tmp_path, monkeypatch, capsys):
    from calibrant.estimators import FIFTEEN
    from calibrant.experiment import PRESETS, Result, Store, Truth
    from calibrant.experiment.procedure import STATISTICS

    settings = replace(PRESETS["smoke"], sizes=(30, 100), readings=("corrected",))
    store = Store.create(tmp_path / "run", settings)
    rng = np.random.default_rng(0)
    values = rng.uniform(0.5, 2, (len(settings.tasks()), *settings.shape))
    for task, statistics in zip(settings.tasks(), values, strict=True):
        truth = dict.fromkeys(settings.notions, Truth(0.1, 0.1, 0.0))
        store.save(Result(task, truth, statistics, [], statistics[..., :1]))
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


def test_the_study_of_decisions_among_classes(monkeypatch, capsys):
    decisions = study("decisions")
    monkeypatch.setattr(decisions, "LARGE", 2000)
    for classes in (3, 10):
        costs = decisions.costs_of(classes)
        assert len(costs) == classes
        assert (np.diag(costs) == 0).all()
    truth, found = decisions.one_cell_of_rows(decisions.Several("too sure", 3, 100, 2))
    assert 0 < truth < 0.1
    assert found.shape == (2, 5)
    value, low, high, least, most = found.T
    assert ((low <= value) & (value <= high) & (least <= value) & (value <= most + 1e-12)).all()
    assert decisions.true_regret_of_rows("right", 3, 2000) == 0
    # The same by a plain loop.
    kind, name = decisions.canonical.FAMILIES["too sure"]
    p = decisions.canonical.scores(kind, 3, 50, rng_of("decisions truth", "too sure", 3))
    by_loop = oracle.regret(decisions.canonical.mapped(name, p), p, decisions.costs_of(3).tolist())
    assert decisions.true_regret_of_rows("too sure", 3, 50) == pytest.approx(by_loop)
    monkeypatch.setattr(decisions, "ROWS", {3: {50: 1}})
    monkeypatch.setattr(decisions, "LARGE", 200)
    some = {name: decisions.canonical.FAMILIES[name] for name in ("right", "pull")}
    monkeypatch.setattr(decisions.canonical, "FAMILIES", some)
    monkeypatch.setattr(decisions, "ProcessPoolExecutor", ThreadPoolExecutor)
    decisions.matrix(0.1, 1, None)
    header, _, row = capsys.readouterr().out.strip().splitlines()
    assert header.count("|") == row.count("|")
    assert row.startswith("| 3 | 4 | 50 | ")


def test_the_study_of_what_medicine_reads(monkeypatch):
    clinical = study("clinical")
    monkeypatch.setattr(clinical, "GRID", 20_000)
    # A calibrated model, and one whose log-odds are all too low by .4.
    none, shifted = (clinical.truth_of(FAMILIES["rare"].shrunk(factor)) for factor in (0.0, 1.0))
    assert none[:5] == pytest.approx([0, 1, 1, 0, 0], abs=1e-6)
    assert shifted[:2] == pytest.approx([0.4, 1], abs=1e-6)
    held, width = clinical.one_cell(clinical.Cell("flat", 1.0, 200), 6)
    assert held.shape == width.shape == (5,)
    assert held[:3].min() >= 0.5
    assert clinical.one_cell(clinical.Cell("rare", 1.0, 100), 5) is None  # hardly a case to be expected
    assert {cell.factor for cell in clinical.cells() if cell.name == "step"} == {1.0, 0.3}


def test_the_study_of_what_is_kept(monkeypatch):
    selective = study("selective")
    monkeypatch.setattr(selective, "GRID", 20_000)
    whole = selective.Truth(FAMILIES["square"])
    # Scores are squares of uniform probabilities, whose mean over the most confident half is 3 / 4.
    assert whole.at(np.array([0.25]), np.array([0.5]))[0] == pytest.approx(0.75, abs=1e-4)
    assert whole.reach(0.75) == pytest.approx(0.5, abs=1e-4)
    assert whole.aurc == pytest.approx(0.25, abs=1e-4)
    levels = selective.Truth(FAMILIES["seven"])
    assert levels.tied.tolist() == [0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9]
    assert levels.at(np.array([0.75]), np.array([0.3]))[0] == pytest.approx((0.9575 + 0.6925) / 2, abs=1e-4)
    for clustered in (False, True):
        held = selective.one_cell(selective.Cell("seven", 100, clustered), 6)
        assert held.shape == (len(selective.COLUMNS),)
        assert held.min() >= 0.5

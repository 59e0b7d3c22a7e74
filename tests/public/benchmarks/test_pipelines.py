"""A smoke version of benchmarks/pipelines.py."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import util
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.full

FILE = Path(__file__).parents[3] / "benchmarks" / "pipelines.py"


@pytest.fixture(scope="module")
def pipelines():
    spec = util.spec_from_file_location("study_pipelines", FILE)
    module = util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_there_are_enough_pipelines(pipelines):
    assert len([name for name in pipelines.PIPELINES if "levels" not in name]) >= 22
    for k in (16, 30, 34, 60, 120, 500):
        assert pipelines.population(f"calibrated-levels-{k}").truth == 0
        found = pipelines.population(f"levels-{k}")
        assert found.n_distinct == k
        assert found.truth == pytest.approx(0.07 * np.sqrt(2 / np.pi), rel=0.2)


@pytest.mark.parametrize(
    "name", ["tree", "boosting-12", "target-encoding", "two-way-lookup", "isotonic", "clipped-linear",
             "mixture", "label-shift", "covariate-shift", "rare-logistic",
             "calibrated-lookup", "calibrated-continuous"]
)  # fmt: skip
def test_populations_are_valid(pipelines, name):
    found = pipelines.population(name, None, 0.02)
    assert found.score.min() >= 0
    assert found.score.max() <= 1
    assert ((found.eta >= 0) & (found.eta <= 1)).all()
    assert found.mass is None or found.mass.sum() == pytest.approx(1)
    assert found.truth == 0 if name.startswith("calibrated") else 0.001 < found.truth < 0.3
    score, y = found.draw(np.random.default_rng(0), 2000)
    assert np.isin(score, found.score).all()
    assert y.mean() == pytest.approx(found.base_rate, abs=0.05)
    # Every score has one true frequency.
    _, group, counts = np.unique(found.score, return_inverse=True, return_counts=True)
    np.testing.assert_allclose((np.bincount(group, found.eta) / counts)[group], found.eta, atol=1e-9)


def test_the_frequency_at_a_score_is_the_mean_over_its_rows(pipelines):
    found = pipelines.population_of(np.repeat([0.2, 0.6], 500), np.tile([0.1, 0.5], 500))
    assert found.score.tolist() == [0.2, 0.6]
    assert found.eta == pytest.approx([0.3, 0.3])
    assert found.truth == pytest.approx(0.2)
    # Continuous scores: noise of the row probabilities is averaged, the gap is kept.
    rng = np.random.default_rng(0)
    score = rng.uniform(0.1, 0.9, 100_000)
    found = pipelines.population_of(
        score, score + 0.08 * np.sin(6 * score) + rng.uniform(-0.02, 0.02, score.size)
    )
    assert found.mass is None
    assert found.truth == pytest.approx(np.mean(np.abs(0.08 * np.sin(6 * score))), abs=2e-4)
    assert np.unique(found.draw(rng, 1000)[0]).size == 1000


def test_label_shift_multiplies_the_odds(pipelines):
    x, p = pipelines.label_shift(pipelines.plane, 0.5, np.random.default_rng(0), 50_000)
    _, before = pipelines.plane(np.random.default_rng(1), 50_000)
    ratio = p.mean() / (1 - p.mean()) / (before.mean() / (1 - before.mean()))
    assert x.shape == (50_000, 2)
    assert ratio == pytest.approx(0.5, abs=0.02)


def test_runs_are_compared_with_earlier_ones(pipelines, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(pipelines, "ProcessPoolExecutor", ThreadPoolExecutor)
    file = str(tmp_path / "before.json")
    usual = [
        "pipelines",
        "--only",
        "levels-30",
        "calibrated-levels-16",
        "--sizes",
        "100",
        "1000",
        "--reps",
        "2",
    ]
    usual += ["--jobs", "1", "--cache", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", [*usual, "--json", file])
    pipelines.main()
    first = capsys.readouterr().out
    assert len(json.loads(Path(file).read_text())["cells"]) == 4
    assert "geometric mean" in first
    monkeypatch.setattr(sys, "argv", [*usual, "--no-reference", "--compare", file])
    pipelines.main()
    second = capsys.readouterr().out
    assert "width over the earlier run: geometric mean 1.000" in second
    rows = [[line for line in text.splitlines() if line.startswith("levels-30")] for text in (first, second)]
    assert [a == b[: len(a)] for a, b in zip(*rows, strict=True)] == [True, True]
    monkeypatch.setattr(sys, "argv", [*usual, "--values-only", "--compare", file])
    pipelines.main()
    assert "mae over the earlier run: geometric mean 1.000" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", [*usual, "--list"])
    pipelines.main()
    assert "calibrated-levels-16    0.00000        16    0.5000" in capsys.readouterr().out

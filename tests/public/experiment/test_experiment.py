"""The experiment: known truths, numbers that depend on the settings alone, and a store that survives."""

import csv
import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from dataclasses import replace
from math import exp

import numpy as np
import pytest
from scipy import stats

from calibrant.experiment import (
    PRESETS,
    SIZES,
    Mixture,
    Settings,
    Store,
    Summary,
    Task,
    compute,
    exact_error,
    run,
)

SMALL = Settings(
    classes=(2, 3),
    features=(2,),
    seeds=(0,),
    families=("logistic", "naive-bayes"),
    train_sets=1,
    n_train=60,
    n_holdout=4000,
    sizes=(29, 60),
    repetitions=10,
    estimators=("l:10", "ac:sqrt", "d:silverman"),
)
TINY = replace(SMALL, classes=(3,), families=("logistic",))


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """An uninterrupted run, one task after the other."""
    return run(SMALL, tmp_path_factory.mktemp("reference") / "run")


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Write a module that can be imported, as a user would."""

    def write(source, name="plugged"):
        (tmp_path / f"{name}.py").write_text(source)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, name, raising=False)
        return name

    return write


def table(store):
    return (store.folder / "results.csv.gz").read_bytes()


def rows(store):
    with gzip.open(store.folder / "results.csv.gz", "rt") as file:
        return list(csv.DictReader(file))


def fixed(means, factors):
    """A mixture with chosen means (C, modes, D) and factors (C, modes, D, D)."""
    means, factors = np.array(means, dtype=float), np.array(factors, dtype=float)
    mixture = Mixture(means.shape[0], means.shape[2], 0, modes=means.shape[1])
    mixture.__dict__["components"] = means, factors
    return mixture


def test_the_posterior_of_two_normals_by_hand():
    same = fixed([[[0.0]], [[1.0]]], [[[[0.5]]], [[[-0.5]]]])
    x = np.array([-1.0, 0.0, 0.5, 2.0])
    # Equal variances of 1/4: the log odds are (x^2 - (x - 1)^2) / (2/4) = 4 x - 2.
    np.testing.assert_allclose(same.posterior(x[:, None])[:, 1], 1 / (1 + np.exp(2 - 4 * x)), rtol=1e-12)
    wide = fixed([[[0.0]], [[1.0]]], [[[[0.5]]], [[[0.25]]]])
    # At 0 the densities are 2/sqrt(2 pi) and 4 exp(-8)/sqrt(2 pi).
    assert wide.posterior(np.zeros((1, 1)))[0, 1] == pytest.approx(4 * exp(-8) / (2 + 4 * exp(-8)), rel=1e-12)


def test_two_modes_count_by_half():
    mixture = fixed([[[-1.0], [1.0]], [[0.0], [0.0]]], np.ones((2, 2, 1, 1)))
    # At 0: exp(-1/2) against 1.
    assert mixture.posterior(np.zeros((1, 1)))[0, 0] == pytest.approx(exp(-0.5) / (1 + exp(-0.5)), rel=1e-12)


def test_the_posterior_agrees_with_scipy():
    mixture = Mixture(3, 4, seed=2)
    features, _ = mixture.sample(300, np.random.default_rng(0))
    means, factors = mixture.components
    log = np.array(
        [
            [stats.multivariate_normal(m, a.T @ a).logpdf(features) for m, a in zip(*part, strict=True)]
            for part in zip(means, factors, strict=True)
        ]
    )
    by_class = np.exp(log - log.max(axis=(0, 1))).sum(axis=1)
    np.testing.assert_allclose(
        mixture.posterior(features), (by_class / by_class.sum(axis=0)).T, rtol=1e-6, atol=1e-12
    )


def test_posteriors_are_the_frequencies_of_labels():
    mixture = Mixture(3, 2, seed=1)
    features, labels = mixture.sample(200_000, np.random.default_rng(3))
    posterior = mixture.posterior(features)
    assert posterior.std(axis=0).min() > 0.1
    for label in range(3):
        chance = posterior[:, label]
        cell = (chance * 20).astype(int)
        size = np.bincount(cell, minlength=21)
        gap = np.bincount(cell, (labels == label) - chance, minlength=21)
        noise = np.sqrt(np.bincount(cell, chance * (1 - chance), minlength=21))
        assert (np.abs(gap) <= 4 * noise + 1e-9)[size > 100].all()


def test_rows_have_the_means_and_covariances_of_their_mode():
    mixture = Mixture(2, 3, seed=0, modes=1)
    means, factors = mixture.components
    features, labels = mixture.sample(100_000, np.random.default_rng(0))
    assert abs(labels.mean() - 0.5) < 0.01
    for label in range(2):
        part, factor = features[labels == label], factors[label, 0]
        wanted = factor.T @ factor
        assert np.abs(wanted - factor @ factor.T).max() > 0.02
        np.testing.assert_allclose(part.mean(axis=0), means[label, 0], atol=0.005)
        np.testing.assert_allclose(np.cov(part.T), wanted, atol=0.005)


def test_modes_are_equally_likely():
    mixture = fixed([[[0.0], [1.0]], [[2.0], [3.0]]], np.full((2, 2, 1, 1), 1e-3))
    features, labels = mixture.sample(40_000, np.random.default_rng(0))
    near = np.rint(features[:, 0]).astype(int)
    np.testing.assert_array_equal(near // 2, labels)
    np.testing.assert_allclose(np.bincount(near) / 40_000, 0.25, atol=0.01)


def test_components_lie_where_the_code_or_the_text_says():
    for low in (-1.0, 0.0):
        means, factors = Mixture(7, 7, seed=0, low=low).components
        assert means.shape == (7, 4, 7)
        assert factors.shape == (7, 4, 7, 7)
        assert low <= means.min() < low + 0.05
        assert 0.95 < means.max() <= 1
        assert 0.29 < np.abs(factors).max() <= 0.3


# Ground truth


def uniform(n, seed=0):
    return np.random.default_rng(seed).random(n)


@pytest.mark.parametrize(
    ("chance", "wanted"),
    [
        (lambda s: s**2, 1 / 6),
        (lambda s: 1 - s, 1 / 2),
        (lambda s: np.full(s.shape, 0.5), 1 / 4),
        (lambda s: np.clip(s - 0.1, 0, 1), 0.095),
        (lambda s: s, 0.0),
    ],
)
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_the_exact_error_lies_within_its_bracket(chance, wanted, noise):
    score = uniform(300_000)
    # The posterior varies among rows of one score; only its mean counts.
    given = chance(score) + noise * np.random.default_rng(1).choice((-1, 1), score.size)
    value, bracket = exact_error(score, given)
    assert abs(value - wanted) <= bracket < 0.01


def test_the_exact_error_of_scores_that_repeat():
    rng = np.random.default_rng(0)
    score = rng.integers(0, 101, 200_000) / 100
    wanted = np.mean([abs((k / 100) ** 2 - k / 100) for k in range(101)])
    value, bracket = exact_error(score, score**2 + rng.normal(0, 0.2, score.size))
    assert abs(value - wanted) <= bracket < 0.005
    value, bracket = exact_error(score, score + rng.normal(0, 0.2, score.size))
    assert abs(value) <= bracket < 0.01


# Procedure


def test_sizes_are_those_of_the_authors_code():
    assert SIZES[:11] == (29, 39, 51, 67, 88, 115, 150, 197, 258, 338, 443)
    assert SIZES[11:] == (580, 759, 993, 1300, 1702, 2229, 2918, 3819, 4999)
    assert len(SIZES) == 20
    assert sum(n <= 500 for n in SIZES) == 11


def test_settings_survive_the_manifest():
    for settings in (*PRESETS.values(), SMALL):
        assert Settings.from_dict(json.loads(json.dumps(settings.to_dict()))) == settings


@pytest.mark.parametrize(
    "change",
    [
        {"repetitions": 0},
        {"n_holdout": 0.5},
        {"notions": ("canonical",)},
        {"families": ("forset",)},
        {"estimators": ("l:10", "nope")},
        {"estimators": ("nowhere.Mine",)},
        {"distributions": ("nowhere.mine",)},
        {"distributions": ("mixture",)},
        {"sizes": (0,)},
        {"sizes": ()},
    ],
)
def test_settings_refuse_what_cannot_be_run(change):
    with pytest.raises((ValueError, TypeError)):
        replace(SMALL, **change)


def test_all_estimators_see_the_same_resamples(module):
    name = module("from calibrant import Binned\nmine = Binned('uniform', 10)\n")
    settings = replace(TINY, estimators=("l:10", "uniform:10", f"{name}.mine"), readings=("corrected",))
    found = compute(settings.tasks()[0], settings).statistics
    for other in (1, 2):
        np.testing.assert_array_equal(found[:, :, 0], found[:, :, other])


def test_what_else_is_measured_changes_no_number():
    alone = replace(TINY, estimators=("ac:sqrt",), sizes=(60,), notions=("classwise",))
    (task,) = TINY.tasks()
    both = compute(task, TINY).statistics[:, 1:, 1:2, 1:]
    np.testing.assert_array_equal(compute(task, alone).statistics, both)


def test_auto_follows_the_notion():
    settings = replace(TINY, estimators=("auto", "bayes", "bayes:shared"), readings=("corrected",))
    found = compute(settings.tasks()[0], settings).statistics[0]
    np.testing.assert_array_equal(found[0, 0], found[0, 1])
    np.testing.assert_array_equal(found[1, 0], found[1, 2])


def test_an_estimator_beyond_the_fifteen_has_no_faults_and_is_held_against_both_truths(module):
    name = f"{module('def mine(scores, outcomes, weights): return 0.0')}.mine"
    settings = replace(TINY, estimators=("l:10", name))
    found = compute(settings.tasks()[0], settings)
    assert not found.failures
    p95 = found.statistics[..., 0]
    for j, notion in enumerate(settings.notions):
        np.testing.assert_allclose(p95[0, j, 1], abs(found.truth[notion].published))
        np.testing.assert_allclose(p95[1, j, 1], abs(found.truth[notion].exact))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def mine(:", "SyntaxError|invalid syntax"),
        ("raise RuntimeError('half written')", "half written"),
        ("import nowhere_to_be_found", "nowhere_to_be_found"),
        ("other = 1", "no attribute 'mine'"),
        ("mine = 3", "mine"),
        ("class mine:\n    def __init__(self, bins): pass", "bins"),
    ],
)
def test_an_estimator_that_cannot_be_had_is_refused(module, source, message):
    path = f"{module(source)}.mine"
    with pytest.raises(ValueError, match=message) as caught:
        replace(SMALL, estimators=(path,))
    assert path in str(caught.value)


FAMILY = """
import numpy as np
from sklearn.dummy import DummyClassifier

def constant(seed):
    return DummyClassifier(strategy="prior")

def stubborn(seed):
    raise RuntimeError("will not learn")

class Coin:
    name = "plugged.Coin"
    n_classes = 2

    def sample(self, n, rng):
        return rng.random((n, 1)), rng.integers(0, 2, n)

    def posterior(self, features):
        return np.full((len(features), 2), 0.5)
"""


def test_a_model_that_cannot_be_trained_stops_no_other(module, tmp_path):
    module(FAMILY)
    settings = replace(SMALL, families=("plugged.stubborn", "logistic"))
    told = []
    store = run(
        settings, tmp_path / "run", progress=lambda done, total, text: told.append((done, total, text))
    )
    assert [result.task.family for result in store.results()] == ["logistic"] * 2
    assert [done for done, _, _ in told] == [0, 1, 2, 3, 4]
    problems = [text for _, _, text in told if text]
    assert len(problems) == 2
    assert all("RuntimeError: will not learn" in text for text in problems)
    assert {row["family"] for row in rows(store)} == {"logistic"}


# Who computes, and in which order


def test_the_order_of_the_tasks_changes_nothing(reference):
    for task in reversed(SMALL.tasks()):
        kept, found = reference.load(task), compute(task, SMALL)
        np.testing.assert_array_equal(kept.statistics, found.statistics)
        assert kept.truth == found.truth


@pytest.mark.full
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_workers_change_nothing(reference, tmp_path, backend):
    found = run(SMALL, tmp_path / "run", jobs=2, backend=backend)
    assert table(found) == table(reference)
    for one, other in zip(found.results(), reference.results(), strict=True):
        np.testing.assert_array_equal(one.statistics, other.statistics)
        assert one.truth == other.truth


def test_a_dask_cluster_changes_nothing(reference, tmp_path):
    import distributed

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"(distributed|dask|joblib)\b")
        with (
            distributed.LocalCluster(
                n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
            ) as cluster,
            distributed.Client(cluster),
        ):
            found = run(SMALL, tmp_path / "run", backend="dask")
    assert table(found) == table(reference)
    for one, other in zip(found.results(), reference.results(), strict=True):
        np.testing.assert_array_equal(one.statistics, other.statistics)


def files(store):
    return {
        path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in store.tasks_path.glob("*.npz")
    }


@pytest.mark.full
def test_a_killed_run_is_resumed(tmp_path):
    source = f"""
import sys
from pathlib import Path
from calibrant.experiment import Settings, run
run(Settings.from_dict({replace(SMALL, seeds=tuple(range(8))).to_dict()!r}), Path(sys.argv[1]))
"""
    settings = replace(SMALL, seeds=tuple(range(8)))
    store = Store(tmp_path / "run")
    with subprocess.Popen([sys.executable, "-c", source, str(store.folder)]) as process:
        try:
            deadline = time.monotonic() + 60
            while len(files(store)) < 2 and time.monotonic() < deadline:
                time.sleep(0.005)
        finally:
            process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    before = files(store)
    assert 2 <= len(before) < len(settings.tasks()), "the run ended before it could be killed"
    told = []
    run(settings, store.folder, progress=lambda done, total, text: told.append(done))
    assert told == list(range(len(before), len(settings.tasks()) + 1))
    after = files(store)
    assert {name: after[name] for name in before} == before
    assert table(store) == table(run(settings, tmp_path / "whole"))


def test_a_run_killed_before_its_manifest_is_resumed(tmp_path, monkeypatch):
    def killed(*paths):
        raise KeyboardInterrupt

    def too_late(path):
        raise OSError

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed)
        patch.setattr(os, "unlink", too_late)
        with pytest.raises(KeyboardInterrupt):
            Store.create(tmp_path / "run", TINY)
    assert any((tmp_path / "run").iterdir())
    assert Store.create(tmp_path / "run", TINY).settings() == TINY


def test_other_settings_are_refused(reference):
    before = files(reference)
    with pytest.raises(ValueError, match=r"other settings \(low, repetitions\)"):
        run(replace(SMALL, low=0.0, repetitions=11), reference.folder)
    assert files(reference) == before


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(ValueError, match="holds no run"):
        run(TINY, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"settings": []}', '{"settings": {"colour": 1}}', '{"settings": {"sizes": 3}}'],
)
def test_a_damaged_manifest_is_told(tmp_path, text):
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(ValueError, match=r"manifest\.json is damaged"):
        Store(tmp_path).settings()
    with pytest.raises(ValueError, match=r"manifest\.json is damaged"):
        run(TINY, tmp_path)


def test_the_manifest_names_versions(reference):
    manifest = json.loads(reference.manifest_path.read_text())
    assert manifest["versions"]["numpy"] == np.__version__
    assert {"calibrant", "python", "settings"} <= set(manifest)


def test_skill_and_baselines_are_those_of_the_table_on_disk(tmp_path):
    store = run(replace(TINY, seeds=(0, 1, 2)), tmp_path / "run")
    summary = Summary.of(store)
    with gzip.open(store.folder / "results.csv.gz", "rt") as file:
        lines = [line for line in csv.DictReader(file) if line["notion"] == "confidence"]
    for reading in ("published", "corrected"):
        cells = [line for line in lines if line["reading"] == reading and line["n"] == str(TINY.sizes[0])]
        first = [line for line in cells if line["estimator"] == TINY.estimators[0]]
        true = np.array([float(line["truth"]) for line in first])
        zero, best = summary.baselines(reading, "confidence")
        assert zero == pytest.approx(np.median(true), rel=1e-6)
        grid = np.linspace(0, true.max(), 5001)
        assert best == pytest.approx(np.median(np.abs(grid[:, None] - true), axis=1).min(), abs=1e-4)
        error = np.median([float(line["p95"]) for line in first])
        assert summary.skill(reading, "confidence")[0, 0] == pytest.approx(1 - error / best, rel=1e-4)
        rows = [row for row in summary.rows() if (row["reading"], row["notion"]) == (reading, "confidence")]
        by_name = {row["estimator"]: row for row in rows if row["n"] == TINY.sizes[0]}
        assert by_name["zero"]["bias"] == pytest.approx(-zero)
        assert (by_name["best constant"]["skill"], by_name["best constant"]["ordered"]) == (0.0, 0.5)
    assert summary.baselines("normalised", "confidence")[0] == 1


def test_a_run_without_a_result_has_no_summary(tmp_path):
    with pytest.raises(ValueError, match="no finished task"):
        Summary.of(Store.create(tmp_path / "run", TINY))
    with pytest.raises(ValueError, match="holds no run"):
        Summary.of(Store(tmp_path))


def test_a_part_of_a_run_can_be_read(reference, tmp_path):
    shutil.copytree(reference.folder, tmp_path / "run")
    os.remove(Store(tmp_path / "run").path(SMALL.tasks()[0]))
    assert len(Summary.of(Store(tmp_path / "run")).models) == 3


def test_settings_name_their_tasks_once():
    assert SMALL.tasks()[0] == Task("mixture-c2-d2-s0", 0, "logistic")
    assert SMALL.tasks()[0].name == "mixture-c2-d2-s0-t0-logistic"

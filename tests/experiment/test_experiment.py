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
from dataclasses import dataclass, replace
from itertools import product
from math import exp, pi, sqrt
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from calibrant import Density
from calibrant.cli import experiment as experiment_cli
from calibrant.estimators import FIFTEEN, parse
from calibrant.experiment import (
    PRESETS,
    SIZES,
    Distribution,
    Mixture,
    Result,
    Settings,
    Store,
    Summary,
    Task,
    Truth,
    compute,
    exact_error,
    run,
)
from calibrant.experiment import procedure as proc
from calibrant.experiment import summary as summaries
from calibrant.experiment.distributions import rng_of
from calibrant.experiment.procedure import KEPT, STATISTICS
from calibrant.experiment.store import DamagedResult
from calibrant.experiment.truth import truth
from calibrant.score_data import Sample

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


# Distributions


def test_a_generator_is_its_identity():
    first = rng_of("a", 1).random(4)
    np.testing.assert_array_equal(first, rng_of("a", 1).random(4))
    for other in (("a", 2), ("b", 1), ("a1",), ("a", 1, ""), (1, "a")):
        assert not np.array_equal(first, rng_of(*other).random(4))


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


@pytest.mark.parametrize("low", [-1.0, 0.0, 0.5, -0.5, -2.0])
@pytest.mark.parametrize("modes", [4, 1])
def test_a_distribution_is_found_by_its_name(low, modes):
    mixture = Mixture(3, 2, 1, modes=modes, low=low)
    assert proc.distribution(mixture.name) == mixture
    assert isinstance(mixture, Distribution)


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


def test_the_published_truth_of_a_calibrated_model_is_not_zero():
    score = uniform(2_000_000)
    outcome = np.random.default_rng(1).random(score.size) < score
    found = truth(score[None], outcome[None], score[None])
    # Mean of |gap| in a bin of 1000 rows: sqrt(2 / pi) times the mean of sqrt(s (1 - s) / 1000).
    assert found.published == pytest.approx(sqrt(2 / pi) * pi / 8 / sqrt(1000), rel=0.02)
    assert abs(found.exact) <= found.bracket < 1e-3


def test_truths_of_classes_are_averaged():
    score = np.stack([uniform(100_000), uniform(100_000, 1)])
    chance = np.stack([score[0] ** 2, 1 - score[1]])
    outcome = uniform(200_000, 2).reshape(2, -1) < chance
    assert truth(score, outcome, chance).exact == pytest.approx((1 / 6 + 1 / 2) / 2, abs=0.005)


def test_true_errors_pick_the_predicted_class():
    posterior = np.array([[0.7, 0.2, 0.1], [0.2, 0.5, 0.3]])[np.arange(20_000) % 2]
    scores = np.array([[0.6, 0.3, 0.1], [0.1, 0.8, 0.1]])[np.arange(20_000) % 2]
    labels = (uniform(20_000)[:, None] > posterior.cumsum(axis=1)).sum(axis=1)
    # Alternating rows put each score in one half: pairs of rows keep both halves alike.
    order = np.random.default_rng(0).permutation(20_000)
    found = proc.true_errors(scores[order], labels[order], posterior[order], proc.NOTIONS)
    assert found["confidence"].exact == pytest.approx((0.1 + 0.3) / 2, abs=0.005)
    by_class = [(0.1 + 0.1) / 2, (0.1 + 0.3) / 2, abs((0.1 + 0.3) / 2 - 0.1) * 1.0]
    assert found["classwise"].exact == pytest.approx(np.mean(by_class), abs=0.005)


# Procedure


def test_sizes_are_those_of_the_authors_code():
    assert SIZES[:11] == (29, 39, 51, 67, 88, 115, 150, 197, 258, 338, 443)
    assert SIZES[11:] == (580, 759, 993, 1300, 1702, 2229, 2918, 3819, 4999)
    assert len(SIZES) == 20
    assert sum(n <= 500 for n in SIZES) == 11


def test_presets():
    paper = PRESETS["paper"]
    assert len(paper.tasks()) == len({task.name for task in paper.tasks()}) == 540
    for settings in PRESETS.values():  # the default beside the paper's fifteen
        assert settings.estimators == (*FIFTEEN, "auto")
    assert paper.n_holdout == 2_000_000
    assert set(SIZES[:11]) <= set(paper.sizes)
    assert len(PRESETS["quick"].tasks()) == 36
    assert len(PRESETS["smoke"].tasks()) == 4


def test_beta_kernels_beside_the_others_change_none_of_them():
    more = replace(TINY, estimators=(*TINY.estimators, "density-beta", "density-beta2"))
    (task,) = TINY.tasks()
    alone, beside = (compute(task, settings).statistics for settings in (TINY, more))
    np.testing.assert_array_equal(beside[:, :, :3], alone)
    p95 = beside[..., STATISTICS.index("p95")]
    assert np.isfinite(p95).all()
    assert (p95[:, :, 3:] != p95[:, :, 2:3]).all()
    np.testing.assert_array_equal(proc.estimator("density-beta2:0.1").places, proc.PLACES)


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


def test_statistics_by_hand():
    values = np.array([[0.1, 0.2, 0.3, np.nan], [np.nan] * 4])
    found = dict(zip(STATISTICS, proc.summarise(values, Truth(0.5, 0.15, 0.0), "corrected").T, strict=True))
    # Errors .05, .05, .15: their 95 % point lies at rank 1.9 of 2.
    assert found["p95"][0] == pytest.approx(0.05 + 0.9 * 0.1)
    assert found["mean"][0] == pytest.approx(0.25 / 3)
    assert found["bias"][0] == pytest.approx(0.05)
    assert found["sd"][0] == pytest.approx(sqrt(0.02 / 3))
    assert found["p95_other"][0] == pytest.approx(0.3 + 0.9 * 0.1)
    np.testing.assert_array_equal(found["failed"], [1, 4])
    assert np.isnan(found["p95"][1])
    against = proc.summarise(values, Truth(0.5, 0.15, 0.0), "published")
    assert against[0, 0] == pytest.approx(found["p95_other"][0])


def test_statistics_of_a_task_from_its_parts():
    settings = replace(SMALL, estimators=("l:10",), notions=("classwise",), readings=("corrected",))
    task = settings.tasks()[-1]
    found = compute(task, settings)
    mixture = proc.distribution(task.distribution)
    features, labels = mixture.sample(4000, rng_of(task.distribution, "holdout"))
    x, y = mixture.sample(60, rng_of(task.distribution, "train", task.train_set))
    score = proc.family(task.family)(0).fit(x, y).predict_proba(features)
    drawn = rng_of(task.name, "rows", 29).integers(0, 4000, (10, 29))
    values = []
    for resample in drawn:
        part = Sample(score[resample].T, labels[resample] == np.arange(3)[:, None])
        values.append(parse("l:10").fit(part).error().mean())
    wanted = np.percentile(np.abs(np.array(values) - found.truth["classwise"].exact), 95)
    assert found.statistics[0, 0, 0, 0, 0] == pytest.approx(wanted, rel=1e-12)


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


@pytest.mark.parametrize("n", [29, 115, 500])
@pytest.mark.parametrize("bandwidth", ["silverman", 0.033, 0.1])
@pytest.mark.parametrize("low", [0.0, 0.2])
def test_the_coarse_grid_is_fine_enough(n, bandwidth, low):
    rng = np.random.default_rng(n)
    score = np.concatenate([rng.beta(a, b, (20, n)) for a, b in ((2, 1), (0.4, 0.4), (1, 6))])
    score[::7] = np.round(score[::7], 2)
    score = low + (1 - low) * score
    sample = Sample(score, rng.random(score.shape) < score**1.3, None, (low, 1.0))
    fine = Density(bandwidth).fit(sample).error()
    coarse = Density(bandwidth, step=proc.STEP).fit(sample).error()
    assert np.abs(fine - coarse).max() < 1e-4


def test_the_experiment_takes_the_coarse_grid():
    assert proc.estimator("d:0.1") == Density(0.1, step=proc.STEP)
    assert proc.estimator("l:10") == parse("l:10")


def test_auto_follows_the_notion():
    settings = replace(TINY, estimators=("auto", "bayes", "bayes:shared"), readings=("corrected",))
    found = compute(settings.tasks()[0], settings).statistics[0]
    np.testing.assert_array_equal(found[0, 0], found[0, 1])
    np.testing.assert_array_equal(found[1, 0], found[1, 2])


# Estimators, families and distributions of one's own

BROKEN = """
import numpy as np

def raises(scores, outcomes, weights):
    raise RuntimeError("out of ideas")

def not_a_number(scores, outcomes, weights):
    return np.nan

def negative(scores, outcomes, weights):
    return -3

def now_and_then(scores, outcomes, weights):
    if outcomes[0]:
        raise RuntimeError("a bad day")
    return 0.0

class Scalar:
    def fit(self, data):
        self.value = np.float64(0.1)
        return self

    def error(self, norm):
        return self.value

class Vandal:
    def fit(self, data):
        data.score[...] = 0.5
        data.outcome[...] = True
        return self
"""


@pytest.mark.parametrize(
    ("attribute", "failed", "reason"),
    [
        ("raises", 10, "RuntimeError: out of ideas"),
        ("not_a_number", 10, "not_a_number must return a finite error of at least 0 and at most 1, got nan"),
        ("negative", 10, "negative must return a finite error of at least 0 and at most 1, got -3.0"),
        ("now_and_then", None, "RuntimeError: a bad day"),
        ("Scalar", 10, "shape"),
        ("Vandal", 10, "read-only"),
    ],
)
def test_an_estimator_that_fails_is_on_record_and_harms_no_other(module, attribute, failed, reason):
    name = f"{module(BROKEN)}.{attribute}"
    settings = replace(TINY, estimators=("l:10", name, "d:silverman"))
    (task,) = settings.tasks()
    found = compute(task, settings)
    without = compute(task, replace(settings, estimators=("l:10", "d:silverman")))
    np.testing.assert_array_equal(found.statistics[:, :, [0, 2]], without.statistics)
    count = found.statistics[1, :, 1, :, STATISTICS.index("failed")]
    if failed is None:
        assert ((count > 0) & (count < 10)).any()
    else:
        assert (count == failed).all()
    for notion in SMALL.notions:
        for n in SMALL.sizes:
            head = f"{name} ({notion}, n={n}): "
            told = [text for text in found.failures if text.startswith(head)]
            assert len(told) == 1 or (failed is None and not told)
            assert all(reason in text for text in told)


def test_an_estimator_beyond_the_fifteen_has_no_faults_and_is_held_against_both_truths(module):
    name = f"{module('def mine(scores, outcomes, weights): return 0.0')}.mine"
    settings = replace(TINY, estimators=("l:10", name))
    found = compute(settings.tasks()[0], settings)
    assert not found.failures
    p95 = found.statistics[..., 0]
    for j, notion in enumerate(settings.notions):
        np.testing.assert_allclose(p95[0, j, 1], abs(found.truth[notion].published))
        np.testing.assert_allclose(p95[1, j, 1], abs(found.truth[notion].exact))


def test_readings_do_not_depend_on_which_others_are_asked_for():
    settings = replace(TINY, estimators=("auto", "c:10", "l:15", "d:silverman"))
    (task,) = settings.tasks()
    both = compute(task, settings).statistics
    for i, reading in enumerate(settings.readings):
        alone = compute(task, replace(settings, readings=(reading,))).statistics
        np.testing.assert_array_equal(both[i], alone[0])
    other = STATISTICS.index("p95_other")
    # Of what the authors did not write both readings have the same estimates: only the truth differs.
    np.testing.assert_array_equal(both[0, :, [0, 2], :, 0], both[1, :, [0, 2], :, other])
    assert (both[0, :, 1, :, 0] != both[1, :, 1, :, other]).all()


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


def test_distributions_and_families_of_ones_own(module, tmp_path):
    module(FAMILY)
    settings = replace(SMALL, classes=(), distributions=("plugged.Coin",), families=("plugged.constant",))
    (result,) = run(settings, tmp_path / "run").results()
    # A constant score of k/60 on a fair coin: its error is known.
    labels = proc.distribution("plugged.Coin").sample(
        60, rng_of("plugged.Coin", "train", result.task.train_set)
    )[1]
    gap = abs(labels.mean() - 0.5)
    for notion in settings.notions:
        assert result.truth[notion].exact == pytest.approx(gap, abs=1e-12)


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


@pytest.mark.parametrize("damage", ["cut", "empty", "text", "flipped", "foreign"])
def test_a_damaged_result_is_computed_again(reference, tmp_path, damage):
    store = Store(tmp_path / "run")
    shutil.copytree(reference.folder, store.folder)
    path = store.path(SMALL.tasks()[1])
    whole = path.read_bytes()
    if damage == "foreign":
        settings = replace(TINY, sizes=(29, 39, 60))
        (task,) = settings.tasks()
        path = store.path(task)
        whole = path.read_bytes()
        Store(store.folder).save(compute(task, settings))
    else:
        middle = len(whole) // 2
        flipped = whole[:middle] + bytes(255 - b for b in whole[middle : middle + 8]) + whole[middle + 8 :]
        path.write_bytes({"cut": whole[:-40], "empty": b"", "text": b"no result", "flipped": flipped}[damage])
    with pytest.raises(DamagedResult, match=path.name):
        Summary.of(store)
    before = files(store)
    run(SMALL, store.folder)
    assert path.read_bytes() == whole
    assert table(store) == table(reference)
    after = files(store)
    assert {name for name in after if after[name] != before[name]} == {path.name}


def test_a_finished_run_computes_nothing(reference, tmp_path, monkeypatch):
    shutil.copytree(reference.folder, tmp_path / "run")
    monkeypatch.setattr("calibrant.experiment.store.compute", None)
    assert table(run(SMALL, tmp_path / "run")) == table(reference)


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


def test_the_table_holds_every_number(reference):
    found = rows(reference)
    assert len(found) == 4 * 2 * 2 * 3 * 2
    for result in reference.results():
        own = [row for row in found if row["distribution"] == result.task.distribution]
        own = [row for row in own if row["family"] == result.task.family]
        row = next(
            row
            for row in own
            if (row["reading"], row["notion"], row["estimator"], row["n"])
            == ("corrected", "classwise", "ac:sqrt", "60")
        )
        for k, name in enumerate(STATISTICS):
            assert float(row[name]) == pytest.approx(result.statistics[1, 1, 1, 1, k], rel=1e-6)
        assert float(row["truth"]) == pytest.approx(result.truth["classwise"].exact, rel=1e-6)


# Summary


@dataclass
class Made:
    """A store with chosen numbers: three models, the first of which an estimator failed on."""

    folder: Path
    failing: int = 1

    def build(self):
        settings = replace(
            SMALL, classes=(2,), families=("logistic", "naive-bayes", "forest"), sizes=(29, 60)
        )
        store = Store.create(self.folder, settings)
        for k, task in enumerate(settings.tasks()):
            statistics = np.full((2, 2, 3, 2, len(STATISTICS)), 0.1 * (k + 1))
            statistics[..., 1, :] *= 2  # at the second size
            statistics[..., -1] = 0
            statistics[0, :, 2] = np.nan  # no published reading
            if k < self.failing:
                statistics[1, :, 1, 1, -1] = 4  # of some samples at the second size
            exact = (0.1, 0.2, 0.4)[k]
            true = dict.fromkeys(settings.notions, Truth(0.5, exact, 0.01))
            failures = ["ac:sqrt: no"] if k < self.failing else []
            store.save(Result(task, true, statistics, failures, statistics[..., :1]))
        return store


def test_medians_by_hand(tmp_path):
    summary = Summary.of(Made(tmp_path / "run").build())
    assert summary.failures == ["ac:sqrt: no"]
    assert len(summary.models) == 3
    for notion in SMALL.notions:
        np.testing.assert_allclose(summary.median("published", notion)[:2], [[0.2, 0.4]] * 2)
        assert np.isnan(summary.median("published", notion)[2]).all()
        # The second estimator failed on samples of one model, and counts as infinitely wrong there.
        np.testing.assert_allclose(summary.median("corrected", notion), [[0.2, 0.4], [0.2, 0.6], [0.2, 0.4]])
        # Divided by the truths .1, .2, .4: 1, 1, .75.
        np.testing.assert_allclose(summary.median("normalised", notion), [[1, 2], [1, 2], [1, 2]])
        np.testing.assert_array_equal(summary.failed("corrected", notion), [[0, 0], [0, 4], [0, 0]])
        np.testing.assert_allclose(summary.truth[notion][:, 1], [0.1, 0.2, 0.4])


def test_what_fails_on_half_of_the_models_has_no_median(tmp_path):
    summary = Summary.of(Made(tmp_path / "run", failing=2).build())
    for notion in SMALL.notions:
        np.testing.assert_allclose(
            summary.median("corrected", notion), [[0.2, 0.4], [0.2, np.nan], [0.2, 0.4]]
        )
        np.testing.assert_array_equal(summary.failed("corrected", notion), [[0, 0], [0, 8], [0, 0]])


def test_the_summary_is_written(tmp_path):
    summary = Summary.of(Made(tmp_path / "run").build())
    with summary.write(tmp_path / "summary.csv").open() as file:
        found = list(csv.DictReader(file))
    # Published: two of three estimators; corrected and normalised: all. Two baselines, notions, sizes.
    assert len(found) == (2 + 3 + 3 + 3 * 2) * 2 * 2
    (row,) = (
        row
        for row in found
        if (row["reading"], row["notion"], row["estimator"], row["n"])
        == ("corrected", "confidence", "ac:sqrt", "60")
    )
    assert (row["p95"], row["failed"]) == ("0.6", "4")
    assert {row["failed"] for row in found if row["estimator"] != "ac:sqrt"} == {"0"}


def test_a_summary_without_a_single_number_can_be_written(tmp_path):
    store = Store.create(tmp_path / "run", TINY)
    true = dict.fromkeys(TINY.notions, Truth(0.5, 0.5, 0.0))
    nothing = np.full((2, 2, 3, 2, len(STATISTICS)), np.nan)
    store.save(Result(TINY.tasks()[0], true, nothing, [], nothing[..., :1]))
    text = Summary.of(store).write(tmp_path / "summary.csv").read_text()
    assert text.startswith("reading,notion,estimator,n,p95")
    assert {line.split(",")[2] for line in text.splitlines()[1:]} == {"zero", "best constant"}


# --- baselines


def test_the_best_constant_has_the_least_median_error_of_a_fine_grid():
    rng = np.random.default_rng(0)
    for count in (1, 2, 5, 8, 31):
        true = rng.gamma(2, 0.03, count)
        for unit in (np.ones(count), true):
            grid = np.linspace(0, true.max(), 20_001)
            errors = np.median(np.abs(grid[:, None] - true) / unit, axis=1)
            found = np.median(np.abs(summaries.best_constant(true, unit) - true) / unit)
            assert found <= errors.min() + 1e-12
            assert found == pytest.approx(errors.min(), abs=true.max() / 20_000 / unit.min())


def test_pairs_are_counted_one_by_one():
    rng = np.random.default_rng(1)
    true, estimates = rng.integers(0, 6, 9) / 10, rng.integers(0, 4, (9, 2, 3)) / 10
    estimates[4, 1, 0] = np.nan
    for k in range(2):
        scores = []
        for i, j, r in product(range(9), range(9), range(3)):
            if true[i] < true[j]:
                low, high = estimates[i, k, r], estimates[j, k, r]
                scores.append(1.0 if low < high else 0.0 if low > high else 0.5)  # NaN is neither
        assert summaries.ordered(estimates, true)[k] == pytest.approx(np.mean(scores))
    assert summaries.ordered(np.full((9, 1, 3), 0.05), true) == pytest.approx(0.5)
    assert summaries.ordered(true[:, None, None] ** 2, true) == pytest.approx(1.0)
    assert np.isnan(summaries.ordered(np.full((9, 1, 3), np.nan), true)).all()
    assert np.isnan(summaries.ordered(estimates, np.zeros(9))).all()


def test_a_run_keeps_estimates(tmp_path):
    settings = replace(TINY, repetitions=12, seeds=(0, 1))
    store = run(settings, tmp_path / "run")
    summary = Summary.of(store)
    result = next(store.results())
    assert result.estimates.shape == (*settings.shape[:-1], KEPT)
    task, true = result.task, result.truth["confidence"].exact
    again = compute(task, replace(settings, repetitions=KEPT))
    # All samples are kept where there are ten: their statistics are those of the result.
    mean = np.abs(again.estimates[1, 0] - true).mean(axis=-1)
    np.testing.assert_allclose(again.statistics[1, 0, ..., 1], mean, rtol=1e-12)
    assert np.isfinite(summary.ordered("normalised", "confidence")).all()


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


def test_a_table_marks_what_failed_on_some_samples(tmp_path):
    for failing, shown in ((1, "0.6000"), (2, "failed")):
        summary = Summary.of(Made(tmp_path / f"{failing}", failing=failing).build())
        lines = list(experiment_cli._lines(summary, "corrected"))
        (first, *_) = (line for line in lines if line.startswith("ac:sqrt"))
        assert first.split()[1:] == ["0.2000", shown]
        told = f"samples without an estimate, whose models count as infinitely wrong: ac:sqrt ({4 * failing})"
        assert lines.count(told) == 2

"""The experiment: known truths, numbers that depend on the settings alone, and a store that survives."""

import csv
import gzip
import shutil
import sys
from dataclasses import dataclass, replace
from itertools import product
from math import pi, sqrt
from pathlib import Path

import numpy as np
import pytest

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
    Truth,
    compute,
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


# Distributions


def test_a_generator_is_its_identity():
    first = rng_of("a", 1).random(4)
    np.testing.assert_array_equal(first, rng_of("a", 1).random(4))
    for other in (("a", 2), ("b", 1), ("a1",), ("a", 1, ""), (1, "a")):
        assert not np.array_equal(first, rng_of(*other).random(4))


@pytest.mark.parametrize("low", [-1.0, 0.0, 0.5, -0.5, -2.0])
@pytest.mark.parametrize("modes", [4, 1])
def test_a_distribution_is_found_by_its_name(low, modes):
    mixture = Mixture(3, 2, 1, modes=modes, low=low)
    assert proc.distribution(mixture.name) == mixture
    assert isinstance(mixture, Distribution)


# Ground truth


def uniform(n, seed=0):
    return np.random.default_rng(seed).random(n)


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


def files(store):
    return {
        path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in store.tasks_path.glob("*.npz")
    }


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


def test_a_table_marks_what_failed_on_some_samples(tmp_path):
    for failing, shown in ((1, "0.6000"), (2, "failed")):
        summary = Summary.of(Made(tmp_path / f"{failing}", failing=failing).build())
        lines = list(experiment_cli._lines(summary, "corrected"))
        (first, *_) = (line for line in lines if line.startswith("ac:sqrt"))
        assert first.split()[1:] == ["0.2000", shown]
        told = f"samples without an estimate, whose models count as infinitely wrong: ac:sqrt ({4 * failing})"
        assert lines.count(told) == 2

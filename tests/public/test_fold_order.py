"""Cross-validated results do not depend on the order of the rows, and say what they pair."""

import re

import numpy as np
import pytest

import calibrant


def rows(n, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    if classes == 2:
        score = rng.random(n).round(2)
        return score, (rng.random(n) < score**2).astype(int)
    score = rng.dirichlet(np.ones(classes), n)
    chance = score**2 / (score**2).sum(axis=1, keepdims=True)
    return score, (rng.random((n, 1)) >= chance.cumsum(axis=1)[:, :-1]).sum(axis=1)


def numbers(comparison):
    losses = {row.method: (row.log_loss, row.brier, row.ece) for row in comparison}
    return {
        name: [x for loss in each for x in (loss.value, loss.low, loss.high)] for name, each in losses.items()
    }


@pytest.mark.full
@pytest.mark.parametrize("kind", ["rows", "counts", "weights", "clusters", "classes"])
def test_a_comparison_of_calibrators_does_not_depend_on_the_order_of_rows(kind):
    score, label = rows(400, classes=3 if kind == "classes" else 2)
    rng = np.random.default_rng(1)
    more = {
        "counts": {"counts": rng.integers(1, 4, 400)},
        "weights": {"sample_weight": rng.integers(1, 4, 400) / 7},
        "clusters": {"cluster": np.arange(400) // 4},
    }.get(kind, {})
    methods = ["vector", "temperature"] if kind == "classes" else ["isotonic", "logistic"]
    order = rng.permutation(400)
    first = calibrant.compare_calibrators(score, label, methods=methods, **more)
    moved = {name: array[order] for name, array in more.items()}
    other = calibrant.compare_calibrators(score[order], label[order], methods=methods, **moved)
    assert numbers(other).keys() == numbers(first).keys()
    for method, values in numbers(first).items():
        assert numbers(other)[method] == pytest.approx(values, rel=1e-6, abs=1e-9)


def test_counts_have_the_folds_of_repeated_rows_in_any_order():
    score, label = rows(150)
    count = np.random.default_rng(2).integers(0, 5, 150)
    index = np.random.default_rng(3).permutation(np.repeat(np.arange(150), count))
    counted = calibrant.compare_calibrators(score, label, methods=["isotonic"], counts=count)
    repeated = calibrant.compare_calibrators(score[index], label[index], methods=["isotonic"])
    assert numbers(counted)["isotonic"] == pytest.approx(numbers(repeated)["isotonic"], rel=1e-6, abs=1e-9)


def test_the_seed_still_draws_the_folds():
    score, label = rows(300)
    values = {
        numbers(calibrant.compare_calibrators(score, label, methods=["isotonic"], rng=seed))["isotonic"][3]
        for seed in range(3)
    }
    assert len(values) == 3


@pytest.mark.full
def test_an_assessment_does_not_depend_on_the_order_of_rows():
    score, label = rows(600)
    order = np.random.default_rng(4).permutation(600)
    first, other = (
        calibrant.assess(label[index], score[index], n_resamples=99) for index in (slice(None), order)
    )
    assert other.verdict.action == first.verdict.action
    assert other.recalibration.gain.value == pytest.approx(first.recalibration.gain.value)


def test_clusters_are_named_as_what_is_paired():
    score, label = rows(400)
    plain = str(calibrant.compare_calibrators(score, label, methods=["logistic"]))
    assert re.search(r"^differences +paired by row;", plain, re.M)
    assert re.search(r"^data +400 rows in 5 folds", plain, re.M)
    compared = calibrant.compare_calibrators(score, label, methods=["logistic"], cluster=np.arange(400) // 4)
    assert compared.clusters == 100
    assert re.search(r"^differences +paired by cluster;", str(compared), re.M)
    assert re.search(r"^data +400 rows of 100 clusters in 5 folds", str(compared), re.M)
    assert type(compared).from_dict(compared.to_dict()).clusters == 100

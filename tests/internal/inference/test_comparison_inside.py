"""Comparisons of models on the same rows, on the same clusters, and of independent samples."""

from types import SimpleNamespace

import numpy as np
import pytest

import calibrant
from calibrant.inference import comparison
from calibrant.inference.comparison import contributions
from calibrant.inputs import in_clusters, predictions
from calibrant.tasks import CalibrationTask, get_notion
from oracles.comparison import correlation_of_clusters, least_difference

FAST = {"rng": 0, "n_resamples": 99}
N = 240


def answers(seed, n, clusters, power=1.0):
    """Return right, confidence and question of each answer of a model; questions depend on the rows."""
    rng = np.random.default_rng(seed)
    question = rng.integers(0, clusters, n)
    score = np.clip(rng.random(n) * 0.7 + 0.3 * np.random.default_rng(99).random(clusters)[question], 0, 1)
    shared = np.random.default_rng(98).random(clusters)[question]
    uniform = np.where(rng.random(n) < 0.6, shared, rng.random(n))
    return (uniform < score**power).astype(int), score, question


@pytest.fixture(scope="module")
def two():
    """Two models that answer some of the same questions, the second twice as often."""
    models = {"a": answers(0, N, 60), "b": answers(1, 2 * N, 60, power=1.6)}
    return [{name: columns[k] for name, columns in models.items()} for k in range(3)]


@pytest.mark.parametrize("weights", [None, "sample_weight", "counts"])
def test_models_are_paired_by_the_values_of_clusters(two, weights):
    right, score, question = two
    rng, options = np.random.default_rng(3), {}
    weight = {name: np.ones(len(y), int) for name, y in right.items()}
    if weights is not None:
        weight = {name: rng.integers(0, 4, len(y)) for name, y in right.items()}
        options = {weights: weight}
    found = calibrant.compare(right, score, notion="correctness", cluster=question, **options, **FAST)
    rows = []
    for name in right:
        about = {"sample_weight" if weights == "sample_weight" else "counts": weight[name]}
        # The sign of the gap depends on the effective sample size, and that on the clusters.
        data = predictions(right[name], score[name], **about)
        data = in_clusters(data, question[name])
        task = CalibrationTask.of(data, get_notion("correctness"))
        kept = weight[name] != 0
        rows.append(
            list(zip(contributions(task), weight[name][kept], question[name][kept].tolist(), strict=True))
        )
    difference = found.differences["b"]
    assert difference.correlation == pytest.approx(correlation_of_clusters(*rows), abs=1e-12)
    a, b = found.estimates["a"], found.estimates["b"]
    assert difference.low == pytest.approx(least_difference(b, a, difference.correlation), abs=1e-7)
    assert difference.high == pytest.approx(-least_difference(a, b, difference.correlation), abs=1e-7)
    assert abs(difference.correlation) > 0.05
    assert difference.paired
    assert found.pairing == "paired by cluster"
    assert "paired by cluster" in str(found)


def shared_rows():
    rng = np.random.default_rng(5)
    p = rng.random(600)
    cluster = rng.permutation(np.arange(600) % 150)
    return (rng.random(600) < p**1.3).astype(int), {"a": p, "b": np.sqrt(p), "c": p**1.3}, cluster


def test_rows_of_different_weights_are_paired_by_their_clusters_only():
    y, models, _ = shared_rows()
    models = {name: models[name] for name in "ab"}
    weight = np.random.default_rng(6).integers(0, 3, len(y)).astype(float)
    weights = {"a": weight, "b": np.where(weight == 2, 0, weight)}
    plain = calibrant.compare(y, models, sample_weight=weights, **FAST)
    found = calibrant.compare(y, models, sample_weight=weights, cluster=np.arange(len(y)), **FAST)
    assert (plain.pairing, found.pairing) == ("independent samples", "paired by cluster")
    rows = []
    for name in models:
        kept = weights[name] > 0
        data = predictions(y, models[name], sample_weight=weights[name])
        value = contributions(CalibrationTask.of(data, get_notion("binary")))
        rows.append(list(zip(value, weights[name][kept], np.flatnonzero(kept).tolist(), strict=True)))
    correlation = found.differences["b"].correlation
    assert correlation == pytest.approx(correlation_of_clusters(*rows), abs=1e-12)
    assert 0 < correlation < 1


@pytest.mark.parametrize(("rho", "first", "second"), [
    (0.0, (3, 1), (2, 4)), (0.9, (1, 3), (1, 3)), (0.9, (0, 3), (1, 0)), (-0.9, (3, 1), (2, 4)),
    (1.0, (3, 1), (1, 4)), (-1.0, (3, 1), (2, 4)), (0.5, (0.2, 3), (1, 3)), (0.5, (0, 0), (0, 0)),
    (0.5, (3, 1), (0.1, 2)),
])  # fmt: skip
def test_a_fall_by_chance_is_the_largest_on_the_ellipse_of_deviates(rho, first, second):
    def of(below, above):
        null = SimpleNamespace(mean=0.0)
        return SimpleNamespace(value=10.0, low=10.0 - below, high=10.0 + above, null=null)

    wanted = -least_difference(of(*first), of(*second), rho)
    assert comparison._chance_margin(first, second, rho) == pytest.approx(wanted, abs=1e-5)


# Accuracies


def test_accuracies_have_newcombes_interval():
    # 56 of 70 and 48 of 80, the example of Newcombe (1998), method 10.
    def task(hits, n):
        data = predictions(np.arange(n) < hits, np.full(n, 0.7))
        return CalibrationTask.of(data, get_notion("correctness"))

    found = comparison._accuracy_difference((task(56, 70), task(48, 80)), 0.0, 0.95)
    assert found.value == pytest.approx(0.2)
    assert (found.low, found.high) == pytest.approx((0.0524, 0.3339), abs=5e-5)

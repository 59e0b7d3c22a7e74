"""Selective decisions: the curve against loops, whatever the order, weights, clusters and sums."""

import math

import matplotlib
import numpy as np
import pytest
from scipy.special import stdtrit
from tests.oracles import selective as oracle

import calibrant
from calibrant.curves.band import clopper_pearson
from calibrant.decisions.selective import NODES, _ConfidenceLevels, area_of
from calibrant.score_data.clusters import effective_clusters
from calibrant.tasks.task import build_task

matplotlib.use("Agg")


def pairs(n=400, seed=0, values=None):
    """Return correctness and confidence of answers."""
    rng = np.random.default_rng(seed)
    sure = rng.uniform(0.4, 1, n) if values is None else rng.choice(values, n)
    return (rng.random(n) < sure**1.5).astype(int), sure


def kept(right, sure, **options):
    return calibrant.risk_coverage(right, sure, notion="correctness", rng=0, **options)


@pytest.mark.parametrize("kind", ["plain", "counts", "weights", "clusters"])
def test_the_interval_is_for_as_many_rows_as_have_the_variance(kind):
    right, sure = pairs(150, values=np.linspace(0.5, 1, 9))
    rng = np.random.default_rng(2)
    weight, square, cluster = np.ones(150), np.ones(150), None
    options, reach = {}, 1.959963984540054
    if kind == "counts":
        weight = square = rng.integers(1, 4, 150)
        options["counts"] = weight
    elif kind == "weights":
        weight = rng.gamma(1, size=150) + 0.1
        square = weight**2
        options["sample_weight"] = weight
    elif kind == "clusters":
        cluster = rng.integers(0, 30, 150)
        options["cluster"] = cluster
        reach = stdtrit(effective_clusters(cluster, None) - 1, 0.975)
    found = kept(right, sure, **options)
    given = options.get("sample_weight"), None, None, cluster
    own = _ConfidenceLevels.of(build_task(right, sure, "correctness", *given, counts=options.get("counts")))
    for k in (2, 5, 8):
        about = sure, right, weight, square, found.confidence[k], own.local[k]
        alone = oracle.variance(*about)
        spread = alone if cluster is None else max(oracle.variance(*about, cluster), alone)
        some = sure >= found.confidence[k]
        rows = weight[some].sum() ** 2 / square[some].sum()
        accuracy = found.accuracy[k]
        nearer = (accuracy * rows + 0.5) / (rows + 1)
        more = max(nearer * (1 - nearer) - accuracy * (1 - accuracy), 0) / rows
        size = min(nearer * (1 - nearer) / (spread / alone * (alone + more)), rows)
        level = math.erf(reach / math.sqrt(2))
        ends = clopper_pearson(np.array(accuracy), np.array(size), level)
        np.testing.assert_allclose([found.low[k], found.high[k]], ends, rtol=1e-8)


def test_covariances_are_those_of_what_rows_add():
    right, sure = pairs(60, values=np.linspace(0.5, 1, 5))
    own = _ConfidenceLevels.of(build_task(right, sure, "correctness", None, None, None))
    at = np.arange(5)
    added = []
    for k in at:
        some = sure >= own.confidence[k]
        lead = own.accuracy[k] - own.local[k]
        added.append(some * (right - own.local[k]) / own.coverage[k] - lead)
    np.testing.assert_allclose(own.covariance(at), np.array(added) @ np.array(added).T / 60**2, rtol=1e-9)
    np.testing.assert_allclose(np.diag(own.covariance(at)), own.variance(at), rtol=1e-9)


def test_the_interval_of_the_area_is_as_wide_as_leaving_out_each_row_says():
    right, sure = pairs(3000, values=np.array([0.5, 0.6, 0.8, 1.0]))
    levels = np.unique(sure)[::-1]
    table = np.array([[np.sum((sure == level) & (right == answer)) for answer in (0, 1)] for level in levels])

    def area(counts):
        return area_of(counts.sum(axis=1).astype(float), counts[:, 1] / counts.sum(axis=1))

    without = np.array(
        [[area(table - one) for one in pair] for pair in np.eye(8, dtype=int).reshape(4, 2, 4, 2)]
    )
    mean = (table * without).sum() / 3000
    jackknife = np.sqrt(2999 / 3000 * (table * (without - mean) ** 2).sum())
    found = kept(right, sure).aurc
    assert (found.high - found.low) / 3.92 == pytest.approx(jackknife, rel=0.03)


def test_a_curve_of_many_thresholds_is_thinned_and_its_area_is_not():
    right, sure = pairs(5000)
    found = kept(right, sure)
    assert found.coverage.size <= NODES
    assert found.coverage[-1] == 1
    assert np.all(np.diff(found.coverage) > 0)
    assert np.diff(found.coverage).max() < 2 / NODES
    order = np.argsort(-sure)
    accuracy = np.cumsum(right[order]) / np.arange(1, 5001)
    np.testing.assert_allclose(found.accuracy, accuracy[np.rint(5000 * found.coverage).astype(int) - 1])
    assert found.aurc.value == pytest.approx(1 - accuracy.mean(), rel=1e-12)


def test_area_of_one_level_is_its_risk():
    assert area_of(np.array([40.0]), np.array([0.7])) == pytest.approx(0.3)
    assert area_of(np.array([2.5]), np.array([0.0])) == pytest.approx(1.0)

"""Design effects of clusters, and score data worth fewer rows."""

from dataclasses import astuple

import numpy as np
import pytest

from calibrant.score_data import Residuals, Sample
from calibrant.score_data.clusters import (
    DesignEffect,
    are_independent,
    correlation,
    effective_clusters,
    thinned,
)
from oracles import clusters as slow
from weighing import weighted_sample


def drawn(seed=0, clusters=12, rows=6, gap=0.0, shared=False, weight=None):
    """Rows whose outcomes lean the same way within a cluster."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(clusters), rows)
    score = rng.beta(2, 2, clusters)[cluster] if shared else rng.beta(2, 2, cluster.size)
    lean = rng.normal(0, 0.25, clusters)[cluster]
    outcome = rng.random(cluster.size) < np.clip(score + gap + lean, 0, 1)
    weights = {
        None: None,
        "counts": rng.integers(1, 4, cluster.size),
        "importance": rng.gamma(2.0, size=cluster.size),
    }
    return weighted_sample(score, outcome, weights[weight]), cluster


@pytest.mark.parametrize("weight", [None, "counts", "importance"])
@pytest.mark.parametrize(("gap", "shared"), [(0.0, False), (0.3, False), (0.0, True), (-0.3, True)])
def test_the_design_effect_is_that_of_loops_over_rows(weight, gap, shared):
    sample, cluster = drawn(gap=gap, shared=shared, weight=weight)
    found = DesignEffect.of(sample, cluster)
    wanted = slow.design(
        sample.score, sample.outcome, cluster.tolist(), sample.weight, counts=weight != "importance"
    )
    assert (*astuple(found), correlation(sample, cluster)) == pytest.approx(wanted, rel=1e-5)


def test_a_few_scores_have_as_many_waves():
    rng = np.random.default_rng(0)
    cluster = np.arange(90) // 3
    sample = Sample(rng.choice([0.2, 0.7], 90), rng.random(90) < 0.5)
    found = DesignEffect.of(sample, cluster)
    wanted = slow.design(sample.score, sample.outcome, cluster.tolist())
    assert (*astuple(found), correlation(sample, cluster)) == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize("times", [2, 7])
def test_rows_asked_several_times_have_that_design_effect(times):
    sample, _ = drawn(clusters=100, rows=1)
    cluster = np.repeat(np.arange(100), times)
    sample = Sample(sample.score[cluster], sample.outcome[cluster])
    found = DesignEffect.of(sample, cluster)
    assert found.symmetric == pytest.approx(times)
    assert found.effect == pytest.approx(times, rel=0.02)
    assert correlation(sample, cluster) == pytest.approx(1, abs=0.15)


def test_counts_are_rows_of_one_cluster():
    sample, cluster = drawn(weight="counts")
    again = np.repeat(np.arange(cluster.size), sample.weight)
    rows = Sample(sample.score[again], sample.outcome[again])
    assert DesignEffect.of(sample, cluster).effect == pytest.approx(
        DesignEffect.of(rows, cluster[again]).effect
    )


def test_the_scale_of_importance_weights_does_not_matter():
    sample, cluster = drawn(weight="importance")
    other = weighted_sample(sample.score, sample.outcome, 7 * sample.weight)
    assert DesignEffect.of(other, cluster).effect == pytest.approx(DesignEffect.of(sample, cluster).effect)


def test_turning_the_signs_of_clusters_leaves_the_symmetric_effect():
    sample, cluster = drawn()
    sample = Sample(np.full(cluster.size, 0.5), sample.outcome)
    other = sample.outcome ^ (np.random.default_rng(1).random(12) < 0.5)[cluster]
    assert (
        DesignEffect.of(Sample(sample.score, other), cluster).symmetric
        == DesignEffect.of(sample, cluster).symmetric
    )


def test_scores_far_apart_within_a_cluster_leave_a_strong_shape_its_rows():
    """A cluster that leans one way moves the mean of the gap, of which this one has none."""
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(300), 20)
    score = rng.random(cluster.size)
    lean = rng.normal(0, 0.12, 300)[cluster]
    bent = score + 0.3 * np.sin(2 * np.pi * score)
    found = DesignEffect.of(Sample(score, rng.random(cluster.size) < np.clip(bent + lean, 0, 1)), cluster)
    assert found.of_mean > 1.8
    assert found.effect < 1.4


def test_unequal_clusters_are_worth_fewer():
    cluster = np.repeat([0, 1, 2], [8, 1, 1])
    assert effective_clusters(cluster, None) == pytest.approx(100 / 66)
    assert effective_clusters(cluster, np.repeat([0.125, 1, 1], [8, 1, 1])) == pytest.approx(3)


def test_rows_are_alone_where_none_share_a_cluster_or_count_twice():
    assert are_independent(np.array([1, 0, 2]), np.array([0.5, 2.0, 3.0]), counts=False)
    assert are_independent(np.array([1, 0, 2]), np.array([1, 2, 3]), counts=False)
    assert not are_independent(np.array([1, 0, 0]), None)
    assert not are_independent(np.array([1, 0, 2]), np.array([1, 1, 2]))


@pytest.mark.parametrize("weight", [None, np.array([1, 2, 3]), np.array([0.5, 2.0, 3.0])])
def test_rows_of_a_single_cluster_are_treated_as_independent(weight):
    assert are_independent(np.zeros(3, np.intp), weight)


@pytest.mark.parametrize("rows", [300, 9000])
def test_thinned_residuals_are_those_of_thinned_evidence(rows):
    rng = np.random.default_rng(0)
    sample = Sample(rng.random(rows), rng.random(rows) < 0.5)
    found, wanted = Residuals.of(thinned(sample, 3.0)), Residuals.of(sample).thinned(3.0)
    wanted = wanted[wanted.mass > 0]
    assert float(thinned(sample, 3.0).n) == pytest.approx(rows / 3)
    for name in ("mass", "score", "residual", "spread"):
        assert getattr(found, name) == pytest.approx(getattr(wanted, name), abs=1e-9)


def test_residuals_that_are_noisier_have_that_much_more_variance():
    sample, _ = drawn()
    plain = Residuals.of(sample)
    found = plain.thinned(2.0, 3.0)
    assert found.n == pytest.approx(plain.n / 2)
    # As a share of all rows: half of them, and three times the variance.
    assert found.spread.sum() / found.n**2 == pytest.approx(6 * plain.spread.sum() / plain.n**2)

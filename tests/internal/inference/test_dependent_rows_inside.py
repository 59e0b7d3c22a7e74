"""Estimates and comparisons of rows that belong together."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm as normal
from scipy.stats import t as student

import calibrant
from calibrant.inference.clusters import (
    ClusteredNull,
    CorrelatedLabels,
    CorrelatedRows,
    by_cluster,
    sign_flip_null,
)
from calibrant.inference.interval import ClusterAdjustment
from calibrant.inputs import in_clusters, predictions
from calibrant.score_data import Residuals, Sample
from calibrant.tasks import CalibrationTask, get_notion
from dirichlet import Dirichlet
from oracles import clusters as slow
from weighing import weighing, weighted_sample

pytestmark = pytest.mark.no_cover


def simulated_residuals(clusters=60, rows=8, lean=0.3, gap=0.0, seed=0):
    """Rows near the score of their cluster, whose outcomes lean the same way."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(clusters), rows)
    score = np.clip(rng.beta(2, 2, clusters)[cluster] + rng.normal(0, 0.05, cluster.size), 0.01, 0.99)
    chance = np.clip(score + gap + rng.normal(0, lean, clusters)[cluster], 0, 1)
    return (rng.random(cluster.size) < chance).astype(int), score, cluster


def asked(y, p, cluster, notion="binary", weight=None):
    data = in_clusters(predictions(y, p, **weighing(weight)), cluster)
    return CalibrationTask.of(data, get_notion(notion))


# The test


def test_signs_are_turned_for_whole_clusters():
    y, p, cluster = simulated_residuals(clusters=7, rows=5)
    weight = np.random.default_rng(0).random(35) + 0.5
    sample = weighted_sample(p, y > 0, weight)
    steps = Residuals.of(sample).thinned(2.0).coarser(9)
    assert steps.mass.size <= 9
    signs = np.random.default_rng(1).choice([-1.0, 1.0], (7, 4))
    found = np.concatenate(list(sign_flip_null(sample, cluster, steps, lambda: [signs[:, :3], signs[:, 3:]])))
    # The last score of each step, by its share of the rows.
    order = np.argsort(p)
    blocks_so_far = np.cumsum(weight[order]) / weight.sum()
    ends = p[order][np.searchsorted(blocks_so_far, np.cumsum(steps.mass) / steps.mass.sum() - 1e-9)]
    scale = float(steps.n) / weight.sum()
    for k in range(4):
        wanted = slow.turned(p, y, cluster, weight, signs[:, k], ends, scale)
        assert found[k] == pytest.approx(wanted, abs=1e-12)
    (together,) = sign_flip_null(sample, cluster, steps, lambda: [np.ones((7, 1))])
    assert together[0] == pytest.approx(steps.residual, abs=1e-12)


def test_calibrated_data_are_drawn_in_clusters_and_for_whole_rows():
    rng = np.random.default_rng(0)
    labels, scores = Dirichlet(3, 0.0).draw(rng, 12)[::-1]
    cluster = np.repeat(np.arange(12), 6)
    task = asked(labels[cluster], scores[cluster], cluster, "classwise")
    draws = CorrelatedLabels.of(task, rng, 400)
    assert draws.correlation > 0.5
    draws = replace(draws, correlation=1.0)
    below, sums = np.zeros(72), []
    for k, problem in enumerate(task.problems):
        plain = Residuals.of(problem)
        steps = plain[plain.mass > 0]
        found = np.concatenate(list(draws.residuals(problem, steps, below)))
        below = below + scores[cluster, k][draws.order]
        sums.append(found.sum(axis=1))
        # Rows of a cluster are all alike: six times an outcome of its probability.
        chance = np.sort(scores[:, k])
        assert found.mean(axis=0) == pytest.approx(np.zeros(12), abs=6 * 0.13)
        assert found.var(axis=0) == pytest.approx(36 * chance * (1 - chance), abs=36 * 0.06)
    # A row has one label.
    assert np.sum(sums, axis=0) == pytest.approx(np.zeros(400), abs=1e-9)


def test_few_clusters_and_many_rows_are_not_drawn(monkeypatch):
    from calibrant.inference import clusters

    y, p, cluster = simulated_residuals()
    task, rng = asked(y, p, cluster), np.random.default_rng(0)
    assert CorrelatedLabels.of(task, rng, 9) is not None
    assert CorrelatedLabels.of(asked(y, p, cluster % 9), rng, 9) is None
    monkeypatch.setattr(clusters, "MOST_DRAWN", 480 * 9 - 1)
    assert CorrelatedLabels.of(task, rng, 9) is None
    assert 0 < calibrant.estimate(y, p, cluster=cluster, rng=0).p_value <= 1


def test_counted_rows_are_drawn_as_often():
    y, p, cluster = simulated_residuals()
    counts = np.random.default_rng(0).integers(1, 4, len(y))
    task = asked(y, p, cluster, weight=counts)
    draws = CorrelatedLabels.of(task, np.random.default_rng(0), 300)
    plain = Residuals.of(task.problems[0])
    (found,) = draws.residuals(task.problems[0], plain[plain.mass > 0], np.zeros(counts.sum()))
    assert draws.order.size == counts.sum()
    assert found.sum(axis=1).mean() == pytest.approx(0, abs=4 * found.sum(axis=1).std() / np.sqrt(300))


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("rows", [2, 400])
def test_the_steps_of_many_rows_are_those_of_the_residuals(rows, tied):
    y, p, cluster = simulated_residuals(clusters=30, rows=rows)
    if tied:  # on both sides of the edges of cells
        p = np.nextafter(np.round(p, 1), np.arange(p.size) % 2)
    sample = Sample(p, y > 0)
    steps = Residuals.of(sample).thinned(3.0).coarser(50)
    (found,) = sign_flip_null(sample, cluster, steps, lambda: [np.ones((30, 1))])
    assert found[0] == pytest.approx(steps.residual, abs=1e-9)


def test_classes_have_the_sign_of_a_cluster_in_common():
    """Residuals of two classes are each other's negative, and so is what is simulated."""
    y, p, cluster = simulated_residuals()
    task = asked(y, np.column_stack([1 - p, p]), cluster, "classwise")
    null = ClusteredNull.of(task, "l1", np.random.default_rng(0), 99)
    one, other = null.single_class
    assert one.p_value == pytest.approx(other.p_value, abs=0.03)
    # With independent signs the correlation would be near zero.
    assert np.corrcoef(one.error, other.error)[0, 1] > 0.9
    assert null.all_classes.error == pytest.approx((one.error + other.error) / 2, rel=0.5, abs=0.01)


# The interval


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_tails_are_those_of_students_distribution(level):
    y, p, cluster = simulated_residuals(clusters=9)
    (view,) = ClusterAdjustment.of(asked(y, p, cluster))
    wanted = student(8).ppf((1 + level) / 2) / normal.ppf((1 + level) / 2)
    assert view.tails(level) == pytest.approx(wanted)
    assert ClusterAdjustment(Sample(p, y > 0), 1.0).tails(level) == 1


def test_outcomes_are_drawn_as_alike_as_they_were_seen():
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(500), 4)
    p = rng.uniform(0.3, 0.7, 500)[cluster]
    y = rng.random(2000) < rng.beta(p * 1.5, (1 - p) * 1.5)[4 * cluster]
    task = asked(y, p, cluster)
    (view,) = ClusterAdjustment.of(task)
    assert view.problem.correlation == pytest.approx(0.4, abs=0.06)
    new = view.problem.simulate_outcomes(lambda s: s, rng, 200)
    assert new.outcome.mean(axis=1).mean() == pytest.approx(p.mean(), abs=0.01)
    p = new.score  # cluster after cluster
    np.testing.assert_array_equal(p.reshape(500, 4), p.reshape(500, 4)[:, :1].repeat(4, axis=1))
    rest = (new.outcome - p).reshape(200, 500, 4) / np.sqrt(p * (1 - p)).reshape(500, 4)
    pairs = (rest.sum(axis=-1) ** 2 - (rest**2).sum(axis=-1)).mean() / 12
    assert pairs == pytest.approx(view.problem.correlation, abs=0.02)


def test_too_many_rows_for_that_are_drawn_as_sums_and_spread_wider(monkeypatch):
    from calibrant.estimators import parse
    from calibrant.inference import clusters

    y, p, cluster = simulated_residuals()
    task = asked(y, p, cluster)
    (near,) = ClusterAdjustment.of(task)
    monkeypatch.setattr(clusters, "MOST_ROWS", 100)
    (far,) = ClusterAdjustment.of(task)
    binned = parse("uniform:15")
    wider = np.sqrt(near.design.of_error)
    assert far.tail_inflation(0.95, binned) == pytest.approx(near.tail_inflation(0.95, binned) * wider)
    assert far.tail_inflation(0.95, parse("bayes")) == near.tail_inflation(0.95, parse("bayes"))
    assert far.problem.simulate_outcomes(lambda s: s, np.random.default_rng(0), 3).batch == (3,)
    wide = calibrant.estimate(y, p, estimator="uniform:15", cluster=cluster, rng=0)
    plain = calibrant.estimate(y, p, estimator="uniform:15", rng=0)
    assert wide.high - wide.low > 1.05 * (plain.high - plain.low)


def test_counted_rows_are_drawn_one_by_one():
    y, p, cluster = simulated_residuals()
    counts = np.random.default_rng(0).integers(1, 4, len(y))
    (view,) = ClusterAdjustment.of(asked(y, p, cluster, weight=counts))
    assert isinstance(view.problem, CorrelatedRows)
    assert view.problem.simulate_outcomes(lambda s: s, np.random.default_rng(0), 2).shape == (2, counts.sum())


def test_models_correlate_over_the_sums_of_clusters():
    rng = np.random.default_rng(0)
    a, b, w = rng.random((3, 30))
    cluster = rng.permutation(np.arange(30) % 7)
    found = [by_cluster(x, cluster, w) for x in (a, b)]
    for x, sums in zip((a, b), found, strict=True):
        mean = (w * x).sum() / w.sum()
        wanted = [sum(w[i] * (x[i] - mean) for i in range(30) if cluster[i] == g) / w.sum() for g in range(7)]
        assert sums == pytest.approx(wanted)
    assert by_cluster(np.column_stack([a, b]), cluster, w) == pytest.approx(np.column_stack(found))

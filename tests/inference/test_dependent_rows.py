"""Estimates and comparisons of rows that belong together."""

import json
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


def simulated_residuals(clusters=60, rows=8, lean=0.3, gap=0.0, seed=0):
    """Rows near the score of their cluster, whose outcomes lean the same way."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(clusters), rows)
    score = np.clip(rng.beta(2, 2, clusters)[cluster] + rng.normal(0, 0.05, cluster.size), 0.01, 0.99)
    chance = np.clip(score + gap + rng.normal(0, lean, clusters)[cluster], 0, 1)
    return (rng.random(cluster.size) < chance).astype(int), score, cluster


def matrix(clusters=40, rows=6, seed=0, classes=3):
    scores, labels = Dirichlet(classes, 0.4).draw(np.random.default_rng(seed), clusters)
    cluster = np.repeat(np.arange(clusters), rows)
    return labels[cluster], scores[cluster], cluster


def asked(y, p, cluster, notion="binary", weight=None):
    data = in_clusters(predictions(y, p, **weighing(weight)), cluster)
    return CalibrationTask.of(data, get_notion(notion))


# What an estimate says


@pytest.mark.parametrize("estimator", ["auto", "uniform:15", "debiased", "density"])
def test_rows_that_belong_together_tell_less(estimator):
    y, p, cluster = simulated_residuals(gap=-0.2)
    plain = calibrant.estimate(y, p, estimator=estimator, rng=0)
    found = calibrant.estimate(y, p, estimator=estimator, cluster=cluster, rng=0)
    assert found.high - found.low > 1.2 * (plain.high - plain.low)
    assert found.null.mean > 1.2 * plain.null.mean
    assert found.low <= found.value <= found.high
    assert (found.clusters, plain.clusters, found.n) == (60, None, 480)


@pytest.mark.parametrize("estimator", ["uniform:15", "debiased", "density", "isotonic"])
def test_a_named_estimator_gives_the_same_number(estimator):
    y, p, cluster = simulated_residuals()
    wanted = calibrant.ece(y, p, estimator=estimator)
    assert calibrant.ece(y, p, estimator=estimator, cluster=cluster) == wanted
    assert calibrant.estimate(y, p, estimator=estimator, cluster=cluster, rng=0).value == wanted


@pytest.mark.parametrize("notion", ["binary", "confidence", "classwise"])
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_the_value_is_that_of_ece(notion, norm):
    y, p, cluster = simulated_residuals() if notion == "binary" else matrix()
    found = calibrant.estimate(y, p, notion=notion, norm=norm, cluster=cluster, rng=0)
    assert found.value == calibrant.ece(y, p, notion=notion, norm=norm, cluster=cluster)
    assert found.value < calibrant.ece(y, p, notion=notion, norm=norm)
    assert calibrant.mce(y, p, notion=notion, cluster=cluster) >= found.value


def test_every_row_asked_several_times_is_as_good_as_once():
    rng = np.random.default_rng(0)
    p = rng.random(400)
    y = rng.random(400) < p**1.5
    often = np.repeat(np.arange(400), 5)
    once, found = (
        calibrant.estimate(y, p, rng=0),
        calibrant.estimate(y[often], p[often], cluster=often, rng=0),
    )
    assert found.value == pytest.approx(once.value, rel=0.02)
    assert (found.low, found.high) == pytest.approx((once.low, once.high), abs=0.012)
    assert found.null.mean == pytest.approx(once.null.mean, rel=0.1)


@pytest.mark.parametrize("notion", ["binary", "confidence", "classwise"])
@pytest.mark.parametrize("weighted", [False, True])
def test_clusters_of_one_row_change_nothing_at_all(notion, weighted):
    rng = np.random.default_rng(0)
    p, y = Dirichlet(3, 0.3).draw(rng, 200)
    p, y = (p[:, 1], y == 1) if notion == "binary" else (p, y)
    options = {"notion": notion, "rng": 0, "sample_weight": rng.random(200) + 0.5 if weighted else None}
    plain, found = (calibrant.estimate(y, p, cluster=c, **options) for c in (None, rng.permutation(200)))
    assert found.clusters == 200
    by_class = found.by_class and {k: replace(e, clusters=None) for k, e in found.by_class.items()}
    assert replace(found, clusters=None, by_class=by_class) == plain


@pytest.mark.parametrize("estimator", ["auto", "uniform:10"])
@pytest.mark.parametrize("notion", ["binary", "classwise"])
def test_neither_the_order_of_rows_nor_the_names_of_clusters_matter(estimator, notion):
    y, p, cluster = simulated_residuals() if notion == "binary" else matrix()
    names = np.array([f"patient {(7 * k + 3) % 60}" for k in range(60)])[cluster]
    order = np.random.default_rng(1).permutation(len(y))
    options = {"notion": notion, "estimator": estimator, "rng": 0}
    one = calibrant.estimate(y, p, cluster=cluster, **options)
    other = calibrant.estimate(y, p, cluster=names, **options)
    assert other == one
    if estimator == "auto":
        moved = calibrant.estimate(y[order], p[order], cluster=names[order], **options)
        assert moved.p_value == one.p_value
        assert (moved.value, moved.low, moved.high) == pytest.approx((one.value, one.low, one.high), rel=1e-6)


def test_clusters_that_differ_in_another_class_alone_are_told_apart():
    """Neither names, nor the order of rows or of columns, decide among rows with tied scores."""
    rng = np.random.default_rng(0)
    cluster, n = np.repeat(np.arange(24), 2), 48
    y, p = rng.integers(0, 3, n), np.array([[2, 1, 1], [1, 2, 1], [1, 1, 2]])[rng.integers(0, 3, n)] / 4
    options = {"notion": "classwise", "rng": 0}
    one = calibrant.estimate(y, p, cluster=cluster, **options)
    order, names = rng.permutation(n), rng.permutation(24)
    other = calibrant.estimate(y[order], p[order], cluster=names[cluster[order]], **options)
    sign_flip_null = calibrant.estimate(
        y, p[:, [2, 0, 1]], labels=[2, 0, 1], cluster=names[cluster], **options
    )
    for found in (other, sign_flip_null):
        for a, b in [(found, one), *((found.by_class[k], one.by_class[k]) for k in range(3))]:
            assert a.p_value == b.p_value
            assert a.null.mean == pytest.approx(b.null.mean, rel=1e-6)
            assert (a.value, a.low, a.high) == pytest.approx((b.value, b.low, b.high), rel=1e-6)


def test_counts_are_repetition():
    y, p, cluster = simulated_residuals()
    counts = np.random.default_rng(0).integers(0, 4, len(y))
    again = np.repeat(np.arange(len(y)), counts)
    one = calibrant.estimate(y, p, counts=counts, cluster=cluster, rng=0)
    other = calibrant.estimate(y[again], p[again], cluster=cluster[again], rng=0)
    assert other.value == pytest.approx(one.value, rel=1e-9)
    assert (other.low, other.high) == pytest.approx((one.low, one.high), rel=1e-9)


def test_json_says_how_many_clusters_there_were():
    y, p, cluster = matrix()
    found = calibrant.estimate(y, p, notion="classwise", cluster=cluster, rng=0)
    assert calibrant.Estimate.from_json(found.to_json()) == found
    assert json.loads(found.to_json())["clusters"] == 40
    assert all(each.clusters == 40 for each in found.by_class.values())
    assert "240 rows in 40 clusters" in str(found)


def test_many_classes_are_refused_with_what_can_be_asked():
    y, p, cluster = matrix(classes=21)
    with pytest.raises(calibrant.InputError, match=r"at most 20 classes.*confidence"):
        calibrant.estimate(y, p, notion="classwise", cluster=cluster)
    assert calibrant.estimate(y, p, notion="confidence", cluster=cluster, rng=0).clusters == 40
    assert calibrant.ece(y, p, notion="classwise", cluster=cluster) < calibrant.ece(y, p, notion="classwise")


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


def test_few_clusters_cannot_be_sure():
    y, p, cluster = simulated_residuals(clusters=4, rows=50, lean=0.0, gap=-0.3)
    assert calibrant.estimate(y, p, rng=0).p_value == 0.001
    # There are 8 ways to turn the signs of 4 clusters against each other.
    assert calibrant.estimate(y, p, cluster=cluster, rng=0).p_value > 0.08


@pytest.mark.full
def test_the_test_has_its_size_and_the_interval_its_coverage():
    rejected, covered, plain = [], [], []
    cluster = np.repeat(np.arange(20), 10)
    for seed in range(80):
        rng = np.random.default_rng(seed)
        mean = rng.uniform(0.05, 0.95, 20)
        p, y = mean[cluster], rng.random(200) < rng.beta(2 * mean, 2 - 2 * mean)[cluster]
        found = calibrant.estimate(y, p, cluster=cluster, rng=seed)
        rejected.append(found.p_value <= 0.05)
        covered.append(found.low == 0)
        if seed < 20:
            plain.append(calibrant.estimate(y, p, rng=seed).p_value <= 0.05)
    assert np.mean(rejected) <= 0.12
    assert np.mean(covered) >= 0.87
    assert np.mean(plain) > 0.6


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


@pytest.mark.parametrize("weighted", ["no weights", "counts", "importance weights"])
@pytest.mark.parametrize("estimator", ["uniform:10", "isotonic"])
def test_neither_names_of_clusters_nor_the_order_of_rows_move_the_interval_of_a_named_estimator(
    estimator, weighted
):
    rng = np.random.default_rng(3)
    y, p, cluster = (part[:60] for part in simulated_residuals())
    weight = {"no weights": None, "counts": rng.integers(1, 4, 60)}.get(weighted, rng.random(60) + 0.5)
    order, names = rng.permutation(60), rng.permutation(1000)
    one, other = (
        calibrant.estimate(
            y[some],
            p[some],
            estimator=estimator,
            cluster=own[some],
            **weighing(None if weight is None else weight[some]),
            rng=0,
        )
        for some, own in ((np.arange(60), cluster), (order, names[cluster]))
    )
    assert (other.low, other.high, other.p_value) == pytest.approx((one.low, one.high, one.p_value), abs=1e-9)
    assert other.null.mean == pytest.approx(one.null.mean, abs=1e-9)


def test_gaps_whose_square_is_nothing_are_no_gaps():
    scores = np.array([[1e-222, 1.0, 1e-205], [1.0, 1e-246, 1e-69]])
    found = calibrant.ece([0, 0], scores, notion="classwise", counts=[1066, 193], cluster=[0, 1])
    assert 0 < found < 1


# Comparisons


def test_comparisons_allow_for_clusters():
    y, p, cluster = simulated_residuals()
    models = {"a": p, "b": p**1.2, "c": np.sqrt(p)}
    plain = calibrant.compare(y, models, rng=0)
    found = calibrant.compare(y, models, cluster=cluster, rng=0)
    for name in ("b", "c"):
        one, other = plain.differences[name], found.differences[name]
        assert other.high - other.low > one.high - one.low
        assert found.estimates[name] == calibrant.estimate(y, models[name], cluster=cluster, rng=0)
    alone = calibrant.compare(y, models, cluster=np.arange(len(y)), rng=0)
    assert alone.differences == plain.differences


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


@pytest.mark.parametrize("seed", [1, 4, 6])
def test_the_upper_end_is_not_below_the_limit_of_the_mean_gap(seed):
    rng, rows = np.random.default_rng(seed), 25
    clusters = int(rng.integers(12, 21))
    cluster = np.repeat(np.arange(clusters), rows)
    score = rng.uniform(0.1, 0.9, cluster.size)
    chance = np.clip(score + 0.15 + 0.12 * rng.normal(size=clusters)[cluster], 0.01, 0.99)
    gap = (rng.random(cluster.size) < chance) - score
    sums = np.bincount(cluster, gap - gap.mean())
    error = np.sqrt((sums**2).sum() * clusters / (clusters - 1)) / gap.size
    # The design effect is that of gaps around a fitted curve, which is a little smaller.
    limit = abs(gap.mean()) + 0.9 * student.ppf(0.975, clusters - 1) * error
    label = (gap + score).round()
    assert calibrant.estimate(label, score, cluster=cluster).high >= limit

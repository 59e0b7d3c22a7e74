"""Estimates and comparisons of rows that belong together."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t as student

import calibrant
from dirichlet import Dirichlet
from weighing import weighing

pytestmark = pytest.mark.no_cover


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


@pytest.mark.full
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


@pytest.mark.full
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


@pytest.mark.full
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

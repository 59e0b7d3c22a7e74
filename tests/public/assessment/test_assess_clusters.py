"""Assessments of rows that belong together."""

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student

import calibrant
from oracles import clinical as oracle
from weighing import weighing

pytestmark = pytest.mark.no_cover


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(60), 8)
    p = rng.uniform(0.05, 0.95, 60)[cluster]
    return rng.random(480) < rng.beta(2 * p, 2 - 2 * p)[8 * cluster], p, cluster


@pytest.fixture(scope="module")
def both(rows):
    y, p, cluster = rows
    groups = np.where(cluster == 0, "one cluster", np.where(cluster < 30, "low", "high"))
    return [calibrant.assess(y, p, cluster=c, groups=groups, rng=0) for c in (cluster, None)]


@pytest.mark.full
def test_every_figure_allows_for_clusters(rows, both):
    y, p, cluster = rows
    found, plain = both
    assert found.estimate == calibrant.estimate(y, p, cluster=cluster, rng=0)
    assert {e.clusters for e in (*found.estimates.values(), *found.by_estimator.values())} == {60}
    for name in ("balance", "accuracy"):
        one, other = getattr(found, name), getattr(plain, name)
        assert (one.observed, one.expected) == (other.observed, other.expected)
        assert one.high - one.low > 1.5 * (other.high - other.low)
    one, other = found.curve, plain.curve
    assert np.nanmean(one.high - one.low) > 1.15 * np.nanmean(other.high - other.low)
    assert one.at(0.5).n_eff < other.at(0.5).n_eff
    assert found.diagram.frequency == pytest.approx(plain.diagram.frequency)
    assert np.all(found.diagram.high - found.diagram.low > plain.diagram.high - plain.diagram.low)
    assert found.digest != plain.digest
    assert found.n == plain.n == 480


@pytest.mark.full
def test_the_balance_is_that_of_means_of_clusters(rows, both):
    """Clusters are of one size: the variance of the mean is that of their means."""
    from scipy.stats import t as student

    y, p, cluster = rows
    means = np.bincount(cluster, p - y) / 8
    reach = student(59).ppf(0.975) * means.std(ddof=1) / np.sqrt(60)
    found = both[0].balance
    assert (found.high - found.low) / 2 == pytest.approx(reach, rel=0.05)


def test_groups_have_clusters_of_their_own(both):
    groups = {row.name: row.estimate for row in both[0].by_group}
    assert [groups[name].clusters for name in ("one cluster", "low", "high")] == [1, 29, 30]


def test_words_and_page_say_so(both):
    found, plain = both
    assert "in 60 clusters" in found.methods
    assert "simulated in the same clusters" in found.methods
    assert "480 rows in 60 clusters" in " ".join(found.html().split())
    assert "clusters" not in plain.methods
    assert set(found.cautions) - set(plain.cautions) == {
        "Group one cluster is a single cluster; its rows are treated as independent, so the interval does "
        "not include variation between clusters."
    }
    assert calibrant.Assessment.from_json(found.to_json()).estimate == found.estimate


def test_few_clusters_are_worth_a_warning(rows):
    y, p, cluster = rows
    found = calibrant.assess(y, p, cluster=cluster % 12, rng=0)
    assert "There are only 12 clusters: how much they differ is itself uncertain." in found.cautions


@pytest.mark.full
def test_classes_are_assessed_too(rows):
    y, p, cluster = rows
    scores = np.column_stack([1 - p, 0.6 * p, 0.4 * p])
    found = calibrant.assess(np.where(y, 1 + (p > 0.5), 0), scores, cluster=cluster, rng=0)
    assert [row.estimate.clusters for row in found.by_class] == [60] * 3
    assert found.estimates["classwise"].clusters == 60
    assert len(found.curves["classwise"]) == 3


@pytest.mark.usefixtures("without_reference_estimators")
def test_classes_whose_effective_sizes_differ_are_assessed_together():
    y, score, weight, _, cluster = alone(150, "weights", matrix=True)
    found = calibrant.assess(y, score, notion="classwise", cluster=cluster, sample_weight=weight, rng=7)
    curves = found.curves["classwise"].values()
    assert len({round(curve.n, 9) for curve in curves}) == 1
    sizes = {round(float(np.nanmax(curve.n_eff)), 3) for curve in curves}
    assert len(sizes) == 3
    assert found.recalibration.after.value == pytest.approx(found.recalibration.before, abs=0.1)


# Groups by themselves


def hospitals(clusters=1, shift=0.3, rows=500):
    """Four groups: three calibrated hospitals, and one of some hospitals with scores that are too low."""
    rng = np.random.default_rng(5)
    group = np.repeat(np.arange(4), rows)
    score = rng.beta(1.4, 8, 4 * rows)
    y = rng.random(4 * rows) < np.clip(score + shift * (group == 3), 0, 1)
    return y, score, group, np.where(group == 3, 3 + np.arange(4 * rows) % clusters, group)


@pytest.mark.usefixtures("without_reference_estimators")
def test_the_rows_of_a_group_that_is_one_cluster_are_treated_as_independent():
    y, score, group, hospital = hospitals()
    found = calibrant.assess(y, score, groups=group, cluster=hospital, rng=0)
    row = found.by_group[0]
    assert row.name == "3"
    assert row.off(0.95)
    assert row.estimate.low < abs(row.observed - row.expected) / row.estimate.n < row.estimate.high
    assert "Calibration is rejected for 1 of 4 groups: group 3" in found.summary
    printed = " ".join(str(row.estimate).split())
    assert "500 rows in 1 cluster All rows belong to a single cluster; they are treated as" in printed
    for wrapped in ("\n".join(found.cautions), found.html(), str(found)):
        text = " ".join(wrapped.split())
        assert "Each of the groups 3, " in text
        assert "is a single cluster; its rows are treated as independent" in text


def alone(rows, weighted, matrix):
    """Scores, labels, weights, groups and clusters; the first group is one cluster, the second has three."""
    rng = np.random.default_rng(rows)
    group = rng.permutation(np.arange(rows) % 3)
    several, many = 1 + rng.integers(3, size=rows), rng.integers(4, 30, rows)
    cluster = np.select([group == 0, group == 1], [0, several], many)
    if matrix:
        score = rng.dirichlet(np.ones(3), rows)
        y = (rng.random((rows, 1)) > score.cumsum(axis=1)).sum(axis=1) % 3
    else:
        score = rng.random(rows).round(2)
        y = (rng.random(rows) < score**1.5).astype(int)
    weight = {"counts": rng.integers(1, 4, rows), "weights": rng.random(rows) + 0.2}.get(weighted)
    return y, score, weight, group, cluster


@pytest.mark.full
@pytest.mark.parametrize("weighted", ["none", "counts", "weights"])
@pytest.mark.parametrize("notion", ["binary", "confidence", "classwise"])
@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.usefixtures("without_reference_estimators")
def test_the_oe_ratio_of_a_group_is_that_of_loops_over_its_rows(notion, weighted, clustered):
    y, score, weight, group, cluster = alone(240, weighted, matrix=notion != "binary")
    options = {"notion": notion, "rng": 7, "labels": [0, 1, 2] if score.ndim == 2 else [0, 1]}
    options |= {"cluster": cluster} if clustered else {}
    found = calibrant.assess(y, score, groups=group, **weighing(weight), **options)
    for row in found.by_group:
        if notion == "classwise":
            assert row.ratio is None
            continue
        own = group == int(row.name)
        p, right = (score, y) if notion == "binary" else (score.max(axis=1), score.argmax(axis=1) == y)
        w = np.ones(own.sum()) if weight is None else weight[own]
        several = clustered and np.unique(cluster[own]).size > 1
        square = w if weighted == "counts" else w**2
        value, error = oracle.ratio(p[own], right[own], w, square, cluster[own] if several else None)
        share = (1 + row.estimate.level) / 2
        assert row.estimate.level == pytest.approx(1 - 0.05 / 3)  # all intervals hold together
        size = np.bincount(cluster[own], w)
        deviate = student.ppf(share, size.sum() ** 2 / (size**2).sum() - 1) if several else norm.ppf(share)
        assert row.ratio.value == pytest.approx(value)
        assert row.ratio.low == pytest.approx(value * np.exp(-deviate * error))
        most = w.sum() / (w @ p[own])  # if all outcomes were positive
        assert row.ratio.high == pytest.approx(min(value * np.exp(deviate * error), most))


@pytest.mark.full
@pytest.mark.parametrize(("clusters", "tested"), [(2, False), (6, False), (8, True)])
@pytest.mark.usefixtures("without_reference_estimators")
def test_groups_with_too_few_clusters_to_be_tested_are_named(clusters, tested):
    y, score, group, hospital = hospitals(clusters)
    found = calibrant.assess(y, score, groups=group, cluster=hospital, rng=0)
    row = found.by_group[0]
    # The signs of all clusters can be turned in 2^k ways, of which two leave the evidence as it is.
    assert row.estimate.p_value == row.estimate.p_floor == 2.0 ** (1 - clusters)
    assert row.estimate.n_resamples is None
    assert row.off(0.95) == tested
    text = f"at level 0.95 whatever the data: group 3 ({clusters} clusters)."
    assert any(text in note for note in found.cautions) != tested
    assert ("1 group had too few clusters to be tested." in found.summary) != tested
    assert calibrant.Assessment.from_json(found.to_json()).summary == found.summary

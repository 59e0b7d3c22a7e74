"""Assessments of rows that belong together."""

import numpy as np
import pytest

import calibrant


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


def test_every_figure_allows_for_clusters(rows, both):
    y, p, cluster = rows
    found, plain = both
    assert found.estimate == calibrant.estimate(y, p, cluster=cluster, rng=0)
    assert {e.clusters for e in (*found.estimates.values(), *found.rulers.values())} == {60}
    for name in ("balance", "accuracy"):
        one, other = getattr(found, name), getattr(plain, name)
        assert (one.score, one.frequency) == (other.score, other.frequency)
        assert one.high - one.low > 1.5 * (other.high - other.low)
    one, other = found.curve, plain.curve
    assert np.nanmean(one.high - one.low) > 1.15 * np.nanmean(other.high - other.low)
    assert one.at(0.5).n_eff < other.at(0.5).n_eff
    assert found.diagram.frequency == pytest.approx(plain.diagram.frequency)
    assert np.all(found.diagram.high - found.diagram.low > plain.diagram.high - plain.diagram.low)
    assert found.digest != plain.digest
    assert found.n == plain.n == 480


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
    # One cluster tells next to nothing.
    assert groups["one cluster"].p_value == 1
    assert groups["one cluster"].high > 0.4


def test_words_and_page_say_so(both):
    found, plain = both
    assert "in 60 clusters" in found.methods
    assert "simulated in the same clusters" in found.methods
    assert "480 rows in 60 clusters" in found.html()
    assert "clusters" not in plain.methods
    assert not any("clusters" in text for text in (*found.warnings, *plain.warnings))
    assert calibrant.Assessment.from_json(found.to_json()).estimate == found.estimate


def test_few_clusters_are_worth_a_warning(rows):
    y, p, cluster = rows
    found = calibrant.assess(y, p, cluster=cluster % 12, rng=0)
    assert "There are only 12 clusters: how much they differ is itself uncertain." in found.warnings


def test_classes_are_assessed_too(rows):
    y, p, cluster = rows
    scores = np.column_stack([1 - p, 0.6 * p, 0.4 * p])
    found = calibrant.assess(np.where(y, 1 + (p > 0.5), 0), scores, cluster=cluster, rng=0)
    assert [row.estimate.clusters for row in found.by_class] == [60] * 3
    assert found.estimates["classwise"].clusters == 60
    assert len(found.curves["classwise"]) == 3

"""Audits of segments with clusters of unequal sizes."""

import numpy as np
import pytest
from scipy.special import ndtr

import calibrant

SETTINGS = {"n_resamples": 999}


def clustered(sizes, correlation=0.2, seed=0):
    """Return calibrated rows, columns that are constant in clusters and cross them, and the clusters."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(len(sizes)), sizes)
    score, of_cluster = rng.beta(1.3, 1.7, cluster.size), rng.normal(size=len(sizes))[cluster]
    effect = np.sqrt(correlation) * of_cluster + np.sqrt(1 - correlation) * rng.normal(size=cluster.size)
    columns = {"site": rng.integers(0, 3, len(sizes))[cluster], "sex": rng.integers(0, 2, cluster.size)}
    return ndtr(effect) < score, score, columns, cluster


def keyed(audit):
    return {each.name: each for each in audit.segments}


def test_a_dominating_cluster_is_one_observation():
    # Outcomes of the large cluster are too frequent, by as much as those of small clusters are off.
    y, score, columns, cluster = clustered([1500] + [25] * 60)
    rng = np.random.default_rng(1)
    large = cluster == 0
    y[large] = rng.random(large.sum()) < ndtr((score[large] - 0.5) * 3 + 0.45)
    columns["site"] = np.where(large, 0, 1 + cluster % 2)
    audit = calibrant.audit(y, score, columns, cluster=cluster, **SETTINGS)
    site = keyed(audit)["site = 0"]
    assert site.gap.value > 0.1
    assert site.p_value > 0.05
    independent = keyed(calibrant.audit(y, score, columns, **SETTINGS))["site = 0"]
    assert independent.p_value < 0.01


def test_a_segment_that_is_clearly_off_is_found_across_clusters():
    y, score, columns, cluster = clustered([300, 200, 100] + [40] * 57, correlation=0.02)
    off = columns["sex"] == 1
    y[off] = np.random.default_rng(2).random(off.sum()) < np.minimum(score[off] + 0.2, 1)
    audit = calibrant.audit(y, score, columns, cluster=cluster, **SETTINGS)
    sex = keyed(audit)["sex = 1"]
    assert sex.p_value < 0.01
    assert sex.gap.low > 0.05
    assert sex.p_difference < 0.01


def test_few_clusters_widen_the_intervals_of_all_segments():
    widths = []
    for number in (4, 12, 96):
        y, score, columns, _ = clustered([30] * 96, correlation=0.0)
        audit = calibrant.audit(y, score, columns, cluster=np.arange(len(y)) % number, **SETTINGS)
        widths.append([each.gap.high - each.gap.low for each in keyed(audit).values()])
    assert np.mean(widths[0]) > np.mean(widths[1]) > np.mean(widths[2])


def test_fewer_effective_clusters_than_were_measured_are_a_caution():
    y, score, columns, cluster = clustered([1500] + [25] * 60)
    (caution,) = calibrant.audit(y, score, columns, cluster=cluster, **SETTINGS).cautions
    assert caution.startswith("The clusters are worth 3.9 of equal size.")
    y, score, columns, cluster = clustered([50] * 12)
    assert calibrant.audit(y, score, columns, cluster=cluster, **SETTINGS).cautions == ()


@pytest.mark.parametrize("kind", ["rows", "weights", "counts"])
def test_the_order_of_rows_and_the_names_of_clusters_do_not_matter(kind):
    y, score, columns, cluster = clustered([200, 100] + [20] * 30)
    rng = np.random.default_rng(3)
    order, names = rng.permutation(len(y)), rng.permutation(1000)[: cluster.max() + 1]
    weights = {"rows": {}, "weights": {"sample_weight": rng.random(len(y))}}
    weights["counts"] = {"counts": rng.integers(1, 4, len(y))}
    first = calibrant.audit(y, score, columns, cluster=cluster, **weights[kind], **SETTINGS)
    again = {key: value[order] for key, value in weights[kind].items()}
    columns = {key: value[order] for key, value in columns.items()}
    second = calibrant.audit(
        y[order], score[order], columns, cluster=names[cluster][order], **again, **SETTINGS
    )
    for name, each in keyed(first).items():
        other = keyed(second)[name]
        assert each.gap == pytest.approx(other.gap)
        assert (each.p_value, each.p_difference) == (other.p_value, other.p_difference)


def test_counts_are_repeated_rows():
    y, score, columns, cluster = clustered([100, 50] + [10] * 30)
    counts = np.random.default_rng(4).integers(1, 4, len(y))
    repeated = np.repeat(np.arange(len(y)), counts)
    columns_of = {key: value[repeated] for key, value in columns.items()}
    once = calibrant.audit(y, score, columns, counts=counts, cluster=cluster, **SETTINGS)
    rows = calibrant.audit(y[repeated], score[repeated], columns_of, cluster=cluster[repeated], **SETTINGS)
    assert once.correlation == pytest.approx(rows.correlation)
    for name, each in keyed(once).items():
        assert each.gap == pytest.approx(keyed(rows)[name].gap)


def test_clusters_of_one_row_leave_the_error_rate_as_it_is():
    y, score, columns, _ = clustered([1] * 2000)
    alone, single = (
        calibrant.audit(y, score, columns, cluster=cluster, **SETTINGS) for cluster in (None, np.arange(2000))
    )
    assert single.correlation == 0
    for name, each in keyed(alone).items():
        assert each.gap == pytest.approx(keyed(single)[name].gap, abs=0.01)

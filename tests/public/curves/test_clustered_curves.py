"""Curves, diagrams, local errors and calibrators of rows that belong together."""

import numpy as np
import pytest

import calibrant


@pytest.fixture(scope="module")
def rows():
    """Sixty questions with one score and eight answers that correlate."""
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(60), 8)
    p = rng.uniform(0.05, 0.95, 60)[cluster]
    return rng.random(480) < rng.beta(2 * p, 2 - 2 * p)[8 * cluster], p, cluster


def width(curve):
    return np.nanmean(curve.high - curve.low)


@pytest.mark.parametrize(("band", "factor"), [("pointwise", 1.3), ("simultaneous", 1.24)])
def test_the_band_allows_for_clusters(rows, band, factor):
    y, p, cluster = rows
    alone, together = (calibrant.reliability_curve(y, p, band=band, cluster=c) for c in (None, cluster))
    assert width(together) > factor * width(alone)
    assert together.n == alone.n == 480
    assert together.error == calibrant.ece(y, p, cluster=cluster)
    shuffled = np.random.default_rng(1).permutation(480)
    other = calibrant.reliability_curve(y[shuffled], p[shuffled], band=band, cluster=100 - cluster[shuffled])
    assert other.high == pytest.approx(together.high, abs=1e-9, nan_ok=True)


def test_the_page_draws_the_curve_that_is_asked_for(rows):
    y, p, cluster = rows
    found = calibrant.assess(y, p, cluster=cluster, rng=0)
    curve = calibrant.reliability_curve(y, p, cluster=cluster)
    diagram = calibrant.reliability_diagram(y, p, binning=found.diagram.estimator, cluster=cluster)
    np.testing.assert_array_equal(found.curve.value, curve.value)
    np.testing.assert_array_equal(found.curve.high, curve.high)
    np.testing.assert_array_equal(found.diagram.low, diagram.low)


@pytest.mark.full
def test_results_tell_the_number_of_clusters(rows):
    y, p, cluster = rows
    thresholds = {"thresholds": [0.2, 0.5]}
    for function, arguments, options in (
        (calibrant.reliability_curve, (), {}),
        (calibrant.reliability_curve, (), {"method": "density"}),
        (calibrant.reliability_diagram, (), {}),
        (calibrant.regret, (0.2,), {}),
        (calibrant.best_threshold, (0.2,), {}),
        (calibrant.regret_curve, (), thresholds),
    ):
        alone, together = (function(y, p, *arguments, **options, cluster=c) for c in (None, cluster))
        assert (alone.clusters, together.clusters) == (None, 60)
        for found, size in ((alone, "480 rows"), (together, "480 rows in 60 clusters")):
            data = next(line for line in str(found).splitlines() if line.startswith("data "))
            assert data.removeprefix("data").strip() == size
            assert str(type(found).from_dict(found.to_dict())) == str(found)


def test_clusters_of_one_row_change_nothing(rows):
    y, p, _ = rows
    for ask in (calibrant.reliability_curve, calibrant.reliability_diagram):
        alone, together = ask(y, p), ask(y, p, cluster=np.arange(480))
        np.testing.assert_array_equal(alone.low, together.low)
    maps = [calibrant.Calibrator().fit(p, y, cluster=c) for c in (None, np.arange(480))]
    assert maps[0].to_json() == maps[1].to_json()


def test_every_class_has_an_effect_of_its_own():
    rng = np.random.default_rng(3)
    cluster = np.repeat(np.arange(50), 6)
    score = rng.dirichlet(np.ones(3), 50)[cluster]
    y = rng.integers(0, 3, 50)[cluster]
    # The first class is one for all rows of a cluster, and the others are drawn anew.
    y = np.where(y == 0, 0, rng.integers(1, 3, 300))
    options = {"notion": "classwise", "n_bins": 5}
    alone, together = (calibrant.reliability_diagram(y, score, cluster=c, **options) for c in (None, cluster))
    wider = [
        np.nanmean(together[k].high - together[k].low) / np.nanmean(alone[k].high - alone[k].low)
        for k in range(3)
    ]
    assert wider[0] > 1.2 * max(wider[1:])


def test_the_curve_by_density_is_the_same_and_resamples_clusters(rows):
    y, p, cluster = rows
    options = {"method": "density", "n_boot": 0}
    alone, together = (calibrant.reliability_curve(y, p, cluster=c, **options) for c in (None, cluster))
    np.testing.assert_array_equal(alone.value, together.value)
    assert width(together) > 1.3 * width(alone)
    options |= {"n_boot": 200, "band": "bootstrap", "rng": 0}
    alone, together = (calibrant.reliability_curve(y, p, cluster=c, **options) for c in (None, cluster))
    assert 1.5 < width(together) / width(alone) < 3
    # Of clusters of equal rows it is the bootstrap of the clusters, which are drawn in another order.
    options["bandwidth"] = 0.15
    one = calibrant.reliability_curve(y[::8], p[::8], **options)
    copies = calibrant.reliability_curve(np.repeat(y[::8], 8), p, cluster=cluster, **options)
    assert width(copies) == pytest.approx(width(one), rel=0.1)


def test_counts_in_clusters_are_resampled_as_rows(rows):
    y, p, cluster = rows
    options = {"method": "density", "n_boot": 50, "band": "bootstrap", "rng": 0}
    each = calibrant.reliability_curve(
        np.repeat(y, 2), np.repeat(p, 2), cluster=np.repeat(cluster, 2), **options
    )
    counted = calibrant.reliability_curve(y, p, counts=np.full(480, 2), cluster=cluster, **options)
    assert counted.low == pytest.approx(each.low, abs=1e-9, nan_ok=True)


def test_local_errors_are_those_of_the_curve(rows):
    y, p, cluster = rows
    curve = calibrant.reliability_curve(y, p, cluster=cluster)
    assert calibrant.lce(y, p, 0.4, cluster=cluster) == pytest.approx(float(curve.at(0.4).value - 0.4))


@pytest.mark.parametrize("method", ["temperature", "logistic", "beta", "isotonic", "histogram", "auto"])
def test_maps_of_one_score(rows, method):
    y, p, cluster = rows
    p, new = np.sqrt(p), np.linspace(0.3, 0.9, 9)
    alone, together = (calibrant.Calibrator(method).fit(p, y, cluster=c) for c in (None, cluster))
    same = alone.predict_proba(new) == pytest.approx(together.predict_proba(new), abs=1e-12)
    assert same == (method != "auto")
    # With fewer rows "auto" stays closer to the scores.
    if method == "auto":
        away = [np.abs(each.predict_proba(new) - new).mean() for each in (alone, together)]
        assert away[1] < away[0]
    sizes = [np.subtract(*each.predict_interval(new)[::-1]).mean() for each in (alone, together)]
    assert sizes[1] > 1.02 * sizes[0]
    assert together.n_ == 480


def test_maps_of_several_classes_shrink_with_clusters():
    rng = np.random.default_rng(2)
    cluster = np.repeat(np.arange(60), 5)
    score = rng.dirichlet(np.ones(3), 60)[cluster]
    true = (rng.random((60, 1)) > score[::5].cumsum(axis=1)).sum(axis=1).clip(0, 2)[cluster]
    alone, together = (calibrant.Calibrator().fit(score, true, cluster=c) for c in (None, cluster))
    away = [np.abs(each.predict_proba(score) - score).mean() for each in (alone, together)]
    assert away[1] <= away[0]
    sizes = [np.subtract(*each.predict_interval(score)[::-1]).mean() for each in (alone, together)]
    assert sizes[1] > sizes[0]
    maps = [calibrant.Calibrator("vector").fit(score, true, cluster=c) for c in (None, cluster)]
    np.testing.assert_array_equal(*(each.predict_proba(score) for each in maps))


def test_sums_and_several_scores_at_a_time_take_no_clusters(rows):
    y, p, cluster = rows
    sketch = calibrant.Sketch().update(y, p)
    for ask in (calibrant.reliability_curve, calibrant.reliability_diagram):
        with pytest.raises(calibrant.InputError, match="cluster must go with rows"):
            ask(sketch, cluster=cluster)
    with pytest.raises(calibrant.InputError, match="cluster must be as long as y_true"):
        calibrant.reliability_curve(y, p, cluster=cluster[1:])
    with pytest.raises(calibrant.InputError, match="cluster must hold at least two clusters"):
        calibrant.Calibrator().fit(p, y, cluster=np.zeros(480))

"""Reliability curve, local calibration error and reliability diagram."""

import numpy as np
import pytest
from scipy import stats

import calibrant
from calibrant import Binned, Sketch
from calibrant.curves import ByClass, bins_of, curve_of, diagram_of, each_problem, histogram_of
from calibrant.curves.band import clopper_pearson, wilson
from calibrant.inputs import predictions
from calibrant.tasks.notions import get_notion
from calibrant.tasks.task import CalibrationTask
from oracles import binned as oracle


def data(n=1000, seed=0, power=1.6):
    rng = np.random.default_rng(seed)
    score = rng.random(n)
    return (rng.random(n) < score**power).astype(int), score


def matrix(n=600, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.dirichlet(np.ones(classes), n)
    labels = (rng.random((n, 1)) > np.cumsum(scores, axis=1)).sum(axis=1).clip(0, classes - 1)
    return labels, scores


def test_large_samples_give_the_curve_of_small_ones():
    labels, score = data(70_000)
    large = calibrant.reliability_curve(labels, score, n_boot=30, rng=0, bandwidth=0.05, method="density")
    plain = calibrant.Density(0.05).fit(calibrant.score_data.Sample(score, labels.astype(bool)))
    np.testing.assert_allclose(large.point, plain.frequency, atol=1e-6)
    width = np.nanmedian(large.high - large.low)
    small = calibrant.reliability_curve(
        labels[:60_000], score[:60_000], n_boot=30, rng=0, bandwidth=0.05, method="density"
    )
    assert width == pytest.approx(np.nanmedian(small.high - small.low), rel=0.25)


def test_classwise_is_one_result_for_each_class():
    labels, scores = matrix()
    names = ["cat", "dog", "eel"]
    text = np.array(names)[labels]
    curves = calibrant.reliability_curve(
        text, scores, notion="classwise", n_boot=5, rng=0, labels=names, method="density"
    )
    assert isinstance(curves, ByClass)
    assert list(curves) == names
    one = calibrant.reliability_curve(
        text, scores, notion="binary", pos_label="dog", n_boot=0, labels=names, method="density"
    )
    np.testing.assert_allclose(curves["dog"].point, one.point, atol=1e-12)
    assert one.label == "dog"
    local = calibrant.lce(text, scores, [0.3, 0.6], notion="classwise", labels=names, method="density")
    np.testing.assert_allclose(local[names.index("dog")], one.at([0.3, 0.6]).value - [0.3, 0.6])
    assert repr(curves) == "ByClass(ReliabilityCurve of 'cat', 'dog', 'eel')"
    assert "classwise, class dog\n" in str(curves["dog"])
    assert str(curves).splitlines()[1].startswith("class dog  calibration error 0.")
    assert "ECE" in repr(one)


# --- one code path --------------------------------------------------------------------------------------


def test_each_method_takes_its_own_options_and_no_others():
    labels, score = data(200)
    task = CalibrationTask.of(predictions(labels, score), get_notion("binary"))
    by_posterior, by_density = (curve_of(task, method=name, n_boot=0) for name in ("bayes", "density"))
    assert (by_posterior.method, by_posterior.notion, by_posterior.label) == ("bayes", "binary", 1)
    assert (by_density.method, by_density.notion, by_density.label) == ("density", "binary", 1)
    assert (by_posterior.band, by_density.band) == ("pointwise", "corrected")
    for wrong, message in (
        (
            {"kernel": "gaussian"},
            "kernel must be left alone, got 'gaussian'; it goes with method=\"density\"",
        ),
        ({"bandwidth": 0.1}, "bandwidth must be left alone, got 0.1"),
        ({"n_boot": 9}, "n_boot must be left alone, got 9"),
        ({"band": "bootstrap"}, "band must be 'pointwise', 'simultaneous' or None with method='bayes'"),
    ):
        with pytest.raises(ValueError, match=message):
            curve_of(task, **wrong)
        curve_of(task, method="density", **{"n_boot": 2} | wrong)
    with pytest.raises(ValueError, match="band must be 'pointwise', 'corrected', 'bootstrap' or None"):
        curve_of(task, method="density", band="simultaneous")
    with pytest.raises(ValueError, match="method must be one of 'bayes', 'density'"):
        curve_of(task, method="ranks")


@pytest.mark.parametrize("notion", ["binary", "confidence", "classwise"])
def test_every_problem_of_a_question_has_a_result_of_its_own(notion):
    labels, scores = matrix()
    task = CalibrationTask.of(predictions(labels, scores, pos_label=1), get_notion(notion))
    for results in (
        curve_of(task),
        curve_of(task, method="density", n_boot=2),
        each_problem(task, diagram_of),
        each_problem(task, histogram_of),
    ):
        assert isinstance(results, ByClass) == (notion == "classwise")
        for result in results.values() if notion == "classwise" else [results]:
            assert result.notion == notion
            assert result.n == 600
        if notion == "binary":
            assert results.label == 1
    if notion == "classwise":
        assert list(results) == [0, 1, 2] == [result.label for result in results.values()]


# --- diagram ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("binning", ["uniform:10", "adaptive:7", Binned("uniform", 4), "uniform"])
@pytest.mark.parametrize("mapping", [None, "convex"])
@pytest.mark.parametrize("weighing", ["none", "counts"])
def test_diagram_equals_the_loop(binning, mapping, weighing):
    labels, score = data(90)
    weight = None if weighing == "none" else np.arange(90) % 3 + 1
    diagram = calibrant.reliability_diagram(labels, score, binning=binning, mapping=mapping, counts=weight)
    estimator = bins_of(binning, mapping)
    expected = oracle.bins(
        score,
        labels,
        binning=estimator.binning,
        mapping=estimator.mapping,
        n_bins=estimator.n_bins,
        weights=weight,
    )
    np.testing.assert_allclose(diagram.count, [float(mass) for _, mass, _, _ in expected])
    for found, column in ((diagram.score, 2), (diagram.frequency, 3)):
        np.testing.assert_allclose(
            found, [np.nan if row[column] is None else row[column] for row in expected]
        )
    value = calibrant.ece(labels, score, estimator=estimator, counts=weight)
    assert diagram.error == pytest.approx(value)
    assert diagram.estimator == str(estimator)


def test_intervals_equal_those_of_scipy():
    for hits, size in ((0, 5), (3, 10), (7, 7), (50, 200)):
        result = stats.binomtest(hits, size)
        for function, method in ((wilson, "wilson"), (clopper_pearson, "exact")):
            expected = result.proportion_ci(0.9, method=method)
            found = function(np.array(hits / size), np.array(float(size)), 0.9)
            np.testing.assert_allclose(found, [expected.low, expected.high], atol=1e-9)


def test_sketch_of_many_classes_is_small():
    rng = np.random.default_rng(0)
    scores = rng.dirichlet(np.full(100, 0.1), 500)
    sketch = Sketch("classwise", n_classes=100).update(rng.integers(0, 100, 500), scores)
    size = sum(part.nbytes for part in sketch._score_data.sums.parts)
    assert size < 100 * 1400 * 5 * 8 * 1.01
    labels = rng.integers(0, 100, 500)
    expected = calibrant.ece(labels, scores, notion="classwise", estimator="l:10")
    found = Sketch("classwise").update(labels, scores).ece(estimator="l:10")
    assert found == pytest.approx(expected, abs=1e-12)

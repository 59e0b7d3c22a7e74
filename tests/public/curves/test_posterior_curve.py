"""The curve of the posterior: its number, its band, where it answers, and scores that are few."""

import itertools

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

import calibrant
from calibrant import Sketch


def data(n=400, seed=0, power=1.6):
    rng = np.random.default_rng(seed)
    score = rng.random(n)
    return rng.random(n) < score**power, score


def few_values(n=500, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.choice([0.1, 0.25, 0.4, 0.55, 0.7, 0.85, 1.0], n)
    return rng.random(n) < 0.2 + 0.6 * score, score


def matrix(n=500, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.dirichlet(np.ones(classes), n)
    return (rng.random((n, 1)) > np.cumsum(scores**0.7, axis=1)).sum(axis=1).clip(0, classes - 1), scores


def prior_shift(n, rng):
    """Scores of a model that was trained with class weights: far too high, and few of them high."""
    score = expit(rng.normal(-1.8, 2, n))
    return rng.random(n) < score / (score + 43 * (1 - score)), score


# --- the picture and the number --------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.usefixtures("without_reference_estimators")
@pytest.mark.parametrize("notion", ["binary", "confidence", "classwise"])
def test_the_error_of_the_curve_is_the_number(notion):
    labels, scores = matrix()
    options = {"notion": notion} | ({"pos_label": 1} if notion == "binary" else {})
    curve, estimate = (
        f(labels, scores, **options) for f in (calibrant.reliability_curve, calibrant.estimate)
    )
    if notion == "classwise":
        for label, each in curve.items():
            assert each.error == pytest.approx(estimate.by_class[label].value, abs=1e-12)
    else:
        assert curve.error == pytest.approx(estimate.value, abs=1e-12)
        assert curve.error == pytest.approx(calibrant.ece(labels, scores, **options), abs=1e-9)
    shown = calibrant.assess(labels, scores, rng=0, **options).curve
    for mine, theirs in zip(
        *(x.values() if notion == "classwise" else [x] for x in (curve, shown)), strict=True
    ):
        np.testing.assert_array_equal(mine.value, theirs.value)
        assert mine.error == theirs.error


def test_the_curve_finds_the_true_frequency():
    at = np.linspace(0.05, 0.95, 19)
    held = []
    for seed in range(8):
        outcome, score = data(20_000, seed)
        point = calibrant.reliability_curve(outcome, score).at(at)
        assert np.abs(point.value - at**1.6).max() < 0.03
        held.append((point.low < at**1.6) & (at**1.6 < point.high))
    assert np.mean(held) > 0.92
    np.testing.assert_array_equal(calibrant.lce(outcome, score, at), point.value - at)


def test_the_curve_is_even_where_the_gap_is_large():
    outcome, score = prior_shift(10_000, np.random.default_rng(0))
    at = np.linspace(0.05, 0.95, 31)
    truth = at / (at + 43 * (1 - at))
    found = calibrant.reliability_curve(outcome, score).at(at).value
    assert np.abs(found - truth).mean() < 0.006
    assert np.all(np.diff(found) > 0)


@pytest.mark.parametrize("make", [data, few_values])
def test_the_band_holds_the_curve_and_grows_with_the_level(make):
    outcome, score = make()
    bands = [calibrant.reliability_curve(outcome, score, level=level) for level in (0.5, 0.9, 0.95, 0.999)]
    bands.append(calibrant.reliability_curve(outcome, score, level=0.999, band="simultaneous"))
    for curve in bands:
        known = np.isfinite(curve.value)
        low, middle, high = (part[known] for part in (curve.low, curve.value, curve.high))
        assert np.all((low >= 0) & (low <= middle) & (middle <= high) & (high <= 1))
        np.testing.assert_array_equal(np.isnan(curve.low), ~known)
    for narrow, wide in itertools.pairwise(bands):
        np.testing.assert_array_equal(narrow.value, wide.value)
        assert not np.any(narrow.low < wide.low - 1e-12)
        assert not np.any(narrow.high > wide.high + 1e-12)
    assert calibrant.reliability_curve(outcome, score, band=None).low is None


def test_the_band_covers_where_class_weights_left_a_thin_tail():
    rng, at = np.random.default_rng(0), np.array([0.5, 0.9, 0.97])
    truth = at / (at + 43 * (1 - at))
    inside = []
    for _ in range(20):  # benchmarks/band.py has many
        point = calibrant.reliability_curve(*prior_shift(10_000, rng)).at(at)
        inside.append((point.low <= truth) & (truth <= point.high))
    assert np.all(np.mean(inside, axis=0) >= 0.85)


@pytest.mark.full
def test_a_simultaneous_band_holds_the_whole_curve_and_a_pointwise_one_does_not():
    held = {"pointwise": 0, "simultaneous": 0}
    for seed in range(20):
        outcome, score = data(2000, seed, power=2)
        for band in held:
            curve = calibrant.reliability_curve(outcome, score, band=band)
            held[band] += not np.any((curve.low > curve.score**2) | (curve.high < curve.score**2))
    assert held["simultaneous"] >= 18
    assert held["pointwise"] < 18


# --- where it answers ------------------------------------------------------------------------------


def test_it_answers_in_a_tail_of_a_few_rows_among_many():
    rng = np.random.default_rng(0)
    score = np.concatenate([rng.beta(1, 30, 280_000), rng.uniform(0.93, 0.97, 48)])
    outcome = rng.random(score.size) < score
    curve = calibrant.reliability_curve(outcome, score)
    point = curve.at(0.95)
    assert point.low < 0.95 < point.high
    assert 20 < point.n_eff < 60
    assert point.high - point.low < 0.3
    assert np.isnan(curve.at(0.8).value)
    assert np.isfinite(curve.at([score.min(), score.max(), 0.0]).value).all()


def test_it_goes_on_to_the_last_row():
    rng = np.random.default_rng(0)
    score = np.sort(rng.beta(0.3, 12, 200_000))
    curve = calibrant.reliability_curve(rng.random(score.size) < score, score)
    assert np.isfinite(curve.at(score[-60:]).value).all()
    assert np.isfinite(curve.at(score[-60:]).low).all()


def test_between_rows_that_lie_apart_there_is_no_answer():
    rng = np.random.default_rng(0)
    score = np.concatenate([rng.uniform(0.1, 0.3, 200), rng.uniform(0.6, 0.8, 200)])
    curve = calibrant.reliability_curve(rng.random(400) < score, score)
    near = curve.at([0.1, 0.2, 0.3, 0.35, 0.55, 0.6, 0.8, 0.85])
    assert np.isfinite(near.value).all()
    far = curve.at([0.0, 0.37, 0.45, 0.53, 0.9, 1.0])
    assert np.isnan(far.value).all()
    assert np.isnan(far.low).all()
    assert np.all(far.n_eff == 0)


def test_a_single_row_speaks_as_one():
    outcome, score = data(1000)
    score *= 0.6
    curve = calibrant.reliability_curve(np.append(outcome, True), np.append(score, 0.95))
    point = curve.at(0.95)
    assert point.n_eff == pytest.approx(1)
    assert point.high - point.low >= 0.97


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_few_rows_are_enough(n):
    outcome, score = data(n)
    curve = calibrant.reliability_curve(outcome, score)
    point = curve.at(score)
    assert np.all((point.low <= point.value) & (point.value <= point.high))
    assert np.all(point.high - point.low > 0.3)
    assert "bayes" in repr(curve)
    assert "Bayesian model average" in str(curve)


@pytest.mark.parametrize("outcome", [False, True])
def test_one_class_alone_and_scores_of_zero_and_one(outcome):
    score = np.concatenate([[0.0, 1.0], data(98)[1]])
    curve = calibrant.reliability_curve(np.full(100, outcome), score, pos_label=True, labels=[False, True])
    at = curve.at(np.linspace(0, 1, 11))
    assert np.all((at.low <= outcome) & (outcome <= at.high))
    assert np.all(at.high - at.low < 1)


def test_lower_precision_changes_nothing_to_see():
    outcome, score = data(2000)
    at = np.linspace(0.02, 0.98, 33)
    single, double = (
        calibrant.reliability_curve(outcome, s).at(at) for s in (score.astype(np.float32), score)
    )
    for part in ("value", "low", "high"):
        np.testing.assert_allclose(getattr(single, part), getattr(double, part), atol=2e-3)


# --- rows, sketches, weights -----------------------------------------------------------------------


@pytest.mark.parametrize("make", [data, few_values])
def test_rows_sketches_and_repeated_rows_agree(make):
    outcome, score = make(300)
    times = np.random.default_rng(0).integers(1, 4, 300)
    order = np.random.default_rng(1).permutation(300)
    rows = calibrant.reliability_curve(outcome, score, counts=times)
    others = (
        Sketch("binary").update(outcome, score, counts=times).curve(),
        calibrant.reliability_curve(np.repeat(outcome, times), np.repeat(score, times)),
        calibrant.reliability_curve(outcome[order], score[order], counts=times[order]),
    )
    for other in others:
        np.testing.assert_allclose(other.score, rows.score)
        for part in ("value", "low", "high", "n_eff"):
            np.testing.assert_allclose(getattr(other, part), getattr(rows, part), atol=1e-7, rtol=1e-6)
        assert other.discrete == rows.discrete


def test_importance_weights_have_no_scale_and_count_effectively():
    outcome, score = data(500)
    weight = np.random.default_rng(0).exponential(size=500)
    some, same = (
        calibrant.reliability_curve(outcome, score, sample_weight=w) for w in (weight, 7.3 * weight)
    )
    plain = calibrant.reliability_curve(outcome, score)
    at = np.linspace(0.1, 0.9, 9)
    np.testing.assert_allclose(some.at(at).low, same.at(at).low, atol=1e-9)
    assert np.mean(some.at(at).n_eff) < 0.8 * np.mean(plain.at(at).n_eff)


@pytest.mark.usefixtures("without_reference_estimators")
@pytest.mark.parametrize("notion", ["binary", "classwise"])
def test_rows_that_are_repeated_in_clusters_speak_once(notion):
    outcome, score = data(300)
    once = calibrant.reliability_curve(outcome, score, notion=notion)
    outcome, score, cluster = (np.repeat(each, 4) for each in (outcome, score, np.arange(300)))
    four = calibrant.assess(outcome, score, notion=notion, cluster=cluster, rng=0).curve
    if notion == "classwise":
        once, four = once[True], four[True]
    at = np.linspace(0.2, 0.8, 7)
    expected, found = once.at(at), four.at(at)
    np.testing.assert_allclose(found.n_eff, expected.n_eff, rtol=0.2)
    np.testing.assert_allclose(found.high - found.low, expected.high - expected.low, atol=0.06)


# --- scores that are few ---------------------------------------------------------------------------


def test_few_scores_have_a_point_and_an_interval_each_and_nothing_between():
    outcome, score = few_values()
    curve = calibrant.reliability_curve(outcome, score)
    assert curve.discrete
    values, count = np.unique(score, return_counts=True)
    np.testing.assert_allclose(curve.score, values)
    np.testing.assert_allclose(curve.n_eff, count)
    for k, value in enumerate(values):
        hits = int(outcome[score == value].sum())
        exact = stats.binomtest(hits, int(count[k])).proportion_ci(0.95, "exact")
        point = curve.at(value)
        assert point.low <= exact.low + 1e-9
        assert point.high >= exact.high - 1e-9
        assert point.low <= point.value <= point.high
    between = curve.at([0.0, 0.17, 0.5, 0.99])
    assert np.isnan(between.value).all()
    assert np.isnan(between.low).all()
    assert np.all(between.n_eff == 0)
    assert np.isfinite(curve.at([[0.1, 0.25], [0.4000001, 1.0]]).high).all()
    assert curve.at(0.4).value.shape == ()
    assert len(str(curve).splitlines()) == 7 + 7
    assert np.isnan(calibrant.lce(outcome, score, 0.5))


def test_few_scores_in_single_precision_answer_by_name():
    outcome, score = few_values()
    assert np.isfinite(calibrant.reliability_curve(outcome, score.astype(np.float32)).at(0.7).value)


def test_equal_scores_have_one_point():
    outcome = np.arange(40) % 4 == 0
    point = calibrant.reliability_curve(outcome, np.full(40, 0.5)).at(0.5)
    exact = stats.binomtest(10, 40).proportion_ci(0.95, "exact")
    assert point.low <= exact.low + 1e-9
    assert point.high >= exact.high - 1e-9
    assert point.n_eff == 40

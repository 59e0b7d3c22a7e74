"""The corrected band of a reliability curve."""

import numpy as np
import pytest
from scipy.special import expit, logit

import calibrant
from calibrant import Sketch


def sample(n=60, seed=0, tied=False):
    rng = np.random.default_rng(seed)
    score = np.round(rng.random(n), 1) if tied else rng.beta(0.5, 0.5, n)
    return score, rng.random(n) < score**1.5


def test_counts_are_repetition_and_importance_weights_have_no_scale():
    score, outcome = sample()
    count = np.arange(60) % 4
    weighed = calibrant.reliability_curve(outcome, score, n_boot=0, counts=count, method="density")
    repeated = calibrant.reliability_curve(
        np.repeat(outcome, count), np.repeat(score, count), n_boot=0, method="density"
    )
    np.testing.assert_allclose(weighed.low, repeated.low, atol=1e-9)
    np.testing.assert_allclose(weighed.high, repeated.high, atol=1e-9)
    plain = calibrant.reliability_curve(outcome, score, n_boot=0, method="density")
    equal = calibrant.reliability_curve(
        outcome, score, n_boot=0, sample_weight=np.full(60, 0.3), method="density"
    )
    np.testing.assert_allclose(plain.low, equal.low, atol=1e-6)
    weight = np.random.default_rng(0).exponential(size=60)
    one, two = (
        calibrant.reliability_curve(outcome, score, n_boot=0, sample_weight=w, method="density")
        for w in (weight, 1e-9 * weight)
    )
    np.testing.assert_allclose(one.high, two.high, atol=1e-9)
    few = calibrant.reliability_curve(
        outcome, score, n_boot=0, sample_weight=weight**4, bandwidth=0.1, method="density"
    )
    many = calibrant.reliability_curve(
        outcome, score, n_boot=0, sample_weight=weight, bandwidth=0.1, method="density"
    )
    assert np.nanmean(few.high - few.low) > np.nanmean(many.high - many.low)


def test_more_rows_narrow_the_band_and_a_higher_level_widens_it():
    width = []
    for n in (200, 2000, 20_000):
        score, outcome = sample(n)
        curve = calibrant.reliability_curve(outcome, score, n_boot=0, bandwidth=0.1, method="density")
        width.append(np.nanmean(curve.high - curve.low))
    assert width[0] > 1.5 * width[1] > 2.25 * width[2]
    wide = calibrant.reliability_curve(outcome, score, n_boot=0, bandwidth=0.1, level=0.99, method="density")
    assert np.nanmean(wide.high - wide.low) > 1.2 * width[2]


# --- what it promises ------------------------------------------------------------------------------


@pytest.mark.parametrize("n_boot", [0, 30])
@pytest.mark.parametrize("kernel", ["triweight", "gaussian", "epanechnikov", "cosine"])
@pytest.mark.parametrize("bandwidth", ["silverman", 0.004, 0.5])
def test_the_band_holds_the_curve_wherever_there_is_one(n_boot, kernel, bandwidth):
    score, outcome = sample(150)
    curve = calibrant.reliability_curve(
        outcome, score, kernel=kernel, bandwidth=bandwidth, n_boot=n_boot, rng=0, method="density"
    )
    assert curve.band == "corrected"
    resamples = f", {n_boot} resamples" if n_boot else ""
    assert f"band               corrected{resamples}\n" in str(curve)
    seen = ~np.isnan(curve.value)
    for end in (curve.low, curve.high):
        np.testing.assert_array_equal(np.isnan(end), ~seen)
    assert np.all((curve.low[seen] >= 0) & (curve.high[seen] <= 1))
    assert np.all((curve.low <= curve.value)[seen] & (curve.value <= curve.high)[seen])


def covered(band, n_boot, repeats, quantiles=(0.05, 0.25, 0.75)):
    """Share of samples whose band holds the truth: overconfident scores that crowd at both walls."""
    rng = np.random.default_rng(5)
    at = np.sin(np.pi / 2 * np.array(quantiles)) ** 2
    truth, hits = expit(0.4 * logit(at) + 0.3), np.zeros(at.size)
    for _ in range(repeats):
        score = rng.beta(0.5, 0.5, 500)
        outcome = rng.random(500) < expit(0.4 * logit(score) + 0.3)
        point = calibrant.reliability_curve(
            outcome, score, n_boot=n_boot, band=band, rng=rng, method="density"
        ).at(at)
        hits += (point.low <= truth) & (truth <= point.high)
    return hits / repeats


@pytest.mark.full
def test_the_corrected_band_covers():
    assert covered("corrected", 0, 200).min() > 0.92


def test_the_bootstrap_band_does_not():
    assert covered("bootstrap", 40, 40).min() < 0.7


@pytest.mark.parametrize("outcome", [0, 1])
def test_a_single_class_leaves_one_end_at_its_wall(outcome):
    score = np.random.default_rng(0).random(80)
    curve = calibrant.reliability_curve(np.full(80, outcome), score, n_boot=0, method="density")
    point = curve.at([0.2, 0.5, 0.8])
    wall, other = (point.low, point.high) if outcome == 0 else (point.high, point.low)
    np.testing.assert_allclose(wall, outcome, atol=1e-6)
    assert np.all((np.abs(other - outcome) > 0.03) & (np.abs(other - outcome) < 0.5))


def test_three_rows_that_agree_do_not_settle_it():
    point = calibrant.reliability_curve([1, 1, 1], [0.7, 0.72, 0.74], n_boot=0, method="density").at(0.72)
    assert point.high == 1
    assert 0.1 < point.low < 0.5


def test_where_hardly_a_row_speaks_nothing_is_claimed():
    rng = np.random.default_rng(0)
    score = np.concatenate([rng.uniform(0, 0.2, 300), rng.uniform(0.8, 1, 300)])
    curve = calibrant.reliability_curve(
        rng.random(600) < score, score, bandwidth=0.12, n_boot=0, method="density"
    )
    point = curve.at([0.1, 0.5, 0.9])
    assert point.high[1] - point.low[1] > 2 * (point.high - point.low)[[0, 2]].max()


def test_saturated_scores_are_told_apart_by_rank():
    # Half the scores are within 1e-5 of 1 and right, half within a thousandth and wrong one time in four.
    rng = np.random.default_rng(0)
    near, far = 1 - 1e-5 * rng.random(1000), 1 - 1e-3 * (0.3 + 0.7 * rng.random(1000))
    score = np.concatenate([near, far, rng.random(200)])
    outcome = rng.random(2200) < np.concatenate([np.ones(1000), np.full(1000, 0.75), score[2000:]])
    curve = calibrant.reliability_curve(outcome, score, n_boot=0, method="density")
    point = curve.at([1 - 6e-4, 1.0])
    assert point.low[0] < 0.75 < point.high[0]
    assert point.high[1] == 1


def test_ten_scores_have_a_band_between_them():
    score = np.repeat(np.arange(1, 10) / 10, 400)
    outcome = np.tile(np.arange(400) + 0.5, 9) < 400 * score
    curve = calibrant.reliability_curve(outcome, score, n_boot=0, method="density")
    assert np.nanmax(curve.high - curve.low) < 0.3
    at = np.arange(1, 10) / 10
    point = curve.at(at)
    assert np.all((point.low < at) & (at < point.high))


def test_classwise_and_confidence_have_bands():
    rng = np.random.default_rng(0)
    scores = rng.dirichlet(np.ones(3), 400)
    labels = (rng.random((400, 1)) > np.cumsum(scores, axis=1)).sum(axis=1).clip(0, 2)
    for curve in (
        calibrant.reliability_curve(labels, scores, n_boot=0, method="density"),
        *calibrant.reliability_curve(labels, scores, notion="classwise", n_boot=0, method="density").values(),
        *Sketch("classwise").update(labels, scores).curve(method="density", n_boot=0).values(),
    ):
        seen = curve.n_eff > 20
        assert np.all(curve.high[seen] - curve.low[seen] < 0.6)

"""What holds for every map, whatever it is made of."""

import numpy as np
import pytest

import calibrant
from calibrant import Calibrator, InputError
from exported import OF_ONE_SCORE
from weighing import weighing

GRID = np.concatenate([[0.0, 1e-300, 1e-12, 1e-3], np.linspace(0.01, 0.99, 21), [1 - 1e-12, 1.0]])
# Turning scores and outcomes round turns the answer round; the edges of a histogram lie in other places.
SYMMETRIC = [name for name in OF_ONE_SCORE if name != "histogram"]
INCREASING = ("isotonic", "isotonic-safe", "venn-abers", "beta")


def rows(n=120, seed=0):
    rng = np.random.default_rng(seed)
    score = np.round(rng.random(n), 3)
    return score, (rng.random(n) < 0.1 + 0.8 * score**2).astype(int)


def predicted(method, score, outcome, weight=None, at=GRID, **choices):
    return Calibrator(method, **choices).fit(score, outcome, **weighing(weight)).predict_proba(at)


def hard_cases():
    score = np.random.default_rng(0).random(60)
    certain = np.concatenate([np.zeros(10), np.ones(10)])
    return {
        "no positive": (score, np.zeros(60, int)),
        "no negative": (score, np.ones(60, int)),
        "constant": (np.full(40, 0.3), np.arange(40) % 2),
        "separable": (np.linspace(0.1, 0.9, 40), (np.arange(40) >= 20).astype(int)),
        "some of 0 and 1": (
            np.append(certain, score),
            np.append(np.arange(20) % 3 == 0, score > 0.5).astype(int),
        ),
        "only 0 and 1": (certain, np.append(np.arange(10) < 2, np.arange(10) < 8).astype(int)),
        "certainly wrong": (certain, 1 - (certain > 0.5).astype(int)),
        "anti-ordered": (score, (np.random.default_rng(1).random(60) > score).astype(int)),
        "one row": (np.array([0.3]), np.array([1])),
        "two rows": (np.array([0.3, 0.6]), np.array([1, 0])),
        "next to the walls": (np.array([1e-300, 1e-12, 0.5, 1 - 1e-12, 1.0]), np.array([1, 0, 1, 0, 1])),
    }


@pytest.mark.parametrize("method", OF_ONE_SCORE)
def test_the_order_of_rows_does_not_matter(method):
    score, outcome = rows()
    order = np.random.default_rng(1).permutation(score.size)
    np.testing.assert_allclose(
        predicted(method, score[order], outcome[order]), predicted(method, score, outcome), atol=1e-9
    )


@pytest.mark.parametrize("method", OF_ONE_SCORE)
def test_counts_mean_repetition_and_rows_without_weight_do_not_count(method):
    score, outcome = rows()
    count = np.random.default_rng(1).integers(0, 4, score.size)
    repeated = predicted(method, np.repeat(score, count), np.repeat(outcome, count))
    np.testing.assert_allclose(predicted(method, score, outcome, count), repeated, atol=1e-9)


@pytest.mark.parametrize("method", OF_ONE_SCORE)
def test_the_scale_of_importance_weights_does_not_matter(method):
    score, outcome = rows()
    weight = np.random.default_rng(1).uniform(0.5, 2, score.size)
    np.testing.assert_allclose(
        predicted(method, score, outcome, weight), predicted(method, score, outcome, 1e6 * weight), atol=1e-7
    )


@pytest.mark.parametrize("method", OF_ONE_SCORE)
def test_single_precision_is_taken_at_its_value(method):
    score, outcome = rows()
    single = score.astype(np.float32)
    found, wide = (predicted(method, each, outcome) for each in (single, single.astype(float)))
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, wide, atol=1e-9)


@pytest.mark.parametrize("method", SYMMETRIC)
def test_turning_scores_and_outcomes_round_turns_the_answer_round(method):
    score, outcome = rows()
    at = np.linspace(0.01, 0.99, 30)
    straight = predicted(method, score, outcome, at=at)
    turned = 1 - predicted(method, 1 - score, 1 - outcome, at=1 - at)
    np.testing.assert_allclose(turned, straight, rtol=0, atol=1e-9)


@pytest.mark.full
@pytest.mark.parametrize("case", hard_cases())
@pytest.mark.parametrize("method", OF_ONE_SCORE)
def test_the_answer_is_a_probability_in_every_case(method, case):
    score, outcome = hard_cases()[case]
    calibrator = Calibrator(method).fit(score, outcome)
    found = calibrator.predict_proba(GRID)
    assert ((found >= 0) & (found <= 1)).all()
    if method in INCREASING:
        assert (np.diff(found) >= -1e-12).all()
    for level in (0.5, 0.95):
        low, high = calibrator.predict_interval(GRID, level)
        assert ((low >= 0) & (low <= found) & (found <= high) & (high <= 1)).all()


@pytest.mark.parametrize("method", ["auto", "spline"])
@pytest.mark.parametrize("case", hard_cases())
def test_increasing_on_demand(method, case):
    found = predicted(method, *hard_cases()[case], monotone=True)
    assert (np.diff(found) >= -1e-9).all()


def test_a_map_may_fall_where_the_data_say_so():
    rng = np.random.default_rng(0)
    score = rng.random(3000)
    outcome = rng.random(3000) < 0.2 + 2.4 * (score - 0.5) ** 2
    at = np.array([0.05, 0.5, 0.95])
    free, forced = (
        predicted("auto", score, outcome, at=at),
        predicted("auto", score, outcome, at=at, monotone=True),
    )
    np.testing.assert_allclose(free, [0.686, 0.2, 0.686], atol=0.06)
    assert (np.diff(forced) >= 0).all()
    assert (free == predicted("auto", score, outcome, at=at, monotone=False)).all()


def test_a_map_rises_where_the_data_do_not_object():
    score, outcome = rows(60)
    at = np.linspace(0, 1, 200)
    assert (np.diff(predicted("auto", score, outcome, at=at)) >= -1e-12).all()


@pytest.mark.parametrize("method", [name for name in OF_ONE_SCORE if name not in ("auto", "spline")])
def test_only_what_bends_can_be_told_not_to(method):
    with pytest.raises(InputError, match="monotone must be 'auto'"):
        predicted(method, *rows(10), monotone=True)


def test_with_very_few_rows_the_scores_are_left_nearly_alone():
    # Both outcomes go against the scores; there is next to nothing to learn from them.
    at = np.array([0.1, 0.5, 0.9])
    for score, outcome in (([0.2], [1]), ([0.2, 0.8], [1, 0]), ([0.3, 0.5, 0.7], [1, 1, 0])):
        np.testing.assert_allclose(predicted("auto", score, outcome, at=at), at, atol=0.02)


@pytest.mark.parametrize("n", [20, 50, 100])
def test_calibrated_scores_are_left_nearly_alone(n):
    loss = []
    for seed in range(20):
        rng = np.random.default_rng([seed, n])
        score = rng.random(n)
        at = np.linspace(0.05, 0.95, 19)
        found = predicted("auto", score, rng.random(n) < score, at=at)
        loss.append((at * np.log(at / found) + (1 - at) * np.log((1 - at) / (1 - found))).mean())
    # A temperature alone costs half a row's worth, 0.5 / n, and a shift and a slope twice that.
    assert np.mean(loss) < 0.4 / n


def test_the_interval_is_the_band_of_the_curve():
    rng = np.random.default_rng(3)
    score = rng.beta(0.7, 0.7, 500)
    outcome = rng.random(500) < score**1.5
    for level in (0.8, 0.95):
        curve = calibrant.reliability_curve(outcome, score, level=level)
        known = np.isfinite(curve.low)
        at = curve.score[known]
        calibrator = Calibrator(monotone=False).fit(score, outcome)
        low, high = calibrator.predict_interval(at, level)
        np.testing.assert_allclose(low, curve.low[known], atol=1e-9)
        np.testing.assert_allclose(high, curve.high[known], atol=1e-9)
        np.testing.assert_allclose(calibrator.predict_proba(at), curve.value[known], atol=1e-9)


def test_the_interval_is_the_band_of_the_curve_where_scores_are_few():
    score = np.repeat([0.1, 0.4, 0.8], 100)
    outcome = np.concatenate([np.arange(100) < k for k in (20, 40, 60)])
    curve = calibrant.reliability_curve(outcome, score)
    low, high = Calibrator(monotone=False).fit(score, outcome).predict_interval([0.1, 0.4, 0.8])
    point = curve.at([0.1, 0.4, 0.8])
    np.testing.assert_allclose([low, high], [point.low, point.high], atol=1e-9)


@pytest.mark.parametrize("method", ["auto", "isotonic"])
def test_intervals_are_nested_in_the_level(method):
    calibrator = Calibrator(method).fit(*rows())
    before = calibrator.predict_interval(GRID, 0.3)
    for level in (0.5, 0.8, 0.95, 0.99):
        low, high = calibrator.predict_interval(GRID, level)
        assert (low <= before[0] + 1e-9).all()
        assert (high >= before[1] - 1e-9).all()
        before = low, high


def test_more_rows_narrow_the_interval():
    widths = []
    for n in (100, 1000, 10_000):
        rng = np.random.default_rng(n)
        score = rng.random(n)
        low, high = (
            Calibrator().fit(score, rng.random(n) < score**2).predict_interval(np.linspace(0.1, 0.9, 9))
        )
        widths.append((high - low).mean())
    assert widths[0] > 1.5 * widths[1] > 2 * widths[2]


def test_log_odds_are_taken_for_what_they_stand_for():
    score, outcome = rows()
    score = np.clip(score, 0.001, 0.999)
    odds = np.log(score / (1 - score))
    found = Calibrator(from_logits=True).fit(odds, outcome).predict_proba([-2.0, 0.0, 2.0])
    at = 1 / (1 + np.exp([2.0, 0.0, -2.0]))
    np.testing.assert_allclose(found, predicted("auto", score, outcome, at=at), atol=1e-9)


def test_both_columns_of_two_classes_say_the_same():
    score, outcome = rows()
    calibrator = Calibrator().fit(np.stack([1 - score, score], axis=1), outcome)
    at = np.array([0.2, 0.7])
    found = calibrator.predict_proba(np.stack([1 - at, at], axis=1))
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_allclose(found[:, 1], predicted("auto", score, outcome, at=at), atol=1e-9)
    low, high = calibrator.predict_interval(np.stack([1 - at, at], axis=1))
    np.testing.assert_allclose(low[:, 0], 1 - high[:, 1])
    assert (low <= found).all()
    assert (found <= high).all()


def test_the_class_that_a_vector_is_of_is_named():
    score, outcome = rows()
    names = np.array(["ham", "spam"])[outcome]
    calibrator = Calibrator(pos_label="spam").fit(score, names)
    assert set(calibrator.classes_) == {"ham", "spam"}
    np.testing.assert_allclose(calibrator.predict_proba(GRID), predicted("auto", score, outcome))

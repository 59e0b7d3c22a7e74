"""Statements of the FAQ and of "Coming from R" that are numbers."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit

import calibrant


def overconfident(seed, n, *, slope=0.6):
    rng = np.random.default_rng(seed)
    score = rng.beta(1.3, 1.7, n)
    return (rng.random(n) < expit(slope * logit(score))).astype(int), score


def maximum_likelihood(y, score):
    """Return intercept and slope of the logistic regression on the log-odds, without any prior."""
    x = logit(score)

    def loss(beta):
        z = beta[0] + beta[1] * x
        return np.sum(np.logaddexp(0, z) - y * z)

    return minimize(loss, [0.0, 1.0], method="BFGS", options={"gtol": 1e-8}).x


@pytest.mark.parametrize("n", [200, 2000])
def test_intercept_and_slope_are_those_of_a_logistic_regression_to_three_digits(n):
    y, score = overconfident(0, n)
    fitted = calibrant.Calibrator("logistic").fit(score, y)
    expected = maximum_likelihood(y, score)
    assert fitted.intercept_.item() == pytest.approx(expected[0], rel=1e-3)
    assert fitted.coef_.item() == pytest.approx(expected[1], rel=1e-3)


def test_scores_of_0_and_1_count_in_the_regression():
    y, score = overconfident(0, 500, slope=1.0)
    score[:5], y[:5] = [0, 0, 1, 1, 1], [1, 0, 1, 1, 1]
    slope = calibrant.Calibrator("logistic").fit(score, y).coef_.item()
    assert slope < maximum_likelihood(y[5:], score[5:])[1] - 0.02


def test_seed_changes_the_test_and_not_the_interval():
    y, score = overconfident(1, 400, slope=0.85)
    first, second = (calibrant.estimate(y, score, rng=seed) for seed in (0, 1))
    assert (first.value, first.low, first.high) == (second.value, second.low, second.high)
    assert first.null.mean != second.null.mean


def test_default_thresholds_are_hundredths():
    y, score = overconfident(1, 400)
    np.testing.assert_allclose(calibrant.regret_curve(y, score).thresholds, np.arange(1, 100) / 100)


def test_rare_outcomes_need_their_own_thresholds():
    rng = np.random.default_rng(0)
    score = rng.beta(0.5, 99.5, 10_000)
    y = (rng.random(10_000) < score).astype(int)
    low = calibrant.net_benefit(y, score, [0.002, 0.005]).model
    assert np.all(
        np.asarray(low.value) > np.asarray(calibrant.net_benefit(y, score, [0.002, 0.005]).treat_all.value)
    )


@pytest.mark.parametrize(
    ("n", "decimals", "least", "most"),
    [(1000, 9, 0.045, 0.065), (10_000, 9, 0.014, 0.022), (1000, 2, 0.045, 0.065), (1000, 4, 0.045, 0.065)],
)
def test_width_of_intervals(n, decimals, least, most):
    widths = []
    for seed in range(6):
        y, score = overconfident(seed, n, slope=1.0)
        found = calibrant.estimate(y, score.round(decimals))
        widths.append(found.high - found.low)
    assert least < np.mean(widths) < most


def test_intervals_of_a_lookup_table_are_wider():
    widths = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        score = rng.choice(rng.beta(1.3, 1.7, 100).round(4), 1000)
        found = calibrant.estimate(rng.random(1000) < score, score)
        widths.append(found.high - found.low)
    assert 0.07 < np.mean(widths) < 0.1

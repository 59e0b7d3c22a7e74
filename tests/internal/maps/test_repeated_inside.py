"""Scores that repeat, and deviate each by itself from a smooth map."""

import numpy as np
import pytest

from calibrant import Calibrator
from calibrant.maps.binary import BinaryProblem, average_or_identity
from calibrant.posterior.log_odds.model_average import (
    SCORE_CORRELATIONS,
    ScoreDeviations,
    divide_by_design_effect,
)
from calibrant.score_data import Cells, Residuals, Sample
from oracles.maps import beta_binomial


def logit(p):
    return np.log(p) - np.log1p(-p)


def expit(x):
    return 1 / (1 + np.exp(-x))


def lookup_table(n=3000, sd=1.0, seed=0, categories=200):
    """Draw scores of categories, rows, and the true probability of each category."""
    rng = np.random.default_rng(seed)
    score = np.unique(np.round(rng.beta(1, 2, categories), 5).clip(0.001, 0.999))
    truth = expit(logit(score) + sd * rng.standard_normal(score.size))
    row = rng.integers(0, score.size, n)
    return score, truth, score[row], (rng.random(n) < truth[row]).astype(int)


def problem(score, outcome):
    return BinaryProblem(Sample(score, outcome.astype(bool)))


def test_effects_are_those_of_numerical_integrals():
    successes, trials = np.array([0, 3, 7]), np.array([4, 5, 9])
    score = np.repeat([0.2, 0.5, 0.6], trials)
    outcome = np.concatenate([np.arange(n) < k for k, n in zip(successes, trials, strict=True)])
    residuals = Residuals.of(Sample(score, outcome))
    held = residuals[residuals.mass > 0]
    average = np.array([0.3, 0.4, 0.7])
    effects = ScoreDeviations.of(held, average)
    likelihood, mean = [], []
    plain = np.prod(average**successes * (1 - average) ** (trials - successes))
    for correlation in SCORE_CORRELATIONS:
        found = [beta_binomial(*each, correlation) for each in zip(successes, trials, average, strict=True)]
        likelihood.append(np.prod([value for value, _ in found]))
        mean.append([value for _, value in found])
    weight = np.array(likelihood) / sum(likelihood)
    assert effects.log_bayes_factor == pytest.approx(np.log(np.mean(likelihood) / plain), abs=1e-4)
    assert effects.correlation == pytest.approx(weight @ SCORE_CORRELATIONS, rel=1e-4)
    np.testing.assert_allclose(effects.probability, weight @ np.array(mean), rtol=1e-4)


def test_single_rows_tell_nothing_of_deviations():
    residuals = Residuals.of(Sample(np.array([0.2, 0.5, 0.9]), np.array([True, False, True])))
    effects = ScoreDeviations.of(residuals, residuals.score)
    assert effects.log_bayes_factor == pytest.approx(0, abs=1e-9)


def test_correlated_rows_count_less():
    residuals = Residuals.of(Sample(np.repeat([0.2, 0.6], [11, 1]), np.arange(12) < 5))
    held = residuals[residuals.mass > 0]
    rows = divide_by_design_effect(held, 0.1)
    np.testing.assert_allclose(rows.mass, [11 / 2, 1])
    np.testing.assert_allclose(rows.frequency, held.frequency)


@pytest.mark.parametrize("low", [0.0, 0.5])
@pytest.mark.parametrize("as_data", [lambda sample: sample, lambda sample: Cells.of(sample)])
def test_continuous_and_rounded_scores_do_not_repeat(low, as_data):
    # Many scores share a cell of the layout without being equal.
    rng = np.random.default_rng(0)
    score = low + 0.02 * rng.random(6000)
    continuous = BinaryProblem(as_data(Sample(score, rng.random(6000) < score)))
    assert continuous.observed.mass.size < 3000
    assert not continuous.repeated.any()
    rounded = BinaryProblem(as_data(Sample(np.round(score, 4), rng.random(6000) < score)))
    assert not rounded.repeated.any()


def test_many_continuous_scores_do_not_repeat():
    rng = np.random.default_rng(0)
    score = 0.5 + 0.02 * rng.random(12_000)
    assert not problem(score, rng.random(12_000) < score).repeated.any()


def test_a_cell_of_two_scores_has_no_deviation():
    rng = np.random.default_rng(0)
    score = rng.choice(np.append(np.arange(1, 60) / 62, 0.5 + 3e-5), 2000)
    found = problem(score, rng.random(2000) < score)
    assert found.observed.mass.size == 59
    assert found.repeated.sum() == 58


@pytest.mark.parametrize("sd", [0.0, 0.02])
def test_without_deviations_the_map_is_the_average(sd):
    score, _, rows, outcome = lookup_table(2000, sd)
    found = problem(rows, outcome)
    assert found.repeated.any()
    expected = average_or_identity(found.observed, found.average).probability(score)
    np.testing.assert_array_equal(Calibrator().fit(rows, outcome).predict_proba(score), expected)

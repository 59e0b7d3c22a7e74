"""Selective prediction by any finite ranking of the rows."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import calibrant


@pytest.fixture(scope="module")
def pairs():
    rng = np.random.default_rng(0)
    ranking = rng.normal(0, 2, 400).round(2)
    return (rng.random(400) < expit(ranking)).astype(int), ranking


def kept(correct, ranking, **options):
    return calibrant.risk_coverage(correct, ranking, notion="correctness", **options)


def same(found, other):
    for name in ("accuracy", "coverage", "low", "high", "band_low", "band_high"):
        np.testing.assert_array_equal(getattr(found, name), getattr(other, name))
    assert (found.aurc, found.e_aurc) == (other.aurc, other.e_aurc)


def test_accuracy_by_a_ranking_is_that_by_its_order(pairs):
    correct, ranking = pairs
    found, probability = kept(correct, ranking), kept(correct, expit(ranking))
    np.testing.assert_array_equal(found.accuracy, probability.accuracy)
    np.testing.assert_array_equal(found.coverage, probability.coverage)
    assert found.aurc.value == pytest.approx(probability.aurc.value, rel=1e-12)
    # The variance of the threshold depends on a curve that is fitted to other scores.
    np.testing.assert_allclose(found.low, probability.low, atol=0.03)
    np.testing.assert_allclose(found.confidence, np.unique(ranking)[::-1])


def test_only_the_order_counts(pairs):
    correct, ranking = pairs
    found = kept(correct, ranking)
    same(found, kept(correct, 3 * ranking - 7))
    same(found, kept(correct, np.exp(ranking) + 100))


@pytest.mark.parametrize("scale", [lambda r: np.minimum(r, 0.0), lambda r: np.clip(np.round(5 + r), 0, 10)])
def test_thresholds_are_on_the_scale_of_the_ranking(pairs, scale):
    correct, ranking = pairs
    ranking = scale(ranking)
    found = kept(correct, ranking)
    at = found.accuracy_at(0.5)
    assert at.confidence in ranking
    assert at.value == pytest.approx(correct[ranking >= at.confidence].mean())
    assert found.coverage_at(0.6).confidence in ranking
    assert f"{at.confidence:.2f}"[:3] in str(found)


def test_rankings_in_frames_lists_and_with_weights_and_clusters(pairs):
    correct, ranking = pairs
    found = kept(correct, ranking)
    same(found, kept(pd.Series(correct), pd.Series(ranking)))
    same(found, kept(correct.tolist(), ranking.tolist()))
    same(found, kept(correct, ranking, counts=np.ones(400, int)))
    weight = np.random.default_rng(1).integers(1, 4, 400)
    repeated = kept(np.repeat(correct, weight), np.repeat(ranking, weight))
    counted = kept(correct, ranking, counts=weight)
    np.testing.assert_allclose(counted.accuracy, repeated.accuracy)
    np.testing.assert_allclose(counted.confidence, repeated.confidence)
    clustered = kept(correct, ranking, cluster=np.arange(400) // 4)
    np.testing.assert_array_equal(clustered.accuracy, found.accuracy)


def test_a_ranking_is_saved_and_loaded(pairs):
    found = kept(*pairs)
    loaded = calibrant.RiskCoverage.from_json(found.to_json())
    same(found, loaded)
    np.testing.assert_array_equal(loaded.confidence, found.confidence)


def test_a_constant_ranking_has_one_point(pairs):
    correct, _ = pairs
    found = kept(correct, np.full(400, -3.5))
    assert found.confidence.tolist() == [-3.5]
    assert found.accuracy[0] == pytest.approx(correct.mean())


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_rankings_that_are_not_finite_are_refused(pairs, wrong):
    correct, ranking = pairs
    with pytest.raises(calibrant.InputError, match=r"y_prob must be finite.* at row 3"):
        kept(correct, np.where(np.arange(400) == 3, wrong, ranking))


def test_other_notions_and_functions_still_need_probabilities(pairs):
    correct, ranking = pairs
    with pytest.raises(calibrant.InputError, match=r"y_prob must lie in \[0, 1\]"):
        calibrant.risk_coverage(correct, ranking)
    with pytest.raises(calibrant.InputError, match=r"y_prob must lie in \[0, 1\]"):
        calibrant.ece(correct, ranking, notion="correctness")

"""Estimates where rows share scores: lookups and trees, copies of rows, and rows of one case."""

import numpy as np
import pytest

import calibrant


def levels(count, n, sd, seed):
    """Equally frequent scores with independent gaps, and the true error."""
    rng = np.random.default_rng(seed)
    score = (np.arange(count) + 0.5) / count
    true = np.clip(score + rng.normal(0, sd, count), 0, 1)
    which = rng.integers(0, count, n)
    return score[which], (rng.random(n) < true[which]).astype(int), float(np.abs(true - score).mean())


@pytest.mark.full
@pytest.mark.parametrize("count", [16, 30, 34, 120])
def test_the_number_of_distinct_scores_has_no_limit(count):
    held = []
    for seed in range(8):
        score, y, truth = levels(count, 3000, 0.07, seed)
        found = calibrant.estimate(y, score, rng=0, n_resamples=99)
        assert found.value == pytest.approx(truth, abs=0.02)
        held.append(found.low <= truth <= found.high)
    assert sum(held) >= 7


def test_copies_of_rows_say_nothing_about_their_scores():
    rng = np.random.default_rng(0)
    score = rng.random(1000)
    y = (rng.random(1000) < score).astype(int)
    some = rng.integers(0, 1000, 1000)
    assert calibrant.ece(y[some], score[some]) < 0.06
    # Rows that agree no more than they must are no copies.
    other = (rng.random(2000) < np.repeat(score, 2)).astype(int)
    assert calibrant.ece(other, np.repeat(score, 2)) < 0.03


def test_scores_that_several_clusters_share_keep_their_effects():
    score, y, truth = levels(60, 3000, 0.07, 1)
    cluster = np.random.default_rng(2).integers(0, 500, 3000)
    found = calibrant.estimate(y, score, rng=0, n_resamples=99, cluster=cluster)
    assert found.value == pytest.approx(truth, abs=0.02)


def test_continuous_scores_have_no_caution():
    rng = np.random.default_rng(0)
    score = rng.random(3000)
    found = calibrant.estimate((rng.random(3000) < score**1.3).astype(int), score, n_resamples=99)
    assert found.cautions == ()


def test_the_upper_end_is_no_less_than_the_limit_of_the_mean_gap():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        score = rng.beta(1, 300, 2000)
        y = (rng.random(2000) < 1.7 * score).astype(int)
        found = calibrant.estimate(y, score, labels=(0, 1), n_resamples=99)
        spread = np.sqrt((score * (1 - score)).mean() / 2000)
        assert found.high >= abs(y.mean() - score.mean()) + 1.9 * spread

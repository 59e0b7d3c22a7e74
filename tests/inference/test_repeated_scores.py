"""Estimates where rows share scores: lookups and trees, copies of rows, and rows of one case."""

import numpy as np
import pytest

import calibrant
from calibrant.inference.estimate import THIN_REPLICATION
from calibrant.settings import REPORT


def levels(count, n, sd, seed):
    """Equally frequent scores with independent gaps, and the true error."""
    rng = np.random.default_rng(seed)
    score = (np.arange(count) + 0.5) / count
    true = np.clip(score + rng.normal(0, sd, count), 0, 1)
    which = rng.integers(0, count, n)
    return score[which], (rng.random(n) < true[which]).astype(int), float(np.abs(true - score).mean())


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


def patients(seed=0, cases=400, rows=3, agreement=4.0):
    """Scores and outcomes of calibrated cases with several correlated rows each."""
    rng = np.random.default_rng(seed)
    score, case = rng.beta(1, 1.5, cases), np.repeat(np.arange(cases), rows)
    chance = rng.beta(agreement * score, agreement * (1 - score))
    return (rng.random(case.size) < chance[case]).astype(int), score[case], case


def test_rows_of_one_case_say_nothing_about_their_score():
    y, score, case = patients()
    alone = calibrant.estimate(y, score, rng=0, n_resamples=99)
    assert alone.value > 0.05
    assert alone.cautions == (THIN_REPLICATION,)
    together = calibrant.estimate(y, score, rng=0, n_resamples=99, cluster=case)
    assert together.value < 0.03
    assert together.cautions == ()
    assert together.low == 0


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


def test_a_comparison_says_that_errors_are_not_equally_certain():
    rng = np.random.default_rng(0)
    score, y, _ = levels(600, 1500, 0.1, 0)
    continuous = np.clip(y.mean() + 0.001 * rng.standard_normal(1500), 0, 1)
    found = calibrant.compare(y, {"tree": score, "constant": continuous}, rng=0, n_resamples=99)
    wide, narrow = (one.high - one.low for one in found.estimates.values())
    assert wide > REPORT.width_ratio * narrow
    (caution,) = found.cautions
    assert (
        f"'tree' is much less certain than that of 'constant' (its interval is {wide / narrow:.1f}" in caution
    )
    assert " ".join(str(found).split()).endswith(caution)
    assert calibrant.compare(y, {"a": score, "b": score**1.01}, rng=0, n_resamples=99).cautions == ()

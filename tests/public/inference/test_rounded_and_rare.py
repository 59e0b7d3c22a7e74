"""Scores that were written with few decimals are not taken for scores that repeat."""

import numpy as np
import pytest

import calibrant

SMOOTH = {
    "beta": lambda rng, n: rng.beta(1.3, 1.7, n),
    "sharp": lambda rng, n: 1 / (1 + np.exp(-rng.normal(1, 4, n))),
    "votes of 100 trees": lambda rng, n: rng.binomial(100, rng.beta(1.3, 1.7, n)) / 100,
}


def upper_end(score, outcome):
    return calibrant.estimate(outcome, score, labels=(0, 1), n_resamples=99, rng=0).high


@pytest.mark.parametrize("decimals", [2, 3, 4, 5])
@pytest.mark.parametrize("kind", ["beta", "sharp"])
def test_rounding_hardly_moves_the_upper_end(kind, decimals):
    ratios = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        score = SMOOTH[kind](rng, 3000)
        outcome = (rng.random(3000) < score).astype(int)
        ratios.append(upper_end(score.round(decimals), outcome) / upper_end(score, outcome))
    assert np.mean(ratios) < 1.15


@pytest.mark.parametrize("trees", [50, 200, 500])
def test_votes_of_trees_have_the_interval_of_smooth_scores(trees):
    ratios = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        score = rng.binomial(trees, rng.beta(1.3, 1.7, 2000)) / trees
        outcome = (rng.random(2000) < score).astype(int)
        smooth = (score + rng.uniform(-0.5, 0.5, 2000) / trees).clip(0, 1)
        ratios.append(upper_end(score, outcome) / upper_end(smooth, outcome))
    assert np.mean(ratios) < 1.15


@pytest.mark.parametrize("n", [1000, 5000, 20_000])
@pytest.mark.parametrize("kind", SMOOTH)
def test_a_sketch_of_rounded_scores_has_the_interval_of_the_rows(kind, n):
    rng = np.random.default_rng(n)
    score = SMOOTH[kind](rng, n).round(4)
    outcome = (rng.random(n) < score).astype(int)
    rows = calibrant.estimate(outcome, score, n_resamples=99, rng=0)
    sketch = calibrant.Sketch(notion="binary").update(outcome, score).estimate(n_resamples=99, rng=0)
    assert (sketch.value, sketch.high) == pytest.approx((rows.value, rows.high), abs=1e-9)


@pytest.mark.parametrize("decimals", [2, 3, 4, 5])
def test_tables_with_decimals_keep_their_effects(decimals):
    # Each of the 60 values has a gap of 8 points, up or down: nothing smooth can show it.
    rng = np.random.default_rng(decimals)
    values = np.unique(rng.beta(3, 3, 60).round(decimals).clip(0.1, 0.9))
    index = rng.choice(values.size, 6000, p=rng.dirichlet(np.full(values.size, 3.0)))
    chance = values + 0.08 * rng.choice([-1, 1], values.size)
    outcome = (rng.random(6000) < chance[index]).astype(int)
    result = calibrant.estimate(outcome, values[index], n_resamples=99, rng=0)
    assert result.value == pytest.approx(0.08, abs=0.015)


def test_counts_and_complements_of_rounded_scores():
    rng = np.random.default_rng(0)
    score = rng.beta(2, 3, 4000).round(3)
    outcome = (rng.random(4000) < score).astype(int)
    rows = calibrant.estimate(outcome, score, n_resamples=99, rng=0)
    assert calibrant.ece(1 - outcome, 1 - score) == pytest.approx(rows.value, abs=1e-9)
    pairs, counts = np.unique(np.stack([score, outcome], axis=1), axis=0, return_counts=True)
    grouped = calibrant.estimate(pairs[:, 1].astype(int), pairs[:, 0], counts=counts, n_resamples=99, rng=0)
    assert (grouped.value, grouped.high) == pytest.approx((rows.value, rows.high), abs=1e-9)


@pytest.mark.parametrize("shift", [-0.4, 0.0, 0.4])
def test_rare_outcomes_with_many_rows(shift):
    rng, errors, held = np.random.default_rng(1), [], 0
    for _ in range(6):
        score = rng.beta(0.5, 49.5, 40_000).clip(1e-12)
        odds = score / (1 - score) * np.exp(shift)
        truth = float(np.abs(odds / (1 + odds) - score).mean())
        outcome = (rng.random(40_000) < odds / (1 + odds)).astype(int)
        result = calibrant.estimate(outcome, score, n_resamples=99, rng=0)
        errors.append(result.value - truth)
        held += result.low <= truth <= result.high
    assert np.abs(errors).mean() < 0.0012
    assert held >= 5


def test_a_frequent_score_among_rounded_ones_has_a_gap_of_its_own():
    # Six tenths of the rows have a score of exactly 1, of which 10 % are wrong; the others are calibrated.
    rng = np.random.default_rng(0)
    score = np.where(rng.random(4000) < 0.6, 1.0, rng.uniform(0.3, 1, 4000).round(4))
    outcome = (rng.random(4000) < np.where(score == 1, 0.9, score)).astype(int)
    result = calibrant.estimate(outcome, score, n_resamples=99, rng=0)
    assert result.value == pytest.approx(0.06, abs=0.012)
    assert result.low <= 0.06 <= result.high

"""Estimates with interval, null and test, and comparisons."""

import re

import numpy as np
import pytest

import calibrant
from dirichlet import Dirichlet


def test_both_directions_of_the_error_are_named_and_add_up():
    for notion, ways in (("binary", ("by scores too high", "by scores too low")),
                         ("confidence", ("overconfident", "underconfident"))):  # fmt: skip
        p = np.random.default_rng(0).beta(0.8, 0.8, 600)
        y = np.random.default_rng(1).random(600) < np.clip(p + 0.15 * np.sin(9 * p), 0, 1)
        found = calibrant.estimate(y, p, notion=notion, rng=0, level=0.995)
        text = str(found)
        parts = [re.search(rf"([0-9.]+)(?: of it)? {way}", text)[1] for way in ways]
        # As exact as the digits that are printed.
        for part, exact in zip(parts, (found.over, found.under), strict=True):
            assert f"{exact:.{len(part.partition('.')[2])}f}" == part
        assert found.over + found.under == pytest.approx(found.value, abs=1e-12)
        assert "(99.5 % interval " in text


def test_one_row_and_equal_scores_have_an_estimate():
    for y, p in (([1], [0.3]), ([0, 1, 1], [0.5] * 3), ([0] * 50, [0.0] * 50), ([1] * 50, [0.01] * 50)):
        found = calibrant.estimate(y, p, rng=0)
        assert 0 <= found.low <= found.value <= found.high <= 1
        assert np.isfinite([found.null.mean, found.p_value]).all()
    assert calibrant.estimate([1] * 50, [0.01] * 50, rng=0).p_value == 0.001


def test_a_label_that_the_scores_call_impossible_is_strong_evidence():
    y = np.r_[np.ones(500), 0, 0, 0].astype(int)
    assert calibrant.estimate(y, np.ones(503), rng=0).p_value == 0.001


@pytest.mark.parametrize("own", ["smooth", "ks", "kuiper"])
def test_measures_of_their_own_are_refused(own):
    with pytest.raises(ValueError, match="a different measure"):
        calibrant.estimate([0, 1], [0.2, 0.7], estimator=own)


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="norm must be one of 'l1', 'l2'"):
        calibrant.estimate([0, 1], [0.2, 0.7], norm="max")
    with pytest.raises(ValueError, match="level must be"):
        calibrant.estimate([0, 1], [0.2, 0.7], level=95)
    with pytest.raises(TypeError, match="rng must be"):
        calibrant.estimate([0, 1], [0.2, 0.7], rng="dice")
    with pytest.raises(TypeError, match="n_boot"):
        calibrant.estimate([0, 1], [0.2, 0.7], n_boot=3)


def test_a_gap_too_rough_to_estimate_is_still_found():
    rng = np.random.default_rng(0)
    score = rng.random(10_000)
    gap = 0.08 * np.sin(2 * np.pi * 125 * score) * (np.abs(score - 0.5) < 0.25)
    found = calibrant.estimate(rng.random(10_000) < score + gap, score, rng=0)
    assert found.p_value <= 0.02


@pytest.mark.full
@pytest.mark.no_cover
@pytest.mark.parametrize(("scores", "gap"), [([0.5], 0.03), ([0.3, 0.7], 0.04), ([0.7, 0.8, 0.9], 0.04)])
def test_a_handful_of_distinct_scores_has_an_interval_that_covers(scores, gap):
    rng = np.random.default_rng(0)
    missed = 0
    for seed in range(20):
        p = np.array(scores)[rng.integers(0, len(scores), 400)]
        found = calibrant.estimate(rng.random(400) < p - gap, p, rng=seed)
        missed += not found.low <= gap <= found.high
    assert missed <= 2


@pytest.mark.full
@pytest.mark.parametrize("n", [3, 30, 1000])
@pytest.mark.parametrize("far", [1e-3, 1e-6, 1e-9, 1e-12])
def test_a_model_that_is_certain_and_right_is_not_rejected(n, far):
    rare = calibrant.estimate(np.zeros(n, int), np.full(n, far), rng=0)
    sure = calibrant.estimate(np.ones(n, int), np.full(n, 1 - far), rng=0)
    assert min(rare.p_value, sure.p_value) > 0.5
    assert sure.value == pytest.approx(rare.value, abs=1e-9)


@pytest.mark.parametrize("estimator", ["auto", "uniform:10"])
def test_a_count_of_one_for_each_row_changes_nothing(estimator):
    rng = np.random.default_rng(2)
    score = rng.random(40)
    outcome = rng.random(40) < score
    plain, counted = (
        calibrant.estimate(outcome, score, estimator=estimator, sample_weight=weight, rng=0)
        for weight in (None, np.ones(40, int))
    )
    assert counted == plain


def test_the_scale_of_importance_weights_changes_no_draw_of_whole_rows():
    rng = np.random.default_rng(4)
    scores, labels = Dirichlet(3, 0.4).draw(rng, 60)
    weight = 10 ** rng.uniform(-3, 3, 60)
    one, other = (
        calibrant.estimate(labels, scores, notion="classwise", sample_weight=scale * weight, rng=0)
        for scale in (1.0, 777.0)
    )
    assert other.p_value == one.p_value
    assert other.null.mean == pytest.approx(one.null.mean, abs=1e-7)

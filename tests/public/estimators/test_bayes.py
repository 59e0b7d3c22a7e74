"""The default estimator: against a slow oracle, and where it must lead."""

import numpy as np
import pytest

import calibrant


def draw(n, seed=0, power=1.5):
    rng = np.random.default_rng(seed)
    score = rng.beta(0.8, 0.6, n)
    return score, rng.random(n) < score**power


def test_it_finds_the_error_of_a_large_sample():
    score, outcome = draw(1_000_000, 1)
    truth = np.mean(score - score**1.5)
    assert calibrant.ece(outcome, score) == pytest.approx(truth, abs=0.002)


def test_a_gap_too_rough_for_sixty_four_cells_is_found_when_rows_are_many():
    rng = np.random.default_rng(0)
    score = rng.random(400_000)
    gap = 0.05 * np.sin(2 * np.pi * 60 * score)
    outcome = rng.random(score.size) < np.clip(score + gap, 0, 1)
    assert calibrant.ece(outcome, score) == pytest.approx(0.1 / np.pi, rel=0.1)


def test_two_classes_are_one_problem_seen_twice():
    score, outcome = draw(200, 4)
    two = np.stack([1 - score, score], axis=1)
    twice = calibrant.ece(outcome, two, notion="classwise", labels=[False, True])
    assert twice == pytest.approx(calibrant.ece(outcome, score), rel=1e-6)


def test_saturated_classes_are_not_taken_for_rough_ones():
    # A network that is sure of nearly everything: most scores are 0 or 1 to three digits.
    rng = np.random.default_rng(0)
    n, classes = 10_000, 10
    logits = rng.normal(0, 4, (n, classes))
    logits[np.arange(n), rng.integers(0, classes, n)] += 20
    sure, true = (
        (e := np.exp((logits - logits.max(axis=1, keepdims=True)) / t)) / e.sum(axis=1, keepdims=True)
        for t in (1.0, 2.2)
    )
    assert np.mean((sure < 0.001) | (sure > 0.999)) > 0.95
    gap = np.take_along_axis(true - sure, np.argsort(sure, axis=0), axis=0)
    truth = np.abs(gap.reshape(-1, 40, classes).mean(axis=1)).mean()
    label = (rng.random((n, 1)) >= np.cumsum(true, axis=1)[:, :-1]).sum(axis=1)
    assert calibrant.ece(label, sure, notion="classwise") == pytest.approx(truth, rel=0.1)

"""Reliability curves do not depend on the order of the rows, also where scores are equal up to rounding."""

import numpy as np
import pytest

import calibrant

ROWS = 300


def rounded_scores(columns):
    """Labels and scores of two decimals; differences from 1 are equal to other scores up to rounding."""
    rng = np.random.default_rng(4)
    score = np.round(rng.beta(0.7, 0.9, (ROWS, columns - 1)) / (columns - 1), 2)
    score = np.column_stack([1 - score.sum(axis=1), score])
    return (rng.random((ROWS, 1)) > score.cumsum(axis=1)[:, :-1]).sum(axis=1), score


@pytest.mark.parametrize("columns", [2, 3])
@pytest.mark.parametrize("weights", ["floats", "integers"])
@pytest.mark.parametrize("notion", ["confidence", "classwise"])
def test_weighted_curves_do_not_depend_on_the_order_of_rows(columns, weights, notion):
    label, score = rounded_scores(columns)
    rng = np.random.default_rng(5)
    weight = rng.gamma(2.0, 1.0, ROWS) if weights == "floats" else rng.integers(1, 5, ROWS)
    curves = []
    for k in range(6):
        order = np.random.default_rng(k).permutation(ROWS)
        rows = label[order], score[order]
        curve = calibrant.reliability_curve(*rows, notion=notion, sample_weight=weight[order])
        curves.append([curve] if notion == "confidence" else list(curve.values()))
    for first, *others in zip(*curves, strict=True):
        assert np.diff(first.score[np.isfinite(first.value)]).min() > 1e-12  # no score twice
        for other in others:
            assert other.score.shape == first.score.shape
            np.testing.assert_allclose(other.score, first.score, rtol=0, atol=1e-12)
            np.testing.assert_allclose(other.value, first.value, rtol=1e-9)
            np.testing.assert_allclose(other.low, first.low, rtol=1e-7, atol=1e-9)
            np.testing.assert_allclose(other.high, first.high, rtol=1e-7, atol=1e-9)


def test_common_scores_do_not_depend_on_the_order_of_clustered_rows():
    # Four scores of 2 % of the rows each, which is exactly the smallest share of a common score.
    score = np.concatenate([np.repeat([0.1, 0.3, 0.6, 0.8], 8), np.linspace(0.05, 0.95, 368)])
    rng = np.random.default_rng(0)
    label, cluster = (rng.random(400) < score).astype(int), rng.permutation(400) // 3
    found = []
    for k in range(10):
        order = np.random.default_rng(k).permutation(400)
        curve = calibrant.reliability_curve(label[order], score[order], cluster=cluster[order])
        found.append(curve.common_scores.tolist())
    assert found == [[0.1, 0.3, 0.6, 0.8]] * 10

"""No map calls impossible what has happened."""

import numpy as np
import pytest

from calibrant import Calibrator


@pytest.mark.parametrize("n", [60, 100, 200])
@pytest.mark.parametrize("seed", range(10))
def test_a_score_of_0_or_1_is_left_alone_only_where_it_was_right(n, seed):
    # Shares of twenty votes, as a small forest gives them.
    rng = np.random.default_rng(seed)
    truth = rng.beta(0.4, 0.4, n)
    score = rng.binomial(20, truth) / 20
    outcome = rng.random(n) < truth
    p = Calibrator().fit(score, outcome.astype(int)).predict_proba(score)
    assert (p[outcome] > 0).all()
    assert (p[~outcome] < 1).all()


@pytest.mark.parametrize("method", ["auto", "temperature", "vector", "matrix", "isotonic"])
def test_counts_are_repetition_for_many_classes(method):
    rng = np.random.default_rng(0)
    score = rng.dirichlet(np.ones(3), 300)
    code = (rng.random((300, 1)) > score.cumsum(axis=1)).sum(axis=1)
    score = score**2 / (score**2).sum(axis=1, keepdims=True)
    count = rng.integers(0, 4, 300)
    counted = Calibrator(method).fit(score, code, counts=count)
    repeated = Calibrator(method).fit(np.repeat(score, count, axis=0), np.repeat(code, count))
    np.testing.assert_allclose(counted.predict_proba(score), repeated.predict_proba(score), atol=1e-9)

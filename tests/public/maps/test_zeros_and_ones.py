"""No map calls impossible what has happened, and the default map calls nothing impossible."""

import numpy as np
import pytest

from calibrant import Calibrator, Sketch
from oracles.maps import jeffreys_mean


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


def certain(n_zero=200, n_one=120, seed=0):
    """Draw calibrated scores in steps of 0.01, with rows of 0 and 1 that are always right."""
    rng = np.random.default_rng(seed)
    inner = rng.integers(1, 100, 400) / 100
    score = np.concatenate([np.zeros(n_zero), np.ones(n_one), inner])
    return score, np.concatenate([np.zeros(n_zero), np.ones(n_one), rng.random(400) < inner]).astype(int)


def test_scores_of_0_and_1_that_were_right_are_bounded_by_the_number_of_rows():
    score, outcome = certain()
    fitted = Calibrator().fit(score, outcome)
    at = np.array([0.0, 0.15, 0.5, 0.95, 1.0])
    expected = [jeffreys_mean(0, 200), 0.15, 0.5, 0.95, jeffreys_mean(120, 120)]
    np.testing.assert_allclose(fitted.predict_proba(at), expected, rtol=1e-6)
    np.testing.assert_array_equal(Calibrator("identity").fit(score, outcome).predict_proba(at), at)
    # Rows, sketches, a saved map, SQL and Python agree.
    sketch = Sketch().update(outcome, score)
    np.testing.assert_allclose(sketch.calibrator().predict_proba(at), expected, rtol=1e-6)
    loaded = Calibrator.from_json(fitted.to_json())
    np.testing.assert_array_equal(loaded.predict_proba(at), fitted.predict_proba(at))
    space = {}
    exec(fitted.to_python("calibrated"), space)
    np.testing.assert_array_equal([space["calibrated"](p) for p in at], fitted.predict_proba(at))
    assert "THEN LEAST(GREATEST(1E0 * p, " in fitted.to_sql("p")
    low, high = fitted.predict_interval(at)
    assert ((low <= expected) & (expected <= high)).all()


def test_the_complement_of_certain_scores_has_the_complement_of_the_map():
    score, outcome = certain()
    at = np.concatenate([[0.0, 1e-4, 0.3, 1 - 1e-4, 1.0], score])
    straight = Calibrator().fit(score, outcome).predict_proba(at)
    turned = Calibrator(pos_label=1).fit(1 - score, 1 - outcome).predict_proba(1 - at)
    np.testing.assert_allclose(1 - turned, straight, rtol=0, atol=1e-15)


@pytest.mark.full
@pytest.mark.parametrize("n", [5, 30, 100, 1000])
def test_the_default_map_never_answers_0_or_1_and_keeps_the_order_of_scores(n):
    at = np.concatenate([[0.0, 1e-300, 1e-12], np.linspace(0.001, 0.999, 99), [1 - 2**-53, 1.0]])
    for seed in range(12):
        rng = np.random.default_rng([seed, n])
        truth = rng.beta(0.3, 0.3, n)
        steps = rng.choice([5, 20, 1000])
        clipped = np.clip(1.3 * truth - 0.15, 0, 1)
        for score in (np.round(truth * steps) / steps, clipped, np.clip(truth, 1e-9, 1 - 1e-9)):
            outcome = (rng.random(n) < truth).astype(int)
            found = Calibrator(monotone=True).fit(score, outcome).predict_proba(at)
            assert (found > 0).all()
            assert (found < 1).all()
            assert (np.diff(found) >= -1e-12).all()


@pytest.mark.parametrize("n", [20, 200, 1000])
def test_the_default_map_of_many_classes_never_answers_0_or_1(n):
    for seed in range(4):
        rng = np.random.default_rng([seed, n])
        score = rng.dirichlet(np.full(4, 0.3), n)
        score[score < 0.02] = 0
        score /= score.sum(axis=1, keepdims=True)
        code = (rng.random((n, 1)) > score.cumsum(axis=1)[:, :-1]).sum(axis=1)
        fitted = Calibrator(labels=range(4)).fit(score, code)
        at = np.concatenate([score, np.eye(4)])
        found = fitted.predict_proba(at)
        assert (found > 0).all()
        assert (found < 1).all()
        np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
        loaded = Calibrator.from_json(fitted.to_json())
        np.testing.assert_array_equal(loaded.predict_proba(at), found)
        order = [2, 0, 3, 1]
        turned = Calibrator(labels=order).fit(score[:, order], code)
        np.testing.assert_allclose(turned.predict_proba(at[:, order]), found[:, order], atol=1e-9)


def test_rows_of_many_classes_that_exclude_no_label_are_raised_to_the_floor():
    score = np.tile(np.eye(3), (40, 1))
    inner = np.random.default_rng(0).dirichlet(np.ones(3), 300)
    inner = np.round(0.8 * inner + 0.2 / 3, 2)
    inner[:, 2] = 1 - inner[:, 0] - inner[:, 1]
    code = (np.random.default_rng(1).random((300, 1)) > inner.cumsum(axis=1)[:, :-1]).sum(axis=1)
    fitted = Calibrator().fit(np.concatenate([score, inner]), np.concatenate([np.tile(range(3), 40), code]))
    floor = jeffreys_mean(0, 120) / 2
    row = np.array([1, floor, floor]) / (1 + 2 * floor)
    np.testing.assert_allclose(fitted.predict_proba(np.eye(3)[:1])[0], row, rtol=1e-9)
    np.testing.assert_array_equal(fitted.predict_proba(inner[:5]), inner[:5])

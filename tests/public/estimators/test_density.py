"""Bounded smoothing by cosine transform against naive sums over mirrored kernels."""

import numpy as np
import pytest
from scipy.integrate import quad

import calibrant
from oracles import density as oracle


def test_scores_on_the_walls_are_as_good_as_others():
    labels, score = [0, 0, 1, 1, 1, 0], [0.0, 0.0, 1.0, 1.0, 1.0, 1.0]
    expected = oracle.ece_density(score, labels, bandwidth=0.05)
    assert calibrant.ece(labels, score, estimator="d:0.05") == pytest.approx(expected, abs=1e-5)


def test_a_confidence_below_one_over_c_by_rounding_is_moved_for_smoothing_only():
    third = np.nextafter(1 / 3, 0)
    scores = np.array([[third, third, 1 - 2 * third], [0.2, 0.7, 0.1]])
    assert np.isfinite(calibrant.ece([0, 1], scores, estimator="d:0.1"))


@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
@pytest.mark.parametrize("score", [0.0, 0.37, 1.0])
def test_without_any_spread_the_error_is_the_mean_residual(norm, score):
    labels = [1, 0, 0, 1, 1]
    expected = abs(0.6 - score)
    assert calibrant.ece(labels, [score] * 5, estimator="d", norm=norm) == pytest.approx(expected, abs=1e-12)


def test_each_class_has_a_bandwidth_of_its_own():
    rng = np.random.default_rng(0)
    scores = rng.dirichlet([0.2, 2, 5], 400)
    labels = rng.integers(0, 3, 400)
    whole = calibrant.ece(labels, scores, notion="classwise", estimator="d")
    each = [calibrant.ece(labels, scores, notion="binary", pos_label=k, estimator="d") for k in range(3)]
    assert whole == pytest.approx(np.mean(each), abs=1e-9)


def test_no_problem_depends_on_the_others_in_its_batch():
    rng = np.random.default_rng(0)
    a = 0.4 * rng.random(3000)
    scores = np.stack([a, np.full(3000, 0.3), 0.7 - a], axis=1)
    labels = (rng.random((3000, 1)) > np.cumsum(scores, axis=1)).sum(axis=1).clip(0, 2)
    for rule in ("d:scott", "d:isj", "d"):
        for norm in ("l1", "l2", "max"):
            each = [
                calibrant.ece(labels, scores, notion="binary", pos_label=k, estimator=rule, norm=norm)
                for k in range(3)
            ]
            whole = calibrant.ece(labels, scores, notion="classwise", estimator=rule, norm=norm)
            expected = {"l1": np.mean(each), "l2": np.sqrt(np.mean(np.square(each))), "max": max(each)}[norm]
            assert whole == pytest.approx(expected, abs=1e-7 if norm == "max" else 1e-10), (rule, norm)


def test_a_kernel_wider_than_the_domain_is_flat():
    labels, score = [0, 1, 1], [0.1, 0.5, 0.7]
    flat = calibrant.ece(labels, score, estimator="d:50")
    assert calibrant.ece(labels, score, estimator="d:1e150") == pytest.approx(flat)
    assert flat == pytest.approx(quad(lambda s: abs(2 / 3 - s), 0, 1)[0], abs=1e-4)

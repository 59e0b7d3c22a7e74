"""Where on the simplex a gap lies: the probability transfer between classes, compared with the true one."""

import numpy as np
import pytest

from calibrant.posterior.softmax import CanonicalError, SoftmaxPosterior
from calibrant.posterior.softmax.probability_transfer import ProbabilityTransfer, _net_transfer
from calibrant.score_data.simplex import Simplex


def labels(rng, probability):
    return (rng.random((len(probability), 1)) > probability.cumsum(axis=1)[:, :-1]).sum(axis=1)


def moved(scores, frequency):
    """Return the net flows row by row, as they are defined."""
    flows = np.zeros((scores.shape[1],) * 2)
    for p, q in zip(scores, frequency, strict=True):
        lost, won = np.maximum(p - q, 0), np.maximum(q - p, 0)
        if won.sum() > 0:
            flows += np.outer(lost, won) / won.sum()
    return (flows - flows.T) / len(scores)


def test_predictions_that_are_right_have_the_flows_of_the_definition():
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(4), (2, 300))
    rows = Simplex.of(p, labels(rng, q))
    place = np.argsort(rows.place)
    found, error = _net_transfer(rows, q[place])
    np.testing.assert_allclose(rows.score, p[place])
    off = np.abs(found - moved(p, q))[np.triu_indices(4, 1)]
    assert (off < 3 * error[np.triu_indices(4, 1)]).all()
    np.testing.assert_allclose(found, -found.T)


def test_noise_of_predictions_is_not_shared_out():
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(3), 8000)
    q = p.copy()
    q[:, 0], q[:, 1] = p[:, 0] + 0.3 * p[:, 1], 0.7 * p[:, 1]
    rows = Simplex.of(p, labels(rng, q))
    place = np.argsort(rows.place)
    # Predictions that miss the third class, which has no gap, here and there.
    noise = 0.1 * p[:, 2] * rng.choice([-1, 1], len(p))
    x = q + np.stack([-noise / 2, -noise / 2, noise], axis=1)
    x = np.maximum(x, 0)
    x /= x.sum(axis=1, keepdims=True)
    found, error = _net_transfer(rows, x[place])
    naive = moved(p, x)
    assert abs(naive[1, 2]) > 3 * error[1, 2]
    assert abs(found[1, 2]) < 2 * error[1, 2]
    assert found[1, 0] == pytest.approx(0.1, abs=2 * error[1, 0])


def test_counts_are_repetition():
    rng = np.random.default_rng(2)
    p = rng.dirichlet(np.ones(3), 40)
    code, weight = rng.integers(0, 3, 40), rng.integers(1, 4, 40)
    counted = ProbabilityTransfer.of(CanonicalError.of(SoftmaxPosterior.of(Simplex.of(p, code, weight))))
    repeated = Simplex.of(np.repeat(p, weight, axis=0), np.repeat(code, weight))
    again = ProbabilityTransfer.of(CanonicalError.of(SoftmaxPosterior.of(repeated)))
    for key in ("net", "spread", "share", "gap", "gap_spread"):
        np.testing.assert_allclose(getattr(counted, key), getattr(again, key), atol=1e-9)


def test_rows_that_agree_leave_a_doubt():
    rows = Simplex.of(np.array([[1.0, 0.0, 0.0]] * 30), np.ones(30, dtype=int))
    found = ProbabilityTransfer.of(CanonicalError.of(SoftmaxPosterior.of(rows)))
    assert found.net[0, 1] <= 1
    assert found.spread[0, 1] > 0
    assert found.gap[0] <= 2

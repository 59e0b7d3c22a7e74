"""Folds of decisions: rows of every score are in every fold, and what they say agrees with the truth."""

import numpy as np
import pytest
from scipy.special import expit

import calibrant
from calibrant import Sketch


def shifted(n=40_000, seed=0):
    """Scores, probabilities and outcomes whose odds are exp(-3.2) times those of the scores."""
    rng = np.random.default_rng(seed)
    odds = rng.normal(-1.2, 1.1, n)
    probability = expit(odds - 3.2)
    return expit(odds), probability, (rng.random(n) < probability).astype(int)


def fraud(n=40_000, seed=2):
    """A good model of 1.6 % positives that was trained on as many of either class."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.016).astype(int)
    odds = 2.5 * rng.normal(2.5 * y, 1) - 3.125
    return expit(odds), expit(odds + np.log(0.016 / 0.984)), y


def net_benefit(act, probability, threshold):
    return float(np.mean(act * (probability - (1 - probability) * threshold / (1 - threshold))))


@pytest.mark.parametrize(
    ("make", "thresholds"), [(shifted, [0.01, 0.02, 0.05]), (fraud, [0.05, 0.1, 0.27, 0.4])]
)
def test_net_benefit_of_recalibrated_scores_is_the_true_one(make, thresholds):
    s, p, y = make()
    at = np.array(thresholds)
    true = np.array([net_benefit(p >= t, p, t) for t in at])
    for found in (
        calibrant.regret_curve(y, s, thresholds=at),
        Sketch().update(y, s).regret_curve(thresholds=at),
    ):
        np.testing.assert_allclose(found.recalibrated, true, rtol=0.12)
        lost = np.array([net_benefit((p >= t) * 1.0 - (s >= t), p, t) for t in at]) * (1 - at)
        np.testing.assert_allclose(found.value, lost, rtol=0.05)
        assert ((found.low <= lost) & (lost <= found.high)).all()


def test_costs_of_recalibrated_scores_and_of_the_best_threshold_are_the_true_ones():
    s, p, y = shifted()
    cost = np.where(p >= 1 / 41, 1 - p, 40 * p).mean()
    found = calibrant.best_threshold(y, s, "1:40")
    assert found.cost_recalibrated == pytest.approx(cost, rel=0.02)
    assert found.cost == pytest.approx(cost, rel=0.02)
    assert found.cost_low <= cost <= found.cost_high
    chosen = np.where(s >= found.value, 1 - p, 40 * p).mean()
    assert chosen == pytest.approx(cost, rel=0.01)


def clustered(seed=0, clusters=30, size=20):
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(clusters), size)
    s = rng.random(clusters * size)
    y = (rng.random(s.size) < expit(2 * s - 2 + rng.normal(0, 1, clusters)[cluster])).astype(int)
    return y, s, cluster


def test_neither_names_nor_order_of_clusters_matter():
    y, s, cluster = clustered()
    rng = np.random.default_rng(1)
    order, names = rng.permutation(len(y)), rng.permutation(30)
    plain = calibrant.regret_curve(y, s, cluster=cluster, thresholds=[0.2, 0.5])
    other = calibrant.regret_curve(y[order], s[order], cluster=names[cluster][order], thresholds=[0.2, 0.5])
    for name in ("value", "low", "high", "recalibrated"):
        np.testing.assert_allclose(getattr(other, name), getattr(plain, name), rtol=1e-9, atol=1e-12)

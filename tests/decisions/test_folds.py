"""Folds of decisions: rows of every score are in every fold, and what they say agrees with the truth."""

import numpy as np
import pytest
from scipy.special import expit

import calibrant
from calibrant import Sketch
from calibrant.decisions.binary import BinaryDecisions, CostLines, FoldSplit
from calibrant.decisions.interval import regret_intervals
from calibrant.inputs import in_clusters, predictions
from calibrant.score_data import Residuals, Sample
from calibrant.settings import DECISIONS
from calibrant.tasks import CalibrationTask, get_notion


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


def kinds(n):
    """Samples of rows, of tied rows, of counts and of weights."""
    rng = np.random.default_rng(n)
    s, y = rng.random(n), rng.random(n) < 0.3
    yield Sample(s, y)
    yield Sample(np.round(s, 1), y)
    yield Sample(np.round(s, 2), y, rng.integers(1, 30, n))
    yield Sample(np.round(s, 2), y, rng.random(n) + 0.05, counts=False)


@pytest.mark.parametrize("n", [1, 2, 7, 300])
def test_the_parts_of_a_group_add_up_to_it(n):
    for sample in kinds(n):
        residuals = Residuals.of(sample)
        groups = residuals[residuals.mass > 0]
        dealt = FoldSplit.of(groups, np.random.default_rng(0))
        for name in ("mass", "residual", "spread"):
            total = np.bincount(dealt.group, getattr(dealt.steps, name), groups.mass.size)
            np.testing.assert_allclose(total, getattr(groups, name), rtol=1e-9, atol=1e-9)
        frequency = dealt.steps.frequency
        assert ((frequency >= 0) & (frequency <= 1)).all()
        pairs = dealt.group * DECISIONS.folds + dealt.fold
        assert (np.diff(np.sort(pairs)) > 0).all()


def test_folds_are_of_equal_size_at_all_scores():
    s = (np.arange(1000) + 0.5) / 1000
    dealt = FoldSplit.of(Residuals.of(Sample(s, s > 0.5)), np.random.default_rng(0))
    tenth = dealt.group * 10 // 1000
    held = np.bincount(tenth * DECISIONS.folds + dealt.fold, dealt.steps.mass).reshape(10, DECISIONS.folds)
    assert (held == 20).all()
    # Neighbours are not dealt in turn.
    assert len(np.unique(np.diff(dealt.fold))) > 2


def test_outcomes_of_tied_rows_are_dealt_by_chance():
    sample = Sample(np.full(5000, 0.4), np.arange(5000) < 1500)
    residuals = Residuals.of(sample)
    groups = residuals[residuals.mass > 0]
    hits = np.array(
        [
            np.rint((part := FoldSplit.of(groups, np.random.default_rng(seed)).steps).frequency * part.mass)
            for seed in range(200)
        ]
    )
    assert (hits.sum(axis=1) == 1500).all()
    # 1000 of 5000 rows without replacement: the hypergeometric variance.
    expected = 1000 * 0.3 * 0.7 * 4000 / 4999
    assert hits.var(axis=0).mean() == pytest.approx(expected, rel=0.15)


def clustered(seed=0, clusters=30, size=20):
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(clusters), size)
    s = rng.random(clusters * size)
    y = (rng.random(s.size) < expit(2 * s - 2 + rng.normal(0, 1, clusters)[cluster])).astype(int)
    return y, s, cluster


def known_of(y, s, cluster, at=(0.3,)):
    data = in_clusters(predictions(y, s), cluster)
    return BinaryDecisions.of(CalibrationTask.of(data, get_notion("binary")), np.array(at))


def test_clusters_are_whole_in_folds():
    # Each cluster has scores of its own.
    cluster = np.repeat(np.arange(40), 5)
    s = (cluster * 5 + np.arange(200) % 5 + 0.5) / 200
    y = (np.random.default_rng(0).random(40) < 0.4)[cluster].astype(int)
    known = known_of(y, s, cluster)
    of_cluster = np.array([set(known.split.fold[known.split.group // 5 == k]) for k in range(40)])
    assert all(len(folds) == 1 for folds in of_cluster)
    assert sorted(np.bincount([folds.pop() for folds in of_cluster])) == [8] * DECISIONS.folds


def test_neither_names_nor_order_of_clusters_matter():
    y, s, cluster = clustered()
    rng = np.random.default_rng(1)
    order, names = rng.permutation(len(y)), rng.permutation(30)
    plain = calibrant.regret_curve(y, s, cluster=cluster, thresholds=[0.2, 0.5])
    other = calibrant.regret_curve(y[order], s[order], cluster=names[cluster][order], thresholds=[0.2, 0.5])
    for name in ("value", "low", "high", "recalibrated"):
        np.testing.assert_allclose(getattr(other, name), getattr(plain, name), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_another_dealing_moves_estimates_within_their_noise(seed, monkeypatch):
    y, s, cluster = clustered(seed)
    lines = CostLines.of_thresholds(np.array([0.2, 0.5]))
    found = []
    for fold_seed in (20240717, 1, 2):
        monkeypatch.setattr("calibrant.decisions.binary.FOLD_SEED", fold_seed)
        known = known_of(y, s, cluster if seed % 2 else np.arange(len(y)), (0.2, 0.5))
        found.append(regret_intervals(known, lines, 0.95))
    for one in found[1:]:
        for gain, other in zip(found[0][3:5], one[3:5], strict=True):
            assert (np.abs(gain.value - other.value) <= 2 * np.maximum(gain.error, other.error)).all()
        assert ((found[0].low <= one.value) & (one.value <= found[0].high)).all()

"""Folds of decisions: rows of every score are in every fold, and what they say agrees with the truth."""

import numpy as np
import pytest
from scipy.special import expit

from calibrant.decisions.binary import BinaryDecisions, CostLines, FoldSplit
from calibrant.decisions.interval import regret_intervals
from calibrant.inputs import in_clusters, predictions
from calibrant.score_data import Residuals, Sample
from calibrant.settings import DECISIONS
from calibrant.tasks import CalibrationTask, get_notion


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

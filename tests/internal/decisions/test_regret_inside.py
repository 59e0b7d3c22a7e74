"""Regret: against loops over rows, from every kind of score data, and as it is stored."""

import numpy as np
import pytest

import calibrant
from calibrant.decisions import Decision
from calibrant.decisions.binary import BinaryDecisions, CostLines
from calibrant.decisions.interval import regret_intervals
from calibrant.inference.interval_estimate import interval_deviate
from calibrant.inputs import in_clusters, predictions
from calibrant.tasks import CalibrationTask, get_notion
from oracles import decisions as oracle
from shortcuts import few_null_data_sets

MATRIX = [[0.0, 1.0, 0.3], [5.0, 0.0, 0.3]]


@pytest.fixture(autouse=True)
def _few_simulations(monkeypatch):
    few_null_data_sets(monkeypatch)


def sample(n=150, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.random(n)
    return (rng.random(n) < score**2).astype(int), score


def test_the_integral_over_thresholds_is_half_the_squared_error():
    y, s = sample(200)
    known = BinaryDecisions.of(CalibrationTask.of(predictions(y, s), get_notion("binary")), np.array([0.5]))
    at = (np.arange(2000) + 0.5) / 2000
    chance = known.groups.score**2
    area = known.regret(CostLines.of_thresholds(at), chance).mean()
    half = ((chance - known.groups.score) ** 2).mean() / 2
    assert area == pytest.approx(half, rel=1e-3)
    # And one by one it is the loop's.
    for k in (100, 777, 1500):
        expected = oracle.regret(
            np.stack([1 - chance, chance], axis=1),
            np.stack([1 - known.groups.score, known.groups.score], axis=1),
            [[at[k], 0], [0, 1 - at[k]]],
        )
        lines = CostLines.of_thresholds(at[k : k + 1])
        assert known.regret(lines, chance)[0] == pytest.approx(expected, rel=1e-9, abs=1e-15)


def test_a_right_curve_loses_nothing():
    y, s = sample(60)
    known = BinaryDecisions.of(CalibrationTask.of(predictions(y, s), get_notion("binary")), np.array([0.5]))
    assert np.all(known.regret(CostLines.of_thresholds(np.arange(1, 20) / 20), known.groups.score) == 0)


@pytest.mark.parametrize("seed", range(6))
def test_the_value_lies_in_its_interval_and_levels_are_nested(seed):
    y, s = sample(80, seed)
    s = s if seed % 2 else np.round(s, 1)
    task = CalibrationTask.of(predictions(y, s), get_notion("binary"))
    known = BinaryDecisions.of(task, np.arange(1, 10) / 10)
    lines = CostLines.of_thresholds(np.arange(1, 10) / 10)
    for simultaneous in (False, True):
        inner, outer = (
            regret_intervals(known, lines, level, simultaneous=simultaneous) for level in (0.5, 0.95)
        )
        for one in (inner, outer):
            assert (one.low >= 0).all()
            assert (one.low <= one.value).all()
            assert (one.value <= one.high).all()
            assert (one.high <= lines.top).all()
        np.testing.assert_array_equal(inner.value, outer.value)
        assert (outer.low <= inner.low + 1e-15).all()
        assert (inner.high <= outer.high + 1e-15).all()
        assert (outer.high - outer.low > inner.high - inner.low).all()


def test_repeated_rows_are_no_news_where_clusters_tell():
    y, s = sample(100)
    y5, s5, cluster = (np.repeat(part, 5) for part in (y, s, np.arange(100)))
    once, hidden = (predictions(*rows) for rows in ((y, s), (y5, s5)))
    told = in_clusters(hidden, cluster)
    lines = CostLines.of_thresholds(np.array([0.3]))
    known = [
        BinaryDecisions.of(CalibrationTask.of(data, get_notion("binary")), np.array([0.3]))
        for data in (once, told, hidden)
    ]
    # The same actions, whichever rows are in which fold.
    plain, by_cluster, by_row = (
        float(each.gain(lines, actions := lines.optimal_actions(each.parts.score), 0 * actions).error[0])
        for each in known
    )
    assert by_cluster == pytest.approx(plain, rel=0.1)
    assert by_row == pytest.approx(plain / np.sqrt(5), rel=0.2)
    wide = [interval_deviate(0.95, each.clusters) for each in known]
    assert wide[1] > wide[0] == wide[2]


def wrong(seed):
    """A sample of some size, with ties or clusters, whose scores are wrong in some way."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 1500))
    s = rng.beta(*rng.uniform(0.3, 3, 2), n)
    s = s if seed % 3 else np.round(s, 2)
    odds = np.log(np.clip(s, 1e-3, 0.999)) - np.log1p(-np.clip(s, 1e-3, 0.999))
    p = 1 / (1 + np.exp(-rng.choice([0, -1, 1, 3]) - rng.choice([0.5, 1, 2]) * odds))
    cluster = rng.integers(0, n // 8 + 2, n) if seed % 4 == 0 else None
    return (rng.random(n) < p).astype(int), s, cluster


@pytest.mark.parametrize("seed", range(30))
def test_no_more_is_recovered_than_is_lost(seed):
    y, s, cluster = wrong(seed)
    for cost in (0.1, (1, 40), 0.6, MATRIX):
        found = calibrant.regret(y, s, cost, cluster=cluster, rng=0)
        assert found.recovered <= found.value
        # The value is inside of its interval unless it is as small as it can be.
        assert found.low < found.value < found.high or found.value == found.low == 0
        assert (found.low > 0) == (found.p_value < 0.025)
        if found.threshold is None:
            continue
        best = calibrant.best_threshold(y, s, cost, cluster=cluster, rng=1)
        assert best.gain <= found.value
        assert best.gain_low <= found.low or best.gain_low <= 0
        assert best.gain_high <= found.high or found.high == pytest.approx(max(map(max, found.matrix)))
        assert best.gain_low < best.gain < best.gain_high
        assert best.cost_as_is == found.cost
        assert best.cost_recalibrated == pytest.approx(found.cost - found.recovered, rel=1e-12)
        decided = Decision(found, best).sentences
        assert ("compatible with none" in decided[0]) == (found.low == 0)
        assert (len(decided) > 1) <= (found.low > 0)

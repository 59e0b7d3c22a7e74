"""A study can change a setting at run time."""

import numpy as np
import pytest

import calibrant
from calibrant.settings import CLUSTERS, CURVES, DECISIONS, INTERVAL, MAPS, TEST


def interval(outcome, score):
    found = calibrant.estimate(outcome, score, rng=0)
    return found.low, found.high, found.null.mean


def p_value(outcome, score):
    return calibrant.estimate(outcome[:60], score[:60], rng=0).p_value


def clustered(outcome, score):
    return calibrant.estimate(outcome, score, rng=0, cluster=np.arange(score.size) // 5).high


def band(outcome, score):
    return calibrant.reliability_curve(outcome, score).at(0.5).low


def regret(outcome, score):
    return calibrant.regret(outcome, score, 0.3, rng=0).high


def mapped(outcome, score):
    rows = np.column_stack([score, 0.7 * (1 - score), 0.3 * (1 - score)])
    label = np.where(outcome, 0, 1 + np.arange(score.size) % 2)
    return calibrant.Calibrator("vector", labels=range(3)).fit(rows, label).predict_proba(rows)[0, 0]


@pytest.mark.parametrize(
    ("settings", "name", "value", "result"),
    [
        (INTERVAL, "tail_alpha_factor", 0.5, interval),
        (TEST, "level_shares", (0.5, 0.1, 0.1, 0.1, 0.1, 0.1), p_value),
        (CLUSTERS, "slow_functions", 8, clustered),
        (CURVES, "local_quantile_share", 1.0, band),
        (DECISIONS, "variance_floor_rows", 8.0, regret),
        (MAPS, "vector_sd", 0.1, mapped),
    ],
)
def test_a_changed_setting_changes_the_result(settings, name, value, result, monkeypatch):
    rng = np.random.default_rng(0)
    score = rng.random(300)
    outcome = rng.random(300) < score**1.5
    before = result(outcome, score)
    monkeypatch.setitem(vars(settings), name, value)
    assert result(outcome, score) != before

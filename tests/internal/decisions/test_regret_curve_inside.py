"""Curves over thresholds: net benefit by its definition, the worst decision, and two models compared."""

import numpy as np
import pytest

import calibrant
from calibrant.decisions.binary import BinaryDecisions, CostLines
from calibrant.decisions.interval import regret_intervals
from calibrant.inputs import predictions
from calibrant.tasks import CalibrationTask, get_notion

AT = np.arange(1, 10) / 10


def sample(n=150, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.random(n)
    return (rng.random(n) < score**2).astype(int), score


def test_a_curve_is_the_regrets_of_its_thresholds():
    y, s = sample()
    found = calibrant.regret_curve(y, s, thresholds=AT, rng=0)
    task = CalibrationTask.of(predictions(y, s), get_notion("binary"))
    for k in (0, 4, 8):
        single = BinaryDecisions.of(task, AT[k : k + 1])
        alone = regret_intervals(single, CostLines.of_thresholds(AT[k : k + 1]), 0.95)
        assert found.value[k] == pytest.approx(alone.value[0], rel=1e-9)
        # The band is wider than an interval.
        assert found.low[k] <= alone.low[0] + 1e-12
        assert found.high[k] >= alone.high[0] - 1e-12

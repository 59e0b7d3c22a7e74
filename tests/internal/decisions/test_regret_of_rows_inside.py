"""Decisions among several classes, by all scores of a row."""

import numpy as np
import pytest

import calibrant
from calibrant import Cost
from calibrant.decisions.canonical import CanonicalDecisions
from calibrant.inputs import predictions
from calibrant.tasks import CalibrationTask, get_notion
from oracles import decisions as oracle
from shortcuts import few_null_data_sets

# Three classes and four actions, the last of which is to abstain.
COST = np.array([[0, 1, 1, 0.3], [3, 0, 1, 0.3], [1, 0.5, 0, 0.3]])


@pytest.fixture(autouse=True)
def _few_simulations(monkeypatch):
    few_null_data_sets(monkeypatch)


def sample(n=150, classes=3, seed=0, power=0.4):
    """Return labels and overconfident scores."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(classes), n)
    truth = p**power / (p**power).sum(axis=1, keepdims=True)
    return (rng.random((n, 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1), p


def known_of(y, p, cost, weight=None, labels=None):
    task = CalibrationTask.of(predictions(y, p, sample_weight=weight, labels=labels), get_notion("canonical"))
    return CanonicalDecisions.of(task, Cost.of(cost, task.labels))


@pytest.mark.parametrize("weighted", [False, True])
def test_the_value_is_that_of_the_posterior_by_a_loop(weighted):
    y, p = sample()
    weight = np.random.default_rng(1).random(len(y)) + 0.5 if weighted else None
    known = known_of(y, p, COST, weight)
    chance = known.posterior.predict(known.rows.score)
    assert known.posterior.gap_probability > 0.9
    lost = oracle.regret(chance, known.rows.score, COST.tolist(), known.rows.weight)
    assert lost > 0.005
    expected = max(known.posterior.gap_probability * lost, float(known.gain.value[0]))
    assert known.value == pytest.approx(expected, rel=1e-9)
    found = calibrant.regret(y, p, COST, sample_weight=weight, rng=0)
    assert found.value == pytest.approx(known.value, rel=1e-9)
    assert found.cost == pytest.approx(oracle.spent(y, p, COST.tolist(), weight), rel=1e-9)
    gained = found.cost - oracle.spent(known.rows.code, known.held_out, COST.tolist(), known.rows.weight)
    assert known.gain.mean[0] == pytest.approx(gained, rel=1e-9)
    # What is reported is the posterior's gain by the same actions, at most one standard error away.
    after = known.excess_cost(chance, known.optimal_actions(known.held_out))
    fitted = known.posterior.gap_probability * (lost - np.average(after, weights=known.rows.weight))
    error = float(known.gain.error[0])
    assert found.recovered == pytest.approx(np.clip(fitted, gained - error, gained + error), rel=1e-9)


def test_an_abstaining_action_is_taken_where_no_class_is_sure():
    known = known_of(*sample(), COST)
    certain = np.vstack([np.eye(3), np.full((1, 3), 1 / 3)])
    np.testing.assert_array_equal(known.optimal_actions(certain), [0, 1, 2, 3])
    assert Cost.of(COST, (0, 1, 2)).dominated == ()
    # Of equally good actions the first is taken.
    assert known.optimal_actions(np.array([[0.0, 0.3, 0.7]]))[0] == 2
    tied = known_of(*sample(), np.array([[0, 0, 1], [1, 1, 0], [1, 1, 0]]))
    assert tied.optimal_actions(np.array([[0.5, 0.25, 0.25]]))[0] == 0

"""Decisions among several classes, by all scores of a row."""

import json

import numpy as np
import pytest

import calibrant
from calibrant import InputError, Regret
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


def same(one, other, **tolerance):
    for name in ("value", "low", "high", "recovered", "cost", "p_value", "n"):
        expected = pytest.approx(getattr(other, name), **({"rel": 1e-6, "abs": 1e-9} | tolerance))
        assert getattr(one, name) == expected, name


@pytest.mark.parametrize("seed", range(6))
def test_no_more_is_recovered_than_is_lost(seed):
    y, p = sample(60 + 100 * seed, seed=seed, power=[0.3, 1.0, 2.5][seed % 3])
    found = calibrant.regret(y, p, COST, rng=0)
    assert found.recovered <= found.value
    assert found.low < found.value < found.high or found.value == found.low == 0
    assert (found.low > 0) == (found.p_value < 0.025)


def test_interval_sentence_and_levels():
    y, p = sample()
    names = ["a", "b", "c", "ask"]
    found = calibrant.regret(y, p, COST, actions=names, rng=0)
    assert 0 <= found.low <= found.value <= found.high <= 3
    assert found.labels == (0, 1, 2)
    assert found.threshold is None
    assert " 3 classes, actions a, b, c, ask\n" in str(found)
    assert not found.lower_bound
    inner = calibrant.regret(y, p, COST, actions=names, level=0.5, rng=0)
    assert found.low <= inner.low
    assert inner.high < found.high
    assert Regret.from_json(json.dumps(found.to_dict())) == found
    assert calibrant.regret(y, p, COST, actions=names, rng=0) == found


def test_the_order_of_rows_and_classes_is_no_matter():
    y, p = sample(120)
    one = calibrant.regret(y, p, COST, rng=0)
    order = np.random.default_rng(1).permutation(len(y))
    same(calibrant.regret(y[order], p[order], COST, rng=0), one)
    names = np.array(["cat", "dog", "eel"])
    told = calibrant.regret(names[y], p, COST, labels=list(names), rng=0)
    same(told, one)
    for turn in ([2, 0, 1], [1, 0, 2]):
        turned = calibrant.regret(names[y], p[:, turn], COST[turn], labels=names[turn].tolist(), rng=0)
        same(turned, told)
        assert turned.labels == tuple(names[turn])
        assert turned.matrix == tuple(map(tuple, COST[turn].tolist()))


def test_the_order_of_actions_is_no_matter_but_for_ties():
    y, p = sample(120)
    turned = calibrant.regret(y, p, COST[:, [3, 1, 0, 2]], rng=0)
    same(turned, calibrant.regret(y, p, COST, rng=0))


def test_what_a_class_costs_in_any_case_is_no_regret():
    y, p = sample(120)
    one, moved = (
        calibrant.regret(y, p, cost, rng=0) for cost in (COST, COST + np.array([[1.0], [-2.0], [0.5]]))
    )
    for name in ("value", "low", "high", "recovered", "p_value"):
        assert getattr(moved, name) == pytest.approx(getattr(one, name), rel=1e-6, abs=1e-9)
    moves = np.array([1.0, -2.0, 0.5])[y].mean()
    assert moved.cost - one.cost == pytest.approx(moves)
    scaled = calibrant.regret(y, p, 50 * COST, rng=0)
    for name in ("value", "low", "high", "recovered", "cost"):
        assert getattr(scaled, name) == pytest.approx(50 * getattr(one, name), rel=1e-9, abs=1e-9)
    assert scaled.p_value == pytest.approx(one.p_value)


def test_a_count_is_so_many_rows_and_weights_have_no_scale():
    y, p = sample(100)
    count = np.random.default_rng(1).integers(1, 3, len(y))
    counted = calibrant.regret(y, p, COST, counts=count, rng=0)
    same(counted, calibrant.regret(np.repeat(y, count), np.repeat(p, count, axis=0), COST, rng=0))
    weight = np.random.default_rng(2).random(len(y)) + 0.5
    one, other = (calibrant.regret(y, p, COST, sample_weight=k * weight, rng=0) for k in (1, 1e4))
    same(other, one)


def test_what_is_lost_for_certain_is_told_from_noise():
    wrong = calibrant.regret(*sample(1000, power=0.3), COST, rng=0)
    assert wrong.p_value < 1e-4
    assert wrong.low > 0
    right = calibrant.regret(*sample(1000, power=1.0), COST, rng=0)
    assert right.p_value > 0.05
    assert right.low == 0
    assert right.value < 0.002


def test_two_classes_that_are_the_same_to_every_action_are_one():
    y, p = sample(200)
    # Actions about the first class alone.
    matrix = np.array([[0.0, 4.0], [1.0, 0.0], [1.0, 0.0]])
    whole = calibrant.regret(y, p, matrix, rng=0)
    alone = calibrant.regret(y, p, (1, 4), pos_label=0, rng=0)
    assert whole.cost == pytest.approx(alone.cost, rel=1e-9)
    assert whole.low <= alone.value <= whole.high
    assert alone.low <= whole.value <= alone.high


def test_beyond_twelve_classes_it_is_a_lower_bound():
    y, p = sample(80, classes=13)
    found = calibrant.regret(y, p, 1 - np.eye(13), rng=0)
    assert found.lower_bound
    assert "beyond 12 classes" in found.cautions[0]
    assert "at least " in str(found)
    assert found.low <= found.value <= found.high
    assert Regret.from_dict(found.to_dict()) == found


def test_one_class_of_many_may_be_asked_about():
    y, p = sample()
    found = calibrant.regret(y, p, (1, 4), pos_label=2, rng=0)
    same(found, calibrant.regret((y == 2).astype(int), p[:, 2], (1, 4), rng=0))
    assert found.labels == ("not 2", 2)


def test_clusters_are_refused_in_words():
    y, p = sample(40)
    with pytest.raises(InputError, match="cluster must go with one score at a time"):
        calibrant.regret(y, p, COST, cluster=np.arange(40) // 2)


@pytest.mark.parametrize("cost", [COST[:2], COST.T, np.ones((3, 1)), COST[:, :, None]])
def test_a_matrix_of_another_shape_is_refused(cost):
    y, p = sample(40)
    with pytest.raises(InputError, match="cost must have 3 rows, one for each class"):
        calibrant.regret(y, p, cost)


@pytest.mark.parametrize("labels", [[0], [0, 1, 2], [1, 1, 1, 1, 1, 1]])
def test_few_rows_have_an_answer(labels):
    p = np.random.default_rng(0).dirichlet(np.ones(3), len(labels))
    found = calibrant.regret(labels, p, COST, labels=[0, 1, 2], rng=0)
    assert 0 <= found.low <= found.value <= found.high <= 3
    assert np.isfinite([found.p_value, found.recovered, found.cost, found.null.mean]).all()
    certain = np.eye(3)[labels]
    assert calibrant.regret(labels, certain, COST, labels=[0, 1, 2], rng=0).cost == 0

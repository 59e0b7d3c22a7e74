"""Costs: every way to write them, their unit, their order, and what is wrong with them."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import calibrant
from calibrant import Cost, InputError
from shortcuts import few_null_data_sets

MATRIX = [[0.0, 1.0, 0.3], [5.0, 0.0, 0.3]]
CLASSES = [[0, 1, 1, 0.3], [3, 0, 1, 0.3], [1, 0.5, 0, 0.3]]


@pytest.fixture(autouse=True)
def _few_simulations(monkeypatch):
    few_null_data_sets(monkeypatch)


def sample(n=150, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.random(n)
    return (rng.random(n) < score**2).astype(int), score


def numbers(answer):
    found = [getattr(answer, name) for name in ("value", "low", "high", "recovered", "cost")]
    return np.array([*found, answer.null.mean])


def test_a_threshold_a_pair_and_a_matrix_say_the_same():
    y, s = sample()
    by_threshold = calibrant.regret(y, s, 0.1, rng=0)
    assert by_threshold.threshold == 0.1
    assert by_threshold.actions == ("act", "leave")
    by_matrix = calibrant.regret(y, s, [[0.1, 0], [0, 0.9]], actions=["act", "leave"], rng=0)
    np.testing.assert_allclose(numbers(by_matrix), numbers(by_threshold), rtol=1e-12)
    assert by_matrix.threshold is None
    # A pair is the sum of its costs times the answer at its threshold.
    for pair in ((1, 9), (0.25, 2.25), (1000, 9000)):
        by_pair = calibrant.regret(y, s, pair, rng=0)
        np.testing.assert_allclose(numbers(by_pair), sum(pair) * numbers(by_threshold), rtol=1e-12)
        assert by_pair.p_value == pytest.approx(by_threshold.p_value, rel=1e-12)
        assert by_pair.threshold == pytest.approx(0.1)


@pytest.mark.parametrize("unit", [2.0**-20, 1024.0, 1e9])
def test_answers_are_in_the_unit_of_the_costs(unit):
    y, s = sample()
    one = calibrant.regret(y, s, MATRIX, rng=0)
    scaled = calibrant.regret(y, s, unit * np.array(MATRIX), rng=0)
    np.testing.assert_allclose(numbers(scaled), unit * numbers(one), rtol=1e-12, atol=1e-12 * unit)
    assert scaled.p_value == pytest.approx(one.p_value, rel=1e-12)
    assert scaled.total == pytest.approx(unit * one.total)


def test_frames_and_mappings_name_their_actions():
    columns = {"no": [0.0, 5.0], "yes": [1.0, 0.0], "ask": [0.3, 0.3]}
    for cost in (columns, pd.DataFrame(columns), pl.DataFrame(columns)):
        found = Cost.of(cost, (0, 1))
        assert found.actions == ("no", "yes", "ask")
        np.testing.assert_array_equal(found.matrix, MATRIX)
    assert Cost.of(pd.DataFrame(columns), (0, 1), actions=["a", "b", "c"]).actions == ("a", "b", "c")
    assert Cost.of(MATRIX, (0, 1)).actions == ("1", "2", "3")
    assert Cost.of(CLASSES, ("a", "b", "c")).actions == ("1", "2", "3", "4")
    assert Cost.of(np.eye(2), ("a", "b")).actions == ("a", "b")
    assert Cost.of(pd.Series([1, 9]), (0, 1)).threshold == 0.1


def test_negative_entries_are_gains():
    y, s = sample()
    # By class another unit: what cannot be changed is no regret.
    moved = np.array(MATRIX) - [[2.0], [7.0]]
    one, other = calibrant.regret(y, s, MATRIX, rng=0), calibrant.regret(y, s, moved, rng=0)
    for name in ("value", "low", "high", "recovered", "p_value"):
        assert getattr(other, name) == pytest.approx(getattr(one, name), rel=1e-9)
    assert one.cost - other.cost == pytest.approx(2 + 5 * y.mean())


def test_a_false_alarm_may_pay():
    y, s = sample()
    always = calibrant.regret(y, s, (-1, 5), rng=0)
    assert always.threshold == -0.25
    assert always.value == always.recovered == 0
    assert always.cost == pytest.approx(-(1 - y).mean())
    assert always.cautions == ("the action 'leave' costs at least as much as another one in every class",)


def test_a_dominated_action_is_a_caution():
    y, s = sample()
    found = calibrant.regret(y, s, {"no": [0, 5], "yes": [1, 0], "worse": [1, 0.5]}, rng=0)
    assert found.cautions == ("the action 'worse' costs at least as much as another one in every class",)
    assert "'worse'" in str(found)
    plain = calibrant.regret(y, s, {"no": [0, 5], "yes": [1, 0]}, rng=0)
    assert plain.cautions == ()
    assert found.value == pytest.approx(plain.value)
    # Equal actions do not beat each other.
    assert Cost.of({"a": [0, 1], "b": [0, 1], "c": [1, 0]}, (0, 1)).dominated == ()


def test_scores_at_the_threshold_act():
    y, s = np.array([0, 1, 1, 0, 0]), np.array([0.2, 0.2, 0.3, 0.1, 1 - 0.8])
    assert calibrant.regret(y, s, 0.2, rng=0).cost == pytest.approx(2 * 0.2 / 5)
    # Of equally good actions the first is taken.
    leaving_first = calibrant.regret(y, s, [[0, 0.2], [0.8, 0]], rng=0)
    assert leaving_first.cost == pytest.approx(0.8 / 5)


@pytest.mark.full
def test_rows_of_a_matrix_are_in_the_order_of_the_labels():
    y, s = sample()
    names, matrix = np.where(y, "sick", "well"), [[0, 9], [1, 0]]  # of the sick and of the well
    expected = calibrant.regret(y, s, (1, 9), rng=0)
    two = np.stack([s, 1 - s], axis=1)
    for p, labels, pos_label, cost in [
        (s, ["sick", "well"], "sick", matrix),
        (s, ["well", "sick"], "sick", matrix[::-1]),
        (s, None, "sick", matrix[::-1]),
        (1 - s, None, "well", matrix),
        (two, ["sick", "well"], "sick", matrix),
        (two, ["sick", "well"], "well", matrix),
        (two, ["sick", "well"], None, matrix),
        (two[:, ::-1], ["well", "sick"], None, matrix[::-1]),
        (two[:, ::-1], ["well", "sick"], "well", matrix[::-1]),
    ]:
        found = calibrant.regret(names, p, cost, labels=labels, pos_label=pos_label, rng=0)
        assert found.value == pytest.approx(expected.value, rel=1e-6)
        assert found.cost == pytest.approx(expected.cost, rel=1e-9)
        # What is reported is the same matrix, in the order that is reported.
        assert np.array(found.matrix)[list(found.labels).index("sick")].tolist() == [0, 9]
    for pos_label, pair in (("sick", (1, 9)), ("well", (9, 1))):
        found = calibrant.regret(names, two, pair, labels=["sick", "well"], pos_label=pos_label, rng=0)
        assert found.value == pytest.approx(expected.value, rel=1e-6)
        assert found.label == pos_label


def test_sketches_and_assessments_take_the_order_of_the_labels(without_reference_estimators):
    y, s = sample()
    names, matrix = np.where(y, "sick", "well"), [[0, 9], [1, 0]]
    named = {"labels": ["sick", "well"], "pos_label": "sick"}
    expected = calibrant.regret(y, s, (1, 9), rng=0)
    sketch = calibrant.Sketch(**named).update(names, s)
    assert sketch.regret(matrix, rng=0).value == pytest.approx(expected.value)
    assert sketch.best_threshold(matrix, rng=0).implied_threshold == pytest.approx(0.1)
    found = calibrant.assess(names, s, cost=matrix, rng=0, **named).decision.regret
    assert found.value == pytest.approx(expected.value)
    by_class = {"wait": {"well": 0, "sick": 9}, "treat": {"sick": 0, "well": 1}}
    assert calibrant.regret(names, s, by_class, pos_label="sick", rng=0).cost == pytest.approx(expected.cost)


def test_actions_are_named_in_the_order_of_their_columns():
    assert Cost.of_outcome([[0, 1], [9, 0]], ("sick", "well"), 0).actions == ("sick", "well")
    assert Cost.of_outcome([[0, 1], [9, 0]], ("sick", "well"), 1).actions == ("sick", "well")
    assert Cost.of_outcome([[0, 1], [9, 0]], ("a", "b", "c"), 1).labels == ("not b", "b")
    assert Cost.of_outcome([[0, 1], [9, 0]], (None, "b"), 1).labels == ("not b", "b")
    assert Cost.of_outcome([[0, 1], [9, 0]], (("a", "c"), "b"), 1).labels == ("not b", "b")


def test_a_cost_may_be_read_before():
    y, s = sample()
    names = np.where(y, "sick", "well")
    cost = Cost.of([[0, 9], [1, 0]], ("sick", "well"))
    found = calibrant.regret(names, s, cost, pos_label="sick", rng=0)
    assert found.value == pytest.approx(calibrant.regret(y, s, (1, 9), rng=0).value)
    pair = Cost.of((1, 9), ("well", "sick"))
    assert calibrant.regret(names, s, pair, pos_label="sick", rng=0).threshold == 0.1
    with pytest.raises(InputError, match="cost must be of the classes 0, 1, got 'sick', 'well'"):
        calibrant.regret(y, s, cost)


@pytest.mark.full
@pytest.mark.parametrize(("text", "cost"), [("0.3", 0.3), ("1:40", (1, 40)), (" 1 , 40 ", (1, 40))])
def test_text_names_a_threshold_or_two_costs(text, cost, without_reference_estimators):
    y, s = sample()
    assert calibrant.regret(y, s, text, rng=0) == calibrant.regret(y, s, cost, rng=0)
    assert calibrant.best_threshold(y, s, text) == calibrant.best_threshold(y, s, cost)
    sketch = calibrant.Sketch().update(y, s)
    assert sketch.regret(text, rng=0) == sketch.regret(cost, rng=0)
    assert sketch.best_threshold(text) == sketch.best_threshold(cost)
    found = calibrant.assess(y, s, cost=text, rng=0).decision
    assert found.regret.threshold == calibrant.regret(y, s, cost, rng=0).threshold


def test_a_matrix_of_two_actions_is_a_threshold():
    found = Cost.of({"wait": [3, 12], "treat": [4, 3]}, (0, 1)).as_threshold()
    assert found.threshold == pytest.approx(0.1)
    assert found.actions == ("treat", "wait")
    np.testing.assert_array_equal(found.matrix, [[4, 3], [3, 12]])
    with pytest.raises(InputError, match="cost must be a threshold, two costs, or a matrix of two actions"):
        Cost.of([[0, 1], [5, 6]], (0, 1)).as_threshold()


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        (np.nan, "hold finite numbers, got nan"),
        ((1, np.inf), "hold finite numbers, got inf"),
        ([[0, 1], [np.nan, 0]], "hold finite numbers, got nan"),
        (None, "hold finite numbers"),
        (0, "lie strictly between 0 and 1 where it is a threshold, got 0.0"),
        (1, "lie strictly between 0 and 1 where it is a threshold, got 1.0"),
        (-0.1, "lie strictly between 0 and 1 where it is a threshold, got -0.1"),
        ((0, 0), "have a positive sum: a false alarm and a miss cannot both pay"),
        ((-2, 1), "have a positive sum"),
        ("cheap", "be a threshold such as 0.2 or two costs such as 1:9 where it is text, got 'cheap'"),
        ("", "be a threshold such as 0.2 or two costs such as 1:9 where it is text, got ''"),
        ("1:2:3", "be a threshold such as 0.2 or two costs such as 1:9 where it is text, got '1:2:3'"),
        ("1:", "be a threshold such as 0.2 or two costs such as 1:9 where it is text"),
        ("1.5", "lie strictly between 0 and 1 where it is a threshold, got 1.5"),
        ("nan:1", "hold finite numbers, got nan"),
        ([["a", "b"], ["c", "d"]], "be a threshold, two costs or a matrix of numbers"),
        ([[0, 1], [2]], "be a threshold, two costs or a matrix of numbers"),
        ([], "have 2 rows, one for each class, and a column for each of two or more actions"),
        ({}, "have 2 rows"),
        ([1, 2, 3], r"have 2 rows.*got the shape \(3,\)"),
        ([[0], [1]], r"have 2 rows.*got the shape \(2, 1\)"),
        (CLASSES, r"have 2 rows.*got the shape \(3, 4\)"),
        ([[[0, 1], [1, 0]]], "have 2 rows"),
        ({"a": [0, 1], "b": [0, 1, 2]}, r"have 2 costs of each action.*got the shape \(3,\) of 'b'"),
        ({"a": [0, 1], "b": 3}, "have 2 costs of each action"),
        ([[1, 1], [2, 2]], "differ between actions"),
        ([[0, 1e200], [0, 0]], "differ between actions, by 1e-100 to 1e.100, got 1e.200"),
        ([[0, 1e308], [1e308, -1e308]], "differ between actions"),
        ((1e-300, 1e-300), "differ between actions"),
        (pd.DataFrame([[0, 1], [1, 0]], columns=["a", "a"]), "have 2 different names of actions"),
        ({1: [0, 1], "1": [1, 0]}, "have 2 different names of actions"),
    ],
)
def test_what_is_wrong_with_a_cost_is_said(cost, message):
    y, s = sample(20)
    with pytest.raises(InputError, match=f"^cost must {message}"):
        calibrant.regret(y, s, cost)
    with pytest.raises(InputError, match=f"^cost must {message}"):
        calibrant.Sketch().update(y, s).best_threshold(cost)


@pytest.mark.parametrize("cost", [0.3, (1, 9)])
def test_two_costs_are_of_two_classes(cost):
    p = np.random.default_rng(0).dirichlet(np.ones(3), 20)
    with pytest.raises(InputError, match="cost must be a matrix of 3 rows, one for each class"):
        calibrant.regret(np.arange(20) % 3, p, cost)
    assert calibrant.regret(np.arange(20) % 3, p, cost, pos_label=2, rng=0).labels == ("not 2", 2)


def test_names_of_actions_are_checked():
    y, s = sample(20)
    for names in (["a", "a"], ["a"], ["a", "b", "c"]):
        with pytest.raises(InputError, match="actions must be 2 different names of actions"):
            calibrant.regret(y, s, [[0, 1], [1, 0]], actions=names)
    for cost in (0.3, (1, 9)):
        with pytest.raises(InputError, match="actions must be left out"):
            calibrant.regret(y, s, cost, actions=["a", "b"])

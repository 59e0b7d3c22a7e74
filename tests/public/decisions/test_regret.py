"""Regret: against loops over rows, from every kind of score data, and as it is stored."""

import json

import numpy as np
import pytest

import calibrant
from calibrant import InputError, Regret, Sketch
from oracles import decisions as oracle
from shortcuts import few_null_data_sets

MATRIX = [[0.0, 1.0, 0.3], [5.0, 0.0, 0.3]]
COSTS = (0.1, 0.5, (1, 9), MATRIX)


@pytest.fixture(autouse=True)
def _few_simulations(monkeypatch):
    few_null_data_sets(monkeypatch)


def sample(n=150, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.random(n)
    return (rng.random(n) < score**2).astype(int), score


def numbers(answer):
    names = ("value", "low", "high", "recovered", "cost", "p_value", "n")
    return np.array([*(getattr(answer, name) for name in names), answer.null.mean])


def same(one, other, **tolerance):
    np.testing.assert_allclose(numbers(one), numbers(other), **({"rtol": 1e-9, "atol": 1e-12} | tolerance))


def matrix_of(answer):
    return [list(row) for row in answer.matrix]


@pytest.mark.full
@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_value_is_that_of_the_default_map_by_a_loop(cost, weighted):
    y, s = sample()
    s = np.round(s, 2)  # with ties
    weight = np.random.default_rng(1).random(len(y)) + 0.5 if weighted else None
    found = calibrant.regret(y, s, cost, sample_weight=weight, rng=0)
    chance = calibrant.Calibrator().fit(s, y, weight).predict_proba(s)
    by_class = [np.stack([1 - p, p], axis=1) for p in (chance, s)]
    expected = oracle.regret(*by_class, matrix_of(found), weight)
    assert expected > 0
    # What was gained on other rows is lost as well.
    gains = [found.recovered]
    if found.threshold is not None:
        gains.append(calibrant.best_threshold(y, s, cost, sample_weight=weight).gain)
    assert found.value == pytest.approx(max(expected, *gains), rel=1e-9)
    assert found.cost == pytest.approx(oracle.spent(y, by_class[1], matrix_of(found), weight), rel=1e-9)


@pytest.mark.full
@pytest.mark.parametrize("cost", COSTS)
def test_the_order_of_the_rows_is_no_matter(cost):
    y, s = sample()
    order = np.random.default_rng(5).permutation(len(y))
    same(calibrant.regret(y, s, cost, rng=0), calibrant.regret(y[order], s[order], cost, rng=0))
    weight = np.random.default_rng(6).random(len(y)) + 0.5
    shuffled = calibrant.regret(y[order], s[order], cost, sample_weight=weight[order], rng=0)
    same(calibrant.regret(y, s, cost, sample_weight=weight, rng=0), shuffled)


def test_a_count_is_so_many_rows():
    y, s = sample()
    s = np.round(s, 2)
    count = np.random.default_rng(2).integers(0, 4, len(y))
    counted = calibrant.regret(y, s, (1, 9), counts=count, rng=0)
    same(counted, calibrant.regret(np.repeat(y, count), np.repeat(s, count), (1, 9), rng=0))


def test_importance_weights_have_no_scale():
    y, s = sample()
    weight = np.random.default_rng(2).random(len(y)) + 0.1
    one = calibrant.regret(y, s, (1, 9), sample_weight=weight, rng=0)
    assert one.n < len(y)
    for scale in (1e-3, 7.0, 1e6):
        same(calibrant.regret(y, s, (1, 9), sample_weight=scale * weight, rng=0), one)


@pytest.mark.full
@pytest.mark.parametrize("n", [300, 8192])
def test_a_sketch_answers_as_the_rows_do(n):
    y, s = sample(n)
    whole = Sketch().update(y, s)
    merged = Sketch().update(y[: n // 3], s[: n // 3]) + Sketch().update(y[n // 3 :], s[n // 3 :])
    for cost in (0.25, (1, 3), [[0, 1, 0.25], [1, 0, 0.25]]):
        rows = calibrant.regret(y, s, cost, rng=0)
        same(whole.regret(cost, rng=0), rows)
        same(merged.regret(cost, rng=0), rows)


def test_a_sketch_of_many_tied_rows_takes_a_cell_as_one():
    y, s = sample(400)
    found = Sketch().update(y, s).regret(0.3, rng=0)
    assert found.value == pytest.approx(calibrant.regret(y, s, 0.3, rng=0).value, rel=0.02)


def test_a_sketch_of_other_scores_is_refused():
    y, s = sample(30)
    sketch = Sketch("confidence").update(y, np.stack([1 - s, s], axis=1))
    for ask in (lambda: sketch.regret(0.3), sketch.regret_curve, lambda: sketch.best_threshold(0.3)):
        with pytest.raises(InputError, match="sketch must be a sketch of the score of one class"):
            ask()


@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_narrow_scores_are_the_numbers_they_hold(kind):
    y, s = sample()
    narrow = s.astype(kind)
    same(
        calibrant.regret(y, narrow, (1, 9), rng=0),
        calibrant.regret(y, narrow.astype(np.float64), (1, 9), rng=0),
    )


def test_two_columns_say_what_one_does():
    y, s = sample()
    one = calibrant.regret(y, s, MATRIX, rng=0)
    same(calibrant.regret(y, np.stack([1 - s, s], axis=1), MATRIX, rng=0), one)


def test_clusters_of_one_row_are_rows():
    y, s = sample()
    for cost in (0.3, MATRIX):
        alone = calibrant.regret(y, s, cost, cluster=np.arange(len(y)), rng=0)
        np.testing.assert_allclose(numbers(alone), numbers(calibrant.regret(y, s, cost, rng=0)), rtol=1e-9)


def test_clusters_that_are_worth_next_to_no_rows_have_an_answer():
    weight = np.array([5.1e5, 3.05, 5.5e-4])
    found = calibrant.regret(
        [0, 0, 0], [0.3, 0.1, 0.2], (1, 3), sample_weight=weight, cluster=[0, 0, 1], labels=[0, 1], rng=0
    )
    assert 0 <= found.low <= found.value <= found.high <= 3


ODD = {
    "one row": ([1], [0.3]),
    "two rows": ([0, 1], [0.3, 0.6]),
    "one class": (np.zeros(40, dtype=int), np.linspace(0.05, 0.9, 40)),
    "the other class": (np.ones(40, dtype=int), np.linspace(0.05, 0.9, 40)),
    "equal scores": (np.arange(40) % 4 == 0, np.full(40, 0.4)),
    "certain scores": (np.arange(40) % 3 == 0, (np.arange(40) % 2).astype(float)),
    "all zero": (np.arange(40) % 3 == 0, np.zeros(40)),
    "all at the threshold": (np.arange(40) % 3 == 0, np.full(40, 0.3)),
}


@pytest.mark.full
@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("cost", [0.3, (2, 3), MATRIX])
def test_odd_samples_have_an_answer(name, cost):
    y, s = ODD[name]
    found = calibrant.regret(np.asarray(y, dtype=int), s, cost, rng=0)
    assert 0 <= found.low <= found.value <= found.high
    assert np.isfinite(numbers(found)).all()
    assert 0 < found.p_value <= 1
    assert Regret.from_dict(found.to_dict()) == found


def test_who_is_never_right_loses_nearly_everything():
    y = np.arange(100) % 2
    found = calibrant.regret(y, 1.0 - y, 0.3, rng=0)
    assert found.cost == pytest.approx(0.5)
    assert found.value == pytest.approx(0.5, abs=0.05)
    assert found.recovered == pytest.approx(0.5, abs=0.05)


def test_the_seed_repeats_the_answer():
    y, s = sample()
    s = np.round(s, 1)
    first = calibrant.regret(y, s, 0.3)
    assert calibrant.regret(y, s, 0.3, rng=first.seed) == first
    assert calibrant.regret(y, s, 0.3, rng=np.random.default_rng(3)) == calibrant.regret(
        y, s, 0.3, rng=np.random.default_rng(3)
    )
    assert calibrant.regret(y, s, 0.3, rng=1).null != calibrant.regret(y, s, 0.3, rng=2).null


@pytest.mark.full
def test_what_is_lost_for_certain_is_told_from_noise(monkeypatch):
    few_null_data_sets(monkeypatch, 50)
    rng = np.random.default_rng(0)
    s = rng.random(2000)
    wrong = calibrant.regret((rng.random(2000) < s**3).astype(int), s, 0.3, rng=0)
    assert wrong.p_value <= 1e-6
    assert "p <= 1e-06" in str(wrong)
    assert wrong.low > 20 * wrong.null.mean
    right = calibrant.regret((rng.random(2000) < s).astype(int), s, 0.3, rng=0)
    assert right.p_value > 0.1
    assert right.low == 0
    assert right.value <= right.null.quantiles[0.95] + 1e-3


def test_the_sentence_says_what_is_decided():
    y, s = sample()
    found = calibrant.regret(y, s, (1, 9), rng=0)
    text = str(found)
    assert "a false alarm costs 1, a miss 9 (act when the score is at least 0.1)" in " ".join(text.split())
    assert text.startswith(f"decision regret         {found.value:.4f} per row (95 % interval ")
    assert "(H0: no decision regret)" in text
    assert f"of all rows             {found.total:.2f}\n" in text
    assert found.total == pytest.approx(150 * found.value)
    assert float(found) == found.value
    assert repr(found).startswith(f"Regret({found.value:.4f} [")
    three = calibrant.regret(y, s, MATRIX, actions=["no", "yes", "ask"], rng=0)
    assert " 2 classes, actions no, yes, ask\n" in str(three)


@pytest.mark.parametrize("cost", [0.3, (1, 9), (-1, 5), (1e12, 3e12), MATRIX])
def test_what_is_stored_comes_back(cost):
    y, s = sample(60)
    found = calibrant.regret(np.where(y, "b", "a"), s, cost, pos_label="b", rng=0)
    assert Regret.from_dict(found.to_dict()) == found
    assert Regret.from_json(json.dumps(found.to_dict())) == found


def test_labels_are_stored_as_json_has_them():
    y, s = sample(30)
    found = calibrant.regret(np.where(y, 2, 5).astype(np.int8), s, 0.3, pos_label=np.int8(2), rng=0)
    assert Regret.from_json(json.dumps(found.to_dict())).labels == (5, 2)
    many = calibrant.regret([0, 1, 2, 1], [0.2, 0.4, 0.5, 0.6], 0.3, labels=[0, 1, 2], pos_label=1, rng=0)
    assert Regret.from_json(json.dumps(many.to_dict())) == many


@pytest.mark.full
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"value": 99}, r"regret.value must lie in \[0, 9\], got 99"),
        ({"value": np.nan}, "regret.value must be finite"),
        ({"value": "much"}, "regret.value must be a number"),
        ({"low": 5.0}, "regret.low must not be above value"),
        ({"value": 0.1, "high": 0.0}, "regret.value must not be above high"),
        ({"level": 1}, "regret.level must lie strictly between 0 and 1"),
        ({"p_value": 1.5}, "regret.p_value must lie in"),
        ({"n": 0}, "regret.n must be above 0"),
        ({"recovered": -20}, "regret.recovered must lie in"),
        ({"cost": 30}, "regret.cost must lie in"),
        ({"null": 3}, "regret.null must be a mapping"),
        ({"null": {"mean": 0}}, "regret.null.quantiles must be given"),
        ({"null": {"mean": 0, "quantiles": {"x": 0}}}, "regret.null.quantiles must have numbers as names"),
        ({"labels": 5}, "regret.labels must be a list"),
        ({"labels": [0]}, "regret.matrix must have 1 rows"),
        ({"labels": [{}, 1]}, r"regret.labels\[0\] must be a label"),
        ({"actions": ["a", "a"]}, "must be 2 different names"),
        ({"actions": None}, "regret.actions must be a list"),
        ({"matrix": "x"}, "regret.matrix must be a list"),
        ({"matrix": [1, 9]}, r"regret.matrix\[0\] must be a list"),
        ({"matrix": [[0, np.inf], [9, 0]]}, r"regret.matrix\[0\]\[1\] must be finite, got inf"),
        ({"matrix": [[0, 1, 2], [9, 0, 1]]}, "must have 2 entries, got 3"),
        ({"threshold": 0.7}, "regret.threshold must be that of the matrix, 0.1, got 0.7"),
        ({"threshold": "x"}, "regret.threshold must be a number"),
        ({"label": {}}, "regret.label must be a label"),
        ({"lower_bound": "no"}, "regret.lower_bound must be true or false"),
        ({"cautions": "careful"}, "regret.cautions must be a list"),
        ({"seed": 0.5}, "regret.seed must be a whole number"),
        ({"more": 1}, "regret.more must be a known field"),
    ],
)
def test_what_no_regret_can_be_is_refused(change, message):
    y, s = sample(30)
    with pytest.raises(InputError, match=message):
        Regret.from_dict(calibrant.regret(y, s, (1, 9), rng=0).to_dict() | change)


def test_what_is_no_record_is_refused():
    with pytest.raises(InputError, match="regret must be a mapping"):
        Regret.from_dict([1])
    with pytest.raises(InputError, match=r"regret\.value must be given"):
        Regret.from_dict({"schema": 1})
    with pytest.raises(InputError, match="regret must be JSON"):
        Regret.from_json("{")


def test_the_level_is_checked():
    y, s = sample(30)
    for ask in (
        lambda: calibrant.regret(y, s, 0.3, level=2),
        lambda: calibrant.regret_curve(y, s, level=0),
        lambda: calibrant.best_threshold(y, s, 0.3, level=np.nan),
    ):
        with pytest.raises(InputError, match="level must be a number strictly between 0 and 1"):
            ask()

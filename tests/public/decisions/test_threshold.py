"""The best threshold: near the known one, and its cost judged on other rows."""

import json
import math

import numpy as np
import pytest

import calibrant
from calibrant import BestThreshold, InputError, Sketch
from oracles import decisions as oracle


def sample(n=300, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.random(n)
    return (rng.random(n) < score**2).astype(int), score


def numbers(found):
    stored = found.to_dict()
    return np.array([float(stored[name]) for name in stored if name not in ("label", "costs", "clusters")])


def test_the_known_best_threshold_is_found():
    y, s = sample(4000)
    found = calibrant.best_threshold(y, s, 0.1, rng=0)
    assert found.implied_threshold == 0.1
    assert found.value == pytest.approx(math.sqrt(0.1), abs=0.06)
    assert found.low <= math.sqrt(0.1) <= found.high
    assert found.low <= found.value <= found.high
    assert found.high - found.low < 0.2
    assert found.gain_low > 0
    # By integrals of the family: acting from r on costs t E(1 - y; s >= r) + (1 - t) E(y; s < r).
    r = math.sqrt(0.1)
    best = 0.1 * ((1 - r) - (1 - r**3) / 3) + 0.9 * r**3 / 3
    assert found.cost_low <= best <= found.cost_high
    assert found.cost == pytest.approx(best, abs=0.01)


def test_what_is_gained_is_what_it_costs_less():
    y, s = sample()
    found = calibrant.best_threshold(y, s, (1, 9), rng=0)
    assert found.cost == pytest.approx(found.cost_as_is - found.gain, rel=1e-9)
    assert found.cost_low < found.cost < found.cost_high
    assert found.gain_low < found.gain < found.gain_high
    by_class = np.stack([1 - s, s], axis=1)
    assert found.cost_as_is == pytest.approx(oracle.spent(y, by_class, [[1, 0], [0, 9]]), rel=1e-9)
    regret = calibrant.regret(y, s, (1, 9), rng=0)
    assert found.cost_recalibrated == pytest.approx(regret.cost - regret.recovered, rel=1e-9)
    assert float(found) == found.value


def test_costs_are_in_their_unit():
    y, s = sample()
    one, other = (calibrant.best_threshold(y, s, pair, rng=0) for pair in ((1, 9), (100, 900)))
    assert (one.value, one.low, one.high) == (other.value, other.low, other.high)
    for name in (
        "cost",
        "cost_low",
        "cost_high",
        "cost_as_is",
        "cost_recalibrated",
        "gain",
        "gain_low",
        "gain_high",
    ):
        assert getattr(other, name) == pytest.approx(100 * getattr(one, name), rel=1e-9)


def test_a_matrix_of_two_actions_is_two_costs():
    y, s = sample()
    pair = calibrant.best_threshold(y, s, (1, 9), rng=0)
    for matrix in ([[0, 1], [9, 0]], [[1, 0], [0, 9]]):
        found = calibrant.best_threshold(y, s, matrix, rng=0)
        np.testing.assert_allclose(numbers(found), numbers(pair), rtol=1e-9, atol=1e-12)
    # What both actions cost is spent, and not gained.
    dear = calibrant.best_threshold(y, s, [[2, 3], [14, 5]], rng=0)
    assert dear.value == pair.value
    assert dear.gain == pytest.approx(pair.gain, rel=1e-9)
    assert dear.cost == pytest.approx(pair.cost + 2 + 3 * y.mean(), rel=1e-9)
    with pytest.raises(InputError, match=r"cost must be a threshold.*got a matrix of the shape \(2, 3\)"):
        calibrant.best_threshold(y, s, [[0, 1, 0.3], [5, 0, 0.3]])
    with pytest.raises(InputError, match="cost must have 2 rows"):
        calibrant.best_threshold(y, s, np.ones((3, 3)) - np.eye(3))


def test_rows_of_a_matrix_are_in_the_order_of_the_labels():
    y, s = sample()
    names = np.where(y, "sick", "well")
    found = calibrant.best_threshold(
        names, s, [[0, 9], [1, 0]], labels=["sick", "well"], pos_label="sick", rng=0
    )
    np.testing.assert_allclose(numbers(found), numbers(calibrant.best_threshold(y, s, (1, 9), rng=0)))
    assert found.label == "sick"


@pytest.mark.parametrize(
    ("outcome", "threshold", "word"), [(1, 0.0, "always act"), (0, math.inf, "never act")]
)
def test_always_and_never(outcome, threshold, word):
    y, s = np.full(200, outcome), np.linspace(0.1, 0.9, 200)
    found = calibrant.best_threshold(y, s, 0.5, rng=0)
    assert found.value == threshold
    assert word in str(found)
    # Rows beyond all that a fold has seen are acted on as the costs say.
    assert 0 <= found.cost <= 0.011
    assert found.gain == pytest.approx(found.cost_as_is, abs=0.011)
    stored = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert stored["value"] == ("inf" if outcome == 0 else 0.0)


def test_costs_may_say_always_or_never():
    y, s = sample(100)
    always, never = (calibrant.best_threshold(y, s, pair, rng=0) for pair in ((-1, 5), (5, -1)))
    assert (always.implied_threshold, always.value, always.low) == (-0.25, 0.0, 0.0)
    assert (never.implied_threshold, never.value, never.high) == (1.25, math.inf, math.inf)
    assert "always act (95 % interval of the threshold always to always)" in " ".join(str(always).split())
    assert "threshold of the costs  -0.25" in str(always)
    for found in (always, never):
        assert BestThreshold.from_dict(found.to_dict()) == found


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"value": 2}, "best_threshold.value must lie in"),
        ({"low": 0.9, "high": 0.95}, "best_threshold.low must not be above value"),
        ({"cost_low": 3}, "best_threshold.cost_low must not be above cost"),
        ({"gain": -9}, "best_threshold.gain_low must not be above gain"),
        ({"level": 1}, "best_threshold.level must lie strictly between"),
        ({"n": 0}, "best_threshold.n must be above 0"),
        ({"cost": "x"}, "best_threshold.cost must be a number"),
        ({"label": {}}, "best_threshold.label must be a label"),
    ],
)
def test_what_is_stored_comes_back_or_is_refused(change, message):
    y, s = sample(100)
    found = calibrant.best_threshold(y, s, (1, 9), rng=0)
    stored = json.loads(json.dumps(found.to_dict()))
    assert BestThreshold.from_dict(stored) == found
    with pytest.raises(InputError, match=message):
        BestThreshold.from_dict(stored | change)


def test_right_scores_keep_the_threshold_of_the_costs():
    rng = np.random.default_rng(0)
    s = rng.integers(1, 10, 3000) / 10
    y = (rng.random(3000) < s).astype(int)
    found = calibrant.best_threshold(y, s, 0.35, rng=0)
    assert found.value == 0.35
    assert found.gain == pytest.approx(0, abs=0.005)
    assert ") more than at" in str(found) or ") less than at" in str(found)


def test_the_sentence():
    y, s = sample()
    found = calibrant.best_threshold(y, s, (1, 9), rng=0)
    text = " ".join(str(found).split())
    assert f"act when the score is at least {found.value:.3f} (" in text
    assert f"threshold of the costs 0.1 cost {found.cost:.3f} per row" in text
    assert repr(found) == f"BestThreshold({found.value:.3f}, cost {found.cost:.3f} per row, n=300)"


def test_a_sketch_answers_as_the_rows_do():
    y, s = sample()
    rows = calibrant.best_threshold(y, s, (1, 3), rng=0)
    merged = Sketch().update(y[:100], s[:100]) + Sketch().update(y[100:], s[100:])
    np.testing.assert_allclose(numbers(merged.best_threshold((1, 3), rng=0)), numbers(rows), rtol=1e-9)


def test_counts_order_weights_and_clusters_of_one():
    y, s = sample()
    plain = numbers(calibrant.best_threshold(y, s, 0.2, rng=0))
    order = np.random.default_rng(1).permutation(len(y))
    for found in (
        calibrant.best_threshold(y[order], s[order], 0.2, rng=0),
        calibrant.best_threshold(y, s, 0.2, cluster=np.arange(len(y)), rng=0),
        calibrant.best_threshold(y, np.stack([1 - s, s], axis=1), 0.2, rng=0),
    ):
        np.testing.assert_allclose(numbers(found), plain, rtol=0.01)
    count = np.random.default_rng(2).integers(1, 3, len(y))
    counted = calibrant.best_threshold(y, s, 0.2, counts=count, rng=0)
    repeated = calibrant.best_threshold(np.repeat(y, count), np.repeat(s, count), 0.2, rng=0)
    np.testing.assert_allclose(numbers(counted), numbers(repeated), rtol=1e-9)
    weight = np.random.default_rng(3).random(len(y)) + 0.5
    one, other = (calibrant.best_threshold(y, s, 0.2, sample_weight=k * weight, rng=0) for k in (1, 1e5))
    np.testing.assert_allclose(numbers(one), numbers(other), rtol=1e-9)


@pytest.mark.parametrize(
    ("y", "s"),
    [
        ([1], [0.3]),
        (np.arange(30) % 2, np.full(30, 0.4)),
        (np.arange(30) % 2, (np.arange(30) % 3 > 0).astype(float)),
    ],
)
def test_odd_samples_have_an_answer(y, s):
    found = calibrant.best_threshold(y, s, 0.3, rng=0)
    assert found.cost == pytest.approx(found.cost_as_is - found.gain)
    assert found.low <= found.value <= found.high
    assert 0 <= found.cost <= 0.7


def test_no_end_of_a_gain_lies_where_no_gain_can():
    few = calibrant.best_threshold([1, 0, 1, 0], [0.9, 0.2, 0.4, 0.3], (1, 9), cluster=[0, 0, 1, 1])
    assert -9 <= few.gain_low <= few.gain <= few.gain_high <= 9


def test_no_end_of_a_cost_lies_where_no_cost_can():
    few = calibrant.best_threshold([1, 0, 1], [0.9, 0.2, 0.4], (1, 9), rng=0)
    assert few.cost_low == 0
    assert few.cost_high <= 9

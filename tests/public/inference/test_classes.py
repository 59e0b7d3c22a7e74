"""Many classes: fewer cells and sets, labels of rows drawn jointly, and what any dependence allows."""

import numpy as np
import pytest

import calibrant
from calibrant import Sketch

CLASSES = 24


def model(n=900, power=1.0, seed=0, classes=CLASSES):
    """Labels and scores; a power makes the scores too sharp."""
    rng = np.random.default_rng(seed)
    true = rng.dirichlet(np.geomspace(0.1, 1.0, classes), n)
    label = (rng.random((n, 1)) >= np.cumsum(true, axis=1)[:, :-1]).sum(axis=1)
    score = np.maximum(true, 1e-12) ** power
    return label, score / score.sum(axis=1, keepdims=True)


@pytest.fixture(scope="module")
def found():
    """By power: the estimate from rows and from a sketch."""
    made = {}
    for power in (1.0, 1.6):
        y, p = model(power=power)
        rows = calibrant.estimate(y, p, notion="classwise", rng=0, labels=range(CLASSES))
        made[power] = rows, Sketch("classwise", labels=range(CLASSES)).update(y, p).estimate(rng=0)
    return made


@pytest.mark.full
def test_many_classes_have_the_value_of_ece_and_an_interval_around_it(found):
    for power, pair in found.items():
        y, p = model(power=power)
        sketch = Sketch("classwise", labels=range(CLASSES)).update(y, p)
        expected = calibrant.ece(y, p, notion="classwise", labels=range(CLASSES)), sketch.ece()
        for one, value in zip(pair, expected, strict=True):
            assert one.value == pytest.approx(value, rel=1e-9)
            assert 0 <= one.low <= one.value <= one.high <= 1
            assert list(one.by_class) == list(range(CLASSES))
            for each in one.by_class.values():
                assert 0 <= each.low <= each.value <= each.high <= 1
            assert np.mean([each.value for each in one.by_class.values()]) == pytest.approx(one.value)
        assert [one.conservative for one in pair] == [False, True]


def test_many_classes_are_tested_together(found):
    for rows_or_sums in (0, 1):
        assert found[1.0][rows_or_sums].p_value > 0.05
        assert found[1.6][rows_or_sums].p_value < 0.02
    assert found[1.6][0].low > 0


def test_no_interval_reaches_beyond_what_scores_that_sum_to_one_allow(found):
    for pair in found.values():
        for one in pair:
            assert one.high <= 2 / CLASSES


@pytest.mark.full
@pytest.mark.parametrize("kind", ["counts", "weights", "l2", "bins"])
def test_many_classes_answer_as_few_do(kind):
    y, p = model(250)
    rng = np.random.default_rng(0)
    given = {
        "counts": {"counts": rng.integers(0, 3, 250)},
        "weights": {"sample_weight": rng.exponential(size=250)},
        "l2": {"norm": "l2"},
        "bins": {"estimator": "uniform:5"},
    }[kind]
    asked = {"notion": "classwise", "labels": range(CLASSES), "rng": 3} | given
    one = calibrant.estimate(y, p, **asked)
    if kind == "weights":
        assert one == calibrant.estimate(y, p, **asked)
    assert 0 <= one.low <= one.value <= one.high <= 1
    assert 0 < one.p_value <= 1
    assert one.null.mean <= one.null.quantiles[0.95] + 1e-12 or one.null.quantiles[0.95] == 0


@pytest.mark.full
def test_estimators_of_classes_have_the_null_of_the_headline():
    y, p = model(200, classes=3)
    found = calibrant.assess(y, p, notion="classwise", rng=0, labels=range(3))
    assert {one.p_value for one in found.by_estimator.values()} == {found.estimate.p_value}

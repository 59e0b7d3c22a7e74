"""Many classes: fewer cells and sets, labels of rows drawn jointly, and what any dependence allows."""

import numpy as np
import pytest
from scipy.fft import dct

import calibrant
from calibrant import Sketch
from calibrant.assessment.assess import STEPS_OF_CLASS
from calibrant.inference import classes as many
from calibrant.inference.joint_labels import Labels
from calibrant.inference.null import DATA_SETS
from calibrant.posterior.variance_time import pilot_variance, whiten
from calibrant.score_data import OneHot, Residuals
from weighing import weighted_sample

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


def test_labels_of_whole_rows_have_the_coefficients_of_their_outcomes():
    _, p = model(300)
    p = p.round(2)
    p[:, 0] += 1 - p.sum(axis=1)
    p = np.clip(p, 0, 1) / np.clip(p, 0, 1).sum(axis=1, keepdims=True)
    weights = np.random.default_rng(1).exponential(size=300)
    for weight in (None, weights):

        def take(some, weight=weight):
            return p[some], None if weight is None else weight[some]

        simulated_residuals = Labels.draw(take, 300, CLASSES, np.random.default_rng(0), 7)
        label = np.full((300, 7), -1)
        for first, width, order, start in simulated_residuals.parts:
            for k in range(CLASSES):
                row, at = np.divmod(order[start[k] : start[k + 1]], width)
                label[row, first + at] = k
        assert label.min() >= 0
        for k in (0, 5, CLASSES - 1):
            coefficients = simulated_residuals.coefficients(p[simulated_residuals.rows, k], k, 32)
            for at, got in enumerate(coefficients):
                flat = Residuals.of(weighted_sample(p[:, k], label[:, at] == k, weight)).flat
                np.testing.assert_allclose(got, whiten(flat, pilot_variance(flat), 32)[0][0], atol=1e-7)


def test_labels_come_as_often_as_scores_say_and_a_part_stands_for_many_rows(monkeypatch):
    _, p = model(200)
    labels = Labels.draw(lambda some: (p[some], None), 200, CLASSES, np.random.default_rng(0), 400)
    count = sum(np.diff(start) for *_, start in labels.parts)
    assert count.sum() == 200 * 400
    expected = 400 * p.sum(axis=0)
    assert np.all(np.abs(count - expected) < 5 * np.sqrt(expected))
    monkeypatch.setattr("calibrant.inference.joint_labels.MOST", 400 * 50)
    fewer = Labels.draw(lambda some: (p[some], None), 200, CLASSES, np.random.default_rng(0), 400)
    assert len(np.unique(fewer.rows)) == 50
    z = fewer.coefficients(p[fewer.rows, -1], CLASSES - 1, 16)
    assert abs(np.square(z).mean() - 1) < 0.25


def test_outcomes_of_one_label_covary_at_most_twice_as_if_independent():
    """Coefficients of all classes together, from the exact covariance of rows."""
    _, p = model(60, classes=30)
    basis = dct(np.eye(60), norm="ortho", axis=0)[:, :8]
    order = np.argsort(p, axis=0)
    spread = np.sqrt(p * (1 - p))
    rows = np.zeros((60, 30, 30 * 8))
    for k in range(30):
        rows[order[:, k], k, 8 * k : 8 * k + 8] = basis / spread[order[:, k], k][:, None]
    whole = sum(r.T @ (np.diag(q) - np.outer(q, q)) @ r for r, q in zip(rows, p, strict=True))
    np.testing.assert_allclose(np.diag(whole), 1)
    assert np.linalg.eigvalsh(whole)[-1] <= many.MAX_DEPENDENCE**2 + 1e-9


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


def test_one_class_that_is_off_is_found_among_many_of_a_sketch():
    y, p = model(4000)
    p[:, 5] /= 6
    p /= p.sum(axis=1, keepdims=True)
    one = Sketch("classwise").update(y, p).estimate(rng=0)
    assert one.p_value < 0.05
    assert one.by_class[5].p_value == one.by_class[5].p_floor < 1 / (1 + DATA_SETS)


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


def test_an_assessment_of_many_classes_counts_every_class():
    y, p = model(200)
    seen = []
    sketch = Sketch("classwise", labels=range(CLASSES)).update(y, p)
    sketch.assess(rng=0, progress=lambda *step: seen.append(step))
    assert len(seen) > 2 * CLASSES
    done = [each for each, _ in seen]
    (total,) = {each for _, each in seen}
    # A class has several steps, as it takes longer, and classes that finish together count at once.
    assert total > CLASSES * (1 + STEPS_OF_CLASS)
    assert done[: CLASSES + 1] == list(range(1, CLASSES + 2))
    assert done == sorted(done)
    assert done[-1] == total


def test_estimators_of_classes_have_the_null_of_the_headline():
    y, p = model(200, classes=3)
    found = calibrant.assess(y, p, notion="classwise", rng=0, labels=range(3))
    assert {one.p_value for one in found.by_estimator.values()} == {found.estimate.p_value}


def test_a_class_is_estimated_when_it_is_asked_for_and_once(monkeypatch):
    y, p = model(200, classes=4)
    asked, interval = [], calibrant.inference.interval.interval

    def counted(posterior, *args, **options):
        asked.append(posterior)
        return interval(posterior, *args, **options)

    monkeypatch.setattr("calibrant.inference.interval.interval", counted)
    one, other = (calibrant.estimate(y, p, notion="classwise", rng=0) for _ in range(2))
    assert not asked
    assert one.by_class[2] is one.by_class[2]
    assert len(asked) == 1
    assert 2 in one.by_class
    assert 7 not in one.by_class
    assert len(asked) == 1
    # Neither what was asked before nor how it was asked makes a difference.
    assert list(other.by_class.values()) == [one.by_class[k] for k in range(4)]
    assert one == other
    assert repr(one.by_class) == repr(other.by_class) == "ByClass(Estimate of 0, 1, 2, 3)"


def test_classes_in_pieces_have_the_error_of_all_at_once(monkeypatch):
    y, p = model(300, power=1.4)
    options = {"notion": "classwise", "labels": range(CLASSES)}
    expected, estimate = calibrant.ece(y, p, **options), calibrant.estimate(y, p, rng=0, **options)
    whole = OneHot(y, 2, 7)
    np.testing.assert_array_equal(np.asarray(whole[1:4]), np.asarray(whole)[1:4])
    assert whole[5:3].shape == (0, 300)
    monkeypatch.setattr("calibrant.estimators.base.LONG", 1)
    monkeypatch.setattr("calibrant.estimators.base.TOGETHER", 5)
    monkeypatch.setenv("CALIBRANT_THREADS", "2")
    assert calibrant.ece(y, p, **options) == pytest.approx(expected, rel=1e-12)
    again = calibrant.estimate(y, p, rng=0, **options)
    for name in ("value", "low", "high", "p_value"):
        assert getattr(again, name) == pytest.approx(getattr(estimate, name), rel=1e-9)

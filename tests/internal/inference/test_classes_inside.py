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


def test_one_class_that_is_off_is_found_among_many_of_a_sketch():
    y, p = model(4000)
    p[:, 5] /= 6
    p /= p.sum(axis=1, keepdims=True)
    one = Sketch("classwise").update(y, p).estimate(rng=0)
    assert one.p_value < 0.05
    assert one.by_class[5].p_value == one.by_class[5].p_floor < 1 / (1 + DATA_SETS)


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

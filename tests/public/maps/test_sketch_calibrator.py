"""A map from sums is the map from rows."""

import numpy as np
import pytest

import calibrant
from calibrant import Calibrator, Sketch

METHODS = [name for name in calibrant.calibrator_names() if name not in ("vector", "matrix")]
AT = np.linspace(0, 1, 101)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(5)
    score = rng.beta(0.8, 0.8, 1500)
    return score, rng.random(1500) < score**1.6


@pytest.mark.parametrize("method", METHODS)
def test_sums_and_rows_fit_the_same_map(rows, method):
    score, outcome = rows
    sketch = Sketch("binary").update(outcome[:400], score[:400]) + Sketch("binary").update(
        outcome[400:], score[400:]
    )
    of_sums, of_rows = sketch.calibrator(method), Calibrator(method).fit(score, outcome)
    np.testing.assert_allclose(of_sums.predict_proba(AT), of_rows.predict_proba(AT), rtol=0, atol=1e-9)
    for ends in zip(of_sums.predict_interval(AT), of_rows.predict_interval(AT), strict=True):
        np.testing.assert_allclose(*ends, rtol=0, atol=1e-9)
    assert of_sums.classes_ == of_rows.classes_


def test_a_map_from_sums_is_saved_like_any_other(rows, tmp_path):
    calibrator = Sketch("binary").update(rows[1], rows[0]).calibrator()
    calibrator.save(tmp_path / "map.json")
    again = Calibrator.load(tmp_path / "map.json")
    np.testing.assert_array_equal(again.predict_proba(AT), calibrator.predict_proba(AT))


def test_the_confidence_of_a_matrix_is_mapped():
    rng = np.random.default_rng(6)
    score = rng.dirichlet([1, 1, 1], 3000)
    truth = (0.5 * score + 1 / 6).cumsum(axis=1)
    label = (rng.random((3000, 1)) > truth).sum(axis=1)
    calibrator = Sketch("confidence").update(label, score).calibrator()
    top = score.max(axis=1)
    assert np.abs(calibrator.predict_proba(top) - (0.5 * top + 1 / 6)).mean() < 0.03


def test_each_class_has_a_map_of_its_own():
    rng = np.random.default_rng(7)
    score = rng.dirichlet([1, 1, 1], 2000)
    truth = (0.5 * score + 1 / 6).cumsum(axis=1)
    label = (rng.random((2000, 1)) > truth).sum(axis=1)
    calibrator = Sketch("classwise").update(label, score).calibrator("logistic")
    mapped = calibrator.predict_proba(score)
    np.testing.assert_allclose(mapped.sum(axis=1), 1)
    assert np.abs(mapped - (0.5 * score + 1 / 6)).mean() < 0.03
    again = Calibrator.from_json(calibrator.to_json())
    np.testing.assert_array_equal(again.predict_proba(score), mapped)


def test_a_map_of_whole_rows_is_refused(rows):
    with pytest.raises(calibrant.InputError, match="method must be a map of one score"):
        Sketch("binary").update(rows[1], rows[0]).calibrator("matrix")
    with pytest.raises(calibrant.InputError, match="did you mean 'temperature'"):
        Sketch("binary").update(rows[1], rows[0]).calibrator("temperatur")

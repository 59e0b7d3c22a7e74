"""The calibration part of the log loss over all classes against a known truth, and what to do about it."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import calibrant
from calibrant import Calibrator
from calibrant.assessment.decomposition import _fit_shifts, brier_of_classes, log_loss_of_classes, of_event
from calibrant.inputs import predictions
from calibrant.maps import multiclass as maps
from calibrant.score_data import Sample
from calibrant.score_data.simplex import Simplex
from shortcuts import compare_estimators


def simulated(n, classes, sharper=1.0, shifts=0.0, seed=0):
    """Return labels, scores, and by how much the log loss of the scores exceeds that of the true chances."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 1.5, (n, classes))
    logits[np.arange(n), rng.integers(0, classes, n)] += np.log(classes)
    true = maps.softmax(logits)
    y = (true.cumsum(axis=1)[:, :-1] < rng.random((n, 1))).sum(axis=1)
    score = maps.softmax(sharper * logits + shifts * rng.normal(size=classes))
    own = np.arange(n), y
    return y, score, float(np.mean(np.log(true[own] / score[own])))


def log_loss_of(y, score, counts=None, cluster=None):
    rows = Simplex.of(score, y, counts)
    return log_loss_of_classes(rows, maps.fit_temperature(rows), cluster)


@pytest.mark.parametrize("digits", [2, 16])
@pytest.mark.parametrize("weight", [None, "counts", "importance"])
def test_the_brier_score_of_classes_is_the_sum_over_sorted_classes(digits, weight):
    y, score, _ = simulated(400, 20, sharper=1.5)
    rng = np.random.default_rng(1)
    w = {None: None, "counts": rng.integers(0, 4, 400), "importance": rng.random(400)}[weight]
    rows = score.T.round(digits), y == np.arange(20)[:, None], w, (0.0, 1.0), weight != "importance"
    each = [of_event(Sample(rows[0][k], rows[1][k], *rows[2:]), "")[0] for k in range(20)]
    brier = brier_of_classes([Sample(*rows)])
    for part in ("value", "calibration", "resolution", "uncertainty"):
        assert getattr(brier, part) == pytest.approx(sum(getattr(one, part) for one in each), abs=1e-12)


@pytest.mark.parametrize(("n", "classes"), [(3000, 3), (3000, 100), (2500, 1000)])
def test_the_calibration_part_is_the_known_excess_of_sharpened_logits(n, classes):
    y, score, excess = simulated(n, classes, sharper=1.8)
    assert excess > 0.05
    log = log_loss_of(y, score)
    assert log.calibration == pytest.approx(excess, abs=1e-3)
    assert log.value == pytest.approx(-np.mean(np.log(score[np.arange(n), y])))


@pytest.mark.parametrize("classes", [3, 100, 1000])
def test_the_calibration_part_of_a_calibrated_model_is_about_zero(classes):
    for seed in range(3):
        y, score, _ = simulated(2000, classes, seed=seed)
        assert log_loss_of(y, score).calibration < 2.5e-3


@pytest.mark.parametrize(("n", "classes"), [(3000, 3), (4000, 30)])
@pytest.mark.parametrize("sharper", [1.0, 1.8])
def test_class_shifts_count_where_they_help(n, classes, sharper):
    y, score, excess = simulated(n, classes, sharper, shifts=0.7, seed=1)
    rows = Simplex.of(score, y)
    by_temperature = np.log(maps.fit_temperature(rows).tempered(score)[np.arange(n), y])
    log = log_loss_of(y, score)
    left = excess - (log.value + by_temperature.mean())  # what no temperature removes
    assert left > 0.01
    assert excess - 0.2 * left < log.calibration < excess + 0.1 * left


def test_shifts_are_judged_by_other_clusters():
    rng = np.random.default_rng(0)
    clusters = np.repeat(np.arange(20), 100)
    logits = rng.normal(0, 1.5, (2000, 10))
    score = maps.softmax(logits)
    # Each cluster has a class that is more frequent there alone, which is no shift of that class.
    true = maps.softmax(logits + 2.0 * np.eye(10)[rng.integers(0, 10, 20)[clusters]])
    y = (true.cumsum(axis=1)[:, :-1] < rng.random((2000, 1))).sum(axis=1)
    apart, together = (log_loss_of(y, score, cluster=c) for c in (None, clusters))
    assert together.calibration < apart.calibration - 0.01


def test_neither_the_order_of_rows_nor_counting_them_changes_the_parts():
    y, score, _ = simulated(400, 5, 1.5, 0.7)
    times = np.random.default_rng(1).integers(1, 4, 400)
    order = np.random.default_rng(2).permutation(times.sum())
    repeated = np.repeat(y, times)[order], np.repeat(score, times, axis=0)[order]
    a, b = log_loss_of(y, score, counts=times), log_loss_of(*repeated)
    assert (a.value, a.calibration, a.resolution) == pytest.approx((b.value, b.calibration, b.resolution))


@pytest.mark.parametrize("weighted", [False, True])
def test_the_temperature_of_more_rows_than_are_held_at_once_is_that_of_all(monkeypatch, weighted):
    y, score, _ = simulated(3000, 20, 1.8)
    rng = np.random.default_rng(3)
    rows = Simplex.of(score, y, rng.random(3000) + 0.5 if weighted else None, counts=not weighted)

    def cost(log):
        z = np.exp(log) * np.log(rows.score)
        own = z[np.arange(len(z)), rows.code] - np.log(np.exp(z).sum(axis=1))
        return 0.5 * log**2 - rows.weight @ own

    expected = minimize_scalar(cost, bounds=(-2, 2), method="bounded", options={"xatol": 1e-8}).x
    for name in ("CHUNK", "FIRST_ENTRIES"):
        monkeypatch.setattr(maps, name, 20 * 200)
    assert np.log(maps.fit_temperature(rows).slope) == pytest.approx(expected, abs=1e-5)


@pytest.fixture(scope="module")
def many():
    y, score, excess = simulated(1500, 6, 1.8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("calibrant.assessment.recalibration.MOST_CLASSES", 5)
        compare_estimators(patch)
        return calibrant.assess(y, score, notion="confidence", rng=0), y, score, excess


def test_advice_on_many_classes_is_a_cross_fitted_temperature_of_all_rows(many):
    found, y, score, excess = many
    recalibration, fitted = (
        found.recalibration,
        Calibrator("temperature")._fit_predictions(predictions(y, score)),
    )
    assert (recalibration.method, recalibration.rows) == ("temperature", 1500)
    assert recalibration.temperature == pytest.approx(fitted.temperature_)
    assert found.advice.startswith(
        f"Dividing the logits by a temperature of {recalibration.temperature:.3g} would "
    )
    assert found.advice.endswith("; with 6 classes no other method was tried.")
    assert 'calibrant.Calibrator("temperature")' in found.html().replace("&#34;", '"').replace("<wbr/>", "")
    again = calibrant.Assessment.from_json(found.to_json())
    assert (again.advice, again.recalibration.method) == (found.advice, "temperature")
    # The other way to the gain fits each fold by itself.
    compared = calibrant.compare_calibrators(score, y, methods=["temperature"], rng=0)["temperature"]
    assert recalibration.gain.value == pytest.approx(-compared.log_loss.difference.value, abs=1e-5)
    assert recalibration.gain.value == pytest.approx(excess, abs=2e-3)


def test_a_calibrated_model_of_many_classes_is_left_alone():
    y, score, _ = simulated(300, 101)
    found = calibrant.assess(y, score, notion="confidence", rng=0)
    assert found.advice.startswith("No temperature improves the held-out log loss")
    assert found.advice.endswith("; with 101 classes no other method was tried.")


def test_the_temperature_that_is_named_is_that_of_all_rows(monkeypatch):
    monkeypatch.setattr("calibrant.assessment.recalibration.MOST_NUMBERS", 900)
    compare_estimators(monkeypatch)
    y, score, _ = simulated(2000, 3, 1.8)
    found = calibrant.assess(y, score, notion="confidence", rng=0)
    assert found.recalibration.rows < 400
    whole = Calibrator("temperature")._fit_predictions(predictions(y, score))
    assert found.recalibration.temperature == pytest.approx(whole.temperature_)
    assert f"a temperature of {whole.temperature_:.3g} does" in found.advice


def test_scores_that_are_certain_have_no_class_shifts():
    label = np.repeat([0, 1, 2], 20)
    rows = Simplex.of(np.eye(3)[np.where(np.arange(60) % 4 == 0, 0, label)], label)
    assert _fit_shifts(rows, rows.weight, maps.SoftmaxMap(3, slope=1e3, least=1e-12)) is None

"""Maps by name, compared with slow and obvious ones."""

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

import calibrant
from calibrant import Calibrator, calibrator_names
from oracles import maps as oracle
from weighing import weighing

GRID = np.array([0.0, 0.003, 0.05, 0.1, 0.25, 0.4, 0.5, 0.61, 0.75, 0.9, 0.97, 0.999, 1.0])


def rows(n=300, seed=0, power=2.0):
    rng = np.random.default_rng(seed)
    score = rng.random(n)
    return score, (rng.random(n) < score**power).astype(int)


@pytest.mark.parametrize("method", sorted(oracle.FEATURES))
@pytest.mark.parametrize("power", [0.5, 2.0])
def test_formulas_have_the_likeliest_coefficients(method, power):
    score, outcome = rows(power=power)
    expected = oracle.likeliest(method, score, outcome)
    inside = GRID[1:-1]
    found = Calibrator(method).fit(score, outcome).predict_proba(inside)
    np.testing.assert_allclose(found, [expected(p) for p in inside], atol=2e-3)


@pytest.mark.parametrize("kind", ["plain", "weights", "counts"])
@pytest.mark.parametrize("power", [0.5, 2.0])
def test_an_intercept_makes_the_mean_probability_the_frequency(kind, power):
    score, outcome = rows(power=power)
    rng = np.random.default_rng(1)
    weight = {"plain": None, "weights": rng.random(300) + 0.1, "counts": rng.integers(1, 5, 300)}[kind]
    found = Calibrator("intercept").fit(score, outcome, **weighing(weight))
    shift = oracle.shift_in_the_large(score, outcome, weight)
    assert found.intercept_[0] == pytest.approx(shift, abs=1e-8)
    assert found.coef_.tolist() == [[1.0]]
    mean, frequency = (np.average(x, weights=weight) for x in (found.predict_proba(score), outcome))
    assert mean == pytest.approx(frequency, abs=1e-9)
    inside = GRID[1:-1]
    expected = [oracle.sigmoid(oracle.log_odds(p) + shift) for p in inside]
    np.testing.assert_allclose(found.predict_proba(inside), expected, atol=1e-8)


@pytest.mark.full
def test_the_intercept_is_the_clinical_one_and_leaves_no_other():
    score, outcome = rows(600)
    cluster = np.arange(600) // 3
    updated = Calibrator("intercept").fit(score, outcome, cluster=cluster)
    clinical = calibrant.assess(outcome, score, cluster=cluster).clinical
    assert updated.intercept_[0] == pytest.approx(clinical.intercept.value, abs=1e-7)
    again = calibrant.assess(outcome, updated.predict_proba(score), cluster=cluster).clinical
    assert again.ratio.value == pytest.approx(1, abs=1e-9)
    assert again.intercept.value == pytest.approx(0, abs=1e-7)
    assert again.slope.value == pytest.approx(clinical.slope.value, abs=1e-6)
    # Clusters change the interval and not the map.
    plain = Calibrator("intercept").fit(score, outcome)
    np.testing.assert_array_equal(plain.predict_proba(GRID), updated.predict_proba(GRID))
    assert (updated.predict_interval([0.5])[1] > plain.predict_interval([0.5])[1]).all()


@pytest.mark.parametrize("y", [0, 1])
def test_an_intercept_of_one_outcome_is_finite(y):
    score = np.linspace(0.1, 0.9, 60)
    (shift,) = Calibrator("intercept").fit(score, np.full(60, y)).intercept_
    # The gradient of the log likelihood is that of a normal prior of standard deviation 20.
    mean = np.mean([oracle.sigmoid(oracle.log_odds(p) + shift) for p in score])
    assert 60 * (y - mean) == pytest.approx(shift / 400, rel=1e-9)


def test_an_intercept_of_several_classes_is_fitted_to_each_class():
    rng = np.random.default_rng(0)
    score = rng.dirichlet([1, 1, 1], 500)
    label = (rng.random((500, 1)) > (score**2 / (score**2).sum(1, keepdims=True)).cumsum(1)[:, :-1]).sum(1)
    found = Calibrator("intercept").fit(score, label)
    shifts = [oracle.shift_in_the_large(score[:, k], label == k) for k in range(3)]
    np.testing.assert_allclose(found.intercept_, shifts, atol=1e-8)
    each = np.array([[oracle.sigmoid(oracle.log_odds(p) + a) for p, a in zip(row, shifts, strict=True)]
                     for row in score[:20]])  # fmt: skip
    np.testing.assert_allclose(found.predict_proba(score[:20]), each / each.sum(1, keepdims=True), atol=1e-8)


@pytest.mark.parametrize("turned", ["up", "down", "both"])
def test_beta_stays_increasing_and_is_the_best_of_those(turned):
    score, outcome = rows()
    if turned == "both":
        outcome = 1 - outcome
    else:
        low = np.random.default_rng(1).random(300)
        peak = 1 - score if turned == "up" else score
        outcome = (low < 0.1 + 0.8 * (2 * peak - 1) ** 2 * (peak > 0.3)).astype(int)
    expected = oracle.likeliest("beta", score, outcome)
    found = Calibrator("beta").fit(score, outcome).predict_proba(GRID[1:-1])
    assert (np.diff(found) >= -1e-12).all()
    np.testing.assert_allclose(found, [expected(p) for p in GRID[1:-1]], atol=3e-3)


def test_isotonic_is_that_of_scikit_learn():
    score, outcome = rows()
    score = np.round(score, 2)
    peer = IsotonicRegression(out_of_bounds="clip").fit(score, outcome)
    found = Calibrator("isotonic").fit(score, outcome)
    np.testing.assert_allclose(found.predict_proba(GRID), peer.predict(GRID), atol=1e-12)


def test_isotonic_is_the_largest_least_mean():
    score, outcome = rows(40)
    order = np.argsort(score)
    expected = oracle.increasing(outcome[order], np.ones(40))
    found = Calibrator("isotonic").fit(score, outcome).predict_proba(score[order])
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_safe_isotonic_counts_half_a_row_of_either_outcome_more_in_each_level():
    score, outcome = rows(40)
    order = np.argsort(score)
    level = np.round(oracle.increasing(outcome[order], np.ones(40)), 12)
    expected = []
    for value in level:
        held = outcome[order][level == value]
        expected.append((held.sum() + 0.5) / (held.size + 1))
    assert (np.diff(expected) >= 0).all()  # or else they would be made increasing once more
    found = Calibrator("isotonic-safe").fit(score, outcome).predict_proba(score[order])
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert ((found > 0) & (found < 1)).all()


@pytest.mark.full
@pytest.mark.no_cover
@pytest.mark.parametrize("decimals", [1, 2, 16])
@pytest.mark.parametrize("seed", range(2))
def test_venn_abers_is_isotonic_with_the_row_inserted(seed, decimals):
    score, outcome = rows(25, seed)
    score = np.round(score, decimals)
    calibrator = Calibrator("venn-abers").fit(score, outcome)
    new = np.unique(np.concatenate([GRID, score, [score[0] + 1e-9]]))
    new = new[new <= 1]
    low, high = calibrator.predict_pair(new)
    expected = [oracle.venn_abers(score, outcome, p) for p in new]
    np.testing.assert_allclose(np.stack([low, high], axis=1), expected, atol=1e-12)
    np.testing.assert_allclose(calibrator.predict_proba(new), high / (1 - low + high), atol=1e-12)


def test_a_histogram_gives_the_frequency_of_equal_parts_of_the_rows():
    score = (np.arange(150) + 0.5) / 150
    outcome = np.random.default_rng(0).random(150) < score
    found = Calibrator("histogram").fit(score, outcome).predict_proba(score)
    np.testing.assert_allclose(found, np.repeat(outcome.reshape(15, 10).mean(axis=1), 10), atol=1e-12)


def test_density_is_the_curve_by_density():
    score, outcome = rows()
    curve = calibrant.reliability_curve(outcome, score, method="density", band=None)
    known = np.isfinite(curve.value)
    at = curve.score[known][5:-5:50]
    found = Calibrator("density").fit(score, outcome).predict_proba(at)
    np.testing.assert_allclose(found, np.interp(at, curve.score, curve.point), atol=1e-9)


def test_identity_leaves_scores_as_they_are():
    score, outcome = rows(20)
    assert (Calibrator("identity").fit(score, outcome).predict_proba(GRID) == GRID).all()


def test_every_method_says_in_a_few_words_what_it_does():
    names = calibrator_names()
    assert all(0 < len(words) < 60 for words in names.values())

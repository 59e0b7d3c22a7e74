"""Scores adjusted to other class frequencies: known ones, and those estimated from unlabelled scores."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import class_likelihood_ratios
from sklearn.naive_bayes import GaussianNB

import calibrant
from calibrant import Calibrator, InputError, PriorShift
from engines import needed
from oracles import prior as oracle

GRID = np.linspace(0.02, 0.98, 25)
TWO = {"train": 0.4, "target": 0.1}


def scores(rng, n, share, distance=1.5):
    """Return scores that are calibrated where both classes are equally frequent, and labels."""
    label = rng.random(n) < share
    odds = distance * (rng.normal(size=n) + distance * label - distance / 2)
    return 1 / (1 + np.exp(-odds)), label


@pytest.fixture(scope="module")
def estimated():
    score, _ = scores(np.random.default_rng(0), 400, 0.2)
    return score, PriorShift(train=0.5).fit(score)


@pytest.fixture(scope="module")
def composed():
    rng = np.random.default_rng(1)
    labelled = scores(rng, 300, 0.5)
    return PriorShift(train=0.5, calibrator=Calibrator("beta").fit(*labelled)).fit(scores(rng, 300, 0.2)[0])


def bayes(score, train, target):
    """Return the adjusted probability by Bayes' theorem."""
    positive, negative = score * target / train, (1 - score) * (1 - target) / (1 - train)
    return positive / (positive + negative)


@pytest.mark.parametrize(
    "options",
    [
        TWO,
        {"train": [0.6, 0.4], "target": {0: 0.9, 1: 0.1}},
        {"train": [60, 40], "target": [9, 1]},
        {"sampling": 1 / 6},  # of negatives: 6 times as many of them in the population
        {"class_weight": 6.0},
        {"train": 0.1, "sampling": {0: 1 / 6, 1: 1.0}},
        {"train": 0.25, "target": 0.1, "class_weight": 2.0},
    ],
)
def test_known_frequencies_follow_bayes_theorem(options):
    np.testing.assert_allclose(PriorShift(**options).predict_proba(GRID), bayes(GRID, 0.4, 0.1), atol=1e-12)


def test_it_is_what_scikit_learn_computes_with_other_priors():
    rng = np.random.default_rng(0)
    label = np.arange(3).repeat(50)
    X = rng.normal(size=(150, 2)) + label[:, None]
    train, target = [1 / 3] * 3, [0.7, 0.2, 0.1]
    for kind in (GaussianNB, LinearDiscriminantAnalysis):
        first, second = (kind(priors=prior).fit(X, label).predict_proba(X) for prior in (train, target))
        found = PriorShift(train=train, target=target).predict_proba(first)
        np.testing.assert_allclose(found, second, atol=1e-12)


def test_it_is_the_documented_post_test_probability_of_scikit_learn():
    rng = np.random.default_rng(1)
    label = np.arange(400) % 2
    said = (rng.random(400) < np.where(label, 0.8, 0.3)).astype(int)
    positive, _ = class_likelihood_ratios(label, said)
    post_odds = 0.1 / 0.9 * positive  # pre-test odds times the likelihood ratio of a positive test
    score = label[said == 1].mean()  # calibrated where half of the rows are positive
    found = PriorShift(train=0.5, target=0.1).predict_proba([score])[0]
    assert found == pytest.approx(post_odds / (1 + post_odds), abs=1e-12)


@pytest.mark.parametrize("kept", [0.05, 0.5])
def test_it_is_the_correction_of_undersampling_by_dal_pozzolo(kept):
    expected = kept * GRID / (kept * GRID - GRID + 1)
    np.testing.assert_allclose(PriorShift(sampling=kept).predict_proba(GRID), expected, atol=1e-12)


def test_balanced_weights_are_inverse_to_the_frequencies():
    found = PriorShift(train=0.1, class_weight="balanced").predict_proba(GRID)
    np.testing.assert_allclose(found, bayes(GRID, 0.5, 0.1), atol=1e-12)


def test_a_matrix_of_two_columns_has_the_adjusted_vector_as_second_column():
    matrix = PriorShift(**TWO).predict_proba(np.stack([1 - GRID, GRID], axis=1))
    np.testing.assert_allclose(matrix[:, 1], PriorShift(**TWO).predict_proba(GRID), atol=1e-12)


def test_the_mean_of_the_adjusted_scores_is_the_target():
    matrix = np.random.default_rng(0).dirichlet([1, 2, 3], 200)
    shift = PriorShift(target=[0.2, 0.2, 0.6]).fit(matrix)
    np.testing.assert_allclose(shift.predict_proba(matrix).mean(axis=0), [0.2, 0.2, 0.6], atol=1e-8)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_estimate_is_that_of_the_em_algorithm(classes):
    rng = np.random.default_rng(3)
    matrix, train = rng.dirichlet(np.full(classes, 0.7), 60), np.full(classes, 1 / classes)
    shift = PriorShift(train=train.tolist()).fit(matrix)
    np.testing.assert_allclose(shift.target, oracle.em(matrix, train), atol=1e-5)
    assert (shift.low <= shift.target).all()
    assert (shift.target <= shift.high).all()


def test_the_interval_is_that_of_the_exact_posterior(estimated):
    score, shift = estimated
    grid = (np.arange(4000) + 0.5) / 4000
    log = np.log(np.outer(score, grid) + np.outer(1 - score, 1 - grid)).sum(axis=0)
    cumulative = np.cumsum(np.exp(log - log.max()))
    ends = np.interp([0.025, 0.975], cumulative / cumulative[-1], grid)
    np.testing.assert_allclose([shift.low, shift.high], ends, atol=0.004)


def test_counts_repeat_rows(estimated):
    score, _ = estimated
    counted, repeated = PriorShift(train=0.5).fit(score[:50], counts=[2] * 50), np.repeat(score[:50], 2)
    assert counted.target == pytest.approx(PriorShift(train=0.5).fit(repeated).target, abs=1e-6)
    assert counted.n_ == 100


def test_scores_that_separate_little_give_wide_intervals():
    rng = np.random.default_rng(0)
    narrow, wide = (PriorShift(train=0.5).fit(scores(rng, 500, 0.3, d)[0]) for d in (2.0, 0.1))
    assert narrow.high - narrow.low < 0.15
    assert wide.high - wide.low > 0.7


def test_the_error_of_the_source_widens_the_interval():
    rng = np.random.default_rng(0)
    labelled, (score, _) = scores(rng, 150, 0.5), scores(rng, 3000, 0.2)
    known = PriorShift(train=0.5).fit(score)
    widths = [known.high - known.low]
    calibrator = Calibrator("logistic").fit(*labelled)
    for shift in (PriorShift().fit(score, source=labelled), PriorShift(calibrator=calibrator).fit(score)):
        widths.append(shift.high - shift.low)
        assert shift.low < 0.2 < shift.high
    loaded = Calibrator.from_json(calibrator.to_json())
    shift = PriorShift(train=0.5, calibrator=loaded).fit(score)
    assert min(widths[1:]) > 1.3 * widths[0]
    assert shift.high - shift.low > 1.3 * widths[0]


def test_the_interval_of_a_probability_holds_it(estimated, composed):
    for shift in (estimated[1], composed):
        low, high = shift.predict_interval(GRID, level=0.8)
        wider = shift.predict_interval(GRID)
        middle = shift.predict_proba(GRID)
        assert (wider[0] <= low).all()
        assert (low < middle).all()
        assert (middle < high).all()
        assert (high <= wider[1]).all()


def test_known_frequencies_have_no_interval():
    low, high = PriorShift(**TWO).predict_interval(GRID)
    np.testing.assert_allclose(low, high)
    shift = PriorShift(**TWO).fit(GRID)
    assert shift.low == shift.target == shift.high == pytest.approx(0.1)


def test_what_was_saved_predicts_the_same(estimated, composed, tmp_path):
    for shift in (estimated[1], composed, PriorShift(**TWO)):
        shift.save(tmp_path / "shift.json")
        again = PriorShift.load(tmp_path / "shift.json")
        np.testing.assert_array_equal(again.predict_proba(GRID), shift.predict_proba(GRID))
        np.testing.assert_allclose(again.predict_interval(GRID), shift.predict_interval(GRID), atol=1e-9)
        assert again.target == pytest.approx(shift.target, abs=1e-15)


def test_exports_map_as_python_does(estimated, composed):
    table = pa.table({"score": GRID})
    for shift in (estimated[1], composed, PriorShift(**TWO)):
        space = {}
        exec(shift.to_python("mapped"), space)
        expected = shift.predict_proba(GRID)
        np.testing.assert_allclose([space["mapped"](each) for each in GRID.tolist()], expected, atol=1e-12)
        found = needed("duckdb").from_arrow(table).project(f"{shift.to_sql('score')} AS p").fetchnumpy()["p"]
        np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "train must be given"),
        ({"train": 1.5}, "train must be a number strictly between 0 and 1"),
        ({"train": [0.5, 0.3, 0.2]}, "train must be 2 positive numbers"),
        ({"train": {0: 0.5, 2: 0.5}}, "train must have the classes 0, 1"),
        ({"sampling": 0.1, "class_weight": 2.0}, "must not be given together"),
        ({"target": 0.1, "sampling": 0.1}, "train must be given"),
        ({"class_weight": "balanced"}, "train must be given"),
        ({"labels": ["a", "b", "c"], "train": 0.5}, "labels must name 2 classes"),
    ],
)
def test_bad_parameters_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        PriorShift(**options).fit(GRID)


def test_other_scores_than_those_of_the_fit_are_refused(estimated):
    with pytest.raises(InputError, match="y_prob must be a vector"):
        estimated[1].predict_proba([[0.2, 0.8]])
    with pytest.raises(InputError, match="map one score"):
        PriorShift(train=[1, 1, 1], target=[1, 2, 3]).to_sql("p")


@pytest.mark.full
def test_the_assessment_suggests_it_for_a_pure_shift():
    rng = np.random.default_rng(0)
    score, label = scores(rng, 1500, 0.15)
    assert any("PriorShift" in text for text in calibrant.assess(label, score, rng=0).cautions)
    bent = rng.random(1500)
    found = calibrant.assess(rng.random(1500) < np.clip(2 * bent - 0.5, 0, 1), bent, rng=0)
    assert not any("PriorShift" in text for text in found.cautions)

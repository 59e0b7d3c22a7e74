"""Properties that every estimator of the registry keeps, from rows, cells and merged cells alike."""

import re

import numpy as np
import pytest

import calibrant
from calibrant import Binned, Density, Sketch

pytestmark = pytest.mark.no_cover

NORMS = ("l1", "l2", "max")
NOTIONS = ("binary", "classwise", "confidence")
VALUES = (
    Binned("uniform", 10, "published"),
    Density("silverman", "gaussian"),
    Density(0.05, "epanechnikov"),
    Density(0.05, "cosine"),
)


def random_matrix(rng, n, classes, *, discrete=False):
    if discrete:
        scores = rng.multinomial(20, np.full(classes, 1 / classes), n) / 20
    else:
        scores = rng.dirichlet(np.full(classes, 0.5), n)
    labels = (rng.random((n, 1)) > np.cumsum(scores, axis=1)).sum(axis=1).clip(0, classes - 1)
    return labels, scores


# --- rows, cells and merged cells ------------------------------------------------------------------


def data(kind, n, seed=0):
    rng = np.random.default_rng(seed)
    if kind == "smooth":
        score = rng.beta(0.7, 0.9, n)
    elif kind == "discrete":
        score = rng.integers(0, 101, n) / 100
    else:
        score = np.where(rng.random(n) < 0.4, 1 - 10.0 ** rng.uniform(-14, -3, n), rng.random(n))
        score[: n // 50] = 1.0
    return (rng.random(n) < score**1.4).astype(int), score


def sketches(labels, score, notion, pieces=4):
    whole = Sketch(notion).update(labels, score)
    merged = Sketch(notion)
    for part in np.array_split(np.random.default_rng(0).permutation(len(labels)), min(pieces, len(labels))):
        merged = Sketch(notion).update(labels[part], score[part]) + merged
    return whole, merged


@pytest.mark.full
@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("n", [1, 30, 4000])
@pytest.mark.parametrize("kind", ["smooth", "discrete", "saturated"])
def test_uniform_bins_from_cells_equal_those_from_rows(kind, n, notion):
    labels, score = data(kind, n)
    for spec in ("l:10", "l:15", "l:20", "l:30", "l:100", "c:10", "c:15", "c:20", "c:30"):
        for norm in NORMS:
            expected = calibrant.ece(labels, score, notion=notion, estimator=spec, norm=norm)
            for sketch in sketches(labels, score, notion):
                found = sketch.ece(estimator=spec, norm=norm)
                assert found == pytest.approx(expected, abs=1e-12), (spec, norm)


@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("kind", ["smooth", "discrete", "saturated"])
def test_density_from_cells_equals_that_from_rows(kind, notion):
    labels, score = data(kind, 3000)
    for spec in ("d:0.033", "d:0.1", "d:0.002", "d:silverman", "d:scott"):
        expected = calibrant.ece(labels, score, notion=notion, estimator=spec)
        for sketch in sketches(labels, score, notion):
            assert sketch.ece(estimator=spec) == pytest.approx(expected, abs=1e-6), spec


def test_adaptive_bins_from_cells_are_close_in_practice():
    for kind in ("smooth", "saturated"):
        labels, score = data(kind, 20_000)
        for spec in ("a:10", "ac:10", "ac:30"):
            expected = calibrant.ece(labels, score, estimator=spec)
            found = Sketch("binary").update(labels, score).ece(estimator=spec)
            assert found == pytest.approx(expected, abs=2e-4), (kind, spec)


def test_a_plain_function_is_an_estimator_for_rows_and_sketches():
    def mean_gap(scores, outcomes, weights):
        return abs(np.average(outcomes - scores, weights=weights))

    labels, score = data("smooth", 500)
    for weight in (None, np.arange(500) % 3 + 1):
        expected = calibrant.ece(labels, score, estimator="uniform:1", counts=weight)
        assert calibrant.ece(labels, score, estimator=mean_gap, counts=weight) == pytest.approx(expected)
        sketch = Sketch("binary").update(labels, score, counts=weight)
        assert sketch.ece(estimator=mean_gap) == pytest.approx(expected)
    with pytest.raises(ValueError, match="mean_gap defines norm 'l1', got 'max'"):
        calibrant.mce(labels, score, estimator=mean_gap)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("unifrom:10", "estimator must be one of .* got 'unifrom'"),
        ("l:0", "from 1 to"),
        ("l:1_5", "'1_5'"),
        ("auto:5", "estimator must be \"auto\" without a parameter, got 'auto:5'"),
        ("d:0.1:box", "kernel must be one of"),
        ("l:ten", "'ten'"),
        ("l:", "estimator must have a parameter after its colon, got 'l:'"),
        ("d:-1", "positive"),
        ("d:nan", "positive"),
        ("d:silvermann", "bandwidth must be one of"),
    ],
)
def test_a_wrong_name_says_what_is_right(wrong, message):
    with pytest.raises(ValueError, match=message):
        calibrant.ece([0, 1], [0.2, 0.7], estimator=wrong)


@pytest.mark.parametrize(("wrong", "hint"), [(None, ""), (15, 'write "uniform:15"'), (Binned, "")])
def test_something_that_is_no_estimator_is_a_type_error(wrong, hint):
    with pytest.raises(TypeError, match=f"estimator must be a name.*{hint}"):
        calibrant.ece([0, 1], [0.2, 0.7], estimator=wrong)


def test_a_function_that_returns_no_number_is_named():
    def forgetful(scores, outcomes, weights):
        pass

    with pytest.raises(TypeError, match="the function forgetful must return a number, got None"):
        calibrant.ece([0, 1], [0.2, 0.7], estimator=forgetful)


@pytest.mark.parametrize("wrong", [None, [0.1, 0.2], True, 0, -1, float("inf")])
def test_a_bandwidth_that_is_no_positive_number_is_refused(wrong):
    with pytest.raises(ValueError, match="bandwidth must be a positive number"):
        Density(wrong)


@pytest.mark.parametrize("wrong", [True, 2.5, 0, 10**9])
def test_a_number_of_bins_that_is_no_such_number_is_refused(wrong):
    with pytest.raises(ValueError, match="n_bins must be an integer"):
        Binned("uniform", wrong)


def test_the_root_of_an_enormous_count_is_refused_with_the_reason():
    with pytest.raises(ValueError, match="asks for 100000000 bins"):
        calibrant.ece([0, 1], [0.2, 0.7], estimator="l", counts=[5 * 10**15, 5 * 10**15])


def test_tied_scores_give_the_same_bandwidth_from_rows_cells_and_merged_cells():
    score = np.concatenate([np.full(850, 0.637), np.linspace(0, 1, 150)])
    labels = np.concatenate([np.arange(850) % 2, np.arange(150) % 2])
    expected = calibrant.ece(labels, score, estimator="d")
    for sketch in sketches(labels, score, "binary"):
        assert sketch.ece(estimator="d") == pytest.approx(expected, abs=1e-6)
    beside = np.where(np.arange(1000) % 3 == 0, np.nextafter(score, 1), score)
    assert calibrant.ece(labels, beside, estimator="d") == pytest.approx(expected, abs=1e-6)


class Fitted:
    """An estimator of a caller's own, which returns what it was told to."""

    def __init__(self, value, measures_ece=True):
        self.value, self.measures_ece = value, measures_ece

    def fit(self, data):
        return self

    def error(self, norm):
        return self.value


@pytest.mark.parametrize("value", [np.nan, -3, np.inf, -np.inf, 1.5, -1e-6])
@pytest.mark.parametrize("call", [calibrant.ece, calibrant.estimate])
def test_what_cannot_be_an_error_is_refused_with_the_name_of_the_estimator(call, value):
    def mine(scores, outcomes, weights):
        return value

    words = f"must return a finite error of at least 0 and at most 1, got {float(value)}"
    with pytest.raises(calibrant.InputError, match=re.escape(f"the estimator mine {words}")):
        call([0, 1, 1], [0.2, 0.7, 0.9], estimator=mine)
    with pytest.raises(calibrant.InputError, match=re.escape(f"the estimator Fitted {words}")):
        call([0, 1, 1], [0.2, 0.7, 0.9], estimator=Fitted(float(value)))


def test_errors_of_another_shape_than_the_classes_are_refused():
    y, p = [0, 1, 2], np.full((3, 3), 1 / 3)
    with pytest.raises(
        calibrant.InputError, match=r"estimator Fitted must return errors of the shape \(3,\)"
    ):
        calibrant.ece(y, p, notion="classwise", estimator=Fitted(0.1))
    assert calibrant.ece(y, p, notion="classwise", estimator=Fitted(np.array([0.25, 0.5, 0.75]))) == 0.5


def test_a_measure_of_its_own_may_be_larger_than_1():
    assert calibrant.ece([0, 1, 1], [0.2, 0.7, 0.9], estimator=Fitted(1.5, measures_ece=False)) == 1.5
    with pytest.raises(calibrant.InputError, match=r"at least 0, got inf"):
        calibrant.ece([0, 1, 1], [0.2, 0.7, 0.9], estimator=Fitted(np.inf, measures_ece=False))


def test_rounding_takes_no_error_out_of_bounds():
    assert calibrant.ece([0, 1, 1], [0.2, 0.7, 0.9], estimator=Fitted(1 + 1e-15)) == 1 + 1e-15

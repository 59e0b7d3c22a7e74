"""Maps of scores that differ in their last bits: rounding leaves them one score, and what is saved loads."""

import numpy as np
import pytest
from click.testing import CliRunner

from calibrant import Calibrator, calibrator_names, cli
from exported import OF_ONE_SCORE

NUMBERS = {"rtol": 0, "atol": 1e-9}


def shares(rng, n, classes):
    """Draw scores that are rounded to tenths and divided by their sums, which rounds them again."""
    score = np.round(rng.dirichlet(np.full(classes, 2.0), n), 1) * rng.uniform(0.5, 2, (n, 1))
    score = score[score.sum(axis=1) > 0]
    score /= score.sum(axis=1, keepdims=True)
    return score


def single_score(seed, n=300, classes=5):
    rng = np.random.default_rng(seed)
    score = shares(rng, n, classes)[:, 0]
    return score, (rng.random(score.size) < score ** rng.choice([0.5, 1, 2])).astype(int)


def all_scores(seed, n=300, classes=3):
    rng = np.random.default_rng(seed)
    score = shares(rng, n, classes)
    ends = np.cumsum(score**2 / (score**2).sum(axis=1, keepdims=True), axis=1)
    return score, (rng.random((len(score), 1)) > ends).sum(axis=1).clip(0, classes - 1), rng


def asked_at(score):
    """Return scores as they were fitted, and others."""
    if score.ndim == 1:
        return np.concatenate([score[:50], np.linspace(0, 1, 48)])
    return np.concatenate([score[:50], np.random.default_rng(9).dirichlet(np.ones(score.shape[1]), 20)])


def test_such_scores_differ_in_their_last_bits():
    score = np.unique(single_score(0)[0])
    assert (np.diff(score) < 1e-15).sum() > 10


@pytest.mark.full
@pytest.mark.parametrize("method", OF_ONE_SCORE)
def test_a_map_of_one_score_is_loaded_as_it_was_saved(method):
    for seed in range(4):
        score, outcome = single_score(seed)
        fitted = Calibrator(method).fit(score, outcome)
        loaded = Calibrator.from_json(fitted.to_json())
        at = asked_at(score)
        np.testing.assert_allclose(loaded.predict_proba(at), fitted.predict_proba(at), **NUMBERS)


def test_the_command_applies_the_map_that_it_has_fitted(tmp_path):
    score, outcome = single_score(1)
    rows, saved, mapped = (str(tmp_path / name) for name in ("rows.csv", "map.json", "mapped.csv"))
    np.savetxt(rows, np.column_stack([outcome, score]), ["%d", "%.17g"], ",", header="label,p", comments="")
    for command in (["fit", rows, "-o", saved], ["apply", saved, rows, "-o", mapped]):
        result = CliRunner().invoke(cli.main, ["calibrate", *command])
        assert result.exit_code == 0, result.output


@pytest.mark.full
@pytest.mark.parametrize("method", calibrator_names())
def test_a_map_of_all_scores_does_not_depend_on_the_order_of_rows_or_classes_and_is_loaded(method):
    score, label, rng = all_scores(0)
    at = asked_at(score)
    fitted = Calibrator(method).fit(score, label)
    expected = fitted.predict_proba(at)
    np.testing.assert_allclose(Calibrator.from_json(fitted.to_json()).predict_proba(at), expected, **NUMBERS)
    rows = rng.permutation(len(label))
    np.testing.assert_allclose(
        Calibrator(method).fit(score[rows], label[rows]).predict_proba(at), expected, **NUMBERS
    )
    for order in ([2, 0, 1], [0, 2, 1]):
        turned = Calibrator(method, labels=order).fit(score[:, order], label)
        np.testing.assert_allclose(turned.predict_proba(at[:, order]), expected[:, order], **NUMBERS)
        renamed = Calibrator(method).fit(score[:, order], np.argsort(order)[label])
        np.testing.assert_allclose(renamed.predict_proba(at[:, order]), expected[:, order], **NUMBERS)


@pytest.mark.parametrize("classes", [5, 14])  # with more than 12 classes there are axes instead of a matrix
def test_classes_in_another_order_have_the_same_map(classes):
    score, label, rng = all_scores(1, 200, classes)
    order, weight, at = rng.permutation(classes), rng.uniform(0.5, 2, len(score)), asked_at(score)
    one = Calibrator(labels=list(range(classes))).fit(score, label, weight)
    other = Calibrator(labels=order.tolist()).fit(score[:, order], label, weight)
    np.testing.assert_allclose(other.predict_proba(at[:, order]), one.predict_proba(at)[:, order], **NUMBERS)
    for low, high in zip(one.predict_interval(at), other.predict_interval(at[:, order]), strict=True):
        np.testing.assert_allclose(high, low[:, order], **NUMBERS)


@pytest.mark.full
@pytest.mark.parametrize("method", OF_ONE_SCORE)
@pytest.mark.parametrize("n", [2, 3, 5, 9, 101, 300])
def test_the_complement_has_the_complement_of_the_map(method, n):
    for seed in range(4):
        inner, outcome = single_score(seed, n)
        rng = np.random.default_rng(seed)
        for score in (inner, np.where(rng.random(inner.size) < 0.4, rng.integers(0, 2, inner.size), inner)):
            # A score on the edge of two bins of a histogram belongs to the one on its right.
            at = score if method == "histogram" else asked_at(score)
            one = Calibrator(method).fit(score, outcome).predict_proba(at)
            other = Calibrator(method, pos_label=1).fit(1 - score, 1 - outcome).predict_proba(1 - at)
            # Where few rows are near, the curve of `density` is a ratio of two sums that nearly vanish.
            most = 1e-6 if method == "density" else 1e-9
            np.testing.assert_allclose(1 - other, one, rtol=0, atol=most)


def test_a_few_rows_with_a_wall_leave_the_scores_alone_whichever_class_is_positive():
    for score, outcome in (([1.0, 0.52], [1, 0]), ([0.0, 0.48], [0, 1])):
        found = Calibrator().fit(score, outcome).predict_proba([0.01, 0.25, 0.7])
        np.testing.assert_array_equal(found[1:], [0.25, 0.7])
    # No row had a score of 0: such a score is taken for 0.001 (`odds.cells.NO_OTHER`).
    found = Calibrator().fit([1.0, 0.52], [1, 0]).predict_proba([0.0, 0.01, 0.7])
    np.testing.assert_allclose(found, [0.001, 0.01, 0.7], rtol=1e-9)

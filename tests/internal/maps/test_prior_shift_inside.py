"""Scores adjusted to other class frequencies: known ones, and those estimated from unlabelled scores."""

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from calibrant import Calibrator, PriorShift
from calibrant.maps import NotFittedError, prior_shift

GRID = np.linspace(0.02, 0.98, 25)


def scores(rng, n, share, distance=1.5):
    """Return scores that are calibrated where both classes are equally frequent, and labels."""
    label = rng.random(n) < share
    odds = distance * (rng.normal(size=n) + distance * label - distance / 2)
    return 1 / (1 + np.exp(-odds)), label


@pytest.fixture(scope="module")
def estimated():
    score, _ = scores(np.random.default_rng(0), 400, 0.2)
    return score, PriorShift(train=0.5).fit(score)


def test_it_is_an_estimator_of_scikit_learn(estimated):
    _, shift = estimated
    copy = clone(shift)
    assert copy.get_params() == shift.get_params()
    assert copy.get_params()["target"] is None
    with pytest.raises(NotFittedError):
        copy.predict_proba(GRID)
    with pytest.raises(sklearn.exceptions.NotFittedError):
        check_is_fitted(copy)
    assert "not fitted" in str(copy)
    assert copy.set_params(target=0.2).predict_proba([0.5]) == pytest.approx(0.2)
    check_is_fitted(copy)
    assert "fit() is not needed" in str(copy)
    assert "target share" in str(shift)


def test_a_calibrator_without_a_fit_needs_labelled_rows():
    rng = np.random.default_rng(0)
    labelled = scores(rng, 100, 0.5)
    with pytest.raises(NotFittedError):
        PriorShift(train=0.5, calibrator=Calibrator("beta")).fit(labelled[0])
    shift = PriorShift(calibrator=Calibrator("beta")).fit(labelled[0], source=labelled)
    assert shift.calibrator_.method == "beta"


@pytest.mark.parametrize("size", [20, 50])
def test_few_refits_have_the_quantiles_of_many(size):
    rng, held = np.random.default_rng(3), []
    for _ in range(1500):
        odds, truth = rng.normal(size=size), rng.normal()
        rows = [np.stack([1 - p, p], axis=-1) for p in 1 / (1 + np.exp(-odds[:, None]))]
        drawn = [p[0, 1] for p, _ in prior_shift._spread([(p, p[0]) for p in rows], 0.95)]
        low, high = np.quantile(np.log(drawn) - np.log1p(-np.array(drawn)), [0.025, 0.975])
        held.append(low < truth < high)
    assert np.mean(held) == pytest.approx(0.95, abs=0.015)

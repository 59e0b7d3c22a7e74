"""`Calibrator`: what is saved comes back, what is wrong is refused by name, and exports say the same."""

import pickle
import sys

import numpy as np
import pytest

from calibrant import Calibrator, InputError, compare_calibrators
from calibrant.estimators.canonical.variational import CanonicalVariational
from calibrant.maps import NotFittedError


def rows(n=80, seed=0):
    rng = np.random.default_rng(seed)
    score = np.round(rng.random(n), 2)
    return score, (rng.random(n) < score**2).astype(int)


# --- scikit-learn's conventions ---


def test_parameters_are_read_and_changed():
    made = Calibrator("spline", monotone=True, labels=[0, 1]).fit([0.2, 0.7], [0, 1])
    assert made.set_params() is made
    assert made.get_params(deep=False) == {
        "method": "spline",
        "monotone": True,
        "from_logits": False,
        "labels": [0, 1],
        "pos_label": None,
        "class_names": None,
        "notion": None,
    }
    changed = made.set_params(method="affine", monotone="auto")
    assert changed is made
    assert (made.method, made.monotone, made.labels) == ("logistic", "auto", [0, 1])
    with pytest.raises(NotFittedError):
        made.predict_proba([0.3])


@pytest.mark.parametrize("imported", [False, True])
def test_use_before_fit_is_an_error_of_scikit_learn_if_that_is_imported(imported, monkeypatch):
    exceptions = pytest.importorskip("sklearn.exceptions")
    if not imported:
        monkeypatch.delitem(sys.modules, "sklearn.exceptions")
    with pytest.raises(
        NotFittedError, match=r"calibrator must be fitted before use; call fit\(\)"
    ) as refused:
        Calibrator().predict_proba([0.3])
    for error in (refused.value, pickle.loads(pickle.dumps(refused.value))):
        assert isinstance(error, InputError)
        assert isinstance(error, AttributeError)
        assert isinstance(error, exceptions.NotFittedError) == imported
        assert str(error) == str(refused.value)


@pytest.mark.parametrize(("alias", "name"), [("platt", "sigmoid"), ("affine", "logistic")])
def test_an_alias_is_stored_and_printed_under_one_name(alias, name):
    score, outcome = rows()
    made = Calibrator(alias).fit(score, outcome)
    assert repr(made) == f"Calibrator({name!r}, n=80)"
    assert made.to_json() == Calibrator(name).fit(score, outcome).to_json()
    result = compare_calibrators(score, outcome, methods=[alias, name], rng=0)
    assert {row.method for row in result} == {"identity", name}
    assert result[alias] is result[name]
    assert str(CanonicalVariational.parse(alias)) == f"variational:{name}"

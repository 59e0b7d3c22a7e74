"""The canonical notion by the public functions: identities, what must not change it, and what it refuses."""

import numpy as np
import pytest

import calibrant
from calibrant import Estimate
from calibrant.inference.comparison import ErrorDifference
from calibrant.inputs.wording import number


def drawn(n=250, classes=4, seed=0, pull=0.4):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(classes), n)
    truth = (1 - pull) * p + pull / classes
    return p, (rng.random((n, 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)


@pytest.fixture(scope="module")
def found():
    p, y = drawn()
    return calibrant.estimate(y, p, notion="canonical", rng=0)


def test_value_interval_null_test_and_bound_belong_together(found):
    p, y = drawn()
    assert found.value == pytest.approx(calibrant.ece(y, p, notion="canonical"), abs=1e-12)
    assert found.low <= found.value <= found.high
    assert 0 < found.at_least < found.value
    assert found.null.mean < found.value
    assert found.p_value == 0.001
    assert (found.over, found.under, found.lower_bound, found.estimator) == (None, None, False, "softmax")
    assert sum(each.value for each in found.by_class.values()) == pytest.approx(found.value)
    assert " canonical\n" in str(found)
    assert f"lower bound {number(found.at_least)} (" in " ".join(str(found).split())
    assert Estimate.from_json(found.to_json()) == found


def test_models_are_compared_row_by_row():
    p, y = drawn(300, pull=0.6)
    recalibrated = 0.4 * p + 0.6 / 4
    result = calibrant.compare(y, {"raw": p, "recalibrated": recalibrated}, notion="canonical", rng=0)
    difference = result.differences["recalibrated"]
    assert difference.low < difference.value < 0
    assert difference.high < 0
    assert ErrorDifference.from_dict(difference.to_dict()) == difference
    assert calibrant.Comparison.from_json(result.to_json()).differences == result.differences
    two = {"a": p[:, 0], "b": 0.5 * p[:, 0] + 0.1}
    assert calibrant.compare(y == 0, two, notion="canonical", rng=0).differences["b"].baseline == "a"

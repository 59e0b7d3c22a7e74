"""No map calls impossible what has happened, and the default map calls nothing impossible."""

import json

import numpy as np
import pytest

from calibrant import Calibrator, InputError
from calibrant.maps.forms import Bounded
from calibrant.posterior.log_odds.cells import certainty_bound
from oracles.maps import jeffreys_mean


def certain(n_zero=200, n_one=120, seed=0):
    """Draw calibrated scores in steps of 0.01, with rows of 0 and 1 that are always right."""
    rng = np.random.default_rng(seed)
    inner = rng.integers(1, 100, 400) / 100
    score = np.concatenate([np.zeros(n_zero), np.ones(n_one), inner])
    return score, np.concatenate([np.zeros(n_zero), np.ones(n_one), rng.random(400) < inner]).astype(int)


def test_the_bound_does_not_pass_the_nearest_other_score():
    assert certainty_bound(3, 0.1) == 0.05
    assert certainty_bound(0, 0.5) == 0.001
    assert certainty_bound(1e6, 1e-300) == 2**-50
    assert certainty_bound(9, 1.0) == pytest.approx(jeffreys_mean(0, 9), rel=1e-12)


def test_bounds_in_the_wrong_order_are_refused():
    with pytest.raises(InputError, match="low must not be above high"):
        Bounded(0.6, 0.4)._check_fields()
    content = json.loads(Calibrator().fit(*certain()).to_json())
    content["maps"][0]["low"] = 0.9999
    with pytest.raises(InputError, match=r"maps\[0\].low must not be above high"):
        Calibrator.from_json(json.dumps(content))

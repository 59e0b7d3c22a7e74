"""Beta kernels by moments of cells against Chen's formula row by row."""

import numpy as np
import pytest

import calibrant
from calibrant import DensityBeta, Sketch


@pytest.mark.parametrize("wrong", [None, [0.1], True, 0, -1, float("inf")])
def test_a_bandwidth_that_is_no_positive_number_is_refused(wrong):
    with pytest.raises(calibrant.InputError, match="bandwidth must be a positive number"):
        DensityBeta(wrong)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"bandwidth": "silvermann"}, "bandwidth must be one of"),
        ({"kernel": "triweight"}, "kernel must be one of .*beta2"),
        ({"mass": "both"}, "mass must be one of 'whole', 'each'"),
        ({"places": 1}, "places must be a number from 4 to 1000"),
    ],
)
def test_a_wrong_choice_says_what_is_right(choices, message):
    with pytest.raises(calibrant.InputError, match=message):
        DensityBeta(**choices)


# --- sketches ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("notion", ["binary", "classwise", "confidence"])
@pytest.mark.parametrize("saturated", [False, True])
def test_a_sketch_has_the_error_of_the_rows(notion, saturated):
    rng = np.random.default_rng(0)
    score = rng.beta(0.7, 0.9, 3000)
    if saturated:
        score[:1200] = 1 - 10.0 ** rng.uniform(-14, -3, 1200)
        score[:60] = 1.0
    label = (rng.random(3000) < score**1.4).astype(int)
    sketch = Sketch(notion).update(label, score)
    for estimator in ("dbeta", "dbeta2", "dbeta:0.01", "dbeta2:0.01"):
        expected = calibrant.ece(label, score, notion=notion, estimator=estimator)
        assert sketch.ece(estimator=estimator) == pytest.approx(expected, abs=1e-5), estimator


def test_an_unknown_kernel_is_refused_with_all_that_there_are():
    with pytest.raises(calibrant.InputError, match=r"kernel must be one of .*cosine.*beta2"):
        calibrant.reliability_curve([0, 1], [0.2, 0.7], method="density", kernel="gamma")

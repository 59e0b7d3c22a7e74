"""Ends of the interval of the class frequencies before `PriorShift` is fitted."""

import numpy as np
import pytest

from calibrant import PriorShift

SCORES = np.array([0.2, 0.5, 0.7])


@pytest.mark.parametrize(
    ("options", "target"),
    [
        ({"train": 0.5, "target": 0.1}, 0.1),
        ({"target": 0.1}, 0.1),
        ({"train": 0.3, "sampling": 0.1}, 0.3),
        ({"train": [0.2, 0.3, 0.5], "target": [0.1, 0.1, 0.8]}, [0.1, 0.1, 0.8]),
    ],
)
def test_known_frequencies_are_their_own_interval_before_a_fit(options, target):
    shift = PriorShift(**options)
    for share in (shift.low, shift.target, shift.high):
        np.testing.assert_allclose(share, target)


def test_a_fit_does_not_change_known_frequencies():
    shift = PriorShift(train=0.3, sampling=0.1)
    before = shift.low, shift.target, shift.high
    shift.fit(SCORES)
    assert (shift.low, shift.target, shift.high) == pytest.approx(before)


def test_frequencies_that_no_parameter_tells():
    shift = PriorShift(sampling=0.1)
    assert shift.low is shift.target is shift.high is None
    shift = PriorShift(train=0.5)
    assert shift.target is None
    for end in ("low", "high"):
        with pytest.raises(ValueError, match="must be fitted"):
            getattr(shift, end)
    shift.fit(SCORES)
    assert shift.low <= shift.target <= shift.high

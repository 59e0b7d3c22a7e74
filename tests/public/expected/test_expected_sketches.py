"""Faults of sketches: each test states the right behaviour and fails today."""

import numpy as np
import pytest

import calibrant


@pytest.mark.xfail(strict=True, reason="A sketch added to itself counts every row twice without a warning.")
def test_adding_a_sketch_twice_warns():
    rng = np.random.default_rng(0)
    score = rng.random(500)
    y = rng.random(500) < score
    first, second = calibrant.Sketch(), calibrant.Sketch()
    first.update(y, score)
    second.update(y, score)
    with pytest.warns(calibrant.InputWarning):
        first + second

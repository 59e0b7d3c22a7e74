"""Maps that several engines run."""

from functools import cache

import numpy as np

import calibrant
from calibrant import Calibrator

OF_ONE_SCORE = [name for name in calibrant.calibrator_names() if name not in ("vector", "matrix")]
OF_ALL_SCORES = ["auto", "temperature", "vector", "matrix"]
# The ends, far beyond what was learned from, and scores of float32.
EXTREMES = [0.0, 1.0, 1e-300, 1e-12, 1 - 1e-12, 0.5, float(np.float32(0.1))]


@cache
def some_maps(n=1500):
    """Return every map of an overconfident model, some of its scores repeated, and at 0 and 1."""
    rng = np.random.default_rng(3)
    score = np.concatenate([rng.beta(0.7, 0.9, n * 4 // 5), rng.integers(0, 11, n // 5) / 10])
    odds = 0.6 * np.log(np.clip(score, 1e-6, 1) / np.clip(1 - score, 1e-6, 1)) - 0.4
    outcome = rng.random(n) < 1 / (1 + np.exp(-odds))
    maps = {name: Calibrator(name).fit(score, outcome) for name in OF_ONE_SCORE}
    return maps, np.concatenate([EXTREMES, score[::10], np.linspace(0, 1, 101)])

"""The number reads a posterior on the scale of probabilities, the curve one in log-odds: they agree."""

import numpy as np
import pytest
from scipy.special import expit, ndtri

import calibrant
from calibrant.experiment.families import FAMILIES
from calibrant.posterior.log_odds import model_average
from calibrant.score_data import Residuals, Sample

POINTS = ndtri((np.arange(15) + 0.5) / 15)


def error_of_the_average(score, outcome):
    """Mean distance of what scores mean from the scores, over the members of the average over maps."""
    mixture = model_average(Residuals.of(Sample(score, outcome)))
    cells = mixture.cells
    beyond = (mixture.at.size - cells.x.size) // 2
    inner = slice(beyond, beyond + cells.x.size)
    weight, mean, sd = (part[:, inner] for part in (mixture.weight, mixture.mean, mixture.sd))
    away = np.mean([np.abs(expit(mean + sd * z) - expit(cells.x)) for z in POINTS], axis=0)
    return float(cells.trials @ (weight * away).sum(axis=0) / cells.n)


@pytest.mark.full
def test_both_posteriors_say_the_same_of_the_error():
    apart = []
    for k, family in enumerate(FAMILIES.values()):
        for n in (500, 2000):
            score, outcome = family.draw(np.random.default_rng([k, n]), n)
            estimate = calibrant.estimate(outcome, score)
            distance = abs(error_of_the_average(score, outcome) - estimate.value)
            apart.append(distance / ((estimate.high - estimate.low) / 2))
    assert np.median(apart) < 0.2
    assert np.mean(np.array(apart) <= 0.5) >= 0.85
    assert max(apart) < 1.5

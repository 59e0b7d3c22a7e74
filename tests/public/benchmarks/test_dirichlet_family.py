"""The family of probability vectors with a known error."""

import numpy as np
import pytest
from test_studies import study

import calibrant

pytestmark = pytest.mark.full


@pytest.mark.parametrize("notion", ["confidence", "classwise"])
def test_the_true_error_of_the_dirichlet_family_is_what_it_says(notion):
    family = study("dirichlet_family").Dirichlet(5, 0.3)
    scores, labels = family.draw(np.random.default_rng(0), 400_000)
    gap = 0.3 * (0.2 - scores)
    errors = np.abs(gap) if notion == "classwise" else np.abs(gap[np.arange(len(gap)), scores.argmax(axis=1)])
    assert errors.mean() == pytest.approx(family.truth(notion), abs=3e-4)
    assert calibrant.ece(labels, scores, notion=notion) == pytest.approx(family.truth(notion), abs=0.004)
    if notion == "confidence":
        # Of one problem it is that of Brier score and error.
        top = scores.max(axis=1)
        brier = np.mean((top - (labels == scores.argmax(axis=1))) ** 2)
        expected = np.sqrt(brier - family.truth(notion) ** 2)
        assert family.deviation(notion) == pytest.approx(expected, rel=5e-3)

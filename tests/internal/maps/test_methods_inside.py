"""Maps by name, compared with slow and obvious ones."""

import numpy as np

from calibrant.maps.venn_abers import venn_abers
from oracles import maps as oracle


def test_venn_abers_of_counts_is_that_of_their_rows():
    mass, positive = np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 1.0])
    low, high = venn_abers(mass, positive)
    score, outcome = [0.1] * 3 + [0.5] + [0.7] * 2, [1, 0, 0, 1, 0, 1]
    expected = [oracle.venn_abers(score, outcome, p) for p in (0.1, 0.5, 0.7)]
    np.testing.assert_allclose(np.stack([low, high], axis=1), expected, atol=1e-12)

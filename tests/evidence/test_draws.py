"""Binomial outcomes are those of numpy, number for number."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.evidence.draws import binomial

GROUPS = st.lists(st.tuples(st.integers(1, 60), st.floats(0.0, 1.0)), min_size=1, max_size=30)


@given(groups=GROUPS, size=st.integers(1, 60), seed=st.integers(0, 2**32))
def test_the_numbers_and_the_generator_are_those_of_numpy(groups, size, seed):
    n, p = (np.array(column) for column in zip(*groups, strict=True))
    fast, plain = (np.random.default_rng(seed) for _ in range(2))
    np.testing.assert_array_equal(binomial(fast, n, p, size), plain.binomial(n, p, (size, n.size)))
    assert fast.random() == plain.random()


@pytest.mark.parametrize("p", [1e-300, 1e-9, 0.5, np.nextafter(0.5, 1), 1 - 1e-9, 1.0])
def test_chances_at_the_walls_and_at_one_half_are_drawn_alike(p):
    n, chance = np.array([1, 2, 7, 40]), np.full(4, p)
    fast, plain = (np.random.default_rng(1) for _ in range(2))
    drawn = binomial(fast, n, chance, 20_000)
    np.testing.assert_array_equal(drawn, plain.binomial(n, chance, (20_000, 4)))

"""Scores at ranks, sums between them and spread: those of a sorted array."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.estimators.binned import adaptive_edges
from calibrant.score_data import Sample, tally
from plainly import plain

SCORES = {
    "even": lambda rng, n: rng.random(n),
    "ties": lambda rng, n: rng.integers(0, 9, n) / 8,
    "crowded": lambda rng, n: 1 - 1e-9 * rng.random(n),
    "one value": lambda rng, n: np.full(n, 0.3),
    "a cell apart": lambda rng, n: rng.integers(0, 2**17 + 1, n) / 2**17,
}


@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@settings(max_examples=15, deadline=None)
@given(n=st.integers(1, 3000), seed=st.integers(0, 99), ranks=st.sampled_from([1, 4, 20, 300]))
def test_ranks_are_those_of_the_sorted_scores(kind, dtype, n, seed, ranks):
    rng = np.random.default_rng(seed)
    score = SCORES[kind](rng, n).astype(dtype)
    rank = np.sort(rng.integers(0, n, ranks))
    expected = np.sort(score)[rank].astype(np.float64)
    np.testing.assert_array_equal(tally.order_statistics(score, rank), expected)


@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize("n_bins", [15, 264])
def test_bins_of_equal_mass_are_the_plain_ones(kind, n_bins):
    rng = np.random.default_rng(1)
    score, outcome = SCORES[kind](rng, 70_011), rng.random(70_011) < 0.4

    def bins():
        sample = Sample(score, outcome)
        edges = adaptive_edges(sample, n_bins)
        found = sample.bins(edges[1:-1])
        return edges, found.w, found.ws, found.wy

    with plain():
        expected = bins()
    for ours, theirs in zip(bins(), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_the_spread_is_that_of_numpy(kind, dtype):
    score = SCORES[kind](np.random.default_rng(0), 20_011).astype(dtype)
    expected = np.var(score.astype(np.float64), ddof=1)
    np.testing.assert_allclose(Sample(score, score > 0.5).variance(), expected, rtol=1e-12, atol=1e-32)

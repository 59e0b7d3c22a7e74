"""Scores at given ranks and their spread by compiled loops: those of a sorted array, and numpy's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant import compiled
from calibrant.evidence import tally
from plainly import needs_loops, plain

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
    with plain():
        np.testing.assert_array_equal(tally.order_statistics(score, rank), expected)


@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_the_spread_is_that_of_numpy(kind, dtype):
    score = SCORES[kind](np.random.default_rng(0), 20_011).astype(dtype)
    expected = np.var(score.astype(np.float64))
    np.testing.assert_allclose(tally.mean_square(score, None), expected, rtol=1e-12, atol=1e-32)


@needs_loops
@pytest.mark.parametrize("bad", [-0.1, 1.1, np.nan, np.inf])
def test_scores_outside_are_refused_and_counted_nowhere(bad):
    score = np.array([0.5, bad, 0.25])
    count, held = np.zeros(17, dtype=np.int32), np.ones(17, dtype=bool)
    with pytest.raises(ValueError, match="lie in"):
        compiled.loops.count_cells(score, count)
    with pytest.raises(ValueError, match="lie in"):
        compiled.loops.pick_cells(score, held, np.empty(3))
    assert not count.any()


@needs_loops
def test_arrays_that_do_not_fit_are_refused():
    score, count = np.array([0.5, 0.75, 1.0]), np.zeros(17, dtype=np.int32)
    loops = compiled.loops
    for wrong in (np.zeros(16, dtype=np.int32), np.zeros(17), np.zeros((17, 1), dtype=np.int32), count[::-1]):
        with pytest.raises((TypeError, ValueError)):
            loops.count_cells(score, wrong)
    for wrong in (score.astype("f2"), score[None], None, 0.5):
        with pytest.raises((TypeError, ValueError)):
            loops.count_cells(wrong, count)
        with pytest.raises((TypeError, ValueError)):
            loops.squared_distances(wrong, 0.5)
    kept = np.full(4, -1.0)
    # Scores beyond the room there is are counted, and written nowhere.
    assert loops.pick_cells(score, np.ones(17, dtype=bool), kept[:2]) == 3
    np.testing.assert_array_equal(kept, [0.5, 0.75, -1, -1])


@needs_loops
def test_scores_with_strides_are_counted_one_by_one():
    score = np.arange(8) / 8
    count = np.zeros(9, dtype=np.int32)
    compiled.loops.count_cells(score[::2], count)
    np.testing.assert_array_equal(count, [1, 0, 1, 0, 1, 0, 1, 0, 0])

"""Scores at ranks, sums between them and spread by compiled loops: those of a sorted array, and numpy's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant import compiled
from calibrant.estimators.bins import Adaptive
from calibrant.evidence import Sample, tally
from calibrant.evidence.drawers import Drawers
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


@needs_loops
@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@settings(max_examples=10, deadline=None)
@given(n=st.integers(1, 3000), seed=st.integers(0, 99), bins=st.sampled_from([1, 2, 15, 300]))
def test_sums_between_cuts_at_ranks_are_those_of_all_rows(kind, dtype, n, seed, bins):
    rng = np.random.default_rng(seed)
    score, outcome = SCORES[kind](rng, n).astype(dtype), rng.random(2 * n)[::2] < 0.3
    rank = np.sort(rng.integers(0, n, bins - 1))
    drawers = Drawers(compiled.loops, score, outcome, 17)
    cuts = drawers.ranked(rank)
    np.testing.assert_array_equal(cuts, np.sort(score)[rank].astype(np.float64))
    expected = tally.sums_between(score, outcome, None, cuts)
    np.testing.assert_allclose(drawers.sums_between(cuts), expected, rtol=1e-12, atol=1e-300)
    # Cuts at the ends of cells, and beyond all scores, go through no rows.
    cuts = np.union1d(cuts, [0.0, 0.25, 1.0, np.nextafter(1.0, 2.0), 1.5])
    expected = tally.sums_between(score, outcome, None, cuts)
    np.testing.assert_allclose(drawers.sums_between(cuts), expected, rtol=1e-12, atol=1e-300)


@needs_loops
def test_cuts_through_rows_of_closed_cells_are_left_to_the_loop_over_all_rows():
    rng = np.random.default_rng(0)
    score, outcome = rng.random(70_000), rng.random(70_000) < 0.5
    drawers = Drawers(compiled.loops, score, outcome, 11)
    drawers.ranked(np.array([15_000]))
    assert drawers.sums_between(np.array([0.3])) is None
    assert Drawers(compiled.loops, score, None, 11).sums_between(np.array([0.5])) is None
    sample, rank = Sample(score, outcome), np.arange(0, 70_000, 1000)
    sample.ranked(rank)
    np.testing.assert_array_equal(
        sample.bins(np.array([0.3])).w, Sample(score, outcome).bins(np.array([0.3])).w
    )


@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize("n_bins", [15, "sqrt"])
def test_bins_of_equal_mass_are_the_plain_ones(kind, n_bins):
    rng = np.random.default_rng(1)
    score, outcome = SCORES[kind](rng, 70_011), rng.random(70_011) < 0.4

    def bins():
        sample = Sample(score, outcome)
        edges = Adaptive(n_bins).edges(sample)
        found = sample.bins(edges[1:-1])
        return edges, found.w, found.ws, found.wy

    with plain():
        expected = bins()
    for ours, theirs in zip(bins(), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@needs_loops
def test_sums_of_cells_do_not_depend_on_the_number_of_threads(monkeypatch):
    monkeypatch.setattr("calibrant.evidence.drawers.PIECE", 1000)
    rng = np.random.default_rng(2)
    score, outcome, rank = rng.random(20_000), rng.random(20_000) < 0.5, np.arange(0, 20_000, 500)
    sums = []
    for threads in ("1", "2", "3"):
        monkeypatch.setenv(compiled.THREADS, threads)
        drawers = Drawers(compiled.loops, score, outcome, 14)
        sums.append(drawers.sums_between(drawers.ranked(rank)))
        np.testing.assert_array_equal(drawers.ranked(rank), np.sort(score)[rank])
        np.testing.assert_array_equal(tally.order_statistics(score, rank), np.sort(score)[rank])
    np.testing.assert_array_equal(sums[0], sums[1])
    np.testing.assert_array_equal(sums[0], sums[2])


@needs_loops
@settings(max_examples=30, deadline=None)
@given(keys=st.lists(st.integers(0, 2**63 - 1) | st.integers(0, 5), max_size=50))
def test_keys_are_sorted(keys):
    array = np.array(keys, dtype=np.int64)
    compiled.loops.sort_keys(array)
    assert array.tolist() == sorted(keys)


@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_the_spread_is_that_of_numpy(kind, dtype):
    score = SCORES[kind](np.random.default_rng(0), 20_011).astype(dtype)
    expected = np.var(score.astype(np.float64))
    np.testing.assert_allclose(tally.mean_square(score, None), expected, rtol=1e-12, atol=1e-32)


@needs_loops
@pytest.mark.parametrize("bad", [-0.1, 1.1, np.nan, np.inf])
def test_scores_outside_are_refused_and_counted_nowhere(bad):
    score, outcome = np.array([0.5, bad, 0.25]), np.array([True, False, True])
    count, held, sums = np.zeros(17, dtype=np.int32), np.ones(17, dtype=bool), np.zeros((17, 2, 2))
    with pytest.raises(ValueError, match="lie in"):
        compiled.loops.count_cells(score, None, count)
    with pytest.raises(ValueError, match="lie in"):
        compiled.loops.sum_cells(score, outcome, sums)
    with pytest.raises(ValueError, match="lie in"):
        compiled.loops.pick_cells(score, outcome, held, np.empty(3, dtype=np.int64))
    assert not count.any()
    assert not sums.any()


@needs_loops
def test_arrays_that_do_not_fit_are_refused():
    score, outcome = np.array([0.5, 0.75, 1.0]), np.array([True, False, True])
    count, sums, held = np.zeros(17, dtype=np.int32), np.zeros((17, 2, 2)), np.ones(17, dtype=bool)
    kept, loops = np.full(4, -1), compiled.loops
    for wrong in (np.zeros(16, dtype=np.int32), np.zeros(17), np.zeros((17, 1), dtype=np.int32), count[::-1]):
        with pytest.raises((TypeError, ValueError)):
            loops.count_cells(score, None, wrong)
    for wrong in (sums[:16], sums[:, :1], sums[:, :, 0], count, np.zeros((17, 2, 3)), None):
        with pytest.raises((TypeError, ValueError)):
            loops.sum_cells(score, outcome, wrong)
    for wrong in (outcome[:2], outcome.astype(int), outcome[None], 1):
        with pytest.raises((TypeError, ValueError)):
            loops.sum_cells(score, wrong, sums)
        with pytest.raises((TypeError, ValueError)):
            loops.pick_cells(score, wrong, held, kept)
    for wrong in (score.astype("f2"), score[None], None, 0.5):
        with pytest.raises((TypeError, ValueError)):
            loops.count_cells(wrong, None, count)
        with pytest.raises((TypeError, ValueError)):
            loops.sum_cells(wrong, outcome, sums)
        with pytest.raises((TypeError, ValueError)):
            loops.squared_distances(wrong, 0.5)
        with pytest.raises((TypeError, ValueError)):
            loops.sort_keys(wrong)
    for wrong in (kept[::2], kept.astype(float), kept[None]):
        with pytest.raises((TypeError, ValueError)):
            loops.pick_cells(score, outcome, held, wrong)
        with pytest.raises((TypeError, ValueError)):
            loops.sort_keys(wrong)
    # Rows beyond the room there is are counted, and written nowhere.
    assert loops.pick_cells(score, outcome, held, kept[:2]) == 3
    np.testing.assert_array_equal((kept[:2] >> 1).view(float), [0.5, 0.75])
    np.testing.assert_array_equal(kept & 1, [1, 0, 1, 1])
    assert kept[2:].tolist() == [-1, -1]


@needs_loops
def test_rows_with_strides_are_counted_one_by_one():
    score, outcome = np.arange(8) / 8, np.arange(8) > 4
    count, sums = np.zeros(9, dtype=np.int32), np.zeros((9, 2, 2))
    compiled.loops.count_cells(score[::2], None, count)
    np.testing.assert_array_equal(count, [1, 0, 1, 0, 1, 0, 1, 0, 0])
    compiled.loops.sum_cells(score[::2], outcome[::2], sums)
    np.testing.assert_array_equal(sums[:, 0, 0], [1, 0, 1, 0, 1, 0, 0, 0, 0])
    np.testing.assert_array_equal(sums[:, 1, 1], [0, 0, 0, 0, 0, 0, 0.75, 0, 0])

"""The compiled tally is the plain one: to the last bit where sums are exact, and to 1e-12 elsewhere."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant import compiled, parallel
from calibrant.score_data import COARSE, Layout, OneHot, loops, tally
from oracles import tally as oracle
from plainly import needs_loops, plain

few = settings(max_examples=60, deadline=None)
SMALL = Layout(20)
seeds = st.integers(0, 2**32 - 1)
# About a block of rows, a table of cuts, and a chunk of the plain version's.
sizes = st.sampled_from((1, 2, 7, 60, 1000, 1024, 1025, 5000))
dtypes = st.sampled_from((np.float64, np.float32))
kinds = st.sampled_from(("anywhere", "ties", "edges", "beside edges", "walls", "one value", "exact"))
cuttings = st.sampled_from(("equal", "unequal", "neighbours", "scores", "repeated", "walls", "none"))
weightings = st.sampled_from(("none", "counts", "small counts", "importance", "single"))
memories = st.sampled_from(("C", "F", "reversed", "every second"))
shares = st.sampled_from((0.0, 0.05, 0.5, 1.0))
batches = st.sampled_from(((), (1,), (3,), (2, 2)))
powers_asked = st.integers(0, 2)


def scores(rng, kind, shape, dtype):
    k = rng.choice([2, 10, 15, 20, 100])
    edges = rng.integers(0, k + 1, shape) / k
    values = {
        "anywhere": lambda: rng.random(shape),
        "ties": lambda: rng.integers(0, 4, shape) / 3,
        "edges": lambda: edges,
        "beside edges": lambda: edges,
        "walls": lambda: rng.choice([0.0, -0.0, 1.0, 5e-324, 1e-17, 1 - 1e-16, 1e-3, 0.999], shape),
        "one value": lambda: np.full(shape, 0.3),
        "exact": lambda: rng.integers(0, 1025, shape) / 1024,
    }[kind]().astype(dtype)
    if kind == "beside edges":
        values = np.clip(np.nextafter(values, rng.choice([0.0, 1.0], shape).astype(dtype)), 0, 1)
    return values


def weights(rng, kind, shape):
    return {
        "none": lambda: None,
        "counts": lambda: rng.integers(0, 4, shape),
        "small counts": lambda: rng.integers(0, 200, shape, dtype=np.uint8),
        "importance": lambda: rng.random(shape),
        "single": lambda: rng.random(shape, dtype=np.float32),
    }[kind]()


def some_cuts(rng, kind, score):
    at = float(rng.choice(score.ravel()))
    return {
        "equal": lambda: np.arange(1, k := rng.choice([1, 2, 15, 100, 4096])) / k,
        "unequal": lambda: np.sort(rng.random(rng.choice([1, 14, 3000]))),
        "neighbours": lambda: np.unique([np.nextafter(at, 0), at, np.nextafter(at, 2), 0.5]),
        "scores": lambda: np.unique(rng.choice(score.ravel(), 9).astype(float)),
        "repeated": lambda: np.sort(rng.integers(0, 5, 12) / 4),
        "walls": lambda: np.array([0.0, 5e-324, 1e-20, 1 - 2.0**-53, 1.0]),
        "none": lambda: np.array([]),
    }[kind]()


def laid(values, memory):
    """The same values with other strides."""
    if values is None or memory == "C":
        return values
    if memory == "F":
        return np.asfortranarray(values)
    if memory == "reversed":
        return values[..., ::-1].copy()[..., ::-1]
    return np.repeat(values, 2, axis=-1)[..., ::2]


def close(sums, expected):
    """To 1e-12 of what both outcomes have."""
    assert sums.shape == expected.shape
    # Below the least normal number digits are missing, and products are rounded to the steps there.
    limit = 1e-12 * np.abs(expected).sum(axis=1, keepdims=True) + np.finfo(float).tiny
    assert np.all(np.abs(sums - expected) <= limit)
    # Counts of rows are exact.
    if np.array_equal(expected[0], np.rint(expected[0])):
        assert np.array_equal(sums[0], expected[0])


def both(function, *arguments, **options):
    """The compiled sums and the plain ones."""
    with plain():
        expected = function(*arguments, **options)
    return function(*arguments, **options), expected


# --- between cuts ----------------------------------------------------------------------------------


@few
@given(seeds, sizes, kinds, dtypes, cuttings, weightings, memories, shares, powers_asked)
def test_sums_between_cuts(seed, n, kind, dtype, cutting, weighting, memory, share, powers):
    rng = np.random.default_rng(seed)
    score = scores(rng, kind, n, dtype)
    cuts, outcome, weight = some_cuts(rng, cutting, score), rng.random(n) < share, weights(rng, weighting, n)
    rows = [laid(values, memory) for values in (score, outcome, weight)]
    for origin in (None, np.append(0.0, cuts)):
        close(*both(tally.sums_between, *rows, laid(cuts, memory), laid(origin, memory), powers))


@few
@given(seeds, sizes, dtypes, cuttings, batches, memories, st.sampled_from(("none", "counts")), powers_asked)
def test_sums_of_short_fractions_are_equal_to_the_last_bit(
    seed, n, dtype, cutting, batch, memory, weighting, powers
):
    rng = np.random.default_rng(seed)
    score = scores(rng, "exact", (*batch, n), dtype)
    cuts, outcome = some_cuts(rng, cutting, score), rng.random(score.shape) < 0.5
    rows = [laid(values, memory) for values in (score, outcome, weights(rng, weighting, score.shape))]
    origin = np.floor(1024 * np.append(0.0, np.minimum(cuts, 1))) / 1024
    for own in (None, origin):
        sums, expected = both(tally.sums_between, *rows, cuts, own, powers)
        assert np.array_equal(sums, expected)


@few
@given(seeds, sizes, kinds, dtypes, cuttings, batches, weightings, memories, powers_asked)
def test_sums_of_a_batch(seed, n, kind, dtype, cutting, batch, weighting, memory, powers):
    rng = np.random.default_rng(seed)
    n = min(n, 1025)
    score = scores(rng, kind, (*batch, n), dtype)
    outcome = rng.random(score.shape if rng.random() < 0.5 else n) < 0.5
    weight = weights(rng, weighting, score.shape if rng.random() < 0.5 else n)
    rows = [laid(values, memory) for values in (score, outcome, weight)]
    shared = some_cuts(rng, cutting, score)[:200]
    # A line for each problem, some of them with equal cuts and some without.
    own = np.sort(rng.choice([0.25, 0.5, 0.75, rng.random()], (*batch, 3)))
    for cuts in (shared, own):
        origin = np.concatenate([np.zeros((*cuts.shape[:-1], 1)), cuts], axis=-1)
        for start in (None, origin):
            close(*both(tally.sums_between, *rows, cuts, start, powers))


def test_one_line_of_scores_serves_a_batch_of_outcomes():
    rng = np.random.default_rng(0)
    score, outcome = rng.random(50), rng.random((4, 50)) < 0.3
    close(*both(tally.sums_between, score, outcome, None, np.array([0.2, 0.7])))
    close(*both(tally.sums_in_cells, score, outcome, rng.random((4, 1)), SMALL))


# --- in cells --------------------------------------------------------------------------------------


@few
@given(seeds, sizes, kinds, dtypes, batches, weightings, memories, powers_asked, st.booleans())
def test_sums_in_cells(seed, n, kind, dtype, batch, weighting, memory, powers, squares):
    rng = np.random.default_rng(seed)
    score = scores(rng, kind, (*batch, n), dtype)
    outcome, weight = rng.random(score.shape) < 0.4, weights(rng, weighting, n)
    rows = [laid(values, memory) for values in (score, outcome, weight)]
    for layout in (SMALL, COARSE, Layout(3)):
        close(*both(tally.sums_in_cells, *rows, layout, powers, squares=squares))


@pytest.mark.parametrize("weighting", ["none", "importance"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sums_of_many_rows_in_cells(weighting, dtype):
    rng = np.random.default_rng(1)
    score = np.concatenate([rng.random(4000), rng.integers(0, 21, 1000) / 20]).astype(dtype)
    outcome, weight = rng.random(5000) < score, weights(rng, weighting, 5000)
    sums, expected = both(tally.sums_in_cells, score, outcome, weight, SMALL, squares=weight is not None)
    np.testing.assert_allclose(sums, expected, rtol=1e-12, atol=1e-12)
    assert weight is not None or np.array_equal(sums[0], expected[0])


# --- class by class of a matrix --------------------------------------------------------------------


@few
@given(
    *(seeds, st.sampled_from((1, 5, 40)), st.sampled_from((1, 3, 16, 17, 70)), kinds, dtypes, weightings),
    *(st.sampled_from((1, 2, 15, 50)), st.booleans(), st.booleans()),
)
def test_classes_of_a_matrix_are_summed_as_by_a_loop(
    seed, n, classes, kind, dtype, weighting, bins, small, part
):
    rng = np.random.default_rng(seed)
    matrix = scores(rng, kind, (n, classes), dtype) * dtype(0.01 if small else 1)
    first = int(rng.integers(classes)) if part else 0
    code = rng.integers(0, classes, n)
    outcome = OneHot(code, first=first, size=classes - first)
    weight, cuts = weights(rng, weighting, n), np.arange(1, bins) / bins
    sums = tally.sums_between(matrix[:, first:].T, outcome, weight, cuts)
    for c in (0, classes - first - 1):
        column = matrix[:, first + c]
        expected = oracle.sums_between(column, code == first + c, weight, cuts)
        close(sums[:, :, c], expected)
    for own, powers in ((None, 0), (np.append(0.0, cuts), 2)):
        close(*both(tally.sums_between, matrix[:, first:].T, outcome, weight, cuts, own, powers))


@few
@given(seeds, st.sampled_from((1, 40)), st.sampled_from((2, 17)), kinds, dtypes, weightings, st.booleans())
def test_classes_of_a_matrix_in_cells(seed, n, classes, kind, dtype, weighting, columns):
    rng = np.random.default_rng(seed)
    matrix = scores(rng, kind, (n, classes), dtype)
    if columns:  # problem after problem, not row after row
        matrix = np.asfortranarray(matrix)
    outcome = OneHot(rng.integers(0, classes, n), first=0, size=classes)
    weight = weights(rng, weighting, n)
    close(*both(tally.sums_in_cells, matrix.T, outcome, weight, SMALL, squares=True))


# --- pieces and threads ----------------------------------------------------------------------------


@pytest.mark.parametrize("weighting", ["none", "importance"])
def test_results_are_the_same_bits_for_any_number_of_threads(monkeypatch, weighting):
    rng = np.random.default_rng(2)
    score, matrix = rng.random(5000), rng.dirichlet(np.full(150, 0.1), 40)
    outcome, weight = rng.random(5000) < score, weights(rng, weighting, 5000)
    lines, code = score.reshape(50, 100), rng.integers(0, 150, 40)
    one_hot = OneHot(code, first=0, size=150)
    cuts, own = np.arange(1, 15) / 15, np.sort(rng.random((50, 4)))

    def everything():
        few_weights = None if weight is None else weight[:40]
        return (
            tally.sums_between(score, outcome, weight, cuts),
            tally.sums_in_cells(score, outcome, weight, COARSE),
            tally.sums_between(lines, outcome.reshape(50, 100), None, own),
            tally.sums_between(matrix.T, one_hot, few_weights, cuts),
            tally.sums_in_cells(matrix.T, one_hot, few_weights, SMALL),
        )

    with plain():
        expected = everything()
    monkeypatch.setattr(loops, "PIECE", 999)
    found = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv(parallel.THREADS, threads)
        found.append(everything())
    for sums in zip(expected, *found, strict=True):
        close(sums[1], sums[0])
        assert all(np.array_equal(sums[1], other) for other in sums[2:])


# --- what the loop is not made for -----------------------------------------------------------------


@pytest.mark.parametrize("dtype", [">f8", ">f4", "<f2", np.longdouble])
def test_scores_of_another_kind_are_summed_too(dtype):
    score, outcome = np.array([0.25, 0.5, 0.75, 0.5]).astype(dtype), np.array([True, False, True, True])
    sums, expected = both(tally.sums_between, score, outcome, None, np.array([0.5]))
    assert np.array_equal(sums, expected)
    assert np.array_equal(sums[:, 1], [[1, 2], [0.25, 1.25]])


@pytest.mark.parametrize("dtype", [">f8", ">i8", np.uint64, bool, np.int16, "<f2"])
def test_weights_of_another_kind_are_summed_too(dtype):
    score, outcome = np.array([0.25, 0.5, 0.75]), np.array([True, False, True])
    sums, expected = both(tally.sums_between, score, outcome, np.ones(3, dtype), np.array([0.5]))
    assert np.array_equal(sums, expected)


def test_columns_of_packed_records_are_summed_too():
    packed = np.zeros(5, dtype=[("y", "?"), ("p", "f8"), ("w", "f8")])
    packed["p"], packed["w"], packed["y"] = np.arange(5) / 8, 2, [0, 1, 0, 1, 1]
    for score in (packed["p"], packed["p"].copy()):
        sums, expected = both(tally.sums_between, score, packed["y"], packed["w"], np.array([0.25]))
        assert np.array_equal(sums, expected)


@needs_loops
@few
@given(seeds, sizes, st.sampled_from((1, 3, 16, 21)), kinds, dtypes)
def test_classes_are_summed_where_they_hold_anything(seed, n, classes, kind, dtype):
    rng = np.random.default_rng(seed)
    score, code = scores(rng, kind, (n, classes), dtype), rng.integers(0, classes + 3, n)
    outcome = OneHot(code, 2, classes)
    held, sums = loops.sums_in_occupied_cells(score.T, outcome, None, SMALL)
    with plain():
        every = tally.sums_in_cells(score.T, outcome, None, SMALL, 1)
    assert np.array_equal(held, np.flatnonzero(every[0].any(axis=(0, 1))))
    rows, above, positive = every[0].sum(axis=0), every[1].sum(axis=0), every[0, 1]
    np.testing.assert_array_equal(sums[0], rows[:, held])
    np.testing.assert_array_equal(sums[2], positive[:, held])
    np.testing.assert_allclose(sums[1], above[:, held], rtol=1e-12, atol=1e-18)


@needs_loops
def test_arrays_of_cells_that_do_not_fit_are_refused():
    score, code = np.full((8, 3), 0.3), np.zeros(3, np.int64)
    place, sums = np.empty(SMALL.size, np.int32), np.zeros((SMALL.size, 8, 3))
    arrays = [np.ascontiguousarray(score.T).T, code, SMALL.parts, SMALL.low, place, sums]
    rest, function = (*SMALL.boundary_cells, 0), compiled.loops.sum_held
    function(*arrays, *rest)
    with pytest.raises(TypeError):
        function(*arrays)
    with pytest.raises(TypeError):
        function(*arrays, None, *rest[1:])
    for i, array in enumerate(arrays):
        for other in (array[..., :-1].copy(), array.astype(np.float16), array[..., None], None):
            with pytest.raises((TypeError, ValueError)):
                function(*arrays[:i], other, *arrays[i + 1 :], *rest)
    for value in (-0.1, 1.1, np.nan):
        with pytest.raises(ValueError, match="lie in"):
            function(np.full((3, 8), value).T, *arrays[1:], *rest)
    with pytest.raises(ValueError, match="fit"):
        function(*arrays, 1, 1, 1, 40, 0)

"""Every sum over rows is that of a plain loop, whichever way it is taken."""

import ast
import inspect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.score_data import (
    COARSE,
    FINE,
    Cells,
    Layout,
    Residuals,
    Sample,
    cells,
    residuals,
    sample,
    tally,
)
from calibrant.score_data.sample import sums_in_runs
from calibrant.sketch import totals
from oracles import tally as oracle
from plainly import plain as without_loops
from weighing import weighted_sample

few = settings(max_examples=60, deadline=None)
SMALL = Layout(20)
seeds = st.integers(0, 2**32 - 1)
dtypes = st.sampled_from((np.float16, np.float32, np.float64))
weightings = st.sampled_from(("none", "counts", "importance"))
KINDS = ("anywhere", "ties", "edges", "beside edges", "walls", "one value")
kinds = st.sampled_from(KINDS)
memories = st.sampled_from(("C", "F", "reversed", "every second"))


def scores(rng, kind, shape, dtype=np.float64, k=20):
    edges = rng.integers(0, k + 1, shape) / k
    values = {
        "anywhere": lambda: rng.random(shape),
        "ties": lambda: rng.integers(0, 4, shape) / 3,
        "edges": lambda: edges,
        "beside edges": lambda: np.clip(np.nextafter(edges, rng.choice([0.0, 1.0], shape)), 0, 1),
        "walls": lambda: rng.choice([0.0, -0.0, 1.0, 5e-324, 1e-17, 1 - 1e-16, 1e-3, 0.999], shape),
        "one value": lambda: np.full(shape, 0.3),
    }[kind]()
    return values.astype(dtype)


def weights(rng, kind, n):
    drawn = {"none": None, "counts": rng.integers(0, 4, n), "importance": rng.random(n)}[kind]
    if drawn is not None:
        drawn[0] = 1
    return drawn


def laid(values, memory):
    """The same values with other strides."""
    if memory == "F":
        return np.asfortranarray(values)
    if memory == "reversed":
        return values[..., ::-1].copy()[..., ::-1]
    return np.repeat(values, 2, axis=-1)[..., ::2] if memory == "every second" else values


def close(sums, expected):
    np.testing.assert_allclose(sums, expected, rtol=1e-12, atol=1e-14)


def positives(rng, score, rare):
    return rng.random(score.shape) < score * (0.05 if rare else 1)


# --- between cuts ----------------------------------------------------------------------------------


@few
@given(seeds, st.integers(1, 40), st.integers(0, 8), kinds, dtypes, weightings, st.booleans(), memories)
def test_sums_between_cuts_are_those_of_a_loop(seed, n, m, kind, dtype, weighting, rare, memory):
    rng = np.random.default_rng(seed)
    score = scores(rng, kind, n, dtype)
    outcome, weight = positives(rng, score, rare), weights(rng, weighting, n)
    cuts = np.sort(rng.choice(np.concatenate([np.arange(1, 20) / 20, score.astype(float)]), m))
    origin = np.append(0.0, cuts)
    for own, powers in ((None, 1), (origin, 2), (origin, 0)):
        sums = tally.sums_between(laid(score, memory), outcome, weight, cuts, own, powers)
        assert sums.shape == (powers + 1, 2, m + 1)
        close(sums, oracle.sums_between(score, outcome, weight, cuts, own, powers))


@few
@given(seeds, st.integers(1, 12), st.integers(1, 4), kinds, dtypes, weightings, st.booleans(), memories)
def test_a_batch_may_share_cuts_and_origins_or_have_its_own(
    seed, n, problems, kind, dtype, weighting, rare, memory
):
    rng = np.random.default_rng(seed)
    score = scores(rng, kind, (problems, n), dtype)
    outcome, weight = positives(rng, score, rare), weights(rng, weighting, n)
    cuts, origin = np.sort(rng.random((problems, 3)), axis=-1), rng.random((problems, 4))
    rows = laid(score, memory), outcome, weight
    for own_cuts, own_origin in ((cuts, origin), (cuts, origin[0]), (cuts[0], origin), (cuts[0], origin[0])):
        sums = tally.sums_between(*rows, own_cuts, own_origin, 2)
        assert sums.shape == (3, 2, problems, 4)
        for k in range(problems):
            ends, start = (
                np.broadcast_to(own_cuts, cuts.shape)[k],
                np.broadcast_to(own_origin, origin.shape)[k],
            )
            expected = oracle.sums_between(score[k], outcome[k], weight, ends, start, 2)
            close(sums[:, :, k], expected)


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("memory", ["C", "F"])
def test_long_rows_are_summed_likewise(own, memory):
    rng, n = np.random.default_rng(1), 5000
    score = scores(rng, "beside edges", (3, n))
    outcome, weight = positives(rng, score, rare=False), weights(rng, "importance", n)
    cuts = np.sort(rng.random((3, 4)), axis=-1) if own else np.arange(1, 20) / 20
    whole = tally.sums_between(laid(score, memory), outcome, weight, cuts)
    for k in range(3):
        close(whole[:, :, k], oracle.sums_between(score[k], outcome[k], weight, cuts[k] if own else cuts))


# --- in cells --------------------------------------------------------------------------------------


@few
@given(seeds, st.integers(1, 40), kinds, dtypes, weightings, st.booleans(), memories)
def test_sums_in_cells_are_those_of_a_loop(seed, n, kind, dtype, weighting, rare, memory):
    rng = np.random.default_rng(seed)
    score = scores(rng, kind, n, dtype)
    outcome, weight = positives(rng, score, rare), weights(rng, weighting, n)
    counted = np.ones(n, dtype=int) if weight is None else weight
    expected = oracle.sums_in_cells(score, outcome, counted, SMALL.low, SMALL.high)
    for powers in (0, 1, 2):
        sums = tally.sums_in_cells(laid(score, memory), outcome, weight, SMALL, powers)
        close(sums, expected[: powers + 1])
        if weighting != "importance":
            np.testing.assert_array_equal(sums[0], expected[0])
        both = tally.sums_in_cells(laid(score, memory), outcome, weight, SMALL, powers, squares=True)
        close(both[:-1], expected[: powers + 1])
        squares = oracle.sums_in_cells(score, outcome, counted * counted, SMALL.low, SMALL.high, 0)
        close(both[-1:], squares)


@few
@given(seeds, st.integers(1, 10), st.integers(1, 4), kinds, dtypes, weightings, memories)
def test_cells_of_a_batch_are_those_of_its_problems(seed, n, problems, kind, dtype, weighting, memory):
    rng = np.random.default_rng(seed)
    score = scores(rng, kind, (problems, n), dtype)
    outcome, weight = positives(rng, score, rare=False), weights(rng, weighting, n)
    batch = tally.sums_in_cells(laid(score, memory), outcome, weight, SMALL)
    for k in range(problems):
        close(batch[:, :, k], tally.sums_in_cells(score[k], outcome[k], weight, SMALL))


@pytest.mark.parametrize("layout", [FINE, COARSE])
@pytest.mark.parametrize("weighting", ["none", "counts", "importance"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_loops_and_numpy_sum_many_rows_alike(kind, dtype, weighting, layout):
    rng, n = np.random.default_rng(2), 70_001
    score = scores(rng, kind, n, dtype, k=14400)
    rows = score, positives(rng, score, rare=False), weights(rng, weighting, n)
    whole = tally.sums_in_cells(*rows, layout)
    with without_loops():
        many = tally.sums_in_cells(*rows, layout)
    np.testing.assert_allclose(many[0], whole[0], rtol=1e-13)
    # A distance is known as well as the score itself is.
    assert np.all(np.abs(many - whole) <= 2e-15 * np.maximum(whole[0], 1) + 1e-13 * whole)
    if weighting != "importance":
        np.testing.assert_array_equal(many[0], whole[0])


@pytest.mark.parametrize("n", [2, 70_000])
def test_new_weights_for_the_same_scores_make_a_batch_of_cells(n):
    rng = np.random.default_rng(3)
    score = rng.random(n)
    outcome, weight = score > 0.5, rng.integers(1, 4, (2, n))
    batch = Cells.of(weighted_sample(score, outcome, weight))
    assert batch.batch == (2,)
    for k in range(2):
        close(batch.sums.w[k], Cells.of(weighted_sample(score, outcome, weight[k])).sums.w)


# --- in runs ---------------------------------------------------------------------------------------


@few
@given(seeds, st.integers(1, 20), st.integers(1, 4), kinds)
def test_sums_in_runs_are_those_of_a_loop(seed, n, problems, kind):
    rng = np.random.default_rng(seed)
    run = np.sort(scores(rng, kind, (problems, n)), axis=-1)
    columns = rng.random((2, problems, n))
    for sums, column in zip(sums_in_runs(run, *columns), columns, strict=True):
        for k in range(problems):
            close(sums[k], oracle.sums_in_runs(run[k], column[k]))


@few
@given(seeds, st.integers(1, 40), kinds, dtypes, weightings)
def test_atoms_are_the_sums_of_tied_rows(seed, n, kind, dtype, weighting):
    rng = np.random.default_rng(seed)
    score = scores(rng, kind, n, dtype)
    outcome, weight = positives(rng, score, rare=False), weights(rng, weighting, n)
    tie_groups = weighted_sample(score, outcome, weight).tie_groups()
    for value in np.unique(np.abs(score)):
        tied = np.abs(score) == value
        mass = np.ones(n) if weight is None else weight
        at = tie_groups.origin == value
        close(tie_groups.w[at].sum(), mass[tied].sum())
        close(tie_groups.wy[at].sum(), mass[tied & outcome].sum())
        assert np.count_nonzero(tie_groups.w[at]) <= 1


@few
@given(seeds, st.integers(1, 40), kinds, dtypes, weightings)
def test_residuals_of_few_rows_of_many_and_of_cells_are_the_same(seed, n, kind, dtype, weighting):
    rng = np.random.default_rng(seed)
    score = scores(rng, kind, n, dtype)
    rows = weighted_sample(score, positives(rng, score, rare=False), weights(rng, weighting, n))
    by_sorting = Residuals.of(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(residuals, "SUMMED_FROM", 1)
        by_counting = Residuals.of(rows)
    by_sorting, by_counting = (each[each.mass > 0] for each in (by_sorting, by_counting))
    for attribute in ("mass", "score", "residual", "spread"):
        close(getattr(by_counting, attribute), getattr(by_sorting, attribute))
    from_cells = Residuals.of(Cells.of(rows))
    from_cells = from_cells[from_cells.mass > 0]
    for attribute in ("mass", "score", "residual", "spread"):
        close(getattr(from_cells, attribute), getattr(by_sorting, attribute))


@pytest.mark.parametrize("counted", [False, True])
def test_scores_on_both_sides_of_an_edge_by_rounding_are_one_score(counted, monkeypatch):
    monkeypatch.setattr(residuals, "SUMMED_FROM", 1 if counted else 8192)
    rng = np.random.default_rng(0)
    tenth = rng.integers(0, 11, 400)
    score = np.clip(np.nextafter(tenth / 10, rng.integers(-1, 3, 400)), 0.0, 1.0)
    rows = Sample(score, rng.random(400) < score)
    found = Residuals.of(rows)
    found = found[found.mass > 0]
    assert np.unique(score).size > found.mass.size == 11
    assert (np.diff(found.score) > 0.09).all()
    for k in range(11):
        own = tenth == k
        assert found.mass[k] == own.sum()
        assert score[own].min() <= found.score[k] <= score[own].max()
        assert found.residual[k] == pytest.approx((rows.outcome[own] - score[own]).sum(), abs=1e-12)
    # Each problem of a batch by itself.
    both = Residuals.of(Sample(np.stack([score, 1 - score]), np.stack([rows.outcome, ~rows.outcome])))
    for entry, step in ((0, 1), (1, -1)):
        one = both[entry]
        assert one[one.mass > 0].mass == pytest.approx(found.mass[::step])


@few
@given(seeds, st.integers(2, 60), st.integers(1, 6), kinds)
def test_residuals_of_merged_cells_are_those_of_rows_whatever_weighs_them(seed, n, pieces, kind):
    rng = np.random.default_rng(seed)
    score = scores(rng, kind, n)
    outcome, weight = positives(rng, score, rare=False), rng.lognormal(0, 2, n)
    # Some of the pieces have no weights, and stand for rows of weight one.
    plain, parts = rng.random(pieces) < 0.3, np.array_split(rng.permutation(n), pieces)
    for part, unweighted in zip(parts, plain, strict=True):
        weight[part] = 1.0 if unweighted else weight[part]
    cells = [
        Cells.of(weighted_sample(score[part], outcome[part], None if unweighted else weight[part]))
        for part, unweighted in zip(parts, plain, strict=True)
        if part.size
    ]
    merged = sum(cells[1:], cells[0])
    expected, found = Residuals.of(weighted_sample(score, outcome, weight)), Residuals.of(merged)
    expected, found = (each[each.mass > 0] for each in (expected, found))
    for attribute in ("mass", "score", "residual", "spread"):
        np.testing.assert_allclose(
            getattr(found, attribute), getattr(expected, attribute), rtol=1e-9, atol=1e-12
        )
    assert (merged.spread is None) == all(one.spread is None for one in cells) == merged.counts


@few
@given(seeds, st.integers(1, 200), st.integers(1, 20), weightings)
def test_coarser_residuals_keep_their_sums(seed, n, most, weighting):
    rng = np.random.default_rng(seed)
    score = rng.random(n)
    fine = Residuals.of(weighted_sample(score, rng.random(n) < score, weights(rng, weighting, n)))
    coarse = fine.coarser(most)
    assert coarse.mass.size <= max(most, 1)
    assert np.all(coarse.mass > 0)
    assert np.all(np.diff(coarse.score) > 0)
    for attribute in ("mass", "residual", "spread"):
        close(getattr(coarse, attribute).sum(), getattr(fine, attribute).sum())
    close((coarse.mass * coarse.score).sum(), (fine.mass * fine.score).sum())


# --- over rows -------------------------------------------------------------------------------


@few
@given(seeds, st.integers(1, 60), st.integers(1, 5), dtypes, weightings, st.booleans())
def test_totals_of_rows_are_those_of_a_loop(seed, n, classes, dtype, weighting, transposed):
    rng = np.random.default_rng(seed)
    shape, labels = ((n,), 2) if classes == 1 else ((n, classes), classes)
    score, code = scores(rng, "ties", shape, dtype), rng.integers(0, labels, n)
    weight = weights(rng, weighting, n)
    expected = oracle.row_totals(score, code, weight)
    if transposed and score.ndim == 2:
        score = np.asfortranarray(score)
    with pytest.MonkeyPatch.context() as patch:
        for chunk in (1 << 15, 8):
            patch.setattr(tally, "MATRIX_CHUNK", chunk)
            patch.setattr(tally, "LONG_CHUNK", chunk)
            close(tally.row_totals(score, code, weight), expected)


def test_the_log_loss_of_scores_too_small_to_be_multiplied_is_finite():
    score = np.full((16, 2), [1e-300, 1.0])
    totals_of_rows = tally.row_totals(score, np.zeros(16, dtype=int), None)
    assert totals_of_rows[3] == pytest.approx(-16 * np.log(1e-300))


@few
@given(seeds, st.integers(1, 30), dtypes, weightings)
def test_size_and_variance_are_those_of_a_loop(seed, n, dtype, weighting):
    rng = np.random.default_rng(seed)
    score, weight = scores(rng, "anywhere", n, dtype), weights(rng, weighting, n)
    rows = weighted_sample(score, score > 0.5, weight)
    expected = oracle.mean_square(score, weight)
    n = float(rows.n)
    close(rows.variance(), expected * n / (n - 1) if n > 1 + 1e-12 else expected)
    if weight is not None:
        total, squares = oracle.weight_sums(weight)
        close(rows.n, total if rows.counts else total**2 / squares)
        close(rows.squares, squares)


@few
@given(seeds, st.integers(1, 300), kinds, dtypes)
def test_order_statistics_are_those_of_the_sorted_scores(seed, n, kind, dtype):
    rng = np.random.default_rng(seed)
    score, rank = scores(rng, kind, n, dtype), rng.integers(0, n, 5)
    np.testing.assert_array_equal(tally.order_statistics(score, rank), np.sort(score).astype(float)[rank])


@pytest.mark.parametrize("kind", ["anywhere", "walls"])
def test_order_statistics_of_a_long_array_are_those_of_the_sorted_scores(kind):
    score = scores(np.random.default_rng(0), kind, 200_000)
    rank = np.array([0, 1, 9_999, 10_000, 199_999, 20_000])
    np.testing.assert_array_equal(tally.order_statistics(score, rank), np.sort(score)[rank])


# --- one place -------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", [sample, cells, residuals, totals])
def test_rows_are_summed_in_the_tally_alone(module):
    tree = ast.parse(inspect.getsource(module))
    # Runs of neighbours are summed beside the rows that are in order.
    tree.body = [node for node in tree.body if getattr(node, "name", "") != "sums_in_runs"]
    names = {getattr(node, "attr", "") for node in ast.walk(tree)}
    assert not names & {"bincount", "reduceat", "add", "einsum", "histogram"}

"""Rows, cells and merged cells hold the same score data."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.estimators.binned import adaptive_edges, spread
from calibrant.score_data import COARSE, FINE, Cells, Moments, Sample, layout_for, tally
from oracles import binned as oracle
from weighing import weighted_sample

RNG = np.random.default_rng(5)


def beta_sample(n, a=0.6, b=0.8, seed=0, **options):
    rng = np.random.default_rng(seed)
    score = rng.beta(a, b, n)
    return weighted_sample(score, rng.random(n) < score**1.3, **options)


def saturated_sample(n, seed=0):
    """Scores of a confident network: 40 % within .001 of one, some exactly one."""
    rng = np.random.default_rng(seed)
    score = np.where(rng.random(n) < 0.4, 1 - 10.0 ** rng.uniform(-15, -3, n), rng.random(n))
    score[rng.random(n) < 0.02] = 1.0
    return Sample(score, rng.random(n) < 0.9 * score)


def whole(moments):
    return np.array([part.sum(axis=-1) for part in moments.about(np.zeros(1)).parts])


# --- where a score belongs ---------------------------------------------------------------------


def counted(score, cuts):
    return tally.sums_between(score, np.zeros(score.shape, dtype=bool), None, cuts)[0, 0]


@pytest.mark.parametrize("bins", [1, 3, 7, 10, 15, 100, 1000, 3600, 9999, 20_000])
def test_bins_agree_with_comparison_on_edges_and_beside_them(bins):
    edges = np.arange(bins + 1) / bins
    score = np.concatenate([edges, np.nextafter(edges, 0), np.nextafter(edges, 1), RNG.random(20000)])
    score = np.clip(score, 0, 1)
    for own in (score, score.astype(np.float32), score.astype(np.float16)):
        group = np.searchsorted(edges[1:-1], own.astype(float), side="right")
        np.testing.assert_array_equal(counted(own, edges[1:-1]), np.bincount(group, minlength=bins))


def test_cuts_may_be_crowded_and_equal():
    cuts = np.sort(np.concatenate([1 - np.geomspace(1e-15, 1e-3, 50), [0.5, 0.5, 0.5]]))
    score = np.concatenate([cuts, np.nextafter(cuts, 0), RNG.random(9000), 1 - RNG.random(9000) * 1e-4])
    expected = np.bincount(np.searchsorted(cuts, score, "right"), minlength=cuts.size + 1)
    np.testing.assert_array_equal(counted(score, cuts), expected)


@pytest.mark.parametrize("layout", [FINE, COARSE])
def test_every_score_lies_between_the_bounds_of_its_cell(layout):
    edges = np.arange(layout.uniform + 1) / layout.uniform
    small = np.concatenate([[0.0, 5e-324, 2.0**-50], np.geomspace(1e-300, 1e-2, 4000)])
    score = np.concatenate([edges, np.nextafter(edges, 0), np.nextafter(edges, 1), small, 1 - small])
    score = np.clip(
        np.concatenate([score, RNG.random(10000), np.arange(101) / 100, 1 / np.arange(1, 50)]), 0, 1
    )
    cell = layout.locate(score)
    assert cell.min() == 0
    assert cell.max() == layout.size - 1
    assert np.all(layout.low[cell] <= score)
    assert np.all(score <= layout.high[cell])
    assert np.all(layout.high[:-1] < layout.low[1:])


@pytest.mark.parametrize("layout", [FINE, COARSE])
@pytest.mark.parametrize("bins", [10, 15, 20, 30])
def test_bin_edges_are_cell_edges_to_the_last_bit(layout, bins):
    assert np.isin(np.arange(bins) / bins, layout.low).all()


def test_cells_are_fine_for_few_problems_and_coarse_for_many():
    assert [layout_for(n) for n in (1, 2, 20, 21, 1000)] == [FINE, FINE, FINE, COARSE, COARSE]


# --- sums ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [beta_sample, saturated_sample])
@pytest.mark.parametrize("n", [1, 2, 50, 5000, 200_000])
def test_cells_keep_the_five_sums_of_the_rows(make, n):
    sample = make(n)
    s, y = sample.score, sample.outcome
    expected = [n, s.sum(), y.sum(), (s * y).sum(), (s * s).sum()]
    np.testing.assert_allclose(whole(Cells.of(sample).sums), expected, rtol=1e-12)


@pytest.mark.parametrize("n", [40, 70_000, 150_000])
def test_bins_of_a_batch_are_those_of_its_entries(n):
    score, outcome = RNG.random((3, n)), RNG.random((3, n)) < 0.5
    for view in (score, np.asfortranarray(score)):
        batch = Sample(view, outcome).bins(np.array([0.2, 0.7]))
        for k in range(3):
            one = Sample(score[k], outcome[k]).bins(np.array([0.2, 0.7]))
            np.testing.assert_allclose(batch.ws[k], one.ws, rtol=1e-12)
            np.testing.assert_array_equal(batch.wy[k], one.wy)
            np.testing.assert_array_equal(batch.w[k], one.w)


def test_a_batch_may_have_cuts_of_its_own():
    sample = Sample(RNG.random((4, 60)), RNG.random((4, 60)) < 0.5)
    cuts = np.sort(RNG.random((4, 3)), axis=-1)
    batch = sample.bins(cuts)
    for k in range(4):
        np.testing.assert_allclose(batch.ws[k], sample[k].bins(cuts[k]).ws)


def test_moments_move_between_origins_and_back():
    moments = Cells.of(beta_sample(500)).sums
    there = moments.about(np.full(1, 0.3)).about(moments.origin)
    for before, after in zip(moments.parts, there.parts, strict=True):
        np.testing.assert_allclose(after, before, atol=1e-12)


def test_spread_keeps_mass_and_mean_score():
    sample = saturated_sample(3000)
    nodes = np.sort(RNG.random(40))
    bins = spread(sample, nodes)
    assert bins.w.sum() == pytest.approx(3000)
    assert bins.ws.sum() == pytest.approx(sample.score.sum())
    assert bins.wy.sum() == pytest.approx(sample.outcome.sum())


def test_convex_weights_average_to_the_score():
    score = np.array([0.13, 0.42, 0.77])
    nodes = np.array([0.1, 0.4, 0.5, 0.9])
    for s in score:
        assert spread(Sample(np.array([s]), np.array([True])), nodes).w @ nodes == pytest.approx(s)


# --- order statistics ------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(1, 4)), min_size=1, max_size=30),
)
def test_ranks_count_every_repetition(rows):
    score = np.array([s for s, _ in rows]) / 20
    count = np.array([c for _, c in rows])
    expanded = np.sort(np.repeat(score, count))
    rank = np.arange(expanded.size, dtype=float)
    outcome = np.zeros(score.size, dtype=bool)
    np.testing.assert_array_equal(Sample(score, outcome, count).score_at_rank(rank), expanded)
    cells = Cells.of(Sample(score, outcome, count))
    np.testing.assert_allclose(cells.score_at_rank(rank), expanded, atol=1e-12)


def test_ranks_of_cells_are_exact_for_one_or_two_rows_in_a_cell():
    width = 1 / FINE.uniform
    score = np.sort(np.concatenate([[3.25, 3.75], [10.5], [20.0, 20.0, 20.0]]) * width)
    sample = Sample(score, np.zeros(6, dtype=bool))
    np.testing.assert_allclose(Cells.of(sample).score_at_rank(np.arange(6.0)), score, atol=1e-13)


def test_equal_importance_weights_rank_like_no_weights():
    score = RNG.random(101)
    plain = Sample(score, score > 0.5)
    weighed = weighted_sample(score, score > 0.5, np.full(101, 0.1))
    np.testing.assert_array_equal(adaptive_edges(weighed, 10), adaptive_edges(plain, 10))


# --- the protocol ----------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [None, np.array([1, 2, 3, 1, 1]), np.array([0.5, 2, 3, 1, 1])])
def test_variance_and_size_follow_the_expanded_sample(weight):
    score = np.array([0.1, 0.4, 0.4, 0.8, 1.0])
    sample = weighted_sample(score, score > 0.5, weight)
    steps = oracle.rows(score, score > 0.5, weight)
    assert sample.n == pytest.approx(float(oracle.effective_size(steps)))
    cells = Cells.of(sample)
    assert cells.n == pytest.approx(sample.n)
    assert cells.variance() == pytest.approx(sample.variance(), rel=1e-9)
    if weight is not None and weight.dtype.kind == "i":
        assert sample.variance() == pytest.approx(np.var(np.repeat(score, weight), ddof=1))


@pytest.mark.parametrize("kind", ["rows", "cells"])
def test_atoms_hold_each_tied_score_once(kind):
    score = np.array([0.5, 0.25, 0.5, 0.75, 0.25, 0.5])
    outcome = np.array([1, 0, 0, 1, 1, 1], dtype=bool)
    data = Sample(score, outcome)
    data = data if kind == "rows" else Cells.of(data)
    tie_groups = data.tie_groups()
    assert isinstance(tie_groups, Moments)
    held = tie_groups.w > 0
    np.testing.assert_array_equal(tie_groups.w[held], [2, 3, 1])
    np.testing.assert_array_equal(tie_groups.wy[held], [1, 2, 1])
    np.testing.assert_allclose(tie_groups.bins.score[held], [0.25, 0.5, 0.75])


@pytest.mark.parametrize("kind", ["rows", "cells"])
def test_resampling_keeps_size_and_expectation(kind):
    sample = beta_sample(400)
    data = sample if kind == "rows" else Cells.of(sample)
    drawn = data.resample(np.random.default_rng(1), 600)
    assert drawn.batch == (600,)
    np.testing.assert_array_equal(drawn.n, 400)
    bins, mean = data.bins(np.array([0.5])), drawn.bins(np.array([0.5]))
    np.testing.assert_allclose(mean.wy.mean(axis=0), bins.wy, rtol=0.03)
    np.testing.assert_allclose(mean.ws.mean(axis=0), bins.ws, rtol=0.03)
    # One bin's count is binomial.
    share = bins.w[0] / 400
    assert mean.w[:, 0].std() == pytest.approx(np.sqrt(400 * share * (1 - share)), rel=0.12)


@pytest.mark.parametrize("kind", ["rows", "cells"])
def test_redrawn_outcomes_follow_the_given_probability(kind):
    sample = beta_sample(2000)
    data = sample if kind == "rows" else Cells.of(sample)
    drawn = data.simulate_outcomes(lambda score: score**2, np.random.default_rng(2), 300)
    total = drawn.bins(np.array([0.5])).wy
    chance = np.square(sample.score)
    for side, part in enumerate((sample.score < 0.5, sample.score >= 0.5)):
        assert total[:, side].mean() == pytest.approx(chance[part].sum(), rel=0.02)
        spread = np.sqrt((chance * (1 - chance))[part].sum())
        assert total[:, side].std() == pytest.approx(spread, rel=0.15)


@pytest.mark.parametrize("kind", ["rows", "counts", "cells"])
def test_rows_of_probabilities_draw_one_after_the_other(kind):
    sample = beta_sample(200)
    if kind == "counts":
        sample = Sample(sample.score, sample.outcome, np.arange(200) % 3 + 1)
    data = Cells.of(sample) if kind == "cells" else sample
    powers, cuts = (0.5, 1.0, 2.0), np.array([0.3, 0.7])
    together = data.simulate_outcomes(
        lambda score: np.array([score**power for power in powers]), np.random.default_rng(4), 5
    )
    rng = np.random.default_rng(4)
    alone = [data.simulate_outcomes(lambda score, power=power: score**power, rng, 5) for power in powers]
    np.testing.assert_array_equal(
        together.bins(cuts).wy, np.concatenate([each.bins(cuts).wy for each in alone])
    )


@pytest.mark.parametrize("kind", ["rows", "cells"])
def test_redrawn_outcomes_of_weighted_rows_vary_as_their_weights_say(kind):
    # In each cell one heavy row and many light ones: as good as one row there, and many on the whole.
    score, weight = np.repeat([0.2, 0.8], 50), np.tile(np.append(50.0, np.ones(49)), 2)
    sample = weighted_sample(score, np.arange(100) % 2 > 0, weight)
    data = sample if kind == "rows" else Cells.of(sample)
    drawn = data.simulate_outcomes(lambda score: score, np.random.default_rng(3), 4000)
    total = drawn.bins(np.array([0.5])).wy
    expected = 0.16 * (50**2 + 49)
    np.testing.assert_allclose(total.mean(axis=0), [0.2 * 99, 0.8 * 99], rtol=0.05)
    np.testing.assert_allclose(total.var(axis=0), expected, rtol=0.1)
    np.testing.assert_allclose(drawn.n, data.n)
    np.testing.assert_allclose(drawn.squared().bins(np.array([0.5])).w, np.full((4000, 2), 50**2 + 49))


def test_cells_without_squared_weights_share_the_total_out_by_weight():
    weighted = Cells.of(weighted_sample(np.array([0.1, 0.9]), np.array([True, False]), np.array([1.0, 3.0])))
    np.testing.assert_array_equal(weighted.squared_weights[weighted.sums.w > 0], [1.0, 9.0])
    assert not weighted.counts
    coarse = replace(weighted, spread=None)
    np.testing.assert_array_equal(coarse.squared_weights[weighted.sums.w > 0], [2.5, 7.5])
    np.testing.assert_array_equal(coarse.squared().sums.w, coarse.squared_weights)
    both = (coarse + weighted) + coarse
    np.testing.assert_array_equal(both.squared_weights[weighted.sums.w > 0], [6.0, 24.0])
    np.testing.assert_array_equal(both.spread, (coarse + (weighted + coarse)).spread)
    counted = Cells.of(Sample(np.array([0.1, 0.9]), np.array([True, False]), np.array([1, 3])))
    assert counted.spread is None
    assert counted.squared() is counted
    np.testing.assert_array_equal(counted.squared_weights, counted.sums.w)


@pytest.mark.parametrize("kind", ["rows", "cells"])
def test_a_row_that_counts_a_thousand_times_is_drawn_a_thousand_times(kind):
    data = Sample(np.array([0.5]), np.array([True]), np.array([1000]))
    data = data if kind == "rows" else Cells.of(data)
    drawn = data.simulate_outcomes(lambda score: score, np.random.default_rng(0), 800)
    np.testing.assert_array_equal(drawn.n, 1000)
    frequency = drawn.bins(np.array([0.2])).frequency[:, 1]
    assert frequency.mean() == pytest.approx(0.5, abs=0.003)
    assert frequency.var() == pytest.approx(0.25 / 1000, rel=0.2)


@pytest.mark.parametrize("kind", ["rows", "cells"])
def test_only_a_single_problem_is_drawn_anew(kind):
    data = Sample(RNG.random((2, 5)), RNG.random((2, 5)) < 0.5)
    data = data if kind == "rows" else Cells.of(data)
    for draw in (lambda: data.resample(RNG, 3), lambda: data.simulate_outcomes(np.abs, RNG, 3)):
        with pytest.raises(ValueError, match=r"a batch of shape \(2,\)"):
            draw()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_merging_is_associative_and_commutative(seed, pieces):
    rng = np.random.default_rng(seed)
    sample = saturated_sample(200, seed)
    cut = np.sort(rng.integers(1, 199, pieces))
    parts = [
        Cells.of(Sample(score, outcome))
        for score, outcome in zip(np.split(sample.score, cut), np.split(sample.outcome, cut), strict=True)
        if score.size
    ]
    forward, backward = parts[0], parts[-1]
    for part in parts[1:]:
        forward = forward + part
    for part in parts[-2::-1]:
        backward = part + backward
    for a, b, c in zip(forward.sums.parts, backward.sums.parts, Cells.of(sample).sums.parts, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-18)
        np.testing.assert_allclose(a, c, rtol=1e-12, atol=1e-18)

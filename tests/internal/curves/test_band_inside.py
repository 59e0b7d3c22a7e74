"""The corrected band of a reliability curve."""

import numpy as np
import pytest

import calibrant
from calibrant import Sketch
from calibrant.curves import band as bands
from calibrant.score_data import Cells, Sample
from oracles import bands as oracle
from weighing import weighted_sample


def sample(n=60, seed=0, tied=False):
    rng = np.random.default_rng(seed)
    score = np.round(rng.random(n), 1) if tied else rng.beta(0.5, 0.5, n)
    return score, rng.random(n) < score**1.5


def at_knots(evidence, knots, ranks, reach, most=np.inf):
    groups, squares = bands._groups(evidence)
    return bands.intervals(groups, squares, knots, np.full(knots.size, most), 0.9, ranks, reach)


# --- the numbers -----------------------------------------------------------------------------------


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("weighing", "tied"),
    [("none", False), ("none", True), ("counts", True), ("importance", False), ("importance", True)],
)
@pytest.mark.parametrize(
    ("ranks", "reach", "most"), [(0.15, 1.0, np.inf), (0.3, 0.2, 6.0), (0.02, 0.05, 3.0)]
)
def test_intervals_equal_local_lines_through_the_rows(tied, weighing, ranks, reach, most):
    score, outcome = sample(tied=tied)
    rng = np.random.default_rng(1)
    weight = {"none": None, "counts": rng.integers(1, 4, 60), "importance": rng.exponential(size=60)}[
        weighing
    ]
    knots = np.unique(np.concatenate([score, [0.0, 0.31, 0.5, 0.77, 1.0]]))
    low, high = at_knots(weighted_sample(score, outcome, weight), knots, ranks, reach, most)
    for place in (*knots[::15], 0.31, 1.0):
        k = np.searchsorted(knots, place)
        options = {"weights": weight, "counts": weighing == "counts", "level": 0.9, "most": most}
        _, below, above = oracle.interval(
            score, outcome.astype(float), place, ranks=ranks, reach=reach, **options
        )
        assert low[k] == pytest.approx(below, abs=1e-9)
        assert high[k] == pytest.approx(above, abs=1e-9)


def test_a_line_has_no_bias_on_what_is_straight_in_ranks():
    score = np.sort(np.random.default_rng(0).random(200))
    groups, _ = bands._groups(Sample(score, np.zeros(200, bool)))
    rank = (np.arange(groups.w.size) + 0.5) / groups.w.size
    line = bands.local_lines(groups, score[::10], 0.1, 1.0)
    np.testing.assert_allclose(line.sum(axis=1), 1)
    np.testing.assert_allclose(
        line @ (3 * rank - 1), np.interp(score[::10], groups.score, 3 * rank - 1), atol=1e-3
    )


def test_rows_and_cells_have_one_band():
    score, outcome = sample(3000)
    weight = np.random.default_rng(2).integers(0, 3, 3000)
    for given in (None, weight):
        rows = weighted_sample(score, outcome, given)
        nodes, nearby = np.linspace(0, 1, 301), np.full(301, 400.0)
        one, two = (bands.corrected(e, 0.05, nodes, nearby, 0.95) for e in (rows, Cells.of(rows)))
        np.testing.assert_array_equal(one, two)
    curve = calibrant.reliability_curve(outcome, score, n_boot=0, method="density")
    other = Sketch("binary").update(outcome[:1000], score[:1000]).update(outcome[1000:], score[1000:])
    other = other.curve(method="density", n_boot=0)
    seen = np.isfinite(curve.low + other.low)
    np.testing.assert_allclose(other.low[seen], curve.low[seen], atol=1e-3)
    np.testing.assert_allclose(other.high[seen], curve.high[seen], atol=1e-3)


# --- edges -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("outcome", [0, 1])
def test_one_row_says_little(outcome):
    curve = calibrant.reliability_curve([outcome], [0.3], n_boot=0, method="density")
    point = curve.at(0.3)
    low, high = (float(end) for end in bands.wilson(np.array(float(outcome)), np.array(1.0), 0.95))
    assert point.low == pytest.approx(low, abs=0.03)
    assert point.high == pytest.approx(high, abs=0.03)
    assert np.isnan(curve.at(0.6).low)


def test_equal_scores_have_the_interval_of_their_frequency():
    outcome = np.arange(40) % 4 == 0
    point = calibrant.reliability_curve(outcome, np.full(40, 0.5), n_boot=0, method="density").at(0.5)
    low, high = bands.wilson(np.array(0.25), np.array(40.0), 0.95)
    assert low - 0.03 < point.low <= low + 1e-9
    assert high - 1e-9 <= point.high < high + 0.03

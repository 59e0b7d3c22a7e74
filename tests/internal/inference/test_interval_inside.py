"""The parts of an interval: worlds with a known error, and the errors under which an estimate is usual."""

from statistics import NormalDist

import numpy as np
import pytest
from scipy.fft import idct
from scipy.special import ndtri

from calibrant.inference import interval
from calibrant.inference.interval import MIN_KIND_SHARE, SimulationGrid, true_error
from calibrant.posterior.gap import Posterior
from calibrant.posterior.variance_time import n_cells
from calibrant.score_data import Residuals, Sample
from calibrant.settings import INTERVAL

KINDS = ("smooth", "tenths", "heavy")


def posterior(kind="smooth", n=600, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.beta(0.8, 0.6, n)
    if kind == "tenths":
        score = np.ceil(10 * score) / 10.5
    if kind == "heavy":
        score = np.where(rng.random(n) < 0.5, 1.0, score)
    flat = Residuals.of(Sample(score, rng.random(n) < 0.9 * score)).flat
    return Posterior.of_residuals(flat, int(n_cells(flat.n)[0]))


@pytest.mark.parametrize("kind", KINDS)
def test_data_without_noise_are_the_gap(kind):
    sim_grid = SimulationGrid.of(posterior(kind))
    gap = np.clip(
        np.random.default_rng(0).normal(0, 0.1, (3, sim_grid.score.size)),
        -sim_grid.score,
        1 - sim_grid.score,
    )
    z, residual = sim_grid.data(gap, np.zeros_like(gap))
    own = sim_grid.posterior
    sums = own.scale[0] * idct(z, norm="ortho")
    np.testing.assert_allclose(sums.sum(axis=1), (gap * sim_grid.mass).sum(axis=1), atol=1e-6)
    if kind == "smooth":
        np.testing.assert_allclose(sums, gap * sim_grid.mass, atol=1e-6)
        assert residual is None
    else:
        np.testing.assert_allclose(residual, gap * sim_grid.mass, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_data_without_a_gap_are_noise_of_about_one_unit(kind):
    sim_grid = SimulationGrid.of(posterior(kind))
    noise = np.random.default_rng(0).standard_normal((4000, sim_grid.score.size))
    z, residual = sim_grid.data(np.zeros_like(noise), noise)
    # A variance halfway to what the gap says is not that of calibrated data, and scores of 1 have none; the
    # rows of one score are spread evenly over its cells.
    spread = np.square(z).mean()
    few = min(1.0, sim_grid.score.size / z.shape[-1])
    assert {"smooth": 0.8, "tenths": 0.8 * few, "heavy": 0.3}[kind] < spread < 1.2 * few
    if kind != "smooth":
        expected = sim_grid.sd(np.zeros(sim_grid.score.size))
        np.testing.assert_allclose(residual.std(axis=0), expected, rtol=0.06, atol=1e-9)


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("kind", KINDS)
def test_gaps_are_brought_to_the_error_that_is_tried(kind, norm):
    own = posterior(kind)
    sim_grid = SimulationGrid.of(own)
    which, gaps = interval.draw_shapes(own, [np.random.default_rng(0)], 60)
    assert [len(each) for each in gaps] == [60]
    gaps = interval.scale_to_unit_error(gaps, [sim_grid], norm)
    np.testing.assert_allclose(true_error(gaps[0], sim_grid.mass, norm), 1)
    most = sim_grid.max_error(gaps[0], norm)
    for true in (0.0, 0.02, 0.1):
        (possible,) = interval.scaled_to_error(true, gaps, [sim_grid], norm)
        found = true_error(possible, sim_grid.mass, norm)
        assert np.all(possible >= -sim_grid.score)
        assert np.all(possible <= 1 - sim_grid.score)
        far = most > 2 * true
        assert far.any()
        np.testing.assert_allclose(found[far], true, rtol=0.03, atol=1e-9)
        assert np.all(found <= np.maximum(most, true) * (1 + 1e-9))
    assert set(which) <= ({0, 1} if kind == "smooth" else {0, 1, 2})


def test_each_kind_of_gap_that_data_allow_has_a_fair_number_of_sets():
    kinds = [interval.draw_shapes(posterior(kind), [np.random.default_rng(0)], 100)[0] for kind in KINDS]
    for kind in kinds:
        share = np.bincount(kind) / kind.size
        assert np.all((share == 0) | (share >= MIN_KIND_SHARE))
    assert 2 in kinds[1]
    assert 2 not in kinds[0]


def test_noise_is_standard_normal_and_even_along_the_gap():
    own = posterior()
    sim_grid = SimulationGrid.of(own)
    size = 2000
    kind, gaps = interval.draw_shapes(own, [np.random.default_rng(0)], size)
    gaps = interval.scaled_to_error(
        0.05, interval.scale_to_unit_error(gaps, [sim_grid], "l1"), [sim_grid], "l1"
    )
    direction = np.sign(gaps[0]) * sim_grid.sd(gaps[0])
    sampling_sd = interval.score_sampling_sd(
        gaps[0], sim_grid.mass, true_error(gaps[0], sim_grid.mass, "l1"), "l1", 600
    )
    common, (rng,) = interval.streams([5])
    noise, sampling_noise = interval._stratified_noise(direction, sampling_sd, common, rng, kind)
    assert np.abs(noise.mean(axis=0)).max() < 5 / np.sqrt(size)
    np.testing.assert_allclose(noise.std(axis=0), 1, atol=0.1)
    assert sampling_noise.std() == pytest.approx(1, abs=0.1)
    along = (noise * direction).sum(axis=1) + sampling_noise * sampling_sd
    along /= np.sqrt((direction * direction).sum(axis=1) + sampling_sd**2)
    for member in np.unique(kind):
        some = np.sort(along[kind == member])
        even = ndtri((np.arange(some.size) + 0.5) / some.size)
        np.testing.assert_allclose(some[5:-5], even[5:-5], atol=0.05)


def normal(sd, kinds=((0.0, 1.0),), size=400):
    """Simulations whose estimates are normal around the true error, with a bias and a slope for each kind."""
    even = ndtri((np.arange(size) + 0.5) / size)
    return lambda errors: [
        (true, [bias + slope * true + sd * even for bias, slope in kinds]) for true in errors
    ]


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95, 0.99])
def test_normal_estimates_have_the_interval_of_a_normal_variable(level):
    own = posterior()
    unit = interval._standard_error(own)
    value = 8 * unit
    far = -NormalDist().inv_cdf(INTERVAL.tail_alpha_factor * (1 - level) / 2)
    low, high = interval.invert(normal(unit), value, own, level)
    assert low == pytest.approx(value - far * unit, abs=0.1 * unit)
    assert high == pytest.approx(value + far * unit, abs=0.1 * unit)
    # A bias moves both ends, but never past the value.
    low, high = interval.invert(normal(unit / 2, ((unit, 1.0),)), value, own, level)
    assert low == pytest.approx(value - unit - far * unit / 2, abs=0.1 * unit)
    assert high == pytest.approx(max(value, value - unit + far * unit / 2), abs=0.1 * unit)


def test_estimates_that_tie_with_the_value_are_counted_alike_whatever_rounding_says():
    """Up to the last error of the first grid most of them tie, so further errors are to be tried."""
    own, value = posterior(), 0.01
    last = interval.error_grid(own, value)[-1]

    def high(rounding):
        near = np.repeat([value + rounding, 0.2], [60, 40])
        return interval.invert(
            lambda errors: [(true, [near + 0.2 * (true > last)]) for true in errors], value, own, 0.95
        )[1]

    assert high(1e-16) == high(-1e-16) > last


def test_a_row_that_reaches_over_several_cells_has_the_mean_of_their_gaps():
    near = np.linspace(0.001, 0.02, 15)
    flat = Residuals.of(Sample(np.concatenate([near, [0.5], 1 - near]), np.arange(31) > 15)).flat
    cells = SimulationGrid.of(Posterior.of_residuals(flat, 30))
    inside = np.abs(cells.score - 0.5) < 1e-9
    assert inside.sum() > 2
    gap = np.random.default_rng(0).normal(size=(5, inside.size))
    sim_grid, mean = cells.by_score(gap)
    (at,) = np.flatnonzero(np.abs(sim_grid.score - 0.5) < 1e-9)
    assert np.diff(sim_grid.score).min() > 1e-9
    np.testing.assert_allclose(mean[:, at], np.average(gap[:, inside], axis=1, weights=cells.mass[inside]))
    assert sim_grid.mass[at] == pytest.approx(cells.mass[inside].sum())
    np.testing.assert_allclose(mean @ sim_grid.mass, gap @ cells.mass)


def test_the_interval_holds_what_any_kind_of_gap_allows():
    own = posterior()
    unit = interval._standard_error(own)
    value = 8 * unit
    both = interval.invert(normal(unit, ((0.0, 1.0), (-unit, 1.0))), value, own, 0.9)
    plain = interval.invert(normal(unit), value, own, 0.9)
    moved = interval.invert(normal(unit, ((-unit, 1.0),)), value, own, 0.9)
    assert both == pytest.approx((plain[0], moved[1]), abs=0.05 * unit)


def test_small_estimates_reach_down_to_zero_and_all_ends_lie_within():
    own = posterior()
    unit = interval._standard_error(own)
    low, high = interval.invert(normal(unit), 0.2 * unit, own, 0.95)
    assert low == 0
    assert unit < high < 4 * unit
    assert interval.invert(normal(0.3), 0.9, own, 0.99)[1] <= 1


def test_ends_allow_for_what_noise_adds():
    own = posterior()
    unit = interval._standard_error(own)
    value = 8 * unit
    plain, below, above = (
        interval.invert(normal(unit), value, own, 0.9, interval.BiasCorrection(*by))
        for by in ((0.0, 0.0), (unit, 0.0), (0.0, unit))
    )
    assert below[0] == pytest.approx(plain[0] - unit, abs=0.1 * unit)
    assert below[1] == plain[1]
    assert above[0] == plain[0]
    assert above[1] == pytest.approx(plain[1] + unit, abs=0.1 * unit)
    allowed = interval.bias_correction(own, value, "l1")
    assert 0 < allowed.above < allowed.below
    assert interval.bias_correction(several(), value, "l1").above == 0


def several(cells=30):
    """The posterior of classes whose scores reach from close to 0 far up."""
    rng = np.random.default_rng(5)
    parts = []
    for top in (0.1, 0.5, 1.0):
        score = np.sort(rng.random(400) * top)
        flat = Residuals.of(Sample(score, rng.random(400) < score**1.2)).flat
        parts.append(Posterior.of_residuals(flat, cells))
    return Posterior.joined(parts)


@pytest.mark.parametrize("cells", [30, 64])
def test_several_classes_are_simulated_as_each_alone(cells):
    own = several(cells)
    together, alone = SimulationGrid.of(own), [SimulationGrid.of(own[k : k + 1]) for k in range(3)]
    rng = np.random.default_rng(0)
    gap, noise = (rng.standard_normal((3, 9, cells), dtype=np.float32) for _ in range(2))
    factor = np.geomspace(1e-3, 10, 9)
    possible = together.possible(gap, factor)
    each = [one.possible(gap[k], factor) for k, one in enumerate(alone)]
    np.testing.assert_allclose(possible, each, rtol=1e-12)
    z, residual = together.data(possible, noise)
    assert residual is None
    own_z = np.concatenate([one.data(each[k], noise[k])[0] for k, one in enumerate(alone)])
    np.testing.assert_allclose(z, own_z, rtol=1e-5, atol=1e-5)


def test_errors_in_turn_end_where_no_kind_has_an_estimate_below_the_value():
    rng, tried = np.random.default_rng(0), []
    noise = rng.standard_normal((2, 50))

    def simulate(true):
        tried.append(true)
        smooth, local = true + 0.01 * noise
        return true, [smooth, local - 0.1]

    grid = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
    runs = interval.stop_early(simulate, 0.15)(grid)
    # Those of the second kind are passed at .3 alone, and what comes after says no more.
    assert tried == grid[:4]
    for above, value in ((True, 0.15), (False, 0.15)):
        ladder = np.array([1.0, 1.96])
        every = [simulate(true) for true in grid]
        np.testing.assert_array_equal(
            interval._interval_end(runs, value, ladder, above=above),
            interval._interval_end(every, value, ladder, above=above),
        )


def test_errors_in_turn_do_not_end_while_a_kind_reaches_them_in_few_sets():
    estimates = np.linspace(0.9, 1.0, 50)
    runs = interval.stop_early(lambda true: (true, [estimates, estimates[:3]]), 0.1)([0.0, 0.1, 0.2])
    assert [true for true, _ in runs] == [0.0, 0.1, 0.2]


def test_levels_beyond_the_number_of_data_sets_are_extrapolated():
    # 40 data sets resolve normal quantiles up to 2.24: the infinite one bounds a level of -2, not one of -3.
    true, quantile = np.array([0.0, 0.01, 0.02, 0.03]), np.array([-2.2, -np.inf, -1.0, 0.0])
    at_two, at_three = interval._crossings(true, quantile, np.array([-2.0, -3.0]), np.full(4, 40))
    assert at_two == pytest.approx(0.01)
    assert at_three == 0.0

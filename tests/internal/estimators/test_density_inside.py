"""Bounded smoothing by cosine transform against naive sums over mirrored kernels."""

import numpy as np
import pytest
from KDEpy import TreeKDE
from scipy import stats
from scipy.integrate import quad

import calibrant
from calibrant import Density
from calibrant.estimators.smoothing import NARROWEST, Grid, isj, scott, silverman, steps
from calibrant.score_data import Cells, Sample
from calibrant.score_data.kernels import KERNELS, gain
from oracles import density as oracle
from oracles import isj as isj_oracle
from weighing import weighted_sample

KERNEL_SHAPES = {
    "triweight": (oracle.triweight, 3.0),
    "gaussian": (oracle.gaussian, 12.0),
    "epanechnikov": (oracle.epanechnikov, np.sqrt(5)),
    "cosine": (oracle.cosine, 1 / np.sqrt(1 - 8 / np.pi**2)),
}


def sample(n, seed=0, weight=None, support=(0.0, 1.0), a=0.6, b=0.7):
    rng = np.random.default_rng(seed)
    score = support[0] + (support[1] - support[0]) * rng.beta(a, b, n)
    return weighted_sample(score, rng.random(n) < score**1.5, weight, support)


# --- kernels ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KERNELS)
def test_the_characteristic_function_is_that_of_the_kernel(name):
    shape, reach = KERNEL_SHAPES[name]
    for u in (0.0, 0.01, 0.16, 0.17, 0.5, 1.0, 2.2, 7.0, 30.0):
        value, _ = quad(lambda x, u=u: shape(x) * np.cos(u * x), -reach, reach, limit=400)
        assert KERNELS[name].transform(np.array([u]))[0] == pytest.approx(value, abs=1e-8)


@pytest.mark.parametrize("name", KERNELS)
def test_characteristic_function_has_no_seam(name):
    u = np.linspace(0, 3, 30001)
    assert np.abs(np.diff(KERNELS[name].transform(u), 2)).max() < 1e-6


def test_gain_of_a_batch_is_that_of_each_bandwidth():
    width = np.array([[0.01, 0.2], [0.03, 0.1]])
    batch = gain("triweight", width, 50, 1.0)
    assert batch.shape == (2, 2, 50)
    np.testing.assert_array_equal(batch[1, 0], gain("triweight", width[1, 0], 50, 1.0))


# --- the smooth ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("support", [(0.0, 1.0), (0.5, 1.0), (1 / 7, 1.0)])
@pytest.mark.parametrize("width", [0.01, 0.08, 0.5])
def test_density_equals_the_mirrored_sum(kernel, support, width):
    data = sample(60, support=support)
    fit = Density(width, kernel).fit(data)
    at = slice(None, None, 97)
    f, positive = oracle.density(
        data.score,
        data.outcome,
        bandwidth=width,
        kernel=kernel,
        support=support,
        at=fit.score[at],
    )
    scale = np.max(f)
    # The kernels with a kink at their ends have slowly falling spectra, and a ripple where they end.
    tolerance = {"triweight": 2e-4, "gaussian": 2e-4, "epanechnikov": 6e-3, "cosine": 6e-3}[kernel] * scale
    np.testing.assert_allclose(fit.density[at], f, atol=tolerance)
    np.testing.assert_allclose(fit.positive[at], positive, atol=tolerance)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("bandwidth", [1e-6, 0.0004, 0.01, 0.3, 5.0, "silverman", "scott", "isj"])
@pytest.mark.parametrize("support", [(0.0, 1.0), (0.2, 1.0)])
def test_density_integrates_to_one(kernel, bandwidth, support):
    fit = Density(bandwidth, kernel).fit(sample(200, support=support))
    assert fit.density.sum() * fit.share == pytest.approx(1, abs=1e-12)
    share = sample(200, support=support).outcome.mean()
    assert fit.positive.sum() * fit.share == pytest.approx(share, abs=1e-12)


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("kernel", ["triweight", "gaussian"])
@pytest.mark.parametrize("weighing", ["none", "counts", "importance"])
def test_error_equals_the_exact_integral(norm, kernel, weighing):
    rng = np.random.default_rng(1)
    weight = {"none": None, "counts": rng.integers(1, 4, 50), "importance": rng.random(50) + 0.2}[weighing]
    data = sample(50, weight=weight)
    expected = oracle.ece_density(
        data.score, data.outcome, bandwidth=0.06, kernel=kernel, weights=weight, norm=norm
    )
    assert Density(0.06, kernel).fit(data).error(norm) == pytest.approx(expected, abs=1e-5)


# --- bandwidths ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 10, 101])
@pytest.mark.parametrize("weighing", ["none", "counts", "importance"])
def test_rules_equal_the_expanded_sample(n, weighing):
    rng = np.random.default_rng(n)
    weight = {"none": None, "counts": rng.integers(1, 5, n), "importance": rng.random(n) + 0.1}[weighing]
    data = sample(n, seed=n, weight=weight)
    assert silverman(data) == pytest.approx(oracle.silverman(data.score, weight), rel=1e-9)
    assert scott(data) == pytest.approx(oracle.scott(data.score, weight), rel=1e-9)


def test_silverman_is_the_known_rule_and_scott_that_of_scipy():
    score = np.random.default_rng(0).beta(5, 5, 400)
    data = Sample(score, score > 0.5)
    spread = min(score.std(ddof=1), stats.iqr(score) / (2 * stats.norm.ppf(0.75)))
    assert silverman(data) == pytest.approx(spread * (4 / 3 / 400) ** 0.2)
    factor = stats.gaussian_kde(score, "scott").factor
    assert scott(data) == pytest.approx(factor * score.std(ddof=1))


@pytest.mark.no_cover
@pytest.mark.parametrize(("shape", "n"), [((5, 5), 300), ((20, 12), 300), ((2, 6), 300), ((2, 6), 2000)])
def test_isj_equals_the_exact_cosine_coefficients(shape, n):
    score = np.random.default_rng(n).beta(*shape, n)
    expected = isj_oracle.isj(score)
    assert expected is not None
    assert isj(Sample(score, score > 0.5)) == pytest.approx(expected, rel=1e-3)


def test_isj_without_a_root_is_silverman():
    score = np.array([0.2, 0.8])
    assert isj_oracle.isj(score) is None
    data = Sample(score, score > 0.5)
    assert isj(data) == silverman(data)


@pytest.mark.parametrize("rule", [silverman, scott, isj])
def test_rules_of_cells_and_batches_are_those_of_rows(rule):
    data = sample(3000)
    assert rule(Cells.of(data)) == pytest.approx(rule(data), rel=2e-4)
    batch = Sample(np.stack([data.score, data.score**2]), data.outcome)
    both = rule(batch)
    assert both.shape == (2,)
    assert both[0] == pytest.approx(float(rule(data)), rel=1e-9)


# --- degenerate cases ------------------------------------------------------------------------------


def test_equal_quartiles_fall_back_to_the_wide_range():
    score = np.concatenate([np.full(90, 0.5), np.linspace(0.1, 0.9, 10)])
    data = Sample(score, score > 0.5)
    low, high = np.percentile(score, [1, 99])
    expected = (high - low) / (2 * stats.norm.ppf(0.99)) * 75**-0.2
    assert silverman(data) == pytest.approx(expected)


def test_a_narrow_bandwidth_is_floored_and_says_so():
    score = 0.5 + 1e-6 * np.random.default_rng(0).random(100)
    fit = Density().fit(Sample(score, score > 0.5))
    assert fit.floored
    assert fit.bandwidth == NARROWEST
    curve = calibrant.reliability_curve(score > 0.5, score, n_boot=0, method="density")
    assert curve.floored
    assert not calibrant.reliability_curve(
        score > 0.5, score, n_boot=0, bandwidth=0.1, method="density"
    ).floored


def test_a_class_without_rows_has_the_integral_of_its_scores():
    rng = np.random.default_rng(0)
    score = rng.beta(4, 4, 300)
    fit = Density(0.02).fit(Sample(score, np.zeros(300, dtype=bool)))
    assert fit.error() == pytest.approx((fit.score * fit.density).sum() * fit.share)
    assert fit.error() == pytest.approx(score.mean(), abs=1e-3)


def test_the_grid_is_fine_enough_for_the_bandwidth():
    data = sample(30)
    for width in (0.0003, 0.0009, 0.002, 0.1):
        grid = Grid.of(data, float(steps(np.array(width))))
        assert grid.step <= min(0.0003, width / 3 + 1e-12)
        size = grid.score.size
        for prime in (2, 3, 5):
            while size % prime == 0:
                size //= prime
        assert size == 1


def test_agreement_with_an_unbounded_kde_library_away_from_the_walls():
    score = np.random.default_rng(3).beta(30, 30, 500)
    fit = Density(0.02, "triweight").fit(Sample(score, score > 0.5))
    their = TreeKDE(kernel="triweight", bw=0.02).fit(score).evaluate(fit.score[::50])
    np.testing.assert_allclose(fit.density[::50], their, atol=2e-3)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("width", [0.02, 0.2])
def test_effective_sample_is_the_squared_sum_of_weights_over_the_sum_of_squares(kernel, width):
    score = (np.arange(2000) + 0.5) / 2000
    fit = Density(width, kernel).fit(Sample(score, score > 0.5))
    shape, _ = KERNEL_SHAPES[kernel]
    for at in (0, 40, 400, 1800, 3599):
        s = fit.score[at]
        weight = sum(
            shape((s - image) / width) for k in (-1, 0, 1) for image in (2 * k + score, 2 * k - score)
        )
        expected = weight.sum() ** 2 / (weight**2).sum()
        assert fit.nearby[at] == pytest.approx(expected, rel=0.02)
    assert np.all(fit.nearby <= 2000)


# --- where there is no data ------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_curve_ends_where_the_rows_end_however_many_there_are(kernel):
    rng = np.random.default_rng(0)
    score = 0.2 + 0.1 * rng.random(10**6)
    outcome = rng.random(10**6) < score
    curve = calibrant.reliability_curve(outcome, score, kernel=kernel, n_boot=0, method="density")
    seen = curve.score[np.isfinite(curve.point)]
    reach = min(KERNELS[kernel].support_radius, 7) * curve.bandwidth + 2 / 3600
    assert 0.2 - reach <= seen[0]
    assert seen[-1] <= 0.3 + reach
    largest = calibrant.mce(outcome, score, estimator=Density("silverman", kernel))
    assert largest < 0.04


@pytest.mark.parametrize(("kernel", "width"), [("triweight", 0.001), ("epanechnikov", 0.005)])
def test_the_largest_gap_is_not_taken_from_ripples(kernel, width):
    level = np.array([0.15, 0.3, 0.45, 0.6, 0.75, 0.9, 1.0])
    count = np.full(7, 10**5)
    score, outcome = np.repeat(level, 2), np.tile([False, True], 7)
    positive = np.rint(count * (level - 0.005)).astype(int)
    weight = np.stack([count - positive, positive], axis=1).ravel()
    fit = Density(width, kernel).fit(weighted_sample(score, outcome, weight))
    assert fit.error("max") < 0.005 + 3 * width


def between(error, low, high):
    """Return the two neighbouring numbers between which a function of one number jumps most."""
    ends, values = [low, high], [error(low), error(high)]
    while low < (middle := (ends[0] + ends[1]) / 2) < high and middle not in ends:
        value = error(middle)
        side = int(abs(value - values[0]) > abs(values[1] - value))
        ends[side], values[side] = middle, value
    return ends, values


def complement(rows):
    return Sample(1 - rows.score, ~rows.outcome)


def test_isj_jumps_where_its_root_vanishes_which_rounding_decides():
    rng = np.random.default_rng(0)
    p, y = rng.random(5), rng.random(5) < 0.5
    ends, values = between(lambda t: float(Density("isj").fit(Sample(p * t, y)).error()), 0.5625, 0.56875)
    assert ends[1] - ends[0] < 1e-15
    assert abs(values[1] - values[0]) > 0.05
    # On one side there is no root, and Silverman's rule takes its place.
    widths = [(float(isj(rows)), float(silverman(rows))) for rows in (Sample(p * t, y) for t in ends)]
    assert sorted(own == other for own, other in widths) == [False, True]
    for t in (0.5, 1.0):  # away from the jump the complement has the same error
        rows = Sample(p * t, y)
        errors = [float(Density("isj").fit(each).error()) for each in (rows, complement(rows))]
        assert errors[0] == pytest.approx(errors[1], abs=1e-9)


def test_the_largest_gap_jumps_where_a_point_of_the_grid_is_no_longer_defined():
    rng = np.random.default_rng(31)
    p, y = rng.random(20), rng.random(20) < 0.5
    ends, values = between(lambda t: float(Density().fit(Sample(p * t, y)).error("max")), 0.64375, 0.65)
    assert ends[1] - ends[0] < 1e-15
    assert 1e-4 < abs(values[1] - values[0]) < 1e-3  # about a step of the grid
    fits = [Density().fit(Sample(p * t, y)) for t in ends]
    assert len({int(np.isfinite(fit.frequency).sum()) for fit in fits}) == 2
    assert float(fits[0].error()) == pytest.approx(
        float(fits[1].error()), abs=1e-12
    )  # the mean does not jump
    for t in (0.5, 1.0):
        rows = Sample(p * t, y)
        errors = [float(Density().fit(each).error("max")) for each in (rows, complement(rows))]
        assert errors[0] == pytest.approx(errors[1], abs=1e-9)


@pytest.mark.parametrize("kernel", sorted(KERNELS))
@pytest.mark.parametrize("points", [8, 90, 1024])
def test_the_spectrum_of_a_kernel_depends_on_its_own_bandwidth_alone(kernel, points):
    bandwidth = np.geomspace(3e-4, 50, 30)
    together = gain(kernel, bandwidth, points, 1.0)
    alone = [gain(kernel, bandwidth[k], points, 1.0) for k in range(30)]
    assert np.array_equal(together, alone)

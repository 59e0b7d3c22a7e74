"""Cells of equal variance."""

import numpy as np
import pytest
from scipy.fft import idct

from calibrant.posterior import variance_time
from calibrant.score_data import Residuals, Sample


def residuals(n=400, seed=0, digits=None):
    rng = np.random.default_rng(seed)
    score = rng.beta(0.6, 0.4, n)
    score = score if digits is None else score.round(digits)
    return Residuals.of(Sample(score, rng.random(n) < score**1.4)).flat


@pytest.mark.parametrize("digits", [None, 1])
@pytest.mark.parametrize("cells", [1, 7, 64])
def test_cells_keep_every_sum_and_have_equal_variance(digits, cells):
    flat = residuals(digits=digits)
    variance = variance_time.pilot_variance(flat, variance_time.pilot_smooth(flat))
    z, scale, mass, score = (part[0] for part in variance_time.whiten(flat, variance, cells))
    n = flat.n[0]
    assert mass.sum() == pytest.approx(1)
    assert (mass * score).sum() == pytest.approx((flat.mass * flat.score).sum() / n)
    assert scale * idct(z, norm="ortho").sum() == pytest.approx(flat.residual.sum() / n)
    # A unit is the standard deviation of a cell's residual.
    assert scale * np.sqrt(cells) == pytest.approx(np.sqrt((flat.spread * variance).sum()) / n)


def test_calibrated_residuals_have_unit_noise():
    rng = np.random.default_rng(0)
    score = rng.beta(0.6, 0.4, 500)
    flat = Residuals.of(Sample(np.tile(score, (2000, 1)), rng.random((2000, 500)) < score)).flat
    z = variance_time.whiten(flat, variance_time.pilot_variance(flat), 32)[0]
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=5 / np.sqrt(2000))
    np.testing.assert_allclose(np.square(z).mean(axis=0), 1, atol=0.2)
    correlation = np.corrcoef(z, rowvar=False) - np.eye(32)
    assert np.abs(correlation).max() < 0.12


def test_the_first_look_sees_a_gap_and_no_variance_is_zero():
    rng = np.random.default_rng(0)
    score = np.sort(rng.random(20_000))
    gap = 0.2 * np.sin(2 * np.pi * score)
    flat = Residuals.of(Sample(score, rng.random(score.size) < np.clip(score + gap, 0, 1))).flat
    seen = variance_time.pilot_smooth(flat)[0]
    held = flat.mass[0] > 0
    expected = np.interp(flat.score[0], score, np.clip(score + gap, 0, 1) - score)
    assert np.sqrt(np.mean((seen - expected)[held] ** 2)) < 0.15
    certain = Residuals.of(Sample(np.array([0.0, 1.0, 1.0]), np.array([False, True, True]))).flat
    assert variance_time.pilot_variance(certain).min() > 0
    assert variance_time.pilot_variance(certain, variance_time.pilot_smooth(certain)).min() > 0


def test_cells_and_points_grow_with_the_rows():
    n = np.unique(np.geomspace(1, 1e9, 400).astype(int)).astype(float)
    for count in (variance_time.n_cells(n), variance_time.n_pilot_blocks(n)):
        assert np.all(np.diff(count) >= 0)
        assert np.all(count <= n)
        assert count[-1] == variance_time.MAX_CELLS
    cells = variance_time.n_cells(n[n > variance_time.CELLS])
    assert np.all(cells & (cells - 1) == 0)  # powers of two can be halved and joined


def test_interpolation_is_that_of_numpy():
    rng = np.random.default_rng(0)
    knots = np.cumsum(rng.random((3, 9)) * (rng.random((3, 9)) < 0.7), axis=1)
    knots[:, 0] = 0.0
    value = np.cumsum(rng.random((3, 9)), axis=1) * 1.0
    # Where knots coincide so do the values.
    value = np.take_along_axis(
        value, np.array([[np.flatnonzero(row == x)[0] for x in row] for row in knots]), axis=1
    )
    x = knots[:, -1:] * np.linspace(0, 1, 50)
    (found,) = variance_time.interpolate(x, knots, (value,))
    for k in range(3):
        np.testing.assert_allclose(found[k], np.interp(x[k], knots[k], value[k]))

"""A gap that is one process over all scores."""

import numpy as np
import pytest
from scipy.fft import dct, idct

from calibrant.posterior.process import Process, posterior_sd


def data(problems=3, cells=64, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((problems, cells)) + 2 * np.sin(np.linspace(0, 3, cells))
    return dct(x, norm="ortho")


@pytest.mark.parametrize("cells", [1, 2, 3, 8, 31, 64])
def test_the_spread_is_that_of_the_dense_matrix(cells):
    shrink = np.random.default_rng(0).random(cells)
    basis = idct(np.eye(cells), norm="ortho", axis=0)
    np.testing.assert_allclose(posterior_sd(shrink), np.sqrt(np.diag(basis @ np.diag(shrink) @ basis.T)))


def test_draws_have_the_mean_and_the_spread_of_the_posterior():
    process = Process.of(data(), np.array([900.0]))
    drawn = process.draw(1, np.random.default_rng(0), 20_000)
    np.testing.assert_allclose(drawn.mean(axis=0), process.mean[1], atol=5 * process.sd[1].max() / 141)
    np.testing.assert_allclose(drawn.std(axis=0), process.sd[1], rtol=0.04)
    calm = process.draw(1, np.random.default_rng(0), 20_000, draw_shrinkage=0.5)
    np.testing.assert_allclose(calm.std(axis=0), process.sd[1] / 2, rtol=0.04)
    np.testing.assert_allclose(calm.mean(axis=0), process.mean[1], atol=5 * process.sd[1].max() / 141)


def test_one_precision_for_all_is_that_of_each():
    z = data()
    one, each = (Process.of(z, np.full(count, 400.0)) for count in (1, 3))
    for name in ("shrink", "shape", "offset", "log_bayes_factor", "mean", "sd"):
        np.testing.assert_allclose(getattr(one, name), getattr(each, name), rtol=1e-9, atol=1e-12)


def test_a_clear_gap_is_kept_and_noise_is_shrunk():
    rng = np.random.default_rng(0)
    noise = Process.of(rng.standard_normal((200, 64)), np.array([4000.0]))
    assert np.median(noise.log_bayes_factor) < 0
    wave = 6 * np.sin(np.linspace(0, 3, 64))
    clear = Process.of(dct(wave + rng.standard_normal((200, 64)), norm="ortho"), np.array([4000.0]))
    assert clear.log_bayes_factor.min() > 50
    assert np.sqrt(np.mean((clear.mean - wave) ** 2)) < 0.5

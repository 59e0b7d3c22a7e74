"""A gap of its own at each distinct score."""

from math import sqrt

import numpy as np
import pytest
from scipy.fft import idct
from scipy.stats import norm

from calibrant.evidence import Residuals, Sample
from calibrant.posterior import clock, values
from calibrant.posterior.values import EachValue, Few


def looked_at(score, outcome, cells=64):
    """Residuals, variances and the scores that are few or stand out."""
    flat = Residuals.of(Sample(score, outcome)).flat
    variance = clock.halfway(flat)
    return flat, variance, Few.of(flat, variance, cells)


def tenths(n=500, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.integers(1, 10, n) / 10
    return score, rng.random(n) < np.clip(score - 0.1 * (score > 0.5), 0, 1)


def heavy(n=500, seed=0):
    rng = np.random.default_rng(seed)
    score = np.where(rng.random(n) < 0.4, 1.0, rng.random(n))
    score[rng.random(n) < 0.2] = 0.25
    return score, rng.random(n) < 0.9 * score


def test_which_scores_are_few_and_which_stand_out():
    *_, (few, x) = looked_at(*tenths())
    assert few.whole.all()
    np.testing.assert_allclose(few.score[0], np.arange(1, 10) / 10)
    assert few.share.sum() == pytest.approx(1)
    assert few.rows.sum() == pytest.approx(500)
    score, outcome = heavy()
    *_, (few, x) = looked_at(score, outcome)
    assert not few.whole.any()
    np.testing.assert_allclose(few.score[0], [0.25, 1.0])
    np.testing.assert_allclose(few.share[0], [np.mean(score == 0.25), np.mean(score == 1)])
    assert x.shape == (1, 2)
    rng = np.random.default_rng(0)
    assert looked_at(rng.random(500), rng.random(500) < 0.5)[2] is None
    many = np.repeat(np.arange(values.FEW + 1) / 40, 20)
    assert looked_at(many, rng.random(many.size) < 0.5)[2] is None


def test_data_at_a_score_are_its_residual_over_its_noise():
    score, outcome = tenths()
    _, _, (few, x) = looked_at(score, outcome)
    for k, s in enumerate(np.unique(score)):
        y = outcome[score == s]
        noise = sqrt(y.size * (s * (1 - s) + clock.LEAST / sqrt(500)))
        assert x[0, k] == pytest.approx((y - s).sum() / noise)
        assert few.unit[0, k] == pytest.approx(noise / 500)
        assert few.pull[0, k] == pytest.approx(y.size / noise)


@pytest.mark.parametrize("draw", [tenths, heavy])
@pytest.mark.parametrize("cells", [16, 64])
def test_scores_are_shared_out_over_cells_and_cells_over_scores(draw, cells):
    score, outcome = draw()
    flat, variance, (few, x) = looked_at(score, outcome, cells)
    z, scale, mass, _ = clock.units(flat, variance, cells)
    np.testing.assert_allclose(few.overlap[0].sum(axis=0), 1)
    # A cell has the time that scores spend in it.
    time = flat.spread * variance
    at = np.isin(flat.score[0].round(9), few.score[0].round(9)) & (flat.mass[0] > 0)
    np.testing.assert_allclose(few.inside[0].sum(axis=0), cells * time[0, at] / time.sum())
    assert few.inside[0].sum(axis=1).max() <= 1 + 1e-9
    residual = few.unit[0] * x[0]
    if few.whole[0]:
        np.testing.assert_allclose(few.inside[0].sum(axis=1), 1)
        np.testing.assert_allclose(few.overlap[0] @ few.share[0], mass[0])
        sums = scale[0] * idct(z[0], norm="ortho")
        np.testing.assert_allclose(few.overlap[0] @ residual, sums, atol=1e-12)
        back = few.from_cells(sums[None])[0] * few.unit[0]
        assert back.sum() == pytest.approx(residual.sum())
    else:
        assert np.all(few.overlap[0] @ few.share[0] <= mass[0] + 1e-12)


def test_cells_that_hold_one_score_give_its_data_back():
    score = np.repeat([0.2, 0.8], 400)  # of equal variance: half of the cells each
    outcome = np.random.default_rng(0).random(800) < score
    flat, variance, (few, x) = looked_at(score, outcome, 8)
    z, scale, *_ = clock.units(flat, variance, 8)
    found = few.from_cells(scale[0] * idct(z, norm="ortho"))
    np.testing.assert_allclose(found, x, rtol=1e-9)
    np.testing.assert_allclose(few.inside[0], np.repeat(np.eye(2), 4, axis=0), atol=1e-9)


def test_the_evidence_is_the_mean_over_sizes():
    few, x = looked_at(*tenths())[2]
    found = EachValue(few, x)
    each = [
        np.prod(norm.pdf(x[0], scale=np.sqrt(1 + (few.pull[0] * size) ** 2)) / norm.pdf(x[0]))
        for size in values.SIZES
    ]
    assert found.evidence[0] == pytest.approx(np.log(np.mean(each)))
    np.testing.assert_allclose(found.weight[0], np.array(each) / np.sum(each))


@pytest.mark.parametrize("draw", [tenths, heavy])
def test_draws_agree_with_moments_and_sides(draw):
    few, x = looked_at(*draw())[2]
    found, size = EachValue(few, x), 40_000
    drawn = found.draw(0, np.random.default_rng(0), size)
    mean, square = (moment[0] for moment in found.moments)
    np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=5 * drawn.std(axis=0).max() / sqrt(size))
    second = drawn**2
    np.testing.assert_allclose(second.mean(axis=0), square, atol=5 * second.std(axis=0).max() / sqrt(size))
    for side, sign in zip(found.sides, (-1, 1), strict=True):
        total = np.maximum(sign * drawn, 0) @ few.share[0]
        assert total.mean() == pytest.approx(side[0], abs=5 * total.std() / sqrt(size))
    over, under = found.sides
    assert under[0] - over[0] == pytest.approx(few.share[0] @ mean)


def test_a_problem_without_such_scores_has_no_such_model():
    rng = np.random.default_rng(0)
    score = np.stack([tenths()[0], rng.random(500)])
    outcome = rng.random(score.shape) < score
    few, x = looked_at(score, outcome)[2]
    assert few.any.tolist() == [True, False]
    assert np.isneginf(EachValue(few, x).evidence[1])
    alone, own = looked_at(score[0], outcome[0])[2]
    assert EachValue(few, x).evidence[0] == pytest.approx(EachValue(alone, own).evidence[0])
    np.testing.assert_allclose(few[:1].share, alone.share)

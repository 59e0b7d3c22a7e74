"""The posterior of the gap: no gap, process, ranges and single scores, weighed by their evidence."""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
from scipy.fft import idct

from calibrant.posterior.gap import Posterior, gap_probability, pool_classes
from calibrant.posterior.process import smooth_log_bayes_factor
from calibrant.posterior.score_effects import ScoreEffects
from calibrant.posterior.variance_time import n_cells
from calibrant.score_data import Residuals, Sample
from calibrant.settings import PRIOR

ARRAYS = ("z", "scale", "mass", "score", "n")
KINDS = ("smooth", "tenths", "heavy")


def draw(kind, n=400, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.beta(0.8, 0.6, n)
    if kind == "tenths":
        score = np.ceil(10 * score) / 10.5
    if kind == "heavy":
        score = np.where(rng.random(n) < 0.5, 1.0, score)
    return score, rng.random(n) < 0.9 * score**1.2


def posterior(kind="smooth", n=400, seed=0, cells=None):
    flat = Residuals.of(Sample(*draw(kind, n, seed))).flat
    return Posterior.of_residuals(flat, cells or int(n_cells(flat.n)[0]))


def told(one):
    """What a posterior says, in numbers."""
    return (
        one.over_under,
        one.smooth_over_under,
        one.gap,
        one.weight[:, :3],
        one.log_bayes_factor,
        one.mean_square,
    )


def alike(one, other, **tolerance):
    for a, b in zip(told(one), told(other), strict=True):
        np.testing.assert_allclose(a, b, **{"rtol": 1e-7, "atol": 1e-10} | tolerance)


@pytest.mark.parametrize("kind", KINDS)
def test_chances_sum_to_one(kind):
    p = posterior(kind)
    assert p.weight.shape == (1, 3 if kind == "smooth" else 4)
    np.testing.assert_allclose(p.weight.sum(axis=-1), 1)
    none = PRIOR.prior_probability_of_calibration * (1 - (p.effects[0].ties.prior if p.effects else 0.0))
    odds = (1 - p.weight[0, 0]) / p.weight[0, 0]
    assert odds == pytest.approx((1 - none) / none * np.exp(p.log_bayes_factor[0]))
    odds = (
        (1 - PRIOR.prior_probability_of_calibrated_class)
        / PRIOR.prior_probability_of_calibrated_class
        * np.exp(p.log_bayes_factor)
    )
    np.testing.assert_allclose(gap_probability(p.log_bayes_factor), odds / (1 + odds))
    # So does the prior.
    prior = np.exp(p.logs[0])
    likelihood = [1.0, *(np.exp(member.log_bayes_factor[0]) for member in (p.process, p.partition))]
    if p.effects:
        likelihood.append(likelihood[1] * np.exp(p.effects[0].log_bayes_factor[0]))
    assert (prior / likelihood).sum() == pytest.approx(1)


@pytest.mark.parametrize("kind", KINDS)
def test_points_say_what_the_cells_say(kind):
    p = posterior(kind)
    at = p.points(0)
    assert at.mass.sum() == pytest.approx(1)
    assert at.rows.sum() == pytest.approx(400)
    assert (at.mass * at.score).sum() == pytest.approx((p.mass * p.score).sum())
    # Single rows that are pooled have one variance.
    assert (at.mass * at.gap).sum() == pytest.approx(p.gap.sum(), rel=1e-5 if kind == "heavy" else 1e-6)
    over, under = p.over_under
    assert under[0] - over[0] == pytest.approx(p.gap.sum())
    assert over[0] + under[0] >= np.abs(p.gap).sum() * (1 - 1e-6)
    assert np.all(at.sd > 0)
    assert p.discrete(0) == (kind != "smooth")
    if kind == "tenths":
        np.testing.assert_allclose(at.score, np.unique(draw(kind)[0]))
    if kind == "smooth":
        np.testing.assert_allclose(at.mass * at.gap, p.gap[0], atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_draws_have_the_mean_of_the_points(kind):
    p = posterior(kind)
    at, size = p.points(0), 20_000
    drawn = p.draws(0, np.random.default_rng(0), size)
    assert drawn.shape == (size, at.gap.size)
    sd = drawn.std(axis=0)
    assert np.all(np.abs(drawn.mean(axis=0) - at.gap) < 5 * sd / sqrt(size))
    if kind == "smooth":
        # The posterior's own spread leaves out some of the process's.
        assert np.all(sd > 0.97 * at.sd)
        assert np.all(sd < 1.03 * at.sd / sqrt(PRIOR.counted_uncertainty))


@pytest.mark.parametrize("kind", KINDS)
def test_draws_have_the_spread_of_the_points_where_all_of_it_counts(kind, monkeypatch):
    monkeypatch.setitem(vars(PRIOR), "counted_uncertainty", 1.0)
    p = posterior(kind)
    at = p.points(0)
    drawn = p.draws(0, np.random.default_rng(0), 20_000)
    if kind == "smooth":
        np.testing.assert_allclose(drawn.std(axis=0), at.sd, rtol=0.05)
    # Over the cells of one score a gap varies, and its mean there varies less.
    assert np.all(drawn.std(axis=0) < 1.05 * at.sd)
    expected = sum(side[0] for side in p.over_under)
    assert (np.abs(drawn) * at.mass).sum(axis=1).mean() == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("kind", KINDS)
def test_members_draw_what_they_are(kind):
    p, rng = posterior(kind), np.random.default_rng(0)
    count = p.points(0).gap.size
    assert np.all(p.shapes(0, 0, rng, 5) == 0)
    members = range(4 if p.effects else 3)
    for member in members:
        assert p.shapes(0, member, rng, 5).shape == (5, count)
    wild, calm = (
        p.shapes(0, 1, np.random.default_rng(0), 500, draw_shrinkage) for draw_shrinkage in (1.0, 0.5)
    )
    np.testing.assert_allclose(calm.std(axis=0), wild.std(axis=0) / 2, rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_fewer_cells_are_those_of_the_residuals(kind):
    fine = posterior(kind, 20_000)
    found, expected = fine.coarser(64), posterior(kind, 20_000, cells=64)
    assert fine.z.shape[-1] == 256
    for name in ARRAYS:
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-7, atol=1e-9)
    alike(found, expected, rtol=1e-6)
    if kind != "smooth":
        for name in ("mass", "score", "spread", "variance", "rows"):
            one, other = (getattr(each.effects[0].ties, name) for each in (found, expected))
            np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9)
    assert found.coarser(64) is found
    sums = [p.scale[:, None] * idct(p.z, norm="ortho") for p in (fine, found)]
    np.testing.assert_allclose(sums[0].reshape(64, 4).sum(axis=1), sums[1][0], atol=1e-12)


def test_problems_joined_and_taken_apart_are_what_they_were():
    parts = [posterior(kind, seed=seed) for seed, kind in enumerate((*KINDS, "smooth"))]
    joined = Posterior.joined(parts)
    for k, part in enumerate(parts):
        alike(joined[k : k + 1], part)
        assert joined.weight[k].sum() == pytest.approx(1)
        assert joined.discrete(k) == part.discrete(0)
        for one, other in zip(joined.points(k), part.points(0), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-10)
        a, b = (p.draws(i, np.random.default_rng(0), 4) for p, i in ((joined[k : k + 1], 0), (part, 0)))
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-10)
    alike(joined[1:3], Posterior.joined(parts[1:3]))
    assert Posterior.joined(parts[:1]) is parts[0]
    assert Posterior.joined([parts[0], parts[3]]).effects == ()


@pytest.mark.parametrize("kind", KINDS)
def test_other_data_on_the_same_scores_have_a_posterior_of_their_own(kind):
    p = posterior(kind)
    rng = np.random.default_rng(1)
    noise = rng.standard_normal((3, p.z.shape[-1]))
    residual = tuple(
        one.residual + np.sqrt(one.ties.noise) * rng.standard_normal((3, one.ties.mass.size))
        for one in p.effects
    )
    again = p.with_data(p.z + noise, residual)
    for k in range(3):
        effects = tuple(
            ScoreEffects(one.ties, each[k : k + 1], counts=False)
            for one, each in zip(p.effects, residual, strict=True)
        )
        alone = replace(p, z=p.z + noise[k : k + 1], effects=effects)
        np.testing.assert_allclose(np.array(again.over_under)[:, k], np.array(alone.over_under)[:, 0])
        np.testing.assert_allclose(again.weight[k], alone.weight[0], rtol=1e-7, atol=1e-12)
        np.testing.assert_allclose(again.gap[k], alone.gap[0], atol=1e-12)
        for one, other in zip(again.terms("l1"), alone.terms("l1"), strict=True):
            np.testing.assert_allclose(one[k], other[0])
    # Without residuals at shared scores, their effects are left out.
    assert p.with_data(p.z).weight.shape == (1, 3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_coefficients_in_single_precision_are_read_in_double(kind, norm):
    p = posterior(kind)
    half = replace(p.with_data(p.z.astype(np.float32)), effects=p.effects)
    assert (
        half.process.mean.dtype
        == half.partition.log_bayes_factor.dtype
        == half.terms(norm).unpooled.dtype
        == np.float64
    )
    np.testing.assert_allclose(half.weight, p.weight, rtol=2e-3, atol=1e-5)
    np.testing.assert_allclose(half.over_under, p.over_under, rtol=2e-3, atol=1e-6)
    for one, other in zip(half.terms(norm), p.terms(norm), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [30, 64, 400, 3000])
def test_mirrored_scores_swap_the_sides(kind, n):
    score, outcome = draw(kind, n)
    one, other = (
        Posterior.of_residuals(flat, int(n_cells(flat.n)[0]))
        for flat in (Residuals.of(Sample(s, y)).flat for s, y in ((score, outcome), (1 - score, ~outcome)))
    )
    np.testing.assert_allclose(one.over_under, other.over_under[::-1], rtol=1e-6)
    np.testing.assert_allclose(one.gap, -other.gap[:, ::-1], rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(one.weight, other.weight, rtol=1e-6)


def test_three_classes_are_judged_together_or_each_by_itself():
    p = posterior()
    terms = p.terms("l1")
    sums = type(terms)(*(3 * term[0] for term in terms))
    found = pool_classes(sums, p.z.shape[-1], 3)
    alone = PRIOR.prior_probability_of_calibrated_class + (
        1 - PRIOR.prior_probability_of_calibrated_class
    ) * np.exp(p.log_bayes_factor[0])
    shared = smooth_log_bayes_factor(2 * terms.shape[:1], 2 * terms.offset[:1], p.z.shape[-1])[0]
    expected = (1 - PRIOR.prior_probability_of_unpooled_classes) * np.exp(
        shared
    ) + PRIOR.prior_probability_of_unpooled_classes * alone**2
    assert found.log_bayes_factor == pytest.approx(np.log(expected))
    assert 0 < found.unpooled_probability < 1
    assert found.average(0.1, 0.1) == pytest.approx(0.1 * found.gap_probability)


def test_two_classes_are_one_problem_seen_twice():
    p = posterior()
    terms = p.terms("l1")
    found = pool_classes(type(terms)(*(2 * term[0] for term in terms)), p.z.shape[-1], 2)
    assert found.log_bayes_factor == pytest.approx(terms.unpooled_log_bayes_factor[0])
    assert found.average(0.3, 0.1) == pytest.approx(0.1)


def test_the_kind_of_gap_that_is_there_gets_the_weight():
    rng = np.random.default_rng(0)
    score = (np.arange(4000) + 0.5) / 4000

    def weights(score, gap_probability):
        flat = Residuals.of(Sample(score, rng.random(score.size) < np.clip(gap_probability, 0, 1))).flat
        return Posterior.of_residuals(flat, int(n_cells(flat.n)[0])).weight[0]

    assert np.mean([weights(score, score)[0] for _ in range(20)]) > 2 * PRIOR.prior_probability_of_calibration
    assert weights(score, score + 0.15 * np.sin(4 * score)).argmax() == 1
    assert weights(score, score - 0.3 * ((score > 0.5) & (score < 0.5625))).argmax() == 2
    zigzag = rng.integers(1, 11, 4000) / 11
    assert weights(zigzag, zigzag + 0.08 * (-1) ** np.rint(11 * zigzag)).argmax() == 3
    certain = np.where(score < 0.5, 1.0, score)
    assert weights(certain, np.where(certain == 1, 0.9, certain)).argmax() == 3

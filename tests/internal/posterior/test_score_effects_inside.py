"""Effects of single scores: against loops, in every form of the data, and where they matter."""

import math

import numpy as np
import pytest
from scipy.stats import betabinom, binom, norm

import calibrant
from calibrant import Bayes
from calibrant.posterior import score_effects as module
from calibrant.posterior.score_effects import ScoreEffects, repeated_share
from calibrant.posterior.variance_time import VarianceTime
from calibrant.score_data import COARSE, FINE, Cells, Residuals, Sample
from calibrant.settings import PRIOR
from oracles.bayes import overlaps
from weighing import weighted_sample

KINDS = ("lookup", "evenly spaced", "mixed")


def scores(kind, n, rng):
    """Scores that rows share: of a lookup table, evenly spaced, or half of them continuous."""
    if kind == "evenly spaced":
        return (96 * rng.beta(0.8, 0.8, n)).round() / 96
    table = (rng.permutation(FINE.uniform // 2)[:60] + 0.3) / (FINE.uniform // 2)
    score = table[np.minimum(rng.geometric(0.05, n), 60) - 1]
    return np.where(rng.random(n) < 0.5, score, rng.random(n)) if kind == "mixed" else score


def draw(kind, n, seed=0):
    """Scores, and outcomes with an effect of each score."""
    rng = np.random.default_rng(seed)
    score = scores(kind, n, rng)
    level, inverse = np.unique(score, return_inverse=True)
    chance = np.clip(score + rng.normal(0, 0.06, level.size)[inverse], 0, 1)
    return score, rng.random(n) < chance


def posterior(evidence):
    return Bayes().fit(evidence).posterior


def effects(kind="lookup", n=1500, seed=0) -> ScoreEffects:
    return posterior(Sample(*draw(kind, n, seed))).effects[0]


def ties_of(tied, rows, n, score=None):
    """Ties of points with these rows; the others hold single rows."""
    score = np.linspace(0.1, 0.9, len(rows)) if score is None else score
    rows = np.asarray(rows, dtype=float)
    variance = score * (1 - score)
    sharing = np.where(tied, rows, 1.0)
    return module.TiedScores(rows / n, score, rows / n**2, variance, sharing, float(n), np.arange(rows.size))


# --- cells of equal variance ---


@pytest.mark.parametrize(("points", "cells"), [(1, 8), (5, 16), (40, 8), (200, 128)])
def test_sums_of_cells_and_means_at_points_are_those_of_loops(points, cells):
    rng = np.random.default_rng(points)
    noise, mass = rng.gamma(0.3, 1.0, points) + 1e-3, rng.random(points)
    time = VarianceTime(noise, mass, cells)
    ends = np.cumsum(noise)
    share = overlaps(ends, ends[-1] * np.linspace(0, 1, cells + 1))
    residual, values = rng.normal(size=(3, points)), rng.normal(size=(3, cells))
    np.testing.assert_allclose(time.to_cells(residual), residual @ share, atol=1e-12)
    np.testing.assert_allclose(time.at_points(values), values @ share.T, atol=1e-12)
    np.testing.assert_allclose(time.mass, mass @ share, atol=1e-12)
    assert time.unit == pytest.approx(math.sqrt(noise.sum() / cells))
    np.testing.assert_allclose(time.to_cells(np.sqrt(noise)[None]).sum(), np.sqrt(noise).sum())


def test_single_precision_is_kept():
    time = VarianceTime(np.array([1.0, 2.0, 0.5]), np.ones(3), 4)
    assert time.to_cells(np.ones((2, 3), np.float32)).dtype == np.float32
    assert time.at_points(np.ones((2, 4), np.float32)).dtype == np.float32


# --- likelihood ---


def test_counts_are_beta_binomial():
    rows = np.array([2, 30, 1, 7, 400, 4])
    tied = np.array([True, True, False, True, True, False])
    n = int(rows.sum())
    ties = ties_of(tied, rows, n)
    rng = np.random.default_rng(0)
    yes = rng.binomial(rows, rng.random((3, rows.size)))
    found = ScoreEffects(ties, (yes - rows * ties.score) / n, counts=True)

    def log(mu, rho):
        a, b = mu * (1 / rho - 1), (1 - mu) * (1 / rho - 1)
        each = np.where(tied, betabinom.logpmf(yes, rows, a, b), binom.logpmf(yes, rows, mu))
        return each.sum(axis=-1)

    mu = rng.uniform(0.05, 0.95, (3, rows.size))
    rho = np.array([np.full(6, 0.3), np.linspace(0.01, 0.5, 6)])
    first, second = found._log_counts(mu, rho, slice(None))
    np.testing.assert_allclose(first - second, log(mu, rho[0]) - log(mu, rho[1]), rtol=1e-9)
    other = found._log_counts(1 - mu, rho[:1], slice(None))[0]
    np.testing.assert_allclose(first - other, log(mu, rho[0]) - log(1 - mu, rho[0]), rtol=1e-9)
    none = found._log_counts(mu, np.zeros((1, 6)), slice(None))[0]
    expected = log(mu, rho[0]) - binom.logpmf(yes, rows, mu).sum(axis=-1)
    np.testing.assert_allclose(first - none, expected, rtol=1e-9)


def test_independent_gaps_without_a_smooth_part_are_normal():
    ties = effects().ties
    residual = np.random.default_rng(1).normal(size=(4, ties.mass.size)) * np.sqrt(ties.noise)
    rho = PRIOR.correlations[::4]
    prior = norm.pdf(np.log(PRIOR.correlations / PRIOR.median_correlation) / PRIOR.log_sd_of_correlation)
    prior = 4 * prior[::4] / prior.sum()
    for found, each in zip(ties.independent_gaps_log_bayes_factor(residual), residual, strict=True):
        ratio = [
            math.prod(
                norm.pdf(r, scale=math.sqrt(v * (1 + (m - 1) * q))) / norm.pdf(r, scale=math.sqrt(v))
                for r, v, m in zip(each, ties.noise, ties.rows, strict=True)
            )
            for q in rho
        ]
        assert found == pytest.approx(math.log(prior @ ratio))


@pytest.mark.parametrize("kind", KINDS)
def test_no_data_set_depends_on_the_others(kind, monkeypatch):
    one = effects(kind)
    rng = np.random.default_rng(2)
    residual = one.residual + np.sqrt(one.ties.noise) * rng.standard_normal((5, one.ties.mass.size))
    together = ScoreEffects(one.ties, residual, counts=False)
    expected = together.expected(np.ones(5, dtype=bool))
    monkeypatch.setattr(module, "CHUNK_SIZE", 2 * one.ties.mass.size)
    for k in range(5):
        alone = ScoreEffects(one.ties, residual[k : k + 1], counts=False)
        assert together.log_bayes_factor[k] == pytest.approx(alone.log_bayes_factor[0])
        np.testing.assert_allclose(expected[:, k], alone.expected(np.array([True]))[:, 0])
    in_blocks = ScoreEffects(one.ties, residual, counts=False)
    np.testing.assert_allclose(in_blocks.log, together.log)
    needed = np.array([True, False, True, False, True])
    np.testing.assert_allclose(in_blocks.expected(needed), expected * needed)


def test_a_focused_look_leaves_out_what_does_not_matter():
    one = effects(n=4000)
    focused = ScoreEffects(one.for_simulation().ties, one.residual)
    held = np.isfinite(focused.log)
    assert 0 < held.sum() < held.size
    np.testing.assert_allclose(focused.log[held], one.log[held])
    assert focused.log_bayes_factor[0] == pytest.approx(one.log_bayes_factor[0], abs=0.1)


# --- moments and draws ---


@pytest.mark.parametrize("kind", KINDS)
def test_draws_have_the_expected_gaps(kind, monkeypatch):
    monkeypatch.setattr(module, "NEGLIGIBLE", 0.0)
    one, size = effects(kind), 20_000
    mass = one.ties.mass
    drawn = one.draw(np.random.default_rng(0), size)
    assert drawn.shape == (size, mass.size)
    up, net, square = one.expected(np.array([True]))[:, 0]
    mean, mean_square = (moment[0] for moment in one.moments)
    assert np.all(np.abs(drawn.mean(axis=0) - mean) < 5 * drawn.std(axis=0) / math.sqrt(size))
    assert net == pytest.approx(mass @ mean)
    assert square == pytest.approx(mass @ mean_square)
    totals = drawn @ mass
    assert abs(totals.mean() - net) < 5 * totals.std() / math.sqrt(size)
    # Over the cells of one score the smooth part varies, and its mean there varies less.
    assert np.maximum(drawn, 0).mean(axis=0) @ mass == pytest.approx(up, rel=0.02)
    assert np.square(drawn).mean(axis=0) @ mass == pytest.approx(square, rel=0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_moments_are_expectations(kind):
    one = effects(kind)
    _, net, square = one.expected(np.array([True]))[:, 0]
    mean, mean_square = (moment[0] @ one.ties.mass for moment in one.moments)
    assert mean == pytest.approx(net)
    assert mean_square == pytest.approx(square)


# --- which scores are shared ---


@pytest.mark.parametrize("n", [2, 400, 5000])
def test_without_replication_there_are_no_effects(n):
    rng = np.random.default_rng(0)
    score = (rng.permutation(FINE.uniform)[:n] + 0.5) / FINE.uniform
    found = posterior(Sample(score, rng.random(n) < score**1.3))
    assert found.effects == ()
    assert found.weight.shape == (1, 3)
    np.testing.assert_array_equal(found.over_under, found.without_score_effects.over_under)


def test_shared_scores_may_be_ignored():
    sample = Sample(*draw("lookup", 1000))
    flat = Residuals.of(sample, ties=False).flat
    found = type(posterior(sample)).of_residuals(flat, 64)
    assert found.effects == ()
    np.testing.assert_allclose(
        found.over_under, posterior(sample).without_score_effects.over_under, rtol=1e-12
    )


def forms(score, outcome):
    """The same data as rows, cells and merged cells."""
    half = score.size // 3
    first, second = (Cells.of(Sample(score[a], outcome[a])) for a in (slice(0, half), slice(half, None)))
    return [Sample(score, outcome), Cells.of(Sample(score, outcome)), first + second]


def agree(found, expected):
    for name in ("mass", "score", "spread", "variance", "rows"):
        one, other = (getattr(p.effects[0].ties, name) for p in (found, expected))
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.weight, expected.weight, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(found.over_under, expected.over_under, rtol=1e-9)


@pytest.mark.parametrize("n", [500, 8000, 9000, 20_000])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_cells_and_merged_cells_share_the_same_scores(kind, n):
    rows, *cells = (posterior(form) for form in forms(*draw(kind, n)))
    for found in cells:
        agree(found, rows)
    if kind == "evenly spaced":
        agree(posterior(Cells.of(Sample(*draw(kind, n)), COARSE)), rows)


@pytest.mark.parametrize("n", [9000, 50_000])
def test_continuous_scores_of_many_rows_are_not_shared(n):
    rng = np.random.default_rng(0)
    score = rng.beta(0.8, 0.8, n)
    for form in forms(score, rng.random(n) < score):
        assert posterior(form).effects == ()


@pytest.mark.parametrize("rows", [100, 400])
def test_a_stray_row_counts_with_the_score_that_dominates_its_cell(rows):
    rng = np.random.default_rng(0)
    level = (rng.permutation(FINE.uniform - 2)[:30] + 1.3) / FINE.uniform
    score = np.append(np.repeat(level, rows), level[:10] + 0.4 / FINE.uniform)
    for form in forms(score, rng.random(score.size) < score):
        ties = posterior(form).effects[0].ties
        assert np.all(ties.tied)
        np.testing.assert_allclose(np.sort(ties.rows), np.repeat([rows, rows + 1], [20, 10]))


def test_a_row_next_to_another_is_not_shared():
    score = np.array([0.2, 0.2 + 0.5 / FINE.uniform, 0.6, 0.6, 0.8])
    ties = posterior(Sample(score, np.array([False, True, True, False, True]))).effects[0].ties
    np.testing.assert_allclose(ties.score[ties.tied], 0.6)


# --- symmetries ---


@pytest.mark.parametrize("n", [1500, 12_000])
@pytest.mark.parametrize("kind", KINDS)
def test_neither_order_nor_counts_nor_complement_change_the_value(kind, n):
    score, outcome = draw(kind, n)
    expected = calibrant.ece(outcome.astype(int), score)
    shuffled = np.random.default_rng(1).permutation(n)
    assert calibrant.ece(outcome[shuffled].astype(int), score[shuffled]) == pytest.approx(expected, rel=1e-9)
    assert calibrant.ece((~outcome).astype(int), 1 - score) == pytest.approx(expected, rel=1e-9)
    pairs, count = np.unique(np.stack([score, outcome]), axis=1, return_counts=True)
    counted = calibrant.ece(pairs[1].astype(int), pairs[0], counts=count)
    assert counted == pytest.approx(expected, rel=1e-9)


def test_importance_weights_lower_the_rows_that_share_a_score():
    score, outcome = draw("lookup", 600)
    weight = np.random.default_rng(0).gamma(1.0, 1.0, 600)
    ties = posterior(weighted_sample(score, outcome, weight)).effects[0].ties
    level, inverse = np.unique(score, return_inverse=True)
    rows = np.bincount(inverse, weight) ** 2 / np.bincount(inverse, weight**2)
    np.testing.assert_allclose(ties.score, level)
    np.testing.assert_allclose(ties.rows[ties.tied], rows[rows > 1 + 1e-6])


# --- where effects matter ---


def test_a_lookup_table_whose_levels_are_off_is_found():
    truths, smooth = [], []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        level, which = np.sort(rng.random(100)), rng.integers(0, 100, 3000)
        score = level[which]
        chance = np.clip(level + rng.normal(0, 0.07, 100), 0, 1)[which]
        truths.append(np.mean(np.abs(chance - score)))
        found = posterior(Sample(score, rng.random(3000) < chance))
        assert sum(found.over_under)[0] == pytest.approx(truths[-1], abs=0.02)
        assert found.weight[0].argmax() == 3
        smooth.append(sum(found.smooth_over_under)[0])
        calibrated = posterior(Sample(score, rng.random(3000) < score))
        assert sum(calibrated.over_under)[0] < 0.02
    # A process alone misses most of it.
    assert np.mean(smooth) < np.mean(truths) / 2


def test_effects_are_not_carried_from_the_ends_to_other_scores():
    mass, score = np.array([300.0, 1, 1, 1, 300]), np.array([0.0, 0.2, 0.4, 0.6, 1.0])
    ends = mass > 1
    assert repeated_share(mass, score, mass) == 0
    # Neither are those of heavy scores elsewhere.
    assert repeated_share(mass, np.linspace(0.1, 0.9, 5), mass) == 0
    more, with_more = np.append(mass, 2.0), np.append(score, 0.7)
    assert repeated_share(more, with_more, more) == pytest.approx(0.4)
    # Scores that none but frequent ones repeat are continuous where they do not.
    frequent = np.append(mass, 7.0)
    assert repeated_share(frequent, with_more, frequent) == 0
    assert repeated_share(mass, score, np.full(5, 2.0)) == 1
    assert repeated_share(mass[ends], score[ends], mass[ends]) == 1


@pytest.mark.parametrize(
    "n",
    [300, 8000],
)
def test_continuous_scores_with_many_rows_at_both_ends_share_only_these(n):
    rng = np.random.default_rng(0)
    score = np.clip(rng.normal(0.5, 0.4, n), 0, 1)
    ties = posterior(Sample(score, rng.random(n) < score)).effects[0].ties
    np.testing.assert_array_equal(ties.score[ties.tied], [0.0, 1.0])
    assert np.all(ties.effect_share[~ties.tied] == 0)


# --- the prior ---


def test_the_prior_fades_in_with_replication():
    rng = np.random.default_rng(0)
    score = (rng.permutation(FINE.uniform)[:3000] + 0.3) / FINE.uniform

    def prior(score):
        found = posterior(Sample(score, rng.random(score.size) < score))
        return found.effects[0].ties.prior

    assert prior(np.append(score[:499], score[0])) < 0.002
    priors = [prior(np.append(score[:1000], score[:pairs])) for pairs in (1, 30, 300, 1000)]
    assert np.all(np.diff(priors) > 0)
    assert prior(np.repeat(score[:100], 30)) == pytest.approx(PRIOR.effects_weight_all_tied, rel=1e-6)
    assert prior(np.repeat(score[:1500], 2)) == pytest.approx(PRIOR.effects_weight_all_tied, rel=0.01)


def test_gaps_in_ranges_are_less_likely_where_rows_share_scores():
    found = posterior(Sample(*draw("mixed", 1000)))
    ties = found.effects[0].ties
    prior = np.exp(found.logs[0, 2] - found.partition.log_bayes_factor[0])
    share = PRIOR.local_weight * (1 - PRIOR.local_weight_reduction_by_ties * ties.share)
    assert prior == pytest.approx((1 - ties.prior) * (1 - PRIOR.prior_probability_of_calibration) * share)

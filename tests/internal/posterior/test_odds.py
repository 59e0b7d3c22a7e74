"""The average over maps: its members' evidence by numerical integrals, its divisions by enumeration."""

from statistics import NormalDist

import numpy as np
import pytest

from calibrant.posterior.log_odds import LogOddsCells, components, local, model_average, smooth_average
from calibrant.posterior.log_odds.model_average import TAIL
from calibrant.score_data import Residuals
from calibrant.settings import LOG_ODDS
from oracles import maps as oracle
from weighing import weighted_sample


def rows(n=200, seed=0, shape=lambda p: p**1.5):
    rng = np.random.default_rng(seed)
    score = rng.beta(0.8, 0.8, n)
    return score, (rng.random(n) < shape(score)).astype(int)


def residuals(score, outcome, weight=None):
    return Residuals.of(weighted_sample(score, outcome > 0, weight))


# --- cells ---


def test_few_scores_are_cells_as_they_are():
    score, outcome = (np.arange(100) + 0.5) / 100, rows(100)[1]
    shuffled = np.random.default_rng(0).permutation(100)
    cells = LogOddsCells.of(residuals(score[shuffled], outcome[shuffled]))
    np.testing.assert_allclose(cells.x, [oracle.log_odds(p) for p in score], atol=1e-9)
    np.testing.assert_allclose(cells.successes, outcome, atol=1e-9)


def test_many_scores_are_pooled_and_nothing_is_lost():
    score, outcome = rows(5000)
    cells = LogOddsCells.of(residuals(score, outcome))
    assert cells.x.size <= 256
    assert (np.diff(cells.x) > 0).all()
    assert cells.trials.sum() == pytest.approx(5000)
    assert cells.successes.sum() == pytest.approx(outcome.sum())
    assert cells.x @ cells.trials == pytest.approx(np.log(score / (1 - score)).sum(), abs=0.1)
    odds = np.log(score / (1 - score))
    exact = oracle.log_likelihood(1.3 * odds + 0.2, outcome)
    assert cells.likelihood(1.3 * cells.x + 0.2) == pytest.approx(exact, abs=1)


# --- members ---


@pytest.mark.parametrize("noise", LOG_ODDS.label_noise_prior)
def test_scores_that_are_less_sure_are_mixed_with_their_complement(noise):
    score = np.array([1e-6, 0.2, 0.5, 0.99])
    found = components.expit(components.with_label_noise(np.log(score / (1 - score)), noise))
    np.testing.assert_allclose(found, noise + (1 - 2 * noise) * score, rtol=1e-9)


@pytest.mark.no_cover
@pytest.mark.parametrize(("shape", "noise"), [*((shape, 0.0) for shape in range(1, 7)), (1, 0.03), (6, 0.03)])
def test_the_evidence_of_formulas_is_an_integral(shape, noise):
    score, outcome = rows()
    sizes = LOG_ODDS.parametric[shape][:3]
    (block,) = (
        b for b in components.parametric(LogOddsCells.of(residuals(score, outcome))) if b.noise == noise
    )
    offset = np.array([oracle.log_odds(noise + (1 - 2 * noise) * p) for p in score])
    columns = [column for column, size in zip((np.ones(200), offset), sizes, strict=False) if size > 0]
    expected = oracle.evidence(offset, outcome, columns, [size for size in sizes if size > 0])
    assert np.exp(block.log_marginal[shape] - expected) == pytest.approx(1, abs=0.05)


def test_the_evidence_of_the_scores_as_they_are_is_their_likelihood():
    score, outcome = rows()
    block = components.parametric(LogOddsCells.of(residuals(score, outcome)))[0]
    odds = np.log(score / (1 - score))
    assert block.log_marginal[0] == pytest.approx(oracle.log_likelihood(odds, outcome), abs=1e-3)


def test_prior_weights_add_up():
    # With many rows the additional weights of few rows vanish.
    cells = LogOddsCells(np.array([-1.0, 1.0]), np.full(2, 5e9), np.full(2, 2e9), 1e-15)
    without_smooth_part = np.concatenate([block.prior for block in components.parametric(cells)])
    assert np.exp(without_smooth_part).sum() == pytest.approx(1 - LOG_ODDS.flexible_weight)
    assert sum(LOG_ODDS.label_noise_prior.values()) == pytest.approx(1)


def test_with_few_rows_the_scores_as_they_are_weigh_more():
    logs = {}
    for n in (10, 10_000):
        cells = LogOddsCells(np.array([-1.0, 1.0]), np.full(2, n / 2), np.full(2, n / 4), 1e-15)
        prior = components.parametric(cells)[0].prior
        logs[n] = prior[0] - prior[1]
    assert logs[10] - logs[10_000] == pytest.approx(
        LOG_ODDS.identity_bonus / 10 - LOG_ODDS.identity_bonus / 10_000
    )


@pytest.mark.parametrize(("n", "nats"), [(10, 1.0), (100, 1.0), (400, 0.25)])
def test_with_few_rows_a_temperature_weighs_more_than_a_shift(n, nats):
    cells = LogOddsCells(np.array([-1.0, 1.0]), np.full(2, n / 2), np.full(2, n / 4), 1e-15)
    for block in components.parametric(cells):
        shapes = np.log([shape[3] for shape in LOG_ODDS.parametric])
        extra = block.prior - shapes
        np.testing.assert_allclose(extra[[3, 4]] - extra[1], nats, atol=1e-12)
        np.testing.assert_allclose(extra[[2, 5, 8]], extra[1], atol=1e-12)


def test_newton_ends_at_the_top():
    score, outcome = rows(120, 3)
    cells = LogOddsCells.of(residuals(score, outcome))
    basis = (components.features(cells.x) * [1.5, 1.5, 1.0])[None]
    u, *_ = components.modes(cells, cells.x[None], basis, np.zeros((1, 3)))

    def value(u):
        return cells.likelihood(cells.x + basis[0] @ u) - 0.5 * u @ u

    for step in np.vstack([np.eye(3), -np.eye(3)]) * 0.03:
        assert value(u[0] + step) < value(u[0]) + 1e-4


def test_members_that_share_an_expansion_are_solved_each_by_itself():
    score, outcome = rows(300, 4)
    cells = LogOddsCells.of(residuals(score, outcome))
    centre, offset = 0.8 * cells.x, components.with_label_noise(cells.x, 0.03)
    phi = np.hstack(
        [components.features(offset), components.time_variables(cells, centre)["rank"].cosines(cells.x, 8)]
    )
    shapes = np.array([[0.0, 0.0, 0.0], [0.6, 0.6, 0.0], [1.5, 1.5, 1.0]])
    spread = np.array([0.5, 1.5])[:, None] * components._spectra(8)[0]
    mode, square, odds, evidence = components._fit_by_expansion(cells, phi, shapes, spread, offset, centre)
    q = 1 / (1 + np.exp(-centre))
    weight = cells.trials * q * (1 - q)
    target = weight * (centre - offset) + cells.successes - cells.trials * q
    each = [np.append(shape, waves) for shape in shapes for waves in spread]
    for k, sizes in enumerate(each):
        basis = phi * sizes
        precision = (basis.T * weight) @ basis + np.eye(sizes.size)
        u = np.linalg.solve(precision, basis.T @ target)
        np.testing.assert_allclose(mode[k], u, atol=1e-10)
        np.testing.assert_allclose(odds[k], offset + basis @ u, atol=1e-10)
        expected = cells.likelihood(odds[k]) - 0.5 * u @ u - 0.5 * np.linalg.slogdet(precision)[1]
        assert evidence[k] == pytest.approx(expected, rel=1e-12)
        block = components.ComponentBlock(
            0.03, "rank", phi, np.array(each), np.zeros(6), mode, square, odds, evidence
        )
        root = block.cholesky_factors(np.array([k]))[0]
        np.testing.assert_allclose(root @ root.T, precision, rtol=1e-10, atol=1e-10)


# --- ranges ---


@pytest.fixture(scope="module")
def four():
    """Four cells, the third of which goes wrong."""
    x = np.array([-1.5, -0.4, 0.6, 1.8])
    trials = np.array([40.0, 40.0, 40.0, 40.0])
    return LogOddsCells(x, trials, np.round(trials * np.array([0.18, 0.42, 0.4, 0.86])), 1e-15)


@pytest.fixture(scope="module")
def by_enumeration(four):
    """Log evidence over that of the scores as they are, and mean log-odds, over all divisions and kinds."""
    x, trials, successes = four.x, four.trials, four.successes
    known = {}

    def of_stretch(first, stop):
        if (first, stop) not in known:
            part = slice(first, stop)
            logs, means = [np.log(LOG_ODDS.probability_of_unchanged_range)], [x[part]]
            log, mean = oracle.constant_evidence(x[part], trials[part], successes[part])
            logs.append(log + np.log(1 - LOG_ODDS.probability_of_unchanged_range))
            means.append(np.full(x[part].shape, mean))
            total = np.logaddexp.reduce(logs)
            known[first, stop] = total, np.exp(np.array(logs) - total) @ np.array(means)
        return known[first, stop]

    total, mean = 0.0, np.zeros(4)
    for leaves, prior in oracle.divisions(0, 4, 3, LOG_ODDS.probability_of_final_range):
        weight = prior * np.exp(sum(of_stretch(*leaf)[0] for leaf in leaves))
        total += weight
        mean += weight * np.concatenate([of_stretch(*leaf)[1] for leaf in leaves])
    return np.log(total), mean / total


def test_there_are_five_divisions_of_four_cells():
    found = list(oracle.divisions(0, 4, 3, 0.5))
    assert len(found) == 5
    assert sum(prior for _, prior in found) == pytest.approx(1)


def test_the_tree_averages_over_all_divisions(four, by_enumeration):
    evidence, mean = by_enumeration
    found = local.partition_average(four)
    assert np.exp(found.log_bayes_factor - evidence) == pytest.approx(1, abs=0.05)
    np.testing.assert_allclose(found.weight.sum(axis=0), 1)
    np.testing.assert_allclose((found.weight * found.mean).sum(axis=0), mean, atol=0.03)
    assert np.argmax(np.abs(mean - four.x)) == 2  # where it goes wrong


def test_each_score_has_a_shift_of_its_own(four):
    logs = []
    for size in LOG_ODDS.sds:
        parts = [
            oracle.cells_evidence(*(np.array([v]) for v in cell), [np.ones(1)], [size])[0]
            for cell in zip(four.x, four.trials, four.successes, strict=True)
        ]
        logs.append(sum(parts) - np.log(len(LOG_ODDS.sds)))
    found = local.independent_shifts(four)
    assert np.exp(found.log_bayes_factor - np.logaddexp.reduce(logs)) == pytest.approx(1, abs=0.05)
    np.testing.assert_allclose(found.weight[:, 0], np.exp(logs - np.logaddexp.reduce(logs)), atol=0.02)


# --- the average ---


@pytest.mark.parametrize("make", [model_average, smooth_average])
def test_quantiles_are_those_of_draws(make):
    score, outcome = rows(150, 1)
    mixture = make(residuals(score, outcome))
    rng = np.random.default_rng(0)
    for place in (0, len(TAIL), mixture.at.size // 2, mixture.at.size - 1):
        weight = mixture.weight[:, place]
        member = rng.choice(len(weight), 100_000, p=weight / weight.sum())
        odds = mixture.mean[member, place] + mixture.sd[member, place] * rng.standard_normal(100_000)
        for deviate in (-1.96, -0.5, 1.0):
            below = np.mean(odds <= mixture.quantile(deviate)[place] + 1e-9)
            # The scores as they are are a member without spread: a share of the draws may be equal.
            under = np.mean(odds < mixture.quantile(deviate)[place] - 1e-9)
            assert under - 0.006 <= NormalDist().cdf(deviate) <= below + 0.006
        chance = 1 / (1 + np.exp(-odds))
        assert mixture.probability[place] == pytest.approx(chance.mean(), abs=5 * chance.std() / 300 + 2e-3)


def test_weights_add_up_everywhere():
    mixture = model_average(residuals(*rows(300, 2, lambda p: np.where(p > 0.8, 0.5, p))))
    np.testing.assert_allclose(mixture.weight.sum(axis=0), 1)


def test_a_gap_in_one_place_stays_there():
    score, outcome = rows(4000, 0, lambda p: np.where((p > 0.7) & (p < 0.8), 0.25, p))
    mixture = model_average(residuals(score, outcome))
    read = np.interp(np.log([1.0, 3.0, 19.0]), mixture.at, mixture.probability)
    np.testing.assert_allclose(read, [0.5, 0.25, 0.95], atol=0.05)


def test_few_scores_go_wrong_each_in_its_own_way():
    score = np.repeat([0.1, 0.3, 0.5, 0.7, 0.9], 400)
    truth = {0.1: 0.3, 0.3: 0.1, 0.5: 0.7, 0.7: 0.5, 0.9: 0.9}
    outcome = np.concatenate([np.arange(400) < 400 * truth[p] for p in truth]).astype(int)
    mixture = model_average(residuals(score, outcome))
    inside = slice(len(TAIL), -len(TAIL))
    np.testing.assert_allclose(mixture.probability[inside], list(truth.values()), atol=0.02)

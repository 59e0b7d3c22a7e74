"""Maps of the scores of many classes."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from calibrant import Calibrator, InputError
from calibrant.maps import multiclass as module
from calibrant.posterior.softmax import SoftmaxPosterior
from calibrant.posterior.softmax.likelihood import Likelihood
from calibrant.score_data.simplex import Simplex
from calibrant.settings import MAPS
from exported import OF_ALL_SCORES
from oracles import softmax as oracle


def rows(n=300, c=3, seed=0, temperature=2.0):
    """Scores of an overconfident network."""
    rng = np.random.default_rng(seed)
    z = 1.5 * rng.standard_normal((n, c))
    truth, score = module.softmax(z), module.softmax(temperature * z)
    return score, (rng.random((n, 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1), truth


def loss(q, truth):
    return float(-(truth * np.log(q)).sum(axis=1).mean())


def fitted(method, score, code, weight=None):
    return Calibrator(method).fit(score, code, weight)._multiclass


def test_scores_tempered_and_bent_are_averaged_by_their_weights():
    score, code, _ = rows(100, c=4, temperature=1.5)
    made = fitted("auto", score, code)
    assert 0 < made.bent < 1
    assert 0 < made.untouched < 1
    some = score[:6]
    tempered = module.softmax(made.slope * np.log(some))
    drawn = [module.softmax(oracle.logits(made.blocks, tempered, each)) for each in made.draws]
    changed = (1 - made.bent) * tempered + made.bent * np.mean(drawn, axis=0)
    expected = made.untouched * some + (1 - made.untouched) * changed
    np.testing.assert_allclose(made.probability(some), expected, atol=1e-9)


def test_scores_that_are_left_alone_come_back_as_a_copy():
    score, code, _ = rows(60)
    made = replace(fitted("temperature", score, code), untouched=1.0)
    found = made.probability(score)
    np.testing.assert_array_equal(found, score)
    assert not np.shares_memory(found, score)


def test_the_blocks_are_those_of_the_posterior_of_tempered_scores():
    score, code, _ = rows(200, c=4)
    made = fitted("auto", score, code)
    posterior = SoftmaxPosterior.of(Simplex.of(made.tempered(score), code), made.blocks)
    assert made.bent == pytest.approx(posterior.gap_probability, abs=1e-6)
    known = oracle.logits(made.blocks, made.tempered(score), posterior.theta)
    mean = np.mean(
        [made.blocks.logits(made.blocks.columns(made.tempered(score)), t) for t in made.draws], axis=0
    )
    apart = module.softmax(mean) - module.softmax(known)
    assert np.abs(apart).mean() < 0.02


def test_an_interval_tells_the_doubt_about_the_temperature():
    score, code, _ = rows(150)
    made = replace(fitted("auto", score, code), bent=0.0, untouched=0.0)
    low, high = made.interval(score, 1.0)
    steeper = replace(made, slope=made.slope * np.exp(1e-4 * made.doubt)).probability(score)
    moved = (module.log_odds(steeper) - module.log_odds(made.probability(score))) / 1e-4
    np.testing.assert_allclose(
        module.log_odds(high) - module.log_odds(low), 2 * np.abs(moved), rtol=0.01, atol=1e-6
    )


@pytest.mark.parametrize(("method", "names"), [("vector", 3), ("matrix", 4)])
def test_named_maps_are_modes_of_blocks_of_known_sizes(method, names):
    score, code, _ = rows(300, c=4)
    made = fitted(method, score, code)
    likelihood = Likelihood(Simplex.of(made.tempered(score), code), made.blocks)
    slope, on = likelihood.slope(made.draws[0])[1], 0
    for block in made.blocks.blocks:
        theta = made.draws[0, block.indices]
        matrix_sd = MAPS.matrix_sd / 4 if method == "matrix" else None
        size = {**dict.fromkeys(("temperature", "bias", "slope"), MAPS.vector_sd), "matrix": matrix_sd}.get(
            block.name
        )
        if size is None:
            assert not theta.any()
        else:
            np.testing.assert_allclose(slope[block.indices], theta / size**2, atol=0.01)
            on += 1
    assert on == names


def test_temperature_is_the_likeliest():
    score, code, _ = rows(400)

    def cost(log):
        return -np.log(module.softmax(np.exp(log) * np.log(score))[np.arange(400), code]).sum()

    slope = np.exp(minimize_scalar(cost, bounds=(-3, 3), method="bounded").x)
    expected = module.softmax(slope * np.log(score))
    np.testing.assert_allclose(
        Calibrator("temperature").fit(score, code).predict_proba(score), expected, atol=2e-3
    )


def test_the_temperature_of_many_rows_is_found_a_part_at_a_time(monkeypatch):
    score, code, _ = rows(400)
    whole = fitted("temperature", score, code)
    monkeypatch.setattr(module, "CHUNK", 3 * 70)
    assert fitted("temperature", score, code).slope == pytest.approx(whole.slope, rel=1e-9)


@pytest.mark.parametrize("method", [*OF_ALL_SCORES, "isotonic-safe", "beta"])
def test_scores_that_are_too_sure_are_mended(method):
    score, code, truth = rows(1000, c=4)
    found = Calibrator(method).fit(score, code).predict_proba(score)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert loss(found, truth) < loss(score, truth) - 0.1
    assert loss(found, truth) < loss(truth, truth) + 0.02


@pytest.mark.parametrize("method", OF_ALL_SCORES)
def test_the_order_of_rows_does_not_matter(method):
    score, code, _ = rows(100)
    order = np.random.default_rng(0).permutation(100)
    found, again = (
        Calibrator(method).fit(score[some], code[some]).predict_proba(score)
        for some in (np.arange(100), order)
    )
    np.testing.assert_allclose(found, again, atol=1e-6)


@pytest.mark.parametrize("method", OF_ALL_SCORES)
def test_counts_mean_repetition_and_rows_without_weight_do_not_count(method):
    score, code, _ = rows(100)
    count = np.random.default_rng(1).integers(0, 3, 100)
    found = Calibrator(method).fit(score, code, counts=count).predict_proba(score)
    again = (
        Calibrator(method).fit(np.repeat(score, count, axis=0), np.repeat(code, count)).predict_proba(score)
    )
    np.testing.assert_allclose(found, again, atol=1e-6)


@pytest.mark.parametrize("method", [name for name in OF_ALL_SCORES if name != "auto"])
def test_the_order_of_classes_does_not_matter(method):
    score, code, _ = rows(150)
    order = np.array([2, 0, 1])
    found = Calibrator(method).fit(score, code).predict_proba(score)
    turned = Calibrator(method).fit(score[:, order], np.argsort(order)[code]).predict_proba(score[:, order])
    np.testing.assert_allclose(turned, found[:, order], atol=1e-6)


def test_the_order_of_classes_matters_as_little_as_draws_do():
    score, code, _ = rows(150)
    order = np.array([2, 0, 1])
    found = Calibrator().fit(score, code).predict_proba(score)
    turned = Calibrator().fit(score[:, order], np.argsort(order)[code]).predict_proba(score[:, order])
    np.testing.assert_allclose(turned, found[:, order], atol=0.01)
    assert np.abs(turned - found[:, order]).mean() < 0.002


@pytest.mark.parametrize("method", [*OF_ALL_SCORES, "isotonic", "venn-abers"])
@pytest.mark.parametrize("case", ["one class only", "constant", "separable", "exact", "one row", "two rows"])
def test_the_answer_is_a_distribution_in_every_case(method, case):
    score, code, _ = rows(40)
    if case == "one class only":
        code = np.zeros(40, int)
    elif case == "constant":
        score = np.tile([0.2, 0.3, 0.5], (40, 1))
    elif case == "separable":
        code = score.argmax(axis=1)
    elif case == "exact":
        score = np.eye(3)[score.argmax(axis=1)]
    elif case.endswith(("row", "rows")):
        score, code = (part[: 1 if case == "one row" else 2] for part in (score, code))
    calibrator = Calibrator(method, labels=[0, 1, 2]).fit(score, code)
    new = np.array([[1.0, 0.0, 0.0], [0.2, 0.3, 0.5], [1e-12, 1e-12, 1 - 2e-12]])
    found = calibrator.predict_proba(new)
    assert ((found >= 0) & (found <= 1)).all()
    np.testing.assert_allclose(found.sum(axis=1), 1)
    before = found, found
    for level in (0.5, 0.95):
        low, high = calibrator.predict_interval(new, level)
        assert ((low >= 0) & (low <= before[0] + 1e-12) & (high >= before[1] - 1e-12) & (high <= 1)).all()
        before = low, high


def test_with_very_few_rows_the_scores_are_left_nearly_alone():
    new = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])
    # Neither row says anything against the scores.
    found = Calibrator(labels=[0, 1, 2]).fit(new, [0, 2]).predict_proba(new)
    np.testing.assert_allclose(found, new, atol=0.02)


def test_calibrated_scores_lose_little():
    gained = []
    for seed in range(6):
        score, code, truth = rows(100, seed=seed, temperature=1.0)
        gained.append(loss(Calibrator().fit(score, code).predict_proba(score), truth) - loss(score, truth))
    assert np.mean(gained) < 1 / 100


def test_logits_are_taken_for_their_softmax():
    score, code, _ = rows(60)
    found = Calibrator(from_logits=True).fit(np.log(score) + 3, code).predict_proba(np.log(score))
    np.testing.assert_allclose(found, Calibrator().fit(score, code).predict_proba(score), atol=1e-9)


def test_twenty_classes_of_a_few_rows():
    score, code, truth = rows(200, c=20)
    found = Calibrator().fit(score, code).predict_proba(score)
    assert loss(found, truth) < loss(score, truth)


@pytest.mark.parametrize("method", ["vector", "matrix"])
def test_what_needs_many_classes_says_so(method):
    with pytest.raises(InputError, match="method must be a map of one score"):
        Calibrator(method).fit([0.2, 0.7], [0, 1])

"""The default estimator: against a slow oracle, and where it must lead."""

import numpy as np
import pytest
from tests.oracles import bayes as oracle

import calibrant
from calibrant import Bayes
from calibrant.estimators.bayes import BayesFit
from calibrant.score_data import COARSE, FINE, Cells, Residuals, Sample
from weighing import weighted_sample


def draw(n, seed=0, power=1.5):
    rng = np.random.default_rng(seed)
    score = rng.beta(0.8, 0.6, n)
    return score, rng.random(n) < score**power


def apart(score):
    """Which scores are the first of their cell: scores that share one count as one, which no loop knows."""
    return np.sort(np.unique(FINE.locate(score), return_index=True)[1])


def held_to_the_oracle(score, outcome):
    errors, sides = oracle.errors(score, outcome)
    found = Bayes().fit(Sample(score, outcome))
    # The expected positive part of a normal variable is known to 1e-7.
    for norm, expected in errors.items():
        assert found.error(norm) == pytest.approx(expected, rel=1e-6), norm
        for estimator in ("auto", "bayes"):
            value = calibrant.ece(outcome.astype(int), score, labels=[0, 1], estimator=estimator, norm=norm)
            assert value == pytest.approx(float(found.error(norm)), rel=1e-12)
    assert found.over_under == pytest.approx(sides, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("n", [1, 2, 3, 30, 64, 65, 300])
@pytest.mark.parametrize("seed", [0, 1])
def test_it_equals_the_plain_loop(n, seed):
    score, outcome = draw(2 * n, seed)
    some = apart(score)[:n]
    held_to_the_oracle(score[some], outcome[some])


def repeated(kind, seed):
    """Rows that share scores: all of them or some, as many at each or not, or at an end of the scores."""
    rng = np.random.default_rng(seed)
    score, _ = draw(300, seed)
    if kind == "seven":
        return np.ceil(7 * score) / 7.5, rng.random(300) < score**1.5
    if kind == "fifty-one":
        score = np.ceil(51 * score) / 51
    if kind == "mixed":
        score = score[apart(score)][:60]
        score = np.append(score, np.repeat(score[:20], np.arange(1, 21)))
    if kind == "pairs":
        score = np.repeat(score[apart(score)][:40], 2)
    if kind.startswith("end"):
        score = np.append(score[apart(score)][:120], np.ones(180))
    chance = 0.9 if kind == "end below" else 1.0
    return score, rng.random(score.size) < chance * score


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("kind", ["seven", "fifty-one", "mixed", "pairs", "end", "end below"])
def test_repeated_scores_equal_the_plain_loop(kind, seed):
    held_to_the_oracle(*repeated(kind, seed))


def test_a_gap_in_one_stretch_equals_the_plain_loop():
    score = (np.arange(256) + 0.5) / 256
    outcome = np.random.default_rng(0).random(256) < score - 0.4 * ((score > 0.5) & (score < 0.625))
    held_to_the_oracle(score, outcome)


@pytest.mark.parametrize("n", [2, 30, 5000, 20_000])
@pytest.mark.parametrize("kind", ["smooth", "discrete", "saturated"])
def test_rows_cells_and_merged_cells_give_the_same(n, kind):
    score, outcome = draw(n, 3)
    if kind == "discrete":
        score = score.round(2)
    if kind == "saturated":
        score = 1 - score**40
    sample = Sample(score, outcome)
    expected = Bayes().fit(sample).error()
    half = n // 2
    pieces = [Cells.of(Sample(score[a], outcome[a])) for a in (slice(0, half), slice(half, n))]
    assert Bayes().fit(Cells.of(sample)).error() == pytest.approx(expected, rel=1e-9)
    assert Bayes().fit(pieces[0] + pieces[1]).error() == pytest.approx(expected, rel=1e-9)
    if n != 30 or kind == "discrete":
        assert Bayes().fit(Cells.of(sample, COARSE)).error() == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize("n", [30, 40])
def test_coarse_cells_of_few_rows_give_about_the_same(n):
    sample = Sample(*draw(n, 3))
    expected = Bayes().fit(sample).error()
    assert Bayes().fit(Cells.of(sample, COARSE)).error() == pytest.approx(expected, abs=2e-3)


def test_a_calibrated_model_reads_less_than_its_noise():
    rng = np.random.default_rng(0)
    score = rng.beta(0.5, 0.5, (400, 1000))
    value = Bayes().fit(Sample(score, rng.random(score.shape) < score)).error()
    assert value.mean() < 0.0105  # less than a third of what fifteen bins show
    assert np.quantile(value, 0.95) < 0.025


def test_both_sides_add_up_and_point_the_right_way():
    score, outcome = draw(2000, 5, power=2.0)
    fit = Bayes().fit(Sample(score, outcome))
    over, under = fit.over_under
    assert over + under == pytest.approx(float(fit.error()))
    assert over > 20 * under
    mirrored = Bayes().fit(Sample(1 - score, ~outcome))
    assert mirrored.over_under[1] == pytest.approx(float(over), rel=1e-6)


def test_no_problem_depends_on_the_others_of_its_batch():
    rng = np.random.default_rng(0)
    score = rng.random((4, 300))
    outcome = rng.random((4, 300)) < score**1.5
    weight = (np.arange(300) < np.array([20, 100, 250, 300])[:, None]).astype(int)
    together = Bayes().fit(weighted_sample(score, outcome, weight))
    alone = [Bayes().fit(Sample(s[w > 0], y[w > 0])) for s, y, w in zip(score, outcome, weight, strict=True)]
    np.testing.assert_allclose(together.error(), [fit.error() for fit in alone], rtol=1e-9)


def test_classes_of_one_model_are_judged_together():
    rng = np.random.default_rng(0)
    matrix = rng.dirichlet([1, 1, 1], 200)
    label = (rng.random((200, 1)) > np.cumsum(matrix, axis=1)).sum(axis=1).clip(0, 2)
    sample = Sample(matrix.T, label == np.arange(3)[:, None])
    fit = Bayes(shared=True).fit(sample)
    blocks = [Bayes(shared=True).fit(sample[k : k + 1]) for k in range(3)]
    np.testing.assert_allclose(BayesFit.joined(blocks)[0].error(), fit.error())


@pytest.mark.parametrize("n", [3, 33])
def test_mirrored_scores_of_an_odd_number_of_rows_have_the_same_error(n):
    score, outcome = draw(n, 5)
    mirrored = Bayes().fit(Sample(1 - score, ~outcome)).error()
    assert mirrored == pytest.approx(Bayes().fit(Sample(score, outcome)).error(), rel=1e-6)


def test_a_profile_keeps_every_sum():
    score, outcome = draw(500, 2)
    weight = np.random.default_rng(1).random(500) + 0.5
    sample = weighted_sample(score.round(2), outcome, weight)
    profile = Residuals.of(sample)
    assert profile.n == pytest.approx(float(sample.n))
    scale = sample.n / weight.sum()
    assert profile.residual.sum() == pytest.approx(scale * (weight * (outcome - score.round(2))).sum())
    assert profile.spread.sum() == pytest.approx(scale**2 * (weight**2).sum())
    coarse = profile.coarser(20)
    assert coarse.mass.size <= 20
    assert coarse.residual.sum() == pytest.approx(profile.residual.sum())

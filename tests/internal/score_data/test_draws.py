"""Binomial outcomes are those of numpy, number for number; those from random words have the same moments."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, kstest

from calibrant import compiled
from calibrant.score_data import Residuals
from calibrant.score_data.draws import NORMAL, Outcomes, binomial
from weighing import weighted_sample

GROUPS = st.lists(st.tuples(st.integers(0, 60), st.floats(0.0, 1.0)), min_size=1, max_size=30)


@given(groups=GROUPS, size=st.integers(1, 60), seed=st.integers(0, 2**32))
def test_the_numbers_and_the_generator_are_those_of_numpy(groups, size, seed):
    n, p = (np.array(column) for column in zip(*groups, strict=True))
    fast, plain = (np.random.default_rng(seed) for _ in range(2))
    np.testing.assert_array_equal(binomial(fast, n, p, size), plain.binomial(n, p, (size, n.size)))
    assert fast.random() == plain.random()


@pytest.mark.parametrize("p", [1e-300, 1e-9, 0.5, np.nextafter(0.5, 1), 1 - 1e-9, 1.0])
def test_chances_at_the_walls_and_at_one_half_are_drawn_alike(p):
    n, chance = np.array([1, 2, 7, 40]), np.full(4, p)
    fast, plain = (np.random.default_rng(1) for _ in range(2))
    drawn = binomial(fast, n, chance, 20_000)
    np.testing.assert_array_equal(drawn, plain.binomial(n, chance, (20_000, 4)))


@pytest.mark.parametrize("n", [[1, 0, 3, 2], [500, 3, 3000, 41]])
def test_what_cannot_happen_spends_no_number_and_large_groups_are_drawn_alike(n):
    n, chance = np.array(n), np.array([0.01, 0.4, 0.999, 0.0])
    fast, plain = (np.random.default_rng(2) for _ in range(2))
    np.testing.assert_array_equal(binomial(fast, n, chance, 3000), plain.binomial(n, chance, (3000, 4)))
    assert fast.random() == plain.random()


def test_by_several_rows_of_chances_outcomes_are_drawn_one_after_the_other():
    n, chances = np.array([1, 30, 3]), np.array([[0.2, 0.6, 0.0], [0.0, 0.1, 1.0]])
    fast, plain = (np.random.default_rng(3) for _ in range(2))
    expected = np.concatenate([plain.binomial(n, chance, (5, 3)) for chance in chances])
    np.testing.assert_array_equal(binomial(fast, n, chances, 5), expected)


def steps_of(rows, score):
    rows, score = (np.asarray(part, dtype=np.float64) for part in (rows, score))
    return Residuals(rows, score, np.zeros(rows.size), rows, np.ones(rows.size, dtype=bool))


def drawn(steps, size, seed=0):
    return np.concatenate(list(Outcomes.of(steps).blocks(np.random.default_rng(seed), size)))


@pytest.mark.parametrize("weighting", [None, "counts", "weights"])
def test_outcomes_have_the_mean_and_variance_of_the_scores(weighting):
    rng = np.random.default_rng(0)
    weight = {None: None, "counts": rng.integers(1, 5, 30), "weights": rng.random(30) + 0.5}[weighting]
    one = Residuals.of(weighted_sample(np.arange(1, 31) / 31, np.arange(30) % 2 > 0, weight))
    sets = drawn(one, 4000)
    assert sets.shape == (4000, 30)
    variance = one.spread * one.score * (1 - one.score)
    assert np.all(np.abs(sets.mean(axis=0)) < 5 * np.sqrt(variance / 4000))
    np.testing.assert_allclose(sets.var(axis=0), variance, rtol=0.2)


def test_few_outcomes_are_binomial_and_many_normal():
    rows, score = np.array([1, 5, 100, 2000, 500]), np.array([0.3, 0.9, 0.5, 0.002, 0.4])
    sets = drawn(steps_of(rows, score), 20_000)
    exact = rows * score * (1 - score) < NORMAL
    assert exact.tolist() == [True, True, True, True, False]
    for j in np.flatnonzero(exact):
        count = np.rint(sets[:, j] + rows[j] * score[j]).astype(int)
        np.testing.assert_allclose(sets[:, j], count - rows[j] * score[j], atol=1e-9)
        seen = np.bincount(count, minlength=rows[j] + 1) / len(count)
        assert np.abs(np.cumsum(seen) - binom.cdf(np.arange(seen.size), rows[j], score[j])).max() < 0.012
    assert kstest(sets[:, 4] / np.sqrt(500 * 0.24), "norm").pvalue > 0.01


@pytest.mark.parametrize("rows", [1, 40])
@pytest.mark.parametrize("far", [1e-3, 1e-6, 1e-9, 1e-12, 0.0])
def test_outcomes_are_as_precise_next_to_one_as_next_to_zero(rows, far):
    for wall, score in ((0.0, far), (1.0, 1 - far)):
        sets = drawn(steps_of([rows], [score]), 100)
        usual = sets[np.argmin(np.abs(sets))]
        np.testing.assert_allclose(usual, rows * (wall - score), rtol=1e-6)


def test_loops_and_numpy_draw_the_same(monkeypatch):
    rng = np.random.default_rng(2)
    steps = steps_of(rng.integers(1, 400, 300), rng.random(300))
    fast = drawn(steps, 70)
    monkeypatch.setattr(compiled, "loops", None)
    np.testing.assert_array_equal(drawn(steps, 70), fast)

"""The test of canonical calibration: its statistic by a slow way, its null, and what it sees."""

import numpy as np
import pytest
from test_canonical_estimators import as_rows, drawn

from calibrant.inference import score_test
from calibrant.inference.score_test import p_value
from calibrant.posterior.softmax import fit as softmax_fit
from calibrant.posterior.softmax.blocks import Blocks
from calibrant.posterior.softmax.likelihood import Likelihood
from calibrant.score_data.simplex import Simplex
from calibrant.settings import SOFTMAX
from oracles import simplex as oracle
from weighing import are_counts


def calibrated(seed, n, classes, **options):
    p, _ = drawn(seed, n, classes, **options)
    rng = np.random.default_rng(seed + 1000)
    return p, (rng.random((n, 1)) >= p.cumsum(axis=1)[:, :-1]).sum(axis=1)


def on_rows(p, y, weight=None, sims=39, seed=0):
    rows = Simplex.of(p, y, weight, counts=are_counts(weight))
    return p_value(rows, Blocks.of(rows), np.random.default_rng(seed), sims)


@pytest.mark.parametrize("counted", [False, True])
def test_the_statistic_is_that_of_a_loop(counted):
    p, y = drawn(0, 12, 3)
    rows = Simplex.of(p, y, np.arange(12) % 3 + 1 if counted else None)
    blocks = Blocks.of(rows)
    found = p_value(rows, blocks, np.random.default_rng(0), 9)
    prior = SOFTMAX.sds, softmax_fit.shapes, SOFTMAX.probability_of_absent_block
    wanted = oracle.evidence(as_rows(rows), blocks, *prior)
    assert found.statistic == pytest.approx(wanted, rel=1e-3)
    assert found.null.shape == (9,)
    assert found.p_value == (1 + (found.null >= found.statistic).sum()) / 10


@pytest.mark.parametrize("classes", [2, 3, 15])
@pytest.mark.parametrize("weight", [None, "counts", "importance"])
def test_slopes_are_those_of_the_likelihood(classes, weight):
    rng = np.random.default_rng(1)
    given = {None: None, "counts": rng.integers(1, 4, 300), "importance": rng.random(300) + 0.2}[weight]
    rows = Simplex.of(*drawn(1, 300, classes), given, counts=are_counts(given))
    blocks = Blocks.of(rows)
    slopes = score_test._slopes(rows, blocks, rng, 5)
    wanted = Likelihood(rows, blocks).slope(np.zeros(blocks.size))[1]
    assert slopes.shape == (6, blocks.size)
    assert slopes[-1] == pytest.approx(wanted, abs=1e-4 * np.abs(wanted).max())


@pytest.mark.parametrize("counted", [False, True])
def test_simulated_slopes_are_zero_on_average_and_spread_as_the_information_says(counted, monkeypatch):
    rng = np.random.default_rng(2)
    rows = Simplex.of(*drawn(2, 60, 3), rng.integers(1, 5, 60) if counted else None)
    blocks = Blocks.of(rows)
    spread = np.diagonal(Likelihood(rows, blocks).expand(np.zeros(blocks.size)))
    for most in (score_test.SIMULATED, 60 * 3 * 300):  # the second: put together of parts
        monkeypatch.setattr(score_test, "SIMULATED", most)
        monkeypatch.setattr(score_test, "MIN_BLOCK", 6)
        slopes = score_test._slopes(rows, blocks, rng, 1500)
        some = spread > 0.05
        assert np.abs(slopes[:-1].mean(axis=0) / np.sqrt(spread))[some].max() < 5 / np.sqrt(1500)
        assert slopes[:-1].std(axis=0)[some] ** 2 / spread[some] == pytest.approx(1, abs=0.25)


def test_a_calibrated_model_passes_and_a_gap_is_seen():
    assert on_rows(*calibrated(8, 400, 3)).p_value > 0.05
    found = on_rows(*drawn(8, 400, 3))
    assert found.p_value == 1 / 40
    assert found.statistic > found.null.max()


def test_p_values_are_even_for_calibrated_models():
    found = [on_rows(*calibrated(seed, 40, 3), sims=19) for seed in range(30)]
    value = np.array([each.p_value for each in found])
    assert 0.4 < value.mean() < 0.65
    assert (value <= 0.1).mean() < 0.25


def test_a_class_has_a_p_value_of_its_own():
    """Two of four classes are exchanged at random: the others are calibrated."""
    p, y = calibrated(5, 1500, 4)
    swapped = np.where(np.isin(y, (0, 1)) & (np.random.default_rng(0).random(1500) < 0.7), 1 - y, y)
    found = on_rows(p, swapped, sims=99).by_class
    assert (found[:2] == 0.01).all()
    assert (found[2:] > 0.02).all()


@pytest.mark.parametrize("zeros", [False, True])
def test_neither_order_nor_repetition_matters(zeros):
    p, y = drawn(6, 50, 3, zeros=zeros)
    count = np.random.default_rng(0).integers(1, 4, 50)
    expected = on_rows(p, y, count)
    shuffled = np.random.default_rng(1).permutation(50)
    again = on_rows(p[shuffled], y[shuffled], count[shuffled])
    repeated = on_rows(np.repeat(p, count, axis=0), np.repeat(y, count))
    for other in (again, repeated):
        assert other.statistic == pytest.approx(expected.statistic, rel=1e-6)
        assert other.p_value == expected.p_value


@pytest.mark.parametrize("case", ["one row", "one class", "one vector", "certain", "two classes", "many"])
def test_little_to_look_at_gives_a_p_value(case):
    p, y = drawn(7, 30, 3)
    if case == "one row":
        p, y = p[:1], y[:1]
    elif case == "one class":
        y = np.zeros(30, int)
    elif case == "one vector":
        p = np.tile([0.2, 0.3, 0.5], (30, 1))
    elif case == "certain":
        p = np.eye(3)[y]
    else:
        p, y = drawn(7, 30, 2 if case == "two classes" else 40)
    found = on_rows(p, y)
    assert 0 < found.p_value <= 1
    assert found.by_class.shape == (p.shape[1],)
    assert np.isfinite(found.null).all()
    if case == "certain":
        assert found.p_value == 1


def test_labels_that_cannot_be_are_seen():
    p = np.eye(3)[np.zeros(40, int)]
    y = np.arange(40) % 3
    assert on_rows(p, y).p_value == 1 / 40

"""The calibration error that language models are ranked by: values of their code, a loop, and its faults."""

import numpy as np
import pytest

import calibrant
from calibrant.published import hendrycks_rms
from oracles.hendrycks import rms


def answers(seed, n, decimals=None):
    rng = np.random.default_rng(seed)
    confidence = rng.beta(4, 1, n)
    correct = rng.random(n) < confidence**2
    return correct, confidence if decimals is None else np.round(confidence, decimals)


# `calib_err` of hendrycks/outlier-exposure at 404c6268, under numpy 2; the answers above have no ties.
@pytest.mark.parametrize(
    ("seed", "n", "bin_size", "value"),
    [
        (0, 250, 100, 0.13666871432958916),
        (1, 1000, 100, 0.13745975964066054),
        (2, 1234, 100, 0.164119065625071),
        (3, 2500, 100, 0.16394328701736227),
        (4, 199, 100, 0.0),
        (5, 100, 100, 0.0),
        (6, 57, 10, 0.1522577817893187),
    ],
)
def test_the_value_of_their_code(seed, n, bin_size, value):
    correct, confidence = answers(seed, n)
    assert hendrycks_rms(correct, confidence, bin_size) == pytest.approx(value, abs=1e-15)
    assert rms(correct, confidence, bin_size) == pytest.approx(value, abs=1e-14)


def test_a_loop_over_rows_gives_the_same():
    for seed in range(40):
        n = int(np.random.default_rng(seed).integers(10, 400))
        correct, confidence = answers(seed, n)
        for bin_size in (1, 7, 10):
            found = hendrycks_rms(correct.tolist(), confidence.tolist(), bin_size)
            assert found == pytest.approx(rms(correct, confidence, bin_size), abs=1e-13)


@pytest.mark.parametrize(("n", "bin_size"), [(1000, 100), (300, 100), (60, 10)])
def test_the_named_estimator_reads_the_last_bin(n, bin_size):
    correct, confidence = answers(n, n)
    options = {"notion": "correctness", "norm": "l2", "estimator": f"adaptive:{n // bin_size}"}
    found = calibrant.ece(correct, confidence, **options)
    assert found == pytest.approx(rms(correct, confidence, bin_size, last=True), abs=1e-13)
    # The bin that is left out is part of the difference, and all of it.
    last = np.sort(confidence)[-bin_size:].mean() - correct[np.argsort(confidence)][-bin_size:].mean()
    squares = found**2 - hendrycks_rms(correct, confidence, bin_size) ** 2
    assert squares == pytest.approx(bin_size / n * last**2, abs=1e-13)


def test_equal_confidences_are_cut_in_no_particular_order():
    confidence, correct = np.full(400, 0.9), np.repeat([0, 1], 200)
    one = hendrycks_rms(correct, confidence)
    shuffled = np.random.default_rng(0).permutation(400)
    assert one != hendrycks_rms(correct[shuffled], confidence)
    options = {"notion": "correctness", "norm": "l2", "estimator": "adaptive:4"}
    assert calibrant.ece(correct, confidence, **options) == pytest.approx(0.4, abs=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], [0.5]), "vectors of one length"),
        (([0, 2], [0.5, 0.5], 1), "correct must hold 0 and 1, got 2.0 at row 1"),
        (([0, 1], [0.5, 50], 1), r"confidence must lie in \[0, 1\], got 50.0 at row 1"),
        (([0, 1], [0.5, np.nan], 1), "confidence must lie"),
        (([0, 1], [0.5, 0.5]), "at least bin_size=100 rows, got 2"),
        (([0, 1], [0.5, 0.5], 0), "bin_size must be an integer of at least 1"),
        (([0, 1], [0.5, 0.5], 1.5), "bin_size must be an integer"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        hendrycks_rms(*arguments)

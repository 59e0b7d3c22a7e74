"""What an assessment says to do."""

from dataclasses import replace

import numpy as np
import pytest

import calibrant
from calibrant import Sketch
from calibrant.assessment import text

# What is not about the estimators of the literature does without most of them.
pytestmark = pytest.mark.usefixtures("few_reference_estimators")


def assessed(n, slope, seed=0, **options):
    rng = np.random.default_rng(seed)
    odds = rng.normal(0, 1.2, n)
    outcome = rng.random(n) < 1 / (1 + np.exp(-odds))
    return calibrant.assess(outcome, 1 / (1 + np.exp(-slope * odds)), rng=0, **options)


@pytest.fixture(scope="module")
def sharp():
    return assessed(2000, 2.4)


def flat(wrapped):
    """Return a printed result or a page on one line."""
    return " ".join(str(wrapped).split())


def test_what_recalibrating_would_remove_is_said(sharp):
    recalibration, advice = sharp.recalibration, sharp.advice
    assert recalibration.helps
    share = f"{100 * recalibration.gain.value / recalibration.excess:.0f} % of the excess log loss"
    # The error before and after is said once, by the verdict.
    assert advice.startswith(f"Recalibrating would remove {share}; a temperature of 2.")
    before, after = text.points(recalibration.before), text.points(recalibration.after.value)
    assert f"cuts the error from {before} to {after} points (" in sharp.verdict.action
    assert advice.endswith(" of it.")
    assert advice in flat(sharp)
    assert recalibration.after.value < 0.02 < recalibration.before
    assert recalibration.temperature == pytest.approx(2.4, abs=0.2)
    assert recalibration.by_temperature == pytest.approx(recalibration.gain.value, abs=0.003)


def test_without_a_temperature_none_is_named(sharp):
    advice = text.advice(replace(sharp, recalibration=replace(sharp.recalibration, temperature=None)))
    assert advice.startswith("Recalibrating would remove ")
    assert "temperature" not in advice


def test_a_loss_that_was_infinite_becomes_finite():
    rng = np.random.default_rng(6)
    score = np.round(rng.random(800), 1)
    outcome = rng.random(800) < 0.5 + 0.3 * (score - 0.5)
    result = calibrant.assess(outcome, score, rng=0)
    assert "make the log loss finite" in result.advice
    assert result.recalibration.gain.value == np.inf
    assert text.gain_sentence(result) == ""
    again = calibrant.Assessment.from_json(result.to_json())
    assert again.advice == result.advice
    assert again.recalibration.gain == result.recalibration.gain


def test_an_infinite_loss_becomes_finite_and_one_that_stays_infinite_is_told_as_such():
    rng = np.random.default_rng(1)
    odds = rng.normal(0, 1, 1500)
    outcome = rng.random(1500) < 1 / (1 + np.exp(-odds))
    # A single row contradicts a score of 0: the other folds give no reason to change that score.
    result = calibrant.assess(np.append(outcome, True), np.append(1 / (1 + np.exp(-odds)), 0.0), rng=0)
    assert result.recalibration.gain.value == np.inf
    assert text.gain_sentence(result) == ""
    gain = replace(result.recalibration.gain, value=0.0, low=0.0, high=0.0)
    result = replace(result, recalibration=replace(result.recalibration, gain=gain))
    assert text.gain_sentence(result).startswith("The log loss is infinite before and after recalibration")


def test_an_infinite_excess_is_no_share_of_the_gain(sharp):
    infinite = replace(
        sharp, recalibration=replace(sharp.recalibration, excess=np.inf, by_temperature=np.inf)
    )
    assert text.recommended(infinite)
    assert "log loss" in text.advice(sharp)
    assert "log loss" not in text.advice(infinite)
    assert "temperature" not in text.advice(infinite)


@pytest.mark.parametrize("case", ["few rows", "one outcome", "sums"])
def test_where_nothing_is_known_nothing_is_said(case):
    if case == "few rows":
        result = calibrant.assess([0, 1, 1, 0], [0.2, 0.7, 0.6, 0.3], rng=0)
    elif case == "one outcome":
        result = calibrant.assess(np.ones(30, int), np.linspace(0.5, 0.9, 30), rng=0)
    else:
        result = Sketch("binary").update([0, 1, 1, 0], [0.2, 0.7, 0.6, 0.3]).assess(rng=0)
    assert result.recalibration is None
    assert result.advice == text.gain_sentence(result) == ""
    assert "h-recalibration" not in result.html()

"""What an assessment says to do."""

import json
from dataclasses import replace

import numpy as np
import pytest

import calibrant

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


@pytest.fixture(scope="module")
def fine():
    return assessed(1000, 1.0, seed=3)


def flat(wrapped):
    """Return a printed result or a page on one line."""
    return " ".join(str(wrapped).split())


@pytest.mark.full
def test_the_gain_is_the_one_that_a_comparison_finds(sharp):
    rng = np.random.default_rng(0)
    odds = rng.normal(0, 1.2, 2000)
    outcome, score = rng.random(2000) < 1 / (1 + np.exp(-odds)), 1 / (1 + np.exp(-2.4 * odds))
    compared = calibrant.compare_calibrators(score, outcome, methods=["auto", "temperature"], rng=0)
    # The intervals of several methods are simultaneous: that of one method is the plain one.
    own = calibrant.compare_calibrators(score, outcome, methods=["auto"], rng=0)["auto"].log_loss.difference
    assert (sharp.recalibration.gain.value, sharp.recalibration.gain.low) == pytest.approx(
        (-own.value, -own.high)
    )
    assert sharp.recalibration.by_temperature == pytest.approx(
        -compared["temperature"].log_loss.difference.value
    )


def test_scores_that_are_fine_are_left_alone(fine):
    assert not fine.recalibration.helps
    assert fine.advice in (
        "No recalibration method improves the held-out log loss.",
        "No recalibration method improves the held-out log loss significantly.",
    )
    assert fine.recalibration.curve is None


def test_no_map_is_praised_where_calibration_is_not_rejected(sharp, fine):
    lucky = replace(fine, recalibration=sharp.recalibration)
    assert lucky.advice == "No recalibration method improves the held-out log loss significantly."


@pytest.mark.full
def test_many_classes_are_cured_together():
    rng = np.random.default_rng(5)
    score = rng.dirichlet([1, 1, 1], 1500)
    label = (rng.random((1500, 1)) > (0.5 * score + 1 / 6).cumsum(axis=1)).sum(axis=1)
    whole = calibrant.assess(label, score, rng=0)
    assert whole.advice.startswith("Recalibrating would remove ")
    each = calibrant.assess(label, score, notion="classwise", rng=0)
    assert each.recalibration.gain == whole.recalibration.gain
    assert each.recalibration.after.value < whole.recalibration.after.value
    assert each.recalibration.curve.notion == "binary"


def test_it_is_written_and_read(sharp, fine):
    for result in (sharp, fine):
        again = calibrant.Assessment.from_json(result.to_json())
        assert again.advice == result.advice
        assert again.to_json() == result.to_json()
        assert again.html() == result.html()
    values = json.loads(sharp.to_json())
    assert values["advice"] == sharp.advice


def test_the_page_shows_before_and_after(sharp, fine):
    page = flat(sharp.html()).replace("<wbr/>", "")
    assert sharp.advice in page
    assert 'id="recalibration-before"' in page
    assert 'id="recalibration-after"' in page
    assert (
        "Cross-validated in 5 folds of 2,000 rows, recalibration changes the log loss of a row by −0." in page
    )
    assert "calibrant.Calibrator().fit(y_prob, y_true)" in page
    assert 'id="recalibration-after"' not in fine.html()
    assert fine.advice in flat(fine.html())
    assert sharp.verdict.action in flat(sharp._repr_html_())


@pytest.mark.full
def test_clusters_widen_the_gain():
    rng = np.random.default_rng(7)
    odds = np.repeat(rng.normal(0, 1.2, 300), 5)
    outcome = np.repeat(rng.random(300), 5) < 1 / (1 + np.exp(-odds))
    score, cluster = 1 / (1 + np.exp(-2.4 * odds)), np.repeat(np.arange(300), 5)
    apart, together = (
        calibrant.assess(outcome, score, rng=0, cluster=c).recalibration.gain for c in (None, cluster)
    )
    assert together.high - together.low > 1.6 * (apart.high - apart.low)
    # Maps that knew nothing of the clusters followed their noise, and gained 0.02 of the 0.10 that there is.
    assert 0.05 < together.value < 0.11


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"before": 2}, "assessment.recalibration.before must lie in"),
        ({"temperature": -1}, "assessment.recalibration.temperature must be above 0"),
        ({"rows": 0}, "assessment.recalibration.rows must be at least 1"),
        ({"gain": {"value": 1, "low": "x", "high": 2}}, "assessment.recalibration.gain.low must be a number"),
        ({"more": 1}, "assessment.recalibration.more must be a known field"),
    ],
)
def test_a_stored_cure_is_checked(sharp, change, message):
    values = sharp.to_dict()
    values["recalibration"] |= change
    with pytest.raises(calibrant.InputError, match=message):
        calibrant.Assessment.from_dict(values)

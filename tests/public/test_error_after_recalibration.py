"""The error after recalibration that `assess` claims is the one that the calibrator leaves on new rows."""

import re

import numpy as np
import pytest

import calibrant

GRID = (np.arange(2000) + 0.5) / 2000


def expit(x):
    return 1 / (1 + np.exp(-x))


# Probability at uniform scores: too confident, and bent.
TRUTHS = {
    "too confident": lambda p: expit(0.3 + 0.4 * np.log(p / (1 - p))),
    "bent": lambda p: expit(0.5 + 0.4 * np.log(p) - 1.6 * np.log1p(-p)),
}


def drawn(truth, n, seed):
    rng = np.random.default_rng(seed)
    score = rng.random(n)
    return score, (rng.random(n) < TRUTHS[truth](score)).astype(int)


def assessed(label, score, **options):
    return calibrant.assess(label, score, n_resamples=99, **options)


@pytest.mark.full
def test_the_claim_is_the_error_on_new_rows():
    ratios, inside = [], []
    for seed in range(5):
        for truth, chance in TRUTHS.items():
            score, label = drawn(truth, 600, seed)
            after = assessed(label, score).recalibration.after
            true = np.mean(abs(chance(GRID) - calibrant.Calibrator().fit(score, label).predict_proba(GRID)))
            ratios.append(true / after.value)
            inside.append(after.low <= true <= after.high)
    # The error of the pooled scores of cross-fitted maps is half of the true one.
    assert 0.7 < np.median(ratios) < 1.4
    assert np.mean(inside) >= 0.8


@pytest.mark.full
def test_the_claim_falls_as_rows_are_added():
    values = [assessed(*drawn("bent", n, 0)[::-1]).recalibration.after.value for n in (300, 4800)]
    assert 2 < values[0] / values[1] < 8


def test_the_action_gives_the_claim_with_its_interval():
    score, label = drawn("too confident", 1000, 1)
    found = assessed(label, score)
    after = found.recalibration.after
    assert after.low < after.value < after.high
    number = r"(\d+\.\d+)"
    said = re.search(rf"to {number} points \({number} to {number}\)", found.verdict.action)
    assert [float(each) for each in said.groups()] == pytest.approx(
        [100 * after.value, 100 * after.low, 100 * after.high], abs=0.06
    )
    assert re.search(r"the tolerance of 2 points \(expected on new rows\)\.", found.verdict.action)
    again = calibrant.Assessment.from_json(found.to_json())
    assert again.recalibration.after == after
    assert again.verdict.action == found.verdict.action


@pytest.mark.full
@pytest.mark.parametrize("notion", ["confidence", "classwise", "top:2"])
def test_the_claim_of_several_classes(notion):
    rng = np.random.default_rng(2)
    logits = rng.normal(0, 1.5, (6000, 4))
    score, chance = (np.exp(a * logits) / np.exp(a * logits).sum(axis=1, keepdims=True) for a in (2.0, 1.0))
    label = (rng.random((6000, 1)) > chance.cumsum(axis=1)[:, :-1]).sum(axis=1)
    rows = slice(0, 1000)
    after = assessed(label[rows], score[rows], notion=notion).recalibration.after
    mapped = calibrant.Calibrator().fit(score[rows], label[rows]).predict_proba(score)
    top = {"confidence": 1, "top:2": 2}.get(notion)
    order = np.argsort(-mapped, axis=1)[:, :top]
    pairs = [tuple(np.take_along_axis(each, order, axis=1).sum(axis=1) for each in (mapped, chance))]
    if top is None:
        pairs = [(mapped[:, k], chance[:, k]) for k in range(4)]
    errors = []
    for p, q in pairs:
        bins = np.array_split(np.argsort(p), 40)
        errors.append(sum(abs((p - q)[each].sum()) for each in bins) / 6000)
    assert after.low / 2 < np.mean(errors) < after.high
    assert after.value == pytest.approx(np.mean(errors), rel=0.8)


@pytest.mark.full
def test_scores_of_two_columns_claim_the_error_of_their_confidence():
    score, label = drawn("too confident", 2000, 3)
    one = assessed(label, score, notion="binary").recalibration.after
    two = assessed(label, np.stack([1 - score, score], axis=1), notion="confidence").recalibration.after
    # Gaps at p and at 1 - p cancel in part.
    assert 0.1 * one.value < two.value < one.value


@pytest.mark.full
def test_counts_are_repeated_rows():
    rng = np.random.default_rng(4)
    score, label = drawn("bent", 150, 4)
    score, count = score.round(2), rng.integers(1, 4, 150)
    counted = assessed(label, score, counts=count).recalibration.after
    repeated = assessed(np.repeat(label, count), np.repeat(score, count)).recalibration.after
    assert counted.value == pytest.approx(repeated.value, rel=1e-6)
    assert (counted.low, counted.high) == pytest.approx((repeated.low, repeated.high), rel=1e-6)


@pytest.mark.full
def test_copies_in_a_cluster_tell_no_more_than_one_row():
    score, label = drawn("too confident", 500, 5)
    alone = assessed(label, score).recalibration.after
    copies = [np.repeat(each, 4) for each in (label, score, np.arange(500))]
    together = assessed(*copies[:2], cluster=copies[2]).recalibration.after
    assert together.value == pytest.approx(alone.value, rel=0.25)


def test_rare_outcomes_have_an_expected_ratio():
    rng = np.random.default_rng(6)
    score = rng.beta(0.5, 20, 4000)
    label = (rng.random(4000) < np.minimum(2 * score, 1)).astype(int)
    found = assessed(label, score)
    # A map that was fitted to some 190 outcomes gets their number right to about 7 %.
    assert 1.02 < found.recalibration.ratio < 1.12
    assert re.search(
        r"on average from \S+ times too low to 1\.\d+ times too low or high", found.verdict.action
    )

"""Selective decisions: the curve against loops, whatever the order, weights, clusters and sums."""

import json
import math

import matplotlib
import numpy as np
import pytest
from tests.oracles import selective as oracle

import calibrant
from calibrant import InputError

matplotlib.use("Agg")
import matplotlib.pyplot as plt

ARRAYS = ("confidence", "coverage", "accuracy", "low", "high", "band_low", "band_high")


def pairs(n=400, seed=0, values=None):
    """Return correctness and confidence of answers."""
    rng = np.random.default_rng(seed)
    sure = rng.uniform(0.4, 1, n) if values is None else rng.choice(values, n)
    return (rng.random(n) < sure**1.5).astype(int), sure


def kept(right, sure, **options):
    return calibrant.risk_coverage(right, sure, notion="correctness", rng=0, **options)


def same(one, other, **tolerance):
    for key in ARRAYS:
        np.testing.assert_allclose(getattr(one, key), getattr(other, key), **tolerance)
    for key in ("aurc", "e_aurc"):
        a, b = (list(vars(getattr(found, key)).values()) for found in (one, other))
        np.testing.assert_allclose(a, b, **tolerance)


def test_every_threshold_is_that_of_loops():
    for values in (None, np.array([0.5, 0.6, 0.75, 0.9, 1.0])):
        right, sure = pairs(120, values=values)
        heavy = np.random.default_rng(1).gamma(1, size=120) + 0.1
        for weight in (None, heavy):
            found = kept(right, sure, sample_weight=weight)
            points = oracle.curve(sure, right, np.ones(120) if weight is None else weight)
            np.testing.assert_allclose(
                np.array([found.confidence, found.coverage, found.accuracy]).T, points, rtol=1e-9
            )
            np.testing.assert_allclose(found.risk, 1 - found.accuracy)


def test_the_area_averages_over_every_order_of_tied_rows():
    sure, right = [0.9, 0.9, 0.9, 0.7, 0.6, 0.6, 0.5], [1, 0, 1, 1, 0, 1, 0]
    found = kept(right, sure)
    assert found.aurc.value == pytest.approx(oracle.area(sure, right), abs=1e-12)
    best = oracle.area([1 if r else 0 for r in right], right)
    assert found.e_aurc.value == pytest.approx(found.aurc.value - best, abs=1e-12)
    # In the best order there is nothing above it, and in the worst there is most.
    assert kept(right, right).e_aurc.value == pytest.approx(0, abs=1e-12)
    assert kept(right, 1 - np.array(right)).e_aurc.value > found.e_aurc.value


def test_the_area_is_the_usual_one_without_ties():
    right, sure = pairs(300)
    order = np.argsort(-sure)
    risk = np.cumsum(1 - right[order]) / np.arange(1, 301)
    found = kept(right, sure).aurc
    assert found.value == pytest.approx(risk.mean(), rel=1e-12)
    assert found.low < found.value < found.high


def test_neither_the_order_of_rows_nor_counting_them_changes_anything():
    right, sure = pairs(200, values=np.linspace(0.5, 1, 30))
    order = np.random.default_rng(3).permutation(200)
    found = kept(right, sure)
    same(kept(right[order], sure[order]), found, rtol=1e-9)
    counts = np.random.default_rng(4).integers(1, 4, 200)
    counted = kept(right, sure, counts=counts)
    same(counted, kept(np.repeat(right, counts), np.repeat(sure, counts)), rtol=1e-8, atol=1e-10)
    heavy = np.random.default_rng(5).gamma(1, size=200) + 0.1
    weighed = kept(right, sure, sample_weight=heavy)
    same(weighed, kept(right, sure, sample_weight=1e6 * heavy), rtol=1e-8)
    assert weighed.n == pytest.approx(heavy.sum() ** 2 / (heavy**2).sum())
    same(kept(right, sure, cluster=np.arange(200)), found, rtol=0)


def test_clusters_of_copies_are_as_good_as_one_of_each():
    right, sure = pairs(100)
    once, copies = kept(right, sure), np.repeat(np.arange(100), 4)
    four = kept(right[copies], sure[copies], cluster=copies)
    plain = kept(right[copies], sure[copies])
    assert four.clusters == 100
    middle = slice(20, 100)
    np.testing.assert_allclose(four.accuracy, once.accuracy)
    wide, own, narrow = ((found.high - found.low)[middle].mean() for found in (four, once, plain))
    assert wide == pytest.approx(own, rel=0.08)
    assert narrow < 0.6 * wide
    np.testing.assert_allclose(four.aurc.high - four.aurc.low, once.aurc.high - once.aurc.low, rtol=0.15)


def test_the_band_holds_the_intervals_which_hold_the_curve():
    for options in ({}, {"level": 0.8}, {"cluster": np.arange(400) // 5}):
        right, sure = pairs()
        found = kept(right, sure, **options)
        assert np.all(found.band_low <= found.low)
        assert np.all(found.low <= found.accuracy)
        assert np.all(found.accuracy <= found.high)
        assert np.all(found.high <= found.band_high)
        assert found.aurc.low <= found.aurc.value <= found.aurc.high
    assert np.mean(found.band_high - found.band_low) > 1.1 * np.mean(found.high - found.low)
    assert kept(*pairs(), level=0.5).high[200] < kept(*pairs(), level=0.99).high[200]


def test_rows_that_are_all_right_or_all_wrong():
    for answer in (0, 1):
        found = kept([answer] * 30, np.linspace(0.5, 1, 30), labels=[0, 1])
        assert np.all(found.accuracy == answer)
        # Clopper and Pearson's interval of 30 rows that are all the same.
        end = 0.025 ** (1 / 30)
        assert found.accuracy_at(1)[:3] == pytest.approx((1, end, 1) if answer else (0, 0, 1 - end), abs=1e-9)
        assert found.aurc.value == pytest.approx(1 - answer)
        assert (found.e_aurc.value, found.e_aurc.low) == (0, 0)
        assert found.aurc.low <= found.aurc.value <= found.aurc.high
    one = kept([1], [0.7], labels=[0, 1])
    assert one.coverage.tolist() == [1]
    assert one.accuracy_at(1)[:3] == pytest.approx((1, 0.025, 1))


def test_a_share_is_kept_by_the_threshold_that_keeps_at_least_as_much():
    right = [1, 1, 1, 0, 1, 0, 0, 1]
    sure = [0.9, 0.9, 0.8, 0.8, 0.7, 0.7, 0.6, 0.6]
    found = kept(right, sure)
    for share, kept_share, accuracy, threshold in (
        (0.01, 0.25, 1.0, 0.9),
        (0.25, 0.25, 1.0, 0.9),
        (0.26, 0.5, 0.75, 0.8),
        (0.75, 0.75, 4 / 6, 0.7),
        (1, 1.0, 5 / 8, 0.6),
    ):
        at = found.accuracy_at(share)
        assert (at.coverage, at.value, at.confidence) == pytest.approx((kept_share, accuracy, threshold))
        assert at.low < at.value <= at.high
    for least, share, accuracy, threshold in (
        (1.0, 0.25, 1.0, 0.9),
        (0.7, 0.5, 0.75, 0.8),
        (0.75, 0.5, 0.75, 0.8),
        (0.5, 1.0, 5 / 8, 0.6),
        (0.0, 1.0, 5 / 8, 0.6),
    ):
        at = found.coverage_at(least)
        assert (at.value, at.accuracy, at.confidence) == pytest.approx((share, accuracy, threshold))
        assert at.low <= at.value <= at.high
    none = kept([0, 1, 1], [0.9, 0.8, 0.7]).coverage_at(0.9)
    assert none.value == none.low == 0
    assert none.high > 0
    assert math.isnan(none.accuracy)
    assert math.isnan(none.confidence)


@pytest.mark.parametrize("wrong", [0, -0.1, 1.1, math.nan, "half", None, True])
def test_shares_that_cannot_be_are_refused(wrong):
    found = kept(*pairs(20))
    with pytest.raises(InputError, match="coverage must be above 0 and at most 1"):
        found.accuracy_at(wrong)
    if wrong != 0 or isinstance(wrong, bool):
        with pytest.raises(InputError, match=r"accuracy must lie in \[0, 1\]"):
            found.coverage_at(wrong)


def test_how_sure_a_row_is_depends_on_what_is_given():
    rng = np.random.default_rng(6)
    score = rng.random(50)
    label = (rng.random(50) < score).astype(int)
    found = calibrant.risk_coverage(label, score, rng=0)
    by_hand = kept(((score > 0.5) == label).astype(int), np.maximum(score, 1 - score))
    assert found.notion == "confidence"
    np.testing.assert_allclose(found.accuracy, by_hand.accuracy)
    np.testing.assert_allclose(found.confidence, by_hand.confidence)
    table = rng.dirichlet([1, 1, 1], 50)
    three = rng.integers(0, 3, 50)
    found = calibrant.risk_coverage(three, table, rng=0)
    by_hand = kept((table.argmax(axis=1) == three).astype(int), table.max(axis=1), labels=[0, 1])
    np.testing.assert_allclose(found.accuracy, by_hand.accuracy)
    assert calibrant.risk_coverage(three, table, notion="top:2", rng=0).accuracy[-1] > found.accuracy[-1]
    for notion in ("binary", "classwise"):
        with pytest.raises(InputError, match="be a type of confidence calibration: confidence, correctness"):
            calibrant.risk_coverage(label, score, notion=notion)
    with pytest.raises(InputError, match="one score at a time"):
        calibrant.risk_coverage(three, table, notion="canonical")


def test_a_sketch_keeps_whole_cells():
    right, sure = pairs(3000)
    sums = calibrant.Sketch("correctness").update(right, sure).risk_coverage(rng=0)
    found = kept(right, sure)
    assert sums.aurc.value == pytest.approx(found.aurc.value, rel=1e-3)
    assert sums.accuracy_at(0.5)[:4] == pytest.approx(found.accuracy_at(0.5)[:4], abs=0.01)
    values = np.linspace(0.5, 1, 6)
    right, sure = pairs(500, values=values)
    same(
        calibrant.Sketch("correctness").update(right, sure).risk_coverage(rng=0), kept(right, sure), rtol=1e-6
    )
    with pytest.raises(InputError, match="be a type of confidence calibration"):
        calibrant.Sketch("binary").update(right, sure).risk_coverage()


def test_texts_and_plain_numbers():
    right, sure = pairs(200)
    found = kept(right, sure, cluster=np.arange(200) // 2)
    assert repr(found) == f"RiskCoverage(correctness, n=200, AURC {found.aurc})"
    text = str(found)
    at = found.accuracy_at(0.5)
    assert text.startswith(f"AURC    {found.aurc.value:.3f} (95 % interval ")
    row = f"{100 * at.coverage:.0f} % {100 * at.value:.0f} % {100 * at.low:.0f} % to {100 * at.high:.0f} % "
    assert row in " ".join(text.split())
    assert "200 rows in 100 clusters" in text
    values = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert values["aurc"] == {"value": found.aurc.value, "low": found.aurc.low, "high": found.aurc.high}
    assert values["accuracy"] == found.accuracy.tolist()
    assert (values["seed"], values["clusters"]) == (0, 100)
    again = kept(right, sure, cluster=np.arange(200) // 2)
    same(found, again, rtol=0)


def test_the_picture_shows_the_curve_from_nothing_to_all_rows():
    right, sure = pairs(100, values=np.array([0.5, 0.7, 0.9]))
    found = kept(right, sure)
    ax = found.plot()
    line = ax.lines[0]
    np.testing.assert_allclose(line.get_xdata(), [0, *found.coverage])
    np.testing.assert_allclose(line.get_ydata(), [found.accuracy[0], *found.accuracy])
    assert ax.get_ylabel() == "share right of selected rows"
    labels = ax.get_legend_handles_labels()[1]
    assert labels == ["95 % band", "95 % interval", "all rows"]
    low = min(found.band_low[0], found.band_low[-1])
    assert min(path.vertices[:, 1].min() for path in ax.collections[0].get_paths()) == pytest.approx(low)
    plt.close("all")

"""Maps compared on rows that they have not seen."""

import numpy as np
import pytest

import calibrant
from calibrant import Calibrator, inputs, parallel
from calibrant.inference.map_comparison import mean_of_rows
from calibrant.maps.folds import cross_fitted, folds_of


def sharpened(n, seed=0):
    """Overconfident scores and their outcomes."""
    rng = np.random.default_rng(seed)
    odds = rng.normal(0, 1, n)
    outcome = rng.random(n) < 1 / (1 + np.exp(-odds))
    return outcome, 1 / (1 + np.exp(-2.5 * odds))


@pytest.mark.parametrize("threads", ["1", "3"])
def test_rows_are_mapped_by_what_others_taught(threads, monkeypatch):
    monkeypatch.setenv(parallel.THREADS, threads)
    outcome, score = sharpened(60)
    data = inputs.predictions(outcome, score)
    fold = folds_of(data, 3, np.random.default_rng(0))
    mapped = cross_fitted(data, "logistic", fold).score
    for k in range(3):
        own = Calibrator("logistic").fit(score[fold != k], outcome[fold != k])
        np.testing.assert_array_equal(mapped[fold == k], own.predict_proba(score[fold == k]))


def test_folds_are_even_and_hold_each_class():
    outcome, score = sharpened(103)
    fold = folds_of(inputs.predictions(outcome, score), 5, np.random.default_rng(0))
    assert np.ptp(np.bincount(fold)) <= 1
    assert np.ptp(np.bincount(fold[outcome])) <= 1
    assert folds_of(inputs.predictions([0, 1, 1], [0.1, 0.4, 0.9]), 5, np.random.default_rng(0)).max() == 2


def test_clusters_stay_together_and_widen_the_interval():
    outcome, score = sharpened(300)
    cluster = np.repeat(np.arange(300), 4)
    rows = [np.repeat(each, 4) for each in (outcome, score)]
    data = inputs.in_clusters(inputs.predictions(*rows), cluster)
    fold = folds_of(data, 5, np.random.default_rng(0))
    assert all(len(set(fold[cluster == k])) == 1 for k in range(300))
    options = {"methods": ["temperature"], "rng": 0}
    once = calibrant.compare_calibrators(score, outcome, **options)["temperature"].log_loss
    copied = calibrant.compare_calibrators(*rows[::-1], cluster=cluster, **options)["temperature"].log_loss
    blind = calibrant.compare_calibrators(*rows[::-1], **options)["temperature"].log_loss
    reach = [each.difference.high - each.difference.low for each in (once, copied, blind)]
    assert reach[1] == pytest.approx(reach[0], rel=0.1)
    assert reach[2] < 0.6 * reach[0]


def test_the_interval_of_a_mean_is_that_of_the_text_book():
    values = np.random.default_rng(3).normal(2, 1, 40)
    data = inputs.predictions(np.arange(40) % 2, np.full(40, 0.5))
    reach = 2.0226909 * values.std(ddof=1) / np.sqrt(40)
    plain = mean_of_rows(data, values, 0.95)
    assert (plain.low, plain.high) == pytest.approx((values.mean() - reach, values.mean() + reach))
    # Counts are repetition; importance weights have no scale.
    counts = np.arange(40) % 3 + 1
    weighed = inputs.predictions(np.arange(40) % 2, np.full(40, 0.5), counts=counts)
    repeated = inputs.predictions(np.repeat(np.arange(40) % 2, counts), np.full(counts.sum(), 0.5))
    again = mean_of_rows(repeated, np.repeat(values, counts), 0.9)
    assert vars(mean_of_rows(weighed, values, 0.9)) == pytest.approx(vars(again))
    even = inputs.predictions(np.arange(40) % 2, np.full(40, 0.5), sample_weight=np.full(40, 7.5))
    assert vars(mean_of_rows(even, values, 0.95)) == pytest.approx(vars(plain))


def test_the_interval_of_the_gain_covers():
    inside = []
    for seed in range(60):
        outcome, score = sharpened(400, seed)
        data = inputs.predictions(outcome, score)
        fold = folds_of(data, 5, np.random.default_rng(0))
        mapped = cross_fitted(data, "temperature", fold).score
        losses = [-np.log(np.where(outcome, p, 1 - p)) for p in (mapped, score)]
        gain = mean_of_rows(data, losses[0] - losses[1], 0.9)
        # The truth by the chances that the outcomes were drawn with.
        odds = np.log(score / (1 - score)) / 2.5
        chance = 1 / (1 + np.exp(-odds))
        true = np.mean(chance * np.log(score / mapped) + (1 - chance) * np.log((1 - score) / (1 - mapped)))
        inside.append(gain.low <= true <= gain.high)
    assert np.mean(inside) > 0.8


def test_the_best_group_is_that_of_paired_t_tests():
    from scipy.stats import ttest_rel

    outcome, score = sharpened(600, seed=2)
    methods = ["temperature", "logistic", "isotonic-safe", "quadratic", "sigmoid"]
    result = calibrant.compare_calibrators(score, outcome, methods=methods, rng=5)
    data = inputs.predictions(outcome, score)
    fold = folds_of(data, 5, np.random.default_rng(5))
    losses = {}
    for name in (*methods, "identity"):
        p = cross_fitted(data, name, fold).score
        losses[name] = -np.log(np.where(outcome, p, 1 - p))
    lowest = min(losses, key=lambda name: losses[name].mean())
    assert result.table[0].method == lowest
    group = {lowest}
    for name, loss in losses.items():
        if name != lowest and ttest_rel(loss, losses[lowest]).pvalue >= 0.05 / 5:
            group.add(name)
    assert set(result.best_group) == group
    assert "identity" not in group
    assert len(group) > 1
    assert result.best is None

"""Estimates with interval, null and test, and comparisons."""

import json
import pickle
from unittest import mock

import numpy as np
import pytest
from scipy.fft import dct

import calibrant
from calibrant.estimators import parse
from calibrant.experiment.families import EXACT
from calibrant.inference import classes, interval, joint_labels, null
from calibrant.inference import comparison as paired
from calibrant.posterior.variance_time import cumulative_sums, pilot_variance, whiten
from calibrant.score_data import Residuals, Sample
from dirichlet import Dirichlet
from weighing import weighted_sample


def drawn(name="flat", factor=1.0, n=400, seed=0):
    score, outcome = EXACT[name].shrunk(factor).draw(np.random.default_rng(seed), n)
    return outcome.astype(int), score


def matrix(n=300, classes=4, factor=0.4, seed=0):
    scores, labels = Dirichlet(classes, factor).draw(np.random.default_rng(seed), n)
    return labels, scores


# What an estimate holds


@pytest.mark.parametrize("notion", ["binary", "confidence", "classwise"])
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_the_value_is_that_of_ece_and_lies_in_its_interval(notion, norm):
    y, p = drawn() if notion == "binary" else matrix()
    found = calibrant.estimate(y, p, notion=notion, norm=norm, rng=0)
    assert float(found) == calibrant.ece(y, p, notion=notion, norm=norm)
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert found.over + found.under == pytest.approx(found.value)
    assert 0 < found.p_value <= 1
    assert found.null.quantiles[0.5] <= found.null.quantiles[0.95]
    assert (found.notion, found.norm, found.level) == (notion, norm, 0.95)


def test_the_same_seed_gives_the_same_estimate_and_the_seed_is_on_record():
    y, p = drawn()
    found = calibrant.estimate(y, p)
    assert calibrant.estimate(y, p, rng=found.seed) == found
    assert calibrant.estimate(y, p, rng=3) == calibrant.estimate(y, p, rng=3)
    generator = np.random.default_rng(5)
    assert calibrant.estimate(y, p, rng=generator).seed != calibrant.estimate(y, p, rng=generator).seed


def test_order_repetition_and_sketches_change_nothing():
    y, p = drawn(n=300)
    expected = calibrant.estimate(y, p, rng=0)
    rows = np.random.default_rng(1).permutation(300)
    shuffled = calibrant.estimate(y[rows], p[rows], rng=0)
    count = np.random.default_rng(2).integers(1, 4, 300)
    weighed = calibrant.estimate(y, p, rng=0, counts=count)
    repeated = calibrant.estimate(np.repeat(y, count), np.repeat(p, count), rng=0)
    sketch = calibrant.Sketch(notion="binary").update(y[:100], p[:100]).update(y[100:], p[100:])
    for one, other in ((shuffled, expected), (weighed, repeated), (sketch.estimate(rng=0), expected)):
        for field in ("value", "low", "high", "p_value", "over", "n"):
            assert getattr(one, field) == pytest.approx(getattr(other, field), rel=1e-6), field


def test_classes_have_estimates_of_their_own():
    y, p = matrix()
    names = np.array(["ant", "bee", "cat", "dog"])
    found = calibrant.estimate(names[y], p, notion="classwise", labels=names, rng=0)
    assert list(found.by_class) == list(names)
    assert np.mean([one.value for one in found.by_class.values()]) == pytest.approx(found.value)
    for name, one in found.by_class.items():
        assert one.label == name
        assert one.low <= one.value <= one.high
    assert not found.conservative
    sketch = calibrant.Sketch(notion="classwise", labels=names).update(names[y], p).estimate(rng=0)
    assert sketch.conservative
    assert sketch.value == pytest.approx(found.value)
    assert sketch.p_value >= found.p_value
    assert sketch.high - sketch.low > found.high - found.low


def test_it_prints_its_parts_and_survives_json_and_pickle():
    y, p = matrix()
    found = calibrant.estimate(y, p, notion="classwise", rng=0)
    text = str(found)
    assert text.startswith("calibration error ")
    for part in (
        "(95 % interval ",
        "by scores too",
        "p <= 0.001 (H0: the model is calibrated)",
        "expected if calibrated  0.",
        "notion                  classwise",
        "300 rows",
    ):
        assert part in text
    values = json.loads(found.to_json())
    assert values["value"] == found.value
    assert calibrant.Estimate.from_json(found.to_json()) == found
    assert pickle.loads(pickle.dumps(found)) == found


# Other estimators


@pytest.mark.parametrize(
    "spec", ["l:15", "a:10", "ac", "d", "debiased", "sweep", "isotonic", "beta", "variational"]
)
def test_every_estimator_of_the_error_has_an_interval_that_holds_it(spec):
    y, p = drawn(n=400)
    found = calibrant.estimate(y, p, estimator=spec, rng=0)
    assert found.value == calibrant.ece(y, p, estimator=spec)
    assert found.low <= found.value <= found.high
    # A cross-fitted lower bound stays one at this size.
    assert found.low < EXACT["flat"].truth < found.high or spec == "variational"
    assert found.estimator == str(parse(spec))
    # Every estimator looks at the same data: the test is one.
    assert found.p_value == calibrant.estimate(y, p, rng=0).p_value


def test_the_bias_of_an_estimator_is_accounted_for():
    y, p = drawn("flat", 0.0, 300, seed=4)
    found = calibrant.estimate(y, p, estimator="l:30", rng=0)
    assert found.value > 0.05  # thirty bins see noise
    assert found.low == 0
    assert abs(found.null.mean - found.value) < 0.03


def test_a_function_is_an_estimator():
    def bias(scores, outcomes, weights):
        return abs(np.average(outcomes - scores, weights=weights))

    y, p = drawn(n=100)
    assert calibrant.estimate(y, p, estimator=bias, rng=0).estimator == "bias"


def test_the_debiased_square_has_the_interval_of_its_paper():
    y, p = drawn(n=500)
    found = calibrant.estimate(y, p, estimator="debiased", norm="l2", rng=0)
    low, high = parse("debiased").fit(Sample(p, y.astype(bool))).interval(0.95)
    assert (found.low, found.high) == pytest.approx((float(low), float(high)))


# The null and the test


def test_cells_of_equal_variance_are_those_of_the_posterior():
    y, p = drawn(n=400)
    profile = Residuals.of(Sample(p.round(2), y.astype(bool)))
    one = profile.coarser(10**6)
    edges = null.Edges.of(one, 64)
    found = edges.sums(cumulative_sums(one.residual[None]))[0]
    expected = whiten(profile.flat, pilot_variance(profile.flat), 64)[0][0]
    np.testing.assert_allclose(dct(found / edges.unit, norm="ortho"), expected, atol=1e-9)


def test_coefficients_of_a_class_are_those_of_its_rows():
    rng = np.random.default_rng(0)
    score = rng.random(200).round(1)
    outcome = rng.random((3, 200)) < score
    for weight in (None, rng.exponential(size=200)):
        sums = joint_labels._ClassGroups.of(score, weight, 32)
        group = sums.group[sums.cell]
        count = np.stack([np.bincount(group, sums.weight * y, minlength=sums.size) for y in outcome])
        found = sums.coefficients(count)
        for y, row in zip(outcome, found, strict=True):
            flat = Residuals.of(weighted_sample(score, y, weight)).flat
            np.testing.assert_allclose(row, whiten(flat, pilot_variance(flat), 32)[0][0], atol=1e-7)


@pytest.mark.parametrize("n", [50, 500, 3000])
def test_the_null_is_what_calibrated_models_show(n):
    rng = np.random.default_rng(0)
    score = rng.beta(0.5, 0.5, n)
    outcome = rng.random(n) < score
    # Among the 250 sets of one null the 95th percentile is known to about an eighth.
    found = [calibrant.estimate(outcome, score, rng=seed).null for seed in range(6)]
    shown = calibrant.Bayes().fit(Sample(score, rng.random((1000, n)) < score)).error()
    assert np.mean([one.mean for one in found]) == pytest.approx(shown.mean(), rel=0.12, abs=2e-4)
    last = np.mean([one.quantiles[0.95] for one in found])
    assert last == pytest.approx(np.quantile(shown, 0.95), rel=0.15)


@pytest.mark.no_cover
@pytest.mark.parametrize("kind", ["uniform", "saturated", "discrete"])
def test_the_size_of_the_test_is_what_it_says(kind):
    rng = np.random.default_rng(1)
    found = []
    for _ in range(250):
        score = {"uniform": rng.random(80), "saturated": rng.beta(1.1, 0.1, 80)}.get(
            kind, rng.integers(0, 6, 80) / 5
        )
        sample = Sample(score, rng.random(80) < score)
        found.append(null.lazy_test(Residuals.of(sample), "l1", rng, 99)().p_value)
    assert np.mean(np.array(found) <= 0.05) < 0.09


# Intervals


def coverage(draw, truth, repetitions=40):
    """How often the interval of drawn scores and outcomes holds the truth, whatever is drawn for it.

    A smoke version of `benchmarks/coverage.py`.
    """
    rng = np.random.default_rng(7)
    held = []
    for key in range(repetitions):
        score, outcome = draw(rng)
        posterior = calibrant.Bayes().fit(Sample(score, outcome)).posterior
        value = float(null.error(posterior.terms("l1"), "l1")[0])
        with mock.patch.object(interval, "SEED", key):
            low, high = interval.interval(posterior, score.size, value, norm="l1", level=0.95)
        held.append(low <= truth <= high)
    return np.mean(held)


@pytest.mark.no_cover
@pytest.mark.parametrize(("name", "factor"), [("flat", 1.0), ("flat", 0.3), ("flat", 0.0), ("wavy", 1.0)])
def test_the_interval_covers(name, factor):
    family = EXACT[name].shrunk(factor)
    assert coverage(lambda rng: family.draw(rng, 400), family.truth) >= 0.89


@pytest.mark.no_cover
@pytest.mark.parametrize("signs", [(-1,), (-1, 1)])
@pytest.mark.parametrize("count", [3, 7])
def test_of_few_distinct_scores_the_interval_covers(count, signs):
    scores = np.arange(1, count + 1) / (count + 1)
    gap = 0.06 * np.resize(signs, count)

    def draw(rng):
        which = rng.integers(0, count, 400)
        return scores[which], rng.random(400) < (scores + gap)[which]

    assert coverage(draw, 0.06) >= 0.89


@pytest.mark.no_cover
def test_of_certain_scores_the_interval_covers():
    def draw(rng):
        score = np.where(rng.random(400) < 0.6, 1.0, rng.random(400))
        return score, rng.random(400) < np.where(score == 1, 0.9, score)

    assert coverage(draw, 0.06) >= 0.89


def shuffled(found, data, **options):
    """The same estimate of the same rows in another order."""
    y, p = data
    rows = np.random.default_rng(1).permutation(len(y))
    return calibrant.estimate(y[rows], p[rows], rng=found.seed, **options)


def few(n=300, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.integers(1, 8, n) / 8
    return (rng.random(n) < np.clip(p + 0.1 * (-1) ** np.rint(8 * p), 0, 1)).astype(int), p


def heavy(n=300, seed=0):
    rng = np.random.default_rng(seed)
    p = np.where(rng.random(n) < 0.6, 1.0, rng.random(n))
    return (rng.random(n) < 0.93 * p).astype(int), p


def local(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return (rng.random(n) < p - 0.3 * (np.abs(p - 0.7) < 0.05)).astype(int), p


DATA = {
    "flat": drawn(n=400),
    "calibrated": drawn("flat", 0.0, 500),
    "wavy": drawn("wavy", n=1200),
    "small": drawn(n=12),
    "few": few(),
    "heavy": heavy(),
    "local": local(),
}
SOME_LEVELS = (0.5, 0.8, 0.9, 0.94, 0.95, 0.99, 0.999)


@pytest.mark.parametrize("norm", ["l1", pytest.param("l2", marks=pytest.mark.full)])
@pytest.mark.parametrize("name", DATA)
def test_intervals_are_nested_in_the_level_and_hold_the_value(name, norm):
    levels = SOME_LEVELS if norm == "l1" else SOME_LEVELS[::3]
    found = [calibrant.estimate(*DATA[name], level=level, norm=norm, rng=0) for level in levels]
    assert len({one.value for one in found}) == 1
    for one in found:
        assert 0 <= one.low <= one.value <= one.high <= 1
        assert one.low < one.high
    assert np.all(np.diff([one.low for one in found]) <= 0)
    assert np.all(np.diff([one.high for one in found]) >= 0)
    assert found[-1].high - found[-1].low > found[0].high - found[0].low


def test_intervals_of_classes_and_of_other_estimators_are_nested_in_the_level():
    y, p = matrix(n=200, classes=3)
    asked = [(y, p, {"notion": "classwise"}), (*drawn(n=200), {"estimator": "uniform:10"})]
    for y, p, options in asked:
        narrow, middle, wide = (
            calibrant.estimate(y, p, level=level, rng=0, **options) for level in (0.6, 0.9, 0.99)
        )
        assert wide.low <= middle.low <= narrow.low <= narrow.value
        assert narrow.value <= narrow.high <= middle.high <= wide.high
        for label, one in (middle.by_class or {}).items():
            assert wide.by_class[label].low <= one.low <= one.value <= one.high <= wide.by_class[label].high


@pytest.mark.parametrize("name", DATA)
def test_the_order_of_rows_changes_nothing(name):
    found = calibrant.estimate(*DATA[name], rng=0)
    other = shuffled(found, DATA[name])
    for field in ("value", "low", "high", "p_value"):
        assert getattr(other, field) == pytest.approx(getattr(found, field), rel=1e-6, abs=1e-9), field


@pytest.mark.parametrize("spec", ["uniform:10", "debiased", "sweep", "d:silverman", "isotonic"])
@pytest.mark.parametrize("name", ["flat", "few"])
def test_the_order_of_rows_changes_nothing_by_any_estimator(name, spec):
    found = calibrant.estimate(*DATA[name], estimator=spec, rng=0)
    other = shuffled(found, DATA[name], estimator=spec)
    for field in ("value", "low", "high", "p_value"):
        assert getattr(other, field) == pytest.approx(getattr(found, field), rel=1e-6, abs=1e-9), field
    assert other.null.mean == pytest.approx(found.null.mean, rel=1e-6)


def test_the_order_of_rows_changes_nothing_for_classes():
    data = matrix(n=200, classes=3)
    found = calibrant.estimate(*data, notion="classwise", rng=0)
    other = shuffled(found, data, notion="classwise")
    for field in ("value", "low", "high", "p_value"):
        assert getattr(other, field) == pytest.approx(getattr(found, field), rel=1e-6, abs=1e-9), field


@pytest.mark.parametrize("classes", [3, pytest.param(21, marks=pytest.mark.full)])
def test_the_order_of_classes_changes_nothing_for_any_of_them(classes):
    y, p = matrix(n=200, classes=classes)
    names = np.array([f"c{k:02}" for k in range(classes)])
    order = np.random.default_rng(3).permutation(classes)
    one, other = (
        calibrant.estimate(names[y], p[:, some], notion="classwise", labels=names[some], rng=0)
        for some in (np.arange(classes), order)
    )
    assert other.value == pytest.approx(one.value, rel=1e-9)
    for label in names:
        for field in ("value", "low", "high", "p_value"):
            mine, theirs = (getattr(each.by_class[label], field) for each in (one, other))
            assert mine == pytest.approx(theirs, rel=1e-6, abs=1e-9), (label, field)


@pytest.mark.parametrize("options", [{}, {"cluster": np.arange(200) % 40}, {"estimator": "uniform:10"}])
def test_the_names_of_classes_change_nothing(options):
    y, p = matrix(n=200, classes=3)
    results = [
        calibrant.estimate(np.array(names)[y], p, notion="classwise", labels=names, **options)
        for names in (["cat", "dog", "eel"], ["z", "m", "a"])
    ]
    one, other = ([each, *each.by_class.values()] for each in results)
    for mine, theirs in zip(one, other, strict=True):
        for field in ("value", "low", "high", "p_value"):
            assert getattr(mine, field) == pytest.approx(getattr(theirs, field), rel=1e-9), field


def test_the_seed_is_that_of_the_test_and_does_not_move_the_interval():
    one, other = (calibrant.estimate(*DATA["flat"], rng=seed) for seed in (0, 1))
    assert (one.low, one.high) == (other.low, other.high)
    assert one.null != other.null


@pytest.mark.full
def test_ends_depend_little_on_what_is_drawn_for_them(monkeypatch):
    moved = []
    for name in ("flat", "few", "local"):
        ends = []
        for seed in range(12):
            monkeypatch.setattr(interval, "SEED", seed)
            found = calibrant.estimate(*DATA[name], rng=0)
            ends.append((found.low, found.high))
        ends = np.array(ends)
        moved.append(ends.std(axis=0).max() / np.mean(ends[:, 1] - ends[:, 0]))
    assert min(moved) > 0
    assert max(moved) <= 0.12


def test_a_value_that_is_small_by_luck_does_not_make_a_short_interval():
    found = [calibrant.estimate(*drawn("flat", 0.0, 500, seed), rng=0) for seed in range(12)]
    assert min(one.high for one in found) > 0.01


def test_true_errors_combine_as_the_notion_does():
    gap = np.array([[[0.1, -0.3]], [[0.2, 0.2]]])
    mass = np.array([[0.25, 0.75]])
    np.testing.assert_allclose(interval.true_error(gap, mass, "l1")[:, 0], [0.25, 0.2])
    np.testing.assert_allclose(interval.true_error(gap, mass, "l2")[:, 0], [np.sqrt(0.07), 0.2])
    each = np.array([[0.1, 0.3]])
    assert interval.combined(each, "l1") == pytest.approx(0.2)
    assert interval.combined(each, "l2") == pytest.approx(np.sqrt(0.05))


def test_simulated_sets_of_classes_have_the_sums_of_each():
    y, p = matrix(n=200)
    posterior = calibrant.Bayes().fit(Sample(p.T, y == np.arange(4)[:, None])).posterior
    z = np.random.default_rng(0).standard_normal((4, 3, 64))
    together = classes._ClassSums.of(posterior.with_data(z.reshape(12, 64)), "l1", 3)
    alone = [posterior[k : k + 1].with_data(z[k]) for k in range(4)]
    for term, own in zip(together.terms, zip(*(one.terms("l1") for one in alone), strict=True), strict=True):
        np.testing.assert_allclose(term, np.sum(own, axis=0))
    np.testing.assert_allclose(
        together.max_log_bayes_factor, np.max([one.log_bayes_factor for one in alone], axis=0)
    )


# Comparisons


def test_a_model_does_not_differ_from_itself():
    y, p = drawn()
    found = calibrant.compare(y, {"one": p, "two": p}, rng=0).differences["two"]
    assert found.value == 0
    assert found.p_value == 1
    assert found.correlation == pytest.approx(1)
    assert found.low <= 0 <= found.high


@pytest.mark.parametrize("notion", ["confidence", "classwise"])
def test_a_clear_difference_is_found_and_survives_json(notion):
    y, p = matrix(n=1500, factor=0.0)
    sharp = p**2 / (p**2).sum(axis=1, keepdims=True)
    found = calibrant.compare(y, {"sharp": sharp, "plain": p}, baseline="plain", notion=notion, rng=0)
    one = found.differences["sharp"]
    assert one.p_value < 0.001
    assert 0 < one.low < one.value < one.high
    assert one.value == pytest.approx(found.estimates["sharp"].value - found.estimates["plain"].value)
    assert "sharp - plain" in str(found)
    assert calibrant.Comparison.from_json(found.to_json()) == found
    assert pickle.loads(pickle.dumps(found)) == found


def test_differences_join_the_sides_that_matter():
    from dataclasses import replace

    made = calibrant.estimate(*drawn(n=100), rng=0)
    made = replace(made, null=replace(made.null, mean=0.0, quantiles={}))  # no bias
    one = replace(made, value=0.10, low=0.07, high=0.14)
    other = replace(made, value=0.05, low=0.04, high=0.08)
    a = np.array([1.0, -1.0, 1.0, -1.0])
    b = np.array([1.0, 1.0, -1.0, -1.0])
    found = paired.difference(("one", "other"), (one, other), paired._correlation(a, b, None))
    assert found.correlation == 0
    assert found.low == pytest.approx(0.05 - np.hypot(0.03, 0.03))
    assert found.high == pytest.approx(0.05 + np.hypot(0.04, 0.01))


def test_wrong_comparisons_are_named():
    y, p = drawn(n=50)
    with pytest.raises(ValueError, match="at least two names"):
        calibrant.compare(y, {"one": p})
    with pytest.raises(ValueError, match="at least two names"):
        calibrant.compare(y, p)
    with pytest.raises(ValueError, match="baseline must be one of"):
        calibrant.compare(y, {"one": p, "two": p}, baseline="three")
    with pytest.raises(ValueError, match="model 'two': y_prob must lie in"):
        calibrant.compare(y, {"one": p, "two": p + 1})
    with pytest.raises(ValueError, match="same notion"):
        calibrant.compare(y, {"one": p, "two": np.stack([1 - p, p], axis=1)})


@pytest.mark.parametrize("classes", [2, 3])
def test_a_row_that_counts_several_times_has_as_many_labels_under_the_null(classes):
    rng = np.random.default_rng(5)
    scores, labels = Dirichlet(classes, 0.4).draw(rng, 20)
    counts = rng.integers(1, 6, 20)
    counted = calibrant.estimate(labels, scores, notion="classwise", counts=counts, rng=0)
    again = np.repeat(np.arange(20), counts)
    repeated = calibrant.estimate(labels[again], scores[again], notion="classwise", rng=0)
    assert counted.p_value == repeated.p_value
    assert counted.null.mean == pytest.approx(repeated.null.mean, abs=1e-9)
    # A single row five times is five labels, not one.
    one = calibrant.estimate([1], [0.9], notion="classwise", counts=[5], rng=0)
    assert one.p_value > 0.5

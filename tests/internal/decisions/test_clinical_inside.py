"""Clinical measures: against loops, on rows and on sums, and where they are undefined."""

import json
import re
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest
from scipy.special import stdtrit
from tests.oracles import clinical as oracle

import calibrant
from calibrant.assessment import text as wording
from calibrant.decisions import Clinical, clinical_of
from calibrant.inference.interval_estimate import IntervalEstimate
from calibrant.posterior import posterior_of
from calibrant.posterior.log_odds.cells import nearest
from calibrant.score_data.clusters import effective_clusters
from calibrant.tasks.task import build_task
from shortcuts import compare_estimators

FIELDS = ("ratio", "intercept", "slope", "e50", "e90")


def drawn(n=300, seed=0, shape=(0.6, 4.0)):
    rng = np.random.default_rng(seed)
    score = rng.beta(*shape, n)
    return (rng.random(n) < score**0.7).astype(int), score


@pytest.fixture(scope="module")
def rare():
    """Return an assessment of scores that expect six tenths of the few cases that there are."""
    rng = np.random.default_rng(8)
    score = rng.beta(0.5, 40, 8000)
    y = (rng.random(8000) < np.minimum(1.7 * score, 1)).astype(int)
    with pytest.MonkeyPatch.context() as patch:
        compare_estimators(patch)
        return y, score, calibrant.assess(y, score, rng=0)


@pytest.fixture(scope="module")
def certain():
    """Return an assessment of scores of which some are 0 or 1."""
    y, score = drawn()
    score[:3], score[3:5], y[:2], y[3] = 0.0, 1.0, 1, 0
    with pytest.MonkeyPatch.context() as patch:
        compare_estimators(patch)
        return y, score, calibrant.assess(y, score, rng=0)


def read(y, score, *, notion="binary", level=0.95, **options):
    given = {"sample_weight": None, "labels": None, "pos_label": None, "cluster": None} | options
    return clinical_of(build_task(y, score, notion, **given), level=level)


def numbers(found):
    return np.array([[one.value, one.low, one.high] for one in (getattr(found, key) for key in FIELDS)])


def by_loops(y, score, weight=None, square=None, cluster=None, level=0.95):
    """Return ratio, intercept and slope with their ends."""
    x = [oracle.logit(s, nearest(np.asarray(score))) for s in score]
    weight = [1] * len(y) if weight is None else weight
    square = weight if square is None else square
    reach = NormalDist().inv_cdf((1 + level) / 2)
    if cluster is not None:
        reach = stdtrit(effective_clusters(np.asarray(cluster), np.asarray(weight)) - 1, (1 + level) / 2)
    value, error = oracle.ratio(score, y, weight, square, cluster)
    most = sum(weight) / np.dot(weight, score)
    rows = [[value, value * np.exp(-reach * error), min(value * np.exp(reach * error), most)]]
    for slope in (False, True):
        a, b = oracle.likeliest(x, y, weight, slope=slope)
        far = reach * oracle.variance(x, y, weight, square, a, b, slope=slope, cluster=cluster) ** 0.5
        value = b if slope else a
        rows.append([value, value - far, value + far])
    return np.array(rows)


@pytest.mark.parametrize("shape", [(0.6, 4.0), (0.3, 0.3), (8.0, 0.4), (20.0, 20.0)])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_numbers_are_those_of_loops(shape, level):
    y, score = drawn(shape=shape)
    np.testing.assert_allclose(
        numbers(read(y, score, level=level))[:3], by_loops(y, score, level=level), atol=1e-8
    )


def test_weights_of_either_kind_are_those_of_loops():
    y, score = drawn()
    heavy = np.random.default_rng(1).gamma(0.5, size=y.size) + 0.01
    found = numbers(read(y, score, sample_weight=heavy))
    np.testing.assert_allclose(found[:3], by_loops(y, score, heavy, heavy**2), atol=1e-8)
    # Weights have no scale.
    np.testing.assert_allclose(numbers(read(y, score, sample_weight=1e9 * heavy)), found, rtol=1e-9)
    counts = np.random.default_rng(1).integers(1, 5, y.size)
    counted = numbers(read(y, score, counts=counts))
    repeated = numbers(read(np.repeat(y, counts), np.repeat(score, counts)))
    np.testing.assert_allclose(counted, repeated, atol=1e-9)
    np.testing.assert_allclose(counted[:3], by_loops(y, score, counts), atol=1e-8)


def test_clusters_are_those_of_loops_and_rows_by_themselves_are_none():
    y, score = drawn(200)
    cluster = np.random.default_rng(2).integers(0, 25, y.size)
    y = np.where(np.random.default_rng(3).random(25)[cluster] < 0.5, y, y[cluster])
    found = numbers(read(y, score, cluster=cluster))
    np.testing.assert_allclose(found[:3], by_loops(y, score, cluster=cluster), atol=1e-8)
    heavy = np.random.default_rng(1).gamma(0.5, size=y.size) + 0.01
    found = numbers(read(y, score, cluster=cluster, sample_weight=heavy))
    np.testing.assert_allclose(found[:3], by_loops(y, score, heavy, heavy**2, cluster), atol=1e-8)
    alone = numbers(read(y, score, cluster=np.arange(y.size)))
    np.testing.assert_array_equal(alone, numbers(read(y, score)))


def test_the_order_of_rows_changes_nothing():
    y, score = drawn(2000)
    order = np.random.default_rng(4).permutation(y.size)
    np.testing.assert_allclose(numbers(read(y[order], score[order])), numbers(read(y, score)), atol=1e-11)


def test_scores_of_0_and_1_are_kept_from_there_as_the_maps_do_with_a_word(certain, rare):
    y, score, assessed = certain
    found = assessed.clinical
    np.testing.assert_allclose(numbers(found)[:3], by_loops(y, score), atol=1e-8)
    # The map that shifts and scales is the same line but for its wide prior.
    fitted = calibrant.Calibrator("logistic").fit(score, y)
    shift, slope = oracle.likeliest(
        [oracle.logit(s, found.least) for s in score], y, np.ones(y.size), slope=True
    )
    assert fitted.predict_proba(np.array([0.2])) == pytest.approx(
        1 / (1 + np.exp(-(shift + slope * np.log(0.25)))), abs=1e-3
    )
    assert (found.clipped, found.least) == (5, nearest(score))
    words = f"5 rows have a score of 0 or 1, .* use {found.least:.3g} and 1 - {found.least:.3g} instead"
    assert any(re.match(words, line) for line in assessed.cautions)
    counts = np.full(y.size, 2)
    assert read(y, score, counts=counts).clipped == 10
    assert read(y, score, sample_weight=np.full(y.size, 0.3)).clipped == 5
    assert rare[2].clinical.clipped == 0
    assert not any("0 or 1" in line for line in rare[2].cautions)


@pytest.mark.parametrize(
    ("y", "score", "why", "known"),
    [
        ([0, 0, 1, 1], [0.1, 0.2, 0.7, 0.8], "no slope, since scores separate the outcomes perfectly", 4),
        ([1, 1, 0, 0], [0.1, 0.2, 0.2, 0.8], "no slope, since scores separate the outcomes perfectly", 4),
        ([0, 1, 1], [0.5, 0.5, 0.5], "no slope, since all scores are the same", 4),
        ([1, 1], [0.2, 0.7], "no intercept and no slope, since every outcome is positive", 3),
        ([0, 0], [0.2, 0.7], "no intercept and no slope, since every outcome is negative", 3),
        ([0, 1], [0, 0], "no O/E, since every score is 0; no slope, since all scores are the same", 3),
        ([1], [0.3], "no intercept and no slope, since every outcome is positive", 3),
        ([0, 1, 1, 0], [0, 1, 0, 1], "", 5),
    ],
)
def test_what_cannot_be_known_is_none_with_a_reason(y, score, why, known, rare):
    found = read(y, score, labels=[0, 1])
    assert found.missing == why
    assert sum(getattr(found, key) is not None for key in FIELDS) == known
    assert " ".join(str(found).split()).endswith(f"{why[0].upper()}{why[1:]}." if why else "%")
    assert Clinical.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    page = replace(rare[2], clinical=found).html()
    assert (f"There is {why}." in page) == bool(why)
    by_sums = clinical_of(calibrant.Sketch(labels=[0, 1]).update(y, score)._task)
    assert (by_sums.missing, by_sums.from_cells) == (why, True)


def test_outcomes_that_are_all_the_same_leave_an_exact_interval_of_the_ratio():
    # Clopper and Pearson: with no case in 20 rows the frequency is below 1 - .025^(1/20).
    found = read([0] * 20, [0.1] * 20, labels=[0, 1]).ratio
    assert (found.value, found.low) == (0, 0)
    assert found.high == pytest.approx((1 - 0.025 ** (1 / 20)) / 0.1)
    found = read([1] * 20, [0.8] * 20, labels=[0, 1]).ratio
    assert found.low == pytest.approx(0.025 ** (1 / 20) / 0.8)
    assert found.value == found.high == pytest.approx(1.25)


def test_all_but_separated_rows_have_a_slope_however_steep():
    score = np.linspace(0.4995, 0.5005, 40)
    y = (score > 0.5).astype(int)
    y[19], y[20] = 1, 0
    found = read(y, score)
    np.testing.assert_allclose(found.slope.value, by_loops(y, score)[2, 0], rtol=1e-8)
    assert found.slope.value > 500


def test_e50_and_e90_are_quantiles_of_the_gap_that_the_error_is_the_mean_of():
    rng = np.random.default_rng(5)
    score = rng.random(20_000)
    y = rng.random(20_000) < score**2
    task = build_task(y, score, "binary", None, None, None)
    found, points = clinical_of(task), posterior_of(task).points(0)
    repeated = np.repeat(np.abs(points.gap), np.round(1e5 * points.mass).astype(int))
    assert found.e50.value == pytest.approx(np.quantile(repeated, 0.5), abs=1e-3)
    assert found.e90.value == pytest.approx(np.quantile(repeated, 0.9), abs=1e-3)


def test_intervals_of_e50_and_e90_hold_the_truth():
    # |s^2 - s| over uniform scores.
    truth = np.quantile(np.linspace(0, 1, 100_001) * np.linspace(1, 0, 100_001), [0.5, 0.9])
    held, samples = np.zeros(2), 12
    for seed in range(samples):
        rng = np.random.default_rng(seed)
        score = rng.random(20_000)
        found = clinical_of(build_task(rng.random(20_000) < score**2, score, "binary", None, None, None))
        for k, one in enumerate((found.e50, found.e90)):
            held[k] += one.low <= truth[k] <= one.high
            assert one.value == pytest.approx(truth[k], abs=0.025)
    assert np.all(held >= samples - 2)


def test_a_calibrated_model_reads_one_zero_and_one():
    rng = np.random.default_rng(6)
    score = rng.beta(0.5, 2, 20_000)
    found = read(rng.random(20_000) < score, score)
    for one, true in ((found.ratio, 1), (found.intercept, 0), (found.slope, 1)):
        assert one.low <= true <= one.high
        assert one.high - one.low < 0.2
    assert found.e90.value < 0.01


def test_a_sketch_has_the_ratio_exactly_and_the_line_nearly():
    y, score = drawn(5000)
    sums, exact = clinical_of(calibrant.Sketch().update(y, score)._task), read(y, score)
    assert sums.ratio.value == pytest.approx(exact.ratio.value, rel=1e-12)
    np.testing.assert_allclose(numbers(sums)[:3], numbers(exact)[:3], atol=1e-4)
    assert sums.from_cells
    assert "intercept and slope from cells" in str(sums)
    assert not exact.from_cells
    score[:40] = 0
    heavy = np.random.default_rng(1).gamma(2, size=y.size)
    sums = clinical_of(calibrant.Sketch().update(y, score, sample_weight=heavy)._task)
    exact = read(y, score, sample_weight=heavy)
    # The squares of weights are known of both outcomes of a cell together.
    np.testing.assert_allclose(numbers(sums)[:3], numbers(exact)[:3], atol=0.01)
    np.testing.assert_allclose(numbers(sums)[:3, 0], numbers(exact)[:3, 0], atol=1e-4)
    # Its rows are known by their weight alone.
    assert sums.clipped == pytest.approx(40 * exact_share(heavy), rel=1e-6)


def exact_share(heavy):
    return heavy[:40].sum() / heavy.sum() * heavy.sum() ** 2 / np.square(heavy).sum() / 40


@pytest.mark.usefixtures("without_reference_estimators")
def test_only_what_is_about_one_class_or_pairs_has_it():
    rng = np.random.default_rng(7)
    table, label = rng.dirichlet([1, 1, 1], 60), rng.integers(0, 3, 60)
    sums = calibrant.Sketch(notion="confidence").update(label, table)
    assert sums.assess(rng=0).clinical is None
    asked = calibrant.assess(label, table, rng=0, pos_label=2).clinical
    np.testing.assert_allclose(numbers(asked)[:3], numbers(read(label == 2, table[:, 2]))[:3], atol=1e-12)
    y, score = drawn(60)
    pairs = calibrant.Sketch(notion="correctness").update(y, score).assess(rng=0)
    np.testing.assert_allclose(numbers(pairs.clinical)[:3], numbers(read(y, score))[:3], atol=0.01)
    assert "the scores that the answer is right are " in wording.cases(pairs)


def test_the_text_says_how_many_of_the_cases_are_missed(rare):
    y, score, found = rare
    ratio = found.clinical.ratio
    assert ratio.value == pytest.approx(y.sum() / score.sum())
    times = f"{ratio.value:.2f} times too low ({ratio.low:.2f} to {ratio.high:.2f})."
    sentence = f"Summed over all rows, the scores of class 1 are {times}"
    assert sentence in " ".join(str(found).split())
    assert sentence in found.html().replace("\N{NO-BREAK SPACE}", " ")
    assert f": {times}" in found.summary
    assert "The ICI is the calibration error" in str(found)
    rng = np.random.default_rng(0)
    fair = replace(found, clinical=read(rng.random(score.size) < score, score))
    assert wording.cases(fair).endswith(", a difference that chance can explain.")
    assert "for every 100" not in fair.summary
    none = replace(found, clinical=read([0, 0], [0.2, 0.4], labels=[0, 1]))
    assert wording.cases(none) == "The outcome does not occur, and the scores expect 0.6."
    assert wording.cases(replace(found, clinical=read([0, 1], [0, 0]))) == ""
    few = replace(found, clinical=replace(found.clinical, ratio=IntervalEstimate(0.05, 0.0, 2.0)))
    assert "20.0 times too high (0.5 or more), a difference" in wording.cases(few)

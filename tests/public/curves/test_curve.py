"""Reliability curve, local calibration error and reliability diagram."""

import numpy as np
import pytest

import calibrant
from calibrant import Sketch


def data(n=1000, seed=0, power=1.6):
    rng = np.random.default_rng(seed)
    score = rng.random(n)
    return (rng.random(n) < score**power).astype(int), score


def matrix(n=600, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.dirichlet(np.ones(classes), n)
    labels = (rng.random((n, 1)) > np.cumsum(scores, axis=1)).sum(axis=1).clip(0, classes - 1)
    return labels, scores


# --- curve -----------------------------------------------------------------------------------------


def test_curve_finds_the_true_frequency():
    labels, score = data(20_000)
    curve = calibrant.reliability_curve(labels, score, n_boot=100, rng=0, method="density")
    at = np.linspace(0.1, 0.9, 17)
    point = curve.at(at)
    assert np.abs(point.value - at**1.6).max() < 0.04
    assert np.mean((point.low <= at**1.6) & (at**1.6 <= point.high)) > 0.7
    assert np.all(point.n_eff > 100)


def test_local_error_is_the_curve_minus_the_score():
    labels, score = data()
    curve = calibrant.reliability_curve(labels, score, n_boot=0, method="density")
    np.testing.assert_array_equal(curve.lce, curve.value - curve.score)
    at = np.array([[0.2, 0.5], [0.7, 0.9]])
    np.testing.assert_allclose(calibrant.lce(labels, score, at, method="density"), curve.at(at).value - at)
    assert np.ndim(calibrant.lce(labels, score, 0.4, method="density")) == 0


def test_error_of_the_curve_is_the_density_estimate():
    labels, score = data()
    curve = calibrant.reliability_curve(
        labels, score, n_boot=20, rng=0, bandwidth=0.05, kernel="gaussian", method="density"
    )
    estimator = calibrant.Density(0.05, "gaussian")
    assert curve.error == pytest.approx(calibrant.ece(labels, score, estimator=estimator))
    gap = np.abs(curve.point - curve.score) * curve.density
    assert np.nansum(gap) * np.diff(curve.score)[0] == pytest.approx(curve.error, abs=1e-4)


def test_without_data_the_curve_says_so():
    rng = np.random.default_rng(0)
    score = np.concatenate([rng.uniform(0.1, 0.2, 100), rng.uniform(0.8, 0.9, 100)])
    curve = calibrant.reliability_curve(
        rng.random(200) < score, score, bandwidth=0.01, rng=0, method="density"
    )
    nothing = curve.at([0.0, 0.5, 1.0])
    for value in (nothing.value, nothing.low, nothing.high):
        assert np.isnan(value).all()
    np.testing.assert_allclose(nothing.n_eff, 0, atol=1e-3)
    something = curve.at([0.15, 0.85])
    assert np.isfinite(something.value).all()


def test_the_middle_of_the_band_is_the_median_and_the_point_the_full_sample():
    labels, score = data(300)
    plain = calibrant.reliability_curve(labels, score, n_boot=0, method="density")
    curve = calibrant.reliability_curve(labels, score, n_boot=199, rng=1, method="density")
    np.testing.assert_array_equal(curve.point, plain.point)
    np.testing.assert_array_equal(plain.value, plain.point)
    for bare in (
        calibrant.reliability_curve(labels, score, n_boot=0, band="bootstrap", method="density"),
        calibrant.reliability_curve(labels, score, n_boot=20, rng=0, band=None, method="density"),
    ):
        assert bare.low is None
        assert bare.high is None
        assert bare.band is None
        assert np.isnan(bare.at(0.5).low)
    seen = ~np.isnan(curve.value)
    assert np.all(curve.low[seen] <= curve.value[seen])
    assert np.all(curve.value[seen] <= curve.high[seen])
    assert np.nanmean(np.abs(curve.value - curve.point)) < 0.01


def test_band_equals_a_loop_over_resamples():
    labels, score = data(80)
    curve = calibrant.reliability_curve(
        labels, score, n_boot=40, rng=3, level=0.9, bandwidth=0.08, band="bootstrap", method="density"
    )
    drawn = np.random.default_rng(3).integers(0, 80, (40, 80))
    curves = [
        calibrant.reliability_curve(
            labels[rows], score[rows], n_boot=0, bandwidth=0.08, method="density"
        ).point
        for rows in drawn
    ]
    low, middle, high = np.nanquantile(curves, [0.05, 0.5, 0.95], axis=0)
    seen = ~np.isnan(curve.point)
    np.testing.assert_allclose(curve.low[seen], low[seen], atol=1e-9)
    np.testing.assert_allclose(curve.value[seen], middle[seen], atol=1e-9)
    np.testing.assert_allclose(curve.high[seen], high[seen], atol=1e-9)


def test_a_seed_reproduces_the_band_and_another_changes_it():
    labels, score = data(200)
    one, two, three = (
        calibrant.reliability_curve(labels, score, n_boot=30, rng=seed, band="bootstrap", method="density")
        for seed in (7, 7, 8)
    )
    np.testing.assert_array_equal(one.low, two.low)
    assert not np.array_equal(one.low, three.low, equal_nan=True)


def test_counts_are_repetition_in_curve_and_band_width():
    labels, score = data(60)
    count = np.arange(60) % 4
    weighed = calibrant.reliability_curve(labels, score, n_boot=0, counts=count, method="density")
    repeated = calibrant.reliability_curve(
        np.repeat(labels, count), np.repeat(score, count), n_boot=0, method="density"
    )
    np.testing.assert_allclose(weighed.point, repeated.point, atol=1e-9)
    np.testing.assert_allclose(weighed.n_eff, repeated.n_eff, rtol=1e-9)
    options = {"rng": 0, "bandwidth": 0.1, "band": "bootstrap"}
    heavy = calibrant.reliability_curve(labels, score, counts=np.full(60, 9), **options, method="density")
    light = calibrant.reliability_curve(labels, score, **options, method="density")
    ratio = np.nanmedian((light.high - light.low) / (heavy.high - heavy.low))
    assert 2.2 < ratio < 4


def test_progress_is_reported_to_the_end():
    labels, score = data(100)
    seen = []
    calibrant.reliability_curve(
        labels,
        score,
        n_boot=400,
        rng=0,
        progress=lambda done, total: seen.append((done, total)),
        method="density",
    )
    assert seen[-1] == (400, 400)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})


def test_confidence_lives_above_one_over_c():
    labels, scores = matrix()
    curve = calibrant.reliability_curve(labels, scores, n_boot=10, rng=0, method="density")
    assert curve.notion == "confidence"
    assert curve.support == (1 / 3, 1.0)
    assert curve.score[0] > 1 / 3
    assert np.isnan(curve.at(0.2).value)
    assert curve.label is None


def test_scores_below_one_over_c_by_rounding_can_be_read_off():
    low = np.full((5, 7), np.float16(1 / 7))
    assert np.isfinite(calibrant.lce([0, 1, 2, 0, 0], low, at=float(low[0, 0]), method="density"))


def test_merged_bins_of_a_convex_diagram_stand_at_their_edges():
    score = np.array([0.1] * 50 + [0.2] * 3 + [0.9] * 10 + [0.95] * 7)
    outcome = np.arange(70) % 3 == 0
    diagram = calibrant.reliability_diagram(outcome, score, binning="ac:10")
    held = diagram.count > 0
    centres = (diagram.edges[1:] + diagram.edges[:-1]) / 2
    assert np.all(np.abs(diagram.score[held] - centres[held]) < 0.4)
    assert np.all(np.diff(diagram.score[held]) > 0)
    assert held[-1]


def test_one_sample_has_a_curve_where_it_is():
    curve = calibrant.reliability_curve([1], [0.3], n_boot=5, rng=0, method="density")
    assert curve.at(0.3).value == pytest.approx(1)
    assert np.isnan(curve.at(0.6).value)


@pytest.mark.parametrize("wrong", [-0.1, 1.1, np.nan, "x"])
def test_scores_to_read_off_are_checked(wrong):
    labels, score = data(50)
    curve = calibrant.reliability_curve(labels, score, n_boot=0, method="density")
    with pytest.raises((ValueError, TypeError), match="scores"):
        curve.at(wrong)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_boot": -1}, "n_boot"),
        ({"level": 95}, "level"),
        ({"band": "wide"}, "band must be one of"),
        ({"kernel": "box"}, "kernel"),
        ({"bandwidth": 0}, "bandwidth"),
        ({"bandwidth": "silver"}, "bandwidth"),
        ({"notion": "canonical"}, "canonical"),
    ],
)
def test_a_wrong_option_is_named(options, message):
    labels, score = data(50)
    with pytest.raises(ValueError, match=message):
        calibrant.reliability_curve(labels, score, **options, method="density")


def test_results_print_a_line_or_a_table():
    labels, score = data(400)
    results = (
        calibrant.reliability_curve(labels, score, n_boot=3, rng=0, method="density"),
        calibrant.reliability_diagram(labels, score),
        calibrant.score_histogram(labels, score),
    )
    for result, lines in zip(results, (16, 21, 14), strict=True):
        assert "\n" not in repr(result)
        assert repr(result).startswith(f"{type(result).__name__}(class 1, n=400")
        assert len(str(result).splitlines()) == lines
        assert "400 rows" in str(result)
    narrow = calibrant.reliability_curve(
        labels, 0.42 + score / 20, n_boot=0, bandwidth=0.004, method="density"
    )
    assert len(str(narrow).splitlines()) == 7  # no row at a tenth


def test_ten_bins_are_ten_bins_and_empty_ones_say_so():
    diagram = calibrant.reliability_diagram([0, 1, 1], [0.05, 0.55, 1.0], binning="uniform:10")
    assert diagram.edges.size == 11
    np.testing.assert_array_equal(diagram.count, [1, 0, 0, 0, 0, 1, 0, 0, 0, 1])
    for part in (diagram.score, diagram.frequency, diagram.low, diagram.high):
        np.testing.assert_array_equal(np.isnan(part), diagram.count == 0)


def test_bars_hold_the_frequency_and_importance_weights_count_effectively():
    labels, score = data(300)
    weight = np.random.default_rng(0).exponential(size=300)
    diagram = calibrant.reliability_diagram(labels, score, sample_weight=weight, interval="clopper-pearson")
    seen = diagram.count > 0
    assert np.all(diagram.low[seen] <= diagram.frequency[seen])
    assert np.all(diagram.frequency[seen] <= diagram.high[seen])
    inside = (score >= diagram.edges[3]) & (score < diagram.edges[4])
    assert diagram.count[3] == pytest.approx(weight[inside].sum() ** 2 / (weight[inside] ** 2).sum())
    heavy = np.append(np.ones(300), 1000.0)
    lonely = calibrant.reliability_diagram(
        np.append(labels, 1), np.append(score / 2, 0.99), sample_weight=heavy
    )
    assert lonely.count[-1] == pytest.approx(1)
    curve = calibrant.reliability_curve(
        np.append(labels, 1),
        np.append(score / 2, 0.99),
        sample_weight=heavy,
        bandwidth=0.02,
        n_boot=0,
        method="density",
    )
    assert curve.at(0.99).n_eff < 1.5


def test_a_diagram_needs_bins():
    for wrong in ("density", "auto"):
        with pytest.raises(ValueError, match="binning must name bins"):
            calibrant.reliability_diagram([0, 1], [0.2, 0.7], binning=wrong)
    with pytest.raises(ValueError, match="mapping"):
        calibrant.reliability_diagram([0, 1], [0.2, 0.7], mapping="concave")
    with pytest.raises(ValueError, match="interval"):
        calibrant.reliability_diagram([0, 1], [0.2, 0.7], interval="wald")


def test_histogram_counts_every_row():
    labels, score = data(500)
    for result in (
        calibrant.reliability_curve(labels, score, n_boot=0, method="density"),
        calibrant.reliability_diagram(labels, score),
    ):
        edges, count = result.histogram
        np.testing.assert_array_equal(count, np.histogram(score, edges)[0])


# --- sketch ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("notion", ["binary", "confidence", "classwise"])
def test_sketch_draws_the_same_curve_and_diagram(notion):
    labels, scores = matrix(2000)
    options = {"pos_label": 1} if notion == "binary" else {}
    sketch = Sketch(notion, **options)
    for rows in np.array_split(np.arange(2000), 3):
        sketch.update(labels[rows], scores[rows])
    curve = calibrant.reliability_curve(labels, scores, notion=notion, n_boot=0, **options, method="density")
    other = sketch.curve(method="density", n_boot=0)
    diagram = calibrant.reliability_diagram(labels, scores, notion=notion, **options)
    boxes = sketch.diagram()
    if notion == "classwise":
        curve, other, diagram, boxes = curve[2], other[2], diagram[2], boxes[2]
    both = ~np.isnan(curve.point) & ~np.isnan(other.point)
    assert both.sum() >= curve.point.size - np.isnan(curve.point).sum() - 2
    heavy = both & (curve.n_eff > 1)
    np.testing.assert_allclose(other.point[heavy], curve.point[heavy], atol=1e-4)
    np.testing.assert_array_equal(boxes.count, diagram.count)
    np.testing.assert_allclose(boxes.frequency, diagram.frequency)
    np.testing.assert_allclose(boxes.score, diagram.score)
    assert other.label == curve.label
    band = sketch.curve(method="density", n_boot=20, rng=0)
    band = band[2] if notion == "classwise" else band
    assert np.nanmax(band.high - band.low) > 0


def test_sketch_refuses_what_it_cannot_answer():
    with pytest.raises(ValueError, match="the sketch is empty"):
        Sketch().ece()
    with pytest.raises(ValueError, match="notion must be one of"):
        Sketch("clas")
    sketch = Sketch("binary").update([0, 1], [0.1, 0.9])
    with pytest.raises(ValueError, match="asks for 20000 bins, but a sketch keeps 14400 cells"):
        sketch.ece(estimator="uniform:20000")
    with pytest.raises(ValueError, match="same"):
        sketch + Sketch("confidence")
    with pytest.raises(TypeError):
        sketch + 1
    labels, scores = matrix()
    three = Sketch("confidence").update(labels, scores)
    with pytest.raises(ValueError, match="same classes, got 3 and 2"):
        three.update([0, 1], [0.1, 0.9])
    with pytest.raises(ValueError, match="same classes"):
        three + Sketch("confidence").update([0, 1], [0.1, 0.9])
    with pytest.raises(ValueError, match="y_prob"):
        sketch.update([0, 1], [0.1, np.nan])
    assert sketch.ece(n_bins=15) == sketch.ece(estimator="uniform:15")
    with pytest.raises(ValueError, match="in a sketch"):
        Sketch("binary").update([0, 1], [0.1, 0.9], sample_weight=[1e-150, 1.0])
    assert sketch.n == 2


def test_classes_are_settled_by_the_first_update():
    rng = np.random.default_rng(0)
    scores = rng.dirichlet([1, 1], 4)
    for notion in ("binary", "classwise"):
        sketch = Sketch(notion).update(["a", "b", "a", "b"], scores)
        sketch.update(["b", "b", "b", "b"], scores)
        assert sketch.n == 8
        with pytest.raises(ValueError, match="y_true must hold only the labels 'a', 'b', got 'c'"):
            sketch.update(["b", "c", "c", "b"], scores)
        assert sketch.n == 8
        with pytest.raises(ValueError, match="same classes"):
            sketch + Sketch(notion).update(["b", "c", "c", "b"], scores)


def test_a_vector_of_scores_is_about_its_positive_class_only():
    only = Sketch("classwise").update([1, 1], [0.3, 0.4])
    both = Sketch("classwise").update([-1, 1], [0.3, 0.4])
    assert (only + both).n == 4
    some = Sketch("binary", pos_label="b").update(["b", "b"], [0.3, 0.4])
    more = Sketch("binary", pos_label="b").update(["a", "b"], [0.3, 0.4])
    assert (some + more).diagram().label == "b"
    other = Sketch("binary", pos_label="a").update(["a", "b"], [0.3, 0.4])
    with pytest.raises(ValueError, match="same classes, got 'b' and 'a'"):
        more + other


def test_sketches_add_up_with_sum_and_keep_what_they_were_told():
    parts = [Sketch("binary").update([0, 1], [0.1, 0.9]) for _ in range(3)]
    assert sum(parts).n == 6
    empty = Sketch("confidence", n_classes=3) + Sketch("confidence")
    with pytest.raises(ValueError, match="same classes, got 3 and 2"):
        empty.update([0, 1], [0.1, 0.9])


def test_adding_sketches_leaves_both_as_they_were():
    one = Sketch("binary").update([0, 1], [0.1, 0.9])
    two = Sketch("binary").update([1], [0.3])
    total = one + two
    assert (one.n, two.n, total.n) == (2, 1, 3)
    total.update([1], [0.4])
    assert (one.n, total.n) == (2, 4)
    assert (Sketch("binary") + one).n == (one + Sketch("binary")).n == 2
    assert repr(Sketch("binary")) == "Sketch(notion='binary', n=0)"


def test_updates_with_weights_are_those_of_the_whole():
    labels, score = data(200)
    weight = np.random.default_rng(1).random(200) + 0.5
    sketch = Sketch("binary").update(labels[:100], score[:100], sample_weight=weight[:100])
    sketch.update(labels[100:], score[100:], sample_weight=weight[100:])
    expected = calibrant.ece(labels, score, estimator="l:10", sample_weight=weight)
    assert sketch.ece(estimator="l:10") == pytest.approx(expected, abs=1e-12)
    assert sketch.n == pytest.approx(weight.sum() ** 2 / (weight**2).sum())


@pytest.mark.parametrize("rows", [9, 30, 49, 200])
def test_a_score_that_few_rows_have_is_no_level(rows):
    """However few rows there are, a level is a score that several of them share."""
    rng = np.random.default_rng(rows)
    score = np.concatenate([rng.choice(9000, rows, replace=False) / 1e4, np.full(4, 0.95), np.full(5, 0.97)])
    outcome = rng.random(score.size) < score
    slow = [s for s in np.unique(score) if (score == s).sum() >= max(5, 0.02 * score.size)]
    assert calibrant.reliability_curve(outcome, score).common_scores.tolist() == slow == [0.97]
    # Five rows that count once are as one that counts five times; one heavy row is one row.
    counts, kept = np.where(score == 0.97, 5, 1), score != 0.95
    once = np.unique(score[kept], return_index=True)[1]
    parts = outcome[kept][once], score[kept][once], counts[kept][once]
    assert calibrant.reliability_curve(*parts[:2], counts=parts[2]).common_scores.tolist() == [0.97]
    assert calibrant.reliability_curve(*parts[:2], sample_weight=parts[2]).common_scores.size == 0

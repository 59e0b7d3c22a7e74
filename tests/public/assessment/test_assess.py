"""An assessment: its numbers against those of the single calls, its words against its intervals."""

import json
import pickle
import re
from dataclasses import replace

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from tests.oracles import proper as oracle

import calibrant

matplotlib.use("Agg")
# What is not about the estimators of the literature does without most of them.
pytestmark = [pytest.mark.usefixtures("few_reference_estimators"), pytest.mark.full]
NAMES = ["ant", "bee", "cat", "dog"]


def binary(n=600, seed=0, power=2.0):
    rng = np.random.default_rng(seed)
    score = rng.random(n)
    return (rng.random(n) < score**power).astype(int), score


def multiclass(n=500, classes=4, seed=0, sharper=2.0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 1.5, (n, classes))
    true, said = (np.exp(t * logits) / np.exp(t * logits).sum(axis=1, keepdims=True) for t in (1.0, sharper))
    return (rng.random((n, 1)) >= np.cumsum(true, axis=1)[:, :-1]).sum(axis=1), said


@pytest.fixture(scope="module")
def one():
    y, p = binary()
    return calibrant.assess(y, p, rng=0, name="rain")


@pytest.fixture(scope="module")
def many():
    y, p = multiclass()
    groups = np.where(np.arange(len(y)) % 3, "north", "south")
    return calibrant.assess(y, p, rng=0, groups=groups, class_names=NAMES)


def test_estimates_are_those_of_the_single_calls(one, many):
    y, p = binary()
    assert list(one.estimates) == ["binary", "confidence"]
    for notion, found in one.estimates.items():
        assert found == calibrant.estimate(y, p, notion=notion, rng=0)
    assert one.by_estimator["density"] == calibrant.estimate(y, p, estimator="density", rng=0)
    y, p = multiclass()
    assert list(many.estimates) == ["confidence", "classwise"]
    expected = calibrant.estimate(y, p, notion="classwise", rng=0)
    found = many.estimates["classwise"]
    assert (found.value, found.low, found.high) == (expected.value, expected.low, expected.high)
    assert {k: v.value for k, v in found.by_class.items()} == {
        NAMES[k]: v.value for k, v in expected.by_class.items()
    }


def test_classes_come_worst_first_with_intervals_that_hold_together(many):
    values = [row.estimate.value for row in many.by_class]
    assert values == sorted(values, reverse=True)
    assert {row.name for row in many.by_class} == {"ant", "bee", "cat", "dog"}
    single = calibrant.estimate(*multiclass(), notion="classwise", rng=0).by_class
    for row in many.by_class:
        assert row.estimate.level == pytest.approx(0.9875)
        plain = single[NAMES.index(row.name)]
        assert row.estimate.label == row.name
        assert row.estimate.low <= plain.low + 1e-3
        assert row.estimate.high >= plain.high - 1e-3
        assert row.p_adjusted >= row.estimate.p_value
    y, p = multiclass()
    worst = NAMES.index(many.by_class[0].name)
    assert many.by_class[0].observed == pytest.approx(np.sum(y == worst))
    assert many.by_class[0].expected == pytest.approx(p[:, worst].sum())
    assert many.by_class[0].rows == np.sum(y == worst)


def test_groups_are_assessed_by_themselves(many):
    y, p = multiclass()
    south = np.arange(len(y)) % 3 == 0
    (row,) = [row for row in many.by_group if row.name == "south"]
    expected = calibrant.estimate(y[south], p[south], rng=0, level=0.975, labels=range(4))
    assert (row.estimate.value, row.estimate.low, row.estimate.high) == (
        expected.value,
        expected.low,
        expected.high,
    )
    assert row.rows == south.sum()
    assert row.observed == pytest.approx(np.sum(p[south].argmax(axis=1) == y[south]))


def test_rows_without_weight_have_no_group():
    y, p = binary(200)
    weight = np.ones(200)
    weight[:50] = 0
    groups = np.array(["gone"] * 50 + ["a", "b"] * 75)
    found = calibrant.assess(y, p, sample_weight=weight, groups=groups, rng=0)
    assert {row.name for row in found.by_group} == {"a", "b"}
    assert found.rows == 150


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (["a"] * 3, "groups must hold one value for each of 100 rows, got shape \\(3,\\)"),
        (["a"] * 99 + [None], "groups must have no missing values, got None at position 99"),
        ([[1]] * 100, "groups must hold one value for each of 100 rows"),
        (None, "groups must have at most 10000 distinct values, got 10001"),
    ],
)
def test_bad_groups_are_refused(groups, message):
    n = 100 if groups is not None else 10_001
    y, p = binary(n)
    with pytest.raises(ValueError, match=message):
        calibrant.assess(y, p, groups=range(10_001) if groups is None else groups, rng=0)


def test_class_names_are_checked():
    y, p = multiclass(60)
    with pytest.raises(ValueError, match="class_names must name 4 classes"):
        calibrant.assess(y, p, class_names=["a"], rng=0)
    with pytest.raises(ValueError, match="class_names must name classes of"):
        calibrant.assess(y, p, class_names={9: "nine"}, rng=0)
    assert calibrant.assess(y, p, class_names={1: "uno"}, rng=0).classes == ("0", "uno", "2", "3")
    assert calibrant.assess(*binary(60), rng=0).classes == ("0", "1")


def test_unknown_arguments_are_named():
    with pytest.raises(TypeError, match="did you mean 'groups'"):
        calibrant.assess(*binary(30), group=[1] * 30)


def test_scores_are_taken_apart_exactly(one, many):
    for found in (one, many):
        for score in found.scores:
            assert score.value == pytest.approx(score.calibration - score.resolution + score.uncertainty)
            assert score.value == pytest.approx(score.calibration + score.refinement)
            assert min(score.calibration, score.resolution, score.uncertainty) >= 0
    y, p = binary()
    brier, log = one.scores[:2]
    expected = oracle.event(p.tolist(), y.tolist(), [1.0] * len(y))
    for score, parts in zip((brier, log), expected, strict=True):
        got = (score.value, score.calibration, score.resolution, score.uncertainty)
        np.testing.assert_allclose(got, parts, rtol=1e-9, atol=1e-12)
    y, p = multiclass()
    brier, log = many.scores[:2]
    assert brier.value == pytest.approx(np.mean(((np.eye(4)[y] - p) ** 2).sum(axis=1)))
    assert log.value == pytest.approx(-np.mean(np.log(p[np.arange(len(y)), y])))
    share = np.bincount(y) / len(y)
    assert log.uncertainty == pytest.approx(-(share * np.log(share)).sum())
    assert brier.uncertainty == pytest.approx((share * (1 - share)).sum())


def test_an_impossible_outcome_makes_the_log_loss_infinite_and_is_told():
    found = calibrant.assess([1, 0, 1, 1], [0.0, 0.2, 0.7, 1.0], rng=0)
    log = found.scores[1]
    assert log.value == log.calibration == np.inf
    assert np.isfinite(log.refinement)
    assert any("infinite" in line for line in found.cautions)
    assert "1 row with a score of exactly 0 was wrong." in found.cautions
    two = calibrant.assess([1, 0, 1, 0], [0.0, 0.2, 0.7, 1.0], rng=0)
    assert "2 rows with a score of exactly 0 or 1 were wrong." in two.cautions
    again = calibrant.Assessment.from_json(found.to_json())
    assert again.scores[1].value == np.inf


def test_json_and_pickle_round_trips(one, many):
    for found in (one, many):
        again = calibrant.Assessment.from_json(found.to_json())
        assert again.to_json() == found.to_json()
        assert str(again) == str(found)
        assert again.html() == found.html()
        assert pickle.loads(pickle.dumps(found)).to_json() == found.to_json()
    assert json.loads(one.to_json())["value"] == one.estimate.value
    with pytest.raises(ValueError, match=r"^assessment\.schema must be 1, got 7; it was written"):
        calibrant.Assessment.from_dict({"schema": 7})


def test_curves_beyond_the_worst_classes_are_computed_on_demand_and_not_stored(without_reference_estimators):
    y, p = multiclass(300, 14)
    found = calibrant.assess(y, p, rng=0)
    worst, others = (
        {row.estimate.label for row in rows} for rows in (found.by_class[:12], found.by_class[12:])
    )
    curves, diagrams = found.curves["classwise"], found.diagrams["classwise"]
    assert set(curves) == set(diagrams) == set(range(14))
    assert set(curves.computed) == set(diagrams.computed) == worst
    assert repr(curves).startswith("ByClass(ReliabilityCurve of ")
    assert set(curves.computed) == worst
    stored, page = found.to_json(), found.html()
    expected = calibrant.reliability_curve(y, p, notion="classwise")
    binned = calibrant.reliability_diagram(y, p, notion="classwise", binning="uniform:15")
    for label in range(14):
        assert curves[label].to_json() == expected[label].to_json()
        assert diagrams[label].to_json() == binned[label].to_json()
    assert found.to_json() == stored
    again = calibrant.Assessment.from_json(stored)
    assert set(again.curves["classwise"]) == set(again.diagrams["classwise"]) == worst
    assert {row.estimate.label for row in again.by_class} == worst | others
    assert (again.to_json(), again.html()) == (stored, page)
    fresh = pickle.loads(pickle.dumps(calibrant.assess(y, p, rng=0)))
    assert set(fresh.curves["classwise"]) == worst
    assert fresh.to_json() == stored


def test_string_labels_weights_and_frames_do():
    y, p = multiclass(80, 3)
    label = np.array(["ant", "bee", "cat"])[y]
    frame = pd.DataFrame(p, columns=["ant", "bee", "cat"])
    found = calibrant.assess(label, frame, counts=np.full(80, 2), rng=0)
    assert found.classes == ("ant", "bee", "cat")
    assert found.n == 160
    expected = calibrant.assess(np.repeat(y, 2), np.repeat(p, 2, axis=0), rng=0)
    assert found.estimate.value == pytest.approx(expected.estimate.value)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_handful_of_rows_is_enough(n):
    for y, p in (binary(n), multiclass(n, 3)):
        found = calibrant.assess(y, p, rng=0, labels=None if p.ndim == 1 else range(3))
        assert "rows" in found.cautions[0] or "row" in found.cautions[0]
        assert found.html()
        assert str(found)


def test_one_class_present_and_constant_scores_do():
    for y, p in (([1] * 40, [0.9] * 40), ([0] * 40, [0.0] * 40), ([1, 0] * 20, [1.0] * 40)):
        found = calibrant.assess(y, p, rng=0)
        assert found.html()
        assert calibrant.Assessment.from_json(found.to_json()).to_json() == found.to_json()
    y, p = multiclass(60, 4)
    found = calibrant.assess(np.zeros(60, int), p, rng=0)
    assert any(line.startswith("No row is of the classes 1, 2, 3") for line in found.cautions)


# What is said


def test_a_class_is_named_in_the_verdict(one):
    assert one.verdict.headline.startswith("Scores of class 1 are too high by")
    assert " in 100 were class 1 (" in one.verdict.trust
    assert "The scores of class 1 are too high by" in one.summary


def test_methods_name_what_was_done(one):
    for word in ("600 predictions", "binary notion", "95 % interval", "seed 0", calibrant.__version__):
        assert word in one.methods


def test_printing_shows_the_tables(many):
    text = str(many)
    for word in ("log loss", "adjusted p", "north", "ant", "98.75 % interval"):
        assert word in text
    for score in ("Brier score", "log loss"):
        assert re.search(rf"^{score} +all classes  ", text, re.MULTILINE)
    assert repr(many).startswith("Assessment(confidence, ECE 0.")
    assert "\n" not in repr(many)


def test_the_picture_is_drawn(one, many):
    import matplotlib.pyplot as plt

    assert one.plot() is not None
    ax = plt.figure().subplots()
    assert many.plot(ax) is ax
    plt.close("all")
    panels = calibrant.assess(*multiclass(60), notion="classwise", rng=0).plot()
    assert len(panels) == 4
    plt.close("all")


def test_the_adjusted_p_value_alone_says_whether_a_group_is_off(many):
    row = many.by_group[0]
    for low in (0.0, 0.2):
        seen = replace(row, estimate=replace(row.estimate, p_value=0.001, low=low))
        assert replace(seen, p_adjusted=0.04).off(0.95)
        assert not replace(seen, p_adjusted=0.06).off(0.95)


def test_nothing_is_said_of_scores_that_no_row_has():
    y = np.arange(200) % 2
    found = calibrant.assess(y, y.astype(float), rng=0)
    assert np.isnan(found.curve.at([0.2, 0.5, 0.8]).value).all()
    assert not re.search(r"scored 0\.[5-8]", found.verdict.trust)


def test_a_few_rows_are_too_few_to_tell():
    found = calibrant.assess([1, 0, 1], [0.3, 0.2, 0.4], rng=0)
    assert found.verdict.headline == "3 rows are too few to tell whether the scores are off."
    assert "(3 so far): 12 would halve today's uncertainty; with about " in found.verdict.action
    assert f"with about {found.verdict.rows_needed:,} the average error is known" in found.verdict.action
    assert found.verdict.where == "Cannot say: too few rows to tell at which scores."


def test_ranges_on_either_side_of_the_diagonal_are_named():
    rng = np.random.default_rng(0)
    score = rng.random(2000)
    found = calibrant.assess(rng.random(2000) < 0.25 + 0.5 * score, score, rng=0)
    assert re.match(
        r"Too high .* \(\d+ % of the rows, by up to [\d.]+ points\); too low .*; "
        r"(looks right|too few rows to tell) (from|below|above) ",
        found.verdict.where,
    )


def test_the_picture_shows_the_error_of_the_page_and_no_other(one):
    ax = one.plot()
    shown = re.findall(r"ECE (?:< )?([\d.]+)", ax.get_legend().get_title().get_text())
    assert [float(error) for error in shown] == [pytest.approx(one.estimate.value, abs=5e-4)]
    assert not any("ECE" in entry.get_text() for entry in ax.get_legend().get_texts())
    plt.close("all")


TINY_CHANCE = 1e-20


@pytest.mark.parametrize("notion", ["binary", "confidence", "classwise"])
def test_the_log_loss_of_a_tiny_score_is_finite(notion):
    y, p = [1, 0, 1, 0, 1], [TINY_CHANCE, 0.3, 0.8, 0.2, 0.9]
    expected = -np.mean(np.log([TINY_CHANCE, 0.7, 0.8, 0.8, 0.9]))
    two = np.column_stack([np.subtract(1, p), p])
    assert two[0, 0] == 1
    for scores in (p, two):
        found = calibrant.assess(y, scores, notion=notion, rng=0)
        loss = {score.about: score.value for score in found.scores if score.name == "log loss"}
        assert loss == pytest.approx({"1": expected, "prediction is right": expected})
        assert not any("infinite" in text or "exactly 0" in text for text in found.cautions)
        if notion != "classwise":  # whose sums are of classes
            sums = calibrant.Sketch(notion, n_classes=2).update(y, scores).assess(rng=0)
            assert sums.scores[1].value == pytest.approx(expected)


def test_what_the_other_classes_have_is_in_their_own_scores():
    scores = np.array([[1.0, TINY_CHANCE, 0.0], [0.3, 0.3, 0.4], [0.0, 1.0, 0.0]])
    found = calibrant.assess([1, 2, 1], scores, rng=0)
    (right,) = (s.value for s in found.scores if (s.name, s.about) == ("log loss", "prediction is right"))
    assert right == pytest.approx(-np.log([TINY_CHANCE, 0.4]).sum() / 3)
    assert not any("infinite" in text or "exactly 0" in text for text in found.cautions)
    found = calibrant.assess([1, 2, 1], scores, notion="top:2", rng=0)
    (top,) = (s.value for s in found.scores if (s.name, s.about) == ("log loss", "label is among the top 2"))
    assert top == pytest.approx(-np.log(0.7) / 3)
    ruled_out = calibrant.assess([2, 2, 1], scores, rng=0)
    assert "1 row had a score of exactly 0 for the class that occurred." in ruled_out.cautions
    # A sketch of more than two classes keeps the largest score alone, and says so.
    sums = calibrant.Sketch("confidence", n_classes=3).update([1, 2, 1], scores).assess(rng=0)
    assert sums.scores[1].value == np.inf
    assert any("as far as a sketch knows" in text for text in sums.cautions)


def test_predicted_classes_of_two_get_a_caution_in_rows_and_in_sums():
    y, p = binary(200)
    told = "All scores are 0 or 1: did you pass predict()? pass predict_proba(), the scores of the classes."
    predicted = p > 0.5
    for score in (predicted, predicted.astype(int), np.column_stack([~predicted, predicted])):
        assert told in calibrant.assess(y, score, rng=0).cautions
    for notion in ("binary", "confidence"):
        assert told in calibrant.Sketch(notion).update(y, predicted).assess(rng=0).cautions
    nearly = predicted.astype(float)
    nearly[7] = 0.75
    assert not any("predict()" in text for text in calibrant.assess(y, nearly, rng=0).cautions)
    assert not any("predict()" in t for t in calibrant.Sketch().update(y, nearly).assess(rng=0).cautions)


@pytest.mark.parametrize(
    "call", [calibrant.ece, calibrant.mce, calibrant.estimate, calibrant.reliability_diagram]
)
def test_predicted_classes_of_two_are_warned_of_where_there_is_no_room_for_a_caution(call):
    y, p = binary(200)
    with pytest.warns(
        calibrant.InputWarning, match=r"all scores are 0 or 1: did you pass predict\(\)"
    ) as told:
        call(y, p > 0.5)
    assert told[0].filename == __file__
    call(y[:19], (p > 0.5)[:19])  # few rows may be chance


def test_single_scores_below_a_half_under_confidence_get_a_caution_that_names_correctness():
    correct, sure = binary(200)
    below = int((sure < 0.5).sum())
    told = f"{below} scores below 0.5 count as 1 - score, the confidence in the other class."
    found = calibrant.assess(correct, sure, notion="confidence", rng=0).cautions
    assert any(text.startswith(told) and "notion='correctness'" in text for text in found)
    sums = calibrant.Sketch("confidence").update(correct, sure).assess(rng=0).cautions
    assert any(text.startswith("Scores below 0.5 count as 1 - score") for text in sums)
    quiet = [
        calibrant.assess(correct, sure, rng=0),
        calibrant.assess(correct, sure, notion="correctness", rng=0),
        calibrant.assess(correct, np.column_stack([1 - sure, sure]), notion="confidence", rng=0),
        calibrant.assess(correct, np.maximum(sure, 0.5), notion="confidence", rng=0),
        calibrant.assess(np.where(correct, "yes", "no"), sure, notion="confidence", pos_label="yes", rng=0),
    ]
    assert not any("correctness" in text for result in quiet for text in result.cautions)

"""Rows without a label: refused with a hint, or left out as if they had never been passed."""

import numpy as np
import pytest

import calibrant
from calibrant import InputError

RNG = np.random.default_rng(0)
N = 200
P = RNG.random(N)
LOST = RNG.random(N) < 0.3
Y = (RNG.random(N) < P).astype(int)
WITH_NAN = np.where(LOST, np.nan, Y)
CLUSTER, GROUPS = np.arange(N) // 2, np.where(np.arange(N) % 2, "odd", "even")
W = RNG.random(N) + 0.5
SENTENCE = f"{LOST.sum()} of 200 rows"


ANSWERS = {
    "ece": lambda y, p, **more: calibrant.ece(y, p, **more),
    "mce": lambda y, p, **more: calibrant.mce(y, p, **more),
    "curve": lambda y, p, **more: calibrant.reliability_curve(y, p, **more).value,
    "diagram": lambda y, p, **more: calibrant.reliability_diagram(y, p, **more).frequency,
    "histogram": lambda y, p, **more: calibrant.score_histogram(y, p, **more).positive,
    "lce": lambda y, p, **more: calibrant.lce(y, p, 0.5, **more),
    "regret curve": lambda y, p, **more: calibrant.regret_curve(y, p, **more).value,
    "net benefit": lambda y, p, **more: calibrant.net_benefit(y, p, **more).minus_all.high,
    "threshold": lambda y, p, **more: calibrant.best_threshold(y, p, (1, 3), **more).value,
    "coverage": lambda y, p, **more: calibrant.risk_coverage(y, p, **more).aurc,
    "calibrator": lambda y, p, **more: calibrant.Calibrator("beta").fit(p, y, **more).predict_proba([0.3]),
    "maps": lambda y, p, **more: (
        calibrant.compare_calibrators(p, y, methods=["beta"], **more)["beta"].log_loss.value
    ),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_every_function_answers_as_for_the_labelled_rows(name):
    found, wanted = ANSWERS[name](WITH_NAN, P, missing="drop"), ANSWERS[name](Y[~LOST], P[~LOST])
    np.testing.assert_array_equal(found, wanted)
    with pytest.raises(InputError, match='pass missing="drop"'):
        ANSWERS[name](WITH_NAN, P)


def test_results_say_how_many_rows_were_left_out():
    rows = {"cluster": CLUSTER, "sample_weight": W}
    few = {name: values[~LOST] for name, values in rows.items()}
    found = calibrant.estimate(WITH_NAN, P, missing="drop", **rows)
    wanted = calibrant.estimate(Y[~LOST], P[~LOST], **few)
    assert (found.value, found.low, found.high, found.clusters) == (
        wanted.value,
        wanted.low,
        wanted.high,
        wanted.clusters,
    )
    assert found.cautions[0].startswith(SENTENCE)
    assert SENTENCE in str(found)
    assert any(SENTENCE in line for line in calibrant.regret(WITH_NAN, P, 0.3, missing="drop").cautions)
    both = calibrant.compare(WITH_NAN, {"a": P, "b": P**2}, missing="drop")
    assert (
        both.differences["b"].value
        == calibrant.compare(Y[~LOST], {"a": P[~LOST], "b": P[~LOST] ** 2}).differences["b"].value
    )
    assert SENTENCE in str(both)


def test_groups_go_with_their_rows(without_reference_estimators):
    groups = np.array([None if lost else name for lost, name in zip(LOST, GROUPS, strict=True)], dtype=object)
    found = calibrant.assess(WITH_NAN, P, groups=groups, missing="drop")
    wanted = calibrant.assess(Y[~LOST], P[~LOST], groups=GROUPS[~LOST])
    assert [(row.name, row.rows, row.estimate.value) for row in found.by_group] == [
        (row.name, row.rows, row.estimate.value) for row in wanted.by_group
    ]
    assert any(line.startswith(SENTENCE) for line in found.cautions)
    groups[~LOST] = None
    with pytest.raises(InputError, match=f"got None at position {np.argmin(LOST)}"):
        calibrant.assess(WITH_NAN, P, groups=groups, missing="drop")


def test_what_belongs_to_a_row_without_a_label_may_be_missing_or_wrong():
    wrong = {"p": np.where(LOST, 7.0, P), "sample_weight": np.where(LOST, np.nan, W)}
    score = np.where(LOST, np.nan, P)
    found = calibrant.ece(WITH_NAN, score, sample_weight=wrong["sample_weight"], missing="drop")
    assert found == calibrant.ece(WITH_NAN, wrong["p"], sample_weight=W, missing="drop")


@pytest.mark.parametrize("labels", [[None, None], [np.nan, np.nan], np.ma.array([1, 1], mask=[1, 1])])
def test_rows_none_of_which_has_a_label_are_refused(labels):
    with pytest.raises(InputError, match="y_true must not all be missing, got 2 rows without a label"):
        calibrant.ece(labels, [0.2, 0.3], missing="drop")


def test_no_other_choice_and_no_hint_for_what_is_not_missing():
    with pytest.raises(InputError, match=r"missing must be one of 'raise', 'drop', got 'skip'"):
        calibrant.ece(Y, P, missing="skip")
    with pytest.raises(InputError, match=r"got inf at row 0$"):
        calibrant.ece([np.inf, 0, 1], [0.1, 0.2, 0.3])
    with pytest.raises(InputError, match="got inf at row 0"):
        calibrant.ece([np.inf, np.nan, 1], [0.1, 0.2, 0.3], missing="drop")
    with pytest.raises(
        InputError, match=r"y_prob must be finite and have no missing values, got nan at row 1$"
    ):
        calibrant.ece([0, 1, np.nan], [0.1, np.nan, 0.3], missing="drop")
    with pytest.raises(InputError, match="missing must be left out for a sketch"):
        calibrant.ece(calibrant.Sketch().update(Y, P), missing="drop")


def test_a_sketch_of_rows_without_any_label_counts_them(tmp_path):
    late = calibrant.Sketch().update([None, np.nan], [0.2, 0.3], missing="drop")
    assert (late.totals.rows, late.totals.dropped) == (0, 2)
    late.save(tmp_path / "late.sketch")
    late = calibrant.Sketch.load(tmp_path / "late.sketch")
    with pytest.raises(
        InputError, match="the labels of the sketch must not all be missing, got 2 rows without a label"
    ):
        late.ece()
    both = late + calibrant.Sketch().update([0, 1], [0.2, 0.3])
    assert both.estimate().cautions == ("2 of 4 rows (50 %) have no label and were left out.",)
    assert both.digest != calibrant.Sketch().update([0, 1], [0.2, 0.3]).digest


def test_models_with_labels_of_their_own_are_paired_by_the_rows_that_both_know():
    rng = np.random.default_rng(1)
    p = rng.random(400)
    labels = {name: (rng.random(400) < p).astype(float) for name in "ab"}
    scores = {"a": p, "b": p**1.5}
    labels["b"] = np.where(rng.random(400) < 0.9, labels["a"], labels["b"])
    labels["a"][:40], labels["b"][100:160] = np.nan, np.nan
    found = calibrant.compare(labels, scores, missing="drop")
    kept = {name: ~np.isnan(each) for name, each in labels.items()}
    rows = [{name: each[kept[name]] for name, each in mapping.items()} for mapping in (labels, scores)]
    places = {name: np.flatnonzero(each) for name, each in kept.items()}
    by_place = calibrant.compare(*rows, cluster=places)
    apart = calibrant.compare(*rows)
    assert found.estimates["a"].value == by_place.estimates["a"].value == apart.estimates["a"].value
    assert found.differences["b"].correlation == pytest.approx(
        by_place.differences["b"].correlation, abs=1e-9
    )
    assert abs(found.differences["b"].correlation) > 0.3
    assert apart.differences["b"].correlation == 0


def test_tables_are_those_of_the_labelled_rows():
    by = {"group": np.where(LOST, "nobody", GROUPS)}
    found = calibrant.estimate_by(WITH_NAN, P, by=by, cluster=CLUSTER, missing="drop")
    wanted = calibrant.estimate_by(Y[~LOST], P[~LOST], by={"group": GROUPS[~LOST]}, cluster=CLUSTER[~LOST])
    assert list(found.cells) == [("even",), ("odd",)]
    assert [each.value for each in found.cells.values()] == [each.value for each in wanted.cells.values()]
    assert found.macro == wanted.macro
    assert any(line.startswith(SENTENCE) for line in found.cautions)

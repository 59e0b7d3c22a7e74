"""`class_names=` and `--class-names`: every result that names classes has the names that were given."""

import inspect
import json

import numpy as np
import pytest
from click.testing import CliRunner
from matplotlib.figure import Figure
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import calibrant
from calibrant.cli import main

RNG = np.random.default_rng(0)
PROB = RNG.dirichlet(np.ones(3), 120)
LABEL = (RNG.random((120, 1)) > PROB.cumsum(axis=1)).sum(axis=1)
ILL, RISK = (LABEL == 1).astype(int), PROB[:, 1]
NAMES = ["cat", "dog", "eel"]


def with_names(function, *args, **options):
    """A result with names, after a check that they change nothing else."""
    plain, found = (function(*args, **options, **more) for more in ({}, {"class_names": NAMES}))
    numbers, named = json.dumps(plain.to_dict()), json.dumps(found.to_dict())
    for k, name in enumerate(NAMES):
        named = named.replace(f'"label": "{name}"', f'"label": {k}')
    assert named == numbers
    assert type(found).from_json(found.to_json()).to_dict() == found.to_dict()
    return found


def test_an_estimate_has_the_names_of_its_classes():
    found = with_names(calibrant.estimate, LABEL, PROB, notion="classwise")
    assert list(found.by_class) == NAMES
    assert [each.label for each in found.by_class.values()] == NAMES
    one = with_names(calibrant.estimate, LABEL, PROB, notion="binary", pos_label=2)
    assert one.label == "eel"
    assert "class eel" in str(one)
    whole = with_names(calibrant.estimate, LABEL, PROB, notion="canonical")
    assert list(whole.by_class) == NAMES


def test_names_of_a_vector_of_scores_are_the_negative_and_the_positive_one():
    assert calibrant.estimate(ILL, RISK, class_names=["well", "ill"]).label == "ill"
    assert calibrant.estimate(ILL, RISK, class_names={1: "ill"}).label == "ill"
    # A notion that is about no class has no label, named or not.
    assert calibrant.estimate(ILL, RISK, notion="confidence", class_names=["well", "ill"]).label is None


def test_other_results_have_the_names():
    models = {"plain": PROB, "other": (PROB + 1) / 4}
    found = calibrant.compare(LABEL, models, notion="classwise", class_names=NAMES)
    assert {tuple(each.by_class) for each in found.estimates.values()} == {tuple(NAMES)}
    for function in (calibrant.reliability_curve, calibrant.reliability_diagram, calibrant.score_histogram):
        each = function(LABEL, PROB, notion="classwise", class_names=NAMES)
        assert list(each) == [result.label for result in each.values()] == NAMES
    options = {"estimators": ["uniform"], "repetitions": 30, "class_names": ["well", "ill"]}
    assert calibrant.recommend(RISK, **options).label == "ill"


def test_calibrators_keep_the_names(tmp_path):
    calibrator = calibrant.Calibrator("sigmoid", class_names={1: "dog", 0: "cat"}).fit(PROB, LABEL)
    plain = calibrant.Calibrator("sigmoid").fit(PROB, LABEL)
    assert plain.class_names_ is None
    assert calibrator.classes_ == plain.classes_
    np.testing.assert_array_equal(calibrator.predict_proba(PROB), plain.predict_proba(PROB))
    calibrator.save(tmp_path / "map.json")
    for each in (calibrator, calibrant.Calibrator.load(tmp_path / "map.json")):
        assert each.class_names_ == ("cat", "dog", "2")
        assert "classes     cat, dog and 2" in str(each)
        assert [line.split()[0] for line in str(each).splitlines()[-3:]] == ["cat", "dog", "2"]
    params = calibrator.get_params()
    assert params["class_names"] == {1: "dog", 0: "cat"}
    assert clone(calibrator).get_params() == params
    assert not hasattr(calibrator.set_params(class_names=["x", "y"]), "class_names_")
    with pytest.raises(calibrant.InputError, match="class_names must name 3 classes"):
        calibrator.fit(PROB, LABEL)
    assert calibrator.fit(RISK, ILL).class_names_ == ("x", "y")


def test_a_calibrator_of_a_sketch_has_its_names():
    sketch = calibrant.Sketch("binary", pos_label=1, class_names=NAMES).update(LABEL, PROB)
    calibrator = sketch.calibrator("beta")
    assert calibrator.classes_ == ((0, 2), 1)
    assert calibrator.class_names_ == ("('cat', 'eel')", "dog")
    by_class = calibrant.Sketch("classwise", class_names=NAMES).update(LABEL, PROB).calibrator("beta")
    assert by_class.class_names_ == tuple(NAMES)


def test_compared_calibrators_say_which_class_the_error_is_about():
    options = {"methods": ["temperature"], "notion": "binary", "pos_label": 2}
    named = calibrant.compare_calibrators(PROB, LABEL, class_names=NAMES, **options)
    plain = calibrant.compare_calibrators(PROB, LABEL, **options)
    assert (named.label, plain.label) == ("eel", 2)
    assert "notion of the ECE  binary, class eel" in str(named)
    assert named.table == plain.table
    assert type(named).from_json(named.to_json()) == named
    with pytest.raises(calibrant.InputError, match="class_names must name 3 classes"):
        calibrant.compare_calibrators(PROB, LABEL, class_names=["a"], **options)


def test_a_display_has_the_names():
    display = pytest.importorskip("calibrant.sklearn").ReliabilityDisplay
    axes = [Figure().subplots() for _ in range(2)]
    given = {"pos_label": 2, "class_names": NAMES}
    drawn = display.from_predictions(LABEL, PROB, ax=axes[0], **given)
    model = LogisticRegression().fit(PROB, LABEL)
    display.from_estimator(model, PROB, LABEL, ax=axes[1], **given)
    assert drawn.pos_label == drawn.curve.label == drawn.diagram.label == "eel"
    assert [ax.get_xlabel() for ax in axes] == ["score of class eel"] * 2
    with pytest.raises(calibrant.InputError, match="class_names must be distinct"):
        display.from_predictions(LABEL, PROB, class_names=["a", "a", "b"])


def test_decisions_have_the_names():
    names = ["well", "ill"]
    lost = calibrant.regret(ILL, RISK, (1, 9), class_names=names)
    assert (lost.label, lost.labels) == ("ill", ("well", "ill"))
    assert calibrant.regret_curve(ILL, RISK, class_names=names).label == "ill"
    assert calibrant.net_benefit(ILL, RISK, 0.2, class_names=names).label == "ill"
    assert calibrant.best_threshold(ILL, RISK, (1, 9), class_names=names).label == "ill"
    costs = {"stay": [0, 1, 2], "go": [2, 1, 0]}
    assert calibrant.regret(LABEL, PROB, costs, class_names=NAMES).labels == tuple(NAMES)


@pytest.mark.full
def test_every_part_of_an_assessment_has_the_names():
    found = calibrant.assess(LABEL, PROB, notion="classwise", class_names=NAMES)
    assert found.classes == tuple(NAMES)
    assert list(found.estimate.by_class) == list(found.curve) == list(found.diagram) == NAMES
    assert {row.estimate.label for row in found.by_class} == {row.name for row in found.by_class} == {*NAMES}
    assert "cat" in found.html()


@pytest.mark.full
def test_a_sketch_keeps_the_names(tmp_path):
    sketch = calibrant.Sketch("classwise", class_names=NAMES).update(LABEL[:60], PROB[:60])
    sketch = sketch.update(LABEL[60:], PROB[60:]) + calibrant.Sketch()
    sketch.save(tmp_path / "day.sketch")
    for each in (sketch, calibrant.Sketch.load(tmp_path / "day.sketch")):
        assert list(each.estimate().by_class) == list(each.curve()) == NAMES
        assert each.assess().classes == tuple(NAMES)
        assert list(each.diagram(class_names=["x", "y", "z"])) == ["x", "y", "z"]
    plain = calibrant.Sketch("classwise").update(LABEL[:60], PROB[:60]).update(LABEL[60:], PROB[60:])
    assert sketch.digest == plain.digest
    by_label = calibrant.Sketch(class_names={1: "ill"}).update(ILL, RISK)
    by_label.save(tmp_path / "ill.sketch")
    assert calibrant.Sketch.load(tmp_path / "ill.sketch").regret((1, 9)).labels == ("0", "ill")


def test_sketches_of_frames_and_files_take_names(tmp_path):
    import pandas as pd

    frame = pd.DataFrame({"y": ILL, "p": RISK, "site": np.where(LABEL == 0, "a", "b")})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    given = {"label": "y", "scores": "p", "class_names": ["well", "ill"]}
    found = [calibrant.Sketch.from_frame(frame, **given), calibrant.Sketch.from_files(tmp_path, **given)]
    found += calibrant.Sketch.from_frame_by_group(frame, groups="site", **given).values()
    found += calibrant.Sketch.from_files_by_group(tmp_path, groups="site", **given).values()
    assert {each.estimate(estimator="uniform").label for each in found} == {"ill"}


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a"], "class_names must name 2 classes"),
        (["a", "a"], "class_names must be distinct"),
        ({5: "five"}, "class_names must name classes of"),
        ({0: "1"}, "class_names must be distinct"),
        ("ab", "class_names must be a sequence of names"),
        (5, "class_names must be a sequence of names"),
    ],
)
def test_names_are_checked_in_every_function(names, message):
    calls = [calibrant.estimate, calibrant.assess, calibrant.reliability_curve, calibrant.regret_curve]
    for call in (*calls, lambda *rows, **more: calibrant.Sketch(**more).update(*rows)):
        with pytest.raises((ValueError, TypeError), match=message):
            call(ILL, RISK, class_names=names)


def test_only_results_without_classes_have_no_names():
    functions = {name: getattr(calibrant, name) for name in calibrant.__all__ if name.islower()}
    parameters = {name: inspect.signature(f).parameters for name, f in functions.items() if callable(f)}
    about_classes = {name: each for name, each in parameters.items() if "labels" in each}
    assert {name for name, each in about_classes.items() if "class_names" not in each} == {
        "ece",
        "lce",
        "mce",
        "risk_coverage",
    }


def test_a_refused_update_leaves_the_sketch_as_it_was():
    sketch = calibrant.Sketch(class_names=["a", "b", "c"])
    with pytest.raises(ValueError, match="class_names must name 2 classes"):
        sketch.update(ILL, RISK)
    assert (sketch.n, sketch.notion) == (0, None)


@pytest.mark.full
def test_the_command_line_takes_names(tmp_path):
    rows = np.column_stack([LABEL, PROB])
    np.savetxt(tmp_path / "rows.csv", rows, delimiter=",", header="y,p_0,p_1,p_2", comments="", fmt="%.9g")
    (tmp_path / "names.txt").write_text("\n".join(NAMES))

    def told(command, *options):
        args = [command, tmp_path / "rows.csv", *options, "--label", "y", "-q", "--json"]
        result = CliRunner().invoke(main, [str(arg) for arg in args])
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    for names in ("cat, dog,eel", tmp_path / "names.txt"):
        found = told("ece", "--notion", "classwise", "--class-names", names)
        assert [each["label"] for each in found["by_class"]] == NAMES
    one = ("--notion", "binary", "--pos-label", "1", "--class-names", "cat,dog,eel")
    assert told("ece", *one)["label"] == "dog"
    assert told("curve", *one, "--at", "0.5")["label"] == "dog"
    assert told("check", *one, "--max-ece", "1")["estimate"]["label"] == "dog"
    assert told("regret", "--cost", "0.5", *one)["label"] == "dog"
    assert told("recommend", *one, "--estimator", "uniform", "--n", "50")["label"] == "dog"
    models = ("--model", "a=p_*", "--model", "b=p_*")
    assert {each["label"] for each in told("compare", *models, *one)["estimates"].values()} == {"dog"}

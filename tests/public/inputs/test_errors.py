"""An error is made of parts, and every surface writes them in its own words."""

import inspect
import pickle
from pathlib import Path

import pytest

import calibrant
from calibrant import InputError, InputTypeError


def test_errors_are_value_errors_and_those_of_types_type_errors_too():
    assert issubclass(InputError, ValueError)
    assert issubclass(InputTypeError, TypeError)
    assert issubclass(InputTypeError, InputError)
    assert calibrant.InputError is InputError


@pytest.mark.parametrize("kind", [InputError, InputTypeError])
def test_errors_travel_between_processes(kind):
    error = kind("level", "be a number", "x", hint="write 0.9")
    error.about = "model 'a'"
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (kind, str(error))
    assert again.rule == error.rule


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: calibrant.ece([0, 1], [0.1, 1.2]), "y_prob"),
        (lambda: calibrant.ece([0, 1, 1], [0.1, 0.2]), "y_true and y_prob"),
        (lambda: calibrant.ece([0, 1], [0.1, 0.2], notion="classes"), "notion"),
        (lambda: calibrant.ece([0, 1], [0.1, 0.2], norm="l3"), "norm"),
        (lambda: calibrant.ece([0, 1], [0.1, 0.2], estimator="unifrom"), "estimator"),
        (lambda: calibrant.ece([0, 1], [0.1, 0.2], sample_weight=[1, -1]), "sample_weight"),
        (lambda: calibrant.ece(["a", "b"], [0.1, 0.2], pos_label="c"), "pos_label"),
        (lambda: calibrant.ece([0, 1], [[0.1, 0.9], [0.4, 0.6]], labels=[1]), "labels"),
        (lambda: calibrant.estimate([0, 1], [0.1, 0.2], level=95), "level"),
        (lambda: calibrant.estimate([0, 1], [0.1, 0.2], rng=-1), "rng"),
        (lambda: calibrant.estimate([0, 1], [0.1, 0.2], estimator="ks"), "estimator"),
        (lambda: calibrant.compare([0, 1], {"a": [0.1, 0.2]}), "models"),
        (lambda: calibrant.assess([0, 1], [0.1, 0.2], groups=["a"]), "groups"),
        (lambda: calibrant.assess([0, 1], [0.1, 0.2], class_names=["a"]), "class_names"),
        (lambda: calibrant.reliability_curve([0, 1], [0.1, 0.2], method="loess"), "method"),
        (lambda: calibrant.reliability_curve([0, 1], [0.1, 0.2], bandwidth=-1), "bandwidth"),
        (lambda: calibrant.reliability_diagram([0, 1], [0.1, 0.2], binning="density"), "binning"),
        (lambda: calibrant.score_histogram([0, 1], [0.1, 0.2], bins=0), "bins"),
        (lambda: calibrant.lce([0, 1], [0.1, 0.2], at=2), "at"),
        (lambda: calibrant.recommend([0.1, 0.2], estimators=[]), "estimators"),
        (lambda: calibrant.Sketch(n_classes=1), "n_classes"),
    ],
)
def test_every_mistake_names_its_argument(call, argument):
    with pytest.raises(InputError) as refused:
        call()
    assert refused.value.argument == argument


@pytest.mark.parametrize("name", [n for n in dir(calibrant) if callable(getattr(calibrant, n))])
def test_signatures_are_those_a_type_checker_reads(name):
    function = getattr(calibrant, name)
    if inspect.isclass(function) or name.startswith("_"):
        return
    parameters = inspect.signature(function).parameters.values()
    assert not any(p.kind is p.VAR_KEYWORD for p in parameters)
    assert all(p.annotation is not p.empty for p in parameters)


def test_the_module_shows_its_public_names_alone():
    import calibrant.sklearn

    for module in (calibrant, calibrant.experiment, calibrant.plot, calibrant.sklearn):
        assert dir(module) == sorted(module.__all__)
        assert all(hasattr(module, name) for name in dir(module))


@pytest.mark.parametrize("name", ["InputError", "InputTypeError", "InputWarning"])
def test_tracebacks_show_the_public_name(name):
    kind = getattr(calibrant, name)
    assert (kind.__module__, kind.__qualname__) == ("calibrant", name)
    raised = kind("level", "be a number")
    assert type(pickle.loads(pickle.dumps(raised))) is kind


@pytest.mark.parametrize("paths", [None, 5, [None], b"x"])
def test_what_is_no_path_is_refused_by_name(paths):
    with pytest.raises(InputError) as refused:
        calibrant.Sketch.from_files(paths)
    assert refused.value.argument == "paths"


def test_names_of_classes_that_are_no_names_are_refused_by_name():
    with pytest.raises(InputError) as refused:
        calibrant.assess([0, 1], [0.1, 0.2], class_names=5)
    assert refused.value.argument == "class_names"


def test_a_sketch_that_cannot_be_saved_names_where_it_was_to_go(tmp_path):
    sketch = calibrant.Sketch().update([0, 1], [0.1, 0.9])
    for path, error in (
        (tmp_path / "missing" / "a.sketch", FileNotFoundError),
        (tmp_path, IsADirectoryError),
    ):
        with pytest.raises(error) as refused:
            sketch.save(path)
        assert refused.value.filename == str(path)
    assert not list(tmp_path.iterdir())


def test_a_path_instead_of_labels_is_told_how_to_read_files():
    for path in ("big/", Path("big")):
        with pytest.raises(
            calibrant.InputTypeError, match=r"got None; calibrant.Sketch.from_files\(path\) reads"
        ):
            calibrant.ece(path)


def test_an_unknown_estimator_is_answered_with_all_names():
    with pytest.raises(calibrant.InputError) as error:
        calibrant.ece([0, 1], [0.2, 0.7], estimator="other")
    assert all(repr(name) in str(error.value) for name in calibrant.estimator_names())
    for given, meant in (("isotnic", "isotonic"), ("quantil:10", "quantile"), ("dbta2", "dbeta2")):
        with pytest.raises(calibrant.InputError, match=f"did you mean '{meant}'"):
            calibrant.ece([0, 1], [0.2, 0.7], estimator=given)

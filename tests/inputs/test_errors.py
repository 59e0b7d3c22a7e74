"""An error is made of parts, and every surface writes them in its own words."""

import inspect
import pickle
from pathlib import Path

import pytest

import calibrant
from calibrant import InputError, InputTypeError
from calibrant.inputs import Words, helpful, parsed_json, within
from calibrant.inputs.codec import NamedTwiceError, from_text

WORDS = Words(
    {"y_prob": "scores", "y_true": "labels", "pos_label": "--pos-label"},
    {"labels": "name the columns"},
    first_row=1,
    columns=("p_a", "p_b"),
)


def test_an_error_keeps_its_parts_and_reads_in_the_words_of_a_surface():
    error = InputError("y_prob", "lie in [0, 1]", 1.5, row=3, column=1, hint="divide", advice="labels")
    assert (error.argument, error.rule, error.value, error.row, error.column) == (
        "y_prob", "lie in [0, 1]", 1.5, 3, 1,
    )  # fmt: skip
    assert str(error) == (
        "y_prob must lie in [0, 1], got 1.5 at row 3, column 1; divide; "
        "pass labels= with the class of each column"
    )
    assert error.message(WORDS) == (
        "scores must lie in [0, 1], got 1.5 at row 4, column 'p_b'; divide; name the columns"
    )


def test_two_arguments_are_called_by_both_names():
    error = InputError("y_true and y_prob", "be equally long", (3, 2), got="3 and 2")
    assert error.message(WORDS) == "labels and scores must be equally long, got 3 and 2"


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


def test_what_an_error_is_about_stands_before_it():
    expected = r"^file.csv: model 'a': y_prob must lie"
    with pytest.raises(InputError, match=expected), within("file.csv"), within("model 'a'"):
        raise InputError("y_prob", "lie in [0, 1]", 2)
    with pytest.raises(ZeroDivisionError), within("a"):
        _ = 1 / 0
    with pytest.raises(ValueError, match=r"^a: plain"), within("a"):
        raise ValueError("plain")


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


def test_a_helpful_function_keeps_its_signature_and_its_help():
    @helpful
    def ece(y_true, *, estimator: str = "auto") -> float:
        """Estimate."""
        return 0.0

    assert list(inspect.signature(ece).parameters) == ["y_true", "estimator"]
    assert ece.__doc__ == "Estimate."
    assert ece([0], estimator="l:10") == 0.0


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


def test_a_name_that_stands_twice_is_refused_alike_in_files_and_in_stored_results():
    text = '{"a": {"p": 1, "q": 2, "p": 3}}'
    with pytest.raises(NamedTwiceError, match="the name 'p' stands twice in one object") as caught:
        parsed_json(text)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.name, str(again)) == ("p", str(caught.value))
    with pytest.raises(InputError, match="estimate must have each key once, got 'p' twice"):
        from_text(text, "estimate")


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

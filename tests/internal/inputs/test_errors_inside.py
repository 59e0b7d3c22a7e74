"""An error is made of parts, and every surface writes them in its own words."""

import inspect
import pickle

import pytest

from calibrant import InputError
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


def test_what_an_error_is_about_stands_before_it():
    expected = r"^file.csv: model 'a': y_prob must lie"
    with pytest.raises(InputError, match=expected), within("file.csv"), within("model 'a'"):
        raise InputError("y_prob", "lie in [0, 1]", 2)
    with pytest.raises(ZeroDivisionError), within("a"):
        _ = 1 / 0
    with pytest.raises(ValueError, match=r"^a: plain"), within("a"):
        raise ValueError("plain")


def test_a_helpful_function_keeps_its_signature_and_its_help():
    @helpful
    def ece(y_true, *, estimator: str = "auto") -> float:
        """Estimate."""
        return 0.0

    assert list(inspect.signature(ece).parameters) == ["y_true", "estimator"]
    assert ece.__doc__ == "Estimate."
    assert ece([0], estimator="l:10") == 0.0


def test_a_name_that_stands_twice_is_refused_alike_in_files_and_in_stored_results():
    text = '{"a": {"p": 1, "q": 2, "p": 3}}'
    with pytest.raises(NamedTwiceError, match="the name 'p' stands twice in one object") as caught:
        parsed_json(text)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.name, str(again)) == ("p", str(caught.value))
    with pytest.raises(InputError, match="estimate must have each key once, got 'p' twice"):
        from_text(text, "estimate")

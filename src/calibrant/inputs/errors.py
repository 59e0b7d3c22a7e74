"""What is wrong with an input: which argument, which rule, which value, and where it stands.

An error is raised once, as these parts. Each surface (Python, the command line, files, frames) has words of
its own for the arguments, the rows and the columns, and writes the parts in them.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

# Characters of a value, and values of a list, that a message shows.
SHOWN, LISTED = 80, 20
_NOTHING: Any = object()


@dataclass(frozen=True)
class Words:
    """Words of an interface."""

    # What it calls an argument; others keep their names.
    names: Mapping[str, str] = field(default_factory=dict)
    advice: Mapping[str, str] = field(default_factory=dict)  # what to do about a kind of mistake, by the kind
    first_row: int = 0  # the number of the first row
    columns: Sequence[str] = ()  # names of the columns of scores; without them columns are counted from 0

    def called(self, argument: str) -> str:
        """What an argument is called, or two of them.

        >>> Words({"y_true": "labels", "y_prob": "scores"}).called("y_true and y_prob")
        'labels and scores'
        """
        return " and ".join(self.names.get(name, name) for name in argument.split(" and "))

    def place(self, row: int | None, column: int | str | None, axis: str) -> str:
        """Where a value stands."""
        where = [] if row is None else [f"{axis} {row + self.first_row * (axis == 'row')}"]
        if isinstance(column, int) and column < len(self.columns):
            column = self.columns[column]
        if column is not None:
            where.append(f"column {column!r}")
        return f" at {', '.join(where)}" if where else ""


#: The words of the functions of the library.
PYTHON = Words(
    advice={
        "labels": "pass labels= with the class of each column",
        "pos_label": "pass pos_label=",
        "percent": "or pass percent=True",
        "from_logits": "or pass from_logits=True",
        "exp": "apply np.exp first",
        "exp_or_logits": "apply np.exp first; to log-odds apply sigmoid, or pass from_logits=True",
        "ignored": "pass y_true[y_true != -100] and y_prob[y_true != -100]",
        "missing": 'pass missing="drop" to leave out rows without a label',
        "notion": 'use notion="classwise" or "confidence"',
        "names": "pass a mapping from names to estimators",
        "ece": "use ece()",
        "scores": "these may be predicted labels: name the scores by scores=",
        "sketch": "calibrant.Sketch.load reads it",
        "whole": "ece(), estimate(), compare() and assess() measure canonical calibration in memory",
        "sample_weight": "for importance weights pass sample_weight=",
        "rows": "use estimate(), compare() or assess() with rows in memory",
    }
)


class InputError(ValueError):
    """An argument breaks a rule.

    Parameters
    ----------
    argument : str
        Its name in the functions of the library.
    rule : str
        What it must do, as in "lie in [0, 1]".
    value : object
        What it is instead.
    row, column : int, optional
        Where that stands, counted from 0; a column may have a name instead.
    got : str, optional
        The value in words, where showing it is not enough.
    hint, advice : str
        What to do about it: in words that every surface shares, and by a kind of advice (see `Words`).
    axis : str
        What the place is counted in.

    Attributes
    ----------
    about : str
        The file or the model that it is about, where there is one; it comes first in every message.
    words : Words
        Those of the surface that raises it, in which it prints.

    See Also
    --------
    InputTypeError : The same for arguments of a wrong type.
    InputWarning : Category of warnings about valid but probably unintended input.

    Examples
    --------
    >>> error = InputError("y_prob", "lie in [0, 1]", 1.5, row=3)
    >>> print(error)
    y_prob must lie in [0, 1], got 1.5 at row 3
    >>> from calibrant.inputs.errors import Words
    >>> error.message(Words({"y_prob": "scores"}, first_row=1))
    'scores must lie in [0, 1], got 1.5 at row 4'
    """

    def __init__(
        self,
        argument: str,
        rule: str,
        value: Any = _NOTHING,
        *,
        row: int | None = None,
        column: int | str | None = None,
        got: str | None = None,
        hint: str = "",
        advice: str = "",
        axis: str = "row",
    ) -> None:
        self.argument = argument
        self.rule = rule
        self.value: Any = None if value is _NOTHING else value
        self.row = row
        self.column = column
        self.hint = hint
        self.advice = advice
        self.axis = axis
        self.got: str = got if got is not None else "" if value is _NOTHING else show(value)
        self.about: str = ""
        self.words: Words = PYTHON
        super().__init__(argument, rule)

    def __str__(self) -> str:
        return self.message(self.words)

    def message(self, words: Words) -> str:
        """Write the error in the words of a surface.

        Parameters
        ----------
        words : Words
            Names of the arguments, and how rows are counted.
        """
        text = f"{self.about}: " if self.about else ""
        text += f"{words.called(self.argument)} must {self.rule}"
        if self.got:
            text += f", got {self.got}{words.place(self.row, self.column, self.axis)}"
        ends = (self.hint, words.advice.get(self.advice, "") if self.advice else "")
        return "; ".join([text, *filter(None, ends)])


class InputWarning(UserWarning):
    """Valid but probably unintended input.

    See Also
    --------
    InputError : Invalid input.

    Examples
    --------
    >>> import calibrant
    >>> issubclass(calibrant.InputWarning, UserWarning)
    True
    """


class InputTypeError(InputError, TypeError):
    """An argument is of a type that it cannot have.

    See Also
    --------
    InputError : Base class with the attributes.

    Examples
    --------
    >>> import calibrant
    >>> try:
    ...     calibrant.ece([0, 1], [0.2, 0.7], estimator=3)
    ... except calibrant.InputTypeError as error:
    ...     error.argument
    'estimator'
    """


# Messages and tracebacks call them by the names that callers import.
InputError.__module__ = InputTypeError.__module__ = InputWarning.__module__ = "calibrant"
__test__ = {"InputError": InputError}  # doctest looks for the examples of classes of this module alone


@contextmanager
def within(about: str) -> Iterator[None]:
    """Say what an error is about, before all else: a model among several, or a file.

    >>> with within("model 'new'"):
    ...     raise InputError("y_prob", "lie in [0, 1]", 2)
    Traceback (most recent call last):
        ...
    calibrant.InputError: model 'new': y_prob must lie in [0, 1], got 2
    """
    try:
        yield
    except InputError as error:
        error.about = f"{about}: {error.about}" if error.about else about
        raise
    except (ValueError, TypeError) as error:
        raise type(error)(f"{about}: {error}") from None


def show(*values: Any) -> str:
    """Values as a message shows them, the first of many."""
    texts = [str(v) if isinstance(v, np.generic) else repr(v)[:SHOWN] for v in values[:LISTED]]
    return ", ".join(texts) + (f", ... ({len(values)} in all)" if len(values) > LISTED else "")


def show_near(value: Any, options: Iterable[Any]) -> str:
    """A value, and the option that it may be meant for."""
    near = difflib.get_close_matches(value, map(str, options), n=1) if isinstance(value, str) else []
    return show(value) + (f"; did you mean {near[0]!r}?" if near else "")

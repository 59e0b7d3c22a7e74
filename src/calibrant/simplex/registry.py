"""The registry of estimators of whole rows, by name.

A new one is one file beside this one, with a frozen dataclass that describes itself (see `RowsEstimator`),
and one line in `CLASSES`.
"""

from __future__ import annotations

from typing import Any

from calibrant.estimators import Estimator, describe
from calibrant.estimators.base import refuse_parameter
from calibrant.estimators.registry import naming_estimator
from calibrant.inputs import InputError, InputTypeError, check_choice, show
from calibrant.simplex.base import RowsEstimator
from calibrant.simplex.dirichlet import Dirichlet
from calibrant.simplex.skce import Skce
from calibrant.simplex.softmax import Softmax
from calibrant.simplex.variational import VariationalRows

# The first is what "auto" stands for.
CLASSES: tuple[type[RowsEstimator], ...] = (
    Softmax,
    Dirichlet,
    VariationalRows,
    Skce,
)


def rows_estimator_names() -> tuple[str, ...]:
    """Return the names of all estimators of whole rows.

    >>> {"dirichlet", "variational", "skce"} <= set(rows_estimator_names())
    True
    """
    return tuple(each.name for each in CLASSES)


def resolve_rows(estimator: Any) -> RowsEstimator:
    """Return the estimator of whole rows that is meant by a name or a value.

    >>> resolve_rows("variational:temperature:10")
    VariationalRows(map='temperature', n_folds=10)
    >>> resolve_rows("uniform:15")
    Traceback (most recent call last):
        ...
    calibrant.inputs.errors.InputError: estimator must compare whole vectors of scores: 'auto', ...;
    uniform:15 compares one score at a time
    """
    if isinstance(estimator, RowsEstimator):
        return estimator
    if not isinstance(estimator, str):
        if isinstance(estimator, Estimator):
            raise _one_score_at_a_time(str(estimator))
        raise InputTypeError("estimator", "be a name or a value that fits whole vectors of scores", estimator)
    name, colon, parameter = estimator.partition(":")
    known = {each.name: each for each in CLASSES}
    if name not in known and any(name in (entry.name, entry.short) for entry in describe()):
        raise _one_score_at_a_time(estimator)
    check_choice("estimator", name, ("auto", *known))
    if colon and not parameter:
        raise InputError("estimator", "have a parameter after its colon", estimator)
    if name == "auto":
        refuse_parameter(name, parameter or None)
        return CLASSES[0].parse(None)
    with naming_estimator(estimator):
        return known[name].parse(parameter or None)


def _one_score_at_a_time(text: str) -> InputError:
    rule = f"compare whole vectors of scores: {show('auto', *rows_estimator_names())}"
    return InputError("estimator", rule, text, hint=f"{text} compares one score at a time")

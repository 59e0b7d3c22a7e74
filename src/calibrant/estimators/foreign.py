"""Adapters for estimators of callers: functions, and objects with a method `fit`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant.estimators.base import NORMS, Estimator, Fit, Norm, SupportsFit, ValueFit
from calibrant.inputs import InputError, InputTypeError, is_number
from calibrant.score_data import Array, ScoreData


@dataclass(frozen=True)
class Function(Estimator):
    """A function f(scores, outcomes, weights) -> float, called once for each problem.

    >>> from calibrant.score_data import Sample
    >>> def bias(scores, outcomes, weights):
    ...     return abs(np.average(outcomes - scores, weights=weights))
    >>> Function(bias).fit(Sample(np.array([0.5, 0.5]), np.array([True, True]))).error()
    array(0.5)
    """

    function: Callable[[Array, Array, Array], float]
    norms: ClassVar[tuple[Norm, ...]] = ("l1",)

    def __str__(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    def fit(self, data: ScoreData) -> ValueFit:
        """Call the function on the rows of each problem."""
        values = [self.function(*rows) for rows in data.rows()]
        for value in values:
            if np.ndim(value) or not is_number(np.asarray(value)[()]):
                raise InputTypeError(f"the function {self}", "return a number", value)
        return ValueFit(self, np.reshape(np.array(values, dtype=float), data.batch))


@dataclass(frozen=True, eq=False)
class ForeignFit(Fit):
    """Result of the method `fit` of an object, for a batch."""

    fitted: Any
    batch: tuple[int, ...]

    def _error(self, norm: Norm) -> Array:
        error = np.asarray(self.fitted.error(norm))
        if error.shape != self.batch:
            rule = f"return errors of the shape {self.batch} of the batch"
            raise InputError(f"the estimator {self.estimator}", rule, error, got=str(error.shape))
        return error


@dataclass(frozen=True)
class Foreign(Estimator):
    """An object with a method `fit` that is not an `Estimator`; its `norms` and `measures_ece` are used.

    >>> from calibrant.score_data import Sample
    >>> class Half:
    ...     def fit(self, data):
    ...         return Half()
    ...     def error(self, norm):
    ...         return 0.5
    >>> Foreign(Half()).fit(Sample(np.array([0.5]), np.array([True]))).error()
    array(0.5)
    >>> str(Foreign(Half()))
    'Half'
    """

    value: SupportsFit

    @property
    def norms(self) -> tuple[Norm, ...]:
        """Norms that are defined."""
        return getattr(self.value, "norms", NORMS)

    @property
    def measures_ece(self) -> bool:
        """Whether the ECE is estimated, rather than a different measure."""
        return getattr(self.value, "measures_ece", True)

    def __str__(self) -> str:
        plain = type(self.value).__str__ is object.__str__ and type(self.value).__repr__ is object.__repr__
        return type(self.value).__name__ if plain else str(self.value)

    def fit(self, data: ScoreData) -> ForeignFit:
        """Fit the wrapped estimator."""
        return ForeignFit(self, self.value.fit(data), data.batch)

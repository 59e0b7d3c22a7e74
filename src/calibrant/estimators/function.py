"""Any plain function f(scores, outcomes, weights) -> float as an estimator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibrant.estimators.base import Norm, check_norm
from calibrant.evidence import Array, Evidence
from calibrant.inputs import is_number


@dataclass(frozen=True, eq=False)
class FunctionFit:
    """The numbers a function returned."""

    value: Array
    name: str

    def error(self, norm: Norm = "l1") -> Array:
        """The function's own number; other norms are not defined."""
        check_norm(norm, ("l1",), f"the function {self.name}")
        return self.value


@dataclass(frozen=True)
class Function:
    """Wraps f(scores, outcomes, weights) -> float; called once for each problem.

    >>> from calibrant.evidence import Sample
    >>> def bias(scores, outcomes, weights):
    ...     return abs(np.average(outcomes - scores, weights=weights))
    >>> Function(bias).fit(Sample(np.array([0.5, 0.5]), np.array([True, True]))).error()
    array(0.5)
    """

    function: Callable[[Array, Array, Array], float]

    def __str__(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    def fit(self, evidence: Evidence) -> FunctionFit:
        """Call the function on the rows of each problem."""
        values = [self.function(*rows) for rows in evidence.rows()]
        for value in values:
            if np.ndim(value) or not is_number(np.asarray(value)[()]):
                raise TypeError(f"the function {self} must return a number, got {value!r}")
        return FunctionFit(np.reshape(np.array(values, dtype=float), evidence.batch), str(self))

"""What an estimator of whole rows is: a frozen value of choices that fits vectors of scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from calibrant.estimators.base import ROUNDING, refuse_parameter
from calibrant.evidence.simplex import Simplex
from calibrant.inputs import Array, InputError, check_choice

RowsNorm = Literal["l1", "l2", "mul"]
ROWS_NORMS: tuple[RowsNorm, ...] = ("l1", "l2", "mul")
# No distance between two vectors of probabilities is larger, in any of the norms.
LARGEST = 2.0


class RowsEstimator(ABC):
    """A frozen value of choices. A subclass is a frozen dataclass that describes itself and has `fit`.

    Attributes
    ----------
    name : str
        What callers write before the colon.
    parameter : str
        What the text after the colon says; "none" where there is no such text.
    summary : str
        What is measured, in a few words.
    norms : tuple of str
        Norms that it defines; its fit refuses the others.
    measures_ece : bool
        Whether it estimates the calibration error, and no measure of its own.
    lower_bound : bool
        Whether what it reads lies, on average, below the error.
    """

    name: str = ""
    parameter: str = "none"
    summary: str = ""
    norms: tuple[RowsNorm, ...] = ROWS_NORMS
    measures_ece: bool = True
    lower_bound: bool = False

    @classmethod
    def parse(cls, parameter: str | None) -> Self:
        """Make the estimator from the text after the colon of its name; without a colon there is None."""
        refuse_parameter(cls.name, parameter)
        return cls()

    @abstractmethod
    def fit(self, rows: Simplex) -> RowsFit:
        """Look at the rows once; the fit answers for every norm."""

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False)
class RowsFit(ABC):
    """An estimator after it has seen rows.

    Parameters
    ----------
    estimator : RowsEstimator
        Whose fit this is.
    """

    estimator: RowsEstimator

    def error(self, norm: RowsNorm = "l1") -> float:
        """Return the calibration error.

        Parameters
        ----------
        norm : {"l1", "l2", "mul"}
            The mean of sum_k |eta_k - p_k|, the root of the mean of sum_k (eta_k - p_k)^2, or the mean of
            sum_k eta_k |eta_k - p_k|, eta being the probabilities that scores p stand for.
        """
        check_rows_norm(norm, self.estimator)
        value = float(self._error(norm))
        fine = np.isfinite(value)
        if self.estimator.measures_ece:
            fine = fine and -ROUNDING <= value <= LARGEST + ROUNDING
        if not fine:
            rule = "return a finite error" + " from 0 to 2" * self.estimator.measures_ece
            raise InputError(f"the estimator {self.estimator}", rule, value)
        return value

    @abstractmethod
    def _error(self, norm: RowsNorm) -> float:
        """Return the error in a norm that the estimator defines."""


def check_rows_norm(norm: str, estimator: RowsEstimator | None = None) -> None:
    """Refuse a norm that does not exist for whole rows, or that an estimator does not define."""
    check_choice("norm", norm, ROWS_NORMS)
    if estimator is not None and norm not in estimator.norms:
        defined = f"{estimator} defines norm {', '.join(map(repr, estimator.norms))}"
        raise InputError("norm", f"suit the estimator: {defined}", norm)


def distance(frequency: Array, rows: Simplex, norm: RowsNorm) -> float:
    """Return how far the scores of rows lie from some probabilities.

    >>> rows = Simplex.of(np.array([[0.5, 0.5]]), np.array([0]))
    >>> [round(distance(np.array([[0.8, 0.2]]), rows, norm), 6) for norm in ROWS_NORMS]
    [0.6, 0.424264, 0.3]
    """
    gap = np.abs(frequency - rows.score)
    each = {"l1": gap, "l2": gap * gap, "mul": frequency * gap}[norm].sum(axis=1)
    mean = rows.mean(each)[0]
    return float(np.sqrt(mean)) if norm == "l2" else mean

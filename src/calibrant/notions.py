"""The notions of calibration: which score is compared with which outcome.

A notion turns checked predictions into one-dimensional problems, a score in [0, 1] and an
outcome in {0, 1}, and joins the errors of several problems into one number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant._check import Predictions, check_choice
from calibrant._names import NOTIONS

Array = NDArray[Any]

# Scores of a block of classes: enough columns for long reads, few enough for little memory.
BLOCK = 1 << 24


class Problem(NamedTuple):
    """Scores and outcomes of one problem, or of a block of them along the first axis."""

    score: Array
    outcome: Array
    support: tuple[float, float]


@dataclass(frozen=True)
class Notion:
    """One of "class", "classwise" and "confidence".

    - `class`: the score of one class against its frequency.
    - `classwise`: the same for every class in turn.
    - `confidence`: the largest score against the accuracy of predicting its class.
    """

    name: str

    def problems(self, data: Predictions) -> Iterator[Problem]:
        """The one-dimensional problems this notion asks about.

        Raises
        ------
        ValueError
            If the class is not known: a matrix of more than two columns needs `pos_label`.
        """
        if self.name == "confidence":
            yield _confidence(data)
        elif self.name == "classwise":
            yield from _classwise(data)
        elif data.positive is None:
            raise ValueError(
                f'notion="class" on a matrix of {data.score.shape[1]} columns needs pos_label, one of '
                f'{list(data.labels)}; or ask for notion="classwise" or "confidence"'
            )
        elif data.score.ndim == 1:
            yield Problem(data.score, data.code, (0.0, 1.0))
        else:
            yield Problem(data.score[:, data.positive], data.code == data.positive, (0.0, 1.0))

    def combine(self, errors: Array, norm: str) -> float:
        """One number from the errors of all problems: mean, root mean square or maximum.

        >>> Notion("classwise").combine(np.array([0.1, 0.3]), "l1")
        0.2
        """
        if norm == "max":
            return float(np.max(errors))
        return float(np.mean(errors)) if norm == "l1" else float(np.sqrt(np.mean(np.square(errors))))


def parse(notion: str | None, data: Predictions) -> Notion:
    """The notion asked for; without one, `class` for 1-D scores and `confidence` for a matrix."""
    if notion is None:
        return Notion("class" if data.score.ndim == 1 else "confidence")
    return named(notion)


def named(notion: str) -> Notion:
    """The notion of this name."""
    if notion == "multiclass":
        raise ValueError(
            'notion="multiclass" compares whole probability vectors and is not available yet; '
            'ask for "confidence", "classwise" or "class"'
        )
    check_choice("notion", notion, NOTIONS)
    return Notion(notion)


def _complement(score: Array) -> Array:
    """1 - p, in double precision whatever p has."""
    return 1 - score.astype(np.float64, copy=False)


def _confidence(data: Predictions) -> Problem:
    score, code = data.score, data.code
    if score.ndim == 1:
        # The columns are [1 - p, p]; a tie is the first column's.
        positive = score > 0.5
        return Problem(np.where(positive, score, _complement(score)), positive == code, (0.5, 1.0))
    best = score.argmax(axis=1)
    top = np.take_along_axis(score, best[:, None], axis=1)[:, 0]
    return Problem(top, best == code, (1 / score.shape[1], 1.0))


def _classwise(data: Predictions) -> Iterator[Problem]:
    score, code = data.score, data.code
    if score.ndim == 1:
        yield Problem(np.stack([_complement(score), score]), np.stack([~code, code]), (0.0, 1.0))
        return
    n, classes = score.shape
    code = code.astype(np.min_scalar_type(classes), copy=False)
    step = max(1, BLOCK // n)
    for first in range(0, classes, step):
        block = score[:, first : first + step]
        outcome = code[:, None] == np.arange(first, first + block.shape[1], dtype=code.dtype)
        yield Problem(block.T, outcome.T, (0.0, 1.0))

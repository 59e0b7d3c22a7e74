"""The commonest calls, plain arrays and bins of equal width, by one loop that checks rows and sums them.

What it does not know, or finds wrong, it leaves to the way of all other calls: that one says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from calibrant import compiled
from calibrant.estimators.base import NORMS
from calibrant.estimators.binned import Binned, BinnedFit
from calibrant.estimators.bins import equal_edges
from calibrant.estimators.registry import parse
from calibrant.evidence import Array, Bins
from calibrant.evidence.loops import PIECE
from calibrant.inputs import TOLERANCE
from calibrant.questions import Notion, usual

# Classes so few that what is kept of a row takes as long to write down as to find.
FEW = 24
# Sums labels and scores by outcome and bin.
Loop = Callable[[Array, Array], Array]


def error_at_once(y_true: Any, y_prob: Any, notion: Any, estimator: Any, norm: Any) -> float | None:
    """Return the error of one score, or of the largest one of each row; None where it is another way's.

    >>> y_true, y_prob = np.array([0, 1, 1]), np.array([0.2, 0.4, 0.9])
    >>> error = error_at_once(y_true, y_prob, None, "uniform:2", "l1")
    >>> error is None or round(error, 6) == 0.166667  # None without the compiled loops
    True
    >>> error_at_once(y_true.tolist(), y_prob, None, "uniform:2", "l1")
    """
    if compiled.loops is None or type(y_true) is not np.ndarray or type(y_prob) is not np.ndarray:
        return None
    n = len(y_prob) if y_prob.ndim in (1, 2) else 0
    if not n or y_true.shape != (n,) or y_prob.dtype.char not in "df":
        return None
    if type(norm) is not str or norm not in NORMS:
        return None
    try:
        if (chosen := _equal_bins(estimator)) is None:
            return None
        edges = equal_edges(chosen.n_bins)
        loop = _loop(compiled.loops, y_prob, usual(notion, vector=y_prob.ndim == 1), edges[1:-1])
        if loop is None:
            return None
        sums = loop(y_true, y_prob) if n <= PIECE else _by_piece(loop, y_true, y_prob)
    except (TypeError, ValueError):
        return None
    (negative, positive), (low, high) = sums[:, :, 0]
    bins = Bins(negative + positive, low + high, positive)
    return float(BinnedFit(chosen, edges, bins, bins.w.sum()).error(norm))


def _loop(loops: ModuleType, y_prob: Array, notion: Notion, cuts: Array) -> Loop | None:
    """Return what sums some rows by outcome and bin, and refuses what is unusual; None for other notions."""

    def of_scores(label: Array, score: Array) -> Array:
        sums = np.zeros((2, 2, 1, cuts.size + 1))
        loops.add_sums(score, label, None, cuts, None, sums, 1, False, None, None)
        return sums

    def of_confidences(label: Array, score: Array) -> Array:
        sums = np.zeros((2, 2, 1, cuts.size + 1))
        if loops.add_confidences(score, label, cuts, sums) > TOLERANCE[8]:
            raise ValueError("a row has another sum")
        return sums

    if y_prob.ndim == 1 and notion.one_class and not notion.of_pairs:
        # Scores that are all 0 or 1 need a word of caution, which one score between them spares.
        return of_scores if 0 < y_prob.item(0) < 1 else None
    few = y_prob.ndim == 2 and 2 <= y_prob.shape[1] <= FEW
    return of_confidences if few and notion.top == 1 and notion.tells_accuracy else None


def _by_piece(loop: Loop, y_true: Array, y_prob: Array) -> Array:
    """Sum very many rows, some at a time: their sums are added in the order that the usual way has."""
    rows = [slice(a, a + PIECE) for a in range(0, len(y_prob), PIECE)]
    sums, *others = compiled.shared(lambda some: loop(y_true[some], y_prob[some]), rows)
    for other in others:
        sums += other
    return sums


def _equal_bins(estimator: Any) -> Any:
    """Return bins of equal width in a given number, if that is what an estimator or its name means."""
    if type(estimator) is str:
        estimator = parse(estimator)
    if type(estimator) is Binned and estimator.binning == "uniform" and estimator.mapping == "one":
        return estimator if type(estimator.n_bins) is int else None
    return None

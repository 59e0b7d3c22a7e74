"""The commonest call, two plain arrays and bins of equal width, by one loop that checks rows and sums them.

What it does not know, or finds wrong, it leaves to the way of all other calls: that one says what is wrong.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant import compiled
from calibrant.estimators.base import NORMS
from calibrant.estimators.binned import Binned, BinnedFit
from calibrant.estimators.bins import equal_edges
from calibrant.estimators.registry import parse
from calibrant.evidence import Bins
from calibrant.evidence.loops import PIECE
from calibrant.inputs import InputError


def error_at_once(y_true: Any, y_prob: Any, estimator: Any, norm: Any) -> float | None:
    """Return the error of one score against labels 0 and 1; None where the usual way has to be gone.

    >>> y_true, y_prob = np.array([0, 1, 1]), np.array([0.2, 0.4, 0.9])
    >>> error = error_at_once(y_true, y_prob, "uniform:2", "l1")
    >>> error is None or round(error, 6) == 0.166667  # None without the compiled loops
    True
    >>> error_at_once(y_true.tolist(), y_prob, "uniform:2", "l1")
    """
    if (loops := compiled.loops) is None or type(y_true) is not np.ndarray or type(y_prob) is not np.ndarray:
        return None
    if y_prob.ndim != 1 or y_prob.dtype.char not in "df" or not 0 < len(y_prob) <= PIECE:
        return None
    # Scores that are all 0 or 1 need a word of caution, which one score between them spares.
    if not 0 < y_prob.item(0) < 1 or type(norm) is not str or norm not in NORMS:
        return None
    if (chosen := _equal_bins(estimator)) is None:
        return None
    edges, sums = equal_edges(chosen.n_bins), np.zeros((2, 2, 1, chosen.n_bins))
    try:
        loops.add_sums(y_prob, y_true, None, edges[1:-1], None, sums, 1, False, None, None)
    except (TypeError, ValueError):
        return None
    (negative, positive), (low, high) = sums[:, :, 0]
    bins = Bins(negative + positive, low + high, positive)
    return float(BinnedFit(chosen, edges, bins, bins.w.sum()).error(norm))


def _equal_bins(estimator: Any) -> Any:
    """Return bins of equal width in a given number, if that is what an estimator or its name means."""
    if type(estimator) is str:
        try:
            estimator = parse(estimator)
        except InputError:
            return None
    if type(estimator) is Binned and estimator.binning == "uniform" and estimator.mapping == "one":
        return estimator if type(estimator.n_bins) is int else None
    return None

"""Cross-fitted calibration maps: the rows of each fold are mapped by a map fitted to the other folds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

import numpy as np

from calibrant.inputs import InputError, Predictions, select_rows
from calibrant.maps.calibrator import Calibrator
from calibrant.maps.methods import METHODS
from calibrant.parallel import parallel_map
from calibrant.score_data import Array

# Largest number of rows that are assigned to folds one by one; for more, each count is divided evenly.
MOST_REPEATED = 1 << 22


def methods_for(data: Predictions) -> list[str]:
    """Return the names of the applicable methods; multiclass methods need more than two classes."""
    two = data.score.ndim == 1 or len(data.labels) == 2
    return [name for name, method in METHODS.items() if not two or method.fit_binary is not None]


def content_order(data: Predictions) -> Array:
    """Return the rows, or the clusters, in an order that depends on what they hold and not on their place.

    >>> from calibrant.inputs import predictions
    >>> content_order(predictions([1, 0, 1], [0.9, 0.4, 0.2]))
    array([1, 2, 0])
    """
    if data.cluster is not None:  # clusters are numbered by their rows
        return np.arange(int(data.cluster.max()) + 1)
    score = data.score.astype(np.float64, copy=False)
    if score.ndim == 2:
        score = np.einsum("ij,j->i", score, np.random.default_rng(0).random(score.shape[1]))
    weight = np.ones(len(score)) if data.weight is None else data.weight
    return np.lexsort((weight, score, data.code))


def folds_of(data: Predictions, cv: int, rng: np.random.Generator) -> Array:
    """Return the fold of each row: stratified by class, or by whole clusters.

    Equal rows can change places, but otherwise a row has the same fold in any order of the rows.

    Parameters
    ----------
    data : Predictions
    cv : int
        Number of folds; fewer if there are fewer rows or clusters.
    rng : Generator
    """
    order = content_order(data)
    size = order.size
    if size < 2:
        what = "rows" if data.cluster is None else "clusters"
        raise InputError("y_prob", f"be of at least two {what}, to learn from one and judge on another", size)
    order = rng.permuted(order)
    if data.cluster is None:
        order = order[np.argsort(data.code[order], kind="stable")]
    fold = np.empty(size, dtype=np.intp)
    fold[order] = np.arange(size) % min(cv, size)
    return fold if data.cluster is None else np.asarray(fold[data.cluster])


def rows_in_folds(data: Predictions, cv: int, rng: np.random.Generator) -> tuple[Predictions, Array]:
    """Return the rows and the fold of each row; a row with a count is divided among the folds.

    The folds are the same as for repeated rows. Above `MOST_REPEATED` rows each count is divided evenly.

    Examples
    --------
    >>> from calibrant.inputs import predictions
    >>> data = predictions([0, 1], [0.2, 0.6], counts=[2, 4])
    >>> rows, fold = rows_in_folds(data, 2, np.random.default_rng(0))
    >>> rows.code, rows.weight, fold
    (array([False, False,  True,  True]), array([1, 1, 2, 2]), array([0, 1, 0, 1]))
    """
    if data.weight is None or not data.counts or data.cluster is not None:
        return data, folds_of(data, cv, rng)
    if data.n_rows <= MOST_REPEATED:
        row = np.repeat(np.arange(len(data.code)), data.weight)
        fold = folds_of(select_rows(replace(data, weight=None), row), cv, rng)
        pair, count = np.unique(row * cv + fold, return_counts=True)
    else:
        first = np.empty((len(data.code), cv), dtype=np.intp)
        first[content_order(data)] = rng.permuted(np.tile(np.arange(cv), (len(data.code), 1)), axis=1)
        each = (data.weight[:, None] // cv + (first < data.weight[:, None] % cv)).ravel()
        pair = np.flatnonzero(each)
        count = each[pair]
    return replace(select_rows(data, pair // cv), weight=count), pair % cv


def cross_fitted(data: Predictions, method: str, fold: Array) -> Predictions:
    """Return the rows with cross-fitted scores.

    Examples
    --------
    >>> from calibrant.inputs import predictions
    >>> data = predictions([0, 1, 0, 1, 1], [0.2, 0.6, 0.4, 0.9, 0.7])
    >>> cross_fitted(data, "identity", np.array([0, 1, 0, 1, 0])).score
    array([0.2, 0.6, 0.4, 0.9, 0.7])
    """
    numbers = range(int(fold.max()) + 1)
    return joined(data, fold, parallel_map(partial(mapped, data, method, fold), numbers))


def joined(data: Predictions, fold: Array, scores_by_fold: Iterable[Array]) -> Predictions:
    """Return the rows with their scores replaced by those of each fold."""
    score = np.empty(data.score.shape)
    for k, fold_scores in enumerate(scores_by_fold):
        score[fold == k] = fold_scores
    return replace(data, score=score)


def mapped(data: Predictions, method: str, fold: Array, k: int) -> Array:
    """Return the scores of fold `k`, calibrated by a map fitted to the other folds."""
    test = fold == k
    return Calibrator(method)._fit_predictions(select_rows(data, ~test)).predict_proba(data.score[test])

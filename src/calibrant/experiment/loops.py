"""Scores by scikit-learn's forests and support vector machines, in compiled loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from calibrant import compiled
from calibrant.evidence import Array

Predict = Callable[[Array], Array]

# Rows on which a loop is held to the model's own function before it is used, and how near it must come.
TRIED, NEAR = 32, 1e-9


def predictor(model: Any, rows: Array) -> Predict:
    """Return what gives the scores of rows: the model's own function, or a loop with the same numbers.

    A forest's are the same to the last bit. Those of a support vector machine agree to 13 digits. What the
    loops read is inside of scikit-learn, and another release may keep it elsewhere: the first rows
    are scored both ways, and the model scores for itself where anything is missing or differs.
    """
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.svm import SVC

    own: Predict = model.predict_proba
    if type(model) is RandomForestClassifier and model.n_outputs_ == 1:
        loop, arguments, dtype = getattr(compiled.loops, "forest", None), _of_forest, "f4"
    elif type(model) is SVC and model.kernel == "rbf" and model.probability and not model._sparse:
        loop, arguments, dtype = getattr(compiled.loops, "coupled", None), _of_machine, "f8"
    else:
        loop = None
    if loop is None or not len(rows):
        return own
    try:
        before, after = arguments(model)
    except AttributeError:
        return own

    def predict(rows: Array) -> Array:
        rows = np.ascontiguousarray(rows, dtype=dtype)
        if rows.shape[1:] != (model.n_features_in_,) or not np.isfinite(rows).all():
            return own(rows)  # which says what is wrong
        scores = np.empty((len(rows), len(model.classes_)))
        loop(rows, *before, scores, *after)
        return scores

    some = rows[:TRIED]
    return predict if np.allclose(predict(some), own(some), rtol=0, atol=NEAR) else own


def _of_forest(model: Any) -> tuple[list[Any], list[Any]]:
    """Return the nodes of all trees: features, thresholds, children, where each tree begins, and values."""
    trees = [tree.tree_ for tree in model.estimators_]

    def joined(name: str) -> Array:
        return np.concatenate([getattr(tree, name) for tree in trees])

    # Rows are in single precision: they lie above a threshold where they lie above the float before it.
    limit = joined("threshold")
    threshold = limit.astype(np.float32)
    threshold = np.where(threshold > limit, np.nextafter(threshold, np.float32(-np.inf)), threshold)
    names = "feature", "children_left", "children_right"
    feature, left, right = (joined(name).astype(np.int32) for name in names)
    starts = np.cumsum([0, *(tree.node_count for tree in trees)], dtype=np.int64)
    return [feature, threshold, left, right, starts, np.ascontiguousarray(joined("value")[:, 0])], []


def _of_machine(model: Any) -> tuple[list[Any], list[Any]]:
    """Return the vectors by class, their shares, three numbers of each pair of classes, and the kernel's."""
    starts = np.cumsum([0, *model.n_support_], dtype=np.int64)
    pairs = model._intercept_, model._probA, model._probB
    arrays = model.support_vectors_, model._dual_coef_.T, starts, *pairs
    return [np.ascontiguousarray(array) for array in arrays], [model._gamma]

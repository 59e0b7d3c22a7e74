"""What a fitted model says: its probabilities, the class of each column, and what it lacks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


def probabilities(estimator: Any, X: Any) -> tuple[Any, tuple[Any, ...] | None]:
    """Return the matrix of a fitted model and the class of each column, if the model says it."""
    try:
        predict = estimator.predict_proba
    except AttributeError as error:
        # As scikit-learn's own scorers: a model that lacks a method lacks an attribute.
        raise AttributeError(
            f"estimator must have predict_proba, got {estimator!r}, whose scores are no probabilities; "
            "calibrate it first: calibrant.sklearn.CalibratedModel"
        ) from error
    score, classes = predict(X), getattr(estimator, "classes_", None)
    if isinstance(score, list) or isinstance(classes, list):
        raise ValueError(
            f"estimator must have one output, got {len(score)} matrices from predict_proba; "
            "call calibrant.ece for each"
        )
    if np.ndim(score) == 2 and np.shape(score)[1] == 1:
        known = "" if classes is None else f", {classes[0]!s}"
        raise ValueError(
            f"estimator must know at least two classes, got one{known}; its training data held no other: "
            "use a stratified split"
        )
    return score, None if classes is None else tuple(np.asarray(classes).tolist())


@contextmanager
def explaining(y: Any, classes: tuple[Any, ...] | None) -> Iterator[None]:
    """Say so if the reason of an error is a label that the model has never seen."""
    try:
        yield
    except ValueError as error:
        present = dict.fromkeys(np.asarray(y).ravel().tolist())
        known = present if classes is None else classes
        unseen = [label for label in present if label is not None and label == label and label not in known]
        if not unseen:
            raise
        # A model of fewer classes is asked another question: its score does not belong beside the others.
        raise ValueError(
            f"y must hold only classes that the model was fitted on, {list(known)}, got {unseen[0]!r}; "
            "its training data held none of that class: use a stratified split, or fewer folds"
        ) from error

"""Scores that are not probabilities of exclusive classes: logits, and matrices of several labels."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from calibrant.inputs.columns import column_names
from calibrant.inputs.errors import InputError, InputTypeError, InputWarning
from calibrant.inputs.predictions import Array, Predictions, class_labels, predictions, read, scores
from calibrant.inputs.rounding import TOLERANCE

# Fewer log-odds may all lie in [0, 1] by chance, so they get no warning.
MANY = 20
_LEAVE_OUT = "leave out from_logits=True, or pass the logits"


class _Columns(np.ndarray):
    """Scores that keep the column names of their frame."""

    columns: tuple[Any, ...] | None = None


def probabilities(logits: Any, *, free: bool = False, refuse: bool = False, warn: bool = True) -> Array:
    """Return the probabilities of logits: the sigmoid of 1-D log-odds, the softmax of a matrix.

    Parameters
    ----------
    logits : array of shape (N,) or (N, C)
        Log-odds or logits. A warning tells that they look like probabilities.
    free : bool
        Whether the columns of a matrix are log-odds of labels that do not exclude each other.
    refuse, warn : bool
        Whether rows of a matrix that sum to 1 are an error, and whether there are warnings.

    Examples
    --------
    >>> probabilities(np.array([[0.0, 0.0], [np.log(3), 0.0]]))
    array([[0.5 , 0.5 ],
           [0.75, 0.25]])
    """
    from scipy.special import expit

    array, tolerance = read("y_prob", logits)
    if array.dtype.kind not in "biuf":
        raise InputTypeError("y_prob", "hold real numbers", array.dtype, got=f"dtype {array.dtype}")
    # Double-precision probabilities may have been computed in single precision.
    tolerance = tolerance or max(TOLERANCE.get(array.dtype.itemsize, 0.0), TOLERANCE[4])
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        row = int(np.argmax(~np.isfinite(array).reshape(len(array), -1).all(axis=1)))
        raise InputError("y_prob", "be finite", array[row], row=row)
    separate = array.ndim == 1 or free
    suspect = array.size > 0 and bool(((array >= 0) & (array <= 1)).all())
    if separate:
        suspect = suspect and array.size >= MANY
    else:  # the logits of one or two rows may sum to 1 by chance
        suspect = suspect and len(array) > 2 and np.ptp(np.append(array.sum(axis=1), 1)) <= tolerance
    if suspect and refuse and not separate:
        got = "probabilities: rows in [0, 1] that sum to 1"
        hint = f"{_LEAVE_OUT} that the softmax was taken of"
        raise InputError("y_prob", "hold logits with from_logits=True", got=got, hint=hint)
    if suspect and warn:
        seen = "all values of y_prob lie in [0, 1]" + " and rows sum to 1" * (not separate)
        text = f"{seen}, and from_logits=True takes them for log-odds: leave it out if they are probabilities"
        warnings.warn(text, InputWarning, stacklevel=5)
    if separate:
        found = expit(array)
    else:
        found = np.exp(array - array.max(axis=1, keepdims=True))
        found /= found.sum(axis=1, keepdims=True)
    if array.ndim == 1:
        return np.asarray(found)
    found = found.view(_Columns)
    found.columns = column_names(logits)
    return found


def multilabel(
    y_true: Any, y_prob: Any, *, labels: Any = None, sample_weight: Any = None, counts: Any = None
) -> Predictions:
    """Check matrices of scores and of labels (1 where a row has the label), whose rows need not sum to 1.

    >>> data = multilabel([[1, 1], [0, 1]], [[0.9, 0.8], [0.3, 0.6]])
    >>> data.labels, data.code.tolist()
    ((0, 1), [[True, True], [False, True]])
    """
    score, truth = scores("y_prob", y_prob), read("matrix of labels", y_true)[0]
    if score.ndim != 2 or truth.shape != score.shape:
        got = f"shapes {truth.shape} and {score.shape}"
        raise InputError("y_true and y_prob", "be matrices of the same shape (rows, labels)", got=got)
    if not len(score):
        raise InputError("y_true and y_prob", "not be empty", 0, got="0 rows")
    if truth.dtype.kind not in "biuf" or (bad := (truth != 0) & (truth != 1)).any():
        place = tuple(map(int, np.argwhere(bad)[0])) if truth.dtype.kind in "biuf" else (0, 0)
        rule = "be 1 where a row has the label, and 0 elsewhere"
        raise InputError("y_true", rule, truth[place], row=place[0], column=place[1])
    names = column_names(y_prob), column_names(y_true)
    if None not in names and set(names[0] or ()) == set(names[1] or ()):
        truth = truth[:, [(names[1] or ()).index(name) for name in names[0] or ()]]
    classes = names[0] or names[1] or tuple(range(score.shape[1]))
    classes = classes if labels is None else class_labels(labels)
    if len(classes) != score.shape[1]:
        raise InputError("labels", f"name {score.shape[1]} columns", classes)
    options = {"sample_weight": sample_weight, "counts": counts}
    rows = predictions(np.zeros(len(score), dtype=int), score[:, 0], **options)
    kept = slice(None) if rows.kept is None else rows.kept
    code = truth.astype(bool)[kept]
    return replace(rows, score=score[kept], code=code, labels=tuple(classes), positive=None)

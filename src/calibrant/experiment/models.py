"""Model families that turn a small training set into scores.

A family is a function of a seed that returns a classifier with `fit`, `predict_proba` and
`classes_`, as scikit-learn's have.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from calibrant.score_data import Array

# Rows scored at a time: kernel machines and forests need scratch space for each.
CHUNK = 100_000


def logistic(seed: int) -> Any:
    """Make a logistic regression."""
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=1000)


def naive_bayes(seed: int) -> Any:
    """Make a Gaussian naive Bayes model."""
    from sklearn.naive_bayes import GaussianNB

    return GaussianNB()


def svc(seed: int) -> Any:
    """Make a support vector classifier with Platt's scaling for each pair and pairwise coupling.

    scikit-learn announces the end of `probability=True` for version 1.11. Its replacement scales
    one class against the rest, which is another model with about twice the calibration error.
    """
    from sklearn.svm import SVC

    return SVC(probability=True, random_state=seed)


def forest(seed: int) -> Any:
    """Make a random forest of 100 trees."""
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_estimators=100, random_state=seed)


FAMILIES: dict[str, Callable[[int], Any]] = {
    "logistic": logistic,
    "naive-bayes": naive_bayes,
    "svc": svc,
    "forest": forest,
}


def fit(family: Callable[[int], Any], features: Array, labels: Array, seed: int) -> Any:
    """Fit a classifier."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*probability.*", category=FutureWarning)
        return family(seed).fit(features, labels)


def scores(model: Any, features: Array, n_classes: int) -> Array:
    """Score of every class for every row; a class the model never saw has score 0."""
    score = np.zeros((len(features), n_classes))
    seen = np.asarray(model.classes_, dtype=np.intp)
    for a in range(0, len(features), CHUNK):
        score[a : a + CHUNK, seen] = model.predict_proba(features[a : a + CHUNK])
    return score

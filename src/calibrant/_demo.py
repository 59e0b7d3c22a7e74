"""A small, real example: handwritten digits, and a forest that is surer than it says."""

from __future__ import annotations

from calibrant.evidence import Array


def digits() -> tuple[Array, Array]:
    """The digits that ship with scikit-learn, and a random forest's held-out scores."""
    from sklearn.datasets import load_digits
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import cross_val_predict

    data = load_digits()
    forest = RandomForestClassifier(n_estimators=100, random_state=0)
    return data.target, cross_val_predict(forest, data.data, data.target, cv=5, method="predict_proba")

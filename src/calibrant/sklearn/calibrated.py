"""A classifier whose scores are mapped to probabilities, fitted out of fold."""

from __future__ import annotations

import warnings
from collections.abc import Hashable
from numbers import Integral
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import StratifiedGroupKFold, check_cv
from sklearn.utils import check_consistent_length, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_method_params, check_is_fitted, column_or_1d, has_fit_parameter

from calibrant import inputs
from calibrant.inputs import InputError, InputTypeError, InputWarning
from calibrant.inputs.predictions import objects
from calibrant.maps import Calibrator
from calibrant.maps.methods import METHODS, canonical_name
from calibrant.score_data import Array
from calibrant.sklearn.model import explaining, probabilities

Params: TypeAlias = dict[str, Any]
# Mistakes that a model of fitted rows must expect of itself before making none of them looks odd: by chance
# that happens once in e^10 times.
ODD = 10.0
# The root mean square of decision values once they are scaled: that of the log-odds of a fair model.
USUAL_ODDS = 2.0


class CalibratedModel(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Classifier whose probabilities are those of another one, calibrated.

    It asks the estimator for `predict_proba`, or, where there is none, for `decision_function`, and learns
    by `calibrant.Calibrator` what these scores mean, from rows that the model which scores them has not seen.

    Parameters
    ----------
    estimator : classifier
        It is cloned and fitted. One that is fitted already comes as scikit-learn's `FrozenEstimator`: the
        rows passed to `fit` are then for the calibrator alone, and must not be those it was fitted on.
    method : str
        As for `Calibrator`.
    cv : int, splitter, iterable of (train, test) or "prefit"
        How rows are held out; an integer is a number of stratified folds. No row may be held out twice,
        unless with `ensemble=True`. It does not matter for a frozen estimator. "prefit" means the same as a
        frozen estimator, but a search or any other copy forgets what it has learned.
    ensemble : bool
        False: one calibrator learns from all held-out scores, and the estimator is fitted to all rows once
        more. True: every fold keeps its model and its calibrator, and predictions are means over folds.
    monotone : {"auto", True, False}
        As for `Calibrator`.
    n_jobs : int, optional
        Folds that are fitted at once.

    Attributes
    ----------
    classes_ : array
        The class of each column of `predict_proba`.
    estimators_ : list
        The fitted model, or that of each fold.
    calibrators_ : list of Calibrator
        The calibrator of each: of two classes it maps the scores of the second. What it maps are
        probabilities, or decision values over `scale_`.
    scale_ : float
        What decision values are divided by, as they have no unit; 1 for probabilities.
    n_features_in_, feature_names_in_
        Where the estimator has them.

    Warns
    -----
    InputWarning
        If rows seem to be scored by a model that was fitted on them: the parts of a split overlap, or a
        fitted model makes no mistake on rows although it expects many. Other cases are not detected, and the
        predictions are then overconfident.

    See Also
    --------
    calibrant.Calibrator : The calibration map alone.
    ReliabilityDisplay : Reliability curve of a model.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = CalibratedModel(GaussianNB()).fit(X[::2], y[::2])
    >>> model.estimators_[0].predict_proba(X[541:542]).round(2)
    array([[0.18, 0.82]])
    >>> model.predict_proba(X[541:542]).round(2)
    array([[0.62, 0.38]])
    >>> low, high = model.predict_interval(X[541:542])
    >>> bool((low < [0.65, 0.35]).all() and ([0.65, 0.35] < high).all())
    True
    """

    classes_: Array
    estimators_: list[Any]
    calibrators_: list[Calibrator]
    scale_: float

    def __init__(
        self,
        estimator: Any,
        method: str = "auto",
        cv: Any = 5,
        ensemble: bool = False,
        *,
        monotone: Literal["auto"] | bool = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv
        self.ensemble = ensemble
        self.monotone = monotone
        self.n_jobs = n_jobs

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, cluster: Any = None, **fit_params: Any
    ) -> Self:
        """Fit the estimator and the calibrator.

        Parameters
        ----------
        X : array of shape (N, features), frame or sparse matrix
            What the estimator takes.
        y : array of shape (N,)
            Labels.
        sample_weight : array of shape (N,), optional
            Importance weights, for the calibrator, and for the estimator if it takes them. Where metadata
            routing is enabled, each gets what it asks for.
        cluster : array of shape (N,), optional
            Cluster id of each row, if rows of a cluster depend on each other, for the calibrator (see
            `Calibrator.fit`). The rows of a cluster stay in one fold if `cv` is an integer; any other `cv`
            is used as it is.
        **fit_params
            For `fit` of the estimator; where metadata routing is enabled, for the splitter too.
        """
        self._check_choices()
        inputs.same_rows(X=X, y=y, sample_weight=sample_weight, cluster=cluster)
        X, y = indexable(X, y)
        y = _labels(y)
        check_consistent_length(X, y, sample_weight, cluster)
        cluster = None if cluster is None else np.asarray(cluster)
        to_fit, to_split = self._routed(sample_weight, fit_params)
        weight = None if sample_weight is None else _weights(sample_weight)
        if self._is_fitted_already():
            check_is_fitted(self.estimator)
            self.estimators_, rows = [self.estimator], [np.arange(len(y))]
            scores = [_scores(self.estimator, X)]
        else:
            splits = self._splits(X, y, cluster, to_split)
            parts = Parallel(n_jobs=self.n_jobs)(
                delayed(_fold)(clone(self.estimator), X, y, train, test, to_fit, self.ensemble)
                for train, test in splits
            )
            self.estimators_, rows = [model for model, _ in parts], [test for _, test in splits]
            scores = [score for _, score in parts]
            if not self.ensemble:
                self.estimators_ = [clone(self.estimator).fit(X, y, **to_fit)]
                rows, scores = [np.concatenate(rows)], [np.concatenate(scores)]
        self.classes_ = np.asarray(getattr(self.estimators_[0], "classes_", np.unique(y)))
        self._learn(scores, rows, y, weight, cluster)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimators_[0], name):
                setattr(self, name, getattr(self.estimators_[0], name))
        return self

    def predict_proba(self, X: Any) -> Array:
        """Return the calibrated probability of each class.

        Parameters
        ----------
        X : array of shape (N, features), frame or sparse matrix
        """
        check_is_fitted(self)
        each = [_both(map_.predict_proba(score)) for map_, score in self._scored(X)]
        return np.mean(each, axis=0)

    def predict_interval(self, X: Any, level: float = 0.95) -> tuple[Array, Array]:
        """Return the ends of an interval for each probability: of the outcome's chance, not of the outcome.

        With `ensemble=True` they are the means of the folds' ends.

        Parameters
        ----------
        X : array of shape (N, features), frame or sparse matrix
        level : float
        """
        check_is_fitted(self)
        ends = []
        for map_, score in self._scored(X):
            low, high = map_.predict_interval(score, level)
            ends.append((_both(low, high), _both(high, low)))
        low, high = np.mean(ends, axis=0)
        return low, high

    def predict(self, X: Any) -> Array:
        """Return the likeliest class by the calibrated probabilities.

        Parameters
        ----------
        X : array of shape (N, features), frame or sparse matrix
        """
        probability = self.predict_proba(X)
        return self.classes_[np.argmax(probability, axis=1)]

    def get_metadata_routing(self) -> MetadataRouter:
        """Return what goes where, in scikit-learn's terms: to itself, to the estimator, to the splitter."""
        return (
            MetadataRouter(owner=type(self).__name__)
            .add_self_request(self)
            .add(estimator=self.estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
            .add(splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    # --- inside ---

    def _check_choices(self) -> None:
        inputs.check_choice("method", canonical_name(self.method), METHODS)
        if not isinstance(self.ensemble, bool | np.bool_):
            raise InputTypeError("ensemble", "be True or False", self.ensemble)
        if not any(hasattr(self.estimator, name) for name in ("predict_proba", "decision_function")):
            raise InputTypeError("estimator", "have predict_proba or decision_function", self.estimator)

    def _is_fitted_already(self) -> bool:
        return isinstance(self.estimator, FrozenEstimator) or (
            isinstance(self.cv, str) and self.cv == "prefit"
        )

    def _routed(self, sample_weight: Any, fit_params: Params) -> tuple[Params, Params]:
        """Return what goes to `fit` of the estimator, and what to `split` of the splitter."""
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", sample_weight=sample_weight, **fit_params)
            return dict(routed.estimator.fit), dict(routed.splitter.split)
        to_fit = dict(fit_params)
        if sample_weight is not None and not self._is_fitted_already():
            if has_fit_parameter(self.estimator, "sample_weight"):
                to_fit["sample_weight"] = sample_weight
            else:
                warnings.warn(
                    f"{type(self.estimator).__name__} takes no sample_weight: it is fitted without, and only "
                    "the calibrator with; to reach a model within a pipeline, enable metadata routing",
                    InputWarning,
                    stacklevel=3,
                )
        return to_fit, {}

    def _splits(self, X: Any, y: Array, cluster: Array | None, to_split: Params) -> list[tuple[Array, Array]]:
        """Return the parts of each fold, checked before anything is fitted."""
        classes = np.unique(y)
        if len(classes) < 2:
            raise InputError("y", "hold two classes or more", y[0], got=f"1 class, {y[0]!s}")
        cv = check_cv(self.cv, y, classifier=True)
        if cluster is not None and isinstance(self.cv, Integral):
            ids: dict[Any, int] = {}  # numbered, so that folds do not depend on their names
            groups = [ids.setdefault(each, len(ids)) for each in cluster.tolist()]
            if len(ids) < cv.n_splits:
                raise InputError("cluster", f"have {cv.n_splits} distinct values or more, as cv", len(ids))
            cv, to_split = StratifiedGroupKFold(cv.n_splits), {"groups": groups}
        splits = [
            (np.arange(len(y))[train], np.arange(len(y))[test]) for train, test in cv.split(X, y, **to_split)
        ]
        if not splits:
            raise InputError("cv", "make at least one split", self.cv)
        for train, _ in splits:
            missing = np.setdiff1d(classes, y[train])
            if missing.size:
                raise InputError(
                    "y",
                    "hold every class in the training part of each fold",
                    missing[0],
                    got=f"none of {missing[0]!s}",
                    hint="use fewer folds or a stratified split",
                )
        if not self.ensemble and np.bincount(np.concatenate([test for _, test in splits])).max() > 1:
            rule = "hold out no row twice with ensemble=False"
            raise InputError("cv", rule, self.cv, hint="pass ensemble=True")
        seen = sum(np.intersect1d(train, test).size for train, test in splits)
        if seen:
            warnings.warn(
                f"cv holds out {seen} rows that it also trains on: scores of rows that a model was fitted on "
                "are too good, and the calibrated probabilities will be overconfident",
                InputWarning,
                stacklevel=3,
            )
        return splits

    def _learn(
        self,
        scores: list[Array],
        rows: list[Array],
        y: Array,
        weight: Array | None,
        cluster: Array | None,
    ) -> None:
        """Fit a calibrator to the scores of each model."""
        logits = not hasattr(self.estimators_[0], "predict_proba")
        self.scale_ = 1.0
        if logits:
            held_out = None if weight is None else weight[np.concatenate(rows)]
            self.scale_ = _scale(np.concatenate(scores), held_out)
        elif self._is_fitted_already():
            _caution_if_seen(scores[0], y, self.classes_)
        classes = tuple(self.classes_.tolist())
        label = y.astype(object) if y.dtype.kind == "f" else y  # as labels, never to be taken for scores
        self.calibrators_ = []
        for score, index in zip(scores, rows, strict=True):
            calibrator = Calibrator(
                self.method,
                monotone=self.monotone,
                from_logits=logits,
                labels=classes,
                pos_label=classes[1] if score.ndim == 1 else None,
            )
            given = {"sample_weight": weight, "cluster": cluster}
            of_fold: Params = {name: each[index] for name, each in given.items() if each is not None}
            with explaining(y, classes), warnings.catch_warnings():
                # Decision values are no probabilities, wherever they lie.
                warnings.filterwarnings("ignore", "all values of y_prob lie in", InputWarning)
                calibrator.fit(score / self.scale_, label[index], **of_fold)
            self.calibrators_.append(calibrator)

    def _scored(self, X: Any) -> list[tuple[Calibrator, Array]]:
        """Return each calibrator with the scores that it maps."""
        return [
            (calibrator, _scores(model, X) / self.scale_)
            for model, calibrator in zip(self.estimators_, self.calibrators_, strict=True)
        ]


def _labels(y: Any) -> Array:
    """Return labels as a vector of at least one class, none of them missing."""
    y = column_or_1d(y, warn=True)
    if not len(y):
        raise InputError("y", "not be empty", got="0 rows")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        row = int(np.argmin(np.isfinite(y)))
        raise InputError("y", "be finite and have no missing values", y[row], row=row)
    if y.dtype.kind == "O":
        objects("y", y, Hashable, "hold one label per row")
    check_classification_targets(y)
    return np.asarray(y)


def _weights(sample_weight: Any) -> Array:
    """Return weights as an array, and refuse those that no calibrator takes before a model is fitted."""
    weight = np.asarray(sample_weight)
    if not weight.any():  # scikit-learn's checks look for the word
        raise InputError("sample_weight", "have a positive sum", 0, got="zero for every row")
    inputs.unlabelled(np.zeros(len(weight)), sample_weight=weight)
    return weight


def _fold(
    estimator: Any, X: Any, y: Array, train: Array, test: Array, to_fit: Params, keep: bool
) -> tuple[Any, Array]:
    """Fit a model to the training part, and return it, if it is kept, and its scores of the held-out part."""
    X_train, y_train = _safe_split(estimator, X, y, train)
    X_test, _ = _safe_split(estimator, X, y, test, train)
    model = estimator.fit(X_train, y_train, **_check_method_params(X, to_fit, train))
    return model if keep else None, _scores(model, X_test)


def _scores(model: Any, X: Any) -> Array:
    """Return the scores of a fitted model: of the second of two classes, or a column for each of many."""
    score = probabilities(model, X)[0] if hasattr(model, "predict_proba") else _decision_values(model, X)
    score = np.asarray(score)
    return score[:, 1] if score.ndim == 2 and score.shape[1] == 2 else score


def _decision_values(model: Any, X: Any) -> Array:
    """Return decision values of classes, and refuse those of pairs of classes."""
    decision = np.asarray(model.decision_function(X))
    inner = model.estimator if isinstance(model, FrozenEstimator) else model
    choices = inner.get_params() if hasattr(inner, "get_params") else {}
    by_pairs = any(name.endswith("decision_function_shape") and choices[name] == "ovo" for name in choices)
    if decision.ndim == 2 and by_pairs:
        rule, hint = "have decision values of classes, not of pairs", "set decision_function_shape='ovr'"
        raise InputError("estimator", rule, got="decision_function_shape='ovo'", hint=hint)
    return decision


def _scale(decision: Array, weight: Array | None) -> float:
    """Return what makes the spread of decision values that of usual log-odds."""
    centred = decision - decision.mean(axis=1, keepdims=True) if decision.ndim == 2 else decision
    largest = float(np.abs(centred).max())
    if largest == 0:
        return 1.0
    square = (centred / largest) ** 2  # of large values it would overflow
    mean = np.average(square.mean(axis=1) if square.ndim == 2 else square, weights=weight)
    return largest * float(np.sqrt(mean)) / USUAL_ODDS


def _both(probability: Array, other: Array | None = None) -> Array:
    """Return a column for each class: of two, 1 minus `other` (the probability itself) comes first."""
    if probability.ndim == 2:
        return probability
    return np.stack([1 - (probability if other is None else other), probability], axis=1)


def _caution_if_seen(score: Array, y: Array, classes: Array) -> None:
    """Warn if a fitted model makes no mistake on many rows although it expects to."""
    score = _both(score)
    expected = float((1 - score.max(axis=1)).sum())
    if expected > ODD and (classes[score.argmax(axis=1)] == y).all():
        warnings.warn(
            f"the model is right on each of {len(y)} rows, although by its own probabilities it expects "
            f"about {expected:.0f} mistakes: if it was fitted on these rows, the calibrated probabilities "
            "will be overconfident; pass other rows, or an estimator that is not fitted",
            InputWarning,
            stacklevel=3,
        )

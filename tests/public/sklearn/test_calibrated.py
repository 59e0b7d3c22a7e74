"""A calibrated model is a classifier of scikit-learn, and its calibrator learns from rows held out."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_iris, make_classification
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import DataConversionWarning, NotFittedError, UnsetMetadataPassedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.metrics import log_loss
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    PredefinedSplit,
    RepeatedStratifiedKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_predict,
    cross_val_score,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

import calibrant
from calibrant.sklearn import CalibratedModel, neg_ece_scorer

NAMES = np.array(["eggs", "ham", "spam", "tea"])


def data(classes=2, n=240, seed=0):
    X, y = make_classification(
        n, 6, n_informative=4, n_redundant=0, n_classes=classes, flip_y=0.2, random_state=seed
    )
    return X, NAMES[y]


def by_hand(estimator, X, y, method="auto"):
    """Fit one calibrator to out-of-fold probabilities, the long way."""
    held_out = cross_val_predict(estimator, X, y, cv=5, method="predict_proba")
    labels = np.unique(y).tolist()
    model = clone(estimator).fit(X, y)
    if len(labels) == 2:
        calibrator = calibrant.Calibrator(method, pos_label=labels[1]).fit(held_out[:, 1], y)
        second = calibrator.predict_proba(model.predict_proba(X)[:, 1])
        return np.stack([1 - second, second], axis=1)
    calibrator = calibrant.Calibrator(method, labels=labels).fit(held_out, y)
    return calibrator.predict_proba(model.predict_proba(X))


class Backwards(ClassifierMixin, BaseEstimator):
    """A model that keeps its classes in falling order."""

    def __init__(self, decides=False):
        self.decides = decides

    def fit(self, X, y):
        self.model_ = LogisticRegression().fit(X, y)
        self.classes_ = self.model_.classes_[::-1]
        return self

    def __getattr__(self, name):
        if name == "predict_proba" and not self.__dict__.get("decides", True):
            return lambda X: self.model_.predict_proba(X)[:, ::-1]
        if name == "decision_function" and self.__dict__.get("decides"):
            return lambda X: -self.model_.decision_function(X)
        raise AttributeError(name)


# What is learned, and from which rows


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("method", ["auto", "temperature", "isotonic"])
def test_one_calibrator_learns_from_all_held_out_scores_and_the_model_from_all_rows(classes, method):
    X, y = data(classes)
    model = CalibratedModel(GaussianNB(), method).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), by_hand(GaussianNB(), X, y, method), atol=1e-12)
    assert len(model.estimators_) == len(model.calibrators_) == 1
    assert model.calibrators_[0].n_ == len(y)
    np.testing.assert_array_equal(model.estimators_[0].theta_, GaussianNB().fit(X, y).theta_)


@pytest.mark.parametrize("classes", [2, 3])
def test_an_ensemble_is_the_mean_over_folds(classes):
    X, y = data(classes)
    model = CalibratedModel(GaussianNB(), cv=3, ensemble=True).fit(X, y)
    each = []
    for train, test in StratifiedKFold(3).split(X, y):
        fold = GaussianNB().fit(X[train], y[train])
        each.append(
            CalibratedModel(FrozenEstimator(fold)).fit(X[test], y[test]),
        )
    mean = np.mean([one.predict_proba(X) for one in each], axis=0)
    np.testing.assert_allclose(model.predict_proba(X), mean, atol=1e-12)
    low, high = model.predict_interval(X)
    np.testing.assert_allclose(low, np.mean([one.predict_interval(X)[0] for one in each], axis=0))
    np.testing.assert_allclose(high, np.mean([one.predict_interval(X)[1] for one in each], axis=0))


def test_the_scores_of_a_memorised_training_set_are_not_what_is_learned_from():
    # On its own rows a tree is always right, and a calibrator of those scores would be sure of it.
    X, y = data(n=600)
    half = slice(300), slice(300, 600)
    tree = DecisionTreeClassifier(random_state=0)
    model = CalibratedModel(tree).fit(X[half[0]], y[half[0]])
    loss = log_loss(y[half[1]], model.predict_proba(X[half[1]]))
    assert (
        loss < 0.65 < log_loss(y[half[1]], clone(tree).fit(X[half[0]], y[half[0]]).predict_proba(X[half[1]]))
    )


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("estimator", [GaussianNB(), RandomForestClassifier(20, random_state=0)])
def test_it_mends_the_log_loss(classes, estimator):
    X, y = data(classes, n=1000)
    recalibrated = CalibratedModel(estimator).fit(X[:500], y[:500])
    before = clone(estimator).fit(X[:500], y[:500]).predict_proba(X[500:])
    after = recalibrated.predict_proba(X[500:])
    assert log_loss(y[500:], after) < log_loss(y[500:], np.clip(before, 1e-9, 1))
    np.testing.assert_allclose(after.sum(axis=1), 1)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("n", [60, 200])
def test_nothing_that_has_happened_is_impossible(classes, n):
    # Few trees say 0 of what is not rare; leaving such scores as they are would cost an infinite log loss.
    forest = FrozenEstimator(RandomForestClassifier(5, random_state=0).fit(*data(classes, n=100, seed=1)))
    for seed in range(2, 8):
        X, y = data(classes, n=n, seed=seed)
        p = CalibratedModel(forest).fit(X, y).predict_proba(X)
        assert (p[np.arange(n), np.searchsorted(NAMES, y)] > 0).all()


# Fitted models


@pytest.mark.parametrize("classes", [2, 3])
def test_rows_are_for_the_calibrator_where_the_model_is_frozen(classes):
    X, y = data(classes)
    inner = GaussianNB().fit(X[::2], y[::2])
    score = inner.predict_proba(X[1::2])
    labels = inner.classes_.tolist()
    by_itself = (
        calibrant.Calibrator(pos_label=labels[1]).fit(score[:, 1], y[1::2])
        if classes == 2
        else calibrant.Calibrator(labels=labels).fit(score, y[1::2])
    )
    expected = by_itself.predict_proba(score[:, 1] if classes == 2 else score)
    for model in (CalibratedModel(FrozenEstimator(inner)), CalibratedModel(inner, cv="prefit")):
        theta = inner.theta_.copy()
        model.fit(X[1::2], y[1::2])
        found = model.predict_proba(X[1::2])
        np.testing.assert_array_equal(found[:, 1] if classes == 2 else found, expected)
        np.testing.assert_array_equal(inner.theta_, theta)
        assert model.estimators_[0].n_features_in_ == model.n_features_in_ == 6


def test_a_frozen_model_may_know_classes_that_the_rows_lack():
    X, y = data(3)
    inner = GaussianNB().fit(X[::2], y[::2])
    few = y[1::2] != "spam"
    model = CalibratedModel(FrozenEstimator(inner)).fit(X[1::2][few], y[1::2][few])
    assert model.classes_.tolist() == ["eggs", "ham", "spam"]
    assert model.predict_proba(X).shape == (240, 3)


def test_a_class_that_a_frozen_model_does_not_know_is_named():
    X, y = data(3)
    few = y != "spam"
    inner = GaussianNB().fit(X[few], y[few])
    with pytest.raises(ValueError, match=r"fitted on, .*got 'spam'"):
        CalibratedModel(FrozenEstimator(inner)).fit(X, y)


def test_a_model_that_is_not_fitted_is_refused_where_it_should_be():
    X, y = data()
    for model in (CalibratedModel(FrozenEstimator(GaussianNB())), CalibratedModel(GaussianNB(), cv="prefit")):
        with pytest.raises(NotFittedError):
            model.fit(X, y)
        with pytest.raises(NotFittedError):
            model.predict_proba(X)


# Cautions


def test_a_fitted_model_that_never_errs_where_it_expects_to_gets_a_caution():
    X, y = data(n=400)
    forest = RandomForestClassifier(random_state=0).fit(X[::2], y[::2])
    model = CalibratedModel(FrozenEstimator(forest))
    with pytest.warns(calibrant.InputWarning, match=r"right on each of 200 rows.*expects about \d+ mistakes"):
        model.fit(X[::2], y[::2])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X[1::2], y[1::2])


def test_a_split_that_trains_on_what_it_holds_out_gets_a_caution():
    X, y = data()
    every = np.arange(len(y))
    with pytest.warns(calibrant.InputWarning, match="holds out 240 rows that it also trains on"):
        CalibratedModel(GaussianNB(), cv=[(every, every)]).fit(X, y)


# Splits


def test_no_row_is_held_out_twice():
    X, y = data()
    cv = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)
    with pytest.raises(calibrant.InputError, match=r"hold out no row twice.*ensemble=True"):
        CalibratedModel(GaussianNB(), cv=cv).fit(X, y)
    assert len(CalibratedModel(GaussianNB(), cv=cv, ensemble=True).fit(X, y).calibrators_) == 6


def test_rows_never_held_out_are_for_the_model_alone():
    X, y = data()
    model = CalibratedModel(GaussianNB(), cv=TimeSeriesSplit(3)).fit(X, y)
    assert model.calibrators_[0].n_ == 180


def test_masks_are_splits_too():
    X, y = data()
    rows = np.arange(len(y)) % 2 == 0
    pairs = [(rows, ~rows), (~rows, rows)]
    by_number = [(np.flatnonzero(a), np.flatnonzero(b)) for a, b in pairs]
    found = [CalibratedModel(GaussianNB(), cv=cv).fit(X, y).predict_proba(X) for cv in (pairs, by_number)]
    np.testing.assert_array_equal(*found)


def test_a_class_absent_from_a_training_part_is_named_before_any_fit():
    X, y = data(3)
    y = np.where(y == "spam", "ham", y)
    y[7] = "tea"

    with (
        pytest.warns(UserWarning, match="least populated class"),
        pytest.raises(calibrant.InputError, match=r"in the training part.*none of tea.*fewer folds"),
    ):
        CalibratedModel(Unfit()).fit(X, y)


@pytest.mark.full
def test_the_same_comes_out_for_the_same_splits():
    X, y = data()
    forest = RandomForestClassifier(5, random_state=0)
    first, second, parallel = (
        CalibratedModel(forest, n_jobs=jobs).fit(X, y).predict_proba(X) for jobs in (None, None, 2)
    )
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first, parallel)


@pytest.mark.parametrize("ensemble", [False, True])
def test_the_order_of_rows_does_not_matter_where_the_folds_go_with_them(ensemble):
    X, y = data()
    fold = np.arange(len(y)) % 4
    shuffled = np.random.default_rng(0).permutation(len(y))
    found = [
        CalibratedModel(GaussianNB(), cv=PredefinedSplit(fold[order]), ensemble=ensemble)
        .fit(X[order], y[order])
        .predict_proba(X)
        for order in (np.arange(len(y)), shuffled)
    ]
    np.testing.assert_allclose(*found, atol=1e-9)


# Decision values


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "estimator",
    [LinearSVC(random_state=0), SVC(), RidgeClassifier(), SGDClassifier(random_state=0)],
    ids=lambda one: type(one).__name__,
)
def test_decision_values_become_probabilities(classes, estimator):
    X, y = data(classes, n=600)
    model = CalibratedModel(estimator).fit(X[:300], y[:300])
    p = model.predict_proba(X[300:])
    np.testing.assert_allclose(p.sum(axis=1), 1)
    peer = CalibratedClassifierCV(estimator, ensemble=False).fit(X[:300], y[:300]).predict_proba(X[300:])
    assert log_loss(y[300:], p) < log_loss(y[300:], peer) + 0.01


class Stretched(LinearSVC):
    """A support vector machine in other units."""

    def __init__(self, factor=1.0, random_state=0):
        super().__init__(random_state=random_state)
        self.factor = factor

    def decision_function(self, X):
        return super().decision_function(X) * self.factor


@pytest.mark.parametrize("factor", [1e-9, 100.0, 1e9, 1e200])
@pytest.mark.parametrize("classes", [2, 3])
def test_decision_values_have_no_unit(factor, classes):
    X, y = data(classes)
    one, other = (CalibratedModel(Stretched(f)).fit(X, y) for f in (1.0, factor))
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-6)
    assert other.scale_ == pytest.approx(factor * one.scale_)


def test_decision_values_all_zero_say_nothing():
    X, y = data(n=100)
    model = CalibratedModel(Stretched(0.0), method="logistic").fit(X, y)
    assert model.scale_ == 1
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], (y == "ham").mean(), atol=1e-4)


def test_decision_values_in_the_unit_interval_are_not_taken_for_probabilities():
    class Bounded(Stretched):
        def decision_function(self, X):
            return 1 / (1 + np.exp(-super().decision_function(X)))

    X, y = data(n=100)
    model = CalibratedModel(Bounded(1.0), method="logistic").fit(X, y)
    values = model.estimators_[0].decision_function(X)
    assert ((values >= 0) & (values <= 1)).all()
    assert np.corrcoef(values, model.predict_proba(X)[:, 1])[0, 1] > 0.9


def test_probabilities_come_before_decision_values_and_keep_their_unit():
    X, y = data()
    model = CalibratedModel(LogisticRegression()).fit(X, y)
    assert model.scale_ == 1
    assert not model.calibrators_[0].from_logits


def test_decision_values_of_pairs_are_refused():
    X, y = data(3)
    by_pairs = SVC(decision_function_shape="ovo")
    for model in (by_pairs, make_pipeline(by_pairs), FrozenEstimator(clone(by_pairs).fit(X, y))):
        with pytest.raises(calibrant.InputError, match=r"not of pairs.*'ovr'"):
            CalibratedModel(model).fit(X, y)
    two = y != "spam"
    assert CalibratedModel(by_pairs).fit(X[two], y[two]).predict_proba(X).shape == (240, 2)


class Forgetful(GaussianNB):
    """A model that leaves a class out."""

    def fit(self, X, y):
        keep = y != "ham"
        return super().fit(X[keep], y[keep])


def test_a_model_that_leaves_a_class_out_is_refused():
    with pytest.raises(ValueError, match=r"fitted on, \['eggs', 'spam'\], got 'ham'"):
        CalibratedModel(Forgetful()).fit(*data(3))


def test_a_precomputed_kernel_is_cut_both_ways():
    X, y = data()
    kernel = rbf_kernel(X, gamma=0.2)
    given = CalibratedModel(SVC(kernel="precomputed")).fit(kernel, y).predict_proba(kernel)
    computed = CalibratedModel(SVC(gamma=0.2)).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(given, computed, atol=1e-6)


@pytest.mark.parametrize("decides", [False, True])
def test_columns_are_found_by_the_classes_of_the_model(decides):
    X, y = data()
    # An affine map does not depend on the unit of decision values.
    model = CalibratedModel(Backwards(decides), "logistic").fit(X, y)
    usual = CalibratedModel(LogisticRegression(), "logistic").fit(X, y)
    assert model.classes_.tolist() == ["ham", "eggs"]
    np.testing.assert_allclose(model.predict_proba(X)[:, ::-1], usual.predict_proba(X), atol=1e-4)


# Intervals


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("ensemble", [False, True])
def test_intervals_hold_the_probabilities_and_grow_with_the_level(classes, ensemble):
    X, y = data(classes)
    model = CalibratedModel(GaussianNB(), cv=3, ensemble=ensemble).fit(X, y)
    p = model.predict_proba(X)
    low, high = model.predict_interval(X)
    wide_low, wide_high = model.predict_interval(X, level=0.99)
    assert low.shape == high.shape == p.shape == (240, classes)
    assert ((low >= 0) & (low <= p + 1e-12) & (p <= high + 1e-12) & (high <= 1)).all()
    assert ((wide_low <= low + 1e-9) & (high <= wide_high + 1e-9)).all()
    assert (low < high).all()


def test_the_interval_of_two_classes_is_that_of_the_calibrator():
    X, y = data()
    model = CalibratedModel(GaussianNB()).fit(X, y)
    low, high = model.predict_interval(X, 0.8)
    ends = model.calibrators_[0].predict_interval(model.estimators_[0].predict_proba(X)[:, 1], 0.8)
    np.testing.assert_array_equal((low[:, 1], high[:, 1]), ends)
    np.testing.assert_array_equal((low[:, 0], high[:, 0]), (1 - ends[1], 1 - ends[0]))


def test_the_level_is_checked():
    X, y = data()
    with pytest.raises(calibrant.InputError, match="level"):
        CalibratedModel(GaussianNB()).fit(X, y).predict_interval(X, 95)


# Kinds of inputs


@pytest.mark.full
@pytest.mark.parametrize(
    "labels",
    [["no", "yes"], [0, 1], [1.0, 2.0], [False, True], [-1, 1], [7, 3]],
    ids=lambda labels: str(labels),
)
@pytest.mark.parametrize("estimator", [GaussianNB(), DecisionTreeClassifier(random_state=0), LinearSVC()])
def test_labels_are_of_any_kind(labels, estimator):
    X, y = data()
    y = (y == "ham").astype(int)
    named = np.array(labels)[y]
    model = CalibratedModel(estimator).fit(X, named)
    np.testing.assert_array_equal(model.classes_, np.unique(named))
    assert model.classes_.dtype == named.dtype
    assert model.calibrators_[0].classes_ == tuple(sorted(labels))
    found = model.predict_proba(X)[:, int(labels[1] > labels[0])]
    same = CalibratedModel(estimator).fit(X, y) if labels[1] > labels[0] else None
    if same is not None:
        np.testing.assert_array_equal(found, same.predict_proba(X)[:, 1])
    assert set(model.predict(X)) == set(labels)


def test_frames_and_series_do():
    X, y = data(3)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    expected = CalibratedModel(GaussianNB()).fit(X, y)
    for labels in (pd.Series(y), pd.Series(y, dtype="category"), pd.Series(y, dtype="string")):
        model = CalibratedModel(GaussianNB()).fit(frame, labels)
        assert model.feature_names_in_.tolist() == list("abcdef")
        assert model.n_features_in_ == 6
        np.testing.assert_array_equal(model.predict_proba(frame), expected.predict_proba(X))
        assert (model.predict(frame) == expected.predict(X)).all()
    with pytest.raises(ValueError, match="feature names"):
        model.predict_proba(frame[list("abcdfe")])
    assert not hasattr(expected, "feature_names_in_")
    numbers = CalibratedModel(GaussianNB()).fit(frame, pd.Series((y == "ham").astype(int), dtype="Int64"))
    assert numbers.classes_.tolist() == [0, 1]


def test_rows_are_taken_by_position_unless_their_index_contradicts():
    X, y = data()
    frame = pd.DataFrame(X).rename(columns=str)
    expected = CalibratedModel(GaussianNB()).fit(X, y).predict_proba(X)
    elsewhere = pd.Series(y, index=np.arange(len(y)) + 1000)
    np.testing.assert_array_equal(
        CalibratedModel(GaussianNB()).fit(frame, elsewhere).predict_proba(frame), expected
    )
    with pytest.raises(calibrant.InputError, match="X and y must have the same index"):
        CalibratedModel(GaussianNB()).fit(frame, pd.Series(y, index=frame.index[::-1]))


def test_sparse_matrices_do():
    X, y = data()
    X = np.where(np.abs(X) < 0.5, 0, X)
    found = CalibratedModel(LogisticRegression()).fit(csr_array(X), y).predict_proba(csr_array(X))
    np.testing.assert_allclose(
        found, CalibratedModel(LogisticRegression()).fit(X, y).predict_proba(X), atol=1e-6
    )


def test_a_column_of_labels_is_a_vector_with_a_warning():
    X, y = data()
    with pytest.warns(DataConversionWarning):
        model = CalibratedModel(GaussianNB()).fit(X, y[:, None])
    np.testing.assert_array_equal(model.predict(X), CalibratedModel(GaussianNB()).fit(X, y).predict(X))


def test_a_constant_model_stays_constant():
    X, y = data(3)
    p = CalibratedModel(DummyClassifier()).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(p, np.unique(y, return_counts=True)[1] / len(y) + 0 * p, atol=0.03)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"method": "isotonik"}, "method .*did you mean 'isotonic'"),
        ({"ensemble": "auto"}, "ensemble must be True or False, got 'auto'"),
        ({"estimator": LinearRegression()}, "estimator must have predict_proba or decision_function"),
        ({"method": "vector"}, "method must be a map of one score"),
        ({"monotone": "yes"}, "monotone must be 'auto', True or False"),
        ({"method": "temperature", "monotone": True}, "monotone must be 'auto' with method='temperature'"),
    ],
)
def test_a_wrong_choice_is_named(choices, message):
    X, y = data()
    with pytest.raises(calibrant.InputError, match=message):
        CalibratedModel(**{"estimator": GaussianNB(), **choices}).fit(X, y)


def test_one_class_and_several_outputs_are_refused():
    X, y = data()
    with pytest.raises(calibrant.InputError, match="two classes or more, got 1 class, ham"):
        CalibratedModel(GaussianNB()).fit(X, np.full(len(y), "ham"))
    with pytest.raises(ValueError, match=r"1d array|Multioutput"):
        CalibratedModel(DecisionTreeClassifier()).fit(X, np.stack([y, y], axis=1))
    with pytest.raises(ValueError, match="continuous"):
        CalibratedModel(GaussianNB()).fit(X, X[:, 0])


# Weights


def test_weights_reach_the_model_and_the_calibrator():
    X, y = data()
    weight = np.random.default_rng(0).random(len(y))
    held_out = np.empty(len(y))
    for train, test in StratifiedKFold(5).split(X, y):
        held_out[test] = GaussianNB().fit(X[train], y[train], weight[train]).predict_proba(X[test])[:, 1]
    calibrator = calibrant.Calibrator(pos_label="ham").fit(held_out, y, sample_weight=weight)
    whole = GaussianNB().fit(X, y, weight)
    expected = calibrator.predict_proba(whole.predict_proba(X)[:, 1])
    for given in (weight, weight.tolist(), pd.Series(weight)):
        model = CalibratedModel(GaussianNB()).fit(X, y, sample_weight=given)
        np.testing.assert_allclose(model.predict_proba(X)[:, 1], expected, atol=1e-12)


@pytest.mark.parametrize("estimator", [GaussianNB(), LinearSVC()])
@pytest.mark.parametrize("classes", [2, 3])
def test_weights_are_importance_whatever_their_type_and_scale(estimator, classes):
    X, y = data(classes)
    inner = FrozenEstimator(clone(estimator).fit(X[::2], y[::2]))
    weight = np.random.default_rng(0).integers(0, 4, 120)
    expected = CalibratedModel(inner).fit(X[1::2], y[1::2], sample_weight=weight).predict_proba(X)
    floats = CalibratedModel(inner).fit(X[1::2], y[1::2], sample_weight=weight.astype(float))
    np.testing.assert_array_equal(floats.predict_proba(X), expected)
    heavy = CalibratedModel(inner).fit(X[1::2], y[1::2], sample_weight=1000 * weight)
    np.testing.assert_allclose(heavy.predict_proba(X), expected, atol=1e-7)


def test_a_model_that_takes_no_weights_gets_a_word():
    X, y = data()
    weight = np.random.default_rng(0).random(len(y))
    with pytest.warns(calibrant.InputWarning, match="Pipeline takes no sample_weight.*metadata routing"):
        CalibratedModel(make_pipeline(GaussianNB())).fit(X, y, sample_weight=weight)


class Unfit(LinearSVC):
    """A model that must not be fitted."""

    def fit(self, X, y, sample_weight=None):
        raise AssertionError


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"sample_weight": np.full(240, -1.0)}, "sample_weight must be finite, at least 0"),
        ({"sample_weight": np.zeros(240)}, "sample_weight must have a positive sum"),
        ({"sample_weight": np.full(240, np.nan)}, "sample_weight must be finite"),
        ({"y": np.array(["a", None] * 120, dtype=object)}, "y must have no missing values, got None"),
        ({"y": np.array([0, np.nan] * 120)}, "y must be finite and have no missing values, got nan at row 1"),
        ({"y": []}, "y must not be empty"),
        ({"cv": []}, "cv must make at least one split"),
    ],
)
def test_wrong_rows_are_refused_before_any_fit(wrong, message):
    X, y = data()
    model = CalibratedModel(Unfit(), cv=wrong.pop("cv", 5))
    with pytest.raises(calibrant.InputError, match=message):
        model.fit(X[: len(wrong.get("y", X))], **{"y": y, **wrong})


def test_weights_of_another_length_are_refused():
    X, y = data()
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        CalibratedModel(GaussianNB()).fit(X, y, sample_weight=[1.0, 2.0])


@pytest.mark.parametrize("of_model", [True, False, "importance"])
@pytest.mark.parametrize("ensemble", [False, True])
def test_routing_brings_each_what_it_asks_for(of_model, ensemble):
    X, y = data()
    weight = np.random.default_rng(0).random(len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        inner = GaussianNB().set_fit_request(sample_weight=of_model)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        model = CalibratedModel(make_pipeline(scaler, inner), ensemble=ensemble)
        model.set_fit_request(sample_weight=True)
        given = {"sample_weight": weight} | ({"importance": weight} if of_model == "importance" else {})
        found = model.fit(X, y, **given).predict_proba(X)
    if of_model:
        scaled = CalibratedModel(Scaled(), ensemble=ensemble).fit(X, y, sample_weight=weight)
        np.testing.assert_allclose(found, scaled.predict_proba(X), atol=1e-12)
    else:
        with pytest.warns(calibrant.InputWarning, match="takes no sample_weight"):
            other = clone(model).fit(X, y, sample_weight=weight)
        np.testing.assert_allclose(found, other.predict_proba(X), atol=1e-12)


class Scaled(GaussianNB):
    """Scale rows without weights, then fit with them."""

    def fit(self, X, y, sample_weight=None):
        self.scaler_ = StandardScaler().fit(X)
        return super().fit(self.scaler_.transform(X), y, sample_weight)

    def predict_proba(self, X):
        return super().predict_proba(self.scaler_.transform(X))


def test_weights_nobody_spoke_of_are_not_routed():
    X, y = data()
    with (
        sklearn.config_context(enable_metadata_routing=True),
        pytest.raises(UnsetMetadataPassedError, match="sample_weight"),
    ):
        CalibratedModel(GaussianNB()).fit(X, y, sample_weight=np.ones(len(y)))


def test_groups_are_routed_to_the_splitter():
    X, y = data()
    groups = np.arange(len(y)) % 7
    with sklearn.config_context(enable_metadata_routing=True):
        cv = GroupKFold(3).set_split_request(groups=True)
        found = CalibratedModel(GaussianNB(), cv=cv).fit(X, y, groups=groups)
    splits = list(GroupKFold(3).split(X, y, groups))
    np.testing.assert_array_equal(
        found.predict_proba(X), CalibratedModel(GaussianNB(), cv=splits).fit(X, y).predict_proba(X)
    )


def test_a_search_routes_weights_through():
    X, y = data()
    weight = np.random.default_rng(0).random(len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        inner = GaussianNB().set_fit_request(sample_weight=True)
        model = CalibratedModel(inner, cv=2).set_fit_request(sample_weight=True)
        scorer = neg_ece_scorer().set_score_request(sample_weight=True)
        search = GridSearchCV(model, {"method": ["auto"]}, cv=2, scoring=scorer).fit(
            X, y, sample_weight=weight
        )
    expected = CalibratedModel(GaussianNB(), cv=2).fit(X, y, sample_weight=weight).predict_proba(X)
    np.testing.assert_array_equal(search.predict_proba(X), expected)


# Clusters


def clustered(copies=5):
    X, y = data(n=120)
    noise = np.random.default_rng(0).normal(size=(120 * copies, X.shape[1]))
    return np.repeat(X, copies, axis=0) + noise, np.repeat(y, copies), np.repeat(np.arange(120), copies)


@pytest.mark.parametrize("ensemble", [False, True])
def test_rows_of_a_cluster_stay_in_one_fold_and_count_as_fewer(ensemble):
    X, y, cluster = clustered()
    splits = list(StratifiedGroupKFold(4).split(X, y, cluster))
    by_hand = CalibratedModel(GaussianNB(), "sigmoid", cv=splits, ensemble=ensemble).fit(
        X, y, cluster=cluster
    )
    ids = pd.Series([f"patient {each}" for each in cluster])
    model = CalibratedModel(GaussianNB(), "sigmoid", 4, ensemble).fit(X, y, cluster=ids)
    np.testing.assert_array_equal(model.predict_proba(X), by_hand.predict_proba(X))
    independent = CalibratedModel(GaussianNB(), "sigmoid", splits, ensemble).fit(X, y)
    wide, narrow = (np.ptp(each.predict_interval(X), axis=0).mean() for each in (model, independent))
    assert wide > 1.2 * narrow


def test_the_calibrator_of_a_frozen_model_takes_clusters():
    X, y, cluster = clustered()
    inner = GaussianNB().fit(*data(n=200, seed=1))
    model = CalibratedModel(FrozenEstimator(inner)).fit(X, y, cluster=cluster)
    by_hand = calibrant.Calibrator(pos_label="ham").fit(inner.predict_proba(X)[:, 1], y, cluster=cluster)
    np.testing.assert_array_equal(
        model.predict_proba(X)[:, 1], by_hand.predict_proba(inner.predict_proba(X)[:, 1])
    )


def test_clusters_are_as_many_as_folds_and_rows():
    X, y, cluster = clustered()
    with pytest.raises(calibrant.InputError, match=r"cluster must have 5 distinct values .*got 3"):
        CalibratedModel(GaussianNB()).fit(X, y, cluster=cluster % 3)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        CalibratedModel(GaussianNB()).fit(X, y, cluster=cluster[:-1])


def test_a_search_routes_clusters_through():
    X, y, cluster = clustered()
    with sklearn.config_context(enable_metadata_routing=True):
        model = CalibratedModel(GaussianNB(), cv=2).set_fit_request(cluster=True)
        search = GridSearchCV(model, {"method": ["auto"]}, cv=2).fit(X, y, cluster=cluster)
    expected = CalibratedModel(GaussianNB(), cv=2).fit(X, y, cluster=cluster).predict_proba(X)
    np.testing.assert_array_equal(search.predict_proba(X), expected)


# With the rest of scikit-learn


def test_it_is_cloned_searched_and_cross_validated():
    X, y = data(3)
    model = CalibratedModel(make_pipeline(StandardScaler(), LogisticRegression()), cv=3)
    copy = clone(model)
    assert copy is not model
    assert copy.get_params()["estimator__logisticregression__C"] == 1.0
    space = {"estimator__logisticregression__C": [1e-3, 1.0], "method": ["identity", "auto"]}
    search = GridSearchCV(copy, space, cv=2, scoring="neg_log_loss", error_score="raise").fit(X, y)
    assert search.best_params_["estimator__logisticregression__C"] == 1.0
    held_out = cross_val_predict(model, X, y, cv=3, method="predict_proba")
    assert calibrant.ece(y, held_out, labels=search.classes_) < 0.2
    assert np.isfinite(cross_val_score(model, X, y, cv=2, scoring=neg_ece_scorer())).all()


def test_it_stands_at_the_end_of_a_pipeline():
    X, y = data()
    model = make_pipeline(StandardScaler(), CalibratedModel(LinearSVC())).fit(X, y)
    assert model.predict_proba(X).shape == (240, 2)
    assert model.score(X, y) > 0.6
    low, high = model[-1].predict_interval(model[:-1].transform(X))
    assert (low <= high).all()


def test_a_frozen_model_survives_a_search():
    X, y = data()
    inner = FrozenEstimator(GaussianNB().fit(X[::2], y[::2]))
    search = GridSearchCV(CalibratedModel(inner), {"method": ["identity", "auto"]}, cv=2)
    search.fit(X[1::2], y[1::2])
    assert search.best_estimator_.estimator is inner


def test_a_copy_by_pickle_says_the_same():
    X, y = data(3)
    model = CalibratedModel(GaussianNB()).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.predict_interval(X), model.predict_interval(X))


def test_the_calibrator_is_saved_by_itself(tmp_path):
    X, y = data()
    model = CalibratedModel(GaussianNB()).fit(X, y)
    model.calibrators_[0].save(tmp_path / "map.json")
    loaded = calibrant.Calibrator.load(tmp_path / "map.json")
    assert loaded.classes_ == ("eggs", "ham")
    score = GaussianNB().fit(X, y).predict_proba(X)[:, 1]
    np.testing.assert_allclose(loaded.predict_proba(score), model.predict_proba(X)[:, 1], atol=1e-12)


def test_it_says_what_it_is():
    assert (
        repr(CalibratedModel(GaussianNB(), "beta"))
        == "CalibratedModel(estimator=GaussianNB(), method='beta')"
    )
    with sklearn.config_context(enable_metadata_routing=True):
        assert "estimator" in repr(CalibratedModel(GaussianNB()).get_metadata_routing())


def test_real_data_with_few_rows():
    X, y = load_iris(return_X_y=True)
    p = CalibratedModel(GaussianNB()).fit(X, y).predict_proba(X)
    assert log_loss(y, p) < 0.2
    X, y = load_breast_cancer(return_X_y=True)
    p = CalibratedModel(GaussianNB()).fit(X[::2], y[::2]).predict_proba(X[1::2])
    assert log_loss(y[1::2], p) < 0.25

"""The scorer and the display: what scikit-learn does with them is what calibrant would say."""

import copy
import inspect
import pickle
import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pytest

mpl.use("Agg")
import matplotlib.pyplot as plt
import sklearn
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV, CalibrationDisplay, calibration_curve
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    BaggingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    LearningCurveDisplay,
    StratifiedKFold,
    cross_val_score,
    cross_validate,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import calibrant
from calibrant.sklearn import ReliabilityDisplay, neg_ece_scorer

pytestmark = pytest.mark.full

CURRENT = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 9)
FOLDS = StratifiedKFold(3)


def data(classes=3, n=300, seed=0):
    X, y = make_classification(
        n, 6, n_informative=3, n_redundant=1, n_classes=classes, flip_y=0.2, random_state=seed
    )
    return X, np.array(["ham", "spam", "eggs"])[y]


def fitted(classes=3, **choices):
    X, y = data(classes, **choices)
    return GaussianNB().fit(X[::2], y[::2]), X[1::2], y[1::2]


class Tempered(ClassifierMixin, BaseEstimator):
    """A logistic regression with multiplied log-odds: calibrated at 1, and always of the same accuracy."""

    def __init__(self, factor=1.0):
        self.factor = factor

    def fit(self, X, y):
        self.model_ = LogisticRegression().fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X):
        raised = self.model_.predict_proba(X) ** self.factor
        return raised / raised.sum(axis=1, keepdims=True)

    def predict(self, X):
        return self.model_.predict(X)


# The score


@pytest.mark.parametrize("notion", [None, "confidence", "classwise"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("options", [{}, {"estimator": "uniform:10", "norm": "max"}, {"norm": "l2"}])
def test_the_score_is_minus_the_error_of_the_matrix(notion, classes, options):
    model, X, y = fitted(classes)
    p = model.predict_proba(X)
    expected = calibrant.ece(y, p, notion=notion, labels=model.classes_, **options)
    found = neg_ece_scorer(notion, **options)(model, X, y)
    assert found == -expected
    assert type(found) is float


def test_whole_rows_have_a_score():
    model, X, y = fitted(3)
    X, y = X[:90], y[:90]
    choices = {"notion": "canonical", "norm": "mul"}
    expected = calibrant.ece(y, model.predict_proba(X), labels=model.classes_, **choices)
    assert neg_ece_scorer(**choices)(model, X, y) == -expected
    with pytest.raises(ValueError, match="notion must compare one score at a time here"):
        ReliabilityDisplay.from_estimator(model, X, y, notion="canonical")


def test_binary_models_are_asked_about_confidence_like_all_others():
    model, X, y = fitted(2)
    p = model.predict_proba(X)
    assert neg_ece_scorer()(model, X, y) == -calibrant.ece(y, p, notion="confidence")
    assert neg_ece_scorer()(model, X, y) != neg_ece_scorer("binary")(model, X, y)


def test_the_class_is_the_second_of_two_or_the_one_named():
    model, X, y = fitted(2)
    p = model.predict_proba(X)
    second = -calibrant.ece(y, p[:, 1], pos_label="spam")
    assert list(model.classes_) == ["ham", "spam"]
    assert neg_ece_scorer("binary")(model, X, y) == second
    assert neg_ece_scorer("binary", pos_label="spam")(model, X, y) == second
    assert neg_ece_scorer("binary", pos_label="ham")(model, X, y) == -calibrant.ece(y == "ham", p[:, 0])


def test_one_class_of_many_has_to_be_named():
    model, X, y = fitted(3)
    with pytest.raises(ValueError, match="pos_label must name one of"):
        neg_ece_scorer("binary")(model, X, y)
    found = neg_ece_scorer("binary", pos_label="eggs")(model, X, y)
    assert found == -calibrant.ece(y == "eggs", model.predict_proba(X)[:, 0])


def test_weights_are_those_of_ece():
    model, X, y = fitted()
    weight = np.random.default_rng(0).random(len(y))
    expected = -calibrant.ece(y, model.predict_proba(X), labels=model.classes_, sample_weight=weight)
    assert neg_ece_scorer()(model, X, y, weight) == expected
    assert neg_ece_scorer()(model, X, y, sample_weight=weight) == expected


# Model selection


def expected_by_fold(model, X, y, **options):
    found = []
    for train, test in FOLDS.split(X, y):
        p = clone(model).fit(X[train], y[train]).predict_proba(X[test])
        found.append(-calibrant.ece(y[test], p, labels=np.unique(y), **options))
    return found


@pytest.mark.parametrize("classes", [2, 3])
def test_cross_validation_gives_the_error_of_each_fold(classes):
    X, y = data(classes)
    model = make_pipeline(StandardScaler(), GaussianNB())
    found = cross_val_score(model, X, y, cv=FOLDS, scoring=neg_ece_scorer())
    np.testing.assert_allclose(found, expected_by_fold(model, X, y, notion="confidence"))


def test_several_scores_go_side_by_side():
    X, y = data()
    scoring = {"ece": neg_ece_scorer(), "each": neg_ece_scorer("classwise"), "log": "neg_log_loss"}
    found = cross_validate(GaussianNB(), X, y, cv=FOLDS, scoring=scoring)
    np.testing.assert_allclose(found["test_ece"], expected_by_fold(GaussianNB(), X, y))
    np.testing.assert_allclose(found["test_each"], expected_by_fold(GaussianNB(), X, y, notion="classwise"))
    assert (found["test_log"] < 0).all()


@pytest.mark.parametrize(
    "scoring", [neg_ece_scorer(), {"ece": neg_ece_scorer("classwise"), "hits": "accuracy"}]
)
def test_a_search_finds_the_calibrated_model(scoring):
    X, y = data(n=1500)
    refit = "ece" if isinstance(scoring, dict) else True
    search = GridSearchCV(Tempered(), {"factor": [0.2, 1.0, 5.0]}, scoring=scoring, cv=FOLDS, refit=refit)
    search.fit(X, y)
    assert search.best_params_ == {"factor": 1.0}
    # By accuracy the three are one model, so nothing but the score can have chosen.
    assert cross_val_score(search.best_estimator_, X, y).mean() == pytest.approx(
        cross_val_score(Tempered(5.0), X, y).mean()
    )


def test_processes_get_the_scorer():
    X, y = data()
    search = GridSearchCV(GaussianNB(), {"var_smoothing": [1e-9, 1.0]}, scoring=neg_ece_scorer(), n_jobs=2)
    search.fit(X, y)
    alone = clone(search).set_params(n_jobs=None).fit(X, y)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize(
    "series", [pd.Series, list, *([pl.Series] if CURRENT else [])]
)  # 1.4 cannot cut them
def test_frames_and_series_do(frame, series):
    X, y = data()
    table = frame({f"x{i}": X[:, i] for i in range(X.shape[1])})
    model = make_pipeline(StandardScaler(), GaussianNB())
    found = cross_val_score(model, table, series(y.tolist()), cv=FOLDS, scoring=neg_ece_scorer())
    np.testing.assert_allclose(found, expected_by_fold(model, X, y))


@pytest.mark.parametrize("labels", [(3, 7, 11), (False, True, None), (-1, 1, None), (0.5, 1.5, 2.5)])
def test_labels_are_of_any_kind(labels):
    used = [label for label in labels if label is not None]
    X, y = data(len(used))
    model, named = GaussianNB().fit(X, y), dict(zip(["eggs", "ham", "spam"][-len(used) :], used, strict=True))
    other = np.array([named[label] for label in y])
    if other.dtype == float:
        other = other.astype(str)  # scikit-learn takes floats for a regression
    expected = neg_ece_scorer("classwise")(model, X, y)
    assert neg_ece_scorer("classwise")(GaussianNB().fit(X, other), X, other) == pytest.approx(expected)


META = {
    "calibrated": CalibratedClassifierCV(LinearSVC(dual=True, random_state=0), cv=2),
    "voting": VotingClassifier([("a", GaussianNB()), ("b", LogisticRegression())], voting="soft"),
    "stacking": StackingClassifier([("a", GaussianNB())], LogisticRegression(), cv=2),
    "one against the rest": OneVsRestClassifier(LogisticRegression()),
    "bagging": BaggingClassifier(GaussianNB(), 3, random_state=0),
    "search": GridSearchCV(GaussianNB(), {"var_smoothing": [1e-9, 1e-3]}, scoring=neg_ece_scorer(), cv=2),
}


@pytest.mark.parametrize("name", META)
@pytest.mark.parametrize("classes", [2, 3])
def test_models_of_models_do(name, classes):
    X, y = data(classes)
    np.testing.assert_allclose(
        cross_val_score(META[name], X, y, cv=FOLDS, scoring=neg_ece_scorer()),
        expected_by_fold(META[name], X, y),
    )


def test_others_that_take_a_scorer_take_this_one():
    X, y = data()
    scorer = neg_ece_scorer()
    boosted = HistGradientBoostingClassifier(scoring=scorer, early_stopping=True, max_iter=3, random_state=0)
    assert (boosted.fit(X, y).validation_score_ <= 0).all()
    model = GaussianNB().fit(X, y)
    assert permutation_importance(model, X, y, scoring=scorer, n_repeats=2).importances.shape == (6, 2)
    display = LearningCurveDisplay.from_estimator(GaussianNB(), X, y, scoring=scorer, train_sizes=[0.5, 1.0])
    assert display.score_name.lower() == "negative ece"
    plt.close("all")


# Classes that are not there


def test_a_class_absent_from_the_test_part_still_counts():
    X, y = data()
    part = np.flatnonzero(y != "eggs")[:60]
    split = [(np.setdiff1d(np.arange(len(y)), part), part)]
    p = GaussianNB().fit(X[split[0][0]], y[split[0][0]]).predict_proba(X[part])
    (found,) = cross_val_score(GaussianNB(), X, y, cv=split, scoring=neg_ece_scorer("classwise"))
    assert found == pytest.approx(
        -calibrant.ece(y[part], p, notion="classwise", labels=["eggs", "ham", "spam"])
    )


def test_a_class_absent_from_the_training_part_is_named():
    X, y = data()
    train = np.flatnonzero(y != "eggs")[:100]
    split = [(train, np.setdiff1d(np.arange(len(y)), train))]
    message = r"fitted on, \['ham', 'spam'\], got 'eggs'; its training data held none of that class"
    with pytest.raises(ValueError, match=message):
        cross_val_score(GaussianNB(), X, y, cv=split, scoring=neg_ece_scorer(), error_score="raise")
    with pytest.warns(UserWarning, match=message):
        assert np.isnan(cross_val_score(GaussianNB(), X, y, cv=split, scoring=neg_ece_scorer()))
    with pytest.raises(ValueError, match=message):
        ReliabilityDisplay.from_estimator(GaussianNB().fit(X[train], y[train]), X, y)


def test_a_model_of_one_class_is_refused():
    X, y = data()
    with pytest.raises(ValueError, match="at least two classes, got one, ham"):
        neg_ece_scorer()(DummyClassifier().fit(X[y == "ham"], y[y == "ham"]), X, y)


def test_other_errors_keep_their_reason():
    model, X, y = fitted()
    broken = y.astype(object)
    broken[3] = None
    with pytest.raises(ValueError, match="y_true must have no missing values, got None at row 3"):
        neg_ece_scorer()(model, X, broken)
    del model.classes_  # predict_proba of this model does not need them
    model.predict_proba = lambda X: np.full((len(X), 4), 0.25)
    with pytest.raises(ValueError, match="pass labels="):
        neg_ece_scorer()(model, X, y)


# Models that cannot be asked


def test_a_model_without_probabilities_is_told_to_calibrate():
    X, y = data()
    model = LinearSVC(dual=True, random_state=0).fit(X, y)
    with pytest.raises(
        AttributeError, match=r"got LinearSVC.*calibrate it first: calibrant.*CalibratedModel"
    ):
        neg_ece_scorer()(model, X, y)
    with pytest.raises(AttributeError, match="calibrate it first"):
        ReliabilityDisplay.from_estimator(
            make_pipeline(StandardScaler(), LinearSVC(dual=True, random_state=0)).fit(X, y), X, y
        )


def test_several_outputs_are_refused():
    X, y = data()
    both = np.stack([y, y], axis=1)
    model = RandomForestClassifier(3, random_state=0).fit(X, both)
    with pytest.raises(ValueError, match="one output, got 2 matrices"):
        neg_ece_scorer()(model, X, both)


# Choices


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"notion": "confidense"}, "did you mean 'confidence'"),
        ({"notion": "canonical", "norm": "max"}, "norm must be one of 'l1', 'l2', 'mul', got 'max'"),
        ({"notion": "canonical", "estimator": "uniform:10"}, "be an estimator of canonical calibration"),
        ({"norm": "mul"}, "norm must be one of"),
        ({"estimator": "unifrom:10"}, "did you mean 'uniform'"),
        ({"norm": "L1"}, "norm must be one of"),
        ({"estimator": "smooth", "norm": "l2"}, "smooth defines norm 'l1', got 'l2'"),
        ({"pos_label": "spam"}, "needs notion=\"binary\", got 'spam' for notion='confidence'"),
        ({"notion": "classwise", "pos_label": 1}, 'needs notion="binary"'),
    ],
)
def test_a_wrong_choice_is_told_before_any_fit(choices, message):
    with pytest.raises(ValueError, match=message):
        neg_ece_scorer(**choices)


def test_an_estimator_may_be_a_value_or_a_function():
    model, X, y = fitted()
    p = model.predict_proba(X)
    for estimator in (calibrant.Binned("adaptive", 10), lambda s, y, w: abs(np.mean(s - y))):
        found = neg_ece_scorer(estimator=estimator)(model, X, y)
        assert found == -calibrant.ece(y, p, labels=model.classes_, estimator=estimator)


def test_copies_say_the_same():
    model, X, y = fitted(2)
    scorer = neg_ece_scorer("binary", estimator="uniform:10", norm="l2", pos_label="ham")
    with sklearn.config_context(enable_metadata_routing=True):
        scorer.set_score_request(sample_weight="importance")
    inside = clone(GridSearchCV(GaussianNB(), {}, scoring=scorer)).scoring
    nested = clone(GridSearchCV(GaussianNB(), {}, scoring={"ece": scorer}, refit="ece")).scoring["ece"]
    for other in (copy.deepcopy(scorer), pickle.loads(pickle.dumps(scorer)), inside, nested):
        assert other is not scorer
        assert repr(other) == repr(scorer)
        assert str(other.get_metadata_routing()) == str(scorer.get_metadata_routing())
        assert other(model, X, y) == scorer(model, X, y)


def test_the_text_of_a_scorer_makes_it_again():
    for scorer in (
        neg_ece_scorer(),
        neg_ece_scorer("binary", estimator="l:15", norm="max", pos_label="spam"),
    ):
        assert repr(eval(repr(scorer))) == repr(scorer)
    assert repr(neg_ece_scorer()) == "neg_ece_scorer(notion='confidence', estimator='auto', norm='l1')"
    assert "scoring=neg_ece_scorer(notion='confidence'," in repr(
        GridSearchCV(GaussianNB(), {}, scoring=neg_ece_scorer())
    )


# Weights by metadata routing


def weighted_folds(X, y, weight, weigh_score):
    found = []
    for train, test in FOLDS.split(X, y):
        p = GaussianNB().fit(X[train], y[train], weight[train]).predict_proba(X[test])
        given = weight[test] if weigh_score else None
        found.append(-calibrant.ece(y[test], p, labels=np.unique(y), sample_weight=given))
    return found


@pytest.mark.parametrize("request_of_score", [True, False, "importance"])
def test_routed_weights_reach_the_score_if_it_asks(request_of_score):
    X, y = data()
    weight = np.random.default_rng(0).random(len(y))
    expected = weighted_folds(X, y, weight, bool(request_of_score))
    with sklearn.config_context(enable_metadata_routing=True):
        model = GaussianNB().set_fit_request(sample_weight=True)
        scorer = neg_ece_scorer().set_score_request(sample_weight=request_of_score)
        given = {"sample_weight": weight}
        if isinstance(request_of_score, str):
            given[request_of_score] = weight
        for scoring, key in ((scorer, "score"), ({"ece": scorer}, "ece")):
            found = cross_validate(model, X, y, cv=FOLDS, scoring=scoring, params=given)[f"test_{key}"]
            np.testing.assert_allclose(found, expected)
            refit = key if isinstance(scoring, dict) else True
            search = GridSearchCV(model, {"var_smoothing": [1e-9]}, scoring=scoring, cv=FOLDS, refit=refit)
            best = search.fit(X, y, **given).best_score_
            assert best == pytest.approx(np.mean(expected))


def test_weights_nobody_spoke_of_are_not_routed():
    X, y = data()
    with sklearn.config_context(enable_metadata_routing=True):
        model = GaussianNB().set_fit_request(sample_weight=True)
        with pytest.raises(UnsetMetadataPassedError, match="NegECE" if CURRENT else "sample_weight"):
            cross_validate(
                model,
                X,
                y,
                scoring=neg_ece_scorer(),
                params={"sample_weight": np.ones(len(y))},
                error_score="raise",
            )
        with pytest.raises(ValueError, match="alias"):
            neg_ece_scorer().set_score_request(sample_weight="no name")
    with pytest.raises(RuntimeError, match="enable_metadata_routing=True"):
        neg_ece_scorer().set_score_request(sample_weight=True)


def test_a_search_fitted_with_weights_needs_no_routing():
    X, y = data()
    weight = np.random.default_rng(0).random(len(y))
    search = GridSearchCV(
        GaussianNB(),
        {"var_smoothing": [1e-9]},
        scoring={"ece": neg_ece_scorer(), "log": "neg_log_loss"},
        cv=FOLDS,
        refit="ece",
    )
    found = search.fit(X, y, sample_weight=weight).best_score_
    either = [np.mean(weighted_folds(X, y, weight, weighted)) for weighted in (True, False)]
    assert found == pytest.approx(either[0 if CURRENT else 1])  # earlier versions weigh the fit alone


# The display


@pytest.fixture(autouse=True)
def no_figures_left():
    yield
    plt.close("all")


@pytest.mark.parametrize("method", ["from_estimator", "from_predictions", "plot"])
def test_the_signature_is_that_of_the_calibration_display(method):
    ours, theirs = (
        inspect.signature(getattr(one, method)).parameters for one in (ReliabilityDisplay, CalibrationDisplay)
    )
    shared = [name for name in ours if name in theirs]
    assert set(shared) == set(theirs)
    for name in shared:
        assert (ours[name].kind, ours[name].default) == (theirs[name].kind, theirs[name].default)
    if CURRENT:  # before, two keyword-only arguments stood the other way round
        assert shared == list(theirs)
    assert all(ours[name].kind is inspect.Parameter.KEYWORD_ONLY for name in set(ours) - set(theirs))


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("n_bins", [5, 10])
def test_code_for_the_calibration_display_works_unchanged(strategy, n_bins):
    model, X, y = fitted(2, n=400)
    shown = []
    for kind in (CalibrationDisplay, ReliabilityDisplay):
        ax = plt.figure().subplots()
        one = kind.from_estimator(
            model,
            X,
            y,
            n_bins=n_bins,
            strategy=strategy,
            name="bayes",
            ax=ax,
            ref_line=True,
            color="C3",
            linestyle="--",
        )
        p = model.predict_proba(X)[:, 1]
        assert one.ax_ is ax
        assert one.figure_ is ax.figure
        assert (one.pos_label, one.estimator_name) == ("spam", "bayes")
        assert (one.line_.get_linestyle(), to_hex(one.line_.get_color())) == ("--", to_hex("C3"))
        np.testing.assert_array_equal(one.y_prob, p)
        shown.append(one)
        assert kind.from_predictions(y, p, pos_label="ham", n_bins=n_bins).plot(name="again") is not None
    theirs, ours = shown
    np.testing.assert_allclose(ours.prob_pred, theirs.prob_pred)
    np.testing.assert_allclose(ours.prob_true, theirs.prob_true)
    expected = calibration_curve(y, p, n_bins=n_bins, strategy=strategy, pos_label="spam")
    np.testing.assert_allclose((ours.prob_true, ours.prob_pred), expected)


def test_it_draws_the_curve_and_the_diagram_of_calibrant():
    model, X, y = fitted(2)
    p, weight = model.predict_proba(X)[:, 1], np.random.default_rng(0).integers(0, 3, len(y))
    given = {"pos_label": "spam", "level": 0.8, "sample_weight": weight}
    curve = calibrant.reliability_curve(y, p, **given)
    diagram = calibrant.reliability_diagram(y, p, binning="adaptive:7", **given)
    settings = {"n_bins": 7, "strategy": "quantile", "level": 0.8, "rng": 3, "sample_weight": weight}
    display = ReliabilityDisplay.from_estimator(model, X, y, **settings)
    np.testing.assert_allclose(display.curve.value, curve.value)
    np.testing.assert_allclose(display.curve.low, curve.low)
    np.testing.assert_allclose(display.diagram.frequency, diagram.frequency)
    drawn = display.line_.get_ydata()
    held = np.isfinite(drawn)
    assert held.any()
    np.testing.assert_allclose(drawn[held], curve.value[held])
    (bins,) = (one for one in display.ax_.collections if isinstance(one, PathCollection))
    np.testing.assert_allclose(np.asarray(bins.get_offsets())[:, 1], display.prob_true)


def test_many_classes_are_shown_by_confidence_or_one_by_name():
    model, X, y = fitted(3)
    display = ReliabilityDisplay.from_estimator(model, X, y)
    assert (display.curve.notion, display.pos_label, display.y_prob.shape) == ("confidence", None, (150, 3))
    one = ReliabilityDisplay.from_estimator(model, X, y, pos_label="eggs")
    assert (one.curve.notion, one.pos_label) == ("binary", "eggs")
    np.testing.assert_array_equal(one.y_prob, model.predict_proba(X)[:, 0])
    matrix = ReliabilityDisplay.from_predictions(y, model.predict_proba(X), labels=model.classes_)
    assert matrix.curve.error == display.curve.error
    binary, X, y = fitted(2)
    asked = ReliabilityDisplay.from_estimator(binary, X, y, notion="confidence")
    assert (asked.curve.notion, asked.y_prob.shape) == ("confidence", (150, 2))


def test_the_display_knows_the_classes_by_the_model():
    X, y = data(3)
    number = np.array([{"ham": 7, "spam": 3, "eggs": 11}[label] for label in y])
    model, part = GaussianNB().fit(X, number), number != 3
    display = ReliabilityDisplay.from_estimator(model, X[part], number[part], bandwidth=0.1)
    p = model.predict_proba(X[part])
    expected = calibrant.reliability_curve(
        number[part], p, labels=[3, 7, 11], method="density", bandwidth=0.1, n_boot=0
    )
    np.testing.assert_allclose(display.curve.point, expected.point)
    assert display.curve.bandwidth == 0.1


def test_the_bins_may_be_left_out():
    display = ReliabilityDisplay.from_estimator(*fitted(2), n_bins=None)
    assert display.diagram is None
    assert display.prob_true.size == display.prob_pred.size == 0
    assert not any(isinstance(one, PathCollection) for one in display.ax_.collections)


def diagonals(ax):
    return [line for line in ax.lines if list(line.get_xdata()) == list(line.get_ydata()) == [0, 1]]


def test_the_diagonal_is_drawn_once_or_not_at_all():
    model, X, y = fitted(2)
    display = ReliabilityDisplay.from_estimator(model, X, y, ref_line=False)
    assert not diagonals(display.ax_)
    (text,) = display.ax_.get_legend().get_texts()
    assert text.get_text().startswith("GaussianNB, ECE")
    for _ in range(2):
        ReliabilityDisplay.from_estimator(model, X, y, ax=display.ax_)
        assert len(diagonals(display.ax_)) == 1
    ReliabilityDisplay.from_estimator(model, X, y, ax=display.ax_, ref_line=False)
    assert len(diagonals(display.ax_)) == 1


def test_models_on_one_panel_differ_in_colour_and_have_their_names():
    model, X, y = fitted(2)
    first = ReliabilityDisplay.from_estimator(model, X, y)
    second = ReliabilityDisplay.from_predictions(
        y, model.predict_proba(X)[:, 1], pos_label="spam", ax=first.ax_
    )
    assert [to_hex(one.line_.get_color()) for one in (first, second)] == [to_hex("C0"), to_hex("C1")]
    entries = [text.get_text().split(",")[0] for text in first.ax_.get_legend().get_texts()]
    assert entries == ["calibrated", "GaussianNB", "Classifier"]
    assert len(first.figure_.axes) == 2  # the second model's scores are counted under the first's


def test_a_panel_that_is_given_is_the_only_one_drawn_on():
    figure, axes = plt.subplots(1, 2)
    before, place = dict(mpl.rcParams), axes[0].get_position().bounds
    ReliabilityDisplay.from_estimator(*fitted(2), ax=axes[0])
    assert figure.axes == list(axes)
    assert axes[0].get_position(original=True).bounds == place
    assert not axes[1].has_data()
    assert dict(mpl.rcParams) == before


def test_the_style_goes_to_the_line():
    style = {"c": (0.1, 0.2, 0.3, 1.0), "lw": 3, "marker": "^", "alpha": 0.5, "label": "mine"}
    line = ReliabilityDisplay.from_estimator(*fitted(2), **style).line_
    assert (line.get_linewidth(), line.get_marker(), line.get_alpha()) == (3, "^", 0.5)
    assert line.get_markevery() == 0.1
    assert to_hex(line.get_color()) == to_hex((0.1, 0.2, 0.3))
    assert line.axes.get_legend().get_texts()[-1].get_text().startswith("mine, ECE")
    with pytest.raises(AttributeError, match="colour"):
        ReliabilityDisplay.from_estimator(*fitted(2), colour="red")


def test_a_display_draws_itself_again():
    display = ReliabilityDisplay.from_estimator(*fitted(2))
    first, ax = display.ax_, plt.figure().subplots()
    assert display.plot(ax=ax, name="again") is display
    assert display.ax_ is ax is not first
    assert ax.get_legend().get_texts()[-1].get_text().startswith("again, ECE")
    assert repr(display).startswith(
        "ReliabilityDisplay(GaussianNB, ReliabilityCurve(class 'spam', n=150, ECE"
    )


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"strategy": "equal"}, "strategy must be one of 'uniform', 'quantile', got 'equal'"),
        ({"n_bins": 0}, "n_bins must be an integer of at least 1, got 0"),
        ({"notion": "classwise"}, r'notion="classwise"\).plot\(\)'),
        ({"pos_label": "bacon"}, "pos_label must be one of 'ham', 'spam', got 'bacon'"),
        ({"level": 95}, "write 0.95"),
    ],
)
def test_a_wrong_argument_is_named(choices, message):
    with pytest.raises(ValueError, match=message):
        ReliabilityDisplay.from_estimator(*fitted(2), **choices)


# Without scikit-learn


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_calibrant_does_not_import_scikit_learn():
    done = run("import sys, calibrant; sys.exit(any('sklearn' in name for name in sys.modules))")
    assert done.returncode == 0, done.stderr


def test_the_missing_extra_is_named():
    done = run("import sys; sys.modules['sklearn'] = None; import calibrant.sklearn")
    assert done.stderr.strip().endswith(
        "calibrant.sklearn needs scikit-learn: pip install 'calibrant[sklearn]'"
    )


def test_a_display_made_of_bins_as_that_of_scikit_learn_says_what_to_call():
    y, p = np.array([0, 1, 1, 0]), np.array([0.2, 0.7, 0.9, 0.4])
    prob_true, prob_pred = calibration_curve(y, p, n_bins=2)
    CalibrationDisplay(prob_true, prob_pred, p)
    with pytest.raises(calibrant.InputError, match="from_predictions") as refused:
        ReliabilityDisplay(prob_true, prob_pred, p)
    assert "curve" in str(refused.value)

"""Compiled loops give the scores that scikit-learn's own functions give."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.svm import SVC

from calibrant import compiled
from calibrant.experiment import models
from calibrant.experiment.distributions import Mixture
from plainly import needs_loops, plain

PARTS = "feature", "threshold", "children_left", "children_right", "node_count"


def trained(family, classes, features, n=150, seed=0):
    rng = np.random.default_rng([classes, features, seed])
    mixture = Mixture(classes, features, seed)
    return models.fit(family, *mixture.sample(n, rng), seed=seed), mixture.sample(403, rng)[0]


class Counting:
    """A tree whose leaves hold counts."""

    def __init__(self, tree):
        self.tree, self.tree_ = tree, SimpleNamespace(**{name: getattr(tree.tree_, name) for name in PARTS})
        self.tree_.value = 150 * tree.tree_.value

    def __getattr__(self, name):
        return getattr(self.tree, name)


@needs_loops
@pytest.mark.parametrize(("classes", "features"), [(2, 2), (3, 1), (7, 5)])
def test_a_forest_is_the_same_to_the_last_bit(classes, features):
    model, rows = trained(models.forest, classes, features)
    # Also on thresholds and on the floats around them.
    edges = np.concatenate([tree.tree_.threshold for tree in model.estimators_])[: 7 * len(rows)]
    rows[: len(edges), 0] = edges[: len(rows)].astype(np.float32)
    rows[: len(edges) // 2, -1] = np.nextafter(rows[: len(edges) // 2, -1].astype(np.float32), np.float32(9))
    assert np.array_equal(models.predictor(model, rows)(rows), model.predict_proba(rows))


@needs_loops
@pytest.mark.parametrize("options", [{"max_depth": 1}, {"max_leaf_nodes": 9}, {"min_samples_leaf": 20}])
def test_forests_of_any_growth(options):
    def family(seed):
        return RandomForestClassifier(n_estimators=7, random_state=seed, **options)

    model, rows = trained(family, 3, 2)
    assert np.array_equal(models.predictor(model, rows)(rows), model.predict_proba(rows))


@needs_loops
@pytest.mark.parametrize(("classes", "features"), [(2, 2), (3, 1), (7, 5)])
@pytest.mark.parametrize("rows_of", [slice(0), slice(1), slice(7), slice(None)])
def test_a_support_vector_machine_agrees(classes, features, rows_of):
    model, rows = trained(models.svc, classes, features)
    rows[:9] *= 1000  # where every kernel vanishes
    found = models.predictor(model, rows)(rows[rows_of])
    assert found.shape == (len(rows[rows_of]), classes)
    if len(found):
        assert found == pytest.approx(model.predict_proba(rows[rows_of]), abs=1e-13)
        assert found.sum(axis=1) == pytest.approx(np.ones(len(found)), abs=1e-13)


def test_scores_do_not_depend_on_the_loops():
    for family in (models.svc, models.forest):
        model, rows = trained(family, 3, 2)
        found = models.scores(model, rows, 4)
        with plain():
            assert found == pytest.approx(models.scores(model, rows, 4), abs=1e-13)
        assert not found[:, 3].any()


@pytest.mark.parametrize("family", [models.svc, models.forest])
@pytest.mark.parametrize("rows", [np.full((3, 2), np.inf), np.zeros((3, 3))])
def test_what_a_model_refuses_is_refused(family, rows):
    model, _ = trained(family, 2, 2)
    with pytest.raises(ValueError, match=r"infinity|features"):
        models.predictor(model, rows)(rows)


def test_other_models_score_for_themselves():
    for family in (models.logistic, models.naive_bayes, lambda seed: SVC(kernel="poly", probability=True)):
        model, rows = trained(family, 2, 2)
        assert models.predictor(model, rows) == model.predict_proba


@needs_loops
def test_models_that_keep_their_parts_otherwise_score_for_themselves():
    machine, rows = trained(models.svc, 3, 2)
    assert models.predictor(machine, rows) != machine.predict_proba
    del machine._probA
    assert models.predictor(machine, rows) == machine.predict_proba
    # Leaves held counts once, and gave shares when they were asked.
    forest, rows = trained(models.forest, 3, 2)
    assert models.predictor(forest, rows) != forest.predict_proba
    forest.estimators_[0] = Counting(forest.estimators_[0])
    assert models.predictor(forest, rows) == forest.predict_proba


def nodes():
    """A tree of three nodes and one of a leaf alone, with two rows."""
    i4, f4 = np.int32, np.float32
    return {
        "rows": np.array([[0.0], [1.0]], f4),
        "feature": np.array([0, -2, -2, -2], i4),
        "threshold": np.array([0.5, -2, -2, -2], f4),
        "left": np.array([1, -1, -1, -1], i4),
        "right": np.array([2, -1, -1, -1], i4),
        "starts": np.array([0, 3, 4]),
        "value": np.array([[0.5, 0.5], [1, 0], [0, 1], [0.5, 0.5]]),
        "out": np.full((2, 2), np.nan),
    }


@needs_loops
def test_the_mean_of_two_trees():
    parts = nodes()
    compiled.loops.forest(*parts.values())
    assert parts["out"].tolist() == [[0.75, 0.25], [0.25, 0.75]]


@needs_loops
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rows", np.zeros((2, 1))),
        ("rows", np.zeros((2, 2), np.float32)[:, ::2]),
        ("rows", np.zeros((3, 1), np.float32)),
        ("rows", np.zeros((2, 0), np.float32)),
        ("feature", np.array([1, -2, -2, -2], np.int32)),
        ("feature", np.array([-1, -2, -2, -2], np.int32)),
        ("threshold", np.zeros(3, np.float32)),
        ("left", np.array([3, -1, -1, -1], np.int32)),
        ("left", np.array([2, -1, -1, -1], np.int32)),
        ("left", np.array([0, -1, -1, -1], np.int32)),
        ("right", np.array([-1, -1, -1, -1], np.int32)),
        ("left", np.array([-1, -1, -1, -1], np.int32)),
        ("starts", np.array([0, 3, 3])),
        ("starts", np.array([0, 3, 5])),
        ("starts", np.array([0, 5, 4])),
        ("starts", np.array([], dtype=np.int64)),
        ("value", np.zeros((4, 3))),
        ("out", np.zeros((2, 3))),
        ("out", None),
    ],
)
def test_arrays_that_are_no_forest_are_refused(name, value):
    with pytest.raises((ValueError, TypeError)):
        compiled.loops.forest(*(nodes() | {name: value}).values())


@needs_loops
@pytest.mark.parametrize(
    ("place", "value"),
    [
        (0, np.zeros((4, 3))),
        (0, np.zeros((3, 2))),
        (1, np.zeros((4, 2))),
        (2, np.zeros((5, 2))),
        (3, np.array([0, 2, 4])),
        (3, np.array([0, 9, 5])),
        (3, np.array([0, 5])),
        (3, np.array([0.0, 2, 5])),
        (4, np.zeros(2)),
        (5, np.zeros(0)),
        (6, np.zeros((1, 1))),
        (7, np.zeros((4, 3))),
        (7, np.zeros((4, 1))),
        (7, None),
        (8, "wide"),
    ],
)
def test_arrays_that_are_no_machine_are_refused(place, value):
    arguments = [np.zeros((4, 2)), np.zeros((5, 2)), np.ones((5, 1)), np.array([0, 2, 5])]
    arguments += [np.zeros(1), np.ones(1), np.zeros(1), np.empty((4, 2)), 1.0]
    compiled.loops.coupled(*arguments)
    arguments[place] = value
    with pytest.raises((ValueError, TypeError)):
        compiled.loops.coupled(*arguments)

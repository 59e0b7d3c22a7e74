"""Rows of pandas are taken by position, and refused where their indices contradict that."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.dummy import DummyClassifier

import calibrant
from calibrant.sklearn import ReliabilityDisplay, neg_ece_scorer

rng = np.random.default_rng(0)
N = 400
SCORE = pd.Series(rng.random(N))
TRUE = pd.Series((rng.random(N) < SCORE).astype(int))
WEIGHT = pd.Series(rng.random(N))
GROUP = pd.Series(rng.integers(2, size=N))
CLUSTER = pd.Series(np.arange(N) // 2)
TABLE = pd.DataFrame({0: 1 - SCORE, 1: SCORE})
OTHER = "the same labels in another order"

CALLS = {
    "ece": lambda y, p, **o: calibrant.ece(y, p, estimator="uniform", **o),
    "mce": lambda y, p, **o: calibrant.mce(y, p, estimator="uniform", **o),
    "estimate": lambda y, p, **o: calibrant.estimate(y, p, rng=0, **o),
    "reliability_curve": calibrant.reliability_curve,
    "reliability_diagram": calibrant.reliability_diagram,
    "score_histogram": calibrant.score_histogram,
    "lce": lambda y, p, **o: calibrant.lce(y, p, 0.5, **o),
    "assess": lambda y, p, **o: calibrant.assess(y, p, rng=0, **o),
    "compare": lambda y, p, **o: calibrant.compare(y, {"a": p, "b": p.to_numpy()}, rng=0, **o),
    "sketch": lambda y, p, **o: calibrant.Sketch().update(y, p, **o),
    "display": lambda y, p, **o: ReliabilityDisplay.from_predictions(y, p, **o),
}


def shuffled(values):
    return values.sample(frac=1, random_state=1)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_the_same_labels_in_another_order_are_refused_by_every_function(call):
    for score in (SCORE, TABLE):
        with pytest.raises(
            calibrant.InputError, match=f"y_true and y_prob must have the same index.*{OTHER}"
        ):
            call(shuffled(TRUE), score)
    with pytest.raises(calibrant.InputError, match=f"y_prob and sample_weight .*{OTHER}.*to_numpy"):
        call(TRUE.to_numpy(), SCORE, sample_weight=shuffled(WEIGHT))


@pytest.mark.parametrize(
    ("index", "shown"),
    [([1, 0, 2], "1 and 0 at row 0"), (["b", "a", "c"], "'b' and 'a' at row 0")],
)
def test_labels_of_rows_are_shown_as_they_are(index, shown):
    y, p = pd.Series([0, 1, 1], index), pd.Series([0.1, 0.2, 0.3], sorted(index))
    with pytest.raises(calibrant.InputError, match=f"{OTHER}, {shown}"):
        calibrant.ece(y, p)


@pytest.mark.parametrize("name", ["ece", "mce", "estimate", "assess", "compare"])
def test_clusters_in_another_order_are_refused(name):
    for y, p in ((TRUE, SCORE.to_numpy()), (TRUE.to_numpy(), SCORE)):
        if name == "compare" and not isinstance(p, pd.Series):
            p = pd.Series(p, index=range(1000, 1000 + N))
        with pytest.raises(calibrant.InputError, match=f"and cluster must have the same index.*{OTHER}"):
            CALLS[name](y, p, cluster=shuffled(CLUSTER))


def test_groups_in_another_order_are_refused():
    with pytest.raises(calibrant.InputError, match=f"y_prob and groups must have the same index.*{OTHER}"):
        calibrant.assess(TRUE.to_numpy(), SCORE, groups=shuffled(GROUP))


def test_scores_without_labels_and_their_weights_are_held_against_each_other():
    with pytest.raises(calibrant.InputError, match=f"y_prob and sample_weight .*{OTHER}"):
        calibrant.recommend(SCORE, sample_weight=shuffled(WEIGHT), repetitions=30)


def test_models_in_another_order_are_refused_though_the_labels_have_no_index():
    with pytest.raises(calibrant.InputError, match=f"model 'a' and model 'b' must have .*{OTHER}"):
        calibrant.compare(TRUE.to_numpy(), {"a": SCORE, "b": shuffled(SCORE)})


def test_data_of_a_model_in_another_order_are_refused():
    model = DummyClassifier(strategy="prior").fit(TABLE, TRUE)
    with pytest.raises(calibrant.InputError, match=f"X and y must have the same index.*{OTHER}"):
        neg_ece_scorer()(model, TABLE, shuffled(TRUE))
    with pytest.raises(calibrant.InputError, match=f"y and sample_weight must have the same index.*{OTHER}"):
        neg_ece_scorer()(model, TABLE.to_numpy(), TRUE, sample_weight=shuffled(WEIGHT))
    with pytest.raises(calibrant.InputError, match=f"X and y must have the same index.*{OTHER}"):
        ReliabilityDisplay.from_estimator(model, TABLE, shuffled(TRUE))


INDICES = {
    "letters": (list("abcd"), list("badc")),
    "repeated": ([0, 0, 1, 1], [0, 1, 0, 1]),
    "floats": ([0.0, 1.0, 2.0, 3.0], [3, 2, 1, 0]),
    "days": (pd.date_range("2026-01-01", periods=4), pd.date_range("2026-01-01", periods=4)[::-1]),
    "pairs": (
        pd.MultiIndex.from_product([["a", "b"], [0, 1]]),
        pd.MultiIndex.from_product([["b", "a"], [0, 1]]),
    ),
    "mixed": (["a", 1, None, 2.5], [1, "a", None, 2.5]),
}


@pytest.mark.parametrize(("one", "two"), INDICES.values(), ids=INDICES)
def test_labels_of_any_kind_in_another_order_are_refused(one, two):
    y, p = [0, 1, 1, 0], [0.2, 0.7, 0.9, 0.4]
    with pytest.raises(calibrant.InputError, match=OTHER):
        calibrant.ece(pd.Series(y, index=one), pd.Series(p, index=two))
    same = calibrant.ece(pd.Series(y, index=one), pd.Series(p, index=one))
    assert same == calibrant.ece(y, p)


OF_OTHERS = {
    "a split and an array's own count": ([17, 3, 250, 8], [0, 1, 2, 3]),
    "a filter of either": ([17, 3, 250, 8], [1, 3, 4, 8]),
    "names and numbers": (list("abcd"), [0, 1, 2, 3]),
    "days and numbers": (pd.date_range("2026-01-01", periods=4), [0, 1, 2, 3]),
    "folds that were put together": ([0, 1, 0, 1], [0, 1, 2, 3]),
}


@pytest.mark.parametrize(("one", "two"), OF_OTHERS.values(), ids=OF_OTHERS)
def test_indices_of_different_labels_are_taken_by_position(one, two):
    y, p = [0, 1, 1, 0], [0.2, 0.7, 0.9, 0.4]
    assert calibrant.ece(pd.Series(y, index=one), pd.Series(p, index=two)) == calibrant.ece(y, p)


def test_frames_without_an_index_are_taken_by_position():
    assert calibrant.ece(pl.Series(TRUE), shuffled(SCORE)) == calibrant.ece(
        TRUE.to_numpy(), shuffled(SCORE).to_numpy()
    )

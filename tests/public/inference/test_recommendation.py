"""Recommendations: the truth they rest on, what they promise, and what they refuse."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import calibrant

pytestmark = pytest.mark.full

FEW = {"estimators": ["auto", "l:15", "ac:10"], "repetitions": 30, "rng": 0}


def scores(n=200, seed=0):
    return np.random.default_rng(seed).beta(0.5, 0.5, n)


def matrix(n=200, classes=4, seed=0):
    return np.random.default_rng(seed).dirichlet(np.full(classes, 0.5), n)


def test_an_estimator_that_sees_one_gap_only_falls_behind_on_alternating_scores():
    score = np.random.default_rng(0).choice([0.1, 0.3, 0.45, 0.55, 0.7, 0.9], 1500)
    found = calibrant.recommend(score, estimators=["l:1", "l:30"], repetitions=40, rng=0)
    p95 = {(row.estimator, row.curve): row.p95 for row in found.table}
    assert p95["l:1", "alternating 0.1"] > 0.08 > 4 * p95["l:30", "alternating 0.1"]
    assert found.best == "l:30"


def test_a_seed_reproduces_it_and_is_recorded():
    first = calibrant.recommend(scores(), **FEW)
    assert calibrant.recommend(scores(), **FEW) == first
    again = calibrant.recommend(scores(), **{**FEW, "rng": np.random.default_rng(7)})
    assert again != first
    assert calibrant.recommend(scores(), **{**FEW, "rng": again.seed}) == again


@pytest.mark.parametrize("notion", ["binary", "confidence", "classwise"])
def test_the_order_of_rows_does_not_matter(notion):
    y_prob, shuffled = matrix(), np.random.default_rng(1).permutation(200)
    kw = {**FEW, "notion": notion, "pos_label": 2}
    assert calibrant.recommend(y_prob, **kw) == calibrant.recommend(y_prob[shuffled], **kw)


def test_the_table_says_what_the_estimates_were():
    seen = []

    def half(scores, outcomes, weights):
        seen.append((len(scores), weights.sum()))
        return 0.5

    found = calibrant.recommend(scores(80), estimators=[half, "l:15"], repetitions=20, rng=0)
    assert set(seen) == {(80, 80.0)}
    for row in found.table:
        if row.estimator == "half":
            assert row.bias == pytest.approx(0.5 - row.true)
            assert row.sd == pytest.approx(0.0, abs=1e-12)
            assert row.p95 == pytest.approx(row.mae) == pytest.approx(row.bias)
    assert found.best == "l:15"
    assert found.ranking[1].loss > 3
    assert not found.ranking[1].tied


def test_noise_is_said_where_estimators_are_alike():
    kw = {"estimators": {"one": "ac:10", "other": "ac:10", "far": "l:60"}, "repetitions": 40, "rng": 0}
    found = calibrant.recommend(scores(), **kw)
    assert [one.tied for one in found.ranking] == [True, True, False]
    assert "within noise of it: other" in str(found)


@pytest.mark.parametrize("notion", [None, "classwise", "binary"])
def test_matrices(notion):
    found = calibrant.recommend(matrix(), notion=notion, pos_label=1 if notion == "binary" else None, **FEW)
    assert found.notion == (notion or "confidence")
    assert found.label == (1 if notion == "binary" else None)
    assert found.ranking[0].loss >= 1.0
    largest = max(row.true for row in found.table)
    assert largest == pytest.approx(0.05 if notion == "classwise" else 0.1, rel=0.01)
    shared = {one.resolved for one in found.ranking if one.estimator == "auto"}
    assert shared == {"bayes:shared" if notion == "classwise" else "bayes"}


def test_a_vector_is_asked_about_both_classes_if_that_is_asked():
    both = calibrant.recommend(scores(), notion="classwise", **{**FEW, "estimators": ["l:15", "a:10"]})
    one = calibrant.recommend(scores(), **{**FEW, "estimators": ["l:15", "a:10"]})
    assert [row.true for row in both.table] == pytest.approx([row.true for row in one.table], abs=0.001)
    close = [(a.p95, b.p95) for a, b in zip(both.table, one.table, strict=True)]
    assert all(0.5 < a / b < 2 for a, b in close)


def test_many_classes_are_represented_by_some():
    found = calibrant.recommend(matrix(60, 30), notion="classwise", estimators=["l:15"], repetitions=2, rng=0)
    assert "20 of 30 classes stand for all" in found.cautions


def test_counts_mean_repetition():
    s, count = scores(60), np.random.default_rng(0).integers(0, 4, 60)
    weighted = calibrant.recommend(s, counts=count, **FEW)
    assert weighted == calibrant.recommend(np.repeat(s, count), **FEW)
    assert weighted.n == count.sum()


def test_another_size_can_be_asked_for():
    small, large = (calibrant.recommend(scores(), n=n, **FEW) for n in (50, 800))
    assert (small.n, large.n) == (50, 800)
    p95 = [{(r.estimator, r.curve): r.p95 for r in found.table} for found in (small, large)]
    assert p95[0]["l:15", "calibrated"] > 2 * p95[1]["l:15", "calibrated"]
    assert [row.true for row in small.table] == [row.true for row in large.table]


def test_repetitions_follow_from_the_size():
    for n, times in ((50, 200), (1500, 100), (8000, 30)):
        found = calibrant.recommend(scores(n), estimators=["l:15"], rng=0)
        assert found.repetitions == times


def test_progress_is_told():
    told = []
    calibrant.recommend(scores(30), **FEW, progress=lambda done, total: told.append((done, total)))
    assert told == [(k + 1, len(told)) for k in range(len(told))]
    assert len(told) >= 5


def test_json_holds_everything():
    found = calibrant.recommend(matrix(), notion="binary", pos_label=np.int64(3), **FEW)
    again = calibrant.Recommendation.from_json(found.to_json())
    assert again == found
    assert str(again) == str(found)
    assert repr(again) == repr(found)
    assert "\n" not in repr(found)
    assert json.loads(found.to_json())["best"] == found.best


def test_names_of_columns_are_classes():
    frame = pd.DataFrame(matrix(50, 3), columns=["a", "b", "c"])
    kw = {**FEW, "notion": "binary", "estimators": ["l:5"]}
    assert calibrant.recommend(frame, pos_label="b", **kw).label == "b"
    assert calibrant.recommend(frame, pos_label=1, **kw).label == 1
    assert calibrant.recommend(frame.set_axis([7, 8, 9], axis=1), pos_label=9, **kw).label == 9
    assert calibrant.recommend(frame.to_numpy(), labels=["x", "y", "z"], pos_label="z", **kw).label == "z"
    assert calibrant.recommend(frame["a"], pos_label="a", **kw).label == "a"
    assert calibrant.recommend(frame["a"], labels=["a", "no"], pos_label="a", **kw).label == "a"
    assert calibrant.recommend(frame["a"], labels=pd.Index([-1, 1]), **kw).label == 1


BAD = [
    ([], {}, "y_prob must not be empty, got 0 rows"),
    (0.5, {}, "y_prob must be one-dimensional or have a column per class, got 0.5"),
    ([0.2, 1.7], {}, "y_prob must lie in [0, 1], got 1.7 at row 1"),
    ([0.2, np.nan], {}, "y_prob must be finite and have no missing values, got nan at row 1"),
    ([[0.2, 0.7]], {}, "y_prob must sum to 1 within 1e-06 in every row, got 0.9 at row 0"),
    ([[0.2], [0.7]], {}, "y_prob must be one-dimensional or have a column per class, got shape (2, 1)"),
    ([0.2, 0.3], {"sample_weight": [1]}, "sample_weight must be as long as y_prob, got 1 weights for 2 rows"),
    ([0.2, 0.3], {"sample_weight": [1, -1]}, "sample_weight must be finite, at least 0"),
    ([0.2, 0.3], {"sample_weight": [0, 0]}, "sample_weight must have a positive sum"),
    ([0.2, 0.3], {"n": 0}, "n must be an integer of at least 1, got 0"),
    ([0.2, 0.3], {"n": 2.5}, "n must be an integer of at least 1, got 2.5"),
    ([0.2, 0.3], {"repetitions": 1}, "repetitions must be an integer of at least 2, got 1"),
    ([0.2, 0.3], {"notion": "joint"}, "notion must be one of"),
    ([0.2, 0.3], {"rng": "x"}, "rng must be None, an integer seed"),
    (
        [0.2, 0.3],
        {"estimators": "auto"},
        "estimators must be a sequence or a mapping of estimators, got 'auto'",
    ),
    ([0.2, 0.3], {"estimators": 15}, "estimators must be a sequence or a mapping of estimators, got 15"),
    ([0.2, 0.3], {"estimators": []}, "estimators must not be empty"),
    ([0.2, 0.3], {"estimators": ["l:15", "l:15"]}, "estimators must have different names, got 'l:15' twice"),
    ([0.2, 0.3], {"estimators": ["unifrom"]}, "did you mean 'uniform'?"),
    ([0.2, 0.3], {"estimators": ["auto", "smooth"]}, "smooth, a different measure"),
    ([0.2, 0.3], {"estimators": ["ks"]}, "ks, a different measure"),
    ([0.2, 0.3], {"estimators": {"mine": "kuiper"}}, "kuiper, a different measure"),
    ([0.2, 0.3], {"n_boot": 3}, "recommend() got an unexpected keyword argument 'n_boot'"),
    (
        [0.2, 0.3],
        {"labels": ["no", "yes"]},
        "pos_label must name one of ['no', 'yes'], the class that the scores are of",
    ),
    (
        [0.2, 0.3],
        {"labels": ["no", "yes"], "pos_label": "maybe"},
        "pos_label must be one of 'no', 'yes', got",
    ),
    ([0.2, 0.3], {"labels": "ny", "pos_label": "n"}, "labels must be a sequence of classes, got 'ny'"),
    ([0.2, 0.3], {"labels": ["n", "n"], "pos_label": "n"}, "labels must be distinct"),
    ([0.2, 0.3], {"labels": [None, 1]}, "labels"),
    ([0.2, 0.3], {"pos_label": [1]}, "pos_label must be a label, got [1]"),
    (np.full((2, 4), 0.25), {"labels": ["a"]}, "labels must name 4 columns of scores, got 1: 'a'"),
    (
        np.full((2, 4), 0.25),
        {"notion": "binary"},
        "pos_label must name one of [0, 1, 2, 3], as the notion binary is about one of 4 columns",
    ),
    (np.full((2, 4), 0.25), {"pos_label": 7}, "pos_label must be one of 0, 1, 2, 3, got 7"),
]


@pytest.mark.parametrize(("y_prob", "kw", "message"), BAD)
def test_what_is_wrong_is_said_and_labels_are_not_spoken_of(y_prob, kw, message):
    with pytest.raises((ValueError, TypeError), match=re.escape(message)) as caught:
        calibrant.recommend(y_prob, **kw)
    assert "y_true" not in str(caught.value)


def test_an_estimator_that_returns_nothing_is_named():
    with pytest.raises(
        ValueError, match=r"^estimator 'mine' on a calibrated data set: .* at least 0 and at most 1, got nan$"
    ):
        calibrant.recommend(scores(), estimators={"mine": lambda s, y, w: float("nan")}, rng=0)


def test_scores_are_left_as_they_were():
    s = scores()
    kept = s.copy()
    s.setflags(write=False)
    calibrant.recommend(s, **FEW)
    np.testing.assert_array_equal(s, kept)

"""The commonest calls at once: the same numbers, errors and warnings as by the way of all other calls."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant
from calibrant import compiled
from calibrant.estimators.at_once import error_at_once
from plainly import needs_loops, plain

RNG = np.random.default_rng(0)
SCORE = RNG.random(50)
LABEL = (RNG.random(50) < SCORE).astype(np.int64)


@pytest.fixture
def usual(monkeypatch):
    """A function that goes the usual way."""

    def call(*arguments, **options):
        with monkeypatch.context() as patch:
            patch.setattr("calibrant.estimators.at_once.error_at_once", lambda *_: None)
            return calibrant.ece(*arguments, **options)

    return call


def outcome_of(call, *arguments, **options):
    """What a call returns or raises, and what it warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = call(*arguments, **options)
        except Exception as error:
            result = type(error), str(error), getattr(error, "row", None)
    return result, [(warning.category, str(warning.message)) for warning in caught]


@needs_loops
@pytest.mark.parametrize("label", ["?", "b", "B", "h", "H", "i", "I", "q", "Q"])
@pytest.mark.parametrize("score", ["f8", "f4"])
@settings(max_examples=10, deadline=None)
@given(n=st.integers(1, 3000), bins=st.sampled_from([1, 2, 15, 1000]), seed=st.integers(0, 99))
def test_numbers_are_those_of_the_usual_way(label, score, n, bins, seed):
    rng = np.random.default_rng(seed)
    # Scores on the edges of bins, at the ends and beside them.
    p = np.where(rng.random(n) < 0.3, rng.integers(0, bins + 1, n) / bins, rng.random(n)).astype(score)
    p[:1] = 0.5
    y = (rng.random(n) < p).astype(label)
    for norm in ("l1", "l2", "max"):
        at_once = error_at_once(y, p, None, f"uniform:{bins}", norm)
        assert at_once == calibrant.ece(y.tolist(), p, estimator=calibrant.Binned("uniform", bins), norm=norm)
        assert at_once == error_at_once(
            y, np.repeat(p, 2)[::2], "class", calibrant.Binned("uniform", bins), norm
        )
        with plain():
            assert error_at_once(y, p, None, f"uniform:{bins}", norm) is None
            plainly = calibrant.ece(y, p, estimator=f"uniform:{bins}", norm=norm)
        assert at_once == pytest.approx(plainly, rel=1e-12, abs=1e-15)


@needs_loops
@pytest.mark.parametrize("label", ["i4", "i8"])
@pytest.mark.parametrize("score", ["f8", "f4"])
@settings(max_examples=15, deadline=None)
@given(n=st.integers(1, 2500), classes=st.integers(2, 24), seed=st.integers(0, 99))
def test_numbers_of_confidence_are_those_of_the_usual_way(label, score, n, classes, seed):
    rng = np.random.default_rng(seed)
    p = rng.integers(0, 5, (n, classes)) + (rng.random((n, classes)) if seed % 2 else 0.25)  # ties, or none
    p = (p / p.sum(axis=1, keepdims=True)).astype(score)
    y = rng.integers(0, classes, n).astype(label)
    for bins, norm in ((15, "l1"), (1, "l2"), (400, "max")):
        at_once = error_at_once(y, p, None, f"uniform:{bins}", norm)
        assert at_once == calibrant.ece(y.tolist(), p, estimator=f"uniform:{bins}", norm=norm)
        assert at_once == calibrant.ece(y, p, estimator=f"uniform:{bins}", norm=norm, notion="confidence")
        with plain():
            plainly = calibrant.ece(y, p, estimator=f"uniform:{bins}", norm=norm)
        assert at_once == pytest.approx(plainly, rel=1e-12, abs=1e-15)


@needs_loops
def test_pieces_are_added_as_by_the_usual_way(monkeypatch, usual):
    for room in ("calibrant.estimators.at_once", "calibrant.evidence.loops"):
        monkeypatch.setattr(f"{room}.PIECE", 16)
    matrix = np.stack([SCORE / 2, 1 - SCORE, SCORE / 2], axis=1)
    for threads in ("1", "3"):
        monkeypatch.setenv(compiled.THREADS, threads)
        for p in (SCORE, matrix):
            at_once = error_at_once(LABEL, p, None, "l:5", "l1")
            assert at_once == usual(LABEL, p, estimator="l:5")
    # As many labels as scores are in each of the first pieces.
    assert error_at_once(LABEL, SCORE[:32], None, "l:5", "l1") is None


def changed(array, row, value):
    array = array.copy()
    array[row] = value
    return array


BAD = {
    "above 1": (LABEL, changed(SCORE, 3, 1.5)),
    "percent": (LABEL, SCORE * 100),
    "below 0": (LABEL, changed(SCORE, 0, -0.5)),
    "missing": (LABEL, changed(SCORE, 49, np.nan)),
    "infinite": (LABEL, changed(SCORE, 7, np.inf)),
    "first missing": (LABEL, changed(SCORE, 0, np.nan)),
    "a third label": (changed(LABEL, 5, 2), SCORE),
    "labels of -1 and 2": (LABEL * 3 - 1, SCORE),
    "missing label": (changed(LABEL.astype(float), 4, np.nan), SCORE),
    "labels of text": (LABEL.astype(str), SCORE),
    "text": (LABEL, SCORE.astype(str)),
    "complex": (LABEL, SCORE.astype(complex)),
    "dates": (LABEL.astype("M8[s]"), SCORE),
    "records": (LABEL, np.zeros(50, dtype=[("p", "f8")])),
    "unequal": (LABEL[:-1], SCORE),
    "empty": (LABEL[:0], SCORE[:0]),
    "a column": (LABEL, SCORE[:, None]),
    "a column of labels": (LABEL[:, None], SCORE),
    "a number": (np.array(1), np.array(0.5)),
    "no array": (None, SCORE),
    "swapped": (SCORE, LABEL),
}
FINE = {
    "objects": (LABEL, SCORE.astype(object)),
    "minus zero": (LABEL, changed(SCORE, 2, -0.0)),
    "-1 and 1": (2 * LABEL - 1, SCORE),
    "labels as floats": (LABEL.astype(float), SCORE),
    "half precision": (LABEL, SCORE.astype("f2")),
    "long": (LABEL, SCORE.astype(np.longdouble)),
    "the other order of bytes": (LABEL.astype(">i4"), SCORE.astype(">f8")),
    "strides": (np.repeat(LABEL, 2)[::2], np.repeat(SCORE, 3)[::3]),
    "backwards": (LABEL[::-1], SCORE[::-1]),
    "read only": (np.broadcast_to(np.int64(1), 50), np.broadcast_to(0.25, 50)),
    "unaligned": (LABEL, np.frombuffer(b"x" + SCORE.tobytes(), dtype=np.uint8)[1:].view("f8")),
    "a subclass": (LABEL, np.ma.array(SCORE)),
    "lists": (LABEL.tolist(), SCORE.tolist()),
    "one row": (LABEL[:1], SCORE[:1]),
    "predicted classes": (LABEL, (SCORE > 0.5).astype(float)),
    "all of a class": (np.ones(50, dtype=bool), SCORE),
}


MATRIX = np.stack([SCORE / 2, 1 - SCORE, SCORE / 2], axis=1)
CLASS = RNG.integers(0, 3, 50)
BAD |= {
    "a row above 1": (CLASS, changed(MATRIX, 3, [1.5, -0.5, 0])),
    "a row that sums to less": (CLASS, changed(MATRIX, 49, [0.5, 0.25, 0])),
    "a row with a missing score": (CLASS, changed(MATRIX, (7, 1), np.nan)),
    "an infinite score": (CLASS, changed(MATRIX, (0, 2), np.inf)),
    "a score below 0": (CLASS, changed(MATRIX, 5, [-0.5, 1, 0.5])),
    "no such class": (changed(CLASS, 9, 3), MATRIX),
    "a negative class": (changed(CLASS, 9, -1), MATRIX),
    "fewer classes": (CLASS[1:], MATRIX),
    "no rows": (CLASS[:0], MATRIX[:0]),
    "no columns": (CLASS, MATRIX[:, :0]),
    "one column": (CLASS, MATRIX[:, :1]),
    "three axes": (CLASS, MATRIX[None]),
}
FINE |= {
    "classes": (CLASS, MATRIX),
    "a minus zero": (CLASS, changed(MATRIX, 5, [-0.0, 1, 0])),
    "two columns": (LABEL, MATRIX[:, 1:2] * [1, -1] + [0, 1]),
    "columns first": (CLASS, np.asfortranarray(MATRIX)),
    "many columns": (CLASS, np.repeat(MATRIX, 9, axis=1) / 9),
    "some rows": (CLASS[::2], MATRIX[::2]),
    "short classes": (CLASS.astype("i1"), MATRIX),
    "classes as floats": (CLASS.astype(float), MATRIX),
    "booleans": (LABEL.astype(bool), np.stack([1 - SCORE, SCORE], axis=1)),
}


@pytest.mark.parametrize("kind", [*BAD, *FINE])
def test_rows_of_all_kinds_end_as_by_the_usual_way(kind, usual):
    arguments = (BAD | FINE)[kind]
    expected = outcome_of(usual, *arguments, estimator="uniform:7")
    assert outcome_of(calibrant.ece, *arguments, estimator="uniform:7") == expected
    assert isinstance(expected[0], tuple) == (kind in BAD)


@pytest.mark.parametrize(
    "options",
    [
        {"estimator": "uniform"},
        {"estimator": "uniform:0"},
        {"estimator": "uniform:x"},
        {"estimator": "unknown"},
        {"estimator": 15},
        {"estimator": None},
        {"estimator": "adaptive:5"},
        {"estimator": "uniform-convex:5"},
        {"estimator": calibrant.Binned("uniform", np.int64(5))},
        {"estimator": lambda s, y, w: 0.25},
        {"norm": "l3"},
        {"norm": "mul"},
        {"norm": None},
        {"norm": ["l1"]},
        {"norm": np.array(["l1", "l2"])},
        {"notion": "class"},
        {"notion": "confidence"},
        {"sample_weight": np.arange(50)},
        {"counts": np.arange(50)},
        {"labels": [0, 1]},
        {"pos_label": 0},
        {"cluster": np.arange(50)},
        {"notion": "unknown"},
        {"notion": "top:1"},
        {"notion": "classwise"},
        {"notion": "correctness"},
        {"notion": "multiclass"},
        {"notion": ["class"]},
    ],
)
@pytest.mark.parametrize("rows", ["fine", "bad", "classes", "a row above 1"])
def test_options_of_all_kinds_end_as_by_the_usual_way(options, rows, usual):
    options = {"estimator": "uniform:7"} | options
    arguments = {"fine": (LABEL, SCORE), "bad": BAD["above 1"]}.get(rows) or (BAD | FINE)[rows]
    expected = outcome_of(usual, *arguments, **options)
    assert outcome_of(calibrant.ece, *arguments, **options) == expected


@needs_loops
def test_the_common_call_goes_at_once():
    for y in (LABEL, LABEL.astype(bool)):
        assert error_at_once(y, SCORE, None, "l:15", "l1") == calibrant.ece(y, SCORE, estimator="l:15")


@needs_loops
@pytest.mark.parametrize(
    "label", [np.array([0, 2, 1]), np.array([0, -1, 1], "i1"), np.array([0.0, 1.0, 1.0])]
)
def test_the_loop_refuses_other_labels(label):
    sums = np.zeros((2, 2, 1, 2))
    with pytest.raises(ValueError, match="must be"):
        compiled.loops.add_sums(
            np.array([0.1, 0.2, 0.3]), label, None, np.array([0.5]), None, sums, 1, False, None, None
        )


@needs_loops
def test_the_loop_refuses_what_does_not_fit():
    add, sums, cuts = compiled.loops.add_confidences, np.zeros((2, 2, 1, 2)), np.array([0.5])
    for score in (SCORE, MATRIX.astype("f2"), MATRIX[:, ::2], MATRIX[None], MATRIX[:-1], None, MATRIX[:, :0]):
        with pytest.raises((TypeError, ValueError)):
            add(score, CLASS, cuts, sums)
    for label in (
        CLASS.astype("i1"),
        CLASS[None],
        CLASS[::-1],
        None,
        CLASS.astype(float),
        CLASS + 1,
        CLASS - 1,
    ):
        with pytest.raises((TypeError, ValueError)):
            add(MATRIX, label, cuts, sums)
    for wrong in (np.array([[0.5]]), np.array([0.2, 0.5]), np.array([1]), None):
        with pytest.raises((TypeError, ValueError)):
            add(MATRIX, CLASS, wrong, sums)
    for wrong in (sums[:1], sums[..., ::-1], sums[:, :, :0], sums.astype("f4"), np.zeros((2, 2, 2, 2)), None):
        with pytest.raises((TypeError, ValueError)):
            add(MATRIX, CLASS, cuts, wrong)
    assert not sums.any()
    assert add(MATRIX, CLASS, cuts, sums) == np.abs(MATRIX.sum(axis=1) - 1).max()
    assert sums[0].sum() == 50

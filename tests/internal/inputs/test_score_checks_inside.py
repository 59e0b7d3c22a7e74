"""Checks of labels and scores: numbers of every type, at the ends of the range and beside them."""

from importlib import import_module

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant

# Not from the package, where a function has the same name.
predictions = import_module("calibrant.inputs.predictions")

few = settings(max_examples=60, deadline=None)
seeds = st.integers(0, 2**32 - 1)
dtypes = st.sampled_from((np.float64, np.float32))
INTEGERS = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")
ODD = (np.nan, np.inf, -np.inf, -1e-300, -5e-324, -1.0, 1.5, 1e300)
# A whole vector of the machine, one less, one more.
lengths = st.sampled_from((0, 1, 3, 8, 31, 32, 33, 500))


def outcome_of(function, *arguments):
    """What a call returns, or what it refuses and where."""
    try:
        return function(*arguments)
    except calibrant.InputError as error:
        return type(error), str(error), error.row, error.column


@few
@given(seeds, lengths, dtypes, st.sampled_from((None, 0.0, -0.0, 1.0, *ODD)), st.sampled_from("CFrs"))
def test_scores_out_of_range_are_refused(seed, n, dtype, value, memory):
    rng = np.random.default_rng(seed)
    score = rng.random((n, 3)).astype(dtype)
    if value is not None and score.size:
        with np.errstate(over="ignore"):
            score[rng.integers(n), rng.integers(3)] = np.array(value).astype(dtype)
    score = {"F": np.asfortranarray(score), "r": score[::-1], "s": score[::2]}.get(memory, score)
    within = bool(np.all((score >= 0) & (score <= 1)))
    found = outcome_of(predictions._check_unit, "y_prob", score)
    assert (found is None) == within


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_next_float_above_one_is_out_of_range(dtype):
    for value in (np.nextafter(dtype(1), dtype(2)), np.nextafter(dtype(0), dtype(-1))):
        for at in (0, 17, 31, 32):
            score = np.full(33, 0.5, dtype)
            score[at] = value
            with pytest.raises(calibrant.InputError):
                predictions._check_unit("y_prob", score)


@few
@given(seeds, lengths, st.sampled_from(INTEGERS), st.sampled_from((None, 2, 3, 127, -1, -128)), st.booleans())
def test_labels_of_zero_and_one_are_told_from_others(seed, n, dtype, value, strided):
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, 2 * (n + 1)).astype(dtype)
    if value is not None:
        label[2 * rng.integers(n + 1)] = np.array(value).astype(dtype)
    label = label[::2] if strided else label[::2].copy()
    found = outcome_of(calibrant.inputs.predictions, label, np.full(len(label), 0.5))
    assert isinstance(found, tuple) != any(set(label.tolist()) <= usual for usual in ({0, 1}, {-1, 1}))


@few
@given(
    *(seeds, st.sampled_from((1, 3, 4, 5, 9)), st.sampled_from((2, 3, 10, 24, 25, 40)), dtypes),
    *(st.booleans(), st.sampled_from("CFrs")),
)
def test_the_largest_score_is_that_of_the_first_column_that_has_it(seed, n, classes, dtype, ties, memory):
    rng = np.random.default_rng(seed)
    score = rng.dirichlet(np.ones(classes), n)
    if ties:
        several = rng.random((n, classes)) < 0.5
        several[:, -1] = True
        score = several / several.sum(axis=1, keepdims=True)
    score = score.astype(dtype)
    score = {"F": np.asfortranarray(score), "r": score[::-1], "s": np.repeat(score, 2, axis=0)[::2]}.get(
        memory, score
    )
    best, most = calibrant.inputs.predictions(np.zeros(n, int), score).largest
    assert np.array_equal(best, score.argmax(axis=1))
    assert np.array_equal(most, score.max(axis=1))
    assert most.dtype == score.dtype
    assert best.dtype == np.intp

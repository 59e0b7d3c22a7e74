"""Checks of labels and scores: numbers of every type, at the ends of the range and beside them."""

import numpy as np
import pytest

import calibrant

INTEGERS = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")


@pytest.mark.parametrize("columns", [2, 40])
def test_a_row_far_behind_is_seen(columns):
    score = np.full((70_000, columns), 1 / columns)
    score[-1, 0] += 0.25
    with pytest.raises(calibrant.InputError) as refused:
        calibrant.ece(np.zeros(len(score), int), score)
    assert refused.value.row == len(score) - 1
    score[-1, 0] = 1.5
    with pytest.raises(calibrant.InputError, match="lie in") as refused:
        calibrant.ece(np.zeros(len(score), int), score)
    assert (refused.value.row, refused.value.column) == (len(score) - 1, 0)


def test_the_first_of_rows_equally_far_from_one_is_named():
    score = np.array([[0.5, 0.5], [0.5, 0.25], [0.25, 0.5], [1.0, 0.25]] * 3)
    with pytest.raises(calibrant.InputError) as refused:
        calibrant.ece(np.arange(12) % 2, score)
    assert refused.value.row == 1


FOREIGN = [*(f">{kind}" for kind in INTEGERS[1:4]), "?", ">f8", ">f4", "O"]


@pytest.mark.parametrize("labels", [*INTEGERS, *FOREIGN])
def test_numbers_of_any_kind_give_one_answer(labels):
    score = np.arange(33) / 32  # the same number in every precision
    label = np.arange(33) % 3 == 0
    bins = np.minimum((5 * score).astype(int), 4)
    expected = sum(abs((label - score)[bins == b].sum()) for b in range(5)) / 33
    for kind in ("f8", ">f8", "f4", ">f4", "f2"):
        found = calibrant.ece(label.astype(labels), score.astype(kind), estimator="uniform:5")
        assert found == pytest.approx(expected, abs=1e-12)


def test_columns_of_packed_records_are_taken():
    rows = np.zeros(40, dtype=[("y", "i1"), ("p", "f8"), ("w", "f8")])
    rows["p"], rows["y"], rows["w"] = np.arange(40) / 40, np.arange(40) % 2, 1 + np.arange(40)
    packed = calibrant.ece(rows["y"], rows["p"], sample_weight=rows["w"])
    assert packed == calibrant.ece(*(rows[name].copy() for name in "yp"), sample_weight=rows["w"].copy())

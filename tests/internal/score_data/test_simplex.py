"""Rows on the simplex: whatever order or repetition they come in, they are the same data."""

from itertools import pairwise

import numpy as np
import pytest

from calibrant.score_data import simplex
from calibrant.score_data.simplex import Simplex, class_order, without_rounding


def drawn(n=60, classes=4, distinct=25, seed=0):
    rng = np.random.default_rng(seed)
    some = rng.dirichlet(np.ones(classes), distinct)[rng.integers(distinct, size=n)]
    return some, rng.integers(classes, size=n), rng


def same(a, b):
    for name in ("score", "code", "weight", "square", "group"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


def test_the_order_of_rows_changes_nothing():
    score, code, rng = drawn()
    order = rng.permutation(len(code))
    same(Simplex.of(score, code), Simplex.of(score[order], code[order]))


def test_the_layout_in_memory_changes_nothing():
    score, code, _ = drawn(400, 5, 400)
    same(Simplex.of(np.asfortranarray(score), code), Simplex.of(score, code))


def test_last_digits_of_scores_do_not_change_the_order():
    score, code, rng = drawn(1000, 3, 1000)
    rows = Simplex.of(score, code)
    changed = Simplex.of(score * (1 + rng.integers(-3, 4, score.shape) * 2.0**-52), code)
    np.testing.assert_array_equal(changed.code, rows.code)
    np.testing.assert_allclose(changed.score, rows.score, rtol=1e-14)


def test_scores_that_differ_by_rounding_are_equal():
    rng = np.random.default_rng(0)
    exact = np.round(rng.dirichlet(np.ones(3), 200), 1) + 0.1
    score = exact * rng.uniform(0.5, 2, (200, 1))
    score /= score.sum(axis=1, keepdims=True)
    code = rng.integers(3, size=200)
    rows = Simplex.of(score, code)
    # Slowly: vectors of the same shares are one, whatever rounding has left of them.
    shares = [tuple(np.round(row / row.sum(), 9)) for row in exact]
    assert len(set(map(tuple, score.tolist()))) > len(set(shares)) == rows.group[-1] + 1
    np.testing.assert_allclose(rows.score[rows.place], score, rtol=1e-14)
    for name in ("score", "code", "weight"):
        order = rng.permutation(200)
        again = Simplex.of(score[order], code[order])
        np.testing.assert_array_equal(getattr(again, name), getattr(rows, name))


def test_many_scores_give_the_same_rows_as_few(monkeypatch):
    score, code, rng = drawn(200, 4, 200)
    repeated = score[rng.integers(200, size=200)] * (1 + rng.integers(-3, 4, (200, 4)) * 2.0**-52)
    for rows in (score, score.astype(np.float32), repeated):
        expected = Simplex.of(rows, code)
        with monkeypatch.context() as patch:
            patch.setattr(simplex, "CHUNK", 100)
            same(Simplex.of(rows, code), expected)
    assert Simplex.of(repeated, code).group[-1] + 1 == len(np.unique(np.round(repeated, 12), axis=0))


def test_scores_equal_up_to_rounding_become_the_smallest_of_them():
    rng = np.random.default_rng(0)
    score = rng.integers(1, 20, (50, 3)) / 20 * (1 + rng.integers(-3, 4, (50, 3)) * 2.0**-52)
    found = without_rounding(score)
    for value, each in zip(score.ravel(), found.ravel(), strict=True):
        assert each == score[np.isclose(score, value, rtol=1e-13, atol=0)].min()


def test_rows_without_weight_do_not_move_scores_that_differ_by_rounding():
    score = np.array([[0.3, 0.7], [np.nextafter(0.3, 0), 0.7], [0.6, 0.4]])
    code, count = np.array([0, 1, 0]), np.array([1, 0, 1])
    same(Simplex.of(score, code, count, counts=True), Simplex.of(score[[0, 2]], code[[0, 2]]))


def test_small_scores_and_those_near_one_are_told_apart():
    score = np.array([1e-300, 1.1e-300, 1e-18, 0.5, 1 - 1e-13, 1.0])
    np.testing.assert_array_equal(without_rounding(score), score)


def test_classes_are_ordered_by_what_they_hold_and_by_name_where_that_is_equal():
    score, code, rng = drawn()
    for order in (rng.permutation(4), rng.permutation(4)):
        found = class_order(score[:, order], np.argsort(order)[code], None, "abcd")
        np.testing.assert_array_equal(order[found], np.argsort(score.mean(axis=0)))
    flat, names = np.full((6, 3), 1 / 3), ["c", "a", "b"]
    np.testing.assert_array_equal(class_order(flat, np.array([0, 0, 1, 1, 2, 2]), None, names), [1, 2, 0])
    np.testing.assert_array_equal(class_order(flat, np.array([0, 0, 0, 1, 2, 2]), None, names), [1, 2, 0])
    np.testing.assert_array_equal(class_order(flat, np.array([0, 1, 1, 1, 2, 2]), None, names), [0, 2, 1])


def test_repeated_rows_are_counted_rows_and_rows_without_weight_are_none():
    score, code, rng = drawn()
    count = rng.integers(0, 4, len(code))
    counted = Simplex.of(score, code, count)
    same(counted, Simplex.of(np.repeat(score, count, axis=0), np.repeat(code, count)))
    assert counted.n == count.sum()
    assert len(counted.code) == len(
        {(*row, y) for row, y, c in zip(score.tolist(), code, count, strict=True) if c}
    )


def test_importance_weights_have_no_scale_and_sum_to_the_effective_rows():
    score, code, rng = drawn()
    weight = rng.random(len(code))
    rows, scaled = (Simplex.of(score, code, w, counts=False) for w in (weight, 8 * weight))
    np.testing.assert_allclose(rows.weight, scaled.weight, rtol=1e-12)
    assert rows.n == pytest.approx(weight.sum() ** 2 / (weight**2).sum())


def test_a_row_of_single_precision_is_that_row():
    score, code, _ = drawn()
    single = score.astype(np.float32)
    same(Simplex.of(single, code), Simplex.of(single.astype(np.float64), code))


def test_folds_hold_all_rows_once_and_cut_through_no_vector():
    score, code, rng = drawn(300)
    rows = Simplex.of(score, code, rng.integers(1, 5, 300))
    parts = rows.folds(10)
    assert [parts[0].start, parts[-1].stop] == [0, len(rows.code)]
    assert all(a.stop == b.start for a, b in pairwise(parts))
    assert all(rows.group[a.stop - 1] != rows.group[a.stop] for a in parts[:-1])
    assert Simplex.of(np.full((9, 3), 1 / 3), np.arange(9) % 3).folds(5) == [slice(0, 3)]


def test_the_place_of_a_row_holds_its_scores_and_its_class():
    score, code, rng = drawn()
    weight = rng.integers(0, 3, len(code))
    rows = Simplex.of(score, code, weight)
    kept = weight > 0
    np.testing.assert_array_equal(rows.score[rows.place][kept], score[kept])
    np.testing.assert_array_equal(rows.code[rows.place][kept], code[kept])


def test_means_have_the_standard_errors_of_the_rows():
    rng = np.random.default_rng(0)
    score, code, value = rng.dirichlet(np.ones(4), 400), rng.integers(4, size=400), rng.random(400)
    rows = Simplex.of(score, code)
    each = np.empty(len(rows.code))
    each[rows.place] = value
    mean, error = rows.mean(each)
    assert mean == pytest.approx(value.mean())
    assert error == pytest.approx(value.std() / 20)
    twice = Simplex.of(score, code, np.full(400, 2))
    assert twice.mean(each)[1] == pytest.approx(error / np.sqrt(2))


def test_the_order_is_no_order_of_the_scores():
    score, code, _ = drawn(2000, distinct=2000)
    rows = Simplex.of(score, code)
    assert abs(np.corrcoef(rows.score[:, 0], np.arange(len(rows.code)))[0, 1]) < 0.1


def test_rows_whose_keys_are_equal_have_an_order_of_their_own():
    """Scores that are tiny beside 1 change no bit of the number that rows are sorted by."""
    rng = np.random.default_rng(0)
    score = 10.0 ** rng.uniform(-300, -20, (30, 3))
    score[np.arange(30), rng.integers(0, 3, 30)] = 1.0
    code, weight, order = rng.integers(0, 3, 30), 10 ** rng.uniform(-6, 6, 30), rng.permutation(30)
    one = Simplex.of(score, code, weight, counts=False)
    other = Simplex.of(score[order], code[order], weight[order], counts=False)
    for name in ("score", "code", "weight", "square", "group"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))

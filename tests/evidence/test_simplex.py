"""Rows on the simplex: whatever order or repetition they come in, they are the same evidence."""

from itertools import pairwise

import numpy as np
import pytest

from calibrant.evidence.simplex import Simplex


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

"""Labels of rows are drawn from their scores, in compiled loops as in numpy."""

import numpy as np
import pytest

from calibrant import compiled
from calibrant.inference.joint_labels import Labels, _add_hits, _bounds, _counted, _labelled, draw_labels
from plainly import needs_loops


def scores(rows, classes, seed=0):
    """Rows of probabilities, of which the first and the last class of some have none."""
    score = np.random.default_rng(seed).dirichlet(np.full(classes, 0.5), rows)
    score[::2, 0] = score[1::2, -1] = 0.0
    return score / score.sum(axis=1, keepdims=True)


def words(rows, sets, seed=1):
    word = np.random.default_rng(seed).integers(0, 2**32, (rows, sets), dtype=np.uint32)
    word[:, 0], word[:, 1] = 0, 2**32 - 1
    return word


@pytest.mark.parametrize("classes", [2, 3, 40])
def test_labels_are_drawn_as_often_as_scores_say_and_never_without_a_chance(monkeypatch, classes):
    score, word = scores(6, classes), words(6, 20_000)
    place = np.arange(6 * classes, dtype=np.int32).reshape(6, classes)
    both = []
    for loops in (compiled.loops, None):
        monkeypatch.setattr(compiled, "loops", loops)
        count = np.stack(
            [np.bincount(row, minlength=classes) for row in _labelled(score, word, np.arange(classes))]
        )
        sums = _counted(word, _bounds(score), place, np.ones(6), 6 * classes).sum(axis=0).reshape(6, classes)
        for each in (count, sums):
            assert np.all(each[score == 0] == 0)
            np.testing.assert_allclose(each / 20_000, score, atol=0.02)
        both.append((count, sums))
    for one, other in zip(*both, strict=True):
        np.testing.assert_array_equal(one, other)


def test_labels_of_single_precision_and_of_half_are_drawn(monkeypatch):
    word = words(6, 50)
    for kind in (np.float16, np.float32, np.float64):
        score = scores(6, 5).astype(kind)
        columns = np.array([3, 0, 4, 1, 2])
        fast = _labelled(score, word, columns)
        np.testing.assert_array_equal(_labelled(score[:, columns], word, np.arange(5)), fast)
        with monkeypatch.context() as patch:
            patch.setattr(compiled, "loops", None)
            np.testing.assert_array_equal(_labelled(score, word, columns), fast)


@pytest.mark.parametrize("weighted", [False, True])
def test_coefficients_of_drawn_labels_are_standard_and_the_same_without_loops(monkeypatch, weighted):
    score = np.random.default_rng(0).dirichlet(np.ones(3), 500)
    weight = np.random.default_rng(1).random(500) + 0.5 if weighted else None
    z = draw_labels(score, weight, 16, np.random.default_rng(2), 300)
    assert z.shape == (300, 3, 16)
    assert np.abs(z.mean(axis=0)).max() < 5 / np.sqrt(300)
    np.testing.assert_allclose(z.std(axis=0), 1, atol=0.2)
    monkeypatch.setattr(compiled, "loops", None)
    np.testing.assert_allclose(draw_labels(score, weight, 16, np.random.default_rng(2), 300), z, atol=1e-12)


@needs_loops
def test_arrays_that_do_not_fit_are_refused():
    score, word = scores(4, 3), words(4, 5)
    place = np.zeros((4, 3), np.int32)
    arrays = {
        "labels": [word, _bounds(score), place, np.ones(4), np.zeros((5, 2))],
        "label": [score, word, np.arange(3), np.zeros((4, 5), np.int32)],
    }
    for name, fitting in arrays.items():
        loop = getattr(compiled.loops, name)
        loop(*fitting)
        for i, array in enumerate(fitting):
            for wrong in (array[:-1].copy(), array.astype(np.int8), array[..., None], None):
                with pytest.raises((TypeError, ValueError)):
                    loop(*fitting[:i], wrong, *fitting[i + 1 :])
    for wrong in (-1, 2):
        with pytest.raises(ValueError, match="outside"):
            compiled.loops.label(score, word, np.arange(3) + wrong, np.zeros((4, 5), np.int32))
        with pytest.raises(ValueError, match="outside"):
            compiled.loops.labels(word, _bounds(score), place + wrong, np.ones(4), np.zeros((5, 2)))


def test_labels_are_held_in_the_order_of_the_rows_numbers():
    score, weight = scores(9, 3), np.arange(1.0, 10.0)
    number = np.random.default_rng(3).permutation(9)

    def take(some):
        return score[some], weight[some]

    own = Labels.draw(take, 9, 3, np.random.default_rng(0), 5)
    held = Labels.draw(take, 9, 3, np.random.default_rng(0), 5, lambda some: number[some])
    np.testing.assert_array_equal(held.rows, np.arange(9))
    np.testing.assert_array_equal(held.weight, weight[np.argsort(number)])
    for k in range(3):
        expected = own.coefficients(score[:, k], k, 4)
        got = held.coefficients(score[np.argsort(number), k], k, 4)
        np.testing.assert_allclose(got, expected, atol=1e-12)


@needs_loops
def test_hits_are_counted_where_they_belong_or_refused(monkeypatch):
    rng = np.random.default_rng(0)
    order = rng.choice(60, 40, replace=False).astype(np.uint32)
    cell, group, weight = rng.integers(0, 7, 12, np.int32), rng.integers(0, 3, 7), rng.random(12)
    fast = np.ones((5, 3))
    _add_hits(order, cell, group, weight, fast)
    assert fast.sum() > 15
    fitting = [order, cell, group, weight, fast.copy()]
    for i, array in enumerate(fitting):
        for wrong in (array.astype(np.float32), array[..., None], None):
            with pytest.raises((TypeError, ValueError)):
                compiled.loops.hits(*fitting[:i], wrong, *fitting[i + 1 :])
    for i, value in ((0, 60), (1, 7), (1, -1), (2, 3), (2, -1)):
        odd = [array.copy() for array in fitting]
        odd[i][:] = value
        with pytest.raises(ValueError, match="no place"):
            compiled.loops.hits(*odd)
    with pytest.raises(ValueError, match="no place"):
        compiled.loops.hits(*fitting[:4], np.ones((0, 3)))
    monkeypatch.setattr(compiled, "loops", None)
    slow = np.ones((5, 3))
    _add_hits(order, cell, group, weight, slow)
    np.testing.assert_allclose(fast, slow, rtol=1e-12)

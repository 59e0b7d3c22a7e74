"""Sums over runs of cells are those of numpy, and arrays that do not fit are refused."""

import numpy as np
import pytest

from calibrant import compiled
from calibrant.evidence.moments import Moments, pool, pool_moved
from plainly import needs_loops

pytestmark = needs_loops


def sets_of(cells, sets=3, seed=0):
    rng = np.random.default_rng(seed)
    group = np.sort(rng.choice(np.arange(0, 12, 2), cells))
    return rng.random((sets, cells)), rng.random((sets, cells)), rng.random(cells), group


@pytest.mark.parametrize("cells", [1, 2, 7, 60])
def test_runs_are_summed_as_by_numpy(cells, monkeypatch):
    wy, wsy, shift, group = sets_of(cells)
    sums, (positive, moved) = pool(wy, group, 12), pool_moved(wy, wsy, shift, group, 12)
    np.testing.assert_array_equal(sums, positive)
    monkeypatch.setattr(compiled, "loops", None)
    plain = pool(wy, group, 12), pool(wsy + shift * wy, group, 12)
    np.testing.assert_allclose([positive, moved], plain, rtol=1e-14)
    np.testing.assert_allclose(pool_moved(wy, wsy, shift, group, 12), plain, rtol=1e-14)


def test_sums_of_scores_that_sets_share_are_moved_once(monkeypatch):
    wy, wsy, shift, group = sets_of(20)
    shared, origin = np.random.default_rng(1).random((3, 1, 20)), np.linspace(0, 1, 12)
    moments = Moments(shared[0], shared[1], wy, wsy, shared[2], shift)
    pooled = moments.pooled(group[None], origin)
    assert [part.shape for part in pooled.parts] == [(1, 12), (1, 12), (3, 12), (3, 12), (1, 12)]
    moved = moments.about(origin[group])
    for own, part in zip(pooled.parts, moved.parts, strict=True):
        np.testing.assert_allclose(own, [np.bincount(group, row, 12) for row in part], rtol=1e-13)


def test_arrays_that_do_not_fit_are_refused():
    start, to = np.array([0, 2, 5]), np.array([0, 3])
    tables = [np.ones((2, 5)), np.ones((2, 5)), np.ones(5), start, to, np.zeros((2, 4)), np.zeros((2, 4))]
    compiled.loops.run_sums(*tables)
    np.testing.assert_array_equal(tables[5], [[2, 0, 0, 3]] * 2)
    np.testing.assert_array_equal(tables[6], [[4, 0, 0, 6]] * 2)
    for i, array in enumerate(tables):
        for wrong in (array[:-1].copy(), array.astype(np.int8), array[..., None], array[::-1], None):
            with pytest.raises((TypeError, ValueError)):
                compiled.loops.run_sums(*tables[:i], wrong, *tables[i + 1 :])
    for wrong in ([-1, 2, 5], [0, 3, 2], [0, 2, 6]):
        with pytest.raises(ValueError, match="do not fit"):
            compiled.loops.run_sums(*tables[:3], np.array(wrong), *tables[4:])
    for wrong in ([-1, 0], [0, 4]):
        with pytest.raises(ValueError, match="do not fit"):
            compiled.loops.run_sums(*tables[:4], np.array(wrong), *tables[5:])
    with pytest.raises(TypeError, match="7 arrays"):
        compiled.loops.run_sums(*tables[:6])

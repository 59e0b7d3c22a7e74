"""Compiled walks over residuals show what numpy shows."""

import numpy as np
import pytest

from calibrant import compiled
from calibrant.inference.null import cumulative_statistics
from calibrant.posterior.variance_time import interpolate
from calibrant.score_data import Residuals
from plainly import needs_loops


def steps_of(count, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.integers(1, 9, count).astype(np.float64)
    single_score = np.ones(count, dtype=bool)
    return Residuals(rows, np.sort(rng.random(count)), rng.standard_normal(count), rows, single_score)


@pytest.mark.parametrize(
    ("count", "cells", "finest"), [(1, 1, 64), (40, 16, 64), (300, 64, 128), (900, 128, 1024)]
)
def test_loops_and_numpy_show_the_same(monkeypatch, count, cells, finest):
    steps, rng = steps_of(count), np.random.default_rng(1)
    blocks = [rng.standard_normal((sets, count)) for sets in (7, 4, 1)]
    fast = cumulative_statistics(steps, blocks, cells, finest)
    monkeypatch.setattr(compiled, "loops", None)
    plain = cumulative_statistics(steps, blocks, cells, finest)
    assert (fast.periodogram is None) == (plain.periodogram is None) == (count < 300)
    for one, other in zip(fast, plain, strict=True):
        if one is not None:
            np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11)


def test_what_is_shown_is_what_a_loop_finds():
    steps = steps_of(300)
    residual = np.random.default_rng(1).standard_normal((5, 300))
    shown = cumulative_statistics(steps, [residual], 64, 128)
    upto = np.concatenate([np.zeros((5, 1)), np.cumsum(residual, axis=1)], axis=1)
    np.testing.assert_allclose(shown.kuiper_range, upto.max(axis=1) - upto.min(axis=1))
    # The sum of all residuals is that of the first coefficient, and of a shift, on their own scales.
    for first in (shown.z[:, 0], shown.score_directions[0]):
        np.testing.assert_allclose(first / first[0], upto[:, -1] / upto[0, -1])


def test_loops_and_numpy_interpolate_alike(monkeypatch):
    rng = np.random.default_rng(0)
    knots = np.cumsum(rng.random((3, 50)) * (rng.random((3, 50)) > 0.2), axis=1)
    values = [rng.standard_normal((3, 50)) for _ in range(2)]
    # At a knot that occurs twice a line jumps: between knots all is plain.
    x = np.sort(knots[:, :1] + (knots[:, -1:] - knots[:, :1]) * rng.random((3, 40)), axis=1)
    fast = interpolate(x, knots, values)
    monkeypatch.setattr(compiled, "loops", None)
    np.testing.assert_allclose(interpolate(x, knots, values), fast, rtol=1e-9, atol=1e-9)
    row = [np.interp(x[1], knots[1] + 1e-13 * np.arange(50), value[1]) for value in values]
    np.testing.assert_allclose(fast[:, 1], row, rtol=1e-6, atol=1e-6)


@needs_loops
def test_arrays_that_do_not_fit_are_refused():
    good = {
        "outcomes": [
            np.ones((2, 3), np.uint32),
            np.ones((4, 3), np.uint32),
            np.ones(3),
            np.ones(3),
            np.arange(3),
        ],
        "normals": [np.ones((2, 3), np.uint16), np.ones(65536), np.ones(3), np.arange(3)],
    }
    out = {"outcomes": np.empty((2, 3)), "normals": np.empty((2, 3))}
    for name, arrays in good.items():
        loop, arrays = getattr(compiled.loops, name), [*arrays, out[name]]
        loop(*arrays)
        for i, array in enumerate(arrays):
            for wrong in (array[..., :-1].copy(), array.astype(np.float32), array[..., None], None):
                with pytest.raises((TypeError, ValueError)):
                    loop(*arrays[:i], wrong, *arrays[i + 1 :])
    for place in (3, -1):
        with pytest.raises(ValueError, match="outside"):
            compiled.loops.outcomes(*good["outcomes"][:-1], np.array([0, 1, place]), out["outcomes"])
    step, share, ways, empty = np.zeros(1, np.int64), np.zeros(1), np.zeros((2, 3)), np.zeros(0, np.int64)
    walk = [np.ones((2, 3)), step, share, ways, empty, empty, empty, np.zeros(0), empty, np.ones(2)]
    walk += [np.empty((2, 2)), np.empty((2, 3))]
    compiled.loops.walks(*walk, 0)
    for i, array in enumerate(walk):
        for wrong in (np.ones((*array.shape[:-1], array.shape[-1] + 1), array.dtype), array[..., None], None):
            if i != 9 or wrong is None or wrong.ndim > 1:  # more turns than needed do no harm
                with pytest.raises((TypeError, ValueError)):
                    compiled.loops.walks(*walk[:i], wrong, *walk[i + 1 :], 0)
    with pytest.raises(ValueError, match="outside"):
        compiled.loops.walks(walk[0], np.array([3]), *walk[2:], 0)

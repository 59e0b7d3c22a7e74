"""Compiled looks at coefficients say what numpy says."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from calibrant import compiled
from calibrant.posterior.gap import Posterior
from plainly import needs_loops


def problems(cells, sets, frames, seed=0):
    """Coefficients of sets, some without any gap and some with a huge one, on frames with as many each."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((sets, cells)) * np.geomspace(0.1, 30, sets)[:, None]
    z[0] = 0.0
    mass = rng.random((frames, cells)) + 0.1
    mass[:, 0] = 0.0
    mass /= mass.sum(axis=1, keepdims=True)
    scale = np.geomspace(0.001, 0.05, frames)
    return Posterior(z, scale, mass, np.full(mass.shape, 0.5), np.full(frames, 1000.0))


@needs_loops
@pytest.mark.parametrize("frames", [1, 3, 6])
@pytest.mark.parametrize("cells", [2, 4, 8, 16, 64, 256])
def test_loops_and_numpy_agree(monkeypatch, cells, frames):
    fast = problems(cells, 6, frames)
    evidence = replace(fast)  # asked for the evidence alone first
    terms, some, local, one_sided = (
        fast.terms("l1"),
        evidence.log_bayes_factor,
        evidence.local,
        fast.over_under,
    )
    monkeypatch.setattr(compiled, "loops", None)
    plain = replace(fast)
    for one, other in zip(terms, plain.terms("l1"), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)
    for one, other in ((some, plain.log_bayes_factor), (local, plain.local), (one_sided, plain.over_under)):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)


@needs_loops
def test_a_set_is_judged_alike_whatever_is_beside_it():
    p = problems(32, 9, 1)
    together = p.terms("l1").unpooled
    for k in range(9):
        np.testing.assert_array_equal(p.with_data(p.z[k : k + 1]).terms("l1").unpooled, together[k : k + 1])


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("cells", [16, 30])
def test_several_frames_say_what_each_says_of_its_sets(cells, norm):
    p = problems(cells, 6, 3)
    together = p.terms(norm)
    for k in range(3):
        some = slice(2 * k, 2 * k + 2)
        alone = replace(p, z=p.z[some], scale=p.scale[k : k + 1], mass=p.mass[k : k + 1]).terms(norm)
        for one, other in zip(alone, together, strict=True):
            np.testing.assert_allclose(one, other[some], rtol=1e-9, atol=1e-12)


@needs_loops
@pytest.mark.parametrize("frames", [1, 2, 14])
def test_vectors_of_any_width_say_the_same_to_the_last_bit(monkeypatch, frames):
    p = problems(64, 14, frames)
    wide = p.terms("l1")
    monkeypatch.setattr(compiled, "loops", SimpleNamespace(shapes=compiled.loops.narrow_shapes))
    for one, other in zip(wide, replace(p).terms("l1"), strict=True):
        np.testing.assert_array_equal(one, other)


@needs_loops
@pytest.mark.parametrize("frames", [1, 4, 12])
def test_threads_say_the_same_to_the_last_bit(monkeypatch, frames):
    p = problems(16, 12, frames)
    alone = p.terms("l1")
    monkeypatch.setattr("calibrant.posterior.gap.PARALLEL_FROM", 1)
    monkeypatch.setenv("CALIBRANT_THREADS", "3")
    for one, other in zip(alone, replace(p).terms("l1"), strict=True):
        np.testing.assert_array_equal(one, other)


@needs_loops
def test_arrays_that_do_not_fit_are_refused():
    loops = compiled.loops
    good = problems(16, 3, 1)
    with pytest.raises(TypeError):
        loops.shapes(good.z)
    fitting = [good.z, good.mass, np.ones((1, 8)), np.ones((1, 8)), np.ones((3, 15)), np.ones(7), np.ones(16)]
    fitting += [np.zeros(25), np.zeros(9), np.ones(19), np.empty((3, 6 + 9 + 25))]
    loops.shapes(*fitting, True)
    for i, array in enumerate(fitting):
        for wrong in (array[..., :-1].copy(), array.astype(np.float32), array[..., None], None):
            with pytest.raises((TypeError, ValueError)):
                loops.shapes(*fitting[:i], wrong, *fitting[i + 1 :], True)
    with pytest.raises(ValueError, match="power of two"):
        loops.shapes(np.ones((3, 12)), np.ones((1, 12)), *fitting[2:], True)
    with pytest.raises(ValueError, match="does not fit"):
        loops.shapes(np.ones((16, 3)).T, *fitting[1:], True)
    for frames in (0, 2):
        few = [np.ones((frames, 16)), np.ones((frames, 8)), np.ones((frames, 8))]
        with pytest.raises(ValueError, match="frames"):
            loops.shapes(fitting[0], *few, *fitting[4:], True)


def test_without_loops_and_for_odd_numbers_of_cells_numpy_looks(monkeypatch):
    for cells, loops in ((30, compiled.loops), (32, None)):
        monkeypatch.setattr(compiled, "loops", loops)
        p = problems(cells, 3, 1)
        np.testing.assert_array_equal(p.process_log_bayes_factor, p.process.log_bayes_factor)
        np.testing.assert_array_equal(p.local, p.partition.log_bayes_factor)
        np.testing.assert_array_equal(p._marginal.local, p.partition.one_sided)

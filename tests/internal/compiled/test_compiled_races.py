"""What else writes to the arrays of a call makes its result meaningless, and never ends the process."""

import os
import subprocess
import sys

import pytest

from plainly import needs_loops

# The arrays lie in memory that a second process shares, which writes garbage and sound numbers to it in turn:
# as a thread could, but with no lock to wait for.
SCRIPT = """
import mmap, os, signal, sys, time, warnings
import numpy as np
import calibrant
from calibrant import compiled
from calibrant.score_data import Layout

warnings.simplefilter("ignore")
loops, rng, seconds, layout = compiled.loops, np.random.default_rng(0), float(sys.argv[1]), Layout(20)
n, bad = 3000, np.array([np.nan, 1e300, -5.0, np.inf, -np.inf, 1 + 1e-9, -1e-300, 1e19])
parent = os.getpid()


def share(array):
    shared = np.frombuffer(mmap.mmap(-1, array.nbytes), array.dtype).reshape(array.shape)
    shared[...] = array
    return shared


score, label, outcome = share(rng.random(n)), share(rng.integers(0, 2, n)), share(rng.random(n) < 0.5)
matrix, column = share(rng.dirichlet(np.ones(4), 700)), share(rng.integers(0, 4, 700))
wide, wide_column = share(rng.dirichlet(np.ones(40), 300)), share(rng.integers(0, 40, 300))
cuts, even = share(np.sort(rng.random(50))), share(np.linspace(0.013, 0.97, 50))
place = share(rng.permutation(1000))
edges = share(layout.parts)
held = share(np.full(layout.size, -1, np.int32))


def add(cuts, size, walls=(0, 0, 0, 0)):
    out = np.zeros((2, 2, 1, size))
    loops.add_sums(score[None], outcome[None], None, cuts[None], None, out, 1, False, *walls, 0)


def ece(y, p, spec, notion):
    return lambda: calibrant.ece(y, p, estimator=spec, notion=notion)


def run(fill, *arguments):
    return lambda: fill(*arguments)


out = np.zeros((50, 1000))
words, words16 = rng.integers(0, 2**32, (50, 1000), np.uint32), rng.integers(0, 2**16, (50, 1000), np.uint16)
bounds, ones = rng.integers(0, 2**32, (3, 1000), np.uint32), np.ones(1000)
places = share(rng.integers(0, 30, (1000, 4), np.int32))
CALLS = {
    "uniform": ([score, label], ece(label, score, "uniform:20", "binary")),
    "quantiles": ([score, label], ece(label, score, "adaptive:20", "binary")),
    "confidence": ([matrix, column], ece(column, matrix, "uniform:20", "confidence")),
    "confidence of many": ([wide, wide_column], ece(wide_column, wide, "uniform:20", "confidence")),
    "classwise": ([matrix, column], ece(column, matrix, "uniform:20", "classwise")),
    "sketch": ([score, label], lambda: calibrant.Sketch("binary").update(label, score)),
    "sketch of rows": ([matrix, column], lambda: calibrant.Sketch("confidence").update(column, matrix)),
    "equal parts": ([score], lambda: add(np.arange(1, 20) / 20, 20)),
    "cuts": ([score, cuts], lambda: add(cuts, 51)),
    "even cuts": ([score, even], lambda: add(even, 51)),
    "changing cuts": ([cuts], lambda: add(cuts, 51)),
    "changing even cuts": ([even], lambda: add(even, 51)),
    "layout": ([score], lambda: add(edges, layout.size, layout.boundary_cells)),
    "changing layout": ([edges], lambda: add(edges, layout.size, layout.boundary_cells)),
    "changing cells": ([held], lambda: loops.sum_held(
        matrix.T, column, layout.parts, layout.low, held, np.zeros((layout.size, 4, 3)),
        *layout.boundary_cells, 0)),
    "normals": ([place], run(loops.normals, words16, np.zeros(65536), ones, place, out)),
    "outcomes": ([place], run(loops.outcomes, words, bounds, ones, ones, place, out)),
    "labels": ([places], lambda: loops.labels(
        rng.integers(0, 2**32, (1000, 20), np.uint32), np.zeros((1000, 3), np.uint32), places, ones,
        np.zeros((20, 30)))),
    "label": ([wide_column], lambda: loops.label(
        np.ones((5, 300)), words[:5, :50].copy(), wide_column, np.empty((5, 50), np.int32))),
}


def garbage(array):
    changed, at = array.copy(), rng.random(array.shape) < 0.02
    pool = bad if array.dtype.kind == "f" else np.array([10**9, -5, 2**31 - 1, -(2**31)])
    changed[at] = rng.choice(pool, at.sum()).astype(array.dtype)
    return changed


for name, (arrays, call) in CALLS.items():
    print(name, end=" ", flush=True)
    call()
    sound, changed = [array.copy() for array in arrays], [garbage(array) for array in arrays]
    if (child := os.fork()) == 0:
        while os.getppid() == parent:
            for array, one, other in zip(arrays, changed, sound):
                array[...] = one
                array[...] = other
        os._exit(0)
    end, done = time.monotonic() + seconds, {True: 0, False: 0}
    while time.monotonic() < end:
        try:
            call()
            done[True] += 1
        except Exception:
            done[False] += 1
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    for array, own in zip(arrays, sound):
        array[...] = own
    print(done[True], done[False])
print("all")
"""


@needs_loops
@pytest.mark.skipif(not hasattr(os, "fork"), reason="memory is shared with a process that is forked")
def test_arrays_that_change_during_a_call_do_not_end_the_process():
    command = [sys.executable, "-c", SCRIPT, "0.1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.stdout.endswith("all\n"), (done.returncode, done.stdout[-200:], done.stderr[-500:])
    assert done.returncode == 0

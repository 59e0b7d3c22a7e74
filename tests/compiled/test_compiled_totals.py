"""Totals of rows by the compiled loop are those of numpy, in any layout, for any number of threads."""

import numpy as np
import pytest

from calibrant import compiled
from calibrant.evidence import loops, tally
from plainly import needs_loops

LOOPS = compiled.loops


def both(monkeypatch, *rows):
    """The totals by both roads."""
    found = []
    for own in (LOOPS, None):
        monkeypatch.setattr(compiled, "loops", own)
        found.append(tally.row_totals(*rows))
    return found


def weights(rng, n):
    return None, rng.integers(1, 9, n), rng.random(n) + 0.1


SCORES = {
    "anywhere": lambda rng, n: rng.random(n),
    "near the walls": lambda rng, n: rng.beta(0.1, 0.1, n),
    "at the walls": lambda rng, n: (rng.random(n) > 0.5).astype(float),
    "a half": lambda rng, n: rng.choice([0.5, 0.25, 0.75], n),
    "tiny": lambda rng, n: 10.0 ** -rng.uniform(0, 320, n),
    "a zero with a sign": lambda rng, n: np.where(rng.random(n) < 0.5, -0.0, 1.0),
}


@needs_loops
@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize("n", [1, 7, 1024, 2500])
def test_totals_of_single_scores_are_those_of_numpy(monkeypatch, kind, n):
    rng = np.random.default_rng(n)
    score, code = SCORES[kind](rng, n), rng.random(n) < 0.4
    for own in (score, score.astype(np.float32), np.repeat(score, 2)[::2]):
        for weight in weights(rng, n):
            compiled_, plain = both(monkeypatch, own, code, weight)
            np.testing.assert_allclose(compiled_, plain, rtol=1e-12)


@needs_loops
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("classes", [2, 3, 17, 1100])
def test_totals_of_rows_of_scores_are_those_of_numpy(monkeypatch, classes, order):
    n, rng = 150, np.random.default_rng(classes)
    score = rng.dirichlet(np.full(classes, 0.3), n)
    score[::5], score[::7] = 1 / classes, np.eye(classes)[1]  # ties, and labels without a chance
    score[3] = np.copysign(score[3] * (score[3] > 0.1), -1.0) * 0.0
    code = rng.integers(0, classes, n)
    for own in (score, score.astype(np.float32)):
        for weight in weights(rng, n):
            compiled_, plain = both(monkeypatch, np.asarray(own, order=order), code, weight)
            np.testing.assert_allclose(compiled_, plain, rtol=1e-12)


@needs_loops
def test_totals_are_the_same_for_any_number_of_threads(monkeypatch):
    rng, found = np.random.default_rng(0), set()
    score, code = rng.random(5000), rng.random(5000) < 0.5
    monkeypatch.setattr(loops, "PIECE", 700)
    for threads in "123":
        monkeypatch.setenv(compiled.THREADS, threads)
        found.add(tally.row_totals(score, code, None))
    assert len(found) == 1


@needs_loops
@pytest.mark.parametrize(
    "rows",
    [
        (np.zeros(3), np.zeros(3, dtype=np.int64), None),
        (np.zeros(3), np.zeros(2, dtype=bool), None),
        (np.zeros(3, dtype=np.float16), np.zeros(3, dtype=bool), None),
        (np.zeros((3, 2)), np.zeros(3, dtype=bool), None),
        (np.zeros((3, 2, 1)), np.zeros(3, dtype=np.int64), None),
        (np.zeros((3, 0)), np.zeros(3, dtype=np.int64), None),
        (np.zeros((3, 2)), np.zeros(6, dtype=np.int64)[::2], None),
        (np.zeros(3), np.zeros(3, dtype=bool), np.ones(2)),
        (np.zeros(3), np.zeros(3, dtype=bool), np.ones(3, dtype=np.int8)),
        (None, np.zeros(3, dtype=bool), None),
        (np.zeros(25, np.uint8)[1:].view(float), np.zeros(3, dtype=bool), None),
        (np.zeros(3), np.zeros(3, dtype=bool), np.zeros(25, np.uint8)[1:].view(float)),
    ],
)
def test_arrays_that_do_not_fit_are_refused(rows):
    with pytest.raises(TypeError, match="row_totals takes"):
        LOOPS.row_totals(*rows)


@needs_loops
@pytest.mark.parametrize("code", [-1, 2])
def test_a_label_without_a_column_is_refused(code):
    with pytest.raises(ValueError, match="number of a column"):
        LOOPS.row_totals(np.zeros((3, 2)), np.array([0, 1, code]), None)


@needs_loops
def test_what_is_no_array_is_refused():
    with pytest.raises(TypeError, match="three arrays"):
        LOOPS.row_totals(np.zeros(3))
    with pytest.raises(TypeError):
        LOOPS.row_totals(np.zeros(3), "text", None)


def test_rows_that_lie_oddly_in_memory_are_summed():
    rng = np.random.default_rng(2)
    table = np.zeros(50, dtype=[("y", "?"), ("p", "f8"), ("w", ">i8"), ("k", ">i8")])
    table["p"], table["y"], table["w"] = rng.random(50), rng.random(50) < 0.5, rng.integers(1, 5, 50)
    plain = [np.ascontiguousarray(table[name]).astype(table[name].dtype.newbyteorder("=")) for name in "pyw"]
    assert tally.row_totals(table["p"], table["y"], table["w"]) == pytest.approx(tally.row_totals(*plain))
    matrix = np.stack([plain[0], 1 - plain[0]], axis=1)
    assert tally.row_totals(matrix, table["k"], None) == tally.row_totals(matrix, np.zeros(50, int), None)
    assert tally.row_totals(np.zeros(0), np.zeros(0, dtype=bool), None) == (0, 0.0, 0.0, 0.0, 0.0, 0.0)

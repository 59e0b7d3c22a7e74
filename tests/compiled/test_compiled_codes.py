"""Values of rows told apart by compiled loops are those of pyarrow and numpy."""

import numpy as np
import pyarrow as pa
import pytest

from calibrant import compiled
from calibrant.data.values import Coded, values_of
from plainly import needs_loops

LOOPS = compiled.loops
TEXTS = {
    "two": ["no", "yes"],
    "alike": ["a", "a ", "ab", "aa", "\0", "a\0"],
    "eight bytes": ["abcdefgh", "abcdefgi", "bcdefgh"],
    "too long": ["abcdefgh", "abcdefghi"],
    "too many": [f"{k}" for k in range(17)],
    "as many as there may be": [f"{k}" for k in range(16)],
    "not ASCII": ["é", "e", "日本"],
}


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("offset", [0, 3])
def test_texts_are_told_apart_as_by_pyarrow(monkeypatch, kind, offset):
    rng = np.random.default_rng(len(kind))
    # The texts lie at the end of the data too, where nothing follows them.
    texts = [TEXTS[kind][k] for k in rng.integers(0, len(TEXTS[kind]), 200)]
    column = pa.array(texts, pa.string()).slice(offset)
    found = []
    for own in (LOOPS, None):
        monkeypatch.setattr(compiled, "loops", own)
        coded = values_of("y", column, "text")
        found.append((coded.values, coded.code.tolist()))
    assert found[0] == found[1]
    assert [coded.values[k] for k in coded.code] == [text.strip() for text in column.to_pylist()]


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.uint8])
@pytest.mark.parametrize("values", [1, 3, 100])
def test_rows_of_values_are_in_order(monkeypatch, dtype, values):
    code = np.random.default_rng(values).integers(0, values, 501).astype(dtype)
    expected = [np.flatnonzero(code == k) for k in range(values)]
    for own in (LOOPS, None):
        monkeypatch.setattr(compiled, "loops", own)
        for column in (code, np.repeat(code, 2)[::2]):
            coded = Coded(column, tuple(range(values)))
            np.testing.assert_array_equal(coded.counts, [len(rows) for rows in expected])
            for mine, theirs in zip(coded.rows(), expected, strict=True):
                np.testing.assert_array_equal(mine, theirs)


@needs_loops
@pytest.mark.parametrize("code", [-1, 2, 300])
def test_a_number_of_no_value_is_refused(code):
    codes = np.array([0, 1, code, 0], dtype=np.int64)
    with pytest.raises(ValueError, match="number of a value"):
        LOOPS.count_codes(codes, np.zeros(2, dtype=np.int64))
    with pytest.raises(ValueError, match="number of a value"):
        LOOPS.order_codes(codes, np.array([0, 2]), np.empty(4, dtype=np.int64))


@needs_loops
@pytest.mark.parametrize("first", [[0, 4], [0, -1], [3, 3]])
def test_rows_that_have_no_room_are_refused(first):
    with pytest.raises(ValueError, match="number of a value"):
        LOOPS.order_codes(np.array([0, 1, 1, 1]), np.array(first), np.empty(4, dtype=np.int64))


@needs_loops
@pytest.mark.parametrize("offsets", [[0, 2, 9], [-1, 1, 2], [0, 2, 1]])
def test_texts_outside_of_the_data_are_refused(offsets):
    with pytest.raises(ValueError, match="lie in the data"):
        LOOPS.code_texts(np.array(offsets, np.int32), np.zeros(8, np.uint8), np.empty(2, np.int32))


@needs_loops
def test_arrays_that_do_not_fit_are_refused():
    codes, whole = np.zeros(3, dtype=np.int32), np.zeros(3, dtype=np.int64)
    for call, arrays in [
        (LOOPS.count_codes, (codes,)),
        (LOOPS.count_codes, (codes.astype(float), whole)),
        (LOOPS.count_codes, (codes.astype(np.uint32), whole)),
        (LOOPS.count_codes, (codes, codes)),
        (LOOPS.count_codes, (np.repeat(codes, 2)[::2], whole)),
        (LOOPS.count_codes, (np.zeros(13, np.uint8)[1:].view(np.int32), whole)),
        (LOOPS.order_codes, (codes, whole, whole[:2])),
        (LOOPS.order_codes, (codes, whole, None)),
        (LOOPS.code_texts, (codes, np.zeros(8, np.uint8))),
        (LOOPS.code_texts, (codes, np.zeros(8, np.uint8), codes)),
        (LOOPS.code_texts, (whole, np.zeros(8, np.uint8), codes[:2])),
        (LOOPS.code_texts, (codes, np.zeros(8), codes[:2])),
    ]:
        with pytest.raises(TypeError):
            call(*arrays)

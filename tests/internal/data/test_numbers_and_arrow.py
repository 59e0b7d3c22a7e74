"""Numbers and booleans go between numpy and Arrow as they are."""

import numpy as np
import pyarrow as pa
import pytest

from calibrant.data.values import _array_of, arrow_of


@pytest.mark.parametrize("kind", ["f8", "f4", "f2", "i1", "u2", "i4", "u8", "?"])
@pytest.mark.parametrize("part", [slice(None), slice(3, 17), slice(9, 9), slice(8, None)])
def test_numbers_are_the_same_on_either_side(kind, part):
    values = (np.random.default_rng(0).random(40) * 3).astype(kind)
    column = pa.array(values)
    assert arrow_of(values).equals(column)
    assert arrow_of(np.repeat(values, 2)[::2]).equals(column)
    part = range(40)[part]
    piece = column.slice(part.start, len(part))
    assert np.array_equal(_array_of(piece), values[part.start : part.stop])
    assert _array_of(piece).dtype == values.dtype


def test_an_empty_column_may_have_no_data():
    assert _array_of(pa.array([], pa.float64())).shape == (0,)
    assert _array_of(pa.Array.from_buffers(pa.int8(), 0, [None, None])).dtype == np.int8

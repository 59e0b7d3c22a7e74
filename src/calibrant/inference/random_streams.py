"""Random generators keyed by names, and a canonical row order.

With these, results depend neither on the order of the classes nor on that of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from zlib import crc32

import numpy as np

from calibrant.inputs import by_name
from calibrant.score_data import Array
from calibrant.tasks import Rows

# Scores read into memory at once.
SCORES_AT_ONCE = 1 << 21


def key_of(name: Any) -> int:
    """Return the key of a name; a NumPy label has the key of the equal Python object.

    >>> key_of("cat") == key_of(np.array(["cat"])[0])
    True
    """
    return crc32(str(name).encode(errors="surrogatepass"))


def stream(seed: int, *names: Any) -> np.random.Generator:
    """Return the generator keyed by a seed and names.

    >>> stream(0, "null", "cat").random() == stream(0, "null", "cat").random()
    True
    >>> stream(0, "null", "cat").random() == stream(0, "null", "dog").random()
    False
    """
    return np.random.default_rng([seed, *map(key_of, names)])


def in_canonical_order(
    rows: Rows, labels: Sequence[Any], counts: Array | None = None
) -> tuple[Rows, Callable[[Array], Array], Array]:
    """Sort rows by content: return sorted rows, a function to original row numbers, and the column order.

    Columns are sorted by the names of their labels. Rows are sorted by a random linear combination of their
    scores and their log relative weight; ties by rounding are broken by the bits of the scores. Rows with
    counts are repeated, and each copy has its own label.
    """
    columns = np.array(by_name(labels), dtype=np.intp)
    factors = np.random.default_rng(0).random(len(columns) + 1)
    keys, weights, step = np.empty(rows.n), np.ones(rows.n), max(1, SCORES_AT_ONCE // len(columns))
    blocks = [np.arange(first, min(first + step, rows.n)) for first in range(0, rows.n, step)]
    for index in blocks:
        score, _, weight = rows.take(index)
        keys[index] = np.einsum("ij,j->i", np.take(score, columns, axis=1, mode="clip"), factors[1:])
        if weight is not None and counts is None:
            weights[index] = weight
    # The scale of weights is arbitrary, and rounding of relative weights must not change the order.
    keys += factors[0] * np.round(np.log(weights / weights.max()), 9)
    order = np.argsort(keys, kind="stable")
    if not np.diff(keys[order]).all():
        bits = np.concatenate([_bits(rows.take(index)[0][:, columns]) for index in blocks])
        order = np.lexsort((bits, keys))
    position = np.argsort(columns)
    cumulative_counts = None if counts is None else np.cumsum(counts[order])

    def row(index: Array) -> Array:
        return np.asarray(
            order[
                index
                if cumulative_counts is None
                else np.searchsorted(cumulative_counts, index, side="right")
            ]
        )

    def take(index: Array) -> tuple[Array, Array, Array | None]:
        score, label, weight = rows.take(row(index))
        return score[:, columns], position[label], weight if cumulative_counts is None else None

    return Rows(rows.n if cumulative_counts is None else int(cumulative_counts[-1]), take), row, columns


def _bits(score: Array) -> Array:
    """Return a hash of the bits of the scores of each row."""
    factors = np.random.default_rng(1).integers(1, 2**63, score.shape[1], dtype=np.uint64) * 2 + 1
    # Adding 0 turns -0 into 0.
    return np.asarray(np.einsum("ij,j->i", (score.astype(np.float64) + 0.0).view(np.uint64), factors))

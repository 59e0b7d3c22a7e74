"""Random numbers that belong to a name, and rows in an order of their own.

Neither the order of the classes nor that of the rows changes what is drawn for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from zlib import crc32

import numpy as np

from calibrant.inputs import by_name
from calibrant.score_data import Array
from calibrant.tasks import Rows

# Scores read at once.
READ = 1 << 21


def key_of(name: Any) -> int:
    """Return the number of a name; a label of numpy has that of the plain one.

    >>> key_of("cat") == key_of(np.array(["cat"])[0])
    True
    """
    return crc32(str(name).encode(errors="surrogatepass"))


def stream(seed: int, *names: Any) -> np.random.Generator:
    """Return a generator that belongs to these names.

    >>> stream(0, "null", "cat").random() == stream(0, "null", "cat").random()
    True
    >>> stream(0, "null", "cat").random() == stream(0, "null", "dog").random()
    False
    """
    return np.random.default_rng([seed, *map(key_of, names)])


def in_own_order(
    rows: Rows, labels: Sequence[Any], counts: Array | None = None
) -> tuple[Rows, Callable[[Array], Array], Array]:
    """Return the same rows in an order that depends on what they hold, where each came from, and its columns.

    Columns are sorted by the names of their labels, rows by a sum of their scores, and of their weight as a
    share of the largest, with factors that no two rows share by chance; where rounding gives two rows one
    sum, by the bits of their scores. Rows that count several times become as many, each of which has a label
    of its own.
    """
    columns = np.array(by_name(labels), dtype=np.intp)
    ways = np.random.default_rng(0).random(len(columns) + 1)
    keys, weights, step = np.empty(rows.n), np.ones(rows.n), max(1, READ // len(columns))
    blocks = [np.arange(first, min(first + step, rows.n)) for first in range(0, rows.n, step)]
    for some in blocks:
        score, _, weight = rows.take(some)
        keys[some] = np.einsum("ij,j->i", np.take(score, columns, axis=1, mode="clip"), ways[1:])
        if weight is not None and counts is None:
            weights[some] = weight
    # Weights have no scale, and what rounding does to their shares must not decide.
    keys += ways[0] * np.round(np.log(weights / weights.max()), 9)
    order = np.argsort(keys, kind="stable")
    if not np.diff(keys[order]).all():
        bits = np.concatenate([_bits(rows.take(some)[0][:, columns]) for some in blocks])
        order = np.lexsort((bits, keys))
    place = np.argsort(columns)
    ends = None if counts is None else np.cumsum(counts[order])

    def row(some: Array) -> Array:
        return np.asarray(order[some if ends is None else np.searchsorted(ends, some, side="right")])

    def take(some: Array) -> tuple[Array, Array, Array | None]:
        score, label, weight = rows.take(row(some))
        return score[:, columns], place[label], weight if ends is None else None

    return Rows(rows.n if ends is None else int(ends[-1]), take), row, columns


def _bits(score: Array) -> Array:
    """Return a number for each row of scores that depends on their last bits."""
    factors = np.random.default_rng(1).integers(1, 2**63, score.shape[1], dtype=np.uint64) * 2 + 1
    # A zero may have a sign.
    return np.asarray(np.einsum("ij,j->i", (score.astype(np.float64) + 0.0).view(np.uint64), factors))

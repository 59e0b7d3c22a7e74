"""What a sketch keeps beside its cells: sums over whole rows, which no cell knows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.inputs import Array, Predictions

# Scores looked at together, of a matrix and of a vector: the temporaries stay in the cache.
CHUNK, LONG_CHUNK = 1 << 15, 1 << 18
# The product of eight numbers above this is far from the least one there is.
SAFE = 1e-30


@dataclass(frozen=True)
class Totals:
    """Sums over rows; those of two sets of rows add up.

    Attributes
    ----------
    rows : int
        Number of rows.
    weight : float
        Sum of their weights.
    right : float
        Weight of the rows whose label has the largest score, the first one among tied scores.
    log_loss : float
        Sum of minus the logarithm of the label's score, weighted, where that score is not 0.
    impossible : float
        Weight of the rows whose label has a score of 0.
    brier : float
        Sum of the squared differences of all scores and what they should be, weighted. A single score
        p stands for the two scores 1 - p and p.

    Examples
    --------
    >>> Totals(2, 2.0, 1.0, 0.7, 0.0, 0.4) + Totals(1, 3.0, 3.0, 0.1, 0.0, 0.1)
    Totals(rows=3, weight=5.0, right=4.0, log_loss=0.7999999999999999, impossible=0.0, brier=0.5)
    """

    rows: int
    weight: float
    right: float
    log_loss: float
    impossible: float
    brier: float

    @classmethod
    def zero(cls) -> Totals:
        """The totals of no rows."""
        return cls(0, 0.0, 0.0, 0.0, 0.0, 0.0)

    @classmethod
    def of(cls, data: Predictions) -> Totals:
        """The totals of checked predictions.

        >>> from calibrant.inputs import predictions
        >>> Totals.of(predictions([0, 1, 1], [0.5, 0.75, 0.0]))
        Totals(rows=3, weight=3.0, right=2.0, log_loss=0.98..., impossible=1.0, brier=2.625)
        """
        vector = data.score.ndim == 1
        step = LONG_CHUNK if vector else max(1, CHUNK // max(1, data.score[:1].size))
        chunk, found = _vector if vector else _matrix, cls.zero()
        for a in range(0, len(data.code), step):
            part = slice(a, a + step)
            weight = None if data.weight is None else data.weight[part].astype(np.float64)
            found += cls._summed(weight, *chunk(data.score[part], data.code[part]))
        return found

    @classmethod
    def _summed(cls, weight: Array | None, own: Array, right: Array, square: Array) -> Totals:
        impossible, rows, least = 0.0, len(own), own.min()
        if not least > 0:
            impossible = _total(weight, own <= 0)
            own = np.where(own > 0, own, 1.0)
        if weight is None and least > SAFE:
            own = _products(own)
        return cls(
            rows,
            float(rows) if weight is None else float(weight.sum()),
            _total(weight, right),
            max(0.0, -_total(weight, np.log(own, out=own))),
            impossible,
            _total(weight, square),
        )

    def __add__(self, other: Totals) -> Totals:
        """The totals of the rows of both."""
        return Totals(
            self.rows + other.rows,
            self.weight + other.weight,
            self.right + other.right,
            self.log_loss + other.log_loss,
            self.impossible + other.impossible,
            self.brier + other.brier,
        )


def _products(values: Array) -> Array:
    """Products of up to eight values each, which have the same sum of logarithms as the values."""
    for _ in range(3):
        half = len(values) // 2
        pairs = values[:half] * values[half : 2 * half]
        values = np.append(pairs, values[-1:]) if len(values) % 2 else pairs
    return values


def _total(weight: Array | None, values: Array) -> float:
    if weight is None:
        return float(np.count_nonzero(values) if values.dtype == bool else values.sum())
    # Not by a matrix product, whose last bits depend on the number of its threads.
    return float((weight * values).sum())


def _vector(score: Array, code: Array) -> tuple[Array, Array, Array]:
    """The label's score, whether the label was predicted, and the squared differences."""
    p = score.astype(np.float64, copy=False)
    # p or 1 - p, without choosing row by row; and in place, since each array costs as much as what is in it.
    y = code.astype(np.float64)
    own = 1.0 - y
    own -= p
    np.abs(own, out=own)
    y -= p
    np.square(y, out=y)
    y += y
    return own, (p > 0.5) == code, y


def _matrix(score: Array, code: Array) -> tuple[Array, Array, Array]:
    off, row = score.astype(np.float64), np.arange(len(code))
    own, right = off[row, code], off.argmax(axis=1) == code
    off[row, code] -= 1
    return own, right, np.einsum("ij,ij->i", off, off)

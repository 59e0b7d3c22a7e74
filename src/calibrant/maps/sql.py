"""Parts of SQL expressions, and how the dialects spell them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from calibrant.score_data import Array

# Log-odds are clipped to this range.
CERTAIN = 700.0


@dataclass(frozen=True)
class Dialect:
    """How a dialect spells what the dialects do not share.

    Attributes
    ----------
    least, greatest : str
        Functions that return the smaller and the larger of two values.
    is_number : str
        Condition that the value of a column is a number, where a column can hold text beside numbers.

    Examples
    --------
    >>> DIALECTS["sqlite"].clipped("p", 0.1, 0.9)
    'MIN(MAX(1E0 * p, 0.1E0), 0.9E0)'
    """

    least: str = "LEAST"
    greatest: str = "GREATEST"
    is_number: str = ""

    def guarded(self, column: str, expression: str) -> str:
        """Return an expression that is NULL where a column holds no score.

        A comparison with NULL is NULL. NaN is above all numbers, or not comparable.

        >>> DIALECTS["standard"].guarded("p", "p / 2E0")
        'CASE WHEN p BETWEEN 0E0 AND 1E0 THEN p / 2E0 END'
        """
        conditions = [self.is_number.format(column=column)] if self.is_number else []
        conditions.append(f"{column} BETWEEN 0E0 AND 1E0")
        return f"CASE WHEN {' AND '.join(conditions)} THEN {expression} END"

    def clipped(self, value: str, low: float, high: float) -> str:
        """Return a value clipped to bounds, in double precision also where it is in single precision."""
        return f"{self.least}({self.greatest}(1E0 * {value}, {number(low)}), {number(high)})"

    def log_odds(self, column: str, least: float) -> str:
        """Return the log-odds of a score."""
        p = self.clipped(column, least, 1 - least)
        return f"(LN({p}) - LN(1E0 - {p}))"

    def expit(self, odds: str) -> str:
        """Return the probability of log-odds."""
        return f"(1E0 / (1E0 + EXP(-{self.clipped(f'({odds})', -CERTAIN, CERTAIN)})))"


#: The dialects of `to_sql`.
DIALECTS = {
    "standard": Dialect(),
    "sqlite": Dialect("MIN", "MAX", "typeof({column}) IN ('integer', 'real')"),
}


def number(value: float) -> str:
    """Return a literal of a number in floating point; without an exponent it would be a decimal.

    >>> number(0.5), number(1e-15)
    ('0.5E0', '1e-15')
    """
    text = repr(float(value))
    return text if "e" in text else f"{text}E0"


def numbers(values: Array) -> list[str]:
    """Return a literal for each number."""
    return [number(value) for value in values.tolist()]


def search(column: str, edges: Array, values: list[str], sign: str) -> str:
    """Return a search for the value of the first edge that exceeds a column.

    It has two steps, groups and the values of a group: as many steps as a binary search needs are deeper than
    the stack of SQLite's parser, and no faster.

    >>> import numpy as np
    >>> search("p", np.array([0.5]), ["0E0", "1E0"], "<")
    'CASE WHEN p < 0.5E0 THEN 0E0 ELSE 1E0 END'
    """

    def first(edges: Array, values: list[str]) -> str:
        pairs = zip(numbers(edges), values[:-1], strict=True)
        cases = [f"WHEN {column} {sign} {edge} THEN {value}" for edge, value in pairs]
        return f"CASE {' '.join(cases)} ELSE {values[-1]} END" if cases else values[-1]

    size = math.isqrt(len(values))
    groups = [first(edges[a : a + size - 1], values[a : a + size]) for a in range(0, len(values), size)]
    return first(edges[size - 1 :: size], groups)

"""Functional forms of a fitted map of a single score: formula, bounded identity, table, or pair of tables.

Prediction needs only numpy. All forms are saved as a few numbers, and can be exported as a SQL expression or
as a plain Python function.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, TypeAlias

import numpy as np

from calibrant.inputs import InputError
from calibrant.inputs.codec import FAR_FROM_OVERFLOW, Ascending, Bounds, Real, Shape, Share
from calibrant.maps.sql import CERTAIN, Dialect, number, numbers, search
from calibrant.posterior.log_odds.cells import NEAREST, expit, log_odds
from calibrant.posterior.log_odds.components import features
from calibrant.score_data import Array

#: Smallest distance of a score from 0 and 1 when it is converted to log-odds.
Nearest: TypeAlias = Annotated[float, Bounds(NEAREST, 0.5)]


@dataclass(frozen=True)
class Formula:
    """Log-odds shift + slope x + curvature ln 4p(1 - p) + square x^2, with x the log-odds of p.

    >>> halved = Formula(slope=0.5)
    >>> halved.probability(np.array([0.1, 0.5, 0.9])).round(3)
    array([0.25, 0.5 , 0.75])
    """

    kind: ClassVar[str] = "formula"
    shift: Real = 0.0
    slope: Real = 1.0
    curvature: Real = 0.0
    square: Real = 0.0
    least: Nearest = NEAREST

    @property
    def is_identity(self) -> bool:
        """Whether the map is the identity."""
        return (self.shift, self.slope, self.curvature, self.square) == (0.0, 1.0, 0.0, 0.0)

    def probability(self, score: Array) -> Array:
        """Return the calibrated probability of each score."""
        if self.is_identity:
            return np.array(score, dtype=np.float64)
        x = log_odds(score, self.least)
        logit = self.shift + self.slope * x
        if self.curvature:
            logit = logit + self.curvature * features(x)[..., 2]
        if self.square:
            logit = logit + self.square * x * x
        return expit(logit)

    def sql(self, column: str, dialect: Dialect) -> str:
        """Return a SQL expression."""
        if self.is_identity:
            return column
        x = dialect.log_odds(column, self.least)
        terms = [number(self.shift), f"{number(self.slope)} * {x}"]
        if self.curvature:
            p = dialect.clipped(column, self.least, 1 - self.least)
            terms.append(f"{number(self.curvature)} * LN(4E0 * {p} * (1E0 - {p}))")
        if self.square:
            terms.append(f"{number(self.square)} * {x} * {x}")
        return dialect.expit(" + ".join(terms))

    def python(self) -> list[str]:
        """Return the lines of a Python function of `score`."""
        if self.is_identity:
            return ["return score"]
        lines = _python_odds(self.least)
        odds = f"{self.shift!r} + {self.slope!r} * x"
        if self.curvature:
            odds += f" + {self.curvature!r} * math.log(4.0 * p * (1.0 - p))"
        if self.square:
            odds += f" + {self.square!r} * x * x"
        return [*lines, f"odds = {odds}", *_PYTHON_EXPIT]


@dataclass(frozen=True)
class Bounded:
    """The identity, clipped to bounds.

    >>> Bounded(0.01, 0.98).probability(np.array([0.0, 0.3, 1.0]))
    array([0.01, 0.3 , 0.98])
    """

    kind: ClassVar[str] = "bounded"
    low: Share
    high: Share

    def _check_fields(self) -> None:
        """Raise an error for bounds in the wrong order."""
        if self.low > self.high:
            raise InputError("low", "not be above high", got=f"{self.low} above {self.high}")

    def probability(self, score: Array) -> Array:
        """Return the calibrated probability of each score."""
        return np.clip(np.asarray(score, dtype=np.float64), self.low, self.high)

    def sql(self, column: str, dialect: Dialect) -> str:
        """Return a SQL expression."""
        return dialect.clipped(column, self.low, self.high)

    def python(self) -> list[str]:
        """Return the lines of a Python function of `score`."""
        return [f"return min(max(score, {self.low!r}), {self.high!r})"]


@dataclass(frozen=True, eq=False)
class LookupTable:
    """Piecewise linear or piecewise constant function.

    Attributes
    ----------
    at, value : array
        Points and values, in log-odds or as scores and probabilities.
    scale : "odds" or "score"
    between : "line", "from" or "upto"
        Value between two points: linear interpolation, the value of the left point, or of the right point.
    least : float
        Smallest distance of a score from 0 and 1 when it is converted to log-odds.

    Examples
    --------
    >>> steps = LookupTable(np.array([0.0, 0.5]), np.array([0.2, 0.7]), "score", "from")
    >>> steps.probability(np.array([0.3, 0.5]))
    array([0.2, 0.7])
    """

    kind: ClassVar[str] = "table"
    at: Annotated[Array, Shape((None,)), FAR_FROM_OVERFLOW, Ascending()]
    value: Annotated[Array, Shape((None,))]
    scale: Literal["odds", "score"] = "odds"
    between: Literal["line", "from", "upto"] = "line"
    least: Nearest = NEAREST

    def _check_fields(self) -> None:
        """Raise an error for values out of range, or of another length than the points."""
        if self.value.size != self.at.size:
            raise InputError("value", f"have {self.at.size} entries, as at", got=str(self.value.size))
        (Bounds(-CERTAIN, CERTAIN) if self.scale == "odds" else Bounds(0, 1)).check("value", self.value)

    def probability(self, score: Array) -> Array:
        """Return the calibrated probability of each score."""
        x = log_odds(score, self.least) if self.scale == "odds" else score
        if self.between == "line":
            # Interpolation between almost equal points may overflow or exceed the values by rounding.
            value = np.clip(np.interp(x, self.at, self.value), self.value.min(), self.value.max())
        else:
            right = self.between == "from"
            entry = np.searchsorted(self.at, x, side="right" if right else "left") - right
            value = self.value[np.clip(entry, 0, self.value.size - 1)]
        return expit(value) if self.scale == "odds" else value

    def sql(self, column: str, dialect: Dialect) -> str:
        """Return a SQL expression: a search by comparisons, and then a line or a value."""
        odds, edges, values = self.scale == "odds", self.at, numbers(self.value)
        if odds:
            # Scores are clipped to [least, 1 - least], so edges outside this range are moved out of reach.
            edges = expit(self.at)
            edges = np.where(edges <= self.least, -1.0, np.where(edges > 1 - self.least, 2.0, edges))
        if self.between == "upto":
            inside = search(column, edges[:-1], values, "<=")
        elif self.between == "from" or self.at.size == 1:
            inside = search(column, edges[1:], values, "<")
        else:
            # Lines a + b x; b is 0 outside the range of the points.
            width, left = np.diff(self.at), [0, *range(self.at.size)]
            rise = np.divide(np.diff(self.value), width, out=np.zeros(width.size), where=width > 0)
            b = np.concatenate([[0.0], rise, [0.0]])
            starts, slopes = numbers(self.value[left] - b * self.at[left]), numbers(b)
            if odds:  # two searches, so that the log-odds are computed once
                start, slope = (search(column, edges, each, "<") for each in (starts, slopes))
                inside = f"{start} + {slope} * {dialect.log_odds(column, self.least)}"
            else:
                lines = [f"{start} + {slope} * {column}" for start, slope in zip(starts, slopes, strict=True)]
                inside = search(column, edges, lines, "<")
        return dialect.expit(inside) if odds else f"({inside})"

    def python(self) -> list[str]:
        """Return the lines of a Python function of `score`."""
        odds = self.scale == "odds"
        lines = [f"at = {self.at.tolist()!r}", f"value = {self.value.tolist()!r}"]
        lines += [*_python_odds(self.least)] if odds else ["x = score"]
        if self.between == "line":
            lines += [
                "k = min(max(bisect.bisect_right(at, x), 1), len(at) - 1)",
                "width = at[k] - at[k - 1]",
                "share = min(max((x - at[k - 1]) / width, 0.0), 1.0) if width > 0 else 1.0",
                "odds = value[k - 1] + share * (value[k] - value[k - 1])",
            ]
            if self.at.size == 1:
                lines[-4:] = ["odds = value[0]"]
        elif self.between == "from":
            lines.append("odds = value[max(bisect.bisect_right(at, x) - 1, 0)]")
        else:
            lines.append("odds = value[min(bisect.bisect_left(at, x), len(at) - 1)]")
        return [*lines, *(_PYTHON_EXPIT if odds else ["return odds"])]


@dataclass(frozen=True, eq=False)
class VennAbersPair:
    """Two tables, for an outcome of 0 and for an outcome of 1 (Venn-Abers).

    >>> low = LookupTable(np.array([0.0]), np.array([0.2]), "score", "from")
    >>> high = LookupTable(np.array([0.0]), np.array([0.4]), "score", "upto")
    >>> VennAbersPair(low, high).probability(np.array([0.5])).round(3)
    array([0.333])
    """

    kind: ClassVar[str] = "pair"
    low: LookupTable
    high: LookupTable

    def _check_fields(self) -> None:
        """Raise an error if tables are not increasing steps, or if the low one exceeds the high one."""
        for name, table, between in (("low", self.low, "from"), ("high", self.high, "upto")):
            if (table.scale, table.between) != ("score", between):
                rule = f"have scale 'score' and between {between!r}"
                raise InputError(name, rule, got=f"{table.scale!r} and {table.between!r}")
            Ascending().check(f"{name}.value", table.value)
        places = np.union1d(self.low.at, self.high.at)
        low, high = self.pair(places)
        if (above := low > high).any():
            k = int(np.argmax(above))
            raise InputError("low", "not be above high", got=f"{low[k]} above {high[k]} at {places[k]}")

    def pair(self, score: Array) -> tuple[Array, Array]:
        """Return the Venn-Abers probabilities for an outcome of 0 and of 1."""
        return self.low.probability(score), self.high.probability(score)

    def probability(self, score: Array) -> Array:
        """Return the probability with the smallest maximum log loss regret against both probabilities."""
        low, high = self.pair(score)
        return np.asarray(high / (1 - low + high))

    def sql(self, column: str, dialect: Dialect) -> str:
        """Return a SQL expression."""
        low, high = self.low.sql(column, dialect), self.high.sql(column, dialect)
        return f"({high} / (1E0 - {low} + {high}))"

    def python(self) -> list[str]:
        """Return the lines of a Python function of `score`."""
        lines = []
        for name, table in (("low", self.low), ("high", self.high)):
            *body, last = table.python()
            lines += [*body, last.replace("return odds", f"{name} = odds")]
        return [*lines, "return high / (1.0 - low + high)"]


#: Functional form of a fitted map of a single score.
Form: TypeAlias = Formula | Bounded | LookupTable | VennAbersPair


def _python_odds(least: float) -> list[str]:
    return [f"p = min(max(score, {least!r}), {1 - least!r})", "x = math.log(p) - math.log1p(-p)"]


_PYTHON_EXPIT = [
    "if odds >= 0.0:",
    "    return 1.0 / (1.0 + math.exp(-odds))",
    "small = math.exp(odds)",
    "return small / (1.0 + small)",
]

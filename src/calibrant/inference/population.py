"""Data sets with a known calibration error, simulated on scores that somebody has.

A calibration curve says how often the outcome happens at each score. Outcomes drawn from it have a
true error that is known exactly: the mean of |curve(score) - score|.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from calibrant.score_data import Array, Sample
from calibrant.score_data.moments import check_kind

# Scores of one data set, all classes together; more rows are joined into scores that count several times.
MOST = 16_000
# Scores of one data set when classes are drawn together, every copy by itself.
MOST_COPIES = 1_000_000
# Scores that data sets of another size are drawn from.
POOL = 100_000
# True errors of the curves; those of the class-wise notion are these times 2 / classes.
SIZES = (0.02, 0.05, 0.1)
# The shapes, and how far each may plausibly go: in logits (of a temperature: its logarithm), and the last
# three, which live on few scores and reach those of 0 and 1 too, in probability.
SHAPES = {
    "overconfident": 1.6,
    "underconfident": 1.6,
    "shifted": 2.0,
    "wavy": 1.5,
    "local": 0.3,
    "tail": 0.3,
    "alternating": 0.3,
}
# Full waves over the ranks of the scores.
WAVES = 2
# The ranks in the middle of a local gap, and the share of the rows that it holds.
STRETCHES, WIDTH = {"local": 0.7, "tail": 0.95}, 0.1
# A gap can alternate between these many distinct scores, if this many rows of a data set share one.
FEW, SHARED = (3, 30), 10


class Curve(NamedTuple):
    """A calibration curve on the scores of a population."""

    shape: str
    name: str
    chance: Array  # probability of the outcome at each score, (problems, rows)
    true: float


@dataclass(frozen=True, eq=False)
class Population:
    """Scores that data sets are drawn from.

    Attributes
    ----------
    score : array of shape (problems, rows)
        Sorted by value, so that the order in which rows came does not matter.
    weight : array of shape (rows,), optional
        Importance weights.
    count : array of shape (rows,), optional
        How often each row stands in every data set.
    n : int
        Rows of a data set. As many as the population has: all of them; fewer: drawn without
        replacement; more: with replacement.
    classes : int
        Of the model, for where a temperature leaves scores alone.
    support : pair of floats
    """

    score: Array
    weight: Array | None
    count: Array | None
    n: int
    classes: int
    support: tuple[float, float]

    @classmethod
    def of(
        cls,
        score: Array,
        weight: Array | None,
        *,
        counts: bool = True,
        n: int | None = None,
        classes: int = 2,
        support: tuple[float, float] = (0.0, 1.0),
    ) -> Population:
        """Return the population of scores (problems, rows) with counts, importance weights or neither.

        What would cost too much shrinks: rows beyond `MOST` become fewer scores that count
        several times, at unchanged `n`; with importance weights, and for classes beyond
        `MOST_COPIES`, data sets are smaller than asked for.
        """
        check_kind(weight, counts=counts)
        order = np.lexsort((*(() if weight is None else (weight,)), *score))  # the last key counts first
        score = score[:, order].astype(np.float64)
        weight = None if weight is None else weight[order]
        problems, rows = score.shape
        room = max(2, MOST // problems)
        about: dict[str, Any] = {"classes": classes, "support": support}
        if weight is not None and not counts:
            weight = np.ldexp(weight, -int(np.frexp(weight.max())[1]))
            n = min(rows if n is None else n, room)
            kept = np.arange(rows) if n == rows else _evenly(np.arange(1, rows + 1), min(rows, POOL))
            return cls(score[:, kept], weight[kept], None, n, **about)
        upto = np.arange(1, rows + 1) if weight is None else np.cumsum(weight)
        total = int(upto[-1])
        n = total if n is None else n
        if problems > 1:
            n = min(n, max(room, MOST_COPIES // problems))
        if n <= room:
            kept = _evenly(upto, n if n == total else min(total, max(n, POOL // problems)))
            return cls(score[:, kept], None, None, n, **about)
        tie_groups = max(1, room // 2)
        share = np.diff([n * i // tie_groups for i in range(tie_groups + 1)])
        kept = _evenly(upto, tie_groups)
        if problems == 1:  # classes drawn together stay apart: each copy of a row is drawn by itself
            first = np.flatnonzero(np.diff(kept, prepend=-1))
            kept, share = kept[first], np.add.reduceat(share, first)
        return cls(score[:, kept], None, share, n, **about)

    @property
    def rows(self) -> int:
        """Number of scores of each problem."""
        return self.score.shape[1]

    @property
    def mass(self) -> Array:
        """Share of each row in the population."""
        mass = np.ones(self.rows) if self.weight is None else self.weight
        mass = mass if self.count is None else mass * self.count
        return np.asarray(mass / mass.sum())

    def noise(self) -> float:
        """Return the standard error of the mean gap of calibrated data, and no less than one outcome."""
        n = float(self.n)
        if self.weight is not None:
            n *= float(self.weight.mean() ** 2 / np.square(self.weight).mean())
        spread = (self.score * (1 - self.score)) @ self.mass
        return float(np.sqrt((spread + 1 / n) / n).mean())

    def true_error(self, chance: Array) -> float:
        """Return the mean of |chance - score| over the population, and over the problems."""
        return float((np.abs(chance - self.score) @ self.mass).mean())

    def curves(self) -> list[Curve]:
        """Return the calibrated curve, and every shape at each size it can plausibly reach.

        A shape that cannot reach the smallest size comes once, at half of what it can reach.
        """
        curves = [Curve("calibrated", "calibrated", self.score, 0.0)]
        sizes = [size * (2 / self.classes if len(self.score) > 1 else 1) for size in SIZES]
        bend = _Bends(self)
        for shape in bend.shapes:
            most = SHAPES[shape]
            top = self.true_error(bend(shape, most))
            reached = [size for size in sizes if size <= top] or [top / 2]
            for size in reached:
                if size > 1e-6:
                    chance = bend(shape, self._strength(bend, shape, size, most))
                    curves.append(Curve(shape, f"{shape} {size:.2g}", chance, self.true_error(chance)))
        return curves

    def _strength(self, bend: _Bends, shape: str, size: float, most: float) -> float:
        """Return the strength at which a shape has a true error of this size."""
        from scipy.optimize import brentq

        return float(brentq(lambda x: self.true_error(bend(shape, x)) - size, 0.0, most, xtol=1e-4))

    def draw(self, rng: np.random.Generator, size: int) -> Array | None:
        """Draw the rows of `size` data sets, (size, n); None where all are in every one."""
        if self.count is not None or self.n == self.rows:
            return None
        if self.n > self.rows:
            return rng.integers(0, self.rows, (size, self.n))
        return np.stack([rng.choice(self.rows, self.n, replace=False, shuffle=False) for _ in range(size)])

    def sample(self, chance: Array, index: Array | None, rng: np.random.Generator, size: int) -> Sample:
        """Return `size` data sets with outcomes drawn from `chance`, on the rows that `draw` drew.

        The batch is (size,), or (size, problems) where there are several.
        """
        score, weight = self.score, self.weight
        if index is not None:
            score, chance = (array[:, index].swapaxes(0, 1) for array in (score, chance))
            weight = None if weight is None else weight[index][:, None]
        single = len(self.score) == 1
        if single:
            score, chance = score[..., 0, :], chance[..., 0, :]
            weight = weight if weight is None or index is None else weight[:, 0]
        if self.count is None:
            if single:
                outcome = rng.random((size, self.n)) < chance
            else:
                outcome = next(_together(chance, rng, size, self.n, 1))
            return Sample(score, outcome, weight, self.support, counts=weight is None)
        if single:
            positive = rng.binomial(self.count, chance, (size, self.rows))
        else:
            positive = np.zeros((size, *self.score.shape), dtype=np.int64)
            for copy, outcome in enumerate(_together(chance, rng, size, self.rows, int(self.count.max()))):
                positive += outcome & (copy < self.count)
        outcome = np.repeat([False, True], self.rows)
        counts = np.concatenate([self.count - positive, positive], axis=-1)
        return Sample(np.concatenate([score, score], axis=-1), outcome, counts, self.support)


class _Bends:
    """The curves of every shape on the scores of a population, by strength in logits or in probability."""

    def __init__(self, population: Population) -> None:
        from scipy.special import logit

        self.score = score = population.score
        self.logit = logit(score)
        # Where all classes are equally likely no temperature changes anything.
        self.base = -float(np.log(population.classes - 1))
        problems = len(score)
        up = 1.0 if float((score @ population.mass).mean()) < 0.5 else -1.0
        self.push = np.full((1, 1), up) if problems == 1 else np.linspace(-1, 1, problems)[:, None]
        # Of two classes, what is one's from below is the other's from above.
        mirrored = (np.arange(problems) < problems // 2).tolist()
        ranks = [_Ranks.of(each, population.mass) for each in score]
        self.wave = np.stack([np.sin(2 * np.pi * WAVES * each.middle) for each in ranks])
        sided = list(zip(ranks, mirrored, strict=True))
        self.gap = {
            shape: np.stack([each.stretch(1 - at if mirror else at) for each, mirror in sided])
            for shape, at in STRETCHES.items()
        }
        if np.array_equal(self.gap["local"], self.gap["tail"]):  # so many rows have the largest score
            del self.gap["local"]
        values = [each.values for each in ranks]
        if FEW[0] <= min(values) and max(values) <= min(FEW[1], population.n // SHARED):
            self.gap["alternating"] = np.stack([each.alternating(mirror) for each, mirror in sided])

    @property
    def shapes(self) -> list[str]:
        """The shapes that these scores can have."""
        return [shape for shape in SHAPES if shape in self.gap or shape not in (*STRETCHES, "alternating")]

    def __call__(self, shape: str, strength: float) -> Array:
        from scipy.special import expit

        if shape in self.gap:
            return np.clip(self.score + strength * self.gap[shape], 0.0, 1.0)
        if shape == "shifted":
            return np.asarray(expit(self.logit + strength * self.push))
        if shape == "wavy":
            return np.asarray(expit(self.logit + strength * self.wave))
        slope = np.exp(-strength if shape == "overconfident" else strength)
        return np.asarray(expit(self.base + (self.logit - self.base) * slope))


class _Ranks(NamedTuple):
    """The ranks of scores, as shares of the mass: equal scores have one rank, whatever their number."""

    score: Array
    mass: Array
    group: Array  # of each row, the place of its score among the distinct ones
    held: Array  # mass of each distinct score
    values: int  # distinct scores

    @classmethod
    def of(cls, score: Array, mass: Array) -> _Ranks:
        """Rank one row of scores."""
        distinct, group = np.unique(score, return_inverse=True)
        return cls(score, mass, group, np.bincount(group, mass), len(distinct))

    @property
    def middle(self) -> Array:
        """The share of the mass below each score, half of its own included."""
        return np.asarray((np.cumsum(self.held) - self.held / 2)[self.group])

    def stretch(self, at: float) -> Array:
        """Return 1 or -1 on a stretch of scores around a rank, towards where there is room, and 0 elsewhere.

        The score that has this rank is always in it, however many rows share it.
        """
        away, own = np.abs(self.middle - at), self.held[self.group]
        inside = away <= np.maximum(WIDTH, own) / 2 + 1e-12
        room = 1.0 if float(np.average(self.score, weights=self.mass * inside)) < 0.5 else -1.0
        return np.where(inside, room, 0.0)

    def alternating(self, mirror: bool) -> Array:
        """Return 1 and -1 by turns from each distinct score to the next."""
        place = self.values - self.group if mirror else self.group
        return np.where(place % 2 == 0, 1.0, -1.0)


def _evenly(upto: Array, size: int) -> Array:
    """Return evenly spaced rows of an order in which `upto` rows have come so far."""
    position = np.floor((np.arange(size) + 0.5) * (float(upto[-1]) / size))
    return np.searchsorted(upto, position, side="right")


def _together(chance: Array, rng: np.random.Generator, size: int, rows: int, copies: int) -> Iterator[Array]:
    """Draw outcomes (size, classes, rows) of all classes, each with its own chance: one label for each row.

    The chances are laid end to end, and points one apart are thrown on them with a random start. Where
    they sum to one, that draws a label; where a curve makes them sum to more or less, some rows get
    two labels or none, and every class keeps its chance exactly.
    """
    end = np.cumsum(chance, axis=-2)
    for _ in range(copies):
        passed = np.ceil(end - rng.random((size, 1, rows)))
        passed[:, 1:] -= passed[:, :-1].copy()
        yield passed > 0

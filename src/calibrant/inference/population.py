"""Simulated data sets with a known calibration error, on the scores of a model.

A calibration curve gives the frequency of the outcome at each score. Outcomes simulated from it have a true
error that is known exactly: the mean of |curve(score) - score|.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from calibrant.score_data import Array, Sample
from calibrant.score_data.sample import check_kind

# Largest number of scores of a data set over all classes; more rows are merged to scores with counts.
MOST = 16_000
# Largest number of scores of a data set if classes are drawn jointly; copies are drawn one by one.
MOST_COPIES = 1_000_000
# Number of scores that data sets of another size are drawn from.
POOL = 100_000
# Largest plausible strength of each shape: in log-odds (for a temperature, its
# logarithm), and in probability for the last three, which also change scores of 0 and 1.
SHAPES = {
    "overconfident": 1.6,
    "underconfident": 1.6,
    "shifted": 2.0,
    "wavy": 1.5,
    "local": 0.3,
    "tail": 0.3,
    "alternating": 0.3,
}
# Central rank of each local shape, and share of the rows in its range; periods of the wavy shape.
LOCAL_RANKS, LOCAL_WIDTH, WAVE_PERIODS = {"local": 0.7, "tail": 0.95}, 0.1, 2.0
# Alternating shape: smallest and largest number of distinct scores, and least mean number of rows of a score.
ALTERNATING_SCORES, ALTERNATING_ROWS = (3, 30), 10
# True errors of the curves.
TRUE_ERRORS = (0.02, 0.05, 0.1)


class CalibrationCurve(NamedTuple):
    """A calibration curve on the scores of a population."""

    shape: str
    name: str
    probability: Array  # probability of the outcome at each score, (problems, rows)
    true: float


@dataclass(frozen=True, eq=False)
class Population:
    """Population of scores that data sets are drawn from.

    Attributes
    ----------
    score : array of shape (problems, rows)
        Sorted, so that results do not depend on the row order.
    weight : array of shape (rows,), optional
        Importance weights.
    count : array of shape (rows,), optional
        Number of copies of each row in every data set.
    n : int
        Rows of a data set: all rows if it equals the size of the population, a sample without replacement if
        it is smaller, and with replacement if it is larger.
    classes : int
        Number of classes of the model; a temperature does not change a score of 1 / classes.
    support : pair of floats
        Range of possible scores.
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

        The cost is bounded. Rows beyond `MOST` are merged to fewer scores with counts, at unchanged `n`. With
        importance weights, and for classes beyond `MOST_COPIES`, data sets are smaller than asked for.
        """
        check_kind(weight, counts=counts)
        order = np.lexsort((*(() if weight is None else (weight,)), *score))  # the last key counts first
        score = score[:, order].astype(np.float64)
        weight = None if weight is None else weight[order]
        problems, rows = score.shape
        max_scores = max(2, MOST // problems)
        metadata: dict[str, Any] = {"classes": classes, "support": support}
        if weight is not None and not counts:
            weight = np.ldexp(weight, -int(np.frexp(weight.max())[1]))
            n = min(rows if n is None else n, max_scores)
            kept = (
                np.arange(rows) if n == rows else _evenly_spaced_rows(np.arange(1, rows + 1), min(rows, POOL))
            )
            return cls(score[:, kept], weight[kept], None, n, **metadata)
        cumulative = np.arange(1, rows + 1) if weight is None else np.cumsum(weight)
        total = int(cumulative[-1])
        n = total if n is None else n
        if problems > 1:
            n = min(n, max(max_scores, MOST_COPIES // problems))
        if n <= max_scores:
            kept = _evenly_spaced_rows(cumulative, n if n == total else min(total, max(n, POOL // problems)))
            return cls(score[:, kept], None, None, n, **metadata)
        tie_groups = max(1, max_scores // 2)
        share = np.diff([n * i // tie_groups for i in range(tie_groups + 1)])
        kept = _evenly_spaced_rows(cumulative, tie_groups)
        if problems == 1:  # jointly drawn classes are not merged: each copy of a row is drawn by itself
            first = np.flatnonzero(np.diff(kept, prepend=-1))
            kept, share = kept[first], np.add.reduceat(share, first)
        return cls(score[:, kept], None, share, n, **metadata)

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
        """Return the standard error of the mean residual if calibrated, with 1 / n added to the variance."""
        n = float(self.n)
        if self.weight is not None:
            n *= float(self.weight.mean() ** 2 / np.square(self.weight).mean())
        spread = (self.score * (1 - self.score)) @ self.mass
        return float(np.sqrt((spread + 1 / n) / n).mean())

    def true_error(self, probability: Array) -> float:
        """Return the mean of |chance - score| over the population, and over the problems."""
        return float((np.abs(probability - self.score) @ self.mass).mean())

    def curves(self) -> list[CalibrationCurve]:
        """Return the calibrated curve, and every shape at each size that is plausible for it.

        A shape that cannot attain the smallest size is used once, at half of its largest error.
        """
        curves = [CalibrationCurve("calibrated", "calibrated", self.score, 0.0)]
        scale = 2 / self.classes if len(self.score) > 1 else 1
        sizes = [size * scale for size in TRUE_ERRORS]
        shaped = _Shapes(self)
        for shape in shaped.shapes:
            max_strength = SHAPES[shape]
            max_error = self.true_error(shaped(shape, max_strength))
            attained = [size for size in sizes if size <= max_error] or [max_error / 2]
            for size in attained:
                if size > 1e-6:
                    probability = shaped(shape, self._strength(shaped, shape, size, max_strength))
                    curves.append(
                        CalibrationCurve(
                            shape, f"{shape} {size:.2g}", probability, self.true_error(probability)
                        )
                    )
        return curves

    def _strength(self, shaped: _Shapes, shape: str, size: float, max_strength: float) -> float:
        """Return the strength at which a shape has a true error of this size."""
        from scipy.optimize import brentq

        return float(brentq(lambda x: self.true_error(shaped(shape, x)) - size, 0.0, max_strength, xtol=1e-4))

    def draw(self, rng: np.random.Generator, size: int) -> Array | None:
        """Draw the row numbers (size, n) of `size` data sets; None if every data set contains all rows."""
        if self.count is not None or self.n == self.rows:
            return None
        if self.n > self.rows:
            return rng.integers(0, self.rows, (size, self.n))
        return np.stack([rng.choice(self.rows, self.n, replace=False, shuffle=False) for _ in range(size)])

    def sample(self, probability: Array, index: Array | None, rng: np.random.Generator, size: int) -> Sample:
        """Return `size` data sets with outcomes simulated from `probability`, on the rows from `draw`.

        The batch is (size,), or (size, problems) where there are several.
        """
        score, weight = self.score, self.weight
        if index is not None:
            score, probability = (array[:, index].swapaxes(0, 1) for array in (score, probability))
            weight = None if weight is None else weight[index][:, None]
        single = len(self.score) == 1
        if single:
            score, probability = score[..., 0, :], probability[..., 0, :]
            weight = weight if weight is None or index is None else weight[:, 0]
        if self.count is None:
            if single:
                outcome = rng.random((size, self.n)) < probability
            else:
                outcome = next(_systematic_sample(probability, rng, size, self.n, 1))
            return Sample(score, outcome, weight, self.support, counts=weight is None)
        if single:
            positive = rng.binomial(self.count, probability, (size, self.rows))
        else:
            positive = np.zeros((size, *self.score.shape), dtype=np.int64)
            for copy, outcome in enumerate(
                _systematic_sample(probability, rng, size, self.rows, int(self.count.max()))
            ):
                positive += outcome & (copy < self.count)
        outcome = np.repeat([False, True], self.rows)
        counts = np.concatenate([self.count - positive, positive], axis=-1)
        return Sample(np.concatenate([score, score], axis=-1), outcome, counts, self.support)


class _Shapes:
    """Calibration curves of every shape on the scores of a population, by strength."""

    def __init__(self, population: Population) -> None:
        from scipy.special import logit

        self.score = score = population.score
        self.logit = logit(score)
        # A temperature does not change uniform probabilities.
        self.fixed_logit = -float(np.log(population.classes - 1))
        problems = len(score)
        up = 1.0 if float((score @ population.mass).mean()) < 0.5 else -1.0
        self.shift_direction = np.full((1, 1), up) if problems == 1 else np.linspace(-1, 1, problems)[:, None]
        # With two classes, the ranks of one class are those of the other in reverse.
        mirrored = (np.arange(problems) < problems // 2).tolist()
        ranks = [_Ranks.of(each, population.mass) for each in score]
        self.wave = np.stack([np.sin(2 * np.pi * WAVE_PERIODS * each.mid_rank) for each in ranks])
        sided = list(zip(ranks, mirrored, strict=True))
        self.gap = {}
        for shape, at in LOCAL_RANKS.items():
            self.gap[shape] = np.stack([each.local_range(1 - at if mirror else at) for each, mirror in sided])
        if np.array_equal(
            self.gap["local"], self.gap["tail"]
        ):  # the same range, if many rows share the largest score
            del self.gap["local"]
        values = [each.values for each in ranks]
        fewest, most = ALTERNATING_SCORES
        most = min(most, population.n // ALTERNATING_ROWS)
        if fewest <= min(values) and max(values) <= most:
            self.gap["alternating"] = np.stack([each.alternating(mirror) for each, mirror in sided])

    @property
    def shapes(self) -> list[str]:
        """Shapes that are possible for these scores."""
        return [shape for shape in SHAPES if shape in self.gap or shape not in (*LOCAL_RANKS, "alternating")]

    def __call__(self, shape: str, strength: float) -> Array:
        from scipy.special import expit

        if shape in self.gap:
            return np.clip(self.score + strength * self.gap[shape], 0.0, 1.0)
        if shape == "shifted":
            return np.asarray(expit(self.logit + strength * self.shift_direction))
        if shape == "wavy":
            return np.asarray(expit(self.logit + strength * self.wave))
        slope = np.exp(-strength if shape == "overconfident" else strength)
        return np.asarray(expit(self.fixed_logit + (self.logit - self.fixed_logit) * slope))


class _Ranks(NamedTuple):
    """Ranks of scores, as shares of the mass; equal scores share one rank."""

    score: Array
    mass: Array
    group: Array  # index of the score of each row among the distinct scores
    distinct_mass: Array  # mass of each distinct score
    values: int  # number of distinct scores

    @classmethod
    def of(cls, score: Array, mass: Array) -> _Ranks:
        """Rank the scores of one problem."""
        distinct, group = np.unique(score, return_inverse=True)
        return cls(score, mass, group, np.bincount(group, mass), len(distinct))

    @property
    def mid_rank(self) -> Array:
        """Mid-rank of each score: the share of the mass below it, plus half of its own."""
        return np.asarray((np.cumsum(self.distinct_mass) - self.distinct_mass / 2)[self.group])

    def local_range(self, at: float) -> Array:
        """Return 1 or -1 in a range of scores around a rank, and 0 elsewhere; the sign points to 1/2.

        The range always contains the score with this rank.
        """
        distance, own_mass = np.abs(self.mid_rank - at), self.distinct_mass[self.group]
        inside = distance <= np.maximum(LOCAL_WIDTH, own_mass) / 2 + 1e-12
        sign = 1.0 if float(np.average(self.score, weights=self.mass * inside)) < 0.5 else -1.0
        return np.where(inside, sign, 0.0)

    def alternating(self, mirror: bool) -> Array:
        """Return 1 and -1 at alternating distinct scores."""
        place = self.values - self.group if mirror else self.group
        return np.where(place % 2 == 0, 1.0, -1.0)


def _evenly_spaced_rows(cumulative: Array, size: int) -> Array:
    """Return evenly spaced rows, from the cumulative counts of the rows."""
    position = np.floor((np.arange(size) + 0.5) * (float(cumulative[-1]) / size))
    return np.searchsorted(cumulative, position, side="right")


def _systematic_sample(
    probability: Array, rng: np.random.Generator, size: int, rows: int, copies: int
) -> Iterator[Array]:
    """Draw outcomes (size, classes, rows) of all classes jointly, by systematic sampling.

    Where the probabilities of a row sum to one, this draws one label. Where a curve makes them sum to more or
    less, some rows get two labels or none, and every class keeps its exact probability.
    """
    end = np.cumsum(probability, axis=-2)
    for _ in range(copies):
        passed = np.ceil(end - rng.random((size, 1, rows)))
        passed[:, 1:] -= passed[:, :-1].copy()
        yield passed > 0

"""Families of scores and outcomes whose true calibration error is known exactly.

A family gives a score and the probability of the outcome. `shrunk` moves the outcomes towards
calibration: the true error shrinks by the same factor.

`EXACT` holds the regular ones, for which an efficiency bound holds; `LOCAL` local miscalibration,
`FEW` few distinct scores, `SHIFTED` rare outcomes whose frequency the model has wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import betaincinv, expit, logit, ndtri

from calibrant.score_data import Array

Map = Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class Family:
    """Scores from a known distribution, outcomes with a known probability.

    Parameters
    ----------
    name : str
    scores : pair of floats or callable
        Distribution of the scores: parameters of a beta distribution, or a quantile function. It is that of
        the outcomes' probabilities if `reversed`.
    curve : callable
        Probability of the outcome at a score; if `reversed`, the score at a probability.
    l1 : float
        True error at full size.
    factor : float
        Size of the gap: 1 as the family has it, 0 for a calibrated model.
    reversed : bool
        Whether the probabilities are drawn, and scores made from them.
    """

    name: str
    scores: tuple[float, float] | Map
    curve: Map
    l1: float
    factor: float = 1.0
    reversed: bool = False

    @property
    def truth(self) -> float:
        """True calibration error."""
        return self.factor * self.l1

    @property
    def label(self) -> str:
        """Name, with the size of the gap where that is not 1.

        >>> LOCAL["top"].shrunk(0.3).label
        'top x 0.3'
        """
        return self.name if self.factor == 1 else f"{self.name} x {self.factor:g}"

    def shrunk(self, factor: float) -> Family:
        """Return the same family with a smaller gap."""
        return replace(self, factor=factor)

    def quantile(self, share: Array) -> Array:
        """Return quantiles of what is drawn.

        >>> FEW["seven"].quantile(np.array([0.1, 0.5, 0.9]))
        array([0.1, 0.5, 0.9])
        """
        if callable(self.scores):
            return self.scores(share)
        return np.clip(betaincinv(*self.scores, share), 1e-300, 1 - 1e-16)

    def pairs(self, drawn: Array) -> tuple[Array, Array]:
        """Return scores and probabilities of the outcome for what was drawn."""
        other = drawn + self.factor * (self.curve(drawn) - drawn)
        return (other, drawn) if self.reversed else (drawn, other)

    def sample(self, rng: np.random.Generator, *shape: int) -> tuple[Array, Array]:
        """Return scores and probabilities of the outcome.

        >>> score, chance = EXACT["square"].sample(np.random.default_rng(0), 100_000)
        >>> bool(abs(np.mean(np.abs(score - chance)) - EXACT["square"].truth) < 1e-3)
        True
        """
        if callable(self.scores):
            return self.pairs(self.scores(rng.random(shape)))
        return self.pairs(np.clip(rng.beta(*self.scores, shape), 1e-300, 1 - 1e-16))

    def draw(self, rng: np.random.Generator, *shape: int) -> tuple[Array, Array]:
        """Return scores and outcomes."""
        score, chance = self.sample(rng, *shape)
        return score, rng.random(shape) < chance

    def deviation(self, *, rows: int = 1_000_000, seed: int = 0) -> float:
        """Return the standard deviation of what a row adds to the error, sqrt(Brier - ECE^2)."""
        score, chance = self.sample(np.random.default_rng(seed), rows)
        brier = np.mean(chance * (1 - score) ** 2 + (1 - chance) * score**2)
        return float(np.sqrt(brier - self.truth**2))

    def bound(self, n: int, *, rows: int = 1_000_000, seed: int = 0) -> float:
        """Return the least mean absolute error of a regular estimator, .798 sqrt((Brier - ECE^2) / n)."""
        return float(np.sqrt(2 / np.pi / n)) * self.deviation(rows=rows, seed=seed)


def affine(slope: float, shift: float) -> Map:
    """Make a map that is affine in the log odds."""
    return lambda p: np.asarray(expit(slope * logit(p) + shift))


def _wavy(p: Array) -> Array:
    return np.clip(p + (2 * np.sin(10 * np.pi * p) + np.sin(40 * np.pi * p / 3)) / (10 * np.pi), 0, 1)


def _beta_map(m: float, a: float, b: float) -> Map:
    middle = b * np.log1p(-m) - a * np.log(m)
    return lambda x: np.asarray(expit(middle + a * np.log(x) - b * np.log1p(-x)))


def _stairs(x: Array) -> Array:
    def step(t: Array) -> Array:
        return np.asarray(t - np.sin(t))

    def climb(t: Array) -> Array:
        return step(step(2 * np.pi * t * 1.5)) * (2 / 3) / (2 * np.pi)

    return climb(x + 1 / 3) - climb(np.asarray(1 / 3))


def one_of(values: Array) -> Map:
    """Make the quantile function of equally likely values: the sorted scores of a model, for instance."""
    last = len(values) - 1
    return lambda share: np.asarray(values[np.minimum((share * len(values)).astype(np.intp), last)])


def _uniform(share: Array) -> Array:
    return share


def _normal_logits(mean: float, deviation: float) -> Map:
    """Make the quantile function of scores whose log odds are normal."""
    return lambda share: np.asarray(expit(mean + deviation * ndtri(np.clip(share, 1e-300, 1 - 1e-16))))


def _often_one(share: Array) -> Array:
    """Quantile function of scores six tenths of which are 1, the others uniform from .3."""
    return np.where(share < 0.4, 0.3 + 0.7 * share / 0.4, 1.0)


def _other_prior(factor: float) -> Map:
    """Make the frequencies of a model trained where positives were so many times as frequent."""
    return lambda s: s / (s + factor * (1 - s))


def _alternating(values: Array, gap: float) -> Map:
    """Make a curve that is above the score at the first of the values, below at the second, and so on."""
    return lambda p: p + np.where(np.searchsorted(values, p) % 2 == 0, gap, -gap)


def _by_name(*families: Family) -> dict[str, Family]:
    return {family.name: family for family in families}


_SHAPES = (
    Family("square", (1, 1), np.square, 1 / 6, reversed=True),
    Family("sqrt", (1, 1), np.sqrt, 1 / 6, reversed=True),
    Family("beta1", (1, 1), _beta_map(0.4, 0.4, 0.45), 0.120023, reversed=True),
    Family("beta2", (1, 1), _beta_map(0.48, 2.0, 2.2), 0.103297, reversed=True),
    Family("stairs", (1, 1), _stairs, 0.114038, reversed=True),
)
#: The binary families, by name. Sources: a power of the score and a logistic map on network-like scores
#: (Roelofs et al.), flat, steep, shifted and wavy maps on an arcsine distribution, and the shapes of
#: Kaengsepp et al., whose scores are made from uniform probabilities.
EXACT = _by_name(
    Family("power", (1.1, 0.1), np.square, 1 / 24),
    Family("logistic", (1.1233, 0.1147), affine(0.49, -0.88), 0.1307138),
    Family("flat", (0.5, 0.5), affine(0.4, 0.3), 0.1371566),
    Family("steep", (0.5, 0.5), affine(4.0, 1.0), 0.1312465),
    Family("shift", (0.5, 0.5), lambda p: np.clip(p + 0.02, 0, 1), 0.0187972),
    Family("wavy", (0.5, 0.5), _wavy, 0.0400685),
    *_SHAPES,
)
#: Local miscalibration: behind a step, at the top, in the middle, in a bump, among saturated scores,
#: at both ends, at a score of exactly 1 that six tenths of the rows have; and a zigzag of twenty places.
LOCAL = _by_name(
    Family("step", _uniform, lambda p: np.minimum(p + 0.15 * (p > 0.8), 1), 0.01875),
    Family("top", (2, 1), lambda p: p - 0.3 * (p > 0.975), 0.3 * (1 - 0.975**2)),
    Family("middle", _uniform, lambda p: p + 0.2 * (np.abs(p - 0.45) < 0.06), 0.2 * 0.12),
    Family(
        "bump",
        _uniform,
        lambda p: p - 0.25 * np.exp(-0.5 * ((p - 0.7) / 0.03) ** 2),
        0.25 * 0.03 * float(np.sqrt(2 * np.pi)),
    ),
    Family("saturated", (5, 0.3), lambda p: np.where(p > 0.999, 0.97, p), 0.0066193),
    Family("ends", (0.25, 0.25), lambda p: p + 0.3 * (0.02 - 0.1 * p), 0.0125246),
    Family("certain", _often_one, lambda p: np.where(p == 1, 0.95, p), 0.6 * 0.05),
    Family("zigzag", _uniform, lambda p: np.clip(p + 0.1 * (-1.0) ** np.floor(20 * p), 0, 1), 0.0975),
)
_SEVEN = np.array([0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9])
_TWENTY = np.arange(1, 40, 2) / 40
#: Few distinct scores, as language models give when they are asked for a percentage; their gap alternates.
FEW = _by_name(
    Family("seven", one_of(_SEVEN), _alternating(_SEVEN, 0.0575), 0.0575),
    Family("twenty", one_of(_TWENTY), _alternating(_TWENTY, 0.05), 0.05),
)
#: Rare outcomes: models that learnt them as 43 and 5 times as frequent (class weights, balanced samples), and
#: two whose scores are .01 on average, with odds a third too low and, in a longer tail, two thirds too high.
SHIFTED = _by_name(
    Family("prior-43", _normal_logits(-1.8, 2.0), _other_prior(43), 0.2274052),
    Family("prior-5", _normal_logits(-1.8, 2.0), _other_prior(5), 0.1474516),
    Family("rare", (0.5, 49.5), affine(1.0, 0.4), 0.0047074),
    Family("rare-high", (0.1, 9.9), affine(1.0, -0.5), 0.0036779),
)
#: All of them.
FAMILIES = EXACT | LOCAL | FEW | SHIFTED

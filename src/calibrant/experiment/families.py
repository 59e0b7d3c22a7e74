"""Families of scores and outcomes whose true calibration error is known exactly.

Binary ones give a score and the probability of the outcome; `Dirichlet` gives whole probability
vectors. `shrunk` moves the outcomes towards calibration: the true error shrinks by the same factor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from calibrant.evidence import Array
from calibrant.questions.notions import named

Map = Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class Family:
    """Scores from a beta distribution, outcomes with a known probability.

    Parameters
    ----------
    name : str
    beta : pair of floats
        Parameters of the distribution of the scores, or of the outcomes' probabilities if `reversed`.
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
    beta: tuple[float, float]
    curve: Map
    l1: float
    factor: float = 1.0
    reversed: bool = False

    @property
    def truth(self) -> float:
        """True calibration error."""
        return self.factor * self.l1

    def shrunk(self, factor: float) -> Family:
        """Return the same family with a smaller gap."""
        return replace(self, factor=factor)

    def sample(self, rng: np.random.Generator, *shape: int) -> tuple[Array, Array]:
        """Return scores and probabilities of the outcome.

        >>> score, chance = EXACT["square"].sample(np.random.default_rng(0), 100_000)
        >>> bool(abs(np.mean(np.abs(score - chance)) - EXACT["square"].truth) < 1e-3)
        True
        """
        drawn = np.clip(rng.beta(*self.beta, shape), 1e-300, 1 - 1e-16)
        other = drawn + self.factor * (self.curve(drawn) - drawn)
        return (other, drawn) if self.reversed else (drawn, other)

    def draw(self, rng: np.random.Generator, *shape: int) -> tuple[Array, Array]:
        """Return scores and outcomes."""
        score, chance = self.sample(rng, *shape)
        return score, rng.random(shape) < chance

    def bound(self, n: int, *, rows: int = 1_000_000, seed: int = 0) -> float:
        """Return the least mean absolute error of a regular estimator, .798 sqrt((Brier - ECE^2) / n)."""
        score, chance = self.sample(np.random.default_rng(seed), rows)
        brier = np.mean(chance * (1 - score) ** 2 + (1 - chance) * score**2)
        return float(np.sqrt(2 / np.pi * (brier - self.truth**2) / n))


@dataclass(frozen=True)
class Dirichlet:
    """Probability vectors uniform on the simplex; true ones are pulled towards equal chances."""

    n_classes: int
    factor: float

    @property
    def name(self) -> str:
        """Identity, such as "dirichlet-5"."""
        return f"dirichlet-{self.n_classes}"

    def shrunk(self, factor: float) -> Dirichlet:
        """Return the same family with a smaller gap."""
        return replace(self, factor=self.factor * factor)

    def truth(self, notion: str) -> float:
        """Return the true calibration error of a notion."""
        k = self.n_classes
        if named(notion).top:
            return self.factor * (float(np.sum(1 / np.arange(1, k + 1))) - 1) / k
        return 2 * self.factor * (1 - 1 / k) ** k / k

    def draw(self, rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        """Return probability vectors (n, classes) and labels.

        >>> scores, labels = Dirichlet(4, 0.3).draw(np.random.default_rng(0), 5)
        >>> scores.shape, labels.shape
        ((5, 4), (5,))
        """
        scores = rng.dirichlet(np.ones(self.n_classes), n)
        chance = (1 - self.factor) * scores + self.factor / self.n_classes
        edge = np.cumsum(chance, axis=1)[:, :-1]
        return scores, (rng.random((n, 1)) >= edge).sum(axis=1)


def _logit(p: Array) -> Array:
    return np.log(p) - np.log1p(-p)


def affine(slope: float, shift: float) -> Map:
    """Make a map that is affine in the log odds."""

    def curve(p: Array) -> Array:
        return 1 / (1 + np.exp(-(slope * _logit(p) + shift)))

    return curve


def _wavy(p: Array) -> Array:
    return np.clip(p + (2 * np.sin(10 * np.pi * p) + np.sin(40 * np.pi * p / 3)) / (10 * np.pi), 0, 1)


def _beta_map(m: float, a: float, b: float) -> Map:
    def curve(x: Array) -> Array:
        t = b * np.log1p(-m) - a * np.log(m) + a * np.log(x) - b * np.log1p(-x)
        return 1 / (1 + np.exp(-t))

    return curve


def _stairs(x: Array) -> Array:
    def step(t: Array) -> Array:
        return np.asarray(t - np.sin(t))

    def climb(t: Array) -> Array:
        return step(step(2 * np.pi * t * 1.5)) * (2 / 3) / (2 * np.pi)

    return climb(x + 1 / 3) - climb(np.asarray(1 / 3))


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
EXACT = {
    family.name: family
    for family in (
        Family("power", (1.1, 0.1), np.square, 1 / 24),
        Family("logistic", (1.1233, 0.1147), affine(0.49, -0.88), 0.1307138),
        Family("flat", (0.5, 0.5), affine(0.4, 0.3), 0.1371566),
        Family("steep", (0.5, 0.5), affine(4.0, 1.0), 0.1312465),
        Family("shift", (0.5, 0.5), lambda p: np.clip(p + 0.02, 0, 1), 0.0187972),
        Family("wavy", (0.5, 0.5), _wavy, 0.0400685),
        *_SHAPES,
    )
}

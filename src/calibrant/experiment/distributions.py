"""Distributions whose posteriors are known exactly.

A distribution is any object with `name`, `n_classes`, `sample(n, rng)` and `posterior(features)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Protocol, runtime_checkable

import numpy as np

from calibrant.parallel import cached_property
from calibrant.score_data import Array

# Rows whose densities are computed together.
CHUNK = 1 << 11


def rng_of(*identity: object) -> np.random.Generator:
    """Seed a generator by what it is for, so that no result depends on the order of the work.

    >>> float(rng_of("a", 1).random()) == float(rng_of("a", 1).random()) != float(rng_of("a", 2).random())
    True
    """
    digest = sha256("\x1f".join(map(str, identity)).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))


@runtime_checkable
class Distribution(Protocol):
    """Where rows come from.

    See Also
    --------
    Mixture : Mixture of normal distributions.
    run : The experiment.

    Examples
    --------
    >>> from calibrant import experiment
    >>> sorted(name for name in dir(experiment.Distribution) if not name.startswith("_"))[-2:]
    ['posterior', 'sample']
    """

    @property
    def name(self) -> str:
        """Identity of the distribution: it seeds everything drawn from it."""
        ...

    @property
    def n_classes(self) -> int:
        """Number of classes; labels are 0 to n_classes - 1."""
        ...

    def sample(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return features and labels of n rows.

        Parameters
        ----------
        n : int
            Number of rows.
        rng : numpy.random.Generator
            Source of random numbers.
        """
        ...

    def posterior(self, features: Array) -> Array:
        """Return the probability of each class given the features.

        Parameters
        ----------
        features : array (N, D)
            Features of the rows.
        """
        ...


@dataclass(frozen=True)
class Mixture:
    """The paper's distributions: equally likely classes, each a Gaussian mixture of equally likely modes.

    Means are uniform in [low, 1]; covariances are A'A with the entries of A uniform in [-0.3, 0.3].

    Parameters
    ----------
    n_classes, n_features, seed : int
    modes : int
        Modes of each class.
    low : float
        -1 as the authors' code has it, or 0 as the paper says.

    See Also
    --------
    Distribution : Protocol of distributions.

    Examples
    --------
    >>> mixture = Mixture(n_classes=3, n_features=2, seed=0)
    >>> features, labels = mixture.sample(5, np.random.default_rng(0))
    >>> mixture.posterior(features).sum(axis=1).round(12)
    array([1., 1., 1., 1., 1.])
    """

    n_classes: int
    n_features: int
    seed: int
    modes: int = 4
    low: float = -1.0

    @property
    def name(self) -> str:
        """Identity, such as "mixture-c5-d2-s0"."""
        suffix = "" if self.low == -1 else f"-low{self.low:g}"
        modes = "" if self.modes == 4 else f"-m{self.modes}"
        return f"mixture-c{self.n_classes}-d{self.n_features}-s{self.seed}{modes}{suffix}"

    @cached_property
    def components(self) -> tuple[Array, Array]:
        """Means (C, modes, D) and factors A (C, modes, D, D)."""
        rng = rng_of(self.name)
        shape = (self.n_classes, self.modes, self.n_features)
        return rng.uniform(self.low, 1, shape), rng.uniform(-0.3, 0.3, (*shape, self.n_features))

    def sample(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return features and labels of n rows.

        Parameters
        ----------
        n : int
            Number of rows.
        rng : numpy.random.Generator
            Source of random numbers.
        """
        means, factors = self.components
        d = self.n_features
        component = rng.integers(0, self.n_classes * self.modes, n)
        noise = rng.standard_normal((n, d))
        features = np.empty((n, d))
        for k, (mean, factor) in enumerate(zip(means.reshape(-1, d), factors.reshape(-1, d, d), strict=True)):
            rows = np.flatnonzero(component == k)
            features[rows] = mean + noise[rows] @ factor
        return features, component // self.modes

    def posterior(self, features: Array) -> Array:
        """Return the probability of each class given the features, by Bayes' rule.

        Parameters
        ----------
        features : array (N, D)
            Features of the rows.
        """
        means, factors = self.components
        d = self.n_features
        # With cov = A'A the standardised distance is that of (x - mean) solved against A.
        inverse = np.linalg.inv(factors.reshape(-1, d, d))
        volume = np.linalg.slogdet(factors.reshape(-1, d, d))[1]
        centre = np.einsum("kd,kde->ke", means.reshape(-1, d), inverse)
        wide = inverse.transpose(1, 0, 2).reshape(d, -1)
        posterior = np.empty((len(features), self.n_classes))
        for a in range(0, len(features), CHUNK):
            rows = features[a : a + CHUNK]
            z = (rows @ wide).reshape(len(rows), -1, d) - centre
            log = -0.5 * np.einsum("nke,nke->nk", z, z) - volume
            log -= log.max(axis=1, keepdims=True)
            by_class = np.exp(log).reshape(len(rows), self.n_classes, self.modes).sum(axis=2)
            posterior[a : a + CHUNK] = by_class / by_class.sum(axis=1, keepdims=True)
        return posterior

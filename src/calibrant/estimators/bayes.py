"""The default estimator: the posterior mean of the calibration error (see `calibrant.posterior.gap`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from calibrant.estimators.base import Norm, SeveralFits, check_norm
from calibrant.evidence import Array, Evidence, Residuals
from calibrant.posterior.gap import Posterior, chance, n_cells, n_points


@dataclass(frozen=True, eq=False)
class BayesFit:
    """Posterior of the gap, and the errors it gives.

    Attributes
    ----------
    batch : tuple of int
    posterior : Posterior
        Of the problems of the batch, flattened.
    shared : bool
        Whether the problems along the last axis are the classes of one model.
    """

    batch: tuple[int, ...]
    posterior: Posterior
    shared: bool

    @classmethod
    def joined(cls, fits: Sequence[BayesFit]) -> BayesFit:
        """The fit of several blocks of classes as one."""
        posterior = Posterior.joined([fit.posterior for fit in fits])
        return cls((len(posterior.z),), posterior, fits[0].shared)

    @cached_property
    def evidence(self) -> Array:
        """Log of the Bayes factor for some gap against none; one for each model if shared."""
        if self.shared:
            return self.posterior.evidence(self.batch[-1]).reshape(self.batch[:-1])
        return self.posterior.evidence().reshape(self.batch)

    @cached_property
    def miscalibrated(self) -> Array:
        """Posterior probability that there is any gap at all, for each problem."""
        found = chance(self.evidence)
        return np.broadcast_to(found[..., None], self.batch) if self.shared else found

    @property
    def sides(self) -> tuple[Array, Array]:
        """The error's parts: scores that lie above the frequency, and below."""
        over, under = (part.reshape(self.batch) * self.miscalibrated for part in self.posterior.sides)
        return over, under

    def error(self, norm: Norm = "l1") -> Array:
        """Posterior mean of the mean gap (l1), root of that of its square (l2), largest such root (max)."""
        check_norm(norm)
        if norm == "l1":
            over, under = self.sides
            return np.minimum(over + under, 1.0)
        p = self.posterior
        if norm == "l2":
            found = p.square.sum(axis=-1)
        else:
            found = np.divide(p.square, p.mass, out=np.zeros(p.mass.shape), where=p.mass > 0).max(axis=-1)
        return np.minimum(np.sqrt(self.miscalibrated * found.reshape(self.batch)), 1.0)

    def curve(self) -> tuple[Array, Array, Array]:
        """Mean score, frequency and its posterior standard deviation in each cell."""
        p, shape = self.posterior, (*self.batch, self.posterior.z.shape[-1])
        held = np.maximum(p.mass, 1e-300)
        frequency = np.clip(p.score + p.gap / held, 0.0, 1.0)
        return p.score.reshape(shape), frequency.reshape(shape), (p.sd / held).reshape(shape)


@dataclass(frozen=True)
class Bayes:
    """Posterior mean of the calibration error when the gap is a Gaussian process; the default.

    Parameters
    ----------
    shared : bool
        Whether the problems along the last axis of the batch are the classes of one model, which
        then are calibrated, or not, together.

    Examples
    --------
    >>> from calibrant.evidence import Sample
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(2000)
    >>> calibrated = Sample(score, rng.random(2000) < score)
    >>> bool(Bayes().fit(calibrated).error() < 0.01)
    True
    """

    shared: bool = False

    def __str__(self) -> str:
        return "bayes:shared" if self.shared else "bayes"

    def fit(self, evidence: Evidence) -> BayesFit | SeveralFits:
        """Look at the residuals in score order."""
        return self.of_residuals(Residuals.of(evidence))

    def of_residuals(self, profile: Residuals) -> BayesFit | SeveralFits:
        """The fit of residuals in score order; problems of very different size are fitted apart."""
        batch = profile.batch
        shared = self.shared and bool(batch)
        flat = profile.flat
        n = np.repeat(flat.n.reshape(batch).max(axis=-1), batch[-1]) if shared else flat.n
        sizes = np.stack([n_cells(n), n_points(n)], axis=-1)
        if np.all(sizes == sizes[0]):
            return BayesFit(batch, Posterior.of_residuals(flat, int(sizes[0, 0])), shared)
        parts = []
        for size in np.unique(sizes, axis=0):
            some = np.all(sizes == size, axis=-1)
            models = (int(some.sum()) // batch[-1], batch[-1]) if shared else (int(some.sum()),)
            fit = BayesFit(models, Posterior.of_residuals(flat[some], int(size[0])), shared)
            parts.append((some.reshape(batch), fit))
        return SeveralFits(batch, parts)

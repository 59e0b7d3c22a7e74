"""The default estimator: the posterior mean of the calibration error (see `calibrant.posterior.gap`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calibrant.estimators.base import Estimator, Fit, Norm, SeveralFits
from calibrant.inputs import check_choice
from calibrant.parallel import cached_property
from calibrant.posterior.gap import PooledClasses, Posterior, Terms, pool_classes
from calibrant.posterior.variance_time import n_cells, n_pilot_blocks
from calibrant.score_data import Array, Residuals, ScoreData


@dataclass(frozen=True, eq=False)
class BayesFit(Fit):
    """Posterior of the gap, and errors computed from it.

    Attributes
    ----------
    batch : tuple of int
        Shape of the batch.
    posterior : Posterior
        Posterior of the problems of the batch, flattened.
    """

    estimator: Bayes
    batch: tuple[int, ...]
    posterior: Posterior

    @classmethod
    def joined(cls, fits: Sequence[Any]) -> list[Any]:
        """Return the fits of blocks of classes, joined to one fit if the classes are pooled."""
        if len(fits) < 2 or not fits[0].shared:
            return list(fits)
        posterior = Posterior.joined([fit.posterior for fit in fits])
        return [cls(fits[0].estimator, (len(posterior.z),), posterior)]

    @property
    def shared(self) -> bool:
        """Whether the problems along the last axis are the classes of one model."""
        return self.estimator.shared and bool(self.batch)

    @cached_property
    def _pooled_classes(self) -> PooledClasses:
        """Posterior of the classes of each model, pooled and unpooled."""
        classes = self.batch[-1]
        terms = (
            term.reshape(-1, classes, *term.shape[1:]).sum(axis=1) for term in self.posterior.terms("l1")
        )
        return pool_classes(Terms(*terms), self.posterior.z.shape[-1], classes, self.posterior.classes)

    def _average(self, smooth: Array, unpooled: Array) -> Array:
        """Average the pooled (`smooth`) and the unpooled expectation of each problem."""
        if not self.shared:
            return unpooled
        models = (-1, self.batch[-1], *unpooled.shape[1:])
        extra = (1,) * (unpooled.ndim)
        pool_classes = PooledClasses(*(term.reshape(-1, *extra) for term in self._pooled_classes))
        return pool_classes.average(smooth.reshape(models), unpooled.reshape(models)).reshape(unpooled.shape)

    @cached_property
    def over_under(self) -> tuple[Array, Array]:
        """Parts of the error: scores above the frequency, and scores below it."""
        p = self.posterior
        pairs = zip(p.smooth_over_under, p.over_under, strict=True)
        over, under = (self._average(smooth, unpooled).reshape(self.batch) for smooth, unpooled in pairs)
        return over, under

    def _error(self, norm: Norm) -> Array:
        """Return the expected absolute gap (l1), root mean square (l2) or its maximum over cells (max)."""
        p = self.posterior
        if norm == "l1":
            over, under = self.over_under
            return np.minimum(over + under, p.largest_error(norm).reshape(self.batch))
        square = self._average(p.smooth_square, p.mean_square)
        if norm == "l2":
            square = square.sum(axis=-1)
        else:
            square = np.divide(square, p.mass, out=np.zeros(p.mass.shape), where=p.mass > 0).max(axis=-1)
        return np.minimum(np.sqrt(square.reshape(self.batch)), p.largest_error(norm).reshape(self.batch))


@dataclass(frozen=True)
class Bayes(Estimator):
    """Posterior mean of the calibration error; the default.

    Parameters
    ----------
    shared : bool
        Whether the problems along the last axis of the batch are the classes of one model. Their prior
        probabilities of calibration, sizes and roughnesses are then pooled.

    See Also
    --------
    Binned : Estimators on bins.
    estimator_names : Names of all estimators.
    ece : Calibration error by any estimator.

    Examples
    --------
    >>> from calibrant.score_data import Sample
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(2000)
    >>> calibrated = Sample(score, rng.random(2000) < score)
    >>> bool(Bayes().fit(calibrated).error() < 0.01)
    True
    """

    shared: bool = False

    from_posterior = True
    name = "bayes"
    short = "b"
    parameter = "shared"
    summary = "posterior mean of the error; what auto means"

    @classmethod
    def parse(cls, parameter: str | None) -> Self:
        """Return the estimator for None or "shared"."""
        check_choice("parameter of bayes", parameter, (None, "shared"))
        return cls(shared=parameter == "shared")

    def __str__(self) -> str:
        return "bayes:shared" if self.shared else "bayes"

    def fit_posterior(self, batch: tuple[int, ...], posterior: Posterior) -> BayesFit:
        """Return the fit for a posterior that is already computed."""
        return BayesFit(self, batch, posterior)

    def for_single_class(self) -> Bayes:
        """Return the estimator without pooling."""
        return Bayes()

    def fit(self, data: ScoreData, *, ties: bool = True) -> BayesFit | SeveralFits:
        """Fit the residuals in score order; without `ties`, score effects are left out."""
        return self.of_residuals(Residuals.of(data, ties=ties))

    def of_residuals(self, residuals: Residuals) -> BayesFit | SeveralFits:
        """Fit residuals in score order; problems with different numbers of cells are fitted separately."""
        batch = residuals.batch
        shared = self.shared and bool(batch)
        flat = residuals.flat
        n = np.repeat(flat.n.reshape(batch).max(axis=-1), batch[-1]) if shared else flat.n
        sizes = np.stack([n_cells(n), n_pilot_blocks(n)], axis=-1)
        if np.all(sizes == sizes[0]):
            return BayesFit(self, batch, Posterior.of_residuals(flat, int(sizes[0, 0])))
        parts = []
        for size in np.unique(sizes, axis=0):
            same_size = np.all(sizes == size, axis=-1)
            models = (int(same_size.sum()) // batch[-1], batch[-1]) if shared else (int(same_size.sum()),)
            fit = BayesFit(self, models, Posterior.of_residuals(flat[same_size], int(size[0])))
            parts.append((same_size.reshape(batch), fit))
        return SeveralFits(self, batch, parts)

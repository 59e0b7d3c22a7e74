"""The default estimator of canonical calibration: a softmax posterior, corrected on held-out rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.estimators.base import Estimator, Fit, Norm
from calibrant.estimators.bayes import Bayes
from calibrant.posterior.softmax import CanonicalError, SoftmaxPosterior
from calibrant.score_data import Array, Sample
from calibrant.score_data.simplex import Simplex
from calibrant.tasks import CalibrationTask, cached_on_task

# Folds of the cross-fitted probabilities.
FOLDS = 3


@dataclass(frozen=True, eq=False)
class SoftmaxFit(Fit):
    """The errors on the simplex."""

    canonical: CanonicalError

    def _error(self, norm: Norm) -> Array:
        return np.asarray(self.canonical.value(norm))


@dataclass(frozen=True, eq=False)
class TwoClassesFit(Fit):
    """Fit of two classes by the binary posterior, as their gaps differ only in sign."""

    binary_fit: Fit

    def _error(self, norm: Norm) -> Array:
        return scale_of(norm) * self.binary_fit.error("l2" if norm == "l2" else "l1")


@dataclass(frozen=True)
class CanonicalSoftmax(Estimator):
    """Posterior mean over softmax maps of the scores, averaged with cross-fitted rows.

    The map has a temperature, curves, shifts of the two largest scores, biases, slopes, a matrix and bumps on
    the simplex, each shrunk by its marginal likelihood. Local frequencies replace it where they predict
    significantly better. Above 12 classes the probability transfer between classes cannot be estimated, and
    the value does not include it.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1], 1000)
    >>> label = (rng.random((1000, 1)) > (0.7 * p + 0.1).cumsum(axis=1)).sum(axis=1)
    >>> truth = 0.3 * float(np.abs(p - 1 / 3).sum(axis=1).mean())
    >>> abs(float(CanonicalSoftmax().fit(Simplex.of(p, label)).error()) / truth - 1) < 0.1
    True
    """

    vectors = True
    name = "softmax"
    short = "softmax"
    summary = "posterior of a softmax of all scores, cross-fitted"

    def fit(self, rows: Simplex) -> Fit:
        """Fit the posterior."""
        if rows.n_classes == 2:
            counts = np.array_equal(rows.weight, rows.square)
            weight = rows.weight.astype(np.int64) if counts else rows.weight
            sample = Sample(rows.score[:, 1], rows.code == 1, weight, (0.0, 1.0), counts)
            return TwoClassesFit(self, Bayes().fit(sample))
        return SoftmaxFit(self, CanonicalError.of(SoftmaxPosterior.of(rows)))


def scale_of(norm: str) -> float:
    """Return the ratio of the canonical error of two classes to the binary error of one of them.

    >>> scale_of("l1"), scale_of("mul")
    (2.0, 1.0)
    """
    return {"l1": 2.0, "l2": float(np.sqrt(2)), "mul": 1.0}[norm]


@cached_on_task
def canonical_error(task: CalibrationTask) -> CanonicalError:
    """Return the canonical errors of a task with more than two classes."""
    return CanonicalError.of(SoftmaxPosterior.of(task.simplex))


def cross_fitted_probabilities(rows: Simplex) -> Array:
    """Return cross-fitted probabilities of each row, by a posterior fitted entirely without its fold.

    If no gap is more probable than a gap in that posterior, the scores are returned.
    """
    out = rows.score.copy()
    parts = rows.folds(FOLDS)
    for fold in parts if len(parts) > 1 else []:
        posterior = SoftmaxPosterior.of(rows[np.r_[0 : fold.start, fold.stop : len(rows.code)]])
        if posterior.gap_probability > 0.5:
            out[fold] = posterior.predict(rows.score[fold])
    return out

"""Leave-one-out kernel regression with Dirichlet kernels on score vectors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from calibrant.estimators.base import Estimator, Fit, Norm, number_or_text
from calibrant.estimators.beta_kernel import ALONE, TRIED, check_bandwidth, likeliest
from calibrant.posterior.softmax.blocks import least_of
from calibrant.score_data import Array
from calibrant.score_data.simplex import Simplex

# Vectors whose likelihood decides on the bandwidth.
ASKED = 1000
# Kernels held at once.
HELD = 1 << 20


@dataclass(frozen=True, eq=False)
class DirichletFit(Fit):
    """Local frequencies at each row.

    Attributes
    ----------
    rows : Simplex
        The data.
    frequency : array (rows, classes)
        Weighted frequency of each class among the other rows.
    bandwidth : float
        Bandwidth as used.
    """

    rows: Simplex
    frequency: Array
    bandwidth: float

    def _error(self, norm: Norm) -> Array:
        gap = np.abs(self.frequency - self.rows.score)
        each = {"l1": gap, "l2": gap * gap, "mul": self.frequency * gap}[norm].sum(axis=1)
        mean = self.rows.mean(each)[0]
        return np.asarray(np.sqrt(mean) if norm == "l2" else mean)


@dataclass(frozen=True)
class CanonicalDirichlet(Estimator):
    """Leave-one-out kernel regression on the simplex (Popordanoska, Sayer and Blaschko 2022).

    The frequencies at a vector p are weighted means over the other rows. The weight of row j is the density
    of Dirichlet(p_j/h + 1) at p. With two classes this is `beta-kernel`. A score of 0 is replaced by half of
    the smallest other score, at most .001. Time grows with the square of the number of distinct vectors,
    memory does not. It is useful for few classes only: with ten classes and 10,000 rows, hardly any row has
    neighbours within the width of the kernel.

    Parameters
    ----------
    bandwidth : float or "likelihood"
        h; "likelihood" chooses the value between .001 and .5 with the largest leave-one-out likelihood.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1], 1000)
    >>> label = (rng.random((1000, 1)) > (0.7 * p + 0.1).cumsum(axis=1)).sum(axis=1)
    >>> fit = CanonicalDirichlet(0.05).fit(Simplex.of(p, label))
    >>> truth = 0.3 * float(np.abs(p - 1 / 3).sum(axis=1).mean())
    >>> round(float(fit.error()), 2), round(truth, 2)
    (0.22, 0.18)
    """

    bandwidth: float | str = "likelihood"

    vectors = True
    name = "dirichlet"
    short = "dirichlet"
    parameter = "bandwidth"
    summary = "leave-one-out Dirichlet kernels"

    def __post_init__(self) -> None:
        check_bandwidth(self.bandwidth)

    @classmethod
    def parse(cls, parameter: str | None) -> Self:
        """Read the bandwidth."""
        return cls(number_or_text(parameter or "likelihood"))

    def __str__(self) -> str:
        return self.name if self.bandwidth == "likelihood" else f"{self.name}:{self.bandwidth}"

    def fit(self, rows: Simplex) -> DirichletFit:
        """Choose the bandwidth and regress."""
        around = _Neighbours.of(rows)
        h = around.bandwidth() if isinstance(self.bandwidth, str) else float(self.bandwidth)
        return DirichletFit(self, rows, _frequencies(rows, around, h), h)


def _frequencies(rows: Simplex, around: _Neighbours, h: float) -> Array:
    """Return the frequencies among the other rows, for each row."""
    out = np.empty(rows.score.shape)
    group = rows.group - rows.group[0]
    for chunk, kernel in around.kernels(h):
        self_kernel = kernel[np.arange(len(kernel)), np.arange(chunk.start, chunk.stop)]
        mass = kernel @ around.mass
        first, last = np.searchsorted(group, [chunk.start, chunk.stop])
        subset = slice(first, last)
        at = group[subset] - chunk.start
        # What one row weighs: a count is of that many.
        self_weight = rows.square[subset] / rows.weight[subset] * self_kernel[at]
        mass = mass[at]
        i, code = np.arange(len(at)), rows.code[subset]
        total = mass.sum(axis=1) - self_weight
        mass[i, code] -= self_weight
        # A row without neighbours within the kernel width is predicted by its own outcome.
        alone = total <= ALONE * self_weight
        mass[alone] = 0.0
        mass[i[alone], code[alone]] = 1.0
        out[subset] = np.clip(mass / np.where(alone, 1.0, total)[:, None], 0.0, 1.0)
    return out


@dataclass(frozen=True, eq=False)
class _Neighbours:
    """Distinct vectors: scores, their logarithms, and the mass of each class."""

    score: Array
    log: Array
    mass: Array

    @classmethod
    def of(cls, rows: Simplex) -> _Neighbours:
        score = rows.score[rows.first_of_vectors]
        return cls(score, np.log(np.maximum(score, least_of(score))), rows.label_weights())

    def peaks(self, h: float) -> Array:
        """Return the log normalisation constant of the Dirichlet density of each vector."""
        from scipy.special import gammaln

        shape = self.score / h + 1
        return np.asarray(gammaln(shape.sum(axis=1)) - gammaln(shape).sum(axis=1))

    def kernels(self, h: float) -> Iterator[tuple[slice, Array]]:
        """Yield kernels of all vectors (columns) at chunks of vectors (rows), scaled to a maximum of 1."""
        peaks, step = self.peaks(h), max(1, HELD // len(self.score))
        for a in range(0, len(self.score), step):
            chunk = slice(a, min(a + step, len(self.score)))
            log = self.log[chunk] @ (self.score / h).T + peaks
            yield chunk, np.exp(log - log.max(axis=1, keepdims=True))

    def bandwidth(self) -> float:
        """Return the bandwidth of largest likelihood."""
        if len(self.score) == 1:
            return float(TRIED[0])
        n_evaluated, step = min(ASKED, len(self.score)), max(1, HELD // len(self.score))
        weight, value = self.mass.sum(axis=1), np.zeros(TRIED.size)
        peaks, share = [self.peaks(h) for h in TRIED], np.log(weight)
        for a in range(0, n_evaluated, step):
            subset = np.arange(a, min(a + step, n_evaluated))
            inner = self.log[subset] @ self.score.T
            for j, h in enumerate(TRIED):
                log = inner / h + (peaks[j] + share)
                # Equal vectors are no neighbours here: they would have it that the best kernel is a spike.
                log[np.arange(len(subset)), subset] = -np.inf
                top = log.max(axis=1)
                value[j] += weight[subset] @ (top + np.log(np.exp(log - top[:, None]).sum(axis=1)))
        return likeliest(value)

"""Interval and test for rows that belong together.

Calibrated data are simulated by turning the sign of all residuals of a cluster at once, so whatever
holds a cluster together stays. Few clusters say little about how much they differ, which is why the
tails of an interval are those of Student's distribution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from calibrant.estimators.base import Estimator, Norm
from calibrant.evidence import (
    Array,
    Cells,
    Design,
    Evidence,
    Residuals,
    Sample,
    cells_of,
    correlation,
    effective_clusters,
)
from calibrant.inference.null import STEPS, Simulated, by_class, error, ranked, together
from calibrant.posterior import Posterior
from calibrant.posterior.clock import n_cells
from calibrant.posterior.gap import Terms
from calibrant.questions import Question

# Signs drawn at once, and rows up to which correlated outcomes are drawn for each of them.
SIGNS, MOST_ROWS = 1 << 22, 1 << 17


@dataclass(frozen=True, eq=False)
class View:
    """What an interval is made from.

    Attributes
    ----------
    problem : Evidence
        On which outcomes are drawn anew.
    n : float
        Number of independent rows that say as much.
    design : Design or None
        What clusters do to the problem, where there are any.
    clusters : float
        How many equally large clusters would be as good.
    """

    problem: Evidence
    n: float
    design: Design | None = None
    clusters: float = np.inf

    @classmethod
    def of(cls, question: Question) -> list[View]:
        """Return the view of each problem."""
        cluster, designs, n = question.cluster, question.designs, question.n
        if cluster is None or designs is None:
            return [cls(problem, n) for problem in question.problems]
        clusters = effective_clusters(cluster, question.weight)
        return [
            cls(Correlated.of(problem, cluster), n / design.effect, design, clusters)
            for problem, design in zip(question.problems, designs, strict=True)
        ]

    @property
    def effect(self) -> float:
        """The design effect; one without clusters."""
        return 1.0 if self.design is None else self.design.effect

    def tails(self, level: float) -> float:
        """Return how much further out the tails lie at a level than normal ones: Student's, of few clusters.

        >>> sample = Sample(np.array([0.5]), np.array([True]))
        >>> round(View(sample, 1.0, Design(), 20.0).tails(0.95), 3)
        1.068
        """
        from scipy.special import ndtri, stdtrit

        if self.design is None:
            return 1.0
        return float(stdtrit(max(self.clusters - 1, 1.0), (1 + level) / 2) / ndtri((1 + level) / 2))

    def of_mean(self, level: float) -> float:
        """Return how many times larger the variance of a mean residual is, its tails at a level included."""
        return 1.0 if self.design is None else self.design.of_mean * self.tails(level) ** 2

    def reach(self, level: float, estimator: Estimator) -> float:
        """Return how much further out the tails lie than simulations of an estimator show them."""
        if self.design is None:
            return 1.0
        missing = self.design.of_error
        if estimator.from_posterior:
            missing /= self.design.effect
        elif isinstance(self.problem, Correlated) and self.problem.cluster is not None:
            missing = 1.0
        return self.tails(level) * max(1.0, float(np.sqrt(missing)))


@dataclass(frozen=True, eq=False)
class Flips:
    """Evidence and error of data whose clusters had their signs turned.

    Attributes
    ----------
    alone : list of Simulated
        Of each problem.
    whole : Simulated
        Of all of them together, in which a cluster has one sign.
    """

    alone: list[Simulated]
    whole: Simulated

    @classmethod
    def of(cls, question: Question, norm: Norm, rng: np.random.Generator, size: int) -> Flips:
        """Turn signs in `size` data sets, the same for all problems."""
        problems, cluster, designs = question.problems, question.cluster, question.designs
        assert cluster is not None
        assert designs is not None
        clusters = int(cluster.max()) + 1
        signs = _signs(clusters, rng, size)
        # Where all signs are the same the data are those seen: rounding must not tell them apart.
        same = np.concatenate([np.abs(part.sum(axis=0)) == clusters for part in signs()])

        def tied(null: Simulated) -> Simulated:
            return replace(null, evidence=np.where(same, null.observed, null.evidence))

        # Problems that are judged together are seen in as many cells.
        usual = float(np.mean([design.symmetric for design in designs]))
        alone, seen, drawn = [], [], []
        for problem, design in zip(problems, designs, strict=True):
            plain = Residuals.of(problem)
            steps = plain.thinned(usual, design.symmetric / usual).coarser(STEPS)
            cells = min(int(n_cells(steps.flat.n)[0]), STEPS // 2)
            residual = turned(problem, cluster, plain, steps, signs)
            simulated, observed, null = ranked(steps, residual, norm, cells)
            alone.append(tied(simulated))
            seen.append(observed)
            drawn.append(null.z)
        if len(problems) == 1:
            return cls(alone, alone[0])
        observed = replace(Posterior.joined(seen), few=None, at_values=None)
        cells = observed.z.shape[-1]
        terms = by_class(observed, np.stack(drawn, axis=1), norm)
        own = Terms(*(term[None] for term in observed.terms(norm)))
        found = float(together(own, cells)[0])
        return cls(alone, tied(Simulated(together(terms, cells), error(terms, norm, cells), found)))


def turned(
    problem: Evidence,
    cluster: Array,
    plain: Residuals,
    steps: Residuals,
    signs: Callable[[], Iterable[Array]],
) -> Array:
    """Return the residuals of data sets with signs turned, (sets, steps).

    Parameters
    ----------
    problem : Evidence
        The rows.
    cluster : array
        The cluster of each row.
    plain, steps : Residuals
        Of these rows; and with neighbours joined and fewer rows, which is what is asked for.
    signs : callable
        Yields signs (clusters, sets) in parts.
    """
    from scipy.sparse import csr_array

    score, outcome, weight = next(problem.rows())
    # Steps are cells of scores, or neighbouring ones joined: the middle of a cell's mass tells which.
    cell = cells_of(score)
    mass = plain.mass[plain.mass > 0]
    ends = np.cumsum(steps.mass) * (mass.sum() / steps.mass.sum())
    step = np.minimum(np.searchsorted(ends, np.cumsum(mass) - mass / 2), ends.size - 1)[cell]
    scale = float(steps.mass.sum() / weight.sum())
    shape = (steps.mass.size, int(cluster.max()) + 1)
    each = csr_array((scale * weight * (outcome - score), (step, cluster)), shape=shape)
    return np.concatenate([(each @ part).T for part in signs()])


def _signs(clusters: int, rng: np.random.Generator, size: int) -> Callable[[], Iterable[Array]]:
    """Return how to draw signs (clusters, sets) in parts; each time the same."""
    seed = int(rng.integers(2**63))
    few = max(1, SIGNS // clusters)

    def parts() -> Iterator[Array]:
        again = np.random.default_rng(seed)
        for a in range(0, size, few):
            yield 2.0 * again.integers(0, 2, (clusters, min(few, size - a)), dtype=np.int8) - 1.0

    return parts


def by_cluster(added: Array, cluster: Array, weight: Array | None = None) -> Array:
    """Return what each cluster adds to an error beside the mean, from what each row adds.

    >>> by_cluster(np.array([1.0, 3.0, 2.0]), np.array([0, 0, 1]))
    array([0., 0.])
    """
    w = np.ones(len(added)) if weight is None else weight
    rest = (w / w.sum())[:, None] * (added.reshape(len(added), -1) - np.average(added, axis=0, weights=w))
    sums = np.stack([np.bincount(cluster, column) for column in rest.T], axis=1)
    return sums.reshape(-1, *added.shape[1:])


@dataclass(frozen=True, eq=False)
class Correlated:
    """Rows whose outcomes are drawn as alike within a cluster as they were seen to be.

    Attributes
    ----------
    evidence : Evidence
        The rows; too many of them as sums, and independent.
    cluster : array or None
        The cluster of each.
    """

    evidence: Any
    cluster: Array | None

    @classmethod
    def of(cls, problem: Any, cluster: Array) -> Any:
        """Return the rows of a problem, counted rows one by one."""
        if max(problem.shape[-1], float(problem.n)) > MOST_ROWS:
            return cls(Cells.of(problem), None)
        if problem.weight is not None and problem.counts:
            at = np.repeat(np.arange(problem.shape[-1]), problem.weight)
            problem = Sample(problem.score[at], problem.outcome[at], None, problem.support)
            cluster = cluster[at]
        return cls(problem, cluster)

    @cached_property
    def correlation(self) -> float:
        """Of two rows of a cluster, as a share of the largest that their probabilities allow."""
        return 0.0 if self.cluster is None else correlation(self.evidence, self.cluster)

    def redraw(self, probability: Callable[[Array], Array], rng: np.random.Generator, size: int) -> Any:
        """Draw `size` samples of the same scores with outcomes drawn from `probability(score)`.

        A row takes the number of its cluster, or else one of its own, and is positive where that is
        below its probability: two rows of a cluster correlate as they should.
        """
        if self.cluster is None:
            return self.evidence.redraw(probability, rng, size)
        rows = self.evidence
        shape = (size, rows.shape[-1])
        number, own = rng.random(shape), rng.random(shape) >= np.sqrt(self.correlation)
        shared = rng.random((size, int(self.cluster.max()) + 1))[:, self.cluster]
        return replace(rows, outcome=np.where(own, number, shared) < probability(rows.score))

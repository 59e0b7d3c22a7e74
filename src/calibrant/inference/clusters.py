"""Interval and test for rows that belong together.

Calibrated data are drawn from the scores, as alike within clusters as the data are. For a handful of
clusters, and for very many rows, the residuals of whole clusters change their sign instead: that needs
no estimate, but takes the few outcomes at extreme scores for all that could have been. Few clusters say
little about how much they differ, which is why the tails of an interval are those of Student's
distribution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant.compiled.cached import cached_property
from calibrant.estimators.base import Estimator, Norm
from calibrant.inference.classes import joint
from calibrant.inference.null import AT_ONCE, STEPS, SimulatedNull, ranked
from calibrant.inputs import by_name
from calibrant.posterior import Posterior
from calibrant.posterior.variance_time import n_cells
from calibrant.score_data import (
    Array,
    Cells,
    Residuals,
    Sample,
    ScoreData,
    across_clusters,
)
from calibrant.score_data.clusters import DesignEffect, cells_of, correlation, effective_clusters
from calibrant.score_data.draws import each_chance
from calibrant.tasks import CalibrationTask

# Signs drawn at once, and rows up to which correlated outcomes are drawn for each of them.
SIGNS, MOST_ROWS = 1 << 22, 1 << 17
# Calibrated data are drawn for this many clusters at least, and this many outcomes at most; otherwise
# signs are turned, which needs no estimate of how alike rows are. The choice does not depend on how many sets
# are asked for beyond the usual number.
FEWEST, MOST_DRAWN, USUAL = 10, 1 << 27, 999


@dataclass(frozen=True, eq=False)
class ClusterAdjustment:
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

    problem: ScoreData
    n: float
    design: DesignEffect | None = None
    clusters: float = np.inf

    @classmethod
    def of(cls, task: CalibrationTask) -> list[ClusterAdjustment]:
        """Return the view of each problem."""
        cluster, designs, n = task.cluster, task.designs, task.n
        if cluster is None or designs is None:
            return [cls(problem, n) for problem in task.problems]
        clusters = effective_clusters(cluster, task.weight)
        return [
            cls(Correlated.of(problem, cluster), n / design.effect, design, clusters)
            for problem, design in zip(task.problems, designs, strict=True)
        ]

    @property
    def effect(self) -> float:
        """The design effect; one without clusters."""
        return 1.0 if self.design is None else self.design.effect

    def tails(self, level: float) -> float:
        """Return how much further out the tails lie at a level than normal ones: Student's, of few clusters.

        >>> sample = Sample(np.array([0.5]), np.array([True]))
        >>> round(ClusterAdjustment(sample, 1.0, DesignEffect(), 20.0).tails(0.95), 3)
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
class ClusteredNull:
    """Evidence and error of calibrated data in the same clusters.

    Attributes
    ----------
    alone : list of Simulated
        Of each problem.
    whole : Simulated
        Of all of them together, drawn as whole rows.
    """

    alone: list[SimulatedNull]
    whole: SimulatedNull

    @classmethod
    def of(cls, task: CalibrationTask, norm: Norm, rng: np.random.Generator, size: int) -> ClusteredNull:
        """Simulate `size` data sets, the same for all problems."""
        cluster, by_problem = task.cluster, task.designs
        assert cluster is not None
        assert by_problem is not None
        columns = _columns(task)
        problems, designs = [task.problems[k] for k in columns], [by_problem[k] for k in columns]
        clusters = int(cluster.max()) + 1
        signs = _signs(clusters, rng, size)
        # Where all signs are the same the data are those seen: rounding must not tell them apart.
        same = np.concatenate([np.abs(part.sum(axis=0)) == clusters for part in signs()])

        def tied(null: SimulatedNull) -> SimulatedNull:
            if draws is not None:
                return null
            evidence = np.where(same, null.observed, null.evidence)
            return replace(null, evidence=evidence, exhaustive=clusters < FEWEST)

        draws = Draws.of(task, rng, size)
        below: Array = np.zeros(1)
        # Problems that are judged together are seen in as many cells.
        usual = float(np.mean([design.symmetric for design in designs]))
        alone, seen, drawn = [], [], []
        for problem, design in zip(problems, designs, strict=True):
            steps = across_clusters(Residuals.of(problem), problem, cluster)
            steps = steps.thinned(usual, design.symmetric / usual).coarser(STEPS)
            cells = min(int(n_cells(steps.flat.n)[0]), STEPS // 2)
            if draws is None:
                residuals = turned(problem, cluster, steps, signs)
            else:
                low = np.broadcast_to(below, draws.order.shape)
                residuals = draws.residuals(problem, steps, low)
                below = low + next(problem.rows())[0][draws.order]
            each = ranked(steps, residuals, norm, cells, keep=len(problems) > 1)
            alone.append(tied(each.simulated))
            seen.append(each.observed)
            drawn.append(each.z)
        if len(problems) == 1:
            return cls(alone, alone[0])
        parts = [(len(part[0]), part.__getitem__) for part in zip(*drawn, strict=True)]
        whole = joint(Posterior.joined(seen).smooth_alone, parts, norm)
        return cls([alone[k] for k in np.argsort(columns)], tied(whole))


@dataclass(frozen=True, eq=False)
class Draws:
    """Labels of calibrated data, as alike within clusters as those seen.

    A row takes the number of its cluster, or else one of its own; the problem in whose part of [0, 1]
    it falls, each as wide as its score, has the outcome.

    Attributes
    ----------
    order : array
        The rows, cluster after cluster, whatever order they came in; counted ones several times.
    cluster : array
        The cluster of each of these.
    counted : bool
        Whether weights are counts.
    correlation : float
        Of two rows of a cluster, as a share of the largest that their probabilities allow.
    seed, size : int
        Of the sets that are drawn, the same for every problem.
    """

    order: Array
    cluster: Array
    counted: bool
    correlation: float
    seed: int
    size: int

    @classmethod
    def of(cls, task: CalibrationTask, rng: np.random.Generator, size: int) -> Draws | None:
        """Return how to draw for a question; None for too few clusters or too many rows."""
        cluster, weight, problems = task.cluster, task.weight, task.problems
        assert cluster is not None
        if cluster.max() + 1 < FEWEST or max(task.n, cluster.size) * min(size, USUAL) > MOST_DRAWN:
            return None
        keys = []
        for k in reversed(_columns(task)):
            score, outcome, heavy = np.broadcast_arrays(*next(problems[k].rows()))
            keys += [outcome, score]
        order = np.lexsort((heavy, *keys, cluster))
        counted = weight is not None and task.counts
        if weight is not None and counted:
            order = np.repeat(order, weight[order])
        # Under calibration there is no gap to take off.
        alike = [correlation(problem, cluster, fitted=False) for problem in problems]  # type: ignore[arg-type]
        return cls(order, cluster[order], counted, float(np.mean(alike)), int(rng.integers(2**63)), size)

    def residuals(self, problem: ScoreData, steps: Residuals, below: Array) -> Iterator[Array]:
        """Yield residuals (sets, steps) of a problem in parts; see `turned`.

        Parameters
        ----------
        below : array
            Where the part of the problem begins for each row of `order`.
        """
        from scipy.sparse import csr_array

        score, _, weight = (part[self.order] for part in np.broadcast_arrays(*next(problem.rows())))
        weight = np.ones(weight.size) if self.counted else weight
        scaled = weight * (steps.mass.sum() / weight.sum())
        place = steps_of(score, scaled, steps), np.arange(score.size)
        each = csr_array((scaled, place), shape=(steps.mass.size, score.size))
        low, high = below[:, None], (below + score)[:, None]
        for number in self._numbers():
            yield (each @ (((number >= low) & (number < high)) - score[:, None])).T

    def _numbers(self) -> Iterator[Array]:
        """Yield a number for each row (rows, sets), in parts."""
        again, few = np.random.default_rng(self.seed), max(1, min(AT_ONCE, SIGNS // self.order.size))
        for a in range(0, self.size, few):
            shape = (self.order.size, min(few, self.size - a))
            own = again.random(shape) >= np.sqrt(self.correlation)
            shared = again.random((int(self.cluster.max()) + 1, shape[1]))[self.cluster]
            yield np.where(own, again.random(shape), shared)


def _columns(task: CalibrationTask) -> list[int]:
    """Return the problems of a question in an order of their own, whatever order the columns came in."""
    return by_name(task.labels) if task.notion.classwise else [0]


def steps_of(score: Array, weight: Array, steps: Residuals) -> Array:
    """Return the step of each score."""
    # Steps are cells of scores, or neighbouring ones joined: the middle of a cell's mass tells which.
    cell = cells_of(score)
    mass = np.bincount(cell, weight)
    ends = np.cumsum(steps.mass) * (mass.sum() / steps.mass.sum())
    step = np.minimum(np.searchsorted(ends, np.cumsum(mass) - mass / 2), ends.size - 1)
    return np.asarray(step[cell])


def turned(
    problem: ScoreData,
    cluster: Array,
    steps: Residuals,
    signs: Callable[[], Iterable[Array]],
) -> Iterator[Array]:
    """Yield the residuals of data sets with signs turned, (sets, steps), in parts.

    Parameters
    ----------
    problem : Evidence
        The rows.
    cluster : array
        The cluster of each row.
    steps : Residuals
        Of these rows, perhaps with neighbours joined and fewer rows.
    signs : callable
        Yields signs (clusters, sets) in parts.
    """
    from scipy.sparse import csr_array

    score, outcome, weight = next(problem.rows())
    step = steps_of(score, weight, steps)
    scale = float(steps.mass.sum() / weight.sum())
    shape = (steps.mass.size, int(cluster.max()) + 1)
    each = csr_array((scale * weight * (outcome - score), (step, cluster)), shape=shape)
    for part in signs():
        yield (each @ part).T


def _signs(clusters: int, rng: np.random.Generator, size: int) -> Callable[[], Iterable[Array]]:
    """Return how to draw signs (clusters, sets) in parts; each time the same.

    Of few clusters all there are, but for that of the data themselves, in random order: no more than 511.
    """
    if clusters < FEWEST:
        pattern = rng.permutation(np.arange(1, 2**clusters))
        every = 1.0 - 2.0 * ((pattern >> np.arange(clusters)[:, None]) & 1)
        return lambda: [every]
    seed = int(rng.integers(2**63))
    few = max(1, min(AT_ONCE, SIGNS // clusters))

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
        """Return the rows of a problem, counted rows one by one, whatever order they came in."""
        if max(problem.shape[-1], float(problem.n)) > MOST_ROWS:
            return cls(Cells.of(problem), None)
        if problem.weight is not None and problem.counts:
            problem, cluster = problem.repeated(), np.repeat(cluster, problem.weight)
        # Numbers are drawn row by row: rows get an order of their own.
        score, outcome, weight = np.broadcast_arrays(*next(problem.rows()))
        order = np.lexsort((weight, outcome, score, cluster))
        own = None if problem.weight is None else problem.weight[order]
        rows = problem.score[order], problem.outcome[order], own
        return cls(Sample(*rows, problem.support, problem.counts), cluster[order])

    @cached_property
    def correlation(self) -> float:
        """Of two rows of a cluster, as a share of the largest that their probabilities allow."""
        return 0.0 if self.cluster is None else correlation(self.evidence, self.cluster)

    def simulate_outcomes(
        self, probability: Callable[[Array], Array], rng: np.random.Generator, size: int
    ) -> Any:
        """Draw `size` samples of the same scores with outcomes drawn from `probability(score)`.

        A row takes the number of its cluster, or else one of its own, and is positive where that is
        below its probability: two rows of a cluster correlate as they should.
        """
        if self.cluster is None:
            return self.evidence.simulate_outcomes(probability, rng, size)
        rows = self.evidence
        shape = (size, rows.shape[-1])
        outcomes = []
        for chance in each_chance(probability(rows.score), rows.shape[-1]):
            number, own = rng.random(shape), rng.random(shape) >= np.sqrt(self.correlation)
            shared = rng.random((size, int(self.cluster.max()) + 1))[:, self.cluster]
            outcomes.append(np.where(own, number, shared) < chance)
        return replace(rows, outcome=np.concatenate(outcomes))

"""Interval and test for clustered rows.

Under H0 outcomes are simulated from the scores, with the intraclass correlation of the data. With fewer
than ten clusters, with very many rows, or with sums instead of rows, the signs of the residuals of whole
clusters are flipped instead. Sign flips need no estimate of the correlation, but they only contain the
outcomes that were observed, which are few at extreme scores.

The interval is computed at the effective sample size, n / design effect. Few clusters determine the variation
between clusters poorly, so the tails of the interval are those of a t distribution.

The method is described in docs/methods/clusters.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant.estimators.base import Norm
from calibrant.inference.classes import joint
from calibrant.inference.joint_labels import problem_order
from calibrant.inference.null import AT_ONCE, DATA_SETS, STEPS, SimulatedNull, simulate_test
from calibrant.parallel import cached_property
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
from calibrant.score_data.cluster_sums import BINS
from calibrant.score_data.clusters import cells_of, correlation
from calibrant.score_data.draws import broadcast_probability
from calibrant.tasks import CalibrationTask

# Random numbers drawn at once.
AT_ONCE_NUMBERS = 1 << 22
# Largest number of rows for which correlated outcomes of named estimators are drawn row by row.
MOST_ROWS = 1 << 17
# Correlated outcomes are simulated under H0 up to this many outcomes, which bounds the cost; with more, signs
# are flipped. Data sets beyond the default number do not count, so that `n_resamples` does not change the
# method.
MOST_DRAWN = 1 << 27
# Clusters from which outcomes are simulated under H0; below, signs are flipped.
MIN_CLUSTERS = 10
# Rows whose signs are flipped, which bounds the cost.
MOST_FLIPPED = 1 << 14


@dataclass(frozen=True, eq=False)
class ClusteredNull:
    """The calibration test of clustered data.

    Attributes
    ----------
    single_class : list of SimulatedNull
        Test of each problem.
    all_classes : SimulatedNull
        Test of all problems together, with labels drawn jointly.
    """

    single_class: list[SimulatedNull]
    all_classes: SimulatedNull

    @classmethod
    def of(cls, task: CalibrationTask, norm: Norm, rng: np.random.Generator, size: int) -> ClusteredNull:
        """Simulate `size` data sets under H0, jointly for all problems."""
        cluster, sums, by_problem, clusters = task.cluster, task.cluster_sums, task.designs, task.clusters
        assert clusters is not None
        assert by_problem is not None
        columns = problem_order(task).tolist()
        problems, designs = [task.problems[k] for k in columns], [by_problem[k] for k in columns]
        signs = _cluster_signs(clusters, rng, size)
        # If all signs are equal, the statistic is the observed one, which rounding must not change.
        all_equal = np.concatenate([np.abs(block.sum(axis=0)) == clusters for block in signs()])

        def tied(null: SimulatedNull) -> SimulatedNull:
            if draws is not None:
                return null
            test_statistic = np.where(all_equal, null.observed, null.test_statistic)
            return replace(null, test_statistic=test_statistic, exhaustive=clusters < MIN_CLUSTERS)

        draws = None if cluster is None else CorrelatedLabels.of(task, rng, size)
        lower: Array = np.zeros(1)
        # Problems that are tested together have the same number of cells.
        mean_effect = float(np.mean([design.symmetric for design in designs]))
        single_class, observed, coefficients = [], [], []
        for k, problem, design in zip(columns, problems, designs, strict=True):
            thinning, most_cells = (mean_effect, design.symmetric / mean_effect), STEPS // 2
            if sums is not None:
                steps, by_cluster = sums.steps(problem, k)
                steps, most_cells = steps.thinned(*thinning), BINS // 2
                residuals = _flipped(by_cluster / mean_effect, signs)
            else:
                assert cluster is not None
                steps = across_clusters(Residuals.of(problem), problem, cluster)
                steps = steps.thinned(*thinning).coarser(STEPS)
                residuals = sign_flip_null(problem, cluster, steps, signs)
            cells = min(int(n_cells(steps.flat.n)[0]), most_cells)
            if draws is not None:
                low = np.broadcast_to(lower, draws.order.shape)
                residuals = draws.residuals(problem, steps, low)
                lower = low + next(problem.rows())[0][draws.order]
            each = simulate_test(steps, residuals, norm, cells, keep=len(problems) > 1)
            single_class.append(tied(each.simulated))
            observed.append(each.observed)
            coefficients.append(each.z)
        if len(problems) == 1:
            return cls(single_class, single_class[0])
        blocks = [(len(block[0]), block.__getitem__) for block in zip(*coefficients, strict=True)]
        all_classes = joint(Posterior.joined(observed).without_score_effects, blocks, norm)
        return cls([single_class[k] for k in np.argsort(columns)], tied(all_classes))


@dataclass(frozen=True, eq=False)
class CorrelatedLabels:
    """Labels simulated under H0 with the intraclass correlation of the data.

    [0, 1] is divided into intervals, one for each problem, as wide as its score. Each row has a uniform
    number, and the problem in whose interval it falls has the outcome. With probability sqrt(rho) a row takes
    the uniform number of its cluster, otherwise one of its own, so that two rows of a cluster share it with
    probability rho.

    Attributes
    ----------
    order : array
        Row numbers, sorted by cluster and data; rows with counts are repeated.
    cluster : array
        Cluster of each of these rows.
    counted : bool
        Whether weights are counts.
    correlation : float
        Intraclass correlation rho: the covariance of two residuals of a cluster, as a share of the largest
        that their probabilities allow.
    seed, size : int
        Seed and number of the simulated data sets, the same for every problem.
    """

    order: Array
    cluster: Array
    counted: bool
    correlation: float
    seed: int
    size: int

    @classmethod
    def of(cls, task: CalibrationTask, rng: np.random.Generator, size: int) -> CorrelatedLabels | None:
        """Return the simulation of a calibration task; None with too few clusters or too many rows."""
        cluster, weight, problems = task.cluster, task.weight, task.problems
        assert cluster is not None
        if cluster.max() + 1 < MIN_CLUSTERS or max(task.n, cluster.size) * min(size, DATA_SETS) > MOST_DRAWN:
            return None
        keys = []
        for k in reversed(problem_order(task).tolist()):
            score, outcome, row_weight = np.broadcast_arrays(*next(problems[k].rows()))
            keys += [outcome, score]
        order = np.lexsort((row_weight, *keys, cluster))
        counted = weight is not None and task.counts
        if weight is not None and counted:
            order = np.repeat(order, weight[order])
        # Under H0 there is no gap to subtract from the residuals.
        correlations = [correlation(problem, cluster, fitted=False) for problem in problems]  # type: ignore[arg-type]
        return cls(
            order, cluster[order], counted, float(np.mean(correlations)), int(rng.integers(2**63)), size
        )

    def residuals(self, problem: ScoreData, steps: Residuals, below: Array) -> Iterator[Array]:
        """Yield residuals (data sets, steps) of a problem in parts, as `sign_flip_null` does.

        Parameters
        ----------
        problem : ScoreData
            The rows.
        steps : Residuals
            Residuals of these rows, possibly with merged scores and a smaller sample size.
        below : array
            Lower end of the interval of the problem, for each row of `order`.
        """
        from scipy.sparse import csr_array

        score, _, weight = (block[self.order] for block in np.broadcast_arrays(*next(problem.rows())))
        weight = np.ones(weight.size) if self.counted else weight
        scaled = weight * (steps.mass.sum() / weight.sum())
        position = steps_of(score, scaled, steps), np.arange(score.size)
        sum_by_step = csr_array((scaled, position), shape=(steps.mass.size, score.size))
        low, high = below[:, None], (below + score)[:, None]
        for uniform in self._uniform_numbers():
            yield (sum_by_step @ (((uniform >= low) & (uniform < high)) - score[:, None])).T

    def _uniform_numbers(self) -> Iterator[Array]:
        """Yield the uniform number of each row (rows, data sets), in parts."""
        rng, step = np.random.default_rng(self.seed), max(1, min(AT_ONCE, AT_ONCE_NUMBERS // self.order.size))
        for a in range(0, self.size, step):
            shape = (self.order.size, min(step, self.size - a))
            independent = rng.random(shape) >= np.sqrt(self.correlation)
            shared = rng.random((int(self.cluster.max()) + 1, shape[1]))[self.cluster]
            yield np.where(independent, rng.random(shape), shared)


def steps_of(score: Array, weight: Array, steps: Residuals) -> Array:
    """Return the step of each score."""
    # A step is one cell of scores or several merged ones; the middle of the mass of a cell determines its
    # step.
    cell = cells_of(score)
    mass = np.bincount(cell, weight)
    ends = np.cumsum(steps.mass) * (mass.sum() / steps.mass.sum())
    step = np.minimum(np.searchsorted(ends, np.cumsum(mass) - mass / 2), ends.size - 1)
    return np.asarray(step[cell])


def sign_flip_null(
    problem: ScoreData,
    cluster: Array,
    steps: Residuals,
    signs: Callable[[], Iterable[Array]],
) -> Iterator[Array]:
    """Yield the residuals (data sets, steps) of data sets with flipped cluster signs, in parts.

    Parameters
    ----------
    problem : ScoreData
        The rows.
    cluster : array
        Cluster of each row.
    steps : Residuals
        Residuals of these rows, possibly with merged scores and a smaller sample size.
    signs : callable
        Yields signs (clusters, data sets) in parts.
    """
    from scipy.sparse import csr_array

    score, outcome, weight = next(problem.rows())
    step = steps_of(score, weight, steps)
    scale = float(steps.mass.sum() / weight.sum())
    shape = (steps.mass.size, int(cluster.max()) + 1)
    by_step = csr_array((scale * weight * (outcome - score), (step, cluster)), shape=shape)
    yield from _flipped(by_step, signs)


def _flipped(by_cluster: Any, signs: Callable[[], Iterable[Array]]) -> Iterator[Array]:
    """Yield residuals (data sets, steps) with flipped signs, from those of each cluster (steps, clusters)."""
    for block in signs():
        yield (by_cluster @ block).T


def flipped_rows(
    problems: Sequence[Any], rng: np.random.Generator, size: int
) -> list[tuple[Residuals, Iterator[Array]]]:
    """Return residuals of each problem, and residuals of data sets with flipped signs of the rows.

    All residuals of a row change their sign together, which keeps the dependence between problems. Rows are
    sorted by content, so that their order does not matter; above `MOST_FLIPPED` a random sample is used.
    """
    rows = [np.broadcast_arrays(*next(problem.rows())) for problem in problems]
    keys = np.random.default_rng(0).random((2, len(rows)))
    content = sum(a * score + b * outcome for a, b, (score, outcome, _) in zip(*keys, rows, strict=True))
    order = np.argsort(content, kind="stable")
    if len(order) > MOST_FLIPPED:
        order = order[np.sort(rng.choice(len(order), MOST_FLIPPED, replace=False))]
    signs, single = _cluster_signs(len(order), rng, size), np.arange(len(order))
    nulls = []
    for problem in problems:
        reordered = problem[order]
        steps = Residuals.of(reordered).coarser(STEPS)
        nulls.append((steps, sign_flip_null(reordered, single, steps, signs)))
    return nulls


def _cluster_signs(clusters: int, rng: np.random.Generator, size: int) -> Callable[[], Iterable[Array]]:
    """Return a function that yields signs (clusters, data sets) in parts, the same at each call.

    With fewer than `MIN_CLUSTERS` clusters all patterns except the observed one are enumerated in
    random order; these are at most 511.
    """
    if clusters < MIN_CLUSTERS:
        pattern = rng.permutation(np.arange(1, 2**clusters))
        patterns = 1.0 - 2.0 * ((pattern >> np.arange(clusters)[:, None]) & 1)
        return lambda: [patterns]
    seed = int(rng.integers(2**63))
    step = max(1, min(AT_ONCE, AT_ONCE_NUMBERS // clusters))

    def blocks() -> Iterator[Array]:
        same_rng = np.random.default_rng(seed)
        for a in range(0, size, step):
            yield 2.0 * same_rng.integers(0, 2, (clusters, min(step, size - a)), dtype=np.int8) - 1.0

    return blocks


def by_cluster(
    contribution: Array, cluster: Array, weight: Array | None = None, size: int | None = None
) -> Array:
    """Return the sum over each of `size` clusters of the centred contributions of its rows to an error.

    >>> by_cluster(np.array([1.0, 3.0, 2.0]), np.array([0, 0, 1]))
    array([0., 0.])
    """
    w = np.ones(len(contribution)) if weight is None else weight
    centred = (w / w.sum())[:, None] * (
        contribution.reshape(len(contribution), -1) - np.average(contribution, axis=0, weights=w)
    )
    sums = np.stack([np.bincount(cluster, column, size or 0) for column in centred.T], axis=1)
    return sums.reshape(-1, *contribution.shape[1:])


@dataclass(frozen=True, eq=False)
class CorrelatedRows:
    """Rows whose outcomes are simulated with the intraclass correlation of the data.

    Attributes
    ----------
    score_data : ScoreData
        The rows; above `MOST_ROWS` rows, sums over cells.
    cluster : array or None
        Cluster of each row; None for cells, whose outcomes are simulated as independent.
    """

    score_data: Any
    cluster: Array | None

    @classmethod
    def of(cls, problem: Any, cluster: Array) -> Any:
        """Return the rows of a problem in sorted order; rows with counts are repeated."""
        if max(problem.shape[-1], float(problem.n)) > MOST_ROWS:
            return cls(Cells.of(problem), None)
        if problem.weight is not None and problem.counts:
            problem, cluster = problem.repeated(), np.repeat(cluster, problem.weight)
        # Uniform numbers are drawn row by row; sorting makes the result independent of the row order.
        score, outcome, weight = np.broadcast_arrays(*next(problem.rows()))
        order = np.lexsort((weight, outcome, score, cluster))
        weights = None if problem.weight is None else problem.weight[order]
        rows = problem.score[order], problem.outcome[order], weights
        return cls(Sample(*rows, problem.support, problem.counts), cluster[order])

    @cached_property
    def correlation(self) -> float:
        """Intraclass correlation, as a share of the largest that the probabilities allow."""
        return 0.0 if self.cluster is None else correlation(self.score_data, self.cluster)

    def simulate_outcomes(
        self, probability: Callable[[Array], Array], rng: np.random.Generator, size: int
    ) -> Any:
        """Simulate `size` samples with the same scores, with outcomes drawn from `probability(score)`.

        A row is positive if its uniform number is below its probability. With probability sqrt(correlation)
        it takes the uniform number of its cluster, otherwise one of its own.
        """
        if self.cluster is None:
            return self.score_data.simulate_outcomes(probability, rng, size)
        rows = self.score_data
        shape = (size, rows.shape[-1])
        outcomes = []
        for outcome_probability in broadcast_probability(probability(rows.score), rows.shape[-1]):
            uniform, independent = rng.random(shape), rng.random(shape) >= np.sqrt(self.correlation)
            shared = rng.random((size, int(self.cluster.max()) + 1))[:, self.cluster]
            outcomes.append(np.where(independent, uniform, shared) < outcome_probability)
        return replace(rows, outcome=np.concatenate(outcomes))

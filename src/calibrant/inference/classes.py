"""Test and interval for the classwise notion, computed for a few classes at a time.

With many classes each has few outcomes, so few cells are enough. The mean over the classes averages the
simulation noise, so few simulated data sets are enough. Only sums over the classes are kept in memory.

A row has one label. The covariance of the outcomes of its classes, diag(p) - p p', is therefore at most twice
its own diagonal, whatever the scores: for each class the absolute covariances with the other classes sum to
its variance (Gershgorin). The same holds for the cosine coefficients of all classes, which are orthonormal
combinations of standardised residuals. If rows are not available, the standard deviation of a mean over
classes is therefore at most sqrt(2) times that of independent classes.

The methods are described in docs/methods/confidence-intervals.md and docs/methods/calibration-test.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from calibrant.estimators.base import TOGETHER, Norm
from calibrant.inference.interval import (
    Simulation,
    SimulationGrid,
    bias_correction,
    draw_shapes,
    group_by_kind,
    invert,
    max_attainable_error,
    scale_to_error,
    scale_to_unit_error,
    score_sampling_sd,
    stack_classes,
    stop_early,
    streams,
    true_error,
    widened,
)
from calibrant.inference.multiplicity import refine_tests
from calibrant.inference.null import DATA_SETS, ProblemTest, SimulatedNull, rank, simulate_test
from calibrant.parallel import compute_once, parallel_map
from calibrant.posterior.gap import Posterior, Terms, cells_of, pool_classes, posterior_of
from calibrant.posterior.variance_time import CELLS, n_cells
from calibrant.score_data import Array, Residuals, ScoreData
from calibrant.score_data.draws import Outcomes
from calibrant.settings import TEST
from calibrant.tasks import CalibrationTask, ClassRelation
from calibrant.tasks.notions import combined

# Largest number of steps (distinct scores) of a class that outcomes are drawn for, and of coefficients
# simulated for each true error of the interval. They bound the cost.
STEPS, MAX_COEFFICIENTS = 512, 1 << 23
# Coefficients of a true error that take little time, and most data sets that are simulated for them.
CHEAP_COEFFICIENTS, MOST_DATA_SETS = 1 << 17, 500
# Coefficients simulated together, so that they stay in the processor's cache.
COEFFICIENTS_AT_ONCE = 1 << 17
# Largest ratio of the standard deviation of a mean over classes to that of independent classes.
MAX_DEPENDENCE = float(np.sqrt(2))
# Many classes: data sets simulated under H0, and cells of the periodogram of a class, which bound the cost.
MANY_CLASS_DATA_SETS, MANY_CLASS_BAND_CELLS = 199, 256
# Orders in which the data sets of classes that are simulated independently are added up.
PERMUTATIONS = 5
# Largest number and share of the tests of classes that are repeated with more data sets.
MAX_REPEATED, MAX_REPEATED_SHARE = 50, 0.2
# Data sets simulated for each true error of the error over all classes.
CLASSWISE_DATA_SETS = 100


@dataclass(frozen=True, eq=False)
class Classes:
    """Posteriors and residuals of many classes.

    Attributes
    ----------
    posterior : Posterior
        Posterior that the estimate is computed from, as with few classes.
    coarse : Posterior
        The same over the cells that are simulated.
    plain : Posterior
        Posterior over these cells with the variance under H0, for the test.
    steps : list of Residuals
        Residuals of each class at no more than `STEPS` steps.
    shares : array (classes,) or None
        Share of each class in the mean over the classes, unless they are equal.
    """

    posterior: Posterior
    coarse: Posterior
    plain: Posterior
    steps: list[Residuals]
    shares: Array | None = None

    @classmethod
    def of(cls, task: CalibrationTask) -> Classes:
        """Compute the posteriors class by class, without holding the residuals of all classes.

        The posterior is stored for `posterior_of`, too.
        """
        fine, plain, steps = [], [], []
        for posterior_part, plain_part, residuals in _posteriors(task):
            fine.append(posterior_part)
            plain.append(replace(plain_part, classes=task.notion.classes))
            steps += residuals
        posterior = replace(Posterior.joined(fine), classes=task.notion.classes)
        posterior_of.store(task, posterior)
        variance = [float((each.spread * each.score * (1 - each.score)).sum()) for each in steps]
        cells = simulated_cells(float(np.mean(variance)), len(steps))
        all_plain = Posterior.joined(plain)
        # Jointly drawn labels give cosine coefficients, without residuals at single scores.
        coarse_plain = all_plain.coarser(cells).without_score_effects
        return cls(posterior, posterior.coarser(cells), coarse_plain, steps, task.shares)


def _posteriors(task: CalibrationTask) -> Iterator[tuple[Posterior, Posterior, list[Residuals]]]:
    """Yield posterior, posterior with the variance under H0, and residuals of a few classes at a time."""

    common = None
    if task.shares is not None:
        common = cells_of(task, (np.array([block.n[0]]) for block in task.blocks))

    def compute(indices: ScoreData) -> tuple[Posterior, Posterior, list[Residuals]]:
        flat = Residuals.of(indices, ties=False).flat
        cells = int(n_cells(flat.n)[0]) if common is None else common
        steps = [flat[k].coarser(STEPS) for k in range(len(flat.mass))]
        return Posterior.of_residuals(flat, cells), Posterior.of_residuals(flat, cells, plain=True), steps

    for block in task.blocks:
        cache_sized_blocks = [block[first : first + TOGETHER] for first in range(0, block.batch[0], TOGETHER)]
        yield from parallel_map(compute, cache_sized_blocks)


def simulated_cells(variance: float, classes: int) -> int:
    """Return the number of cells to simulate for classes with this sum of outcome variances on average.

    It is the number of cells for as many rows with score 1/2, each with variance 1/4.

    >>> simulated_cells(50.0, 1000), simulated_cells(1e5, 100), simulated_cells(1e5, 1000)
    (64, 512, 64)
    """
    affordable = 2 ** int(np.log2(max(MAX_COEFFICIENTS // (CLASSWISE_DATA_SETS * classes), 1)))
    return int(min(n_cells(np.array(4 * variance + CELLS)), max(CELLS, affordable)))


class Nulls(NamedTuple):
    """The calibration tests of the classwise notion.

    Attributes
    ----------
    single_class : list of callables
        Test of each class, computed when it is called.
    all_classes : SimulatedNull
        Test of all classes together, and null distribution of the combined estimate.
    p_value, p_floor : float
        p-value of all classes together, and its smallest possible value.
    """

    single_class: list[Callable[[], SimulatedNull]]
    all_classes: SimulatedNull
    p_value: float
    p_floor: float


def joint(
    plain: Posterior,
    parts: Iterable[tuple[int, Callable[[int], Array]]],
    norm: Norm,
    step: Callable[[], object] = lambda: None,
) -> SimulatedNull:
    """Test all classes together, with labels simulated jointly.

    The test combines the Bayes factor of the pooled classes and the largest Bayes factor of a single class.

    Parameters
    ----------
    plain : Posterior
        Posterior of each class, with the variance under H0.
    parts : iterable of (number of data sets, callable)
        Data sets simulated under H0; the callable returns the cosine coefficients (data sets, cells) of a
        class. The estimates are computed for the first part only.
    norm : str
        Norm of the estimates.
    step : callable
        Called after each class of the first part.
    """
    classes, cells = plain.z.shape
    pooled, largest = [], []
    errors: list[Array] = []
    for sets, coefficients in parts:
        error_norm = None if errors else norm

        def sums_of_classes(
            indices: slice, sets: int = sets, coefficients: Any = coefficients, error_norm: Any = error_norm
        ) -> _ClassSums:
            z = np.concatenate([coefficients(k) for k in range(classes)[indices]])
            return _ClassSums.of(plain[indices].with_data(z), error_norm, sets)

        sums, cache_sized_blocks = _RunningSums(sets, plain.classes), _slices(classes, sets * cells)
        for indices, added in zip(
            cache_sized_blocks, parallel_map(sums_of_classes, cache_sized_blocks), strict=True
        ):
            sums.add(added)
            for _ in range(classes)[slice(0) if errors else indices]:
                step()
        pooled.append(sums.log_bayes_factor(cells, classes))
        largest.append(sums.max_log_bayes_factor)
        if not errors:
            errors.append(sums.error(cells, classes, norm))
    observed = _RunningSums(1, plain.classes)
    observed.add(_ClassSums.of(plain, None))
    pooled_rank = rank(np.concatenate([*pooled, observed.log_bayes_factor(cells, classes)]))
    largest_rank = rank(np.concatenate([*largest, observed.max_log_bayes_factor]))
    share = TEST.pooled_classes_share
    combined_statistic = -np.minimum(pooled_rank / share, largest_rank / (1 - share))
    return SimulatedNull(combined_statistic[:-1], errors[0], float(combined_statistic[-1]))


def independent(
    single_class: SingleClassTests, norm: Norm, step: Callable[[], object], dependence: float
) -> Nulls:
    """Test all classes together with classes that are simulated independently.

    Their sums are spread by `dependence`, the ratio of the standard deviation of a mean over classes to that
    of independent classes. With its largest possible value the test is conservative.
    """
    (n_classes, cells), sets = single_class.coarse.z.shape, MANY_CLASS_DATA_SETS
    kind, class_shares = single_class.coarse.classes, single_class.shares
    observed, sums, bayes_factors = _RunningSums(1, kind), _RunningSums(sets * PERMUTATIONS, kind), []
    drawn = parallel_map(single_class.draw, range(n_classes))
    for k, (test, rng) in enumerate(zip(drawn, single_class.rngs, strict=True)):
        single_class.first.append(test.simulated)
        class_share = None if class_shares is None else class_shares[k : k + 1] * n_classes
        observed.add(_ClassSums.of(replace(test.observed, classes=kind).weighted(class_share), norm))
        bayes_factors.append(test.first.log_bayes_factor)
        order = np.concatenate([rng.permutation(sets) for _ in range(PERMUTATIONS)])
        sums.add(_ClassSums.of(replace(test.first, classes=kind).weighted(class_share), norm, sets), order)
        step()
    sums.widen(dependence)
    pooled = np.append(sums.log_bayes_factor(cells, n_classes), observed.log_bayes_factor(cells, n_classes))
    # Expected number of classes with a larger Bayes factor under H0: a bound under any dependence.
    exceeding = np.count_nonzero(
        np.concatenate(bayes_factors)
        >= observed.max_log_bayes_factor[0] - 1e-12 * abs(observed.max_log_bayes_factor[0])
    )
    largest_p, share = (1 + exceeding) / (1 + sets), TEST.pooled_classes_share
    p_value = min(1.0, float(rank(pooled)[-1]) / share, largest_p / (1 - share))
    all_classes = SimulatedNull(pooled[:-1], sums.error(cells, n_classes, norm), float(pooled[-1]))
    return Nulls(single_class.each, all_classes, p_value, all_classes.p_floor / share)


@dataclass(eq=False)
class SingleClassTests:
    """Tests of each class by itself, simulated when the first of them is called.

    Attributes
    ----------
    coarse : Posterior
        Posteriors of the classes on the cells that are simulated.
    steps : list of Residuals
        Residuals of each class.
    shares : array (classes,) or None
        Share of each class in the mean over the classes, unless they are equal.
    norm : str
        Norm of the estimates.
    rngs : list of Generator
        Generator of each class.
    alpha : float
        Level of the test with adjusted p-values.
    n_resamples : int, optional
        Data sets simulated for each class with a small p-value; by default enough to reject these.
    first : list of SimulatedNull
        Tests that are already computed: those of every class, or none.
    """

    coarse: Posterior
    steps: list[Residuals]
    shares: Array | None
    norm: Norm
    rngs: list[np.random.Generator]
    alpha: float
    n_resamples: int | None
    first: list[SimulatedNull] = field(default_factory=list)

    def __post_init__(self) -> None:
        # Several threads may call the tests in any order; each generator must be used once.
        self._all = compute_once(self._simulate)

    def draw(self, k: int, sets: int | None = None) -> ProblemTest:
        """Test one class; by default with the number of data sets of many classes."""
        steps = self.steps[k]
        blocks = Outcomes.of(steps).blocks(self.rngs[k], sets or MANY_CLASS_DATA_SETS)
        return simulate_test(steps, blocks, self.norm, self.coarse.z.shape[-1], MANY_CLASS_BAND_CELLS)

    @property
    def each(self) -> list[Callable[[], SimulatedNull]]:
        """Functions that return the test of each class."""
        return [lambda k=k: self._all()[k] for k in range(len(self.steps))]  # type: ignore[misc]

    def _simulate(self) -> list[SimulatedNull]:
        """Test all classes, and repeat tests with small p-values with more data sets.

        More data sets allow smaller p-values. At most `MAX_REPEATED` tests, or `MAX_REPEATED_SHARE` of
        them, are repeated.
        """
        indices = range(len(self.steps))
        single_class = self.first or list(parallel_map(lambda k: self.draw(k).simulated, indices))
        p_values = np.array([simulation.p_value for simulation in single_class])
        n_repeated = max(MAX_REPEATED, int(MAX_REPEATED_SHARE * len(single_class)))
        order = np.lexsort((-self.coarse.log_bayes_factor, p_values))[:n_repeated]
        repeated = refine_tests(
            {k: single_class[k] for k in order.tolist()},
            lambda each: each.p_value,
            lambda k, size: self.draw(k, self.n_resamples or size).simulated,
            tests=len(single_class),
            alpha=self.alpha,
            size=MANY_CLASS_DATA_SETS,
            least=DATA_SETS,
        )
        return [repeated.get(k, each) for k, each in enumerate(single_class)]


def _slices(classes: int, size: int) -> list[slice]:
    """Return slices of classes that are simulated together, from the number of coefficients of a class."""
    step = max(1, COEFFICIENTS_AT_ONCE // size)
    return [slice(first, min(first + step, classes)) for first in range(0, classes, step)]


class _ClassSums(NamedTuple):
    """Sums over a few classes."""

    terms: Terms
    max_log_bayes_factor: Array

    @classmethod
    def of(cls, posterior: Posterior, norm: Norm | None, sets: int = 1) -> _ClassSums:
        """Sum over the classes; the rows of the posterior are `sets` data sets of each class in turn."""
        terms = (term.reshape(-1, sets, *term.shape[1:]).sum(axis=0) for term in posterior.terms(norm))
        return cls(Terms(*terms), posterior.log_bayes_factor.reshape(-1, sets).max(axis=0))


class _RunningSums:
    """Sums over all classes, and the largest Bayes factor, of each simulated data set."""

    def __init__(self, sets: int, kind: ClassRelation) -> None:
        self.kind = kind
        self.terms = Terms(np.zeros((sets, 1)), np.zeros((sets, 1)), *np.zeros((3, sets)))
        self.max_log_bayes_factor = np.full(sets, -np.inf)

    def add(self, added: _ClassSums, order: Array | None = None) -> None:
        """Add classes; `order` permutes their data sets, and may repeat them."""
        terms, max_log_bayes_factor = added
        if order is not None:
            terms, max_log_bayes_factor = Terms(*(term[order] for term in terms)), max_log_bayes_factor[order]
        self.terms = Terms(*(total + term for total, term in zip(self.terms, terms, strict=True)))
        self.max_log_bayes_factor = np.maximum(self.max_log_bayes_factor, max_log_bayes_factor)

    def widen(self, factor: float) -> None:
        """Multiply the deviations of the data sets from their mean by a factor."""
        centre = (term.mean(axis=0) for term in self.terms)
        widened_terms = (m + factor * (term - m) for m, term in zip(centre, self.terms, strict=True))
        shape, offset, single_class, smooth, unpooled = widened_terms
        self.terms = Terms(shape, offset, single_class, np.maximum(smooth, 0.0), np.maximum(unpooled, 0.0))

    def log_bayes_factor(self, cells: int, classes: int) -> Array:
        """Return the log Bayes factor of any gap against no gap, for the pooled classes."""
        return pool_classes(self.terms, cells, classes, self.kind).log_bayes_factor

    def error(self, cells: int, classes: int, norm: Norm, *, shared: bool = True) -> Array:
        """Return the combined error of each data set, with pooled or unpooled classes."""
        value = self.terms.unpooled / classes
        if shared:
            pooled = pool_classes(self.terms, cells, classes, self.kind)
            value = pooled.average(self.terms.smooth / classes, value)
        return np.minimum(value if norm == "l1" else np.sqrt(value), 1.0)


def interval(
    posterior: Posterior,
    n: float,
    order: Sequence[int],
    *,
    norm: Norm,
    level: float,
    spread: float,
    shared: bool,
) -> tuple[float, float]:
    """Return an interval for the error over all classes; see `calibrant.inference.interval` for one problem.

    Parameters
    ----------
    posterior : Posterior
        Posterior of each class, over the cells that are simulated.
    n : float
        Effective sample size.
    order : sequence of int
        The classes in the order of `problem_order`.
    norm : str
        "l1" or "l2".
    level : float
        Confidence level.
    spread : float
        Ratio of the standard deviation of the mean over classes to that of independent classes.
    shared : bool
        Whether classes are pooled.
    """
    classes, cells = posterior.z.shape
    observed = _RunningSums(1, posterior.classes)
    observed.add(_ClassSums.of(posterior, norm))
    value = float(observed.error(cells, classes, norm, shared=shared)[0])
    correction = bias_correction(posterior, value, norm)
    posterior = posterior.for_simulation()
    common, each_rng = streams(order)
    sets = simulated_data_sets(classes, cells)
    kind, gaps_by_class = draw_shapes(posterior, each_rng, sets)
    standard_normal = [
        rng.standard_normal(each.shape, np.float32) for rng, each in zip(each_rng, gaps_by_class, strict=True)
    ]
    groups = _simulation_groups(posterior, sets)
    grids = [SimulationGrid.of(posterior[indices]) for indices in groups]
    noise, gaps = (
        [np.stack([each[k] for k in indices]) if len(indices) > 1 else each[indices[0]] for indices in groups]
        for each in (standard_normal, gaps_by_class)
    )
    del standard_normal, gaps_by_class
    gap = [each.astype(np.float32, order="C") for each in scale_to_unit_error(gaps, grids, norm)]
    max_error = max_attainable_error(grids, gap, norm)
    sampling_noise = common.standard_normal(sets)

    def simulate(true: float) -> Simulation:
        factor = scale_to_error(true, gap, grids, norm)

        def simulated(i: int) -> tuple[Array, Array, _ClassSums]:
            sim_grid = grids[i]
            scaled = sim_grid.possible(gap[i], factor)
            own_error = true_error(scaled, sim_grid.mass, norm)
            z, residual = sim_grid.data(scaled, noise[i])
            data = sim_grid.posterior.with_data(z, () if residual is None else (residual,))
            return (
                own_error,
                score_sampling_sd(scaled, sim_grid.mass, own_error, norm, n),
                _ClassSums.of(data, norm, sets),
            )

        sums, each_error, sampling_sds = _RunningSums(sets, posterior.classes), [], []
        for own_error, sampling_sd, added in parallel_map(simulated, range(len(grids))):
            sums.add(added)
            each_error.append(own_error)
            sampling_sds.append(sampling_sd)
        errors, all_sampling_sds = stack_classes(each_error), stack_classes(sampling_sds)
        true_errors = combined(errors, norm)
        sampling_sd = _max_score_sampling_sd(
            errors, all_sampling_sds, true_errors, norm, n, posterior.classes
        )
        score_shift = sampling_noise * sampling_sd
        estimate = widened(sums.error(cells, classes, norm, shared=shared), spread) + score_shift
        return group_by_kind(true, estimate, max_error >= true, kind, true_errors)

    return invert(stop_early(simulate, value), value, posterior, level, correction)


def simulated_data_sets(classes: int, cells: int) -> int:
    """Return the number of data sets for each true error: more where few coefficients make them cheap.

    With few rows an interval is wide, and so is the noise of its ends.

    >>> simulated_data_sets(3, 32), simulated_data_sets(5, 256), simulated_data_sets(1000, 64)
    (500, 102, 100)
    """
    return max(CLASSWISE_DATA_SETS, min(MOST_DATA_SETS, CHEAP_COEFFICIENTS // (classes * cells)))


def _simulation_groups(posterior: Posterior, sets: int) -> list[Array]:
    """Return the classes that are simulated together; a class over its distinct scores is simulated alone."""
    classes, cells = posterior.z.shape
    single_class = np.array([posterior.discrete(k) or not posterior.mass[k].all() for k in range(classes)])
    others = np.flatnonzero(~single_class)
    cache_sized_blocks = [others[indices] for indices in _slices(others.size, sets * cells)]
    return [*cache_sized_blocks, *np.flatnonzero(single_class)[:, None]]


def _max_score_sampling_sd(
    errors: Array, sampling_sds: Array, true_errors: Array, norm: Norm, n: float, kind: ClassRelation
) -> Array:
    """Return an upper bound of the standard deviation of the error of a sample around the true error.

    It is largest if all classes have their gaps on the same rows. But the absolute gaps of a row sum to at
    most 2 if classes are exclusive, so their mean over the classes varies little. Classes with separate rows
    have the standard deviation of a single problem of all rows.
    """
    classes = errors.shape[-1]
    if kind is ClassRelation.SEPARATE:
        # The mean of gap^2 (of gap^4) over all rows is that over the classes, from their variances.
        power, slope = (1, 1.0) if norm == "l1" else (2, 2 * np.maximum(errors, 1e-12))
        square = (n * (slope * sampling_sds) ** 2 + errors ** (2 * power)).mean(axis=-1)
        spread = np.sqrt(np.maximum(square - true_errors ** (2 * power), 0.0) / n)
        return np.asarray(spread if norm == "l1" else spread / (2 * np.maximum(true_errors, 1e-12)))
    if norm == "l1":
        same_rows = sampling_sds.mean(axis=-1)
        bound = np.sqrt(np.maximum(true_errors * (2 / classes - true_errors), 0.0) / n)
    else:
        same_rows = (errors * sampling_sds).mean(axis=-1) / np.maximum(true_errors, 1e-12)
        bound = np.sqrt(np.maximum(2 / classes - true_errors**2, 0.0) / n) / 2
    return np.minimum(same_rows, bound) if kind is ClassRelation.EXCLUSIVE else np.asarray(same_rows)

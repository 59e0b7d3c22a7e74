"""Confidence interval for the true calibration error, by inversion of the sampling distribution.

For each true error of a grid, data sets are simulated whose calibration gap has this error and a shape drawn
from the posterior. An error belongs to the interval if the observed estimate lies between the tails of the
estimates from the data sets simulated with it. The percentile bootstrap is not used because it never covers
when the model is calibrated. A normal approximation fails for weak signals, where the sampling distribution
of the estimate is skewed.

The method is described in docs/methods/confidence-intervals.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from calibrant.estimators.base import Estimator, Norm
from calibrant.inference.interval_estimate import interval_deviate
from calibrant.inference.null import error
from calibrant.posterior.gap import Points, Posterior
from calibrant.score_data import Array, Cells, Sample, ScoreData
from calibrant.score_data.clusters import DesignEffect, effective_clusters
from calibrant.settings import INTERVAL
from calibrant.tasks import CalibrationTask, ClassRelation
from calibrant.tasks.notions import combined

# Levels at which the ends are computed; other levels are interpolated, so that intervals are nested.
LEVELS = (0.2, 0.5, 0.7, 0.8, 0.85, 0.9, 0.925, 0.95, 0.965, 0.98, 0.99, 0.995, 0.999, 0.9999, 0.999999)
# Iterations that scale a clipped gap to its true error.
SCALING_STEPS = 4
# Largest number of cells, a power of two, which bounds the cost above 65,536 rows; and smallest number of
# data sets for each true error, as fewer would not determine the tails.
MAX_CELLS, MIN_DATA_SETS = 256, 80
# Grid of true errors minus the estimate, and the smallest of them, in standard errors of a mean residual.
GRID_OFFSETS, MIN_GRID_ERROR = (-3.5, -2.0, -0.8, 0.8, 2.0, 3.0, 4.0, 5.5), 0.1
# The grid is extended by this many standard errors plus this share of its largest error, while more than a
# share of the estimates at its end is below the observed one, and unless a step multiplies that share.
EXTENSION_ERRORS, EXTENSION_SHARE, MAX_SHARE_BELOW, MAX_SHARE_GROWTH = 2.0, 0.25, 0.015, 2.0
# Bandwidth of the local line through normal quantiles, kernel width of tail probabilities in standard
# deviations of the estimates, and data sets of a kind that must attain a true error for it to be used there.
QUANTILE_BANDWIDTH, COUNT_WIDTH, MIN_ATTAINED = 0.8, 0.12, 10
# Named estimators: number of shapes of the gap, and data sets simulated along each of them.
NAMED_SHAPES, NAMED_SETS_PER_SHAPE = 10, 10
# Named estimators: rows above which cells are simulated, which bounds the cost.
CELLS_FROM = 4096
# Scores, and estimates, that differ by less are equal up to rounding.
TOLERANCE = 1e-9
# Seed of the interval and key of the first class: the interval is a function of the data.
SEED, KEY = 20210401, 2527968952

# A true error, and the estimates from the data sets simulated with it, for each kind of shape.
Simulation = tuple[float, list[Array]]
# Quantile of estimates from calibrated data that replaces smaller ones for the upper end.
NULL_FLOOR_QUANTILE = 0.03
# Posterior weight below which a kind of shape is left out, and smallest share of the data sets for others, as
# few of them would not determine the tails.
MIN_KIND_WEIGHT, MIN_KIND_SHARE = 0.01, 0.3
# Largest simulated variance of a cell, relative to that of the data.
MAX_VARIANCE_RATIO = 4.0
# Design effects of rows without clusters.
INDEPENDENT = DesignEffect()


def interval(
    posterior: Posterior,
    n: float,
    value: float,
    *,
    norm: Norm,
    level: float,
    spread: float = 1.0,
    drawn: int | None = None,
) -> tuple[float, float]:
    """Return an interval for the true error of one problem.

    Parameters
    ----------
    posterior : Posterior
        Posterior of the gap of this problem.
    n : float
        Effective sample size.
    value : float
        The observed estimate.
    norm : str
        "l1" or "l2".
    level : float
        Confidence level.
    spread : float
        Factor by which simulated estimates are spread around their mean, for design effects and Student's
        tails that the simulation does not contain; see `ClusterAdjustment.tail_inflation`.
    drawn : int
        Number of simulated data sets over the whole grid; by default `INTERVAL.data_sets`.
    """
    drawn = INTERVAL.data_sets if drawn is None else drawn
    full_posterior, posterior = posterior, posterior.coarser(MAX_CELLS).for_simulation()
    grid = error_grid(posterior, value)
    size = max(MIN_DATA_SETS, drawn // len(grid))
    sim_grid = SimulationGrid.of(posterior)
    common, (rng,) = streams()
    kind, gaps = draw_shapes(posterior, [rng], size)
    gaps = scale_to_unit_error(gaps, [sim_grid], norm)
    max_error = sim_grid.max_error(gaps[0], norm)

    def simulate(errors: list[float]) -> list[Simulation]:
        own_errors, score_shifts, data = [], [], []
        for true in errors:
            (gap,) = scaled_to_error(true, gaps, [sim_grid], norm)
            sample_error = true_error(gap, sim_grid.mass, norm)
            sampling_sd, sd = score_sampling_sd(gap, sim_grid.mass, sample_error, norm, n), sim_grid.sd(gap)
            noise, sampling_noise = _stratified_noise(np.sign(gap) * sd, sampling_sd, common, rng, kind)
            own_errors.append(sample_error)
            score_shifts.append(sampling_noise * sampling_sd)
            data.append(sim_grid.data(gap, noise, sd))
        z, residual = zip(*data, strict=True)
        score_residuals = () if residual[0] is None else (np.concatenate(residual),)
        estimates = error(posterior.with_data(np.concatenate(z), score_residuals).terms(norm), norm)
        by_error = estimates.astype(np.float64).reshape(len(errors), size)
        runs = []
        for true, sample_error, score_shift, estimate in zip(
            errors, own_errors, score_shifts, by_error, strict=True
        ):
            estimate = widened(estimate + score_shift, spread)
            runs.append(group_by_kind(true, estimate, max_error >= true, kind, sample_error))
        return runs

    return invert(simulate, value, posterior, level, bias_correction(full_posterior, value, norm))


def widened(estimate: Array, spread: float) -> Array:
    """Multiply the deviations of estimates from their mean by a factor."""
    centre = estimate.mean()
    return np.asarray(centre + spread * (estimate - centre))


def group_by_kind(
    true: float, estimate: Array, attained: Array, kind: Array, sample_error: Array
) -> Simulation:
    """Return the estimates of each kind of shape, from the data sets that attain the true error.

    If too few data sets of every kind attain it, all data sets are used with their mean true error.
    """
    groups = [estimate[attained & (kind == each_kind)] for each_kind in np.unique(kind)]
    any_attained = any(group.size >= MIN_ATTAINED for group in groups)
    return (true, groups) if any_attained else (float(sample_error.mean()), [estimate])


@dataclass(frozen=True, eq=False)
class SimulationGrid:
    """The points at which residuals are simulated: cells of one problem, or its distinct scores if few.

    Several problems over cells share one grid, with a leading axis of problems.

    Attributes
    ----------
    posterior : Posterior
        Posterior of these problems only.
    mass, score : arrays (points,) or (problems, 1, points)
        Share of the rows, and score, at each point.
    noise : array
        Variance of the mean residual at each point for outcomes of variance one, times the squared mass.
    """

    posterior: Posterior
    mass: Array
    score: Array
    noise: Array

    @classmethod
    def of(cls, posterior: Posterior) -> SimulationGrid:
        """Return the grid of the problems; several problems must all be over cells."""
        if len(posterior.z) > 1:
            mass = posterior.mass[:, None]
            return cls(posterior, mass, posterior.score[:, None], mass / posterior.n[:, None, None])
        score, mass, rows = posterior.locations(0)
        return cls(posterior, mass, score, mass**2 / np.maximum(rows, 1e-300))

    def possible(self, gap: Array, factor: Array) -> Array:
        """Scale gaps (..., data sets, points) and clip them so that probabilities stay in [0, 1]."""
        return np.minimum(np.maximum(factor[:, None] * gap, -self.score), 1 - self.score)

    def by_score(self, gap: Array) -> tuple[SimulationGrid, Array]:
        """Return the grid with one point for each score, and the mean gaps (data sets, points) there.

        Rows of a score with much variance can fill several cells; their gap is the mean over these.
        """
        first = first_of_each(self.score)
        mass, noise = (np.add.reduceat(values, first) for values in (self.mass, self.noise))
        score = np.add.reduceat(self.mass * self.score, first) / mass
        mean = np.add.reduceat(self.mass * gap, first, axis=1) / mass
        return replace(self, mass=mass, score=score, noise=noise), mean

    def max_error(self, gap: Array, norm: Norm) -> Array:
        """Return the largest error that gaps with these signs can have."""
        largest_gap = np.where(gap > 0, 1 - self.score, np.where(gap < 0, -self.score, 0.0))
        return true_error(largest_gap, self.mass, norm)

    def sd(self, possible: Array) -> Array:
        """Return the standard deviation of the residuals at each point, as a share of all rows."""
        p = self.score + possible
        variance = p * (1 - p) * self.noise
        if not self.posterior.discrete(0):
            # The variance time assigned a variance of one scale squared to every cell.
            variance = np.minimum(variance, MAX_VARIANCE_RATIO * self._scale**2)
        return np.sqrt(np.maximum(variance, 0.0))

    @property
    def _scale(self) -> Array:
        """Residual, as a share of all rows, that has unit noise; with the axes of `mass`."""
        scale = self.posterior.scale
        return scale[:, None, None] if self.mass.ndim > 1 else scale

    def data(self, possible: Array, noise: Array, sd: Array | None = None) -> tuple[Array, Array | None]:
        """Return unit-noise data of simulated data sets, from gaps per row and standard normal noise.

        These are cosine coefficients over the cells and, where score effects matter, residuals at each score.
        """
        p = self.posterior
        residual = possible * self.mass + noise * (self.sd(possible) if sd is None else sd)
        if self.mass.ndim > 1:
            return _coefficients((residual / self._scale).astype(np.float32)), None
        if p.discrete(0):
            effects = p.effects[0]
            assert effects is not None
            cells = effects.ties.time(cells=p.z.shape[-1]).to_cells(residual)
            return _coefficients((cells / p.scale[0]).astype(np.float32)), residual.astype(np.float32)
        cells = np.zeros((len(residual), p.z.shape[-1]), dtype=np.float32)
        cells[:, p.mass[0] > 0] = residual / p.scale[0]
        return _coefficients(cells), None


def _coefficients(cells: Array) -> Array:
    """Return the cosine coefficients (data sets, cells) of data over cells; problems are stacked."""
    from scipy.fft import dct

    return np.asarray(dct(cells.reshape(-1, cells.shape[-1]), norm="ortho"))


def first_of_each(score: Array) -> Array:
    """Return the index of the first of the points that share a score, for each distinct score.

    >>> first_of_each(np.array([0.1, 0.3 + 1e-16, 0.3, 0.3 - 1e-16, 0.4])).tolist()
    [0, 1, 4]
    """
    return np.flatnonzero(np.diff(score, prepend=-1.0) > TOLERANCE)


def means_by_score(points: Points, values: Array) -> tuple[Array, Array]:
    """Return the distinct scores of points, and the means of values there: rounding selects no point."""
    first = first_of_each(points.score)
    mass = np.add.reduceat(points.mass, first)
    score, mean = (np.add.reduceat(points.mass * each, first) / mass for each in (points.score, values))
    return score, mean


def scale_to_unit_error(drawn: Sequence[Array], grids: Sequence[SimulationGrid], norm: Norm) -> list[Array]:
    """Scale gaps per row to a combined error of one; gaps without any error become constant."""

    def combined_error() -> Array:
        errors = (true_error(gap, sim_grid.mass, norm) for gap, sim_grid in zip(drawn, grids, strict=True))
        return combined(stack_classes(errors), norm)

    no_error = combined_error() < 1e-9
    for gap in drawn:
        gap[..., no_error, :] = 1.0
    scale = combined_error()[:, None]
    return [gap / scale for gap in drawn]


def max_attainable_error(grids: Sequence[SimulationGrid], gaps: Sequence[Array], norm: Norm) -> Array:
    """Return the largest combined error that gaps with these signs can have."""
    errors = (sim_grid.max_error(gap, norm) for sim_grid, gap in zip(grids, gaps, strict=True))
    return combined(stack_classes(errors), norm)


def stack_classes(by_grid: Iterable[Array]) -> Array:
    """Stack arrays (data sets,) or (classes, data sets) of several grids to one (data sets, classes)."""
    return np.concatenate([np.atleast_2d(each) for each in by_grid]).T


def scaled_to_error(
    true: float, gaps: Sequence[Array], grids: Sequence[SimulationGrid], norm: Norm
) -> list[Array]:
    """Return gaps with this combined error; gaps that cannot attain it are clipped to [0, 1]."""
    factor = scale_to_error(true, gaps, grids, norm)
    return [sim_grid.possible(gap, factor) for gap, sim_grid in zip(gaps, grids, strict=True)]


def scale_to_error(true: float, gaps: Sequence[Array], grids: Sequence[SimulationGrid], norm: Norm) -> Array:
    """Return the factor of each data set at which its clipped gaps have this combined error."""
    factor: Array = np.full(gaps[0].shape[-2], true)
    for _ in range(SCALING_STEPS - 1):
        errors = (
            true_error(sim_grid.possible(gap, factor), sim_grid.mass, norm)
            for gap, sim_grid in zip(gaps, grids, strict=True)
        )
        attained = combined(stack_classes(errors), norm)
        if np.all(attained > 0.999 * true):
            break
        factor = np.minimum(factor * true / np.maximum(attained, 1e-12), 1e6)
    return factor


def streams(order: Sequence[int] = (0,)) -> tuple[np.random.Generator, list[np.random.Generator]]:
    """Return a generator for all problems together and one for each; `order` sorts the problems."""
    common = np.random.default_rng([SEED, KEY + len(order) - 1])
    return common, [np.random.default_rng([SEED, KEY + rank, 1]) for rank in np.argsort(order).tolist()]


def _stratified_noise(
    direction: Array,
    score_sampling_sd: Array,
    common: np.random.Generator,
    rng: np.random.Generator,
    kind: Array,
) -> tuple[Array, Array]:
    """Draw standard normal noise (data sets, points) of residuals and (data sets,) of the sampled scores.

    If the gap is clear, the estimate moves with the sum of the residuals signed by the gap, and with the
    sampled scores. Their sum is one normal variable. It is stratified: its quantiles are spread evenly over
    the data sets of each kind, so that the ends of an interval depend little on the random numbers.

    Parameters
    ----------
    direction : array (data sets, points)
        Sign of the gap times the standard deviation of the residual at each point.
    score_sampling_sd : array (data sets,)
        Standard deviation of the error that the sampled scores cause; see `score_sampling_sd`.
    common, rng : Generator
        Of the strata, and of the noise.
    kind : array of int (data sets,)
        Kind of the shape.
    """
    from scipy.special import ndtri

    size = len(kind)
    direction = np.concatenate([direction, score_sampling_sd[:, None]], axis=-1)
    norm = np.sqrt((direction * direction).sum(axis=-1, keepdims=True))
    direction = np.divide(direction, norm, out=np.zeros(direction.shape), where=norm > 0)
    noise = np.roll(rng.standard_normal(direction.shape), -1, axis=-1)
    uniform = np.empty(size)
    for each_kind in np.unique(kind):
        of_kind = np.flatnonzero(kind == each_kind)
        uniform[of_kind] = (common.permutation(of_kind.size) + common.random(of_kind.size)) / of_kind.size
    noise += (ndtri(np.clip(uniform, 1e-12, 1 - 1e-12)) - (noise * direction).sum(axis=-1))[
        :, None
    ] * direction
    return noise[:, :-1], noise[:, -1]


@dataclass(frozen=True, eq=False)
class ClusterAdjustment:
    """Data, effective sample size and design effects that the interval of one problem is computed from.

    Attributes
    ----------
    problem : ScoreData or CorrelatedRows
        Data on which outcomes are simulated.
    n : float
        Effective sample size: the number of rows divided by the design effect.
    design : DesignEffect
        Design effects of the problem; all 1 without clusters.
    clusters : float
        Effective number of clusters: the number of equally large clusters with the same precision.
    """

    problem: Any
    n: float
    design: DesignEffect = INDEPENDENT
    clusters: float = np.inf

    @classmethod
    def of(cls, task: CalibrationTask) -> list[ClusterAdjustment]:
        """Return the adjustment of each problem."""
        cluster, designs, n = task.cluster, task.designs, task.n
        if designs is None:
            separate = task.notion.classes is ClassRelation.SEPARATE
            return [cls(problem, float(problem.n) if separate else n) for problem in task.problems]
        from calibrant.inference.clusters import CorrelatedRows

        if (sums := task.cluster_sums) is not None:
            clusters = sums.effective
            rows = [CorrelatedRows(problem, None) for problem in task.problems]
        else:
            assert cluster is not None
            clusters = effective_clusters(cluster, task.weight)
            rows = [CorrelatedRows.of(problem, cluster) for problem in task.problems]
        return [
            cls(problem, n / design.effect, design, clusters)
            for problem, design in zip(rows, designs, strict=True)
        ]

    def tails(self, level: float) -> float:
        """Return the ratio of Student's to the normal quantile at a level; 1 without clusters.

        >>> sample = Sample(np.array([0.5]), np.array([True]))
        >>> round(ClusterAdjustment(sample, 1.0, DesignEffect(), 20.0).tails(0.95), 3)
        1.068
        """
        if np.isinf(self.clusters):
            return 1.0
        return interval_deviate(level, self.clusters) / interval_deviate(level)

    def of_mean(self, level: float) -> float:
        """Return the design effect of a mean residual, times the squared ratio of quantiles at a level."""
        return self.design.of_mean * self.tails(level) ** 2

    def tail_inflation(self, level: float, estimator: Estimator) -> float:
        """Return the factor by which simulated estimates are spread: what the simulation does not contain.

        Simulations of the default estimator contain the overall design effect; those of a named estimator
        contain the intraclass correlation, unless there are too many rows.
        """
        remaining_effect = self.design.of_error
        if estimator.from_posterior:
            remaining_effect /= self.design.effect
        elif getattr(self.problem, "cluster", None) is not None:
            remaining_effect = 1.0
        return self.tails(level) * max(1.0, float(np.sqrt(remaining_effect)))


class BiasCorrection(NamedTuple):
    """Amounts by which the estimate is lowered for the lower end, and raised for the upper end."""

    below: float = 0.0
    above: float = 0.0


NO_BIAS_CORRECTION = BiasCorrection()


def bias_correction(posterior: Posterior, value: float, norm: Norm) -> BiasCorrection:
    """Return the bias corrections of both ends, for gaps of uncertain sign.

    The estimate is the posterior mean of an absolute value, and is larger than the error of the posterior
    mean gap where the sign of the gap is uncertain. Both corrections are a share of this excess:

    - The lower end subtracts it, because the excess may be bias. The part that belongs to score effects is at
      most one standard error of the mean residual, because their estimate has little bias.
    - The upper end adds it, because the excess may also come from gaps that are rougher than the simulated
      ones. This applies to a single problem only.

    Parameters
    ----------
    posterior : Posterior
        Posterior of all problems.
    value : float
        The observed estimate.
    norm : str
        "l1" or "l2".
    """
    mass = posterior.mass
    error_of_mean_gap = true_error(posterior.gap / np.maximum(mass, 1e-300), mass, norm)
    over, under = posterior.over_under
    posterior_error = combined(over + under, norm) if norm == "l1" else value
    excess = max(0.0, float(posterior_error - combined(error_of_mean_gap, norm)))
    effects_weight = float(posterior.weight[:, 3].mean()) if posterior.effects else 0.0
    lower = 2 * INTERVAL.bias_share * excess
    lower = (1 - effects_weight) * lower + effects_weight * min(lower, _standard_error(posterior))
    return BiasCorrection(lower, INTERVAL.bias_share * excess if len(posterior.z) == 1 else 0.0)


def draw_shapes(
    posterior: Posterior, each_rng: list[np.random.Generator], size: int
) -> tuple[Array, list[Array]]:
    """Draw shapes of the gap from the posterior: their kinds, and gaps per row (size, points) of each class.

    The kinds are smooth gaps, local gaps, and smooth gaps with score effects. Each kind gets a minimum share
    of the data sets unless its posterior weight is too small. The shapes are not scaled to any error yet.
    """
    weight = posterior.weight[:, 1:].mean(axis=0)
    weight = weight / weight.sum()
    possible = weight >= MIN_KIND_WEIGHT
    raised = possible & (weight < MIN_KIND_SHARE)
    kept = possible & ~raised
    share = np.where(raised, MIN_KIND_SHARE, 0.0)
    share[kept] = weight[kept] / weight[kept].sum() * (1 - share.sum())
    ends = np.rint(size * np.cumsum(share)).astype(np.intp)
    count = np.diff(ends, prepend=0)
    gaps = []
    for k, rng in enumerate(each_rng):
        drawn = []
        for kind, n_drawn in enumerate(count, 1):
            # A class without repeated scores has no score effects; draw smooth gaps instead.
            component = kind if kind < 3 or posterior.discrete(k) else 1
            if n_drawn:
                shrinkage = INTERVAL.draw_shrinkage if component == 1 else 1.0
                drawn.append(posterior.shapes(k, component, rng, int(n_drawn), shrinkage))
        gaps.append(np.concatenate(drawn))
    return np.repeat(np.arange(len(count)), count), gaps


def true_error(gap: Array, mass: Array, norm: Norm) -> Array:
    """Return the true error of gaps per row at points of this mass; the last axis is that of the points."""
    if norm == "l1":
        return np.asarray((np.abs(gap) * mass).sum(axis=-1))
    return np.asarray(np.sqrt((gap * gap * mass).sum(axis=-1)))


def score_sampling_sd(gap: Array, mass: Array, error: Array, norm: Norm, n: float) -> Array:
    """Return the standard deviation of the error of a sample around the true error of the population.

    The scores are a sample too. For l1 it is sqrt((E g^2 - (E |g|)^2) / n).
    """
    square = (gap ** (2 if norm == "l1" else 4) * mass).sum(axis=-1)
    if norm == "l1":
        return np.asarray(np.sqrt(np.maximum(square - error**2, 0.0) / n))
    return np.asarray(np.sqrt(np.maximum(square - error**4, 0.0) / n) / (2 * np.maximum(error, 1e-12)))


def invert(
    simulate: Callable[[list[float]], list[Simulation]],
    value: float,
    posterior: Posterior,
    level: float,
    correction: BiasCorrection = NO_BIAS_CORRECTION,
) -> tuple[float, float]:
    """Return the range of true errors under which `value` lies between the tails of simulated estimates.

    The interval is the union over the kinds of shape. The grid does not depend on the level, so that
    intervals of different levels are nested.

    Parameters
    ----------
    simulate : callable
        Takes a grid of true errors. Returns for each the true error that the data sets have, and their
        estimates for each kind of shape.
    value : float
        The observed estimate.
    posterior : Posterior
        Posterior of the gap, for the scale of the grid.
    level : float
        Confidence level.
    correction : BiasCorrection
        Added to the estimate for the upper end, subtracted for the lower end.
    """
    grid, standard_error = error_grid(posterior, value), _standard_error(posterior)
    runs = simulate(grid)
    # An estimate that is unusually small even for calibrated data must not give a short interval.
    upper_value = max(value, _null_floor(np.concatenate(runs[0][1]))) + correction.above
    below = _share_below(upper_value, runs[-1][1])
    while below > MAX_SHARE_BELOW and grid[-1] < 1 and runs[-1][0] > runs[-2][0] + 1e-9:
        width = EXTENSION_ERRORS * standard_error + EXTENSION_SHARE * grid[-1]
        grid = [grid[-1] + step * width for step in (1, 2)]
        extension = simulate(grid)
        # Some estimators underestimate errors that few shapes attain. Such errors are not informative.
        if (below_last := _share_below(upper_value, extension[-1][1])) > MAX_SHARE_GROWTH * below:
            break
        below, runs = below_last, runs + extension
    alpha_factor = INTERVAL.tail_alpha_factor
    tail_quantiles = -np.array([NormalDist().inv_cdf(alpha_factor * (1 - each) / 2) for each in LEVELS])
    lower_value = max(0.0, value - correction.below)
    lower_ends = np.minimum.accumulate(_interval_end(runs, lower_value, tail_quantiles, above=True))
    upper_ends = np.maximum.accumulate(_interval_end(runs, upper_value, tail_quantiles, above=False))
    tail_quantile = -NormalDist().inv_cdf(alpha_factor * (1 - level) / 2)
    low, high = (float(np.interp(tail_quantile, tail_quantiles, ends)) for ends in (lower_ends, upper_ends))
    return max(0.0, min(low, value)), min(1.0, max(high, value, mean_residual_limit(posterior, level)))


def mean_residual_limit(posterior: Posterior, level: float, widening: float = 1.0) -> float:
    """Return the upper confidence limit of the absolute mean gap; the error cannot be below that gap."""
    if len(posterior.z) > 1:
        return 0.0
    mean = float(np.abs(posterior.z[0, 0]))
    return _standard_error(posterior) * (mean + widening * NormalDist().inv_cdf((1 + level) / 2))


def stop_early(
    simulate: Callable[[float], Simulation], value: float
) -> Callable[[list[float]], list[Simulation]]:
    """Return a function that simulates a rising grid of true errors one by one, and stops early.

    It is used for several classes, where the data sets have the same noise under every error. Once hardly any
    estimate of any kind lies below the observed one, larger errors add no information.
    """

    def passed(groups: list[Array], upper_value: float) -> bool:
        all_attained = min(group.size for group in groups) >= MIN_ATTAINED
        return all_attained and all(
            _tail_quantile(group, upper_value, above=False) == -np.inf for group in groups
        )

    def run(errors: list[float]) -> list[Simulation]:
        runs: list[Simulation] = []
        for true in errors:
            runs.append(simulate(true))
            if passed(runs[-1][1], max(value, _null_floor(np.concatenate(runs[0][1])))):
                break
        return runs

    return run


def error_grid(posterior: Posterior, value: float) -> list[float]:
    """Return the grid of true errors: 0, and errors around the estimate."""
    standard_error = _standard_error(posterior)
    candidates = (value + step * standard_error for step in GRID_OFFSETS)
    return [0.0, *(true for true in candidates if true > MIN_GRID_ERROR * standard_error)]


def _standard_error(posterior: Posterior) -> float:
    """Return the standard error of a mean residual."""
    classes, cells = posterior.z.shape
    # The mean over classes varies less than that of one class, but classes are not independent: the factor
    # is larger than classes^(-1/2).
    return float((posterior.scale * np.sqrt(cells)).mean() * classes**-0.25)


def _interval_end(runs: list[Simulation], value: float, tail_quantiles: Array, *, above: bool) -> Array:
    """Return one end of the interval at each tail quantile: the outermost over the kinds of shape.

    The probability of an estimate beyond `value`, as a normal quantile, is close to linear in the true error.
    A local line through it has less noise than the value at any single error.
    """
    n_kinds = max(len(groups) for _, groups in runs)
    ends = []
    for kind in range(n_kinds):
        usable = [(true, groups[kind]) for true, groups in runs if len(groups) > kind]
        usable = [(true, estimates) for true, estimates in usable if estimates.size >= MIN_ATTAINED]
        if not usable:
            continue
        true, estimates = np.array([true for true, _ in usable]), [each for _, each in usable]
        tail_quantile = np.array([_tail_quantile(each, value, above) for each in estimates])
        # The tail above the value grows with the true error, the one below it shrinks.
        rising = tail_quantile if above else -tail_quantile
        sizes = np.array([each.size for each in estimates])
        ends.append(_crossings(true, rising, -tail_quantiles if above else tail_quantiles, sizes))
    return np.min(ends, axis=0) if above else np.max(ends, axis=0)


def _crossings(true: Array, quantile: Array, levels: Array, sizes: Array) -> Array:
    """Return the true errors at which rising normal quantiles cross each level, by a local weighted line.

    An infinite quantile bounds the crossing of the levels that its number of data sets, in `sizes`, can
    resolve. It says nothing about levels further out, for which the line is extrapolated.
    """
    from scipy.special import ndtr, ndtri

    resolved, column = -ndtri(0.5 / sizes), levels[:, None]
    first = np.where(np.isneginf(quantile) & (column > -resolved), true, true[0]).max(axis=1)
    last = np.where(np.isposinf(quantile) & (column < resolved), true, 2 * true[-1] - true[0]).min(axis=1)
    last = np.maximum(first, last)
    finite = np.isfinite(quantile)
    true, quantile = true[finite], quantile[finite]
    if true.size < 2:
        return (first + last) / 2 if true.size == 0 else np.clip(true[0], first, last)
    # Precision of a quantile computed from a share of data sets: low in the tails.
    precision = np.exp(-quantile * quantile) / (ndtr(quantile) * ndtr(-quantile))
    kernel = precision * np.exp(-0.5 * ((quantile - levels[:, None]) / QUANTILE_BANDWIDTH) ** 2) + 1e-12
    kernel /= kernel.sum(axis=1, keepdims=True)
    mean_true, mean_quantile = (kernel * true).sum(axis=1), (kernel * quantile).sum(axis=1)
    offset = true - mean_true[:, None]
    variance = np.maximum((kernel * offset**2).sum(axis=1), 1e-300)
    slope = (kernel * offset * (quantile - mean_quantile[:, None])).sum(axis=1) / variance
    fallback = np.where(levels < mean_quantile, first, last)
    crossing = np.divide(levels - mean_quantile, slope, out=fallback - mean_true, where=slope > 0) + mean_true
    return np.clip(crossing, first, last)


def _tail_quantile(estimates: Array, value: float, above: bool) -> float:
    """Return the normal quantile of the share of estimates beyond a value.

    Estimates within about `COUNT_WIDTH` standard deviations of the value count in part. The quantile
    is infinite if less than half a data set, or all but half a data set, lies beyond.
    """
    from scipy.special import ndtr, ndtri

    width = max(COUNT_WIDTH * float(estimates.std()), 1e-12)
    share = float(ndtr((estimates - value if above else value - estimates) / width).mean())
    least = 0.5 / estimates.size
    return float(ndtri(share)) if least < share < 1 - least else float(np.copysign(np.inf, share - 0.5))


def _share_below(value: float, groups: list[Array]) -> float:
    """Return the largest share, over the kinds of shape, of estimates below a value."""
    # An estimate equal to the value up to rounding counts as below it.
    return max(float(np.mean(group < value + TOLERANCE)) for group in groups if group.size >= MIN_ATTAINED)


def _null_floor(estimates: Array) -> float:
    """Return the estimate of calibrated data that replaces smaller ones for the upper end."""
    return float(np.quantile(estimates, NULL_FLOOR_QUANTILE))


def interval_of_named(
    estimator: Estimator,
    problems: list[ScoreData],
    posterior: Posterior,
    value: float,
    *,
    norm: Norm,
    level: float,
    order: Sequence[int] = (0,),
    spread: float,
    share: Array | None = None,
) -> tuple[tuple[float, float], Array]:
    """Return the interval for the true error by a named estimator, and its estimates from calibrated data.

    The estimator is applied to outcomes simulated along shapes drawn as for the default estimator.

    Parameters
    ----------
    estimator : Estimator
        The named estimator.
    problems : list of ScoreData
        Data of each problem, on which outcomes are simulated.
    posterior : Posterior
        Posterior of the gaps of these problems.
    value : float
        The observed estimate.
    norm, level, spread
        As for `interval`.
    order : sequence of int
        The problems in the order of `problem_order`.
    share : array (problems,), optional
        Share of each problem in the mean over the problems; by default they are equal.
    """
    posterior = posterior.weighted(share).coarser(MAX_CELLS)
    cells = [SimulationGrid.of(posterior[k : k + 1]) for k in range(len(posterior.z))]
    drawn_gaps = draw_shapes(posterior, streams(order)[1], NAMED_SHAPES)[1]
    # Gaps are interpolated at the scores of rows: one point for each score, whatever the rounding.
    grids, mean_gaps = zip(
        *(grid.by_score(gap) for grid, gap in zip(cells, drawn_gaps, strict=True)), strict=True
    )
    gaps = scale_to_unit_error(mean_gaps, grids, norm)
    max_error = max_attainable_error(grids, gaps, norm)
    simulation_data = [_simulation_data(problem) for problem in problems]
    calibrated: list[Array] = []

    def simulate(true: float) -> Simulation:
        scaled = scaled_to_error(true, gaps, grids, norm)
        each_rng, estimates = streams(order)[1], []
        attained = max_error >= true
        curves = np.flatnonzero(attained) if attained.any() else range(NAMED_SHAPES)
        for problem, sim_grid, gap, rng in zip(simulation_data, grids, scaled, each_rng, strict=True):

            def probability(score: Array, knots: Array = sim_grid.score, gap: Array = gap) -> Array:
                gaps_at_score = np.array([np.interp(score, knots, gap[i]) for i in curves])
                return np.clip(score + gaps_at_score, 0.0, 1.0)

            estimates.append(
                estimator.fit(problem.simulate_outcomes(probability, rng, NAMED_SETS_PER_SHAPE)).error(norm)
            )
        estimate = combined(np.stack(estimates, axis=-1), norm, share)
        if true == 0:
            calibrated.append(estimate)
        estimate = widened(estimate, spread)
        return (true, [estimate]) if attained.any() else (float(max_error.max()), [estimate])

    ends = invert(lambda errors: [simulate(true) for true in errors], value, posterior, level)
    return ends, calibrated[0]


def _simulation_data(problem: ScoreData) -> ScoreData:
    """Return score data on which outcomes are simulated at a bounded cost, in sorted order or over cells."""
    if not isinstance(problem, Sample):
        return problem
    return Cells.of(problem) if problem.expanded_size > CELLS_FROM else problem.repeated().sorted()

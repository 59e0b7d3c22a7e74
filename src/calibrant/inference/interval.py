"""An interval for the true error: the errors under which the observed estimate is not surprising.

For a grid of true errors, data are simulated whose gap has that error and a shape drawn from the
posterior; the interval holds every error under which the observed estimate lies between the tails.
At weak signals the sampling distribution of an estimate leans and jumps, which this takes as it is,
where a bootstrap or a normal approximation fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from calibrant.estimators.base import Estimator, Norm
from calibrant.inference.null import error
from calibrant.posterior.gap import Posterior
from calibrant.score_data import Array, Cells, Sample, ScoreData
from calibrant.tasks.notions import combined

# True errors tried, as distances from the estimate in standard errors of a mean, and sets simulated in all.
TRIED, DRAWN = (-3.5, -2.0, -0.8, 0.8, 2.0, 3.0, 4.0, 5.5), 1000
# The shape of the gap was learnt from the data that the interval is for: each tail is this much smaller.
TAIL_ALPHA_FACTOR = 0.75
# Shapes keep this much of the process's own spread: with all of it they are rougher than gaps are.
DRAW_SHRINKAGE = 0.7
# Shares of what uncertainty adds to an estimate that the lower and the upper end allow for.
ALLOWED_BELOW, ALLOWED_ABOVE = 0.6, 0.3
# Estimates below this quantile of calibrated data are taken for small by luck.
SMALL = 0.03
# Levels for which ends are computed, so that those of any level are nested; how far, in normal quantiles,
# true errors matter for a tail; how softly estimates are counted; and the share below the value at the
# last error.
LEVELS = (0.2, 0.5, 0.7, 0.8, 0.85, 0.9, 0.925, 0.95, 0.965, 0.98, 0.99, 0.995, 0.999, 0.9999, 0.999999)
NEARBY, SOFT, LAST = 0.8, 0.12, 0.015
# Of the sets, each kind of gap has at least a fair share, unless its chance is below RARE; a kind that
# reaches a true error in too few sets is left out there; and steps to bring a clipped gap to its error.
FAIR, FAIR_OF_THREE, RARE, REACHING, FITTED = 0.35, 0.25, 0.01, 10, 4
# Cells simulated at most, and numbers simulated for each true error; many classes get fewer sets, but enough.
FINEST, TOGETHER, ENOUGH = 256, 1 << 16, 80
# Other estimators: gaps simulated, sets along each, and the rows beyond which they are simulated on cells.
CURVES, ALONG, CELLS_FROM = 10, 10, 4096
# Scores, and estimates, this close are the same: only rounding tells them apart.
TIED = 1e-9
# What is drawn for an interval depends on the data and the classes alone.
SEED = 20210401

Simulation = tuple[float, list[Array]]


def interval(
    posterior: Posterior,
    n: float,
    value: float,
    *,
    norm: Norm,
    level: float,
    key: int = 0,
    spread: float = 1.0,
    drawn: int = DRAWN,
) -> tuple[float, float]:
    """Return an interval for the true error of one problem.

    Parameters
    ----------
    posterior : Posterior
        Of the problem.
    n : float
        Effective number of rows.
    value : float
        The observed estimate.
    key : int
        What is drawn belongs to this number.
    spread : float
        How much further out the tails lie than simulations show them.
    """
    whole, posterior = posterior, posterior.coarser(FINEST).focused()
    grid = errors_tried(posterior, value)
    size = int(np.clip(TOGETHER // posterior.z.shape[-1], ENOUGH, max(ENOUGH, drawn // len(grid))))
    sim_grid = SimulationGrid.of(posterior)
    common, (rng,) = streams([key])
    kind, gaps = shapes(posterior, [rng], size)
    gaps = scale_to_unit_error(gaps, [sim_grid], norm)
    most = sim_grid.most(gaps[0], norm)

    def simulate(errors: list[float]) -> list[Simulation]:
        possible, chances, data = [], [], []
        for true in errors:
            (gap,) = scaled_to_error(true, gaps, [sim_grid], norm)
            own_error = true_error(gap, sim_grid.mass, norm)
            chance, sd = sampling(gap, sim_grid.mass, own_error, norm, n), sim_grid.sd(gap)
            noise, score_sampling_sd = _noise(np.sign(gap) * sd, chance, common, rng, kind)
            possible.append(own_error)
            chances.append(score_sampling_sd * chance)
            data.append(sim_grid.data(gap, noise, sd))
        z, residual = zip(*data, strict=True)
        shared_scores = () if residual[0] is None else (np.concatenate(residual),)
        estimates = error(posterior.again(np.concatenate(z), shared_scores).terms(norm), norm)
        by_error = estimates.astype(np.float64).reshape(len(errors), size)
        runs = []
        for true, own_error, moved, estimate in zip(errors, possible, chances, by_error, strict=True):
            estimate = widened(estimate + moved, spread)
            runs.append(by_kind(true, estimate, most >= true, kind, own_error))
        return runs

    return invert(simulate, value, posterior, level, bias_correction(whole, value, norm))


def widened(estimate: Array, spread: float) -> Array:
    """Return estimates spread around their mean."""
    middle = estimate.mean()
    return np.asarray(middle + spread * (estimate - middle))


def by_kind(true: float, estimate: Array, reached: Array, kind: Array, own_error: Array) -> Simulation:
    """Return the estimates of each kind of gap in the sets that reach a true error.

    Where too few of any kind do, all sets count, with the mean error that they have.
    """
    groups = [estimate[reached & (kind == member)] for member in np.unique(kind)]
    enough = any(group.size >= REACHING for group in groups)
    return (true, groups) if enough else (float(own_error.mean()), [estimate])


@dataclass(frozen=True, eq=False)
class SimulationGrid:
    """The scores of one problem, on which data are simulated: cells, or the distinct scores if few.

    Several problems over cells make one world too, with an axis of problems in front.

    Attributes
    ----------
    posterior : Posterior
        Of these problems alone.
    mass, score : arrays (points,) or (problems, 1, points)
        Share of the rows, and score, at each point.
    noise : array
        Variance of the mean residual at each point for outcomes of variance one, times its share squared.
    """

    posterior: Posterior
    mass: Array
    score: Array
    noise: Array

    @classmethod
    def of(cls, posterior: Posterior) -> SimulationGrid:
        """Return the world of all problems; of several none is over its distinct scores."""
        if len(posterior.z) > 1:
            mass = posterior.mass[:, None]
            return cls(posterior, mass, posterior.score[:, None], mass / posterior.n[:, None, None])
        score, mass, rows = posterior.places(0)
        return cls(posterior, mass, score, mass**2 / np.maximum(rows, 1e-300))

    def possible(self, gap: Array, factor: Array) -> Array:
        """Return gaps (..., sets, points), each times a factor, as far as scores allow."""
        return np.minimum(np.maximum(factor[:, None] * gap, -self.score), 1 - self.score)

    def by_score(self, gap: Array) -> tuple[SimulationGrid, Array]:
        """Return the world with one point for each score, and the mean of gaps (sets, points) there.

        A row of much variance reaches over several cells, and has the gap of all of them.
        """
        first = first_of_each(self.score)
        mass, noise = (np.add.reduceat(part, first) for part in (self.mass, self.noise))
        score = np.add.reduceat(self.mass * self.score, first) / mass
        mean = np.add.reduceat(self.mass * gap, first, axis=1) / mass
        return replace(self, mass=mass, score=score, noise=noise), mean

    def most(self, gap: Array, norm: Norm) -> Array:
        """Return the largest error that gaps of these signs can have."""
        max_attainable_error = np.where(gap > 0, 1 - self.score, np.where(gap < 0, -self.score, 0.0))
        return true_error(max_attainable_error, self.mass, norm)

    def sd(self, possible: Array) -> Array:
        """Return the standard deviation of the residuals at each point, as a share of all rows."""
        p = self.score + possible
        variance = p * (1 - p) * self.noise
        if not self.posterior.discrete(0):
            # No more than four times what the clock gave a cell.
            variance = np.minimum(variance, 4 * self._scale**2)
        return np.sqrt(np.maximum(variance, 0.0))

    @property
    def _scale(self) -> Array:
        """What a unit is worth: of the one problem, or of each of several."""
        scale = self.posterior.scale
        return scale[:, None, None] if self.mass.ndim > 1 else scale

    def data(self, possible: Array, noise: Array, sd: Array | None = None) -> tuple[Array, Array | None]:
        """Return unit-noise data, (sets, ...), with these gaps per row and standard normal noise.

        They are cosine coefficients over the cells and, where effects of single scores matter, the residuals
        at each score.
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
    """Return the cosine coefficients of data over cells, (sets, cells) of all problems."""
    from scipy.fft import dct

    return np.asarray(dct(cells.reshape(-1, cells.shape[-1]), norm="ortho"))


def first_of_each(score: Array) -> Array:
    """Return where each score begins among points in order: a row can reach over several of them.

    >>> first_of_each(np.array([0.1, 0.3 + 1e-16, 0.3, 0.3 - 1e-16, 0.4])).tolist()
    [0, 1, 4]
    """
    return np.flatnonzero(np.diff(score, prepend=-1.0) > TIED)


def scale_to_unit_error(drawn: Sequence[Array], grids: Sequence[SimulationGrid], norm: Norm) -> list[Array]:
    """Return gaps per row brought to a combined error of one."""

    def whole() -> Array:
        errors = (true_error(gap, sim_grid.mass, norm) for gap, sim_grid in zip(drawn, grids, strict=True))
        return combined(side_by_side(errors), norm)

    lost = whole() < 1e-9
    for gap in drawn:
        gap[..., lost, :] = 1.0
    size = whole()[:, None]
    return [gap / size for gap in drawn]


def max_attainable_error(grids: Sequence[SimulationGrid], gaps: Sequence[Array], norm: Norm) -> Array:
    """Return the largest combined error that gaps of these signs can have."""
    return combined(side_by_side(w.most(gap, norm) for w, gap in zip(grids, gaps, strict=True)), norm)


def side_by_side(of_worlds: Iterable[Array]) -> Array:
    """Return what each class has in each set, (sets, classes): worlds have (sets,) or (classes, sets)."""
    return np.concatenate([np.atleast_2d(each) for each in of_worlds]).T


def scaled_to_error(
    true: float, gaps: Sequence[Array], grids: Sequence[SimulationGrid], norm: Norm
) -> list[Array]:
    """Return gaps with this combined error; those that cannot have it go as far as scores allow."""
    factor = scale_to_error(true, gaps, grids, norm)
    return [sim_grid.possible(gap, factor) for gap, sim_grid in zip(gaps, grids, strict=True)]


def scale_to_error(true: float, gaps: Sequence[Array], grids: Sequence[SimulationGrid], norm: Norm) -> Array:
    """Return for each set how many times the gaps have this combined error, as far as scores allow."""
    factor: Array = np.full(gaps[0].shape[-2], true)
    for _ in range(FITTED - 1):
        errors = (
            true_error(sim_grid.possible(gap, factor), sim_grid.mass, norm)
            for gap, sim_grid in zip(gaps, grids, strict=True)
        )
        whole = combined(side_by_side(errors), norm)
        if np.all(whole > 0.999 * true):
            break
        factor = np.minimum(factor * true / np.maximum(whole, 1e-12), 1e6)
    return factor


def streams(keys: Sequence[int]) -> tuple[np.random.Generator, list[np.random.Generator]]:
    """Return a generator for all classes together, and one for each; their order does not matter."""
    common = np.random.default_rng([SEED, *sorted(keys)])
    return common, [np.random.default_rng([SEED, key, 1]) for key in keys]


def _noise(
    way: Array, chance: Array, common: np.random.Generator, rng: np.random.Generator, kind: Array
) -> tuple[Array, Array]:
    """Draw standard normal noise (sets, points), and the luck of sampling (sets,).

    Where a gap is plain its estimate moves with the sum of the residuals signed by the gap, and with the
    scores that were sampled. Both together are one normal variable; its values are spread evenly over
    the sets of each kind, so that the ends of an interval depend little on the seed.
    """
    from scipy.special import ndtri

    size = len(kind)
    way = np.concatenate([way, chance[:, None]], axis=-1)
    length = np.sqrt((way * way).sum(axis=-1, keepdims=True))
    way = np.divide(way, length, out=np.zeros(way.shape), where=length > 0)
    noise = np.roll(rng.standard_normal(way.shape), -1, axis=-1)
    even = np.empty(size)
    for member in np.unique(kind):
        some = np.flatnonzero(kind == member)
        even[some] = (common.permutation(some.size) + common.random(some.size)) / some.size
    noise += (ndtri(np.clip(even, 1e-12, 1 - 1e-12)) - (noise * way).sum(axis=-1))[:, None] * way
    return noise[:, :-1], noise[:, -1]


class BiasCorrection(NamedTuple):
    """How much too large, and too small, an estimate may be because its gap is uncertain."""

    below: float = 0.0
    above: float = 0.0


NO_BIAS_CORRECTION = BiasCorrection()


def bias_correction(posterior: Posterior, value: float, norm: Norm) -> BiasCorrection:
    """Return what the ends of an interval allow for where the sign of the gap is uncertain.

    An estimate exceeds the error of the posterior mean gap by what uncertainty adds. The mean over classes,
    and an estimate from many rows, has little noise left but all of that bias. Effects of single scores are
    uncertain with little bias: at most a standard error of a mean is allowed for them below. Gaps rougher
    than those that are simulated hide in the same uncertainty, which the upper end allows for.
    """
    mass = posterior.mass
    firm = true_error(posterior.gap / np.maximum(mass, 1e-300), mass, norm)
    over, under = posterior.over_under
    whole = combined(over + under, norm) if norm == "l1" else value
    added = max(0.0, float(whole - combined(firm, norm)))
    effects = float(posterior.weight[:, 3].mean()) if posterior.effects else 0.0
    below = ALLOWED_BELOW * added
    below = (1 - effects) * below + effects * min(below, _unit(posterior))
    return BiasCorrection(below, ALLOWED_ABOVE * added if len(posterior.z) == 1 else 0.0)


def shapes(posterior: Posterior, each_rng: list[np.random.Generator], size: int) -> tuple[Array, list[Array]]:
    """Draw gaps per row from the posterior: their kind, and (size, points) of each class, of any error.

    The kinds are smooth gaps, gaps in ranges of the scores, and smooth ones with effects of single scores;
    each has a fair number of sets unless the data rule it out.
    """
    weight = posterior.weight[:, 1:].mean(axis=0)
    weight = weight / weight.sum()
    possible = weight >= RARE
    fair = FAIR if np.count_nonzero(possible) < 3 else FAIR_OF_THREE
    small = possible & (weight < fair)
    large = possible & ~small
    share = np.where(small, fair, 0.0)
    share[large] = weight[large] / weight[large].sum() * (1 - share.sum())
    ends = np.rint(size * np.cumsum(share)).astype(np.intp)
    count = np.diff(ends, prepend=0)
    gaps = []
    for k, rng in enumerate(each_rng):
        drawn = []
        for member, times in enumerate(count, 1):
            # A class whose scores are not shared has no effects of them.
            own = member if member < 3 or posterior.discrete(k) else 1
            if times:
                drawn.append(posterior.shapes(k, own, rng, int(times), DRAW_SHRINKAGE if own == 1 else 1.0))
        gaps.append(np.concatenate(drawn))
    return np.repeat(np.arange(len(count)), count), gaps


def true_error(gap: Array, mass: Array, norm: Norm) -> Array:
    """Return the error of gaps per row in cells of this mass, the last axis running over cells."""
    if norm == "l1":
        return np.asarray((np.abs(gap) * mass).sum(axis=-1))
    return np.asarray(np.sqrt((gap * gap * mass).sum(axis=-1)))


def sampling(gap: Array, mass: Array, each: Array, norm: Norm, n: float) -> Array:
    """Return the standard deviation of a sample's own error around the true one.

    The scores are a sample too.
    """
    square = (gap ** (2 if norm == "l1" else 4) * mass).sum(axis=-1)
    if norm == "l1":
        return np.asarray(np.sqrt(np.maximum(square - each**2, 0.0) / n))
    return np.asarray(np.sqrt(np.maximum(square - each**4, 0.0) / n) / (2 * np.maximum(each, 1e-12)))


def invert(
    simulate: Callable[[list[float]], list[Simulation]],
    value: float,
    posterior: Posterior,
    level: float,
    allowed: BiasCorrection = NO_BIAS_CORRECTION,
) -> tuple[float, float]:
    """Return the range of true errors under which `value` lies between the tails of simulated estimates.

    `simulate` takes true errors and returns, for each, the one it could realise, and estimates for each kind
    of gap: the value may lie between the tails of any. The errors tried do not depend on the level, so
    that intervals are nested.
    """
    grid, unit = errors_tried(posterior, value), _unit(posterior)
    runs = simulate(grid)
    # An estimate that is small by luck, even for a calibrated model, must not make the interval short.
    seen = max(value, _small(np.concatenate(runs[0][1]))) + allowed.above
    below = _share_below(seen, runs[-1][1])
    while below > LAST and grid[-1] < 1 and runs[-1][0] > runs[-2][0] + 1e-9:
        grid = [grid[-1] + step * (2 * unit + grid[-1] / 4) for step in (1, 2)]
        more = simulate(grid)
        # Errors that few shapes can have are read low by some estimators, and say nothing.
        if (beyond := _share_below(seen, more[-1][1])) > 2 * below:
            break
        below, runs = beyond, runs + more
    ladder = -np.array([NormalDist().inv_cdf(TAIL_ALPHA_FACTOR * (1 - at) / 2) for at in LEVELS])
    small = max(0.0, value - allowed.below)
    bottom = np.minimum.accumulate(_ends(runs, small, ladder, above=True))
    top = np.maximum.accumulate(_ends(runs, seen, ladder, above=False))
    at = -NormalDist().inv_cdf(TAIL_ALPHA_FACTOR * (1 - level) / 2)
    low, high = (float(np.interp(at, ladder, ends)) for ends in (bottom, top))
    return max(0.0, min(low, value)), min(1.0, max(high, value, _mean_limit(posterior, level)))


def _mean_limit(posterior: Posterior, level: float) -> float:
    """Return the upper limit of the absolute mean gap of a single problem; its error cannot be below it."""
    if len(posterior.z) > 1:
        return 0.0
    mean = float(np.abs(posterior.z[0, 0]))
    return _unit(posterior) * (mean + NormalDist().inv_cdf((1 + level) / 2))


def stop_early(
    simulate: Callable[[float], Simulation], value: float
) -> Callable[[list[float]], list[Simulation]]:
    """Return what simulates true errors one after the other, beginning with none.

    Where sets have the same noise under every error, and hardly an estimate of any kind lies below the value,
    larger errors say no more and are left out.
    """

    def passed(groups: list[Array], seen: float) -> bool:
        every = min(group.size for group in groups) >= REACHING
        return every and all(_distance(group, seen, above=False) == -np.inf for group in groups)

    def run(errors: list[float]) -> list[Simulation]:
        runs: list[Simulation] = []
        for true in errors:
            runs.append(simulate(true))
            if passed(runs[-1][1], max(value, _small(np.concatenate(runs[0][1])))):
                break
        return runs

    return run


def errors_tried(posterior: Posterior, value: float) -> list[float]:
    """Return the true errors that an interval tries: none, and some around the estimate."""
    unit = _unit(posterior)
    tried = (value + step * unit for step in TRIED)
    return [0.0, *(true for true in tried if true > 0.1 * unit)]


def _unit(posterior: Posterior) -> float:
    """Return the standard error of a mean gap."""
    classes, cells = posterior.z.shape
    # The mean over classes is known better than that of one, though not by as much as if all had one gap.
    return float((posterior.scale * np.sqrt(cells)).mean() * classes**-0.25)


def _ends(runs: list[Simulation], value: float, ladder: Array, *, above: bool) -> Array:
    """Return the true error under which `value` lies in each tail of the ladder, over all kinds of gap.

    The chance of an estimate beyond `value`, as a normal quantile, is close to a line in the true error; the
    line through the errors nearby has less noise than any of them.
    """
    kinds = max(len(groups) for _, groups in runs)
    ends = []
    for kind in range(kinds):
        some = [(true, groups[kind]) for true, groups in runs if len(groups) > kind]
        some = [(true, estimates) for true, estimates in some if estimates.size >= REACHING]
        if not some:
            continue
        true, estimates = np.array([true for true, _ in some]), [each for _, each in some]
        far = np.array([_distance(each, value, above) for each in estimates])
        # In the lower end the tail grows with the true error, in the upper one it shrinks.
        rising = far if above else -far
        ends.append(_crossings(true, rising, -ladder if above else ladder))
    return np.min(ends, axis=0) if above else np.max(ends, axis=0)


def _crossings(true: Array, quantile: Array, levels: Array) -> Array:
    """Return where rising normal quantiles reach each level, along a line through those nearby.

    Infinite ones say no more than where it is not.
    """
    from scipy.special import ndtr

    first = float(true[np.isneginf(quantile)].max(initial=true[0]))
    last = float(true[np.isposinf(quantile)].min(initial=2 * true[-1] - true[0]))
    known = np.isfinite(quantile)
    true, quantile = true[known], quantile[known]
    if true.size < 2:
        alone = (first + last) / 2 if true.size == 0 else float(np.clip(true[0], first, max(first, last)))
        return np.full(levels.shape, alone)
    # What a share tells about its quantile, in a normal sample: little where hardly any estimate lies.
    told = np.exp(-quantile * quantile) / (ndtr(quantile) * ndtr(-quantile))
    near = told * np.exp(-0.5 * ((quantile - levels[:, None]) / NEARBY) ** 2) + 1e-12
    near /= near.sum(axis=1, keepdims=True)
    middle, height = (near * true).sum(axis=1), (near * quantile).sum(axis=1)
    away = true - middle[:, None]
    width = np.maximum((near * away**2).sum(axis=1), 1e-300)
    slope = (near * away * (quantile - height[:, None])).sum(axis=1) / width
    flat = np.where(levels < height, first, last)
    reach = np.divide(levels - height, slope, out=flat - middle, where=slope > 0) + middle
    return np.clip(reach, first, max(first, last))


def _distance(estimates: Array, value: float, above: bool) -> float:
    """Return the normal quantile of the share of estimates beyond a value, counted softly.

    It is infinite where hardly any, or nearly all, lie there.
    """
    from scipy.special import ndtr, ndtri

    width = max(SOFT * float(estimates.std()), 1e-12)
    share = float(ndtr((estimates - value if above else value - estimates) / width).mean())
    least = 0.5 / estimates.size
    return float(ndtri(share)) if least < share < 1 - least else float(np.copysign(np.inf, share - 0.5))


def _share_below(value: float, groups: list[Array]) -> float:
    """Return the largest share, over the kinds of gap, of estimates below a value."""
    # An estimate that ties with the value lies below it, whatever rounding says.
    return max(float(np.mean(group < value + TIED)) for group in groups if group.size >= REACHING)


def _small(estimates: Array) -> float:
    """Return what is small but usual among estimates of calibrated data."""
    return float(np.quantile(estimates, SMALL))


def of_other(
    estimator: Estimator,
    problems: list[ScoreData],
    posterior: Posterior,
    value: float,
    *,
    norm: Norm,
    level: float,
    keys: Sequence[int],
    spread: float,
) -> tuple[tuple[float, float], Array]:
    """Return the interval of the true error by any estimator, and its values for calibrated data.

    The estimator is applied to data simulated along gaps of the same shapes as for the default.
    """
    posterior = posterior.coarser(FINEST)
    cells = [SimulationGrid.of(posterior[k : k + 1]) for k in range(len(posterior.z))]
    shaped = shapes(posterior, streams(keys)[1], CURVES)[1]
    # Gaps are read at the scores of rows, where rounding must not choose among cells.
    grids, means = zip(*(one.by_score(gap) for one, gap in zip(cells, shaped, strict=True)), strict=True)
    gaps = scale_to_unit_error(means, grids, norm)
    most = max_attainable_error(grids, gaps, norm)
    evidence = [_simulable(problem) for problem in problems]
    calibrated: list[Array] = []

    def simulate(true: float) -> Simulation:
        possible = scaled_to_error(true, gaps, grids, norm)
        each_rng, estimates = streams(keys)[1], []
        reached = most >= true
        curves = np.flatnonzero(reached) if reached.any() else range(CURVES)
        for problem, sim_grid, gap, rng in zip(evidence, grids, possible, each_rng, strict=True):

            def probability(score: Array, knots: Array = sim_grid.score, gap: Array = gap) -> Array:
                along = np.array([np.interp(score, knots, gap[i]) for i in curves])
                return np.clip(score + along, 0.0, 1.0)

            estimates.append(estimator.fit(problem.simulate_outcomes(probability, rng, ALONG)).error(norm))
        estimate = combined(np.stack(estimates, axis=-1), norm)
        if true == 0:
            calibrated.append(estimate)
        middle = estimate.mean()
        estimate = middle + spread * (estimate - middle)
        return (true, [estimate]) if reached.any() else (float(most.max()), [estimate])

    ends = invert(lambda errors: [simulate(true) for true in errors], value, posterior, level)
    return ends, calibrated[0]


def _simulable(problem: ScoreData) -> ScoreData:
    """Return evidence on which outcomes are drawn at a bounded cost, whatever the order of its rows."""
    if not isinstance(problem, Sample):
        return problem
    return Cells.of(problem) if problem.expanded_size > CELLS_FROM else problem.repeated().sorted()

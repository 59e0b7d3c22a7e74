"""An interval for the true error: the errors under which the observed estimate is not surprising.

For a grid of true errors, data are simulated whose gap has that error and a shape drawn from the
posterior; the interval holds every error under which the observed estimate lies between the tails.
At weak signals the sampling distribution of an estimate leans and jumps, which this takes as it is,
where a bootstrap or a normal approximation fails.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from calibrant.estimators.base import Estimator, Norm
from calibrant.evidence import Array, Cells, Evidence, Sample
from calibrant.inference.null import error
from calibrant.posterior.clock import CELLS
from calibrant.posterior.gap import Posterior, Terms
from calibrant.questions.notions import combined

# True errors tried, as distances from the estimate in standard errors of a mean, and sets simulated for each.
TRIED, DRAWN = (-3.5, -2.0, -0.8, 0.8, 2.0, 3.5, 6.0), 200
# The shape of the gap was learnt from the data that the interval is for: each tail is this much smaller.
THINNER = 0.8
# Shapes keep this much of the process's own spread: with all of it they are rougher than gaps are.
CALMER = 0.7
# Estimates below this quantile of calibrated data are taken for small by luck.
SMALL = 0.03
# Simulated estimates that a tail must hold; a smaller one is drawn out from there like a normal tail.
HELD = 2
# Of the sets, each kind of gap has at least the share FAIR, unless its chance is below RARE; a kind that
# reaches a true error in too few sets is left out there; and steps to bring a clipped gap to its error.
FAIR, RARE, REACHING, FITTED = 0.35, 0.002, 20, 4
# Numbers simulated for each true error; many cells or classes get fewer data sets, but enough.
TOGETHER, ENOUGH = 1 << 16, 100
# Beyond this many rows other estimators are simulated on cells.
CELLS_FROM = 4096

Simulation = tuple[float, list[Array]]


def interval(
    posterior: Posterior,
    n: float,
    value: float,
    *,
    norm: Norm,
    level: float,
    rng: np.random.Generator,
    shared: bool = False,
    spread: float = 1.0,
    drawn: int = DRAWN,
) -> tuple[float, float]:
    """Return an interval for the true error of a problem, or of all classes of a model together.

    Parameters
    ----------
    posterior : Posterior
        Of the problem, or of each class.
    n : float
        Effective number of rows.
    value : float
        The observed estimate.
    shared : bool
        Whether classes are judged together.
    spread : float
        How much wider the mean over classes spreads than if they were independent.
    """
    classes, cells = posterior.z.shape
    size = int(np.clip(TOGETHER // (classes * cells), min(ENOUGH, drawn), drawn))
    worlds = [World.of(posterior, k) for k in range(classes)]
    kind, gaps = shapes(posterior, rng, size)
    gaps = _alike(gaps, worlds, norm)
    noise = [rng.standard_normal(gap.shape) for gap in gaps]
    luck = _even_out(worlds, gaps, noise, value, n, norm, rng, kind)
    most = combined(np.stack([w.most(gap, norm) for w, gap in zip(worlds, gaps, strict=True)], axis=-1), norm)

    def simulate(true: float) -> Simulation:
        possible = _of_size(true, gaps, worlds, norm)
        terms = [
            world.posterior.again(*world.data(gap, shock)).terms(norm)
            for world, gap, shock in zip(worlds, possible, noise, strict=True)
        ]
        each = np.stack(
            [true_error(gap, w.mass, norm) for w, gap in zip(worlds, possible, strict=True)], axis=-1
        )
        lucky = luck * np.stack(
            [sampling(gap, w.mass, e, norm, n) for w, gap, e in zip(worlds, possible, each.T, strict=True)],
            axis=-1,
        )
        whole = combined(each, norm)
        # What sampling does to each class's own error moves the combined one by its share.
        if norm == "l1":
            moved = lucky.mean(axis=-1)
        else:
            moved = (each * lucky).mean(axis=-1) / np.maximum(whole, 1e-12)
        stacked = Terms(*(np.stack(term, axis=1) for term in zip(*terms, strict=True)))
        estimate = error(stacked, norm, cells) if shared else combined(error(stacked, norm), norm)
        estimate = estimate.astype(np.float64) + moved
        middle = estimate.mean()
        estimate = middle + spread * (estimate - middle)
        reached = most >= true
        groups = [estimate[reached & (kind == member)] for member in np.unique(kind)]
        groups = [group for group in groups if group.size >= REACHING]
        return (true, groups) if groups else (float(whole.mean()), [estimate])

    allowed = allowance(posterior, value, norm) if classes > 2 or cells > CELLS else 0.0
    return invert(simulate, value, posterior, level, allowed=allowed)


@dataclass(frozen=True, eq=False)
class World:
    """The scores of one problem, on which data are simulated: cells, or the distinct scores if few.

    Attributes
    ----------
    posterior : Posterior
        Of this problem alone.
    mass, score : arrays
        Share of the rows, and score, at each point.
    noise : array
        Variance of the mean residual at each point for outcomes of variance one, times its share squared.
    """

    posterior: Posterior
    mass: Array
    score: Array
    noise: Array

    @classmethod
    def of(cls, posterior: Posterior, k: int) -> World:
        """Return the world of problem k."""
        own = posterior[k : k + 1]
        at = own.points(0)
        return cls(own, at.mass, at.score, at.mass**2 / np.maximum(at.rows, 1e-300))

    def most(self, gap: Array, norm: Norm) -> Array:
        """Return the largest error that gaps of these signs can have."""
        furthest = np.where(gap > 0, 1 - self.score, np.where(gap < 0, -self.score, 0.0))
        return true_error(furthest, self.mass, norm)

    def sd(self, possible: Array) -> Array:
        """Return the standard deviation of the residuals at each point, as a share of all rows."""
        p = self.score + possible
        variance = p * (1 - p) * self.noise
        if not self.posterior.discrete(0):
            # No more than four times what the clock gave a cell.
            variance = np.minimum(variance, 4 * self.posterior.scale[0] ** 2)
        return np.sqrt(np.maximum(variance, 0.0))

    def data(self, possible: Array, noise: Array) -> tuple[Array, Array | None]:
        """Return unit-noise data, (sets, ...), with these gaps per row and standard normal noise.

        They are cosine coefficients over the cells and, where scores are few, the data at each.
        """
        from scipy.fft import dct

        p = self.posterior
        residual = possible * self.mass + noise * self.sd(possible)
        if p.few is not None and p.discrete(0):
            held = p.few.share[0] > 0
            cells, at_values = residual @ p.few.overlap[0][:, held].T, np.zeros((len(residual), held.size))
            at_values[:, held] = residual / p.few.unit[0, held]
            return dct((cells / p.scale[0]).astype(np.float32), norm="ortho"), at_values
        cells = np.zeros((len(residual), p.z.shape[-1]), dtype=np.float32)
        cells[:, p.mass[0] > 0] = residual / p.scale[0]
        return dct(cells, norm="ortho"), None


def _alike(drawn: list[Array], worlds: list[World], norm: Norm) -> list[Array]:
    """Return gaps per row brought to a combined error of one."""

    def whole() -> Array:
        errors = [true_error(gap, world.mass, norm) for gap, world in zip(drawn, worlds, strict=True)]
        return combined(np.stack(errors, axis=-1), norm)

    lost = whole() < 1e-9
    for gap in drawn:
        gap[lost] = 1.0
    size = whole()[:, None]
    return [gap / size for gap in drawn]


def _of_size(true: float, gaps: list[Array], worlds: list[World], norm: Norm) -> list[Array]:
    """Return gaps with this combined error that scores allow; those that cannot have it go as far as they can."""
    factor: Array = np.full(len(gaps[0]), true)
    for _ in range(FITTED):
        possible = [
            np.clip(factor[:, None] * gap, -world.score, 1 - world.score)
            for gap, world in zip(gaps, worlds, strict=True)
        ]
        errors = [true_error(gap, world.mass, norm) for gap, world in zip(possible, worlds, strict=True)]
        whole = combined(np.stack(errors, axis=-1), norm)
        if np.all(whole > 0.999 * true):
            break
        factor = np.minimum(factor * true / np.maximum(whole, 1e-12), 1e6)
    return possible


def _even_out(
    worlds: list[World],
    gaps: list[Array],
    noise: list[Array],
    value: float,
    n: float,
    norm: Norm,
    rng: np.random.Generator,
    kind: Array,
) -> Array:
    """Spread what moves an estimate most evenly over the sets, and return the luck of sampling of each class.

    Where a gap is plain its estimate moves with the sum of the residuals signed by the gap, and with the
    scores that were sampled. Both together are one normal variable; that its values are those of an
    even sample makes the ends of an interval depend little on the seed.
    """
    from scipy.special import ndtri

    size, classes = len(noise[0]), len(noise)
    ways, chances = [], []
    for world, gap in zip(worlds, gaps, strict=True):
        possible = np.clip(value * gap, -world.score, 1 - world.score)
        ways.append(np.sign(gap) * world.sd(possible))
        each = true_error(possible, world.mass, norm)
        chances.append(sampling(possible, world.mass, each, norm, n))
    luck = rng.standard_normal((size, classes))
    way = np.concatenate([*ways, np.stack(chances, axis=-1)], axis=-1)
    length = np.sqrt((way * way).sum(axis=-1, keepdims=True))
    way = np.divide(way, length, out=np.zeros(way.shape), where=length > 0)
    every = np.concatenate([*noise, luck], axis=-1)
    even = np.empty(size)
    for member in np.unique(kind):
        some = np.flatnonzero(kind == member)
        even[some] = (rng.permutation(some.size) + rng.random(some.size)) / some.size
    moved = ndtri(np.clip(even, 1e-12, 1 - 1e-12)) - (every * way).sum(axis=-1)
    every += moved[:, None] * way
    at = 0
    for k, each in enumerate(noise):
        noise[k] = every[:, at : at + each.shape[1]]
        at += each.shape[1]
    return every[:, at:]


def allowance(posterior: Posterior, value: float, norm: Norm) -> float:
    """Return half of what noise adds to the error, which the lower end of an interval allows for.

    The mean over classes, and an estimate from many rows, has little noise left but all of its bias.
    """
    mass = posterior.mass
    firm = true_error(posterior.gap / np.maximum(mass, 1e-300), mass, norm)
    over, under = posterior.own_sides
    whole = combined(over + under, norm) if norm == "l1" else value
    return max(0.0, float(whole - combined(firm, norm)) / 2)


def shapes(posterior: Posterior, rng: np.random.Generator, size: int) -> tuple[Array, list[Array]]:
    """Draw gaps per row from the posterior, not yet of a common error: their kind, and (size, points) of each class.

    The kinds are smooth gaps and others, each with a fair number of sets unless the data rule it out.
    """
    classes = len(posterior.z)
    weight = posterior.weight[:, 1:] / posterior.weight[:, 1:].sum(axis=-1, keepdims=True)
    local = float(1 - weight[:, 0].mean())
    share = 0.0 if local < RARE else 1.0 if local > 1 - RARE else float(np.clip(local, FAIR, 1 - FAIR))
    count = int(round(share * size))
    gaps = []
    for k in range(classes):
        drawn = [posterior.shapes(k, 1, rng, size - count, CALMER)]
        if count:
            others = weight[k, 1:] / max(weight[k, 1:].sum(), 1e-300)
            by_value = rng.binomial(count, others[1]) if others.size > 1 and posterior.discrete(k) else 0
            drawn.append(posterior.shapes(k, 2, rng, count - by_value))
            if by_value:
                drawn.append(posterior.shapes(k, 3, rng, by_value))
        gaps.append(np.concatenate(drawn))
    return np.repeat([0, 1], [size - count, count]), gaps


def true_error(gap: Array, mass: Array, norm: Norm) -> Array:
    """Return the error of gaps per row in cells of this mass, the last axis running over cells."""
    if norm == "l1":
        return np.asarray((np.abs(gap) * mass).sum(axis=-1))
    return np.asarray(np.sqrt((gap * gap * mass).sum(axis=-1)))


def sampling(gap: Array, mass: Array, each: Array, norm: Norm, n: float) -> Array:
    """Return the standard deviation of a sample's own error around the true one.

    The scores are a sample too.
    """
    if norm == "l1":
        return np.asarray(np.sqrt(np.maximum((gap * gap * mass).sum(axis=-1) - each**2, 0.0) / n))
    fourth = np.maximum((gap**4 * mass).sum(axis=-1) - each**4, 0.0)
    return np.asarray(np.sqrt(fourth / n) / (2 * np.maximum(each, 1e-12)))


def invert(
    simulate: Callable[[float], Simulation],
    value: float,
    posterior: Posterior,
    level: float,
    allowed: float = 0.0,
) -> tuple[float, float]:
    """Return the range of true errors under which `value` lies between the tails of simulated estimates.

    `simulate` takes a true error and returns the one it could realise, and estimates for each kind of
    gap: the value may lie between the tails of any. The errors tried do not depend on the level, so
    that intervals are nested.
    """
    tail = THINNER * (1 - level) / 2
    unit = float((posterior.scale * np.sqrt(posterior.z.shape[-1])).mean())
    small = max(0.0, value - allowed)
    tried = [value + step * unit for step in TRIED]
    grid = [0.0, *(true for true in tried if true > 0.1 * unit)]
    true, low, high, usual = _quantiles(simulate, grid, tail)
    while low[-1] < max(value, usual) and grid[-1] < 1 and true[-1] > true[-2] + 1e-9:
        grid = [grid[-1] + step * (2 * unit + grid[-1] / 4) for step in (1, 2)]
        *more, _ = _quantiles(simulate, grid, tail)
        true, low, high = (np.concatenate(pair) for pair in zip((true, low, high), more, strict=True))
    low, high = np.maximum.accumulate(low), np.maximum.accumulate(high)
    bottom = 0.0 if high[0] >= small else float(np.interp(small, high, true))
    # An estimate that is small by luck, even for a calibrated model, must not make the interval short.
    seen = max(value, usual)
    top = float(true[-1]) if low[-1] < seen else float(np.interp(seen, low, true))
    return max(0.0, min(bottom, value)), min(1.0, max(top, value))


def _quantiles(
    simulate: Callable[[float], Simulation], grid: list[float], tail: float
) -> tuple[Array, Array, Array, float]:
    """Return true errors, both tails of the estimates, and what is small but usual for the first error."""
    pairs = [simulate(float(true)) for true in grid]
    tails = [np.array([_tails(estimates, tail) for estimates in groups]) for _, groups in pairs]
    low, high = np.array([ends[:, 0].min() for ends in tails]), np.array([ends[:, 1].max() for ends in tails])
    usual = float(_smooth_quantiles(np.sort(np.concatenate(pairs[0][1])), np.array([SMALL]))[0])
    return np.array([true for true, _ in pairs]), low, high, usual


def _tails(estimates: Array, tail: float) -> Array:
    """Return both quantiles of a tail, also of one too small for the simulations to hold.

    >>> _tails(np.arange(101.0), 0.1).round()
    array([10., 90.])
    >>> _tails(np.arange(101.0), 0.001).round()
    array([-21., 121.])
    """
    held = max(tail, min(0.25, HELD / estimates.size))
    low, middle, high = _smooth_quantiles(np.sort(estimates), np.array([held, 0.5, 1 - held]))
    if held > tail:
        further = NormalDist().inv_cdf(tail) / NormalDist().inv_cdf(held)
        low, high = (middle + further * (end - middle) for end in (low, high))
    return np.array([low, high])


def _smooth_quantiles(ordered: Array, shares: Array) -> Array:
    """Return quantiles as means of all order statistics with beta weights (Harrell and Davis).

    They vary less than single order statistics do, and grow with the share.
    """
    from scipy.special import betainc

    n = ordered.size
    upto = betainc((n + 1) * shares[:, None], (n + 1) * (1 - shares[:, None]), np.arange(n + 1) / n)
    return np.asarray(np.diff(upto, axis=-1) @ ordered)


def of_other(
    estimator: Estimator,
    problems: list[Evidence],
    posterior: Posterior,
    value: float,
    *,
    norm: Norm,
    level: float,
    rng: np.random.Generator,
    spread: float,
) -> tuple[tuple[float, float], Array]:
    """Return the interval of the true error by any estimator, and its values for calibrated data.

    The estimator is applied to data simulated along the curve that the posterior fits.
    """
    size = 100
    mass = np.maximum(posterior.mass, 1e-300)
    curve = posterior.gap / mass
    whole = float(combined(true_error(curve, posterior.mass, norm), norm))
    curve = np.ones_like(curve) if whole < 1e-9 else curve / whole
    evidence = [_simulable(problem) for problem in problems]
    orders = [np.argsort(score, kind="stable") for score in posterior.score]
    seed = int(rng.integers(2**63))
    seen: dict[float, Array] = {}

    def simulate(true: float) -> Simulation:
        errors, truth = [], []
        again = np.random.default_rng(seed)
        for k, (problem, order) in enumerate(zip(evidence, orders, strict=True)):
            knots, gap = posterior.score[k][order], true * curve[k][order]

            def probability(score: Array, knots: Array = knots, gap: Array = gap) -> Array:
                return np.clip(score + np.interp(score, knots, gap), 0.0, 1.0)

            errors.append(estimator.fit(problem.redraw(probability, again, size)).error(norm))
            clipped = np.clip(true * curve[k], -posterior.score[k], 1 - posterior.score[k])
            truth.append(true_error(clipped, posterior.mass[k], norm))
        estimate = combined(np.stack(errors, axis=-1), norm)
        seen[true] = estimate
        middle = estimate.mean()
        return float(combined(np.stack(truth), norm)), [middle + spread * (estimate - middle)]

    return invert(simulate, value, posterior, level), seen[0.0]


def _simulable(problem: Evidence) -> Evidence:
    """Return evidence on which many outcomes can be drawn at a bounded cost."""
    if isinstance(problem, Sample) and problem.shape[-1] > CELLS_FROM:
        return Cells.of(problem)
    return problem

"""An interval for the true error: the errors under which the observed estimate is not surprising.

For a grid of true errors, data are simulated whose gap has that error and a shape drawn from the
posterior; the interval holds every error under which the observed estimate lies between the tails.
At weak signals the sampling distribution of an estimate leans and jumps, which this takes as it is,
where a bootstrap or a normal approximation fails.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist

import numpy as np

from calibrant.estimators.base import Estimator, Norm
from calibrant.evidence import Array, Cells, Evidence, Residuals, Sample
from calibrant.inference.null import error
from calibrant.posterior.gap import CELLS, Posterior
from calibrant.questions.notions import combined

# True errors tried, and data sets simulated for each.
TRIED, DRAWN = 12, 200
# The shape of the gap was learnt from the data that the interval is for: each tail is this much smaller.
THINNER = 0.8
# Shapes keep this much of the posterior's own spread: with all of it they are rougher than gaps are.
CALMER = 0.7
# Estimates below this quantile of calibrated data are taken for small by luck.
SMALL = 0.03
# Simulated estimates that a tail must hold; a smaller one is drawn out from there like a normal tail.
HELD = 2
# Numbers simulated for each true error; many cells or classes get fewer data sets, but enough.
TOGETHER, ENOUGH = 1 << 16, 100
# Distinct scores that are too few to borrow from each other.
FEW = 8
# Beyond this many rows other estimators are simulated on cells.
CELLS_FROM = 4096


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
    gap = gaps(posterior, norm, rng, size)
    noise = rng.standard_normal(gap.shape)
    luck = rng.standard_normal((size, classes))

    def simulate(true: float) -> tuple[float, Array]:
        possible, z = simulated(true * gap, noise, posterior, n)
        again = posterior.again(z)
        each = true_error(possible, posterior.mass, norm)
        chance = luck * sampling(possible, posterior.mass, each, norm, n)
        # What sampling does to each class's own error moves the combined one by its share.
        if norm == "l1":
            moved = chance.mean(axis=-1)
        else:
            moved = (each * chance).mean(axis=-1) / np.maximum(combined(each, norm), 1e-12)
        if shared or classes == 1:
            estimate = error(again, norm, classes)
        else:
            estimate = combined(error(again, norm).reshape(size, classes), norm)
        estimate = estimate + moved
        middle = estimate.mean()
        return float(combined(each, norm).mean()), middle + spread * (estimate - middle)

    allowed = allowance(posterior, value, norm) if classes > 2 or cells > CELLS else 0.0
    return invert(simulate, value, posterior, level, allowed=allowed)


def simulated(gap: Array, noise: Array, posterior: Posterior, n: float) -> tuple[Array, Array]:
    """Return gaps per row cut to what scores allow, and cosine coefficients of data that have them.

    Parameters
    ----------
    gap, noise : arrays (sets, classes, cells)
        The noise is standard normal.
    """
    from scipy.fft import dct

    mass, score, scale = posterior.mass, posterior.score, posterior.scale[:, None]
    possible = np.clip(gap, -score, 1 - score)
    p = score + possible
    # A cell's variance under this gap, against the unit that the clock gave it.
    noisy = noise * np.sqrt(np.clip(p * (1 - p) * mass / (n * scale**2), 0.0, 4.0))
    return possible, dct(possible * mass / scale + noisy, norm="ortho")


def allowance(posterior: Posterior, value: float, norm: Norm) -> float:
    """Return half of what noise adds to the error, which the lower end of an interval allows for.

    The mean over classes, and an estimate from many rows, has little noise left but all of its bias.
    """
    mass = posterior.mass
    firm = true_error(posterior.gap / np.maximum(mass, 1e-300), mass, norm)
    whole = combined(posterior.sides[0] + posterior.sides[1], norm) if norm == "l1" else value
    return max(0.0, float(whole - combined(firm, norm)) / 2)


def few_scores(residuals: Residuals, norm: Norm, level: float, rng: np.random.Generator) -> float:
    """Return the upper end for a problem with a handful of distinct scores; 0 for more of them.

    Where a few scores are shared by all rows the gap at each is known by itself, and no smoothness
    can be borrowed: the posterior is too sure of a small gap. Each gap is drawn from its own normal
    distribution instead; its absolute value reads high rather than low.
    """
    held = residuals.mass > 0
    if held.ndim != 1 or np.count_nonzero(held) > FEW:
        return 0.0
    mass, score, residual, spread = (
        array[held] for array in (residuals.mass, residuals.score, residuals.residual, residuals.spread)
    )
    share, n, gap = mass / mass.sum(), mass**2 / spread, residual / mass
    # Agresti and Coull's two rows of each kind keep a frequency of 0 or 1 from having no variance.
    p = (np.clip(score + gap, 0.0, 1.0) * n + 2) / (n + 4)
    noise = rng.standard_normal((4000, mass.size))
    drawn = np.clip(gap + np.sqrt(p * (1 - p) / n) * noise, -score, 1 - score)
    return float(np.quantile(true_error(drawn, share, norm), (1 + level) / 2))


def gaps(posterior: Posterior, norm: Norm, rng: np.random.Generator, size: int) -> Array:
    """Draw gaps per row from the posterior, (size, classes, cells), with a combined error of one."""
    gap, mass = shapes(posterior, rng, size), posterior.mass
    whole = combined(true_error(gap, mass, norm), norm)
    gap[whole < 1e-9] = 1.0
    whole = combined(true_error(gap, mass, norm), norm)
    return np.asarray(gap / whole[:, None, None])


def shapes(posterior: Posterior, rng: np.random.Generator, size: int) -> Array:
    """Draw the same, not yet brought to a common error."""
    drawn = posterior.draw(rng, size, CALMER).transpose(1, 0, 2)
    mass = posterior.mass
    return np.divide(drawn, mass, out=np.zeros(drawn.shape), where=mass > 0)


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
    simulate: Callable[[float], tuple[float, Array]],
    value: float,
    posterior: Posterior,
    level: float,
    tried: int = TRIED,
    allowed: float = 0.0,
) -> tuple[float, float]:
    """Return the range of true errors under which `value` lies between the tails of simulated estimates.

    `simulate` takes a true error and returns the one it could realise, and estimates.
    """
    tail = THINNER * (1 - level) / 2
    unit = float((posterior.scale * np.sqrt(posterior.z.shape[-1])).mean())
    small = max(0.0, value - allowed)
    first = max(0.1 * unit, value - 5 * unit)
    grid = [0.0, *np.linspace(first, value + 6 * unit, tried - 1)]
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
    simulate: Callable[[float], tuple[float, Array]], grid: list[float], tail: float
) -> tuple[Array, Array, Array, float]:
    """Return true errors, both tails of the estimates, and what is small but usual for the first error."""
    pairs = [simulate(float(true)) for true in grid]
    ends = np.array([_tails(estimates, tail) for _, estimates in pairs])
    usual = float(np.quantile(pairs[0][1], SMALL))
    return np.array([true for true, _ in pairs]), ends[:, 0], ends[:, 1], usual


def _tails(estimates: Array, tail: float) -> Array:
    """Return both quantiles of a tail, also of one too small for the simulations to hold.

    >>> _tails(np.arange(101.0), 0.1)
    array([10., 90.])
    >>> _tails(np.arange(101.0), 0.001).round()
    array([-22., 122.])
    """
    held = max(tail, min(0.25, HELD / estimates.size))
    low, middle, high = np.quantile(estimates, [held, 0.5, 1 - held])
    if held > tail:
        further = NormalDist().inv_cdf(tail) / NormalDist().inv_cdf(held)
        low, high = (middle + further * (end - middle) for end in (low, high))
    return np.array([low, high])


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

    def simulate(true: float) -> tuple[float, Array]:
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
        return float(combined(np.stack(truth), norm)), middle + spread * (estimate - middle)

    return invert(simulate, value, posterior, level, tried=8), seen[0.0]


def _simulable(problem: Evidence) -> Evidence:
    """Return evidence on which many outcomes can be drawn at a bounded cost."""
    if isinstance(problem, Sample) and problem.shape[-1] > CELLS_FROM:
        return Cells.of(problem)
    return problem

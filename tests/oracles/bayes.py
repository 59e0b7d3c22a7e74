"""The posterior mean of the calibration error, one problem at a time, by plain loops and dense matrices.

The constants are the library's; how they are used is written down anew. Two simplifications of the library
are part of what is defined here, for they change the number: where a gap is the same in a whole stretch,
the mixture over its sizes becomes one normal variable with the same mean and variance; and a wave of a
stretch, like the process over all scores, has one shrinkage matrix, the average over sizes. Members return
their likelihood against no gap, the expected negative and positive part of the gap, and the expected square
of its sum in each cell, all as shares of the rows.
"""

import math
from dataclasses import dataclass

import numpy as np

from calibrant.posterior import clock, gap, process, tree, values


def triweight(u):
    """Characteristic function of the triweight kernel of standard deviation 1, by quadrature."""
    x = np.linspace(-1, 1, 20001)
    return float(np.trapezoid(35 / 32 * (1 - x * x) ** 3 * np.cos(3 * u * x), x))


def spread_evenly(ends, sums, cuts):
    """Sums over stretches between cuts when each step's sum is spread evenly over its stretch."""
    found = np.zeros(len(cuts) - 1)
    start = 0.0
    for end, value in zip(ends, sums, strict=True):
        for j in range(len(found)):
            overlap = min(end, cuts[j + 1]) - max(start, cuts[j])
            if overlap > 0 and end > start:
                found[j] += value * overlap / (end - start)
        start = end
    return found


def cosines(g):
    """Orthonormal cosine matrix: row k holds frequency k."""
    matrix = np.array([[math.cos(math.pi * k * (j + 0.5) / g) for j in range(g)] for k in range(g)])
    matrix *= math.sqrt(2 / g)
    matrix[0] /= math.sqrt(2)
    return matrix


def against_noise(x, signal):
    """Density of data whose signal has this covariance matrix, against that of standard normal noise."""
    covariance = np.eye(len(x)) + signal
    quadratic = x @ x - x @ np.linalg.solve(covariance, x)
    return math.exp(0.5 * quadratic) / math.sqrt(np.linalg.det(covariance))


def parts(mean, sd):
    """Expected negative and positive part of a normal variable."""
    if sd <= 0:
        return max(-mean, 0.0), max(mean, 0.0)
    density = math.exp(-0.5 * (mean / sd) ** 2) / math.sqrt(2 * math.pi)
    up = sd * density + mean * 0.5 * math.erfc(-mean / sd / math.sqrt(2))
    return up - mean, up


@dataclass
class Problem:
    """Data with unit noise: over cells of equal variance, and at each distinct score."""

    n: int
    score: np.ndarray
    count: np.ndarray
    residual: np.ndarray
    variance: np.ndarray
    x: np.ndarray
    mass: np.ndarray
    unit: float
    cuts: np.ndarray


def problem(score, outcome):
    """Look at the residuals, and cut the clock into cells; for up to 1024 rows."""
    s, inverse, count = np.unique(score, return_inverse=True, return_counts=True)
    n = len(score)
    r = np.bincount(inverse, np.asarray(outcome, dtype=float)) - count * s
    points = min(n, clock.LOOK)
    width = min(clock.LOOK_WIDTH * (0.75 * n) ** -0.2, clock.LOOK_ROWS / n)
    mean = spread_evenly(np.cumsum(count), r, np.linspace(0, n, points + 1)) * points / n
    basis = cosines(points)
    gain = np.array([triweight(math.pi * width * k) for k in range(points)])
    smooth = basis.T @ (gain * (basis @ mean))
    at = (np.cumsum(count) - count / 2) * points / n - 0.5
    p = np.clip(s + np.interp(at, np.arange(points), smooth), 0, 1)
    v = (p * (1 - p) + s * (1 - s)) / 2 + clock.LEAST / math.sqrt(n)
    time = np.cumsum(count * v)
    g = max(1, min(n, clock.CELLS) // 2 * 2)
    cuts = time[-1] * np.linspace(0, 1, g + 1)
    unit = math.sqrt(time[-1] / g)
    sums, rows = (spread_evenly(time, term, cuts) for term in (r, count))
    return Problem(n, s, count, r, v, sums / unit, rows / n, unit / n, cuts)


def by_process(p):
    """One process over all scores."""
    g = len(p.x)
    basis = cosines(g)
    z = basis @ p.x
    e = 1 / (g * p.unit**2)

    def sizes(largest):
        """Variances against the noise, evenly on a logarithmic scale."""
        least = min(1.0, e * process.SMALLEST**2)
        steps = process.SIZES
        return [least * (e * largest**2 / least) ** (i / (steps - 1)) for i in range(steps)]

    no_mean, no_shape = process.NO_MEAN, process.NO_SHAPE
    means = [(no_mean, 0.0)]
    means += [((1 - no_mean) / process.SIZES, t) for t in sizes(process.LARGEST_MEAN)]
    roughness = list(process.ROUGHNESS)
    while 4 * roughness[-1] < g / 1.5:
        roughness.append(4 * roughness[-1])
    weight = np.array([process.ROUGHER**i for i in range(len(roughness))])
    weight = weight / weight.sum()
    shapes = [(no_shape, np.zeros(g - 1))]
    k = np.arange(1, g)
    for t in sizes(process.LARGEST):
        for share, rough in zip(weight, roughness, strict=True):
            spectrum = (1 + (k / rough) ** 2) ** -float(process.STEEPNESS)
            chance = (1 - no_shape) * share / process.SIZES
            shapes.append((chance, t * spectrum / spectrum.sum() if g > 1 else spectrum))
    by_mean = np.array([c * against_noise(z[:1], np.array([[t]])) for c, t in means])
    by_shape = np.array([c * against_noise(z[1:], np.diag(t)) for c, t in shapes])
    h = np.zeros(g)
    h[0] = sum(w * t / (1 + t) for w, (_, t) in zip(by_mean, means, strict=True)) / by_mean.sum()
    for w, (_, t) in zip(by_shape, shapes, strict=True):
        h[1:] += w * t / (1 + t) / by_shape.sum()
    mean = basis.T @ (h * z)
    sd = np.sqrt(np.diag(basis.T @ np.diag(h) @ basis))
    sides = np.zeros(2)
    for a, b in zip(mean, sd, strict=True):
        sure, unsure = np.array(parts(a, 0.0)), np.array(parts(a, b))
        sides += p.unit * (sure + gap.UNCERTAIN * (unsure - sure))
    square = mean**2 + gap.UNCERTAIN * sd**2
    return by_mean.sum() * by_shape.sum(), sides, p.unit**2 * square


def flat(x, pull):
    """Likelihood against no gap, posterior mean and variance of a gap that is the same in all cells."""
    likelihoods, means, variances = [], [], []
    for size in tree.LEVELS:
        signal = size**2 * np.outer(pull, pull)
        likelihoods.append(against_noise(x, signal) / len(tree.LEVELS))
        inverse = np.linalg.inv(np.eye(len(x)) + signal)
        means.append(size**2 * pull @ inverse @ x)
        variances.append(size**2 - size**4 * pull @ inverse @ pull)
    likelihoods, means, variances = (np.array(each) for each in (likelihoods, means, variances))
    weight = likelihoods / likelihoods.sum()
    mean = weight @ means
    return likelihoods.sum(), mean, weight @ (variances + means**2) - mean**2


def wave(x, size_of_one):
    """Likelihood against no gap, posterior mean and standard deviations of a short process.

    A gap of one adds `size_of_one` to the mean square of the data.
    """
    m = len(x)
    basis = cosines(m)
    spectrum = (1 + (np.arange(1, m) / tree.ROUGH) ** 2) ** -float(tree.STEEP)
    shape = basis[1:].T @ np.diag(spectrum / spectrum.sum()) @ basis[1:]
    level = np.outer(basis[0], basis[0])
    total, shrink = 0.0, np.zeros((m, m))
    for one in (0.0, *tree.WAVES):
        for other in (0.0, *tree.WAVES):
            prior = 1.0
            for size, missing in ((one, tree.NO_MEAN), (other, tree.NO_SHAPE)):
                prior *= missing if size == 0 else (1 - missing) / len(tree.WAVES)
            signal = size_of_one * (one**2 * level + other**2 * shape)
            chance = prior * against_noise(x, signal)
            total += chance
            shrink += chance * signal @ np.linalg.inv(np.eye(m) + signal)
    shrink /= total
    return total, shrink @ x, np.sqrt(np.diag(shrink))


def stretch(x, pull, level, number):
    """One stretch and all within, in units of the noise."""
    g = len(x)
    first, last = (int(np.round((number + i) * (g / 2**level))) for i in (0, 1))
    own, its_pull = x[first:last], pull[first:last]
    likelihood, mean, variance = flat(own, its_pull)
    sides = its_pull.sum() * np.array(parts(mean, math.sqrt(variance)))
    kinds = [(1.0, likelihood, sides, its_pull**2 * (mean**2 + variance))]
    length = last - first
    if level > 0 and math.log2(g).is_integer() and length >= tree.SHORTEST:
        likelihood, means, sds = wave(own, length * pull.mean() ** 2)
        sides = np.sum([parts(a, b) for a, b in zip(means, sds, strict=True)], axis=0)
        kinds = [(1 - tree.WAVING, *kinds[0][1:]), (tree.WAVING, likelihood, sides, means**2 + sds**2)]
    some = 1.0 if level == 0 else 1 - tree.EMPTY
    whole = 0.0 if level == 0 else tree.EMPTY
    sides, square = np.zeros(2), np.zeros(length)
    for share, likelihood, each, own_square in kinds:
        chance = some * share * likelihood
        whole, sides, square = whole + chance, sides + chance * each, square + chance * own_square
    if level < int(math.log2(g)):
        low, high = (stretch(x, pull, level + 1, 2 * number + i) for i in (0, 1))
        stop, halved = tree.STOP * whole, (1 - tree.STOP) * low[0] * high[0]
        sides = tree.STOP * sides + halved * (low[1] + high[1])
        square = tree.STOP * square + halved * np.concatenate([low[2], high[2]])
        whole = stop + halved
    return whole, sides / whole, square / whole


def by_tree(p):
    """A gap that lives in stretches."""
    likelihood, sides, square = stretch(p.x, p.mass / p.unit, 0, 0)
    return likelihood, p.unit * sides, p.unit**2 * square


def by_value(p):
    """A gap of its own at each score, and its priors before; None if scores are many.

    The first prior is that of no gap at all, the second the share of this kind among all gaps. Where a cell
    reaches over several scores, its square is that of gaps which agree in sign.
    """
    few = len(p.score) <= values.FEW and len(p.score) * values.ROWS <= p.n
    which = [i for i, m in enumerate(p.count) if few or m >= max(values.HEAVY * p.n, values.HEAVY_ROWS)]
    if not which:
        return None
    total, sides, squares = 0.0, np.zeros(2), np.zeros(len(p.score))
    for size in values.SIZES:
        likelihood, own, own_squares = 1.0 / len(values.SIZES), np.zeros(2), np.zeros(len(p.score))
        for i in which:
            # The mean residual at a score is the gap plus noise.
            seen, noise = p.residual[i] / p.count[i], p.variance[i] / p.count[i]
            spread = size**2 + noise
            likelihood *= math.sqrt(noise / spread) * math.exp(seen**2 / 2 * (1 / noise - 1 / spread))
            mean, variance = seen * size**2 / spread, noise * size**2 / spread
            own += p.count[i] / p.n * np.array(parts(mean, math.sqrt(variance)))
            own_squares[i] = mean**2 + variance
        total += likelihood
        sides += likelihood * own
        squares += likelihood * own_squares
    priors = (gap.FEW_CALIBRATED, gap.BY_VALUE) if few else (gap.CALIBRATED, gap.STANDING_OUT)
    root = p.count / p.n * np.sqrt(squares / total)
    square = spread_evenly(np.cumsum(p.count * p.variance), root, p.cuts) ** 2
    return priors, total, sides / total, square


def told(score, outcome):
    """Expected error of scores too high and of scores too low, and the expected square in each cell."""
    p = problem(score, outcome)
    value = by_value(p)
    none, special = value[0] if value else (gap.CALIBRATED, 0.0)
    some = 1 - none
    members = [
        (some * (1 - special) * (1 - gap.STRETCHES), *by_process(p)),
        (some * (1 - special) * gap.STRETCHES, *by_tree(p)),
    ]
    if value:
        members.append((some * special, *value[1:]))
    whole = none + sum(prior * likelihood for prior, likelihood, *_ in members)
    sides, square = (sum(member[0] * member[1] * member[at] for member in members) / whole for at in (2, 3))
    return p, sides, square


def errors(score, outcome):
    """Error of one problem by norm, and its two sides."""
    p, sides, square = told(score, outcome)
    held = p.mass > 0
    each = square[held] / p.mass[held]  # of the gap, times the mass of the cell
    found = {"l1": sides.sum(), "l2": math.sqrt(each.sum()), "max": math.sqrt((each / p.mass[held]).max())}
    return {norm: min(float(error), 1.0) for norm, error in found.items()}, tuple(sides)

"""The posterior mean of the calibration error, one problem at a time, by plain loops and dense matrices.

The constants are the library's; how they are used is written down anew. Two simplifications of the library
are part of what is defined here, for they change the number: where a gap is the same in a whole range,
the mixture over its sizes becomes one normal variable with the same mean and variance; and a wave of a
range, like the process over all scores, has one shrinkage matrix, the average over sizes. Members return
their likelihood against no gap, the expected negative and positive part of the gap, and the expected square
of its sum in each cell, all as shares of the rows.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.integrate import trapezoid

from calibrant.posterior import dyadic_partition, score_effects, variance_time
from calibrant.posterior.process import CELLS_PER_ROUGHNESS
from calibrant.posterior.score_effects import (
    EXTREME,
    LEAST_REPEATED_SHARE,
    MANY_PAIRS,
    RARE_FACTOR,
    RARE_ROWS,
    SMALLEST_EXPECTED_OUTCOMES,
)
from calibrant.posterior.variance_time import PILOT_BANDWIDTH
from calibrant.settings import PRIOR


def triweight(u):
    """Characteristic function of the triweight kernel of standard deviation 1, by quadrature."""
    x = np.linspace(-1, 1, 20001)
    return float(trapezoid(35 / 32 * (1 - x * x) ** 3 * np.cos(3 * u * x), x))


def overlaps(ends, cuts):
    """Share of each step, of a range that ends here, between every two cuts: (steps, cells)."""
    shares = np.zeros((len(ends), len(cuts) - 1))
    start = 0.0
    for i, end in enumerate(ends):
        for j in range(shares.shape[1]):
            overlap = min(end, cuts[j + 1]) - max(start, cuts[j])
            if overlap > 0:
                shares[i, j] = overlap / (end - start)
        start = end
    return shares


def spread_evenly(ends, sums, cuts):
    """Sums over ranges between cuts when each step's sum is spread evenly over its range."""
    return sums @ overlaps(ends, cuts)


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
    points = min(n, variance_time.PILOT_BLOCKS)
    rate = np.mean(np.asarray(outcome, dtype=float))
    largest = PRIOR.largest_pilot_bandwidth / max(4 * rate * (1 - rate), 1e-9)
    width = min(PILOT_BANDWIDTH * (0.75 * n) ** -0.2, largest / n)
    mean = spread_evenly(np.cumsum(count), r, np.linspace(0, n, points + 1)) * points / n
    basis = cosines(points)
    gain = np.array([triweight(math.pi * width * k) for k in range(points)])
    smooth = basis.T @ (gain * (basis @ mean))
    at = (np.cumsum(count) - count / 2) * points / n - 0.5
    p = np.clip(s + np.interp(at, np.arange(points), smooth), 0, 1)
    v = (
        PRIOR.pilot_variance_weight * p * (1 - p)
        + (1 - PRIOR.pilot_variance_weight) * s * (1 - s)
        + PRIOR.smallest_outcome_variance / math.sqrt(n)
    )
    time = np.cumsum(count * v)
    g = max(1, min(n, variance_time.CELLS) // 2 * 2)
    cuts = time[-1] * np.linspace(0, 1, g + 1)
    unit = math.sqrt(time[-1] / g)
    sums, rows = (spread_evenly(time, term, cuts) for term in (r, count))
    return Problem(n, s, count, r, v, sums / unit, rows / n, unit / n, cuts)


def fit_process(x, unit):
    """Likelihood of a process against no gap, its mean and standard deviation in each cell, in units."""
    g = len(x)
    basis = cosines(g)
    z = basis @ x
    e = 1 / (g * unit**2)

    def sizes(largest):
        """Variances against the noise, evenly on a logarithmic scale."""
        least = min(1.0, e * PRIOR.smallest_sd**2)
        steps = PRIOR.smooth_sd_count
        return [least * (e * largest**2 / least) ** (i / (steps - 1)) for i in range(steps)]

    no_mean, no_shape = PRIOR.probability_of_no_mean, PRIOR.probability_of_no_shape
    means = [(no_mean, 0.0)]
    means += [((1 - no_mean) / PRIOR.smooth_sd_count, t) for t in sizes(PRIOR.largest_mean_sd)]
    roughness = list(PRIOR.roughness)
    while PRIOR.roughness_ratio * roughness[-1] < g / CELLS_PER_ROUGHNESS:
        roughness.append(PRIOR.roughness_ratio * roughness[-1])
    weight = np.array([PRIOR.roughness_weight_ratio**i for i in range(len(roughness))])
    weight = weight / weight.sum()
    shapes = [(no_shape, np.zeros(g - 1))]
    k = np.arange(1, g)
    for t in sizes(PRIOR.largest_sd):
        for share, rough in zip(weight, roughness, strict=True):
            spectrum = (1 + (k / rough) ** 2) ** -PRIOR.spectrum_exponent
            chance = (1 - no_shape) * share / PRIOR.smooth_sd_count
            shapes.append((chance, t * spectrum / spectrum.sum() if g > 1 else spectrum))
    by_mean = np.array([c * against_noise(z[:1], np.array([[t]])) for c, t in means])
    by_shape = np.array([c * against_noise(z[1:], np.diag(t)) for c, t in shapes])
    h = np.zeros(g)
    h[0] = sum(w * t / (1 + t) for w, (_, t) in zip(by_mean, means, strict=True)) / by_mean.sum()
    for w, (_, t) in zip(by_shape, shapes, strict=True):
        h[1:] += w * t / (1 + t) / by_shape.sum()
    mean = basis.T @ (h * z)
    sd = np.sqrt(np.diag(basis.T @ np.diag(h) @ basis))
    return by_mean.sum() * by_shape.sum(), mean, sd


def by_process(p):
    """One process over all scores."""
    likelihood, mean, sd = fit_process(p.x, p.unit)
    sides = np.zeros(2)
    for a, b in zip(mean, sd, strict=True):
        sure, unsure = np.array(parts(a, 0.0)), np.array(parts(a, b))
        sides += p.unit * (sure + PRIOR.counted_uncertainty * (unsure - sure))
    square = mean**2 + PRIOR.counted_uncertainty * sd**2
    return likelihood, sides, p.unit**2 * square


def flat(x, pull):
    """Likelihood against no gap, posterior mean and variance of a gap that is the same in all cells."""
    likelihoods, means, variances = [], [], []
    for size in dyadic_partition.constant_sds():
        signal = size**2 * np.outer(pull, pull)
        likelihoods.append(against_noise(x, signal) / len(dyadic_partition.constant_sds()))
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
    spectrum = (1 + (np.arange(1, m) / PRIOR.process_roughness) ** 2) ** -PRIOR.spectrum_exponent
    shape = basis[1:].T @ np.diag(spectrum / spectrum.sum()) @ basis[1:]
    level = np.outer(basis[0], basis[0])
    total, shrink = 0.0, np.zeros((m, m))
    for one in (0.0, *dyadic_partition.process_sds()):
        for other in (0.0, *dyadic_partition.process_sds()):
            prior = 1.0
            for size, missing in (
                (one, 1 / (1 + len(dyadic_partition.process_sds()))),
                (other, PRIOR.process_probability_of_no_shape),
            ):
                prior *= missing if size == 0 else (1 - missing) / len(dyadic_partition.process_sds())
            signal = size_of_one * (one**2 * level + other**2 * shape)
            chance = prior * against_noise(x, signal)
            total += chance
            shrink += chance * signal @ np.linalg.inv(np.eye(m) + signal)
    shrink /= total
    return total, shrink @ x, np.sqrt(np.diag(shrink))


def sum_range(x, pull, level, number, empty):
    """One range and all within, in units of the noise; one that stops is empty with this chance."""
    g = len(x)
    first, last = (int(np.round((number + i) * (g / 2**level))) for i in (0, 1))
    own, its_pull = x[first:last], pull[first:last]
    likelihood, mean, variance = flat(own, its_pull)
    sides = its_pull.sum() * np.array(parts(mean, math.sqrt(variance)))
    kinds = [(1.0, likelihood, sides, its_pull**2 * (mean**2 + variance))]
    length = last - first
    if level > 0 and math.log2(g).is_integer() and length >= PRIOR.shortest_process:
        likelihood, means, sds = wave(own, length * pull.mean() ** 2)
        sides = np.sum([parts(a, b) for a, b in zip(means, sds, strict=True)], axis=0)
        kinds = [
            (0.5, *kinds[0][1:]),
            (0.5, likelihood, sides, means**2 + sds**2),
        ]
    some = 1.0 if level == 0 else 1 - empty
    whole = 0.0 if level == 0 else empty
    sides, square = np.zeros(2), np.zeros(length)
    for share, likelihood, each, own_square in kinds:
        chance = some * share * likelihood
        whole, sides, square = whole + chance, sides + chance * each, square + chance * own_square
    if level < int(math.log2(g)):
        low, high = (sum_range(x, pull, level + 1, 2 * number + i, empty) for i in (0, 1))
        stop, halved = (
            PRIOR.probability_of_final_range * whole,
            (1 - PRIOR.probability_of_final_range) * low[0] * high[0],
        )
        sides = PRIOR.probability_of_final_range * sides + halved * (low[1] + high[1])
        square = PRIOR.probability_of_final_range * square + halved * np.concatenate([low[2], high[2]])
        whole = stop + halved
    return whole, sides / whole, square / whole


def by_tree(p):
    """A gap in ranges of the scores."""
    trees = [
        sum_range(p.x, p.mass / p.unit, 0, 0, empty) for empty in dyadic_partition.probabilities_of_no_gap()
    ]
    likelihood = sum(each[0] for each in trees)
    sides, square = (sum(each[0] * each[i] for each in trees) / likelihood for i in (1, 2))
    return likelihood / len(trees), p.unit * sides, p.unit**2 * square


@dataclass
class Point:
    """A score that rows share, or one or several scores of single rows, as sums over rows."""

    tied: bool
    rows: float = 0.0
    scores: float = 0.0
    residual: float = 0.0
    variance: float = 0.0


def coverage(p):
    """Share of the rows at shared scores, without heavy scores and those at 0 or 1; less if none are rare."""
    shared, single, rare = 0, 0, 0
    for s, m in zip(p.score, p.count, strict=True):
        apart = m > 1 and (m >= PRIOR.heavy_share * p.n or min(s, 1 - s) < EXTREME)
        shared += m if m > 1 and not apart else 0
        single += m == 1
        rare += m if 1 < m < RARE_ROWS else 0
    return shared / (shared + single) * min(1.0, RARE_FACTOR * rare / single) if single else 1.0


def points_of(p):
    """Each distinct score; where too few are shared, single rows in one of many cells are one point."""
    time = np.append(0, np.cumsum(p.count * p.variance))
    cell = score_effects.POOLED * (time[1:] + time[:-1]) / 2 // time[-1]
    pooling = coverage(p) < LEAST_REPEATED_SHARE
    points, last = [], None
    for i, m in enumerate(p.count):
        own = None if m > 1 or not pooling else cell[i]
        if own is None or own != last:
            points.append(Point(m > 1))
        last, point = own, points[-1]
        point.rows += m
        point.scores += m * p.score[i]
        point.residual += p.residual[i]
        point.variance += m * p.variance[i]
    return points


def log_beta(a, b):
    """Logarithm of the beta function."""
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def log_counts(yes, rows, mu, rho):
    """Log likelihood of outcomes that share a score: binomial, or beta-binomial if they are correlated."""
    no = rows - yes
    if rho == 0:
        return yes * math.log(mu) + no * math.log(1 - mu)
    a, b = mu * (1 / rho - 1), (1 - mu) * (1 / rho - 1)
    return log_beta(a + yes, b + no) - log_beta(a, b)


def nodes_near(rho, fitted):
    """Number and share of the nodes on both sides of an intraclass correlation; the first has none."""
    ladder = [math.log(each) for each in (fitted[0] ** 2 / fitted[1], *fitted)]
    at = math.log(rho)
    high = next((j for j in range(1, len(ladder)) if ladder[j] >= at - 1e-12), len(ladder) - 1)
    share = min((at - ladder[high - 1]) / (ladder[high] - ladder[high - 1]), 1.0)
    return (high - 1, 1 - share), (high, share)


class Effects:
    """An effect of each shared score on top of a smooth gap."""

    def __init__(self, p):
        self.n, self.points = p.n, points_of(p)
        fields = ("rows", "scores", "residual", "variance")
        self.rows, scores, residual, variance = (
            np.array([getattr(point, field) for point in self.points], dtype=float) for field in fields
        )
        self.tied = np.array([point.tied for point in self.points])
        self.mass, self.score = self.rows / p.n, scores / self.rows
        self.residual, self.noise = residual / p.n, variance / p.n**2
        self.sharing = np.where(self.tied, self.rows, 1.0)
        self.cells = min(max(2 ** int(math.log2(p.n)), 2), score_effects.CELLS)
        shared = self.rows[self.tied]
        self.usual = math.exp((shared * np.log(shared)).sum() / shared.sum())
        many = (shared * (shared - 1)).sum() / 2 >= MANY_PAIRS
        self.powers = PRIOR.frequency_powers if many and shared.max() > 2 * shared.min() else (0.0,)
        count, ratio = score_effects.NODES_OF_MANY_PAIRS if many else score_effects.NODES_OF_FEW_PAIRS
        self.fitted = np.geomspace(ratio * PRIOR.smallest_correlation, PRIOR.largest_correlation, count)
        self.share, self.coverage = shared.sum() / p.n, coverage(p)

    def prior(self):
        """Prior probability of effects."""
        few, most = PRIOR.effects_weight_few_tied, PRIOR.effects_weight_all_tied
        most = few + (most - few) * self.share
        pairs = sum(m * (m - 1) / 2 for m in self.rows[self.tied])
        return most * (1 - math.exp(-pairs * PRIOR.visible_correlation**2 / 2))

    def correlation(self, power, rho):
        """Intraclass correlation at each point."""
        return np.minimum(rho * (self.usual / self.sharing) ** power, PRIOR.largest_correlation)

    def design(self, rho):
        """Factor of the variance of the residual at each point."""
        return 1 + (self.sharing - 1) * rho

    def fit_smooth(self, rho):
        """Mean and variance of the smooth part at each point, and what its fit gained beyond its evidence."""
        ends = np.cumsum(self.noise * self.design(rho))
        share = overlaps(ends, ends[-1] * np.linspace(0, 1, self.cells + 1))
        unit, mass = math.sqrt(ends[-1] / self.cells), self.mass @ share
        x = self.residual @ share / unit
        likelihood, mean, sd = fit_process(x, unit)
        cost = math.log(likelihood) - (x @ mean - mean @ mean / 2)
        return share @ (unit / mass * mean), share @ (unit / mass * sd) ** 2, cost

    def probability(self, f):
        """Probability of an outcome where the effect is zero."""
        return np.clip(self.score + f, margin := SMALLEST_EXPECTED_OUTCOMES / self.n, 1 - margin)

    def normal(self, f, rho):
        """Log likelihood of the residuals if they were normal."""
        design = self.design(rho)
        square = (self.residual - self.mass * f) ** 2 / self.noise
        return -(square / design + np.log(design)).sum() / 2

    def counts(self, f, rho):
        """Log likelihood of the outcomes."""
        yes = self.rows * np.clip(self.score + self.residual / self.mass, 0, 1)
        used = np.where(self.tied, rho, 0.0)
        return sum(map(log_counts, yes, self.rows, self.probability(f), used))

    def gap(self, f, variance, rho):
        """Posterior mean and variance of the gap at each point."""
        shrink = np.where(self.tied, self.rows * rho / self.design(rho), 0.0)
        mean = f + shrink * (self.residual / self.mass - f)
        mu, known = self.probability(f), np.where(self.tied, 1.0, self.coverage)
        return mean, (1 - shrink) ** 2 * variance + rho * known * (1 - shrink) * mu * (1 - mu)

    def weigh(self):
        """Likelihood against no effect, and weight, mean and variance of the gap for each power and node."""
        middle = self.powers[len(self.powers) // 2]
        nodes = (0.0, *self.fitted)
        fits = [self.fit_smooth(self.correlation(middle, rho)) for rho in nodes]
        none = fits[0][2] + self.counts(fits[0][0], np.zeros(len(self.points)))
        deviates = [
            math.log(rho / PRIOR.median_correlation) / PRIOR.log_sd_of_correlation
            for rho in PRIOR.correlations
        ]
        prior = [math.exp(-(deviate**2) / 2) for deviate in deviates]
        total, weight = 0.0, np.zeros((len(self.powers), len(nodes)))
        for i, power in enumerate(self.powers):
            at_nodes = [self.correlation(power, rho) for rho in nodes]
            missed = [
                cost + self.counts(f, own) - self.normal(f, own)
                for (f, _, cost), own in zip(fits, at_nodes, strict=True)
            ]
            for chance, rho in zip(prior, PRIOR.correlations, strict=True):
                own, near = self.correlation(power, rho), nodes_near(rho, self.fitted)
                log = sum(share * (self.normal(fits[j][0], own) + missed[j]) for j, share in near) - none
                likelihood = chance / sum(prior) / len(self.powers) * math.exp(log)
                total += likelihood
                for j, share in near:
                    weight[i, j] += share * likelihood
        gaps = [
            [self.gap(*fit[:2], self.correlation(power, rho)) for fit, rho in zip(fits, nodes, strict=True)]
            for power in self.powers
        ]
        return total, weight / total, gaps


def by_effects(p):
    """Effects of single scores: their likelihood against a smooth gap alone."""
    effects = Effects(p)
    total, weight, gaps = effects.weigh()
    weight[weight <= score_effects.NEGLIGIBLE] = 0.0
    weight /= weight.sum()
    sides, second = np.zeros(2), np.zeros(len(effects.points))
    for i, j in zip(*np.nonzero(weight), strict=True):
        mean, variance = gaps[i][j]
        each = [parts(a, math.sqrt(b)) for a, b in zip(mean, variance, strict=True)]
        sides += weight[i, j] * effects.mass @ np.array(each)
        second += weight[i, j] * (mean**2 + variance)
    ends = np.cumsum(effects.noise)
    share = overlaps(ends, ends[-1] * np.linspace(0, 1, len(p.x) + 1))
    # The mean square of the scores in a cell, as if all of its rows had that gap.
    return effects, total, sides, ((effects.mass * second) @ share) * (effects.mass @ share)


def told(score, outcome):
    """Expected error of scores too high and of scores too low, and the expected square in each cell."""
    p = problem(score, outcome)
    tied = p.count[p.count > 1].sum() / p.n
    in_ranges = PRIOR.local_weight * (1 - PRIOR.local_weight_reduction_by_ties * tied)
    none, some = PRIOR.prior_probability_of_calibration, 1 - PRIOR.prior_probability_of_calibration
    members = [(some * (1 - in_ranges), *by_process(p)), (some * in_ranges, *by_tree(p))]
    if tied:
        effects, factor, *expected = by_effects(p)
        prior = effects.prior()
        smooth = members[0][1]
        none, members = (1 - prior) * none, [((1 - prior) * share, *rest) for share, *rest in members]
        members.append((prior, smooth * factor, *expected))
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

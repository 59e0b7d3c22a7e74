"""The estimators of the later literature by plain loops over rows.

Rows are (score, outcome, weight) in score order, counts repeated (`binned.rows`). Nothing is shared with the
library: isotonic regression is the max-min formula, the beta kernel a density of scipy.stats, the beta curve
a bounded quasi-Newton search, SmoothECE an integral over mirror images.
"""

from itertools import pairwise
from math import erf, exp, log, pi, sqrt
from statistics import NormalDist

import numpy as np
from scipy.integrate import simpson
from scipy.optimize import brentq, minimize
from scipy.stats import beta

from . import binned


def groups(sample):
    """Tie groups in score order: score, mass, positive mass, sum of squared weights."""
    found = []
    for score, outcome, weight in sample:
        if not found or found[-1][0] != score:
            found.append([score, 0.0, 0.0, 0.0])
        found[-1][1] += float(weight)
        found[-1][2] += float(weight) * outcome
        found[-1][3] += float(weight) ** 2
    return found


def larger_first(sample, n_bins):
    """Equal-mass bins of rows, the first n mod B one row larger; a cut within ties moves before them."""
    n = len(sample)
    ends, stop = [], 0
    for b in range(n_bins - 1):
        stop += n // n_bins + (b < n % n_bins)
        cut = stop
        while cut > 0 and cut < n and sample[cut][0] == sample[cut - 1][0]:
            cut -= 1
        ends.append(cut)
    starts = [0, *ends]
    parts = [sample[a:b] for a, b in zip(starts, [*ends, n], strict=True)]
    return [part for part in parts if part]


def debiased(parts, norm):
    """Debiased error of bins of unweighted rows."""
    n = sum(map(len, parts))
    total = 0.0
    for part in parts:
        size = len(part)
        rate = sum(y for _, y, _ in part) / size
        gap = sum(s for s, _, _ in part) / size - rate
        if norm == "l2":
            if size > 1:
                total += size / n * (gap**2 - rate * (1 - rate) / (size - 1))
            continue
        sd = sqrt(rate * (1 - rate) / size)
        noisy = abs(gap)
        if sd > 0:
            noisy = sd * sqrt(2 / pi) * exp(-(gap**2) / (2 * sd**2)) + gap * erf(gap / sd / sqrt(2))
        total += size / n * (2 * abs(gap) - noisy)
    return max(total, 0.0) if norm == "l1" else sqrt(max(total, 0.0))


def interval(parts, level):
    """Sun et al.'s interval for the squared error, by pairs of rows; roots of its ends."""
    n = sum(map(len, parts))
    centre = first = second = 0.0
    for part in parts:
        residual = [y - s for s, y, _ in part]
        size = len(part)
        if size < 2:
            continue
        pairs = sum(residual[i] * residual[j] for i in range(size) for j in range(size) if i != j)
        centre += size / n * pairs / (size * (size - 1))
        mean, square = sum(residual) / size, sum(r * r for r in residual) / size
        first += size / n * (4 * mean**2 * square - 3 * mean**4)
        second += size / n * mean**2
    centre, error = max(centre, 0.0), sqrt(max(first - second**2, 0.0) / n)
    one, two = NormalDist().inv_cdf(level), NormalDist().inv_cdf((1 + level) / 2)
    if centre >= 2 * two * error:
        low = centre - two * error
    elif centre >= 2 * one * error:
        low = centre / 2
    else:
        low = max(centre - one * error, 0.0)
    return sqrt(low), sqrt(min(centre + two * error, 1.0))


def sweep(sample):
    """The last bins before the frequencies fall for the first time."""
    kept, number = [sample], 1
    for n_bins in range(2, len(sample) + 1):
        parts = larger_first(sample, n_bins)
        rates = [sum(y for _, y, _ in part) / len(part) for part in parts]
        if any(a > b + 1e-12 for a, b in pairwise(rates)):
            break
        kept, number = parts, n_bins
    return kept, number


def gaps(parts, norm):
    """Norm of the gaps of bins."""
    return binned.norm_of(
        [
            (None, sum(w for *_, w in part), sum(w * s for s, _, w in part), sum(w * y for _, y, w in part))
            for part in ([(float(s), y, float(w)) for s, y, w in part] for part in parts)
        ],
        norm,
    )


def isotonic(rates, weights):
    """max over a <= i of min over b >= i of the mean of a..b."""
    k = len(rates)

    def mean(a, b):
        return sum(r * w for r, w in zip(rates[a : b + 1], weights[a : b + 1], strict=True)) / sum(
            weights[a : b + 1]
        )

    return [max(min(mean(a, b) for b in range(i, k)) for a in range(i + 1)) for i in range(k)]


def distance(curve, found, norm):
    """Norm of curve minus score over tie groups."""
    pairs = [(abs(g - score), w) for g, (score, w, *_) in zip(curve, found, strict=True)]
    if norm == "max":
        return max(gap for gap, _ in pairs)
    power = {"l1": 1, "l2": 2}[norm]
    return (sum(w * gap**power for gap, w in pairs) / sum(w for _, w in pairs)) ** (1 / power)


def ece_isotonic(sample, norm):
    found = groups(sample)
    return distance(isotonic([wy / w for _, w, wy, _ in found], [w for _, w, *_ in found]), found, norm)


def ece_beta(sample, norm, *, least=1e-12, ridge=1e-6):
    found = groups(sample)
    total = sum(w for _, w, *_ in found)
    positive = sum(wy for _, _, wy, _ in found)
    if positive in (0.0, total):
        return distance([positive / total] * len(found), found, norm)
    x = np.array([[log(max(s, least)), -log(max(1 - s, least)), 1.0] for s, *_ in found])
    w, wy = (np.array([row[k] for row in found]) / total for k in (1, 2))
    centre = np.array([1.0, 1.0, 0.0])

    def loss(theta):
        z = x @ theta
        slope = x.T @ (w / (1 + np.exp(-z)) - wy) + ridge * (theta - centre)
        return w @ np.logaddexp(0, z) - wy @ z + ridge / 2 * np.sum((theta - centre) ** 2), slope

    bounds = [(0, None), (0, None), (None, None)]
    options = {"maxiter": 10000, "ftol": 1e-16, "gtol": 1e-10}
    best = minimize(loss, centre, jac=True, bounds=bounds, method="L-BFGS-B", options=options)
    return distance(1 / (1 + np.exp(-x @ best.x)), found, norm)


def smooth_at(sample, sigma, points=20001):
    """Integral over [0, 1] of the absolute sum of residuals times reflected Gaussians."""
    at = np.linspace(0, 1, points)
    total = np.zeros(points)
    for score, outcome, weight in sample:
        for period in range(-8, 9):
            for image in (2 * period + score, 2 * period - score):
                total += float(weight) * (outcome - score) * np.exp(-(((at - image) / sigma) ** 2) / 2)
    total /= sigma * sqrt(2 * pi) * float(sum(w for *_, w in sample))
    return float(simpson(np.abs(total), x=at))


def smooth(sample):
    """The fixed point sigma = smooth_at(sigma)."""
    return brentq(lambda sigma: smooth_at(sample, sigma) - sigma, 1e-3, 1.5, xtol=1e-10)


def variational(sample, n_folds=5, blocks=20):
    """Signed cross-fitted bound."""
    found = groups(sample)
    total = sum(w for _, w, *_ in found)
    if len(found) == 1:
        return abs(found[0][2] - found[0][0] * total) / total
    climbed, seen, fold = 0.0, [], []
    for _, w, *_ in found:
        block = int((climbed + w / 2) / total * n_folds * blocks + 1e-9)
        if block not in seen:
            seen.append(block)
        fold.append((len(seen) - 1) % n_folds)
        climbed += w
    bound = 0.0
    for k in range(n_folds):
        rest = [group for group, f in zip(found, fold, strict=True) if f != k]
        curve = isotonic([wy / w for _, w, wy, _ in rest], [w for _, w, *_ in rest])
        for (score, w, wy, _), f in zip(found, fold, strict=True):
            if f == k:
                gap = np.interp(score, [s for s, *_ in rest], curve) - score
                bound += (0 if abs(gap) <= 1e-12 else np.sign(gap)) * (wy - w * score)
    return float(bound / total)


def beta_kernel(sample, bandwidth, norm):
    """Each row against the others, kernel by kernel."""
    rows = [(s, y, float(w)) for s, y, w in sample]
    total = 0.0
    for i, (score, outcome, weight) in enumerate(rows):
        mass = positive = 0.0
        for j, (centre, other, heavy) in enumerate(rows):
            if i != j:
                k = heavy * beta.pdf(score, centre / bandwidth + 1, (1 - centre) / bandwidth + 1)
                mass += k
                positive += k * other
        own = weight * beta.pdf(score, score / bandwidth + 1, (1 - score) / bandwidth + 1)
        rate = positive / mass if mass > 1e-9 * own else outcome
        total += weight * abs(rate - score) ** {"l1": 1, "l2": 2}[norm]
    total /= sum(w for *_, w in rows)
    return total if norm == "l1" else sqrt(total)


def cumulative(sample):
    """KS and Kuiper."""
    total = float(sum(w for *_, w in sample))
    walk, sums = 0.0, [0.0]
    for score, w, wy, _ in groups(sample):
        walk += wy - w * score
        sums.append(walk / total)
    return max(map(abs, sums)), max(sums) - min(sums)

"""The posterior mean of the calibration error, one problem at a time, by plain loops and dense matrices."""

import math

import numpy as np


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


def ece(score, outcome, *, cells=None, prior):
    """Error of one problem with distinct scores; `prior` is a dict of the constants."""
    order = np.argsort(score)
    s, y = np.asarray(score)[order], np.asarray(outcome, dtype=float)[order]
    n = len(s)
    r = y - s
    points = min(n, prior["look"])
    width = min(prior["look_width"] * (0.75 * n) ** -0.2, prior["look_rows"] / n)
    mean = spread_evenly(np.arange(1, n + 1), r, np.linspace(0, n, points + 1)) * points / n
    basis = cosines(points)
    gain = np.array([triweight(math.pi * width * k) for k in range(points)])
    smooth = basis.T @ (gain * (basis @ mean))
    at = (np.arange(n) + 0.5) * points / n - 0.5
    p = np.clip(s + np.interp(at, np.arange(points), smooth), 0, 1)
    v = (p * (1 - p) + s * (1 - s)) / 2 + 0.01 / math.sqrt(n)
    clock = np.cumsum(v)
    g = cells or min(n, 64)
    sums = spread_evenly(clock, r, clock[-1] * np.linspace(0, 1, g + 1))
    unit = math.sqrt(clock[-1] / g)
    basis = cosines(g)
    z = basis @ (sums / unit)
    e = n * n / clock[-1]

    # Every pair of a component for the mean and one for the shape is a Gaussian model of z.
    def sizes(largest):
        """Variances against the noise, evenly on a logarithmic scale."""
        least = min(1.0, e * prior["smallest"] ** 2)
        steps = prior["sizes"]
        return [least * (e * largest**2 / least) ** (i / (steps - 1)) for i in range(steps)]

    means = [(prior["no_mean"], 0.0)] + [
        ((1 - prior["no_mean"]) / prior["sizes"], t) for t in sizes(prior["largest_mean"])
    ]
    shapes = [(prior["no_shape"], np.zeros(g - 1))]
    k = np.arange(1, g)
    weight = np.array([prior["rougher"] ** i for i in range(len(prior["roughness"]))])
    weight /= weight.sum()
    for t in sizes(prior["largest"]):
        for share, rough in zip(weight, prior["roughness"], strict=True):
            spectrum = (1 + (k / rough) ** 2) ** -3.0
            chance = (1 - prior["no_shape"]) * share / prior["sizes"]
            shapes.append((chance, t * spectrum / spectrum.sum()))

    def likelihood(x, variance):
        variance = 1 + np.asarray(variance)
        return float(np.prod(np.exp(-0.5 * x**2 / variance) / np.sqrt(variance)))

    mean_weight = np.array([c * likelihood(z[:1], [t]) for c, t in means])
    shape_weight = np.array([c * likelihood(z[1:], t) for c, t in shapes])
    none = likelihood(z[:1], [0.0]) * likelihood(z[1:], np.zeros(g - 1))
    factor = mean_weight.sum() * shape_weight.sum() / none
    chance = (1 - prior["calibrated"]) * factor
    chance /= chance + prior["calibrated"]
    h = np.zeros(g)
    h[0] = sum(w * t / (1 + t) for w, (_, t) in zip(mean_weight, means, strict=True)) / mean_weight.sum()
    for w, (_, t) in zip(shape_weight, shapes, strict=True):
        h[1:] += w * t / (1 + t) / shape_weight.sum()
    gap = basis.T @ (h * z)
    sd = np.sqrt(np.diag(basis.T @ np.diag(h) @ basis))
    folded = [
        b * math.sqrt(2 / math.pi) * math.exp(-((a / b) ** 2) / 2) + a * math.erf(a / b / math.sqrt(2))
        for a, b in zip(gap, sd, strict=True)
    ]
    return chance * unit / n * sum(folded)

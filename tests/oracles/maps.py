"""Calibration maps, slow and obvious: by loops over rows, general optimisers and numerical integrals."""

from itertools import product
from math import exp, log, log1p

import numpy as np
from scipy.optimize import minimize
from scipy.stats import norm


def log_odds(p):
    return log(p) - log1p(-p)


def sigmoid(odds):
    return 1 / (1 + exp(-odds)) if odds >= 0 else exp(odds) / (1 + exp(odds))


def log_likelihood(odds, outcomes):
    """Sum over rows of the logarithm of what the log-odds give their outcome."""
    return float(-np.logaddexp(0.0, np.where(np.asarray(outcomes) > 0, -1.0, 1.0) * np.asarray(odds)).sum())


def jeffreys_mean(successes, trials):
    """Posterior mean of a probability under Jeffreys' prior, by numerical integration over p = sin(t)^2."""
    t = (np.arange(200_000) + 0.5) / 200_000 * np.pi / 2
    density = np.sin(t) ** (2 * successes) * np.cos(t) ** (2 * (trials - successes))
    return float((density * np.sin(t) ** 2).sum() / density.sum())


def beta_binomial(successes, trials, mean, correlation):
    """Likelihood of outcomes and posterior mean of a beta distributed probability, by quadrature."""
    a, b = (share * (1 - correlation) / correlation for share in (mean, 1 - mean))
    p = (np.arange(400_000) + 0.5) / 400_000
    density = p ** (a - 1) * (1 - p) ** (b - 1)
    joint = density * p**successes * (1 - p) ** (trials - successes)
    return float(joint.sum() / density.sum()), float((joint * p).sum() / joint.sum())


# --- increasing frequencies ---


def increasing(values, weights):
    """The nearest increasing values: each is the largest least mean of a range around it."""
    values, weights = np.asarray(values, dtype=float), np.asarray(weights, dtype=float)

    def mean(a, b):
        return float(values[a : b + 1] @ weights[a : b + 1] / weights[a : b + 1].sum())

    last = range(len(values))
    return [max(min(mean(a, b) for b in last if b >= k) for a in last if a <= k) for k in last]


def venn_abers(scores, outcomes, new):
    """The increasing frequency at a new score with a row of outcome 0 put there, and with a row of 1."""
    pair = []
    for outcome in (0, 1):
        rows = [*zip(scores, outcomes, strict=True), (new, outcome)]
        places = sorted({score for score, _ in rows})
        held = [[y for score, y in rows if score == place] for place in places]
        level = increasing([np.mean(each) for each in held], [len(each) for each in held])
        pair.append(level[places.index(new)])
    return tuple(pair)


# --- formulas ---

FEATURES = {
    "temperature": lambda p: [log_odds(p)],
    "logistic": lambda p: [1.0, log_odds(p)],
    "sigmoid": lambda p: [1.0, log_odds(p)],
    "quadratic": lambda p: [1.0, log_odds(p), log_odds(p) ** 2],
    "beta": lambda p: [1.0, log(p), -log1p(-p)],
}


def likeliest(method, scores, outcomes):
    """The formula of a method with the likeliest coefficients, as a function of a score."""
    features = FEATURES[method]
    rows = np.array([features(p) for p in scores])
    aim = np.asarray(outcomes, dtype=float)
    if method == "sigmoid":
        positive = aim.sum()
        aim = np.where(aim > 0, (positive + 1) / (positive + 2), 1 / (len(aim) - positive + 2))
    bounds = [(None, None), (0, None), (0, None)] if method == "beta" else None

    def cost(coefficients):
        odds = rows @ coefficients
        return float((np.logaddexp(0.0, odds) - aim * odds).sum())

    def slope(coefficients):
        return rows.T @ (1 / (1 + np.exp(-(rows @ coefficients))) - aim)

    best = minimize(
        cost,
        np.zeros(rows.shape[1]),
        jac=slope,
        bounds=bounds,
        method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-9},
    )
    return lambda p: sigmoid(float(np.dot(features(p), best.x)))


def shift_in_the_large(scores, outcomes, weights=None):
    """The shift of the log-odds at which the mean probability is the frequency, by halving an interval."""
    weights = [1.0] * len(scores) if weights is None else weights
    low, high = -60.0, 60.0
    for _ in range(100):
        middle = (low + high) / 2
        left = 0.0
        for p, y, w in zip(scores, outcomes, weights, strict=True):
            left += w * (y - sigmoid(log_odds(p) + middle))
        low, high = (middle, high) if left > 0 else (low, middle)
    return (low + high) / 2


# --- evidence ---


def evidence(odds, outcomes, columns, sizes):
    """Log of the likelihood of rows, averaged over normal coefficients of one or two columns."""
    sign = np.where(np.asarray(outcomes) > 0, -1.0, 1.0)

    def value(*u):
        moved = odds + sum(np.multiply.outer(each, column) for each, column in zip(u, columns, strict=True))
        return -np.logaddexp(0.0, sign * moved).sum(axis=-1)

    return _averaged(value, sizes)


def _averaged(value, sizes):
    """Log of the average of exp(value) over independent normal coefficients, by grids that close in."""
    ends = [(-8 * size, 8 * size) for size in sizes]
    for _ in range(3):
        grids = [np.linspace(*end, 201) for end in ends]
        u = np.meshgrid(*grids, indexing="ij")
        log_prior = sum(norm.logpdf(each, scale=size) for each, size in zip(u, sizes, strict=True))
        logs = log_prior + value(*u)
        some = np.argwhere(logs > logs.max() - 30)
        ends = [
            (grid[max(some[:, k].min() - 1, 0)], grid[min(some[:, k].max() + 1, 200)])
            for k, grid in enumerate(grids)
        ]
    return logs.max() + log(np.exp(logs - logs.max()).sum() * np.prod([grid[1] - grid[0] for grid in grids]))


# --- divisions of scores into ranges ---


def divisions(first, stop, levels, whole):
    """Every division of cells into dyadic ranges, with its prior; the cells are a power of two."""
    if levels == 1:
        yield [(first, stop)], 1.0
        return
    yield [(first, stop)], whole
    middle = (first + stop) // 2
    halves = product(divisions(first, middle, levels - 1, whole), divisions(middle, stop, levels - 1, whole))
    for (left, a), (right, b) in halves:
        yield left + right, (1 - whole) * a * b


def constant_evidence(x, trials, successes):
    """Log of the average likelihood of one frequency over that of the scores, and the mean log-odds.

    The prior is that of Jeffreys: the angle a is uniform, and the frequency is sin(a)^2.
    """
    angle = (np.arange(20_000) + 0.5) * np.pi / 40_000
    frequency = np.sin(angle) ** 2
    odds = np.log(frequency) - np.log1p(-frequency)
    base = successes @ x - trials @ np.logaddexp(0.0, x)
    likelihood = np.exp(successes.sum() * odds - trials.sum() * np.logaddexp(0.0, odds) - base)
    return log(likelihood.mean()), float(likelihood @ odds / likelihood.sum())


def cells_evidence(x, trials, successes, columns, sizes):
    """Log of the average likelihood of cells over that of the scores as they are, and the mean log-odds."""
    grids = np.meshgrid(*(np.linspace(-7 * size, 7 * size, 401) for size in sizes), indexing="ij")
    odds = x + sum(np.multiply.outer(each, column) for each, column in zip(grids, columns, strict=True))
    base = successes @ x - trials @ np.logaddexp(0.0, x)
    prior = np.prod([norm.pdf(each, scale=size) for each, size in zip(grids, sizes, strict=True)], axis=0)
    weight = prior * np.exp(odds @ successes - np.logaddexp(0.0, odds) @ trials - base)
    area = np.prod([14 * size / 400 for size in sizes])
    over = tuple(range(len(sizes)))
    return log(weight.sum() * area), (weight[..., None] * odds).sum(axis=over) / weight.sum()

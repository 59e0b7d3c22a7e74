"""Improved Sheather-Jones bandwidth on a bounded support, from the exact cosine coefficients.

Botev, Grotowski and Kroese (2010), "Kernel density estimation via diffusion", Annals of Statistics
38(5): the squared bandwidth t of a Gaussian kernel solves t = xi gamma^[5](t), where each stage of gamma
estimates the squared norm of a derivative of the density with the bandwidth that the stage before has
chosen. On a support of length one the reflected density with bandwidth sqrt(t) has the coefficients a_k
exp(-k^2 pi^2 t / 2), a_k the mean of cos(pi k x), and the squared norm of its j-th derivative is 2
pi^(2j) times the sum of k^(2j) a_k^2 exp(-k^2 pi^2 t).
"""

from math import pi, prod, sqrt

import numpy as np
from scipy.optimize import brentq

from . import binned

STAGES = 5
NARROWEST = 1e-4  # of the support: the search for a fixed point starts here


def isj(scores, *, support=(0, 1), weights=None):
    """Standard deviation of the Gaussian kernel at the smallest stable fixed point; None where there is none.

    Stable: just below it the stages arrive at more than they start from, just above at less. Few scores,
    scores close to uniform and scores piled up on few values may have none.
    """
    sample = binned.rows(scores, np.zeros(len(scores)), weights)
    size = float(binned.effective_size(sample))
    low, high = support
    squares = squared_coefficients(sample, low, high)

    def excess(t):
        return t - improved(t, size, squares)

    grid = np.geomspace(NARROWEST**2, 1, 150)
    values = [excess(t) for t in grid]
    for j in range(len(grid) - 1):
        if values[j] < 0 <= values[j + 1]:
            return (high - low) * sqrt(brentq(excess, grid[j], grid[j + 1], xtol=1e-16, rtol=1e-12))
    return None


def squared_coefficients(sample, low, high):
    """a_k^2 for k = 1, 2, ... until the narrowest kernel has damped the last term of every sum away."""
    places = np.array([(score - low) / (high - low) for score, _, _ in sample])
    weights = np.array([float(weight) for _, _, weight in sample])
    weights = weights / weights.sum()
    last = 1 + int(12 / (pi * NARROWEST))
    return np.array([(weights @ np.cos(pi * k * places)) ** 2 for k in range(1, last + 1)])


def squared_norm(derivative, t, squares):
    """Squared L2 norm of a derivative of the density smoothed to bandwidth sqrt(t)."""
    k = np.arange(1, len(squares) + 1, dtype=float)
    return 2 * pi ** (2 * derivative) * np.sum(k ** (2 * derivative) * squares * np.exp(-(k**2) * pi**2 * t))


@np.errstate(divide="ignore", over="ignore")
def improved(t, size, squares):
    """xi gamma^[5](t): the squared bandwidth the stages arrive at from t, infinite for a flat density."""
    norm = squared_norm(STAGES + 2, t, squares)
    for s in range(STAGES + 1, 1, -1):
        odd = prod(range(1, 2 * s, 2))
        stage = (1 + 0.5 ** (s + 0.5)) / 3 * 2 * odd / (size * sqrt(2 * pi) * norm)
        norm = squared_norm(s, stage ** (2 / (3 + 2 * s)), squares)
    return (2 * size * sqrt(pi) * norm) ** (-2 / 5)

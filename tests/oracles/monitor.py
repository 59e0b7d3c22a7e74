"""E-values row by row: each row by its own score, with no sums over cells."""

from math import exp, log


def log_e_value(scores, outcomes, tilts, weights=None, tolerance=0.0):
    """Log e-value of rows of which the i-th has its log-odds changed by the i-th tilt.

    An importance weight of at most 1 multiplies the tilt. Under the null hypothesis the log-odds of an
    outcome are within the tolerance of those of its score.
    """
    weights = weights or [1.0] * len(scores)
    total = 0.0
    for p, y, tilt, w in zip(scores, outcomes, tilts, weights, strict=True):
        worst = p
        if 0 < p < 1:
            odds = p / (1 - p) * exp(tolerance if tilt > 0 else -tolerance)
            worst = odds / (1 + odds)
        total += tilt * w * y - log(1 - worst + worst * exp(tilt * w))
    return total


def mixture(evidence, prior, restart):
    """The e-process after some batches: `evidence[t][j]` is the log e-value of batch t for tilt j."""
    batches = len(evidence)
    total = 1 - sum(restart(k + 1) for k in range(batches))
    for k in range(batches):
        for j, weight in enumerate(prior):
            total += restart(k + 1) * weight * exp(sum(evidence[t][j] for t in range(k, batches)))
    return total

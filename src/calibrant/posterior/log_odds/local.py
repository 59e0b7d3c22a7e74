"""Local components of the model average on the log-odds scale.

Dyadic partition: ranges of rows are split into halves recursively. In a final range the scores are unchanged,
or the frequency is constant: a floor, a cap, a step or a clipped score makes such a plateau. One shift per
score: where distinct scores are few, each has an independent shift. Marginal likelihoods of constant ranges
are beta-binomial, those of shifts use Laplace's approximation; partitions are summed exactly.

See docs/methods/calibration-curve.md, "Local components".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.posterior.log_odds.cells import LogOddsCells, expit, softplus, step_weights
from calibrant.posterior.log_odds.components import SURE
from calibrant.score_data import Array
from calibrant.settings import LOG_ODDS

# Search for the mode: largest number of steps, of step reductions, and the gain (nats) below which it stops.
STEPS, HALVINGS, ENOUGH = 12, 6, 1e-3
# A position (share of the rows) this close to the edge of a range is on it; log-odds this close to 0 are 0.
EDGE = 1e-9


@dataclass(frozen=True, eq=False)
class LocalLogOdds:
    """Mixture of normal distributions of the log-odds, whose weights differ from cell to cell.

    Attributes
    ----------
    log_bayes_factor : float
        Log Bayes factor against the scores as they are.
    weight, mean, sd : arrays (mixture terms, cells)
        Posterior weight, and mean and standard deviation of the log-odds.
    independent : bool
        Whether cells of the same term are independent.
    """

    log_bayes_factor: float
    weight: Array
    mean: Array
    sd: Array
    independent: bool = False

    def draws(self, rng: np.random.Generator, size: int) -> Array:
        """Draw log-odds from the distributions of the cells, (size, cells).

        Cells that are not independent share the quantile of the term and the deviate: each cell has the right
        distribution, and cells depend on each other as much as they can.
        """
        shape = size, self.mean.shape[1] if self.independent else 1
        upto = np.cumsum(self.weight, axis=0)
        term = (upto[None, :-1] < rng.random((size, 1, 1)) * upto[-1]).sum(axis=1)
        mean, sd = (np.take_along_axis(each, term, axis=0) for each in (self.mean, self.sd))
        return np.asarray(mean + sd * rng.standard_normal(shape))


def partition_average(cells: LogOddsCells) -> LocalLogOdds:
    """Average over all dyadic partitions of the rows."""
    x, count = cells.x, cells.x.size
    levels = 1 + int(np.log2(max(count, 2)))
    cumulative_sums = np.cumsum(cells.trials)
    middle = (cumulative_sums - cells.trials / 2) / cumulative_sums[-1]
    # A score on an edge is assigned by its sign, so that the complements of the scores are split in the same
    # way.
    side = np.where(np.abs(x) > EDGE, x, cells.successes - cells.trials / 2)
    middle = np.clip(middle + EDGE * np.sign(side), 0.0, np.nextafter(1.0, 0.0))
    node = np.stack([(middle * 2**level).astype(np.intp) for level in range(levels)])
    # The ranges of all levels, one after the other.
    first = 2 ** np.arange(levels) - 1
    code = (node + first[:, None]).ravel()
    starts = np.flatnonzero(np.diff(code, prepend=-1))
    unchanged, final = LOG_ODDS.probability_of_unchanged_range, LOG_ODDS.probability_of_final_range
    constant = _ConstantRanges.of(cells, np.tile(np.arange(count), levels), starts)
    log_unchanged = np.full(len(starts), np.log(unchanged))
    log_constant = constant.log_bayes_factor + np.log1p(-unchanged)
    stop_total = np.logaddexp(log_unchanged, log_constant)
    constant_weight = np.exp(log_constant - stop_total)
    range_log = np.zeros(2**levels - 1)  # the log Bayes factor of a range without rows is 0
    range_log[code[starts]] = stop_total
    below = range_log[first[-1] :]
    stop_probability = [np.ones(below.size)]
    for level in range(levels - 2, -1, -1):
        stop_log = range_log[first[level] : first[level + 1]] + np.log(final)
        total = np.logaddexp(stop_log, below.reshape(-1, 2).sum(axis=1) + np.log1p(-final))
        stop_probability.insert(0, np.exp(stop_log - total))
        below = total
    reach_probability, weight = np.ones(1), []
    for level in range(levels):
        weight.append((reach_probability * stop_probability[level])[node[level]])
        if level < levels - 1:
            reach_probability = np.repeat(reach_probability * (1 - stop_probability[level]), 2)
    of_cell = (np.searchsorted(starts, np.arange(code.size), side="right") - 1).reshape(levels, count)
    parts = np.array(weight)
    constant_parts = parts * constant_weight[of_cell]
    return LocalLogOdds(
        float(below[0]),
        np.vstack([(parts - constant_parts).sum(axis=0)[None], constant_parts]),
        np.vstack([x[None], constant.mean[of_cell]]),
        np.vstack([np.zeros((1, count)), constant.sd[of_cell]]),
    )


def independent_shifts(cells: LogOddsCells) -> LocalLogOdds:
    """Give each score an independent shift; the shifts share one unknown prior standard deviation."""
    precision = np.array(LOG_ODDS.sds) ** -2.0
    x, trials, successes = (values[:, None] for values in (cells.x, cells.trials, cells.successes))

    def log_posterior(shift: Array) -> Array:
        logits = x + shift
        return np.asarray(successes * logits - trials * softplus(logits) - 0.5 * shift * shift * precision)

    shift = np.zeros((cells.x.size, precision.size))
    best = log_posterior(shift)
    for step in range(STEPS):
        curvature, slope = step_weights(trials, successes, x + shift, sure=step < SURE)
        move = (slope - shift * precision) / (curvature + precision)
        for _ in range(HALVINGS):
            value = log_posterior(shift + move)
            if (value >= best - 1e-9).all():
                break
            move = np.where(value >= best - 1e-9, move, 0.4 * move)
        move = np.where(value >= best - 1e-9, move, 0.0)
        shift, gain = shift + move, np.maximum(value - best, 0.0)
        best = best + gain
        if step >= SURE and gain.max() < ENOUGH:
            break
    q = expit(x + shift)
    curvature = trials * q * (1 - q) + precision
    as_scored = successes * x - trials * softplus(x)
    log = (best - as_scored - 0.5 * np.log(curvature / precision)).sum(axis=0) - np.log(precision.size)
    total = float(np.logaddexp.reduce(log))
    weight = np.broadcast_to(np.exp(log - total)[:, None], (precision.size, cells.x.size))
    return LocalLogOdds(total, weight, (x + shift).T, (curvature**-0.5).T, independent=True)


@dataclass(frozen=True, eq=False)
class _ConstantRanges:
    """Ranges of constant frequency, which has Jeffreys' prior.

    Attributes
    ----------
    log_bayes_factor : array (ranges,)
        Log Bayes factor against the scores as they are.
    mean, sd : arrays (ranges,)
        Posterior mean and standard deviation of the log-odds.
    """

    log_bayes_factor: Array
    mean: Array
    sd: Array

    @classmethod
    def of(cls, cells: LogOddsCells, entry: Array, starts: Array) -> _ConstantRanges:
        """Fit the ranges that begin at `starts` among the entries, each of which is the index of a cell."""
        from scipy.special import betaln, digamma, polygamma

        as_scored = cells.successes * cells.x - cells.trials * softplus(cells.x)
        trials, successes, as_scored = (
            np.add.reduceat(values[entry], starts) for values in (cells.trials, cells.successes, as_scored)
        )
        yes, no = successes + 0.5, np.maximum(trials - successes, 0.0) + 0.5
        return cls(
            betaln(yes, no) - betaln(0.5, 0.5) - as_scored,
            digamma(yes) - digamma(no),
            np.sqrt(polygamma(1, yes) + polygamma(1, no)),
        )

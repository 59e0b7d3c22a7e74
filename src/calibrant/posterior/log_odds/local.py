"""Local components of the model average on the log-odds scale.

Dyadic partition: ranges of rows are split into halves recursively. In a final range the scores are unchanged,
or shifted in the log-odds with or without a slope. One shift per score: where distinct scores are few, each
has an independent shift. Marginal likelihoods of shifted ranges use Laplace's approximation; partitions are
summed exactly.

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
# Largest position in a range that a slope multiplies, so that a score far from the others has no leverage.
POSITION_LIMIT = 4.0


@dataclass(frozen=True, eq=False)
class LocalLogOdds:
    """Mixture of normal distributions of the log-odds, whose weights differ from cell to cell.

    Attributes
    ----------
    log_bayes_factor : float
        Log Bayes factor against the scores as they are.
    weight, mean, sd : arrays (mixture terms, cells)
        Posterior weight, and mean and standard deviation of the log-odds.
    """

    log_bayes_factor: float
    weight: Array
    mean: Array
    sd: Array


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
    # Shifts with and without a slope, with equal prior weight.
    kinds = np.column_stack([LOG_ODDS.range_shift_sds, LOG_ODDS.range_slope_sds])
    unchanged, final = LOG_ODDS.probability_of_unchanged_range, LOG_ODDS.probability_of_final_range
    shifted = _ShiftedRanges.of(cells, np.tile(np.arange(count), levels), starts, kinds)
    log = np.concatenate(
        [
            np.full((len(starts), 1), np.log(unchanged)),
            shifted.log_bayes_factor + np.log((1 - unchanged) / len(kinds)),
        ],
        axis=1,
    )
    stop_total = np.logaddexp.reduce(log, axis=1)
    kind_weight = np.exp(log - stop_total[:, None])
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
    of_cell = np.searchsorted(starts, np.arange(code.size), side="right") - 1
    parts = np.array(weight)[:, :, None] * kind_weight[of_cell].reshape(levels, count, -1)
    mean, sd = (np.moveaxis(each.reshape(levels, count, -1), -1, 1) for each in (shifted.logits, shifted.sd))
    shifted_weight = np.moveaxis(parts[..., 1:], -1, 1)
    return LocalLogOdds(
        float(below[0]),
        np.vstack([parts[..., 0].sum(axis=0)[None], shifted_weight.reshape(-1, count)]),
        np.vstack([x[None], mean.reshape(-1, count)]),
        np.vstack([np.zeros((1, count)), sd.reshape(-1, count)]),
    )


def independent_shifts(cells: LogOddsCells) -> LocalLogOdds:
    """Give each score an independent shift; the shifts share one unknown prior standard deviation."""
    indices = np.arange(cells.x.size)
    sds = np.array(LOG_ODDS.sds)
    shifted = _ShiftedRanges.of(cells, indices, indices, np.column_stack([sds, np.zeros(len(sds))]))
    log = shifted.log_bayes_factor.sum(axis=0) - np.log(len(sds))
    total = float(np.logaddexp.reduce(log))
    weight = np.broadcast_to(np.exp(log - total)[:, None], (len(sds), cells.x.size))
    return LocalLogOdds(total, weight, shifted.logits.T, shifted.sd.T)


@dataclass(frozen=True, eq=False)
class _ShiftedRanges:
    """Ranges whose scores are shifted in the log-odds, by Laplace's approximation.

    Attributes
    ----------
    log_bayes_factor : array (ranges, kinds)
        Log Bayes factor against the scores as they are.
    logits, sd : arrays (entries, kinds)
        Posterior mode and standard deviation of the log-odds of each cell of each range.
    """

    log_bayes_factor: Array
    logits: Array
    sd: Array

    @classmethod
    def of(cls, cells: LogOddsCells, entry: Array, starts: Array, kinds: Array) -> _ShiftedRanges:
        """Fit the ranges that begin at `starts` among the entries, each of which is the index of a cell."""
        x, trials, successes = (array[entry] for array in (cells.x, cells.trials, cells.successes))
        range_of = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(entry))))

        def sum_by_range(values: Array) -> Array:
            return np.add.reduceat(values, starts, axis=0)

        p = expit(x)
        information = trials * p * (1 - p) + 1e-9
        mass = sum_by_range(information)
        position = x - (sum_by_range(information * x) / mass)[range_of]
        spread = np.sqrt(sum_by_range(information * position**2) / mass) + LOG_ODDS.range_width_offset
        position = np.clip(position / spread[range_of], -POSITION_LIMIT, POSITION_LIMIT)[:, None]
        sloped = kinds[:, 1] > 0
        shift_precision, slope_precision = (
            kinds[:, 0] ** -2.0,
            np.where(sloped, np.where(sloped, kinds[:, 1], 1.0) ** -2.0, 1.0),
        )
        base = successes * x - trials * softplus(x)
        x, trials, successes = x[:, None], trials[:, None], successes[:, None]
        shift, slope = np.zeros((2, len(starts), len(kinds)))

        def log_posterior(a: Array, b: Array) -> tuple[Array, Array]:
            logits = x + a[range_of] + b[range_of] * position
            fit = sum_by_range(successes * logits - trials * softplus(logits) - base[:, None])
            return logits, fit - 0.5 * (a * a * shift_precision + b * b * slope_precision)

        def precision(weight: Array) -> tuple[Array, Array, Array]:
            across = np.where(sloped, sum_by_range(weight * position), 0.0)
            return (
                sum_by_range(weight) + shift_precision,
                across,
                np.where(sloped, sum_by_range(weight * position**2), 0.0) + slope_precision,
            )

        logits, best = log_posterior(shift, slope)
        for step in range(STEPS):
            weight, residual = step_weights(trials, successes, logits, sure=step < SURE)
            aa, ab, bb = precision(weight)
            to_a = sum_by_range(residual) - shift * shift_precision
            to_b = np.where(sloped, sum_by_range(residual * position) - slope * slope_precision, 0.0)
            det = aa * bb - ab * ab
            da, db = (bb * to_a - ab * to_b) / det, (aa * to_b - ab * to_a) / det
            step_length = np.ones(shift.shape)
            for _ in range(HALVINGS):
                new, value = log_posterior(shift + step_length * da, slope + step_length * db)
                better = value >= best - 1e-9
                if better.all():
                    break
                step_length = np.where(better, step_length, 0.4 * step_length)
            step_length = np.where(better, step_length, 0.0)
            shift, slope = shift + step_length * da, slope + step_length * db
            gain = np.where(better, value - best, 0.0)
            best = best + gain
            logits = np.where(better[range_of], new, logits)
            if step >= SURE and gain.max() < ENOUGH:
                break
        q = expit(logits)
        aa, ab, bb = precision(trials * q * (1 - q))
        det = aa * bb - ab * ab
        log_bayes_factor = best - 0.5 * np.log(det) + 0.5 * np.log(shift_precision * slope_precision)
        var = (
            bb[range_of] - 2 * ab[range_of] * position + np.where(sloped, aa[range_of] * position**2, 0.0)
        ) / det[range_of]
        return cls(log_bayes_factor, logits, np.sqrt(np.maximum(var, 1e-12)))

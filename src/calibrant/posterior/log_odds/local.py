"""Members of the average over maps whose gap lives in one place: stretches that go wrong by themselves.

A dyadic tree divides the rows again and again into halves. Where the division ends, the scores of the
stretch stand as they are or are shifted in the log-odds, with or without a slope. Where scores are few,
each may go wrong in a way of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.posterior.log_odds.cells import OddsCells, expit, softplus, step_weights
from calibrant.posterior.log_odds.components import SURE
from calibrant.score_data import Array

# Sizes in the prior of a stretch's shift and of its slope, which is counted in spreads of its log-odds.
KINDS = np.array([(0.3, 0.0), (1.0, 0.0), (0.5, 0.3), (2.0, 0.8)])
# Prior weight of a stretch that stands as it is, and of a stretch that is not divided further.
UNTOUCHED, WHOLE, DEEPEST = 0.9, 0.5, 8
# Sizes in the prior of the shift of each score, where scores are few.
OWN = np.array([(0.15, 0.0), (0.5, 0.0), (1.5, 0.0)])
STEPS, HALVINGS, ENOUGH = 12, 6, 1e-3
# A place this close to an edge is on it, and log-odds this close to 0 are 0.
EDGE = 1e-9


@dataclass(frozen=True, eq=False)
class Local:
    """Members whose weights differ from cell to cell.

    Attributes
    ----------
    evidence : float
        Log evidence, over that of the scores as they are.
    weight, mean, sd : arrays (members, cells)
    """

    evidence: float
    weight: Array
    mean: Array
    sd: Array


def tree(cells: OddsCells) -> Local:
    """Average over all divisions of the rows into dyadic stretches."""
    x, count = cells.x, cells.x.size
    levels = 1 + min(DEEPEST, int(np.log2(max(count, 2))))
    running = np.cumsum(cells.trials)
    middle = (running - cells.trials / 2) / running[-1]
    # On the edge of two stretches the side of a score decides: complements of the scores divide alike.
    side = np.where(np.abs(x) > EDGE, x, cells.successes - cells.trials / 2)
    middle = np.clip(middle + EDGE * np.sign(side), 0.0, np.nextafter(1.0, 0.0))
    node = np.stack([(middle * 2**level).astype(np.intp) for level in range(levels)])
    # The stretches of all levels, one after the other.
    first = 2 ** np.arange(levels) - 1
    code = (node + first[:, None]).ravel()
    starts = np.flatnonzero(np.diff(code, prepend=-1))
    shifted = _Shifted.of(cells, np.tile(np.arange(count), levels), starts, KINDS)
    log = np.concatenate(
        [
            np.full((len(starts), 1), np.log(UNTOUCHED)),
            shifted.evidence + np.log((1 - UNTOUCHED) / len(KINDS)),
        ],
        axis=1,
    )
    ends = np.logaddexp.reduce(log, axis=1)
    kind = np.exp(log - ends[:, None])
    whole = np.zeros(2**levels - 1)  # a stretch without rows says nothing
    whole[code[starts]] = ends
    below = whole[first[-1] :]
    keep = [np.ones(below.size)]
    for level in range(levels - 2, -1, -1):
        own = whole[first[level] : first[level + 1]] + np.log(WHOLE)
        total = np.logaddexp(own, below.reshape(-1, 2).sum(axis=1) + np.log1p(-WHOLE))
        keep.insert(0, np.exp(own - total))
        below = total
    reach, weight = np.ones(1), []
    for level in range(levels):
        weight.append((reach * keep[level])[node[level]])
        if level < levels - 1:
            reach = np.repeat(reach * (1 - keep[level]), 2)
    of_cell = np.searchsorted(starts, np.arange(code.size), side="right") - 1
    parts = np.array(weight)[:, :, None] * kind[of_cell].reshape(levels, count, -1)
    mean, sd = (np.moveaxis(each.reshape(levels, count, -1), -1, 1) for each in (shifted.odds, shifted.sd))
    members = np.moveaxis(parts[..., 1:], -1, 1)
    return Local(
        float(below[0]),
        np.vstack([parts[..., 0].sum(axis=0)[None], members.reshape(-1, count)]),
        np.vstack([x[None], mean.reshape(-1, count)]),
        np.vstack([np.zeros((1, count)), sd.reshape(-1, count)]),
    )


def each_score(cells: OddsCells) -> Local:
    """Give each score a shift of its own, all of one unknown size."""
    every = np.arange(cells.x.size)
    shifted = _Shifted.of(cells, every, every, OWN)
    log = shifted.evidence.sum(axis=0) - np.log(len(OWN))
    total = float(np.logaddexp.reduce(log))
    weight = np.broadcast_to(np.exp(log - total)[:, None], (len(OWN), cells.x.size))
    return Local(total, weight, shifted.odds.T, shifted.sd.T)


@dataclass(frozen=True, eq=False)
class _Shifted:
    """Stretches that are shifted in the log-odds, by Laplace's approximation.

    Attributes
    ----------
    evidence : array (stretches, kinds)
        Over that of the scores as they are.
    odds, sd : arrays (entries, kinds)
    """

    evidence: Array
    odds: Array
    sd: Array

    @classmethod
    def of(cls, cells: OddsCells, entry: Array, starts: Array, kinds: Array) -> _Shifted:
        """Fit the stretches that begin at `starts` among entries, each a cell."""
        x, trials, successes = (part[entry] for part in (cells.x, cells.trials, cells.successes))
        stretch = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(entry))))

        def add(values: Array) -> Array:
            return np.add.reduceat(values, starts, axis=0)

        p = expit(x)
        information = trials * p * (1 - p) + 1e-9
        mass = add(information)
        away = x - (add(information * x) / mass)[stretch]
        spread = np.sqrt(add(information * away**2) / mass) + 0.3
        away = np.clip(away / spread[stretch], -4.0, 4.0)[:, None]
        sloped = kinds[:, 1] > 0
        tight, tight_slope = (
            kinds[:, 0] ** -2.0,
            np.where(sloped, np.where(sloped, kinds[:, 1], 1.0) ** -2.0, 1.0),
        )
        base = successes * x - trials * softplus(x)
        x, trials, successes = x[:, None], trials[:, None], successes[:, None]
        shift, slope = np.zeros((2, len(starts), len(kinds)))

        def reached(a: Array, b: Array) -> tuple[Array, Array]:
            odds = x + a[stretch] + b[stretch] * away
            fit = add(successes * odds - trials * softplus(odds) - base[:, None])
            return odds, fit - 0.5 * (a * a * tight + b * b * tight_slope)

        def precision(weight: Array) -> tuple[Array, Array, Array]:
            across = np.where(sloped, add(weight * away), 0.0)
            return add(weight) + tight, across, np.where(sloped, add(weight * away**2), 0.0) + tight_slope

        odds, best = reached(shift, slope)
        for step in range(STEPS):
            weight, residual = step_weights(trials, successes, odds, sure=step < SURE)
            aa, ab, bb = precision(weight)
            to_a = add(residual) - shift * tight
            to_b = np.where(sloped, add(residual * away) - slope * tight_slope, 0.0)
            det = aa * bb - ab * ab
            da, db = (bb * to_a - ab * to_b) / det, (aa * to_b - ab * to_a) / det
            length = np.ones(shift.shape)
            for _ in range(HALVINGS):
                new, value = reached(shift + length * da, slope + length * db)
                better = value >= best - 1e-9
                if better.all():
                    break
                length = np.where(better, length, 0.4 * length)
            length = np.where(better, length, 0.0)
            shift, slope = shift + length * da, slope + length * db
            gain = np.where(better, value - best, 0.0)
            best = best + gain
            odds = np.where(better[stretch], new, odds)
            if step >= SURE and gain.max() < ENOUGH:
                break
        q = expit(odds)
        aa, ab, bb = precision(trials * q * (1 - q))
        det = aa * bb - ab * ab
        evidence = best - 0.5 * np.log(det) + 0.5 * np.log(tight * tight_slope)
        var = (bb[stretch] - 2 * ab[stretch] * away + np.where(sloped, aa[stretch] * away**2, 0.0)) / det[
            stretch
        ]
        return cls(evidence, odds, np.sqrt(np.maximum(var, 1e-12)))

"""Binned calibration errors by plain loops in exact arithmetic.

Scores, outcomes, weights, edges and centres are floats taken at their exact value; everything computed from
them is a fraction, rounded once at the end.
"""

from fractions import Fraction
from itertools import pairwise
from math import floor, isqrt, sqrt

import numpy as np

# Relative; absorbs the rounding of floating weights where a floor or a rank is taken.
SLACK = Fraction(1, 10**9)


def binned(scores, outcomes, *, binning, mapping, n_bins, norm="l1", weights=None):
    """Calibration error over bins: `l1`, `l2` or `max` of the gaps, by the mass of the bins."""
    return norm_of(totals(rows(scores, outcomes, weights), binning, mapping, n_bins), norm)


def bins(scores, outcomes, *, binning, mapping, n_bins, weights=None):
    """List of ((left, right), weight, mean score, frequency) per bin; the means of an empty bin are None."""
    found = []
    for ends, mass, score, outcome in totals(rows(scores, outcomes, weights), binning, mapping, n_bins):
        means = (float(score / mass), float(outcome / mass)) if mass > 0 else (None, None)
        found.append((ends, float(mass), *means))
    return found


def rows(scores, outcomes, weights=None):
    """Rows (score, outcome, weight) in score order: counts become repeated rows, weightless rows go."""
    scores, outcomes = np.asarray(scores, dtype=float), np.asarray(outcomes)
    if weights is None:
        weights = np.ones(len(scores), dtype=int)
    weights = np.asarray(weights)
    counts = np.issubdtype(weights.dtype, np.integer)
    expanded = []
    for score, outcome, weight in zip(scores, outcomes, weights, strict=True):
        if counts:
            expanded += [(float(score), int(outcome), Fraction(1))] * int(weight)
        elif weight > 0:
            expanded.append((float(score), int(outcome), Fraction(float(weight))))
    return sorted(expanded)


def effective_size(sample):
    """(sum w)^2 / sum w^2, which for repeated rows is their number."""
    return sum(w for _, _, w in sample) ** 2 / sum(w * w for _, _, w in sample)


def number_of_bins(sample, n_bins):
    """Floor of the root of the effective size for "sqrt"."""
    return isqrt(floor(effective_size(sample) * (1 + SLACK))) if n_bins == "sqrt" else n_bins


def ladder(sample):
    """Scores in order with the cumulative weight up to each, the whole weighing n_eff."""
    scale = effective_size(sample) / sum(w for _, _, w in sample)
    climbed, steps = Fraction(0), []
    for score, _, weight in sample:
        climbed += weight * scale
        steps.append((climbed, score))
    return steps


def order_statistic(steps, rank):
    """Score of the given rank from 0: the first whose cumulative weight exceeds it."""
    top, last = steps[-1]
    enough = rank + SLACK * top
    for climbed, score in steps:
        if climbed > enough:
            return score
    return last


def uniform_edges(sample, n_bins):
    """Edges i/B, each correctly rounded."""
    n_bins = number_of_bins(sample, n_bins)
    return [float(Fraction(i, n_bins)) for i in range(n_bins + 1)]


def adaptive_edges(sample, n_bins):
    """Cuts after floor(i n / B) samples, at the midpoint of the two neighbours.

    Between neighbouring floats there is no midpoint; the upper one then divides them.
    """
    n_bins, size, steps = number_of_bins(sample, n_bins), effective_size(sample), ladder(sample)
    edges = [0.0]
    for i in range(1, n_bins):
        rank = floor(i * size / n_bins * (1 + SLACK))
        if rank == 0:
            edges.append(0.0)
        else:
            below, above = order_statistic(steps, rank - 1), order_statistic(steps, rank)
            middle = (below + above) / 2
            edges.append(middle if middle > below else above)
    return [*edges, 1.0]


def bins_between(edges):
    """Neighbouring edges, as (left, right)."""
    return list(pairwise(edges))


def bins_around_centres(edges):
    """Centres in order, each once, with the ends of the bins that have it: {centre: (left, right)}."""
    around = {}
    for left, right in bins_between(edges):
        centre = (left + right) / 2
        first_left = around[centre][0] if centre in around else left
        around[centre] = (first_left, right)
    return around


def share_one(score, edges):
    """All to the bin that is left-closed around the score; the last bin is closed."""
    for j, (left, right) in enumerate(bins_between(edges)):
        if left <= score < right:
            return {j: Fraction(1)}
    filled = [j for j, (left, right) in enumerate(bins_between(edges)) if left <= score <= right]
    return {filled[-1]: Fraction(1)}


def share_convex(score, centres):
    """Linear interpolation between the two neighbouring centres; beyond the outer ones, all to them."""
    if score <= centres[0]:
        return {0: Fraction(1)}
    for j in range(len(centres) - 1):
        if centres[j] < score <= centres[j + 1]:
            left, right = Fraction(centres[j]), Fraction(centres[j + 1])
            towards_right = (Fraction(score) - left) / (right - left)
            return {j: 1 - towards_right, j + 1: towards_right}
    return {len(centres) - 1: Fraction(1)}


def share_published(score, centres):
    """The two convex weights exchanged, as the paper prints them; beyond the outer centres as they are.

    The weights jump at a centre. A score equal to one counts as left of it: it goes wholly to the bin
    before, and at the first centre to the first bin.
    """
    convex = share_convex(score, centres)
    if len(convex) == 1:
        return convex
    (left, to_left), (right, to_right) = convex.items()
    return {left: to_right, right: to_left}


def totals(sample, binning, mapping, n_bins):
    """Per bin its ends and the sums of weight, weight x score and weight x outcome."""
    edges = {"uniform": uniform_edges, "adaptive": adaptive_edges}[binning](sample, n_bins)
    if mapping == "one":
        ends, places, share = bins_between(edges), edges, share_one
    else:
        around = bins_around_centres(edges)
        ends, places = list(around.values()), list(around)
        share = {"convex": share_convex, "published": share_published}[mapping]
    sums = [[Fraction(0), Fraction(0), Fraction(0)] for _ in ends]
    for score, outcome, weight in sample:
        for j, part in share(score, places).items():
            sums[j][0] += part * weight
            sums[j][1] += part * weight * Fraction(score)
            sums[j][2] += part * weight * outcome
    return [(end, *total) for end, total in zip(ends, sums, strict=True)]


def norm_of(per_bin, norm):
    """Gaps |sum W r| / sum W of the bins with mass, brought together."""
    masses = [mass for _, mass, _, _ in per_bin if mass > 0]
    gaps = [abs(outcome - score) / mass for _, mass, score, outcome in per_bin if mass > 0]
    if norm == "max":
        return float(max(gaps))
    power = {"l1": 1, "l2": 2}[norm]
    mean = sum(mass * gap**power for mass, gap in zip(masses, gaps, strict=True)) / sum(masses)
    return float(mean) if norm == "l1" else sqrt(mean)

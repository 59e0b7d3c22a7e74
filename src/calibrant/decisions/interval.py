"""Ends of an interval for a regret, from what is known of the frequencies where decisions are taken."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calibrant.decisions.one_score import Gain, Lines, OneScore
from calibrant.evidence import Array

# Sets of normal multipliers for the largest of many deviations.
SETS, SEED = 1000, 20240714


class Ends(NamedTuple):
    """Value, both ends, and the gain on held-out rows, of each decision."""

    value: Array
    low: Array
    high: Array
    gain: Gain


def ends(known: OneScore, lines: Lines, level: float, *, simultaneous: bool = False) -> Ends:
    """Return intervals for the regret of each decision, or a band that holds all of them.

    The low end is that of the gain on held-out rows, which is at most the regret on average. The high end
    is the largest of that gain's, of the posterior's, and of what blocks of neighbouring rows could gain at
    most.
    """
    value, gain = known.regret(lines), known.held_out_gain(lines)
    usual = known.deviate(level)
    deviate = max(usual, _largest(known, lines, gain, level)) if simultaneous else usual
    share = (1 + level) / 2
    upper = np.quantile(known.drawn(lines), share, axis=1, method="inverted_cdf")
    upper = value + deviate / usual * np.maximum(upper - value, 0.0)
    high = np.maximum.reduce([value, upper, gain.mean + deviate * gain.error, known.reach(lines, deviate)])
    low = np.clip(gain.mean - deviate * gain.error, 0.0, value)
    # Rounding may lift a value above the most that can be lost.
    return Ends(value, low, np.maximum(np.minimum(high, lines.top), value), gain)


def _largest(known: OneScore, lines: Lines, gain: Gain, level: float) -> float:
    """Return the quantile of the largest deviation of any decision's gain, in its standard errors."""
    rng = np.random.default_rng(SEED)
    parts, p = known.parts, known.parts.frequency
    before, after = lines.taken(parts.score), lines.taken(known.held_out)
    (no, yes), (less_no, less_yes) = lines.at(before), lines.at(after)
    no, yes = no - less_no, yes - less_yes
    # Outcomes of a part move the gains of all decisions together.
    size = np.sqrt(parts.spread * p * (1 - p)) * (yes - no)
    luck = np.sqrt(parts.spread) * (no + (yes - no) * p - gain.mean[:, None])
    noise = rng.standard_normal((SETS, parts.mass.size)) @ size.T
    noise += rng.standard_normal((SETS, parts.mass.size)) @ luck.T
    rest = np.sqrt(np.maximum((gain.error * known.n) ** 2 - (size**2 + luck**2).sum(axis=1), 0.0))
    noise += rng.standard_normal((SETS, 1)) * rest
    most = np.abs(noise / (gain.error * known.n)).max(axis=1)
    return float(np.quantile(most, level)) * known.deviate(level) / _normal(level)


def _normal(level: float) -> float:
    from scipy.special import ndtri

    return float(ndtri((1 + level) / 2))

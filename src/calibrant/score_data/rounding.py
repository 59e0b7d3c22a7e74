"""Tell scores that were rounded to some decimals from scores that repeat, such as those of a lookup table.

Both give equal scores to several rows. Rounding says nothing about the model: scores that chance puts on
the same decimal have no effect in common. On a decimal grid, a smooth density gives about as many distinct
values, and about as many pairs of equal scores, as its neighbouring values predict; a table gives fewer
values and more pairs. The votes of 50 or 500 trees are on a coarser grid, the multiples of 0.02 or 0.002.

See docs/methods/default-estimator.md, "Rounded scores".
"""

from __future__ import annotations

import numpy as np

from calibrant.score_data.moments import Array

# Largest number of decimals of a rounded score.
MOST_DECIMALS = 6
# At most this many distinct scores are a few chosen values, whatever their decimals.
FEW_SCORES = 32
# Values closer to 0 and 1 than this many units are left out: saturated scores pile up there.
END_UNITS = 5
# Windows over which the density is taken as constant: least number of rows and of units.
WINDOW_ROWS, WINDOW_UNITS = 50, 5
# Least number of distinct values relative to the expected number; largest ratio of pairs of equal scores to
# the expected number, without its noise; number of pairs from which the expectation is extrapolated.
LEAST_DISTINCT, LARGEST_EXCESS, MANY_PAIRS = 0.9, 1.08, 400
# Least number of possible scores in a cell from which on pairs are counted in cells.
LEAST_POSSIBLE = 2.0
# A value with more than these rows, and this many times those of its neighbours, is no sign of either.
LONE_ROWS, LONE_RATIO = 20, 8
# Least number of rows that tell anything.
LEAST_ROWS = 20


def look_rounded(score: Array, rows: Array) -> bool:
    """Tell whether scores look like those of a smooth density that were rounded to some decimals.

    Parameters
    ----------
    score : array (scores,)
        Distinct scores, increasing.
    rows : array (scores,)
        Number of rows with each of them.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> smooth = np.unique(rng.beta(2, 3, 2000).round(3), return_counts=True)
    >>> table = np.unique(rng.choice(rng.beta(2, 3, 100).round(3), 2000), return_counts=True)
    >>> look_rounded(*smooth), look_rounded(*table)
    (True, False)
    """
    units = _units(score)
    if units is None or score.size <= FEW_SCORES:
        return False
    unit = np.rint(score * units).astype(np.intp)
    inner = (unit >= END_UNITS) & (unit <= units - END_UNITS)
    unit, rows = unit[inner], np.rint(rows[inner])
    if rows.sum() < LEAST_ROWS or _distinct_ratio(unit, rows) < LEAST_DISTINCT:
        return False
    excess, pairs = _pair_ratio(unit, rows)
    return excess <= LARGEST_EXCESS + 4 * float(np.sqrt(7 / max(pairs, 1)))


def stand_alone(score: Array, rows: Array) -> Array:
    """Return which scores have many more rows than the scores around them: no rounding made these equal.

    >>> stand_alone(np.array([0.1, 0.2, 0.3, 1.0]), np.array([9.0, 8.0, 9.0, 400.0]))
    array([False, False, False,  True])
    """
    units = _units(score)
    if units is None:
        return np.zeros(score.shape, dtype=bool)
    unit = np.rint(score * units).astype(np.intp)
    return _lone(np.bincount(unit - unit[0], np.rint(rows)))[unit - unit[0]]


def pairs_are_chance(score: Array, rows: Array, single: Array, width: Array) -> bool:
    """Tell whether rows of a cell share one score as rarely as they would by rounding.

    This is the rule for scores with so many decimals that a cell holds several of them: m rows of a cell with
    u possible scores are all equal with probability u^(1 - m).

    Parameters
    ----------
    score, rows : arrays (cells,)
        Mean score and number of rows of each cell.
    single : array of bool (cells,)
        Whether all rows of the cell have the same score.
    width : array (cells,)
        Width of each cell.
    """
    units = _units(score[single])
    if units is None:
        return False
    several = (rows > 1 + 1e-6) & (score * units > END_UNITS) & ((1 - score) * units > END_UNITS)
    possible = width[several] * units
    if not several.any() or np.median(possible) < LEAST_POSSIBLE:
        return False
    expected = float((possible ** (1 - rows[several])).sum())
    return np.count_nonzero(single[several]) <= expected + 4 * np.sqrt(expected)


def _units(score: Array) -> int | None:
    """Return how many steps the coarsest grid of decimals with all scores has between 0 and 1, if any."""
    most = 10**MOST_DECIMALS
    scaled = score * most
    unit = np.rint(scaled)
    if not score.size or np.abs(scaled - unit).max() >= 1e-9 * most:
        return None
    return most // int(np.gcd.reduce(unit.astype(np.intp), initial=most))


def _distinct_ratio(unit: Array, rows: Array) -> float:
    """Return the number of distinct values over the number expected under a density constant in windows."""
    before = np.concatenate([[0.0], np.cumsum(rows)])
    expected, start = 0.0, 0
    while start < unit.size:
        enough_rows = np.searchsorted(before, before[start] + WINDOW_ROWS)
        enough_units = np.searchsorted(unit, unit[start] + WINDOW_UNITS)
        stop = min(max(int(enough_rows), int(enough_units), start + 1), unit.size)
        width = max((unit[stop] if stop < unit.size else unit[-1] + 1) - unit[start], 1)
        inside = before[stop] - before[start]
        expected += 1.0 if width == 1 else width * -np.expm1(inside * np.log1p(-1 / width))
        start = stop
    return unit.size / expected


def _pair_ratio(unit: Array, rows: Array) -> tuple[float, float]:
    """Return pairs of equal scores over those that neighbouring values predict, and the number of pairs."""
    count = np.bincount(unit - unit[0], rows)
    count = np.where(_lone(count), 0.0, count)
    equal = float((count * (count - 1)).sum())
    apart = [float(count[:-k] @ count[k:]) if count.size > k else 0.0 for k in (1, 2, 3, 4)]
    expected = max(2 * apart[0] - apart[1], apart[0]) if equal >= MANY_PAIRS else sum(apart) / len(apart)
    return equal / max(expected, 0.5), equal


def _lone(count: Array) -> Array:
    """Return which units have many more rows than the two units on each side."""
    neighbours = np.convolve(np.pad(count, 2), [1, 1, 0, 1, 1], "valid")
    return np.asarray((count > LONE_ROWS) & (count > LONE_RATIO * (neighbours + 1)))

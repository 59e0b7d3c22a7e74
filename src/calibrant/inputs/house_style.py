"""Palette, words and ticks that every picture shares, whichever package draws it."""

from __future__ import annotations

from typing import Any

import numpy as np

# The light palette of report/style.css, by the names it has there.
INK, SOFT, GREY, LINE, TINT = "#1a1a1a", "#595959", "#8a8a8a", "#d9d9d9", "#f5f6f7"
BLUE, ORANGE, HIGH, LOW = "#0072b2", "#b34700", "#a33c00", "#005a8f"

CALIBRATED, EXPECTED = "calibrated", "expected if calibrated"
# Which side of the frequency a score lies on, and the colours of the sides.
SIDES, SIDE_COLORS = ("score too high", "score too low", "no error found"), (HIGH, LOW, SOFT)
# No error was found, in enough rows to find one; and too few of them.
NO_ERROR, TOO_FEW = "looks right", "too few rows"
GAP = "calibration gap (frequency minus score)"
# A largest bar this many times the median one asks for a log scale.
DWARFED = 25.0


def sides(score: Any, low: Any, high: Any) -> Any:
    """Return which of `SIDES` holds for scores whose frequencies lie between `low` and `high`.

    >>> [SIDES[k] for k in sides([0.7, 0.3, 0.5], [0.4] * 3, [0.6] * 3)]
    ['score too high', 'score too low', 'no error found']
    """
    return np.select([np.less(high, score), np.greater(low, score)], [0, 1], 2)


def error_text(error: float) -> str:
    """Return a calibration error to three places.

    >>> error_text(0.0804), error_text(0.0002)
    ('0.080', '< 0.001')
    """
    return "< 0.001" if error < 0.001 else f"{error:.3f}"


def log_odds_ticks(low: float, high: float, most: int = 12) -> dict[float, str]:
    """Return round scores for an axis of log-odds from `low` to `high`, with their texts.

    >>> log_odds_ticks(0.002, 0.95)
    {0.01: '0.01', 0.1: '0.1', 0.5: '0.5', 0.9: '0.9'}
    """
    ticks = {0.5: "0.5"}
    for k in range(1, 10):
        power = f"10⁻{'⁰¹²³⁴⁵⁶⁷⁸⁹'[k]}"
        small, large = 10.0**-k, 1 - 10.0**-k
        ticks[small] = f"{small:g}" if k < 4 else power
        ticks[large] = f"{large:g}" if k < 4 else f"1−{power}"
    kept = sorted(tick for tick in ticks if low <= tick <= high)
    middle, step = kept.index(0.5), -(-len(kept) // most)
    return {tick: ticks[tick] for i, tick in enumerate(kept) if (i - middle) % step == 0}

"""The calibration error and the evidence against calibration over time."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.inputs import house_style as house
from calibrant.plot import canvas
from calibrant.plot.canvas import Size, plain

if TYPE_CHECKING:
    from calibrant.monitor import Monitor

# Inches of a new figure, and how far above its limit the e-process is drawn.
WIDE, HIGH, BEYOND = 6.0, 4.6, 1e4


def monitor(result: Monitor, ax: Any = None, *, figsize: Size = None) -> Any:
    """Draw the calibration error of each batch and, below, the e-process with its limit.

    Parameters
    ----------
    result : Monitor
        What to draw. The interval of the onset is shaded, where there is an alarm.
    ax : sequence of two Axes, optional
        Where to draw; one new figure otherwise.
    figsize : pair of floats, optional
        Size of a new figure in inches.

    Returns
    -------
    sequence of Axes

    See Also
    --------
    calibrant.Monitor : Watches calibration over time.

    Examples
    --------
    >>> import calibrant
    >>> watch = calibrant.Monitor()
    >>> for day in range(3):
    ...     watch = watch.update([0, 0, 1, 1] * 50, [0.2, 0.4, 0.6, 0.8] * 50, at=day)
    >>> error, process = calibrant.plot.monitor(watch)
    """
    result = copy(result)  # which another thread may update meanwhile
    ax = canvas.stacked(ax, 2, figsize or (WIDE, HIGH))
    (top, bottom), rows, alarm = ax, result.history, result.alarm
    x, at = np.arange(len(rows)), [row.at for row in rows]
    value, low, high, expected = (
        np.array([getattr(row, name) for row in rows]) for name in ("value", "low", "high", "expected")
    )
    shown = {"color": house.GREY, "alpha": 0.3, "lw": 0}
    top.fill_between(x, 0, expected, label="95 % of errors if calibrated", **shown)
    top.fill_between(x, low, high, color=house.BLUE, alpha=0.2, lw=0)
    top.plot(x, value, color=house.BLUE, lw=1.6, label="error with 95 % interval")
    top.set(ylabel="calibration error", ylim=(0, None))
    e = np.minimum([row.e_value for row in rows], result.limit * BEYOND)
    bottom.plot(x, e, color=house.BLUE, lw=1.6, label="e-value")
    bottom.axhline(result.limit, color=house.INK, lw=1, ls="--", label=f"limit {result.limit:.4g}")
    bottom.set(ylabel="e-value", yscale="log")
    if alarm is not None:
        for each in ax:
            ends = at.index(alarm.onset_low) - 0.5, at.index(alarm.onset_high) + 0.5
            each.axvspan(*ends, color=house.ORANGE, alpha=0.2, lw=0, label="onset, 90 % interval")
            each.axvline(at.index(alarm.at), color=house.ORANGE, lw=1.4, ls=":", label="alarm")
    shown_at = np.unique(np.linspace(0, max(len(rows) - 1, 0), 5).astype(int)) if len(rows) else x
    bottom.set_xticks(shown_at, [plain(str(at[k])) for k in shown_at])
    for each in ax:
        canvas.above(each, *canvas.handles(each), **canvas.KEY)
    return ax

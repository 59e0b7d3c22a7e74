"""The page of a monitor: the error and the evidence over time."""

from __future__ import annotations

from copy import copy
from importlib.metadata import version
from typing import Any

import numpy as np
from markupsafe import Markup

from calibrant.inputs.house_style import BLUE, GREY, INK, ORANGE
from calibrant.monitor import Monitor
from calibrant.report.chart import _grid
from calibrant.report.page import _rendered
from calibrant.report.svg import Axis, area, drawing, path, tag, text
from calibrant.score_data import Array

# Width and height of a drawing on wide pages and on phones, and its margins.
SIZES = {"broad": (880.0, 250.0), "slim": (360.0, 230.0)}
LEFT, TOP, RIGHT, FOOT = 52.0, 26.0, 12.0, 24.0
# How far above its limit the e-process is drawn, in powers of ten.
BEYOND = 4.0


def monitor_page(monitor: Monitor) -> str:
    """Return the page of a monitor as text."""
    monitor = copy(monitor)  # which another thread may update meanwhile
    drawn = SIZES if monitor.history else ()
    charts: dict[str, Any] = {
        "error_charts": [_errors(monitor, name) for name in drawn],
        "evidence_charts": [_evidence(monitor, name) for name in drawn],
    }
    return _rendered("monitor.html.j2", m=monitor, version=version("calibrant"), **charts)


def _axes(monitor: Monitor, name: str, low: float, high: float) -> tuple[Axis, Axis, list[Markup]]:
    """Return the axes of a chart over time, and its dates with the reference period, onset and alarm."""
    width, height = SIZES[name]
    rows, bottom = monitor.history, height - FOOT
    at = [row.at for row in rows]
    x = Axis(LEFT, width - LEFT - RIGHT, -0.5, len(rows) - 0.5)
    y = Axis(bottom, TOP - bottom, low, high)
    parts = []

    def shaded(first: int, last: int, **style: Any) -> Markup:
        a, b = x([first - 0.5, last + 0.5]).tolist()
        return tag("rect", x=a, y=TOP, width=b - a, height=bottom - TOP, **style)

    if monitor.settings.reference:
        last = min(monitor.settings.reference, len(rows)) - 1
        parts.append(shaded(0, last, fill=GREY, fill_opacity="0.15", class_="expected"))
    if (alarm := monitor.alarm) is not None:
        ends = at.index(alarm.onset_low), at.index(alarm.onset_high)
        parts.append(shaded(*ends, fill=ORANGE, fill_opacity="0.2", class_="dot orange"))
        when = float(x(at.index(alarm.at)))
        line = {"stroke": ORANGE, "stroke_width": 2, "stroke_dasharray": "2 3", "class_": "curve orange"}
        parts.append(tag("line", x1=when, x2=when, y1=TOP, y2=bottom, **line))
    for k in np.unique(np.linspace(0, len(rows) - 1, 7 if name == "broad" else 3).astype(int)).tolist():
        anchor = "start" if k == 0 else "end" if k == len(rows) - 1 else "middle"
        parts.append(text(str(at[k]), float(x(k)), bottom + 18, text_anchor=anchor))
    return x, y, parts


def _line(x: Axis, y: Axis, values: Array) -> Markup:
    d = path(x(np.arange(len(values))), y(values))
    return tag("path", d=d, fill="none", stroke=BLUE, stroke_width=2, class_="curve blue")


def _errors(monitor: Monitor, name: str) -> Markup:
    """Draw the calibration error of each batch with its interval, and what is expected if calibrated."""
    rows = monitor.history
    value, low, high, expected = (
        100 * np.array([getattr(row, each) for row in rows]) for each in ("value", "low", "high", "expected")
    )
    x, y, parts = _axes(monitor, name, 0.0, 1.05 * max(float(high.max()), float(expected.max()), 0.01))
    at, zero = x(np.arange(len(rows))), y(np.zeros(len(rows)))
    parts = [
        tag("path", d=area(at, zero, y(expected)), fill=GREY, class_="expected", fill_opacity="0.35"),
        *_grid(y, LEFT, SIZES[name][0] - RIGHT),
        *parts,
        tag("path", d=area(at, y(low), y(high)), fill=BLUE, class_="dot blue", fill_opacity="0.2"),
        _line(x, y, value),
        text("calibration error, percentage points", 0, 14),
    ]
    words = (
        "The calibration error of each batch with its 95 % interval, and the range expected if calibrated."
    )
    return drawing(*SIZES[name], "Calibration error over time", words, f"errors-{name}", parts)


def _evidence(monitor: Monitor, name: str) -> Markup:
    """Draw the e-process on a log scale with its limit."""
    limit = float(np.log10(monitor.limit))
    drawn = np.minimum(np.log10([row.e_value for row in monitor.history]), limit + BEYOND)
    low, high = min(float(drawn.min()), -0.5) - 0.2, max(float(drawn.max()), limit) + 0.3
    x, y, parts = _axes(monitor, name, low, high)
    ends = {"x1": LEFT, "x2": SIZES[name][0] - RIGHT}
    for power in range(int(np.ceil(low)), int(high) + 1):
        up = float(y(power))
        parts.append(tag("line", **ends, y1=up, y2=up, class_="grid", stroke=GREY, stroke_width="0.5"))
        parts.append(text(f"{10.0**power:,.6g}", LEFT - 7, up + 4, text_anchor="end"))
    up = float(y(limit))
    parts += [
        tag("line", **ends, y1=up, y2=up, stroke=INK, class_="null", stroke_dasharray="6 4"),
        text(f"limit {monitor.limit:.3g}", LEFT + 4, up - 6, fill=INK, class_="known"),
        _line(x, y, drawn),
        text("e-value, log scale", 0, 14),
    ]
    words = "The e-process after each batch, and the limit at which the alarm rises."
    return drawing(*SIZES[name], "Evidence over time", words, f"evidence-{name}", parts)

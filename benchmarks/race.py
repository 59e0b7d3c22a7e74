"""Targets, rows, the clock and the table: everything about a comparison except who takes part in it."""

import contextlib
import ctypes
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Data = tuple[np.ndarray, np.ndarray]  # labels, scores
Call = Callable[[], float]


@dataclass(frozen=True)
class Target:
    """At most `bound` times the peer's time (`within`), or at least `bound` times as fast (`faster`)."""

    kind: str
    bound: float

    def judge(self, ours: float, peer: float) -> tuple[float, bool]:
        ratio = ours / peer if self.kind == "within" else peer / ours
        return ratio, ratio <= self.bound if self.kind == "within" else ratio >= self.bound

    def words(self, ratio: float | None = None) -> str:
        sign, unit = ("<=", "time") if self.kind == "within" else (">=", "speed")
        return f"{sign} {self.bound:g}x {unit}" if ratio is None else f"{ratio:.3g}x {unit}"


def within(bound: float) -> Target:
    return Target("within", bound)


def faster(bound: float) -> Target:
    return Target("faster", bound)


@dataclass
class Row:
    name: str
    ours: float | None = None  # seconds, or GB where the name says memory
    peer: float | None = None
    ratio: float | None = None
    ratio_words: str = ""
    target: str = ""
    met: bool | None = None
    note: str = ""


@dataclass(frozen=True)
class Peer:
    """A contender: `ready` builds its call and may fail to import; `scale` extrapolates its time."""

    name: str
    ready: Callable[[Data], Call]
    target: Target
    scale: float = 1.0
    tolerance: float | None = None  # on the difference from our value; None when it is another quantity
    note: str = ""


# ---- the clock


def keep_memory() -> None:
    """Have the C library (glibc) keep freed memory instead of handing it back to the system.

    By default whether an array costs page faults depends on what was freed before it, that is, on the other
    contenders. The peers and the bare versions gain the most from this, since they allocate the most.
    """
    trim_threshold, mmap_threshold = -1, -3
    with contextlib.suppress(AttributeError, OSError, TypeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(trim_threshold, 2**31 - 1)
        libc.mallopt(mmap_threshold, 2**30)


def seconds(call: Call, number: int) -> float:
    start = time.perf_counter()
    for _ in range(number):
        call()
    return (time.perf_counter() - start) / number


def race(
    calls: dict[str, Call], least: int = 7, most: int = 61, budget: float = 10.0
) -> tuple[dict[str, float], dict[str, float]]:
    """Median seconds and value of each call, in turns; `least` rounds, up to `most` within the budget."""
    values = {name: float(call()) for name, call in calls.items()}  # also the warm-up
    number = {name: max(1, round(0.005 / max(seconds(call, 1), 1e-7))) for name, call in calls.items()}
    times: dict[str, list[float]] = {name: [] for name in calls}
    start = time.perf_counter()
    for done in range(most):
        if done >= least and time.perf_counter() - start > budget:
            break
        for name, call in calls.items():
            times[name].append(seconds(call, number[name]))
    return {name: statistics.median(taken) for name, taken in times.items()}, values


def prepare(ready: Callable[[Data], Call], data: Data) -> tuple[Call | None, str]:
    """The call, tried once; or None and the reason there is none."""
    try:
        call = ready(data)
        call()
    except ImportError as error:
        return None, f"not installed ({error.name or error})"
    except Exception as error:  # one contender that fails must not take the table with it
        return None, f"{type(error).__name__}: {error}"[:90]
    return call, ""


def compete(name: str, data: Data, ours: Callable[[Data], Call], peers: list[Peer]) -> list[Row]:
    """One row per peer."""
    keep_memory()
    calls, reasons = {}, {}
    for label, ready in [("ours", ours), *((peer.name, peer.ready) for peer in peers)]:
        call, reasons[label] = prepare(ready, data)
        if call is not None:
            calls[label] = call
    times, values = race(calls)
    rows = []
    for peer in peers:
        row = Row(f"{name} | {peer.name}", times.get("ours"), target=peer.target.words(), note=peer.note)
        if peer.name in times:
            row.peer = times[peer.name] * peer.scale
        missing = [f"{who}: {reasons[who]}" for who in ("ours", peer.name) if reasons[who]]
        if missing:
            row.note = "; ".join(missing)
        else:
            row.ratio, row.met = peer.target.judge(row.ours, row.peer)
            row.ratio_words = peer.target.words(row.ratio)
            apart = abs(values["ours"] - values[peer.name])
            if peer.tolerance is not None and not apart <= peer.tolerance:
                row.note = f"values differ by {apart:.2g}"
        rows.append(row)
    return rows


# ---- the table


def number(value: float | None) -> str:
    return "-" if value is None else f"{1000 * value:.4g}"


def cells(row: Row) -> list[str]:
    met = {True: "yes", False: "NO", None: "-"}[row.met]
    return [row.name, number(row.ours), number(row.peer), row.ratio_words or "-", row.target, met, row.note]


def table(rows: list[Row]) -> str:
    lines = [["ours | peer", "ours ms", "peer ms", "ratio", "target", "met", "note"], *map(cells, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "  ".join(
            text.rjust(width) if 0 < i < 4 else text.ljust(width)
            for i, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )

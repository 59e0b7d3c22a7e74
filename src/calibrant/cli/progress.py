"""How far the work is: a line on standard error that a terminal draws anew."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Self

from calibrant.cli.output import line, note, printable

if TYPE_CHECKING:
    from calibrant.data import Reading

# Seconds before work shows how far it is, between two drawings on a terminal, between two lines elsewhere.
PATIENCE, REDRAW, EVERY = 1.0, 0.2, 30.0
BAR = 30


class Line:
    """A line that is drawn anew on a terminal and, elsewhere, printed."""

    def __init__(self, quiet: bool, terminal: bool | None = None) -> None:
        self.quiet = quiet
        self.terminal = sys.stderr.isatty() if terminal is None else terminal
        self.width = 0

    def show(self, text: str, share: float | None = None) -> None:
        """Write the line, on a terminal behind a bar of the share that is done."""
        if not self.terminal:
            note(text)
            return
        if share is not None:
            full = int(BAR * min(share, 1.0) + 1e-9)
            text = f"[{'#' * full}{'-' * (BAR - full)}] {text}"
        note("\r" + text.ljust(self.width), nl=False)
        self.width = len(text)

    def wipe(self) -> None:
        """Leave nothing of the line."""
        if self.width:
            note("\r" + " " * self.width + "\r", nl=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.wipe()


class Meter(Line):
    """The progress of a computation: shown on a terminal once it takes a while, and nowhere else.

    Called as progress(done, total) it draws a bar; where nobody calls it, a clock.
    """

    def __init__(self, label: str, quiet: bool) -> None:
        super().__init__(quiet)
        self.label = label
        self.share: float | None = None
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)

    def __call__(self, done: int, total: int) -> None:
        """Report that `done` of `total` is done."""
        self.share = done / total if total else None

    def __enter__(self) -> Self:
        self.started = time.monotonic()
        if self.terminal and not self.quiet:
            self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        if self.thread.is_alive():
            self.thread.join()
        self.wipe()

    def _watch(self) -> None:
        while not self.over.wait(PATIENCE):
            self.show(f"{self.label}: {duration(time.monotonic() - self.started)}", self.share)


class ReadingProgress(Line):
    """The progress of reading files into sums."""

    def __init__(self, quiet: bool) -> None:
        super().__init__(quiet)
        self.shown = time.monotonic()

    def __call__(self, reading: Reading) -> None:
        """Report how far it is, or what was noted at the start."""
        now = time.monotonic()
        if self.quiet:
            return
        if reading.note:
            note(printable(line(reading.note)))
        elif now - self.shown >= (REDRAW if self.terminal else EVERY):
            self.shown = now
            self.show(str(reading), reading.share)


class TaskProgress(Line):
    """The progress of an experiment: tasks done, time left, and the problems that tasks had."""

    def __init__(self, quiet: bool, terminal: bool | None = None, what: str = "models") -> None:
        super().__init__(quiet, terminal)
        self.what = what
        self.problems: dict[str, str] = {}
        self.started: float | None = None
        self.before, self.shown = 0, 0.0

    def __call__(self, done: int, total: int, text: str) -> None:
        """Report that `done` of `total` tasks are done, and a problem that the last one had."""
        now = time.monotonic()
        if self.started is None:
            self.started, self.before, self.shown = now, done, now - EVERY
        if text:
            name, _, problem = text.partition(": ")
            self.problems[name] = problem
        if not self.quiet and (self.terminal or done == total or now - self.shown >= EVERY):
            self.shown = now
            left = self._left(done, total, now - self.started)
            self.show(f"{done} of {total} {self.what}, {left}", done / max(total, 1))

    def __exit__(self, *_: object) -> None:
        if self.width:
            note()

    def _left(self, done: int, total: int, elapsed: float) -> str:
        if done == self.before:
            return "as found" if done else "started"
        if done == total:
            return f"took {duration(elapsed)}"
        return f"about {duration(elapsed / (done - self.before) * (total - done))} left"


def duration(seconds: float) -> str:
    """Return a time such as "40 s", "12 min" or "3.4 h".

    >>> [duration(s) for s in (40, 700, 12345)]
    ['40 s', '12 min', '3.4 h']
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"

"""How far long work is: told to a callable, or shown on standard error to those who ask for it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from calibrant.inputs.errors import InputTypeError

# Seconds between two drawings of the line.
SECONDS_BETWEEN = 0.2


class ProgressLine:
    """A line on standard error that is drawn anew; the last one stays.

    >>> import contextlib
    >>> with contextlib.redirect_stderr(sys.stdout):
    ...     ProgressLine()(3, 3)
    3 of 3
    """

    def __init__(self) -> None:
        self.width, self.last_drawn = 0, -SECONDS_BETWEEN

    def __call__(self, *state: Any) -> None:
        """Show what is reported: how many of how many, or something that prints as a line."""
        counted = len(state) > 1
        ended = state[0] == state[1] if counted else state[0].files == state[0].all_files
        now = time.monotonic()
        if not ended and now - self.last_drawn < SECONDS_BETWEEN:
            return
        self.last_drawn = now
        text = f"{state[0]} of {state[1]}" if counted else str(state[0])
        line = ("\r" if self.width else "") + text.ljust(self.width) + ("\n" if ended else "")
        self.width = 0 if ended else len(text)
        if sys.stderr is not None:
            sys.stderr.write(line)
            sys.stderr.flush()


def progress(requested: Callable[..., Any] | bool | None) -> Callable[..., Any] | None:
    """Return what to tell how far the work is: what was given, a line for True, nobody for None.

    >>> progress(None), progress(print)
    (None, <built-in function print>)
    """
    if requested is None or requested is False:
        return None
    if requested is True:
        return ProgressLine()
    if not callable(requested):
        raise InputTypeError("progress", "be True or callable", requested)
    return requested


class Steps:
    """A count of what is done, for progress."""

    def __init__(self, progress: Callable[..., Any] | None, total: int) -> None:
        self.progress, self.total, self.done = progress, total, 0

    def __call__(self, done: int | None = None) -> None:
        """Count one more step, or report that so many are done; the count never falls."""
        self.done = self.done + 1 if done is None else max(self.done, done)
        if self.progress is not None:
            self.progress(min(self.done, self.total), self.total)

    def end(self) -> None:
        """Report that all is done."""
        self(self.total)

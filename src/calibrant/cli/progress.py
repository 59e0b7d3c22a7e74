"""How far the work is: a bar on standard error, if that is a terminal."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Self

import click

if TYPE_CHECKING:
    from calibrant.data import ReadProgress

# Seconds before work shows how far it is.
PATIENCE = 1.0


class Bar:
    """A progress bar that appears once the work takes a while, and on a terminal only.

    If `resumed`, the first report says what an earlier run had done, which takes no time now.
    """

    def __init__(self, label: str, quiet: bool, *, resumed: bool = False) -> None:
        self.hidden = quiet or not sys.stderr.isatty()
        self.before: int | None = None if resumed else 0
        self.bar = click.progressbar(length=1, label=label, file=sys.stderr, item_show_func=lambda item: item)

    def __enter__(self) -> Self:
        self.started = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar.entered:
            with suppress(OSError):
                self.bar.render_finish()

    def __call__(self, done: int, total: int, text: str | None = None) -> None:
        """Report that `done` of `total` is done, and a text to show beside the bar."""
        if self.before is None:
            self.before = done
            self.bar.label += f" ({done} done before)" if done else ""
        if self.hidden or time.monotonic() - self.started < PATIENCE:
            return
        self.bar.length = total - self.before
        # What a terminal that is gone says never decides how a command ends.
        with suppress(OSError):
            if not self.bar.entered:
                self.bar.__enter__()
            self.bar.update(done - self.before - self.bar.pos, text)

    def reading(self, reading: ReadProgress) -> None:
        """Report how far a reading of files is."""
        self(round(1000 * reading.share), 1000, f"{reading.rate:,.0f} rows/s")

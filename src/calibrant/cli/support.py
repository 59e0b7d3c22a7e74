"""What commands share: progress, errors in one line, and where to import and compute."""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

EXTRA = "pip install 'calibrant[experiment]'"
# Seconds between two lines of progress where there is no terminal.
EVERY = 30.0


class Refused(click.ClickException):
    """A mistake in the arguments, told in one line."""

    exit_code = 2


class Group(click.Group):
    """Commands that say what is wrong with their arguments in one line."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            where = (error.ctx or ctx).command_path
            raise Refused(f"{line(error.format_message())} (see {where} -h)") from None


@dataclass
class Progress:
    """Tasks done and time left: one line that is drawn anew on a terminal, elsewhere one every 30 s."""

    quiet: bool
    terminal: bool
    problems: dict[str, str] = field(default_factory=dict)
    started: float | None = None
    before: int = 0
    told: float = 0.0
    width: int = 0
    what: str = "models"

    def __call__(self, done: int, total: int, text: str) -> None:
        """Report that `done` of `total` tasks are done, and a problem that the last one had."""
        now = time.monotonic()
        if self.started is None:
            self.started, self.before, self.told = now, done, now - EVERY
        if text:
            name, _, problem = text.partition(": ")
            self.problems[name] = problem
        if not self.quiet and (self.terminal or done == total or now - self.told >= EVERY):
            self.told = now
            self._show(done, total, self._left(done, total, now - self.started))

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self.terminal and self.width:
            click.echo(err=True)

    def _left(self, done: int, total: int, elapsed: float) -> str:
        if done == self.before:
            return "as found" if done else "started"
        if done == total:
            return f"took {duration(elapsed)}"
        return f"about {duration(elapsed / (done - self.before) * (total - done))} left"

    def _show(self, done: int, total: int, left: str) -> None:
        text = f"{done} of {total} {self.what}, {left}"
        if self.terminal:
            full = 30 * done // max(total, 1)
            text = f"[{'#' * full}{'-' * (30 - full)}] {text}"
            click.echo("\r" + text.ljust(self.width), nl=False, err=True)
            self.width = len(text)
        else:
            click.echo(text, err=True)


@contextmanager
def one_line() -> Iterator[None]:
    """Tell what went wrong in one line, without a traceback."""
    try:
        yield
    except ImportError as error:
        raise click.ClickException(f"{line(error)}; {EXTRA}") from None
    except (ValueError, OSError) as error:
        raise click.ClickException(line(error)) from None


@contextmanager
def resumable() -> Iterator[None]:
    """Say how to go on when someone, or the lack of memory, stops the work."""
    try:
        yield
    except KeyboardInterrupt:
        raise click.ClickException("stopped; the same command resumes the run") from None
    except BrokenExecutor as error:
        raise click.ClickException(f"{line(error)} The same command resumes the run.") from None


@contextmanager
def importable() -> Iterator[None]:
    """Let the current directory be imported from, here and in worker processes."""
    here, before = str(Path.cwd()), os.environ.get("PYTHONPATH")
    sys.path.insert(0, here)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (here, before)))
    try:
        yield
    finally:
        sys.path.remove(here)
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


@contextmanager
def cluster(scheduler: str | None) -> Iterator[None]:
    """The Dask cluster at an address, if one is given."""
    if scheduler is None:
        yield
        return
    try:
        from distributed import Client
    except ImportError as error:
        raise click.ClickException(f"{error}; pip install 'dask[distributed]'") from None

    with Client(scheduler, timeout="10s"):  # type: ignore[no-untyped-call]
        yield


def need(*modules: str) -> None:
    """Raise unless all of the modules are installed."""
    for name in modules:
        if importlib.util.find_spec(name) is None:
            raise ImportError(f"No module named {name!r}")


def duration(seconds: float) -> str:
    """A time such as "40 s", "12 min" or "3.4 h".

    >>> [duration(s) for s in (40, 700, 12345)]
    ['40 s', '12 min', '3.4 h']
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def line(text: object) -> str:
    """A text without line breaks."""
    return " ".join(str(text).split())

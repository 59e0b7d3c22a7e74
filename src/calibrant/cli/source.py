"""What the commands measure: the rows of a file, or the sums of files that are too large for that."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calibrant.cli.data import (
    arguments,
    check_positive,
    columns,
    name_of,
    printable,
    read_one,
    refusing,
    worded,
)
from calibrant.cli.support import EVERY, Refused, line
from calibrant.inputs import InputError

if TYPE_CHECKING:
    from calibrant import Sketch
    from calibrant.data import Data, Reading

# Seconds between two drawings of a line on a terminal.
REDRAW = 0.2


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows in memory."""

    file: str
    data: Data
    asked: str | None

    @property
    def notion(self) -> str:
        """What is compared."""
        return self.asked or ("class" if self.data.y_prob.ndim == 1 else "confidence")

    @property
    def about(self) -> dict[str, Any]:
        """What JSON says of where a result comes from."""
        return {"source": name_of(self.file), "rows": len(self.data.y_prob), "read": "rows"}

    def refusing(self) -> AbstractContextManager[None]:
        """What the library says of the rows, in the words of the command line."""
        return refusing(self.data)

    def ece(self, **options: Any) -> float:
        """The error alone."""
        import calibrant

        return calibrant.ece(self.data.y_true, self.data.y_prob, **self._common(), **options)

    def estimate(self, **options: Any) -> Any:
        """The error with its interval."""
        import calibrant

        return calibrant.estimate(self.data.y_true, self.data.y_prob, **self._common(), **options)

    def curve(self, **options: Any) -> Any:
        """The reliability curve, or one for each class."""
        import calibrant

        return calibrant.reliability_curve(self.data.y_true, self.data.y_prob, **self._common(), **options)

    def assess(self, **options: Any) -> Any:
        """The assessment."""
        import calibrant

        common = self._common() | {"groups": self.data.groups}
        return calibrant.assess(self.data.y_true, self.data.y_prob, **common, **options)

    def _common(self) -> dict[str, Any]:
        return {"notion": self.asked, **arguments(self.data)}


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over rows, by group."""

    file: str
    name: str
    rows: int
    sketches: Mapping[Any, Sketch]

    @cached_property
    def sketch(self) -> Sketch:
        """The sums of all groups."""
        first, *others = self.sketches.values()
        return sum(others, start=first)

    @property
    def notion(self) -> str:
        """What is compared."""
        return self.sketch.notion

    @property
    def about(self) -> dict[str, Any]:
        """What JSON says of where a result comes from."""
        return {"source": name_of(self.file), "rows": self.rows, "read": "sums"}

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """What the library says of the sums, in the words of the command line."""
        with refusing():
            try:
                yield
            except (ValueError, TypeError) as error:
                if isinstance(error, InputError):
                    error.about = error.about or self.name
                    raise
                raise ValueError(f"{self.name}: {worded(str(error))}") from None

    def ece(self, **options: Any) -> float:
        """The error alone."""
        return self.sketch.ece(**options)

    def estimate(self, **options: Any) -> Any:
        """The error with its interval."""
        return self.sketch.estimate(**options)

    def curve(self, **options: Any) -> Any:
        """The reliability curve, or one for each class."""
        return self.sketch.curve(**options)

    def assess(self, **options: Any) -> Any:
        """The assessment."""
        groups = None if None in self.sketches else self.sketches
        return self.sketch.assess(groups=groups, **options)


def read_source(
    file: str, given: dict[str, Any], notion: str | None, ask: Callable[[Sums], object] = lambda sums: None
) -> Rows | Sums:
    """What a path holds: rows, or sums if there are too many rows or a checkpoint is to be kept.

    `ask` is asked of a handful of rows before a long reading: what is wrong with an option is said at once.
    """
    checkpoint, quiet = given["checkpoint"], given["quiet"]
    if file == "-" and checkpoint is not None:
        raise Refused("--checkpoint needs a file or a folder, and standard input can be read only once")
    large, size = False, ""
    if file != "-":
        from calibrant.data import is_large

        large, size = is_large(file, given["format"])
    if not large and checkpoint is None:
        data = read_one(file, given)
        check_positive(given["positive"], notion, vector=data.y_prob.ndim == 1)
        return Rows(file, data, notion)
    with refusing(), _in_its_words():
        ask(_few(notion))
    if not quiet and large:
        click.echo(f"{size}: read as sums, not rows; memory does not grow with them", err=True)
    with refusing(), Told(quiet) as told:
        from calibrant.data import stream

        asked = columns(given, notion=notion)
        with _in_its_words():
            found = stream(file, asked, format=given["format"], checkpoint=checkpoint, progress=told)
    made = Sums(file, found.source, found.rows, found.sketches)
    check_positive(given["positive"], notion, vector=made.sketch._vector)
    return made


@contextmanager
def _in_its_words() -> Iterator[None]:
    """Errors that name options, where those of the library name arguments."""
    try:
        yield
    except InputError:
        raise
    except (ValueError, TypeError) as error:
        raise ValueError(worded(str(error))) from None


def _few(notion: str | None) -> Sums:
    from calibrant import Sketch

    sketch = Sketch(notion or "class").update([0, 1, 0, 1], [0.2, 0.8, 0.6, 0.6])
    return Sums("", "", 4, {None: sketch})


class Told:
    """How far the reading is: one line that is drawn anew on a terminal, elsewhere one every 30 s."""

    def __init__(self, quiet: bool) -> None:
        self.quiet, self.terminal = quiet, sys.stderr.isatty()
        self.told, self.width = time.monotonic(), 0

    def __call__(self, reading: Reading) -> None:
        """Report how far it is, or what was found at the start."""
        now = time.monotonic()
        if self.quiet or (not reading.note and now - self.told < (REDRAW if self.terminal else EVERY)):
            return
        if reading.note:
            click.echo(printable(line(reading.note)), err=True)
            return
        self.told = now
        text = str(reading)
        if not self.terminal:
            click.echo(text, err=True)
            return
        full = int(30 * min(reading.share, 1.0))
        text = f"[{'#' * full}{'-' * (30 - full)}] {text}"
        click.echo("\r" + text.ljust(self.width), nl=False, err=True)
        self.width = len(text)

    def __enter__(self) -> Told:
        return self

    def __exit__(self, *_: object) -> None:
        if self.width:
            click.echo("\r" + " " * self.width + "\r", nl=False, err=True)


def stem_of(file: str) -> str:
    """What a report of a path is called."""
    if file == "-":
        return "stdin"
    name = name_of(file)
    name = name if Path(file).is_dir() else Path(name.removesuffix(".gz")).stem
    # A pattern is no good name of a file.
    return re.sub(r"[*?\[\]]", "", name).strip("-_. ") or "files"

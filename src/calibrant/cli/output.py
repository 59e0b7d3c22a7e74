"""What the commands print and write: lines a terminal can show, errors in one line, whole files."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from calibrant import Estimate

# Characters of a line of output.
WIDEST = 2000


def open_closed_streams() -> None:
    """Open what the caller closed (`>&-`), to nothing: a file written later must not become the output."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: this one
        if number and getattr(sys, name) is None:  # who reads standard input says that it is closed
            setattr(sys, name, os.fdopen(number, "w", encoding="utf-8", closefd=False))


def discard(stream: IO[Any]) -> None:
    """Send to nothing what a stream still holds: it would be written at exit, and fail again."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def note(text: str = "", *, nl: bool = True) -> None:
    """Print to standard error, if anybody reads it; what it says never decides how a command ends."""
    try:
        click.echo(text, nl=nl, err=True)
    except OSError:
        discard(sys.stderr)


class Refused(click.ClickException):
    """Bad input or usage, told in one line."""

    exit_code = 2

    def __init__(self, message: object) -> None:
        super().__init__(printable(line(message)))


def line(text: object) -> str:
    """Return a text without line breaks."""
    return " ".join(str(text).split())


def printable(text: str) -> str:
    """Return a line without characters that a terminal obeys or cannot show."""
    text = text if len(text) <= WIDEST else text[: WIDEST - 3] + "..."
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def tell(text: object) -> None:
    """Print text that may quote a file."""
    for row in str(text).split("\n"):
        click.echo(printable(row))


def tell_classes(estimate: Estimate, most: int = 12) -> None:
    """Print a line for each class of a class-wise estimate, the worst first; of many, the first."""
    from calibrant.assessment.text import short
    from calibrant.inference.result import p_text

    classes = sorted((estimate.by_class or {}).values(), key=lambda each: -each.value)
    names = [short(str(each.label)) for each in classes[:most]]
    width = max(map(len, names), default=0)
    for name, each in zip(names, classes, strict=False):
        interval = f"{each.value:.4f} [{each.low:.4f}, {each.high:.4f}]"
        tell(f"  class {name:<{width}}  {interval}; {p_text(each.p_value)}")
    if len(classes) > most:
        tell(f"  ... and {len(classes) - most} classes with smaller errors; --json has all")


def tell_json(values: object) -> None:
    """Print JSON."""
    click.echo(json.dumps(values, allow_nan=False, indent=2))


def coloured() -> bool:
    """Return whether colour may be printed: on a terminal, unless the environment says no."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def check_folders(*outputs: Path | None) -> None:
    """Refuse before any work an output in a folder that is not there."""
    for path in outputs:
        if path is not None and not path.parent.is_dir():
            raise Refused(f"cannot write {path}: {path.parent} is no folder")


def check_outputs(inputs: Iterable[str | Path | None], *outputs: Path | None) -> None:
    """Refuse before anything is written an output that is an input, whatever the two are called.

    Inputs are files, folders and patterns; links, hard links and files within a folder count.
    """
    from calibrant.data.files import expanded

    check_folders(*outputs)
    for source in inputs:
        if source is None or source == "-":
            continue
        try:
            files = [str(source)] if os.path.isfile(source) else expanded(source)
        except (ValueError, OSError):
            continue  # what is wrong with it is said when it is read
        for path in outputs:
            if path is not None and any(_same(path, file) for file in files):
                raise Refused(f"cannot write {path}: it is an input, {source}; give another name")


def _same(output: Path, file: str) -> bool:
    try:
        return os.path.samefile(output, file)
    except OSError:  # the output is not there yet
        return os.path.realpath(output) == os.path.realpath(file)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say in one line why a file cannot be written."""
    try:
        yield
    except (OSError, ValueError, ImportError) as error:
        reason = getattr(error, "strerror", None) or error
        raise Refused(f"cannot write {path}: {reason}") from None


def write(path: Path, content: str | bytes) -> None:
    """Write a file whole or not at all; a device or a pipe as it is."""
    from calibrant.atomic import write_whole

    data = content.encode() if isinstance(content, str) else content
    with writing(path):
        if path.exists() and not path.is_file():
            path.write_bytes(data)
        else:
            write_whole(path, [data])

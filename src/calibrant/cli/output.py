"""What the commands print and write: lines a terminal can show, errors in one line, whole files."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import stat
import sys
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import IO, Any

import click

from calibrant.cli.paths import files_of

#: Formats of pictures.
PICTURES = (".png", ".svg", ".pdf")
# Characters of a line of output.
WIDEST = 2000
COLOURS = {"pass": "green", "fail": "red", "inconclusive": "yellow"}


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


def note(text: str) -> None:
    """Print to standard error, if anybody reads it; what it says never decides how a command ends."""
    try:
        click.echo(text, err=True)
    except OSError:
        discard(sys.stderr)


class Refused(click.ClickException):
    """Bad input or usage, told in one line."""

    exit_code = 2

    def __init__(self, message: object) -> None:
        super().__init__(printable(line(message)))


class MissingInput(Refused):
    """An input is not there."""


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


def tell_json(values: object) -> None:
    """Print JSON."""
    click.echo(json.dumps(values, allow_nan=False, indent=2))


def coloured() -> bool:
    """Return whether colour may be printed: on a terminal, unless the environment says no."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def tell_verdict(status: str, sentence: str) -> None:
    """Print a verdict, its first word in colour on a terminal."""
    word = click.style(status.upper(), fg=COLOURS[status], bold=True) if coloured() else status.upper()
    click.echo(f"{word}: {printable(sentence)}")


@contextmanager
def ending(exit_code: int) -> Iterator[None]:
    """End with an exit code after the result is printed, also if nobody reads it."""
    try:
        yield
    except BrokenPipeError:
        discard(sys.stdout)
    raise SystemExit(exit_code)


def check_outputs(
    inputs: Iterable[str | Path | None],
    *outputs: Path | None,
    format: str | None = None,
) -> None:
    """Refuse before anything is read or written what would write over a file that is needed.

    An output must lie in a folder that is there, and be no input, whatever the two are called, and no other
    output; nor may standard output be an input. Of a folder the files of the format are inputs.
    """
    from calibrant.atomic import identity

    context = click.get_current_context(silent=True)
    if context is not None and context.params.get("log") is not None:
        format = "jsonl"  # of a folder of logs, every file may be read
    written: dict[Hashable, Path] = {}
    missing: MissingInput | None = None
    for path in filter(None, outputs):
        if not path.parent.is_dir():
            raise Refused(f"cannot write {path}: {path.parent} is no folder")
        if path.exists() and not path.is_file():
            continue  # a device or a pipe holds nothing; a folder is refused when it is written
        file_identity = identity(path)
        if file_identity in written:
            raise Refused(f"outputs must be two files, got {written[file_identity]} and {path}")
        written[file_identity] = path
    if (file_identity := _redirected(sys.stdout)) is not None:
        written.setdefault(file_identity, Path("standard output"))
    for source in chain.from_iterable(files_of(each) for each in inputs if each is not None):
        try:
            read = (
                [_redirected(sys.stdin)]
                if source == "-"
                else [identity(file) for file in _files(source, format)]
            )
        except MissingInput as error:  # the others are looked at first
            missing, read = missing or error, []
        for file_identity in read:
            if file_identity in written:
                raise Refused(
                    f"cannot write {written[file_identity]}: it is an input, {source}; give another name"
                )
    if missing is not None:
        raise missing


def _files(source: str | Path, format: str | None) -> list[str]:
    """Return the files that an input means."""
    from calibrant.data.files import expanded

    if os.path.isfile(source):
        return [str(source)]
    try:
        return expanded(source, format)
    except FileNotFoundError as error:
        raise MissingInput(error) from None
    except (ValueError, OSError) as error:
        raise Refused(error) from None


def _redirected(stream: Any) -> Hashable:
    """Return what tells the file behind a standard stream from others, None if that is no file."""
    try:
        about = os.fstat(stream.fileno())
    except (AttributeError, OSError, ValueError):  # closed, or none of the system's
        return None
    return (about.st_dev, about.st_ino) if stat.S_ISREG(about.st_mode) else None


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say in one line why a file cannot be written."""
    try:
        yield
    except BrokenPipeError:  # nobody reads on
        raise
    except (OSError, ValueError, ImportError) as error:
        reason = getattr(error, "strerror", None) or error
        raise Refused(f"cannot write {path}: {reason}") from None


def write(path: Path, content: str | bytes) -> None:
    """Write a file whole or not at all."""
    from calibrant.atomic import write_atomic

    with writing(path):
        write_atomic(path, [content.encode() if isinstance(content, str) else content])


def check_drawable(out: Path | None) -> None:
    """Refuse before any work a picture that cannot be drawn, because matplotlib is not installed."""
    picture = out is not None and out.suffix.lower() in PICTURES
    if picture and importlib.util.find_spec("matplotlib") is None:
        raise Refused("No module named 'matplotlib'; pip install 'calibrant[plot]'")


def new_figure(width: float, height: float) -> Any:
    """Make a figure of so many inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def drawn(figure: Any, path: Path) -> bytes:
    """Return a figure in the format of a path's suffix."""
    picture = io.BytesIO()
    with writing(path):
        figure.savefig(picture, format=path.suffix[1:].lower(), dpi=150)
    return picture.getvalue()


def save(out: Path | None, result: Any, width: float, height: float, **panels: Any) -> None:
    """Write a picture of a result, or its page if the suffix is none of a picture, to a path if given."""
    if out is None:
        return
    if out.suffix.lower() not in PICTURES:
        write(out, str(result.to_html()))
        return
    figure = new_figure(width, height)
    result.plot(figure.subplots(**panels))
    write(out, drawn(figure, out))

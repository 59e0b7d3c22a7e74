"""Files that are there whole or not at all, and rows as the text of a CSV file."""

from __future__ import annotations

import csv
import errno
import os
import re
import stat
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO


def write_atomic(path: str | os.PathLike[str], parts: Iterable[bytes], *, parents: bool = False) -> None:
    """Write a file of these parts; see `atomic_file`."""
    with atomic_file(path, parents=parents) as file:
        file.writelines(parts)


@contextmanager
def atomic_file(path: str | os.PathLike[str], *, parents: bool = False) -> Iterator[BinaryIO]:
    """Open a file to write so that a reader sees the old one or the new one, even if the machine stops.

    What a link leads to is written, and the link stays. With `parents` its folder is made too. What is no
    file, a device or a pipe, is written as it is.
    """
    if _is_stream(path):
        with open(path, "wb") as file:
            yield file
        return
    goal = Path(os.path.realpath(path))
    if parents:
        goal.parent.mkdir(parents=True, exist_ok=True)
    if goal.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    # Short enough for a name of 50 characters of four bytes each.
    name = goal.parent / f".{goal.name[:50]}.{os.urandom(6).hex()}"
    try:
        file = open(name, "xb")  # noqa: SIM115 - closed below; the system applies the user's mask
    except OSError as error:  # which names the file that was to come first
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileNotFoundError):  # what only its owner could read stays so
            os.chmod(name, stat.S_IMODE(os.stat(goal).st_mode))
        os.replace(name, goal)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
    # The new name itself is safe only when its folder is; not every system can say so.
    with suppress(OSError):
        folder = os.open(goal.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _is_stream(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is that of a device or a pipe."""
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def is_partial_file(path: Path) -> bool:
    """Return whether a file is what a process that was killed had begun to write.

    >>> is_partial_file(Path("run/.manifest.json.0123456789ab"))
    True
    """
    return re.fullmatch(r"\..+\.[0-9a-f]{12}", path.name) is not None


def identity(path: str | os.PathLike[str]) -> Hashable:
    """Return what is the same for two names of one file: by links, hard links or other folders."""
    try:
        about = os.stat(path)
    except OSError:  # it is not there yet
        return os.path.realpath(path)
    return about.st_dev, about.st_ino


def csv_text(rows: Iterable[Iterable[Any]], delimiter: str = ",") -> str:
    r"""Return rows as lines that end in a line feed; every value is read back as it was written.

    A value with a carriage return is quoted. The csv module does that before Python 3.13 only where lines
    end in one, so they do until they are joined.

    >>> csv_text([("a", "b"), (1, "x\ry")])
    'a,b\n1,"x\ry"\n'
    """
    lines: list[str] = []
    sink = SimpleNamespace(write=lines.append)
    csv.writer(sink, delimiter=delimiter, lineterminator="\r\n").writerows(rows)
    return "".join(line[:-2] + "\n" for line in lines)

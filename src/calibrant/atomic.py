"""Files that are there whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def write_whole(path: str | os.PathLike[str], parts: Iterable[bytes], *, parents: bool = False) -> None:
    """Write a file so that a reader sees the old one or the new one, even if the machine stops.

    What a link leads to is written, and the link stays. With `parents` its folder is made too.
    """
    goal = Path(os.path.realpath(path))
    if parents:
        goal.parent.mkdir(parents=True, exist_ok=True)
    if goal.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    try:
        handle, name = tempfile.mkstemp(dir=goal.parent, prefix=f".{goal.name[:100]}.")
    except OSError as error:  # which names the file that was to come first
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
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

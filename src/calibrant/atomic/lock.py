"""Folders that one process writes at a time."""

from __future__ import annotations

import errno
import json
import os
import platform
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn, Self

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

#: The file that says who writes to a folder.
LOCK = ".calibrant.lock"
# Seconds between two signs of life, and of silence after which a holder elsewhere is taken for dead.
BEAT, SILENT = 15.0, 120.0
# Where a byte is locked, on systems that then refuse to read it.
_FAR = 1 << 30
# A link could lead to a file of somebody's.
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
# What is held: a process that this one forks must not keep it for longer.
_OPEN: set[int] = set()


class Hold:
    """A folder that this process alone writes to.

    The lock is the operating system's, which ends with the process, however that ends; a file in the folder
    says whose it is. Other machines may not see the lock, and some file systems have none: so the holder also
    gives a sign of life, and elsewhere it is believed to be alive until it has been silent for a while.

    Parameters
    ----------
    folder : path
        It must be there.
    called : str
        What messages call it.

    Raises
    ------
    BlockingIOError
        If another process holds it, by `with` at once and by `check` if it was taken over.
    """

    def __init__(self, folder: Path, called: str) -> None:
        self.folder, self.path, self.called = folder, folder / LOCK, called
        self.file: int | None = None
        self.process, self.key = os.getpid(), os.urandom(8).hex()
        about = {
            "pid": self.process,
            "host": platform.node(),
            "since": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
            "machine": _machine(),
            "key": self.key,
        }
        self.about = json.dumps(about).encode()
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> Self:
        while self.file is None:
            try:
                file = os.open(self.path, os.O_RDWR | os.O_CREAT | _NO_LINK, 0o666)
            except OSError:
                if os.access(self.folder, os.W_OK):
                    raise
                return self  # nobody can write here, and what was written may be read
            try:
                if not self._free(file):
                    os.close(file)
                    continue
                self._sign(file)
                _OPEN.add(file)
                self.file = file
                self.thread.start()
            except BaseException:  # an interrupt too: this process may go on without the folder
                self._close(file)
                raise
        return self

    def __exit__(self, *_: object) -> None:
        if self.file is None or self.process != os.getpid():
            return
        with suppress(OSError):
            if self._own():
                os.ftruncate(self.file, 0)
                os.unlink(self.path)
        self._close(self.file)

    def _close(self, file: int) -> None:
        self.over.set()
        if self.thread.is_alive():
            self.thread.join()  # it must not write to a file that is closed
        _OPEN.discard(file)
        os.close(file)

    def check(self) -> None:
        """Refuse to go on if another process has taken the folder over, as after a long sleep."""
        if self.file is not None and not self._own():
            self._refuse(_read(self.path), "has been taken over")

    def _free(self, file: int) -> bool:
        """Lock the file; return False if its holder has just removed it."""
        locked = _lock(file)
        holder = _read(self.path)
        if locked is False:
            self._refuse(holder, "is in use")
        if not _is_at(file, self.path):
            return False
        elsewhere = locked is None or holder.get("machine", _machine()) != _machine()
        if holder and elsewhere and self._age(file) < SILENT:
            hint = f"; if that is no longer running, delete {self.path} or wait for {SILENT / 60:.0f} minutes"
            self._refuse(holder, "is in use", hint)
        return True

    def _age(self, file: int) -> float:
        """Return the seconds since the last sign of life, by the clock of the file system."""
        with tempfile.TemporaryFile(dir=self.folder) as now:
            return os.fstat(now.fileno()).st_mtime - os.fstat(file).st_mtime

    def _own(self) -> bool:
        """Return whether what lies in the folder is still ours; without locks another may have written it."""
        assert self.file is not None
        return _is_at(self.file, self.path) and _read(self.path).get("key") == self.key

    def _sign(self, file: int) -> None:
        """Write down who holds the folder, which is a sign of life too."""
        os.lseek(file, 0, os.SEEK_SET)
        os.write(file, self.about)
        os.ftruncate(file, len(self.about))
        os.fsync(file)

    def _beat(self) -> None:
        assert self.file is not None
        while not self.over.wait(BEAT):
            with suppress(OSError):
                if self._own():
                    self._sign(self.file)

    def _refuse(self, holder: dict[str, Any], what: str, hint: str = "") -> NoReturn:
        who = "another process"
        if holder:
            who = f"process {holder.get('pid')} on {holder.get('host')}, since {holder.get('since')}"
        hint = hint or "; wait until it has ended, or give another folder"
        raise BlockingIOError(f"{self.called} {what} by {who}{hint}")


def _lock(file: int) -> bool | None:
    """Lock a file; return whether that worked, None if the system cannot say."""
    try:
        if sys.platform == "win32":
            os.lseek(file, _FAR, os.SEEK_SET)
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return False if error.errno in (errno.EWOULDBLOCK, errno.EACCES) else None
    return True


def _read(path: Path) -> dict[str, Any]:
    """Return who holds a folder, as far as that is written down."""
    try:
        about = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return about if isinstance(about, dict) else {}


def _is_at(file: int, path: Path) -> bool:
    """Return whether an open file is the one at a path."""
    try:
        return os.path.samestat(os.fstat(file), os.stat(path))
    except OSError:
        return False


def _machine() -> str:
    """Return what processes share that see each other's locks: a start of a machine, or else its name."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return platform.node()


def _let_go() -> None:
    """Close in a forked process what its parent holds."""
    for file in _OPEN:
        with suppress(OSError):
            os.close(file)
    _OPEN.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)

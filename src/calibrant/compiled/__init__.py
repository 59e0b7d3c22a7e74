"""Loops in C, where a compiler was there when the package was built; elsewhere numpy does the same work.

Callers ask `compiled.loops` each time: it is the extension module, or None. The plain versions stand beside
the calls and are what the tests compare with.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

#: The environment variables: one leaves the compiled loops out, the other says how many threads may run.
PLAIN, THREADS = "CALIBRANT_PLAIN", "CALIBRANT_THREADS"

Piece = TypeVar("Piece")
Result = TypeVar("Result")

# Whether a thread shares the work of others.
_own = threading.local()


def load() -> ModuleType | None:
    """Return the compiled loops; None where they were not built, or where the environment forbids them."""
    if os.environ.get(PLAIN, "0") not in ("", "0"):
        return None
    try:
        return import_module("calibrant.compiled._loops")
    except ImportError:
        return None


def in_use() -> str:
    """Say which loops are in use, and why where it is not the compiled ones.

    >>> in_use().split(":")[0] in ("compiled loops", "plain loops")
    True
    """
    if loops is not None:
        return "compiled loops"
    if os.environ.get(PLAIN, "0") not in ("", "0"):
        return f"plain loops: {PLAIN} is set"
    return "plain loops: built without a compiler"


def threads() -> int:
    """Return how many threads may share a loop: those the environment allows, or else one for each core.

    A thread that is not the main one is taken to share work already, and keeps its loops to itself; so does
    the main one while it shares work. What the environment says that is no number of threads is warned of.

    >>> threads() >= 1
    True
    """
    if threading.current_thread() is not threading.main_thread() or getattr(_own, "shares", False):
        return 1
    if said := os.environ.get(THREADS, ""):
        if said.isdecimal() and int(said):
            return int(said)
        warnings.warn(
            f"{THREADS} must be a whole number from 1 on, got {said!r}: every core is used", stacklevel=2
        )
    own = getattr(os, "sched_getaffinity", None)
    return len(own(0)) if own else os.cpu_count() or 1


def shared(work: Callable[[Piece], Result], pieces: Sequence[Piece]) -> Iterator[Result]:
    """Do work on each piece, some at a time, and return the results in order: they do not depend on threads.

    >>> list(shared(abs, [-1, 2]))
    [1, 2]
    """
    count = min(threads(), len(pieces)) if len(pieces) > 1 else 1
    if count == 1:
        yield from map(work, pieces)
        return
    from calibrant.compiled.blas import one_blas_thread

    with one_blas_thread():
        yield from _pool(count).map(work, pieces)


@cache
def _pool(count: int) -> ThreadPoolExecutor:
    """Return a pool of threads that is kept: starting threads takes as long as summing a million rows."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(count)


if hasattr(os, "register_at_fork"):  # a child process has none of the threads
    os.register_at_fork(after_in_child=_pool.cache_clear)


def once(make: Callable[[], Result]) -> Callable[[], Result]:
    """Return what makes something when it is first asked for: once, however many threads ask for it.

    >>> numbers = once(iter([1, 2]).__next__)
    >>> numbers(), numbers()
    (1, 1)
    """
    lock, made = threading.Lock(), cache(make)

    def ask() -> Result:
        with lock:
            return made()

    return ask


@contextmanager
def aside() -> Iterator[Callable[[Callable[[], Result]], Callable[[], Result]]]:
    """Give what begins some work beside the rest, and returns what waits for its result.

    Work that no thread has begun when its result is asked for is done by who asks: best from the last to the
    first, since the others go the other way. What nobody asks for any more is not begun.

    >>> with aside() as begin:
    ...     begin(lambda: 2)()
    2
    """
    if (count := threads()) == 1:
        yield once
        return
    from concurrent.futures import ThreadPoolExecutor

    from calibrant.compiled.blas import one_blas_thread

    # The thread that asks is one of those that share the work.
    pool = ThreadPoolExecutor(count - 1)

    def begin(work: Callable[[], Result]) -> Callable[[], Result]:
        begun = pool.submit(work)
        return once(lambda: _alone(work) if begun.cancel() else begun.result())

    with one_blas_thread():
        try:
            yield begin
        finally:
            pool.shutdown(cancel_futures=True)


def _alone(work: Callable[[], Result]) -> Result:
    """Do work beside that of other threads: its loops are not shared again."""
    _own.shares = True
    try:
        return work()
    finally:
        _own.shares = False


loops = load()

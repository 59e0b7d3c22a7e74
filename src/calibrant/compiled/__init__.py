"""Loops in C, where a compiler was there when the package was built; elsewhere numpy does the same work.

Callers ask `compiled.loops` each time: it is the extension module, or None. The plain versions stand beside
the calls and are what the tests compare with.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from types import ModuleType
from typing import TypeVar

#: The environment variables: one leaves the compiled loops out, the other says how many threads may run.
PLAIN, THREADS = "CALIBRANT_PLAIN", "CALIBRANT_THREADS"

Piece = TypeVar("Piece")
Result = TypeVar("Result")


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

    A thread that is not the main one is taken to share work already, and keeps its loops to itself. What the
    environment says that is no number of threads is warned of.

    >>> threads() >= 1
    True
    """
    if threading.current_thread() is not threading.main_thread():
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
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(count) as pool:
        yield from pool.map(work, pieces)


loops = load()

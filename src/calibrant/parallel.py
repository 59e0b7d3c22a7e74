"""Threads: how many may run, maps over pieces of work, linear algebra on one thread, values computed once."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

#: The environment variable that sets the number of threads.
THREADS = "CALIBRANT_THREADS"

Piece = TypeVar("Piece")
Result = TypeVar("Result")

# `busy` is set on a thread while it helps others, so that it does not start threads of its own.
_state = threading.local()


def threads() -> int:
    """Return how many threads may share a loop: as many as the environment allows, by default one per core.

    Only the main thread shares its work, and only while it does not help other threads. An invalid number in
    the environment raises a warning and is ignored.

    >>> threads() >= 1
    True
    """
    if threading.current_thread() is not threading.main_thread() or getattr(_state, "busy", False):
        return 1
    if said := os.environ.get(THREADS, ""):
        if said.isdecimal() and int(said):
            return int(said)
        warnings.warn(
            f"{THREADS} must be a whole number from 1 on, got {said!r}: every core is used", stacklevel=2
        )
    return cores()


def cores() -> int:
    """Return how many cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def parallel_map(work: Callable[[Piece], Result], pieces: Sequence[Piece]) -> Iterator[Result]:
    """Apply a function to each piece in threads; results come in order and do not depend on the threads.

    >>> list(parallel_map(abs, [-1, 2]))
    [1, 2]
    """
    count = min(threads(), len(pieces)) if len(pieces) > 1 else 1
    if count == 1:
        yield from map(work, pieces)
        return
    with one_blas_thread():
        yield from _pool(count).map(work, pieces)


@cache
def _pool(count: int) -> ThreadPoolExecutor:
    """Return a pool that is kept between calls: starting threads takes as long as summing a million rows."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(count)


if hasattr(os, "register_at_fork"):  # a child process has none of the threads
    os.register_at_fork(after_in_child=_pool.cache_clear)


@contextmanager
def background() -> Iterator[Callable[[Callable[[], Result]], Callable[[], Result]]]:
    """Yield a function that starts work in another thread and returns a function that waits for its result.

    Work that no thread has started when its result is requested is done by the thread that requests it.
    Request the last work first, because the threads start with the first. Work that is not requested when the
    context ends is cancelled.

    >>> with background() as start:
    ...     start(lambda: 2)()
    2
    """
    if (count := threads()) == 1:
        yield compute_once
        return
    from concurrent.futures import ThreadPoolExecutor

    # The thread that requests results is one of those that work.
    pool = ThreadPoolExecutor(count - 1)

    def start(work: Callable[[], Result]) -> Callable[[], Result]:
        started = pool.submit(work)
        return compute_once(lambda: _unshared(work) if started.cancel() else started.result())

    with one_blas_thread():
        try:
            yield start
        finally:
            pool.shutdown(cancel_futures=True)


def _unshared(work: Callable[[], Result]) -> Result:
    """Do work beside that of other threads, without starting further threads."""
    _state.busy = True
    try:
        return work()
    finally:
        _state.busy = False


# -- linear algebra ------------------------------------------------------------------------------------------

_lock = threading.Lock()
_users = 0
_limited: Any = None


@cache
def _controller() -> Any:
    """Find the linear algebra libraries of the process, which takes milliseconds."""
    # SciPy has its own library, which is found only after it is loaded.
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit linear algebra libraries to one thread, in the whole process, until the last user ends.

    The matrices here are small and the library has its own threads: more threads of a linear algebra library
    wait for each other and take several times as long as one. Also usable as a decorator.

    >>> with one_blas_thread():
    ...     all(library["num_threads"] == 1 for library in _controller().info())
    True
    """
    global _users, _limited
    with _lock:
        if _users == 0:
            _limited = _controller().limit(limits=1)
            _release()
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _limited.restore_original_limits()
                _release()


def _release() -> None:
    """Let every thread change the limit again; newer versions of threadpoolctl allow only one of them.

    The last user may be another thread than the first one, or than the one that set a limit of its own.
    """
    for library in _controller().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread()


# -- values computed once ------------------------------------------------------------------------------------


def compute_once(make: Callable[[], Result]) -> Callable[[], Result]:
    """Return a function that computes its value at the first call, once for all threads.

    >>> numbers = compute_once(iter([1, 2]).__next__)
    >>> numbers(), numbers()
    (1, 1)
    """
    lock, made = threading.Lock(), cache(make)

    def get() -> Result:
        with lock:
            return made()

    return get


class cached_property(Generic[Result]):
    """Compute a value at the first access and keep it in the instance's `__dict__`, without a lock.

    In Python 3.11 `functools.cached_property` holds one lock for all instances of a class while it computes:
    threads wait for each other, and a process forked meanwhile waits for ever. Here two threads that ask the
    same instance at once may both compute the value; both get the one that was stored first.

    Examples
    --------
    >>> class Circle:
    ...     radius = 2
    ...
    ...     @cached_property
    ...     def area(self):
    ...         return 3.14 * self.radius**2
    >>> circle = Circle()
    >>> circle.area, circle.__dict__
    (12.56, {'area': 12.56})
    """

    def __init__(self, compute: Callable[[Any], Result]):
        self.compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type | None = None) -> Result: ...

    def __get__(self, instance: object, owner: type | None = None) -> Self | Result:
        if instance is None:
            return self
        # Not a data descriptor: once the value is stored, attribute access finds it without this call.
        value: Result = instance.__dict__.setdefault(self.name, self.compute(instance))
        return value

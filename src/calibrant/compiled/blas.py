"""One thread for linear algebra while the library computes.

The matrices here are small, and threads of the library share the work: more threads of a linear algebra
library wait for each other, and take several times as long as one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

_lock = Lock()
_users = 0
_limited: Any = None


@cache
def _controller() -> Any:
    """Find the linear algebra libraries of the process, which takes milliseconds."""
    # SciPy has a library of its own, which is found only once it is loaded.
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let linear algebra libraries use one thread, in all threads of the process, until the last user ends.

    It works as a decorator, too.

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
    """Let every thread change the limit again: newer versions of threadpoolctl let only one of them.

    The last user need not be the thread that came first, nor that of a limit of the caller's own.
    """
    for library in _controller().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread()

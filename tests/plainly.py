"""What the compiled loops are compared with: the same call without them."""

from contextlib import contextmanager

from calibrant import compiled


@contextmanager
def plain():
    """Leave the compiled loops out for a while."""
    loops, compiled.loops = compiled.loops, None
    try:
        yield
    finally:
        compiled.loops = loops

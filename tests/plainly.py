"""What the compiled loops are compared with: the same call without them."""

from contextlib import contextmanager

import pytest

from calibrant import compiled

#: Marks tests of the loops themselves; a run that gates a change fails where there are none.
needs_loops = pytest.mark.skipif(compiled.loops is None, reason="the package was built without a compiler")


@contextmanager
def plain():
    """Leave the compiled loops out for a while."""
    loops, compiled.loops = compiled.loops, None
    try:
        yield
    finally:
        compiled.loops = loops

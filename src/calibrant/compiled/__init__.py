"""Loops in C, where a compiler was available when the package was built; elsewhere numpy does the same work.

Callers read `compiled.loops` each time: it is the extension module, or None. The numpy versions are beside
the calls, and the tests compare the two.
"""

from __future__ import annotations

import os
from importlib import import_module
from types import ModuleType

#: The environment variable that disables the compiled loops.
PLAIN = "CALIBRANT_PLAIN"


def load() -> ModuleType | None:
    """Return the compiled loops; None where they were not built, or where the environment disables them."""
    if os.environ.get(PLAIN, "0") not in ("", "0"):
        return None
    try:
        return import_module("calibrant.compiled._loops")
    except ImportError:
        return None


def in_use() -> str:
    """Return which loops are in use, and the reason if these are not the compiled ones.

    >>> in_use().split(":")[0] in ("compiled loops", "plain loops")
    True
    """
    if loops is not None:
        return "compiled loops"
    if os.environ.get(PLAIN, "0") not in ("", "0"):
        return f"plain loops: {PLAIN} is set"
    return "plain loops: built without a compiler"


loops = load()

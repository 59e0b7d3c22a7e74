"""Names of a package that are imported when they are first asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_names(package: str, modules: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package whose names are imported when they are first asked for.

    No name may be that of a module of the package: importing that module would replace it.

    Parameters
    ----------
    package : str
        Full name of the package.
    modules : mapping
        For each of its modules the names that the package has from it.

    Examples
    --------
    >>> lazy_names("calibrant.compiled", {"lazy": ("lazy_names",)})("lazy_names") is lazy_names
    True
    """
    home = {name: module for module, names in modules.items() for name in names}

    def import_name(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{home[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return import_name

"""What answers are computed with: Python, packages, loops, threads."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

from calibrant import compiled
from calibrant.parallel import threads

# What must be there, and what may be.
NEEDED = ("calibrant", "numpy", "scipy")
OPTIONAL = ("narwhals", "pandas", "polars", "pyarrow", "duckdb", "scikit-learn", "matplotlib")


def versions() -> dict[str, str]:
    """Return what answers are computed with, by name; packages that are not installed are left out.

    >>> versions()["loops"] == compiled.in_use()
    True
    """
    versions_by_name = {"python": platform.python_version(), "platform": platform.platform()}
    for name in (*NEEDED, *OPTIONAL):
        try:
            versions_by_name[name] = version(name)
        except PackageNotFoundError:
            if name in NEEDED:
                versions_by_name[name] = "not installed"
    return {**versions_by_name, "loops": compiled.in_use(), "threads": str(threads())}


def show_versions() -> None:
    """Print what answers are computed with: for a report of an error, or of a time.

    Two of the lines are about the loops over rows: whether these are the compiled ones or plain numpy, and
    how many threads may share one. The environment variables `CALIBRANT_PLAIN=1` and `CALIBRANT_THREADS`
    change that.

    See Also
    --------
    estimator_names : Names of all estimators.

    Examples
    --------
    >>> import calibrant
    >>> calibrant.show_versions()
    python        3...
    platform      ...
    calibrant     0...
    numpy         ...
    scipy         ...
    loops         ...
    threads       ...
    """
    for name, value in versions().items():
        sys.stdout.write(f"{name:13} {value}\n")

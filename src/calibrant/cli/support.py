"""What the commands of the experiment share: errors in one line, and where to import and compute."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from pathlib import Path

import click

from calibrant.cli.output import check_outputs, line

EXTRA = "pip install 'calibrant[experiment]'"


def check_runs(folders: Iterable[Path], *outputs: Path | None) -> None:
    """Refuse before any work an output that is a file of a run."""
    names = ("manifest.json", "results.csv.gz", "tasks/*", ".calibrant.lock")
    check_outputs([file for folder in folders for name in names for file in folder.glob(name)], *outputs)


@contextmanager
def working() -> Iterator[None]:
    """Tell what went wrong in one line, and let the current directory be imported from, by workers too."""
    here, before = str(Path.cwd()), os.environ.get("PYTHONPATH")
    sys.path.insert(0, here)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (here, before)))
    try:
        yield
    except ImportError as error:
        raise click.ClickException(f"{line(error)}; {EXTRA}") from None
    except BrokenPipeError:
        raise
    except (ValueError, OSError) as error:
        raise click.ClickException(line(error)) from None
    finally:
        sys.path.remove(here)
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


@contextmanager
def resumable() -> Iterator[None]:
    """Say how to go on when someone, or the lack of memory, stops the work."""
    try:
        yield
    except KeyboardInterrupt:
        raise click.ClickException("stopped; the same command resumes the run") from None
    except BrokenExecutor as error:
        raise click.ClickException(f"{line(error)} The same command resumes the run.") from None


@contextmanager
def cluster(scheduler: str | None) -> Iterator[None]:
    """Connect to the Dask cluster at an address, if there is one."""
    if scheduler is None:
        yield
        return
    try:
        from distributed import Client
    except ImportError as error:
        raise click.ClickException(f"{error}; pip install 'dask[distributed]'") from None

    with Client(scheduler, timeout="10s"):  # type: ignore[no-untyped-call]
        yield


def need(*modules: str) -> None:
    """Refuse to go on unless all of the modules are installed."""
    for name in modules:
        if importlib.util.find_spec(name) is None:
            raise ImportError(f"No module named {name!r}")

"""A run: its tasks computed on local cores or on a cluster, and what it leaves on disk.

On disk are a manifest, one file for each finished task, and the tables made of them.

Files appear whole or not at all, so a run can be killed at any moment and resumed. One process at a time
writes to it.
"""

from __future__ import annotations

import gzip
import io
import json
import platform
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import calibrant
from calibrant import inputs
from calibrant.atomic import csv_text, is_partial_file, write_atomic
from calibrant.experiment.procedure import STATISTICS, CannotImport, Result, Settings, Task, compute
from calibrant.experiment.truth import Truth
from calibrant.inputs import parsed_json

Report = Callable[[int, int, str], None]

COLUMNS = (
    "distribution",
    "train_set",
    "family",
    "reading",
    "notion",
    "estimator",
    "n",
    "truth",
    "bracket",
    *STATISTICS,
)
#: The file that is locked while a process writes to the folder.
LOCK = ".calibrant.lock"
# Packages that the numbers come from.
NUMBERS = ("numpy", "scipy", "scikit-learn")


class DamagedResult(ValueError):
    """A result file that cannot be read."""


@dataclass(frozen=True)
class Store:
    """The folder of a run.

    Parameters
    ----------
    folder : path
        Folder of the run.

    See Also
    --------
    run : Computes tasks and returns a store.
    Summary : Statistics of a store.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from calibrant import experiment
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = experiment.Store.create(Path(folder) / "run", experiment.PRESETS["smoke"])
    ...     store.finished(store.settings().tasks()[0])
    False
    """

    folder: Path

    @classmethod
    def create(cls, folder: Path, settings: Settings) -> Store:
        """Open the folder for these settings; one with others, or by other versions, is refused.

        Parameters
        ----------
        folder : path
            Folder of the run.
        settings : Settings
            Settings of the run.
        """
        store = cls(Path(folder))
        if store.manifest_path.exists():
            store._check_versions()
            known = store.settings()
            wanted = settings.to_dict()
            differ = [key for key, value in known.to_dict().items() if value != wanted[key]]
            if differ:
                raise ValueError(
                    f"{folder} holds a run with other settings ({', '.join(differ)}); choose another folder"
                )
            return store
        store._check_empty()
        manifest = {
            "calibrant": calibrant.__version__,
            "python": platform.python_version(),
            "versions": _versions(*NUMBERS, "joblib"),
            "settings": settings.to_dict(),
        }
        write_atomic(store.manifest_path, [json.dumps(manifest, indent=1).encode()], parents=True)
        return store

    @classmethod
    @contextmanager
    def locked(cls, folder: Path, settings: Settings) -> Iterator[Store]:
        """Open the folder for these settings, and keep other processes from it.

        Parameters
        ----------
        folder : path
            Folder of the run.
        settings : Settings
            Settings of the run.

        Raises
        ------
        BlockingIOError
            If another process holds it.
        """
        from filelock import FileLock, Timeout

        store = cls(Path(folder))
        if not store.manifest_path.exists():
            store._check_empty()
        store.folder.mkdir(parents=True, exist_ok=True)
        try:
            locked = FileLock(store.folder / LOCK).acquire(timeout=0)
        except Timeout:
            raise BlockingIOError(
                f"the run in {folder} is in use by another process; wait until it has ended, or choose "
                "another folder"
            ) from None
        with locked:
            store = cls.create(folder, settings)
            for path in (*store.folder.glob(".*"), *store.tasks_path.glob(".*")):
                if is_partial_file(path):
                    path.unlink()
            yield store

    def _check_empty(self) -> None:
        """Refuse a folder of other things; a run that was killed at once has left beginnings."""
        if not self.folder.is_dir():
            return
        others = [path for path in self.folder.iterdir() if path.name != LOCK and not is_partial_file(path)]
        # Another process may have begun a run in the meantime.
        if others and not self.manifest_path.exists():
            raise ValueError(f"{self.folder} is not empty and holds no run; choose another folder")

    def _check_versions(self) -> None:
        """Refuse to go on with results that other versions might not give."""
        with self._manifest() as manifest:
            then = {"calibrant": manifest["calibrant"], **manifest["versions"]}
        now = {"calibrant": calibrant.__version__, **_versions(*NUMBERS)}
        for name, here in now.items():
            if then.get(name) != here:
                raise ValueError(
                    f"{self.folder} holds a run by {name} {then.get(name)}, and this is {here}; "
                    "choose another folder, or go on with that version"
                )

    @property
    def manifest_path(self) -> Path:
        """The manifest: versions and settings."""
        return self.folder / "manifest.json"

    @property
    def tasks_path(self) -> Path:
        """Folder of the results, one file for each task."""
        return self.folder / "tasks"

    def settings(self) -> Settings:
        """Return the settings of the run."""
        with self._manifest() as manifest:
            return Settings.from_dict(manifest["settings"])

    @contextmanager
    def _manifest(self) -> Iterator[dict[str, Any]]:
        """Give the manifest to a reader of its values; what it stumbles over is called damage."""
        try:
            yield parsed_json(self.manifest_path.read_text())
        except FileNotFoundError:
            raise ValueError(f"{self.folder} holds no run: there is no {self.manifest_path.name}") from None
        except CannotImport as error:
            rule = "the run was made with it, so start the command where it can be imported"
            raise ValueError(f"{self.folder}: {error}; {rule}") from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{self.manifest_path} is damaged: {error}") from None

    def path(self, task: Task) -> Path:
        """Return the file of a task's result.

        Parameters
        ----------
        task : Task
            One trained model.
        """
        return self.tasks_path / f"{task.name}.npz"

    def save(self, result: Result) -> None:
        """Keep a result.

        Parameters
        ----------
        result : Result
            Result of one task.
        """
        buffer = io.BytesIO()
        truths = np.array([result.truth[notion] for notion in result.truth])
        np.savez_compressed(
            buffer,
            statistics=result.statistics,
            truth=truths,
            notions=np.array(list(result.truth)),
            failures=np.array(result.failures, dtype=str),
            estimates=result.estimates,
        )
        write_atomic(self.path(result.task), [buffer.getvalue()], parents=True)

    def load(self, task: Task) -> Result:
        """Return a kept result.

        Parameters
        ----------
        task : Task
            One trained model.
        """
        content = io.BytesIO(self.path(task).read_bytes())
        settings = self.settings()
        try:
            with np.load(content, allow_pickle=False) as data:
                truths = {
                    str(notion): Truth(*(float(v) for v in row))
                    for notion, row in zip(data["notions"], data["truth"], strict=True)
                }
                statistics = data["statistics"]
                kept = data["estimates"]
                wanted = settings.notions, settings.shape, settings.shape[:-1]
                if (tuple(truths), statistics.shape, kept.shape[:-1]) != wanted:
                    raise ValueError("it belongs to another run")
                return Result(task, truths, statistics, [str(text) for text in data["failures"]], kept)
        except Exception as error:
            raise DamagedResult(
                f"{self.path(task)} cannot be read ({error}); the next run computes it again"
            ) from None

    def finished(self, task: Task) -> bool:
        """Whether a task has a readable result; a damaged file counts as none.

        Parameters
        ----------
        task : Task
            One trained model.
        """
        try:
            self.load(task)
        except (FileNotFoundError, DamagedResult):
            return False
        return True

    def results(self) -> Iterator[Result]:
        """Return every finished result, in the order of the tasks."""
        for task in self.settings().tasks():
            if self.path(task).exists():
                yield self.load(task)

    def write_table(self) -> Path:
        """Write the tidy table as compressed CSV, with the columns of `COLUMNS`."""
        settings = self.settings()
        rows: list[tuple[Any, ...]] = [COLUMNS]
        for result in self.results():
            task = result.task
            model = (task.distribution, task.train_set, task.family)
            cells = product(settings.readings, settings.notions, settings.estimators, settings.sizes)
            numbers = result.statistics.reshape(-1, len(STATISTICS)).tolist()
            for (reading, notion, *cell), statistics in zip(cells, numbers, strict=True):
                true = result.truth[notion]
                true_error = true.published if reading == "published" else true.exact
                values = (f"{value:.7g}" for value in (true_error, true.bracket, *statistics))
                rows.append((*model, reading, notion, *cell, *values))
        path = self.folder / "results.csv.gz"
        write_atomic(path, [gzip.compress(csv_text(rows).encode(), mtime=0)], parents=True)
        return path


def _versions(*names: str) -> dict[str, str]:
    return {name: version(name) for name in names}


def run(
    settings: Settings,
    folder: Path,
    *,
    jobs: int = 1,
    backend: str | None = None,
    progress: Report | bool | None = None,
) -> Store:
    """Compute every task that has no result yet, and write the table.

    Parameters
    ----------
    settings : Settings
    folder : path
        Where results go; an interrupted run is resumed, and no finished task is computed again. One
        process writes to it at a time.
    jobs : int
        Number of tasks at a time.
    backend : str, optional
        A joblib backend: "loky" (the default), "threading", "dask" for a cluster whose client is
        active, or any other that is registered. Numbers do not depend on it.
    progress : bool or callable, optional
        True shows how far it is on standard error; a callable is called as progress(done, total, text) after
        every task, the text being a problem that it had.

    Returns
    -------
    Store

    Raises
    ------
    ValueError
        If the folder holds something else, or a run with other settings or by other versions.
    BlockingIOError
        If another process writes to it.

    See Also
    --------
    compute : One task.
    Summary : Statistics of all tasks.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from calibrant import experiment
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = experiment.run(experiment.PRESETS["smoke"], Path(folder) / "run")
    ...     all(store.finished(task) for task in store.settings().tasks())
    True
    """
    from joblib import Parallel, delayed

    report = inputs.progress(progress)
    with Store.locked(Path(folder), settings) as store:
        tasks = settings.tasks()
        open_tasks = [task for task in tasks if not store.finished(task)]
        done = len(tasks) - len(open_tasks)
        if report is not None:
            report(done, len(tasks), "")
        with _configured(backend, jobs):
            results = Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch="2*n_jobs")(
                delayed(_attempt)(task, settings) for task in open_tasks
            )
            for task, result, problem in results:
                done += 1
                if result is not None:
                    store.save(result)
                    problem = "; ".join(result.failures)
                if report is not None:
                    report(done, len(tasks), f"{task.name}: {problem}" if problem else "")
        store.write_table()
    return store


def _configured(backend: str | None, jobs: int) -> AbstractContextManager[Any]:
    from joblib import parallel_config

    if backend is None and jobs == 1:
        return parallel_config(backend="sequential")
    if backend in (None, "loky"):
        return parallel_config(backend="loky", n_jobs=jobs, inner_max_num_threads=1)
    return parallel_config(backend=backend, n_jobs=jobs)


def _attempt(task: Task, settings: Settings) -> tuple[Task, Result | None, str]:
    """Return a task's result, or why there is none: one model that cannot be trained stops no other."""
    try:
        return task, compute(task, settings), ""
    except Exception as error:
        return task, None, f"{type(error).__name__}: {error}"

"""Run the tasks of an experiment on local cores or on a cluster."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from calibrant import inputs
from calibrant.experiment.procedure import Result, Settings, Task, compute
from calibrant.experiment.store import Store

Report = Callable[[int, int, str], None]


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
    """
    from joblib import Parallel, delayed

    report = inputs.progress(progress)
    with Store.held(Path(folder), settings) as store:
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

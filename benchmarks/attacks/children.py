"""Processes to be killed: forked by a server that has imported all they need, so that each starts at once."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np

SETTINGS = {
    "classes": (2, 3),
    "features": (2,),
    "seeds": (0,),
    "families": ("logistic", "naive-bayes"),
    "train_sets": 1,
    "n_train": 60,
    "n_holdout": 4000,
    "sizes": (29, 60),
    "repetitions": 10,
    "estimators": ("l:10", "ac:sqrt", "d:silverman"),
}
DONE, REFUSED, STOPPED, FAILED = 0, 3, 130, 1


class Children:
    """Children of a server; its folder holds what they write, and what they print on the way out."""

    def __enter__(self) -> "Children":
        self._folder = tempfile.TemporaryDirectory()
        self.folder = Path(self._folder.name)
        command = [sys.executable, __file__]
        paths = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        settings = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "OMP_NUM_THREADS": "1"}
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.server = subprocess.Popen(command, env=settings, cwd=self.folder, **pipes)
        return self

    def __exit__(self, *_: object) -> None:
        assert self.server.stdin
        self.server.stdin.close()
        self.server.wait(60)
        assert self.server.stdout
        self.server.stdout.close()
        self._folder.cleanup()

    def start(self, what: str, n: int = 1, **arguments: Any) -> list[int]:
        """Start n children that do the same; returns their process ids."""
        assert self.server.stdin
        assert self.server.stdout
        print(json.dumps([what, n, arguments], default=str), file=self.server.stdin, flush=True)
        return json.loads(self.server.stdout.readline())

    def ended(self) -> list[tuple[int, str]]:
        """Wait for those started last; returns the status of each, and its result or its error."""
        assert self.server.stdin
        assert self.server.stdout
        print(file=self.server.stdin, flush=True)
        return [
            (status, (self.folder / f"{pid}.txt").read_text())
            for pid, status in json.loads(self.server.stdout.readline())
        ]

    def experiment(self, place: str) -> str:
        """Return the result of an experiment that nobody disturbs."""
        self.start("experiment", folder=self.folder / place)
        ((status, text),) = self.ended()
        if status != DONE:
            raise RuntimeError(f"the experiment ended with {status}: {text}")
        return text


def run_experiment(k: int, folder: str) -> str:
    """Run a small experiment."""
    import hashlib

    from calibrant.experiment import Settings, run

    store = run(Settings(**SETTINGS), Path(folder))
    results = [store.path(task).read_bytes() for task in store.settings().tasks()]
    return hashlib.sha256(b"".join([*results, (store.folder / "results.csv.gz").read_bytes()])).hexdigest()


def save_sketch(k: int, path: str, times: int) -> str:
    """Save a sketch of one's own, again and again."""
    from calibrant import Sketch

    rng = np.random.default_rng(k)
    sketch = Sketch("binary").update(rng.integers(0, 2, 500), rng.random(500))
    for _ in range(times):
        sketch.save(path)
    return sketch.digest


WORK = {"experiment": run_experiment, "save": save_sketch}


def _child(what: str, k: int, arguments: dict[str, Any]) -> int:
    # Written at the end, which a child that is killed does not reach.
    out = Path(f"{os.getpid()}.txt")
    out.write_text("")
    try:
        text, status = WORK[what](k, **arguments), DONE
    except KeyboardInterrupt:
        text, status = "stopped", STOPPED
    except BlockingIOError as error:
        text, status = str(error), REFUSED
    except BaseException:
        text, status = traceback.format_exc(), FAILED
    out.write_text(text)
    return status


def serve() -> None:
    """Fork what is asked for, line by line."""
    import filelock  # noqa: F401
    import joblib  # noqa: F401
    import sklearn.linear_model
    import sklearn.naive_bayes  # noqa: F401

    import calibrant.experiment.store  # noqa: F401

    for line in sys.stdin:
        what, n, arguments = json.loads(line)
        pids = []
        for k in range(n):
            if (pid := os.fork()) == 0:
                signal.signal(signal.SIGINT, signal.default_int_handler)
                try:
                    os._exit(_child(what, k, arguments))
                finally:  # an interrupt on the way out
                    os._exit(STOPPED)
            pids.append(pid)
        print(json.dumps(pids), flush=True)
        sys.stdin.readline()  # until then no process id can belong to anything else
        ends = [(pid, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])) for pid in pids]
        for pid in pids:
            Path(f"{pid}.txt").touch()
        print(json.dumps(ends), flush=True)


def kill(pid: int, how: signal.Signals, after: float) -> None:
    """Send a signal after a while."""
    time.sleep(after)
    os.kill(pid, how)  # one that has ended by itself is kept until the server is asked for its status


if __name__ == "__main__":
    serve()

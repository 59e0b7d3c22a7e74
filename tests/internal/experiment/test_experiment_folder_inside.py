"""The folder of a run: one process writes to it at a time, and versions are not mixed."""

import os
import re
import signal
import subprocess
import sys

import pytest
from test_experiment import SMALL, table
from test_experiment_cli import call

from calibrant.experiment import run
from calibrant.experiment.store import LOCK

WRITER = """
import sys, time
from pathlib import Path
from calibrant.experiment import Settings, run
def slowly(done, total, text):
    print(done, flush=True)
    time.sleep(60)
run(Settings.from_dict({settings!r}), Path(sys.argv[1]), progress=slowly)
"""


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    return run(SMALL, tmp_path_factory.mktemp("reference") / "run")


def test_a_second_process_is_refused_and_a_dead_one_is_followed(reference, tmp_path):
    folder = tmp_path / "run"
    command = [sys.executable, "-c", WRITER.format(settings=SMALL.to_dict()), str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "0\n"
            words = f"the run in {folder} is in use by another process; wait until it has ended, or choose"
            with pytest.raises(BlockingIOError, match=re.escape(words)):
                run(SMALL, folder)
            result = call("run", "--preset", "smoke", "--out", str(folder))
            assert result.exit_code == 1
            assert "is in use by another process" in result.stderr
        finally:
            process.send_signal(signal.SIGKILL)
    assert (folder / LOCK).exists()
    (folder / "tasks").mkdir()
    left = folder / "tasks" / f".{SMALL.tasks()[0].name}.npz.0123456789ab"
    left.write_text("")
    assert table(run(SMALL, folder)) == table(reference)
    assert not left.exists()
    assert sorted(set(os.listdir(folder)) - {LOCK}) == ["manifest.json", "results.csv.gz", "tasks"]

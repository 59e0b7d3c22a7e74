"""The folder of a run: one process writes to it at a time, and versions are not mixed."""

import errno
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest
from test_experiment import SMALL, TINY, files, table
from test_experiment_cli import call

from calibrant.experiment import Store, run

pytestmark = pytest.mark.full

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


@pytest.fixture(scope="module")
def six_distributions(tmp_path_factory):
    """A run that is large enough for claims."""
    return run(replace(TINY, seeds=tuple(range(6))), tmp_path_factory.mktemp("six") / "run")


def test_a_run_within_a_run_is_refused(tmp_path):
    def again(done, total, text):
        with pytest.raises(BlockingIOError, match="is in use by another process"):
            run(TINY, tmp_path / "run")

    assert table(run(TINY, tmp_path / "run", progress=again)) == table(run(TINY, tmp_path / "other"))


@pytest.mark.parametrize("name", ["calibrant", "numpy", "scipy", "scikit-learn"])
def test_a_run_by_another_version_is_read_and_not_resumed(reference, tmp_path, name):
    store = Store(tmp_path / "run")
    shutil.copytree(reference.folder, store.folder)
    manifest = json.loads(store.manifest_path.read_text())
    (manifest if name == "calibrant" else manifest["versions"])[name] = "0.0.1"
    store.manifest_path.write_text(json.dumps(manifest))
    before = files(store)
    words = f"holds a run by {name} 0.0.1, and this is .+; choose another folder, or go on with that version"
    with pytest.raises(ValueError, match=words):
        run(SMALL, store.folder)
    assert files(store) == before
    assert table(store) == table(reference)


@pytest.mark.parametrize("damage", [{"versions": None}, {"calibrant": None}, {"versions": "new"}])
def test_a_manifest_without_versions_is_refused(reference, tmp_path, damage):
    store = Store(tmp_path / "run")
    shutil.copytree(reference.folder, store.folder)
    manifest = json.loads(store.manifest_path.read_text())
    store.manifest_path.write_text(json.dumps(manifest | damage))
    with pytest.raises(ValueError, match=r"is damaged|holds a run by calibrant None"):
        run(SMALL, store.folder)


def test_a_full_disk_ends_a_run_that_can_be_resumed(reference, tmp_path, monkeypatch):
    folder = tmp_path / "run"

    def filling(done, total, text):
        if done == 1:
            monkeypatch.setattr(os, "replace", full)

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OSError, match="No space left"):
        run(SMALL, folder, progress=filling)
    monkeypatch.undo()
    assert len(files(Store(folder))) == 1
    assert table(run(SMALL, folder)) == table(reference)


@pytest.mark.parametrize("command", [("figure1", "-o"), ("table", "RUN", "-o"), ("claims", "RUN", "-o")])
def test_a_full_disk_leaves_the_old_file(tmp_path, six_distributions, monkeypatch, command):
    out = tmp_path / ("out.csv" if command[0] == "table" else "out.png")
    out.write_text("old")

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    result = call(*(str(six_distributions.folder) if word == "RUN" else word for word in command), str(out))
    assert result.exit_code == 2, result.output
    assert f"cannot write {out}: No space left on device" in result.stderr
    assert out.read_text() == "old"
    assert os.listdir(tmp_path) == [out.name]


def test_settings_of_a_race_are_not_mixed(tmp_path):
    """Of two runs with other settings one has the folder, and the other is refused, whoever comes first."""
    folder = tmp_path / "run"
    code = WRITER.replace("time.sleep(60)", "")
    several = [replace(TINY, repetitions=10 + k) for k in range(4)]
    commands = [[sys.executable, "-c", code.format(settings=one.to_dict()), str(folder)] for one in several]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for command in commands]
    errors = [process.communicate(timeout=120)[1] for process in processes]
    (won,) = [k for k, process in enumerate(processes) if process.returncode == 0]
    for k, error in enumerate(errors):
        assert k == won or "is in use by" in error or "holds a run with other settings" in error
    assert Store(folder).settings() == several[won]
    whole = run(several[won], tmp_path / "whole")
    assert table(Store(folder)) == table(whole)

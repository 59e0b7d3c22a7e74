"""Which loops are in use is said on every surface, and can be chosen."""

import os
import platform
import sys
from importlib.metadata import version

import numpy as np
import pytest

import calibrant
from calibrant import compiled, parallel
from calibrant.compiled.versions import versions
from plainly import plain


def available():
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def test_versions_are_printed_one_a_line(capsys):
    calibrant.show_versions()
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert lines == versions()
    assert lines["python"] == platform.python_version()
    assert lines["numpy"] == np.__version__
    assert lines["calibrant"] == version("calibrant")
    assert lines["loops"] == compiled.in_use()
    assert lines["threads"] == str(parallel.threads())


def test_what_is_not_installed_is_not_named(monkeypatch):
    def only_numpy(name):
        if name == "numpy":
            return "9.9"
        raise calibrant.compiled.versions.PackageNotFoundError(name)

    monkeypatch.setattr("calibrant.compiled.versions.version", only_numpy)
    found = versions()
    assert (found["numpy"], found["scipy"]) == ("9.9", "not installed")
    assert "polars" not in found


def test_words_for_the_loops_say_why_they_are_plain(monkeypatch):
    monkeypatch.delenv(compiled.PLAIN, raising=False)
    with plain():
        assert compiled.in_use() == "plain loops: built without a compiler"
        monkeypatch.setenv(compiled.PLAIN, "1")
        assert compiled.in_use() == "plain loops: CALIBRANT_PLAIN is set"
    if compiled.loops is not None:
        assert compiled.in_use() == "compiled loops"


@pytest.mark.parametrize(("said", "plain"), [("1", True), ("yes", True), ("0", False), ("", False)])
def test_the_environment_leaves_the_compiled_loops_out(monkeypatch, said, plain):
    monkeypatch.setenv(compiled.PLAIN, said)
    assert (compiled.load() is None) == (plain or compiled.loops is None)


def test_without_the_extension_everything_works(monkeypatch):
    monkeypatch.setitem(sys.modules, "calibrant.compiled._loops", None)  # as if it had not been built
    assert compiled.load() is None


def test_threads_are_those_the_environment_allows(monkeypatch):
    for said, threads in (("3", 3), ("1", 1)):
        monkeypatch.setenv(parallel.THREADS, said)
        assert parallel.threads() == threads
        assert versions()["threads"] == said
    monkeypatch.setenv(parallel.THREADS, "")
    assert parallel.threads() == available()


@pytest.mark.parametrize("said", ["0", "many", "-2", "1.5"])
def test_what_is_no_number_of_threads_is_warned_of(said, monkeypatch):
    monkeypatch.setenv(parallel.THREADS, said)
    with pytest.warns(UserWarning, match=f"CALIBRANT_THREADS must be a whole number from 1 on, got '{said}'"):
        assert parallel.threads() == available()

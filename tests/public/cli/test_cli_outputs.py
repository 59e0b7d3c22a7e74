"""What the commands write: over nothing that is needed, and whole or not at all."""

import errno
import os
import shlex
import subprocess
import sys

import pytest
from test_cli_data import call, refused


@pytest.fixture
def rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = tmp_path / "in.csv"
    source.write_text("y,p\n" + "".join(f"{k % 2},0.{k % 9}5\n" for k in range(40)))
    return source


def run_here(command):
    """Run a line of a shell, where redirections are the system's."""
    line = f"{shlex.quote(sys.executable)} -m calibrant {command}"
    return subprocess.run(line, shell=True, capture_output=True, text=True, check=False)


@pytest.mark.skipif(os.name != "posix", reason="redirections of a POSIX shell")
@pytest.mark.parametrize(
    "command",
    [
        "report - -o in.csv < in.csv",
        "report /dev/stdin --json in.csv < in.csv",
        "check - --max-ece 0.9 --junit in.csv < in.csv",
        "ece in.csv >> in.csv",
        "compare in.csv other.csv >> other.csv",
        "recommend in.csv >> in.csv",
    ],
)
def test_redirections_do_not_write_over_an_input(rows, command):
    other = rows.with_name("other.csv")
    other.write_bytes(rows.read_bytes())
    before = rows.read_bytes()
    done = run_here(command)
    assert done.returncode == 2
    assert "is an input" in done.stderr
    assert rows.read_bytes() == other.read_bytes() == before


def test_an_output_in_a_folder_that_cannot_be_read_is_not_touched(rows):
    folder = rows.parent / "in"
    folder.mkdir()
    (folder / "a.csv").write_bytes(rows.read_bytes())
    (folder / "a.tsv").write_bytes(rows.read_bytes())
    (folder / "a.txt").write_bytes(rows.read_bytes())
    check = ("check", folder, "--max-ece", "0.9", "--junit")
    assert "several formats" in refused(*check, folder / "a.csv")
    # By its format every file of a folder is an input.
    assert "is an input" in refused(*check, folder / "a.txt", "--format", "csv")
    for path in folder.iterdir():
        assert path.read_bytes() == rows.read_bytes()


def test_two_outputs_are_two_files_whatever_they_are_called(rows):
    first, second = rows.with_name("first"), rows.with_name("second")
    first.write_text("old")
    for make in (os.symlink, os.link):
        make(first, second)
        assert "two files" in refused("report", rows, "-o", first, "--json", second)
        assert first.read_text() == "old"
        second.unlink()


@pytest.mark.full
@pytest.mark.parametrize("old", [None, "old"])
@pytest.mark.parametrize(
    "command",
    [
        ("check", "--max-ece", "0.9", "--junit", "out.xml"),
        ("report", "-o", "out.html"),
        ("report", "-o", "page.html", "--json", "out.json"),
        ("curve", "-o", "out.csv"),
        ("curve", "-o", "out.svg"),
    ],
    ids=" ".join,
)
def test_a_full_disk_leaves_no_output_that_is_cut_short(rows, monkeypatch, command, old):
    name, *options = command
    out = rows.with_name(options[-1])
    if old is not None:
        out.write_text(old)

    def full(file):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    text = refused(name, rows, *options)
    assert "cannot write" in text
    assert "No space left on device" in text
    # The result of an earlier check would be taken for that of this one.
    gone = old is None or name == "check"
    assert not out.exists() if gone else out.read_text() == old
    assert not [path for path in rows.parent.iterdir() if path.name.startswith(".")]


@pytest.mark.skipif(os.name != "posix", reason="needs a device that is always full")
def test_a_device_that_is_full_is_refused_and_stays_a_device(rows, monkeypatch):
    monkeypatch.setattr(os, "replace", lambda *_: pytest.fail("a device is replaced by a file"))
    monkeypatch.setattr(os, "unlink", lambda *_: pytest.fail("a device is removed"))
    for command in (("check", rows, "--max-ece", "0.9", "--junit"), ("report", rows, "-o")):
        assert "No space left on device" in refused(*command, "/dev/full")


@pytest.mark.full
@pytest.mark.skipif(os.name != "posix", reason="needs /dev/stdout")
def test_a_report_that_nobody_reads_ends_quietly(rows):
    done = run_here("report in.csv -o /dev/stdout | head -c 20")
    assert done.stdout.startswith("<!doctype html>")
    assert done.stderr == ""


def test_a_report_that_is_a_link_stays_one(rows):
    real, link = rows.with_name("real.xml"), rows.with_name("link.xml")
    real.write_text("old")
    link.symlink_to(real)
    assert call("check", rows, "--max-ece", "0.9", "--junit", link).exit_code in (0, 1, 3)
    assert link.is_symlink()
    assert "testsuite" in real.read_text()

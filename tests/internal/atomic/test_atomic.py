"""Files that are there whole or not at all."""

import ast
import errno
import os
import stat
import threading
from pathlib import Path

import pytest

import calibrant
from calibrant import atomic
from calibrant.atomic import identity, write_atomic

posix = pytest.mark.skipif(os.name != "posix", reason="permissions, devices and signals as POSIX has them")


def full(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("moment", ["write", "fsync", "replace"])
def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch, moment):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def parts():
        yield b"new"
        if moment == "write":
            full()

    if moment != "write":
        monkeypatch.setattr(os, moment, full)
    for name in ("a.txt", "b.txt"):
        with pytest.raises(OSError, match="No space left"):
            write_atomic(tmp_path / name, parts())
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


@posix
def test_new_files_have_the_permissions_of_any_and_old_ones_keep_theirs(tmp_path):
    usual, path, private = tmp_path / "usual", tmp_path / "a", tmp_path / "private"
    usual.write_text("")
    write_atomic(path, [b"a"])
    assert path.stat().st_mode == usual.stat().st_mode
    private.write_text("")
    private.chmod(0o600)
    write_atomic(private, [b"b"])
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert private.read_bytes() == b"b"


def test_the_umask_is_never_touched():
    for path in Path(calibrant.__file__).parent.rglob("*.py"):
        names = {getattr(node, "attr", "") for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))}
        assert "umask" not in names, path


@posix
def test_a_device_or_a_pipe_is_written_and_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "replace", lambda *_: pytest.fail("a device is replaced by a file"))
    with pytest.raises(OSError, match="No space left"):
        write_atomic("/dev/full", [b"too much"])
    pipe, found = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    write_atomic(pipe, [b"whole"])
    reader.join()
    assert found == [b"whole"]


def test_names_as_long_as_a_system_allows(tmp_path):
    path = tmp_path / ("\U0001f600" * 50 + "a" * 55)
    write_atomic(path, [b"a"])
    assert path.read_bytes() == b"a"


def test_one_file_has_one_identity(tmp_path):
    path, link, hard = tmp_path / "a", tmp_path / "link", tmp_path / "hard"
    link.symlink_to(path)
    assert identity(link) == identity(path) != identity(hard)
    path.write_text("")
    os.link(path, hard)
    assert identity(link) == identity(path) == identity(hard) == identity(tmp_path / "." / "a")


def test_what_was_begun_is_told_from_files(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "unlink", full)
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError):
        write_atomic(tmp_path / "a.json", [b""])
    (left,) = tmp_path.iterdir()
    assert atomic.is_partial_file(left)
    assert not any(atomic.is_partial_file(Path(name)) for name in (".profile", "a.0123456789ab", ".a.json"))

"""Files that are there whole or not at all, and folders that one process writes at a time."""

import ast
import errno
import json
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import calibrant
from calibrant import atomic
from calibrant.atomic import LOCK, Hold, identity, lock, write_whole

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
            write_whole(tmp_path / name, parts())
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


@posix
def test_new_files_have_the_permissions_of_any_and_old_ones_keep_theirs(tmp_path):
    usual, path, private = tmp_path / "usual", tmp_path / "a", tmp_path / "private"
    usual.write_text("")
    write_whole(path, [b"a"])
    assert path.stat().st_mode == usual.stat().st_mode
    private.write_text("")
    private.chmod(0o600)
    write_whole(private, [b"b"])
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
        write_whole("/dev/full", [b"too much"])
    pipe, found = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    write_whole(pipe, [b"whole"])
    reader.join()
    assert found == [b"whole"]


def test_names_as_long_as_a_system_allows(tmp_path):
    path = tmp_path / ("\U0001f600" * 50 + "a" * 55)
    write_whole(path, [b"a"])
    assert path.read_bytes() == b"a"


def test_one_file_has_one_identity(tmp_path):
    path, link, hard = tmp_path / "a", tmp_path / "link", tmp_path / "hard"
    link.symlink_to(path)
    assert identity(link) == identity(path) != identity(hard)
    path.write_text("")
    os.link(path, hard)
    assert identity(link) == identity(path) == identity(hard) == identity(tmp_path / "." / "a")


# Locks

HOLDER = """
import sys, time
from pathlib import Path
from calibrant.atomic import Hold
with Hold(Path(sys.argv[1]), "it"):
    print("held", flush=True)
    time.sleep(60)
"""


def holder(folder):
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    return process


@posix
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_folder_has_one_holder_and_that_of_the_dead_is_taken_over(tmp_path, how):
    with holder(tmp_path) as process:
        words = (
            f"^it is in use by process {process.pid} on .+, since 2.+ UTC; wait until it has ended, or give"
        )
        with pytest.raises(BlockingIOError, match=words), Hold(tmp_path, "it"):
            pytest.fail("two hold it")
        process.send_signal(how)
        process.wait(10)
        with Hold(tmp_path, "it") as hold:
            hold.check()
    assert os.listdir(tmp_path) == []


def test_threads_of_one_process_exclude_each_other(tmp_path):
    with Hold(tmp_path, "it"), pytest.raises(BlockingIOError, match=f"process {os.getpid()} on "):
        Hold(tmp_path, "it").__enter__()
    with Hold(tmp_path, "it"):
        pass


def written(folder, **about):
    values = {"pid": 1, "host": "elsewhere", "since": "2026", "machine": "other", "key": "x"} | about
    (folder / LOCK).write_text(json.dumps(values))


def silent(folder, seconds):
    now = os.stat(folder / LOCK).st_mtime
    os.utime(folder / LOCK, (now - seconds, now - seconds))


@pytest.mark.parametrize("locks", [True, False])
def test_a_holder_elsewhere_is_believed_until_it_is_silent(tmp_path, monkeypatch, locks):
    # Without locks that the system knows, a holder on the same machine is judged in the same way.
    if not locks:
        monkeypatch.setattr(lock, "_lock", lambda file: None)
    written(tmp_path, machine="other" if locks else lock._machine())
    silent(tmp_path, lock.SILENT - 60)
    words = r"process 1 on elsewhere, since 2026; if that is no longer running, delete .+lock or wait for"
    with pytest.raises(BlockingIOError, match=words):
        Hold(tmp_path, "it").__enter__()
    silent(tmp_path, lock.SILENT + 1)
    with Hold(tmp_path, "it"):
        assert json.loads((tmp_path / LOCK).read_text())["pid"] == os.getpid()


@pytest.mark.parametrize("content", ["", "{", "[]", "null"])
def test_a_lock_without_a_name_is_taken_over(tmp_path, content):
    (tmp_path / LOCK).write_text(content)
    with Hold(tmp_path, "it"):
        pass
    assert os.listdir(tmp_path) == []


def test_who_lost_the_folder_does_not_go_on(tmp_path):
    with Hold(tmp_path, "it") as hold:
        hold.check()
        os.unlink(tmp_path / LOCK)
        with Hold(tmp_path, "it") as other:
            with pytest.raises(BlockingIOError, match=f"has been taken over by process {os.getpid()} on "):
                hold.check()
            other.check()
        with pytest.raises(BlockingIOError, match="has been taken over by another process"):
            hold.check()


def test_without_locks_the_last_to_come_holds_the_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "_lock", lambda file: None)
    with Hold(tmp_path, "it") as hold:
        silent(tmp_path, lock.SILENT + 1)
        with Hold(tmp_path, "it") as other:
            other.check()
            with pytest.raises(BlockingIOError, match="taken over"):
                hold.check()


def test_a_holder_gives_signs_of_life(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "BEAT", 0.01)
    with Hold(tmp_path, "it"):
        silent(tmp_path, 1000)
        before = os.stat(tmp_path / LOCK).st_mtime
        for _ in range(500):
            if os.stat(tmp_path / LOCK).st_mtime > before + 900:
                break
            threading.Event().wait(0.01)
        else:
            pytest.fail("no sign of life")


@posix
def test_a_process_that_was_forked_does_not_keep_the_folder(tmp_path):
    read, write = os.pipe()
    with Hold(tmp_path, "it"):
        child = os.fork()
        if child == 0:
            os.read(read, 1)
            os._exit(0)
    try:
        with Hold(tmp_path, "it"):
            pass
    finally:
        os.write(write, b"x")
        os.waitpid(child, 0)
        os.close(read)
        os.close(write)


@posix
def test_a_link_in_place_of_the_lock_is_not_followed(tmp_path):
    other = tmp_path / "precious"
    other.write_text("1")
    folder = tmp_path / "kept"
    folder.mkdir()
    (folder / LOCK).symlink_to(other)
    with pytest.raises(OSError):
        Hold(folder, "it").__enter__()
    assert other.read_text() == "1"


@posix
def test_a_folder_that_nobody_can_write_to_needs_no_lock(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "open", lambda *_: (_ for _ in ()).throw(OSError(errno.EROFS, "read-only")))
    monkeypatch.setattr(os, "access", lambda *_: False)
    with Hold(tmp_path, "it") as hold:
        hold.check()
    monkeypatch.setattr(os, "access", lambda *_: True)
    with pytest.raises(OSError, match="read-only"):
        Hold(tmp_path, "it").__enter__()


def test_a_full_disk_leaves_no_lock_behind_that_holds(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space left"):
            Hold(tmp_path, "it").__enter__()
    with Hold(tmp_path, "it"):
        pass


def test_an_interrupt_at_the_start_gives_the_folder_back(tmp_path, monkeypatch):
    def interrupted(self):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            Hold(tmp_path, "it").__enter__()
    with Hold(tmp_path, "it"):
        pass


def test_what_was_begun_is_told_from_files(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "unlink", full)
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError):
        write_whole(tmp_path / "a.json", [b""])
    (left,) = tmp_path.iterdir()
    assert atomic.is_beginning(left)
    assert not any(atomic.is_beginning(Path(name)) for name in (".profile", "a.0123456789ab", ".a.json"))

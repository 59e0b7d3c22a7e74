"""Damaged states of monitors: each is refused by the name of its file, never an alarm or a success."""

import copy
import json
import os
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import calibrant
from calibrant import InputError, Monitor
from calibrant.cli import main

pytest.importorskip("filelock")
#: What replaces each field; DELETED removes it.
DELETED = object()
VALUES = (
    DELETED,
    None,
    True,
    -1,
    0.5,
    np.nan,
    np.inf,
    1e308,
    10**30,
    10**400,
    "",
    "x",
    "\ud800",
    [],
    [1],
    {},
    [None],
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Four periods that a state has read, and a new one."""
    folder, rng = tmp_path_factory.mktemp("monitored"), np.random.default_rng(0)
    (folder / "data").mkdir()
    for day in range(4, 9):
        score = rng.random(40).round(3)
        rows = zip((rng.random(40) < score).astype(int).tolist(), score.tolist(), strict=True)
        text = "label,score\n" + "".join(f"{y},{p}\n" for y, p in rows)
        (folder / "data" / f"2026-05-{day:02}.csv").write_text(text)
    new = folder / "data" / "2026-05-08.csv"
    kept = new.read_text()
    new.unlink()
    result = run(folder, "good.json", "--reference", "2")
    assert result.exit_code == 0, result.output
    new.write_text(kept)
    return folder


def run(folder, state, *options):
    words = [
        "monitor",
        str(folder / "data"),
        "--state",
        str(folder / state),
        "-o",
        str(folder / "page.html"),
        "-q",
    ]
    return CliRunner().invoke(main, [*words, *options])


def refused(folder, content, name="state.json"):
    """Check that the command refuses a state in one line that names it, and does not touch it."""
    (folder / name).write_bytes(content)
    result = run(folder, name)
    assert result.exit_code == 2, (content[:80], result.output)
    assert f"{folder / name}: " in result.output
    assert result.output.count("\n") == 1
    assert (folder / name).read_bytes() == content
    return result.output


def places(value, path=()):
    """Yield the path of each value of a JSON object, of lists only the first and the last."""
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*path, key))
    elif isinstance(value, list):
        for key in sorted({0, len(value) - 1} if value else ()):
            yield from places(value[key], (*path, key))


def replaced(values, path, new):
    if not path:
        return new
    values = copy.deepcopy(values)
    *front, last = path
    inner = values
    for key in front:
        inner = inner[key]
    if new is DELETED:
        del inner[last]
    else:
        inner[last] = new
    return values


def damaged_states(good, rng, size):
    """Yield the path of a field, and the state with another value there, of some of all pairs."""
    pairs = [(path, new) for path in places(good) for new in VALUES if path or new is not DELETED]
    for k in rng.permutation(len(pairs))[:size].tolist():
        path, new = pairs[k]
        values = replaced(good, path, new)
        if new is DELETED or json.dumps(values) != json.dumps(good):
            yield path, values


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"0",
        b"null",
        b'"x"',
        b"{}",
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b'{"files": [1]}',
        b"\0" * 50,
    ],
)
def test_what_is_no_state_is_refused(folder, content):
    refused(folder, content)


def test_a_state_that_is_cut_short_is_refused(folder):
    content = (folder / "good.json").read_bytes()
    for size in (1, len(content) // 2, len(content) - 1):
        refused(folder, content[:size])


@pytest.mark.full
def test_a_changed_field_is_refused_with_its_name(folder):
    good = json.loads((folder / "good.json").read_text())
    for path, values in damaged_states(good, np.random.default_rng(0), 250):
        message = refused(folder, json.dumps(values).encode())
        if path and isinstance(path[0], str):
            assert "state." in message or "is no state" in message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v: v.update(files=[1]), "state.files must be a mapping of fields, got [1]"),
        (lambda v: v.pop("files"), "state.files must be given"),
        (lambda v: v["files"].popitem(), "state.files must name the files of each batch"),
        (
            lambda v: v["monitor"]["settings"].update(horizon=10**400),
            "state.monitor.settings.horizon must lie in",
        ),
        (
            lambda v: v["monitor"]["settings"].update(tolerance=0.5),
            "state.digest must be that of the other fields",
        ),
        (lambda v: v["monitor"]["batches"][2].update(n=np.nan), "state.monitor.batches[2].n must be finite"),
        (
            lambda v: v["monitor"]["batches"][2].update(sums=[]),
            "state.monitor.batches[2].sums must hold sums",
        ),
        (
            lambda v: v["monitor"]["subject"].update(labels=[1]),
            "state.monitor.subject.labels must be at least two",
        ),
        (lambda v: v["monitor"]["batches"].reverse(), "state.monitor.batches[1].at must be after 2026-05-07"),
    ],
)
def test_messages_name_the_state_and_the_field(folder, change, message):
    values = json.loads((folder / "good.json").read_text())
    change(values)
    assert message in refused(folder, json.dumps(values).encode())


def test_a_state_that_cannot_be_read_is_named(folder, monkeypatch):
    content = (folder / "good.json").read_bytes()
    (folder / "kept.json").write_bytes(content)

    def read_bytes(path):
        raise PermissionError(13, os.strerror(13), str(path))

    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    result = run(folder, "kept.json")
    assert result.exit_code == 2
    assert "kept.json" in result.output
    (folder / "folder.json").mkdir()
    result = run(folder, "folder.json")
    assert result.exit_code == 2
    assert "folder.json" in result.output


def test_the_two_kinds_of_states_name_each_other(folder):
    with pytest.raises(
        InputError, match=r"good\.json: monitor must be a file that Monitor.save wrote.*--state"
    ):
        Monitor.load(folder / "good.json")
    Monitor().save(folder / "saved.json")
    result = run(folder, "saved.json")
    assert result.exit_code == 2
    assert (
        "saved.json: is no state of a monitor that the command wrote; Monitor.load reads it" in result.output
    )


@pytest.mark.full
def test_a_damaged_file_of_a_saved_monitor_is_refused_with_its_name(folder):
    monitor, rng = Monitor("classwise", reference=1), np.random.default_rng(1)
    for _ in range(3):
        score = rng.dirichlet([1, 1, 1], 40)
        monitor.update((rng.random((40, 1)) > score.cumsum(axis=1)).sum(axis=1), score)
    path = folder / "monitor.json"
    monitor.save(path)
    good = json.loads(path.read_text())
    for _, values in damaged_states(good, rng, 250):
        path.write_text(json.dumps(values))
        try:  # no digest here: what is possible is loaded, and must be complete
            loaded = Monitor.load(path)
        except InputError as error:
            message = str(error)
        else:
            assert np.isfinite(loaded.e_value)
            loaded.save(path)
            continue
        assert "monitor.json: " in message


@pytest.mark.parametrize(
    ("name", "value"), [("tolerance", 1e6), ("horizon", 10**400), ("reference", 10**10), ("delay", 1e12)]
)
def test_settings_that_overflow_are_refused(name, value):
    with pytest.raises(InputError, match=f"^{name} must be at most"):
        Monitor(**{name: value})


def test_an_internal_error_has_an_exit_code_of_its_own(folder, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("a fault of the program")

    monkeypatch.setattr(calibrant.Monitor, "to_html", fail)
    result = run(folder, "new.json")
    assert result.exit_code == 70
    assert "RuntimeError: a fault of the program" in result.output
    assert not (folder / "new.json").exists()

"""`calibrant monitor`: partitions, tables and sketches, what is kept between runs, and exit codes."""

import json
import os
import re
import runpy
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import calibrant
from calibrant.cli import main

ROOT = Path(__file__).parents[3]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows(day, wrong=False, n=150):
    rng = np.random.default_rng(day)
    score = rng.random(n)
    return (rng.random(n) < (score**3 if wrong else score)).astype(int), score


def text(y, p):
    return "label,score\n" + "".join(f"{a},{b!r}\n" for a, b in zip(y.tolist(), p.tolist(), strict=True))


def partition(day, wrong=False):
    path = Path("data", f"dt=2026-05-{day:02}", "part.csv")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text(*rows(day, wrong)))
    return path


def run(*words, code=0):
    done = CliRunner().invoke(main, ["monitor", *map(str, words)])
    assert done.exit_code == code, done.output
    return done.output


def test_partitions_are_read_once_and_give_what_one_run_gives(here):
    for day in range(1, 4):
        partition(day)
    state = "--state", "state.json"
    assert "No alarm after 3 batches" in run("data", *state)
    unread = Path("data/dt=2026-05-02/part.csv")
    kept = os.stat(unread)
    unread.write_text("x" * kept.st_size)  # what was read is not read again
    os.utime(unread, ns=(kept.st_atime_ns, kept.st_mtime_ns))
    for day in range(4, 7):
        partition(day, wrong=True)
    found = json.loads(run("data", *state, "--json", code=1))
    assert (found["new"], found["batches"]) == (3, 6)
    assert found["alarm"]["at"].startswith("2026-05-0")
    partition(2)
    whole = json.loads(run("data", "--json", "-o", "whole.html", code=1))
    assert whole["e_value"] == found["e_value"]
    assert whole["alarm"] == found["alarm"]
    assert Path("whole.html").read_text() == Path("data-monitor.html").read_text()
    # A file that was written again with the same content is the same.
    assert json.loads(run("data", *state, "--json", code=1))["new"] == 0
    monitor = calibrant.Monitor()
    for day in range(1, 7):
        monitor.update(*rows(day, day > 3), at=f"2026-05-{day:02}")
    assert monitor.e_value == found["e_value"]


def test_several_paths_have_a_page_with_a_plain_name(here):
    paths = [partition(day).parent for day in (1, 2)]
    assert run(*paths).splitlines()[-1] == f"page: {here / 'files-monitor.html'}"


def test_what_was_read_must_not_change(here):
    for day in (1, 2, 4):
        partition(day)
    run("data", "--state", "state.json")
    before = Path("state.json").read_bytes()
    late = Path("data/dt=2026-05-02/late.csv")
    late.write_text(text(*rows(9)))
    assert "2026-05-02: has changed since it was read" in run("data", "--state", "state.json", code=2)
    late.unlink()
    partition(3)
    assert "2026-05-03: at must be after 2026-05-04" in run("data", "--state", "state.json", code=2)
    assert Path("state.json").read_bytes() == before
    assert "--alpha must be 0.05" in run("data", "--state", "state.json", "--alpha", "0.1", code=2)
    Path("state.json").write_text("{}")
    assert "is no state of a monitor" in run("data", "--state", "state.json", code=2)


def test_a_state_is_used_by_one_run_at_a_time(here):
    filelock = pytest.importorskip("filelock")
    partition(1)
    with filelock.FileLock("state.json.lock"):
        assert "another run is using it" in run("data", "--state", "state.json", code=2)
    run("data", "--state", "state.json")


def test_periods_wait_for_their_labels(here):
    for day in range(1, 5):
        partition(day)
    options = "data", "--delay", 7, "--state", "state.json", "--json"
    assert "no period has closed" in run(*options, "--now", "2026-05-08", code=2)
    output = CliRunner().invoke(main, ["monitor", *map(str, options), "--now", "2026-05-10T12:00"])
    assert json.loads(output.stdout)["batches"] == 2
    assert "2 periods must wait for labels, from 2026-05-03 on" in output.stderr
    assert json.loads(run(*options, "--now", "2026-06-01"))["new"] == 2
    assert "--now" in run("data", "--now", "soon", code=2)


@pytest.mark.full
def test_a_table_is_split_by_the_time_of_its_rows(here):
    lines = ["label,score,when,team,user"]
    for day in range(14):
        y, p = rows(day, n=80)
        lines += [
            f"{a},{b!r},2026-05-{4 + day:02} 0{k % 10}:30,{'ab'[k % 2]},u{day}-{k // 2}"
            for k, (a, b) in enumerate(zip(y.tolist(), p.tolist(), strict=True))
        ]
    Path("table.csv").write_text("\n".join(lines) + "\n")
    options = "table.csv", "--label", "label", "--scores", "score", "--time", "when"
    by_week = json.loads(run(*options, "--every", "week", "--json", "--state", "state.json"))
    assert by_week["batches"] == 2
    monitor = calibrant.Monitor()
    for week, first in enumerate(("2026-05-04", "2026-05-11")):
        y, p = (
            np.concatenate(part) for part in zip(*(rows(7 * week + k, n=80) for k in range(7)), strict=True)
        )
        monitor.update(y, p, at=first)
    assert monitor.e_value == pytest.approx(by_week["e_value"])
    assert json.loads(run(*options, "--every", "week", "--json", "--state", "state.json"))["new"] == 0
    Path("table.csv").write_text("\n".join([*lines[:5], *lines[9:]]) + "\n")
    assert "2026-05-04: has changed" in run(*options, "--every", "week", "--state", "state.json", code=2)
    Path("table.csv").write_text("\n".join(lines) + "\n")
    assert json.loads(run(*options, "--json"))["batches"] == 14
    assert json.loads(run(*options, "--every", "hour", "--json"))["batches"] == 140
    waiting = CliRunner().invoke(
        main, ["monitor", *options, "--every", "week", "--delay", "1", "--now", "2026-05-18", "--json"]
    )
    assert json.loads(waiting.stdout)["batches"] == 1
    assert "from 2026-05-11 on" in waiting.stderr
    grouped = json.loads(run(*options, "--every", "week", "--groups", "team", "--cluster", "user", "--json"))
    assert grouped["batches"] == 2
    assert "two columns" in run(*options, "--groups", "when", code=2)
    assert "--time must name a column of dates" in run(*options[:-1], "team", code=2)


def test_dated_sketches_and_files(here):
    for day in (4, 5, 6):
        calibrant.Sketch().update(*rows(day)).save(f"2026-05-{day:02}.sketch")
        Path(f"scores-202605{day:02}.csv").write_text(text(*rows(day)))
    of_sketches = json.loads(run("2026-05-04.sketch", "2026-05-05.sketch", "2026-05-06.sketch", "--json"))
    of_files = json.loads(run("scores-*.csv", "--json", "-o", "page.html"))
    assert of_sketches["e_value"] == of_files["e_value"]
    assert of_sketches["batches"] == 3
    clustered = json.loads(run("scores-*.csv", "--json", "-o", "page.html", "--cluster", "label"))
    assert clustered["batches"] == 3
    Path("scores.csv").write_text(text(*rows(1)))
    assert "no part of the path is a date" in run("scores.csv", code=2)
    assert "cannot read nothere/: No such file or directory" in run("nothere/", code=2)


@pytest.mark.full
def test_the_example_of_thirty_days(tmp_path, capsys):
    example = runpy.run_path(str(ROOT / "docs/examples/drift_monitor.py"))
    example["write"](tmp_path)
    monitor = example["from_python"](tmp_path)
    assert "2026-05-19" <= monitor.alarm.at <= "2026-05-23"
    assert monitor.alarm.onset_low <= "2026-05-19" <= monitor.alarm.onset_high
    assert "are too high" in monitor.alarm.direction
    assert example["from_command"](tmp_path) == [0, 0, 1]
    assert (tmp_path / "monitor.html").read_text() == monitor.to_html()
    assert "Alarm at 2026-05-2" in capsys.readouterr().out


class Webhook(BaseHTTPRequestHandler):
    """A chat service that keeps what it receives; it refuses other paths than /hook."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append((self.headers["Content-Type"], json.loads(body)))
        self.send_response(200 if self.path == "/hook" else 404)
        self.end_headers()

    def log_message(self, *args):
        pass


@pytest.fixture
def webhook():
    with HTTPServer(("127.0.0.1", 0), Webhook) as server:
        server.received = []
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def notified(webhook, *words, hook="/hook", command=(sys.executable, "-m", "calibrant")):
    """Run a command by the example that posts its output."""
    environment = os.environ | {"WEBHOOK_URL": f"http://127.0.0.1:{webhook.server_port}{hook}"}
    command = [sys.executable, str(ROOT / "docs/examples/notify.py"), *command, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=environment)


@pytest.mark.full
def test_the_example_posts_alarms_and_errors_and_nothing_else(here, webhook):
    for day in range(1, 4):
        partition(day)
    words = "monitor", "data", "--state", "state.json"
    done = notified(webhook, *words)
    assert (done.returncode, webhook.received) == (0, [])
    assert "No alarm after 3 batches" in done.stdout
    for day in range(4, 9):
        partition(day, wrong=True)
    done = notified(webhook, *words)
    assert done.returncode == 1
    ((kind, message),) = webhook.received
    assert (kind, [*message]) == ("application/json", ["text"])
    assert "monitor data --state state.json: exit code 1\n" in message["text"]
    assert "Alarm at 2026-05-0" in message["text"]
    done = notified(webhook, "check", "data/dt=2026-05-01/part.csv", "--max-ece", "0.01")
    assert (done.returncode, "INCONCLUSIVE" in webhook.received[-1][1]["text"]) == (3, True)
    done = notified(webhook, "monitor", "nowhere")
    assert (done.returncode, "exit code 2" in webhook.received[-1][1]["text"]) == (2, True)
    assert len(webhook.received) == 3


@pytest.mark.full
def test_the_example_posts_that_a_command_cannot_be_started(webhook):
    done = notified(webhook, "--version", command=("no-such-command",))
    assert done.returncode == 127
    assert "No such file or directory: 'no-such-command'" in webhook.received[-1][1]["text"]


@pytest.mark.full
def test_the_example_needs_its_address_before_anything_is_wrong(monkeypatch):
    monkeypatch.delenv("WEBHOOK_URL", raising=False)
    command = [sys.executable, str(ROOT / "docs/examples/notify.py"), "true"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, "WEBHOOK_URL" in done.stderr) == (1, True)


@pytest.mark.full
def test_a_webhook_that_refuses_is_an_error(here, webhook):
    done = notified(webhook, "monitor", "nowhere", hook="/elsewhere")
    assert done.returncode == 1
    assert "HTTP Error 404" in done.stderr


@pytest.mark.full
def test_the_shell_of_the_page_notifies_after_an_alarm(here):
    page = (ROOT / "docs/monitoring.md").read_text(encoding="utf-8")
    code = re.search(r"```sh\n(if ! .*?)```", page, flags=re.S)[1].replace("predictions/", "data")
    (here / "bin").mkdir()
    for name, does in (
        ("calibrant", f'exec {sys.executable} -m calibrant "$@"'),
        ("mail", 'cat > "sent $2"'),
    ):
        (here / "bin" / name).write_text(f"#!/bin/sh\n{does}\n")
        (here / "bin" / name).chmod(0o755)
    environment = os.environ | {"PATH": f"{here / 'bin'}:{os.environ['PATH']}"}
    for day in range(1, 9):
        partition(day, wrong=day > 3)
        if day in (3, 8):
            subprocess.run(["bash", "-c", code], check=True, timeout=120, env=environment)
            assert (here / "sent Calibration").exists() == (day == 8)
    assert "Alarm at 2026-05-0" in (here / "sent Calibration").read_text()

"""Streams that are closed, full or unread: exit codes mean the same, and nothing more is said."""

import subprocess
import sys

import numpy as np
import pytest

pytestmark = [pytest.mark.full, pytest.mark.no_cover]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("streams")
    rng = np.random.default_rng(0)
    score = rng.random(400)
    rows = [f"{int(y)},{s}" for y, s in zip(rng.random(400) < score**2, score, strict=True)]
    (folder / "data.csv").write_text("\n".join(["label,score", *rows]) + "\n")
    return folder


def shell(folder, command, where):
    """Return the exit code of the program, and what it still said on standard error."""
    line = f"'{sys.executable}' -m calibrant {command} {where}; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


CHECKS = {"data.csv --max-ece 0.9": 0, "data.csv --max-ece 0.01 --json": 1, "none.csv --max-ece 0.9": 2}


@pytest.mark.parametrize("where", [">&-", "2>&-", ">&- 2>&-", "| true", "2>&1 | true", "2>/dev/full"])
@pytest.mark.parametrize("asked", CHECKS)
def test_the_exit_code_of_a_check_is_its_verdict_whatever_its_streams_lead_to(folder, asked, where):
    code, said = shell(folder, f"check {asked}", where)
    assert code == CHECKS[asked]
    assert "Traceback" not in said
    assert not said or code == 2


@pytest.mark.parametrize(
    "command", ["--help", "experiment run -h", "ece data.csv", "report data.csv -o r.html"]
)
def test_a_reader_that_goes_away_ends_a_command_quietly(folder, command):
    assert shell(folder, command, "| true") == (141, "")
    code, said = shell(folder, command, "| head -1")
    assert code in (0, 141)
    assert not said


def test_usage_is_wrong_without_streams_too(folder):
    assert shell(folder, "check data.csv", ">&- 2>&-")[0] == 2


def test_a_file_written_later_does_not_become_the_output(folder):
    assert shell(folder, "report data.csv -o page.html --json numbers.json", "<&- >&- 2>&-")[0] == 0
    assert (folder / "page.html").read_text().startswith("<!doctype html>")
    assert (folder / "numbers.json").read_text().startswith("{")


def test_output_that_cannot_be_kept_is_an_error(folder):
    code, said = shell(folder, "ece data.csv", ">/dev/full")
    assert code == 2
    assert said == "Error: [Errno 28] No space left on device\n"


def test_standard_input_that_is_closed_is_said(folder):
    code, said = shell(folder, "ece -", "<&-")
    assert code == 2
    assert "is closed" in said

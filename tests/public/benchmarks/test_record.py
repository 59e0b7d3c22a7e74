"""The recorder of public calls: equal recordings, and what it prints where two differ."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "benchmarks" / "record.py"
CALLS = "^(ece: binary uniform:15|ece: norm l2 uniform:15|curves: diagram few rows|refused: lengths)$"

pytestmark = [pytest.mark.no_cover, pytest.mark.full]


def run(*words):
    words = [sys.executable, str(SCRIPT), *map(str, words)]
    return subprocess.run(words, capture_output=True, text=True, cwd=ROOT, check=False)


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """A recording of four calls, compared with the last commit."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("needs git")
    path = tmp_path_factory.mktemp("record") / "this.json"
    done = run("HEAD", "--only", CALLS, "--save", path)
    assert done.returncode in (0, 1), done.stderr
    assert "4 calls compared" in done.stdout
    return path


def test_a_recording_equals_itself(recording):
    done = run(recording, "--this", recording)
    assert done.returncode == 0, done.stdout
    assert "4 calls compared, 0 differ" in done.stdout
    assert "ece: binary uniform:15" in done.stdout  # its times


def test_differences_are_shown_with_their_size_and_place(recording, tmp_path):
    changed = json.loads(recording.read_text())
    value = changed["calls"]["ece: binary uniform:15"]["fields"][""]
    changed["calls"]["ece: binary uniform:15"]["fields"][""] = 1.25 * value
    changed["calls"]["ece: norm l2 uniform:15"]["fields"][""] *= 1 + 1e-11
    diagram = changed["calls"]["curves: diagram few rows"]["fields"]
    diagram["frequency"]["shape"][0] += 1
    diagram["estimator"] = "uniform bins"
    changed["calls"]["refused: lengths"]["error"] = "InputError: too short"
    (tmp_path / "changed.json").write_text(json.dumps(changed))
    done = run(recording, "--this", tmp_path / "changed.json", "--no-times")
    assert done.returncode == 1
    assert "4 calls compared, 3 differ" in done.stdout
    assert f"relative 0.2      value: {value:.6g} -> {1.25 * value:.6g}" in done.stdout
    assert "frequency: shape [15] -> [16]" in done.stdout
    assert "estimator: 'uniform:15' -> 'uniform bins'" in done.stdout
    assert "after:  InputError: too short" in done.stdout
    assert "norm l2" not in done.stdout
    again = run(recording, "--this", tmp_path / "changed.json", "--no-times", "--tolerance", "0.3")
    assert "0 by numbers" in again.stdout


def test_the_list_names_every_area():
    done = run("--list", "--only", "ties")
    areas = {line.partition(":")[0] for line in done.stdout.splitlines()}
    assert areas >= {"ece", "estimate", "curves", "assess", "maps", "decisions", "data"}

"""The experiment on the command line, as a person uses it."""

import csv
import re
import shlex
import shutil
import sys
import types
from pathlib import Path

import matplotlib
import pytest
from click.testing import CliRunner

from calibrant import experiment
from calibrant.cli import experiment as command
from calibrant.cli import main
from calibrant.experiment import claims
from calibrant.experiment.procedure import NOTIONS
from calibrant.experiment.summary import READINGS

matplotlib.use("Agg")
ROOT = Path(__file__).parents[3]
SMALL = ["--sizes", "29,60", "--repetitions", "5", "--holdout", "2000", "--families", "logistic,naive-bayes"]
PLUGGED = """
import numpy as np

class Mine:
    def __call__(self, scores, outcomes, weights):
        return abs(np.mean(outcomes - scores))

def broken(scores, outcomes, weights):
    raise RuntimeError("out of\\nideas")

def stubborn(seed):
    raise RuntimeError("will not learn")
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty directory to work in."""
    monkeypatch.chdir(tmp_path)
    for name in ("plugged", "mypackage"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "run"
    result = call("run", "--preset", "smoke", "--out", str(folder), "-q", *SMALL)
    assert result.exit_code == 0, result.output
    return folder


def call(*args):
    result = CliRunner().invoke(main, ["experiment", *args])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def run(*args, out="run"):
    return call("run", "--preset", "smoke", "--out", out, *SMALL, *args)


def settings(folder="run"):
    return experiment.Store(Path(folder)).settings()


def one_line(result, code, *words):
    assert result.exit_code == code, result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: ")
    assert result.stdout == ""
    for word in words:
        assert word in line


def test_defaults_are_the_presets(here, monkeypatch):
    asked = []

    def fake(settings, folder, **options):
        asked.append((settings, options["jobs"], options["backend"]))
        store = experiment.Store.create(folder, settings)
        monkeypatch.setattr(type(settings), "tasks", lambda self: [])
        return store

    monkeypatch.setattr(experiment, "run", fake)
    for name in command.PRESETS:
        assert call("run", "--preset", name, "--out", name).exit_code == 0
    assert asked == [(experiment.PRESETS[name], 1, None) for name in command.PRESETS]
    call("run", "--preset", "paper", "--out", "more", "--extra-estimators", "l:15", "--jobs", "-1")
    assert asked[-1][0].estimators == (*experiment.PRESETS["paper"].estimators, "l:15")
    assert asked[-1][1] == -1


def test_choices_are_those_of_the_experiment():
    assert tuple(experiment.PRESETS) == command.PRESETS
    assert READINGS == command.READINGS
    (option,) = (p for p in command.run.params if p.name == "notions")
    assert tuple(option.type.choices) == NOTIONS


def test_a_long_list_of_failures_is_cut(here, monkeypatch):
    monkeypatch.setattr(command, "SHOWN", 1)
    (here / "plugged.py").write_text(PLUGGED)
    result = run("--estimators", "plugged.broken", "-q")
    assert result.exit_code == 0
    assert result.stderr.splitlines()[1:] == ["failed: and 3 more"]
    # Not a single number: the table has no line, and says so without a stumble.
    assert call("table", "run").exit_code == 0


# Reading a run


def test_table_prints_medians_and_saves_every_reading(here, finished):
    result = call("table", str(finished), "-o", "all.csv")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].startswith("confidence, corrected: median over 4 models")
    assert lines[1].split() == ["estimator", "29", "60"]
    wanted = experiment.Summary.of(experiment.Store(finished)).median("corrected", "confidence")[0]
    assert lines[2].split() == ["l:10", *(f"{v:.4f}" for v in wanted)]
    assert lines[-1] == f"table: {here / 'all.csv'}"
    with Path("all.csv").open() as file:
        assert {row["reading"] for row in csv.DictReader(file)} == set(READINGS)


def test_table_goes_beside_the_run(here, finished):
    shutil.copytree(finished, "run")
    for reading in READINGS:
        result = call("table", "run", "--reading", reading)
        assert f"classwise, {reading}:" in result.stdout
    assert (here / "run/summary.csv").exists()


@pytest.fixture
def judged(monkeypatch):
    """A judge of claims that says what it was asked."""
    fake = types.ModuleType("calibrant.experiment.claims")
    fake.claims = lambda summary: [f"{len(summary.models)} models"]
    fake.to_markdown = lambda found: f"| claim |\n{found[0]}\n"
    fake.about = claims.about
    monkeypatch.setitem(sys.modules, fake.__name__, fake)
    monkeypatch.setattr(experiment, "claims", fake, raising=False)


def test_claims_are_written(here, finished, judged):
    result = call("claims", str(finished))
    assert result.exit_code == 0, result.output
    assert "4 models" in result.stdout
    result = call("claims", str(finished), "-o", "claims.md")
    title, about, table = Path("claims.md").read_text().split("\n\n")
    assert title.startswith("# ")
    assert about.startswith("4 models, ")
    assert table == "| claim |\n4 models\n"
    assert result.stderr == f"claims: {here / 'claims.md'}\n"


COMMANDS = pytest.mark.parametrize("name", ["figure", "table", "claims"])


@COMMANDS
def test_a_folder_without_a_run_is_one_clear_line(here, judged, name):
    one_line(call(name, "missing"), 2, "missing", "does not exist")
    one_line(call(name, "."), 1, "holds no run")
    assert run("-q").exit_code == 0
    shutil.rmtree("run/tasks")
    one_line(call(name, "run"), 1, "no finished task")


@COMMANDS
@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"settings": []}', '{"settings": {"colour": 1}}', "\xff\xfe", "null"]
)
def test_a_damaged_manifest_is_one_clear_line(here, finished, judged, name, text):
    shutil.copytree(finished, "run")
    Path("run/manifest.json").write_bytes(text.encode("latin-1"))
    one_line(call(name, "run"), 1, "manifest.json is damaged")
    one_line(run("-q"), 1, "manifest.json is damaged")


@COMMANDS
def test_a_damaged_result_is_one_clear_line(here, finished, judged, name):
    shutil.copytree(finished, "run")
    path = next(Path("run/tasks").iterdir())
    path.write_bytes(path.read_bytes()[:-30])
    one_line(call(name, "run"), 1, path.name, "cannot be read")
    assert run("-q").exit_code == 0
    assert call(name, "run").exit_code == 0


# The document


def blocks(language):
    return re.findall(
        rf"^```{language}\n(.*?)^```$", (ROOT / "docs/experiment.md").read_text(), flags=re.M | re.S
    )


def commands(block):
    """Arguments of the commands of a block, with the preset of seconds for that of minutes."""
    for line in re.split(r"\n|&&", block.replace("--preset quick", "--preset smoke")):
        program, *args = shlex.split(line) or [""]
        if program == "calibrant":
            yield args


def test_the_commands_of_the_document_run(here):
    first, mine, cluster, ranking = blocks("sh")
    for args in commands(first):
        result = CliRunner().invoke(main, args)
        assert result.exit_code == 0, result.output
    shutil.rmtree("run")
    example = blocks("python")[0]
    assert len([line for line in example.splitlines() if line]) <= 10
    Path("mypackage.py").write_text(example)
    for args in commands(mine):
        result = CliRunner().invoke(main, args)
        assert result.exit_code == 0, result.output
        assert "failed" not in result.output
    assert settings().estimators == (*experiment.PRESETS["paper"].estimators, "mypackage.MyEstimator")
    summary = experiment.Summary.of(experiment.Store(Path("run")))
    from calibrant.experiment import figures

    drawn = figures.figure2(summary, "corrected")
    assert all("mypackage.MyEstimator" in ax.get_legend_handles_labels()[1] for ax in drawn.axes)
    (args,) = commands(cluster)
    assert {"--preset", "--out", "--scheduler"} <= set(args)
    *runs, page = commands(ranking)
    assert page[:2] == ["experiment", "leaderboard"]
    for args in runs:  # too long to run: only read
        command.run.make_context("run", args[2:])
        assert args[-1] in page

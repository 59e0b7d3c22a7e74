"""Every block of every page is run, or too long to run and then read; and what pages refer to is there."""

import ast
import re
import shlex
from pathlib import Path

import click
import numpy as np
import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner
from test_docs import PRINTING

import calibrant
from calibrant import experiment
from calibrant.cli import main

pytestmark = [pytest.mark.full, pytest.mark.no_cover]
ROOT = Path(__file__).parents[3]
PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/README.md"]
PAGES += sorted(
    str(path.relative_to(ROOT))
    for path in (ROOT / "docs").rglob("*.md")
    if not {"auto_gallery", "generated", "_build"} & set(path.parts)
)
FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", flags=re.M | re.S)
# Where the Python of a page is run.
RUN = {
    "CONTRIBUTING.md": "test_registry, test_contributing",
    "docs/command-line.md": "test_cli_data, here",
    "docs/equalities.md": "test_equalities",
    "docs/decisions.md": "test_docs, test_plot_more",
    "docs/data.md": "test_sketch, test_stream, here",
    "docs/experiment.md": "test_experiment_cli",
    "docs/figures.md": "test_plot_more",
    "docs/findings.md": "here",
    "docs/how-to/integrations.md": "test_integrations",
    "docs/pytorch.md": "test_page",
    "docs/report.md": "test_docs",
    "docs/tutorials/pytorch.md": "test_page",
}


def text_of(page):
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page, language, after=""):
    """Code of a language on a page, or on what follows a title."""
    text = text_of(page)
    return [code for kind, code in FENCE.findall(text[text.index(after) :]) if kind == language]


def commands(*codes):
    """Arguments of each call of calibrant, without comments and redirections."""
    for line in re.split(r"\n|&&", "\n".join(codes)):
        program, *args = shlex.split(line, comments=True) or [""]
        if program == "calibrant":
            yield args


def read(args):
    """Let the command line read arguments without doing what they say."""
    command, parent = main, None
    while hasattr(command, "commands"):
        # Commands keep the help option of the first context that they meet: it is to be the group's.
        parent = click.Context(command, parent, **command.context_settings)
        command, args = command.commands[args[0]], args[1:]
    return command.make_context(command.name, args, parent)


def run(args):
    result = CliRunner().invoke(main, args)
    assert result.exit_code == 0, f"{args}: {result.output}"
    return result.stdout


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    y_prob = rng.dirichlet(np.ones(3), 200)
    label = (rng.random((200, 1)) > y_prob.cumsum(axis=1)).sum(axis=1)
    frame = pd.DataFrame(y_prob, columns=["p_0", "p_1", "p_2"])
    return frame.assign(y=label, country=np.array(["no", "se"])[np.arange(200) % 2])


def test_no_page_has_python_that_nothing_runs():
    run = set(RUN) | set(PRINTING)
    assert {page for page in PAGES if blocks(page, "python")} == run


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_python_can_be_read(page):
    for code in [*blocks(page, "python"), *blocks(page, "py")]:
        ast.parse(re.sub(r"^   (?=\S|   )", "", code, flags=re.M) if page == "CONTRIBUTING.md" else code)


@pytest.mark.parametrize("page", PAGES)
def test_commands_have_options_that_are(page, here):
    for run_of_an_experiment in ("run", "paper", "confirm", "later"):
        (here / run_of_an_experiment).mkdir()
    for args in commands(*blocks(page, "sh")):
        read(args)


@pytest.mark.parametrize("page", PAGES)
def test_scripts_that_pages_run_are_there_and_have_the_options(page):
    for line in re.findall(r"python (?:benchmarks|docs)/[^`\n]*", text_of(page)):
        script, *words = line.split()[1:]
        source = text_of(script)
        for option in re.findall(r"--[a-z][a-z-]*", " ".join(words)):
            assert option in source, line


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:)([^)#]*)(?:#[^)]*)?\)", text_of(page)):
        assert not target or (ROOT / page).parent.joinpath(target).exists(), target
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*\.md|)#([^)]*)\)", text_of(page)):
        other = (ROOT / page).parent.joinpath(target) if target else ROOT / page
        titles = re.findall(r"^#+ (.*)$", other.read_text(encoding="utf-8"), flags=re.M)
        slugs = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
        assert anchor in slugs, f"{target}#{anchor}"


@pytest.mark.parametrize("page", [page for page in PAGES if page != "CHANGELOG.md"])
def test_names_of_the_past_are_gone(page):
    gone = (
        r'bandwidth="ranks"',
        r"calibrant[^\n]* --(?:positive|weight|group)\b",
        r"calibrant\.estimators\(",
    )
    gone += (r'\b(?:weight|group)="', r'to_json\("')
    assert not re.findall("|".join(gone), text_of(page))


def test_the_commands_of_the_readme_run(here, table):
    rng = np.random.default_rng(0)
    score = rng.random(3000)
    frame = table[["country"]].sample(3000, replace=True, random_state=0).reset_index(drop=True)
    frame = frame.assign(y=rng.random(3000) < score, p=score)
    frame.to_csv("predictions.csv", index=False)
    for name in ("released", "new"):
        frame.to_parquet(f"{name}.parquet")
    (code,) = blocks("README.md", "sh", after="## Gate")[:1]
    asked = list(commands(code))
    assert [args[0] for args in asked] == ["check"] * 3
    assert [CliRunner().invoke(main, args).exit_code for args in asked] == [0, 0, 0]
    assert "PASS" in (here / "gate.md").read_text()


def test_the_commands_of_the_page_on_the_command_line_run(here):
    (code,) = blocks("docs/command-line.md", "python")
    exec(compile(code, "docs/command-line.md", "exec"), {})
    asked = list(commands(*blocks("docs/command-line.md", "sh")))
    assert [args[0] for args in asked] == ["compare"] * 3 + ["report"] + ["calibrate"] * 2 + ["sketch"] * 4
    for args in asked:
        printed = run(args)
    (table,) = (code for code in blocks("docs/command-line.md", "text") if code.startswith("sketch "))
    assert printed == table


def test_frames_are_summed_as_the_page_shows(table):
    code, cluster = blocks("docs/data.md", "python", after="## Frames and engines")
    names = np.array(["cat", "dog"])
    p = table["p_0"].to_numpy()
    frame = pd.DataFrame({"y": names[table["y"] % 2], "p_cat": p, "p_dog": 1 - p})
    country = table["country"].to_numpy()
    clicks = pl.DataFrame({"clicked": table["y"].to_numpy() == 0, "p": p, "country": country})
    space = {"calibrant": calibrant, "frame": frame, "lazy": clicks.lazy()}
    exec(compile(code, "docs/data.md", "exec"), space)
    assert list(space["sketches"]) == ["no", "se"]
    assert space["sketch"].n == 200
    for call in ast.walk(ast.parse(cluster)):  # needs a cluster, a data base and a bucket
        method = getattr(getattr(call, "func", None), "attr", "")
        if method.startswith("from_frame"):
            assert callable(getattr(calibrant.Sketch, method))


def test_the_findings_are_computed_as_the_page_shows(here, monkeypatch, capsys):
    smoke = experiment.PRESETS["smoke"]
    monkeypatch.setitem(experiment.PRESETS, "paper", smoke)
    experiment.run(smoke, here / "paper")
    truths, means, times = blocks("docs/findings.md", "python")
    exec(compile(truths, "docs/findings.md", "exec"), {})
    assert "confidence" in capsys.readouterr().out
    exec(compile(means.replace("seeds=(0, 1), ", ""), "docs/findings.md", "exec"), {})
    assert (here / "text" / "manifest.json").exists()
    exec(compile(times, "docs/findings.md", "exec"), {})
    printed = capsys.readouterr().out
    for name in ("errors_many", "estimates", "scores", "true_errors", "holdout", "summarise"):
        assert f"({name})" in printed

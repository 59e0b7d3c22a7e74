"""What the documents show is what the software does."""

import ast
import contextlib
import doctest
import io
import re
import shlex
from pathlib import Path

import matplotlib.pyplot
import numpy as np
import pytest
from click.testing import CliRunner

import calibrant
from calibrant.cli import main

pytestmark = [pytest.mark.full, pytest.mark.no_cover]

matplotlib.use("Agg")
plt = matplotlib.pyplot
ROOT = Path(__file__).parents[3]


def blocks(name, language):
    return re.findall(rf"^ *```{language}\n(.*?)^ *```$", (ROOT / name).read_text(), flags=re.M | re.S)


def test_python_on_the_report_page_runs(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    y_prob = rng.dirichlet(np.ones(3), 90)
    country = np.array(["no", "se"])[np.arange(90) % 2]
    space = {"y_true": rng.integers(0, 3, 90), "y_prob": y_prob, "country": country, "calibrant": calibrant}
    monkeypatch.chdir(tmp_path)
    (code,) = blocks("docs/report.md", "python")
    exec(compile(code, "report.md", "exec"), space)
    assert (tmp_path / "report.html").stat().st_size > 10_000
    assert space["page"] == (tmp_path / "report.html").read_text(encoding="utf-8")
    assert calibrant.Assessment.from_json(space["text"]).verdict == space["assessment"].verdict
    plt.close("all")


def test_functions_and_constants_that_method_pages_name_exist():
    of_others = {"False", "True", "GaussianNB", "LinearDiscriminantAnalysis", "class_likelihood_ratios"}
    defined = set(of_others)
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                defined.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                defined.add(node.id)
    for page in (ROOT / "docs" / "methods").glob("*.md"):
        named = {name.split(".")[-1] for name in re.findall(r"`((?:\w+\.)*\w+)`", page.read_text())}
        assert {name for name in named - defined if re.search("_|[A-Z]", name)} == set(), page.name


def test_readme_commands_make_their_own_environment():
    demo, *_, tests = blocks("README.md", "sh")
    for command in (demo, tests):
        assert re.match(r"python3 -m venv (--upgrade-deps )?\.venv && \.venv/bin/pip install", command)
    extras = re.search(r"\[(.*?)\]", demo)[1]
    assert {"files", "plot"} <= set(extras.split(","))  # to read a CSV and draw
    assert f"pip install '.[{extras}]'" in blocks("docs/start/install.md", "sh")[0]


SESSIONS = {
    str(path.relative_to(ROOT)): shown
    for folder in ("how-to", "reference", "research")
    for path in sorted((ROOT / "docs" / folder).glob("*.md"))
    if (shown := re.findall(r"^```pycon\n(.*?)^```$", path.read_text(encoding="utf-8"), flags=re.M | re.S))
}


@pytest.mark.parametrize("page", SESSIONS)
def test_a_page_shows_what_an_interpreter_prints(page):
    example = doctest.DocTestParser().get_doctest("\n".join(SESSIONS[page]), {}, page, None, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    report = io.StringIO()
    runner.run(example, out=report.write)
    assert not runner.failures, report.getvalue()


NUMBER = r"\d+\.\d+"


def same(found, shown):
    """Check a text; a number may move in its last digit from one version of what computes it to the next."""
    assert re.sub(NUMBER, "#", found) == re.sub(NUMBER, "#", shown)
    found, shown = ([float(number) for number in re.findall(NUMBER, text)] for text in (found, shown))
    np.testing.assert_allclose(found, shown, rtol=0.02, atol=0.02)


PRINTING = [
    f"docs/{name}.md"
    for name in (
        *(
            "scikit-learn",
            "language-models",
            "calibration",
            "decisions",
            "selective",
            "monitoring",
            "equalities",
        ),
        "segments",
        "how-to/rare-outcomes",
        "index",
    )
]
PRINTING += [
    "README.md",
    *(
        str(path.relative_to(ROOT))
        for folder in ("start", "tutorials", "explanation", "coming-from")
        for path in sorted((ROOT / "docs" / folder).glob("*.md"))
        if "```python" in path.read_text(encoding="utf-8")
        and "import torch" not in path.read_text(encoding="utf-8")  # tests/pytorch/test_page.py
    ),
]


@pytest.mark.parametrize("page", PRINTING)
def test_a_page_prints_what_it_shows(page, tmp_path, monkeypatch):
    text = (ROOT / page).read_text()
    monkeypatch.chdir(tmp_path)
    pairs = re.findall(r"^```python\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", text, flags=re.M | re.S)
    assert len(pairs) == len(blocks(page, "python"))
    assert sum(bool(shown) for _, shown in pairs) == len(blocks(page, "text"))
    space = {}
    for code, shown in pairs:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, page, "exec"), space)
        same(printed.getvalue(), shown)
    for block in blocks(page, "console"):
        for command, shown in re.findall(r"^\$ calibrant (.*)\n((?:(?!\$ ).*\n)*)", block, flags=re.M):
            same(CliRunner().invoke(main, shlex.split(command)).output, shown)
    plt.close("all")


def test_levels_are_shown_as_levels_with_the_highest_among_them():
    text = (ROOT / "docs/language-models.md").read_text()
    shown = re.search(r"^score .*\n((?: +\S+ .*\n)+)", text, flags=re.M)[1]
    assert [line.split()[0] for line in shown.splitlines()] == ["0.6", "0.7", "0.8", "0.9", "1"]
    assert "of answers with confidence 1, an estimated 87 in 100" in text

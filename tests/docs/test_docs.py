"""What the documents show is what the software does."""

import contextlib
import doctest
import io
import re
from pathlib import Path

import matplotlib.pyplot
import numpy as np
import pandas as pd

import calibrant
from calibrant.estimators import describe

matplotlib.use("Agg")
plt = matplotlib.pyplot
ROOT = Path(__file__).parents[2]


def blocks(name, language):
    return re.findall(rf"^ *```{language}\n(.*?)^ *```$", (ROOT / name).read_text(), flags=re.M | re.S)


def test_python_in_the_readme_runs(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    y_prob = rng.dirichlet(np.ones(3), 300)
    y_true = rng.integers(0, 3, 300)
    day = calibrant.Sketch(notion="confidence").update(y_true, y_prob)
    y_other = rng.dirichlet(np.ones(3), 300)
    space = {
        "y_true": y_true,
        "y_prob": y_prob,
        "y_other": y_other,
        "tuesday": day,
        "wednesday": day,
        "correct": rng.random(300) < 0.7,
        "confidence": rng.random(300),
        "table": pd.DataFrame(y_prob, columns=["p_0", "p_1", "p_2"]).assign(
            y=y_true, country=np.array(["no", "se"])[np.arange(300) % 2]
        ),
        "calibrant": calibrant,
    }
    code = blocks("README.md", "python")
    assert len(code) == 2
    monkeypatch.chdir(tmp_path)
    (tmp_path / "predictions").mkdir()
    space["table"].to_parquet(tmp_path / "predictions" / "monday.parquet")
    for block in code:
        exec(compile(block, "README.md", "exec"), space)
    assert space["week"].n == 900
    plt.close("all")


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
    assert calibrant.Assessment.from_json(space["text"]).verdict == space["found"].verdict
    plt.close("all")


def test_readme_lists_the_registry():
    text = (ROOT / "README.md").read_text()
    for entry in describe():
        assert f"| `{entry.name}` | `{entry.short}` |" in text


def test_readme_commands_make_their_own_environment():
    demo, tests = blocks("README.md", "sh")[:2]
    for command in (demo, tests):
        assert command.startswith("python3 -m venv .venv && .venv/bin/pip install")
    assert "files" in re.search(r"\[(.*?)\]", demo)[1].split(",")  # without it no CSV can be read


def test_the_guide_shows_what_is_printed():
    shown = re.findall(r"^```\n(>>> .*?)^```$", (ROOT / "docs/guide.md").read_text(), flags=re.M | re.S)
    assert len(shown) == 8
    space = {"np": np, "calibrant": calibrant}
    example = doctest.DocTestParser().get_doctest("\n".join(shown), space, "guide", None, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    report = io.StringIO()
    runner.run(example, out=report.write)
    assert not runner.failures, report.getvalue()


def test_the_page_on_scikit_learn_prints_what_it_shows():
    # A number may move in its last digit from one version of scikit-learn to the next.
    text, number = (ROOT / "docs/scikit-learn.md").read_text(), r"\d+\.\d+"
    pairs = re.findall(r"^```python\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", text, flags=re.M | re.S)
    assert len(pairs) == len(blocks("docs/scikit-learn.md", "python"))
    assert sum(bool(shown) for _, shown in pairs) == len(blocks("docs/scikit-learn.md", "text"))
    space = {}
    for code, shown in pairs:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "docs/scikit-learn.md", "exec"), space)
        found = printed.getvalue()
        assert re.sub(number, "#", found) == re.sub(number, "#", shown)
        np.testing.assert_allclose(
            *([float(one) for one in re.findall(number, some)] for some in (found, shown)),
            rtol=0.02,
            atol=0.02,
        )
    plt.close("all")

"""The command line as a person uses it."""

import importlib
import importlib.metadata
import re

import pytest
from click.testing import CliRunner

import calibrant
from calibrant import cli, compiled

demo = importlib.import_module("calibrant.cli.demo")  # `cli.demo` is the command of that name


@pytest.fixture(scope="module")
def forest():
    labels, scores = demo.digits()
    return labels[:300], scores[:300]


@pytest.fixture
def quick(monkeypatch, forest):
    monkeypatch.setattr(demo, "digits", lambda: forest)


def test_demo_says_what_it_found_and_writes_the_report(quick, tmp_path):
    out = tmp_path / "demo.html"
    result = CliRunner().invoke(cli.main, ["demo", "-o", str(out)])
    assert result.exit_code == 0, result.output
    printed = " ".join(result.output.split())
    for words in ("Underconfident by", "notion ECE 95 % interval", "Brier score all classes", str(out)):
        assert words in printed
    for notion in ("confidence", "classwise"):
        assert re.search(rf" {notion} 0\.\d+ 0\.\d+ to 0\.\d+ ", printed)
    assert out.read_text().startswith("<!doctype html>")


def test_demo_is_reproducible(quick, tmp_path):
    first, second = tmp_path / "a.html", tmp_path / "b.html"
    for path in (first, second):
        assert CliRunner().invoke(cli.main, ["demo", "-q", "--seed", "3", "-o", str(path)]).exit_code == 0
    assert first.read_bytes() == second.read_bytes()


def test_quiet_says_only_where_the_report_is(quick, tmp_path):
    out = tmp_path / "demo.html"
    result = CliRunner().invoke(cli.main, ["demo", "--quiet", "--out", str(out)])
    assert result.output.splitlines() == [f"report: {out}"]


def test_a_report_that_cannot_be_written_is_one_clear_line(quick, tmp_path):
    result = CliRunner().invoke(cli.main, ["demo", "-q", "-o", str(tmp_path / "missing" / "demo.html")])
    assert result.exit_code == 2
    assert result.output.startswith("Error: ")
    assert "missing" in result.output
    assert len(result.output.splitlines()) == 1


def test_a_missing_extra_is_named(monkeypatch):
    def missing():
        raise ImportError("No module named 'sklearn'")

    monkeypatch.setattr(demo, "digits", missing)
    result = CliRunner().invoke(cli.main, ["demo"])
    assert result.exit_code == 1
    assert "pip install 'calibrant[demo]'" in result.output


def test_the_version_is_that_of_the_installed_package():
    result = CliRunner().invoke(cli.main, ["--version"])
    assert result.output == f"calibrant {calibrant.__version__} ({compiled.in_use()})\n"
    assert calibrant.__version__ == importlib.metadata.version("calibrant")

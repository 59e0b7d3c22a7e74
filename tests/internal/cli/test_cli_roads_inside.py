"""Commands that know their own files, refuse what they do not write, and name what they cannot know."""

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from calibrant import Sketch
from calibrant.cli import main

RNG = np.random.default_rng(0)
P = RNG.random(60)
Y = (RNG.random(60) < P).astype(int)


def run(*words):
    done = CliRunner().invoke(main, [*map(str, words)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"y": Y, "p": P, "day": Y, "country": "no"}).to_csv("a.csv", index=False)
    Sketch("binary").update(Y, P).save("a.sketch")
    return tmp_path


@pytest.mark.parametrize("name", ["out.pdf", "out.PNG", "out.json", "out.csv"])
def test_a_report_in_another_format_is_refused_before_any_work(folder, name, monkeypatch):
    monkeypatch.setattr("calibrant.data.load_models", lambda *_, **__: pytest.fail("it was read"))
    done = run("report", "a.csv", "-o", name)
    assert done.exit_code == 2
    assert f"{name} ends in none of .html, .htm, which are written" in done.stderr
    assert not (folder / name).exists()

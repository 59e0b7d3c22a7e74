"""A user's code with types runs; `.ci/run` checks its types against an installed package."""

import runpy
from pathlib import Path

import pytest


@pytest.mark.full
@pytest.mark.no_cover
def test_the_code_runs(capsys):
    runpy.run_path(str(Path(__file__).with_name("typed_user.py")), run_name="__main__")
    assert "calibrant" in capsys.readouterr().out

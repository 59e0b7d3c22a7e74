"""A user's code with types runs; `.ci/run` checks its types against an installed package."""

import runpy
from pathlib import Path

import pytest

pytestmark = pytest.mark.full


@pytest.mark.full
@pytest.mark.no_cover
def test_the_code_runs(capsys):
    from matplotlib import pyplot

    with pyplot.rc_context({"figure.max_open_warning": 0}):
        runpy.run_path(str(Path(__file__).with_name("typed_user.py")), run_name="__main__")
    pyplot.close("all")
    assert "calibrant" in capsys.readouterr().out

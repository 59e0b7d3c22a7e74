"""The pages about PyTorch print what they show."""

import contextlib
import io
import re
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

pytestmark = pytest.mark.full

mpl.use("Agg")
DOCS = Path(__file__).parents[3] / "docs"
NUMBER = r"\d+\.\d+"


@pytest.mark.parametrize(("page", "blocks"), [("pytorch.md", 8), ("tutorials/pytorch.md", 4)])
def test_the_page_prints_what_it_shows(page, blocks, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pairs = re.findall(
        r"^```python\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", (DOCS / page).read_text(), flags=re.M | re.S
    )
    assert len(pairs) == blocks
    space = {}
    for code, shown in pairs:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, page, "exec"), space)
        found, shown = printed.getvalue(), shown
        assert re.sub(NUMBER, "#", found) == re.sub(NUMBER, "#", shown)
        found, shown = ([float(number) for number in re.findall(NUMBER, text)] for text in (found, shown))
        np.testing.assert_allclose(found, shown, rtol=0.02, atol=0.02)
    mpl.pyplot.close("all")

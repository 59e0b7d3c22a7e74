"""The page about PyTorch prints what it shows."""

import contextlib
import io
import re
from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
PAGE = Path(__file__).parents[2] / "docs" / "pytorch.md"
NUMBER = r"\d+\.\d+"


def test_the_page_prints_what_it_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pairs = re.findall(
        r"^```python\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", PAGE.read_text(), flags=re.M | re.S
    )
    assert len(pairs) == 6
    space = {}
    for code, shown in pairs:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "pytorch.md", "exec"), space)
        found, shown = printed.getvalue(), shown
        assert re.sub(NUMBER, "#", found) == re.sub(NUMBER, "#", shown)
        found, shown = ([float(number) for number in re.findall(NUMBER, text)] for text in (found, shown))
        np.testing.assert_allclose(found, shown, rtol=0.02, atol=0.02)
    mpl.pyplot.close("all")

"""The examples for tracking tools run where these tools are installed."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "integrations.md"
TOOLS = ("mlflow", "wandb", "evidently")


@pytest.mark.filterwarnings("default")
def test_the_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    space, ran = {"__name__": "page"}, 0
    for code in re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), flags=re.M | re.S):
        needed = [tool for tool in TOOLS if re.search(rf"^(import|from) {tool}\b", code, flags=re.M)]
        if all(find_spec(tool) for tool in needed):
            exec(compile(code, PAGE.name, "exec"), space)
            ran += 1
    assert ran >= 2
    assert set(space["metrics"]) == {"ece", "ece_low", "ece_high", "ece_p_value"}
    assert (tmp_path / "metrics.json").stat().st_size > 50

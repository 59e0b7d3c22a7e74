"""How many source files a call visits: long paths make code hard to follow."""

from importlib import util
from pathlib import Path

import numpy as np
import pytest

import calibrant
from plainly import needs_loops

PATH = Path(__file__).parents[3] / "benchmarks" / "call_paths.py"


@pytest.fixture(scope="module")
def call_paths():
    spec = util.spec_from_file_location("call_paths", PATH)
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@needs_loops
@pytest.mark.no_cover
@pytest.mark.parametrize(("function", "most"), [("ece", 12), ("estimate", 18)])
def test_a_call_visits_few_files(call_paths, function, most):
    rng = np.random.default_rng(0)
    score = rng.random(1000)
    outcome = (rng.random(1000) < score**2).astype(int)
    files, _ = call_paths.visited(lambda: getattr(calibrant, function)(outcome, score))
    assert "tasks/task.py" in files
    assert len(files) <= most, sorted(files)

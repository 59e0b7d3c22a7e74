"""Calls on the pages for users of other libraries work, and names that they mention exist."""

import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import calibrant
import calibrant.sklearn

pytestmark = pytest.mark.full

FOLDER = Path(__file__).parents[3] / "docs" / "coming-from"
PAGES = sorted(FOLDER.glob("*.md"))


@pytest.fixture(scope="module")
def space():
    rng = np.random.default_rng(0)
    matrix = rng.dirichlet(np.ones(3), 60)
    score = rng.random(60)
    outcome = (rng.random(60) < score).astype(int)
    from sklearn.frozen import FrozenEstimator
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression()
    names = {"calibrant": calibrant, "FrozenEstimator": FrozenEstimator, "model": model, "P": matrix}
    return names | {"p": score, "y": outcome, "labels": rng.integers(0, 3, 60)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_calls_work(page, space):
    calls = re.findall(r"`(calibrant\.[^`]*\)[^`]*)`", page.read_text(encoding="utf-8"))
    for call in calls:
        matrix = re.search(r"\bP\b", call)
        names = space | {"y": space["labels"]} if matrix else space
        assert eval(call, dict(names)) is not None, call


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_names_exist(page):
    for name in re.findall(r"`(calibrant\.[\w.]+)", page.read_text(encoding="utf-8")):
        if name.startswith("calibrant.torch"):  # importing it needs PyTorch
            assert find_spec("calibrant.torch")
            continue
        value = calibrant
        for part in name.split(".")[1:]:
            value = getattr(value, part)

"""A smoke version of benchmarks/pipelines.py."""

import sys
from importlib import util
from pathlib import Path

import numpy as np
import pytest

import calibrant
from calibrant.experiment.distributions import rng_of

FILE = Path(__file__).parents[3] / "benchmarks" / "pipelines.py"


@pytest.fixture(scope="module")
def pipelines():
    spec = util.spec_from_file_location("study_pipelines", FILE)
    module = util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_a_cell_has_the_figures_of_its_samples(pipelines):
    cell = pipelines.Cell("levels-16", 200, 4)
    found = pipelines.with_ratio(pipelines.one_cell(cell))
    source, rng = pipelines.population("levels-16"), rng_of("pipelines", "levels-16", 200)
    samples = [source.draw(rng, 200) for _ in range(4)]
    values = [calibrant.ece(y, score, labels=(0, 1)) for score, y in samples]
    assert found["value"] == pytest.approx(np.mean(values))
    assert found["bias"] == pytest.approx(np.mean(values) - source.truth)
    assert found["coverage"] + found["misses_below"] + found["misses_above"] == pytest.approx(1)
    error = {
        name: np.mean([abs(calibrant.ece(y, s, estimator=name) - source.truth) for s, y in samples])
        for name in pipelines.REFERENCES
    }
    assert found["best"] == min(error, key=error.get)
    assert found["ratio"] == pytest.approx(found["mae"] / min(error.values()))

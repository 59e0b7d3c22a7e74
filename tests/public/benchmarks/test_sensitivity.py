"""What benchmarks/sensitivity.py measures and writes."""

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.full

FOLDER = Path(__file__).parents[3] / "benchmarks"
sys.path.append(str(FOLDER))
sensitivity, sensitivity_measures, sensitivity_page = map(
    import_module, ("sensitivity", "sensitivity_measures", "sensitivity_page")
)
sys.path.remove(str(FOLDER))


def test_the_page_is_made_of_the_results():
    assert sensitivity.PAGE.read_text() == sensitivity_page.page(sensitivity.read(sensitivity.KEPT))


@pytest.mark.parametrize(
    ("value", "factor", "expected"),
    [
        (0.4, 0.75, 0.3), (0.9, 1.25, 0.95), (3.0, 1.25, 3.75), (0.0, 1.25, 0.0),
        (8, 1.25, 10), (2, 0.75, 1), (1, 1.25, 2), (1, 0.75, 1), (0, 1.25, 0), (-4, 1.25, -5),
        (True, 1.25, True), ("text", 0.75, "text"), (None, 0.75, None),
        ((4.0, (8, "a")), 0.75, (3.0, (6, "a"))), ({"a": 4.0, "b": "c"}, 0.25, {"a": 1.0, "b": "c"}),
    ],
)  # fmt: skip
def test_values_are_scaled_by_kind(value, factor, expected):
    found = sensitivity.scaled(value, factor)
    assert found == (pytest.approx(expected) if isinstance(value, float) else expected)
    assert type(found) is type(value)


def test_effects_are_paired_and_of_equal_weight_for_cells():
    before = {"a": [{"MAE": np.array([1.0, 3.0]), "coverage": np.array([True, True])},
                    {"MAE": np.array([10.0, 10.0]), "coverage": np.array([True, False])}]}  # fmt: skip
    after = {"a": [{"MAE": np.array([1.2, 3.4]), "coverage": np.array([True, False])},
                   {"MAE": np.array([10.0, 10.0]), "coverage": np.array([True, False])}]}  # fmt: skip
    found = sensitivity.effects(before, after)
    # The mean of the first cell is 2, and its relative differences are .1 and .2.
    error = np.std([0.1, 0.2], ddof=1) / np.sqrt(2) / 2
    assert found["MAE"] == pytest.approx(
        {"change": 0.075, "error": error, "z": 0.075 / error, "differ": 2}, rel=5e-3
    )
    assert found["coverage"] == pytest.approx(
        {"change": -0.25, "error": 0.25, "z": -1, "default": 0.75, "changed": 0.5, "differ": 1}
    )


@pytest.mark.full
@pytest.mark.parametrize("name", list(sensitivity_measures.BATTERIES))
def test_every_measure_runs(name):
    for found in sensitivity_measures.figures((name,), 0)[name]:
        for values in found.values():
            assert values.shape == (2,)
            assert np.isfinite(values.astype(float)).all()

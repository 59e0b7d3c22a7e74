"""Tables of estimates: the cells of a loop, the macro average of a bootstrap, and how they are written."""

import importlib
from dataclasses import replace

import numpy as np
import pytest

import calibrant
from calibrant.inference import table as tables
from calibrant.inference.table import macro_average
from calibrant.inputs import printed


@pytest.fixture(scope="module")
def rows():
    """Two models and three benchmarks, in no order."""
    rng = np.random.default_rng(1)
    n = 900
    score = rng.random(n)
    model, benchmark = rng.choice(["a", "b"], n), rng.integers(0, 3, n)
    y = (rng.random(n) < np.where(model == "a", score, score**2)).astype(int)
    return y, score, {"model": model, "benchmark": benchmark}


@pytest.fixture(scope="module")
def result(rows):
    return calibrant.estimate_by(*rows)


def with_macro(**changes):
    estimate = calibrant.estimate([0, 1] * 50, np.full(100, 0.5))
    null = replace(estimate.null, mean=changes.pop("expected", 0.0))
    return replace(estimate, null=null, over=changes["value"], under=0.0, **changes)


def test_margins_add_up_with_the_correlation_of_cells():
    a, b = with_macro(value=0.3, low=0.2, high=0.4), with_macro(value=0.4, low=0.34, high=0.46)
    none = np.empty(0)
    independent = macro_average([a, b], [(none, none)] * 2)
    assert independent.high - 0.35 == pytest.approx(np.hypot(0.1, 0.06) / 2)
    assert 0.35 - independent.low == pytest.approx(np.hypot(0.1, 0.06) / 2)
    rho, clusters = 0.5, np.arange(2)
    angle = np.arccos(rho)
    directions = [(clusters, np.array([1.0, 0.0])), (clusters, np.array([np.cos(angle), np.sin(angle)]))]
    linked = macro_average([a, b], directions)
    assert linked.high - 0.35 == pytest.approx(np.sqrt(0.1**2 + 0.06**2 + 2 * rho * 0.1 * 0.06) / 2)
    halved = macro_average([a, b], directions, ratio=0.5)
    assert halved.high - halved.low == pytest.approx((linked.high - linked.low) / 2)


def test_the_bias_of_small_errors_does_not_average_out():
    none = np.empty(0)
    cells = [with_macro(value=0.02, low=0.0, high=0.05, expected=0.02)] * 400
    found = macro_average(cells, [(none, none)] * 400)
    assert found.low == 0
    assert found.value == pytest.approx(0.02)


@pytest.mark.parametrize("library", ["polars", "pandas", None])
def test_a_table_is_a_data_frame(result, monkeypatch, library):
    known = importlib.import_module

    def import_module(name):
        if name != library:
            raise ModuleNotFoundError(name)
        return known(name)

    monkeypatch.setattr(printed, "import_module", import_module)
    if library is None:
        with pytest.raises(ImportError, match=r"pip install 'calibrant\[engines\]'"):
            result.to_frame()
        return
    frame = result.to_frame()
    assert type(frame).__module__.startswith(library)
    assert list(frame.columns) == ["model", "benchmark", *tables.NUMBERS]
    assert list(frame["value"]) == [each.value for each in result.estimates]

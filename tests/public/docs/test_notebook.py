"""The notebook: its script runs, what the text says of the numbers holds, and it was made from the script."""

import importlib.util
import json
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")
import matplotlib.pyplot as plt

pytestmark = [pytest.mark.full, pytest.mark.no_cover]

pytest.importorskip(
    "sklearn.frozen", reason="the notebook recalibrates a model as scikit-learn 1.6 and later do"
)
HERE = Path(__file__).parents[3] / "docs" / "notebooks"


def builder():
    found = importlib.util.spec_from_file_location("build", HERE / "build.py")
    made = importlib.util.module_from_spec(found)
    found.loader.exec_module(made)
    return made


@pytest.fixture(scope="module")
def space():
    """What is there after the last cell."""
    script, names = HERE / "from_fit_to_decision.py", {"__name__": "notebook"}
    before = mpl.rcParams.copy()
    plt.switch_backend("Agg")
    try:
        with mpl.rc_context():
            exec(compile(script.read_text(encoding="utf-8"), str(script), "exec"), names)
    finally:
        mpl.rcParams.update(before)
        plt.close("all")
    return names


def test_the_forest_is_more_accurate_and_worse_calibrated(space):
    odd, scores = space["y_test"] == "odd", space["scores"]
    right = {name: np.mean((score > 0.5) == odd) for name, score in scores.items()}
    assert right["forest"] > right["logistic"] + 0.02
    assert space["result"].p_value < 0.01
    assert space["comparison"].differences["forest"].low > 0


def test_the_forest_is_underconfident(space):
    curve, result = space["curve"], space["result"]
    assert curve.at(0.83).low > 0.83
    assert curve.at(0.17).high < 0.17
    assert min(result.over, result.under) > 0.3 * result.value


def test_recalibration_helps(space):
    assert space["after_recalibration"].differences["recalibrated"].high < 0
    assert space["recalibrated"].predict_proba(space["X_test"])[:, 1] == pytest.approx(
        space["scores"]["recalibrated"]
    )
    curve = space["after"].curve
    inside = (curve.low <= curve.score) & (curve.score <= curve.high)
    assert np.mean(inside[np.isfinite(curve.low)]) > 0.85
    assert space["before"].curve.error > 2 * curve.error
    odd = space["y_test"] == "odd"
    loss = {name: -np.mean(np.log(np.where(odd, s, 1 - s))) for name, s in space["scores"].items()}
    assert loss["recalibrated"] < min(loss["forest"], loss["logistic"])


def test_the_threshold_from_the_curve_costs_less(space):
    assert space["certainly_below"] < space["threshold"] <= space["certainly_above"] + 1e-9
    assert space["saved"].mean() > 2 * space["error"]
    assert np.mean(space["costs"]["recalibrated, threshold 1/11"]) < np.mean(space["unadjusted"])


def test_the_gate_tells_them_apart(space):
    assert space["done"].returncode == 0, space["done"].stderr
    assert space["codes"] == {"forest": 1, "recalibrated": 0}


def test_the_notebook_was_made_from_the_script():
    build = builder()
    book = json.loads(build.NOTEBOOK.read_text(encoding="utf-8"))
    expected = list(build.cells(build.SCRIPT.read_text(encoding="utf-8")))
    assert [(cell["cell_type"], "".join(cell["source"])) for cell in book["cells"]] == expected, (
        "run python docs/notebooks/build.py"
    )
    assert build.NOTEBOOK.stat().st_size < build.LARGEST


def test_the_notebook_was_run_to_its_end():
    book = json.loads(builder().NOTEBOOK.read_text(encoding="utf-8"))
    code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell["outputs"]]
    assert {output["output_type"] for output in outputs} == {"stream", "display_data"}
    assert {output["name"] for output in outputs if output["output_type"] == "stream"} == {"stdout"}
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 2
    assert str(Path.home()) not in json.dumps(book)
    assert sys.prefix not in json.dumps(book)

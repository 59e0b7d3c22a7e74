"""Our numbers against values by slow references, by the authors' code and by released peers.

`golden/golden.json` says where each value came from.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import calibrant
from calibrant import Binned
from calibrant.estimators import parse
from weighing import weighing

pytestmark = pytest.mark.no_cover

GOLDEN = Path(__file__).parents[2] / "golden"
SETS = json.loads((GOLDEN / "golden.json").read_text())["datasets"]
KEYS = {"l": "ece", "a": "ece_a", "c": "ece_c", "ac": "ece_ac"}
BINS = ("10", "30", "sqrt")
NOTIONS = ("confidence", "classwise")


def load(name):
    with np.load(GOLDEN / f"{name}.npz") as data:
        return data["labels"], data["scores"]


@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("name", SETS)
def test_published_mapping_equals_the_printed_weights(name, notion):
    labels, scores = load(name)
    for bins in BINS:
        for short in ("c", "ac"):
            expected = SETS[name]["reference"][notion][bins]["published_weights"][KEYS[short]]
            plain = parse(f"{short}:{bins}")
            estimator = Binned(plain.binning, plain.n_bins, "published")
            value = calibrant.ece(labels, scores, notion=notion, estimator=estimator)
            assert value == pytest.approx(expected, abs=1e-9), (short, bins)


EDGES = json.loads((GOLDEN / "edges.json").read_text())


@pytest.mark.parametrize("name", EDGES["cases"])
def test_coinciding_edges_and_centres_equal_the_slow_loop(name):
    case = EDGES["cases"][name]
    weight = None if case["weights"] is None else np.array(case["weights"], dtype=case["weights_dtype"])
    for key, expected in case["values"].items():
        short, bins, *mapping = key.split(":")
        plain = parse(f"{short}:{bins}")
        estimator = Binned(plain.binning, plain.n_bins, *(mapping or [plain.mapping]))
        light = case.get("delicate", {}).get("light bin", [])
        for norm, value in zip(EDGES["norms"], expected, strict=True):
            if norm == "max" and key in light:
                continue  # a bin with less than 1e-12 of the mass holds rounding, and we leave it out
            ours = calibrant.ece(
                case["outcomes"], case["scores"], estimator=estimator, norm=norm, **weighing(weight)
            )
            assert ours == pytest.approx(value, abs=1e-9), (key, norm)

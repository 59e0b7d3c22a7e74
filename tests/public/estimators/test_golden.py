"""Our numbers against values by slow references, by the authors' code and by released peers.

`golden/golden.json` says where each value came from.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import calibrant
from calibrant import Density, Sketch

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
def test_binned_equals_the_corrected_reference(name, notion):
    labels, scores = load(name)
    for bins in BINS:
        for short, key in KEYS.items():
            expected = SETS[name]["reference"][notion][bins]["corrected"][key]
            value = calibrant.ece(labels, scores, notion=notion, estimator=f"{short}:{bins}")
            assert value == pytest.approx(expected, abs=1e-9), (short, bins)


@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("name", SETS)
def test_density_equals_the_exact_integral(name, notion):
    labels, scores = load(name)
    for width, expected in SETS[name]["reference"][notion]["kde"].items():
        bandwidth = width if width == "silverman" else float(width)
        for kernel, key in (("triweight", "corrected"), ("gaussian", "gaussian_same_std")):
            value = calibrant.ece(labels, scores, notion=notion, estimator=Density(bandwidth, kernel))
            assert value == pytest.approx(expected[key], abs=1e-5), (width, kernel)


@pytest.mark.parametrize("name", SETS)
def test_silverman_bandwidths_equal_the_reference(name):
    labels, scores = load(name)
    expected = SETS[name]["reference"]
    curve = calibrant.reliability_curve(labels, scores, n_boot=0, method="density")
    assert curve.bandwidth == pytest.approx(expected["confidence"]["kde"]["silverman"]["bandwidths"][0])
    curves = calibrant.reliability_curve(labels, scores, notion="classwise", n_boot=0, method="density")
    widths = [one.bandwidth for one in curves.values()]
    assert widths == pytest.approx(expected["classwise"]["kde"]["silverman"]["bandwidths"])


@pytest.mark.parametrize("name", [name for name in SETS if "reliability_curve" in SETS[name]["reference"]])
def test_reliability_curve_equals_the_reference(name):
    labels, scores = load(name)
    for key, expected in SETS[name]["reference"]["reliability_curve"].items():
        kernel, width = key.split("_")
        curve = calibrant.reliability_curve(
            labels, scores[:, 1], kernel=kernel, bandwidth=float(width), n_boot=0, method="density"
        )
        at = curve.at(expected["s"])
        known = np.array([np.nan if value is None else value for value in expected["reliability"]])
        both = ~np.isnan(known) & (at.n_eff > 0.05)
        assert both.sum() > 20
        np.testing.assert_allclose(at.value[both], known[both], atol=2e-3)
        assert np.isnan(at.value[np.isnan(known)]).all()


def agree(values):
    return np.ptp(values) < 1e-6


@pytest.mark.parametrize("name", SETS)
def test_uniform_bins_equal_the_peers_where_they_agree(name):
    """On scores that meet no bin edge the released peers agree with each other, and we with them.

    On the discrete sets scores k/100 sit on edges, and each peer has a convention of its own: closed
    on the right (netcal, relplot, uncertainty-calibration, calzone) or edges by linspace (torchmetrics,
    scikit-learn), where .3 falls below the third of ten edges.
    """
    labels, scores = load(name)
    met = 0
    peers = ("torchmetrics_f64", "netcal_ECE", "relplot_binnedECE", "sklearn_uniform")
    for notion in NOTIONS:
        for bins in BINS:
            row = SETS[name]["peers"][notion][bins]
            values = [row[peer] for peer in peers if isinstance(row.get(peer), float)]
            if len(values) >= 3 and agree(values):
                met += 1
                ours = calibrant.ece(labels, scores, notion=notion, estimator=f"l:{bins}")
                assert ours == pytest.approx(np.median(values), abs=1e-6)
    assert met or "discrete" in name


def test_confidence_of_a_two_column_matrix_is_not_the_class_of_its_second_column():
    labels, scores = load("ds00_n30_c2_smooth")
    assert calibrant.ece(labels, scores) != calibrant.ece(labels, scores[:, 1])
    assert calibrant.ece(labels, scores, notion="binary") == calibrant.ece(labels, scores[:, 1])
    assert Sketch("binary").update(labels, scores[:, 1]).n == 30

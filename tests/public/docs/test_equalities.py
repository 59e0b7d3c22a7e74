"""Every call of calibrant on the page of equalities gives the number of the peer beside it.

What a peer returns comes from three places: golden numbers that released versions gave (tests/golden), loops
written from the definitions, and the peer itself where it is installed. scikit-learn always is; the others
are no requirement of the tests, so nothing is skipped without them.
"""

import json
import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, log_loss

import calibrant
from oracles import hendrycks

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "equalities.md").read_text(encoding="utf-8")
GOLDEN = ROOT / "tests" / "golden"
SETS = json.loads((GOLDEN / "golden.json").read_text())["datasets"]
CALLS = re.findall(r"`((?:\w+\()?calibrant\.\w+\([^`]*)`", PAGE)
HELPERS = {}
exec(re.findall(r"^```python\n(.*?)^```$", PAGE, flags=re.M | re.S)[0], HELPERS)

UNIFORM = 'calibrant.ece(y, {}, estimator="uniform:10")'
RIGHT = 'calibrant.ece(y, np.nextafter({}, 0), estimator="uniform:10")'
ADAPTIVE = 'calibrant.ece(y, P, estimator="adaptive:10")'
CLASSWISE = 'calibrant.ece(y, P, notion="classwise", estimator="uniform:10")'
RIGHT_CLASSWISE = 'calibrant.ece(y, np.nextafter(P, 0), notion="classwise", estimator="uniform:10")'
AVERAGE = 'mean_gap(calibrant.reliability_diagram(y, P, binning="uniform:10"))'
CURVE = 'points(calibrant.reliability_diagram(y, np.nextafter(p, 0), binning="uniform:10"))'
QUANTILES = 'points(calibrant.reliability_diagram(y, p, binning="adaptive:10"))'
BRIER, LOG = (f"calibrant.assess(y, p, rng=0).scores[{k}].value" for k in (0, 1))
OF_ALL = 'calibrant.ece(y, P, notion="classwise", estimator="debiased", norm="l2")'
DEBIASED = 'calibrant.ece(y, P, estimator="debiased:15", norm="l2")'
MAPIE = 'calibrant.ece(y, np.nextafter(p, 0), estimator="uniform:49")'
KS = 'calibrant.ece(y, p, estimator="ks") / (np.sqrt(np.sum(p * (1 - p))) / len(p))'
SMOOTH = 'calibrant.ece(y, p, estimator="smooth")'
TOP_LABEL = (
    'mean_of_classes(calibrant.estimate(y, np.nextafter(P, 0), notion="top-label", estimator="uniform:49"))'
)
WALL = 'calibrant.ece([1, 1, 1, 0], [0, 0, .5, .5], estimator="smooth")'


def answer(call, y, score):
    """What a call on the page gives."""
    assert call in CALLS, "the page has no such call"
    space = {**HELPERS, "y": y, "p" if score.ndim == 1 else "P": score}
    return eval(call, space)


def binary(n=300, decimals=None):
    rng = np.random.default_rng(0)
    p = rng.beta(0.8, 0.8, n)
    p = p if decimals is None else np.round(p, decimals)
    return (rng.random(n) < p**1.5).astype(int), p


def matrix(n=300):
    rng = np.random.default_rng(1)
    score = rng.dirichlet(np.ones(3), n)
    return (rng.random((n, 1)) > np.cumsum(score, axis=1)).sum(axis=1).clip(0, 2), score


def golden(name):
    with np.load(GOLDEN / f"{name}.npz") as data:
        return data["labels"], data["scores"]


def gaps(p, y, bins=10, *, right=False):
    """Mass and gap of each bin that holds rows, from the definition; edges are exact in this many digits."""
    edges = np.arange(1, bins) / bins
    held = {}
    for score, outcome in zip(p.tolist(), y.tolist(), strict=True):
        at = sum(score > edge if right else score >= edge for edge in edges.tolist())
        held.setdefault(at, []).append(outcome - score)
    return np.array([(len(rest) / len(p), abs(sum(rest) / len(rest))) for rest in held.values()]).T


def l1(p, y, bins=10, *, right=False):
    mass, gap = gaps(p, y, bins, right=right)
    return mass @ gap


def confidence(y, score):
    return score.max(axis=1), (score.argmax(axis=1) == y).astype(int)


def test_every_call_on_the_page_is_in_a_test():
    text = Path(__file__).read_text(encoding="utf-8")
    constants = {value for value in globals().values() if isinstance(value, str)}
    formed = {form.format(what) for form in (UNIFORM, RIGHT) for what in "pP"}
    formed |= set(re.findall(r"'(calibrant\.[^']*)'", text))
    assert len(CALLS) > 20
    assert set(CALLS) <= constants | formed


@pytest.mark.parametrize("decimals", [None, 1, 2])
def test_uniform_bins_of_one_score(decimals):
    y, p = binary(decimals=decimals)
    mass, gap = gaps(p, y)
    assert answer(UNIFORM.format("p"), y, p) == pytest.approx(mass @ gap, abs=1e-12)
    of_squares = answer('calibrant.ece(y, p, estimator="uniform:10", norm="l2")', y, p)
    assert of_squares == pytest.approx(np.sqrt(mass @ gap**2), abs=1e-12)
    assert answer('calibrant.mce(y, p, estimator="uniform:10")', y, p) == pytest.approx(gap.max(), abs=1e-12)


def test_uniform_bins_of_a_matrix():
    y, score = matrix()
    mass, gap = gaps(*confidence(y, score))
    for call in (UNIFORM.format("P"), 'calibrant.ece(y, P, notion="confidence", estimator="uniform:10")'):
        assert answer(call, y, score) == pytest.approx(mass @ gap, abs=1e-12)
    assert answer('calibrant.mce(y, P, estimator="uniform:10")', y, score) == pytest.approx(gap.max())
    assert answer(AVERAGE, y, score) == pytest.approx(gap.mean(), abs=1e-12)
    each = [l1(score[:, k], (y == k).astype(int)) for k in range(3)]
    assert answer(CLASSWISE, y, score) == pytest.approx(np.mean(each), abs=1e-12)


def test_the_top_label_error_of_mapie():
    y, score = matrix()
    largest, best = score.max(axis=1), score.argmax(axis=1)
    each = [
        l1(largest[best == k], (y[best == k] == k).astype(int), 49, right=True)
        for k in np.unique(best).tolist()
    ]
    assert answer(TOP_LABEL, y, score) == pytest.approx(np.mean(each), abs=1e-12)


def test_one_score_as_confidence():
    y, p = binary()
    expected = l1(np.maximum(p, 1 - p), ((p > 0.5) == y).astype(int))
    found = answer('calibrant.ece(y, p, notion="confidence", estimator="uniform:10")', y, p)
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("decimals", [None, 1, 2])
def test_bins_closed_on_the_right(decimals):
    y, p = binary(decimals=decimals)
    # 49 bins have edges that meet no decimal.
    assert answer(MAPIE, y, p) == pytest.approx(l1(p, y, 49, right=True), abs=1e-12)
    found = calibrant.ece(y, np.nextafter(p, 0), estimator="uniform:10")
    assert found == pytest.approx(l1(p, y, right=True), abs=1e-12)
    if decimals == 2:  # what the page is about
        assert abs(found - calibrant.ece(y, p, estimator="uniform:10")) > 1e-4


def test_the_cumulated_residuals_of_mapie():
    y, p = binary()
    order = np.argsort(p)
    walk = np.cumsum((y - p)[order]) / len(p)
    sigma = np.sqrt(np.sum(p * (1 - p))) / len(p)
    assert answer(KS, y, p) == pytest.approx(np.abs(walk).max() / sigma, rel=1e-12)


def test_the_error_that_language_models_are_ranked_by():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.5, 1, 1000)
    y = (rng.random(1000) < p**2).astype(int)
    call = 'calibrant.ece(y, p, notion="correctness", estimator="adaptive:10", norm="l2")'
    assert answer(call, y, p) == pytest.approx(hendrycks.rms(y, p, 100, last=True), abs=1e-12)
    assert "`calibrant.published.hendrycks_rms(y, p)`" in PAGE
    assert calibrant.published.hendrycks_rms(y, p) == pytest.approx(hendrycks.rms(y, p, 100), abs=1e-12)


def test_rows_at_a_wall_count_whole():
    assert eval(WALL, dict(HELPERS)) == pytest.approx(0.5, abs=1e-12)
    assert WALL in CALLS


# Calls, the golden number of a released peer, and whether ties or edges are met without harm.
PEERS = [
    (UNIFORM.format("P"), "torchmetrics_f64", 1e-6, False),
    (UNIFORM.format("P"), "netcal_ECE", 1e-12, False),
    (UNIFORM.format("P"), "relplot_binnedECE", 1e-12, False),
    (AVERAGE, "netcal_ACE", 1e-12, False),
    (RIGHT.format("P"), "uncertainty_calibration_get_ece", 1e-12, True),
    (RIGHT.format("P"), "sklearn_uniform", 1e-12, True),
    (RIGHT.format("P"), "calzone_ece", 1e-12, True),
    (ADAPTIVE, "uncertainty_calibration_get_ece_em", 1e-12, False),
    (ADAPTIVE, "sklearn_quantile", 1e-12, False),
]


@pytest.mark.parametrize(("call", "peer", "tolerance", "always"), PEERS)
def test_golden_numbers_of_released_peers_of_confidence(call, peer, tolerance, always):
    met = 0
    for name, kept in SETS.items():
        expected = kept["peers"]["confidence"]["10"].get(peer)
        if not isinstance(expected, float) or ("discrete" in name and not always):
            continue
        met += 1
        assert answer(call, *golden(name)) == pytest.approx(expected, abs=tolerance), name
    assert met >= (9 if always else 2)


def test_golden_numbers_of_released_peers_over_classes():
    for name, kept in SETS.items():
        row = kept["peers"]["classwise"]["10"]
        expected = row["uncertainty_calibration_get_ece"]
        assert answer(RIGHT_CLASSWISE, *golden(name)) == pytest.approx(expected, abs=1e-12), name
        if "discrete" not in name:
            assert answer(CLASSWISE, *golden(name)) == pytest.approx(row["netcal_ECE"], abs=1e-12), name
            default = kept["peers"]["classwise"]["uncertainty_calibration_get_calibration_error_default"]
            assert answer(OF_ALL, *golden(name)) == pytest.approx(default, abs=1e-12), name
            default = kept["peers"]["confidence"]["uncertainty_calibration_get_calibration_error_default"]
            assert answer(DEBIASED, *golden(name)) == pytest.approx(default, abs=1e-12), name


def test_the_smooth_error_is_near_that_of_relplot():
    for name, kept in SETS.items():
        if "smooth" in name:
            score, outcome = confidence(*golden(name))[0], confidence(*golden(name))[1]
            expected = kept["peers"]["confidence"]["relplot_smECE"]
            assert answer(SMOOTH, outcome, score) == pytest.approx(expected, abs=1 / 1024), name


# --- peers themselves -----------------------------------------------------------------------------------


@pytest.mark.parametrize("decimals", [None, 1, 2])
def test_points_of_scikit_learn(decimals):
    y, p = binary(decimals=decimals)
    frequency, score = calibration_curve(y, p, n_bins=10)
    found = answer(CURVE, y, p)
    np.testing.assert_allclose(found[0], frequency, atol=1e-12)
    np.testing.assert_allclose(found[1], score, atol=1e-12)


def test_points_of_scikit_learn_by_quantiles():
    y, p = binary()
    for found, expected in zip(
        answer(QUANTILES, y, p), calibration_curve(y, p, n_bins=10, strategy="quantile"), strict=True
    ):
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_proper_scores_of_scikit_learn():
    y, p = binary()
    assert answer(BRIER, y, p) == pytest.approx(brier_score_loss(y, p), abs=1e-12)
    assert answer(LOG, y, p) == pytest.approx(log_loss(y, p), abs=1e-9)


def by_torchmetrics():
    import torch
    from torchmetrics.functional.classification import binary_calibration_error

    y, p = binary()
    for norm in ("l1", "l2", "max"):
        expected = float(binary_calibration_error(torch.tensor(p), torch.tensor(y), n_bins=10, norm=norm))
        yield calibrant.ece(y, p, estimator="uniform:10", norm=norm), expected, 1e-6


def by_netcal():
    from netcal.metrics import ACE, ECE, MCE

    y, score = matrix()
    yield answer(UNIFORM.format("P"), y, score), ECE(10).measure(score, y), 1e-9
    yield answer('calibrant.mce(y, P, estimator="uniform:10")', y, score), MCE(10).measure(score, y), 1e-9
    yield answer(AVERAGE, y, score), ACE(10).measure(score, y), 1e-9


def by_calibration():
    import calibration

    y, score = matrix()
    yield answer(RIGHT.format("P"), y, score), calibration.get_ece(score, y, num_bins=10), 1e-9
    yield answer(ADAPTIVE, y, score), calibration.get_ece_em(score, y, num_bins=10), 1e-9
    yield answer(OF_ALL, y, score), calibration.get_calibration_error(score, y), 1e-9


def by_mapie():
    from mapie.metrics.calibration import (
        expected_calibration_error,
        kolmogorov_smirnov_statistic,
        top_label_ece,
    )

    y, p = binary()
    yield answer(MAPIE, y, p), expected_calibration_error(y, p, num_bins=50), 1e-9
    many, score = matrix()
    yield answer(TOP_LABEL, many, score), top_label_ece(many, score, num_bins=50), 1e-9
    yield answer(KS, y, p), kolmogorov_smirnov_statistic(y, p), 1e-6  # it adds noise against ties


def by_relplot():
    import relplot

    y, p = binary()
    inner = (p > 0.2) & (p < 0.8)
    yield answer(SMOOTH, y[inner], p[inner]), relplot.smECE(p[inner], y[inner]), 2e-3


INSTALLED = {
    name: pairs
    for name, pairs in (
        ("torchmetrics", by_torchmetrics),
        ("netcal", by_netcal),
        ("calibration", by_calibration),
        ("mapie", by_mapie),
        ("relplot", by_relplot),
    )
    if find_spec(name)
}


def test_peers_that_are_installed_give_the_same_numbers():
    for name, pairs in INSTALLED.items():
        for found, expected, tolerance in pairs():
            assert found == pytest.approx(expected, abs=tolerance), name

"""Beta kernels by moments of cells against Chen's formula row by row."""

import numpy as np
import pytest

import calibrant
from calibrant import DensityBeta, Sketch
from calibrant.estimators.density_beta import BETA_KERNELS, NARROWEST, SHARE
from calibrant.estimators.smoothing import scott, silverman
from calibrant.score_data import COARSE, FINE, Cells, Sample
from calibrant.score_data.beta import shapes, sums
from calibrant.score_data.nodes import ROWS, Nodes
from oracles import density_beta as oracle
from weighing import weighted_sample

KINDS = tuple(BETA_KERNELS)
# Uniform, crowded at both walls, at one, far beyond what floats tell apart near one, and smooth.
SHAPES = ((1, 1), (0.5, 0.5), (1.1, 0.1), (0.05, 0.3), (8, 3))
PLACES = np.concatenate(
    [[0, 1e-9, 1e-6, 1e-4, 1e-3], np.linspace(0.01, 0.99, 29), [0.999, 1 - 1e-4, 1 - 1e-6, 1]]
)


def sample(n, seed=0, weight=None, support=(0.0, 1.0), a=0.6, b=0.7):
    rng = np.random.default_rng(seed)
    score = support[0] + (support[1] - support[0]) * rng.beta(a, b, n)
    return weighted_sample(score, rng.random(n) < score**1.5, weight, support)


def weights(kind, n):
    rng = np.random.default_rng(1)
    return {"none": None, "counts": rng.integers(1, 4, n), "importance": rng.random(n) + 0.2}[kind]


# --- sums -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [1, 2])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("bandwidth", [0.001, 0.01, 0.25])
def test_sums_over_cells_equal_direct_evaluation(kind, shape, bandwidth):
    rng = np.random.default_rng(0)
    score = rng.beta(*shape, 2000)
    outcome = rng.random(2000) < score
    nodes = Nodes.of_cells(score, outcome, np.ones(2000), (0.0, 1.0))
    found = sums(nodes.alone(), PLACES, np.array([bandwidth]), kind)[0]
    for column, weight in zip(found.T, (np.ones(2000), outcome), strict=True):
        direct = oracle.sums(score, weight, bandwidth=bandwidth, kind=kind, at=PLACES)
        seen = direct > 1e-6 * direct.max()
        np.testing.assert_allclose(column[seen], direct[seen], rtol=1e-6)


@pytest.mark.parametrize("kind", [1, 2])
def test_narrower_kernels_have_narrower_cells(kind):
    rows = sample(ROWS + 1)
    fit = DensityBeta(3e-5, KINDS[kind - 1]).fit(rows)
    at = slice(1, -1, 97)
    direct = oracle.sums(rows.score, np.ones(ROWS + 1), bandwidth=3e-5, kind=kind, at=fit.score[at])
    ratio = fit.density[at] / direct
    seen = direct > 1e-6 * direct.max()
    np.testing.assert_allclose(ratio[seen], ratio[seen][0], rtol=1e-6)


@pytest.mark.parametrize("kernel", KINDS)
def test_rows_and_their_cells_have_the_same_error(kernel, monkeypatch):
    rows = sample(600)
    direct = DensityBeta("scott", kernel).fit(rows)
    monkeypatch.setattr("calibrant.score_data.nodes.ROWS", 0)
    summed = DensityBeta("scott", kernel).fit(rows)
    for norm in ("l1", "l2", "max"):
        assert summed.error(norm) == pytest.approx(float(direct.error(norm)), abs=1e-9)


@pytest.mark.parametrize("bandwidth", [1e-4, 0.01, 0.25, 5.0])
def test_the_second_kind_has_its_mean_where_it_is_asked_for_and_is_finite_on_the_walls(bandwidth):
    at = np.linspace(0, 1, 1001)
    a, b = shapes(at, np.array(bandwidth), 2)
    assert min(a.min(), b.min()) >= 1
    inner = (at >= 2 * bandwidth) & (at <= 1 - 2 * bandwidth)
    np.testing.assert_allclose((a / (a + b))[inner], at[inner], atol=1e-12)
    np.testing.assert_allclose(b, a[::-1], rtol=1e-9)


def test_rounding_of_the_bandwidth_does_not_decide_whether_rows_on_a_wall_count_there():
    bandwidth = np.geomspace(1e-5, 100, 5000)
    below, above = shapes(np.array([[0.0], [1.0]]), bandwidth, 2)
    assert np.all(below[0] == 1)
    assert np.all(above[1] == 1)


# --- errors -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KINDS)
@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("weighing", ["none", "counts", "importance"])
def test_the_error_equals_the_exact_integral(kernel, norm, weighing):
    weight = weights(weighing, 40)
    rows = sample(40, weight=weight)
    expected = oracle.ece(
        rows.score, rows.outcome, bandwidth=0.03, kind=BETA_KERNELS[kernel], weights=weight, norm=norm
    )
    assert DensityBeta(0.03, kernel).fit(rows).error(norm) == pytest.approx(expected, abs=2e-5)


@pytest.mark.parametrize("kernel", KINDS)
@pytest.mark.parametrize("weighing", ["none", "importance"])
def test_each_row_may_have_mass_one(kernel, weighing, monkeypatch):
    weight = weights(weighing, 30)
    rows = sample(30, weight=weight, support=(0.25, 1.0))
    options = {"kind": BETA_KERNELS[kernel], "weights": weight, "support": (0.25, 1)}
    expected = oracle.ece(rows.score, rows.outcome, bandwidth=0.04, each=True, **options)
    estimator = DensityBeta(0.04, kernel, "each")
    fit = estimator.fit(rows)
    assert fit.error() == pytest.approx(expected, abs=2e-5)
    assert abs(expected - oracle.ece(rows.score, rows.outcome, bandwidth=0.04, **options)) > 1e-3
    monkeypatch.setattr("calibrant.score_data.nodes.ROWS", 0)
    monkeypatch.setattr("calibrant.score_data.beta.BANDED", 0)
    summed = estimator.fit(rows)
    assert summed.error() == pytest.approx(float(fit.error()), abs=1e-9)
    np.testing.assert_allclose(summed.nearby[1:-1], fit.nearby[1:-1], rtol=1e-6)


@pytest.mark.parametrize("kernel", KINDS)
def test_rows_near_a_wall_count_where_each_has_mass_one(kernel):
    score = np.concatenate([np.full(900, 1 - 1e-12), np.linspace(0.05, 0.95, 100)])
    outcome = np.concatenate([np.arange(900) % 2 == 0, np.random.default_rng(0).random(100) < score[900:]])
    each, whole = (
        calibrant.ece(outcome, score, estimator=f"density-{kernel}:0.01{m}") for m in (":each", "")
    )
    assert each == pytest.approx(0.45, abs=0.02)
    assert whole < 0.35


@pytest.mark.parametrize("kernel", KINDS)
def test_confidences_are_rescaled_first(kernel):
    rows = sample(40, support=(1 / 3, 1.0))
    kind = BETA_KERNELS[kernel]
    expected = oracle.ece(rows.score, rows.outcome, bandwidth=0.05, kind=kind, support=(1 / 3, 1))
    assert DensityBeta(0.05, kernel).fit(rows).error() == pytest.approx(expected, abs=2e-5)


@pytest.mark.parametrize("kernel", KINDS)
@pytest.mark.parametrize("bandwidth", [1e-5, 0.001, 0.3, 50.0, "silverman", "scott", "isj"])
@pytest.mark.parametrize("support", [(0.0, 1.0), (0.2, 1.0)])
def test_both_densities_share_the_constant_that_makes_the_whole_one(kernel, bandwidth, support):
    rows = sample(200, support=support)
    fit = DensityBeta(bandwidth, kernel).fit(rows)
    assert fit.density @ fit.share == pytest.approx(1, abs=1e-12)
    all_positive = DensityBeta(bandwidth, kernel).fit(Sample(rows.score, np.ones(200, bool), None, support))
    np.testing.assert_allclose(all_positive.positive, all_positive.density, rtol=1e-12)
    np.testing.assert_allclose(all_positive.density, fit.density, rtol=1e-12)


@pytest.mark.parametrize("kernel", KINDS)
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_rows_on_the_walls_count_as_what_they_are(kernel, norm):
    score = np.concatenate([np.ones(60), np.zeros(20), np.linspace(0.05, 0.95, 20)])
    outcome = np.concatenate([np.arange(60) % 3 > 0, np.arange(20) % 4 == 0, np.arange(20) % 2 == 0])
    expected = oracle.ece(score, outcome, bandwidth=0.04, kind=BETA_KERNELS[kernel], norm=norm)
    assert expected > 0.2
    fit = DensityBeta(0.04, kernel).fit(Sample(score, outcome))
    assert fit.error(norm) == pytest.approx(expected, abs=2e-5)
    assert fit.boundary_mass[:, 0] == pytest.approx([0.2, 0.6])


@pytest.mark.parametrize("kernel", KINDS)
@pytest.mark.parametrize(
    ("norm", "expected"), [("l1", 0.3), ("l2", (0.6 / 36 + 0.4 / 4) ** 0.5), ("max", 0.5)]
)
def test_nothing_but_rows_on_the_walls_is_no_trouble(kernel, norm, expected):
    score = np.repeat([0.0, 1.0], [6, 4])
    outcome = np.array([1, 0, 0, 0, 0, 0, 1, 1, 0, 0], dtype=bool)
    found = calibrant.ece(outcome, score, estimator=f"density-{kernel}:0.1", norm=norm)
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
@pytest.mark.parametrize("score", [0.0, 0.37, 1.0])
def test_without_any_spread_the_error_is_the_mean_residual(norm, score):
    expected = abs(0.6 - score)
    for kernel in KINDS:
        found = calibrant.ece([1, 0, 0, 1, 1], [score] * 5, estimator=f"density-{kernel}", norm=norm)
        assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("kernel", KINDS)
@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
def test_a_class_and_its_complement_have_the_same_error(kernel, norm):
    rng = np.random.default_rng(0)
    score = np.rint(rng.beta(0.3, 0.6, 300) * 2**40) / 2**40
    outcome = rng.random(300) < score
    for bandwidth in ("scott", 0.003):
        one, other = (
            float(DensityBeta(bandwidth, kernel).fit(rows).error(norm))
            for rows in (Sample(score, outcome), Sample(1 - score, ~outcome))
        )
        assert one == pytest.approx(other, abs=1e-9)


@pytest.mark.parametrize("kernel", KINDS)
def test_no_problem_depends_on_the_others_in_its_batch(kernel):
    rng = np.random.default_rng(0)
    scores = rng.dirichlet([0.05, 2, 5], 300)
    labels = rng.integers(0, 3, 300)
    for norm in ("l1", "l2", "max"):
        options = {"estimator": f"density-{kernel}", "norm": norm}
        each = [calibrant.ece(labels, scores, notion="binary", pos_label=k, **options) for k in range(3)]
        whole = calibrant.ece(labels, scores, notion="classwise", **options)
        expected = {"l1": np.mean(each), "l2": np.sqrt(np.mean(np.square(each))), "max": max(each)}[norm]
        assert whole == pytest.approx(expected, abs=1e-9)


# --- bandwidths -------------------------------------------------------------------------------------


@pytest.mark.parametrize("support", [(0.0, 1.0), (0.25, 1.0)])
@pytest.mark.parametrize("weighing", ["none", "counts", "importance"])
def test_a_rule_gives_kernels_half_its_variance(support, weighing):
    weight = weights(weighing, 300)
    rows = sample(300, weight=weight, support=support)
    low, high = support
    reach = np.average((rows.score - low) * (high - rows.score), weights=weight)
    for name, rule in (("silverman", silverman), ("scott", scott)):
        expected = SHARE * float(rule(rows)) ** 2 / reach
        assert DensityBeta(name).fit(rows).bandwidth == pytest.approx(expected, rel=1e-9)
        kernels = np.average(expected * (rows.score - low) * (high - rows.score), weights=weight)
        assert kernels == pytest.approx(SHARE * float(rule(rows)) ** 2)


def test_a_bandwidth_below_the_narrowest_is_floored_and_says_so():
    score = 0.5 + 1e-6 * np.random.default_rng(0).random(100)
    fit = DensityBeta().fit(Sample(score, score > 0.5))
    assert fit.floored
    assert fit.bandwidth == NARROWEST
    assert calibrant.reliability_curve(score > 0.5, score, n_boot=0, method="density", kernel="beta").floored


@pytest.mark.parametrize(("layout", "near"), [(FINE, 1e-6), (COARSE, 2e-5)])
def test_coarse_cells_are_worse_by_as_much_as_they_are_wider(layout, near):
    rows = sample(3000)
    for kernel in KINDS:
        found = DensityBeta(0.005, kernel).fit(Cells.of(rows, layout)).error()
        assert found == pytest.approx(float(DensityBeta(0.005, kernel).fit(rows).error()), abs=near)


# --- curves -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KINDS)
@pytest.mark.parametrize("weighing", ["none", "importance"])
def test_the_effective_sample_is_the_squared_sum_of_weights_over_the_sum_of_squares(kernel, weighing):
    weight = weights(weighing, 300)
    rows = sample(300, weight=weight)
    weight = np.ones(300) if weight is None else weight
    fit = DensityBeta(0.02, kernel).fit(rows)
    at, options = fit.score[1:-1:40], {"bandwidth": 0.02, "kind": BETA_KERNELS[kernel]}
    first = oracle.sums(rows.score, weight, at=at, **options)
    second = oracle.sums(rows.score, weight**2, at=at, power=2, **options)
    np.testing.assert_allclose(fit.nearby[1:-1:40], first**2 / second, rtol=1e-6)


@pytest.mark.parametrize("kernel", KINDS)
def test_a_curve_by_beta_kernels_is_as_good_as_another(kernel):
    rng = np.random.default_rng(0)
    score = rng.random(2000)
    label = rng.random(2000) < score**2
    curve = calibrant.reliability_curve(label, score, method="density", kernel=kernel, n_boot=20, rng=0)
    assert curve.kernel == kernel
    assert f"ratio of {kernel} densities, bandwidth 0.0" in str(curve)
    assert curve.error == calibrant.ece(label, score, estimator=f"density-{kernel}")
    inner = (curve.score > 0.05) & (curve.score < 0.95)
    assert np.abs(curve.point - curve.score**2)[inner].max() < 0.08
    assert np.mean((curve.low <= curve.score**2) & (curve.score**2 <= curve.high)) > 0.9
    assert 100 < curve.at(0.5).n_eff < 1000
    sketch = Sketch("binary").update(label, score).curve(method="density", kernel=kernel, n_boot=0)
    np.testing.assert_allclose(sketch.point, curve.point, atol=1e-4)
    exact = calibrant.lce(label, score, at=[0.3, 0.6], method="density", kernel=kernel, bandwidth=0.01)
    assert exact == pytest.approx([0.09 - 0.3, 0.36 - 0.6], abs=0.06)


def test_a_curve_ends_where_the_rows_end():
    score = 0.2 + 0.1 * np.random.default_rng(0).random(5000)
    for kernel in KINDS:
        curve = calibrant.reliability_curve(score > 0.25, score, method="density", kernel=kernel, n_boot=0)
        seen = curve.score[np.isfinite(curve.point)]
        assert 0.15 < seen[0] < 0.2 < 0.3 < seen[-1] < 0.36

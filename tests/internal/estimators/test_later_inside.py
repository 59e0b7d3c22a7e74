"""The estimators of the later literature against loops, closed forms, published tables and peers."""

import json
from pathlib import Path

import numpy as np
import pytest

from calibrant import (
    Beta,
    BetaKernel,
    Binned,
    Cumulative,
    Debiased,
    Isotonic,
    Smooth,
    Sweep,
    Variational,
)
from calibrant.estimators import parse
from calibrant.estimators.beta_kernel import NODES, TRIED, Neighbours
from calibrant.estimators.binned import adaptive_edges
from calibrant.score_data import Cells, Sample
from oracles import later
from oracles.binned import rows
from weighing import weighted_sample

GOLDEN = Path(__file__).parents[2] / "golden"
SETS = json.loads((GOLDEN / "golden.json").read_text())["datasets"]
NEW = (
    *("debiased:15", "debiased:3", "sweep", "sweep:debiased", "isotonic", "beta", "beta-kernel"),
    *("beta-kernel:0.03", "variational", "smooth", "ks", "kuiper"),
)
KINDS = ("smooth", "ties", "walls", "counts", "weights")


def problem(kind, n, seed):
    rng = np.random.default_rng([seed, n])
    score = rng.beta(0.8, 0.6, n)
    if kind == "ties":
        score = np.round(score, 1)
    elif kind == "walls":
        score[: n // 4], score[n // 4 : n // 3] = 0.0, 1.0
    outcome = rng.random(n) < score**1.5
    weight = {"counts": rng.integers(1, 4, n), "weights": rng.random(n) + 0.1}.get(kind)
    return weighted_sample(score, outcome, weight), rows(score, outcome, weight)


def problems(*kinds, sizes=(1, 2, 7, 40), seeds=2):
    return [
        pytest.param(kind, n, seed, id=f"{kind}-{n}-{seed}")
        for kind in kinds
        for n in sizes
        for seed in range(seeds)
    ]


# --- slow loops ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "n", "seed"), problems("smooth", "ties", "walls", "counts"))
def test_binned_ones_equal_the_loops(kind, n, seed):
    sample, listed = problem(kind, n, seed)
    for n_bins in (b for b in (1, 3, 5) if b <= len(listed)):
        fit, parts = Debiased(n_bins).fit(sample), later.larger_first(listed, n_bins)
        for norm in ("l1", "l2"):
            assert fit.error(norm) == pytest.approx(later.debiased(parts, norm), abs=1e-7)
        for level in (0.5, 0.9):
            assert fit.interval(level) == pytest.approx(later.interval(parts, level), abs=1e-6)
    fit, (parts, number) = Sweep().fit(sample), later.sweep(listed)
    assert fit.n_bins == number
    for norm in ("l1", "l2", "max"):
        assert fit.error(norm) == pytest.approx(later.gaps(parts, norm), abs=1e-9)
    assert Sweep(debiased=True).fit(sample).error() == pytest.approx(later.debiased(parts, "l1"), abs=1e-9)


@pytest.mark.parametrize(("kind", "n", "seed"), problems(*KINDS))
def test_curves_equal_the_loops(kind, n, seed):
    sample, listed = problem(kind, n, seed)
    for norm in ("l1", "l2", "max"):
        expected = later.ece_isotonic(listed, norm)
        assert Isotonic().fit(sample).error(norm) == pytest.approx(expected, abs=1e-9)
    assert Variational().fit(sample).signed == pytest.approx(later.variational(listed), abs=1e-9)


@pytest.mark.parametrize(("kind", "n", "seed"), problems(*KINDS, sizes=(1, 40, 200), seeds=1))
def test_the_beta_curve_equals_another_optimiser(kind, n, seed):
    sample, listed = problem(kind, n, seed)
    for norm in ("l1", "l2", "max"):
        expected = later.ece_beta(listed, norm)
        assert Beta().fit(sample).error(norm) == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize(("kind", "n", "seed"), problems(*KINDS, sizes=(1, 2, 25)))
def test_beta_kernels_and_sums_equal_the_loops(kind, n, seed):
    sample, listed = problem(kind, n, seed)
    for bandwidth in (0.01, 0.2):
        for norm in ("l1", "l2"):
            expected = later.beta_kernel(listed, bandwidth, norm)
            assert BetaKernel(bandwidth).fit(sample).error(norm) == pytest.approx(expected, abs=1e-9)
    ks, kuiper = later.cumulative(listed)
    fit = Cumulative("ks").fit(sample)
    assert fit.error() == pytest.approx(ks, abs=1e-12)
    assert Cumulative("kuiper").fit(sample).error() == pytest.approx(kuiper, abs=1e-12)


@pytest.mark.parametrize(("kind", "n", "seed"), problems(*KINDS, sizes=(1, 30), seeds=1))
def test_smooth_equals_the_integral_over_mirror_images(kind, n, seed):
    sample, listed = problem(kind, n, seed)
    fit = Smooth().fit(sample)
    assert fit.error() == pytest.approx(later.smooth(listed), abs=2e-6)


def load(name):
    with np.load(GOLDEN / f"{name}.npz") as data:
        labels, scores = data["labels"], data["scores"]
    return Sample(scores.max(axis=1), scores.argmax(axis=1) == labels)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("bins", ["10", "30", "sqrt"])
def test_the_debiased_square_equals_uncertainty_calibration(name, bins):
    """uncertainty-calibration 0.1.4, equal-mass bins; it splits ties, so only distinct scores compare."""
    if "discrete" not in name:
        expected = SETS[name]["peers"]["confidence"][bins]["uncertainty_calibration_l2_debiased"]
        found = parse(f"debiased:{bins}").fit(load(name)).error("l2")
        assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", [name for name in SETS if "smooth" in name])
def test_smooth_is_near_relplot(name):
    """relplot 1.0.3 halves the bandwidth ten times, so it ends within 1/1024.

    Only scores away from the walls compare: at a wall relplot counts a node of its grid once that the
    reflection has twice, and a kernel there keeps half its mass (0.0419 for 0.0358 on ds10, class-wise).
    """
    expected = SETS[name]["peers"]["confidence"]["relplot_smECE"]
    assert Smooth().fit(load(name)).error() == pytest.approx(expected, abs=1 / 1024)


def test_smooth_keeps_the_mass_of_scores_at_a_wall():
    """Half the rows at 0 and right, half at .5 with residual .5: .25 for any bandwidth.

    relplot 1.0.3, smECE_sigma(f, y, 0.05), returns 0.3289.
    """
    sample = Sample(np.repeat([0.0, 0.5], 50), np.repeat([False, True], 50))
    assert Smooth().fit(sample).error() == pytest.approx(0.25, abs=1e-9)


# --- properties of their own -----------------------------------------------------------------------


@pytest.mark.parametrize("spec", NEW)
def test_a_batch_is_its_problems_one_by_one(spec):
    rng = np.random.default_rng(1)
    score = rng.beta(0.5, 0.5, (2, 3, 80))
    score[0, 0], score[0, 1, 40:] = 0.25, 1.0
    outcome = rng.random((2, 3, 80)) < score
    outcome[1, 0], outcome[1, 1] = True, score[1, 1] > 0.5
    for weight in (None, rng.integers(0, 3, (2, 3, 80)), rng.random((2, 3, 80))):
        sample = weighted_sample(score, outcome, weight)
        for data in (sample, Cells.of(sample)):
            found = parse(spec).fit(data).error()
            assert found.shape == (2, 3)
            each = [parse(spec).fit(data[i, j]).error() for i in range(2) for j in range(3)]
            np.testing.assert_allclose(found.ravel(), each, atol=1e-9)


def test_larger_bins_come_first():
    sample = Sample(np.arange(1, 12) / 20, np.zeros(11, dtype=bool))
    edges = adaptive_edges(sample, 4, larger_first=True)
    np.testing.assert_array_equal(np.histogram(sample.score, edges)[0], [3, 3, 3, 2])
    few = Sample(np.array([0.2, 0.7]), np.array([True, False]))
    np.testing.assert_array_equal(adaptive_edges(few, 4, larger_first=True), adaptive_edges(few, 4))


@pytest.mark.parametrize("kind", KINDS)
def test_the_sweep_has_the_bins_of_its_number(kind):
    sample, _ = problem(kind, 300, 5)
    fit = Sweep().fit(sample)
    cuts = adaptive_edges(sample, int(fit.n_bins), larger_first=True)[1:-1]
    w = sample.bins(cuts).w
    scale = sample.n / w.sum()
    np.testing.assert_allclose(fit.bins.w[fit.bins.w > 0], w[w > 0] * scale)


def test_the_sweep_goes_to_the_end_where_frequencies_never_fall():
    score = np.linspace(0, 1, 30_000)
    fit = Sweep().fit(Sample(score, score > 0.3))
    assert fit.n_bins == 30_000
    assert fit.error() == pytest.approx(np.abs((score > 0.3) - score).mean())
    one_out = (score > 0.3) ^ (np.arange(30_000) == 29_000)
    assert Sweep().fit(Sample(score, one_out)).n_bins == 2
    exchanged = (score > 0.3) ^ (np.abs(np.arange(30_000) - np.argmax(score > 0.3) + 0.5) < 1)
    assert Sweep().fit(Sample(score, exchanged)).n_bins == 10_000


def test_the_interval_holds_the_true_error():
    """Nominal 90 %; eta = p^2 has the l2 error sqrt(1/30), and calibrated scores have none."""
    rng = np.random.default_rng(3)
    score = rng.random((1500, 1000))
    for power, truth in ((2, np.sqrt(1 / 30)), (1, 0.0)):
        low, high = Debiased(50).fit(Sample(score, rng.random(score.shape) < score**power)).interval(0.9)
        assert np.mean((low <= truth + 1e-12) & (truth <= high)) > 0.87


def test_debiasing_takes_the_noise_off():
    rng = np.random.default_rng(4)
    score = rng.random((300, 1000))
    calibrated = Sample(score, rng.random(score.shape) < score)
    plain, less = (parse(name).fit(calibrated).error().mean() for name in ("adaptive:50", "debiased:50"))
    # The mean of |d| is s sqrt(2/pi), that of |d + s Z| the root of two more.
    assert less / plain == pytest.approx(2 - np.sqrt(2), abs=0.02)
    sample = Sample(score, rng.random(score.shape) < score**2)
    assert Debiased(50).fit(sample).error("l2").mean() == pytest.approx(np.sqrt(1 / 30), abs=2e-3)


def test_equal_importance_weights_leave_the_interval_alone():
    sample, _ = problem("smooth", 200, 9)
    weighed = weighted_sample(sample.score, sample.outcome, np.full(200, 0.3))
    for fit in (Debiased().fit(weighed), Debiased().fit(weighed[None])):
        np.testing.assert_allclose(np.squeeze(fit.interval()), Debiased().fit(sample).interval(), atol=1e-7)


def test_the_variational_bound_is_zero_on_average_for_a_calibrated_model_and_a_lower_bound_otherwise():
    rng = np.random.default_rng(5)
    score = rng.random((400, 200))
    signed = Variational().fit(Sample(score, rng.random(score.shape) < score)).signed
    assert abs(signed.mean()) < 4 * signed.std() / 20
    assert (signed < 0).any()
    bent = Variational().fit(Sample(score, rng.random(score.shape) < score**2))
    assert 0.12 < bent.signed.mean() < 1 / 6
    np.testing.assert_array_equal(bent.error(), np.maximum(bent.signed, 0))


def test_the_beta_curve_finds_the_coefficients_that_made_the_data():
    rng = np.random.default_rng(7)
    score = rng.random(100_000)
    logit = 0.5 * np.log(score) - 1.5 * np.log1p(-score) + 0.3
    fit = Beta().fit(Sample(score, rng.random(score.size) < 1 / (1 + np.exp(-logit))))
    np.testing.assert_allclose(fit.coefficients, [0.5, 1.5, 0.3], atol=0.05)


def test_the_beta_curve_never_falls_and_survives_separable_outcomes():
    score = np.linspace(0, 1, 50)
    fit = Beta().fit(Sample(score, np.stack([score > 0.5, score < 0.5, score < 2, np.arange(50) % 2 == 0])))
    assert np.all(np.diff(fit.frequency) >= -1e-12)
    np.testing.assert_allclose(fit.coefficients[1, :2], 0.0)
    np.testing.assert_allclose(fit.frequency[0], score > 0.5, atol=0.1)
    np.testing.assert_array_equal(fit.frequency[2], 1.0)


@pytest.mark.parametrize("bandwidth", [TRIED[0], 0.01, 0.3])
def test_nodes_stand_for_all_pairs(bandwidth):
    rng = np.random.default_rng(8)
    score = np.sort(1 / (1 + np.exp(-5 * rng.normal(size=2 * NODES))))
    score[:3] = 0.0, 1e-14, 1e-9
    score[-40:] = 1 - np.geomspace(1e-16, 1e-6, 40)
    score.sort()
    ones = np.ones(score.size)
    near = Neighbours(score, ones, (rng.random(score.size) < score).astype(float), ones)
    assert score.size > NODES
    for fast, slow in zip(near.around(bandwidth), near.around(bandwidth, pairs=10**6), strict=True):
        # Next to 1 floats are coarser than the scale; elsewhere the digits agree to 2e-5.
        rtol = np.where(score > 1 - 1e-12, 1e-3, 2e-5)
        assert np.all(np.abs(fast - slow) <= rtol * np.abs(slow) + 1e-6 * slow.max())


def test_the_likelihood_finds_a_narrower_kernel_for_more_rows():
    rng = np.random.default_rng(9)
    width = [
        float(BetaKernel().fit(Sample(rng.beta(4, 4, n), np.zeros(n, dtype=bool))).bandwidth)
        for n in (30, 10_000)
    ]
    assert TRIED[0] < width[1] < width[0] < TRIED[-1]


def test_smooth_reads_less_than_the_ece_where_errors_alternate():
    score = np.repeat(np.arange(1, 400) / 400, 50)
    rate = np.where(np.arange(1, 400) % 2, 0.05, -0.05) + np.arange(1, 400) / 400
    outcome = np.arange(50) < np.rint(50 * np.clip(rate, 0, 1))[:, None]
    sample = Sample(score, outcome.ravel())
    assert Binned("uniform", 400).fit(sample).error() > 0.045
    assert Smooth().fit(sample).error() < 0.02


def test_a_perfect_model_has_no_smooth_error():
    outcome = np.array([[False, True, True], [True, False, False]])
    fit = Smooth().fit(Sample(np.array([0.0, 1.0, 1.0]), outcome))
    assert fit.error()[0] == pytest.approx(0, abs=1e-9)
    assert fit.error()[1] > 0.4


@pytest.mark.parametrize("spec", NEW)
def test_names_come_back(spec):
    assert parse(str(parse(spec))) == parse(spec)

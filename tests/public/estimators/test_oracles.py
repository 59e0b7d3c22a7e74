"""The slow loops agree with reference values computed elsewhere, and with closed forms."""

import json
from functools import cache
from math import pi, sqrt
from pathlib import Path

import numpy as np
import pytest
from scipy import integrate, stats

from oracles import binned, density, isj, notions

pytestmark = pytest.mark.no_cover

GOLDEN = Path(__file__).parents[2] / "golden"
REFERENCE = {
    name: entry["reference"]
    for name, entry in json.loads((GOLDEN / "golden.json").read_text())["datasets"].items()
    if entry["info"]["N"] <= 500
}
EDGES = json.loads((GOLDEN / "edges.json").read_text())
BINNED = {
    "ece": ("uniform", "one"),
    "ece_a": ("adaptive", "one"),
    "ece_c": ("uniform", "convex"),
    "ece_ac": ("adaptive", "convex"),
}
KERNELS = ["triweight", "gaussian", "epanechnikov", "cosine"]


@cache
def problems(name, notion):
    with np.load(GOLDEN / f"{name}.npz") as data:
        labels, probs = data["labels"], data["scores"]
    if notion == "confidence":
        return [notions.confidence_problem(labels, probs)], (1 / probs.shape[1], 1)
    return notions.classwise_problems(labels, probs), (0, 1)


@pytest.fixture
def sample():
    rng = np.random.default_rng(5)
    scores = np.round(rng.beta(0.6, 0.8, 40), 2)
    return scores, (rng.random(40) < scores**1.3).astype(int)


each_dataset = pytest.mark.parametrize("name", REFERENCE)
each_notion = pytest.mark.parametrize("notion", ["confidence", "classwise"])
each_kernel = pytest.mark.parametrize("kernel", KERNELS)
each_bandwidth = pytest.mark.parametrize("bandwidth", ["0.033", "0.1", "silverman"])


@pytest.mark.full
@each_dataset
@each_notion
@pytest.mark.parametrize("n_bins", [10, 30, "sqrt"])
def test_binned_errors_equal_the_reference(name, notion, n_bins):
    reference = REFERENCE[name][notion][str(n_bins)]
    found, _ = problems(name, notion)

    def error(binning, mapping):
        return notions.combine(
            [binned.binned(*problem, binning=binning, mapping=mapping, n_bins=n_bins) for problem in found]
        )

    corrected = {key: error(*choice) for key, choice in BINNED.items()}
    published = {key: error(BINNED[key][0], "published") for key in ("ece_c", "ece_ac")}
    assert corrected == pytest.approx(reference["corrected"], abs=1e-9)
    assert published == pytest.approx(reference["published_weights"], abs=1e-9)


@each_dataset
@each_notion
def test_silverman_bandwidths_equal_the_reference(name, notion):
    bandwidths = [density.silverman(scores) for scores, _ in problems(name, notion)[0]]
    assert bandwidths == pytest.approx(REFERENCE[name][notion]["kde"]["silverman"]["bandwidths"], abs=1e-12)


@pytest.mark.full
@each_dataset
@each_notion
@each_bandwidth
@pytest.mark.parametrize(("kernel", "key"), [("triweight", "corrected"), ("gaussian", "gaussian_same_std")])
def test_density_errors_equal_the_reference(name, notion, bandwidth, kernel, key):
    reference = REFERENCE[name][notion]["kde"][bandwidth]
    found, support = problems(name, notion)
    errors = [
        density.ece_density(*problem, bandwidth=width, kernel=kernel, support=support)
        for problem, width in zip(found, reference["bandwidths"], strict=True)
    ]
    assert notions.combine(errors) == pytest.approx(reference[key], abs=1e-7)


@pytest.mark.parametrize("name", [name for name in REFERENCE if "reliability_curve" in REFERENCE[name]])
def test_reliability_curves_equal_the_reference(name):
    scores, outcomes = problems(name, "classwise")[0][1]
    for choice, curve in REFERENCE[name]["reliability_curve"].items():
        kernel, bandwidth = choice.split("_")
        whole, positive = density.density(
            scores, outcomes, bandwidth=float(bandwidth), kernel=kernel, at=curve["s"]
        )
        for f, part, expected in zip(whole, positive, curve["reliability"], strict=True):
            if expected is None:
                assert f == 0
            else:
                assert part / f == pytest.approx(expected, abs=1e-9)


@each_kernel
def test_kernel_has_unit_mass_and_unit_standard_deviation(kernel):
    reach = density.REACH[kernel]
    mass, _ = integrate.quad(density.KERNELS[kernel], -reach, reach)
    variance, _ = integrate.quad(lambda u: u**2 * density.KERNELS[kernel](u), -reach, reach)
    assert (mass, variance) == pytest.approx((1, 1), abs=1e-9)


@each_kernel
@pytest.mark.parametrize("bandwidth", [0.01, 0.2, 3])
def test_density_integrates_to_one_on_its_support(sample, kernel, bandwidth):
    scores, outcomes = sample[0] / 2 + 0.5, sample[1]
    edges = density.panels(scores, bandwidth, kernel, (0.5, 1))
    middle, half = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2
    at = (middle[:, None] + half[:, None] * density.NODES).ravel()
    whole, positive = density.density(
        scores, outcomes, bandwidth=bandwidth, kernel=kernel, support=(0.5, 1), at=at
    )
    share = (half[:, None] * density.WEIGHTS).ravel()
    assert whole @ share == pytest.approx(1, abs=1e-8)
    assert positive @ share == pytest.approx(outcomes.mean(), abs=1e-8)


@pytest.mark.parametrize(
    ("kernel", "mean_distance"),
    [("triweight", 105 / 128), ("gaussian", sqrt(2 / pi)), ("epanechnikov", 3 / 8 * sqrt(5))],
)
def test_density_error_of_a_fair_coin_at_one_half_is_the_spread_of_the_kernel(kernel, mean_distance):
    coin = ([0.5, 0.5], [0, 1])
    l1 = density.ece_density(*coin, bandwidth=0.04, kernel=kernel)
    l2 = density.ece_density(*coin, bandwidth=0.04, kernel=kernel, norm="l2")
    assert (l1, l2) == pytest.approx((0.04 * mean_distance, 0.04), abs=1e-8)


def test_density_error_without_positives_is_the_mean_of_the_density():
    assert density.ece_density([0.5, 0.5], [0, 0], bandwidth=0.3) == pytest.approx(0.5, abs=1e-9)
    assert density.ece_density([1 / 3], [0], bandwidth=9, kernel="gaussian") == pytest.approx(0.5, abs=1e-9)


def test_density_error_of_scores_without_spread_is_the_mean_residual():
    scores, outcomes = [0.3] * 4, [0, 1, 1, 1]
    assert density.silverman(scores) == density.scott(scores) == 0
    for norm in ("l1", "l2", "max"):
        assert density.ece_density(scores, outcomes, bandwidth=0, norm=norm) == pytest.approx(0.45)


def test_silverman_takes_the_quartiles_numpy_takes(sample):
    scores, _ = sample
    counts = np.arange(40) % 4
    expanded = np.repeat(scores, counts)
    low, high = np.quantile(expanded, [0.25, 0.75])
    spread = min(expanded.std(ddof=1), (high - low) / density.IQR_OF_NORMAL)
    expected = spread * (0.75 * len(expanded)) ** -0.2
    assert density.silverman(scores, counts) == pytest.approx(expected, rel=1e-12)


def test_silverman_takes_the_outer_percentiles_when_the_quartiles_coincide():
    scores = [0.1] + [0.5] * 9 + [0.7]
    low, high = np.quantile(scores, [0.01, 0.99])
    expected = (high - low) / density.RANGE_1_99_OF_NORMAL * (0.75 * 11) ** -0.2
    assert density.silverman(scores) == pytest.approx(expected, rel=1e-12)


def test_scott_is_what_scipy_calls_scott(sample):
    scores, _ = sample
    weights = np.linspace(0.1, 2, 40)
    for given in (None, weights):
        kde = stats.gaussian_kde(scores, bw_method="scott", weights=given)
        assert density.scott(scores, given) == pytest.approx(sqrt(kde.covariance[0, 0]), rel=1e-9)


def every_error(scores, outcomes, weights=None):
    width = density.silverman(scores, weights)
    errors = {"silverman": width, "scott": density.scott(scores, weights)}
    for norm in ("l1", "l2", "max"):
        for binning in ("uniform", "adaptive"):
            for mapping in ("one", "convex", "published"):
                for n_bins in (1, 7, "sqrt"):
                    choice = {"binning": binning, "mapping": mapping, "n_bins": n_bins, "norm": norm}
                    errors[tuple(choice.values())] = binned.binned(
                        scores, outcomes, weights=weights, **choice
                    )
        errors["density", norm] = density.ece_density(
            scores, outcomes, bandwidth=width, weights=weights, norm=norm
        )
    return errors


def test_counts_are_repetition(sample):
    scores, outcomes = sample
    counts = np.arange(40) % 4
    repeated = every_error(np.repeat(scores, counts), np.repeat(outcomes, counts))
    assert every_error(scores, outcomes, counts) == pytest.approx(repeated, abs=1e-9)


def test_equal_floating_weights_are_no_weights(sample):
    assert every_error(*sample, np.full(40, 0.1)) == pytest.approx(every_error(*sample), abs=1e-9)


def test_floating_weights_have_no_scale(sample):
    weights = np.linspace(0.05, 3, 40)
    scaled = every_error(*sample, weights / 3)
    assert scaled == pytest.approx(every_error(*sample, weights), abs=1e-9)


@pytest.mark.parametrize("choice", BINNED.values())
def test_one_bin_gives_the_mean_residual(sample, choice):
    scores, outcomes = sample
    binning, mapping = choice
    for norm in ("l1", "l2", "max"):
        error = binned.binned(scores, outcomes, binning=binning, mapping=mapping, n_bins=1, norm=norm)
        assert error == pytest.approx(abs(np.mean(outcomes - scores)), abs=1e-12)


def test_convex_weights_average_to_the_score():
    centres = [0.05, 0.25, 0.6, 0.95]
    for score in np.linspace(0.05, 0.95, 37):
        shares = binned.share_convex(float(score), centres)
        assert sum(shares.values()) == 1
        assert float(sum(part * binned.Fraction(centres[j]) for j, part in shares.items())) == score


def test_published_weights_leave_a_bin_as_its_centre_is_reached():
    assert binned.share_published(0.3, [0.1, 0.3, 0.5]) == {0: 1, 1: 0}
    assert binned.share_published(0.5, [0.1, 0.3, 0.5]) == {1: 1, 2: 0}
    assert binned.share_published(0.1, [0.1, 0.3, 0.5]) == {0: 1}
    assert binned.share_published(0.6, [0.1, 0.3, 0.5]) == {2: 1}


def test_a_score_on_an_edge_belongs_to_the_bin_on_its_right():
    for place in range(100):
        found = binned.bins([place / 100], [1], binning="uniform", mapping="one", n_bins=100)
        assert [j for j, (_, weight, _, _) in enumerate(found) if weight] == [place]
    assert binned.bins([1.0], [1], binning="uniform", mapping="one", n_bins=100)[-1][1] == 1


def test_tied_scores_share_a_bin_and_leave_empty_ones_of_no_width():
    scores = [0.2, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.9]
    found = binned.bins(scores, [0] * 8, binning="adaptive", mapping="one", n_bins=4)
    assert [ends for ends, _, _, _ in found] == [(0.0, 0.5), (0.5, 0.5), (0.5, 0.5), (0.5, 1.0)]
    assert [weight for _, weight, _, _ in found] == [1, 0, 0, 7]
    merged = binned.bins(scores, [0] * 8, binning="adaptive", mapping="convex", n_bins=4)
    assert [ends for ends, _, _, _ in merged] == [(0.0, 0.5), (0.5, 0.5), (0.5, 1.0)]


def test_more_bins_than_scores_begin_with_bins_of_no_width_at_zero():
    found = binned.bins([0.4, 0.8], [0, 1], binning="adaptive", mapping="one", n_bins=5)
    assert [ends[0] for ends, _, _, _ in found] == pytest.approx([0, 0, 0, 0.6, 0.6])


@pytest.mark.full
@pytest.mark.parametrize("name", [name for name, case in EDGES["cases"].items() if len(case["scores"]) <= 12])
def test_stored_edge_cases_are_what_the_loops_give(name):
    case = EDGES["cases"][name]
    weights = None if case["weights"] is None else np.array(case["weights"], dtype=case["weights_dtype"])
    choices = {"l": BINNED["ece"], "a": BINNED["ece_a"], "c": BINNED["ece_c"], "ac": BINNED["ece_ac"]}
    for key, values in case["values"].items():
        estimator, n_bins, *published = key.split(":")
        binning, mapping = choices[estimator]
        for norm, value in zip(EDGES["norms"], values, strict=True):
            error = binned.binned(
                case["scores"],
                case["outcomes"],
                binning=binning,
                mapping="published" if published else mapping,
                n_bins="sqrt" if n_bins == "sqrt" else int(n_bins),
                norm=norm,
                weights=weights,
            )
            assert error == value


def test_confidence_predicts_the_first_of_equal_columns():
    assert notions.confidence_problem([1, 1], [[0.4, 0.4, 0.2], [0.1, 0.8, 0.1]]) == ([0.4, 0.8], [0, 1])


def test_errors_of_several_problems_combine_by_norm():
    assert [notions.combine([0.3, 0.4], norm) for norm in ("l1", "l2", "max")] == pytest.approx(
        [0.35, sqrt(0.125), 0.4]
    )


@pytest.mark.full
@pytest.mark.parametrize("shape", [(5, 5), (30, 12), (8, 20)])
def test_isj_follows_the_grid_version_for_scores_away_from_the_ends(shape):
    scores = np.random.default_rng(2).beta(*shape, size=800)
    assert isj.isj(scores) == pytest.approx(kdepy_isj(scores), rel=0.03)


def kdepy_isj(scores):
    """KDEpy solves for it in units of its grid but answers in units of the data's range."""
    from KDEpy import bw_selection as selection

    column = scores[:, None] * 100  # from a range of 12 on, the grid spans twice the data
    return selection.improved_sheather_jones(column) * 2 / 100


@pytest.mark.full
def test_isj_is_close_to_the_normal_rule_for_normal_scores():
    scores = stats.norm(0.5, 0.08).ppf((np.arange(2000) + 0.5) / 2000)
    assert isj.isj(scores) == pytest.approx(0.08 * (4 / 3 / 2000) ** 0.2, rel=0.1)


@pytest.mark.full
def test_isj_moves_with_the_support():
    scores = np.random.default_rng(3).beta(4, 3, size=200)
    assert isj.isj(scores / 2 + 0.5, support=(0.5, 1)) == pytest.approx(isj.isj(scores) / 2, rel=1e-6)


def test_isj_has_no_answer_for_scores_without_spread():
    assert isj.isj([0.5] * 20) is None

"""Faults seen in other calibration packages: none of them may show through the public functions here."""

import json
import subprocess
import sys

import numpy as np
import pytest
from scipy.integrate import trapezoid

import calibrant

BINNED = ["uniform:10", "adaptive:10", "uniform-convex:10", "adaptive-convex:10"]
SMOOTH = ["density", "density:0.1"]
EVERY = [*BINNED, *SMOOTH, "auto"]
REFUSED = (ValueError, TypeError)


def binary(n=400, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.beta(0.7, 0.7, n)
    return (rng.random(n) < p**1.5).astype(int), p


def matrix(n=300, classes=4, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(0.4 + np.arange(classes), n)
    return (rng.random((n, 1)) > p.cumsum(axis=1)[:, :-1]).sum(axis=1), p


def diagram(y, p, binning="uniform:10", **choices):
    return calibrant.reliability_diagram(y, p, binning=binning, **choices)


# ---- one class must not stand for another


@pytest.mark.parametrize("estimator", EVERY)
def test_class_order_does_not_change_the_classwise_error(estimator):
    y, p = matrix()
    order = np.array([2, 0, 3, 1])
    shuffled = calibrant.ece(np.argsort(order)[y], p[:, order], notion="classwise", estimator=estimator)
    assert shuffled == pytest.approx(calibrant.ece(y, p, notion="classwise", estimator=estimator), rel=1e-12)


@pytest.mark.parametrize("notion", ["confidence", "classwise"])
@pytest.mark.parametrize("estimator", EVERY)
def test_a_matrix_stays_multiclass_when_only_two_of_its_classes_occur(notion, estimator):
    y, p = matrix()
    y = np.where(y % 2, 2, 0)
    choices = {"notion": notion, "estimator": estimator}
    named = calibrant.ece(y.astype(str), p, labels=["0", "1", "2", "3"], **choices)
    assert calibrant.ece(y, p, **choices) == named


def test_two_labels_in_a_four_class_matrix_give_the_error_of_all_four_classes():
    p = np.tile([0.4, 0.3, 0.2, 0.1], (10, 1))
    y = np.array([0, 2] * 5)
    expected = np.mean([0.1, 0.3, 0.3, 0.1])
    assert calibrant.ece(y, p, notion="classwise", estimator="uniform:10") == pytest.approx(expected)


@pytest.mark.parametrize("estimator", [*BINNED, "density"])
def test_a_class_absent_from_the_labels_still_counts(estimator):
    p = np.tile([0.5, 0.3, 0.2], (100, 1))
    y = np.array([0, 1] * 50)
    expected = (0.0 + 0.2 + 0.2) / 3
    assert calibrant.ece(y, p, notion="classwise", estimator=estimator) == pytest.approx(expected, abs=1e-9)


def test_labels_one_and_two_need_a_positive_class():
    y, p = binary()
    with pytest.raises(ValueError, match="pos_label"):
        calibrant.ece(y + 1, p, estimator="uniform:10")
    told = calibrant.ece(y + 1, p, estimator="uniform:10", pos_label=2)
    assert told == calibrant.ece(y, p, estimator="uniform:10")


# ---- where bins begin and end


@pytest.mark.parametrize("nudge", [-1e-12, 0.0, 1e-12])
def test_a_score_at_the_first_bin_centre_stays_in_the_first_bin_under_convex_mapping(nudge):
    y = np.array([1] * 10 + [0] * 10)
    p = np.array([0.05 + nudge] * 10 + [0.95] * 10)  # in one bin the residuals would cancel
    assert calibrant.ece(y, p, estimator="c:10") == pytest.approx(0.95, abs=1e-9)


def test_a_score_at_the_last_bin_centre_stays_in_the_last_bin_under_convex_mapping():
    y, p = np.array([1] * 10 + [0] * 10), np.array([0.05] * 10 + [0.95] * 10)
    first, last = diagram(y, p, mapping="convex").count[[0, -1]]
    assert first == pytest.approx(10)
    assert last == pytest.approx(10)


def test_a_confidence_of_one_shares_the_last_bin():
    p = np.array([[1.0, 0.0], [0.95, 0.05]] * 20)
    y = np.array([1, 0] * 20)  # sure and wrong, then less sure and right
    assert calibrant.ece(y, p, notion="confidence", estimator="uniform:10") == pytest.approx(0.975 - 0.5)
    assert diagram(y, p, notion="confidence").count.tolist() == [0] * 9 + [40]


def test_samples_of_score_zero_are_kept():
    y, p = [1, 1, 0, 1], [0.0, 0.0, 0.5, 0.5]
    assert calibrant.ece(y, p, estimator="uniform:10") == pytest.approx(0.5)
    assert diagram(y, p).count.tolist() == [2, 0, 0, 0, 0, 2, 0, 0, 0, 0]


def test_ten_bins_are_ten_bins():
    p = (np.arange(100) + 0.5) / 100
    shown = diagram(np.arange(100) % 2, p)
    assert shown.count.tolist() == [10] * 10
    assert shown.edges == pytest.approx(np.arange(11) / 10)


def test_adaptive_bins_hold_equal_mass_whatever_the_row_order():
    y, p = binary(100)
    for rows in (np.arange(100), np.argsort(p), np.argsort(-p)):
        assert diagram(y[rows], p[rows], "adaptive:10").count.tolist() == [10] * 10


@pytest.mark.parametrize("estimator", ["adaptive:10", "adaptive:30", "adaptive:sqrt"])
def test_adaptive_bins_keep_ties_together(estimator):
    p = np.repeat([0.2, 0.5, 0.9], [30, 40, 30])
    y = np.repeat([1, 0, 1, 0, 1, 0], [12, 18, 10, 30, 24, 6])
    expected = 0.3 * abs(0.4 - 0.2) + 0.4 * abs(0.25 - 0.5) + 0.3 * abs(0.8 - 0.9)
    assert calibrant.ece(y, p, estimator=estimator) == pytest.approx(expected)


@pytest.mark.parametrize("estimator", [*BINNED, "density", "auto"])
def test_a_single_tied_score_gives_the_mean_residual(estimator):
    value = calibrant.ece([1, 0, 0, 0] * 25, [0.4] * 100, estimator=estimator)
    # "auto" shrinks a gap that is three standard errors wide.
    assert 0.1 < value < 0.15 if estimator == "auto" else value == pytest.approx(0.15)


@pytest.mark.parametrize("estimator", EVERY)
def test_row_order_does_not_matter_among_ties(estimator):
    y, p = binary()
    p = p.round(1)
    rows = np.lexsort((y, p))
    expected = calibrant.ece(y, p, estimator=estimator)
    assert calibrant.ece(y[rows], p[rows], estimator=estimator) == pytest.approx(expected, rel=1e-12)


# ---- what cannot be read as probabilities and labels is refused


@pytest.mark.parametrize("bad", [np.nan, np.inf, -0.1, 1.2])
@pytest.mark.parametrize("estimator", EVERY)
def test_a_score_that_is_no_probability_raises(bad, estimator):
    y, p = binary()
    p[17] = bad
    with pytest.raises(ValueError, match=r"y_prob.*17"):
        calibrant.ece(y, p, estimator=estimator)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -0.1, 1.2])
@pytest.mark.parametrize("notion", ["confidence", "classwise"])
def test_a_matrix_entry_that_is_no_probability_raises(bad, notion):
    y, p = matrix()
    p[17, 2] = bad
    with pytest.raises(ValueError, match=r"y_prob.*17"):
        calibrant.ece(y, p, notion=notion)


def test_logits_are_rejected():
    y, p = binary()
    with pytest.raises(ValueError, match="y_prob"):
        calibrant.ece(y, np.log(p) - np.log1p(-p))


def test_logit_matrices_are_rejected():
    y, p = matrix()
    logits = np.log(p)
    with pytest.raises(ValueError, match="y_prob"):
        calibrant.ece(y, logits)
    in_range = (logits - logits.min()) / np.ptp(logits)  # within [0, 1], but no distribution
    with pytest.raises(ValueError, match="y_prob"):
        calibrant.ece(y, in_range)


def test_labels_in_a_column_are_rejected():
    y, p = binary()
    with pytest.raises(ValueError, match="y_true"):
        calibrant.ece(y[:, None], p)
    y, p = matrix()
    with pytest.raises(ValueError, match="y_true"):
        calibrant.ece(y[:, None], p)


@pytest.mark.parametrize(
    "typo",
    [
        {"estimator": "unifrom:15"},
        {"estimator": "density:silvermann"},
        {"estimator": "uniform:ten"},
        {"notion": "classwize"},
        {"norm": "l11"},
        {"nrom": "l1"},
    ],
)
def test_a_typo_in_an_option_of_the_error_raises(typo):
    with pytest.raises(REFUSED):
        calibrant.ece(*binary(), **typo)


@pytest.mark.parametrize(
    "typo", [{"kernel": "triwieght"}, {"bandwidth": "silvermann"}, {"notion": "clas"}, {"nboot": 3}]
)
def test_a_typo_in_an_option_of_the_curve_raises(typo):
    with pytest.raises(REFUSED):
        calibrant.reliability_curve(*binary(), **typo, method="density")


@pytest.mark.parametrize("typo", [{"binning": "unifrom:10"}, {"mapping": "convecks"}, {"maping": "one"}])
def test_a_typo_in_an_option_of_the_diagram_raises(typo):
    with pytest.raises(REFUSED):
        calibrant.reliability_diagram(*binary(), **typo)


def test_a_bin_count_out_of_place_is_told_where_it_belongs():
    with pytest.raises(REFUSED, match="uniform:15"):
        calibrant.compare(binary()[0], {"a": binary()[1]}, n_bins=15)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"n_bins": 10}, "uniform:10"),
        ({"strategy": "uniform"}, "uniform:15"),
        ({"strategy": "quantile"}, "adaptive:15"),
        ({"n_bins": "sqrt", "strategy": "quantile"}, "quantile:sqrt"),
    ],
)
def test_bins_are_named_as_in_scikit_learn(options, name):
    y, p = binary()
    for measured in (calibrant.ece, calibrant.mce):
        assert measured(y, p, **options) == measured(y, p, estimator=name)
    assert calibrant.estimate(y, p, rng=0, **options) == calibrant.estimate(y, p, rng=0, estimator=name)
    drawn = calibrant.reliability_diagram(y, p, **options)
    assert drawn.to_json() == calibrant.reliability_diagram(y, p, binning=name).to_json()


def test_bins_are_named_in_one_way():
    for function, option in ((calibrant.ece, "estimator"), (calibrant.reliability_diagram, "binning")):
        with pytest.raises(calibrant.InputError, match=f"^n_bins and strategy must .* {option} is given"):
            function(*binary(), n_bins=15, **{option: "uniform:15"})
    with pytest.raises(calibrant.InputError, match=r"^n_bins must be an integer from 1"):
        calibrant.ece(*binary(), n_bins=0)
    with pytest.raises(calibrant.InputError, match=r"^strategy must be one of .* did you mean 'quantile'"):
        calibrant.ece(*binary(), strategy="quantiles")


@pytest.mark.parametrize("level", [95, -0.05])
def test_a_level_in_percent_is_rejected(level):
    with pytest.raises(ValueError, match="level"):
        calibrant.reliability_curve(*binary(), level=level, method="density")


# ---- precision


@pytest.mark.parametrize("estimator", ["uniform:15", "adaptive:15", "density"])
def test_thirty_million_float32_samples_do_not_saturate(estimator):
    rows = 3_000_000
    p, y = np.full(rows, 0.8, np.float32), np.arange(rows) % 2
    found = calibrant.ece(y, p, estimator=estimator, counts=np.full(rows, 10))
    assert found == pytest.approx(0.3, abs=1e-6)


def test_thirty_million_counts_on_two_float32_rows_do_not_saturate():
    p, counts = np.full(2, 0.8, np.float32), np.array([15_000_000, 15_000_000])
    assert calibrant.ece([0, 1], p, estimator="uniform:15", counts=counts) == pytest.approx(0.3, abs=1e-6)


@pytest.mark.parametrize("estimator", ["uniform:15", "adaptive:15", "density"])
def test_a_hundred_thousand_float16_samples_do_not_saturate(estimator):
    p = np.full(100_000, 0.8, np.float16)
    expected = float(p[0]) - 0.5
    assert calibrant.ece(np.arange(100_000) % 2, p, estimator=estimator) == pytest.approx(expected, abs=1e-9)


def test_a_hundred_thousand_float16_rows_do_not_saturate():
    p = np.tile(np.array([0.75, 0.25], np.float16), (100_000, 1))
    y = np.arange(100_000) % 2
    assert calibrant.ece(y, p, notion="confidence", estimator="uniform:15") == pytest.approx(0.25, abs=1e-12)


@pytest.mark.parametrize("estimator", EVERY)
def test_lower_precision_is_converted_exactly(estimator):
    y, p = binary()
    for dtype in (np.float32, np.float16):
        low = p.astype(dtype)
        expected = calibrant.ece(y, low.astype(float), estimator=estimator)
        assert calibrant.ece(y, low, estimator=estimator) == pytest.approx(expected, rel=1e-12)


# ---- smoothing


@pytest.mark.parametrize("estimator", SMOOTH)
def test_scores_of_exactly_zero_and_one_are_fine_for_the_density(estimator):
    p = np.repeat([0.0, 1.0, 0.3], 100)
    assert 0 <= calibrant.ece(np.arange(300) % 2, p, estimator=estimator) <= 1


@pytest.mark.filterwarnings("ignore:all scores are 0 or 1:calibrant.InputWarning")
def test_the_density_tells_perfect_from_opposite_certainty():
    y = np.arange(400) % 2
    assert calibrant.ece(y, y.astype(float), estimator="density:0.033") < 0.05
    assert calibrant.ece(1 - y, y.astype(float), estimator="density:0.033") > 0.95


@pytest.mark.filterwarnings("ignore:all scores are 0 or 1:calibrant.InputWarning")
def test_the_curve_is_defined_at_scores_of_zero_and_one():
    p = np.repeat([0.0, 1.0], 200)
    curve = calibrant.reliability_curve(
        np.r_[np.arange(200) % 4 == 0, np.arange(200) % 4 != 0], p, n_boot=0, method="density"
    )
    assert curve.at(0.0).value == pytest.approx(0.25, abs=0.05)
    assert curve.at(1.0).value == pytest.approx(0.75, abs=0.05)


@pytest.mark.parametrize("bandwidth", ["silverman", 0.033, 0.1])
@pytest.mark.parametrize("notion", ["binary", "confidence"])
def test_the_density_integrates_to_one(bandwidth, notion):
    curve = calibrant.reliability_curve(
        *binary(), notion=notion, bandwidth=bandwidth, n_boot=0, method="density"
    )
    assert trapezoid(curve.density, curve.score) == pytest.approx(1, abs=0.01)


# ---- intervals, reproducibility, side effects


def test_the_band_holds_the_curve_and_stays_within_the_unit_interval():
    curve = calibrant.reliability_curve(*binary(), n_boot=100, rng=0, method="density")
    known = np.isfinite(curve.value)
    low, middle, high = curve.low[known], curve.value[known], curve.high[known]
    assert known.any()
    assert np.all((low >= 0) & (low <= middle) & (middle <= high) & (high <= 1))


def test_a_seeded_bootstrap_is_reproducible():
    first, second, other = (
        calibrant.reliability_curve(*binary(), n_boot=50, rng=rng, band="bootstrap", method="density")
        for rng in (1, 1, 2)
    )
    for name in ("value", "low", "high"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    assert not np.array_equal(first.low, other.low, equal_nan=True)


@pytest.mark.parametrize("estimator", EVERY)
def test_lists_are_accepted(estimator):
    y, p = binary()
    assert calibrant.ece(y.tolist(), p.tolist(), estimator=estimator) == calibrant.ece(
        y, p, estimator=estimator
    )
    y, p = matrix()
    assert calibrant.ece(y.tolist(), p.tolist(), estimator=estimator) == calibrant.ece(
        y, p, estimator=estimator
    )


def test_plotting_leaves_the_settings_of_matplotlib_alone():
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    y, p = binary()
    figure, (left, right) = pyplot.subplots(1, 2)
    with matplotlib.rc_context({"font.size": 7.0, "axes.grid": True}):
        before = matplotlib.rcParams.copy()
        calibrant.reliability_curve(y, p, n_boot=20, rng=0, method="density").plot(left)
        diagram(y, p).plot(right)
        assert matplotlib.rcParams.copy() == before
    pyplot.close(figure)


def test_import_does_not_bring_in_the_heavy_packages():
    heavy = ["matplotlib", "sklearn", "pandas", "polars", "torch", "scipy.stats"]
    code = f"import json, sys, calibrant; print(json.dumps([m for m in {heavy} if m in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_rows_at_the_walls_count_as_much_as_others_for_smooth():
    # relplot 1.0.3 drops a copy of the node on the wall as it reflects, and reads 0.3334.
    assert calibrant.ece([1, 1, 1, 0], [0, 0, 0.5, 0.5], estimator="smooth") == pytest.approx(0.5, abs=1e-12)
    assert calibrant.ece([0, 0, 0, 1], [1, 1, 0.5, 0.5], estimator="smooth") == pytest.approx(0.5, abs=1e-12)
    inside = calibrant.ece([1, 1, 1, 0], [0.001, 0.001, 0.5, 0.5], estimator="smooth")
    assert inside == pytest.approx(0.4995, abs=1e-6)  # and a step from the wall is near to it

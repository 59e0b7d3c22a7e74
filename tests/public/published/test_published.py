"""What the authors' code returns: their own values, each named departure, and one call against many."""

import json
import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from calibrant import published

GOLDEN = Path(__file__).parents[2] / "golden"
# "authors" there: the package explicalib, unpatched, under numpy 1.18.5, scipy 1.4.1 and KDEpy 1.0.10.
DATASETS = json.loads((GOLDEN / "golden.json").read_text())["datasets"]
KEYS = {"l": "{}_ece", "a": "{}_ece_a", "c": "{}_ece_c", "ac": "{}_ece_ac", "d": "direct_{}_ece"}
FIFTEEN = [f"{family}:{bins}" for family in ("l", "a", "c", "ac") for bins in (10, 30, "sqrt")]
FIFTEEN += ["d:0.033", "d:0.1", "d:silverman"]


@pytest.fixture(params=sorted(DATASETS))
def golden(request):
    with np.load(GOLDEN / f"{request.param}.npz") as arrays:
        return arrays["labels"], arrays["scores"], DATASETS[request.param]["authors"]


@pytest.fixture
def batch():
    """Return labels (R, n) and scores (R, n, C) with ties, zeros, ones, and a sample of equal rows."""
    rng = np.random.default_rng(20)
    scores = rng.dirichlet(np.full(3, 0.6), (7, 61))
    scores[:, :15] = np.eye(3)[rng.integers(3, size=(7, 15))]
    scores[:, 15:30] = scores[:, 40:41]
    scores[4] = [0.25, 0.5, 0.25]
    return rng.integers(3, size=(7, 61)), scores


def is_binary(scores, outcomes, estimator):
    return published.errors([scores], [outcomes], notion="binary", estimator=estimator)[0]


def confidence(scores, outcomes, estimator, n_classes):
    options = {"notion": "confidence", "estimator": estimator, "n_classes": n_classes}
    return published.errors([scores], [outcomes], **options)[0]


def reduced(labels, scores):
    """Return the scores and outcomes that each notion takes of labels (R, n) and scores (R, n, C)."""
    by_class = labels[:, None] == np.arange(scores.shape[2])[:, None]
    hits = scores.argmax(axis=2) == labels
    return {"confidence": (scores.max(axis=2), hits), "classwise": (scores.transpose(0, 2, 1), by_class)}


def plain_loop(scores, outcomes, family, n_bins, low):
    """Return the binned error by the rules in words, one score at a time."""
    edges = [*(low + (i / n_bins) * (1.0 - low) for i in range(n_bins)), 1.0]
    if "a" in family:
        ordered, each = sorted(scores), len(scores) // n_bins
        edges[1:-1] = [(ordered[i * each - 1] + ordered[i * each]) / 2 for i in range(1, n_bins)]
    centres = [(a + b) / 2 for a, b in pairwise(edges)]
    bins = [0.0] * n_bins
    for s, y in zip(scores, outcomes, strict=True):
        if family == "l":
            bins[min(int(s * n_bins), n_bins - 1)] += y - s
        elif family == "a":
            bins[sum(s >= edge for edge in edges[1:-1])] += y - s
        elif s < centres[0] or s > centres[-1]:
            bins[0 if s < centres[0] else -1] += y - s
        else:
            b = next(j for j, centre in enumerate(centres) if s <= centre)
            weight = (centres[b] - s) / (
                centres[b] - centres[b - 1]
            )  # b = 0 reads centres[-1], as theirs does
            bins[b] += weight * (y - s)
            bins[b - 1] += (1 - weight) * (y - s)
    return sum(map(abs, bins)) / len(scores)


# The authors' own values


@pytest.mark.parametrize("notion", ["confidence", "classwise"])
@pytest.mark.parametrize("family", KEYS)
def test_values_are_the_authors(golden, notion, family):
    labels, scores, authors = golden
    values = authors[KEYS[family].format(notion)]
    got = [published.ece(labels, scores, notion=notion, estimator=f"{family}:{p}") for p in values]
    np.testing.assert_allclose(got, list(values.values()), atol=1e-9, rtol=0)


@pytest.mark.parametrize("notion", ["confidence", "classwise"])
def test_values_of_all_estimators_at_once_are_the_authors(golden, notion):
    labels, scores, authors = golden
    values = {f"{f}:{p}": v for f, key in KEYS.items() for p, v in authors[key.format(notion)].items()}
    score, outcome = reduced(labels[None], scores[None])[notion]
    options = {"notion": notion, "estimators": list(values), "n_classes": scores.shape[1]}
    got = published.errors_many(score, outcome, **options)
    assert got.shape == (len(values), 1)
    np.testing.assert_allclose(got[:, 0], list(values.values()), atol=1e-9, rtol=0)


def test_class_specific_density_values_are_the_authors(golden):
    labels, scores, authors = golden
    for parameter, values in authors["direct_specific_ece"].items():
        options = {"notion": "binary", "estimator": f"d:{parameter}"}
        got = [published.ece(labels, scores, pos_label=c, **options) for c in range(scores.shape[1])]
        np.testing.assert_allclose(got, values, atol=1e-9, rtol=0)


def test_silverman_bandwidths_are_the_authors(golden):
    _, scores, authors = golden
    bandwidth = authors["silverman_bandwidth"]
    np.testing.assert_allclose(published.silverman(scores.T), bandwidth["classes"], rtol=1e-12)
    np.testing.assert_allclose(published.silverman(scores.max(axis=1)), bandwidth["confidence"], rtol=1e-12)


# Departures of binning


def test_convex_weights_are_swapped():
    # B = 10: .151 gives .01 to bin 1 (centre .15), .99 to bin 2 (.25); .35, centre of bin 3, is all bin 2's.
    expected = (0.01 * 0.849 + abs(0.99 * 0.849 - 0.35)) / 2
    assert is_binary([0.151, 0.35], [1, 0], "c:10") == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("score", "home"), [(0.05, 9), (0.0499999, 0), (0.0500001, 1)])
def test_a_score_on_the_first_centre_goes_to_the_last_bin(score, home):
    # Residuals of opposite sign cancel only within a bin: .98 is in bin 9, .03 in bin 0, .25 in bin 1.
    for other, bin_ in ((0.98, 9), (0.03, 0), (0.25, 1)):
        together, apart = abs(1 - score - other) / 2, (1 - score + other) / 2
        expected = together if bin_ == home else apart
        assert is_binary([score, other], [1, 0], "c:10") == pytest.approx(expected, abs=1e-5)


def test_scores_crowded_on_the_lower_limit_land_in_the_last_adaptive_bin():
    # More zeros than a bin should hold: the first threshold and the first centre are 0.
    scores = [0.0, 0.0, 0.0, 0.0, 0.99, 0.99, 0.99, 0.99]
    assert is_binary(scores, [1, 1, 1, 1, 0, 0, 0, 0], "ac:4") == pytest.approx(
        plain_loop(scores, [1, 1, 1, 1, 0, 0, 0, 0], "ac", 4, 0.0), abs=1e-12
    )
    assert is_binary([0.0, 0.0, 0.0, 1.0], [1, 0, 0, 0], "ac:4") == pytest.approx(0.0, abs=1e-12)


def test_one_convex_bin_and_a_score_on_its_centre_is_zero_over_zero():
    assert math.isnan(is_binary([0.5, 0.7], [1, 0], "c:1"))
    assert is_binary([0.4, 0.7], [1, 0], "c:1") == pytest.approx(0.05)


def test_uniform_bins_of_confidences_lie_on_the_unit_interval():
    # An edge at .6, the middle of [1/5, 1], would let the two cancel.
    assert confidence([0.45, 0.55], [1, 0], "l:2", 5) == pytest.approx(0.55)


def test_convex_bins_of_confidences_start_at_one_over_the_classes():
    # Centres .4 and .8 on [1/5, 1]: both scores lie below the first. On [0, 1] (.25, .75) they do not.
    assert confidence([0.3, 0.39], [1, 0], "c:2", 5) == pytest.approx((0.7 - 0.39) / 2)
    # One threshold, .5: centres .35 and .75. On [0, 1] the first would be .25.
    assert confidence([0.3, 0.34, 0.8, 0.9], [1, 0, 1, 0], "ac:2", 5) == pytest.approx(
        plain_loop([0.3, 0.34, 0.8, 0.9], [1, 0, 1, 0], "ac", 2, 0.2)
    )


def test_the_last_adaptive_bin_takes_the_remainder():
    rng = np.random.default_rng(0)
    scores, outcomes = np.sort(rng.random(59)), rng.integers(2, size=59)
    residual = outcomes - scores
    expected = (np.abs(residual[:29]).sum() + abs(residual[29:].sum())) / 59  # 29 bins of 1, one of 30
    assert is_binary(scores, outcomes, "a:30") == pytest.approx(expected, abs=1e-12)


def test_fewer_scores_than_bins_make_two_bins_split_at_the_mid_range():
    rng = np.random.default_rng(1)
    scores, outcomes = rng.random(20) ** 2, rng.integers(2, size=20)
    residual, right = outcomes - scores, scores >= (scores.min() + scores.max()) / 2
    expected = (abs(residual[right].sum()) + abs(residual[~right].sum())) / 20
    assert is_binary(scores, outcomes, "a:30") == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("family", ["l", "a", "c", "ac"])
def test_binned_errors_equal_the_plain_loop(family, n_classes):
    rng = np.random.default_rng(n_classes)
    low = 1 / n_classes
    for n, n_bins in ((1, 1), (5, 2), (12, 30), (59, 30), (100, 10)):
        scores = low + (1 - low) * rng.random(n)
        scores[n // 2 :] = rng.choice([low, 0.6, 0.7, 1.0], n - n // 2)
        outcomes = rng.integers(2, size=n)
        expected = plain_loop(scores, outcomes, family, n_bins, low)
        assert confidence(scores, outcomes, f"{family}:{n_bins}", n_classes) == pytest.approx(
            expected, abs=1e-12
        )


@pytest.mark.parametrize("family", ["l", "a", "c", "ac"])
def test_binned_errors_of_scores_a_rounding_step_apart_equal_the_plain_loop(family):
    rng = np.random.default_rng(6)
    for n_bins in (2, 5, 10, 30):
        at, toward = rng.choice([0.0, 0.05, 0.25, 0.5, 1.0], 40), rng.choice([0.0, 0.5, 1.0], 40)
        scores, outcomes = np.nextafter(at, toward), rng.integers(2, size=40)
        expected = plain_loop(scores, outcomes, family, n_bins, 0.0)
        assert is_binary(scores, outcomes, f"{family}:{n_bins}") == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("n_classes", [None, 2, 3, 7])
@pytest.mark.parametrize("n_bins", [3, 7, 10, 30])
def test_scores_at_a_centre_go_where_the_authors_edges_send_them(n_classes, n_bins):
    # A centre that differs in its last bit, as of numpy's linspace, sends a whole score to another bin.
    rng = np.random.default_rng(n_bins)
    low = 1 / n_classes if n_classes else 0.0
    edges = [*(low + (i / n_bins) * (1.0 - low) for i in range(n_bins)), 1.0]
    centres = np.array([(a + b) / 2 for a, b in pairwise(edges)])
    scores = np.repeat([centres, np.nextafter(centres, 0), np.nextafter(centres, 1)], 20)
    outcomes = rng.random(len(scores)) < scores**2
    expected = plain_loop(scores.tolist(), outcomes.tolist(), "c", n_bins, low)
    name = f"c:{n_bins}"
    got = confidence(scores, outcomes, name, n_classes) if n_classes else is_binary(scores, outcomes, name)
    assert got == pytest.approx(expected, abs=1e-12)


def test_scores_on_tenths_and_halves_of_them_have_the_authors_centres():
    rng = np.random.default_rng(0)
    scores = rng.integers(1, 20, 400) / 20
    outcomes = rng.random(400) < np.clip(scores + 0.1, 0, 1)
    expected = plain_loop(scores.tolist(), outcomes.tolist(), "c", 10, 0.0)
    assert is_binary(scores, outcomes, "c:10") == pytest.approx(expected, abs=1e-14)


# Departures of the density


def test_the_bandwidth_of_class_0_serves_every_class(batch):
    labels, scores = batch[0][0], batch[1][0]
    bandwidth = published.silverman(scores[:, 0])
    own = published.ece(labels, scores, notion="classwise", estimator="d:silverman")
    fixed = published.ece(labels, scores, notion="classwise", estimator=f"d:{float(bandwidth)!r}")
    assert own == pytest.approx(fixed, abs=1e-14)


def test_the_order_of_the_classes_matters_to_the_silverman_density_alone(batch):
    labels, scores = batch[0][0], batch[1][0]
    turned, columns = (labels + 1) % 3, np.roll(scores, 1, axis=1)
    for estimator in FIFTEEN:
        one = published.ece(labels, scores, notion="classwise", estimator=estimator)
        other = published.ece(turned, columns, notion="classwise", estimator=estimator)
        assert (abs(one - other) > 1e-4) == (estimator == "d:silverman"), estimator


def test_silverman_falls_back_on_the_outer_range_and_then_on_one():
    mostly = np.repeat([0.3, 0.8], [9, 1])  # quartiles equal; 1 % and 99 % quantiles .3 and .755
    assert published.silverman(mostly) == pytest.approx(0.455 / 4.6526957480816815 * 7.5**-0.2)
    np.testing.assert_array_equal(published.silverman([[0.3] * 5, [0.0] * 5]), 1.0)
    assert published.silverman([0.3]) == 1.0


@pytest.mark.parametrize("bandwidth", [0.0001, 0.002, 0.033, 0.1, 0.3, 1.0, 2.5])
@pytest.mark.parametrize("n_classes", [None, 2, 5])
def test_density_equals_kdepy_on_the_authors_grid(bandwidth, n_classes):
    from KDEpy import FFTKDE as fftkde

    rng = np.random.default_rng(5)
    low = 1 / n_classes if n_classes else 0.0
    scores = np.r_[low, 1.0, low + (1 - low) * rng.beta(0.6, 0.5, 40)]
    outcomes = (rng.random(42) < scores).astype(float)
    grid = np.linspace(low - 3, 4, 2**14) if n_classes else np.linspace(-2.5, 3.5, 2**14)

    def density(sample):
        twice = np.concatenate([sample, 2 * low - sample])
        four = np.concatenate([twice, 2 - twice])
        return np.where(grid > low, 3 * fftkde(kernel="triweight", bw=bandwidth).fit(four)(grid), 0.0)[
            grid <= 1
        ]

    everyone, hits = density(scores), density(scores[outcomes == 1]) * outcomes.mean()
    if bandwidth in (0.033, 0.1):  # at least four times the grid's step, and no kernel passes the far copies
        assert everyone.sum() * (grid[1] - grid[0]) == pytest.approx(0.75, abs=2e-3)
    expected = np.abs(hits - grid[grid <= 1] * everyone).sum() / everyone.sum()
    estimator = f"d:{bandwidth}"
    got = (
        confidence(scores, outcomes, estimator, n_classes)
        if n_classes
        else is_binary(scores, outcomes, estimator)
    )
    assert got == pytest.approx(expected, abs=1e-11)


def test_a_class_without_positives_has_the_mean_score_for_its_error():
    scores = np.random.default_rng(3).uniform(0.4, 0.6, 50)
    assert is_binary(scores, np.zeros(50), "d:0.033") == pytest.approx(scores.mean(), abs=1e-4)


# One call against many


@pytest.mark.parametrize("estimator", FIFTEEN)
def test_a_batch_equals_its_samples_one_by_one(batch, estimator, monkeypatch):
    labels, scores = batch
    for notion, (score, outcome) in reduced(labels, scores).items():
        options = {"notion": notion, "estimator": estimator}
        single = [published.ece(y, s, **options) for y, s in zip(labels, scores, strict=True)]
        for cells in (1, 1000, 2**16):
            monkeypatch.setattr(published, "_CELLS", cells)
            got = published.errors(score, outcome, n_classes=3, **options)
            np.testing.assert_allclose(got, single, atol=1e-12, rtol=0)


@pytest.mark.parametrize("cells", [1, 1000, 2**16])
def test_several_estimators_at_once_equal_one_by_one(batch, cells, monkeypatch):
    monkeypatch.setattr(published, "_CELLS", cells)
    names = [*FIFTEEN, "d:0.0001", "d:1.0", "c:1", "ac:1", "a:200", "ac:200", "l:10"]
    inputs = reduced(*batch)
    inputs["binary"] = tuple(array[:, 1] for array in inputs["classwise"])
    for notion, (score, outcome) in inputs.items():
        chosen = [name for name in names if notion != "binary" or "sqrt" not in name]
        options = {"notion": notion, "n_classes": 3}
        expected = [published.errors(score, outcome, estimator=name, **options) for name in chosen]
        got = published.errors_many(score, outcome, estimators=tuple(chosen), **options)
        np.testing.assert_allclose(got, expected, atol=1e-11, rtol=0)


def test_several_estimators_at_once_leave_their_input_alone_and_may_be_none(batch):
    score, outcome = reduced(*batch)["confidence"]
    before = score.copy(), outcome.copy()
    options = {"notion": "confidence", "n_classes": 3}
    published.errors_many(score, outcome, estimators=FIFTEEN, **options)
    np.testing.assert_array_equal((score, outcome), before)
    assert published.errors_many(score, outcome, estimators=[], **options).shape == (0, 7)


def test_class_wise_is_the_mean_over_classes(batch):
    labels, scores = batch[0][1], batch[1][1]
    for estimator in ("l:10", "a:10", "c:10", "ac:10", "d:0.1"):
        each = [
            published.ece(labels, scores, notion="binary", pos_label=c, estimator=estimator) for c in range(3)
        ]
        mean = published.ece(labels, scores, notion="classwise", estimator=estimator)
        assert mean == pytest.approx(np.mean(each), abs=1e-12)


def test_long_short_and_bare_names_agree(batch):
    labels, scores = batch[0][0], batch[1][0]
    names = {"uniform": "l", "adaptive": "a", "uniform-convex": "c", "adaptive-convex": "ac", "density": "d"}
    for long, short in names.items():
        rule = "silverman" if short == "d" else "sqrt"
        spellings = (long, short, f"{long}:{rule}", f"{short}:{rule}")
        values = {published.ece(labels, scores, notion="confidence", estimator=name) for name in spellings}
        assert len(values) == 1


# Where the authors' code stops


@pytest.mark.parametrize("estimator", ["l", "a:sqrt", "uniform-convex", "ac:sqrt"])
def test_class_specific_sqrt_is_refused_as_theirs_stops(estimator):
    with pytest.raises(ValueError, match="stop with an error on 'sqrt'"):
        published.ece([0, 1], [[0.6, 0.4], [0.4, 0.6]], notion="binary", pos_label=1, estimator=estimator)


def test_no_correct_prediction_raises_alone_and_is_nan_in_a_batch():
    wrong = [[0.6, 0.4], [0.3, 0.7]]
    with pytest.raises(ValueError, match="agrees with no prediction"):
        published.ece([1, 0], wrong, notion="confidence", estimator="d:0.1")
    options = {"notion": "confidence", "estimator": "d:0.1", "n_classes": 2}
    first, second = published.errors([[0.6, 0.7], [0.6, 0.7]], [[0, 0], [0, 1]], **options)
    assert math.isnan(first)
    assert 0 < second < 1
    assert published.ece([1, 0], wrong, notion="confidence", estimator="l:10") == pytest.approx(0.65)


def test_float32_and_a_confidence_a_step_below_the_limit_are_computed(batch):
    labels, scores = batch[0][0], batch[1][0].astype(np.float32)
    below = np.nextafter(1 / 7, 0)
    for estimator in FIFTEEN:
        options = {"notion": "confidence", "estimator": estimator}
        exact = published.ece(labels, scores.astype(float), **options)
        assert published.ece(labels, scores, **options) == exact
        assert np.isfinite(confidence([below, 0.5, 0.6], [0, 1, 1], estimator, 7))


@pytest.mark.parametrize(
    ("y_true", "y_prob", "options", "message"),
    [
        ([1, 2], [[0.6, 0.4]] * 2, {}, r"y_true must be a column index 0\.\.1.*got 2"),
        (["a", "b"], [[0.6, 0.4]] * 2, {}, "y_true must be a column index.*got a"),
        ([0], [[0.6, 0.4]] * 2, {}, r"y_true and y_prob must have shapes.*got \(1,\) and \(2, 2\)"),
        ([0, 1], [0.6, 0.4], {}, r"y_true and y_prob must have shapes.*got \(2,\) and \(2,\)"),
        ([0, 1], [[0.6, math.nan]] * 2, {}, "scores must lie in .* got nan"),
        ([0, 1], [[1.6, 0.4]] * 2, {}, r"scores must lie in \[0\.5, 1\].* got 1\.6"),
        ([0, 1], [[0.2, 0.1]] * 2, {}, r"scores must lie in \[0\.5, 1\].* got 0\.2"),
        ([0, 1], [[0.6, 0.4]] * 2, {"notion": "binary"}, "pos_label must be a column index.*got None"),
        ([0, 1], [[0.6, 0.4]] * 2, {"notion": "binary", "pos_label": 2}, "pos_label must .* got 2"),
        ([0, 1], [[0.6, 0.4]] * 2, {"pos_label": 1}, "pos_label must .* else left out, got 1"),
        ([0, 1], [[0.6, 0.4]] * 2, {"notion": "canonical"}, "notion must be one of .* got 'canonical'"),
        ([0, 1], [[0.6, 0.4]] * 2, {"estimator": "x:10"}, "estimator must be one of .* got 'x:10'"),
        ([0, 1], [[0.6, 0.4]] * 2, {"estimator": "l:0"}, "an integer of at least 1 or 'sqrt', got 'l:0'"),
        ([0, 1], [[0.6, 0.4]] * 2, {"estimator": "l:1.5"}, "an integer of at least 1 or 'sqrt', got 'l:1.5'"),
        (
            [0, 1],
            [[0.6, 0.4]] * 2,
            {"estimator": "d:nan"},
            "a positive bandwidth or 'silverman', got 'd:nan'",
        ),
    ],
)
def test_bad_input_is_named(y_true, y_prob, options, message):
    with pytest.raises(ValueError, match=message):
        published.ece(y_true, y_prob, **{"notion": "confidence", "estimator": "l:10", **options})


def test_bad_batches_are_named():
    with pytest.raises(ValueError, match="3 axes for notion='classwise', got"):
        published.errors([[0.5]], [[1]], notion="classwise", estimator="l:10")
    with pytest.raises(ValueError, match=r"n_classes must be at least 2 .* got None"):
        published.errors([[0.5]], [[1]], notion="confidence", estimator="l:10")
    with pytest.raises(ValueError, match="outcomes must be 0 or 1, got 2"):
        published.errors([[0.5]], [[2]], notion="binary", estimator="l:10")
    with pytest.raises(ValueError, match="estimators must be a sequence of names, got 'ac'"):
        published.errors_many([[0.5]], [[1]], notion="binary", estimators="ac")
    with pytest.raises(ValueError, match=r"the parameter of estimator must be .* got 'a:0'"):
        published.errors_many([[0.5]], [[1]], notion="binary", estimators=["l:10", "a:0"])

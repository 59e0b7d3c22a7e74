"""Curves over thresholds: net benefit by its definition, the worst decision, and two models compared."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import norm
from scipy.stats import t as student

import calibrant
from calibrant import InputError, Sketch
from oracles import decisions as oracle
from weighing import weighing

AT = np.arange(1, 10) / 10


def sample(n=150, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.random(n)
    return (rng.random(n) < score**2).astype(int), score


def curves(found):
    names = ("value", "low", "high", "net_benefit", "treat_all", "recalibrated")
    return np.array([getattr(found, name) for name in names])


def test_net_benefit_of_ten_rows_by_hand():
    y = np.array([0, 0, 1, 0, 0, 1, 0, 1, 1, 1])
    s = np.array([0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 0.9])
    found = calibrant.regret_curve(y, s, thresholds=[0.2, 0.5, 0.75])
    # From .2 on 4 of the ill and 3 of the well, from .5 on 3 and 1, from .75 on 2 and none.
    expected = [0.4 - 0.3 / 4, 0.3 - 0.1, 0.2]
    np.testing.assert_allclose(found.net_benefit, expected, rtol=1e-12)
    np.testing.assert_allclose(found.treat_all, [0.5 - 0.5 / 4, 0.0, 0.5 - 0.5 * 3], atol=1e-12)


@pytest.mark.full
@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["plain", "counts", "weights"]))
def test_net_benefit_is_its_definition_by_a_loop(seed, kind):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    y, s = rng.integers(0, 2, n), np.round(rng.random(n), int(rng.integers(1, 6)))
    weight = {"plain": None, "counts": rng.integers(1, 4, n), "weights": rng.random(n) + 0.1}[kind]
    # Anywhere, and exactly at scores.
    at = np.unique(np.concatenate([rng.random(4), s[(s > 0) & (s < 1)][:4]]))
    found = calibrant.regret_curve(y, s, thresholds=at, **weighing(weight), rng=0)
    expected = [oracle.net_benefit(y, s, t, weight) for t in at]
    np.testing.assert_allclose(found.net_benefit, expected, rtol=1e-9, atol=1e-12)
    everyone = [oracle.net_benefit(y, np.ones(n), t, weight) for t in at]
    np.testing.assert_allclose(found.treat_all, everyone, rtol=1e-9, atol=1e-9)


@pytest.mark.full
def test_recalibrated_scores_bring_what_they_gain_on_other_rows():
    y, s = sample(400)
    found = calibrant.regret_curve(y, s, thresholds=AT, rng=0)
    for k in (2, 6):
        gained = (found.recalibrated - found.net_benefit)[k] * (1 - AT[k])
        assert gained == pytest.approx(calibrant.regret(y, s, AT[k], rng=0).recovered, rel=1e-9)


def test_the_thresholds_are_a_hundredth_apart_unless_named():
    y, s = sample(60)
    found = calibrant.regret_curve(y, s)
    np.testing.assert_array_equal(found.thresholds, np.arange(1, 100) / 100)
    named_ones = calibrant.regret_curve(y, s, thresholds=[0.5, 0.2, 0.5])
    np.testing.assert_array_equal(named_ones.thresholds, [0.2, 0.5])
    np.testing.assert_array_equal(calibrant.regret_curve(y, s, thresholds=0.3).thresholds, [0.3])


@pytest.mark.parametrize("thresholds", [[], [0, 0.5], [0.5, 1], [np.nan], [-0.1], ["a"], [[0.1], [2]]])
def test_thresholds_outside_are_refused(thresholds):
    y, s = sample(20)
    for ask in (
        lambda: calibrant.regret_curve(y, s, thresholds=thresholds),
        lambda: Sketch().update(y, s).regret_curve(thresholds=thresholds),
    ):
        with pytest.raises(InputError, match=r"^thresholds must"):
            ask()


def test_the_worst_decision_is_the_largest_regret_of_all():
    y, s = sample(400)
    found = calibrant.regret_curve(y, s)
    threshold, value, low, high = found.worst
    assert value == found.value.max() == found.value[found.thresholds == threshold][0]
    assert (low, high) == (found.low.max(), found.high.max())
    assert low <= value <= high
    assert str(found.worst).startswith(
        f"largest decision regret {value:.4f} per row ({low:.4f} to {high:.4f}) at"
    )
    assert str(found.worst) in repr(found)


def test_a_level_more_makes_the_band_wider():
    y, s = sample()
    inner, outer = (calibrant.regret_curve(y, s, thresholds=AT, level=level, rng=0) for level in (0.5, 0.99))
    assert (outer.low <= inner.low).all()
    assert (outer.high >= inner.high).all()
    np.testing.assert_array_equal(outer.value, inner.value)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_no_cut_gains_more_than_the_range_of_the_cumulated_residuals(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 25))
    s = np.round(rng.random(n) ** rng.uniform(0.2, 3), int(rng.integers(1, 5)))
    y = (rng.random(n) < rng.random(n)).astype(int)
    bound = calibrant.ece(y, s, estimator="kuiper")
    cuts = np.unique(np.concatenate([[0.0, 2.0], s]))
    for t in (*rng.random(3), float(np.clip(s[0], 0.01, 0.99))):
        gains = [oracle.gain_of_cut(y, s, t, cut) for cut in cuts]
        assert max(gains) <= bound + 1e-12


def test_the_bound_of_the_cumulated_residuals_is_reached():
    # All scores are just above the threshold, and no outcome is positive.
    s, y = np.full(20, 0.5), np.zeros(20, dtype=int)
    assert calibrant.ece(y, s, estimator="kuiper") == pytest.approx(0.5)
    assert oracle.gain_of_cut(y, s, 0.499, 2.0) == pytest.approx(0.499)


@pytest.mark.parametrize("n", [300, 8192])
def test_a_sketch_answers_as_the_rows_do(n):
    y, s = sample(n)
    at = np.arange(1, 16) / 16
    rows = calibrant.regret_curve(y, s, thresholds=at, rng=0)
    merged = Sketch().update(y[:100], s[:100]) + Sketch().update(y[100:], s[100:])
    for sketch in (Sketch().update(y, s), merged):
        found = sketch.regret_curve(thresholds=at, rng=0)
        np.testing.assert_allclose(curves(found), curves(rows), rtol=1e-9, atol=1e-12)
        assert found.n == rows.n


def test_counts_order_and_narrow_scores_are_no_matter():
    y, s = sample()
    s = s.astype(np.float32)
    count = np.random.default_rng(1).integers(1, 3, len(y))
    counted = calibrant.regret_curve(y, s, thresholds=AT, counts=count, other=1 - s, rng=0)
    order = np.random.default_rng(2).permutation(count.sum())
    y2, s2 = np.repeat(y, count)[order], np.repeat(s, count)[order].astype(np.float64)
    other = np.repeat(1 - s, count)[order].astype(np.float64)
    plain = calibrant.regret_curve(y2, s2, thresholds=AT, other=other, rng=0)
    np.testing.assert_allclose(curves(counted), curves(plain), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(np.array(counted.difference), np.array(plain.difference), rtol=1e-6)


def test_the_difference_of_two_models_is_that_of_their_net_benefits():
    y, s = sample(200)
    other = np.clip(s**2 + np.random.default_rng(1).normal(0, 0.05, len(s)), 0, 1)
    found = calibrant.regret_curve(y, s, other=other, thresholds=AT, rng=0)
    value, low, high = found.difference
    expected = [oracle.net_benefit(y, s, t) - oracle.net_benefit(y, other, t) for t in AT]
    np.testing.assert_allclose(value, expected, rtol=1e-9, atol=1e-12)
    assert (low < value).all()
    assert (value < high).all()
    wider = calibrant.regret_curve(y, s, other=other, thresholds=AT, level=0.99, rng=0).difference
    assert (wider.low < low).all()
    assert (wider.high > high).all()
    # The other way round all signs change.
    back = calibrant.regret_curve(y, other, other=s, thresholds=AT, rng=0).difference
    np.testing.assert_allclose(back.value, -value, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(back.high - back.low, high - low, rtol=0.1)


def test_a_model_does_not_differ_from_itself():
    y, s = sample(300)
    value, low, high = calibrant.regret_curve(y, s, other=s, thresholds=AT, rng=0).difference
    assert (value == 0).all()
    # Pairs of equal actions leave no noise but what so many rows cannot exclude.
    assert (high <= 10 * np.maximum(1, AT / (1 - AT)) / 300).all()
    np.testing.assert_allclose(low, -high)


def test_models_that_agree_mostly_are_told_apart_better_than_others():
    y, s = sample(400)
    near = np.clip(s + 0.02, 0, 1)
    far = np.random.default_rng(3).permutation(s)
    widths = [
        np.subtract(*calibrant.regret_curve(y, s, other=one, thresholds=AT, rng=0).difference[:0:-1])
        for one in (near, far)
    ]
    assert (widths[0] < 0.6 * widths[1]).all()


def test_weights_of_a_difference_have_no_scale():
    y, s = sample()
    weight = np.random.default_rng(1).random(len(y)) + 0.2
    one, other = (
        calibrant.regret_curve(y, s, other=s**2, thresholds=AT, sample_weight=scale * weight, rng=0)
        for scale in (1.0, 1e-4)
    )
    expected = [oracle.net_benefit(y, s, t, weight) - oracle.net_benefit(y, s**2, t, weight) for t in AT]
    np.testing.assert_allclose(one.difference.value, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(np.array(other.difference), np.array(one.difference), rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(curves(other), curves(one), rtol=1e-6, atol=1e-12)


def test_clusters_of_a_difference():
    y, s = sample(200)
    plain = calibrant.regret_curve(y, s, other=s**2, thresholds=AT, rng=0)
    alone = calibrant.regret_curve(y, s, other=s**2, thresholds=AT, cluster=np.arange(200), rng=0)
    np.testing.assert_allclose(curves(alone), curves(plain), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(alone.difference.value, plain.difference.value)
    # Student's quantile is a little wider.
    width, other = (np.subtract(*found.difference[:0:-1]) for found in (plain, alone))
    np.testing.assert_allclose(other, width, rtol=0.02)
    # Rows four times over are no news.
    y4, s4, cluster = (np.repeat(part, 4) for part in (y, s, np.arange(200)))
    told = calibrant.regret_curve(y4, s4, other=s4**2, thresholds=AT, cluster=cluster, rng=0).difference
    hidden = calibrant.regret_curve(y4, s4, other=s4**2, thresholds=AT, rng=0).difference
    np.testing.assert_allclose(told.value, plain.difference.value)
    np.testing.assert_allclose(np.subtract(*told[:0:-1]), width, rtol=0.02)
    assert (np.subtract(*hidden[:0:-1]) < 0.6 * width).all()


def test_a_difference_among_few_clusters_is_as_wide_as_a_cluster_bootstrap_says():
    rng = np.random.default_rng(0)
    clusters, size = 10, 300
    cluster = np.repeat(np.arange(clusters), size)
    x = rng.normal(-1, 1.3, cluster.size)
    y = (rng.random(x.size) < expit(x + rng.normal(0, 0.5, clusters)[cluster])).astype(int)
    s, other = expit(x), expit(0.8 * x + rng.normal(-0.2, 0.6, x.size))
    at = np.array([0.1, 0.3, 0.5])
    found = calibrant.regret_curve(y, s, other=other, thresholds=at, cluster=cluster, rng=0).difference
    each = np.array([((s >= t) * 1.0 - (other >= t)) * np.where(y == 1, 1.0, -t / (1 - t)) for t in at])
    sums = np.array([each[:, cluster == k].sum(axis=1) for k in range(clusters)])
    drawn = sums[rng.integers(0, clusters, (4000, clusters))].sum(axis=1) / cluster.size
    # Student's quantile of nine degrees of freedom is 2.26, and the band holds three thresholds at once.
    ratio = (found.high - found.low) / 2 / drawn.std(axis=0)
    assert ((ratio > 2.26) & (ratio < 3.7)).all()
    # Models that never differ have no more noise than a few rows.
    same = calibrant.regret_curve(y, s, other=s, thresholds=at, cluster=cluster, rng=0).difference
    assert (same.high < 10 / cluster.size).all()


def test_the_other_model_may_have_columns():
    y, s = sample(60)
    other = np.stack([1 - s**2, s**2], axis=1)
    one, two = (calibrant.regret_curve(y, s, other=p, thresholds=AT, rng=0) for p in (s**2, other))
    np.testing.assert_allclose(np.array(two.difference), np.array(one.difference))


def test_what_is_wrong_with_the_other_model_is_said_of_it():
    y, s = sample(20)
    with pytest.raises(InputError, match="other"):
        calibrant.regret_curve(y, s, other=s + 1)
    with pytest.raises(InputError, match="other"):
        calibrant.regret_curve(y, s, other=s[:-1])


def test_many_classes_need_the_one_that_is_asked_about():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 40)
    y = rng.integers(0, 3, 40)
    for ask in (lambda: calibrant.regret_curve(y, p), lambda: calibrant.best_threshold(y, p, 0.3)):
        with pytest.raises(InputError, match=r"pos_label must name one of \[0, 1, 2\], the class that"):
            ask()
    found = calibrant.regret_curve(y, p, pos_label=1, thresholds=AT, rng=0)
    np.testing.assert_allclose(
        found.net_benefit, [oracle.net_benefit(y == 1, p[:, 1], t) for t in AT], rtol=1e-9, atol=1e-12
    )
    assert found.label == 1


@pytest.mark.parametrize(
    ("y", "s"),
    [
        ([1], [0.3]),
        (np.zeros(30, dtype=int), np.linspace(0, 1, 30)),
        (np.ones(30, dtype=int), np.linspace(0, 1, 30)),
        (np.arange(30) % 2, np.full(30, 0.4)),
        (np.arange(30) % 2, (np.arange(30) % 3 > 0).astype(float)),
    ],
)
def test_odd_samples_have_a_curve(y, s):
    found = calibrant.regret_curve(y, s, thresholds=AT, other=s, rng=0)
    assert np.isfinite(curves(found)).all()
    assert ((found.low >= 0) & (found.low <= found.value) & (found.value <= found.high)).all()
    assert (found.high <= np.maximum(AT, 1 - AT) + 1e-12).all()


def test_the_table_and_what_is_stored():
    y, s = sample(60)
    found = calibrant.regret_curve(y, s, other=s**2, rng=0)
    about, table = str(found).split("\n\n")
    lines = table.splitlines()
    assert lines[0].split()[:4] == ["threshold", "regret", "95", "%"]
    assert len(lines) == 1 + 11
    assert about.startswith("largest decision regret  0.")
    assert about.endswith("60 rows")
    few = calibrant.regret_curve(y, s, thresholds=[0.2, 0.4], rng=0)
    assert [line.split()[0] for line in str(few).splitlines()[-2:]] == ["0.2", "0.4"]
    stored = json.loads(json.dumps(found.to_dict()))
    assert stored["thresholds"] == found.thresholds.tolist()
    assert stored["worst"] == found.worst._asdict()
    assert stored["difference"]["high"] == found.difference.high.tolist()
    assert stored["label"] == 1
    assert few.to_dict()["difference"] is None


# Net benefit of acting on family history, and of always acting, among 750 men of whom 105 have cancer, as
# the R package dcurves gives it for its example data (r_dca_famhistory.csv in the repository of its Python
# counterpart): 24 true positives, 91 false ones.
PUBLISHED = {
    0.05: (0.025614035087719297, 0.09473684210526317),
    0.1: (0.018518518518518517, 0.04444444444444445),
    0.2: (0.0016666666666666635, -0.07499999999999998),
    0.3: (-0.02000000000000001, -0.2285714285714286),
    0.6: (-0.15, -1.15),
}


def test_net_benefit_is_the_published_one_of_family_history():
    history = np.repeat([1.0, 1.0, 0.0, 0.0], [24, 91, 105 - 24, 645 - 91])
    cancer = np.repeat([1, 0, 1, 0], [24, 91, 105 - 24, 645 - 91])
    curve = calibrant.regret_curve(cancer, history, thresholds=list(PUBLISHED), rng=0)
    found = np.stack([curve.net_benefit, curve.treat_all], axis=1)
    np.testing.assert_allclose(found, list(PUBLISHED.values()), rtol=0, atol=1e-12)


# -- net benefits with intervals --


@pytest.mark.parametrize("kind", ["plain", "counts", "weights", "clusters"])
def test_net_benefits_and_their_errors_are_those_of_loops(kind):
    y, s = sample(900)
    rng = np.random.default_rng(1)
    s = np.round(s, 2)
    weight = {"counts": rng.integers(1, 4, 900), "weights": rng.random(900) + 0.5}.get(kind)
    options = {"cluster": np.arange(900) // 3} if kind == "clusters" else {}
    found = calibrant.net_benefit(y, s, AT, **weighing(weight), **options)
    everyone, deviate = np.ones(900), norm.ppf(0.975)
    if kind == "clusters":
        deviate = student.ppf(0.975, 299)
    more = {"weight": weight, "counts": kind == "counts", **options}
    for k, at in enumerate(AT):
        for part, score, other in (
            (found.model, s, None),
            (found.treat_all, everyone, None),
            (found.minus_all, s, everyone),
        ):
            value = oracle.net_benefit(y, score, at, weight)
            value -= 0.0 if other is None else oracle.net_benefit(y, other, at, weight)
            assert part.value[k] == pytest.approx(value, abs=1e-12)
            assert part.high[k] - part.value[k] == pytest.approx(part.value[k] - part.low[k])
            error = (part.high[k] - part.value[k]) / deviate
            expected = oracle.net_benefit_error(y, score, at, other=other, **more)
            # A floor for samples where few rows decide: two rows of the largest contribution.
            w = np.ones(900) if weight is None else np.asarray(weight, dtype=float)
            squares = w.sum() if kind == "counts" else (w**2).sum()
            floor = np.sqrt(2) * max(1.0, at / (1 - at)) * squares / w.sum() ** 2
            if kind == "clusters":  # times their design effect
                assert expected <= error <= np.hypot(expected, 1.5 * floor)
            else:
                assert error == pytest.approx(np.hypot(expected, floor), rel=1e-9)


def test_intervals_of_net_benefits_hold_possible_values_only():
    at = np.array([0.1, 0.75])
    for outcome in (0, 1):
        found = calibrant.net_benefit([outcome] * 20, [0.9] * 20, at)
        for part, least, most in (
            (found.model, -at / (1 - at), 1),
            (found.treat_all, -at / (1 - at), 1),
            (found.minus_all, -1, at / (1 - at)),
        ):
            assert np.all((least <= part.low) & (part.low <= part.value))
            assert np.all((part.value <= part.high) & (part.high <= most))
        np.testing.assert_allclose(found.model.value, outcome - (1 - outcome) * at / (1 - at))


def test_the_error_of_treating_all_is_that_of_a_share():
    y, s = sample(4000)
    at = np.array([0.1, 0.3])
    found = calibrant.net_benefit(y, s, at, level=0.9).treat_all
    # p - (1 - p) t / (1 - t) = (p - t) / (1 - t)
    p = y.mean()
    np.testing.assert_allclose(found.value, (p - at) / (1 - at), rtol=1e-12)
    error = np.sqrt(p * (1 - p) / 4000) / (1 - at)
    np.testing.assert_allclose(found.high - found.value, norm.ppf(0.95) * error, rtol=0.005)


def test_net_benefits_are_those_of_the_curve_and_of_its_difference():
    y, s = sample(500)
    cluster = np.arange(500) // 2
    found = calibrant.net_benefit(y, s, AT, simultaneous=True, cluster=cluster)
    curve = calibrant.regret_curve(y, s, thresholds=AT, other=np.ones(500), cluster=cluster)
    np.testing.assert_allclose(found.model.value, curve.net_benefit, atol=1e-12)
    np.testing.assert_allclose(found.treat_all.value, curve.treat_all, atol=1e-12)
    np.testing.assert_array_equal(np.array(found.minus_all), np.array(curve.difference))
    alone = calibrant.net_benefit(y, s, AT, cluster=cluster)
    assert (alone.model.low > found.model.low).all()
    one = (calibrant.net_benefit(y, s, 0.3, simultaneous=each, cluster=cluster) for each in (False, True))
    np.testing.assert_array_equal(*(np.array(each.model) for each in one))


@pytest.mark.parametrize("weights", [False, True])
def test_net_benefits_of_a_sketch_are_those_of_the_rows(weights):
    y, s = sample(800)
    weight = np.random.default_rng(1).random(800) + 0.5 if weights else None
    at = np.arange(1, 16) / 16
    rows = calibrant.net_benefit(y, s, at, sample_weight=weight)
    found = calibrant.net_benefit(Sketch().update(y, s, sample_weight=weight), thresholds=at)
    for name in ("model", "treat_all", "minus_all"):
        one, other = getattr(found, name), getattr(rows, name)
        np.testing.assert_allclose(one.value, other.value, atol=1e-9)
        # A sketch does not know the squared weights of each outcome.
        np.testing.assert_allclose(one.high - one.low, other.high - other.low, rtol=0.05 if weights else 1e-9)


@pytest.mark.full
@pytest.mark.parametrize("clustered", [False, True])
def test_intervals_of_net_benefits_hold_the_true_values(clustered):
    # Scores p in clusters that share a shift of the probability; true values from a large sample.
    def drawn(rng, n):
        shift = np.repeat(rng.normal(0, 0.7, n // 5), 5) if clustered else 0.0
        score = rng.beta(1, 6, n)
        return rng.random(n) < expit(np.log(score / (1 - score)) + shift), score

    at = np.array([0.05, 0.2])
    truth = calibrant.net_benefit(*drawn(np.random.default_rng(1), 1_000_000), at)
    held = []
    for seed in range(400):
        y, s = drawn(np.random.default_rng([2, seed]), 500)
        found = calibrant.net_benefit(y, s, at, cluster=np.arange(500) // 5 if clustered else None)
        held.append([
            (getattr(found, name).low <= getattr(truth, name).value)
            & (getattr(truth, name).value <= getattr(found, name).high)
            for name in ("model", "treat_all", "minus_all")
        ])  # fmt: skip
    coverage = np.mean(held, axis=0)
    # The standard error is 0.011.
    assert (coverage >= 0.92).all()
    assert (coverage <= 0.98).all()


def test_the_table_of_net_benefits_has_three_strategies_at_each_threshold():
    y, s = sample(300)
    found = calibrant.net_benefit(y, s, [0.1, 0.5])
    table, about = str(found).split("\n\n")
    assert [line.split()[1] for line in table.splitlines()[1:]] == ["by", "all", "none"] * 2
    assert max(map(len, table.splitlines())) <= 80
    assert "for each threshold" in about
    assert "simultaneous for all" in str(calibrant.net_benefit(y, s, [0.1, 0.5], simultaneous=True))
    frame = found.to_frame()
    assert frame["treated"].to_list() == ["model", "all", "none"] * 2
    assert frame["net_benefit"].to_list()[:2] == [found.model.value[0], found.treat_all.value[0]]
    assert frame["difference"].to_list()[4:] == [found.minus_all.value[1], found.model.value[1]]
    assert frame["difference_high"].to_list()[1] == found.minus_all.high[0]
    stored = found.to_dict()
    stored["minus_all"]["low"] = [0.0]
    with pytest.raises(InputError, match=r"minus_all\.low"):
        calibrant.NetBenefit.from_json(json.dumps(stored))


def test_no_more_is_gained_than_was_spent_where_few_rows_decide():
    """At extreme thresholds a fitted gain may exceed the cost of all rows that it is about."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        odds = rng.normal(-0.5, 2.0, 500)
        outcome, score = rng.random(500) < expit(odds), expit(3 * odds)
        curve = calibrant.regret_curve(outcome, score, thresholds=np.array([0.02, 0.5, 0.9, 0.98, 0.99]))
        cost = (1 - curve.thresholds) * (outcome.mean() - curve.net_benefit)
        assert (curve.value <= cost + 1e-12).all()
        # The net benefit of the best decisions at 0.99, if it is known how likely each outcome is, is 0.002.
        assert curve.recalibrated[-1] < 0.03

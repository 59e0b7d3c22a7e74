"""Audits of segments: against loops over rows, exact small cases, and properties."""

import numpy as np
import pytest
from scipy import stats

import calibrant
from calibrant import inputs
from calibrant.inference.segments import EquivalentCount, _RowCumulants, _score_bins
from oracles import segments as oracle

SETTINGS = {"n_resamples": 999}


def data_of(n=1500, seed=0, odd=1.0, shift=0.0):
    rng = np.random.default_rng(seed)
    columns = {
        "country": rng.choice(["DE", "FR", "IT"], n, p=[0.6, 0.3, 0.1]),
        "device": rng.choice(["app", "web"], n),
        "tier": rng.integers(0, 3, n),
    }
    score = rng.beta(1, 6, n)
    true = 1 / (1 + np.exp(-np.log(score / (1 - score)) - shift))
    chosen = (columns["country"] == "IT") & (columns["device"] == "app")
    true = np.where(chosen, np.minimum(odd * true, 1), true)
    return rng.random(n) < true, score, columns


def keyed(audit):
    return {tuple(zip(each.columns, each.values, strict=True)): each for each in audit.segments}


def test_gaps_beyond_the_common_curve_are_those_of_a_loop_over_rows():
    outcome, score, columns = data_of(1500, shift=0.5)
    weight = np.random.default_rng(2).random(1500) + 0.2
    audit = calibrant.audit(outcome, score, columns, depth=1, sample_weight=weight, **SETTINGS)
    curve = calibrant.Calibrator().fit(score, outcome, sample_weight=weight).predict_proba(score)
    rows = _RowCumulants.of(curve, outcome, weight, counts=False)
    information = weight.sum() * (weight * curve * (1 - curve)).sum() / (weight**2).sum()
    bins, size = _score_bins(score, rows.variance, information)
    assert size > 1
    loops, limits = oracle.members(columns, 1, 30), []
    for key, each in keyed(audit).items():
        total = weight[loops[key]].sum()
        residual, variance, third = oracle.beyond(loops[key], outcome, curve, bins.tolist(), weight)
        assert each.difference.value == pytest.approx(residual / total, abs=1e-6)
        limits.append(each.difference.expected * total / np.sqrt(variance))
        unit = sum(weight[i] ** 3 * curve[i] * (1 - curve[i]) for i in loops[key])
        unit /= sum(weight[i] ** 2 * curve[i] * (1 - curve[i]) for i in loops[key])
        tail = stats.norm.cdf(-limits[-1])
        rate = (1 - third / variance / unit) / 2
        trials = variance / unit**2 / rate / (1 - rate)
        count = trials * rate + residual / unit
        low = (stats.beta(count + 0.5, trials - count + 0.5).ppf(tail) - rate) * trials * unit / total
        assert each.difference.low == pytest.approx(low, abs=1e-4)
    assert np.ptp(limits) < 1e-4


def test_normal_scores_of_counts_are_those_of_the_binomial():
    rate, size = 0.1, 40
    variance = size * rate * (1 - rate)
    for count in (0, 1, 4, 12, 40):
        z = oracle.normal_score(count - size * rate, variance, variance * (1 - 2 * rate))
        values = [
            np.array([each]) for each in (count - size * rate, variance, variance * (1 - 2 * rate), 1.0)
        ]
        test = EquivalentCount.of(*values, values[1])
        assert test.score(test.total)[0] == pytest.approx(z, rel=1e-6)
        # Large for the largest count: not cut off where one minus a tail is zero.
        middle = stats.binom.cdf(count - 1, size, rate) + stats.binom.pmf(count, size, rate) / 2
        assert abs(z - stats.norm.ppf(middle)) < 0.3 if count < 40 else z > 8


def compared(first, second, names=lambda key: key, tolerance=0.04):
    others = {names(key): each for key, each in keyed(second).items()}
    assert {*keyed(first)} == {*others}
    for key, each in keyed(first).items():
        other = others[key]
        assert (each.rows, *each.gap[:1], *each.difference[:1]) == pytest.approx(
            (other.rows, *other.gap[:1], *other.difference[:1]), abs=1e-9
        )
        assert each.p_value == pytest.approx(other.p_value, abs=tolerance)
        assert each.p_difference == pytest.approx(other.p_difference, abs=tolerance)


def test_too_many_segments_are_refused(monkeypatch):
    outcome, score, columns = data_of(300)
    monkeypatch.setattr(inputs.segments, "MOST_SEGMENTS", 10)
    with pytest.raises(calibrant.InputError, match=r"have at most 10 segments.*lower depth"):
        calibrant.audit(outcome, score, columns)


def test_many_rows_are_thinned_for_correlations(monkeypatch):
    from calibrant.inference import segments

    outcome, score, columns = data_of(5000, odd=1.5)
    audit = calibrant.audit(outcome, score, columns)
    monkeypatch.setattr(segments, "PRODUCTS", 6**2 * 1500)
    compared(audit, calibrant.audit(outcome, score, columns))


def test_many_clusters_are_thinned_for_correlations(monkeypatch):
    from calibrant.inference import segments

    outcome, score, columns = data_of(5000, odd=1.5)
    cluster = np.random.default_rng(0).integers(0, 1500, 5000)
    audit = calibrant.audit(outcome, score, columns, cluster=cluster)
    monkeypatch.setattr(segments, "CLUSTER_PRODUCTS", 500 * 100**2)
    thinned = calibrant.audit(outcome, score, columns, cluster=cluster)
    compared(audit, thinned)
    assert thinned.correlation == audit.correlation

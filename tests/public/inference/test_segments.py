"""Audits of segments: against loops over rows, exact small cases, and properties."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import calibrant
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


@pytest.fixture(scope="module")
def shifted():
    """All scores are too low, and those of one segment are far too low."""
    outcome, score, columns = data_of(6000, odd=2.5, shift=0.5)
    return calibrant.audit(outcome, score, columns, **SETTINGS)


@pytest.mark.parametrize("weighting", ["none", "counts", "sample_weight"])
def test_gaps_are_those_of_a_loop_over_rows(weighting):
    outcome, score, columns = data_of()
    rng = np.random.default_rng(1)
    counts, weights = rng.integers(1, 4, 1500), rng.random(1500) + 0.2
    weight = {"none": np.ones(1500), "counts": counts, "sample_weight": weights}
    given = {} if weighting == "none" else {weighting: weight[weighting]}
    audit = calibrant.audit(outcome, score, columns, depth=3, **given, **SETTINGS)
    least = 10 if weighting == "counts" else 30
    loops, found = oracle.members(columns, 3, least), keyed(audit)
    if weighting != "counts":  # whose rows count as often as they stand for
        assert {*loops} == {*found}
    for key, each in found.items():
        observed, expected, residual, variance, _ = oracle.sums(
            loops[key], outcome, score, weight[weighting], counts=weighting == "counts"
        )
        assert (each.observed, each.expected) == pytest.approx((observed, expected))
        assert each.gap.value == pytest.approx(residual / weight[weighting][loops[key]].sum())
        ratio = each.gap.expected * weight[weighting][loops[key]].sum() / np.sqrt(variance)
        assert 2.5 < ratio < 4.5
        assert ratio == pytest.approx(
            audit.segments[0].gap.expected
            * weight[weighting][rows := loops[next(iter(found))]].sum()
            / np.sqrt(oracle.sums(rows, outcome, score, weight[weighting], counts=weighting == "counts")[3])
        )


def test_p_values_of_two_separate_segments_are_exact():
    """All rows of a segment have one score, so that its outcomes are a binomial count."""
    score = np.repeat([0.05, 0.3], [60, 40])
    outcome = np.concatenate([np.arange(60) < 7, np.arange(40) < 9])
    audit = calibrant.audit(outcome, score, np.repeat(["a", "b"], [60, 40]), depth=1)
    null = []
    for size, rate in ((60, 0.05), (40, 0.3)):
        count, variance = np.arange(size + 1), size * rate * (1 - rate)
        z = oracle.normal_score(count - size * rate, variance, variance * (1 - 2 * rate))
        null.append((np.abs(z), stats.binom.pmf(count, size, rate)))
    ordered = sorted(audit.segments, key=lambda each: each.values)
    for each, (z, _), count in zip(ordered, null, (7, 9), strict=True):
        below = [mass[other < z[count] - 1e-9].sum() for other, mass in null]
        assert each.p_value == pytest.approx(1 - below[0] * below[1], abs=0.015)


def test_the_null_distribution_is_that_of_simulated_rows():
    rng = np.random.default_rng(3)
    columns = {"a": rng.integers(0, 4, 600), "b": rng.integers(0, 5, 600)}
    score = rng.beta(0.5, 8, 600)
    loops = oracle.members(columns, 2, 10)
    largest = oracle.largest_scores(loops.values(), score, 2000, rng)
    audit, limits = calibrant.audit(rng.random(600) < score, score, columns, min_rows=10), []
    for key, each in keyed(audit).items():
        variance = (score[loops[key]] * (1 - score[loops[key]])).sum()
        limits.append(each.gap.expected * len(loops[key]) / np.sqrt(variance))
    assert np.ptp(limits) < 1e-6
    assert 0.035 <= np.mean(largest > limits[0] + 1e-6) <= 0.065  # a standard error of 0.005


def test_the_segment_that_differs_comes_first_although_all_scores_are_off(shifted):
    first = shifted.segments[0]
    assert dict(zip(first.columns, first.values, strict=True)) == {"country": "IT", "device": "app"}
    assert first.difference.low > 0
    assert first.p_difference == pytest.approx(0.001)
    assert len(shifted.miscalibrated) > len(shifted.segments) / 2
    assert len(shifted.different) < len(shifted.segments) / 2


def test_pooled_gaps_lie_between_the_common_gap_and_the_gap(shifted):
    for each in shifted.segments:
        common = each.gap.value - each.difference.value
        low, high = sorted((common, each.gap.value))
        assert low - 1e-9 <= each.pooled <= high + 1e-9
    pooled = [abs(each.pooled - each.gap.value + each.difference.value) for each in shifted.segments]
    assert np.mean(pooled) < np.mean([abs(each.difference.value) for each in shifted.segments])


def test_a_segment_is_rejected_where_its_interval_excludes_zero(shifted):
    for each in shifted.segments:
        for gap, p in ((each.gap, each.p_value), (each.difference, each.p_difference)):
            assert (gap.low > 0 or gap.high < 0) == (p <= 0.05)


def compared(first, second, names=lambda key: key, tolerance=1e-9):
    others = {names(key): each for key, each in keyed(second).items()}
    assert {*keyed(first)} == {*others}
    for key, each in keyed(first).items():
        other = others[key]
        assert (each.rows, *each.gap[:1], *each.difference[:1]) == pytest.approx(
            (other.rows, *other.gap[:1], *other.difference[:1]), abs=1e-9
        )
        assert each.p_value == pytest.approx(other.p_value, abs=tolerance)
        assert each.p_difference == pytest.approx(other.p_difference, abs=tolerance)


def test_the_order_of_rows_and_columns_and_the_names_of_values_do_not_matter():
    outcome, score, columns = data_of(odd=1.5)
    audit = calibrant.audit(outcome, score, columns)
    order = np.random.default_rng(4).permutation(len(score))
    moved = calibrant.audit(outcome[order], score[order], {key: each[order] for key, each in columns.items()})
    compared(audit, moved)
    turned = calibrant.audit(outcome, score, dict(reversed(columns.items())))
    compared(audit, turned, lambda key: tuple(sorted(key, key=lambda pair: [*columns].index(pair[0]))))
    names = {"DE": "z", "FR": "y", "IT": "x"}
    other = columns | {"country": [names[value] for value in columns["country"]]}
    renamed = calibrant.audit(outcome, score, other)
    back = {new: old for old, new in names.items()}
    compared(audit, renamed, lambda key: tuple((name, back.get(value, value)) for name, value in key))


def test_counts_are_repeated_rows():
    outcome, score, columns = data_of(500)
    counts = np.random.default_rng(5).integers(0, 4, 500)
    repeated = np.repeat(np.arange(500), counts)
    audit = calibrant.audit(outcome, score, columns, counts=counts)
    others = calibrant.audit(outcome[repeated], score[repeated], {k: v[repeated] for k, v in columns.items()})
    compared(audit, others)


def test_the_scale_of_weights_does_not_matter():
    outcome, score, columns = data_of(500)
    weight = np.random.default_rng(5).random(500)
    audits = [calibrant.audit(outcome, score, columns, sample_weight=weight * factor) for factor in (1, 1000)]
    compared(*audits)


def test_seeds_reproduce():
    outcome, score, columns = data_of(500)
    first, again = (calibrant.audit(outcome, score, columns, rng=7, **SETTINGS) for _ in range(2))
    assert first == again
    other = calibrant.audit(outcome, score, columns, rng=None, **SETTINGS)
    assert calibrant.audit(outcome, score, columns, rng=other.seed, **SETTINGS) == other


def test_missing_values_and_intervals_of_numbers_are_segments():
    rng = np.random.default_rng(0)
    age = rng.normal(40, 12, 500)
    age[:50] = np.nan
    few = np.where(np.arange(500) < 60, None, rng.integers(0, 2, 500).astype(object))
    text = np.array(["a", None, "b", "c", np.nan], dtype=object)[rng.integers(0, 5, 500)]
    y, p = rng.random(500) < 0.3, np.full(500, 0.3)
    audit = calibrant.audit(y, p, {"age": age, "few": few, "text": text}, depth=1, **SETTINGS)
    rows = {each.name: each.rows for each in audit.segments}
    assert rows["age = missing"] == 50
    assert rows["few = missing"] == 60
    assert {name.split(" = ")[1] for name in rows if name.startswith("few")} == {"0", "1", "missing"}
    assert rows["text = missing"] == sum(pd.isna(text))
    cuts = sorted(float(name.split()[2]) for name in rows if name.startswith("age = ") and "to" in name)
    assert len(cuts) == 3
    assert rows[f"age < {cuts[0]:g}"] == (age < cuts[0]).sum()
    assert all(80 <= rows[name] <= 100 for name in rows if name.startswith("age") and "missing" not in name)
    dates = np.array(["2026-05-04", "NaT"], "datetime64[D]")[rng.integers(0, 2, 500)]
    audit = calibrant.audit(y, p, {"day": dates}, **SETTINGS)
    assert {each.name for each in audit.segments} == {"day = 2026-05-04", "day = missing"}


@pytest.mark.parametrize("notion", ["confidence", "top:2"])
def test_notions_with_one_score_a_row(notion):
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 600)
    label = (rng.random((600, 1)) > p.cumsum(axis=1)).sum(axis=1)
    group = rng.choice(["a", "b"], 600)
    audit = calibrant.audit(label, p, {"group": group}, notion=notion, **SETTINGS)
    top = np.argsort(-p, axis=1)[:, : 1 if notion == "confidence" else 2]
    right, sure = (top == label[:, None]).any(axis=1), np.take_along_axis(p, top, axis=1).sum(axis=1)
    pairs = calibrant.audit(right, sure, {"group": group}, notion="correctness", **SETTINGS)
    for each, other in zip(audit.segments, pairs.segments, strict=True):
        assert each.gap[0] == pytest.approx(other.gap[0])
        assert each.gap[0] == pytest.approx((right - sure)[group == each.values[0]].mean())
    assert audit.label is None


def test_clusters_widen_the_intervals():
    outcome, score, columns = data_of(400)
    five = np.repeat(np.arange(400), 5)
    rows = outcome[five], score[five], {key: each[five] for key, each in columns.items()}
    alone, clustered = (calibrant.audit(*rows, cluster=cluster, **SETTINGS) for cluster in (None, five))
    single = calibrant.audit(outcome, score, columns, min_rows=6, **SETTINGS)
    # A posterior mean, so that it is less than one.
    assert clustered.correlation > 0.85
    assert clustered.clusters == 400
    audits = [keyed(audit) for audit in (alone, clustered, single)]
    keys = {*audits[0]} & {*audits[2]}
    widths = [np.median([found[key].gap.high - found[key].gap.low for key in keys]) for found in audits]
    assert widths[1] == pytest.approx(widths[2], rel=0.1)
    assert widths[0] < 0.6 * widths[1]
    independent = calibrant.audit(outcome, score, columns, cluster=np.arange(400) // 2, **SETTINGS)
    assert independent.correlation < 0.2


def test_scores_of_zero_and_one_and_a_single_outcome():
    columns = {"a": np.repeat(["x", "y"], 100)}
    for score in (np.zeros(200), np.ones(200), np.repeat([0.0, 1.0], 100)):
        audit = calibrant.audit(np.zeros(200, int), score, columns, **SETTINGS)
        for each in audit.segments:
            assert each.gap.value == pytest.approx(-each.expected)
            assert (each.p_value < 0.01) == (each.expected == 1)
            assert each.gap.low <= each.gap.value <= each.gap.high


def test_results_as_text_json_frame_and_markdown(shifted):
    assert calibrant.SegmentAudit.from_json(shifted.to_json()) == shifted
    assert str(shifted).startswith(f"{len(shifted.miscalibrated)} of {len(shifted.segments)} segments are")
    assert "country = IT, device = app: scores are too low by" in " ".join(str(shifted).split())
    assert all(len(line) <= 80 for line in str(shifted).splitlines())
    frame = shifted.to_frame()
    assert len(frame) == len(shifted.segments)
    assert frame["country"][0] == "IT"
    assert frame["tier"][0] is None
    assert frame["difference"][0] == shifted.segments[0].difference.value
    assert shifted.to_markdown().count("\n") == len(shifted.segments) + 2
    assert "SegmentAudit(" in repr(shifted)
    values = json.loads(shifted.to_json())
    values["segments"][0]["gap"]["low"] = 0.9
    with pytest.raises(calibrant.InputError, match=r"segments\[0\].gap"):
        calibrant.SegmentAudit.from_dict(values)


def test_the_verdict_is_that_of_the_intervals(shifted):
    widest = max(max(-each.gap.low, each.gap.high) for each in shifted.segments)
    farthest = max(max(each.gap.low, -each.gap.high) for each in shifted.segments)
    assert shifted.verdict(widest)[0] == "pass"
    assert shifted.verdict((widest + farthest) / 2)[0] == "inconclusive"
    assert shifted.verdict(farthest - 1e-6)[0] == "fail"
    assert "country = IT" in shifted.verdict(farthest - 1e-6)[1]


def test_the_page_and_the_picture_show_the_worst_segments(shifted, tmp_path):
    shifted.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "country = IT, device = app" in page
    assert page.count('<tr><th scope="row">') == len(shifted.segments)
    ax = shifted.plot(most=5)
    assert ax.get_yticklabels()[0].get_text().startswith("country = IT")
    assert len(ax.get_yticklabels()) == 5
    named = data_of(200)[2] | {"country": np.repeat(["<b>", "&"], 100)}
    odd = calibrant.audit(*data_of(200)[:2], named, **SETTINGS)
    assert "<b>, " not in odd.to_html()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"depth": 0}, "depth must be an integer of at least 1"),
        ({"depth": 1.5}, "depth must be an integer"),
        ({"min_rows": 5000}, r"segments must have a segment of 5000 rows or more"),
        ({"segments": {}}, "segments must name at least one column"),
        ({"segments": {"a": [1, 2]}}, r"segments\['a'\] must hold one value for each of 300 rows"),
        ({"segments": {"gap": ["a", "b"] * 150}}, "segments must have other names"),
        ({"segments": {"a": [[1]] * 300}}, "segments"),
        ({"segments": {"a": ["x"] * 300}}, "segments must have a segment of 30 rows or more, but not of all"),
        ({"segments": {"a": np.arange(300).astype(str)}, "min_rows": 31}, "segments must have a segment"),
        ({"segments": np.ones((300, 2))}, r"segments\['group'\] must hold one value"),
        ({"notion": "classwise"}, "notion must compare one score of each row"),
        ({"notion": "canonical"}, "notion"),
        ({"n_resamples": 10}, "n_resamples must be an integer of at least 99"),
        ({"level": 1.5}, "level"),
        ({"rng": -1}, "rng"),
        ({"cluster": np.zeros(300)}, "cluster must hold at least two clusters"),
        ({"y_true": None}, "y_true"),
        ({"colour": 1}, "colour"),
    ],
)
def test_bad_input_is_refused(change, message):
    outcome, score, columns = data_of(300)
    scores = np.stack([1 - score, score], axis=1) if "notion" in change else score
    arguments = {"y_true": outcome, "y_prob": scores, "segments": columns} | change
    with pytest.raises((calibrant.InputError, TypeError), match=message):
        calibrant.audit(**arguments)


def test_rows_without_a_label_are_left_out():
    outcome, score, columns = data_of(400)
    labels = outcome.astype(float)
    labels[::5] = np.nan
    kept = ~np.isnan(labels)
    audit = calibrant.audit(labels, score, columns, missing="drop", **SETTINGS)
    other = calibrant.audit(outcome[kept], score[kept], {k: v[kept] for k, v in columns.items()}, **SETTINGS)
    assert audit.segments == other.segments
    assert len(audit.cautions) == 1


def test_segments_of_many_rows_are_not_rounded():
    rng = np.random.default_rng(0)
    score = np.full(4000, 0.5)
    audit = calibrant.audit(rng.random(4000) < score, score, {"a": rng.integers(0, 2, 4000)}, **SETTINGS)
    assert all(abs(each.gap.value) < each.gap.expected for each in audit.segments)

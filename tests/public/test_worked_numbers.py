"""Numbers that can be worked out by hand or by a few lines of NumPy, from every part of the package."""

import html
import json
import re
import sqlite3
from statistics import NormalDist

import numpy as np
import pytest
from click.testing import CliRunner

import calibrant
from calibrant import Calibrator, PriorShift, Sketch
from calibrant.cli import main
from shortcuts import compare_estimators

rng = np.random.default_rng(7)
SCORE = rng.random(400)
LABEL = (rng.random(400) < SCORE).astype(int)
HIGH = (rng.random(400) < SCORE**2.5).astype(int)  # the scores are too high
TABLE = rng.dirichlet(np.ones(3), 300)
CLASS = (rng.random((300, 1)) > TABLE.cumsum(axis=1)[:, :-1]).sum(axis=1)


def run(*words, code=0):
    done = CliRunner().invoke(main, [*map(str, words)])
    assert done.exit_code == code, done.output
    return done.stdout


def write(path, **columns):
    rows = zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True)
    path.write_text("\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]))
    return path


# --- notions and inputs


def test_a_score_of_one_half_predicts_the_first_class():
    found = calibrant.ece([0, 1], [0.5, 0.9], notion="confidence", estimator="uniform:1")
    assert found == pytest.approx(0.3)  # both are right


@pytest.mark.parametrize("k", [0, 1, 2])
def test_a_class_is_measured_by_its_own_column(k):
    found = calibrant.ece(CLASS, TABLE, notion="binary", pos_label=k, estimator="uniform:1")
    assert found == pytest.approx(abs(np.mean((k == CLASS) - TABLE[:, k])))


def test_counts_are_whole_numbers():
    with pytest.raises(calibrant.InputError, match=r"counts must be whole numbers, got 2\.5"):
        calibrant.ece([0, 1, 1], [0.2, 0.7, 0.9], counts=[1.0, 2.5, 3.0])


def test_rows_whose_label_is_nan_are_dropped():
    label = np.where(np.arange(400) % 3 == 0, np.nan, LABEL)
    kept = np.isfinite(label)
    found = calibrant.ece(label, SCORE, estimator="uniform:5", missing="drop")
    assert found == calibrant.ece(LABEL[kept], SCORE[kept], estimator="uniform:5")


# --- sums


@pytest.mark.parametrize("matrix", [False, True])
def test_a_sketch_has_the_weighted_accuracy_and_losses(matrix):
    y, p = (CLASS, TABLE) if matrix else (LABEL, np.stack([1 - SCORE, SCORE], axis=1))
    weight = np.random.default_rng(1).exponential(size=len(y))
    totals = Sketch("confidence").update(y, p if matrix else SCORE, sample_weight=weight).totals
    own = p[np.arange(len(y)), y]
    assert totals.weight == pytest.approx(weight.sum())
    assert totals.right == pytest.approx(weight @ (p.argmax(axis=1) == y))
    assert totals.log_loss == pytest.approx(-weight @ np.log(own))
    assert totals.brier == pytest.approx(weight @ ((p - np.eye(p.shape[1])[y]) ** 2).sum(axis=1))


def test_updates_add_to_the_effective_sample_size():
    weight = np.random.default_rng(2).exponential(size=400)
    sketch = Sketch("binary")
    for rows in np.array_split(np.arange(400), 5):
        sketch.update(LABEL[rows], SCORE[rows], sample_weight=weight[rows])
    assert sketch.n == pytest.approx(weight.sum() ** 2 / np.square(weight).sum())


# --- estimators


def by_bins(bin_of_row, y=HIGH, p=SCORE):
    return sum(abs(np.sum((y - p)[bin_of_row == k])) for k in np.unique(bin_of_row)) / len(y)


def test_bins_of_equal_width_and_mass_are_loops_over_rows():
    y, p = LABEL[:107], SCORE[:107]
    rank = np.argsort(np.argsort(p))
    cuts = np.floor(np.arange(1, 10) * 107 / 10)
    given = {"y_true": y, "y_prob": p}
    assert calibrant.ece(**given, estimator="adaptive:10") == pytest.approx(
        by_bins(np.searchsorted(cuts, rank, side="right"), y, p)
    )
    assert calibrant.ece(**given, estimator="uniform:10") == pytest.approx(by_bins(np.floor(10 * p), y, p))
    sqrt = calibrant.ece(**given, estimator="uniform:sqrt")
    assert sqrt == calibrant.ece(**given, estimator="uniform:10")  # 10 < sqrt(107) < 11


def test_the_debiased_error_takes_the_unbiased_variance_off():
    y, p = HIGH[:60], np.repeat([0.2, 0.5, 0.8], 20)
    rate = y.reshape(3, 20).mean(axis=1)
    square = np.mean((rate - [0.2, 0.5, 0.8]) ** 2 - rate * (1 - rate) / 19)
    assert calibrant.ece(y, p, estimator="debiased:3", norm="l2") == pytest.approx(square**0.5)


def test_the_sweep_goes_on_at_equal_frequencies():
    # Two and three bins have equal frequencies, and those of four bins fall.
    y, p = np.tile([0, 1], 6), np.linspace(0.05, 0.95, 12) ** 2
    found = calibrant.ece(y, p, estimator="sweep")
    assert found == pytest.approx(np.mean(np.abs(np.mean((y - p).reshape(3, 4), axis=1))))
    assert found > 1.01 * abs(np.mean(y - p))


def test_the_kuiper_statistic_is_the_range_of_the_walk():
    y, p = [0, 0, 1, 1, 0], [0.2, 0.4, 0.5, 0.6, 0.7]
    walk = np.append(0, np.cumsum(np.subtract(y, p))) / 5
    assert calibrant.ece(y, p, estimator="kuiper") == pytest.approx(np.ptp(walk))
    assert calibrant.ece(y, p, estimator="ks") == pytest.approx(np.abs(walk).max())


# --- interval and test


def test_scores_that_are_too_high_are_over():
    for label, repeated in ((HIGH, SCORE), (HIGH, np.round(SCORE, 1))):
        high = calibrant.estimate(label, repeated, rng=0)
        low = calibrant.estimate(1 - label, 1 - repeated, rng=0)
        assert high.over > 10 * high.under
        assert low.under > 10 * low.over
        assert 1 / 1000 <= high.p_value <= 0.01  # 999 simulated data sets, and the observed one
    assert calibrant.estimate(LABEL, SCORE, rng=0).p_value > 0.05


def test_repeated_scores_that_are_too_high_are_over():
    score = np.repeat([0.1, 0.4, 0.6, 0.9], 60)
    label = np.tile(np.arange(60) < 3, 4).astype(int)
    found = calibrant.estimate(label, score, rng=0)
    assert found.over > 5 * found.under


def test_the_null_distribution_has_a_mean_above_its_median():
    label = (np.random.default_rng(3).random(60) < SCORE[:60]).astype(int)
    null = calibrant.estimate(label, SCORE[:60], rng=0).null
    assert null.quantiles[0.5] < null.mean < null.quantiles[0.95]


def test_p_values_of_cells_are_ranked_and_intervals_hold_jointly():
    group = np.arange(400) % 4
    table = calibrant.estimate_by(LABEL, SCORE, {"group": group}, rng=0)
    p = np.array([each.p_value for each in table.estimates])
    order = np.argsort(-p)
    expected = np.empty(4)
    expected[order] = np.minimum.accumulate(np.minimum(p[order] * 4 / np.arange(4, 0, -1), 1))
    np.testing.assert_allclose(table.p_adjusted, expected)
    joint = calibrant.estimate_by(LABEL, SCORE, {"group": group}, rng=0, simultaneous=True)
    assert {each.level for each in joint.estimates} == {1 - (1 - 0.95) / 4}


def test_clusters_of_unequal_size_count_as_fewer():
    unequal = np.repeat(np.arange(21), np.append(np.full(20, 5), 300))
    labels, score = np.ones(400, int), np.full(400, 0.9)
    found = [calibrant.net_benefit(labels, score, [0.5], cluster=c) for c in (np.arange(400) // 20, unequal)]
    low = [float(each.model.low[0]) for each in found]
    assert low[1] < low[0] - 0.02


# --- curves, maps and exports


def test_the_bins_of_a_diagram_have_the_interval_of_wilson():
    p = np.repeat([0.25, 0.75], 10)
    found = calibrant.reliability_diagram(np.tile([0, 1], 10), p, binning="uniform:2")
    z2 = NormalDist().inv_cdf(0.975) ** 2
    half = np.sqrt(z2 * (0.25 / 10 + z2 / 400)) / (1 + z2 / 10)
    np.testing.assert_allclose([found.low, found.high], [[0.5 - half] * 2, [0.5 + half] * 2])


def test_a_histogram_has_the_rows_by_outcome():
    found = calibrant.score_histogram(HIGH, SCORE)
    assert found.positive.sum() == pytest.approx(HIGH.sum())
    assert found.negative.sum() == pytest.approx((1 - HIGH).sum())


def test_a_class_that_becomes_frequent_gets_larger_probabilities():
    found = PriorShift(train=[0.5, 0.5], target=[0.2, 0.8]).fit(SCORE[:50])
    found = found.predict_proba(np.array([0.5, 0.2]))
    np.testing.assert_allclose(found, [0.8, 0.2 * 1.6 / (0.2 * 1.6 + 0.8 * 0.4)])


@pytest.mark.parametrize("method", ["isotonic", "histogram"])
def test_steps_and_their_sql_agree_on_the_edges(method):
    fitted = Calibrator(method).fit(SCORE.round(1), HIGH)
    scores = np.arange(11) / 10
    expression, base = fitted.to_sql("p", dialect="sqlite"), sqlite3.connect(":memory:")
    rows = [base.execute(f"SELECT {expression} FROM (SELECT {p!r} AS p)").fetchone() for p in scores.tolist()]
    found = [row[0] for row in rows]
    np.testing.assert_allclose(found, fitted.predict_proba(scores), atol=1e-12)


def test_a_step_begins_at_its_edge_in_the_map_and_in_sql():
    score, label = np.repeat([0.2, 0.4, 0.6], 40), np.repeat([0, 1, 0, 1], [30, 20, 10, 60])
    fitted = Calibrator("histogram").fit(score, label)
    at = [0.2, 0.4, 0.5, 0.6]  # an edge lies halfway between two scores
    np.testing.assert_allclose(fitted.predict_proba(np.array(at)), [0.25, 0.75, 1, 1])
    expression, base = fitted.to_sql("p", dialect="sqlite"), sqlite3.connect(":memory:")
    (found,) = base.execute(f"SELECT {expression} FROM (SELECT 0.5 AS p)").fetchone()
    assert found == 1


def test_a_class_that_has_become_frequent_is_found_and_gets_larger_probabilities():
    chance = np.random.default_rng(5).beta(4, 2, 2000)
    shifted = PriorShift(train=[0.5, 0.5]).fit(chance)
    assert shifted.predict_proba(np.array([0.5]))[0] > 0.6


# --- decisions


def test_net_benefit_charges_false_alarms_by_the_odds_of_the_threshold():
    curve = calibrant.regret_curve(HIGH, SCORE, rng=0)
    for k in (10, 40, 80):
        t = curve.thresholds[k]
        act = t <= SCORE
        expected = np.mean(act * HIGH) - t / (1 - t) * np.mean(act * (1 - HIGH))
        assert curve.net_benefit[k] == pytest.approx(expected)
    alone = calibrant.net_benefit(HIGH, SCORE, [0.2]).model.value[0]
    act = SCORE >= 0.2
    assert alone == pytest.approx(np.mean(act * HIGH) - 0.25 * np.mean(act * (1 - HIGH)))


def test_a_coverage_may_have_exactly_the_wanted_accuracy():
    found = calibrant.risk_coverage(
        [1, 1, 0, 1, 0, 0], [0.9, 0.8, 0.7, 0.6, 0.5, 0.4], notion="correctness", rng=0
    )
    assert found.coverage_at(0.75).value == pytest.approx(4 / 6)
    assert found.coverage_at(1.0).value == pytest.approx(2 / 6)


# --- assessment and command line


@pytest.fixture(scope="module")
def assessed():
    with pytest.MonkeyPatch.context() as patch:
        compare_estimators(patch)
        return calibrant.assess(HIGH, SCORE, rng=0)


def test_the_ratio_is_observed_over_expected(assessed):
    assert assessed.clinical.ratio.value == pytest.approx(HIGH.sum() / SCORE.sum())
    assert "too high" in str(assessed)
    assert "too low" not in str(assessed)


def test_the_verdict_names_the_ranges_that_are_too_high_and_too_low(monkeypatch):
    compare_estimators(monkeypatch)
    extreme = (np.random.default_rng(0).random(400) < 0.3 + 0.4 * SCORE).astype(int)
    where = " ".join(str(calibrant.assess(extreme, SCORE, rng=0).verdict).split())
    high, low = (
        float(re.search(rf"{word} from (\d\.\d+)", where, re.I)[1]) for word in ("too high", "too low")
    )
    assert high > 0.5 > low


def test_ties_count_half_in_the_area_under_the_roc_curve(monkeypatch):
    compare_estimators(monkeypatch)
    score = SCORE[:60].round(1)
    low, high = score[HIGH[:60] == 0], score[HIGH[:60] == 1]
    pairs = (low < high[:, None]) + 0.5 * (low == high[:, None])
    assert calibrant.assess(HIGH[:60], score, rng=0).auc == pytest.approx(pairs.mean())


def test_the_page_has_the_band_of_the_curve(assessed):
    text, curve = html.unescape(assessed.html()), assessed.curve
    for side in ("low", "high"):
        (shown,) = set(re.findall(rf'"{side}": ?\[([^\]]*)\]', text))
        np.testing.assert_allclose(np.fromstring(shown, sep=","), getattr(curve, side), atol=1e-3)


@pytest.fixture
def files(tmp_path):
    write(tmp_path / "high.csv", y=HIGH, p=SCORE)
    write(tmp_path / "good.csv", y=LABEL, p=SCORE)
    return tmp_path


def test_a_gate_passes_only_if_the_whole_interval_is_within_the_limit(files):
    low, high = (getattr(calibrant.estimate(HIGH, SCORE), side) for side in ("low", "high"))
    run("check", files / "high.csv", "--max-ece", round(high + 0.01, 4))
    run("check", files / "high.csv", "--max-ece", round((low + high) / 2, 4), code=3)
    run("check", files / "high.csv", "--max-ece", round(low / 2, 4), code=1)


def test_a_limit_of_the_ratio_holds_in_both_directions(files):
    run("check", files / "high.csv", "--max-oe", 1.1, code=1)
    write(files / "low.csv", y=1 - HIGH, p=1 - SCORE)
    run("check", files / "low.csv", "--max-oe", 1.1, code=1)
    run("check", files / "good.csv", "--max-oe", 1.5)


def test_an_audit_finds_gaps_in_either_direction(tmp_path):
    group = np.where(np.arange(400) % 2, "even", "odd")
    for label, score in ((HIGH, SCORE), (1 - HIGH, 1 - SCORE)):
        path = write(tmp_path / "data.csv", y=label, p=score, group=group)
        run("audit", path, "--segments", "group", "--max-gap", "0.02", code=1)


def test_a_header_may_have_blanks(files):
    text = (files / "good.csv").read_text().replace("y,p", " y , p ", 1)
    (files / "blank.csv").write_text(text)
    words = ("--label", "y", "--scores", "p", "--estimator", "uniform:5", "--json", "-q")
    found, wanted = (json.loads(run("ece", files / name, *words)) for name in ("blank.csv", "good.csv"))
    assert found["value"] == wanted["value"]


def test_the_confidence_of_a_choice_is_its_share_of_the_likelihoods(tmp_path):
    samples = [
        {
            "doc_id": k,
            "target": "1",
            "arguments": [["question", " yes"], ["question", " no"]],
            "filtered_resps": [[-2.0, False], [-1.0, False]],
            "acc": 1.0,
        }
        for k in range(2)
    ]
    path = tmp_path / "samples_task.jsonl"
    path.write_text("\n".join(map(json.dumps, samples)))
    answers = calibrant.read_answers(path, "lm-eval")
    np.testing.assert_allclose(answers["confidence"], 1 / (1 + np.exp(-1)))


# --- comparison, monitor, published and experiment


def test_models_of_the_same_rows_are_compared_by_pairs():
    near = np.clip(SCORE + 0.001, 0, 1)
    given = {"a": SCORE, "b": near}
    paired = calibrant.compare(LABEL, given, rng=0).differences["b"]
    estimate = calibrant.estimate(LABEL, SCORE, rng=0)
    assert paired.high - paired.low < (estimate.high - estimate.low) / 2


def test_the_order_of_rows_changes_no_comparison_of_maps():
    order = np.random.default_rng(0).permutation(400)
    given = {"methods": ["sigmoid", "isotonic"], "rng": 0}
    one = calibrant.compare_calibrators(SCORE, HIGH, **given)
    other = calibrant.compare_calibrators(SCORE[order], HIGH[order], **given)
    assert one["isotonic"].brier.value == pytest.approx(other["isotonic"].brier.value, abs=1e-12)


def test_the_alarm_rises_at_one_over_alpha():
    assert calibrant.Monitor(alpha=0.05).limit == pytest.approx(20)


def test_the_scorer_is_minus_the_error():
    linear_model = pytest.importorskip("sklearn.linear_model")
    from calibrant.sklearn import neg_ece_scorer

    model = linear_model.LogisticRegression().fit(SCORE[:, None], HIGH)
    wanted = calibrant.ece(HIGH, model.predict_proba(SCORE[:, None]), estimator="uniform:5")
    assert wanted > 0
    assert neg_ece_scorer(estimator="uniform:5")(model, SCORE[:, None], HIGH) == pytest.approx(-wanted)


def test_the_published_bandwidth_has_the_sample_deviation():
    score = np.array([0.1, 0.2, 0.8, 0.9])
    spread = min(score.std(ddof=1), np.subtract(*np.percentile(score, (75, 25))) / 1.3489795003921634)
    assert calibrant.published.silverman(score) == pytest.approx(spread * 3**-0.2)


def test_the_exact_error_is_the_mean_of_the_gap():
    score = np.random.default_rng(0).random(200_000)
    value, _ = calibrant.experiment.exact_error(score, score**2)
    assert value == pytest.approx(1 / 6, abs=0.002)


# --- figures and seeds


def test_a_diagram_has_scores_on_the_horizontal_axis():
    plt = pytest.importorskip("matplotlib.pyplot")
    found = calibrant.reliability_diagram(HIGH, SCORE, binning="uniform:5")
    fig, ax = plt.subplots()
    calibrant.plot.diagram(found, ax=ax)
    drawn = np.concatenate([marks.get_offsets() for marks in ax.collections])
    plt.close(fig)
    for point in zip(found.score, found.frequency, strict=True):
        assert np.isclose(drawn, point).all(axis=1).any()


def test_the_seed_of_the_command_line_makes_other_folds(files):
    words = ("calibrate", "compare", files / "high.csv", "--method", "sigmoid", "--folds", 2, "--json", "-q")
    one, other, again = (json.loads(run(*words, "--seed", seed)) for seed in (1, 2, 1))
    assert one == again
    assert one["table"] != other["table"]

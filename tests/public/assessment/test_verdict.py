"""The verdict: its rule, which finding decides, and the same words in text, JSON and objects."""

import re
from dataclasses import replace

import numpy as np
import pytest

import calibrant

pytestmark = pytest.mark.usefixtures("few_reference_estimators")


def rows(n=2000, power=2.0, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.random(n)
    return rng.random(n) < score**power, score


@pytest.fixture(scope="module")
def off():
    return calibrant.assess(*rows(), rng=0)


@pytest.fixture(scope="module")
def grouped():
    rng = np.random.default_rng(3)
    score, region = rng.random(4000), np.array(["north", "south"])[rng.integers(0, 2, 4000)]
    chance = np.clip(np.where(region == "north", score - 0.1, score + 0.1), 0, 1)
    return calibrant.assess(rng.random(4000) < chance, score, groups=region, cost=(1, 9), rng=0)


@pytest.fixture(scope="module")
def costly():
    return calibrant.assess(*rows(), cost=(1, 9), rng=0)


def interval(found, low, high, **parts):
    """Return an assessment whose headline has another interval."""
    middle = (low + high) / 2
    e = replace(found.estimate, value=middle, low=low, high=high, over=middle, under=0.0, **parts)
    return replace(found, estimates={**found.estimates, e.notion: e})


def test_the_reason_has_the_numbers_of_the_rule(off):
    assert interval(off, 0.031, 0.05).verdict.reason == (
        "the interval's lower end, 3.1 points, exceeds the tolerance of 2 points"
    )
    assert "1.2 points, is at most the tolerance of 2 points" in interval(off, 0.0, 0.012).verdict.reason


def test_the_tolerance_is_given_and_checked():
    found = calibrant.assess(*rows(300), tolerance=0.9, rng=0)
    assert (found.tolerance, found.verdict.state) == (0.9, "trust")
    for wrong in (0, 1, -0.1, float("nan")):
        with pytest.raises(calibrant.InputError, match="tolerance"):
            calibrant.assess(*rows(30), tolerance=wrong)
    with pytest.raises(calibrant.InputError, match="tolerance"):
        calibrant.assess(*rows(30), tolerance="0.1")


@pytest.mark.full
def test_scores_that_are_predictions_come_first():
    rng = np.random.default_rng(0)
    y = rng.random(800) < 0.4
    score = np.where(rng.random(800) < 0.85, y, ~y).astype(float)
    found = calibrant.assess(y, score, cost=(1, 9), groups=np.arange(800) % 2, rng=0)
    assert found.hard_labels
    assert found.verdict.finding == "predictions"
    assert "predict_proba" in found.verdict.command
    exact = calibrant.assess(y, y.astype(float), rng=0)
    assert exact.hard_labels
    assert (exact.verdict.finding, exact.verdict.state) == ("error", "trust")


@pytest.mark.full
def test_groups_without_a_clear_error_are_left_alone():
    rng = np.random.default_rng(3)
    score, group = rng.random(6000), rng.integers(0, 3, 6000)
    chance = np.clip(score + np.array([-0.1, 0.1, 0.0])[group], 0, 1)
    y = rng.random(6000) < chance
    found = calibrant.assess(y, score, groups=group, rng=0).verdict
    assert "because the errors of these groups cancel" in found.trust
    assert found.where.endswith("no clear error in the other group.")
    assert found.action == (
        "Calibrate group 1 and group 0, each on its own rows. Leave the other group as it is."
    )
    space = {"calibrant": calibrant, "y_prob": score, "y_true": y, "group": group, "new_scores": score[:5]}
    on_the_command_line = calibrant.assess(y, score, groups=group, rng=0, command="calibrant report").verdict
    assert on_the_command_line.command is None
    assert on_the_command_line.action == (
        f"{found.action} Write the rows of each group to a file, and run calibrant calibrate fit for each "
        "file."
    )
    exec(found.command, space)  # groups are text, as in the report
    assert {*space["calibrators"]} == {"0", "1"}


@pytest.mark.full
def test_rare_outcomes_are_told_in_ratios_and_beside_their_base_rate():
    rng = np.random.default_rng(3)
    logit = rng.normal(-5, 1, 20_000)
    y, score = rng.random(20_000) < 1 / (1 + np.exp(-logit)), 1 / (1 + np.exp(-logit - 1))
    found = calibrant.assess(y, score, rng=0)
    assert found.recalibration.ratio == pytest.approx(1, abs=0.1)
    action = r"on average from 2\.\d times too high to 1\.\d+ times too low or high"
    assert re.search(action, found.verdict.action)
    assert f"; class 1 is {100 * y.mean():.3g} % of the rows" in found.html().replace(
        "\N{NO-BREAK SPACE}", " "
    )
    assert f"always the most common class: {100 - 100 * y.mean():.1f} %" in str(found)


@pytest.mark.full
def test_a_trusted_verdict_hides_no_ratio_and_no_significant_gap():
    rng = np.random.default_rng(1)
    score = 1 / (1 + np.exp(-rng.normal(-4, 1, 10_000)))
    found = calibrant.assess(rng.random(10_000) < 1.3 * score, score, rng=0)
    assert (found.verdict.state, found.estimate.p_value < 0.05) == ("trust", True)
    times = re.search(r"on average they are (1\.\d+) times too low", found.verdict.trust)[1]
    assert float(times) == pytest.approx(found.clinical.ratio.value, abs=0.01)
    assert found.verdict.where.startswith("No gap significantly exceeds the tolerance")
    assert "right" not in found.verdict.where
    score = rng.random(20_000)
    found = calibrant.assess(rng.random(20_000) < score + 0.012 * (score < 0.98), score, rng=0)
    assert found.verdict.where == "No gap significantly exceeds the tolerance at any score."


@pytest.mark.full
def test_a_trusted_verdict_names_a_group_that_is_off():
    rng = np.random.default_rng(0)
    score, group = rng.random(20_000), np.repeat(["north", "west"], [17_000, 3_000])
    sick = rng.random(20_000) < score + np.where(group == "west", 0.035, 0.0)
    found = calibrant.assess(sick, score, groups=group, rng=0)
    (west,) = [row for row in found.by_group if row.off(found.level)]
    assert (found.verdict.state, found.verdict.finding, west.name) == ("trust", "error", "west")
    assert "1 of the 2 groups is off: west" in found.verdict.where


def test_too_few_rows_do_not_deny_what_the_totals_show():
    rng = np.random.default_rng(3)
    score = rng.beta(2, 2, 90)
    y = rng.random(90) < 1 / (1 + np.exp(0.5 - np.log(score / (1 - score))))
    found = calibrant.assess(y, score, rng=0)
    assert found.verdict.state == "cannot tell yet"
    assert found.clinical.ratio.high < 1 < 20 * found.estimate.p_value
    assert "calibration is not rejected, but the average error could be" in found.verdict.trust


@pytest.mark.full
def test_a_mean_gap_in_the_words_is_no_larger_than_the_error_beside_it(grouped):
    said = re.findall(r"too (?:high|low) by ([\d.]+) points", grouped.verdict.where)
    errors = {row.name: row.estimate.value for row in grouped.by_group}
    assert [float(each) for each in said] <= [100 * errors[name] + 0.051 for name in ("north", "south")]


@pytest.mark.full
def test_a_cost_decides_where_it_is_sure_and_material(costly):
    found = costly.verdict
    assert (found.state, found.finding) == ("do not trust", "cost")
    regret, best = costly.decision.regret, costly.decision.best
    assert f"too high: acting on them costs {1000 * regret.value:.0f} units more" in found.headline
    assert found.action.startswith("Recalibrate and keep acting from 0.1: saves ")
    assert f"If you cannot, {best.policy} (saves" in found.action
    opposite = replace(best, value=0.05, low=0.04, high=0.06)
    other = replace(costly, decision=replace(costly.decision, best=opposite)).verdict
    assert other.headline.startswith("Acting on the scores costs")
    for parts in ({"low": 0.0}, {"value": regret.low, "cost": 100 * regret.low}):
        unsure = replace(costly, decision=replace(costly.decision, regret=replace(regret, **parts)))
        assert unsure.verdict.finding == "error"


@pytest.mark.full
@pytest.mark.parametrize("seed", range(6))
def test_no_policy_recovers_more_than_is_lost(seed):
    y, score = rows(200, power=(1.0, 1.5, 3.0)[seed % 3], seed=seed)
    decision = calibrant.assess(y, score, cost=((1, 9), (3, 1))[seed % 2], rng=0).decision
    regret, best = decision.regret, decision.best
    assert max(regret.recovered, best.gain) <= regret.value + 1e-12
    assert regret.cost == best.cost_as_is
    assert regret.cost - regret.recovered == pytest.approx(best.cost_recalibrated)
    assert (regret.low > 0) or best.gain_low <= 0  # a sure gain is a sure regret


def test_ranges_with_few_rows_have_no_side():
    rng = np.random.default_rng(0)
    score = 0.4 + 0.2 * rng.random(1000)
    found = calibrant.assess(rng.random(1000) < score / 2, score, rng=0)
    assert re.search(
        r"[Tt]oo high .*; too few rows to tell below 0\.[34]\d* and above 0\.[56]", found.verdict.where
    )


def test_the_share_of_rows_that_are_off_is_that_of_the_data(off):
    first, last, share = re.match(
        r"Too high from ([\d.]+) to ([\d.]+) \((\d+) % of the rows", off.verdict.where
    ).groups()
    _, score = rows()
    within = 100 * np.mean((score >= float(first)) & (score < float(last)))
    assert float(share) == pytest.approx(min(within, 99), abs=1.5)  # the histogram has cells


def test_where_nothing_can_be_told_the_words_the_table_and_the_look_up_use_one_score():
    rng = np.random.default_rng(0)
    score = rng.beta(0.8, 0.8, 150)
    found = calibrant.assess(rng.random(150) < score**1.6, score, rng=0)
    assert found.verdict.state == "cannot tell yet"
    said = re.search(
        r"of rows scored ([\d.]+), \d+ to \d+ in 100 may be class 1 \(best guess \d+\)", found.verdict.where
    )[1]
    page = found.html()
    assert f'"example":{said},' in page
    assert re.search(rf'class=example><th scope="row">{float(said):.2f}<', page)


def test_totals_that_rule_out_an_error_of_0_are_named_beside_an_interval_that_does_not(off):
    wide, alone = interval(off, 0.0, 0.3), "By these totals alone the error is at least "
    assert f"{alone}{100 * off.balance.low:.1f} points" in wide.summary
    assert alone not in off.summary


@pytest.mark.full
@pytest.mark.parametrize("weighted", [False, True])
def test_auc_is_that_of_scikit_learn(weighted):
    from sklearn.metrics import roc_auc_score

    y, score = rows(500)
    score, weight = score.round(1), np.random.default_rng(1).random(500) if weighted else None
    found = calibrant.assess(y, score, sample_weight=weight, rng=0)
    assert found.auc == pytest.approx(roc_auc_score(y, score, sample_weight=weight))
    assert f"AUC {found.auc:.3f}, accuracy" in str(found)


def test_auc_is_unknown_of_one_class_and_of_sketches():
    assert calibrant.assess([1] * 20, np.linspace(0.1, 0.9, 20), rng=0).auc is None
    assert calibrant.Sketch("binary").update(*rows(200)).assess(rng=0).auc is None


@pytest.mark.full
def test_a_group_that_a_common_recalibration_leaves_off_is_named():
    rng = np.random.default_rng(0)
    n = 8000
    true = 1 / (1 + np.exp(4.1 - 1.1 * rng.normal(size=n)))
    score, country = 4 * true / (1 + 3 * true), rng.choice(["de", "es", "ng"], n, p=[0.5, 0.42, 0.08])
    label = rng.random(n) < np.where(country == "ng", true + 0.1, true)
    found = calibrant.assess(label, score, groups=country)
    assert found.verdict.finding == "error"
    gaps = {row.name: row.difference for row in found.by_group}
    assert gaps["ng"].low < 0.1 < gaps["ng"].high
    assert f"That leaves ng too low by {100 * gaps['ng'].value:.1f} points" in found.verdict.action
    assert found.verdict.action.endswith("calibrate it on its own rows.")
    assert type(found).from_json(found.to_json()).verdict.action == found.verdict.action
    for segment in calibrant.audit(label, score, {"c": country}, n_resamples=1999).segments:
        assert gaps[segment.values[0]][:3] == pytest.approx(segment.difference[:3], abs=0.002)

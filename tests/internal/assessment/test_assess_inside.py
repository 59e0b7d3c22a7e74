"""An assessment: its numbers against those of the single calls, its words against its intervals."""

import re
from dataclasses import replace
from itertools import product

import matplotlib
import numpy as np
import pytest

import calibrant
from calibrant import Estimate, parallel
from calibrant.assessment import Balance
from calibrant.assessment import text as wording
from calibrant.assessment.assessment import OtherClasses
from calibrant.assessment.decomposition import log_loss_of_classes, of_event
from calibrant.curves import ByClass
from calibrant.inference.multiplicity import each_level, false_discovery
from calibrant.inference.result import SIZE_UNKNOWN, Null
from calibrant.maps.multiclass import fit_temperature
from calibrant.score_data import Cells, Sample
from calibrant.score_data.simplex import Simplex

matplotlib.use("Agg")
# What is not about the estimators of the literature does without most of them.
pytestmark = pytest.mark.usefixtures("few_reference_estimators")
NAMES = ["ant", "bee", "cat", "dog"]


def binary(n=600, seed=0, power=2.0):
    rng = np.random.default_rng(seed)
    score = rng.random(n)
    return (rng.random(n) < score**power).astype(int), score


def multiclass(n=500, classes=4, seed=0, sharper=2.0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 1.5, (n, classes))
    true, said = (np.exp(t * logits) / np.exp(t * logits).sum(axis=1, keepdims=True) for t in (1.0, sharper))
    return (rng.random((n, 1)) >= np.cumsum(true, axis=1)[:, :-1]).sum(axis=1), said


@pytest.fixture(scope="module")
def one():
    y, p = binary()
    return calibrant.assess(y, p, rng=0, name="rain")


@pytest.fixture(scope="module")
def many():
    y, p = multiclass()
    groups = np.where(np.arange(len(y)) % 3, "north", "south")
    return calibrant.assess(y, p, rng=0, groups=groups, class_names=NAMES)


def test_the_headline_follows_the_shape_of_the_scores_or_the_wish():
    y, p = binary(120)
    assert calibrant.assess(y, p, rng=0).notion == "binary"
    assert calibrant.assess(y, np.stack([1 - p, p], axis=1), rng=0).notion == "confidence"
    assert calibrant.assess(y, p, rng=0, notion="confidence").notion == "confidence"
    found = calibrant.assess(*multiclass(120), rng=0, notion="classwise")
    assert found.notion == "classwise"
    assert isinstance(found.curve, ByClass)
    asked = calibrant.assess(*multiclass(120), rng=0, pos_label=2)
    assert list(asked.estimates) == ["confidence", "classwise", "binary"]
    assert asked.pos_label == "2"


def test_the_log_loss_of_classes_finds_the_temperature():
    y, p = multiclass(20_000, sharper=2.0)
    rows = Simplex.of(p, y)
    log = log_loss_of_classes(rows, fit_temperature(rows))
    true = p**0.5 / (p**0.5).sum(axis=1, keepdims=True)
    best = -np.mean(np.log(true[np.arange(len(y)), y]))
    assert best - 1e-3 < log.refinement <= best + 1e-9


def test_weights_are_repetitions_in_the_parts_of_a_score():
    y, p = binary(80)
    times = np.random.default_rng(0).integers(1, 4, 80)
    weighted = of_event(Sample(p, y.astype(bool), times), "")
    repeated = of_event(Sample(np.repeat(p, times), np.repeat(y, times).astype(bool)), "")
    for a, b in zip(weighted, repeated, strict=True):
        np.testing.assert_allclose(
            [a.value, a.calibration, a.resolution], [b.value, b.calibration, b.resolution], rtol=1e-9
        )


def test_cells_give_the_parts_of_the_rows():
    y, p = binary(3000)
    sample = Sample(p, y.astype(bool))
    for a, b in zip(of_event(sample, ""), of_event(Cells.of(sample), ""), strict=True):
        assert a.value == pytest.approx(b.value, abs=1e-4)
        assert a.calibration == pytest.approx(b.calibration, abs=1e-3)


@pytest.mark.parametrize("classes", [8, 24])
def test_beyond_the_worst_classes_intervals_are_computed_on_demand(
    classes, without_reference_estimators, monkeypatch
):
    y, p = multiclass(400, classes)
    full = calibrant.assess(y, p, rng=0)
    assert full.other_classes is None
    for module in ("assess", "assessment"):
        monkeypatch.setattr(f"calibrant.assessment.{module}.N_CLASSES", 5)
    found = calibrant.assess(y, p, rng=0)
    assert found.by_class == full.by_class[:5]
    rest = full.by_class[5:]
    rejected = sum(row.off(found.level) for row in rest)
    assert found.other_classes == (classes - 5, rejected, rest[0].estimate.value)
    by_class = found.estimates["classwise"].by_class
    assert set(by_class.computed) == {row.estimate.label for row in found.by_class}
    said, expected = (wording.rejected_subgroups(each).split(":")[0] for each in (found, full))
    assert said == expected
    stored, page = found.to_json(), found.html()
    assert found.other_classes.sentence in page
    assert found.other_classes.sentence in " ".join(str(found).split())
    assert all(by_class[row.estimate.label] == row.estimate for row in rest)
    again = calibrant.Assessment.from_json(stored)
    assert again.other_classes == found.other_classes
    assert set(again.estimates["classwise"].by_class) == {row.estimate.label for row in found.by_class}
    assert (again.to_json(), again.html(), found.to_json()) == (stored, page, stored)


def test_rejected_classes_beyond_the_table_are_counted(many):
    calm = tuple(replace(row, p_adjusted=1.0) for row in many.by_class)
    for rejected, said in ((0, "none of the 104 classes."), (3, "3 of 104 classes, all of them with small")):
        others = OtherClasses(100, rejected, 0.0)
        found = replace(many, by_group=(), by_class=calm, other_classes=others)
        assert wording.rejected_subgroups(found).startswith(f"Calibration is rejected for {said}")
        assert f"calibration is rejected for {rejected or 'none'} of these." in others.sentence
    first = replace(found, by_class=(replace(calm[0], p_adjusted=0.01), *calm[1:]))
    assert "rejected for 4 of 104 classes: " in wording.rejected_subgroups(first)


def test_the_same_seed_gives_the_same_assessment_in_any_number_of_threads(monkeypatch):
    (y, p), groups = binary(200), np.arange(200) % 2
    monkeypatch.setenv(parallel.THREADS, "1")
    one = calibrant.assess(y, p, groups=groups, name="rain")
    monkeypatch.setenv(parallel.THREADS, "3")
    assert calibrant.assess(y, p, groups=groups, rng=one.seed, name="rain").to_json() == one.to_json()
    assert calibrant.assess(y, p[::-1], rng=0).digest != one.digest


@pytest.mark.parametrize("threads", ["1", "3"])
@pytest.mark.parametrize("classes", [2, 25])
def test_progress_counts_to_the_end(classes, threads, monkeypatch, without_reference_estimators):
    monkeypatch.setenv(parallel.THREADS, threads)
    data, seen = binary(60) if classes == 2 else multiclass(60, classes), []
    calibrant.assess(
        *data, rng=0, groups=[0, 1] * 30, progress=lambda done, total: seen.append((done, total))
    )
    done, total = zip(*seen, strict=True)
    assert len(set(total)) == 1
    assert list(done) == sorted(done)
    assert done[-1] == total[-1]
    # The steps of an estimate and of the jobs are all counted: little is left for the end.
    assert done[-2] >= total[-1] - 1


# What is said


def estimated(value, low, high, p, over=1.0, notion="confidence"):
    null = Null(0.009)
    return Estimate(
        value, low, high, 0.95, null, p, value * over, value * (1 - over), 1000.0, notion, "bayes"
    )


def said(found, balance=None, **parts):
    e = estimated(**parts)
    balance = Balance(100, 86, 90, 0.04, 0.03, 0.05) if balance is None else balance
    return replace(found, notion=e.notion, estimates={e.notion: e}, balance=balance)


def test_a_direction_is_named_only_where_the_mean_is_off_too(many):
    sure = {"value": 0.041, "low": 0.032, "high": 0.05, "p": 0.001}
    found = said(many, **sure)
    assert found.verdict.headline == "Overconfident by 4.1 points on average."
    expected = "4.1 points (95 % interval 3.2 to 5.0 points); expected if calibrated: 0.9 points; p ≤ 0.001"
    assert wording.error_sentence(found) == f"The calibration error is {expected} (H0: calibrated)."
    under = said(many, **sure, balance=Balance(100, 90, 86, -0.04, -0.05, -0.03), over=0.0)
    assert wording.deviation(under) == "Underconfident"
    assert wording.deviation(said(many, **sure, over=0.5)) == "The scores are off"
    unsure = said(many, **sure, balance=Balance(100, 89, 90, 0.01, -0.01, 0.03))
    assert wording.deviation(unsure) == "The scores are off"


def test_a_rejected_test_with_an_interval_from_0_says_that_the_size_is_uncertain(many):
    unsure = replace(said(many, value=0.01, low=0.0, high=0.07, p=0.004), by_group=())
    assert SIZE_UNKNOWN in unsure.summary
    assert unsure.verdict.headline == "500 rows are too few to tell how far off the scores are."
    assert "Then collect more rows (500 so far): 2,000 would halve" in unsure.verdict.action
    assert f"with about {unsure.verdict.rows_needed:,} the average error is known" in unsure.verdict.action


def agree(text, estimate, scale=1):
    """Check that what is said of the null is no bound, and does not contradict the test."""
    assert not re.search("at most|would read|would show|no (larger|more) than|compatible", text), text
    text = " ".join(text.split())
    said = re.search(r"expected if calibrated:? +([0-9.]*[0-9])", text)
    other = "the test rejects by statistics other than this value" in text
    assert said or other, text
    if said and not other and estimate.p_value <= 0.05:
        value = re.search(r"[0-9]+\.[0-9]+(?= (?:points|\())", text)[0]
        assert float(said[1]) < float(value) == pytest.approx(scale * estimate.value, abs=0.051), text


def agrees(found):
    """Check that the words of every estimate follow its p-value."""
    agree(wording.error_sentence(found), found.estimate, scale=100)
    for estimate in found.estimates.values():
        agree(str(estimate), estimate)
    assert not re.search("at most|would read|would show", found.methods)


def predicted(kind, seed):
    """Labels and scores: calibrated, bent, or off by turns, with continuous or few scores."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([3, 20, 80, 300]))
    if kind in ("confidence", "classwise", "top:2"):
        y, p = multiclass(n, 4, seed, sharper=float(rng.choice([1.0, 1.3, 2.0])))
        return y, p
    score = rng.choice([0.1, 0.3, 0.5, 0.7, 0.9], n) if seed % 2 else rng.beta(0.5, 0.5, n)
    turns = np.sign(np.sin(40 * score)) if seed % 3 else 1.0
    chance = np.clip(score + rng.choice([0.0, 0.1, 0.2]) * turns, 0, 1)
    return (rng.random(n) < chance).astype(int), score


def about(many, e, rows):
    """Return an assessment whose headline is an estimate, in either direction."""
    high, low = Balance(100, 86, 90, 0.04, 0.03, 0.05), Balance(100, 94, 90, -0.04, -0.05, -0.03)
    gap = high if e.over > e.under else low
    curves = {e.notion: many.curve}
    return replace(many, notion=e.notion, estimates={e.notion: e}, curves=curves, rows=rows, balance=gap)


@pytest.mark.parametrize("notion", ["binary", "confidence", "classwise", "top:2", "correctness"])
@pytest.mark.parametrize("estimator", ["auto", "l:15"])
def test_words_follow_the_p_value_on_many_data_sets(many, notion, estimator):
    decided = set()
    for seed in range(6):
        y, p = predicted(notion, seed)
        e = calibrant.estimate(y, p, notion=notion, estimator=estimator, rng=0)
        agrees(about(many, e, len(y)))
        decided.add(e.p_value <= 0.05)
    assert decided == {True, False}


@pytest.mark.parametrize("notion", ["binary", "confidence", "classwise", "top:2", "correctness"])
def test_no_numbers_make_words_that_contradict_the_p_value(many, notion):
    p_values, rows, sides = (0.001, 0.05, 0.051, 1.0), (1, 4, 1000), (0.0, 0.5, 1.0)
    for value, null in product((0.0, 0.0004, 0.01, 0.2, 1.0), (0.0, 0.0004, 0.0096, 0.3)):
        ends = [(0.0, 1.0), (value, value), (0.0, value), (value, 1.0), (value / 2, (1 + value) / 2)]
        for p, n, over, (low, high) in product(p_values, rows, sides, ends):
            e = replace(estimated(value, low, high, p, over, notion), null=Null(null))
            agrees(about(many, e, n))


def test_a_p_value_that_is_adjusted_for_many_rows_is_a_bound_where_simulations_end(many):
    row = many.by_class[0]
    floor = replace(row.estimate, n_resamples=999, p_floor=0.001)
    for p, text in ((0.001, "≤ 0.2"), (0.1, "0.2")):
        seen = replace(row, p_adjusted=0.2, estimate=replace(floor, p_value=p))
        assert wording.adjusted_p(seen) == text


def test_a_page_words_the_null_as_the_verdict_does(one, many):
    for found in (one, many):
        agrees(found)
        for page in (found.html(), found._repr_html_(), str(found)):
            shown = re.sub(r"<script.*?</script>|<style.*?</style>", "", page, flags=re.S)
            assert "expected if calibrated" in shown
            assert not re.search("at most|would read|would show", shown)


def test_the_summary_has_at_most_four_sentences(one, many):
    for found in (one, many):
        assert 2 <= len(wording.summary(found)) <= 4
    assert "groups" in many.summary


def test_standing_out_counts_rejected_classes(many):
    rows = many.by_class
    calm = [replace(row, p_adjusted=0.2, estimate=replace(row.estimate, p_value=0.1)) for row in rows]
    none = replace(many, by_group=(), by_class=tuple(calm))
    assert wording.rejected_subgroups(none) == "Calibration is rejected for none of the 4 classes."
    first = replace(many, by_group=(), by_class=(replace(rows[0], p_adjusted=0.01), *none.by_class[1:]))
    named_first = f"Calibration is rejected for 1 of 4 classes: {rows[0].name} ("
    assert wording.rejected_subgroups(first).startswith(named_first)


def test_false_discovery_control_is_scipys():
    from scipy.stats import false_discovery_control

    p = np.random.default_rng(0).random(30) ** 3
    np.testing.assert_allclose(false_discovery(p.tolist()), false_discovery_control(p))
    assert false_discovery([]) == []
    assert each_level(0.95, 1) == 0.95


def test_without_a_verdict_no_score_is_called_off():
    for seed in range(6):
        rng = np.random.default_rng(seed)
        score = rng.random(400)
        found = calibrant.assess(rng.random(400) < score, score, rng=0)
        if found.estimate.p_value > 0.05:
            example = wording.example(found)
            assert example is None or example[1] == 0
            assert "too high" not in found.verdict.where
            assert not re.search(r'class="too-(high|low)', found.html())


# The example of the verdict


def example_of(score, chance, **options):
    """Return the score that the verdict takes as its example, and the assessment."""
    rng = np.random.default_rng(0)
    found = calibrant.assess(rng.random(score.size) < chance(score), score, rng=0, **options)
    said = re.search(
        r"of (?:rows scored|answers with confidence) (\S+), .*? \((95 % interval )?\S+( %)? to \S+( %)?\)",
        found.verdict.trust,
    )
    assert float(said[1]) == pytest.approx(wording.example_score(found.curve, rejected=True), rel=0.005)
    return float(said[1]), found


def test_the_example_is_the_level_with_the_largest_gap_that_rows_support():
    rng = np.random.default_rng(1)
    levels = np.array([0.5, 0.9, 1.0])

    def chance(score):
        return np.select([score == 1, score == 0.9], [0.7, 0.75], 0.5)

    score, found = example_of(levels[rng.choice(3, 1200, p=[0.3, 0.45, 0.25])], chance, notion="correctness")
    assert score == 1.0
    assert found.curve.discrete
    # Few rows are further off by chance alone, and say nothing.
    rare = np.append(levels[rng.choice(3, 1200, p=[0.3, 0.45, 0.25])], np.full(12, 0.2))
    assert example_of(rare, lambda s: np.where(s == 0.2, 1.0, chance(s)), notion="correctness")[0] == 1.0


def test_the_example_occurs_where_many_rows_share_a_score_and_others_lie_between():
    rng = np.random.default_rng(2)
    near = 0.9 + 0.02 * rng.random(1500)
    score, found = example_of(
        np.where(rng.random(1500) < 0.25, 1.0, near), lambda s: 0.8, notion="correctness"
    )
    assert found.curve.common_scores.tolist() == [1.0]
    assert not found.curve.discrete
    assert score == 1.0
    again = calibrant.Assessment.from_json(found.to_json())
    assert again.summary == found.summary
    assert again.verdict == found.verdict


def test_the_example_of_continuous_scores_is_where_the_gap_is_largest():
    score = np.random.default_rng(3).random(4000)
    local = np.abs(score - 0.33) < 0.06
    said, _ = example_of(score, lambda s: np.where(np.abs(s - 0.33) < 0.06, s + 0.5, s))
    assert local.any()
    assert abs(said - 0.33) < 0.06
    assert said == round(said, 2)


@pytest.mark.parametrize("seed", range(4))
def test_no_example_is_a_score_that_no_row_is_near(seed):
    rng = np.random.default_rng(seed)
    score = (
        rng.choice([0.9, 1.0], 800)
        if seed % 2
        else np.where(rng.random(800) < 0.5, 1.0, 0.3 * rng.random(800))
    )
    said, _ = example_of(score, lambda s: 0.8 * s)
    assert np.abs(score - said).min() < 0.01


def test_the_log_loss_of_the_other_side_counts_every_digit():
    sample = Sample(np.array([1e-20, 1e-20, 0.5]), np.array([False, False, False]))
    assert of_event(sample, "")[1].value == pytest.approx((2e-20 - np.log(0.5)) / 3, rel=1e-15)
    alone = Sample(np.array([1e-20, 1e-18]), np.array([False, False]))
    assert of_event(alone, "")[1].value == pytest.approx(5.05e-19, rel=1e-12)

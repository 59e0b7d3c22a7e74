"""The verdict: its rule, which finding decides, and the same words in text, JSON and objects."""

import re
from dataclasses import replace

import numpy as np
import pytest

import calibrant
from calibrant.assessment import Balance, Verdict, verdict
from calibrant.assessment.verdict import default_tolerance, error_state, rows_needed
from calibrant.inference.interval_estimate import MeanGap
from calibrant.tasks import get_notion

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


RULE = [
    (0.0, 0.02, "trust"),
    (0.0, 0.0201, "trust with care"),
    (0.02, 0.04, "trust with care"),
    (0.0, 0.0401, "cannot tell yet"),
    (0.0201, 0.0202, "do not trust"),
    (0.0201, 0.9, "do not trust"),
    (0.02, 0.9, "cannot tell yet"),
]


@pytest.mark.parametrize(("low", "high", "state"), RULE)
def test_the_interval_and_the_tolerance_decide(off, low, high, state):
    found = interval(off, low, high)
    assert error_state(found.estimate, 0.02) == found.verdict.state == state
    assert found.verdict.finding == "error"
    assert found.verdict.tolerance == 0.02
    assert (found.verdict.rows_needed is not None) == (state == "cannot tell yet")
    scaled = interval(off, low / 2, high / 2)
    assert replace(scaled, tolerance=0.01).verdict.state == state


def test_rows_needed_make_the_interval_as_narrow_as_the_tolerance(off):
    found = interval(off, 0.0, 0.1)
    assert rows_needed(2000, found.estimate, 0.02) == 50_000  # five times as wide: 25 times the rows
    assert rows_needed(2000, found.estimate, 0.1) == 2000
    assert rows_needed(1234, found.estimate, 0.1) == 1300  # two digits, rounded up
    assert found.verdict.rows_needed == 50_000
    assert found.verdict.headline == "2,000 rows are too few to tell how far off the scores are."
    assert "could be anything up to 10.0 points; of rows scored " in found.verdict.trust
    # Four times as many rows halve the width.
    assert "ollect more rows (2,000 so far): 8,000 would halve today's uncertainty" in found.verdict.action
    assert "about 50,000 the average error is known to within 2 points, the tol" in found.verdict.action
    # An interval as narrow as the tolerance decides wherever it lies.
    assert not [
        low for low in np.linspace(0, 0.1, 50) if interval(off, low, low + 0.0199).verdict.rows_needed
    ]


def test_without_an_upper_bound_no_rows_suffice(off):
    e = replace(off.estimate, lower_bound=True, at_least=0.01)
    assert error_state(e, 0.02) == "cannot tell yet"
    assert rows_needed(2000, e, 0.02) is None
    assert error_state(replace(e, at_least=0.03), 0.02) == "do not trust"


def test_rare_outcomes_have_a_tolerance_of_half_their_base_rate():
    binary, confidence = get_notion("binary"), get_notion("confidence")

    def tolerance(observed, notion=binary, n=1000.0):
        return default_tolerance(notion, Balance(n, observed, observed, 0.0, -0.01, 0.01), 2)

    assert tolerance(300) == tolerance(40) == 0.02
    assert tolerance(10) == tolerance(990) == 0.005  # the rarer of both outcomes
    assert tolerance(0) == 0.0005  # as if one outcome had been seen
    assert tolerance(10, confidence) == 0.02
    assert default_tolerance(binary, None, 2) == 0.02
    assert default_tolerance(get_notion("classwise"), None, 10) == 0.02
    assert default_tolerance(get_notion("classwise"), None, 100) == 0.005
    rng = np.random.default_rng(0)
    score = rng.beta(0.5, 40, 4000)
    y = rng.random(4000) < score
    found = calibrant.assess(y, score, rng=0)
    assert found.tolerance == found.verdict.tolerance == pytest.approx(y.mean() / 2)


def test_groups_in_opposite_directions_decide_before_costs_and_errors(grouped):
    found = grouped.verdict
    assert error_state(grouped.estimate, 0.02) != "do not trust"
    assert (found.state, found.finding) == ("do not trust", "groups")
    assert found.headline == "Too high for north, too low for south."
    assert found.action.startswith("Calibrate by group")
    named = replace(grouped, grouped_by="region").verdict
    assert named.action.startswith("Calibrate by region")
    rng = np.random.default_rng(0)
    score, region = rng.random(400), np.array(["north", "south"])[rng.integers(0, 2, 400)]
    space = {"calibrant": calibrant, "y_prob": score, "y_true": rng.random(400) < score, "region": region}
    space |= {"new_scores": score[:5]}
    exec(named.command, space)
    assert {*space["calibrators"]} == {"north", "south"}


def test_an_error_without_a_side_is_not_said_to_look_right(off, monkeypatch):
    monkeypatch.setattr(calibrant.assessment.text, "score_ranges", lambda *_: "looks right at every score")
    assert off.verdict.where.startswith("Not significant at any single score")


@pytest.mark.parametrize(
    ("state", "gaps", "finding", "expected"),
    [
        ("trust", (-0.1, 0.1), "groups", "do not trust"),
        ("trust", (-0.1, 0.0), "groups", "trust with care"),  # no error over all rows, but in one group
        ("cannot tell yet", (-0.1, 0.0), "groups", "do not trust"),
        ("do not trust", (-0.1, -0.1), "error", "do not trust"),  # all in one direction: recalibrate all rows
        ("do not trust", (-0.1, 0.1), "groups", "do not trust"),
        ("trust", (-0.015, 0.015), "error", "trust"),  # within the tolerance
    ],
)
def test_groups_decide_where_one_map_for_all_rows_does_not_do(grouped, state, gaps, finding, expected):
    ends = {"trust": (0.0, 0.01), "cannot tell yet": (0.0, 0.5), "do not trust": (0.1, 0.2)}[state]
    groups = tuple(
        replace(
            row,
            gap=MeanGap(gap, gap - 0.001, gap + 0.001, 0.01),
            estimate=replace(
                row.estimate, value=abs(gap), low=max(abs(gap) - 0.001, 0), high=abs(gap) + 0.001,
                over=max(-gap, 0.0), under=max(gap, 0.0),
            ),
        )
        for row, gap in zip(grouped.by_group, gaps, strict=True)
    )  # fmt: skip
    found = replace(interval(grouped, *ends), by_group=groups, decision=None).verdict
    assert (found.finding, found.state) == (finding, expected)


def test_the_regret_of_a_decision_is_estimated_once(monkeypatch):
    from calibrant.decisions import interval as intervals

    calls, compute = [], intervals.regret_intervals
    monkeypatch.setattr(intervals, "regret_intervals", lambda *a, **k: calls.append(1) or compute(*a, **k))
    calibrant.assess(*rows(200), cost=(1, 9), rng=0)
    assert len(calls) == 1


def test_text_json_and_object_have_the_same_words(off, grouped, costly):
    for found in (off, grouped, costly, interval(off, 0.0, 0.1), interval(off, 0.0, 0.01)):
        said = found.verdict
        assert found.to_dict()["verdict"] == {k: v for k, v in said.to_dict().items() if k != "schema"}
        assert calibrant.Assessment.from_json(found.to_json()).verdict == said
        assert Verdict.from_json(said.to_json()) == said
        printed = " ".join(str(found).split())
        assert printed.startswith(f"verdict {said.state}: {said.headline}")
        assert all(line in printed for line in (said.trust, said.where, said.action, said.reason))
    with pytest.raises(calibrant.InputError, match="state"):
        Verdict.from_dict(off.verdict.to_dict() | {"state": "maybe"})


def test_scores_that_are_trusted_are_left_alone(off):
    found = interval(off, 0.0, 0.01)
    assert (found.verdict.action, found.verdict.command) == (verdict.DO_NOTHING, None)
    assert not calibrant.assessment.text.recommended(found)
    assert calibrant.assessment.text.recommended(off)
    assert re.match(
        r"Recalibrate, fitting on these rows: cuts the error from [\d.]+ to [\d.]+ points "
        r"\([\d.]+ to [\d.]+\), (probably )?within the ",
        off.verdict.action,
    )

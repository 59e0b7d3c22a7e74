"""The two readings of an audit: the gap of a segment, and its difference from the common recalibration."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import calibrant
from calibrant.cli import main

ROWS = 6000


def shifted(seed, shift=1.0, rows=ROWS):
    """Return rows in which only women over 80 are miscalibrated."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], rows)
    age = rng.choice(["under 40", "40 to 60", "60 to 80", "over 80"], rows)
    score = rng.beta(2, 5, rows)
    log_odds = np.log(score / (1 - score)) + shift * ((sex == "F") & (age == "over 80"))
    outcome = rng.random(rows) < 1 / (1 + np.exp(-log_odds))
    return outcome.astype(int), score, {"sex": sex, "age": age}


def is_calibrated(segment):
    """Tell whether a segment has no women over 80."""
    values = dict(zip(segment.columns, segment.values, strict=True))
    return values.get("sex") == "M" or values.get("age", "over 80") != "over 80"


@pytest.fixture(scope="module")
def audit():
    return calibrant.audit(*shifted(0))


@pytest.mark.full
@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_calibrated_segments_are_rarely_called_miscalibrated(shift):
    named = 0
    for seed in range(40):
        found = calibrant.audit(*shifted(seed, shift), rng=seed, n_resamples=999)
        named += any(shift == 0 or is_calibrated(each) for each in found.miscalibrated)
        women = [each for each in found.miscalibrated if each.values == ("F", "over 80")]
        assert len(women) == (shift > 0)
    # At the nominal 5 %, more than 7 of 40 have a probability of .001.
    assert named <= 7


def test_a_calibrated_segment_differs_and_is_not_called_miscalibrated(audit):
    (men,) = (each for each in audit.segments if each.name == "sex = M")
    assert men in audit.different
    assert men not in audit.miscalibrated
    assert men.difference.high < 0
    assert men.gap.low < 0 < men.gap.high
    assert {each.name for each in audit.miscalibrated} == {
        "sex = F, age = over 80",
        "age = over 80",
        "sex = F",
    }
    assert audit.segments[0].name == audit.different[0].name == "sex = F, age = over 80"


def test_texts_call_segments_off_for_their_own_gap(audit, tmp_path):
    first, *described, different = audit.sentences
    assert first.startswith("3 of 14 segments are miscalibrated, with gaps of +")
    assert [sentence.partition(":")[0] for sentence in described] == [
        each.name for each in audit.miscalibrated
    ]
    assert different.startswith(
        "Different from one common recalibration of all rows: sex = F, age = over 80 (+"
    )
    head = next(line for line in str(audit).splitlines() if line.startswith("segment"))
    assert head.split() == ["segment", "rows", "gap", "interval", "p", "difference"]
    page = audit.to_html()
    assert "<h1>3 of 14 segments are miscalibrated</h1>" in page
    table = page[page.index("<table") :]
    assert table.index("gap, points") < table.index("adjusted p") < table.index("difference, points")
    values = json.loads(audit.to_json())["segments"][0]
    assert list(values)[5:9] == ["gap", "p_value", "difference", "p_difference"]
    assert calibrant.SegmentAudit.from_dict(audit.to_dict()) == audit
    outcome, score, columns = shifted(0)
    path = tmp_path / "rows.csv"
    pd.DataFrame({"label": outcome, "score": score, **columns}).to_csv(path, index=False)
    result = CliRunner().invoke(main, ["audit", str(path), "--segments", "sex,age", "-q"])
    assert result.exit_code == 0
    assert result.stdout == f"{audit}\n"
    none = calibrant.audit(*shifted(1, 0.0))
    assert none.sentences[0].startswith("Calibration is rejected for none of 14 segments; ")


def test_segments_are_in_the_order_of_the_gap_that_is_certain():
    """With many rows all p-values are the smallest possible, and the sizes of the gaps differ."""
    rng = np.random.default_rng(0)
    site, score = rng.choice(["a", "b", "c"], 200_000, p=[0.1, 0.45, 0.45]), rng.beta(2, 5, 200_000)
    shift = np.select([site == "a", site == "b"], [0.08, 0.05], 0.02)
    found = calibrant.audit(rng.random(200_000) < score + shift * (1 - score), score, site)
    assert len({each.p_value for each in found.segments}) == 1
    assert [each.values[0] for each in found.segments] == ["a", "b", "c"]
    certain = [max(each.gap.low, -each.gap.high) for each in found.segments]
    assert certain == sorted(certain, reverse=True)


def numbers(audit, names=lambda text: text):
    """Return the numbers of each segment by its columns and values, in an order of their own."""
    return {
        frozenset(zip(each.columns, map(names, each.values), strict=True)): (
            each.rows, each.p_value, each.p_difference, *np.round([*each.gap, *each.difference], 9).tolist()
        )
        for each in audit.segments
    }  # fmt: skip


@pytest.mark.parametrize("rows", [300, 3000])
def test_p_values_do_not_depend_on_the_names_or_the_order_of_segments(rows):
    outcome, score, columns = shifted(3, 0.5, rows)
    # Of these segments some are small, and have the few values that their counts can have.
    columns["site"] = np.random.default_rng(1).choice(list("abcdefg"), rows)
    expected = numbers(calibrant.audit(outcome, score, columns, n_resamples=499))
    other = dict(reversed(columns.items()))
    assert numbers(calibrant.audit(outcome, score, other, n_resamples=499)) == expected
    texts = np.unique(np.concatenate(list(columns.values())))
    new = {text: f"{k * 7 % len(texts):02}" for k, text in enumerate(texts)}
    back = {code: text for text, code in new.items()}
    renamed = {name: np.array([new[text] for text in column]) for name, column in columns.items()}
    found = calibrant.audit(outcome, score, renamed, n_resamples=499)
    assert numbers(found, back.__getitem__) == expected
    turned = calibrant.audit(
        outcome[::-1], score[::-1], {k: v[::-1] for k, v in columns.items()}, n_resamples=499
    )
    assert numbers(turned) == expected


@pytest.mark.full
def test_numbers_of_groups_do_not_depend_on_their_names():
    rng = np.random.default_rng(0)
    group, score = rng.choice(list("abc"), 900), rng.beta(1, 3, 900)
    outcome = rng.random(900) < np.where(group == "b", score**1.3, score)
    names = dict(zip("abc", "zxy", strict=True))
    renamed = np.array([names[each] for each in group])
    first, second = (calibrant.assess(outcome, score, groups=each) for each in (group, renamed))
    others = {each.name: each for each in second.by_group}
    for each in first.by_group:
        other = others[names[each.name]]
        assert (each.p_adjusted, each.estimate.p_value) == (other.p_adjusted, other.estimate.p_value)
        assert each.difference == pytest.approx(other.difference, abs=1e-9)

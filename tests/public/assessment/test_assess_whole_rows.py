"""Assessments of canonical calibration: the headline, probability transfer, what is said, what is stored."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from tests.reports import too_many_classes, whole_rows

import calibrant
from calibrant import Assessment, InputError


def changed(assessment, **estimate):
    """Return an assessment whose headline reads otherwise."""
    estimates = dict(assessment.estimates)
    estimates[assessment.notion] = replace(assessment.estimate, **estimate)
    return replace(assessment, estimates=estimates)


def test_the_headline_is_of_whole_rows_and_its_picture_of_confidence():
    found = whole_rows()
    assert (found.notion, found.curve_notion) == ("canonical", "confidence")
    assert list(found.estimates) == ["canonical", "confidence", "classwise"]
    assert list(found.curves) == list(found.diagrams) == ["confidence", "classwise"]
    assert found.curve is found.curves["confidence"]
    assert found.by_estimator["auto"] == found.estimates["confidence"]
    assert found.recalibration.before == found.estimates["confidence"].value
    assert found.estimate.over is None
    assert repr(found).startswith("Assessment(canonical, ECE ")


def test_two_classes_are_pictured_by_the_class_asked_about():
    p = np.linspace(0.05, 0.95, 40)
    found = calibrant.assess(np.arange(40) % 3 == 0, p, notion="canonical", rng=0)
    assert (found.curve_notion, found.probability_transfer) == ("binary", None)
    assert found.estimate.value == pytest.approx(2 * found.estimates["binary"].value, abs=1e-12)
    assert found.balance.expected == pytest.approx(20)
    assert Assessment.from_json(found.to_json()).to_json() == found.to_json()
    assert "of <bdi>1</bdi>" in found.html()


def test_of_many_classes_only_the_bound_is_claimed():
    found = too_many_classes()
    assert found.verdict.headline == "Class probabilities are off by at least 5.0 points in sum."
    assert re.search(
        r"at least 5.0 points in sum \(among 3 classes [\d.]+ points of it can be", found.summary
    )
    assert "let one see" in found.methods
    unsure = replace(changed(found, at_least=0.0), by_group=())
    assert unsure.verdict.headline == "Too many classes to tell."
    assert unsure.verdict.rows_needed is None
    assert "at least" not in unsure.methods


def test_tables_of_pairs_and_predictions_are_printed():
    lines = str(whole_rows()).splitlines()
    head = next(k for k, line in enumerate(lines) if line.startswith("class ") and "receives from" in line)
    assert "98.33 % interval" in lines[head]
    assert re.match(r"wolf +cat +0\.2\d\d +0\.\d{3} to 0\.\d{3}$", lines[head + 1])
    assert any(re.match(r"predicted +share of rows +gap", line) for line in lines)


def test_groups_are_asked_the_same():
    found = whole_rows()
    assert {row.name for row in found.by_group} == {"day", "night"}
    assert {row.estimate.notion for row in found.by_group} == {"canonical"}
    accuracy = sum(row.observed for row in found.by_group) / found.rows
    assert accuracy == pytest.approx(found.accuracy.frequency)


STORED = json.loads(whole_rows().to_json())
WRONG = {
    "one way": (
        ("probability_transfer", "net", 0, 1),
        0.5,
        "probability_transfer.net must say of each pair of classes",
    ),
    "too much": (
        ("probability_transfer", "net", 0, 1),
        1.5,
        r"probability_transfer.net\[0\]\[1\] must lie in \[-1, 1\], got 1.5",
    ),
    "too few": (
        ("probability_transfer", "net", 0),
        [0.1],
        r"probability_transfer.net\[1\] must have 1 entries, got 3",
    ),
    "too few rows": (
        ("probability_transfer", "spread"),
        [[0.0] * 3],
        r"probability_transfer.spread must have shape \(3, 3\)",
    ),
    "no list": (("probability_transfer", "net", 0), 0.1, r"probability_transfer.net\[0\] must be a list"),
    "text": (("probability_transfer", "gap", 0), "much", r"probability_transfer.gap\[0\] must be a number"),
    "a share": (("probability_transfer", "share", 0), 0.9, "probability_transfer.share must add up to 1"),
    "unknown": (("probability_transfer", "more"), 1, "probability_transfer.more must be a known field"),
    "of another notion": (("notion",), "confidence", "probability_transfer must be missing where the notion"),
    "a curve": (("curves", "canonical"), STORED["curves"]["confidence"], "curves must hold 'confidence'"),
}


@pytest.mark.parametrize(("path", "value", "message"), WRONG.values(), ids=WRONG)
def test_stored_places_are_checked(path, value, message):
    values = json.loads(json.dumps(STORED))
    inner = values
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    if path == ("notion",):
        values["value"] = values["estimates"][value]["value"]
    with pytest.raises(InputError, match=message):
        Assessment.from_dict(values)


def test_it_survives_storing():
    found = whole_rows()
    again = Assessment.from_json(found.to_json())
    assert again.to_json() == found.to_json()
    assert str(again) == str(found)
    assert again.html() == found.html()

"""Assessments of canonical calibration: the headline, probability transfer, what is said, what is stored."""

import re
from dataclasses import replace

import numpy as np
import pytest
from tests.reports import whole_rows

from calibrant.assessment import text
from calibrant.assessment.probability_transfer import pairs, predicted, probability_transfer_of
from calibrant.inputs import predictions
from calibrant.tasks import CalibrationTask, get_notion


def changed(assessment, **estimate):
    """Return an assessment whose headline reads otherwise."""
    estimates = dict(assessment.estimates)
    estimates[assessment.notion] = replace(assessment.estimate, **estimate)
    return replace(assessment, estimates=estimates)


def test_pairs_and_predictions_are_those_of_the_columns():
    found = whole_rows()
    first, *others = pairs(found.probability_transfer, found.level)
    assert (found.classes[first.taker], found.classes[first.giver]) == ("wolf", "cat")
    # Half of the score of wolf, a third on average, belongs to cat.
    assert first.low > 0
    assert first.low < 1 / 6 < first.high
    assert len(others) == 2
    assert first.value > others[0].value >= others[1].value >= 0
    np.testing.assert_allclose(found.probability_transfer.net, -found.probability_transfer.net.T)
    rows = predicted(found.probability_transfer, found.level)
    assert found.classes[rows[0].column] == "wolf"
    assert sum(row.share for row in rows) == pytest.approx(1)
    assert sum(row.share * row.gap for row in rows) == pytest.approx(found.estimate.value)


def test_where_follows_the_columns_whatever_their_order():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 150)
    label = np.array(["b", "a", "c"])[(p[:, 0] < 0.3).astype(int)]
    turned = [2, 0, 1]
    names = ("b", "a", "c")
    here = probability_transfer_of(
        CalibrationTask.of(predictions(label, p, labels=names), get_notion("canonical"))
    )
    other = [names[k] for k in turned]
    there = probability_transfer_of(
        CalibrationTask.of(predictions(label, p[:, turned], labels=other), get_notion("canonical"))
    )
    np.testing.assert_allclose(there.net, here.net[np.ix_(turned, turned)], atol=1e-12)
    np.testing.assert_allclose(there.gap, here.gap[turned], atol=1e-12)


def test_more_than_twelve_classes_have_no_places():
    rng = np.random.default_rng(0)
    data = predictions(rng.integers(0, 13, 60), rng.dirichlet(np.ones(13), 60))
    assert probability_transfer_of(CalibrationTask.of(data, get_notion("canonical"))) is None
    assert probability_transfer_of(CalibrationTask.of(data, get_notion("confidence"))) is None


def test_it_says_what_interval_and_test_allow():
    found = whole_rows()
    assert re.match(r"Class probabilities are off by [\d.]+ points in sum\.$", found.verdict.headline)
    assert "wolf receives" in found.verdict.where
    assert re.search(
        r"Per row on average, wolf receives [\d.]+ points of probability that belong to cat", found.summary
    )
    assert "dog receives" not in found.summary
    assert "of predictions with confidence" in found.verdict.trust
    assert "by the confidence notion" in found.verdict.action
    assert "by the confidence notion" in text.gain_sentence(found)
    assert "sum over the classes" in found.methods
    assert "softmax" in found.methods
    assert f"it is at least {text.number(found.estimate.at_least)}" in found.methods


def test_without_rejection_no_pair_is_named():
    found = changed(whole_rows(), p_value=0.4)
    assert "takes" not in found.verdict.where
    assert text.transfer_sentence(found) == ""
    wide = replace(whole_rows().probability_transfer, spread=whole_rows().probability_transfer.spread + 1)
    assert text.transfer_sentence(whole_rows()).startswith("Per row on average")
    assert "No probability transfer between two classes" in text.transfer_sentence(
        replace(whole_rows(), probability_transfer=wide)
    )

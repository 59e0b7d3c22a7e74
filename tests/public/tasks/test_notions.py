"""Notions against a slow loop over rows, and what they have in common."""

import json

import numpy as np
import pytest

import calibrant
from calibrant import Sketch

ESTIMATORS = ("auto", "uniform:10", "adaptive:5", "density", "isotonic")


def model(n, classes, seed=0, digits=None):
    rng = np.random.default_rng(seed)
    score = rng.dirichlet(np.full(classes, 0.5), n)
    label = np.array([rng.choice(classes, p=row) for row in score])
    if digits is not None:  # ties, within rows too
        score = np.round(score * digits) / digits
        score[:, -1] = 0
        score[:, -1] = 1 - score.sum(axis=1)
        keep = (score >= 0).all(axis=1)
        score, label = score[keep], label[keep]
    return label, score


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_largest_score_alone_is_confidence(estimator):
    label, score = model(300, 4)
    for y, p in ((label, score), (label % 2, score[:, 0])):
        one, other = (
            calibrant.ece(y, p, notion=notion, estimator=estimator) for notion in ("top:1", "confidence")
        )
        assert one == other


@pytest.mark.parametrize("k", [1, 2, 3])
def test_rows_sketches_and_merged_sketches_agree(k):
    label, score = model(400, 5)
    notion = f"top:{k}"
    whole = Sketch(notion).update(label, score)
    merged = Sketch(notion).update(label[:150], score[:150]) + Sketch(notion).update(label[150:], score[150:])
    for estimator in ("auto", "uniform:15", "density"):
        rows = calibrant.ece(label, score, notion=notion, estimator=estimator)
        assert whole.ece(estimator=estimator) == pytest.approx(rows, abs=1e-6)
        assert merged.ece(estimator=estimator) == pytest.approx(whole.ece(estimator=estimator), abs=1e-12)


def test_the_order_of_columns_matters_only_to_ties():
    label, score = model(200, 5)
    order = np.array([3, 1, 4, 0, 2])
    at = np.argsort(order)
    plain, turned = (
        calibrant.ece(y, p, notion="top:2", estimator="uniform:10")
        for y, p in ((label, score), (at[label], score[:, order]))
    )
    assert turned == pytest.approx(plain, abs=1e-12)


@pytest.mark.usefixtures("few_reference_estimators")
def test_everything_answers_about_the_largest_scores():
    label, score = model(300, 4)
    result = calibrant.estimate(label, score, notion="top:2", rng=0)
    assert result.low <= result.value <= result.high
    assert " top:2\n" in str(result)
    assert "confident" in str(result)
    assert calibrant.reliability_curve(label, score, notion="top:2", n_boot=0).support[0] == 0.5
    assert calibrant.reliability_diagram(label, score, notion="top:2").notion == "top:2"
    assert calibrant.score_histogram(label, score, notion="top:2").support == (0.5, 1.0)
    assert calibrant.lce(label, score, [0.7, 0.9], notion="top:2").shape == (2,)
    assert (
        calibrant.recommend(score, notion="top:2", estimators=["l:10"], repetitions=5, rng=0).notion
        == "top:2"
    )
    assessment = calibrant.assess(label, score, notion="top:2", rng=0)
    assert list(assessment.estimates) == ["top:2", "confidence", "classwise"]
    assert "label is among the top 2" in str(assessment)
    assert "sum of the 2 largest scores" in assessment.html()
    compared = calibrant.compare(label, {"a": score, "b": score[:, ::-1]}, notion="top:2", rng=0)
    assert compared.estimates["a"].notion == "top:2"


def pairs(n=400, seed=0):
    rng = np.random.default_rng(seed)
    confidence = rng.random(n) ** 0.5
    return (rng.random(n) < 0.85 * confidence).astype(int), confidence


@pytest.mark.usefixtures("few_reference_estimators")
def test_everything_answers_about_pairs_in_their_words():
    right, confidence = pairs()
    result = calibrant.estimate(right, confidence, notion="correctness", rng=0)
    assert (result.label, result.notion) == (None, "correctness")
    assert "overconfident" in str(result)
    assert "class" not in str(result)
    assert "binary" not in str(result)
    curve = calibrant.reliability_curve(right, confidence, notion="correctness", n_boot=0)
    assert (curve.label, curve.notion) == (None, "correctness")
    assert calibrant.score_histogram(right, confidence, notion="correctness").positive.sum() == right.sum()
    assessment = calibrant.assess(right, confidence, notion="correctness", rng=0)
    assert list(assessment.estimates) == ["correctness"]
    assert assessment.pos_label is None
    assert assessment.verdict.headline.startswith("Overconfident by")
    assert "of answers with confidence" in assessment.verdict.trust
    assert assessment.accuracy.frequency == pytest.approx(right.mean())
    assert "answer is right" in str(assessment)
    assert "share right" in assessment.html()
    sketch = Sketch("correctness").update(right[:200], confidence[:200])
    sketch.update(right[200:], confidence[200:])
    assert sketch.estimate(rng=0).value == pytest.approx(result.value, abs=1e-6)
    assert sketch.assess(rng=0).verdict.trust == assessment.verdict.trust


def test_pairs_that_were_all_right_are_told_as_such():
    assessment = calibrant.assess([1] * 40, np.linspace(0.5, 1, 40), notion="correctness", rng=0)
    assert assessment.accuracy.frequency == 1


@pytest.mark.parametrize(("alias", "name"), [("class", "binary"), ("multiclass", "canonical")])
def test_an_alias_gives_results_of_the_name(alias, name):
    label, score = model(60, 3)
    options = {"pos_label": 1} if name == "binary" else {}
    one, other = (calibrant.estimate(label, score, notion=each, rng=0, **options) for each in (alias, name))
    assert one.to_json() == other.to_json()
    assert one.notion == json.loads(one.to_json())["notion"] == name
    with pytest.raises(calibrant.InputError, match=f"did you mean '{name}'"):
        calibrant.ece(label, score, notion=name[:-1])


def test_an_alias_is_accepted_for_sketches():
    assert calibrant.Sketch("class").notion == "binary"
    total = calibrant.Sketch("class").update([0, 1], [0.2, 0.9]) + calibrant.Sketch("binary")
    assert repr(total) == "Sketch(notion='binary', n=2)"

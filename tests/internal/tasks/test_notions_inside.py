"""Notions against a slow loop over rows, and what they have in common."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant
from calibrant import Sketch, inputs
from calibrant.tasks import CalibrationTask, get_notion
from oracles import notions as oracle

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


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), classes=st.integers(2, 7), digits=st.sampled_from([None, 4, 10]))
def test_the_largest_scores_are_those_of_a_loop_over_rows(seed, classes, digits):
    label, score = model(40, classes, seed, digits)
    if not len(label):
        return
    for k in range(1, classes):
        problem = next(
            get_notion(f"top:{k}").problems(inputs.predictions(label, score, labels=range(classes)))
        )
        expected = [oracle.top(row, own, k) for row, own in zip(score, label, strict=True)]
        np.testing.assert_allclose(problem.score, [total for total, _ in expected], rtol=1e-15)
        assert problem.outcome.tolist() == [held for _, held in expected]
        assert problem.support == (k / classes, 1.0)
        assert problem.score.max() <= 1


def test_a_sum_above_one_by_rounding_reads_one():
    score = np.array([[0.1, 0.2, 0.7 + 2e-7], [0.3, 0.3, 0.4]], dtype=np.float32)
    problem = next(get_notion("top:2").problems(inputs.predictions([2, 0], score[:, ::-1])))
    assert problem.score.max() <= 1
    wide = np.full((1, 3), 1 / 3, dtype=np.float16)
    assert next(get_notion("top:2").problems(inputs.predictions([0], wide))).score <= 1


def test_a_sketch_of_the_largest_scores_is_saved_and_read(tmp_path):
    sketch = Sketch("top:2").update(*model(100, 4))
    sketch.save(tmp_path / "a.sketch")
    again = Sketch.load(tmp_path / "a.sketch")
    assert (again.notion, again.digest) == ("top:2", sketch.digest)
    assert again._score_data.support == (0.5, 1.0)


@pytest.mark.parametrize("notion", ["top:0", "top:-1", "top:x", "top:", "top", "top:1.5"])
def test_what_names_no_number_of_scores_is_refused(notion):
    with pytest.raises(inputs.InputError, match="notion must"):
        calibrant.ece(*model(20, 4), notion=notion)


def test_as_many_scores_as_classes_are_refused():
    with pytest.raises(inputs.InputError, match="fewer scores than there are classes, 4, got 'top:4'"):
        calibrant.ece(*model(20, 4), notion="top:4")
    with pytest.raises(inputs.InputError, match="fewer scores"):
        calibrant.ece([0, 1], [0.2, 0.6], notion="top:2")


@pytest.mark.parametrize("notion", ["binary", "classwise", "confidence", "top:2"])
def test_a_notion_answers_for_itself(notion):
    chosen = get_notion(notion)
    assert str(chosen) == notion
    assert get_notion(chosen) is chosen
    assert chosen.reading.title
    label, score = model(50, 3)
    data = inputs.predictions(label, score, pos_label=1)
    task = CalibrationTask.of(data, chosen)
    assert len(task.problems) == chosen.size(3)
    assert {problem.support for problem in task.problems} == {chosen.support(3)}
    assert task.label == (1 if chosen.is_binary else None)


def pairs(n=400, seed=0):
    rng = np.random.default_rng(seed)
    confidence = rng.random(n) ** 0.5
    return (rng.random(n) < 0.85 * confidence).astype(int), confidence


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_pairs_are_never_mirrored(estimator):
    right, confidence = pairs()
    asked = calibrant.ece(right, confidence, notion="correctness", estimator=estimator)
    assert asked == calibrant.ece(right, confidence, notion="binary", estimator=estimator)
    problem = next(get_notion("correctness").problems(inputs.predictions(right, confidence)))
    np.testing.assert_array_equal(problem.score, confidence)
    assert problem.support == (0.0, 1.0)


def test_a_matrix_is_no_confidence_of_pairs():
    with pytest.raises(inputs.InputError, match="one confidence for each row"):
        calibrant.ece(*model(20, 3), notion="correctness")
    with pytest.raises(inputs.InputError, match="one confidence for each row"):
        Sketch("correctness").update(*model(20, 3))

"""What follows from a question is computed once, and no other package compares the name of a notion."""

import numpy as np
import pytest

import calibrant
from calibrant import Sketch, inputs
from calibrant.posterior import Posterior
from calibrant.tasks import CalibrationTask, get_notion


@pytest.fixture
def computed(monkeypatch):
    """How many posteriors were computed from residuals; null data sets of tests do not count."""
    calls = []
    compute = Posterior.of_residuals.__func__

    def counted(cls, flat, cells, plain=False):
        if not plain:
            calls.append(len(flat.mass))
        return compute(cls, flat, cells, plain)

    monkeypatch.setattr(Posterior, "of_residuals", classmethod(counted))
    return calls


def binary(n=300, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.random(n)
    return (rng.random(n) < score**1.5).astype(int), score


def classes(n=300, size=4, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.dirichlet(np.full(size, 0.5), n)
    return np.array([rng.choice(size, p=row) for row in score]), score


@pytest.mark.parametrize("estimator", ["auto", "uniform:10", "debiased"])
def test_an_estimate_computes_the_posterior_once(computed, estimator):
    calibrant.estimate(*binary(), estimator=estimator, rng=0)
    assert computed == [1]


@pytest.mark.parametrize("estimator", ["auto", "uniform:10"])
def test_a_class_wise_estimate_computes_the_posterior_of_each_class_once(computed, estimator):
    calibrant.estimate(*classes(), notion="classwise", estimator=estimator, rng=0)
    assert computed == [1] * 4


def test_an_estimate_of_many_classes_computes_the_posterior_of_each_once(computed):
    calibrant.estimate(*classes(150, 21), notion="classwise", labels=range(21), rng=0)
    assert sorted(computed) == [5, 16]  # some classes at a time, each by one of the threads


@pytest.mark.usefixtures("few_reference_estimators")
def test_an_assessment_computes_the_posterior_once_for_each_notion(computed):
    calibrant.assess(*binary(), rng=0)
    assert computed == [1, 1, 1]  # class, confidence, and class of recalibrated scores
    computed.clear()
    calibrant.assess(*classes(), rng=0)
    assert computed == [1] * 5  # confidence, and four classes


def test_an_assessment_of_a_sketch_computes_the_posterior_once(computed):
    Sketch("binary").update(*binary()).assess(rng=0)
    assert computed == [1]


def test_a_comparison_computes_the_posterior_of_each_model_once(computed):
    y, score = binary()
    calibrant.compare(y, {"one": score, "other": np.sqrt(score)}, rng=0)
    assert computed == [1, 1]


@pytest.mark.parametrize("notion", ["binary", "classwise", "confidence"])
def test_rows_and_sums_make_the_same_question(notion):
    y, score = binary()
    rows = CalibrationTask.of(inputs.predictions(y, score), get_notion(notion))
    sums = Sketch(notion).update(y, score)._task
    assert (rows.labels, rows.positive, rows.label) == (sums.labels, sums.positive, sums.label)
    assert rows.n == sums.n
    for ours, theirs in zip(rows.residuals, sums.residuals, strict=True):
        held = ours.mass > 0
        np.testing.assert_allclose(ours.mass[held], theirs.mass, rtol=1e-12)
        np.testing.assert_allclose(ours.residual[held], theirs.residual, atol=1e-9)

"""The library answers the same with compiled loops and without, to 1e-12."""

import numpy as np
import pytest

import calibrant
from calibrant import Sketch, estimator_names
from calibrant.estimators import resolve
from plainly import plain
from weighing import weighing

# Other tests run the same code.
pytestmark = pytest.mark.no_cover
KINDS = ("scores", "ties and counts", "float32 and weights")


def rows(kind):
    """Labels, scores of three classes and weights."""
    rng = np.random.default_rng(5)
    score, weight = rng.dirichlet([0.5, 0.5, 0.5], 90), None
    if kind == "ties and counts":
        score, weight = rng.multinomial(8, [0.2, 0.3, 0.5], 90) / 8, rng.integers(1, 4, 90)
    if kind == "float32 and weights":
        score, weight = score.astype(np.float32), rng.random(90)
    label = (rng.random((90, 1)) > np.cumsum(score, axis=1)).sum(axis=1).clip(0, 2)
    return label, score, weight


def agree(answer):
    """Both answers of a call are one."""
    with plain():
        expected = answer()
    np.testing.assert_allclose(answer(), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", estimator_names())
def test_every_estimator_agrees(name, kind):
    label, score, weight = rows(kind)
    pair = (label == 1).astype(int), score[:, 1]
    tasks = [
        (*pair, {"notion": "binary", "pos_label": 1}),
        (*pair, {"notion": "correctness"}),
        *((label, score, {"notion": notion}) for notion in ("classwise", "confidence", "top:2")),
    ]

    def errors():
        return [
            calibrant.ece(y, p, estimator=name, norm=norm, **weighing(weight), **task)
            for y, p, task in tasks
            for norm in resolve(name).norms
        ]

    agree(errors)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", estimator_names(vectors=True))
def test_every_estimator_of_whole_rows_agrees(name, kind):
    label, score, weight = rows(kind)
    agree(lambda: calibrant.ece(label, score, notion="canonical", estimator=name, **weighing(weight)))


@pytest.mark.parametrize("kind", KINDS)
def test_sketches_agree(kind):
    label, score, weight = rows(kind)

    def errors():
        sketches = [Sketch(notion=notion) for notion in ("classwise", "confidence")]
        for sketch in sketches:
            sketch.update(label, score, **weighing(weight))
        names = ("uniform:15", "density", "bayes")
        return [sketch.ece(estimator=name) for sketch in sketches for name in names]

    agree(errors)


def test_long_data_agree():
    rng = np.random.default_rng(6)
    score = rng.random(70_000)
    label = (rng.random(70_000) < score).astype(int)
    agree(lambda: [calibrant.ece(label, score, estimator=name) for name in ("uniform:15", "density", "a:15")])


def test_what_is_refused_is_refused_in_the_same_words():
    for label, score in (
        ([0, 1, 2], [0.1, 0.2, 0.3]),
        ([0, 1, 1], [0.1, 1.2, 0.3]),
        ([0, 1, 1], [0.1, np.nan, 0.3]),
        ([0, 1, 1], [[0.5, 0.5], [0.5, 0.6], [0.2, 0.7]]),
        ([0, 1, 1], [[0.5, 0.5], [0.5, 0.5], [1.2, -0.2]]),
    ):
        with pytest.raises(calibrant.InputError) as compiled_words:
            calibrant.ece(label, score)
        with plain(), pytest.raises(calibrant.InputError) as plain_words:
            calibrant.ece(label, score)
        assert str(compiled_words.value) == str(plain_words.value)

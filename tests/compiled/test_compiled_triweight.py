"""The densities of the authors' code are the same by moments and by transforms."""

import numpy as np
import pytest

from calibrant import compiled, published
from plainly import needs_loops, plain

BANDWIDTHS = ("1e-4", "0.003", "0.0041", "0.033", "0.1", "0.5", "3", "1e9", "silverman")


def both(scores, outcomes, **options):
    found = published.errors_many(scores, outcomes, **options)
    with plain():
        return found, published.errors_many(scores, outcomes, **options)


@needs_loops
@pytest.mark.parametrize("n", [1, 2, 30, 211])
@pytest.mark.parametrize("notion", ["confidence", "classwise", "class"])
def test_moments_and_transforms_agree(notion, n):
    rng = np.random.default_rng(n)
    rows = rng.dirichlet(np.full(3, 0.5), (4, n))
    rows[:, : n // 4] = np.eye(3)[rng.integers(3, size=n // 4)]  # scores on both walls
    rows[:, n // 4 : n // 3] = rows[:, -1:]
    scores = {"confidence": rows.max(axis=2), "classwise": rows.transpose(0, 2, 1), "class": rows[..., 0]}[
        notion
    ]
    outcomes = rng.random(scores.shape) < scores
    outcomes[..., 0] = True
    names = [f"d:{bandwidth}" for bandwidth in BANDWIDTHS]
    found, expected = both(scores, outcomes, notion=notion, estimators=names, n_classes=3)
    assert found == pytest.approx(expected, abs=1e-12)


@needs_loops
def test_a_sample_is_the_same_alone_and_among_others():
    rng = np.random.default_rng(0)
    scores = rng.random((9, 40))
    outcomes = rng.random((9, 40)) < scores
    options = {"notion": "class", "estimators": ["d:0.033", "d:silverman"]}
    together = published.errors_many(scores, outcomes, **options)
    alone = [published.errors_many(scores[k : k + 1], outcomes[k : k + 1], **options) for k in range(9)]
    assert np.array_equal(together, np.concatenate(alone, axis=1))


@needs_loops
@pytest.mark.parametrize(
    ("place", "value"),
    [
        (0, np.zeros((2, 3), np.float32)),
        (0, np.zeros((3, 3))),
        (0, np.zeros((2, 6))[:, ::2]),
        (0, None),
        (1, np.zeros((2, 3))),
        (1, np.zeros((2, 2), bool)),
        (2, np.ones((2, 2))),
        (2, np.ones(2)),
        (2, np.array([[1.0, 0.0]])),
        (2, np.array([[1.0, np.nan]])),
        (3, np.zeros((2, 2))),
        (3, np.zeros((1, 3))),
        (6, 0.0),
        (6, "narrow"),
        (7, 0),
        (7, 2**40),
        (7, 1.5),
    ],
)
def test_arrays_that_are_no_samples_are_refused(place, value):
    arguments = [
        np.zeros((2, 3)),
        np.zeros((2, 3), bool),
        np.ones((1, 2)),
        np.empty((1, 2)),
        0.0,
        0.01,
        0.01,
        100,
    ]
    compiled.loops.triweight(*arguments)
    arguments[place] = value
    with pytest.raises((ValueError, TypeError)):
        compiled.loops.triweight(*arguments)


@needs_loops
@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, 1e300, -1e9])
def test_numbers_that_are_no_scores_read_nothing_outside(odd):
    outcomes, width, out = np.ones((1, 4), bool), np.ones((1, 1)), np.empty((1, 1))
    compiled.loops.triweight(np.full((1, 4), odd), outcomes, width, out, 0.0, 0.0, 0.1, 10)
    compiled.loops.triweight(np.full((1, 4), 0.5), outcomes, width, out, odd, odd, 0.1, 10)

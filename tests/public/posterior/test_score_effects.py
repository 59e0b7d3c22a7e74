"""Effects of single scores: against loops, in every form of the data, and where they matter."""

import numpy as np
import pytest

import calibrant


def rows_of_three_classes(n):
    """Labels and scores of three classes, eight rows after each other with the same scores."""
    rng = np.random.default_rng(0)
    score, other = (rng.dirichlet(np.ones(3), n // 8).repeat(8, axis=0) for _ in range(2))
    edges = np.cumsum(0.8 * score + 0.2 * other, axis=1)
    return (rng.random((n, 1)) > edges[:, :-1]).sum(axis=1), score


@pytest.mark.parametrize(
    "n",
    [4000, 20_000],
)
def test_the_order_of_rows_of_several_classes_does_not_matter(n):
    label, score = rows_of_three_classes(n)
    shuffled = np.random.default_rng(1).permutation(n)
    one, other = (calibrant.ece(label[a], score[a], notion="classwise") for a in (slice(None), shuffled))
    assert one == pytest.approx(other, rel=1e-9)


@pytest.mark.parametrize("weight", [1e-7, 1e-8, 1e-12, 1e-200, 1e-300])
@pytest.mark.parametrize("score", [0.5, 0.8])
def test_a_row_of_vanishing_weight_beside_tied_scores_changes_nothing(weight, score):
    alone = calibrant.ece([0, 1], [0.6, 0.6], sample_weight=[1.0, 1.0])
    found = calibrant.ece([0, 1, 0], [0.6, 0.6, score], sample_weight=[1, 1, weight])
    assert found == pytest.approx(alone, rel=1e-5)

"""Maps of scores that differ in their last bits: rounding leaves them one score, and what is saved loads."""

import numpy as np
import pytest
from click.testing import CliRunner

from calibrant import Calibrator, cli
from calibrant.maps.methods import METHODS

ONE = [name for name, method in METHODS.items() if method.one]
NUMBERS = {"rtol": 0, "atol": 1e-9}


def shares(rng, n, classes):
    """Draw scores that are rounded to tenths and divided by their sums, which rounds them again."""
    score = np.round(rng.dirichlet(np.full(classes, 2.0), n), 1) * rng.uniform(0.5, 2, (n, 1))
    score = score[score.sum(axis=1) > 0]
    score /= score.sum(axis=1, keepdims=True)
    return score


def one_score(seed, n=300, classes=5):
    rng = np.random.default_rng(seed)
    score = shares(rng, n, classes)[:, 0]
    return score, (rng.random(score.size) < score ** rng.choice([0.5, 1, 2])).astype(int)


def asked_at(score):
    """Return scores as they were fitted, and others."""
    return np.concatenate([score[:50], np.linspace(0, 1, 48)])


def test_such_scores_differ_in_their_last_bits():
    score = np.unique(one_score(0)[0])
    assert (np.diff(score) < 1e-15).sum() > 10


@pytest.mark.parametrize("method", ONE)
def test_a_map_of_one_score_is_loaded_as_it_was_saved(method):
    for seed in range(4):
        score, outcome = one_score(seed)
        fitted = Calibrator(method).fit(score, outcome)
        loaded = Calibrator.from_json(fitted.to_json())
        at = asked_at(score)
        np.testing.assert_allclose(loaded.predict_proba(at), fitted.predict_proba(at), **NUMBERS)


def test_the_command_applies_the_map_that_it_has_fitted(tmp_path):
    score, outcome = one_score(1)
    rows, saved, mapped = (str(tmp_path / name) for name in ("rows.csv", "map.json", "mapped.csv"))
    np.savetxt(rows, np.column_stack([outcome, score]), ["%d", "%.17g"], ",", header="label,p", comments="")
    for command in (["fit", rows, "-o", saved], ["apply", saved, rows, "-o", mapped]):
        result = CliRunner().invoke(cli.main, ["calibrate", *command])
        assert result.exit_code == 0, result.output


@pytest.mark.parametrize("method", ONE)
@pytest.mark.parametrize("n", [2, 3, 5, 9, 101, 300])
def test_the_complement_has_the_complement_of_the_map(method, n):
    for seed in range(4):
        score, outcome = one_score(seed, n)
        rng = np.random.default_rng(seed)
        for score in (score, np.where(rng.random(score.size) < 0.4, rng.integers(0, 2, score.size), score)):
            # A score on the edge of two bins of a histogram belongs to the one on its right.
            at = score if method == "histogram" else asked_at(score)
            one = Calibrator(method).fit(score, outcome).predict_proba(at)
            other = Calibrator(method, pos_label=1).fit(1 - score, 1 - outcome).predict_proba(1 - at)
            # Where few rows are near, the curve of `density` is a ratio of two sums that nearly vanish.
            most = 1e-6 if method == "density" else 1e-9
            np.testing.assert_allclose(1 - other, one, rtol=0, atol=most)


def test_a_few_rows_with_a_wall_leave_the_scores_alone_whichever_class_is_positive():
    for score, outcome in (([1.0, 0.52], [1, 0]), ([0.0, 0.48], [0, 1])):
        np.testing.assert_array_equal(
            Calibrator().fit(score, outcome).predict_proba([0.0, 0.01, 0.7]), [0, 0.01, 0.7]
        )

"""Scores that repeat, and deviate each by itself from a smooth map."""

import numpy as np

from calibrant import Calibrator, Sketch


def logit(p):
    return np.log(p) - np.log1p(-p)


def expit(x):
    return 1 / (1 + np.exp(-x))


def lookup_table(n=3000, sd=1.0, seed=0, categories=200):
    """Draw scores of categories, rows, and the true probability of each category."""
    rng = np.random.default_rng(seed)
    score = np.unique(np.round(rng.beta(1, 2, categories), 5).clip(0.001, 0.999))
    truth = expit(logit(score) + sd * rng.standard_normal(score.size))
    row = rng.integers(0, score.size, n)
    return score, truth, score[row], (rng.random(n) < truth[row]).astype(int)


def excess(truth, q):
    return float((truth * np.log(truth / q) + (1 - truth) * np.log((1 - truth) / (1 - q))).mean())


def test_deviations_of_categories_are_followed():
    loss = np.zeros(3)
    for seed in range(3):
        score, truth, *rows = lookup_table(seed=seed)
        for k, choices in enumerate(({}, {"monotone": True}, {"method": "identity"})):
            loss[k] += excess(truth, Calibrator(**choices).fit(*rows).predict_proba(score))
    assert loss[0] < 0.5 * loss[1] < loss[2]


def test_a_map_with_deviations_is_saved_exported_turned_round_and_fitted_to_sums():
    score, _, rows, outcome = lookup_table()
    rows, score = (np.where(each == score[0], 0.0, each) for each in (rows, score))
    fitted = Calibrator().fit(rows, outcome)
    at = np.concatenate([score, (score[1:] + score[:-1]) / 2])
    expected = fitted.predict_proba(at)
    assert (np.diff(expected[: score.size]) < -0.05).any()
    np.testing.assert_array_equal(Calibrator.from_json(fitted.to_json()).predict_proba(at), expected)
    turned = Calibrator(pos_label=1).fit(1 - rows, 1 - outcome).predict_proba(1 - at)
    np.testing.assert_allclose(1 - turned, expected, rtol=0, atol=1e-9)
    sketch = Sketch().update(outcome[:900], rows[:900]) + Sketch().update(outcome[900:], rows[900:])
    np.testing.assert_allclose(sketch.calibrator().predict_proba(at), expected, atol=1e-9)
    space = {}
    exec(fitted.to_python("calibrated"), space)
    np.testing.assert_allclose([space["calibrated"](p) for p in at.tolist()], expected, atol=1e-9)
    # Scores that differ in their last bits are the same score.
    for near in (np.nextafter(score, 0), np.nextafter(score, 1)):
        np.testing.assert_allclose(fitted.predict_proba(near), expected[: score.size], atol=1e-9)


def test_other_scores_stay_on_a_smooth_map():
    score, _, *rows = lookup_table()
    between = (score[1:] + score[:-1]) / 2
    fitted = Calibrator().fit(*rows)
    at_scores, elsewhere = (np.abs(np.diff(fitted.predict_proba(each))).max() for each in (score, between))
    assert elsewhere < at_scores / 3
    assert (np.diff(Calibrator(monotone=True).fit(*rows).predict_proba(score)) >= 0).all()

"""Estimates where rows share scores: lookups and trees, copies of rows, and rows of one case."""

import numpy as np

import calibrant
from calibrant.inference.estimate import THIN_REPLICATION
from calibrant.settings import REPORT


def levels(count, n, sd, seed):
    """Equally frequent scores with independent gaps, and the true error."""
    rng = np.random.default_rng(seed)
    score = (np.arange(count) + 0.5) / count
    true = np.clip(score + rng.normal(0, sd, count), 0, 1)
    which = rng.integers(0, count, n)
    return score[which], (rng.random(n) < true[which]).astype(int), float(np.abs(true - score).mean())


def patients(seed=0, cases=400, rows=3, agreement=4.0):
    """Scores and outcomes of calibrated cases with several correlated rows each."""
    rng = np.random.default_rng(seed)
    score, case = rng.beta(1, 1.5, cases), np.repeat(np.arange(cases), rows)
    chance = rng.beta(agreement * score, agreement * (1 - score))
    return (rng.random(case.size) < chance[case]).astype(int), score[case], case


def test_rows_of_one_case_say_nothing_about_their_score():
    y, score, case = patients()
    alone = calibrant.estimate(y, score, rng=0, n_resamples=99)
    assert alone.value > 0.05
    assert alone.cautions == (THIN_REPLICATION,)
    together = calibrant.estimate(y, score, rng=0, n_resamples=99, cluster=case)
    assert together.value < 0.03
    assert together.cautions == ()
    assert together.low == 0


def test_a_comparison_says_that_errors_are_not_equally_certain():
    rng = np.random.default_rng(0)
    score, y, _ = levels(600, 1500, 0.1, 0)
    continuous = np.clip(y.mean() + 0.001 * rng.standard_normal(1500), 0, 1)
    found = calibrant.compare(y, {"tree": score, "constant": continuous}, rng=0, n_resamples=99)
    wide, narrow = (one.high - one.low for one in found.estimates.values())
    assert wide > REPORT.width_ratio * narrow
    (caution,) = found.cautions
    assert (
        f"'tree' is much less certain than that of 'constant' (its interval is {wide / narrow:.1f}" in caution
    )
    assert " ".join(str(found).split()).endswith(caution)
    assert calibrant.compare(y, {"a": score, "b": score**1.01}, rng=0, n_resamples=99).cautions == ()

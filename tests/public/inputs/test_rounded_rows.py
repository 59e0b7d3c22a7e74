"""Rows whose sum differs from 1 by what the rounding of their scores explains, and by more."""

from fractions import Fraction

import numpy as np
import pytest

import calibrant


def softmax(n, classes, seed=0):
    logits = np.random.default_rng(seed).normal(0, 2, (n, classes))
    p = np.exp(logits)
    return p / p.sum(axis=1, keepdims=True)


def labels_of(p, seed=1):
    return (
        (p.cumsum(axis=1) < np.random.default_rng(seed).random((len(p), 1)))
        .sum(axis=1)
        .clip(0, p.shape[1] - 1)
    )


def slowly_renormalised(p):
    """Each row by itself, in exact arithmetic: (scores, how many rows differ from 1 by more than 1e-6)."""
    rows, count = [], 0
    for row in p.tolist():
        total = sum(map(Fraction, row))
        off = abs(total - 1) > Fraction(1, 10**6) + Fraction(1, 10**12)
        rows.append([float(Fraction(v) / total) for v in row] if off else row)
        count += off
    return np.array(rows), count


@pytest.mark.full
def test_an_assessment_says_it_too(without_reference_estimators):
    p = softmax(300, 4).round(4)
    y, groups = labels_of(p), np.arange(300) % 2
    found = calibrant.assess(y, p, groups=groups, rng=0)
    (sentence,) = found.estimate.cautions
    assert sentence in found.cautions
    assert sentence in " ".join(str(found).split())
    own = sum(slowly_renormalised(p[groups == k])[1] for k in (0, 1))
    assert sentence.startswith(f"{own} of 300 rows")
    assert [int(row.estimate.cautions[0].split()[0]) for row in found.by_group] == [
        slowly_renormalised(p[groups == int(row.name)])[1] for row in found.by_group
    ]


@pytest.mark.full
def test_a_sketch_counts_them_and_keeps_the_number(tmp_path):
    p = softmax(500, 6).round(4)
    y, (_, count) = labels_of(p), slowly_renormalised(p)
    whole = calibrant.Sketch("confidence").update(y, p)
    parts = calibrant.Sketch("confidence")
    for a in range(0, 500, 7):
        parts.update(y[a : a + 7], p[a : a + 7])
    assert whole.totals.renormalised == parts.totals.renormalised == count
    assert (whole + parts).totals.renormalised == 2 * count
    whole.save(tmp_path / "a.sketch")
    again = calibrant.Sketch.load(tmp_path / "a.sketch")
    assert (again.digest, again.totals) == (whole.digest, whole.totals)
    sentence = f"{count} of 500 rows did not sum to 1 because of rounding and were renormalised."
    assert again.estimate(rng=0).cautions == (sentence,)
    assert sentence in again.assess(rng=0).cautions

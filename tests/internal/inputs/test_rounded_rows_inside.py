"""Rows whose sum differs from 1 by what the rounding of their scores explains, and by more."""

import math
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import calibrant
from calibrant import InputError
from calibrant.inputs import predictions, select_rows, unlabelled
from calibrant.inputs.rounding import LARGEST, explained


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


@pytest.mark.parametrize("classes", [3, 10, 100, 1000])
@pytest.mark.parametrize("decimals", [4, 5, 6, 7])
def test_rounded_softmax_is_renormalised_row_by_row(classes, decimals):
    p = softmax(200, classes).round(decimals)
    data, (expected, count) = predictions(np.zeros(200, int), p), slowly_renormalised(p)
    assert data.renormalised == count
    np.testing.assert_allclose(data.score, expected, rtol=1e-14)
    untouched = np.zeros(200) == (data.deviation if data.deviation is not None else 0)
    np.testing.assert_array_equal(data.score[untouched], p[untouched])
    assert len(data.cautions) == (count > 0)


@settings(max_examples=100, deadline=None)
@given(
    st.integers(0, 10**6), st.integers(2, 12), st.integers(3, 9), st.sampled_from([np.float64, np.float32])
)
def test_the_rule_is_that_of_one_row_in_exact_arithmetic(seed, classes, decimals, dtype):
    rng, unit = np.random.default_rng(seed), 10**decimals
    whole = rng.multinomial(unit, rng.dirichlet(np.ones(classes)), size=8)
    # Some units more or fewer than 1, up to twice what rounding explains.
    whole[:, 0] = np.maximum(whole[:, 0] + rng.integers(-classes, classes + 1, 8), 0)
    p = (whole / unit).astype(dtype)
    least = Fraction(1, 10**6) if dtype == np.float64 else Fraction(1, 10**4)
    for row, numbers in zip(p, whole.tolist(), strict=True):
        deviation = abs(Fraction(sum(numbers), unit) - 1)
        # Trailing zeros: fewer decimals may write the same row.
        own = next(d for d in range(3, 10) if all(v * 10**d % unit == 0 for v in numbers))
        bound = min(Fraction(classes, 2 * 10**own), Fraction(1, 100))
        accepted = deviation <= max(bound, least)
        if max(numbers) > unit or abs(deviation - max(bound, least)) < Fraction(1, 10**7):
            continue
        try:
            predictions([0], row[None])
        except InputError:
            assert not accepted
        else:
            assert accepted


REFUSED = {
    "one decimal": [0.5, 0.3, 0.1],
    "two decimals": [0.33, 0.33, 0.33],
    "many digits": [0.25 + 1e-4 / 3, 0.25, 0.5],
    "a digit too many": [0.333334, 0.333334, 0.333334],
    "three decimals of many classes": [0.6, *[0.004] * 97],
}


@pytest.mark.parametrize("row", REFUSED.values(), ids=REFUSED)
def test_what_rounding_does_not_explain_is_refused(row):
    total = math.fsum(row)
    with pytest.raises(InputError, match="y_prob must sum to 1 within 1e-06 in every row") as caught:
        predictions([0, 0], [[0, 1, *[0] * (len(row) - 2)], row])
    assert (caught.value.row, caught.value.got) == (1, f"{total:.9g}")


def test_the_worst_row_that_rounding_does_not_explain_is_named():
    rows = np.tile([0.3333, 0.3333, 0.3333], (300_000, 1))
    rows[200_000] = 0.333 + 1e-5 / 3, 0.333, 0.334
    with pytest.raises(InputError, match=r"got 1.00000333 at row 200000; if these are rounded, divide"):
        predictions(np.zeros(300_000, int), rows)


@pytest.mark.parametrize("kind", [np.float16, "bfloat16"])
def test_numbers_of_a_narrower_type_are_recognised_in_a_wider_one(kind):
    p = softmax(300, 20)
    if kind == "bfloat16":
        narrow = ((p.astype(np.float32).view(np.uint32) + 0x8000) & 0xFFFF0000).view(np.float32)
    else:
        narrow = p.astype(kind)
    for wide in (np.float32, np.float64):
        data = predictions(np.zeros(300, int), narrow.astype(wide))
        assert data.renormalised > 250
        np.testing.assert_allclose(data.score.sum(axis=1), 1, atol=3e-6)
        broken = narrow.astype(wide)
        broken[7] *= 0.9
        with pytest.raises(InputError, match="at row 7"):
            predictions(np.zeros(300, int), broken)


def test_the_result_depends_neither_on_chunks_nor_on_order_nor_on_layout():
    p = softmax(2000, 10).round(5)
    whole = predictions(np.zeros(2000, int), p)
    order = np.random.default_rng(2).permutation(2000)
    for score in (
        predictions(np.zeros(2000, int), np.asfortranarray(p)).score,
        predictions(np.zeros(2000, int), np.repeat(p, 2, axis=1)[:, ::2]).score,
        predictions(np.zeros(2000, int), p[order]).score[np.argsort(order)],
        np.concatenate([predictions(np.zeros(len(part), int), part).score for part in np.split(p, 400)]),
        unlabelled(p).score,
    ):
        assert (score == whole.score).all()
    best, most = whole.largest
    np.testing.assert_array_equal(best, whole.score.argmax(axis=1))
    np.testing.assert_array_equal(most, whole.score.max(axis=1))


def test_scores_that_were_passed_are_not_changed():
    p = softmax(50, 10).round(4)
    before = p.copy()
    assert predictions(np.zeros(50, int), p).renormalised
    np.testing.assert_array_equal(p, before)


def test_only_rows_that_count_are_counted():
    p = np.array([[0.3333, 0.3333, 0.3333], [0.2, 0.3, 0.5], [0.3333, 0.3333, 0.3333], [0.1, 0.2, 0.7]])
    data = predictions([0, 1, 2, 2], p, sample_weight=[0, 1, 2, 1])
    assert data.renormalised == 1
    assert data.cautions == (
        "1 of 3 rows did not sum to 1 because of rounding (largest deviation 0.0001) and was renormalised.",
    )
    assert select_rows(data, np.array([True, False, True])).cautions == ()
    counted = predictions([0, 1, 2, 2], p, counts=[0, 1, 2, 1])
    repeated = predictions([1, 2, 2, 2], p[[1, 2, 2, 3]])
    assert counted.cautions == repeated.cautions
    assert counted.renormalised == 2


def test_no_deviation_above_the_limit_is_explained():
    row = np.array([[0.005] * 198])  # 0.99
    assert explained(row, row.sum(axis=1) - 1).all()
    row[0, 0] = 0.004
    assert not explained(row, row.sum(axis=1) - 1).any()
    assert LARGEST == 0.01


def test_results_say_how_many_rows_were_renormalised():
    p = softmax(400, 5).round(4)
    y = labels_of(p)
    _, count = slowly_renormalised(p)
    sentence = (
        f"{count} of 400 rows did not sum to 1 because of rounding (largest deviation 0.0002) "
        "and were renormalised."
    )
    found = calibrant.estimate(y, p, rng=0)
    assert found.cautions == (sentence,)
    assert " ".join(str(found).split()).endswith(sentence)
    assert calibrant.Estimate.from_json(found.to_json()) == found
    assert calibrant.estimate(y, predictions(y, p).score, rng=0).cautions == ()
    assert calibrant.estimate(y, p, notion="canonical", rng=0).cautions == (sentence,)
    assert calibrant.regret(y, p, 0.5, pos_label=1, rng=0).cautions == (sentence[:-1],)
    compared = calibrant.compare(y, {"rounded": p, "exact": softmax(400, 5)}, rng=0)
    assert compared.estimates["rounded"].cautions == (sentence,)
    assert compared.estimates["exact"].cautions == ()


def test_a_calibrator_takes_them():
    p = softmax(500, 6).round(4)
    y = labels_of(p)
    exact = predictions(y, p).score
    for method in ("auto", "temperature"):
        fitted = calibrant.Calibrator(method).fit(p, y)
        np.testing.assert_allclose(
            fitted.predict_proba(p),
            calibrant.Calibrator(method).fit(exact, y).predict_proba(exact),
            rtol=1e-10,
        )

"""The canonical notion by the public functions: identities, what must not change it, and what it refuses."""

from types import MappingProxyType

import numpy as np
import pytest

import calibrant
from calibrant import Estimate

NAMES = np.array(["ant", "bee", "cat", "dog"])


def drawn(n=250, classes=4, seed=0, pull=0.4):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(classes), n)
    truth = (1 - pull) * p + pull / classes
    return p, (rng.random((n, 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)


@pytest.fixture(scope="module")
def found():
    p, y = drawn()
    return calibrant.estimate(y, p, notion="canonical", rng=0)


def test_of_two_classes_it_is_the_error_of_one():
    rng = np.random.default_rng(1)
    score = rng.random(200)
    y = rng.random(200) < score**2
    one, two = calibrant.ece(y, score), {"notion": "canonical"}
    assert calibrant.ece(y, score, **two) == pytest.approx(2 * one, abs=1e-12)
    assert calibrant.ece(y, score, norm="mul", **two) == pytest.approx(one, abs=1e-12)
    root = calibrant.ece(y, score, norm="l2")
    assert calibrant.ece(y, score, norm="l2", **two) == pytest.approx(np.sqrt(2) * root, abs=1e-12)
    matrix = np.stack([1 - score, score], axis=1)
    single = calibrant.estimate(y, score, rng=0)
    for norm, scale in (("l1", 2), ("mul", 1)):
        both = calibrant.estimate(y, matrix, norm=norm, rng=0, **two)
        for name in ("value", "low", "high"):
            assert getattr(both, name) == pytest.approx(scale * getattr(single, name), abs=1e-12)
        assert (both.p_value, both.over, both.label) == (single.p_value, None, None)
        assert both.null.mean == pytest.approx(scale * single.null.mean)
        assert Estimate.from_json(both.to_json()) == both
        assert {each.value for each in both.by_class.values()} == {one}
    assert {each.value for each in calibrant.estimate(y, matrix, rng=0, **two).by_class.values()} == {one}


def test_neither_the_order_of_rows_nor_that_of_classes_matters(found):
    p, y = drawn()
    order = np.random.default_rng(2).permutation(len(y))
    assert calibrant.estimate(y[order], p[order], notion="canonical", rng=0) == found
    columns = np.array([2, 0, 3, 1])
    turned = calibrant.estimate(
        NAMES[y], p[:, columns], labels=list(NAMES[columns]), notion="canonical", rng=0
    )
    for name in ("value", "low", "high", "p_value", "at_least"):
        assert getattr(turned, name) == getattr(found, name)
    assert turned.by_class["cat"].value == found.by_class[2].value


def test_counts_mean_repetition_and_single_precision_changes_little():
    p, y = drawn(120)
    count = np.random.default_rng(3).integers(0, 3, 120)
    counted = calibrant.estimate(y, p, notion="canonical", counts=count, rng=0)
    repeated = calibrant.estimate(np.repeat(y, count), np.repeat(p, count, axis=0), notion="canonical", rng=0)
    assert counted == repeated
    single = calibrant.ece(y, p.astype(np.float32), notion="canonical")
    assert single == pytest.approx(calibrant.ece(y, p, notion="canonical"), abs=1e-4)
    weight = np.random.default_rng(4).random(120)
    for norm in ("l1", "l2", "mul"):
        ends = [
            calibrant.ece(y, p, notion="canonical", norm=norm, sample_weight=w) for w in (weight, 4 * weight)
        ]
        assert ends[0] == pytest.approx(ends[1], abs=1e-12)


def test_what_calibrated_rows_read_is_about_what_is_said():
    rng = np.random.default_rng(5)
    p = rng.dirichlet(np.ones(3), 400)
    read = []
    for _ in range(12):
        y = (rng.random((400, 1)) > p.cumsum(axis=1)[:, :-1]).sum(axis=1)
        read.append(calibrant.ece(y, p, notion="canonical"))
    said = calibrant.estimate(y, p, notion="canonical", rng=0).null
    assert np.mean(read) / 4 < said.mean < 4 * np.mean(read)


@pytest.mark.parametrize("name", ["dirichlet", "variational:temperature:3"])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_named_estimator_has_its_own_value_and_null_and_the_interval_of_the_true_error(name, classes):
    p, y = drawn(120, classes)
    about = {"notion": "canonical", "rng": 0, "labels": range(classes)}
    found, default = (calibrant.estimate(y, p, **about, **more) for more in ({"estimator": name}, {}))
    asked = {"notion": "canonical", "estimator": name, "labels": range(classes)}
    assert found.value == calibrant.ece(y, p, **asked)
    assert (found.low, found.high) == (min(default.low, found.value), max(default.high, found.value))
    assert (found.p_value, found.at_least) == (default.p_value, default.at_least)
    assert (found.estimator, found.by_class) == (name, None)
    assert 0 <= found.null.mean < found.value
    assert found.null != default.null
    assert Estimate.from_json(found.to_json()) == found


def test_what_a_named_estimator_reads_of_calibrated_data_counts_repetitions():
    p, y = drawn(60, 3)
    count = np.arange(60) % 3
    about = {"notion": "canonical", "rng": 0, "estimator": "dirichlet", "labels": range(3)}
    counted = calibrant.estimate(y, p, counts=count, **about)
    repeated = calibrant.estimate(np.repeat(y, count), np.repeat(p, count, axis=0), **about)
    assert counted.null.mean == pytest.approx(repeated.null.mean, abs=1e-9)


def test_beyond_twelve_classes_it_is_called_a_lower_bound():
    p, y = drawn(200, 14)
    many = calibrant.estimate(y, p, notion="canonical", rng=0)
    assert many.lower_bound
    assert "of the part that can be estimated with so many classes" in str(many)
    assert Estimate.from_json(many.to_json()) == many


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"norm": "max"}, "'l1', 'l2', 'mul'"),
        ({"estimator": "uniform:15"}, "is an estimator of one score"),
        ({"estimator": "skce"}, "estimate the ECE, got skce, a different measure"),
        ({"cluster": np.arange(250) // 2}, "one score at a time"),
    ],
)
def test_what_cannot_be_asked_is_said(options, word):
    p, y = drawn()
    with pytest.raises(ValueError, match=word):
        calibrant.estimate(y, p, notion="canonical", rng=0, **options)


def test_mul_is_asked_of_whole_rows_alone():
    with pytest.raises(ValueError, match="norm must be one of"):
        calibrant.ece([0, 1, 1], [0.2, 0.6, 0.9], norm="mul")
    with pytest.raises(ValueError, match="norm must be one of"):
        calibrant.estimate([0, 1, 1], [0.2, 0.6, 0.9], norm="mul")


@pytest.mark.parametrize("change", [{"over": 0.1}, {"value": 2.5}, {"at_least": 3.0}, {"lower_bound": "yes"}])
def test_stored_estimates_that_cannot_be_are_refused(found, change):
    with pytest.raises((ValueError, TypeError), match=next(iter(change))):
        Estimate.from_dict(found.to_dict() | change)
    assert isinstance(found.by_class, MappingProxyType)

"""How many data sets the test simulates, and what that means for many tests at once."""

import numpy as np
import pytest

import calibrant

pytestmark = pytest.mark.no_cover


def rows(n=400, power=1.0, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.random(n)
    return rng.random(n) < score**power, score


def test_more_resamples_change_the_p_value_alone():
    y, score = rows(power=1.15)
    usual, more = (calibrant.estimate(y, score, rng=0, n_resamples=n) for n in (None, 20_000))
    assert usual == calibrant.estimate(y, score, rng=0, n_resamples=999)
    assert (more.value, more.low, more.high) == (usual.value, usual.low, usual.high)
    assert 0.001 < usual.p_value < 0.5
    assert not more.at_floor
    # A standard error of the smaller number.
    assert more.p_value == pytest.approx(usual.p_value, abs=4 * np.sqrt(usual.p_value / 999))


@pytest.mark.parametrize("value", [98, 0, -1, 999.0, True, "999"])
def test_a_number_of_resamples_that_is_none_is_refused(value):
    with pytest.raises(calibrant.InputError, match="n_resamples must be an integer of at least 99"):
        calibrant.estimate(*rows(), n_resamples=value)


@pytest.mark.full
def test_all_surfaces_take_the_number():
    y, score = rows(power=3.0)
    sketch = calibrant.Sketch("binary").update(y, score)
    assert sketch.estimate(rng=0, n_resamples=1999).p_value == 1 / 2000
    assert sketch.assess(rng=0, n_resamples=199).estimate.p_floor == 1 / 200
    compared = calibrant.compare(y, {"a": score, "b": score**0.5}, rng=0, n_resamples=199)
    assert {each.n_resamples for each in compared.estimates.values()} == {199}
    groups = np.arange(400) % 40
    found = calibrant.assess(y, score, groups=groups, rng=0, n_resamples=199)
    everyone = [
        *found.estimates.values(),
        *found.by_estimator.values(),
        *(row.estimate for row in found.by_group),
    ]
    assert {each.n_resamples for each in everyone} == {199}


def test_classes_of_a_sketch_have_the_floor_of_all_of_them():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 2000)
    y = (p.argmax(axis=1) + rng.integers(1, 3, 2000)) % 3
    found = calibrant.Sketch("classwise").update(y, p).estimate(rng=0)
    assert found.p_value == found.p_floor == pytest.approx(3 / 1000)
    assert "p <= 0.003" in str(found)

"""Families with exact truth: the error is what they say, and samples agree with it."""

import numpy as np
import pytest
from scipy import stats

from calibrant.experiment import families
from calibrant.experiment.families import EXACT, FAMILIES, FEW, LOCAL, SHIFTED
from calibrant.experiment.truth import exact_error

SHARES = (np.arange(100_000) + 0.5) / 100_000


def test_every_family_has_a_name_of_its_own():
    assert len(FAMILIES) == len(EXACT) + len(LOCAL) + len(FEW) + len(SHIFTED)
    assert all(name == family.name for name, family in FAMILIES.items())


@pytest.mark.parametrize("name", list(FAMILIES))
def test_the_true_error_is_what_a_family_says(name):
    # Midpoints of the quantiles integrate to more digits than a sample.
    drawn = FAMILIES[name].quantile(SHARES)
    for factor in (1.0, 0.3, 0.0):
        family = FAMILIES[name].shrunk(factor)
        score, chance = family.pairs(drawn)
        assert np.abs(score - chance).mean() == pytest.approx(family.truth, abs=2e-5)
        assert score.min() >= 0 <= chance.min()
        assert score.max() <= 1 >= chance.max()


@pytest.mark.parametrize("name", list(FAMILIES))
def test_a_large_sample_agrees(name):
    family, rng = FAMILIES[name], np.random.default_rng(0)
    score, chance = family.sample(rng, 200_000)
    value, bracket = exact_error(score, chance)
    assert value == pytest.approx(family.truth, abs=bracket + 1e-3)
    score, outcome = family.draw(rng, 50, 4000)
    assert score.shape == outcome.shape == (50, 4000)
    assert outcome.mean() == pytest.approx(chance.mean(), abs=0.006)
    # Twenty groups of equal size read no more than the truth and their own noise.
    gap = [part.mean() for part in np.array_split((outcome - score).ravel()[np.argsort(score.ravel())], 20)]
    assert np.abs(gap).mean() < family.truth + 0.006


def test_quantiles_are_those_of_the_distribution():
    some = np.array([0.01, 0.3, 0.5, 0.77, 0.999])
    assert LOCAL["top"].quantile(some) == pytest.approx(stats.beta(2, 1).ppf(some))
    shifted = SHIFTED["prior-43"].quantile(some)
    assert np.log(shifted / (1 - shifted)) == pytest.approx(stats.norm(-1.8, 2).ppf(some))
    assert np.mean(LOCAL["certain"].quantile(SHARES) == 1) == pytest.approx(0.6, abs=1e-5)
    assert sorted(set(FEW["seven"].quantile(SHARES))) == [0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9]
    assert families.one_of(np.array([0.2, 0.2, 0.7]))(np.array([0.0, 0.5, 0.67, 1.0])).tolist() == [
        0.2, 0.2, 0.7, 0.7,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "truth"),
    [("step", 0.0187), ("top", 0.0148), ("ends", 0.0125), ("certain", 0.03), ("seven", 0.0575)],
)
def test_known_true_errors(name, truth):
    assert FAMILIES[name].truth == pytest.approx(truth, abs=6e-5)


def test_the_bound_is_that_of_known_signs():
    family, rng = LOCAL["step"], np.random.default_rng(0)
    score, outcome = family.draw(rng, 1_000_000)
    # Rows without a gap may add their residual with either sign.
    added = np.where(score > 0.8, 1, -1) * (outcome - score)
    assert family.deviation() == pytest.approx(added.std(), rel=3e-3)
    assert family.bound(400) == pytest.approx(stats.norm(0, added.std() / 20).expect(abs), rel=3e-3)

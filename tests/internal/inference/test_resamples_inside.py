"""How many data sets the test simulates, and what that means for many tests at once."""

import numpy as np
import pytest

import calibrant
from calibrant.inference import null
from calibrant.inference.multiplicity import (
    MAX_DATA_SETS,
    each_level,
    false_discovery,
    refine_tests,
    resamples_for,
)
from calibrant.inference.result import p_text
from calibrant.score_data import Residuals, Sample
from calibrant.score_data.draws import Outcomes

pytestmark = pytest.mark.no_cover


def rows(n=400, power=1.0, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.random(n)
    return rng.random(n) < score**power, score


@pytest.mark.parametrize("resamples", [99, 999, 4321])
@pytest.mark.parametrize("notion", ["binary", "confidence", "classwise", "canonical"])
def test_the_smallest_p_value_is_that_of_the_number_of_resamples(notion, resamples):
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 300)
    y = (p.argmax(axis=1) + rng.integers(1, 3, 300)) % 3
    found = calibrant.estimate(y, p, notion=notion, pos_label=1, rng=0, n_resamples=resamples)
    assert (found.n_resamples, found.p_floor) == (resamples, 1 / (1 + resamples))
    assert found.p_value == pytest.approx(1 / (1 + resamples))
    assert found.at_floor
    for text in (str(found), p_text(found)):
        assert f"p <= {1 / (1 + resamples):.2g}" in text
    assert calibrant.Estimate.from_json(found.to_json()) == found


@pytest.mark.parametrize("scores", ["many", "few"])
def test_sets_held_in_chunks_have_the_ranks_of_all_of_them_together(scores, monkeypatch):
    y, score = rows(300)
    residuals = Residuals.of(Sample(score if scores == "many" else score.round(1), y))
    steps = residuals.coarser(null.STEPS)

    def simulated(at_once):
        monkeypatch.setattr(null, "AT_ONCE", at_once)
        blocks = Outcomes.of(steps).blocks(np.random.default_rng(0), 2000)
        return null.simulate_test(steps, blocks, "l1", 64)

    chunks, whole = simulated(1000).simulated, simulated(10_000).simulated
    np.testing.assert_allclose(chunks.test_statistic, whole.test_statistic, atol=1e-12)
    np.testing.assert_allclose(chunks.error, whole.error)
    assert chunks.observed == whole.observed


# Multiplicity


@pytest.mark.parametrize("tests", [5, 90, 500])
@pytest.mark.parametrize("share", [0.01, 0.2, 1.0])
def test_suspects_can_be_rejected_after_control_of_false_discoveries(tests, share):
    suspects = max(1, int(share * tests))
    size = resamples_for(tests, suspects, 0.05)
    # A gap that only the statistic with the least share of the level sees has ten others before it.
    p_values = [10 / (1 + size)] * suspects + [1.0] * (tests - suspects)
    assert all(p <= 0.026 for p in false_discovery(p_values)[:suspects])


def test_the_number_of_resamples_is_bounded():
    assert resamples_for(200, 1, 1e-6) == MAX_DATA_SETS
    assert resamples_for(2, 0, 0.05) < 999


def groups(bad, count=90, size=60, seed=0):
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(count), size)
    score = rng.random(group.size)
    chance = np.where(group < bad, np.clip(score + 0.6, 0, 1) * (score < 0.5), score)
    return rng.random(group.size) < chance, score, group


@pytest.mark.parametrize("bad", [1, 12])
@pytest.mark.usefixtures("without_reference_estimators")
def test_a_group_among_ninety_can_be_rejected(bad):
    y, score, group = groups(bad)
    found = calibrant.assess(y, score, groups=group, rng=0)
    rejected = {row.name for row in found.by_group if row.off(0.95)}
    assert rejected >= {str(k) for k in range(bad)}
    # A share of .05 of those rejected may be false.
    assert len(rejected) <= bad + (bad > 1) * 2
    own = next(row for row in found.by_group if row.name == "0")
    assert own.estimate.n_resamples > 999
    # One group alone is adjusted as by Bonferroni.
    assert bad > 1 or own.p_adjusted == pytest.approx(90 * own.estimate.p_value)
    options = {"rng": 0, "level": each_level(0.95, 90), "n_resamples": own.estimate.n_resamples}
    assert own.estimate == calibrant.estimate(y[group == 0], score[group == 0], **options)
    assert f"≤ {own.p_adjusted:.2g}" in " ".join(found.html().split())


def test_a_class_among_fifty_can_be_rejected():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(50, 0.3), 3000)
    y = (rng.random((3000, 1)) > p.cumsum(axis=1)).sum(axis=1).clip(0, 49)
    y[(y == 1) & (rng.random(3000) < 0.7)] = 0
    by_class = calibrant.estimate(y, p, notion="classwise", rng=0).by_class
    adjusted = false_discovery([each.p_value for each in by_class.values()])
    rejected = {label for label, p in zip(by_class, adjusted, strict=True) if p < 0.05}
    assert rejected >= {0, 1}
    assert len(rejected) <= 3
    assert all(by_class[label].n_resamples > 999 for label in rejected)


def test_a_test_goes_on_only_while_its_p_value_is_near_the_smallest():
    truth, calls = {"a": 1e-6, "b": 2e-3, "c": 0.1, "d": 0.7}, []

    def simulate(key, size):
        calls.append((key, size))
        return max(truth[key], 1 / (1 + size))

    first = {key: max(p, 0.001) for key, p in truth.items()}
    found = refine_tests(first, lambda p: p, simulate, tests=90, alpha=0.05, size=999)
    half, whole = resamples_for(90, 2, 0.05), resamples_for(90, 1, 0.05)
    assert calls == [("a", half), ("b", half), ("a", whole)]
    assert found == truth | {"a": 1 / (1 + whole)}


def test_calibrated_groups_raise_false_alarms_at_the_nominal_level():
    """A calibrated group has a uniform p-value u, of which M data sets show a binomial number."""
    rng, tests, alarms, small = np.random.default_rng(0), 90, 0, 0
    for _ in range(2000):
        truth = rng.random(tests)
        simulated_residuals = {k: (999, rng.binomial(999, truth[k])) for k in range(tests)}

        def simulate(k, size, truth=truth, simulated_residuals=simulated_residuals):
            before, more = simulated_residuals[k]
            simulated_residuals[k] = size, more + rng.binomial(size - before, truth[k])
            return (1 + simulated_residuals[k][1]) / (1 + size)

        first = {k: (1 + more) / 1000 for k, (_, more) in simulated_residuals.items()}
        found = list(refine_tests(first, lambda p: p, simulate, tests=tests, alpha=0.05, size=999).values())
        alarms += min(false_discovery(found)) < 0.05
        small += sum(p <= 0.001 for p in found)
    # 2000 data sets, 180 000 tests: four standard errors.
    assert 0.03 < alarms / 2000 < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 2000)
    assert small / 180_000 < 0.001 + 4 * np.sqrt(0.001 / 180_000)

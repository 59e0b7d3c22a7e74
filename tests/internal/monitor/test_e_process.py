"""E-values, the mixture over tilts and restarts, and the band of a reference period."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant import Monitor
from calibrant.monitor import process
from calibrant.monitor.history import Batch, MonitorSettings, StreamSums, Subject
from calibrant.monitor.process import CellSums
from oracles import monitor as oracle

score_lists = st.lists(st.floats(0, 1), min_size=1, max_size=8)


def tilts_of_rows(tilt, scores):
    return tilt[:, np.searchsorted(process.EDGES, scores, side="right")]


@settings(max_examples=60, deadline=None)
@given(score_lists, st.data(), st.sampled_from([0.0, 0.3]))
def test_a_cell_never_has_more_evidence_than_its_rows(scores, data, tolerance):
    outcomes = data.draw(
        st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=len(scores), max_size=len(scores))
    )
    weights = data.draw(
        st.lists(st.sampled_from([0.1, 0.5, 1.0]), min_size=len(scores), max_size=len(scores))
    )
    sums = CellSums.of(np.array(scores), np.array(outcomes), np.array(weights))
    tilt = process.tilts(sums.n, sums.score, 1)
    bounds = process.shifted(sums.mean, -tolerance), process.shifted(sums.mean, tolerance)
    found = process.evidence(sums, tilt, *bounds)
    rows = tilts_of_rows(tilt, scores).T
    exact = [oracle.log_e_value(scores, outcomes, row, weights, tolerance) for row in rows.T]
    assert (found <= np.array(exact) + 1e-9).all()


@pytest.mark.parametrize("tolerance", [0.0, 0.3])
def test_a_cell_of_equal_scores_has_the_evidence_of_its_rows(tolerance):
    scores, outcomes = [0.2] * 5 + [0.71] * 4 + [0.0, 1.0], [1, 0, 0, 0, 1, 1, 1, 0, 1, 0, 1]
    sums = CellSums.of(np.array(scores), np.array(outcomes, float), np.ones(11))
    tilt = process.tilts(sums.n, sums.score, 1)
    bounds = process.shifted(sums.mean, -tolerance), process.shifted(sums.mean, tolerance)
    exact = [
        oracle.log_e_value(scores, outcomes, row, None, tolerance) for row in tilts_of_rows(tilt, scores)
    ]
    np.testing.assert_allclose(process.evidence(sums, tilt, *bounds), exact, atol=1e-12)


def test_tilts_have_the_prior_of_their_shapes():
    assert process.PRIOR.sum() == pytest.approx(1)
    assert process.PRIOR.shape == (process.N_TILTS,)
    count = np.zeros(process.CELLS)
    count[40:100] = 10
    tilt = process.tilts(count, count * process.MIDDLE, 2).reshape(
        len(process.SHAPES), 2, process.N_SIZES, -1
    )
    assert (tilt[:, 0] == -tilt[:, 1]).all()
    assert (np.abs(tilt) <= process.MOST).all()
    # The shift is the same in all cells, and each size is half of the one before.
    shift = tilt[0, 0, :, 60]
    assert (tilt[0, 0] == shift[:, None]).all()
    np.testing.assert_allclose(shift[1:] / shift[:-1], 1 / process.RATIO)
    # Ranges of half the rows do not overlap, and cover all cells together.
    halves = [k for k, (kind, a, b) in enumerate(process.SHAPES) if kind == "range" and b - a == 0.5]
    assert ((tilt[halves, 0, 0] > 0).sum(axis=0) == 1).all()


@pytest.mark.parametrize("horizon", [1, 7, 365])
def test_restart_weights_sum_to_one(horizon):
    weights = np.array([process.restart_weight(k, horizon) for k in range(1, 1001)])
    later = [process.later_weight(k, horizon) for k in range(1, 1001)]
    assert (weights > 0).all()
    np.testing.assert_allclose(np.cumsum(weights) + later, 1)


def test_the_recursion_is_the_mixture():
    rng = np.random.default_rng(0)
    evidence = rng.normal(0, 0.2, (6, process.N_TILTS))
    log_r = np.full(process.N_TILTS, -np.inf)
    for t in range(6):
        log_r, log_m = process.advance(log_r, evidence[t], t + 1, 10)
        expected = oracle.mixture(evidence[: t + 1], process.PRIOR, lambda k: process.restart_weight(k, 10))
        assert np.exp(log_m) == pytest.approx(expected)


def monitor_of(**options):
    """A monitor whose batches are given as sums."""
    made = Monitor(**options)
    made._subject = Subject("binary", (0, 1), 1, True)
    return made


def add(monitor, at, groups):
    sums = [
        StreamSums.of(
            group, 0, CellSums.of(*(np.array(part, float) for part in (*rows, [1.0] * len(rows[0]))))
        )
        for group, rows in groups.items()
    ]
    monitor._add(Batch(at, 1.0, 0.0, 0.0, 0.0, 0.0, 0, tuple(sums)))


def expectation(batches, probability, **options):
    """Expectation of the e-process after batches of scores by group, over all outcomes."""
    sizes = [len(scores) for batch in batches for scores in batch.values()]
    chances = np.array([probability(p) for batch in batches for scores in batch.values() for p in scores])
    total = 0.0
    for outcomes in product((0, 1), repeat=sum(sizes)):
        monitor, drawn = monitor_of(**options), list(outcomes)
        for at, batch in enumerate(batches, 1):
            add(monitor, at, {g: (scores, [drawn.pop(0) for _ in scores]) for g, scores in batch.items()})
        y = np.array(outcomes)
        total += np.prod(np.where(y == 1, chances, 1 - chances)) * monitor.e_value
    return total


@pytest.mark.parametrize(
    ("batches", "options"),
    [
        ([{None: [0.2, 0.21, 0.7]}, {None: [0.5, 0.51, 0.9]}, {None: [0.05]}], {}),
        ([{None: [0.01, 0.3]}, {None: [0.6, 0.6]}], {"tolerance": 0.2}),
        ([{"a": [0.2, 0.8]}, {"a": [0.3], "b": [0.7]}, {"b": [0.4, 0.1], "c": [0.9]}], {}),
        ([{"a": [0.2, 0.8]}, {"b": [0.3, 0.7]}], {"groups": ["a", "b", "c"]}),
    ],
)
def test_the_expectation_under_the_null_hypothesis_is_at_most_one(batches, options):
    tolerance = options.get("tolerance", 0.0)
    for shift in {-tolerance, 0.0, tolerance}:
        mean = expectation(batches, lambda p, by=shift: float(process.shifted(np.array(p), by)), **options)
        assert 0.5 < mean <= 1 + 1e-9
    # It is no constant: where the null hypothesis is wrong, the expectation exceeds 1.
    assert expectation(batches, lambda p: min(p + 0.4, 1.0), **options) > 1.001


def test_clusters_that_agree_are_one_row():
    """Two rows with one outcome have an expectation above 1, and one row with their means has not."""
    total = {1: 0.0, 2: 0.0}
    scores = (0.3, 0.6, 0.8)
    for outcomes in product((0, 1), repeat=6):
        chance = np.prod([p if y else 1 - p for p, y in zip(scores * 2, outcomes, strict=True)])
        for rows in total:
            monitor = monitor_of()
            for at in range(2):
                y = outcomes[3 * at : 3 * at + 3]
                add(monitor, at + 1, {None: (list(scores) * rows, list(y) * rows)})
            total[rows] += chance * monitor.e_value
    assert total[1] <= 1 + 1e-9
    assert total[2] > 1


def test_a_group_that_comes_late_takes_weight_that_was_kept_for_it():
    monitor = monitor_of()
    rng = np.random.default_rng(0)
    for at in range(1, 6):
        scores = rng.random(20)
        rows = (scores, (rng.random(20) < scores).astype(float))
        add(monitor, at, dict.fromkeys(["a", "b"] + ["c"] * (at > 2) + ["d"] * (at > 3), rows))
    logs = {group: streams[0].log_m for group, streams in monitor._streams.items()}
    weights = {"a": 1 / 4, "b": 1 / 4, "c": 1 / 4, "d": 1 / 12}
    expected = sum(weights[group] * np.exp(logs[group]) for group in logs) + 1 - sum(weights.values())
    assert monitor.e_value == pytest.approx(expected)


def test_the_band_of_a_reference_period_by_the_inequality_of_chernoff():
    n = np.zeros(process.CELLS)
    n[[40, 60, 80, 100]] = 250
    outcome = n * np.linspace(0, 1, process.CELLS) ** 2
    low, high = process.reference_band(CellSums(n, n * process.MIDDLE, outcome), 0.05)
    assert (low <= high).all()
    assert (np.diff(low) >= 0).all()
    assert (np.diff(high) >= 0).all()
    # Above the highest score nothing bounds the frequency from above, and below the lowest from below.
    assert high[100] == 1
    assert low[40] == 0
    windows = sum(process.REFERENCE_RANGES - 2**k + 1 for k in range(7))
    mean, bound = outcome[100] / 250, high[80]
    divergence = mean * np.log(mean / bound) + (1 - mean) * np.log((1 - mean) / (1 - bound))
    assert 250 * divergence == pytest.approx(np.log(2 * windows / 0.05), rel=1e-6)


def test_the_band_of_a_reference_period_covers():
    rng = np.random.default_rng(0)
    n = np.where(np.abs(np.arange(process.CELLS) - 65) < 30, 40, 0)
    truth = process.shifted(process.MIDDLE, 0.4)
    missed = 0
    for _ in range(60):
        y = rng.binomial(n, truth)
        low, high = process.reference_band(
            CellSums(n.astype(float), n * process.MIDDLE, y.astype(float)), 0.2
        )
        missed += bool(((truth < low) | (truth > high))[n > 0].any())
    assert missed <= 12


def test_the_onset_is_found_in_the_evidence():
    evidence = np.full((40, process.N_TILTS), -0.5)
    evidence[25:, 3] = 1.0
    change = process.change_of(evidence)
    assert change.low <= 25 <= change.high
    assert (change.onset, change.shape, change.higher) == (25, 0, True)
    evidence[25:, 3], evidence[25:, process.N_SIZES] = -0.5, 1.0
    assert not process.change_of(evidence).higher


def test_settings_are_part_of_the_json():
    assert {"alpha", "tolerance", "reference", "delay"} <= set(MonitorSettings.__dataclass_fields__)

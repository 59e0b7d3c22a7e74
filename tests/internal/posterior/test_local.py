"""What neighbours tell beyond the blocks: the sums, the errors, and when they are asked at all."""

import numpy as np
import pytest

import calibrant
from calibrant.posterior.softmax import CanonicalError, SoftmaxPosterior, local
from calibrant.posterior.softmax.error import FOLDS, NORMS
from calibrant.posterior.softmax.likelihood import softmax
from calibrant.posterior.softmax.probability_transfer import ProbabilityTransfer
from calibrant.score_data.simplex import Simplex
from oracles import neighbours as oracle
from oracles import softmax as errors_of


def chessboard(n, seed=0, fields=3.0):
    """Scores that know nothing of fields, in each of which another class is likely."""
    rng = np.random.default_rng(seed)
    features = rng.uniform(-1, 1, (n, 2))
    p = softmax(np.column_stack([features, np.zeros(n)]))
    truth = softmax(2.0 * np.eye(3)[np.floor(fields * features).sum(axis=1).astype(int) % 3])
    code = (rng.random((n, 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return p, code, truth


def smooth(n, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(3), n)
    code = (rng.random((n, 1)) > (0.6 * p + 0.4 / 3).cumsum(axis=1)[:, :-1]).sum(axis=1)
    return p, code


@pytest.fixture(scope="module")
def board():
    p, code, truth = chessboard(1000)
    return CanonicalError.of(SoftmaxPosterior.of(Simplex.of(p, code))), p, truth


def test_neighbours_are_summed_pair_by_pair(monkeypatch):
    monkeypatch.setattr(local, "MAX_DISTANCES", 200)  # several parts of a fold
    p, code, _ = chessboard(60)
    p[3] = 0.0, 0.25, 0.75
    p[10:14] = p[10]
    rows = Simplex.of(p, code, np.random.default_rng(1).integers(1, 4, 60))
    x = softmax(0.7 * np.log(np.maximum(rows.score, 1e-3)))
    for asked in (len(x), 25):
        for j, each in enumerate(local.kernel_sums(rows, x, 5, 0.5, 3, asked)):
            found = local.dirichlet_posterior(x[:asked], each, 2.0)
            mean, count = oracle.updated(rows, x, 5, 0.5 * 2 ** (-j / 2), 2.0)
            np.testing.assert_allclose(found.mean, mean[:asked], atol=1e-9)
            np.testing.assert_allclose(found.concentration, count[:asked], rtol=1e-9)


def test_flat_directions_are_left_out():
    rng = np.random.default_rng(0)
    log = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 5))
    rows = Simplex.of(softmax(log), np.zeros(200, int))
    assert local.whitened_log_ratios(rows).shape == (200, 2)
    assert np.square(local.whitened_log_ratios(rows)).sum(axis=1).mean() == pytest.approx(1)


def test_expected_errors_are_integrals_over_the_beta_density():
    rng = np.random.default_rng(0)
    mean, score = rng.dirichlet(np.full(3, 5.0), 4), rng.dirichlet(np.ones(3), 4)
    score[0] = 0.0, 0.4, 0.6
    worth = rng.uniform(20, 40, 4)
    total, own = local.LocalFrequencies(mean, worth).errors(score)
    slow = np.array([
        [oracle.errors(m, w, s) for m, s in zip(one, other, strict=True)]
        for one, other, w in zip(mean, score, worth, strict=True)
    ])  # fmt: skip
    np.testing.assert_allclose(total, slow.sum(axis=1).T, atol=1e-5)
    np.testing.assert_allclose(own, slow[:, :, 0], atol=1e-5)


def test_a_certain_frequency_has_the_distance_for_its_error():
    mean, score = np.array([[0.0, 1.0, 0.0]]), np.array([[0.2, 0.5, 0.3]])
    total, own = local.LocalFrequencies(mean, np.array([4.0])).errors(score)
    np.testing.assert_allclose(own, np.abs(mean - score), atol=1e-9)
    np.testing.assert_allclose(total[:, 0], [1.0, 0.38, 0.5], atol=1e-9)


def test_errors_over_short_distances_are_seen_and_held(board):
    found, p, truth = board
    assert found.local is not None
    assert found.gap_probability == 1.0
    for norm, true in zip(NORMS, errors_of.errors(truth, p), strict=True):
        true = np.sqrt(true) if norm == "l2" else true
        low, high = found.interval(norm, 0.95)
        assert low < true < high < 1.6 * true
        assert found.value(norm) == pytest.approx(true, rel=0.12)
    by_class = np.abs(truth - p).mean(axis=0)
    np.testing.assert_allclose(found.class_values, by_class, rtol=0.2)
    assert found.class_values.sum() == pytest.approx(found.value("l1"))
    for k, true in enumerate(by_class):
        low, high = found.class_interval(k, 0.95)
        assert low < true < high


def test_what_rows_add_is_what_predictions_confirm(board):
    found, _, _ = board
    rows = found.posterior.likelihood.rows
    for norm in NORMS:
        assert rows.mean(found.row_contributions[norm])[0] == found.parts[norm].held_out
        assert (
            found.parts[norm].held_out
            < found.parts[norm].at_best_bandwidth
            < found.parts[norm].at_smaller_bandwidth
        )
        ends = [found.interval(norm, level) for level in (0.5, 0.9, 0.99)]
        assert ends == sorted(ends, reverse=True)


def test_where_it_hurts_adds_up_to_the_error(board):
    found, p, truth = board
    where = ProbabilityTransfer.of(found)
    assert where.share @ where.gap == pytest.approx(found.value("l1"))
    for k, (gap, spread) in enumerate(zip(where.gap, where.gap_spread, strict=True)):
        mine = p.argmax(axis=1) == k
        assert abs(gap - np.abs(truth - p)[mine].sum(axis=1).mean()) < 3 * spread < 0.6 * gap


def test_more_rows_than_are_looked_at_stand_for_themselves(monkeypatch, board):
    whole, _, _ = board
    monkeypatch.setattr(local, "CHOICE_ROWS", 400)
    monkeypatch.setattr(local, "MAX_ROWS", 700)
    found = CanonicalError.of(whole.posterior)
    assert len(found.local.at_best_bandwidth.concentration) == 700
    np.testing.assert_array_equal(found.held_out[700:], whole.posterior.held_out(
        whole.posterior.likelihood.rows.folds(FOLDS))[700:])  # fmt: skip
    for norm in NORMS:
        assert found.value(norm) == pytest.approx(whole.value(norm), rel=0.1)
        assert found.parts[norm].held_out_error > whole.parts[norm].held_out_error


def test_smooth_gaps_and_many_classes_are_left_to_the_blocks():
    p, code = smooth(400)
    found = CanonicalError.of(SoftmaxPosterior.of(Simplex.of(p, code)))
    assert found.local is None
    assert found.gap_probability == found.posterior.gap_probability
    p = np.random.default_rng(0).dirichlet(np.ones(13), 50)
    assert local.LocalFrequencyPair.of(Simplex.of(p, np.zeros(50, int)), p, FOLDS) is None


@pytest.mark.parametrize("n", [1, 40])
def test_equal_rows_are_no_neighbours(n):
    p = np.tile([0.2, 0.3, 0.5], (n, 1))
    rows = Simplex.of(p, np.zeros(n, int))
    assert local.LocalFrequencyPair.of(rows, rows.score, FOLDS) is None


def test_neither_the_order_of_rows_or_classes_nor_repetition_changes_a_bit():
    p, code, _ = chessboard(400)
    count = np.random.default_rng(2).integers(1, 3, 400)
    order = np.random.default_rng(3).permutation(400)
    label = np.array(["a", "b", "c"])[code]
    read = {
        calibrant.ece(y, s, notion="canonical", counts=weight, labels=labels)
        for y, s, weight, labels in (
            (label, p, count, ["a", "b", "c"]),
            (np.repeat(label, count), np.repeat(p, count, axis=0), None, ["a", "b", "c"]),
            (label[order], p[order][:, [1, 2, 0]], count[order], ["b", "c", "a"]),
        )
    }
    assert len(read) == 1
    assert CanonicalError.of(SoftmaxPosterior.of(Simplex.of(p, code, count))).local is not None


def test_last_digits_of_scores_hardly_change_the_error():
    p, code, _ = chessboard(400)
    changed = p * (1 + np.random.default_rng(1).integers(-3, 4, p.shape) * 2.0**-52)
    one, other = (CanonicalError.of(SoftmaxPosterior.of(Simplex.of(q, code))) for q in (p, changed))
    assert one.local is not None
    for norm in NORMS:
        assert other.value(norm) == pytest.approx(one.value(norm), rel=1e-6)


def test_an_estimate_and_its_classes_go_by_neighbours():
    p, code, truth = chessboard(400)
    error = CanonicalError.of(SoftmaxPosterior.of(Simplex.of(p, code)))
    found = calibrant.estimate(code, p, notion="canonical", rng=0)
    assert error.local is not None
    assert found.value == pytest.approx(error.value("l1"), rel=1e-3)
    assert found.low < np.abs(truth - p).sum(axis=1).mean() < found.high
    assert found.at_least < found.value
    assert sum(each.value for each in found.by_class.values()) == pytest.approx(found.value)

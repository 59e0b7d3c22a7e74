"""The posterior of a softmax of all scores: its likelihood, its evidence, and the errors read off it."""

import numpy as np
import pytest

from calibrant.posterior.softmax import Blocks, CanonicalError, SoftmaxPosterior
from calibrant.posterior.softmax import blocks as blocks_of_rows
from calibrant.posterior.softmax import likelihood as rows_of_numbers
from calibrant.posterior.softmax.error import NORMS, _compare_held_out
from calibrant.posterior.softmax.fit import candidates, penalised, shapes
from calibrant.posterior.softmax.likelihood import Likelihood, softmax
from calibrant.posterior.softmax.probability_transfer import ProbabilityTransfer
from calibrant.score_data.simplex import Simplex
from oracles import softmax as oracle
from weighing import are_counts


def drawn(n, classes, bend=None, seed=0, weight=None):
    """Rows whose classes follow their scores, or what `bend` makes of them."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(classes), n)
    truth = p if bend is None else bend(p)
    code = (rng.random((n, 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return Simplex.of(p, code, weight, counts=are_counts(weight)), p, truth


def pulled(p):
    return 0.6 * p + 0.4 / p.shape[1]


@pytest.mark.parametrize("classes", [3, 5, 14])
def test_logits_are_those_of_the_formula(classes):
    rows, p, _ = drawn(120, classes)
    blocks = Blocks.of(rows)
    theta = np.random.default_rng(1).normal(0, 0.2, blocks.size)
    if classes > 12:
        theta[blocks.common[:, 1:]] = 0  # principal axes are looked at below
    some = p[:8]
    np.testing.assert_allclose(
        blocks.logits(blocks.columns(some), theta), oracle.logits(blocks, some, theta), atol=1e-9
    )


def test_principal_axes_carry_as_much_as_their_number():
    rows, p, _ = drawn(500, 20)
    blocks = Blocks.of(rows)
    common = blocks.columns(p).common[:, 1:]
    np.testing.assert_allclose(common.std(axis=0), 1, atol=0.15)
    assert common.shape[1] == 8


@pytest.mark.parametrize("classes", [3, 13, 16])
def test_slope_and_information_are_derivatives_of_the_likelihood(classes, monkeypatch):
    monkeypatch.setattr(blocks_of_rows, "MANY", 15)
    rows, _, _ = drawn(50, classes, weight=np.random.default_rng(3).integers(1, 4, 50))
    blocks = Blocks.of(rows)
    model = Likelihood(rows, blocks)
    rng = np.random.default_rng(2)
    theta, way = (0.1 * rng.standard_normal(blocks.size) for _ in range(2))
    value, slope = model.slope(theta)
    if classes == 3:
        assert value == pytest.approx(oracle.log_likelihood(rows, blocks, theta))
    step = 1e-4
    (up, slope_up), (down, slope_down) = model.slope(theta + step * way), model.slope(theta - step * way)
    assert way @ slope == pytest.approx((up - down) / (2 * step), rel=1e-6)
    square = model.expand(theta)
    np.testing.assert_allclose(
        square @ way, -(slope_up - slope_down) / (2 * step), atol=3e-5 * np.abs(square).max()
    )
    some = np.sort(rng.choice(blocks.size, 20, replace=False))
    np.testing.assert_allclose(model.expand(theta, some), square[np.ix_(some, some)], rtol=1e-4, atol=1e-4)
    # Those that all classes share are summed in a way of their own.
    alike = np.arange(blocks.shared_by_class)[::3]
    np.testing.assert_allclose(
        model.expand(theta, alike), square[np.ix_(alike, alike)], rtol=1e-4, atol=1e-4 * np.abs(square).max()
    )
    # The last slope is kept, and no other is taken for it.
    for again in (theta, theta + step * way, theta):
        found, fresh = model.slope(again), Likelihood(rows, blocks).slope(again)
        assert found[0] == fresh[0]
        np.testing.assert_array_equal(found[1], fresh[1])


def test_chunks_change_nothing(monkeypatch):
    rows, _, _ = drawn(400, 4)
    blocks = Blocks.of(rows)
    theta = 0.1 * np.random.default_rng(2).standard_normal(blocks.size)
    whole = Likelihood(rows, blocks)
    value, slope = whole.slope(theta)
    monkeypatch.setattr(rows_of_numbers, "CACHED", 0)
    monkeypatch.setattr(rows_of_numbers, "CHUNK", 1)
    parts = Likelihood(rows, blocks)
    assert parts.slope(theta)[0] == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(parts.slope(theta)[1], slope, atol=1e-9)
    np.testing.assert_allclose(parts.predict(theta), whole.predict(theta), atol=1e-12)
    np.testing.assert_allclose(parts.expand(theta), whole.expand(theta), rtol=1e-3, atol=1e-3)


def test_some_rows_stand_for_all_where_they_are_set_right():
    rows, _, _ = drawn(600, 3, pulled)
    blocks = Blocks.of(rows)
    whole = Likelihood(rows, blocks)
    theta = 0.1 * np.random.default_rng(2).standard_normal(blocks.size)
    near = whole.near(theta, 200)
    assert near is not whole
    assert whole.near(theta, 600) is whole
    assert near.slope(theta)[0] == pytest.approx(whole.slope(theta)[0])
    np.testing.assert_allclose(near.slope(theta)[1], whole.slope(theta)[1], atol=1e-8)
    away = theta + 0.01
    assert near.slope(away)[0] == pytest.approx(whole.slope(away)[0], rel=1e-3)


def test_a_block_is_weighed_by_the_normal_integral():
    rows, _, _ = drawn(200, 3, pulled)
    blocks = Blocks.of(rows)
    model = Likelihood(rows, blocks)
    square = model.expand(np.zeros(blocks.size))
    target = model.slope(np.zeros(blocks.size))[1]
    precision = np.full(blocks.size, np.inf)
    precision[blocks.blocks[4].indices] = 4.0
    for block in (blocks.blocks[0], blocks.blocks[1], blocks.blocks[6]):
        choices, log = candidates(square, target, precision, block)
        found = []
        for each in choices:
            own = precision.copy()
            own[block.indices] = each
            found.append(oracle.evidence(square, target, own))
        prior = np.log(np.r_[0.5, np.full(len(choices) - 1, 0.5 / (len(choices) - 1))])
        np.testing.assert_allclose(log, np.array(found) - found[0] + prior, atol=1e-6)


def test_equal_weights_set_the_clock_as_others_do():
    p = np.random.default_rng(0).dirichlet(np.ones(3), 60).round(2)
    weight = np.ones((60, 1))
    nearly = weight.copy()
    nearly[0] += 1e-12
    for found, other in zip(
        *(blocks_of_rows._variance_time(p, each) for each in (weight, nearly)), strict=True
    ):
        np.testing.assert_allclose(found, other, rtol=1e-10)


def test_the_variances_of_a_curve_add_up_to_its_size():
    blocks = Blocks.of(drawn(100, 3)[0])
    for block in blocks.blocks:
        for shape in shapes(block):
            curves = 1 if block.name != "own curve" else 3
            expected = block.indices.size if block.frequency is None else curves
            assert shape @ shape == pytest.approx(expected)


def test_held_out_predictions_are_those_of_a_fit_without_the_fold():
    rows, _, _ = drawn(400, 3, pulled)
    posterior = SoftmaxPosterior.of(rows)
    parts = rows.folds(10)
    found = posterior.held_out(parts)
    on = np.flatnonzero(np.isfinite(posterior.precision))
    part = parts[3]
    rest = Likelihood(rows[np.r_[0 : part.start, part.stop : len(rows.code)]], posterior.blocks)
    theta = posterior.theta.copy()
    for _ in range(20):
        slope = rest.slope(theta)[1][on] - posterior.precision[on] * theta[on]
        theta[on] += np.linalg.solve(rest.expand(theta, on) + np.diag(posterior.precision[on]), slope)
    exact = posterior.likelihood.predict(theta, part)
    moved = np.abs(exact - posterior.likelihood.predict(posterior.theta, part)).max()
    assert np.abs(found[part] - exact).max() < 0.1 * moved


def test_errors_of_predictions_are_sums_over_rows_and_classes():
    rows, _, _ = drawn(80, 4)
    x = softmax(np.log(rows.score) * 0.7)
    compared = _compare_held_out(rows, x)
    np.testing.assert_allclose(compared.plug_in.mean(axis=1), oracle.errors(x, rows.score))
    np.testing.assert_allclose(compared.by_class[0].sum(), compared.plug_in[0].mean())
    # The slopes are derivatives of the errors, along what was observed less what was predicted.
    seen = np.eye(4)[rows.code]
    step = 1e-6
    moved = (oracle.errors(x + step * (seen - x), rows.score) - oracle.errors(x, rows.score)) / step
    np.testing.assert_allclose(compared.residual_correction.mean(axis=1), moved, atol=1e-4)
    np.testing.assert_allclose(compared.by_class[1].sum(), compared.residual_correction[0].mean(), atol=1e-12)


def test_a_gap_is_measured_and_a_calibrated_model_reads_little():
    rows, p, truth = drawn(2000, 3, pulled)
    found = CanonicalError.of(SoftmaxPosterior.of(rows))
    calibrated = CanonicalError.of(SoftmaxPosterior.of(drawn(2000, 3)[0]))
    for norm, true in zip(NORMS, oracle.errors(truth, p), strict=True):
        true = np.sqrt(true) if norm == "l2" else true
        low, high = found.interval(norm, 0.95)
        assert low < true < high < 1.6 * true
        assert found.value(norm) == pytest.approx(true, rel=0.2)
        assert calibrated.value(norm) < 0.1 * true
        assert calibrated.interval(norm, 0.95)[0] == 0


def test_intervals_grow_with_the_level_and_hold_the_value():
    found = CanonicalError.of(SoftmaxPosterior.of(drawn(300, 4, pulled)[0]))
    for norm in NORMS:
        ends = np.array([found.interval(norm, level) for level in (0.5, 0.8, 0.95, 0.99)])
        assert (np.diff(ends[:, 0]) <= 0).all()
        assert (np.diff(ends[:, 1]) >= 0).all()
        assert (ends[:, 0] <= found.value(norm)).all()
        assert (ends[:, 1] >= found.value(norm)).all()
    assert found.class_values.sum() == pytest.approx(found.value("l1"))
    assert all(found.class_interval(k, 0.9)[0] <= v <= found.class_interval(k, 0.9)[1]
               for k, v in enumerate(found.class_values))  # fmt: skip


def test_exact_zeros_and_absent_classes_are_no_trouble():
    rng = np.random.default_rng(0)
    p = rng.multinomial(20, [0.4, 0.3, 0.2, 0.1], 300) / 20
    code = (rng.random((300, 1)) > p.cumsum(axis=1)[:, :-1]).sum(axis=1)
    for labels in (code, np.zeros(300, int)):
        found = CanonicalError.of(SoftmaxPosterior.of(Simplex.of(p, labels)))
        assert np.isfinite(found.value("l1"))
    assert found.value("l1") == pytest.approx(2 * (1 - p[:, 0].mean()), rel=0.1)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_few_rows_say_little(n):
    found = CanonicalError.of(SoftmaxPosterior.of(drawn(n, 3)[0]))
    low, high = found.interval("l1", 0.95)
    assert low == 0
    assert high > 0.05


def test_who_takes_from_whom_is_found():
    def given(p):
        truth = p.copy()
        truth[:, 1] += 0.3 * p[:, 0]
        truth[:, 0] *= 0.7
        return truth

    rows, p, truth = drawn(2000, 3, given)
    where = ProbabilityTransfer.of(CanonicalError.of(SoftmaxPosterior.of(rows)))
    moved = float((p - truth)[:, 0].mean())
    assert where.net[0, 1] == pytest.approx(moved, rel=0.2)
    assert where.net[0, 1] - 2 * where.spread[0, 1] > 0
    np.testing.assert_allclose(where.net, -where.net.T, atol=1e-12)
    assert np.abs(where.net[2]).max() < 0.3 * moved
    assert ProbabilityTransfer.of(CanonicalError.of(SoftmaxPosterior.of(drawn(60, 13)[0]))) is None


def test_blocks_of_known_sizes_end_at_their_mode_and_the_others_are_absent():
    rows, _, _ = drawn(300, 3, pulled)
    blocks, sizes = Blocks.of(rows), {"temperature": 0.4, "bias": 0.3}
    theta = penalised(rows, blocks, sizes, np.float64)
    slope = Likelihood(rows, blocks).slope(theta)[1]
    for block in blocks.blocks:
        if block.name in sizes:
            np.testing.assert_allclose(
                slope[block.indices], theta[block.indices] / sizes[block.name] ** 2, atol=1e-3
            )
        else:
            assert not theta[block.indices].any()
    assert theta[0] < -0.1


def test_single_and_double_floats_tell_the_same():
    rows, _, _ = drawn(200, 3, pulled)
    single, double = (SoftmaxPosterior.of(rows, kind=kind) for kind in (np.float32, np.float64))
    np.testing.assert_allclose(single.theta, double.theta, atol=1e-4)
    np.testing.assert_allclose(single.information, double.information, rtol=1e-3, atol=1e-3)
    assert (single.information != double.information).any()

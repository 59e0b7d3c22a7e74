"""A gap in ranges of the scores."""

from itertools import product
from math import sqrt

import numpy as np
import pytest
from scipy.fft import idct
from scipy.stats import multivariate_normal, norm

from calibrant.posterior import dyadic_partition as module
from calibrant.posterior.dyadic_partition import DyadicPartition, expected_positive_part
from calibrant.settings import PRIOR


def data(cells=64, problems=2, seed=0, gap=0.0):
    """Unit-noise data with a gap in the second quarter, and a pull that differs between cells."""
    rng = np.random.default_rng(seed)
    pull = rng.uniform(2, 8, (problems, cells))
    x = rng.standard_normal((problems, cells))
    x[:, cells // 4 : cells // 2] += gap * pull[:, cells // 4 : cells // 2]
    return x, pull


def partitions(level, number, depth):
    """Every way to cut a range: its leaves, and the prior of the cut."""
    if level == depth:
        yield ((level, number),), 1.0
        return
    yield ((level, number),), PRIOR.probability_of_final_range
    for (low, a), (high, b) in product(*(partitions(level + 1, 2 * number + i, depth) for i in (0, 1))):
        yield (*low, *high), (1 - PRIOR.probability_of_final_range) * a * b


def kinds(level, pull, mean_pull, has_process, empty):
    """Every kind of gap in a leaf: its prior, and the covariance that it adds."""
    count = len(pull)
    some = 1.0
    if level:
        yield empty, np.zeros((count, count))
        some = 1 - empty
    constant_gap = 0.5 if has_process else 1.0
    for size in module.constant_sds():
        yield some * constant_gap / len(module.constant_sds()), size**2 * np.outer(pull, pull)
    if not has_process:
        return
    basis = idct(np.eye(count), norm="ortho", axis=0)
    share = (1 + (np.arange(1, count) / PRIOR.process_roughness) ** 2) ** -PRIOR.spectrum_exponent
    share /= share.sum()
    for mean, shape in product((0.0, *module.process_sds()), repeat=2):
        chance = some * 0.5
        for size, missing in (
            (mean, 1 / (1 + len(module.process_sds()))),
            (shape, PRIOR.process_probability_of_no_shape),
        ):
            chance *= (1 - missing) / len(module.process_sds()) if size else missing
        spectrum = np.concatenate([[mean**2], shape**2 * share]) * count * mean_pull**2
        yield chance, basis @ np.diag(spectrum) @ basis.T


def edges(level, number, cells):
    return (int(np.round((number + i) * cells / 2**level)) for i in (0, 1))


@pytest.mark.parametrize("gap", [0.0, 0.4])
@pytest.mark.parametrize("processes", [False, True])
def test_it_is_the_sum_over_every_partition_and_every_kind_of_gap(monkeypatch, gap, processes):
    if processes:
        monkeypatch.setitem(vars(PRIOR), "shortest_process", 2)
    x, pull = data(4, 1, gap=gap)
    chances, means, squares = [], [], []
    for empty, (leaves, prior) in product(module.probabilities_of_no_gap(), partitions(0, 0, 2)):
        options = []
        for level, number in leaves:
            first, last = edges(level, number, 4)
            has_process = processes and level > 0 and last - first >= 2
            options.append(list(kinds(level, pull[0, first:last], pull[0].mean(), has_process, empty)))
        for chosen in product(*options):
            signal = np.zeros((4, 4))
            chance = prior / 2
            for (level, number), (own, covariance) in zip(leaves, chosen, strict=True):
                first, last = edges(level, number, 4)
                signal[first:last, first:last] = covariance
                chance *= own
            whole = np.eye(4) + signal
            shrink = signal @ np.linalg.inv(whole)
            quadratic = x[0] @ x[0] - x[0] @ np.linalg.solve(whole, x[0])
            chances.append(chance * np.exp(quadratic / 2) / sqrt(np.linalg.det(whole)))
            means.append(shrink @ x[0])
            squares.append(means[-1] ** 2 + np.diag(shrink))
    found = DyadicPartition(x, pull)
    chances = np.array(chances)
    assert found.log_bayes_factor[0] == pytest.approx(np.log(chances.sum()), rel=1e-9)
    mean, square = found.moments
    np.testing.assert_allclose(mean[0], chances @ means / chances.sum(), rtol=1e-9)
    if not processes:  # those have one shrinkage, the average over sizes
        np.testing.assert_allclose(square[0], chances @ squares / chances.sum(), rtol=1e-9)


@pytest.mark.parametrize("cells", [3, 6, 8])
def test_its_likelihood_is_the_mean_over_all_partitions(cells):
    x, pull = data(cells, 1, gap=0.3)
    depth = int(np.log2(cells))
    total = prior_total = 0.0
    for empty, (leaves, prior) in product(module.probabilities_of_no_gap(), partitions(0, 0, depth)):
        prior /= 2
        likelihood = prior
        prior_total += prior
        for level, number in leaves:
            first, last = edges(level, number, cells)
            own = x[0, first:last]
            likelihood *= sum(
                chance * multivariate_normal.pdf(own, cov=np.eye(last - first) + covariance)
                for chance, covariance in kinds(level, pull[0, first:last], None, False, empty)
            ) / np.prod(norm.pdf(own))
        total += likelihood
    assert prior_total == pytest.approx(1)
    assert DyadicPartition(x, pull).log_bayes_factor[0] == pytest.approx(np.log(total), rel=1e-9)


@pytest.mark.parametrize("cells", [1, 2, 5, 30, 64])
def test_every_cell_lies_in_one_stretch_that_stops(cells):
    tree = DyadicPartition(*data(cells, gap=0.5))
    for summed in tree._partition_sums:
        reach, total = np.ones((2, 1)), np.zeros((2, cells))
        for level, chance in enumerate(summed.stop_probability):
            total += tree.layout.repeat_over_cells(level, reach * chance)
            reach = np.repeat(reach * (1 - chance), 2, axis=-1)
        np.testing.assert_allclose(total, np.ones((2, cells)))
    gaps = sum(
        tree.layout.repeat_over_cells(level, chance)
        for level, chance in enumerate(tree.stops_with_gap_probability)
    )
    assert gaps.min() > 0
    assert gaps.max() <= 1 + 1e-12


def test_small_gaps_beside_a_large_one_are_not_taken_for_none():
    rng = np.random.default_rng(0)
    pull = np.full((1, 64), 8.0)
    gap = np.where(np.arange(64) < 60, 0.25, -4.0)
    x = rng.standard_normal((1, 64)) + pull * gap / 8
    sparse, dense = (tree.log_bayes_factor[0] for tree in DyadicPartition(x, pull)._partition_sums)
    assert dense > sparse
    truth = float(np.abs(pull * gap / 8).sum())
    assert sum(DyadicPartition(x, pull).one_sided)[0] == pytest.approx(truth, rel=0.25)


@pytest.mark.parametrize("cells", [7, 64])
def test_draws_agree_with_moments_and_sides(cells):
    tree = DyadicPartition(*data(cells, gap=0.35))
    size = 40_000
    drawn = tree.draw(1, np.random.default_rng(0), size)
    mean, square = (moment[1] for moment in tree.moments)
    sd = drawn.std(axis=0)
    assert np.all(np.abs(drawn.mean(axis=0) - mean) < 5 * sd / sqrt(size) + 1e-9)
    second = drawn**2
    assert np.all(np.abs(second.mean(axis=0) - square) < 5 * second.std(axis=0) / sqrt(size) + 1e-9)
    for side, part in zip(tree.one_sided, (np.maximum(-drawn, 0), np.maximum(drawn, 0)), strict=True):
        total = part.sum(axis=1)
        assert total.mean() == pytest.approx(side[1], abs=5 * total.std() / sqrt(size) + 1e-6)


def test_sides_are_the_mean_and_its_absolute_value():
    tree = DyadicPartition(*data(gap=0.4))
    over, under = tree.one_sided
    np.testing.assert_allclose(under - over, tree.moments[0].sum(axis=-1), rtol=1e-9)
    assert np.all(under > 3 * over)
    other = DyadicPartition(-tree.x, tree.signal_to_noise)
    np.testing.assert_allclose(other.one_sided, (under, over), rtol=1e-9)
    mirrored = DyadicPartition(tree.x[:, ::-1], tree.signal_to_noise[:, ::-1])
    np.testing.assert_allclose(mirrored.one_sided, (over, under), rtol=1e-9)


def test_a_gap_is_found_where_it_is_and_nowhere_else():
    tree = DyadicPartition(*data(gap=0.5))
    mean = tree.moments[0] / tree.signal_to_noise
    assert np.abs(mean[:, 16:32] - 0.5).max() < 0.15
    assert np.abs(np.delete(mean, np.s_[16:32], axis=1)).max() < 0.11
    assert tree.log_bayes_factor.min() > 20
    assert DyadicPartition(*data(problems=50)).log_bayes_factor.mean() < 0


def test_cells_without_rows_have_no_gap():
    x, pull = data(8, gap=0.4)
    x[:, 3], pull[:, 3] = 0.0, 0.0
    tree = DyadicPartition(x, pull)
    assert np.isfinite(tree.log_bayes_factor).all()
    assert np.all(tree.moments[0][:, 3] == 0)
    assert np.all(tree.draw(0, np.random.default_rng(0), 50)[:, 3] == 0)
    empty = DyadicPartition(np.zeros((1, 8)), np.zeros((1, 8)))
    assert empty.log_bayes_factor[0] == pytest.approx(0, abs=1e-12)
    assert np.all(np.array(empty.one_sided) == 0)


def test_one_pull_for_all_problems_is_that_of_each():
    x, pull = data(problems=3, gap=0.3)
    one, each = DyadicPartition(x, pull[:1]), DyadicPartition(x, np.repeat(pull[:1], 3, axis=0))
    np.testing.assert_allclose(one.log_bayes_factor, each.log_bayes_factor, rtol=1e-9)
    np.testing.assert_allclose(one.one_sided, each.one_sided, rtol=1e-9)
    np.testing.assert_allclose(one.moments, each.moments, rtol=1e-9, atol=1e-12)
    a, b = (tree.draw(2, np.random.default_rng(0), 5) for tree in (one, each))
    np.testing.assert_allclose(a, b)


def test_sizes_are_in_units_of_probability(monkeypatch):
    x, pull = data(gap=0.3)
    tree = DyadicPartition(x, pull)
    evidence, moments = tree.log_bayes_factor, tree.moments
    for name in ("smallest_sd", "largest_sd"):
        monkeypatch.setitem(vars(PRIOR), name, getattr(PRIOR, name) / 10)
    found = DyadicPartition(x, 10 * pull)
    np.testing.assert_allclose(found.log_bayes_factor, evidence, rtol=1e-9)
    np.testing.assert_allclose(found.moments, moments, rtol=1e-7, atol=1e-12)


def test_the_positive_part_is_known_to_seven_digits():
    mean, sd = np.meshgrid(np.linspace(-8, 8, 321), [1e-12, 0.1, 1.0, 3.0])
    q = mean / sd
    expected = np.where(np.abs(q) < 1e6, sd * norm.pdf(q) + mean * norm.cdf(q), np.maximum(mean, 0))
    np.testing.assert_allclose(expected_positive_part(mean, sd), expected, atol=1e-6)

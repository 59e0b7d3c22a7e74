"""The calibration test of the canonical notion: a Bayesian score test by simulation.

H0: the labels are drawn from the scores. The statistic is a log Bayes factor of the softmax model against H0.
For each block of parameters it is averaged over prior sizes and over the absence of the block; it is summed
over the blocks. A quadratic expansion at H0 is used, so only the gradient of the log-likelihood at H0 has to
be computed for each data set. The null distribution is that of labels simulated from the scores. The
parameters of one class give the test of that class.

See docs/methods/calibration-test.md and docs/methods/canonical-calibration.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from calibrant.posterior.softmax.blocks import SHIFT, Blocks, CoefficientBlock
from calibrant.posterior.softmax.fit import shapes
from calibrant.posterior.softmax.likelihood import Likelihood
from calibrant.score_data import Array
from calibrant.score_data.simplex import Simplex
from calibrant.settings import SOFTMAX

# Scores that the information matrix is computed from, which bounds the cost, and the smallest number of rows.
INFORMATION_SCORES, INFORMATION_ROWS = 1 << 15, 1000
# Largest number of simulated scores, which bounds the cost. With more, each part of the rows is simulated
# fewer times, but at least `MIN_SIMULATIONS` times, and data sets are combinations of randomly chosen
# simulations of the parts.
SIMULATED, MIN_SIMULATIONS = 20_000_000, 20
# Score vectors of a part, largest number of parts, and numbers held in memory at once.
MIN_BLOCK, MAX_PARTS, MAX_NUMBERS = 128, 500, 1 << 22
# Relative difference below which statistics are equal up to rounding in single precision.
ROUNDING = 1e-4


@dataclass(frozen=True, eq=False)
class ScoreTest:
    """Result of the test.

    Attributes
    ----------
    p_value : float
        Probability under H0 of a statistic at least as large.
    statistic : float
        Log Bayes factor for a gap in any of the blocks against none.
    null : array
        Statistics of simulated labels.
    by_class : array (classes,)
        p-value of each class. H0: given all scores, the score of the class is its frequency.
    """

    p_value: float
    statistic: float
    null: Array
    by_class: Array


def p_value(rows: Simplex, blocks: Blocks, rng: np.random.Generator, sims: int) -> ScoreTest:
    """Test H0: the labels are drawn from the scores.

    Up to 20 million simulated scores (2000 rows of ten classes and 999 simulations) the test is exact. With
    more, parts of the rows are simulated fewer times and combined at random.

    Parameters
    ----------
    rows : Simplex
        Scores and labels.
    blocks : Blocks
        Blocks of parameters of the softmax model for these rows.
    rng : Generator
        Generator of the simulated labels.
    sims : int
        Number of simulated data sets.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1], 400)
    >>> label = (rng.random((400, 1)) > p.cumsum(axis=1)).sum(axis=1)
    >>> calibrated, wrong = Simplex.of(p, label), Simplex.of(p, (label + 1) % 3)
    >>> p_value(calibrated, Blocks.of(calibrated), rng, 99).p_value > 0.05
    True
    >>> p_value(wrong, Blocks.of(wrong), rng, 99).p_value
    0.01
    """
    sample = rows[: max(INFORMATION_ROWS, INFORMATION_SCORES // rows.n_classes)]
    information = Likelihood(sample, blocks).expand(np.zeros(blocks.size)) * (rows.n / sample.n)
    slopes = _slopes(rows, blocks, rng, sims)
    statistics = _log_bayes_factors(slopes, information, [(b.indices[None], b) for b in blocks.blocks])[:, 0]
    by_class = _log_bayes_factors(slopes, information, _class_blocks(blocks))
    return ScoreTest(
        float(_p_values(statistics)), float(statistics[-1]), statistics[:-1], _p_values(by_class)
    )


def _p_values(statistics: Array) -> Array:
    """Return the share of values at least as large as the last one, which is included."""
    observed = statistics[-1] - ROUNDING * (1 + np.abs(statistics[-1]))
    return np.asarray((1 + (statistics[:-1] >= observed).sum(axis=0)) / len(statistics))


def _class_blocks(blocks: Blocks) -> list[tuple[Array, CoefficientBlock]]:
    """Return the positions (classes, parameters) of the parameters of single classes, block by block."""
    owner = np.full(blocks.size, -1)
    for indices in (blocks.common, blocks.by_class):
        owner[indices] = np.arange(blocks.n_classes)[:, None]
    class_blocks = []
    for block in blocks.blocks:
        if (owner[block.indices] >= 0).all():
            masks = [owner[block.indices] == k for k in range(blocks.n_classes)]
            frequency = None if block.frequency is None else block.frequency[masks[0]]
            first = CoefficientBlock(block.name, block.indices[masks[0]], frequency)
            class_blocks.append((np.stack([block.indices[mask] for mask in masks]), first))
    return class_blocks


def _log_bayes_factors(
    slopes: Array, information: Array, parts: list[tuple[Array, CoefficientBlock]]
) -> Array:
    """Return log Bayes factors (data sets, problems) for any of the blocks, from gradients at H0.

    Parameters
    ----------
    slopes : array (data sets, parameters)
        Gradients of the log-likelihood at H0.
    information : array (parameters, parameters)
        Information matrix at H0.
    parts : list of (array, CoefficientBlock)
        For each block, the positions of its parameters (problems, parameters of the block).
    """
    total = np.zeros((len(slopes), len(parts[0][0])))
    for indices, block in parts:
        by_size = []
        for shape in shapes(block):
            scaled_information = information[indices[:, :, None], indices[:, None, :]] * (
                shape * shape[:, None]
            )
            value, vectors = np.linalg.eigh(scaled_information)
            value = np.maximum(value, 0.0)
            squared_slopes = (
                np.einsum("sqb,qbe->qse", slopes[:, indices] * shape, vectors, optimize=True) ** 2
            )
            for size in SOFTMAX.sds:
                posterior_variance = size * size / (1 + size * size * value)
                gain = np.einsum("qse,qe->sq", squared_slopes, posterior_variance, optimize=True)
                by_size.append(0.5 * (gain - np.log1p(size * size * value).sum(axis=1)))
        log_factors = np.stack(by_size)
        maximum = log_factors.max(axis=0)
        present = maximum + np.log(np.exp(log_factors - maximum).mean(axis=0))
        absent = SOFTMAX.probability_of_absent_block
        total += np.logaddexp(np.log(absent), np.log1p(-absent) + present)
    return total


class _DistinctVectors(NamedTuple):
    """Distinct score vectors, and the labels of their rows."""

    score: Array
    label_counts: Array  # (vectors, classes): observed rows of each class
    row_counts: Array  # effective number of rows of each vector
    unit: Array  # weight of one of these rows

    @classmethod
    def of(cls, rows: Simplex) -> _DistinctVectors:
        """Merge rows with equal score vectors."""
        start = rows.first_of_vectors
        weight, square = (np.add.reduceat(each, start) for each in (rows.weight, rows.square))
        row_counts = np.maximum(np.rint(weight * weight / square), 1.0)
        unit = weight / row_counts
        score = rows.score[start]
        label_counts = rows.label_weights() / unit[:, None]
        return cls(score / score.sum(axis=1, keepdims=True), label_counts, row_counts, unit)


def _slopes(rows: Simplex, blocks: Blocks, rng: np.random.Generator, sims: int) -> Array:
    """Return gradients at H0 (data sets, parameters); the last data set is the observed one."""
    start = rows.first_of_vectors
    count, k = len(start), rows.n_classes
    times = min(sims, max(MIN_SIMULATIONS, SIMULATED // (count * k)))
    step = max(1, min(max(MIN_BLOCK, count // MAX_PARTS), MAX_NUMBERS // (times * k)))
    total = np.zeros((sims + 1, blocks.size))
    for a in range(0, count, step):
        stop = start[a + step] if a + step < count else len(rows.code)
        distinct = _DistinctVectors.of(rows[start[a] : stop])
        values = _slope(blocks, distinct, _residuals(distinct, rng, times))
        total[-1] += values[-1]
        if times == sims:
            total[:-1] += values[:-1]
        else:
            # Simulations are reused, so impose their known mean of 0 and rescale their variance.
            drawn = values[:-1] - values[:-1].mean(axis=0)
            total[:-1] += np.sqrt(times / (times - 1)) * drawn[rng.integers(times, size=sims)]
    return total


def _residuals(distinct: _DistinctVectors, rng: np.random.Generator, times: int) -> Array:
    """Return residuals (data sets, classes, vectors); the last data set is the observed one."""
    p = distinct.score.T
    k, n = p.shape
    residuals = np.empty((times + 1, k, n), np.float32)
    residuals[-1] = distinct.label_counts.T
    cumulative = np.cumsum(p, axis=0)[:-1].astype(np.float32)
    beyond = rng.random((times, 1, n), dtype=np.float32) >= cumulative
    np.subtract(1, beyond[:, 0], out=residuals[:-1, 0], casting="unsafe")
    for j in range(1, k - 1):
        np.subtract(beyond[:, j - 1], beyond[:, j], out=residuals[:-1, j], casting="unsafe", dtype=np.int8)
    residuals[:-1, -1] = beyond[:, -1]
    merged = np.flatnonzero(distinct.row_counts > 1)
    if merged.size:
        row_counts = distinct.row_counts[merged].astype(np.int64)
        drawn = rng.multinomial(row_counts, distinct.score[merged], size=(times, merged.size))
        residuals[:-1][:, :, merged] = drawn.transpose(0, 2, 1)
    residuals -= (distinct.row_counts * p).astype(np.float32)
    return residuals


def _slope(blocks: Blocks, distinct: _DistinctVectors, residuals: Array) -> Array:
    """Return the gradient of the log-likelihood at H0 from residuals of data sets."""
    sets, k, n = residuals.shape
    columns, i, first = blocks.columns(distinct.score), np.arange(n), blocks.shared_by_class
    gradient = np.empty((sets, blocks.size))
    class_columns = (columns.by_class * distinct.unit[:, None, None]).transpose(1, 0, 2).astype(np.float32)
    shared = np.zeros((k, n, blocks.shared), np.float32)
    shared[:, :, :first] = class_columns[:, :, :first]
    for r in range(2):
        position = slice(first + r * SHIFT, first + (r + 1) * SHIFT)
        shared[columns.best[:, r], i, position] = columns.top[:, r] * distinct.unit[:, None]
    gradient[:, : blocks.shared] = residuals.reshape(sets, k * n) @ shared.reshape(k * n, -1)
    common = (columns.common * distinct.unit[:, None]).astype(np.float32)
    gradient[:, blocks.common] = (residuals.reshape(sets * k, n) @ common).reshape(sets, k, -1)
    for j in range(k):
        gradient[:, blocks.by_class[j]] = residuals[:, j] @ class_columns[j][:, blocks.by_class_slice()]
    return gradient

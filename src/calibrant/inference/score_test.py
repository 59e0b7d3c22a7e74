"""The test of calibration of whole vectors: do the labels follow the scores, or do the blocks know better?

The statistic is the evidence of the softmax posterior for a gap over that for none: of each block by itself,
averaged over its sizes and its absence, multiplied over the blocks. It needs the slope of the likelihood at
no gap alone. Its null is that of labels drawn by the scores. What one class's coefficients say is a test of
that class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from calibrant.posterior.softmax.blocks import SHIFT, Block, Blocks
from calibrant.posterior.softmax.fit import ABSENT, SIZES, shapes
from calibrant.posterior.softmax.likelihood import Likelihood
from calibrant.score_data import Array
from calibrant.score_data.simplex import Simplex

# Scores that the information is taken from, and rows at least.
INFORMED, INFORMED_ROWS = 1 << 15, 1000
# Simulated scores at most: with more, each part of the rows is simulated fewer times, and simulated sets are
# put together of parts at random. Each part is simulated this many times at least.
SIMULATED, FEWEST = 20_000_000, 20
# Vectors of a part, parts at most, and numbers held at once.
PART, PARTS, HELD = 128, 500, 1 << 22
# Sums of single precision differ by that much.
ROUNDING = 1e-4


@dataclass(frozen=True, eq=False)
class ScoreTest:
    """What the test found.

    Attributes
    ----------
    p_value : float
        Probability of a statistic at least as large for a calibrated model.
    statistic : float
        Logarithm of the evidence for a gap in any of the blocks over that for none.
    null : array
        The same of simulated labels.
    by_class : array (classes,)
        p-value of each class: whether its own score, given all of them, is its frequency.
    """

    p_value: float
    statistic: float
    null: Array
    by_class: Array


def p_value(rows: Simplex, blocks: Blocks, rng: np.random.Generator, sims: int = 999) -> ScoreTest:
    """Test whether the labels follow the scores.

    Up to 20 million simulated scores (2000 rows of ten classes and 999 simulations) the test is exact. With
    more, parts of the rows are simulated fewer times, and put together at random.

    Parameters
    ----------
    rows : Simplex
    blocks : Blocks
        Of the scores of these rows.
    rng : Generator
    sims : int
        Number of simulated sets of labels.

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
    some = rows[: max(INFORMED_ROWS, INFORMED // rows.n_classes)]
    information = Likelihood(some, blocks).expand(np.zeros(blocks.size)) * (rows.n / some.n)
    slopes = _slopes(rows, blocks, rng, sims)
    whole = _evidence(slopes, information, [(b.places[None], b) for b in blocks.blocks])[:, 0]
    by_class = _evidence(slopes, information, _of_classes(blocks))
    return ScoreTest(float(_tail(whole)), float(whole[-1]), whole[:-1], _tail(by_class))


def _tail(value: Array) -> Array:
    """Return the share of values at least as large as the last, itself among them."""
    seen = value[-1] - ROUNDING * (1 + np.abs(value[-1]))
    return np.asarray((1 + (value[:-1] >= seen).sum(axis=0)) / len(value))


def _of_classes(blocks: Blocks) -> list[tuple[Array, Block]]:
    """Return the places (classes, coefficients) of what belongs to one class, block by block."""
    owner = np.full(blocks.size, -1)
    for places in (blocks.common, blocks.own):
        owner[places] = np.arange(blocks.n_classes)[:, None]
    found = []
    for block in blocks.blocks:
        if (owner[block.places] >= 0).all():
            each = [owner[block.places] == k for k in range(blocks.n_classes)]
            frequency = None if block.frequency is None else block.frequency[each[0]]
            first = Block(block.name, block.places[each[0]], frequency)
            found.append((np.stack([block.places[own] for own in each]), first))
    return found


def _evidence(slopes: Array, information: Array, parts: list[tuple[Array, Block]]) -> Array:
    """Return the log evidence for any of some blocks (sets, problems), by the slopes of each set.

    Each block has its places in every problem (problems, coefficients).
    """
    total = np.zeros((len(slopes), len(parts[0][0])))
    for places, block in parts:
        each = []
        for shape in shapes(block):
            own = information[places[:, :, None], places[:, None, :]] * (shape * shape[:, None])
            value, vectors = np.linalg.eigh(own)
            value = np.maximum(value, 0.0)
            turned = np.einsum("sqb,qbe->qse", slopes[:, places] * shape, vectors, optimize=True) ** 2
            for size in SIZES:
                more = size * size / (1 + size * size * value)
                gain = np.einsum("qse,qe->sq", turned, more, optimize=True)
                each.append(0.5 * (gain - np.log1p(size * size * value).sum(axis=1)))
        log = np.stack(each)
        top = log.max(axis=0)
        present = top + np.log(np.exp(log - top).mean(axis=0))
        total += np.logaddexp(np.log(ABSENT), np.log1p(-ABSENT) + present)
    return total


class _Part(NamedTuple):
    """Some distinct vectors of scores."""

    score: Array
    seen: Array  # (vectors, classes): rows of each class
    members: Array  # how many rows there are
    unit: Array  # what one of them weighs

    @classmethod
    def of(cls, rows: Simplex) -> _Part:
        """Gather the rows of equal vectors."""
        start = np.flatnonzero(np.diff(rows.group, prepend=-1))
        weight, square = (np.add.reduceat(each, start) for each in (rows.weight, rows.square))
        members = np.maximum(np.rint(weight * weight / square), 1.0)
        unit = weight / members
        score = rows.score[start]
        seen = np.zeros(score.shape)
        np.add.at(seen, (rows.group - rows.group[0], rows.code), rows.weight)
        return cls(score / score.sum(axis=1, keepdims=True), seen / unit[:, None], members, unit)


def _slopes(rows: Simplex, blocks: Blocks, rng: np.random.Generator, sims: int) -> Array:
    """Return slopes of the likelihood (sets, coefficients); the last set is as seen."""
    start = np.flatnonzero(np.diff(rows.group, prepend=-1))
    count, k = len(start), rows.n_classes
    times = min(sims, max(FEWEST, SIMULATED // (count * k)))
    step = max(1, min(max(PART, count // PARTS), HELD // (times * k)))
    total = np.zeros((sims + 1, blocks.size))
    for a in range(0, count, step):
        end = start[a + step] if a + step < count else len(rows.code)
        part = _Part.of(rows[start[a] : end])
        values = _slope(blocks, part, _residuals(part, rng, times))
        total[-1] += values[-1]
        if times == sims:
            total[:-1] += values[:-1]
        else:
            # The mean is known to be 0, and single draws are used many times.
            drawn = values[:-1] - values[:-1].mean(axis=0)
            total[:-1] += np.sqrt(times / (times - 1)) * drawn[rng.integers(times, size=sims)]
    return total


def _residuals(part: _Part, rng: np.random.Generator, times: int) -> Array:
    """Return labels less their expectation (sets, classes, vectors); the last set is as seen."""
    p = part.score.T
    k, n = p.shape
    rest = np.empty((times + 1, k, n), np.float32)
    rest[-1] = part.seen.T
    ends = np.cumsum(p, axis=0)[:-1].astype(np.float32)
    beyond = rng.random((times, 1, n), dtype=np.float32) >= ends
    np.subtract(1, beyond[:, 0], out=rest[:-1, 0], casting="unsafe")
    for j in range(1, k - 1):
        np.subtract(beyond[:, j - 1], beyond[:, j], out=rest[:-1, j], casting="unsafe", dtype=np.int8)
    rest[:-1, -1] = beyond[:, -1]
    several = np.flatnonzero(part.members > 1)
    if several.size:
        members = part.members[several].astype(np.int64)
        drawn = rng.multinomial(members, part.score[several], size=(times, several.size))
        rest[:-1][:, :, several] = drawn.transpose(0, 2, 1)
    rest -= (part.members * p).astype(np.float32)
    return rest


def _slope(blocks: Blocks, part: _Part, rest: Array) -> Array:
    """Return the slope of the likelihood at no gap for sets of residuals."""
    sets, k, n = rest.shape
    at, i, first = blocks.columns(part.score), np.arange(n), blocks.alike
    out = np.empty((sets, blocks.size))
    own = (at.own * part.unit[:, None, None]).transpose(1, 0, 2).astype(np.float32)
    shared = np.zeros((k, n, blocks.shared), np.float32)
    shared[:, :, :first] = own[:, :, :first]
    for r in range(2):
        where = slice(first + r * SHIFT, first + (r + 1) * SHIFT)
        shared[at.best[:, r], i, where] = at.top[:, r] * part.unit[:, None]
    out[:, : blocks.shared] = rest.reshape(sets, k * n) @ shared.reshape(k * n, -1)
    common = (at.common * part.unit[:, None]).astype(np.float32)
    out[:, blocks.common] = (rest.reshape(sets * k, n) @ common).reshape(sets, k, -1)
    for j in range(k):
        out[:, blocks.own[j]] = rest[:, j] @ own[j][:, blocks.own_slice()]
    return out

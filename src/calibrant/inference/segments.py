"""Audit of overlapping segments: the mean calibration gap of each, with control of the family-wise error.

Two tests for each segment. H0 of the first: the scores are calibrated in the segment. H0 of the second: one
common recalibration of all rows makes them calibrated in the segment. A segment that is calibrated can differ
from the common recalibration, because that allows for the gaps of other segments; so only the first test says
that a segment is miscalibrated. The common curve is the default calibrator, corrected in bins of the score so
that no residual is left in any; the second test allows for that fit.

The sum of the residuals of a segment is compared with a binomial count that has its variance and its third
cumulant under H0. This gives a normal score, and the interval of the gap by inversion (the equal-tailed
interval of Jeffreys). All segments are simulated together: normal scores with the correlations of overlapping
rows, which become whole counts in segments where the count is small. The largest normal score of each
simulated data set gives adjusted p-values and simultaneous intervals. With clusters, the simulated sums have
a part that whole clusters share, with a correlation drawn anew for each data set from what the clusters say
about it.

See docs/methods/segments.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from calibrant.inference.interval_estimate import MeanGap
from calibrant.inputs import SegmentTable, Serializable
from calibrant.inputs.codec import Bounds, Number, Probability
from calibrant.inputs.printed import Block, Printed
from calibrant.inputs.wording import count, p_value, points
from calibrant.maps.binary import BinaryProblem, auto
from calibrant.parallel import one_blas_thread, parallel_map
from calibrant.score_data import Array, Sample

# Scores are kept so far from 0 and 1 when variances are computed.
LEAST = 1e-6
# Simulated data sets held at once, and products of pairs of tables that correlations are computed from.
BLOCK, PRODUCTS = 1000, 200_000_000
# Variance of a count from which on it is not rounded to whole numbers in simulations.
WHOLE_BELOW = 100.0
# Score bins of the common curve at most, and variance of the outcomes of each at least.
MOST_BINS, BIN_VARIANCE = 50, 25.0
# Standard deviations of log-odds in the prior of the deviations of segments from the common curve.
PRIOR_SDS = np.array([0.0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6])
EM_STEPS = 200
# Intraclass correlations of the posterior, which have the same prior probability.
CORRELATIONS = np.linspace(0, 1, 201) ** 2
# Products of pairs of segments that sums over clusters are computed from.
CLUSTER_PRODUCTS = 20_000_000_000


@dataclass(frozen=True)
class Segment(Printed, Serializable):
    """One segment of an audit.

    Attributes
    ----------
    columns, values : tuple of str
        Columns that define the segment, and their values.
    rows : int
        Number of rows.
    observed, expected : float
        Mean outcome and mean score.
    gap : MeanGap
        The segment's own calibration gap, frequency minus score. The intervals of all segments hold together.
    p_value : float
        H0: the scores are calibrated in the segment. Adjusted for the number of segments (family-wise error
        rate).
    difference : MeanGap
        Difference from the common recalibration: the part of the gap that one recalibration of all rows does
        not explain. A calibrated segment differs where other segments are miscalibrated. Intervals as `gap`.
    p_difference : float
        H0: scores that are recalibrated together are calibrated in the segment. Adjusted as `p_value`.
    pooled : float
        The gap, with the difference from the common recalibration shrunk by how well it is known.

    See Also
    --------
    SegmentAudit : All segments.
    audit : Computes them.

    Examples
    --------
    >>> import calibrant
    >>> score, country = [0.2, 0.4, 0.6, 0.8] * 100, ["no", "no", "se", "se"] * 100
    >>> audit = calibrant.audit([0, 0, 1, 1] * 100, score, {"country": country}, n_resamples=199)
    >>> audit.segments[0].columns
    ('country',)
    """

    columns: tuple[str, ...]
    values: tuple[str, ...]
    rows: Number
    observed: Probability
    expected: Probability
    gap: MeanGap
    p_value: Probability
    difference: MeanGap
    p_difference: Probability
    pooled: Annotated[float, Bounds(-1, 1)]

    @property
    def name(self) -> str:
        """The segment as text."""
        pairs = zip(self.columns, self.values, strict=True)
        return ", ".join(f"{key} {'' if value[:1] in ('<', '>') else '= '}{value}" for key, value in pairs)

    def _printed(self) -> Iterator[Block]:
        yield "segment", self.name
        readings = ("gap", self.gap, self.p_value), ("difference", self.difference, self.p_difference)
        for title, gap, p in readings:
            ends = f"{points(gap.low, '+')} to {points(gap.high, '+')}"
            yield title, f"{points(gap.value, '+')} points ({ends}); adjusted {p_value(p, 1e-4)}"
        yield "rows", count(self.rows)


class EquivalentCount(NamedTuple):
    """Binomial counts with the mean, the variance and the third cumulant of sums of residuals under H0."""

    total: Array  # observed count of each segment, which need not be whole
    rows: Array  # number of trials, which need not be whole either
    rate: Array
    unit: Array  # residual that a count of one stands for
    known: Array  # whether the sum varies under H0 at all

    @classmethod
    def of(cls, residual: Array, variance: Array, third: Array, unit: Array, free: Array) -> EquivalentCount:
        """Match sums with these cumulants; `free` is the variance before the common curve was fitted."""
        known = variance > 1e-9 * free
        safe = np.where(known, variance, 1.0)
        rate = np.clip((1 - np.where(known, third, 0.0) / (safe * unit)) / 2, LEAST / 2, 1 - LEAST / 2)
        rows = safe / (unit * unit * rate * (1 - rate))
        return cls(rows * rate + residual / unit, rows, rate, unit, known)

    def score(self, count: Array, k: Array | slice = slice(None)) -> Array:
        """Return the normal score of counts: that of their mid-p-value, without steps.

        >>> one = np.ones(1)
        >>> counts = EquivalentCount.of(5 * one, 25 * one, 0 * one, one, 25 * one)
        >>> counts.score(counts.total).round(2)
        array([1.])
        """
        from scipy.special import betainc, ndtri

        rows, rate = self.rows[k], self.rate[k]
        count = np.clip(count, 0.0, rows)
        above, below = count + 0.5, rows - count + 0.5
        # Each tail by itself: one minus a tail has no digits left far from the middle.
        z = np.where(
            count > rows * rate,
            -ndtri(np.maximum(betainc(above, below, rate), 1e-300)),
            ndtri(np.maximum(betainc(below, above, 1 - rate), 1e-300)),
        )
        return np.where(self.known[k], z, 0.0)

    def gap(self, limit: float, weight: Array) -> list[MeanGap]:
        """Return mean residuals; the normal score would be `limit` in absolute value at the ends."""
        from scipy.special import betaincinv, ndtr

        count, middle, scale = np.clip(self.total, 0.0, self.rows), self.rows * self.rate, self.unit / weight
        tail, above, below = ndtr(-limit), count + 0.5, self.rows - count + 0.5
        ends = betaincinv(above, below, tail), 1 - betaincinv(below, above, tail)
        low, high = (np.clip((end - self.rate) * self.rows * scale, -1, 1) for end in ends)
        value = np.clip((self.total - middle) * scale, -1, 1)
        low = np.where(self.known, np.minimum(low, value), -1)
        high = np.where(self.known, np.maximum(high, value), 1)
        expected = np.minimum(limit * np.sqrt(middle * (1 - self.rate)) * scale, 1)
        return [MeanGap(*each) for each in np.stack([value, low, high, expected], axis=1).tolist()]

    def steps(self) -> dict[int, tuple[Array, Array]]:
        """Return for each segment with a small count the deviates between whole counts, and their scores.

        A count is drawn by the place of a normal deviate among these.
        """
        from scipy.special import betainc, ndtri

        middle, sd = self.rows * self.rate, np.sqrt(self.rows * self.rate * (1 - self.rate))
        small = np.flatnonzero(self.known & (sd**2 < WHOLE_BELOW))
        if not small.size:
            return {}
        low = np.maximum(middle - 8 * sd - 8, -1) - self.total
        high = np.minimum(middle + 8 * sd + 16, self.rows + 1) - self.total
        counts = [self.total[k] + np.arange(np.floor(low[k]) + 1, np.ceil(high[k])) for k in small]
        sizes = [len(each) for each in counts]
        which, count, ends = np.repeat(small, sizes), np.concatenate(counts), np.cumsum(sizes)[:-1]
        rows = self.rows[which]
        at_most = betainc(np.maximum(rows - count, 1e-9), count + 1, 1 - self.rate[which])
        between = ndtri(np.where(count >= rows, 1.0, at_most))
        pairs = zip(np.split(between, ends), np.split(self.score(count, which), ends), strict=True)
        return {int(k): (each[:-1], score) for k, (each, score) in zip(small, pairs, strict=True)}


class _RowCumulants(NamedTuple):
    """Residuals and their cumulants under H0 of every row, about a score or about the common curve."""

    residual: Array
    variance: Array
    third: Array

    @classmethod
    def of(cls, score: Array, outcome: Array, weight: Array, *, counts: bool) -> _RowCumulants:
        kept = np.clip(score, LEAST, 1 - LEAST)
        residual, variance = outcome - score, kept * (1 - kept)
        second, third = (weight, weight) if counts else (weight**2, weight**3)
        return cls(residual * weight, variance * second, variance * (1 - 2 * kept) * third)


@one_blas_thread()
def audited_segments(
    sample: Sample, tables: Sequence[SegmentTable], cluster: Array | None, level: float, n_resamples: int,
    rng: np.random.Generator,
) -> tuple[tuple[Segment, ...], float | None]:  # fmt: skip
    """Return all segments, the largest certain gap first, and the intra-cluster correlation of clusters."""
    score, outcome = sample.score.astype(np.float64), np.asarray(sample.outcome, dtype=np.float64)
    weight = np.ones(len(score)) if sample.weight is None else sample.weight.astype(np.float64)
    curve, counts = auto(BinaryProblem(sample)).probability(score), sample.counts or sample.weight is None
    plain, common = (_RowCumulants.of(each, outcome, weight, counts=counts) for each in (score, curve))
    information = float(sample.n) * float(np.average(curve * (1 - curve), weights=weight))
    bins, n_bins = _score_bins(score, common.variance, information)
    summed = [*plain, score * weight, outcome * weight, weight]
    summed += [] if counts else [plain.variance * weight, common.variance * weight]

    def sums(table: SegmentTable) -> tuple[Array, Array]:
        size, code = len(table.values), table.code.astype(np.intp)
        flat = [np.bincount(code, x, size + 1)[:size] for x in summed]
        code = code * n_bins + bins
        binned = [np.bincount(code, x, (size + 1) * n_bins).reshape(-1, n_bins)[:size] for x in common]
        return np.stack(flat), np.stack(binned)

    parts = list(parallel_map(sums, tables))
    flat, (residual, variance, third) = (np.concatenate(each, axis=1) for each in zip(*parts, strict=True))
    total = [np.bincount(bins, x, n_bins) for x in common]
    share = variance / np.maximum(total[1], 1e-300)
    # In the residual beyond the curve a row of the segment has a factor of one less the share of the segment
    # in the variance of the bin, and a row outside minus that share.
    cubes = third * (1 - 3 * share * (1 - share)) - share**3 * total[2]
    free = variance.sum(axis=1)
    scale = np.ones((2, len(free))) if counts else np.stack([flat[6] / flat[1], flat[7] / free])
    within = [(residual - share * total[0]), variance * (1 - share), cubes]
    cumulants = [flat[:3], np.stack([each.sum(axis=1) for each in within])]
    by_row = _correlations(tables, common.variance, bins, n_bins, rng)
    effects, correlation = [np.ones(len(free))] * 2, None
    nulls: list[_RowNull | _ClusterNull] = [_RowNull(each) for each in by_row]
    if cluster is not None:
        posterior = IntraclassPosterior.of(cluster, common, weight, counts=counts)
        deviation = np.sqrt(common.variance * (weight if counts else 1.0))
        products = _cluster_products(tables, cluster, deviation, bins, share, rng)
        spread = free, cumulants[1][1]
        clustered = [_ClusterNull.of(*each, posterior) for each in zip(by_row, spread, products, strict=True)]
        nulls, correlation = [*clustered], posterior.mean
        effects = [null.effect for null in clustered]
    tests = [
        EquivalentCount.of(r, v * effect, m * effect**2, unit * effect, least * effect)
        for (r, v, m), unit, least, effect in zip(cumulants, scale, (flat[1], free), effects, strict=True)
    ]
    scores = [test.score(test.total) for test in tests]
    p_values, gaps = [], []
    for k, null in enumerate(nulls):
        largest = _largest(tests[k], null, n_resamples, rng, whole=counts and cluster is None)
        as_large = n_resamples - np.searchsorted(largest, np.abs(scores[k]) - 1e-6)
        p_values.append(((1 + as_large) / (1 + n_resamples)).tolist())
        rank = min(int(np.ceil(level * (n_resamples + 1))), n_resamples)
        gaps.append(tests[k].gap(float(largest[rank - 1]), flat[5]))
    known = 1 - _shrinkage(scores[1], tests[1])
    pooled = [
        gap.value - k * difference.value for k, gap, difference in zip(known.tolist(), *gaps, strict=True)
    ]
    expected, observed = flat[3:5] / flat[5]
    keys = [(table.columns, *each) for table in tables for each in zip(table.values, table.rows, strict=True)]
    columns = observed.tolist(), expected.tolist(), gaps[0], p_values[0], gaps[1], p_values[1], pooled
    segments = [
        Segment(names, values, int(rows), y, s, gap, p, difference, p_other, min(max(mean, -1.0), 1.0))
        for (names, values, rows), y, s, gap, p, difference, p_other, mean in zip(keys, *columns, strict=True)
    ]
    # Rounded, so that rounding errors do not decide between equal gaps.
    order = sorted(segments, key=lambda each: (-round(each.gap.certain, 9), each.columns, each.values))
    return tuple(order), correlation


def _score_bins(score: Array, variance: Array, information: float) -> tuple[Array, int]:
    """Return the bin of each score, and the number of bins, of equal variance as far as ties allow."""
    order = np.argsort(score)
    cumulative = np.cumsum(variance[order])
    size = int(np.clip(information / BIN_VARIANCE, 1, MOST_BINS))
    at = np.searchsorted(cumulative, cumulative[-1] * np.arange(1, size) / size)
    edges = np.unique(score[order[np.minimum(at, len(order) - 1)]])
    return np.searchsorted(edges, score, side="right"), len(edges) + 1


@dataclass(frozen=True)
class IntraclassPosterior:
    """What clusters say about the correlation of two standardised residuals of a cluster.

    Attributes
    ----------
    probability : array
        Probability of each value of `CORRELATIONS`.
    """

    probability: Array

    @classmethod
    def of(cls, cluster: Array, rows: _RowCumulants, weight: Array, *, counts: bool) -> IntraclassPosterior:
        """Read sums of residuals of whole clusters.

        A sum has the variance V + correlation (D^2 - V), where V is the sum of the variances of its rows and
        D that of their standard deviations. So a dominating cluster counts as one observation. The normal
        likelihood of each is weighted by the kurtosis of a sum of independent outcomes, and that of all by
        the variance of its derivative, which grows if clusters differ in their correlation.
        """
        total, alone = np.bincount(cluster, rows.residual), np.bincount(cluster, rows.variance)
        deviation = np.sqrt(rows.variance * (weight if counts else 1.0))
        excess = np.maximum(np.bincount(cluster, deviation) ** 2 - alone, 0.0)
        single = rows.variance / np.maximum(weight, 1) if counts else rows.variance
        fourth = np.bincount(cluster, rows.variance * ((1 if counts else weight**2) - 6 * single))
        factor = 2 * alone**2 / (2 * alone**2 + np.maximum(fourth, 0.0))
        several = excess > 1e-9 * alone
        if not several.any():
            return cls(np.eye(1, len(CORRELATIONS))[0])
        total, alone, excess, factor = total[several], alone[several], excess[several], factor[several]
        square = total**2
        log_likelihood = np.zeros(len(CORRELATIONS))
        for k, correlation in enumerate(CORRELATIONS.tolist()):
            variance = alone + correlation * excess
            log_likelihood[k] = -(factor * (np.log(variance) + square / variance)).sum() / 2
        variance = alone + float(CORRELATIONS[log_likelihood.argmax()]) * excess
        derivative = excess / variance
        information = (factor * derivative**2).sum() / 2
        of_derivative = ((factor * derivative * (square / variance - 1)) ** 2).sum() / 4
        log_likelihood *= min(1.0, information / max(of_derivative, 1e-300))
        probability = np.exp(log_likelihood - log_likelihood.max())
        return cls(probability / probability.sum())

    @property
    def mean(self) -> float:
        """The posterior mean."""
        return float(self.probability @ CORRELATIONS)


def _cluster_products(
    tables: Sequence[SegmentTable], cluster: Array, deviation: Array, bins: Array, share: Array,
    rng: np.random.Generator,
) -> tuple[Array, Array]:  # fmt: skip
    """Return the sums over clusters of products of the deviations of segments, for both tests.

    The deviations of a row are those of `_RowCumulants`, with the factors of the rows in each test.
    """
    from scipy.sparse import coo_array, hstack

    n_clusters, n_bins = int(cluster.max()) + 1, share.shape[1]
    codes = [(table.code.astype(np.intp), len(table.values)) for table in tables] + [(bins, n_bins)]
    parts = []
    for code, size in codes:
        sums = coo_array((deviation, (cluster, code)), shape=(n_clusters, size + 1)).tocsr()
        parts.append(sums[:, :size])
    sums = hstack(parts, format="csr")  # converting adds up what is at the same place
    exact = np.asarray(sums.multiply(sums).sum(axis=0))
    most = int(CLUSTER_PRODUCTS // sums.shape[1] ** 2)
    if most < n_clusters:
        of_cluster = np.bincount(cluster, deviation)
        probability = np.minimum(1.0, most * of_cluster / of_cluster.sum())
        chosen = np.flatnonzero(rng.random(n_clusters) < probability)
        sums = sums[chosen].multiply(1 / np.sqrt(probability[chosen])[:, None]).tocsr()
    product = np.zeros((sums.shape[1], sums.shape[1]))
    for first in range(0, sums.shape[0], BLOCK):
        block = sums[first : first + BLOCK].toarray()
        product += block.T @ block
    k = len(share)
    own, by_bin = product[:k, :k], product[:k, k:] @ share.T
    beyond = own - by_bin - by_bin.T + share @ product[k:, k:] @ share.T
    # The diagonal is known from all clusters.
    known = np.diag(beyond) + exact[:k] - np.diag(own)
    scaled = []
    for matrix, diagonal in ((own, exact[:k]), (beyond, np.maximum(known, 0.0))):
        sd = np.sqrt(diagonal)
        scaled.append(_scaled(matrix) * sd * sd[:, None])
    return scaled[0], scaled[1]


def _correlations(
    tables: Sequence[SegmentTable], variance: Array, bins: Array, n_bins: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return the correlations of the residuals of segments under both hypotheses, by the rows they share.

    Of many rows some are drawn, those of small segments more often, and weighted by their probability.
    """
    most = PRODUCTS / len(tables) ** 2
    if most < len(variance):
        smallest = np.full(len(variance), float(len(variance)))
        for table in tables:
            np.minimum(smallest, np.append(table.rows, np.inf)[table.code], out=smallest)
        probability = np.minimum(1.0, most / smallest / (1 / smallest).sum())
        chosen = np.flatnonzero(rng.random(len(variance)) < probability)
        variance, bins = variance[chosen] / probability[chosen], bins[chosen]
        tables = [table._replace(code=table.code[chosen]) for table in tables]
    # The bins are one more table, whose overlaps are the variances of segments in each bin.
    codes = [(table.code.astype(np.intp), len(table.values)) for table in tables] + [(bins, n_bins)]
    ends = np.cumsum([0, *(size for _, size in codes)])
    product = np.zeros((ends[-1], ends[-1]))
    for a, (code, size) in enumerate(codes):
        for b, (other, width) in enumerate(codes[a:], a):
            cells = np.bincount(code * (width + 1) + other, variance, (size + 1) * (width + 1))
            block = cells.reshape(size + 1, width + 1)[:size, :width]
            product[ends[a] : ends[a + 1], ends[b] : ends[b + 1]] = block
            product[ends[b] : ends[b + 1], ends[a] : ends[a + 1]] = block.T
    overlap, by_bin = product[: ends[-2], : ends[-2]], product[: ends[-2], ends[-2] :]
    total = np.maximum(np.diag(product)[ends[-2] :], 1e-300)
    return _scaled(overlap), _scaled(overlap - (by_bin / total) @ by_bin.T)


def _scaled(covariance: Array) -> Array:
    """Return correlations; those of a sum that does not vary are zero."""
    variance = np.diag(covariance)
    sd = np.where(variance > 1e-9 * variance.max(), np.sqrt(np.maximum(variance, 0)), np.inf)
    correlation = covariance / sd / sd[:, None]
    # A little less than it is, so that segments of the same rows leave the matrix invertible.
    correlation *= 1 - 1e-6
    np.fill_diagonal(correlation, 1.0)
    return correlation


@dataclass(frozen=True)
class _RowNull:
    """Normal scores of segments if rows are independent, by their correlations."""

    correlation: Array

    def drawn(self, order: Array, rng: np.random.Generator) -> Callable[[int], Array]:
        """Return a function that draws as many data sets as it is told, with segments in this order."""
        root = np.linalg.cholesky(self.correlation[np.ix_(order, order)]).T.astype(np.float32)
        return lambda size: rng.standard_normal((size, len(root)), dtype=np.float32) @ root


@dataclass(frozen=True)
class _ClusterNull:
    """Normal scores of segments if rows of a cluster depend on each other.

    Each data set has its own correlation, drawn from the posterior, so that few clusters make the tails of
    all segments longer together, as those of Student's t.

    Attributes
    ----------
    correlation : array
        Correlations of the sums of segments if rows are independent.
    by_row, by_cluster : array
        Standard deviations of the sums if the correlation in a cluster is 0 and 1, as shares of those that
        normal scores assume.
    together : array
        Correlations of the sums if the correlation in a cluster is 1.
    effect : array
        Design effects: factors of the variances that normal scores assume.
    posterior : IntraclassPosterior
        Correlation in clusters.
    """

    correlation: Array
    by_row: Array
    by_cluster: Array
    together: Array
    effect: Array
    posterior: IntraclassPosterior

    @classmethod
    def of(
        cls, correlation: Array, variance: Array, products: Array, posterior: IntraclassPosterior
    ) -> _ClusterNull:
        """Compare variances of sums of independent rows with `products`, those of sums of whole clusters."""
        known = variance > 1e-9 * variance.max()
        dependent = np.where(known, np.diag(products) / np.where(known, variance, 1.0), 1.0)
        effect = np.maximum(1 + posterior.mean * (dependent - 1), 1.0)
        return cls(
            correlation,
            np.sqrt(1 / effect),
            np.sqrt(dependent / effect),
            _scaled(products),
            effect,
            posterior,
        )

    def drawn(self, order: Array, rng: np.random.Generator) -> Callable[[int], Array]:
        """Return a function that draws as many data sets as it is told, with segments in this order."""
        roots = [
            (np.linalg.cholesky(correlation[np.ix_(order, order)]).T * sd[order]).astype(np.float32)
            for correlation, sd in ((self.correlation, self.by_row), (self.together, self.by_cluster))
        ]

        def draw(size: int) -> Array:
            within = rng.choice(CORRELATIONS, size, p=self.posterior.probability)
            z = np.zeros((size, len(order)), dtype=np.float32)
            for share, root in zip((1 - within, within), roots, strict=True):
                factor = np.sqrt(share).astype(np.float32)[:, None]
                z += factor * (rng.standard_normal(z.shape, dtype=np.float32) @ root)
            return z

        return draw


def _largest(
    test: EquivalentCount, null: _RowNull | _ClusterNull, size: int, rng: np.random.Generator, *, whole: bool
) -> Array:
    """Return the largest absolute normal scores of simulated data sets, in order."""
    order = _order_by_content(test, null.correlation)
    test, draw = EquivalentCount(*(each[order] for each in test)), null.drawn(order, rng)
    steps = test.steps() if whole else {}
    largest = []
    for first in range(0, size, BLOCK):
        z = draw(min(BLOCK, size - first))
        z[:, ~test.known] = 0.0
        for k, (between, score) in steps.items():
            z[:, k] = score[np.searchsorted(between, z[:, k])]
        largest.append(np.abs(z).max(axis=1))
    return np.sort(np.concatenate(largest)).astype(np.float64)


def _order_by_content(test: EquivalentCount, correlation: Array) -> Array:
    """Return an order of segments by their sums, so that random numbers do not depend on their names."""
    rows = test.rows / test.rows.max()
    squares = np.einsum("ij,ij,j->i", correlation, correlation, rows)
    keys = [test.total, test.rows, test.rate, test.unit, correlation @ rows, squares]
    # Rounded, because sums in another order of the rows have other last digits.
    return np.lexsort([np.round(key / max(np.abs(key).max(), 1e-300), 9) for key in keys])


def _shrinkage(z: Array, test: EquivalentCount) -> Array:
    """Return the factors by which a normal mixture prior shrinks deviations in log-odds (Stephens 2017)."""
    variance = 1 / (test.rows * test.rate * (1 - test.rate))
    deviation = z * np.sqrt(variance)
    spread = PRIOR_SDS**2 + variance[:, None]
    likelihood = np.exp(-(deviation[:, None] ** 2) / (2 * spread)) / np.sqrt(spread)
    likelihood /= likelihood.max(axis=1, keepdims=True)
    mixture = np.full(len(PRIOR_SDS), 1 / len(PRIOR_SDS))
    for _ in range(EM_STEPS):
        share = mixture * likelihood[test.known]
        mixture = (share / share.sum(axis=1, keepdims=True)).mean(axis=0) if len(share) else mixture
    share = mixture * likelihood
    share /= share.sum(axis=1, keepdims=True)
    return np.asarray((share * PRIOR_SDS**2 / spread).sum(axis=1))

"""Calibration map of three or more classes: temperature scaling, refined by the softmax posterior.

The temperature is fitted first: a single parameter, which few rows determine, removes most miscalibration.
The softmax posterior (`calibrant.posterior.softmax`) is then fitted to the temperature-scaled scores. The
scores as they are, the temperature-scaled scores and the posterior draws are averaged by their marginal
likelihoods. The method is described in docs/methods/calibrators.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import DTypeLike

from calibrant.inputs import InputError
from calibrant.inputs.codec import FAR_FROM_OVERFLOW, Bounds, Shape, Share
from calibrant.posterior.log_odds.cells import NEAREST, certainty_bound, expit
from calibrant.posterior.process import softmax
from calibrant.posterior.softmax.blocks import FEW, Blocks, least_of
from calibrant.posterior.softmax.fit import SoftmaxPosterior, gap_probability_of, penalised
from calibrant.score_data import Array
from calibrant.score_data.simplex import Simplex
from calibrant.settings import MAPS, SOFTMAX

# Range of the value that replaces a score of 0. Small scores also carry information about the temperature.
ZERO_RANGE = (1e-30, 1.0)
# Rows are put into random order by the digits of their sum of squares beyond this factor.
HASH_SCALE = float(1 << 20)
# Up to this many entries are processed in double precision, because rounding would be visible in small
# samples.
MAX_DOUBLE = 1 << 16
# Entries of the rows that first locate the temperature; entries processed at once, which stay in the cache.
FIRST_ENTRIES, CHUNK = 1 << 22, 1 << 18
# Maximum number of Newton steps for the temperature.
NEWTON_STEPS = 20
# Posterior draws of the block sizes, and draws of the coefficients for each of them.
SIZE_DRAWS, COEFFICIENT_DRAWS = 16, 2
# Gauss-Hermite nodes (normal deviates) and weights, for the uncertainty of the temperature.
SLOPE_NODES, SLOPE_WEIGHTS = np.polynomial.hermite_e.hermegauss(8)
# Least Fisher information of the log temperature in the marginal likelihood.
MIN_INFORMATION = 100.0
# Posterior probability of the identity above which these scores are kept.
KEEP_IDENTITY = 2 / 3


@dataclass(frozen=True, eq=False)
class SoftmaxMap:
    """A fitted map of three or more classes.

    Attributes
    ----------
    n_classes : int
    slope : float
        The inverse of the temperature.
    least : float
        The value that replaces a score of 0.
    blocks : Blocks or None
        Basis of the coefficients, built from temperature-scaled scores; None for temperature scaling only.
    draws : array (draws, coefficients)
        Posterior draws of the coefficients; a single row for a point estimate.
    bent : float
        Weight of the draws; the rest is the weight of temperature scaling.
    untouched : float
        Weight of the scores as they are.
    doubt : float
        Standard deviation of the logarithm of the slope.
    floor : float
        Smallest probability of a class, before normalisation.
    """

    kind: ClassVar[str] = "softmax"
    n_classes: Annotated[int, Bounds(3)]
    slope: Annotated[float, Bounds(0, FAR_FROM_OVERFLOW.high, above=True)]
    least: Annotated[float, Bounds(*ZERO_RANGE)]
    blocks: Blocks | None = None
    draws: Annotated[Array, Shape((None, None), empty=True), FAR_FROM_OVERFLOW] = field(
        default_factory=lambda: np.empty((0, 0))
    )
    bent: Share = 0.0
    untouched: Share = 0.0
    doubt: Annotated[float, Bounds(0, FAR_FROM_OVERFLOW.high)] = 0.0
    floor: Share = 0.0

    def ordered(self, columns: Array) -> SoftmaxMap:
        """Return the same map with the classes in the order of these columns."""
        if self.blocks is None:
            return self
        blocks, order = self.blocks.ordered(columns)
        return replace(self, blocks=blocks, draws=self.draws[:, order])

    def tempered(self, score: Array) -> Array:
        """Return the temperature-scaled scores."""
        return softmax(self.slope * np.log(np.maximum(score, self.least)))

    def probability(self, score: Array) -> Array:
        """Return the calibrated probabilities of score vectors."""
        if self.untouched == 1:
            return self._above_floor(np.array(score, dtype=np.float64))
        out = np.empty(score.shape)
        for chunk in self.parts(len(score)):
            tempered = self.tempered(score[chunk])
            out[chunk] = (1 - self.bent) * tempered
            for drawn in self._drawn(tempered):
                out[chunk] += self.bent / len(self.draws) * drawn
        return self._above_floor(self.untouched * score + (1 - self.untouched) * out)

    def components(self, score: Array) -> Iterator[tuple[float, Array]]:
        """Yield posterior draws of the probabilities of score vectors, each with its weight."""
        changed, tempered = 1 - self.untouched, self.tempered(score)
        if self.untouched > 0:
            yield self.untouched, score
        if self.bent < 1:
            log = np.log(np.maximum(score, self.least))
            for node, weight in zip(SLOPE_NODES, SLOPE_WEIGHTS / SLOPE_WEIGHTS.sum(), strict=True):
                slope = self.slope * np.exp(self.doubt * node)
                yield changed * (1 - self.bent) * float(weight), softmax(slope * log)
        for drawn in self._drawn(tempered):
            yield changed * self.bent / len(self.draws), drawn

    def _above_floor(self, probability: Array) -> Array:
        """Raise probabilities to the floor and normalise, in place; other rows are not changed."""
        rows = np.flatnonzero((probability < self.floor).any(axis=1))
        raised = np.maximum(probability[rows], self.floor)
        probability[rows] = raised / raised.sum(axis=1, keepdims=True)
        return probability

    def interval(self, score: Array, deviate: float) -> tuple[Array, Array]:
        """Return an interval of the probability of each class, normal in its log-odds.

        It need not contain the probability itself, which is an average that includes the original scores.
        """
        low, high = np.empty(score.shape), np.empty(score.shape)
        for chunk in self.parts(len(score)):
            tempered = self.tempered(score[chunk])
            start = log_odds(tempered)
            mean, square = np.zeros(start.shape), np.zeros(start.shape)
            for drawn in self._drawn(tempered):
                away = log_odds(drawn) - start
                mean += self.bent / len(self.draws) * away
                square += self.bent / len(self.draws) * away * away
            sd = np.sqrt(np.maximum(square - mean * mean, 0.0) + self._slope_sd(tempered) ** 2)
            low[chunk] = expit(start + mean - deviate * sd)
            high[chunk] = expit(start + mean + deviate * sd)
        return low, high

    def _slope_sd(self, tempered: Array) -> Array:
        """Return the standard deviation of the log-odds due to the uncertainty of the temperature."""
        log = np.log(np.maximum(tempered, ZERO_RANGE[0]))
        away = log - (tempered * log).sum(axis=1, keepdims=True)
        return np.asarray(self.doubt * away / np.maximum(1 - tempered, 1e-15))

    def parts(self, n: int) -> Iterator[slice]:
        """Return slices of rows that are processed at once."""
        width = 1 if self.blocks is None else self.blocks.size
        step = max(1, CHUNK // max(width, self.n_classes))
        return (slice(first, first + step) for first in range(0, n, step))

    def _drawn(self, tempered: Array) -> Iterator[Array]:
        """Yield the probabilities of each posterior draw."""
        if self.blocks is not None and self.bent > 0:
            at = self.blocks.columns(tempered)
            yield from (softmax(self.blocks.logits(at, each)) for each in self.draws)

    def _check_fields(self) -> None:
        """Raise an error for draws that do not fit the blocks."""
        width = 0 if self.blocks is None else self.blocks.size
        if self.draws.shape[1] != width:
            raise InputError("draws", f"have {width} columns", got=f"shape {self.draws.shape}")
        if self.blocks is not None and self.blocks.n_classes != self.n_classes:
            raise InputError("n_classes", f"be that of blocks, {self.blocks.n_classes}", self.n_classes)
        if self.bent > 0 and not len(self.draws):
            raise InputError("bent", "be 0 without draws", self.bent)


def log_odds(p: Array) -> Array:
    """Return the log-odds of probabilities, which may be 0 or 1."""
    return np.asarray(np.log(np.maximum(p, ZERO_RANGE[0])) - np.log(np.maximum(1 - p, ZERO_RANGE[0])))


def fit_softmax(rows: Simplex) -> SoftmaxMap:
    """Fit the model average of identity, temperature scaling and the softmax posterior."""
    start = fit_temperature(rows)
    posterior = SoftmaxPosterior.of(_tempered(rows, start), kind=_dtype(rows))
    draws = posterior.draws(np.random.default_rng(0), SIZE_DRAWS, COEFFICIENT_DRAWS)
    # Fisher information of the log temperature, and its marginal likelihood by the Laplace approximation.
    information = float(posterior.information[0, 0]) * posterior.blocks.width**2
    changed = _likelihood(rows, start.least, start.slope) - 0.5 * np.log(start.slope) ** 2
    # With few rows, a single temperature does not represent all maps that are compatible with the data.
    changed -= 0.5 * np.log1p(max(information, MIN_INFORMATION))
    calibrated = SOFTMAX.prior_probability_of_calibration
    changed += np.logaddexp(np.log(calibrated), np.log1p(-calibrated) + posterior.log_odds)
    # The prior probability of no gap is also that of the scores as they are.
    untouched = 1 - float(gap_probability_of(changed - _likelihood(rows, start.least, 1.0)))
    # Scores of 0 were replaced above. The identity keeps them, which would exclude observed labels.
    possible = bool((rows.score[np.arange(len(rows.code)), rows.code] > 0).all())
    # Small corrections often do harm.
    keep_identity = possible and untouched > KEEP_IDENTITY
    return replace(
        start,
        blocks=posterior.blocks,
        draws=draws,
        bent=posterior.gap_probability,
        untouched=1.0 if keep_identity else untouched,
        doubt=float((information + 1) ** -0.5),
        floor=_floor(rows) if keep_identity else NEAREST,
    )


def _floor(rows: Simplex) -> float:
    """Return the smallest probability of a class if the scores are not changed and exclude no label."""
    excluding = float(rows.weight[(rows.score <= 0).any(axis=1)].sum())
    other = float(np.min(rows.score, where=rows.score > 0, initial=1.0))
    return certainty_bound(excluding, other) / (rows.n_classes - 1)


def _tempered(rows: Simplex, start: SoftmaxMap) -> Simplex:
    """Return temperature-scaled rows in a random order that is invariant under rounding and class order."""
    hashed = np.einsum("ij,ij->i", rows.score, rows.score) * HASH_SCALE % 1.0
    rows = rows[np.argsort(hashed, kind="stable")]
    return replace(rows, score=start.tempered(rows.score))


def _dtype(rows: Simplex) -> DTypeLike:
    return np.float64 if rows.score.size <= MAX_DOUBLE else np.float32


def fit_vector(rows: Simplex) -> SoftmaxMap:
    """Fit vector scaling: a shift and a slope of the log probability of each class."""
    return _fit_sizes(rows, {})


def fit_matrix(rows: Simplex) -> SoftmaxMap:
    """Fit matrix scaling; with many classes, vector scaling."""
    matrix = {"matrix": MAPS.matrix_sd / rows.n_classes} if rows.n_classes <= FEW else {}
    return _fit_sizes(rows, matrix)


def _fit_sizes(rows: Simplex, matrix: dict[str, float]) -> SoftmaxMap:
    """Return the posterior mode for fixed prior standard deviations of blocks, which may include a matrix."""
    sizes = dict.fromkeys(("temperature", "bias", "slope"), MAPS.vector_sd) | matrix
    start = fit_temperature(rows)
    tempered = _tempered(rows, start)
    blocks = Blocks.of(tempered)
    return replace(
        start, blocks=blocks, draws=penalised(tempered, blocks, sizes, _dtype(rows))[None], bent=1.0
    )


def fit_temperature(rows: Simplex) -> SoftmaxMap:
    """Fit temperature scaling by maximum a posteriori: the log temperature has a standard normal prior."""
    start = SoftmaxMap(rows.n_classes, 1.0, least_of(rows.score, ZERO_RANGE))
    # Rows are in random order: a first part locates the optimum, and one or two steps on all rows refine it.
    for subset in (rows[: max(1, FIRST_ENTRIES // rows.n_classes)], rows):
        for _ in range(NEWTON_STEPS):
            each = slope_derivatives(start, subset.score, subset.code)
            slope = float(newton_slope(start.slope, *(subset.weight @ derivative for derivative in each)))
            start, step = replace(start, slope=slope), abs(slope / start.slope - 1)
            if step < 1e-8:
                break
    return start


def slope_doubt(rows: Simplex, start: SoftmaxMap) -> float:
    """Return the standard deviation of the logarithm of the slope, under its standard normal prior."""
    _, curvature = slope_derivatives(start, rows.score, rows.code)
    return float((start.slope**2 * (rows.weight @ curvature) + 1) ** -0.5)


def newton_slope(slope: float, gradient: Array, curvature: Array) -> Array:
    """Return the slope after a Newton step of its logarithm, given sums of `slope_derivatives`."""
    step = (slope * gradient - np.log(slope)) / (slope * slope * curvature + 1)
    return np.asarray(slope * np.exp(np.clip(step, -0.5, 0.5)))


def slope_derivatives(start: SoftmaxMap, score: Array, code: Array) -> tuple[Array, Array]:
    """Return the derivative of the log-likelihood of each row by the slope, and minus the second one."""
    first, second = np.empty(len(score)), np.empty(len(score))
    for chunk in start.parts(len(score)):
        log = log_in_place(score[chunk].astype(np.float64), start.least)
        p = softmax(start.slope * log)
        mean = np.einsum("ij,ij->i", p, log)
        first[chunk] = log[np.arange(len(log)), code[chunk]] - mean
        second[chunk] = np.einsum("ij,ij,ij->i", p, log, log) - mean * mean
    return first, np.maximum(second, 0.0)


def log_in_place(score: Array, least: float) -> Array:
    """Replace scores by their logarithms, with a smallest score; new memory takes longer than logarithms."""
    np.maximum(score, least, out=score)
    return np.log(score, out=score)


def _likelihood(rows: Simplex, least: float, slope: float) -> float:
    """Return the log-likelihood of log probabilities multiplied by a slope."""
    total, step = 0.0, max(1, CHUNK // rows.n_classes)
    for first in range(0, len(rows.code), step):
        chunk = slice(first, first + step)
        z = slope * np.log(np.maximum(rows.score[chunk], least))
        label_logit = z[np.arange(len(z)), rows.code[chunk]]
        total += float(rows.weight[chunk] @ (label_logit - np.logaddexp.reduce(z, axis=1)))
    return total

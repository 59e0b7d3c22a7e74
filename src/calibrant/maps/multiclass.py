"""The map of many classes: a temperature, and on top of it what the blocks of the softmax posterior add.

The likeliest temperature comes first: one number that few rows can tell mends most of what goes wrong. The
posterior of the blocks (`calibrant.posterior.softmax`) then sees the tempered scores. The scores as they are,
the tempered ones and the draws of the posterior are averaged by their evidence.
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
from calibrant.posterior.softmax.fit import CALIBRATED, SoftmaxPosterior, penalised
from calibrant.score_data import Array
from calibrant.score_data.simplex import Simplex

# Prior weight of leaving the scores as they are.
UNTOUCHED = 0.25
# The spread of the temperature's logarithm: where it is looked for, and where it is weighed against none.
TEMPERATURES, LIKELY = 2.0, 1.0
# What rows tell of it at least, where it is weighed: one number does not stand for all that few rows allow.
TOLD = 100.0
# Scores that are this likely right as they are stay so: a change that is rather not needed often harms.
ALONE = 2 / 3
# What a score of 0 is taken for lies between these: smaller scores tell of a temperature too.
WITHIN = (1e-30, 1.0)
# Digits of the sum of a row's squares beyond this order the rows.
MIXED = float(1 << 20)
# So many scores are summed in double precision: what rounding makes of a few rows would show in their map.
EXACT = 1 << 16
# Draws of sizes and of coefficients given each, and numbers held at once.
OF_SIZES, OF_EACH, CHUNK = 16, 2, 1 << 22
# Most steps of Newton's method for the temperature.
NEWTON_STEPS = 20
# Sizes of a shift and a stretch of each class, of what the temperature leaves, and of a matrix over classes.
STRETCHED, ACROSS = {"temperature": 0.2, "bias": 0.6, "slope": 0.3}, 0.5


@dataclass(frozen=True, eq=False)
class Softmax:
    """A fitted map of many classes.

    Attributes
    ----------
    n_classes : int
    slope : float
        The inverse of the temperature.
    least : float
        What a score of 0 is taken for.
    blocks : Blocks or None
        What coefficients multiply, set by tempered scores; None where the temperature is all.
    draws : array (draws, coefficients)
        Coefficients from the posterior; a single one, where it is not averaged.
    bent : float
        Weight of the draws; the rest is that of the temperature alone.
    untouched : float
        Weight of the scores as they are, against both.
    doubt : float
        Standard deviation of the logarithm of the slope.
    floor : float
        The least probability of a class, before those of a row are divided by their sum.
    """

    kind: ClassVar[str] = "softmax"
    n_classes: Annotated[int, Bounds(3)]
    slope: Annotated[float, Bounds(0, FAR_FROM_OVERFLOW.high, above=True)]
    least: Annotated[float, Bounds(*WITHIN)]
    blocks: Blocks | None = None
    draws: Annotated[Array, Shape((None, None), empty=True), FAR_FROM_OVERFLOW] = field(
        default_factory=lambda: np.empty((0, 0))
    )
    bent: Share = 0.0
    untouched: Share = 0.0
    doubt: Annotated[float, Bounds(0, FAR_FROM_OVERFLOW.high)] = 0.0
    floor: Share = 0.0

    def ordered(self, columns: Array) -> Softmax:
        """Return the same map with the classes in another order: that of these columns."""
        if self.blocks is None:
            return self
        blocks, turned = self.blocks.ordered(columns)
        return replace(self, blocks=blocks, draws=self.draws[:, turned])

    def tempered(self, score: Array) -> Array:
        """Return the scores at the temperature."""
        return softmax(self.slope * np.log(np.maximum(score, self.least)))

    def probability(self, score: Array) -> Array:
        """Return the probabilities that rows of scores stand for."""
        if self.untouched == 1:
            return self._above_floor(np.array(score, dtype=np.float64))
        out = np.empty(score.shape)
        for part in self.parts(len(score)):
            tempered = self.tempered(score[part])
            out[part] = (1 - self.bent) * tempered
            for drawn in self._drawn(tempered):
                out[part] += self.bent / len(self.draws) * drawn
        return self._above_floor(self.untouched * score + (1 - self.untouched) * out)

    def _above_floor(self, probability: Array) -> Array:
        """Raise probabilities to the floor, in place; rows without any below it stay as they are."""
        rows = np.flatnonzero((probability < self.floor).any(axis=1))
        raised = np.maximum(probability[rows], self.floor)
        probability[rows] = raised / raised.sum(axis=1, keepdims=True)
        return probability

    def interval(self, score: Array, deviate: float) -> tuple[Array, Array]:
        """Return the ends of an interval of each class's probability, normal in its log-odds.

        They need not hold the probability itself, which is an average that includes untouched scores.
        """
        low, high = np.empty(score.shape), np.empty(score.shape)
        for part in self.parts(len(score)):
            tempered = self.tempered(score[part])
            start = log_odds(tempered)
            mean, square = np.zeros(start.shape), np.zeros(start.shape)
            for drawn in self._drawn(tempered):
                away = log_odds(drawn) - start
                mean += self.bent / len(self.draws) * away
                square += self.bent / len(self.draws) * away * away
            sd = np.sqrt(np.maximum(square - mean * mean, 0.0) + self._of_slope(tempered) ** 2)
            low[part] = expit(start + mean - deviate * sd)
            high[part] = expit(start + mean + deviate * sd)
        return low, high

    def _of_slope(self, tempered: Array) -> Array:
        """Return what the doubt about the temperature does to the log-odds of the tempered scores."""
        log = np.log(np.maximum(tempered, WITHIN[0]))
        away = log - (tempered * log).sum(axis=1, keepdims=True)
        return np.asarray(self.doubt * away / np.maximum(1 - tempered, 1e-15))

    def parts(self, n: int) -> Iterator[slice]:
        """Cut rows into parts that are held at once."""
        width = 1 if self.blocks is None else self.blocks.size
        step = max(1, CHUNK // max(width, self.n_classes))
        return (slice(first, first + step) for first in range(0, n, step))

    def _drawn(self, tempered: Array) -> Iterator[Array]:
        """Make the probabilities of some rows by each draw."""
        if self.blocks is not None and self.bent > 0:
            at = self.blocks.columns(tempered)
            yield from (softmax(self.blocks.logits(at, each)) for each in self.draws)

    def check_fields(self) -> None:
        """Refuse draws that do not fit the blocks."""
        width = 0 if self.blocks is None else self.blocks.size
        if self.draws.shape[1] != width:
            raise InputError("draws", f"have {width} columns", got=f"shape {self.draws.shape}")
        if self.blocks is not None and self.blocks.n_classes != self.n_classes:
            raise InputError("n_classes", f"be that of blocks, {self.blocks.n_classes}", self.n_classes)
        if self.bent > 0 and not len(self.draws):
            raise InputError("bent", "be 0 without draws", self.bent)


def log_odds(p: Array) -> Array:
    """Return the log-odds of probabilities, which may be 0 or 1."""
    return np.asarray(np.log(np.maximum(p, WITHIN[0])) - np.log(np.maximum(1 - p, WITHIN[0])))


def fit_softmax(rows: Simplex) -> Softmax:
    """Average the scores as they are, tempered ones, and those that the blocks bend further."""
    start = fit_temperature(rows)
    posterior = SoftmaxPosterior.of(_tempered(rows, start), kind=_kind(rows))
    draws = posterior.draws(np.random.default_rng(0), OF_SIZES, OF_EACH)
    # What the rows tell of the temperature's logarithm, and its evidence by Laplace's approximation.
    told = float(posterior.information[0, 0]) * posterior.blocks.width**2
    log, spread = np.log(start.slope), LIKELY**2
    changed = _likelihood(rows, start.least, start.slope) - 0.5 * log**2 / spread
    changed -= 0.5 * np.log1p(spread * max(told, TOLD))
    changed += np.logaddexp(np.log(CALIBRATED), np.log1p(-CALIBRATED) + posterior.log_odds)
    odds = np.log1p(-UNTOUCHED) - np.log(UNTOUCHED) + changed - _likelihood(rows, start.least, 1.0)
    untouched = float(expit(-odds))
    # A score of 0 was taken for a small one above: left as it is, it would call impossible what has happened.
    possible = bool((rows.score[np.arange(len(rows.code)), rows.code] > 0).all())
    alone = possible and untouched > ALONE
    return replace(
        start,
        blocks=posterior.blocks,
        draws=draws,
        bent=posterior.chance,
        untouched=1.0 if alone else untouched,
        doubt=float((told + 1 / spread) ** -0.5),
        floor=_floor(rows) if alone else NEAREST,
    )


def _floor(rows: Simplex) -> float:
    """Return the least probability of a class where the scores stay as they are and exclude no label."""
    excluding = float(rows.weight[(rows.score <= 0).any(axis=1)].sum())
    other = float(np.min(rows.score, where=rows.score > 0, initial=1.0))
    return certainty_bound(excluding, other) / (rows.n_classes - 1)


def _tempered(rows: Simplex, start: Softmax) -> Simplex:
    """Return rows at a temperature, in a random order that rounding and that of classes do not change."""
    mixed = np.einsum("ij,ij->i", rows.score, rows.score) * MIXED % 1.0
    rows = rows[np.argsort(mixed, kind="stable")]
    return replace(rows, score=start.tempered(rows.score))


def _kind(rows: Simplex) -> DTypeLike:
    return np.float64 if rows.score.size <= EXACT else np.float32


def fit_vector(rows: Simplex) -> Softmax:
    """Shift and stretch the log probability of each class."""
    return _fit_sizes(rows, STRETCHED)


def fit_matrix(rows: Simplex) -> Softmax:
    """Multiply log probabilities with a matrix; with many classes its diagonal alone."""
    return _fit_sizes(
        rows, STRETCHED | ({"matrix": ACROSS / rows.n_classes} if rows.n_classes <= FEW else {})
    )


def _fit_sizes(rows: Simplex, sizes: dict[str, float]) -> Softmax:
    """Take the mode of some blocks of known sizes, as structured scaling does."""
    start = fit_temperature(rows)
    tempered = _tempered(rows, start)
    blocks = Blocks.of(tempered)
    return replace(
        start, blocks=blocks, draws=penalised(tempered, blocks, sizes, _kind(rows))[None], bent=1.0
    )


def fit_temperature(rows: Simplex) -> Softmax:
    """Divide log probabilities by one number: the likeliest, its logarithm normal around 0."""
    start = Softmax(rows.n_classes, 1.0, least_of(rows.score, WITHIN))
    # The order of the rows is random: the first of them locate the optimum, and a step or two on all end it.
    for some in (rows[: max(1, CHUNK // rows.n_classes)], rows):
        for _ in range(NEWTON_STEPS):
            each = slope_derivatives(start, some.score, some.code)
            slope = float(newton_slope(start.slope, *(some.weight @ derivative for derivative in each)))
            start, step = replace(start, slope=slope), abs(slope / start.slope - 1)
            if step < 1e-8:
                break
    return start


def newton_slope(slope: float, gradient: Array, curvature: Array) -> Array:
    """Return the slope after a Newton step of its logarithm, given sums of `slope_derivatives` over rows."""
    first = slope * gradient - np.log(slope) / TEMPERATURES**2
    step = first / (slope * slope * curvature + 1 / TEMPERATURES**2)
    return np.asarray(slope * np.exp(np.clip(step, -0.5, 0.5)))


def slope_derivatives(start: Softmax, score: Array, code: Array) -> tuple[Array, Array]:
    """Return for each row the derivative of its log likelihood by the slope, and minus the second one."""
    first, second = np.empty(len(score)), np.empty(len(score))
    for part in start.parts(len(score)):
        log = np.log(np.maximum(score[part].astype(np.float64, copy=False), start.least))
        p = softmax(start.slope * log)
        mean = np.einsum("ij,ij->i", p, log)
        first[part] = log[np.arange(len(log)), code[part]] - mean
        second[part] = np.einsum("ij,ij,ij->i", p, log, log) - mean * mean
    return first, np.maximum(second, 0.0)


def _likelihood(rows: Simplex, least: float, slope: float) -> float:
    """Return the log likelihood of log probabilities that are multiplied by a number."""
    total, step = 0.0, max(1, CHUNK // rows.n_classes)
    for first in range(0, len(rows.code), step):
        part = slice(first, first + step)
        z = slope * np.log(np.maximum(rows.score[part], least))
        z -= z.max(axis=1, keepdims=True)
        own = z[np.arange(len(z)), rows.code[part]]
        total += float(rows.weight[part] @ (own - np.log(np.exp(z, out=z).sum(axis=1))))
    return total

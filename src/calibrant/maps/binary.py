"""Calibration maps of a single score, by name.

Each map is fitted to the numbers of rows and positive outcomes at the distinct scores. The methods are
described in docs/methods/calibrators.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.estimators.density import Density
from calibrant.estimators.isotonic import isotonic as increasing
from calibrant.maps.forms import Bounded, Form, Formula, LookupTable, VennAbersPair
from calibrant.maps.venn_abers import venn_abers
from calibrant.parallel import cached_property
from calibrant.posterior.log_odds import LogOddsCells, LogOddsMixture, model_average, smooth_average
from calibrant.posterior.log_odds.cells import STEP, certainty_bound, expit, log_odds, nearest, softplus
from calibrant.posterior.log_odds.components import features, modes
from calibrant.posterior.log_odds.model_average import EDGE, ScoreDeviations, divide_by_design_effect
from calibrant.posterior.score_effects import FEW_ROWS, has_few_scores
from calibrant.score_data import Array, Residuals, ScoreData
from calibrant.score_data.residuals import TIED

# Number of quantile bins, by convention.
BINS = 15
# Tolerance for ties of scores and of frequencies.
TIE_TOLERANCE = 1e-12
# A position this close to a bin edge is on the edge.
ROUNDING = 1e-9
# Largest number of distinct scores with effects of their own, which bounds the cost.
MAX_SCORE_EFFECTS = 1000
# Prior standard deviation of coefficients, which matters for separable data only.
COEFFICIENT_SD = 20.0
# Shifts beyond this would move all log-odds, which are at most 35, to the other side of 0 by far.
MAX_SHIFT = 100.0
# Evidence (nats) that effects of repeated scores, and a map that decreases somewhere, require.
MIN_EVIDENCE = 2.0


@dataclass(frozen=True, eq=False)
class BinaryProblem:
    """A single score and its outcomes, with cached quantities that several maps need."""

    data: ScoreData
    #: Residuals of an equivalent number of independent rows, if rows are in clusters.
    independent_rows: Residuals | None = None

    @cached_property
    def observed(self) -> Residuals:
        """Mass and residual at each distinct score."""
        residuals = Residuals.of(self.data)
        return residuals[residuals.mass > 0]

    @cached_property
    def independent(self) -> Residuals:
        """Mass and residual at each distinct score, of independent rows; `observed` without clusters."""
        residuals = self.independent_rows
        return self.observed if residuals is None else residuals[residuals.mass > 0]

    @cached_property
    def repeated(self) -> Array:
        """Whether each step has several rows with one score; all False if there are few distinct scores."""
        observed = self.independent
        scores = observed.mass.size
        # Small groups are often repeated measurements of one case, which do not recur.
        small = FEW_ROWS * scores > observed.n
        if has_few_scores(observed) or small or scores > MAX_SCORE_EFFECTS:
            return np.zeros(observed.mass.shape, dtype=bool)
        return observed.single_score & (observed.mass > 1)

    @cached_property
    def cells(self) -> LogOddsCells:
        """The distinct scores in log-odds."""
        return LogOddsCells.of(self.observed, most=self.observed.mass.size)

    @cached_property
    def average(self) -> LogOddsMixture:
        """The Bayesian model average over calibration maps."""
        return model_average(self.independent)


def identity(problem: BinaryProblem) -> Form:
    """Return the identity map."""
    return Formula()


def temperature(problem: BinaryProblem) -> Form:
    """Divide the log-odds by the maximum likelihood temperature."""
    cells = problem.cells
    (slope,) = _maximum_likelihood(cells, cells.x[:, None])
    return Formula(slope=float(slope), least=cells.least)


def intercept(problem: BinaryProblem) -> Form:
    """Shift the log-odds so that the mean probability is the frequency (recalibration in the large)."""
    from scipy.optimize import brentq

    cells, positive = problem.cells, float(problem.cells.successes.sum())
    # If all outcomes are the same, the likeliest shift is infinite; otherwise a prior would move the mean.
    separable = not ROUNDING < positive / cells.n < 1 - ROUNDING
    precision = COEFFICIENT_SD**-2 if separable else 0.0

    def gradient(shift: float) -> float:
        return positive - float(cells.trials @ expit(cells.x + shift)) - precision * shift

    return Formula(float(brentq(gradient, -MAX_SHIFT, MAX_SHIFT)), least=cells.least)


def affine(problem: BinaryProblem) -> Form:
    """Fit a linear function of the log-odds (logistic calibration)."""
    cells = problem.cells
    shift, slope = _maximum_likelihood(cells, features(cells.x)[:, :2])
    return Formula(float(shift), float(slope), least=cells.least)


def platt(problem: BinaryProblem) -> Form:
    """Fit a linear function of the log-odds to the smoothed targets of Platt (1999)."""
    cells = problem.cells
    positive, n = float(cells.successes.sum()), cells.n
    yes, no = (positive + 1) / (positive + 2), 1 / (n - positive + 2)
    softened = cells.successes * yes + (cells.trials - cells.successes) * no
    soft = LogOddsCells(cells.x, cells.trials, softened, cells.least)
    shift, slope = _maximum_likelihood(soft, features(cells.x)[:, :2])
    return Formula(float(shift), float(slope), least=cells.least)


def beta(problem: BinaryProblem) -> Form:
    """Fit logit q = a ln p - b ln(1 - p) + c with a, b >= 0 (Kull, Silva Filho and Flach 2017)."""
    cells = problem.cells
    # Fit each subset of non-zero slopes, and select the best fit with non-negative slopes.
    basis = np.stack([-softplus(-cells.x), softplus(cells.x), np.ones(cells.x.size)], axis=1)
    best, (a, b, c) = -np.inf, np.zeros(3)
    for free in ([0, 1, 2], [0, 2], [1, 2], [2]):
        coefficients = np.zeros(3)
        coefficients[free] = _maximum_likelihood(cells, basis[:, free])
        value = float(cells.likelihood(basis @ coefficients))
        if (coefficients[:2] >= 0).all() and value > best:
            best, (a, b, c) = value, coefficients
    # ln p = (ln p(1 - p) + x) / 2 and ln(1 - p) = (ln p(1 - p) - x) / 2, with x the log-odds.
    curvature = (a - b) / 2
    return Formula(float(c - curvature * np.log(4)), float(a + b) / 2, float(curvature), least=cells.least)


def quadratic(problem: BinaryProblem) -> Form:
    """Fit a quadratic function of the log-odds."""
    cells = problem.cells
    basis = np.stack([np.ones(cells.x.size), cells.x, cells.x**2], axis=1)
    shift, slope, square = _maximum_likelihood(cells, basis)
    return Formula(float(shift), float(slope), square=float(square), least=cells.least)


def isotonic(problem: BinaryProblem) -> Form:
    """Fit isotonic regression, with linear interpolation as in scikit-learn."""
    observed = problem.observed
    return _lines(observed.score, increasing(observed.frequency, observed.mass))


def isotonic_safe(problem: BinaryProblem) -> Form:
    """Fit isotonic regression with half a row of either outcome added to each level, to avoid 0 and 1."""
    observed = problem.observed
    level = increasing(observed.frequency, observed.mass)
    step = np.cumsum(np.diff(level, prepend=level[0]) > TIE_TOLERANCE)
    mass = np.bincount(step, observed.mass)
    yes = np.bincount(step, observed.mass * observed.frequency)
    safe = ((yes + 0.5) / (mass + 1))[step]
    return _lines(observed.score, increasing(safe, observed.mass))


def by_venn_abers(problem: BinaryProblem) -> Form:
    """Fit a Venn-Abers predictor: isotonic regression with a new row of outcome 0, and of outcome 1."""
    observed = problem.observed
    low, high = (
        np.clip(level, 0.0, 1.0) for level in venn_abers(observed.mass, observed.mass * observed.frequency)
    )
    # For each level, the first score of the lower table and the last score of the upper table are enough.
    first, last = np.append(True, np.diff(low) != 0), np.append(np.diff(high) != 0, True)
    # Outside the range of the scores the new row is alone. The tolerance allows for rounding of mean scores.
    at, level = np.append(-1.0, observed.score[first] - TIE_TOLERANCE), np.append(0.0, low[first])
    below = LookupTable(at, level, "score", "from")
    at, level = np.append(observed.score[last] + TIE_TOLERANCE, 2.0), np.append(high[last], 1.0)
    return VennAbersPair(below, LookupTable(at, level, "score", "upto"))


def histogram(problem: BinaryProblem) -> Form:
    """Fit histogram binning with quantile bins."""
    observed = problem.observed
    running = np.cumsum(observed.mass)
    place = (running - observed.mass / 2) / running[-1] * BINS
    # A score on an edge belongs to the outer bin, so that complementary scores have complementary bins.
    outer = np.where(place < BINS / 2, -ROUNDING, ROUNDING)
    bins = np.clip(np.floor(place + outer).astype(np.intp), 0, BINS - 1)
    occupied, first = np.unique(bins, return_index=True)
    yes, mass = (
        np.bincount(bins, row_weights)[occupied]
        for row_weights in (observed.mass * observed.frequency, observed.mass)
    )
    edge = np.append(0.0, (observed.score[first[1:]] + observed.score[first[1:] - 1]) / 2)
    return LookupTable(edge, yes / mass, "score", "from")


def auto(problem: BinaryProblem, monotone: bool | None = None) -> Form:
    """Fit the model average, or the identity if the average is more likely to be worse."""
    form = average_or_identity(problem.independent, problem.average, monotone)
    if monotone or not problem.repeated.any():
        return form
    return with_score_effects(problem.independent, problem.repeated, form, monotone)


def spline(problem: BinaryProblem, monotone: bool | None = False) -> Form:
    """Fit a smooth function of the log-odds."""
    return tabulate_average(smooth_average(problem.independent), monotone)


def density(problem: BinaryProblem) -> Form:
    """Fit the reliability curve of kernel density estimates, extrapolated as a constant."""
    fit = Density().fit_shared_bandwidth(problem.data)
    known = np.isfinite(fit.frequency)
    return LookupTable(fit.score[known], np.clip(fit.frequency[known], 0.0, 1.0), "score", "line")


def average_or_identity(observed: Residuals, mixture: LogOddsMixture, monotone: bool | None = None) -> Form:
    """Tabulate the model average, or return the bounded identity if that is more likely to be better."""
    # Unlike the average, the identity keeps scores of 0 and 1, which would exclude observed outcomes.
    excluded = ((observed.score <= 0) & (observed.frequency > 0)) | (
        (observed.score >= 1) & (observed.frequency < 1)
    )
    if mixture.probability_worse > 0.5 and not excluded.any():
        return bounded_identity(observed)
    return tabulate_average(mixture, monotone)


def bounded_identity(observed: Residuals) -> Bounded:
    """Return the identity, with scores bounded away from 0 and 1 as far as the number of rows requires."""
    away = np.minimum(observed.score, 1 - observed.score)
    other = float(away.min(where=away > 0, initial=0.5))
    ends = (observed.mass.sum(where=end) for end in (observed.score <= 0, observed.score >= 1))
    # Round to multiples of the step, so that complementary scores have complementary bounds.
    low, high = (np.rint(certainty_bound(float(rows), other) / STEP) * STEP for rows in ends)
    return Bounded(float(low), float(1 - high))


def with_score_effects(
    observed: Residuals, repeated: Array, form: Form, monotone: bool | None = None
) -> Form:
    """Add score effects for repeated scores if their log Bayes factor exceeds `MIN_EVIDENCE`."""
    steps = observed[repeated]
    effects = ScoreDeviations.of(steps, form.probability(steps.score))
    if effects.log_bayes_factor <= MIN_EVIDENCE:
        return form
    # Refit the smooth map with the variance of the score effects, which are not part of its shape.
    rows = divide_by_design_effect(observed, effects.correlation)
    form = average_or_identity(rows, model_average(rows), monotone)
    known = ScoreDeviations.of(steps, form.probability(steps.score)).probability
    known = np.clip(known, EDGE, 1 - EDGE)
    return with_values_at(form, steps.score, np.log(known) - np.log1p(-known), nearest(observed.score))


def with_values_at(form: Form, score: Array, value: Array, least: float) -> LookupTable:
    """Return a map with given log-odds `value` at some scores, up to rounding of the score."""
    if isinstance(form, Bounded):
        at = base = log_odds(np.array([form.low, form.high]), 0.0)
    else:
        assert isinstance(form, LookupTable)
        at, base = form.at, form.value
    x, inside = log_odds(score, least), np.clip(score, least, 1 - least)
    # Half-width of the step around each score: the tolerance for ties, and a few units in the last place.
    half = TIED / np.maximum(inside, 1 - inside) + 4 * STEP / np.minimum(inside, 1 - inside)
    gap = np.diff(x, prepend=-np.inf, append=np.inf) / 4
    half = np.minimum(half, np.minimum(gap[:-1], gap[1:]))
    steps = np.stack([x - 2 * half, x - half, x + half, x + 2 * half], axis=1)
    values = np.stack(
        [np.interp(steps[:, 0], at, base), value, value, np.interp(steps[:, 3], at, base)], axis=1
    )
    # Drop the points of the map within a step.
    above = np.minimum(np.searchsorted(x, at), x.size - 1)
    rest = np.ones(at.shape, dtype=bool)
    for neighbour in (above, np.maximum(above - 1, 0)):
        rest &= np.abs(at - x[neighbour]) > 2 * half[neighbour]
    places = np.concatenate([at[rest], steps.ravel()])
    order = np.argsort(places, kind="stable")
    return LookupTable(places[order], np.concatenate([base[rest], values.ravel()])[order], least=least)


def tabulate_average(mixture: LogOddsMixture, monotone: bool | None = None) -> Form:
    """Tabulate a model average; increasing if `monotone`, or by default if that loses little likelihood."""
    probability = np.clip(mixture.probability, EDGE, 1 - EDGE)
    if monotone is not False:
        cells = mixture.cells
        beyond = (mixture.at.size - cells.x.size) // 2
        mass = np.pad(cells.trials, beyond, constant_values=1e-6)
        flat = np.clip(increasing(probability, mass), EDGE, 1 - EDGE)
        inner = slice(beyond, beyond + cells.x.size)
        logits = [np.log(q[inner]) - np.log1p(-q[inner]) for q in (probability, flat)]
        bent, straight = (float(cells.likelihood(each)) for each in logits)
        if monotone or straight > bent - MIN_EVIDENCE:
            probability = flat
    return LookupTable(mixture.at, np.log(probability) - np.log1p(-probability), least=mixture.cells.least)


def _maximum_likelihood(cells: LogOddsCells, basis: Array) -> Array:
    """Return the maximum likelihood coefficients of a logistic regression on a basis."""
    size = np.sqrt((basis**2 * cells.trials[:, None]).sum(axis=0) / cells.n)
    scale = COEFFICIENT_SD / np.maximum(size, 1e-9)
    mode, *_ = modes(cells, np.zeros((1, cells.x.size)), (basis * scale)[None], np.zeros((1, basis.shape[1])))
    return mode[0] * scale


def _lines(score: Array, level: Array) -> LookupTable:
    """Return a table that interpolates linearly between the corners of steps."""
    changed = np.diff(level) != 0
    corner = np.append(True, changed) | np.append(changed, True)
    return LookupTable(score[corner], level[corner], "score", "line")

"""Maps of one score, by name: each is fitted to trials and successes at the scores that occur."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.compiled.cached import cached_property
from calibrant.estimators import Density
from calibrant.maps.forms import Bounded, Form, Formula, Pair, Table
from calibrant.maps.venn_abers import venn_abers
from calibrant.posterior.log_odds import Mixture, OddsCells, model_average, smooth_average
from calibrant.posterior.log_odds.cells import STEP, certainty_bound, log_odds, nearest, softplus
from calibrant.posterior.log_odds.components import features, modes
from calibrant.posterior.log_odds.model_average import EDGE, ScoreDeviations, deflated
from calibrant.posterior.score_effects import is_few
from calibrant.score_data import Array, Residuals, ScoreData
from calibrant.score_data.residuals import TIED

# A prior so wide that it matters only where data are separable and the best slope would be infinite.
WIDE = 20.0
# Bins of equal mass.
BINS = 15
# Scores that differ by less are one, and so are frequencies.
BITS = 1e-12
# A place among bins this close to an edge is on it.
ROUNDING = 1e-9
# What the monotone projection of a table may cost, in units of log likelihood.
BEND = 2.0
# Distinct scores that may have deviations of their own, and rows that each has on average at least: fewer are
# often repeated measurements of one case, which do not come again.
MOST_REPEATED, LEAST_ROWS = 1000, 10.0


@dataclass(frozen=True, eq=False)
class Problem:
    """One score and its outcomes; what several maps need is computed once."""

    data: ScoreData

    @property
    def evidence(self) -> ScoreData:
        """The same as `data`, under its former name."""
        return self.data

    @cached_property
    def held(self) -> Residuals:
        """Rows and outcomes at each score that occurs."""
        residuals = Residuals.of(self.data)
        return residuals[residuals.mass > 0]

    @cached_property
    def repeated(self) -> Array:
        """Whether the rows of each step share one score, and are more than one; never if scores are few."""
        held = self.held
        if is_few(held) or LEAST_ROWS * held.mass.size > held.n or held.mass.size > MOST_REPEATED:
            return np.zeros(held.mass.shape, dtype=bool)
        return held.one_score & (held.mass > 1)

    @cached_property
    def cells(self) -> OddsCells:
        """The same in log-odds."""
        return OddsCells.of(self.held, most=self.held.mass.size)

    @cached_property
    def average(self) -> Mixture:
        """The average over maps."""
        return model_average(self.held)


def identity(problem: Problem) -> Form:
    """Leave the scores as they are."""
    return Formula()


def temperature(problem: Problem) -> Form:
    """Divide the log-odds by the likeliest temperature."""
    cells = problem.cells
    (slope,) = _likeliest(cells, cells.x[:, None])
    return Formula(slope=float(slope), least=cells.least)


def affine(problem: Problem) -> Form:
    """Shift and stretch the log-odds."""
    cells = problem.cells
    shift, slope = _likeliest(cells, features(cells.x)[:, :2])
    return Formula(float(shift), float(slope), least=cells.least)


def platt(problem: Problem) -> Form:
    """Shift and stretch the log-odds, with outcomes a little less sure than 0 and 1, as Platt (1999) does."""
    cells = problem.cells
    positive, n = float(cells.successes.sum()), cells.n
    yes, no = (positive + 1) / (positive + 2), 1 / (n - positive + 2)
    softened = cells.successes * yes + (cells.trials - cells.successes) * no
    soft = OddsCells(cells.x, cells.trials, softened, cells.least)
    shift, slope = _likeliest(soft, features(cells.x)[:, :2])
    return Formula(float(shift), float(slope), least=cells.least)


def beta(problem: Problem) -> Form:
    """Take logit q = a ln p - b ln(1 - p) + c with a and b not below 0 (Kull, Silva Filho and Flach 2017)."""
    cells = problem.cells
    # The likeliest with each set of slopes that are not 0: the best of those that fall nowhere.
    basis = np.stack([-softplus(-cells.x), softplus(cells.x), np.ones(cells.x.size)], axis=1)
    best, (a, b, c) = -np.inf, np.zeros(3)
    for free in ([0, 1, 2], [0, 2], [1, 2], [2]):
        found = np.zeros(3)
        found[free] = _likeliest(cells, basis[:, free])
        value = float(cells.likelihood(basis @ found))
        if (found[:2] >= 0).all() and value > best:
            best, (a, b, c) = value, found
    # ln p and ln(1 - p) are half of ln p(1 - p), plus and minus half of the log-odds.
    curvature = (a - b) / 2
    return Formula(float(c - curvature * np.log(4)), float(a + b) / 2, float(curvature), least=cells.least)


def quadratic(problem: Problem) -> Form:
    """Take a parabola in the log-odds."""
    cells = problem.cells
    basis = np.stack([np.ones(cells.x.size), cells.x, cells.x**2], axis=1)
    shift, slope, square = _likeliest(cells, basis)
    return Formula(float(shift), float(slope), square=float(square), least=cells.least)


def isotonic(problem: Problem) -> Form:
    """Take the nearest increasing frequencies, with lines between them as scikit-learn draws them."""
    held = problem.held
    return _lines(held.score, _increasing(held.frequency, held.mass))


def isotonic_safe(problem: Problem) -> Form:
    """Take increasing frequencies that are never 0 or 1: a level counts half a row more of either outcome."""
    held = problem.held
    level = _increasing(held.frequency, held.mass)
    step = np.cumsum(np.diff(level, prepend=level[0]) > BITS)
    mass = np.bincount(step, held.mass)
    yes = np.bincount(step, held.mass * held.frequency)
    safe = ((yes + 0.5) / (mass + 1))[step]
    return _lines(held.score, _increasing(safe, held.mass))


def by_venn_abers(problem: Problem) -> Form:
    """Take the two increasing frequencies that a new row of outcome 0 and one of outcome 1 would leave."""
    held = problem.held
    low, high = (np.clip(level, 0.0, 1.0) for level in venn_abers(held.mass, held.mass * held.frequency))
    # Where a level stays the same, the first score of it is enough, or the last.
    first, last = np.append(True, np.diff(low) != 0), np.append(np.diff(high) != 0, True)
    # Beyond all scores the new row is by itself. A mean of equal scores may be off by its last bits.
    at, level = np.append(-1.0, held.score[first] - BITS), np.append(0.0, low[first])
    below = Table(at, level, "score", "from")
    at, level = np.append(held.score[last] + BITS, 2.0), np.append(high[last], 1.0)
    return Pair(below, Table(at, level, "score", "upto"))


def histogram(problem: Problem) -> Form:
    """Take the frequency of bins of equal mass."""
    held = problem.held
    running = np.cumsum(held.mass)
    place = (running - held.mass / 2) / running[-1] * BINS
    # On the edge of two bins the outer one is taken: for the complement of the scores that is the same one.
    outer = np.where(place < BINS / 2, -ROUNDING, ROUNDING)
    bins = np.clip(np.floor(place + outer).astype(np.intp), 0, BINS - 1)
    some, first = np.unique(bins, return_index=True)
    yes, mass = (np.bincount(bins, part)[some] for part in (held.mass * held.frequency, held.mass))
    edge = np.append(0.0, (held.score[first[1:]] + held.score[first[1:] - 1]) / 2)
    return Table(edge, yes / mass, "score", "from")


def auto(problem: Problem, monotone: bool | None = None) -> Form:
    """Take the average over maps, or leave the scores alone where it is likelier to harm."""
    form = improved(problem.held, problem.average, monotone)
    if monotone or not problem.repeated.any():
        return form
    return deviating(problem.held, problem.repeated, form, monotone)


def spline(problem: Problem, monotone: bool | None = False) -> Form:
    """Take what is smooth in the log-odds."""
    return tabulated(smooth_average(problem.held), monotone)


def density(problem: Problem) -> Form:
    """Take the reliability curve of kernel densities; beyond its ends it goes on as there."""
    fit = Density().fit_alike(problem.data)
    known = np.isfinite(fit.frequency)
    return Table(fit.score[known], np.clip(fit.frequency[known], 0.0, 1.0), "score", "line")


def improved(held: Residuals, mixture: Mixture, monotone: bool | None = None) -> Form:
    """Read the average off, or leave the scores as they are where it is likelier to harm than to help."""
    # The average takes 0 and 1 for something less: left as they are, they would exclude what has happened.
    excluded = ((held.score <= 0) & (held.frequency > 0)) | ((held.score >= 1) & (held.frequency < 1))
    if mixture.worse > 0.5 and not excluded.any():
        return bounded(held)
    return tabulated(mixture, monotone)


def bounded(held: Residuals) -> Bounded:
    """Leave the scores as they are, but for those nearer to 0 or 1 than the rows can tell."""
    away = np.minimum(held.score, 1 - held.score)
    other = float(away.min(where=away > 0, initial=0.5))
    ends = (held.mass.sum(where=end) for end in (held.score <= 0, held.score >= 1))
    # Multiples of the step, so that the complement of the scores has the complements of these bounds.
    low, high = (np.rint(certainty_bound(float(rows), other) / STEP) * STEP for rows in ends)
    return Bounded(float(low), float(1 - high))


def deviating(held: Residuals, repeated: Array, form: Form, monotone: bool | None = None) -> Form:
    """Give repeated scores deviations of their own where the evidence for these exceeds `BEND`."""
    steps = held[repeated]
    effects = ScoreDeviations.of(steps, form.probability(steps.score))
    if effects.log_bayes_factor <= BEND:
        return form
    # Deviations of single scores are no evidence for a bend of the map: it is fitted once more without them.
    rows = deflated(held, effects.correlation)
    form = improved(rows, model_average(rows), monotone)
    known = ScoreDeviations.of(steps, form.probability(steps.score)).probability
    known = np.clip(known, EDGE, 1 - EDGE)
    return with_scores(form, steps.score, np.log(known) - np.log1p(-known), nearest(held.score))


def with_scores(form: Form, score: Array, value: Array, least: float) -> Table:
    """Return a map with log-odds of its own at some scores, and at those that equal them up to rounding."""
    if isinstance(form, Bounded):
        at = base = log_odds(np.array([form.low, form.high]), 0.0)
    else:
        assert isinstance(form, Table)
        at, base = form.at, form.value
    x, inside = log_odds(score, least), np.clip(score, least, 1 - least)
    # Half the width of a step around each score: that of the rule for ties, and some bits of the score.
    half = TIED / np.maximum(inside, 1 - inside) + 4 * STEP / np.minimum(inside, 1 - inside)
    gap = np.diff(x, prepend=-np.inf, append=np.inf) / 4
    half = np.minimum(half, np.minimum(gap[:-1], gap[1:]))
    steps = np.stack([x - 2 * half, x - half, x + half, x + 2 * half], axis=1)
    values = np.stack(
        [np.interp(steps[:, 0], at, base), value, value, np.interp(steps[:, 3], at, base)], axis=1
    )
    # Places of the map within a step are left out.
    above = np.minimum(np.searchsorted(x, at), x.size - 1)
    rest = np.ones(at.shape, dtype=bool)
    for neighbour in (above, np.maximum(above - 1, 0)):
        rest &= np.abs(at - x[neighbour]) > 2 * half[neighbour]
    places = np.concatenate([at[rest], steps.ravel()])
    order = np.argsort(places, kind="stable")
    return Table(places[order], np.concatenate([base[rest], values.ravel()])[order], least=least)


def tabulated(mixture: Mixture, monotone: bool | None = None) -> Form:
    """Read an average off as a table; increasing if that is asked for or if the data do not object."""
    probability = np.clip(mixture.probability, EDGE, 1 - EDGE)
    if monotone is not False:
        cells = mixture.cells
        beyond = (mixture.at.size - cells.x.size) // 2
        mass = np.pad(cells.trials, beyond, constant_values=1e-6)
        flat = np.clip(_increasing(probability, mass), EDGE, 1 - EDGE)
        inner = slice(beyond, beyond + cells.x.size)
        odds = [np.log(q[inner]) - np.log1p(-q[inner]) for q in (probability, flat)]
        bent, straight = (float(cells.likelihood(each)) for each in odds)
        if monotone or straight > bent - BEND:
            probability = flat
    return Table(mixture.at, np.log(probability) - np.log1p(-probability), least=mixture.cells.least)


def _likeliest(cells: OddsCells, basis: Array) -> Array:
    """Return the coefficients of the likeliest member with this basis."""
    scale = WIDE / np.maximum(np.sqrt((basis**2 * cells.trials[:, None]).sum(axis=0) / cells.n), 1e-9)
    mode, *_ = modes(cells, np.zeros((1, cells.x.size)), (basis * scale)[None], np.zeros((1, basis.shape[1])))
    return mode[0] * scale


def _increasing(values: Array, mass: Array) -> Array:
    from scipy.optimize import isotonic_regression

    return np.asarray(isotonic_regression(values, weights=mass).x)


def _lines(score: Array, level: Array) -> Table:
    """Return lines through the corners of steps."""
    changed = np.diff(level) != 0
    corner = np.append(True, changed) | np.append(changed, True)
    return Table(score[corner], level[corner], "score", "line")

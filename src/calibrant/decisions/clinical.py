"""What medicine reads of a model: calibration intercept and slope, observed over expected, E50 and E90.

Intercept and slope are of a logistic regression of the outcome on the log-odds of the score: the intercept
with the slope fixed at 1 ("calibration in the large"), the slope with an intercept of its own. Their
intervals are Wald's. The variance is the larger of two: what the fitted line says, and the sandwich of rows,
or of clusters, which holds where no such line is true. Observed over expected has its interval on the log
scale, by the spread of outcome minus ratio times score. E50 and E90 are the median and the 90 % quantile of
|frequency - score| over the rows, by the posterior mean that the calibration error is from, with quantiles of
its draws. The mean of |frequency - score|, which medicine calls ICI, is the calibration error itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from calibrant import inputs
from calibrant.compiled.blas import one_blas_thread
from calibrant.curves.band import clopper_pearson
from calibrant.evidence import Array, Cells, Evidence
from calibrant.evidence.clusters import are_alone, effective_clusters
from calibrant.inference.measured import Measured, Within, interval_deviate
from calibrant.inference.streams import stream
from calibrant.inputs import ROUNDING, InputError, Serializable
from calibrant.inputs.codec import Amount, Bounds, Level
from calibrant.inputs.wording import count, percent
from calibrant.posterior import posterior_of
from calibrant.posterior.odds.cells import expit, log_odds, nearest, softplus
from calibrant.questions import Question

# Draws of the posterior, and the quantiles of the gap that are read.
DRAWS, MIDDLE, LARGE = 200, 0.5, 0.9
# Newton's steps at most: over cells, for a place to start from, and over rows. A step that moves no log-odds
# by more than NEAR is the last, for the next would move them by its square; one by less than SURE climbs.
OVER_CELLS, OVER_ROWS, NEAR, SURE = 8, 60, 1e-7, 0.1
# Rows looked at together, which a processor holds at hand; and the furthest that a ratio may be off, in logs.
BLOCK, FURTHEST = 1 << 14, 500.0


@dataclass(frozen=True, repr=False)
class Clinical(Serializable):
    """What medicine reads of the score of one class, or of pairs.

    Attributes
    ----------
    observed, expected : float
        How many rows have the outcome, and the sum of the scores; under weights, of the effective number of
        rows. Ratio, intercept and slope are likelihood quantities of these outcomes: unlike the calibration
        error, E50 and E90, they are not shrunk by a posterior.
    ratio : Measured or None
        Observed over expected; None where every score is 0.
    intercept : Measured or None
        Calibration intercept, with the slope fixed at 1; above 0 where scores are too low. None where all
        outcomes are the same.
    slope : Measured or None
        Calibration slope; below 1 where scores are too extreme. None where outcomes are the same or scores
        are, and where scores separate the outcomes, for then it has no bound.
    e50, e90 : Measured
        Median and 90 % quantile of |frequency - score| over the rows.
    level : float
        Level of the intervals.
    missing : str
        Why something is None.
    clipped, least : float
        Rows with a score of 0 or 1; and how far from there intercept and slope take them to be, as the
        calibration maps do: half as far as the nearest other score.
    from_cells : bool
        Whether intercept and slope are of a sketch: by the mean scores of its cells.
    """

    observed: Amount
    expected: Amount
    ratio: Annotated[Measured, Within(0)] | None
    intercept: Annotated[Measured, Within()] | None
    slope: Annotated[Measured, Within()] | None
    e50: Annotated[Measured, Within(0, 1)]
    e90: Annotated[Measured, Within(0, 1)]
    level: Level
    missing: str = ""
    clipped: Amount = 0.0
    least: Annotated[float, Bounds(0, 0.5)] = 0.0
    from_cells: bool = False

    def __repr__(self) -> str:
        parts = (("O/E", self.ratio), ("intercept", self.intercept), ("slope", self.slope))
        told = (f"{name} {'unknown' if one is None else f'{one.value:z.3f}'}" for name, one in parts)
        return f"Clinical({', '.join(told)})"

    def __str__(self) -> str:
        parts = (("calibration intercept", self.intercept), ("slope", self.slope), ("O/E", self.ratio))
        told = [f"{name} {'unknown' if one is None else f'{one:.3f}'}" for name, one in parts]
        told[-1] += f" (observed {count(round(self.observed, 1))}, expected {count(round(self.expected, 1))})"
        cells = " (intercept and slope from cells)" if self.from_cells else ""
        text = f"{', '.join(told)}; E50 {self.e50:.4f}, E90 {self.e90:.4f} at {percent(self.level)}{cells}"
        return text[0].upper() + text[1:] + (f"; {self.missing}" if self.missing else "")

    def check_fields(self) -> None:
        """Refuse a missing number without a reason, and a reason where none is missing."""
        if bool(self.missing) != (None in (self.ratio, self.intercept, self.slope)):
            raise InputError("missing", "say why a number is missing, where one is", self.missing)


@one_blas_thread()
def clinical_of(question: Question, *, level: float = 0.95, seed: int = 0) -> Clinical:
    """Read a question about one class, or about pairs.

    >>> from calibrant.inputs import predictions
    >>> from calibrant.questions import named
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(2000)
    >>> question = Question.of(predictions(rng.random(2000) < score**2, score), named("class"))
    >>> clinical_of(question)
    Clinical(O/E 0.662, intercept -1.054, slope 1.317)
    """
    level = inputs.level(level)
    rows = _Rows.of(question)
    reach = interval_deviate(level, rows.clusters)
    observed, expected = (
        float(rows.weight @ part / rows.weight.sum()) for part in (rows.outcome, rows.score)
    )
    ratio, intercept, slope = None, None, None
    missing = []
    if expected > 0:
        ratio = rows.ratio(observed, expected, level)
    else:
        missing.append("no O/E, since every score is 0")
    if why := rows.one_sided():
        missing.append(f"no intercept and no slope, since {why}")
    else:
        intercept = _around(_fitted(rows, question, slope=False), reach)
        why = rows.unbounded()
        slope = None if why else _around(_fitted(rows, question, slope=True), reach)
        if slope is None:
            missing.append(f"no slope, since {why or 'scores all but separate the outcomes'}")
    e50, e90 = _gaps(question, level, seed)
    return Clinical(
        rows.n * observed, rows.n * expected, ratio, intercept, slope, e50, e90, level, "; ".join(missing),
        rows.clipped, rows.least, rows.from_cells,
    )  # fmt: skip


def _around(fitted: tuple[float, float] | None, reach: float) -> Measured | None:
    """Return a coefficient with its interval."""
    if fitted is None:
        return None
    centre, far = fitted[0], reach * float(np.sqrt(fitted[1]))
    return Measured(centre, centre - far, centre + far)


class _Sums(NamedTuple):
    """What rows say about a line: gradient and curvature of the log likelihood, and noise of the gradient."""

    gradient: Array
    curvature: Array
    by_line: Array
    by_rows: Array


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows of one problem, or two for each cell of a sketch, with log-odds of their scores.

    Attributes
    ----------
    score, x, outcome, weight : arrays (rows,)
    square : array or None
        The squared weights; None where weights are counts, and stand for themselves.
    cluster : array or None
        Where rows belong together.
    n : float
        Effective number of rows.
    clusters : float
        How many equally large clusters would be as good.
    clipped, least : float
    from_cells : bool
    """

    score: Array
    x: Array
    outcome: Array
    weight: Array
    square: Array | None
    cluster: Array | None
    n: float
    clusters: float
    clipped: float
    least: float
    from_cells: bool

    @classmethod
    def of(cls, question: Question) -> _Rows:
        """Take the one problem of a question."""
        problem: Evidence = question.problems[0]
        score, outcome, weight = np.broadcast_arrays(*next(problem.rows()))
        counts = problem.counts
        square = None if counts else np.broadcast_to(next(problem.squared().rows())[2], weight.shape)
        cells, cluster, n = isinstance(problem, Cells), question.cluster, float(problem.n)
        if cluster is not None and are_alone(cluster, question.weight, counts=question.counts):
            cluster = None
        clusters = np.inf if cluster is None else effective_clusters(cluster, question.weight)
        least, clipped = nearest(score), 0.0
        if score.min() <= 0 or score.max() >= 1:
            certain = (score <= 0) | (score >= 1)
            clipped = float(weight[certain].sum()) if counts else float(np.count_nonzero(certain))
            if cells and not counts:
                clipped = n * float(weight[certain].sum() / weight.sum())
        x = np.empty(score.size)
        for part in _blocks(score.size):
            x[part] = log_odds(score[part], least)
        return cls(score, x, outcome, weight, square, cluster, n, clusters, clipped, least, cells)

    def one_sided(self) -> str:
        """Return why there is no line at all, if there is none."""
        if self.outcome.min() < self.outcome.max():
            return ""
        return f"every outcome is {'positive' if self.outcome[0] else 'negative'}"

    def unbounded(self) -> str:
        """Return why the slope has no best value, if it has none."""
        yes = self.outcome > 0
        (low_no, high_no), (low_yes, high_yes) = ((x.min(), x.max()) for x in (self.x[~yes], self.x[yes]))
        if min(low_no, low_yes) == max(high_no, high_yes):
            return "all scores are the same"
        if high_no <= low_yes or high_yes <= low_no:
            return "scores separate the outcomes perfectly"
        return ""

    def ratio(self, observed: float, expected: float, level: float) -> Measured:
        """Return observed over expected; it is at most one over the expected."""
        ratio = observed / expected
        if observed in (0.0, 1.0):
            low, high = clopper_pearson(np.array(observed), np.array(min(self.n, self.clusters)), level)
            return Measured(ratio, min(float(low) / expected, ratio), max(float(high) / expected, ratio))
        rest = self.outcome - ratio * self.score
        mass = float(self.weight.sum())
        # The spread is at least that of an outcome next to 0 or 1, as it is for mean score and frequency.
        alone = float((self.weight if self.square is None else self.square) @ rest**2) / mass**2
        variance = max(alone, 0.25 / self.n**2)
        if self.cluster is not None:
            variance = max(variance, self._together(rest) / mass**2)
        far = min(interval_deviate(level, self.clusters) * float(np.sqrt(variance)) / observed, FURTHEST)
        return Measured(ratio, ratio * float(np.exp(-far)), min(ratio * float(np.exp(far)), 1 / expected))

    def _together(self, rest: Array) -> float:
        """Return the variance of a sum over rows, from what each row adds: by clusters, of which some are."""
        assert self.cluster is not None
        sums = np.bincount(self.cluster, self.weight * rest)
        return float(sums @ sums) * sums.size / (sums.size - 1)

    def at(self, line: Array) -> _Sums:
        """Return what the rows say about a line."""
        size = line.size
        gradient, totals = np.zeros(size), np.zeros((3, 2 * size - 1))
        for part in _blocks(self.x.size):
            x, weight = self.x[part], self.weight[part]
            q = expit(self._odds(line, part))
            rest, spread = self.outcome[part] - q, q * (1 - q)
            square = weight if self.square is None else self.square[part]
            gradient += _moments(weight * rest, x, size)
            for k, each in enumerate((weight * spread, square * spread, square * rest**2)):
                if k != 1 or self.square is not None:
                    totals[k] += _moments(each, x, 2 * size - 1)
        if self.square is None:
            totals[1] = totals[0]
        return _Sums(gradient, *(total[np.add.outer(np.arange(size), np.arange(size))] for total in totals))

    def _odds(self, line: Array, part: slice) -> Array:
        """Return log-odds by a line: an intercept alone, or with a slope."""
        return line[0] + self.x[part] if line.size == 1 else line[0] + line[1] * self.x[part]

    def likelihood(self, line: Array) -> float:
        """Return the log likelihood of a line."""
        odds = self._odds(line, slice(None))
        return float(self.weight @ (self.outcome * odds - softplus(odds)))

    def variance(self, line: Array, sums: _Sums, inverse: Array) -> float:
        """Return the variance of a line's last coefficient: by the line, or by rows, whichever is larger."""
        add = inverse[-1]
        by_line, by_rows = (float(add @ each @ add) for each in (sums.by_line, sums.by_rows))
        if self.cluster is not None:
            slope = add[1] * self.x if add.size > 1 else 0.0
            rest = (add[0] + slope) * (self.outcome - expit(self._odds(line, slice(None))))
            by_rows = self._together(rest)
        return max(by_line, by_rows)


def _blocks(size: int) -> Iterator[slice]:
    """Yield parts of the rows that are looked at together."""
    return (slice(a, a + BLOCK) for a in range(0, size, BLOCK))


def _moments(weight: Array, x: Array, powers: int) -> Array:
    """Return sums of weights times powers of x, from 0 on."""
    if powers == 1:
        return np.array([weight.sum()])
    tilted = weight * x
    return np.array([weight.sum(), tilted.sum(), *([tilted @ x] if powers == 3 else [])])


def _fitted(rows: _Rows, question: Question, *, slope: bool) -> tuple[float, float] | None:
    """Return the last coefficient of the likeliest line and its variance; None where it is out of reach."""
    start = np.array([0.0, 1.0]) if slope else np.zeros(1)
    if not rows.from_cells:
        start = _likeliest(_cells(rows, question), start, OVER_CELLS)[0]
    line, sums, inverse = _likeliest(rows, start, OVER_ROWS)
    if sums is None or inverse is None:
        return None
    return float(line[-1]), rows.variance(line, sums, inverse)


def _likeliest(rows: _Rows, line: Array, steps: int) -> tuple[Array, _Sums | None, Array | None]:
    """Climb by Newton's steps, shorter where the likelihood would fall; the rest is None before the top."""
    widest = float(max(rows.x.max(), -rows.x.min())) if line.size > 1 else 0.0
    for _ in range(steps):
        sums = rows.at(line)
        inverse = _inverse(sums.curvature)
        if inverse is None:
            break
        step = inverse @ sums.gradient
        far = abs(step[0]) + abs(step[-1]) * widest
        line = line + (_shorter(rows.likelihood, line, step) if far > SURE else step)
        if far <= NEAR:
            return line, sums, inverse
    return line, None, None


def _inverse(curvature: Array) -> Array | None:
    """Return the inverse of a small matrix; None where there is none."""
    if len(curvature) == 1:
        return 1 / curvature if curvature[0, 0] > 0 else None
    (a, b), (_, d) = curvature
    determinant = a * d - b * b
    if not determinant > 1e-14 * a * d:
        return None
    return np.array([[d, -b], [-b, a]]) / determinant


def _shorter(likelihood: Callable[[Array], float], line: Array, step: Array) -> Array:
    """Return a step halved until the likelihood does not fall."""
    now = likelihood(line)
    for _ in range(40):
        if likelihood(line + step) >= now:
            break
        step = step / 2
    return step


def _cells(rows: _Rows, question: Question) -> _Rows:
    """Return the same outcomes at the few scores of a question's residuals, as rows of either outcome."""
    held = question.residuals[0]
    held = held[held.mass > 0]
    x, yes = np.clip(log_odds(held.score, 1e-15), rows.x.min(), rows.x.max()), held.mass * held.frequency
    weight = np.concatenate([held.mass - yes, yes])
    twice, outcome = np.tile(x, 2), np.repeat([0.0, 1.0], x.size)
    return _Rows(twice, twice, outcome, weight, None, None, rows.n, np.inf, 0.0, rows.least, True)


def _gaps(question: Question, level: float, seed: int) -> tuple[Measured, Measured]:
    """Return median and 90 % quantile of |frequency - score|: by the posterior mean, with ends by draws."""
    posterior = posterior_of(question)
    points = posterior.points(0)
    drawn = posterior.draws(0, stream(seed, "clinical"), DRAWS)
    gap = np.abs(np.clip(points.score + np.vstack([points.gap, drawn]), 0.0, 1.0) - points.score)
    order = np.argsort(gap, axis=-1)
    share = np.cumsum(points.mass[order], axis=-1)
    share /= share[:, -1:]
    found = []
    for part in (MIDDLE, LARGE):
        place = np.argmax(share >= part - ROUNDING, axis=-1)
        value, *rest = np.take_along_axis(gap, np.take_along_axis(order, place[:, None], axis=-1), axis=-1)[
            :, 0
        ]
        low, high = np.quantile(rest, [(1 - level) / 2, (1 + level) / 2])
        found.append(Measured(float(value), float(min(low, value)), float(max(high, value))))
    return found[0], found[1]

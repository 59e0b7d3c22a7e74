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

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from calibrant import inputs
from calibrant.compiled.blas import one_blas_thread
from calibrant.curves.band import clopper_pearson
from calibrant.inference.measured import Measured, Within, interval_deviate
from calibrant.inference.random_streams import stream
from calibrant.inputs import ROUNDING, InputError, Serializable
from calibrant.inputs.codec import Amount, Bounds, Level
from calibrant.inputs.wording import count, percent
from calibrant.posterior import posterior_of
from calibrant.posterior.log_odds.cells import expit, log_odds, nearest, softplus
from calibrant.score_data import Array, Cells, ScoreData
from calibrant.score_data.clusters import are_alone, effective_clusters
from calibrant.tasks import CalibrationTask

# Draws of the posterior, and the quantiles of the gap that are read.
DRAWS, MIDDLE, LARGE = 200, 0.5, 0.9
# Newton's steps at most. A step that moves no log-odds by more than NEAR is the last, for the next would move
# them by its square; one by less than SURE climbs.
STEPS, NEAR, SURE = 60, 1e-7, 0.1
# The furthest that a ratio may be off, in logs.
FURTHEST = 500.0


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
def clinical_of(task: CalibrationTask, *, level: float = 0.95, seed: int = 0) -> Clinical:
    """Read a question about one class, or about pairs.

    >>> from calibrant.inputs import predictions
    >>> from calibrant.tasks import named
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(2000)
    >>> task = CalibrationTask.of(predictions(rng.random(2000) < score**2, score), named("binary"))
    >>> clinical_of(task)
    Clinical(O/E 0.662, intercept -1.054, slope 1.317)
    """
    level = inputs.level(level)
    rows = _Rows.of(task)
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
        intercept = rows.fitted(reach, slope=False)
        why = rows.unbounded()
        slope = None if why else rows.fitted(reach, slope=True)
        if slope is None:
            missing.append(f"no slope, since {why or 'scores all but separate the outcomes'}")
    e50, e90 = _gaps(task, level, seed)
    return Clinical(
        rows.n * observed, rows.n * expected, ratio, intercept, slope, e50, e90, level, "; ".join(missing),
        rows.clipped, rows.least, rows.from_cells,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows of one problem, or two for each cell of a sketch, with log-odds of their scores.

    Attributes
    ----------
    score, x, outcome, weight : arrays (rows,)
    square : array
        The squared weights; the weights themselves where these are counts.
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
    square: Array
    cluster: Array | None
    n: float
    clusters: float
    clipped: float
    least: float
    from_cells: bool

    @classmethod
    def of(cls, task: CalibrationTask) -> _Rows:
        """Take the one problem of a question."""
        problem: ScoreData = task.problems[0]
        score, outcome, weight = np.broadcast_arrays(*next(problem.rows()))
        counts = problem.counts
        square = weight if counts else np.broadcast_to(next(problem.squared().rows())[2], weight.shape)
        cells, cluster, n = isinstance(problem, Cells), task.cluster, float(problem.n)
        if cluster is not None and are_alone(cluster, task.weight, counts=task.counts):
            cluster = None
        clusters = np.inf if cluster is None else effective_clusters(cluster, task.weight)
        least, clipped = nearest(score), 0.0
        if score.min() <= 0 or score.max() >= 1:
            certain = (score <= 0) | (score >= 1)
            clipped = float(weight[certain].sum()) if counts else float(np.count_nonzero(certain))
            if cells and not counts:
                clipped = n * float(weight[certain].sum() / weight.sum())
        x = log_odds(score, least)
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
        alone = float(self.square @ rest**2) / mass**2
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

    def fitted(self, reach: float, *, slope: bool) -> Measured | None:
        """Return the slope of the likeliest line, or its intercept with a slope of 1; None if out of reach.

        The line is found by Newton's method, with shorter steps where the likelihood would fall.
        """
        line, offset, design = np.zeros(1), self.x, np.ones((1, self.x.size))
        if slope:
            line, offset, design = np.array([0.0, 1.0]), np.zeros(1), np.stack([design[0], self.x])
        weighted = self.weight * design

        def likelihood(line: Array) -> float:
            odds = offset + line @ design
            return float(self.weight @ (self.outcome * odds - softplus(odds)))

        for _ in range(STEPS):
            q = expit(offset + line @ design)
            rest, spread = self.outcome - q, q * (1 - q)
            curvature = (weighted * spread) @ design.T
            if not np.linalg.det(curvature) > 1e-14 * np.diag(curvature).prod():
                return None
            inverse = np.linalg.inv(curvature)
            step = inverse @ (weighted @ rest)
            far = float(np.abs(step @ design).max())
            if far > SURE:
                now, halvings = likelihood(line), 0
                while likelihood(line + step) < now and halvings < 40:
                    step, halvings = step / 2, halvings + 1
            line = line + step
            if far <= NEAR:
                # The variance of the last coefficient by the line, or by rows, whichever is larger.
                add = inverse[-1] @ design
                by_line, by_rows = (float(self.square @ (add**2 * part)) for part in (spread, rest**2))
                if self.cluster is not None:
                    by_rows = self._together(add * rest)
                away = reach * float(np.sqrt(max(by_line, by_rows)))
                return Measured(float(line[-1]), float(line[-1]) - away, float(line[-1]) + away)
        return None


def _gaps(task: CalibrationTask, level: float, seed: int) -> tuple[Measured, Measured]:
    """Return median and 90 % quantile of |frequency - score|: by the posterior mean, with ends by draws."""
    posterior = posterior_of(task)
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

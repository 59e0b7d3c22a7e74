"""Clinical measures of calibration: intercept, slope, O:E ratio, E50 and E90.

Intercept and slope are coefficients of a logistic regression of the outcome on the log-odds of the score. The
intercept is fitted with the slope fixed at 1 ("calibration in the large"), the slope with a free intercept.
Their intervals are Wald intervals. The variance is the larger of the model-based one and the sandwich
estimate over rows or clusters, which is valid if the logistic model is wrong. The interval of the O:E ratio
is symmetric on the log scale, with the variance of outcome - ratio * score. E50 and E90 are the median
and the 90 % quantile of |frequency - score| over the rows, by the posterior mean of the calibration curve;
their intervals are quantiles of posterior draws. The mean of |frequency - score|, the integrated calibration
index (ICI), is the calibration error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from calibrant import inputs
from calibrant.curves.band import clopper_pearson
from calibrant.inference.interval_estimate import IntervalBounds, IntervalEstimate, interval_deviate
from calibrant.inputs import ROUNDING, InputError, Serializable, stream
from calibrant.inputs.codec import Amount, Bounds, Level
from calibrant.inputs.printed import Block, Printed
from calibrant.inputs.wording import count, percent
from calibrant.parallel import one_blas_thread
from calibrant.posterior import posterior_of
from calibrant.posterior.log_odds.cells import expit, log_odds, nearest, softplus
from calibrant.score_data import Array, Cells, ScoreData
from calibrant.score_data.clusters import effective_clusters
from calibrant.tasks import CalibrationTask

# Quantiles of the absolute gap, by definition.
E50, E90 = 0.5, 0.9
# Maximum number of Newton steps. The iteration stops when a step changes all log-odds by at most TOLERANCE,
# since convergence is quadratic. Steps that change them by at most SMALL_STEP always increase the likelihood.
MAX_STEPS, TOLERANCE, SMALL_STEP = 60, 1e-7, 0.1
# Largest half-width of the interval of the log ratio.
MAX_LOG_WIDTH = 500.0
# Posterior draws for E50 and E90.
DRAWS = 200


@dataclass(frozen=True, repr=False)
class Clinical(Printed, Serializable):
    """Clinical measures of calibration of a binary score.

    Attributes
    ----------
    observed, expected : float
        Number of positive outcomes and sum of the scores, scaled to the effective number of rows.
        Ratio, intercept and slope are computed from these outcomes by maximum likelihood: unlike the
        calibration error, E50 and E90, they are not shrunk by a posterior.
    ratio : IntervalEstimate or None
        O:E ratio; None if every score is 0.
    intercept : IntervalEstimate or None
        Calibration intercept, with the slope fixed at 1; positive if scores are too low on average. None if
        all outcomes are the same.
    slope : IntervalEstimate or None
        Calibration slope; below 1 if scores are too extreme. None if all outcomes or all scores are the same,
        or if scores separate the outcomes perfectly and the slope is unbounded.
    e50, e90 : IntervalEstimate
        Median and 90 % quantile of |frequency - score| over the rows.
    level : float
        Level of the intervals.
    missing : str
        Reason why a measure is None.
    clipped, least : float
        Number of rows with a score of 0 or 1, and the distance from 0 or 1 to which these scores are moved
        for intercept and slope: half the distance of the nearest other score, as in the calibration maps.
    from_cells : bool
        Whether intercept and slope are computed from the mean scores of the cells of a sketch.
    """

    observed: Amount
    expected: Amount
    ratio: Annotated[IntervalEstimate, IntervalBounds(0)] | None
    intercept: Annotated[IntervalEstimate, IntervalBounds()] | None
    slope: Annotated[IntervalEstimate, IntervalBounds()] | None
    e50: Annotated[IntervalEstimate, IntervalBounds(0, 1)]
    e90: Annotated[IntervalEstimate, IntervalBounds(0, 1)]
    level: Level
    missing: str = ""
    clipped: Amount = 0.0
    least: Annotated[float, Bounds(0, 0.5)] = 0.0
    from_cells: bool = False

    def __repr__(self) -> str:
        parts = (("O/E", self.ratio), ("intercept", self.intercept), ("slope", self.slope))
        texts = (
            f"{name} {'unknown' if measure is None else f'{measure.value:z.3f}'}" for name, measure in parts
        )
        return f"Clinical({', '.join(texts)})"

    def _printed(self) -> Iterator[Block]:
        measures = (
            ("calibration intercept", self.intercept),
            ("calibration slope", self.slope),
            ("O:E ratio", self.ratio),
            ("E50", self.e50),
            ("E90", self.e90),
        )
        for name, measure in measures:
            yield name, "unknown" if measure is None else str(measure)
        yield (
            "outcomes",
            f"{count(round(self.observed, 1))} observed, {count(round(self.expected, 1))} expected",
        )
        cells = "; intercept and slope from cells" if self.from_cells else ""
        yield "intervals", f"{percent(self.level)}{cells}"
        if self.missing:
            yield f"{self.missing[0].upper()}{self.missing[1:]}."

    def _check_fields(self) -> None:
        """Raise an error if a missing value has no reason, or a reason has no missing value."""
        if bool(self.missing) != (None in (self.ratio, self.intercept, self.slope)):
            raise InputError("missing", "say why a number is missing, where one is", self.missing)


@one_blas_thread()
def clinical_of(task: CalibrationTask, *, level: float = 0.95, seed: int = 0) -> Clinical:
    """Compute the clinical measures of a binary task.

    >>> from calibrant.inputs import predictions
    >>> from calibrant.tasks import get_notion
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(2000)
    >>> task = CalibrationTask.of(predictions(rng.random(2000) < score**2, score), get_notion("binary"))
    >>> clinical_of(task)
    Clinical(O/E 0.662, intercept -1.054, slope 1.317)
    """
    level = inputs.level(level)
    rows = OutcomeRows.of(task)
    deviate = interval_deviate(level, rows.clusters)
    ratio, intercept, slope = rows.ratio(level), None, None
    missing = [] if ratio else ["no O/E, since every score is 0"]
    if why := rows.missing_regression():
        missing.append(f"no intercept and no slope, since {why}")
    else:
        intercept = rows.fitted(deviate, slope=False)
        why = rows.missing_slope()
        slope = None if why else rows.fitted(deviate, slope=True)
        if slope is None:
            missing.append(f"no slope, since {why or 'scores all but separate the outcomes'}")
    e50, e90 = _gap_quantiles(task, level, seed)
    return Clinical(
        rows.n * rows.observed, rows.n * rows.expected, ratio, intercept, slope, e50, e90, level,
        "; ".join(missing), rows.clipped, rows.least, rows.from_cells,
    )  # fmt: skip


def oe_ratio_of(task: CalibrationTask, *, level: float, conditional: bool = False) -> IntervalEstimate | None:
    """Return observed over expected outcomes of a task with a single problem; None if every score is 0.

    The interval of the rows of a single cluster is unbounded, because clusters are its independent units. If
    it is `conditional` on this cluster, the rows are the units.

    >>> from calibrant.inputs import predictions
    >>> from calibrant.tasks import get_notion
    >>> data = predictions([0, 1, 1, 0], [0.2, 0.7, 0.8, 0.3])
    >>> print(oe_ratio_of(CalibrationTask.of(data, get_notion("binary")), level=0.95))
    1.00 (0.61 to 1.65)
    """
    ratio = OutcomeRows.of(task).ratio(level)
    if ratio is None or task.clusters != 1 or conditional:
        return ratio
    return replace(ratio, low=0.0, high=np.inf)


def auc_of(task: CalibrationTask, *, level: float) -> IntervalEstimate | None:
    """Return the area under the ROC curve of a task with a single problem, with the interval of DeLong.

    Ties count half. None if all outcomes are the same.

    >>> from calibrant.inputs import predictions
    >>> from calibrant.tasks import get_notion
    >>> data = predictions([0, 1, 1, 0], [0.5, 0.5, 0.5, 0.5])
    >>> print(auc_of(CalibrationTask.of(data, get_notion("binary")), level=0.95))
    0.500 (0.500 to 0.500)
    """
    rows = OutcomeRows.of(task)
    _, place = np.unique(rows.score, return_inverse=True)
    positive = np.bincount(place, rows.weight * rows.outcome)
    negative = np.bincount(place, rows.weight * (1 - rows.outcome))
    n_positive, n_negative, mass = positive.sum(), negative.sum(), float(rows.weight.sum())
    if n_positive <= 0 or n_negative <= 0:
        return None
    negative_below = (np.cumsum(negative) - negative / 2) / n_negative
    positive_above = 1 - (np.cumsum(positive) - positive / 2) / n_positive
    auc = min(float(positive @ negative_below / n_positive), 1.0)
    influence = (
        rows.outcome * (negative_below[place] - auc) / n_positive
        + (1 - rows.outcome) * (positive_above[place] - auc) / n_negative
    ) * mass
    variance = float(rows.square @ influence**2) / mass**2
    if rows.cluster is not None:
        variance = max(variance, rows.cluster_variance(influence) / mass**2)
    margin = interval_deviate(level, rows.clusters) * float(np.sqrt(variance))
    return IntervalEstimate(auc, max(auc - margin, 0.0), min(auc + margin, 1.0))


@dataclass(frozen=True, eq=False)
class OutcomeRows:
    """Rows of a single problem, with the log-odds of their scores; a sketch has two rows per cell.

    Attributes
    ----------
    score, x, outcome, weight : arrays (rows,)
    square : array
        The squared weights; the weights themselves if they are counts.
    cluster : array or None
        Cluster id of each row; None if rows are independent.
    n : float
        Effective number of rows.
    clusters : float
        Effective number of clusters.
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
    def of(cls, task: CalibrationTask) -> OutcomeRows:
        """Collect the rows of a task with a single problem."""
        problem: ScoreData = task.problems[0]
        score, outcome, weight = np.broadcast_arrays(*next(problem.rows()))
        counts = problem.counts
        square = weight if counts else np.broadcast_to(next(problem.squared().rows())[2], weight.shape)
        cells, cluster, n = isinstance(problem, Cells), task.dependent_cluster, float(problem.n)
        clusters = np.inf if cluster is None else effective_clusters(cluster, task.weight)
        least, clipped = nearest(score), 0.0
        if score.min() <= 0 or score.max() >= 1:
            certain = (score <= 0) | (score >= 1)
            clipped = float(weight[certain].sum()) if counts else float(np.count_nonzero(certain))
            if cells and not counts:
                clipped = n * float(weight[certain].sum() / weight.sum())
        x = log_odds(score, least)
        return cls(score, x, outcome, weight, square, cluster, n, clusters, clipped, least, cells)

    def missing_regression(self) -> str:
        """Return the reason why no regression can be fitted, or an empty string."""
        if self.outcome.min() < self.outcome.max():
            return ""
        return f"every outcome is {'positive' if self.outcome[0] else 'negative'}"

    def missing_slope(self) -> str:
        """Return the reason why the slope is not identified, or an empty string."""
        yes = self.outcome > 0
        (low_no, high_no), (low_yes, high_yes) = ((x.min(), x.max()) for x in (self.x[~yes], self.x[yes]))
        if min(low_no, low_yes) == max(high_no, high_yes):
            return "all scores are the same"
        if high_no <= low_yes or high_yes <= low_no:
            return "scores separate the outcomes perfectly"
        return ""

    @property
    def observed(self) -> float:
        """Share of positive outcomes."""
        return float(self.weight @ self.outcome / self.weight.sum())

    @property
    def expected(self) -> float:
        """Mean score."""
        return float(self.weight @ self.score / self.weight.sum())

    def ratio(self, level: float) -> IntervalEstimate | None:
        """Return the O:E ratio with its interval, at most 1 / expected; None if every score is 0."""
        observed, expected = self.observed, self.expected
        if expected <= 0:
            return None
        ratio = observed / expected
        if observed in (0.0, 1.0):
            low, high = clopper_pearson(np.array(observed), np.array(min(self.n, self.clusters)), level)
            return IntervalEstimate(
                ratio, min(float(low) / expected, ratio), max(float(high) / expected, ratio)
            )
        residual = self.outcome - ratio * self.score
        mass = float(self.weight.sum())
        # Lower bound of the variance for frequencies near 0 or 1, as for the mean score and frequency.
        alone = float(self.square @ residual**2) / mass**2
        variance = max(alone, 0.25 / self.n**2)
        if self.cluster is not None:
            variance = max(variance, self.cluster_variance(residual) / mass**2)
        far = min(interval_deviate(level, self.clusters) * float(np.sqrt(variance)) / observed, MAX_LOG_WIDTH)
        return IntervalEstimate(
            ratio, ratio * float(np.exp(-far)), min(ratio * float(np.exp(far)), 1 / expected)
        )

    def cluster_variance(self, residual: Array) -> float:
        """Return the cluster-robust variance of a weighted sum over rows."""
        assert self.cluster is not None
        sums = np.bincount(self.cluster, self.weight * residual)
        return float(sums @ sums) * sums.size / (sums.size - 1)

    def fitted(self, deviate: float, *, slope: bool) -> IntervalEstimate | None:
        """Return the maximum likelihood slope, or the intercept with a slope of 1; None without convergence.

        Newton's method is used, with the step halved while the likelihood decreases.
        """
        line, offset, design = np.zeros(1), self.x, np.ones((1, self.x.size))
        if slope:
            line, offset, design = np.array([0.0, 1.0]), np.zeros(1), np.stack([design[0], self.x])
        weighted = self.weight * design

        def likelihood(line: Array) -> float:
            logits = offset + line @ design
            return float(self.weight @ (self.outcome * logits - softplus(logits)))

        for _ in range(MAX_STEPS):
            q = expit(offset + line @ design)
            residual, spread = self.outcome - q, q * (1 - q)
            curvature = (weighted * spread) @ design.T
            if not np.linalg.det(curvature) > 1e-14 * np.diag(curvature).prod():
                return None
            inverse = np.linalg.inv(curvature)
            step = inverse @ (weighted @ residual)
            far = float(np.abs(step @ design).max())
            if far > SMALL_STEP:
                now, halvings = likelihood(line), 0
                while likelihood(line + step) < now and halvings < 40:
                    step, halvings = step / 2, halvings + 1
            line = line + step
            if far <= TOLERANCE:
                # The larger of the model-based and the sandwich variance of the last coefficient.
                add = inverse[-1] @ design
                by_line, by_rows = (float(self.square @ (add**2 * array)) for array in (spread, residual**2))
                if self.cluster is not None:
                    by_rows = self.cluster_variance(add * residual)
                away = deviate * float(np.sqrt(max(by_line, by_rows)))
                return IntervalEstimate(float(line[-1]), float(line[-1]) - away, float(line[-1]) + away)
        return None


def _gap_quantiles(
    task: CalibrationTask, level: float, seed: int
) -> tuple[IntervalEstimate, IntervalEstimate]:
    """Return E50 and E90 by the posterior mean, with intervals from posterior draws."""
    posterior = posterior_of(task)
    points = posterior.points(0)
    drawn = posterior.draws(0, stream(seed, "clinical"), DRAWS)
    gap = np.abs(np.clip(points.score + np.vstack([points.gap, drawn]), 0.0, 1.0) - points.score)
    order = np.argsort(gap, axis=-1)
    share = np.cumsum(points.mass[order], axis=-1)
    share /= share[:, -1:]
    quantiles = []
    for quantile in (E50, E90):
        place = np.argmax(share >= quantile - ROUNDING, axis=-1)
        column = np.take_along_axis(order, place[:, None], axis=-1)
        value, *draws = np.take_along_axis(gap, column, axis=-1)[:, 0]
        low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
        quantiles.append(IntervalEstimate(float(value), float(min(low, value)), float(max(high, value))))
    return quantiles[0], quantiles[1]

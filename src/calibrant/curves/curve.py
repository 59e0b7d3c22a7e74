"""The calibration curve (reliability curve) with its band; see docs/methods/calibration-curve.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np

from calibrant import inputs
from calibrant.curves.band import corrected
from calibrant.curves.by_class import ByClass, each_problem
from calibrant.curves.histogram import (
    ByOutcome,
    Pictured,
    Support,
    check_picture,
    common_lines,
    counts,
    frequency_cells,
    subject,
)
from calibrant.curves.posterior_curve import at_each_score, through_all_scores
from calibrant.curves.shown import DrawnOnAxes
from calibrant.estimators.bayes import Bayes
from calibrant.estimators.density import Density, DensityFit, KernelDensity
from calibrant.estimators.density_beta import density_by
from calibrant.inputs import InputError, Serializable
from calibrant.inputs.codec import (
    NOT_NEGATIVE,
    UNIT,
    Allow,
    Amount,
    Ascending,
    Count,
    Level,
    Number,
    Probability,
    Shape,
    Size,
    check_lengths,
    check_order,
)
from calibrant.inputs.printed import Block, Printed, Table
from calibrant.inputs.wording import about, percent, size_name
from calibrant.parallel import one_blas_thread, parallel_map
from calibrant.posterior import posterior_of
from calibrant.posterior.log_odds import model_average
from calibrant.posterior.score_effects import has_few_scores
from calibrant.score_data import Array, Cells, Residuals, Sample, ScoreData
from calibrant.score_data.clusters import thinned
from calibrant.tasks import CalibrationTask
from calibrant.tasks.notions import Notion

Progress = Callable[[int, int], None]
Method = Literal["bayes", "density"]
METHODS: tuple[Method, ...] = ("bayes", "density")
Band = Literal["pointwise", "simultaneous", "corrected", "bootstrap"]
BANDS: tuple[Band, ...] = ("pointwise", "simultaneous", "corrected", "bootstrap")
# Discrete scores: a score matches a distinct score within this distance, or a quarter of the smallest
# spacing.
MATCH_DISTANCE = 1e-3
# Number of rows above which method="density" uses sums over cells, so that the cost is bounded.
CELLS_FROM = 1 << 16
# Default number of resamples of method="density".
BOOTSTRAP_RESAMPLES = 200
# Scores listed as levels: decimal digits, and least share and number of the rows that have the score.
LEVEL_DIGITS, LEVEL_SHARE, LEVEL_ROWS = 4, 0.02, 5
# Tolerance for rounding of effective sample sizes and of shares of rows.
ROUNDING = 1e-6
# Names of the arrays of a curve with one entry for each score.
ARRAYS = ("score", "value", "point", "low", "high", "density", "n_eff")
# Thinned curve: number of even scores, number of even log-odds, and largest log-odds.
NODES, MAX_LOG_ODDS = 200, 20.0
# Scores at which a curve is printed.
PRINTED_SCORES = np.arange(1, 10) / 10


@dataclass(frozen=True, repr=False)
class Point(Printed, Serializable):
    """A calibration curve at given scores; arrays have the shape of these scores.

    Attributes
    ----------
    value : array
        Frequency of the outcome.
    low, high : array
        Ends of the band.
    n_eff : array
        Effective number of rows near the score.

    See Also
    --------
    ReliabilityCurve : Its method `at` returns this result.

    Examples
    --------
    >>> import calibrant
    >>> curve = calibrant.reliability_curve([0, 0, 1, 1] * 50, [0.1, 0.3, 0.6, 0.9] * 50)
    >>> point = curve.at(0.6)
    >>> bool(point.low <= point.value <= point.high)
    True
    """

    value: Annotated[Array, Shape(None), UNIT, Allow.NAN]
    low: Annotated[Array, Shape(None), UNIT, Allow.NAN]
    high: Annotated[Array, Shape(None), UNIT, Allow.NAN]
    n_eff: Annotated[Array, Shape(None), NOT_NEGATIVE, Allow.NAN]

    def _check_fields(self) -> None:
        """Raise an error for arrays of different shapes, and for a lower end above the upper end."""
        for name in ("low", "high", "n_eff"):
            Shape(self.value.shape).check(name, getattr(self, name))
        check_order(self, "low", "high")

    def __repr__(self) -> str:
        names = ("value", "low", "high", "n_eff")
        return f"Point({', '.join(f'{name}={_plain(getattr(self, name))}' for name in names)})"

    def _printed(self) -> Iterator[Block]:
        yield self._table(np.full(np.shape(self.value), True))

    def _table(
        self,
        shown: Array,
        columns: Sequence[tuple[str, Sequence[str]]] = (),
        level: float | None = None,
        size: str = "effective sample size",
    ) -> Table:
        """Return a table of the scores that are `shown`, with further columns at the left."""
        head = ["observed frequency", f"{percent(level)} interval" if level else "interval", size]
        values = (np.ravel(each) for each in (self.value, self.low, self.high, self.n_eff))
        rows = [frequency_cells(*map(float, each)) for each in zip(*values, strict=True)]
        left = [texts for _, texts in columns]
        cells = [[*(texts[k] for texts in left), *row] for k, row in enumerate(rows) if np.ravel(shown)[k]]
        return Table([*(name for name, _ in columns), *head], cells)


@dataclass(frozen=True, eq=False)
class ReliabilityCurve(Pictured, DrawnOnAxes, Serializable):
    """Frequency of the outcome at every score, with a band.

    Attributes
    ----------
    score : array
        The scores at which the curve is computed.
    value : array
        Frequency of the outcome at each score; NaN where there is no data. With method="density" and
        resamples it is the median of the resampled curves.
    point : array
        The curve of the full sample.
    low, high : array or None
        Band for the true frequency at `level`, within [0, 1] and around `value`; NaN where that is NaN.
    band : str or None
        "pointwise": covers the frequency at each score with probability `level`; "simultaneous": covers the
        whole curve. With method="density", "corrected": pointwise, corrected for the bias of smoothing (see
        `calibrant.curves.band`); "bootstrap": quantiles of the resampled curves, as in the paper, which
        contain the noise but not the bias. None without a band.
    density : array
        Density of the scores.
    n_eff : array
        Effective local sample size at each score.
    lce : array
        Local calibration error, `value - score`.
    method : str
        "bayes": a Bayesian model average (see `calibrant.curves.posterior_curve`). "density": a ratio of
        kernel densities.
    discrete : bool
        Whether there are few distinct scores that repeat. Then `score` are the distinct scores, and the curve
        is not interpolated between them.
    common_scores : array
        Round scores shared by at least 2 % of the rows, for instance 1.0.
    kernel, bandwidth, floored : str, float, bool
        Kernel and bandwidth of the density of the scores, and whether the bandwidth rule gave less than the
        smallest allowed bandwidth (.0003).
    by_outcome : tuple of arrays
        Edges of score bins, and the rows with and without the outcome in each; finer near 0 and 1.
    n, level : float
        Effective number of rows, and level of the band.
    n_boot : int
        Number of bootstrap resamples; 0 for `method="bayes"`.
    notion, label : str, label or None
        Type of calibration, and its class.
    clusters : int or None
        Number of clusters, if cluster ids were given.
    support : tuple of float
        Range of the scores.
    error : float
        Calibration error (l1). For `method="bayes"` it is the value of `ece`; for `method="density"` it is
        the error of the density estimator with this kernel and bandwidth.

    See Also
    --------
    reliability_curve : Returns this result.
    ReliabilityDiagram : Frequencies in bins.

    Examples
    --------
    >>> import calibrant
    >>> curve = calibrant.reliability_curve([0, 0, 1, 1] * 50, [0.1, 0.3, 0.6, 0.9] * 50)
    >>> curve.discrete, curve.score
    (True, array([0.1, 0.3, 0.6, 0.9]))
    """

    score: Annotated[Array, Shape((None,)), UNIT, Ascending()]
    value: Annotated[Array, UNIT, Allow.NAN]
    point: Annotated[Array, UNIT, Allow.NAN]
    low: Annotated[Array, UNIT, Allow.NAN] | None
    high: Annotated[Array, UNIT, Allow.NAN] | None
    density: Annotated[Array, NOT_NEGATIVE, Allow.NAN]
    n_eff: Annotated[Array, NOT_NEGATIVE, Allow.NAN]
    bandwidth: Amount
    floored: bool
    kernel: str
    support: Support
    by_outcome: ByOutcome
    error: Probability
    n: Size
    n_boot: Count
    level: Level
    notion: str
    label: Any = None
    band: str | None = None
    method: Method = "bayes"
    discrete: bool = False
    common_scores: Annotated[Array, UNIT] = field(default_factory=lambda: np.empty(0))
    clusters: Number | None = None
    _drawn_by = "curve"

    def _check_fields(self) -> None:
        """Raise an error for arrays of the wrong length, and for an incomplete or reversed band."""
        check_lengths(self, len(self.score), *ARRAYS)
        if (self.low is None) != (self.high is None):
            raise InputError("low", "come with high")
        if self.low is not None:
            check_order(self, "low", "high")
        check_picture(self)

    def _thinned(self) -> ReliabilityCurve:
        """Return the curve at a few hundred of its scores, or unchanged if it has no more."""
        by_odds = 1 / (1 + np.exp(-np.linspace(-MAX_LOG_ODDS, MAX_LOG_ODDS, NODES)))
        wanted = np.concatenate([np.linspace(0, 1, NODES + 1), by_odds])
        if self.score.size <= wanted.size:
            return self
        kept = np.unique(np.abs(self.score[:, None] - wanted).argmin(axis=0))
        kept = np.union1d(kept, [0, self.score.size - 1])
        # Keep the nodes on either side of each end of the curve.
        curve_ends = np.flatnonzero(np.diff(np.isnan(self.value)))
        kept = np.union1d(kept, np.concatenate([curve_ends, curve_ends + 1])).astype(np.intp)
        arrays: dict[str, Any] = {name: getattr(self, name) for name in ARRAYS}
        thinned_arrays: dict[str, Any] = {k: None if v is None else v[kept] for k, v in arrays.items()}
        return replace(self, **thinned_arrays)

    @property
    def lce(self) -> Array:
        """Local calibration error: frequency minus score."""
        return self.value - self.score

    def at(self, scores: Any) -> Point:
        """Return the curve at given scores; NaN where there is no data.

        Parameters
        ----------
        scores : float or array
            Scores in [0, 1]. If the curve is discrete, only its distinct scores have values.
        """
        requested = inputs.scores("scores", scores)
        if self.discrete:
            tolerance = min(MATCH_DISTANCE, np.diff(self.score).min(initial=1.0) / 4)
            nearest = np.abs(requested[..., None] - self.score).argmin(axis=-1)
            has_value = np.abs(requested - self.score[nearest]) <= tolerance
        else:
            # The curve is constant between the outermost nodes and the ends of the support.
            has_value = (requested >= self.support[0]) & (requested <= self.support[1])

        def read(values: Array | None, otherwise: float = np.nan) -> Any:
            if values is None:
                return np.full(requested.shape, np.nan)[()]
            at = values[nearest] if self.discrete else np.interp(requested, self.score, values)
            return np.where(has_value, at, otherwise)[()]

        rows = read(self.n_eff, 0.0 if self.discrete else np.nan)
        return Point(read(self.value), read(self.low), read(self.high), rows)

    def __repr__(self) -> str:
        return f"ReliabilityCurve({subject(self)}, ECE {self.error:.4f}, {self.method})"

    def _printed(self) -> Iterator[Block]:
        yield from common_lines(self)
        by_density = f"ratio of {self.kernel} densities, bandwidth {self.bandwidth:.3g}"
        yield "curve", "Bayesian model average" if self.method == "bayes" else by_density
        resamples = f", {self.n_boot} resamples" if self.n_boot else ""
        yield "band", f"{self.band}{resamples}" if self.band else "none"
        scores = self.score if self.discrete else PRINTED_SCORES
        at = self.at(scores)
        known = np.isfinite(at.value)
        size = size_name(float(self.n_eff.sum())) if self.discrete else "effective local sample size"
        yield at._table(known, [("score", [f"{score:.4g}" for score in scores])], self.level, size)

    def _drawing(self) -> str:
        from calibrant.report.chart import thumbnail

        title = f"reliability curve, {about(self.notion, self.label)}"
        return f'<div style="max-width: 180px">{thumbnail({"": self}, title, f"curve-{id(self)}")}</div>\n'


def _plain(values: Any) -> str:
    """Return numbers without the names of their types; of many, the first and the last.

    >>> _plain(np.float64(0.25)), _plain(np.array([0.5, 0.75]))
    ('0.25', '[0.5 , 0.75]')
    """
    return np.array2string(np.asarray(values), precision=4, separator=", ", threshold=10)


@one_blas_thread()
def curve_of(
    task: CalibrationTask,
    *,
    method: Method = "bayes",
    kernel: str | None = None,
    bandwidth: str | float | None = None,
    n_boot: int | None = None,
    level: float = 0.95,
    band: Band | None = "pointwise",
    rng: Any = 0,
    progress: Progress | None = None,
    lazy: bool = False,  # whether to compute the curve of a class at the first access
) -> ReliabilityCurve | ByClass[ReliabilityCurve]:
    """Compute the calibration curve of a task, or that of each class; see `calibrant.reliability_curve`.

    Examples
    --------
    >>> from calibrant.inputs import predictions
    >>> from calibrant.tasks import get_notion
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(1000)
    >>> task = CalibrationTask.of(predictions(rng.random(1000) < score**2, score), get_notion("binary"))
    >>> curve = curve_of(task)
    >>> curve
    ReliabilityCurve(class 1, n=1000, ECE 0.1..., bayes)
    >>> print("\\n".join(str(curve).splitlines()[:8]))
    calibration error  0.1...
    notion             binary, class 1
    data               1,000 rows
    curve              Bayesian model average
    band               pointwise
    <BLANKLINE>
    score  observed frequency   95 % interval  effective local sample size
    ...
    """
    inputs.check_choice("method", method, METHODS)
    level, generator = inputs.level(level), inputs.generator(rng)
    if band is not None:
        inputs.check_choice("band", band, BANDS)
    by_density = method == "density"
    further_bands = ("corrected", "bootstrap") if by_density else ("simultaneous",)
    if band not in (None, "pointwise", *further_bands):
        names = ", ".join(repr(name) for name in ("pointwise", *further_bands))
        rule = f"be {names} or None with method={method!r}"
        raise InputError("band", rule, band)
    if by_density:
        estimator = density_by("triweight" if kernel is None else kernel, bandwidth)
        n_boot = BOOTSTRAP_RESAMPLES if n_boot is None else n_boot
        n_boot = inputs.positive_int("n_boot", n_boot, minimum=0)
        band = "corrected" if band == "pointwise" else band
        options: dict[str, Any] = {"n_boot": n_boot, "level": level, "band": band, "rng": generator}
        if task.designs is not None and task.cluster is None:
            raise InputError("method", "be 'bayes' for sums by cluster, which cannot be resampled", method)
        options["cluster"] = None if task.designs is None else task.cluster
        return each_problem(task, _by_density, estimator=estimator, progress=progress, **options)
    for name, value in (("kernel", kernel), ("bandwidth", bandwidth), ("n_boot", n_boot or None)):
        if value is not None:
            raise InputError(name, "be left alone", value, hint='it goes with method="density"')
    return _by_posterior(task, level, band, lazy)


def _by_posterior(
    task: CalibrationTask, level: float, band: str | None, lazy: bool
) -> ReliabilityCurve | ByClass[ReliabilityCurve]:
    """Compute the curve of the Bayesian model average."""
    posterior, classwise = posterior_of(task), task.notion.classwise
    batch = (len(posterior.z),) if classwise else ()
    errors = np.ravel(Bayes(shared=classwise).fit_posterior(batch, posterior).error("l1"))
    # Residuals of many classes are not cached; those of clustered data are only available from the task.
    cached = not classwise or task.designs is not None or "residuals_alone" in vars(task)

    positions = [(block, k) for block in task.blocks for k in range(block.batch[0] if classwise else 1)]

    @one_blas_thread()
    def fit(k: int) -> ReliabilityCurve:
        block, index = positions[k]
        score_data = block[index] if classwise else block
        residuals = task.residuals_alone[k] if cached else Residuals.of(score_data)
        discrete = has_few_scores(residuals[residuals.mass > 0]) or posterior.has_independent_gaps(k)
        mixture = model_average(residuals, scattered=discrete)
        simultaneous = band == "simultaneous"
        if discrete:
            curve = at_each_score(mixture, residuals, level, simultaneous=simultaneous)
        else:
            curve = through_all_scores(
                mixture, residuals, _support(score_data), level, simultaneous=simultaneous
            )
        density = Density().fit_shared_bandwidth(score_data)
        return ReliabilityCurve(
            score=curve.score,
            value=curve.probability,
            point=curve.probability,
            low=None if band is None else curve.low,
            high=None if band is None else curve.high,
            # The fast Fourier transform can leave small negative values.
            density=np.maximum(np.interp(curve.score, density.score, density.density), 0.0),
            n_eff=curve.rows,
            bandwidth=float(density.bandwidth),
            floored=bool(density.floored),
            kernel=density.estimator.kernel,
            support=_support(score_data),
            by_outcome=counts(score_data),
            error=float(errors[k]),
            n=float(score_data.n),
            n_boot=0,
            level=level,
            band=band,
            method="bayes",
            discrete=discrete,
            common_scores=_levels(residuals),
            notion=task.notion.name,
            label=task.labels[k] if classwise else task.label,
            clusters=task.clusters,
        )

    if not classwise:
        return fit(0)
    if lazy:
        return ByClass({label: partial(fit, k) for k, label in enumerate(task.labels)})
    curves = parallel_map(fit, range(len(task.labels)))
    return ByClass(dict(zip(task.labels, curves, strict=True)))


def _by_density(
    score_data: ScoreData,
    *,
    estimator: KernelDensity,
    n_boot: int,
    level: float,
    band: str | None,
    rng: np.random.Generator,
    progress: Progress | None,
    notion: Notion,
    label: Any,
    cluster: Array | None = None,
    effect: float = 1.0,
    clusters: int | None = None,
) -> ReliabilityCurve:
    """Compute the curve of one problem as a ratio of kernel densities.

    With clusters, whole clusters are resampled, and the corrected band has `effect` times fewer rows.
    """
    if isinstance(score_data, Sample) and cluster is None:
        score_data = Cells.of(score_data) if score_data.expanded_size > CELLS_FROM else score_data.repeated()
    fit = estimator.fit_shared_bandwidth(score_data)
    point, nearby = fit.frequency, fit.nearby / effect
    probability, low, high = point, None, None
    if n_boot:
        drawn = _resampled(score_data, fit, n_boot, rng, progress, cluster)
        low, probability, high = _quantiles(drawn, [(1 - level) / 2, 0.5, (1 + level) / 2])
        low, probability, high = (
            np.where(np.isnan(point), np.nan, array) for array in (low, probability, high)
        )
    if band is None:
        low = high = None
    elif band == "corrected":
        thinner = score_data if cluster is None else thinned(score_data, effect)  # type: ignore[arg-type]
        low, high = corrected(thinner, float(fit.width), fit.score, nearby, level)
        low, high = np.minimum(low, probability), np.maximum(high, probability)
    return ReliabilityCurve(
        score=fit.score,
        value=probability,
        point=point,
        low=low,
        high=high,
        density=np.maximum(fit.density, 0.0),
        n_eff=nearby,
        bandwidth=float(fit.bandwidth),
        floored=bool(fit.floored),
        kernel=estimator.kernel,
        support=_support(score_data),
        by_outcome=counts(score_data),
        error=float(fit.error()),
        n=float(score_data.n),
        n_boot=n_boot,
        level=level,
        band=None if low is None else band,
        method="density",
        notion=notion.name,
        label=label,
        clusters=clusters,
    )


def _levels(residuals: Residuals) -> Array:
    """Return the round scores that many rows share.

    >>> score = np.append(np.linspace(0.1, 0.9, 90), np.ones(30))
    >>> _levels(Residuals.of(Sample(score, score > 0.5)))
    array([1.])

    A score of a single row is not a level, even if the row is a large share of the data:

    >>> _levels(Residuals.of(Sample(np.arange(1, 10) / 10, np.arange(9) > 4)))
    array([], dtype=float64)
    """
    score = np.round(residuals.score, LEVEL_DIGITS)
    mass, spread = residuals.mass, residuals.spread
    rows = np.divide(mass * mass, spread, out=np.zeros(mass.shape), where=spread > 0)
    smallest = LEVEL_SHARE * residuals.n * (1 - ROUNDING)
    is_level = (mass >= smallest) & (rows >= LEVEL_ROWS - ROUNDING)
    tolerance = MATCH_DISTANCE * 10.0**-LEVEL_DIGITS
    return np.unique(score[is_level & (np.abs(residuals.score - score) < tolerance)])


def _support(score_data: ScoreData) -> tuple[float, float]:
    """Return the range of possible scores, extended to the smallest observed score."""
    return min(score_data.support[0], float(score_data.score_at_rank(np.zeros(1))[0])), score_data.support[1]


def _resampled(
    score_data: Any,
    fit: DensityFit,
    n_boot: int,
    rng: np.random.Generator,
    progress: Progress | None,
    cluster: Array | None,
) -> Array:
    """Return the curves (n_boot, scores) of bootstrap resamples, of whole clusters if there are any."""
    # The bandwidth of the data is used for every resample, so that it adds no variation.
    estimator = fit.as_used()
    curves = np.empty((n_boot, fit.score.size))
    draw = score_data.resample if cluster is None else partial(score_data.resample_clusters, cluster)
    step = max(1, (1 << 19) // max(fit.score.size, 0 if cluster is None else cluster.size))
    for first in range(0, n_boot, step):
        size = min(step, n_boot - first)
        curves[first : first + size] = estimator.fit_shared_bandwidth(draw(rng, size)).frequency
        if progress is not None:
            progress(first + size, n_boot)
    return curves


def _quantiles(drawn: Array, shares: list[float]) -> list[Array]:
    """Return quantiles over the first axis among the entries that are not NaN."""
    ordered = np.sort(drawn.T, axis=-1)
    valid = np.count_nonzero(~np.isnan(ordered), axis=-1)
    quantiles = []
    for share in shares:
        position = share * np.maximum(valid - 1, 0)
        low = position.astype(np.intp)
        below, above = (
            np.take_along_axis(ordered, index[:, None], axis=-1)[:, 0]
            for index in (low, np.minimum(low + 1, np.maximum(valid - 1, 0)))
        )
        quantiles.append(below + (position - low) * (above - below))
    return quantiles


def local_error(curve: ReliabilityCurve | ByClass[ReliabilityCurve], scores: Array) -> Array:
    """Return frequency minus score at given scores; with several classes, one row for each class."""
    if isinstance(curve, ByClass):
        return np.stack([local_error(each, scores) for each in curve.values()])
    return np.asarray(curve.at(scores).value - scores)

"""The reliability curve: what a score really means, at every score, with a band."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from calibrant import inputs
from calibrant.compiled import shared
from calibrant.compiled.blas import one_blas_thread
from calibrant.curves.band import corrected
from calibrant.curves.by_class import ByClass, each_problem
from calibrant.curves.histogram import Edges, Rows, Support, check_picture, counts, headline, table
from calibrant.curves.posterior_curve import at_each_score, through_all_scores
from calibrant.estimators import Bayes, Density
from calibrant.estimators.density import DensityFit
from calibrant.estimators.density_beta import DensityBeta, density_by
from calibrant.inputs import InputError, Serializable
from calibrant.inputs.codec import (
    NOT_NEGATIVE,
    UNIT,
    Allow,
    Amount,
    Ascending,
    Count,
    Level,
    Probability,
    Shape,
    Size,
    check_lengths,
    check_order,
)
from calibrant.inputs.wording import percent, size_name
from calibrant.posterior import posterior_of
from calibrant.posterior.log_odds import model_average
from calibrant.posterior.score_effects import is_few
from calibrant.score_data import Array, Cells, Residuals, Sample, ScoreData
from calibrant.tasks import CalibrationTask
from calibrant.tasks.notions import Notion

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Progress = Callable[[int, int], None]
Method = Literal["bayes", "density"]
METHODS: tuple[Method, ...] = ("bayes", "density")
Band = Literal["pointwise", "simultaneous", "corrected", "bootstrap"]
BANDS: tuple[Band, ...] = ("pointwise", "simultaneous", "corrected", "bootstrap")
# Resamples of a curve by density.
RESAMPLES = 200
# A score counts as one of few that occur, if it is so near and not halfway to another.
SAME = 1e-3
# From this size on a bootstrap reads cells: the curve is the same and the cost no longer grows.
CELLS_FROM = 1 << 16
# A score for which fewer rows speak is not judged.
FEW = 10.0
# A round score that this share of the rows has, and at least so many of them, is a level, however the others
# lie. Effective numbers of rows may fall short of a whole one by rounding.
LEVEL, SHARED, DIGITS, ROUNDING = 0.02, 5, 4, 1e-6
# The arrays of a curve, with an entry for each score.
ALONG = ("score", "probability", "point", "low", "high", "density", "n_eff")
# Scores of a thinned curve, evenly along the score and along its log odds up to these ends.
NODES, ENDS = 200, 20.0
# Scores that a curve prints.
PRINTED = np.arange(1, 10) / 10


@dataclass(frozen=True)
class Point(Serializable):
    """A reliability curve at given scores; arrays have the shape of the scores asked for."""

    probability: Annotated[Array, Shape(None), UNIT, Allow.NAN]
    low: Annotated[Array, Shape(None), UNIT, Allow.NAN]
    high: Annotated[Array, Shape(None), UNIT, Allow.NAN]
    n_eff: Annotated[Array, Shape(None), NOT_NEGATIVE, Allow.NAN]

    def check_fields(self) -> None:
        """Refuse arrays of different shapes, and a band that does not ascend."""
        for name in ("low", "high", "n_eff"):
            Shape(self.probability.shape).check(name, getattr(self, name))
        check_order(self, "low", "high")


@dataclass(frozen=True, eq=False)
class ReliabilityCurve(Serializable):
    """What a score really means: the frequency of the outcome at every score.

    Attributes
    ----------
    score : array
        The scores at which the curve is known.
    probability : array
        Frequency of the outcome at each score; NaN where there is no data. By density and with
        resamples it is their median.
    point : array
        The curve of the full sample.
    low, high : array or None
        Band of the true frequency at `level`, within [0, 1] and around `probability`; NaN where that
        is. See `band`.
    band : str or None
        "pointwise": each single score's frequency lies inside with probability `level`; "simultaneous":
        those of all scores at once. By density, "corrected": pointwise, and the bias of smoothing is
        accounted for (see `calibrant.curves.band`); "bootstrap": quantiles of the resampled curves, the
        paper's band, which show the noise alone. None where there is no band.
    density : array
        Density of the scores.
    n_eff : array
        Effective number of rows that speak at each score.
    lce : array
        Local calibration error, `probability - score`.
    method : str
        "bayes": an average over maps (see `calibrant.curves.posterior_curve`). "density": a ratio of kernel
        densities.
    discrete : bool
        Whether scores are few and repeat: then `score` are those that occur, each by itself, and there
        is nothing between them.
    levels : array
        Round scores that many rows share, a fiftieth of them at least: 1.0 for instance, where a quarter
        of the rows say it.
    kernel, bandwidth, floored : str, float, bool
        Of the density of the scores: its kernel, the bandwidth used, and whether the rule asked for
        less than the narrowest one (.0003).
    error : float
        The expected calibration error, as `ece` gives it.
    """

    score: Annotated[Array, Shape((None,)), UNIT, Ascending()]
    probability: Annotated[Array, UNIT, Allow.NAN]
    point: Annotated[Array, UNIT, Allow.NAN]
    low: Annotated[Array, UNIT, Allow.NAN] | None
    high: Annotated[Array, UNIT, Allow.NAN] | None
    density: Annotated[Array, NOT_NEGATIVE, Allow.NAN]
    n_eff: Annotated[Array, NOT_NEGATIVE, Allow.NAN]
    bandwidth: Amount
    floored: bool
    kernel: str
    support: Support
    histogram: tuple[Edges, Rows]
    error: Probability
    n: Size
    n_boot: Count
    level: Level
    notion: str
    label: Any = None
    band: str | None = None
    method: Method = "bayes"
    discrete: bool = False
    levels: Annotated[Array, UNIT] = field(default_factory=lambda: np.empty(0))

    def check_fields(self) -> None:
        """Refuse arrays that are not of as many scores, and a band of one end or in the wrong order."""
        check_lengths(self, len(self.score), *ALONG)
        if (self.low is None) != (self.high is None):
            raise InputError("low", "come with high")
        if self.low is not None:
            check_order(self, "low", "high")
        check_picture(self)

    def thinned(self) -> ReliabilityCurve:
        """Return the curve at a few hundred of its scores; one that has no more comes back as it is."""
        by_odds = 1 / (1 + np.exp(-np.linspace(-ENDS, ENDS, NODES)))
        wanted = np.concatenate([np.linspace(0, 1, NODES + 1), by_odds])
        if self.score.size <= wanted.size:
            return self
        kept = np.unique(np.abs(self.score[:, None] - wanted).argmin(axis=0))
        kept = np.union1d(kept, [0, self.score.size - 1])
        # Where the curve begins and ends, and a node on either side.
        turns = np.flatnonzero(np.diff(np.isnan(self.probability)))
        kept = np.union1d(kept, np.concatenate([turns, turns + 1])).astype(np.intp)
        arrays: dict[str, Any] = {name: getattr(self, name) for name in ALONG}
        fewer: dict[str, Any] = {k: None if v is None else v[kept] for k, v in arrays.items()}
        return replace(self, **fewer)

    @property
    def lce(self) -> Array:
        """Local calibration error: frequency minus score."""
        return self.probability - self.score

    def at(self, scores: Any) -> Point:
        """Read the curve off at given scores; NaN where there is no data.

        Parameters
        ----------
        scores : float or array
            Scores in [0, 1]. Where the scores of the data are few, those that occur.
        """
        place = inputs.scores("scores", scores)
        if self.discrete:
            same = min(SAME, np.diff(self.score).min(initial=1.0) / 4)
            nearest = np.abs(place[..., None] - self.score).argmin(axis=-1)
            known = np.abs(place - self.score[nearest]) <= same
        else:
            # Between the walls and the outermost nodes the curve goes on; beyond the walls not.
            known = (place >= self.support[0]) & (place <= self.support[1])

        def read(values: Array | None, otherwise: float = np.nan) -> Any:
            if values is None:
                return np.full(place.shape, np.nan)[()]
            at = values[nearest] if self.discrete else np.interp(place, self.score, values)
            return np.where(known, at, otherwise)[()]

        rows = read(self.n_eff, 0.0 if self.discrete else np.nan)
        return Point(read(self.probability), read(self.low), read(self.high), rows)

    def plot(self, ax: Axes | None = None, **options: Any) -> Axes:
        """Draw the curve with its band and the histogram of scores; see `calibrant.plot.curve`."""
        from calibrant import plot

        return plot.curve(self, ax, **options)

    def __repr__(self) -> str:
        return f"ReliabilityCurve({headline(self)}, {self.method})"

    def __str__(self) -> str:
        by_density = f"{self.kernel} bandwidth {self.bandwidth:.3g}"
        how = ["by an average over maps" if self.method == "bayes" else by_density]
        how += [f"{percent(self.level)} {self.band} band"] if self.band else []
        how += [f"{self.n_boot} resamples"] if self.n_boot else []
        printed = self.score if self.discrete else PRINTED
        at = self.at(printed)
        columns = zip(printed, at.probability, at.low, at.high, at.n_eff, strict=True)
        rows = (row for row in columns if not np.isnan(row[1]))
        digits = ".4g" if self.discrete else ".1f"
        size = size_name(self.n) if self.discrete else "local n"
        formats = {"score": digits, "frequency": ".3f", "low": ".3f", "high": ".3f", size: ".0f"}
        return f"Reliability curve of {headline(self)}\n{', '.join(how)}\n{table(formats, rows)}"


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
    rng: Any = None,
    progress: Progress | None = None,
) -> ReliabilityCurve | ByClass[ReliabilityCurve]:
    """Make the curve that a question asks for, or that of each class; see `calibrant.reliability_curve`.

    Examples
    --------
    >>> from calibrant.inputs import predictions
    >>> from calibrant.tasks import named
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(1000)
    >>> task = CalibrationTask.of(predictions(rng.random(1000) < score**2, score), named("binary"))
    >>> curve = curve_of(task)
    >>> curve
    ReliabilityCurve(class 1, n=1000, ECE 0.1..., bayes)
    >>> print("\\n".join(str(curve).splitlines()[:3]))
    Reliability curve of class 1, n=1000, ECE 0.1...
    by an average over maps, 95 % pointwise band
    score  frequency    low   high  local n
    """
    inputs.check_choice("method", method, METHODS)
    level, generator = inputs.level(level), inputs.generator(rng)
    if band is not None:
        inputs.check_choice("band", band, BANDS)
    by_density = method == "density"
    own = ("corrected", "bootstrap") if by_density else ("simultaneous",)
    if band not in (None, "pointwise", *own):
        rule = f"be {', '.join(repr(name) for name in ('pointwise', *own))} or None with method={method!r}"
        raise InputError("band", rule, band)
    if by_density:
        estimator = density_by("triweight" if kernel is None else kernel, bandwidth)
        n_boot = inputs.positive_int("n_boot", RESAMPLES if n_boot is None else n_boot, minimum=0)
        band = "corrected" if band == "pointwise" else band
        options: dict[str, Any] = {"n_boot": n_boot, "level": level, "band": band, "rng": generator}
        return each_problem(task, _by_density, estimator=estimator, progress=progress, **options)
    for name, value in (("kernel", kernel), ("bandwidth", bandwidth), ("n_boot", n_boot or None)):
        if value is not None:
            raise InputError(name, "be left alone", value, hint='it goes with method="density"')
    return _by_posterior(task, level, band)


def _by_posterior(
    task: CalibrationTask, level: float, band: str | None
) -> ReliabilityCurve | ByClass[ReliabilityCurve]:
    """Read the average over maps, at every score."""
    posterior, several = posterior_of(task), task.notion.classwise
    batch = (len(posterior.z),) if several else ()
    errors = np.ravel(Bayes(shared=several).fit_posterior(batch, posterior).error("l1"))
    # The residuals of many classes need not be held; those of clusters are known to the question alone.
    held = not several or task.designs is not None or "residuals" in vars(task)

    places = [(block, k) for block in task.blocks for k in range(block.batch[0] if several else 1)]

    def fit(k: int) -> ReliabilityCurve:
        block, place = places[k]
        evidence = block[place] if several else block
        residuals = task.residuals[k] if held else Residuals.of(evidence)
        discrete = is_few(residuals[residuals.mass > 0]) or posterior.scattered(k)
        mixture = model_average(residuals, scattered=discrete)
        simultaneous = band == "simultaneous"
        if discrete:
            line = at_each_score(mixture, residuals, level, simultaneous=simultaneous)
        else:
            line = through_all_scores(
                mixture, residuals, _support(evidence), level, simultaneous=simultaneous
            )
        density = Density().fit_alike(evidence)
        return ReliabilityCurve(
            score=line.score,
            probability=line.probability,
            point=line.probability,
            low=None if band is None else line.low,
            high=None if band is None else line.high,
            # A transform leaves rounding below zero.
            density=np.maximum(np.interp(line.score, density.score, density.density), 0.0),
            n_eff=line.rows,
            bandwidth=float(density.bandwidth),
            floored=bool(density.floored),
            kernel=density.estimator.kernel,
            support=_support(evidence),
            histogram=counts(evidence),
            error=float(errors[k]),
            n=float(evidence.n),
            n_boot=0,
            level=level,
            band=band,
            method="bayes",
            discrete=discrete,
            levels=_levels(residuals),
            notion=task.notion.name,
            label=task.labels[k] if several else task.label,
        )

    if not several:
        return fit(0)
    curves = shared(fit, range(len(task.labels)))
    return ByClass(dict(zip(task.labels, curves, strict=True)))


def _by_density(
    evidence: ScoreData,
    *,
    estimator: Density | DensityBeta,
    n_boot: int,
    level: float,
    band: str | None,
    rng: np.random.Generator,
    progress: Progress | None,
    notion: Notion,
    label: Any,
) -> ReliabilityCurve:
    """Smooth over neighbouring scores."""
    if isinstance(evidence, Sample):
        evidence = Cells.of(evidence) if evidence.expanded_size > CELLS_FROM else evidence.repeated()
    fit = estimator.fit_alike(evidence)
    point, nearby = fit.frequency, fit.nearby
    probability, low, high = point, None, None
    if n_boot:
        drawn = _resampled(evidence, fit, n_boot, rng, progress)
        low, probability, high = _quantiles(drawn, [(1 - level) / 2, 0.5, (1 + level) / 2])
        low, probability, high = (
            np.where(np.isnan(point), np.nan, part) for part in (low, probability, high)
        )
    if band is None:
        low = high = None
    elif band == "corrected":
        low, high = corrected(evidence, float(fit.width), fit.score, nearby, level)
        low, high = np.minimum(low, probability), np.maximum(high, probability)
    return ReliabilityCurve(
        score=fit.score,
        probability=probability,
        point=point,
        low=low,
        high=high,
        density=np.maximum(fit.density, 0.0),
        n_eff=nearby,
        bandwidth=float(fit.bandwidth),
        floored=bool(fit.floored),
        kernel=estimator.kernel,
        support=_support(evidence),
        histogram=counts(evidence),
        error=float(fit.error()),
        n=float(evidence.n),
        n_boot=n_boot,
        level=level,
        band=None if low is None else band,
        method="density",
        notion=notion.name,
        label=label,
    )


def _levels(residuals: Residuals) -> Array:
    """Return the round scores that many rows share.

    >>> score = np.append(np.linspace(0.1, 0.9, 90), np.ones(30))
    >>> _levels(Residuals.of(Sample(score, score > 0.5)))
    array([1.])

    Of few rows a single one is a large share, but shares its score with no other:

    >>> _levels(Residuals.of(Sample(np.arange(1, 10) / 10, np.arange(9) > 4)))
    array([], dtype=float64)
    """
    score = np.round(residuals.score, DIGITS)
    mass, spread = residuals.mass, residuals.spread
    rows = np.divide(mass * mass, spread, out=np.zeros(mass.shape), where=spread > 0)
    shared = (mass >= LEVEL * residuals.n) & (rows >= SHARED - ROUNDING)
    return np.unique(score[shared & (np.abs(residuals.score - score) < SAME * 10.0**-DIGITS)])


def _support(evidence: ScoreData) -> tuple[float, float]:
    """Return where scores can lie, and do."""
    return min(evidence.support[0], float(evidence.ranked(np.zeros(1))[0])), evidence.support[1]


def _resampled(
    evidence: ScoreData,
    fit: DensityFit,
    n_boot: int,
    rng: np.random.Generator,
    progress: Progress | None,
) -> Array:
    """Draw the curves of bootstrap resamples, one in each row."""
    # Every resample is smoothed alike: its spread is that of the data, not of the bandwidth.
    again = fit.as_used()
    drawn = np.empty((n_boot, fit.score.size))
    step = max(1, (1 << 19) // fit.score.size)
    for first in range(0, n_boot, step):
        size = min(step, n_boot - first)
        drawn[first : first + size] = again.fit_alike(evidence.resample(rng, size)).frequency
        if progress is not None:
            progress(first + size, n_boot)
    return drawn


def _quantiles(drawn: Array, shares: list[float]) -> list[Array]:
    """Return quantiles over the first axis among the entries that are not NaN."""
    ordered = np.sort(drawn.T, axis=-1)
    valid = np.count_nonzero(~np.isnan(ordered), axis=-1)
    quantiles = []
    for share in shares:
        place = share * np.maximum(valid - 1, 0)
        low = place.astype(np.intp)
        below, above = (
            np.take_along_axis(ordered, index[:, None], axis=-1)[:, 0]
            for index in (low, np.minimum(low + 1, np.maximum(valid - 1, 0)))
        )
        quantiles.append(below + (place - low) * (above - below))
    return quantiles


def local_error(curve: ReliabilityCurve | ByClass[ReliabilityCurve], scores: Array) -> Array:
    """Return frequency minus score at given scores; of several classes along a first axis."""
    if isinstance(curve, ByClass):
        return np.stack([local_error(each, scores) for each in curve.values()])
    return np.asarray(curve.at(scores).probability - scores)

"""The reliability curve: what a score really means, at every score, with a band."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from calibrant import inputs
from calibrant.curves.band import by_rank, corrected
from calibrant.curves.by_class import ByClass
from calibrant.curves.histogram import counts
from calibrant.curves.text import headline, table
from calibrant.estimators import Density
from calibrant.estimators.density import DensityFit
from calibrant.estimators.smoothing import NARROWEST
from calibrant.evidence import Array, Cells, Evidence, Sample
from calibrant.inputs import InputError
from calibrant.questions.notions import Notion

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Progress = Callable[[int, int], None]
Method = Literal["density", "ranks"]
METHODS: tuple[Method, ...] = ("density", "ranks")
BANDS = ("corrected", "bootstrap")
# From this size on a bootstrap reads cells: the curve is the same and the cost no longer grows.
CELLS_FROM = 1 << 16
# Scores that a curve prints.
PRINTED = np.arange(1, 10) / 10


@dataclass(frozen=True)
class Point:
    """A reliability curve at given scores; arrays have the shape of the scores asked for."""

    probability: Any
    low: Any
    high: Any
    n_eff: Any


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """What a score really means: the frequency of the outcome at every score.

    Attributes
    ----------
    score : array
        The grid.
    probability : array
        Frequency of the outcome at each score: the bootstrap median, or without bootstraps the
        full-sample curve; NaN where there is no data.
    point : array
        The full-sample curve.
    low, high : array or None
        Band of the true frequency at `level`, pointwise, within [0, 1] and around `probability`; NaN
        where that is. See `band`.
    band : str or None
        "corrected": the band accounts for the bias of smoothing (see `calibrant.curves.band`), with or
        without bootstraps. It is widened to hold `probability`, which happens where the curve is
        smoothed too much. "bootstrap": quantiles of the resampled curves, the paper's band, which
        show the noise alone. None where there is no band.
    density : array
        Density of the scores.
    n_eff : array
        Effective number of rows that speak at each score.
    lce : array
        Local calibration error, `probability - score`.
    method : str
        "density": neighbouring scores speak for each other, by a kernel over the scores. "ranks":
        neighbouring rows do.
    kernel : str
        Of the scores; "ranks" for a curve by rank.
    bandwidth, floored : float, bool
        Bandwidth used, and whether the rule asked for less than the narrowest one (.0003); of a curve
        by rank, that of its `density`.
    error : float
        The expected calibration error of the same fit.
    """

    score: Array
    probability: Array
    point: Array
    low: Array | None
    high: Array | None
    density: Array
    n_eff: Array
    bandwidth: float
    floored: bool
    kernel: str
    support: tuple[float, float]
    histogram: tuple[Array, Array]
    error: float
    n: float
    n_boot: int
    level: float
    notion: str
    label: Any = None
    band: str | None = None

    @property
    def method(self) -> Method:
        """How the curve is smoothed: over neighbouring scores, or over neighbouring rows."""
        return "ranks" if self.kernel == "ranks" else "density"

    @property
    def lce(self) -> Array:
        """Local calibration error: frequency minus score."""
        return self.probability - self.score

    def at(self, scores: Any) -> Point:
        """Read the curve off at given scores; NaN where there is no data.

        Parameters
        ----------
        scores : float or array
            Scores in [0, 1].
        """
        place = inputs.scores("scores", scores)

        def read(values: Array | None) -> Any:
            if values is None:
                return np.full(place.shape, np.nan)[()]
            at = np.interp(place, self.score, values)
            # Between the walls and the outermost nodes the curve goes on; beyond the walls not.
            low, high = self.support
            return np.where((place >= low) & (place <= high), at, np.nan)[()]

        return Point(read(self.probability), read(self.low), read(self.high), read(self.n_eff))

    def plot(self, ax: Axes | None = None, **options: Any) -> Axes:
        """Draw the curve with its band and the histogram of scores; see `calibrant.plot.curve`."""
        from calibrant import plot

        return plot.curve(self, ax, **options)

    def __repr__(self) -> str:
        return f"ReliabilityCurve({headline(self)}, {self.method})"

    def __str__(self) -> str:
        how = ["by rank" if self.method == "ranks" else f"{self.kernel} bandwidth {self.bandwidth:.3g}"]
        how += [f"{self.level:.0%} {self.band} band"] if self.band else []
        how += [f"{self.n_boot} resamples"] if self.n_boot else []
        at = self.at(PRINTED)
        columns = zip(PRINTED, at.probability, at.low, at.high, at.n_eff, strict=True)
        rows = (row for row in columns if not np.isnan(row[1]))
        formats = {"score": ".1f", "frequency": ".3f", "low": ".3f", "high": ".3f", "rows": ".0f"}
        return f"Reliability curve of {headline(self)}\n{', '.join(how)}\n{table(formats, rows)}"


def curve_of(
    evidence: Evidence,
    *,
    method: Method = "density",
    kernel: str = "triweight",
    bandwidth: str | float = "silverman",
    n_boot: int = 200,
    level: float = 0.95,
    band: str | None = "corrected",
    rng: Any = None,
    progress: Progress | None = None,
    notion: Notion,
    label: Any = None,
) -> ReliabilityCurve:
    """Make the curve of one problem; options as for `calibrant.reliability_curve`.

    By rank there is one kernel and one band, without resamples: `kernel`, `bandwidth` and the bootstrapped
    band are for the method "density" alone. Several curves that have one seed share a generator.

    Examples
    --------
    >>> from calibrant.evidence import Sample
    >>> from calibrant.questions.notions import named
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(1000)
    >>> sample = Sample(score, rng.random(1000) < score**2)
    >>> curve = curve_of(sample, method="ranks", notion=named("class"), label=1)
    >>> curve
    ReliabilityCurve(class 1, n=1000, ECE 0.1499, ranks)
    >>> print("\\n".join(str(curve).splitlines()[:4]))
    Reliability curve of class 1, n=1000, ECE 0.1499
    by rank, 95% corrected band
    score  frequency    low   high  rows
      0.1      0.018  0.000  0.037   100
    """
    inputs.check_choice("method", method, METHODS)
    n_boot, level = inputs.positive_int("n_boot", n_boot, minimum=0), inputs.level(level)
    if band is not None:
        inputs.check_choice("band", band, BANDS)
    if method == "density":
        estimator = Density(bandwidth, kernel)  # type: ignore[arg-type]
        generator = inputs.generator(rng)
        return _by_density(
            evidence, estimator, n_boot, level, band, generator, progress, notion=notion.name, label=label
        )
    own = 'method="ranks" has its own'
    if kernel != "triweight":
        raise InputError("kernel", "be left alone", kernel, hint=own)
    if bandwidth != "silverman":
        raise InputError("bandwidth", "be left alone", bandwidth, hint=own)
    if band == "bootstrap":
        raise InputError("band", 'be "corrected" or None', band, hint=own)
    return _by_rank(evidence, level, band, notion=notion.name, label=label)


def _by_density(
    evidence: Evidence,
    estimator: Density,
    n_boot: int,
    level: float,
    band: str | None,
    rng: np.random.Generator,
    progress: Progress | None,
    **about: Any,
) -> ReliabilityCurve:
    """Smooth over neighbouring scores."""
    if isinstance(evidence, Sample) and evidence.shape[-1] > CELLS_FROM:
        evidence = Cells.of(evidence)
    fit = estimator.fit_alike(evidence)
    point, nearby = fit.frequency, fit.nearby
    probability, low, high = point, None, None
    if n_boot:
        drawn = _resampled(evidence, estimator, fit, n_boot, rng, progress)
        low, probability, high = _quantiles(drawn, [(1 - level) / 2, 0.5, (1 + level) / 2])
        low, probability, high = (
            np.where(np.isnan(point), np.nan, part) for part in (low, probability, high)
        )
    if band is None:
        low = high = None
    elif band == "corrected":
        width = max(float(fit.bandwidth), NARROWEST)
        low, high = corrected(evidence, width, fit.score, nearby, level)
        low, high = np.minimum(low, probability), np.maximum(high, probability)
    return ReliabilityCurve(
        score=fit.score,
        probability=probability,
        point=point,
        low=low,
        high=high,
        density=fit.density,
        n_eff=nearby,
        bandwidth=float(fit.bandwidth),
        floored=bool(fit.floored),
        kernel=fit.kernel,
        support=_support(evidence),
        histogram=counts(evidence),
        error=float(fit.error()),
        n=float(evidence.n),
        n_boot=n_boot,
        level=level,
        band=None if low is None else band,
        **about,
    )


def _by_rank(evidence: Evidence, level: float, band: str | None, **about: Any) -> ReliabilityCurve:
    """Smooth over neighbouring rows."""
    groups, (score, probability, low, high, nearby) = by_rank(evidence, level)
    density = Density().fit_alike(evidence)
    gap = np.interp(groups.score, score, probability - score)
    # Beyond its last node a curve goes on; nodes without a value end it.
    before = np.nextafter(score[:1], 0.0)[score[:1] > 0]
    after = np.nextafter(score[-1:], 1.0)[score[-1:] < 1]
    score = np.concatenate([before, score, after])
    probability, low, high = (
        np.pad(part, (before.size, after.size), constant_values=np.nan) for part in (probability, low, high)
    )
    nearby = np.pad(nearby, (before.size, after.size))
    return ReliabilityCurve(
        score=score,
        probability=probability,
        point=probability,
        low=None if band is None else low,
        high=None if band is None else high,
        density=np.interp(score, density.score, density.density),
        n_eff=nearby,
        bandwidth=float(density.bandwidth),
        floored=False,
        kernel="ranks",
        support=_support(evidence),
        histogram=counts(evidence),
        error=float((groups.w * np.abs(gap)).sum() / groups.w.sum()),
        n=float(evidence.n),
        n_boot=0,
        level=level,
        band=band,
        **about,
    )


def _support(evidence: Evidence) -> tuple[float, float]:
    """Return where scores can lie, and do."""
    return min(evidence.support[0], float(evidence.ranked(np.zeros(1))[0])), evidence.support[1]


def _resampled(
    evidence: Evidence,
    estimator: Density,
    fit: DensityFit,
    n_boot: int,
    rng: np.random.Generator,
    progress: Progress | None,
) -> Array:
    """Draw the curves of bootstrap resamples, one in each row."""
    # Every resample is smoothed alike: its spread is that of the data, not of the bandwidth.
    again = Density(max(float(fit.bandwidth), NARROWEST), estimator.kernel, estimator.step)
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

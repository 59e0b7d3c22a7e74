"""Equal-mass bins, as many as have increasing frequencies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from calibrant.estimators.base import NORMS, Estimator, Fit, Norm, average
from calibrant.estimators.debiased import Debiased, DebiasedFit
from calibrant.inputs import check_choice
from calibrant.score_data import Array, Bins, ScoreData

# Bins looked at together; enough to make a step of the sweep cheap, few enough for the cache.
TOGETHER = 1 << 15
# The sweep ends here at the latest, unless the frequencies of all tie groups are in order.
MOST = 10_000
# Equal frequencies of two bins may differ by rounding.
LEVEL = 1e-12


@dataclass(frozen=True, eq=False)
class SweepFit(Fit):
    """The bins at which the sweep ended.

    Attributes
    ----------
    n_bins : array
        Number of bins; because of ties some of them may be empty.
    bins : Bins
        Sums of each bin, padded with empty bins if another problem of the batch has more.
    """

    n_bins: Array
    bins: Bins

    def _error(self, norm: Norm) -> Array:
        """Return the mean (l1), root mean square (l2) or largest (max) gap; bins are weighted by mass."""
        return average(self.bins.gap, self.bins.w, norm)


@dataclass(frozen=True, eq=False)
class DebiasedSweepFit(Fit):
    """Debiased fits of all problems, with the numbers of bins at which the sweep ended."""

    n_bins: Array
    parts: list[DebiasedFit]

    @property
    def signed(self) -> Array:
        """Debiased mean gap without truncation at 0; it may be negative."""
        return np.reshape([array.signed for array in self.parts], self.n_bins.shape)

    def _error(self, norm: Norm) -> Array:
        """Return the debiased mean gap (l1) or root mean square (l2), at least 0."""
        return np.reshape([array.error(norm) for array in self.parts], self.n_bins.shape)


@dataclass(frozen=True)
class CumulativeBins:
    """Sums over the tie groups of one problem up to each rank."""

    mass: Array
    score: Array
    positive: Array
    n: float
    slack: float

    def at(self, b: Array, i: Array) -> Array:
        """Return the number of tie groups left of cut i of b; a cut within a group is moved to its start.

        The cuts are those of `adaptive_edges` with `larger_first`.
        """
        tiny = 0.0 if self.n == round(self.n) else 1e-12
        each = np.floor(self.n / b * (1 + tiny))
        more = np.floor((self.n - each * b) * (1 + tiny) + tiny * self.n)
        cut = i * each + np.minimum(i, more)
        return np.searchsorted(self.mass[1:], cut + self.slack * self.n, side="right")

    def sums(self, b: int) -> Array:
        """Return the sums of mass, score and outcome of each of b bins."""
        if b >= self.n:  # as many bins as rows: every run of ties is one
            return np.diff(np.stack([self.mass, self.score, self.positive]))
        place = np.append(self.at(np.array(b), np.arange(b)), self.mass.size - 1)
        place = place[np.concatenate([[True], np.diff(place) > 0])]
        return np.diff(np.stack([self.mass, self.score, self.positive])[:, place])

    def mixed(self) -> tuple[float, float]:
        """Return the share of the mass below the first positive row, and that up to the last negative one."""
        w, wy = np.diff(self.mass), np.diff(self.positive)
        first, last = np.flatnonzero(wy > 0), np.flatnonzero(w - wy > LEVEL * w)
        low = self.mass[first[0]] if first.size else self.mass[-1]
        high = self.mass[last[-1] + 1] if last.size else 0.0
        return low / self.mass[-1], high / self.mass[-1]

    def ordered(self, b: Array) -> Array:
        """Return whether the frequencies of b equal-mass bins are non-decreasing, for several b at once.

        Below the first positive row all frequencies are 0 and above the last negative row all are 1, so only
        the bins between them are compared.
        """
        low, high = self.mixed()
        first = np.maximum(np.floor(b * low) - 1, 0).astype(np.intp)
        last = np.minimum(np.ceil(b * high) + 1, b).astype(np.intp)
        count = np.maximum(last - first, 0) + 1
        sweep = np.repeat(np.arange(b.size), count)
        index = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count) + first[sweep]
        place = self.at(b[sweep], index)
        place[index >= b[sweep]] = self.mass.size - 1
        full = np.flatnonzero((np.diff(place) > 0) & (np.diff(sweep) == 0))
        left, right, sweep = place[full], place[full + 1], sweep[full]
        rate = (self.positive[right] - self.positive[left]) / (self.mass[right] - self.mass[left])
        falls = (np.diff(rate) < -LEVEL) & (np.diff(sweep) == 0)
        ordered = np.ones(b.size, dtype=bool)
        ordered[sweep[1:][falls]] = False
        return ordered

    def last(self) -> int:
        """Return the largest number of bins before the frequencies decrease for the first time."""
        most = max(1, int(self.n * (1 + 1e-12)))
        rate = np.diff(self.positive) / np.diff(self.mass)
        if np.all(np.diff(rate) >= -LEVEL):
            return most
        first, most = 2, min(most, MOST)
        while first <= most:
            stop = min(most, first + max(1, min(2 * first, TOGETHER // first)))
            ordered = self.ordered(np.arange(first, stop + 1))
            if not ordered.all():
                return int(first + np.argmin(ordered) - 1)
            first = stop + 1
        return max(1, most)


@dataclass(frozen=True)
class Sweep(Estimator):
    """Calibration error with a monotonic sweep over the number of equal-mass bins (Roelofs et al. 2022).

    The number of bins is increased from 2 as long as the frequencies of the bins are non-decreasing. Tied
    scores are in one bin. If the frequencies of all tie groups are non-decreasing, every tie group is a bin;
    otherwise the sweep ends at 10,000 bins at the latest.

    Parameters
    ----------
    debiased : bool
        Whether to subtract the expected contribution of noise, as Kaengsepp et al. (2022) do.

    See Also
    --------
    Binned : A fixed number of bins.
    estimator_names : Names of all estimators.
    ece : Calibration error by any estimator.

    Examples
    --------
    >>> from calibrant.score_data import Sample
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(1000)
    >>> fit = Sweep().fit(Sample(score, rng.random(1000) < score))
    >>> int(fit.n_bins)
    8
    """

    debiased: bool = False

    name = "sweep"
    short = "sw"
    parameter = "debiased"
    summary = "equal mass, as many bins as stay in order"

    @property
    def norms(self) -> tuple[Norm, ...]:
        """Norms that are defined."""
        return ("l1", "l2") if self.debiased else NORMS

    @classmethod
    def parse(cls, parameter: str | None) -> Self:
        """Read whether the gaps are debiased."""
        check_choice("parameter of sweep", parameter, (None, "debiased"))
        return cls(debiased=parameter == "debiased")

    def __str__(self) -> str:
        return "sweep:debiased" if self.debiased else "sweep"

    def fit(self, data: ScoreData) -> SweepFit | DebiasedSweepFit:
        """Sweep every problem separately."""
        tie_groups = data.tie_groups()
        totals = tie_groups.bins
        # Counts are exact, importance weights are not.
        slack = 0.0 if np.all(data.n == totals.w.sum(axis=-1)) else 1e-9
        n_bins, bin_sums = np.empty(data.batch, dtype=np.intp), {}
        for entry in np.ndindex(data.batch):
            occupied = totals.w[entry] > 0
            n = float(data.n[entry])
            parts = np.stack([array[entry][occupied] for array in (totals.w, totals.ws, totals.wy)])
            cumulative = np.pad(np.cumsum(parts * (n / parts[0].sum()), axis=-1), [(0, 0), (1, 0)])
            cumulative_bins = CumulativeBins(cumulative[0], cumulative[1], cumulative[2], n, slack)
            n_bins[entry] = cumulative_bins.last()
            bin_sums[entry] = cumulative_bins.sums(int(n_bins[entry]))
        if self.debiased:
            fits = [Debiased(int(n_bins[entry])).fit(data[entry]) for entry in bin_sums]
            return DebiasedSweepFit(self, n_bins, fits)
        sums = np.zeros((3, *data.batch, max(array.shape[-1] for array in bin_sums.values())))
        for entry, array in bin_sums.items():
            sums[:, *entry, : array.shape[-1]] = array
        return SweepFit(self, n_bins, Bins(*sums))

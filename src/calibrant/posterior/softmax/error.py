"""Canonical calibration error: posterior expectation, corrected by held-out rows.

With eta(s) = (P(Y = k | S = s))_k the errors are

    l1 = E sum_k |eta_k - s_k|,    l2 = sqrt(E sum_k (eta_k - s_k)^2),    mul = E sum_k eta_k |eta_k - s_k|.

The value is P(gap) times the mean of two forms: the posterior expectation with a correction by held-out rows,
and the error of held-out predictions with a first-order correction.

See docs/methods/canonical-calibration.md, "Value" and "Interval and bound".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from calibrant.parallel import cached_property
from calibrant.posterior.process import softmax
from calibrant.posterior.softmax.fit import SoftmaxPosterior
from calibrant.posterior.softmax.local import LocalFrequencyPair
from calibrant.score_data import Array
from calibrant.score_data.simplex import Simplex
from calibrant.settings import SOFTMAX

NORMS = ("l1", "l2", "mul")
# Largest possible errors (the square, for l2).
MAX_ERROR = {"l1": 2.0, "l2": 2.0, "mul": 1.0}
# Posterior draws (Monte Carlo precision): number of draws of the block sizes, and of the coefficients given
# each.
SIZE_DRAWS, COEFFICIENT_DRAWS = 8, 12
# Number of scores (rows times classes) at which the draws are evaluated.
DRAW_SCORES = 50_000
# Number of scores (rows times classes) in memory at once.
CHUNK = 1 << 20
# Gaps below this (in probability) are rounding errors.
ROUNDING_GAP = 1e-9
# Number of cross-validation folds.
FOLDS = 10
# Share of the distance to the lower value that the upper end adds.
LOCAL_DIFFERENCE_FACTOR = 0.5
# Both factors for the upper end of the square of l2.
SQUARE_FACTOR = 1.5


class ErrorForms(NamedTuple):
    """One of the errors (the square, for l2) in its two forms.

    Attributes
    ----------
    expected, spread : float
        Mean and standard deviation over posterior draws.
    residual_correction, residual_correction_error : float
        First-order correction by held-out rows, and its standard error.
    held_out, held_out_error : float
        Error of the held-out predictions with the first-order correction, and its standard error.
    """

    expected: float
    spread: float
    residual_correction: float
    residual_correction_error: float
    held_out: float
    held_out_error: float

    @property
    def shrunken_correction(self) -> float:
        """The correction `residual_correction`, shrunk by its noise."""
        return (
            max(0.0, 1 - self.residual_correction_error**2 / max(self.residual_correction**2, 1e-300))
            * self.residual_correction
        )

    @property
    def corrected(self) -> float:
        """The posterior expectation plus the shrunken correction by held-out rows."""
        return self.expected + self.shrunken_correction

    @property
    def value(self) -> float:
        """The error, given that there is a gap."""
        held_out = SOFTMAX.held_out_weight
        return (1 - held_out) * self.corrected + held_out * self.held_out

    def ends(self, z: float, p_gap: float, *, squared: bool) -> tuple[float, float]:
        """Return the ends of an interval of z standard errors, given the posterior probability of a gap.

        Above the larger of the two forms it is extended by a multiple of the standard error and of their
        difference, which are larger for the square of `l2`.
        """
        if p_gap <= 0.5:
            # No gap is more probable: the upper end is that of the posterior given a gap.
            return 0.0, self.expected + SOFTMAX.interval_factor * z * self.spread
        forms = self.corrected, self.held_out
        margin, difference = z * max(self.held_out_error, self.spread), abs(forms[0] - forms[1])
        low = min(forms) - SOFTMAX.interval_factor * margin
        factors = SOFTMAX.interval_factor, SOFTMAX.difference_factor
        wider, further = (SQUARE_FACTOR, SQUARE_FACTOR) if squared else factors
        high = max(forms) + wider * margin + further * difference
        return max(low, 0.0), max(high, 0.0)


class LocalErrorForms(NamedTuple):
    """One of the errors (the square, for l2) where local frequencies predict better than the blocks.

    Attributes
    ----------
    at_best_bandwidth, at_smaller_bandwidth : float
        Expected error at the bandwidth that predicts best, which understates the uncertainty, and at the next
        smaller one, which overstates it.
    held_out, held_out_error : float
        Error of the held-out predictions with the first-order correction, and its standard error.
    """

    at_best_bandwidth: float
    at_smaller_bandwidth: float
    held_out: float
    held_out_error: float

    @property
    def expected(self) -> float:
        """The mean of the two expectations."""
        return (self.at_best_bandwidth + self.at_smaller_bandwidth) / 2

    @property
    def value(self) -> float:
        """The error."""
        return self.expected

    def ends(self, z: float, p_gap: float, *, squared: bool) -> tuple[float, float]:
        """Return the ends of an interval of z standard errors.

        The lower end is confirmed by held-out rows, whatever the shape of the gap. The upper end allows for
        gaps that no prediction shows.
        """
        margin = SOFTMAX.interval_factor * z * self.held_out_error
        low, high = (
            min(self.held_out, self.at_best_bandwidth),
            max(self.at_best_bandwidth, self.at_smaller_bandwidth),
        )
        return max(low - margin, 0.0), max(high + margin + LOCAL_DIFFERENCE_FACTOR * (high - low), 0.0)


@dataclass(frozen=True, eq=False)
class CanonicalError:
    """Canonical calibration errors of a data set.

    Attributes
    ----------
    posterior : SoftmaxPosterior
    held_out : array (rows, classes)
        Cross-validated probabilities of each row.
    parts : dict from norm to ErrorForms or LocalErrorForms
    by_class : list of ErrorForms or LocalErrorForms
        E |eta_k - s_k| of each class, in its two forms.
    over : array (classes,)
        Share of each class's error that is due to scores that are too high.
    row_contributions : dict from norm to array (rows,)
        Contribution of each row to the error of the held-out predictions.
    local : LocalFrequencyPair or None
        Local frequencies, where they predict better than the blocks.
    """

    posterior: SoftmaxPosterior
    held_out: Array
    parts: Mapping[str, ErrorForms | LocalErrorForms]
    by_class: Sequence[ErrorForms | LocalErrorForms]
    over: Array
    row_contributions: dict[str, Array]
    local: LocalFrequencyPair | None = None

    @classmethod
    def of(cls, posterior: SoftmaxPosterior) -> CanonicalError:
        """Compute the errors from a posterior."""
        rows = posterior.likelihood.rows
        n, classes = rows.score.shape
        x = posterior.held_out(rows.folds(FOLDS))
        comparison = _compare_held_out(rows, x)
        local = LocalFrequencyPair.of(rows, x, FOLDS)
        if local is not None:
            return cls._of_neighbours(posterior, x, comparison, local)
        n_subset = min(n, max(1000, DRAW_SCORES // classes))
        theta = posterior.draws(np.random.default_rng(0), SIZE_DRAWS, COEFFICIENT_DRAWS)
        drawn, drawn_by_class = _posterior_errors(posterior, theta, n_subset)
        parts, row_contributions = {}, {}
        for j, norm in enumerate(NORMS):
            plug_in, residual_correction = comparison.plug_in[j], comparison.residual_correction[j]
            # The rows of the subset may differ from all rows; held-out predictions show by how much.
            shift = rows.mean(plug_in)[0] - rows[:n_subset].mean(plug_in[:n_subset])[0]
            row_contributions[norm] = plug_in + residual_correction
            expected, spread = float(drawn[:, j].mean()), float(drawn[:, j].std())
            parts[norm] = ErrorForms(
                max(expected + shift, 0.0),
                spread,
                *rows.mean(residual_correction),
                *rows.mean(row_contributions[norm]),
            )
        by_class = [
            ErrorForms(
                float(draws.mean()),
                float(draws.std()),
                residual_correction,
                error,
                plug_in + residual_correction,
                error,
            )
            for draws, plug_in, residual_correction, error in zip(
                drawn_by_class.T, *comparison.by_class, strict=True
            )
        ]
        return cls(posterior, x, parts, by_class, comparison.over, row_contributions)

    @classmethod
    def _of_neighbours(
        cls,
        posterior: SoftmaxPosterior,
        x: Array,
        comparison_of_blocks: HeldOutComparison,
        local: LocalFrequencyPair,
    ) -> CanonicalError:
        """Compute the errors from local frequencies around the held-out predictions x."""
        rows, count = posterior.likelihood.rows, len(local.at_best_bandwidth.concentration)
        subset = rows[:count]
        comparison = _compare_held_out(subset, local.at_best_bandwidth.mean)
        (at_best_bandwidth, best_by_class), (at_smaller_bandwidth, smaller_by_class) = (
            each.errors(subset.score) for each in (local.at_best_bandwidth, local.at_smaller_bandwidth)
        )
        parts, row_contributions = {}, {}
        for j, norm in enumerate(NORMS):
            # The rows of the subset may differ from all rows; held-out predictions of the blocks show by how
            # much.
            shift = (
                rows.mean(comparison_of_blocks.plug_in[j])[0]
                - subset.mean(comparison_of_blocks.plug_in[j][:count])[0]
            )
            each = comparison_of_blocks.plug_in[j] + comparison_of_blocks.residual_correction[j]
            each[:count] += (comparison.plug_in[j] + comparison.residual_correction[j] - each[:count]) * (
                rows.n / subset.n
            )
            row_contributions[norm] = each
            best_value, smaller_value = (
                max(subset.mean(form[j])[0] + shift, 0.0)
                for form in (at_best_bandwidth, at_smaller_bandwidth)
            )
            parts[norm] = LocalErrorForms(best_value, smaller_value, *rows.mean(each))
        by_class = [
            LocalErrorForms(best_error, smaller_error, plug_in + residual_correction, error)
            for best_error, smaller_error, plug_in, residual_correction, error in zip(
                subset.weight @ best_by_class / subset.n,
                subset.weight @ smaller_by_class / subset.n,
                *comparison.by_class,
                strict=True,
            )
        ]
        held_out = np.concatenate([local.at_best_bandwidth.mean, x[count:]])
        return cls(posterior, held_out, parts, by_class, comparison.over, row_contributions, local)

    @property
    def gap_probability(self) -> float:
        """Posterior probability of a gap; 1 where local frequencies show one."""
        return self.posterior.gap_probability if self.local is None else 1.0

    def value(self, norm: str) -> float:
        """Return the error."""
        value = min(self._posterior_mean(self.parts[norm]), MAX_ERROR[norm])
        return float(np.sqrt(value)) if norm == "l2" else value

    def _posterior_mean(self, forms: ErrorForms | LocalErrorForms) -> float:
        """Return P(gap) times the error given a gap, at least 0."""
        return self.gap_probability * max(forms.value, 0.0)

    @cached_property
    def class_values(self) -> Array:
        """E |eta_k - s_k| of each class; they sum to l1."""
        each = np.array([self._posterior_mean(forms) for forms in self.by_class])
        total = each.sum()
        return np.minimum(each * (self.value("l1") / total), 1.0) if total > 0 else each

    def class_interval(self, k: int, level: float) -> tuple[float, float]:
        """Return a confidence interval for the error of one class."""
        low, high = self._ends(self.by_class[k], level)
        value = float(self.class_values[k])
        return min(low, value), max(min(high, 1.0), value)

    def interval(self, norm: str, level: float) -> tuple[float, float]:
        """Return a confidence interval for the error."""
        squared = norm == "l2"
        low, high = self._ends(self.parts[norm], level, squared=squared)
        high = min(high, MAX_ERROR[norm])
        if squared:
            low, high = float(np.sqrt(low)), float(np.sqrt(high))
        value = self.value(norm)
        return min(low, value), max(high, value)

    def _ends(
        self, forms: ErrorForms | LocalErrorForms, level: float, *, squared: bool = False
    ) -> tuple[float, float]:
        """Return the ends of an interval at this level."""
        z = NormalDist().inv_cdf((1 + level) / 2)
        return forms.ends(z, self.gap_probability, squared=squared)


def _posterior_errors(posterior: SoftmaxPosterior, theta: Array, n_subset: int) -> tuple[Array, Array]:
    """Return the errors of each draw over the first rows, (draws, 3), and by class (draws, classes)."""
    rows = posterior.likelihood.rows
    total, by_class, total_weight = np.zeros((len(theta), 3)), np.zeros((len(theta), rows.n_classes)), 0.0
    for index, at in posterior.likelihood.chunks(slice(0, n_subset)):
        p, weight = rows.score[index], rows.weight[index]
        total_weight += float(weight.sum())
        for j, each in enumerate(theta):
            if each.any():
                q = softmax(posterior.blocks.logits(at, each))
                d = np.abs(q - p)
                by_class_sum = weight @ d
                by_class[j] += by_class_sum
                square, mul = (weight @ np.einsum("ik,ik->i", d, other) for other in (d, q))
                total[j] += by_class_sum.sum(), square, mul
    return total / total_weight, by_class / total_weight


class HeldOutComparison(NamedTuple):
    """Held-out predictions compared with scores and labels.

    Attributes
    ----------
    plug_in, residual_correction : arrays (3, rows)
        Errors of the predictions (plug-in), and their first-order corrections by the labels: derivative of
        the error at the prediction, times observed minus predicted.
    by_class : tuple of arrays (classes,)
        For l1: means of both by class, and the standard error of their sum.
    over : array (classes,)
        Share of each class's error where the scores are above the predictions.
    """

    plug_in: Array
    residual_correction: Array
    by_class: tuple[Array, Array, Array]
    over: Array


def _compare_held_out(rows: Simplex, x: Array) -> HeldOutComparison:
    """Compare scores with held-out predictions x, (rows, classes), and labels."""
    n, classes = x.shape
    plug_in, residual_correction = np.empty((3, n)), np.empty((3, n))
    sums = np.zeros((4, classes))
    step = max(1, CHUNK // classes)
    for a in range(0, n, step):
        block = slice(a, min(a + step, n))
        q, code, weight = x[block], rows.code[block], rows.weight[block]
        i = np.arange(len(q))
        d = q - rows.score[block]
        size = np.abs(d)
        sign = np.sign(d) * (size > ROUNDING_GAP)
        plug_in[:, block] = size.sum(axis=1), np.einsum("ik,ik->i", d, d), np.einsum("ik,ik->i", q, size)
        for j, slope in enumerate((sign, 2 * d, size + q * sign)):
            residual_correction[j, block] = slope[i, code] - np.einsum("ik,ik->i", slope, q)
        correction = -sign * q
        correction[i, code] += sign[i, code]
        corrected = size + correction
        sums += (
            weight @ size,
            weight @ correction,
            rows.square[block] @ (corrected * corrected),
            weight @ np.maximum(-d, 0),
        )
    mean, correction, square, over = sums / rows.n
    variance = np.maximum(square - (mean + correction) ** 2 * rows.square.sum() / rows.n, 0.0) / rows.n
    share = np.divide(over, mean, out=np.full(classes, 0.5), where=mean > 0)
    return HeldOutComparison(plug_in, residual_correction, (mean, correction, np.sqrt(variance)), share)

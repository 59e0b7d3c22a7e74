"""Hold the tuned numbers of the methods: what each one means, how it was chosen, and what changing it does.

Numbers that follow from arithmetic (rounding tolerances, chunk sizes) stay beside the code that uses them.
Code reads a setting where it needs it, as an attribute of an instance below. A study can change one, and must
clear the caches of functions (`functools.lru_cache`) that have read it.
``benchmarks/sensitivity.py`` measures the effect of each setting, and ``docs/methods/settings.md`` shows it.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

_Value = TypeVar("_Value")


def setting(default: _Value, meaning: str, study: str, effect: str = "") -> _Value:
    """Return a field of a settings class, with its documentation as metadata.

    Parameters
    ----------
    default : object
        Its value.
    meaning : str
        What it is, in one sentence.
    study : str
        What chose it: a benchmark of this repository, a reference, or "convention".
    effect : str
        What 0.75 and 1.25 times the value change, as ``benchmarks/sensitivity.py`` measured it.
    """
    documentation = {"meaning": meaning, "study": study, "effect": effect}
    made: Any = field(default=default, metadata=documentation)
    return made


@lru_cache(maxsize=64)
def geometric(smallest: float, largest: float, count: int) -> tuple[float, ...]:
    """Return `count` log-spaced values from the smallest to the largest.

    >>> geometric(0.25, 1.0, 3)
    (0.25, 0.5, 1.0)
    """
    return tuple(np.geomspace(smallest, largest, count).tolist())


# -- posteriors ----------------------------------------------------------------------------------------------


# Studies that chose several settings.
_ESTIMATOR = "training seeds of benchmarks/exact.py, kaengsepp.py and pipelines.py"
_NONE = "not studied before; see effect"


@dataclass(frozen=True)
class PriorSettings:
    """Prior of the calibration gap on the scale of probabilities (package ``posterior``).

    The default estimator averages over no gap, a smooth gap (Gaussian process), a local gap (dyadic
    partition) and, where rows share scores, a smooth gap with one random effect for each distinct score.
    Standard deviations are in units of probability. See docs/methods/default-estimator.md.
    """

    # Model average
    prior_probability_of_calibration: float = setting(
        0.03, "Prior probability of no gap, of a single problem.", _ESTIMATOR
    )
    prior_probability_of_calibrated_class: float = setting(
        0.13, "Prior probability of no gap, of each class in classwise calibration.", _ESTIMATOR
    )
    prior_probability_of_unpooled_classes: float = setting(
        0.2,
        "Prior probability that the gaps of the classes have unrelated sizes and roughnesses.",
        _ESTIMATOR,
    )
    local_weight: float = setting(
        0.16, "Prior probability of the local component, given a gap, if no rows share scores.", _ESTIMATOR
    )
    local_weight_reduction_by_ties: float = setting(
        0.98, "Relative reduction of the local weight if all rows share scores.", _ESTIMATOR
    )
    counted_uncertainty: float = setting(
        0.75,
        "Share counted of what the posterior uncertainty of the smooth component adds to the absolute gap.",
        _ESTIMATOR,
    )
    # Variance of the outcomes
    pilot_bandwidth: float = setting(
        0.28868,
        "Bandwidth of the pilot smooth (share of the ranks), times (0.75 n)^(-1/5).",
        "Silverman's rule for uniform ranks (Silverman, 1986)",
    )
    largest_pilot_bandwidth: float = setting(
        12.0, "Largest bandwidth of the pilot smooth, in rows.", _ESTIMATOR
    )
    pilot_variance_weight: float = setting(
        0.5,
        "Weight of the pilot smooth in the variance of an outcome; the scores have the rest.",
        _ESTIMATOR,
    )
    smallest_outcome_variance: float = setting(
        0.01, "Added to the variance of an outcome, divided by sqrt(n).", _ESTIMATOR
    )
    # Smooth component
    probability_of_no_shape: float = setting(
        0.02, "Prior probability that a smooth gap is constant.", _ESTIMATOR
    )
    probability_of_no_mean: float = setting(
        0.1, "Prior probability that a smooth gap has mean zero.", _ESTIMATOR
    )
    smallest_smooth_sd: float = setting(
        0.0125, "Smallest standard deviation of a smooth gap, or the noise if that is less.", _ESTIMATOR
    )
    largest_smooth_sd: float = setting(
        0.5, "Largest standard deviation of a smooth gap around its mean.", _ESTIMATOR
    )
    largest_mean_sd: float = setting(
        0.3125, "Largest standard deviation of the mean of a smooth gap.", _ESTIMATOR
    )
    smooth_sd_count: int = setting(8, "Number of standard deviations of a smooth gap.", _ESTIMATOR)
    roughness: tuple[float, ...] = setting(
        (1.25, 5.0, 16.0), "Roughnesses of a smooth gap, in cosine frequencies.", _ESTIMATOR
    )
    roughness_ratio: float = setting(
        4.0, "Ratio of further roughnesses, which are added as the number of cells allows.", _ESTIMATOR
    )
    cells_per_roughness: float = setting(
        1.5, "Least number of cells for each unit of a further roughness.", _ESTIMATOR
    )
    roughness_weight_ratio: float = setting(
        0.6, "Ratio of the prior weights of successive roughnesses.", _ESTIMATOR
    )
    spectrum_exponent: float = setting(3.0, "Exponent of the spectrum of a smooth gap.", _ESTIMATOR)
    # Local component
    probability_of_final_range: float = setting(
        0.5, "Prior probability that a range of cells is not split.", _ESTIMATOR
    )
    probability_of_no_gap_sparse: float = setting(
        0.85, "Prior probability that a final range has no gap, in the sparse partition.", _ESTIMATOR
    )
    probability_of_no_gap_dense: float = setting(
        0.05, "Prior probability that a final range has no gap, in the dense partition.", _ESTIMATOR
    )
    smallest_local_sd: float = setting(0.0125, "Smallest standard deviation of a local gap.", _ESTIMATOR)
    largest_local_sd: float = setting(0.5, "Largest standard deviation of a local gap.", _ESTIMATOR)
    constant_sd_count: int = setting(5, "Number of standard deviations of a constant local gap.", _ESTIMATOR)
    process_sd_count: int = setting(4, "Number of standard deviations of a local process.", _ESTIMATOR)
    process_weight: float = setting(
        0.5, "Prior probability of a process rather than a constant gap in a range.", _ESTIMATOR
    )
    shortest_process: int = setting(8, "Shortest range that may have a process, in cells.", _ESTIMATOR)
    process_roughness: float = setting(
        2.0, "Roughness of a local process, in cosine frequencies of the range.", _ESTIMATOR
    )
    process_spectrum_exponent: float = setting(
        3.0, "Exponent of the spectrum of a local process.", _ESTIMATOR
    )
    process_probability_of_no_mean: float = setting(
        0.2, "Prior probability that a local process has mean zero.", _ESTIMATOR
    )
    process_probability_of_no_shape: float = setting(
        0.5, "Prior probability that a local process is constant.", _ESTIMATOR
    )
    # Score effects
    smallest_correlation: float = setting(
        0.001, "Smallest intraclass correlation of rows that share a score.", _ESTIMATOR
    )
    largest_correlation: float = setting(
        0.5, "Largest intraclass correlation of rows that share a score.", _ESTIMATOR
    )
    correlation_count: int = setting(32, "Number of intraclass correlations.", _ESTIMATOR)
    median_correlation: float = setting(0.05, "Prior median of the correlation (log-normal).", _ESTIMATOR)
    log_sd_of_correlation: float = setting(
        1.0, "Prior standard deviation of the log of the correlation.", _ESTIMATOR
    )
    frequency_powers: tuple[float, ...] = setting(
        (0.0, 0.5, 1.0, 1.5),
        "Powers of the frequency of a score with which its correlation may fall.",
        _ESTIMATOR,
    )
    many_pairs: int = setting(
        3000, "Least number of pairs of rows with equal scores to use all frequency powers.", _ESTIMATOR
    )
    effects_weight_all_tied: float = setting(
        0.6, "Prior probability of score effects if all rows share scores.", _ESTIMATOR
    )
    effects_weight_few_tied: float = setting(
        0.2, "Prior probability of score effects if hardly any rows share scores.", _ESTIMATOR
    )
    effects_weight_rounded: float = setting(
        0.3, "Largest prior probability of score effects if scores look rounded.", _ESTIMATOR
    )
    visible_correlation: float = setting(
        0.1,
        "Correlation that the pairs must reveal; otherwise effects get less prior weight.",
        _ESTIMATOR,
    )
    rounding_unit: float = setting(
        0.001, "Scores look rounded if all of them are multiples of this.", _ESTIMATOR
    )
    few_scores: int = setting(
        32, "Largest number of distinct scores that are few, and do not look rounded.", _ESTIMATOR
    )
    rows_per_few_scores: int = setting(3, "Least mean number of rows per score of few scores.", _NONE)
    heavy_share: float = setting(
        0.05,
        "Scores with this share of the rows are left out of the share of repeated scores.",
        _ESTIMATOR,
    )
    extreme_distance: float = setting(
        0.001, "Scores this close to 0 or 1 are left out of the share of repeated scores.", _ESTIMATOR
    )
    rare_rows: float = setting(4.5, "Repeated scores with fewer rows are rare.", _ESTIMATOR)
    rare_factor: float = setting(
        2.0,
        "Unrepeated rows count as repeated up to this many times the rows of rare scores.",
        _ESTIMATOR,
    )
    smallest_repeated_share: float = setting(
        0.05, "Share of repeated scores below which unrepeated scores have no effects.", _NONE
    )
    few_rows: int = setting(
        10, "Largest number of rows of a score that may be copies of one case.", _ESTIMATOR
    )
    copied_variance_ratio: float = setting(
        0.1, "Rows are copies if outcomes vary less than this share of their variance.", _ESTIMATOR
    )
    copied_smallest_variance: float = setting(
        1.0, "Total variance of outcomes from which copies can be recognized.", _ESTIMATOR
    )
    smallest_expected_outcomes: float = setting(
        0.25, "Smallest mean probability of score effects, times n.", _ESTIMATOR
    )
    # Curves that show each distinct score
    most_single_scores: int = setting(
        128,
        "Largest number of scores that a curve shows one by one if effects are probable.",
        _NONE,
    )
    single_scores_share: float = setting(
        0.95, "Share of the rows that must share their score for that.", _NONE
    )
    few_rows_share: float = setting(
        0.9,
        "Share of repeated rows at scores with few rows above which no curve shows them singly.",
        _NONE,
    )

    @property
    def constant_sds(self) -> tuple[float, ...]:
        """Standard deviations of a constant local gap."""
        return geometric(self.smallest_local_sd, self.largest_local_sd, self.constant_sd_count)

    @property
    def process_sds(self) -> tuple[float, ...]:
        """Standard deviations of a local process."""
        return geometric(self.smallest_local_sd, self.largest_local_sd, self.process_sd_count)

    @property
    def correlations(self) -> "np.ndarray[Any, np.dtype[np.float64]]":
        """Intraclass correlations of the prior."""
        return np.array(
            geometric(self.smallest_correlation, self.largest_correlation, self.correlation_count)
        )


@dataclass(frozen=True)
class LogOddsSettings:
    """Prior of P(y = 1 | score) on the log-odds scale (package ``posterior.log_odds``).

    The calibration curve and the default binary calibrator average over parametric maps with and without a
    smooth part, a dyadic partition and, where distinct scores are few, one shift for each score. Standard
    deviations are in log-odds. See docs/methods/calibration-curve.md.
    """

    # Parametric components; weights are relative.
    identity_weight: float = setting(0.15, "Prior weight of the identity.", _NONE)
    shift_weight: float = setting(0.05, "Prior weight of each shift.", _NONE)
    shift_sds: tuple[float, ...] = setting((0.3, 1.0), "Prior standard deviations of shifts.", _NONE)
    temperature_weight: float = setting(0.1, "Prior weight of each temperature.", _NONE)
    temperature_sds: tuple[float, ...] = setting(
        (0.3, 1.5), "Prior standard deviations of the slope of temperatures.", _NONE
    )
    affine_weights: tuple[float, ...] = setting((0.1, 0.12, 0.13), "Prior weights of affine maps.", _NONE)
    affine_sds: tuple[float, ...] = setting(
        (0.2, 0.6, 2.0), "Prior standard deviations of shift and slope of affine maps.", _NONE
    )
    beta_weight: float = setting(0.1, "Prior weight of each beta map.", _NONE)
    beta_sds: tuple[float, ...] = setting(
        (0.5, 1.5), "Prior standard deviations of shift and slope of beta maps.", _NONE
    )
    beta_curvature_sds: tuple[float, ...] = setting(
        (0.4, 1.0), "Prior standard deviations of the curvature of beta maps.", _NONE
    )
    identity_bonus: float = setting(
        25.0, "Additional log prior weight of the identity, times n (nats).", _NONE
    )
    temperature_bonus: float = setting(
        100.0,
        "Additional log prior weight of a temperature, times n (nats).",
        "benchmarks/maps.py --models development",
    )
    largest_temperature_bonus: float = setting(
        1.0,
        "Largest additional log prior weight of a temperature (nats).",
        _NONE,
    )
    probability_of_no_label_noise: float = setting(0.7, "Prior probability of no label noise.", _NONE)
    label_noises: tuple[float, ...] = setting(
        (0.005, 0.03, 0.1), "Label noises with equal prior weight.", _NONE
    )
    # Smooth part
    smooth_weight: float = setting(0.2, "Prior weight of all components with a smooth part.", _NONE)
    smooth_sds: tuple[float, ...] = setting((0.15, 0.5, 1.5), "Standard deviations of a smooth part.", _NONE)
    roughness: tuple[float, ...] = setting(
        (1.0, 4.0, 16.0, 2.0), "Roughnesses of the spectra of a smooth part, in cosine frequencies.", _NONE
    )
    spectrum_exponents: tuple[float, ...] = setting(
        (2.0, 2.0, 2.0, 1.0), "Exponents of the spectra of a smooth part.", _NONE
    )
    information_tail: float = setting(
        0.005, "Share of the information on each side where the time linear in log-odds is constant.", _NONE
    )
    # Local components
    partition_weight: float = setting(0.15, "Prior weight of the dyadic partition.", _NONE)
    probability_of_final_range: float = setting(0.5, "Prior probability that a range is not split.", _NONE)
    probability_of_unchanged_range: float = setting(
        0.9, "Prior probability that the scores of a final range are unchanged.", _NONE
    )
    range_shift_sds: tuple[float, ...] = setting(
        (0.3, 1.0, 0.5, 2.0), "Prior standard deviations of the shift of a range.", _NONE
    )
    range_slope_sds: tuple[float, ...] = setting(
        (0.0, 0.0, 0.3, 0.8), "Prior standard deviations of the slope of a range.", _NONE
    )
    range_width_offset: float = setting(
        0.3, "Added to the standard deviation of log-odds in a range, the unit of its slope.", _NONE
    )
    range_position_limit: float = setting(4.0, "Largest position in a range that a slope multiplies.", _NONE)
    score_shift_weight: float = setting(
        0.3, "Prior weight of one shift per score, where distinct scores are few.", _NONE
    )
    score_shift_sds: tuple[float, ...] = setting(
        (0.15, 0.5, 1.5), "Prior standard deviations of the shift of a score.", _NONE
    )
    score_correlations: tuple[float, ...] = setting(
        (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4),
        "Intraclass correlations of rows that share one of many scores.",
        _NONE,
    )
    # Scores of exactly 0 or 1
    default_distance_of_certain_scores: float = setting(
        0.001, "Distance from 0 and 1 of scores of exactly 0 and 1 if there are no other scores.", _NONE
    )
    prior_count_at_certain_scores: float = setting(
        0.5, "Prior number of outcomes of each kind at scores of 0 and 1.", "Jeffreys' prior"
    )

    @property
    def parametric(self) -> "np.ndarray[Any, np.dtype[np.float64]]":
        """Parametric components: sds of shift, slope, curvature; weight; whether one has a smooth part."""
        return np.array(
            [
                (0.0, 0.0, 0.0, self.identity_weight, True),
                *((sd, 0.0, 0.0, self.shift_weight, False) for sd in self.shift_sds),
                *((0.0, sd, 0.0, self.temperature_weight, False) for sd in self.temperature_sds),
                *(
                    (sd, sd, 0.0, weight, k > 0)
                    for k, (sd, weight) in enumerate(zip(self.affine_sds, self.affine_weights, strict=True))
                ),
                *(
                    (sd, sd, curvature, self.beta_weight, k > 0)
                    for k, (sd, curvature) in enumerate(
                        zip(self.beta_sds, self.beta_curvature_sds, strict=True)
                    )
                ),
            ]
        )

    @property
    def label_noise_prior(self) -> dict[float, float]:
        """Prior probability of each label noise; the first is none."""
        share = (1 - self.probability_of_no_label_noise) / len(self.label_noises)
        return {0.0: self.probability_of_no_label_noise, **dict.fromkeys(self.label_noises, share)}


@dataclass(frozen=True)
class SoftmaxSettings:
    """Prior of the class probabilities given a vector of scores (package ``posterior.softmax``).

    A multinomial logistic model has blocks of coefficients, each absent or normal with one of several
    standard deviations. For few classes, frequencies of neighbouring rows replace it where they predict
    better. It gives the canonical calibration error and the default multiclass calibrator. Standard
    deviations are in log probability. See docs/methods/canonical-calibration.md.
    """

    # Blocks
    prior_probability_of_calibration: float = setting(0.235, "Prior probability of no gap.", _NONE)
    probability_of_absent_block: float = setting(0.5, "Prior probability that a block is absent.", _NONE)
    smallest_sd: float = setting(0.03, "Smallest prior standard deviation of a block.", _NONE)
    largest_sd: float = setting(1.5, "Largest prior standard deviation of a block.", _NONE)
    sd_count: int = setting(7, "Number of prior standard deviations of a block.", _NONE)
    roughness: tuple[float, ...] = setting(
        (1.25, 5.0), "Roughnesses of curves, in cosine frequencies.", _NONE
    )
    spectrum_exponent: float = setting(1.5, "Exponent with which standard deviations of curves fall.", _NONE)
    constant_frequency: float = setting(
        0.5, "Frequency of the constant of the shifts of the two largest classes.", _NONE
    )
    most_bumps: int = setting(30, "Largest number of Gaussian bumps.", _NONE)
    rows_per_bump: int = setting(20, "Least number of rows per Gaussian bump.", _NONE)
    bump_width: float = setting(
        1.5, "Squared bandwidth of bumps over the median squared distance to the nearest one.", _NONE
    )
    principal_axes: int = setting(8, "Number of principal axes of the matrix block, for many classes.", _NONE)
    # Value and interval
    folds: int = setting(10, "Number of cross-validation folds.", "convention")
    held_out_weight: float = setting(
        0.5,
        "Weight of the error of held-out predictions; the posterior expectation has the rest.",
        _NONE,
    )
    interval_factor: float = setting(1.25, "Factor by which standard errors of an interval are wider.", _NONE)
    difference_factor: float = setting(
        1.0, "Difference of the two forms of the error that the upper end adds.", _NONE
    )
    square_interval_factor: float = setting(1.5, "Interval factor of the upper end of l2.", _NONE)
    square_difference_factor: float = setting(1.5, "Difference factor of l2.", _NONE)
    # Local frequencies
    largest_bandwidth: float = setting(
        0.64, "Largest bandwidth of neighbours, in whitened log ratios of scores.", _NONE
    )
    bandwidth_count: int = setting(11, "Number of bandwidths, each sqrt(2) times the next.", _NONE)
    smallest_prediction_weight: float = setting(
        2.0**-5, "Smallest prior weight of the held-out prediction, in rows.", _NONE
    )
    largest_prediction_weight: float = setting(
        16.0, "Largest prior weight of the held-out prediction, in rows.", _NONE
    )
    prediction_weight_count: int = setting(10, "Number of prior weights of the held-out prediction.", _NONE)
    smallest_neighbour_share: float = setting(
        0.25, "Least mean of W / (W + 1) over rows, W the weight of neighbours, of a bandwidth.", _NONE
    )
    z_to_use: float = setting(
        3.0, "Gain in Brier score, in standard errors, from which local frequencies are used.", _NONE
    )
    z_to_repeat: float = setting(
        1.5, "Gain in Brier score, in standard errors, from which more neighbours are tried.", _NONE
    )
    smaller_bandwidth_weight: float = setting(
        0.5, "Weight of the expected error at the next smaller bandwidth.", _NONE
    )
    local_difference_factor: float = setting(
        0.5, "Share of the distance to the lower value that the upper end adds.", _NONE
    )
    # Probability transfer
    transfer_error_factor: float = setting(1.3, "Factor of standard errors of probability transfers.", _NONE)
    transfer_difference_factor: float = setting(
        0.25,
        "Share of the difference of the two forms in the standard deviation of a class's gap.",
        _NONE,
    )

    @property
    def sds(self) -> tuple[float, ...]:
        """Prior standard deviations of a block."""
        return geometric(self.smallest_sd, self.largest_sd, self.sd_count)

    @property
    def prediction_weights(self) -> tuple[float, ...]:
        """Prior weights of the held-out prediction."""
        return geometric(
            self.smallest_prediction_weight, self.largest_prediction_weight, self.prediction_weight_count
        )


# -- inference -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class IntervalSettings:
    """Confidence intervals and tests (package ``inference``)."""


# -- calibrators, curves, decisions --------------------------------------------------------------------------


@dataclass(frozen=True)
class MapSettings:
    """Calibrators (package ``maps``)."""


@dataclass(frozen=True)
class CurveSettings:
    """Bands of calibration curves (package ``curves``)."""


@dataclass(frozen=True)
class DecisionSettings:
    """Intervals of decision regret (package ``decisions``)."""


PRIOR = PriorSettings()
LOG_ODDS = LogOddsSettings()
SOFTMAX = SoftmaxSettings()
INTERVAL = IntervalSettings()
MAPS = MapSettings()
CURVES = CurveSettings()
DECISIONS = DecisionSettings()

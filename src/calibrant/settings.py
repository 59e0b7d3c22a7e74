"""Hold the tuned numbers of the methods: what each one means, and how it was chosen.

Numerical constants (grids, iterations, tolerances, numbers of draws and data sets) stay beside the code that
uses them. So do the limits of special cases whose change by 25 % had no effect above the noise of the study.

Code reads a setting where it needs it, as an attribute of an instance below. A study can change one, and must
clear the caches of functions (`functools.lru_cache`) that have read it. ``benchmarks/sensitivity.py``
measures what 0.75 and 1.25 times each value change, and ``docs/methods/settings.md`` shows it.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

_Value = TypeVar("_Value")


def setting(default: _Value, meaning: str, study: str) -> _Value:
    """Return a field of a settings class, with its documentation as metadata.

    Parameters
    ----------
    default : object
        Its value.
    meaning : str
        What it is, in one sentence.
    study : str
        What chose it: a benchmark of this repository, a reference, or "convention".
    """
    made: Any = field(default=default, metadata={"meaning": meaning, "study": study})
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
        0.13,
        "Prior probability of no gap in classwise calibration: of each class, and of all classes together.",
        _ESTIMATOR,
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
    largest_pilot_bandwidth: float = setting(
        12.0,
        "Largest bandwidth of the pilot smooth, in rows if half of the outcomes are positive.",
        _ESTIMATOR,
    )
    pilot_variance_weight: float = setting(
        0.5, "Weight of the pilot smooth in the variance of an outcome; the scores have the rest.", _ESTIMATOR
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
    smallest_sd: float = setting(
        0.0125,
        "Smallest standard deviation of a smooth gap (or the noise if that is less) and of a local gap.",
        _ESTIMATOR,
    )
    largest_sd: float = setting(
        0.5, "Largest standard deviation of a smooth gap around its mean, and of a local gap.", _ESTIMATOR
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
    roughness_weight_ratio: float = setting(
        0.6, "Ratio of the prior weights of successive roughnesses.", _ESTIMATOR
    )
    spectrum_exponent: float = setting(
        3.0, "Exponent of the spectra of smooth gaps, local processes and curves of classes.", _ESTIMATOR
    )
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
    constant_sd_count: int = setting(5, "Number of standard deviations of a constant local gap.", _ESTIMATOR)
    process_sd_count: int = setting(4, "Number of standard deviations of a local process.", _ESTIMATOR)
    shortest_process: int = setting(8, "Shortest range that may have a process, in cells.", _ESTIMATOR)
    process_roughness: float = setting(
        2.0, "Roughness of a local process, in cosine frequencies of the range.", _ESTIMATOR
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
    effects_weight_all_tied: float = setting(
        0.6, "Prior probability of score effects if all rows share scores.", _ESTIMATOR
    )
    effects_weight_few_tied: float = setting(0.2, "The same if hardly any rows share scores.", _ESTIMATOR)
    visible_correlation: float = setting(
        0.1, "Correlation that the pairs must reveal; otherwise effects get less prior weight.", _ESTIMATOR
    )
    heavy_share: float = setting(
        0.05, "Scores with this share of the rows are left out of the share of repeated scores.", _ESTIMATOR
    )

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

    identity_weight: float = setting(
        0.15, "Prior weight of the identity; other parametric components share the rest equally.", _NONE
    )
    sds: tuple[float, ...] = setting(
        (0.3, 1.0),
        "Prior standard deviations of shift, slope, curvature and smooth part, and of the shift of a score.",
        _NONE,
    )
    identity_bonus: float = setting(
        25.0, "Additional log prior weight of the identity, times n (nats): it matters below 100 rows.", _NONE
    )
    temperature_bonus: float = setting(
        100.0,
        "Additional log prior weight of a temperature, times n (nats), at most 1.",
        "benchmarks/maps.py --models development",
    )
    probability_of_no_label_noise: float = setting(0.7, "Prior probability of no label noise.", _NONE)
    label_noises: tuple[float, ...] = setting(
        (0.005, 0.03, 0.1), "Label noises with equal prior weight.", _NONE
    )
    flexible_weight: float = setting(
        0.2,
        "Prior weight of the components with a smooth part, of the partition, and of one shift per score.",
        _NONE,
    )
    # Smooth part
    roughness: tuple[float, ...] = setting(
        (1.0, 4.0, 16.0, 2.0), "Roughnesses of the spectra of a smooth part, in cosine frequencies.", _NONE
    )
    spectrum_exponents: tuple[float, ...] = setting(
        (2.0, 2.0, 2.0, 1.0), "Exponents of the spectra of a smooth part.", _NONE
    )
    # Dyadic partition
    probability_of_final_range: float = setting(0.5, "Prior probability that a range is not split.", _NONE)
    probability_of_unchanged_range: float = setting(
        0.9, "Prior probability that the scores of a final range are unchanged.", _NONE
    )

    @property
    def parametric(self) -> "np.ndarray[Any, np.dtype[np.float64]]":
        """Parametric components: sds of shift, slope, curvature; weight; whether one has a smooth part."""
        weight = (1 - self.identity_weight) / (4 * len(self.sds))
        return np.array([
            (0.0, 0.0, 0.0, self.identity_weight, True),
            *((sd, 0.0, 0.0, weight, False) for sd in self.sds),
            *((0.0, sd, 0.0, weight, False) for sd in self.sds),
            *((sd, sd, 0.0, weight, True) for sd in self.sds),
            *((sd, sd, sd, weight, True) for sd in self.sds),
        ])  # fmt: skip

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
    prior_probability_of_calibration: float = setting(
        0.235, "Prior probability of no gap, and that a map leaves the scores as they are.", _NONE
    )
    probability_of_absent_block: float = setting(0.5, "Prior probability that a block is absent.", _NONE)
    sds: tuple[float, ...] = setting(
        geometric(0.03, 1.5, 7), "Prior standard deviations of a block, log-spaced.", _NONE
    )
    most_bumps: int = setting(30, "Largest number of Gaussian bumps.", _NONE)
    rows_per_bump: int = setting(20, "Least number of rows per Gaussian bump.", _NONE)
    bump_width: float = setting(
        1.5, "Squared bandwidth of bumps over the median squared distance to the nearest one.", _NONE
    )
    # Value and interval
    held_out_weight: float = setting(
        0.5, "Weight of the error of held-out predictions; the posterior expectation has the rest.", _NONE
    )
    interval_factor: float = setting(1.25, "Factor by which standard errors of an interval are wider.", _NONE)
    difference_factor: float = setting(
        1.0, "Difference of the two forms of the error that the upper end adds.", _NONE
    )


# -- inference -----------------------------------------------------------------------------------------------

# Studies of several fields.
_COVERAGE = "benchmarks/coverage.py and pipelines.py, training seeds 0 and 1"
_POWER = "measured by benchmarks/power.py; choice not recorded"
_CLUSTERS = "measured by benchmarks/clusters.py; choice not recorded"
_MAPS = "measured by benchmarks/maps.py; choice not recorded"
_BAND = "measured by benchmarks/curve_band.py; choice not recorded"
_WORDS = "choice of the authors: it changes words, and no estimate"
_REGRET = "measured by benchmarks/decisions.py; choice not recorded"


@dataclass(frozen=True)
class IntervalSettings:
    """Confidence intervals of the calibration error (package ``inference``)."""

    data_sets: int = setting(
        1000,
        "Data sets simulated over the first grid of true errors of one problem, at least 80 for each error.",
        _NONE,
    )
    tail_alpha_factor: float = setting(
        0.75, "Factor of the nominal tail probability, as shapes are learned from the same data.", _COVERAGE
    )
    draw_shrinkage: float = setting(
        0.7, "Share of the posterior standard deviation that smooth shapes are drawn with.", _COVERAGE
    )
    bias_share: float = setting(
        0.3,
        "Share of the bias of the posterior mean that raises the upper end; twice as much lowers the other.",
        _COVERAGE,
    )


@dataclass(frozen=True)
class TestSettings:
    """Calibration tests and null distributions (package ``inference``)."""

    level_shares: tuple[float, ...] = setting(
        (0.3, 0.15, 0.2, 0.15, 0.1, 0.1),
        "Shares of the level: smooth and local Bayes factor, Kuiper range, shift, slope, periodogram.",
        _POWER,
    )
    level_shares_repeated: tuple[float, ...] = setting(
        (0.1, 0.5, 0.15, 0.1, 0.1, 0.05),
        "The same where scores repeat, which makes score effects likely.",
        _POWER,
    )
    pooled_classes_share: float = setting(
        0.8, "Share of the level: all classes pooled; the largest Bayes factor of a class: the rest.", _POWER
    )


@dataclass(frozen=True)
class ClusterSettings:
    """Design effects and tests of clustered rows (``score_data.clusters`` and ``inference.clusters``)."""

    slow_functions: int = setting(2, "Slowest cosines, whose design effects also count singly.", _CLUSTERS)


# -- calibrators, curves, decisions --------------------------------------------------------------------------


@dataclass(frozen=True)
class MapSettings:
    """Calibrators (package ``maps``)."""

    vector_sd: float = setting(
        0.3, "Prior standard deviation of temperature, shift and slope in vector and matrix scaling.", _MAPS
    )
    matrix_sd: float = setting(0.5, "The same of a matrix entry, times the number of classes.", _MAPS)


@dataclass(frozen=True)
class CurveSettings:
    """Bands of calibration curves (package ``curves``)."""

    window: float = setting(
        0.6, "Half-width of the local lines as a share of the rows, times n to the window exponent.", _BAND
    )
    window_exponent: float = setting(1 / 3, "The window falls with n to this power; 1/5 is optimal.", _BAND)
    distance: float = setting(
        2.5, "Half-width of the local lines in log-odds, times n to its exponent.", _BAND
    )
    distance_exponent: float = setting(1 / 7, "That half-width falls with n to this power.", _BAND)
    distance_offset: float = setting(
        0.02, "Added to the distances from 0 and 1 in these log-odds, so that they stay finite.", _BAND
    )
    local_quantile_share: float = setting(
        0.6,
        "Share of the normal quantile at which the local interval of a pointwise band is computed.",
        _BAND,
    )
    full_quantile_rows: float = setting(
        10.0, "Effective local sample size below which the full quantile is used.", _BAND
    )


@dataclass(frozen=True)
class DecisionSettings:
    """Intervals of decision regret, clinical measures and selective prediction (package ``decisions``)."""

    folds: int = setting(5, "Folds of held-out gains.", "convention")
    variance_floor_rows: float = setting(
        2.0, "Rows of the largest possible gain that are added to the variance of a gain.", _REGRET
    )
    block_factor: float = setting(0.25, "Rows of a block, divided by n to the block exponent.", _REGRET)
    block_exponent: float = setting(2 / 3, "The rows of a block grow with n to this power.", _REGRET)
    min_block_rows: float = setting(10.0, "Smallest number of rows of a block.", _REGRET)
    block_noise_share: float = setting(
        0.5, "Share of the gain of blocks of calibrated data that is subtracted.", _REGRET
    )
    block_noise_deviate: float = setting(1.96, "Normal quantile at which that gain is taken.", _REGRET)
    upper_widening: float = setting(
        1.2, "Factor of the standard error of a gain of several classes, for the upper end.", _REGRET
    )


@dataclass(frozen=True)
class ReportSettings:
    """Cautions and wording of results (packages ``assessment``, ``curves`` and ``inference``).

    No estimate, interval or p-value depends on them.
    """

    tolerance: float = setting(0.02, "Calibration error up to which scores are trusted.", _WORDS)
    tolerance_per_rate: float = setting(
        0.5, "Tolerance relative to the base rate of rare outcomes, at most.", _WORDS
    )
    material_regret: float = setting(
        0.05, "Decision regret relative to the cost from which it decides the verdict.", _WORDS
    )
    few_rows: int = setting(100, "Rows below which a caution is printed.", _WORDS)
    few_group_rows: int = setting(30, "Rows of a group below which a caution is printed.", _WORDS)
    few_clusters: int = setting(20, "Clusters below which a caution is printed.", _WORDS)
    width_ratio: float = setting(
        2.0, "Ratio of the widths of two intervals above which a caution is printed.", _WORDS
    )
    one_sided: float = setting(0.8, "Share of the error on one side from which that side is named.", _WORDS)
    rare_frequency: float = setting(
        0.2, "Frequency below which expected cases are compared with observed ones.", _WORDS
    )
    example_rows: int = setting(
        30, "Effective local sample size of a score named as an example, at least.", _WORDS
    )
    assessed_rows: float = setting(
        10.0, "Effective local sample size at which the calibration of a score is assessed, at least.", _WORDS
    )
    wide_interval: float = setting(
        0.25, "Width of an interval from which no score is said to look right.", _WORDS
    )


PRIOR = PriorSettings()
LOG_ODDS = LogOddsSettings()
SOFTMAX = SoftmaxSettings()
INTERVAL = IntervalSettings()
TEST = TestSettings()
CLUSTERS = ClusterSettings()
MAPS = MapSettings()
CURVES = CurveSettings()
DECISIONS = DecisionSettings()
REPORT = ReportSettings()

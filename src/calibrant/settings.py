"""Hold the tuned numbers of the methods: what each one means, how it was chosen, and what changing it does.

Numbers that follow from arithmetic (rounding tolerances, sizes of chunks) stay beside the code that uses them.
Code reads a setting where it needs it, as an attribute of an instance below, so that a study can change it.
``benchmarks/sensitivity.py`` measures the effect of each setting, and ``docs/methods/settings.md`` shows it.
"""

from dataclasses import dataclass, field
from typing import Any, TypeVar

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
    return made  # type: ignore[no-any-return]


# -- posteriors ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PriorSettings:
    """Prior of the calibration gap (package ``posterior``), which the default estimator uses."""


@dataclass(frozen=True)
class LogOddsSettings:
    """Prior of the calibration curve and of the default binary calibrator (``posterior.log_odds``)."""


@dataclass(frozen=True)
class SoftmaxSettings:
    """Prior of canonical calibration and of the default multiclass calibrator (``posterior.softmax``)."""


# -- inference -----------------------------------------------------------------------------------------------

# Studies of several fields.
_COVERAGE = "benchmarks/coverage.py and pipelines.py, training seeds 0 and 1"
_POWER = "measured by benchmarks/power.py; choice not recorded"
_CLUSTERS = "measured by benchmarks/clusters.py; choice not recorded"
_CANONICAL = "measured by benchmarks/canonical.py; choice not recorded"
_MAPS = "measured by benchmarks/maps.py; choice not recorded"
_BAND = "measured by benchmarks/curve_band.py; choice not recorded"
_REGRET = "measured by benchmarks/decisions.py; choice not recorded"
_NONE = "not studied before; see effect"


@dataclass(frozen=True)
class IntervalSettings:
    """Confidence intervals of the calibration error (package ``inference``)."""

    data_sets: int = setting(1000, "Simulated data sets over the grid of true errors of one problem.", _NONE)
    class_data_sets: int = setting(800, "The same for one class of several.", _NONE)
    classwise_data_sets: int = setting(
        100, "Data sets simulated for each true error of the error over all classes.", _NONE
    )
    named_shapes: int = setting(10, "Shapes of the gap that a named estimator is applied to.", _NONE)
    named_sets_per_shape: int = setting(10, "Data sets simulated along each of these shapes.", _NONE)
    grid_offsets: tuple[float, ...] = setting(
        (-3.5, -2.0, -0.8, 0.8, 2.0, 3.0, 4.0, 5.5),
        "True errors of the grid minus the estimate, in standard errors of a mean residual.",
        _NONE,
    )
    min_grid_error: float = setting(
        0.1, "Smallest true error of the grid besides 0, in standard errors of a mean residual.", _NONE
    )
    max_share_below: float = setting(
        0.015,
        "The grid is extended while more than this share of estimates at its end is below the observed one.",
        _NONE,
    )
    extension_errors: float = setting(
        2.0, "Step of the extended grid in standard errors of a mean residual, first part.", _NONE
    )
    extension_share: float = setting(
        0.25, "Step of the extended grid as a share of the largest true error, second part.", _NONE
    )
    max_share_growth: float = setting(
        2.0,
        "The extension ends if it multiplies the share of smaller estimates by more than this.",
        _COVERAGE,
    )
    tail_alpha_factor: float = setting(
        0.75, "Factor of the nominal tail probability, as shapes are learned from the same data.", _COVERAGE
    )
    draw_shrinkage: float = setting(
        0.7, "Share of the posterior standard deviation that smooth shapes are drawn with.", _COVERAGE
    )
    lower_bias_share: float = setting(
        0.6, "Share of the bias of the posterior mean that the lower end is corrected for.", _COVERAGE
    )
    upper_bias_share: float = setting(
        0.3, "Share of the same amount that the upper end is raised by, for rougher gaps.", _COVERAGE
    )
    null_floor_quantile: float = setting(
        0.03,
        "Quantile of estimates from calibrated data that replaces smaller ones for the upper end.",
        _COVERAGE,
    )
    quantile_bandwidth: float = setting(
        0.8, "Bandwidth of the local line through normal quantiles of tail probabilities.", _NONE
    )
    count_width: float = setting(
        0.12, "Kernel width of tail probabilities, in standard deviations of the estimates.", _NONE
    )
    min_kind_share: float = setting(
        0.35, "Smallest share of the data sets for each of two kinds of shape.", _COVERAGE
    )
    min_kind_share_of_three: float = setting(0.25, "The same for each of three kinds.", _COVERAGE)
    min_kind_weight: float = setting(
        0.01, "Posterior weight below which a kind of shape is left out.", _COVERAGE
    )
    min_attained: int = setting(
        10, "Data sets of a kind that must attain a true error for the kind to be used there.", _NONE
    )
    max_variance_ratio: float = setting(
        4.0, "Largest simulated variance of a cell, relative to that of the data.", _NONE
    )
    class_exponent: float = setting(
        0.25, "The standard error of a mean over classes falls with their number to this power.", _NONE
    )
    min_dependence: float = setting(
        0.5, "Smallest ratio of the deviation of a mean over classes to that of independent classes.", _NONE
    )
    bound_folds: int = setting(3, "Folds of the lower bound of the canonical error.", _CANONICAL)
    bound_min_probability: float = setting(
        0.5,
        "Posterior probability of a gap above which the fit of the other folds replaces the scores.",
        _CANONICAL,
    )
    bound_error_factor: float = setting(
        1.4,
        "Factor of the standard error of the lower bound: folds share training rows (1.32 if 3 fit noise).",
        _CANONICAL,
    )


@dataclass(frozen=True)
class TestSettings:
    """Calibration tests and null distributions (package ``inference``)."""

    data_sets: int = setting(999, "Data sets simulated under H0.", "convention: smallest p-value 0.001")
    null_data_sets: int = setting(
        300, "Those of them that the null distribution of the estimate is computed from.", _NONE
    )
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
    periodogram_max_cells: int = setting(1024, "Largest number of cells of the periodogram.", _POWER)
    periodogram_min_rows: int = setting(8, "Mean number of rows of such a cell, at least.", _POWER)
    periodogram_bands: tuple[int, ...] = setting(
        (1, 4, 16, 64, 256), "Widths of the bands of the periodogram, in frequencies.", _POWER
    )
    min_score_distance: float = setting(
        1e-6, "Distance from 0 and 1 that scores are moved to before log-odds are taken.", _NONE
    )
    class_level_shares: tuple[float, float] = setting(
        (0.8, 0.2), "Shares of the level: all classes pooled, and largest Bayes factor of a class.", _POWER
    )
    many_class_data_sets: int = setting(199, "Data sets simulated under H0 above 20 classes.", _NONE)
    many_class_max_cells: int = setting(256, "Cells of the periodogram of a class above 20 classes.", _NONE)
    permutations: int = setting(
        5, "Permutations of the data sets of classes simulated independently, for sketches.", _NONE
    )
    repeated_data_sets: int = setting(
        999, "Data sets, at least, if the test of one of many classes is repeated.", _NONE
    )
    max_repeated: int = setting(50, "Tests of classes that may be repeated with more data sets.", _NONE)
    max_repeated_share: float = setting(0.2, "The same as a share of the classes, if that is more.", _NONE)
    suspect_p_value: float = setting(
        0.02, "Largest p-value at which the test of a class or group is repeated.", _NONE
    )
    max_data_sets: int = setting(199_999, "Largest number of data sets of a repeated test.", _NONE)
    assumed_level_share: float = setting(
        0.1, "Share of the level of a statistic that the number of data sets is chosen for.", _NONE
    )
    canonical_null_rows: int = setting(
        1000, "Rows that the size of a canonical gap under H0 is computed from.", _NONE
    )
    canonical_null_data_sets: int = setting(3, "Data sets simulated for that size.", _NONE)
    canonical_named_data_sets: int = setting(
        5, "Data sets simulated for the expected value of a named canonical estimator under H0.", _NONE
    )


@dataclass(frozen=True)
class ClusterSettings:
    """Design effects and tests of clustered rows (``score_data.clusters`` and ``inference.clusters``)."""

    basis_size: int = setting(8, "Cosine functions along which design effects are computed.", _CLUSTERS)
    slow_functions: int = setting(2, "Slowest of them, whose design effects also count singly.", _CLUSTERS)
    min_variance: float = setting(
        0.01, "Added to the variance of an outcome, divided by the root of n, near scores of 0 and 1.", _NONE
    )
    sign_power: float = setting(
        2.0,
        "Power of the signal share by which the design effect along the sign of the gap counts.",
        _CLUSTERS,
    )
    max_effect_share: float = setting(
        0.5,
        "Weight of the largest design effect in the effective sample size; the mean has the rest.",
        _CLUSTERS,
    )
    min_clusters: int = setting(
        10, "Clusters from which outcomes are simulated under H0; below, signs are flipped.", _CLUSTERS
    )


@dataclass(frozen=True)
class RecommendationSettings:
    """Simulated data sets of ``calibrant.recommend`` (``inference.population``)."""

    true_errors: tuple[float, ...] = setting((0.02, 0.05, 0.1), "True errors of the curves.", _NONE)
    max_log_slope: float = setting(1.6, "Largest absolute logarithm of the slope of log-odds.", _NONE)
    max_shift: float = setting(2.0, "Largest shift of log-odds.", _NONE)
    max_wave: float = setting(1.5, "Largest amplitude of the wavy shape, in log-odds.", _NONE)
    max_local_gap: float = setting(0.3, "Largest gap of the local, tail and alternating shapes.", _NONE)
    wave_periods: float = setting(2.0, "Periods of the wavy shape over the ranks of the scores.", _NONE)
    local_rank: float = setting(0.7, "Central rank of the local shape.", _NONE)
    tail_rank: float = setting(0.95, "Central rank of the tail shape.", _NONE)
    local_width: float = setting(0.1, "Share of the rows in the range of both.", _NONE)
    alternating_scores: tuple[int, int] = setting(
        (3, 30), "Smallest and largest number of distinct scores for the alternating shape.", _NONE
    )
    alternating_rows: int = setting(10, "Mean number of rows of a score for that shape, at least.", _NONE)
    max_data_sets: int = setting(200, "Largest number of data sets of a curve.", _NONE)
    min_data_sets: int = setting(30, "Smallest number of data sets of a curve.", _NONE)
    negligible_share: float = setting(
        0.1, "Errors below this share of the standard error of the mean residual count as equal.", _NONE
    )
    bootstrap_resamples: int = setting(100, "Resamples for the standard error of a loss.", _NONE)
    tie_width: float = setting(2.0, "Standard errors within which estimators are tied.", "convention")


# -- calibrators, curves, decisions --------------------------------------------------------------------------


@dataclass(frozen=True)
class MapSettings:
    """Calibrators (package ``maps``)."""

    coefficient_sd: float = setting(
        20.0, "Prior standard deviation of coefficients, which matters for separable data only.", _NONE
    )
    max_worse_probability: float = setting(
        0.5, "Posterior probability of a larger log loss above which binary scores are kept.", _MAPS
    )
    max_monotone_loss: float = setting(
        2.0, "Largest loss of log-likelihood for which a map is made increasing.", _MAPS
    )
    min_score_evidence: float = setting(
        2.0, "Log Bayes factor above which repeated scores have effects of their own.", _MAPS
    )
    max_score_effects: int = setting(1000, "Largest number of distinct scores with such effects.", _MAPS)
    min_rows_per_score: float = setting(10.0, "Mean number of rows of these scores, at least.", _MAPS)
    temperature_fit_sd: float = setting(
        2.0, "Prior standard deviation of the log temperature for its estimate.", _MAPS
    )
    temperature_sd: float = setting(
        1.0, "Prior standard deviation of the log temperature for its marginal likelihood.", _MAPS
    )
    min_information: float = setting(
        100.0, "Least Fisher information of the log temperature in the marginal likelihood.", _MAPS
    )
    identity_prior: float = setting(0.25, "Prior probability of the identity of several classes.", _MAPS)
    keep_identity: float = setting(
        2 / 3, "Posterior probability of the identity above which these scores are kept.", _MAPS
    )
    size_draws: int = setting(16, "Posterior draws of the block sizes.", _NONE)
    coefficient_draws: int = setting(2, "Draws of the coefficients for each of them.", _NONE)
    vector_temperature_sd: float = setting(
        0.2, "Prior standard deviation of the temperature in vector and matrix scaling.", _MAPS
    )
    vector_bias_sd: float = setting(0.6, "The same of the shift of a class.", _MAPS)
    vector_slope_sd: float = setting(0.3, "The same of the slope of a class.", _MAPS)
    matrix_sd: float = setting(0.5, "The same of a matrix entry, times the number of classes.", _MAPS)


@dataclass(frozen=True)
class CurveSettings:
    """Bands of calibration curves (package ``curves``)."""

    window: float = setting(
        0.6, "Half-width of the local lines as a share of the rows, times n to the window exponent.", _BAND
    )
    density_window: float = setting(0.6, "The same for the corrected band of method density.", _BAND)
    window_exponent: float = setting(1 / 3, "The window falls with n to this power; 1/5 is optimal.", _BAND)
    distance: float = setting(
        2.5, "Half-width of the local lines in log-odds, times n to its exponent.", _BAND
    )
    distance_exponent: float = setting(1 / 7, "That half-width falls with n to this power.", _BAND)
    distance_offset: float = setting(
        0.02, "Added to the distances from 0 and 1 in these log-odds, so that they stay finite.", _BAND
    )
    max_score_distance: float = setting(
        0.06, "The curve has no value at scores farther than this from every row.", _NONE
    )
    local_quantile_share: float = setting(
        0.6,
        "Share of the normal quantile at which the local interval of a pointwise band is computed.",
        _BAND,
    )
    full_quantile_rows: float = setting(
        10.0, "Effective local sample size below which the full quantile is used.", _BAND
    )
    bootstrap_resamples: int = setting(200, "Default number of resamples of method density.", _NONE)
    level_share: float = setting(
        0.02, "Share of the rows that must have a round score for it to be listed as a level.", _NONE
    )
    level_rows: int = setting(5, "Number of rows that must have it.", _NONE)
    level_digits: int = setting(4, "Decimal digits of a round score.", "convention")


@dataclass(frozen=True)
class DecisionSettings:
    """Intervals of decision regret, clinical measures and selective prediction (package ``decisions``)."""

    folds: int = setting(5, "Folds of held-out gains.", "convention")
    draws: int = setting(160, "Posterior draws of the frequencies of a single score.", _NONE)
    size_draws: int = setting(8, "Posterior draws of the block sizes of several classes.", _NONE)
    coefficient_draws: int = setting(12, "Draws of the coefficients for each of them.", _NONE)
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
    band_data_sets: int = setting(1000, "Sets of normal deviates for a simultaneous band.", _NONE)
    null_data_sets: int = setting(50, "Data sets simulated under H0 for a single score.", _NONE)
    canonical_null_data_sets: int = setting(3, "Data sets simulated under H0 for several classes.", _NONE)
    canonical_null_rows: int = setting(1000, "Rows of these data sets.", _NONE)
    min_p_value: float = setting(1e-6, "Smallest p-value reported.", "convention")
    clinical_draws: int = setting(200, "Posterior draws for E50 and E90.", _NONE)
    min_selected_rows: int = setting(
        10,
        "Fewest selected rows for which the band of selective accuracy is simulated.",
        _NONE,
    )
    selective_data_sets: int = setting(4000, "Sets of normal deviates for that band.", _NONE)


@dataclass(frozen=True)
class ReportSettings:
    """Cautions and wording of results (package ``assessment`` and ``inference.comparison``)."""

    few_rows: int = setting(100, "Rows below which a caution is printed.", _NONE)
    few_group_rows: int = setting(30, "Rows of a group below which a caution is printed.", _NONE)
    few_clusters: int = setting(20, "Clusters below which a caution is printed.", _NONE)
    discrete_rows: int = setting(
        5, "Mean number of rows of a distinct score from which scores are discrete.", _NONE
    )
    saturation_distance: float = setting(1e-3, "Distance from 0 or 1 of a saturated score.", _NONE)
    saturated_share: float = setting(
        0.5, "Share of saturated scores above which a caution is printed.", _NONE
    )
    uneven_weights: float = setting(
        0.5, "Effective sample size per row below which a caution about weights is printed.", _NONE
    )
    aggregated_scores: float = setting(
        0.75, "Distinct scores per row up to which integer weights look like counts.", _NONE
    )
    width_ratio: float = setting(
        2.0, "Ratio of the widths of two intervals above which a caution is printed.", _NONE
    )
    one_sided: float = setting(0.8, "Share of the error on one side from which that side is named.", _NONE)
    rare_frequency: float = setting(
        0.2, "Frequency below which expected cases are compared with observed ones.", _NONE
    )
    fewest_rows: int = setting(5, "Rows from which an upper limit of the error is worded.", _NONE)
    example_rows: int = setting(
        30, "Effective local sample size of a score named as an example, at least.", _NONE
    )
    assessed_rows: float = setting(
        10.0, "Effective local sample size at which the calibration of a score is assessed, at least.", _NONE
    )
    recalibration_folds: int = setting(5, "Folds of the cross-fitted gain of recalibration.", "convention")


PRIOR = PriorSettings()
LOG_ODDS = LogOddsSettings()
SOFTMAX = SoftmaxSettings()
INTERVAL = IntervalSettings()
TEST = TestSettings()
CLUSTERS = ClusterSettings()
RECOMMENDATION = RecommendationSettings()
MAPS = MapSettings()
CURVES = CurveSettings()
DECISIONS = DecisionSettings()
REPORT = ReportSettings()

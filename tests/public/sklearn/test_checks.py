"""The checks that scikit-learn has for estimators: those that apply, and the reason for each that fails."""

import warnings

import pytest
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from calibrant import Calibrator, PriorShift
from calibrant.sklearn import CalibratedModel

IMPORTANCE = "weights are importance with an effective sample size; `counts` are repeated rows"
FAILS = {f"check_sample_weight_equivalence_on_{kind}_data": IMPORTANCE for kind in ("dense", "sparse")}

MODELS = parametrize_with_checks(
    [
        CalibratedModel(LogisticRegression(C=1), cv=3),
        CalibratedModel(LogisticRegression(C=1), cv=3, ensemble=True),
        CalibratedModel(RidgeClassifier(), cv=3),
    ],
    expected_failed_checks=lambda estimator: FAILS,
)

# Arrays of other libraries are checked only where SCIPY_ARRAY_API is set before scipy is imported.
MODEL_CASES = [case for case in MODELS.args[1] if "array_api" not in str(case)]


@pytest.mark.no_cover
@pytest.mark.full
@pytest.mark.parametrize(MODELS.args[0], MODEL_CASES, **MODELS.kwargs)
def test_a_calibrated_model_passes(estimator, check):
    check(estimator)


# All others pass features to `fit`, where a calibrator takes scores.
WITHOUT_DATA = {
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_valid_tag_types",
}
with warnings.catch_warnings():
    warnings.filterwarnings("ignore", ".* does not inherit from", UserWarning)
    MAPS = parametrize_with_checks([Calibrator(), PriorShift(0.5)])
    APPLY = [case for case in MAPS.args[1] if any(name in str(case) for name in WITHOUT_DATA)]


@pytest.mark.no_cover
@pytest.mark.parametrize(MAPS.args[0], APPLY, **MAPS.kwargs)
def test_a_calibrator_passes_the_checks_without_data(estimator, check):
    check(estimator)

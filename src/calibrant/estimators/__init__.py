"""Estimators of the calibration error: one file each, found by name in the registry."""

from typing import TYPE_CHECKING

from calibrant.compiled.lazy import lazy_names
from calibrant.estimators.base import (
    NORMS,
    Entry,
    Estimator,
    EstimatorLike,
    Fit,
    Norm,
    SupportsFit,
    ValueFit,
    check_norm,
    measure,
    resolve,
)
from calibrant.estimators.registry import (
    CLASSES,
    FIFTEEN,
    describe,
    estimator_names,
    parse,
    register,
)

if TYPE_CHECKING:
    from calibrant.estimators.bayes import Bayes, BayesFit
    from calibrant.estimators.beta import Beta
    from calibrant.estimators.beta_kernel import BetaKernel
    from calibrant.estimators.binned import Binned
    from calibrant.estimators.cumulative import Cumulative
    from calibrant.estimators.debiased import Debiased
    from calibrant.estimators.density import Density
    from calibrant.estimators.density_beta import DensityBeta
    from calibrant.estimators.foreign import Function
    from calibrant.estimators.isotonic import Isotonic
    from calibrant.estimators.smooth import Smooth
    from calibrant.estimators.sweep import Sweep
    from calibrant.estimators.variational import Variational

__all__ = [
    "FIFTEEN",
    "NORMS",
    "Bayes",
    "BayesFit",
    "Beta",
    "BetaKernel",
    "Binned",
    "Cumulative",
    "Debiased",
    "Density",
    "DensityBeta",
    "Entry",
    "Estimator",
    "EstimatorLike",
    "Fit",
    "Function",
    "Isotonic",
    "Norm",
    "Smooth",
    "SupportsFit",
    "Sweep",
    "ValueFit",
    "Variational",
    "check_norm",
    "describe",
    "estimator_names",
    "measure",
    "parse",
    "register",
    "resolve",
]

__getattr__ = lazy_names(
    __name__,
    {
        **{module: (name,) for module, name in CLASSES},
        "bayes": ("Bayes", "BayesFit"),
        "foreign": ("Function",),
    },
)

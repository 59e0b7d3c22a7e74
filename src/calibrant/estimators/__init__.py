"""Estimators of the calibration error: one file each, found by name in the registry."""

from importlib import import_module
from typing import Any

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

__all__ = [
    "FIFTEEN",
    "NORMS",
    "Entry",
    "Estimator",
    "EstimatorLike",
    "Fit",
    "Norm",
    "SupportsFit",
    "ValueFit",
    "check_norm",
    "describe",
    "estimator_names",
    "measure",
    "parse",
    "register",
    "resolve",
]

_MODULES = {name: module for module, name in CLASSES}


def __getattr__(name: str) -> Any:
    # The classes of estimators are imported when they are first asked for.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)

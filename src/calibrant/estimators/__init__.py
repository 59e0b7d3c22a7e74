"""The registry: every estimator by name.

To add one, write a file beside this one with a frozen dataclass that has `fit`, and add a line
to `ENTRIES`. The command line, the experiment and the property tests read this registry.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType
from typing import Any

from calibrant.estimators.base import NORMS, Estimator, Fit, Norm
from calibrant.estimators.bayes import Bayes, BayesFit
from calibrant.estimators.beta import Beta
from calibrant.estimators.beta_kernel import BetaKernel
from calibrant.estimators.binned import Binned
from calibrant.estimators.cumulative import Cumulative
from calibrant.estimators.debiased import DEFAULT, Debiased
from calibrant.estimators.density import Density
from calibrant.estimators.function import Function
from calibrant.estimators.isotonic import Isotonic
from calibrant.estimators.smooth import Smooth
from calibrant.estimators.sweep import Sweep
from calibrant.estimators.variational import Variational
from calibrant.inputs import check_choice

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
    "Entry",
    "Estimator",
    "Fit",
    "Function",
    "Isotonic",
    "Norm",
    "Smooth",
    "Sweep",
    "Variational",
    "estimators",
    "parse",
    "resolve",
]


@dataclass(frozen=True)
class Entry:
    """One line of the registry."""

    name: str
    short: str
    make: Callable[[str | None], Estimator]
    parameter: str
    summary: str
    norms: tuple[Norm, ...] = NORMS


def _binned(binning: Any, mapping: Any) -> Callable[[str | None], Binned]:
    def make(parameter: str | None) -> Binned:
        if parameter in (None, "sqrt"):
            return Binned(binning, "sqrt", mapping)
        if not str(parameter).isdecimal():
            raise ValueError(f'the number of bins must be an integer or "sqrt", got {parameter!r}')
        return Binned(binning, int(str(parameter)), mapping)

    return make


def _density(parameter: str | None) -> Density:
    bandwidth, _, kernel = (parameter or "silverman").partition(":")
    number = _number(bandwidth)
    return Density(bandwidth if number is None else number, kernel or "triweight")  # type: ignore[arg-type]


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _plain(make: Callable[[], Estimator]) -> Callable[[str | None], Estimator]:
    """An estimator without a choice to make."""

    def made(parameter: str | None) -> Estimator:
        if parameter is not None:
            raise ValueError(f'"{make()}" takes no parameter, got {parameter!r}')
        return make()

    return made


def _debiased(parameter: str | None) -> Debiased:
    size = str(DEFAULT if parameter is None else parameter)
    if size != "sqrt" and not size.isdecimal():
        raise ValueError(f'the number of bins must be an integer or "sqrt", got {parameter!r}')
    return Debiased("sqrt" if size == "sqrt" else int(size))


def _sweep(parameter: str | None) -> Sweep:
    check_choice("parameter of sweep", parameter, (None, "debiased"))
    return Sweep(debiased=parameter == "debiased")


def _variational(parameter: str | None) -> Variational:
    if parameter is not None and not parameter.isdecimal():
        raise ValueError(f"the number of folds must be an integer, got {parameter!r}")
    return Variational() if parameter is None else Variational(int(parameter))


def _bayes(parameter: str | None) -> Bayes:
    check_choice("parameter of bayes", parameter, (None, "shared"))
    return Bayes(shared=parameter == "shared")


def _beta_kernel(parameter: str | None) -> BetaKernel:
    number = _number(parameter or "")
    return BetaKernel(number if number is not None else parameter or "likelihood")


ENTRIES = (
    Entry("uniform", "l", _binned("uniform", "one"), "bins", "bins of equal width (legacy ECE)"),
    Entry("adaptive", "a", _binned("adaptive", "one"), "bins", "bins of equal mass"),
    Entry("uniform-convex", "c", _binned("uniform", "convex"), "bins", "equal width, linear binning"),
    Entry("adaptive-convex", "ac", _binned("adaptive", "convex"), "bins", "equal mass, linear binning"),
    Entry("density", "d", _density, "bandwidth", "kernel density estimate"),
    Entry("bayes", "b", _bayes, "shared", "posterior mean of the error; what auto means"),
    Entry("debiased", "db", _debiased, "bins", "equal mass, less what chance adds", norms=("l1", "l2")),
    Entry("sweep", "sw", _sweep, "debiased", "equal mass, as many bins as stay in order"),
    Entry("isotonic", "iso", _plain(Isotonic), "none", "isotonic curve (CORP)"),
    Entry("beta", "bc", _plain(Beta), "none", "beta calibration curve"),
    Entry("beta-kernel", "bk", _beta_kernel, "bandwidth", "leave-one-out beta kernels", norms=("l1", "l2")),
    Entry("variational", "v", _variational, "folds", "cross-fitted lower bound", norms=("l1",)),
    Entry("smooth", "sm", _plain(Smooth), "none", "SmoothECE: own measure, not the ECE", norms=("l1",)),
    Entry(
        "ks",
        "ks",
        _plain(lambda: Cumulative("ks")),
        "none",
        "cumulative, largest; own measure",
        norms=("l1",),
    ),
    Entry(
        "kuiper",
        "ku",
        _plain(lambda: Cumulative("kuiper")),
        "none",
        "cumulative, range; own measure",
        norms=("l1",),
    ),
)
_BY_NAME = {name: entry for entry in ENTRIES for name in (entry.name, entry.short)}

#: The estimators the paper compares.
FIFTEEN = (
    *(f"{family}:{bins}" for family in ("l", "a", "c", "ac") for bins in (10, 30, "sqrt")),
    *("d:0.033", "d:0.1", "d:silverman"),
)


def estimators() -> tuple[Entry, ...]:
    """The registry of estimators.

    >>> [entry.name for entry in estimators()][:5]
    ['uniform', 'adaptive', 'uniform-convex', 'adaptive-convex', 'density']
    """
    return ENTRIES


class _Registry(ModuleType):
    """This package under its public name, `calibrant.estimators`, which callers call."""

    def __call__(self) -> tuple[Entry, ...]:
        return estimators()


sys.modules[__name__].__class__ = _Registry


@lru_cache(maxsize=256)
def parse(text: str) -> Estimator:
    """The estimator that a name such as "adaptive:30", "c:sqrt" or "d:0.033" stands for.

    >>> parse("l:10")
    Binned(binning='uniform', n_bins=10, mapping='one')
    """
    name, colon, parameter = text.partition(":")
    if name == "auto":
        raise ValueError(f'"auto" takes no parameter and names no bins, got {text!r}')
    check_choice("estimator", name, ("auto", *_BY_NAME))
    if colon and not parameter:
        raise ValueError(f"estimator {text!r} has a colon and no parameter after it")
    return _BY_NAME[name].make(parameter if colon else None)


def resolve(estimator: Any, *, shared: bool = False) -> Estimator:
    """The estimator that is meant: a name, a value with `fit`, a plain function, or "auto".

    "auto" is `bayes`; where problems are the classes of one model, `bayes:shared`: they are
    calibrated, or not, together.
    """
    if isinstance(estimator, str) and estimator == "auto":
        return Bayes(shared=shared)
    if isinstance(estimator, str):
        return parse(estimator)
    if isinstance(estimator, Estimator) and not isinstance(estimator, type):
        return estimator
    if callable(estimator) and not isinstance(estimator, type):
        return Function(estimator)
    hint = f'; write "uniform:{estimator}"' if isinstance(estimator, int) else ""
    raise TypeError(
        "estimator must be a name, a value with a method fit(evidence), or a function "
        f"f(scores, outcomes, weights), got {estimator!r}{hint}"
    )


EstimatorLike = Any


def estimator_names() -> tuple[str, ...]:
    """Return the names of all estimators."""
    return tuple(entry.name for entry in ENTRIES)

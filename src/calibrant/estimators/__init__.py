"""The registry: every estimator by name.

To add one, write a file beside this one with a frozen dataclass that has `fit`, and add a line
to `ENTRIES`. The command line, the experiment and the property tests read this registry.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from calibrant._check import check_choice
from calibrant.estimators.base import NORMS, Estimator, Fit, Norm
from calibrant.estimators.binned import Binned
from calibrant.estimators.density import Density
from calibrant.estimators.function import Function

__all__ = [
    "FIFTEEN",
    "NORMS",
    "Binned",
    "Density",
    "Entry",
    "Estimator",
    "Fit",
    "Function",
    "Norm",
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


ENTRIES = (
    Entry("uniform", "l", _binned("uniform", "one"), "bins", "bins of equal width (legacy ECE)"),
    Entry("adaptive", "a", _binned("adaptive", "one"), "bins", "bins of equal mass"),
    Entry("uniform-convex", "c", _binned("uniform", "convex"), "bins", "equal width, linear binning"),
    Entry("adaptive-convex", "ac", _binned("adaptive", "convex"), "bins", "equal mass, linear binning"),
    Entry("density", "d", _density, "bandwidth", "kernel density estimate"),
)
_BY_NAME = {name: entry for entry in ENTRIES for name in (entry.name, entry.short)}

#: The estimators the paper compares.
FIFTEEN = (
    *(f"{family}:{bins}" for family in ("l", "a", "c", "ac") for bins in (10, 30, "sqrt")),
    *("d:0.033", "d:0.1", "d:silverman"),
)


def estimators() -> tuple[Entry, ...]:
    """The registry of estimators.

    >>> [entry.name for entry in estimators()]
    ['uniform', 'adaptive', 'uniform-convex', 'adaptive-convex', 'density']
    """
    return ENTRIES


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


def resolve(estimator: Any, notion: str, n: float) -> Estimator:
    """The estimator that is meant: a name, a value with `fit`, a plain function, or "auto".

    "auto" follows the paper's advice: the density estimator with Silverman's bandwidth, and for
    the class-wise notion adaptive-convex bins, their number the root of n below 100 rows and 10
    from there.
    """
    if isinstance(estimator, str) and estimator == "auto":
        if notion != "classwise":
            return Density()
        return Binned("adaptive", "sqrt" if n < 100 else 10, "convex")
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

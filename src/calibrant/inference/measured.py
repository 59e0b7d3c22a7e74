"""A number with its confidence interval."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite, isinf
from typing import Annotated, Any, TypeAlias

from calibrant.inputs import ROUNDING, InputError, Serializable
from calibrant.inputs.codec import Allow, Bounds, check_order

#: A number that may be infinite, as a log loss.
Extended: TypeAlias = Annotated[float, Allow.INFINITY]


def interval_deviate(level: float, clusters: float = inf) -> float:
    """Return the two-sided normal quantile, or Student's with `clusters` - 1 degrees of freedom.

    >>> round(interval_deviate(0.95), 2), round(interval_deviate(0.95, clusters=5), 2)
    (1.96, 2.78)
    """
    from scipy.special import ndtri, stdtrit

    share = (1 + level) / 2
    return float(ndtri(share) if isinf(clusters) else stdtrit(max(clusters - 1, 1.0), share))


@dataclass(frozen=True)
class Measured(Serializable):
    """A number with its confidence interval.

    Attributes
    ----------
    value, low, high : float
        An infinite log loss has no interval: all three are infinite.

    Examples
    --------
    >>> f"{Measured(1.25, 0.5, 2.0):.1f}"
    '1.2 [0.5, 2.0]'
    """

    value: Extended
    low: Extended
    high: Extended

    def __format__(self, digits: str) -> str:
        return f"{self.value:z{digits}} [{self.low:z{digits}}, {self.high:z{digits}}]"

    def _check_fields(self) -> None:
        """Raise an error for an interval that does not contain the value."""
        check_order(self, "low", "value", "high")


@dataclass(frozen=True)
class Within(Bounds):
    """Range of a number and of both ends of its interval, which must be finite."""

    slack: float = ROUNDING

    def check(self, path: str, value: Any) -> None:
        """Raise an error for a number outside of the range."""
        for name in ("value", "low", "high"):
            if not isfinite(number := getattr(value, name)):
                raise InputError(f"{path}.{name}", "be finite", number)
            super().check(f"{path}.{name}", number)

"""A number with its confidence interval."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, isfinite, isinf
from typing import Annotated, Any, NamedTuple, TypeAlias

from calibrant.inputs import ROUNDING, InputError, Serializable
from calibrant.inputs.codec import Allow, Bounds, Probability, check_order
from calibrant.inputs.printed import Block, Printed
from calibrant.inputs.wording import with_interval

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
class IntervalEstimate(Printed, Serializable):
    """A number with its confidence interval.

    Attributes
    ----------
    value, low, high : float
        An infinite log loss has no interval: all three are infinite.

    Examples
    --------
    >>> print(IntervalEstimate(1.25, 0.5, 2.0))
    1.25 (0.50 to 2.00)
    """

    value: Extended
    low: Extended
    high: Extended

    def _printed(self) -> Iterator[Block]:
        yield with_interval(self.value, self.low, self.high)

    def _check_fields(self) -> None:
        """Raise an error for an interval that does not contain the value."""
        check_order(self, "low", "value", "high")


class MeanGap(NamedTuple):
    """Mean calibration gap, frequency minus score, with its interval.

    Attributes
    ----------
    value, low, high : float
        Of a group of an assessment, the posterior mean, whose size is never above the calibration error, and
        the interval of the raw mean.
    expected : float
        If the scores are calibrated, the gap lies within this distance of 0, at the level of the interval.
    """

    value: Annotated[float, Bounds(-1, 1, slack=ROUNDING)]
    low: Annotated[float, Bounds(-1, 1, slack=ROUNDING)]
    high: Annotated[float, Bounds(-1, 1, slack=ROUNDING)]
    expected: Probability

    @property
    def certain(self) -> float:
        """Distance of the interval from 0; below 0 where it contains 0."""
        return max(self.low, -self.high)

    def _check_fields(self) -> None:
        """Refuse an interval that does not hold the gap."""
        check_order(self, "low", "value", "high")


@dataclass(frozen=True)
class IntervalBounds(Bounds):
    """Range of a number and of both ends of its interval, which must be finite."""

    slack: float = ROUNDING

    def check(self, path: str, value: Any) -> None:
        """Raise an error for a number outside of the range."""
        for name in ("value", "low", "high"):
            if not isfinite(number := getattr(value, name)):
                raise InputError(f"{path}.{name}", "be finite", number)
            super().check(f"{path}.{name}", number)

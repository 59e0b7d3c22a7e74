"""A number with its interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.inputs import Record


@dataclass(frozen=True)
class Measured:
    """A number with its interval.

    >>> f"{Measured(1.25, 0.5, 2.0):.1f}"
    '1.2 [0.5, 2.0]'
    """

    value: float
    low: float
    high: float

    def __format__(self, digits: str) -> str:
        return f"{self.value:z{digits}} [{self.low:z{digits}}, {self.high:z{digits}}]"

    @classmethod
    def of_record(cls, record: Record, low: float = -np.inf, high: float = np.inf) -> Measured:
        """Return what a stored record holds."""
        record.only(cls.__dataclass_fields__)
        numbers = {key: record.number(key, low, high) for key in ("value", "low", "high")}
        record.ordered("low", "value", "high")
        return cls(**numbers)

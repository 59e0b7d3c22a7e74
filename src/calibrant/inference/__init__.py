"""How sure one can be: intervals, what a calibrated model typically reads, tests, comparisons."""

from calibrant.inference.comparison import Comparison, Difference
from calibrant.inference.result import Estimate, Null

__all__ = ["Comparison", "Difference", "Estimate", "Null"]

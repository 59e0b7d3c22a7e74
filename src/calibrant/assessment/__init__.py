"""Everything one asks of a model's scores, in one object."""

from calibrant.assessment.decomposition import Score
from calibrant.assessment.make import assess
from calibrant.assessment.parts import Balance, Row
from calibrant.assessment.result import Assessment

__all__ = ["Assessment", "Balance", "Row", "Score", "assess"]

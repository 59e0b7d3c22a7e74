"""Everything one asks of a model's scores, in one object."""

from calibrant.assessment.assessment import Assessment, Balance, Odds, Row
from calibrant.assessment.cure import Cure
from calibrant.assessment.decomposition import Score

__all__ = ["Assessment", "Balance", "Cure", "Odds", "Row", "Score"]

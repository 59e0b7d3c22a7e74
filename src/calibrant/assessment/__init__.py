"""Everything one asks of a model's scores, in one object."""

from calibrant.assessment.assessment import Assessment, Balance, Odds, SubgroupResult
from calibrant.assessment.decomposition import Score
from calibrant.assessment.recalibration import RecalibrationGain
from calibrant.assessment.verdict import Verdict

__all__ = ["Assessment", "Balance", "Odds", "RecalibrationGain", "Score", "SubgroupResult", "Verdict"]

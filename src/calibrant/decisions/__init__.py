"""Costs of decisions on scores: decision regret, net benefit, thresholds and selective prediction.

The methods are described in docs/methods/decision-regret.md.
"""

from calibrant.decisions.clinical import Clinical, auc_of, clinical_of, oe_ratio_of
from calibrant.decisions.cost import Cost, cost_from_text
from calibrant.decisions.curve import (
    THRESHOLDS,
    NetBenefit,
    NetBenefitDifference,
    RegretCurve,
    WorstDecision,
    check_thresholds,
    net_benefits_of,
    regret_curve_of,
)
from calibrant.decisions.decision import BestThreshold, Decision, best_threshold_of
from calibrant.decisions.regret import Regret, cost_of, deciding, regret_of
from calibrant.decisions.selective import RiskCoverage, risk_coverage_of

__all__ = [
    "THRESHOLDS",
    "BestThreshold",
    "Clinical",
    "Cost",
    "Decision",
    "NetBenefit",
    "NetBenefitDifference",
    "Regret",
    "RegretCurve",
    "RiskCoverage",
    "WorstDecision",
    "auc_of",
    "best_threshold_of",
    "check_thresholds",
    "clinical_of",
    "cost_from_text",
    "cost_of",
    "deciding",
    "net_benefits_of",
    "oe_ratio_of",
    "regret_curve_of",
    "regret_of",
    "risk_coverage_of",
]

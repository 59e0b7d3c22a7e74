"""The calibration of whole vectors of scores: estimators of rows, found by name, and a test."""

from calibrant.simplex.base import ROWS_NORMS, RowsEstimator, RowsFit, RowsNorm, check_rows_norm
from calibrant.simplex.dirichlet import Dirichlet
from calibrant.simplex.registry import resolve_rows, rows_estimator_names
from calibrant.simplex.score_test import ScoreTest, p_value
from calibrant.simplex.skce import Skce
from calibrant.simplex.variational import VariationalRows, lower_bound

__all__ = [
    "ROWS_NORMS",
    "Dirichlet",
    "RowsEstimator",
    "RowsFit",
    "RowsNorm",
    "ScoreTest",
    "Skce",
    "VariationalRows",
    "check_rows_norm",
    "lower_bound",
    "p_value",
    "resolve_rows",
    "rows_estimator_names",
]

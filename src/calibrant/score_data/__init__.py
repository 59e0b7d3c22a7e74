"""Scores and outcomes as input of estimators: rows (`Sample`) or sums per score cell (`Cells`).

Both classes have the same interface. They hold one or many one-dimensional problems (a score in [0, 1] and an
outcome in {0, 1}): leading axes of every result are the batch, the last axis runs over groups.
"""

from __future__ import annotations

from typing import TypeAlias

from calibrant.score_data.cells import FINE_UP_TO, Cells, layout_for
from calibrant.score_data.layout import COARSE, FINE, Layout
from calibrant.score_data.moments import Array, Bins, Moments, OneHot
from calibrant.score_data.residuals import Residuals, across_clusters
from calibrant.score_data.sample import Sample

__all__ = [
    "COARSE",
    "FINE",
    "FINE_UP_TO",
    "Array",
    "Bins",
    "Cells",
    "Layout",
    "Moments",
    "OneHot",
    "Residuals",
    "Sample",
    "ScoreData",
    "across_clusters",
    "layout_for",
]

#: Input of estimators.
ScoreData: TypeAlias = Sample | Cells

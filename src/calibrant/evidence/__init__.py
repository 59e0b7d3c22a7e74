"""What an estimator may look at: rows or cells, which answer the same questions.

Both kinds hold one or many one-dimensional problems (a score in [0, 1] and an outcome in {0, 1}):
leading axes of every answer are the batch, the last one runs over groups.
"""

from __future__ import annotations

from typing import TypeAlias

from calibrant.evidence.cells import FINE_UP_TO, Cells, layout_for
from calibrant.evidence.layout import COARSE, FINE, Layout
from calibrant.evidence.moments import Array, Bins, Moments, OneHot
from calibrant.evidence.residuals import Residuals, across_clusters
from calibrant.evidence.sample import Sample

__all__ = [
    "COARSE",
    "FINE",
    "FINE_UP_TO",
    "Array",
    "Bins",
    "Cells",
    "Evidence",
    "Layout",
    "Moments",
    "OneHot",
    "Residuals",
    "Sample",
    "across_clusters",
    "layout_for",
]

#: What estimators read; both kinds answer the same questions.
Evidence: TypeAlias = Sample | Cells

"""Calibration curves, reliability diagrams and score histograms; see docs/methods/calibration-curve.md."""

from calibrant.curves.by_class import ByClass, each_problem, rename_classes
from calibrant.curves.curve import Band, Method, Point, Progress, ReliabilityCurve, curve_of, local_error
from calibrant.curves.diagram import ReliabilityDiagram, bins_of, diagram_of
from calibrant.curves.histogram import ScoreHistogram, histogram_of

__all__ = [
    "Band",
    "ByClass",
    "Method",
    "Point",
    "Progress",
    "ReliabilityCurve",
    "ReliabilityDiagram",
    "ScoreHistogram",
    "bins_of",
    "curve_of",
    "diagram_of",
    "each_problem",
    "histogram_of",
    "local_error",
    "rename_classes",
]

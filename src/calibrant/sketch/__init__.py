"""Sums instead of rows."""

from calibrant.sketch.sketch import Sketch

__all__ = ["Sketch"]

"""Sums instead of rows."""

from typing import Any


def __getattr__(name: str) -> Any:
    if name == "Sketch":
        from calibrant.sketch.sketch import Sketch

        return Sketch
    raise AttributeError(name)

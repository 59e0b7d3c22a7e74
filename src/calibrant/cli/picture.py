"""Pictures that commands write."""

from __future__ import annotations

import importlib.util
import io
from pathlib import Path
from typing import Any

from calibrant.cli.options import PICTURES
from calibrant.cli.output import Refused, writing


def check_drawable(out: Path | None) -> None:
    """Refuse before any work a picture that cannot be drawn, because matplotlib is not installed."""
    picture = out is not None and out.suffix.lower() in PICTURES
    if picture and importlib.util.find_spec("matplotlib") is None:
        raise Refused("No module named 'matplotlib'; pip install 'calibrant[plot]'")


def new_figure(width: float, height: float) -> Any:
    """Make a figure of so many inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def drawn(figure: Any, path: Path) -> bytes:
    """Return a figure in the format of a path's suffix."""
    picture = io.BytesIO()
    with writing(path):
        figure.savefig(picture, format=path.suffix[1:].lower(), dpi=150)
    return picture.getvalue()

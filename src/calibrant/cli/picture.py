"""Pictures that commands write."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from calibrant.cli.output import Refused, writing


def new_figure(width: float, height: float) -> Any:
    """Make a figure of so many inches, or say what to install."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise Refused(f"{error}; pip install 'calibrant[plot]'") from None
    return Figure(figsize=(width, height), layout="constrained")


def drawn(figure: Any, path: Path) -> bytes:
    """Return a figure in the format of a path's suffix."""
    picture = io.BytesIO()
    with writing(path):
        figure.savefig(picture, format=path.suffix[1:].lower(), dpi=150)
    return picture.getvalue()

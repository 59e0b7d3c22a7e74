"""The argument PATH, which may be several paths."""

from __future__ import annotations

from pathlib import Path

import click


class Paths(str):
    """The argument PATH, or several that a shell made of a pattern: then messages name the first of them."""

    files: tuple[str, ...]

    @classmethod
    def of(cls, ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> Paths:
        """Return the paths of an argument."""
        paths = cls(value[0] + (f" and {len(value) - 1} more" if len(value) > 1 else ""))
        paths.files = value
        return paths


def files_of(path: str | Path) -> tuple[str, ...]:
    """Return the paths that an argument names."""
    return path.files if isinstance(path, Paths) else (str(path),)

"""The option that says what decisions cost: numbers, or a small file."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from calibrant.cli.output import Refused

# Bytes of the largest file of costs that is read.
MOST = 1 << 20
HELP = (
    "What decisions cost: a threshold (0.2), the costs of a false alarm and of a miss (1:9), or a file: "
    "CSV with a column of classes and one for each action, or JSON with a matrix that has a row for each "
    "class, or {action: {class: cost}}."
)


def cost_option(*, required: bool = False) -> Callable[[Any], Any]:
    """Make the option for costs."""
    return click.option("--cost", metavar="COST", callback=_read, required=required, help=HELP)


def _read(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
    """Read numbers, or a file; the library says what is wrong with the costs themselves."""
    if value is None:
        return None
    from calibrant.decisions import cost_from_text
    from calibrant.inputs import InputError

    try:
        return cost_from_text(value)
    except InputError:
        return _of_file(Path(value))


def _of_file(path: Path) -> Any:
    if not path.is_file():
        raise click.BadParameter(f"{path} is not a file, a threshold such as 0.2 or two costs such as 1:9")
    if path.stat().st_size > MOST:
        raise Refused(f"{path}: is too large for a table of costs")
    try:
        text = path.read_text(encoding="utf-8-sig")
        return json.loads(text) if path.suffix.lower() == ".json" else _of_table(text)
    except (OSError, UnicodeDecodeError, ValueError, KeyError) as error:
        raise Refused(f"{path}: is no table of costs: {error}") from None


def _of_table(text: str) -> dict[str, dict[str, float]]:
    """Return the cost of each action in each class.

    >>> _of_table("class,act,leave\\nno,1,0\\nyes,0,9\\n")
    {'act': {'no': 1.0, 'yes': 0.0}, 'leave': {'no': 0.0, 'yes': 9.0}}
    """
    (_, *actions), *rows = (row for row in csv.reader(text.splitlines()) if row)
    if len(set(actions)) != len(actions) or len({row[0] for row in rows}) != len(rows):
        raise ValueError("an action or a class is named twice")
    if any(len(row) != len(actions) + 1 for row in rows):
        raise ValueError("its rows differ in length")
    return {name: {row[0]: float(row[k + 1]) for row in rows} for k, name in enumerate(actions)}

"""Rows as the text of a CSV file."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any


def csv_text(rows: Iterable[Iterable[Any]], delimiter: str = ",") -> str:
    r"""Return rows as lines that end in a line feed; every value is read back as it was written.

    A value with a carriage return is quoted. The csv module does that before Python 3.13 only where lines
    end in one, so they do until they are joined.

    >>> csv_text([("a", "b"), (1, "x\ry")])
    'a,b\n1,"x\ry"\n'
    """
    lines: list[str] = []
    sink = SimpleNamespace(write=lines.append)
    csv.writer(sink, delimiter=delimiter, lineterminator="\r\n").writerows(rows)
    return "".join(line[:-2] + "\n" for line in lines)

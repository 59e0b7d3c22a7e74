"""Results as aligned text of at most 80 columns and, in notebooks, as HTML with the same content."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from html import escape
from importlib import import_module
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

from calibrant.inputs.wording import short, visible

WIDTH = 80
# Names in the first column of a table, and labels of lines.
LONGEST_LABEL = 28
# Width to which names in a table are shortened at most.
LEAST_NAME = 12
# Spaces that are not broken: between a number and its unit, in an interval, and around the sign of a p-value.
_UNIT = re.compile(
    r"(?<=[\d.]) (?=(?:%|points?\b|rows?\b|times\b|per row\b|clusters?\b|folds?\b))"
    r"|(?<=[\d%]) (?=to [\d−-])|(?<=[\d%] to) (?=[\d−-])"
    r"|(?<=\b1) (?=in \d)|(?<=\b1 in) (?=\d)|(?<=\bp) (?=[=<≤])|(?<=[=≤]) (?=\d)"
)
NO_BREAK = "\N{NO-BREAK SPACE}"


class Table(NamedTuple):
    """Cells in aligned columns."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    names: int = 0  # number of columns with names, which are aligned to the left and shortened if necessary


#: A label with its text, a paragraph, or a table.
Block: TypeAlias = tuple[str, str] | str | Table


class Printed:
    """Mixin of results: `str` and HTML are made from the same blocks.

    Examples
    --------
    >>> class Height(Printed):
    ...     def _printed(self):
    ...         return [("height", "1.85 m"), ("measured", "twice"), "A caution."]
    >>> print(Height())
    height    1.85 m
    measured  twice
    A caution.
    """

    def _printed(self) -> Iterable[Block]:
        """Return the content: the answer first, cautions last."""
        raise NotImplementedError

    def _drawing(self) -> str:
        """Return a small picture as SVG, or nothing."""
        return ""

    def __str__(self) -> str:
        return as_text(self._printed())

    def _repr_html_(self) -> str:
        title = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(self).__name__).capitalize()
        return f"<div>\n<p><strong>{title}</strong></p>\n{self._drawing()}{_as_html(self._printed())}</div>"


def data_frame(columns: dict[str, list[Any]]) -> Any:
    """Return a data frame of polars or, if that is not installed, of pandas."""
    for library, options in (("polars", {"strict": False}), ("pandas", {})):
        try:
            return import_module(library).DataFrame(columns, **options)
        except ModuleNotFoundError:
            continue
    raise ImportError("to_frame needs polars or pandas; pip install 'calibrant[engines]'")


def unbroken(text: str) -> str:
    """Put no-break spaces between numbers and their units.

    >>> unbroken("95 % of 1,000 rows").replace(NO_BREAK, "_")
    '95_% of 1,000_rows'
    """
    return _UNIT.sub(NO_BREAK, text)


def as_text(blocks: Iterable[Block]) -> str:
    """Return blocks as lines of at most 80 columns; tables are set apart by an empty line.

    >>> print(as_text([("error", "0.1"), Table(["class", "rows"], [["dog", "12"], ["cat", "9"]], names=1)]))
    error  0.1
    <BLANKLINE>
    class  rows
    dog      12
    cat       9
    """
    blocks = list(blocks)
    labels = [_label(block[0]) for block in blocks if _is_pair(block)]
    indent = max(map(len, labels), default=0) + 2
    lines: list[str] = []
    for k, block in enumerate(blocks):
        if k and (isinstance(block, Table) or isinstance(blocks[k - 1], Table)):
            lines.append("")
        if isinstance(block, Table):
            lines += _aligned(block)
        elif isinstance(block, str):
            lines += wrapped(block)
        else:
            lines += wrapped(block[1], _label(block[0]).ljust(indent), " " * indent)
    return "\n".join(line.rstrip() for line in lines)


def wrapped(text: str, first: str = "", later: str = "") -> list[str]:
    """Return a text as lines of at most 80 columns that do not separate numbers from their units."""
    text = unbroken(visible(text))
    options = {"initial_indent": first, "subsequent_indent": later, "break_on_hyphens": False}
    lines = textwrap.wrap(text, WIDTH, **options)  # type: ignore[arg-type]
    return [line.replace(NO_BREAK, " ") for line in lines] or [first.rstrip()]


def _is_pair(block: Block) -> bool:
    return not isinstance(block, str | Table)


def _label(text: object) -> str:
    return short(str(text), LONGEST_LABEL)


def _aligned(table: Table) -> list[str]:
    """Return the lines of a table; one that is too wide has shorter names, and then several panels."""
    cells = [[short(str(cell), WIDTH // 2) for cell in row] for row in (table.head, *table.rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    names, others = range(table.names), range(table.names, len(widths))
    between = 2 if sum(widths) + 2 * (len(widths) - 1) <= WIDTH else 1
    while names and sum(widths) + between * (len(widths) - 1) > WIDTH:
        widest = max(names, key=lambda k: widths[k])
        if widths[widest] <= LEAST_NAME:
            break
        widths[widest] -= 1
    panels: list[list[int]] = [[]]
    for k in others:
        columns = [*names, *panels[-1], k]
        if panels[-1] and sum(widths[c] + between for c in columns) - between > WIDTH:
            panels.append([])
        panels[-1].append(k)
    lines: list[str] = []
    for panel in panels:
        lines += [""] if lines else []
        for row in cells:
            left = (short(row[k], widths[k]).ljust(widths[k]) for k in names)
            lines.append((" " * between).join([*left, *(row[k].rjust(widths[k]) for k in panel)]))
    return lines


def _as_html(blocks: Iterable[Block]) -> str:
    """Return blocks as HTML in which every text is escaped."""
    parts = []
    for pairs, group in groupby(blocks, _is_pair):
        if pairs:
            rows = "".join(f"<tr>{_cell('th', b[0])}{_cell('td', b[1])}</tr>\n" for b in group)
            parts.append(f"<table><tbody>\n{rows}</tbody></table>\n")
            continue
        for block in group:
            if isinstance(block, Table):
                head = "".join(_cell("th", cell) for cell in block.head)
                rows = "".join(
                    f"<tr>{''.join(_cell('td', cell) for cell in row)}</tr>\n" for row in block.rows
                )
                parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>\n{rows}</tbody></table>\n")
            else:
                parts.append(f"<p>{_escaped(block)}</p>\n")  # type: ignore[arg-type]
    return "".join(parts)


def _cell(tag: str, text: object) -> str:
    return f'<{tag} style="text-align: left">{_escaped(str(text))}</{tag}>'


def _escaped(text: str) -> str:
    return escape(unbroken(text.encode("utf-8", "backslashreplace").decode()))

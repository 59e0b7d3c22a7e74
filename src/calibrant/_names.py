"""Names: what the command line shows before anything heavy is imported, and those of columns of scores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

NOTIONS = ("class", "classwise", "confidence")


def numbered(names: Iterable[Any]) -> tuple[Any, ...]:
    """Names that are whole numbers after a common beginning, as numbers; others as they are.

    >>> numbered(["p_2", "p_0", "p_1"]), numbered(["p_cat", "p_0"])
    ((2, 0, 1), ('p_cat', 'p_0'))
    """
    names = tuple(names)
    if not names or not all(isinstance(name, str) for name in names):
        return names
    start = len(_beginning(names).rstrip("0123456789"))
    ends = [name[start:] for name in names]
    return tuple(map(int, ends)) if all(end.isdecimal() for end in ends) else names


def without_prefix(names: Sequence[Any], labels: Iterable[Any]) -> tuple[Any, ...]:
    """Names without the beginning that they share, where the rest names all labels; else as they are.

    >>> without_prefix(["p_cat", "p_dog"], ["dog", "cat"])
    ('cat', 'dog')
    """
    names, known = tuple(names), set(labels)
    if not names or not all(isinstance(name, str) for name in names):
        return names
    cuts = (tuple(name[k:] for name in names) for k in range(len(_beginning(names)) + 1))
    return next((cut for cut in cuts if known <= set(cut)), names)


def column_names(table: Any, default: Sequence[Any] = ()) -> Iterable[Any]:
    """The names of the columns of a frame of pandas, polars or pyarrow; of other things the default."""
    return getattr(table, "column_names", getattr(table, "columns", default))


def in_order(names: Any, labels: Sequence[Any], *, numbers: bool = False) -> tuple[Any, ...]:
    """Labels in the order of columns that are named after them; as they are where the names say nothing.

    Columns that are numbered in order may be so by default, and say nothing unless `numbers` is true.

    >>> in_order(["p_dog", "p_cat"], ["cat", "dog"]), in_order(["c0", "c1"], [1, 0])
    (('dog', 'cat'), (1, 0))
    """
    names, labels = tuple(names), tuple(labels)
    if not all(isinstance(name, str) for name in names):
        return labels
    own = numbered(names)
    for found in (
        () if own == tuple(range(len(own))) and not numbers else own,
        without_prefix(names, labels),
    ):
        if len(found) == len(labels) and set(found) == set(labels):
            return found
    return labels


def _beginning(names: Sequence[str]) -> str:
    """What all names begin with: that of the first and the last in order."""
    first, last = min(names), max(names)
    same = (a == b for a, b in zip(first, last, strict=False))
    return first[: next((k for k, alike in enumerate(same) if not alike), min(len(first), len(last)))]

"""Numbers in words, the same wherever they are printed."""

from __future__ import annotations

from collections.abc import Sequence


def count(number: float) -> str:
    """Return a number of rows with thousands set apart.

    >>> count(10000), count(812.5)
    ('10 000', '812.5')
    """
    digits = 0 if number == int(number) else 1
    return f"{number:,.{digits}f}".replace(",", " ")


def plural(noun: str) -> str:
    """Return the plural of a regular noun.

    >>> plural("row"), plural("class")
    ('rows', 'classes')
    """
    return f"{noun}{'es' if noun.endswith('s') else 's'}"


def counted(number: float, noun: str) -> str:
    """Return a number of things.

    >>> counted(1, "cluster"), counted(12000, "row"), counted(3, "class")
    ('1 cluster', '12 000 rows', '3 classes')
    """
    return f"{count(number)} {noun if number == 1 else plural(noun)}"


def few_of(names: Sequence[str], most: int = 3) -> str:
    """Return the first of several names, and how many more there are.

    >>> few_of(["a", "b"]), few_of(["a", "b", "c", "d", "e"])
    ('a and b', 'a, b, c and 2 more')
    """
    rest = [f"{len(names) - most} more"] if len(names) > most else []
    *first, last = [*names[:most], *rest]
    return f"{', '.join(first)} and {last}" if first else last


def percent(level: float) -> str:
    """Return a level of confidence, with as many digits as tell it from 100 %.

    >>> percent(0.95), percent(1 - 0.05 / 12), percent(0.99995)
    ('95 %', '99.58 %', '99.995 %')
    """
    from math import floor, log10

    share = 100 * level
    digits = max(2, 1 - floor(log10(100 - share))) if share < 100 else 2
    return f"{share:.{digits}f}".rstrip("0").rstrip(".") + " %"


def size_name(n: float) -> str:
    """Return what a number of rows is called: under weights or in clusters it is effective, and not whole.

    >>> size_name(1200.0), size_name(777.8693)
    ('rows', 'effective n')
    """
    return "rows" if abs(n - round(n)) < 1e-6 else "effective n"


def sample_size(n: float, equals: str = " = ") -> str:
    """Return the number of rows, or their effective number.

    >>> sample_size(1200.0), sample_size(777.8693, "=")
    ('n = 1200', 'effective n=777.869')
    """
    return f"n{equals}{n:.15g}" if size_name(n) == "rows" else f"effective n{equals}{n:.6g}"


def duration(seconds: float) -> str:
    """Return a time such as "40 s", "12 min" or "3.4 h".

    >>> [duration(s) for s in (40, 700, 12345)]
    ['40 s', '12 min', '3.4 h']
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"

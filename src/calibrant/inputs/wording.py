"""Numbers as text, the same in printed results, on the command line and in the HTML report."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

# Significant digits of a value and of the width of its interval, and decimals that a value alone may ask for.
VALUE_DIGITS, WIDTH_DIGITS, MOST_DECIMALS = 3, 2, 4
# Shares below this, or this close to 1, are written as "1 in 2,000".
RARE_SHARE = 0.001
# Numbers from here on are written with an exponent.
LARGE = 1e15
# Ends of an interval that differ by no more are equal up to rounding.
SAME = 1e-12
# Lower ends below this are printed as 0, both in percentage points and as fractions.
PRINTED_AS_0 = 0.000095


def _decimals(number: float, significant: int) -> int:
    """Return the decimals that show a number with so many significant digits."""
    if number == 0 or not math.isfinite(number):
        return 0
    return max(significant - 1 - math.floor(math.log10(abs(number))), 0)


def _fixed(number: float, decimals: int, sign: str = "") -> str:
    if not math.isfinite(number):
        return "unknown" if math.isnan(number) else "infinite" if number > 0 else "-infinite"
    return f"{number:{sign}z,.{decimals}f}" if abs(number) < LARGE else f"{number:{sign}.3g}"


def number(value: float, sign: str = "") -> str:
    """Return a number without interval, with about three significant digits.

    >>> [number(v) for v in (0.03124, 0.5, 0.000032, 1234.5, 0)]
    ['0.0312', '0.500', '0.000032', '1,234', '0']
    """
    decimals = min(_decimals(value, VALUE_DIGITS), MOST_DECIMALS)
    return _fixed(value, max(decimals, _decimals(value, WIDTH_DIGITS)), sign)


def with_ends(
    value: float,
    low: float,
    high: float,
    sign: str = "",
    *,
    value_digits: int = VALUE_DIGITS,
    width_digits: int = WIDTH_DIGITS,
    least: int = 0,
) -> tuple[str, str, str]:
    """Return a number and both ends of its interval, with the same decimals.

    The decimals follow from the width of the interval, of which `width_digits` are significant. They grow
    until the two ends differ, unless the ends are equal up to rounding. There are at least `least` of them.

    >>> with_ends(0.0312, 0.021, 0.043), with_ends(0.94123, 0.94121, 0.94125)
    (('0.0312', '0.0210', '0.0430'), ('0.941230', '0.941210', '0.941250'))
    """
    decimals = min(_decimals(value, value_digits), MOST_DECIMALS)
    width = 0.0 if math.isclose(low, high, rel_tol=SAME, abs_tol=SAME) else high - low
    decimals = max(decimals, _decimals(width, width_digits), least)
    while width > 0 and _fixed(low, decimals) == _fixed(high, decimals):
        decimals += 1
    first, left, right = (_fixed(each, decimals, sign) for each in (value, low, high))
    return first, left, right


def with_interval(
    value: float, low: float, high: float, level: float | None = None, sign: str = "", unit: str = ""
) -> str:
    """Return a number with its interval.

    >>> with_interval(0.0312, 0.021, 0.043, 0.95), with_interval(0.1, 0.05, 0.2, unit=" per row")
    ('0.0312 (95 % interval 0.0210 to 0.0430)', '0.100 per row (0.050 to 0.200)')
    """
    middle, left, right = with_ends(value, low, high, sign)
    named = "" if level is None else f"{percent(level)} interval "
    return f"{middle}{unit} ({named}{left} to {right})"


def points(share: float, sign: str = "") -> str:
    """Return a share in percentage points, to a tenth; small ones to a hundredth.

    >>> [points(v) for v in (0.0412, 0.0009, 0.00004)]
    ['4.1', '0.09', '0.0']
    """
    value = 100 * share
    return f"{value:{sign}.2f}" if 0.0095 <= abs(value) < 0.095 else f"{value:{sign}z.1f}"


def points_with_ends(share: float, low: float, high: float, sign: str = "") -> tuple[str, str, str]:
    """Return a share and both ends of its interval in percentage points.

    >>> points_with_ends(0.0412, 0.03, 0.0502), points_with_ends(0.004, 0.0039, 0.0041)
    (('4.1', '3.0', '5.0'), ('0.40', '0.39', '0.41'))
    >>> points_with_ends(0.004, 0, 0.018)
    ('0.4', '0.0', '1.8')
    """
    scaled = (100 * share, 100 * low, 100 * high)
    least = max(1, min(_decimals(scaled[0], 2), _decimals(scaled[2] - scaled[1], 2)))
    least = max(least, min(_decimals(scaled[0], 1), 2))  # so that it is not printed as 0
    return with_ends(*scaled, sign, value_digits=0, width_digits=1, least=least)


def shares(value: float, low: float, high: float) -> tuple[str, str, str]:
    """Return a share and both ends of its interval as percentages, or as "1 in 2,000" close to 0 and 1.

    >>> shares(0.83, 0.8, 0.86), shares(0.0101, 0.0099, 0.0103)
    (('83 %', '80 %', '86 %'), ('1.01 %', '0.99 %', '1.03 %'))
    >>> shares(0.0037, 0.0, 0.0217), shares(0.0037, 0.0, 0.55)
    (('0.4 %', '0.0 %', '2.2 %'), ('0 %', '0 %', '55 %'))
    >>> shares(0.0005, 0.0002, 0.0009), shares(0.9995, 0.9991, 1.0)[0]
    (('1 in 2,000', '1 in 5,000', '1 in 1,100'), 'all but 1 in 2,000')
    """
    if value < RARE_SHARE:
        return _one_in(value), _one_in(low), _one_in(high)
    if value > 1 - RARE_SHARE:
        first, left, right = (
            "all" if each == 1 else f"all but {_one_in(1 - each)}" for each in (value, low, high)
        )
        return first, left, right
    least = min(_decimals(100 * value, 2), _decimals(100 * (high - low), 2))
    texts = with_ends(100 * value, 100 * low, 100 * high, value_digits=0, width_digits=1, least=least)
    first, left, right = (f"{text} %" for text in texts)
    return first, left, right


def in_100(value: float, low: float, high: float) -> tuple[str, str, str]:
    """Return how many of 100 rows have something and both ends of its interval, the first end without unit.

    >>> in_100(0.66, 0.52, 0.69), in_100(0.0101, 0.0099, 0.0103)
    (('66 in 100', '52', '69 in 100'), ('1.01 %', '0.99 %', '1.03 %'))
    """
    first, left, right = shares(value, low, high)
    if not first.endswith("%") or "." in first:
        return first, left, right
    return first.replace(" %", " in 100"), left.removesuffix(" %"), right.replace(" %", " in 100")


def _one_in(share: float) -> str:
    """Return a small share as a proportion, with two significant digits.

    >>> _one_in(0.0005), _one_in(0.00000123), _one_in(0)
    ('1 in 2,000', '1 in 810,000', '0')
    """
    if share <= 0:
        return "0"
    inverse = 1 / share
    scale = 10.0 ** (math.floor(math.log10(inverse)) - 1)
    return f"1 in {round(inverse / scale) * scale:,.0f}"


def p_value(p: float, least: float, at_most: str = "<=") -> str:
    """Return a p-value, or the smallest possible one as a bound.

    >>> p_value(0.0312, 0.001), p_value(0.001, 0.001)
    ('p = 0.031', 'p <= 0.001')
    """
    return f"p {at_most} {least:.2g}" if p <= least + 1e-12 else f"p = {p:.2g}"


def visible(text: str) -> str:
    """Return a text with blanks for white space and escapes for other characters that cannot be shown.

    >>> print(visible("red\\x1b[31m\\nblue"))
    red\\x1b[31m blue
    """
    return "".join(c if c.isprintable() else " " if c.isspace() else repr(c)[1:-1] for c in text)


def short(name: str, longest: int = 40) -> str:
    """Return a name on one line, cut in the middle if it is too long.

    >>> short("model-of-2024-by-region", 12)
    'model-…egion'
    """
    text = " ".join(visible(name).split())
    last = len(text) - (longest - 1) // 2
    return text if len(text) <= longest else f"{text[: longest // 2]}…{text[last:]}"


def count(number: float) -> str:
    """Return a number of rows with thousands separated by commas.

    >>> count(10000), count(812.5)
    ('10,000', '812.5')
    """
    return f"{number:,.{0 if number == int(number) else 1}f}"


def plural(noun: str) -> str:
    """Return the plural of a regular noun.

    >>> plural("row"), plural("class"), plural("batch")
    ('rows', 'classes', 'batches')
    """
    return f"{noun}{'es' if noun.endswith(('s', 'ch')) else 's'}"


def counted(number: float, noun: str) -> str:
    """Return a number of things.

    >>> counted(1, "cluster"), counted(12000, "row"), counted(3, "class")
    ('1 cluster', '12,000 rows', '3 classes')
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
    share = 100 * level
    digits = max(2, 1 - math.floor(math.log10(100 - share))) if share < 100 else 2
    return f"{share:.{digits}f}".rstrip("0").rstrip(".") + " %"


def share_of(number: float, total: float) -> str:
    """Return a part of a total as a percentage, with two digits that tell it from 0 % and from 100 %.

    >>> share_of(1240, 10000), share_of(1, 1000), share_of(999, 1000), share_of(5, 5)
    ('12 %', '0.1 %', '99.9 %', '100 %')
    """
    share = 100 * number / total
    text = f"{share:.{_decimals(min(share, 100 - share), VALUE_DIGITS - 1)}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} %"


def are_dates(names: Iterable[Any]) -> bool:
    """Return whether all names are days, months, weeks or quarters.

    >>> are_dates(["2026-05-04", "2026-05"]), are_dates(["2026-W19", "2026-Q2"]), are_dates(["2026-99"])
    (True, True, False)
    """
    return all(re.match(r"\d{4}-(0[1-9]|1[0-2]|W\d\d|Q[1-4])(?!\d)", str(name)) for name in names)


def size_name(n: float) -> str:
    """Return what a number of rows is called: under weights it is effective, and not whole.

    >>> size_name(1200.0), size_name(777.8693)
    ('rows', 'effective sample size')
    """
    return "rows" if abs(n - round(n)) < 1e-6 else "effective sample size"


def sample_size(n: float, clusters: int | None = None) -> str:
    """Return the number of rows, or the effective sample size, and the number of clusters.

    >>> sample_size(1200.0), sample_size(777.8693, 40)
    ('1,200 rows', 'effective sample size 777.9 in 40 clusters')
    """
    rows = counted(round(n), "row") if size_name(n) == "rows" else f"{size_name(n)} {count(round(n, 1))}"
    return rows if clusters is None else f"{rows} in {counted(clusters, 'cluster')}"


def brief_size(n: float) -> str:
    """Return the sample size as it stands in a `repr`.

    >>> brief_size(1200.0), brief_size(777.8693)
    ('n=1200', 'effective n=777.869')
    """
    return f"n={n:.15g}" if size_name(n) == "rows" else f"effective n={n:.6g}"


def about(notion: str, label: object) -> str:
    """Return a notion with the selected class, if there is one.

    >>> about("binary", "dog"), about("confidence", None)
    ('binary, class dog', 'confidence')
    """
    return notion if label is None else f"{notion}, class {short(str(label))}"


def duration(seconds: float) -> str:
    """Return a time such as "40 s", "12 min" or "3.4 h".

    >>> [duration(s) for s in (40, 700, 12345)]
    ['40 s', '12 min', '3.4 h']
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"

"""The row groups of a Parquet file as pieces: one after the other, or each by itself."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

from calibrant.data.binary import readable

# Bytes of the buffers of all columns.
BUFFERS = 1 << 26
# A row group of more pieces than this is read in batches.
LARGE = 4
# Share of the rows that may be read twice so that pieces are read side by side.
TWICE = 0.15


def apart(
    pa: Any,
    path: str,
    wanted: list[str],
    texts: Sequence[str],
    rows: int,
    skip: int,
    check: Callable[[], object],
) -> list[tuple[int, Callable[[], Any], float]]:
    """Pieces that can be read by themselves, as functions; none if many rows would be read twice.

    Each is the number of rows before it, the function, and how much of the file is read with it. `check`
    is called after every reading.
    """
    with _opened(path, wanted, texts) as file:
        about = file.metadata
    ends = list(accumulate(about.row_group(k).num_rows for k in range(about.num_row_groups)))
    total = ends[-1] if ends else 0
    parts: list[tuple[int, Callable[[], Any], float]] = []
    read = 0
    for first in range(skip, total, rows):
        last = min(first + rows, total)
        span = range(bisect_right(ends, first), bisect_left(ends, last) + 1)
        start = ends[span[0] - 1] if span[0] else 0
        read += ends[span[-1]] - start
        take = partial(_taken, pa, path, wanted, texts, check, about, span, first - start, last - first)
        parts.append((first, take, last / total))
    return parts if read <= (1 + TWICE) * (total - skip) else []


def _taken(
    pa: Any,
    path: str,
    wanted: list[str],
    texts: Sequence[str],
    check: Callable[[], object],
    about: Any,
    span: range,
    *rows: int,
) -> Any:
    """Some rows of some row groups."""
    with readable(pa):
        with _opened(path, wanted, texts, about) as file:
            # Several pieces are read at the same time already.
            table = file.read_row_groups(list(span), columns=wanted, use_threads=False)
        check()
        return table.slice(*rows).combine_chunks()


def _opened(path: str, wanted: list[str], texts: Sequence[str], about: Any = None) -> Any:
    from pyarrow import parquet

    # Without buffers of a given size all of a row group would be in memory at once.
    size = max(1 << 14, min(1 << 20, BUFFERS // len(wanted)))
    return parquet.ParquetFile(path, metadata=about, buffer_size=size, read_dictionary=list(texts))


def in_order(
    pa: Any, path: str, wanted: list[str], texts: Sequence[str], rows: int, skip: int
) -> Iterator[tuple[Any, float]]:
    """Tables of about so many rows without the first ones, and how much of the file is read with each."""
    with _opened(path, wanted, texts) as file:
        held = [file.metadata.row_group(k).num_rows for k in range(file.metadata.num_row_groups)]
        first = done = 0
        while first < len(held) and done + held[first] <= skip:
            done += held[first]
            first += 1
        skip -= done
        for span in _spans(held, first, rows):
            count = sum(held[k] for k in span)
            # Row groups as they are take less memory than batches of them, unless they are large.
            if count <= LARGE * rows:
                tables: Iterable[Any] = [file.read_row_groups(span, columns=wanted)]
            else:
                batches = file.iter_batches(rows, row_groups=span, columns=wanted)
                tables = (pa.Table.from_batches([batch]) for batch in batches)
            for table in tables:
                done += table.num_rows
                yield table.slice(min(skip, table.num_rows)), done / max(1, sum(held))
                skip -= min(skip, table.num_rows)


def _spans(held: list[int], first: int, rows: int) -> Iterator[list[int]]:
    """Row groups in order, as many at a time as make up so many rows, but one at least.

    >>> list(_spans([4, 4, 4, 20, 4], 1, 10))
    [[1, 2], [3], [4]]
    """
    span: list[int] = []
    for k in range(first, len(held)):
        if span and sum(held[j] for j in span) + held[k] > rows:
            yield span
            span = []
        span.append(k)
    if span:
        yield span

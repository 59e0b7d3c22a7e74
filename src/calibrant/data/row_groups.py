"""The row groups of a Parquet file as pieces: one after the other, or each by itself."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, chain
from threading import Lock
from typing import Any

# Bytes of the buffers of all columns.
BUFFERS = 1 << 26
# A row group of more pieces than this is read in batches.
LARGE = 4
# Values of a row group that is kept while several pieces take rows of it; of larger ones, the share of rows
# that may be read twice so that pieces are read side by side.
KEPT, TWICE = 1 << 25, 0.15


@dataclass(frozen=True)
class RowGroups:
    """Columns of a Parquet file.

    Attributes
    ----------
    open : callable
        Opens the file anew, for every thread.
    wanted, texts : sequences of str
        The columns, and those of them that are text.
    """

    open: Callable[[], Any]
    wanted: list[str]
    texts: Sequence[str]

    def apart(self, rows: int, skip: int) -> list[tuple[int, Callable[[], Any], float]]:
        """Return pieces that can be read by themselves; none if many rows would be read twice.

        Each is the number of rows before it, a function that reads it, and how much of the file is read
        with it.
        """
        with self._opened() as file:
            about = file.metadata
        sizes = [about.row_group(k).num_rows for k in range(about.num_row_groups)]
        ends = list(accumulate(sizes))
        total = ends[-1] if ends else 0
        most = max(sizes, default=0)
        firsts = range(skip, total, rows)
        spans = [range(bisect_right(ends, a), bisect_left(ends, min(a + rows, total)) + 1) for a in firsts]
        users = Counter(chain.from_iterable(spans))
        read_groups = partial(self._read, about)
        shared = _Shared(read_groups, [users[k] for k in range(len(sizes))])
        keep = most <= LARGE * rows and most * len(self.wanted) <= KEPT
        pieces: list[tuple[int, Callable[[], Any], float]] = []
        read = 0
        for first, span in zip(firsts, spans, strict=True):
            last, start = min(first + rows, total), ends[span[0] - 1] if span[0] else 0
            read += ends[span[-1]] - start
            alone = all(users[k] == 1 for k in span)
            taken = shared.taken if keep and not alone else partial(_taken, read_groups)
            pieces.append((first, partial(taken, span, first - start, last - first), last / total))
        return pieces if keep or read <= (1 + TWICE) * (total - skip) else []

    def in_order(self, rows: int, skip: int) -> Iterator[tuple[Any, float]]:
        """Yield tables of about so many rows without the first ones, and how much is read with each."""
        with self._opened() as file:
            sizes = [file.metadata.row_group(k).num_rows for k in range(file.metadata.num_row_groups)]
            ends = list(accumulate(sizes))
            first = bisect_right(ends, skip)
            done = ends[first - 1] if first else 0
            skip -= done
            for span in _spans(sizes, first, rows):
                for table in self._tables(file, span, LARGE * rows < sum(sizes[k] for k in span), rows):
                    done += table.num_rows
                    yield table.slice(min(skip, table.num_rows)), done / ends[-1]
                    skip -= min(skip, table.num_rows)

    def _tables(self, file: Any, span: list[int], large: bool, rows: int) -> Iterator[Any]:
        import pyarrow as pa

        # Row groups as they are take less memory than batches of them, unless they are large.
        if not large:
            yield file.read_row_groups(span, columns=self.wanted)
            return
        for batch in file.iter_batches(rows, row_groups=span, columns=self.wanted):
            yield pa.Table.from_batches([batch])

    def _read(self, about: Any, *span: int) -> Any:
        """Return row groups."""
        with self._opened(about) as file:
            # Several pieces are read at the same time already.
            return file.read_row_groups(list(span), columns=self.wanted, use_threads=False)

    def _opened(self, about: Any = None) -> Any:
        from pyarrow import parquet

        # Without buffers of a given size all of a row group would be in memory at once.
        size = max(1 << 14, min(1 << 20, BUFFERS // max(1, len(self.wanted))))
        return parquet.ParquetFile(
            self.open(), metadata=about, buffer_size=size, read_dictionary=list(self.texts)
        )


def _taken(read: Callable[..., Any], span: range, first: int, count: int) -> Any:
    """Return some rows of some row groups."""
    return read(*span).slice(first, count).combine_chunks()


class _Shared:
    """Row groups of which several pieces take rows: each is read once, and kept until the last one has them.

    Parameters
    ----------
    read : callable
        Reads a row group, by its number.
    users : list of int
        How many pieces take rows of each.
    """

    def __init__(self, read: Callable[[int], Any], users: list[int]) -> None:
        self.read, self.users = read, users
        self.locks = [Lock() for _ in users]
        self.tables: dict[int, Any] = {}

    def taken(self, span: range, first: int, count: int) -> Any:
        """Return some rows of some row groups."""
        if len(span) == 1:
            return self._table(span[0]).slice(first, count).combine_chunks()
        import pyarrow as pa

        tables = [self._table(k) for k in span]
        return pa.concat_tables(tables).slice(first, count).combine_chunks()

    def _table(self, k: int) -> Any:
        with self.locks[k]:
            table = self.tables.pop(k, None)
            table = self.read(k) if table is None else table
            self.users[k] -= 1
            if self.users[k] > 0:
                self.tables[k] = table
            return table


def _spans(sizes: list[int], first: int, rows: int) -> Iterator[list[int]]:
    """Yield row groups in order, as many at a time as make up so many rows, but one at least.

    >>> list(_spans([4, 4, 4, 20, 4], 1, 10))
    [[1, 2], [3], [4]]
    """
    span: list[int] = []
    for k in range(first, len(sizes)):
        if span and sum(sizes[j] for j in span) + sizes[k] > rows:
            yield span
            span = []
        span.append(k)
    if span:
        yield span

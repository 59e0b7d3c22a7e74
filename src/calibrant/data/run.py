"""A reading of files: pieces summed side by side, added in their order, kept, and gone on with."""

from __future__ import annotations

import math
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np

from calibrant.data.checkpoint import Checkpoint, State
from calibrant.data.files import called, naming
from calibrant.data.settle import Meaning, Piece, by_group, check_groups, checked
from calibrant.data.sources import Source, deferred
from calibrant.sketch import Sketch

# Pieces summed at the same time, those of many columns, and how many columns are many.
THREADS, WIDE_THREADS, WIDE = 4, 2, 20
# Pieces of few columns that wait, for each thread, so that none is idle while sums are added.
AHEAD = 4
# Bytes that the sums of all groups may take.
MOST_SUMS = 1 << 32
# Seconds of reading after which a checkpoint is written within a file; and its share of the time at most.
EVERY, SHARE = 10.0, 0.05


@dataclass(frozen=True)
class Reading:
    """How far a reading of files is; as text, a line to print.

    Attributes
    ----------
    rows, total : int
        Rows read, and rows there are, where all files say so.
    files, all_files : int
        Files read in full, and files there are.
    share : float
        How much is read, by the bytes of the files.
    rate : float
        Rows per second.
    left : float
        Seconds left; NaN when nobody can know.
    note : str
        What was found at the start, if this is about that.

    Examples
    --------
    >>> print(Reading(3_000_000, 12_000_000, 1, 4, 0.25, 2e6, 4.5))
    3,000,000 of 12,000,000 rows, 1 of 4 files, 2,000,000 rows/s, about 4 s left
    """

    rows: int
    total: int | None
    files: int
    all_files: int
    share: float
    rate: float
    left: float
    note: str = ""

    def __str__(self) -> str:
        if self.note:
            return self.note
        of = "" if self.total is None else f" of {self.total:,}"
        text = f"{self.rows:,}{of} rows, {self.files} of {self.all_files} files, {self.rate:,.0f} rows/s"
        return text if math.isnan(self.left) else f"{text}, about {_duration(self.left)} left"


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _summed(
    pa: Any, meaning: Meaning, source: Source, first: int, read: Callable[[], Any]
) -> tuple[Piece, dict[Any, Sketch]]:
    """The sums of a piece, by group."""
    with naming(source.path):
        try:
            piece = checked(pa, meaning, first, read())
            if piece.data is None:
                return piece, {}
            if piece.group is None:
                return piece, {None: Sketch(meaning.notion)._take(piece.data)}
            return piece, {key: Sketch(meaning.notion)._take(data) for key, data in by_group(piece)}
        except TypeError as error:
            raise ValueError(str(error)) from None


class Run:
    """A reading of files: pieces are summed side by side and added in their order.

    The order makes the sums those of every other run, to the last bit.
    """

    def __init__(
        self,
        pa: Any,
        sources: Sequence[Source],
        meaning: Meaning,
        rows: int,
        kept: Checkpoint | None,
        progress: Callable[[Reading], object] | None,
    ) -> None:
        self.pa, self.sources, self.meaning, self.rows = pa, sources, meaning, rows
        self.kept, self.progress = kept, progress
        self.state = State()
        sizes = [source.rows for source in sources]
        self.total = None if None in sizes else sum(size or 0 for size in sizes)
        # Bytes before each file.
        self.bytes = [0, *accumulate(source.size for source in sources)]

    def __call__(self) -> State:
        """Read all that is not read yet."""
        if self.kept is not None and (found := self.kept.load()) is not None:
            self.state = found
        self.started = self.written = time.monotonic()
        self.before, self.cost = self.state, 0.0
        known = self.sources[self.state.files].rows if self.state.row else None
        self.share = self.from_share = self._share(self.state.row / known if known else 0.0)
        if self.state.rows:
            self._tell(self._skipped())
        # Sums before the file at hand, for a checkpoint from which a file that is refused can be mended.
        whole = self.state
        pending: deque[tuple[int, int, float, Future[Any] | None]] = deque()
        wide = len(self.meaning.roles.scores.names) > WIDE
        threads = min(WIDE_THREADS if wide else THREADS, _cpus())
        # Once an array of this size was given back, the C library of Linux keeps the memory of smaller ones,
        # and does not ask the system for it anew with every step.
        np.empty(1 << 21)
        with ThreadPoolExecutor(threads) as pool:
            try:
                for k, source, first, read, share in self._pieces():
                    job = None
                    if read is not None:
                        job = pool.submit(_summed, self.pa, self.meaning, source, first, read)
                    pending.append((k, first, share, job))
                    while len(pending) > (threads if wide else AHEAD * threads):
                        whole = self._add(whole, *pending.popleft())
                while pending:
                    whole = self._add(whole, *pending.popleft())
            except BaseException as error:
                pool.shutdown(cancel_futures=True)
                if self.kept is not None and self.state.rows:
                    with suppress(OSError):  # the first error is the one to tell
                        self.kept.save(whole if isinstance(error, ValueError) else self.state)
                raise
        if self.kept is not None and self.state is not self.before:
            self.kept.save(self.state)
        return self.state

    def _pieces(self) -> Iterator[tuple[int, Source, int, Callable[[], Any] | None, float]]:
        """Pieces that are left, and after each file None."""
        roles, skip = self.meaning.roles, self.state.row
        for k in range(self.state.files, len(self.sources)):
            source = self.sources[k]
            with naming(source.path):
                for first, read, share in deferred(source, roles.numbers, roles.values, self.rows, skip):
                    yield k, source, first, read, share
            yield k, source, 0, None, 1.0
            skip = 0

    def _add(self, whole: State, k: int, first: int, share: float, job: Future[Any] | None) -> State:
        """Add what was found; returns the state from which the file at hand can be read anew."""
        state = self.state
        if job is None:
            self.state = whole = replace(state, files=k + 1, row=0)
        else:
            piece, parts = job.result()
            sketches = dict(state.sketches)
            for key, part in parts.items():
                sketches[key] = sketches[key] + part if key in sketches else part
            seen = tuple(dict.fromkeys((*state.seen, *piece.seen)))
            with naming(self.sources[k].path):
                self._check(seen, sketches)
            self.state = State(k, first + piece.rows, state.rows + piece.rows, seen, sketches)
        self.share = self._share(share if job is not None else 0.0)
        if job is not None or self.state.files == len(self.sources):
            self._tell()
        self._keep(ended=job is None)
        return whole

    def _check(self, seen: tuple[Any, ...], sketches: Mapping[Any, Sketch]) -> None:
        if len(seen) > len(self.state.seen) and self.meaning.pos_label is None:
            self.meaning.named(sorted(seen))
        if len(sketches) > len(self.state.sketches):
            check_groups(sketches)
            size = sum(part.nbytes for part in next(iter(sketches.values())).evidence.sums.parts)
            if len(sketches) * size > MOST_SUMS:
                raise ValueError(
                    f"the sums of {len(sketches)} groups take more than {MOST_SUMS >> 30} GiB of memory"
                )

    def _keep(self, ended: bool) -> None:
        """Write a checkpoint after a file, or within one after a while, as long as that is cheap."""
        if self.kept is None:
            return
        since = time.monotonic() - self.written
        if since < self.cost / SHARE or (since < EVERY and not ended):
            return
        start = time.monotonic()
        self.kept.save(self.state)
        self.written = time.monotonic()
        self.cost = self.written - start

    def _share(self, within: float) -> float:
        """How much is read, by the bytes of the files."""
        at = self.state.files
        own = self.sources[at].size if at < len(self.sources) else 0
        return (self.bytes[at] + within * own) / max(1, self.bytes[-1])

    def _skipped(self) -> str:
        text = f"{self.state.rows:,} rows are in the checkpoint and not read again: "
        text += f"{self.state.files} of {len(self.sources)} files"
        if self.state.row:
            text += f", and {self.state.row:,} rows of {called(self.sources[self.state.files].path)}"
        return text

    def _tell(self, note: str = "") -> None:
        if self.progress is None:
            return
        took = time.monotonic() - self.started
        rate = (self.state.rows - self.before.rows) / took if took > 0 else 0.0
        moved = self.share - self.from_share
        left = took / moved * (1 - self.share) if moved > 0 else math.nan
        files, n = self.state.files, len(self.sources)
        self.progress(Reading(self.state.rows, self.total, files, n, self.share, rate, left, note))


def _cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

"""Files of any size into sketches: batches summed side by side, added in their order, kept on the way."""

from __future__ import annotations

import math
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from itertools import accumulate, chain
from typing import Any, TypeAlias

import numpy as np

from calibrant import inputs
from calibrant.data.batch import (
    Batch,
    Meaning,
    Piece,
    check_label,
    check_types,
    checked,
    doubting,
    kinds_of,
    refuse_labels,
    settled,
    typed,
)
from calibrant.data.checkpoint import Checkpoint, State
from calibrant.data.columns import Asked, Roles, roles_of
from calibrant.data.files import called, expanded, naming
from calibrant.data.readers import Source, batches, described
from calibrant.data.values import Kind
from calibrant.inputs import PYTHON, InputError, Words, show
from calibrant.questions import notions
from calibrant.sketch import Sketch

#: Batches, with the rows before each, and how much of the file is read after it.
Pieces: TypeAlias = Iterator[tuple[int, Batch, float]]
#: The words of the functions of the library that read files.
FILES = Words(
    {"y_true": "label", "y_prob": "scores"},
    {**PYTHON.advice, "ignored": ""},
    first_row=1,
)
# Rows of a batch, fewer of text, and scores of a matrix.
ROWS, TEXT_ROWS, SCORES = 1 << 20, 1 << 18, 1 << 23
# Batches summed at the same time, those of many columns, and how many columns are many.
THREADS, WIDE_THREADS, WIDE = 4, 2, 20
# Bytes that the sums of all groups may take.
MOST_SUMS = 1 << 32
# Seconds of reading after which a checkpoint is written within a file; and its share of the time at most.
EVERY, SHARE = 10.0, 0.05


@contextmanager
def in_words(words: Words) -> Iterator[None]:
    """Have errors print in the words of a surface."""
    try:
        yield
    except InputError as error:
        error.words = words
        raise


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
        What the checkpoint holds, if this is about that.

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


@dataclass(frozen=True, eq=False)
class Streamed:
    """What was read of files.

    Attributes
    ----------
    sketches : mapping
        By group; without groups there is one, None.
    rows, files : int
    source : str
        What was read, as messages call it.
    columns : mapping
        Names of the columns that were used, by "label", "scores", "sample_weight", "counts" and "groups".
    """

    sketches: Mapping[Any, Sketch]
    rows: int
    files: int
    source: str
    columns: Mapping[str, tuple[str, ...]]


@in_words(FILES)
def from_files(
    paths: Any,
    *,
    label: str | None = None,
    scores: str | Sequence[str] | None = None,
    sample_weight: str | None = None,
    counts: str | None = None,
    labels: Any = None,
    pos_label: Any = None,
    notion: str | None = None,
    percent: bool = False,
    **options: Any,
) -> Sketch:
    """Return the sums of files; the options are those of `stream`."""
    named = {"label": label, "sample_weight": sample_weight, "counts": counts}
    asked = _asked(scores, labels, pos_label=pos_label, notion=notion, percent=percent, **named)
    return stream(paths, asked, **options).sketches[None]


@in_words(FILES)
def from_files_by_group(
    paths: Any,
    *,
    groups: str,
    label: str | None = None,
    scores: str | Sequence[str] | None = None,
    sample_weight: str | None = None,
    counts: str | None = None,
    labels: Any = None,
    pos_label: Any = None,
    notion: str | None = None,
    percent: bool = False,
    **options: Any,
) -> dict[Any, Sketch]:
    """Return the sums of files for each value of a column, in order; the options are those of `stream`."""
    named = {"label": label, "sample_weight": sample_weight, "counts": counts, "groups": groups}
    asked = _asked(scores, labels, pos_label=pos_label, notion=notion, percent=percent, **named)
    sketches = stream(paths, asked, **options).sketches
    return {key: sketches[key] for key in inputs.in_order(tuple(sketches))}


def _asked(scores: str | Sequence[str] | None, labels: Any, **others: Any) -> Asked:
    specs = () if scores is None else (scores,) if isinstance(scores, str) else tuple(scores)
    return Asked(scores=specs, labels=None if labels is None else inputs.class_labels(labels), **others)


def stream(
    paths: Any,
    asked: Asked = Asked(),  # noqa: B008 - frozen
    *,
    format: str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Callable[[Reading], object] | None = None,
    batch_rows: int | None = None,
) -> Streamed:
    """Return the sums of files, by group."""
    if asked.cluster is not None:
        inputs.refuse_clusters()
    notions.refuse_whole(asked.notion)
    if batch_rows is not None:
        inputs.positive_int("batch_rows", batch_rows)
    sources = [described(file, format) for file in expanded(paths, format)]
    roles = roles_in_all(sources, asked)
    rows = batch_rows or rows_of_batch(sources, len(roles.scores.names))
    with doubting(roles):
        meaning, begun = _settled(sources, asked, roles, rows)
    name = called_together(sources)
    kept = None
    if checkpoint is not None:
        options = asdict(replace(asked, cluster=None)) | {
            "notion": meaning.notion.name,
            "format": format,
            "batch_rows": rows,
        }
        kept = Checkpoint(checkpoint, options, sources)
    with doubting(roles), nullcontext() if kept is None else kept.held():
        state = Run(sources, meaning, rows, kept, progress, begun)()
    if not any(sketch.totals.rows for sketch in state.sketches.values()):
        raise ValueError(f"{name}: has no rows with a weight above 0")
    if roles.percent:
        with naming(name):
            cells = [sketch.evidence for sketch in state.sketches.values()]
            inputs.check_percent(max(float(own.score[own.sums.w > 0].max(initial=0.0)) for own in cells))
    if roles.scores.doubtful and all(sketch._holds_ends_alone for sketch in state.sketches.values()):
        with naming(name):
            refuse_labels(roles)
    if meaning.classes is None:
        with naming(name):
            pair = meaning.pair(set(state.seen))
        for sketch in state.sketches.values():
            sketch.labels = pair
    return Streamed(state.sketches, state.rows, len(sources), name, roles.by_role)


def roles_in_all(sources: Sequence[Source], asked: Asked) -> Roles:
    """Return the columns that are meant, which must be the same in all files."""
    first, *others = sources
    with naming(first.path):
        roles = roles_of(first.header, asked)
    for source in others:
        if source.header.names == first.header.names:
            continue
        with naming(source.path):
            own = roles_of(source.header, asked).by_role
            for role, names in roles.by_role.items():
                if set(own.get(role, ())) != set(names):
                    rule = f"be {show(*names)} as in {called(first.path)}"
                    raise InputError(role, rule, got=show(*own.get(role, ())))
    return roles


def rows_of_batch(sources: Sequence[Source], columns: int) -> int:
    """Return how many rows are taken together."""
    most = TEXT_ROWS if any(source.is_text for source in sources) else ROWS
    return max(1, min(most, SCORES // columns))


def kinds_in_all(
    sources: Sequence[Source], roles: Sequence[Roles], source: Source, batch: Batch
) -> dict[str, Kind]:
    """Return the kinds that the first rows settle, those of `source`; every file is held against them."""
    kinds = kinds_of(batch, roles)
    for other in sources:
        with naming(other.path):
            for own in roles:
                check_types(other.types, own, kinds, called(source.path))
    return kinds


def called_together(sources: Sequence[Source]) -> str:
    """Return what messages call several files."""
    more = f" and {len(sources) - 1} more" if len(sources) > 1 else ""
    return called(sources[0].path) + more


def _settled(
    sources: Sequence[Source], asked: Asked, roles: Roles, rows: int
) -> tuple[Meaning, tuple[int, Pieces]]:
    """Return what the first rows settle; and the file they are of with its batches, the first one read."""
    for k, source in enumerate(sources):
        pieces = batches(source, roles.numbers, roles.values, rows, floats=roles.floats)
        for first, batch, share in pieces:
            with naming(source.path):
                kinds = kinds_in_all(sources, [roles], source, batch)
                meaning = settled(asked, roles, kinds, typed(batch, roles, kinds).seen)
            return meaning, (k, chain([(first, batch, share)], pieces))
    raise ValueError(f"{called_together(sources)}: has no rows")


def _summed(meaning: Meaning, source: Source, first: int, batch: Batch) -> tuple[Piece, dict[Any, Sketch]]:
    """Return a batch that is checked, and its sums by group."""
    with naming(source.path):
        piece = checked(batch, meaning, first)
        return piece, {group: Sketch(meaning.notion.name)._take(data) for group, data in piece.by_group()}


class Run:
    """A reading of files: batches are summed side by side and added in their order.

    The order makes the sums those of every other run, to the last bit.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        meaning: Meaning,
        rows: int,
        kept: Checkpoint | None,
        progress: Callable[[Reading], object] | None,
        begun: tuple[int, Pieces] | None = None,
    ) -> None:
        self.sources, self.meaning, self.rows, self.begun = sources, meaning, rows, begun
        self.kept, self.progress = kept, progress
        self.state = State()
        self.texts: dict[Any, str] = {}
        sizes = [source.rows for source in sources]
        self.total = None if None in sizes else sum(size or 0 for size in sizes)
        # Bytes before each file.
        self.bytes = [0, *accumulate(source.size for source in sources)]

    def __call__(self) -> State:
        """Read all that is not read yet."""
        earlier = None if self.kept is None else self.kept.load()
        if earlier is not None:
            self.state = earlier
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
        # One more than processors, which has work for them while others wait for their turn in Python.
        threads = min(WIDE_THREADS, cpus()) if wide else min(THREADS, cpus() + 1)
        # Once an array of this size was given back, the C library of Linux keeps the memory of smaller ones,
        # and does not ask the system for it anew with every step.
        np.empty(1 << 21)
        with ThreadPoolExecutor(threads) as pool:
            try:
                for k, source, first, batch, share in self._batches():
                    job = None if batch is None else pool.submit(_summed, self.meaning, source, first, batch)
                    pending.append((k, first, share, job))
                    while len(pending) > threads:
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

    def _batches(self) -> Iterator[tuple[int, Source, int, Batch | None, float]]:
        """Yield batches that are left, and after each file None."""
        roles, skip = self.meaning.roles, self.state.row
        for k in range(self.state.files, len(self.sources)):
            source = self.sources[k]
            pieces = None
            if self.begun is not None and self.begun[0] == k and not skip:
                pieces, self.begun = self.begun[1], None
            for first, batch, share in pieces or batches(
                source, roles.numbers, roles.values, self.rows, skip, roles.floats
            ):
                yield k, source, first, batch, share
            yield k, source, 0, None, 1.0
            skip = 0

    def _add(self, whole: State, k: int, first: int, share: float, job: Future[Any] | None) -> State:
        """Add the sums of a batch; returns the state from which the file at hand can be read anew."""
        state = self.state
        if job is None:
            self.state = whole = replace(state, files=k + 1, row=0)
        else:
            piece, sums = job.result()
            sketches = dict(state.sketches)
            for key, sketch in sums.items():
                sketches[key] = sketches[key] + sketch if key in sketches else sketch
            seen = tuple(dict.fromkeys((*state.seen, *piece.seen)))
            with naming(self.sources[k].path):
                check_label(self.meaning.roles.label, self.texts, piece.label)
                self._check(seen, sketches)
            row, rows = first + piece.rows, state.rows + piece.rows
            self.state = State(k, row, rows, seen, sketches)
        self.share = self._share(share if job is not None else 0.0)
        if job is not None or self.state.files == len(self.sources):
            self._tell()
        self._keep(ended=job is None)
        return whole

    def _check(self, seen: tuple[Any, ...], sketches: Mapping[Any, Sketch]) -> None:
        if len(seen) > len(self.state.seen):
            self.meaning.pair(seen, more=True)
        if len(sketches) > len(self.state.sketches):
            inputs.check_group_count(len(sketches))
            size = sum(array.nbytes for array in next(iter(sketches.values())).evidence.arrays)
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
        """Return how much is read, by the bytes of the files."""
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


def cpus() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

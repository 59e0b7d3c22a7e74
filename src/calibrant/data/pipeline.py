"""Files of any size into sketches: batches summed side by side, added in their order."""

from __future__ import annotations

import math
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, chain
from typing import Any, NoReturn, TypeVar

import numpy as np

from calibrant import inputs
from calibrant.data.batch import (
    Batch,
    CheckedBatch,
    ResolvedSchema,
    check_label,
    check_types,
    checked,
    dropped_by_group,
    kinds_of,
    refuse_labels,
    resolve_schema,
    suggesting_labels,
    typed,
)
from calibrant.data.columns import ColumnRequest, ColumnRoles, roles_of
from calibrant.data.files import called, expanded, naming
from calibrant.data.readers import DataFile, FileBatch, described, labelled_batches
from calibrant.data.values import Kind
from calibrant.inputs import InputError, Words, show
from calibrant.inputs.clusters import check_group_count
from calibrant.inputs.errors import PYTHON
from calibrant.inputs.wording import duration
from calibrant.parallel import cores
from calibrant.sketch import Sketch
from calibrant.tasks import notions

Item = TypeVar("Item")
Result = TypeVar("Result")
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


@contextmanager
def in_words(words: Words) -> Iterator[None]:
    """Have errors print in the words of a surface."""
    try:
        yield
    except InputError as error:
        error.words = words
        raise


@dataclass(frozen=True)
class ReadProgress:
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

    Examples
    --------
    >>> print(ReadProgress(3_000_000, 12_000_000, 1, 4, 0.25, 2e6, 4.5))
    3,000,000 of 12,000,000 rows, 1 of 4 files, 2,000,000 rows/s, about 4 s left
    """

    rows: int
    total: int | None
    files: int
    all_files: int
    share: float
    rate: float
    left: float

    def __str__(self) -> str:
        of = "" if self.total is None else f" of {self.total:,}"
        text = f"{self.rows:,}{of} rows, {self.files} of {self.all_files} files, {self.rate:,.0f} rows/s"
        return text if math.isnan(self.left) else f"{text}, about {duration(self.left)} left"


@dataclass(frozen=True, eq=False)
class FileSketches:
    """What was read of files."""

    # By group, without groups there is one, None; that of a group without any label has no rows.
    sketches: Mapping[Any, Sketch]
    rows: int  # number of rows, but for those without a label
    source: str  # what was read, as messages call it
    # Names of the columns that were used, by "label", "scores", "sample_weight", "counts" and "groups".
    columns: Mapping[str, tuple[str, ...]]
    dropped: int = 0  # number of rows without a label


@in_words(FILES)
def from_files(
    paths: Any,
    *,
    scores: str | Sequence[str] | None,
    labels: Any,
    format: str | None,
    progress: Callable[[ReadProgress], object] | None,
    batch_rows: int | None,
    **requested: Any,
) -> Mapping[Any, Sketch]:
    """Return the sums of files by group; see `stream`. Other arguments are those of `ColumnRequest`."""
    specs = () if scores is None else (scores,) if isinstance(scores, str) else tuple(scores)
    classes = None if labels is None else inputs.class_labels(labels)
    columns = ColumnRequest(scores=specs, labels=classes, **requested)
    streamed = stream(paths, columns, format=format, progress=progress, batch_rows=batch_rows)
    return {group: sketch for group, sketch in streamed.sketches.items() if sketch.totals.rows}


def stream(
    paths: Any,
    requested: ColumnRequest = ColumnRequest(),  # noqa: B008 - frozen
    *,
    format: str | None = None,
    progress: Callable[[ReadProgress], object] | None = None,
    batch_rows: int | None = None,
) -> FileSketches:
    """Return the sums of files, by group."""
    if requested.cluster is not None:
        inputs.refuse_clusters()
    notions.refuse_without_rows(requested.notion)
    notions.refuse_matrices(requested.notion)
    if batch_rows is not None:
        inputs.positive_int("batch_rows", batch_rows)
    sources = [described(file, format) for file in expanded(paths, format)]
    roles = roles_in_all(sources, requested)
    rows = batch_rows or rows_of_batch(sources, len(roles.scores.names))
    with suggesting_labels(roles):
        batches = labelled_batches(sources, roles, rows)
        schema, batches = _resolve_schema(sources, requested, roles, batches)
        run = Run(sources, schema, progress)
        run.sum(batches)
    name = called_together(sources)
    sketches = {group: sketch for group, sketch in run.sketches.items() if sketch.totals.rows}
    with naming(name):
        if not sketches:
            raise ValueError("has no rows with a weight above 0")
        if roles.percent:
            cells = [sketch._score_data for sketch in sketches.values()]
            inputs.check_percent(max(float(each.score[each.sums.w > 0].max(initial=0.0)) for each in cells))
        if roles.scores.doubtful and all(sketch._has_only_extreme_scores for sketch in sketches.values()):
            refuse_labels(roles)
        if schema.classes is None:
            pair = schema.pair(set(run.seen))
            for sketch in sketches.values():
                sketch.labels = pair
    return FileSketches(run.sketches, run.rows, name, roles.by_role, run.dropped)


def roles_in_all(sources: Sequence[DataFile], requested: ColumnRequest) -> ColumnRoles:
    """Return the columns that are meant, which must be the same in all files."""
    first, *others = sources
    with naming(first.path):
        roles = roles_of(first.header, requested)
    for source in others:
        if source.header.names == first.header.names:
            continue
        with naming(source.path):
            by_role = roles_of(source.header, requested).by_role
            for role, names in roles.by_role.items():
                if set(by_role.get(role, ())) != set(names):
                    rule = f"be {show(*names)} as in {called(first.path)}"
                    raise InputError(role, rule, got=show(*by_role.get(role, ())))
    return roles


def rows_of_batch(sources: Sequence[DataFile], columns: int) -> int:
    """Return how many rows are taken together."""
    most = TEXT_ROWS if any(source.is_text for source in sources) else ROWS
    return max(1, min(most, SCORES // columns))


def kinds_in_all(
    sources: Sequence[DataFile], roles: Sequence[ColumnRoles], source: DataFile, batch: Batch
) -> dict[str, Kind]:
    """Return the kinds that the first rows settle, those of `source`; every file is compared with them."""
    kinds = kinds_of(batch, roles)
    for other in sources:
        with naming(other.path):
            for model_roles in roles:
                check_types(other.types, model_roles, kinds, called(source.path))
    return kinds


def called_together(sources: Sequence[DataFile]) -> str:
    """Return what messages call several files."""
    more = f" and {len(sources) - 1} more" if len(sources) > 1 else ""
    return called(sources[0].path) + more


def side_by_side(work: Callable[[Item], Result], items: Iterable[Item], threads: int) -> Generator[Result]:
    """Yield the result of each item in their order, several of them at a time."""
    pending: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for item in items:
                pending.append(pool.submit(work, item))
                while len(pending) > threads:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _resolve_schema(
    sources: Sequence[DataFile], requested: ColumnRequest, roles: ColumnRoles, pieces: Iterator[FileBatch]
) -> tuple[ResolvedSchema, Iterator[FileBatch]]:
    """Return what the first rows settle, and the pieces from these rows on."""
    earlier: list[FileBatch] = []
    first = next(pieces, None)
    while first is not None and not first.is_labelled:
        earlier.append(first)
        first = next(pieces, None)
    if first is None:
        refuse_no_rows(sources, sum(0 if piece.kept is None else len(piece.kept) for piece in earlier))
    with naming(first.source.path):
        kinds = kinds_in_all(sources, [roles], first.source, first.batch)
        seen = typed(first.batch, roles, kinds, first.first, first.kept).seen
        schema = resolve_schema(requested, roles, kinds, seen)
    return schema, chain([*earlier, first], pieces)


def refuse_no_rows(sources: Sequence[DataFile], unlabelled: int) -> NoReturn:
    """Refuse files that have no rows, or so many without a label."""
    with naming(called_together(sources)):
        if unlabelled:
            inputs.refuse_unlabelled("y_true", unlabelled)
        raise ValueError("has no rows")


def _summed(schema: ResolvedSchema, rows: FileBatch) -> tuple[FileBatch, CheckedBatch, dict[Any, Sketch]]:
    """Return a batch, the same checked, and its sums by group."""
    with naming(rows.source.path):
        typed_rows = typed(rows.batch, schema.roles, schema.kinds, rows.first, rows.kept)
        piece = checked(typed_rows, schema, rows.first)
        sums = {group: Sketch(schema.notion.name)._take(data) for group, data in piece.by_group()}
        if rows.kept is not None:
            unlabelled = len(rows.kept) - piece.rows
            dropped = dropped_by_group(rows.others, unlabelled, schema.roles, schema.kinds)
            for group, count in dropped.items():
                sums[group] = sums.get(group, Sketch(schema.notion.name))._add_dropped(count)
    return rows, piece, sums


class Run:
    """A reading of files: batches are summed side by side and added in their order.

    The order makes the sums those of every other run, to the last bit.

    Attributes
    ----------
    sketches : dict
        The sums of each group; without groups there is one, None.
    seen : dict
        Labels that occurred, in their order, where these have to be known.
    rows, dropped : int
        Rows in all, but for those without a label, and the number of these.
    """

    def __init__(
        self,
        sources: Sequence[DataFile],
        schema: ResolvedSchema,
        progress: Callable[[ReadProgress], object] | None,
    ) -> None:
        self.sources, self.schema, self.progress = sources, schema, progress
        self.sketches: dict[Any, Sketch] = {}
        self.seen: dict[Any, None] = {}
        self.rows = self.dropped = 0
        sizes = [source.rows for source in sources]
        self.total = None if None in sizes else sum(size or 0 for size in sizes)
        # Bytes up to the end of each file.
        self.ends = list(accumulate(source.size for source in sources))

    def sum(self, batches: Iterator[FileBatch]) -> None:
        """Read and add all batches."""
        self.started = time.monotonic()
        texts: dict[Any, str] = {}
        wide = len(self.schema.roles.scores.names) > WIDE
        # One more than processors, which has work for them while others wait for their turn in Python.
        threads = min(WIDE_THREADS, cores()) if wide else min(THREADS, cores() + 1)
        # Once an array of this size was given back, the C library of Linux keeps the memory of smaller ones,
        # and does not ask the system for it anew with every step.
        np.empty(1 << 21)
        with closing(side_by_side(partial(_summed, self.schema), batches, threads)) as parts:
            for batch, piece, sums in parts:
                with naming(batch.source.path):
                    check_label(self.schema.roles.label, texts, piece.label)
                    self._add_seen(piece.seen)
                    self._add_sums(sums)
                self.rows += piece.rows
                self.dropped += 0 if batch.kept is None else len(batch.kept) - piece.rows
                self._tell(batch.done, bisect_left(self.ends, batch.done))
        self._tell(self.ends[-1], len(self.sources))

    def _add_seen(self, labels: Iterable[Any]) -> None:
        known = len(self.seen)
        self.seen |= dict.fromkeys(labels)
        if len(self.seen) > known:
            self.schema.pair(tuple(self.seen), more=True)

    def _add_sums(self, sums: Mapping[Any, Sketch]) -> None:
        known = len(self.sketches)
        for key, sketch in sums.items():
            self.sketches[key] = self.sketches[key] + sketch if key in self.sketches else sketch
        if len(self.sketches) > known:
            check_group_count(len(self.sketches))
            sizes = (sketch._score_data.arrays for sketch in sums.values() if sketch.totals.rows)
            size = sum(array.nbytes for array in next(sizes, ()))
            if len(self.sketches) * size > MOST_SUMS:
                raise ValueError(
                    f"the sums of {len(self.sketches)} groups take more than {MOST_SUMS >> 30} GiB of memory"
                )

    def _tell(self, done: int, files: int) -> None:
        """Report how far the reading is, by the bytes and the files that are read."""
        if self.progress is None:
            return
        took, share = time.monotonic() - self.started, done / max(1, self.ends[-1])
        rows = self.rows + self.dropped
        rate = rows / took if took > 0 else 0.0
        left = took / share * (1 - share) if share > 0 else math.nan
        self.progress(ReadProgress(rows, self.total, files, len(self.sources), share, rate, left))

"""Frames whose rows this process or a worker holds: piece by piece, by the code that sums arrays.

In such a frame numpy is faster than a query, and needs less memory. A piece with a row that cannot be used
is only counted; what is wrong with it is sought afterwards.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial, reduce
from importlib.util import find_spec
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from calibrant import inputs
from calibrant.data.engines import in_memory
from calibrant.data.frame_columns import renamed
from calibrant.data.frame_rows import USUAL, Ask, label_code, missing, positive_code, weight_is_fine
from calibrant.data.pipeline import THREADS, WIDE, cpus
from calibrant.inputs import check_group_count
from calibrant.sketch import Sketch

# Numbers of a piece.
BLOCK = 1 << 20
# Sums of partitions that are added at a time.
JOINED = 8


@dataclass
class Sums:
    """What is known of some rows.

    Attributes
    ----------
    rows : dict
        Number of rows of each group, those without weight too.
    sketches : dict
        The sums of each group that has weight.
    bad, minus : bool
        Whether some row cannot be used, and whether a label is -1.
    """

    rows: dict[Any, int] = field(default_factory=dict)
    sketches: dict[Any, Sketch] = field(default_factory=dict)
    bad: bool = False
    minus: bool = False

    def add(self, other: Sums) -> Sums:
        """Take in what is known of other rows."""
        for value, rows in other.rows.items():
            self.rows[value] = self.rows.get(value, 0) + rows
        for value, part in other.sketches.items():
            self.sketches[value] = self.sketches[value] + part if value in self.sketches else part
        self.bad, self.minus = self.bad or other.bad, self.minus or other.minus
        check_group_count(len(self.rows))
        return self


def holds_rows(frame: Any) -> bool:
    """Whether a frame is summed up here: by this process, in which DuckDB runs too, or by Dask's workers."""
    engine = frame.implementation
    if engine.is_duckdb():
        return find_spec("pyarrow") is not None  # in which its rows come
    return in_memory(frame) or engine.is_polars() or engine.is_dask()


def in_pieces(frame: Any, roles: dict[str, str], ask: Ask, known: tuple[Any, ...]) -> Sums:
    """Sums of a frame with a column a class or a single score.

    The columns get their plain names piece by piece: polars holds many more rows where it renames them.
    """
    frame = frame.select(*dict.fromkeys(roles.values()))
    if not frame.implementation.is_dask():
        return _summed(frame, roles, ask, known)
    from dask.delayed import delayed

    one = delayed(partial(_of_partition, roles=roles, ask=ask, known=known), pure=False)
    parts = [one(part) for part in frame.to_native().to_delayed()]
    while len(parts) > 1:
        some = [parts[a : a + JOINED] for a in range(0, len(parts), JOINED)]
        parts = [delayed(_joined, pure=False)(part) for part in some]
    return parts[0].compute()


def _of_partition(part: Any, roles: dict[str, str], ask: Ask, known: tuple[Any, ...]) -> Sums:
    return _summed(nw.from_native(part), roles, ask, known)


def _joined(parts: list[Sums]) -> Sums:
    # Into a new one: what a worker holds may be asked for again.
    return reduce(Sums.add, parts, Sums())


def _summed(frame: Any, roles: dict[str, str], ask: Ask, known: tuple[Any, ...]) -> Sums:
    """Pieces summed side by side and added in their order."""
    found = Sums()
    work = partial(_of_piece, roles=roles, ask=ask, known=known)
    if ask.size > WIDE:  # the sums are as large as a piece, so there is one copy of them
        for piece in _pieces(frame):
            work(piece, found=found)
        return found
    threads = min(THREADS, cpus())
    pending: deque[Future[Sums]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for piece in _pieces(frame):
            pending.append(pool.submit(work, piece))
            if len(pending) > threads:
                found.add(pending.popleft().result())
        for job in pending:
            found.add(job.result())
    return found


def _pieces(frame: Any) -> Iterator[Any]:
    step = max(1, BLOCK // len(frame.collect_schema()))
    if in_memory(frame):
        yield from (frame[a : a + step] for a in range(0, len(frame), step))
    elif frame.implementation.is_duckdb():
        yield from _arrow_pieces(frame.to_native(), step)
    else:
        batches: Iterable[Any] = frame.to_native().collect_batches(chunk_size=step)
        yield from (nw.from_native(batch) for batch in batches)


def _arrow_pieces(relation: Any, step: int) -> Iterator[Any]:
    import pyarrow as pa

    read = getattr(relation, "to_arrow_reader", None) or relation.fetch_record_batch
    with read(step) as batches:
        yield from (nw.from_native(pa.Table.from_batches([batch])) for batch in batches)


def _of_piece(
    piece: Any, roles: dict[str, str], ask: Ask, known: tuple[Any, ...], found: Sums | None = None
) -> Sums:
    """Add the sums of a piece to what is known."""
    found, piece = Sums() if found is None else found, renamed(piece, roles)
    if not ask.grouped:
        return _take(found, None, piece, ask, known)
    if (missing_ones := piece.select(g=missing(piece, "g"))["g"]).any():
        found.bad = bool(missing_ones.any())
        found.rows[None] = found.rows.get(None, 0) + len(piece)
        return found
    check_group_count(piece["g"].n_unique())
    for (value,), part in piece.group_by("g"):
        _take(found, value.item() if isinstance(value, np.generic) else value, part, ask, known)
    return found


def _take(found: Sums, value: Any, piece: Any, ask: Ask, known: tuple[Any, ...]) -> Sums:
    found.rows[value] = found.rows.get(value, 0) + len(piece)
    if found.bad or not len(piece):
        return found
    data, minus = _checked(piece, ask, known)
    found.bad, found.minus = data is None, found.minus or minus
    if data is not None and len(data.code):
        if value not in found.sketches:
            found.sketches[value] = Sketch(ask.notion)
        found.sketches[value]._take(data)
    return found


def _checked(piece: Any, ask: Ask, known: tuple[Any, ...]) -> tuple[inputs.Predictions | None, bool]:
    """The rows of a piece, None if some cannot be used; and whether a label is -1."""
    columns = [piece[name].to_numpy() for name in ask.columns]
    code, minus = _codes(piece, ask)
    weight = None if ask.counts is None else piece["w"].to_numpy()
    fine = code is not None and all(part.min() >= 0 and part.max() <= 1 for part in columns)  # false for NaN
    if not fine or (weight is not None and not np.all(weight_is_fine(weight, bool(ask.counts)))):
        return None, False
    score = columns[0] if ask.vector else np.column_stack(columns)
    if not ask.vector and not np.all(np.abs(score.sum(axis=1) - 1) <= ask.tolerance + 1e-12):
        return None, False
    if weight is not None:
        weight = weight.astype(np.int64) if ask.counts else weight
        if not weight.all():
            keep = weight != 0
            score, code, weight = score[keep], code[keep], weight[keep]
    return inputs.Predictions(score, code, weight, known, 1 if ask.vector else ask.positive), minus


def _codes(piece: Any, ask: Ask) -> tuple[Any, bool]:
    """The class of each row, None if some label cannot be used; and whether one is -1."""
    usual = ask.vector and ask.values == USUAL
    if usual and piece.schema["y"].is_integer() and not piece["y"].null_count():
        label = piece["y"].to_numpy()
        least = label.min()
        return (label == 1 if least >= -1 and label.max() <= 1 else None), bool(least < 0)
    label = piece.select(yc=label_code(piece, ask))["yc"].to_numpy()
    if not label.min() >= 0:
        return None, False
    if ask.vector:
        return label == positive_code(ask), usual and bool(label.max() == USUAL.index(-1))
    return label.astype(np.intp), False

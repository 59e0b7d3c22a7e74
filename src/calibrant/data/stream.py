"""Files of any size into sketches: which columns and rows are meant, and what comes of them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from calibrant import inputs
from calibrant.data.binary import pyarrow_of
from calibrant.data.checkpoint import Checkpoint
from calibrant.data.files import called, naming
from calibrant.data.names import Columns
from calibrant.data.paths import expanded
from calibrant.data.run import Reading, Run
from calibrant.data.settle import Asked, Meaning, Roles, check_kinds, roles_of, settled
from calibrant.data.sources import NEEDS, Source, described, pieces
from calibrant.questions import notions
from calibrant.sketch import Sketch

# Rows of a piece, fewer of text, and scores of a matrix.
ROWS, TEXT_ROWS, SCORES = 1 << 20, 1 << 18, 1 << 23


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
        Names of the columns that were used, by "label", "scores", "weight" and "group".
    """

    sketches: Mapping[Any, Sketch]
    rows: int
    files: int
    source: str
    columns: Mapping[str, tuple[str, ...]]


def stream(
    paths: Any,
    asked: Asked = Asked(),  # noqa: B008 - frozen
    *,
    format: str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Callable[[Reading], object] | None = None,
    batch_rows: int | None = None,
) -> Streamed:
    """The sums of files, as `Sketch.from_files` gives them; messages name options of the command line."""
    pa = pyarrow_of(NEEDS)
    if asked.notion is not None:
        notions.named(asked.notion)
    if batch_rows is not None:
        inputs.positive_int("batch_rows", batch_rows)
    files = expanded(paths, format)
    sources = [described(file, format) for file in files]
    roles = roles_of(sources, asked.columns)
    most = TEXT_ROWS if any(source.delimiter for source in sources) else ROWS
    rows = batch_rows or max(1, min(most, SCORES // len(roles.scores.names)))
    meaning = _first(pa, sources, asked, roles, rows)
    kept = None
    if checkpoint is not None:
        options = {**asdict(asked.columns), "notion": meaning.notion, "labels": asked.labels}
        options |= {"pos_label": asked.pos_label, "format": format, "batch_rows": rows}
        kept = Checkpoint(checkpoint, options, sources)
    state = Run(pa, sources, meaning, rows, kept, progress)()
    if not any(sketch.totals.rows for sketch in state.sketches.values()):
        raise ValueError(f"{_called(files)}: has no rows with a weight above 0")
    if meaning.classes is None:
        with naming(_called(files)):
            names = meaning.named(sorted(set(state.seen)))
        for sketch in state.sketches.values():
            sketch.labels = names
    return Streamed(state.sketches, state.rows, len(files), _called(files), roles.by_name())


def _called(files: Sequence[str]) -> str:
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    return called(files[0]) + more


def _first(pa: Any, sources: Sequence[Source], asked: Asked, roles: Roles, rows: int) -> Meaning:
    """What the first rows settle; every file is then held against it."""
    for source in sources:
        for _, table, _ in pieces(source, roles.numbers, roles.values, rows):
            with naming(source.path):
                meaning = settled(pa, asked, roles, table)
            for other in sources:
                check_kinds(pa, other, meaning, source.path)
            return meaning
    raise ValueError(f"{_called([source.path for source in sources])}: has no rows")


def from_files(
    paths: Any,
    *,
    label: str | None,
    scores: str | Sequence[str] | None,
    weight: str | None,
    group: str | None,
    notion: str | None,
    labels: Any,
    pos_label: Any,
    **options: Any,
) -> Sketch | dict[Any, Sketch]:
    """What `Sketch.from_files` answers."""
    specs = () if scores is None else (scores,) if isinstance(scores, str) else tuple(scores)
    asked = Asked(
        Columns(label=label, scores=specs, weight=weight, group=group),
        notion,
        None if labels is None else tuple(labels),
        pos_label,
    )
    with _library_words():
        found = stream(paths, asked, **options).sketches
    if group is None:
        return found[None]
    try:
        return {key: found[key] for key in sorted(found)}
    except TypeError:
        return {key: found[key] for key in sorted(found, key=str)}


@contextmanager
def _library_words() -> Iterator[None]:
    """Messages that name arguments, where those of files name options."""
    try:
        yield
    except (ValueError, OSError) as error:
        text = str(error).replace("--positive", "pos_label=")
        raise type(error)(re.sub(r"--(label|scores|weight|group|format)\b", r"\1=", text)) from None

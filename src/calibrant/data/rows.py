"""Files whose rows fit into memory, as the functions of the library take them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from types import MappingProxyType
from typing import Any, BinaryIO, NamedTuple, TypeAlias

import numpy as np

from calibrant import inputs
from calibrant.data.batch import (
    BatchRows,
    ResolvedSchema,
    check_label,
    checked,
    matrix_of,
    refuse_labels,
    resolve_schema,
    suggesting_labels,
    typed,
)
from calibrant.data.columns import ColumnRequest, ColumnRoles, Scores
from calibrant.data.files import SUFFIXES, called, check_bytes, expanded, naming
from calibrant.data.pipeline import (
    FILES,
    in_words,
    kinds_in_all,
    refuse_no_rows,
    roles_in_all,
    rows_of_batch,
)
from calibrant.data.readers import DataFile, described, labelled_batches
from calibrant.data.values import Coded, Kind, numbers_of
from calibrant.inputs import Array
from calibrant.inputs.missing import dropped_caution
from calibrant.inputs.predictions import count_dropped
from calibrant.inputs.rounding import caution as renormalisation_caution

Progress: TypeAlias = Callable[[int, int], None]

#: Beyond so many rows, or bytes of files of any kind or of text, only sums are kept.
MANY_ROWS, MANY_BYTES, MANY_TEXT = 5_000_000, 1 << 30, 1 << 28


@dataclass(frozen=True, eq=False)
class Data:
    """Labels, scores and what belongs to them, as the functions of the library take them."""

    y_true: Any  # None where labels were not asked for
    y_prob: Array  # of shape (N,) for one column of scores, (N, C) for more
    labels: tuple[Any, ...] | None = None  # the class of each column, where it is known
    pos_label: Any = None  # the selected class, where one was named
    sample_weight: Array | None = None
    groups: Array | None = None
    notion: str = "binary"  # what was asked, or what the columns are usually asked about
    source: str = ""  # the file, as messages call it
    # Names of the columns that were used, by "label", "scores", "sample_weight", "counts", "groups" and
    # "cluster".
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    cluster: Array | None = None
    counts: Array | None = None
    by: Mapping[str, Array] = field(
        default_factory=lambda: MappingProxyType({})
    )  # columns of groups, by name
    cautions: tuple[str, ...] = ()  # what a reader of a result should know about how the scores were read
    rows: int = 0  # number of rows, but for those without a label
    dropped: int = 0  # number of rows without a label
    left_out: str = ""  # the sentence about these


def is_large(path: str, format: str | None = None) -> tuple[bool, str]:
    """Return whether a path holds more than is read into memory, and how much that is.

    Only sizes are looked at, and rows where a file says how many it has. What cannot be looked at is not
    large: it is left to the reader of rows.
    """
    try:
        files = expanded(path, format)
        size = sum(os.path.getsize(file) for file in files)
        formats = {format or SUFFIXES.get(PurePath(file).suffix.lower()) for file in files}
        # Only Parquet holds many rows in few bytes.
        if size <= MANY_TEXT and "parquet" not in formats:
            return False, ""
        sources = [described(file, format) for file in files]
    except (OSError, ValueError, ImportError):
        return False, ""
    texts = sum(source.size for source in sources if source.is_text)
    if any(source.rows is None for source in sources):
        return texts > MANY_TEXT or size > MANY_BYTES, f"{size / 1e6:,.0f} MB"
    rows = sum(source.rows or 0 for source in sources)
    return rows > MANY_ROWS or size > MANY_BYTES, f"{rows:,} rows"


@in_words(FILES)
def n_scores(path: str, requested: ColumnRequest, format: str | None = None) -> int:
    """Return how many columns of scores a path has; only headers are read."""
    sources = [described(file, format) for file in expanded(path, format)]
    return len(roles_in_all(sources, requested).scores.names)


@in_words(FILES)
def load_models(
    path: str,
    requested: ColumnRequest,
    models: Mapping[str, tuple[str, ...]] | None = None,
    *,
    format: str | None = None,
    stdin: BinaryIO | None = None,
    progress: Progress | None = None,
) -> dict[str, Data]:
    """Return labels and scores of a file, a folder or a pattern by model; without models there is one, "".

    `models` are the columns of the scores of each model. "-" is standard input. Progress is in bytes.
    """
    models = {"": requested.scores} if models is None else models
    sources = [described(file, format, stdin) for file in expanded(path, format)]
    requested_of = {name: replace(requested, scores=specs) for name, specs in models.items()}
    roles = {name: roles_in_all(sources, model_roles) for name, model_roles in requested_of.items()}
    with suggesting_labels(next(iter(roles.values()))):
        kinds, all_rows = _read(sources, list(roles.values()), progress)
    texts: dict[Any, str] = {}
    for file_rows in all_rows:
        with naming(file_rows.source.path):
            check_label(next(iter(roles.values())).label, texts, file_rows.rows.label)
    seen = {label for file_rows in all_rows for label in file_rows.rows.seen}
    data: dict[str, Data] = {}
    for name, model_roles in roles.items():
        with naming(sources[0].path):
            schema = resolve_schema(
                requested_of[name], model_roles, kinds, None if model_roles.label is None else seen
            )
            if model_roles.label is not None and schema.classes is None:
                schema.pair(seen)
        pieces = []
        for file_rows in all_rows:
            with naming(file_rows.source.path), suggesting_labels(model_roles):
                pieces.append(checked(file_rows.rows, schema, file_rows.first).data)
        read, known = _data(path, schema, all_rows), list(filter(None, pieces))
        if read.dropped:
            labelled = np.array([value is not None for value in read.y_true])
            counts = None if read.counts is None else ("counts", read.counts)
            dropped = count_dropped(labelled, counts)
            read = replace(read, left_out=dropped_caution(dropped, sum(each.n_rows for each in known)))
        data[name] = replace(read, cautions=_cautions(known))
        if model_roles.scores.doubtful and np.isin(data[name].y_prob, (0, 1)).all():
            with naming(sources[0].path):
                refuse_labels(model_roles)
    return data


def _cautions(pieces: Sequence[inputs.Predictions]) -> tuple[str, ...]:
    """Return what is to be known of rows that were read in pieces."""
    count, rows = sum(each.renormalised for each in pieces), sum(each.n_rows for each in pieces)
    if not count:
        return ()
    largest = max(float(np.abs(each.deviation).max()) for each in pieces if each.deviation is not None)
    return (renormalisation_caution(count, rows, largest),)


class _FileRows(NamedTuple):
    """Rows of a file, and how many come before them."""

    source: DataFile
    first: int
    rows: BatchRows
    counts: Array | None = None  # counts of the rows without a label


def _read(
    sources: Sequence[DataFile], roles: list[ColumnRoles], progress: Progress | None
) -> tuple[dict[str, Kind], list[_FileRows]]:
    """Return the kinds of columns, which the first rows settle, and all rows."""
    kinds: dict[str, Kind] | None = None
    # Models share every column but those of the scores.
    names = tuple(dict.fromkeys(name for model_roles in roles for name in model_roles.scores.names))
    union = replace(roles[0], scores=Scores(names))
    with naming(sources[0].path):
        check_bytes(8 * len(union.numbers) * sum(source.rows or 0 for source in sources))
    all_rows: list[_FileRows] = []
    size, total = 0, sum(source.size for source in sources)
    for piece in labelled_batches(sources, union, rows_of_batch(sources, len(names))):
        with naming(piece.source.path):
            if kinds is None and piece.is_labelled:
                kinds = kinds_in_all(sources, roles, piece.source, piece.batch)
            rows = typed(piece.batch, union, kinds or {}, piece.first, piece.kept)
            size += sum(column.nbytes for column in rows.numbers.values())
            check_bytes(size)
            counts = None
            if union.counts is not None and piece.kept is not None:
                counts = numbers_of(union.counts, piece.others[union.counts])
        all_rows.append(_FileRows(piece.source, piece.first, rows, counts))
        if progress is not None:
            progress(piece.done, total)
    if kinds is None:
        refuse_no_rows(sources, sum(len(_kept(file_rows)) for file_rows in all_rows))
    return kinds, all_rows


def _kept(file_rows: _FileRows) -> Array:
    """Return whether each row of a part has a label."""
    rows = file_rows.rows
    return np.ones(len(rows), dtype=bool) if rows.kept is None else rows.kept


def _data(path: str, schema: ResolvedSchema, all_rows: Sequence[_FileRows]) -> Data:
    """Return the rows of all parts with the scores of one model.

    The label of a row without one is None. The other values of such a row are those of the row before it,
    but for its count.
    """
    roles, kept = schema.roles, np.concatenate([_kept(file_rows) for file_rows in all_rows])
    rows = [file_rows.rows for file_rows in all_rows if len(file_rows.rows)]
    every = slice(None) if kept.all() else np.maximum(np.cumsum(kept) - 1, 0)
    score = np.concatenate([matrix_of(each, roles) for each in rows])[every]
    if roles.percent:
        inputs.check_percent(float(score.max()))
    weight, label, dropped = None, None, int((~kept).sum())
    if roles.weight is not None:
        weight = np.concatenate([each.numbers[roles.weight] for each in rows])[every]
    if roles.label is not None:
        label = _joined(each.label for each in rows)[every]
    if dropped and label is not None:
        label = label.astype(object)
        label[~kept] = None
    if dropped and roles.counts is not None and weight is not None:
        counts = np.concatenate([block.counts for block in all_rows if block.counts is not None])
        weight = weight.astype(np.result_type(weight, counts))
        weight[~kept] = counts
    return Data(
        y_true=label,
        y_prob=score,
        labels=schema.classes,
        pos_label=schema.pos_label,
        sample_weight=weight if roles.counts is None else None,
        groups=None if roles.groups is None else _joined(each.groups for each in rows)[every],
        notion=schema.notion.name,
        source=called(path),
        columns=MappingProxyType(roles.by_role),
        cluster=None if roles.cluster is None else _joined(each.cluster for each in rows)[every],
        counts=None if roles.counts is None else weight,
        by={name: _joined(each.by[k] for each in rows)[every] for k, name in enumerate(roles.by)},
        rows=int(kept.sum()),
        dropped=dropped,
    )


def _joined(columns: Iterable[Array | Coded | None]) -> Array:
    return np.concatenate([c.array() if isinstance(c, Coded) else np.asarray(c) for c in columns])

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
    Meaning,
    Rows,
    check_label,
    checked,
    doubting,
    matrix_of,
    refuse_labels,
    settled,
    typed,
)
from calibrant.data.columns import Asked, Roles, Scores
from calibrant.data.files import SUFFIXES, called, check_bytes, expanded, naming
from calibrant.data.pipeline import (
    FILES,
    called_together,
    in_words,
    kinds_in_all,
    roles_in_all,
    rows_of_batch,
)
from calibrant.data.readers import Source, all_batches, described
from calibrant.data.values import Coded, Kind
from calibrant.inputs import Array

Progress: TypeAlias = Callable[[int, int], None]

#: Beyond so many rows, or bytes of files of any kind or of text, only sums are kept.
MANY_ROWS, MANY_BYTES, MANY_TEXT = 5_000_000, 1 << 30, 1 << 28


@dataclass(frozen=True, eq=False)
class Data:
    """Labels, scores and what belongs to them, as the functions of the library take them.

    Attributes
    ----------
    y_true : array, optional
        None where labels were not asked for.
    y_prob : array
        Of shape (N,) for one column of scores, (N, C) for more.
    labels : tuple, optional
        The class of each column, where it is known.
    pos_label : object
        The class asked about, where one was named.
    sample_weight, counts, groups, cluster : array, optional
    notion : str
        What was asked, or what the columns are usually asked about.
    source : str
        The file, as messages call it.
    columns : mapping
        Names of the columns that were used, by "label", "scores", "sample_weight", "counts", "groups" and
        "cluster".
    cautions : tuple of str
        What a reader of a result should know about how the scores were read.
    """

    y_true: Any
    y_prob: Array
    labels: tuple[Any, ...] | None = None
    pos_label: Any = None
    sample_weight: Array | None = None
    groups: Array | None = None
    notion: str = "binary"
    source: str = ""
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    cluster: Array | None = None
    counts: Array | None = None
    cautions: tuple[str, ...] = ()


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
def n_scores(path: str, asked: Asked, format: str | None = None) -> int:
    """Return how many columns of scores a path has; only headers are read."""
    sources = [described(file, format) for file in expanded(path, format)]
    return len(roles_in_all(sources, asked).scores.names)


@in_words(FILES)
def load_models(
    path: str,
    asked: Asked,
    models: Mapping[str, tuple[str, ...]] | None = None,
    *,
    format: str | None = None,
    stdin: BinaryIO | None = None,
    progress: Progress | None = None,
) -> dict[str, Data]:
    """Return labels and scores of a file, by model.

    Parameters
    ----------
    path : str
        The file, a folder or a pattern; "-" is standard input.
    asked : Asked
        What is known about the columns.
    models : mapping, optional
        The columns of the scores of each model; by default there is one model, "".
    format : str, optional
        One of `FORMATS`; by default what the suffix says, or else the first bytes.
    stdin : binary file, optional
        What "-" stands for.
    progress : callable, optional
        Called as progress(done, total), in bytes, while the file is read.

    Raises
    ------
    ValueError, OSError, ImportError
        One line with the file, the column, the rule and the value.
    """
    models = {"": asked.scores} if models is None else models
    sources = [described(file, format, stdin) for file in expanded(path, format)]
    asked_of = {name: replace(asked, scores=specs) for name, specs in models.items()}
    roles = {name: roles_in_all(sources, own) for name, own in asked_of.items()}
    with doubting(next(iter(roles.values()))):
        kinds, parts = _read(sources, list(roles.values()), progress)
    texts: dict[Any, str] = {}
    for part in parts:
        with naming(part.source.path):
            check_label(next(iter(roles.values())).label, texts, part.rows.label)
    seen = {label for part in parts for label in part.rows.seen}
    data: dict[str, Data] = {}
    for name, own in roles.items():
        with naming(sources[0].path):
            meaning = settled(asked_of[name], own, kinds, None if own.label is None else seen)
            if own.label is not None and meaning.classes is None:
                meaning.pair(seen)
        pieces = []
        for part in parts:
            with naming(part.source.path), doubting(own):
                pieces.append(checked(part.rows, meaning, part.first).data)
        data[name] = replace(_data(path, meaning, parts), cautions=_cautions(filter(None, pieces)))
        if own.scores.doubtful and np.isin(data[name].y_prob, (0, 1)).all():
            with naming(sources[0].path):
                refuse_labels(own)
    return data


def _cautions(pieces: Iterable[inputs.Predictions]) -> tuple[str, ...]:
    """Return what is to be known of rows that were read in pieces."""
    parts = [(each.renormalised, each.n_rows, each.deviation) for each in pieces]
    count = sum(part[0] for part in parts)
    if not count:
        return ()
    largest = max(float(np.abs(off).max()) for _, _, off in parts if off is not None)
    return (inputs.renormalisation_caution(count, sum(part[1] for part in parts), largest),)


class _Part(NamedTuple):
    """Rows of a file, and how many come before them."""

    source: Source
    first: int
    rows: Rows


def _read(
    sources: Sequence[Source], roles: list[Roles], progress: Progress | None
) -> tuple[dict[str, Kind], list[_Part]]:
    """Return the kinds of columns, which the first rows settle, and all rows."""
    kinds: dict[str, Kind] | None = None
    # Models share every column but those of the scores.
    names = tuple(dict.fromkeys(name for own in roles for name in own.scores.names))
    union = replace(roles[0], scores=Scores(names))
    with naming(sources[0].path):
        check_bytes(8 * len(union.numbers) * sum(source.rows or 0 for source in sources))
    parts: list[_Part] = []
    size, total = 0, sum(source.size for source in sources)
    for source, first, batch, done in all_batches(
        sources, union.numbers, union.values, rows_of_batch(sources, len(names))
    ):
        with naming(source.path):
            if kinds is None:
                kinds = kinds_in_all(sources, roles, source, batch)
            rows = typed(batch, union, kinds, first)
            size += sum(column.nbytes for column in rows.numbers.values())
            check_bytes(size)
        parts.append(_Part(source, first, rows))
        if progress is not None:
            progress(done, total)
    if kinds is None:
        raise ValueError(f"{called_together(sources)}: has no rows")
    return kinds, parts


def _data(path: str, meaning: Meaning, parts: Sequence[_Part]) -> Data:
    """Return the rows of all parts with the scores of one model."""
    roles = meaning.roles
    score = np.concatenate([matrix_of(part.rows, roles) for part in parts])
    if roles.percent:
        inputs.check_percent(float(score.max()))
    rows = [part.rows for part in parts]
    weight = None if roles.weight is None else np.concatenate([own.numbers[roles.weight] for own in rows])
    return Data(
        y_true=None if roles.label is None else _joined(own.label for own in rows),
        y_prob=score,
        labels=meaning.classes,
        pos_label=meaning.pos_label,
        sample_weight=weight if roles.counts is None else None,
        groups=None if roles.groups is None else _joined(own.groups for own in rows),
        notion=meaning.notion.name,
        source=called(path),
        columns=MappingProxyType(roles.by_role),
        cluster=None if roles.cluster is None else _joined(own.cluster for own in rows),
        counts=None if roles.counts is None else weight,
    )


def _joined(columns: Iterable[Array | Coded | None]) -> Array:
    return np.concatenate([c.array() if isinstance(c, Coded) else np.asarray(c) for c in columns])

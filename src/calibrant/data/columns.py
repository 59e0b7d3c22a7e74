"""Labels, scores, groups and weights out of the columns of a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, BinaryIO

import numpy as np

from calibrant.data.files import called
from calibrant.data.many import opened_all
from calibrant.data.names import Columns, Scores, find_label, find_named, find_scores
from calibrant.data.table import Array, Progress, listed, number, quoted, whole

_BOOLEANS = {"true": True, "false": False}


@dataclass(frozen=True, eq=False)
class Data:
    """Labels, scores and what belongs to them, as the functions of the library take them.

    Attributes
    ----------
    y_true : array or None
        None where labels were not asked for.
    y_prob : array
        Of shape (N,) for one column of scores, (N, C) for more.
    labels : tuple, optional
        The class of each column, where the columns say so.
    pos_label : object
        The class asked about, where one was named.
    weight, group : array, optional
    source : str
        The file, as messages call it.
    columns : mapping
        Names of the columns that were used, by "label", "scores", "weight" and "group".
    parts : tuple
        The files and their rows, where there are several.
    """

    y_true: Array | None
    y_prob: Array
    labels: tuple[Any, ...] | None = None
    pos_label: Any = None
    weight: Array | None = None
    group: Array | None = None
    source: str = ""
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    parts: tuple[tuple[str, int], ...] = ()

    def place(self, row: int) -> tuple[str, int]:
        """The file that a row is of, and its row there; both count from 0."""
        for file, rows in self.parts:
            if row < rows:
                return called(file), row
            row -= rows
        return self.source, row


def load(
    path: str,
    ask: Columns = Columns(),  # noqa: B008 - frozen
    *,
    format: str | None = None,
    stdin: BinaryIO | None = None,
    progress: Progress | None = None,
) -> Data:
    """Labels and scores of a file.

    Parameters
    ----------
    path : str
        The file, a folder or a pattern; "-" is standard input.
    ask : Columns
        What is known about the columns.
    format, stdin
        As for `opened`.
    progress : callable, optional
        Called as progress(done, total) while the file is read.

    Raises
    ------
    ValueError, OSError, ImportError
        One line with the file, the column, the rule and what was found.
    """
    models = {"": ask.scores}
    return load_models(path, models, ask, format=format, stdin=stdin, progress=progress)[""]


def load_models(
    path: str,
    models: Mapping[str, tuple[str, ...]],
    ask: Columns = Columns(),  # noqa: B008 - frozen
    *,
    format: str | None = None,
    stdin: BinaryIO | None = None,
    progress: Progress | None = None,
) -> dict[str, Data]:
    """Several models of one file, each by its columns of scores; see `load`."""
    with opened_all(path, format, stdin) as (table, parts):
        roles = {"label": find_label(table, ask)}
        roles |= {role: find_named(table, role, getattr(ask, role)) for role in ("weight", "group")}
        used = {role: (name,) for role, name in roles.items() if name is not None}
        taken = {name for (name,) in used.values()}
        chosen = {name: find_scores(table, specs, taken) for name, specs in models.items()}
        numbers = dict.fromkeys(name for one in chosen.values() for name in one.names)
        numbers |= dict.fromkeys(used.get("weight", ()))
        values = dict.fromkeys(used.get("label", ()) + used.get("group", ()))
        read = table.read(list(numbers), list(values), progress)
        truth, weight, group = (None if name is None else read[name] for name in roles.values())
        common = Data(truth, np.empty(0), None, ask.positive, weight, group, called(path), used, tuple(parts))
        return {name: _model(common, one, read) for name, one in chosen.items()}


def _model(data: Data, scores: Scores, read: Mapping[str, Array]) -> Data:
    """The data with the scores of one model, and with the classes and the label that these ask about."""
    single = len(scores.names) == 1
    truth = _boolean(data.y_true) if single else data.y_true
    seen = None if truth is None else _distinct(truth)
    label = "".join(data.columns.get("label", ()))
    labels = None if single else classes_of(scores, label, seen)
    positive = None if data.pos_label is None else alike(data.pos_label, labels or seen or ())
    if single and positive is None and seen is not None:
        positive = positive_of(scores, label, seen)
    columns = [read[name] for name in scores.names]
    return replace(
        data,
        y_true=truth,
        y_prob=columns[0] if single else np.column_stack(columns),
        labels=labels,
        pos_label=positive,
        columns=MappingProxyType({**data.columns, "scores": scores.names}),
    )


def _distinct(truth: Array) -> list[Any]:
    if truth.dtype.kind == "O":
        return sorted(set(truth.tolist()))
    found = np.unique(truth).tolist()
    return [int(v) for v in found] if all(v == int(v) for v in found) and truth.dtype.kind == "f" else found


def _boolean(truth: Array | None) -> Array | None:
    """The texts "true" and "false" as booleans, others as they are."""
    if (
        truth is None
        or truth.dtype.kind != "O"
        or not {v.lower() for v in set(truth.tolist())} <= set(_BOOLEANS)
    ):
        return truth
    return np.array([_BOOLEANS[v.lower()] for v in truth.tolist()])


def alike(text: str, seen: Sequence[Any]) -> Any:
    """A text as a label of the kind that was seen."""
    kinds = {type(value) for value in seen}
    if kinds == {bool}:
        return _BOOLEANS.get(text.lower(), {"1": True, "0": False}.get(text, text))
    if kinds <= {int, float} and kinds and (found := number(text)) is not None:
        return whole(text) if whole(text) is not None else found
    return text


def classes_of(scores: Scores, label: str, seen: list[Any] | None) -> tuple[Any, ...] | None:
    """The class of each column, by what it is named after."""
    if scores.classes is None:
        return None
    if seen is None:
        integers = [whole(text) for text in scores.classes]
        return scores.classes if None in integers else tuple(integers)
    found = tuple(alike(text, seen) for text in scores.classes)
    if set(seen) <= set(found):
        return found
    if not scores.sure and set(seen) <= set(range(len(found))):
        return None  # a list in the order of the classes 0, 1, ...
    raise ValueError(
        f"has scores for the classes {listed(scores.classes)}, "
        f"and column {quoted(label)} holds {listed(seen)}"
    )


def positive_of(scores: Scores, label: str, seen: list[Any]) -> Any:
    """The class that a single column of scores is of; None where the library knows."""
    if scores.classes is not None and (named := alike(scores.classes[0], seen)) in seen:
        return named
    if any(set(seen) <= usual for usual in ({0, 1}, {-1, 1})):
        return None
    raise ValueError(
        f"has labels other than 0 and 1, -1 and 1 or booleans in column {quoted(label)}: {listed(seen)}; "
        "say which one the scores are of by --positive"
    )

"""Which columns are meant, by their names alone.

What is obvious is found. What is not is asked for, with the columns there are: nothing is guessed.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from calibrant.data.table import Table, listed, number, quoted, whole

LABELS = (
    *("label", "labels", "y", "y_true", "true", "truth", "ground_truth", "target", "targets", "class"),
    *("true_label", "true_class", "true_y", "actual", "outcome", "observed"),
)
SCORES = (
    *("p", "prob", "probs", "proba", "probability", "probabilities", "score", "scores"),
    *("y_prob", "y_proba", "y_score", "y_scores"),
)
# A column for each class: p_cat, prob_0, y_prob_1, or p0, p1.
_FAMILY = re.compile(
    r"(?P<stem>(?:y_)?(?:p|probs?|proba|probability|probabilities|scores?)_)(?P<name>.+)"
    r"|(?P<short>(?:p|prob|proba|score))(?P<digits>[0-9]+)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Columns:
    """What a caller says about the columns of a file; None and () mean: find it.

    Attributes
    ----------
    label, weight, group : str, optional
        Names of columns. Weight and group are used only if named.
    scores : tuple of str
        Names, lists separated by commas, or patterns such as "p_*", where what the star stands for
        is the class of the column.
    positive : str, optional
        The class asked about.
    labelled : bool
        Whether labels are needed.
    """

    label: str | None = None
    scores: tuple[str, ...] = ()
    positive: str | None = None
    weight: str | None = None
    group: str | None = None
    labelled: bool = True


@dataclass(frozen=True)
class Scores:
    """Columns of scores, and the class that each is named after.

    `sure` says that the names speak of classes, as a pattern does; a list may be in any words.
    """

    names: tuple[str, ...]
    classes: tuple[str, ...] | None
    sure: bool


def find_label(table: Table, ask: Columns) -> str | None:
    """The column of the labels; None where they are not needed."""
    if ask.label is not None or not ask.labelled:
        return find_named(table, "label", ask.label)
    found = [name for name in table.own if _plain(name) in LABELS]
    if not found and table.pair is not None and not ask.scores:
        return table.pair[0]
    if len(found) == 1:
        return find_named(table, "label", found[0])
    if found:
        raise ValueError(f"has several columns that may be the label: {listed(found)}; give --label")
    raise ValueError(f"has no column that is obviously the label; give --label, one of {_columns(table)}")


def find_named(table: Table, role: str, name: str | None) -> str | None:
    """The name of a column that is there, once."""
    if name is None:
        return None
    times = table.times[name]
    if not times:
        near = difflib.get_close_matches(name, table.names[:1000], n=1)
        hint = f"did you mean {quoted(near[0])}? " if near else ""
        raise ValueError(f"has no column {quoted(name)} for --{role}; {hint}columns: {_columns(table)}")
    if times > 1:
        raise ValueError(f"has {times} columns {quoted(name)} for --{role}; give each a name of its own")
    return name


def _columns(table: Table) -> str:
    numeric = all(number(name) is not None for name in table.names)
    return listed(table.names) + ("; the first row must name the columns" if numeric else "")


def find_scores(table: Table, specs: Sequence[str], taken: set[str]) -> Scores:
    """The columns of the scores, by what the caller wrote or by their names."""
    if not specs:
        return _found(table, taken)
    parts = [_spec(table, spec, taken) for spec in specs]
    names = tuple(name for part in parts for name in part.names)
    if len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise ValueError(f"has the column {quoted(twice)} twice in --scores")
    classes = [part.classes for part in parts]
    if None in classes:
        return Scores(names, None, False)
    made = tuple(one for part in classes if part is not None for one in part)
    return Scores(names, made, all(part.sure for part in parts))


def _spec(table: Table, spec: str, taken: set[str]) -> Scores:
    """The columns that a name, a list of names or a pattern stands for."""
    if spec in table.blocks:
        return Scores(table.blocks[spec], None, False)
    if "," in spec and spec not in table.times:
        parts = [part.strip() for part in spec.split(",")]
        if "" in parts:
            raise ValueError(f"cannot use --scores {quoted(spec)}: it has an empty entry")
        return find_scores(table, parts, taken)
    if "*" not in spec or spec in table.times:
        name = find_named(table, "scores", spec)
        assert name is not None
        found = member(name)
        return Scores((name,), (found[1] if found else name,), False)
    pattern = re.compile("(.*)".join(map(re.escape, spec.split("*"))), re.DOTALL)
    matches = [match for name in table.own if name not in taken and (match := pattern.fullmatch(name))]
    if not matches:
        raise ValueError(f"has no column like {quoted(spec)} for --scores; columns: {_columns(table)}")
    for match in matches:
        find_named(table, "scores", match.string)
    one = spec.count("*") == 1
    return ordered([(match.string, match[1] if one else "") for match in matches], one)


def _found(table: Table, taken: set[str]) -> Scores:
    """The scores, where the names leave no doubt."""
    within = {name for own in table.blocks.values() for name in own}
    families: dict[str, list[tuple[str, str]]] = {}
    candidates = {
        name: Scores(own, None, False) for name, own in table.blocks.items() if _plain(name) in SCORES
    }
    for name in table.own:
        if name in taken or name in within:
            continue
        if _plain(name) in SCORES:
            candidates[name] = Scores((name,), None, False)
        elif found := member(name):
            families.setdefault(found[0], []).append((name, found[1]))
    candidates |= {f"{stem}*": ordered(own, True) for stem, own in families.items()}
    if not candidates and table.pair is not None and table.pair[1] not in taken:
        name = table.pair[1]
        return Scores(table.blocks.get(name, (name,)), None, False)
    if len(candidates) == 1:
        (scores,) = candidates.values()
        for name in scores.names:
            find_named(table, "scores", name)
        return scores
    if candidates:
        raise ValueError(f"has several columns that may be the scores: {listed(candidates)}; give --scores")
    raise ValueError(
        f"has no columns that are obviously the scores; give --scores, some of {_columns(table)}"
    )


def member(name: str) -> tuple[str, str] | None:
    """The stem of a column of a family, and the class it is named after."""
    match = _FAMILY.fullmatch(name)
    if match is None:
        return None
    return (match["stem"] or match["short"]).lower(), match["name"] or match["digits"]


def ordered(pairs: list[tuple[str, str]], named: bool) -> Scores:
    """Columns in the order of their classes where these are whole numbers, otherwise as in the file."""
    if named and all(whole(text) is not None for _, text in pairs):
        pairs = sorted(pairs, key=lambda pair: int(pair[1]))
    return Scores(
        tuple(name for name, _ in pairs), tuple(text for _, text in pairs) if named else None, named
    )


def _plain(name: str) -> str:
    return re.sub(r"[\s.-]+", "_", name.strip().lower())

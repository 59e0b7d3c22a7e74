"""Which columns of files and frames are labels, scores, weights, groups and clusters, by their names alone.

What is obvious is found. What is not is asked for, with the columns there are: nothing is guessed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NoReturn

from calibrant.inputs import InputError, InputTypeError, check_choice, show
from calibrant.inputs.columns import beginning
from calibrant.inputs.errors import show_near
from calibrant.inputs.missing import MISSING
from calibrant.inputs.predictions import row_weights
from calibrant.parallel import cached_property

LABELS = (
    *("label", "labels", "y", "y_true", "true", "truth", "ground_truth", "target", "targets", "class"),
    *("true_label", "true_class", "true_y", "actual", "outcome", "observed"),
)
SCORES = (
    *("p", "prob", "probs", "proba", "probability", "probabilities", "score", "scores"),
    *("y_prob", "y_proba", "y_score", "y_scores", "pred_prob", "pred_proba", "predict_proba"),
    *("y_pred_prob", "y_pred_proba", "predicted_prob", "predicted_probability"),
)
# Scores, or predicted labels: taken where no other column may be the scores, and not if all are 0 or 1.
PREDICTIONS = ("y_pred",)
# Columns of pairs of correctness and confidence.
CORRECT, CONFIDENCE = ("correct", "is_correct"), ("confidence", "conf")
# A column for each class: p_cat, prob_0, y_prob_1, or p0, p1.
_FAMILY = re.compile(
    r"(?P<stem>(?:y_)?(?:p|probs?|proba|probability|probabilities|scores?)_)(?P<name>.+)"
    r"|(?P<short>(?:p|prob|proba|score))(?P<digits>[0-9]+)",
    re.IGNORECASE,
)
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
# The default name of the column that `calibrate apply` adds; of several classes it begins their names.
CALIBRATED = "calibrated"


@dataclass(frozen=True)
class ColumnRequest:
    """What a caller asks of files or of a frame; None and () mean: find it."""

    # label, sample_weight, counts, groups, cluster: names of columns. Weights, counts, groups and
    # clusters are used only if named.
    label: str | None = None
    scores: tuple[str, ...] = ()  # names, lists separated by commas, or patterns such as "p_*"
    sample_weight: str | None = None
    groups: str | None = None
    cluster: str | None = None
    notion: str | None = None  # what is compared
    labels: tuple[Any, ...] | None = None  # the class of each column of scores, in the order of the columns
    pos_label: Any = None  # the selected class
    positive: str | None = None  # the same as a text, which is read as the labels are
    labelled: bool = True  # whether labels are needed
    percent: bool = False  # whether scores are percentages, from 0 to 100
    counts: str | None = None
    by: tuple[str, ...] = ()  # columns whose combinations are groups
    missing: str = "raise"  # what is done about rows without a label: "raise" or "drop"
    from_logits: bool = False  # whether scores are log-odds or logits


@dataclass(frozen=True)
class ColumnHeader:
    """The columns that a file or a frame has."""

    names: tuple[str, ...]  # their names, in its order
    # The columns of each two-dimensional array, by its name.
    blocks: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    # Labels and scores by their shape and type, where the file holds nothing else.
    pair: tuple[str, str] | None = None
    # Columns that the names of its folders tell, and their values: taken where they are asked for, never
    # found. They come last.
    in_folders: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    of: str = "file"  # what has the columns

    @property
    def file_names(self) -> tuple[str, ...]:
        """Names of the columns that the file itself has."""
        return tuple(name for name in self.names if name not in self.in_folders)

    @cached_property
    def times(self) -> Counter[str]:
        """How many columns have each name."""
        return Counter(self.names)


@dataclass(frozen=True)
class Scores:
    """Columns of scores."""

    names: tuple[str, ...]
    array: bool = False  # whether the columns are those of an array, which have no names
    doubtful: bool = False  # whether, by its name, the column may hold predicted labels

    @property
    def classes(self) -> tuple[Any, ...] | None:
        """What the names tell of classes where there are no labels: whole numbers, or texts."""
        if self.array:
            return None
        families = [class_column(name) for name in self.names]
        start = beginning(self.names).rfind("_") + 1
        texts = tuple(
            family[1] if family else name[start:] for family, name in zip(families, self.names, strict=True)
        )
        numbers = tuple(parse_integer(text) for text in texts)
        return texts if None in numbers else numbers


@dataclass(frozen=True)
class ColumnRoles:
    """The columns that are used."""

    label: str | None
    scores: Scores
    sample_weight: str | None
    groups: str | None
    cluster: str | None = None
    percent: bool = False
    counts: str | None = None
    by: tuple[str, ...] = ()
    drop: bool = False  # whether rows without a label are left out
    from_logits: bool = False

    @property
    def weight(self) -> str | None:
        """The column of importance weights or of counts."""
        return self.sample_weight if self.counts is None else self.counts

    @property
    def numbers(self) -> tuple[str, ...]:
        """Columns that must hold numbers."""
        return self.scores.names + (() if self.weight is None else (self.weight,))

    @property
    def values(self) -> tuple[str, ...]:
        """Columns of which the values are told apart."""
        named = (name for name in (self.label, self.groups, self.cluster, *self.by) if name is not None)
        return tuple(dict.fromkeys(named))

    @property
    def are_pairs(self) -> bool:
        """Whether the columns are named as pairs of correctness and confidence."""
        named = self.label is not None and _plain(self.label) in CORRECT
        return named and len(self.scores.names) == 1 and _plain(self.scores.names[0]) in CONFIDENCE

    def in_order(self, order: Sequence[int] | None) -> ColumnRoles:
        """Return the same columns, those of scores in another order."""
        if order is None:
            return self
        return replace(self, scores=replace(self.scores, names=tuple(self.scores.names[k] for k in order)))

    @cached_property
    def by_role(self) -> dict[str, tuple[str, ...]]:
        """The columns, by what they are for."""
        named = ("label", "sample_weight", "counts", "groups", "cluster")
        single = {role: getattr(self, role) for role in named}
        repeatable = {"scores": self.scores.names} | ({"by": self.by} if self.by else {})
        return {role: (name,) for role, name in single.items() if name is not None} | repeatable


def roles_of(header: ColumnHeader, requested: ColumnRequest) -> ColumnRoles:
    """Return the columns that are meant.

    >>> roles_of(ColumnHeader(("id", "y", "p_cat", "p_dog")), ColumnRequest()).by_role
    {'label': ('y',), 'scores': ('p_cat', 'p_dog')}
    """
    label = _label(header, requested)
    check_choice("missing", requested.missing, MISSING)
    row_weights(requested.sample_weight, requested.counts)
    sample_weight = _named(header, "sample_weight", requested.sample_weight)
    counts = _named(header, "counts", requested.counts)
    groups = _named(header, "groups", requested.groups)
    cluster = _named(header, "cluster", requested.cluster)
    by = tuple(str(_named(header, "by", name)) for name in requested.by)
    used = {name for name in (label, sample_weight, counts, groups, cluster, *by) if name is not None}
    scores = _scores(header, requested.scores, used, in_order=requested.labels is None)
    drop = label is not None and requested.missing == "drop"
    if requested.percent and requested.from_logits:
        raise InputError("percent", "be left out where scores are logits")
    more = requested.percent, counts, by, drop, requested.from_logits
    return ColumnRoles(label, scores, sample_weight, groups, cluster, *more)


def class_column(name: str) -> tuple[str, str] | None:
    """Return the stem of a column of a family, and the class it is named after.

    >>> class_column("prob_cat"), class_column("P1"), class_column("cat")
    (('prob_', 'cat'), ('p', '1'), None)
    """
    match = _FAMILY.fullmatch(name)
    if match is None:
        return None
    return (match["stem"] or match["short"]).lower(), match["name"] or match["digits"]


def parse_integer(text: str) -> int | None:
    """Return the integer of 64 bits that a text is; None if it is none."""
    if not _INTEGER.fullmatch(text) or not -(2**63) <= int(text) < 2**63:
        return None
    return int(text)


def one_column(role: str, name: Any) -> str:
    """Return what to do where several columns are named as groups, or an empty text."""
    many_columns = role == "groups" and ("," in name if isinstance(name, str) else isinstance(name, Sequence))
    return "groups of several columns need one column that joins them, such as day-country" * many_columns


def _label(header: ColumnHeader, requested: ColumnRequest) -> str | None:
    if requested.label is not None or not requested.labelled:
        return _named(header, "label", requested.label)
    candidates = [name for name in header.file_names if _plain(name) in LABELS]
    right = [name for name in header.file_names if _plain(name) in CORRECT]
    if not candidates or (not requested.scores and _are_pairs(header, right)):
        candidates = right
    if not candidates and header.pair is not None and not requested.scores:
        return header.pair[0]
    if len(candidates) == 1:
        return _named(header, "label", candidates[0])
    return _ask_for(header, "label", candidates)


def _named(header: ColumnHeader, role: str, name: str | None) -> str | None:
    """Return the name of a column that is there, once."""
    if name is None:
        return None
    if not isinstance(name, str):
        raise InputTypeError(role, "be the name of a column", name, hint=one_column(role, name))
    times = header.times[name]
    if not times:
        got = show_near(name, header.names[:1000])
        hint = "; ".join(filter(None, (_columns(header), one_column(role, name))))
        raise InputError(role, f"be a column of the {header.of}", name, got=got, hint=hint)
    if times > 1:
        rule = "be a column with a name of its own"
        raise InputError(role, rule, name, got=f"{times} columns {show(name)}")
    return name


def _ask_for(header: ColumnHeader, role: str, candidates: Iterable[str]) -> NoReturn:
    """Refuse to guess."""
    if candidates := list(candidates):
        raise InputError(role, "name the column: several may be it", got=show(*candidates))
    sure = [name for name in header.file_names if _plain(name) in CONFIDENCE]
    hint = f"{show(*sure)} goes with a column that says whether a prediction was right" if sure else ""
    raise InputError(role, "name the column: none is obvious", got=_columns(header), hint=hint)


def _columns(header: ColumnHeader) -> str:
    numeric = all(re.fullmatch(r"[\s0-9.eE+-]+", name) for name in header.names)
    hint = "; the first row must name the columns" if numeric and header.of == "file" else ""
    return f"the columns {show(*header.names)}{hint}"


def _scores(header: ColumnHeader, specs: Sequence[str], used: set[str], *, in_order: bool) -> Scores:
    """Return the columns of the scores, by what the caller wrote or by their names."""
    if not specs:
        return _obvious(header, used, in_order=in_order)
    if not all(isinstance(spec, str) for spec in specs):
        raise InputTypeError("scores", "be names or patterns of columns", specs)
    parts = [_specified(header, spec, used, in_order=in_order) for spec in specs]
    names = tuple(name for columns in parts for name in columns.names)
    if len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise InputError("scores", "name each column once", twice, got=f"{show(twice)} twice")
    return Scores(names, len(parts) == 1 and parts[0].array)


def _specified(header: ColumnHeader, spec: str, used: set[str], *, in_order: bool) -> Scores:
    """Return the columns that a name, a list of names or a pattern stands for."""
    if spec in header.blocks:
        return Scores(header.blocks[spec], array=True)
    if "," in spec and spec not in header.times:
        names = [name.strip() for name in spec.split(",")]
        if "" in names:
            raise InputError("scores", "be names between commas", spec)
        return _scores(header, names, used, in_order=in_order)
    if "*" not in spec or spec in header.times:
        _named(header, "scores", spec)
        if spec in used:
            raise InputError("scores", "be other columns than label, weight, groups and cluster", spec)
        return Scores((spec,))
    pattern = re.compile("(.*)".join(map(re.escape, spec.split("*"))), re.DOTALL)
    matches = [match for name in header.file_names if name not in used and (match := pattern.fullmatch(name))]
    if not matches:
        raise InputError("scores", f"match columns of the {header.of}", spec, hint=_columns(header))
    for match in matches:
        _named(header, "scores", match.string)
    pairs = [(match.string, match[1]) for match in matches]
    return _family(pairs, in_order=in_order and spec.count("*") == 1)


def _obvious(header: ColumnHeader, used: set[str], *, in_order: bool) -> Scores:
    """Return the scores, where the names leave no doubt."""
    within = {name for columns in header.blocks.values() for name in columns}
    free = [name for name in header.file_names if name not in used and name not in within]
    families: dict[str, list[tuple[str, str]]] = {}
    candidates = {
        name: Scores(columns, array=True) for name, columns in header.blocks.items() if _plain(name) in SCORES
    }
    for name in free:
        if _plain(name) in SCORES:
            candidates[name] = Scores((name,))
        elif of_family := class_column(name):
            families.setdefault(of_family[0], []).append((name, of_family[1]))
    candidates |= {
        f"{pairs[0][0].removesuffix(pairs[0][1])}*": _family(pairs, in_order=in_order)
        for pairs in families.values()
    }
    if not candidates and any(_plain(name) in CORRECT for name in used):
        candidates = {name: Scores((name,)) for name in free if _plain(name) in CONFIDENCE}
    if not candidates:
        blocks = {name: Scores(columns, array=True) for name, columns in header.blocks.items()}
        both = {name: Scores((name,), doubtful=True) for name in free} | blocks
        candidates = {name: scores for name, scores in both.items() if _plain(name) in PREDICTIONS}
    if not candidates and header.pair is not None and header.pair[1] not in used:
        name = header.pair[1]
        return Scores(header.blocks[name], array=True) if name in header.blocks else Scores((name,))
    if len(candidates) != 1:
        _ask_for(header, "scores", candidates)
    ((spec, scores),) = candidates.items()
    if recalibrated := _recalibrated(free):
        rule = f"be {recalibrated!r} or {spec!r}: there are scores from before and after recalibration"
        raise InputError("scores", rule)
    for name in scores.names:
        _named(header, "scores", name)
    return scores


def _recalibrated(names: Sequence[str]) -> str:
    """Return the columns that `calibrate apply` added, or an empty text.

    >>> _recalibrated(["p", "calibrated", "calibrated_low"]), _recalibrated(["p", "calibrated_at"])
    ('calibrated', '')
    >>> _recalibrated(["calibrated_a", "calibrated_b"])
    'calibrated_*'
    >>> _recalibrated(["calibrated_a", "calibrated_b", "calibrated_a_low", "calibrated_b_low"])
    'calibrated_a,calibrated_b'
    """
    if CALIBRATED in names:
        return CALIBRATED
    added = [name for name in names if name.startswith(f"{CALIBRATED}_")]
    ends = [name for name in added if name.removesuffix("_low").removesuffix("_high") in {*added} - {name}]
    classes = [name for name in added if name not in ends]
    return "" if len(classes) < 2 else ",".join(classes) if ends else f"{CALIBRATED}_*"


def _are_pairs(header: ColumnHeader, right: Sequence[str]) -> bool:
    """Return whether the columns are pairs of correctness and confidence, without other scores."""
    names = [_plain(name) for name in header.file_names]
    others = any(name in SCORES for name in names) or any(map(class_column, header.file_names))
    return len(right) == 1 and sum(name in CONFIDENCE for name in names) == 1 and not others


def _family(pairs: list[tuple[str, str]], *, in_order: bool) -> Scores:
    """Return columns with the texts of their classes, by these where all are whole numbers."""
    if in_order and all(parse_integer(text) is not None for _, text in pairs):
        pairs = sorted(pairs, key=lambda pair: int(pair[1]))
    return Scores(tuple(name for name, _ in pairs))


def _plain(name: str) -> str:
    return re.sub(r"[\s.-]+", "_", name.strip().lower())

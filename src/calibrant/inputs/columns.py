"""Which class a column of scores is of: the one place where that is decided.

Names that tell the classes decide: the label as text, as it is or between a beginning and an ending that
all names share, letters of either case (a class that does not occur is spelt as those that do: `P_CAT` beside
`P_DOG` and the label `dog` is `cat`), numbers that are equal (`p_1.0` is of the label 1). Names by default
(none at all, or numbered 0, 1, ... in this order) mean positions: whole labels are numbers of columns, others
are taken in their order. Any other names contradict the labels, and are refused.

`labels=` gives the classes and their order. Columns that are named after the same classes in another order
are put in this order. Names that tell nothing of these classes mean positions. Names that put them in other
places are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from numbers import Real
from os.path import commonprefix
from typing import Any

from calibrant.inputs.errors import InputError, show

#: The label that PyTorch's losses ignore by default.
IGNORED = -100
SWAPPED = "are labels and scores swapped?"
SOFT = "these look like soft labels or rates: pass one observed label per row"
_BOOLEANS = {"true": True, "false": False}
# A single column of scores that is named after its class: p_spam, prob_1, y_prob_yes, spam_prob, P(spam), p1.
_SCORE = r"(?:p|probs?|proba|probability|probabilities|scores?|pred|class)"
_OF_CLASS = (
    re.compile(rf"(?:y_)?{_SCORE}[_ ](.+)", re.IGNORECASE),
    re.compile(rf"(.+)[_ ]{_SCORE}", re.IGNORECASE),
    re.compile(r"P\((.+)\)", re.IGNORECASE),
    re.compile(r"(?:p|prob|proba|score)([0-9]+)", re.IGNORECASE),
)


def column_names(table: Any) -> tuple[Any, ...] | None:
    """Return the names of the columns of a frame of pandas, polars or pyarrow; None for an array."""
    names = getattr(table, "column_names", getattr(table, "columns", None))
    return None if names is None or callable(names) else tuple(names)


def advice_on_labels(labels: Iterable[Any], advice: str) -> tuple[str, str]:
    """Return hint and advice for an error about labels that are no classes; `advice` where they may be some.

    >>> advice_on_labels([-100, 0, 1], "pos_label")
    ('labels of -100 usually mark rows to ignore: drop these rows first', 'ignored')
    """
    labels = tuple(labels)
    if IGNORED in labels:
        return f"labels of {IGNORED} usually mark rows to ignore: drop these rows first", "ignored"
    if any(isinstance(label, float) for label in labels):
        fractions = all(isinstance(label, int | float) and 0 <= label <= 1 for label in labels)
        return (f"{SWAPPED} if not, {SOFT}", "") if fractions else (SWAPPED, advice)
    return "", advice


def classes_of_columns(
    names: Sequence[Any] | None,
    seen: Iterable[Any],
    size: int,
    given: Sequence[Any] | None = None,
    argument: str = "y_prob",
) -> tuple[Any, ...]:
    """Return the class of each of `size` columns; an array has no names.

    `seen` are the labels that occur, whole floats as integers. Classes that the caller has `given` are those
    of the columns in the order of `column_order`.

    >>> classes_of_columns(["dog_prob", "cat_prob"], ["cat", "dog"], 2)
    ('dog', 'cat')
    >>> classes_of_columns(["p_1.0", "p_0.0", "p_2.0"], [0, 1], 3)
    (1, 0, 2)
    >>> classes_of_columns(None, ["cat", "dog"], 2), classes_of_columns(["p_0", "p_1"], [1], 2)
    (('cat', 'dog'), (0, 1))
    >>> classes_of_columns(["yes", "no"], [0, 1], 2)
    Traceback (most recent call last):
        ...
    calibrant.InputError: y_prob must have columns named after the labels 0, 1, got 'yes', 'no';
    pass labels= with the class of each column
    """
    if given is not None:
        if len(given) != size:
            got = f"{len(given)}: {show(*given)}"
            raise InputError("labels", f"name {size} columns of scores", tuple(given), got=got)
        return tuple(given)
    labels = tuple(dict.fromkeys(seen))
    texts = None if names is None else [str(name) for name in names]
    if texts is not None and (from_names := _classes_from_names(texts, labels)) is not None:
        return from_names
    if texts is not None and not _by_default(texts):
        raise InputError(
            argument,
            f"have columns named after the labels {show(*in_order(labels))}",
            tuple(texts),
            got=show(*texts),
            advice="labels",
        )
    if all(isinstance(label, int) for label in labels) and (size == 2 or not _are_booleans(labels)):
        return tuple(range(size))
    if len(labels) != size:
        rule, got = f"hold {size} labels, one for each column", show(*in_order(labels))
        hint, advice = advice_on_labels(labels, "labels")
        raise InputError("y_true", rule, labels, got=got, hint=hint, advice=advice)
    return in_order(labels)


def column_order(names: Sequence[Any] | None, given: Sequence[Any]) -> list[int] | None:
    """Return where the column of each class is, of those that a caller has given; None if all are in place.

    >>> column_order(["p_cat", "p_dog", "p_emu"], ["dog", "cat", "emu"])
    [1, 0, 2]
    >>> column_order(["p_cat", "p_dog"], ["cat", "dog"]), column_order(["a", "b"], ["dog", "cat"])
    (None, None)
    >>> column_order(["cat", "dog", "rest"], ["dog", "cat", "emu"])
    Traceback (most recent call last):
        ...
    calibrant.InputError: labels must not contradict the names of the columns 'cat', 'dog', 'rest', got 'dog',
    'cat', 'emu'; rename the columns, or pass an array to take them in the order of labels
    """
    texts = [] if names is None else [str(name) for name in names]
    if not texts or _are_automatic(texts):
        return None
    classes = _classes_from_names(texts, tuple(given))
    if classes == tuple(given):
        return None
    # Whether numbers from 0 on are classes or places is not known.
    if _by_default(texts) if classes else _misplaced(texts, given):
        rule = f"not contradict the names of the columns {show(*texts)}"
        hint = "rename the columns, or pass an array to take them in the order of labels"
        raise InputError("labels", rule, tuple(given), got=show(*given), hint=hint)
    return [classes.index(label) for label in given] if classes else None


def class_of_name(name: Any, seen: Iterable[Any]) -> Any:
    """Return the label that a single column of scores is named after; None where the name tells none.

    >>> class_of_name("p_Spam", ["ham", "spam"]), class_of_name("0_prob", [0, 1])
    ('spam', 0)
    >>> class_of_name("score", ["ham", "spam"]) is None
    True
    """
    text, labels = str(name).strip(), tuple(dict.fromkeys(seen))
    read = _reader(labels)
    texts = [text, *(match[1].strip() for pattern in _OF_CLASS if (match := pattern.fullmatch(text)))]
    return next((label for label in map(read, texts) if label in labels), None)


def in_order(labels: Sequence[Any]) -> tuple[Any, ...]:
    """Return labels sorted, those of several kinds by their text."""
    try:
        return tuple(sorted(labels))
    except TypeError:
        return tuple(sorted(labels, key=lambda label: (type(label).__name__, str(label))))


def like(text: str, labels: Iterable[Any]) -> Any:
    """Return a text as a label of the kind of those that are known; the text itself if it is none.

    >>> like("1", [0, 2]), like("Spam", ["ham", "spam"]), like("x", [0, 1])
    (1, 'spam', 'x')
    """
    parsed = _reader(tuple(labels))(text)
    return text if parsed is None else parsed


def _classes_from_names(texts: Sequence[str], labels: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The classes that the names tell; None where they tell none, or not all of the labels."""
    if not labels or len(set(texts)) < len(texts):
        return None
    read = _reader(labels)
    for rest in _rests(texts):
        parsed = [read(text) for text in rest]
        if None not in parsed and len(set(parsed)) == len(parsed) and set(labels) <= set(parsed):
            return tuple(_spelt(rest, parsed, labels))
    return None


def _misplaced(texts: Sequence[str], given: Sequence[Any]) -> bool:
    """Whether a name tells one of the classes, which are texts, and this is given to another column."""
    if not all(isinstance(label, str) for label in given):  # numbers may count columns
        return False
    read = _reader(tuple(given))
    return any(
        label in given and label != of_column
        for rest in _rests(texts)
        for label, of_column in zip(map(read, rest), given, strict=True)
    )


def _spelt(texts: Sequence[str], parsed: list[Any], labels: tuple[Any, ...]) -> list[Any]:
    """Return the classes, those that no label tells in letters of the case that labels differ from names by.

    >>> _spelt(["Cat", "Dog"], ["cat", "Dog"], ("cat",)), _spelt(["Cat", "Dog"], ["Cat", "Dog"], ("Cat",))
    (['cat', 'dog'], ['Cat', 'Dog'])
    """
    known = [(text, label) for text, label in zip(texts, parsed, strict=True) if label in labels]
    if len(known) == len(parsed) or any(not isinstance(label, str) for label in parsed):
        return parsed
    if all(text == label for text, label in known):
        return parsed
    spellings = [
        [label if label in labels else change(label) for label in parsed]
        for change in (str.lower, str.upper, str.capitalize)
        if all(change(text) == label for text, label in known)
    ]
    # One spelling only, and no class twice.
    if len(set(map(tuple, spellings))) == 1 and len(set(spellings[0])) == len(parsed):
        return spellings[0]
    return parsed


def _rests(texts: Sequence[str]) -> Iterator[list[str]]:
    """What is left of the names without a beginning and an ending that they share; no number is cut."""
    begin = beginning(texts)
    end = beginning([text[len(begin) :][::-1] for text in texts])[::-1] if len(texts) > 1 else ""
    for a in range(len(begin) + 1):
        for b in range(len(end) + 1):
            rest = [text[a : len(text) - b].strip() for text in texts]
            if not any(
                _cuts_a_number(text[:a], text[a:])
                or _cuts_a_number(text[: len(text) - b], text[len(text) - b :])
                for text in texts
            ):
                yield rest


def beginning(texts: Sequence[str]) -> str:
    """Return what all texts begin with."""
    return commonprefix(texts)  # noqa: RUF071 - of names, not of paths


def _cuts_a_number(left: str, right: str) -> bool:
    """Whether the place between two parts of a name lies within a number."""
    before, after = left[-1:], right[:1]
    return (before.isdecimal() and (after.isdecimal() or after == ".")) or (
        before == "." and after.isdecimal() and left[-2:-1].isdecimal()
    )


def _reader(labels: tuple[Any, ...]) -> Callable[[str], Any]:
    """A function from the text of a name to a label: one that is known, or one of their kind."""
    numeric = bool(labels) and all(isinstance(label, Real) for label in labels)
    by_text: Mapping[str, Any] = {str(label): label for label in labels}
    folded: dict[str, list[Any]] = {}
    for label in labels:
        folded.setdefault(str(label).casefold(), []).append(label)
    by_number = {label: label for label in labels} if numeric else {}

    def read(text: str) -> Any:
        if text in by_text:
            return by_text[text]
        if len(same := folded.get(text.casefold(), [])) == 1:
            return same[0]
        if not numeric:
            return text if text and not numeric and labels else None
        number = _BOOLEANS.get(text.lower(), _number(text))
        return by_number.get(number, number)

    return read


def _number(text: str) -> Any:
    """The number that a text is, whole ones as integers; None for other texts."""
    try:
        value = float(text)
    except ValueError:
        return None
    if value != value or value in (float("inf"), float("-inf")) or "_" in text:
        return None
    return int(value) if value == int(value) else value


def _are_booleans(labels: Sequence[Any]) -> bool:
    return bool(labels) and all(isinstance(label, bool) for label in labels)


def _are_automatic(texts: Sequence[str]) -> bool:
    """Whether names are those that polars gives to columns without one."""
    return list(texts) == [f"column_{k}" for k in range(len(texts))]


def _by_default(texts: Sequence[str]) -> bool:
    """Whether names are numbers from 0 on in this order, after a beginning that they share."""
    start = len(beginning(texts).rstrip("0123456789"))
    return [text[start:] for text in texts] == [str(k) for k in range(len(texts))]

"""Names of classes, given by `class_names=`: checked here for every function that takes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from calibrant.inputs.errors import InputError, InputTypeError


def given_class_names(class_names: Any) -> tuple[str, ...] | dict[Any, str] | None:
    """Return names as text, in the order of the columns or by label; raise an error if two are equal.

    >>> given_class_names({1: "sick"}), given_class_names(iter("ab"))
    ({1: 'sick'}, ('a', 'b'))
    """
    if class_names is None:
        return None
    if isinstance(class_names, str) or not isinstance(class_names, Iterable):
        rule = "be a sequence of names, or map labels to names"
        raise InputTypeError("class_names", rule, class_names)
    if isinstance(class_names, Mapping):
        return {label: str(name) for label, name in class_names.items()}
    return tuple(str(name) for name in class_names)


def class_names(labels: Sequence[Any], given: Any) -> dict[Any, str]:
    """Return the name of each class by its label; empty if no names are given.

    Names are in the order of `labels`, or by label; a class that a mapping leaves out keeps its label.

    >>> class_names(("c", "d"), ["cat", "dog"]), class_names((0, 1), {1: "sick"}), class_names((0, 1), None)
    ({'c': 'cat', 'd': 'dog'}, {0: '0', 1: 'sick'}, {})
    """
    names = given_class_names(given)
    if names is None:
        return {}
    if isinstance(names, dict):
        if unknown := [label for label in names if label not in labels]:
            raise InputError("class_names", f"name classes of {list(labels)}", unknown[0])
        names = tuple(names.get(label, str(label)) for label in labels)
    if len(names) != len(labels):
        raise InputError("class_names", f"name {len(labels)} classes", given)
    if len(set(names)) != len(names):
        raise InputError("class_names", "be distinct", list(names))
    return dict(zip(labels, names, strict=True))

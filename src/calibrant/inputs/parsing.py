"""JSON that says each thing once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from calibrant.inputs.errors import show


class NamedTwiceError(json.JSONDecodeError):
    """An object has two values of one name, and nobody can know which is meant."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the name {show(name)} stands twice in one object", "", 0)
        self.name = name

    def __reduce__(self) -> tuple[type[NamedTwiceError], tuple[str]]:
        return NamedTwiceError, (self.name,)

    def __str__(self) -> str:
        return self.msg


def parsed_json(text: str | bytes, constant: Callable[[str], Any] | None = None) -> Any:
    """Return what a JSON text holds; an object that has a name twice is refused.

    `constant` is called for NaN and the infinities, which JSON does not know.

    >>> parsed_json('{"p": 0.1, "p": 0.9}')
    Traceback (most recent call last):
        ...
    calibrant.inputs.parsing.NamedTwiceError: the name 'p' stands twice in one object
    """
    return json.loads(text, object_pairs_hook=_once, parse_constant=constant)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        name = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise NamedTwiceError(name)
    return values

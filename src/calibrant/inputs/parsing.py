"""JSON that says each thing once."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from calibrant.inputs.errors import InputError, show


class NamedTwiceError(json.JSONDecodeError):
    """An object has two values of one name, and nobody can know which is meant."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the name {show(name)} stands twice in one object", "", 0)
        self.name = name

    def __reduce__(self) -> tuple[type[NamedTwiceError], tuple[str]]:
        return NamedTwiceError, (self.name,)

    def __str__(self) -> str:
        return self.msg


def parsed_json(text: str | bytes) -> Any:
    """Return what a JSON text holds; an object that has a name twice is refused.

    >>> parsed_json('{"p": 0.1, "p": 0.9}')
    Traceback (most recent call last):
        ...
    calibrant.inputs.parsing.NamedTwiceError: the name 'p' stands twice in one object
    """
    return json.loads(text, object_pairs_hook=_once)


def from_text(text: str | bytes, name: str) -> Any:
    """Return what a JSON text holds; one that is no JSON is refused by its name.

    >>> from_text('{"value": 0.1, "value": 0.2}', "estimate")
    Traceback (most recent call last):
        ...
    calibrant.inputs.errors.InputError: estimate must have each key once, got 'value' twice
    """
    try:
        return parsed_json(text)
    except NamedTwiceError as error:
        rule = "have each key once"
        raise InputError(name, rule, error.name, got=f"{error.name!r} twice") from None
    except (ValueError, RecursionError) as error:  # no JSON, no text, too many digits, nested too deeply
        raise InputError(name, "be JSON", text, got=f"an error: {error}") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        name = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise NamedTwiceError(name)
    return values

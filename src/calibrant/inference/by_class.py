"""The estimates of classes, each computed when it is first asked for: few of a thousand ever are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from calibrant.inference.result import Estimate


class ByClass(Mapping[Any, Estimate]):
    """Estimates by label.

    Parameters
    ----------
    each : mapping
        For each label its estimate, or what returns it: then that is kept, and asking again costs nothing.
    """

    def __init__(self, each: Mapping[Any, Estimate | Callable[[], Estimate]]) -> None:
        self._each = dict(each)

    def __getitem__(self, label: Any) -> Estimate:
        one = self._each[label]
        if not isinstance(one, Estimate):
            self._each[label] = one = one()
        return one

    def __iter__(self) -> Iterator[Any]:
        return iter(self._each)

    def __len__(self) -> int:
        return len(self._each)

    def __contains__(self, label: object) -> bool:
        return label in self._each

    def __repr__(self) -> str:
        return repr(dict(self))

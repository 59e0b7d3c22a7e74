"""Outcomes of many classes, which one number a row tells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.evidence.moments import Array


@dataclass(frozen=True, eq=False)
class OneHot:
    """Whether each row is of each class, as an array of shape (classes, rows) that is made when needed.

    Parameters
    ----------
    code : array of int64
        The class of each row.
    first, size : int
        The classes, by number.

    Examples
    --------
    >>> np.asarray(OneHot(np.array([2, 0, 1]), first=1, size=2))
    array([[False, False,  True],
           [ True, False, False]])
    """

    code: Array
    first: int
    size: int

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the array."""
        return self.size, len(self.code)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return the array."""
        code = self.code.astype(np.min_scalar_type(self.first + self.size), copy=False)
        array = code[:, None] == np.arange(self.first, self.first + self.size, dtype=code.dtype)
        return array.T if dtype is None else array.T.astype(dtype)

    def __getitem__(self, entry: Any) -> Any:
        """Return the outcomes of a class, of classes side by side, or some of the array."""
        if isinstance(entry, int | np.integer):
            return np.asarray(self.code == self.first + range(self.size)[entry])
        if isinstance(entry, slice) and entry.step in (None, 1):
            first, last, _ = entry.indices(self.size)
            return OneHot(self.code, self.first + first, max(last - first, 0))
        return np.asarray(self)[entry]

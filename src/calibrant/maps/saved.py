"""File format of a calibrator: its fields, their ranges and the rules across fields."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

import numpy as np

from calibrant.curves.posterior_curve import Line
from calibrant.inputs import InputError, Serializable, check_choice, show
from calibrant.inputs.codec import (
    FAR_FROM_OVERFLOW,
    Ascending,
    Bounds,
    Shape,
    Share,
    check_lengths,
    check_order,
)
from calibrant.maps.forms import Form
from calibrant.maps.methods import METHODS
from calibrant.maps.multiclass import SoftmaxMap
from calibrant.score_data import Array
from calibrant.tasks import get_notion

# Levels of the saved bands.
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)


@dataclass(frozen=True, eq=False)
class Band:
    """Interval of each probability, interpolated linearly between scores.

    Attributes
    ----------
    level : float
    score, low, high : array
    """

    level: Share
    score: Annotated[Array, Shape((None,)), FAR_FROM_OVERFLOW, Ascending()]
    low: Annotated[Array, Shape((None,)), Bounds(0, 1)]
    high: Annotated[Array, Shape((None,)), Bounds(0, 1)]

    @classmethod
    def of(cls, level: float, line: Line) -> Band:
        """Return the band of a reliability curve."""
        return cls(level, line.score, line.low, line.high)

    def _check_fields(self) -> None:
        """Raise an error for ends of another length than the scores, or in the wrong order."""
        check_lengths(self, self.score.size, "low", "high")
        check_order(self, "low", "high")

    def ends(self, score: Array) -> tuple[Array, Array]:
        """Return the ends of the interval at the given scores."""
        low, high = (np.interp(score, self.score, end) for end in (self.low, self.high))
        return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class SavedCalibrator(Serializable):
    """A fitted calibrator.

    Attributes
    ----------
    method, notion : str
    from_logits : bool
    vector : bool
        Whether the input is a score vector.
    classes : tuple
        The class of each column; for a score vector, the negative and the positive class.
    positive : int or None
        Column of the positive class.
    class_names : tuple of str or None
        Names of the classes, if any are given.
    n : float
        Effective number of rows of the fit.
    columns : tuple of str or None
        Names of the score columns of the fit, if any.
    maps : tuple of Form
        One map, or one for each class.
    bands : tuple of tuple of Band
        The bands of each map.
    multiclass : SoftmaxMap or None
        The map of all classes together, instead of `maps`.
    """

    _has_schema: ClassVar[bool] = False
    #: Type of the file, and version of the format.
    _constants: ClassVar[Mapping[str, Any]] = MappingProxyType({"calibrant": "map", "format": 1})
    method: str
    notion: str
    from_logits: bool
    vector: bool
    classes: tuple[Hashable, ...]
    positive: Annotated[int, Bounds(0)] | None
    class_names: tuple[str, ...] | None
    n: Annotated[float, Bounds(0, above=True)]
    columns: tuple[str, ...] | None
    maps: tuple[Form, ...]
    bands: tuple[tuple[Band, ...], ...]
    multiclass: SoftmaxMap | None

    def _check_fields(self) -> None:
        """Raise an error for inconsistent fields."""
        check_choice("method", self.method, METHODS)
        self._check_classes()
        method, count = METHODS[self.method], len(self.classes)
        if self.multiclass is not None:
            if method.fit_multiclass is None or self.vector:
                given = "a vector of scores" if self.vector else f"method {self.method!r}"
                raise InputError("multiclass", f"be null for {given}")
            if self.multiclass.n_classes != count:
                rule = f"be the number of classes, {count}"
                raise InputError("multiclass.n_classes", rule, self.multiclass.n_classes)
        # With two columns, a single map is that of the positive class.
        sizes = {1} if self.vector else {1, 2} if count == 2 else {count}
        size, sizes = len(self.maps), {0} if self.multiclass is not None else sizes
        if size not in sizes:
            raise InputError("maps", f"have {' or '.join(map(str, sorted(sizes)))} entries", got=str(size))
        if len(self.bands) != size:
            raise InputError("bands", f"have {size} entries, as maps", got=str(len(self.bands)))
        for k, form in enumerate(self.maps):
            if not isinstance(form, method.forms):
                raise InputError(f"maps[{k}].kind", f"be that of method {self.method!r}", form.kind)
        for k, bands in enumerate(self.bands):
            if (levels := tuple(band.level for band in bands)) != LEVELS:
                raise InputError(f"bands[{k}]", f"have the levels {show(*LEVELS)}", got=show(*levels))

    def _check_classes(self) -> None:
        """Raise an error for duplicate classes, or for a number of classes that does not fit the notion."""
        notion, count = get_notion(self.notion), len(self.classes)
        if count < 2 or len(set(self.classes)) < count:
            raise InputError("classes", "be at least two, each once", self.classes)
        if self.vector and notion.is_binary and count > 2:
            raise InputError("classes", "be two, the negative and the positive one", self.classes)
        if self.positive is not None and self.positive >= count:
            raise InputError("positive", f"be below {count}, the number of classes", self.positive)
        if self.vector and notion.is_binary and self.positive != 1:
            raise InputError("positive", "be 1 for a vector of scores", self.positive)
        if self.vector if notion.classwise else not self.vector and not (notion.is_binary and count == 2):
            rule = f"be {not self.vector} for notion {self.notion!r} and {count} classes"
            raise InputError("vector", rule, self.vector)
        if (names := self.class_names) is not None and not len(names) == len(set(names)) == count:
            raise InputError("class_names", f"be {count} distinct names", names)
        if self.columns is not None and len(self.columns) != (1 if self.vector else count):
            got = str(len(self.columns))
            raise InputError("columns", "be one for a vector of scores, else one for each class", got=got)

"""Results of the classwise notion, one for each class."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Generic, TypeVar, cast

from calibrant.inputs.errors import show
from calibrant.inputs.printed import Block, Printed
from calibrant.tasks.task import CalibrationTask

Result = TypeVar("Result")


class ByClass(Printed, Mapping[Any, Result], Generic[Result]):
    """One result for each class, in the order of the columns.

    Parameters
    ----------
    results : mapping
        Result of each label, or a function that computes it at the first access. Results that were not
        computed are not pickled.
    """

    def __init__(self, results: Mapping[Any, Result | Callable[[], Result]]) -> None:
        self._results = dict(results)

    def __getitem__(self, label: Any) -> Result:
        result = self._results[label]
        if callable(result):
            self._results[label] = result = result()
        return result

    @property
    def computed(self) -> dict[Any, Result]:
        """The results that are computed already."""
        return {label: result for label, result in self._results.items() if not callable(result)}

    def __reduce__(self) -> tuple[Any, ...]:
        return ByClass, (self.computed,)

    def __contains__(self, label: object) -> bool:
        return label in self._results

    def __iter__(self) -> Iterator[Any]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    def plot(self, axes: Any = None, **options: Any) -> Any:
        """Draw one small panel for each class; see `calibrant.plot.small_multiples`.

        Parameters
        ----------
        **options
            Keyword arguments of the function of `calibrant.plot` that draws it.

        Returns
        -------
        Axes
            The main panel.
        """
        from calibrant import plot

        results: Mapping[Any, Any] = self
        return plot.small_multiples(results, axes, **options)

    def __repr__(self) -> str:
        kind = type(next(iter((self.computed or self).values()))).__name__
        return f"ByClass({kind} of {show(*self)})"

    def _printed(self) -> Iterator[Block]:
        for label, result in self.items():
            name, answer, *_ = next(iter(result._printed()))  # type: ignore[attr-defined]
            yield f"class {label}", f"{name} {answer}"


def each_problem(
    task: CalibrationTask, fit: Callable[..., Result], *, lazy: bool = False, **options: Any
) -> Result | ByClass[Result]:
    """Fit every problem of a calibration task separately: one result, or one for each class.

    Parameters
    ----------
    task : CalibrationTask
        Data and notion.
    fit : callable
        `diagram_of` or `histogram_of`: called as fit(score_data, notion=, label=, **options), and with
        `effect=`, the design effect, and `clusters=`, their number, if rows are in clusters.
    lazy : bool
        Whether to compute the result of a class at the first access, which keeps the score data in memory.
    **options
        Passed for every problem. Pass a Generator, not a seed, so that problems have different random
        numbers.
    """
    notion = task.notion
    clustered: list[dict[str, Any]] = [{}]
    if task.designs is not None:
        clustered = [{"effect": effect, "clusters": task.clusters} for effect in task.design_effects.tolist()]
    if not notion.classwise:
        return fit(task.problems[0], notion=notion, label=task.label, **clustered[0], **options)
    problems = zip(task.labels, task.each(), clustered * (len(task.labels) // len(clustered)), strict=True)
    fits = {
        label: partial(fit, data, notion=notion, label=label, **adjustment, **options)
        for label, data, adjustment in problems
    }
    return ByClass(fits if lazy else {label: compute() for label, compute in fits.items()})


def rename_classes(result: Result, names: Mapping[Any, str]) -> Result:
    """Return a result with names in place of its class labels, wherever it or a part of it stores them.

    Parameters
    ----------
    result : object
        A result, or a mapping or tuple of results; anything else is returned unchanged.
    names : mapping
        Name of each label, as `inputs.class_names` returns it; empty for no change.
    """
    renamed: Any = result
    if not names:
        return result
    if isinstance(result, ByClass):
        renamed = _renamed(result._results, names)
    elif isinstance(result, Mapping):
        renamed = MappingProxyType({key: rename_classes(each, names) for key, each in result.items()})
    elif type(renamed) is tuple:
        renamed = tuple(rename_classes(each, names) for each in renamed)
    elif is_dataclass(result) and not isinstance(result, type):
        parts = {each.name: getattr(result, each.name) for each in fields(result)}
        changes = {key: _renamed_part(key, array, names) for key, array in parts.items()}
        renamed = replace(result, **{key: each for key, each in changes.items() if each is not parts[key]})
    return cast(Result, renamed)


def _renamed_part(key: str, array: Any, names: Mapping[Any, str]) -> Any:
    """Return a field of a result with names in place of labels."""
    if key == "label":
        return array if array is None else names.get(array, array)
    if key == "labels":
        return tuple(names.get(label, label) for label in array)
    if key == "by_class" and isinstance(array, Mapping):
        return _renamed(array._results if isinstance(array, ByClass) else array, names)
    return rename_classes(array, names)


def _renamed(results: Mapping[Any, Any], names: Mapping[Any, str]) -> ByClass[Any]:
    """Return results by class under other names; those that are not computed yet stay so."""
    return ByClass(
        {
            names.get(label, label): partial(_rename_computed, each, names)
            if callable(each)
            else rename_classes(each, names)
            for label, each in results.items()
        }
    )


def _rename_computed(compute: Callable[[], Result], names: Mapping[Any, str]) -> Result:
    return rename_classes(compute(), names)

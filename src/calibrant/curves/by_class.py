"""Results of the classwise notion, one for each class."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from calibrant.inputs.errors import show
from calibrant.inputs.printed import Block, Printed
from calibrant.tasks.task import CalibrationTask

Result = TypeVar("Result")


class ByClass(Printed, Mapping[Any, Result], Generic[Result]):
    """One result for each class, in the order of the columns.

    Parameters
    ----------
    results : mapping
        Result of each label, or a function that computes it at the first access.
    """

    def __init__(self, results: Mapping[Any, Result | Callable[[], Result]]) -> None:
        self._results = dict(results)

    def __getitem__(self, label: Any) -> Result:
        result = self._results[label]
        if callable(result):
            self._results[label] = result = result()
        return result

    def __contains__(self, label: object) -> bool:
        return label in self._results

    def __iter__(self) -> Iterator[Any]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    def plot(self, axes: Any = None, **options: Any) -> Any:
        """Draw one small panel for each class; see `calibrant.plot.small_multiples`."""
        from calibrant import plot

        results: Mapping[Any, Any] = self
        return plot.small_multiples(results, axes, **options)

    def __repr__(self) -> str:
        kinds = {type(result).__name__ for result in self.values()}
        return f"ByClass({', '.join(sorted(kinds))} of {show(*self)})"

    def _printed(self) -> Iterator[Block]:
        for label, result in self.items():
            name, answer, *_ = next(iter(result._printed()))  # type: ignore[attr-defined]
            yield f"class {label}", f"{name} {answer}"


def each_problem(
    task: CalibrationTask, fit: Callable[..., Result], **options: Any
) -> Result | ByClass[Result]:
    """Fit every problem of a calibration task separately: one result, or one for each class.

    Parameters
    ----------
    task : CalibrationTask
        Data and notion.
    fit : callable
        `curve_of`, `diagram_of` or `histogram_of`: called as fit(score_data, notion=, label=, **options).
    **options
        Passed for every problem. Pass a Generator, not a seed, so that problems have different random
        numbers.
    """
    notion = task.notion
    if not notion.classwise:
        return fit(task.problems[0], notion=notion, label=task.label, **options)
    problems = zip(task.labels, task.each(), strict=True)
    return ByClass(
        {label: fit(score_data, notion=notion, label=label, **options) for label, score_data in problems}
    )

"""Costs of decisions: a threshold, two costs, or a matrix of classes and actions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from calibrant.inputs import ROUNDING, InputError, InputTypeError, Serializable, is_number, show
from calibrant.inputs.codec import Shape
from calibrant.inputs.printed import Block, Printed, Table
from calibrant.score_data import Array

# Actions of two costs. In a tie the first is optimal, as in decision curves.
ACT, LEAVE = "act", "leave"
# Range of cost differences for which squares and ratios neither overflow nor underflow.
MIN_DIFFERENCE, MAX_DIFFERENCE = 1e-100, 1e100


@dataclass(frozen=True, eq=False)
class Cost(Printed, Serializable):
    """Cost of every action for every true class.

    Attributes
    ----------
    matrix : array (classes, actions)
        Rows are the true classes, in the order of the labels. Negative entries are benefits.
    actions : tuple of str
        Names of the actions. In a tie the first is optimal.
    labels : tuple
        The classes.
    threshold : float or None
        For two classes and two actions: act when the score of the positive class is at least this.

    See Also
    --------
    regret : Decision regret for a cost.
    best_threshold : Threshold with the lowest expected cost.

    Examples
    --------
    >>> Cost.of((1, 9), (0, 1)).threshold
    0.1
    >>> Cost.of([[0, 1, 0.3], [5, 0, 0.3]], (0, 1), actions=["no", "yes", "ask"]).actions
    ('no', 'yes', 'ask')
    """

    matrix: Annotated[Array, Shape((None, None))]
    actions: tuple[str, ...]
    labels: tuple[Any, ...]
    threshold: float | None = None

    @classmethod
    def of(cls, cost: Any, labels: Sequence[Any], actions: Sequence[str] | None = None) -> Cost:
        """Parse a threshold, a pair (c_fp, c_fn) or a matrix.

        A threshold and a pair may be text, "0.2" and "1:9". A data frame or a mapping also names the actions.

        Parameters
        ----------
        cost : float, pair, array, mapping or str
            A threshold, the costs of a false alarm and of a miss, or a matrix.
        labels : sequence
            The classes, in the order of the rows.
        actions : sequence of str, optional
            Names of the actions.
        """
        if isinstance(cost, Cost):
            return cost._in_order(tuple(labels))
        if isinstance(cost, str):
            cost = cost_from_text(cost)
        names: list[Any] | None = None
        if hasattr(cost, "columns") and hasattr(cost, "to_numpy"):
            names, cost = list(cost.columns), cost.to_numpy()
        elif isinstance(cost, Mapping):
            names, cost = list(cost), _matrix_from_mapping(cost, labels)
        values = _numbers(cost)
        if not is_number(cost) and values.shape != (2,):
            return cls._of_matrix(values, labels, actions, names)
        if actions is not None:
            raise InputError("actions", "be left out where the cost is no matrix", actions)
        if not is_number(cost):
            return cls._of_pair(float(values[0]), float(values[1]), labels)
        threshold = float(cost)
        if not 0 < threshold < 1:
            raise InputError("cost", "lie strictly between 0 and 1 where it is a threshold", threshold)
        return cls._of_pair(threshold, 1 - threshold, labels)

    @classmethod
    def of_outcome(
        cls, cost: Any, labels: Sequence[Any], positive: int | None, actions: Sequence[str] | None = None
    ) -> Cost:
        """Parse the cost of a one-vs-rest decision; the positive class is the second row.

        Parameters
        ----------
        cost, labels, actions
            As for `of`.
        positive : int or None
            Position of the positive class.

        >>> Cost.of_outcome([[0, 1], [9, 0]], ("sick", "well"), 0).labels
        ('well', 'sick')
        """
        column = 1 if positive is None else positive
        # With a single column of scores, the negative class may be several classes, or unknown.
        if len(labels) > 2 or labels[1 - column] is None or isinstance(labels[1 - column], tuple):
            return cls.of(cost, (f"not {labels[column]}", labels[column]), actions)
        parsed = cls.of(cost, labels, actions)
        if column == 1:
            return parsed
        # A pair of costs already refers to the positive class.
        matrix = parsed.matrix[::-1] if parsed.threshold is None else parsed.matrix
        return replace(parsed, matrix=matrix, labels=tuple(labels)[::-1])

    def as_threshold(self) -> Cost:
        """Return an equivalent cost with a threshold; raise an error if there is none.

        >>> Cost.of([[0, 1], [9, 0]], (0, 1)).as_threshold().threshold
        0.1
        """
        if self.threshold is not None:
            return self
        if self.matrix.shape == (2, 2):
            # "Acting" is the action whose cost decreases most from the negative to the positive class.
            act = int(np.argmax(self.matrix[0] - self.matrix[1]))
            alarm = float(self.matrix[0, act] - self.matrix[0, 1 - act])
            miss = float(self.matrix[1, 1 - act] - self.matrix[1, act])
            if alarm + miss > 0:
                matrix, actions = self.matrix[:, [act, 1 - act]], (self.actions[act], self.actions[1 - act])
                return replace(self, matrix=matrix, actions=actions, threshold=alarm / (alarm + miss))
        rule = "be a threshold, two costs, or a matrix of two actions that differ by class"
        raise InputError("cost", rule, got=f"a matrix of the shape {self.matrix.shape}")

    def _printed(self) -> Iterator[Block]:
        if self.threshold is not None:
            yield "decision", f"act when the score is at least {self.threshold:.4g}"
        rows = zip(self.labels, self.matrix, strict=True)
        cells = [[str(label), *(f"{cost:.6g}" for cost in costs)] for label, costs in rows]
        yield Table(["class", *(f"cost of {action}" for action in self.actions)], cells, names=1)

    def _check_fields(self) -> None:
        """Raise an error if the matrix does not fit classes, actions or threshold."""
        try:
            same = Cost.of(self.matrix, self.labels, self.actions)
            known = same if self.threshold is None else same.as_threshold()
        except InputError as error:
            error.argument = "matrix"
            raise
        if abs((known.threshold or 0.0) - (self.threshold or 0.0)) > ROUNDING:
            raise InputError("threshold", f"be that of the matrix, {known.threshold:g}", self.threshold)

    def _in_order(self, labels: tuple[Any, ...]) -> Cost:
        """Return the same cost with its rows in the order of `labels`."""
        paired = self.threshold is not None and len(labels) == 2
        if not paired and set(labels) != set(self.labels):
            raise InputError("cost", f"be of the classes {show(*labels)}", got=show(*self.labels))
        rows = slice(None) if paired else [self.labels.index(label) for label in labels]
        return replace(self, matrix=self.matrix[rows], labels=labels)

    @classmethod
    def _of_pair(cls, false_alarm: float, miss: float, labels: Sequence[Any]) -> Cost:
        if len(labels) != 2:
            rule = f"be a matrix of {len(labels)} rows, one for each class"
            raise InputError(
                "cost", rule, (false_alarm, miss), hint="two costs are about one class: name it by pos_label"
            )
        total = false_alarm + miss
        if not total > 0:
            rule = "have a positive sum: a false alarm and a miss cannot both pay"
            raise InputError("cost", rule, (false_alarm, miss))
        matrix = _checked_differences(np.array([[false_alarm, 0.0], [0.0, miss]]))
        return cls(matrix, (ACT, LEAVE), tuple(labels), false_alarm / total)

    @classmethod
    def _of_matrix(
        cls,
        values: Array,
        labels: Sequence[Any],
        actions: Sequence[str] | None,
        column_names: list[Any] | None,
    ) -> Cost:
        if values.ndim != 2 or len(values) != len(labels) or values.shape[1] < 2:
            rule = (
                f"have {len(labels)} rows, one for each class, and a column for each of two or more actions"
            )
            raise InputError("cost", rule, got=f"the shape {values.shape}")
        count = values.shape[1]
        usual = labels if count == len(labels) else range(1, count + 1)
        given = column_names if actions is None else actions
        names = tuple(str(name) for name in (usual if given is None else given))
        if len(names) != count or len(set(names)) != count:
            argument, verb = ("cost", "have") if actions is None else ("actions", "be")
            raise InputError(argument, f"{verb} {count} different names of actions", names)
        return cls(_checked_differences(values), names, tuple(labels))

    @property
    def dominated(self) -> tuple[str, ...]:
        """Dominated actions: another action costs at most as much in every class and less in one."""
        dominated = []
        for a, name in enumerate(self.actions):
            others = np.delete(self.matrix, a, axis=1)
            beaten = (others <= self.matrix[:, a : a + 1]).all(axis=0)
            strictly = (others < self.matrix[:, a : a + 1]).any(axis=0)
            if (beaten & strictly).any():
                dominated.append(name)
        return tuple(dominated)


def cost_from_text(text: str) -> float | tuple[float, float]:
    """Parse a threshold, or the costs of a false alarm and of a miss.

    >>> cost_from_text("0.2"), cost_from_text("1:9"), cost_from_text("1, 9")
    (0.2, (1.0, 9.0), (1.0, 9.0))
    """
    try:
        numbers = [float(number) for number in text.replace(":", ",").split(",")]
    except ValueError:
        numbers = []
    if not 1 <= len(numbers) <= 2:
        rule = "be a threshold such as 0.2 or two costs such as 1:9 where it is text"
        raise InputError("cost", rule, text)
    return numbers[0] if len(numbers) == 1 else (numbers[0], numbers[1])


def _column(cost: Any, labels: Sequence[Any]) -> Array:
    """Return the costs of one action in the order of the labels; a mapping is looked up by class name."""
    if not isinstance(cost, Mapping):
        return _numbers(cost)
    named = {str(label): value for label, value in cost.items()}
    names = [str(label) for label in labels]
    if set(named) != set(names):
        wrong = sorted(set(named) ^ set(names))[0]
        rule = f"have a cost of each action for each of the classes {', '.join(names)}"
        raise InputError("cost", rule, got=f"{'none of' if wrong in names else 'one of'} {wrong!r}")
    return _numbers([named[name] for name in names])


def _matrix_from_mapping(columns: Mapping[Any, Any], labels: Sequence[Any]) -> Array:
    """Return a cost matrix from a mapping of action names to costs."""
    each = {name: _column(column, labels) for name, column in columns.items()}
    for name, column in each.items():
        if column.shape != (len(labels),):
            rule = f"have {len(labels)} costs of each action, one for each class"
            raise InputError("cost", rule, got=f"the shape {column.shape} of {name!r}")
    return np.array(list(each.values())).T


def _checked_differences(matrix: Array) -> Array:
    """Return the matrix; raise an error if costs do not differ between actions or are out of range."""
    difference = float(np.ptp(matrix / MAX_DIFFERENCE, axis=1).max())
    if not MIN_DIFFERENCE / MAX_DIFFERENCE <= difference <= 1:
        raise InputError(
            "cost",
            f"differ between actions, by {MIN_DIFFERENCE:g} to {MAX_DIFFERENCE:g}",
            got=f"{difference * MAX_DIFFERENCE:g}",
        )
    return matrix


def _numbers(cost: Any) -> Array:
    """Return an array of finite numbers."""
    try:
        values = np.asarray(cost, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputTypeError("cost", "be a threshold, two costs or a matrix of numbers", cost) from None
    if not np.isfinite(values).all():
        raise InputError("cost", "hold finite numbers", values[~np.isfinite(values)][0])
    return values

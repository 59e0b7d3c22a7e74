"""Sums over rows that a sketch stores in addition to its cells: accuracy, log loss and Brier score."""

from __future__ import annotations

from dataclasses import dataclass
from operator import add
from typing import Annotated

from calibrant.inputs import InputError, Predictions
from calibrant.inputs.codec import Bounds
from calibrant.inputs.missing import dropped_caution
from calibrant.inputs.rounding import caution as renormalisation_caution
from calibrant.score_data.tally import row_totals

#: Rounding allowed between sums over the same rows.
ROUNDING = 1e-6
DEPENDENT = (
    "{:,} rows belong to images or texts with several rows. Rows of the same one are correlated, but this "
    "result treats them as independent, so the interval is too narrow and the p-value too small. The metrics "
    "of calibrant.torch account for this if update() gets the ids of the images or texts as cluster."
)


@dataclass(frozen=True)
class Totals:
    """Sums over rows; those of two sets of rows add up.

    Examples
    --------
    >>> Totals(2, 2.0, 1.0, 0.7, 0.0, 0.4) + Totals(1, 3.0, 3.0, 0.1, 0.0, 0.1)
    Totals(rows=3, weight=5.0, right=4.0, log_loss=0.79..., impossible=0.0, brier=0.5, renormalised=0,
    dropped=0, dependent=0)
    """

    rows: Annotated[int, Bounds(1, 2**63)]  # number of rows, counted ones as often as they count
    weight: Annotated[float, Bounds(0, above=True)]  # sum of their weights
    # Weight of the rows whose label has the largest score, the first one among tied scores.
    right: Annotated[float, Bounds(0)]
    # Sum of minus the logarithm of the label's score, weighted, where that score is not 0.
    log_loss: Annotated[float, Bounds(0)]
    impossible: Annotated[float, Bounds(0)]  # weight of the rows whose label has a score of 0
    # Sum of the squared differences of all scores and what they should be, weighted. A single score p
    # stands for the two scores 1 - p and p.
    brier: Annotated[float, Bounds(0)]
    # Number of rows that did not sum to 1 because of rounding, and were divided by their sums.
    renormalised: Annotated[int, Bounds(0)] = 0
    # Number of rows that had no label and were left out, counted ones as often as they count. `rows` has none
    # of them.
    dropped: Annotated[int, Bounds(0, 2**63)] = 0
    # Number of rows that came with others of the same image or text, and are treated as independent.
    dependent: Annotated[int, Bounds(0, 2**63)] = 0

    @property
    def cautions(self) -> tuple[str, ...]:
        """What a reader of a result should know about how the rows were read."""
        cautions = []
        if self.dropped:
            cautions.append(dropped_caution(self.dropped, self.rows))
        if self.renormalised:
            cautions.append(renormalisation_caution(self.renormalised, self.rows))
        if self.dependent:
            cautions.append(DEPENDENT.format(self.dependent))
        return tuple(cautions)

    def _check_fields(self) -> None:
        """Refuse totals that no rows have, where they are read from a file."""
        for name in ("renormalised", "dependent"):
            if getattr(self, name) > self.rows:
                raise InputError(name, f"be at most the number of rows, {self.rows}", getattr(self, name))
        # Minus the logarithm of the least score above 0, and the Brier score of a row, are below these.
        most = {"right": 1 + ROUNDING, "impossible": 1 + ROUNDING, "log_loss": 750.0, "brier": 2.1}
        for name, times in most.items():
            if getattr(self, name) > times * self.weight:
                rule = f"be at most {times:g} times the weight, {self.weight:g}"
                raise InputError(name, rule, getattr(self, name))

    @classmethod
    def zero(cls) -> Totals:
        """The totals of no rows."""
        return cls(0, 0.0, 0.0, 0.0, 0.0, 0.0)

    @classmethod
    def of(cls, data: Predictions) -> Totals:
        """The totals of checked predictions.

        >>> from calibrant.inputs import predictions
        >>> Totals.of(predictions([0, 1, 1], [0.5, 0.75, 0.0]))
        Totals(rows=3, weight=3.0, right=2.0, log_loss=0.98..., impossible=1.0, brier=2.625,
        renormalised=0, dropped=0, dependent=0)
        """
        if data.code.ndim == 2:  # of several labels, no single one is right
            weight = float(len(data.code) if data.weight is None else data.weight.sum())
            return cls(data.n_rows, weight, 0.0, 0.0, 0.0, 0.0)
        sums = row_totals(data.score, data.code, data.weight)[1:]
        return cls(data.n_rows, *sums, data.renormalised, data.dropped)

    def __add__(self, other: Totals) -> Totals:
        """The totals of the rows of both."""
        return Totals(*map(add, vars(self).values(), vars(other).values()))

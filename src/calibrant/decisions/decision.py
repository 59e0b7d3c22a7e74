"""A decision at given costs: what is lost, and what whoever cannot touch the scores should do."""

from __future__ import annotations

import math
from dataclasses import dataclass

from calibrant.decisions.cost import Cost
from calibrant.decisions.regret import Regret, regret_of
from calibrant.decisions.threshold import BestThreshold, best_threshold_of
from calibrant.inputs import Serializable
from calibrant.questions import Question

# Costs are told for so many rows.
ROWS = 1000
# Name, value, both ends where they are known, and meaning.
Row = tuple[str, float, float | None, float | None, str]


@dataclass(frozen=True)
class Decision(Serializable):
    """The regret of the scores at given costs and, of two costs, the best threshold.

    Attributes
    ----------
    regret : Regret
    best : BestThreshold or None
    """

    regret: Regret
    best: BestThreshold | None = None

    @classmethod
    def of(cls, question: Question, cost: Cost, *, level: float, seed: int) -> Decision:
        """Measure both."""
        best = None
        if cost.threshold is not None:
            best = best_threshold_of(question, cost, level=level)
        return cls(regret_of(question, cost, level=level, seed=seed), best)

    @property
    def sentences(self) -> list[str]:
        """The regret per thousand rows, and what recalibration or another threshold recovers of it."""
        lost, least = self.regret, "at least " if self.regret.lower_bound else ""
        value, low, high, back = (ROWS * x for x in (lost.value, lost.low, lost.high, lost.recovered))
        interval = f"[{low:.3g}, {high:.3g}]"
        text = f"With {self.about} the decision regret is {least}{value:.3g} per thousand rows {interval}"
        told = [
            f"{text}, which is compatible with none."
            if low == 0
            else f"{text}; recalibrating recovers {back:.3g}."
        ]
        if self.best is not None and self.best.gain_low > 0:
            best = self.best
            act = f"acting when the score is at least {best.threshold:.3g}"
            act = {0.0: "always acting", math.inf: "never acting"}.get(best.threshold, act)
            ends = f"[{ROWS * best.gain_low:.3g}, {ROWS * best.gain_high:.3g}]"
            told.append(f"On the scores as they are, {act} recovers {ROWS * best.gain:.3g} {ends}.")
        return [*told, *(f"{caution[0].upper()}{caution[1:]}." for caution in lost.cautions)]

    @property
    def table(self) -> list[Row]:
        """What each way to act costs per thousand rows: name, value, both ends where known, meaning."""
        lost, best = self.regret, self.best

        def row(name: str, meaning: str, value: float, *ends: float) -> Row:
            low, high = (ROWS * end for end in ends) if ends else (None, None)
            return name, ROWS * value, low, high, meaning

        rows = [
            row(
                "decision regret", "extra cost of acting on the scores instead of calibrated ones",
                lost.value, lost.low, lost.high,
            ),
            row("acting on the scores", "as if they were probabilities", lost.cost),
            row("recalibrated", "by maps fitted to other rows", lost.cost - lost.recovered),
        ]  # fmt: skip
        if best is not None:
            meaning = "on the scores as they are, chosen on other rows"
            rows.append(row("best threshold", meaning, best.cost, best.cost_low, best.cost_high))
        return rows

    @property
    def about(self) -> str:
        """What is decided at which costs, in a phrase."""
        lost = self.regret
        if lost.threshold is None:
            return f"the actions {', '.join(lost.actions)}"
        (alarm, _), (_, miss) = lost.matrix
        return (
            f"a false alarm at {alarm:.6g} and a miss at {miss:.6g}, acting when the score is at least "
            f"{lost.threshold:.4g},"
        )

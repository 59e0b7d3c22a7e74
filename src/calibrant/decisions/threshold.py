"""The best threshold on the scores as they are: what a user does who cannot touch the model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.decisions.cost import Cost
from calibrant.decisions.one_score import Lines, OneScore
from calibrant.evidence import Array
from calibrant.inference.result import plain
from calibrant.inputs import InputError, Record, generator
from calibrant.inputs import level as check_level
from calibrant.questions import Question


@dataclass(frozen=True)
class BestThreshold:
    """From which score on to act, and what that costs.

    Attributes
    ----------
    threshold : float
        0 stands for always, infinity for never.
    low, high : float
        Between which thresholds the best one lies.
    cost : float
        Per row, of thresholds that were each chosen on other rows than they are judged on.
    cost_low, cost_high : float
        Interval for that.
    as_is : float
        What acting from the threshold of the costs on would cost, as if scores were probabilities.
    recalibrated : float
        What acting on recalibrated scores costs, on rows that the map had not seen.
    gain, gain_low, gain_high : float
        What the threshold saves against acting as is, and an interval for that.
    level : float
        Of all intervals.
    of_costs : float
        The threshold that the costs stand for.
    n : float
        Effective number of rows.
    label : object
        The class that the decision is about.

    Examples
    --------
    >>> import calibrant
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(5000)
    >>> best = calibrant.best_threshold(rng.random(5000) < score**2, score, (1, 9), rng=0)
    >>> print(str(best).split(": ")[0])
    act from 0.335 on [0.296, 0.336] instead of 0.1
    """

    threshold: float
    low: float
    high: float
    cost: float
    cost_low: float
    cost_high: float
    as_is: float
    recalibrated: float
    gain: float
    gain_low: float
    gain_high: float
    level: float
    of_costs: float
    n: float
    label: Any = None

    def __float__(self) -> float:
        return self.threshold

    def __repr__(self) -> str:
        return f"BestThreshold({_shown(self.threshold)}, cost {self.cost:.3g} per row, n={self.n:.6g})"

    def __str__(self) -> str:
        act = {0.0: "always act", math.inf: "never act"}.get(
            self.threshold, f"act from {self.threshold:.3g} on"
        )
        side, far = "less", (self.gain_low, self.gain_high)
        if self.gain < 0:
            side, far = "more", (-self.gain_high, -self.gain_low)
        return (
            f"{act} [{_shown(self.low)}, {_shown(self.high)}] instead of {self.of_costs:.4g}: "
            f"{self.cost:.3g} per row [{self.cost_low:.3g}, {self.cost_high:.3g}] at {100 * self.level:g} %, "
            f"{abs(self.gain):.3g} {side} than as is [{far[0]:.3g}, {far[1]:.3g}]; "
            f"acting on recalibrated scores costs {self.recalibrated:.3g}; n = {self.n:.6g}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers; a threshold that means never is None."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "label"}
        finite = {key: None if value == math.inf else value for key, value in values.items()}
        return {**finite, "label": plain(self.label)}

    @classmethod
    def of_record(cls, record: Record) -> BestThreshold:
        """Return what a record of `to_dict` holds."""
        record.only(cls.__dataclass_fields__)
        numbers = {name: record.number(name) for name in (*_COSTS, "of_costs")}
        record.ordered("cost_low", "cost", "cost_high")
        record.ordered("gain_low", "gain", "gain_high")
        cuts = {
            name: math.inf if record.values[name] is None else record.number(name, 0, 1)
            for name in ("threshold", "low", "high")
        }
        if not cuts["low"] <= cuts["threshold"] <= cuts["high"]:
            raise InputError(record.name, "have low <= threshold <= high", tuple(cuts.values()))
        return cls(**cuts, **numbers, level=record.level(), n=record.size("n"), label=record.label())


_COSTS = ("cost", "cost_low", "cost_high", "as_is", "recalibrated", "gain", "gain_low", "gain_high")


def best_threshold_of(question: Question, cost: Cost, *, level: float, seed: int) -> BestThreshold:
    """Choose the threshold of least expected cost; judge such choices on rows that had no part in them."""
    check_level(level)
    assert cost.threshold is not None
    lines, given = Lines.of(cost), cost.threshold
    known = OneScore.of(question, lines.changes, generator(seed))
    score = known.groups.score
    first = int(_first(lines, known.groups.mass[None], known.curve[None], score, given)[0])
    frequency, share = known.draws
    drawn = np.sort(_first(lines, share, frequency, score, given))
    tail = round((1 - level) / 2 * (len(drawn) - 1))
    low, high = (_between(score, int(drawn[k]), given) for k in (tail, len(drawn) - 1 - tail))
    chosen = _between(score, first, given)
    by_fold = _first(lines, known.taught, known.learnt, score, given)
    fold = np.unique(known.dealt.fold, return_inverse=True)[1]
    # The first action is to act.
    action = np.where(known.dealt.group >= by_fold[fold], 0, 1)[None]
    before = lines.taken(known.parts.score)
    deviate = known.deviate(level)
    spent, saved = known.gain(lines, action), known.gain(lines, before, action)
    as_is = float(known.gain(lines, before).mean[0])
    middle, reach = float(spent.mean[0]), deviate * float(spent.error[0])
    # No row costs less than the least entry, or more than the largest.
    least, most = float(cost.matrix.min()), float(cost.matrix.max())
    gain, gain_reach = float(saved.mean[0]), deviate * float(saved.error[0])
    return BestThreshold(
        threshold=chosen, low=min(low, chosen), high=max(high, chosen),
        cost=middle, cost_low=max(middle - reach, least), cost_high=min(middle + reach, most), as_is=as_is,
        recalibrated=as_is - float(known.held_out_gain(lines).mean[0]),
        gain=gain, gain_low=gain - gain_reach, gain_high=gain + gain_reach, level=level, of_costs=given,
        n=question.n, label=question.label,
    )  # fmt: skip


def _first(lines: Lines, mass: Array, frequency: Array, score: Array, given: float) -> Array:
    """Return from which group on acting costs least (sets,); of equal ones the nearest to the given one."""
    extra = mass * (lines.no[0, 0] - lines.no[0, 1]) * (1 - frequency)
    extra += mass * (lines.yes[0, 0] - lines.yes[0, 1]) * frequency
    total = np.concatenate([np.zeros((len(mass), 1)), np.cumsum(extra, axis=1)], axis=1)
    # Acting from group j on costs the sum from j on: least where the sum up to j is largest.
    most = total.max(axis=1, keepdims=True)
    equal = total >= most - 1e-12 * np.abs(extra).sum(axis=1, keepdims=True)
    away = np.abs(np.arange(total.shape[1]) - np.searchsorted(score, given - 1e-9))
    return np.asarray(np.where(equal, away, len(score) + 1).argmin(axis=1))


def _between(score: Array, first: int, given: float) -> float:
    """Return a threshold that separates the groups there; the given one, where it does."""
    if first == np.searchsorted(score, given - 1e-9):
        # Where a false alarm pays, or a miss, the costs themselves say always, or never.
        return 0.0 if given <= 0 else given if given <= 1 else math.inf
    if first == 0:
        return 0.0
    return math.inf if first == len(score) else float((score[first - 1] + score[first]) / 2)


def _shown(threshold: float) -> str:
    return {0.0: "always", math.inf: "never"}.get(threshold, f"{threshold:.3g}")

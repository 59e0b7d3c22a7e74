"""Estimators in order: how far each was off on every curve, and what that says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from calibrant.evidence import Array
from calibrant.inference.population import Curve
from calibrant.inputs import ROUNDING, InputError, Serializable
from calibrant.inputs.codec import Amount, Bounds, Count, Number, Probability
from calibrant.questions import named

# Resamples for the noise of the ranking, and how many standard errors a difference must exceed.
RESAMPLES, NOISE = 100, 2.0


@dataclass(frozen=True)
class Measured:
    """One estimator on one curve.

    Attributes
    ----------
    estimator, curve, shape : str
        The curve is its shape and size.
    true : float
        The true error.
    bias, sd : float
        Mean and standard deviation of estimate minus true error.
    p95, mae : float
        95th percentile and mean of its absolute value.
    """

    estimator: str
    curve: str
    shape: str
    true: Probability
    bias: Annotated[float, Bounds(-1, 1, slack=ROUNDING)]
    sd: Probability
    p95: Probability
    mae: Probability


@dataclass(frozen=True)
class Ranked:
    """The place of an estimator.

    Attributes
    ----------
    estimator, resolved : str
        As asked for, and what that stands for.
    loss : float
        Geometric mean over the curves of `p95`, relative to the best estimator on each curve.
    se : float
        Standard error of the loss that the simulation leaves.
    tied : bool
        Whether the difference to the best is within noise: two standard errors.
    """

    estimator: str
    resolved: str
    loss: Amount
    se: Amount
    tied: bool


@dataclass(frozen=True)
class Recommendation(Serializable):
    """Estimators ranked on the scores of a model.

    Attributes
    ----------
    ranking : tuple of Ranked
        The best first.
    table : tuple of Measured
        Every estimator on every curve.
    n : int
        Rows of the data sets that were simulated.
    notion : str
    label : object
        The class asked about, if one was.
    repetitions : int
        Data sets for each curve.
    seed : int
        The same call with `rng=seed` gives the same recommendation.
    notes : tuple of str
        What was simulated smaller than asked for, if anything was.
    """

    computed: ClassVar[tuple[str, ...]] = ("best",)
    ranking: tuple[Ranked, ...]
    table: tuple[Measured, ...]
    n: Number
    notion: str
    label: Any
    repetitions: Number
    seed: Count
    notes: tuple[str, ...] = ()

    @property
    def best(self) -> str:
        """The estimator of the smallest loss."""
        return self.ranking[0].estimator

    def __str__(self) -> str:
        asked = self.notion if self.label is None else f"{self.notion} {self.label}"
        tied = [ranked.estimator for ranked in self.ranking[1:] if ranked.tied]
        close = f" (within noise of it: {', '.join(tied)})" if tied else ""
        shapes = list(dict.fromkeys(row.shape for row in self.table))
        curves = len({row.curve for row in self.table})
        lines = [["estimator", "loss", "+-", *shapes]]
        for ranked in self.ranking:
            own = [row for row in self.table if row.estimator == ranked.estimator]
            by_shape = [[row.p95 for row in own if row.shape == shape] for shape in shapes]
            name = ranked.estimator + f" ({ranked.resolved})" * (ranked.estimator == "auto")
            numbers = [f"{ranked.loss:.2f}", f"{ranked.se:.2f}", *(f"{np.mean(p95):.4f}" for p95 in by_shape)]
            lines.append([name, *numbers])
        wide = [max(map(len, column)) for column in zip(*lines, strict=True)]
        body = [
            "  ".join([line[0].ljust(wide[0]), *map(str.rjust, line[1:], wide[1:])]).rstrip()
            for line in lines
        ]
        return "\n".join(
            [
                f"best for these scores ({asked}, n = {self.n}): {self.best}{close}",
                *body,
                f"loss: geometric mean over {curves} curves of the 95 % error, relative to the best; "
                "columns: that error by shape",
                f"{self.repetitions} simulated data sets a curve, seed {self.seed}"
                + "".join(f"; {note}" for note in self.notes),
            ]
        )

    def __repr__(self) -> str:
        return f"Recommendation({self.notion}, n={self.n}, best {self.best} of {len(self.ranking)})"

    def check_fields(self) -> None:
        """Refuse a ranking of nothing, and a notion that there is not."""
        named(self.notion)
        if not self.ranking:
            raise InputError("ranking", "not be empty")


def measured(error: Array, curves: Sequence[Curve], names: Sequence[str]) -> Iterator[Measured]:
    """Yield the rows of the table, from estimates minus true errors (curves, estimators, repetitions)."""
    for c, curve in enumerate(curves):
        for e, name in enumerate(names):
            off = error[c, e]
            yield Measured(
                name,
                curve.name,
                curve.shape,
                curve.true,
                bias=float(off.mean()),
                sd=float(off.std(ddof=1)),
                p95=float(np.quantile(np.abs(off), 0.95)),
                mae=float(np.abs(off).mean()),
            )


def ranked(
    error: Array, resolved: Mapping[str, str], least: float, rng: np.random.Generator
) -> tuple[Ranked, ...]:
    """Rank estimators by loss, from estimates minus true errors (curves, estimators, repetitions).

    Percentiles below `least` count as that, so that no estimator wins by what nobody could see.
    """
    off = np.abs(error)

    def loss(some: Array) -> Array:
        """Return the logarithm of the loss of each estimator."""
        p95 = np.log(np.maximum(np.quantile(some, 0.95, axis=-1), least))
        return np.asarray((p95 - p95.min(axis=1, keepdims=True)).mean(axis=0))

    value, times = loss(off), off.shape[-1]
    again = np.stack([loss(off[..., rng.integers(0, times, times)]) for _ in range(RESAMPLES)])
    best = int(np.argmin(value))
    se, apart = again.std(axis=0), (again - again[:, [best]]).std(axis=0)
    names = list(resolved)
    return tuple(
        Ranked(
            names[e],
            resolved[names[e]],
            loss=float(np.exp(value[e])),
            se=float(np.exp(value[e]) * se[e]),
            tied=bool(value[e] - value[best] <= NOISE * apart[e]),
        )
        for e in np.argsort(value, kind="stable")
    )

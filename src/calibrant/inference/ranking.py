"""Estimators in order: how far each was off on every curve, and what that says."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from calibrant.evidence import Array
from calibrant.inference.population import Curve
from calibrant.inference.result import plain
from calibrant.inputs import InputError, Record, from_text
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
    true: float
    bias: float
    sd: float
    p95: float
    mae: float


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
    loss: float
    se: float
    tied: bool


@dataclass(frozen=True)
class Recommendation:
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

    ranking: tuple[Ranked, ...]
    table: tuple[Measured, ...]
    n: int
    notion: str
    label: Any
    repetitions: int
    seed: int
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

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and text."""
        return {field.name: getattr(self, field.name) for field in fields(self)} | {
            "best": self.best,
            "label": plain(self.label),
            "ranking": [asdict(ranked) for ranked in self.ranking],
            "table": [asdict(row) for row in self.table],
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Recommendation:
        """Return the recommendation that `to_dict` wrote; numbers that none can have are refused."""
        record = Record(values, "recommendation").only((*(field.name for field in fields(cls)), "best"))
        ranking = tuple(_ranked_of(one) for one in record.records("ranking"))
        if not ranking or record.text("best") != ranking[0].estimator:
            raise InputError(record.called("best"), "come first in the ranking", values["best"])
        with record.naming("notion"):
            named(record.text("notion"))
        return cls(
            ranking=ranking,
            table=tuple(_measured_of(one) for one in record.records("table")),
            n=record.whole("n", 1),
            notion=record.text("notion"),
            label=record.label(),
            repetitions=record.whole("repetitions", 1),
            seed=record.whole("seed"),
            notes=record.texts("notes"),
        )

    def to_json(self) -> str:
        """Return JSON that `from_json` reads."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Recommendation:
        """Return the recommendation that `to_json` wrote."""
        return cls.from_dict(from_text(text, "recommendation"))


def _ranked_of(record: Record) -> Ranked:
    """Return the place of an estimator that a stored record holds."""
    record.only(field.name for field in fields(Ranked))
    names = record.text("estimator"), record.text("resolved")
    return Ranked(*names, record.number("loss", 0), record.number("se", 0), record.flag("tied"))


def _measured_of(record: Record) -> Measured:
    """Return the row of the table that a stored record holds."""
    record.only(field.name for field in fields(Measured))
    names = record.text("estimator"), record.text("curve"), record.text("shape")
    shares = {key: record.share(key) for key in ("true", "sd", "p95", "mae")}
    return Measured(*names, **shares, bias=record.number("bias", -1, 1))


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

"""The multiclass notion: from whole rows to an estimate with interval, null, test and a bound that holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from calibrant.evidence import Array
from calibrant.inference.result import Estimate, Null
from calibrant.inference.streams import stream
from calibrant.inputs import InputError
from calibrant.posterior.softmax import FEW, CanonicalError
from calibrant.questions import Question
from calibrant.simplex import lower_bound, resolve_rows
from calibrant.simplex.score_test import ScoreTest, p_value
from calibrant.simplex.softmax import Softmax, canonical_error, refitted

# Simulated label sets of the test, and the quantiles of calibrated readings that are kept.
SIMULATED, KEPT = 999, (0.5, 0.95)


def measure_rows(question: Question, estimator: Any, norm: Any) -> float:
    """Return the error on the simplex; of two classes by default from the posterior of one of them."""
    chosen = resolve_rows(estimator)
    return chosen.fit(question.simplex).error(norm)


def scale_of(norm: str) -> float:
    """Return how much larger an error of two classes is than that of one of them."""
    return {"l1": 2.0, "l2": float(np.sqrt(2)), "mul": 1.0}[norm]


def of_two_classes(question: Question, norm: str, ask: Callable[[Question, Any], Estimate]) -> Estimate:
    """Return the estimate of two classes, whose gaps mirror each other: that of one class, scaled."""
    one = question.once("one class", lambda: question.about_class(1))
    found, scale = ask(one, "l1" if norm == "mul" else norm), scale_of(norm)
    null = Null(
        scale * found.null.mean,
        MappingProxyType({level: scale * value for level, value in found.null.quantiles.items()}),
    )
    alone = {
        label: replace(found, label=label, over=over, under=under)
        for label, over, under in zip(
            question.labels, (found.under, found.over), (found.over, found.under), strict=True
        )
    }
    return replace(
        found,
        value=scale * found.value,
        low=scale * found.low,
        high=scale * found.high,
        null=null,
        over=None,
        under=None,
        notion=question.notion.name,
        norm=norm,
        label=None,
        by_class=MappingProxyType(alone) if norm != "mul" else None,
    )


def estimate_rows(
    question: Question,
    *,
    estimator: Any,
    norm: str,
    level: float,
    each_level: float,
    seed: int,
) -> Estimate:
    """Estimate the error on the simplex of more than two classes."""
    chosen = resolve_rows(estimator)
    if not isinstance(chosen, Softmax):
        rule = "be the default, which the interval is for"
        raise InputError("estimator", rule, str(chosen), advice="ece")
    rows, error = question.simplex, canonical_error(question)
    test = question.once(("score test", seed), lambda: _tested(question, seed))
    null = _null(error, test, norm)
    bound = question.once("held out", lambda: refitted(rows))
    low, high = error.interval(norm, level)
    about: dict[str, Any] = {
        "n": rows.n,
        "estimator": str(chosen),
        "seed": seed,
    }
    by_class = None
    if norm != "mul":
        values = error.class_values
        scale = float(np.divide(null.mean, max(error.value("l1"), 1e-300)))
        by_class = {}
        for column, label in enumerate(question.labels):
            k = int(np.flatnonzero(question.columns == column)[0])
            value, over = float(values[k]), float(error.over[k])
            ends = error.class_interval(k, each_level)
            by_class[label] = Estimate(
                value=value, low=ends[0], high=ends[1], level=each_level, p_value=float(test.by_class[k]),
                over=value * over, under=value - value * over, notion="class", label=label,
                null=Null(min(scale * value, 1.0)), **about,
            )  # fmt: skip
    return Estimate(
        value=error.value(norm), low=low, high=high, level=level, null=null, p_value=test.p_value,
        over=None, under=None, notion=question.notion.name, norm=norm,
        by_class=None if by_class is None else MappingProxyType(by_class),
        at_least=min(lower_bound(rows, bound, norm, level), high),  # type: ignore[arg-type]
        lower_bound=len(question.labels) > FEW, **about,
    )  # fmt: skip


def _tested(question: Question, seed: int) -> ScoreTest:
    error = canonical_error(question)
    return p_value(question.simplex, error.posterior.blocks, stream(seed, "score test"), SIMULATED)


def _null(error: CanonicalError, test: ScoreTest, norm: str) -> Null:
    """Return what calibrated data of this size read: the chance of a gap, times the size it would have."""
    size = error.size_without(norm)
    chance = 1 / (1 + np.exp(-np.clip(test.log_odds, -500, 500)))
    values: Array = chance * size
    if norm == "l2":
        values = np.sqrt(values)
    quantiles = dict(zip(KEPT, np.quantile(values, KEPT).tolist(), strict=True))
    return Null(float(values.mean()), MappingProxyType(quantiles))


def added(question: Question) -> Array:
    """Return what each row of data adds to the error, in the order of the rows."""
    raise NotImplementedError

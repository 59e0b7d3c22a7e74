"""The canonical notion: from whole rows to an estimate with interval, null, test and a bound that holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from calibrant.estimators import Estimator
from calibrant.estimators.canonical.softmax import Softmax, canonical_error, refitted, scale_of
from calibrant.estimators.canonical.variational import lower_bound
from calibrant.inference.random_streams import stream
from calibrant.inference.result import Estimate, Null
from calibrant.inference.score_test import ScoreTest, p_value
from calibrant.posterior.softmax import FEW, NORMS, CanonicalError, SoftmaxPosterior
from calibrant.posterior.softmax.fit import chance_of
from calibrant.score_data import Array
from calibrant.score_data.simplex import Simplex
from calibrant.tasks import CalibrationTask

# Simulated label sets of the test, and the quantiles of calibrated readings that are kept.
SIMULATED, KEPT = 999, (0.5, 0.95)
# Rows, and sets of labels, that tell how large a gap calibrated data would seem to have.
SEEN, TIMES = 1000, 3
# Sets of labels that tell what a named estimator reads of calibrated data.
SETS = 5


def of_two_classes(
    task: CalibrationTask, norm: str, ask: Callable[[CalibrationTask, Any], Estimate]
) -> Estimate:
    """Return the estimate of two classes, whose gaps mirror each other: that of one class, scaled."""
    one = task.once("one class", lambda: task.about_class(1))
    single, scale = ask(one, "l1"), scale_of(norm)
    found = ask(one, "l2") if norm == "l2" else single
    null = Null(
        scale * found.null.mean,
        MappingProxyType({level: scale * value for level, value in found.null.quantiles.items()}),
    )
    alone = {
        label: replace(single, label=label, over=over, under=under)
        for label, over, under in zip(
            task.labels, (single.under, single.over), (single.over, single.under), strict=True
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
        notion=task.notion.name,
        norm=norm,
        label=None,
        by_class=MappingProxyType(alone),
    )


def by_name(task: CalibrationTask, found: Estimate, chosen: Estimator, seed: int) -> Estimate:
    """Return the estimate with the value of a named estimator in the place of the default's.

    Test, bound and interval are about the true error, whoever reads it, and stay; the interval is widened to
    hold the value. What calibrated data read is simulated, and single classes are left out.
    """
    if isinstance(chosen, Softmax):
        return found

    def error(rows: Simplex) -> float:
        return float(chosen.fit(rows).error(found.norm))  # type: ignore[arg-type]

    value = error(task.simplex)
    read = [error(rows) for rows in _simulated(task.simplex, stream(seed, "by name"))]
    return replace(
        found,
        value=value,
        low=min(found.low, value),
        high=max(found.high, value),
        null=Null(float(np.mean(read))),
        by_class=None,
        estimator=str(chosen),
    )


def _simulated(rows: Simplex, rng: np.random.Generator) -> Iterator[Simplex]:
    """Make rows with the same scores and labels by them, some times."""
    counts = np.array_equal(rows.weight, rows.square)
    times = rows.weight.astype(np.int64) if counts else np.ones(len(rows.code), np.int64)
    score, weight = np.repeat(rows.score, times, axis=0), None if counts else rows.weight
    ends = (score / score.sum(axis=1, keepdims=True)).cumsum(axis=1)[:, :-1]
    for _ in range(SETS):
        yield Simplex.of(score, (rng.random((len(score), 1)) > ends).sum(axis=1), weight, counts=counts)


def estimate_rows(
    task: CalibrationTask,
    *,
    norm: str,
    level: float,
    each_level: float,
    seed: int,
    n_resamples: int | None,
) -> Estimate:
    """Estimate the error on the simplex of more than two classes."""
    rows, error = task.simplex, canonical_error(task)
    sims = SIMULATED if n_resamples is None else n_resamples
    test = task.once(("score test", seed, sims), lambda: _tested(task, seed, sims))
    null = _null(task, test, norm, seed)
    bound = task.once("held out", lambda: refitted(rows))
    low, high = error.interval(norm, level)
    about: dict[str, Any] = {"n": rows.n, "estimator": Softmax.name, "seed": seed}
    about |= {"n_resamples": sims, "p_floor": 1 / (1 + sims)}
    by_class = _classes(task, test, _null(task, test, "l1", seed).mean, each_level, about)
    return Estimate(
        value=error.value(norm), low=low, high=high, level=level, null=null, p_value=test.p_value,
        over=None, under=None, notion=task.notion.name, norm=norm, by_class=MappingProxyType(by_class),
        at_least=min(lower_bound(rows, bound, norm, level), high),  # type: ignore[arg-type]
        lower_bound=len(task.labels) > FEW, **about,
    )  # fmt: skip


def _classes(
    task: CalibrationTask, test: ScoreTest, typical: float, level: float, about: dict[str, Any]
) -> dict[Any, Estimate]:
    """Return E |eta_k - s_k| of each class; of what calibrated rows read each has the share of its error."""
    error = canonical_error(task)
    values, total = error.class_values, max(error.value("l1"), 1e-300)
    found = {}
    for column, label in enumerate(task.labels):
        k = int(np.flatnonzero(task.columns == column)[0])
        value, over = float(values[k]), float(error.over[k])
        low, high = error.class_interval(k, level)
        found[label] = Estimate(
            value=value, low=low, high=high, level=level, p_value=float(test.by_class[k]),
            over=value * over, under=value - value * over, notion="binary", label=label,
            null=Null(min(typical * value / total, 1.0)), **about,
        )  # fmt: skip
    return found


def _tested(task: CalibrationTask, seed: int, sims: int) -> ScoreTest:
    error = canonical_error(task)
    return p_value(task.simplex, error.posterior.blocks, stream(seed, "score test"), sims)


def _null(task: CalibrationTask, test: ScoreTest, norm: str, seed: int) -> Null:
    """Return what calibrated data of this size read: the chance of a gap, times the size that it would have.

    The less likely no gap looks, the larger the gap seems: as the root of its chance.
    """
    scale = task.once(("scale", seed), lambda: _seeming(task.simplex, stream(seed, "size")))[norm]
    chance = chance_of(test.null)
    # Held-out rows do not confirm what is no gap, and the value is the mean of both.
    values: Array = chance * scale * (chance if norm == "l2" else np.sqrt(chance)) / 2
    if norm == "l2":
        values = np.sqrt(values)
    quantiles = dict(zip(KEPT, np.quantile(values, KEPT).tolist(), strict=True))
    return Null(float(values.mean()), MappingProxyType(quantiles))


def _seeming(rows: Simplex, rng: np.random.Generator) -> dict[str, float]:
    """Return how large a gap of calibrated rows seems, over the root of its chance (over itself, for l2).

    Some rows tell it: it shrinks with the root of their number.
    """
    some = rows[: min(SEEN, len(rows.code))]
    p, fewer = some.score / some.score.sum(axis=1, keepdims=True), some.n / rows.n
    total = dict.fromkeys(NORMS, 0.0)
    for _ in range(TIMES):
        code = (rng.random((len(p), 1)) > p.cumsum(axis=1)[:, :-1]).sum(axis=1)
        error = CanonicalError.of(SoftmaxPosterior.of(replace(some, code=code)))
        for norm, part in error.parts.items():
            power = 1.0 if norm == "l2" else 0.5
            total[norm] += part.expected * (fewer / max(error.chance, 1e-300)) ** power / TIMES
    return total


def added(task: CalibrationTask) -> Array:
    """Return what each row of the data adds to the l1 error."""
    return np.asarray(canonical_error(task).added["l1"][task.simplex.place])

"""Canonical notion: estimate, interval, null distribution, test and lower confidence bound.

The model is described in docs/methods/canonical-calibration.md, the test in docs/methods/calibration-test.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from calibrant.estimators import Estimator
from calibrant.estimators.canonical.softmax import (
    CanonicalSoftmax,
    canonical_error,
    cross_fitted_probabilities,
    scale_of,
)
from calibrant.estimators.canonical.variational import lower_bound
from calibrant.inference.null import DATA_SETS, null_distribution
from calibrant.inference.result import Estimate, Null
from calibrant.inference.score_test import ScoreTest, p_value
from calibrant.inputs import stream
from calibrant.posterior.softmax import FEW, NORMS, CanonicalError, SoftmaxPosterior
from calibrant.posterior.softmax.fit import gap_probability_of
from calibrant.score_data import Array
from calibrant.score_data.simplex import Simplex
from calibrant.tasks import CalibrationTask, cached_on_task

# Rows and data sets that the size of a gap under H0 is computed from, and data sets for a named estimator.
NULL_ROWS, NULL_DATA_SETS, NAMED_DATA_SETS = 1000, 3, 5


_class_task = cached_on_task(CalibrationTask.about_class)


def estimate_two_classes(
    task: CalibrationTask, norm: str, estimate_binary: Callable[..., Estimate]
) -> Estimate:
    """Return the estimate of two classes: that of the binary notion, scaled, since the gaps are opposite."""
    binary_task = _class_task(task, 1)
    binary, scale = estimate_binary(binary_task, norm="l1"), scale_of(norm)
    scaled = estimate_binary(binary_task, norm="l2") if norm == "l2" else binary
    null = Null(
        scale * scaled.null.mean,
        MappingProxyType({level: scale * value for level, value in scaled.null.quantiles.items()}),
    )
    by_class = {
        label: replace(binary, label=label, over=over, under=under)
        for label, over, under in zip(
            task.labels, (binary.under, binary.over), (binary.over, binary.under), strict=True
        )
    }
    return replace(
        scaled,
        value=scale * scaled.value,
        low=scale * scaled.low,
        high=scale * scaled.high,
        null=null,
        over=None,
        under=None,
        notion=task.notion.name,
        norm=norm,
        label=None,
        by_class=MappingProxyType(by_class),
    )


def with_named_estimator(task: CalibrationTask, result: Estimate, chosen: Estimator, seed: int) -> Estimate:
    """Replace the value of an estimate by that of a named estimator.

    Test, lower bound and interval are for the true error and do not depend on the estimator; the interval is
    widened to contain the value. The value expected if calibrated is simulated. Single classes are left out.
    """
    if isinstance(chosen, CanonicalSoftmax):
        return result

    def error(rows: Simplex) -> float:
        return float(chosen.fit(rows).error(result.norm))  # type: ignore[arg-type]

    value = error(task.simplex)
    null_values = [error(rows) for rows in _simulated_rows(task.simplex, stream(seed, "by name"))]
    return replace(
        result,
        value=value,
        low=min(result.low, value),
        high=max(result.high, value),
        null=Null(float(np.mean(null_values))),
        by_class=None,
        estimator=str(chosen),
    )


def _simulated_rows(rows: Simplex, rng: np.random.Generator) -> Iterator[Simplex]:
    """Yield data sets with the same scores and with labels simulated from them."""
    counts = np.array_equal(rows.weight, rows.square)
    repeats = rows.weight.astype(np.int64) if counts else np.ones(len(rows.code), np.int64)
    score, weight = np.repeat(rows.score, repeats, axis=0), None if counts else rows.weight
    ends = (score / score.sum(axis=1, keepdims=True)).cumsum(axis=1)[:, :-1]
    for _ in range(NAMED_DATA_SETS):
        yield Simplex.of(score, (rng.random((len(score), 1)) > ends).sum(axis=1), weight, counts=counts)


def estimate_canonical(
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
    sims = DATA_SETS if n_resamples is None else n_resamples
    test = _score_test(task, seed, sims)
    null = _null(task, test, norm, seed)
    bound = _held_out(task)
    low, high = error.interval(norm, level)
    metadata: dict[str, Any] = {"n": rows.n, "estimator": CanonicalSoftmax.name, "seed": seed}
    metadata |= {"n_resamples": sims, "p_floor": 1 / (1 + sims)}
    by_class = _class_estimates(task, test, _null(task, test, "l1", seed).mean, each_level, metadata)
    return Estimate(
        value=error.value(norm), low=low, high=high, level=level, null=null, p_value=test.p_value,
        over=None, under=None, notion=task.notion.name, norm=norm, by_class=MappingProxyType(by_class),
        at_least=min(lower_bound(rows, bound, norm, level), high),  # type: ignore[arg-type]
        lower_bound=len(task.labels) > FEW, **metadata,
    )  # fmt: skip


def _class_estimates(
    task: CalibrationTask, test: ScoreTest, null_mean: float, level: float, metadata: dict[str, Any]
) -> dict[Any, Estimate]:
    """Return E |eta_k - s_k| of each class; the mean under H0 is divided in proportion to these errors."""
    error = canonical_error(task)
    values, total = error.class_values, max(error.value("l1"), 1e-300)
    estimates = {}
    for column, label in enumerate(task.labels):
        k = int(np.flatnonzero(task.columns == column)[0])
        value, over = float(values[k]), float(error.over[k])
        low, high = error.class_interval(k, level)
        estimates[label] = Estimate(
            value=value, low=low, high=high, level=level, p_value=float(test.by_class[k]),
            over=value * over, under=value - value * over, notion="binary", label=label,
            null=Null(min(null_mean * value / total, 1.0)), **metadata,
        )  # fmt: skip
    return estimates


@cached_on_task
def _held_out(task: CalibrationTask) -> Array:
    """Return the probabilities of each row by posteriors of other rows."""
    return cross_fitted_probabilities(task.simplex)


@cached_on_task
def _score_test(task: CalibrationTask, seed: int, sims: int) -> ScoreTest:
    error = canonical_error(task)
    return p_value(task.simplex, error.posterior.blocks, stream(seed, "score test"), sims)


def _null(task: CalibrationTask, test: ScoreTest, norm: str, seed: int) -> Null:
    """Return the null distribution: the posterior probability of a gap times its estimated size.

    Both come from data sets simulated under H0. The estimated size of a gap is proportional to the square
    root of its posterior probability (l1), or to the probability itself (l2, squared).
    """
    scale = _null_gap_size(task, seed)[norm]
    probability = gap_probability_of(test.null)
    # The value is the mean of the fitted and the held-out error. The latter is 0 on average under H0.
    values: Array = probability * scale * (probability if norm == "l2" else np.sqrt(probability)) / 2
    if norm == "l2":
        values = np.sqrt(values)
    return null_distribution(values)


@cached_on_task
def _null_gap_size(task: CalibrationTask, seed: int) -> dict[str, float]:
    """Return the estimated size of a gap under H0 by norm, over the square root of its posterior probability.

    For l2 it is divided by the probability. A sample of the rows is enough, because the size is proportional
    to one over the square root of the number of rows.
    """
    rows, rng = task.simplex, stream(seed, "size")
    sample = rows[: min(NULL_ROWS, len(rows.code))]
    p, share_of_rows = sample.score / sample.score.sum(axis=1, keepdims=True), sample.n / rows.n
    total = dict.fromkeys(NORMS, 0.0)
    for _ in range(NULL_DATA_SETS):
        code = (rng.random((len(p), 1)) > p.cumsum(axis=1)[:, :-1]).sum(axis=1)
        error = CanonicalError.of(SoftmaxPosterior.of(replace(sample, code=code)))
        for norm, term in error.parts.items():
            power = 1.0 if norm == "l2" else 0.5
            total[norm] += (
                term.expected * (share_of_rows / max(error.gap_probability, 1e-300)) ** power / NULL_DATA_SETS
            )
    return total


def contributions_of_rows(task: CalibrationTask) -> Array:
    """Return the contribution of each row to the l1 error."""
    return np.asarray(canonical_error(task).row_contributions["l1"][task.simplex.place])

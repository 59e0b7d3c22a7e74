"""The multiclass notion: from whole rows to an estimate with interval, null, test and a bound that holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from calibrant.compiled.blas import one_blas_thread
from calibrant.evidence import Array
from calibrant.evidence.simplex import Simplex
from calibrant.inference.result import Estimate, Null
from calibrant.inference.streams import stream
from calibrant.inputs import InputError
from calibrant.posterior.softmax import FEW, NORMS, CanonicalError, SoftmaxPosterior
from calibrant.posterior.softmax.fit import chance_of
from calibrant.questions import Question
from calibrant.simplex import RowsEstimator, lower_bound, resolve_rows
from calibrant.simplex.score_test import ScoreTest, p_value
from calibrant.simplex.softmax import Softmax, canonical_error, refitted, scale_of

# Simulated label sets of the test, and the quantiles of calibrated readings that are kept.
SIMULATED, KEPT = 999, (0.5, 0.95)
# Rows, and sets of labels, that tell how large a gap calibrated data would seem to have.
SEEN, TIMES = 1000, 3
# Sets of labels that tell what a named estimator reads of calibrated data.
SETS = 5


@one_blas_thread()
def measure_rows(question: Question, estimator: Any, norm: Any) -> float:
    """Return the error on the simplex; of two classes by default from the posterior of one of them."""
    chosen = resolve_rows(estimator)
    return chosen.fit(question.simplex).error(norm)


def of_two_classes(question: Question, norm: str, ask: Callable[[Question, Any], Estimate]) -> Estimate:
    """Return the estimate of two classes, whose gaps mirror each other: that of one class, scaled."""
    one = question.once("one class", lambda: question.about_class(1))
    single, scale = ask(one, "l1"), scale_of(norm)
    found = ask(one, "l2") if norm == "l2" else single
    null = Null(
        scale * found.null.mean,
        MappingProxyType({level: scale * value for level, value in found.null.quantiles.items()}),
    )
    alone = {
        label: replace(single, label=label, over=over, under=under)
        for label, over, under in zip(
            question.labels, (single.under, single.over), (single.over, single.under), strict=True
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
        by_class=MappingProxyType(alone),
    )


def with_interval(estimator: Any) -> RowsEstimator:
    """Return the estimator of whole rows that is meant; refuse one whose measure has no interval."""
    chosen = resolve_rows(estimator)
    if not chosen.measures_ece:
        rule = "estimate the ECE, which the interval is for"
        raise InputError("estimator", rule, chosen, got=f"{chosen}, a measure of its own", advice="ece")
    return chosen


def by_name(question: Question, found: Estimate, chosen: RowsEstimator, seed: int) -> Estimate:
    """Return the estimate with the value of a named estimator in the place of the default's.

    Test, bound and interval are about the true error, whoever reads it, and stay; the interval is widened to
    hold the value. What calibrated data read is simulated, and single classes are left out.
    """
    if isinstance(chosen, Softmax):
        return found
    value = measure_rows(question, chosen, found.norm)
    labels = _simulated(question.simplex, stream(seed, "by name"))
    read = [chosen.fit(rows).error(found.norm) for rows in labels]  # type: ignore[arg-type]
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
    question: Question,
    *,
    norm: str,
    level: float,
    each_level: float,
    seed: int,
    n_resamples: int | None,
) -> Estimate:
    """Estimate the error on the simplex of more than two classes."""
    rows, error = question.simplex, canonical_error(question)
    sims = SIMULATED if n_resamples is None else n_resamples
    test = question.once(("score test", seed, sims), lambda: _tested(question, seed, sims))
    null = _null(question, test, norm, seed)
    bound = question.once("held out", lambda: refitted(rows))
    low, high = error.interval(norm, level)
    about: dict[str, Any] = {"n": rows.n, "estimator": Softmax.name, "seed": seed}
    about |= {"n_resamples": sims, "p_floor": 1 / (1 + sims)}
    by_class = _classes(question, test, _null(question, test, "l1", seed).mean, each_level, about)
    return Estimate(
        value=error.value(norm), low=low, high=high, level=level, null=null, p_value=test.p_value,
        over=None, under=None, notion=question.notion.name, norm=norm, by_class=MappingProxyType(by_class),
        at_least=min(lower_bound(rows, bound, norm, level), high),  # type: ignore[arg-type]
        lower_bound=len(question.labels) > FEW, **about,
    )  # fmt: skip


def _classes(
    question: Question, test: ScoreTest, typical: float, level: float, about: dict[str, Any]
) -> dict[Any, Estimate]:
    """Return E |eta_k - s_k| of each class; of what calibrated rows read each has the share of its error."""
    error = canonical_error(question)
    values, total = error.class_values, max(error.value("l1"), 1e-300)
    found = {}
    for column, label in enumerate(question.labels):
        k = int(np.flatnonzero(question.columns == column)[0])
        value, over = float(values[k]), float(error.over[k])
        low, high = error.class_interval(k, level)
        found[label] = Estimate(
            value=value, low=low, high=high, level=level, p_value=float(test.by_class[k]),
            over=value * over, under=value - value * over, notion="class", label=label,
            null=Null(min(typical * value / total, 1.0)), **about,
        )  # fmt: skip
    return found


def _tested(question: Question, seed: int, sims: int) -> ScoreTest:
    error = canonical_error(question)
    return p_value(question.simplex, error.posterior.blocks, stream(seed, "score test"), sims)


def _null(question: Question, test: ScoreTest, norm: str, seed: int) -> Null:
    """Return what calibrated data of this size read: the chance of a gap, times the size that it would have.

    The less likely no gap looks, the larger the gap seems: as the root of its chance.
    """
    scale = question.once(("scale", seed), lambda: _seeming(question.simplex, stream(seed, "size")))[norm]
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


def added(question: Question) -> Array:
    """Return what each row of the data adds to the l1 error."""
    return np.asarray(canonical_error(question).added["l1"][question.simplex.place])

"""From a question to an estimate with interval, null and test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from calibrant import inputs
from calibrant.estimators import Bayes, BayesFit, Debiased, Estimator, Norm, resolve
from calibrant.estimators.measure import errors_of
from calibrant.evidence import Array, Evidence, Residuals
from calibrant.inference import interval as intervals
from calibrant.inference import many_classes
from calibrant.inference import null as nulls
from calibrant.inference.joint_labels import Labels
from calibrant.inference.result import Estimate, Null
from calibrant.posterior import Posterior, posterior_of
from calibrant.questions import Question, Rows
from calibrant.questions.notions import combined

# Simulated calibrated data sets, and the quantiles of their errors that are kept.
SIMULATED, KEPT = 999, (0.5, 0.95)
# Data sets simulated for the interval of one class among several; more classes than MANY are simulated
# over fewer cells (see `calibrant.inference.many_classes`).
BY_CLASS, MANY = 120, 20
# Scores looked at for how much the classes vary together.
LOOKED_AT = 1 << 22


def estimate(
    question: Question,
    *,
    estimator: Any = "auto",
    norm: Norm = "l1",
    level: float = 0.95,
    rng: Any = None,
    each_level: float | None = None,
    step: Callable[[], object] = lambda: None,
) -> Estimate:
    """Estimate the calibration error that a question asks for.

    Without whole rows the classes of the class-wise notion may depend on each other in any way, and
    interval and p-value allow for that.

    Parameters
    ----------
    question : Question
    estimator, norm, level, rng
        As for `calibrant.estimate`.
    each_level : float, optional
        Level of the intervals of single classes.
    step : callable
        Called after each of more than `MANY` classes.
    """
    inputs.check_choice("norm", norm, ("l1", "l2"))
    level, seed = inputs.level(level), inputs.seeded(rng)
    each_level = level if each_level is None else inputs.level(each_level)
    chosen = resolve(estimator, shared=question.notion.several)
    if not chosen.measures_ece:
        rule = "estimate the ECE, which the interval is for"
        raise inputs.InputError(
            "estimator", rule, chosen, got=f"{chosen}, a measure of its own", advice="ece"
        )
    about = {"norm": norm, "seed": seed, "estimator": str(chosen), "n": question.n}
    make = _one_problem
    if question.notion.several:
        make = _many_classes if len(question.labels) > MANY else _few_classes
    return make(question, chosen, about, level, each_level, np.random.default_rng(seed), step)


def _one_problem(
    question: Question,
    estimator: Estimator,
    about: dict[str, Any],
    level: float,
    each_level: float,
    rng: np.random.Generator,
    step: Callable[[], object],
) -> Estimate:
    """Estimate the error of a single problem."""
    posterior, residuals, norm = posterior_of(question), question.residuals[0], about["norm"]
    value = float(_errors(question, estimator, posterior, norm)[0])
    null = _drawn_alone(question, norm, about["seed"], rng)[0]
    ends, other = _interval(estimator, question.problems, posterior, value, norm, level, rng, question.n)
    ends = ends[0], max(ends[1], intervals.few_scores(residuals, norm, level, rng))
    about |= {"notion": question.notion.name, "label": question.label, "level": level}
    return _assembled(value, ends, null, other, posterior, **about)


def _few_classes(
    question: Question,
    estimator: Estimator,
    about: dict[str, Any],
    level: float,
    each_level: float,
    rng: np.random.Generator,
    step: Callable[[], object],
) -> Estimate:
    """Estimate the error over classes, and of each of them."""
    posterior, rows, norm = posterior_of(question), question.rows, about["norm"]
    errors = _errors(question, estimator, posterior, norm)
    value = question.notion.combine(errors, norm)
    alone = _drawn_alone(question, norm, about["seed"], rng)
    by_class = {
        label: _single_class(
            estimator, question.problems[k], question.residuals[k], posterior[k : k + 1], alone[k], rng,
            value=float(errors[k]), label=label, level=each_level, **about,
        )
        for k, label in enumerate(question.labels)
    }  # fmt: skip
    if rows is None:
        simulated = combined(np.stack([null.error for null in alone], axis=-1), norm)
        null = nulls.Simulated(alone[0].evidence, simulated, np.nan)
        chance = nulls.any_of([null.p_value for null in alone])
        spread = float(np.sqrt(len(alone)))
    else:
        draw = partial(nulls.joint, question.residuals, lambda some: rows.take(some)[::2], rows.n, norm)
        null = question.drawn_once(("together", norm, about["seed"]), rng, lambda: draw(rng, SIMULATED))
        chance, spread = null.p_value, together(posterior, rows)
    ends, other = _interval(
        estimator, question.problems, posterior, value, norm, level, rng, question.n, spread=spread
    )
    about |= {"notion": question.notion.name, "level": level, "chance": chance}
    whole = _assembled(value, ends, null, other, posterior, **about)
    return replace(whole, by_class=MappingProxyType(by_class), conservative=rows is None)


def _many_classes(
    question: Question,
    estimator: Estimator,
    about: dict[str, Any],
    level: float,
    each_level: float,
    rng: np.random.Generator,
    step: Callable[[], object],
) -> Estimate:
    """Estimate the same for many classes, none of which is held longer than it is looked at."""
    classes = question.once("many classes", lambda: many_classes.Classes.of(question))
    rows, norm, n = question.rows, about["norm"], question.n
    errors = _errors(question, estimator, classes.posterior, norm)
    value = question.notion.combine(errors, norm)
    labels = None if rows is None else _drawn_together(question, rows, classes, rng)
    null = many_classes.nulls(classes, norm, rng, labels, step)
    by_class = {}
    for k, (label, problem) in enumerate(zip(question.labels, question.each(), strict=True)):
        by_class[label] = _single_class(
            estimator, problem, classes.steps[k], classes.coarse[k : k + 1], null.alone[k], rng,
            value=float(errors[k]), label=label, level=each_level, **about,
        )  # fmt: skip
        step()
    widest = many_classes.WIDEST
    spread = widest if rows is None else min(together(classes.posterior, rows), widest)
    other = None
    if isinstance(estimator, Bayes):
        ends = many_classes.interval(classes.coarse, n, norm=norm, level=level, rng=rng, spread=spread)
        ends = min(ends[0], value), max(ends[1], value)
    else:
        ends, other = _interval(
            estimator, list(question.each()), classes.coarse, value, norm, level, rng, n, spread=spread
        )
    about |= {"notion": question.notion.name, "level": level, "chance": null.p_value}
    whole = _assembled(value, ends, null.whole, other, classes.posterior, **about)
    return replace(whole, by_class=MappingProxyType(by_class), conservative=rows is None)


def _errors(question: Question, estimator: Estimator, posterior: Posterior, norm: Norm) -> Array:
    """Errors of all problems; those of the default come from the posterior that the question has."""
    if not isinstance(estimator, Bayes):
        return errors_of(question, estimator, norm)
    batch = (len(posterior.z),) if question.notion.several else ()
    return np.ravel(BayesFit(estimator, batch, posterior).error(norm))


def _drawn_alone(
    question: Question, norm: Norm, seed: int, rng: np.random.Generator
) -> list[nulls.Simulated]:
    """What calibrated data would show of each problem by itself; the same for every estimator."""
    return question.drawn_once(
        ("alone", norm, seed),
        rng,
        lambda: [nulls.single(residuals, norm, rng, SIMULATED) for residuals in question.residuals],
    )


def _single_class(
    estimator: Estimator,
    problem: Evidence,
    residuals: Residuals,
    posterior: Posterior,
    null: nulls.Simulated,
    rng: np.random.Generator,
    /,
    *,
    value: float,
    level: float,
    norm: Norm,
    n: float,
    **about: Any,
) -> Estimate:
    """Estimate one class among several: by itself, with the value that it has among them."""
    bayes = isinstance(estimator, Bayes)
    at = float(nulls.error(posterior, norm)[0]) if bayes else value
    plain: Estimator = Bayes() if bayes else estimator
    ends, other = _interval(plain, [problem], posterior, at, norm, level, rng, n, drawn=BY_CLASS)
    top = intervals.few_scores(residuals, norm, level, rng)
    ends = min(ends[0], value), max(ends[1], value, top)
    return _assembled(
        value, ends, null, other, posterior, notion="class", level=level, norm=norm, n=n, **about
    )


def _drawn_together(
    question: Question, rows: Rows, classes: many_classes.Classes, rng: np.random.Generator
) -> Callable[[int], Array]:
    """Coefficients of each class in sets of labels that were drawn for whole rows."""
    count, cells = classes.coarse.z.shape
    labels = Labels.draw(lambda some: rows.take(some)[::2], rows.n, count, rng, many_classes.SETS)
    columns = [block.score[k] for block in question.blocks for k in range(block.batch[0])]  # type: ignore[attr-defined]
    return lambda k: labels.coefficients(columns[k], k, cells)


def _interval(
    estimator: Estimator,
    problems: Sequence[Evidence],
    posterior: Posterior,
    value: float,
    norm: Norm,
    level: float,
    rng: np.random.Generator,
    n: float,
    *,
    spread: float = 1.0,
    drawn: int = intervals.DRAWN,
) -> tuple[tuple[float, float], Array | None]:
    """The interval, and for an estimator other than the default its values for calibrated data."""
    options: dict[str, Any] = {"norm": norm, "level": level, "rng": rng, "spread": spread}
    if isinstance(estimator, Bayes):
        shared = estimator.shared
        return intervals.interval(posterior, n, value, shared=shared, drawn=drawn, **options), None
    ends, other = intervals.of_other(estimator, list(problems), posterior, value, **options)
    if isinstance(estimator, Debiased) and norm == "l2" and len(problems) == 1:
        low, high = (float(end) for end in estimator.fit(problems[0]).interval(level))
        ends = min(low, value), max(high, value)
    return ends, other


def _assembled(
    value: float,
    ends: tuple[float, float],
    null: nulls.Simulated,
    other: Array | None,
    posterior: Posterior,
    *,
    chance: float | None = None,
    **about: Any,
) -> Estimate:
    errors = null.error if other is None else other
    over, under = (float(np.mean(side)) for side in posterior.sides)
    share = over / (over + under) if over + under > 0 else 0.5
    quantiles = dict(zip(KEPT, np.quantile(errors, KEPT).tolist(), strict=True))
    return Estimate(
        value=value,
        low=ends[0],
        high=ends[1],
        null=Null(float(np.mean(errors)), MappingProxyType(quantiles)),
        p_value=null.p_value if chance is None else chance,
        over=value * share,
        under=value - value * share,
        **about,
    )


def influence(posterior: Posterior, rows: Rows, some: Array) -> Array:
    """Return what each row adds to the error of each class: the residual, signed by the gap at its score."""
    score, label, _ = rows.take(some)
    added = np.empty(score.shape)
    for k in range(score.shape[1]):
        added[:, k] = signs(posterior, k, score[:, k]) * ((label == k) - score[:, k])
    return added


def signs(posterior: Posterior, k: int, score: Array) -> Array:
    """Return the sign of the gap of a problem at given scores; 1 where there is none."""
    order = np.argsort(posterior.score[k], kind="stable")
    gap = np.interp(score, posterior.score[k][order], posterior.gap[k][order])
    return np.where(gap < 0, -1.0, 1.0)


def together(posterior: Posterior, rows: Rows) -> float:
    """Return how much wider the mean over classes spreads than if the classes were independent."""
    classes = len(posterior.z)
    few = max(1000, LOOKED_AT // classes)
    some = np.arange(rows.n) if rows.n <= few else np.linspace(0, rows.n - 1, few).astype(np.intp)
    each = influence(posterior, rows, some)
    alone = np.sqrt(each.var(axis=0).sum()) / classes
    if not alone > 0:
        return 1.0
    return float(np.clip(each.mean(axis=1).std() / alone, 0.5, np.sqrt(classes)))

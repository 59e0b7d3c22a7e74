"""From evidence to an estimate with interval, null and test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from types import MappingProxyType
from typing import Any

import numpy as np

from calibrant import inputs
from calibrant.curves.answers import fitted
from calibrant.estimators import Bayes, BayesFit, Debiased, Estimator, Norm, resolve
from calibrant.evidence import Array, Evidence, Residuals
from calibrant.inference import interval as intervals
from calibrant.inference import many_classes as many
from calibrant.inference import null as nulls
from calibrant.inference.joint_labels import Labels
from calibrant.inference.result import Estimate, Null
from calibrant.posterior.gap import Posterior
from calibrant.questions.notions import Notion

# Simulated calibrated data sets, and the quantiles of their errors that are kept.
SIMULATED, KEPT = 999, (0.5, 0.95)
# Data sets simulated for the interval of one class among several; more classes than MANY are simulated
# over fewer cells (see `calibrant.inference.many_classes`).
BY_CLASS, MANY = 120, 20


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a matrix of scores, for what the classes have in common.

    Parameters
    ----------
    n : int
    take : callable
        Scores (rows, classes), the true class of each row and weights, of the rows asked for.
    """

    n: int
    take: Callable[[Array], tuple[Array, Array, Array | None]]


class Kept:
    """What was simulated of calibrated data, which estimators of the same evidence have in common."""

    def __init__(self) -> None:
        self._found: dict[str, Any] = {}

    def once(self, name: str, rng: np.random.Generator, simulate: Callable[[], Any]) -> Any:
        """What was simulated under this name, or is now; the generator goes on from there either way."""
        if name not in self._found:
            self._found[name] = simulate(), rng.bit_generator.state
        found, rng.bit_generator.state = self._found[name]
        return found


def infer(
    notion: Notion,
    blocks: Sequence[Evidence],
    *,
    estimator: Any,
    norm: Norm,
    level: float,
    rng: Any,
    labels: Sequence[Any],
    label: Any = None,
    rows: Rows | None = None,
    each_level: float | None = None,
    step: Callable[[], object] = lambda: None,
    kept: Kept | None = None,
) -> Estimate:
    """The estimate of evidence that comes in blocks of problems.

    Without `rows` the classes of the class-wise notion may depend on each other in any way, and
    interval and p-value allow for that. The intervals of single classes have a level of their own
    if one is given. Of more than `MANY` classes, `step` is called after each.
    What is simulated of calibrated data may be kept for other estimators of the same evidence.
    """
    inputs.check_choice("norm", norm, ("l1", "l2"))
    level, seed = inputs.level(level), seeded(rng)
    chosen = resolve(estimator, shared=notion.several)
    if not chosen.measures_ece:
        raise ValueError(
            f"{chosen} is a measure of its own, and the interval is for the ECE: ask ece() for it"
        )
    generator = np.random.default_rng(seed)
    if notion.name == "classwise" and len(labels) > MANY:
        return _many(
            notion,
            blocks,
            generator,
            estimator=chosen,
            norm=norm,
            level=level,
            seed=seed,
            labels=labels,
            rows=rows,
            each_level=each_level,
            step=step,
        )
    kept = Kept() if kept is None else kept
    problems = singles(blocks)
    profiles = [Residuals.of(one) for one in problems]
    posterior = Posterior.joined([Bayes().of_profile(one).posterior for one in profiles])  # type: ignore[union-attr]
    each = np.concatenate([np.ravel(fit.error(norm)) for fit in fitted(blocks, chosen)])
    value = notion.combine(each, norm)
    n = float(np.max(problems[0].n))
    common: dict[str, Any] = {"level": level, "n": n, "estimator": str(chosen), "norm": norm, "seed": seed}
    if notion.name != "classwise":
        null = kept.once("null", generator, lambda: nulls.single(profiles[0], norm, generator, SIMULATED))
        ends, other = _interval(chosen, problems, posterior, value, norm, level, generator, n)
        ends = ends[0], max(ends[1], intervals.few_scores(profiles[0], norm, level, generator))
        return _made(value, ends, null, other, posterior, notion=notion.name, label=label, **common)
    by_class, alone_level = {}, level if each_level is None else inputs.level(each_level)
    alone = kept.once(
        "alone", generator, lambda: [nulls.single(one, norm, generator, SIMULATED) for one in profiles]
    )
    about = common | {"level": alone_level}
    for k, (name, one) in enumerate(zip(labels, alone, strict=True)):
        own, value_of = posterior[k : k + 1], float(each[k])
        by_class[name] = _alone(
            chosen, problems[k], profiles[k], own, one, generator, value=value_of, label=name, **about
        )
    if rows is None:
        null = nulls.Simulated(
            alone[0].evidence,
            intervals.combined(np.stack([one.error for one in alone], axis=-1), norm),
            np.nan,
        )
        chance = nulls.any_of([one.p_value for one in alone])
        spread = float(np.sqrt(len(alone)))
    else:
        drawn = partial(nulls.joint, profiles, lambda some: rows.take(some)[::2], rows.n, norm)
        null = kept.once("null", generator, lambda: drawn(generator, SIMULATED))
        chance, spread = null.p_value, together(posterior, rows)
    ends, other = _interval(chosen, problems, posterior, value, norm, level, generator, n, spread=spread)
    whole = _made(value, ends, null, other, posterior, notion=notion.name, chance=chance, **common)
    return replace(whole, by_class=MappingProxyType(by_class), conservative=rows is None)


def _many(
    notion: Notion,
    blocks: Sequence[Evidence],
    generator: np.random.Generator,
    *,
    estimator: Estimator,
    norm: Norm,
    level: float,
    seed: int,
    labels: Sequence[Any],
    rows: Rows | None,
    each_level: float | None,
    step: Callable[[], object],
) -> Estimate:
    """The same for many classes, none of which is kept longer than it is looked at."""
    bayes = isinstance(estimator, Bayes)
    classes = many.Classes.of(_each(blocks))
    if isinstance(estimator, Bayes):
        fit = BayesFit(estimator, (len(labels),), classes.posterior)
        each = fit.error(norm)
    else:
        each = np.concatenate([np.ravel(fit.error(norm)) for fit in fitted(blocks, estimator)])
    value, n = notion.combine(each, norm), float(np.max(blocks[0].n))
    together_in = None if rows is None else _drawn_together(blocks, rows, classes, generator)
    null = many.nulls(classes, norm, generator, together_in, step)
    common: dict[str, Any] = {"n": n, "estimator": str(estimator), "norm": norm, "seed": seed}
    about = common | {"level": level if each_level is None else inputs.level(each_level)}
    by_class = {}
    for k, (name, one) in enumerate(zip(labels, _each(blocks), strict=True)):
        own, value_of = classes.coarse[k : k + 1], float(each[k])
        by_class[name] = _alone(
            estimator,
            one,
            classes.steps[k],
            own,
            null.alone[k],
            generator,
            value=value_of,
            label=name,
            **about,
        )
        step()
    spread = many.WIDEST if rows is None else min(together(classes.posterior, rows), many.WIDEST)
    other = None
    if bayes:
        ends = many.interval(classes.coarse, n, norm=norm, level=level, rng=generator, spread=spread)
        ends = min(ends[0], value), max(ends[1], value)
    else:
        problems = list(_each(blocks))
        ends, other = _interval(
            estimator, problems, classes.coarse, value, norm, level, generator, n, spread=spread
        )
    about = common | {"notion": notion.name, "level": level, "chance": null.p_value}
    whole = _made(value, ends, null.whole, other, classes.posterior, **about)
    return replace(whole, by_class=MappingProxyType(by_class), conservative=rows is None)


def _alone(
    estimator: Estimator,
    one: Evidence,
    profile: Residuals,
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
    """The estimate of one class among several: by itself, with the value that it has among them."""
    bayes = isinstance(estimator, Bayes)
    at = float(nulls.error(posterior, norm)[0]) if bayes else value
    plain: Estimator = Bayes() if bayes else estimator
    ends, other = _interval(plain, [one], posterior, at, norm, level, rng, n, drawn=BY_CLASS)
    top = intervals.few_scores(profile, norm, level, rng)
    ends = min(ends[0], value), max(ends[1], value, top)
    about |= {"notion": "class", "level": level, "norm": norm, "n": n}
    return _made(value, ends, null, other, posterior, **about)


def _each(blocks: Sequence[Evidence]) -> Iterator[Evidence]:
    """The problems of all blocks, made anew as they are asked for."""
    return (block[k] for block in blocks for k in range(block.batch[0]))


def _drawn_together(
    blocks: Sequence[Evidence], rows: Rows, classes: many.Classes, rng: np.random.Generator
) -> Callable[[int], Array]:
    """Coefficients of each class in sets of labels that were drawn for whole rows."""
    count, cells = classes.coarse.z.shape
    labels = Labels.draw(lambda some: rows.take(some)[::2], rows.n, count, rng, many.SETS)
    columns = [block.score[k] for block in blocks for k in range(block.batch[0])]  # type: ignore[attr-defined]
    return lambda k: labels.coefficients(columns[k], k, cells)


def seeded(rng: Any) -> int:
    """The seed itself, or one drawn from a generator; an estimate records it."""
    generator = inputs.generator(rng)
    return int(rng) if isinstance(rng, Integral) else int(generator.integers(2**53))


def singles(blocks: Sequence[Evidence]) -> list[Evidence]:
    """The problems of all blocks, one by one."""
    return [
        one
        for block in blocks
        for one in ([block[k] for k in range(block.batch[0])] if block.batch else [block])
    ]


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
    if isinstance(estimator, Bayes):
        ends = intervals.interval(
            posterior,
            n,
            value,
            norm=norm,
            level=level,
            rng=rng,
            shared=estimator.shared,
            spread=spread,
            drawn=drawn,
        )
        return ends, None
    ends, other = intervals.of_other(
        estimator, list(problems), posterior, value, norm=norm, level=level, rng=rng, spread=spread
    )
    if isinstance(estimator, Debiased) and norm == "l2" and len(problems) == 1:
        low, high = (float(end) for end in estimator.fit(problems[0]).interval(level))
        ends = min(low, value), max(high, value)
    return ends, other


def _made(
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
    over, under = (float(np.mean(part)) for part in posterior.sides)
    share = over / (over + under) if over + under > 0 else 0.5
    kept = dict(zip(KEPT, np.quantile(errors, KEPT).tolist(), strict=True))
    return Estimate(
        value=value,
        low=ends[0],
        high=ends[1],
        null=Null(float(np.mean(errors)), MappingProxyType(kept)),
        p_value=null.p_value if chance is None else chance,
        over=value * share,
        under=value - value * share,
        **about,
    )


def influence(posterior: Posterior, rows: Rows, some: Array) -> Array:
    """What each row adds to the error of each class: the residual, signed by the gap at its score."""
    score, label, _ = rows.take(some)
    found = np.empty(score.shape)
    for k in range(score.shape[1]):
        order = np.argsort(posterior.score[k], kind="stable")
        gap = np.interp(score[:, k], posterior.score[k][order], (posterior.gap[k])[order])
        found[:, k] = np.where(gap < 0, -1.0, 1.0) * ((label == k) - score[:, k])
    return found


def together(posterior: Posterior, rows: Rows, most: int = 1 << 22) -> float:
    """How much wider the mean over classes spreads than if the classes were independent."""
    classes = len(posterior.z)
    few = max(1000, most // classes)
    some = np.arange(rows.n) if rows.n <= few else np.linspace(0, rows.n - 1, few).astype(np.intp)
    each = influence(posterior, rows, some)
    alone = np.sqrt(each.var(axis=0).sum()) / classes
    if not alone > 0:
        return 1.0
    return float(np.clip(each.mean(axis=1).std() / alone, 0.5, np.sqrt(classes)))

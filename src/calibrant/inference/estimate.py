"""From evidence to an estimate with interval, null and test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from types import MappingProxyType
from typing import Any

import numpy as np

from calibrant import _check
from calibrant.answers import fitted
from calibrant.estimators import Bayes, Cumulative, Debiased, Estimator, Norm, Smooth, resolve
from calibrant.evidence import Array, Evidence, Profile
from calibrant.inference import interval as intervals
from calibrant.inference import null as nulls
from calibrant.inference.result import Estimate, Null
from calibrant.notions import Notion
from calibrant.posterior import Posterior

# Simulated calibrated data sets, and the quantiles of their errors that are kept.
SIMULATED, KEPT = 999, (0.5, 0.95)
# Data sets simulated for the interval of one class among many; and, for the nulls of more than MANY
# classes, fewer than else.
BY_CLASS, MANY, FEWER = 120, 20, 199


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
) -> Estimate:
    """The estimate of evidence that comes in blocks of problems.

    Without `rows` the classes of the class-wise notion may depend on each other in any way, and
    interval and p-value allow for that. The intervals of single classes have a level of their own
    if one is given.
    """
    _check.check_choice("norm", norm, ("l1", "l2"))
    level, seed = _check.level(level), seeded(rng)
    chosen = resolve(estimator, notion.name)
    if isinstance(chosen, Smooth | Cumulative):
        raise ValueError(
            f"{chosen} is a measure of its own, and the interval is for the ECE: ask ece() for it"
        )
    generator = np.random.default_rng(seed)
    problems = singles(blocks)
    profiles = [Profile.of(one) for one in problems]
    posterior = Posterior.joined([Bayes().of_profile(one).posterior for one in profiles])  # type: ignore[union-attr]
    each = np.concatenate([np.ravel(fit.error(norm)) for fit in fitted(blocks, chosen)])
    value = notion.combine(each, norm)
    n = float(np.max(problems[0].n))
    common: dict[str, Any] = {"level": level, "n": n, "estimator": str(chosen), "norm": norm, "seed": seed}
    if notion.name != "classwise":
        null = nulls.single(profiles[0], norm, generator, SIMULATED)
        ends, other = _interval(chosen, problems, posterior, value, norm, level, generator, n)
        ends = ends[0], max(ends[1], intervals.few_scores(profiles[0], norm, level, generator))
        return _made(value, ends, null, other, posterior, notion=notion.name, label=label, **common)
    by_class, alone_level = {}, level if each_level is None else _check.level(each_level)
    # Bonferroni over the classes of a sketch needs p-values as small as its number of classes asks.
    size = SIMULATED if len(profiles) <= MANY or rows is None else FEWER
    alone = [nulls.single(one, norm, generator, size) for one in profiles]
    for k, (name, one) in enumerate(zip(labels, alone, strict=True)):
        own = posterior[k : k + 1]
        plain = Bayes() if isinstance(chosen, Bayes) else chosen
        seen = float(nulls.error(own, norm)[0]) if isinstance(chosen, Bayes) else float(each[k])
        ends, other = _interval(
            plain, problems[k : k + 1], own, seen, norm, alone_level, generator, n, drawn=BY_CLASS
        )
        top = intervals.few_scores(profiles[k], norm, alone_level, generator)
        ends = min(ends[0], float(each[k])), max(ends[1], float(each[k]), top)
        about = common | {"notion": "class", "label": name, "level": alone_level}
        by_class[name] = _made(float(each[k]), ends, one, other, own, **about)
    if rows is None:
        null = nulls.Simulated(
            alone[0].evidence,
            intervals.combined(np.stack([one.error for one in alone], axis=-1), norm),
            np.nan,
        )
        chance = nulls.any_of([one.p_value for one in alone])
        spread = float(np.sqrt(len(alone)))
    else:
        null = nulls.joint(
            profiles,
            lambda some: rows.take(some)[::2],
            rows.n,
            norm,
            generator,
            size,
        )
        chance, spread = null.p_value, together(posterior, rows)
    ends, other = _interval(chosen, problems, posterior, value, norm, level, generator, n, spread=spread)
    whole = _made(value, ends, null, other, posterior, notion=notion.name, chance=chance, **common)
    return replace(whole, by_class=MappingProxyType(by_class), conservative=rows is None)


def seeded(rng: Any) -> int:
    """The seed itself, or one drawn from a generator; an estimate records it."""
    generator = _check.generator(rng)
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

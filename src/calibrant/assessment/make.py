"""`assess`: everything about one model's scores in one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from calibrant import _check, notions
from calibrant._version import __version__
from calibrant.answers import curves, diagrams
from calibrant.api import samples
from calibrant.assessment import proper
from calibrant.assessment.cautions import cautions
from calibrant.assessment.inputs import digest, groups_of, names_of, today
from calibrant.assessment.parts import Balance, Odds, Row
from calibrant.assessment.result import Assessment
from calibrant.estimators import Binned
from calibrant.evidence import Array, Evidence
from calibrant.fitting import fit_diagram
from calibrant.inference import Estimate, infer
from calibrant.inference.estimate import seeded, singles
from calibrant.inference.multiplicity import each_level, false_discovery
from calibrant.judge import rows_of
from calibrant.notions import Notion
from calibrant.results import Progress

#: The paper's five estimators with its heuristics, by which the headline is measured too.
RULERS = ("uniform", "adaptive", "uniform-convex", "adaptive-convex", "density")
# Beyond this many classes the class-wise error is measured by the default alone.
MANY = 20
BINS = Binned("uniform", 15)
# For the axis of log odds: its bins, and the log odds between the cells of its histogram.
BY_MASS = Binned("adaptive", 15)
LOG_ODDS = np.arange(-20.0, 20.25, 0.25)


def assess(
    y_true: Any,
    y_prob: Any,
    *,
    notion: str | None = None,
    groups: Any = None,
    class_names: Any = None,
    name: str | None = None,
    level: float = 0.95,
    rng: Any = None,
    sample_weight: Any = None,
    labels: Any = None,
    pos_label: Any = None,
    command: str | None = None,
    progress: Progress | None = None,
    **unexpected: Any,
) -> Assessment:
    """Assess a model's scores by every notion that applies; for a matrix, confidence is the headline.

    Two classes mirror each other, so a binary model is asked about its positive class and its
    confidence; with more classes it is asked about confidence and every class, and about one class
    with `pos_label`.

    Parameters
    ----------
    y_true, y_prob, sample_weight, labels, pos_label
        As for `ece`.
    notion : {"class", "classwise", "confidence"}, optional
        The notion of the headline; as for `ece` by default.
    groups : array of shape (N,), optional
        A subgroup for each row; each is assessed by itself.
    class_names : sequence or mapping, optional
        Names to show, in the order of the columns, or by label.
    name, command : str, optional
        Name of the data, and the command that made this, for the report.
    level : float
        Level of all intervals; those of classes and groups hold together at it.
    rng : int or numpy.random.Generator, optional
        Seed of the simulations; the assessment records it.
    progress : callable, optional
        Called as progress(done, total).

    Examples
    --------
    >>> import calibrant
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(1000)
    >>> found = calibrant.assess(rng.random(1000) < score**2, score, rng=0)
    >>> print(found.verdict)
    Scores of class 1 too high by ... points (95 %: ...); a calibrated model of this size would read ...
    """
    if unexpected:
        _check.reject_unexpected(assess, unexpected)
    given = {"sample_weight": sample_weight, "labels": labels, "pos_label": pos_label}
    data = _check.predictions(y_true, y_prob, **given)
    level, seed = _check.level(level), seeded(rng)
    headline = notions.parse(notion, data).name
    asked = _asked(headline, data, pos_label)
    group = None if groups is None else groups_of(groups, y_true, sample_weight)
    names = names_of(data, class_names)
    steps = _Steps(progress, 2 * len(asked) + len(RULERS) + 1 + (0 if group is None else len(group[0])))

    estimates, drawn, bins = {}, {}, {}
    evidence = {which.name: list(samples(which, data)) for which in asked}
    each = each_level(level, len(names))
    for which in asked:
        blocks = evidence[which.name]
        estimates[which.name] = _estimate(which, data, blocks, "auto", level, seed, each)
        steps()
        drawn[which.name] = curves(
            which,
            blocks,
            data,
            "ranks",
            n_boot=0,
            level=level,
            band="corrected",
            rng=seed,
            progress=None,
        )
        bins[which.name] = diagrams(which, blocks, data, BINS, interval="wilson", level=level)
        steps()
    main = Notion(headline)
    rulers = {"auto": estimates[headline]}
    if headline != "classwise" or len(names) <= MANY:
        for ruler in RULERS:
            rulers[ruler] = _estimate(main, data, evidence[headline], ruler, level, seed)
            steps()
    by_group: tuple[Row, ...] = ()
    if group is not None:
        by_group = _by_group(main, data, *group, level, seed, steps)
    confidence = evidence["confidence"][0] if "confidence" in evidence else None
    one = None if headline == "classwise" else evidence[headline][0]
    scores = _scores(data, evidence, names)
    steps.end()
    column = data.positive if any(which.name == "class" for which in asked) else None
    found = Assessment(
        notion=headline,
        estimates=MappingProxyType(estimates),
        curves=MappingProxyType(drawn),
        diagrams=MappingProxyType(bins),
        odds=_odds(one if one is not None else _worst(estimates["classwise"], evidence["classwise"]), level),
        rulers=MappingProxyType(rulers),
        by_class=_by_class(estimates.get("classwise"), evidence.get("classwise"), names),
        by_group=by_group,
        balance=_balance(evidence["confidence"][0] if one is None else one, level),
        accuracy=None if confidence is None else _balance(confidence, level),
        scores=scores,
        warnings=(),
        rows=len(data.code),
        n=estimates[headline].n,
        classes=names,
        asked=None if column is None else names[column],
        level=level,
        seed=seed,
        created=today(),
        digest=digest(data),
        version=__version__,
        name=None if name is None else str(name),
        command=None if command is None else str(command),
    )
    return replace(found, warnings=tuple(cautions(found, data)))


def _asked(headline: str, data: _check.Predictions, pos_label: Any) -> list[Notion]:
    """The notions that apply, the headline first."""
    columns = 2 if data.score.ndim == 1 else data.score.shape[1]
    if columns == 2:
        usual = ["class", "confidence"]
    else:
        usual = ["confidence", "classwise", *(["class"] if pos_label is not None else [])]
    return [Notion(name) for name in dict.fromkeys([headline, *usual])]


def _estimate(
    which: Notion,
    data: _check.Predictions,
    blocks: list[Any],
    estimator: str,
    level: float,
    seed: int,
    each: float | None = None,
) -> Estimate:
    column = data.positive if which.name == "class" else None
    return infer(
        which,
        blocks,
        estimator=estimator,
        norm="l1",
        level=level,
        rng=seed,
        labels=data.labels,
        label=None if column is None else data.labels[column],
        rows=rows_of(data),
        each_level=each,
    )


def _balance(one: Evidence, level: float) -> Balance:
    from statistics import NormalDist

    bins = one.bins(np.empty(0))
    score, frequency = float(bins.score[0]), float(bins.frequency[0])
    # The spread of a residual is at least that of an outcome at the frequency seen.
    atoms = one.atoms()
    atoms = atoms.about(np.zeros(np.shape(atoms.origin)))
    square = float((atoms.wss - 2 * atoms.wsy + atoms.wy).sum() / atoms.w.sum())
    gap, n = score - frequency, float(one.n)
    reach = NormalDist().inv_cdf((1 + level) / 2) * np.sqrt(max(square - gap * gap, 0.25 / n) / n)
    return Balance(score, frequency, gap - reach, gap + reach)


def _worst(estimate: Estimate, blocks: list[Any]) -> Evidence:
    """The evidence of the class with the largest error."""
    errors = [one.value for one in (estimate.by_class or {}).values()]
    return singles(blocks)[int(np.argmax(errors))]


def _odds(one: Evidence, level: float) -> Odds:
    cuts = 1 / (1 + np.exp(-LOG_ODDS))
    w = one.bins(cuts).w
    edges, counts = np.concatenate([[0.0], cuts, [1.0]]), np.asarray(w * (one.n / w.sum()))
    return Odds(edges, counts, fit_diagram(one, BY_MASS, level=level, interval="wilson", notion="class"))


def _scores(
    data: _check.Predictions, evidence: Mapping[str, list[Any]], names: tuple[str, ...]
) -> tuple[proper.Score, ...]:
    found: list[proper.Score] = []
    if "class" in evidence and data.positive is not None:
        found += proper.of_event(evidence["class"][0], names[data.positive])
    if data.score.ndim == 2 and data.score.shape[1] > 2 and "classwise" in evidence:
        found += proper.of_classes(data, evidence["classwise"])
    if "confidence" in evidence:
        found += proper.of_event(evidence["confidence"][0], "prediction is right")
    return tuple(found)


def _by_class(estimate: Any, blocks: list[Any] | None, names: tuple[str, ...]) -> tuple[Row, ...]:
    if estimate is None or blocks is None:
        return ()
    adjusted = false_discovery([one.p_value for one in estimate.by_class.values()])
    rows = []
    for name, one, part, p in zip(names, estimate.by_class.values(), singles(blocks), adjusted, strict=True):
        bins = part.bins(np.empty(0))
        score, frequency = float(bins.score[0]), float(bins.frequency[0])
        rows.append(Row(name, round(frequency * estimate.n, 6), score, frequency, one, p))
    return tuple(sorted(rows, key=lambda row: -row.estimate.value))


def _by_group(
    main: Notion, data: _check.Predictions, values: list[Any], codes: Array, level: float, seed: int,
    steps: Callable[[], None],
) -> tuple[Row, ...]:  # fmt: skip
    each, found = each_level(level, len(values)), []
    for k in range(len(values)):
        own = codes == k
        weight = None if data.weight is None else data.weight[own]
        part = replace(data, score=data.score[own], code=data.code[own], weight=weight)
        blocks = list(samples(main, part))
        estimate = _estimate(main, part, blocks, "auto", each, seed)
        single = singles(blocks)
        score = float(np.mean([one.bins(np.empty(0)).score[0] for one in single]))
        frequency = float(np.mean([one.bins(np.empty(0)).frequency[0] for one in single]))
        found.append((str(values[k]), int(own.sum()), score, frequency, estimate))
        steps()
    adjusted = false_discovery([one[-1].p_value for one in found])
    rows = [Row(*one, p) for one, p in zip(found, adjusted, strict=True)]
    return tuple(sorted(rows, key=lambda row: -row.estimate.value))


class _Steps:
    """Counts what is done, for progress."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self.progress, self.total, self.done = progress, total, 0

    def __call__(self) -> None:
        self.done += 1
        if self.progress is not None:
            self.progress(min(self.done, self.total), self.total)

    def end(self) -> None:
        self.done = self.total - 1
        self()

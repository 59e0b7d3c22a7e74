"""`assess`: everything about one model's scores in one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from calibrant import inputs
from calibrant.api import samples
from calibrant.assessment import decomposition as proper
from calibrant.assessment.assemble import (
    Material,
    Steps,
    assemble,
    balance_of,
    class_steps,
    estimated,
    rulers_for,
)
from calibrant.assessment.cautions import cautions, seen_in_rows
from calibrant.assessment.inputs import digest, groups_of, names_of
from calibrant.assessment.parts import Row
from calibrant.assessment.result import Assessment
from calibrant.curves.curve import Progress
from calibrant.evidence import Array
from calibrant.inference.estimate import seeded, singles
from calibrant.inference.multiplicity import each_level, false_discovery
from calibrant.judge import rows_of
from calibrant.questions import notions
from calibrant.questions.notions import Notion, named


@inputs.helpful
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
    given = {"sample_weight": sample_weight, "labels": labels, "pos_label": pos_label}
    data = inputs.predictions(y_true, y_prob, **given)
    level, seed = inputs.level(level), seeded(rng)
    headline = notions.usual(notion, vector=data.score.ndim == 1).name
    asked = _asked(headline, data, pos_label)
    group = None if groups is None else groups_of(groups, y_true, sample_weight)
    names = names_of(data.labels, class_names, vector=data.score.ndim == 1)
    material = Material(
        evidence={which.name: list(samples(which, data)) for which in asked},
        asked=data,
        names=names,
        together=rows_of(data),
        rulers=rulers_for(headline, len(names)),
        rows=len(data.code),
        digest=digest(data),
        level=level,
        seed=seed,
    )
    groups_seen = 0 if group is None else len(group[0])
    single = class_steps(material.evidence, len(names))
    steps = Steps(progress, 2 * len(asked) + len(material.rulers) + 1 + groups_seen + single)
    confidence = balance_of(material.evidence["confidence"][0], level)
    found = assemble(material, steps, accuracy=confidence, name=name, command=command)
    if group is not None:
        found = replace(found, by_group=_by_group(asked[0], data, *group, level, seed, steps))
    found = replace(found, scores=_scores(data, material.evidence, names))
    steps.end()
    return replace(found, warnings=tuple(cautions(found, seen_in_rows(data, names))))


def _asked(headline: str, data: inputs.Predictions, pos_label: Any) -> list[Notion]:
    """The notions that apply, the headline first."""
    columns = 2 if data.score.ndim == 1 else data.score.shape[1]
    if columns == 2:
        usual = ["class", "confidence"]
    else:
        usual = ["confidence", "classwise", *(["class"] if pos_label is not None else [])]
    return [named(name) for name in dict.fromkeys([headline, *usual])]


def _scores(
    data: inputs.Predictions, evidence: Mapping[str, list[Any]], names: tuple[str, ...]
) -> tuple[proper.Score, ...]:
    found: list[proper.Score] = []
    if "class" in evidence and data.positive is not None:
        found += proper.of_event(evidence["class"][0], names[data.positive])
    if data.score.ndim == 2 and data.score.shape[1] > 2 and "classwise" in evidence:
        found += proper.of_classes(data, evidence["classwise"])
    if "confidence" in evidence:
        found += proper.of_event(evidence["confidence"][0], "prediction is right")
    return tuple(found)


def _by_group(
    main: Notion, data: inputs.Predictions, values: list[Any], codes: Array, level: float, seed: int,
    steps: Callable[[], None],
) -> tuple[Row, ...]:  # fmt: skip
    each, found = each_level(level, len(values)), []
    for k in range(len(values)):
        own = codes == k
        weight = None if data.weight is None else data.weight[own]
        part = replace(data, score=data.score[own], code=data.code[own], weight=weight)
        blocks = list(samples(main, part))
        estimate = estimated(main, blocks, part, rows_of(part), level=each, seed=seed)
        single = singles(blocks)
        score = float(np.mean([one.bins(np.empty(0)).score[0] for one in single]))
        frequency = float(np.mean([one.bins(np.empty(0)).frequency[0] for one in single]))
        found.append((str(values[k]), int(own.sum()), score, frequency, estimate))
        steps()
    adjusted = false_discovery([one[-1].p_value for one in found])
    rows = [Row(*one, p) for one, p in zip(found, adjusted, strict=True)]
    return tuple(sorted(rows, key=lambda row: -row.estimate.value))

"""An assessment from a sketch: all that its sums allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from calibrant import inputs
from calibrant.assessment import decomposition as proper
from calibrant.assessment.assemble import (
    Material,
    Steps,
    assemble,
    balance_of,
    balanced,
    class_steps,
    rulers_for,
)
from calibrant.assessment.cautions import cautions, seen_in_sums
from calibrant.assessment.inputs import names_of
from calibrant.assessment.parts import Balance
from calibrant.assessment.result import Assessment
from calibrant.curves.curve import Progress
from calibrant.evidence import Cells
from calibrant.inference.estimate import seeded
from calibrant.sketch.file import digest
from calibrant.sketch.summed import Summed


def assess_sums(
    sums: Summed,
    *,
    class_names: Any,
    name: str | None,
    level: float,
    rng: Any,
    command: str | None,
    progress: Progress | None,
    fits: Any,
) -> Assessment:
    """Assess a sketch by its one notion; `fits` says whether its cells are enough for an estimator."""
    level, seed = inputs.level(level), seeded(rng)
    blocks = list(sums._blocks())
    names = names_of(sums.labels, class_names, vector=sums._vector)
    usual = rulers_for(sums.notion, len(names))
    rulers = [ruler for ruler in usual if fits(ruler)]
    material = Material(
        evidence={sums.notion: blocks},
        asked=sums,
        names=names,
        together=None,
        rulers=rulers,
        rows=sums.totals.rows,
        digest=digest(sums),
        level=level,
        seed=seed,
    )
    steps = Steps(progress, 3 + len(rulers) + class_steps(material.evidence, len(names)))
    accuracy = _accuracy(sums, blocks[0], level)
    found = assemble(material, steps, accuracy=accuracy, name=name, command=command)
    found = replace(found, scores=_scores(sums, blocks, names))
    steps.end()
    left_out = [ruler for ruler in usual if ruler not in rulers]
    return replace(found, warnings=tuple(cautions(found, seen_in_sums(sums, names, left_out))))


def _accuracy(sums: Summed, first: Cells, level: float) -> Balance | None:
    """Mean confidence against accuracy, where the mean confidence is known."""
    if sums.notion == "confidence":
        return balance_of(first, level)
    if not sums._vector:
        return None
    # The confidence of p is the larger of p and 1 - p, and a cell lies on one side of 0.5.
    one, totals = first[1] if first.batch else first, sums.totals
    below, above = one.bins(np.array([0.5])).w, one.bins(np.array([0.5])).ws
    confidence = float(below[0] - above[0] + above[1]) / totals.weight
    return balanced(
        confidence, totals.right / totals.weight, totals.brier / 2 / totals.weight, float(one.n), level
    )


def _scores(sums: Summed, blocks: Sequence[Cells], names: tuple[str, ...]) -> tuple[proper.Score, ...]:
    totals, exact = sums.totals, None
    if sums.notion == "classwise":
        # The log loss over all classes is recalibrated by rows, of which none are left.
        return (proper.brier_of_classes(blocks),)
    if sums._vector:
        exact = np.inf if totals.impossible else totals.log_loss / totals.weight
    about = "prediction is right" if sums.notion == "confidence" else names[sums.positive or 0]
    return proper.of_event(blocks[0], about, exact)

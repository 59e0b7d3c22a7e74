"""Groups of an assessment whose rows are sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from calibrant.assessment.assemble import estimated
from calibrant.assessment.cautions import small_groups
from calibrant.assessment.parts import Row
from calibrant.assessment.result import Assessment
from calibrant.inference.estimate import singles
from calibrant.inference.multiplicity import each_level, false_discovery
from calibrant.questions.notions import named
from calibrant.sketch.summed import Summed


def with_groups(found: Assessment, groups: Mapping[Any, Summed]) -> Assessment:
    """An assessment with the groups that its rows fall into, each by its own sums."""
    each, made = each_level(found.level, len(groups)), []
    for name, sums in groups.items():
        blocks = list(sums._blocks())
        estimate = estimated(named(found.notion), blocks, sums, None, level=each, seed=found.seed)
        single = [one.bins(np.empty(0)) for one in singles(blocks)]
        score = float(np.mean([bins.score[0] for bins in single]))
        frequency = float(np.mean([bins.frequency[0] for bins in single]))
        made.append((str(name), sums.totals.rows, score, frequency, estimate))
    adjusted = false_discovery([one[-1].p_value for one in made])
    rows = [Row(*one, p) for one, p in zip(made, adjusted, strict=True)]
    found = replace(found, by_group=tuple(sorted(rows, key=lambda row: -row.estimate.value)))
    return replace(found, warnings=(*found.warnings, *small_groups(found.by_group)))

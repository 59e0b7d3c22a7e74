"""What a reader should know about the data before believing a number."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from calibrant._check import Predictions
from calibrant.assessment.findings import Findings
from calibrant.assessment.wording import count, short
from calibrant.evidence import Array

# Rows below which everything is uncertain, and of a class or a group.
FEW, FEW_HERE = 100, 30
# Scores this near to 0 or 1 count as saturated; scores are discrete where each is shared by so many rows.
NEAR, SHARED = 1e-3, 5
# Share of saturated scores that is worth a word.
MOSTLY = 0.5
# Rows looked at for ties.
LOOKED = 1_000_000


def cautions(found: Findings, data: Predictions) -> Iterator[str]:
    """Sentences, one for each thing to know."""
    score, right = _headline(data)
    n = len(score)
    if n < FEW:
        yield f"There are only {n} rows: intervals are wide, and tests find large errors alone."
    distinct = np.unique(score[:LOOKED]).size
    if n >= FEW and distinct * SHARED <= min(n, LOOKED):
        yield (
            f"Scores are discrete: {count(distinct)} distinct ones in {count(n)} rows. "
            "Between them the curve is interpolated."
        )
    share = float(np.mean((score > 1 - NEAR) | (score < NEAR)))
    if share > MOSTLY:
        yield (
            f"Scores are saturated: {100 * share:.0f} % lie within {NEAR:g} of 0 or 1. "
            "The log-odds axis shows them apart."
        )
    impossible = int(np.count_nonzero((right & (score == 0)) | (~right & (score == 1))))
    if impossible:
        yield (
            f"{count(impossible)} {'row has' if impossible == 1 else 'rows have'} a score of exactly 0 or 1 "
            "and the outcome it rules out."
        )
    if found.n < 0.5 * found.rows:
        yield f"Weights are uneven: {count(found.rows)} rows count as {count(round(found.n))}."
    present = np.bincount(data.code.astype(np.intp), minlength=len(found.classes)) > 0
    absent = [short(name) for name, seen in zip(found.classes, present, strict=True) if not seen]
    if absent:
        named = ", ".join(absent[:5]) + (f" and {len(absent) - 5} more" if len(absent) > 5 else "")
        yield f"No row is of {'class' if len(absent) == 1 else 'the classes'} {named}: counted all the same."
    small = [short(row.name) for row in found.by_group if row.rows < FEW_HERE]
    if small:
        named = ", ".join(small[:5]) + (f" and {len(small) - 5} more" if len(small) > 5 else "")
        yield f"Fewer than {FEW_HERE} rows: {'group' if len(small) == 1 else 'groups'} {named}."
    infinite = next((s for s in found.scores if s.value == np.inf), None)
    if infinite is not None:
        yield "The log loss is infinite: something happened that had probability 0."


def _headline(data: Predictions) -> tuple[Array, Array]:
    """Scores and outcomes: of the positive class, or of the predicted one."""
    if data.score.ndim == 1:
        return data.score, data.code.astype(bool)
    best = data.score.argmax(axis=1)
    return np.take_along_axis(data.score, best[:, None], axis=1)[:, 0], best == data.code

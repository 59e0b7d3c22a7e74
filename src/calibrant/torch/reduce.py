"""Scores and outcomes of a batch in plain PyTorch, for any device; `kernels` does the same on GPUs.

Rows are score vectors (rows, classes) with labels. Each row gets a code: negative if it is left out, else
bit 0 is the outcome and bit 1 whether the label has the largest score, the first one among equal scores.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from calibrant.score_data.layout import Layout
from calibrant.torch.cells import add_rows

#: Codes of rows that are left out.
IGNORED, BAD_SCORE, BAD_LABEL, BAD_SUM = -1, -2, -3, -4
#: Steps of the sums of log losses and Brier scores of rows.
LOSS_STEPS, BRIER_STEPS = float(1 << 24), float(1 << 30)
# Entries of a matrix that are processed together: they stay in the cache.
CHUNK = 1 << 19


class Rows(NamedTuple):
    """Scores of rows (the largest, or the k largest together), codes, and log-sum-exp of logits."""

    score: Tensor
    code: Tensor
    norm: Tensor


def wide(values: Tensor) -> Tensor:
    """Return float64 as it is and everything else as float32."""
    return values if values.dtype == torch.float64 else values.float()


def row_codes(
    label: Tensor, classes: int, ignore: int, right: Tensor, bad_score: Tensor, bad_sum: Tensor | None
) -> Tensor:
    """Return the codes of rows: `right` where they are valid."""
    code = torch.where(bad_score, BAD_SCORE, right)
    if bad_sum is not None:
        code = torch.where(bad_sum & ~bad_score, BAD_SUM, code)
    code = torch.where((label < 0) | (label >= classes), BAD_LABEL, code)
    return torch.where(label == ignore, IGNORED, code).to(torch.int8)


def vector_rows(preds: Tensor, target: Tensor, ignore: int, *, logits: bool) -> tuple[Tensor, Tensor]:
    """Return the scores of one class, from probabilities or log-odds, and the codes of the rows."""
    score = wide(preds).sigmoid() if logits else preds
    label = target.long()
    return score, row_codes(label, 2, ignore, 3 * label, ~((score >= 0) & (score <= 1)), None)


def top_rows(
    row_sums: Tensor,
    x: Tensor,
    target: Tensor,
    ignore: int,
    tolerance: float,
    *,
    top: int,
    logits: bool,
    weight: Tensor | None = None,
) -> Rows:
    """Reduce score vectors to the sum of their `top` largest scores; rows must sum to 1 within the tolerance.

    It adds to `row_sums` the numbers of rows, of labels with the largest score, and of labels with a score of
    0, log losses and Brier scores in steps, and the numbers of rows refused for each reason.
    """
    step, chunks = max(1, CHUNK // x.shape[1]), []
    for a in range(0, len(x), step):
        part = slice(a, a + step)
        label = target[part].long()
        rows, loss, brier = _top_rows(x[part], label, ignore, tolerance, top, logits)
        possible = loss < float("inf")
        each = [torch.ones_like(loss), rows.code >= 2, ~possible]
        each += [torch.where(possible, loss, 0) * LOSS_STEPS, brier * BRIER_STEPS]
        sums = torch.where(rows.code >= 0, torch.stack([values.double() for values in each]), 0)
        if weight is None:
            sums = sums.round().long()
        else:
            sums[1:] *= weight[part]
        row_sums[:5] += sums.sum(1)
        row_sums[5:] += faults(rows.code).to(row_sums.dtype)
        chunks.append(rows)
    return Rows(*map(torch.cat, zip(*chunks, strict=True)))


def faults(code: Tensor) -> Tensor:
    """Count the rows that are refused, by reason."""
    return torch.stack([(code == fault).sum() for fault in (BAD_SCORE, BAD_LABEL, BAD_SUM)])


def _top_rows(
    x: Tensor, label: Tensor, ignore: int, tolerance: float, top: int, logits: bool
) -> tuple[Rows, Tensor, Tensor]:
    """Return a few rows, their log losses and their Brier scores."""
    classes = x.shape[1]
    p = wide(x)
    p = p.softmax(1) if logits else p
    column = label.clamp(0, classes - 1)[:, None]
    largest, own, own_score = p.amax(1), x.gather(1, column), p.gather(1, column)[:, 0]
    # Minima of a softmax are NaN where its maxima are, and never negative.
    bad_score = ~(((largest if logits else p.amin(1)) >= 0) & (largest <= 1))
    bad_sum = None if logits else (p.sum(1) - 1).abs() > tolerance
    brier = torch.linalg.vector_norm(p, dim=1).square() - 2 * own_score + 1
    # The logit of the label is known too where its score is too small for a number.
    most = wide(x.amax(1))
    norm = most - largest.log() if logits else largest
    loss = torch.where(wide(own[:, 0]) == most, -own_score.log(), norm - wide(own[:, 0]))
    loss = loss if logits else -own_score.log()
    if top == 1:
        score, code = largest, 3 * _is_first(x, p, own_score == largest, column).long()
    else:
        score = p.topk(top, dim=1).values.sum(1).clamp(max=1)
        before = torch.arange(classes, device=x.device) < column
        ahead = ((x > own) | ((x == own) & before)).sum(1)
        code = (ahead < top).long() + 2 * (ahead == 0)
    code = row_codes(label, classes, ignore, code, bad_score, bad_sum)
    return Rows(score, code, norm), loss, brier


def _is_first(x: Tensor, p: Tensor, is_largest: Tensor, column: Tensor) -> Tensor:
    """Tell whether the label has the largest score, the first one among equal scores."""
    right, rows = torch.zeros_like(is_largest), is_largest.nonzero()[:, 0]
    # Maxima are several times as fast as their indices.
    kept, at = p[rows], column[rows]
    own = kept.gather(1, at)[:, 0]
    tied = kept.scatter_(1, at, -1.0).amax(1) == own
    right[rows] = ~tied
    rows = rows[tied]
    if len(rows):
        # The scores may be equal only by rounding: the logits tell.
        at = (x[rows] == x[rows].amax(1, keepdim=True)).to(torch.uint8).argmax(1)
        right[rows] = at == column[rows, 0]
    return right


def _blocks(x: Tensor, target: Tensor, rows: Rows, *, logits: bool) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield scores of some rows, and outcomes of all their classes: -1 in rows that are left out."""
    step, column = max(1, CHUNK // x.shape[1]), torch.arange(x.shape[1], device=x.device)
    for a in range(0, len(x), step):
        chunk = slice(a, a + step)
        p = wide(x[chunk])
        if logits:
            p = (p - rows.norm[chunk, None]).exp().clamp(max=1)
        outcome = (column == target[chunk, None]).to(torch.int8)
        yield p, torch.where(rows.code[chunk, None] >= 0, outcome, IGNORED)


def add_classes(
    sums: Tensor,
    x: Tensor,
    target: Tensor,
    rows: Rows,
    layout: Layout,
    *,
    logits: bool,
    pooled: bool,
    weight: Tensor | None,
) -> None:
    """Add the scores of all classes to the sums: a problem for each class, or all `pooled` in one."""
    first, classes = 0, x.shape[1]
    problem = None if pooled else torch.arange(classes, device=x.device)
    for p, outcome in _blocks(x, target, rows, logits=logits):
        each = None if weight is None else weight[first : first + len(p)].repeat_interleave(classes)
        at = None if problem is None else problem.repeat(len(p))
        score = torch.where(outcome >= 0, p, 0.0)
        add_rows(sums, score.flatten(), outcome.flatten(), layout, each, at)
        first += len(p)


def bin_scale(bins: int) -> float:
    """Return the steps of a score of 1 in the sums of bins; scores of the first bin fit in 31 bits."""
    return float(1 << (30 + bins.bit_length()))


def add_bins(sums: Tensor, x: Tensor, target: Tensor, rows: Rows, *, logits: bool) -> None:
    """Add the scores of all classes to sums per class and equal bin: rows, outcomes and scores in steps.

    The sums are integers of shape (3, classes, bins).
    """
    bins, classes = sums.shape[2], x.shape[1]
    scale, edge = bin_scale(bins), 1 / bins
    flat, first = sums.view(3, -1), torch.zeros(classes, dtype=torch.int64, device=x.device)
    for p, outcome in _blocks(x, target, rows, logits=logits):
        valid = outcome >= 0
        # Most scores lie in the first bin, whose sums are those of no other bin.
        large = valid & (p.double() >= edge)
        small = torch.where(valid & ~large, p, 0.0)
        first += (small * scale + 0.5).long().sum(0)
        large_at, hit_at = (mask.nonzero(as_tuple=True) for mask in (large, outcome == 1))
        for place, of_score in ((large_at, True), (hit_at, False)):
            score = p[place].double()
            at = bin_of(score, bins) + bins * place[1]
            if of_score:
                flat[0].scatter_add_(0, at, torch.ones_like(at))
                flat[2].scatter_add_(0, at, (score * scale).long())
            else:
                flat[1].scatter_add_(0, at, torch.ones_like(at))
    sums[2, :, 0] += first
    first_bin(sums, rows)


def first_bin(sums: Tensor, rows: Rows) -> None:
    """Count the rows of the first bin: those of no other bin."""
    sums[0, :, 0] = (rows.code >= 0).sum() - sums[0, :, 1:].sum(-1)


def bin_of(score: Tensor, bins: int) -> Tensor:
    """Return the equal bin of each float64 score, decided by comparison with the edges i / bins.

    >>> bin_of(torch.tensor([0.29, 1.0], dtype=torch.float64), 100).tolist()
    [29, 99]
    """
    at = (score * bins).long()
    at += (score >= (at + 1).double() / bins).long() - (score < at.double() / bins).long()
    return at.clamp_(max=bins - 1)

"""Scores and outcomes of a batch in plain PyTorch, for any device; `kernels` does the same on GPUs.

Each row gets a code: negative if it is left out, else bit 0 is the outcome and bit 1 whether the label has
the largest score, the first one among equal scores.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from calibrant.inputs import InputError
from calibrant.inputs.predictions import MANY
from calibrant.inputs.rounding import TOLERANCE, TOLERANCE_BFLOAT16
from calibrant.score_data.layout import Layout
from calibrant.torch.cells import add_rows
from calibrant.torch.cluster_rows import add_by_group

#: Codes of rows that are left out.
IGNORED, BAD_SCORE, BAD_LABEL, BAD_SUM = -1, -2, -3, -4
#: Steps of the sums of log losses and Brier scores of rows.
LOSS_STEPS, BRIER_STEPS = float(1 << 24), float(1 << 30)
# Scores that are processed together: they stay in the cache.
CHUNK = 1 << 19
# Scores, and rows if these are long, that tell logits from probabilities.
LOOKED_AT, LOOKED_AT_ROWS = 1 << 16, 64


class ScoreBatch(NamedTuple):
    """Scores (rows,) or (rows, classes) and labels; rows must sum to 1 within the tolerance.

    `group` is that of the cluster of each row, if there are clusters.
    """

    x: Tensor
    label: Tensor
    weight: Tensor | None
    ignore: int
    logits: bool
    tolerance: float
    group: Tensor | None = None

    def parts(self) -> Iterator[tuple[slice, ScoreBatch]]:
        """Yield a few rows at a time."""
        step = max(1, CHUNK // self.x[0].numel())
        for first in range(0, len(self.x), step):
            rows = slice(first, first + step)
            weight, group = (None if each is None else each[rows] for each in (self.weight, self.group))
            yield (
                rows,
                self._replace(x=self.x[rows], label=self.label[rows], weight=weight, group=group),
            )

    @property
    def p(self) -> Tensor:
        """Probabilities."""
        x = wide(self.x)
        return x if not self.logits else x.sigmoid() if x.ndim == 1 else x.softmax(1)


class Rows(NamedTuple):
    """Scores of rows (the largest, or the k largest together), codes, and log-sum-exp of logits on GPUs."""

    score: Tensor
    code: Tensor
    norm: Any = None


def sum_tolerance(scores: Tensor) -> float:
    """Return how far rows of scores may sum from 1 by their rounding."""
    return TOLERANCE_BFLOAT16 if scores.dtype == torch.bfloat16 else TOLERANCE[scores.element_size()]


def class_rows(name: str, scores: Tensor, shape: torch.Size, class_axis: int) -> Tensor:
    """Return scores of all classes with the classes on the last axis; `shape` is that of the labels.

    >>> class_rows("preds", torch.zeros(2, 5, 3), torch.Size([2, 3]), 1).shape
    torch.Size([2, 3, 5])
    """
    axes = scores.ndim if scores.ndim == len(shape) + 1 else 0
    fitting = [k for k in range(axes) if scores.shape[:k] + scores.shape[k + 1 :] == shape]
    fitting = [k for k in fitting if scores.shape[k] > 1]
    if -axes <= class_axis < axes and class_axis % axes in fitting:
        return scores.movedim(class_axis, -1)
    got = f"shape {tuple(scores.shape)} for target of shape {tuple(shape)}"
    hint = f"pass class_axis={fitting[-1]} if it is the axis of the classes" if fitting else ""
    rule = f"have the shape of target with an axis more, axis {class_axis}, for two classes or more"
    raise InputError(name, rule, got=got, hint=hint)


def sample_rows(rows: Tensor) -> Tensor:
    """Return a bounded number of evenly spaced rows (rows, classes) of scores (..., classes).

    >>> sample_rows(torch.zeros(100, 1000, 3)).shape
    torch.Size([20000, 3])
    """
    shape = rows.shape[:-1]
    at = sample_of(shape.numel(), rows.shape[-1], rows.device)
    return (
        rows[torch.unravel_index(at, shape)] if len(at) < shape.numel() else rows.reshape(-1, rows.shape[-1])
    )


def sample_of(count: int, classes: int, device: torch.device) -> Tensor:
    """Return a bounded number of evenly spaced indices of rows of so many classes."""
    most = max(LOOKED_AT_ROWS, LOOKED_AT // classes)
    # An odd step does not stay in one column of an image.
    step = 1 if count <= most else -(-count // most) | 1
    return torch.arange(0, count, step, device=device)


def look_like_probabilities(logits: Tensor) -> bool:
    """Tell whether scores (rows,) or (rows, classes) are probabilities; a few logits may be so by chance."""
    if (len(logits) < MANY if logits.ndim == 1 else len(logits) < 3) or not (
        (logits >= 0) & (logits <= 1)
    ).all():
        return False
    # Double-precision probabilities may have been computed in single precision.
    tolerance = max(sum_tolerance(logits), TOLERANCE[4])
    return logits.ndim == 1 or bool(((wide(logits).sum(1) - 1).abs() <= tolerance).all())


def wide(values: Tensor) -> Tensor:
    """Return float64 as it is and everything else as float32."""
    return values if values.dtype == torch.float64 else values.float()


def top_rows(row_sums: Tensor, batch: ScoreBatch, top: int) -> Rows:
    """Reduce score vectors to the sum of their `top` largest scores, and scores of one class to themselves.

    It adds to `row_sums` the numbers of rows, of labels with the largest score, and of labels with a score of
    0, log losses and Brier scores in steps, and the numbers of rows refused for each reason.
    """
    reduced = _one_class if batch.x.ndim == 1 else _vectors
    parts = [torch.stack(reduced(piece, top)) for _, piece in batch.parts()]
    score, least, largest, total, loss, brier, right = torch.cat(parts, dim=1)
    label, classes = batch.label.long(), 2 if batch.x.ndim == 1 else batch.x.shape[1]
    code = torch.where((total - 1).abs() <= batch.tolerance, right, BAD_SUM)
    code = torch.where((least >= 0) & (largest <= 1), code, BAD_SCORE)
    code = torch.where((label < 0) | (label >= classes), BAD_LABEL, code)
    code = torch.where(label == batch.ignore, IGNORED, code).to(torch.int8)
    possible = loss < float("inf")
    each = [torch.ones_like(loss), code >= 2, ~possible]
    each += [torch.where(possible, loss, 0) * LOSS_STEPS, brier * BRIER_STEPS]
    sums = torch.where(code >= 0, torch.stack([values.double() for values in each]), 0)
    if batch.weight is None:
        sums = sums.round().long()
    else:
        sums[1:] *= batch.weight
    row_sums[:5] += sums.sum(1)
    row_sums[5:8] += torch.stack([(code == fault).sum() for fault in (BAD_SCORE, BAD_LABEL, BAD_SUM)])
    return Rows(score, code)


def _one_class(batch: ScoreBatch, top: int) -> list[Tensor]:
    """Return what `_vectors` does, without losses."""
    p = batch.p
    none = torch.zeros_like(p)
    return [p, p, p, none + 1, none, none, batch.label.to(p.dtype)]


def _vectors(batch: ScoreBatch, top: int) -> list[Tensor]:
    """Return scores, smallest, largest and summed probabilities, log losses, Brier scores and codes."""
    p, x = batch.p, batch.x
    column = batch.label.long().clamp(0, x.shape[1] - 1)[:, None]
    largest, own, own_score = p.amax(1), wide(x.gather(1, column)[:, 0]), p.gather(1, column)[:, 0]
    brier, loss = torch.linalg.vector_norm(p, dim=1).square() - 2 * own_score + 1, -own_score.log()
    # Minima of a softmax are NaN where its maxima are, and never negative.
    most, least, total = largest, largest, torch.ones_like(largest)
    if batch.logits:
        # The logit of the label is known too where its score is too small for a number.
        most = wide(x.amax(1))
        loss = torch.where(own == most, loss, most - largest.log() - own)
    else:
        least, total = p.amin(1), p.sum(1)
    if top == 1:
        score, right = largest, torch.zeros_like(largest)
        # Maxima are several times as fast as their indices. Scores of logits may be equal only by rounding.
        rows = (own == most).nonzero()[:, 0]
        others = x[rows].scatter_(1, column[rows], float("-inf"))
        tied = rows[others.amax(1) == most[rows]]
        right[rows] = 3.0
        right[tied] = (3 * (_ahead(x[tied], column[tied]) == 0)).to(right.dtype)
    else:
        score, ahead = p.topk(top, dim=1).values.sum(1).clamp(max=1), _ahead(x, column)
        right = (ahead < top) + 2.0 * (ahead == 0)
    return [score, least, largest, total, loss, brier, right.to(p.dtype)]


def _ahead(x: Tensor, column: Tensor) -> Tensor:
    """Count the classes with larger scores than a column, and with equal ones before it."""
    own, before = x.gather(1, column), torch.arange(x.shape[1], device=x.device) < column
    return ((x > own) | ((x == own) & before)).sum(1)


def add_classes(
    sums: Tensor,
    batch: ScoreBatch,
    rows: Rows,
    layout: Layout,
    cluster_sums: Tensor | None,
    *,
    pooled: bool,
) -> None:
    """Add the scores of all classes to the sums: a problem for each class, or all `pooled` in one.

    Three sums are those of equal bins: integer numbers of rows and of outcomes, and scores in steps.
    """
    classes, bins = batch.x.shape[1], sums.shape[2]
    column = torch.arange(classes, device=batch.x.device)
    for chunk, piece in batch.parts():
        valid = rows.code[chunk, None] >= 0
        p, code = piece.p, torch.where(valid, (column == piece.label[:, None]).to(torch.int8), IGNORED)
        if len(sums) == 6:
            weight = None if piece.weight is None else piece.weight.repeat_interleave(classes)
            problem = None if pooled else column.repeat(len(p))
            add_rows(sums, p.flatten(), code.flatten(), layout, weight, problem)
            if cluster_sums is not None and piece.group is not None:
                group = piece.group.repeat_interleave(classes)
                add_by_group(cluster_sums, p.flatten(), code.flatten(), weight, group, problem)
            continue
        s, scale = torch.where(valid, p, 0).double(), bin_scale(bins)
        # Scores of the first bin are rounded as the kernel does: it holds most of them.
        steps = torch.where(s >= 1 / bins, (s * scale).long(), (s.to(p.dtype) * scale + 0.5).long())
        at = (bin_of(s, bins) + bins * column).flatten()
        for total, more in zip(sums.view(3, -1), (valid.expand(p.shape), code == 1, steps), strict=True):
            total.scatter_add_(0, at, more.long().flatten())


def bin_scale(bins: int) -> float:
    """Return the steps of a score of 1 in the sums of bins; scores of the first bin fit in 31 bits."""
    return float(1 << (30 + bins.bit_length()))


def bin_of(score: Tensor, bins: int) -> Tensor:
    """Return the equal bin of each float64 score, decided by comparison with the edges i / bins.

    >>> bin_of(torch.tensor([0.29, 1.0], dtype=torch.float64), 100).tolist()
    [29, 99]
    """
    at = (score * bins).long()
    at += (score >= (at + 1).double() / bins).long() - (score < at.double() / bins).long()
    return at.clamp_(max=bins - 1)

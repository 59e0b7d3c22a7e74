"""Sums per score cell as tensors: which cell a score lies in, and how the sums become those of a sketch.

Sums of rows without weights are integers, so that they do not depend on the order of rows, batches and
processes. The distance of a score from the lower end of its cell is rounded to a multiple of 1/STEPS of the
cell. The sums of a problem are six rows of a tensor of shape (6, problems, cells): the number of rows, and
the sum of these distances, by outcome (four rows), and the sum of the squared distances, as multiples of
`LIMB` and the rest. With weights, they are the same four rows in floating point, and the sums of the weighted
squares and of the squared weights.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from calibrant.score_data import Array, Cells, Moments
from calibrant.score_data.layout import Layout

#: Multiples of the width of a cell that distances are rounded to. Squares of 2^20 rows fit in 63 bits.
STEP_BITS = 21
STEPS = 1 << STEP_BITS
ROWS = 1 << 20
LIMB = 1 << 32


def locate(score: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
    """Return the cell of each score, as `Layout.locate` does, and its distance from the lower end in steps.

    >>> from calibrant.score_data.layout import FINE
    >>> cell, offset = locate(torch.tensor([0.29, 1.0], dtype=torch.float64), FINE)
    >>> cell.tolist() == FINE.locate(np.array([0.29, 1.0])).tolist(), offset.tolist()
    (True, [0, 2097152])
    """
    k, (below, above, first, shift) = layout.uniform, layout.boundary_cells
    wide = score.double()
    # Exact for float32 and narrower types.
    fixed = (wide * float(k << (STEP_BITS + 1))).long()
    cell = fixed >> (STEP_BITS + 1)
    offset = ((fixed & (2 * STEPS - 1)) + 1) >> 1
    if score.dtype == torch.float64:
        # The product is rounded: compare with the edges to correct the cell.
        low, high = wide < cell.double() / k, wide >= (cell + 1).double() / k
        cell += high.long() - low.long()
        offset = torch.where(low, STEPS, torch.where(high, 0, offset))
    distance = torch.where(wide < 0.5, wide, 1 - wide)
    bits = distance.view(torch.int64)
    eighth = ((bits >> shift) - (first - 1)).clamp_(min=0)
    sixteenth = torch.where(
        eighth == 0, 0, (((bits & ((1 << shift) - 1)) >> (shift - STEP_BITS - 1)) + 1) >> 1
    )
    lowest, highest = cell == 0, cell >= k - 1
    top = below + k - 3 + above - eighth
    cell = torch.where(lowest, eighth, torch.where(highest, top, cell + (below - 1)))
    return cell, torch.where(lowest, sixteenth, torch.where(highest, STEPS - sixteenth, offset))


def add_rows(
    sums: Tensor, score: Tensor, code: Tensor, layout: Layout, weight: Tensor | None, problem: Tensor | None
) -> None:
    """Add rows to the sums of the first problem, or of the `problem` of each.

    Bit 0 of a code is the outcome; rows with a negative one are left out.
    """
    flat = sums.view(6, -1)
    by_outcome, size = flat[:4].view(2, -1), flat.shape[1]
    for chunk in range(0, len(score), ROWS):
        rows = slice(chunk, chunk + ROWS)
        valid = code[rows] >= 0
        cell, offset = locate(torch.where(valid, score[rows], 0), layout)
        if problem is not None:
            cell += problem[rows] * layout.size
        counted = valid.to(sums.dtype) if weight is None else torch.where(valid, weight[rows], 0)
        place, offset = (code[rows] & 1).long() * size + cell, offset.to(sums.dtype)
        first = counted * offset
        by_outcome[0].scatter_add_(0, place, counted)
        by_outcome[1].scatter_add_(0, place, first)
        if weight is None:
            square = torch.zeros_like(flat[4]).scatter_add_(0, cell, first * offset)
            flat[4] += square >> 32
            flat[5] += square & (LIMB - 1)
        else:
            flat[4].scatter_add_(0, cell, first * offset)
            flat[5].scatter_add_(0, cell, counted * counted)


def compensated_add(total: Tensor, more: Tensor) -> None:
    """Add to sums that are kept as a rounded value, `total[0]`, and what rounding left, `total[1]`.

    >>> total = torch.zeros(2, 1, dtype=torch.float64)
    >>> for term in (1.0, 1e-17, -1.0):
    ...     compensated_add(total, torch.tensor([term], dtype=torch.float64))
    >>> (total[0] + total[1]).item()
    1e-17
    """
    high = total[0] + more
    back = high - total[0]
    rest = (total[0] - (high - back)) + (more - back)
    low = total[1] + rest
    total[0] = high + low
    total[1] = low - (total[0] - high)


def compensated_sum(stacked: Tensor) -> Tensor:
    """Add up what `compensated_add` keeps, along the first axis: the sums of several processes."""
    total = stacked[0].clone()
    for each in stacked[1:]:
        compensated_add(total, each[0])
        compensated_add(total, each[1])
    return total


@lru_cache(maxsize=4)
def _ends(layout: Layout) -> tuple[Array, Array]:
    """Return the width of each cell whose steps are counted, and where it begins, relative to `layout.low`.

    The cells of the last part begin a unit of rounding earlier, and one at each end is cut off.
    """
    k, (below, above, first, shift) = layout.uniform, layout.boundary_cells
    lengths = ((np.arange(max(below, above) + 1) + first - 1) << shift).view(np.float64)
    lengths[0] = 0.0
    widths = np.diff(lengths)
    width = np.concatenate([widths[:below], np.full(k - 2, 1 / k), widths[:above][::-1]])
    start = layout.low.copy()
    start[-above:] = (1 - lengths[1 : above + 1])[::-1]
    return width / STEPS, start - layout.low


def to_cells(
    sums: Tensor, layout: Layout, support: tuple[float, float], *, weighted: bool, batch: bool
) -> Cells:
    """Return sums of rows, with scores in a range, as those of a sketch; of each class if it is a batch."""
    values = sums.cpu().numpy()
    values = values if batch else values[:, 0]
    w0, w1, o0, o1, square, rest = (row.astype(np.float64) for row in values)
    if not weighted:
        square = square * LIMB + rest
    unit, shift = _ends(layout)
    width = layout.high - layout.low
    # Rounding must not take a score out of its cell.
    negative, positive = (np.clip(o * unit + w * shift, 0, w * width) for w, o in ((w0, o0), (w1, o1)))
    w, ws = w0 + w1, negative + positive
    wss = unit * (unit * square + 2 * shift * (o0 + o1)) + shift * shift * w
    least = np.divide(ws * ws, w, out=np.zeros(w.shape), where=w > 0)
    wss = np.clip(wss, least, np.maximum(ws * width, least))
    total = np.asarray((rest if weighted else w).sum(axis=-1))
    moments = Moments(w, ws, w1, positive, wss, layout.low)
    return Cells(moments, layout.low, layout.high, total, support, rest if weighted else None)

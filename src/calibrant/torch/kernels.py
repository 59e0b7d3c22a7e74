"""The sums of `cells` and `reduce` by Triton kernels: one pass over the scores, and no softmax is stored.

Each program adds to one of several copies of the cells, so that many rows of one cell do not wait for each
other: confident models put most of their scores into a few cells near 0 and 1, which have more copies. The
cell of a copy holds the number of rows above the sum of their distances in one word, by outcome, and the sum
of the squared distances. All are integers, so that the order of the additions does not matter.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from calibrant.score_data.layout import FINE, Layout
from calibrant.torch import reduce
from calibrant.torch.cells import ROWS, STEP_BITS
from calibrant.torch.reduce import Rows, ScoreBatch

# Constants of the kernels. The number of rows lies above the `OFFSETS` of a word.
COUNT_BITS, STEP = tl.constexpr(2 * STEP_BITS), tl.constexpr(STEP_BITS)
FULL, HALVES = tl.constexpr(1 << STEP_BITS), tl.constexpr(2 << STEP_BITS)
COUNTED, OFFSETS = tl.constexpr(1 << 2 * STEP_BITS), tl.constexpr((1 << 2 * STEP_BITS) - 1)
FIRST, SHIFT = (tl.constexpr(value) for value in FINE.boundary_cells[2:])
_IGNORED, _SCORE = tl.constexpr(reduce.IGNORED), tl.constexpr(reduce.BAD_SCORE)
_LABEL, _SUM = tl.constexpr(reduce.BAD_LABEL), tl.constexpr(reduce.BAD_SUM)
_LOSS, _BRIER = tl.constexpr(reduce.LOSS_STEPS), tl.constexpr(reduce.BRIER_STEPS)
LOG2E = tl.constexpr(1.4426950408889634)
# Copies of most cells, and of those near 0 and 1; uniform cells that are near; rows for each copy; scores
# of a program.
COPIES, NEAR_COPIES, NEAR, ROWS_PER_COPY, BLOCK = 48, 1024, 72, 1 << 13, 1024
# Classes and rows that a program reads at a time, and how often, for bins.
BIN_TILE = 128, 8, 32

# fmt: off

@triton.jit
def _locate(score, UNIFORM, ENDS):
    """Return cells and steps; see `cells.locate`, which has the same operations."""
    s = score.to(tl.float64)
    fixed = (s * (UNIFORM * HALVES)).to(tl.int64)
    uniform = (fixed >> (STEP + 1)).to(tl.int32)
    offset = (((fixed & (HALVES - 1)) + 1) >> 1).to(tl.int32)
    distance = tl.where(s < 0.5, s, 1.0 - s)
    bits = distance.to(tl.int64, bitcast=True)
    eighth = tl.maximum((bits >> SHIFT).to(tl.int32) - (FIRST - 1), 0)
    part = ((((bits >> (SHIFT - STEP - 1)) & (HALVES - 1)) + 1) >> 1).to(tl.int32)
    part = tl.where(eighth == 0, 0, part)
    lowest = uniform == 0
    highest = uniform >= UNIFORM - 1
    cell = tl.where(highest, 2 * ENDS + UNIFORM - 3 - eighth, uniform + (ENDS - 1))
    offset = tl.where(highest, FULL - part, offset)
    return tl.where(lowest, eighth, cell), tl.where(lowest, part, offset)


@triton.jit
def _add(words, place, outcome, offset, keep):
    """Add rows to the words of their cells."""
    wide = offset.to(tl.int64)
    tl.atomic_add(words + place * 4 + outcome, wide + COUNTED, mask=keep, sem="relaxed")
    tl.atomic_add(words + place * 4 + 2, wide * wide, mask=keep, sem="relaxed")


@triton.jit
def _copy_of(cell, program, copies, near_copies, CELLS, NEAR):
    """Return the place of a cell in one of its copies: those of the cells at both ends come first."""
    inner = CELLS - 2 * NEAR
    at_end = (cell < NEAR) | (cell >= CELLS - NEAR)
    near = (program % near_copies) * 2 * NEAR + tl.where(cell < NEAR, cell, cell - inner)
    return tl.where(at_end, near, near_copies * 2 * NEAR + (program % copies) * inner + cell - NEAR)


@triton.jit
def _add_scores(score, label, words, faults, n, ignore, copies, near_copies, CELLS: tl.constexpr,
                UNIFORM: tl.constexpr, ENDS: tl.constexpr, NEAR: tl.constexpr, LOGITS: tl.constexpr,
                CODES: tl.constexpr, SIZE: tl.constexpr):
    program = tl.program_id(0)
    at = program.to(tl.int64) * SIZE + tl.arange(0, SIZE)
    inside = at < n
    s = tl.load(score + at, mask=inside, other=0.0).to(tl.float32)
    y = tl.load(label + at, mask=inside, other=0).to(tl.int64)
    if LOGITS:
        s = 1.0 / (1.0 + tl.exp(-s))
    if CODES:
        keep = inside & (y >= 0)
        y = y & 1
    else:
        asked = inside & (y != ignore)
        known = (y == 0) | (y == 1)
        possible = (s >= 0) & (s <= 1)
        keep = asked & known & possible
        if tl.max((asked & ~keep).to(tl.int32), 0) > 0:
            tl.atomic_add(faults, tl.sum((asked & known & ~possible).to(tl.int64), 0), sem="relaxed")
            tl.atomic_add(faults + 1, tl.sum((asked & ~known).to(tl.int64), 0), sem="relaxed")
    cell, offset = _locate(tl.where(keep, s, 0.0), UNIFORM, ENDS)
    place = _copy_of(cell, program, copies, near_copies, CELLS, NEAR)
    _add(words, place, tl.where(keep, y, 0).to(tl.int32), offset, keep)


@triton.jit
def _add_words(words, sums, size, count, stride, copies, SIZE: tl.constexpr):
    """Add up the copies of `count` cells, to the six sums of so many cells of all problems (`size`)."""
    at = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    inside = at < count
    none = tl.zeros([SIZE], tl.int64)
    w0, w1, o0, o1, high, low = none, none, none, none, none, none
    start = tl.program_id(1) * 8
    for copy in range(start, tl.minimum(start + 8, copies)):
        base = words + (copy * stride + at) * 4
        first = tl.load(base, mask=inside, other=0)
        second = tl.load(base + 1, mask=inside, other=0)
        square = tl.load(base + 2, mask=inside, other=0)
        w0 += first >> COUNT_BITS
        o0 += first & OFFSETS
        w1 += second >> COUNT_BITS
        o1 += second & OFFSETS
        high += square >> 32
        low += square & 0xFFFFFFFF
    tl.atomic_add(sums + at, w0, mask=inside, sem="relaxed")
    tl.atomic_add(sums + size + at, w1, mask=inside, sem="relaxed")
    tl.atomic_add(sums + 2 * size + at, o0, mask=inside, sem="relaxed")
    tl.atomic_add(sums + 3 * size + at, o1, mask=inside, sem="relaxed")
    tl.atomic_add(sums + 4 * size + at, high, mask=inside, sem="relaxed")
    tl.atomic_add(sums + 5 * size + at, low, mask=inside, sem="relaxed")


@triton.jit
def _reduce_rows(x, label, score, code, norm, row_sums, n, classes, stride, ignore, tolerance, copies,
                 TOP: tl.constexpr, LOGITS: tl.constexpr, SINGLE: tl.constexpr, ROWS: tl.constexpr,
                 COLUMNS: tl.constexpr, ALIGN: tl.constexpr, STAGES: tl.constexpr):
    """Reduce score vectors with an online softmax; see `reduce.top_rows`."""
    program = tl.program_id(0)
    row = program.to(tl.int64) * ROWS + tl.arange(0, ROWS)
    inside = row < n
    classes = classes * ALIGN
    y = tl.load(label + row, mask=inside, other=0).to(tl.int64)
    known = (y >= 0) & (y < classes)
    base = x + row * stride * ALIGN
    own = tl.load(base + tl.where(known, y, 0), mask=inside, other=0.0).to(tl.float32)
    y_column = tl.where(known, y, 0).to(tl.int32)
    column = tl.arange(0, COLUMNS)[None, :]
    if SINGLE:
        present = inside[:, None] & (column < classes)
        v = tl.load(base[:, None] + column, mask=present, other=float("-inf")).to(tl.float32)
        if TOP == 1:
            ahead = tl.sum(((v >= own[:, None]) & (column < y_column[:, None])).to(tl.int32), 1)
        else:
            before = (v == own[:, None]) & (column < y_column[:, None])
            ahead = tl.sum(((v > own[:, None]) | before).to(tl.int32), 1)
        most = tl.max(v, 1)
        if LOGITS:
            v = tl.exp2((v - tl.where(most == float("-inf"), 0.0, most)[:, None]) * LOG2E)
            least = most
        else:
            v = tl.where(present, v, 0.0)
            least = tl.min(v, 1)
        total = tl.sum(v, 1)
        square = tl.sum(v * v, 1)
    else:
        most = tl.full([ROWS], float("-inf"), tl.float32)
        sums = tl.zeros([ROWS, COLUMNS], tl.float32)
        squares = tl.zeros([ROWS, COLUMNS], tl.float32)
        most_of = tl.full([ROWS, COLUMNS], float("-inf"), tl.float32)
        least_of = tl.zeros([ROWS, COLUMNS], tl.float32)
        ahead_of = tl.zeros([ROWS, COLUMNS], tl.int32)
        for first in tl.range(0, classes, COLUMNS, num_stages=STAGES):
            at = first + column
            present = inside[:, None] & (at < classes)
            v = tl.load(base[:, None] + at, mask=present, other=float("-inf")).to(tl.float32)
            if TOP == 1:
                ahead_of += ((v >= own[:, None]) & (at < y_column[:, None])).to(tl.int32)
            else:
                before = (v == own[:, None]) & (at < y_column[:, None])
                ahead_of += ((v > own[:, None]) | before).to(tl.int32)
            if LOGITS:
                larger = tl.maximum(most, tl.max(v, 1))
                shift = tl.where(larger == float("-inf"), 0.0, larger)
                e = tl.exp2((v - shift[:, None]) * LOG2E)
                factor = tl.exp2((most - shift) * LOG2E)[:, None]
                sums = sums * factor + e
                squares = squares * (factor * factor) + e * e
                most = larger
            else:
                most_of = tl.maximum(most_of, v)
                v = tl.where(present, v, 0.0)
                least_of = tl.minimum(least_of, v)
                sums += v
                squares += v * v
        least = tl.min(least_of, 1)
        if not LOGITS:
            most = tl.max(most_of, 1)
        ahead = tl.sum(ahead_of, 1)
        total = tl.sum(sums, 1)
        square = tl.sum(squares, 1)
    if LOGITS:
        log_total = tl.log(total)
        tl.store(norm + row, most + log_total, mask=inside)
        largest = 1.0 / total
        loss = (most - own) + log_total
        p = tl.exp(-loss)
        square = square / (total * total)
        possible = total >= 0.5
        fits = possible
    else:
        largest = most
        loss = -tl.log(own)
        p = own
        possible = (least >= 0) & (most <= 1) & (total == total)
        fits = tl.abs(total - 1.0) <= tolerance
    if TOP == 1:
        right = (own == most) & (ahead == 0)
        result = tl.where(right, 3, 0)
    else:
        right = ahead == 0
        result = (ahead < TOP).to(tl.int32) + 2 * right.to(tl.int32)
    result = tl.where(fits, result, _SUM)
    result = tl.where(possible, result, _SCORE)
    result = tl.where(known, result, _LABEL)
    result = tl.where(y == ignore, _IGNORED, result)
    tl.store(score + row, largest, mask=inside)
    tl.store(code + row, result.to(tl.int8), mask=inside)
    valid = inside & (result >= 0)
    finite = valid & (loss < float("inf"))
    brier = tl.where(valid, square - 2 * p + 1.0, 0.0)
    place = row_sums + (program % copies) * 8
    tl.atomic_add(place, tl.sum(valid.to(tl.int64), 0), sem="relaxed")
    tl.atomic_add(place + 1, tl.sum((valid & right).to(tl.int64), 0), sem="relaxed")
    loss = tl.where(finite, loss, 0.0) * _LOSS + 0.5
    tl.atomic_add(place + 3, tl.sum(loss.to(tl.int64), 0), sem="relaxed")
    tl.atomic_add(place + 4, tl.sum((brier * _BRIER + 0.5).to(tl.int64), 0), sem="relaxed")
    odd = inside & (result != _IGNORED) & ~finite
    if tl.max(odd.to(tl.int32), 0) > 0:
        tl.atomic_add(place + 2, tl.sum((odd & valid).to(tl.int64), 0), sem="relaxed")
        tl.atomic_add(place + 5, tl.sum((odd & (result == _SCORE)).to(tl.int64), 0), sem="relaxed")
        tl.atomic_add(place + 6, tl.sum((odd & (result == _LABEL)).to(tl.int64), 0), sem="relaxed")
        tl.atomic_add(place + 7, tl.sum((odd & (result == _SUM)).to(tl.int64), 0), sem="relaxed")


@triton.jit
def _load(x, at, norm, keep, LOGITS):
    """Load scores; those that do not count are 0."""
    p = tl.load(x + at, mask=keep, other=0.0).to(tl.float32)
    if LOGITS:
        p = tl.where(keep, tl.minimum(tl.exp2((p - norm) * LOG2E), 1.0), 0.0)
    return p


@triton.jit
def _add_classes(x, label, code, norm, words, n, classes, stride, copies, CELLS: tl.constexpr,
                 UNIFORM: tl.constexpr, ENDS: tl.constexpr, LOGITS: tl.constexpr, POOLED: tl.constexpr,
                 ROWS: tl.constexpr, COLUMNS: tl.constexpr, ALIGN: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    valid = (row < n) & (tl.load(code + row, mask=row < n, other=-1) >= 0)
    y = tl.load(label + row, mask=valid, other=0).to(tl.int32)
    shift = tl.load(norm + row, mask=valid, other=0.0)[:, None]
    keep = valid[:, None] & (column < classes * ALIGN)
    p = _load(x, row[:, None] * stride * ALIGN + column, shift, keep, LOGITS)
    cell, offset = _locate(p, UNIFORM, ENDS)
    copy = (tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)) % copies
    place = (copy if POOLED else column) * CELLS + cell
    _add(words, place, (column == y[:, None]).to(tl.int32), offset, keep)


@triton.jit
def _bin(p, BINS):
    """Return the bin of scores; see `reduce.bin_of`."""
    s = p.to(tl.float64)
    at = (s * BINS).to(tl.int32)
    at += (s >= (at + 1).to(tl.float64) / BINS).to(tl.int32) - (s < at.to(tl.float64) / BINS).to(tl.int32)
    return tl.minimum(at, BINS - 1)


@triton.jit
def _add_bins(x, code, norm, sums, n, classes, stride, edge, scale, BINS: tl.constexpr, LOGITS: tl.constexpr,
              ROWS: tl.constexpr, COLUMNS: tl.constexpr, TILES: tl.constexpr, ALIGN: tl.constexpr):
    """Sum scores by class and bin; see `reduce.add_bins`."""
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = column < classes * ALIGN
    scores = 2 * classes.to(tl.int64) * ALIGN * BINS
    small = tl.zeros([ROWS, COLUMNS], tl.int64)
    for tile in range(TILES):
        first = (tl.program_id(0).to(tl.int64) * TILES + tile) * ROWS
        row = first + tl.arange(0, ROWS)
        valid = (row < n) & (tl.load(code + row, mask=row < n, other=-1) >= 0)
        shift = tl.load(norm + row, mask=valid, other=0.0)[:, None]
        at = row[:, None] * stride * ALIGN + column[None, :]
        p = _load(x, at, shift, valid[:, None] & inside[None, :], LOGITS)
        large = p >= edge
        small += (tl.where(large, 0.0, p) * scale + 0.5).to(tl.int32)
        if tl.max(tl.max(large.to(tl.int32), 1), 0) > 0:
            # Few rows have such scores: one at a time needs few registers.
            for one in range(ROWS):
                row_1 = first + one
                counts = inside & (row_1 < n) & (tl.load(code + row_1, mask=row_1 < n, other=-1) >= 0)
                shift_1 = tl.load(norm + row_1, mask=row_1 < n, other=0.0)
                p_1 = _load(x, row_1 * stride * ALIGN + column, shift_1, counts, LOGITS)
                place = sums + column.to(tl.int64) * BINS + _bin(p_1, BINS)
                steps = (p_1.to(tl.float64) * scale).to(tl.int64)
                tl.atomic_add(place, tl.full([COLUMNS], 1, tl.int64), mask=p_1 >= edge, sem="relaxed")
                tl.atomic_add(place + scores, steps, mask=p_1 >= edge, sem="relaxed")
    place = sums + scores + column.to(tl.int64) * BINS
    tl.atomic_add(place, tl.sum(small, 0), mask=inside, sem="relaxed")


@triton.jit
def _add_labels(x, label, code, norm, outcomes, n, stride, BINS: tl.constexpr, LOGITS: tl.constexpr,
                SIZE: tl.constexpr):
    """Count the labels by class and the bin of their score."""
    row = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    valid = (row < n) & (tl.load(code + row, mask=row < n, other=-1) >= 0)
    y = tl.load(label + row, mask=valid, other=0).to(tl.int64)
    shift = tl.load(norm + row, mask=valid, other=0.0)
    p = _load(x, row * stride + y, shift, valid, LOGITS)
    place = outcomes + y * BINS + _bin(p, BINS)
    tl.atomic_add(place, tl.full([SIZE], 1, tl.int64), mask=valid, sem="relaxed")

# fmt: on


def _cells_of(layout: Layout) -> dict[str, int]:
    """Return the constants of a layout; its two ends have equally many cells."""
    return {"CELLS": layout.size, "UNIFORM": layout.uniform, "ENDS": layout.boundary_cells[0]}


def _copies(rows: int, most: int) -> int:
    return max(1, min(most, rows // ROWS_PER_COPY))


def _collect(sums: Tensor, words: Tensor, first: int, count: int, stride: int, copies: int) -> None:
    """Add the copies of some cells to their sums."""
    six = sums.view(6, -1)[:, first:]
    grid = triton.cdiv(count, 256), triton.cdiv(copies, 8)
    _add_words[grid](words, six, sums[0].numel(), count, stride, copies, SIZE=256)


def _aligned(x: Tensor) -> tuple[int, int, int]:
    """Return the number of classes and the distance of rows in a common unit, and that unit."""
    align = next(a for a in (16, 8, 4, 2, 1) if x.shape[1] % a == 0 and x.stride(0) % a == 0)
    return x.shape[1] // align, x.stride(0) // align, align


def add_scores(sums: Tensor, batch: ScoreBatch, layout: Layout, faults: Tensor | None = None) -> None:
    """Add scores with labels 0 and 1, or with the codes of rows if there are no `faults` to be counted."""
    score, options = batch.x, _cells_of(layout) | {"LOGITS": batch.logits, "CODES": faults is None}
    copies, near_copies = (_copies(len(score), most) for most in (COPIES, NEAR_COPIES))
    near = layout.boundary_cells[0] + min(NEAR, layout.uniform // 4)
    inner, ends = layout.size - 2 * near, near_copies * 2 * near
    for start in range(0, len(score), copies * ROWS):
        part = slice(start, start + copies * ROWS)
        n, words = len(score[part]), sums.new_zeros(ends + copies * inner, 4)
        arguments = score[part], batch.label[part], words, sums if faults is None else faults, n, batch.ignore
        _add_scores[(triton.cdiv(n, BLOCK),)](
            *arguments, copies, near_copies, NEAR=near, SIZE=BLOCK, **options
        )
        _collect(sums, words, 0, near, 2 * near, near_copies)
        _collect(sums, words[near:], layout.size - near, near, 2 * near, near_copies)
        _collect(sums, words[ends:], near, inner, inner, copies)


def top_rows(row_sums: Tensor, batch: ScoreBatch, top: int) -> Rows:
    """Reduce score vectors to the sum of their `top` largest scores; see `reduce.top_rows`."""
    x, n, (classes, stride, align) = batch.x, len(batch.x), _aligned(batch.x)
    score, norm = (torch.empty(n, device=x.device) for _ in range(2))
    code, copied = score.new_empty(n, dtype=torch.int8), row_sums.new_zeros(64, 8)
    # One warp reads rows of up to 1024 classes, and waits for no other; longer ones are read in pieces.
    columns = min(triton.next_power_of_2(x.shape[1]), 2048)
    single = columns <= 1024
    rows, warps = (max(1, 512 // columns), 1) if single else (1, 4)
    options = {"TOP": top, "LOGITS": batch.logits, "SINGLE": single, "ROWS": rows, "COLUMNS": columns}
    options |= {"ALIGN": align, "STAGES": 2 if x.element_size() == 4 else 1, "num_warps": warps}
    arguments = x, batch.label, score, code, norm, copied, n, classes, stride, batch.ignore, batch.tolerance
    _reduce_rows[(triton.cdiv(n, rows),)](*arguments, len(copied), **options)
    row_sums[: copied.shape[1]] += copied.sum(0)
    if top > 1:
        largest = x.topk(top, dim=1).values.float()
        largest = (largest - norm[:, None]).exp() if batch.logits else largest
        score = largest.sum(1).clamp(max=1)
    return Rows(score, code, norm)


def add_classes(sums: Tensor, batch: ScoreBatch, rows: Rows, layout: Layout, *, pooled: bool) -> None:
    """Add the scores of all classes to the sums; see `reduce.add_classes`."""
    x, (classes, stride, align) = batch.x, _aligned(batch.x)
    if len(sums) == 3:
        _bins_of_classes(sums, batch, rows)
        return
    copies = _copies(x.numel(), 2 * COPIES) if pooled else 1
    columns = min(triton.next_power_of_2(x.shape[1]), 128)
    tile, size = 1024 // columns, sums[0].numel()
    most = max(tile, copies * ROWS // (2 * x.shape[1] if pooled else 2) // tile * tile)
    options = _cells_of(layout) | {"LOGITS": batch.logits, "POOLED": pooled, "ROWS": tile}
    for start in range(0, len(x), most):
        parts = [values[start : start + most] for values in (x, batch.label, rows.code, rows.norm)]
        n, words = len(parts[0]), sums.new_zeros(copies * size, 4)
        grid = triton.cdiv(n, tile), triton.cdiv(x.shape[1], columns)
        arguments = *parts, words, n, classes, stride, copies
        _add_classes[grid](*arguments, COLUMNS=columns, ALIGN=align, **options)
        _collect(sums, words, 0, size, size, copies)


def _bins_of_classes(sums: Tensor, batch: ScoreBatch, rows: Rows) -> None:
    """Add the scores of all classes to the sums of bins."""
    x, bins, (classes, stride, align) = batch.x, sums.shape[2], _aligned(batch.x)
    columns, tile, tiles = BIN_TILE
    # The smallest float32 that is not below the first edge.
    edge = torch.tensor(1 / bins)
    if edge.double() < 1 / bins:
        edge = torch.nextafter(edge, torch.tensor(2.0))
    options = {"BINS": bins, "LOGITS": batch.logits}
    grid = triton.cdiv(len(x), tile * tiles), triton.cdiv(x.shape[1], columns)
    scale, tiled = reduce.bin_scale(bins), {"ROWS": tile, "COLUMNS": columns, "TILES": tiles, "ALIGN": align}
    arguments = x, rows.code, rows.norm, sums, len(x), classes, stride, float(edge), scale
    _add_bins[grid](*arguments, **options, **tiled)
    labelled = x, batch.label, rows.code, rows.norm, sums[1], len(x), x.stride(0)
    _add_labels[(triton.cdiv(len(x), 256),)](*labelled, SIZE=256, **options)
    # The rows of the first bin are those of no other bin.
    sums[0, :, 0] = (rows.code >= 0).sum() - sums[0, :, 1:].sum(-1)

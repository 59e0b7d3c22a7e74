"""Sums by cluster and bin of the score as tensors, for the interval and the test of dependent rows.

The ids of any number of images, sequences or questions are pooled into `GROUPS` groups, by their remainder:
clusters of a group are one cluster for the interval and the test. The sums are two rows of a tensor of shape
(2, problems, groups, bins): weights, and weights times residuals. Without weights they are integers, with
residuals in steps of 1/STEPS, so that they do not depend on the order of rows, batches and processes.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from calibrant.inputs import InputError, InputTypeError
from calibrant.score_data.cluster_sums import BIN_OF_CELL, BINS, ClusterSums
from calibrant.score_data.layout import FINE
from calibrant.torch.cells import ROWS, locate

#: A prime number, so that ids at equal distances, such as 0, 100, 200, ..., are spread over all groups.
GROUPS = 251
#: Steps of a residual of 1: sums of 2^33 rows fit in 63 bits.
STEPS = float(1 << 30)
SHAPE = GROUPS, BINS


def groups_of(cluster: Tensor, shape: torch.Size) -> Tensor:
    """Return the group of each entry of a target of this shape, from ids for its first axes.

    >>> groups_of(torch.tensor([7, 251 + 8]), torch.Size([2, 2])).tolist()
    [7, 7, 8, 8]
    """
    if cluster.is_floating_point() or cluster.is_complex() or cluster.dtype == torch.bool:
        raise InputTypeError("cluster", "hold integers", got=str(cluster.dtype))
    if not cluster.ndim or cluster.shape != shape[: cluster.ndim]:
        rule = f"have the shape of target, {tuple(shape)}, or of its first axes"
        raise InputError("cluster", rule, got=str(tuple(cluster.shape)))
    group = torch.remainder(cluster.long(), GROUPS)
    return group.reshape(*cluster.shape, *(1,) * (len(shape) - cluster.ndim)).expand(shape).reshape(-1)


def add_by_group(
    sums: Tensor, score: Tensor, code: Tensor, weight: Tensor | None, group: Tensor, problem: Tensor | None
) -> None:
    """Add rows to the sums of their groups; the arguments are as for `cells.add_rows`."""
    flat, bin_of_cell = sums.view(2, -1), _bin_of_cell(sums.device)
    for first in range(0, len(score), ROWS):
        rows = slice(first, first + ROWS)
        valid = code[rows] >= 0
        known = torch.where(valid, score[rows], 0).double()
        place = group[rows] * BINS + bin_of_cell[locate(known, FINE)[0]]
        if problem is not None:
            place += problem[rows] * (GROUPS * BINS)
        residual = (code[rows] & 1) - known
        if weight is None:
            parts = valid.long(), torch.where(valid, (residual * STEPS).round().long(), 0)
        else:
            counted = torch.where(valid, weight[rows], 0)
            parts = counted, counted * residual
        for total, more in zip(flat, parts, strict=True):
            total.scatter_add_(0, place, more)


def to_cluster_sums(sums: Tensor, *, weighted: bool) -> ClusterSums:
    """Return the sums of groups as those of clusters."""
    weight, residual = sums.cpu().numpy().astype(np.float64)
    return ClusterSums.of(weight, residual if weighted else residual / STEPS, counts=not weighted)


@lru_cache(maxsize=4)
def _bin_of_cell(device: torch.device) -> Tensor:
    """Return the bin of each cell, on a device."""
    return torch.tensor(BIN_OF_CELL, device=device)

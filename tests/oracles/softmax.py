"""The softmax of blocks, row by row and class by class."""

from __future__ import annotations

import numpy as np


def logits(blocks, p, theta):
    """Log probabilities of rows, from the formula of the blocks."""
    out = np.empty(p.shape)
    by_name = {block.name: np.ravel(block.indices) for block in blocks.blocks}
    k = p.shape[1]
    for i, row in enumerate(p):
        log = np.log(np.maximum(row, blocks.least))
        x = np.clip((log - blocks.centre) / blocks.scale, -4, 4)
        order = sorted(range(k), key=lambda c: (-row[c], c))
        top = np.interp(row.max(), *blocks.top_variance_time)
        waves = [1.0, *(np.sqrt(2) * np.cos(np.pi * j * top) for j in range(1, 9))]
        for c in range(k):
            time = np.interp(row[c], *blocks.variance_time)
            z = log[c] + theta[by_name["temperature"][0]] * np.clip(
                (log[c] - blocks.middle) / blocks.width, -6, 6
            )
            for j, place in enumerate(by_name["curve"], start=1):
                z += theta[place] * np.sqrt(2) * np.cos(np.pi * j * time)
            for name, which in (("first", 0), ("second", 1)):
                if order[which] == c:
                    z += sum(theta[place] * wave for place, wave in zip(by_name[name], waves, strict=True))
            z += theta[by_name["bias"][c]] + theta[by_name["slope"][c]] * x[c]
            if blocks.has_few_classes:
                others = [j for j in range(k) if j != c]
                for j, place in zip(others, by_name["matrix"][c * (k - 1) : (c + 1) * (k - 1)], strict=True):
                    z += theta[place] * x[j]
                for j, place in zip(range(2, 6), by_name["own curve"][4 * c : 4 * c + 4], strict=True):
                    z += theta[place] * np.sqrt(2) * np.cos(np.pi * j * time)
                count = len(blocks.bumps)
                for centre, place in zip(
                    blocks.bumps, by_name["bumps"][c * count : (c + 1) * count], strict=True
                ):
                    far = sum((np.sqrt(row[j]) - centre[j]) ** 2 for j in range(k))
                    z += theta[place] * np.exp(-0.5 * far / blocks.bandwidth)
            out[i, c] = z
    return out


def log_likelihood(rows, blocks, theta):
    """The sum over rows of weight times log probability of the class."""
    total = 0.0
    for z, code, weight in zip(logits(blocks, rows.score, theta), rows.code, rows.weight, strict=True):
        total += weight * (z[code] - np.log(np.exp(z - z.max()).sum()) - z.max())
    return total


def evidence(square, target, precision):
    """The log of a normal integral: prior of these precisions, likelihood of this curvature and slope."""
    on = np.flatnonzero(np.isfinite(precision))
    if not on.size:
        return 0.0
    whole = square[np.ix_(on, on)] + np.diag(precision[on])
    fit = 0.5 * target[on] @ np.linalg.solve(whole, target[on])
    return fit - 0.5 * np.linalg.slogdet(whole)[1] + 0.5 * np.log(precision[on]).sum()


def errors(x, p):
    """l1, squared l2 and mul of predictions, summed over classes one by one."""
    l1 = l2 = mul = 0.0
    for q, s in zip(np.ravel(x), np.ravel(p), strict=True):
        l1 += abs(q - s)
        l2 += (q - s) ** 2
        mul += q * abs(q - s)
    return np.array([l1, l2, mul]) / len(p)

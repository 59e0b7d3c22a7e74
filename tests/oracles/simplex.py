"""The estimators of canonical calibration by plain loops over rows.

Rows are (scores, class, weight), counts repeated. Nothing is shared with the library.
"""

from itertools import combinations
from math import exp, lgamma, log, sqrt

import numpy as np


def distances(rows, frequencies):
    """The three errors of rows at some probabilities: l1, l2, mul."""
    total = [0.0, 0.0, 0.0]
    for (p, _, weight), eta in zip(rows, frequencies, strict=True):
        for score, truth in zip(p, eta, strict=True):
            total[0] += weight * abs(truth - score)
            total[1] += weight * (truth - score) ** 2
            total[2] += weight * truth * abs(truth - score)
    mass = sum(weight for _, _, weight in rows)
    return total[0] / mass, sqrt(total[1] / mass), total[2] / mass


def density(p, centre, h, least=0.0):
    """Density at p of a Dirichlet(centre / h + 1) variable, no score being below some least one."""
    shape = [score / h + 1 for score in centre]
    value = lgamma(sum(shape)) - sum(map(lgamma, shape))
    return exp(value + sum((a - 1) * log(max(score, least)) for a, score in zip(shape, p, strict=True)))


def dirichlet(rows, h, least=0.0):
    """Frequencies of the other rows, each by the density at p of a Dirichlet(p_j / h + 1) variable."""
    found = []
    for i, (p, own, _) in enumerate(rows):
        near = [0.0] * len(p)
        for j, (other, label, weight) in enumerate(rows):
            if i != j:
                near[label] += weight * density(p, other, h, least)
        total = sum(near)
        found.append([x / total for x in near] if total else [float(k == own) for k in range(len(p))])
    return found


def likelihood(rows, h):
    """Mean log density of each vector by the other vectors."""
    total = 0.0
    for p, _, weight in rows:
        others = [(q, w) for q, _, w in rows if q != p]
        total += weight * log(sum(w * density(p, q, h) for q, w in others))
    return total


def residual(p, label):
    return np.array([float(k == label) - score for k, score in enumerate(p)])


def skce(blocks, h):
    """Mean over the pairs of rows of each block."""
    total = mass = 0.0
    for rows in blocks:
        for (p, y, v), (q, z, w) in combinations(rows, 2):
            near = exp(-sqrt(sum((a - b) ** 2 for a, b in zip(p, q, strict=True))) / h)
            total += v * w * near * float(residual(p, y) @ residual(q, z))
            mass += v * w
    return total / mass


def gains(rows, held_out, norm):
    """What each row adds to the variational bound."""
    found = []
    for (p, label, _), x in zip(rows, held_out, strict=True):
        if norm == "l1":
            sign = [0.0 if abs(b - a) < 1e-9 else 1.0 if b > a else -1.0 for a, b in zip(p, x, strict=True)]
            found.append(sign[label] - sum(s * a for s, a in zip(sign, p, strict=True)))
        elif norm == "l2":
            gap = [b - a for a, b in zip(p, x, strict=True)]
            lean = gap[label] - sum(d * a for d, a in zip(gap, p, strict=True))
            found.append(2 * lean - sum(d * d for d in gap))
        else:
            one = 0.0
            for k, (a, b) in enumerate(zip(p, x, strict=True)):
                if b > a:
                    one += (k == label) * (2 * b - a) - b * b
            found.append(one)
    return found


def features(blocks, p):
    """What each coefficient adds to the log probability of each class at scores p, by what adding it does."""
    at = blocks.columns(np.array([p]))
    return np.stack([(blocks.logits(at, theta) - at.log)[0] for theta in np.eye(blocks.size)], axis=1)


def evidence(rows, blocks, sizes, shapes, absent):
    """Log product of the evidences of single blocks at no gap, by determinants and inverses."""
    known = {tuple(p): features(blocks, p) for p, _, _ in rows}
    total = 0.0
    for block in blocks.blocks:
        each = []
        slope, information = np.zeros(len(block.indices)), np.zeros((len(block.indices),) * 2)
        for p, label, weight in rows:
            phi = known[tuple(p)][:, block.indices]
            slope += weight * residual(p, label) @ phi
            information += weight * phi.T @ (np.diag(p) - np.outer(p, p)) @ phi
        for shape in shapes(block):
            for size in sizes:
                spread = np.diag((size * shape) ** 2)
                inside = np.eye(len(slope)) + spread @ information
                gain = slope @ np.linalg.solve(inside, spread @ slope)
                each.append(exp(0.5 * (gain - log(np.linalg.det(inside)))))
        total += log(absent + (1 - absent) * float(np.mean(each)))
    return total

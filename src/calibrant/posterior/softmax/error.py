"""The error on the simplex that a posterior and held-out rows give together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.evidence import Array
from calibrant.posterior.softmax.fit import SoftmaxPosterior
from calibrant.posterior.softmax.likelihood import softmax

NORMS = ("l1", "l2", "mul")
OF_SIZES, OF_EACH, FOLDS = 8, 12, 10
ENTRIES = 200_000


def terms(x: Array, p: Array) -> tuple[Array, Array]:
    """Return what each row adds to l1, squared l2 and mul (3, rows), and their derivatives (3, rows, classes)."""
    d = x - p
    size = np.abs(d)
    s = np.sign(d) * (size > 1e-9)
    plug = np.stack([size.sum(axis=1), (d * d).sum(axis=1), (x * size).sum(axis=1)])
    return plug, np.stack([s, 2 * d, size + x * s])


def drawn_errors(posterior: SoftmaxPosterior, theta: Array, most: int) -> Array:
    """Return the three errors of each draw of coefficients (draws, 3), over some rows."""
    rows, total, seen = posterior.likelihood.rows, np.zeros((len(theta), 3)), 0.0
    some = slice(0, min(most, len(rows.code)))
    for part, at in posterior.likelihood.chunks(some):
        p, w = rows.score[part], rows.weight[part]
        seen += float(w.sum())
        for j, each in enumerate(theta):
            if not each.any():
                continue
            q = softmax(posterior.blocks.logits(at, each))
            d = np.abs(q - p)
            total[j] += w @ d.sum(axis=1), w @ (d * d).sum(axis=1), w @ (q * d).sum(axis=1)
    return total / seen


def canonical(posterior: SoftmaxPosterior, rng: np.random.Generator) -> dict:
    rows = posterior.likelihood.rows
    n, k = rows.score.shape
    theta = posterior.draws(rng, OF_SIZES, OF_EACH)
    e = drawn_errors(posterior, theta, max(1000, ENTRIES // k))
    chance = posterior.chance
    keep = rng.random(len(e)) < chance
    q = np.quantile(np.where(keep[:, None], e, 0), [0.025, 0.975], axis=0)
    some = e[e[:, 0] > 1e-9]
    if len(some):
        q[1] = np.maximum(q[1], np.quantile(some, 0.975, axis=0))
    x = posterior.held_out(rows.folds(FOLDS))
    plug, slope = terms(x, rows.score)
    i, out = np.arange(n), {}
    for j, name in enumerate(NORMS):
        c = slope[j][i, rows.code] - (slope[j] * x).sum(axis=1)
        C, se = rows.mean(c)
        lam = max(0.0, 1 - se * se / max(C * C, 1e-300))
        B, seB = rows.mean(plug[j] + c)
        A = float(e[:, j].mean()) + lam * C
        value = chance * max((A + B) / 2, 0.0)
        big = chance > 0.5
        low = max(0.0, min(q[0, j], min(A, B) - 1.96 * seB)) if big else 0.0
        high = max(q[1, j] + lam * C * big, (max(A, B) + 1.96 * seB) * big, value)
        out[name] = dict(value=value, low=low, high=high, A=A, B=B, seB=seB, C=C, seC=se, lam=lam, q=q[:, j])
    out["chance"] = chance
    return out

"""The map of many classes: log probabilities that are shifted and stretched, weighed by evidence.

After a common temperature, log probabilities z (centred) become

    z_c + (a + h(margin)) z_c + g(x_c) + b_c + v_c z_c + g_c(x_c) + sum_k W_ck z_k,

x_c the log-odds of a class and h, g, g_c a few waves each. All blocks are normal around zero, with sizes
from small grids that contain 0: temperature, vector and matrix scaling are members of the average. One
expansion of the likelihood, renewed twice, is shared by all members. The prediction averages the softmax over
draws, and leaves the scores alone as far as the evidence does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar

import numpy as np

from calibrant.evidence import Array
from calibrant.inputs import InputError
from calibrant.posterior.softmax.likelihood import softmax

# Sizes in the prior of each block; those of W are over the number of classes. (g, g_c) come in pairs.
SHIFT, OWN, ACROSS, MARGIN = (0.0, 0.15, 0.6), (0.0, 0.1, 0.3), (0.0, 0.3, 1.0), (0.0, 0.2)
CURVES = ((0.0, 0.0), (0.5, 0.0), (0.5, 0.5))
SLOPE = 0.2
# Prior weight of leaving the scores as they are, and the spread of the logarithm of the temperature.
UNTOUCHED, TEMPERATURES = 0.25, 2.0
# Prior share of nothing for each of them.
NOTHING = (0.4, 0.5, 0.6, 0.7, 0.6)
WAVES, REACH = 6, 2.0
# With more classes there are no curves of their own and nothing goes across.
FEW_CLASSES = 12
TURNS, CHUNK, DRAWS = 3, 1 << 22, 32
# Rows at most that are asked whether the map helps, and entries that set the clocks.
LOOKED_AT, ENTRIES = 2000, 1 << 21
# Knots of the clocks of the waves, and the least probability.
KNOTS, LEAST = 256, 1e-30


def log_softmax(z: Array) -> Array:
    """Return the logarithm of the softmax along the last axis."""
    top = z - z.max(axis=-1, keepdims=True)
    return top - np.log(np.exp(top).sum(axis=-1, keepdims=True))


def log_probabilities(score: Array, least: float) -> Array:
    """Return logarithms of probabilities that are kept above zero."""
    return np.log(np.maximum(np.asarray(score, dtype=np.float64), least))


def least_of(score: Array) -> float:
    """Return what a score of 0 is taken for: half of the least other score.

    >>> least_of(np.array([[0.0, 1.0], [0.2, 0.8]]))
    0.1
    """
    positive = float(np.min(score, where=score > 0, initial=1.0))
    return max(0.5 * positive if (score <= 0).any() else positive, LEAST)


def row_weights(weight: Array | None, n: int) -> Array:
    """Return the weight of each row: counts as they are, importance weights summing to the effective rows.

    >>> row_weights(np.array([1.0, 3.0]), 2).round(2), row_weights(np.array([1, 3]), 2)
    (array([0.4, 1.2]), array([1., 3.]))
    """
    if weight is None:
        return np.ones(n)
    if weight.dtype.kind != "f":
        return weight.astype(np.float64)
    share = weight / weight.max()
    return np.asarray(share * (share.sum() / (share @ share)))


@dataclass(frozen=True, eq=False)
class Features:
    """What the blocks multiply.

    Attributes
    ----------
    slope : float
        The inverse of the common temperature.
    margin, curve : arrays (2, knots)
        Clocks of the waves: log-odds, and the time from 0 to 1.
    across, curved : bool
        Whether there are the blocks W and g_c.
    """

    slope: float
    margin: Array
    curve: Array
    across: bool
    curved: bool

    @classmethod
    def of_rows(cls, raw: Array, weight: Array, slope: float, *, across: bool, curved: bool) -> Features:
        """Set the clocks by some rows of log probabilities."""
        start = cls(slope, np.zeros((2, 1)), np.zeros((2, 1)), across, curved)
        z = start.tempered(raw)
        x = class_odds(z)
        top = x[np.arange(len(z)), z.argmax(axis=1)]
        return replace(start, margin=_clock(top, weight), curve=_clock(x, weight[:, None]))

    def tempered(self, raw: Array) -> Array:
        """Return centred log probabilities at the common temperature."""
        z = np.maximum(log_softmax(self.slope * raw), np.log(LEAST))
        return np.asarray(z - z.mean(axis=-1, keepdims=True))

    def of(self, z: Array) -> tuple[Array, Array]:
        """Return features that all classes share (rows, classes, J) and those of each (rows, classes, R)."""
        x = class_odds(z)
        top = np.take_along_axis(x, z.argmax(axis=1)[:, None], axis=1)[:, 0]
        by_margin = _waves(np.interp(top, *self.margin))
        by_class = _waves(np.interp(x, *self.curve))
        shared = np.concatenate([z[:, :, None], z[:, :, None] * by_margin[:, None], by_class], axis=2)
        own = [np.ones((*z.shape, 1)), z[:, :, None]]
        if self.curved:
            own.append(by_class)
        if self.across:
            # Entry k of class c is z_k; that of the class itself is the second feature already.
            others = np.broadcast_to(z[:, None, :], (*z.shape, z.shape[1])).copy()
            at = np.arange(z.shape[1])
            others[:, at, at] = 0.0
            own.append(others)
        return shared, np.concatenate(own, axis=2)


def class_odds(z: Array) -> Array:
    """Return the log-odds of each class."""
    log = log_softmax(z)
    return np.asarray(log - np.log(np.maximum(-np.expm1(log), 1e-15)))


def _waves(time: Array) -> Array:
    return np.asarray(np.sqrt(2) * np.cos(np.pi * time[..., None] * np.arange(1, WAVES + 1)))


def _clock(x: Array, weight: Array) -> Array:
    """Return log-odds and the time that they take, by information, at some knots.

    A row of weight two takes the time of two rows, and rows that are alike end at one time.
    """
    alike = weight.min() == weight.max()
    order = None if alike else np.argsort(x, axis=None)
    each = weight.flat[0] if order is None else np.broadcast_to(weight, x.shape).ravel()[order]
    x = np.sort(x, axis=None) if order is None else x.ravel()[order]
    q = 1 / (1 + np.exp(-np.clip(x, -300, 300)))
    running = np.cumsum(each * (q * (1 - q) + 1e-6))
    if order is None:
        some = np.linspace(0, x.size - 1 / each, KNOTS).astype(np.intp)
    else:
        ends = np.cumsum(each)
        some = np.searchsorted(ends, np.linspace(0, ends[-1] - 1, KNOTS), side="right")
    some = np.unique(np.searchsorted(x, x[some], side="right") - 1)
    return np.stack([x[some], running[some] / running[-1]])


@dataclass(frozen=True, eq=False)
class Softmax:
    """A fitted map of many classes.

    Attributes
    ----------
    features : Features
    least : float
        What a score of 0 is taken for.
    draws : array (draws, J + classes R)
        Coefficients from the posterior; a single one, where it is not averaged.
    untouched : float
        Weight of the scores as they are.
    """

    kind: ClassVar[str] = "softmax"
    features: Features
    least: float
    n_classes: int
    draws: Array
    untouched: float = 0.0

    def probability(self, score: Array) -> Array:
        """Return the probabilities that rows of scores stand for."""
        found = self._read(log_probabilities(score, self.least), lambda p: p.mean(axis=-1))
        return self.untouched * score + (1 - self.untouched) * found

    def worse(self, score: Array, weight: Array) -> float:
        """Return the posterior probability that the scores as they are predict better, by log loss."""
        gain = np.log(np.maximum(self.probability(score), LEAST)) - log_probabilities(score, self.least)
        share, total = weight / weight.sum(), np.zeros(len(self.draws))
        step = max(1, CHUNK // (self.n_classes * len(self.draws)))
        for start in range(0, len(score), step):
            part = slice(start, start + step)
            truth = self._drawn_at(log_probabilities(score[part], self.least))
            total += np.einsum("ic,icd->d", share[part, None] * gain[part], truth)
        return self.untouched + (1 - self.untouched) * float(np.mean(total < 0))

    def interval(self, score: Array, deviate: float) -> tuple[Array, Array]:
        """Return the ends of an interval of each class's probability, normal in its log-odds."""

        def ends(p: Array, sign: int) -> Array:
            odds = np.log(np.maximum(p, LEAST)) - np.log(np.maximum(1 - p, LEAST))
            middle, sd = odds.mean(axis=-1), odds.std(axis=-1)
            return np.asarray(1 / (1 + np.exp(-np.clip(middle + sign * deviate * sd, -700, 700))))

        raw = log_probabilities(score, self.least)
        low, high = (self._read(raw, lambda p, sign=sign: ends(p, sign)) for sign in (-1, 1))
        middle = self.probability(score)
        return np.minimum(low, middle), np.maximum(high, middle)

    def _read(self, raw: Array, reduce: Any) -> Array:
        out = np.empty(raw.shape)
        width = max(len(self.draws), self.draws.shape[1] // self.n_classes)
        step = max(1, CHUNK // (self.n_classes * width))
        for start in range(0, len(raw), step):
            out[start : start + step] = reduce(self._drawn_at(raw[start : start + step]))
        return out

    def _drawn_at(self, raw: Array) -> Array:
        """Return the probabilities of some rows by each draw (rows, classes, draws)."""
        shared = 1 + 2 * WAVES
        own = self.draws[:, shared:].reshape(len(self.draws), self.n_classes, -1)
        z = self.features.tempered(raw)
        u, v = self.features.of(z)
        odds = z[:, :, None] + u @ self.draws[:, :shared].T + np.einsum("icr,dcr->icd", v, own, optimize=True)
        odds -= odds.max(axis=1, keepdims=True)
        np.exp(odds, out=odds)
        odds /= odds.sum(axis=1, keepdims=True)
        return np.asarray(odds)

    def to_dict(self) -> dict[str, Any]:
        """Return what is saved."""
        f = self.features
        return {
            "n_classes": self.n_classes,
            "least": self.least,
            "untouched": self.untouched,
            "slope": f.slope,
            "margin": f.margin.tolist(),
            "curve": f.curve.tolist(),
            "across": f.across,
            "curved": f.curved,
            "draws": [[float(f"{v:.9g}") for v in row] for row in self.draws.tolist()],
        }

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> Softmax:
        """Read what was saved."""
        try:
            arrays = {name: np.array(saved[name], dtype=np.float64) for name in ("margin", "curve", "draws")}
            c = int(saved["n_classes"])
            least, slope, untouched = (float(saved[name]) for name in ("least", "slope", "untouched"))
            across, curved = bool(saved["across"]), bool(saved["curved"])
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                "map", "hold numbers for many classes", None, got=f"an error: {error}"
            ) from error
        width = 1 + 2 * WAVES + c * (2 + WAVES * curved + c * across)
        shapes = arrays["margin"].ndim == 2 == arrays["curve"].ndim and arrays["draws"].shape[1:] == (width,)
        if not shapes or not all(np.isfinite(each).all() for each in arrays.values()):
            raise InputError("draws", f"be rows of {width} finite numbers", arrays["draws"].shape)
        features = Features(slope, arrays["margin"], arrays["curve"], across, curved)
        return cls(features, least, c, arrays["draws"], untouched)


def fit_softmax(score: Array, code: Array, weight: Array, blocks: str = "auto") -> Softmax:
    """Fit the map of many classes; `blocks` are "auto", "vector" or "matrix"."""
    n, c = score.shape
    least = least_of(score)
    raw = log_probabilities(score, least)
    slope = likeliest_slope(raw, code, weight)
    same = _likelihood(raw, code, weight, 1.0)
    # Some rows, evenly by how sure they are, stand for all where that is enough.
    some = np.argsort(raw.max(axis=1), kind="stable")[_evenly(n, max(LOOKED_AT, ENTRIES // c))]
    few = c <= FEW_CLASSES and blocks != "vector"
    features = Features.of_rows(raw[some], weight[some], slope, across=few, curved=few and blocks == "auto")
    for start in range(0, n, max(1, CHUNK // c)):
        part = slice(start, start + max(1, CHUNK // c))
        raw[part] = features.tempered(raw[part])
    sizes, prior = _grid(c, features, blocks)
    mean, log, modes = np.zeros(sizes.shape[1]), np.empty(len(sizes)), np.zeros(sizes.shape)
    for _ in range(TURNS):
        square, slope_of, value = _expand(raw, code, weight, features, mean)
        target = slope_of + square @ mean
        for k, size in enumerate(sizes):
            on, root = _root(square, size)
            u = _solved(root, size[on] * target[on])
            modes[k] = 0.0
            modes[k, on] = size[on] * u
            step = modes[k] - mean
            fit = value + slope_of @ step - 0.5 * step @ (square @ step)
            log[k] = fit - 0.5 * u @ u - np.log(np.diagonal(root)).sum()
        share = softmax(log + prior)
        new = share @ modes
        moved, mean = float(np.abs(new - mean).max()), new
        if moved < 1e-3:
            break
    if blocks != "auto":
        return Softmax(features, least, c, mean[None])
    draws = _drawn(share, modes, sizes, square)
    # The temperature was chosen by the data: what its prior says of the neighbourhood counts against it.
    chosen = np.log(SLOPE / TEMPERATURES) - 0.5 * (np.log(slope) / TEMPERATURES) ** 2
    changed = float(np.logaddexp.reduce(log + prior) + chosen) + np.log1p(-UNTOUCHED)
    same += np.log(UNTOUCHED)
    fitted = Softmax(features, least, c, draws, float(np.exp(same - np.logaddexp(same, changed))))
    some = some[_evenly(some.size, LOOKED_AT)]
    # A score of 0 was taken for a small one above: left as it is, it would call impossible what has happened.
    possible = bool((score[np.arange(n), code] > 0).all())
    alone = possible and fitted.worse(score[some], weight[some]) > 0.5
    return replace(fitted, untouched=1.0) if alone else fitted


def _evenly(n: int, most: int) -> Array:
    return np.linspace(0, n - 1, min(n, most)).astype(np.intp)


def _root(square: Array, size: Array) -> tuple[Array, Array]:
    """Return which coefficients a member has, and the root of their precision."""
    on = np.flatnonzero(size > 0)
    precision = square[np.ix_(on, on)] * size[on]
    precision *= size[on][:, None]
    precision[np.arange(on.size), np.arange(on.size)] += 1.0
    return on, np.linalg.cholesky(precision)


def _likelihood(raw: Array, code: Array, weight: Array, slope: float) -> float:
    """Return the log likelihood of log probabilities times a number."""
    total, step = 0.0, max(1, CHUNK // raw.shape[1])
    for start in range(0, len(raw), step):
        part = slice(start, start + step)
        log = log_softmax(slope * raw[part])
        total += float(weight[part] @ log[np.arange(len(log)), code[part]])
    return total


def fit_vector(score: Array, code: Array, weight: Array) -> Softmax:
    """Shift and stretch the log probability of each class."""
    return fit_softmax(score, code, weight, "vector")


def fit_matrix(score: Array, code: Array, weight: Array) -> Softmax:
    """Multiply log probabilities with a matrix; with many classes its diagonal alone."""
    return fit_softmax(score, code, weight, "matrix")


def fit_temperature(score: Array, code: Array, weight: Array) -> Softmax:
    """Divide log probabilities by one number."""
    c, least = score.shape[1], least_of(score)
    slope = likeliest_slope(log_probabilities(score, least), code, weight)
    none = np.array([[0.0], [0.5]])
    return Softmax(Features(slope, none, none, False, False), least, c, np.zeros((1, 1 + 2 * WAVES + 2 * c)))


def likeliest_slope(raw: Array, code: Array, weight: Array) -> float:
    """Return the inverse of the likeliest temperature, its logarithm normal around 0 with a spread of 2."""
    from scipy.optimize import minimize_scalar

    def cost(log: float) -> float:
        return float(0.5 * (log / TEMPERATURES) ** 2) - _likelihood(raw, code, weight, float(np.exp(log)))

    found = minimize_scalar(cost, bounds=(-6.0, 4.0), method="bounded", options={"xatol": 1e-4})
    return float(np.exp(found.x))


def _solved(root: Array, right: Array) -> Array:
    from scipy.linalg import cho_solve

    return np.asarray(cho_solve((root, True), right))


def _grid(c: int, features: Features, blocks: str) -> tuple[Array, Array]:
    """Return the sizes of every coefficient in each member, and the members' log prior weights."""
    power = (1 + (np.arange(1, WAVES + 1) / REACH) ** 2) ** -2.0
    wave = np.sqrt(power / power.sum())
    across = ACROSS if features.across else (0.0,)
    curves = CURVES if features.curved else tuple(pair for pair in CURVES if pair[1] == 0)
    grids: tuple[Any, ...] = (SHIFT, OWN, across, MARGIN, curves)
    if blocks != "auto":
        # As structured scaling does: a shift and a stretch of each class, and with a matrix what goes across.
        grids = ((0.6,), (0.3,), (1.0,) if features.across else (0.0,), (0.0,), ((0.0, 0.0),))
    sizes, prior = [], []
    for shift, own, other, margin, (shared, apart) in product(*grids):
        log = 0.0
        for value, grid, share in zip((shift, own, other, margin, shared), grids, NOTHING, strict=True):
            log += np.log(1.0 if len(grid) == 1 else share if value == 0 else (1 - share) / (len(grid) - 1))
        each = [[shift, own]]
        if features.curved:
            each.append((apart * wave).tolist())
        if features.across:
            each.append([other / c] * c)
        row = np.concatenate(each)
        own_sizes = np.tile(row, (c, 1))
        if features.across:
            at = np.arange(c)
            own_sizes[at, row.size - c + at] = 0.0
        sizes.append(np.concatenate([[SLOPE], margin * wave, shared * wave, own_sizes.ravel()]))
        prior.append(log)
    return np.array(sizes), np.array(prior)


def _expand(
    z: Array, code: Array, weight: Array, features: Features, mean: Array
) -> tuple[Array, Array, float]:
    """Return curvature, gradient and value of the log likelihood at given coefficients."""
    c, shared = z.shape[1], 1 + 2 * WAVES
    width = (mean.size - shared) // c
    square, gradient, value = np.zeros((mean.size, mean.size)), np.zeros(mean.size), 0.0
    each = np.zeros((c, width, width))
    between = np.zeros((shared, c, width))
    step = max(1, CHUNK // (c * (shared + width)))
    own = mean[shared:].reshape(c, width)
    for start in range(0, len(z), step):
        part = slice(start, start + step)
        zz, yy, w = z[part], code[part], weight[part]
        rows = np.arange(len(yy))
        u, v = features.of(zz)
        log = log_softmax(zz + u @ mean[:shared] + np.einsum("icr,cr->ic", v, own))
        value += float(w @ log[rows, yy])
        q = np.exp(log) * w[:, None]
        root = np.sqrt(w)[:, None]
        mean_u = np.einsum("ic,icj->ij", q, u) / w[:, None]
        flat = (u * np.sqrt(q)[:, :, None]).reshape(-1, shared)
        square[:shared, :shared] += flat.T @ flat - (mean_u * w[:, None]).T @ mean_u
        pull = q[:, :, None] * v
        spread = (pull / root[:, :, None]).reshape(len(yy), -1)
        square[shared:, shared:] -= spread.T @ spread
        each += np.einsum("icr,ics->crs", pull, v, optimize=True)
        between += np.einsum("icj,icr->jcr", u, pull, optimize=True)
        between -= np.tensordot(mean_u, pull, axes=(0, 0))
        gradient[:shared] += w @ (u[rows, yy] - mean_u)
        seen = -pull.sum(axis=0)
        np.add.at(seen, yy, w[:, None] * v[rows, yy])
        gradient[shared:] += seen.ravel()
    for k in range(c):
        at = slice(shared + k * width, shared + (k + 1) * width)
        square[at, at] += each[k]
    square[:shared, shared:] = between.reshape(shared, -1)
    square[shared:, :shared] = square[:shared, shared:].T
    return square, gradient, value


def _drawn(share: Array, modes: Array, sizes: Array, square: Array) -> Array:
    """Return antithetic draws of the coefficients, from members picked evenly by weight."""
    from scipy.linalg import solve_triangular

    rng = np.random.default_rng(0)
    pick = np.searchsorted(np.cumsum(share), (np.arange(DRAWS // 2) + 0.5) / (DRAWS // 2))
    draws, last = [], -1
    for k in np.minimum(pick, len(share) - 1):
        if k != last:
            on, root = _root(square, sizes[k])
            last = int(k)
        away = np.zeros(modes.shape[1])
        away[on] = sizes[k, on] * solve_triangular(root, rng.standard_normal(on.size), lower=True, trans="T")
        draws += [modes[k] + away, modes[k] - away]
    return np.array(draws)

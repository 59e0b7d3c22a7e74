"""What the blocks of the softmax posterior multiply.

The log probabilities of a row become

    log p_k + (a + curve)(p_k) + [k first] t(p_max) + [k second] u(p_max)     shared by all classes
            + b_k + v_k x_k + sum_j W_kj x_j + curve_k(p_k) + sum_r C_kr phi_r(p)    of each class,

x standardised logarithms, curves of cosines over a clock that runs with the information p (1 - p), and
phi a few bumps on the simplex. Every block has a prior size of its own, which may be 0. The error of the
canonical notion, its test and the maps of many classes (at a temperature, `calibrant.maps`) all use these.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

import numpy as np

from calibrant.compiled.cached import cached_property
from calibrant.inputs import InputError
from calibrant.inputs.codec import FAR_FROM_OVERFLOW, Ascending, Bounds, Real, Shape
from calibrant.score_data import Array
from calibrant.score_data.simplex import Simplex

# Cosines of the curve that all classes share, of the shifts of the two largest, and of a class's own curve.
CURVE, SHIFT, OWN = 12, 9, (2, 5)
# Bumps on the simplex, and the rows and turns that place them.
BUMPS, PLACED_BY, TURNS = 30, 2000, 8
# With more classes there are no bumps, no curves of single classes, and of the matrix some principal axes;
# with more than MANY of them no matrix and no curve.
FEW, MANY, AXES = 12, 200, 8
# The least probability, where a score is 0, is half of the least other one, within these.
LEAST = (1e-12, 1e-3)
KNOTS = 512
# The least spread of log probabilities, and the least squared reach of a bump.
NARROWEST, SHORTEST = 0.1, 1e-6
# Scores that differ by no more than this share of themselves are equal: rounding may have parted them.
TIED = 1e-11


class Block(NamedTuple):
    """Coefficients that share a prior size.

    Attributes
    ----------
    name : str
    places : array
        Where they stand among all coefficients.
    frequency : array or None
        How often each of them waves, where the prior falls off with it.
    """

    name: str
    places: Array
    frequency: Array | None = None


class Columns(NamedTuple):
    """Features of some rows.

    Attributes
    ----------
    log : array (rows, classes)
        Log probabilities.
    own : array (rows, classes, J)
        Of each class's own score.
    best : array (rows, 2)
        The two most probable classes.
    top : array (rows, 2, SHIFT)
        Of the largest score, for the first and for the second class; 0 where several classes tie for that
        place.
    common : array (rows, M)
        Of the whole row.
    """

    log: Array
    own: Array
    best: Array
    top: Array
    common: Array


@dataclass(frozen=True, eq=False)
class Blocks:
    """The blocks, set by scores alone.

    Attributes
    ----------
    least : float
        What a score of 0 is taken for.
    centre, scale : arrays (classes,)
        Of log probabilities, weighed by p (1 - p).
    middle, width : float
        The same over all classes.
    clock, top_clock : arrays (2, knots)
        Scores and the time they take, of any class and of the largest.
    axes : array (classes, AXES) or None
        Principal axes of the standardised logarithms, with their spread taken out.
    origin : array or None
        Where the axes meet.
    bumps : array (B, classes) or None
        Centres on the roots of the scores.
    reach : float
        Squared reach of the bumps.
    """

    n_classes: Annotated[int, Bounds(2)]
    least: Annotated[float, Bounds(*LEAST)]
    centre: Annotated[Array, FAR_FROM_OVERFLOW]
    scale: Annotated[Array, Bounds(NARROWEST, FAR_FROM_OVERFLOW.high)]
    middle: Real
    width: Annotated[float, Bounds(NARROWEST, FAR_FROM_OVERFLOW.high)]
    clock: Annotated[Array, Shape((2, None)), Bounds(0, 1), Ascending()]
    top_clock: Annotated[Array, Shape((2, None)), Bounds(0, 1), Ascending()]
    axes: Annotated[Array, Shape((None, None)), FAR_FROM_OVERFLOW] | None
    origin: Annotated[Array, FAR_FROM_OVERFLOW] | None
    bumps: Annotated[Array, Shape((None, None)), Bounds(0, 1)] | None
    reach: Annotated[float, Bounds(SHORTEST, FAR_FROM_OVERFLOW.high)]

    def check_fields(self) -> None:
        """Refuse fields that are not of as many classes, or are there for other numbers of classes alone."""
        classes = self.n_classes
        shapes = {"centre": (classes,), "scale": (classes,), "origin": (classes,), "axes": (classes, None)}
        for name, shape in (shapes | {"bumps": (None, classes)}).items():
            if (array := getattr(self, name)) is not None:
                Shape(shape).check(name, array)
        for name, needed in (("bumps", self.few), ("axes", self.has_axes), ("origin", self.has_axes)):
            if (getattr(self, name) is not None) != needed:
                raise InputError(name, f"{'be given' if needed else 'be null'} for {classes} classes")

    @classmethod
    def of(cls, rows: Simplex) -> Blocks:
        """Set clocks, scales and bumps by the scores."""
        p, weight = rows.score, rows.weight
        classes = p.shape[1]
        least = least_of(p)
        some = slice(0, max(PLACED_BY, (1 << 22) // classes))
        p, weight = p[some], weight[some]
        log = np.log(np.maximum(p, least))
        info = p * (1 - p) * weight[:, None]
        each = np.maximum(info.sum(axis=0), 1e-300)
        centre = (info * log).sum(axis=0) / each
        scale = np.maximum(np.sqrt((info * (log - centre) ** 2).sum(axis=0) / each), NARROWEST)
        middle = float((info * log).sum() / each.sum())
        width = max(float(np.sqrt((info * (log - middle) ** 2).sum() / each.sum())), NARROWEST)
        axes = origin = bumps = None
        reach = 1.0
        if FEW < classes <= MANY:
            x = np.clip((log[:4000] - centre) / scale, -4, 4)
            origin = x.mean(axis=0)
            _, _, v = np.linalg.svd(x - origin, full_matrices=False)
            axes = v[:AXES].T
            axes = axes / np.maximum(((x - origin) @ axes).std(axis=0), 1e-9)
        if classes <= FEW:
            bumps, reach = _placed(
                np.sqrt(p[:PLACED_BY]), weight[:PLACED_BY], min(BUMPS, max(2, int(rows.n) // 20))
            )
        return cls(
            classes, least, centre, scale, middle, width,
            _clock(p, weight[:, None]), _clock(p.max(axis=1), weight), axes, origin, bumps, reach,
        )  # fmt: skip

    def ordered(self, columns: Array) -> tuple[Blocks, Array]:
        """Return the same with the classes in another order, and where each coefficient stood before."""
        common, turned = self.common[columns], np.arange(self.size)
        if self.few:
            across = slice(1, 1 + self.n_classes)
            common[:, across] = common[:, across][:, columns]
        turned[self.common], turned[self.own] = common, self.own[columns]
        parts = {name: getattr(self, name)[columns] for name in ("centre", "scale")}
        for name in ("axes", "origin"):
            parts[name] = None if getattr(self, name) is None else getattr(self, name)[columns]
        bumps = None if self.bumps is None else self.bumps[:, columns]
        return replace(self, bumps=bumps, **parts), turned

    @property
    def few(self) -> bool:
        """Whether classes are few enough for a matrix, curves of their own and bumps."""
        return self.n_classes <= FEW

    @property
    def has_axes(self) -> bool:
        """Whether the matrix of so many classes is one of principal axes."""
        return FEW < self.n_classes <= MANY

    @property
    def shared(self) -> int:
        """Number of coefficients that all classes share."""
        return self.alike + 2 * SHIFT

    @property
    def alike(self) -> int:
        """How many of them go by the own score of each class: the temperature and its curve."""
        return 1 + (CURVE if self.n_classes <= MANY else 0)

    @property
    def width_common(self) -> int:
        """Number of features of the whole row."""
        across = self.n_classes if self.few else 0 if self.axes is None else self.axes.shape[1]
        return 1 + across + (0 if self.bumps is None else len(self.bumps))

    @property
    def width_own(self) -> int:
        """Number of coefficients of each class that go by its own score."""
        return OWN[1] - OWN[0] + 1 if self.few else 1

    @property
    def size(self) -> int:
        """Number of coefficients."""
        return self.shared + self.n_classes * (self.width_common + self.width_own)

    @cached_property
    def common(self) -> Array:
        """Places of the coefficients of features of the whole row (classes, M)."""
        shape = self.n_classes, self.width_common
        return self.shared + np.arange(shape[0] * shape[1]).reshape(shape)

    @cached_property
    def own(self) -> Array:
        """Places of the coefficients of each class's own features (classes, J)."""
        shape = self.n_classes, self.width_own
        return self.shared + self.common.size + np.arange(shape[0] * shape[1]).reshape(shape)

    @cached_property
    def blocks(self) -> list[Block]:
        """All blocks."""
        k = self.n_classes
        shift = np.maximum(np.arange(SHIFT), 0.5)
        found = [
            Block("temperature", np.arange(1)),
            Block("first", self.alike + np.arange(SHIFT), shift),
            Block("second", self.alike + SHIFT + np.arange(SHIFT), shift),
            Block("bias", self.common[:, 0]),
        ]
        if self.alike > 1:
            found.insert(1, Block("curve", 1 + np.arange(CURVE), np.arange(1.0, CURVE + 1)))
        if self.few:
            across = self.common[:, 1 : 1 + k]
            found.append(Block("slope", np.diagonal(across).copy()))
            found.append(Block("matrix", across[~np.eye(k, dtype=bool)]))
            waves = np.tile(np.arange(OWN[0], OWN[1] + 1.0), k)
            found.append(Block("own curve", self.own.ravel(), waves))
            found.append(Block("bumps", self.common[:, 1 + k :].ravel()))
        else:
            found.append(Block("slope", self.own[:, 0]))
            if self.axes is not None:
                found.append(Block("matrix", self.common[:, 1:].ravel()))
        return found

    def columns(self, p: Array) -> Columns:
        """Return the features of some rows."""
        n = len(p)
        log = np.log(np.maximum(p, self.least))
        x = np.clip((log - self.centre) / self.scale, -4, 4)
        tempered = np.clip((log - self.middle) / self.width, -6, 6)
        own = [tempered[..., None]]
        if self.alike > 1:
            own.append(_cosines(_time(p, self.clock), CURVE))
        if not self.few:
            own.append(x[..., None])
        best, alone = _two_largest(p)
        top = np.ones((n, 2, SHIFT))
        top[:, :, 1:] = _cosines(_time(p.max(axis=1), self.top_clock), SHIFT - 1)[:, None]
        top[~alone] = 0.0
        common = [np.ones((n, 1))]
        if self.few:
            common.append(x)
        elif self.axes is not None:
            common.append((x - np.asarray(self.origin)) @ self.axes)
        if self.bumps is not None:
            common.append(np.exp(-0.5 * squares(np.sqrt(p), self.bumps) / self.reach))
        return Columns(log, np.concatenate(own, axis=2), best, top, np.concatenate(common, axis=1))

    def own_slice(self) -> slice:
        """Which features of the own score have coefficients of each class too."""
        return slice(OWN[0], OWN[1] + 1) if self.few else slice(self.alike, self.alike + 1)

    def logits(self, at: Columns, theta: Array) -> Array:
        """Return the log probabilities of rows, up to a constant, at some coefficients."""
        by_own = np.zeros((self.n_classes, at.own.shape[2]))
        by_own[:, : self.alike] = theta[: self.alike]
        by_own[:, self.own_slice()] += theta[self.own]
        z = at.log + np.einsum("nkj,kj->nk", at.own, by_own) + at.common @ theta[self.common].T
        first = self.alike
        for r in range(2):
            shift = at.top[:, r] @ theta[first + r * SHIFT : first + (r + 1) * SHIFT]
            z[np.arange(len(z)), at.best[:, r]] += shift
        return np.asarray(z)


def least_of(p: Array, within: tuple[float, float] = LEAST) -> float:
    """Return what a score of 0 is taken for: half of the least other score.

    >>> least_of(np.array([[0.0, 1.0], [0.2, 0.8]]), (0.0, 1.0))
    0.1
    """
    return float(np.clip(0.5 * np.min(p, where=p > 0, initial=1.0), *within))


def _two_largest(p: Array) -> tuple[Array, Array]:
    """Return the classes of the two largest scores (rows, 2), and whether they alone have them.

    >>> best, alone = _two_largest(np.array([[0.2, 0.7, 0.1], [0.6, 0.2, 0.2]]))
    >>> best[0], alone
    (array([1, 0]), array([[ True,  True],
           [ True, False]]))
    """
    best = np.argpartition(-p, min(2, p.shape[1] - 1), axis=1)[:, :3]
    order = np.argsort(-np.take_along_axis(p, best, axis=1), axis=1)
    best = np.take_along_axis(best, order, axis=1)
    largest = np.take_along_axis(p, best, axis=1)
    apart = largest[:, 1:] < largest[:, :-1] * (1 - TIED)
    # A tie for the first place is one for the second as well.
    return best[:, :2], np.stack([apart[:, 0], apart.all(axis=1)], axis=1)


def _cosines(time: Array, count: int) -> Array:
    """Return cosines of frequencies 1 to `count`, by recurrence, on a new last axis."""
    out = np.empty((*time.shape, count))
    first = np.cos(np.pi * time)
    before, now = np.sqrt(2.0) * np.ones(time.shape), np.sqrt(2.0) * first
    for j in range(count):
        out[..., j] = now
        before, now = now, 2 * first * now - before
    return out


def _clock(p: Array, weight: Array) -> Array:
    """Return scores and the time they take from 0 to 1, by information p (1 - p)."""
    order = np.argsort(p, axis=None, kind="stable")
    x, each = p.ravel()[order], np.broadcast_to(weight, p.shape).ravel()[order]
    running = np.cumsum(each * (x * (1 - x) + 1e-9))
    running /= running[-1]
    some = np.unique(np.searchsorted(running, np.linspace(0, 1, KNOTS)).clip(0, x.size - 1))
    # Equal scores have one time, that of their last.
    some = np.unique(np.searchsorted(x, x[some] * (1 + TIED), side="right") - 1)
    return np.stack([x[some], running[some]])


def _time(p: Array, clock: Array) -> Array:
    """Return the time that scores take; between scores that are almost equal a line would overflow."""
    return np.asarray(np.clip(np.interp(p, *clock), 0.0, 1.0))


def _placed(root: Array, weight: Array, count: int) -> tuple[Array, float]:
    """Place the centres of bumps among roots of scores, by weighted k-means."""
    rng = np.random.default_rng(0)
    centres = np.empty((count, root.shape[1]))
    far = np.full(len(root), np.inf)
    chance = weight
    for j in range(count):
        total = np.cumsum(chance)
        if not total[-1] > 0:
            centres = centres[:j]
            break
        centres[j] = root[
            min(int(np.searchsorted(total, rng.random() * total[-1], side="right")), len(root) - 1)
        ]
        far = np.minimum(far, ((root - centres[j]) ** 2).sum(axis=1))
        chance = weight * far
    for _ in range(TURNS):
        near = squares(root, centres).argmin(axis=1)
        mass = np.bincount(near, weight, minlength=len(centres))
        for k in range(root.shape[1]):
            total = np.bincount(near, weight * root[:, k], minlength=len(centres))
            centres[:, k] = np.where(mass > 0, total / np.where(mass > 0, mass, 1), centres[:, k])
    apart = squares(centres, centres)
    apart[np.diag_indices_from(apart)] = np.inf
    nearest = apart.min(axis=1)
    reach = 1.5 * float(np.median(nearest[np.isfinite(nearest)])) if len(centres) > 1 else 1.0
    return centres, max(reach, SHORTEST)


def squares(a: Array, b: Array) -> Array:
    """Return squared distances between the rows of two arrays."""
    far = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1) - 2 * (a @ b.T)
    return np.asarray(np.maximum(far, 0.0))

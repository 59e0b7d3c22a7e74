"""Features and coefficient blocks of the multinomial logistic model of canonical calibration.

The model corrects the log probabilities of a row with scores p = (p_1, ..., p_C):

    log q_k = log p_k + a x_k + curve(p_k) + [k = 1st] t(p_max) + [k = 2nd] u(p_max)     shared by all classes
              + b_k + v_k x_k + sum_j W_kj x_j + curve_k(p_k) + sum_r C_kr phi_r(p)      of each class
              + const.

x are standardized log probabilities. Curves are cosine series in a time variable that runs with the
information p (1 - p). phi_r are Gaussian bumps on sqrt(p). Each block of coefficients has a prior size of its
own, which may be 0. The same blocks are used for the canonical calibration error, its test and the multiclass
calibrators.

See docs/methods/canonical-calibration.md, "Model".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

import numpy as np

from calibrant.inputs import InputError
from calibrant.inputs.codec import FAR_FROM_OVERFLOW, Ascending, Bounds, Real, Shape
from calibrant.parallel import cached_property
from calibrant.score_data import Array
from calibrant.score_data.simplex import Simplex
from calibrant.settings import SOFTMAX

# The numbers up to the limits define the coefficients of saved calibrators, which a change makes unreadable.
# Number of cosines of the shared curve, and of each of the shifts t and u (with the constant).
CURVE, SHIFT = 12, 9
# First and last cosine frequency of the curves of single classes.
CLASS_COSINES = (2, 5)
# With more than FEW classes there are no bumps and no curves of single classes, and W is restricted to
# principal axes; with more than MANY classes there is no W and no shared curve. Both limit the time.
FEW, MANY = 12, 200
# Largest absolute value of the standardized log probabilities: of each class, and for the temperature.
CLASS_LIMIT, TEMPERATURE_LIMIT = 4, 6
# Number of rows that are used to place the bumps, and iterations of k-means (both limit the time).
PLACED_BY, TURNS = 2000, 8
# A score of 0 is replaced by half of the smallest positive score, within these limits (probability).
LEAST = (1e-12, 1e-3)
# Number of interpolation knots of the time variable.
KNOTS = 512
# Smallest standard deviation of log probabilities, and smallest squared bandwidth of a bump.
NARROWEST, SHORTEST = 0.1, 1e-6
# Scores with a relative difference of at most this are ties: they may differ by rounding.
TIED = 1e-11
# Number of principal axes of the matrix block, for many classes.
AXES = 8


class CoefficientBlock(NamedTuple):
    """Coefficients that share a prior size.

    Attributes
    ----------
    name : str
    indices : array
        Indices of the coefficients in the vector of all coefficients.
    frequency : array or None
        Cosine frequency of each coefficient, if the prior variance decreases with it.
    """

    name: str
    indices: Array
    frequency: Array | None = None


class RowFeatures(NamedTuple):
    """Features of a set of rows.

    Attributes
    ----------
    log : array (rows, classes)
        Log probabilities.
    by_class : array (rows, classes, J)
        Features of the score of each class.
    best : array (rows, 2)
        Indices of the two most probable classes.
    top : array (rows, 2, SHIFT)
        Features of the largest score, for the first and for the second class; 0 if several classes tie for
        that place.
    common : array (rows, M)
        Features of the whole score vector.
    """

    log: Array
    by_class: Array
    best: Array
    top: Array
    common: Array


@dataclass(frozen=True, eq=False)
class Blocks:
    """Definition of features and blocks, which depends on the scores alone.

    Attributes
    ----------
    n_classes : int
        Number of classes C.
    least : float
        Replacement for a score of 0.
    centre, scale : arrays (classes,)
        Mean and standard deviation of the log probabilities of each class, weighted by p (1 - p).
    middle, width : float
        The same over all classes.
    variance_time, top_variance_time : arrays (2, knots)
        Knots of the time variable (scores and times), for the score of any class and for the largest score.
    axes : array (classes, axes) or None
        Principal axes of the standardized log probabilities, divided by their standard deviations.
    origin : array (classes,) or None
        Mean of the standardized log probabilities.
    bumps : array (B, classes) or None
        Centres of the bumps on the square roots of the scores.
    bandwidth : float
        Squared bandwidth of the bumps.
    """

    n_classes: Annotated[int, Bounds(2)]
    least: Annotated[float, Bounds(*LEAST)]
    centre: Annotated[Array, FAR_FROM_OVERFLOW]
    scale: Annotated[Array, Bounds(NARROWEST, FAR_FROM_OVERFLOW.high)]
    middle: Real
    width: Annotated[float, Bounds(NARROWEST, FAR_FROM_OVERFLOW.high)]
    variance_time: Annotated[Array, Shape((2, None)), Bounds(0, 1), Ascending()]
    top_variance_time: Annotated[Array, Shape((2, None)), Bounds(0, 1), Ascending()]
    axes: Annotated[Array, Shape((None, None)), FAR_FROM_OVERFLOW] | None
    origin: Annotated[Array, FAR_FROM_OVERFLOW] | None
    bumps: Annotated[Array, Shape((None, None)), Bounds(0, 1)] | None
    bandwidth: Annotated[float, Bounds(SHORTEST, FAR_FROM_OVERFLOW.high)]

    def _check_fields(self) -> None:
        """Raise an error if the fields do not match the number of classes."""
        classes = self.n_classes
        shapes = {"centre": (classes,), "scale": (classes,), "origin": (classes,), "axes": (classes, None)}
        for name, shape in (shapes | {"bumps": (None, classes)}).items():
            if (array := getattr(self, name)) is not None:
                Shape(shape).check(name, array)
        for name, needed in (
            ("bumps", self.has_few_classes),
            ("axes", self.has_axes),
            ("origin", self.has_axes),
        ):
            if (getattr(self, name) is not None) != needed:
                raise InputError(name, f"{'be given' if needed else 'be null'} for {classes} classes")

    @classmethod
    def of(cls, rows: Simplex) -> Blocks:
        """Set time variables, scales and bumps from the scores."""
        p, weight = rows.score, rows.weight
        classes = p.shape[1]
        least = least_of(p)
        subset = slice(0, max(PLACED_BY, (1 << 22) // classes))
        p, weight = p[subset], weight[subset]
        log = np.log(np.maximum(p, least))
        info = p * (1 - p) * weight[:, None]
        total_info = np.maximum(info.sum(axis=0), 1e-300)
        centre = (info * log).sum(axis=0) / total_info
        scale = np.maximum(np.sqrt((info * (log - centre) ** 2).sum(axis=0) / total_info), NARROWEST)
        middle = float((info * log).sum() / total_info.sum())
        width = max(float(np.sqrt((info * (log - middle) ** 2).sum() / total_info.sum())), NARROWEST)
        axes = origin = bumps = None
        bandwidth = 1.0
        if FEW < classes <= MANY:
            x = np.clip((log[:4000] - centre) / scale, -CLASS_LIMIT, CLASS_LIMIT)
            origin = x.mean(axis=0)
            _, _, v = np.linalg.svd(x - origin, full_matrices=False)
            axes = v[:AXES].T
            axes = axes / np.maximum(((x - origin) @ axes).std(axis=0), 1e-9)
        if classes <= FEW:
            count = min(SOFTMAX.most_bumps, max(2, int(rows.n) // SOFTMAX.rows_per_bump))
            bumps, bandwidth = _placed(np.sqrt(p[:PLACED_BY]), weight[:PLACED_BY], count)
        return cls(
            classes, least, centre, scale, middle, width,
            _variance_time(p, weight[:, None]), _variance_time(p.max(axis=1), weight), axes, origin,
            bumps, bandwidth,
        )  # fmt: skip

    def ordered(self, columns: Array) -> tuple[Blocks, Array]:
        """Return the same with the classes in another order, and the previous index of each coefficient."""
        common, previous = self.common[columns], np.arange(self.size)
        if self.has_few_classes:
            across = slice(1, 1 + self.n_classes)
            common[:, across] = common[:, across][:, columns]
        previous[self.common], previous[self.by_class] = common, self.by_class[columns]
        parts = {name: getattr(self, name)[columns] for name in ("centre", "scale")}
        for name in ("axes", "origin"):
            parts[name] = None if getattr(self, name) is None else getattr(self, name)[columns]
        bumps = None if self.bumps is None else self.bumps[:, columns]
        return replace(self, bumps=bumps, **parts), previous

    @property
    def has_few_classes(self) -> bool:
        """Whether there are few enough classes for a full matrix W, curves of single classes and bumps."""
        return self.n_classes <= FEW

    @property
    def has_axes(self) -> bool:
        """Whether the matrix W is restricted to principal axes."""
        return FEW < self.n_classes <= MANY

    @property
    def shared(self) -> int:
        """Number of coefficients that all classes share."""
        return self.shared_by_class + 2 * SHIFT

    @property
    def shared_by_class(self) -> int:
        """Number of shared coefficients of features of each class's score: temperature and shared curve."""
        return 1 + (CURVE if self.n_classes <= MANY else 0)

    @property
    def width_common(self) -> int:
        """Number M of features of the whole score vector."""
        across = self.n_classes if self.has_few_classes else 0 if self.axes is None else self.axes.shape[1]
        return 1 + across + (0 if self.bumps is None else len(self.bumps))

    @property
    def width_by_class(self) -> int:
        """Number of coefficients of each class for features of its own score."""
        return CLASS_COSINES[1] - CLASS_COSINES[0] + 1 if self.has_few_classes else 1

    @property
    def size(self) -> int:
        """Number of coefficients."""
        return self.shared + self.n_classes * (self.width_common + self.width_by_class)

    @cached_property
    def common(self) -> Array:
        """Indices of the coefficients of features of the whole score vector, (classes, M)."""
        shape = self.n_classes, self.width_common
        return self.shared + np.arange(shape[0] * shape[1]).reshape(shape)

    @cached_property
    def by_class(self) -> Array:
        """Indices of the coefficients of each class for features of its own score, (classes, J)."""
        shape = self.n_classes, self.width_by_class
        return self.shared + self.common.size + np.arange(shape[0] * shape[1]).reshape(shape)

    @cached_property
    def blocks(self) -> list[CoefficientBlock]:
        """All blocks."""
        k = self.n_classes
        shift = np.maximum(np.arange(SHIFT), 0.5)
        blocks = [
            CoefficientBlock("temperature", np.arange(1)),
            CoefficientBlock("first", self.shared_by_class + np.arange(SHIFT), shift),
            CoefficientBlock("second", self.shared_by_class + SHIFT + np.arange(SHIFT), shift),
            CoefficientBlock("bias", self.common[:, 0]),
        ]
        if self.shared_by_class > 1:
            blocks.insert(1, CoefficientBlock("curve", 1 + np.arange(CURVE), np.arange(1.0, CURVE + 1)))
        if self.has_few_classes:
            across = self.common[:, 1 : 1 + k]
            blocks.append(CoefficientBlock("slope", np.diagonal(across).copy()))
            blocks.append(CoefficientBlock("matrix", across[~np.eye(k, dtype=bool)]))
            cosine_frequency = np.tile(np.arange(CLASS_COSINES[0], CLASS_COSINES[1] + 1.0), k)
            blocks.append(CoefficientBlock("own curve", self.by_class.ravel(), cosine_frequency))
            blocks.append(CoefficientBlock("bumps", self.common[:, 1 + k :].ravel()))
        else:
            blocks.append(CoefficientBlock("slope", self.by_class[:, 0]))
            if self.axes is not None:
                blocks.append(CoefficientBlock("matrix", self.common[:, 1:].ravel()))
        return blocks

    def columns(self, p: Array) -> RowFeatures:
        """Return the features of rows with scores p, (rows, classes)."""
        n = len(p)
        log = np.log(np.maximum(p, self.least))
        x = np.clip((log - self.centre) / self.scale, -CLASS_LIMIT, CLASS_LIMIT)
        tempered = np.clip((log - self.middle) / self.width, -TEMPERATURE_LIMIT, TEMPERATURE_LIMIT)
        by_class = [tempered[..., None]]
        if self.shared_by_class > 1:
            by_class.append(_cosines(_time(p, self.variance_time), CURVE))
        if not self.has_few_classes:
            by_class.append(x[..., None])
        best, untied = _two_largest(p)
        top = np.ones((n, 2, SHIFT))
        top[:, :, 1:] = _cosines(_time(p.max(axis=1), self.top_variance_time), SHIFT - 1)[:, None]
        top[~untied] = 0.0
        common = [np.ones((n, 1))]
        if self.has_few_classes:
            common.append(x)
        elif self.axes is not None:
            common.append((x - np.asarray(self.origin)) @ self.axes)
        if self.bumps is not None:
            common.append(np.exp(-0.5 * squares(np.sqrt(p), self.bumps) / self.bandwidth))
        return RowFeatures(log, np.concatenate(by_class, axis=2), best, top, np.concatenate(common, axis=1))

    def by_class_slice(self) -> slice:
        """Return which features of a class's score have coefficients of single classes too."""
        return (
            slice(CLASS_COSINES[0], CLASS_COSINES[1] + 1)
            if self.has_few_classes
            else slice(self.shared_by_class, self.shared_by_class + 1)
        )

    def logits(self, at: RowFeatures, theta: Array) -> Array:
        """Return the log probabilities of rows, (rows, classes), up to a constant, at coefficients theta."""
        class_coefficients = np.zeros((self.n_classes, at.by_class.shape[2]))
        class_coefficients[:, : self.shared_by_class] = theta[: self.shared_by_class]
        class_coefficients[:, self.by_class_slice()] += theta[self.by_class]
        z = (
            at.log
            + np.einsum("nkj,kj->nk", at.by_class, class_coefficients)
            + at.common @ theta[self.common].T
        )
        first = self.shared_by_class
        for r in range(2):
            shift = at.top[:, r] @ theta[first + r * SHIFT : first + (r + 1) * SHIFT]
            z[np.arange(len(z)), at.best[:, r]] += shift
        return np.asarray(z)


def least_of(p: Array, within: tuple[float, float] = LEAST) -> float:
    """Return the replacement for scores of 0: half of the smallest positive score, within limits.

    >>> least_of(np.array([[0.0, 1.0], [0.2, 0.8]]), (0.0, 1.0))
    0.1
    """
    return float(np.clip(0.5 * np.min(p, where=p > 0, initial=1.0), *within))


def _two_largest(p: Array) -> tuple[Array, Array]:
    """Return the classes of the two largest scores, (rows, 2), and whether each is without ties.

    >>> best, alone = _two_largest(np.array([[0.2, 0.7, 0.1], [0.6, 0.2, 0.2]]))
    >>> best[0], alone
    (array([1, 0]), array([[ True,  True],
           [ True, False]]))
    """
    best = np.argpartition(-p, min(2, p.shape[1] - 1), axis=1)[:, :3]
    order = np.argsort(-np.take_along_axis(p, best, axis=1), axis=1)
    best = np.take_along_axis(best, order, axis=1)
    largest = np.take_along_axis(p, best, axis=1)
    separated = largest[:, 1:] < largest[:, :-1] * (1 - TIED)
    # A tie for the first place is one for the second as well.
    return best[:, :2], np.stack([separated[:, 0], separated.all(axis=1)], axis=1)


def _cosines(time: Array, count: int) -> Array:
    """Return sqrt(2) cos(pi k time) for k = 1, ..., count on a new last axis, by recurrence."""
    out = np.empty((*time.shape, count))
    first = np.cos(np.pi * time)
    before, now = np.sqrt(2.0) * np.ones(time.shape), np.sqrt(2.0) * first
    for j in range(count):
        out[..., j] = now
        before, now = now, 2 * first * now - before
    return out


def _variance_time(p: Array, weight: Array) -> Array:
    """Return knots (scores, times) of a time from 0 to 1 that runs with the information p (1 - p)."""
    order = np.argsort(p, axis=None, kind="stable")
    x, row_weight = p.ravel()[order], np.broadcast_to(weight, p.shape).ravel()[order]
    cumulative_sums = np.cumsum(row_weight * (x * (1 - x) + 1e-9))
    cumulative_sums /= cumulative_sums[-1]
    knots = np.unique(np.searchsorted(cumulative_sums, np.linspace(0, 1, KNOTS)).clip(0, x.size - 1))
    # Tied scores get the same time, that of the last one.
    knots = np.unique(np.searchsorted(x, x[knots] * (1 + TIED), side="right") - 1)
    return np.stack([x[knots], cumulative_sums[knots]])


def _time(p: Array, knots: Array) -> Array:
    """Return the time of scores; clipped, as interpolation between nearly equal scores may overflow."""
    return np.asarray(np.clip(np.interp(p, *knots), 0.0, 1.0))


def _placed(root: Array, weight: Array, count: int) -> tuple[Array, float]:
    """Return centres of bumps among square roots of scores, by weighted k-means, and the bandwidth."""
    rng = np.random.default_rng(0)
    centres = np.empty((count, root.shape[1]))
    distance = np.full(len(root), np.inf)
    sampling_weight = weight
    for j in range(count):
        total = np.cumsum(sampling_weight)
        if not total[-1] > 0:
            centres = centres[:j]
            break
        centres[j] = root[
            min(int(np.searchsorted(total, rng.random() * total[-1], side="right")), len(root) - 1)
        ]
        distance = np.minimum(distance, ((root - centres[j]) ** 2).sum(axis=1))
        sampling_weight = weight * distance
    for _ in range(TURNS):
        assigned = squares(root, centres).argmin(axis=1)
        mass = np.bincount(assigned, weight, minlength=len(centres))
        for k in range(root.shape[1]):
            total = np.bincount(assigned, weight * root[:, k], minlength=len(centres))
            centres[:, k] = np.where(mass > 0, total / np.where(mass > 0, mass, 1), centres[:, k])
    distances = squares(centres, centres)
    distances[np.diag_indices_from(distances)] = np.inf
    nearest = distances.min(axis=1)
    bandwidth = (
        SOFTMAX.bump_width * float(np.median(nearest[np.isfinite(nearest)])) if len(centres) > 1 else 1.0
    )
    return centres, max(bandwidth, SHORTEST)


def squares(a: Array, b: Array) -> Array:
    """Return squared Euclidean distances between the rows of two arrays."""
    distance = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1) - 2 * (a @ b.T)
    return np.asarray(np.maximum(distance, 0.0))

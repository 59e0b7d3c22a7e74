"""The error on the simplex: what the posterior expects, set right by rows that were held out.

With eta(s) the frequencies of the classes where the scores are s, the errors are l1 = E sum_k |eta_k - s_k|,
l2 = the root of E sum_k (eta_k - s_k)^2, and the paper's mul = E sum_k eta_k |eta_k - s_k|.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from calibrant.compiled.cached import cached_property
from calibrant.posterior.process import softmax
from calibrant.posterior.softmax.fit import SoftmaxPosterior
from calibrant.posterior.softmax.local import Local
from calibrant.score_data import Array
from calibrant.score_data.simplex import Simplex

NORMS = ("l1", "l2", "mul")
# The largest errors (the square, for l2) that there can be.
MOST = {"l1": 2.0, "l2": 2.0, "mul": 1.0}
# Draws of sizes and of coefficients given each, scores that they are looked at, and folds.
OF_SIZES, OF_EACH, ENTRIES, FOLDS = 8, 12, 50_000, 10
# Scores compared at once.
CHUNK = 1 << 20
# How much wider an interval is than the larger of its two standard errors says.
WIDER = 1.25
# A gap below this is rounding.
NONE = 1e-9


class Beyond(NamedTuple):
    """How far above both forms of an error it may lie: by multiples of their reach, and of how they differ.

    What the blocks cannot fit is missing from both, and the more they differ the less the blocks fit.
    """

    wider: float
    apart: float


OF_GAPS, OF_SQUARES = Beyond(WIDER, 1.0), Beyond(1.5, 1.5)
# The same for what neighbours tell: by this share of what they expect and predictions do not show.
UNTOLD = 0.5


class Part(NamedTuple):
    """One of the errors (the square, for l2) in its two forms.

    Attributes
    ----------
    expected, spread : float
        Mean and standard deviation over posterior draws.
    left, left_error : float
        What held-out rows say beyond their own prediction, and its standard error.
    held_out, held_out_error : float
        Error of held-out predictions, set right by their rows, and its standard error.
    """

    expected: float
    spread: float
    left: float
    left_error: float
    held_out: float
    held_out_error: float

    @property
    def kept(self) -> float:
        """As much of `left` as is not noise."""
        return max(0.0, 1 - self.left_error**2 / max(self.left**2, 1e-300)) * self.left

    @property
    def corrected(self) -> float:
        """The expectation, set right by the rows held out."""
        return self.expected + self.kept

    @property
    def value(self) -> float:
        """The error, if there is a gap."""
        return (self.corrected + self.held_out) / 2

    def ends(self, z: float, chance: float, beyond: Beyond) -> tuple[float, float]:
        """Return the ends of an interval of z standard errors, at some chance of a gap."""
        if chance <= 0.5:
            # What one may have missed is as large as the posterior of a gap allows.
            return 0.0, self.expected + WIDER * z * self.spread
        forms = self.corrected, self.held_out
        reach, apart = z * max(self.held_out_error, self.spread), abs(forms[0] - forms[1])
        low = min(forms) - WIDER * reach
        high = max(forms) + beyond.wider * reach + beyond.apart * apart
        return max(low, 0.0), max(high, 0.0)


class LocalPart(NamedTuple):
    """One of the errors (the square, for l2) where neighbours tell more than the blocks.

    Attributes
    ----------
    near, nearer : float
        Expected at the bandwidth that predicts best, which is too sure, and at the next, which is not sure
        enough.
    held_out, held_out_error : float
        Error of held-out predictions, set right by their rows, and its standard error.
    """

    near: float
    nearer: float
    held_out: float
    held_out_error: float

    @property
    def expected(self) -> float:
        """The error, between the two."""
        return (self.near + self.nearer) / 2

    @property
    def value(self) -> float:
        """The error."""
        return self.expected

    def ends(self, z: float, chance: float, beyond: Beyond) -> tuple[float, float]:
        """Return the ends of an interval of z standard errors.

        Below is what rows confirm, whatever the frequencies look like in between; above what no prediction
        tells may be more than is expected.
        """
        reach = WIDER * z * self.held_out_error
        low, high = min(self.held_out, self.near), max(self.near, self.nearer)
        return max(low - reach, 0.0), max(high + reach + UNTOLD * (high - low), 0.0)


@dataclass(frozen=True, eq=False)
class CanonicalError:
    """The errors on the simplex of some rows.

    Attributes
    ----------
    posterior : SoftmaxPosterior
    held_out : array (rows, classes)
        Probabilities of each row by what the others taught.
    parts : dict from norm to Part or LocalPart
    by_class : list of Part or LocalPart
        E |eta_k - s_k| of each class, in its two forms.
    over : array (classes,)
        Share of each class's error by scores that are too high.
    added : dict from norm to array (rows,)
        What each row adds to the error of held-out predictions.
    local : Local or None
        What neighbours tell, where it is more than the blocks do.
    """

    posterior: SoftmaxPosterior
    held_out: Array
    parts: Mapping[str, Part | LocalPart]
    by_class: Sequence[Part | LocalPart]
    over: Array
    added: dict[str, Array]
    local: Local | None = None

    @classmethod
    def of(cls, posterior: SoftmaxPosterior) -> CanonicalError:
        """Read the errors off a posterior."""
        rows = posterior.likelihood.rows
        n, classes = rows.score.shape
        x = posterior.held_out(rows.folds(FOLDS))
        compared = _compared(rows, x)
        local = Local.of(rows, x, FOLDS)
        if local is not None:
            return cls._of_neighbours(posterior, x, compared, local)
        looked_at = min(n, max(1000, ENTRIES // classes))
        theta = posterior.draws(np.random.default_rng(0), OF_SIZES, OF_EACH)
        drawn, drawn_by_class = _drawn(posterior, theta, looked_at)
        parts, added = {}, {}
        for j, norm in enumerate(NORMS):
            plug, left = compared.plug[j], compared.left[j]
            # The rows looked at may differ from all rows; held-out predictions tell by how much.
            shift = rows.mean(plug)[0] - rows[:looked_at].mean(plug[:looked_at])[0]
            added[norm] = plug + left
            expected, spread = float(drawn[:, j].mean()), float(drawn[:, j].std())
            parts[norm] = Part(max(expected + shift, 0.0), spread, *rows.mean(left), *rows.mean(added[norm]))
        by_class = [
            Part(float(own.mean()), float(own.std()), left, error, plug + left, error)
            for own, plug, left, error in zip(drawn_by_class.T, *compared.by_class, strict=True)
        ]
        return cls(posterior, x, parts, by_class, compared.over, added)

    @classmethod
    def _of_neighbours(
        cls, posterior: SoftmaxPosterior, x: Array, before: Compared, local: Local
    ) -> CanonicalError:
        """Read the errors off what neighbours tell beyond held-out predictions x."""
        rows, count = posterior.likelihood.rows, len(local.near.worth)
        some = rows[:count]
        now = _compared(some, local.near.mean)
        (near, near_own), (nearer, nearer_own) = (
            each.errors(some.score) for each in (local.near, local.nearer)
        )
        parts, added = {}, {}
        for j, norm in enumerate(NORMS):
            # The rows looked at may differ from all rows; predictions tell by how much.
            shift = rows.mean(before.plug[j])[0] - some.mean(before.plug[j][:count])[0]
            each = before.plug[j] + before.left[j]
            each[:count] += (now.plug[j] + now.left[j] - each[:count]) * (rows.n / some.n)
            added[norm] = each
            sure, unsure = (max(some.mean(form[j])[0] + shift, 0.0) for form in (near, nearer))
            parts[norm] = LocalPart(sure, unsure, *rows.mean(each))
        by_class = [
            LocalPart(one, other, plug + left, error)
            for one, other, plug, left, error in zip(
                some.weight @ near_own / some.n, some.weight @ nearer_own / some.n, *now.by_class, strict=True
            )
        ]
        held_out = np.concatenate([local.near.mean, x[count:]])
        return cls(posterior, held_out, parts, by_class, now.over, added, local)

    @property
    def chance(self) -> float:
        """Posterior probability that there is a gap; 1 where neighbours show one."""
        return self.posterior.chance if self.local is None else 1.0

    def value(self, norm: str) -> float:
        """Return the error."""
        found = min(self._middle(self.parts[norm]), MOST[norm])
        return float(np.sqrt(found)) if norm == "l2" else found

    def _middle(self, part: Part | LocalPart) -> float:
        return self.chance * max(part.value, 0.0)

    @cached_property
    def class_values(self) -> Array:
        """E |eta_k - s_k| of each class; they add up to l1."""
        each = np.array([self._middle(part) for part in self.by_class])
        total = each.sum()
        return np.minimum(each * (self.value("l1") / total), 1.0) if total > 0 else each

    def class_interval(self, k: int, level: float) -> tuple[float, float]:
        """Return the ends of an interval of the error of one class."""
        low, high = self._ends(self.by_class[k], level)
        value = float(self.class_values[k])
        return min(low, value), max(min(high, 1.0), value)

    def interval(self, norm: str, level: float) -> tuple[float, float]:
        """Return the ends of an interval of the error."""
        squared = norm == "l2"
        low, high = self._ends(self.parts[norm], level, OF_SQUARES if squared else OF_GAPS)
        high = min(high, MOST[norm])
        if squared:
            low, high = float(np.sqrt(low)), float(np.sqrt(high))
        value = self.value(norm)
        return min(low, value), max(high, value)

    def _ends(self, part: Part | LocalPart, level: float, beyond: Beyond = OF_GAPS) -> tuple[float, float]:
        """Return the ends of an interval of an error that is not negative."""
        return part.ends(NormalDist().inv_cdf((1 + level) / 2), self.chance, beyond)


def _drawn(posterior: SoftmaxPosterior, theta: Array, looked_at: int) -> tuple[Array, Array]:
    """Return the errors of each draw over some rows (draws, 3), and those of the classes (draws, classes)."""
    rows = posterior.likelihood.rows
    total, by_class, seen = np.zeros((len(theta), 3)), np.zeros((len(theta), rows.n_classes)), 0.0
    for part, at in posterior.likelihood.chunks(slice(0, looked_at)):
        p, weight = rows.score[part], rows.weight[part]
        seen += float(weight.sum())
        for j, each in enumerate(theta):
            if each.any():
                q = softmax(posterior.blocks.logits(at, each))
                d = np.abs(q - p)
                own = weight @ d
                by_class[j] += own
                square, mul = (weight @ np.einsum("ik,ik->i", d, other) for other in (d, q))
                total[j] += own.sum(), square, mul
    return total / seen, by_class / seen


class Compared(NamedTuple):
    """Scores, held-out predictions and labels, compared.

    Attributes
    ----------
    plug, left : arrays (3, rows)
        The errors of predictions, and what the labels say beyond them: the slopes of the errors at the
        predictions, times what was observed less what was predicted.
    by_class : tuple of arrays (classes,)
        For l1 their means by class, and the standard error of their sum.
    over : array (classes,)
        Share of each class's error where the scores are above the predictions.
    """

    plug: Array
    left: Array
    by_class: tuple[Array, Array, Array]
    over: Array


def _compared(rows: Simplex, x: Array) -> Compared:
    n, classes = x.shape
    plug, left = np.empty((3, n)), np.empty((3, n))
    sums = np.zeros((4, classes))
    step = max(1, CHUNK // classes)
    for a in range(0, n, step):
        part = slice(a, min(a + step, n))
        q, code, weight = x[part], rows.code[part], rows.weight[part]
        i = np.arange(len(q))
        d = q - rows.score[part]
        size = np.abs(d)
        sign = np.sign(d) * (size > NONE)
        plug[:, part] = size.sum(axis=1), np.einsum("ik,ik->i", d, d), np.einsum("ik,ik->i", q, size)
        for j, slope in enumerate((sign, 2 * d, size + q * sign)):
            left[j, part] = slope[i, code] - np.einsum("ik,ik->i", slope, q)
        beyond = -sign * q
        beyond[i, code] += sign[i, code]
        whole = size + beyond
        sums += (
            weight @ size,
            weight @ beyond,
            rows.square[part] @ (whole * whole),
            weight @ np.maximum(-d, 0),
        )
    mean, beyond, square, over = sums / rows.n
    variance = np.maximum(square - (mean + beyond) ** 2 * rows.square.sum() / rows.n, 0.0) / rows.n
    share = np.divide(over, mean, out=np.full(classes, 0.5), where=mean > 0)
    return Compared(plug, left, (mean, beyond, np.sqrt(variance)), share)

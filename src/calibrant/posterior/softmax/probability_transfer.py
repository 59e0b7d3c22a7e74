"""Where the gap lies: which classes take probability from which, and at which predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypeAlias

import numpy as np

from calibrant.inputs import ROUNDING, InputError
from calibrant.inputs.codec import UNIT, Bounds, Shape, check_lengths
from calibrant.posterior.process import softmax
from calibrant.posterior.softmax.blocks import FEW
from calibrant.posterior.softmax.error import NONE, CanonicalError
from calibrant.posterior.softmax.fit import SoftmaxPosterior
from calibrant.score_data import Array
from calibrant.score_data.simplex import Simplex

# Draws of sizes and of coefficients given each, and rows that they are looked at.
OF_SIZES, OF_EACH, ROWS = 8, 6, 4000
# Pairs of classes of rows that are looked at together, and how much wider than by their noise alone what
# they say spreads, since predictions miss.
CHUNK, WIDER = 1 << 20, 1.3

Square: TypeAlias = Annotated[Array, Shape((None, None))]


@dataclass(frozen=True, eq=False)
class ProbabilityTransfer:
    """Where on the simplex scores and frequencies differ, by posterior draws and by rows held out.

    Attributes
    ----------
    taken, spread : arrays (classes, classes)
        Net probability that the class of the row takes from the class of the column, per row of data, and
        its standard deviation: scores of the first are too high where those of the second are
        too low.
    share, gap, gap_spread : arrays (classes,)
        Of the rows that each class is predicted for: their share, the mean of sum_k |eta_k - s_k| and its
        standard deviation.
    """

    taken: Annotated[Square, Bounds(-1, 1, slack=ROUNDING)]
    spread: Annotated[Square, UNIT]
    share: Annotated[Array, UNIT]
    gap: Annotated[Array, Bounds(0, 2, slack=ROUNDING)]
    gap_spread: Annotated[Array, Bounds(0, 2, slack=ROUNDING)]

    def check_fields(self) -> None:
        """Refuse arrays that are not of as many classes, and shares that do not add up to 1."""
        classes = len(self.share)
        for name in ("taken", "spread"):
            Shape((classes, classes)).check(name, getattr(self, name))
        check_lengths(self, classes, "gap", "gap_spread")
        if np.any(np.abs(self.taken + self.taken.T) > ROUNDING):
            raise InputError("taken", "say of each pair of classes what one takes and one gives")
        # Scores are rounded.
        if abs((total := float(self.share.sum())) - 1) > 0.05:
            raise InputError("share", "add up to 1", total)

    @classmethod
    def of(cls, error: CanonicalError) -> ProbabilityTransfer | None:
        """Look at draws; None of so many classes that a pair of them cannot be told from others."""
        posterior, rows = error.posterior, error.posterior.likelihood.rows
        k = rows.n_classes
        if k > FEW:
            return None
        some = slice(0, min(ROWS, len(rows.code)))
        p, weight = rows.score[some], rows.weight[some] / rows.weight[some].sum()
        first = p.argmax(axis=1)
        share = np.bincount(first, weight, minlength=k)
        held_out, noise = _by_prediction(rows, error.added["l1"])
        if error.local is None:
            gap = _drawn(posterior, p, weight) / np.where(share > 0, share, 1)
            # The posterior counts its doubts as gap, and predictions miss some of it: the truth lies between.
            expected = np.maximum((gap.mean(axis=0) + held_out) / 2, 0.0)
            deviation = WIDER * np.maximum(gap.std(axis=0), noise) + np.abs(gap.mean(axis=0) - held_out) / 4
        else:
            asked = rows[: len(error.local.near.worth)]
            gap = np.array([
                _by_prediction(asked, around.errors(asked.score)[0][0])[0]
                for around in (error.local.near, error.local.nearer)
            ])  # fmt: skip
            expected = gap.mean(axis=0)
            deviation = WIDER * noise + np.abs(expected - held_out) / 4
        chance = error.chance
        taken, apart = _taken(rows, error.held_out)
        return cls(
            np.clip(chance * taken, -1, 1), np.minimum(_spread(taken, apart, chance), 1), share,
            np.minimum(chance * expected, 2), np.minimum(_spread(expected, deviation, chance), 2),
        )  # fmt: skip

    def ordered(self, columns: Array) -> ProbabilityTransfer:
        """Return the same with the classes in another order: that of these columns."""
        both = np.ix_(columns, columns)
        return ProbabilityTransfer(
            self.taken[both], self.spread[both],
            self.share[columns], self.gap[columns], self.gap_spread[columns],
        )  # fmt: skip


def _drawn(posterior: SoftmaxPosterior, p: Array, weight: Array) -> Array:
    """Return what the rows that each class is predicted for add to the error of each draw."""
    at, first, k = posterior.blocks.columns(p), p.argmax(axis=1), p.shape[1]
    theta = posterior.draws(np.random.default_rng(1), OF_SIZES, OF_EACH)
    gap = np.zeros((len(theta), k))
    for j, each in enumerate(theta):
        q = softmax(posterior.blocks.logits(at, each)) if each.any() else p
        gap[j] = np.bincount(first, weight * np.abs(q - p).sum(axis=1), minlength=k)
    return gap


def _taken(rows: Simplex, x: Array) -> tuple[Array, Array]:
    """Return what the class of the row takes from that of the column in net, and its standard error.

    What a row's scores lose and win by predictions x, made without it, is shared between its classes in
    proportion. Where a class has no gap, the predictions' noise would still be shared out: the slope of the
    shares at the predictions, times what was observed less what was predicted, sets that right.
    """
    k = rows.n_classes
    total, first, second = np.zeros((3, k, k))
    step = max(1, CHUNK // (k * k))
    for a in range(0, len(rows.code), step):
        part = slice(a, a + step)
        q, p = x[part], rows.score[part]
        d = q - p
        left = -q
        left[np.arange(len(q)), rows.code[part]] += 1
        lost, won = np.maximum(-d, 0.0), np.maximum(d, 0.0)
        size = np.abs(d).sum(axis=1) / 2
        per = np.divide(1.0, size, out=np.zeros(len(q)), where=size > NONE)
        grown = np.einsum("ik,ik->i", np.sign(d), left) / 2 * per
        moved = np.einsum("ij,ik,i->ijk", lost, won, per * (1 - grown))
        moved += np.einsum("ij,ik,i->ijk", -left * (d < 0), won, per)
        moved += np.einsum("ij,ik,i->ijk", lost, left * (d > 0), per)
        moved -= moved.transpose(0, 2, 1)
        total += np.einsum("ijk,i->jk", moved, rows.weight[part])
        first += np.einsum("ijk,i->jk", moved, rows.square[part])
        second += np.einsum("ijk,ijk,i->jk", moved, moved, rows.square[part])
    mean = total / rows.n
    square = second - 2 * mean * first + mean * mean * rows.square.sum()
    # Rows that all say the same leave at least the doubt of half a row.
    least = 0.25 * rows.square.sum() / rows.n
    return mean, WIDER * np.sqrt(np.maximum(square, least)) / rows.n


def _by_prediction(rows: Simplex, each: Array) -> tuple[Array, Array]:
    """Return the mean of something over the rows that each class is predicted for, and its standard error."""
    first, k = rows.score.argmax(axis=1), rows.n_classes
    mass = np.bincount(first, rows.weight, minlength=k)
    mass[mass == 0] = 1.0
    mean = np.bincount(first, rows.weight * each, minlength=k) / mass
    square = np.bincount(first, rows.square * (each - mean[first]) ** 2, minlength=k)
    return mean, np.sqrt(square) / mass


def _spread(mean: Array, deviation: Array, chance: float) -> Array:
    """Return the standard deviation of something that is 0 unless there is a gap."""
    square = chance * (mean * mean + deviation * deviation) - (chance * mean) ** 2
    return np.asarray(np.sqrt(np.maximum(square, 0.0)))

"""What the data say about the calibration gap: an average over shapes, weighed by their evidence.

A model may have no gap at all; a smooth one over all scores (`process`); one that lives in stretches
of the scores (`tree`); and, where scores are few, one of its own at each (`values`). All of them see
the same data with unit noise over cells of equal variance (`clock`), so their likelihoods compare, and
number, curve and interval come from one posterior.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from calibrant.compiled.cached import cached_property
from calibrant.evidence import Array, Residuals
from calibrant.posterior.clock import halfway, look, n_cells, units
from calibrant.posterior.looks import Look, look_at
from calibrant.posterior.process import Process, evidence_of, softmax
from calibrant.posterior.tree import Tree, log_add, positive
from calibrant.posterior.values import EachValue, Few
from calibrant.questions import Question

# Prior of no gap, and that where scores are few: their gaps are hard to tell from noise, and none is read
# from them too easily. Of the others the shares of those that live in stretches; of those of each score by
# itself where scores are few, and where some stand out; and of the classes of a model to go their own ways.
CALIBRATED, FEW_CALIBRATED = 0.13, 0.03
STRETCHES, BY_VALUE, STANDING_OUT, APART = 0.16, 0.85, 0.2, 0.2
# A smooth gap counts this much of what its uncertainty adds to the gap of the posterior mean: a process
# that must follow one jump is uncertain everywhere.
UNCERTAIN = 0.75
# Numbers in the largest table of distinct scores, cells and problems.
TOGETHER = 1 << 22


class Points(NamedTuple):
    """Where a posterior is known: cells of equal variance, or the distinct scores where they are few.

    Attributes
    ----------
    score, mass, rows : arrays
        Mean score, share of the rows, and their effective number.
    gap, sd : arrays
        Posterior mean of frequency minus score, and its standard deviation.
    """

    score: Array
    mass: Array
    rows: Array
    gap: Array
    sd: Array


class Terms(NamedTuple):
    """What adds up over the classes of a model: log likelihoods against no gap, and expected errors.

    Attributes
    ----------
    shape, offset : arrays (..., components)
        Of the process.
    alone : array
        Of the problem by itself, with any gap or none.
    smooth, own : arrays
        Expected error (its square for `l2`) under the process, and on average over all shapes and none.
    """

    shape: Array
    offset: Array
    alone: Array
    smooth: Array
    own: Array


@dataclass(frozen=True, eq=False)
class Posterior:
    """The posterior of a flat batch of problems.

    A frame is what scores say; each is that of one problem, or of as many as the others in turn.

    Attributes
    ----------
    z : array (problems, cells)
        Cosine coefficients of the unit-noise data.
    scale : array (frames,)
        What a unit is worth, as a share of all rows.
    mass, score : arrays (frames, cells)
        Share of the rows and mean score of each cell.
    n : array (frames,)
        Effective number of rows.
    few : Few or None
        The distinct scores of problems with few of them.
    at_values : array (problems, values) or None
        Their unit-noise data.
    apart : int or None
        Problems of each frame, the last ones, that may go their own ways: the sides over all shapes of others
        are not asked for, and need not be right. None for all.
    """

    z: Array
    scale: Array
    mass: Array
    score: Array
    n: Array
    few: Few | None = None
    at_values: Array | None = None
    apart: int | None = None

    @classmethod
    def of_residuals(cls, flat: Residuals, cells: int, plain: bool = False) -> Posterior:
        """Return the posterior of residuals in score order.

        With `plain` outcomes have the variance that the scores say, as under calibration.
        """
        variance = halfway(flat) if plain else halfway(flat, look(flat))
        few = Few.of(flat, variance, cells)
        return cls(*units(flat, variance, cells), flat.n, *(few or (None, None)))

    def again(self, z: Array, at_values: Array | None = None, apart: int | None = None) -> Posterior:
        """Return posteriors of other data, (sets, cells), on these scores: as many for each problem in turn.

        Data at distinct scores come with them.
        """
        few = self.few if at_values is not None else None
        return replace(self, z=z.astype(np.float64, copy=False), few=few, at_values=at_values, apart=apart)

    @classmethod
    def joined(cls, batches: Sequence[Posterior]) -> Posterior:
        """Return several batches as one; each has frames of its own."""
        if len(batches) == 1:
            return batches[0]
        arrays = [
            np.concatenate([getattr(batch, name) for batch in batches])
            for name in ("z", "scale", "mass", "score", "n")
        ]
        z, scale, mass, score, n = arrays
        return cls(z, scale, mass, score, n, *_joined_few(batches))

    def coarser(self, cells: int) -> Posterior:
        """Return the posterior of the same data over no more than so many cells: neighbours are joined."""
        from scipy.fft import dct, idct

        problems, fine = self.z.shape
        if fine <= cells or fine % cells:
            return self
        shape, times = (problems, cells, fine // cells), np.sqrt(fine / cells)
        sums = idct(self.z, norm="ortho").reshape(shape).sum(axis=-1) / times
        mass = self.mass.reshape(shape).sum(axis=-1)
        scored = (self.mass * self.score).reshape(shape).sum(axis=-1)
        score = np.divide(scored, mass, out=np.zeros(mass.shape), where=mass > 0)
        few = self.few
        if few is not None:
            joined = (
                array.reshape(*shape, array.shape[-1]).sum(axis=2) for array in (few.overlap, few.inside)
            )
            overlap, inside = joined
            few = replace(few, overlap=overlap, inside=inside * (cells / fine))
        return Posterior(
            dct(sums, norm="ortho"), self.scale * times, mass, score, self.n, few, self.at_values
        )

    def __getitem__(self, some: slice | Array) -> Posterior:
        """Return some of the problems."""
        values = None if self.at_values is None else self.at_values[some]
        few = None if self.few is None else self.few[some]
        arrays = [getattr(self, name)[some] for name in ("z", "scale", "mass", "score", "n")]
        z, scale, mass, score, n = arrays
        part = Posterior(z, scale, mass, score, n, few, values)
        # What is known of all is known of some.
        for name in ("logs", "weight", "some", "_mixed", "_moments", "smooth_sides", "own_sides"):
            if name in self.__dict__ and len(scale) == len(z):
                part.__dict__[name] = _some_of(self.__dict__[name], some)
        return part

    @cached_property
    def _unit(self) -> Array:
        """The scale of each problem, or of all."""
        return self._of_each(self.scale)

    def _of_each(self, frames: Array) -> Array:
        """Return for each problem what is its frame's; what is the same for all stays as it is."""
        return (
            frames if len(frames) in (1, len(self.z)) else frames.repeat(len(self.z) // len(frames), axis=0)
        )

    @cached_property
    def process(self) -> Process:
        """The gap as a process."""
        return Process.of(self.z, 1 / (self._unit**2 * self.z.shape[-1]))

    @property
    def _evidence(self) -> Look | None:
        """What compiled loops say about process and tree, perhaps without the sides."""
        return self._looked if "_looked" in self.__dict__ else self._looked_once

    @cached_property
    def _looked_once(self) -> Look | None:
        return self._look(sides=False)

    @cached_property
    def _looked(self) -> Look | None:
        """What compiled loops say about process and tree; None where there are none."""
        return self._look(sides=True)

    def _look(self, sides: bool) -> Look | None:
        precision = 1 / (self.scale**2 * self.z.shape[-1])
        return look_at(self.z, self.mass / self.scale[:, None], precision, UNCERTAIN, sides, self.apart)

    @property
    def evidence_of_process(self) -> Array:
        """Log of the Bayes factor of a smooth gap against none."""
        look = self._evidence
        return self.process.evidence if look is None else look.process

    @cached_property
    def tree(self) -> Tree:
        """The gap in stretches."""
        from scipy.fft import idct

        return Tree(idct(self.z, norm="ortho"), self._of_each(self.mass / self.scale[:, None]))

    @cached_property
    def values(self) -> EachValue | None:
        """The gap at each distinct score."""
        if self.few is None or self.at_values is None:
            return None
        return EachValue(self.few.repeated(len(self.z) // len(self.few.share)), self.at_values)

    @cached_property
    def logs(self) -> Array:
        """Log of prior times likelihood, against that of no gap: of none, process, tree and values."""
        look = self._evidence
        evidence = (self.process.evidence, self.tree.evidence) if look is None else (look.process, look.tree)
        logs = [np.zeros(len(self.z)), *evidence]
        prior = np.array([CALIBRATED, (1 - CALIBRATED) * (1 - STRETCHES), (1 - CALIBRATED) * STRETCHES, 0.0])
        if self.values is None:
            return np.stack(logs, axis=-1) + np.log(prior[:3])
        logs.append(self.values.evidence)
        few = self.values.few
        values = np.where(few.any, np.where(few.whole, BY_VALUE, STANDING_OUT), 0.0)[:, None]
        none = np.where(few.whole, FEW_CALIBRATED, CALIBRATED)[:, None]
        shares = [none, (1 - none) * (1 - values) * (prior[1:3] / (1 - CALIBRATED)), (1 - none) * values]
        with np.errstate(divide="ignore"):
            prior = np.log(np.concatenate(shares, axis=-1))
        return np.where(np.isneginf(prior), -np.inf, np.stack(logs, axis=-1)) + prior

    @cached_property
    def weight(self) -> Array:
        """Chance of none, process, tree and values, of each problem by itself."""
        return softmax(self.logs)

    @cached_property
    def some(self) -> Array:
        """Log of the Bayes factor for some gap against none, of each problem by itself."""
        return _log_sum(self.logs[:, 1:]) - np.log1p(-np.exp(self._none))

    @property
    def local(self) -> Array:
        """Log of prior times likelihood of all gaps but smooth ones, against that of no gap."""
        return _log_sum(self.logs[:, 2:])

    @property
    def _none(self) -> Array:
        """Log prior of no gap."""
        return self.logs[:, 0]

    @cached_property
    def smooth_sides(self) -> tuple[Array, Array]:
        """Expected gap on each side if it is a process: scores too high, scores too low."""
        if self._looked is not None:
            over, under = self._looked.smooth
            return self._unit * over, self._unit * under
        p = self.process
        up = UNCERTAIN * positive(p.mean, p.sd) + (1 - UNCERTAIN) * np.maximum(p.mean, 0.0)
        under = up.sum(axis=-1)
        return self._unit * (under - p.mean.sum(axis=-1)), self._unit * under

    @cached_property
    def own_sides(self) -> tuple[Array, Array]:
        """Expected gap on each side of each problem by itself, over all shapes and none."""
        smooth = self.smooth_sides
        stretches = self.tree.sides if self._looked is None else self._looked.stretches
        w, members = self.weight, [smooth, tuple(self._unit * side for side in stretches)]
        if self.values is not None:
            members.append(self.values.sides)
        over, under = (sum(w[:, i] * sides[j] for i, sides in enumerate(members, 1)) for j in range(2))
        return np.asarray(over), np.asarray(under)

    @property
    def smooth_square(self) -> Array:
        """Expected square of the gap in each cell times its share of the rows, if it is a process."""
        return self._square(self._moments[0][1])

    @property
    def own_square(self) -> Array:
        """Expected square of the same, over all shapes and none."""
        return self._square(self._mixed[1])

    @cached_property
    def _moments(self) -> list[tuple[Array, Array]]:
        """Mean and mean square in units of each cell, of process, tree and values."""
        p = self.process
        moments = [(p.mean, p.mean**2 + UNCERTAIN * p.sd**2), self.tree.moments]
        if self.values is not None:
            # A gap at a score is that of all cells over which its rows are spread.
            few = self.values.few
            spread = self._of_each(few.overlap * few.share[:: len(few.share) // len(few.overlap), None])
            each, scale = self.values.moments, self._unit[:, None]
            mean = np.einsum("...jv,...v->...j", spread, each[0]) / scale
            root = np.einsum("...jv,...v->...j", spread, np.sqrt(each[1])) / scale
            moments.append((mean, np.maximum(root**2, mean**2)))
        return moments

    @cached_property
    def _mixed(self) -> tuple[Array, Array]:
        """Mean and mean square in units of each cell, over all shapes and none."""
        pairs = list(zip(self.weight[:, 1:].T, self._moments, strict=True))
        mean = sum(w[:, None] * moments[0] for w, moments in pairs)
        square = sum(w[:, None] * moments[1] for w, moments in pairs)
        return np.asarray(mean), np.asarray(square)

    def _square(self, square: Array) -> Array:
        """Return the square of the gap in each cell times its share of the rows, from that in units."""
        total = self._unit[:, None] ** 2 * square
        mass = np.broadcast_to(self._of_each(self.mass), total.shape)
        return np.divide(total, mass, out=np.zeros(total.shape), where=mass > 0)

    @cached_property
    def gap(self) -> Array:
        """Posterior mean of outcome minus score, summed over each cell, as a share of all rows."""
        return self._unit[:, None] * self._mixed[0]

    @cached_property
    def sd(self) -> Array:
        """Posterior standard deviation of the same."""
        mean, square = self._mixed
        return self._unit[:, None] * np.sqrt(np.maximum(square - mean**2, 0.0))

    def terms(self, norm: str | None) -> Terms:
        """Return what adds up over the classes of a model, of each problem; without a norm no errors."""
        if norm is None:
            smooth = own = np.zeros(len(self.z))
        elif norm == "l1":
            smooth, own = (over + under for over, under in (self.smooth_sides, self.own_sides))
        else:
            smooth, own = (square.sum(axis=-1) for square in (self.smooth_square, self.own_square))
        p = self._evidence or self.process
        alone = log_add(self.some + np.log1p(-np.exp(self._none)), self._none)
        return Terms(p.shape, p.offset, alone, smooth, own)

    def discrete(self, k: int) -> bool:
        """Return whether the points of problem k are the distinct scores that occur."""
        return self.few is not None and bool(self.few.whole[k])

    def ready(self) -> Posterior:
        """Compute together what each problem by itself would compute again, and return itself."""
        for name in ("own_sides", "some", "gap"):
            getattr(self, name)
        return self

    def places(self, k: int) -> tuple[Array, Array, Array]:
        """Return score, share of the rows and effective rows of the points of problem k."""
        if self.few is not None and self.discrete(k):
            held = self.few.share[k] > 0
            return self.few.score[k][held], self.few.share[k][held], self.few.rows[k][held]
        mass = self.mass[k]
        held = mass > 0
        return self.score[k][held], mass[held], mass[held] * self.n[k]

    def points(self, k: int) -> Points:
        """Return where the posterior of problem k is known, and what it says there."""
        if self.few is not None and self.discrete(k):
            held = self.few.share[k] > 0
            (mean, square), moments = self._at_values(k), self.values.moments  # type: ignore[union-attr]
            w = self.weight[k, 3]
            mean, square = mean + w * moments[0][k], square + w * moments[1][k]
            sd = np.sqrt(np.maximum(square - mean**2, 0.0))
            return Points(*self.places(k), mean[held], sd[held])
        mass = self.mass[k]
        held = mass > 0
        per = self.scale[k] / np.where(held, mass, 1.0)
        mean, square = (array[k] for array in self._mixed)
        sd = np.sqrt(np.maximum(square - mean**2, 0.0))
        return Points(*self.places(k), (per * mean)[held], (per * sd)[held])

    def _at_values(self, k: int) -> tuple[Array, Array]:
        """Return what process and tree add to mean and mean square of the gap at each distinct score."""
        assert self.few is not None
        overlap = self.few.overlap[k]
        per = np.divide(self.scale[k], self.mass[k], out=np.zeros(self.mass[k].shape), where=self.mass[k] > 0)
        mean, square = (
            sum(self.weight[k, 1 + i] * self._moments[i][j][k] for i in range(2)) for j in range(2)
        )
        return (per * mean) @ overlap, (per**2 * square) @ overlap

    def draws(self, k: int, rng: np.random.Generator, size: int) -> Array:
        """Draw gaps per row at the points of problem k, (size, points), from the whole posterior."""
        count = rng.multinomial(size, self.weight[k] / self.weight[k].sum())
        drawn = [self.shapes(k, i, rng, int(times)) for i, times in enumerate(count) if times]
        return np.asarray(rng.permutation(np.concatenate(drawn)))

    def shapes(self, k: int, member: int, rng: np.random.Generator, size: int, calmer: float = 1.0) -> Array:
        """Draw gaps per row at the points of problem k from one member: none, process, tree or values.

        With `calmer` below one a process keeps closer to its mean.
        """
        few = self.few if self.discrete(k) else None
        held = self.mass[k] > 0 if few is None else few.share[k] > 0
        if member == 0:
            return np.zeros((size, np.count_nonzero(held)))
        mass = self.mass[k]
        if member == 3:
            assert self.values is not None
            assert self.few is not None
            gaps = self.values.draw(k, rng, size)
            if few is None:
                spread = (self.few.overlap[k] * self.few.share[k]).T
                gaps = gaps @ np.divide(spread, mass, out=np.zeros(spread.shape), where=mass > 0)
            return gaps[:, held]
        cells = self.process.draw(k, rng, size, calmer) if member == 1 else self.tree.draw(k, rng, size)
        cells = cells * np.divide(self.scale[k], mass, out=np.zeros(mass.shape), where=mass > 0)
        return (cells if few is None else cells @ few.overlap[k])[:, held]


def posterior_of(question: Question) -> Posterior:
    """Return the posterior of all problems of a question; it is computed once.

    >>> from calibrant.inputs import predictions
    >>> from calibrant.questions import named
    >>> question = Question.of(predictions([0, 1, 1], [0.2, 0.4, 0.9]), named("class"))
    >>> posterior_of(question) is posterior_of(question)
    True
    """

    def compute() -> Posterior:
        flats = [residuals.flat for residuals in question.residuals]
        # With clusters the classes may differ in their effective sizes; they are joined over as many cells.
        cells = min(int(n_cells(flat.n)[0]) for flat in flats)
        return Posterior.joined([Posterior.of_residuals(flat, cells) for flat in flats])

    return question.once("posterior", compute)


class Judged(NamedTuple):
    """Evidence for some gap, its probability, and the share of classes that go their own ways."""

    evidence: Array
    chance: Array
    apart: Array

    def mixed(self, smooth: Array, own: Array) -> Array:
        """Return the expectation from those under the shared process and of each class by itself."""
        return np.asarray(self.chance * ((1 - self.apart) * smooth + self.apart * own))


def judged(terms: Terms, cells: int, classes: int) -> Judged:
    """Judge the classes of a model together, from sums over them.

    Either all classes have a process of one size and roughness, or each goes its own way. Two classes are
    one problem seen twice.
    """
    # Residuals of the classes of a row add up to zero: one class of them all is redundant.
    share = (classes - 1) / classes if classes > 1 else 1.0
    if classes <= 2:
        certain = np.ones(terms.alone.shape)
        return Judged(share * terms.alone, certain, certain)
    together = evidence_of(share * terms.shape, share * terms.offset, cells) + np.log1p(-APART)
    apart = share * terms.alone + np.log(APART)
    evidence = np.logaddexp(together, apart)
    return Judged(evidence, chance(evidence), np.exp(apart - evidence))


def chance(evidence: Array) -> Array:
    """Return the posterior probability that there is any gap at all."""
    odds = (1 - CALIBRATED) / CALIBRATED * np.exp(np.clip(evidence, -600, 600))
    return np.asarray(odds / (1 + odds))


def _joined_few(batches: Sequence[Posterior]) -> tuple[Few | None, Array | None]:
    """Join the distinct scores of batches; those with many get shares of zero."""
    width = max((0 if batch.few is None else batch.few.share.shape[-1]) for batch in batches)
    # Of many classes no score is taken by itself: that would hold a table for each.
    if width == 0 or width * sum(batch.z.size for batch in batches) > TOGETHER:
        return None, None
    parts: dict[str, list[Array]] = {f.name: [] for f in fields(Few)}
    data = []
    for batch in batches:
        problems, cells = batch.z.shape
        empty = np.zeros((problems, width))
        for name, arrays in parts.items():
            if name == "whole":
                arrays.append(np.zeros(problems, dtype=bool) if batch.few is None else batch.few.whole)
                continue
            blank = np.zeros((problems, cells, width)) if name in ("overlap", "inside") else empty
            arrays.append(blank if batch.few is None else _padded(getattr(batch.few, name), width))
        data.append(empty if batch.at_values is None else _padded(batch.at_values, width))
    return Few(*(np.concatenate(arrays) for arrays in parts.values())), np.concatenate(data)


def _some_of(known: Any, some: slice | Array) -> Any:
    """Return some of the problems of an array, or of each array of a list or tuple."""
    return (
        known[some] if isinstance(known, np.ndarray) else type(known)(_some_of(each, some) for each in known)
    )


def _padded(array: Array, width: int) -> Array:
    """Append zeros along the last axis."""
    short = width - array.shape[-1]
    return array if short == 0 else np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, short)])


def _log_sum(log: Array) -> Array:
    top = log.max(axis=-1)
    return np.asarray(top + np.log(np.exp(log - top[..., None]).sum(axis=-1)))

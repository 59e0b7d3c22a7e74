"""What the data say about the calibration gap: an average over shapes, weighed by their evidence.

A model may have no gap at all; a smooth one over all scores (`process`); one in some ranges of the scores
(`tree`); and, where rows share scores, a smooth one with an effect of each score on top (`score_effects`).
All of them see the same data with unit noise over cells of equal variance (`clock`), so their likelihoods
compare.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from calibrant.compiled.cached import cached_property
from calibrant.posterior.dyadic_partition import DyadicPartition
from calibrant.posterior.marginal_likelihoods import MarginalLikelihoods, marginal_likelihoods
from calibrant.posterior.process import Process, evidence_of, log_mean, of_each, softmax
from calibrant.posterior.score_effects import ScoreEffects
from calibrant.posterior.variance_time import look, n_cells, pilot_variance, whiten
from calibrant.score_data import Array, Residuals
from calibrant.tasks import CalibrationTask

# Prior of no gap: of one problem, and of each class of several. Of the others the shares of gaps in ranges of
# the scores, and by how much it is less where rows share scores; and of the classes of a model to have gaps
# that do not resemble each other.
CALIBRATED, CLASS_CALIBRATED = 0.03, 0.13
STRETCHES, FEWER_STRETCHES, APART = 0.16, 0.98, 0.2
# A smooth gap counts this much of what its uncertainty adds to the gap of the posterior mean: a process
# that must follow one jump is uncertain everywhere.
UNCERTAIN = 0.75
# Scores that a curve shows one by one where they have effects, and the share of the rows that have theirs in
# common with others.
MOST_LEVELS, NEARLY_ALL = 128, 0.95
# Effects of single scores below this weight are neglected.
NEGLIGIBLE = 0.002


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
    effects : tuple of ScoreEffects or None
        Effects of the scores that rows share, of each frame; None for frames without any.
    """

    z: Array
    scale: Array
    mass: Array
    score: Array
    n: Array
    effects: tuple[ScoreEffects | None, ...] = ()

    @classmethod
    def of_residuals(cls, flat: Residuals, cells: int, plain: bool = False) -> Posterior:
        """Return the posterior of residuals in score order.

        With `plain` outcomes have the variance that the scores say, as under calibration.
        """
        variance = pilot_variance(flat) if plain else pilot_variance(flat, look(flat))
        return cls(*whiten(flat, variance, cells), flat.n, _effects(flat, variance))

    def again(self, z: Array, residual: tuple[Array, ...] = ()) -> Posterior:
        """Return posteriors of other data, (sets, cells), on these scores: as many for each problem in turn.

        The data were simulated as normal. Residuals at shared scores come with them, or effects of single
        scores are left out.
        """
        effects = tuple(
            one and replace(one, residual=each, counts=False)
            for one, each in zip(self.effects, residual, strict=False)
        )
        return replace(self, z=z.astype(np.float64, copy=False), effects=effects)

    @property
    def smooth_alone(self) -> Posterior:
        """The same without effects of single scores."""
        return replace(self, effects=())

    @classmethod
    def joined(cls, batches: Sequence[Posterior]) -> Posterior:
        """Return several batches as one; each has frames of its own."""
        if len(batches) == 1:
            return batches[0]
        z, scale, mass, score, n = (
            np.concatenate([getattr(batch, name) for batch in batches])
            for name in ("z", "scale", "mass", "score", "n")
        )
        effects: tuple[ScoreEffects | None, ...] = ()
        if any(batch.effects for batch in batches):
            effects = tuple(one for batch in batches for one in batch.effects or (None,) * len(batch.z))
        return cls(z, scale, mass, score, n, effects)

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
        return replace(self, z=dct(sums, norm="ortho"), scale=self.scale * times, mass=mass, score=score)

    def __getitem__(self, some: slice | Array) -> Posterior:
        """Return some of the problems."""
        z, scale, mass, score, n = (
            getattr(self, name)[some] for name in ("z", "scale", "mass", "score", "n")
        )
        effects = tuple(self.effects[i] for i in np.arange(len(self.effects))[some]) if self.effects else ()
        return Posterior(z, scale, mass, score, n, effects)

    @cached_property
    def _unit(self) -> Array:
        """The scale of each problem, or of all."""
        return of_each(self.scale, len(self.z))

    @cached_property
    def process(self) -> Process:
        """The gap as a process."""
        return Process.of(self.z, 1 / (self.scale**2 * self.z.shape[-1]))

    @property
    def _evidence(self) -> MarginalLikelihoods:
        """What the data say about process and tree, perhaps without the sides."""
        return self._looked if "_looked" in self.__dict__ else self._looked_once

    @cached_property
    def _looked_once(self) -> MarginalLikelihoods:
        return self._look(sides=False)

    @cached_property
    def _looked(self) -> MarginalLikelihoods:
        """What the data say about process and tree."""
        return self._look(sides=True)

    def _look(self, sides: bool) -> MarginalLikelihoods:
        precision = 1 / (self.scale**2 * self.z.shape[-1])
        return marginal_likelihoods(self.z, self.mass / self.scale[:, None], precision, UNCERTAIN, sides)

    @property
    def evidence_of_process(self) -> Array:
        """Log of the Bayes factor of a smooth gap against none."""
        return self._evidence.process

    @cached_property
    def tree(self) -> DyadicPartition:
        """The gap in stretches."""
        from scipy.fft import idct

        return DyadicPartition(
            idct(self.z, norm="ortho"), of_each(self.mass / self.scale[:, None], len(self.z))
        )

    def _of_effects(self, read: Callable[[ScoreEffects], Array | float], missing: float) -> Array:
        """Return for each problem what is read of its frame's effects, or what stands for none."""
        each = len(self.z) // max(len(self.effects), 1)
        parts = (missing if one is None else read(one) for one in self.effects or (None,))
        return np.concatenate([np.broadcast_to(part, each) for part in parts])

    @cached_property
    def _effects_expected(self) -> Array:
        """Expected positive part, mean and square of a gap with effects of single scores, (3, problems)."""
        needed = (self.weight[:, 3] > NEGLIGIBLE).reshape(len(self.effects), -1)
        none = np.zeros((3, needed.shape[1]))
        parts = zip(self.effects, needed, strict=True)
        return np.concatenate([none if one is None else one.expected(some) for one, some in parts], axis=1)

    @cached_property
    def logs(self) -> Array:
        """Log of prior times likelihood, against that of no gap: of none, process, tree and effects."""
        look = self._evidence
        # Where rows share scores, gaps in ranges of them are less likely than effects of each.
        tied = self._of_effects(lambda one: one.ties.share, 0.0)
        tree = STRETCHES * (1 - FEWER_STRETCHES * tied)
        prior = [np.full(tree.shape, CALIBRATED), (1 - CALIBRATED) * (1 - tree), (1 - CALIBRATED) * tree]
        logs = np.stack([np.zeros(len(self.z)), look.process, look.tree], axis=-1)
        logs += np.log(np.stack(prior, axis=-1))
        if not self.effects:
            return logs
        share = self._of_effects(lambda one: one.ties.prior, 0.0)
        with np.errstate(divide="ignore"):
            effects = look.process + self._of_effects(lambda one: one.evidence, -np.inf) + np.log(share)
        return np.concatenate([logs + np.log1p(-share)[:, None], effects[:, None]], axis=-1)

    @cached_property
    def weight(self) -> Array:
        """Chance of none, process, tree and values, of each problem by itself."""
        return softmax(self.logs)

    @cached_property
    def some(self) -> Array:
        """Log of the Bayes factor for some gap against none, of each problem by itself."""
        return log_mean(self.logs[:, 1:], np.zeros(1)) - np.log1p(-np.exp(self.logs[:, 0]))

    @property
    def local(self) -> Array:
        """Log of the Bayes factor of gaps in ranges of the scores, or at single ones, against no gap.

        It is a statistic of the test, for which effects of single scores have no smooth part.
        """
        tree = self._evidence.tree
        if not self.effects:
            return tree
        scattered = self._of_effects(lambda one: one.ties.scattered(one.residual), -np.inf)
        share = self._of_effects(lambda one: one.ties.prior, 0.0)
        with np.errstate(divide="ignore"):
            return np.logaddexp(tree + np.log(STRETCHES), scattered + np.log(share))

    @cached_property
    def smooth_over_under(self) -> tuple[Array, Array]:
        """Expected gap on each side if it is a process: scores too high, scores too low."""
        over, under = self._looked.smooth
        return self._unit * over, self._unit * under

    @cached_property
    def over_under(self) -> tuple[Array, Array]:
        """Expected gap on each side of each problem by itself, over all shapes and none."""
        stretches = tuple(self._unit * side for side in self._looked.stretches)
        w, members = self.weight, [self.smooth_over_under, stretches]
        if self.effects:
            up, net, _ = self._effects_expected
            members.append((up - net, up))
        over, under = (sum(w[:, i] * sides[j] for i, sides in enumerate(members, 1)) for j in range(2))
        return np.asarray(over), np.asarray(under)

    @property
    def smooth_square(self) -> Array:
        """Expected square of the gap in each cell times its share of the rows, if it is a process."""
        return self._square(self._smooth_moments[0][1])

    @property
    def own_square(self) -> Array:
        """Expected square of the same, over all shapes and none."""
        return self._square(self._mixed[1])

    @cached_property
    def _smooth_moments(self) -> list[tuple[Array, Array]]:
        """Mean and mean square in units of each cell, of process and tree."""
        p = self.process
        return [(p.mean, p.mean**2 + UNCERTAIN * p.sd**2), self.tree.moments]

    @cached_property
    def _effects_in_cells(self) -> tuple[Array, Array]:
        """Mean and mean square in units of each cell, of a gap with effects of single scores."""
        mean, square = np.zeros((2, *self.z.shape))
        each = len(self.z) // len(self.effects)
        for k, one in enumerate(self.effects):
            if one is not None:
                time, some = one.ties.time(cells=self.z.shape[-1]), slice(k * each, (k + 1) * each)
                own, own_square = one.moments
                mean[some] = time.to_cells(one.ties.mass * own) / time.unit
                # The mean square of the scores in a cell, as if all of its rows had that gap.
                square[some] = time.to_cells(one.ties.mass * own_square) * time.mass / time.unit**2
        return mean, np.maximum(square, mean**2)

    @cached_property
    def _mixed(self) -> tuple[Array, Array]:
        """Mean and mean square in units of each cell, over all shapes and none."""
        members = [*self._smooth_moments, *([self._effects_in_cells] if self.effects else [])]
        pairs = list(zip(self.weight[:, 1:].T, members, strict=True))
        mean = sum(w[:, None] * moments[0] for w, moments in pairs)
        square = sum(w[:, None] * moments[1] for w, moments in pairs)
        return np.asarray(mean), np.asarray(square)

    def _square(self, square: Array) -> Array:
        """Return the square of the gap in each cell times its share of the rows, from that in units."""
        total = self._unit[:, None] ** 2 * square
        mass = np.broadcast_to(of_each(self.mass, len(self.z)), total.shape)
        return np.divide(total, mass, out=np.zeros(total.shape), where=mass > 0)

    @cached_property
    def gap(self) -> Array:
        """Posterior mean of outcome minus score, summed over each cell, as a share of all rows."""
        return self._unit[:, None] * self._mixed[0]

    def terms(self, norm: str | None) -> Terms:
        """Return what adds up over the classes of a model, of each problem; without a norm no errors."""
        if norm is None:
            smooth = own = np.zeros(len(self.z))
        elif norm == "l1":
            smooth, own = (over + under for over, under in (self.smooth_over_under, self.over_under))
        else:
            squares = [self._square(moments[1]).sum(axis=-1) for moments in self._smooth_moments]
            smooth = squares[0]
            own = sum(w * square for w, square in zip(self.weight[:, 1:3].T, squares, strict=True))
            if self.effects:
                own = own + self.weight[:, 3] * self._effects_expected[2]
        look = self._evidence
        alone = np.logaddexp(self.some + np.log1p(-CLASS_CALIBRATED), np.log(CLASS_CALIBRATED))
        return Terms(look.shape, look.offset, alone, smooth, np.asarray(own))

    def discrete(self, k: int) -> bool:
        """Return whether the points of problem k are its distinct scores: whether effects of them matter."""
        return any(self.effects[k : k + 1]) and bool(self.weight[k, 3] > NEGLIGIBLE)

    @property
    def thinly_repeated(self) -> bool:
        """Whether effects of single scores are likely, and known from scores that few rows share."""
        likely = (k for k, one in enumerate(self.effects) if one is not None and one.ties.thin)
        return any(self.weight[k, 3] > 0.5 for k in likely)

    def scattered(self, k: int) -> bool:
        """Return whether scores of problem k likely have gaps of their own, and nearly all are shared."""
        if not self.discrete(k):
            return False
        ties = self._effects_of(k).ties
        few = ties.mass.size <= MOST_LEVELS and ties.share > NEARLY_ALL
        few = few and not ties.thin and not ties.rounded
        return bool(few and self.weight[k, 3] > 0.5)

    def _effects_of(self, k: int) -> ScoreEffects:
        """Return the effects of problem k, which has some."""
        effects = self.effects[k]
        assert effects is not None
        return effects

    def focused(self) -> Posterior:
        """Return the same for simulations, which look at effects of single scores as far as these matter."""
        return replace(self, effects=tuple(one and one.focused() for one in self.effects))

    def places(self, k: int) -> tuple[Array, Array, Array]:
        """Return score, share of the rows and effective rows of the points of problem k."""
        if self.discrete(k):
            ties = self._effects_of(k).ties
            return ties.score, ties.mass, ties.mass**2 / ties.spread
        mass = self.mass[k]
        held = mass > 0
        return self.score[k][held], mass[held], mass[held] * self.n[k]

    def points(self, k: int) -> Points:
        """Return where the posterior of problem k is known, and what it says there."""
        mass = self.mass[k]
        held = mass > 0
        per = self.scale[k] / np.where(held, mass, 1.0)
        if self.discrete(k):
            effects, w = self._effects_of(k), self.weight[k]
            time = effects.ties.time(cells=mass.size)
            parts = [
                [(per**power * array[k])[None] for power, array in enumerate(pair, 1)]
                for pair in self._smooth_moments
            ]
            members = [[time.at_points(part)[0] for part in pair] for pair in parts]
            members.append([moments[0] for moments in effects.moments])
            mean, square = (
                np.asarray(sum(w[i] * pair[j] for i, pair in enumerate(members, 1))) for j in range(2)
            )
            return Points(*self.places(k), mean, np.sqrt(np.maximum(square - mean**2, 0.0)))
        mean, square = (array[k] for array in self._mixed)
        sd = np.sqrt(np.maximum(square - mean**2, 0.0))
        return Points(*self.places(k), (per * mean)[held], (per * sd)[held])

    def draws(self, k: int, rng: np.random.Generator, size: int) -> Array:
        """Draw gaps per row at the points of problem k, (size, points), from the whole posterior."""
        weight = self.weight[k] if self.discrete(k) else self.weight[k, :3]
        count = rng.multinomial(size, weight / weight.sum())
        drawn = [self.shapes(k, i, rng, int(times)) for i, times in enumerate(count) if times]
        return np.asarray(rng.permutation(np.concatenate(drawn)))

    def shapes(
        self, k: int, member: int, rng: np.random.Generator, size: int, draw_shrinkage: float = 1.0
    ) -> Array:
        """Draw gaps per row at the points of problem k from one member: none, process, tree or effects.

        With `draw_shrinkage` below one a process keeps closer to its mean.
        """
        discrete, mass = self.discrete(k), self.mass[k]
        if member == 0:
            return np.zeros((size, self.places(k)[0].size))
        if member == 3:
            return self._effects_of(k).draw(rng, size)
        cells = (
            self.process.draw(k, rng, size, draw_shrinkage) if member == 1 else self.tree.draw(k, rng, size)
        )
        cells = cells * np.divide(self.scale[k], mass, out=np.zeros(mass.shape), where=mass > 0)
        if not discrete:
            return cells[:, mass > 0]
        return self._effects_of(k).ties.time(cells=mass.size).at_points(cells)


def posterior_of(task: CalibrationTask) -> Posterior:
    """Return the posterior of all problems of a question; it is computed once.

    >>> from calibrant.inputs import predictions
    >>> from calibrant.tasks import named
    >>> task = CalibrationTask.of(predictions([0, 1, 1], [0.2, 0.4, 0.9]), named("binary"))
    >>> posterior_of(task) is posterior_of(task)
    True
    """

    def compute() -> Posterior:
        flats = [residuals.flat for residuals in task.residuals]
        # With clusters the classes may differ in their effective sizes; they are joined over as many cells.
        cells = min(int(n_cells(flat.n)[0]) for flat in flats)
        return Posterior.joined([Posterior.of_residuals(flat, cells) for flat in flats])

    return task.once("posterior", compute)


class PooledClasses(NamedTuple):
    """Evidence for some gap, its probability, and the share of classes that go their own ways."""

    evidence: Array
    chance: Array
    apart: Array

    def mixed(self, smooth: Array, own: Array) -> Array:
        """Return the expectation from those under the shared process and of each class by itself."""
        return np.asarray(self.chance * ((1 - self.apart) * smooth + self.apart * own))


def pool_classes(terms: Terms, cells: int, classes: int) -> PooledClasses:
    """Judge the classes of a model together, from sums over them.

    Either all classes have a process of one size and roughness, or each goes its own way. Two classes are
    one problem seen twice.
    """
    # Residuals of the classes of a row add up to zero: one class of them all is redundant.
    share = (classes - 1) / classes if classes > 1 else 1.0
    if classes <= 2:
        certain = np.ones(terms.alone.shape)
        return PooledClasses(share * terms.alone, certain, certain)
    together = evidence_of(share * terms.shape, share * terms.offset, cells) + np.log1p(-APART)
    apart = share * terms.alone + np.log(APART)
    evidence = np.logaddexp(together, apart)
    return PooledClasses(evidence, chance(evidence), np.exp(apart - evidence))


def chance(evidence: Array) -> Array:
    """Return the posterior probability that there is any gap at all."""
    odds = (1 - CLASS_CALIBRATED) / CLASS_CALIBRATED * np.exp(np.clip(evidence, -600, 600))
    return np.asarray(odds / (1 + odds))


def _effects(flat: Residuals, variance: Array) -> tuple[ScoreEffects | None, ...]:
    """Return the effects of the scores that rows share, of each problem; nothing where none are shared."""
    if not np.any(flat.one_score & (flat.mass**2 > (1 + 1e-6) * flat.spread) & (flat.mass > 0)):
        return ()
    effects = tuple(ScoreEffects.of(flat, variance, k) for k in range(len(flat.mass)))
    return effects if any(effects) else ()

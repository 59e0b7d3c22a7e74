"""Posterior of the calibration gap g(s) = P(y = 1 | s) - s: a Bayesian model average.

The components are: no gap at all; a smooth gap over all scores (`process`); a piecewise gap on ranges of the
scores (`dyadic_partition`); and, where rows share scores, a smooth gap plus one random effect for each
distinct score (`score_effects`). All components see the same data with unit noise over cells of equal
variance (`variance_time`), so their marginal likelihoods can be compared.

See docs/methods/default-estimator.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import log
from typing import NamedTuple

import numpy as np

from calibrant import compiled
from calibrant.parallel import cached_property, parallel_map, threads
from calibrant.posterior import dyadic_partition, process
from calibrant.posterior.dyadic_partition import DyadicPartition
from calibrant.posterior.process import Process, log_mean, smooth_log_bayes_factor
from calibrant.posterior.score_effects import NEARLY_ALL, ScoreEffects
from calibrant.posterior.variance_time import n_cells, pilot_smooth, pilot_variance, snr_grid, whiten
from calibrant.score_data import Array, Residuals
from calibrant.settings import PRIOR
from calibrant.tasks import CalibrationTask, ClassRelation, cached_on_task

# Score effects with less posterior probability are neglected, which saves time.
NEGLIGIBLE = 0.002
# Sizes of the grids, and shortest range with a process, for which the compiled loop is written.
COMPILED_FOR = {"smooth_sd_count": 8, "constant_sd_count": 5, "process_sd_count": 4, "shortest_process": 8}
# Number of coefficients from which the problems are divided among threads.
PARALLEL_FROM = 1 << 16
# Largest number of scores that a curve shows one by one if effects are probable.
MOST_SINGLE_SCORES = 128


class Points(NamedTuple):
    """Points of a posterior: cells of equal variance, or distinct scores where these have effects.

    Attributes
    ----------
    score, mass, rows : arrays (points,)
        Mean score, share of the rows, and effective sample size.
    gap, sd : arrays (points,)
        Posterior mean and standard deviation of the calibration gap (frequency minus score).
    """

    score: Array
    mass: Array
    rows: Array
    gap: Array
    sd: Array


class Terms(NamedTuple):
    """Terms that add up over the classes of a model.

    Attributes
    ----------
    shape, offset : arrays (..., grid points)
        Log likelihood ratios of the prior grid of the smooth component against no gap.
    unpooled_log_bayes_factor : array
        Log Bayes factor of the class by itself, averaged over all components including no gap.
    smooth, unpooled : arrays
        Expected error (its square for `l2`) given the smooth component, and averaged over all components.
    """

    shape: Array
    offset: Array
    unpooled_log_bayes_factor: Array
    smooth: Array
    unpooled: Array


@dataclass(frozen=True, eq=False)
class Posterior:
    """Posterior of a batch of one-dimensional problems.

    A frame holds what depends on the scores alone. There is one frame for each problem, or one for the same
    number of successive problems (simulated data sets on the same scores).

    "In noise units" below means: as a residual sum of a cell divided by its standard deviation.

    Attributes
    ----------
    z : array (problems, cells)
        Cosine coefficients of the data, with unit noise.
    scale : array (frames,)
        Standard deviation of the residual sum of a cell, divided by n: converts noise units into probability.
    mass, score : arrays (frames, cells)
        Share of the rows and mean score of each cell.
    n : array (frames,)
        Effective sample size.
    effects : tuple of ScoreEffects or None
        Score effects of each frame; None for frames in which no two rows share a score.
    classes : ClassRelation
        How the problems depend on each other, if they are the classes of one model.
    """

    z: Array
    scale: Array
    mass: Array
    score: Array
    n: Array
    effects: tuple[ScoreEffects | None, ...] = ()
    classes: ClassRelation = ClassRelation.EXCLUSIVE

    @classmethod
    def of_residuals(cls, flat: Residuals, cells: int, plain: bool = False) -> Posterior:
        """Return the posterior of residuals in score order.

        With `plain` the outcomes have the variance s (1 - s), as under calibration; otherwise the pilot
        variance.
        """
        variance = pilot_variance(flat) if plain else pilot_variance(flat, pilot_smooth(flat))
        return cls(*whiten(flat, variance, cells), flat.n, _effects(flat, variance))

    def with_data(self, z: Array, residual: tuple[Array, ...] = ()) -> Posterior:
        """Return posteriors of simulated normal data, (sets, cells), on the same scores.

        There are equally many data sets for each problem. `residual` holds the simulated residuals at the
        shared scores of each frame; without it, score effects are left out.
        """
        effects = tuple(
            effects_of_frame and replace(effects_of_frame, residual=simulated, counts=False)
            for effects_of_frame, simulated in zip(self.effects, residual, strict=False)
        )
        return replace(self, z=z.astype(np.float64, copy=False), effects=effects)

    @property
    def without_score_effects(self) -> Posterior:
        """The same posterior without score effects."""
        return replace(self, effects=())

    @classmethod
    def joined(cls, batches: Sequence[Posterior]) -> Posterior:
        """Concatenate batches; each keeps its frames."""
        if len(batches) == 1:
            return batches[0]
        z, scale, mass, score, n = (
            np.concatenate([getattr(batch, name) for batch in batches])
            for name in ("z", "scale", "mass", "score", "n")
        )
        effects: tuple[ScoreEffects | None, ...] = ()
        if any(batch.effects for batch in batches):
            effects = tuple(
                effects_of_problem
                for batch in batches
                for effects_of_problem in batch.effects or (None,) * len(batch.z)
            )
        return cls(z, scale, mass, score, n, effects, batches[0].classes)

    def weighted(self, share: Array | None) -> Posterior:
        """Return the posterior whose errors are multiplied by shares of the classes, relative to their mean.

        A mean of these errors over the classes is the mean by shares. Without shares nothing changes.
        """
        if share is None:
            return self
        times = share * share.size
        mass = self.mass * times[:, None]
        return replace(self, mass=mass, scale=self.scale * times, n=self.n / times)

    @property
    def _precision(self) -> Array:
        """The effective sample size divided by the mean variance of an outcome."""
        total = 1.0 if self.classes is not ClassRelation.SEPARATE else self.mass.sum(axis=-1)
        return np.asarray((total / self.scale) ** 2 / self.z.shape[-1])

    def coarser(self, cells: int) -> Posterior:
        """Return the posterior of the same data on at most `cells` cells, by merging neighbouring cells."""
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

    def __getitem__(self, index: slice | Array) -> Posterior:
        """Return a subset of the problems."""
        z, scale, mass, score, n = (
            getattr(self, name)[index] for name in ("z", "scale", "mass", "score", "n")
        )
        effects = tuple(self.effects[i] for i in np.arange(len(self.effects))[index]) if self.effects else ()
        return Posterior(z, scale, mass, score, n, effects, self.classes)

    @cached_property
    def _unit(self) -> Array:
        """The scale of each problem, or a single one for all."""
        return repeat_frames(self.scale, len(self.z))

    @cached_property
    def process(self) -> Process:
        """Posterior of the smooth component."""
        return Process.of(self.z, self._precision)

    @cached_property
    def _marginal(self) -> MarginalLikelihoods:
        """Marginal likelihoods and one-sided gaps of the smooth and the local component."""
        return marginal_likelihoods(self.z, self.mass / self.scale[:, None], self._precision)

    @property
    def process_log_bayes_factor(self) -> Array:
        """Log Bayes factor of the smooth component against no gap."""
        return self._marginal.process

    @cached_property
    def partition(self) -> DyadicPartition:
        """Posterior of the local component."""
        from scipy.fft import idct

        return DyadicPartition(
            idct(self.z, norm="ortho"), repeat_frames(self.mass / self.scale[:, None], len(self.z))
        )

    def _of_effects(self, read: Callable[[ScoreEffects], Array | float], missing: float) -> Array:
        """Return read(effects) for each problem, or `missing` for frames without score effects."""
        per_frame = len(self.z) // max(len(self.effects), 1)
        parts = (missing if effects is None else read(effects) for effects in self.effects or (None,))
        return np.concatenate([np.broadcast_to(array, per_frame) for array in parts])

    @cached_property
    def _effects_expected(self) -> Array:
        """Expected positive part, mean and square of the gap under score effects, (3, problems)."""
        needed = (self.weight[:, 3] > NEGLIGIBLE).reshape(len(self.effects), -1)
        zeros = np.zeros((3, needed.shape[1]))
        parts = zip(self.effects, needed, strict=True)
        return np.concatenate(
            [zeros if effects is None else effects.expected(subset) for effects, subset in parts], axis=1
        )

    @cached_property
    def logs(self) -> Array:
        """Log of prior times Bayes factor against no gap, (problems, components).

        The components are: none, smooth, local and, where rows share scores, score effects.
        """
        marginal = self._marginal
        # Where rows share scores, a piecewise gap is less plausible than score effects.
        tied = self._of_effects(lambda score_effects: score_effects.ties.share, 0.0)
        partition = PRIOR.local_weight * (1 - PRIOR.local_weight_reduction_by_ties * tied)
        calibrated = PRIOR.prior_probability_of_calibration
        prior = [
            np.full(partition.shape, calibrated),
            (1 - calibrated) * (1 - partition),
            (1 - calibrated) * partition,
        ]
        logs = np.stack([np.zeros(len(self.z)), marginal.process, marginal.partition], axis=-1)
        logs += np.log(np.stack(prior, axis=-1))
        if not self.effects:
            return logs
        share = self._of_effects(lambda score_effects: score_effects.ties.prior, 0.0)
        with np.errstate(divide="ignore"):
            effects = (
                marginal.process
                + self._of_effects(lambda score_effects: score_effects.log_bayes_factor, -np.inf)
                + np.log(share)
            )
        return np.concatenate([logs + np.log1p(-share)[:, None], effects[:, None]], axis=-1)

    @cached_property
    def weight(self) -> Array:
        """Posterior probabilities of none, smooth, local and score effects, for each problem by itself."""
        odds = np.exp(self.logs - self.logs.max(axis=-1, keepdims=True))
        return np.asarray(odds / odds.sum(axis=-1, keepdims=True))

    @cached_property
    def log_bayes_factor(self) -> Array:
        """Log Bayes factor of any gap against no gap, for each problem by itself."""
        return log_mean(self.logs[:, 1:], np.zeros(1)) - np.log1p(-np.exp(self.logs[:, 0]))

    @property
    def local(self) -> Array:
        """Log Bayes factor of a gap on ranges of scores, or at single scores, against no gap.

        It is used as a test statistic. Its score effects have no smooth part, which makes it fast to compute.
        """
        partition = self._marginal.partition
        if not self.effects:
            return partition
        has_independent_gaps = self._of_effects(
            lambda score_effects: score_effects.ties.independent_gaps_log_bayes_factor(
                score_effects.residual
            ),
            -np.inf,
        )
        share = self._of_effects(lambda score_effects: score_effects.ties.prior, 0.0)
        with np.errstate(divide="ignore"):
            return np.logaddexp(partition + np.log(PRIOR.local_weight), has_independent_gaps + np.log(share))

    @cached_property
    def smooth_over_under(self) -> tuple[Array, Array]:
        """Expected negative and positive part of the gap under the smooth component.

        The negative part is due to scores above the frequency, the positive part to scores below it.
        """
        over, under = self._marginal.smooth
        return self._unit * over, self._unit * under

    def largest_error(self, norm: str) -> Array:
        """Return the largest error of each problem that any outcomes could show at these scores.

        All frequencies are then at the end of [0, 1] that is farther from the score.

        >>> from calibrant.score_data import Sample
        >>> sure = Residuals.of(Sample(np.array([0.9, 0.9]), np.array([True, True])))
        >>> Posterior.of_residuals(sure.flat, 1).largest_error("l1")
        array([0.9])
        """
        farther = np.maximum(self.score, 1 - self.score)
        if norm == "max":
            largest = np.where(self.mass > 0, farther, 0.0).max(axis=-1)
        elif norm == "l2":
            largest = np.sqrt((self.mass * farther**2).sum(axis=-1))
        else:
            largest = (self.mass * farther).sum(axis=-1)
        return np.repeat(np.minimum(largest, 1.0), len(self.z) // len(largest))

    @cached_property
    def over_under(self) -> tuple[Array, Array]:
        """Expected negative and positive part of the gap, averaged over all components."""
        local_one_sided = tuple(self._unit * side for side in self._marginal.local)
        w, components = self.weight, [self.smooth_over_under, local_one_sided]
        if self.effects:
            up, net, _ = self._effects_expected
            components.append((up - net, up))
        over, under = (
            sum(w[:, i] * one_sided[j] for i, one_sided in enumerate(components, 1)) for j in range(2)
        )
        return np.asarray(over), np.asarray(under)

    @property
    def smooth_square(self) -> Array:
        """Expected squared gap of each cell times its share of the rows, under the smooth component."""
        return self._square(self._smooth_moments[0][1])

    @property
    def mean_square(self) -> Array:
        """Expected squared gap of each cell times its share of the rows, averaged over all components."""
        return self._square(self._average_moments[1])

    @cached_property
    def _smooth_moments(self) -> list[tuple[Array, Array]]:
        """Posterior mean and mean square in each cell, in noise units: smooth and local component."""
        p = self.process
        return [(p.mean, p.mean**2 + PRIOR.counted_uncertainty * p.sd**2), self.partition.moments]

    @cached_property
    def _effects_in_cells(self) -> tuple[Array, Array]:
        """Posterior mean and mean square in each cell, in noise units, of the score effects component."""
        mean, square = np.zeros((2, *self.z.shape))
        per_frame = len(self.z) // len(self.effects)
        for k, score_effects in enumerate(self.effects):
            if score_effects is not None:
                time, problems = (
                    score_effects.ties.time(cells=self.z.shape[-1]),
                    slice(k * per_frame, (k + 1) * per_frame),
                )
                gap_mean, gap_square = score_effects.moments
                mean[problems] = time.to_cells(score_effects.ties.mass * gap_mean) / time.unit
                # Mean square over the scores in a cell, as if all rows of the cell had that gap.
                square[problems] = (
                    time.to_cells(score_effects.ties.mass * gap_square) * time.mass / time.unit**2
                )
        return mean, np.maximum(square, mean**2)

    @cached_property
    def _average_moments(self) -> tuple[Array, Array]:
        """Posterior mean and mean square in each cell, in noise units, averaged over all components."""
        components = [*self._smooth_moments, *([self._effects_in_cells] if self.effects else [])]
        pairs = list(zip(self.weight[:, 1:].T, components, strict=True))
        mean = sum(w[:, None] * moments[0] for w, moments in pairs)
        square = sum(w[:, None] * moments[1] for w, moments in pairs)
        return np.asarray(mean), np.asarray(square)

    def _square(self, square: Array) -> Array:
        """Convert mean squares in noise units into squared gap times share of the rows."""
        total = self._unit[:, None] ** 2 * square
        mass = np.broadcast_to(repeat_frames(self.mass, len(self.z)), total.shape)
        return np.divide(total, mass, out=np.zeros(total.shape), where=mass > 0)

    @cached_property
    def gap(self) -> Array:
        """Posterior mean of the residual sum (outcome minus score) of each cell, divided by n."""
        return self._unit[:, None] * self._average_moments[0]

    def terms(self, norm: str | None) -> Terms:
        """Return the terms that add up over classes; without a norm the expected errors are zero."""
        if norm is None:
            smooth = unpooled = np.zeros(len(self.z))
        elif norm == "l1":
            smooth, unpooled = (over + under for over, under in (self.smooth_over_under, self.over_under))
        else:
            squares = [self._square(moments[1]).sum(axis=-1) for moments in self._smooth_moments]
            smooth = squares[0]
            unpooled = sum(w * square for w, square in zip(self.weight[:, 1:3].T, squares, strict=True))
            if self.effects:
                unpooled = unpooled + self.weight[:, 3] * self._effects_expected[2]
        marginal = self._marginal
        calibrated = PRIOR.prior_probability_of_calibrated_class
        unpooled_log_bayes_factor = np.logaddexp(
            self.log_bayes_factor + np.log1p(-calibrated), np.log(calibrated)
        )
        return Terms(marginal.shape, marginal.offset, unpooled_log_bayes_factor, smooth, np.asarray(unpooled))

    def discrete(self, k: int) -> bool:
        """Return whether the points of problem k are distinct scores: their effects are not negligible."""
        return any(self.effects[k : k + 1]) and bool(self.weight[k, 3] > NEGLIGIBLE)

    @property
    def thinly_repeated(self) -> bool:
        """Whether score effects are probable but estimated mostly from scores that few rows share."""
        likely = (
            k
            for k, score_effects in enumerate(self.effects)
            if score_effects is not None and score_effects.ties.thin
        )
        return any(self.weight[k, 3] > 0.5 for k in likely)

    def has_independent_gaps(self, k: int) -> bool:
        """Return whether a curve of problem k should show each distinct score by itself.

        That is so if score effects are probable, nearly all rows share their score, and distinct scores are
        few.
        """
        if not self.discrete(k):
            return False
        ties = self._effects_of(k).ties
        few = ties.mass.size <= MOST_SINGLE_SCORES and ties.share > NEARLY_ALL
        few = few and not ties.thin
        return bool(few and self.weight[k, 3] > 0.5)

    def _effects_of(self, k: int) -> ScoreEffects:
        """Return the score effects of problem k, which must have some."""
        effects = self.effects[k]
        assert effects is not None
        return effects

    def for_simulation(self) -> Posterior:
        """Return the same for simulations, restricted to the nodes of score effects that matter."""
        if not self.effects:
            return self  # with all that is computed already
        return replace(
            self,
            effects=tuple(score_effects and score_effects.for_simulation() for score_effects in self.effects),
        )

    def locations(self, k: int) -> tuple[Array, Array, Array]:
        """Return score, share of the rows and effective sample size of the points of problem k."""
        if self.discrete(k):
            ties = self._effects_of(k).ties
            return ties.score, ties.mass, ties.mass**2 / ties.spread
        mass = self.mass[k]
        occupied = mass > 0
        return self.score[k][occupied], mass[occupied], mass[occupied] * self.n[k]

    def points(self, k: int) -> Points:
        """Return the points of problem k with posterior mean and standard deviation of the gap."""
        mass = self.mass[k]
        occupied = mass > 0
        per = self.scale[k] / np.where(occupied, mass, 1.0)
        if self.discrete(k):
            effects, w = self._effects_of(k), self.weight[k]
            time = effects.ties.time(cells=mass.size)
            in_cells = [
                [(per**power * array[k])[None] for power, array in enumerate(pair, 1)]
                for pair in self._smooth_moments
            ]
            components = [[time.at_points(point)[0] for point in pair] for pair in in_cells]
            components.append([moments[0] for moments in effects.moments])
            mean, square = (
                np.asarray(sum(w[i] * pair[j] for i, pair in enumerate(components, 1))) for j in range(2)
            )
            return Points(*self.locations(k), mean, np.sqrt(np.maximum(square - mean**2, 0.0)))
        mean, square = (array[k] for array in self._average_moments)
        sd = np.sqrt(np.maximum(square - mean**2, 0.0))
        return Points(*self.locations(k), (per * mean)[occupied], (per * sd)[occupied])

    def draws(self, k: int, rng: np.random.Generator, size: int) -> Array:
        """Draw gaps at the points of problem k from the posterior, (size, points)."""
        weight = self.weight[k] if self.discrete(k) else self.weight[k, :3]
        count = rng.multinomial(size, weight / weight.sum())
        drawn = [self.shapes(k, i, rng, int(times)) for i, times in enumerate(count) if times]
        return np.asarray(rng.permutation(np.concatenate(drawn)))

    def shapes(
        self, k: int, component: int, rng: np.random.Generator, size: int, draw_shrinkage: float = 1.0
    ) -> Array:
        """Draw gaps at the points of problem k from component 0 none, 1 smooth, 2 local or 3 score effects.

        A `draw_shrinkage` below one keeps draws of the smooth component closer to its posterior mean.
        """
        discrete, mass = self.discrete(k), self.mass[k]
        if component == 0:
            return np.zeros((size, self.locations(k)[0].size))
        if component == 3:
            return self._effects_of(k).draw(rng, size)
        in_cells = (
            self.process.draw(k, rng, size, draw_shrinkage)
            if component == 1
            else self.partition.draw(k, rng, size)
        )
        in_cells = in_cells * np.divide(self.scale[k], mass, out=np.zeros(mass.shape), where=mass > 0)
        if not discrete:
            return in_cells[:, mass > 0]
        return self._effects_of(k).ties.time(cells=mass.size).at_points(in_cells)


@cached_on_task
def posterior_of(task: CalibrationTask) -> Posterior:
    """Return the posterior of all problems of a task; it is computed once and cached on the task.

    >>> from calibrant.inputs import predictions
    >>> from calibrant.tasks import get_notion
    >>> task = CalibrationTask.of(predictions([0, 1, 1], [0.2, 0.4, 0.9]), get_notion("binary"))
    >>> posterior_of(task) is posterior_of(task)
    True
    """
    flats = [residuals.flat for residuals in task.residuals]
    # With clusters the classes may differ in effective sample size; use the number of cells of the smallest.
    cells = cells_of(task, [flat.n for flat in flats])
    joined = Posterior.joined([Posterior.of_residuals(flat, cells) for flat in flats])
    return replace(joined, classes=task.notion.classes)


def cells_of(task: CalibrationTask, sizes: Iterable[Array]) -> int:
    """Return the number of cells of every problem, from the effective sample sizes.

    It is that of the smallest problem, or of the largest where classes have different rows: those of few rows
    have small shares.
    """
    cells = [int(n_cells(n)[0]) for n in sizes]
    return max(cells) if task.notion.classes is ClassRelation.SEPARATE else min(cells)


class PooledClasses(NamedTuple):
    """Posterior of a gap in a model with several classes.

    Attributes
    ----------
    log_bayes_factor : array
        Log Bayes factor of the model average over all classes.
    gap_probability : array
        Posterior probability of a gap.
    unpooled_probability : array
        Posterior probability that the classes are unpooled.
    """

    log_bayes_factor: Array
    gap_probability: Array
    unpooled_probability: Array

    def average(self, smooth: Array, unpooled: Array) -> Array:
        """Average the expectations of the pooled (`smooth`) and the unpooled (`unpooled`) model."""
        return np.asarray(
            self.gap_probability
            * ((1 - self.unpooled_probability) * smooth + self.unpooled_probability * unpooled)
        )


def pool_classes(
    terms: Terms, cells: int, classes: int, kind: ClassRelation = ClassRelation.EXCLUSIVE
) -> PooledClasses:
    """Compute the posterior of several classes from sums of their terms.

    Either all classes share the size and the roughness of a smooth gap (pooled), or each class is estimated
    by itself (unpooled). Two exclusive classes are a single problem, because their gaps mirror each other.
    """
    # The residuals of a row sum to zero over exclusive classes, so one of the classes is redundant.
    exclusive = kind is ClassRelation.EXCLUSIVE
    share = (classes - 1) / classes if classes > 1 and exclusive else 1.0
    if classes <= (2 if exclusive else 1):
        certain = np.ones(terms.unpooled_log_bayes_factor.shape)
        return PooledClasses(share * terms.unpooled_log_bayes_factor, certain, certain)
    unpooled_prior = PRIOR.prior_probability_of_unpooled_classes
    pooled = smooth_log_bayes_factor(share * terms.shape, share * terms.offset, cells)
    pooled += np.log1p(-unpooled_prior)
    unpooled = share * terms.unpooled_log_bayes_factor + np.log(unpooled_prior)
    log_bayes_factor = np.logaddexp(pooled, unpooled)
    return PooledClasses(
        log_bayes_factor, gap_probability(log_bayes_factor), np.exp(unpooled - log_bayes_factor)
    )


def gap_probability(log_bayes_factor: Array) -> Array:
    """Return the posterior probability of a gap from its log Bayes factor against no gap."""
    calibrated = PRIOR.prior_probability_of_calibrated_class
    odds = (1 - calibrated) / calibrated * np.exp(np.clip(log_bayes_factor, -600, 600))
    return np.asarray(odds / (1 + odds))


def repeat_frames(frames: Array, problems: int) -> Array:
    """Repeat rows of `frames` so that there is one for each problem; a single row is left to broadcasting."""
    return frames if len(frames) in (1, problems) else frames.repeat(problems // len(frames), axis=0)


def _effects(flat: Residuals, variance: Array) -> tuple[ScoreEffects | None, ...]:
    """Return the score effects of each problem; an empty tuple if no rows share scores."""
    if not np.any(flat.single_score & (flat.mass**2 > (1 + 1e-6) * flat.spread) & (flat.mass > 0)):
        return ()
    effects = tuple(ScoreEffects.of(flat, variance, k) for k in range(len(flat.mass)))
    return effects if any(effects) else ()


# -- marginal likelihoods of the smooth and the local component ---------------------------------------------
#
# A compiled loop (`compiled/shapes.c`) computes them where it is available. `process` and `dyadic_partition`
# compute the same in numpy, and moments and draws, which are needed for few problems.


@dataclass(frozen=True, eq=False)
class MarginalLikelihoods:
    """Log Bayes factors and expected one-sided gaps of the two components, (problems,) each.

    Attributes
    ----------
    process, partition : arrays
        Log Bayes factor of the smooth and of the local component against no gap.
    smooth, local : pairs of arrays
        Expected negative and positive part of the gap under the smooth and under the local component, summed
        over cells, in noise units.
    offset, shape : arrays (problems, grid points)
        Log likelihood ratios of the prior grid of the smooth component (see `process.Process`).
    """

    process: Array
    partition: Array
    smooth: tuple[Array, Array]
    local: tuple[Array, Array]
    offset: Array
    shape: Array


def marginal_likelihoods(z: Array, signal_to_noise: Array, precision: Array) -> MarginalLikelihoods:
    """Compute the marginal likelihoods of data given by cosine coefficients.

    Parameters
    ----------
    z : array (problems, cells)
        Cosine coefficients with unit noise.
    signal_to_noise : array (frames, cells)
        Expectation of the standardized residual sum of a cell per unit of gap.
    precision : array (frames,)
        n divided by the mean variance of an outcome. Each frame holds for the same number of successive
        problems.
    """
    cells, shapes = z.shape[-1], getattr(compiled.loops, "shapes", None)
    fits = all(getattr(PRIOR, name) == value for name, value in COMPILED_FOR.items())
    if shapes is None or not fits or cells < 2 or cells & (cells - 1):
        return _marginal_likelihoods_numpy(z, signal_to_noise, precision)
    tables = _tables(cells)
    means = PRIOR.smooth_sd_count + 1
    out = np.empty((len(z), 6 + means + len(tables[3])))
    z, signal_to_noise = np.ascontiguousarray(z), np.ascontiguousarray(signal_to_noise, np.float64)
    largest_sds = PRIOR.largest_sd, PRIOR.largest_mean_sd
    sizes = [snr_grid(precision, largest) for largest in largest_sds]
    frames = len(signal_to_noise)
    per_frame = 1 if frames == 1 else len(z) // frames

    def compute(first: int) -> None:
        problems, last = slice(first * per_frame, (first + step) * per_frame), first + step
        frame_arrays = [array if frames == 1 else array[first:last] for array in (signal_to_noise, *sizes)]
        shapes(z[problems], *frame_arrays, *tables, _rules(), out[problems], True)

    # Problems are divided among threads by whole frames, unless there is only one frame.
    count = len(z) // max(per_frame, 1)
    step = max(1, count if z.size < PARALLEL_FROM else -(-count // threads()))
    for _ in parallel_map(compute, range(0, count, step)):
        pass
    smooth_log, local_log, over, under, partition_over, partition_under = out[:, :6].T
    shape_start = 6 + means
    return MarginalLikelihoods(
        smooth_log,
        local_log,
        (over, under),
        (partition_over, partition_under),
        out[:, 6:shape_start],
        out[:, shape_start:],
    )


def _marginal_likelihoods_numpy(z: Array, signal_to_noise: Array, precision: Array) -> MarginalLikelihoods:
    """Compute the same in numpy."""
    from scipy.fft import idct

    smooth_part = process.Process.of(z, precision)
    local_part = dyadic_partition.DyadicPartition(
        idct(z, norm="ortho"), repeat_frames(signal_to_noise, len(z))
    )
    mean, uncertain = smooth_part.mean, PRIOR.counted_uncertainty
    up = uncertain * dyadic_partition.expected_positive_part(mean, smooth_part.sd)
    under = (up + (1 - uncertain) * np.maximum(mean, 0.0)).sum(axis=-1)
    return MarginalLikelihoods(
        smooth_part.log_bayes_factor,
        local_part.log_bayes_factor,
        (under - mean.sum(axis=-1), under),
        local_part.one_sided,
        smooth_part.offset,
        smooth_part.shape,
    )


@lru_cache(maxsize=32)
def _tables(cells: int) -> tuple[Array, ...]:
    """Return spectra, twiddle factors of the cosine transforms and log priors."""
    spectra = [
        dyadic_partition.spectrum_of(cells >> level) for level in dyadic_partition.process_levels(cells)
    ]
    all_spectra = np.concatenate([*spectra, np.zeros(0)])
    return (
        process.spectra_of(cells),
        all_spectra,
        twiddle_factors(cells),
        process.prior_of_shape(cells),
        process.prior_of_mean(),
    )


@lru_cache(maxsize=32)
def twiddle_factors(cells: int) -> Array:
    """Return the twiddle factors of cosine transforms of all lengths n = 2^k below `cells`.

    Entries n + 2j and n + 2j + 1 are the cosine and the sine of (2j + 1) pi / 4n.
    """
    factors = np.zeros(max(cells, 2))
    n = 2
    while n < cells:
        angle = (2 * np.arange(n // 2) + 1) * (np.pi / (4 * n))
        factors[n : 2 * n : 2], factors[n + 1 : 2 * n : 2] = np.cos(angle), np.sin(angle)
        n *= 2
    return factors


@lru_cache(maxsize=1)
def _rules() -> Array:
    """Return the numbers of the local component's prior, in the order that the compiled loop expects."""
    process_sds, final = dyadic_partition.process_sds(), PRIOR.probability_of_final_range
    mean_prior, no_shape = -log(len(process_sds) + 1), PRIOR.process_probability_of_no_shape
    return np.array([
        *(sd**2 for sd in (*dyadic_partition.constant_sds(), *process_sds)),
        final, 1 - final, *dyadic_partition.probabilities_of_no_gap(), 0.5, mean_prior, mean_prior,
        log(no_shape), log((1 - no_shape) / len(process_sds)), PRIOR.counted_uncertainty,
    ])  # fmt: skip

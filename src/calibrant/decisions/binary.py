"""Decision regret of a single score, and the gains of recalibrating it or of moving the threshold.

Rows are pooled into groups of neighbouring scores. No group extends over a score where the action changes.
The outcome frequency of each group is estimated in three ways: by the default calibration map of all rows, by
that of the other folds (for held-out gains), and by draws from the posterior of the calibration gap. All of
these may smooth away a gap that is confined to a narrow range of scores. Blocks of neighbouring rows are
therefore searched for the largest gain that is compatible with the noise (`max_block_gain`). The method is
described in docs/methods/decision-regret.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from calibrant.decisions.cost import Cost
from calibrant.inference.clusters import steps_of
from calibrant.inference.interval import ClusterAdjustment
from calibrant.maps.binary import average_or_identity
from calibrant.parallel import cached_property
from calibrant.posterior import Posterior, posterior_of
from calibrant.posterior.log_odds import model_average
from calibrant.score_data import Array, Residuals
from calibrant.settings import DECISIONS
from calibrant.tasks import CalibrationTask

# Maximum number of groups by rank, which bounds the cost; seed of the split into folds, fixed so that they
# depend on the data only; and the largest group whose rows are split individually (numpy needs fewer than
# 1e9).
GROUPS, FOLD_SEED, MAX_SPLIT_ROWS = 1000, 20240717, 5e8
# Tolerance for ties of scores, and of expected costs relative to the largest cost difference: rounding must
# not decide the action for a score at the threshold.
TIED = 1e-9
# Number of posterior draws of the frequencies, and their seed, fixed so that they depend on the data only.
DRAWS, SEED = 160, 20240713


class CostLines(NamedTuple):
    """Expected cost of each action as a linear function of the outcome probability, for several decisions.

    Attributes
    ----------
    no, yes : arrays (decisions, actions)
        Cost if the outcome is 0, and if it is 1.
    """

    no: Array
    yes: Array

    @classmethod
    def of(cls, cost: Cost) -> CostLines:
        """Return the lines of one decision about two classes, the second of which is the outcome."""
        return cls(cost.matrix[None, 0], cost.matrix[None, 1])

    @classmethod
    def of_thresholds(cls, thresholds: Array) -> CostLines:
        """Return the lines of each threshold, scaled so that the costs of a false alarm and a miss sum to 1.

        >>> lines = CostLines.of_thresholds(np.array([0.1, 0.5]))
        >>> lines.optimal_actions(np.array([0.05, 0.1, 0.4]))
        array([[1, 0, 0],
               [1, 1, 1]])
        """
        none = np.zeros(len(thresholds))
        return cls(np.stack([thresholds, none], axis=1), np.stack([none, 1 - thresholds], axis=1))

    @property
    def top(self) -> Array:
        """The largest cost difference between two actions, for each decision."""
        return np.maximum(np.ptp(self.no, axis=1), np.ptp(self.yes, axis=1))

    @property
    def changes(self) -> Array:
        """Probabilities at which two actions have the same expected cost."""
        first, second = (line[:, :, None] - line[:, None, :] for line in (self.no, self.yes))
        with np.errstate(divide="ignore", invalid="ignore"):
            at = first / (first - second)
        return np.unique(at[(at > 0) & (at < 1)])

    def expected(self, probability: Array) -> Array:
        """Return the expected costs (decisions, actions, ...) at the given probabilities."""
        return self.no[..., None] + (self.yes - self.no)[..., None] * probability

    def optimal_actions(self, probability: Array) -> Array:
        """Return the optimal action (decisions, ...) at probabilities: the first of least expected cost."""
        cost = self.expected(probability)
        limit = cost.min(axis=1) + TIED * np.maximum(self.top, 1e-300)[:, None]
        return np.argmax(cost <= limit[:, None], axis=1)

    @property
    def act(self) -> Array:
        """For two actions, the one that is better at high probabilities, for each decision."""
        return np.argmax(self.no - self.yes, axis=1)

    def first(self, mass: Array, frequency: Array, score: Array) -> Array:
        """Return the first group at which acting is optimal (decisions, sets), for two actions.

        Ties are resolved in favour of the group nearest to the threshold implied by the costs.

        Parameters
        ----------
        mass, frequency : arrays (sets, groups)
        score : array (groups,)

        Examples
        --------
        >>> lines, score = CostLines.of_thresholds(np.array([0.1, 0.5])), np.array([0.2, 0.4, 0.6])
        >>> lines.first(np.ones((1, 3)), score[None] / 3, score)
        array([[1],
               [3]])
        """
        first = []
        for no, yes, act in zip(*self, self.act, strict=True):
            alarm, miss = no[act] - no[1 - act], yes[1 - act] - yes[act]
            given = alarm / (alarm + miss) if alarm + miss > 0 else 0.5
            extra = mass * (alarm * (1 - frequency) - miss * frequency)
            total = np.concatenate([np.zeros((len(mass), 1)), np.cumsum(extra, axis=1)], axis=1)
            # Acting at group j and above costs the sum over these groups: least where the sum below is
            # largest.
            most = total.max(axis=1, keepdims=True)
            equal = total >= most - 1e-12 * np.abs(extra).sum(axis=1, keepdims=True)
            away = np.abs(np.arange(total.shape[1]) - np.searchsorted(score, given - TIED))
            first.append(np.where(equal, away, score.size + 1).argmin(axis=1))
        return np.array(first)

    def at(self, action: Array, less: Array | None = None) -> tuple[Array, Array]:
        """Return the costs of actions (decisions, ...), minus those of the actions `less` if given.

        The first array is for outcome 0, the second for outcome 1.
        """
        no, yes = (np.take_along_axis(cost, action, axis=1) for cost in self)
        if less is None:
            return no, yes
        less_no, less_yes = self.at(less)
        return no - less_no, yes - less_yes


class Gain(NamedTuple):
    """Mean reduction of the cost per row by alternative actions, for each decision.

    Attributes
    ----------
    mean, error : arrays
        Gain on the observed outcomes, and its standard error.
    fitted : array
        Expected gain if the scores recalibrated on all rows were the true probabilities.
    """

    mean: Array
    error: Array
    fitted: Array

    @property
    def value(self) -> Array:
        """The fitted gain, moved to at most one standard error from the observed one.

        The fitted gain has less noise, but the map that it relies on shrinks towards no calibration gap.
        Bounding its distance from the unbiased estimate is limited translation (Efron and Morris 1972).

        >>> gain = Gain(np.array([0.3, 0.3]), np.array([0.1, 0.1]), np.array([0.05, 0.25]))
        >>> gain.value
        array([0.2 , 0.25])
        """
        return np.clip(self.fitted, self.mean - self.error, self.mean + self.error)

    def interval(self, deviate: float) -> tuple[Array, Array]:
        """Return the mean plus and minus `deviate` standard errors, extended to include the value."""
        low, high = self.mean - deviate * self.error, self.mean + deviate * self.error
        return np.minimum(low, self.value), np.maximum(high, self.value)


def possible_gain(fitted: Any, spent: Any, observed: Any, expected: Any, largest: Any) -> Any:
    """Clip fitted gains so that the cost of the alternative actions stays possible.

    That cost is at least the smaller of its observed and expected value, and at most the largest cost. All
    costs are relative to the best action for each outcome. Without clipping, the fitted gain may exceed the
    total cost when few rows change their action.

    >>> possible_gain(np.array([0.5]), np.array([0.4]), np.array([0.1]), np.array([0.2]), np.array([9.0]))
    array([0.3])
    """
    return np.clip(fitted, spent - largest, spent - np.minimum(observed, expected))


class FoldSplit(NamedTuple):
    """Random split of the groups into folds.

    Attributes
    ----------
    group, fold : arrays
        Group and fold of each part. Folds without rows are dropped.
    steps : Residuals
        Residuals of the parts.
    """

    group: Array
    fold: Array
    steps: Residuals

    @classmethod
    def of(cls, groups: Residuals, rng: np.random.Generator) -> FoldSplit:
        """Split the rows of each group at random, stratified by score.

        Each run of `DECISIONS.folds` rows in score order has one row in every fold, so every fold covers the
        range of scores. Only the sums of a group are used: the result depends neither on the order of the
        rows nor on whether repeated rows are given as counts.
        """
        frequency = groups.frequency
        has_hits, has_misses = frequency > TIED, frequency < 1 - TIED
        # Round first: the last bit of a weight must not change the number of rows.
        rows = np.floor(np.round(groups.mass**2 / groups.spread, 9) + 0.5)
        rows = np.clip(rows, has_hits * 1.0 + has_misses, MAX_SPLIT_ROWS).astype(np.int64)
        hits = np.floor(np.round(frequency * rows, 9) + 0.5).astype(np.int64)
        hits = np.clip(hits, has_hits, rows - has_misses)
        folds = DECISIONS.folds
        left = rows % folds
        rounds = -(-int(left.sum()) // folds)
        turns = rng.permuted(np.tile(np.arange(folds), (rounds, 1)), axis=1).ravel()[: left.sum()]
        each = np.repeat(np.arange(left.size), left)
        size = np.bincount(turns * left.size + each, minlength=folds * left.size).reshape(folds, -1)
        size += rows // folds
        fold_hits, free, free_hits = np.zeros_like(size), rows.copy(), hits.copy()
        for k in range(folds):
            fold_hits[k] = rng.hypergeometric(free_hits, free - free_hits, size[k])
            free, free_hits = free - size[k], free_hits - fold_hits[k]
        # All positive rows of a group are given the same weight, and so are all negative rows.
        positive = fold_hits * (groups.mass * frequency / np.maximum(hits, 1))
        mass = positive + (size - fold_hits) * (groups.mass * (1 - frequency) / np.maximum(rows - hits, 1))
        return cls._of_sums(groups, mass, positive, size / rows)

    @classmethod
    def of_clusters(cls, task: CalibrationTask, groups: Residuals, rng: np.random.Generator) -> FoldSplit:
        """Split whole clusters at random, because rows of the same cluster are not independent."""
        score, outcome, weight = next(task.problems[0].rows())
        cluster = task.cluster
        assert cluster is not None
        # Order the clusters by their sums, which depend neither on cluster ids nor on the order of the rows.
        keys = [np.round(np.bincount(cluster, weight * array), 9) for array in (score, outcome, 1.0)]
        fold = np.empty(len(keys[0]), dtype=np.intp)
        fold[rng.permutation(np.lexsort(keys))] = np.arange(fold.size) % DECISIONS.folds
        place = fold[cluster] * groups.mass.size + steps_of(score, weight, groups)
        shape = DECISIONS.folds, groups.mass.size
        scale = groups.n / weight.sum()
        mass, positive = (
            np.bincount(place, scale * weight * array, shape[0] * shape[1]).reshape(shape)
            for array in (1.0, outcome)
        )
        return cls._of_sums(groups, mass, positive, mass / groups.mass)

    @classmethod
    def _of_sums(cls, groups: Residuals, mass: Array, positive: Array, share: Array) -> FoldSplit:
        """Build the non-empty parts from mass, positive mass and share of each group, by fold."""
        group, fold = np.nonzero((share > 0).T)
        mass, positive, share = (array[fold, group] for array in (mass, positive, share))
        score = groups.score[group]
        residual = positive - mass * score
        steps = Residuals(mass, score, residual, groups.spread[group] * share, groups.single_score[group])
        return cls(group, np.unique(fold, return_inverse=True)[1], steps)

    def training_sets(self, groups: Residuals) -> tuple[Array, Array]:
        """Return the mass of the training rows of each fold, and the fitted frequencies (folds, groups)."""
        masses, frequencies = [], []
        for k in range(self.fold.max() + 1):
            mass, residual, spread = (
                np.bincount(self.group, (self.fold != k) * array, groups.mass.size)
                for array in (self.steps.mass, self.steps.residual, self.steps.spread)
            )
            others = Residuals(mass, groups.score, residual, spread, groups.single_score)
            masses.append(mass)
            # Without training rows the scores are kept, and the gain is zero.
            frequencies.append(recalibrated(others, groups.score) if mass.any() else groups.score)
        return np.stack(masses), np.stack(frequencies)


@dataclass(frozen=True, eq=False)
class BinaryDecisions:
    """Groups of rows in score order, and estimates of their outcome frequencies.

    Attributes
    ----------
    groups : Residuals
    posterior : Posterior
    curve : array
        The recalibrated score of each group, by the calibration map of all rows.
    split : FoldSplit
        The groups, split into folds.
    training_mass, training_frequency : arrays (folds, groups)
        Mass of the training rows of each fold, and the frequencies fitted to them.
    clusters : float
        Effective number of clusters; infinite if rows are independent.
    """

    groups: Residuals
    posterior: Posterior
    curve: Array
    split: FoldSplit
    training_mass: Array
    training_frequency: Array
    clusters: float = np.inf

    @classmethod
    def of(cls, task: CalibrationTask, cuts: Array) -> BinaryDecisions:
        """Build groups that no cut divides, and split them into folds."""
        (residuals,) = task.residuals
        posterior = posterior_of(task)
        nonempty = residuals[residuals.mass > 0]
        groups = _pooled(nonempty, cuts)
        curve = recalibrated(nonempty, groups.score)
        rng = np.random.default_rng(FOLD_SEED)
        if task.designs is None:
            clusters, split = np.inf, FoldSplit.of(groups, rng)
        else:
            clusters, split = ClusterAdjustment.of(task)[0].clusters, FoldSplit.of_clusters(task, groups, rng)
        return cls(groups, posterior, curve, split, *split.training_sets(groups), clusters)

    @property
    def n(self) -> float:
        """Effective number of rows."""
        return float(self.groups.n)

    @property
    def parts(self) -> Residuals:
        """Residuals of the parts of groups that lie in one fold."""
        return self.split.steps

    @property
    def posterior_mean(self) -> Array:
        """The posterior mean of the frequency of each group."""
        points = self.posterior.points(0)
        gap = _interpolated(points.score, points.gap[None], self.groups.score)[0]
        return np.clip(self.groups.score + gap, 0.0, 1.0)

    @cached_property
    def draws(self) -> tuple[Array, Array]:
        """Posterior draws of the frequencies (draws, groups), and Bayesian bootstrap shares of the groups."""
        rng = np.random.default_rng(SEED)
        points, drawn = self.posterior.points(0).score, self.posterior.draws(0, rng, DRAWS)
        gap = _interpolated(points, drawn, self.groups.score)
        share = bootstrap_shares(rng, self.groups.mass, self.groups.spread, len(gap))
        return np.clip(self.groups.score + gap, 0.0, 1.0), share

    def regret(self, lines: CostLines, curve: Array | None = None) -> Array:
        """Return the decision regret of the scores if `curve` gives the true frequencies."""
        p = self.curve if curve is None else curve
        expected = lines.expected(p)
        cost = np.take_along_axis(expected, lines.optimal_actions(self.groups.score)[:, None], axis=1)[:, 0]
        return np.maximum(cost - expected.min(axis=1), 0.0) @ self.groups.mass / self.n

    def gain(self, lines: CostLines, before: Array, after: Array | None = None) -> Gain:
        """Return the gain of actions `after` (decisions, parts) over `before`; without `after`, the cost."""
        no, yes = lines.at(before, after)
        mass, p, spread = self.parts.mass / self.n, self.parts.frequency, self.parts.spread
        curve = self.curve[self.split.group]
        mean, fitted = ((no + (yes - no) * each) @ mass for each in (p, curve))
        if after is not None:
            spent, expected = self.excess(lines, before, p), self.excess(lines, after, curve)
            fitted = possible_gain(fitted, spent, spent - mean, expected, lines.top)
        variance = (1 - p) * (no - mean[:, None]) ** 2 + p * (yes - mean[:, None]) ** 2
        # If few rows change their action, the empirical variance is too small.
        floor = DECISIONS.variance_floor_rows * spread.sum() / self.n * lines.top**2
        return Gain(mean, np.sqrt(variance @ spread + floor) / self.n, fitted)

    def excess(self, lines: CostLines, actions: Array, frequency: Array) -> Array:
        """Return the expected cost of actions relative to the best action for each outcome."""
        no, yes = lines.at(actions)
        no, yes = no - lines.no.min(axis=1, keepdims=True), yes - lines.yes.min(axis=1, keepdims=True)
        return np.asarray((no + (yes - no) * frequency) @ self.parts.mass / self.n)

    def recalibrated(self, lines: CostLines) -> Array:
        """Return the optimal actions (decisions, parts) on scores recalibrated by the other folds."""
        return lines.optimal_actions(self.training_frequency[self.split.fold, self.split.group])

    def best_threshold(self, lines: CostLines) -> Array:
        """Return the actions (decisions, parts) at the threshold that is optimal on the other folds."""
        first = lines.first(self.training_mass, self.training_frequency, self.groups.score)
        first = first[:, self.split.fold]
        act = lines.act[:, None]
        return np.where(self.split.group >= first, act, 1 - act)

    def regret_draws(self, lines: CostLines) -> Array:
        """Return posterior draws of the regret (decisions, draws), with bootstrap weights of the scores."""
        frequency, share = self.draws
        actions, drawn = lines.optimal_actions(self.groups.score), []
        for k, (no, yes) in enumerate(zip(*lines, strict=True)):
            own_no, own_yes = no[actions[k]], yes[actions[k]]
            lost = np.zeros(frequency.shape)
            for other_no, other_yes in zip(no, yes, strict=True):
                slope, start = (own_yes - own_no) - (other_yes - other_no), own_no - other_no
                np.maximum(lost, start + slope * frequency, out=lost)
            drawn.append(np.einsum("ij,ij->i", lost, share))
        return np.array(drawn)

    def max_block_gain(self, lines: CostLines, deviate: float) -> Array:
        """Return the largest gain of blocks of neighbouring rows that is compatible with the noise."""
        actions = lines.optimal_actions(self.groups.score)
        each = [self._max_block_gain(*line, deviate) for line in zip(*lines, actions, strict=True)]
        return np.array(each) / self.n

    def _max_block_gain(self, no: Array, yes: Array, actions: Array, deviate: float) -> float:
        """Return the largest block gain of a single decision, summed over rows."""
        groups = self.groups
        size = max(DECISIONS.block_factor * self.n**DECISIONS.block_exponent, DECISIONS.min_block_rows)
        upto = np.cumsum(groups.mass)
        change = np.flatnonzero(np.diff(actions))
        middle = upto[change[0]] if change.size else 0.0
        # Blocks start at the first change of the action, and no block extends over another change.
        number = np.floor((upto - groups.mass / 2 - middle) / size)
        block = np.cumsum(np.append(0, (np.diff(number) != 0) | (np.diff(actions) != 0)))
        start = np.flatnonzero(np.diff(block, prepend=-1))
        mass, spread = np.add.reduceat(groups.mass, start), np.add.reduceat(groups.spread, start)
        seen, scored, smooth = (
            np.add.reduceat(groups.mass * p, start) / mass
            for p in (groups.frequency, groups.score, self.curve)
        )
        own_no, own_yes = no[actions[start]], yes[actions[start]]
        observed, usual = [], []
        for other_no, other_yes in zip(no, yes, strict=True):
            start_gain, slope = own_no - other_no, (own_yes - own_no) - (other_yes - other_no)
            with np.errstate(divide="ignore", invalid="ignore"):
                even = np.where(slope != 0, -start_gain / slope, 0.0)
            at = np.where((even > 0) & (even < 1), even, 0.0)
            least = at * (1 - at)
            variance = np.maximum.reduce([least, smooth * (1 - smooth), seen * (1 - seen)])
            observed.append((mass * (start_gain + slope * seen), spread * slope**2 * variance))
            usual.append((mass * (start_gain + slope * scored), spread * slope**2 * least))
        # Blocks of calibrated data also show gains, by noise alone.
        noise_gain = _max_gain(usual, DECISIONS.block_noise_deviate)
        return _max_gain(observed, deviate) - DECISIONS.block_noise_share * noise_gain


def bootstrap_shares(rng: np.random.Generator, mass: Array, spread: Array, size: int) -> Array:
    """Draw Bayesian bootstrap shares (size, groups).

    >>> shares = bootstrap_shares(np.random.default_rng(0), np.array([2.0, 1.0]), np.array([2.0, 1.0]), 3)
    >>> shares.sum(axis=1)
    array([1., 1., 1.])
    """
    # Rounded, because the last bit of a weight would change all later draws.
    rows = np.maximum(np.round(mass**2 / spread, 9), 1e-9)
    share = rng.standard_gamma(np.broadcast_to(rows, (size, rows.size))) * (mass / rows)
    # For a tiny effective sample size all draws may be 0.
    share = np.where(share.any(axis=1, keepdims=True), share, mass)
    return np.asarray(share / share.sum(axis=1, keepdims=True))


def _max_gain(others: Sequence[tuple[Array, Array]], deviate: float) -> float:
    """Return the largest gain plus `deviate` standard errors over sets of blocks.

    `others` has the gains and variances of all blocks for each alternative action.
    """
    gain, variance = (np.stack(array) for array in zip(*others, strict=True))
    best = np.argmax(gain + deviate * np.sqrt(variance), axis=0)[None]
    gain, variance = (np.take_along_axis(array, best, axis=0)[0] for array in (gain, variance))
    positive = variance > 0
    gain, variance = gain[positive], variance[positive]
    order = np.argsort(-gain / variance, kind="stable")
    within = np.cumsum(gain[order]) + deviate * np.sqrt(np.cumsum(variance[order]))
    return float(max(within.max(initial=0.0), 0.0))


def _pooled(steps: Residuals, cuts: Array) -> Residuals:
    """Pool steps into groups by rank, without crossing a cut; a score at a cut belongs to the upper group."""
    region = np.searchsorted(cuts, steps.score + TIED, side="right")
    if steps.mass.size <= GROUPS:
        return steps
    rank = (np.cumsum(steps.mass) - steps.mass / 2) / steps.mass.sum()
    return steps.pooled(region * (GROUPS + 1) + (rank * GROUPS).astype(np.intp))


def _interpolated(points: Array, gap: Array, score: Array) -> Array:
    """Interpolate gaps (..., points) linearly at other scores."""
    kept = np.flatnonzero(np.diff(points, prepend=-1.0) > TIED)
    points, gap = points[kept], gap[:, kept]
    if points.size == 1:
        return np.broadcast_to(gap, (len(gap), score.size))
    left = np.clip(np.searchsorted(points, score) - 1, 0, points.size - 2)
    share = np.clip((score - points[left]) / (points[left + 1] - points[left]), 0.0, 1.0)
    return np.asarray(gap[:, left] * (1 - share) + gap[:, left + 1] * share)


def recalibrated(residuals: Residuals, score: Array) -> Array:
    """Recalibrate scores by the default calibration map of these rows; see docs/methods/calibrators.md."""
    nonempty = residuals[residuals.mass > 0]
    return np.asarray(average_or_identity(nonempty, model_average(nonempty)).probability(score))

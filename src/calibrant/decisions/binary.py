"""Decisions on a single score: the expected costs of acting on it, recalibrating it or moving the threshold.

Rows are pooled into groups of neighbouring scores. No group extends over a score where the action changes.
The outcome frequency of each group is estimated in three ways: by the default calibration map of all rows, by
that of the other folds (for held-out gains), and by draws from the posterior of the calibration gap. All of
these may smooth away a gap that is confined to a narrow range of scores. Blocks of neighbouring rows are
therefore searched for the largest gain that is compatible with the noise (`reach`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from calibrant.compiled.cached import cached_property
from calibrant.decisions.cost import Cost
from calibrant.inference.clusters import ClusterAdjustment, steps_of
from calibrant.maps.binary import improved
from calibrant.posterior import Posterior, posterior_of
from calibrant.posterior.log_odds import model_average
from calibrant.score_data import Array, Residuals
from calibrant.tasks import CalibrationTask

# Groups by rank at most; folds; the generator that deals rows out to folds, so that folds depend on the data
# alone; and the most rows of a group that are dealt one by one (numpy draws from fewer than 1e9).
GROUPS, FOLDS, FOLD_SEED, MOST_DEALT = 1000, 5, 20240717, 5e8
# Scores, and expected costs as a share of the largest, that differ by less are the same: an action at the
# threshold itself is no matter of rounding.
TIED = 1e-9
# Draws of the posterior, with weights of the groups as a Bayesian bootstrap has them. What is drawn depends
# on the data alone.
DRAWN, SEED = 160, 20240713
# Rows in a block, as a share of n^(2/3), and at least. Of what blocks allow by noise alone, as those of
# calibrated data at these normal quantiles would, this share is left out: the posterior is right to call
# most of it noise.
BLOCK, LEAST_BLOCK, LEFT_OUT, USUAL = 0.25, 10.0, 0.5, 1.96
# The largest gain of a row, twice, is added to the squared gains of the rows seen: few of them, or none, say
# little about their spread.
FLOOR = 2.0


class Lines(NamedTuple):
    """The cost of each action, of some decisions, as a line in the probability of the outcome.

    Attributes
    ----------
    no, yes : arrays (decisions, actions)
        Where the outcome is 0, and where it is 1.
    """

    no: Array
    yes: Array

    @classmethod
    def of(cls, cost: Cost) -> Lines:
        """Return the lines of one decision about two classes, the second of which is the outcome."""
        return cls(cost.matrix[None, 0], cost.matrix[None, 1])

    @classmethod
    def of_thresholds(cls, thresholds: Array) -> Lines:
        """Return those of acting from each threshold on; a false alarm and a miss cost one together.

        >>> lines = Lines.of_thresholds(np.array([0.1, 0.5]))
        >>> lines.taken(np.array([0.05, 0.1, 0.4]))
        array([[1, 0, 0],
               [1, 1, 1]])
        """
        none = np.zeros(len(thresholds))
        return cls(np.stack([thresholds, none], axis=1), np.stack([none, 1 - thresholds], axis=1))

    @property
    def top(self) -> Array:
        """The most that a row can cost more by one action than by another, of each decision."""
        return np.maximum(np.ptp(self.no, axis=1), np.ptp(self.yes, axis=1))

    @property
    def changes(self) -> Array:
        """Probabilities at which two actions cost the same."""
        first, second = (line[:, :, None] - line[:, None, :] for line in (self.no, self.yes))
        with np.errstate(divide="ignore", invalid="ignore"):
            at = first / (first - second)
        return np.unique(at[(at > 0) & (at < 1)])

    def expected(self, probability: Array) -> Array:
        """Return the expected cost (decisions, actions, ...) at probabilities."""
        return self.no[..., None] + (self.yes - self.no)[..., None] * probability

    def taken(self, probability: Array) -> Array:
        """Return the cheapest action (decisions, ...) at probabilities; of equal ones the first."""
        cost = self.expected(probability)
        limit = cost.min(axis=1) + TIED * np.maximum(self.top, 1e-300)[:, None]
        return np.argmax(cost <= limit[:, None], axis=1)

    @property
    def act(self) -> Array:
        """The action, of two, that is the better one at high probabilities, for each decision."""
        return np.argmax(self.no - self.yes, axis=1)

    def first(self, mass: Array, frequency: Array, score: Array) -> Array:
        """Return from which group on acting costs least (decisions, sets); of two actions.

        Of equally good groups it is the nearest to where the costs place the threshold.

        Parameters
        ----------
        mass, frequency : arrays (sets, groups)
        score : array (groups,)

        Examples
        --------
        >>> lines, score = Lines.of_thresholds(np.array([0.1, 0.5])), np.array([0.2, 0.4, 0.6])
        >>> lines.first(np.ones((1, 3)), score[None] / 3, score)
        array([[1],
               [3]])
        """
        found = []
        for no, yes, act in zip(*self, self.act, strict=True):
            alarm, miss = no[act] - no[1 - act], yes[1 - act] - yes[act]
            given = alarm / (alarm + miss) if alarm + miss > 0 else 0.5
            extra = mass * (alarm * (1 - frequency) - miss * frequency)
            total = np.concatenate([np.zeros((len(mass), 1)), np.cumsum(extra, axis=1)], axis=1)
            # Acting from group j on costs the sum from j on: least where the sum up to j is largest.
            most = total.max(axis=1, keepdims=True)
            equal = total >= most - 1e-12 * np.abs(extra).sum(axis=1, keepdims=True)
            away = np.abs(np.arange(total.shape[1]) - np.searchsorted(score, given - TIED))
            found.append(np.where(equal, away, score.size + 1).argmin(axis=1))
        return np.array(found)

    def at(self, action: Array, less: Array | None = None) -> tuple[Array, Array]:
        """Return the costs of actions (decisions, ...), or what they cost more than others do.

        The first are those where the outcome is 0, the second those where it is 1.
        """
        no, yes = (np.take_along_axis(cost, action, axis=1) for cost in self)
        if less is None:
            return no, yes
        less_no, less_yes = self.at(less)
        return no - less_no, yes - less_yes


class Gain(NamedTuple):
    """Mean reduction of the cost per row by other actions, for each decision.

    Attributes
    ----------
    mean, error : arrays
        By the observed outcomes, and the standard error of that.
    fitted : array
        If the recalibrated scores of all rows were right.
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
        """Return both ends of an interval so many standard errors wide on either side; it holds the value."""
        low, high = self.mean - deviate * self.error, self.mean + deviate * self.error
        return np.minimum(low, self.value), np.maximum(high, self.value)


def possible_gain(fitted: Any, spent: Any, observed: Any, expected: Any, largest: Any) -> Any:
    """Return fitted gains after which the other actions cost what they can.

    That is at least the smaller one of their observed and their expected cost, and at most the largest cost;
    all of them beyond the cost of the right actions. Where few rows decide, the fitted gain may exceed all
    that was spent on them.

    >>> possible_gain(np.array([0.5]), np.array([0.4]), np.array([0.1]), np.array([0.2]), np.array([9.0]))
    array([0.3])
    """
    return np.clip(fitted, spent - largest, spent - np.minimum(observed, expected))


class Dealt(NamedTuple):
    """Groups split at random into folds.

    Attributes
    ----------
    group, fold : arrays
        Of each part; folds without any rows are not counted.
    steps : Residuals
        The parts themselves.
    """

    group: Array
    fold: Array
    steps: Residuals

    @classmethod
    def of(cls, groups: Residuals, rng: np.random.Generator) -> Dealt:
        """Deal the rows of each group out at random.

        Each run of `FOLDS` rows in score order has one row in every fold, so that no fold lacks a range of
        scores. Only the sums of a group are used: neither the order of the rows nor whether they are rows
        or counts makes a difference.
        """
        frequency = groups.frequency
        has_hits, has_misses = frequency > TIED, frequency < 1 - TIED
        # Rounded first, since the last bit of a weight must not change the number of rows.
        rows = np.floor(np.round(groups.mass**2 / groups.spread, 9) + 0.5)
        rows = np.clip(rows, has_hits * 1.0 + has_misses, MOST_DEALT).astype(np.int64)
        hits = np.floor(np.round(frequency * rows, 9) + 0.5).astype(np.int64)
        hits = np.clip(hits, has_hits, rows - has_misses)
        left = rows % FOLDS
        rounds = -(-int(left.sum()) // FOLDS)
        turns = rng.permuted(np.tile(np.arange(FOLDS), (rounds, 1)), axis=1).ravel()[: left.sum()]
        each = np.repeat(np.arange(left.size), left)
        size = np.bincount(turns * left.size + each, minlength=FOLDS * left.size).reshape(FOLDS, -1)
        size += rows // FOLDS
        dealt_hits, free, free_hits = np.zeros_like(size), rows.copy(), hits.copy()
        for k in range(FOLDS):
            dealt_hits[k] = rng.hypergeometric(free_hits, free - free_hits, size[k])
            free, free_hits = free - size[k], free_hits - dealt_hits[k]
        # Of weighted rows each positive one has the same weight, and so has each negative one.
        positive = dealt_hits * (groups.mass * frequency / np.maximum(hits, 1))
        mass = positive + (size - dealt_hits) * (groups.mass * (1 - frequency) / np.maximum(rows - hits, 1))
        return cls._of_sums(groups, mass, positive, size / rows)

    @classmethod
    def of_clusters(cls, task: CalibrationTask, groups: Residuals, rng: np.random.Generator) -> Dealt:
        """Deal whole clusters out at random: rows of one cluster are no independent test of each other."""
        score, outcome, weight = next(task.problems[0].rows())
        cluster = task.cluster
        assert cluster is not None
        # An order of the clusters that depends neither on their names nor on the order of the rows.
        keys = [np.round(np.bincount(cluster, weight * part), 9) for part in (score, outcome, 1.0)]
        fold = np.empty(len(keys[0]), dtype=np.intp)
        fold[rng.permutation(np.lexsort(keys))] = np.arange(fold.size) % FOLDS
        place = fold[cluster] * groups.mass.size + steps_of(score, weight, groups)
        shape = FOLDS, groups.mass.size
        scale = groups.n / weight.sum()
        mass, positive = (
            np.bincount(place, scale * weight * part, shape[0] * shape[1]).reshape(shape)
            for part in (1.0, outcome)
        )
        return cls._of_sums(groups, mass, positive, mass / groups.mass)

    @classmethod
    def _of_sums(cls, groups: Residuals, mass: Array, positive: Array, share: Array) -> Dealt:
        """Return the parts that hold rows: mass, mass of positive rows and share of a group, by fold."""
        group, fold = np.nonzero((share > 0).T)
        mass, positive, share = (part[fold, group] for part in (mass, positive, share))
        score = groups.score[group]
        residual = positive - mass * score
        steps = Residuals(mass, score, residual, groups.spread[group] * share, groups.one_score[group])
        return cls(group, np.unique(fold, return_inverse=True)[1], steps)

    def taught(self, groups: Residuals) -> tuple[Array, Array]:
        """Return the mass that each fold learns from, and the frequencies that it learns, (folds, groups)."""
        taught, learnt = [], []
        for k in range(self.fold.max() + 1):
            mass, residual, spread = (
                np.bincount(self.group, (self.fold != k) * part, groups.mass.size)
                for part in (self.steps.mass, self.steps.residual, self.steps.spread)
            )
            others = Residuals(mass, groups.score, residual, spread, groups.one_score)
            taught.append(mass)
            # A single score, of few rows: there are no others to learn from, and nothing is gained.
            learnt.append(recalibrated(others, groups.score) if mass.any() else groups.score)
        return np.stack(taught), np.stack(learnt)


@dataclass(frozen=True, eq=False)
class BinaryDecisions:
    """Groups of rows along a score, and what is known of their frequencies.

    Attributes
    ----------
    groups : Residuals
    posterior : Posterior
    curve : array
        The recalibrated score of each group, by the map of all rows.
    dealt : Dealt
        The groups, or parts of them, that were dealt out to folds.
    taught, learnt : arrays (folds, groups)
        Mass of the rows that each fold learns from, and the frequencies that it learns.
    clusters : float
        How many equally large clusters would be as good; infinite where each row stands for itself.
    """

    groups: Residuals
    posterior: Posterior
    curve: Array
    dealt: Dealt
    taught: Array
    learnt: Array
    clusters: float = np.inf

    @classmethod
    def of(cls, task: CalibrationTask, cuts: Array) -> BinaryDecisions:
        """Make groups that no cut runs through, and deal them out to folds; the question keeps the result."""
        key = "decisions on one score", tuple(cuts.tolist())
        return task.once(key, lambda: cls._made(task, cuts))

    @classmethod
    def _made(cls, task: CalibrationTask, cuts: Array) -> BinaryDecisions:
        (residuals,) = task.residuals
        posterior = posterior_of(task)
        held = residuals[residuals.mass > 0]
        groups = _pooled(held, cuts)
        curve = recalibrated(held, groups.score)
        rng = np.random.default_rng(FOLD_SEED)
        if task.designs is None:
            clusters, dealt = np.inf, Dealt.of(groups, rng)
        else:
            clusters, dealt = ClusterAdjustment.of(task)[0].clusters, Dealt.of_clusters(task, groups, rng)
        return cls(groups, posterior, curve, dealt, *dealt.taught(groups), clusters)

    @property
    def n(self) -> float:
        """Number of independent rows that say as much."""
        return float(self.groups.n)

    @property
    def parts(self) -> Residuals:
        """The groups, or parts of them, that were dealt out to folds."""
        return self.dealt.steps

    @property
    def posterior_mean(self) -> Array:
        """The posterior mean of the frequency of each group."""
        points = self.posterior.points(0)
        gap = _between(points.score, points.gap[None], self.groups.score)[0]
        return np.clip(self.groups.score + gap, 0.0, 1.0)

    @cached_property
    def draws(self) -> tuple[Array, Array]:
        """Frequencies (draws, groups) from the posterior, and shares of the groups, drawn beside them."""
        rng = np.random.default_rng(SEED)
        points, drawn = self.posterior.points(0).score, self.posterior.draws(0, rng, DRAWN)
        gap = _between(points, drawn, self.groups.score)
        share = drawn_shares(rng, self.groups.mass, self.groups.spread, len(gap))
        return np.clip(self.groups.score + gap, 0.0, 1.0), share

    def regret(self, lines: Lines, curve: Array | None = None) -> Array:
        """Return what acting on the scores costs more than acting on a curve, if that is right."""
        p = self.curve if curve is None else curve
        expected = lines.expected(p)
        lost = np.take_along_axis(expected, lines.taken(self.groups.score)[:, None], axis=1)[:, 0]
        return np.maximum(lost - expected.min(axis=1), 0.0) @ self.groups.mass / self.n

    def gain(self, lines: Lines, before: Array, after: Array | None = None) -> Gain:
        """Return what is gained by actions `after` (decisions, parts) over `before`; or what these cost."""
        no, yes = lines.at(before, after)
        mass, p, spread = self.parts.mass / self.n, self.parts.frequency, self.parts.spread
        curve = self.curve[self.dealt.group]
        mean, fitted = ((no + (yes - no) * each) @ mass for each in (p, curve))
        if after is not None:
            spent, expected = self.excess(lines, before, p), self.excess(lines, after, curve)
            fitted = possible_gain(fitted, spent, spent - mean, expected, lines.top)
        apart = (1 - p) * (no - mean[:, None]) ** 2 + p * (yes - mean[:, None]) ** 2
        floor = FLOOR * spread.sum() / self.n * lines.top**2
        return Gain(mean, np.sqrt(apart @ spread + floor) / self.n, fitted)

    def excess(self, lines: Lines, actions: Array, frequency: Array) -> Array:
        """Return the cost of actions beyond that of the right action for every row, by these frequencies."""
        no, yes = lines.at(actions)
        no, yes = no - lines.no.min(axis=1, keepdims=True), yes - lines.yes.min(axis=1, keepdims=True)
        return np.asarray((no + (yes - no) * frequency) @ self.parts.mass / self.n)

    def recalibrated(self, lines: Lines) -> Array:
        """Return actions (decisions, parts) on scores that were recalibrated by the other folds."""
        return lines.taken(self.learnt[self.dealt.fold, self.dealt.group])

    def best_threshold(self, lines: Lines) -> Array:
        """Return actions (decisions, parts), of two, by the threshold that is best on the other folds."""
        first = lines.first(self.taught, self.learnt, self.groups.score)[:, self.dealt.fold]
        act = lines.act[:, None]
        return np.where(self.dealt.group >= first, act, 1 - act)

    def drawn(self, lines: Lines) -> Array:
        """Return regrets (decisions, draws) of the posterior, among scores as they might have been drawn."""
        frequency, share = self.draws
        taken, drawn = lines.taken(self.groups.score), []
        for k, (no, yes) in enumerate(zip(*lines, strict=True)):
            own_no, own_yes = no[taken[k]], yes[taken[k]]
            lost = np.zeros(frequency.shape)
            for other_no, other_yes in zip(no, yes, strict=True):
                slope, start = (own_yes - own_no) - (other_yes - other_no), own_no - other_no
                np.maximum(lost, start + slope * frequency, out=lost)
            drawn.append(np.einsum("ij,ij->i", lost, share))
        return np.array(drawn)

    def reach(self, lines: Lines, deviate: float) -> Array:
        """Return the most that blocks of neighbouring rows could gain within the noise, of each decision."""
        taken = lines.taken(self.groups.score)
        each = [self._reach(*one, deviate) for one in zip(*lines, taken, strict=True)]
        return np.array(each) / self.n

    def _reach(self, no: Array, yes: Array, mine: Array, deviate: float) -> float:
        """Return the same of one decision and the actions taken, as a sum over rows."""
        groups = self.groups
        size = max(BLOCK * self.n ** (2 / 3), LEAST_BLOCK)
        upto = np.cumsum(groups.mass)
        change = np.flatnonzero(np.diff(mine))
        middle = upto[change[0]] if change.size else 0.0
        # Blocks are counted from where the action changes, and end where it changes again.
        number = np.floor((upto - groups.mass / 2 - middle) / size)
        block = np.cumsum(np.append(0, (np.diff(number) != 0) | (np.diff(mine) != 0)))
        start = np.flatnonzero(np.diff(block, prepend=-1))
        mass, spread = np.add.reduceat(groups.mass, start), np.add.reduceat(groups.spread, start)
        seen, scored, smooth = (
            np.add.reduceat(groups.mass * p, start) / mass
            for p in (groups.frequency, groups.score, self.curve)
        )
        own_no, own_yes = no[mine[start]], yes[mine[start]]
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
        return _most(observed, deviate) - LEFT_OUT * _most(usual, USUAL)


def drawn_shares(rng: np.random.Generator, mass: Array, spread: Array, size: int) -> Array:
    """Draw shares (size, groups) of all rows, as a Bayesian bootstrap does.

    >>> shares = drawn_shares(np.random.default_rng(0), np.array([2.0, 1.0]), np.array([2.0, 1.0]), 3)
    >>> shares.sum(axis=1)
    array([1., 1., 1.])
    """
    # Rounded, since the last bit of a weight would change all that is drawn after it.
    rows = np.maximum(np.round(mass**2 / spread, 9), 1e-9)
    share = rng.standard_gamma(np.broadcast_to(rows, (size, rows.size))) * (mass / rows)
    # Of next to no rows all draws may be 0.
    share = np.where(share.any(axis=1, keepdims=True), share, mass)
    return np.asarray(share / share.sum(axis=1, keepdims=True))


def _most(others: Sequence[tuple[Array, Array]], deviate: float) -> float:
    """Return the largest gain of any blocks with so many standard errors: sums and variances by action."""
    gain, variance = (np.stack(part) for part in zip(*others, strict=True))
    best = np.argmax(gain + deviate * np.sqrt(variance), axis=0)[None]
    gain, variance = (np.take_along_axis(part, best, axis=0)[0] for part in (gain, variance))
    some = variance > 0
    gain, variance = gain[some], variance[some]
    order = np.argsort(-gain / variance, kind="stable")
    within = np.cumsum(gain[order]) + deviate * np.sqrt(np.cumsum(variance[order]))
    return float(max(within.max(initial=0.0), 0.0))


def _pooled(steps: Residuals, cuts: Array) -> Residuals:
    """Return groups by rank between the cuts; scores at a cut belong to what follows."""
    region = np.searchsorted(cuts, steps.score + TIED, side="right")
    if steps.mass.size <= GROUPS:
        return steps
    rank = (np.cumsum(steps.mass) - steps.mass / 2) / steps.mass.sum()
    return steps.pooled(region * (GROUPS + 1) + (rank * GROUPS).astype(np.intp))


def _between(points: Array, gap: Array, score: Array) -> Array:
    """Return gaps (..., points) at other scores, by straight lines between the points."""
    kept = np.flatnonzero(np.diff(points, prepend=-1.0) > TIED)
    points, gap = points[kept], gap[:, kept]
    if points.size == 1:
        return np.broadcast_to(gap, (len(gap), score.size))
    left = np.clip(np.searchsorted(points, score) - 1, 0, points.size - 2)
    share = np.clip((score - points[left]) / (points[left + 1] - points[left]), 0.0, 1.0)
    return np.asarray(gap[:, left] * (1 - share) + gap[:, left + 1] * share)


def recalibrated(residuals: Residuals, score: Array) -> Array:
    """Return scores recalibrated by the map that a `Calibrator` fits to these rows by default."""
    held = residuals[residuals.mass > 0]
    return np.asarray(improved(held, model_average(held)).probability(score))

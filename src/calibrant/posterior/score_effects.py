"""Gaps of single scores: a random effect for each distinct score, on top of a smooth gap.

Trees, lookup tables and rounded models give the same score to many rows, and each score is off in its own
way. The gap at score v is f(v) + e(v): a smooth process, and an independent effect of variance
rho mu (1 - mu). Rows that share a score are then correlated, with intraclass correlation rho. Their residual
sum has the variance of a beta-binomial count, 1 + (rows - 1) rho times the binomial one. Data without
replication do not inform about rho, and give no effect.

The smooth part is fitted on cells of equal variance that include the effect, for a few values of rho. The
likelihood of rho is the beta-binomial one at the fitted mean, less what that fit gained over its own Bayes
factor. A Gaussian likelihood would take a wrong variance for over-dispersion where outcomes are rare.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from calibrant.compiled.cached import cached_property
from calibrant.posterior.dyadic_partition import positive
from calibrant.posterior.process import Process, log_mean, softmax
from calibrant.posterior.variance_time import VarianceTime
from calibrant.score_data import Array, Residuals

# Intraclass correlations for which the smooth part is fitted, and those in between that are weighed. They are
# those of an average row, and fall with this power of the frequency of a score: the scores of a leaf or of a
# category are averages over training rows, and vary as one over their number.
POWERS, FITTED, RHO = (0.0, 0.5, 1.0, 1.5), np.geomspace(0.002, 0.5, 6), np.geomspace(0.001, 0.5, 32)
# With fewer pairs of rows that share a score, powers cannot be told apart, and fewer correlations are fitted.
MANY_PAIRS, FEWER = 3000, np.geomspace(0.004, 0.5, 4)
LARGEST = 0.5
# Prior of rho: log-normal with this median and standard deviation of the logarithm.
MEDIAN, LOG_SD = 0.05, 1.0
LOG_PRIOR = -0.5 * np.square(np.log(RHO / MEDIAN) / LOG_SD)
LOG_PRIOR -= np.logaddexp.reduce(LOG_PRIOR)
# Prior probability of an effect where all rows share scores, where hardly any do, and for rounded scores; and
# the effect that replication must be able to show, or the probability is less.
ALL_TIED, FEW_TIED, ROUNDED, VISIBLE = 0.6, 0.2, 0.3, 0.1
# Scores with this share of the rows, or this close to 0 or 1, say nothing about scores of single rows.
HEAVY, EDGE = 0.05, 1e-3
# Scores with fewer rows are rare among those that repeat.
RARELY = 4.5
# Cells of equal variance of the smooth part, at most.
CELLS = 128
# Scores of single rows are joined in cells where they have no effect, or where there are very many points.
POOLED, MOST_POINTS, COVERED = 256, 4096, 0.05
# Scores that so few rows share may be repeated measurements of one case; and the share of rows that is nearly
# all.
FEW_ROWS, NEARLY_ALL = 10, 0.9
# Such scores are copies where their outcomes vary by less than this share of what is expected; a variance
# below this is not enough to tell.
COPIED, COPIED_FROM = 0.1, 1.0
# More distinct scores than this, all of them multiples of .001, are rounded ones.
FEW_LEVELS = 32
# Rows that each of few levels has on average at least, for a curve that is shown at each of them alone.
LEVEL_ROWS = 3
# Nodes with less posterior weight are left out of moments, and of simulations.
NEGLIGIBLE, RELEVANT = 0.01, 0.05
# Numbers of a table of data sets and scores that is held at once.
TOGETHER = 1 << 17


@dataclass(frozen=True, eq=False)
class TiedScores:
    """The scores of one problem where rows share them.

    Attributes
    ----------
    mass, score : arrays (points,)
        Share of the rows, and score, of each point: a distinct score, or several with one row each.
    spread : array
        Variance of the mean residual for outcomes of variance one, times the squared share.
    variance : array
        Variance of an outcome.
    rows : array
        Effective number of rows that share the score; 1 where none do.
    n : float
        Effective number of rows in all.
    group : array (steps,)
        The point of each step of the residuals.
    active : array (powers, nodes) of bool, optional
        Nodes that are looked at; all by default.
    """

    mass: Array
    score: Array
    spread: Array
    variance: Array
    rows: Array
    n: float
    group: Array
    active: Array | None = None

    @classmethod
    def of(cls, flat: Residuals, variance: Array, k: int) -> TiedScores | None:
        """Return the scores of problem k; None where no two rows share one."""
        held = flat.mass[k] > 0
        mass, spread, single = flat.mass[k, held], flat.spread[k, held], flat.one_score[k, held]
        rows = np.where(single, mass**2 / spread, 1.0)
        n, score = float(flat.n[k]), flat.score[k, held]
        rows = np.where(_copied(rows, flat[k].frequency[held], variance[k, held]), 1.0, rows)
        tied = rows > 1 + 1e-6
        if not tied.any():
            return None
        point = np.arange(tied.size)
        if tied.size > MOST_POINTS or coverage(mass, score, rows) < COVERED:
            time = VarianceTime(spread * variance[k, held], mass, POOLED)
            cell = np.where(tied, -1, ((time.start + time.stop) / 2).astype(np.intp))
            fresh = tied | (np.diff(cell, prepend=-1) != 0)
            point = np.cumsum(fresh) - 1
        group: Array = np.cumsum(held) - 1
        group = np.where(held, point[np.maximum(group, 0)], -1)

        def total(part: Array) -> Array:
            return np.bincount(point, part)

        whole = total(mass)
        return cls(
            whole / n,
            np.clip(total(mass * score) / whole, 0.0, 1.0),
            total(spread) / n**2,
            total(mass * variance[k, held]) / whole,
            np.where(total(tied) > 0, total(np.where(tied, rows, 0.0)), 1.0),
            n,
            group,
        )

    @cached_property
    def tied(self) -> Array:
        """Whether rows share the score of each point."""
        return self.rows > 1 + 1e-6

    @property
    def dense(self) -> bool:
        """Whether most rows share their score with two others or more."""
        return float(self.mass[self.rows >= 3 - 1e-6].sum()) > 0.5

    @cached_property
    def noise(self) -> Array:
        """Variance of the residual at each point, as a share of all rows."""
        return self.spread * self.variance

    @property
    def share(self) -> float:
        """Share of the rows that have their score in common with others."""
        return float(self.mass[self.tied].sum())

    @property
    def rounded(self) -> bool:
        """Whether the scores look like those of a continuous model that were rounded."""
        score = self.score[self.tied]
        return score.size > FEW_LEVELS and bool(np.allclose(1e3 * score, np.rint(1e3 * score), atol=1e-6))

    @property
    def thin(self) -> bool:
        """Whether nearly all rows that share a score share it with few others."""
        few = self.tied & (self.rows <= FEW_ROWS)
        return float(self.mass[few].sum()) > NEARLY_ALL * self.share

    @cached_property
    def prior(self) -> float:
        """Probability that scores have effects."""
        most = FEW_TIED + (ALL_TIED - FEW_TIED) * self.share
        if self.rounded:
            most = min(most, ROUNDED)
        return most * -float(np.expm1(-self.pairs * VISIBLE**2 / 2))

    @cached_property
    def pairs(self) -> float:
        """Number of pairs of rows that share a score."""
        return float((self.rows * (self.rows - 1))[self.tied].sum()) / 2

    @property
    def fitted(self) -> Array:
        """Intraclass correlations for which the smooth part is fitted."""
        return FITTED if self.pairs >= MANY_PAIRS else FEWER

    @cached_property
    def between(self) -> Array:
        """Shares of the nodes next to each rho, (rhos, nodes), linear in the log of rho."""
        # The node of no effect stands where the ratio of the others puts it.
        ladder = np.log(np.append(self.fitted[0] ** 2 / self.fitted[1], self.fitted))
        return np.stack([np.interp(np.log(RHO), ladder, row) for row in np.eye(ladder.size)], axis=-1)

    def residual_of(self, steps: Array) -> Array:
        """Return residuals at the points from those of steps, (..., steps), in the same unit."""
        held = self.group >= 0
        first = np.flatnonzero(np.diff(self.group[held], prepend=-1))
        return np.asarray(np.add.reduceat(steps[..., held], first, axis=-1))

    def time(self, rho: float | Array = 0.0, cells: int | None = None) -> VarianceTime:
        """Return cells of equal variance, where effects have these intraclass correlations."""
        return VarianceTime(self.noise * self.design(rho), self.mass, self.cells if cells is None else cells)

    def design(self, rho: float | Array) -> Array:
        """Return how much more the residual of each point varies for an intraclass correlation."""
        return np.asarray(1 + (self.rows - 1) * rho)

    @property
    def cells(self) -> int:
        """Cells of equal variance of the smooth part."""
        return int(np.clip(2 ** int(np.log2(max(self.n, 2))), 2, CELLS))

    @cached_property
    def powers(self) -> tuple[float, ...]:
        """How the intraclass correlation may depend on the frequency of a score."""
        rows = self.rows[self.tied]
        return POWERS if rows.max() > 2 * rows.min() and self.pairs >= MANY_PAIRS else (0.0,)

    def correlations(self, power: float, rho: Array) -> Array:
        """Return the intraclass correlations of all points, (rhos, points)."""
        tied = self.tied
        usual = np.exp(np.average(np.log(self.rows[tied]), weights=self.mass[tied]))
        return np.minimum(rho[:, None] * (usual / self.rows) ** power, LARGEST)

    @cached_property
    def nodes(self) -> Array:
        """Intraclass correlations of the nodes, (powers, nodes, points); the first of each power has none."""
        none = np.zeros((1, self.rows.size))
        return np.stack([np.vstack([none, self.correlations(power, self.fitted)]) for power in self.powers])

    @cached_property
    def times(self) -> list[VarianceTime]:
        """Cells of equal variance for each node, the same for all powers: those of the middle one."""
        return [self.time(rho) for rho in self.nodes[len(self.powers) // 2]]

    @cached_property
    def designs(self) -> tuple[Array, Array]:
        """Inverse design of each power and rho, (powers, points, rhos), and half the sum of its logarithm."""
        design = self.design(np.stack([self.correlations(power, RHO) for power in self.powers]))
        return np.moveaxis(1 / design, -1, -2), 0.5 * np.log(design).sum(axis=-1)

    @cached_property
    def effect_share(self) -> Array:
        """Variance of the effect at each point as a share of that at scores that rows share."""
        return np.where(self.tied, 1.0, coverage(self.mass, self.score, self.rows))

    def scattered(self, residual: Array) -> Array:
        """Return the log Bayes factor of independent gaps at shared scores against none, for data sets.

        It has no smooth part, which makes it cheap enough for thousands of simulated data sets.
        """
        tied = self.tied
        square = np.square(residual[:, tied]) / self.noise[tied]
        design = self.design(self.correlations(0.0, RHO[::4]))[:, tied]
        log = 0.5 * (square @ (1 - 1 / design).T - np.log(design).sum(axis=-1))
        return log_mean(log, LOG_PRIOR[::4] + np.log(4.0))


def _copied(rows: Array, frequency: Array, variance: Array) -> Array:
    """Tell which scores that few rows share are copies of one row: nearly all have outcomes that agree.

    Duplicated rows, and resamples of a bootstrap, say nothing about the score.

    >>> _copied(np.array([2.0, 3.0, 2.0, 2.0, 2.0]), np.array([1.0, 0.0, 1.0, 0.0, 1.0]), np.full(5, 0.25))
    array([ True,  True,  True,  True,  True])
    >>> _copied(np.full(5, 2.0), np.array([0.5, 0.0, 0.5, 0.0, 1.0]), np.full(5, 0.25)).any()
    np.False_
    """
    few = (rows > 1 + 1e-6) & (rows <= FEW_ROWS)
    within = float((rows * frequency * (1 - frequency))[few].sum())
    expected = float(((rows - 1) * variance)[few].sum())
    return few & bool(expected > COPIED_FROM and within < COPIED * expected)


def coverage(mass: Array, score: Array, rows: Array) -> float:
    """Return the share of the rows, apart from heavy and extreme scores, at scores that others share.

    It is less where hardly any scores have two to four rows: scores of single rows are then not rare ones
    among scores that repeat, but those of a continuous model.

    >>> score, rows = np.array([0.2, 0.4, 0.6, 1.0]), np.array([4.0, 1.0, 1.0, 90.0])
    >>> coverage(rows, score, rows)
    0.6666666666666666
    >>> coverage(rows, score, np.array([5.0, 1.0, 1.0, 90.0]))
    0.0
    """
    tied = rows > 1 + 1e-6
    apart = tied & ((mass >= HEAVY * mass.sum()) | (np.minimum(score, 1 - score) < EDGE))
    if np.all(tied):
        return 1.0
    shared, single = float(mass[tied & ~apart].sum()), float(mass[~tied].sum())
    rare = float(mass[tied & (rows < RARELY)].sum())
    return shared / (shared + single) * min(1.0, 2 * rare / single)


@dataclass(frozen=True, eq=False)
class _Smooth:
    """The smooth part of the gap at a node.

    Attributes
    ----------
    process : Process
    time : VarianceTime
    mean : array (sets, points)
        Posterior mean at each point.
    cost : array (sets,)
        Log of the Bayes factor of the process, less what its fit gained.
    """

    process: Process
    time: VarianceTime
    mean: Array
    cost: Array

    @classmethod
    def of(cls, time: VarianceTime, residual: Array) -> _Smooth:
        """Fit a process to residuals (sets, points)."""
        from scipy.fft import dct

        x = time.to_cells(residual) / residual.dtype.type(time.unit)
        process = Process.of(dct(x, norm="ortho"), np.array([1 / (time.unit**2 * time.cells)]))
        gain = (x * process.mean - 0.5 * process.mean**2).sum(axis=-1)
        mean = time.at_points((time.unit / time.mass).astype(residual.dtype) * process.mean)
        return cls(process, time, mean, process.evidence - gain)

    @cached_property
    def variance(self) -> Array:
        """Posterior variance at each point."""
        per = (self.time.unit / self.time.mass).astype(self.mean.dtype)
        return self.time.at_points(np.square(per * self.process.sd))


@dataclass(frozen=True, eq=False)
class ScoreEffects:
    """What data sets on the same scores say about effects.

    Attributes
    ----------
    ties : TiedScores
    residual : array (sets, points)
        Sums of outcome minus score, as shares of all rows.
    counts : bool
        Whether these are outcomes, whose counts are beta-binomial, or data that were simulated as normal.
    """

    ties: TiedScores
    residual: Array
    counts: bool = True

    @classmethod
    def of(cls, flat: Residuals, variance: Array, k: int) -> ScoreEffects | None:
        """Return the effects of problem k; None where no two rows share a score."""
        ties = TiedScores.of(flat, variance, k)
        return None if ties is None else cls(ties, ties.residual_of(flat.residual[k : k + 1]) / ties.n)

    def _smooth(self, node: int, some: slice | Array) -> _Smooth:
        """Return the smooth part at a node for some sets."""
        if len(self.residual) > 1:
            return _Smooth.of(self.ties.times[node], self.residual[some])
        return self._smooth_at_nodes[node]

    @cached_property
    def _smooth_at_nodes(self) -> list[_Smooth]:
        """The smooth part of a single data set at all nodes."""
        return [_Smooth.of(time, self.residual) for time in self.ties.times]

    def _gaps(self, weight: Array) -> Iterator[tuple[Array, Array, Array, Array]]:
        """Yield some sets, their weights of a node, and mean and variance of the gap at each point there.

        The weights are (powers, nodes, sets).
        """
        step = max(1, TOGETHER // self.ties.mass.size)
        for node in range(weight.shape[1]):
            every = np.flatnonzero(weight[:, node].any(axis=0))
            for first in range(0, every.size, step):
                some = every[first : first + step]
                smooth = self._smooth(node, some)
                for power in np.flatnonzero(weight[:, node, some].any(axis=1)):
                    rho = self.ties.nodes[power, node]
                    gap = self._effect(smooth.mean, smooth.variance, rho, some)
                    yield some, weight[power, node, some], *gap

    def _log_counts(self, mu: Array, rho: Array, some: slice | Array) -> Array:
        """Return the beta-binomial log likelihood of the outcomes, (powers, sets), up to a constant.

        The mean is (sets, points), and the intraclass correlations are (powers, points).
        """
        from scipy.special import betaln, xlog1py, xlogy

        ties, tied = self.ties, self.ties.tied
        trials = ties.mass**2 / ties.spread
        share = np.clip(ties.score + self.residual[some] / ties.mass, 0.0, 1.0)
        yes, no = trials * share, trials * (1 - share)
        binomial = xlogy(yes, mu) + xlog1py(no, -mu)
        if not rho.any():
            return np.asarray(binomial.sum(axis=-1))[None]
        k = (1 / rho[:, tied] - 1)[:, None]
        a, b = mu[:, tied] * k, (1 - mu[:, tied]) * k
        log = (betaln(a + yes[:, tied], b + no[:, tied]) - betaln(a, b)).sum(axis=-1)
        return np.asarray(log + binomial[:, ~tied].sum(axis=-1))

    def _mean(self, f: Array) -> Array:
        """Return the probability of the outcome where the effect is zero."""
        least = 0.25 / self.ties.n
        return np.clip(self.ties.score.astype(f.dtype) + f, least, 1 - least)

    def _effect(self, f: Array, vf: Array, rho: Array, some: slice | Array) -> tuple[Array, Array]:
        """Return posterior mean and variance of the gap at each point, given the smooth part."""
        ties, mu, kind = self.ties, self._mean(f), f.dtype
        kappa = np.where(ties.tied, 1 - (1 - rho) / ties.design(rho), 0.0).astype(kind)
        prior = (rho * ties.effect_share * (1 - kappa)).astype(kind)
        mean = f + kappa * (self.residual[some] / ties.mass.astype(kind) - f)
        return mean, (1 - kappa) ** 2 * vf + prior * (mu * (1 - mu))

    @cached_property
    def log(self) -> Array:
        """Log likelihood of each rho against no effect, (powers, rhos, sets)."""
        sets, points = self.residual.shape
        step = max(1, TOGETHER // points)
        parts = [self._likelihood(slice(first, first + step)) for first in range(0, sets, step)]
        return np.concatenate(parts, axis=-1)

    def _likelihood(self, some: slice) -> Array:
        """Return the log likelihoods of some of the sets."""
        ties, kind = self.ties, self.residual.dtype
        powers, nodes = ties.nodes.shape[:2]
        active = np.ones((powers, nodes), dtype=bool) if ties.active is None else ties.active
        inverse, half_logs = ties.designs
        between = ties.between
        log: Array = np.zeros((powers, RHO.size, len(self.residual[some])))
        root = np.sqrt(ties.noise)
        of_gap, of_residual = (ties.mass / root).astype(kind), (1 / root).astype(kind)
        for node in np.flatnonzero(active.any(axis=0)):
            smooth = self._smooth(int(node), some)
            f, cost, which = smooth.mean, smooth.cost, np.flatnonzero(active[:, node])
            square = np.square(self.residual[some] * of_residual - of_gap * f)
            rho = ties.nodes[which if node else which[:1], node]
            # The normal likelihood is exact between nodes up to what it misses at the nodes.
            correction: Array = np.zeros((len(rho), len(f)))
            if self.counts:
                design = ties.design(rho)
                normal = -0.5 * (square @ (1 / design).T + np.log(design).sum(axis=-1))
                correction = self._log_counts(self._mean(f), rho, some) - normal.T
            if node == 0:
                none = cost + correction[0] - 0.5 * square.sum(axis=-1)
            near = between[:, node] > 0
            table = np.concatenate(inverse[which][:, :, near], axis=1).astype(kind)
            logs = -0.5 * (square @ table).reshape(len(f), which.size, -1) - half_logs[which][:, near]
            logs = np.moveaxis(logs, 0, -1) + (cost + correction)[:, None]
            log[np.ix_(which, near)] += between[near, node, None] * logs
        log -= none
        # A rho counts where the nodes on both of its sides are looked at.
        log[(between @ ~active.T > 0).T] = -np.inf
        return log

    @property
    def _log_prior(self) -> Array:
        return np.tile(LOG_PRIOR - np.log(len(self.ties.powers)), len(self.ties.powers))

    @property
    def evidence(self) -> Array:
        """Log of the Bayes factor of effects on top of a smooth gap against that gap alone, of each set."""
        return log_mean(self.log.reshape(-1, self.log.shape[-1]).T, self._log_prior)

    @cached_property
    def weight(self) -> Array:
        """Posterior weight of each node, (powers, nodes, sets)."""
        log = self.log
        weight = softmax(log.reshape(-1, log.shape[-1]).T + self._log_prior).T.reshape(log.shape)
        return np.asarray(np.einsum("pqs,qn->pns", weight, self.ties.between))

    def focused(self) -> ScoreEffects:
        """Return the same for simulations, which look at the nodes alone that matter here.

        Nodes of less effect next to them are kept. What these data say stays as it is.
        """
        kept = self.weight.max(axis=-1) > RELEVANT
        kept[:, :-1] |= kept[:, 1:]
        kept[kept.any(axis=1), 0] = True
        focused = replace(self, ties=replace(self.ties, active=kept))
        focused.__dict__["log"] = self.log
        return focused

    def expected(self, needed: Array) -> Array:
        """Return the expected positive part, mean and square of the gap over all rows, (3, sets).

        They are zero for sets that are not needed.
        """
        total, mass = np.zeros((3, len(self.residual))), self.ties.mass.astype(self.residual.dtype)
        for some, weight, mean, variance in self._gaps(self._kept * needed):
            parts = positive(mean, np.sqrt(variance)), mean, mean**2 + variance
            total[:, some] += weight * np.stack([part @ mass for part in parts])
        return total

    @cached_property
    def _kept(self) -> Array:
        """Weights of the nodes without those that are negligible."""
        weight = np.where(self.weight > NEGLIGIBLE, self.weight, 0.0)
        return np.asarray(weight / weight.sum(axis=(0, 1)))

    @cached_property
    def moments(self) -> tuple[Array, Array]:
        """Posterior mean and mean square of the gap at each point, (sets, points)."""
        mean, square = np.zeros((2, *self.residual.shape))
        for some, weight, own, variance in self._gaps(self._kept):
            mean[some] += weight[:, None] * own
            square[some] += weight[:, None] * (own**2 + variance)
        return mean, square

    def draw(self, rng: np.random.Generator, size: int) -> Array:
        """Draw gaps of a single data set, (size, points)."""
        ties, every, weight = self.ties, slice(None), self.weight[..., 0]
        count = rng.multinomial(size, weight.ravel() / weight.sum()).reshape(weight.shape)
        drawn = []
        for power, node in zip(*np.nonzero(count), strict=True):
            time, process = ties.times[node], self._smooth(int(node), every).process
            f = time.at_points(process.draw(0, rng, int(count[power, node])) * (time.unit / time.mass))
            mean, variance = self._effect(f, np.zeros(1), ties.nodes[power, node], every)
            drawn.append(mean + np.sqrt(variance) * rng.standard_normal(mean.shape))
        return np.concatenate(drawn)


def is_few(held: Residuals) -> bool:
    """Return whether the scores of a single problem are few, and repeat."""
    return bool(held.mass.size <= FEW_LEVELS and held.mass.size * LEVEL_ROWS <= held.n + 1e-6)

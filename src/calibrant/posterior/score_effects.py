"""Score effects component of the model average: one random effect for each distinct score, plus a smooth gap.

Trees, lookup tables and rounded models give the same score to many rows, and the gap may differ from score to
score. The gap at a distinct score v is

    g(v) = f(v) + e(v),    Var e(v) = rho mu (1 - mu),    mu = v + f(v),

with a smooth process f (see `process`) and independent effects e. Rows that share a score then have
intraclass correlation rho, and the number of positive outcomes among m such rows is beta-binomial: its
variance is the design effect 1 + (m - 1) rho times the binomial variance. Data without replication do not
inform about rho.

For a few values of rho (the nodes) the smooth part is fitted on cells of equal variance that include the
design effect. The likelihood of rho is the beta-binomial one at the fitted mean, plus the log Bayes factor of
the smooth part minus the log likelihood that its fit gained. A Gaussian likelihood alone would mistake a
wrong variance for over-dispersion where outcomes are rare.

See docs/methods/default-estimator.md, "Score effects".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from calibrant.parallel import cached_property
from calibrant.posterior.dyadic_partition import expected_positive_part
from calibrant.posterior.process import Process, log_mean, softmax
from calibrant.posterior.variance_time import VarianceTime
from calibrant.score_data import Array, Residuals
from calibrant.settings import PRIOR, geometric

# Nodes: intraclass correlations rho for which the smooth part is fitted; in between, likelihoods are
# interpolated. Number of nodes, and ratio of the smallest node to the smallest rho, for few and for many
# pairs of rows with equal scores. More nodes take more time.
NODES_OF_FEW_PAIRS, NODES_OF_MANY_PAIRS = (4, 4.0), (6, 2.0)
# Largest number of cells of equal variance of the smooth part (resolution).
CELLS = 128
# Unrepeated scores are pooled into POOLED cells if there are more than MOST_POINTS points (saves time), or if
# they have no effect.
POOLED, MOST_POINTS = 256, 4096
# Nodes with less posterior probability are left out of moments, and out of simulations, which saves time.
NEGLIGIBLE, RELEVANT = 0.01, 0.05
# Largest number of elements of a (data sets, points) table that is held in memory at once.
CHUNK_SIZE = 1 << 17
# Pairs of rows with equal scores from which there are many nodes and all frequency powers.
MANY_PAIRS = 3000
# Largest number of distinct scores that are few.
FEW_SCORES = 32
# Rows that share a score, if a data set repeats its scores.
REPEATED_ROWS = 3
# Smallest mean probability of score effects, times n: densities of beta distributions must exist.
SMALLEST_EXPECTED_OUTCOMES = 0.25
# Share of repeated scores below which unrepeated scores have no effects.
LEAST_REPEATED_SHARE = 0.05
# Largest number of rows of a score that may be copies of one case (the study has none).
FEW_ROWS = 10
# Rows are copies (the study has none) if outcomes vary less than this share of their variance.
COPIED_VARIANCE_RATIO = 0.1
# Repeated scores with fewer rows are rare.
RARE_ROWS = 4.5
# Unrepeated rows count as repeated up to this many times the rows of rare scores.
RARE_FACTOR = 2.0
# Scores closer to 0 or 1 do not count as repeated.
EXTREME = 0.001
# Share that counts as nearly all: of the rows, those that share their score; of these, those at scores with
# few rows.
NEARLY_ALL = 0.9


@dataclass(frozen=True, eq=False)
class TiedScores:
    """Distinct scores of one problem in which rows share scores.

    A point is a distinct score, or several unrepeated scores that are pooled into one cell.

    Attributes
    ----------
    mass, score : arrays (points,)
        Share of the rows, and score, of each point.
    spread : array (points,)
        Variance of the residual sum, divided by n^2, for outcomes of unit variance.
    variance : array (points,)
        Variance of an outcome.
    rows : array (points,)
        Effective number of rows that share the score; 1 for unrepeated scores.
    n : float
        Effective sample size.
    group : array (steps,)
        Index of the point of each step of the residuals; -1 for steps without rows.
    active : array (powers, nodes) of bool, optional
        Nodes to be computed; all by default.
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
        """Return the distinct scores of problem k; None if no two rows share a score."""
        # A row of vanishing weight would divide zero by zero.
        occupied = (flat.mass[k] ** 2 > 0) & (flat.spread[k] > 0)
        mass, spread, single = (
            flat.mass[k, occupied],
            flat.spread[k, occupied],
            flat.single_score[k, occupied],
        )
        rows = np.where(single, mass**2 / spread, 1.0)
        n, score = float(flat.n[k]), flat.score[k, occupied]
        rows = np.where(_is_copy(rows, flat[k].frequency[occupied], variance[k, occupied]), 1.0, rows)
        tied = rows > 1 + 1e-6
        if not tied.any():
            return None
        point = np.arange(tied.size)
        if tied.size > MOST_POINTS or repeated_share(mass, score, rows) < LEAST_REPEATED_SHARE:
            time = VarianceTime(spread * variance[k, occupied], mass, POOLED)
            cell = np.where(tied, -1, ((time.start + time.stop) / 2).astype(np.intp))
            is_first = tied | (np.diff(cell, prepend=-1) != 0)
            point = np.cumsum(is_first) - 1
        group: Array = np.cumsum(occupied) - 1
        group = np.where(occupied, point[np.maximum(group, 0)], -1)

        def sum_by_score(values: Array) -> Array:
            return np.bincount(point, values)

        total_mass = sum_by_score(mass)
        return cls(
            total_mass / n,
            np.clip(sum_by_score(mass * score) / total_mass, 0.0, 1.0),
            sum_by_score(spread) / n**2,
            sum_by_score(mass * variance[k, occupied]) / total_mass,
            np.where(sum_by_score(tied) > 0, sum_by_score(np.where(tied, rows, 0.0)), 1.0),
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
        return float(self.mass[self.rows >= REPEATED_ROWS - 1e-6].sum()) > 0.5

    @cached_property
    def noise(self) -> Array:
        """Variance of the residual sum of each point, divided by n^2, without score effects."""
        return self.spread * self.variance

    @property
    def share(self) -> float:
        """Share of the rows that share their score with other rows."""
        return float(self.mass[self.tied].sum())

    @property
    def thin(self) -> bool:
        """Whether nearly all rows that share a score share it with few others."""
        few = self.tied & (self.rows <= FEW_ROWS)
        return float(self.mass[few].sum()) > NEARLY_ALL * self.share

    @cached_property
    def prior(self) -> float:
        """Prior probability of score effects."""
        largest = PRIOR.effects_weight_few_tied
        largest += (PRIOR.effects_weight_all_tied - largest) * self.share
        return largest * -float(np.expm1(-self.pairs * PRIOR.visible_correlation**2 / 2))

    @cached_property
    def pairs(self) -> float:
        """Number of pairs of rows that share a score."""
        return float((self.rows * (self.rows - 1))[self.tied].sum()) / 2

    @property
    def fitted(self) -> Array:
        """Intraclass correlations for which the smooth part is fitted."""
        count, ratio = NODES_OF_MANY_PAIRS if self.pairs >= MANY_PAIRS else NODES_OF_FEW_PAIRS
        return np.array(geometric(ratio * PRIOR.smallest_correlation, PRIOR.largest_correlation, count))

    @cached_property
    def interpolation_weights(self) -> Array:
        """Weights for linear interpolation in log rho between the nodes, (rhos, nodes)."""
        # On the log scale, the node of no effect is placed at the same ratio as between the first two others.
        log_nodes = np.log(np.append(self.fitted[0] ** 2 / self.fitted[1], self.fitted))
        log_rho = np.log(PRIOR.correlations)
        return np.stack([np.interp(log_rho, log_nodes, row) for row in np.eye(log_nodes.size)], axis=-1)

    def residual_of(self, steps: Array) -> Array:
        """Return residual sums at the points from those of the steps, (..., steps)."""
        occupied = self.group >= 0
        first = np.flatnonzero(np.diff(self.group[occupied], prepend=-1))
        return np.asarray(np.add.reduceat(steps[..., occupied], first, axis=-1))

    def time(self, rho: float | Array = 0.0, cells: int | None = None) -> VarianceTime:
        """Return cells of equal variance, including the design effect of these intraclass correlations."""
        return VarianceTime(
            self.noise * self.design_effect(rho), self.mass, self.cells if cells is None else cells
        )

    def design_effect(self, rho: float | Array) -> Array:
        """Return the design effect 1 + (rows - 1) rho of each point."""
        return np.asarray(1 + (self.rows - 1) * rho)

    @property
    def cells(self) -> int:
        """Number of cells of equal variance of the smooth part."""
        return int(np.clip(2 ** int(np.log2(max(self.n, 2))), 2, CELLS))

    @cached_property
    def powers(self) -> tuple[float, ...]:
        """Powers of the frequency of a score with which rho may fall."""
        rows = self.rows[self.tied]
        # Powers cannot be told apart if numbers of rows hardly differ.
        informative = rows.max() > 2 * rows.min() and self.pairs >= MANY_PAIRS
        return PRIOR.frequency_powers if informative else (0.0,)

    def correlations(self, power: float, rho: Array) -> Array:
        """Return the intraclass correlations of all points, (rhos, points)."""
        tied = self.tied
        typical = np.exp(np.average(np.log(self.rows[tied]), weights=self.mass[tied]))
        return np.minimum(rho[:, None] * (typical / self.rows) ** power, PRIOR.largest_correlation)

    @cached_property
    def nodes(self) -> Array:
        """Intraclass correlations at the nodes, (powers, nodes, points); the first node has no effect."""
        none = np.zeros((1, self.rows.size))
        return np.stack([np.vstack([none, self.correlations(power, self.fitted)]) for power in self.powers])

    @cached_property
    def times(self) -> list[VarianceTime]:
        """Cells of equal variance of each node; those of the middle power are used for all powers."""
        return [self.time(rho) for rho in self.nodes[len(self.powers) // 2]]

    @cached_property
    def inverse_design_effects(self) -> tuple[Array, Array]:
        """Inverse design effects (powers, points, rhos) and half the sums of their logs (powers, rhos)."""
        design_effect = self.design_effect(
            np.stack([self.correlations(power, PRIOR.correlations) for power in self.powers])
        )
        return np.moveaxis(1 / design_effect, -1, -2), 0.5 * np.log(design_effect).sum(axis=-1)

    @cached_property
    def effect_share(self) -> Array:
        """Variance of the effect at each point, relative to that at repeated scores."""
        return np.where(self.tied, 1.0, repeated_share(self.mass, self.score, self.rows))

    def independent_gaps_log_bayes_factor(self, residual: Array) -> Array:
        """Return the log Bayes factor of independent gaps at repeated scores against no gap, for data sets.

        There is no smooth part, which makes it fast enough for thousands of simulated data sets.
        """
        tied = self.tied
        square = np.square(residual[:, tied]) / self.noise[tied]
        design_effect = self.design_effect(self.correlations(0.0, PRIOR.correlations[::4]))[:, tied]
        log = 0.5 * (square @ (1 - 1 / design_effect).T - np.log(design_effect).sum(axis=-1))
        return log_mean(log, log_prior()[::4] + np.log(4.0))


def log_prior() -> Array:
    """Return the log prior of the intraclass correlations (log-normal on the grid)."""
    log = -0.5 * np.square(
        np.log(PRIOR.correlations / PRIOR.median_correlation) / PRIOR.log_sd_of_correlation
    )
    return np.asarray(log - np.logaddexp.reduce(log))


def _is_copy(rows: Array, frequency: Array, variance: Array) -> Array:
    """Return which scores are copies of one row: few rows share them, and their outcomes almost always agree.

    Duplicated rows and bootstrap resamples do not inform about score effects.

    >>> _is_copy(np.array([2.0, 3.0, 2.0, 2.0, 2.0]), np.array([1.0, 0.0, 1.0, 0.0, 1.0]), np.full(5, 0.25))
    array([ True,  True,  True,  True,  True])
    >>> _is_copy(np.full(5, 2.0), np.array([0.5, 0.0, 0.5, 0.0, 1.0]), np.full(5, 0.25)).any()
    np.False_
    """
    few = (rows > 1 + 1e-6) & (rows <= FEW_ROWS)
    within = float((rows * frequency * (1 - frequency))[few].sum())
    expected = float(((rows - 1) * variance)[few].sum())
    return few & bool(expected > 1 and within < COPIED_VARIANCE_RATIO * expected)


def repeated_share(mass: Array, score: Array, rows: Array) -> float:
    """Return the share of the rows with repeated scores, apart from heavy and extreme scores.

    It is reduced if few rows are at scores with two to four rows: unrepeated scores are then not rare values
    of a discrete model, but those of a continuous model.

    >>> score, rows = np.array([0.2, 0.4, 0.6, 1.0]), np.array([4.0, 1.0, 1.0, 90.0])
    >>> repeated_share(rows, score, rows)
    0.6666666666666666
    >>> repeated_share(rows, score, np.array([5.0, 1.0, 1.0, 90.0]))
    0.0
    """
    tied = rows > 1 + 1e-6
    excluded = tied & ((mass >= PRIOR.heavy_share * mass.sum()) | (np.minimum(score, 1 - score) < EXTREME))
    if np.all(tied):
        return 1.0
    shared, single = float(mass[tied & ~excluded].sum()), float(mass[~tied].sum())
    rare = float(mass[tied & (rows < RARE_ROWS)].sum())
    return shared / (shared + single) * min(1.0, RARE_FACTOR * rare / single)


@dataclass(frozen=True, eq=False)
class _Smooth:
    """Smooth part of the gap at a node.

    Attributes
    ----------
    process : Process
        Posterior in cells.
    time : VarianceTime
        Cells of equal variance.
    mean : array (sets, points)
        Posterior mean at each point.
    cost : array (sets,)
        Log Bayes factor of the process, minus the log likelihood that its fit gained.
    """

    process: Process
    time: VarianceTime
    mean: Array
    cost: Array

    @classmethod
    def of(cls, time: VarianceTime, residual: Array) -> _Smooth:
        """Fit a process to residual sums, (sets, points)."""
        from scipy.fft import dct

        x = time.to_cells(residual) / residual.dtype.type(time.unit)
        process = Process.of(dct(x, norm="ortho"), np.array([1 / (time.unit**2 * time.cells)]))
        gain = (x * process.mean - 0.5 * process.mean**2).sum(axis=-1)
        mean = time.at_points((time.unit / time.mass).astype(residual.dtype) * process.mean)
        return cls(process, time, mean, process.log_bayes_factor - gain)

    @cached_property
    def variance(self) -> Array:
        """Posterior variance at each point."""
        per_unit = (self.time.unit / self.time.mass).astype(self.mean.dtype)
        return self.time.at_points(np.square(per_unit * self.process.sd))


@dataclass(frozen=True, eq=False)
class ScoreEffects:
    """Posterior of the score effects for data sets on the same scores.

    Attributes
    ----------
    ties : TiedScores
        The distinct scores.
    residual : array (sets, points)
        Residual sums (outcome minus score), divided by n.
    counts : bool
        True for observed outcomes, with a beta-binomial likelihood; False for simulated normal data.
    """

    ties: TiedScores
    residual: Array
    counts: bool = True

    @classmethod
    def of(cls, flat: Residuals, variance: Array, k: int) -> ScoreEffects | None:
        """Return the score effects of problem k; None if no two rows share a score."""
        ties = TiedScores.of(flat, variance, k)
        return None if ties is None else cls(ties, ties.residual_of(flat.residual[k : k + 1]) / ties.n)

    def _smooth(self, node: int, sets: slice | Array) -> _Smooth:
        """Return the smooth part at a node for a subset of the data sets."""
        if len(self.residual) > 1:
            return _Smooth.of(self.ties.times[node], self.residual[sets])
        return self._smooth_at_nodes[node]

    @cached_property
    def _smooth_at_nodes(self) -> list[_Smooth]:
        """Smooth part of a single data set at all nodes."""
        return [_Smooth.of(time, self.residual) for time in self.ties.times]

    def _gaps(self, weight: Array) -> Iterator[tuple[Array, Array, Array, Array]]:
        """Iterate over nodes and chunks of data sets, given weights (powers, nodes, sets).

        Yields the indices of the data sets, their weights of the node, and posterior mean and variance of the
        gap at each point.
        """
        step = max(1, CHUNK_SIZE // self.ties.mass.size)
        for node in range(weight.shape[1]):
            relevant = np.flatnonzero(weight[:, node].any(axis=0))
            for first in range(0, relevant.size, step):
                sets = relevant[first : first + step]
                smooth = self._smooth(node, sets)
                for power in np.flatnonzero(weight[:, node, sets].any(axis=1)):
                    rho = self.ties.nodes[power, node]
                    gap = self._effect(smooth.mean, smooth.variance, rho, sets)
                    yield sets, weight[power, node, sets], *gap

    def _log_counts(self, mu: Array, rho: Array, sets: slice | Array) -> Array:
        """Return the beta-binomial log likelihood of the outcomes, (powers, sets), up to a constant.

        Parameters
        ----------
        mu : array (sets, points)
            Mean probability.
        rho : array (powers, points)
            Intraclass correlations.
        sets : slice or array
            Data sets.
        """
        from scipy.special import betaln, xlog1py, xlogy

        ties, tied = self.ties, self.ties.tied
        trials = ties.mass**2 / ties.spread
        share = np.clip(ties.score + self.residual[sets] / ties.mass, 0.0, 1.0)
        yes, no = trials * share, trials * (1 - share)
        binomial = xlogy(yes, mu) + xlog1py(no, -mu)
        if not rho.any():
            return np.asarray(binomial.sum(axis=-1))[None]
        k = (1 / rho[:, tied] - 1)[:, None]
        a, b = mu[:, tied] * k, (1 - mu[:, tied]) * k
        log = (betaln(a + yes[:, tied], b + no[:, tied]) - betaln(a, b)).sum(axis=-1)
        return np.asarray(log + binomial[:, ~tied].sum(axis=-1))

    def _mean(self, f: Array) -> Array:
        """Return the probability mu of the outcome at each point if the effect is zero."""
        margin = SMALLEST_EXPECTED_OUTCOMES / self.ties.n
        return np.clip(self.ties.score.astype(f.dtype) + f, margin, 1 - margin)

    def _effect(self, f: Array, vf: Array, rho: Array, sets: slice | Array) -> tuple[Array, Array]:
        """Return posterior mean and variance of the gap, given mean f and variance vf of the smooth part."""
        ties, mu, dtype = self.ties, self._mean(f), f.dtype
        kappa = np.where(ties.tied, 1 - (1 - rho) / ties.design_effect(rho), 0.0).astype(dtype)
        prior = (rho * ties.effect_share * (1 - kappa)).astype(dtype)
        mean = f + kappa * (self.residual[sets] / ties.mass.astype(dtype) - f)
        return mean, (1 - kappa) ** 2 * vf + prior * (mu * (1 - mu))

    @cached_property
    def log(self) -> Array:
        """Log likelihood ratio of each rho against no effect, (powers, rhos, sets)."""
        sets, points = self.residual.shape
        step = max(1, CHUNK_SIZE // points)
        parts = [self._likelihood(slice(first, first + step)) for first in range(0, sets, step)]
        return np.concatenate(parts, axis=-1)

    def _likelihood(self, sets: slice) -> Array:
        """Return the log likelihood ratios of a subset of the data sets."""
        ties, dtype = self.ties, self.residual.dtype
        powers, nodes = ties.nodes.shape[:2]
        active = np.ones((powers, nodes), dtype=bool) if ties.active is None else ties.active
        inverse, half_logs = ties.inverse_design_effects
        interpolation_weights = ties.interpolation_weights
        log: Array = np.zeros((powers, len(interpolation_weights), len(self.residual[sets])))
        root = np.sqrt(ties.noise)
        of_gap, of_residual = (ties.mass / root).astype(dtype), (1 / root).astype(dtype)
        for node in np.flatnonzero(active.any(axis=0)):
            smooth = self._smooth(int(node), sets)
            f, cost, active_powers = smooth.mean, smooth.cost, np.flatnonzero(active[:, node])
            square = np.square(self.residual[sets] * of_residual - of_gap * f)
            rho = ties.nodes[active_powers if node else active_powers[:1], node]
            # At the nodes the normal likelihood is corrected to the beta-binomial one; in between, the
            # correction is interpolated.
            correction: Array = np.zeros((len(rho), len(f)))
            if self.counts:
                design_effect = ties.design_effect(rho)
                normal = -0.5 * (square @ (1 / design_effect).T + np.log(design_effect).sum(axis=-1))
                correction = self._log_counts(self._mean(f), rho, sets) - normal.T
            if node == 0:
                no_effect = cost + correction[0] - 0.5 * square.sum(axis=-1)
            near = interpolation_weights[:, node] > 0
            table = np.concatenate(inverse[active_powers][:, :, near], axis=1).astype(dtype)
            logs = (
                -0.5 * (square @ table).reshape(len(f), active_powers.size, -1)
                - half_logs[active_powers][:, near]
            )
            logs = np.moveaxis(logs, 0, -1) + (cost + correction)[:, None]
            log[np.ix_(active_powers, near)] += interpolation_weights[near, node, None] * logs
        log -= no_effect
        # A value of rho is used only if the nodes on both sides of it are active.
        log[(interpolation_weights @ ~active.T > 0).T] = -np.inf
        return log

    @property
    def _log_prior(self) -> Array:
        """Log prior of each (power, rho), flattened."""
        return np.tile(log_prior() - np.log(len(self.ties.powers)), len(self.ties.powers))

    @property
    def log_bayes_factor(self) -> Array:
        """Log Bayes factor of a smooth gap with score effects against a smooth gap alone."""
        return log_mean(self.log.reshape(-1, self.log.shape[-1]).T, self._log_prior)

    @cached_property
    def weight(self) -> Array:
        """Posterior probability of each node, (powers, nodes, sets)."""
        log = self.log
        weight = softmax(log.reshape(-1, log.shape[-1]).T + self._log_prior).T.reshape(log.shape)
        return np.asarray(np.einsum("pqs,qn->pns", weight, self.ties.interpolation_weights))

    def for_simulation(self) -> ScoreEffects:
        """Return the same for simulations, restricted to the nodes that matter for these data.

        The next node with a smaller effect is kept as well. The likelihoods of these data are not recomputed.
        """
        kept = self.weight.max(axis=-1) > RELEVANT
        kept[:, :-1] |= kept[:, 1:]
        kept[kept.any(axis=1), 0] = True
        for_simulation = replace(self, ties=replace(self.ties, active=kept))
        for_simulation.__dict__["log"] = self.log
        return for_simulation

    def expected(self, needed: Array) -> Array:
        """Return the expected positive part, mean and square of the gap over all rows, (3, sets).

        They are zero for data sets that are not `needed`.
        """
        total, mass = np.zeros((3, len(self.residual))), self.ties.mass.astype(self.residual.dtype)
        for sets, weight, mean, variance in self._gaps(self._probable_nodes * needed):
            parts = expected_positive_part(mean, np.sqrt(variance)), mean, mean**2 + variance
            total[:, sets] += weight * np.stack([values @ mass for values in parts])
        return total

    @cached_property
    def _probable_nodes(self) -> Array:
        """Posterior probabilities of the nodes, renormalized without the negligible ones."""
        weight = np.where(self.weight > NEGLIGIBLE, self.weight, 0.0)
        return np.asarray(weight / weight.sum(axis=(0, 1)))

    @cached_property
    def moments(self) -> tuple[Array, Array]:
        """Posterior mean and mean square of the gap at each point, (sets, points)."""
        mean, square = np.zeros((2, *self.residual.shape))
        for sets, weight, gap, variance in self._gaps(self._probable_nodes):
            mean[sets] += weight[:, None] * gap
            square[sets] += weight[:, None] * (gap**2 + variance)
        return mean, square

    def draw(self, rng: np.random.Generator, size: int) -> Array:
        """Draw gaps of a single data set from the posterior, (size, points)."""
        ties, all_sets, weight = self.ties, slice(None), self.weight[..., 0]
        count = rng.multinomial(size, weight.ravel() / weight.sum()).reshape(weight.shape)
        drawn = []
        for power, node in zip(*np.nonzero(count), strict=True):
            time, process = ties.times[node], self._smooth(int(node), all_sets).process
            f = time.at_points(process.draw(0, rng, int(count[power, node])) * (time.unit / time.mass))
            mean, variance = self._effect(f, np.zeros(1), ties.nodes[power, node], all_sets)
            drawn.append(mean + np.sqrt(variance) * rng.standard_normal(mean.shape))
        return np.concatenate(drawn)


def has_few_scores(occupied: Residuals) -> bool:
    """Return whether the distinct scores of a single problem are few and repeated."""
    return bool(occupied.mass.size <= FEW_SCORES and occupied.mass.size * REPEATED_ROWS <= occupied.n + 1e-6)

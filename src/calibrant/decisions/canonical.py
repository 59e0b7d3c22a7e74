"""Decision regret for three or more classes, from the softmax posterior.

The method is described in docs/methods/decision-regret.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.decisions.binary import TIED, Gain, bootstrap_shares, possible_gain
from calibrant.decisions.cost import Cost
from calibrant.estimators.canonical.softmax import canonical_error
from calibrant.parallel import cached_property
from calibrant.posterior.process import softmax
from calibrant.posterior.softmax import SoftmaxPosterior
from calibrant.score_data import Array
from calibrant.score_data.simplex import Simplex
from calibrant.settings import DECISIONS
from calibrant.tasks import CalibrationTask

# Number of score entries at which posterior draws are evaluated, which bounds the cost, and their seed.
MAX_ENTRIES, SEED = 50_000, 20240715
# Posterior draws of the block sizes, and draws of the coefficients for each of them.
SIZE_DRAWS, COEFFICIENT_DRAWS = 8, 12


@dataclass(frozen=True, eq=False)
class CanonicalDecisions:
    """Score vectors, and their class probabilities under the softmax posterior.

    Attributes
    ----------
    rows : Simplex
    posterior : SoftmaxPosterior
    held_out : array (rows, classes)
        Class probabilities of each row, by a model fitted to the other folds.
    cost : array (classes, actions)
        Costs, with classes in the order of `rows`.
    """

    rows: Simplex
    posterior: SoftmaxPosterior
    held_out: Array
    cost: Array

    @classmethod
    def of(cls, task: CalibrationTask, cost: Cost) -> CanonicalDecisions:
        """Collect rows and posterior of a canonical calibration task."""
        error = canonical_error(task)
        return cls(task.simplex, error.posterior, error.held_out, cost.matrix[task.columns])

    @property
    def top(self) -> float:
        """The largest difference between the costs of two actions for one class."""
        return float(np.ptp(self.cost, axis=1).max())

    def optimal_actions(self, probability: Array) -> Array:
        """Return the optimal action of each row: the first of those with the least expected cost."""
        expected = probability @ self.cost
        limit = expected.min(axis=1, keepdims=True) + TIED * max(self.top, 1e-300)
        return np.argmax(expected <= limit, axis=1)

    @cached_property
    def actions(self) -> Array:
        """The optimal action of each row if the scores were calibrated."""
        return self.optimal_actions(self.rows.score)

    def excess_cost(self, probability: Array, actions: Array) -> Array:
        """Return the expected cost of actions minus that of the optimal actions, for each row."""
        expected = probability @ self.cost
        return np.asarray(expected[np.arange(len(actions)), actions] - expected.min(axis=1))

    @cached_property
    def value(self) -> float:
        """The regret under the posterior, and at least the gain on held-out rows."""
        return max(self._against_posterior(self.actions), float(self.gain.value[0]))

    def _against_posterior(self, actions: Array) -> float:
        """Return the regret of actions under the posterior, times the probability of a calibration gap."""
        excess = self.excess_cost(self.posterior.predict(self.rows.score), actions)
        return self.posterior.gap_probability * self.rows.mean(excess)[0]

    @cached_property
    def gain(self) -> Gain:
        """Gain of acting on held-out probabilities; its expectation is at most the regret."""
        cost = self.cost[self.rows.code]
        i = np.arange(len(cost))
        after = self.optimal_actions(self.held_out)
        gained = cost[i, self.actions] - cost[i, after]
        mean = self.rows.mean(gained)[0]
        fitted = self._against_posterior(self.actions) - self._against_posterior(after)
        # Costs relative to the best action for each true class.
        excess = self.cost - self.cost.min(axis=1, keepdims=True)
        spent = self.rows.mean(excess[self.rows.code, self.actions])[0]
        expected = self.rows.mean((self.posterior.predict(self.rows.score) @ excess)[i, after])[0]
        fitted = possible_gain(fitted, spent, spent - mean, expected, excess.max())
        weight, square = self.rows.weight, self.rows.square
        scale = self.rows.n / weight.sum()
        variance = scale**2 * (square @ (gained - mean) ** 2)
        floor = DECISIONS.variance_floor_rows * scale**2 * square.sum() / self.rows.n * self.top**2
        return Gain(np.array([mean]), np.array([np.sqrt(variance + floor) / self.rows.n]), np.array([fitted]))

    @cached_property
    def regret_draws(self) -> Array:
        """Regrets of posterior draws, with Bayesian bootstrap weights of the rows."""
        rng = np.random.default_rng(SEED)
        n, classes = self.rows.score.shape
        subset = min(n, max(1000, MAX_ENTRIES // classes))
        theta = self.posterior.draws(rng, SIZE_DRAWS, COEFFICIENT_DRAWS)
        weight = self.rows.weight[:subset]
        share, usual = (
            bootstrap_shares(rng, weight, self.rows.square[:subset], len(theta)),
            weight / weight.sum(),
        )
        # A subset of the rows has a larger sampling variation than all rows: shrink the weights accordingly.
        share = usual + np.sqrt(subset / n) * (share - usual)
        drawn = np.zeros(len(theta))
        for chunk, at in self.posterior.likelihood.chunks(slice(0, subset)):
            for j, each in enumerate(theta):
                if each.any():
                    q = softmax(self.posterior.blocks.logits(at, each))
                    drawn[j] += share[j, chunk] @ self.excess_cost(q, self.actions[chunk])
        return drawn

    def ends(self, deviate: float, level: float) -> tuple[float, float]:
        """Return both ends of a confidence interval of the regret."""
        gain = self.gain
        upper = float(np.quantile(self.regret_draws, (1 + level) / 2, method="inverted_cdf"))
        # The softmax blocks, and therefore the held-out gains, miss miscalibration on a finer scale.
        away = DECISIONS.upper_widening * deviate * float(gain.error[0])
        high = max(upper, max(self.value, float(gain.mean[0])) + away)
        low = max(float(gain.interval(deviate)[0][0]), 0.0)
        return low, max(min(high, self.top), self.value)
